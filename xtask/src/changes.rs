//! `cargo xtask changes`: what a schema change of a large table costs the clients that go on using
//! it, on Trellis under each protocol and on PostgreSQL 15.
//!
//! pgbench sends single updates and reads by key at a fixed rate. Their p99 while nothing else
//! happens is compared with that while a column with a default, an index or a constraint comes.

use crate::beside::{self, psql};
use crate::servers::{Folder, Server};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the load does between two changes.
const QUIET: Duration = Duration::from_secs(8);
/// Rows that one INSERT adds.
const BATCH: u64 = 100_000;
/// A change's p99 is judged from so many statements on.
const ENOUGH: usize = 200;

const CHANGES: &[(&str, &str)] = &[
    (
        "column",
        "ALTER TABLE big ADD COLUMN c int NOT NULL DEFAULT 7",
    ),
    ("index", "CREATE INDEX big_v ON big (v)"),
    (
        "check",
        "ALTER TABLE big ADD CONSTRAINT big_positive CHECK (v >= 0)",
    ),
    ("unique", "ALTER TABLE big ADD CONSTRAINT big_u UNIQUE (u)"),
];

const PROTOCOLS: &[&str] = &["leap", "two_phase", "formula"];

const USAGE: &str = "usage: cargo xtask changes [--rows N] [--rate N] [--nodes N] \
                     [--protocol NAME] [--program FILE]";

struct Options {
    rows: u64,
    /// Transactions a second.
    rate: u32,
    nodes: u16,
    protocols: Vec<String>,
    program: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn main(args: &[String]) -> Result<()> {
    let options = options(args)?;
    let [trellis, postgres] = beside::start(options.program.as_deref(), options.nodes)?;
    println!(
        "{} rows, {} transactions a second, {} nodes; milliseconds",
        options.rows, options.rate, options.nodes
    );
    println!(
        "server      change     took  statements     p99    longest  p99 before  ratio  failed"
    );
    let mut doubled = Vec::new();
    for protocol in &options.protocols {
        let create = format!("CREATE DATABASE {protocol} WITH (protocol = '{protocol}')");
        psql(&trellis, "postgres", &[&create])?;
        for change in run(&trellis, protocol, &options)? {
            if change.print(protocol) {
                doubled.push(format!("{} under {protocol}", change.name));
            }
        }
    }
    psql(&postgres, "postgres", &["CREATE DATABASE plain"])?;
    for change in run(&postgres, "plain", &options)? {
        change.print("postgres");
    }
    ensure!(
        doubled.is_empty(),
        "p99 more than doubled: {}",
        doubled.join(", ")
    );
    Ok(())
}

fn options(args: &[String]) -> Result<Options> {
    let mut options = Options {
        rows: 1_000_000,
        rate: 500,
        nodes: 1,
        protocols: Vec::new(),
        program: None,
    };
    let mut rest = args.iter();
    while let Some(flag) = rest.next() {
        let value = rest.next().context(USAGE)?;
        match flag.as_str() {
            "--rows" => options.rows = value.parse().context(USAGE)?,
            "--rate" => options.rate = value.parse().context(USAGE)?,
            "--nodes" => options.nodes = value.parse().context(USAGE)?,
            "--protocol" if PROTOCOLS.contains(&value.as_str()) => {
                options.protocols.push(value.clone());
            }
            "--program" => options.program = Some(value.into()),
            _ => bail!(USAGE),
        }
    }
    ensure!(
        options.rows > 0
            && (1..=100_000).contains(&options.rate)
            && (1..=9).contains(&options.nodes),
        "--rows is from 1 on, --rate from 1 to 100,000, --nodes from 1 to 9"
    );
    if options.protocols.is_empty() {
        options.protocols = PROTOCOLS.iter().map(ToString::to_string).collect();
    }
    Ok(options)
}

/// A transaction of the load.
struct Sample {
    /// Microseconds since 1970 at its end.
    end: u64,
    /// From the time at which it was due.
    latency_us: u64,
    is_failed: bool,
}

/// What a change did to the load.
struct Change {
    name: &'static str,
    took: Duration,
    during: Vec<u64>,
    /// In the quiet seconds before it.
    before: Vec<u64>,
    failed: usize,
}

/// Fills a table of the database and changes it under load.
fn run(server: &Server, database: &str, options: &Options) -> Result<Vec<Change>> {
    load(server, database, options.rows)?;
    let folder = Folder::new("changes")?;
    let script = format!(
        "\\set id random(0, {last})\n\\set other random(0, {last})\n\
         UPDATE big SET k = k + 1 WHERE id = :id;\nSELECT v FROM big WHERE id = :other;\n",
        last = options.rows - 1
    );
    std::fs::write(folder.path().join("script.sql"), script)?;
    let mut pgbench = start_load(server, database, folder.path(), options.rate)?;
    let mut spans = Vec::new();
    let changed = CHANGES.iter().try_for_each(|(_, text)| {
        std::thread::sleep(QUIET);
        let began = now();
        psql(server, database, &[text])?;
        spans.push((began, now()));
        anyhow::Ok(())
    });
    std::thread::sleep(Duration::from_secs(1));
    stop_load(&mut pgbench)?;
    changed?;
    let samples = read_samples(folder.path())?;
    ensure!(
        !samples.is_empty(),
        "no transaction of the load ended\n{}",
        std::fs::read_to_string(folder.path().join("errors")).unwrap_or_default()
    );
    let changes = CHANGES
        .iter()
        .zip(spans)
        .map(|(&(name, _), (began, ended))| {
            let of = |from: u64, to: u64| {
                // A transaction that was under way at any time of the span.
                let met = move |sample: &&Sample| {
                    sample.end >= from && sample.end - sample.latency_us <= to
                };
                samples.iter().filter(met)
            };
            // The first second after a change belongs to neither.
            let quiet = began.saturating_sub(QUIET.as_micros() as u64 - 1_000_000);
            Change {
                name,
                took: Duration::from_micros(ended - began),
                during: of(began, ended).map(|sample| sample.latency_us).collect(),
                before: of(quiet, began - 1)
                    .filter(|sample| sample.end < began)
                    .map(|sample| sample.latency_us)
                    .collect(),
                failed: of(began, ended).filter(|sample| sample.is_failed).count(),
            }
        });
    Ok(changes.collect())
}

fn load(server: &Server, database: &str, rows: u64) -> Result<()> {
    let table = "CREATE TABLE big (id int PRIMARY KEY, k int, v int, u int)";
    psql(server, database, &[table])?;
    for start in (0..rows).step_by(BATCH as usize) {
        let end = (start + BATCH).min(rows);
        let insert = format!(
            "INSERT INTO big SELECT g, 0, g % 1000, g FROM generate_series({start}, {end} - 1) g"
        );
        psql(server, database, &[&insert])?;
    }
    psql(server, database, &["ANALYZE"])?;
    Ok(())
}

/// Starts pgbench, which writes each transaction into files of `folder`.
fn start_load(server: &Server, database: &str, folder: &Path, rate: u32) -> Result<Child> {
    let mut pgbench = server.client("pgbench", 0, database);
    pgbench.args(["-n", "-c", "8", "-j", "1", "-T", "600", "-M", "prepared"]);
    pgbench.args(["--max-tries", "100", "--failures-detailed", "--log"]);
    pgbench.args(["-R", &rate.to_string(), "-f", "script.sql"]);
    let errors = std::fs::File::create(folder.join("errors"))?;
    pgbench.current_dir(folder).stdin(Stdio::null());
    pgbench.stdout(Stdio::null()).stderr(errors);
    pgbench.spawn().context("cannot start pgbench")
}

/// Ends pgbench. It must run still: it ends early when all of its clients have failed.
fn stop_load(pgbench: &mut Child) -> Result<()> {
    let early = pgbench.try_wait()?;
    if early.is_none() {
        // SIGINT has it write what it holds back.
        let id = pgbench.id().to_string();
        crate::shell::run(Command::new("kill").args(["-INT", &id]))?;
        if crate::shell::wait(pgbench, Duration::from_secs(10))?.is_none() {
            bail!("pgbench did not end");
        }
    }
    ensure!(early.is_none(), "pgbench ended before the changes did");
    Ok(())
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}

/// All transactions that pgbench has written down.
fn read_samples(folder: &Path) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name.starts_with("pgbench_log.") {
            let text = std::fs::read_to_string(&path)?;
            samples.extend(text.lines().filter_map(sample));
        }
    }
    Ok(samples)
}

