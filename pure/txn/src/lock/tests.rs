//! Unit tests of the rules, and a random test against a dumb model.

mod awaited;
mod give_way;
mod model;
mod ranges;

use super::*;
use crate::columns::Columns;
use base::{IndexId, Key, KeyRange, NodeId, Prng, ShardId, Slot, Time};
use std::collections::{BTreeMap, BTreeSet};

fn txn(number: u64) -> TxnId {
    TxnId {
        shard: ShardId::new(NodeId(1), 0),
        incarnation: 1,
        counter: number,
    }
}

/// A smaller number is older.
fn rank(number: u64) -> Priority {
    Priority {
        urgent: false,
        ts: Ts(number),
        txn: txn(number),
    }
}

fn key(name: &str) -> Key {
    Key::new(IndexId(1), Slot(0), name.as_bytes().to_vec())
}

struct Table(LockTable);

impl Table {
    fn ask(&mut self, who: u64, name: &str, claim: impl Into<Claim>, alone: bool) -> Acquired {
        let key = key(name);
        self.0.acquire(LockRequest::<Claim> {
            txn: rank(who),
            item: Item::of(&key),
            mode: claim.into(),
            alone,
            ordered: false,
            deadline: None,
            now: Time(0),
            request: who,
        })
    }
    fn range(&mut self, who: u64, low: &str, high: &str, mode: LockMode) -> Acquired {
        let range = KeyRange {
            low: low.into(),
            high: Some(high.into()),
        };
        self.0.acquire(LockRequest {
            txn: rank(who),
            item: Item::Range {
                index: IndexId(1),
                slot: None,
                range: &range,
            },
            mode,
            alone: false,
            ordered: false,
            deadline: None,
            now: Time(0),
            request: who,
        })
    }
    fn release(&mut self, who: u64) -> Vec<(u64, bool)> {
        self.0.release(txn(who));
        self.0.validate();
        let events = self.0.take_events();
        events
            .into_iter()
            .map(|e| (e.request, e.settled == Settled::Granted))
            .collect()
    }
}

use LockMode::{Exclusive as X, Fold as F, Increment as I, Shared as S};

#[test]
fn older_waits_younger_dies() {
    let mut t = Table(LockTable::new());
    assert_eq!(t.ask(5, "a", X, false), Acquired::Granted);
    assert_eq!(t.ask(3, "a", X, false), Acquired::Waiting);
    let died = Acquired::Died(Conflict {
        key: key("a"),
        holder: txn(5),
    });
    assert_eq!(t.ask(7, "a", S, false), died);
    assert_eq!(t.release(5), [(3, true)]);
    assert_eq!(t.release(3), []);
    assert!(t.0.is_empty());
}

#[test]
fn alone_waits_whatever_its_age_in_order_of_arrival() {
    let mut t = Table(LockTable::new());
    assert_eq!(t.ask(1, "a", X, false), Acquired::Granted);
    for who in [9, 7, 8] {
        assert_eq!(t.ask(who, "a", X, true), Acquired::Waiting);
    }
    assert_eq!(t.release(1), [(9, true)]);
    assert_eq!(t.release(9), [(7, true)]);
    assert_eq!(t.release(7), [(8, true)]);
    assert_eq!(t.release(8), []);
}

#[test]
fn hand_over_goes_to_the_youngest_that_is_not_alone() {
    let mut t = Table(LockTable::new());
    assert_eq!(t.ask(9, "a", X, false), Acquired::Granted);
    assert_eq!(t.ask(8, "a", X, true), Acquired::Waiting);
    assert_eq!(t.ask(3, "a", X, false), Acquired::Waiting);
    assert_eq!(t.ask(5, "a", X, false), Acquired::Waiting);
    assert_eq!(t.release(9), [(5, true)]);
    assert_eq!(t.release(5), [(3, true)]);
    assert_eq!(t.release(3), [(8, true)]);
}

#[test]
fn starved_waiter_alone_goes_first_and_kills_younger_waiters() {
    let mut t = Table(LockTable::new());
    assert_eq!(t.ask(100, "a", X, false), Acquired::Granted);
    assert_eq!(t.ask(20, "a", X, true), Acquired::Waiting);
    let mut holder = 100;
    for passer in 0..u64::from(OVERTAKEN_MAX) {
        let next = 99 - passer;
        assert_eq!(t.ask(next, "a", X, false), Acquired::Waiting);
        assert_eq!(t.release(holder), [(next, true)]);
        holder = next;
    }
    assert_eq!(t.ask(30, "a", X, false), Acquired::Waiting);
    assert_eq!(t.ask(10, "a", X, false), Acquired::Waiting);
    assert_eq!(t.release(holder), [(20, true), (30, false)]);
    assert_eq!(t.release(20), [(10, true)]);
}

