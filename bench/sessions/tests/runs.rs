//! Every workload on the store in memory, and on servers that really run: a run must do something,
//! and its check must find nothing.

use peer::{again, longer, start};
use serde_json::{Value, json};
use servers::Kind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The measured phase of a run. One in which nothing was answered is made again, and longer.
const MEASURE: Duration = Duration::from_millis(350);

/// Parameters that make a run of any workload short.
fn small(workload: &str) -> Value {
    match workload {
        "micro" => json!({
            "users": 40, "sets": 4, "items_per_set": 10, "messages_per_user": 2,
        }),
        "ycsb" => json!({"records": 100, "field_bytes": 20}),
        "smallbank" => json!({"customers": 20}),
        "auction" => json!({"users": 12, "items_per_user": 1}),
        _ => json!({}),
    }
}

fn document(url: &str, workload: Value) -> Value {
    let name = workload["name"]
        .as_str()
        .expect("a workload has a name")
        .to_string();
    let mut workload = workload;
    let mut parameters = small(&name);
    if let Some(more) = workload["parameters"].as_object() {
        for (key, value) in more {
            parameters[key] = value.clone();
        }
    }
    workload["parameters"] = parameters;
    json!({
        "name": "test",
        "seed": 3,
        "store": {"url": url},
        "workload": workload,
        "population": {"sessions": 4},
        "phases": {"warmup_s": 0.05, "measure_s": MEASURE.as_secs_f64()},
        "retry": {
            "attempts": 1000, "total_ms": 120_000, "back_off": {"base_ms": 0.1, "cap_ms": 5},
        },
    })
}

fn run(document: &Value) -> Value {
    let results = sessions::run_document(document, &mut |_| {}, &AtomicBool::new(false));
    results.unwrap_or_else(|error| panic!("{document}: {error}"))
}

fn interactions(results: &Value) -> &[Value] {
    results["interactions"].as_array().expect("interactions")
}

/// Runs until so many interactions have been answered, and demands that all went well. The results
/// are returned.
fn passes_with(document: &Value, least: usize) -> Value {
    let run = |length: Duration| {
        let mut document = document.clone();
        document["phases"]["measure_s"] = json!(length.as_secs_f64());
        run(&document)
    };
    let is_answered = |interaction: &Value| interaction["answered"].as_u64() > Some(0);
    let results = longer(MEASURE, run, |results| {
        let all = interactions(results);
        results["verdict"] == "failed" || all.len() >= least && all.iter().all(is_answered)
    });
    let told = format!("{document}\n{results}");
    assert_eq!(results["verdict"], "passed", "{told}");
    let all = interactions(&results);
    assert!(all.len() >= least, "{told}");
    for interaction in all {
        assert_eq!(interaction["failed_all"], 0, "{told}");
        assert!(is_answered(interaction), "{told}");
    }
    // One run of a thousand is out of its bounds by chance; three of a hundred are not.
    static OUT_OF_BOUNDS: AtomicU64 = AtomicU64::new(0);
    let is_out = results["transitions_out_of_bounds"] != 0;
    let runs_out =
        OUT_OF_BOUNDS.fetch_add(u64::from(is_out), Ordering::Relaxed) + u64::from(is_out);
    assert!(runs_out < 3, "{told}");
    results
}

fn passes(document: &Value) -> Value {
    passes_with(document, 1)
}

/// Every interaction of micro, with results by which the table goes on.
fn all_of_micro() -> Value {
    let sorted = json!({"sorts_items": true});
    json!({"name": "micro", "parameters": sorted, "states": {
        "START": {"UPDATE_PERSONAL": 0.2, "UPDATE_SHARED": 0.2, "UPDATE_PUBLIC": 0.2,
                  "SEND_MESSAGE": 0.2, "LIST_INBOX": 0.2},
        "UPDATE_PERSONAL": {"READ_PERSONAL": 0.5, "LIST_PERSONAL": 0.5},
        "READ_PERSONAL": {"END": 1},
        "LIST_PERSONAL": {"END": 1},
        "UPDATE_SHARED": {"READ_SHARED": 0.5, "LIST_SHARED": 0.5},
        "READ_SHARED": {"END": 1},
        "LIST_SHARED": {"END": 1},
        "UPDATE_PUBLIC": {"READ_PUBLIC": 0.5, "LIST_PUBLIC": 0.5},
        "READ_PUBLIC": {"END": 1},
        "LIST_PUBLIC": {"END": 1},
        "SEND_MESSAGE": {"LIST_SENT": 0.5, "LIST_INBOX": 0.5},
        "LIST_SENT": {"END": 1},
        "LIST_INBOX": {"UPDATE_MESSAGE": 0.7, "DELETE_MESSAGE": 0.3},
        "LIST_INBOX:EMPTY": {"END": 1},
        "UPDATE_MESSAGE": {"UPDATE_MESSAGE": 0.2, "DELETE_MESSAGE": 0.2, "END": "rest"},
        "DELETE_MESSAGE": {"END": 1},
    }})
}

