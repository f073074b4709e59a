//! Each check of the benchmark against each stand-in: it fails where the fault is one that it is
//! for, and passes everywhere else.
#![allow(
    clippy::unwrap_used,
    reason = "a test file whose helpers are not test functions"
)]

use check::{Demand, Judgement, Level};
use drive::histories::{self, HistoryOptions};
use drive::run::RunReport;
use drive::tpcc::{self, LoadOptions, OwnHistory, RunOptions};
use function_tests::durability::{self, Crash};
use function_tests::{FunctionOptions, Test, Verdict};
use links::view::Silent;
use peer::Peer;
use stand_in::{Fault, StandIn};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;
use workload::finding;
use workload::history::{self, Kind};
use workload::tpcc::{Scale, Skew};
use workload::wire::Isolation;

/// What is run, and judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Check {
    /// A recorded history at SERIALIZABLE.
    History(Kind),
    /// A recorded history at REPEATABLE READ: snapshots, none of which may be old.
    Snapshots(Kind),
    /// The function test of snapshots.
    SnapshotTest,
    /// The function test of durability, without a crash.
    DurabilityTest,
    /// The twelve conditions after a run of TPC-C.
    Conditions,
    /// The condition of the stock after it.
    Stock,
    /// The own history of the run at SERIALIZABLE.
    OwnHistory,
    /// The quantities of the stock from one of its orders to the next.
    Quantities,
    /// The rows of HISTORY of its payments.
    Payments,
    /// What the run was told, and what the database has gained.
    Acknowledged,
}

const LISTS: Check = Check::History(Kind::ListAppend);
const REGISTERS: Check = Check::History(Kind::Register);
/// At SERIALIZABLE an addition that is gone may be the last one in the serial order, which need not
/// agree with time: nothing would be wrong. A snapshot holds all that was acknowledged before it.
const BANK: Check = Check::Snapshots(Kind::Bank);
const COUNTERS: Check = Check::Snapshots(Kind::Counter);
const FRESH_LISTS: Check = Check::Snapshots(Kind::ListAppend);

/// Whether a check catches a fault at times: a replica may be as old as to give what was there
/// before the run began, which nobody in it has written.
fn may_catch(fault: Fault, check: Check) -> bool {
    fault == Fault::StaleReplica && check == Check::OwnHistory
}

/// What is run at once: TPC-C has six judgements.
const RUNS: [&[Check]; 8] = [
    &[LISTS],
    &[REGISTERS],
    &[BANK],
    &[COUNTERS],
    &[FRESH_LISTS],
    &[Check::SnapshotTest],
    &[Check::DurabilityTest],
    &[
        Check::Conditions,
        Check::Stock,
        Check::OwnHistory,
        Check::Quantities,
        Check::Payments,
        Check::Acknowledged,
    ],
];

/// The checks that have to catch a fault. All others have to pass.
fn catchers(fault: Fault) -> &'static [Check] {
    match fault {
        Fault::Nothing => &[],
        Fault::LostUpdate => &[
            LISTS,
            REGISTERS,
            BANK,
            COUNTERS,
            FRESH_LISTS,
            Check::OwnHistory,
        ],
        // Snapshots are enough for TPC-C: its transactions are serializable on them.
        Fault::WriteSkew => &[LISTS, REGISTERS],
        Fault::TornCommit => &[
            LISTS,
            REGISTERS,
            BANK,
            COUNTERS,
            FRESH_LISTS,
            Check::SnapshotTest,
            Check::DurabilityTest,
            Check::Conditions,
            Check::Stock,
            Check::OwnHistory,
            Check::Payments,
            Check::Acknowledged,
        ],
        Fault::StaleReplica => &[COUNTERS, FRESH_LISTS],
        Fault::DroppedCommit => &[
            LISTS,
            REGISTERS,
            BANK,
            COUNTERS,
            FRESH_LISTS,
            Check::DurabilityTest,
            Check::OwnHistory,
            Check::Payments,
            Check::Acknowledged,
        ],
        Fault::RemoteStockIgnored => &[Check::Stock, Check::OwnHistory],
        // Counts and sums of the database are right.
        Fault::StockMissupplied => &[Check::Quantities],
        Fault::HistoryAntedated => &[Check::Payments],
    }
}

/// What a check says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    /// With its words.
    Caught(String),
    Passed,
    /// Too little has happened to say anything.
    Nothing(String),
}

/// Length of the attempts, in milliseconds: where something is to be seen, the next one is longer.
const LENGTHS_MS: [u64; 5] = [300, 800, 2_000, 5_000, 9_000];

