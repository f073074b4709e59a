//! The rows of one shard: ordered, in memory, with the older versions that readers need.
//!
//! ```text
//! Store ── IndexId ── Slot ── Tree ── leaves of at most 64 rows
//!                                       heads   first 8 key bytes, big-endian  (searched first)
//!                                       stamps  commit timestamp of the newest version
//!                                       spans   where key and newest value lie in the bytes
//!                                       bytes   keys longer than 8 bytes, and values
//!                                       chains  older versions of the rows that have any
//! ```
//!
//! Invariants, all checked by [`Store::validate`]:
//! * keys of a tree ascend strictly; separators divide the children of an inner page;
//! * the versions of a row descend strictly in commit timestamp from the newest to the oldest;
//! * a row with older versions, or whose newest version is a tombstone, stands in the queue that
//!   [`Store::collect`] works on;
//! * the counters equal a recount.
//!
//! It knows bytes, not schemas, except that a [`Formula`] reads and writes columns of a row. It is
//! not a transaction manager: which transaction may read or write a row is decided above, and a
//! write that contradicts the store (an insert of a present key) is a bug and stops the process.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub use base::bytes;
mod checkpoint;
pub mod computed;
mod digest;
mod expiry;
pub mod formula;
mod horizons;
mod moving;
mod newer;
pub mod range;
mod redo;
mod store;
mod tree;
pub mod write;

pub use checkpoint::{CheckpointCursor, CheckpointRow};
pub use formula::{ColumnFormula, Formula, FormulaClass, FormulaOp};
pub use horizons::{ByDatabase, Horizons};
pub use redo::LATE_MAX;
pub use store::{Counts, KeyVisitor, RowVisitor, Store, VersionRef, Window};
pub use write::Write;
