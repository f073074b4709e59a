//! The end of a transaction: one local record, after the shards of other nodes that hold its read
//! locks have confirmed that they still do.

use crate::message::{Body, Confirm};
use crate::txns::Phase;
use crate::{Cx, Leap};
use alloc::vec::Vec;
use base::{ShardId, Ts, TxnId};
use local::record::commit_few;
use txn::{AbortReason, Asked, OpId, OpReply, OpResult, Outcome, Submitted};

/// A shard that has not confirmed the locks that it gave in the life `life`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unconfirmed {
    pub(crate) shard: ShardId,
    pub(crate) life: u32,
}

impl Asked for Unconfirmed {
    fn receiver(&self) -> ShardId {
        self.shard
    }

    fn life(&self) -> Option<u32> {
        Some(self.life)
    }
}

impl Leap {
    pub(crate) fn commit_txn(&mut self, cx: &mut Cx<'_>, txn: TxnId, id: OpId) -> Submitted {
        let state = self.coord.txns.of(txn);
        if let Some(outcome) = &state.outcome {
            return Submitted::Ready(OpReply::ended(outcome.clone(), state.wait));
        }
        assert!(
            state.is_idle() && state.phase == Phase::Running,
            "{txn} commits after its operations"
        );
        self.commit_asked(cx, txn, id, OpResult::Done)
    }

    /// Commits. An abort is the outcome of the commit, not an error of an operation.
    pub(crate) fn commit_asked(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        id: OpId,
        result: OpResult,
    ) -> Submitted {
        match self.commit_with(cx, txn, id, result) {
            Submitted::Ready(OpReply {
                result: Err(_),
                outcome: Some(outcome),
                wait,
            }) => Submitted::Ready(OpReply::ended(outcome, wait)),
            other @ (Submitted::Ready(_) | Submitted::Pending) => other,
        }
    }

    /// Commits; the answer carries `result`.
    pub(crate) fn commit_with(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        id: OpId,
        result: OpResult,
    ) -> Submitted {
        let state = &self.coord.txns[&txn];
        if let Err(reason) = state.written.check_schema(cx) {
            return self.fail(cx, txn, reason);
        }
        if let Some(owner) = self.is_stranded(txn) {
            return self.fail(cx, txn, AbortReason::ParticipantLost(owner));
        }
        let writes = !state.written.is_empty() || !state.shipped.is_empty();
        if cx.journal.is_full() && writes {
            return self.fail(cx, txn, AbortReason::DiskFull(self.shard));
        }
        // A transaction of one operation that read at one shard read at one moment.
        let once = !writes && state.ops == 1 && state.visited.len() == 1;
        let node = self.shard.node();
        let visited = state.visited.iter();
        let remote = visited.filter(|(shard, _)| shard.node() != node);
        let unconfirmed: Vec<(ShardId, u32)> = remote.copied().collect();
        if (!unconfirmed.is_empty() || self.is_to_freeze(txn))
            && let Some(submitted) = self.seal(cx, txn, id, &result)
        {
            return submitted;
        }
        // Every lock is held: the timestamp lies above all that the transaction depends on.
        let commit_ts = cx.clock.tick(cx.now);
        let state = &self.coord.txns[&txn];
        if once && state.read_at > Ts::ZERO {
            // It commits at its read: the shard may restart before it hears of a later time.
            let commit_ts = state.read_at;
            return Submitted::Ready(self.finish(cx, txn, commit_ts, result));
        }
        if unconfirmed.is_empty() {
            return Submitted::Ready(self.finish(cx, txn, commit_ts, result));
        }
        let phase = Phase::Confirming {
            id,
            commit_ts,
            result,
        };
        self.confirm(cx, txn, commit_ts, phase, unconfirmed)
    }