/// `client transaction latency script seconds microseconds lag retries`; the latency of a
/// transaction that failed is a word.
fn sample(line: &str) -> Option<Sample> {
    let mut fields = line.split(' ');
    let latency = fields.nth(2)?;
    let seconds: u64 = fields.nth(1)?.parse().ok()?;
    let micros: u64 = fields.next()?.parse().ok()?;
    Some(Sample {
        end: seconds * 1_000_000 + micros,
        latency_us: latency.parse().unwrap_or(0),
        is_failed: latency.parse::<u64>().is_err(),
    })
}

impl Change {
    /// Prints a line; whether its p99 is over twice that before.
    fn print(&self, server: &str) -> bool {
        let (during, before) = (quantile(&self.during, 0.99), quantile(&self.before, 0.99));
        let ratio = during / before;
        let longest = self.during.iter().max().copied().unwrap_or(0) as f64 / 1e3;
        println!(
            "{server:<11} {:<7} {:>7.0} {:>11} {during:>7.2} {longest:>10.2} {before:>11.2} \
             {ratio:>6.2} {:>7}",
            self.name,
            self.took.as_secs_f64() * 1e3,
            self.during.len(),
            self.failed,
        );
        self.during.len() >= ENOUGH && ratio > 2.0
    }
}

/// In milliseconds; 0 of no values.
fn quantile(values: &[u64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let at = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied().unwrap_or(0) as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_is_read() {
        let read = sample("3 17 1234 0 1700000000 250000 12 0").expect("a transaction");
        assert_eq!(read.end, 1_700_000_000_250_000);
        assert_eq!(read.latency_us, 1_234);
        assert!(!read.is_failed);
        let failed = sample("3 17 serialization 0 1700000000 250000 12 99").expect("a failure");
        assert!(failed.is_failed);
        assert!(sample("").is_none());
    }

    #[test]
    fn quantiles_are_of_the_sorted_values() {
        let values: Vec<u64> = (1..=200).rev().map(|value| value * 1_000).collect();
        assert!((quantile(&values, 0.99) - 198.0).abs() < 1e-9);
        assert!((quantile(&[], 0.99)).abs() < 1e-9);
    }
}
