//! Books by hand, one for each anomaly and one close to it that is fine, and a database that is
//! serial.

use crate::book::{Attempt, Book, Judged, Seen};
use crate::item::{Item, Kind};
use crate::sighting::Access;
use base::Prng;
use check::{Demand, Judgement, Level, Outcome};
use std::collections::BTreeMap;

const WAREHOUSE: Kind = Kind::WarehouseYtd;
const CUSTOMER: Kind = Kind::Customer;

fn item(kind: Kind) -> Item {
    Item::new(kind, 1, 2, 3).unwrap()
}

fn read(kind: Kind, version: u64) -> Access {
    Access::read(item(kind), version)
}

/// Reads a version and writes the next one.
fn change(kind: Kind, before: u64) -> [Access; 2] {
    [read(kind, before), Access::write(item(kind), before + 1)]
}

fn sight(accesses: &[Access]) -> Seen {
    Seen {
        accesses: accesses.to_vec(),
        entries: Vec::new(),
    }
}

/// A book of attempts that all overlap.
fn book(attempts: &[(Outcome, &[Access])]) -> Book {
    let mut book = Book::new(1_000);
    for (process, (outcome, seen)) in (1..).zip(attempts) {
        let attempt = Attempt {
            process,
            invoked: 1,
            completed: 100,
            outcome: *outcome,
        };
        book.keep(attempt, &sight(seen));
    }
    book
}

fn judged(book: Book, level: Level) -> Judged {
    book.judge(level, &Demand::NONE)
}

/// What a serializable database must not show.
fn names(attempts: &[(Outcome, &[Access])]) -> Vec<String> {
    let verdict = judged(book(attempts), Level::Serializable).verdict;
    verdict.anomalies.iter().map(|it| it.name()).collect()
}

const COMMITTED: Outcome = Outcome::Committed;
const ABORTED: Outcome = Outcome::Aborted;
const UNKNOWN: Outcome = Outcome::Unknown;

#[test]
fn a_version_that_two_have_overwritten_is_a_lost_update() {
    let (first, second) = (change(CUSTOMER, 5), change(CUSTOMER, 6));
    assert!(names(&[(COMMITTED, &first), (COMMITTED, &second)]).is_empty());
    assert_eq!(
        names(&[(COMMITTED, &first), (COMMITTED, &first)]),
        ["lost-update"]
    );
    // Who was rolled back has overwritten nothing.
    assert!(names(&[(ABORTED, &first), (COMMITTED, &first)]).is_empty());
    // Nobody knows whether the other one has.
    assert!(names(&[(UNKNOWN, &first), (COMMITTED, &first)]).is_empty());
}

#[test]
fn what_was_rolled_back_must_not_be_seen() {
    let dirty = change(CUSTOMER, 5);
    let seen = [read(CUSTOMER, 6)];
    assert_eq!(names(&[(ABORTED, &dirty), (COMMITTED, &seen)]), ["G1a"]);
    let again = change(CUSTOMER, 5);
    let all: [(Outcome, &[Access]); 3] =
        [(ABORTED, &dirty), (COMMITTED, &again), (COMMITTED, &seen)];
    assert!(names(&all).is_empty());
}

/// Who was not kept may have written the version, too, and committed.
#[test]
fn what_others_may_have_written_is_not_dirty() {
    let dirty = change(CUSTOMER, 5);
    let seen = [read(CUSTOMER, 6)];
    let found = |from: u64| {
        let mut book = book(&[(ABORTED, &dirty), (COMMITTED, &seen)]);
        book.miss(1, from);
        let verdict = judged(book, Level::Serializable).verdict;
        verdict.anomalies.len()
    };
    // The reader was done by 100.
    assert_eq!((found(101), found(100), found(0)), (1, 0, 0));
    // Nor is it known what somebody has done whose answers were lost.
    let lost: [(Outcome, &[Access]); 3] = [(ABORTED, &dirty), (COMMITTED, &seen), (UNKNOWN, &[])];
    assert!(names(&lost).is_empty());
}

#[test]
fn a_snapshot_is_of_one_moment() {
    let writer = [change(WAREHOUSE, 5), change(CUSTOMER, 7)].concat();
    let torn = [read(WAREHOUSE, 5), read(CUSTOMER, 8)];
    let whole = [read(WAREHOUSE, 6), read(CUSTOMER, 8)];
    assert_eq!(
        names(&[(COMMITTED, &writer), (COMMITTED, &torn)]),
        ["G-single"]
    );
    assert!(names(&[(COMMITTED, &writer), (COMMITTED, &whole)]).is_empty());
    let committed = judged(
        book(&[(COMMITTED, &writer), (COMMITTED, &torn)]),
        Level::ReadCommitted,
    );
    assert_eq!(committed.verdict.judgement, Judgement::Pass);
}

#[test]
fn one_that_reads_twice_sees_the_same() {
    let reader = [&[read(CUSTOMER, 5)][..], &change(CUSTOMER, 6)].concat();
    let other = change(CUSTOMER, 5);
    let found = names(&[(COMMITTED, &other), (COMMITTED, &reader)]);
    assert!(found.contains(&String::from("G-single")), "{found:?}");
}

#[test]
fn write_skew_is_two_that_read_what_the_other_changes() {
    let one = [&[read(WAREHOUSE, 5)][..], &change(CUSTOMER, 7)].concat();
    let other = [&[read(CUSTOMER, 7)][..], &change(WAREHOUSE, 5)].concat();
    assert_eq!(
        names(&[(COMMITTED, &one), (COMMITTED, &other)]),
        ["G2-item"]
    );
}

