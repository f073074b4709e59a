//! What a statement's answer shows of versions.

use crate::book::Seen;
use crate::entry::{Entry, Payment, Taking};
use crate::item::{Item, Kind};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use workload::tpcc::text::parse_fixed;
use workload::wire::Answers;

/// One version of an item that was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    item: u64,
    pub(crate) version: u64,
}

/// The bit of [`Access`] that says that the version was written.
const WRITE: u64 = 1 << 63;

impl Access {
    pub(crate) fn read(item: Item, version: u64) -> Access {
        let item = item.key();
        Access { item, version }
    }

    pub(crate) fn write(item: Item, version: u64) -> Access {
        let item = item.key() | WRITE;
        Access { item, version }
    }

    pub(crate) fn item(self) -> Item {
        Item::from_key(self.item & !WRITE)
    }

    pub(crate) fn is_write(self) -> bool {
        self.item & WRITE != 0
    }

    /// As two numbers.
    pub fn words(self) -> [u64; 2] {
        [self.item, self.version]
    }

    /// From two numbers. `None`: it is no access.
    pub fn from_words([item, version]: [u64; 2]) -> Option<Access> {
        Item::from_key(item & !WRITE).kind()?;
        Some(Access { item, version })
    }
}

/// A statement whose answer shows versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shows {
    WarehouseRead,
    WarehousePaid,
    NextOrderTaken,
    NextOrderRead,
    DistrictPaid,
    PaymentEntered,
    CustomerRead,
    PayerRead,
    StatusRead,
    CustomerPaid,
    CustomerDelivered,
    StockTaken,
    OrderEntered,
    LinesEntered,
    LastOrderRead,
    LinesRead,
    NewOrderDeleted,
    OrderDelivered,
    LinesDelivered,
}

/// Statements by how they begin, and what they return beside what they return anyway: columns
/// behind all others.
const STATEMENTS: [(&str, Shows, &str); 19] = [
    ("SELECT w_tax ", Shows::WarehouseRead, "w_ytd"),
    ("UPDATE warehouse SET w_ytd ", Shows::WarehousePaid, "w_ytd"),
    (
        "UPDATE district SET d_next_o_id ",
        Shows::NextOrderTaken,
        "d_next_o_id",
    ),
    ("SELECT d_next_o_id ", Shows::NextOrderRead, ""),
    ("UPDATE district SET d_ytd ", Shows::DistrictPaid, "d_ytd"),
    ("INSERT INTO history ", Shows::PaymentEntered, ""),
    ("SELECT c_discount, ", Shows::CustomerRead, CHANGES),
    ("SELECT c_id, c_first, ", Shows::PayerRead, CHANGES),
    ("SELECT c_id, c_balance, ", Shows::StatusRead, CHANGES),
    (
        "UPDATE customer SET c_balance = c_balance - ",
        Shows::CustomerPaid,
        CHANGES,
    ),
    (
        "UPDATE customer SET c_balance = c_balance + ",
        Shows::CustomerDelivered,
        CHANGES,
    ),
    (
        "UPDATE stock SET s_quantity = CASE ",
        Shows::StockTaken,
        "s_ytd, s_order_cnt",
    ),
    ("INSERT INTO orders ", Shows::OrderEntered, ""),
    ("INSERT INTO order_line ", Shows::LinesEntered, ""),
    ("SELECT o_id, o_entry_d, ", Shows::LastOrderRead, ""),
    ("SELECT ol_i_id, ", Shows::LinesRead, ""),
    ("DELETE FROM new_order ", Shows::NewOrderDeleted, ""),
    ("UPDATE orders SET o_carrier_id ", Shows::OrderDelivered, ""),
    ("UPDATE order_line ", Shows::LinesDelivered, ""),
];

/// The version of a customer: each payment and each delivery adds 1.
const CHANGES: &str = "c_payment_cnt + c_delivery_cnt";

fn entry(sql: &str) -> Option<(Shows, &'static str)> {
    let mut all = STATEMENTS.iter();
    let (_, shows, column) = all.find(|(start, ..)| sql.starts_with(start))?;
    Some((*shows, *column))
}