/// Nobody is waited for any longer.
const PATIENCE: Duration = Duration::from_secs(10);

const SCALE: Scale = Scale {
    warehouses: 2,
    items: 200,
    customers: 30,
    orders: 30,
    skew: Skew::NONE,
};

fn recorded(url: &str, kind: Kind, isolation: Isolation, length: Duration) -> Said {
    let mut options = HistoryOptions::new(url, kind, isolation);
    options.runner.clients = 4;
    if kind == Kind::Bank {
        // With fewer accounts nearly all transfers wait in a circle, and little is left to see.
        options.shape.keys = 24;
    }
    options.runner.length = length;
    options.runner.timeout = PATIENCE;
    let verdict = histories::run(&options, &mut Silent).unwrap().verdict;
    match verdict.judgement {
        Judgement::Fail => Said::Caught(verdict.anomalies[0].name()),
        Judgement::Pass => Said::Passed,
        Judgement::Inconclusive => Said::Nothing(verdict.to_string()),
    }
}

/// A function test, and how many of its steps fit into the length.
fn function(url: &str, test: Test, length: Duration) -> Said {
    let count = (length.as_millis() / 10) as u32;
    let options = FunctionOptions {
        tests: vec![test],
        count: Some(count),
        limit: PATIENCE,
        patience: PATIENCE,
        ..FunctionOptions::new(url)
    };
    let judgement = match test {
        Test::Durability => {
            let name = format!("trellis-stand-in-{}", url.replace(['/', ':'], "-"));
            let path = std::env::temp_dir().join(name);
            // Nothing crashes: what is missing or torn was so before.
            let nothing = Crash::at(1, || Ok(()));
            let audited = durability::audit(&options, &path, nothing, &mut Silent);
            let _ = std::fs::remove_file(path);
            audited.unwrap().1.judgement()
        }
        Test::Snapshot | Test::Deadlock => {
            let report = function_tests::run(&options, &mut Silent).unwrap();
            report.found[0].judgement()
        }
    };
    match judgement.verdict {
        Verdict::Failed => Said::Caught(judgement.because),
        Verdict::Passed => Said::Passed,
        Verdict::NotExercised => Said::Nothing(judgement.because),
    }
}

fn transactions(url: &str, length: Duration) -> RunReport {
    let mut options = RunOptions::new(url);
    options.runner.clients = 8;
    options.runner.warmup = Duration::ZERO;
    options.runner.length = length;
    options.runner.timeout = PATIENCE;
    options.histories = Some(OwnHistory::default());
    tpcc::run(&options, &mut Silent).unwrap()
}

/// What the conditions of these numbers say.
fn conditions(run: &RunReport, numbers: std::ops::RangeInclusive<usize>) -> Said {
    let all = &run.consistency.as_ref().unwrap().conditions;
    let asked = || all.iter().filter(|it| numbers.contains(&it.number));
    if let Some(failed) = asked().find(|it| it.failures > 0) {
        let example = failed.counterexample.as_deref().unwrap_or("");
        return Said::Caught(format!("condition {}: {example}", failed.number));
    }
    match asked().find(|it| it.compared == 0) {
        Some(empty) => Said::Nothing(format!("condition {} compared nothing", empty.number)),
        None => Said::Passed,
    }
}

fn acknowledged(run: &RunReport) -> Said {
    let asked = run.audits.iter().filter(|it| it.clause == "durability");
    for found in asked {
        let finding::Finding {
            title,
            observed,
            allowed,
            ..
        } = found;
        match found.verdict {
            finding::Verdict::Failed => {
                return Said::Caught(format!("{title}: {observed}, allowed {allowed}"));
            }
            finding::Verdict::Passed if found.samples > 0 => {}
            _ => return Said::Nothing(format!("{title}: nothing to find")),
        }
    }
    Said::Passed
}

fn run(url: &str, checks: &[Check], length: Duration) -> Vec<Said> {
    match checks[0] {
        Check::History(kind) => vec![recorded(url, kind, Isolation::Serializable, length)],
        Check::Snapshots(kind) => vec![recorded(url, kind, Isolation::RepeatableRead, length)],
        Check::SnapshotTest => vec![function(url, Test::Snapshot, length)],
        Check::DurabilityTest => vec![function(url, Test::Durability, length)],
        Check::Conditions
        | Check::Stock
        | Check::OwnHistory
        | Check::Quantities
        | Check::Payments
        | Check::Acknowledged => {
            let run = transactions(url, length);
            vec![
                conditions(&run, 1..=12),
                conditions(&run, 13..=13),
                conditions(&run, 14..=14),
                conditions(&run, 15..=15),
                conditions(&run, 16..=16),
                acknowledged(&run),
            ]
        }
    }
}

