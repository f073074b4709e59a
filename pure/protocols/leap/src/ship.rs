//! Formulas of larger transactions, shipped to the owner of their row (L15), at the coordinator.
//!
//! A formula on a row that would not stay here is shipped to the owner, which holds it pending
//! (`pending`). The commit is one record here, with the formulas. From there on this shard owes the
//! formulas to the owners, until each has said that it has applied them durably.
//!
//! * A transaction that uses such a row in another way takes the row: the owner gives the formula
//!   up with the row, and the formula becomes a write like others ([`Leap::fold_back`]).
//! * A new life of an owner does not know the pending formulas. So a transaction that has not
//!   committed by then is rolled back, before the owner is told what was committed.

use crate::entrust::Errand;
use crate::job::{Job, Stop, Wait};
use crate::message::{Body, Owed, Resolve};
use crate::request::Standing;
use crate::txns::Phase;
use crate::{Cx, Leap};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use base::{IndexId, Key, NodeId, Position, ShardId, Time, Ts, TxnId};
use journal::{Record, Shipment, Shipped};
use store::{Formula, Write};
use txn::{AbortReason, LockMode, Op, OpError, OpReply, OpResult, Outcome, Rounds, Savepoint};

/// A formula that an owner holds.
#[derive(Clone, Debug)]
pub(crate) struct Ship {
    pub(crate) key: Key,
    pub(crate) owner: ShardId,
    /// The life of the owner that holds it.
    pub(crate) life: u32,
    pub(crate) formula: Formula,
    /// The row has been asked for: the owner does not count on the formula any more.
    pub(crate) pulled: bool,
}

/// A committed transaction whose formulas this shard owes to owners.
#[derive(Debug)]
pub(crate) struct Owing {
    commit_ts: Ts,
    /// Position of its commit record; messages to owners wait for it.
    position: Position,
    formulas: Vec<Shipment>,
    /// Owners that have not said that they have applied the formulas.
    to: BTreeSet<ShardId>,
}

/// Formulas that this shard owes to owners, by transaction.
#[derive(Debug, Default)]
pub(crate) struct Owings {
    /// Jobs that wait until an owner has answered about a formula.
    pub(crate) waits: Vec<u64>,
    pub(crate) all: Rounds<TxnId, Owing>,
}

impl Leap {
    /// The shard to which a formula of a larger transaction is shipped. `None`: it runs here.
    pub(crate) fn shippee(&mut self, cx: &Cx<'_>, txn: TxnId, op: &Op) -> Option<ShardId> {
        let Op::Formula { key, formula } = op else {
            return None;
        };
        let elsewhere = self.settings.entrusts && self.standing(key) == Standing::Elsewhere;
        if !elsewhere || !formula.commutes() || self.sharing.has_copy(key) {
            return None;
        }
        let state = &self.coord.txns[&txn];
        // What an owner holds is not undone, so the row comes here.
        if state.written.has_savepoints() {
            return None;
        }
        if let Some(ship) = state.shipped.iter().find(|ship| ship.key == *key) {
            return (!ship.pulled && !self.is_down(ship.owner)).then_some(ship.owner);
        }
        let from = self.settings.contended_from;
        let stays = cx.journal.is_memory_full() || self.owner.heat.is_contended(key, from, cx.now);
        if !stays || self.requester.wants(key) {
            return None;
        }
        self.place_of(key)
    }

    /// Sends a formula to the owner of its row.
    pub(crate) fn ship(&mut self, cx: &mut Cx<'_>, mut job: Job, to: ShardId) {
        let (id, last) = job.local();
        let message = self.errand_of(&mut job, to, true);
        let errand = Errand::new(id, last, to, message);
        self.begin_errand(cx, errand);
    }

