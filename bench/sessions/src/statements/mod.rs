//! Workloads that are data only: parameters with distributions, statements of each interaction,
//! and checks as SQL. For servers with SQL.
//!
//! ```text
//! setup:   ["DROP TABLE IF EXISTS account", "CREATE TABLE account (..)"]
//! load:    [{sql: "INSERT INTO account VALUES (:id, 1000)", each: id, from: 0, to: 99}]
//! draws:   {from: {kind: uniform, from: 0, to: 99}, to: .., cents: ..}
//! interactions:
//!   PAY:   [{sql: "UPDATE account SET cents = cents - :cents WHERE id = :from", rows: 1},
//!           {sql: "UPDATE account SET cents = cents + :cents WHERE id = :to", rows: 1}]
//! checks:  [{sql: "SELECT sum(cents) FROM account", equals: 100000}]
//! ```
//!
//! The statements of an interaction are one transaction in one round; a single one commits by
//! itself. `:name` is a drawn value, or one that the session keeps. A statement may say:
//!
//! | key | meaning |
//! |---|---|
//! | `rows` | so many rows must be returned or changed; everything else is a wrong answer |
//! | `empty` | the result of the interaction if there is none |
//! | `keep` | the session keeps the first column of the first row under this name |
//!
//! A check compares the number in the first column of its first row with `equals`, plus for each
//! interaction in `plus` its factor times how often it was acknowledged.

mod read;

use crate::access::{Attempt, BEGIN, OWN, Sql, Statement};
use crate::distribution::Distribution;
use crate::interaction::{Changed, Changes, Effort, Failure, Interaction};
use crate::interaction::{Performed, Plan, Session, perform};
use crate::run::{Part, Workload};
use crate::state::Datum;
use crate::table::Table;
use entity::Pace;
use std::collections::BTreeMap;
use workload::stream;
use workload::wire::{self, Connection, ParamType};

/// Statements of one round of the load.
const BATCH: usize = 100;
/// Tag of the generator of what is loaded.
const LOAD: u64 = 0x7374_6174;
/// How often an interaction was acknowledged, by its place, in [`Changes`].
const ANSWERED: &str = "answered";

/// A statement with the names of its parameters.
#[derive(Clone, Debug, PartialEq)]
struct Text {
    sql: String,
    params: Vec<(String, ParamType)>,
}

/// A statement of an interaction.
#[derive(Clone, Debug)]
struct Step {
    text: Text,
    rows: Option<u64>,
    empty: Option<&'static str>,
    keep: Option<String>,
}

/// A statement of the load, for each number of a range.
#[derive(Clone, Debug)]
struct Load {
    text: Text,
    each: String,
    from: i64,
    to: i64,
}

/// What a statement must return after the run.
#[derive(Clone, Debug)]
struct Check {
    sql: String,
    equals: i64,
    /// Factors by the place of the interaction.
    plus: BTreeMap<usize, i64>,
}

