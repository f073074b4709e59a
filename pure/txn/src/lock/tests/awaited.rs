//! The rows for whose locks requests wait.

use super::*;

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
    let rows = table.0.awaited_rows(&|_| true, 5);
    let told = rows.iter().map(|row| (&row.key, row.holder, row.waiters));
    let (a, b) = (key("a"), key("b"));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [(&b, Some(txn(8)), 3), (&a, Some(txn(9)), 1)]
    );
    assert_eq!(table.0.awaited_rows(&|_| true, 1).len(), 1);
    assert_eq!(table.0.awaited_rows(&|row| *row == a, 5)[0].key, a);
    table.0.release(txn(9));
    assert_eq!(table.0.awaited_rows(&|_| true, 5).len(), 1);
}