#[test]
fn reader_joins_only_if_younger_than_every_waiting_writer() {
    let mut t = Table(LockTable::new());
    assert_eq!(t.ask(5, "a", S, false), Acquired::Granted);
    assert_eq!(t.ask(4, "a", X, false), Acquired::Waiting);
    assert_eq!(
        t.ask(6, "a", S, false),
        Acquired::Granted,
        "younger than the writer"
    );
    assert_eq!(
        t.ask(3, "a", S, false),
        Acquired::Waiting,
        "older than the writer"
    );
    assert_eq!(
        t.ask(8, "a", S, true),
        Acquired::Waiting,
        "alone: queues up"
    );
    assert_eq!(t.release(5), []);
    assert_eq!(t.release(6), [(4, true)]);
    assert_eq!(t.release(4), [(3, true), (8, true)]);
}

#[test]
fn starved_writer_is_not_overtaken_any_more() {
    let mut t = Table(LockTable::new());
    assert_eq!(t.ask(100, "a", S, false), Acquired::Granted);
    assert_eq!(t.ask(1, "a", X, false), Acquired::Waiting);
    for reader in 0..u64::from(OVERTAKEN_MAX) {
        assert_eq!(t.ask(200 + reader, "a", S, false), Acquired::Granted);
    }
    let died = Acquired::Died(Conflict {
        key: key("a"),
        holder: txn(1),
    });
    assert_eq!(t.ask(300, "a", S, false), died);
    assert_eq!(t.ask(301, "a", S, true), Acquired::Waiting);
}

#[test]
fn upgrade_waits_for_younger_readers_and_passes_writers_that_wait_for_it() {
    let mut t = Table(LockTable::new());
    assert_eq!(t.ask(4, "a", S, false), Acquired::Granted);
    assert_eq!(t.ask(6, "a", S, false), Acquired::Granted);
    assert_eq!(t.ask(2, "a", X, false), Acquired::Waiting);
    assert!(matches!(t.ask(6, "a", X, false), Acquired::Died(_)));
    assert_eq!(t.ask(4, "a", X, false), Acquired::Waiting);
    assert_eq!(t.release(6), [(4, true)]);
    assert_eq!(t.release(4), [(2, true)]);
    assert_eq!(t.ask(2, "a", S, false), Acquired::Granted, "held already");
}

/// All modes over all columns, and over some.
fn claims() -> Vec<Claim> {
    let mut all: Vec<Claim> = [S, I, F, X].map(Claim::from).to_vec();
    for columns in [Columns::NONE, Columns::one(1), Columns::one(2)] {
        all.extend([
            Claim::reads(columns),
            Claim::adds(columns),
            Claim::folds(columns),
        ]);
    }
    all
}

#[test]
fn readers_and_adders_of_other_columns_share_a_row() {
    let (tax, ytd) = (Columns::one(7), Columns::one(8));
    let mut t = Table(LockTable::new());
    assert_eq!(t.ask(5, "a", Claim::reads(tax), false), Acquired::Granted);
    for who in [6, 7] {
        assert_eq!(t.ask(who, "a", Claim::adds(ytd), false), Acquired::Granted);
        assert_eq!(t.ask(who, "a", Claim::reads(tax), false), Acquired::Granted);
    }
    assert_eq!(t.ask(6, "a", Claim::folds(ytd), false), Acquired::Granted);
    // A reader of what others add to, and an adder to what others read.
    assert_eq!(t.ask(4, "a", Claim::reads(ytd), false), Acquired::Waiting);
    assert_eq!(t.ask(3, "a", Claim::adds(tax), false), Acquired::Waiting);
    assert_eq!(t.ask(2, "a", X, false), Acquired::Waiting);
    assert_eq!(t.release(5), []);
    assert_eq!(t.release(6), []);
    assert_eq!(t.release(7), [(4, true), (3, true)]);
    assert_eq!(t.release(4), []);
    assert_eq!(t.release(3), [(2, true)]);
}

