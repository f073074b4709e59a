//! `trellis bench exp` and `trellis bench report`, as a user calls them.

use peer::again;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// An empty folder that goes with its owner.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("trellis-exp-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("a file");
    }

    fn bench(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trellis"));
        command.arg("bench").args(arguments).current_dir(&self.0);
        command.output().expect("the program runs")
    }

    /// What it printed; it must have ended well.
    fn says(&self, arguments: &[&str]) -> String {
        let output = self.bench(arguments);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}{wrong}");
        said
    }

    /// What an experiment printed, which must have ended well. It is made again where a run has
    /// answered nothing, because the machine stood still.
    fn passes(&self, arguments: &[&str]) -> String {
        let results = match arguments {
            ["exp", _, "--out", results] => (*results).to_owned(),
            ["exp", file] => format!("{file}.results"),
            other => panic!("{other:?}"),
        };
        let run = || {
            // Those of a try before this one.
            let _ = fs::remove_dir_all(self.0.join(&results));
            self.bench(arguments)
        };
        let output = again(run, |output| {
            output.status.success() || !self.has_nothing(&results)
        });
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}{wrong}");
        said
    }

    /// Whether a run in a folder of results has answered nothing.
    fn has_nothing(&self, results: &str) -> bool {
        let runs = match self.0.join(results).exists() {
            true => self.runs(results),
            false => Vec::new(),
        };
        let mut files = runs.iter().map(|run| run.join("result.json"));
        files.any(|file| file.exists() && self.json(&file)["result"]["verdict"] == "nothing")
    }

    /// Why it failed.
    fn fails(&self, arguments: &[&str]) -> String {
        let output = self.bench(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn json(&self, path: &Path) -> Value {
        let text = fs::read_to_string(self.0.join(path)).expect("the file is there");
        serde_json::from_str(&text).expect("it is JSON")
    }

    /// Folders of the runs in a folder of results.
    fn runs(&self, results: &str) -> Vec<PathBuf> {
        let all = fs::read_dir(self.0.join(results)).expect("a folder");
        let mut runs: Vec<PathBuf> = all.map(|it| it.expect("an entry").path()).collect();
        runs.retain(|path| path.is_dir());
        runs.sort();
        runs
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left of it is in the folder of temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_hostile_program_ends_at_its_limits() {
    let folder = Folder::new("hostile");
    for (name, text, says) in [
        (
            "time",
            "local f(x) = f(x + 1) tailstrict; f(0)",
            "longer than 10 s",
        ),
        (
            "memory",
            "local f(n) = if n == 0 then 'x' else local y = f(n - 1); y + y; { name: f(60) }",
            "more than 256 MiB",
        ),
        (
            "range",
            "std.foldl(function(a, b) a + b, std.range(1, 1e9), 0)",
            "more than 256 MiB",
        ),
        (
            "depth",
            "local f(x) = 1 + f(x + 1); f(0)",
            "more than 500 deep",
        ),
        ("outside", "import '/etc/passwd'", "outside of the folder"),
        ("large", "std.repeat('x', 100000000)", "MiB"),
    ] {
        let file = format!("{name}.jsonnet");
        folder.put(&file, text);
        let begun = Instant::now();
        let said = folder.fails(&["exp", &file, "--print-resolved"]);
        assert!(said.contains(&file) && said.contains(says), "{said}");
        assert!(begun.elapsed() < Duration::from_secs(120), "{file}");
    }
}

#[test]
fn the_schema_and_the_templates_are_told() {
    let folder = Folder::new("told");
    let schema: Value = serde_json::from_str(&folder.says(&["exp", "--schema"])).expect("JSON");
    assert!(schema["properties"]["vary"].is_object());
    let templates = folder.says(&["exp", "--templates"]);
    let names = templates
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = names.collect();
    assert!(
        names.contains(&"micro-personal") && names.contains(&"auction"),
        "{templates}"
    );
    for name in names {
        // Sessions that never end cannot arrive.
        let workload = match name {
            "open" => "micro-messages, ",
            "tpcc" => "postgres, ",
            _ => "",
        };
        folder.put("a.yaml", &format!("extends: [{workload}{name}]\n"));
        folder.says(&["exp", "a.yaml", "--print-resolved"]);
    }
    folder.put(
        "a.jsonnet",
        "[{ extends: 'redis', seed: s } for s in [1, 2]]",
    );
    let resolved = folder.says(&["exp", "a.jsonnet", "--print-resolved"]);
    folder.put("again.json", &resolved);
    assert_eq!(
        folder.says(&["exp", "again.json", "--print-resolved"]),
        resolved
    );
}

/// The ready experiment, with shorter phases.
fn quick() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("../../bench/experiments/examples/quick.yaml");
    let text = fs::read_to_string(path).expect("it is there");
    assert!(text.lines().count() <= 10, "{text}");
    let short = text.replace(
        "warmup_s: 0.5, measure_s: 3",
        "warmup_s: 0.1, measure_s: 0.4",
    );
    assert_ne!(short, text);
    short
}

#[test]
fn the_first_experiment_runs_on_memory() {
    let folder = Folder::new("quick");
    folder.put("quick.yaml", &quick());
    let said = folder.passes(&["exp", "quick.yaml"]);
    assert!(
        said.contains("run 1 of 1") && said.contains("passed"),
        "{said}"
    );
    let runs = folder.runs("quick.yaml.results");
    assert_eq!(runs.len(), 1);
    let result = folder.json(&runs[0].join("result.json"));
    assert_eq!(result["status"], "done", "{result}");
    assert_eq!(result["result"]["check"]["passed"], true, "{result}");
    let update = &result["result"]["interactions"][0];
    assert_eq!(update["name"], "UPDATE_PERSONAL");
    assert!(update["answered"].as_u64() > Some(0), "{update}");
    let page = fs::read_to_string(folder.0.join("quick.yaml.results/report.html"));
    let page = page.expect("the page is there");
    assert!(
        page.contains(">passed<") && !page.contains("src=\"http"),
        "it stands for itself"
    );
    // The same document again, which has the same inputs.
    let resolved = fs::read_to_string(runs[0].join("resolved.json")).expect("the document");
    folder.put("resolved.json", &resolved);
    assert_eq!(
        folder.says(&["exp", "resolved.json", "--print-resolved"]),
        resolved
    );
    folder.passes(&["exp", "resolved.json", "--out", "again"]);
    let again = folder.json(&folder.runs("again")[0].join("result.json"));
    assert_eq!(again["id"], result["id"]);
}

#[test]
fn ready_experiments_resolve() {
    let folder = Folder::new("ready");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/experiments/examples");
    let path = path.canonicalize().expect("it is there");
    let mut ran = Vec::new();
    for file in fs::read_dir(&path).expect("a folder") {
        let file = file.expect("a file").path();
        let name = file.display().to_string();
        let resolved = folder.says(&["exp", &name, "--print-resolved"]);
        let resolved: Value = serde_json::from_str(&resolved).expect("JSON");
        let all = match resolved {
            Value::Array(all) => all,
            one => vec![one],
        };
        // Those that need no server run, for a moment.
        let is_in_memory =
            |it: &Value| it["store"]["url"] == "memory:" && it["store"]["start"].is_null();
        let in_memory = all.into_iter().filter(is_in_memory);
        let mut in_memory: Vec<Value> = in_memory.take(2).collect();
        for document in &mut in_memory {
            document["phases"] = json!({ "warmup_s": 0.1, "measure_s": 0.3 });
        }
        if !in_memory.is_empty() {
            folder.put("short.json", &Value::Array(in_memory).to_string());
            let out = file.file_stem().unwrap_or_default().to_string_lossy();
            let out = format!("out-{out}");
            let said = folder.passes(&["exp", "short.json", "--out", &out]);
            assert!(said.contains("passed"), "{name}: {said}");
            ran.push(out);
        }
    }
    ran.sort();
    assert_eq!(ran, ["out-back-off", "out-quick", "out-stores", "out-ycsb"]);
}

#[test]
fn a_sweep_goes_on_and_a_report_compares() {
    let folder = Folder::new("sweep");
    folder.put(
        "a.yaml",
        &format!("{}vary: {{population.sessions: [1, 2]}}\n", quick()),
    );
    folder.passes(&["exp", "a.yaml", "--out", "r"]);
    let said = folder.fails(&["exp", "a.yaml", "--out", "r"]);
    assert!(said.contains("--resume"), "{said}");
    // A run that was killed has its document and no result.
    let runs = folder.runs("r");
    let first = fs::read_to_string(runs[0].join("result.json")).expect("a result");
    fs::remove_file(runs[1].join("result.json")).expect("there was one");
    let partial = folder.bench(&["report", "r"]);
    assert_eq!(partial.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&partial.stdout).contains("1 runs have not ended"));
    let resumed = || {
        let _ = fs::remove_file(runs[1].join("result.json"));
        folder.bench(&["exp", "a.yaml", "--out", "r", "--resume"])
    };
    let resumed = again(resumed, |_| !folder.has_nothing("r"));
    let said = String::from_utf8_lossy(&resumed.stdout);
    assert!(resumed.status.success(), "{resumed:?}");
    assert!(
        said.contains("run 1 of 2: sessions 1: it has a result"),
        "{said}"
    );
    let kept = fs::read_to_string(runs[0].join("result.json")).expect("a result");
    assert_eq!(kept, first);
    assert!(runs[1].join("result.json").exists());
    folder.says(&["report", "r"]);
    let summary = folder.json(Path::new("r/summary.json"));
    assert_eq!(summary["passed"], true);
    assert_eq!(summary["rows"].as_array().map(Vec::len), Some(2));
    assert_eq!(summary["rows"][1]["labels"]["sessions"], 2);
}

#[test]
fn what_a_run_would_refuse_is_refused_before_it() {
    let folder = Folder::new("refused");
    for (text, says) in [
        (
            "workload: {name: tpcz}",
            "a.yaml, line 1, key workload.name: ",
        ),
        (
            "extends: closed\nworkload:\n  parameters: {user: 3}",
            "line 3, key workload.parameters.user",
        ),
        ("population: {kind: open}", "line 1, key population.rate"),
        (
            "vary:\n  seed: [1]\n  population.kind: [open]",
            "line 3, key population",
        ),
        (
            "store: {url: [memory]}",
            "line 1, key store.url: this is a list",
        ),
    ] {
        folder.put("a.yaml", text);
        let said = folder.fails(&["exp", "a.yaml"]);
        assert!(said.contains(says), "{text}: {said}");
        assert!(!folder.0.join("a.yaml.results").exists());
    }
    folder.put(
        "a.yaml",
        "store: {url: 'redis://127.0.0.1:1'}\nphases: {measure_s: 0.1}\n",
    );
    let output = folder.bench(&["exp", "a.yaml"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("failed: ") && said.contains("127.0.0.1:1"),
        "{said}"
    );
    let result = folder.json(&folder.runs("a.yaml.results")[0].join("result.json"));
    assert_eq!(result["status"], "failed");
}

/// The documents on the page about workloads of one's own.
fn own_documents() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(path.join("../../docs/benchmark/own_workload.md"));
    let page = page.expect("the page is there");
    let blocks = page.split("```yaml\n").skip(1);
    let documents = blocks.map(|block| block.split("```").next().unwrap_or_default().to_owned());
    documents.collect()
}

/// From an empty folder to a comparison of two stores, as the page says; and its other documents.
#[test]
fn the_page_about_own_workloads_is_true() {
    let documents = own_documents();
    let [two, states, data] = documents.as_slice() else {
        panic!("the page has three documents: {documents:?}");
    };
    assert!(two.lines().count() <= 10, "{two}");
    let folder = Folder::new("own");
    let short = "phases: {warmup_s: 0.1, measure_s: 0.4}\n";
    folder.put("states.yaml", &format!("{states}{short}"));
    let said = folder.passes(&["exp", "states.yaml"]);
    assert!(said.contains("passed"), "{said}");
    if let Some(redis) = peer::start(servers::Kind::Redis, &[]) {
        let two = two.replace("phases: {warmup_s: 1, measure_s: 5}\n", short);
        let two = two.replace("127.0.0.1:6379", &redis.address().to_string());
        assert!(two.contains(short), "{two}");
        folder.put("two.yaml", &two);
        let said = folder.passes(&["exp", "two.yaml"]);
        assert!(said.contains("run 6 of 6"), "{said}");
        let summary = folder.json(Path::new("two.yaml.results/summary.json"));
        assert_eq!(summary["passed"], true);
        assert_eq!(summary["rows"].as_array().map(Vec::len), Some(2));
        assert!(folder.0.join("two.yaml.results/report.html").exists());
    }
    if let Some(postgres) = peer::start(servers::Kind::Postgres, &[]) {
        let data = data.replace("127.0.0.1:5432", &postgres.address().to_string());
        folder.put("data.yaml", &format!("{data}{short}"));
        let said = folder.passes(&["exp", "data.yaml"]);
        assert!(said.contains("passed"), "{said}");
    }
}
