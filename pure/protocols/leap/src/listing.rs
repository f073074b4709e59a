//! Rows of a scan that are away, at their home: which there are, and asking their owners for them.

use crate::fetch::Fetching;
use crate::job::{Job, Origin, Stop, Wait};
use crate::message::Fetch;
use crate::scan::ScanState;
use crate::{Cx, Leap};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{Key, SLOT_COUNT, ShardId, Slot};
use core::ops::Bound;
use txn::{Read, ScanOp, Slots};

/// Largest number of rows in one fetch. Their keys are one message, the rows are another one, and
/// reading them is one step of the owner.
pub(crate) const WINDOW_MAX: usize = 1_000;

impl Leap {
    /// Fetches the first rows that are away: a program that stops early may need no more.
    pub(crate) fn gather_first(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        op: &ScanOp,
        state: &mut ScanState,
    ) -> Result<(), Stop> {
        while state.run.first_rows().is_some()
            && !state.is_visiting
            && state.fetched.is_empty()
            && !state.missing.is_empty()
        {
            let before = state.missing.len();
            self.gather(cx, job, op, state)?;
            // Rows that are not missing any more have come home. None of the others is wanted.
            if state.missing.len() == before {
                break;
            }
        }
        Ok(())
    }

    /// Lists rows that are away, in scan order, a slice a turn. `Err`: none can be visited yet.
    ///
    /// A row that leaves meanwhile stays visible here as it is in the snapshot, because no row is
    /// removed while a scan is under way. A row that comes home is here.
    pub(crate) fn list_away(
        &mut self,
        cx: &mut Cx<'_>,
        op: &ScanOp,
        state: &mut ScanState,
    ) -> Result<(), Stop> {
        state.lists = false;
        let Some(from) = state.listing.take() else {
            return Ok(());
        };
        let (low, high) = ahead_of(op);
        let unlisted = match op.reverse {
            false => (Bound::Included(&from), Bound::Excluded(&high)),
            true => (Bound::Included(&low), Bound::Included(&from)),
        };
        if op.row_limit > 0 && !self.home.table.is_empty() && is_range(unlisted) {
            let mut keys = self.home.table.range(unlisted).map(|(key, _)| key);
            for _ in 0..self.settings.slice_units {
                let Some(key) = next_of(&mut keys, op) else {
                    break;
                };
                cx.counters.units += 1;
                if op.has(key) && op.is_ahead(key) {
                    state.missing.insert(key.clone(), None);
                }
            }
            state.listing = next_of(&mut keys, op).cloned();
        }
        if state.listing.is_some() && (state.missing.is_empty() || state.run.first_rows().is_some())
        {
            state.lists = true;
            return Err(Stop::Budget);
        }
        Ok(())
    }

    /// Fetches the next rows that are away, or lists more of them.
    pub(crate) fn gather_next(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        op: &ScanOp,
        state: &mut ScanState,
    ) -> Result<(), Stop> {
        if !state.missing.is_empty() {
            return self.gather(cx, job, op, state);
        }
        // All that has been listed is visited.
        state.fetched.clear();
        self.list_away(cx, op, state)
    }

    /// Fetches the next rows that are away from their present owners.
    pub(crate) fn gather(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        op: &ScanOp,
        state: &mut ScanState,
    ) -> Result<(), Stop> {
        if state.asked > 0 {
            return Err(Stop::Wait(Wait::Fetch));
        }
        let next = state.next_missing(op);
        let stuck = |key| self.hindrance(key).or_else(|| self.standstill(cx, key));
        if let Some(reason) = next.iter().find_map(stuck) {
            return Err(Stop::aborted(reason));
        }
        let mut by_owner: BTreeMap<ShardId, Vec<Key>> = BTreeMap::new();
        let mut waits = false;
        for key in next {
            let asked = state.missing.get_mut(&key).expect("it is missing");
            let Some(entry) = self.home.table.get(&key) else {
                // The row has come home.
                state.missing.remove(&key);
                continue;
            };
            match entry.owner {
                Some(owner) if *asked != Some(owner) || entry.grant.is_none() => {
                    *asked = Some(owner);
                    by_owner.entry(owner).or_default().push(key);
                }
                Some(_) | None => waits = true,
            }
        }
        if !by_owner.is_empty() {
            state.window = (2 * state.window).min(WINDOW_MAX);
        }
        for (to, keys) in by_owner {
            self.fetch(cx, job, op, to, keys);
            state.asked += 1;
        }
        if state.asked > 0 {
            Err(Stop::Wait(Wait::Fetch))
        } else if waits {
            Err(Stop::Wait(Wait::Moving))
        } else {
            Ok(())
        }
    }

    /// Sends a fetch of rows of the scan to their owner.
    fn fetch(&mut self, cx: &mut Cx<'_>, job: &Job, op: &ScanOp, to: ShardId, keys: Vec<Key>) {
        let lock = match op.read {
            Read::Snapshot(_) => None,
            Read::Lock(mode) | Read::LockRows { mode, .. } | Read::TryLock { mode, .. } => {
                Some(mode)
            }
        };
        self.next_number += 1;
        let (number, snapshot) = (self.next_number, op.read.snapshot());
        let fetch = Fetch {
            txn: job.txn,
            options: job.options,
            number,
            at: snapshot.map(|snapshot| snapshot.at),
            guarded: snapshot.is_some_and(|snapshot| snapshot.is_guarded()),
            lock,
            keys,
        };
        let fetching = Fetching {
            job: job.id,
            to,
            fetch,
        };
        self.fetches.begin(number, fetching, cx.now, true);
        if lock.is_some() {
            if let Some(visit) = self.visits.get_mut(job.txn)
                && to != job.txn.shard
                && !visit.fetched_from.contains(&to)
            {
                visit.fetched_from.push(to);
            }
            if let (Origin::Local { .. }, Some(txn)) =
                (job.origin, self.coord.txns.get_mut(&job.txn))
            {
                txn.note_asked(to);
            }
        }
        self.send_fetch(cx, number);
    }
}

/// The first key of what is ahead of a scan, in the order of keys, and the one behind the last.
pub(crate) fn ahead_of(op: &ScanOp) -> (Key, Key) {
    let (low, high) = match op.slots {
        Slots::One(slot) => (slot, Slot(slot.0 + 1)),
        Slots::All => (Slot(0), Slot(SLOT_COUNT)),
    };
    let key = |slot| Key::new(op.index, slot, Vec::new());
    let (low, high) = (key(low), key(high));
    match &op.after {
        None => (low, high),
        Some((slot, after)) => {
            let after = Key::new(op.index, *slot, after.clone());
            match op.reverse {
                false => (low.max(after), high),
                true => (low, high.min(after)),
            }
        }
    }
}

/// Whether a range may be asked for: its ends are in order.
fn is_range((low, high): (Bound<&Key>, Bound<&Key>)) -> bool {
    match (low, high) {
        (Bound::Included(low), Bound::Included(high) | Bound::Excluded(high)) => low <= high,
        (Bound::Excluded(_) | Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
    }
}

/// The next key in the order of the scan.
fn next_of<'a>(
    keys: &mut impl DoubleEndedIterator<Item = &'a Key>,
    op: &ScanOp,
) -> Option<&'a Key> {
    match op.reverse {
        false => keys.next(),
        true => keys.next_back(),
    }
}
