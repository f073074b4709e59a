//! The tables of `d_update_balance` and `d_select_balance`, and what always holds of them.
//!
//! | table | rows |
//! |---|---|
//! | `dike_account` | the money of each warehouse, and how many transfers had it as their home |
//! | `dike_balance` | for each warehouse and each other one what it got from there |
//!
//! For itself a warehouse has two balances, numbered 0 and as the warehouse.
//!
//! A transfer takes an amount for each of the other warehouses from the account of its home, gives
//! it to theirs, and notes it on both sides of each pair; one that stays at home moves it between
//! the two rows there. So at every moment:
//!
//! 1. all accounts and balances add up to what was loaded,
//! 2. the balances of two warehouses for each other add up to 0,
//! 3. an account has what was loaded and what its warehouse got from others.
//!
//! The paper changes W_YTD instead, which then differs from the sum of the payments: conditions 1
//! and 8 of TPC-C no longer hold after it.

use crate::tpcc::conditions::Condition;
use crate::tpcc::text::{push_cents, push_int};
use crate::wire::{Answers, Connection, command};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Most warehouses with accounts: there is a row for each pair of them.
pub const WAREHOUSES_MAX: u32 = 1_000;

/// What an account holds when it is loaded, in cents.
pub const LOADED_CENTS: i64 = 100_000_000;

/// The step of the load that says for how many warehouses the tables exist.
pub const STEP: &str = "dike_accounts";

/// Names of the tables.
pub const TABLES: [&str; 2] = ["dike_account", "dike_balance"];

/// What the conditions say, beside where they are from.
pub const TITLES: [&str; 3] = [
    "A_BALANCE and B_BALANCE add up to what was loaded",
    "B_BALANCE of two warehouses for each other add up to 0",
    "A_BALANCE = what was loaded + B_BALANCE of all others",
];

/// The statements that create them. `placement`: with Trellis' clauses; `binding`: of these, all
/// rows of a warehouse together.
pub fn create(placement: bool, binding: bool) -> [String; 2] {
    let by = |bound: &str, key: &str| match (placement, binding) {
        (false, _) => String::new(),
        (true, true) => format!(" PARTITION BY ({bound})"),
        (true, false) => format!(" PARTITION BY ({key})"),
    };
    [
        format!(
            "CREATE TABLE dike_account (a_w_id integer NOT NULL, a_balance numeric(14,2), \
             a_transfers integer, PRIMARY KEY (a_w_id)){}",
            by("a_w_id", "a_w_id")
        ),
        format!(
            "CREATE TABLE dike_balance (b_w_id integer NOT NULL, b_other integer NOT NULL, \
             b_balance numeric(14,2), PRIMARY KEY (b_w_id, b_other)){}",
            by("b_w_id", "b_w_id, b_other")
        ),
    ]
}

/// Appends the rows of all accounts, as COPY takes them.
pub fn write_accounts(warehouses: u32, out: &mut Vec<u8>) -> u64 {
    for w in 1..=warehouses {
        push_int(i64::from(w), out);
        out.push(b'\t');
        push_cents(LOADED_CENTS, out);
        out.extend_from_slice(b"\t0\n");
    }
    u64::from(warehouses)
}

/// Appends the balances of a warehouse, as COPY takes them.
pub fn write_balances(warehouse: u32, warehouses: u32, out: &mut Vec<u8>) -> u64 {
    for other in 0..=warehouses {
        push_int(i64::from(warehouse), out);
        out.push(b'\t');
        push_int(i64::from(other), out);
        out.extend_from_slice(b"\t0.00\n");
    }
    u64::from(warehouses) + 1
}

/// What the tables hold, in cents.
#[derive(Clone, Debug, Default)]
struct Held {
    accounts: BTreeMap<u32, i64>,
    balances: BTreeMap<(u32, u32), i64>,
}

/// Checks the three conditions. `begin` opens a transaction whose reads see one snapshot; it is
/// closed again.
///
/// # Errors
/// The connection broke, or the server refused a query.
pub async fn check<C: Connection>(
    link: &mut C,
    warehouses: u32,
    begin: &str,
) -> Result<[Condition; 3], C::Error> {
    command(link, begin).await?;
    let mut held = Held::default();
    let id = |row: &Answers, column| row.int(0, 0, column).unwrap_or(0) as u32;
    // Without a number a row counts as one that nobody loaded.
    let cents = |row: &Answers, column| row.cents(0, 0, column).unwrap_or(i64::MIN / 4);
    link.each_row("SELECT a_w_id, a_balance FROM dike_account", |row| {
        held.accounts.insert(id(row, 0), cents(row, 1));
    })
    .await?;
    for w in 1..=warehouses {
        let sql = format!("SELECT b_other, b_balance FROM dike_balance WHERE b_w_id = {w}");
        link.each_row(&sql, |row| {
            held.balances.insert((w, id(row, 0)), cents(row, 1));
        })
        .await?;
    }
    command(link, "COMMIT").await?;
    Ok(held.judge(warehouses))
}