#[test]
fn claims_cover_and_join_as_they_conflict() {
    let all = claims();
    for &a in &all {
        for &b in &all {
            assert_eq!(a.conflicts(b), b.conflicts(a));
            assert_eq!(a.join(b), b.join(a));
            let both = a.join(b);
            assert!(both.covers(a) && both.covers(b));
            for &other in &all {
                let parts = a.conflicts(other) || b.conflicts(other);
                assert_eq!(
                    both.conflicts(other),
                    parts,
                    "{a:?} and {b:?} against {other:?}"
                );
                let excludes = !b.conflicts(other) || a.conflicts(other);
                assert!(!a.covers(b) || excludes, "{a:?} covers {b:?}");
            }
        }
    }
}

#[test]
fn increments_share_a_row_and_readers_wait() {
    let mut t = Table(LockTable::new());
    for who in [5, 9, 7] {
        assert_eq!(t.ask(who, "a", I, false), Acquired::Granted);
    }
    assert!(matches!(t.ask(8, "a", S, false), Acquired::Died(_)));
    assert!(matches!(t.range(8, "a", "b", S), Acquired::Died(_)));
    assert_eq!(t.ask(3, "a", S, false), Acquired::Waiting);
    assert_eq!(t.ask(5, "a", F, false), Acquired::Granted);
    assert_eq!(t.ask(10, "a", I, false), Acquired::Granted, "beside a fold");
    assert!(
        matches!(t.ask(9, "a", F, false), Acquired::Died(_)),
        "one fold at a time"
    );
    let mut others = Vec::new();
    t.0.each_incrementer(txn(7), &key("a"), &mut |other| others.push(other.counter));
    assert_eq!(others, [5, 9, 10]);
    assert_eq!(t.release(5), []);
    assert_eq!(t.release(9), []);
    assert_eq!(t.release(10), []);
    assert_eq!(t.release(7), [(3, true)]);
    assert_eq!(t.release(3), []);
    assert!(t.0.is_empty());
}

#[test]
fn ordered_folds_wait_whatever_their_age() {
    let mut t = Table(LockTable::new());
    let fold = |t: &mut Table, who: u64, ordered: bool| {
        let key = key("a");
        let request = LockRequest {
            txn: rank(who),
            item: Item::of(&key),
            mode: F,
            alone: false,
            ordered,
            deadline: None,
            now: Time(0),
            request: who,
        };
        t.0.acquire(request)
    };
    for who in 1..=6 {
        assert_eq!(t.ask(who, "a", I, false), Acquired::Granted);
    }
    assert_eq!(fold(&mut t, 3, true), Acquired::Granted);
    assert_eq!(fold(&mut t, 5, true), Acquired::Waiting);
    assert_eq!(fold(&mut t, 4, true), Acquired::Waiting);
    assert!(
        matches!(fold(&mut t, 1, false), Acquired::Died(_)),
        "older, but out of order"
    );
    assert_eq!(t.release(1), []);
    assert_eq!(t.release(3), [(5, true)]);
    assert_eq!(t.release(5), [(4, true)], "in order of arrival");
    assert_eq!(t.release(4), []);
    assert_eq!(fold(&mut t, 6, false), Acquired::Granted);
    assert_eq!(fold(&mut t, 2, false), Acquired::Waiting);
    assert_eq!(t.ask(7, "a", I, false), Acquired::Granted);
    assert_eq!(fold(&mut t, 7, true), Acquired::Waiting);
    assert_eq!(
        t.release(6),
        [(2, true)],
        "in order, it comes after those that are not"
    );
    assert_eq!(t.release(2), [(7, true)]);
    assert_eq!(t.release(7), []);
    assert!(t.0.is_empty());
}

#[test]
fn increment_and_read_together_are_exclusive() {
    for (first, second) in [(S, I), (I, S), (F, S), (I, X)] {
        let mut t = Table(LockTable::new());
        assert_eq!(t.ask(5, "a", first, false), Acquired::Granted);
        assert_eq!(t.ask(5, "a", second, false), Acquired::Granted);
        let item = key("a");
        assert!(t.0.holds(txn(5), &Item::of(&item), first));
        assert!(t.0.holds(txn(5), &Item::of(&item), second));
        assert!(matches!(t.ask(6, "a", I, false), Acquired::Died(_)));
        assert!(matches!(t.ask(6, "a", S, false), Acquired::Died(_)));
        // Another transaction is in the way of the second.
        let mut t = Table(LockTable::new());
        let beside = if first == S { S } else { I };
        assert_eq!(t.ask(5, "a", first, false), Acquired::Granted);
        assert_eq!(t.ask(6, "a", beside, false), Acquired::Granted);
        assert_eq!(t.ask(5, "a", second, false), Acquired::Waiting);
        assert_eq!(t.release(6), [(5, true)]);
        assert!(t.0.holds(txn(5), &Item::of(&item), second));
    }
}

