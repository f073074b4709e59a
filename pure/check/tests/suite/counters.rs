//! Counters: what cannot be, and what is close to it and can.

use crate::support::{at, names, overlapping, violated};
use check::{History, Level, Op, Outcome, Txn};

fn add(key: u64, delta: i64) -> Op {
    Op::Add { key, delta }
}

fn count(key: u64, value: i64) -> Op {
    Op::ReadCounter { key, value }
}

#[test]
fn a_read_is_a_sum_of_increments() {
    let seen = |value, level| {
        let history = overlapping(&[&[add(1, 4)], &[add(1, 6)], &[count(1, value)]]);
        names(&history, level).is_empty()
    };
    let possible = |level| -> Vec<i64> { (-12..=12).filter(|v| seen(*v, level)).collect() };
    // Where the increments are many, only bounds and steps are certain.
    let bounds = possible(Level::Serializable);
    assert_eq!(bounds, [0, 2, 4, 6, 8, 10]);
    // With time, few are left that may or may not be in, and every set of them is tried.
    assert_eq!(possible(Level::StrictSerializable), [0, 4, 6, 10]);
    let mixed = |value| {
        let history = overlapping(&[&[add(1, 4)], &[add(1, -6)], &[count(1, value)]]);
        names(&history, Level::Serializable).is_empty()
    };
    let possible: Vec<i64> = (-12..=12).filter(|value| mixed(*value)).collect();
    assert_eq!(possible, [-6, -4, -2, 0, 2, 4]);
}

#[test]
fn own_increments_are_in_and_counters_may_begin_anywhere() {
    let mut history = overlapping(&[&[add(1, 5), count(1, 105)]]);
    assert_eq!(names(&history, Level::ReadCommitted), ["wrong-sum"]);
    history.initial_counters.insert(1, 100);
    assert_eq!(violated(&history), []);
    let before = overlapping(&[&[count(1, 5), add(1, 5)]]);
    assert_eq!(names(&before, Level::ReadCommitted), ["wrong-sum"]);
}

#[test]
fn rolled_back_increments_are_out_and_unknown_ones_may_be_in() {
    let history = |outcome, value| {
        let mut history = overlapping(&[&[count(1, value)]]);
        let mut txn = at(5, 0, 100, &[add(1, 3)]);
        txn.outcome = outcome;
        history.push(txn);
        violated(&history).is_empty()
    };
    assert!(history(Outcome::Aborted, 0) && !history(Outcome::Aborted, 3));
    assert!(history(Outcome::Unknown, 0) && history(Outcome::Unknown, 3));
    assert!(!history(Outcome::Unknown, 6));
}

#[test]
fn real_time_bounds_the_sum() {
    let history = |value| {
        let mut history = History::new();
        history.push(at(1, 0, 10, &[add(1, 1)]));
        history.push(at(2, 5, 50, &[add(1, 10)]));
        history.push(at(3, 20, 30, &[count(1, value)]));
        history.push(at(4, 40, 50, &[add(1, 100)]));
        history
    };
    for value in [1, 11] {
        assert_eq!(violated(&history(value)), [], "{value}");
    }
    let strong = [
        Level::StrongReadCommitted,
        Level::StrongSnapshotIsolation,
        Level::StrictSerializable,
    ];
    // 10 is inside of the bounds, but one of the two that it needs was not there yet, or both were.
    for value in [0, 2, 10, 100, 101, 111] {
        assert_eq!(violated(&history(value)), strong, "{value}");
    }
}

#[test]
fn a_long_fork_of_counters() {
    let fork = |x, y| {
        overlapping(&[
            &[add(1, 1)],
            &[add(2, 1)],
            &[count(1, 1), count(2, 0)],
            &[count(1, x), count(2, y)],
        ])
    };
    assert_eq!(
        names(&fork(0, 1), Level::SnapshotIsolation),
        ["G-nonadjacent"]
    );
    for (x, y) in [(0, 0), (1, 0), (1, 1)] {
        assert_eq!(violated(&fork(x, y)), [], "{x} {y}");
    }
}

#[test]
fn a_skewed_snapshot_of_counters() {
    let history = |y| overlapping(&[&[add(1, 1), add(2, 1)], &[count(1, 1), count(2, y)]]);
    assert_eq!(names(&history(0), Level::SnapshotIsolation), ["G-single"]);
    assert_eq!(violated(&history(1)), []);
}

#[test]
fn who_reads_and_adds_is_the_next() {
    let history = |second, seen| {
        overlapping(&[
            &[count(1, 0), add(1, 3)],
            &[count(1, second), add(1, 3)],
            &[count(1, seen)],
        ])
    };
    assert_eq!(violated(&history(3, 6)), []);
    assert!(names(&history(0, 6), Level::Serializable).contains(&"G2-item".to_string()));
    // Increments commute: snapshot isolation says nothing of them.
    let verdict = violated(&history(0, 6));
    assert!(!verdict.contains(&Level::SnapshotIsolation));
    let between = overlapping(&[&[count(1, 0), add(1, 3)], &[add(1, 2)], &[count(1, 2)]]);
    assert!(names(&between, Level::Serializable).contains(&"G2-item".to_string()));
}

#[test]
fn reads_that_do_not_repeat() {
    let history = overlapping(&[&[add(1, 1)], &[count(1, 0), count(1, 1)]]);
    assert!(names(&history, Level::SnapshotIsolation).contains(&"G-single".to_string()));
    let own = overlapping(&[&[count(1, 0), add(1, 1), count(1, 1)]]);
    assert_eq!(violated(&own), []);
}

#[test]
fn a_transaction_without_an_end_may_add_at_any_time() {
    let mut history = History::new();
    let mut txn = Txn::begin(1, 0);
    txn.ops = vec![add(1, 7)];
    history.push(txn);
    history.push(at(2, 10, 20, &[count(1, 0)]));
    history.push(at(2, 30, 40, &[count(1, 7)]));
    assert_eq!(violated(&history), []);
    history.push(at(2, 50, 60, &[count(1, 0)]));
    let verdict = violated(&history);
    assert!(verdict.contains(&Level::StrongSessionSerializable));
    assert!(!verdict.contains(&Level::Serializable));
}