/// The number of transfers that have committed.
///
/// # Errors
/// The connection broke, or the server refused the query.
pub async fn read_transfers<C: Connection>(link: &mut C) -> Result<i64, C::Error> {
    let mut transfers = 0;
    link.each_row("SELECT SUM(a_transfers) FROM dike_account", |row| {
        transfers = row.int(0, 0, 0).unwrap_or(0);
    })
    .await?;
    Ok(transfers)
}

impl Held {
    fn judge(&self, warehouses: u32) -> [Condition; 3] {
        [
            self.total(warehouses),
            self.pairs(warehouses),
            self.each(warehouses),
        ]
    }

    fn balance(&self, warehouse: u32, other: u32) -> Option<i128> {
        self.balances
            .get(&(warehouse, other))
            .map(|cents| i128::from(*cents))
    }

    fn total(&self, warehouses: u32) -> Condition {
        let all = self.accounts.values().chain(self.balances.values());
        let sum: i128 = all.map(|cents| i128::from(*cents)).sum();
        let loaded = i128::from(LOADED_CENTS) * i128::from(warehouses);
        let rows = (self.accounts.len(), self.balances.len());
        let count = warehouses as usize;
        let mut condition = Condition::default();
        let is_whole = rows == (count, count * (count + 1));
        condition.note(sum == loaded && is_whole, || {
            format!(
                "{} accounts and {} balances of {warehouses} warehouses hold {sum} cents, {loaded} \
                 were loaded",
                rows.0, rows.1
            )
        });
        condition
    }

    fn pairs(&self, warehouses: u32) -> Condition {
        let mut condition = Condition::default();
        for one in 1..=warehouses {
            let own = core::iter::once(((one, 0), (one, one)));
            let others = (one + 1..=warehouses).map(|other| ((one, other), (other, one)));
            for (a, b) in own.chain(others) {
                let held = [self.balance(a.0, a.1), self.balance(b.0, b.1)];
                let sum = held[0].zip(held[1]).map(|(a, b)| a + b);
                condition.note(sum == Some(0), || {
                    format!("balances {a:?} and {b:?} hold {held:?} cents")
                });
            }
        }
        condition
    }

    fn each(&self, warehouses: u32) -> Condition {
        let mut condition = Condition::default();
        for w in 1..=warehouses {
            let others = (1..=warehouses).filter(|other| *other != w);
            let got: i128 = others.filter_map(|other| self.balance(w, other)).sum();
            let account = self.accounts.get(&w).map(|cents| i128::from(*cents));
            condition.note(account == Some(i128::from(LOADED_CENTS) + got), || {
                format!("warehouse {w} holds {account:?} cents, and got {got} from others")
            });
        }
        condition
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded() -> Held {
        Held {
            accounts: (1..=3).map(|w| (w, LOADED_CENTS)).collect(),
            balances: (1..=3)
                .flat_map(|w| (0..=3).map(move |other| ((w, other), 0)))
                .collect(),
        }
    }

    fn failed(held: &Held) -> [u64; 3] {
        held.judge(3).map(|condition| condition.failures)
    }

    #[test]
    fn a_half_of_a_transfer_is_found() {
        let mut held = loaded();
        assert_eq!(failed(&held), [0; 3]);
        let mut change = |w: u32, other: u32, cents: i64| {
            *held.balances.get_mut(&(w, other)).expect("it was loaded") += cents;
        };
        change(1, 2, -500);
        change(2, 1, 500);
        change(3, 0, -70);
        change(3, 3, 70);
        *held.accounts.get_mut(&1).expect("it was loaded") -= 500;
        let half = held.clone();
        *held.accounts.get_mut(&2).expect("it was loaded") += 500;
        assert_eq!(failed(&held), [0; 3]);
        assert_eq!(failed(&half), [1, 0, 1]);
        let mut torn = held.clone();
        torn.balances.insert((3, 3), 0);
        assert_eq!(failed(&torn), [1, 1, 0]);
        let mut less = held.clone();
        less.balances.remove(&(2, 3));
        assert_eq!(failed(&less), [1, 1, 0]);
        let mut none = held;
        none.accounts.clear();
        assert_eq!(failed(&none), [1, 0, 3]);
    }

    #[test]
    fn rows_are_as_many_as_are_told() {
        let mut out = Vec::new();
        let rows = write_accounts(3, &mut out) + write_balances(2, 3, &mut out);
        assert_eq!(
            out.iter().filter(|byte| **byte == b'\n').count() as u64,
            rows
        );
        assert!(out.starts_with(b"1\t1000000.00\t0\n"));
        assert!(out.ends_with(b"2\t3\t0.00\n"));
        let [account, balance] = create(true, true);
        assert!(account.ends_with("PARTITION BY (a_w_id)"));
        assert!(balance.ends_with("PARTITION BY (b_w_id)"));
        assert!(create(true, false)[1].ends_with("PARTITION BY (b_w_id, b_other)"));
        assert!(!create(false, true)[1].contains("PARTITION"));
    }
}
