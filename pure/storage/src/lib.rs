//! The files of a node: how they are read at start, how the journal grows, how a checkpoint comes
//! into use. It decides; a [`Disk`] acts. The server's disk is a directory, the simulator's is
//! memory with faults, and both run this code.
//!
//! ```text
//! MANIFEST                 which checkpoint is current
//! checkpoint-NUMBER-SHARD  rows of one shard
//! journal-POSITION         segments
//! SYNCED                   how far the journal was durable a moment ago
//! PEERS                    which lives of other nodes were met
//! ```
//!
//! * [`recover::open`] reads the directory to its end and makes the start of this life durable;
//! * [`JournalBuffer`] is what shards append to, [`JournalWriter`] what a flush writes;
//! * [`Checkpointer`] takes what shards say of their checkpoints, and replaces the manifest.
//!
//! Formats are the business of `journal`; this crate knows names, order and syncs.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod acquaintance;
pub mod buffer;
pub mod checkpointer;
pub mod disk;
pub mod error;
pub mod mark;
pub mod presence;
pub mod recover;
pub mod writer;

pub use acquaintance::{Acquaintances, Introduction, Stranger};
pub use buffer::JournalBuffer;
pub use checkpointer::{Checkpointer, Completion, Ended};
pub use disk::{Disk, DiskError, DiskFault};
pub use error::StorageError;
pub use mark::MarkWriter;
pub use presence::Missing;
pub use recover::{Identity, Progress, Recovered, open};
pub use writer::{JournalLimits, JournalWriter};
