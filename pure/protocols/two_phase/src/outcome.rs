//! How a transaction ends at a participant.

use crate::message::{Body, Decide, Message, Prepare, Vote};
use crate::order::Unfolded;
use crate::part::{Promise, Stage};
use crate::timers::Timer;
use crate::{Control, Cx, Machine};
use alloc::vec::Vec;
use base::{Key, Planted, Position, ShardId, Ts, TxnId, is_planted};
use journal::{PrepareRef, Writes};
use local::Written;
use local::record::{append_commit, begin_install, install};
use store::Write;
use txn::bulk::install_row;
use txn::{AbortReason, Bulks, Installed, WriteList};

/// A commit in one phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Committed {
    pub(crate) commit_ts: Ts,
    pub(crate) forced: bool,
    /// Position for which the answer waits.
    pub(crate) position: Position,
}

/// Whether a promise makes the commit together with all others that are named, without a decision:
/// the commit lies below `before`, and this participant accepts every timestamp between.
pub(crate) fn makes_commits(vote: &Vote, before: Ts) -> bool {
    vote.prepare_ts < before && vote.top.0 >= before.0 - 1
}

impl Committed {
    /// Commits what a transaction has written, on this shard alone. The answer waits for `read`:
    /// the largest position that the transaction has read.
    pub(crate) fn of(
        cx: &mut Cx<'_>,
        written: &mut Written,
        installed: &mut Installed,
        bulks: &mut Bulks,
        scratch: &mut Vec<u8>,
        txn: TxnId,
        read: Position,
    ) -> Committed {
        let commit_ts = cx.clock.tick(cx.now);
        let position = written.commit(cx, installed, bulks, scratch, txn, commit_ts);
        Committed {
            commit_ts,
            forced: position.is_some(),
            position: read.max(position.unwrap_or_default()),
        }
    }

    /// A transaction that has written nothing.
    pub(crate) fn nothing(cx: &mut Cx<'_>, read: Position) -> Committed {
        Committed {
            commit_ts: cx.clock.tick(cx.now),
            forced: false,
            position: read,
        }
    }
}

/// Appends the record of a promise, and notes its position.
fn append_promise(cx: &mut Cx<'_>, scratch: &mut Vec<u8>, txn: TxnId, promise: &mut Promise) {
    let chunks = promise.chunks.count;
    let prepare = PrepareRef {
        txn,
        attempt: promise.attempt,
        shard: cx.shard,
        prepare_ts: promise.prepare_ts,
        coordinator: promise.coordinator,
        participants: &promise.participants,
        writes: if chunks > 0 {
            &[]
        } else {
            promise.redo.small()
        },
        chunks,
    };
    promise.position = cx.append(scratch, |out| journal::encode_prepare(prepare, out));
    promise.chunks.free(cx.journal);
}

impl<C: Control> Machine<C> {
    /// Commits what a transaction has written here, on this shard alone.
    pub(crate) fn commit_written(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        written: &mut Written,
        read: Position,
    ) -> Committed {
        let held_up = C::JUDGES && !self.order.is_empty() && !written.is_freezing();
        if !held_up || written.is_empty() {
            let (installed, bulks) = (&mut self.installed, &mut self.bulks);
            let scratch = &mut self.scratch;
            return Committed::of(cx, written, installed, bulks, scratch, txn, read);
        }
        let commit_ts = cx.clock.tick(cx.now);
        let (redo, _) = written.take();
        let position = append_commit(cx, &mut self.scratch, txn, commit_ts, redo.small(), 0);
        self.install(cx, txn, &redo, commit_ts, position);
        Committed {
            commit_ts,
            forced: true,
            position: read.max(position),
        }
    }

    /// Makes the writes of a kept promise visible, in the order of timestamps on each row.
    fn install_in_order(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        redo: &WriteList,
        commit_ts: Ts,
        position: Position,
    ) {
        if C::JUDGES {
            self.order.end(txn, redo);
        }
        self.fold(cx, redo, commit_ts);
        self.install(cx, txn, redo, commit_ts, position);
        self.fold(cx, redo, Ts::MAX);
    }

    /// Makes committed writes visible, but for formulas that wait for a promise below them.
    fn install(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        redo: &WriteList,
        commit_ts: Ts,
        position: Position,
    ) {
        let held_up = |key: &Key, write: &Write| {
            write.formula().is_some() && self.order.holds_up(key, commit_ts)
        };
        let redo = redo.small();
        if self.order.is_empty() || !redo.iter().any(|(key, write)| held_up(key, write)) {
            install(cx, &mut self.installed, txn, redo, commit_ts, position);
            return;
        }
        let mut now = Writes::new();
        for (key, write) in redo {
            match write.formula() {
                Some(formula) if self.order.holds_up(key, commit_ts) => {
                    let formula = Unfolded {
                        commit_ts,
                        txn,
                        formula: formula.clone(),
                        position,
                    };
                    self.order.wait(key.clone(), formula);
                }
                _ => now.push((key.clone(), write.clone())),
            }
        }
        install(cx, &mut self.installed, txn, &now, commit_ts, position);
    }

