//! Taking a system through the interleavings of a script.
//!
//! A step whose session still waits for an earlier one cannot be begun: that interleaving is
//! impossible, as is every other one that begins the same way; what the sessions do then is the
//! subject of other interleavings. All others end with the runner committing what is open, in the
//! order of the sessions, and asking the final queries.

use crate::anomaly::{Anomaly, Level};
use crate::interleave::Pruned;
use crate::judge::{self, Serial, Unit};
use crate::outcome::{Answer, Outcome, Seen};
use crate::record::{Line, Section};
use crate::spec::Spec;
use std::collections::BTreeMap;
use std::fmt;

/// The system failed in a way that is no answer: connection lost, setup refused, and the like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken(pub String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Broken {}

/// A database under test, with as many sessions as a script has. Polled by one thread.
#[allow(
    async_fn_in_trait,
    reason = "runners are generic over it and never send it to another thread"
)]
pub trait System {
    /// For records: `postgres-15`, `two_phase-3x2`.
    fn name(&self) -> String;

    /// Whether SERIALIZABLE promises real-time order as well.
    fn is_strict(&self) -> bool;

    /// Makes the script's tables, and sees to it that there are `sessions` idle sessions, with
    /// `level` as the default of their transactions.
    ///
    /// # Errors
    /// The setup fails.
    async fn open(&mut self, spec: &Spec, level: Level) -> Result<(), Broken>;

    /// Sends a statement. The session is idle.
    ///
    /// # Errors
    /// The connection is lost.
    async fn begin(&mut self, session: usize, sql: &str) -> Result<(), Broken>;

    /// Waits until every session has answered or is blocked by another one.
    ///
    /// # Errors
    /// A session is neither for a long time.
    async fn settle(&mut self) -> Result<(), Broken>;

    /// The answer to what was begun, once it is there.
    ///
    /// # Errors
    /// The connection is lost.
    fn take(&mut self, session: usize) -> Result<Option<Answer>, Broken>;

    /// Ends the wait of a session by force.
    ///
    /// # Errors
    /// The connection is lost.
    async fn cancel(&mut self, session: usize) -> Result<(), Broken>;

    /// Asks a question beside the sessions.
    ///
    /// # Errors
    /// The connection is lost.
    async fn ask(&mut self, sql: &str) -> Result<Answer, Broken>;

    /// Removes the script's tables. All sessions are idle.
    ///
    /// # Errors
    /// They cannot be removed.
    async fn close(&mut self, spec: &Spec) -> Result<(), Broken>;
}

/// What came of one interleaving.
enum Ran {
    Possible(Outcome),
    /// So many steps could be begun, and the next one could not.
    Impossible(usize),
}

/// One run: which answers are still to come.
struct Runner<'a, S> {
    system: &'a mut S,
    spec: &'a Spec,
    seen: Vec<Vec<Seen>>,
    /// Sessions with a step that has not been answered.
    waiting: Vec<bool>,
}

