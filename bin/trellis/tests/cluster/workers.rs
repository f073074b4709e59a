//! One run by several processes: `trellis bench run --worker`. What is lost with a worker or with
//! the coordinator, and that the load is the same as that of one process.

use crate::support::{Cluster, Folder, PROGRAM, READY_LIMIT, signal, wait_child, wait_until};
use drive::tpcc::{self, LoadOptions};
use links::view::Silent;
use peer::{again, longer};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use workload::tpcc::Scale;

/// Far longer than a worker may say nothing.
const LIMIT: Duration = Duration::from_secs(60);
/// Kinds of TPC-C.
const KINDS: [&str; 5] = [
    "new_order",
    "payment",
    "order_status",
    "delivery",
    "stock_level",
];

/// A process whose lines are kept.
struct Process {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Process {
    fn start(arguments: &[&str]) -> Process {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).stdin(Stdio::null());
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        keep(out, &lines);
        keep(err, &lines);
        Process { child, lines }
    }

    /// Whether it has said this.
    fn has_said(&self, text: &str) -> bool {
        self.said().contains(text)
    }

    fn said(&self) -> String {
        self.lines.lock().unwrap().join("\n")
    }

    fn wait_for(&self, text: &str) {
        wait_until(text, LIMIT, || self.has_said(text));
    }
}

fn keep(from: impl Read + Send + 'static, lines: &Arc<Mutex<Vec<String>>>) {
    let lines = Arc::clone(lines);
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            lines.lock().unwrap().push(line);
        }
    });
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A worker, and where it listens.
fn worker() -> (Process, String) {
    let worker = Process::start(&["bench", "worker", "--listen", "127.0.0.1:0"]);
    worker.wait_for("listening at ");
    let said = worker.said();
    let address = said.rsplit("listening at ").next().unwrap();
    let address = address.lines().next().unwrap().to_owned();
    (worker, address)
}

/// A cluster with small warehouses, two for each node and two more.
fn loaded(name: &str, nodes: u16) -> (Cluster, String) {
    let cluster = Cluster::start(name, nodes, 1);
    cluster.create("shop", &[]);
    let url = cluster.url("shop");
    let warehouses = 2 * u32::from(nodes) + 2;
    let options = LoadOptions {
        scale: Scale::reduced(warehouses),
        ..LoadOptions::new(&url, warehouses)
    };
    tpcc::load(&options, &mut Silent).unwrap();
    (cluster, url)
}

/// Runs to the end, which must be a good one; the JSON.
fn run(url: &str, json: &Path, more: &[&str]) -> Value {
    let mut arguments = vec!["bench", "run", "--url", url, "--json"];
    arguments.push(json.to_str().unwrap());
    arguments.extend(more);
    let output = Command::new(PROGRAM).args(&arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let warned = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}{warned}");
    serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap()
}

/// The same for `first`, and again for longer until `is_enough`.
fn run_until(
    url: &str,
    json: &Path,
    more: &[&str],
    first: Duration,
    is_enough: impl Fn(&Value) -> bool,
) -> Value {
    let run = |length: Duration| {
        let seconds = length.as_secs().to_string();
        run(url, json, &[more, &["--seconds", &seconds]].concat())
    };
    longer(first, run, is_enough)
}

/// Transactions of a kind that were due in the measured phase, however they ended.
fn due(run: &Value, kind: &str) -> u64 {
    let kind = &run["transactions"][kind];
    let counts = ["committed", "rolled_back", "unknown"];
    let ended: u64 = counts.iter().map(|it| kind[it].as_u64().unwrap()).sum();
    let failed = kind["failed"].as_object().unwrap().values();
    ended + failed.map(|it| it.as_u64().unwrap()).sum::<u64>()
}

