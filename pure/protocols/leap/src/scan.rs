//! Scans, at the home of their slots. Rows that are away are fetched from their owners first; then
//! all rows are visited in key order.

use crate::job::{Job, Stop, Wait};
use crate::keyed::waits_until;
use crate::listing::{WINDOW_MAX, ahead_of};
use crate::message::FetchedRow;
use crate::{Cx, Leap, printed};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use base::{IndexId, Key, KeyRange, RowBatch, ShardId, Slot, SqlError, Time, Ts};
use core::fmt;
use local::scan::{misses, store_slots};
use local::visit::{Turn, note_range};
use local::{Visit, Visitor, WriteSet, see, see_own};
use store::{Store, Write};
use txn::bulk::Wanted;
use txn::lock::{Claim, Item};
use txn::scan::{Full, key_bounds};
use txn::{AbortReason, JournalPort, LockMode, OpResult, Read, ScanOp, ScanRun, Slots, Snapshot};

/// Refuses a scan whose guarded snapshot may miss a version of a row that is here, or that has come
/// here since the scan began. Rows elsewhere are checked at their owners.
fn look_out_in(cx: &Cx<'_>, op: &ScanOp) -> Result<(), Stop> {
    let guarded = op.read.snapshot().filter(Snapshot::is_guarded);
    match guarded.is_some_and(|snapshot| misses(cx.store, op, snapshot.at, Ts::MAX)) {
        true => {
            let wanted = Wanted::Rows(op.index, op.slot(), &op.range);
            let reason = AbortReason::SnapshotMisses(Some(wanted.example()));
            Err(Stop::aborted(reason))
        }
        false => Ok(()),
    }
}

/// State of a scan between its turns.
pub(crate) struct ScanState {
    pub(crate) run: ScanRun,
    /// All rows are here, so the slots to visit are known.
    pub(crate) is_visiting: bool,
    /// Rows that were away when the scan began, as their owners sent them.
    pub(crate) fetched: BTreeMap<Key, FetchedRow>,
    /// Rows that were not sent yet, with the owner that was asked last.
    pub(crate) missing: BTreeMap<Key, Option<ShardId>>,
    /// The key from which the listing of rows that are away goes on, in the order of the scan;
    /// `None`: the listing is complete. Rows from that key on cannot be visited yet.
    pub(crate) listing: Option<Key>,
    /// Whether the next turn goes on with the listing.
    pub(crate) lists: bool,
    /// Number of missing rows that are asked for at once; at first at most the scan's row limit.
    pub(crate) window: usize,
    /// Number of fetches under way.
    pub(crate) asked: u32,
    pub(crate) fetched_remotely: bool,
}

impl fmt::Debug for ScanState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scan with {} rows missing", self.missing.len())
    }
}

impl ScanState {
    /// Whether the rest of a slot is not listed at all.
    fn is_unlisted(&self, op: &ScanOp, slot: Slot) -> bool {
        let Some(listing) = &self.listing else {
            return false;
        };
        let rest = self.run.rest(op);
        let bytes = &listing.bytes[..];
        match op.reverse {
            false => (listing.slot, bytes) <= (slot, &rest.low),
            true => {
                let all = rest.high.as_deref().is_some_and(|high| bytes >= high);
                listing.slot > slot || (listing.slot == slot && all)
            }
        }
    }

    /// The missing rows that are asked for next.
    pub(crate) fn next_missing(&self, op: &ScanOp) -> Vec<Key> {
        let keys = self.missing.keys();
        if self.run.first_rows().is_some() {
            let mut wanted: Vec<&Key> = keys.filter(|key| self.run.wants(&key.bytes)).collect();
            if self.window < wanted.len() {
                wanted.select_nth_unstable_by(self.window, |a, b| {
                    let order = (&a.bytes, a.slot).cmp(&(&b.bytes, b.slot));
                    if op.reverse { order.reverse() } else { order }
                });
                wanted.truncate(self.window);
            }
            // In ascending order, whatever order the selection left.
            wanted.sort_unstable();
            return wanted.into_iter().cloned().collect();
        }
        match op.reverse {
            true => keys.rev().take(self.window).cloned().collect(),
            false => keys.take(self.window).cloned().collect(),
        }
    }

