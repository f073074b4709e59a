//! Naming the readers that are in the way of writers.

use super::*;

impl Table {
    /// Readers in the way, the keys that they have locked, and the writers that wait.
    fn named(&mut self) -> String {
        let named = self.0.take_in_the_way().into_iter().map(|named| {
            let key = String::from_utf8_lossy(&named.key.bytes);
            format!(
                "{} has {key}, {} waits",
                named.reader.counter, named.writer.counter
            )
        });
        named.collect::<Vec<_>>().join("; ")
    }
}

#[test]
fn readers_in_the_way_are_named_after_a_while_and_again() {
    let mut t = Table(LockTable::new());
    assert_eq!(t.ask(5, "a", S, false), Acquired::Granted);
    assert_eq!(t.ask(6, "a", S, false), Acquired::Granted);
    assert_eq!(t.ask(1, "a", X, false), Acquired::Waiting);
    assert_eq!(t.0.deadline(), Some(Time(GIVE_WAY_US)));
    t.0.expire(Time(GIVE_WAY_US - 1));
    assert!(!t.0.has_in_the_way());
    t.0.expire(Time(GIVE_WAY_US));
    assert_eq!(t.named(), "5 has a, 1 waits; 6 has a, 1 waits");
    let again = Time(GIVE_WAY_US + NAME_AGAIN_US);
    assert_eq!(t.0.deadline(), Some(again));
    t.release(6);
    t.0.expire(again);
    assert_eq!(t.named(), "5 has a, 1 waits");
    assert_eq!(t.release(5), [(1, true)]);
    assert_eq!(t.0.deadline(), None);
}

#[test]
fn only_shared_locks_are_in_the_way_and_only_of_writers() {
    let mut t = Table(LockTable::new());
    // A writer in the way of a writer.
    assert_eq!(t.ask(5, "a", X, false), Acquired::Granted);
    assert_eq!(t.ask(1, "a", X, false), Acquired::Waiting);
    // A reader in the way of an adder, and an adder in the way of a reader.
    assert_eq!(t.ask(6, "b", S, false), Acquired::Granted);
    assert_eq!(t.ask(2, "b", I, false), Acquired::Waiting);
    assert_eq!(t.ask(7, "c", I, false), Acquired::Granted);
    assert_eq!(t.ask(3, "c", S, false), Acquired::Waiting);
    // A range that was read in the way of an insertion.
    assert_eq!(t.range(8, "d", "f", S), Acquired::Granted);
    assert_eq!(t.ask(4, "e", X, false), Acquired::Waiting);
    t.0.expire(Time(GIVE_WAY_US));
    assert_eq!(t.named(), "6 has b, 2 waits; 8 has e, 4 waits");
    // A request that waits no more looks for no reader.
    for who in 1..9 {
        t.release(who);
    }
    assert!(t.0.is_empty());
    assert_eq!(t.0.deadline(), None);
}

#[test]
fn a_reader_is_named_when_requests_die_of_it_again_and_again() {
    let mut t = Table(LockTable::new());
    assert_eq!(t.ask(1, "a", S, false), Acquired::Granted);
    let row = key("a");
    let mut die = |at: u64| {
        let acquired = t.0.acquire(LockRequest {
            txn: rank(9),
            item: Item::of(&row),
            mode: X,
            alone: false,
            ordered: false,
            deadline: None,
            now: Time(at),
            request: 9,
        });
        assert!(matches!(acquired, Acquired::Died(_)));
        t.named()
    };
    assert_eq!(die(10), "");
    assert_eq!(die(GIVE_WAY_US), "");
    assert_eq!(die(10 + GIVE_WAY_US), "1 has a, 9 waits");
    assert_eq!(die(20 + GIVE_WAY_US), "");
    assert_eq!(die(10 + GIVE_WAY_US + NAME_AGAIN_US), "1 has a, 9 waits");
}