fn every_workload() -> Vec<Value> {
    let mut all = vec![
        json!({"name": "micro"}),
        all_of_micro(),
        json!({"name": "hot_counter", "parameters": {"counters": 2}}),
        json!({"name": "smallbank"}),
        json!({"name": "auction"}),
    ];
    let mixes = ["A", "D", "E", "F"];
    let ycsb = mixes.map(|mix| json!({"name": "ycsb", "parameters": {"mix": mix}}));
    all.extend(ycsb);
    // Few meet, so that a short run commits some.
    let steps = json!({
        "mix": "M", "steps": 2, "operations_per_step": 2, "key_access": "uniform",
    });
    all.push(json!({"name": "ycsb", "parameters": steps}));
    all
}

#[test]
fn every_workload_runs_in_memory() {
    for workload in every_workload() {
        let document = document("memory:", workload);
        let results = passes(&document);
        assert_eq!(results["store"]["api"], "entity");
    }
}

#[test]
fn micro_runs_on_redis_and_etcd() {
    for (kind, mappings) in [
        (Kind::Redis, ["packed", "packed-lua", "rows"].as_slice()),
        (Kind::Etcd, ["packed", "rows"].as_slice()),
    ] {
        let Some(server) = start(kind, &[]) else {
            continue;
        };
        for mapping in mappings {
            let ycsb = json!({"name": "ycsb", "parameters": {"mix": "E"}});
            for workload in [json!({"name": "micro"}), json!({"name": "auction"}), ycsb] {
                let mut document = document(&server.url(""), workload);
                document["store"]["mapping"] = json!(mapping);
                let results = passes(&document);
                assert_eq!(results["store"]["mapping"], *mapping);
            }
        }
    }
}

/// A workload of statements: money moves and is never made.
fn payments() -> Value {
    let account = json!({"kind": "zipf", "from": 0, "to": 19});
    json!({"name": "statements", "parameters": {
        "setup": [
            "DROP TABLE IF EXISTS account",
            "DROP TABLE IF EXISTS payment",
            "CREATE TABLE account (id BIGINT PRIMARY KEY, cents BIGINT NOT NULL)",
            "CREATE TABLE payment (a BIGINT NOT NULL, b BIGINT NOT NULL, memo VARCHAR(20))",
        ],
        "load": [{"sql": "INSERT INTO account VALUES (:id, 1000)", "from": 0, "to": 19}],
        "draws": {
            "a": account, "b": account,
            "cents": {"kind": "uniform", "from": 1, "to": 9},
            "memo": {"kind": "text", "length": 8},
        },
        "interactions": {
            "PAY": [
                {"sql": "UPDATE account SET cents = cents - :cents WHERE id = :a", "rows": 1},
                {"sql": "UPDATE account SET cents = cents + :cents WHERE id = :b", "rows": 1},
                {"sql": "INSERT INTO payment VALUES (:a, :b, :memo)", "rows": 1},
            ],
            "FIND": [
                {"sql": "SELECT id FROM account WHERE id = :a AND cents > 1000",
                 "empty": "POOR", "keep": "rich"},
            ],
            "LOOK": [{"sql": "SELECT cents FROM account WHERE id = :rich", "rows": 1}],
        },
        "checks": [
            {"sql": "SELECT sum(cents) FROM account", "equals": 20_000},
            {"sql": "SELECT count(*) FROM payment", "plus": {"PAY": 1}},
        ],
    }, "states": {
        "START": {"PAY": 1},
        "PAY": {"FIND": 0.3, "END": 0.7},
        "FIND": {"LOOK": 1},
        "FIND:POOR": {"END": 1},
        "LOOK": {"END": 1},
    }})
}

/// Both halves of every workload.
#[test]
fn every_workload_runs_on_sql() {
    for (kind, database) in [(Kind::Postgres, "postgres"), (Kind::MariaDb, "test")] {
        let Some(server) = start(kind, &[]) else {
            continue;
        };
        passes_with(&document(&server.url(database), payments()), 3);
        let mut wrong = payments();
        wrong["parameters"]["checks"][0]["equals"] = json!(20_001);
        let results = run(&document(&server.url(database), wrong));
        assert_eq!(results["verdict"], "failed", "{results}");
        for api in ["entity", "sql"] {
            for mut workload in every_workload() {
                workload["api"] = json!(api);
                let results = passes(&document(&server.url(database), workload));
                assert_eq!(results["store"]["api"], api);
            }
        }
    }
}

/// Four users whose transactions take two round trips of 20 ms at least cannot do more, in memory
/// and through the proxy.
#[test]
fn links_take_the_time_that_is_asked_for() {
    let far = |url: &str| {
        let workload = json!({"name": "micro", "parameters": {"items_per_interaction": 1}});
        let mut document = document(url, workload);
        document["store"]["link_ms"] = json!(10);
        document["store"]["mapping"] = json!("packed");
        let run = || {
            let results = passes(&document);
            assert_eq!(results["link"]["one_way_ms"], 10.0, "{results}");
            let response = &interactions(&results)[0]["response_us"];
            let mean_us = response["mean"].as_f64().expect("a mean");
            assert!(mean_us >= 40_000.0, "{url}: {mean_us} us");
            mean_us
        };
        // A machine that stands still adds to it.
        let mean_us = again(run, |mean_us| *mean_us < 200_000.0);
        assert!(mean_us < 200_000.0, "{url}: {mean_us} us");
    };
    far("memory:");
    if let Some(server) = start(Kind::Redis, &[]) {
        far(&server.url(""));
    }
}