    /// An owner says that it holds a formula.
    pub(crate) fn note_shipped(&mut self, now: Time, errand: &Errand) {
        let Op::Formula { key, formula } = &errand.message.op else {
            unreachable!("formulas are shipped")
        };
        self.moves.shipped += 1;
        self.owner.heat.note_shipped(key, now);
        let planned = errand.message.planned;
        let state = self.coord.txns.of(errand.message.txn);
        state.written.note_plan(key.index, planned);
        match state.shipped.iter_mut().find(|ship| ship.key == *key) {
            Some(ship) => {
                let before = core::mem::replace(&mut ship.formula, Formula(Vec::new()));
                ship.formula = before.then(formula.clone());
            }
            None => state.shipped.push(Ship {
                key: key.clone(),
                owner: errand.to,
                life: errand.message.expected,
                formula: formula.clone(),
                pulled: false,
            }),
        }
    }

    /// Whether an operation touches rows on which its transaction has shipped formulas.
    pub(crate) fn touches_ships(&self, txn: TxnId, op: &Op) -> bool {
        let Some(state) = self.coord.txns.get(&txn) else {
            return false;
        };
        let mut shipped = state.shipped.iter().map(|ship| &ship.key);
        shipped.any(|key| touches(op, key)) || self.touches_open_ships(txn, op)
    }

    /// As [`Leap::touches_ships`], for formulas whose owner has not answered.
    fn touches_open_ships(&self, txn: TxnId, op: &Op) -> bool {
        let Some(state) = self.coord.txns.get(&txn) else {
            return false;
        };
        let errands = state.ships.iter().filter_map(|n| self.errands.out.get(*n));
        let mut keys = errands.filter_map(|errand| errand.message.op.key());
        keys.any(|key| touches(op, key))
    }

    /// Takes rows of an operation with its transaction's shipped formulas, now writes here.
    pub(crate) fn fold_back(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        op: &Op,
    ) -> Result<(), Stop> {
        if self.touches_open_ships(job.txn, op) {
            return Err(Stop::Wait(Wait::Shipping));
        }
        loop {
            let state = self.coord.txns.of(job.txn);
            let mut shipped = state.shipped.iter_mut();
            let Some(ship) = shipped.find(|ship| touches(op, &ship.key)) else {
                return Ok(());
            };
            ship.pulled = true;
            let key = ship.key.clone();
            self.take(cx, job, &key, LockMode::Exclusive)?;
            let state = self.coord.txns.of(job.txn);
            let at = state.shipped.iter().position(|ship| ship.key == key);
            let Ship { owner, formula, .. } = state.shipped.remove(at.expect("looked up above"));
            let newest = cx.store.get(&key, Ts::MAX);
            let mut folded = Vec::new();
            // The row may have changed, if the owner could not keep its version until it left.
            if newest.is_none_or(|newest| formula.fold(newest.value, &mut folded).is_err()) {
                return Err(Stop::aborted(AbortReason::ParticipantLost(owner)));
            }
            self.access(job)
                .write(cx, key.clone(), Write::Formula(formula), false)?;
            self.coord.txns.of(job.txn).written.predate(&key);
        }
    }

    /// Parts the formulas that a committing transaction owes to owners from its writes here. Gives
    /// increments of rows, on which other transactions have formulas pending, their places there.
    pub(crate) fn shipments(&mut self, txn: TxnId) -> Vec<Shipment> {
        let state = self.coord.txns.of(txn);
        let shipped = core::mem::take(&mut state.shipped);
        let shipped = shipped.into_iter().map(|ship| Shipment {
            owner: ship.owner,
            key: ship.key,
            formula: ship.formula,
        });
        let mut shipments: Vec<Shipment> = shipped.collect();
        if self.pendings.is_idle() {
            return shipments;
        }
        let (owner, formulas) = (self.shard, &self.pendings.formulas);
        let among = state.written.take_formulas(|key| formulas.has(key));
        shipments.extend(among.into_iter().map(|(key, formula)| Shipment {
            owner,
            key,
            formula,
        }));
        shipments
    }

    /// Journals formulas, in front of the commit that makes them count.
    pub(crate) fn append_shipped(&mut self, cx: &mut Cx<'_>, txn: TxnId, formulas: &[Shipment]) {
        let record = Record::Shipped {
            shard: self.shard,
            txn,
            formulas: formulas.to_vec(),
        };
        cx.append(&mut self.scratch, |out| record.encode(out));
    }

