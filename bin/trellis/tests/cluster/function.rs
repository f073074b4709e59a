//! The benchmark's function tests on a cluster of three nodes, under each protocol.

use crate::support::{Cluster, Folder, PROGRAM};
use function_tests::durability::{self, Crash};
use function_tests::{Found, FunctionOptions, Test, Verdict};
use links::view::Silent;
use peer::longer;
use serde_json::Value;
use std::cell::RefCell;
use std::process::{Command, Output};
use std::time::Duration;
use workload::wire::Isolation;

const PROTOCOLS: [&str; 3] = ["two_phase", "leap", "formula"];

fn options(url: &str, test: Test, count: u32, isolation: Isolation) -> FunctionOptions {
    FunctionOptions {
        tests: vec![test],
        count: Some(count),
        isolation,
        ..FunctionOptions::new(url)
    }
}

#[test]
fn snapshots_are_whole_and_cycles_end_under_each_protocol() {
    let cluster = Cluster::start("function", 3, 1);
    for protocol in PROTOCOLS {
        cluster.create_as(protocol, protocol, &[]);
        let url = cluster.url(protocol);
        for isolation in [Isolation::RepeatableRead, Isolation::Serializable] {
            let wanted = FunctionOptions {
                tests: vec![Test::Snapshot, Test::Deadlock],
                ..options(&url, Test::Snapshot, 24, isolation)
            };
            let report = function_tests::run(&wanted, &mut Silent).unwrap();
            let table = function_tests::table(&report);
            assert_eq!(report.verdict(), Verdict::Passed, "{table}");
            let [Found::Snapshot(snapshot), Found::Deadlock(deadlock)] = &report.found[..] else {
                panic!("{table}");
            };
            let spread = snapshot.spread.unwrap();
            assert_eq!((spread.covered, spread.nodes), (3, 3), "{table}");
            // Each member of a cycle has its row on a node of its own.
            let mut cycles = deadlock.cycles.iter();
            assert!(cycles.all(|it| it.nodes == Some(it.size)), "{table}");
            assert_eq!(deadlock.rule.name(), "wait-die", "{table}");
            // Nobody waits for a rule that is applied at once.
            assert!(deadlock.latency_median().unwrap() < Duration::from_secs(5));
            let states: Vec<&str> = deadlock.states().into_keys().collect();
            assert_eq!(states, ["40001"], "{table}");
        }
    }
}

#[test]
fn read_committed_is_seen_to_tear_snapshots() {
    let cluster = Cluster::start("function-torn", 3, 1);
    cluster.create("shop", &[]);
    let wanted = options(
        &cluster.url("shop"),
        Test::Snapshot,
        100,
        Isolation::ReadCommitted,
    );
    let report = function_tests::run(&wanted, &mut Silent).unwrap();
    let table = function_tests::table(&report);
    assert_eq!(report.verdict(), Verdict::Failed, "{table}");
    assert!(table.contains("instead of 240000"), "{table}");
}

#[test]
fn acknowledged_commits_survive_when_all_nodes_are_killed() {
    for protocol in PROTOCOLS {
        let cluster = RefCell::new(Cluster::start("function-kill", 3, 1));
        cluster.borrow().create_as(protocol, "shop", &[]);
        let url = cluster.borrow().url("shop");
        let folder = Folder::new("function-record");
        let record = folder.path().join("seen");
        let wanted = options(&url, Test::Durability, 100_000, Isolation::RepeatableRead);
        let crash = Crash::at(150, || {
            let mut cluster = cluster.borrow_mut();
            (0..3).for_each(|at| cluster.kill(at));
            cluster.start_all();
            Ok(())
        });
        let (recorded, verified) = durability::audit(&wanted, &record, crash, &mut Silent).unwrap();
        let judgement = verified.judgement();
        assert_eq!(judgement.verdict, Verdict::Passed, "{judgement:?}");
        assert!(recorded.acknowledged >= 150, "{recorded:?}");
        assert_eq!(recorded.clients_lost, recorded.clients, "{recorded:?}");
    }
}

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(["bench", "function"]).args(arguments);
    command.output().unwrap()
}

