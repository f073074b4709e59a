//! The lock table of one shard: which transaction holds what; granting and releasing.

use super::bulk::{Found, Place, Runs};
use super::point::PointKey;
use super::wait::{Verdict, Waiter};
use super::{Claim, LockMode, Priority};
use crate::reason::InTheWay;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use base::{IndexId, Key, KeyRange, LookupMap, Pieces, Planted, Slot, Time, TxnId, is_planted};

/// Rows that a lock covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Item<'a> {
    /// One row, present or absent.
    Point {
        /// Key space.
        index: IndexId,
        /// Bucket.
        slot: Slot,
        /// Encoded key.
        key: &'a [u8],
    },
    /// All keys of a range, present or absent.
    Range {
        /// Key space.
        index: IndexId,
        /// One bucket, or all of them.
        slot: Option<Slot>,
        /// Keys inside each bucket.
        range: &'a KeyRange,
    },
    /// Everything on the shard.
    Shard,
}

impl<'a> Item<'a> {
    /// The row `key`.
    pub fn of(key: &'a Key) -> Item<'a> {
        Item::Point {
            index: key.index,
            slot: key.slot,
            key: &key.bytes,
        }
    }

    /// Whether some key lies in both items.
    pub fn overlaps(&self, other: &Item<'_>) -> bool {
        match (self, other) {
            (Item::Shard, _) | (_, Item::Shard) => true,
            (
                Item::Point { index, slot, key },
                Item::Point {
                    index: other_index,
                    slot: other_slot,
                    key: other_key,
                },
            ) => index == other_index && slot == other_slot && key == other_key,
            (
                Item::Point { index, slot, key },
                Item::Range {
                    index: range_index,
                    slot: range_slot,
                    range,
                },
            )
            | (
                Item::Range {
                    index: range_index,
                    slot: range_slot,
                    range,
                },
                Item::Point { index, slot, key },
            ) => {
                index == range_index
                    && range_slot.is_none_or(|range_slot| range_slot == *slot)
                    && range.contains(key)
            }
            (
                Item::Range { index, slot, range },
                Item::Range {
                    index: other_index,
                    slot: other_slot,
                    range: other_range,
                },
            ) => {
                index == other_index
                    && (slot.is_none() || other_slot.is_none() || slot == other_slot)
                    && range.overlaps(other_range)
            }
        }
    }

    /// Whether all keys of `other` lie in `self`.
    fn covers(&self, other: &Item<'_>) -> bool {
        match (self, other) {
            (Item::Shard, _) => true,
            (Item::Range { .. }, Item::Point { .. }) | (Item::Point { .. }, Item::Point { .. }) => {
                self.overlaps(other)
            }
            (
                Item::Range { index, slot, range },
                Item::Range {
                    index: other_index,
                    slot: other_slot,
                    range: inner,
                },
            ) => {
                index == other_index
                    && (slot.is_none() || slot == other_slot)
                    && range.low <= inner.low
                    && match (&range.high, &inner.high) {
                        (None, _) => true,
                        (Some(_), None) => false,
                        (Some(high), Some(inner_high)) => inner_high <= high,
                    }
            }
            (Item::Point { .. } | Item::Range { .. }, _) => false,
        }
    }

    /// A key that stands for the item in messages to the user.
    pub(super) fn example(&self) -> Key {
        match self {
            Item::Point { index, slot, key } => Key::new(*index, *slot, key.to_vec()),
            Item::Range { index, slot, range } => {
                Key::new(*index, slot.unwrap_or_default(), range.low.clone())
            }
            Item::Shard => Key::new(IndexId(0), Slot(0), Vec::new()),
        }
    }
}

/// A request for one lock.
#[derive(Clone, Copy, Debug)]
pub struct LockRequest<'a, C = LockMode> {
    /// Transaction that asks.
    pub txn: Priority,
    /// Rows to lock.
    pub item: Item<'a>,
    /// Strength: a [`LockMode`], or a [`Claim`].
    pub mode: C,
    /// Whether the transaction holds no lock on any shard and has no other request outstanding:
    /// then it may wait whatever its age. [`LockTable::expose`] tells the end of that.
    pub alone: bool,
    /// Whether this asks for [`LockMode::Fold`] at the commit, in ascending order of shards and
    /// keys like all such requests of the transaction, which then waits for nothing else until its
    /// end. So it may wait whatever its age. A fold that is not `ordered` never waits for one that
    /// is.
    pub ordered: bool,
    /// When the wait ends; `None`: no limit.
    pub deadline: Option<Time>,
    /// Time of the step, from which the wait counts.
    pub now: Time,
    /// Number that the event repeats; unique among the requests that wait.
    pub request: u64,
}

