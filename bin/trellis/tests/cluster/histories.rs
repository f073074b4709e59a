//! What clients of a real cluster see, recorded under load and judged.

use crate::support::{Cluster, Folder, PROGRAM};
use check::{Judgement, Level};
use drive::histories::{self, HistoryOptions, HistoryReport};
use drive::report;
use links::view::Silent;
use peer::longer;
use std::process::Command;
use std::time::Duration;
use workload::history::Kind;
use workload::wire::Isolation;

const DATABASE: &str = "seen";

fn cluster(name: &str) -> Cluster {
    let cluster = Cluster::start(name, 3, 2);
    cluster.wait_connected();
    cluster.create(DATABASE, &[]);
    cluster
}

fn options(url: &str, kind: Kind, isolation: Isolation) -> HistoryOptions {
    let mut options = HistoryOptions::new(url, kind, isolation);
    options.runner.clients = 6;
    options.runner.length = Duration::from_secs(3);
    options
}

/// Records; more than once where a busy machine has left too little to judge.
fn recorded(url: &str, kind: Kind, isolation: Isolation) -> HistoryReport {
    let mut options = options(url, kind, isolation);
    let run = |length| {
        options.runner.length = length;
        histories::run(&options, &mut Silent).unwrap()
    };
    longer(Duration::from_secs(3), run, |found| {
        found.verdict.judgement != Judgement::Inconclusive
    })
}

#[test]
fn histories_of_every_kind_are_strictly_serializable() {
    let cluster = cluster("histories");
    let url = cluster.url(DATABASE);
    for kind in Kind::ALL {
        let found = recorded(&url, kind, Isolation::Serializable);
        let (name, verdict) = (kind.name(), &found.verdict);
        assert_eq!(verdict.judgement, Judgement::Pass, "{name}: {verdict}");
        assert_eq!(verdict.level, Level::StrictSerializable);
        let table = report::table(&found.run);
        assert_eq!(found.run.unknown(), 0, "{table}");
    }
}

#[test]
fn read_committed_allows_what_serializable_does_not() {
    let cluster = cluster("histories-weak");
    let url = cluster.url(DATABASE);
    let found = recorded(&url, Kind::ListAppend, Isolation::ReadCommitted);
    let verdict = &found.verdict;
    assert_eq!(verdict.judgement, Judgement::Pass, "{verdict}");
    assert!(
        !verdict.allowed.is_empty(),
        "lost updates are allowed: {verdict}"
    );
    let strict = check::check(&found.history, Level::Serializable);
    assert_eq!(strict.judgement, Judgement::Fail, "{strict}");
}

#[test]
fn a_node_that_dies_and_comes_back_breaks_no_history() {
    let mut cluster = cluster("histories-crash");
    let mut options = options(
        &cluster.url(DATABASE),
        Kind::ListAppend,
        Isolation::Serializable,
    );
    // After its return the node's clock is ahead of the others: READ ONLY transactions must not
    // miss what it has acknowledged.
    options.shape.has_read_only = true;
    options.runner.timeout = Duration::from_secs(30);
    let attempt = |length: Duration| {
        options.runner.length = length;
        let options = options.clone();
        let run = std::thread::spawn(move || histories::run(&options, &mut Silent));
        for at in [1, 2] {
            std::thread::sleep(length / 4);
            cluster.kill(at);
            std::thread::sleep(Duration::from_millis(500));
            cluster.spawn(at);
            cluster.wait_ready(at);
        }
        run.join().unwrap().unwrap()
    };
    // What is wrong is not tried again.
    let found = longer(Duration::from_secs(8), attempt, |found| {
        let verdict = &found.verdict;
        verdict.judgement == Judgement::Fail || verdict.exercised.committed > 20
    });
    let verdict = &found.verdict;
    assert_ne!(verdict.judgement, Judgement::Fail, "{verdict}");
    assert!(verdict.exercised.committed > 20, "{verdict}");
}

#[test]
fn a_recorded_history_is_judged_from_its_file() {
    let cluster = cluster("histories-file");
    let folder = Folder::new("histories-file");
    let history = folder.path().join("seen.edn");
    let bench = |args: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.arg("bench").args(args);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        (output.status.code().unwrap(), said)
    };
    let url = cluster.url(DATABASE);
    let file = history.to_str().unwrap();
    let run = [
        "run",
        "--workload",
        "register",
        "--clients",
        "4",
        "--url",
        &url,
    ];
    let (code, said) = bench(&[&run[..], &["--seconds", "3", "--history", file]].concat());
    // A busy machine may leave too little to judge, which has an exit code of its own.
    assert!(code == 0 || code == 3, "{code}: {said}");
    let (judged, said) = bench(&["check", "--history", file]);
    assert_eq!(judged, code, "{said}");
    assert!(said.contains("strict-serializable: "), "{said}");

    let text = std::fs::read_to_string(&history).unwrap();
    let torn = text + "{:type :ok, :process 1, :f :txn, :value [[:r 0 123456789]]}\n";
    std::fs::write(&history, torn).unwrap();
    let (code, said) = bench(&["check", "--history", file]);
    assert_eq!(code, 1, "nobody wrote 123456789: {said}");
    let (code, said) = bench(&["check", "--history", "nowhere.edn"]);
    assert!(code == 1 && said.contains("nowhere.edn"), "{said}");
    let (code, _) = bench(&["check"]);
    assert_eq!(code, 2, "neither a database nor a file");
}
