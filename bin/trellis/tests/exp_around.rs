//! What is around a run of `trellis bench exp`: workers, scripts of stores, programs, metrics.

use peer::again;
use serde_json::Value;
use servers::Kind;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_trellis");
/// Far longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(120);

/// An empty folder that goes with its owner.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("trellis-around-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn start(&self, text: &str, more: &[&str]) -> Child {
        fs::write(self.0.join("a.yaml"), text).expect("a file");
        let mut command = Command::new(PROGRAM);
        command
            .args(["bench", "exp", "a.yaml"])
            .args(more)
            .current_dir(&self.0);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().expect("the program runs")
    }

    fn run(&self, text: &str, more: &[&str]) -> Output {
        // Results of an earlier run are none of this one.
        let _ = fs::remove_dir_all(self.0.join("a.yaml.results"));
        self.start(text, more).wait_with_output().expect("it ends")
    }

    /// The results of all runs, which must have ended well. A run in which nothing was answered is
    /// made again: the machine stood still.
    fn results(&self, text: &str) -> Vec<Value> {
        self.results_before(text, &|| {})
    }

    /// The same, with something to be done before each try.
    fn results_before(&self, text: &str, before: &dyn Fn()) -> Vec<Value> {
        let run = || {
            before();
            let output = self.run(text, &[]);
            let results = self.told();
            (output, results)
        };
        let (output, results) = again(run, |(output, results)| {
            let mut verdicts = results.iter().map(|result| &result["verdict"]);
            output.status.success() || !verdicts.any(|it| it == "nothing")
        });
        let said = said(&output);
        assert!(output.status.success(), "{text}: {said}");
        results
    }

    /// The results that are there.
    fn told(&self) -> Vec<Value> {
        let all = fs::read_dir(self.0.join("a.yaml.results"));
        let all = all.into_iter().flatten().flatten();
        let mut runs: Vec<PathBuf> = all.map(|it| it.path()).collect();
        runs.retain(|path| path.join("result.json").exists());
        runs.sort();
        let read = |run: &PathBuf| {
            let text = fs::read_to_string(run.join("result.json")).expect("a result");
            let value: Value = serde_json::from_str(&text).expect("it is JSON");
            value["result"].clone()
        };
        runs.iter().map(read).collect()
    }

    /// What a run says that fails.
    fn fails(&self, text: &str) -> String {
        let output = self.run(text, &[]);
        assert_eq!(output.status.code(), Some(1), "{text}: {}", said(&output));
        said(&output)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left of it is in the folder of temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// A worker and where it listens; killed when dropped.
struct Worker {
    child: Child,
    address: String,
}

impl Worker {
    fn start() -> Worker {
        let mut command = Command::new(PROGRAM);
        command.args(["bench", "worker", "--listen", "127.0.0.1:0"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let line = lines.next().expect("a line").expect("a text");
        let address = line.rsplit(' ').next().expect("an address").to_owned();
        // It must not stop at a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Worker { child, address }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Numbers of processes whose command line has this word.
fn processes(word: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("it is there").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has_word = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0)
            .any(|it| it == word.as_bytes())
    };
    pids.filter(has_word).collect()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < until, "waiting until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sessions that arrive for a second, update once and go; nothing depends on time.
fn arrivals(url: &str, workers: &[&Worker]) -> String {
    let workers: Vec<String> = workers
        .iter()
        .map(|it| format!("{:?}", it.address))
        .collect();
    format!(
        "store: {{url: \"{url}\"}}\n\
         workload: {{name: micro, parameters: {{users: 200}}, states: {{\
         START: {{UPDATE_PERSONAL: 1}},\
         UPDATE_PERSONAL: {{UPDATE_PERSONAL: 0.5, READ_PERSONAL: 0.3, END: rest}},\
         READ_PERSONAL: {{END: 1}}}}}}\n\
         population: {{kind: open, threads: 4, rate: \"step:60@0,0.001@1\"}}\n\
         phases: {{warmup_s: 0, measure_s: 3}}\nworkers: [{}]\n",
        workers.join(", ")
    )
}

#[test]
fn workers_have_the_inputs_of_one_process() {
    let Some(server) = peer::start(Kind::Redis, &[]) else {
        return;
    };
    let folder = Folder::new("inputs");
    let (one, two) = (Worker::start(), Worker::start());
    let counts = |workers: &[&Worker]| {
        let text = arrivals(&server.url(""), workers);
        // All have come and gone, unless the machine stood still.
        let result = again(
            || folder.results(&text).remove(0),
            |result| result["sessions"]["begun"] == result["sessions"]["ended"],
        );
        assert_eq!(result["verdict"], "passed", "{result}");
        assert_eq!(result["check"]["made"], true);
        let told = result["workers"].as_array().expect("a list");
        assert_eq!(told.len(), workers.len());
        for (told, worker) in told.iter().zip(workers) {
            assert_eq!(told["address"], worker.address.as_str());
            assert!(told["answered"].as_u64() > Some(0), "{told}");
        }
        let clients = result["clients"]["series"].as_array().expect("a list");
        assert_eq!(clients.len(), workers.len().max(1), "{result}");
        assert!(
            clients[0]["mean"]["memory_bytes"].as_f64() > Some(1e6),
            "{clients:?}"
        );
        assert_eq!(
            result["timeline"]["seconds"].as_array().map(Vec::len),
            Some(3)
        );
        let count = |it: &Value| (it["from"].clone(), it["to"].clone(), it["count"].clone());
        let transitions = result["transitions"].as_array().expect("a list");
        let transitions: Vec<_> = transitions.iter().map(count).collect();
        let histogram = |it: &Value| {
            let pairs = it["response_us"]["histogram"]
                .as_array()
                .expect("pairs")
                .iter();
            let sum: u64 = pairs.map(|pair| pair[1].as_u64().expect("a count")).sum();
            assert_eq!(Some(sum), it["answered"].as_u64());
            (it["name"].clone(), sum)
        };
        let interactions = result["interactions"].as_array().expect("a list");
        let interactions: Vec<_> = interactions.iter().map(histogram).collect();
        (transitions, interactions, result["sessions"].clone())
    };
    let none = counts(&[]);
    assert_eq!(counts(&[&one]), none);
    assert_eq!(counts(&[&one, &two]), none);
}

#[test]
fn a_lost_worker_leaves_no_number() {
    let Some(server) = peer::start(Kind::Redis, &[]) else {
        return;
    };
    let folder = Folder::new("lost");
    let (one, mut two) = (Worker::start(), Worker::start());
    let text = arrivals(&server.url(""), &[&one, &two]).replace("measure_s: 3", "measure_s: 600");
    let child = folder.start(&text, &[]);
    // In the middle of the run.
    std::thread::sleep(Duration::from_secs(2));
    two.child.kill().expect("it runs");
    let begun = Instant::now();
    let output = child.wait_with_output().expect("it ends");
    assert!(begun.elapsed() < LIMIT);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("was lost"), "{}", said(&output));
    // The other one is free again.
    let results = folder.results(&arrivals(&server.url(""), &[&one]));
    assert_eq!(results[0]["verdict"], "passed");
    let text = arrivals(&server.url(""), &[&one]).replace(&one.address, "127.0.0.1:1");
    assert!(folder.fails(&text).contains("no worker listens there"));
}

#[test]
fn workers_do_not_share_the_memory_of_a_process() {
    let folder = Folder::new("memory");
    let said = folder.fails("workers: [\"127.0.0.1:7000\"]\n");
    assert!(
        said.contains("line 1, key workers: the store in memory"),
        "{said}"
    );
}

/// A store whose server is this: it goes to the background, out of its session, and says where.
/// `first` is what the server does first.
fn daemon(word: &str, first: &str) -> String {
    format!(
        "store:\n  start: |\n    setsid sh -c '{first} sleep {word} & wait' &\n    \
         echo url=memory:\nphases: {{warmup_s: 0, measure_s: 0.3}}\n"
    )
}

#[test]
fn scripts_start_reset_and_stop_a_store() {
    let folder = Folder::new("scripts");
    let word = format!("300.{}", std::process::id());
    let text = daemon(&word, "").replace("phases", "  stop: echo stop >> said\nphases");
    let text = text.replace(
        "    setsid",
        "    echo start $TRELLIS_STORE_URL >> said\n    setsid",
    );
    let twice = format!("{text}vary: {{seed: [1, 2]}}\n");
    let forget = || {
        let _ = fs::remove_file(folder.0.join("said"));
    };
    let results = folder.results_before(&twice, &forget);
    assert_eq!(results.len(), 2);
    let servers = results[0]["servers"]["series"].as_array().expect("a list");
    assert_eq!(servers[0]["name"], "store", "{servers:?}");
    assert_eq!(results[0]["store_url"], "memory:");
    let told = || {
        let told = fs::read_to_string(folder.0.join("said")).expect("they were told");
        told.replace(' ', "=")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(told(), "start=memory: stop start=memory: stop");
    assert!(processes(&word).is_empty(), "everything has ended");
    // With a reset it stays for the next run.
    let reset = twice.replace("  stop:", "  reset: echo reset >> said\n  stop:");
    folder.results_before(&reset, &forget);
    assert_eq!(told(), "start=memory: reset stop");
    assert!(processes(&word).is_empty(), "everything has ended");
}

#[test]
fn what_a_script_says_last_is_told_when_it_fails() {
    let folder = Folder::new("failing");
    let short = "phases: {warmup_s: 0, measure_s: 0.2}\n";
    let said = folder.fails(&format!(
        "store: {{start: 'echo no disk >&2; exit 3'}}\n{short}"
    ));
    assert!(
        said.contains("store.start: it has ended with 3") && said.contains("no disk"),
        "{said}"
    );
    let begun = Instant::now();
    let word = format!("301.{}", std::process::id());
    let text = format!("store: {{start: 'echo slowly; sleep {word}', script_s: 3}}\n{short}");
    let said = folder.fails(&text);
    assert!(
        said.contains("cannot be used after 3 s") && said.contains("slowly"),
        "{said}"
    );
    assert!(begun.elapsed() < LIMIT);
    assert!(processes(&word).is_empty());
    // It ends well, and there is nothing.
    let said = folder.fails(&format!(
        "store: {{start: 'echo url=redis://127.0.0.1:1', script_s: 3}}\n{short}"
    ));
    assert!(said.contains("127.0.0.1:1"), "{said}");
    let said = folder.fails(&format!("store: {{reset: 'echo full; exit 1'}}\n{short}"));
    assert!(
        said.contains("store.reset: it has ended with 1") && said.contains("full"),
        "{said}"
    );
}

#[test]
fn everything_ends_with_the_experiment_however_it_ends() {
    let folder = Folder::new("ends");
    for signal in ["INT", "KILL"] {
        let word =
            format!("302.{signal}{}", std::process::id()).replace(['I', 'K', 'N', 'T', 'L'], "1");
        // It does not want to end.
        let text = daemon(&word, "trap \"\" TERM HUP;");
        let text = text.replace("measure_s: 0.3", "measure_s: 100");
        let _ = fs::remove_dir_all(folder.0.join("a.yaml.results"));
        let child = folder.start(&text, &[]);
        wait_until("the store runs", || !processes(&word).is_empty());
        let pid = child.id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{signal}"), &pid])
            .status();
        assert!(sent.expect("kill runs").success());
        let output = child.wait_with_output().expect("it ends");
        if signal == "INT" {
            assert_eq!(output.status.code(), Some(130), "{}", said(&output));
        }
        wait_until("the store has ended", || processes(&word).is_empty());
    }
}

#[test]
fn a_program_is_a_workload() {
    let folder = Folder::new("program");
    let text = "workload:\n  name: counting\n  parameters: {much: 5}\n  program: |\n    \
                grep -q '\"much\": 5' \"$TRELLIS_DOCUMENT\" || exit 9\n    echo begins >&2\n    \
                echo '{\"verdict\": \"passed\", \"per_s\": 12.5, \"interactions\": \
                [{\"name\": \"A\", \"response_us\": {\"p50\": 70, \"p99\": 90}}]}'\n\
                vary: {seed: [1, 2]}\n";
    let results = folder.results(text);
    assert_eq!(results.len(), 2);
    assert_eq!(results[0]["per_s"], 12.5);
    assert_eq!(results[0]["workload"], "counting");
    let summary = fs::read_to_string(folder.0.join("a.yaml.results/summary.json"));
    assert!(summary.expect("a summary").contains("12.5"));
    let said = folder.fails("workload: {program: 'echo oh no >&2; exit 4'}\n");
    assert!(
        said.contains("ended with 4") && said.contains("oh no"),
        "{said}"
    );
    let said = folder.fails("workload: {program: 'echo done'}\n");
    assert!(said.contains("an object of JSON"), "{said}");
    let begun = Instant::now();
    let said = folder.fails("workload: {program: 'sleep 1000', limit_s: 0.3}\n");
    assert!(said.contains("longer than 0.3 s"), "{said}");
    assert!(begun.elapsed() < LIMIT);
}

#[test]
fn tpcc_is_a_document() {
    let folder = Folder::new("tpcc");
    let said = folder.fails("extends: tpcc\nstore: {url: 'redis://h'}\n");
    assert!(said.contains("redis") || said.contains("url"), "{said}");
    let said =
        folder.fails("extends: [postgres, tpcc]\nworkload: {parameters: {json: out.json}}\n");
    assert!(said.contains("--json is not"), "{said}");
    assert!(!folder.0.join("out.json").exists());
}

#[test]
fn metrics_are_there_while_it_runs() {
    let folder = Folder::new("metrics");
    let text = "population: {sessions: 2, think_time: 1}\nphases: {warmup_s: 1, measure_s: 600}\n";
    let mut child = folder.start(text, &["--metrics", "127.0.0.1:0"]);
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    let address = line
        .trim()
        .strip_prefix("metrics: http://")
        .expect("an address");
    let address = address
        .strip_suffix("/metrics")
        .expect("its path")
        .to_owned();
    let scrape = || {
        let mut stream = TcpStream::connect(&address).expect("it listens");
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\n\r\n")
            .expect("it takes requests");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        text
    };
    wait_until("something is counted", || {
        scrape().contains("trellis_bench_committed_total{kind=\"UPDATE_PERSONAL\"}")
    });
    assert!(scrape().contains("trellis_bench_response_seconds"));
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status();
    assert!(sent.expect("kill runs").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}

/// What another machine would have to do by these files is what this program does.
#[test]
fn the_example_for_kubernetes_names_options_that_exist() {
    let folder = Folder::new("kubernetes");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/experiments/kubernetes");
    let mut commands = 0;
    for file in ["workers.yaml", "experiment.yaml"] {
        let text = fs::read_to_string(path.join(file)).expect("it is there");
        for part in text.split("\n---\n") {
            let value = experiment::read_yaml(file, part).unwrap_or_else(|it| panic!("{it}"));
            for key in ["apiVersion", "kind", "metadata"] {
                assert!(!value[key].is_null(), "{file}: {key} in {part}");
            }
            if let Some(text) = value["data"]["experiment.yaml"].as_str() {
                fs::write(folder.0.join("experiment.yaml"), text).expect("a file");
                let mut command = Command::new(PROGRAM);
                command.args(["bench", "exp", "experiment.yaml", "--print-resolved"]);
                let output = command.current_dir(&folder.0).output().expect("it runs");
                assert!(output.status.success(), "{}", said(&output));
            }
            let containers = value["spec"]["template"]["spec"]["containers"].as_array();
            for container in containers.into_iter().flatten() {
                let words = |key: &str| {
                    let words = container[key].as_array().into_iter().flatten();
                    let words = words.map(|it| it.as_str().expect("a text").to_owned());
                    words.collect::<Vec<String>>()
                };
                let line = [words("command"), words("args")].concat();
                assert_eq!(line[0], "trellis");
                // An option that does not exist is told before anything else is done.
                let mut command = Command::new(PROGRAM);
                let output = command
                    .args(&line[1..])
                    .arg("--help")
                    .output()
                    .expect("it runs");
                assert!(output.status.success(), "{line:?}: {}", said(&output));
                let help = said(&output);
                for option in line.iter().filter(|word| word.starts_with("--")) {
                    assert!(help.contains(option.as_str()), "{option}");
                }
                commands += 1;
            }
        }
    }
    assert_eq!(commands, 2);
}