#[test]
fn two_workers_have_the_load_of_one_process() {
    let (_cluster, url) = loaded("workers", 2);
    let folder = Folder::new("workers-out");
    let json = folder.path().join("run.json");
    let ((first, one), (second, two)) = (worker(), worker());
    let both = ["--worker", &one, "--worker", &two];
    let open = [
        "--rate",
        "150",
        "--seconds",
        "3",
        "--warmup",
        "1",
        "--seed",
        "5",
    ];
    // Those that wait at the end of a run are not known: the machine stood still.
    let whole = |more: &[&str]| {
        let more = [&open[..], more].concat();
        again(|| run(&url, &json, &more), |run| run["unfinished"] == 0)
    };
    let (alone, shared) = (whole(&[]), whole(&both));
    assert_eq!(alone["unfinished"], 0);
    assert_eq!(shared["unfinished"], 0);
    let mut sum = 0;
    for kind in KINDS {
        assert_eq!(due(&shared, kind), due(&alone, kind), "{kind}");
        sum += due(&shared, kind);
    }
    assert!((300..600).contains(&sum), "{sum} of about 450");
    assert_eq!(alone["workers"].as_array().unwrap().len(), 0);
    let workers = shared["workers"].as_array().unwrap();
    let committed = workers.iter().map(|it| it["committed"].as_u64().unwrap());
    assert_eq!(committed.clone().count(), 2);
    assert!(committed.clone().all(|it| it > 50), "{workers:?}");
    assert_eq!(
        committed.sum::<u64>(),
        shared["committed"].as_u64().unwrap()
    );
    for worker in workers {
        assert_eq!(worker["same_build"], true);
        // One machine has one clock; it is known as exactly as an answer is fast.
        let offset = worker["clock_offset_us"].as_i64().unwrap();
        let trip = worker["round_trip_us"].as_i64().unwrap();
        assert!(offset.abs() < 100_000 + trip, "{worker}");
        assert!(trip < 20_000_000, "{worker}");
    }
    assert_eq!(shared["timeline"].as_array().unwrap().len(), 4);
    // Each transaction is in the timeline, in the steps and in the histograms.
    let new_orders = &shared["transactions"]["new_order"];
    let samples = new_orders["latency_us"]["samples"].as_u64().unwrap();
    let raw = new_orders["histogram_us"].as_array().unwrap();
    let counted = raw.iter().map(|pair| pair[1].as_u64().unwrap());
    assert_eq!(counted.sum::<u64>(), samples);
    first.wait_for(": done");
    second.wait_for(": done");
}

/// What the server counts of distributed transactions is compared with what all workers drew.
#[test]
fn counts_of_dike_are_those_of_all_workers() {
    let (_cluster, url) = loaded("workers-dike", 2);
    let folder = Folder::new("workers-dike-out");
    let json = folder.path().join("run.json");
    let ((_first, one), (_second, two)) = (worker(), worker());
    let line = "--workload dike --distribution exact --ratio 50 --degree 2 --clients 8 \
                --mix new_order:50,payment:50 --warmup 1 --bind-transactions";
    let mut more: Vec<&str> = line.split_whitespace().collect();
    more.extend(["--worker", &one, "--worker", &two]);
    let orders = |run: &Value| run["distribution"]["new_orders"]["committed"].as_u64();
    let first = Duration::from_secs(3);
    let shared = run_until(&url, &json, &more, first, |run| orders(run) > Some(200));
    let distribution = &shared["distribution"];
    assert!(orders(&shared) > Some(20), "{distribution}");
    assert_eq!(distribution["wrong"], 0, "{distribution}");
    let ratio = distribution["drawn_ratio"].as_f64().unwrap();
    assert!((0.3..0.7).contains(&ratio), "{ratio}");
}

