//! Dike's controls of TPC-C: how many transactions touch several nodes, and how many nodes they
//! touch (section 4.2.1 of the paper).
//!
//! | part | content |
//! |---|---|
//! | [`Placement`] | which warehouses have their home on which node |
//! | [`Distribution`] | the warehouses of one transaction: exact where the placement is known |
//! | [`expectation`] | how many nodes distinct keys touch on average, and how many that takes |
//! | [`contention`] | how many transactions compete for a row (section 4.2.2) |
//! | [`imbalance`] | which warehouses have more districts and more transactions (section 4.3) |
//! | [`dynamics`] | what changes in the course of a run, beside the rate |
//! | [`Mix`] | shares of the transactions that are not the specification's |
//! | [`further`] | transactions beside the five of TPC-C |
//!
//! With a distribution, a NewOrder is distributed by the warehouses that supply its lines, the
//! further transactions by those whose rows they touch, and a Payment stays at home, so that
//! nothing but what is asked for is distributed. Without one, lines
//! and payments concern other warehouses as often as TPC-C says: 1 % and 15 %.

pub mod contention;
mod distribution;
pub mod dynamics;
pub mod expectation;
pub mod further;
pub mod imbalance;
mod mix;

pub use distribution::{Distribution, DistributionError, Mode, Placement, Wanted};
pub use mix::{Mix, MixError};

use crate::tpcc::Kind;
use crate::tpcc::input::Line;
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::Prng;
use contention::{HotRow, Pick};
use dynamics::Dynamics;
use further::Groups;
use imbalance::Homes;

/// What is controlled of the inputs.
#[derive(Debug, Default)]
pub struct Controls {
    /// Where the warehouses of a transaction lie; `None`: TPC-C's own shares of other warehouses.
    pub distribution: Option<Arc<Distribution>>,
    /// Stock rows for which orders compete.
    pub hot_rows: Vec<Arc<HotRow>>,
    /// Shares of the transactions where no curve says others.
    pub mix: Mix,
    /// How homes are dealt among warehouses; `None`: each terminal has its own, as in TPC-C.
    pub homes: Option<Homes>,
    /// What the further transactions are about.
    pub groups: Groups,
    /// What changes with the seconds of the run.
    pub dynamics: Dynamics,
}

impl Controls {
    /// The kind of the next transaction.
    pub fn kind(&self, prng: &mut Prng) -> Kind {
        self.dynamics.mix(&self.mix).draw(prng)
    }

    /// The home of the next transaction; `None`: that of the terminal.
    pub fn home(&self, prng: &mut Prng) -> Option<u32> {
        let homes = self.homes.as_ref()?;
        let second = self.dynamics.second();
        Some(homes.draw(prng, second, self.dynamics.hot_share()))
    }

    /// Makes an order hot, if a row is wanted by more and it can be without touching other nodes:
    /// one of its lines, of the `home` warehouse if it can be, becomes that of the row. The last
    /// line stays, which may have an unused item.
    pub fn heat(&self, home: u32, lines: &mut [Line]) -> Option<Arc<Pick>> {
        let last = lines.len().checked_sub(1)?;
        for row in &self.hot_rows {
            let is_near = |line: &Line| match &self.distribution {
                Some(distribution) => {
                    let placement = distribution.placement();
                    placement.is_one_node(line.supply_warehouse, row.warehouse)
                }
                None => true,
            };
            let near = |line: &Line| line.supply_warehouse == home && is_near(line);
            let own = lines[..last].iter().position(near);
            let Some(place) = own.or_else(|| lines[..last].iter().position(is_near)) else {
                continue;
            };
            if let Some(pick) = row.pick() {
                let line = &mut lines[place];
                line.supply_warehouse = row.warehouse;
                line.item = row.item;
                return Some(pick);
            }
        }
        None
    }
}
