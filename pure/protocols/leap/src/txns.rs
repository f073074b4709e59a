//! Transactions at their coordinator: operations here, and reads on other shards.

use crate::job::{Job, Origin, Stop, Wait};
use crate::message::{Body, ReadReply, ReadRequest};
use crate::request::Standing;
use crate::ship::Ship;
use crate::{Cx, Leap};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use base::{Key, NodeId, Position, ShardId, Ts, TxnId};
use local::Written;
use local::txns::State;
use serde::Serialize;
use txn::lock::Item;
use txn::{
    AbortReason, Asked, LockMode, Op, OpError, OpId, OpReply, OpResult, Outcome, Read, Submission,
    Submitted, TxnCost, TxnOptions,
};

/// Stage of a transaction: running, confirming, sealing, entrusted, ended.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) enum Phase {
    /// Its operations run.
    #[default]
    Running,
    /// The timestamp is drawn, and shards of other nodes are asked whether they still hold its
    /// locks. The commit answers `id`, with this result.
    Confirming {
        id: OpId,
        commit_ts: Ts,
        result: OpResult,
    },
    /// The commit, which answers `id` with this result, waits for exclusive locks on the rows that
    /// the transaction increments.
    Sealing { id: OpId, result: OpResult },
    /// Another shard runs and commits the transaction.
    Entrusted,
    /// The transaction has an outcome.
    Ended,
}

/// What a coordinator keeps of one transaction.
#[derive(Debug, Default)]
pub(crate) struct Txn {
    pub(crate) options: TxnOptions,
    pub(crate) phase: Phase,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) written: Written,
    /// Operations that wait here: (operation, job).
    pub(crate) local: Vec<(OpId, u64)>,
    /// Numbers of reads on other shards that were not answered.
    pub(crate) reads: Vec<u64>,
    /// Shards that hold locks for the transaction, with their incarnations.
    pub(crate) visited: Vec<(ShardId, u32)>,
    /// Shards that may hold locks for the transaction.
    pub(crate) asked: Vec<ShardId>,
    pub(crate) ops: u64,
    /// Clock of the other shard when it answered the last read there; zero: no read was answered.
    pub(crate) read_at: Ts,
    /// Largest local position of what the transaction has read.
    pub(crate) wait: Position,
    pub(crate) cost: TxnCost,
    nodes: Vec<NodeId>,
    /// Number of the errand by which the transaction is entrusted to another shard.
    pub(crate) errand: Option<u64>,
    /// Numbers of the errands that take formulas to owners.
    pub(crate) ships: Vec<u64>,
    /// Formulas that owners hold.
    pub(crate) shipped: Vec<Ship>,
    /// The row because of which another shard entrusted the transaction to this one.
    pub(crate) guest: Option<Key>,
}

impl State for Txn {
    fn reset(&mut self) {
        let old = core::mem::take(self);
        let (mut written, mut nodes) = (old.written, old.nodes);
        written.reset();
        nodes.clear();
        *self = Txn {
            written,
            nodes,
            ..Txn::default()
        };
    }

    fn options(&mut self) -> &mut TxnOptions {
        &mut self.options
    }
}

impl Txn {
    /// Counts the bytes of a message, if the message is `remote` and bytes are counted.
    pub(crate) fn measure(&mut self, remote: bool, message: &(impl Serialize + ?Sized)) {
        if remote {
            self.cost.measure(&self.options, message);
        }
    }