impl<'a, S: System> Runner<'a, S> {
    fn new(system: &'a mut S, spec: &'a Spec) -> Runner<'a, S> {
        Runner {
            system,
            spec,
            seen: vec![Vec::new(); spec.sessions.len()],
            waiting: vec![false; spec.sessions.len()],
        }
    }

    /// Takes the answers that are there; they were waited for if `late`.
    fn collect(&mut self, fresh: Option<usize>) -> Result<(), Broken> {
        for session in 0..self.waiting.len() {
            if !self.waiting[session] {
                continue;
            }
            if let Some(answer) = self.system.take(session)? {
                self.waiting[session] = false;
                let waited = fresh != Some(session);
                self.seen[session].push(Seen { answer, waited });
            }
        }
        Ok(())
    }

    async fn step(&mut self, session: usize, sql: &str) -> Result<(), Broken> {
        self.system.begin(session, sql).await?;
        self.waiting[session] = true;
        self.system.settle().await?;
        self.collect(Some(session))
    }

    /// Begins a block. Its answer is no part of the outcome.
    async fn open_block(&mut self, session: usize) -> Result<(), Broken> {
        self.step(session, "begin").await?;
        match self.seen[session].pop() {
            Some(seen) if seen.answer == Answer::Word("begin".into()) => Ok(()),
            other => Err(Broken(format!("BEGIN is answered by {other:?}"))),
        }
    }

    /// Commits what the script leaves open, and ends every session that waits.
    async fn end(&mut self) -> Result<(), Broken> {
        let sessions = 0..self.waiting.len();
        loop {
            let due = |session: &usize| {
                let of = &self.spec.sessions[*session];
                !self.waiting[*session] && self.seen[*session].len() < of.answers()
            };
            if let Some(session) = sessions.clone().find(due) {
                self.step(session, "commit").await?;
            } else if let Some(session) = sessions.clone().find(|at| self.waiting[*at]) {
                // Nothing is left that could end its waiting, or all others wait as well.
                self.give_up(session).await?;
                let answers = self.spec.sessions[session].answers();
                let never = Seen {
                    answer: Answer::Never,
                    waited: true,
                };
                self.seen[session].resize(answers, never);
            } else {
                return Ok(());
            }
        }
    }

    /// Leaves all sessions idle after an interleaving that turned out to be impossible.
    async fn abandon(&mut self) -> Result<(), Broken> {
        for session in 0..self.waiting.len() {
            if !self.waiting[session] {
                self.step(session, "rollback").await?;
            }
        }
        for session in 0..self.waiting.len() {
            self.system.settle().await?;
            self.collect(None)?;
            match self.waiting[session] {
                true => self.give_up(session).await?,
                false => self.step(session, "rollback").await?,
            }
        }
        Ok(())
    }

    async fn give_up(&mut self, session: usize) -> Result<(), Broken> {
        self.system.cancel(session).await?;
        self.system.settle().await?;
        self.waiting[session] = false;
        if self.system.take(session)?.is_none() {
            return Err(Broken("a session cannot be cancelled".into()));
        }
        let seen = self.seen[session].len();
        self.step(session, "rollback").await?;
        self.seen[session].truncate(seen);
        Ok(())
    }

    async fn last(&mut self) -> Result<Vec<Answer>, Broken> {
        let mut last = Vec::new();
        for sql in &self.spec.last {
            last.push(self.system.ask(sql).await?);
        }
        Ok(last)
    }
}

/// Runs one interleaving.
async fn run_order<S: System>(
    system: &mut S,
    spec: &Spec,
    level: Level,
    order: &[usize],
) -> Result<Ran, Broken> {
    system.open(spec, level).await?;
    let mut runner = Runner::new(system, spec);
    for (session, of) in spec.sessions.iter().enumerate() {
        if !of.autocommit {
            runner.open_block(session).await?;
        }
    }
    let mut next = vec![0; spec.sessions.len()];
    for (done, &session) in order.iter().enumerate() {
        if runner.waiting[session] {
            runner.abandon().await?;
            system.close(spec).await?;
            return Ok(Ran::Impossible(done));
        }
        let sql = &spec.sessions[session].steps[next[session]].sql;
        next[session] += 1;
        runner.step(session, sql).await?;
    }
    runner.end().await?;
    let last = runner.last().await?;
    let names = spec.sessions.iter().map(|session| session.name.clone());
    let sessions = names.zip(runner.seen).collect();
    system.close(spec).await?;
    Ok(Ran::Possible(Outcome { sessions, last }))
}

