//! Judging an outcome, without regard to what is recorded.
//!
//! A *unit* is what must be atomic: a session's block, or one step of an autocommit session. A unit
//! that failed or rolled back has no effect that anyone may see, so what counts are the units that
//! committed: their answers and the final rows must be those of a serial execution of exactly them.
//! Under a strict system one that ended before another began also comes before it in that order.

use crate::anomaly::{Anomaly, Level};
use crate::condition::Facts;
use crate::outcome::{Answer, Outcome};
use crate::spec::Spec;

/// What must be atomic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Unit {
    /// All steps of this session.
    Block(usize),
    /// This step of this session.
    Step(usize, usize),
}

impl Unit {
    /// Its session.
    pub fn session(self) -> usize {
        match self {
            Unit::Block(session) | Unit::Step(session, _) => session,
        }
    }
}

/// All units of a script.
pub fn units(spec: &Spec) -> Vec<Unit> {
    let of = |(session, what): (usize, &crate::spec::Session)| match what.autocommit {
        false => vec![Unit::Block(session)],
        true => (0..what.steps.len())
            .map(|step| Unit::Step(session, step))
            .collect(),
    };
    spec.sessions.iter().enumerate().flat_map(of).collect()
}

/// An outcome as conditions ask it.
struct Asked<'a> {
    spec: &'a Spec,
    outcome: &'a Outcome,
}

impl Facts for Asked<'_> {
    fn answer(&self, step: &str) -> Option<&Answer> {
        if step == "final" {
            return self.outcome.last.last();
        }
        let (session, number) = self.spec.step(step)?;
        Some(&self.outcome.sessions[session].1[number].answer)
    }

    fn committed(&self, session: &str) -> Option<bool> {
        let session = self.spec.session(session)?;
        Some(
            units(self.spec)
                .into_iter()
                .all(|unit| unit.session() != session || committed(self.spec, self.outcome, unit)),
        )
    }
}

/// The anomalies whose conditions hold, in the order of the table, and whether one of them is
/// forbidden at `level`.
pub fn visible(spec: &Spec, outcome: &Outcome, level: Level) -> (Vec<Anomaly>, bool) {
    let asked = Asked { spec, outcome };
    let rules = spec.rules.iter().filter(|rule| rule.when.holds(&asked));
    let (mut kinds, mut forbidden) = (Vec::new(), false);
    for rule in rules {
        kinds.push(rule.kind);
        forbidden |= level >= rule.forbidden_from;
    }
    kinds.sort();
    kinds.dedup();
    (kinds, forbidden)
}

/// Whether the unit committed.
pub fn committed(spec: &Spec, outcome: &Outcome, unit: Unit) -> bool {
    let seen = &outcome.sessions[unit.session()].1;
    match unit {
        Unit::Step(_, step) => !seen[step].answer.failed(),
        Unit::Block(session) => {
            debug_assert_eq!(seen.len(), spec.sessions[session].answers());
            let last = seen.last().map(|seen| &seen.answer);
            last == Some(&Answer::Word("commit".into()))
        }
    }
}

/// What the units of a serial execution were answered, in its order, and the final rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Serial {
    /// The order.
    pub units: Vec<Unit>,
    /// Answers of each.
    pub answers: Vec<Vec<Answer>>,
    /// Answers of the final queries.
    pub last: Vec<Answer>,
}

/// The answers of one unit in an outcome.
fn answers(outcome: &Outcome, unit: Unit) -> Vec<Answer> {
    let seen = &outcome.sessions[unit.session()].1;
    match unit {
        Unit::Block(_) => seen.iter().map(|seen| seen.answer.clone()).collect(),
        Unit::Step(_, step) => vec![seen[step].answer.clone()],
    }
}

impl Serial {
    /// Whether it explains the outcome for the units that committed in it, which are its own.
    pub fn explains(&self, outcome: &Outcome) -> bool {
        let mut own = self.units.iter().zip(&self.answers);
        self.last == outcome.last && own.all(|(unit, said)| *said == answers(outcome, *unit))
    }
}

/// All orders of the units that committed in `outcome`, each with the units of a session in their
/// order; and, if `strict`, with those that ended before others began in front of them.
pub fn serial_orders(
    spec: &Spec,
    outcome: &Outcome,
    order: &[usize],
    strict: bool,
) -> Vec<Vec<Unit>> {
    let units: Vec<Unit> = units(spec)
        .into_iter()
        .filter(|unit| committed(spec, outcome, *unit))
        .collect();
    let mut all = Vec::new();
    permute(&mut Vec::new(), &units, &mut |candidate| {
        let comes_before = |a: Unit, b: Unit| {
            a.session() == b.session() && a < b
                || strict && ended_before(spec, outcome, order, a, b)
        };
        let fits = (0..candidate.len()).all(|at| {
            let later = &candidate[at + 1..];
            later.iter().all(|unit| !comes_before(*unit, candidate[at]))
        });
        if fits {
            all.push(candidate.to_vec());
        }
    });
    all
}