/// The coordinator breaks a server while the workers have the load, and tells what that cost.
#[test]
fn faults_are_the_coordinators() {
    let (cluster, url) = loaded("workers-fault", 2);
    let folder = Folder::new("workers-fault-out");
    let json = folder.path().join("run.json");
    let ((_first, one), (_second, two)) = (worker(), worker());
    let target = format!("node2=pid:{}", cluster.pid(1));
    let journal = folder.path().join("journal");
    let journal = journal.to_str().unwrap();
    let mut more = vec!["--rate", "100", "--seconds", "6", "--warmup", "1"];
    more.extend(["--target", &target, "--fault-journal", journal]);
    more.extend(["--worker", &one, "--worker", &two, "--fault"]);
    let pause = [&more[..], &["pause@node2:2+2"]].concat();
    let depth = |run: &Value| {
        let fault = &run["faults"][0];
        fault["cost"]["depth"].as_f64().or(fault["depth"].as_f64())
    };
    // Seconds in which the machine stands still cost as much.
    let paused = again(|| run(&url, &json, &pause), |run| depth(run) > Some(0.2));
    assert_eq!(paused["faults"].as_array().map(Vec::len), Some(1));
    assert!(depth(&paused) > Some(0.2), "{}", paused["faults"]);
    let mut command = Command::new(PROGRAM);
    command.args(["bench", "run", "--url", &url]).args(&more);
    let output = command.arg("delay=50ms@node2:1+1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(said.contains("by a proxy in this process"), "{said}");
}

/// A run of a minute and more that goes on, with these workers.
fn long_run(url: &str, json: &Path, workers: &[&str]) -> Process {
    let mut arguments = vec!["bench", "run", "--url", url, "--seconds", "100"];
    arguments.extend(["--clients", "4", "--json", json.to_str().unwrap()]);
    for worker in workers {
        arguments.extend(["--worker", worker]);
    }
    let run = Process::start(&arguments);
    run.wait_for("  measuring  ");
    run
}

/// The run has ended with an error and without a number.
fn assert_no_number(run: &mut Process, json: &Path, why: &str) {
    let status = wait_child(&mut run.child, LIMIT);
    assert!(!status.success(), "{}", run.said());
    run.wait_for(why);
    assert!(!json.exists(), "a run without a result has no file");
    for number in ["committed per second", "new_order_per_min", "verdict"] {
        assert!(!run.has_said(number), "{}", run.said());
    }
}

#[test]
fn a_lost_worker_ends_the_run_without_a_number() {
    let (_cluster, url) = loaded("workers-lost", 1);
    let folder = Folder::new("workers-lost-out");
    let json = folder.path().join("run.json");
    let (first, one) = worker();
    for name in ["KILL", "STOP"] {
        let (second, two) = worker();
        let mut long = long_run(&url, &json, &[&one, &two]);
        let begun = Instant::now();
        signal(second.child.id(), name);
        let why = match name {
            "KILL" => format!("worker {two} was lost: its connection is closed"),
            _ => format!("worker {two} was lost: it has said nothing for 10 s"),
        };
        assert_no_number(&mut long, &json, &why);
        assert!(begun.elapsed() < LIMIT);
        let ended = "ended before its time";
        wait_until("the other worker stops", LIMIT, || {
            first.said().matches(ended).count() == 1 + usize::from(name == "STOP")
        });
    }
    // The one that is left works for the next run.
    wait_until("it works", LIMIT, || {
        let mut command = Command::new(PROGRAM);
        command.args(["bench", "run", "--url", &url, "--seconds", "1"]);
        command.args(["--clients", "2", "--worker", &one]);
        command.output().unwrap().status.success()
    });
}

#[test]
fn workers_outlive_their_coordinator() {
    let (_cluster, url) = loaded("workers-coordinator", 1);
    let folder = Folder::new("workers-coordinator-out");
    let json = folder.path().join("run.json");
    let (worker, address) = worker();
    for name in ["KILL", "STOP"] {
        let long = long_run(&url, &json, &[&address]);
        // Strangers are told that it is busy, and change nothing.
        let mut stranger = TcpStream::connect(&address).unwrap();
        stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        let _ = stranger.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.contains("takes no other requests"), "{answer}");
        signal(long.child.id(), name);
        let ended = "ended before its time";
        wait_until("the worker has ended its run", LIMIT, || {
            worker.said().matches(ended).count() == 1 + usize::from(name == "STOP")
        });
    }
    wait_until("it is free", READY_LIMIT, || {
        let arguments = [
            "bench",
            "run",
            "--url",
            &url,
            "--seconds",
            "1",
            "--clients",
            "2",
        ];
        let mut command = Command::new(PROGRAM);
        command.args(arguments).args(["--worker", &address]);
        command.output().unwrap().status.success()
    });
}

