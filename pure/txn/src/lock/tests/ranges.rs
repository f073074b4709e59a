//! Ranges of rows, and whole shards.

use super::*;

#[test]
fn ranges_and_rows_are_given_up_but_for_those_that_are_kept() {
    let mut t = Table(LockTable::new());
    assert_eq!(t.range(5, "a", "c", S), Acquired::Granted);
    for name in ["b", "x", "y"] {
        assert_eq!(t.ask(5, name, X, false), Acquired::Granted);
    }
    for (who, name) in [(4, "a"), (3, "x"), (2, "y")] {
        assert_eq!(t.ask(who, name, X, false), Acquired::Waiting);
    }
    t.0.release_but(txn(5), &|kept| *kept == key("x"));
    t.0.validate();
    let events = t.0.take_events();
    let granted: Vec<u64> = events.iter().map(|event| event.request).collect();
    assert_eq!(granted, [4, 2]);
    assert_eq!(t.release(5), [(3, true)]);
    for who in [4, 3, 2] {
        assert_eq!(t.release(who), []);
    }
    assert!(t.0.is_empty());
}

#[test]
fn ranges_exclude_inserts_and_cover_rows() {
    let mut t = Table(LockTable::new());
    assert_eq!(t.range(5, "b", "d", S), Acquired::Granted);
    assert_eq!(t.ask(5, "c", S, false), Acquired::Granted);
    assert!(matches!(t.ask(6, "c", X, false), Acquired::Died(_)));
    assert_eq!(t.ask(6, "c", S, false), Acquired::Granted);
    assert_eq!(t.ask(7, "d", X, false), Acquired::Granted);
    assert_eq!(t.ask(3, "c", X, false), Acquired::Waiting);
    assert!(matches!(t.range(8, "a", "c", X), Acquired::Died(_)));
    assert_eq!(t.range(2, "a", "c", X), Acquired::Waiting);
    assert_eq!(t.release(5), [(2, true)]);
    assert_eq!(t.release(6), [(3, true)]);
    assert_eq!(t.release(2), []);
    assert_eq!(t.release(3), []);
    t.release(7);
    assert!(t.0.is_empty());
}

#[test]
fn whole_shard_excludes_everything() {
    let mut t = Table(LockTable::new());
    let shard = |who| LockRequest {
        txn: rank(who),
        item: Item::Shard,
        mode: X,
        alone: false,
        ordered: false,
        deadline: Some(Time(50)),
        now: Time(0),
        request: who,
    };
    assert_eq!(t.ask(5, "a", S, false), Acquired::Granted);
    assert_eq!(t.0.acquire(shard(4)), Acquired::Waiting);
    assert_eq!(t.release(5), [(4, true)]);
    assert_eq!(t.ask(4, "a", X, false), Acquired::Granted);
    assert_eq!(t.0.acquire(shard(3)), Acquired::Waiting);
    assert!(matches!(t.ask(9, "z", S, false), Acquired::Died(_)));
    assert_eq!(t.0.deadline(), Some(Time(50)));
    t.0.expire(Time(50));
    assert!(matches!(
        t.0.take_events()[..],
        [LockEvent {
            settled: Settled::TimedOut(_),
            ..
        }]
    ));
    assert_eq!(t.0.deadline(), None);
}

/// A transaction holds many rows of a range that another one waits for: neither its next rows nor
/// the slices that free its rows look at all of them.
#[test]
fn whoever_waits_for_a_range_costs_little_however_many_rows_are_held() {
    const ROWS: u64 = 5_000;
    for alone in [false, true] {
        let mut table = Table(LockTable::new());
        table.0.set_slice(100);
        let name = |n: u64| format!("k{n:06}");
        for n in 0..ROWS {
            assert_eq!(
                table.ask(8, &name(n), LockMode::Shared, false),
                Acquired::Granted
            );
        }
        let range = KeyRange {
            low: b"k".to_vec(),
            high: None,
        };
        table.0.looked_at.set(0);
        let asked = table.0.acquire(LockRequest {
            txn: rank(5),
            item: Item::Range {
                index: IndexId(1),
                slot: None,
                range: &range,
            },
            mode: LockMode::Exclusive,
            alone,
            ordered: false,
            deadline: None,
            now: Time(0),
            request: 5,
        });
        assert_eq!(asked, Acquired::Waiting);
        for n in ROWS..2 * ROWS {
            assert_eq!(
                table.ask(8, &name(n), LockMode::Shared, false),
                Acquired::Granted
            );
        }
        table.0.end(txn(8));
        table.0.release(txn(8));
        while table.0.is_leaving() {
            table.0.release_slice();
        }
        let looked_at = table.0.looked_at.get();
        assert!(looked_at < 4 * ROWS, "{looked_at} locks were looked at");
        let granted = table.0.take_events();
        assert_eq!(granted.len(), 1);
        assert_eq!(granted[0].settled, Settled::Granted);
    }
}