#[test]
fn writes_of_two_are_not_interleaved() {
    let one = [change(WAREHOUSE, 5), change(CUSTOMER, 8)].concat();
    let other = [change(WAREHOUSE, 6), change(CUSTOMER, 7)].concat();
    let found = names(&[(COMMITTED, &one), (COMMITTED, &other)]);
    assert_eq!(found[0], "G0");
    let verdict = judged(
        book(&[(COMMITTED, &one), (COMMITTED, &other)]),
        Level::ReadUncommitted,
    );
    let verdict = verdict.verdict;
    assert_eq!(verdict.anomalies[0].txns.len(), 2);
    let story = &verdict.anomalies[0].story;
    assert!(story.contains(":w_ytd.1"), "{story}");
}

#[test]
fn two_that_see_each_other_are_a_circle() {
    let one = [&change(WAREHOUSE, 5)[..], &[read(CUSTOMER, 8)]].concat();
    let other = [&change(CUSTOMER, 7)[..], &[read(WAREHOUSE, 6)]].concat();
    assert_eq!(names(&[(COMMITTED, &one), (COMMITTED, &other)]), ["G1c"]);
}

#[test]
fn a_version_that_nobody_wrote_is_told_where_nothing_is_missing() {
    let first = change(CUSTOMER, 5);
    let seen = [read(CUSTOMER, 9)];
    let all: [(Outcome, &[Access]); 2] = [(COMMITTED, &first), (COMMITTED, &seen)];
    assert_eq!(names(&all), ["unwritten-value"]);
    let mut with_gap = book(&all);
    with_gap.miss(1, 0);
    let verdict = judged(with_gap, Level::StrictSerializable).verdict;
    assert_eq!(verdict.judgement, Judgement::Pass);
    let unknown: [(Outcome, &[Access]); 3] =
        [(COMMITTED, &first), (COMMITTED, &seen), (UNKNOWN, &[])];
    assert!(names(&unknown).is_empty());
}

#[test]
fn the_last_order_of_a_customer_is_ordered_by_its_number() {
    const LAST: Kind = Kind::LastOrder;
    let order = |id| {
        let taken = change(Kind::NextOrder, id);
        [&taken[..], &[Access::write(item(LAST), id)]].concat()
    };
    // The reader has seen the second order's district counter and not the order.
    let torn = [read(Kind::NextOrder, 33), read(LAST, 31)];
    let orders = [order(31), order(32)];
    let all: [(Outcome, &[Access]); 3] = [
        (COMMITTED, &orders[0]),
        (COMMITTED, &orders[1]),
        (COMMITTED, &torn),
    ];
    assert_eq!(names(&all), ["G-single"]);
    let whole = [read(Kind::NextOrder, 33), read(LAST, 32)];
    let all: [(Outcome, &[Access]); 3] = [
        (COMMITTED, &orders[0]),
        (COMMITTED, &orders[1]),
        (COMMITTED, &whole),
    ];
    assert!(names(&all).is_empty());
}

#[test]
fn a_book_is_full_at_its_bound() {
    let mut book = Book::new(3);
    let attempt = Attempt {
        process: 1,
        invoked: 1,
        completed: 2,
        outcome: COMMITTED,
    };
    book.keep(attempt, &sight(&change(CUSTOMER, 1)));
    assert!(book.has_room());
    book.keep(attempt, &sight(&change(CUSTOMER, 2)));
    assert!(!book.has_room());
    book.miss(1, 0);
    let judged = judged(book, Level::Serializable);
    assert_eq!((judged.operations, judged.missing), (4, 1));
}

/// A database that runs one transaction after the other, of which some are rolled back.
fn serial(prng: &mut Prng, stale_one_in: u64) -> Book {
    let items: Vec<Item> = (0..6)
        .map(|id| Item::new(CUSTOMER, 1, 1, id).unwrap())
        .collect();
    let mut state: BTreeMap<Item, u64> = items.iter().map(|item| (*item, 3)).collect();
    let mut old = state.clone();
    let mut book = Book::new(100_000);
    for number in 0..300u64 {
        let begun = state.clone();
        let is_stale = stale_one_in > 0 && prng.below(stale_one_in) == 0;
        let mut seen = Vec::new();
        for _ in 0..1 + prng.below(4) {
            let item = items[prng.below(6) as usize];
            let version = state[&item];
            match prng.below(2) {
                0 if is_stale => seen.push(Access::read(item, old[&item])),
                0 => seen.push(Access::read(item, version)),
                _ => {
                    seen.push(Access::read(item, version));
                    seen.push(Access::write(item, version + 1));
                    state.insert(item, version + 1);
                }
            }
        }
        let outcome = match prng.below(5) {
            0 => ABORTED,
            _ => COMMITTED,
        };
        if outcome == ABORTED {
            state = begun;
        } else if prng.below(20) == 0 {
            old = begun;
        }
        let attempt = Attempt {
            process: 1 + prng.below(4) as u32,
            invoked: 1 + 10 * number,
            completed: 5 + 10 * number,
            outcome,
        };
        book.keep(attempt, &sight(&seen));
    }
    book
}

#[test]
fn a_serial_database_passes_and_one_with_old_reads_does_not() {
    let mut prng = Prng::new(11);
    let mut caught = 0;
    for _ in 0..20 {
        let honest = serial(&mut prng, 0).judge(Level::StrictSerializable, &Demand::NONE);
        assert_eq!(
            honest.verdict.judgement,
            Judgement::Pass,
            "{}",
            honest.verdict
        );
        let stale = serial(&mut prng, 10).judge(Level::StrictSerializable, &Demand::NONE);
        caught += u32::from(stale.verdict.judgement == Judgement::Fail);
    }
    assert_eq!(caught, 20);
}
