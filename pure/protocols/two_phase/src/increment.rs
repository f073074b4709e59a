//! Increments: formulas that only add. Many transactions hold them on one row at once (ADR 0006).
//!
//! ```text
//! formula  Increment lock, escrow check ──> pending in the write set, beside those of others
//!                                       └─> Exclusive, if the row might leave its column's range
//! commit   seal: Fold locks ──> prepare, or commit in one phase ──> folded onto the newest version
//! ```
//!
//! Invariants:
//! * *escrow*: a fold never fails, whichever commit and in whatever order (rule R9);
//! * *order*: while a promise increments a row, no other version of the row appears. So versions
//!   and their records follow each other in the order of their timestamps. [`Hands::seal`] takes
//!   care of it before a vote and before a commit in one phase.

use crate::coord::{Ballot, Phase, Purpose};
use crate::exec::Hands;
use crate::job::{Job, Origin, Stop};
use crate::message::{Finish, Prepare};
use crate::{Control, Cx, Fault, Machine};
use alloc::boxed::Box;
use base::{Key, Planted, Position, Ts, TxnId, is_planted};
use local::{Asker, Written};
use store::{Formula, Write};
use txn::escrow::Escrow;
use txn::increment::{Folding, claim_of, claim_to_change, columns_of};
use txn::lock::{Claim, Item};
use txn::{AbortReason, LockMode, Op, OpError, OpId, OpReply, OpResult, Outcome, Submitted};

/// Whether the operation leaves an increment, unless the lock that it gets is exclusive.
pub(crate) fn op_adds(op: &Op) -> bool {
    op.formulas().iter().any(Formula::commutes)
}

/// The weakest lock under which the write may be promised.
fn promised_claim_of(write: &Write, folding: Folding) -> Claim {
    let claim = claim_of(write, folding);
    match write.formula() {
        Some(formula) if folding == Folding::AsTheyCome && claim.mode() == LockMode::Increment => {
            Claim::folds(columns_of(formula))
        }
        _ => claim,
    }
}

impl<C: Control> Hands<'_, C> {
    /// See [`claim_to_change`] and [`Written::has_savepoints`].
    pub(crate) fn formula_claim(&mut self, cx: &Cx<'_>, key: &Key, formulas: &[Formula]) -> Claim {
        let written = self.part.as_deref().map(|part| &part.written);
        let own = written.and_then(|written| written.get(key));
        if own.is_some() && written.is_some_and(Written::has_savepoints) {
            return LockMode::Exclusive.into();
        }
        let newest = cx.store.get(key, Ts::MAX);
        let newest = newest.map(|newest| newest.value);
        claim_to_change(formulas, own, self.escrow.take(), newest, C::FOLDING)
    }

    /// Takes the locks that a commit or vote needs: from here on, increments exclude other commits
    /// of their rows. A commit in one phase ends in this step. It needs no lock if no promise is on
    /// the row and no commit below it is still being installed (rule C8).
    pub(crate) fn seal(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        asker: &Asker,
    ) -> Result<(), Stop> {
        if C::JUDGES {
            self.await_guards(job)?;
        }
        let Some(part) = self.part.as_deref() else {
            return Ok(());
        };
        if part.written.is_freezing() {
            // It was sealed before.
            return Ok(());
        }
        let bulk = part.written.is_large(self.bulks);
        let alone = self.promises.is_empty() && self.bulks.is_idle();
        if !bulk && (C::JUDGES || !job.prepares() && alone) {
            return Ok(());
        }
        let asker = Asker {
            ordered: job.seals_in_order(),
            ..*asker
        };
        if bulk {
            return self.seal_slice(cx, job, &asker);
        }
        for (key, write) in part.written.writes().formulas() {
            if claim_of(write, C::FOLDING).mode() == LockMode::Increment {
                let claim = promised_claim_of(write, C::FOLDING);
                asker.ask(self.locks, Item::of(key), claim)?;
            }
        }
        Ok(())
    }

    /// As [`Hands::seal`] for a large write set, a slice a turn. `Err`: there is more to do.
    fn seal_slice(&mut self, cx: &mut Cx<'_>, job: &mut Job, asker: &Asker) -> Result<(), Stop> {
        let part = self.part.as_deref().expect("looked at by the caller");
        let (most, from) = (self.settings.slice_units, job.sealing.take());
        let increments = |_: &Key, write: &Write| {
            let adds = claim_of(write, C::FOLDING).mode() == LockMode::Increment;
            // Under timestamps, other promises may stand beside this one, and large ones stand
            // alone.
            adds.then(|| match C::JUDGES {
                true => LockMode::Exclusive.into(),
                false => promised_claim_of(write, C::FOLDING),
            })
        };
        let written = &part.written;
        let (found, rest) = written.formulas_to_seal(cx.counters, from, most, increments);
        for (key, claim) in found {
            if C::JUDGES {
                self.expect_free(asker.priority.txn, &key, claim)?;
            }
            if let Err(stop) = asker.ask(self.locks, Item::of(&key), claim) {
                job.sealing = Some(Box::new(key));
                return Err(stop);
            }
        }
        job.sealing = rest;
        if job.sealing.is_some() {
            return Err(Stop::Budget);
        }
        Ok(())
    }
}

