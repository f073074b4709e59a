//! Starts stores, and judges each in every mapping: the conformance suite, kills under load, and
//! short runs of micro and auction. `cargo xtask stores` installs what it needs and calls it:
//! `cargo run -p sessions --example stores -- NAME...`. Exit code 1: something failed.
#![allow(clippy::print_stdout, reason = "what it prints is what it is for")]

use entity::conformance::Verdict;
use serde_json::{Value, json};
use servers::{Kind, Server};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use stores::{Options, conformance, crash};

/// How long a client waits for an answer.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A store that can be judged.
struct Candidate {
    name: &'static str,
    /// The server; `None`: it is in this process.
    kind: Option<Kind>,
    /// A database that is there from the start.
    database: &'static str,
    mappings: &'static [&'static str],
    /// Mappings in which transactions wait for each other.
    waiting: &'static [&'static str],
    /// Settings of the server for the suite where transactions lock whole groups: its clients take
    /// turns in one thread, so who waits for a lock gives up soon, and tries again.
    impatient: &'static [&'static str],
}

const CANDIDATES: [Candidate; 8] = [
    Candidate {
        name: "memory",
        kind: None,
        database: "",
        mappings: &["rows", "packed"],
        waiting: &[],
        impatient: &[],
    },
    Candidate {
        name: "postgres",
        kind: Some(Kind::Postgres),
        database: "postgres",
        mappings: &["tables", "tables-lock", "packed", "packed-lock"],
        waiting: &["tables-lock", "packed-lock"],
        impatient: &["-c", "lock_timeout=10ms"],
    },
    Candidate {
        name: "mariadb",
        kind: Some(Kind::MariaDb),
        database: "test",
        mappings: &["tables", "tables-lock", "packed", "packed-lock"],
        waiting: &["tables", "tables-lock", "packed-lock"],
        impatient: &[
            "--innodb-lock-wait-timeout=0",
            "--innodb-rollback-on-timeout=1",
        ],
    },
    Candidate {
        name: "redis",
        kind: Some(Kind::Redis),
        database: "",
        mappings: &["packed", "packed-lua", "rows"],
        waiting: &[],
        impatient: &[],
    },
    Candidate {
        name: "etcd",
        kind: Some(Kind::Etcd),
        database: "",
        mappings: &["rows", "packed"],
        waiting: &[],
        impatient: &[],
    },
    Candidate {
        name: "cassandra",
        kind: Some(Kind::Cassandra),
        database: "bench",
        mappings: &["packed", "rows"],
        waiting: &[],
        impatient: &[],
    },
    Candidate {
        name: "hbase",
        kind: Some(Kind::HBase),
        database: "bench",
        mappings: &["packed", "rows"],
        waiting: &[],
        impatient: &[],
    },
    Candidate {
        name: "ferretdb",
        kind: Some(Kind::FerretDb),
        database: "bench",
        mappings: &["packed", "nested"],
        waiting: &[],
        impatient: &[],
    },
];

/// What came out for a store in a mapping.
struct Line {
    product: String,
    mapping: &'static str,
    is_durable: Option<bool>,
    conformance: String,
    crash: String,
    per_s: Vec<String>,
    took: Duration,
}

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let known = CANDIDATES.iter().map(|it| it.name);
    let mut unknown = names
        .iter()
        .filter(|name| !known.clone().any(|it| it == *name));
    if let Some(name) = unknown.next() {
        let known: Vec<&str> = known.collect();
        println!("no store is called {name}; there are {}", known.join(", "));
        return ExitCode::FAILURE;
    }
    let is_wanted = |it: &&Candidate| names.is_empty() || names.iter().any(|name| name == it.name);
    let (mut lines, mut failures) = (Vec::new(), Vec::new());
    for candidate in CANDIDATES.iter().filter(is_wanted) {
        println!("== {}", candidate.name);
        if let Err(text) = judge(candidate, &mut lines, &mut failures) {
            println!("{text}");
            failures.push(format!("{}: {text}", candidate.name));
        }
    }
    table(&lines);
    for failure in &failures {
        println!("FAILED {failure}");
    }
    match failures.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn start(kind: Kind, settings: &[&str]) -> Result<Server, String> {
    let started = Server::start(kind, settings).map_err(|error| error.to_string())?;
    started.ok_or_else(|| String::from("it is not installed"))
}

/// Judges a store in all of its mappings.
fn judge(
    candidate: &Candidate,
    lines: &mut Vec<Line>,
    failures: &mut Vec<String>,
) -> Result<(), String> {
    let mut server = match candidate.kind {
        None => None,
        Some(kind) => {
            let began = Instant::now();
            let server = start(kind, &[])?;
            println!("started in {:.1} s", began.elapsed().as_secs_f64());
            Some(server)
        }
    };
    for mapping in candidate.mappings {
        let began = Instant::now();
        let url = match &server {
            None => String::from("memory:"),
            Some(server) => server.url(candidate.database),
        };
        let is_optimistic = !candidate.waiting.contains(mapping);
        let mut found = |text: String| {
            println!("{mapping}: {text}");
            failures.push(format!("{} {mapping}: {text}", candidate.name));
        };
        let mut line = Line {
            product: String::from(candidate.name),
            mapping,
            is_durable: None,
            conformance: String::from("-"),
            crash: String::from("-"),
            per_s: Vec::new(),
            took: Duration::ZERO,
        };
        let impatient = match candidate.kind {
            Some(kind) if *mapping == "packed-lock" => Some(start(kind, candidate.impatient)?),
            _ => None,
        };
        let of_suite = impatient.as_ref().map(|it| it.url(candidate.database));
        let of_suite = of_suite.as_ref().unwrap_or(&url);
        conform(of_suite, is_optimistic, &mut line, &mut found);
        drop(impatient);
        for workload in ["micro", "auction"] {
            line.per_s.push(run(&url, mapping, workload, &mut found));
        }
        if let Some(server) = &mut server {
            line.crash = kill(server, &url, mapping, &mut found);
        }
        line.took = began.elapsed();
        lines.push(line);
    }
    Ok(())
}

