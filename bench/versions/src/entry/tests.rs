//! Books by hand: what is right, and each way to be wrong.

use super::*;
use crate::book::{Attempt, Seen};
use crate::sighting::Access;

const COMMITTED: Outcome = Outcome::Committed;
const ABORTED: Outcome = Outcome::Aborted;
const UNKNOWN: Outcome = Outcome::Unknown;

fn book(attempts: Vec<(Outcome, Seen)>) -> Book {
    let mut book = Book::new(1_000);
    for (process, (outcome, seen)) in (1..).zip(attempts) {
        let attempt = Attempt {
            process,
            invoked: 1,
            completed: 2,
            outcome,
        };
        book.keep(attempt, &seen);
    }
    book
}

/// The change of one row that makes this S_ORDER_CNT: what was ordered, and what was left.
fn taken(
    outcome: Outcome,
    version: u64,
    ordered: u32,
    (quantity, ytd): (i32, u64),
) -> (Outcome, Seen) {
    let taking = Taking {
        stock: Item::new(Kind::Stock, 1, 0, 7).unwrap(),
        version,
        ordered,
        quantity,
        ytd,
    };
    let seen = Seen {
        accesses: Vec::new(),
        entries: vec![Entry::Taken(taking)],
    };
    (outcome, seen)
}

fn stock(attempts: Vec<(Outcome, Seen)>) -> (u64, Option<String>) {
    let found = judge_stock(&book(attempts), false);
    assert_eq!(found.failures > 0, found.counterexample.is_some());
    (found.compared, found.counterexample)
}

#[test]
fn what_an_order_takes_is_gone() {
    let right = || {
        vec![
            taken(COMMITTED, 5, 3, (20, 40)),
            taken(COMMITTED, 6, 10, (10, 50)),
            // Fewer than 10 would be left.
            taken(COMMITTED, 7, 1, (100, 51)),
        ]
    };
    assert_eq!(stock(right()), (3, None));
    for (wrong, why) in [
        (
            taken(COMMITTED, 8, 4, (97, 55)),
            "S_QUANTITY 97 after order 8 of 4, 100 before it, so 96",
        ),
        (
            taken(COMMITTED, 8, 4, (96, 51)),
            "S_YTD 51 after order 8 of 4, 51 before it",
        ),
        (
            taken(COMMITTED, 8, 4, (101, 55)),
            "S_QUANTITY 101 after order 8",
        ),
    ] {
        let mut all = right();
        all.push(wrong);
        let (compared, said) = stock(all);
        let said = said.unwrap();
        assert!(
            compared == 4 && said.starts_with("stock.1.7: ") && said.contains(why),
            "{said}"
        );
    }
    // Other transactions set S_QUANTITY: S_YTD is judged alone.
    let free = |ytd| {
        let mut all = right();
        all.push(taken(COMMITTED, 8, 4, (2_000, ytd)));
        judge_stock(&book(all), true).failures
    };
    assert_eq!((free(55), free(54)), (0, 1));
}

#[test]
fn only_neighbours_that_are_certain_are_compared() {
    let first = || taken(COMMITTED, 5, 3, (20, 40));
    // Not known, made twice, or not kept: the next one may have begun with anything.
    for between in [
        vec![taken(UNKNOWN, 6, 1, (19, 41))],
        vec![
            taken(COMMITTED, 6, 1, (19, 41)),
            taken(COMMITTED, 6, 2, (18, 42)),
        ],
        vec![],
    ] {
        let mut all = vec![first()];
        all.extend(between);
        all.push(taken(COMMITTED, 7, 1, (77, 99)));
        assert_eq!(stock(all).1, None);
    }
    // What was rolled back is none.
    let all = vec![
        first(),
        taken(ABORTED, 6, 5, (15, 45)),
        taken(COMMITTED, 6, 1, (19, 41)),
    ];
    assert_eq!(stock(all), (2, None));
}

fn payment(customer: u32, cents: u64) -> Payment {
    Payment::new([1, 2, customer], [1, 2], cents).unwrap()
}

/// A payment that found this D_YTD.
fn paid(outcome: Outcome, customer: u32, cents: u64, ytd: u64) -> (Outcome, Seen) {
    let district = Item::new(Kind::DistrictYtd, 1, 2, 0).unwrap();
    let seen = Seen {
        accesses: vec![
            Access::read(district, ytd),
            Access::write(district, ytd + cents),
        ],
        entries: vec![Entry::Paid(payment(customer, cents))],
    };
    (outcome, seen)
}

