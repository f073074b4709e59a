//! Dike's controls of TPC-C: how many transactions touch several nodes, and how many nodes they
//! touch (section 4.2.1 of the paper).
//!
//! | part | content |
//! |---|---|
//! | [`Placement`] | which warehouses have their home on which node |
//! | [`Distribution`] | the warehouses of one transaction: exact where the placement is known |
//! | [`expectation`] | how many nodes distinct keys touch on average, and how many that takes |
//! | [`Mix`] | shares of the five transactions that are not the specification's |
//!
//! With a distribution, a NewOrder is distributed by the warehouses that supply its lines, and a
//! Payment stays at home, so that nothing but what is asked for is distributed. Without one, lines
//! and payments concern other warehouses as often as TPC-C says: 1 % and 15 %.

mod distribution;
pub mod expectation;
mod mix;

pub use distribution::{Distribution, DistributionError, Mode, Placement, Wanted};
pub use mix::{Mix, MixError};

use alloc::sync::Arc;

/// What is controlled of the inputs.
#[derive(Clone, Debug)]
pub struct Controls {
    /// Where the warehouses of a transaction lie; `None`: TPC-C's own shares of other warehouses.
    pub distribution: Option<Arc<Distribution>>,
    /// Shares of the transactions.
    pub mix: Mix,
}