    /// Asks shards of other nodes whether they still hold the locks that they gave in those lives.
    fn confirm(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        commit_ts: Ts,
        phase: Phase,
        unconfirmed: Vec<(ShardId, u32)>,
    ) -> Submitted {
        let mut asked = unconfirmed.iter().map(|(shard, _)| *shard);
        if let Some(away) = asked.find(|shard| self.is_down(*shard)) {
            return self.fail(cx, txn, AbortReason::Unreachable(away));
        }
        let state = self.coord.txns.of(txn);
        state.cost.messages_on_path += 2 * unconfirmed.len() as u32;
        state.cost.delays += 2;
        state.phase = phase;
        let coordinator = &mut self.coord;
        coordinator.begin_confirm(txn, commit_ts, &unconfirmed, cx.now);
        for (shard, _) in unconfirmed {
            self.send_confirm(cx, txn, shard);
        }
        Submitted::Pending
    }

    /// Asks a shard whether it still holds the locks of a transaction.
    pub(crate) fn send_confirm(&mut self, cx: &mut Cx<'_>, txn: TxnId, shard: ShardId) {
        if let Some(asked) = self.coord.confirms.get((txn, shard)) {
            let expected = asked.life;
            let confirm = Confirm { txn, expected };
            self.say(cx, shard, Body::Confirm(confirm));
        }
    }

    pub(crate) fn on_confirmed(&mut self, cx: &mut Cx<'_>, from: ShardId, txn: TxnId, holds: bool) {
        let Some(state) = self.coord.txns.get(&txn) else {
            return;
        };
        let Phase::Confirming {
            id,
            commit_ts,
            result,
        } = &state.phase
        else {
            return;
        };
        if !holds {
            let asked = self.coord.confirms.get((txn, from));
            // The shard is in that life, but has not heard from this one for a while.
            let present = self.peers.life(from.node());
            let reason = match asked.is_some_and(|asked| asked.life == present) {
                true => AbortReason::Unreachable(from),
                false => AbortReason::ParticipantLost(from),
            };
            self.abort_txn(cx, txn, reason);
            return;
        }
        let (id, commit_ts, result) = (*id, *commit_ts, result.clone());
        if self.coord.confirmed(txn, from) {
            let reply = self.finish(cx, txn, commit_ts, result);
            cx.out.complete(txn, id, reply);
        }
    }

    /// Journals and installs the writes. From here on the transaction is committed.
    fn finish(&mut self, cx: &mut Cx<'_>, txn: TxnId, commit_ts: Ts, result: OpResult) -> OpReply {
        let shipments = self.shipments(txn);
        let state = self.coord.txns.of(txn);
        let (mut wait, frozen) = (state.wait, state.written.is_freezing());
        if !state.written.is_empty() || !shipments.is_empty() {
            let held = (!shipments.is_empty()).then(|| cx.journal.hold());
            if !shipments.is_empty() {
                self.append_shipped(cx, txn, &shipments);
            }
            let (installed, bulks) = (&mut self.installed, &mut self.bulks);
            let (state, scratch) = (self.coord.txns.of(txn), &mut self.scratch);
            let written = &mut state.written;
            let position = written.commit(cx, installed, bulks, scratch, txn, commit_ts);
            // Without writes here, owners get all that the transaction has changed.
            let position =
                position.unwrap_or_else(|| commit_few(cx, installed, scratch, txn, commit_ts, &[]));
            wait = wait.max(position);
            state.cost.forced_writes += 1;
            state.wait = wait;
            if frozen {
                self.locks.end(txn);
            }
            if let Some(held) = held {
                cx.journal.free(held);
            }
            if !shipments.is_empty() {
                self.send_off(cx, txn, commit_ts, position, shipments);
            }
        }
        let outcome = Outcome::Committed { commit_ts };
        self.end_txn(cx, txn, outcome.clone());
        OpReply {
            result: Ok(result),
            outcome: Some(outcome),
            wait,
        }
    }

    /// Rolls back and answers outstanding operations. Does nothing after the end.
    pub(crate) fn abort_txn(&mut self, cx: &mut Cx<'_>, txn: TxnId, reason: AbortReason) {
        let open = self.coord.is_open(txn);
        if open && self.is_entrusted(txn) {
            // Another shard may run the transaction: its outcome is unknown.
            self.lose_errand(cx, txn);
        } else if open {
            self.end_txn(cx, txn, Outcome::Aborted(reason));
        }
    }