    /// A promise is over: what waited for it is folded.
    fn end_order(&mut self, cx: &mut Cx<'_>, txn: TxnId, redo: &WriteList) {
        if C::JUDGES {
            self.order.end(txn, redo);
            self.fold(cx, redo, Ts::MAX);
        }
    }

    /// Folds the formulas on these rows that wait for nothing any more, and lie below `end`.
    fn fold(&mut self, cx: &mut Cx<'_>, rows: &WriteList, end: Ts) {
        if !self.order.has_unfolded() {
            return;
        }
        for (key, _) in rows.iter() {
            for formula in self.order.take_free(key, end) {
                let Unfolded {
                    commit_ts,
                    txn: _,
                    formula,
                    position,
                } = formula;
                let mut gone = None;
                install_row(cx, key, &Write::Formula(formula), commit_ts, &mut gone);
                if position > cx.durable {
                    self.installed.insert(commit_ts, position);
                }
            }
        }
    }

    /// Whether `txn` has written something here that it has not promised.
    pub(crate) fn has_written(&self, txn: TxnId) -> bool {
        let part = self.parts.get(&txn);
        part.is_some_and(|part| !part.written.is_empty())
    }

    /// Whether what `txn` has written here may still become durable. A full disk keeps its last
    /// room for outcomes of transactions that have promised.
    pub(crate) fn may_write(&self, cx: &Cx<'_>, txn: TxnId) -> Result<(), AbortReason> {
        let Some(part) = self.parts.get(&txn) else {
            return Ok(());
        };
        part.written.check_schema(cx)?;
        if cx.journal.is_full() && !part.written.is_empty() {
            return Err(AbortReason::DiskFull(self.shard));
        }
        Ok(())
    }

    /// A vote without writes, if what `txn` has read here is still so.
    fn judged_vote(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        prepare: &Prepare,
    ) -> Result<Vote, AbortReason> {
        self.judge(cx, txn)?;
        let prepare_ts = cx.clock.tick(cx.now);
        let top = match prepare.only_reads {
            true => Ts::MAX,
            false => self.guard(cx, txn, prepare_ts, prepare.settled),
        };
        self.parts.of(txn).top = top;
        Ok(Vote {
            prepare_ts,
            top,
            durable: false,
            redo: Writes::new(),
            chunks: 0,
        })
    }

    /// Whether the promise of this shard is one of those that make the commit together.
    fn is_named(&self, prepare: &Prepare) -> bool {
        let forgets = is_planted(Planted::EarlyReadersForget);
        prepare.is_early() && prepare.participants.contains(&self.shard) && !forgets
    }

    /// Prepares: from here on only the coordinator ends the transaction. Returns the vote and the
    /// position for which the vote waits. `Err`: the transaction must be rolled back.
    ///
    /// For a coordinator or lead of this node, the promise is kept in memory only: both die
    /// together, and its record carries the writes (`copy` of them goes with the vote). But where
    /// promises make the commit, all are durable, and all that are named promise, writes or not.
    pub(crate) fn prepare(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        prepare: Prepare,
        copy: bool,
    ) -> Result<(Vote, Position), AbortReason> {
        self.may_write(cx, txn)?;
        let mut vote = self.judged_vote(cx, txn, &prepare)?;
        let lead = self.parts.get(&txn).and_then(|part| part.lead);
        let remote = self.is_remote(lead.unwrap_or(txn.shard));
        let coordinates = prepare.is_early() && txn.shard == self.shard;
        let is_named = coordinates || self.is_named(&prepare);
        let part = self.parts.of(txn);
        assert!(
            part.jobs.is_empty() && part.early.is_empty(),
            "operations end before prepare"
        );
        let mut position = part.wait;
        if part.written.is_empty() && !is_named {
            part.stage = Stage::Voted;
            if is_planted(Planted::ReaderFreedAtVote) {
                self.locks.release(txn);
            }
            return Ok((vote, position));
        }
        part.stage = Stage::Promised;
        let (redo, chunks) = part.written.take();
        let mut promise = Promise {
            prepare_ts: vote.prepare_ts,
            redo,
            chunks,
            durable: remote || prepare.is_early(),
            position: Position(0),
            attempt: part.options.attempt,
            coordinator: txn.shard,
            participants: prepare.participants,
            journal_again: false,
            settled: prepare.settled,
            priority: part.options.priority(txn),
        };
        if !makes_commits(&vote, prepare.before) {
            // Only a decision makes this commit.
            promise.participants.clear();
        }
        if promise.durable {
            append_promise(cx, &mut self.scratch, txn, &mut promise);
            vote.durable = true;
            if !remote {
                // The answer waits for this, and is not there yet.
                self.forced = promise.position;
            }
            // The coordinator asks others meanwhile; its answer waits, see `Machine::decide`.
            if !coordinates && !is_planted(Planted::PrepareNotDurable) {
                position = position.max(promise.position);
            }
        } else if copy && promise.chunks.count > 0 {
            vote.chunks = promise.chunks.count;
        } else if copy {
            vote.redo = promise.redo.small().to_vec();
        }
        if C::JUDGES {
            self.order.promise(txn, vote.prepare_ts, &promise.redo);
        }
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
        cx: &mut Cx<'_>,
        txn: TxnId,
    ) -> Result<Committed, AbortReason> {
        self.may_write(cx, txn)?;
        self.judge(cx, txn)?;
        let part = self.parts.of(txn);
        assert!(
            part.jobs.is_empty() && part.early.is_empty(),
            "operations end before commit"
        );
        let (read, bulk) = (part.wait, part.written.is_freezing());
        let mut written = core::mem::take(&mut part.written);
        let committed = self.commit_written(cx, txn, &mut written, read);
        self.parts.of(txn).written = written;
        if bulk {
            self.locks.end(txn);
        }
        self.drop_part(cx, txn);
        Ok(committed)
    }

