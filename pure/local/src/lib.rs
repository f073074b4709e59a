//! What every protocol does with the rows of one shard, whatever it does on other shards.
//!
//! ```text
//! operation ──> Access: see the row ──> Written: one write per key ──> record ──> install
//!                 │      own write over      │                         of one
//!                 │      the committed one   └─ many: slices into      shard
//!                 └─ Load: many new rows        the journal first
//! Jobs   operations that wait, and whose turn it is
//! Asker  how a job asks for a lock, in protocols that lock
//! ```
//!
//! Modules: [`write_set`] one write per key, in key order; [`written`] what a transaction has
//! written, up to its record, and back to a savepoint; [`seen`] a row under one's own write;
//! [`access`] operations on single rows; [`scan`] and [`visit`] of many;
//! [`load`] many new ones; [`record`] the commit of one shard; [`limits`] their bounds; [`jobs`],
//! [`stop`] and [`ask`] operations that wait;
//! [`txns`] the states of transactions.
//!
//! Invariants:
//! * a transaction has one write per key (`store::Write::then`), and sees it over every version;
//! * a reader of a version that is not durable waits for its position ([`Seen::wait`]), also where
//!   the version lies under an own formula;
//! * a write set gets no more writes once a slice of it was frozen.
//!
//! Row view, write set and records know no locks: whether a transaction may use a row, and which
//! version it reads, is decided by its protocol. This crate decides no transaction and sends
//! nothing.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

extern crate alloc;

pub mod access;
pub mod ask;
pub mod jobs;
pub mod limits;
pub mod load;
pub mod record;
mod savepoints;
pub mod scan;
pub mod seen;
pub mod stop;
pub mod txns;
pub mod visit;
pub mod write_set;
pub mod written;

pub use access::Access;
pub use ask::Asker;
pub use jobs::Jobs;
pub use limits::Limits;
pub use load::{Group, Load, Loading};
pub use scan::Overlay;
pub use seen::{Seen, see, see_own};
pub use stop::Stop;
pub use txns::Txns;
pub use visit::{Halt, Visit, Visitor};
pub use write_set::{Drain, WriteSet};
pub use written::Written;
