//! Promises and decisions after a restart, and what a checkpoint must keep of them.

use crate::order::Unfolded;
use crate::part::{Promise, Stage};
use crate::{Control, Cx, Machine};
use alloc::vec::Vec;
use base::{Planted, Position, ShardId, is_planted};
use journal::{CheckpointTables, Owed, Prepared, Record, Writes};
use txn::bulk::Chunks;
use txn::increment::claim_of;
use txn::lock::{Acquired, Item, LockRequest};
use txn::{LockMode, TxnOptions, WriteList};

impl<C: Control> Machine<C> {
    /// Promises of this shard of which only another node knows the outcome: locks the promised rows
    /// and asks the coordinators.
    pub(crate) fn recover_promises(&mut self, cx: &mut Cx<'_>, held: Vec<Prepared>) {
        for prepared in held {
            assert_eq!(
                prepared.shard, self.shard,
                "a shard recovers its own promises"
            );
            self.recover_promise(cx, prepared);
        }
    }

    /// Committed formulas of this shard that wait for its promises. Called behind
    /// [`Machine::recover_promises`].
    pub(crate) fn recover_unfolded(&mut self, cx: &mut Cx<'_>, unfolded: Vec<journal::Unfolded>) {
        for journal::Unfolded {
            txn,
            shard: _,
            commit_ts,
            key,
            formula,
        } in unfolded
        {
            cx.clock.merge(commit_ts);
            let formula = Unfolded {
                commit_ts,
                txn,
                formula,
                position: Position(0),
            };
            self.order.wait(key, formula);
        }
    }

    /// Decisions that participants of this shard have not acknowledged: tells them again.
    pub(crate) fn recover_decisions(&mut self, cx: &mut Cx<'_>, owed: Vec<Owed>) {
        for owed in owed {
            let Owed {
                txn,
                commit_ts,
                participants,
            } = owed;
            cx.clock.merge(commit_ts);
            let here = self.shard;
            let others = participants.into_iter().filter(|shard| *shard != here);
            let others: Vec<(ShardId, u64)> = others.map(|shard| (shard, 0)).collect();
            if others.is_empty() {
                // Only this shard had promised, and recovery has kept the promise.
                self.append_record(cx, &Record::End { txn });
            }
            self.owe_decision(cx, txn, commit_ts, Position(0), others);
        }
    }

    fn recover_promise(&mut self, cx: &mut Cx<'_>, prepared: Prepared) {
        let txn = prepared.txn;
        let options = TxnOptions {
            attempt: prepared.attempt,
            ..TxnOptions::default()
        };
        cx.clock.merge(prepared.prepare_ts);
        let redo = WriteList::from(prepared.writes);
        for (key, write) in redo.iter() {
            if is_planted(Planted::PromiseUnlocked) {
                break;
            }
            // Under timestamps, others add beside a promise, unless it is a large one.
            let claim = match C::JUDGES && redo.slice_count() == 1 {
                true => claim_of(write, C::FOLDING),
                false => LockMode::Exclusive.into(),
            };
            let request = LockRequest::new(options.priority(txn), Item::of(key), claim, cx.now, 0);
            let acquired = self.locks.acquire(request);
            assert_eq!(
                acquired,
                Acquired::Granted,
                "promises of different transactions differ"
            );
        }
        let part = self.parts.obtain(txn, options);
        part.stage = Stage::Promised;
        // Requests of the former life are not answered any more.
        part.next_seq = u64::MAX;
        let promise = Promise {
            prepare_ts: prepared.prepare_ts,
            redo,
            chunks: Chunks::default(),
            durable: true,
            position: Position(0),
            attempt: prepared.attempt,
            coordinator: prepared.coordinator,
            participants: prepared.participants,
            journal_again: false,
            settled: true,
            priority: options.priority(txn),
        };
        if C::JUDGES {
            self.order.promise(txn, promise.prepare_ts, &promise.redo);
        }
        self.promises.insert(txn, promise);
        if prepared.coordinator == self.shard {
            self.begin_poll(cx, txn);
        } else {
            self.inquire(cx, txn);
        }
    }

    /// Promises and decisions for the checkpoint that begins now, in the step that appends its
    /// start record.
    ///
    /// Promises in memory are not among them: their commit record may already stand before the
    /// start, written by another shard, while this shard has not installed it. So their commit is
    /// journaled once more; the checkpoint may be completed when
    /// [`txn::Protocol::checkpoint_may_end`] says so.
    pub(crate) fn checkpoint_tables(&mut self, tables: &mut CheckpointTables) {
        self.bulks.checkpoint_begins();
        for (txn, promise) in &mut self.promises {
            if !promise.durable {
                promise.journal_again = !is_planted(Planted::CheckpointTooEarly);
                continue;
            }
            if is_planted(Planted::CheckpointSkipsPromises) {
                continue;
            }
            let prepared = Prepared {
                txn: *txn,
                attempt: promise.attempt,
                shard: self.shard,
                prepare_ts: promise.prepare_ts,
                coordinator: promise.coordinator,
                participants: promise.participants.clone(),
                writes: Writes::new(),
            };
            if promise.redo.slice_count() > 1 {
                let slices = promise.redo.share().into_iter();
                let slices = slices.map(|writes| (prepared.clone(), writes));
                tables.sliced.extend(slices);
            } else {
                let writes = promise.redo.small().to_vec();
                tables.prepared.push(Prepared { writes, ..prepared });
            }
        }
        if is_planted(Planted::CheckpointSkipsDecisions) {
            return;
        }
        let unfolded = self.order.each_unfolded();
        let unfolded = unfolded.map(|(key, formula)| journal::Unfolded {
            txn: formula.txn,
            shard: self.shard,
            commit_ts: formula.commit_ts,
            key: key.clone(),
            formula: formula.formula.clone(),
        });
        if !is_planted(Planted::FormulaUnfoldedForgotten) {
            tables.unfolded.extend(unfolded);
        }
        let owed = self.decisions.iter().map(|(txn, decision)| Owed {
            txn: *txn,
            commit_ts: decision.commit_ts,
            participants: decision.unacked.iter().map(|(shard, _)| *shard).collect(),
        });
        tables.owed.extend(owed);
    }
}