/// Runs until each check has said what it has to say; gives what the last attempt said. A check
/// that catches what it must not is wrong at once.
fn repeated(url: &str, fault: Fault, checks: &[Check]) -> Vec<Said> {
    let mut said = Vec::new();
    for length in LENGTHS_MS {
        said = run(url, checks, Duration::from_millis(length));
        let mut is_wrong = false;
        let mut is_done = true;
        for (check, said) in checks.iter().zip(&said) {
            let is_catcher = catchers(fault).contains(check);
            match said {
                Said::Caught(_) => is_wrong |= !is_catcher && !may_catch(fault, *check),
                Said::Passed => is_done &= !is_catcher,
                Said::Nothing(_) => is_done = false,
            }
        }
        if is_wrong || is_done {
            break;
        }
    }
    said
}

/// All that was said, by fault and check.
type Table = BTreeMap<(&'static str, Check), Said>;

/// Runs all checks against one stand-in.
fn row(peer: &Peer, fault: Fault, table: &Mutex<Table>) {
    let stand_in = StandIn::before(&peer.url(fault.name()), fault).unwrap();
    for checks in RUNS {
        let said = repeated(&stand_in.url(), fault, checks);
        let mut table = table.lock().unwrap();
        table.extend(checks.iter().map(|check| (fault.name(), *check)).zip(said));
    }
    assert_eq!(stand_in.planted() > 0, fault != Fault::Nothing);
}

#[test]
fn each_check_catches_its_own_and_nothing_else() {
    let Some(peer) = Peer::start() else { return };
    peer.psql("postgres", "CREATE DATABASE loaded");
    let load = LoadOptions {
        scale: SCALE,
        ..LoadOptions::new(&peer.url("loaded"), SCALE.warehouses)
    };
    tpcc::load(&load, &mut Silent).unwrap();
    for fault in Fault::ALL {
        let name = fault.name();
        peer.psql(
            "postgres",
            &format!("CREATE DATABASE {name} TEMPLATE loaded"),
        );
    }
    let table = Mutex::new(Table::new());
    let left = Mutex::new(Fault::ALL.to_vec());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap().pop();
                    let Some(fault) = next else { return };
                    row(&peer, fault, &table);
                }
            });
        }
    });
    let table = table.into_inner().unwrap();
    let told: Vec<String> = table
        .iter()
        .map(|((fault, check), said)| format!("{fault} {check:?}: {said:?}"))
        .collect();
    let mut unused: BTreeSet<Check> = RUNS.concat().into_iter().collect();
    let mut wrong = Vec::new();
    for fault in Fault::ALL {
        for check in RUNS.concat() {
            let said = &table[&(fault.name(), check)];
            match (catchers(fault).contains(&check), said) {
                (true, Said::Caught(_)) => {
                    unused.remove(&check);
                }
                (false, Said::Passed) => {}
                (false, Said::Caught(_)) if may_catch(fault, check) => {}
                _ => wrong.push(format!("{} {check:?}: {said:?}", fault.name())),
            }
        }
    }
    let (wrong, told) = (wrong.join("\n"), told.join("\n"));
    assert!(wrong.is_empty(), "{wrong}\n\nall:\n{told}");
    assert!(unused.is_empty(), "{unused:?} caught nothing");
}

/// PostgreSQL's SERIALIZABLE promises an order that need not agree with time, so an addition that
/// was acknowledged and dropped may be the last one. Where the order agrees with time it may not:
/// the same history passes and fails.
#[test]
fn a_dropped_addition_is_seen_where_time_counts() {
    let Some(peer) = Peer::start() else { return };
    peer.psql("postgres", "CREATE DATABASE dropped");
    let stand_in = StandIn::before(&peer.url("dropped"), Fault::DroppedCommit).unwrap();
    let options = HistoryOptions::new(&stand_in.url(), Kind::Counter, Isolation::Serializable);
    let is_seen = LENGTHS_MS.into_iter().any(|length| {
        let mut options = options.clone();
        options.runner.clients = 8;
        options.runner.length = Duration::from_millis(length);
        options.runner.timeout = PATIENCE;
        let found = histories::run(&options, &mut Silent).unwrap();
        let strict = Level::StrictSerializable;
        let strict = history::judge(&options.shape, &found.history, strict, &Demand::default());
        let promised = found.verdict.judgement;
        (promised, strict.judgement) == (Judgement::Pass, Judgement::Fail)
    });
    assert!(is_seen && stand_in.planted() > 0);
}