/// The workload.
#[derive(Clone, Debug)]
pub struct Statements {
    setup: Vec<String>,
    load: Vec<Load>,
    draws: BTreeMap<String, Distribution>,
    names: Vec<(&'static str, &'static [&'static str])>,
    steps: Vec<Vec<Step>>,
    checks: Vec<Check>,
}

impl Statements {
    /// What makes its tables.
    pub fn setup(&self) -> &[String] {
        &self.setup
    }

    /// Names of its interactions with their results.
    pub fn interactions(&self) -> &[(&'static str, &'static [&'static str])] {
        &self.names
    }

    /// All statements with the types of their parameters: those of the interactions, then those of
    /// the load.
    pub fn statements(&self) -> Vec<(String, Vec<ParamType>)> {
        let steps = self.steps.iter().flatten().map(|step| &step.text);
        let all = steps.chain(self.load.iter().map(|load| &load.text));
        let types = |text: &Text| text.params.iter().map(|(_, kind)| *kind).collect();
        all.map(|text| (text.sql.clone(), types(text))).collect()
    }

    /// The place of an interaction's first statement among those.
    fn place(&self, interaction: usize) -> usize {
        OWN + self.steps[..interaction]
            .iter()
            .map(Vec::len)
            .sum::<usize>()
    }
}

/// One interaction of the document.
#[derive(Clone, Copy, Debug)]
pub struct Transaction<'a> {
    statements: &'a Statements,
    interaction: usize,
}

/// Values by name.
type Values = BTreeMap<String, Datum>;

/// What the statements of an interaction answered: the result, and what the session keeps.
#[derive(Clone, Debug, Default)]
pub struct Answered {
    result: &'static str,
    kept: Vec<(String, Datum)>,
}

impl Plan for Transaction<'_> {
    type Param = Values;
    type Answer = Answered;

    fn prepare(&self, session: &mut Session) -> Option<Values> {
        let mut values = Values::new();
        for step in &self.statements.steps[self.interaction] {
            for (name, _) in &step.text.params {
                if values.contains_key(name) {
                    continue;
                }
                let value = match self.statements.draws.get(name) {
                    Some(distribution) => distribution.draw(&mut session.draws),
                    None => session.state.get(name)?.clone(),
                };
                values.insert(name.clone(), value);
            }
        }
        Some(values)
    }

    fn complete(&self, _: &Values, answer: Answered, session: &mut Session) -> &'static str {
        for (name, value) in answer.kept {
            session.state.set(&name, value);
        }
        answer.result
    }

    fn note(&self, _: &Values, answer: Option<&Answered>, changes: &mut Changes) {
        // What found nothing has not happened.
        if answer.is_none_or(|answer| answer.result.is_empty()) {
            changes.note(ANSWERED, self.interaction as u64, 1, answer.is_some());
        }
    }
}

/// Puts a statement into the round.
fn push<C: Connection>(
    statement: &mut Statement<'_, C>,
    place: usize,
    text: &Text,
    values: &Values,
) -> Attempt<(), C> {
    let mut bind = statement.session().bind(place);
    for (name, _) in &text.params {
        bind = match values.get(name) {
            Some(Datum::Int(number)) => bind.big(*number),
            Some(Datum::Real(number)) => bind.text(&number.to_string()),
            Some(Datum::Text(text)) => bind.text(text),
            // Refused when the document was read.
            Some(Datum::List(_) | Datum::Row(_)) | None => bind.text(""),
        };
    }
    bind.send();
    Ok(())
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for Transaction<'_> {
    async fn execute(
        &self,
        param: &Values,
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<Answered, Failure> {
        let steps = &self.statements.steps[self.interaction];
        let first = self.statements.place(self.interaction);
        let is_block = steps.len() > 1;
        access
            .run(effort, async |statement| {
                if is_block {
                    statement.session().bind(BEGIN).send();
                }
                for (at, step) in steps.iter().enumerate() {
                    push(statement, first + at, &step.text, param)?;
                }
                if is_block {
                    statement.commit().await?;
                } else {
                    statement.single().await?;
                }
                answered(steps, usize::from(is_block), statement)
            })
            .await
    }
}

fn answered<C: Connection>(
    steps: &[Step],
    first: usize,
    statement: &Statement<'_, C>,
) -> Attempt<Answered, C> {
    let answers = statement.answers();
    let mut answered = Answered::default();
    for (at, step) in steps.iter().enumerate() {
        let place = first + at;
        let rows = (answers.rows(place) as u64).max(answers.affected(place));
        if rows == 0
            && let Some(empty) = step.empty
        {
            answered.result = empty;
            continue;
        }
        if let Some(wanted) = step.rows.filter(|wanted| *wanted != rows) {
            let sql = &step.text.sql;
            let text = format!("{rows} rows, where the workload says {wanted}: {sql}");
            return Err(wire::Failure::Wrong(text));
        }
        if let Some(name) = step.keep.as_ref().filter(|_| answers.rows(place) > 0) {
            let number = answers.int(place, 0, 0).map(Datum::Int);
            let text = || Datum::Text(answers.text(place, 0, 0).to_string());
            answered
                .kept
                .push((name.clone(), number.unwrap_or_else(text)));
        }
    }
    Ok(answered)
}

impl<C: Connection, P: Pace> Workload<Sql<C, P>> for Statements {
    fn interactions(&self) -> &[(&'static str, &'static [&'static str])] {
        &self.names
    }

    fn default_table(&self) -> Table {
        Table::repeat(0, self.names[0].0)
    }

    async fn perform(
        &self,
        interaction: usize,
        session: &mut Session,
        access: &mut Sql<C, P>,
        changes: &mut Changes,
        now_ns: &dyn Fn() -> u64,
    ) -> Performed {
        let interaction = Transaction {
            statements: self,
            interaction,
        };
        perform(&interaction, session, access, changes, now_ns).await
    }

    async fn load(&self, part: Part, access: &mut Sql<C, P>) -> Result<(), Failure> {
        let first = self.place(self.steps.len());
        for (at, load) in self.load.iter().enumerate() {
            let numbers: Vec<i64> = part.of(load.from..=load.to).collect();
            for batch in numbers.chunks(BATCH) {
                let mut effort = Effort::default();
                let loading = access.run(&mut effort, async |statement| {
                    statement.session().bind(BEGIN).send();
                    for number in batch {
                        let values = self.values(load, at as u64, *number);
                        push(statement, first + at, &load.text, &values)?;
                    }
                    statement.commit().await
                });
                loading.await?;
            }
        }
        Ok(())
    }

    async fn check(
        &self,
        part: Part,
        access: &mut Sql<C, P>,
        changes: &Changes,
    ) -> Result<Vec<String>, Failure> {
        let mut findings = Vec::new();
        for check in part.of(self.checks.iter()) {
            let session = access.session();
            let asked = session.simple(&check.sql).await;
            asked.map_err(|failure| Failure::Refused(format!("{}: {failure:?}", check.sql)))?;
            let found = session.answers.int(0, 0, 0);
            let mut wanted = Changed::default();
            for (interaction, factor) in &check.plus {
                let key = (ANSWERED, *interaction as u64);
                let counted = changes.by_group.get(&key).copied().unwrap_or_default();
                wanted.acknowledged += factor * counted.acknowledged;
                wanted.unknown += (factor * counted.unknown).max(0);
                wanted.unknown_less += (factor * counted.unknown).min(0);
            }
            if !found.is_some_and(|found| wanted.allows(found - check.equals)) {
                findings.push(format!(
                    "{} returned {found:?}, not {} (and {} to {} that nobody knows)",
                    check.sql,
                    check.equals + wanted.acknowledged,
                    wanted.unknown_less,
                    wanted.unknown
                ));
            }
        }
        Ok(findings)
    }
}

impl Statements {
    /// The values of a row that is loaded.
    fn values(&self, load: &Load, place: u64, number: i64) -> Values {
        let mut prng = stream(LOAD, &[place, number as u64]);
        let mut values = Values::new();
        for (name, _) in &load.text.params {
            let value = match self.draws.get(name) {
                Some(distribution) if *name != load.each => distribution.draw(&mut prng),
                _ => Datum::Int(number),
            };
            values.insert(name.clone(), value);
        }
        values
    }
}