/// When a request is taken back, those that waited behind it go on, and it gets no event.
#[test]
fn a_request_that_is_taken_back_frees_its_place() {
    let mut t = Table(LockTable::new());
    assert_eq!(t.ask(5, "a", S, false), Acquired::Granted);
    assert_eq!(t.ask(3, "a", X, false), Acquired::Waiting);
    assert_eq!(t.range(2, "a", "c", X), Acquired::Waiting);
    assert_eq!(t.ask(1, "a", S, false), Acquired::Waiting);
    let key = key("a");
    assert_eq!(t.0.waiting_on(&Item::of(&key)), [3, 2, 1]);
    t.0.withdraw(txn(9), 3);
    assert_eq!(t.0.waiting_on(&Item::of(&key)), [3, 2, 1], "it is not of 9");
    t.0.withdraw(txn(3), 3);
    t.0.withdraw(txn(2), 2);
    t.0.validate();
    let events = t.0.take_events();
    let granted: Vec<u64> = events.iter().map(|event| event.request).collect();
    assert_eq!(granted, [1]);
    assert!(!t.0.knows(txn(3)) && !t.0.knows(txn(2)));
    assert_eq!(t.release(5), []);
    assert_eq!(t.release(1), []);
    assert!(t.0.is_empty());
}

#[test]
fn exposed_waiter_dies_if_it_waits_for_an_older_one() {
    let mut t = Table(LockTable::new());
    assert_eq!(t.ask(1, "a", X, false), Acquired::Granted);
    assert_eq!(t.ask(5, "a", X, true), Acquired::Waiting);
    t.0.expose(txn(5));
    assert!(matches!(
        t.0.take_events()[..],
        [LockEvent {
            settled: Settled::Died(_),
            ..
        }]
    ));
    assert_eq!(t.ask(5, "a", X, true), Acquired::Waiting);
    assert_eq!(t.ask(5, "b", X, false), Acquired::Granted);
    assert!(matches!(
        t.0.take_events()[..],
        [LockEvent {
            settled: Settled::Died(_),
            ..
        }]
    ));
}

#[test]
fn urgent_goes_first() {
    let mut t = Table(LockTable::new());
    let urgent = Priority {
        urgent: true,
        ..rank(50)
    };
    assert_eq!(t.ask(9, "a", X, false), Acquired::Granted);
    assert_eq!(t.ask(3, "a", X, false), Acquired::Waiting);
    let key = key("a");
    let request = LockRequest {
        txn: urgent,
        item: Item::of(&key),
        mode: X,
        alone: false,
        ordered: false,
        deadline: None,
        now: Time(0),
        request: 50,
    };
    assert_eq!(t.0.acquire(request), Acquired::Waiting);
    assert_eq!(t.release(9), [(50, true), (3, false)]);
}

#[test]
fn loaded_rows_lie_in_runs_and_hold_like_others() {
    let mut t = Table(LockTable::new());
    t.0.runs_from = 1;
    for name in ["a", "b", "d", "c", "e"] {
        assert_eq!(t.ask(5, name, X, false), Acquired::Granted);
    }
    // "a" was the first key, "c" came behind "d".
    let shown = t.0.to_string();
    assert!(shown.contains("lock 3 rows in"), "{shown}");
    assert_eq!(t.ask(5, "d", S, false), Acquired::Granted);
    assert_eq!(t.ask(3, "d", S, false), Acquired::Waiting);
    assert!(matches!(t.ask(7, "b", S, false), Acquired::Died(_)));
    // Between them is room.
    assert_eq!(t.ask(7, "bb", X, false), Acquired::Granted);
    t.0.validate();
    let key = key("b");
    t.0.release_item(txn(5), &Item::of(&key));
    assert_eq!(t.ask(7, "b", X, false), Acquired::Granted);
    t.0.validate();
    assert_eq!(t.release(5), [(3, true)]);
    t.release(3);
    t.release(7);
    assert!(t.0.is_empty());
}

