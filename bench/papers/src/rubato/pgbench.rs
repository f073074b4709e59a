//! pgbench's own transaction on a real cluster: one hot row of branches and ten of tellers.

use super::SYSTEMS;
use crate::cluster::{Cluster, NODES};
use crate::figure::Figure;
use crate::repetition::Lab;
use anyhow::{Context, Result, bail, ensure};
use links::answers::Answers;
use local_cluster::connect;
use runtime::NodeEntry;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Clients of all nodes together.
const CLIENTS: u16 = 16;
/// What a run may take beyond its length before its processes are ended.
const GRACE: Duration = Duration::from_secs(60);
/// Tries at a load.
const LOADS_MAX: u32 = 5;
const MODES: [&str; 2] = ["simple", "prepared"];
const LEVELS: [&str; 2] = ["serializable", "read committed"];

fn seconds(quick: bool) -> u64 {
    if quick { 3 } else { 60 }
}

/// Seconds that all of it takes, about; none where there is no pgbench.
pub(super) fn about_s(quick: bool) -> f64 {
    let runs = MODES.len() * LEVELS.len() * SYSTEMS.len();
    match find() {
        Some(_) => (runs as u64 * (seconds(quick) + 2)) as f64,
        None => 0.0,
    }
}

fn find() -> Option<PathBuf> {
    servers::find("pgbench")
}

/// What one run gave.
struct Ran {
    done: u64,
    failed: u64,
    per_s: f64,
    /// Whether balances agree with the history, and the history with what was acknowledged.
    agrees: bool,
}

impl Ran {
    fn failed_percent(&self) -> f64 {
        100.0 * self.failed as f64 / (self.done + self.failed).max(1) as f64
    }
}

/// The built-in script at scale 1, by system, way to send statements and isolation level.
pub(super) fn pgbench(lab: &mut Lab) -> Result<Figure> {
    let length = seconds(lab.quick);
    let place = format!(
        "{NODES} real nodes of one shard on loopback, no proxy; tpcb-like at scale 1, {CLIENTS} \
         clients dealt to the nodes, {length} s, a transaction that fails is not repeated by \
         pgbench"
    );
    let mut figure = Figure::new("pgbench", "pgbench (beyond the paper): tpcb-like", place);
    let Some(program) = find() else {
        let why = "pgbench is not installed".to_owned();
        for number in ["4a", "4b", "4c"] {
            lab.expectations.cannot(number, &why);
        }
        figure.text.push(format!("Not measured: {why}."));
        return Ok(figure);
    };
    figure.columns(&[
        "isolation",
        "statements",
        "system",
        "tx/s",
        "failed",
        "sums",
    ]);
    let cluster = Cluster::start(Duration::ZERO)?;
    for system in SYSTEMS {
        let database = database(system.name());
        cluster.create_database(&database, system)?;
        load(&mut figure, &program, &cluster.nodes()[0], &database)?;
    }
    let mut all = Vec::new();
    for level in LEVELS {
        for mode in MODES {
            let mut by_system = Vec::new();
            for system in SYSTEMS {
                let database = database(system.name());
                let ran = run(&program, &cluster, &database, (mode, level), length)?;
                lab.clock.besides_done((length + 2) as f64);
                let line = format!(
                    "pgbench: {}, {level}, {mode}: {:.0} tx/s",
                    system.name(),
                    ran.per_s
                );
                lab.clock.say(&line)?;
                figure.rows.push(vec![
                    level.to_owned(),
                    mode.to_owned(),
                    system.name().to_owned(),
                    format!("{:.0}", ran.per_s),
                    format!("{:.2} %", ran.failed_percent()),
                    if ran.agrees { "agree" } else { "DISAGREE" }.to_owned(),
                ]);
                by_system.push(ran);
            }
            all.push((format!("{level}, {mode}"), by_system));
        }
    }
    cluster.stop()?;
    judge(lab, &all);
    Ok(figure)
}

/// Loads scale 1. A load is one transaction, which a conflict may end like any other; the figure
/// says how often one did.
fn load(figure: &mut Figure, program: &Path, node: &NodeEntry, database: &str) -> Result<()> {
    let mut tries = 1;
    loop {
        let mut init = client(program, node, database);
        init.args(["-i", "-q", "-s", "1"]);
        let Err(error) = output(init, GRACE) else {
            return Ok(());
        };
        let is_conflict = error.to_string().contains("could not serialize access");
        if !is_conflict || tries == LOADS_MAX {
            return Err(error.context(format!("loading {database}, try {tries}")));
        }
        figure.text.push(format!(
            "Loading {database}, try {tries}, failed: {error:#}"
        ));
        tries += 1;
    }
}

/// Expectation 4: runs by kind and system.
fn judge(lab: &mut Lab, all: &[(String, Vec<Ran>)]) {
    let mut each = all.iter().flat_map(|(_, by_system)| by_system);
    let agree = each.all(|ran| ran.agrees);
    let text = if agree {
        "they agree"
    } else {
        "they do not agree"
    };
    lab.expectations.judge("4a", text.to_owned(), agree);
    let list = |value: &dyn Fn(&[Ran]) -> String| -> String {
        let each = all
            .iter()
            .map(|(kind, ran)| format!("{kind}: {}", value(ran)));
        each.collect::<Vec<_>>().join("; ")
    };
    let failed = |ran: &[Ran]| format!("{:.2} %", ran[0].failed_percent());
    let few = all.iter().all(|(_, ran)| ran[0].failed_percent() < 1.0);
    lab.expectations.judge("4b", list(&failed), few);
    let over = |ran: &[Ran]| ran[0].per_s / ran[1].per_s.max(1.0);
    let text = |ran: &[Ran]| format!("{:.2} times two_phase", over(ran));
    let fast = all.iter().all(|(_, ran)| over(ran) >= 1.0);
    lab.expectations.judge("4c", list(&text), fast);
}

