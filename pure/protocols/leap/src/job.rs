//! Jobs: operations on rows that are here or on their way here, from arrival to answer.

use crate::fetch::FetchJob;
use crate::scan::ScanState;
use crate::{Cx, Leap};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{IndexId, Key, Position, ShardId, Time, Ts, TxnId};
use local::jobs::Work;
use local::{Asker, Loading};
use txn::lock::{Acquired, Claim, Item, LockRequest, Settled};
use txn::{AbortReason, LockMode, LockTable, Op, OpError, OpId, OpResult, Priority, TxnOptions};

/// Where the answer goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Origin {
    /// To a transaction of this shard. `last`: the commit follows if the operation succeeds.
    Local { id: OpId, last: bool },
    /// To a coordinator on another shard: a read.
    Read { number: u64 },
    /// To the shard that has entrusted this transaction to this one.
    Errand { from: ShardId, number: u64 },
    /// To the shard whose transaction's formula is to be held here.
    Held { from: ShardId, number: u64 },
    /// To the home of a scan: rows of it that are here.
    Fetch { from: ShardId, number: u64 },
    /// The commit of a transaction of this shard, which needs exclusive locks first.
    #[default]
    Seal,
}

/// The event for which a job waits, besides locks, its turn and the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// A requested row arrives.
    Row,
    /// A restart is dealt with.
    Gate,
    /// The end of a transaction that awaits confirmations, and may commit below its snapshot.
    Commit,
    /// A row that is under way arrives at its new owner.
    Moving,
    /// Copies of its row are gone.
    Recall,
    /// An owner answers about a formula of its own transaction.
    Shipping,
    /// Owners send rows of a scan.
    Fetch,
    /// Nothing: the row of a snapshot is not here.
    Elsewhere,
}

/// Why a job does not go on.
pub(crate) type Stop = local::Stop<Wait>;

/// One operation.
#[derive(Debug, Default)]
pub(crate) struct Job {
    pub(crate) id: u64,
    pub(crate) txn: TxnId,
    pub(crate) options: TxnOptions,
    pub(crate) alone: bool,
    /// The operation needs no lock: it ends in the step in which it begins, and meets none.
    pub(crate) free: bool,
    pub(crate) planned: u64,
    pub(crate) op: Option<Op>,
    pub(crate) origin: Origin,
    /// The shard to which the operation was submitted.
    pub(crate) to: Option<ShardId>,
    /// The timestamp of a read of the newest version, set when the read meets pending formulas.
    pub(crate) reads_at: Option<Ts>,
    pub(crate) scan: Option<Box<ScanState>>,
    pub(crate) fetch: Option<Box<FetchJob>>,
    pub(crate) loading: Loading,
    /// Bytes of a bulk insertion whose rows were looked at, and requested if they were away.
    pub(crate) asked_ahead: usize,
    /// The row with which a seal goes on.
    pub(crate) sealing: Option<Box<Key>>,
    /// When the present wait for a row of another shard ends, if `lock_timeout` bounds it.
    pub(crate) row_until: Option<Time>,
    /// Time from which on the job waits until a restart is dealt with.
    pub(crate) gated: Option<Time>,
    /// The job has waited for transactions below its snapshot; later ones commit above it.
    pub(crate) commits_seen: bool,
    /// Position of the newest record that the job has read; its answer waits for that.
    pub(crate) wait: Position,
    /// Other shards that have locked rows for it, with their incarnation.
    pub(crate) visited: Vec<(ShardId, u32)>,
    /// Number of delays between nodes beyond the request and the reply.
    pub(crate) delays: u32,
}

impl Work for Job {
    fn is_scanning(&self) -> bool {
        self.scan.is_some()
    }
}

impl Job {
    pub(crate) fn new(txn: TxnId, options: TxnOptions, planned: u64, origin: Origin) -> Job {
        Job {
            txn,
            options,
            planned,
            origin,
            ..Job::default()
        }
    }

    /// The operation of this shard, and whether the commit follows. Panics if there is none.
    pub(crate) fn local(&self) -> (OpId, bool) {
        let Origin::Local { id, last } = self.origin else {
            unreachable!("{:?} answers another shard", self.origin)
        };
        (id, last)
    }

    pub(crate) fn priority(&self) -> Priority {
        self.options.priority(self.txn)
    }

    /// The row for which it waits, if it waits for one.
    pub(crate) fn waits_for(&self) -> Option<Key> {
        match self.op.as_ref() {
            Some(Op::InsertMany(rows)) => {
                let row = rows.from(self.loading.at()).next()?;
                Some(Key::new(rows.index(), row.slot, row.key.to_vec()))
            }
            Some(op) => op.key().cloned(),
            None => self.sealing.as_deref().cloned(),
        }
    }

    /// The snapshot that it reads, if it does.
    pub(crate) fn reads_at(&self) -> Option<(IndexId, Ts)> {
        if let Some(fetch) = &self.fetch {
            return Some((fetch.keys.first()?.index, fetch.snapshot?.at));
        }
        self.op.as_ref()?.reads_at()
    }
}