    /// The first row of a slot that is missing, or from which on the slot is not listed.
    fn first_missing(&self, op: &ScanOp, slot: Slot) -> Option<Key> {
        let (low, high) = key_bounds(op, slot, &self.run.rest(op));
        let unlisted = self
            .listing
            .iter()
            .filter(|key| **key >= low && **key < high);
        let keys = self.missing.range(low.clone()..high.clone());
        let mut keys = keys.map(|(key, _)| key);
        let first = if op.reverse {
            keys.next_back().into_iter().chain(unlisted).max()
        } else {
            keys.next().into_iter().chain(unlisted).min()
        };
        first.cloned()
    }

    /// The keys of the current slot that can be visited: those before the first missing row.
    fn rest(&self, op: &ScanOp, away: Option<&Key>) -> KeyRange {
        let mut range = self.run.rest(op);
        if let Some(away) = away {
            let mut bound = away.bytes.to_vec();
            if op.reverse {
                bound.push(0);
                range.low = bound;
            } else {
                range.high = Some(bound);
            }
        }
        range
    }

    pub(crate) fn take_rows(&mut self, rows: Vec<(Key, FetchedRow)>) {
        for (key, row) in rows {
            if self.missing.remove(&key).is_some() {
                self.fetched.insert(key, row);
            }
        }
    }
}

/// Why the visit of a slot stops.
enum Halt {
    Visit(local::Halt<Wait>),
    /// The next row is away and was not sent.
    Away,
}

impl Leap {
    pub(crate) fn scan(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        op: &ScanOp,
    ) -> Result<OpResult, Stop> {
        cx.check_schema(op.index, job.planned)?;
        if !self.rejoin.is_serving() {
            return Err(Stop::Wait(Wait::Gate));
        }
        if job.scan.is_none() {
            self.begin_scan(cx, job, op)?;
        }
        let mut state = job.scan.take().expect("begun above");
        let result = self.go_on(cx, job, op, &mut state);
        if matches!(
            result,
            Err(Stop::Lock
                | Stop::Wait(Wait::Gate)
                | Stop::Wait(Wait::Moving)
                | Stop::Wait(Wait::Fetch)
                | Stop::Budget)
        ) {
            job.scan = Some(state);
        }
        result
    }

    fn go_on(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        op: &ScanOp,
        state: &mut ScanState,
    ) -> Result<OpResult, Stop> {
        if state.asked > 0 {
            return Err(Stop::Wait(Wait::Fetch));
        }
        if state.lists {
            self.list_away(cx, op, state)?;
        }
        self.gather_first(cx, job, op, state)?;
        if !state.is_visiting {
            state.is_visiting = true;
            let slots = self.slots_of(cx, job, op);
            state.run.visit(op, slots);
        }
        let mut budget = self.settings.scan_rows_max;
        loop {
            let Some(slot) = state.run.slot() else {
                if !state.run.has_deferred() {
                    break;
                }
                state.run.resume_deferred();
                self.gather(cx, job, op, state)?;
                continue;
            };
            match self.visit_slot(cx, job, op, state, slot, &mut budget) {
                None => state.run.leave_slot(),
                Some(Halt::Away) if state.run.first_rows().is_some() => {
                    // Rows of other slots may show that the scan does not want this row.
                    let away = state.first_missing(op, slot);
                    match away.is_some_and(|key| state.run.wants(&key.bytes)) {
                        true => state.run.defer_slot(),
                        false => state.run.leave_slot(),
                    }
                }
                Some(Halt::Away) => {
                    state.run.check_memory(self.settings.txn_bytes_max)?;
                    self.gather_next(cx, job, op, state)?;
                }
                Some(Halt::Visit(local::Halt::Full(Full::Slot))) => state.run.leave_slot(),
                Some(Halt::Visit(local::Halt::Full(Full::Limit))) => break,
                Some(Halt::Visit(local::Halt::Full(Full::Batch))) if state.run.has_deferred() => {
                    // Otherwise the answer would tell for each slot how far it was visited.
                    state.run = ScanRun::whole(state.run.program.clone());
                    state.is_visiting = false;
                    state.window = WINDOW_MAX;
                    return self.go_on(cx, job, op, state);
                }
                Some(Halt::Visit(local::Halt::Full(Full::Batch))) => {
                    look_out_in(cx, op)?;
                    return Ok(state.run.take_batch()?);
                }
                Some(Halt::Visit(local::Halt::Stop(stop))) => {
                    state.run.check_memory(self.settings.txn_bytes_max)?;
                    return Err(stop);
                }
            }
        }
        look_out_in(cx, op)?;
        Ok(state.run.finish()?)
    }

