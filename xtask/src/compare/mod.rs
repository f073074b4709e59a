//! `cargo xtask compare postgres`: one Trellis node beside PostgreSQL 15, on this machine, with the
//! same client, in interleaved runs.
//!
//! * Each cell (a script, a number of clients, an isolation level) alternates: PostgreSQL, Trellis,
//!   PostgreSQL, Trellis, ... Only ratios of neighbours count, because the speed of a disk drifts
//!   by more than any difference of interest.
//! * The verdict compares the median of those ratios with the floor of the cell.
//! * Both servers are fresh, keep their files in the same folder of the same disk, and run with
//!   fsync on; the settings are printed and stored with the numbers.

mod cells;
mod pgbench;
mod report;
mod tpcc;

use crate::ci;
use crate::install;
use crate::repo;
use crate::servers::{Postgres, Server, Setting, Trellis};
use crate::shell;
use anyhow::{Context, Result, bail, ensure};
use cells::{Cell, Outcome, Work};
use std::path::PathBuf;
use std::time::Instant;

/// PostgreSQL as one would run it on a machine of its own with this much memory. Durability is
/// untouched: fsync, full_page_writes and synchronous_commit are on.
pub(crate) const SETTINGS: &[Setting] = &[
    ("shared_buffers", "2GB"),
    ("effective_cache_size", "8GB"),
    ("work_mem", "32MB"),
    ("maintenance_work_mem", "512MB"),
    ("wal_buffers", "64MB"),
    ("max_wal_size", "16GB"),
    ("min_wal_size", "2GB"),
    ("checkpoint_timeout", "15min"),
    ("checkpoint_completion_target", "0.9"),
    ("max_connections", "200"),
    ("max_pred_locks_per_transaction", "512"),
    ("fsync", "on"),
    ("full_page_writes", "on"),
    ("synchronous_commit", "on"),
    ("jit", "off"),
];

/// How much is measured.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// pgbench's scale: 100,000 accounts each.
    scale: u32,
    rounds: usize,
    /// Length of one run in seconds.
    seconds: u32,
    tpcc_rounds: usize,
    tpcc_seconds: u32,
    /// Whether a missed floor fails the command.
    strict: bool,
    /// Parts of names of cells; empty for all.
    only: Vec<String>,
    json: Option<PathBuf>,
    /// Takes the release build as it is.
    is_built: bool,
    /// Compares PostgreSQL with itself: what differs then is noise.
    is_noise: bool,
}

impl Plan {
    fn full() -> Plan {
        Plan {
            scale: 50,
            rounds: 5,
            seconds: 10,
            tpcc_rounds: 3,
            tpcc_seconds: 20,
            strict: true,
            only: Vec::new(),
            json: None,
            is_built: false,
            is_noise: false,
        }
    }

    /// Small, to see that everything runs. Its numbers are too few to judge, so no floor counts.
    fn quick() -> Plan {
        Plan {
            scale: 5,
            rounds: 2,
            seconds: 2,
            tpcc_rounds: 1,
            tpcc_seconds: 5,
            strict: false,
            ..Plan::full()
        }
    }

    fn parse(args: &[String]) -> Result<Plan> {
        ensure!(
            args.first().is_some_and(|peer| peer == "postgres"),
            "the peer is postgres"
        );
        let quick = args.iter().any(|arg| arg == "--quick");
        let mut plan = if quick { Plan::quick() } else { Plan::full() };
        let mut rest = args[1..].iter();
        while let Some(flag) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{flag} needs a value"));
            match flag.as_str() {
                "--quick" => {}
                "--built" => plan.is_built = true,
                "--noise" => plan.is_noise = true,
                "--json" => plan.json = Some(PathBuf::from(value()?)),
                "--only" => plan.only.push(value()?.clone()),
                "--scale" => plan.scale = value()?.parse()?,
                "--rounds" => {
                    plan.rounds = value()?.parse()?;
                    plan.tpcc_rounds = plan.rounds;
                }
                "--seconds" => {
                    plan.seconds = value()?.parse()?;
                    plan.tpcc_seconds = plan.seconds;
                }
                other => bail!("compare does not know {other}"),
            }
        }
        ensure!(plan.rounds > 0 && plan.seconds > 0, "nothing to measure");
        Ok(plan)
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }
}

/// Runs the command.
pub(crate) fn main(args: &[String]) -> Result<()> {
    run(&Plan::parse(args)?).map(drop)
}

/// The step of CI: everything runs once, small; answers the number of cells.
pub(crate) fn smoke() -> Result<usize> {
    let json = repo::cache_dir()?.join("compare.json");
    run(&Plan {
        json: Some(json),
        rounds: 1,
        ..Plan::quick()
    })
}