/// Function tests before a run: what fails them is not measured.
#[test]
fn there_is_no_run_unless_the_function_tests_pass() {
    let cluster = Cluster::start("function-gate", 3, 1);
    cluster.create("shop", &[]);
    let url = cluster.url("shop");
    let folder = Folder::new("function-gate-json");
    let json = folder.path().join("out.json");
    let run = |level: &str, length: Duration| {
        let mut command = Command::new(PROGRAM);
        command.args(["bench", "run", "--workload", "bank", "--url", &url]);
        command.args(["--seconds", &length.as_secs().to_string()]);
        command.args(["--warmup", "0", "--isolation", level]);
        command.args(["--function-tests", "snapshot", "--json"]);
        command.arg(&json).output().unwrap()
    };
    let first = Duration::from_secs(1);
    let torn = run("read-committed", first);
    assert_eq!(torn.status.code(), Some(1), "{}", said(&torn));
    assert!(said(&torn).contains("there is no run"), "{}", said(&torn));
    assert!(!json.exists());
    // Where too little happens, neither the test nor the history says anything.
    let whole = longer(
        first,
        |length| run("serializable", length),
        |output| output.status.success(),
    );
    assert_eq!(whole.status.code(), Some(0), "{}", said(&whole));
    let told: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(told["verdicts"]["snapshot"]["verdict"], "passed");
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn the_command_says_its_verdict_and_its_exit_code() {
    let mut cluster = Cluster::start("function-command", 3, 1);
    cluster.create("shop", &[]);
    let url = cluster.url("shop");
    let folder = Folder::new("function-json");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (json, record) = (path("out.json"), path("seen"));
    let passed = bench(&[&url, "--count", "6", "--json", &json]);
    assert_eq!(passed.status.code(), Some(0), "{}", said(&passed));
    assert!(
        said(&passed).contains("verdict: passed"),
        "{}",
        said(&passed)
    );
    let told: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(told["tests"]["snapshot"]["snapshots"], 6);
    assert_eq!(told["tests"]["deadlock"]["outcomes"]["prevented"], 6);
    let torn = ["--tests", "snapshot", "--isolation", "read-committed"];
    let failed = bench(&[&[url.as_str()], &torn[..]].concat());
    assert_eq!(failed.status.code(), Some(1), "{}", said(&failed));
    // A node is killed between the two halves of the durability test.
    let recorded = bench(&[&url, "--record", &record, "--count", "100"]);
    assert_eq!(recorded.status.code(), Some(0), "{}", said(&recorded));
    cluster.kill(1);
    cluster.spawn(1);
    cluster.wait_ready(1);
    let verified = bench(&[&url, "--verify", &record]);
    assert_eq!(verified.status.code(), Some(0), "{}", said(&verified));
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, text + "c 7777\na 7777\n").unwrap();
    let missed = bench(&[&url, "--verify", &record]);
    assert_eq!(missed.status.code(), Some(1), "{}", said(&missed));
    assert!(
        said(&missed).contains("the first one is 7777"),
        "{}",
        said(&missed)
    );
    for (wrong, told) in [
        (vec!["--tests", "speed"], "none of snapshot"),
        (vec!["--tests", "durability"], "--record FILE"),
        (vec!["--tests", "snapshot,snapshot"], "twice"),
        (
            vec!["--tests", "snapshot", "--record", &record],
            "durability",
        ),
        (
            vec!["--record", &record, "--verify", &record],
            "cannot be used",
        ),
        (vec!["--count", "0"], "0 is not in"),
        (vec!["--isolation", "chaos"], "no isolation level"),
        (vec!["--verify", &json], "no record"),
        (vec!["--json", "/no/such/folder/file"], "cannot write"),
    ] {
        let refused = bench(&[&[url.as_str()], &wrong[..]].concat());
        assert!(!refused.status.success(), "{wrong:?}");
        assert!(
            said(&refused).contains(told),
            "{wrong:?}: {}",
            said(&refused)
        );
    }
}
