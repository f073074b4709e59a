//! Rows of a scan that are away: their owners send them to the home, which merges them.

use crate::job::{Job, Origin, Stop, Wait};
use crate::keyed::waits_until;
use crate::message::{Body, Fetch, Fetched, FetchedRow};
use crate::outage::cut_off;
use crate::request::Standing;
use crate::{Cx, Leap};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{Key, ShardId, Ts};
use txn::bulk::Wanted;
use txn::lock::Item;
use txn::{AbortReason, Asked, LockMode, OpError, OpResult, Snapshot, Tie};

/// Largest number of rows in one answer.
const ROWS_MAX: usize = 1_000;
/// Bytes from which on an answer takes no further row.
const BYTES_MAX: usize = 1 << 20;

/// A fetch at the owner.
#[derive(Debug, Default)]
pub(crate) struct FetchJob {
    pub(crate) snapshot: Option<Snapshot>,
    lock: Option<LockMode>,
    pub(crate) keys: Vec<Key>,
    /// Number of keys that are dealt with.
    done: usize,
    rows: Vec<(Key, FetchedRow)>,
    /// Bytes of the rows read so far.
    bytes: usize,
    moved: Vec<Key>,
}

/// A fetch that a scan waits for.
#[derive(Debug)]
pub(crate) struct Fetching {
    pub(crate) job: u64,
    pub(crate) to: ShardId,
    pub(crate) fetch: Fetch,
}

impl Asked for Fetching {
    fn receiver(&self) -> ShardId {
        self.to
    }
}

impl Fetching {
    /// The reason with which the scan fails if the owner cannot be reached.
    pub(crate) fn reason(&self) -> AbortReason {
        match self.fetch.keys.first() {
            Some(key) => cut_off(key, self.to, Tie::Owner),
            None => AbortReason::Unreachable(self.to),
        }
    }
}

impl Leap {
    pub(crate) fn send_fetch(&mut self, cx: &mut Cx<'_>, number: u64) {
        if let Some(fetching) = self.fetches.get(number) {
            let (to, fetch) = (fetching.to, fetching.fetch.clone());
            self.say(cx, to, Body::Fetch(Box::new(fetch)));
        }
    }

    pub(crate) fn on_fetch(&mut self, cx: &mut Cx<'_>, from: ShardId, fetch: Fetch) {
        let Fetch { txn, number, .. } = fetch;
        let origin = Origin::Fetch { from, number };
        if self.guests.has(txn, origin) {
            self.say(cx, from, Body::Reading(number));
            return;
        }
        if txn.shard != self.shard {
            if fetch.lock.is_some() {
                self.open_visit(cx, txn);
            }
        } else if !self.coord.is_open(txn) {
            // A late fetch: its transaction is over.
            return;
        }
        let mut job = Box::new(Job::new(txn, fetch.options, u64::MAX, origin));
        job.id = self.jobs.next_number();
        let snapshot = fetch.at.map(|at| match fetch.guarded {
            true => Snapshot::guarded(at, at),
            false => Snapshot::exactly(at),
        });
        job.fetch = Some(Box::new(FetchJob {
            snapshot,
            lock: fetch.lock,
            keys: fetch.keys,
            ..FetchJob::default()
        }));
        if fetch.lock.is_some()
            && let Some(visit) = self.visits.get_mut(txn)
        {
            visit.jobs.push(job.id);
        }
        self.advance(cx, job);
    }