impl<'a, C> LockRequest<'a, C> {
    /// A request without deadline of a transaction that may hold other locks.
    #[inline]
    pub fn new(
        txn: Priority,
        item: Item<'a>,
        mode: C,
        now: Time,
        request: u64,
    ) -> LockRequest<'a, C> {
        LockRequest {
            txn,
            item,
            mode,
            alone: false,
            ordered: false,
            deadline: None,
            now,
            request,
        }
    }
}

impl<'a, C: Into<Claim>> LockRequest<'a, C> {
    fn claimed(self) -> LockRequest<'a, Claim> {
        LockRequest {
            txn: self.txn,
            item: self.item,
            mode: self.mode.into(),
            alone: self.alone,
            ordered: self.ordered,
            deadline: self.deadline,
            now: self.now,
            request: self.request,
        }
    }
}

/// The transaction in the way of one that died or waited too long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// Key that was wanted (for a range: its lower bound).
    pub key: Key,
    /// The transaction that holds the lock or waits before the other: an older one, if that died.
    pub holder: TxnId,
}

/// The answer to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Acquired {
    /// The lock is held, until [`LockTable::release`].
    Granted,
    /// A [`LockEvent`] will come.
    Waiting,
    /// Wait-die: the transaction must be rolled back.
    Died(Conflict),
}

/// How a wait ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Settled {
    /// The lock is held.
    Granted,
    /// Wait-die: the transaction must be rolled back.
    Died(Conflict),
    /// The deadline passed.
    TimedOut(Conflict),
}

/// The end of a wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockEvent {
    /// Number of the request.
    pub request: u64,
    /// Transaction that waited.
    pub txn: TxnId,
    /// When the wait began.
    pub since: Time,
    /// How the wait ended.
    pub settled: Settled,
}

/// A lock that is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Holder {
    pub(super) txn: Priority,
    pub(super) claim: Claim,
    /// See [`LockRequest::ordered`].
    pub(super) ordered: bool,
}

/// The holders of one row: nearly always one, which then needs no allocation.
#[derive(Clone, Debug)]
pub(super) enum Holders {
    None,
    One(Holder),
    Many(Vec<Holder>),
}

impl Holders {
    #[inline]
    pub(super) fn as_slice(&self) -> &[Holder] {
        match self {
            Holders::None => &[],
            Holders::One(holder) => core::slice::from_ref(holder),
            Holders::Many(holders) => holders,
        }
    }

    /// Adds a holder, or strengthens its lock. Returns whether the transaction is new here.
    fn add(&mut self, holder: Holder) -> bool {
        match self {
            Holders::None => {
                *self = Holders::One(holder);
                true
            }
            Holders::One(one) if one.txn.txn == holder.txn.txn => {
                one.claim = one.claim.join(holder.claim);
                one.ordered |= holder.ordered;
                false
            }
            Holders::One(one) => {
                *self = Holders::Many(alloc::vec![*one, holder]);
                true
            }
            Holders::Many(many) => strengthen(many, holder),
        }
    }

    pub(super) fn remove(&mut self, txn: TxnId) {
        match self {
            Holders::None => {}
            Holders::One(one) if one.txn.txn == txn => *self = Holders::None,
            Holders::One(_) => {}
            Holders::Many(many) => {
                many.retain(|holder| holder.txn.txn != txn);
                if let [one] = many[..] {
                    *self = Holders::One(one);
                }
            }
        }
    }
}

