//! Faults of a benchmark's run at a local cluster: put in, proven, undone, and what they cost.

use crate::local::Local;
use crate::support::{
    PROGRAM, READY_LIMIT, STOP_LIMIT, connect, signal, try_rows, url, wait_child, wait_until,
};
use peer::again;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A local cluster with a database.
pub(crate) fn shop(name: &str) -> Local {
    shop_with(name, &[])
}

pub(crate) fn shop_with(name: &str, options: &[&str]) -> Local {
    let local = Local::start_with(name, options);
    let mut link = local.link(1, "postgres").unwrap();
    link.command("CREATE DATABASE shop WITH (protocol = 'two_phase')")
        .unwrap();
    local
}

impl Local {
    /// `trellis bench run` of counters, with these faults.
    pub(crate) fn bench(&self, faults: &[&str], seconds: u32) -> Command {
        let mut command = Command::new(PROGRAM);
        let nodes = self.file().nodes;
        let url = url(nodes.iter().map(|node| node.sql), "shop");
        command.args(["bench", "run", "--workload", "counter", "--url", &url]);
        command.args(["--seconds", &seconds.to_string(), "--warmup", "2"]);
        for fault in faults {
            command.args(["--fault", fault]);
        }
        // A low rate is the same on a busy machine.
        command.args(["--clients", "24", "--rate", "80", "--json"]);
        command.arg(self.folder.path().join("out.json"));
        let is_here = |fault: &&str| !fault.contains("@far");
        if faults.iter().any(is_here) {
            command.arg("--target-data").arg(self.data());
        }
        // Other tests undo what they find among the temporary files.
        command.env("TMPDIR", self.folder.path());
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        let text = std::fs::read_to_string(self.folder.path().join("out.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Looks whether the run tells of so many faults, each with what `proof` says of its kind, and
    /// undone within twenty seconds.
    pub(crate) fn expect_faults(&self, count: usize, proof: impl Fn(&str) -> &'static str) {
        let json = self.json();
        let told = json["faults"].as_array().unwrap();
        assert_eq!(told.len(), count);
        for fault in told {
            let expected = proof(fault["kind"].as_str().unwrap());
            assert!(
                fault["proof"].as_str().unwrap().contains(expected),
                "{fault}"
            );
            assert!(fault["undo_s"].as_f64().unwrap() < 20.0, "{fault}");
        }
    }

    /// The second of the day at which another node last heard of this one before it was silent for
    /// the last time.
    fn last_heard_s(&self, node: usize) -> f64 {
        let said = self.said();
        let mark = format!("node is silent, it is taken to be down node={node} ms=");
        let line = said.lines().rfind(|line| line.contains(&mark)).unwrap();
        let clock = line.split(['T', 'Z']).nth(1).unwrap();
        let parts = clock.split(':').map(|part| part.parse::<f64>().unwrap());
        let said_s = parts.fold(0.0, |sum, part| sum * 60.0 + part);
        let silent_ms: f64 = line.rsplit_once("ms=").unwrap().1.trim().parse().unwrap();
        said_s - silent_ms / 1e3
    }

    /// By how many seconds a node's time is ahead of ours, as a client sees it.
    fn clock_ahead_s(&self, node: usize) -> i64 {
        let mut link = self.link(node, "postgres").unwrap();
        let asked = "SELECT extract(epoch FROM clock_timestamp())";
        let rows = try_rows(&mut link, asked).unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        rows[0][0].parse::<f64>().unwrap() as i64 - now.unwrap().as_secs() as i64
    }

    /// By how many seconds the clock of a node is wrong, by its file.
    fn clock_offset_s(&self, node: usize) -> i64 {
        let bytes = std::fs::read(self.data().join(format!("node-{node}.clock"))).unwrap();
        let at = 16 + 8 * usize::from(bytes[8]);
        i64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) / 1_000_000_000
    }

    /// Whether a node answers and is connected to the others.
    pub(crate) fn answers(&self, node: usize) -> bool {
        let linked = connect(self.file().nodes[node - 1].sql, "postgres");
        linked.is_ok_and(|mut link| {
            let nodes = try_rows(&mut link, "SHOW NODES").unwrap_or_default();
            nodes.len() == 3 && nodes.iter().all(|row| row[3] == "up")
        })
    }
}

pub(crate) fn text(output: &Output) -> String {
    let parts = [&output.stdout, &output.stderr];
    parts.map(|part| String::from_utf8_lossy(part)).concat()
}

/// State of a process, by one letter.
pub(crate) fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim().chars().next()
}

/// Compares what a run tells of the only fault, a kill of three seconds, with its own series,
/// without the code under test, and with what the other nodes have logged. Returns what differs.
fn compared(local: &Local, json: &serde_json::Value) -> Result<(), String> {
    let fault = &json["faults"][0];
    let number = |name: &str| {
        fault[name]
            .as_f64()
            .ok_or_else(|| format!("{name}: {fault}"))
    };
    let holds = |is_so: bool, what: &str| match is_so {
        true => Ok(()),
        false => Err(format!("{what}: {fault}")),
    };
    let (begin_s, end_s, step_s) = (number("begin_s")?, number("end_s")?, number("step_s")?);
    holds((8.0..8.3).contains(&begin_s), "its begin")?;
    holds((11.0..11.6).contains(&end_s), "its end")?;
    let steps = json["steps"]["committed"].as_array().unwrap();
    let steps: Vec<f64> = steps.iter().map(|step| step.as_f64().unwrap()).collect();
    holds(steps.len() == 180, "the steps of the run")?;
    let mean = |steps: &[f64]| steps.iter().sum::<f64>() / steps.len() as f64;
    let baseline = mean(&steps[..80]);
    let times = (step_s / 0.1).round() as usize;
    let mut low = (80 / times..).map(|step| mean(&steps[step * times..(step + 1) * times]));
    let low = low.position(|rate| rate < baseline * 0.75);
    let low = low.ok_or_else(|| format!("no step is low: {steps:?}"))?;
    let low_s = (80 / times * times + low * times) as f64 * 0.1 - begin_s;
    let is_seen = (number("t_detect")? - low_s.max(0.0)).abs() <= step_s + 1e-6;
    holds(is_seen, &format!("detected, the series says {low_s}"))?;
    let depth = 1.0 - mean(&steps[90..108]) / baseline;
    let is_deep = (number("depth")? - depth).abs() < 0.1 + number("noise")? / 2.0;
    holds(is_deep, &format!("the depth, the series says {depth}"))?;
    holds(number("t90")? >= 3.0 - step_s, "back before it was undone")?;
    // When they last heard of the node, to the millisecond.
    let heard_s = local.last_heard_s(2);
    let killed_s = number("begin_unix_s")? % 86_400.0;
    let is_heard = (heard_s - killed_s).abs() <= step_s;
    holds(
        is_heard,
        &format!("heard of until {heard_s}, not {killed_s}"),
    )
}

#[test]
fn a_killed_node_costs_what_the_series_shows_and_comes_back() {
    let local = shop("fault-kill");
    // A machine that stands still costs what a fault costs.
    let attempt = || {
        let before = local.pid(2);
        let output = local.bench(&["kill@node2:8+3"], 18).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        assert!(local.said().contains("node 2 was killed by signal 9"));
        assert_ne!(local.pid(2), before);
        wait_until("node 2 is back", READY_LIMIT, || local.answers(2));
        (output, compared(&local, &local.json()))
    };
    let (output, same) = again(attempt, |(_, same)| same.is_ok());
    assert_eq!(same, Ok(()));
    let json = local.json();
    let fault = &json["faults"][0];
    assert_eq!(
        (&fault["kind"], &fault["target"]),
        (&"kill".into(), &"node2".into())
    );
    assert_eq!(
        (&fault["proven"], &fault["undone"]),
        (&true.into(), &true.into())
    );
    assert!(text(&output).contains("kill@node2"), "{}", text(&output));
}

/// Whether a fault of the benchmark with this number is in.
type IsIn = fn(&Local, u32) -> bool;

pub(crate) fn is_stopped(pid: u32) -> bool {
    state(pid) == Some('T')
}

/// Whether the packet filter has a table of this benchmark; `None`: we may not ask it.
pub(crate) fn is_cut(bench: u32) -> Option<bool> {
    let listed = Command::new("nft").args(["list", "tables"]).output().ok()?;
    let tables = String::from_utf8_lossy(&listed.stdout).into_owned();
    let is_there = tables.contains(&format!("trellis_bench_{bench}_"));
    listed.status.success().then_some(is_there)
}

/// Whether a process is in a control group of a benchmark.
fn is_limited(pid: u32) -> bool {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    groups.contains("trellis-bench-")
}

/// Whether packets are handed to a benchmark.
fn has_late_packets() -> bool {
    let mut rules = Command::new("iptables");
    let rules = rules.args(["-w", "-t", "mangle", "-S"]).output();
    text(&rules.unwrap()).contains("NFQUEUE")
}

#[test]
fn undo_restores_what_a_killed_benchmark_has_left() {
    let local = shop("fault-undo");
    let journal = local.folder.path().join("journal");
    let mut faults: Vec<(&str, IsIn)> = vec![
        ("pause@node2:1+30", |local, _| is_stopped(local.pid(2))),
        ("kill@node3:1+30", |local, _| {
            matches!(state(local.pid(3)), None | Some('Z'))
        }),
    ];
    if is_cut(0).is_some() {
        faults.push(("cut@node2:1+30", |_, bench| is_cut(bench) == Some(true)));
        faults.push(("lag=20ms@node2:1+30", |_, bench| {
            is_cut(bench) == Some(true) && has_late_packets()
        }));
    }
    for (fault, is_in) in faults {
        let mut bench = local.bench(&[fault], 40);
        bench.arg("--fault-journal").arg(&journal);
        let mut bench = bench.stdout(Stdio::null()).spawn().unwrap();
        let pid = bench.id();
        wait_until(fault, READY_LIMIT, || is_in(&local, pid));
        // It undoes its faults itself, and nobody else does.
        let early = undo(&journal);
        assert!(!early.status.success() && text(&early).contains("still runs"));
        bench.kill().unwrap();
        bench.wait().unwrap();
        assert!(is_in(&local, pid));
        let undone = undo(&journal);
        assert!(undone.status.success(), "{}", text(&undone));
        assert!(text(&undone).contains("undone: "), "{}", text(&undone));
        assert!(!is_in(&local, pid) && !journal.exists());
        wait_until("all nodes answer", READY_LIMIT, || {
            (1..=3).all(|node| local.answers(node))
        });
    }
}

#[test]
fn undo_lifts_limits_that_a_killed_benchmark_has_left() {
    let local = shop("fault-undo-limits");
    if is_cut(0).is_none() {
        return;
    }
    let journal = local.folder.path().join("journal");
    let mut bench = local.bench(&["cpu=50%@node1:1+30", "memory=64MB@node2:1+30"], 40);
    bench.arg("--fault-journal").arg(&journal);
    let mut bench = bench.stdout(Stdio::null()).spawn().unwrap();
    let limited = || [1, 2, 3].map(|node| is_limited(local.pid(node)));
    wait_until("limits are in", READY_LIMIT, || {
        limited() == [true, true, false]
    });
    bench.kill().unwrap();
    bench.wait().unwrap();
    assert_eq!(limited(), [true, true, false]);
    let undone = undo(&journal);
    assert!(undone.status.success(), "{}", text(&undone));
    assert_eq!(limited(), [false; 3]);
    assert!(!journal.exists());
}

#[test]
fn the_next_run_undoes_what_a_killed_one_has_left() {
    let local = shop("fault-next");
    let mut bench = local.bench(&["pause@node2:1+30"], 40);
    let mut bench = bench.stdout(Stdio::null()).spawn().unwrap();
    let pid = local.pid(2);
    wait_until("node 2 is stopped", READY_LIMIT, || is_stopped(pid));
    bench.kill().unwrap();
    bench.wait().unwrap();
    assert!(is_stopped(pid));
    let next = local.bench(&[], 5).output().unwrap();
    assert!(next.status.success(), "{}", text(&next));
    assert!(text(&next).contains("an earlier run left a fault; undone: "));
    assert!(!is_stopped(pid));
}

#[test]
fn a_schedule_at_several_nodes_is_measured_fault_by_fault() {
    let local = shop("fault-schedule");
    let mut faults = vec!["pause@node2,node3:8+2"];
    if is_cut(0).is_some() {
        faults.push("cut@node3:16+2");
        // Between nodes as well as on the way of the clients.
        faults.push("lag=200ms@node1:24+2");
    }
    let attempt = || {
        let output = local.bench(&faults, 32).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        local.json()
    };
    let is_as_planned = |fault: &serde_json::Value| {
        let number = |name: &str| fault[name].as_f64().unwrap_or(f64::NAN);
        number("depth") > 0.5
            && number("t_detect") <= 2.0 * number("step_s")
            && number("undo_s") < 2.0
    };
    // A machine that stands still costs what a fault costs.
    let all = |json: &serde_json::Value| json["faults"].as_array().unwrap().clone();
    let json = again(attempt, |json| all(json).iter().all(is_as_planned));
    assert_eq!(all(&json).len(), faults.len() + 1);
    for fault in all(&json) {
        assert!(is_as_planned(&fault), "{fault}");
    }
}

#[test]
fn clocks_of_nodes_jump_each_by_its_own_and_memory_runs_short() {
    let local = shop_with("fault-clock", &["--clock-faults"]);
    let mut faults = vec!["clock=+90s@node2:2+7", "clock=-30s@node1:3+7"];
    if is_cut(0).is_some() {
        faults.push("memory=2MB@node3:11+3");
    }
    let mut bench = local.bench(&faults, 16);
    let bench = bench.stdout(Stdio::piped()).stderr(Stdio::piped());
    let bench = bench.spawn().unwrap();
    wait_until("the clock of node 1 is wrong", READY_LIMIT, || {
        local.clock_offset_s(1) == -30
    });
    assert_eq!((local.clock_offset_s(2), local.clock_offset_s(3)), (90, 0));
    // A node goes on where its clock was when that is set back.
    let is_right = |ahead_s: &[i64; 3]| {
        let mut all = ahead_s.iter().zip([0, 90, 0]);
        all.all(|(seen_s, wanted_s)| (seen_s - wanted_s).abs() <= 1)
    };
    let ahead_s = || [1, 2, 3].map(|node| local.clock_ahead_s(node));
    let ahead_s = again(ahead_s, is_right);
    let output = bench.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(is_right(&ahead_s), "{ahead_s:?}");
    assert!((1..=3).all(|node| local.clock_offset_s(node) == 0));
    local.expect_faults(faults.len(), |kind| match kind {
        "clock" => "times with",
        _ => "no more than 2097152 bytes",
    });
}

#[test]
fn undo_sets_a_clock_right_that_a_killed_benchmark_has_left() {
    let local = shop_with("fault-clock-undo", &["--clock-faults"]);
    let journal = local.folder.path().join("journal");
    let mut bench = local.bench(&["clock=-1h@node2:1+30"], 40);
    bench.arg("--fault-journal").arg(&journal);
    let mut bench = bench.stdout(Stdio::null()).spawn().unwrap();
    wait_until("the clock is wrong", READY_LIMIT, || {
        local.clock_offset_s(2) == -3_600
    });
    bench.kill().unwrap();
    bench.wait().unwrap();
    assert_eq!(local.clock_offset_s(2), -3_600);
    let undone = undo(&journal);
    assert!(undone.status.success(), "{}", text(&undone));
    assert_eq!(local.clock_offset_s(2), 0);
}

fn undo(journal: &PathBuf) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(["bench", "undo"]).arg(journal);
    command.output().unwrap()
}