    /// Reads row after row, up to [`ROWS_MAX`] and [`BYTES_MAX`]; the scan asks for the rest later.
    /// A row that is not here is named as such, and the home looks for it again.
    pub(crate) fn run_fetch(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        fetch: &mut FetchJob,
    ) -> Result<(), Stop> {
        if let (Some(snapshot), Some(first)) = (fetch.snapshot, fetch.keys.first()) {
            // All its rows are of one index.
            Self::admit_snapshot(cx, Wanted::Row(first), snapshot.at)?;
            if fetch.lock.is_none() && !job.commits_seen {
                let mut sorted: Vec<&Key> = match self.pendings.formulas.row_count() == 0 {
                    true => Vec::new(),
                    false => fetch.keys.iter().collect(),
                };
                sorted.sort_unstable();
                let reads = &mut |key: &Key| sorted.binary_search(&key).is_ok();
                let until = waits_until(snapshot);
                let commits = |key| self.commits_below(until, Wanted::Row(key));
                if fetch.keys.iter().any(commits) || self.awaits_outcomes(cx, job, until, reads)? {
                    return Err(Stop::Wait(Wait::Commit));
                }
                job.commits_seen = true;
            }
        }
        while fetch.rows.len() < ROWS_MAX
            && fetch.bytes < BYTES_MAX
            && let Some(key) = fetch.keys.get(fetch.done)
        {
            match self.standing(key) {
                Standing::Doubtful => return Err(Stop::Wait(Wait::Gate)),
                Standing::Elsewhere => {
                    fetch.moved.push(key.clone());
                    fetch.done += 1;
                    continue;
                }
                Standing::Mine => {}
            }
            if let Some(mode) = fetch.lock {
                self.lock(cx.now, job, &Item::of(key), mode)?;
                // The row may have left while the job waited for the lock.
                if !self.is_mine(key) {
                    fetch.moved.push(key.clone());
                    fetch.done += 1;
                    continue;
                }
            }
            if let Some(snapshot) = fetch.snapshot {
                self.look_at(cx, key, snapshot)?;
            }
            let row = self.fetched_row(cx, job, fetch, key);
            cx.counters.rows_read += 1;
            let version = row.version;
            cx.note_read(job.txn, key, version);
            let sizes = [&row.at, &row.newest].map(|row| row.as_ref().map_or(0, |row| row.len()));
            fetch.bytes += sizes[0] + sizes[1];
            fetch.rows.push((key.clone(), row));
            fetch.done += 1;
        }
        Ok(())
    }

    /// The row as the scan needs it.
    fn fetched_row(
        &mut self,
        cx: &Cx<'_>,
        job: &mut Job,
        fetch: &FetchJob,
        key: &Key,
    ) -> FetchedRow {
        let mut access = self.access(job);
        let mut row = FetchedRow::default();
        let mut folded = Vec::new();
        if let Some(snapshot) = fetch.snapshot {
            let seen = access.see(cx.store, key, snapshot.at, &mut folded);
            row.at = seen.row.map(Box::from);
            row.version = seen.version;
        }
        if fetch.lock.is_some() {
            let seen = access.see(cx.store, key, Ts::MAX, &mut folded);
            row.newest = seen.row.map(Box::from);
            row.version = seen.version;
        }
        row
    }

    pub(crate) fn end_fetch(
        &mut self,
        cx: &mut Cx<'_>,
        job: Job,
        from: ShardId,
        number: u64,
        result: Result<OpResult, OpError>,
    ) {
        if let Some(visit) = self.visits.get_mut(job.txn) {
            visit.jobs.retain(|id| *id != job.id);
        }
        let fetch = *job.fetch.expect("a fetch keeps its state");
        let fetched = Fetched {
            number,
            rows: result.map(|_| fetch.rows).map_err(OpError::into_reason),
            moved: fetch.moved,
            wait: self.in_node(from, job.wait),
        };
        self.post(cx, from, Body::Fetched(Box::new(fetched)), job.wait);
    }

    pub(crate) fn on_fetched(
        &mut self,
        cx: &mut Cx<'_>,
        from: ShardId,
        incarnation: u32,
        fetched: Fetched,
    ) {
        let Some(fetching) = self.fetches.end(fetched.number) else {
            return;
        };
        let rows = match fetched.rows {
            Ok(rows) => rows,
            Err(reason) => {
                self.fail_job(cx, fetching.job, OpError::Aborted(reason));
                return;
            }
        };
        let remote = self.is_remote(from);
        let Some(job) = self.jobs.get_mut(fetching.job) else {
            return;
        };
        job.wait = job.wait.max(fetched.wait);
        if fetching.fetch.lock.is_some() && !job.visited.contains(&(from, incarnation)) {
            job.visited.push((from, incarnation));
        }
        let scan = job.scan.as_mut().expect("a job that fetches scans");
        scan.take_rows(rows);
        scan.asked -= 1;
        scan.fetched_remotely |= remote;
        if scan.asked == 0 {
            if core::mem::take(&mut scan.fetched_remotely) {
                job.delays += 2;
            }
            self.jobs.wake(fetching.job);
        }
    }
}
