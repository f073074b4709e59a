//! Hot counters: every interaction adds one to a counter. The fewer counters, the more conflicts.

use crate::access::{Access, OWN, Sql, counted, first_number};
use crate::distribution::{Ranks, dealt};
use crate::document::{Problem, Section};
use crate::interaction::{
    Changed, Changes, Effort, Failure, Interaction, Performed, Plan, Session, perform,
};
use crate::run::{Part, Workload};
use crate::table::Table;
use entity::{Client, Entity, EntityDb, Pace, Schema, Value};
use workload::dike::imbalance::Access as Dealt;
use workload::wire::{self, Connection, ParamType};

/// The most counters.
const COUNTERS_MAX: u64 = 10_000_000;

/// A number that is counted up.
#[derive(Clone, Debug, PartialEq, Entity)]
pub struct Counter {
    /// From 0.
    #[id]
    #[group]
    pub counter_id: i64,
    /// How often one was added.
    pub total: i64,
}

/// The workload.
#[derive(Clone, Debug)]
pub struct HotCounter {
    counters: Ranks,
}

impl HotCounter {
    /// Reads `counters` (1) and `counter_access` (`uniform`).
    ///
    /// # Errors
    /// A key that is not known, or a number out of its bounds.
    pub fn read(mut section: Section<'_>) -> Result<HotCounter, Problem> {
        let count = section.count("counters", 1..=COUNTERS_MAX)?.unwrap_or(1);
        let dealt = dealt(&mut section, "counter_access", Dealt::Uniform)?;
        section.finish()?;
        Ok(HotCounter {
            counters: Ranks::new(dealt, count, false),
        })
    }

    /// The types of its entities.
    pub fn schema() -> Schema {
        let mut schema = Schema::new();
        schema.add(Counter::TYPE).expect("the type is well formed");
        schema
    }
}

/// Its statements.
pub fn statements() -> Vec<(String, Vec<ParamType>)> {
    let add = "UPDATE counter SET total = total + 1 WHERE counter_id = $1";
    vec![(add.to_string(), vec![ParamType::BigInt])]
}

/// Adds one to a counter.
#[derive(Clone, Copy, Debug)]
pub struct Add<'a>(&'a HotCounter);

impl Plan for Add<'_> {
    /// The counter.
    type Param = i64;
    type Answer = ();

    fn prepare(&self, session: &mut Session) -> Option<i64> {
        Some(self.0.counters.draw(&mut session.draws) as i64)
    }

    fn complete(&self, _: &i64, (): (), _: &mut Session) -> &'static str {
        ""
    }

    fn note(&self, param: &i64, answer: Option<&()>, changes: &mut Changes) {
        changes.note("counter", *param as u64, 1, answer.is_some());
    }
}

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for Add<'_> {
    async fn execute(
        &self,
        param: &i64,
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<(), Failure> {
        counted(access, effort, async |client| {
            client
                .run_in::<Counter, _>(param, async |tx| {
                    let counter = tx.get::<Counter>(param).await?;
                    let missing = entity::Failure::Stopped("a counter is missing");
                    let mut counter = counter.ok_or(missing)?;
                    counter.total += 1;
                    tx.update(&counter).await
                })
                .await
        })
        .await
    }
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for Add<'_> {
    async fn execute(
        &self,
        param: &i64,
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<(), Failure> {
        access
            .run(effort, async |statement| {
                statement.session().bind(OWN).big(*param).send();
                statement.single().await?;
                match statement.answers().affected(0) {
                    1 => Ok(()),
                    _ => Err(wire::Failure::Wrong("a counter is missing".to_string())),
                }
            })
            .await
    }
}

impl<D: Access> Workload<D> for HotCounter
where
    for<'a> Add<'a>: Interaction<D>,
{
    fn interactions(&self) -> &[(&'static str, &'static [&'static str])] {
        &[("ADD", &[])]
    }

    fn default_table(&self) -> Table {
        Table::repeat(0, "ADD")
    }

    async fn perform(
        &self,
        _: usize,
        session: &mut Session,
        access: &mut D,
        changes: &mut Changes,
        now_ns: &dyn Fn() -> u64,
    ) -> Performed {
        perform(&Add(self), session, access, changes, now_ns).await
    }

    async fn load(&self, part: Part, access: &mut D) -> Result<(), Failure> {
        for counter in part.dealt(self.counters.count()) {
            let counter = Counter {
                counter_id: counter as i64,
                total: 0,
            };
            access.fill(Counter::TYPE, vec![counter.row()]).await?;
        }
        Ok(())
    }

    async fn judge(
        &self,
        (_, counter): (&'static str, u64),
        changed: Changed,
        access: &mut D,
        findings: &mut Vec<String>,
    ) -> Result<(), Failure> {
        let id = [Value::Int(counter as i64)];
        let rows = access.rows(Counter::TYPE, &id).await?;
        let total = first_number(&rows, 1);
        findings.extend(changed.finding(format_args!("counter {counter}"), total, "additions"));
        Ok(())
    }
}
