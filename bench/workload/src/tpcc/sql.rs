//! The statements of the five transactions, by number.
//!
//! Plain SQL that any PostgreSQL-compatible server takes: keyed reads and writes, one join, one
//! aggregate. An update that needs nothing back returns nothing, because such an update is a pure
//! increment that a server may treat as one.

use super::DISTRICTS;
use crate::dike::further;
use crate::wire::Isolation;
use crate::wire::ParamType::{self, Int, Numeric, Text, Timestamp};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// The number of a statement in [`all`]. `StockUpdate` stands for ten, one per district;
/// `LinesInsert` for fifteen, one per number of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Sql {
    Begin,
    BeginReadOnly,
    Commit,
    Rollback,
    WarehouseTax,
    DistrictNextOrder,
    CustomerDiscount,
    Item,
    OrderInsert,
    NewOrderInsert,
    WarehousePaid,
    WarehouseAddress,
    DistrictPaid,
    DistrictAddress,
    CustomerById,
    CustomersByName,
    CustomerPaid,
    CustomerPaidBadCredit,
    HistoryInsert,
    StatusById,
    StatusByName,
    LastOrder,
    OrderLines,
    OldestNewOrder,
    NewOrderDelete,
    OrderDelivered,
    LinesDelivered,
    CustomerDelivered,
    NextOrder,
    LowStock,
    StockUpdate,
    LinesInsert = Sql::StockUpdate as usize + DISTRICTS as usize,
}

impl Sql {
    /// The statement that takes a line of an order of this district (from 1) from STOCK, which has
    /// a text for each of ten.
    pub(super) fn stock_update(district: u32) -> usize {
        Sql::StockUpdate as usize + ((district - 1) % DISTRICTS) as usize
    }
}

/// The most lines of one order (clause 2.4.1.3).
pub(super) const LINES_MAX: usize = 15;

/// The number of the first statement behind those of [`all`]: of [`further::statements`].
pub(crate) const FURTHER: usize = Sql::LinesInsert as usize + LINES_MAX;

/// The number of the first statement behind those: one for each hot row.
pub(super) const HOT: usize = FURTHER + further::STATEMENTS;

