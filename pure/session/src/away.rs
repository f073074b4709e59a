//! Nodes without a connection, and since when: for how long a statement that needs one of them is
//! tried again.

use base::{NodeId, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Longest time, in microseconds, for which a transaction that needs a node without a connection is
/// run again, counted from its first attempt that failed so, and from the loss of the connection.
///
/// Nodes notice a silent one after 0.8 s and connect again within 0.1 s of hearing from it. So a
/// node that was stopped or had no CPU for about a second is back within this time, and so is one
/// whose first connection is being made. A longer wait is mostly in vain, and clients that use rows
/// of many nodes stand still meanwhile.
pub(crate) const AWAY_US_MAX: u64 = 500_000;

/// Time without a connection, in microseconds, after which the readers of a node are not waited
/// for: versions that only they may need are removed, and reads of theirs that come later are
/// refused (rule R22). Longer: more versions are kept while a node is down. Shorter: a long reader
/// whose node stands still for a moment fails.
pub const GONE_US: u64 = 10_000_000;

/// The nodes that this shard is not connected with.
pub struct Away {
    since: BTreeMap<NodeId, Time>,
    /// Those of them whose readers are not waited for.
    gone: BTreeSet<NodeId>,
    /// [`GONE_US`]; less in tests.
    gone_after_us: u64,
    /// A node has come back that was gone.
    returned: bool,
}

impl Default for Away {
    fn default() -> Away {
        Away {
            since: BTreeMap::new(),
            gone: BTreeSet::new(),
            gone_after_us: GONE_US,
            returned: false,
        }
    }
}

impl Away {
    /// The connection is lost, or cannot be made.
    pub fn down(&mut self, node: NodeId, now: Time) {
        self.since.entry(node).or_insert(now);
    }

    /// The node answers, but there is no connection yet.
    pub fn heard(&mut self, node: NodeId, now: Time) {
        if let Some(since) = self.since.get_mut(&node) {
            *since = now;
        }
    }

    /// There is a connection.
    pub fn up(&mut self, node: NodeId) {
        self.since.remove(&node);
        self.returned |= self.gone.remove(&node);
    }

    /// Changes [`GONE_US`] for this shard.
    pub fn set_gone_after(&mut self, us: u64) {
        self.gone_after_us = us;
    }

    /// Nodes whose readers are not waited for.
    pub fn gone(&self) -> &BTreeSet<NodeId> {
        &self.gone
    }

    /// Whether those have changed since the last call.
    pub fn look(&mut self, now: Time) -> bool {
        if self.since.is_empty() && !self.returned {
            return false;
        }
        let mut changed = core::mem::take(&mut self.returned);
        for (node, since) in &self.since {
            if now.since(*since) >= self.gone_after_us {
                changed |= self.gone.insert(*node);
            }
        }
        changed
    }

    /// When the next node will be gone.
    pub fn deadline(&self) -> Option<Time> {
        if self.since.is_empty() {
            return None;
        }
        let waiting = self.since.iter();
        let waiting = waiting.filter(|(node, _)| !self.gone.contains(node));
        waiting
            .map(|(_, since)| since.after(self.gone_after_us))
            .min()
    }

    /// Whether the node may be back soon: there is a connection, or was until a moment ago.
    pub fn may_return(&self, node: NodeId, now: Time) -> bool {
        let since = self.since.get(&node);
        since.is_none_or(|since| now.since(*since) < AWAY_US_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_gone_after_a_while_and_back_at_once() {
        let mut away = Away::default();
        let (node, began) = (NodeId(3), Time(1_000));
        away.down(node, began);
        assert_eq!(away.deadline(), Some(began.after(GONE_US)));
        assert!(!away.look(began.after(GONE_US - 1)));
        let later = began.after(GONE_US);
        assert!(away.look(later) && away.gone().contains(&node));
        assert!(!away.look(later), "nothing has changed since");
        assert_eq!(away.deadline(), None);
        away.up(node);
        assert!(away.look(later) && away.gone().is_empty());
        assert!(!away.look(later));
    }
}