    fn begin_scan(&mut self, cx: &mut Cx<'_>, job: &mut Job, op: &ScanOp) -> Result<(), Stop> {
        let slot = op.slot();
        match op.read {
            Read::Snapshot(snapshot) | Read::LockRows { snapshot, .. } => {
                let wanted = Wanted::Rows(op.index, slot, &op.range);
                Self::admit_snapshot(cx, wanted, snapshot.at)?;
                if !job.commits_seen {
                    let reads = &mut |key: &Key| op.has(key);
                    let until = waits_until(snapshot);
                    if self.commits_below(until, wanted)
                        || self.awaits_outcomes(cx, job, until, reads)?
                    {
                        return Err(Stop::Wait(Wait::Commit));
                    }
                    job.commits_seen = true;
                }
            }
            Read::Lock(_) | Read::TryLock { .. } => {
                let item = Item::Range {
                    index: op.index,
                    slot,
                    range: &op.range,
                };
                if !printed!(self, LeapGapsNotLocked) {
                    let program = op.program.live(cx.decode).map_err(SqlError::from)?;
                    self.lock(cx.now, job, &item, Claim::reads(program.reads()))?;
                }
            }
        }
        // A row may be absent because of a deletion that is not durable.
        job.wait = job.wait.max(self.installed.all());
        note_range(&mut cx.history, job.txn, op.index, &op.range);
        let program = op.program.live(cx.decode).map_err(SqlError::from)?;
        let run = ScanRun::new(program);
        let window = match (&run.task, run.first_rows()) {
            (Some(_), Some(count)) => count.clamp(1, WINDOW_MAX),
            (Some(_), None) => WINDOW_MAX,
            (None, _) => op.row_limit.min(op.batch_rows.into()).max(1) as usize,
        };
        let ahead = ahead_of(op);
        job.scan = Some(Box::new(ScanState {
            run,
            is_visiting: false,
            fetched: BTreeMap::new(),
            missing: BTreeMap::new(),
            listing: Some(match op.reverse {
                false => ahead.0,
                true => ahead.1,
            }),
            lists: true,
            window,
            asked: 0,
            fetched_remotely: false,
        }));
        Ok(())
    }

    /// Ascending slots with rows of this home, own writes or rows of other owners.
    fn slots_of(&self, cx: &Cx<'_>, job: &Job, op: &ScanOp) -> Vec<Slot> {
        let mut slots = BTreeSet::new();
        match op.slots {
            Slots::One(slot) => {
                slots.insert(slot);
            }
            Slots::All => {
                let (low, high) = ahead_of(op);
                // Rows of other homes that are here are scanned at their home.
                let here = |slot: &Slot| self.home(*slot) == self.shard;
                slots.extend(store_slots(cx.store, op, low.slot).filter(here));
                // A row without its history may be absent now.
                let cut = self.home.since.cut(op.read.at(), || ahead_of(op));
                slots.extend(cut.filter(|key| op.has(key)).map(|key| key.slot));
                let mut from = low;
                while let Some((key, _)) = self.home.table.range(from..high.clone()).next() {
                    slots.insert(key.slot);
                    from = Key::new(op.index, Slot(key.slot.0 + 1), Vec::new());
                    if from > high {
                        break;
                    }
                }
                if let Some(writes) = self.writes_of(job) {
                    slots.extend(writes.slots(op.index).filter(here));
                }
            }
        }
        slots.into_iter().collect()
    }