fn strengthen(holders: &mut Vec<Holder>, holder: Holder) -> bool {
    match holders
        .iter_mut()
        .find(|held| held.txn.txn == holder.txn.txn)
    {
        Some(held) => {
            held.claim = held.claim.join(holder.claim);
            held.ordered |= holder.ordered;
            false
        }
        None => {
            holders.push(holder);
            true
        }
    }
}

/// One locked row.
#[derive(Clone, Debug)]
pub(super) struct PointEntry {
    pub(super) holders: Holders,
    /// Arrival numbers of the requests for exactly this row, ascending.
    pub(super) queue: Vec<u64>,
}

/// A range that is held.
#[derive(Clone, Debug)]
pub(super) struct RangeLock {
    pub(super) range: KeyRange,
    pub(super) holder: Holder,
}

/// What one transaction holds and wants on this shard.
#[derive(Default, Debug)]
pub(super) struct Owner {
    pub(super) points: Pieces<PointKey>,
    /// Places of its runs.
    pub(super) runs: Vec<Place>,
    pub(super) ranges: Vec<(IndexId, Option<Slot>)>,
    pub(super) shard: bool,
    pub(super) waiting: Vec<u64>,
    /// Since when requests have died of its shared locks; moved on when it is named.
    pub(super) deaths_since: Option<Time>,
}

/// The locks of one shard.
///
/// Cost: a free row is locked and released in about 100 ns without allocating (keys of at most 22
/// bytes, tree nodes aside). Contended requests cost in proportion to the waiters of the item.
#[derive(Debug)]
pub struct LockTable {
    pub(super) points: BTreeMap<PointKey, PointEntry>,
    pub(super) runs: Runs,
    pub(super) ranges: BTreeMap<(IndexId, Option<Slot>), Vec<RangeLock>>,
    pub(super) shard: Vec<Holder>,
    /// All waiting requests, by arrival number.
    pub(super) waiters: BTreeMap<u64, Waiter>,
    /// Arrival numbers of the requests for ranges or the shard, ascending.
    pub(super) wide_waiters: Vec<u64>,
    pub(super) owners: LookupMap<TxnId, Owner>,
    pub(super) timeouts: BTreeSet<(Time, u64)>,
    /// When the table looks for readers in the way of each request.
    pub(super) looks: BTreeSet<(Time, u64)>,
    /// See [`LockTable::take_in_the_way`].
    pub(super) in_the_way: Vec<InTheWay>,
    pub(super) events: Vec<LockEvent>,
    /// See [`LockTable::begin_patience`] and [`LockTable::take_exposed`].
    pub(super) patient: BTreeSet<PointKey>,
    pub(super) exposed: Vec<PointKey>,
    /// Owners of ended transactions: their vectors keep their memory.
    pub(super) spare: Vec<Owner>,
    arrivals: u64,
    /// See [`RUNS_FROM`]; smaller in tests.
    pub(super) runs_from: usize,
    /// Transactions that are over and whose rows are freed in slices, the next one first.
    pub(super) leaving: VecDeque<TxnId>,
    /// Transactions that are over and wait for nothing, but still hold locks.
    pub(super) ending: BTreeSet<TxnId>,
    /// Number of rows of such a slice.
    pub(super) slice_rows: usize,
    /// Number of held locks that were looked at.
    #[cfg(test)]
    pub(super) looked_at: core::cell::Cell<u64>,
}

/// Number of rows from which on a transaction loads many: further rows go into runs.
const RUNS_FROM: usize = 256;

impl Default for LockTable {
    fn default() -> Self {
        LockTable::new()
    }
}

