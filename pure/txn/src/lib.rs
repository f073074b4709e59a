//! The contract of every transaction protocol; lock queues for those that lock; the counters by
//! which protocols are compared; the history events that checkers read; and what protocols share
//! about messages ([`head`], [`asks`], [`seen`], [`peers`]) and formulas ([`pending`]).
//!
//! A protocol is one object per shard. It plays both sides of a transaction: the coordinator
//! ([`Protocol::begin`], [`Protocol::submit`], [`Protocol::commit`]) and the participant
//! ([`Protocol::on_message`]). It never blocks: an operation that cannot be answered at once is
//! completed later through [`Outbox::complete`].
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

extern crate alloc;

pub mod asks;
pub mod bound;
pub mod bulk;
pub mod columns;
pub mod contract;
mod counted;
pub mod counters;
pub mod escrow;
pub mod frames;
pub mod head;
pub mod history;
pub mod increment;
pub mod installed;
pub mod lock;
pub mod moving;
pub mod op;
pub mod peers;
pub mod pending;
pub mod piles;
pub mod program;
pub mod reason;
pub mod resend;
pub mod rows;
pub mod scan;
pub mod seen;
pub mod snapshot;
pub mod step;
pub mod touched;
pub mod write_list;

pub use asks::{Asked, Asks, Rounds};
pub use bound::ClockBound;
pub use bulk::Bulks;
pub use columns::Columns;
pub use contract::*;
pub use counted::Counted;
pub use counters::Counters;
pub use frames::Frames;
pub use head::Head;
pub use history::Event;
pub use installed::Installed;
pub use lock::{Claim, LockMode, LockTable, Priority};
pub use moving::{HotRow, Moves, MovingRows, Tracked};
pub use peers::{Life, Peers};
pub use pending::Pendings;
pub use piles::{OpenFormula, PendingRow, Piles};
pub use program::{Modified, Program, RowProgram, RowTask};
pub use reason::{AbortReason, DoubtfulWait, InTheWay, Tie};
pub use resend::{Alarm, Alarms, Pauses, Resend};
pub use rows::{NewRow, NewRows};
pub use scan::ScanRun;
pub use seen::Seen;
pub use snapshot::{Contact, Snapshot};
/// The operations on rows that [`Op`] carries.
pub use store::{ColumnFormula, Formula, FormulaOp, Write, computed};
pub use write_list::WriteList;