/// The conformance suite, folded and not.
fn conform(url: &str, is_optimistic: bool, line: &mut Line, found: &mut impl FnMut(String)) {
    let (mut passed, mut skipped, mut failed) = (0, 0, 0);
    for fold in [true, false] {
        let options = Options {
            mapping: Some(line.mapping.to_owned()),
            timeout: TIMEOUT,
            fold,
        };
        let (description, verdicts) = match conformance::judge(url, options, is_optimistic) {
            Ok(judged) => judged,
            Err(failure) => {
                line.conformance = String::from("FAILED");
                return found(format!("conformance: {failure}"));
            }
        };
        line.product = description.product;
        line.is_durable = Some(description.is_durable);
        for (check, verdict) in verdicts {
            match verdict {
                Verdict::Passed => passed += 1,
                Verdict::Skipped(why) => {
                    println!("{}, fold {fold}: {check} skipped, {why}", line.mapping);
                    skipped += 1;
                }
                Verdict::Failed(why) => {
                    failed += 1;
                    found(format!("{check}, fold {fold}: {why}"));
                }
            }
        }
    }
    line.conformance = format!("{passed} passed");
    if skipped > 0 {
        line.conformance += &format!(", {skipped} skipped");
    }
    if failed > 0 {
        line.conformance += &format!(", {failed} FAILED");
    }
}

/// Kills the server under load.
fn kill(server: &mut Server, url: &str, mapping: &str, found: &mut impl FnMut(String)) -> String {
    let mut trouble = None;
    let aftermath = crash::under_load(url, Some(mapping), || {
        let again = server.kill().and_then(|()| {
            std::thread::sleep(Duration::from_millis(100));
            server.restart()
        });
        trouble = trouble.take().or(again.err());
    });
    if let Some(error) = trouble {
        found(format!("kill: {error}"));
        return String::from("FAILED");
    }
    let aftermath = match aftermath {
        Ok(aftermath) => aftermath,
        Err(failure) => {
            found(format!("kill: {failure}"));
            return String::from("FAILED");
        }
    };
    let findings = aftermath.findings();
    let told = format!("{} kept, {} unknown", aftermath.sum, aftermath.unknown);
    if findings.is_empty() {
        return told;
    }
    for finding in findings {
        found(format!("kill: {finding}"));
    }
    format!("{told}, FAILED")
}

/// A short run of a workload: interactions a second.
fn run(url: &str, mapping: &str, workload: &str, found: &mut impl FnMut(String)) -> String {
    let parameters = match workload {
        "micro" => json!({
            "users": 40, "sets": 4, "items_per_set": 10, "messages_per_user": 2,
        }),
        _ => json!({"users": 12, "items_per_user": 1}),
    };
    let document = json!({
        "name": "stores",
        "seed": 3,
        "store": {"url": url, "mapping": mapping, "timeout_ms": TIMEOUT.as_millis() as u64},
        "workload": {"name": workload, "parameters": parameters},
        "population": {"sessions": 4},
        "phases": {"warmup_s": 0.5, "measure_s": 3},
        "retry": {"attempts": 1000, "total_ms": 30000, "back_off": {"base_ms": 0.1, "cap_ms": 20}},
    });
    let results = sessions::run_document(&document, &mut |_| {}, &AtomicBool::new(false));
    let results = match results {
        Ok(results) => results,
        Err(error) => {
            found(format!("{workload}: {error}"));
            return String::from("FAILED");
        }
    };
    let interactions = results["interactions"].as_array();
    let failed: u64 = interactions
        .map(|all| all.iter().filter_map(|it| it["failed_all"].as_u64()).sum())
        .unwrap_or_default();
    if results["verdict"] != "passed" || failed > 0 {
        let verdict = &results["verdict"];
        found(format!(
            "{workload}: verdict {verdict}, {failed} interactions failed: {}",
            results["check"]
        ));
        return String::from("FAILED");
    }
    match &results["per_s"] {
        Value::Number(per_s) => format!("{:.0}", per_s.as_f64().unwrap_or_default()),
        _ => String::from("-"),
    }
}

fn table(lines: &[Line]) {
    let head = [
        "store",
        "mapping",
        "durable",
        "conformance",
        "killed twice",
        "micro/s",
        "auction/s",
        "s",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    for line in lines {
        let durable = match line.is_durable {
            Some(true) => "yes",
            Some(false) => "no",
            None => "-",
        };
        let mut row = vec![
            line.product.clone(),
            line.mapping.to_owned(),
            durable.to_owned(),
            line.conformance.clone(),
            line.crash.clone(),
        ];
        row.extend(line.per_s.iter().cloned());
        row.push(format!("{:.0}", line.took.as_secs_f64()));
        rows.push(row);
    }
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max();
    let widths: Vec<usize> = (0..head.len()).map(|at| width(at).unwrap_or(0)).collect();
    println!();
    for row in &rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, &width)| format!("{cell:<width$}"))
            .collect();
        println!("{}", cells.join("  ").trim_end());
    }
    println!();
}
