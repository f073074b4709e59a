//! Votes on the catalog that follows a closed one (`node::register`).

use alloc::vec::Vec;
use base::NodeId;
use serde::{Deserialize, Serialize};

/// Number of an attempt to settle the successor of a catalog; unique among attempts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Ballot {
    /// 0: of the change itself, by the life of node 1 that runs the change. Other attempts have the
    /// incarnation of their node in the upper half.
    pub round: u64,
    /// Node of the attempt.
    pub node: NodeId,
}

/// A catalog that a node has voted for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Accepted {
    /// Attempt in which the node has voted.
    pub ballot: Ballot,
    /// Encoded `catalog::Catalog`.
    #[serde(with = "store::bytes")]
    pub catalog: Vec<u8>,
}

/// The promise and the vote of one node about the successor of one version of the catalog.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Vote {
    /// Version of that catalog.
    pub base: u64,
    /// Largest ballot promised: smaller ones are refused.
    pub promised: Ballot,
    /// The node's vote in the largest ballot in which it has voted; `None`: in no ballot.
    pub accepted: Option<Accepted>,
}