    /// Cost of the transaction up to now, with the shards and nodes that have taken part.
    pub(crate) fn cost_so_far(&self, here: NodeId) -> TxnCost {
        let own = usize::from(!self.nodes.contains(&here));
        TxnCost {
            shards: 1 + self.visited.len() as u32,
            nodes: (self.nodes.len() + own) as u32,
            ..self.cost
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        let answered = self.local.is_empty() && self.reads.is_empty();
        answered && self.errand.is_none() && self.ships.is_empty()
    }

    /// Notes the node of a shard, for [`TxnCost::nodes`].
    pub(crate) fn note_node(&mut self, shard: ShardId) {
        if !self.nodes.contains(&shard.node()) {
            self.nodes.push(shard.node());
        }
    }

    pub(crate) fn note_asked(&mut self, shard: ShardId) {
        if !self.asked.contains(&shard) {
            self.asked.push(shard);
        }
    }

    /// A shard on `node` that held something for the transaction in a life before `incarnation`.
    /// Locks that are being confirmed are left out: their confirmations are looked at instead.
    pub(crate) fn lost_at(&self, node: NodeId, incarnation: u32) -> Option<ShardId> {
        let confirms = matches!(self.phase, Phase::Confirming { .. });
        let visited = self.visited.iter().filter(|_| !confirms).copied();
        let held = self.shipped.iter().map(|ship| (ship.owner, ship.life));
        let mut lost = visited.chain(held);
        let lost = lost.find(|(shard, life)| shard.node() == node && *life < incarnation);
        lost.map(|(shard, _)| shard)
    }
}

/// A read on another shard that was not answered.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) txn: TxnId,
    pub(crate) id: OpId,
    pub(crate) last: bool,
    pub(crate) to: ShardId,
    pub(crate) request: ReadRequest,
    pub(crate) depth: u32,
    /// Number of answers from shards without the row.
    pub(crate) missed: u32,
    /// Shards that were tried in place of the home, and do not have the row or cannot be reached.
    pub(crate) tried: BTreeSet<ShardId>,
}

impl Asked for Reading {
    fn receiver(&self) -> ShardId {
        self.to
    }
}

impl Leap {
    pub(crate) fn submit_op(&mut self, cx: &mut Cx<'_>, submission: Submission) -> Submitted {
        let txn = submission.txn;
        let state = self.coord.txns.of(txn);
        if let Some(outcome) = &state.outcome {
            return Submitted::Ready(OpReply::failed(outcome.refusal()));
        }
        if state.phase != Phase::Running {
            return self.fail(cx, txn, AbortReason::Requested);
        }
        let idle = state.is_idle();
        let fresh = idle && state.visited.is_empty() && state.ops == 0;
        let options = state.options;
        state.ops += 1;
        let alone = fresh && !self.locks.knows(txn);
        if !alone && !idle {
            self.expose(cx, txn);
        }
        let Submission {
            id, to, planned, ..
        } = submission;
        let (mut op, last) = (submission.op, submission.last);
        if let Some(error) = settle_snapshot(&mut op) {
            return Submitted::Ready(OpReply::open(Err(error), Position(0)));
        }
        let origin = Origin::Local {
            id,
            last: last && idle,
        };
        let mut job = Job::new(txn, options, planned, origin);
        job.id = self.jobs.next_number();
        job.alone = alone;
        let whole = alone && last;
        self.begin_job(cx, job, op, to, whole)
    }

    /// Begins an operation; `whole`: its transaction has no other.
    fn begin_job(
        &mut self,
        cx: &mut Cx<'_>,
        mut job: Job,
        op: Op,
        to: ShardId,
        whole: bool,
    ) -> Submitted {
        job.to = Some(to);
        if self.reads_elsewhere(cx, &op, to) && !self.touches_ships(job.txn, &op) {
            job.op = Some(op);
            self.read_elsewhere(cx, Box::new(job), Some(to));
            return Submitted::Pending;
        }
        if whole && let Some(to) = self.entrustee(cx, &op) {
            job.op = Some(op);
            self.entrust(cx, job, to);
            return Submitted::Pending;
        }
        if !whole && let Some(to) = self.shippee(cx, job.txn, &op) {
            job.op = Some(op);
            self.ship(cx, job, to);
            return Submitted::Pending;
        }
        job.free = whole && self.is_free(cx, job.txn, &op);
        job.op = Some(op);
        match self.run(cx, &mut job) {
            Ok(result) => self.end_local(cx, &job, Ok(result)),
            Err(Stop::Fail(error)) => self.end_local(cx, &job, Err(error)),
            Err(Stop::Wait(Wait::Elsewhere)) => {
                self.read_elsewhere(cx, Box::new(job), None);
                Submitted::Pending
            }
            Err(stop) => {
                let (id, _) = job.local();
                let state = self.coord.txns.of(job.txn);
                state.local.push((id, job.id));
                self.park(cx, Box::new(job), &stop);
                Submitted::Pending
            }
        }
    }