/// What a statement shows, by its text in PostgreSQL's SQL.
pub(crate) fn shows(sql: &str) -> Option<Shows> {
    entry(sql).map(|(shows, _)| shows)
}

/// The statement, in PostgreSQL's SQL, with the counter of its row as one more column behind all
/// that it returns. Statements that show nothing stay as they are.
pub fn with_counters(sql: &str) -> String {
    match entry(sql) {
        None | Some((_, "")) => sql.to_string(),
        Some((_, column)) if sql.starts_with("SELECT") => {
            sql.replacen(" FROM ", &format!(", {column} FROM "), 1)
        }
        Some((_, column)) if sql.contains(" RETURNING ") => format!("{sql}, {column}"),
        Some((_, column)) => format!("{sql} RETURNING {column}"),
    }
}

/// Numbers that name the rows of a statement, in the order of its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) shows: Shows,
    ids: [u32; 5],
    /// The money of a payment.
    cents: u64,
}

impl Asked {
    pub(crate) fn new(shows: Shows, params: &[Option<&[u8]>]) -> Asked {
        let number = |at: usize, places| parse_fixed(params.get(at).copied().flatten()?, places);
        let id = |at| number(at, 0).and_then(|id| u32::try_from(id).ok());
        let money_at = match shows {
            Shows::WarehousePaid => Some(1),
            Shows::DistrictPaid => Some(2),
            Shows::PaymentEntered => Some(6),
            _ => None,
        };
        let cents = money_at.and_then(|at| number(at, 2));
        Asked {
            shows,
            ids: [0, 1, 2, 3, 4].map(|at| id(at).unwrap_or_default()),
            cents: cents.map_or(0, i64::unsigned_abs),
        }
    }

    /// Adds what the answer of statement `at` shows.
    pub(crate) fn take(&self, answers: &Answers, at: usize, seen: &mut Seen) {
        let [a, b, c, _, _] = self.ids;
        let out = &mut seen.accesses;
        match self.shows {
            Shows::WarehouseRead => {
                let version = self.counter(answers, at, 0, 2);
                read(Item::new(Kind::WarehouseYtd, a, 0, 0), version, out);
            }
            Shows::WarehousePaid => {
                let version = self.counter(answers, at, 0, 2);
                let item = Item::new(Kind::WarehouseYtd, a, 0, 0);
                change(item, version, self.cents, out);
            }
            Shows::NextOrderRead => {
                let version = self.counter(answers, at, 0, 0);
                read(Item::new(Kind::NextOrder, a, b, 0), version, out);
            }
            Shows::NextOrderTaken => {
                let version = self.counter(answers, at, 0, 0);
                change(Item::new(Kind::NextOrder, a, b, 0), version, 1, out);
            }
            Shows::DistrictPaid => {
                let version = self.counter(answers, at, 0, 2);
                let item = Item::new(Kind::DistrictYtd, a, b, 0);
                change(item, version, self.cents, out);
            }
            Shows::CustomerRead => {
                let version = self.counter(answers, at, 0, 0);
                read(Item::new(Kind::Customer, a, b, c), version, out);
            }
            Shows::PayerRead | Shows::StatusRead => self.take_customers(answers, at, out),
            Shows::CustomerPaid | Shows::CustomerDelivered => {
                let version = self.counter(answers, at, 0, 0);
                change(Item::new(Kind::Customer, a, b, c), version, 1, out);
            }
            Shows::StockTaken => {
                let version = self.counter(answers, at, 0, 0);
                change(Item::new(Kind::Stock, a, 0, b), version, 1, out);
                seen.entries.extend(self.taking(answers, at));
            }
            Shows::PaymentEntered => {
                let [customer, c_d, c_w, d, w] = self.ids;
                let payment = Payment::new([c_w, c_d, customer], [w, d], self.cents);
                let payment = payment.filter(|_| answers.affected(at) == 1);
                seen.entries.extend(payment.map(Entry::Paid));
            }
            _ => self.take_order(answers, at, out),
        }
    }