impl<C: Control> Machine<C> {
    /// The weakest lock under which the write may be promised.
    pub(crate) fn claim_of_promise(&self, write: &Write) -> Claim {
        promised_claim_of(write, C::FOLDING)
    }

    pub(crate) fn seals(&self) -> bool {
        !self.is_faulty(Fault::NoSeal) && !is_planted(Planted::NoSeal)
    }

    /// Increments that other transactions have pending on the row; `None`: none. `formula`: the one
    /// that is to stand beside them, unless that is guarded.
    pub(crate) fn escrow(
        &self,
        txn: TxnId,
        key: &Key,
        formula: Option<&Formula>,
    ) -> Option<Escrow> {
        let own = self.parts.get(&txn).and_then(|part| part.written.get(key));
        let mut own = formula.into_iter().chain(own.and_then(Write::formula));
        Escrow::of(C::FOLDING, own.any(Formula::computes), |add| {
            self.locks.each_incrementer(txn, key, &mut |other| {
                let write = match (self.promises.get(&other), self.parts.get(&other)) {
                    (Some(promise), _) => promise.write(key),
                    (None, Some(part)) => part.written.get(key),
                    (None, None) => self.bulks.pending(other, key),
                };
                add(write.and_then(Write::formula));
            });
            let unfolded = self.order.unfolded(key).iter();
            unfolded.for_each(|waiting| add(Some(&waiting.formula)));
        })
    }

    pub(crate) fn has_increments(&self, txn: TxnId) -> bool {
        self.parts.get(&txn).is_some_and(|part| {
            let mut formulas = part.written.writes().formulas();
            formulas.any(|(_, write)| claim_of(write, C::FOLDING).mode() == LockMode::Increment)
        })
    }

    /// A job that only seals what `txn` has written here.
    fn sealing_job(&mut self, txn: TxnId, origin: Origin) -> Box<Job> {
        let options = self.coords[&txn].options;
        let mut job = Box::new(Job::new(txn, options, u64::MAX, origin));
        job.id = self.jobs.next_number();
        job
    }

    fn park_sealing(&mut self, cx: &mut Cx<'_>, job: Box<Job>, stop: &Stop) {
        let part = self.parts.of(job.txn);
        part.jobs.push(job.id);
        self.park(cx, job, stop);
    }

    /// Commits a transaction of this shard alone, once its increments are sealed.
    pub(crate) fn commit_alone(&mut self, cx: &mut Cx<'_>, txn: TxnId, id: OpId) -> Submitted {
        let alone = self.promises.is_empty() && self.bulks.is_idle();
        let guarded = self.may_await_guards(txn);
        if self.is_bulk(txn) || guarded || !alone && self.has_increments(txn) {
            let mut job = self.sealing_job(txn, Origin::Commit { id });
            match self.run(cx, &mut job) {
                Ok(_) => {}
                Err(Stop::Fail(error)) => {
                    return Submitted::Ready(self.end_commit(cx, txn, id, Err(error)));
                }
                Err(stop) => {
                    let coord = self.coords.of(txn);
                    coord.local.push((id, job.id));
                    self.park_sealing(cx, job, &stop);
                    return Submitted::Pending;
                }
            }
        }
        Submitted::Ready(self.commit_own(cx, txn))
    }