    /// Whether a transaction of this one operation can begin and end in this step without a lock:
    /// its row is here, and no lock is in its way.
    pub(crate) fn is_free(&self, cx: &Cx<'_>, txn: TxnId, op: &Op) -> bool {
        let mode = match op.read() {
            Some(Read::Lock(mode)) => mode,
            Some(_) => return false,
            None => LockMode::Exclusive,
        };
        let Some(key) = op.key() else {
            return false;
        };
        // An insert that finds its row does not commit, so it needs the lock.
        if let Op::Insert { .. } = op
            && cx.store.get(key, Ts::MAX).is_some()
        {
            return false;
        }
        let here = match mode {
            LockMode::Shared => self.sharing.has_copy(key) || self.is_mine(key),
            LockMode::Increment | LockMode::Fold | LockMode::Exclusive => {
                self.is_mine(key) && !self.sharing.is_lent(key)
            }
        };
        here && self.locks.is_free(txn, &Item::of(key), mode)
    }

    /// Whether an operation does its work where the rows are, on another shard.
    pub(crate) fn reads_elsewhere(&self, cx: &Cx<'_>, op: &Op, to: ShardId) -> bool {
        match (op.key(), op.read()) {
            // To be locked, the row would come here if there were memory for it.
            (Some(key), Some(Read::Lock(_) | Read::LockRows { .. })) => {
                cx.journal.is_memory_full()
                    && self.standing(key) == Standing::Elsewhere
                    && !self.sharing.has_copy(key)
                    && !self.requester.wants(key)
            }
            (Some(key), Some(Read::Snapshot(_) | Read::TryLock { .. })) => match self.standing(key)
            {
                Standing::Mine => false,
                Standing::Elsewhere => true,
                Standing::Doubtful => !self.is_home(key),
            },
            (Some(_), _) => false,
            // Rows are written where the transaction runs.
            (None, None) => false,
            (None, Some(_)) => to != self.shard,
        }
    }

    /// The transaction waits for something else now, or holds something: it is exposed.
    fn expose(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let mut rows = Vec::new();
        for (_, job) in &self.coord.txns[&txn].local {
            if let Some(job) = self.jobs.get_mut(*job)
                && core::mem::replace(&mut job.alone, false)
            {
                rows.extend(job.waits_for());
            }
        }
        self.locks.expose(txn);
        for key in rows {
            self.expose_request(cx, &key);
        }
    }

    /// Answers an operation that ran here. Pending if the commit rides on the operation and waits.
    pub(crate) fn end_local(
        &mut self,
        cx: &mut Cx<'_>,
        job: &Job,
        result: Result<OpResult, OpError>,
    ) -> Submitted {
        let (id, last) = job.local();
        let Some(state) = self.coord.txns.get_mut(&job.txn) else {
            return Submitted::Ready(OpReply::failed(AbortReason::Requested));
        };
        state.local.retain(|(op, _)| *op != id);
        state.wait = state.wait.max(job.wait);
        state.cost.delays = state.cost.delays.max(job.delays);
        if !job.visited.is_empty() {
            self.coord.note_visited(self.shard, job.txn, &job.visited);
        }
        self.end_op(cx, job.txn, id, last, job.wait, result)
    }

    /// Ends an operation, wherever it ran. Pending if the commit rides on the operation and waits.
    pub(crate) fn end_op(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        id: OpId,
        last: bool,
        wait: Position,
        result: Result<OpResult, OpError>,
    ) -> Submitted {
        let idle = self.coord.txns[&txn].is_idle();
        match result {
            Err(OpError::Aborted(reason)) => self.fail(cx, txn, reason),
            Ok(found) if last && idle && found.allows_finish() => {
                self.commit_with(cx, txn, id, found)
            }
            result => Submitted::Ready(OpReply::open(result, wait)),
        }
    }