    /// What an order has taken from a row of the stock: S_QUANTITY is the first column, S_YTD the
    /// last but one.
    fn taking(&self, answers: &Answers, at: usize) -> Option<Entry> {
        let [warehouse, item, ordered, ..] = self.ids;
        let ytd = answers.int(at, 0, answers.columns(at).checked_sub(2)?)?;
        Some(Entry::Taken(Taking {
            stock: Item::new(Kind::Stock, warehouse, 0, item)?,
            version: self.counter(answers, at, 0, 0)?,
            ordered,
            quantity: i32::try_from(answers.int(at, 0, 0)?).ok()?,
            ytd: u64::try_from(ytd).ok()?,
        }))
    }

    /// The counter of a row, which is the last column.
    fn counter(&self, answers: &Answers, at: usize, row: usize, places: u32) -> Option<u64> {
        let column = answers.columns(at).checked_sub(1)?;
        let counter = answers.fixed(at, row, column, places)?;
        u64::try_from(counter).ok()
    }

    /// All customers of a name, or the one of a number.
    fn take_customers(&self, answers: &Answers, at: usize, out: &mut Vec<Access>) {
        let [w, d, ..] = self.ids;
        for row in 0..answers.rows(at) {
            let id = answers.int(at, row, 0);
            let id = id.and_then(|id| u32::try_from(id).ok());
            let item = id.and_then(|id| Item::new(Kind::Customer, w, d, id));
            read(item, self.counter(answers, at, row, 0), out);
        }
    }

    /// Statements on an order and what belongs to it.
    fn take_order(&self, answers: &Answers, at: usize, out: &mut Vec<Access>) {
        let [a, b, c, customer, _] = self.ids;
        // Inserts name the order first, everything else the warehouse.
        let (entered, lines_entered) = (
            Item::new(Kind::Order, c, b, a),
            Item::new(Kind::OrderLines, c, b, a),
        );
        let (order, lines) = (
            Item::new(Kind::Order, a, b, c),
            Item::new(Kind::OrderLines, a, b, c),
        );
        match self.shows {
            Shows::OrderEntered => {
                write(entered, ENTERED, out);
                let last = Item::new(Kind::LastOrder, c, b, customer);
                write(last, u64::from(a), out);
            }
            Shows::LinesEntered => write(lines_entered, ENTERED, out),
            Shows::LastOrderRead => {
                let Some(id) = answers.int(at, 0, 0).and_then(|id| u32::try_from(id).ok()) else {
                    return;
                };
                read(
                    Item::new(Kind::LastOrder, a, b, c),
                    Some(u64::from(id)),
                    out,
                );
                let state = state_of(answers.cell(at, 0, 2).is_some());
                read(Item::new(Kind::Order, a, b, id), Some(state), out);
            }
            Shows::LinesRead => {
                let states = (0..answers.rows(at)).map(|row| answers.cell(at, row, 4).is_some());
                let mut states: Vec<bool> = states.collect();
                // Lines in two states are two sights of the item.
                states.dedup();
                for is_delivered in states {
                    read(lines, Some(state_of(is_delivered)), out);
                }
            }
            Shows::NewOrderDeleted if answers.affected(at) == 1 => {
                let next = u64::from(c) + 1;
                change(Item::new(Kind::OldestNewOrder, a, b, 0), Some(next), 1, out);
            }
            Shows::OrderDelivered if answers.rows(at) == 1 => {
                change(order, Some(DELIVERED), 1, out);
            }
            Shows::LinesDelivered if answers.rows(at) > 0 => {
                change(lines, Some(DELIVERED), 1, out);
            }
            _ => {}
        }
    }
}

/// The version of an order that was entered.
const ENTERED: u64 = 1;
/// The version of an order that was delivered.
const DELIVERED: u64 = ENTERED + 1;

fn state_of(is_delivered: bool) -> u64 {
    if is_delivered { DELIVERED } else { ENTERED }
}

fn read(item: Option<Item>, version: Option<u64>, out: &mut Vec<Access>) {
    out.extend(item.zip(version).map(|(item, at)| Access::read(item, at)));
}

fn write(item: Option<Item>, version: u64, out: &mut Vec<Access>) {
    out.extend(item.map(|item| Access::write(item, version)));
}

