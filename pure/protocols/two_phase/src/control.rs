//! How transactions that meet at a row are ordered: by locks alone, or by timestamps as well.
//!
//! Under locks every read keeps a lock until the end, and an increment excludes other commits of
//! its row from its promise on. Under timestamps a read only leaves a note; what was read is judged
//! when the transaction promises or commits, and from then on *guarded*: other transactions wait
//! with their vote or commit of a change until the reader's outcome is known. Promised increments
//! stand side by side.
//!
//! The machine asks, promises, commits and recovers in the same way under both. A control keeps the
//! notes and guards, and says whether there are such.

use crate::judge::Rows;
use base::{IndexId, Key, KeyRange, Slot, Ts, TxnId};
use core::fmt;
use txn::Columns;
use txn::increment::Folding;
use txn::lock::Priority;

/// The kinds of messages, by which work is counted and weighed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Kind {
    Read,
    Request,
    Prepare,
    Commit,
    Reply,
    Decide,
    Ack,
    Gather,
    Poll,
    Other,
}

/// A range of one index that a scan has read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeRead {
    /// Index.
    pub index: IndexId,
    /// Slot; `None`: all slots of the shard.
    pub slot: Option<Slot>,
    /// Keys inside each slot.
    pub range: KeyRange,
}

impl RangeRead {
    /// Whether the row lies in the range.
    #[must_use]
    pub fn has(&self, key: &Key) -> bool {
        key.index == self.index
            && self.slot.is_none_or(|slot| slot == key.slot)
            && self.range.contains(&key.bytes)
    }
}

/// Who guards what it has read: a voter, or a coordinator that has entrusted its commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guard {
    /// The transaction.
    pub by: Priority,
    /// No operation of it may still be waiting for a lock or a promise. Nobody waits for one that
    /// is not settled: it may wait for those who would.
    pub settled: bool,
}

/// See the module.
pub trait Control: Default + fmt::Debug {
    /// Whether reads are noted and judged, instead of locked.
    const JUDGES: bool;

    /// The order in which formulas of a row are folded.
    const FOLDING: Folding;

    /// Name of a kind of message, as `protocol.kind`.
    fn name(kind: Kind) -> &'static str;

    /// `txn` has read these columns of a row, as of `at`.
    fn note_row(&mut self, txn: TxnId, key: &Key, columns: Columns, at: Ts);

    /// `txn` has read these columns of all rows of a range, as of `at`.
    fn note_range(&mut self, txn: TxnId, range: RangeRead, columns: Columns, at: Ts);

    /// Whether there are notes of `txn`.
    fn has_read(&self, txn: TxnId) -> bool;

    /// A row that `txn` has read and that others have changed since, or may have. `None`: what the
    /// transaction has read is what it would read now.
    fn judge(&self, txn: TxnId, rows: &Rows<'_>) -> Option<Key>;

    /// Until [`Control::forget`], what the transaction has read is guarded.
    fn guard(&mut self, guard: Guard);

    /// Calls `f` with the guards of other transactions over these columns of a row.
    /// [`Columns::ALL`]: over whether there is such a row, too.
    fn each_guard(&self, txn: TxnId, key: &Key, columns: Columns, f: &mut dyn FnMut(Guard));

    /// Calls `f` with the guards of all other transactions.
    fn each_voter(&self, txn: TxnId, f: &mut dyn FnMut(Guard));

    /// Whether there are guards.
    fn has_guards(&self) -> bool;

    /// `txn` is over here, and the clock of the shard is past it if it has committed. Returns
    /// whether it had guards.
    fn forget(&mut self, txn: TxnId) -> bool;

    /// Forgets what `txn` has read below `at`.
    fn forget_below(&mut self, txn: TxnId, at: Ts);

    /// Whether there are no notes and no guards.
    fn is_empty(&self) -> bool;
}

/// Every read takes a lock, and keeps it until the end (rule R7).
#[derive(Debug, Default)]
pub struct Locks;

impl Control for Locks {
    const JUDGES: bool = false;
    const FOLDING: Folding = Folding::AsTheyCome;

    fn name(kind: Kind) -> &'static str {
        match kind {
            Kind::Read => "two_phase.read",
            Kind::Request => "two_phase.request",
            Kind::Prepare => "two_phase.prepare",
            Kind::Commit => "two_phase.commit",
            Kind::Reply => "two_phase.reply",
            Kind::Decide => "two_phase.decide",
            Kind::Ack => "two_phase.ack",
            Kind::Gather => "two_phase.gather",
            Kind::Poll => "two_phase.poll",
            Kind::Other => "two_phase.other",
        }
    }

    fn note_row(&mut self, _: TxnId, _: &Key, _: Columns, _: Ts) {}
    fn note_range(&mut self, _: TxnId, _: RangeRead, _: Columns, _: Ts) {}
    fn has_read(&self, _: TxnId) -> bool {
        false
    }
    fn judge(&self, _: TxnId, _: &Rows<'_>) -> Option<Key> {
        None
    }
    fn guard(&mut self, _: Guard) {}
    fn each_guard(&self, _: TxnId, _: &Key, _: Columns, _: &mut dyn FnMut(Guard)) {}
    fn each_voter(&self, _: TxnId, _: &mut dyn FnMut(Guard)) {}
    fn has_guards(&self) -> bool {
        false
    }
    fn forget(&mut self, _: TxnId) -> bool {
        false
    }
    fn forget_below(&mut self, _txn: TxnId, _at: Ts) {}

    fn is_empty(&self) -> bool {
        true
    }
}
