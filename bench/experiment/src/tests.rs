//! Golden scripts of the language (`testdata/*`), and what a folder of results keeps.
//!
//! `file NAME` begins a file, `| TEXT` adds a line to it. `resolve NAME [PATH..]` tells each run by
//! the values at these paths, or all of it; `store URL` gives the next one `--store URL`.

use crate::child::Evaluator;
use crate::resolve::{Experiment, Resolved, resolve};
use crate::suite::{Ended, Said, Tally};
use crate::template;
use crate::tree::DEPTH_MAX;
use golden::Machine;
use serde_json::{Value, json};
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder that goes with its owner.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("experiment-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a scratch folder");
        Scratch(path)
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left of it is in the folder of temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Script {
    folder: Scratch,
    file: String,
    text: String,
    store: Option<String>,
}

impl Machine for Script {
    fn command(&mut self, line: &str, trace: &mut String) {
        if let Some(text) = line.strip_prefix('|') {
            self.text.push_str(text.strip_prefix(' ').unwrap_or(text));
            self.text.push('\n');
            self.folder.put(&self.file, &self.text);
            return;
        }
        let mut words = line.split(' ');
        match (words.next(), words.next()) {
            (Some("file"), Some(name)) => {
                name.clone_into(&mut self.file);
                self.text.clear();
                self.folder.put(name, "");
            }
            (Some("store"), Some(url)) => self.store = Some(url.to_owned()),
            (Some("resolve"), Some(name)) => {
                let paths: Vec<&str> = words.collect();
                let path = self.folder.0.join(name);
                let found = resolve(&path, self.store.take().as_deref(), &Evaluator::Here);
                let told = match found {
                    Ok(found) => told(&found, &paths),
                    Err(mistake) => format!("{mistake}\n"),
                };
                let folder = format!("{}/", self.folder.0.display());
                trace.push_str(&told.replace(&folder, ""));
            }
            _ => panic!("{line} is no command"),
        }
    }
}

fn told(found: &Experiment, paths: &[&str]) -> String {
    let mut out = String::new();
    for trace in &found.traces {
        out += &format!("trace {trace}\n");
    }
    for run in &found.runs {
        if paths.is_empty() {
            out += &run.text();
            continue;
        }
        let value = |path: &&str| {
            let value = run.value().pointer(&format!("/{}", path.replace('.', "/")));
            value.map_or(String::from("-"), Value::to_string)
        };
        out += &paths.iter().map(value).collect::<Vec<String>>().join(" ");
        out.push('\n');
    }
    out
}

#[test]
fn the_language_does_what_its_scripts_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    golden::run_folder(&folder, || Script {
        folder: Scratch::new(),
        file: String::new(),
        text: String::new(),
        store: None,
    });
}

fn resolved(path: &Path) -> Vec<Resolved> {
    let found = resolve(path, None, &Evaluator::Here);
    found.unwrap_or_else(|mistake| panic!("{mistake}")).runs
}

#[test]
fn templates_and_examples_resolve_and_do_so_again() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments");
    let ready = ["examples", "strudel"].map(|name| folder.join(name));
    let ready = ready
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("it is there"));
    let mut paths: Vec<PathBuf> = ready.map(|it| it.expect("a file").path()).collect();
    let scratch = Scratch::new();
    for (name, about) in template::all() {
        assert!(
            about.len() > 10 && about.contains(": "),
            "{name} says what it is: {about}"
        );
        paths.push(scratch.put(&format!("{name}.yaml"), &format!("extends: {name}\n")));
    }
    for path in paths {
        for run in resolved(&path) {
            let again = scratch.put("again.json", &run.text());
            let again = resolved(&again);
            assert_eq!(again.len(), 1);
            assert_eq!(again[0].text(), run.text(), "{}", path.display());
        }
    }
}