fn run(plan: &Plan) -> Result<usize> {
    install::postgres()?;
    if !plan.is_noise && !plan.is_built {
        shell::run(ci::cargo().args(["build", "--release", "--quiet"]))?;
    }
    let start = Instant::now();
    let mut postgres = Server::Postgres(Postgres::start(SETTINGS)?);
    let mut trellis = match plan.is_noise {
        true => Server::Postgres(Postgres::start(SETTINGS)?),
        false => Server::Trellis(Trellis::start(1)?),
    };
    let measured = measure(plan, &postgres, &trellis);
    if measured.is_err() {
        println!(
            "postgres:\n{}\ntrellis:\n{}",
            postgres.log_tail(),
            trellis.log_tail()
        );
    }
    let stopped = postgres.stop().and(trellis.stop());
    let outcomes = measured?;
    stopped?;
    println!("{}", report::table(&outcomes));
    println!("{:.0} s in all", start.elapsed().as_secs_f64());
    if let Some(path) = &plan.json {
        let json = serde_json::to_string_pretty(&report::json(plan, &outcomes))?;
        std::fs::write(path, json + "\n").with_context(|| path.display().to_string())?;
    }
    let missed: Vec<&str> = outcomes
        .iter()
        .filter(|one| !one.is_met())
        .map(|one| one.cell.name)
        .collect();
    let verdict = if missed.is_empty() {
        "all floors are met"
    } else {
        "floors are missed"
    };
    println!("verdict: {verdict} {}", missed.join(", "));
    ensure!(
        missed.is_empty() || !plan.strict || plan.is_noise,
        "{} floors are missed",
        missed.len()
    );
    Ok(outcomes.len())
}

fn measure(plan: &Plan, postgres: &Server, trellis: &Server) -> Result<Vec<Outcome>> {
    println!("PostgreSQL settings:");
    for (name, value) in SETTINGS {
        println!("  {name} = {value}");
    }
    for (name, value) in report::machine() {
        println!("{name}: {value}");
    }
    let cells: Vec<&Cell> = cells::CELLS
        .iter()
        .filter(|cell| plan.wants(cell.name))
        .collect();
    ensure!(!cells.is_empty(), "no cell has such a name");
    let with_pgbench = cells.iter().any(|cell| cell.work.is_pgbench());
    let with_tpcc = cells.iter().any(|cell| cell.work == Work::Tpcc);
    let with_loads = cells.iter().any(|cell| matches!(cell.work, Work::Load(_)));
    for server in [postgres, trellis] {
        if with_pgbench {
            pgbench::load(server, plan.scale)?;
        }
        if with_tpcc {
            tpcc::load(server)?;
        }
        if with_loads {
            pgbench::prepare_loads(server)?;
        }
    }
    let mut outcomes = Vec::new();
    for cell in cells {
        let outcome = measure_cell(plan, cell, postgres, trellis)
            .with_context(|| format!("cell {}", cell.name))?;
        println!("{}", report::line(&outcome));
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// One short run each that does not count, then the rounds.
fn measure_cell(
    plan: &Plan,
    cell: &'static Cell,
    postgres: &Server,
    trellis: &Server,
) -> Result<Outcome> {
    let mut outcome = Outcome::new(cell);
    let (rounds, seconds) = match cell.work {
        Work::Pgbench { .. } | Work::Load(_) => (plan.rounds, plan.seconds),
        Work::Tpcc => (plan.tpcc_rounds, plan.tpcc_seconds),
    };
    cells::sample(cell, postgres, seconds.div_ceil(5))?;
    cells::sample(cell, trellis, seconds.div_ceil(5))?;
    for _ in 0..rounds {
        outcome
            .postgres
            .push(cells::sample(cell, postgres, seconds)?);
        outcome.trellis.push(cells::sample(cell, trellis, seconds)?);
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Plan> {
        Plan::parse(&args.iter().map(|arg| arg.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn flags_make_a_plan() {
        let plan = parse(&["postgres"]).unwrap();
        assert_eq!((plan.scale, plan.rounds, plan.strict), (50, 5, true));
        let plan = parse(&["postgres", "--only", "tpcb", "--quick", "--rounds", "3"]).unwrap();
        assert_eq!((plan.scale, plan.rounds, plan.strict), (5, 3, false));
        assert!(plan.wants("tpcb 4") && !plan.wants("select"));
        for wrong in [
            &["mysql"][..],
            &["postgres", "--rounds"],
            &["postgres", "--x"],
            &[],
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
