//! The further transactions of Dike, which are kinds of `--mix` beside those of TPC-C.
//!
//! | kind | what it does | the paper |
//! |---|---|---|
//! | `d_stock_level` | StockLevel of several warehouses, read only | section 5, figure 12 |
//! | `d_update_stock` | locks and sets S_QUANTITY of items of several warehouses | figure 7 |
//! | `d_update_balance` | moves money between [`tables`] of several warehouses | figure 13 |
//! | `d_select_balance` | reads what it has moved, and compares both sides | figure 13 |
//! | `broadcast_update` | sets I_PRICE, which each node has | appendix A.1 |
//! | `co_access` | locks and sets S_QUANTITY of rows that are always changed together | 4.3.2 |
//!
//! With a [`Distribution`](super::Distribution) their warehouses are drawn as the suppliers of an
//! order are; without one all but `co_access` stay at home. TPC-C's conditions and the condition of
//! the stock do not read what they change (S_QUANTITY and I_PRICE). The paper's transactions change
//! W_YTD instead of a table of their own, which breaks conditions 1 and 8.

mod draw;
pub mod tables;
mod transactions;

pub use draw::{Groups, Settings, SettingsError};
pub use transactions::{STATEMENTS, execute, statements};

pub(crate) use draw::{Source, draw};

use crate::tpcc::Kind;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// Most rows of STOCK or ITEM that one transaction changes.
pub const ROWS_MAX: u32 = 1_000;

/// The input of `d_stock_level`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StockLevels {
    /// Warehouses with a district of each; the first is the home.
    pub places: Vec<(u32, u32)>,
    /// 10 to 20.
    pub threshold: u32,
}

/// A row of STOCK, and what S_QUANTITY becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StockRow {
    /// S_W_ID.
    pub warehouse: u32,
    /// S_I_ID.
    pub item: u32,
    /// 10 to 100.
    pub quantity: u32,
}

/// The input of `d_update_stock` and of `co_access`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateStock {
    /// The home.
    pub warehouse: u32,
    /// In the order in which they are locked.
    pub rows: Vec<StockRow>,
    /// Whether all statements travel in one round; otherwise each has a round of its own.
    pub batch: bool,
}

/// The input of `d_update_balance` and of `d_select_balance`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balance {
    /// The home.
    pub warehouse: u32,
    /// Other warehouses, in the order in which they are reached; none: it stays at home.
    pub others: Vec<u32>,
    /// What moves to each of them, in cents.
    pub amount_cents: i64,
    /// As for [`UpdateStock`].
    pub batch: bool,
}

/// The input of `broadcast_update`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prices {
    /// The home.
    pub warehouse: u32,
    /// Items, ascending, with their new prices in cents.
    pub items: Vec<(u32, i64)>,
    /// As for [`UpdateStock`].
    pub batch: bool,
}

/// The input of one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Further {
    /// `d_stock_level`.
    StockLevel(StockLevels),
    /// `d_update_stock`.
    UpdateStock(UpdateStock),
    /// `d_update_balance`.
    UpdateBalance(Balance),
    /// `d_select_balance`. Both sides are compared where one snapshot is promised.
    SelectBalance(Balance, OneSnapshot),
    /// `broadcast_update`.
    Broadcast(Prices),
    /// `co_access`.
    CoAccess(UpdateStock),
}

/// Whether all reads of a transaction see one state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OneSnapshot(pub bool);

impl Further {
    /// Which transaction it is for.
    pub fn kind(&self) -> Kind {
        match self {
            Further::StockLevel(_) => Kind::DStockLevel,
            Further::UpdateStock(_) => Kind::DUpdateStock,
            Further::UpdateBalance(_) => Kind::DUpdateBalance,
            Further::SelectBalance(..) => Kind::DSelectBalance,
            Further::Broadcast(_) => Kind::BroadcastUpdate,
            Further::CoAccess(_) => Kind::CoAccess,
        }
    }

