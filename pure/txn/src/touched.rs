//! How many nodes the committed transactions of each database have touched: the degree of their
//! distribution. And how long they took.
//!
//! A node is touched if it is home of a row or range that a statement has read or written there.
//! The node of the session is not, unless it is home of something. Reads of replicated tables touch
//! no node, since each has a copy; changes of them touch all. Under a protocol that moves rows, the
//! home of a row counts, wherever the row is.

use crate::Op;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use base::{DatabaseId, IndexId, NodeId};
use core::cell::{Cell, RefCell};

/// The nodes that one transaction has touched.
#[derive(Default)]
pub struct Touched {
    first: Cell<Option<NodeId>>,
    others: RefCell<Vec<NodeId>>,
    committed: Cell<bool>,
}

impl Touched {
    fn contains(&self, node: NodeId) -> bool {
        self.first.get() == Some(node) || self.others.borrow().contains(&node)
    }

    /// Number of nodes.
    pub fn count(&self) -> usize {
        usize::from(self.first.get().is_some()) + self.others.borrow().len()
    }

    /// The transaction has committed.
    pub fn note_committed(&self) {
        self.committed.set(true);
    }

    /// An operation goes to a node. `replicated`: key spaces of replicated tables.
    pub fn note(&self, node: NodeId, op: &Op, replicated: &BTreeSet<IndexId>) {
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

/// Upper bound of the first class of durations, microseconds; each next one is twice that.
const CLASS_US: u64 = 64;
/// Classes of durations; the last one, above half a minute, has no upper bound.
pub const CLASSES: usize = 21;

/// Upper bound of a class of durations; `None`: it has none.
pub fn duration_class_us(class: usize) -> Option<u64> {
    (class + 1 < CLASSES).then(|| CLASS_US << class)
}

fn class_of(duration_us: u64) -> usize {
    let above = duration_us.saturating_sub(1) / CLASS_US;
    let class = u64::BITS - above.leading_zeros();
    (class as usize).min(CLASSES - 1)
}

/// What became of the transactions of one database.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    /// Commits by the number of nodes.
    nodes: Vec<u64>,
    /// Attempts that were rolled back, those included that were made again.
    pub aborted: u64,
    /// Commits by how long they took: classes of [`duration_class_us`].
    pub durations: [u64; CLASSES],
    /// Sum of their times.
    pub duration_us: u64,
}

/// Committed transactions of each database by the number of nodes that they have touched, and by
/// the time that they took, since this shard began.
#[derive(Default)]
pub struct Degrees(BTreeMap<DatabaseId, Ends>);

impl Degrees {
    /// A transaction has ended, this long after it began.
    pub fn count(&mut self, database: DatabaseId, touched: &Touched, duration_us: u64) {
        let ends = self.0.entry(database).or_default();
        if !touched.committed.get() {
            ends.aborted += 1;
            return;
        }
        ends.durations[class_of(duration_us)] += 1;
        ends.duration_us += duration_us;
        let nodes = touched.count();
        if ends.nodes.len() <= nodes {
            ends.nodes.resize(nodes + 1, 0);
        }
        ends.nodes[nodes] += 1;
    }

    /// What became of the transactions of a database; `None`: none has ended.
    pub fn ends_of(&self, database: DatabaseId) -> Option<&Ends> {
        self.0.get(&database)
    }

    /// Numbers of nodes and of transactions that have touched so many.
    pub fn of(&self, database: DatabaseId) -> impl Iterator<Item = (usize, u64)> {
        let counts = self.0.get(&database).into_iter();
        let counts = counts.flat_map(|ends| &ends.nodes);
        let counted = counts.copied().enumerate();
        counted.filter(|(_, transactions)| *transactions > 0)
    }

    /// Forgets databases that are gone.
    pub fn keep(&mut self, known: impl Fn(DatabaseId) -> bool) {
        self.0.retain(|database, _| known(*database));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_not_above_the_bound_of_its_class() {
        for duration in (0..26).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]) {
            let class = class_of(duration);
            assert!(duration_class_us(class).is_none_or(|bound| duration <= bound));
            let below = class.checked_sub(1).and_then(duration_class_us);
            assert!(below.is_none_or(|bound| duration > bound), "{duration}");
        }
        assert_eq!(class_of(u64::MAX), CLASSES - 1);
    }
}