    /// A snapshot read does not find its row here: it goes to another shard.
    pub(crate) fn redirect(&mut self, cx: &mut Cx<'_>, job: Box<Job>) {
        self.forget_guest(&job);
        match job.origin {
            Origin::Local { id, .. } => {
                if let Some(state) = self.coord.txns.get_mut(&job.txn) {
                    state.local.retain(|(op, _)| *op != id);
                    self.read_elsewhere(cx, job, None);
                }
            }
            Origin::Read { number } => self.forward_read(cx, &job, number),
            Origin::Errand { from, number } | Origin::Held { from, number } => {
                self.decline(cx, &job, from, number);
            }
            Origin::Fetch { .. } => unreachable!("a fetch tells which rows are not here"),
            Origin::Seal => unreachable!("what is written is here"),
        }
    }

    /// The shard where a row is looked for; `None`: the row is leaving.
    fn whereabouts(&self, key: &Key) -> Result<Option<ShardId>, AbortReason> {
        if !self.is_home(key) {
            return self.reader_of(key, &BTreeSet::new()).map(Some);
        }
        match self.hindrance(key) {
            Some(reason) => Err(reason),
            None => Ok(self.home.table.get(key).and_then(|entry| entry.owner)),
        }
    }

    /// Sends a read to the shard where its rows are, or to their home.
    fn read_elsewhere(&mut self, cx: &mut Cx<'_>, mut job: Box<Job>, to: Option<ShardId>) {
        let (id, last) = job.local();
        let op = job.op.take().expect("an operation that did not run");
        let to = match op.key() {
            Some(key) => self.whereabouts(key),
            None => match to.or(job.to) {
                Some(to) if self.is_down(to) => Err(AbortReason::Unreachable(to)),
                to => Ok(to),
            },
        };
        let to = match to {
            Ok(to) => to,
            Err(reason) => {
                job.op = Some(op);
                self.end_job(cx, job, Err(OpError::Aborted(reason)));
                return;
            }
        };
        let Some(to) = to else {
            if let Some(answer) = Self::answer_under_way(cx, Some(&op)) {
                job.op = Some(op);
                self.end_job(cx, job, answer);
                return;
            }
            // The row is leaving. After its arrival the home knows the new owner.
            let state = self.coord.txns.of(job.txn);
            state.local.push((id, job.id));
            job.op = Some(op);
            self.park(cx, job, &Stop::Wait(Wait::Moving));
            return;
        };
        self.next_number += 1;
        let number = self.next_number;
        let request = ReadRequest {
            txn: job.txn,
            options: job.options,
            number,
            planned: job.planned,
            // No later operation will expose the transaction there.
            alone: job.alone && last,
            delays: 0,
            op,
        };
        let state = self.coord.txns.of(job.txn);
        state.reads.push(number);
        if !matches!(request.op.read(), Some(Read::Snapshot(_))) {
            state.note_asked(to);
        }
        state.note_node(to);
        let reading = Reading {
            txn: job.txn,
            id,
            last,
            to,
            request,
            depth: state.cost.delays,
            missed: 0,
            tried: BTreeSet::new(),
        };
        self.coord.readings.begin(number, reading, cx.now, true);
        self.send_read(cx, number);
    }

    pub(crate) fn send_read(&mut self, cx: &mut Cx<'_>, number: u64) {
        let Some(reading) = self.coord.readings.get(number) else {
            return;
        };
        let (to, txn) = (reading.to, reading.txn);
        let body = Body::Read(Box::new(reading.request.clone()));
        let wait = self
            .coord
            .txns
            .get(&txn)
            .map_or(Self::NOTHING, |state| state.wait);
        let remote = self.is_remote(to);
        if let Some(state) = self.coord.txns.get_mut(&txn) {
            state.measure(remote, &body);
            state.cost.messages_in_node += u32::from(!remote);
        }
        self.post(cx, to, body, wait);
    }