    /// The warehouse that is its home.
    pub fn home(&self) -> u32 {
        match self {
            Further::StockLevel(levels) => levels.places.first().map_or(1, |place| place.0),
            Further::UpdateStock(update) | Further::CoAccess(update) => update.warehouse,
            Further::UpdateBalance(balance) | Further::SelectBalance(balance, _) => {
                balance.warehouse
            }
            Further::Broadcast(prices) => prices.warehouse,
        }
    }

    /// The warehouses whose rows it touches, some of them several times.
    pub fn warehouses(&self) -> Vec<u32> {
        match self {
            Further::StockLevel(levels) => levels.places.iter().map(|place| place.0).collect(),
            Further::UpdateStock(update) | Further::CoAccess(update) => {
                update.rows.iter().map(|row| row.warehouse).collect()
            }
            Further::UpdateBalance(balance) | Further::SelectBalance(balance, _) => {
                let others = balance.others.iter().copied();
                core::iter::once(balance.warehouse).chain(others).collect()
            }
            Further::Broadcast(_) => Vec::new(),
        }
    }

    /// Whether it touches rows of a warehouse that is not its home.
    pub fn leaves_home(&self) -> bool {
        let home = self.home();
        self.warehouses().iter().any(|it| *it != home)
    }
}

/// How many sets of rows are changed together: `GROUPS:ROWS` or `GROUPS:ROWS:SHARE`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoAccess {
    /// Groups of each home warehouse, 1 or more.
    pub groups: u32,
    /// Rows of STOCK in a group, 2 or more.
    pub rows: u32,
    /// Share of the transactions that change a group, 0 to 1; the others change as many rows at
    /// home. `None`: with a distribution its ratio, otherwise 0.8 (figure 10 of the paper).
    pub share: Option<f64>,
}

impl Default for CoAccess {
    fn default() -> CoAccess {
        CoAccess {
            groups: 4,
            rows: 2,
            share: None,
        }
    }
}

/// Why a text says no groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoAccessError(String);

impl fmt::Display for CoAccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for CoAccessError {}

impl FromStr for CoAccess {
    type Err = CoAccessError;

    fn from_str(text: &str) -> Result<CoAccess, CoAccessError> {
        let mut parts = text.split(':');
        let mut number = |low: u32| {
            let number = parts.next()?.parse().ok();
            number.filter(|it| (low..=ROWS_MAX).contains(it))
        };
        let sizes = number(1).zip(number(2));
        let share: Option<Option<f64>> = match parts.next() {
            None => Some(None),
            Some(share) => {
                let share = share.parse().ok();
                share.filter(|it| (0.0..=1.0).contains(it)).map(Some)
            }
        };
        match (sizes, share, parts.next()) {
            (Some((groups, rows)), Some(share), None) => Ok(CoAccess {
                groups,
                rows,
                share,
            }),
            _ => Err(CoAccessError(format!(
                "{text:?} is neither GROUPS:ROWS nor GROUPS:ROWS:SHARE, such as 4:2:0.8 (1 to \
                 {ROWS_MAX} groups, 2 to {ROWS_MAX} rows, a share of 0 to 1)"
            ))),
        }
    }
}

impl fmt::Display for CoAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.groups, self.rows)?;
        match self.share {
            Some(share) => write!(f, ":{share}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn groups_are_read_and_told_alike() {
        for text in ["4:2", "1:1000:0.5", "7:3:0", "7:3:1"] {
            let groups: CoAccess = text.parse().expect(text);
            assert_eq!(groups.to_string(), text);
        }
        for bad in [
            "",
            "4",
            "0:2",
            "4:1",
            "4:2:2",
            "4:2:0.5:1",
            "4:1001",
            "a:2",
            "4:2:",
            "4:2:nan",
        ] {
            assert!(bad.parse::<CoAccess>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_update_that_stays_at_home_has_one_warehouse() {
        let balance = |others: &[u32]| {
            Further::UpdateBalance(Balance {
                warehouse: 3,
                others: others.to_vec(),
                amount_cents: 1,
                batch: true,
            })
        };
        assert!(!balance(&[]).leaves_home());
        assert!(balance(&[4]).leaves_home());
        assert_eq!(balance(&[4, 1]).warehouses(), [3, 4, 1]);
        assert_eq!(balance(&[4]).home(), 3);
    }
}
