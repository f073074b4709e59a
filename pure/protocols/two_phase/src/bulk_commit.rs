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
use crate::outcome::Committed;
use crate::part::{Freezing, Part, Promise};
use crate::records::Gathered;
use crate::{Context, TwoPhase};
use alloc::boxed::Box;
use base::{Position, TxnId};
use txn::WriteList;
use txn::bulk::{Chunks, Turn};

impl TwoPhase {
    /// Whether what `txn` has written here goes in slices.
    pub(crate) fn is_bulk(&self, txn: TxnId) -> bool {
        self.parts.get(&txn).is_some_and(|part| {
            part.freezing.is_some() || self.bulks.takes(part.writes.len(), part.bytes)
        })
    }

    pub(crate) fn is_bulk_promise(&self, promise: &Promise) -> bool {
        promise.chunks.count > 0 || self.bulks.takes(promise.redo.len(), 0)
    }

    /// Whether the outcome of a promise cannot be taken now, because a checkpoint goes first.
    pub(crate) fn holds_back(&self, txn: TxnId) -> bool {
        let promise = self.promises.get(&txn).filter(|promise| promise.durable);
        self.bulks.is_making_way() && promise.is_some_and(|promise| self.is_bulk_promise(promise))
    }

    /// Puts a large write set into the journal, a slice a turn, before its transaction votes or
    /// commits. `Err`: there is more to do.
    pub(crate) fn freeze(&mut self, cx: &mut Context<'_>, job: &Job) -> Result<(), Stop> {
        let txn = job.txn;
        if !self.is_bulk(txn) {
            return Ok(());
        }
        let part = self.parts.get_mut(&txn).expect("just looked at");
        if part.freezing.is_none() {
            self.may_write(cx, txn).map_err(Stop::aborted)?;
            let part = self.parts.get_mut(&txn).expect("just looked at");
            let frozen = self.bulks.freeze();
            let rest = part.writes.drain();
            part.freezing = Some(Box::new(Freezing { frozen, rest }));
        }
        let part = self.parts.get_mut(&txn).expect("just looked at");
        let freezing = part.freezing.as_deref_mut().expect("made above");
        let Freezing { frozen, rest } = freezing;
        if !frozen.is_whole() && cx.journal.is_behind() {
            return Err(Stop::Journal);
        }
        let whole =
            frozen.is_whole() || frozen.take_slice(cx, txn, &mut self.scratch, &mut || rest.next());
        if !whole || (job.decides() && self.bulks.is_making_way()) {
            return Err(Stop::Budget);
        }
        Ok(())
    }

    /// As [`TwoPhase::commit_writes`] for writes that stand in chunks.
    pub(crate) fn commit_bulk(
        &mut self,
        cx: &mut Context<'_>,
        txn: TxnId,
        redo: WriteList,
        mut chunks: Chunks,
        read: Position,
    ) -> Committed {
        let commit_ts = cx.clock.tick(cx.now);
        let gathered = Gathered::one(self.shard, &[], chunks.count);
        let position = Self::append_commit(&mut self.scratch, cx, txn, commit_ts, &gathered);
        chunks.free(cx.journal);
        self.begin_install(cx, txn, commit_ts, position);
        self.bulks.begin(txn, commit_ts, redo, false);
        self.locks.end(txn);
        Committed {
            commit_ts,
            forced: true,
            position: position.max(read),
        }
    }

    /// Gives up what a transaction has written and nobody wants.
    pub(crate) fn discard_writes(&mut self, cx: &mut Context<'_>, part: &mut Part) {
        let rest = match part.freezing.take() {
            Some(freezing) => {
                let (writes, mut chunks) = freezing.frozen.into_parts();
                chunks.free(cx.journal);
                self.bulks.discard(writes);
                freezing.rest
            }
            None if self.bulks.takes(part.writes.len(), 0) => part.writes.drain(),
            None => return,
        };
        let (tree, runs) = rest.into_parts();
        self.bulks.discard_parts(tree, runs);
    }

    /// One slice of what large transactions leave to do.
    pub(crate) fn do_slice(&mut self, cx: &mut Context<'_>) {
        if self.bulks.has_turns() {
            match self.bulks.turn(cx) {
                Turn::Open => {}
                Turn::Journaled(commit_ts, position) => self.installed.insert(commit_ts, position),
                Turn::Installed(txn) => {
                    self.locks.release(txn);
                    self.wake_snapshots();
                }
            }
        }
        if self.locks.is_leaving() {
            cx.counters.units += self.locks.release_slice() as u64;
        }
    }
}