    /// Removes all that `txn` has here and frees its locks. Its writes must be gone or unwanted.
    /// Locks stay on rows that are being installed, until they are.
    pub(crate) fn drop_part(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        self.timers.set(Timer::Part(txn), None);
        if let Some(mut part) = self.parts.remove(&txn) {
            part.written.discard(cx.journal, &mut self.bulks);
            for job in part.jobs.drain(..) {
                self.jobs.remove(job);
            }
            self.parts.spare(part);
        }
        if self.control.forget(txn) {
            self.wake_snapshots();
        }
        if !self.bulks.has(txn) || is_planted(Planted::LocksBetweenSlices) {
            self.locks.release(txn);
        }
    }

    /// Rolls `txn` back here. Of a durable promise, its coordinator must have told the abort.
    pub(crate) fn rollback(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        self.release_shares(cx, txn);
        if let Some(mut promise) = self.promises.remove(&txn) {
            promise.chunks.free(cx.journal);
            if promise.durable {
                self.append_resolved(cx, txn, None);
            }
            self.end_order(cx, txn, &promise.redo);
            self.bulks.discard(promise.redo);
            self.wake_snapshots();
        }
        self.drop_part(cx, txn);
    }

    /// Keeps a promise. `position` is the coordinator's record if that is in this journal. Returns
    /// the position of the record that the acknowledgement waits for.
    pub(crate) fn keep_promise(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        commit_ts: Ts,
        position: Position,
    ) -> Position {
        cx.clock.merge(commit_ts);
        let mut known = Position(0);
        if let Some(mut promise) = self.promises.remove(&txn) {
            let commit_ts = match is_planted(Planted::FormulaTimestampsPerShard) {
                true => promise.prepare_ts,
                false => commit_ts,
            };
            assert!(
                commit_ts >= promise.prepare_ts,
                "commits lie above their promises"
            );
            self.kept
                .note(promise.prepare_ts, commit_ts, cx.horizons.lowest());
            let bulk = Self::is_bulk_promise(&promise);
            // The record of a commit that this shard decides stands behind the start.
            let lead = self.parts.get(&txn).and_then(|part| part.lead);
            let decides = lead.unwrap_or(txn.shard) == self.shard;
            let again = promise.journal_again && !decides;
            if promise.durable {
                // The promise and the decision are durable, so readers need not wait for this.
                known = self.append_resolved(cx, txn, Some(commit_ts));
                self.resolved = known;
            }
            if bulk {
                promise.chunks.free(cx.journal);
                begin_install(cx, &mut self.installed, txn, commit_ts, position);
                self.end_order(cx, txn, &promise.redo);
                self.bulks.begin(txn, commit_ts, promise.redo, again);
                self.locks.end(txn);
            } else {
                let position = match again {
                    true => {
                        let redo = promise.redo.small();
                        append_commit(cx, &mut self.scratch, txn, commit_ts, redo, 0)
                    }
                    false => position,
                };
                self.install_in_order(cx, txn, &promise.redo, commit_ts, position);
                self.wake_snapshots();
            }
        }
        self.drop_part(cx, txn);
        known
    }

    /// The coordinator tells the outcome.
    pub(crate) fn on_decide(
        &mut self,
        cx: &mut Cx<'_>,
        from: ShardId,
        message: &Message,
        decide: Decide,
    ) {
        let txn = message.txn;
        let part = self.parts.get(&txn);
        let visit = part.map_or(decide.visit, |part| part.visit);
        let lead = part.and_then(|part| part.lead);
        if lead.is_some_and(|lead| lead != self.shard && lead != from) {
            // The participant has promised to its lead, which is told the outcome as well.
            return;
        }
        match decide.commit_ts {
            // The coordinator tells the outcome again.
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
                    // Committed or not, the transaction is over; nothing need be durable for that.
                    self.say(cx, from, txn, message.attempt, Body::Ack);
                }
            }
        }
        self.end_visit(txn, visit, None);
    }

    /// The coordinator is alive and has not decided.
    pub(crate) fn on_running(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        self.arm_part(cx.now, txn);
    }
}