type Statement = (String, &'static [ParamType]);

/// All statements with their parameter types, in the order of their numbers.
pub fn all(isolation: Isolation) -> Vec<(String, Vec<ParamType>)> {
    let level = isolation.sql();
    let oldest = match isolation {
        // The row is deleted next; locking it at once avoids a certain conflict. Under READ
        // COMMITTED a lock that was waited for may come back empty, so the count of the deletion
        // decides instead.
        Isolation::Serializable | Isolation::RepeatableRead => " FOR UPDATE",
        Isolation::ReadCommitted => "",
    };
    let parts = [
        control(level),
        new_order(),
        payment(),
        order_status(),
        delivery(oldest),
        stock_level(),
    ];
    let fixed = parts.into_iter().flatten();
    let mut statements: Vec<(String, Vec<ParamType>)> =
        fixed.map(|(sql, params)| (sql, params.to_vec())).collect();
    statements.extend((1..=DISTRICTS).map(|d| (stock_update(d), vec![Int; 4])));
    statements.extend((1..=LINES_MAX).map(lines_insert));
    statements
}

/// BEGIN, COMMIT, ROLLBACK.
fn control(level: &str) -> Vec<Statement> {
    vec![
        (format!("BEGIN ISOLATION LEVEL {level}"), &[]),
        (format!("BEGIN ISOLATION LEVEL {level} READ ONLY"), &[]),
        ("COMMIT".into(), &[]),
        ("ROLLBACK".into(), &[]),
    ]
}

/// NewOrder (clause 2.4.2).
fn new_order() -> Vec<Statement> {
    vec![
        ("SELECT w_tax FROM warehouse WHERE w_id = $1".into(), &[Int]),
        (
            "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 \
             RETURNING d_next_o_id, d_tax"
                .into(),
            &[Int, Int],
        ),
        (
            "SELECT c_discount, c_last, c_credit FROM customer \
             WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3"
                .into(),
            &[Int, Int, Int],
        ),
        (
            "SELECT i_price, i_name, i_data FROM item WHERE i_id = $1".into(),
            &[Int],
        ),
        (
            "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)"
                .into(),
            &[Int, Int, Int, Int, Timestamp, Int, Int],
        ),
        (
            "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES ($1, $2, $3)".into(),
            &[Int, Int, Int],
        ),
    ]
}

/// Payment (clause 2.5.2).
fn payment() -> Vec<Statement> {
    vec![
        (
            "UPDATE warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1".into(),
            &[Int, Numeric],
        ),
        (
            "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse \
             WHERE w_id = $1"
                .into(),
            &[Int],
        ),
        (
            "UPDATE district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2".into(),
            &[Int, Int, Numeric],
        ),
        (
            "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district \
             WHERE d_w_id = $1 AND d_id = $2"
                .into(),
            &[Int, Int],
        ),
        (
            format!("{PAYER} WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3"),
            &[Int, Int, Int],
        ),
        (
            format!("{PAYER} WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first"),
            &[Int, Int, Text],
        ),
        (
            "UPDATE customer SET c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4, \
             c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3"
                .into(),
            &[Int, Int, Int, Numeric],
        ),
        (
            "UPDATE customer SET c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4, \
             c_payment_cnt = c_payment_cnt + 1, c_data = substr($5 || c_data, 1, 500) \
             WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 RETURNING c_data"
                .into(),
            &[Int, Int, Int, Numeric, Text],
        ),
        (
            "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, \
             h_data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
                .into(),
            &[Int, Int, Int, Int, Int, Timestamp, Numeric, Text],
        ),
    ]
}

/// OrderStatus (clause 2.6.2).
fn order_status() -> Vec<Statement> {
    vec![
        (
            format!("{STATUS} WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3"),
            &[Int, Int, Int],
        ),
        (
            format!("{STATUS} WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first"),
            &[Int, Int, Text],
        ),
        (
            "SELECT o_id, o_entry_d, o_carrier_id FROM orders \
             WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 ORDER BY o_id DESC LIMIT 1"
                .into(),
            &[Int, Int, Int],
        ),
        (
            "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d \
             FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3"
                .into(),
            &[Int, Int, Int],
        ),
    ]
}

/// Delivery (clause 2.7.4).
fn delivery(oldest: &str) -> Vec<Statement> {
    vec![
        (
            format!(
                "SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 \
                 ORDER BY no_o_id LIMIT 1{oldest}"
            ),
            &[Int, Int],
        ),
        (
            "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3".into(),
            &[Int, Int, Int],
        ),
        (
            "UPDATE orders SET o_carrier_id = $4 WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3 \
             RETURNING o_c_id"
                .into(),
            &[Int, Int, Int, Int],
        ),
        (
            "UPDATE order_line SET ol_delivery_d = $4 \
             WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3 RETURNING ol_amount"
                .into(),
            &[Int, Int, Int, Timestamp],
        ),
        (
            "UPDATE customer SET c_balance = c_balance + $4, c_delivery_cnt = c_delivery_cnt + 1 \
             WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3"
                .into(),
            &[Int, Int, Int, Numeric],
        ),
    ]
}

/// StockLevel (clause 2.8.2).
fn stock_level() -> Vec<Statement> {
    vec![
        (
            "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2".into(),
            &[Int, Int],
        ),
        (
            "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_i_id = ol_i_id \
             WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id >= $3 AND ol_o_id < $4 \
             AND s_w_id = $1 AND s_quantity < $5"
                .into(),
            &[Int, Int, Int, Int, Int],
        ),
    ]
}

/// What Payment reads of a customer (clause 2.5.2.2).
const PAYER: &str = "SELECT c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, \
     c_state, c_zip, c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance FROM customer";

/// What OrderStatus reads of a customer (clause 2.6.2.2).
const STATUS: &str = "SELECT c_id, c_balance, c_first, c_middle, c_last FROM customer";

/// Takes the quantity out of the supplying warehouse's stock (clause 2.4.2.2): the row is read and
/// written by one statement, so no second transaction comes between.
fn stock_update(district: u32) -> String {
    format!(
        "UPDATE stock SET s_quantity = CASE WHEN s_quantity >= $3 + 10 THEN s_quantity - $3 \
         ELSE s_quantity - $3 + 91 END, s_ytd = s_ytd + $3, s_order_cnt = s_order_cnt + 1, \
         s_remote_cnt = s_remote_cnt + $4 WHERE s_w_id = $1 AND s_i_id = $2 \
         RETURNING s_quantity, s_data, s_dist_{district:02}"
    )
}

/// Inserts `count` order lines at once; nine columns each, OL_DELIVERY_D stays NULL.
fn lines_insert(count: usize) -> (String, Vec<ParamType>) {
    let row = |at: usize| {
        let params: Vec<String> = (1..=9)
            .map(|column| format!("${}", at * 9 + column))
            .collect();
        format!("({})", params.join(", "))
    };
    let rows: Vec<String> = (0..count).map(row).collect();
    let sql = format!(
        "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, \
         ol_quantity, ol_amount, ol_dist_info) VALUES {}",
        rows.join(", ")
    );
    let types = [Int, Int, Int, Int, Int, Int, Int, Numeric, Text];
    (sql, types.repeat(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_their_statements() {
        let all = all(Isolation::Serializable);
        assert_eq!(all.len(), Sql::LinesInsert as usize + LINES_MAX);
        for (number, part) in [
            (Sql::Commit, "COMMIT"),
            (Sql::HistoryInsert, "INSERT INTO history"),
            (Sql::LastOrder, "ORDER BY o_id DESC"),
            (Sql::LowStock, "COUNT(DISTINCT"),
            (Sql::StockUpdate, "s_dist_01"),
            (Sql::LinesInsert, "INSERT INTO order_line"),
        ] {
            assert!(all[number as usize].0.contains(part), "{number:?}");
        }
        assert!(all[Sql::StockUpdate as usize + 9].0.ends_with("s_dist_10"));
    }

    #[test]
    fn parameters_are_as_many_as_their_types() {
        for (sql, params) in all(Isolation::ReadCommitted) {
            for number in 1..=params.len() {
                assert!(sql.contains(&format!("${number}")), "{sql} lacks ${number}");
            }
            assert!(!sql.contains(&format!("${}", params.len() + 1)), "{sql}");
        }
    }
}