fn permute(chosen: &mut Vec<Unit>, units: &[Unit], f: &mut dyn FnMut(&[Unit])) {
    if chosen.len() == units.len() {
        return f(chosen);
    }
    for unit in units {
        if !chosen.contains(unit) {
            chosen.push(*unit);
            permute(chosen, units, f);
            chosen.pop();
        }
    }
}

/// Whether `a` was certainly over before the first step of `b` was begun. A unit that had to wait
/// for its last answer, or that the runner commits, has no certain end.
fn ended_before(spec: &Spec, outcome: &Outcome, order: &[usize], a: Unit, b: Unit) -> bool {
    // The place in the word where a session's step is begun.
    let place = |session: usize, step: usize| {
        let mut begun = (0..order.len()).filter(|at| order[*at] == session);
        begun.nth(step)
    };
    let last = match a {
        Unit::Block(session) if !spec.sessions[session].ends_itself() => return false,
        Unit::Block(session) => spec.sessions[session].steps.len() - 1,
        Unit::Step(_, step) => step,
    };
    let first = match b {
        Unit::Block(_) => 0,
        Unit::Step(_, step) => step,
    };
    let waited = outcome.sessions[a.session()].1[last].waited;
    !waited && place(a.session(), last) < place(b.session(), first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Seen;

    const TEXT: &str = "\
# Lost update.
session a
  ra  select v from t
  wa  update t set v = 11
  ca  commit
session b
  rb  select v from t
  wb  update t set v = 11
final select v from t
anomaly P4 when ra == [10] and rb == [10] and committed(a) and committed(b)
";

    fn outcome(a: &[Answer], b: &[Answer], last: &str) -> Outcome {
        let seen = |answers: &[Answer]| {
            let seen = |answer: &Answer| Seen {
                answer: answer.clone(),
                waited: false,
            };
            answers.iter().map(seen).collect()
        };
        Outcome {
            sessions: vec![("a".into(), seen(a)), ("b".into(), seen(b))],
            last: vec![value(last)],
        }
    }

    fn value(text: &str) -> Answer {
        Answer::rows(vec![vec![text.into()]])
    }

    fn commit() -> Answer {
        Answer::Word("commit".into())
    }

    #[test]
    fn an_anomaly_is_seen_and_forbidden_from_its_level_on() {
        let spec = Spec::parse(TEXT).unwrap();
        let one = [value("10"), Answer::Count(1), commit()];
        let lost = outcome(&one, &one, "11");
        assert_eq!(
            visible(&spec, &lost, Level::ReadCommitted),
            (vec![Anomaly::P4], false)
        );
        assert_eq!(
            visible(&spec, &lost, Level::RepeatableRead),
            (vec![Anomaly::P4], true)
        );
        let failed = [
            value("10"),
            Answer::Error("40001".into()),
            Answer::Word("rollback".into()),
        ];
        let good = outcome(&one, &failed, "11");
        assert_eq!(visible(&spec, &good, Level::Serializable), (vec![], false));
        assert!(committed(&spec, &good, Unit::Block(0)));
        assert!(!committed(&spec, &good, Unit::Block(1)));
    }

    #[test]
    fn serial_executions_explain_or_do_not() {
        let one = [value("10"), Answer::Count(1), commit()];
        let two = [value("11"), Answer::Count(1), commit()];
        let serial = Serial {
            units: vec![Unit::Block(0), Unit::Block(1)],
            answers: vec![one.to_vec(), two.to_vec()],
            last: vec![value("11")],
        };
        assert!(serial.explains(&outcome(&one, &two, "11")));
        assert!(
            !serial.explains(&outcome(&one, &one, "11")),
            "an update is lost"
        );
        assert!(
            !serial.explains(&outcome(&one, &two, "12")),
            "other rows in the end"
        );
    }

    #[test]
    fn orders_keep_what_came_before() {
        let spec = Spec::parse(TEXT).unwrap();
        let one = [value("10"), Answer::Count(1), commit()];
        let both = outcome(&one, &one, "11");
        let (a, b) = (Unit::Block(0), Unit::Block(1));
        let orders = |word: &[usize], strict| serial_orders(&spec, &both, word, strict);
        assert_eq!(orders(&[0, 0, 0, 1, 1], true), [[a, b]]);
        assert_eq!(orders(&[0, 0, 0, 1, 1], false), [[a, b], [b, a]]);
        assert_eq!(orders(&[0, 0, 1, 0, 1], true), [[a, b], [b, a]]);
        assert_eq!(
            orders(&[1, 1, 0, 0, 0], true).len(),
            2,
            "the runner commits b after everything"
        );
        let text = TEXT.replace("session b", "session b autocommit");
        let spec = Spec::parse(&text).unwrap();
        let (first, second) = (Unit::Step(1, 0), Unit::Step(1, 1));
        let both = outcome(&one, &one[..2], "11");
        let orders = serial_orders(&spec, &both, &[0, 1, 0, 0, 1], true);
        assert_eq!(orders, [[a, first, second], [first, a, second]]);
    }
}
