//! Rows that many transactions lock: ages and the lock table beside intents at timestamps
//! (ADR 0038).
//!
//! A model in virtual time. Clients of a closed loop lock two rows of two nodes, one after the
//! other, and commit with a round and a flush; links take 1 ms. Each discipline must serialize
//! and must end when no transaction begins any more. The table of numbers (rows that are hot and
//! clients; then commits a second, deaths for 100 commits and the longest milliseconds):
//!
//! ```text
//! cargo test -p txn --test hot_rows -- --nocapture
//! ```

mod intents;
mod locks;
mod world;

use intents::{Intents, Place};
use locks::{Locks, Way};
use std::fmt::Write;
use world::{Discipline, Load, Order, Outcome, run};

/// Sizes of the table: rows that are hot, clients.
const SIZES: [(u64, u64); 7] = [
    (1, 4),
    (1, 16),
    (1, 64),
    (1, 256),
    (3, 64),
    (10, 64),
    (10, 256),
];

/// Each with its name: locks by age with the rules that are built and with two others, then intents
/// by timestamp, in order of arrival and of age.
fn disciplines() -> [(&'static str, Box<dyn Discipline>); 5] {
    [
        ("built", Box::new(Locks::new(Way::Built))),
        ("conflict first", Box::new(Locks::new(Way::ConflictFirst))),
        (
            "alone until awaited",
            Box::new(Locks::new(Way::AloneUntilAwaited)),
        ),
        ("intents", Box::new(Intents::new(Place::ByTime))),
        ("intents by age", Box::new(Intents::new(Place::ByAge))),
    ]
}

/// The claims of ADR 0038, which has the table.
fn judge(order: Order, outcomes: &[Outcome]) {
    let built = &outcomes[0];
    for (at, other) in outcomes.iter().enumerate().skip(1) {
        let intent_like = at != 1;
        match order {
            Order::HotFirst => {
                let ratio = other.per_s / built.per_s;
                assert!((0.99..1.01).contains(&ratio) && other.deaths < 0.5);
            }
            // Who holds only what nobody wants need not die.
            Order::HotSecond if intent_like => assert!(other.deaths < 0.5 && built.deaths > 100.0),
            // The next owner of a row finds newer ones at the other.
            Order::TwoHotSorted if at > 2 => assert!(built.per_s > 2.0 * other.per_s),
            Order::HotSecond | Order::TwoHotSorted | Order::TwoHot => {}
        }
    }
}

#[test]
fn every_discipline_serializes_and_ends() {
    let mut table = String::new();
    for order in Order::ALL {
        for (hot, clients) in SIZES {
            if order.hot_rows() > hot {
                continue;
            }
            let load = Load {
                order,
                hot,
                clients,
            };
            write!(table, "\n{order:?} {hot}/{clients}").expect("a string");
            let mut outcomes = Vec::new();
            for (name, mut discipline) in disciplines() {
                let outcome = run(load, &mut *discipline);
                assert_eq!(outcome.unfinished, 0, "{name}, {load:?}");
                let (per_s, deaths) = (outcome.per_s, outcome.deaths);
                let longest_ms = outcome.longest_ms;
                write!(table, " | {per_s:.0}, {deaths:.0}, {longest_ms:.0}").expect("a string");
                outcomes.push(outcome);
            }
            judge(order, &outcomes);
        }
    }
    show(&table);
}

#[expect(
    clippy::print_stdout,
    clippy::disallowed_macros,
    reason = "the table is what the decision rests on"
)]
fn show(table: &str) {
    println!("{table}");
}

/// To the letter of the rule, who has a row finds newer ones at every other: all die, and none
/// commits.
#[test]
fn a_move_above_all_intents_starves_everybody() {
    let load = Load {
        order: Order::TwoHot,
        hot: 3,
        clients: 64,
    };
    let outcome = run(load, &mut Intents::new(Place::Last));
    assert!(outcome.per_s < 1.0 && outcome.unfinished == 64);
}

/// The model sees what it is to see: waits from lower to higher timestamps end in a cycle.
#[test]
fn a_move_past_those_who_depend_is_seen() {
    let load = Load {
        order: Order::TwoHot,
        hot: 3,
        clients: 16,
    };
    let mut intents = Intents::new(Place::ByTime);
    intents.moves_always = true;
    assert!(run(load, &mut intents).unfinished > 0);
}