fn history(attempts: Vec<(Outcome, Seen)>, rows: &[(Payment, u64)]) -> Option<String> {
    let rows: BTreeMap<Payment, u64> = rows.iter().copied().collect();
    let judged = judge_payments(&book(attempts), &rows, true);
    assert!(judged.compared > 0);
    judged.counterexample
}

#[test]
fn each_payment_has_its_row() {
    let two = || {
        vec![
            paid(COMMITTED, 3, 500, 1_000),
            paid(COMMITTED, 3, 500, 1_500),
        ]
    };
    assert_eq!(history(two(), &[(payment(3, 500), 2)]), None);
    let missing = history(two(), &[(payment(3, 500), 1)]).unwrap();
    assert_eq!(
        missing,
        "2 payments of 5.00 of customer.1.2.3 in district 1.2 were acknowledged, HISTORY has 1"
    );
    // Of the same sum, and of the right number.
    let shifted = history(two(), &[(payment(3, 400), 1), (payment(3, 600), 1)]).unwrap();
    assert!(shifted.contains("HISTORY has 0"), "{shifted}");
    let more = history(two(), &[(payment(3, 500), 3)]).unwrap();
    assert!(more.contains("HISTORY has 3"), "{more}");
    let stranger = history(two(), &[(payment(3, 500), 2), (payment(4, 1), 1)]).unwrap();
    assert!(stranger.contains("which nobody has paid"), "{stranger}");
    // What was rolled back has none.
    let all = vec![paid(ABORTED, 9, 100, 1_000), paid(COMMITTED, 3, 500, 1_000)];
    assert_eq!(history(all, &[(payment(3, 500), 1)]), None);
    let all = vec![paid(ABORTED, 9, 100, 1_000), paid(COMMITTED, 3, 500, 1_000)];
    let left = history(all, &[(payment(3, 500), 1), (payment(9, 100), 1)]).unwrap();
    assert!(left.contains("0 payments of 1.00"), "{left}");
}

#[test]
fn the_sum_of_a_district_is_what_it_has_grown_by() {
    // Each has its row, and D_YTD has grown by more: a payment between them is not there.
    let all = vec![
        paid(COMMITTED, 3, 500, 1_000),
        paid(COMMITTED, 3, 500, 1_700),
    ];
    let said = history(all, &[(payment(3, 500), 2)]).unwrap();
    assert_eq!(
        said,
        "d_ytd.1.2 has grown by 1200 cents, the sum of H_AMOUNT is 1000"
    );
}

#[test]
fn what_is_not_known_is_not_judged() {
    let judged = |attempts, rows: &[(Payment, u64)], knows_all| {
        let rows: BTreeMap<Payment, u64> = rows.iter().copied().collect();
        judge_payments(&book(attempts), &rows, knows_all).failures
    };
    let one = || vec![paid(COMMITTED, 3, 500, 1_000)];
    let unknown = || vec![paid(COMMITTED, 3, 500, 1_000), paid(UNKNOWN, 3, 500, 1_500)];
    let rows = |count| [(payment(3, 500), count)];
    // Of others, who are not known.
    assert_eq!(judged(one(), &rows(2), false), 0);
    assert_eq!(judged(one(), &rows(0), false), 1);
    for count in [1, 2, 3] {
        assert_eq!(judged(unknown(), &rows(count), true), 0, "{count}");
    }
    assert_eq!(judged(unknown(), &rows(0), true), 1);
}

#[test]
fn entries_are_their_words() {
    let attempts = [
        taken(COMMITTED, 8, 4, (-3, 1 << 40)),
        taken(COMMITTED, u64::MAX, u32::MAX, (i32::MIN, u64::MAX)),
        paid(COMMITTED, 3, u64::MAX >> 20, 0),
    ];
    for (_, seen) in attempts {
        let entry = seen.entries[0];
        assert_eq!(Entry::from_words(entry.words()), Some(entry));
    }
    let order = Item::new(Kind::Order, 1, 2, 3).unwrap().key();
    assert_eq!(Entry::from_words([order, 1, 1, 1]), None);
    assert_eq!(Entry::from_words([u64::MAX, 1, 1, 1]), None);
    let customer = Item::new(Kind::Customer, 1, 2, 3).unwrap().key();
    assert_eq!(Entry::from_words([customer, order, 1, 0]), None);
}
