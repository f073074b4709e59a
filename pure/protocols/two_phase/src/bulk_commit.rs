//! Commits of large write sets, in slices ([`txn::bulk`]).
//!
//! ```text
//! job that votes or commits ──slices──> chunks in the journal ──> vote, or the record that decides
//! decided ──> Bulks: installed in slices, under the locks ──> locks go in slices
//! ```
//!
//! A participant of one node with its coordinator votes with the number of its chunks instead of
//! its writes: the coordinator's record names them, they stand in the same journal.

use crate::job::{Job, Stop};
use crate::part::Promise;
use crate::{Control, Cx, Machine};
use base::TxnId;
use local::record::install_slice;

impl<C: Control> Machine<C> {
    /// Whether what `txn` has written here goes in slices.
    pub(crate) fn is_bulk(&self, txn: TxnId) -> bool {
        let part = self.parts.get(&txn);
        part.is_some_and(|part| part.written.is_large(&self.bulks))
    }

    pub(crate) fn is_bulk_promise(promise: &Promise) -> bool {
        promise.chunks.count > 0 || promise.redo.slice_count() > 1
    }

    /// Whether the outcome of a promise cannot be taken now, because a checkpoint goes first.
    pub(crate) fn holds_back(&self, txn: TxnId) -> bool {
        let promise = self.promises.get(&txn).filter(|promise| promise.durable);
        self.bulks.is_making_way() && promise.is_some_and(|promise| Self::is_bulk_promise(promise))
    }

    /// Puts a large write set into the journal, a slice a turn, before its transaction votes or
    /// commits. `Err`: there is more to do.
    pub(crate) fn freeze(&mut self, cx: &mut Cx<'_>, job: &Job) -> Result<(), Stop> {
        let txn = job.txn;
        if !self.is_bulk(txn) {
            return Ok(());
        }
        if !self.parts[&txn].written.is_freezing() {
            self.may_write(cx, txn)?;
        }
        let part = self.parts.of(txn);
        let scratch = &mut self.scratch;
        part.written.freeze(cx, txn, &self.bulks, scratch)?;
        if job.decides() && self.bulks.is_making_way() {
            return Err(Stop::Budget);
        }
        Ok(())
    }

    /// Does one slice of the installing and unlocking that large transactions leave.
    pub(crate) fn do_slice(&mut self, cx: &mut Cx<'_>) {
        if let Some(txn) = install_slice(cx, &mut self.installed, &mut self.bulks) {
            self.locks.release(txn);
            self.wake_snapshots();
        }
        if self.locks.is_leaving() {
            cx.counters.units += self.locks.release_slice() as u64;
        }
    }
}
