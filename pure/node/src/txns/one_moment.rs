//! Statements that are transactions of their own and read one moment without locks
//! (docs/adr/0015-reads-of-one-statement.md).

use super::{INTERNAL, Txns};
use crate::core::Core;
use base::{Planted, Ts, is_planted};
use plan::Reads;
use session::message::{RunRequest, TxnHandle};
use txn::{AbortReason, JournalPort, OpError};

/// Whether the requested statement reads a snapshot, at any level; `begins`: its transaction begins
/// with it.
///
/// It does if it is all of its transaction, its plan only reads ranges, and one timestamp is one
/// moment for it: every commit that was answered before lies at or below, and no commit at or below
/// began after one above was answered.
pub(super) fn reads(core: &Core, begins: bool, request: &RunRequest) -> bool {
    let alone = || request.autocommit || is_planted(Planted::OneMomentInBlock);
    request.plan.reads == Reads::Ranges && begins && alone() && orders_answers(core, request)
}

/// Whether timestamps of commits follow the order in which clients see them: one clock draws them
/// all, or what begins on the node draws above all that the node has answered. The latter does not
/// help a long scan where rows move, because they move with few of their versions.
fn orders_answers(core: &Core, request: &RunRequest) -> bool {
    if core.catalog.placement.shards().len() == 1 {
        return true;
    }
    core.is_one_node_of_many()
        && core.journal.answered().is_some()
        && !request.database.protocol.moves_rows()
}

impl Txns {
    /// The error of a statement whose snapshot misses a version at or below `at`, and which cannot
    /// be executed again. The next attempt of the node's own work reads above that version.
    pub(super) fn missed(&self, handle: TxnHandle, at: Ts) -> OpError {
        if handle.conn == INTERNAL {
            self.core.borrow_mut().clock.merge(at);
        }
        OpError::Aborted(AbortReason::SnapshotMisses(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{NodeId, Position, ShardId, Time};
    use catalog::Catalog;
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::Arc;
    use store::Store;

    /// The journal of a node, as one of its shards has it.
    struct Port(Rc<Cell<Ts>>);

    impl JournalPort for Port {
        fn append(&mut self, _: &[u8]) -> Position {
            Position(1)
        }
        fn durable(&self) -> Position {
            Position(1)
        }
        fn note_answered(&mut self, ts: Ts) {
            self.0.set(self.0.get().max(ts));
        }
        fn answered(&self) -> Option<Ts> {
            Some(self.0.get())
        }
    }

    #[test]
    fn what_begins_draws_above_what_a_shard_beside_has_answered() {
        for (nodes, follows) in [(1, true), (2, false)] {
            let answered = Rc::new(Cell::new(Ts::ZERO));
            let shard = |index| {
                let config = crate::ShardConfig {
                    shard: ShardId::new(NodeId(1), index),
                    nodes: (1..=nodes).map(|n| (NodeId(n), String::new())).collect(),
                    shards_per_node: 2,
                    incarnation: 1,
                    cluster: 1,
                    seed: 1,
                    stopwatch: || 0,
                    barrier: session::barrier::let_through,
                };
                let port = Box::new(Port(answered.clone()));
                Core::new(
                    config,
                    port,
                    Ts(1),
                    Store::new(),
                    Arc::new(Catalog::default()),
                )
            };
            let (mut ahead, mut behind) = (shard(0), shard(1));
            // Its clock was in the future, as before the wall clock was set back.
            let seen = ahead.clock.tick(Time(2_000_000_000_000_000));
            ahead.note_answered();
            behind.follow_answered();
            let drawn = behind.clock.tick(Time(1_900_000_000_000_000));
            assert_eq!(drawn > seen, follows, "{nodes} nodes");
        }
    }
}