impl LockTable {
    /// An empty table.
    pub fn new() -> LockTable {
        LockTable {
            points: BTreeMap::new(),
            runs: Runs::default(),
            ranges: BTreeMap::new(),
            shard: Vec::new(),
            waiters: BTreeMap::new(),
            wide_waiters: Vec::new(),
            owners: LookupMap::new(),
            timeouts: BTreeSet::new(),
            looks: BTreeSet::new(),
            in_the_way: Vec::new(),
            events: Vec::new(),
            patient: BTreeSet::new(),
            exposed: Vec::new(),
            spare: Vec::new(),
            arrivals: 0,
            runs_from: RUNS_FROM,
            leaving: VecDeque::new(),
            ending: BTreeSet::new(),
            slice_rows: crate::bulk::SLICE_UNITS as usize,
            #[cfg(test)]
            looked_at: core::cell::Cell::new(0),
        }
    }

    /// Asks for a lock. A lock that the transaction holds already, by itself or as part of a larger
    /// one, is granted again. One with another claim becomes [`Claim::join`] of both, if it can.
    ///
    /// May also end the wait of another request of the transaction that was alone until now, so
    /// [`LockTable::take_events`] is to be called afterwards.
    pub fn acquire<C: Into<Claim>>(&mut self, request: LockRequest<'_, C>) -> Acquired {
        self.acquire_noting(request, &mut false)
    }

    /// As [`LockTable::acquire`]; sets `first` if the lock is granted on a row of which the
    /// transaction held no part before. So it has not written there.
    pub fn acquire_noting<C: Into<Claim>>(
        &mut self,
        request: LockRequest<'_, C>,
        first: &mut bool,
    ) -> Acquired {
        let request = request.claimed();
        self.finish_leaving(request.txn.txn);
        if let Item::Point { index, slot, key } = request.item
            && !self.is_near_wide(index, slot)
        {
            if self.acquire_free_point(PointKey::new(index, slot, key), &request, first) {
                return Acquired::Granted;
            }
        } else if self.holds(request.txn.txn, &request.item, request.mode) {
            return Acquired::Granted;
        }
        self.acquire_contended(request)
    }

    /// Whether a lock or waiter for more than a row may concern rows of this bucket.
    #[inline]
    fn is_near_wide(&self, index: IndexId, slot: Slot) -> bool {
        if is_planted(Planted::InsertPastRanges) {
            return false;
        }
        if !self.shard.is_empty() || !self.wide_waiters.is_empty() {
            return true;
        }
        !self.ranges.is_empty()
            && (self.ranges.contains_key(&(index, None))
                || self.ranges.contains_key(&(index, Some(slot))))
    }

    /// Grants a row that no other transaction wants or that several may hold. The caller knows that
    /// no wider lock or waiter concerns the row.
    #[inline]
    fn acquire_free_point(
        &mut self,
        point: PointKey,
        request: &LockRequest<'_, Claim>,
        first: &mut bool,
    ) -> bool {
        use alloc::collections::btree_map::Entry;
        let txn = request.txn.txn;
        let exclusive = request.mode.mode() == LockMode::Exclusive && !request.ordered;
        let (has_run, open) = match self.runs.look(&point, txn) {
            Found::Held { own } => return own,
            Found::Free { has_run, open } => (has_run, open.filter(|_| exclusive)),
        };
        let holder = Holder {
            txn: request.txn,
            claim: request.mode,
            ordered: request.ordered,
        };
        match self.points.entry(point) {
            Entry::Vacant(entry) => {
                *first = true;
                if let Some(run) = open {
                    run.rows.push(entry.into_key());
                    return true;
                }
                if exclusive
                    && !has_run
                    && let Some(owner) = self.owners.get_mut(&txn)
                    && owner.points.len() >= self.runs_from
                    && owner.waiting.is_empty()
                {
                    owner.runs.push(self.runs.begin(entry.into_key(), holder));
                    return true;
                }
                let point = entry.key().clone();
                entry.insert(PointEntry {
                    holders: Holders::One(holder),
                    queue: Vec::new(),
                });
                self.note_point(txn, point);
                true
            }
            Entry::Occupied(mut entry) => {
                let mut free = entry.get().queue.is_empty();
                let mut own = entry.get().holders.as_slice().iter();
                let pushes =
                    is_planted(Planted::UpgradePastReaders) && own.any(|held| held.txn.txn == txn);
                for held in entry.get().holders.as_slice() {
                    if held.txn.txn == request.txn.txn {
                        if held.claim.covers(request.mode) {
                            return true;
                        }
                    } else if held.claim.conflicts(request.mode) && !pushes {
                        free = false;
                    }
                }
                if !free {
                    return false;
                }
                if entry.get_mut().holders.add(holder) {
                    let point = entry.key().clone();
                    self.note_point(request.txn.txn, point);
                }
                true
            }
        }
    }

