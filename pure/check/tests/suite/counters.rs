//! Counters: what cannot be, and what is close to it and can.

use crate::support::{at, names, overlapping, violated};
use check::{Demand, History, Level, Op, Outcome, Txn, check_floor};

fn add(key: u64, delta: i64) -> Op {
    Op::Add { key, delta }
}

fn count(key: u64, value: i64) -> Op {
    Op::ReadCounter { key, value }
}

/// The counter was found at `bound` or above.
fn at_least(key: u64, bound: i64) -> Op {
    let at_least = true;
    Op::Compare {
        key,
        bound,
        at_least,
    }
}

/// The counter was found below `bound`.
fn below(key: u64, bound: i64) -> Op {
    let at_least = false;
    Op::Compare {
        key,
        bound,
        at_least,
    }
}

/// Takes `amount`, which was there.
fn take(key: u64, amount: i64) -> [Op; 2] {
    [at_least(key, amount), add(key, -amount)]
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

#[test]
fn a_comparison_is_of_a_sum_of_increments() {
    let found = |op: Op, level| {
        let history = overlapping(&[&[add(1, 4)], &[add(1, -6)], &[op]]);
        names(&history, level).is_empty()
    };
    for level in [Level::ReadCommitted, Level::StrictSerializable] {
        // The counter is -6, -2, 0 or 4.
        let above = (-9..9).filter(|bound| found(at_least(1, *bound), level));
        assert_eq!(above.max(), Some(4), "{level}");
        let beneath = (-9..9).filter(|bound| found(below(1, *bound), level));
        assert_eq!(beneath.min(), Some(-5), "{level}");
    }
    let history = overlapping(&[&[add(1, 4)], &[below(1, 0)]]);
    assert_eq!(names(&history, Level::ReadCommitted), ["wrong-comparison"]);
    assert!(!violated(&history).contains(&Level::ReadUncommitted));
}

#[test]
fn own_increments_count_in_a_comparison() {
    let mut history = overlapping(&[&[at_least(1, 5), add(1, -5), at_least(1, 3), add(1, -3)]]);
    history.initial_counters.insert(1, 8);
    assert_eq!(violated(&history), []);
    history.initial_counters.insert(1, 7);
    assert_eq!(names(&history, Level::ReadCommitted), ["wrong-comparison"]);
    // What it adds later is not in yet.
    let mut later = overlapping(&[&[below(1, 5), add(1, 9)]]);
    later.initial_counters.insert(1, 4);
    assert_eq!(violated(&later), []);
    later.initial_counters.insert(1, 5);
    assert_eq!(names(&later, Level::ReadCommitted), ["wrong-comparison"]);
}

#[test]
fn real_time_bounds_a_comparison() {
    let history = |op: Op| {
        let mut history = History::new();
        history.push(at(1, 0, 10, &[add(1, 5)]));
        history.push(at(2, 12, 50, &[add(1, -2)]));
        history.push(at(3, 20, 30, &[op]));
        history.push(at(4, 40, 50, &[add(1, 100)]));
        history.push(at(4, 60, 70, &[add(1, -100)]));
        history
    };
    // The counter is 5 or 3, whatever happens later.
    for op in [at_least(1, 5), at_least(1, 3), below(1, 6), below(1, 4)] {
        assert_eq!(violated(&history(op.clone())), [], "{op:?}");
    }
    let strong = [
        Level::StrongReadCommitted,
        Level::StrongSnapshotIsolation,
        Level::StrictSerializable,
    ];
    for op in [at_least(1, 6), below(1, 3)] {
        assert_eq!(violated(&history(op.clone())), strong, "{op:?}");
    }
}

#[test]
fn unknown_increments_may_be_in_a_comparison_and_unknown_comparisons_prove_nothing() {
    let history = |op: Op, outcome| {
        let mut history = overlapping(&[&[op]]);
        let mut txn = at(5, 0, 100, &[add(1, 3)]);
        txn.outcome = outcome;
        history.push(txn);
        violated(&history).is_empty()
    };
    for outcome in [Outcome::Unknown, Outcome::Committed] {
        assert!(history(at_least(1, 3), outcome) && history(below(1, 1), outcome));
        assert!(!history(at_least(1, 4), outcome) && !history(below(1, 0), outcome));
    }
    assert!(history(below(1, 1), Outcome::Aborted) && !history(at_least(1, 1), Outcome::Aborted));
    for outcome in [Outcome::Unknown, Outcome::Aborted] {
        let mut wrong = overlapping(&[&[at_least(1, 9)]]);
        wrong.txns[0].outcome = outcome;
        assert_eq!(violated(&wrong), []);
    }
}

#[test]
fn looks_of_one_transaction_are_at_one_state() {
    let judged = |ops: &[Op]| {
        let history = overlapping(&[&[add(1, 4)], &[add(1, -3)], ops]);
        (
            names(&history, Level::SnapshotIsolation).is_empty(),
            names(&history, Level::ReadCommitted).is_empty(),
        )
    };
    for ops in [
        [at_least(1, 4), below(1, 5)],
        [count(1, 1), below(1, 2)],
        [at_least(1, 1), count(1, 1)],
    ] {
        assert_eq!(judged(&ops), (true, true), "{ops:?}");
    }
    for ops in [
        [at_least(1, 4), below(1, 4)],
        [below(1, 1), at_least(1, 1)],
        [count(1, 1), at_least(1, 2)],
        [below(1, 1), count(1, 1)],
    ] {
        assert_eq!(judged(&ops), (false, true), "{ops:?}");
    }
    // Between the two it took two itself.
    let own = [count(1, 4), add(1, -2), below(1, 3), at_least(1, 2)];
    assert_eq!(judged(&own), (true, true));
}

/// Anomalies of a stock that begins at 5, under the strictest level and under one without time.
fn of_stock(txns: &[Txn]) -> [Vec<String>; 2] {
    let mut history = History::new();
    history.initial_counters.insert(1, 5);
    history.txns = txns.to_vec();
    [Level::StrictSerializable, Level::ReadCommitted].map(|level| {
        let verdict = check_floor(&history, 0, level, &Demand::NONE);
        verdict.anomalies.iter().map(check::Anomaly::name).collect()
    })
}

#[test]
fn a_stock_is_never_sold_twice() {
    let none: [Vec<&str>; 2] = [vec![], vec![]];
    let two = |second: &[Op]| {
        let first = at(1, 0, 100, &take(1, 4));
        of_stock(&[first, at(2, 0, 100, second)])
    };
    assert_eq!(two(&take(1, 1)), none);
    assert_eq!(two(&[below(1, 4)]), none);
    // Each comparison can be right by itself, and nobody looks at what is left.
    assert_eq!(
        two(&take(1, 4)),
        [
            vec!["below-least", "below-least-realtime"],
            vec!["below-least"]
        ]
    );
    // Something was put back, but too late for those who took.
    let late = |begin| {
        let back = at(3, begin, 200, &[add(1, 9)]);
        of_stock(&[at(1, 0, 100, &take(1, 4)), at(2, 0, 90, &take(1, 4)), back])
    };
    assert_eq!(late(100), none);
    assert_eq!(late(101), [vec!["below-least-realtime"], vec![]]);
}

#[test]
fn a_stock_is_not_read_below_its_least() {
    let read = |value| of_stock(&[at(1, 0, 9, &[add(1, -7), count(1, value)])]);
    assert_eq!(read(-2)[1], ["below-least"]);
    let mut unknown = at(1, 0, 9, &[add(1, -7)]);
    unknown.outcome = Outcome::Unknown;
    // Whether it has happened is open until somebody sees it.
    assert_eq!(of_stock(&[unknown.clone()]), [[""; 0]; 2]);
    let seen = of_stock(&[unknown, at(2, 20, 30, &[count(1, -2)])]);
    assert_eq!(seen, [vec!["below-least"], vec!["below-least"]]);
}
