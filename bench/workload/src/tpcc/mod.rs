//! TPC-C: scale, loader rows, transaction inputs, pacing, audits and consistency conditions.
//!
//! Clause numbers are those of the TPC-C specification, revision 5.11. All money is in integer
//! cents; tax and discount rates are integers in units of 0.0001.
//!
//! What is easy to get wrong, and where it is done:
//!
//! | rule | clause | place |
//! |---|---|---|
//! | the remote supplier's own stock is drawn and updated | 2.4.1.5 | [`input`] |
//! | 15 % of payments are by customers of another warehouse | 2.5.1.2 | [`input`] |
//! | 1 % of new orders name an unused item and roll back | 2.4.1.4 | [`input`] |
//! | the constant of C_LAST differs between load and run | 2.1.6.1 | [`random`] |
//! | the last 30 % of the loaded orders are not delivered | 4.3.3.1 | [`rows`] |
//! | transactions come from a shuffled deck | 5.2.4.2 | [`deck`] |
//! | nulls and empty sets count in the conditions | 3.3.2 | [`conditions`] |

pub mod audit;
pub mod check;
pub mod conditions;
pub mod deck;
mod districts;
pub mod input;
pub mod random;
pub mod rows;
pub mod scale;
pub mod schema;
pub mod sql;
pub mod stock;
pub mod text;
pub mod transactions;

pub use districts::{DISTRICTS, Districts, Skew, SkewError, zipf_weight};
pub use scale::Scale;

/// The five transactions, in the order of the specification, and behind them those of Dike
/// ([`crate::dike::further`]), which no run of TPC-C has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Clause 2.4: enters an order of 5 to 15 lines.
    NewOrder,
    /// Clause 2.5: records a customer's payment.
    Payment,
    /// Clause 2.6: reads a customer's last order.
    OrderStatus,
    /// Clause 2.7: delivers the oldest order of each of the ten districts.
    Delivery,
    /// Clause 2.8: counts recently sold items with low stock.
    StockLevel,
    /// StockLevel of several warehouses.
    DStockLevel,
    /// Changes the stock of items of several warehouses.
    DUpdateStock,
    /// Moves money between accounts of several warehouses.
    DUpdateBalance,
    /// Reads the accounts that DUpdateBalance changes.
    DSelectBalance,
    /// Changes rows of a table that each node has.
    BroadcastUpdate,
    /// Changes rows that are always changed together.
    CoAccess,
}

impl Kind {
    /// Those of TPC-C, in the order of their numbers, which are the first.
    pub const TPCC: [Kind; 5] = [
        Kind::NewOrder,
        Kind::Payment,
        Kind::OrderStatus,
        Kind::Delivery,
        Kind::StockLevel,
    ];

    /// All kinds, in the order of their numbers.
    pub const ALL: [Kind; 11] = [
        Kind::NewOrder,
        Kind::Payment,
        Kind::OrderStatus,
        Kind::Delivery,
        Kind::StockLevel,
        Kind::DStockLevel,
        Kind::DUpdateStock,
        Kind::DUpdateBalance,
        Kind::DSelectBalance,
        Kind::BroadcastUpdate,
        Kind::CoAccess,
    ];

    /// The names that reports show, in the order of [`Kind::ALL`].
    pub const NAMES: [&'static str; 11] = [
        "new_order",
        "payment",
        "order_status",
        "delivery",
        "stock_level",
        "d_stock_level",
        "d_update_stock",
        "d_update_balance",
        "d_select_balance",
        "broadcast_update",
        "co_access",
    ];

    /// The names of [`Kind::TPCC`].
    pub const TPCC_NAMES: [&'static str; 5] = {
        let [a, b, c, d, e, ..] = Kind::NAMES;
        [a, b, c, d, e]
    };

    /// Whether TPC-C has it.
    pub fn is_tpcc(self) -> bool {
        self.number() < Kind::TPCC.len()
    }

    /// Whether a distribution says how many nodes it touches.
    pub fn is_distributable(self) -> bool {
        match self {
            Kind::NewOrder
            | Kind::DStockLevel
            | Kind::DUpdateStock
            | Kind::DUpdateBalance
            | Kind::DSelectBalance
            | Kind::CoAccess => true,
            Kind::Payment
            | Kind::OrderStatus
            | Kind::Delivery
            | Kind::StockLevel
            | Kind::BroadcastUpdate => false,
        }
    }

    /// The position in [`Kind::ALL`], 0 to 10.
    pub fn number(self) -> usize {
        self as usize
    }

    /// The name that reports show.
    pub fn name(self) -> &'static str {
        Kind::NAMES[self.number()]
    }

    /// The kind of that name, which may have `-` for `_`.
    pub fn parse(name: &str) -> Option<Kind> {
        let name = name.replace('-', "_");
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The keying time in microseconds: constant (clause 5.2.5.2); 0 for what TPC-C does not have.
    pub fn keying_us(self) -> u64 {
        let times = [18_000_000, 3_000_000, 2_000_000, 2_000_000, 2_000_000];
        times.get(self.number()).copied().unwrap_or(0)
    }

    /// The mean think time in microseconds (clause 5.2.5.4 and the table of 5.2.5.7); 0 for what
    /// TPC-C does not have.
    pub fn think_mean_us(self) -> u64 {
        let times = [12_000_000, 12_000_000, 10_000_000, 5_000_000, 5_000_000];
        times.get(self.number()).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_numbered_in_order() {
        for (number, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(kind.number(), number);
            assert_eq!(kind.name(), Kind::NAMES[number]);
            assert_eq!(Kind::parse(kind.name()), Some(*kind));
            assert_eq!(kind.is_tpcc(), Kind::TPCC.contains(kind));
        }
        assert_eq!(Kind::TPCC_NAMES, Kind::TPCC.map(Kind::name));
    }
}
