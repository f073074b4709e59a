//! Negative controls: a store in memory with one planted fault. A run over it must end without a
//! number; the same run over the store without a fault passes.
//!
//! | fault | what the check of a workload sees |
//! |---|---|
//! | lost update | a sum below what was acknowledged; bids have numbers, which prevent it |
//! | torn group | a sum that is wrong, or an item with other bids than it says |
//! | stale read | the auction: an item with other bids than it says. No sum shows it |
//! | dropped acknowledgement | a sum above what was acknowledged: the change was made twice |
//! | dangling entry | the auction: an item in an index that is no item |

use entity::kv::{Layer, Settings};
use entity::memory::{self, Fault, Memory};
use entity::{Client, NoWait, Policy};
use links::link::ready;
use peer::again;
use serde_json::{Value, json};
use sessions::auction::Auction;
use sessions::bank::SmallBank;
use sessions::counter::HotCounter;
use sessions::document::{Problem, Section};
use sessions::micro::Micro;
use sessions::population::Population;
use sessions::run::{Connector, Phases, Plan, Workload, run_over};
use sessions::table::{Known, Table};
use sessions::ycsb::Ycsb;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone)]
struct Shared(Arc<Mutex<Memory>>);

impl memory::Shared for Shared {
    fn with<T>(&self, f: impl FnOnce(&mut Memory) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A store in memory that may have a fault.
struct Faulty {
    shared: Shared,
    settings: Settings,
    clients: AtomicU64,
}

type Access = Client<Layer<memory::Client<Shared>>, NoWait>;

impl Connector for Faulty {
    type Access = Access;

    fn connect(&self, thread: usize) -> Result<Self::Access, String> {
        let client = self.clients.fetch_add(1, Ordering::Relaxed) + 1;
        let layer = Layer::new(memory::Client::new(self.shared.clone()), self.settings);
        let policy = Policy {
            attempts: 1_000,
            ..Policy::default()
        };
        Ok(Client::new(
            layer,
            NoWait::default(),
            policy,
            client,
            thread as u64,
        ))
    }

    fn create(&self) -> Result<(), String> {
        Ok(())
    }

    fn drive<T>(&self, future: impl Future<Output = T>) -> T {
        ready(future)
    }

    fn describe(&self) -> Value {
        json!("memory")
    }
}

/// One run of a workload with this table, where it is not its own.
fn run_of<W: Workload<Access>>(
    store: (Memory, Settings),
    work: Result<W, Problem>,
    states: &Value,
) -> Value {
    let store = Faulty {
        shared: Shared(Arc::new(Mutex::new(store.0))),
        settings: store.1,
        clients: AtomicU64::new(0),
    };
    let work = work.expect("parameters");
    let known = Known {
        interactions: work.interactions(),
    };
    let table = match states {
        Value::Null => work.default_table(),
        states => Table::read("states", states, known).expect("a table"),
    };
    let population = json!({"sessions": 4});
    let plan = Plan {
        seed: 1,
        table,
        population: Population::read(section(&population)).expect("a population"),
        phases: Phases {
            warmup_s: 0.0,
            measure_s: 0.4,
        },
        loads: true,
    };
    let stop = AtomicBool::new(false);
    run_over(&store, &work, &plan, &mut |_| {}, &stop).expect("it runs")
}

fn section(value: &Value) -> Section<'_> {
    Section::of("parameters", value).expect("an object")
}

/// A small run of a workload, in which its sessions meet often.
fn run(name: &str, memory: Memory, settings: Settings) -> Value {
    let store = (memory, settings);
    let again =
        |interaction: &str| json!({"START": {interaction: 1}, interaction: {interaction: 1}});
    match name {
        "micro" => {
            let parameters = json!({"users": 4, "sets": 1, "items_per_set": 4});
            let work = Micro::read(section(&parameters), 4);
            run_of(store, work, &again("UPDATE_SHARED"))
        }
        "auction" => {
            let parameters = json!({"users": 4, "items_per_user": 1});
            let states = json!({
                "START": {"SELL_AUCTION_ITEM": 0.1, "VIEW_AUCTION_ITEMS_BY_SELLER": "rest"},
                "SELL_AUCTION_ITEM": {"END": 1},
                "VIEW_AUCTION_ITEMS_BY_SELLER": {"VIEW_AUCTION_ITEM": 1},
                "VIEW_AUCTION_ITEM": {"STORE_BID": 1},
                "STORE_BID": {"VIEW_AUCTION_ITEM": 0.9, "END": 0.1},
            });
            run_of(store, Auction::read(section(&parameters), 4), &states)
        }
        "offers" => {
            let parameters = json!({"users": 4, "items_per_user": 1});
            let work = Auction::read(section(&parameters), 4);
            run_of(store, work, &again("SELL_AUCTION_ITEM"))
        }
        "smallbank" => {
            let parameters = json!({"customers": 2});
            run_of(store, SmallBank::read(section(&parameters)), &Value::Null)
        }
        "hot_counter" => {
            let parameters = json!({"counters": 1});
            run_of(store, HotCounter::read(section(&parameters)), &Value::Null)
        }
        mix => {
            let parameters = json!({"mix": mix, "records": 4, "field_bytes": 10});
            run_of(store, Ycsb::read(section(&parameters)), &Value::Null)
        }
    }
}

/// The workloads; of YCSB its mixes.
const WORKLOADS: [&str; 6] = ["micro", "auction", "smallbank", "hot_counter", "A", "M"];

const APART: Settings = Settings {
    fold: false,
    shows_dangling: false,
};

/// Runs of a fault in which no two sessions may happen to meet.
const TRIES: u32 = 20;

/// Fails unless one of the runs has no number, and its findings have these words.
fn is_found(run: impl Fn() -> Value, words: &str) {
    let mut runs = (0..TRIES).map(|_| run());
    let found = runs.find(|results| results["verdict"] == "failed");
    let results = found.expect("the fault is found");
    assert_eq!(results["per_s"], Value::Null);
    let findings = results["check"]["findings"].as_array().expect("findings");
    let has_words = |finding: &Value| finding.as_str().is_some_and(|text| text.contains(words));
    assert!(findings.iter().any(has_words), "{words}: {findings:?}");
}

#[test]
fn a_store_without_faults_passes() {
    let passes = |name: &str, memory: &dyn Fn() -> Memory, settings| {
        let has_answers = |results: &Value| results["verdict"] != "nothing";
        let results = again(|| run(name, memory(), settings), has_answers);
        assert_eq!(results["verdict"], "passed", "{name}: {results}");
    };
    for name in WORKLOADS {
        passes(name, &|| Memory::new().losing(50), Settings::default());
    }
    passes("auction", &|| Memory::new().losing(20), APART);
    let retried = |results: &Value| results["interactions"][0]["retried"].as_u64();
    let micro = || run("micro", Memory::new(), Settings::default());
    let results = again(micro, |results| retried(results) > Some(0));
    assert!(retried(&results) > Some(0), "{results}");
}

#[test]
fn lost_updates_leave_no_number() {
    for (name, words) in [
        ("micro", "changes of items, where"),
        ("smallbank", "customer"),
        ("hot_counter", "additions, where"),
        ("A", "updates, where"),
        ("M", "updates, where"),
    ] {
        let memory = || Memory::with_fault(Fault::LostUpdate);
        is_found(|| run(name, memory(), Settings::default()), words);
    }
}

#[test]
fn torn_groups_leave_no_number() {
    for (name, words) in [
        ("micro", "changes of items, where"),
        ("auction", "bids"),
        ("smallbank", "customer"),
        ("M", "updates, where"),
    ] {
        let memory = || Memory::with_fault(Fault::TornGroup);
        is_found(|| run(name, memory(), Settings::default()), words);
    }
}

#[test]
fn dropped_acknowledgements_leave_no_number() {
    for (name, words) in [
        ("micro", "changes of items, where"),
        ("auction", "came in the run"),
        ("smallbank", "customer"),
        ("hot_counter", "additions, where"),
        ("A", "updates, where"),
        ("M", "updates, where"),
    ] {
        let memory = || Memory::with_fault(Fault::DroppedAcknowledgement).losing(20);
        is_found(|| run(name, memory(), Settings::default()), words);
    }
}

#[test]
fn stale_reads_leave_the_auction_without_a_number() {
    let memory = || Memory::with_fault(Fault::StaleRead);
    let run = || run("auction", memory(), Settings::default());
    is_found(run, "other bids than it says");
}

#[test]
fn dangling_entries_leave_the_auction_without_a_number() {
    let shows = Settings {
        shows_dangling: true,
        ..APART
    };
    let run = || run("offers", Memory::new().losing(20), shows);
    is_found(run, "auction items of seller");
}
