//! Rubato's formula protocol: transactions in the order of timestamps that are drawn when they
//! promise, and updates that stay formulas until they are decided.
//!
//! It is the machine of [`two_phase`] over another [`two_phase::Control`], [`Stamps`]. It differs:
//!
//! ```text
//! read      no lock: the row as of the transaction's stamp, and a note            (rules A1, A8)
//! write     an intent in the lock table; formulas that commute stand side by side (A2)
//! vote      from the shard's clock up to a top, if what was read is what would be read now; until
//!           the end, others wait with their vote for a change of that             (A1, A3)
//! decision  the largest of the votes, one timestamp on all nodes                  (A4)
//! fold      formulas of a row in the order of their timestamps; one above an open promise waits
//!           for it, its client does not; redo does the same                       (A5, A7)
//! ```
//!
//! `docs/protocols/formula.md` has the costs and the deviations from the paper,
//! `docs/rules/formula.md` the rules with the schedules that go wrong without them.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

extern crate alloc;

mod stamps;

pub use stamps::Stamps;
pub use two_phase::Message;

/// The protocol on one shard.
pub type Formula = two_phase::Machine<Stamps>;
