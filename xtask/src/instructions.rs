//! `cargo xtask instructions`: what a point statement costs the server, in instructions.
//!
//! One node of one shard runs under callgrind, which counts every instruction of all threads; one
//! client of pgbench runs prepared statements, and some of them by the simple protocol as well.
//! Two runs of different length are subtracted, so that connecting, parsing and planning drop out.
//! The counts are compared with those recorded in `instructions.txt`: a few lines more per
//! statement show here long before they show on a clock. By the simple protocol a statement may
//! cost 1.3 times what it costs prepared: its plan is found by its shape (`session/shapes`).

use crate::servers::{Folder, Trellis, client, free_ports};
use crate::{install, repo, shell};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A count may lie this share above the recorded one.
const TOLERANCE: f64 = 0.01;
/// Transactions of the short run and of the long one.
const SHORT: u64 = 200;
const LONG: u64 = 1_200;
/// The median of so many pairs of runs counts.
const PAIRS: usize = 3;
const DATABASE: &str = "counted";

/// What a statement of the simple protocol may cost, as a multiple of the prepared one.
const SIMPLE_MAX: f64 = 1.3;
/// Statements that are counted by the simple protocol as well: a name, and that of the statement.
const SIMPLE: [(&str, &str); 2] = [("select_simple", "select"), ("update_simple", "update")];
/// What is counted: a name, and how pgbench is told to do it.
const STATEMENTS: [(&str, &str); 4] = [
    (
        "select",
        "\\set aid random(1, 100000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n",
    ),
    (
        "update",
        "\\set aid random(1, 100000)\n\
         UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n",
    ),
    (
        "insert",
        "\\set aid random(1, 100000)\n\
         INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) \
         VALUES (1, 1, :aid, 1, CURRENT_TIMESTAMP);\n",
    ),
    (
        "block",
        "\\set aid random(1, 100000)\nBEGIN;\n\
         UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n\
         SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\nEND;\n",
    ),
];

/// Runs the command: `--record` writes what was counted, `--program FILE` counts another build.
pub(crate) fn main(args: &[String]) -> Result<()> {
    let (mut record, mut program) = (false, None);
    let mut rest = args.iter();
    while let Some(flag) = rest.next() {
        match flag.as_str() {
            "--record" => record = true,
            "--program" => {
                let file = rest.next().context("--program needs a file")?;
                program = Some(PathBuf::from(file));
            }
            _ => bail!("usage: cargo xtask instructions [--record] [--program FILE]"),
        }
    }
    let program = program.map_or_else(Trellis::program, Ok)?;
    let counts = count(&program)?;
    if record {
        let lines = counts
            .iter()
            .map(|(name, count)| format!("{name} {count}\n"));
        return Ok(std::fs::write(records_file(), lines.collect::<String>())?);
    }
    judge(&counts).map(drop)
}

/// The step of CI. Answers the number of statements whose count is as recorded.
pub(crate) fn check() -> Result<usize> {
    judge(&count(&Trellis::program()?)?)
}

fn records_file() -> PathBuf {
    repo::root().join("xtask/instructions.txt")
}

/// Compares counts with the recorded ones, in a table.
fn judge(counts: &BTreeMap<&'static str, u64>) -> Result<usize> {
    let text = std::fs::read_to_string(records_file()).context("xtask/instructions.txt")?;
    let recorded = parse(&text)?;
    println!(
        "{:<10} {:>12} {:>12} {:>8}",
        "statement", "instructions", "recorded", "ratio"
    );
    let mut over = Vec::new();
    for (name, count) in counts {
        let before = *recorded
            .get(*name)
            .with_context(|| format!("xtask/instructions.txt: {name} is not recorded"))?;
        let ratio = *count as f64 / before as f64;
        println!("{name:<10} {count:>12} {before:>12} {ratio:>8.3}");
        if ratio > 1.0 + TOLERANCE {
            over.push(*name);
        }
    }
    for (simple, prepared) in SIMPLE {
        let ratio = counts[simple] as f64 / counts[prepared] as f64;
        println!("{simple} is {ratio:.3} of {prepared}, at most {SIMPLE_MAX}");
        ensure!(
            ratio <= SIMPLE_MAX,
            "{simple} costs {ratio:.3} of {prepared}"
        );
    }
    ensure!(
        over.is_empty(),
        "{} cost over {} % more instructions than recorded; if that is worth it, record them: \
         cargo xtask instructions --record",
        over.join(", "),
        TOLERANCE * 100.0
    );
    Ok(counts.len())
}

/// Lines `name count`.
fn parse(text: &str) -> Result<BTreeMap<&str, u64>> {
    let lines = text.lines().enumerate();
    lines
        .map(|(at, line)| {
            let entry = line.split_once(' ');
            let entry = entry.and_then(|(name, count)| Some((name, count.parse().ok()?)));
            entry.with_context(|| format!("xtask/instructions.txt:{}: {line}", at + 1))
        })
        .collect()
}

