//! How a transaction ends at a participant.

use crate::message::{Body, Decide, Message, Vote};
use crate::part::{Part, Promise, Stage};
use crate::{Context, SPARES_MAX, TwoPhase};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{Key, Planted, Position, ShardId, Ts, TxnId, is_planted};
use journal::{PrepareRef, Record, Writes};
use local::record::{append_commit, begin_install, install};
use store::Write;
use txn::{AbortReason, TxnOptions};

/// A commit in one phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Committed {
    pub(crate) commit_ts: Ts,
    pub(crate) forced: bool,
    /// What the answer waits for.
    pub(crate) position: Position,
}

/// A promise that has nothing to write.
fn reader_vote(prepare_ts: Ts) -> Vote {
    Vote {
        prepare_ts,
        durable: false,
        redo: Writes::new(),
        chunks: 0,
    }
}

impl TwoPhase {
    /// The state of `txn` here, made if it is new.
    pub(crate) fn part(&mut self, txn: TxnId, options: TxnOptions) -> &mut Part {
        let spare = &mut self.spare_parts;
        self.parts.entry(txn).or_insert_with(|| {
            let mut part = spare.pop().unwrap_or_else(|| Box::new(Part::default()));
            part.reset();
            part.options = Some(options);
            part.attempt = options.attempt;
            part
        })
    }

    /// Whether what `txn` has written here may still become durable. A full disk keeps what room it
    /// has for the outcomes of transactions that have promised already.
    pub(crate) fn may_write(&self, cx: &Context<'_>, txn: TxnId) -> Result<(), AbortReason> {
        let Some(part) = self.parts.get(&txn) else {
            return Ok(());
        };
        part.written.check_schema(cx)?;
        if cx.journal.is_full() && !part.written.is_empty() {
            return Err(AbortReason::DiskFull(self.shard));
        }
        Ok(())
    }

    /// Prepares: from here on only the coordinator ends the transaction. Returns the vote and the
    /// position that it must wait for. `Err`: it must be rolled back.
    ///
    /// Towards a coordinator or lead of this node the promise is kept in memory only: both die
    /// together, and its record carries the writes (`copy` of them goes with the vote).
    pub(crate) fn prepare(
        &mut self,
        cx: &mut Context<'_>,
        txn: TxnId,
        participants: Vec<ShardId>,
        copy: bool,
    ) -> Result<(Vote, Position), AbortReason> {
        self.may_write(cx, txn)?;
        let lead = self.parts.get(&txn).and_then(|part| part.lead);
        let durable = self.is_remote(lead.unwrap_or(txn.shard));
        let part = self
            .parts
            .get_mut(&txn)
            .expect("only what is here prepares");
        assert!(
            part.jobs.is_empty() && part.early.is_empty(),
            "operations end before prepare"
        );
        let prepare_ts = cx.clock.tick(cx.now);
        let mut vote = reader_vote(prepare_ts);
        let mut position = part.wait;
        if part.written.is_empty() {
            part.stage = Stage::Voted;
            if is_planted(Planted::ReaderFreedAtVote) {
                self.locks.release(txn);
            }
            return Ok((vote, position));
        }
        part.stage = Stage::Promised;
        let (redo, mut chunks) = part.written.take();
        let attempt = part.attempt;
        if durable {
            let prepare = PrepareRef {
                txn,
                attempt,
                shard: self.shard,
                prepare_ts,
                coordinator: txn.shard,
                participants: &participants,
                writes: if chunks.count > 0 { &[] } else { redo.small() },
                chunks: chunks.count,
            };
            let promised = Self::append_prepare(&mut self.scratch, cx, prepare);
            chunks.free(cx.journal);
            vote.durable = true;
            if !is_planted(Planted::PrepareNotDurable) {
                position = position.max(promised);
            }
        } else if copy && chunks.count > 0 {
            vote.chunks = chunks.count;
        } else if copy {
            vote.redo = redo.small().to_vec();
        }
        let promise = Promise {
            prepare_ts,
            redo,
            chunks,
            durable,
            attempt,
            coordinator: txn.shard,
            participants,
            journal_again: false,
        };
        self.promises.insert(txn, promise);
        if is_planted(Planted::LocksFreedAtPrepare) {
            self.locks.release(txn);
        }
        Ok((vote, position))
    }

    /// Commits a transaction whose writes are all here: one record, installed at once; the locks
    /// go before the flush, because the next holder writes to the same journal or waits for it.
    pub(crate) fn commit_here(
        &mut self,
        cx: &mut Context<'_>,
        txn: TxnId,
    ) -> Result<Committed, AbortReason> {
        self.may_write(cx, txn)?;
        let part = self.parts.get_mut(&txn).expect("only what is here commits");
        assert!(
            part.jobs.is_empty() && part.early.is_empty(),
            "operations end before commit"
        );
        let read = part.wait;
        let committed = if part.written.is_freezing() {
            let (redo, chunks) = part.written.take();
            self.commit_bulk(cx, txn, redo, chunks, read)
        } else {
            let redo = part.written.take_few();
            let committed = self.commit_writes(cx, txn, &redo, read);
            let part = self.parts.get_mut(&txn).expect("looked up above");
            part.written.reuse(redo);
            committed
        };
        self.drop_part(cx, txn);
        Ok(committed)
    }

