//! `cargo xtask memory`: a node in a control group that has as much memory as the node's limit.
//!
//! Statements that need too much are sent to it, one after the other: each must end with 53200 or
//! do its work, and the node must live. Then it is ended with SIGKILL and must recover within the
//! same group. The system itself judges: it ends a process that takes more than the group has.
//! Where no group can be made, the peak of the process is compared with the limit instead.

use crate::servers::{Folder, Trellis, client, free_ports};
use crate::{install, shell};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Memory of the node and of its group.
const LIMIT_MIB: u64 = 512;
const DATABASE: &str = "full";
/// What is freed goes back to the system within this time.
const PAUSE: Duration = Duration::from_millis(700);
/// Of statements that have a limit of their own.
const STATEMENT_MIB: u64 = 100;

/// How a step ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// Every statement does its work.
    Well,
    /// One of them is refused with 53200.
    Full,
}

/// Statements of one session, and how they end.
type Step = (&'static [&'static str], End);

/// Queries that hold more than [`STATEMENT_MIB`] allows.
const QUERIES: &[&str] = &[
    "SELECT g FROM generate_series(1, 20000000) g ORDER BY g DESC OFFSET 19999999",
    "SELECT repeat('x', 1000) || g FROM generate_series(1, 20000000) g ORDER BY 1 DESC",
    "SELECT array_length(array_agg(g), 1) FROM generate_series(1, 50000000) g",
    "SELECT array_length(array_agg(g ORDER BY -g), 1) FROM generate_series(1, 50000000) g",
    "SELECT count(DISTINCT g) FROM generate_series(1, 20000000) g",
    "SELECT DISTINCT g FROM generate_series(1, 20000000) g",
    "SELECT g, count(*) FROM generate_series(1, 20000000) g GROUP BY g",
    "SELECT count(*) FROM generate_series(1, 5000000) a(i) JOIN generate_series(1, 5000000) b(j) \
     ON i = j",
    "SELECT count(*) FROM generate_series(1, 5) a(i) WHERE i IN \
     (SELECT g FROM generate_series(1, 9000000) g)",
];

/// What the node is asked for without a limit of its own, in this order.
const STEPS: &[Step] = &[
    (
        &["SELECT g FROM generate_series(1, 20000000) g ORDER BY g DESC OFFSET 19999999"],
        End::Full,
    ),
    (
        &["SELECT count(DISTINCT g) FROM generate_series(1, 20000000) g"],
        End::Full,
    ),
    (
        &["SELECT array_length(array_agg(g), 1) FROM generate_series(1, 50000000) g"],
        End::Full,
    ),
    // Narrow rows: what a transaction holds of each is several times its size.
    (&["CREATE TABLE t (id int PRIMARY KEY, v int)"], End::Well),
    (
        &["INSERT INTO t SELECT g, g FROM generate_series(1, 20000000) g"],
        End::Full,
    ),
    (
        &["INSERT INTO t SELECT g, g FROM generate_series(1, 1000000) g"],
        End::Well,
    ),
    (&["BEGIN", "UPDATE t SET v = v + 1", "COMMIT"], End::Full),
    (
        &["BEGIN", "SELECT id FROM t FOR UPDATE", "COMMIT"],
        End::Well,
    ),
    (&["DELETE FROM t"], End::Full),
    (&["DELETE FROM t WHERE id < 200000"], End::Well),
    (
        &[
            "INSERT INTO t SELECT g, g FROM generate_series(1000001, 1500000) g",
            "INSERT INTO t SELECT g, g FROM generate_series(1500001, 2000000) g",
            "INSERT INTO t SELECT g, g FROM generate_series(2000001, 2500000) g",
            "INSERT INTO t SELECT g, g FROM generate_series(2500001, 3000000) g",
            "INSERT INTO t SELECT g, g FROM generate_series(3000001, 3500000) g",
        ],
        End::Well,
    ),
    (&["SELECT count(*), sum(v) FROM t"], End::Well),
    (
        &["BEGIN", "SELECT id FROM t FOR UPDATE", "COMMIT"],
        End::Full,
    ),
    (&["DROP TABLE t"], End::Well),
    // Wide rows: what is journaled, installed and recovered is most of it.
    (&["CREATE TABLE b (id int PRIMARY KEY, x text)"], End::Well),
    (
        &["INSERT INTO b SELECT g, repeat('x', 1000) FROM generate_series(1, 1000000) g"],
        End::Full,
    ),
    (
        &[
            "BEGIN",
            "INSERT INTO b SELECT g, repeat('x', 1000) FROM generate_series(1, 150000) g",
            "COMMIT",
        ],
        End::Well,
    ),
    (&["BEGIN", "UPDATE b SET x = x || 'y'", "COMMIT"], End::Full),
    (
        &["SELECT count(*) FROM (SELECT x FROM b ORDER BY x DESC OFFSET 1) s"],
        End::Well,
    ),
];