    /// Rolls back, and answers with the reason in place of a result.
    pub(crate) fn fail(&mut self, cx: &mut Cx<'_>, txn: TxnId, reason: AbortReason) -> Submitted {
        self.abort_txn(cx, txn, reason.clone());
        Submitted::Ready(OpReply::failed(reason))
    }

    /// Sets the outcome, frees the locks on all shards, and answers all outstanding operations.
    pub(crate) fn end_txn(&mut self, cx: &mut Cx<'_>, txn: TxnId, outcome: Outcome) {
        let here = self.shard.node();
        let state = self.coord.txns.of(txn);
        assert!(state.outcome.is_none(), "{txn} ends once");
        state.outcome = Some(outcome.clone());
        state.cost = state.cost_so_far(here);
        self.give_up_ships(cx, txn, &outcome);
        let state = self.coord.txns.of(txn);
        let phase = core::mem::replace(&mut state.phase, Phase::Ended);
        let local = core::mem::take(&mut state.local);
        let reads = core::mem::take(&mut state.reads);
        let told = self.take_visited(txn);
        let state = self.coord.txns.of(txn);
        state.written.discard(cx.journal, &mut self.bulks);
        let node = self.shard.node();
        let remote = told.iter().filter(|shard| shard.node() != node).count() as u32;
        state.cost.messages_off_path += remote;
        state.cost.messages_in_node += told.len() as u32 - remote;
        let cost = state.cost;
        let wait = state.wait;
        // An errand of another shard is counted there.
        if state.guest.is_none() {
            cx.note_end(txn, &outcome, &cost);
        }
        for shard in told {
            // It also advances the shard's clock: later commits there lie above this one.
            self.say(cx, shard, Body::Release(txn));
        }
        self.release_locks(txn);
        self.ask_again_for_recalls(cx, txn);
        if self.coord.end_confirm(txn) {
            self.wake_snapshots();
        }
        if let Phase::Confirming { id, .. } = phase
            && let Outcome::Aborted(_) = outcome
        {
            cx.out
                .complete(txn, id, OpReply::ended(outcome.clone(), wait));
        }
        let commits = matches!(phase, Phase::Sealing { .. });
        let Outcome::Aborted(reason) = outcome else {
            assert!(
                local.is_empty() && reads.is_empty(),
                "operations end before the commit"
            );
            return;
        };
        for (id, job) in local {
            self.jobs.remove(job);
            let reply = match commits {
                true => OpReply::ended(Outcome::Aborted(reason.clone()), wait),
                false => OpReply::failed(reason.clone()),
            };
            cx.out.complete(txn, id, reply);
        }
        self.fail_reads(cx, reads, &reason);
    }

    /// Shards that may hold locks for a transaction that ends. Its scans there need no more rows.
    fn take_visited(&mut self, txn: TxnId) -> Vec<ShardId> {
        let own = self.shard;
        let state = self.coord.txns.of(txn);
        let mut told: Vec<ShardId> = core::mem::take(&mut state.asked);
        told.extend(state.visited.iter().map(|(shard, _)| *shard));
        told.retain(|shard| *shard != own);
        told.sort_unstable();
        told.dedup();
        if !told.is_empty() {
            self.drop_fetches(txn);
        }
        told
    }

    /// Drops fetches from this shard for scans of the transaction on other shards.
    fn drop_fetches(&mut self, txn: TxnId) {
        for id in self.guests.jobs(txn) {
            self.drop_job(id);
        }
    }

    fn fail_reads(&mut self, cx: &mut Cx<'_>, reads: Vec<u64>, reason: &AbortReason) {
        for number in reads {
            if let Some(reading) = self.coord.readings.end(number) {
                let reply = OpReply::failed(reason.clone());
                cx.out.complete(reading.txn, reading.id, reply);
            }
        }
    }
}
