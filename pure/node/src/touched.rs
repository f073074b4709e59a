//! How many nodes the committed transactions of each database have touched: the degree of their
//! distribution.
//!
//! A node is touched if it is home of a row or range that a statement has read or written there.
//! The node of the session is not, unless it is home of something. Reads of replicated tables touch
//! no node, since each has a copy; changes of them touch all. Under a protocol that moves rows, the
//! home of a row counts, wherever the row is.

use base::{DatabaseId, IndexId, NodeId};
use core::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use txn::Op;

/// The nodes that one transaction has touched.
#[derive(Default)]
pub(crate) struct Touched {
    first: Cell<Option<NodeId>>,
    others: RefCell<Vec<NodeId>>,
    committed: Cell<bool>,
}

impl Touched {
    fn contains(&self, node: NodeId) -> bool {
        self.first.get() == Some(node) || self.others.borrow().contains(&node)
    }

    /// Number of nodes.
    pub(crate) fn count(&self) -> usize {
        usize::from(self.first.get().is_some()) + self.others.borrow().len()
    }

    /// The transaction has committed.
    pub(crate) fn note_committed(&self) {
        self.committed.set(true);
    }

    /// An operation goes to a node. `replicated`: key spaces of replicated tables.
    pub(crate) fn note(&self, node: NodeId, op: &Op, replicated: &BTreeSet<IndexId>) {
        if self.contains(node) {
            return;
        }
        // A question for the clock reads no row.
        let Some(index) = op.index() else {
            return;
        };
        if !op.is_write() && replicated.contains(&index) {
            return;
        }
        match self.first.get() {
            None => self.first.set(Some(node)),
            Some(_) => self.others.borrow_mut().push(node),
        }
    }
}

/// Committed transactions of each database by the number of nodes that they have touched, since
/// this shard began.
#[derive(Default)]
pub(crate) struct Degrees(BTreeMap<DatabaseId, Vec<u64>>);

impl Degrees {
    /// A transaction has ended; it counts if it has committed.
    pub(crate) fn count(&mut self, database: DatabaseId, touched: &Touched) {
        if !touched.committed.get() {
            return;
        }
        let nodes = touched.count();
        let counts = self.0.entry(database).or_default();
        if counts.len() <= nodes {
            counts.resize(nodes + 1, 0);
        }
        counts[nodes] += 1;
    }

    /// Numbers of nodes and of transactions that have touched so many.
    pub(crate) fn of(&self, database: DatabaseId) -> impl Iterator<Item = (usize, u64)> {
        let counts = self.0.get(&database).into_iter().flatten();
        let counted = counts.copied().enumerate();
        counted.filter(|(_, transactions)| *transactions > 0)
    }

    /// Forgets databases that are gone.
    pub(crate) fn keep(&mut self, known: impl Fn(DatabaseId) -> bool) {
        self.0.retain(|database, _| known(*database));
    }
}