    /// The seal of a commit on this shard alone was granted or refused.
    pub(crate) fn end_commit(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        id: OpId,
        result: Result<OpResult, OpError>,
    ) -> OpReply {
        if let Some(coord) = self.coords.get_mut(&txn) {
            coord.local.retain(|(op, _)| *op != id);
        }
        match result {
            Ok(_) => self.commit_own(cx, txn),
            Err(error) => {
                let reason = error.into_reason();
                self.abort_txn(cx, txn, reason.clone());
                OpReply::ended(Outcome::Aborted(reason), Position(0))
            }
        }
    }

    /// Prepares the coordinator's own shard, now or when its increments are sealed.
    pub(crate) fn prepare_own(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        prepare: &Prepare,
    ) -> Result<(), AbortReason> {
        let guarded = self.may_await_guards(txn);
        if self.is_bulk(txn) || guarded || self.has_increments(txn) {
            let mut job = self.sealing_job(txn, Origin::Prepare);
            job.finish = Finish::Prepare(prepare.clone());
            match self.run(cx, &mut job) {
                Ok(_) => {}
                Err(Stop::Fail(error)) => return Err(error.into_reason()),
                Err(stop) => {
                    let coord = self.coords.of(txn);
                    coord.sealing = true;
                    coord.member(txn.shard).ballot = Ballot::Asked;
                    self.park_sealing(cx, job, &stop);
                    return Ok(());
                }
            }
        }
        let (vote, position) = self.prepare(cx, txn, prepare.clone(), false)?;
        let coord = self.coords.of(txn);
        coord.wait = coord.wait.max(position);
        coord.member(txn.shard).ballot = Ballot::Cast(vote);
        Ok(())
    }

    /// The seal before the own shard's vote was granted or refused.
    pub(crate) fn end_sealing(
        &mut self,
        cx: &mut Cx<'_>,
        job: Job,
        result: Result<OpResult, OpError>,
    ) {
        let txn = job.txn;
        let Finish::Prepare(prepare) = job.finish else {
            unreachable!("it was made to prepare")
        };
        let prepared = match result {
            Ok(_) => self.prepare(cx, txn, prepare, false),
            Err(error) => Err(error.into_reason()),
        };
        let (vote, position) = match prepared {
            Ok(prepared) => prepared,
            Err(reason) => {
                self.abort_txn(cx, txn, reason);
                return;
            }
        };
        let coord = self.coords.of(txn);
        coord.sealing = false;
        coord.wait = coord.wait.max(position);
        coord.member(txn.shard).ballot = Ballot::Cast(vote);
        self.on_vote(cx, txn);
    }

    /// Asks the next of the shards that vote one after the other, if the last one has voted.
    pub(crate) fn ask_next(&mut self, cx: &mut Cx<'_>, txn: TxnId) -> Result<(), AbortReason> {
        loop {
            let coord = self.coords.of(txn);
            let Phase::Preparing { id, .. } = coord.phase else {
                return Ok(());
            };
            let voted = |shard| coord.find(shard).map(|member| &member.ballot);
            if !matches!(coord.turn.and_then(voted), None | Some(Ballot::Cast(_))) {
                return Ok(());
            }
            let Some(shard) = coord.in_turn.pop() else {
                return Ok(());
            };
            coord.turn = Some(shard);
            let prepare = Prepare::to_be_decided(coord.writers.clone());
            if shard != txn.shard {
                let finish = Finish::Prepare(prepare);
                coord.member(shard).ballot = Ballot::Asked;
                let purpose = Purpose::Prepare;
                self.send_request(cx, txn, shard, id, u64::MAX, None, finish, purpose);
                return Ok(());
            }
            self.prepare_own(cx, txn, &prepare)?;
            if self.coords[&txn].sealing {
                return Ok(());
            }
        }
    }

    /// A vote has come from some shard: asks the next one in turn, or decides after the last.
    pub(crate) fn on_vote(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        if let Err(reason) = self.ask_next(cx, txn) {
            // No other shard is asked at the moment, but the commit must be answered.
            self.coords.of(txn).sealing = true;
            self.abort_txn(cx, txn, reason);
            return;
        }
        // Votes of a ride that failed came for another operation than the commit.
        let Some(Phase::Preparing { id, .. }) = self.coords.get(&txn).map(|c| &c.phase) else {
            return;
        };
        let id = *id;
        if let Some(reply) = self.decide_if_voted(cx, txn) {
            cx.out.complete(txn, id, reply);
        }
    }
}
