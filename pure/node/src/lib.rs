//! The machine of a shard: transactions, protocols, schema changes, the sessions of clients, and
//! the messages between them.
//!
//! [`machine::Shard`] is pure: `step(now, input, journal, effects)` runs to completion, and
//! `deadline()` tells the next wake-up. Server and simulator host the same machine.
//!
//! ```text
//! client -> wire -> Session --ToTxn--> Txn (coordinator) --Op--> Protocol --Message--> Protocol
//!                         ^---FromTxn-----'
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod checkpoint;
mod config;
mod core;
mod ddl;
mod events;
mod execute;
mod fill;
pub mod frame;
pub mod input;
mod kind;
mod locks;
pub mod machine;
pub mod message;
pub mod meter;
pub mod oldest;
mod pace;
mod parcel;
mod port;
mod program;
mod protocols;
pub mod register;
mod sampling;
mod sequence;
mod show;
mod show_rows;
mod snapshot;
mod stages;
mod txns;
mod used;

pub use config::{ShardConfig, ShardRecovered};
pub use expr::Ends;
pub use functions::overtime;
pub use input::{CheckpointPart, Effects, Input, Memory, RareEffects};
pub use machine::Shard;
pub use machine::report::Report;
pub use message::{Cancel, LocalMessage, Message, WireMessage};
pub use meter::Meter;
pub use session::{
    AuditEntry, Barrier, ConnId, Count, Link, Place, Preparation, PreparationResult, Seats,
    SlowStatement, barrier, connections_default, pid_of,
};
pub use stages::{Host, HostStage};
