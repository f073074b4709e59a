//! What has no version of its own, and must be there all the same: what an order takes from a row
//! of STOCK, and the row of HISTORY of each payment.
//!
//! S_ORDER_CNT puts the changes of a stock row into an order, so what one change left is what the
//! next one began with: S_YTD grows by what was ordered, and S_QUANTITY falls by as much, or rises
//! by 91 where fewer than 10 would be left (clause 2.4.2.2). A row of HISTORY has no key: of each
//! customer, district and amount there must be as many as were acknowledged.

use crate::book::Book;
use crate::item::{Item, Kind};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use check::Outcome;
use core::fmt;
use workload::tpcc::conditions::Condition;

/// The quantities that a row of STOCK can have (clauses 4.3.3.1 and 2.4.2.2).
const QUANTITIES: core::ops::RangeInclusive<i64> = 10..=100;
/// What is added where fewer than [`LEFT_MIN`] would be left.
const SUPPLIED: i64 = 91;
const LEFT_MIN: i64 = 10;

/// A payment: who paid, where, and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Payment {
    customer: Item,
    district: Item,
    cents: u64,
}

impl Payment {
    /// By C_W_ID, C_D_ID and C_ID of the customer, W_ID and D_ID, and H_AMOUNT in cents. `None`: no
    /// database that is recorded has such numbers.
    pub fn new(customer: [u32; 3], [w, d]: [u32; 2], cents: u64) -> Option<Payment> {
        let [c_w, c_d, c] = customer;
        Some(Payment {
            customer: Item::new(Kind::Customer, c_w, c_d, c)?,
            district: Item::new(Kind::DistrictYtd, w, d, 0)?,
            cents,
        })
    }
}

impl fmt::Display for Payment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (customer, district) = (self.customer.name(), self.district.name());
        let place = district.trim_start_matches("d_ytd.");
        let (units, cents) = (self.cents / 100, self.cents % 100);
        write!(f, "{units}.{cents:02} of {customer} in district {place}")
    }
}

/// One change of a row of STOCK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taking {
    pub(crate) stock: Item,
    /// S_ORDER_CNT after it.
    pub(crate) version: u64,
    pub(crate) ordered: u32,
    /// S_QUANTITY and S_YTD after it.
    pub(crate) quantity: i32,
    pub(crate) ytd: u64,
}

/// What an attempt has entered beside its versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A change of a row of STOCK.
    Taken(Taking),
    /// A row of HISTORY.
    Paid(Payment),
}

impl Entry {
    /// As four numbers.
    pub fn words(self) -> [u64; 4] {
        match self {
            Entry::Taken(taking) => [
                taking.stock.key(),
                taking.version,
                u64::from(taking.quantity.cast_unsigned()) << 32 | u64::from(taking.ordered),
                taking.ytd,
            ],
            Entry::Paid(paid) => [paid.customer.key(), paid.district.key(), paid.cents, 0],
        }
    }

    /// From four numbers. `None`: they are no entry.
    pub fn from_words([first, second, third, fourth]: [u64; 4]) -> Option<Entry> {
        let item = Item::from_key(first);
        match item.kind()? {
            Kind::Stock => Some(Entry::Taken(Taking {
                stock: item,
                version: second,
                ordered: third as u32,
                quantity: ((third >> 32) as u32).cast_signed(),
                ytd: fourth,
            })),
            Kind::Customer => {
                let district = Item::from_key(second);
                (fourth == 0 && district.kind() == Some(Kind::DistrictYtd)).then_some(Entry::Paid(
                    Payment {
                        customer: item,
                        district,
                        cents: third,
                    },
                ))
            }
            _ => None,
        }
    }
}

/// S_QUANTITY after an order, by clause 2.4.2.2.
fn left_of(quantity: i64, ordered: i64) -> i64 {
    match quantity - ordered {
        left if left >= LEFT_MIN => left,
        left => left + SUPPLIED,
    }
}

/// Judges the changes of STOCK: each by itself, and beside the one before it. `has_other_changes`:
/// other transactions set S_QUANTITY, which is not judged then.
pub(crate) fn judge_stock(book: &Book, has_other_changes: bool) -> Condition {
    let mut all: Vec<(Taking, Outcome)> = Vec::new();
    for (outcome, entry) in book.entries() {
        if let (Entry::Taken(taking), false) = (entry, outcome == Outcome::Aborted) {
            all.push((*taking, outcome));
        }
    }
    all.sort_unstable_by_key(|(taking, _)| *taking);
    let place = |taking: &Taking| (taking.stock, taking.version);
    let mut condition = Condition::default();
    // Where two may have made one version, it is not known which one the next began with; the
    // history tells that as a lost update.
    let mut before: Option<Taking> = None;
    for group in all.chunk_by(|a, b| place(&a.0) == place(&b.0)) {
        let [(taking, Outcome::Committed)] = group else {
            before = None;
            continue;
        };
        let last = before.filter(|it| {
            it.stock == taking.stock && it.version.checked_add(1) == Some(taking.version)
        });
        let wrong = wrong_with(taking, last, has_other_changes);
        condition.note(wrong.is_none(), || wrong.unwrap_or_default());
        before = Some(*taking);
    }
    condition
}

