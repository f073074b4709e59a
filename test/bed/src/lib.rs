//! The test bed of transaction protocols: a cluster in memory, for any [`txn::Protocol`].
//!
//! | part | what it is |
//! |---|---|
//! | [`World`] | shards, virtual time, a journal per node, messages in the tester's hands |
//! | [`Disk`] | a journal with a durable position; a crash loses what is behind it |
//! | [`programs`] | row programs over rows of one column |
//! | [`Script`] | the interpreter of golden scripts |
//! | [`random`] | random clients under loss, delay, cuts and crashes, judged by replay |
//!
//! A protocol implements [`Subject`] in its tests and gets all of that. Nothing here knows a
//! protocol: what one of them alone needs lies in its own tests.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod checkpoint;
mod disk;
mod outage;
pub mod programs;
pub mod random;
mod restart;
mod script;
mod subject;
mod world;

pub use disk::Disk;
pub use script::Script;
pub use subject::Subject;
pub use world::{Flight, Node, Shard, World, options};

use base::{IndexId, Key, NodeId, ShardId, Slot};

/// The key space of most rows.
pub const TABLE: IndexId = IndexId(1);
/// A second one.
pub const TRAIL: IndexId = IndexId(2);
/// Slots of the rows of [`key`] are below it.
pub const SLOTS: u16 = 7;

/// A row whose slot follows from the first byte of its name.
pub fn key(index: IndexId, name: &str) -> Key {
    let slot = Slot(u16::from(name.as_bytes()[0]) % SLOTS);
    Key::new(index, slot, name.as_bytes().to_vec())
}

/// A row of [`TABLE`] whose slot is the last digit of its name: with three shards `a0`, `a1` and
/// `a2` have different homes.
pub fn placed(name: &str) -> Key {
    let digit = name.as_bytes()[name.len() - 1] - b'0';
    Key::new(TABLE, Slot(u16::from(digit)), name.as_bytes().to_vec())
}

/// The first shard of a node.
pub fn shard(node: u16) -> ShardId {
    ShardId::new(NodeId(node), 0)
}
