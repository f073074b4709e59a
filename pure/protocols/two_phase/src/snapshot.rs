//! Reads without locks: what they wait for, and what they must not miss (see [`txn::snapshot`]).

use crate::coord::Coord;
use crate::exec::Hands;
use crate::job::{Job, Stop, Wait};
use crate::{Control, Cx};
use alloc::collections::BTreeMap;
use base::{Planted, ShardId, Ts, is_planted};
use core::ops::Bound;
use store::Store;
use txn::bulk::Wanted;
use txn::{AbortReason, Columns, Contact, OpError, ScanOp, Snapshot};

/// Number of shards whose clocks are kept for the readers of one transaction. At a forgotten shard
/// a reader counts as new again, which costs a restart at worst.
const CONTACTS_MAX: usize = 1_024;

/// Promises that were kept above their own timestamp, and may concern readers.
///
/// A commit may have been answered while its promise here stood below the bound of a reader. Once
/// the promise is kept, its versions lie above that bound. So a later operation of the reader, or a
/// repeated one, must use a higher bound.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Timestamps of the promises, by those of their commits.
    promised: BTreeMap<Ts, Ts>,
    /// Largest distance between a commit of these and its promise, in timestamps.
    gap_max: u64,
}

impl Kept {
    /// A promise is kept. No reader reads below `horizon` any more.
    pub(crate) fn note(&mut self, prepare_ts: Ts, commit_ts: Ts, horizon: Ts) {
        while let Some(first) = self.promised.first_entry()
            && *first.key() <= horizon
        {
            first.remove();
        }
        if self.promised.is_empty() {
            self.gap_max = 0;
        }
        self.gap_max = self.gap_max.max(commit_ts.0 - prepare_ts.0);
        self.promised.insert(commit_ts, prepare_ts);
    }

    /// The bound, or the last commit above it whose promise was not above it.
    pub(crate) fn raise(&self, bound: Ts) -> Ts {
        let last = Ts(bound.0.saturating_add(self.gap_max));
        if self.promised.is_empty() || last <= bound {
            return bound;
        }
        let above = (Bound::Excluded(bound), Bound::Included(last));
        let mut kept = self.promised.range(above).rev();
        let found = kept.find(|(_, prepare_ts)| **prepare_ts <= bound);
        found.map_or(bound, |(commit_ts, _)| *commit_ts)
    }

    /// Whether `missed` says so of a commit above `from` and not above `last` whose promise was not
    /// above `bound`. Of too many such commits it does.
    fn any(&self, bound: Ts, from: Ts, last: Ts, missed: &dyn Fn(Ts) -> bool) -> bool {
        if last <= from {
            return false;
        }
        let above = (Bound::Excluded(from), Bound::Included(last));
        let commits = self.promised.range(above);
        let mut promised = commits.filter(|(_, prepare_ts)| **prepare_ts <= bound);
        let mut looks = promised.by_ref().take(LOOKS_MAX);
        looks.any(|(commit_ts, _)| missed(*commit_ts)) || promised.next().is_some()
    }
}

/// Number of commits for each of which a read that may miss something looks for a version of it.
const LOOKS_MAX: usize = 8;

/// How far a read has come into its snapshot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrival {
    /// First contact of the reader with this shard; `None`: it came before.
    pub(crate) contact: Option<Contact>,
    /// Versions and promises at or below this were here at the reader's first contact.
    pub(crate) bound: Option<Ts>,
    /// The read has waited for such a promise, which may have been kept above the bound.
    pub(crate) overtaken: bool,
    /// All promises are settled; no version up to this timestamp may be missed. A read without
    /// locks is made as of it.
    pub(crate) settled: Option<Ts>,
    /// The read is not made as of the stamp of its transaction, which would miss a version.
    pub(crate) moves: bool,
}