#[test]
fn a_signal_undoes_a_fault_before_the_benchmark_ends() {
    let local = shop("fault-signal");
    let mut bench = local.bench(&["pause@node1,node2:1+30"], 40);
    let mut bench = bench.stdout(Stdio::null()).spawn().unwrap();
    let pids = [local.pid(1), local.pid(2)];
    wait_until("nodes are stopped", READY_LIMIT, || {
        pids.iter().all(|pid| is_stopped(*pid))
    });
    signal(bench.id(), "INT");
    assert_eq!(wait_child(&mut bench, STOP_LIMIT).code(), Some(130));
    assert!(!pids.iter().any(|pid| is_stopped(*pid)));
}

#[test]
fn what_cannot_be_broken_is_refused_before_the_run() {
    let local = shop("fault-refused");
    for (fault, told) in [
        (
            "clock=+5s@node2:1+1",
            "clock=+5000ms is not possible at node2; it needs a server that was started with a \
             clock that can be set",
        ),
        (
            "disk_full@node2:1+1",
            "disk_full is not possible at node2; it needs",
        ),
        (
            "kill@node4:1+1",
            "there is no target \"node4\"; given are node1, node2, node3",
        ),
        ("kill@node2:5+5", "ends after the run"),
    ] {
        let output = local.bench(&[fault], 8).output().unwrap();
        assert!(
            !output.status.success() && text(&output).contains(told),
            "{}",
            text(&output)
        );
        assert!(!text(&output).contains("committed"), "{}", text(&output));
    }
}
