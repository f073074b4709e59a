//! One operation on this shard's rows, from its arrival to its answer.

use crate::message::{Finish, Reference, Stamp};
use crate::part::coordinator_node;
use crate::scan::ScanState;
use crate::snapshot::Arrival;
use crate::{Control, Cx, Machine};
use alloc::boxed::Box;
use alloc::vec::{self, Vec};
use base::{IndexId, Key, Position, ShardId, Time, Ts, TxnId};
use local::jobs::Work;
use local::{Asker, Loading};
use store::Write;
use txn::{Op, OpError, OpId, OpResult, TxnOptions};

/// Destination of the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Origin {
    /// The coordinator is this shard. `last`: commit, if this shard is the only participant.
    Local { id: OpId, last: bool },
    /// Another shard has asked.
    Remote { from: ShardId, reference: Reference },
    /// The coordinator is this shard, alone, and commits when the increments are sealed.
    Commit { id: OpId },
    /// The coordinator is this shard and votes when the increments are sealed.
    #[default]
    Prepare,
    /// Another shard of this node leads the commit and wants a promise.
    Gather { lead: ShardId },
}

/// What a job waits for, besides locks, its turn and the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// The job reads a snapshot below which a promise may commit.
    Promise,
}

/// Why a job does not go on.
pub(crate) type Stop = local::Stop<Wait>;

/// One operation, or the blind writes and the operation of one request.
#[derive(Debug, Default)]
pub(crate) struct Job {
    pub(crate) id: u64,
    pub(crate) txn: TxnId,
    pub(crate) attempt: u32,
    pub(crate) options: TxnOptions,
    pub(crate) alone: bool,
    /// See [`Asker::direct`].
    pub(crate) direct: bool,
    /// The job reads a snapshot for a transaction without a part here.
    pub(crate) stateless: bool,
    pub(crate) planned: u64,
    pub(crate) writes: vec::IntoIter<(Key, Write)>,
    pub(crate) op: Option<Op>,
    /// Result of the operation, while the commit that follows waits for its locks.
    pub(crate) found: Option<OpResult>,
    pub(crate) finish: Finish,
    pub(crate) origin: Origin,
    pub(crate) scan: Option<Box<ScanState>>,
    pub(crate) loading: Loading,
    /// State of the arrival in the snapshot that the job reads.
    pub(crate) arrival: Arrival,
    /// Row with which a seal of many increments goes on.
    pub(crate) sealing: Option<Box<Key>>,
    /// When the job first had to wait for a promise.
    pub(crate) promise_since: Option<Time>,
    /// Transactions that guard what is to be committed, for whose outcome the job waits.
    pub(crate) guarded_by: Vec<(TxnId, Key)>,
    /// How the operation reads without locks.
    pub(crate) stamp: Option<Stamp>,
    /// Timestamp as of which it has.
    pub(crate) read_at: Ts,
    /// Largest position read.
    pub(crate) wait: Position,
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
            attempt: options.attempt,
            options,
            planned,
            origin,
            ..Job::default()
        }
    }

    /// Index that the job reads, if it waits for promises there.
    pub(crate) fn awaits_promise(&self) -> Option<IndexId> {
        self.promise_since?;
        self.op.as_ref()?.index()
    }

    /// When its wait for promises or guards has lasted too long.
    pub(crate) fn promise_deadline(&self) -> Option<Time> {
        let timeout_us = self.options.lock_timeout_us;
        let since = self.promise_since.filter(|_| timeout_us > 0)?;
        Some(since.after(timeout_us))
    }

    /// Whether the job is to end in a vote.
    pub(crate) fn prepares(&self) -> bool {
        match &self.finish {
            Finish::No => false,
            Finish::Prepare(_) => true,
            Finish::Commit(trust) => !trust.shares.is_empty(),
        }
    }

    /// Whether the seal follows the order of shards and keys: the transaction commits here alone,
    /// or its writers are shards of one node, which the coordinator asks in their order.
    pub(crate) fn seals_in_order(&self) -> bool {
        match &self.finish {
            Finish::Prepare(prepare) => in_one_node(self.txn, &prepare.participants),
            Finish::No => true,
            Finish::Commit(trust) => trust.shares.is_empty(),
        }
    }

    /// Whether the job may end in a commit or vote.
    pub(crate) fn commits(&self) -> bool {
        match self.origin {
            Origin::Local { last, .. } => last,
            Origin::Remote { .. } => self.finish != Finish::No,
            Origin::Commit { .. } | Origin::Prepare | Origin::Gather { .. } => true,
        }
    }

    /// Whether a commit or vote follows for certain, so that a large write set may go into the
    /// journal before.
    pub(crate) fn freezes(&self) -> bool {
        match self.origin {
            Origin::Local { .. } => false,
            Origin::Remote { .. } => self.finish != Finish::No,
            Origin::Commit { .. } | Origin::Prepare | Origin::Gather { .. } => true,
        }
    }

    /// Whether the job decides here, instead of only promising.
    pub(crate) fn decides(&self) -> bool {
        match (&self.origin, &self.finish) {
            (Origin::Commit { .. }, _) => true,
            (_, Finish::Commit(trust)) => trust.shares.is_empty(),
            (_, Finish::No | Finish::Prepare(_)) => false,
        }
    }

    pub(crate) fn asker(&self, now: Time) -> Asker {
        Asker {
            alone: self.alone,
            direct: self.direct,
            ..Asker::new(self.id, self.txn, &self.options, now)
        }
    }
}

