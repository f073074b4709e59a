//! The rows for whose locks requests wait.

use super::*;

fn longest(table: &Table, count: usize) -> Vec<AwaitedRow> {
    AwaitedRow::longest(table.0.awaited_rows(&|_| true, &|_| true), count)
}

#[test]
fn awaited_rows_are_told_with_the_longest_queue_first() {
    let mut table = Table(LockTable::new());
    let exclusive = LockMode::Exclusive;
    for (who, name) in [(9, "a"), (8, "b"), (7, "c")] {
        assert_eq!(table.ask(who, name, exclusive, true), Acquired::Granted);
    }
    // Older ones wait for younger ones.
    for (who, name) in [(5, "b"), (4, "a"), (3, "b"), (2, "b")] {
        assert_eq!(table.ask(who, name, exclusive, false), Acquired::Waiting);
    }
    assert_eq!(table.range(1, "a", "z", exclusive), Acquired::Waiting);
    let rows = longest(&table, 5);
    let told = rows.iter().map(|row| (&row.key, row.holder, row.waiters));
    let (a, b) = (key("a"), key("b"));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [(&b, Some(txn(8)), 3), (&a, Some(txn(9)), 1)]
    );
    assert_eq!(longest(&table, 1).len(), 1);
    assert_eq!(table.0.awaited_rows(&|row| *row == a, &|_| true)[0].key, a);
    table.0.release(txn(9));
    assert_eq!(longest(&table, 5).len(), 1);
}

#[test]
fn the_locks_of_awaited_rows_are_told_with_holders_and_waiters() {
    let mut table = Table(LockTable::new());
    let (shared, exclusive) = (LockMode::Shared, LockMode::Exclusive);
    for (who, name, mode) in [
        (9, "a", shared),
        (8, "a", shared),
        (7, "b", exclusive),
        (6, "c", exclusive),
    ] {
        assert_eq!(table.ask(who, name, mode, true), Acquired::Granted);
    }
    for (who, name) in [(5, "a"), (4, "a"), (3, "b")] {
        assert_eq!(table.ask(who, name, exclusive, false), Acquired::Waiting);
    }
    let told = |locks: &[AwaitedLock]| -> Vec<_> {
        let told = locks.iter();
        let told = told.map(|lock| (lock.txn, lock.mode, lock.since.is_none()));
        told.collect()
    };
    let locks = table.0.awaited_locks(100);
    // Nothing waits for row c.
    assert_eq!(
        told(&locks),
        [
            (txn(9), shared, true),
            (txn(8), shared, true),
            (txn(5), exclusive, false),
            (txn(4), exclusive, false),
            (txn(7), exclusive, true),
            (txn(3), exclusive, false),
        ]
    );
    let (a, b) = (locks[0].what, locks[4].what);
    assert!(a != b && locks[..4].iter().all(|lock| lock.what == a));
    assert!(locks[4..].iter().all(|lock| lock.what == b));
    // A bound ends the list behind the request that reaches it.
    assert_eq!(table.0.awaited_locks(1).len(), 3);
    // A range is something else than a row of it.
    assert_eq!(table.range(1, "a", "z", exclusive), Acquired::Waiting);
    let locks = table.0.awaited_locks(100);
    let range = locks.last().unwrap();
    assert!(matches!(range.what, Awaited::Range(..)), "{range:?}");
    let in_way = locks.iter().filter(|lock| lock.what == range.what);
    assert_eq!(in_way.filter(|lock| lock.since.is_none()).count(), 4);
}

#[test]
fn a_question_looks_at_a_bounded_number_of_locks() {
    let mut table = Table(LockTable::new());
    let (shared, exclusive) = (LockMode::Shared, LockMode::Exclusive);
    // Rows that may be read with others, and two behind them that may not.
    for row in 0..6_000 {
        let name = format!("a{row:06}");
        assert_eq!(table.ask(20, &name, shared, true), Acquired::Granted);
    }
    for (who, name) in [(90, "b"), (91, "c")] {
        assert_eq!(table.ask(who, name, exclusive, true), Acquired::Granted);
    }
    let holders = |table: &Table| -> Vec<TxnId> {
        let locks = table.0.awaited_locks(100);
        let held = locks.iter().filter(|lock| lock.since.is_none());
        held.map(|lock| lock.txn).collect()
    };
    assert_eq!(table.range(40, "a", "d", shared), Acquired::Waiting);
    assert_eq!(holders(&table), [], "the looks for one request are spent");
    assert_eq!(table.ask(39, "b", exclusive, false), Acquired::Waiting);
    assert_eq!(holders(&table), [txn(90)], "the next has its own");
    for who in (29..39).rev() {
        assert_eq!(table.range(who, "a", "d", shared), Acquired::Waiting);
    }
    assert_eq!(table.ask(28, "c", exclusive, false), Acquired::Waiting);
    assert_eq!(holders(&table), [txn(90)], "the looks of all are spent");
    assert_eq!(table.0.awaited_locks(100).len(), 14);
}

#[test]
fn a_holder_of_several_locks_is_told_with_the_strongest() {
    let mut table = Table(LockTable::new());
    let (shared, exclusive) = (LockMode::Shared, LockMode::Exclusive);
    assert_eq!(table.range(9, "a", "z", shared), Acquired::Granted);
    assert_eq!(table.ask(9, "b", exclusive, true), Acquired::Granted);
    assert_eq!(table.ask(1, "b", exclusive, false), Acquired::Waiting);
    let locks = table.0.awaited_locks(100);
    let holders = locks.iter().filter(|lock| lock.since.is_none());
    let holders = holders.map(|lock| (lock.txn, lock.mode));
    assert_eq!(holders.collect::<Vec<_>>(), [(txn(9), exclusive)]);
}
