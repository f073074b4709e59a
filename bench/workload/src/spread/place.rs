//! How much of the work is elsewhere, and where.
//!
//! *Locality*: the share of remote accesses whose rows no other node uses. So that
//! there are such rows, all rows are dealt into slices when a locality is set: odd items (and
//! customers) are common, even ones belong to one node each, by turns, wherever they are stored.
//! A home uses the common rows alone, and so does a remote access without locality.

use crate::tpcc::DISTRICTS;
use alloc::vec::Vec;
use base::Prng;

/// What the remote share counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Transactions that may leave their node (NewOrder, Payment, steps of key-value rows): one of
    /// their accesses does.
    Transaction,
    /// Accesses that may (lines of NewOrder, the customer of Payment), each by itself.
    Access,
}

/// How much of the work is elsewhere, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spread {
    /// The warehouses (parts) of each node.
    pub homes: Vec<Vec<u32>>,
    /// Percentage of `unit` that leaves the node; nothing does where there is one node.
    pub remote_percent: u64,
    /// What that counts.
    pub unit: Unit,
    /// Percentage of remote accesses with locality; `None`: there are no slices, every remote
    /// access may meet every other.
    pub locality_percent: Option<u64>,
    /// How many other nodes (the next ones) a node's remote accesses go to, by turns in the course
    /// of time; 0 and empty: all.
    pub reach: Vec<usize>,
    /// How long each entry of `reach` lasts, microseconds.
    pub reach_us: u64,
    /// Percentage of NewOrders with a line of the one hot row: item 1 of the first warehouse.
    pub hot_percent: u64,
    /// Whether customers are named by their number alone. With a locality they always are.
    pub by_id: bool,
}

impl Spread {
    /// Transactions of which `remote_percent` leave their node once, to any other.
    pub fn new(homes: Vec<Vec<u32>>, remote_percent: u64) -> Spread {
        Spread {
            homes,
            remote_percent,
            unit: Unit::Transaction,
            locality_percent: None,
            reach: Vec::new(),
            reach_us: 1,
            hot_percent: 0,
            by_id: false,
        }
    }

    pub(super) fn customers_by_id(&self) -> bool {
        self.by_id || self.locality_percent.is_some()
    }

    /// Which of `accesses` leave the node.
    pub(super) fn leaving(&self, prng: &mut Prng, accesses: usize) -> Leaving {
        if self.homes.len() < 2 {
            return Leaving(0);
        }
        match self.unit {
            Unit::Transaction => {
                let leaves = prng.below(100) < self.remote_percent;
                let which = prng.below(accesses as u64);
                Leaving(u64::from(leaves) << which)
            }
            Unit::Access => {
                let bit = |at| u64::from(prng.below(100) < self.remote_percent) << at;
                Leaving((0..accesses).map(bit).sum())
            }
        }
    }

    /// The slice that a node's accesses to its own rows use.
    pub(super) fn home_slice(&self) -> Slice {
        match self.locality_percent {
            None => Slice::All,
            Some(_) => Slice::Common,
        }
    }

    /// Where a remote access of a client of `node`, whose home is `home`, goes.
    ///
    /// With locality it is the same warehouse every time: the one in the same place on the next
    /// node, so that a home's remote rows are few enough to be used again.
    pub(super) fn elsewhere(
        &self,
        prng: &mut Prng,
        node: usize,
        home: u32,
        at_us: u64,
    ) -> (u32, Slice) {
        let nodes = self.homes.len();
        if let Some(percent) = self.locality_percent
            && prng.below(100) < percent
        {
            let next = &self.homes[(node + 1) % nodes];
            let place = self.homes[node].iter().position(|own| *own == home);
            let place = place.expect("a client's home is on its node") % next.len();
            return (next[place], Slice::Of { node, nodes });
        }
        let others = match self.reach_at(at_us) {
            0 => nodes - 1,
            reach => reach.min(nodes - 1),
        };
        let other = (node + 1 + prng.below(others as u64) as usize) % nodes;
        let homes = &self.homes[other];
        let warehouse = homes[prng.below(homes.len() as u64) as usize];
        (warehouse, self.home_slice())
    }

    fn reach_at(&self, at_us: u64) -> usize {
        match self.reach.len() {
            0 => 0,
            count => self.reach[(at_us / self.reach_us.max(1)) as usize % count],
        }
    }
}

/// The accesses of a transaction that leave its node, one bit each.
#[derive(Clone, Copy)]
pub(super) struct Leaving(u64);

impl Leaving {
    pub(super) fn contains(self, at: usize) -> bool {
        self.0 >> at & 1 == 1
    }
}

/// Rows of a warehouse that an access may mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Slice {
    All,
    Common,
    /// Those of one node.
    Of {
        node: usize,
        nodes: usize,
    },
}

impl Slice {
    /// The item of this slice that stands for a drawn one, in `1..=items`.
    pub(super) fn item(self, drawn: u32, items: u32) -> u32 {
        match self {
            Slice::All => drawn,
            Slice::Common => (drawn - 1) / 2 * 2 + 1,
            Slice::Of { node, nodes } => 2 * turn(drawn / 2, items / 2, node, nodes) + 2,
        }
    }

    /// The same for a customer as (district, number). Even numbers of all districts of a warehouse
    /// are dealt together: a small district has fewer than there may be nodes.
    pub(super) fn customer(
        self,
        (district, id): (u32, u32),
        customers: u32,
        prng: &mut Prng,
    ) -> (u32, u32) {
        match self {
            Slice::All => (district, id),
            Slice::Common => (district, (id - 1) / 2 * 2 + 1),
            Slice::Of { node, nodes } => {
                let half = customers / 2;
                let all = half * DISTRICTS;
                let number = turn(prng.below(u64::from(all)) as u32, all, node, nodes);
                (number / half + 1, number % half * 2 + 2)
            }
        }
    }
}

/// The number next to `drawn`, below `count`, whose turn is `node` of `nodes`.
///
/// # Panics
/// There are fewer numbers than nodes.
fn turn(drawn: u32, count: u32, node: usize, nodes: usize) -> u32 {
    let (node, nodes) = (node as u32, nodes as u32);
    assert!(count >= nodes, "every node has rows of its own");
    let round = drawn / nodes % (count / nodes);
    round * nodes + node
}