    #[inline]
    fn note_point(&mut self, txn: TxnId, point: PointKey) {
        let spare = &mut self.spare;
        let owner = self
            .owners
            .get_or_insert_with(txn, || spare.pop().unwrap_or_default());
        owner.points.push(point);
        if !owner.waiting.is_empty() {
            self.expose(txn);
        }
    }

    fn acquire_contended(&mut self, request: LockRequest<'_, Claim>) -> Acquired {
        let txn = request.txn.txn;
        let known = self.owners.contains(&txn);
        if known {
            self.expose(txn);
        }
        self.arrivals += 1;
        let arrival = self.arrivals;
        let waiter = Waiter::new(&request, request.alone && !known);
        match self.judge(&waiter, arrival) {
            Verdict::Grant => {
                let mut freed = Vec::new();
                self.enter(&waiter, &mut freed);
                self.settle(freed);
                Acquired::Granted
            }
            Verdict::Wait => {
                self.enqueue(arrival, waiter);
                Acquired::Waiting
            }
            Verdict::Die(conflict) => {
                self.note_death(&request);
                Acquired::Died(conflict)
            }
        }
    }

    /// Whether the transaction holds a lock that covers `claim` on all of `item`.
    pub fn holds(&self, txn: TxnId, item: &Item<'_>, claim: impl Into<Claim>) -> bool {
        let claim = claim.into();
        let Some(owner) = self.owners.get(&txn) else {
            return false;
        };
        let strong = |holder: &Holder| holder.txn.txn == txn && holder.claim.covers(claim);
        if owner.shard && self.shard.iter().any(strong) {
            return true;
        }
        if let Item::Point { index, slot, key } = item {
            let point = PointKey::new(*index, *slot, key);
            if self.runs.holder(&point).is_some_and(strong) {
                return true;
            }
            let entry = self.points.get(&point);
            if entry.is_some_and(|entry| entry.holders.as_slice().iter().any(strong)) {
                return true;
            }
        }
        owner.ranges.iter().any(|place| {
            self.ranges.get(place).into_iter().flatten().any(|lock| {
                let outer = Item::Range {
                    index: place.0,
                    slot: place.1,
                    range: &lock.range,
                };
                strong(&lock.holder) && outer.covers(item)
            })
        })
    }

    /// Whether a request would be granted at once without overtaking another: for a transaction
    /// that ends in the same step and so needs no entry here.
    pub fn is_free(&self, txn: TxnId, item: &Item<'_>, claim: impl Into<Claim>) -> bool {
        let claim = claim.into();
        let no_rows = self.points.is_empty() && self.runs.is_empty();
        if no_rows && self.ranges.is_empty() && self.shard.is_empty() {
            return self.waiters.is_empty();
        }
        self.in_the_way(txn, item, claim).is_none()
    }

    /// A transaction that holds a lock in the way of a request, or waits for one.
    pub fn in_the_way(
        &self,
        txn: TxnId,
        item: &Item<'_>,
        claim: impl Into<Claim>,
    ) -> Option<TxnId> {
        let (claim, mut found) = (claim.into(), None);
        self.each_holder(item, claim, txn, &mut |holder| found = Some(holder.txn.txn));
        if found.is_none() {
            let mut note = |_, waiter: &Waiter| found = Some(waiter.txn.txn);
            self.each_waiter(item, claim, txn, &mut note);
        }
        found
    }

