//! Commits of large write sets, in slices ([`txn::bulk`]).
//!
//! ```text
//! seal ──slices──> chunks in the journal ──> confirmations, if read locks are elsewhere
//! record ──> Bulks: installed in slices, under the locks ──> locks go in slices
//! ```

use crate::job::Stop;
use crate::txns::Txn;
use crate::view::Drain;
use crate::{Context, Leap};
use alloc::boxed::Box;
use base::{Key, Position, Ts, TxnId};
use txn::bulk::{Frozen, Turn, Wanted, units};

/// A large write set on its way into the journal.
#[derive(Debug)]
pub(crate) struct Freezing {
    pub(crate) frozen: Frozen,
    pub(crate) rest: Drain,
}

impl Txn {
    /// Whether it has written rows.
    #[inline]
    pub(crate) fn has_written(&self) -> bool {
        !self.writes.is_empty() || self.freezing.is_some()
    }

    /// Whether it has written this row.
    pub(crate) fn writes_row(&self, key: &Key) -> bool {
        let frozen = self.freezing.as_ref().is_some_and(|freezing| {
            let taken = freezing.frozen.writes().get(key);
            taken.is_some() || freezing.rest.get(key).is_some()
        });
        frozen || self.writes.get(key).is_some()
    }

    /// Whether it has written one of these rows; it is about to commit.
    pub(crate) fn writes_any(&self, wanted: Wanted<'_>) -> bool {
        let frozen = self.freezing.as_ref();
        frozen.is_some_and(|freezing| wanted.meets(freezing.frozen.writes()))
            || match wanted {
                Wanted::Row(key) => self.writes.get(key).is_some(),
                Wanted::Rows(..) => self.writes.keys().any(|key| wanted.has(key)),
            }
    }

    /// Takes what it has written and will not commit, if that is much.
    pub(crate) fn take_large(&mut self, slice_units: u64) -> Option<(Option<Frozen>, Drain)> {
        if let Some(freezing) = self.freezing.take() {
            let Freezing { frozen, rest } = *freezing;
            return Some((Some(frozen), rest));
        }
        let large = units(self.writes.len(), 0) > slice_units;
        large.then(|| (None, self.writes.drain()))
    }
}

impl Leap {
    /// Whether what `txn` has written goes in slices, and is not all in the journal yet.
    pub(crate) fn is_to_freeze(&self, txn: TxnId) -> bool {
        let state = &self.txns[&txn];
        match &state.freezing {
            Some(freezing) => !freezing.frozen.is_whole(),
            None => self.bulks.takes(state.writes.len(), state.bytes),
        }
    }

    /// Puts a large write set into the journal, a slice a turn, before its transaction commits.
    /// `Err`: there is more to do.
    pub(crate) fn freeze(&mut self, cx: &mut Context<'_>, txn: TxnId) -> Result<(), Stop> {
        if self.is_to_freeze(txn) {
            let state = self.txns.get_mut(&txn).expect("it commits");
            if state.freezing.is_none() {
                let frozen = self.bulks.freeze();
                let rest = state.writes.drain();
                state.freezing = Some(Box::new(Freezing { frozen, rest }));
            }
            let freezing = state.freezing.as_deref_mut().expect("made above");
            let Freezing { frozen, rest } = freezing;
            if cx.journal.is_behind() {
                return Err(Stop::Journal);
            }
            if !frozen.take_slice(cx, txn, &mut self.scratch, &mut || rest.next()) {
                return Err(Stop::Budget);
            }
        }
        let state = &self.txns[&txn];
        if state.freezing.is_some() && self.bulks.is_making_way() {
            return Err(Stop::Budget);
        }
        Ok(())
    }

    /// The record of a commit whose writes stand in chunks; they are installed from here on.
    pub(crate) fn commit_frozen(
        &mut self,
        cx: &mut Context<'_>,
        txn: TxnId,
        commit_ts: Ts,
        freezing: Freezing,
    ) -> Position {
        let (writes, mut chunks) = freezing.frozen.into_parts();
        let position = self.append_chunked(cx, txn, commit_ts, chunks.count);
        chunks.free(cx.journal);
        self.begin_install(cx, txn, commit_ts, position);
        self.bulks.begin(txn, commit_ts, writes, false);
        self.locks.end(txn);
        position
    }

    /// Gives up what a transaction has written and nobody wants.
    pub(crate) fn discard_writes(
        &mut self,
        cx: &mut Context<'_>,
        frozen: Option<Frozen>,
        rest: Drain,
    ) {
        if let Some(frozen) = frozen {
            let (writes, mut chunks) = frozen.into_parts();
            chunks.free(cx.journal);
            self.bulks.discard(writes);
        }
        let (tree, few) = rest.into_parts();
        self.bulks.discard_parts(tree, [few].into_iter());
    }

    /// One slice of what large transactions leave to do.
    pub(crate) fn do_slice(&mut self, cx: &mut Context<'_>) {
        if self.bulks.has_turns() {
            match self.bulks.turn(cx) {
                Turn::Open => {}
                Turn::Journaled(commit_ts, position) => self.installed.insert(commit_ts, position),
                Turn::Installed(txn) => {
                    self.release_locks(txn);
                    self.ask_again_for_recalls(cx, txn);
                    self.wake_snapshots();
                }
            }
        }
        if self.locks.is_leaving() {
            cx.counters.units += self.locks.release_slice() as u64;
        }
    }
}