#[test]
fn what_workers_cannot_do_is_refused_by_name() {
    let (_cluster, url) = loaded("workers-refused", 1);
    let (_worker, one) = worker();
    let refused = |more: &str, why: &str| {
        let mut command = Command::new(PROGRAM);
        command.args(["bench", "run", "--url", &url, "--worker", &one]);
        command.args(more.split_whitespace());
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && said.contains(why),
            "{more}: {said}"
        );
    };
    refused("--workload bank", "--worker is for tpcc and dike");
    refused(
        "--workload dike --contention 5 --contention-control blocking",
        "--contention-control cannot be with --worker",
    );
    refused("--history out.edn", "--history is for workloads");
    refused(
        "--clients 1 --worker 127.0.0.1:1",
        "no worker listens there",
    );
    refused("--warehouses 7", "4 warehouses loaded, 7 asked for");
    let (_other, two) = worker();
    refused(
        &format!("--clients 1 --worker {two}"),
        "too few for 2 workers",
    );
}

/// Several runs in a row: the workers wait for the next one after each.
#[test]
fn workers_have_the_load_of_searches_and_sweeps() {
    let (_cluster, url) = loaded("workers-more", 1);
    let (workers, addresses): (Vec<Process>, Vec<String>) = (0..2).map(|_| worker()).unzip();
    let folder = Folder::new("workers-more-files");
    let json = folder.path().join("out.json");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.arg("bench").args(arguments);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let warned = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), format!("{said}{warned}"))
    };
    let file = json.to_str().unwrap();
    let there = ["--worker", &addresses[0], "--worker", &addresses[1]];
    let short = [
        "--seconds",
        "1",
        "--warmup",
        "0",
        "--clients",
        "4",
        "--json",
        file,
    ];
    let value =
        || -> Value { serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap() };

    // A goal that no rate meets, from one of the lowest on. Comparisons run in the same way.
    let search = [
        "search", "--url", &url, "--goal", "p50:1us", "--from", "0.3",
    ];
    let (is_good, said) = run(&[&search[..], &there, &short].concat());
    assert!(!is_good && said.contains("no rate met the goal"), "{said}");
    assert_eq!(value()["trials"].as_array().unwrap().len(), 2, "{said}");

    let matrix = folder.path().join("sweep.toml");
    let [one, other] = &addresses[..] else {
        unreachable!("there are two")
    };
    let text = format!(
        "url = \"{url}\"\nworker = [[\"{one}\", \"{other}\"]]\nclients = 4\nseconds = 1\n\
         warmup = 0\n"
    );
    std::fs::write(&matrix, text).unwrap();
    let came = || {
        let said = workers.iter().map(Process::said);
        let came = said.map(|said| said.matches("has come").count());
        came.collect::<Vec<usize>>()
    };
    wait_until("two trials have come", LIMIT, || came() == [2, 2]);
    // A cell without a result, because nothing was committed in its second, is tried again.
    let sweep = || run(&["matrix", matrix.to_str().unwrap()]);
    let (is_good, said) = again(sweep, |(is_good, _)| *is_good);
    assert!(is_good, "{said}");
    wait_until("the sweep has come", LIMIT, || {
        came().iter().all(|runs| *runs > 2)
    });
}

