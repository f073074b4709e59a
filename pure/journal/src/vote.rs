//! Votes on the catalog that follows one under which something is closed (`node::register`).

use alloc::vec::Vec;
use base::NodeId;
use serde::{Deserialize, Serialize};

/// Number of an attempt to settle what follows a catalog. No two attempts have the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Ballot {
    /// 0: of the change itself, by the life of node 1 that runs it. Others begin with the
    /// incarnation of their node, in the upper half.
    pub round: u64,
    /// Whose attempt it is.
    pub node: NodeId,
}

/// A catalog that a node has voted for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Accepted {
    /// In which attempt.
    pub ballot: Ballot,
    /// Encoded `catalog::Catalog`.
    #[serde(with = "store::bytes")]
    pub catalog: Vec<u8>,
}

/// What one node has promised and accepted about the successor of one version of the catalog.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Vote {
    /// That version.
    pub base: u64,
    /// Smaller ballots are refused.
    pub promised: Ballot,
    /// The vote in the largest ballot in which the node has voted.
    pub accepted: Option<Accepted>,
}