/// A statement that added `by` to the counter of a row, and returned the sum.
fn change(item: Option<Item>, version: Option<u64>, by: u64, out: &mut Vec<Access>) {
    let before = version.and_then(|version| version.checked_sub(by));
    read(item, before, out);
    if let Some(version) = version {
        write(item, version, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::tpcc::sql;
    use workload::wire::Isolation;

    #[test]
    fn each_statement_that_shows_something_is_one_of_the_workload() {
        let all = sql::all(Isolation::Serializable);
        for (start, shown, column) in STATEMENTS {
            let found = all.iter().filter(|(sql, _)| sql.starts_with(start));
            let found: Vec<&str> = found.map(|(sql, _)| sql.as_str()).collect();
            assert!(!found.is_empty(), "no statement begins with {start:?}");
            for sql in found {
                assert_eq!(shows(sql), Some(shown), "{sql}");
                let changed = with_counters(sql);
                assert_eq!(changed == sql, column.is_empty(), "{changed}");
                assert_eq!(
                    changed.matches(" FROM ").count(),
                    sql.matches(" FROM ").count()
                );
            }
        }
    }

    #[test]
    fn counters_are_the_last_column() {
        let all = sql::all(Isolation::Serializable);
        let of = |start: &str| {
            let found = all.iter().find(|(sql, _)| sql.starts_with(start));
            with_counters(&found.unwrap().0)
        };
        assert_eq!(
            of("SELECT w_tax"),
            "SELECT w_tax, w_ytd FROM warehouse WHERE w_id = $1"
        );
        assert_eq!(
            of("UPDATE district SET d_ytd"),
            "UPDATE district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2 \
             RETURNING d_ytd"
        );
        assert!(of("UPDATE stock").ends_with("s_dist_01, s_ytd, s_order_cnt"));
        assert_eq!(of("COMMIT"), "COMMIT");
    }

    /// What the answers of one row show.
    fn seen(shows: Shows, params: &[&str], cells: &[Option<&str>], tag: &str) -> Vec<String> {
        let mut answers = Answers::new();
        if !cells.is_empty() {
            answers.push_cells(cells.iter().map(|cell| cell.map(str::as_bytes)));
        }
        answers.finish_statement(tag.as_bytes());
        let params: Vec<_> = params.iter().map(|param| Some(param.as_bytes())).collect();
        let mut seen = Seen::default();
        Asked::new(shows, &params).take(&answers, 0, &mut seen);
        let told = |access: &Access| {
            let does = if access.is_write() { "w" } else { "r" };
            format!("{does} {} {}", access.item().name(), access.version)
        };
        let entries = seen.entries.iter().map(|entry| format!("{entry:?}"));
        seen.accesses.iter().map(told).chain(entries).collect()
    }

    #[test]
    fn answers_show_versions() {
        let cells = |row: &'static [&'static str]| row.iter().map(|c| Some(*c)).collect::<Vec<_>>();
        assert_eq!(
            seen(
                Shows::WarehousePaid,
                &["3", "10.50"],
                &cells(&["300010.50"]),
                "UPDATE 1"
            ),
            ["r w_ytd.3 30000000", "w w_ytd.3 30001050"]
        );
        assert_eq!(
            seen(
                Shows::StockTaken,
                &["3", "77", "5", "0"],
                &cells(&["12", "data", "dist", "40", "9"]),
                "UPDATE 1"
            )[..2],
            ["r stock.3.77 8", "w stock.3.77 9"]
        );
        assert_eq!(
            seen(
                Shows::LastOrderRead,
                &["3", "2", "8"],
                &[Some("31"), Some("now"), None],
                "SELECT 1"
            ),
            ["r last_order.3.2.8 31", "r order.3.2.31 1"]
        );
        assert_eq!(
            seen(
                Shows::OrderEntered,
                &["31", "2", "3", "8"],
                &[],
                "INSERT 0 1"
            ),
            ["w order.3.2.31 1", "w last_order.3.2.8 31"]
        );
        let deleted = |tag| seen(Shows::NewOrderDeleted, &["3", "2", "31"], &[], tag);
        assert_eq!(
            deleted("DELETE 1"),
            ["r oldest_new_order.3.2 31", "w oldest_new_order.3.2 32"]
        );
        assert!(deleted("DELETE 0").is_empty());
    }
}