/// Whether all `writers` are shards of the coordinator's node.
pub(crate) fn in_one_node(txn: TxnId, writers: &[ShardId]) -> bool {
    let node = coordinator_node(txn);
    writers.iter().all(|shard| shard.node() == node)
}

impl<C: Control> Machine<C> {
    /// Runs jobs that can go on, until there is none. Call this at the end of every step.
    pub(crate) fn pump(&mut self, cx: &mut Cx<'_>) {
        loop {
            if self.locks.has_events() {
                self.take_lock_events(cx);
            }
            match self.jobs.pop_ready() {
                Some(job) => self.advance(cx, job),
                None if self.locks.has_events() => {}
                None => break,
            }
        }
        if self.locks.has_in_the_way() {
            cx.out.in_the_way.append(&mut self.locks.take_in_the_way());
        }
    }

    fn take_lock_events(&mut self, cx: &mut Cx<'_>) {
        for event in self.locks.take_events() {
            cx.counters.lock_wait_us += cx.now.since(event.since);
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

    /// Runs a job that is not in `jobs` until it ends or stops.
    pub(crate) fn advance(&mut self, cx: &mut Cx<'_>, mut job: Box<Job>) {
        match self.run(cx, &mut job) {
            Ok(result) => self.end_job(cx, job, Ok(result)),
            Err(Stop::Fail(error)) => self.end_job(cx, job, Err(error)),
            Err(stop) => self.park(cx, job, &stop),
        }
    }

    /// Puts a stopped job where it will be found again.
    pub(crate) fn park(&mut self, cx: &mut Cx<'_>, mut job: Box<Job>, stop: &Stop) {
        match stop {
            Stop::Lock => cx.counters.lock_waits += 1,
            Stop::Wait(Wait::Promise) => {
                cx.counters.snapshot_waits += 1;
                job.promise_since.get_or_insert(cx.now);
                self.look_at_waits(job.promise_deadline());
                self.promise_waits.push(job.id);
            }
            Stop::Budget => self.jobs.park(job.id),
            Stop::Journal => self.jobs.await_journal(job.id),
            Stop::Fail(_) => unreachable!("a failed job is answered, not parked"),
        }
        if let Origin::Remote {
            from,
            reference: Reference::Read(read),
        } = job.origin
        {
            self.reads_in.insert((from, job.txn, read));
        }
        self.jobs.insert(job.id, job);
        self.plan_doubt_look(cx.now);
    }

    /// Wakes the snapshot reads that waited for promises.
    pub(crate) fn wake_snapshots(&mut self) {
        self.jobs.wake_all(self.promise_waits.drain(..));
    }
}