/// The history of a run is that of all workers: it is judged once, by the coordinator.
#[test]
fn a_history_is_that_of_all_workers() {
    let (_cluster, url) = loaded("workers-history", 2);
    let folder = Folder::new("workers-history-out");
    let json = folder.path().join("run.json");
    let seen = folder.path().join("seen.edn");
    let ((_first, one), (_second, two)) = (worker(), worker());
    let mut more = vec!["--clients", "8", "--warmup", "0"];
    more.extend(["--history", seen.to_str().unwrap()]);
    more.extend(["--worker", &one, "--worker", &two]);
    let run = |option: &str, first: Duration, is_enough: &dyn Fn(&Value) -> bool| {
        let attempt = |length: Duration| {
            let _ = std::fs::remove_file(&json);
            let mut command = Command::new(PROGRAM);
            command.args(["bench", "run", "--url", &url, option]);
            command.args(["--seconds", &length.as_secs().to_string(), "--json"]);
            let output = command.arg(&json).args(&more).output().unwrap();
            let told = std::fs::read_to_string(&json).unwrap_or_default();
            let told: Value = serde_json::from_str(&told).unwrap_or_default();
            (told, output)
        };
        // Of little that has happened nothing can be said. What is wrong is not tried again.
        let (told, output) = longer(first, attempt, |(told, output)| {
            let is_wrong = told["history"]["judgement"] == "fail";
            is_wrong || output.status.success() && is_enough(told)
        });
        assert!(output.status.success(), "{output:?}");
        told
    };
    let shared = run("--histories", Duration::from_secs(4), &|_| true);
    let history = &shared["history"];
    assert_eq!(history["judgement"], "pass", "{history}");
    assert_eq!(history["level"], "strict-serializable");
    let conditions = shared["consistency"]["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 16);
    for condition in conditions {
        assert_eq!(condition["passed"], true, "{condition}");
    }
    // A bound is one for all.
    let left = |run: &Value| run["history"]["attempts_not_kept"].as_u64();
    let first = Duration::from_secs(12);
    let bounded = run("--histories=9000", first, &|run| left(run) > Some(0));
    let kept = bounded["history"]["operations"].as_u64().unwrap();
    assert!((4_000..12_000).contains(&kept), "{kept}");
    assert!(left(&bounded) > Some(0), "{}", bounded["history"]);
    assert!(seen.exists());
}

/// What only the attempts of two workers together show.
#[test]
fn an_anomaly_between_workers_is_found() {
    let Some(peer) = peer::Peer::start() else {
        return;
    };
    peer.psql("postgres", "CREATE DATABASE own");
    let url = peer.url("own");
    let options = LoadOptions {
        scale: Scale {
            items: 100,
            customers: 30,
            orders: 30,
            ..Scale::reduced(1)
        },
        ..LoadOptions::new(&url, 1)
    };
    tpcc::load(&options, &mut Silent).unwrap();
    let ((_first, one), (_second, two)) = (worker(), worker());
    let line = "--clients 8 --warmup 0 --histories --isolation read-committed --level serializable";
    let found = ["2", "6", "18"].into_iter().any(|seconds| {
        let mut command = Command::new(PROGRAM);
        command.args(["bench", "run", "--url", &url, "--seconds", seconds]);
        command.args(line.split_whitespace());
        command.args(["--worker", &one, "--worker", &two]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_named = ["G-single", "lost-update"]
            .iter()
            .any(|it| said.contains(it));
        !output.status.success() && is_named
    });
    assert!(found);
}

/// The coordinator steers; its workers have the transactions that compete.
#[test]
fn workers_together_compete_as_often_as_wanted() {
    let (_cluster, url) = loaded("workers-hot", 1);
    let folder = Folder::new("workers-hot-out");
    let json = folder.path().join("run.json");
    let ((_first, one), (_second, two)) = (worker(), worker());
    let line = "--workload dike --mix new_order:1 --contention 7,12@6 --clients 24 --seconds 12 \
                --warmup 1";
    let mut more: Vec<&str> = line.split_whitespace().collect();
    more.extend(["--worker", &one, "--worker", &two]);
    let mut arguments = vec!["bench", "run", "--url", &url, "--json"];
    arguments.push(json.to_str().unwrap());
    arguments.extend(more);
    // Whether each second is within its bounds depends on the machine: the means are looked at, of
    // the run in which it did not stand still.
    let attempt = || {
        let output = Command::new(PROGRAM).args(&arguments).output().unwrap();
        let told = std::fs::read_to_string(&json).unwrap();
        (serde_json::from_str::<Value>(&told).unwrap(), output)
    };
    let are_near = |shared: &Value| {
        let phases = shared["contention"]["phases"].as_array().unwrap();
        let mut targets = phases.iter().zip([7.0, 12.0]);
        let is_near = |of: &Value, target: f64, most: f64| {
            let mean = of["mean"].as_f64();
            mean.is_some_and(|mean| (0.85..most).contains(&(mean / target)))
        };
        targets.all(|(phase, target)| {
            is_near(phase, target, 1.15) && is_near(&phase["client"], target, 2.5)
        })
    };
    let (shared, output) = again(attempt, |(shared, _)| are_near(shared));
    let phases = &shared["contention"]["phases"];
    assert!(are_near(&shared), "{phases}");
    assert_eq!(phases.as_array().map(Vec::len), Some(2), "{output:?}");
    assert!(
        phases[0]["target"] == 7.0 && phases[1]["target"] == 12.0,
        "{phases}"
    );
    let workers = shared["workers"].as_array().unwrap();
    for worker in workers {
        assert!(worker["committed"].as_u64().unwrap() > 20, "{worker}");
    }
}
