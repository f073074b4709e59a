//! A workload of one's own in Rust, on any store: customers take articles from shelves.
//! `cargo run -p sessions --example own -- [URL [MAPPING]]`.
#![allow(clippy::print_stdout, reason = "what it is for")]

use entity::{Client, Entity, EntityDb, Pace, Policy, Schema, Value};
use sessions::access::{Access, counted, first_number};
use sessions::interaction::{Changed, Changes, Effort, Failure, Interaction};
use sessions::interaction::{Performed, Plan, Session, perform};
use sessions::population::Population;
use sessions::run::connect::Entities;
use sessions::run::{self, Part, Phases, Workload, run_over};
use sessions::table::Table;
use std::sync::atomic::AtomicBool;
use stores::Options;

/// Articles on a shelf at the begin.
const ARTICLES: i64 = 1_000;

/// A shelf.
#[derive(Clone, Debug, PartialEq, Entity)]
struct Shelf {
    #[id]
    #[group]
    shelf_id: i64,
    articles: i64,
}

/// The workload: sizes, and what all sessions share.
struct Shop {
    shelves: u64,
}

/// Takes an article from a shelf. The result is EMPTY if there is none.
struct Take<'a>(&'a Shop);

impl Plan for Take<'_> {
    /// The shelf.
    type Param = i64;
    /// Whether there was an article.
    type Answer = bool;

    fn prepare(&self, session: &mut Session) -> Option<i64> {
        Some(session.draws.below(self.0.shelves) as i64)
    }

    fn complete(&self, _: &i64, answer: bool, _: &mut Session) -> &'static str {
        if answer { "" } else { "EMPTY" }
    }

    fn note(&self, param: &i64, answer: Option<&bool>, changes: &mut Changes) {
        if answer != Some(&false) {
            changes.note("shelf", *param as u64, -1, answer.is_some());
        }
    }
}

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for Take<'_> {
    async fn execute(
        &self,
        param: &i64,
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<bool, Failure> {
        counted(access, effort, async |client| {
            let taken = client.run_in::<Shelf, _>(param, async |tx| {
                let shelf = tx.get::<Shelf>(param).await?;
                let mut shelf = shelf.ok_or(entity::Failure::Stopped("no such shelf"))?;
                if shelf.articles == 0 {
                    return Ok(false);
                }
                shelf.articles -= 1;
                tx.update(&shelf).await?;
                Ok(true)
            });
            taken.await
        })
        .await
    }
}

impl<D: Access> Workload<D> for Shop
where
    for<'a> Take<'a>: Interaction<D>,
{
    fn interactions(&self) -> &[(&'static str, &'static [&'static str])] {
        &[("TAKE", &["EMPTY"])]
    }

    fn default_table(&self) -> Table {
        Table::repeat(0, "TAKE")
    }

    async fn perform(
        &self,
        _: usize,
        session: &mut Session,
        access: &mut D,
        changes: &mut Changes,
        now_ns: &dyn Fn() -> u64,
    ) -> Performed {
        perform(&Take(self), session, access, changes, now_ns).await
    }

    async fn load(&self, part: Part, access: &mut D) -> Result<(), Failure> {
        for shelf in part.dealt(self.shelves) {
            let shelf = Shelf {
                shelf_id: shelf as i64,
                articles: ARTICLES,
            };
            access.fill(Shelf::TYPE, vec![shelf.row()]).await?;
        }
        Ok(())
    }

    async fn judge(
        &self,
        (kind, shelf): (&'static str, u64),
        changed: Changed,
        access: &mut D,
        findings: &mut Vec<String>,
    ) -> Result<(), Failure> {
        let rows = access
            .rows(Shelf::TYPE, &[Value::Int(shelf as i64)])
            .await?;
        let there = first_number(&rows, 1);
        let of = format_args!("{kind} {shelf}");
        findings.extend(changed.finding(of, there - ARTICLES, "articles more than at the begin"));
        Ok(())
    }
}

/// Runs it on a store for a moment; the results as JSON.
fn measure(url: &str, mapping: Option<String>) -> Result<serde_json::Value, String> {
    let mut schema = Schema::new();
    schema.add(Shelf::TYPE)?;
    let options = Options {
        mapping,
        ..Options::default()
    };
    let store = Entities::open(url, options, schema, (Policy::default(), 1))?;
    let shop = Shop { shelves: 100 };
    let plan = run::Plan {
        seed: 1,
        table: Workload::<<Entities as run::Connector>::Access>::default_table(&shop),
        population: Population::closed(8),
        phases: Phases {
            warmup_s: 0.2,
            measure_s: 0.8,
        },
        loads: true,
    };
    let results = run_over(&store, &shop, &plan, &mut |_| {}, &AtomicBool::new(false));
    results.map_err(|error| error.to_string())
}

fn main() -> Result<(), String> {
    let mut words = std::env::args().skip(1);
    let url = words.next().unwrap_or_else(|| String::from("memory:"));
    println!("{:#}", measure(&url, words.next())?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_passes_in_memory() {
        // The machine may stand still for as long as that takes.
        let run = || measure("memory:", None).expect("it runs");
        let results = peer::again(run, |results| results["verdict"] != "nothing");
        assert_eq!(results["verdict"], "passed", "{results}");
    }
}
