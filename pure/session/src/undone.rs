//! Why a schema change is refused or undone.

use base::{NodeId, ShardId, SqlError, SqlState};
use std::collections::BTreeSet;
use txn::AbortReason;

/// A node was lost under the work of a change over rows.
pub fn node_lost() -> SqlError {
    let text = "a node was lost while the schema change worked over existing rows";
    SqlError::new(SqlState::OBJECT_NOT_READY, text)
        .detail("The schema change has been undone.")
        .hint("Run the statement again.")
}

/// These shards cannot be reached.
pub fn needs_all_nodes(down: &[ShardId]) -> SqlError {
    let names: BTreeSet<u16> = down.iter().map(|shard| shard.node().0).collect();
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let text = match &names[..] {
        [one] => format!("node {one} cannot be reached"),
        all => format!("nodes {} cannot be reached", all.join(", ")),
    };
    SqlError::new(SqlState::OBJECT_NOT_READY, text)
        .detail("A schema change needs every node of the cluster. Nothing was changed.")
        .hint("Run the statement again when all nodes are back.")
}

/// The node whose absence rolled a batch back; `None`: another reason did.
pub fn node_away(reason: &AbortReason) -> Option<NodeId> {
    if let AbortReason::Unreachable(at) | AbortReason::RowCutOff { at, .. } = reason {
        return Some(at.node());
    }
    let AbortReason::InDoubt(wait) = reason else {
        return None;
    };
    Some(wait.node)
}

/// Some nodes do not reach this one.
pub fn rows_away(node: NodeId) -> SqlError {
    let text = format!("node {} cannot be reached by all others", node.0);
    SqlError::new(SqlState::OBJECT_NOT_READY, text)
        .detail("The schema change needs rows of that node. The change has been undone.")
        .hint("Run the statement again when all nodes reach one another.")
}

/// Two nodes do not reach each other.
pub fn parted(one: NodeId, other: NodeId) -> SqlError {
    let text = format!("node {} cannot reach node {}", one.0, other.0);
    SqlError::new(SqlState::OBJECT_NOT_READY, text)
        .detail("The change needs nodes that reach one another. The change has been undone.")
        .hint("Run the statement again when all nodes reach one another.")
}

/// Whether a retry at once may help. It does not after a long wait for a row in doubt, nor for a
/// node that is full.
pub fn may_pass(reason: &AbortReason) -> bool {
    !matches!(
        reason,
        AbortReason::DiskFull(_) | AbortReason::MemoryFull(_) | AbortReason::InDoubt(_)
    )
}
