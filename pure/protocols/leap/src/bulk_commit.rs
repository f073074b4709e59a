//! The record of a commit, and commits of large write sets, in slices ([`txn::bulk`]).
//!
//! ```text
//! seal ──slices──> chunks in the journal ──> confirmations, if read locks are elsewhere
//! record ──> Bulks: installed in slices, under the locks ──> locks go in slices
//! ```

use crate::job::Stop;
use crate::{Cx, Leap};
use base::{Key, Position, Ts, TxnId};
use journal::Record;
use local::record::{commit_few, install_slice};
use store::Write;

impl Leap {
    pub(crate) fn append_record(&mut self, cx: &mut Cx<'_>, record: &Record) -> Position {
        self.recorded = cx.append(&mut self.scratch, |out| record.encode(out));
        self.recorded
    }

    /// The record and the rows of a small commit.
    pub(crate) fn commit_writes(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        commit_ts: Ts,
        writes: &[(Key, Write)],
    ) -> Position {
        let (installed, scratch) = (&mut self.installed, &mut self.scratch);
        commit_few(cx, installed, scratch, txn, commit_ts, writes)
    }

    /// Whether what `txn` has written goes in slices, and is not all in the journal yet.
    pub(crate) fn is_to_freeze(&self, txn: TxnId) -> bool {
        self.coord.txns[&txn].written.is_to_freeze(&self.bulks)
    }

    /// Puts a large write set into the journal, a slice a turn, before its transaction commits.
    /// `Err`: there is more to do.
    pub(crate) fn freeze(&mut self, cx: &mut Cx<'_>, txn: TxnId) -> Result<(), Stop> {
        let written = &mut self.coord.txns.get_mut(&txn).expect("it commits").written;
        if written.is_to_freeze(&self.bulks) {
            written.freeze(cx, txn, &self.bulks, &mut self.scratch)?;
        }
        if written.is_freezing() && self.bulks.is_making_way() {
            return Err(Stop::Budget);
        }
        Ok(())
    }

    /// Does one slice of the work that large transactions have left.
    pub(crate) fn do_slice(&mut self, cx: &mut Cx<'_>) {
        if let Some(txn) = install_slice(cx, &mut self.installed, &mut self.bulks) {
            self.release_locks(txn);
            self.ask_again_for_recalls(cx, txn);
            self.wake_snapshots();
        }
        if self.locks.is_leaving() {
            cx.counters.units += self.locks.release_slice() as u64;
        }
    }
}