/// Runs the command, and is the step of CI. Answers the number of steps that ended as they must.
pub(crate) fn run_all() -> Result<usize> {
    install::postgres()?;
    let mut passed = 0;
    // With one shard, leap moves nothing: where a row is away is remembered by its home, even if
    // the transaction that asked for it is rolled back.
    for (protocol, shards) in [("two_phase", "2"), ("leap", "1")] {
        passed += run(protocol, shards).with_context(|| format!("protocol {protocol}"))?;
    }
    Ok(passed + terminals()?)
}

/// The client of the benchmark: the 10,000 terminals of 1,000 warehouses, which key and think, over
/// at most 200 connections. Two bounds.
fn terminals() -> Result<usize> {
    let folder = Folder::new("terminals")?;
    let json = folder.path().join("calibrated.json");
    let mut client = Command::new(Trellis::program()?);
    client.args(["bench", "calibrate", "--warehouses", "1000", "--keying"]);
    client
        .args(["--warmup", "3", "--seconds", "7", "--json"])
        .arg(&json);
    shell::output(&mut client)?;
    let text = std::fs::read_to_string(&json).context("the client wrote no JSON")?;
    let value: Value = serde_json::from_str(&text).context("not JSON")?;
    let client = &value["client"];
    let kib = client["peak_kib"].as_u64().context("no peak")?;
    let shares = client["thread_shares"].as_array().context("no shares")?;
    let cores: f64 = shares.iter().filter_map(Value::as_f64).sum();
    let committed = value["committed"].as_u64().context("no commits")?;
    println!("10,000 terminals: {kib} KiB, {cores:.2} cores, {committed} transactions");
    ensure!(committed > 1_000, "the terminals did too little");
    ensure!(
        kib <= 35 << 10,
        "the client of 10,000 terminals takes {kib} KiB"
    );
    ensure!(
        cores <= 0.5,
        "the client of 10,000 terminals takes {cores:.2} cores"
    );
    Ok(2)
}

fn run(protocol: &str, shards: &str) -> Result<usize> {
    let program = Trellis::program()?;
    let folder = Folder::new("memory")?;
    let port = free_ports(1, 1_000)?;
    let data = folder.path().join("data");
    let mut start = Command::new(&program);
    start.args(["start", "--nodes", "1", "--shards", shards]);
    start.arg("--port").arg(port.to_string());
    start.arg("--data").arg(&data);
    let mut empty = Trellis::launch(Folder::new("memory-begin")?, &mut start, vec![port])?;
    let create = format!("CREATE DATABASE {DATABASE} WITH (protocol = '{protocol}')");
    shell::output(client("psql", port, "postgres").args(["-X", "-q", "-c", &create]))?;
    empty.stop()?;

    let group = Group::make(&format!("trellis-{port}"));
    match &group {
        Ok(group) => println!("control group {}", group.0.display()),
        Err(error) => println!("no control group ({error:#}): peaks are compared"),
    }
    let group = group.ok();
    let mut node = Node::start(&program, &data, port, group.as_ref())?;
    let mut passed = node.queries()?;
    for (statements, end) in STEPS {
        node.step(statements, *end)?;
        passed += 1;
    }
    node.kill()?;
    let node = Node::start(&program, &data, port, group.as_ref())?;
    let count = node.ask(&["SELECT count(*), sum(length(x)) FROM b"])?;
    ensure!(
        count.trim() == "150000|150000000",
        "after recovery: {count}"
    );
    let peak = node.peak_mib()?;
    println!("{protocol}: recovered with a peak of {peak} MiB");
    ensure!(peak <= LIMIT_MIB, "recovery took {peak} MiB");
    Ok(passed + 1)
}

/// A control group of our own, removed when dropped.
struct Group(PathBuf);