#[test]
fn the_paper_s_figure_7_takes_at_most_14_lines() {
    for name in ["figure7.yaml", "figure7.jsonnet"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/examples");
        let text = fs::read_to_string(folder.join(name)).expect("it is there");
        assert!(text.lines().count() <= 14, "{name}");
        let runs = resolved(&folder.join(name));
        let seen: Vec<(u64, u64, u64)> = runs
            .iter()
            .map(|run| {
                let value = run.value();
                let number = |path: &str| value.pointer(path).and_then(Value::as_u64).unwrap_or(0);
                let url = value["store"]["url"].as_str().unwrap_or_default();
                let servers = 1 + url.matches(',').count() as u64;
                let users = number("/workload/parameters/users");
                (number("/population/sessions"), users, servers)
            })
            .collect();
        let expected = [(100, 10_000), (200, 20_000), (400, 40_000)]
            .into_iter()
            .flat_map(|(sessions, users)| [5, 10].map(|servers| (sessions, users, servers)));
        assert_eq!(seen, expected.collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn what_a_run_finds_wrong_has_its_line() {
    let scratch = Scratch::new();
    let path = scratch.put(
        "a.yaml",
        "extends: micro-personal\nvary:\n  workload.parameters.users: [5, -1]\n",
    );
    let runs = resolved(&path);
    let said = runs[1]
        .mistake("workload.parameters.users", "-1 is wrong")
        .to_string();
    assert!(
        said.ends_with("a.yaml, line 3, key workload.parameters.users: -1 is wrong"),
        "{said}"
    );
    let said = runs[0]
        .mistake("workload.parameters.items_per_user.x", "it is missing")
        .to_string();
    assert!(said.contains("template:micro-personal, line 4"), "{said}");
}

fn run_all(path: &Path, out: &Path, resume: bool, stop_at: usize) -> Result<Tally, String> {
    let found = resolve(path, None, &Evaluator::Here).expect("it resolves");
    let count = Cell::new(0);
    let mut run = |document: &Value, _: &Path| {
        count.set(count.get() + 1);
        assert!(document.get("format").is_none());
        match document["seed"].as_u64() {
            _ if count.get() > stop_at => Ended::Stopped,
            Some(3) => Ended::Failed(String::from("no server")),
            seed => Ended::Done(json!({ "verdict": "passed", "per_s": seed })),
        }
    };
    let ended = found.run(out, resume, &mut run, &mut |_: Said<'_>| {});
    ended.map_err(|error| error.to_string())
}

#[test]
fn ended_runs_are_kept_and_others_are_run_again() {
    let scratch = Scratch::new();
    let path = scratch.put("a.yaml", "vary: {seed: [1, 2, 3, 4]}\n");
    let out = scratch.0.join("out");
    let tally = |done, failed, left| Ok(Tally { done, failed, left });
    assert_eq!(run_all(&path, &out, false, 2), tally(2, 0, 2));
    // A run that was stopped has its document and no result.
    let folders = || {
        let all = fs::read_dir(&out).expect("it is there");
        let mut names: Vec<String> = all
            .filter_map(|it| it.ok()?.file_name().into_string().ok())
            .collect();
        names.retain(|name| name.starts_with("00"));
        names.sort();
        names
    };
    assert_eq!(folders().len(), 3);
    assert!(out.join(&folders()[2]).join("resolved.json").exists());
    assert!(!out.join(&folders()[2]).join("result.json").exists());
    let said = run_all(&path, &out, false, 9).unwrap_err();
    assert!(said.contains("--resume keeps"), "{said}");
    // A damaged result is none.
    fs::write(
        out.join(&folders()[0]).join("result.json"),
        "{\"format\": 1",
    )
    .expect("a file");
    assert_eq!(run_all(&path, &out, true, 2), tally(2, 1, 1));
    // Failed runs are run again.
    assert_eq!(run_all(&path, &out, true, 2), tally(3, 1, 0));
    // Runs in front of the others change numbers and no results.
    scratch.put("a.yaml", "vary: {seed: [9, 1, 2, 4]}\n");
    assert_eq!(run_all(&path, &out, true, 1), tally(4, 0, 0));
    scratch.put("b.yaml", "name: b\n");
    let said = run_all(&scratch.0.join("b.yaml"), &out, true, 9).unwrap_err();
    assert!(
        said.contains("holds the results of the experiment \"a\""),
        "{said}"
    );
    let said = run_all(&scratch.0.join("b.yaml"), &scratch.0, false, 9).unwrap_err();
    assert!(said.contains("it holds files"), "{said}");
    let report = crate::report::Report::read(&out).expect("a report");
    assert!(report.passed(), "{}", report.table());
    let html = report.html();
    assert!(html.contains("passed") && !html.contains("NaN"), "{html}");
}

#[test]
fn a_failed_run_has_no_numbers_and_no_zeros_in_their_place() {
    let outcome = |reason: Option<&str>, result: Value, sessions: u64| {
        Some(crate::folder::Outcome {
            reason: reason.map(str::to_owned),
            took_s: 1.0,
            document: json!({ "population": { "sessions": sessions } }),
            result,
        })
    };
    let done = json!({ "verdict": "passed", "per_s": 20.0,
        "interactions": [{ "name": "A", "retried": 0, "response_us": { "p50": 9, "p99": 9 } }] });
    let outcomes = [
        outcome(None, done, 1),
        outcome(Some("no server"), Value::Null, 2),
    ];
    let report = crate::report::Report::of(String::from("a"), &outcomes);
    let table = report.table();
    let cells = table.lines().map(|line| line.split_whitespace().collect());
    let cells: Vec<Vec<&str>> = cells.collect();
    assert_eq!(cells[1][1], "20.0", "{table}");
    assert_eq!(cells[1][6..], ["0", "passed"], "{table}");
    let failed = ["2", "no", "number", "-", "-", "-", "failed"];
    assert_eq!(cells[2], failed, "{table}");
    assert!(!report.html().contains(">-0<"));
}

#[test]
fn equal_runs_and_folders_in_use_are_refused() {
    let scratch = Scratch::new();
    let path = scratch.put("a.yaml", "vary: {seed: [1, 1]}\n");
    let said = run_all(&path, &scratch.0.join("out"), false, 9).unwrap_err();
    assert!(said.contains("runs 1 and 2 are the same"), "{said}");
    let nothing = crate::report::Report::read(&scratch.0)
        .unwrap_err()
        .to_string();
    assert!(nothing.contains("no results of an experiment"), "{nothing}");
}

#[test]
fn hostile_files_end_with_a_mistake() {
    let scratch = Scratch::new();
    let said = |name: &str, text: &str| {
        let path = scratch.put(name, text);
        resolve(&path, None, &Evaluator::Here)
            .unwrap_err()
            .to_string()
    };
    let deep = "[".repeat(100_000);
    assert!(said("a.jsonnet", &deep).contains("is expected"));
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(said("b.jsonnet", &deep).contains("500 deep"));
    assert!(said("c.jsonnet", "local f(x) = f(x + 1) + 1; f(0)").contains("500 deep"));
    assert!(said("d.yaml", &"a".repeat(300_000)).contains("larger than"));
    assert!(said("e.json", &"[".repeat(100_000)).contains("line 1"));
    let long: String = (0..30_000).map(|at| format!("- {at}\n")).collect();
    assert!(said("f.yaml", &long).contains("more than 20000 values"));
    let rows: String = (0..12)
        .map(|at| format!("  x{at}: [{{seed: 1}}, {{seed: 2}}]\n"))
        .collect();
    assert!(said("g.yaml", &format!("vary:\n{rows}")).contains("more than 1000 runs"));
    let nested = format!(
        "workload: {{name: m, parameters: {}1{}}}",
        "{a: ".repeat(60),
        "}".repeat(60)
    );
    let deeper = format!(
        "{nested}\nvary: {{workload.parameters.{}: [1]}}",
        "a.".repeat(80) + "b"
    );
    let told = said("h.yaml", &deeper);
    assert!(
        told.contains(&format!("more than {DEPTH_MAX} deep")) || told.contains("no mapping"),
        "{told}"
    );
    scratch.put("loop1.yaml", "extends: ./loop2.yaml\n");
    assert!(said("loop2.yaml", "extends: ./loop1.yaml\n").contains("more than 16 documents"));
    assert!(
        said("i.yaml", "extends: ../../../../etc/hosts.yaml\n").contains("line 1, key extends")
    );
    assert!(said("j.jsonnet", "import '/etc/passwd'").contains("outside of the folder"));
    assert!(said("k.jsonnet", "importstr '../../../etc/passwd'").contains("line 1, column 1"));
    assert!(said("l.jsonnet", "import 'l.jsonnet'").contains("needs itself"));
    let fifo = scratch.0.join("m.yaml");
    fs::create_dir(&fifo).expect("a folder");
    let told = resolve(&fifo, None, &Evaluator::Here)
        .unwrap_err()
        .to_string();
    assert!(told.contains("this is no file"), "{told}");
    let latin = scratch.0.join("n.yaml");
    fs::write(&latin, b"a: 1\nb: \xff\n").expect("a file");
    let told = resolve(&latin, None, &Evaluator::Here)
        .unwrap_err()
        .to_string();
    assert!(told.contains("line 2: this is no UTF-8"), "{told}");
}