    fn writes_of(&self, job: &Job) -> Option<&WriteSet> {
        let writes = self.coord.txns.get(&job.txn)?.written.writes();
        (!writes.is_empty()).then_some(writes)
    }

    /// Visits the rest of a slot. Returns why the visit stops; `None`: at the end of the slot.
    fn visit_slot(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        op: &ScanOp,
        state: &mut ScanState,
        slot: Slot,
        budget: &mut u32,
    ) -> Option<Halt> {
        if state.is_unlisted(op, slot) {
            return Some(Halt::Away);
        }
        let away = state.first_missing(op, slot);
        let range = state.rest(op, away.as_ref());
        // Rows may have come home without their history while the scan was under way.
        let ends = || key_bounds(op, slot, &range);
        if let Some(key) = self.home.since.cut(op.read.at(), ends).next() {
            let reason = AbortReason::SnapshotTooOld(key.clone());
            return Some(Halt::Visit(local::Halt::Stop(Stop::aborted(reason))));
        }
        let fetched = &state.fetched;
        let extras = self.extras_of(job, op, fetched, (slot, &range, *budget as usize + 1));
        let rows = Rows {
            leap: self,
            job,
            journal: cx.journal,
            store: cx.store,
            now: cx.now,
            place: (op.index, slot),
            read: op.read,
            left: None,
        };
        let mut visit = Visit {
            txn: rows.job.txn,
            visitor: rows,
            run: &mut state.run,
            op,
            slot,
            store: cx.store,
            counters: cx.counters,
            history: &mut cx.history,
            budget,
            turn: Turn::default(),
        };
        let halt = visit.go(&range, extras.iter().map(|(key, row)| (key, row)));
        if let Some(key) = visit.visitor.left {
            // The row left while the scan waited for its lock: the new owner is to lock it.
            state.missing.insert(key, None);
            let gathered = self.gather(cx, job, op, state);
            let stop = gathered.err().unwrap_or(Stop::Budget);
            return Some(Halt::Visit(local::Halt::Stop(stop)));
        }
        match (halt, away) {
            (Some(halt), _) => Some(Halt::Visit(halt)),
            (None, Some(away)) => {
                state.run.pass(&away.bytes, true);
                Some(Halt::Away)
            }
            (None, None) => None,
        }
    }

    /// Rows that replace or precede the next ones of the store in a range of a slot: rows of other
    /// owners, and own writes. At most `most`, which is more than a turn visits.
    fn extras_of<'f>(
        &self,
        job: &Job,
        op: &ScanOp,
        all_fetched: &'f BTreeMap<Key, FetchedRow>,
        (slot, range, most): (Slot, &KeyRange, usize),
    ) -> Vec<(Key, Option<&'f FetchedRow>)> {
        let (low, high) = key_bounds(op, slot, range);
        let fetched = all_fetched.range(low.clone()..high.clone());
        let fetched = fetched.map(|(key, _)| key);
        let writes = self.writes_of(job);
        let own = writes.into_iter();
        let own = own.flat_map(|writes| writes.range(low.clone(), high.clone(), op.reverse));
        let own = own.map(|(key, _)| key).take(most);
        let mut keys: Vec<&Key> = match op.reverse {
            false => fetched.take(most).chain(own).collect(),
            true => fetched.rev().take(most).chain(own).collect(),
        };
        keys.sort_unstable();
        keys.dedup();
        if op.reverse {
            keys.reverse();
        }
        keys.truncate(most);
        let extras = keys.into_iter();
        let extras = extras.map(|key| (key.clone(), all_fetched.get(key)));
        extras.collect()
    }
}