fn database(system: &str) -> String {
    format!("pgbench_{}", system.replace(' ', "_"))
}

/// One run by way of all nodes at once, and the sums after it.
fn run(
    program: &Path,
    cluster: &Cluster,
    database: &str,
    (mode, level): (&str, &str),
    length: u64,
) -> Result<Ran> {
    let history = history(&cluster.nodes()[0], database)?;
    let nodes = cluster.nodes();
    let threads = std::thread::scope(|scope| {
        let mut running = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            let clients = (usize::from(CLIENTS) + nodes.len() - 1 - at) / nodes.len();
            let mut command = client(program, node, database);
            let level = level.replace(' ', "\\ ");
            command.env(
                "PGOPTIONS",
                format!("-c default_transaction_isolation={level}"),
            );
            command.args(["-n", "-b", "tpcb-like", "-M", mode]);
            command.args(["-c", &clients.to_string(), "-T", &length.to_string()]);
            let limit = Duration::from_secs(length) + GRACE;
            running.push(scope.spawn(move || output(command, limit)));
        }
        let ended = running
            .into_iter()
            .map(|one| one.join().expect("nothing panics there"));
        ended.collect::<Result<Vec<String>>>()
    })?;
    let mut ran = Ran {
        done: 0,
        failed: 0,
        per_s: 0.0,
        agrees: false,
    };
    for text in &threads {
        let (done, failed) =
            read(text).with_context(|| format!("pgbench wrote something unexpected\n{text}"))?;
        ran.done += done;
        ran.failed += failed;
    }
    ran.per_s = ran.done as f64 / length as f64;
    let grown = self::history(&cluster.nodes()[0], database)? - history;
    ran.agrees = grown == ran.done as i64 && sums_agree(&cluster.nodes()[0], database)?;
    Ok(ran)
}

/// Transactions processed and failed, out of pgbench's report.
fn read(text: &str) -> Option<(u64, u64)> {
    let after = |start: &str| -> Option<u64> {
        let rest = text.lines().find_map(|line| line.strip_prefix(start))?;
        let mut words = rest.split([' ', '/']).filter(|word| !word.is_empty());
        words.next()?.parse().ok()
    };
    Some((
        after("number of transactions actually processed:")?,
        after("number of failed transactions:")?,
    ))
}

/// A client of one node, whose environment does not count.
fn client(program: &Path, node: &NodeEntry, database: &str) -> Command {
    let mut command = Command::new(program);
    command
        .env("PGHOST", node.sql.ip().to_string())
        .env("PGPORT", node.sql.port().to_string())
        .env("PGUSER", "trellis")
        .env("PGDATABASE", database)
        .env("PGCONNECT_TIMEOUT", "10")
        .env("LC_ALL", "C.UTF-8")
        .env_remove("PGOPTIONS");
    command
}

/// What a program writes; it is ended after `limit`.
fn output(mut command: Command, limit: Duration) -> Result<String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // Its report is short: a pipe holds it until the program has ended.
    let began = Instant::now();
    while child.try_wait()?.is_none() {
        if began.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            bail!("it has not ended within {} s", limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{text}\n{errors}");
    Ok(text)
}

fn ask(node: &NodeEntry, database: &str, sql: &str) -> Result<Answers> {
    let mut link = connect(node, database)?;
    let mut answers = Answers::new();
    link.query(sql, &mut answers)?;
    link.close();
    Ok(answers)
}

fn history(node: &NodeEntry, database: &str) -> Result<i64> {
    let answers = ask(node, database, "SELECT count(*) FROM pgbench_history")?;
    answers.int(0, 0, 0).context("a count is a number")
}

/// Whether accounts, tellers, branches and the history have the same sum.
fn sums_agree(node: &NodeEntry, database: &str) -> Result<bool> {
    let sql = "SELECT (SELECT sum(abalance) FROM pgbench_accounts), \
               (SELECT sum(tbalance) FROM pgbench_tellers), \
               (SELECT sum(bbalance) FROM pgbench_branches), \
               (SELECT coalesce(sum(delta), 0) FROM pgbench_history)";
    let answers = ask(node, database, sql)?;
    let sums: Option<Vec<i64>> = (0..4).map(|column| answers.int(0, 0, column)).collect();
    let sums = sums.context("sums are numbers")?;
    Ok(sums.iter().all(|sum| *sum == sums[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_pgbench_is_read() {
        let text = "number of clients: 6\nnumber of transactions actually processed: 4711\n\
                    number of failed transactions: 12 (0.254%)\ntps = 78.5\n";
        assert_eq!(read(text), Some((4_711, 12)));
        assert_eq!(read("pgbench: error"), None);
    }

    #[test]
    fn shares_of_failed_transactions_are_of_all() {
        let ran = Ran {
            done: 97,
            failed: 3,
            per_s: 1.0,
            agrees: true,
        };
        assert_eq!(ran.failed_percent(), 3.0);
    }
}
