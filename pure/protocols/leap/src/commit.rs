//! The end of a transaction: one local record, after the shards of other nodes that hold its read
//! locks have confirmed that they still do.

use crate::message::{Body, Confirm};
use crate::txns::Phase;
use crate::{Context, Leap};
use alloc::vec::Vec;
use base::{NodeId, ShardId, Ts, TxnId};
use journal::Writes;
use txn::{AbortReason, Asked, OpId, OpReply, OpResult, Outcome, Submitted};

/// A shard that has not confirmed the locks that it gave in one of its lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unconfirmed {
    shard: ShardId,
    life: u32,
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
    pub(crate) fn commit_txn(
        &mut self,
        cx: &mut Context<'_>,
        txn: TxnId,
        id: OpId,
    ) -> Submitted<OpReply> {
        let state = self
            .txns
            .get(&txn)
            .expect("commit comes between begin and forget");
        if let Some(outcome) = &state.outcome {
            return Submitted::Ready(OpReply::ended(outcome.clone(), state.wait));
        }
        assert!(
            state.is_idle() && state.phase == Phase::Running,
            "{txn} commits after its operations"
        );
        match self.commit_with(cx, txn, id, OpResult::Done) {
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
        cx: &mut Context<'_>,
        txn: TxnId,
        id: OpId,
        result: OpResult,
    ) -> Submitted<OpReply> {
        let state = &self.txns[&txn];
        if let Err(reason) = state.written.check_schema(cx) {
            self.abort_txn(cx, txn, reason.clone());
            return Submitted::Ready(OpReply::failed(reason));
        }
        if let Some(owner) = self.is_stranded(txn) {
            let reason = AbortReason::ParticipantLost(owner);
            self.abort_txn(cx, txn, reason.clone());
            return Submitted::Ready(OpReply::failed(reason));
        }
        let writes = !state.written.is_empty() || !state.shipped.is_empty();
        if cx.journal.is_full() && writes {
            let reason = AbortReason::DiskFull(self.shard);
            self.abort_txn(cx, txn, reason.clone());
            return Submitted::Ready(OpReply::failed(reason));
        }
        // One operation that read at one shard did so at one moment.
        let once = !writes && state.ops == 1 && state.visited.len() == 1;
        let node = self.shard.node();
        let remote = state
            .visited
            .iter()
            .filter(|(shard, _)| shard.node() != node);
        let unconfirmed: Vec<(ShardId, u32)> = remote.copied().collect();
        if (!unconfirmed.is_empty() || self.is_to_freeze(txn))
            && let Some(submitted) = self.seal(cx, txn, id, &result)
        {
            return submitted;
        }
        // Every lock is held: the timestamp lies above all that the transaction depends on.
        let commit_ts = cx.clock.tick(cx.now);
        let state = &self.txns[&txn];
        if once && state.read_at > Ts::ZERO {
            // Its place is where it read: the shard may restart before it hears of a later one.
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

    /// Asks shards of other nodes whether they still hold a transaction's locks of their lives.
    fn confirm(
        &mut self,
        cx: &mut Context<'_>,
        txn: TxnId,
        commit_ts: Ts,
        phase: Phase,
        unconfirmed: Vec<(ShardId, u32)>,
    ) -> Submitted<OpReply> {
        let mut asked = unconfirmed.iter().map(|(shard, _)| *shard);
        if let Some(away) = asked.find(|shard| self.is_down(*shard)) {
            let reason = AbortReason::Unreachable(away);
            self.abort_txn(cx, txn, reason.clone());
            return Submitted::Ready(OpReply::failed(reason));
        }
        let state = self.txns.get_mut(&txn).expect("looked up above");
        state.cost.messages_on_path += 2 * unconfirmed.len() as u32;
        state.cost.delays += 2;
        state.phase = phase;
        self.committing.insert(txn, commit_ts);
        for (shard, life) in unconfirmed {
            let asked = Unconfirmed { shard, life };
            self.confirms.begin((txn, shard), asked, cx.now, true);
            self.send_confirm(cx, txn, shard);
        }
        Submitted::Pending
    }

    /// Asks a shard whether it still holds the locks of a transaction.
    pub(crate) fn send_confirm(&mut self, cx: &mut Context<'_>, txn: TxnId, shard: ShardId) {
        if let Some(asked) = self.confirms.get((txn, shard)) {
            let expected = asked.life;
            let confirm = Confirm { txn, expected };
            self.post(cx, shard, Body::Confirm(confirm), Self::NOTHING);
        }
    }

    /// Shards that have not confirmed the locks of a transaction.
    fn unconfirmed(&self, txn: TxnId) -> impl Iterator<Item = ShardId> {
        let shards = (txn, ShardId(0))..=(txn, ShardId(u16::MAX));
        let asked = self.confirms.range(shards);
        asked.map(|((_, shard), _)| shard)
    }

    /// Transactions with locks that a former life of a node gave and cannot confirm any more, with
    /// the first such shard of each.
    pub(crate) fn lost_confirms(&self, node: NodeId, before: u32) -> Vec<(TxnId, ShardId)> {
        let mut lost = self.confirms.lost(node, before);
        lost.dedup_by_key(|(txn, _)| *txn);
        lost
    }

    pub(crate) fn on_confirmed(
        &mut self,
        cx: &mut Context<'_>,
        from: ShardId,
        txn: TxnId,
        holds: bool,
    ) {
        let Some(state) = self.txns.get(&txn) else {
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
            let asked = self.confirms.get((txn, from));
            // The same life of it has not heard from this shard for a while.
            let present = self.peers.life(from.node());
            let reason = match asked.is_some_and(|asked| asked.life == present) {
                true => AbortReason::Unreachable(from),
                false => AbortReason::ParticipantLost(from),
            };
            self.abort_txn(cx, txn, reason);
            return;
        }
        let (id, commit_ts, result) = (*id, *commit_ts, result.clone());
        self.confirms.end((txn, from));
        if self.unconfirmed(txn).next().is_none() {
            let reply = self.finish(cx, txn, commit_ts, result);
            cx.out.complete(txn, id, reply);
        }
    }

    /// Journals and installs the writes. From here on it is committed.
    fn finish(
        &mut self,
        cx: &mut Context<'_>,
        txn: TxnId,
        commit_ts: Ts,
        result: OpResult,
    ) -> OpReply {
        let state = self.txns.get_mut(&txn).expect("it commits");
        let frozen = state.written.is_freezing().then(|| state.written.take());
        let mut writes = match frozen {
            Some(_) => Writes::new(),
            None => state.written.take_few(),
        };
        let mut wait = state.wait;
        let shipments = self.shipments(txn, &mut writes);
        if !writes.is_empty() || !shipments.is_empty() || frozen.is_some() {
            let held = (!shipments.is_empty()).then(|| cx.journal.hold());
            if !shipments.is_empty() {
                self.append_shipped(cx, txn, &shipments);
            }
            let position = match frozen {
                Some(frozen) => self.commit_frozen(cx, txn, commit_ts, frozen),
                None => self.commit_writes(cx, txn, commit_ts, &writes),
            };
            if let Some(held) = held {
                cx.journal.free(held);
            }
            if !shipments.is_empty() {
                self.send_off(cx, txn, commit_ts, position, shipments);
            }
            wait = wait.max(position);
            let state = self.txns.get_mut(&txn).expect("looked up above");
            state.cost.forced_writes += 1;
            state.wait = wait;
            state.written.reuse(writes);
        }
        let outcome = Outcome::Committed { commit_ts };
        self.end_txn(cx, txn, outcome.clone());
        OpReply {
            result: Ok(result),
            outcome: Some(outcome),
            wait,
        }
    }

    /// Rolls back and answers what is outstanding. Without effect after the end.
    pub(crate) fn abort_txn(&mut self, cx: &mut Context<'_>, txn: TxnId, reason: AbortReason) {
        let open = self
            .txns
            .get(&txn)
            .is_some_and(|state| state.outcome.is_none());
        if open && self.is_entrusted(txn) {
            // It may be in other hands: nobody knows how it ends.
            self.lose_errand(cx, txn);
        } else if open {
            self.end_txn(cx, txn, Outcome::Aborted(reason));
        }
    }

    /// Sets the outcome, frees the locks everywhere, and answers all that is still outstanding.
    pub(crate) fn end_txn(&mut self, cx: &mut Context<'_>, txn: TxnId, outcome: Outcome) {
        self.tally(txn);
        let state = self
            .txns
            .get_mut(&txn)
            .expect("a transaction ends before it is forgotten");
        assert!(state.outcome.is_none(), "{txn} ends once");
        state.outcome = Some(outcome.clone());
        self.give_up_ships(cx, txn, &outcome);
        let state = self.txns.get_mut(&txn).expect("looked up above");
        let phase = core::mem::replace(&mut state.phase, Phase::Ended);
        let local = core::mem::take(&mut state.local);
        let reads = core::mem::take(&mut state.reads);
        let told = self.take_visited(txn);
        let state = self.txns.get_mut(&txn).expect("looked up above");
        state.written.discard(cx.journal, &mut self.bulks);
        let node = self.shard.node();
        let remote = told.iter().filter(|shard| shard.node() != node).count() as u32;
        state.cost.messages_off_path += remote;
        state.cost.messages_in_node += told.len() as u32 - remote;
        let cost = state.cost;
        let wait = state.wait;
        // A guest is counted where it came from.
        if state.guest.is_none() {
            cx.note_end(txn, &outcome, &cost);
        }
        for shard in told {
            // It tells its clock as well: later commits there lie above this one.
            self.post(cx, shard, Body::Release(txn), Self::NOTHING);
        }
        self.release_locks(txn);
        self.ask_again_for_recalls(cx, txn);
        if self.committing.remove(&txn).is_some() {
            let open: Vec<ShardId> = self.unconfirmed(txn).collect();
            for shard in open {
                self.confirms.end((txn, shard));
            }
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

    /// Shards that may hold locks for a transaction that ends; its scans there need nothing more.
    fn take_visited(&mut self, txn: TxnId) -> Vec<ShardId> {
        let own = self.shard;
        let state = self.txns.get_mut(&txn).expect("it ends");
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

    /// Drops what the transaction's scans elsewhere still fetch from here.
    fn drop_fetches(&mut self, txn: TxnId) {
        for id in self.guests.jobs(txn) {
            self.drop_job(id);
        }
    }

    fn fail_reads(&mut self, cx: &mut Context<'_>, reads: Vec<u64>, reason: &AbortReason) {
        for number in reads {
            if let Some(reading) = self.readings.end(number) {
                let reply = OpReply::failed(reason.clone());
                cx.out.complete(reading.txn, reading.id, reply);
            }
        }
    }
}
