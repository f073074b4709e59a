//! The machine that a shard runs: sessions, transactions, protocols, schema changes, and how they
//! talk to one another.
//!
//! [`machine::Shard`] is pure: `step(now, input, journal, effects)` runs to completion and
//! `deadline()` says when it wants to be woken. The server and the simulator host the same machine.
//!
//! ```text
//! client -> wire -> Session --ToTxn--> Txn (coordinator) --Op--> Protocol --Message--> Protocol
//!                         ^---FromTxn-----'
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod away;
pub mod barrier;
mod checkpoint;
mod core;
mod ddl;
mod execute;
mod fill;
pub mod frame;
pub mod input;
mod kind;
pub mod machine;
pub mod message;
mod port;
mod preparing;
mod program;
mod protocols;
pub mod register;
mod sequence;
pub mod session;
mod show;
mod show_rows;
mod snapshot;
mod stages;
mod statistics;
mod txns;
mod used;

pub use crate::core::Memory;
pub use barrier::Barrier;
pub use input::{
    CheckpointPart, ConnId, Effects, Ends, Input, Link, RareEffects, connections_default,
};
pub use machine::{Shard, ShardConfig, ShardRecovered};
pub use message::{LocalMessage, Message, WireMessage};
pub use preparing::{Leftovers, Preparation, PreparationResult};