impl Group {
    /// Makes a group with the limit, of version 1 or 2.
    fn make(name: &str) -> Result<Group> {
        let first = Path::new("/sys/fs/cgroup/memory");
        let (root, limits) = match first.is_dir() {
            true => (first, "memory.limit_in_bytes memory.memsw.limit_in_bytes"),
            false => (Path::new("/sys/fs/cgroup"), "memory.max memory.swap.max"),
        };
        let group = Group(root.join(name));
        std::fs::create_dir(&group.0).with_context(|| format!("{}", group.0.display()))?;
        let mut limits = limits.split(' ');
        let file = group.0.join(limits.next().context("there are two")?);
        std::fs::write(&file, format!("{}", LIMIT_MIB << 20))
            .with_context(|| format!("{}", file.display()))?;
        // Without swap; where the system has none, there is no such file.
        let swap = group.0.join(limits.next().context("there are two")?);
        let most = if first.is_dir() { LIMIT_MIB << 20 } else { 0 };
        if swap.exists() {
            std::fs::write(&swap, format!("{most}"))?;
        }
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The system may still be at the end of the last process.
        for _ in 0..50 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        println!("{} is left over", self.0.display());
    }
}

/// A node in the group.
struct Node {
    server: Trellis,
    port: u16,
    process: u32,
}

impl Node {
    fn start(program: &Path, data: &Path, port: u16, group: Option<&Group>) -> Result<Node> {
        // The shell enters the group and becomes the node.
        let mut command = Command::new("sh");
        let enter = match group {
            Some(group) => format!("echo $$ > {}/cgroup.procs && ", group.0.display()),
            None => String::new(),
        };
        command.arg("-c").arg(format!(
            "{enter}exec {} start --node 1 --memory {LIMIT_MIB}MB --cluster {}",
            program.display(),
            data.join("cluster.toml").display()
        ));
        let server = Trellis::launch(Folder::new("memory-node")?, &mut command, vec![port])?;
        let process = server.process().context("the server is gone")?;
        Ok(Node {
            server,
            port,
            process,
        })
    }

    /// Runs statements in one session; their output.
    fn ask(&self, statements: &[&str]) -> Result<String> {
        let mut psql = client("psql", self.port, DATABASE);
        psql.args(["-X", "-q", "-A", "-t", "-v", "VERBOSITY=sqlstate"]);
        psql.args(["-v", "ON_ERROR_STOP=1"]);
        for statement in statements {
            psql.arg("-c").arg(statement);
        }
        shell::output(&mut psql)
    }

    fn step(&self, statements: &[&str], end: End) -> Result<()> {
        let begin = Instant::now();
        let told = self.ask(statements);
        let last = statements.iter().max_by_key(|statement| statement.len());
        let last = last.map_or("", |statement| statement);
        let peak = self.peak_mib()?;
        println!(
            "{:>6.1} s {peak:>5} MiB  {last}",
            begin.elapsed().as_secs_f64()
        );
        let found = match &told {
            Ok(_) => End::Well,
            Err(error) if format!("{error:#}").contains("53200") => End::Full,
            Err(error) => anyhow::bail!("{last}: {error:#}"),
        };
        ensure!(found == end, "{last}: ended {found:?}, not {end:?}");
        ensure!(peak <= LIMIT_MIB, "{last}: a peak of {peak} MiB");
        std::thread::sleep(PAUSE);
        Ok(())
    }

    /// Runs the queries with a limit of their own. (What they hold is at most a quarter above it:
    /// `pure/node/tests/statement_memory.rs` counts bytes.)
    fn queries(&self) -> Result<usize> {
        let limit = format!("SET statement_memory = '{STATEMENT_MIB}MB'");
        for query in QUERIES {
            self.step(&[&limit, query], End::Full)?;
        }
        Ok(QUERIES.len())
    }

    /// Memory that the system has counted for the node, at most so far.
    fn peak_mib(&self) -> Result<u64> {
        let file = format!("/proc/{}/status", self.process);
        let status = std::fs::read_to_string(&file).with_context(|| {
            format!(
                "the node has died; its log ends with:\n{}",
                self.server.log_text()
            )
        })?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let kilobytes = kilobytes.with_context(|| format!("{file} has no VmHWM"))?;
        Ok(kilobytes.parse::<u64>()? >> 10)
    }

    fn kill(&mut self) -> Result<()> {
        shell::run(Command::new("kill").args(["-9", &self.process.to_string()]))?;
        // It is gone when its parent has heard of it.
        self.server.stop().ok();
        Ok(())
    }
}
