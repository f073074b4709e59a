//! pgbench: initialisation and one measured run.

use super::cells::{Cell, LoadPart, Sample};
use crate::servers::Server;
use crate::{repo, shell};
use anyhow::{Context, Result, ensure};
use std::time::Duration;

const DATABASE: &str = "pgbench";
/// Longest time for loading, and what a run may take beyond its length.
const LOAD_LIMIT: Duration = Duration::from_secs(600);
const RUN_GRACE: Duration = Duration::from_secs(60);
/// How often a transaction is tried again before it counts as failed.
const TRIES_MAX: &str = "1000";

/// Loads both sides in the same way, by pgbench itself.
pub(super) fn load(server: &Server, scale: u32) -> Result<()> {
    server.create_database(DATABASE)?;
    let mut command = server.client("pgbench", 0, DATABASE);
    command.args(["-i", "-q", "-s", &scale.to_string()]);
    let log = repo::cache_dir()?.join("pgbench.log");
    let text = shell::run_logged(&mut command, &log, LOAD_LIMIT)?;
    println!("{}: {}", server.name(), text.lines().last().unwrap_or(""));
    if matches!(server, Server::Postgres(_)) {
        let mut command = server.client("psql", 0, DATABASE);
        shell::output(command.args(["-X", "-q", "-c", "CHECKPOINT"]))?;
    }
    Ok(())
}

/// Rows of a load: scale 10.
const LOAD_SCALE: u32 = 10;
const LOAD_ROWS: f64 = 1e6;
/// Loads leave the tables of the other cells alone.
const LOAD_DATABASE: &str = "load";

/// What loads need.
pub(super) fn prepare_loads(server: &Server) -> Result<()> {
    server.create_database(LOAD_DATABASE)
}

/// Loads once and measures a part of it.
pub(super) fn sample_load(part: LoadPart, server: &Server) -> Result<Sample> {
    let (steps, measured) = match part {
        LoadPart::Rows => ("dtg", "client-side generate"),
        LoadPart::Keys => ("dtgp", "primary keys"),
    };
    let mut command = server.client("pgbench", 0, LOAD_DATABASE);
    command.args(["-i", "-q", "-s", &LOAD_SCALE.to_string(), "-I", steps]);
    let log = repo::cache_dir()?.join("pgbench.log");
    let text = shell::run_logged(&mut command, &log, LOAD_LIMIT)?;
    let seconds = seconds_of(&text, measured)
        .with_context(|| format!("pgbench wrote something unexpected\n{text}"))?;
    Ok(Sample {
        rate: LOAD_ROWS / seconds,
        ..Sample::default()
    })
}

/// The time of a step in pgbench's last line.
fn seconds_of(text: &str, step: &str) -> Option<f64> {
    let line = text
        .lines()
        .rev()
        .find(|line| line.starts_with("done in"))?;
    let rest = line.split_once(step)?.1;
    rest.split_whitespace().next()?.parse().ok()
}

/// Runs a built-in script with prepared statements.
pub(super) fn sample(
    cell: &Cell,
    script: &str,
    synchronous_commit: bool,
    server: &Server,
    seconds: u32,
) -> Result<Sample> {
    let mut command = server.client("pgbench", 0, DATABASE);
    command.env("PGOPTIONS", options(cell.isolation, synchronous_commit));
    command.args([
        "-n",
        "-M",
        "prepared",
        "-b",
        script,
        "-j",
        "2",
        "--max-tries",
        TRIES_MAX,
    ]);
    command.args(["-c", &cell.clients.to_string(), "-T", &seconds.to_string()]);
    let log = repo::cache_dir()?.join("pgbench.log");
    let limit = Duration::from_secs(u64::from(seconds)) + RUN_GRACE;
    let text = shell::run_logged(&mut command, &log, limit)?;
    ensure!(
        !text.contains("aborted"),
        "a client of {} gave up\n{text}",
        server.name()
    );
    parse(&text).with_context(|| format!("pgbench wrote something unexpected\n{text}"))
}

/// Settings of the session, with blanks escaped as libpq wants them.
fn options(isolation: &str, synchronous_commit: bool) -> String {
    let isolation = isolation.replace(' ', "\\ ");
    let mut options = format!("-c default_transaction_isolation={isolation}");
    if !synchronous_commit {
        options.push_str(" -c synchronous_commit=off");
    }
    options
}

fn parse(text: &str) -> Option<Sample> {
    let after = |start: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(start))?;
        rest.split([' ', '/'])
            .find(|word| !word.is_empty())?
            .parse::<f64>()
            .ok()
    };
    let done = after("number of transactions actually processed:")?;
    let failed = after("number of failed transactions:")?;
    let retried = after("number of transactions retried:").unwrap_or(0.0);
    let all = (done + failed).max(1.0);
    Some(Sample {
        rate: after("tps =")?,
        latency_ms: after("latency average =")?,
        failed_share: failed / all,
        retried_share: retried / all,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_pgbench_is_read() {
        let text = "\
pgbench (15.18 (Debian 15.18-0+deb12u1))
transaction type: <builtin: TPC-B (sort of)>
maximum number of tries: 1000
number of transactions actually processed: 300
number of failed transactions: 100 (25.000%)
number of transactions retried: 40 (10.000%)
total number of retries: 55
latency average = 0.456 ms
initial connection time = 4.213 ms
tps = 8765.432100 (without initial connection time)
";
        let sample = parse(text).unwrap();
        assert_eq!((sample.rate, sample.latency_ms), (8765.4321, 0.456));
        assert_eq!((sample.failed_share, sample.retried_share), (0.25, 0.1));
        assert!(parse("pgbench: error: connection refused").is_none());
    }

    #[test]
    fn the_steps_of_a_load_are_told_apart() {
        let text = "creating primary keys...\n\
            done in 1.92 s (drop tables 0.01 s, create tables 0.02 s, \
            client-side generate 1.31 s, primary keys 0.58 s).\n";
        assert_eq!(seconds_of(text, "client-side generate"), Some(1.31));
        assert_eq!(seconds_of(text, "primary keys"), Some(0.58));
        assert_eq!(seconds_of(text, "vacuum"), None);
    }

    #[test]
    fn settings_travel_with_the_connection() {
        let all = options("read committed", false);
        let expected =
            "-c default_transaction_isolation=read\\ committed -c synchronous_commit=off";
        assert_eq!(all, expected);
        assert_eq!(
            options("serializable", true),
            "-c default_transaction_isolation=serializable"
        );
    }
}