    /// The commit is journaled: tells the owners.
    pub(crate) fn send_off(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        commit_ts: Ts,
        position: Position,
        formulas: Vec<Shipment>,
    ) {
        let own = self.shard;
        let here = formulas.iter().filter(|shipment| shipment.owner == own);
        let here: Vec<(Key, Formula)> = here
            .map(|shipment| (shipment.key.clone(), shipment.formula.clone()))
            .collect();
        let owing = Owing {
            commit_ts,
            position,
            to: formulas.iter().map(|shipment| shipment.owner).collect(),
            formulas,
        };
        let remote = owing.to.iter().filter(|owner| self.is_remote(**owner));
        let messages = 2 * remote.count() as u32;
        if let Some(state) = self.coord.txns.get_mut(&txn) {
            state.cost.messages_off_path += messages;
        }
        self.coord.owings.all.begin(txn, owing, cx.now, true);
        if !here.is_empty() {
            self.lodge_decided(cx, txn, commit_ts, here);
        }
        self.tell_owners(cx, txn);
    }

    /// Tells owners of the commit, for the first time or again, until they have applied it.
    pub(crate) fn tell_owners(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let Some(owing) = self.coord.owings.all.resend(&txn, cx.now) else {
            return;
        };
        let (commit_ts, position) = (Some(owing.commit_ts), owing.position);
        let to: Vec<ShardId> = owing.to.iter().copied().collect();
        for owner in to {
            let resolve = Resolve { txn, commit_ts };
            self.post(cx, owner, Body::Resolve(resolve), position);
        }
    }

    /// An owner has applied all that was shipped to it, and its record is durable.
    pub(crate) fn on_applied(&mut self, cx: &mut Cx<'_>, from: ShardId, txn: TxnId) {
        let Some(owing) = self.coord.owings.all.get_mut(&txn) else {
            return;
        };
        owing.to.remove(&from);
        if owing.to.is_empty() {
            self.coord.owings.all.end(&txn);
            let record = Record::Delivered { txn };
            cx.append(&mut self.scratch, |out| record.encode(out));
        }
    }

    /// An owner asks for the outcome of a formula.
    pub(crate) fn on_undecided(&mut self, cx: &mut Cx<'_>, from: ShardId, txn: TxnId) {
        if let Some(owing) = self.coord.owings.all.get(&txn) {
            let (commit_ts, position) = (Some(owing.commit_ts), owing.position);
            let resolve = Resolve { txn, commit_ts };
            self.post(cx, from, Body::Resolve(resolve), position);
            return;
        }
        let state = self.coord.open(txn);
        let body = match state.map(|state| &state.phase) {
            // The timestamp is drawn: the end of the transaction will tell the owner.
            Some(Phase::Confirming { .. }) => return,
            Some(Phase::Running | Phase::Sealing { .. } | Phase::Entrusted | Phase::Ended) => {
                Body::StillOpen(txn, cx.clock.reached())
            }
            None => {
                let commit_ts = None;
                Body::Resolve(Resolve { txn, commit_ts })
            }
        };
        self.say(cx, from, body);
    }

    /// Gives up the formulas of a transaction that is rolled back, and fails those on their way.
    pub(crate) fn give_up_ships(&mut self, cx: &mut Cx<'_>, txn: TxnId, outcome: &Outcome) {
        let Outcome::Aborted(reason) = outcome else {
            return;
        };
        let state = self.coord.txns.of(txn);
        let ships = core::mem::take(&mut state.ships);
        let shipped = core::mem::take(&mut state.shipped);
        let mut owners: BTreeSet<ShardId> = shipped.iter().map(|ship| ship.owner).collect();
        for number in ships {
            if let Some(errand) = self.take_errand(number) {
                owners.insert(errand.to);
                cx.out
                    .complete(txn, errand.id, OpReply::failed(reason.clone()));
            }
        }
        for owner in owners {
            let commit_ts = None;
            let resolve = Resolve { txn, commit_ts };
            self.say(cx, owner, Body::Resolve(resolve));
        }
    }