/// Runs units one after the other.
async fn run_serially<S: System>(
    system: &mut S,
    spec: &Spec,
    units: &[Unit],
) -> Result<Serial, Broken> {
    system.open(spec, Level::Serializable).await?;
    let mut runner = Runner::new(system, spec);
    let mut answers = Vec::new();
    for unit in units {
        let session = unit.session();
        let of = &spec.sessions[session];
        match *unit {
            Unit::Block(_) => {
                runner.open_block(session).await?;
                for step in &of.steps {
                    runner.step(session, &step.sql).await?;
                }
                if !of.ends_itself() {
                    runner.step(session, "commit").await?;
                }
            }
            Unit::Step(_, step) => runner.step(session, &of.steps[step].sql).await?,
        }
        if runner.waiting[session] {
            return Err(Broken("a session waits although it is alone".into()));
        }
        let seen = std::mem::take(&mut runner.seen[session]);
        answers.push(seen.into_iter().map(|seen| seen.answer).collect());
    }
    let last = runner.last().await?;
    system.close(spec).await?;
    Ok(Serial {
        units: units.to_vec(),
        answers,
        last,
    })
}

/// Serial executions that have been performed.
type Performed = BTreeMap<Vec<Unit>, Serial>;

async fn is_serial<S: System>(
    system: &mut S,
    spec: &Spec,
    (order, outcome): (&[usize], &Outcome),
    performed: &mut Performed,
) -> Result<bool, Broken> {
    for units in judge::serial_orders(spec, outcome, order, system.is_strict()) {
        if !performed.contains_key(&units) {
            let serial = run_serially(system, spec, &units).await?;
            performed.insert(units.clone(), serial);
        }
        if performed[&units].explains(outcome) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A forbidden anomaly, or a level that is weaker than what was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault(pub String);

/// All that one script gave at one level.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The level that the system says it gives.
    pub given: Level,
    /// What was seen.
    pub section: Section,
    /// What must not be.
    pub faults: Vec<Fault>,
}

/// Runs all interleavings of a script at one level, and judges them.
///
/// # Errors
/// The system failed in a way that is no answer; the text says in which interleaving.
pub async fn explore<S: System>(
    system: &mut S,
    spec: &Spec,
    level: Level,
) -> Result<Report, Broken> {
    let given = given(system, spec, level).await?;
    let mut report = Report {
        given,
        section: Section::default(),
        faults: Vec::new(),
    };
    if given < level {
        let fault = format!("{} is asked for, {} is given", level.sql(), given.sql());
        report.faults.push(Fault(fault));
    }
    let mut performed = Performed::new();
    let mut orders = Pruned::new(&spec.orders);
    while let Some(order) = orders.next() {
        let word = spec.word(order);
        let broken = |broken: Broken| Broken(format!("in {word} at {}: {broken}", level.sql()));
        let outcome = match run_order(system, spec, level, order)
            .await
            .map_err(broken)?
        {
            Ran::Possible(outcome) => outcome,
            Ran::Impossible(done) => {
                orders.exclude(&order[..=done]);
                continue;
            }
        };
        let (mut anomalies, mut forbidden) = judge::visible(spec, &outcome, given);
        if spec.serial
            && !is_serial(system, spec, (order, &outcome), &mut performed)
                .await
                .map_err(broken)?
        {
            anomalies.push(Anomaly::NotSerial);
            forbidden |= given >= Anomaly::NotSerial.forbidden_from();
        }
        let outcome = outcome.to_string();
        let line = Line { anomalies, outcome };
        if forbidden {
            let fault = format!("{word} at {}: {line}", level.sql());
            report.faults.push(Fault(fault));
        }
        report.section.0.entry(line).or_default().push(word);
    }
    Ok(report)
}

/// The level that a transaction of the first session has by its own words.
async fn given<S: System>(system: &mut S, spec: &Spec, level: Level) -> Result<Level, Broken> {
    system.open(spec, level).await?;
    let mut runner = Runner::new(system, spec);
    runner.step(0, "show transaction_isolation").await?;
    let said = runner.seen[0].pop().map(|seen| seen.answer);
    system.close(spec).await?;
    match &said {
        Some(Answer::Rows(rows)) => Level::of_sql(&rows[0][0]),
        _ => None,
    }
    .ok_or_else(|| Broken(format!("SHOW transaction_isolation says {said:?}")))
}

#[cfg(test)]
mod tests;