    /// The record and the rows of a commit on one shard.
    pub(crate) fn commit_writes(
        &mut self,
        cx: &mut Context<'_>,
        txn: TxnId,
        redo: &[(Key, Write)],
        read: Position,
    ) -> Committed {
        if redo.is_empty() {
            return Committed {
                commit_ts: cx.clock.tick(cx.now),
                forced: false,
                position: read,
            };
        }
        let commit_ts = cx.clock.tick(cx.now);
        let position = append_commit(cx, &mut self.scratch, txn, commit_ts, redo, 0);
        install(cx, &mut self.installed, txn, redo, commit_ts, position);
        Committed {
            commit_ts,
            forced: true,
            position: position.max(read),
        }
    }

    /// Removes all that `txn` has here and frees its locks. Its writes must be gone or unwanted.
    /// Locks of what is being installed stay until it is.
    pub(crate) fn drop_part(&mut self, cx: &mut Context<'_>, txn: TxnId) {
        self.disarm_part(txn);
        if let Some(mut part) = self.parts.remove(&txn) {
            part.written.discard(cx.journal, &mut self.bulks);
            for job in part.jobs.drain(..) {
                self.jobs.remove(job);
            }
            if self.spare_parts.len() < SPARES_MAX {
                part.reset();
                self.spare_parts.push(part);
            }
        }
        if !self.bulks.has(txn) || is_planted(Planted::LocksBetweenSlices) {
            self.locks.release(txn);
        }
    }

    /// Rolls `txn` back here. A durable promise must have been told so by its coordinator.
    pub(crate) fn rollback(&mut self, cx: &mut Context<'_>, txn: TxnId) {
        self.release_shares(cx, txn);
        if let Some(mut promise) = self.promises.remove(&txn) {
            promise.chunks.free(cx.journal);
            if promise.durable {
                let shard = self.shard;
                self.append_record(
                    cx,
                    &Record::Resolved {
                        txn,
                        shard,
                        commit_ts: None,
                    },
                );
            }
            self.bulks.discard(promise.redo);
            self.wake_snapshots();
        }
        self.drop_part(cx, txn);
    }

    /// Keeps a promise. `position` is the coordinator's record if that is in this journal.
    /// Returns the position of the record that the participant knows, for the acknowledgement.
    pub(crate) fn keep_promise(
        &mut self,
        cx: &mut Context<'_>,
        txn: TxnId,
        commit_ts: Ts,
        position: Position,
    ) -> Position {
        cx.clock.merge(commit_ts);
        let mut known = Position(0);
        if let Some(mut promise) = self.promises.remove(&txn) {
            assert!(
                commit_ts >= promise.prepare_ts,
                "commits lie above their promises"
            );
            self.kept.note(promise.prepare_ts, commit_ts, cx.horizon);
            let mut readable = position;
            let bulk = self.is_bulk_promise(&promise);
            if promise.durable {
                let shard = self.shard;
                let commit_ts = Some(commit_ts);
                // The promise and the decision are durable, so readers need not wait for this.
                known = self.append_record(
                    cx,
                    &Record::Resolved {
                        txn,
                        shard,
                        commit_ts,
                    },
                );
                self.resolved = known;
            } else if promise.journal_again && !bulk {
                let (scratch, redo) = (&mut self.scratch, promise.redo.small());
                readable = append_commit(cx, scratch, txn, commit_ts, redo, 0);
            }
            if bulk {
                promise.chunks.free(cx.journal);
                begin_install(cx, &mut self.installed, txn, commit_ts, readable);
                let again = promise.journal_again;
                self.bulks.begin(txn, commit_ts, promise.redo, again);
                self.locks.end(txn);
            } else {
                let redo = promise.redo.small();
                install(cx, &mut self.installed, txn, redo, commit_ts, readable);
                self.wake_snapshots();
            }
        }
        self.drop_part(cx, txn);
        known
    }

    /// The coordinator says how it ended.
    pub(crate) fn on_decide(
        &mut self,
        cx: &mut Context<'_>,
        from: ShardId,
        message: &Message,
        decide: Decide,
    ) {
        let txn = message.txn;
        let part = self.parts.get(&txn);
        let visit = part.map_or(decide.visit, |part| part.visit);
        let lead = part.and_then(|part| part.lead);
        if lead.is_some_and(|lead| lead != self.shard && lead != from) {
            // It has promised to its lead, which hears of it as well.
            return;
        }
        match decide.commit_ts {
            // It will be told again.
            Some(_) if decide.wants_ack && self.holds_back(txn) => return,
            Some(commit_ts) => {
                let known = self.keep_promise(cx, txn, commit_ts, decide.position);
                // Also if nothing is known any more: then the acknowledgement was lost, or it still
                // waits for its record, which stands at or before the last of its kind.
                if decide.wants_ack {
                    let known = known.max(self.resolved);
                    let ack = self.message(cx, txn, message.attempt, Body::Ack);
                    self.post(cx, from, ack, known);
                }
            }
            None => {
                self.rollback(cx, txn);
                if decide.wants_ack {
                    // Committed or not, it is over; nothing need be durable for that.
                    let ack = self.message(cx, txn, message.attempt, Body::Ack);
                    self.post(cx, from, ack, Position(0));
                }
            }
        }
        self.end_visit(txn, visit, None);
    }

    /// The coordinator is alive and has not decided.
    pub(crate) fn on_running(&mut self, cx: &mut Context<'_>, txn: TxnId) {
        self.arm_part(cx.now, txn);
    }
}