    /// The owner of a shipped formula whose row was requested and has not come, if there is one.
    pub(crate) fn is_stranded(&self, txn: TxnId) -> Option<ShardId> {
        let mut shipped = self.coord.txns[&txn].shipped.iter();
        shipped.find(|ship| ship.pulled).map(|ship| ship.owner)
    }

    /// Takes over the formulas that a former life owed.
    pub(crate) fn recover_owings(&mut self, cx: &mut Cx<'_>, shipped: Vec<Shipped>) {
        for Shipped {
            txn,
            commit_ts,
            formulas,
        } in shipped
        {
            for shipment in formulas.iter().filter(|other| other.owner == self.shard) {
                self.pendings.collect(owed_of(txn, commit_ts, shipment));
            }
            let owing = Owing {
                commit_ts,
                position: Self::NOTHING,
                to: formulas.iter().map(|shipment| shipment.owner).collect(),
                formulas,
            };
            self.coord.owings.all.begin(txn, owing, cx.now, true);
        }
    }

    /// The committed formulas that a restarted owner must know, and the position of their records.
    pub(crate) fn owed_to(&self, owner: ShardId) -> (Vec<Owed>, Position) {
        let (mut owed, mut position) = (Vec::new(), Self::NOTHING);
        for (txn, owing) in self.coord.owings.all.iter() {
            let to_it = owing
                .formulas
                .iter()
                .filter(|shipment| shipment.owner == owner);
            for shipment in to_it.filter(|_| owing.to.contains(&owner)) {
                owed.push(owed_of(*txn, owing.commit_ts, shipment));
                position = position.max(owing.position);
            }
        }
        (owed, position)
    }

    /// Whether this shard owes formulas on rows of an index.
    pub(crate) fn owes(&self, index: IndexId) -> bool {
        let mut owed = self
            .coord
            .owings
            .all
            .iter()
            .flat_map(|(_, owing)| &owing.formulas);
        owed.any(|shipment| shipment.key.index == index)
    }

    /// The owed formulas, for a checkpoint.
    pub(crate) fn owed(&self) -> Vec<Shipped> {
        let shipped = |(txn, owing): (&TxnId, &Owing)| Shipped {
            txn: *txn,
            commit_ts: owing.commit_ts,
            formulas: owing.formulas.clone(),
        };
        self.coord.owings.all.iter().map(shipped).collect()
    }

    /// Ends the operation of a formula that the owner has refused.
    pub(crate) fn end_ship(
        &mut self,
        cx: &mut Cx<'_>,
        errand: &Errand,
        wait: Position,
        result: Result<OpResult, OpError>,
    ) {
        let (txn, id) = (errand.message.txn, errand.id);
        let submitted = self.end_op(cx, txn, id, errand.last, wait, result);
        cx.out.settle(txn, id, submitted);
        self.jobs.wake_all(self.coord.owings.waits.drain(..));
    }

    /// A node has a new life, or cannot be reached: rolls back transactions that wait for its
    /// answers to shipped formulas.
    pub(crate) fn lose_ships(&mut self, cx: &mut Cx<'_>, node: NodeId, before: u32) {
        let lost = self.errands.out.lost(node, before).into_iter();
        let lost = lost.map(|number| &self.errands.out[number]);
        let lost = lost.filter(|errand| errand.message.holds);
        let lost: Vec<(TxnId, ShardId)> = lost.map(|e| (e.message.txn, e.to)).collect();
        for (txn, to) in lost {
            self.abort_txn(cx, txn, AbortReason::Unreachable(to));
        }
    }
}

fn owed_of(txn: TxnId, commit_ts: Ts, shipment: &Shipment) -> Owed {
    Owed {
        txn,
        commit_ts,
        key: shipment.key.clone(),
        formula: shipment.formula.clone(),
    }
}

/// Whether an operation reads or writes `key`, or may undo a write of it.
fn touches(op: &Op, key: &Key) -> bool {
    if let Op::Savepoint(Savepoint::RollBackTo(_)) = op {
        return true;
    }
    match op.key() {
        Some(own) => own == key,
        None => op.index() == Some(key.index),
    }
}
