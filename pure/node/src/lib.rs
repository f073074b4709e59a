//! The machine that a shard runs: sessions, transactions, protocols, schema changes, and how they
//! talk to one another.
//!
//! [`machine::Shard`] is pure: `step(now, input, journal, effects)` runs to completion and `deadline()` says
//! when it wants to be woken. The server and the simulator host the same machine.
//!
//! ```text
//! client -> gateway -> Session --ToTxn--> Txn (coordinator) --Op--> Protocol --Message--> Protocol
//!                         ^---FromTxn-----'
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod client;
pub mod machine;
pub mod message;

pub use client::{ClientMessage, ConnId, Format, Reply, Severity, Tag, TxnStatus};
pub use machine::{Effects, Input};
pub use message::{LocalMessage, Message, WireMessage};