fn count(program: &Path) -> Result<BTreeMap<&'static str, u64>> {
    install::callgrind()?;
    install::postgres()?;
    let folder = Folder::new("instructions")?;
    let port = free_ports(1, 1_000)?;
    let data = folder.path().join("data");
    // The rows are loaded at full speed, by a server of its own.
    let mut start = Command::new(program);
    start.args(["start", "--nodes", "1", "--shards", "1"]);
    start.arg("--port").arg(port.to_string());
    start.arg("--data").arg(&data);
    let mut loading = Trellis::launch(Folder::new("loading")?, &mut start, vec![port])?;
    let create = format!("CREATE DATABASE {DATABASE} WITH (protocol = 'two_phase')");
    shell::output(client("psql", port, "postgres").args(["-X", "-q", "-c", &create]))?;
    let mut load = client("pgbench", port, DATABASE);
    shell::output(load.args(["-i", "-s", "1", "--quiet", "--no-vacuum"]))?;
    loading.stop()?;
    let dumps = folder.path().join("dump");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--quiet"]);
    valgrind.arg(format!("--callgrind-out-file={}", dumps.display()));
    valgrind.arg(program).args(["start", "--node", "1"]);
    valgrind.arg("--cluster").arg(data.join("cluster.toml"));
    let mut server = Trellis::launch(Folder::new("counted")?, &mut valgrind, vec![port])?;
    let mut counter = Counter {
        server: server.process().context("the server is gone")?,
        port,
        script: folder.path().join("script.sql"),
        dumps,
        taken: 0,
    };
    let mut counts = BTreeMap::new();
    for (name, script) in STATEMENTS {
        std::fs::write(&counter.script, script)?;
        counts.insert(name, counter.median("prepared")?);
        for (simple, _) in SIMPLE.iter().filter(|(_, prepared)| *prepared == name) {
            counts.insert(simple, counter.median("simple")?);
        }
    }
    server.stop()?;
    Ok(counts)
}

/// Counts what the server does while pgbench runs.
struct Counter {
    server: u32,
    port: u16,
    script: PathBuf,
    dumps: PathBuf,
    taken: usize,
}

impl Counter {
    /// Instructions of the server for one transaction of the script.
    fn median(&mut self, protocol: &str) -> Result<u64> {
        self.run(protocol, SHORT)?;
        let mut pairs = Vec::new();
        for _ in 0..PAIRS {
            let (short, long) = (self.run(protocol, SHORT)?, self.run(protocol, LONG)?);
            pairs.push(long.saturating_sub(short) / (LONG - SHORT));
        }
        pairs.sort_unstable();
        Ok(pairs[PAIRS / 2])
    }

    /// Instructions of the server while one client runs `transactions` times the script.
    fn run(&mut self, protocol: &str, transactions: u64) -> Result<u64> {
        self.control("--zero")?;
        let mut pgbench = client("pgbench", self.port, DATABASE);
        pgbench.args(["-n", "-M", protocol, "-c", "1", "--random-seed=1"]);
        pgbench
            .args(["-t", &transactions.to_string(), "-f"])
            .arg(&self.script);
        let told = shell::output(&mut pgbench)?;
        let all = format!("transactions actually processed: {transactions}/{transactions}");
        ensure!(told.contains(&all), "pgbench did not run all:\n{told}");
        self.control("--dump")?;
        self.taken += 1;
        let file = format!("{}.{}", self.dumps.display(), self.taken);
        let dump = std::fs::read_to_string(&file).with_context(|| file.clone())?;
        total(&dump).with_context(|| format!("{file} has no total"))
    }

    fn control(&self, what: &str) -> Result<()> {
        let mut control = Command::new("callgrind_control");
        shell::output(control.arg(what).arg(self.server.to_string())).map(drop)
    }
}

/// The line `totals: N` of a dump.
pub(crate) fn total(dump: &str) -> Option<u64> {
    let mut lines = dump.lines();
    let line = lines.find_map(|line| line.strip_prefix("totals: "))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_and_records_are_read() {
        assert_eq!(total("events: Ir\nsummary: 7\ntotals: 8\n"), Some(8));
        assert_eq!(total("events: Ir\n"), None);
        assert_eq!(parse("select 7\nupdate 9\n").unwrap()["update"], 9);
        assert!(parse("select\n").is_err());
    }

    #[test]
    fn one_percent_more_is_too_much() {
        let text = std::fs::read_to_string(records_file()).unwrap();
        let recorded = parse(&text).unwrap();
        let counts = |more: f64| {
            let names = STATEMENTS.iter().map(|(name, _)| *name);
            names
                .chain(SIMPLE.iter().map(|(name, _)| *name))
                .map(|name| (name, (recorded[name] as f64 * more) as u64))
                .collect()
        };
        let all = STATEMENTS.len() + SIMPLE.len();
        assert_eq!(judge(&counts(1.0)).unwrap(), all);
        assert!(judge(&counts(1.02)).is_err());
    }
}