/// A slot as the scan visits it: locks, newest versions, rows of other owners, own writes.
struct Rows<'v> {
    leap: &'v mut Leap,
    job: &'v mut Job,
    journal: &'v mut dyn JournalPort,
    store: &'v Store,
    now: Time,
    place: (IndexId, Slot),
    read: Read,
    /// A row that has left this shard.
    left: Option<Key>,
}

impl<'v> Visitor for Rows<'v> {
    type Wait = Wait;
    /// A row of another owner; `None`: an own write.
    type Extra = Option<&'v FetchedRow>;

    fn reach(&mut self, _: &ScanRun, _: Option<&[u8]>) -> Result<Option<KeyRange>, Stop> {
        Ok(None)
    }

    /// Whether the row came from its owner, where it was locked and its newest version was read.
    fn is_settled(&self, fetched: &Option<&'v FetchedRow>) -> bool {
        fetched.is_some()
    }

    /// Locks a row, also under an own write: that may be a formula, to which others add.
    fn lock(&mut self, key: &[u8], mode: LockMode) -> Result<(), Stop> {
        if let Some(reason) = self.journal.refusal_of_locks(self.leap.shard, 1) {
            return Err(Stop::aborted(reason));
        }
        let (index, slot) = self.place;
        let item = Item::Point { index, slot, key };
        self.leap.lock(self.now, self.job, &item, mode)
    }

    fn newest<'x>(
        &'x mut self,
        key: &[u8],
        folded: &'x mut Vec<u8>,
    ) -> Result<Option<&'x [u8]>, Stop> {
        let key = Key::new(self.place.0, self.place.1, key.to_vec());
        if !self.leap.is_mine(&key) {
            self.left = Some(key);
            return Err(Stop::Wait(Wait::Moving));
        }
        let (writes, installed) = (self.leap.writes_of(self.job), &self.leap.installed);
        let seen = see(writes, self.store, installed, &key, Ts::MAX, folded);
        self.job.wait = self.job.wait.max(seen.wait);
        Ok(seen.row)
    }

    fn extra<'x>(
        &mut self,
        run: &ScanRun,
        key: &Key,
        fetched: &'x Option<&'v FetchedRow>,
        folded: &'x mut Vec<u8>,
    ) -> Option<&'x [u8]> {
        if let Some(fetched) = fetched {
            return fetched_row(run, self.read, fetched);
        }
        match self.leap.writes_of(self.job)?.get(key)? {
            Write::Delete => return None,
            Write::Insert(row) | Write::Put(row) => {
                folded.clear();
                folded.extend_from_slice(row);
            }
            write @ Write::Formula(_) => {
                let (installed, at) = (&self.leap.installed, self.read.at());
                let seen = see_own(write, self.store, installed, key, at, folded);
                self.job.wait = self.job.wait.max(seen.wait);
            }
        }
        Some(folded)
    }
}

/// A row of another owner as the scan sees it.
fn fetched_row<'f>(run: &ScanRun, read: Read, fetched: &'f FetchedRow) -> Option<&'f [u8]> {
    match read {
        Read::Snapshot(_) => fetched.at.as_deref(),
        Read::Lock(_) | Read::TryLock { .. } => fetched.newest.as_deref(),
        Read::LockRows { .. } => match &fetched.at {
            Some(row) if passes(run, row) => fetched.newest.as_deref(),
            Some(_) | None => None,
        },
    }
}

/// Whether the program emits the row. An error counts as emitted: the program meets it again.
fn passes(run: &ScanRun, row: &[u8]) -> bool {
    let mut scratch = RowBatch::new(run.program.width());
    run.program.point(row, &mut scratch).unwrap_or(true)
}
