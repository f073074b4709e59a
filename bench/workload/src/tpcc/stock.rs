//! A condition beside the twelve: what the order lines took is gone from the stock of the warehouse
//! that supplied it (clause 2.4.2.2).
//!
//! The twelve conditions never read STOCK, so a server that loses every change of it passes them
//! all. Here each warehouse's S_YTD, S_ORDER_CNT and S_REMOTE_CNT are compared with the lines that
//! name it in OL_SUPPLY_W_ID. Loaded orders took nothing: their rows of STOCK begin with 0
//! (clause 4.3.3.1).

use super::conditions::Condition;
use super::scale::Scale;
use crate::wire::{Answers, Connection, command};
use alloc::collections::BTreeMap;
use alloc::format;

/// What the condition says.
pub const TITLE: &str = "S_YTD, S_ORDER_CNT, S_REMOTE_CNT = what order lines took from the stock";
/// Where the specification says so.
pub const CLAUSE: &str = "2.4.2.2";

/// Sums over the stock of a warehouse, or over the lines that it supplied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Taken {
    quantity: i64,
    lines: i64,
    remote_lines: i64,
}

/// Compares the stock of each warehouse with the lines that took from it. `begin` opens a
/// transaction whose reads see one snapshot; it is closed again.
///
/// # Errors
/// The connection broke, or the server refused a query.
pub async fn check<C: Connection>(
    link: &mut C,
    scale: Scale,
    begin: &str,
) -> Result<Condition, C::Error> {
    command(link, begin).await?;
    let mut gone = BTreeMap::new();
    let mut ordered: BTreeMap<i64, Taken> = BTreeMap::new();
    for w in 1..=i64::from(scale.warehouses) {
        let sql = format!(
            "SELECT SUM(s_ytd), SUM(s_order_cnt), SUM(s_remote_cnt) FROM stock WHERE s_w_id = {w}"
        );
        let sums = |row: &Answers| {
            // Without a sum nothing is equal to it.
            let sum = |column| row.int(0, 0, column).unwrap_or(-1);
            let taken = Taken {
                quantity: sum(0),
                lines: sum(1),
                remote_lines: sum(2),
            };
            gone.insert(w, taken);
        };
        link.each_row(&sql, sums).await?;
        let sql = format!(
            "SELECT ol_supply_w_id, SUM(ol_quantity), COUNT(*) FROM order_line \
             WHERE ol_w_id = {w} AND ol_o_id > {} GROUP BY ol_supply_w_id",
            scale.orders
        );
        let add = |row: &Answers| {
            let number = |column| row.int(0, 0, column).unwrap_or(0);
            let (supply, lines) = (number(0), number(2));
            let taken = ordered.entry(supply).or_default();
            taken.quantity += number(1);
            taken.lines += lines;
            taken.remote_lines += if supply == w { 0 } else { lines };
        };
        link.each_row(&sql, add).await?;
    }
    command(link, "COMMIT").await?;
    Ok(compare(&gone, &ordered))
}

fn compare(gone: &BTreeMap<i64, Taken>, ordered: &BTreeMap<i64, Taken>) -> Condition {
    let mut condition = Condition::default();
    let strangers = ordered.keys().filter(|w| !gone.contains_key(w));
    for w in gone.keys().chain(strangers) {
        condition.compared += 1;
        let taken = ordered.get(w).copied().unwrap_or_default();
        let stock = gone.get(w).copied();
        if stock == Some(taken) {
            continue;
        }
        condition.failures += 1;
        let tell = || match stock {
            None => format!("warehouse {w} supplied lines and does not exist"),
            Some(stock) => format!(
                "warehouse {w}: stock gave {} in {} lines, {} of them remote; order lines took {} \
                 in {}, {}",
                stock.quantity,
                stock.lines,
                stock.remote_lines,
                taken.quantity,
                taken.lines,
                taken.remote_lines
            ),
        };
        condition.counterexample.get_or_insert_with(tell);
    }
    condition
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sum_counts_and_so_does_a_warehouse_that_is_not_there() {
        let taken = Taken {
            quantity: 50,
            lines: 10,
            remote_lines: 1,
        };
        let both = BTreeMap::from([(1, taken), (2, Taken::default())]);
        let ordered = BTreeMap::from([(1, taken)]);
        let sound = compare(&both, &ordered);
        assert_eq!((sound.compared, sound.failures), (2, 0));
        for wrong in [
            Taken {
                quantity: 49,
                ..taken
            },
            Taken { lines: 9, ..taken },
            Taken {
                remote_lines: 0,
                ..taken
            },
        ] {
            let found = compare(&both, &BTreeMap::from([(1, wrong)]));
            assert_eq!((found.compared, found.failures), (2, 1));
            let example = found.counterexample.unwrap();
            assert!(example.contains("stock gave 50 in 10 lines"), "{example}");
        }
        let elsewhere = BTreeMap::from([(1, taken), (9, taken)]);
        let found = compare(&both, &elsewhere);
        assert_eq!((found.compared, found.failures), (3, 1));
    }
}