/// Asks for a row for a transaction of another shard. `None`: `request` is told.
pub(crate) fn acquire_row(
    locks: &mut LockTable,
    cx: &mut Cx<'_>,
    txn: Priority,
    key: &Key,
    mode: LockMode,
    request: u64,
) -> Option<Settled> {
    let request = LockRequest::new(txn, Item::of(key), mode, cx.now, request);
    match locks.acquire(request) {
        Acquired::Granted => Some(Settled::Granted),
        Acquired::Died(conflict) => Some(Settled::Died(conflict)),
        Acquired::Waiting => {
            cx.counters.lock_waits += 1;
            None
        }
    }
}

impl Leap {
    /// Asks for a lock on this shard.
    pub(crate) fn lock(
        &mut self,
        now: Time,
        job: &Job,
        item: &Item<'_>,
        claim: impl Into<Claim>,
    ) -> Result<(), Stop> {
        if job.free {
            return Ok(());
        }
        let asker = Asker {
            alone: job.alone,
            ..Asker::new(job.id, job.txn, &job.options, now)
        };
        match asker.ask(&mut self.locks, *item, claim) {
            Err(Stop::Lock) => match self.doubt_in(item) {
                None => Err(Stop::Lock),
                Some(reason) => {
                    self.locks.withdraw(job.txn, job.id);
                    Err(Stop::aborted(reason))
                }
            },
            asked => asked,
        }
    }

    pub(crate) fn take_lock_events(&mut self, cx: &mut Cx<'_>) {
        for event in self.locks.take_events() {
            cx.counters.lock_wait_us += cx.now.since(event.since);
            if self.owner.releasing.contains_key(&event.request) {
                self.on_release_lock(cx, event.request, event.settled);
                continue;
            }
            if self.settle_share(cx, event.request, &event.settled) {
                continue;
            }
            if let Some(reason) = self.jobs.on_lock(event.request, event.settled) {
                self.fail_job(cx, event.request, OpError::Aborted(reason));
            }
        }
    }

    pub(crate) fn fail_job(&mut self, cx: &mut Cx<'_>, id: u64, error: OpError) {
        if let Some(job) = self.jobs.remove(id) {
            self.end_job(cx, job, Err(error));
        }
    }

    /// Runs a job as far as it goes.
    pub(crate) fn run(&mut self, cx: &mut Cx<'_>, job: &mut Job) -> Result<OpResult, Stop> {
        if let Some(mut fetch) = job.fetch.take() {
            let result = self.run_fetch(cx, job, &mut fetch);
            job.fetch = Some(fetch);
            return result.map(|()| OpResult::Done);
        }
        if job.origin == Origin::Seal {
            return self.run_seal(cx, job);
        }
        let mut op = job
            .op
            .take()
            .expect("a job that is no fetch has an operation");
        let result = if self.is_to_fold_back(cx, job, &op) {
            self.run_folded(cx, job, &mut op)
        } else {
            self.run_op(cx, job, &mut op)
        };
        if !matches!(result, Ok(_) | Err(Stop::Fail(_))) || self.is_held(job) {
            job.op = Some(op);
        }
        result
    }

    fn is_held(&self, job: &Job) -> bool {
        matches!(job.origin, Origin::Held { .. })
    }

    /// Whether rows on which the transaction has shipped formulas must come here first, or had to:
    /// another operation may have fetched them while this one waited.
    fn is_to_fold_back(&self, cx: &Cx<'_>, job: &Job, op: &Op) -> bool {
        let is_elsewhere = |to| self.reads_elsewhere(cx, op, to);
        matches!(job.origin, Origin::Local { .. })
            && (self.touches_ships(job.txn, op) || job.to.is_some_and(is_elsewhere))
    }

    fn run_folded(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        op: &mut Op,
    ) -> Result<OpResult, Stop> {
        self.fold_back(cx, job, op)?;
        match job.to {
            Some(to) if self.reads_elsewhere(cx, op, to) => Err(Stop::Wait(Wait::Elsewhere)),
            Some(_) | None => self.run_op(cx, job, op),
        }
    }

    fn run_op(&mut self, cx: &mut Cx<'_>, job: &mut Job, op: &mut Op) -> Result<OpResult, Stop> {
        match op {
            Op::Formula { key, formula } if self.is_held(job) => self.hold(cx, job, key, formula),
            Op::Scan(scan) => self.scan(cx, job, scan),
            Op::Clock(snapshot) => {
                cx.clock.merge(snapshot.at);
                Ok(OpResult::Clock(cx.clock.reached()))
            }
            Op::Savepoint(savepoint) => {
                let (bulks, most) = (&mut self.bulks, self.settings.slice_units);
                let written = &mut self.coord.txns.of(job.txn).written;
                match written.save(bulks, *savepoint, most) {
                    true => Ok(OpResult::Done),
                    false => Err(Stop::Budget),
                }
            }
            op @ (Op::Get { .. }
            | Op::Modify { .. }
            | Op::Insert { .. }
            | Op::InsertMany(_)
            | Op::Formula { .. }
            | Op::Write { .. }) => self.run_keyed(cx, job, op),
        }
    }