    pub(crate) fn on_reading(&mut self, cx: &mut Cx<'_>, number: u64) {
        self.coord.readings.hear(number, cx.now);
        self.fetches.hear(number, cx.now);
        self.errands.out.hear(number, cx.now);
    }

    pub(crate) fn on_reply(&mut self, cx: &mut Cx<'_>, from: ShardId, reply: ReadReply) {
        let ReadReply { txn, number, .. } = reply;
        if !self.coord.readings.contains(number) {
            // The transaction has ended, but the sender may hold locks for it.
            let over = !self.coord.is_open(txn);
            if over && !reply.visited.is_empty() {
                for (shard, _) in reply.visited {
                    self.say(cx, shard, Body::Release(txn));
                }
            }
            return;
        }
        self.coord.readings.hear(number, cx.now);
        let Some(result) = reply.result else {
            let reading = &mut self.coord.readings[number];
            reading.missed += 1;
            let first = reading.missed == 1;
            if first || self.is_homeless(number) {
                self.read_again(cx, number);
            }
            return;
        };
        let reading = self.coord.readings.end(number).expect("looked up above");
        let hops = reply.delays + u32::from(self.is_remote(from));
        let state = self.coord.txns.of(txn);
        state.reads.retain(|other| *other != number);
        state.wait = state.wait.max(reply.wait);
        state.read_at = reply.at;
        state.cost.delays = state.cost.delays.max(reading.depth + hops);
        state.cost.messages_on_path += hops * cx.out.frames.came();
        self.coord.note_visited(self.shard, txn, &reply.visited);
        let answer = self.end_op(cx, txn, reading.id, reading.last, reply.wait, result);
        cx.out.settle(txn, reading.id, answer);
    }

    /// Runs an operation here, in this step, that first went to another shard.
    pub(crate) fn run_here(&mut self, id: OpId, job: Box<Job>) {
        self.coord.txns.of(job.txn).local.push((id, job.id));
        self.jobs.wake(job.id);
        self.jobs.insert(job.id, job);
    }

    /// A row was not where it was looked for: it may have come here, or its home knows its owner.
    pub(crate) fn read_again(&mut self, cx: &mut Cx<'_>, number: u64) {
        let Some(reading) = self.coord.readings.get(number) else {
            return;
        };
        let Some(key) = reading.request.op.key().cloned() else {
            self.send_read(cx, number);
            return;
        };
        if self.standing(&key) == Standing::Elsewhere && !self.is_home(&key) {
            let home = self.home(key.slot);
            if self.is_down(home) {
                self.read_without(cx, number);
            } else {
                let reading = &mut self.coord.readings[number];
                reading.to = home;
                self.send_read(cx, number);
            }
            return;
        }
        let reading = self.coord.readings.end(number).expect("looked up above");
        let (txn, id, last) = (reading.txn, reading.id, reading.last);
        let request = reading.request;
        let origin = Origin::Local { id, last };
        let mut job = Box::new(Job::new(txn, request.options, request.planned, origin));
        job.id = self.jobs.next_number();
        let state = self.coord.txns.of(txn);
        state.reads.retain(|other| *other != number);
        job.op = Some(request.op);
        self.run_here(id, job);
    }
}

/// Changes a snapshot so that it misses no commit that was answered before its reader began. The
/// only read of a statement finds the newest version where the row is: its owner has all that was
/// committed on the row, and the owner's clock is past that. Other readers do not know which shards
/// have their rows; they read at a timestamp that no clock is past, or are refused.
fn settle_snapshot(op: &mut Op) -> Option<OpError> {
    if matches!(op, Op::Clock(_)) {
        return None;
    }
    let snapshot = op.snapshot_mut()?;
    if snapshot.sole {
        snapshot.at = Ts::MAX;
        return None;
    }
    (snapshot.bound == Ts::MAX).then_some(OpError::Raise(snapshot.at))
}