/// What is wrong with a change, in words.
fn wrong_with(taking: &Taking, before: Option<Taking>, has_other_changes: bool) -> Option<String> {
    let (name, version) = (taking.stock.name(), taking.version);
    let (quantity, ordered) = (i64::from(taking.quantity), i64::from(taking.ordered));
    if !has_other_changes && !QUANTITIES.contains(&quantity) {
        return Some(format!(
            "{name}: S_QUANTITY {quantity} after order {version}"
        ));
    }
    let before = before?;
    let left = left_of(before.quantity.into(), ordered);
    if !has_other_changes && quantity != left {
        return Some(format!(
            "{name}: S_QUANTITY {quantity} after order {version} of {ordered}, {} before it, so \
             {left} were to be left",
            before.quantity
        ));
    }
    let ytd = before.ytd.checked_add(u64::from(taking.ordered));
    (ytd != Some(taking.ytd)).then(|| {
        format!(
            "{name}: S_YTD {} after order {version} of {ordered}, {} before it",
            taking.ytd, before.ytd
        )
    })
}

/// Judges the rows of HISTORY that were entered in the course of the run, with how many there are
/// of each: the rows of each payment, and the sum of each district beside what its D_YTD has grown
/// by. `knows_all`: the rows are of this run alone.
pub(crate) fn judge_payments(
    book: &Book,
    rows: &BTreeMap<Payment, u64>,
    knows_all: bool,
) -> Condition {
    let mut asked: BTreeMap<Payment, (u64, u64)> = BTreeMap::new();
    for (outcome, entry) in book.entries() {
        if let Entry::Paid(payment) = entry {
            let counts = asked.entry(*payment).or_default();
            match outcome {
                Outcome::Committed => counts.0 += 1,
                Outcome::Unknown => counts.1 += 1,
                Outcome::Aborted => {}
            }
        }
    }
    let knows_all = knows_all && !book.has_gaps();
    let mut condition = Condition::default();
    for (payment, &(acknowledged, unknown)) in &asked {
        let found = rows.get(payment).copied().unwrap_or(0);
        let most = match knows_all {
            true => acknowledged + unknown,
            false => u64::MAX,
        };
        if acknowledged == 0 && found <= most {
            continue;
        }
        condition.note((acknowledged..=most).contains(&found), || {
            format!("{acknowledged} payments of {payment} were acknowledged, HISTORY has {found}")
        });
    }
    if knows_all {
        for (payment, found) in rows.iter().filter(|(it, _)| !asked.contains_key(it)) {
            condition.note(false, || {
                format!("HISTORY has {found} rows of {payment}, which nobody has paid")
            });
        }
        judge_sums(book, rows, &mut condition);
    }
    condition
}

/// Compares the sum of H_AMOUNT of each warehouse and each district with the growth of its YTD.
fn judge_sums(book: &Book, rows: &BTreeMap<Payment, u64>, condition: &mut Condition) {
    let mut sums: BTreeMap<Item, u64> = BTreeMap::new();
    for (payment, found) in rows {
        let cents = payment.cents.saturating_mul(*found);
        for item in [Some(payment.district), payment.district.warehouse_ytd()]
            .into_iter()
            .flatten()
        {
            let sum = sums.entry(item).or_default();
            *sum = sum.saturating_add(cents);
        }
    }
    // The least version that was seen, and the largest that was written.
    let mut seen: BTreeMap<Item, (u64, u64)> = BTreeMap::new();
    for (attempt, accesses) in book.attempts() {
        if attempt.outcome == Outcome::Aborted {
            continue;
        }
        for access in accesses {
            let item = access.item();
            if !matches!(item.kind(), Some(Kind::WarehouseYtd | Kind::DistrictYtd)) {
                continue;
            }
            let (least, most) = seen.entry(item).or_insert((access.version, access.version));
            *least = (*least).min(access.version);
            *most = (*most).max(access.version);
        }
    }
    for (item, (least, most)) in seen {
        let (grown, sum) = (most - least, sums.get(&item).copied().unwrap_or(0));
        condition.note(grown == sum, || {
            format!(
                "{} has grown by {grown} cents, the sum of H_AMOUNT is {sum}",
                item.name()
            )
        });
    }
}

#[cfg(test)]
mod tests;