    /// Runs a job that is not in `jobs` until it ends or stops.
    pub(crate) fn advance(&mut self, cx: &mut Cx<'_>, mut job: Box<Job>) {
        if let Some(at) = job.row_until.take() {
            self.row_limits.remove(&(at, job.id));
        }
        match self.run(cx, &mut job) {
            Ok(result) => self.end_job(cx, job, Ok(result)),
            Err(Stop::Fail(error)) => self.end_job(cx, job, Err(error)),
            Err(Stop::Wait(Wait::Elsewhere)) => self.redirect(cx, job),
            Err(stop) => self.park(cx, job, &stop),
        }
    }

    /// Keeps a stopped job under what it waits for.
    pub(crate) fn park(&mut self, cx: &mut Cx<'_>, job: Box<Job>, stop: &Stop) {
        let Some(mut job) = self.looks_out(cx, job, stop) else {
            return;
        };
        if matches!(stop, Stop::Wait(Wait::Gate)) {
            job.gated.get_or_insert(cx.now);
        }
        match stop {
            Stop::Lock => cx.counters.lock_waits += 1,
            Stop::Budget => self.jobs.park(job.id),
            Stop::Journal => self.jobs.await_journal(job.id),
            Stop::Wait(Wait::Row | Wait::Recall) => self.limit_wait(cx.now, &mut job),
            Stop::Wait(Wait::Fetch) => {}
            Stop::Wait(Wait::Shipping) => self.coord.owings.waits.push(job.id),
            Stop::Wait(Wait::Gate) => self.rejoin.waits.push(job.id),
            Stop::Wait(Wait::Commit) => {
                cx.counters.snapshot_waits += 1;
                self.coord.commit_waits.push(job.id);
            }
            Stop::Wait(Wait::Moving) => self.moving_waits.push(job.id),
            Stop::Wait(Wait::Elsewhere) | Stop::Fail(_) => unreachable!("answered by the caller"),
        }
        self.guests.note(job.txn, job.origin, job.id);
        self.jobs.insert(job.id, job);
    }

    /// `lock_timeout` bounds the wait for a row that another shard has as it bounds that for a lock
    /// of this shard.
    fn limit_wait(&mut self, now: Time, job: &mut Job) {
        let limit_us = job.options.lock_timeout_us;
        job.row_until = (limit_us > 0).then(|| now.after(limit_us));
        self.row_limits.extend(job.row_until.map(|at| (at, job.id)));
    }

    /// Ends a job that has waited for a row for too long. What was asked of other shards goes on:
    /// the row comes here when it is free.
    pub(crate) fn on_row_limit(&mut self, cx: &mut Cx<'_>) {
        let Some((at, id)) = self.row_limits.pop_first() else {
            return;
        };
        let late = self.jobs.get(id).filter(|job| job.row_until == Some(at));
        if let Some(key) = late.and_then(Job::waits_for) {
            let reason = AbortReason::MoveTimeout(key);
            self.fail_job(cx, id, OpError::Aborted(reason));
        }
    }

    /// Answers a job, to where its origin says.
    pub(crate) fn end_job(
        &mut self,
        cx: &mut Cx<'_>,
        job: Box<Job>,
        result: Result<OpResult, OpError>,
    ) {
        self.forget_guest(&job);
        match job.origin {
            Origin::Local { id, .. } => {
                let submitted = self.end_local(cx, &job, result);
                cx.out.settle(job.txn, id, submitted);
            }
            Origin::Read { number } => self.end_read(cx, &job, number, result),
            Origin::Errand { from, number } => self.end_errand(cx, &job, from, number, result),
            Origin::Held { .. } => {
                if let Some(Op::Formula { key, .. }) = job.op.as_ref() {
                    self.end_held(cx, &job, key, result);
                }
            }
            Origin::Fetch { from, number } => self.end_fetch(cx, *job, from, number, result),
            Origin::Seal => self.end_seal(cx, job.txn, result),
        }
    }

    /// A job is not at work here any more.
    pub(crate) fn forget_guest(&mut self, job: &Job) {
        if !matches!(job.origin, Origin::Local { .. }) {
            self.guests.forget(job.txn, job.id);
        }
    }

    pub(crate) fn wake_gate(&mut self) {
        self.jobs.wake_all(self.rejoin.waits.drain(..));
        self.wake_movers();
    }

    pub(crate) fn wake_movers(&mut self) {
        self.jobs.wake_all(self.moving_waits.drain(..));
    }

    pub(crate) fn wake_snapshots(&mut self) {
        self.jobs.wake_all(self.coord.commit_waits.drain(..));
    }
}