impl<C: Control> Hands<'_, C> {
    /// Merges the snapshot into the clock, refuses what is not kept any more, and waits for the
    /// promises of what is `wanted` that may be kept at or below it, or that were there when the
    /// reader came. Fails if such a promise is older, its transaction may be waiting for a lock,
    /// and the reader's may hold one (rule C20). Returns the timestamp up to which no version may
    /// be missed.
    pub(crate) fn settle(
        &self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        snapshot: Snapshot,
        wanted: Wanted<'_>,
    ) -> Result<Ts, Stop> {
        cx.admit_snapshot(wanted, snapshot.at)?;
        if let Some(bound) = job.arrival.settled {
            return Ok(bound);
        }
        let bound = arrive(cx, job, snapshot);
        let (mut waits, mut refused) = (false, None);
        if !is_planted(Planted::SnapshotSkipsPromise) {
            let last = snapshot.at.max(bound);
            let own = job.options.priority(job.txn);
            for (holder, promise) in self.promises {
                if promise.prepare_ts <= last && wanted.meets(&promise.redo) {
                    waits = true;
                    job.arrival.overtaken |= promise.prepare_ts <= bound;
                    // It may be waiting for a lock that the reader holds.
                    if !(job.alone || promise.settled || own > promise.priority) {
                        refused = Some(*holder);
                    }
                }
            }
        }
        if let Some(holder) = refused {
            let key = wanted.example();
            let reason = AbortReason::Die { key, holder };
            return Err(Stop::Fail(OpError::Aborted(reason)));
        }
        waits |= self.holds_up(snapshot.at.max(bound), wanted);
        if waits {
            return Err(Stop::Wait(Wait::Promise));
        }
        let settled = if job.arrival.overtaken {
            cx.clock.reached()
        } else {
            self.kept.raise(bound)
        };
        if settled > bound && self.holds_up(settled, wanted) {
            return Err(Stop::Wait(Wait::Promise));
        }
        job.arrival.settled = Some(settled);
        Ok(settled)
    }

    /// Whether a read at `at` misses what may have been answered before its reader came. `settled`:
    /// see [`Hands::settle`]; `missed` tells whether what is read has a version above the first and
    /// not above the second timestamp. Of what lies above the reader's bound only those commits
    /// count that were promised up to it: the others began later.
    pub(crate) fn misses(
        &self,
        job: &Job,
        at: Ts,
        settled: Ts,
        missed: &dyn Fn(Ts, Ts) -> bool,
    ) -> bool {
        if settled <= at || !missed(at, settled) {
            return false;
        }
        let bound = job
            .arrival
            .bound
            .map_or(settled, |bound| bound.min(settled));
        let of_commit = |commit_ts: Ts| missed(Ts(commit_ts.0 - 1), commit_ts);
        let from = bound.max(at);
        bound > at && missed(at, bound) || self.kept.any(bound, from, settled, &of_commit)
    }

    /// Whether something that has committed at or below `last` is not installed yet.
    fn holds_up(&self, last: Ts, wanted: Wanted<'_>) -> bool {
        self.bulks.awaits(last, wanted) || self.order.awaits(last, wanted, Columns::ALL).is_some()
    }
}

/// Bound of the reader here: the one that it brings, or else the clock's present value.
pub(crate) fn arrive(cx: &mut Cx<'_>, job: &mut Job, snapshot: Snapshot) -> Ts {
    if let Some(bound) = job.arrival.bound {
        return bound;
    }
    // Later prepares and commits on this shard lie above the snapshot.
    if !is_planted(Planted::SnapshotNotMerged) {
        cx.clock.merge(snapshot.at);
    }
    let bound = if snapshot.bound == Ts::MAX {
        let bound = cx.clock.reached();
        if !snapshot.sole {
            let since = snapshot.since;
            job.arrival.contact = Some(Contact { since, bound });
        }
        bound
    } else {
        snapshot.bound
    };
    job.arrival.bound = Some(bound);
    bound
}

/// The refusal of a read whose snapshot misses a version.
pub(crate) fn raise(cx: &mut Cx<'_>, bound: Ts) -> Stop {
    cx.counters.snapshot_raises += 1;
    Stop::Fail(OpError::Raise(bound))
}

/// Whether a scan at `at` misses a version up to `bound`, by a cheap check.
pub(crate) fn scan_misses(store: &Store, op: &ScanOp, at: Ts, bound: Ts) -> bool {
    // A scan that goes on was checked as a whole when it began.
    op.after.is_none()
        && !is_planted(Planted::SnapshotNotRaised)
        && local::scan::misses(store, op, at, bound)
}

/// The clock of a shard at a reader's first contact.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    shard: ShardId,
    contact: Contact,
}

impl Coord {
    /// Tells a read what its transaction knows of the shard that it goes to.
    pub(crate) fn inform(&self, to: ShardId, snapshot: &mut Snapshot) {
        if snapshot.bound != Ts::MAX || snapshot.sole {
            return;
        }
        let mut known = self.contacts.iter();
        let known = known.find(|k| k.shard == to && k.contact.since == snapshot.since);
        if let Some(known) = known {
            snapshot.bound = known.contact.bound;
        }
    }

    /// Notes that a reader has come to a shard. Of two operations that came together, the first
    /// answer counts: both tell what was there after the reader began.
    pub(crate) fn note_contact(&mut self, shard: ShardId, contact: Contact) {
        let known = |k: &Known| k.shard == shard && k.contact.since == contact.since;
        if self.contacts.iter().any(known) {
            return;
        }
        if self.contacts.len() >= CONTACTS_MAX {
            self.contacts.retain(|k| k.contact.since == contact.since);
        }
        if self.contacts.len() < CONTACTS_MAX {
            self.contacts.push(Known { shard, contact });
        }
    }
}