    /// Calls `f` with every other open transaction that has incremented this row.
    pub fn each_incrementer(&self, txn: TxnId, key: &Key, f: &mut dyn FnMut(TxnId)) {
        if self.points.is_empty() {
            return;
        }
        let point = PointKey::new(key.index, key.slot, &key.bytes);
        let holders = self
            .points
            .get(&point)
            .map_or(&[][..], |entry| entry.holders.as_slice());
        for holder in holders {
            let increments = matches!(holder.claim.mode, LockMode::Increment | LockMode::Fold);
            if increments && holder.txn.txn != txn {
                f(holder.txn.txn);
            }
        }
    }

    /// Whether the transaction holds or awaits anything here.
    pub fn knows(&self, txn: TxnId) -> bool {
        self.owners.contains(&txn)
    }

    /// Enters a granted lock.
    pub(super) fn hold(&mut self, waiter: &Waiter) {
        let holder = Holder {
            txn: waiter.txn,
            claim: waiter.claim,
            ordered: waiter.ordered,
        };
        let txn = waiter.txn.txn;
        match waiter.item.as_item() {
            Item::Point { index, slot, key } => {
                let point = PointKey::new(index, slot, key);
                let entry = self
                    .points
                    .entry(point.clone())
                    .or_insert_with(|| PointEntry {
                        holders: Holders::None,
                        queue: Vec::new(),
                    });
                if entry.holders.add(holder) {
                    self.note_point(txn, point);
                }
            }
            Item::Range { index, slot, range } => {
                let locks = self.ranges.entry((index, slot)).or_default();
                locks.push(RangeLock {
                    range: range.clone(),
                    holder,
                });
                let owner = self.owner(txn);
                if !owner.ranges.contains(&(index, slot)) {
                    owner.ranges.push((index, slot));
                }
            }
            Item::Shard => {
                strengthen(&mut self.shard, holder);
                self.owner(txn).shard = true;
            }
        }
    }

    pub(super) fn owner(&mut self, txn: TxnId) -> &mut Owner {
        let spare = &mut self.spare;
        self.owners
            .get_or_insert_with(txn, || spare.pop().unwrap_or_default())
    }

    /// Frees the transaction's lock of one row, and keeps the others: for a row that moves to
    /// another shard and is locked there.
    ///
    /// Panics if `item` is not a row.
    pub fn release_item(&mut self, txn: TxnId, item: &Item<'_>) {
        let Item::Point { index, slot, key } = *item else {
            panic!("only rows are given up alone")
        };
        let point = PointKey::new(index, slot, key);
        let from_run = self.runs.remove_row(&point, txn);
        if from_run.is_none() {
            let Some(entry) = self.points.get_mut(&point) else {
                return;
            };
            entry.holders.remove(txn);
            if entry.holders.as_slice().is_empty() && entry.queue.is_empty() {
                self.points.remove(&point);
            }
        }
        if let Some(owner) = self.owners.get_mut(&txn) {
            match from_run {
                None => owner.points.retain(|held| *held != point),
                Some(true) => owner.runs.retain(|run| *run != Place::new(index, slot)),
                Some(false) => {}
            }
            let idle = owner.points.is_empty()
                && owner.runs.is_empty()
                && owner.ranges.is_empty()
                && !owner.shard
                && owner.waiting.is_empty();
            if idle {
                self.owners.remove(&txn);
            }
        }
        if !self.waiters.is_empty() {
            self.settle(Vec::from([super::wait::OwnedItem::Point(point)]));
        }
    }

    /// The ends of waits since the last call, in order.
    #[must_use]
    pub fn take_events(&mut self) -> Vec<LockEvent> {
        core::mem::take(&mut self.events)
    }

    /// Whether [`LockTable::take_events`] would return anything.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// When [`LockTable::expire`] is to be called next.
    pub fn deadline(&self) -> Option<Time> {
        let timeout = self.timeouts.first().into_iter();
        let both = timeout.chain(self.looks.first());
        both.map(|(at, _)| *at).min()
    }
}