#[test]
fn rows_are_taken_together_or_not_at_all() {
    let mut t = Table(LockTable::new());
    let take = |t: &mut Table, who, names: &[&str]| {
        let names: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        let taken = t.0.take_rows(rank(who), IndexId(1), Slot(0), &names);
        t.0.validate();
        taken
    };
    assert_eq!(take(&mut t, 5, &["b", "d"]), Taken::New);
    assert_eq!(take(&mut t, 5, &["e", "f"]), Taken::New);
    assert!(t.0.to_string().contains("lock 4 rows in"), "{}", t.0);
    // Own rows, rows before them, and rows of others are for `acquire`.
    assert_eq!(take(&mut t, 5, &["f", "g"]), Taken::No);
    assert_eq!(take(&mut t, 5, &["c"]), Taken::No);
    assert_eq!(take(&mut t, 7, &["c", "d", "g"]), Taken::No);
    // Others may have runs between and behind them.
    assert_eq!(take(&mut t, 7, &["c"]), Taken::New);
    assert_eq!(take(&mut t, 7, &["g", "h"]), Taken::New);
    assert_eq!(t.ask(3, "g", S, false), Acquired::Waiting);
    assert_eq!(
        t.ask(6, "d", S, false),
        Acquired::Died(Conflict {
            key: key("d"),
            holder: txn(5),
        })
    );
    // Ranges count where they overlap.
    assert_eq!(t.range(8, "m", "p", S), Acquired::Granted);
    assert_eq!(take(&mut t, 5, &["l", "m"]), Taken::No);
    assert_eq!(take(&mut t, 8, &["n"]), Taken::New);
    assert_eq!(t.range(9, "q", "z", X), Acquired::Granted);
    assert_eq!(take(&mut t, 9, &["r", "s"]), Taken::Covered);
    assert_eq!(take(&mut t, 9, &["s", "z"]), Taken::New);
    assert_eq!(t.release(7), [(3, true)]);
    for who in [3, 5, 8, 9] {
        t.release(who);
    }
    assert!(t.0.is_empty());
}

#[test]
fn free_row_leaves_nothing_behind() {
    let mut table = LockTable::new();
    let keys: Vec<Key> = (0..64u64).map(|i| key(&format!("{i:08}"))).collect();
    for round in 1..2_000u64 {
        let key = &keys[(round % 64) as usize];
        let acquired = table.acquire(LockRequest {
            txn: rank(round),
            item: Item::of(key),
            mode: X,
            alone: true,
            ordered: false,
            deadline: None,
            now: Time(0),
            request: round,
        });
        assert_eq!(acquired, Acquired::Granted);
        table.release(txn(round));
    }
    assert!(table.is_empty());
}

#[test]
fn many_rows_are_given_up_in_slices_and_anyone_waits_for_who_is_over() {
    for (slice, runs_from) in [(2, 1_000), (2, 1)] {
        let mut t = Table(LockTable::new());
        t.0.set_slice(slice);
        t.0.runs_from = runs_from;
        for name in ["a", "b", "c", "d", "e"] {
            assert_eq!(t.ask(5, name, X, false), Acquired::Granted);
        }
        // The younger one has a lock, so that it may not wait for the older one.
        assert_eq!(t.ask(7, "z", X, false), Acquired::Granted);
        assert!(matches!(t.ask(7, "a", X, false), Acquired::Died(_)));
        t.0.end(txn(5));
        assert_eq!(t.ask(7, "a", X, false), Acquired::Waiting);
        assert_eq!(t.ask(3, "e", S, false), Acquired::Waiting);
        let mut granted = t.release(5);
        let mut slices = 1;
        while t.0.is_leaving() {
            assert!(t.0.release_slice() <= slice);
            t.0.validate();
            granted.extend(t.release(99));
            slices += 1;
        }
        assert_eq!(slices, 3, "{runs_from}");
        granted.sort_unstable();
        assert_eq!(granted, [(3, true), (7, true)]);
        // It comes again while its rows go: what it gets then, it keeps.
        for name in ["p", "q", "r", "s", "t"] {
            assert_eq!(t.ask(6, name, X, false), Acquired::Granted);
        }
        t.release(6);
        assert!(t.0.is_leaving());
        assert_eq!(t.range(6, "p", "z", S), Acquired::Granted);
        assert!(!t.0.is_leaving());
        assert_eq!(t.ask(6, "q", X, false), Acquired::Granted);
        t.0.validate();
        t.release(6);
        // It is forgotten: another life of the same rows is judged by age again.
        assert_eq!(t.ask(2, "b", X, false), Acquired::Granted);
        assert!(matches!(t.ask(7, "b", X, false), Acquired::Died(_)));
        for who in [2, 3, 7] {
            t.release(who);
        }
        assert!(t.0.is_empty() && !t.0.is_leaving());
    }
}
