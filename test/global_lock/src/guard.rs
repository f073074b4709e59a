//! The guard: which client has the lock, and what each one did.

use crate::rows::WriteSet;
use crate::{Body, Context, GlobalLock, INQUIRE_US, Work};
use base::{NodeId, ShardId, Time, Ts, TxnId};
use journal::Record;
use std::collections::BTreeMap;
use txn::{AbortReason, OpError, OpId, OpResult, Outcome};

/// An answer: the result, and how the transaction ended if it did.
pub(crate) type Answer = (Result<OpResult, OpError>, Option<Outcome>);

/// What the guard knows of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Guarded {
    writes: WriteSet,
    waiting: BTreeMap<OpId, Work>,
    answers: BTreeMap<OpId, Answer>,
    heard: Time,
}

impl GlobalLock {
    /// Runs what a transaction asks for, now or when it has the lock; an ask that comes again gets
    /// its answer again.
    pub(crate) fn on_ask(&mut self, cx: &mut Context<'_>, txn: TxnId, id: OpId, work: Work) {
        let life = self.lives.get(&txn.shard.node()).copied();
        if let Some(over) = self.over.get(&txn) {
            if let Some(answer) = over.answers.get(&id).cloned() {
                self.answer(cx, txn, id, answer);
            }
            return;
        }
        if life.is_some_and(|life| txn.incarnation < life) {
            return;
        }
        if !self.guarded.contains_key(&txn) {
            self.queue.push(txn);
        }
        let guarded = self.guarded.entry(txn).or_default();
        guarded.heard = cx.now;
        match guarded.answers.get(&id).cloned() {
            Some(answer) => self.answer(cx, txn, id, answer),
            None => {
                guarded.waiting.insert(id, work);
                self.run(cx);
            }
        }
    }

    fn answer(&mut self, cx: &mut Context<'_>, txn: TxnId, id: OpId, answer: Answer) {
        match txn.shard == self.shard {
            true => self.on_answer(cx, txn, id, answer),
            false => self.send(cx, txn.shard, txn, Body::Answer(id, answer.0, answer.1)),
        }
    }

    /// Runs all that the holder asks for, and then all of the next holder.
    fn run(&mut self, cx: &mut Context<'_>) {
        while let Some(txn) = self.queue.first().copied() {
            let guarded = self.guarded.get_mut(&txn).expect("queued ones are known");
            let Some((id, work)) = guarded.waiting.pop_first() else {
                return;
            };
            let mut result = Ok(OpResult::Done);
            if let Some(op) = work.op {
                result = guarded.writes.run(cx, op);
            }
            let mut outcome = None;
            if let Err(OpError::Aborted(reason)) = &result {
                outcome = Some(Outcome::Aborted(reason.clone()));
            } else if work.commits && result.is_ok() {
                let commit_ts = self.commit(cx, txn);
                outcome = Some(Outcome::Committed { commit_ts });
            }
            let answer = (result, outcome);
            let guarded = self.guarded.get_mut(&txn).expect("as above");
            guarded.answers.insert(id, answer.clone());
            if answer.1.is_some() {
                self.end(txn);
            }
            self.answer(cx, txn, id, answer);
        }
    }

    /// One record, and the rows: no other client sees them before the lock is free.
    fn commit(&mut self, cx: &mut Context<'_>, txn: TxnId) -> Ts {
        let guarded = self.guarded.get_mut(&txn).expect("it has the lock");
        let (writes, commit_ts) = (guarded.writes.take(), cx.clock.tick(cx.now));
        if writes.is_empty() {
            return commit_ts;
        }
        for (key, write) in &writes {
            cx.store
                .apply(key, write, commit_ts, cx.horizons.of(key.index));
        }
        let record = Record::Commit {
            txn,
            commit_ts,
            writes: vec![(self.shard, writes)],
            chunks: Vec::new(),
        };
        let mut payload = Vec::new();
        record.encode(&mut payload);
        self.committed = cx.journal.append(&payload);
        commit_ts
    }

    fn end(&mut self, txn: TxnId) {
        self.queue.retain(|queued| *queued != txn);
        let over = self.guarded.remove(&txn).unwrap_or_default();
        self.over.entry(txn).or_insert(over);
    }

    /// A transaction was rolled back, as far as its coordinator is concerned.
    pub(crate) fn on_drop(&mut self, cx: &mut Context<'_>, txn: TxnId) {
        self.end(txn);
        match txn.shard == self.shard {
            true => {
                self.dropping.remove(&txn);
            }
            false => self.send(cx, txn.shard, txn, Body::Dropped),
        }
        self.run(cx);
    }

    /// Transactions of former lives of a node are over.
    pub(crate) fn end_former(&mut self, cx: &mut Context<'_>, node: NodeId, incarnation: u32) {
        let former = |txn: &&TxnId| txn.shard.node() == node && txn.incarnation < incarnation;
        let former: Vec<TxnId> = self.queue.iter().filter(former).copied().collect();
        former.into_iter().for_each(|txn| self.end(txn));
        self.run(cx);
    }

    /// Asks after a holder that has been silent for long: its coordinator may not know it any more.
    pub(crate) fn inquire(&mut self, cx: &mut Context<'_>) {
        let Some(txn) = self.queue.first().copied() else {
            return;
        };
        let guarded = self.guarded.get_mut(&txn).expect("queued ones are known");
        if txn.shard != self.shard && cx.now >= guarded.heard.after(INQUIRE_US) {
            guarded.heard = cx.now;
            self.send(cx, txn.shard, txn, Body::Inquire);
        }
    }

    /// Why a transaction ends whose guard has lost everything.
    pub(crate) fn lost(guard: ShardId) -> AbortReason {
        AbortReason::ParticipantLost(guard)
    }
}
