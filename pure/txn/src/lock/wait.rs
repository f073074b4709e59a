//! Waiting: which requests may wait, which die, and which is next.

use super::point::PointKey;
use super::table::{
    Conflict, Holder, Holders, Item, LockEvent, LockRequest, LockTable, Owner, PointEntry,
    RangeLock, Settled,
};
use super::{Claim, LockMode, Priority};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use base::{IndexId, KeyRange, Planted, Slot, Time, TxnId, is_planted};
use core::cmp::Reverse;
use core::ops::{Bound, ControlFlow};

/// Number of times that a waiter is overtaken before it insists on its turn. A larger one costs
/// fewer deaths of younger transactions; a smaller one lets old ones wait less.
pub const OVERTAKEN_MAX: u32 = 16;

/// An [`Item`] that owns its key.
#[derive(Clone, Debug)]
pub(super) enum OwnedItem {
    Point(PointKey),
    Range(IndexId, Option<Slot>, KeyRange),
    Shard,
}

impl OwnedItem {
    pub(super) fn as_item(&self) -> Item<'_> {
        match self {
            OwnedItem::Point(point) => point.item(),
            OwnedItem::Range(index, slot, range) => Item::Range {
                index: *index,
                slot: *slot,
                range,
            },
            OwnedItem::Shard => Item::Shard,
        }
    }
}

/// A request that waits.
#[derive(Clone, Debug)]
pub(super) struct Waiter {
    pub(super) txn: Priority,
    pub(super) item: OwnedItem,
    pub(super) claim: Claim,
    pub(super) alone: bool,
    pub(super) ordered: bool,
    pub(super) overtaken: u32,
    pub(super) deadline: Option<Time>,
    pub(super) since: Time,
    /// Its entry in `LockTable::looks`, if it has one.
    pub(super) look_at: Option<Time>,
    pub(super) request: u64,
}

impl Waiter {
    pub(super) fn new(request: &LockRequest<'_, Claim>, alone: bool) -> Waiter {
        let item = match request.item {
            Item::Point { index, slot, key } => OwnedItem::Point(PointKey::new(index, slot, key)),
            Item::Range { index, slot, range } => OwnedItem::Range(index, slot, range.clone()),
            Item::Shard => OwnedItem::Shard,
        };
        Waiter {
            txn: request.txn,
            item,
            claim: request.mode,
            alone,
            ordered: request.ordered,
            overtaken: 0,
            deadline: request.deadline,
            since: request.now,
            look_at: None,
            request: request.request,
        }
    }

    /// Whether the request may wait for older transactions.
    pub(super) fn waits_for_any(&self) -> bool {
        self.alone || self.ordered
    }

    /// Whether the request must not wait for this lock.
    fn dies_of(&self, holder: &Holder) -> bool {
        let out_of_order = self.claim.mode == LockMode::Fold && !self.ordered && holder.ordered;
        let dies = holder.txn > self.txn || out_of_order;
        !self.waits_for_any() && dies && !is_planted(Planted::YoungerWaits)
    }

    /// Whether younger transactions overtake the request no more.
    fn insists(&self) -> bool {
        self.txn.urgent || self.overtaken >= OVERTAKEN_MAX
    }
}

/// What a request gets as things stand.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Grant,
    Wait,
    Die(Conflict),
}

impl LockTable {
    /// Judges a request that arrived as `arrival`; see the table in the module's documentation.
    pub(super) fn judge(&self, waiter: &Waiter, arrival: u64) -> Verdict {
        self.judge_by(waiter, arrival, self.dies_of_none(waiter))
    }

    /// As [`LockTable::judge`], for a request that waits: it has survived all holders of before,
    /// and dies of a new one when that is granted.
    fn judge_again(&self, waiter: &Waiter, arrival: u64) -> Verdict {
        self.judge_by(waiter, arrival, waiter.claim.mode != LockMode::Fold)
    }

    /// `any`: the waiter dies of no holder, so the first one settles that it waits. The rows of a
    /// range that one transaction holds may be millions.
    fn judge_by(&self, waiter: &Waiter, arrival: u64, any: bool) -> Verdict {
        let item = waiter.item.as_item();
        let txn = waiter.txn;
        let die = |holder: TxnId| {
            Verdict::Die(Conflict {
                key: item.example(),
                holder,
            })
        };
        let wide = !matches!(item, Item::Point { .. });
        let (mut blocked, mut older) = (false, None);
        let _ = self.find_holder(&item, waiter.claim, txn.txn, &mut |holder| {
            blocked = true;
            if waiter.dies_of(holder) && !self.is_ending(holder.txn.txn) {
                older = Some(holder.txn.txn);
            }
            match any || (wide && older.is_some()) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        if let Some(holder) = older {
            return die(holder);
        }
        if blocked {
            return Verdict::Wait;
        }
        let insists = waiter.insists();
        self.each_waiter(&item, waiter.claim, txn.txn, &mut |other_arrival, other| {
            if waiter.alone {
                let before = if other.waits_for_any() {
                    other_arrival < arrival
                } else {
                    !insists
                };
                blocked |= before;
            } else if self.is_held_up_by(other, txn.txn) {
                // That one waits for this transaction already, so nothing changes for it.
            } else if waiter.ordered {
                blocked |= !other.ordered || other_arrival < arrival;
            } else if other.insists() && other.txn > txn {
                older = Some(other.txn.txn);
            } else {
                blocked |= !insists && !other.waits_for_any() && other.txn < txn;
            }
        });
        match older {
            Some(holder) => die(holder),
            None if blocked => Verdict::Wait,
            None => Verdict::Grant,
        }
    }

    /// A transaction for which a request waits: one that holds a lock in its way, else one that
    /// waits before it for the same.
    fn waited_for(&self, arrival: u64) -> TxnId {
        let waiter = &self.waiters[&arrival];
        let (item, own) = (waiter.item.as_item(), waiter.txn.txn);
        let mut first = None;
        let _ = self.find_holder(&item, waiter.claim, own, &mut |holder| {
            first = Some(holder.txn.txn);
            ControlFlow::Break(())
        });
        if first.is_none() {
            self.each_waiter(&item, waiter.claim, own, &mut |_, other| {
                first = first.or(Some(other.txn.txn));
            });
        }
        first.unwrap_or(own)
    }

    /// Whether `txn` holds a lock that `waiter` waits for.
    fn is_held_up_by(&self, waiter: &Waiter, txn: TxnId) -> bool {
        if !self.owners.contains(&txn) {
            return false;
        }
        let item = waiter.item.as_item();
        let holder = waiter.txn.txn;
        let found = self.find_holder(
            &item,
            waiter.claim,
            holder,
            &mut |holder| match holder.txn.txn == txn {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            },
        );
        found.is_break()
    }

    /// Whether no holder here has a lock that the request would die of.
    fn dies_of_none(&self, waiter: &Waiter) -> bool {
        let wide = !matches!(waiter.item, OwnedItem::Point(_));
        let older = |txn: &TxnId, owner: &Owner| {
            let priority = self.priority_of(*txn, owner);
            priority.is_none_or(|holder| holder > waiter.txn) && !self.is_ending(*txn)
        };
        waiter.waits_for_any()
            || (wide && waiter.claim.mode != LockMode::Fold && !self.owners.any(older))
    }

    /// The priority of a transaction, by any lock that it holds or wants here.
    fn priority_of(&self, txn: TxnId, owner: &Owner) -> Option<Priority> {
        let of = |holders: &[Holder]| {
            let own = holders.iter().find(|holder| holder.txn.txn == txn);
            own.map(|holder| holder.txn)
        };
        let point = owner.points.iter().next();
        let waiting = owner.waiting.first();
        point
            .and_then(|point| of(self.points.get(point)?.holders.as_slice()))
            .or_else(|| waiting.map(|arrival| self.waiters[arrival].txn))
            .or_else(|| of(&self.shard))
            .or_else(|| {
                let locks = self.ranges.get(owner.ranges.first()?)?.iter();
                let own = locks.map(|lock| lock.holder.txn);
                own.into_iter().find(|priority| priority.txn == txn)
            })
            .or_else(|| Some(self.runs.holder_at(*owner.runs.first()?, txn)?.txn))
    }

    /// Calls `f` with every lock of another transaction that conflicts with `claim` on `item`.
    pub(super) fn each_holder(
        &self,
        item: &Item<'_>,
        claim: Claim,
        txn: TxnId,
        f: &mut dyn FnMut(&Holder),
    ) {
        let _ = self.find_holder(item, claim, txn, &mut |holder| {
            f(holder);
            ControlFlow::Continue(())
        });
    }

    /// As [`LockTable::each_holder`], until `f` breaks.
    pub(super) fn find_holder(
        &self,
        item: &Item<'_>,
        claim: Claim,
        txn: TxnId,
        f: &mut dyn FnMut(&Holder) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.pass_holders(item, |holder| {
            let Some(holder) = holder else {
                return ControlFlow::Continue(());
            };
            #[cfg(test)]
            self.looked_at.set(self.looked_at.get() + 1);
            match holder.txn.txn != txn && holder.claim.conflicts(claim) {
                true => f(holder),
                false => ControlFlow::Continue(()),
            }
        })
    }

    /// Calls `pass` with every lock on `item`, until it breaks; with `None` for each lock that was
    /// looked at and is not on `item`.
    pub(super) fn pass_holders(
        &self,
        item: &Item<'_>,
        mut pass: impl FnMut(Option<&Holder>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.shard.iter().map(Some).try_for_each(&mut pass)?;
        self.pass_ranges(item, &mut pass)?;
        self.runs.each(item, &mut |holder| pass(Some(holder)))?;
        match *item {
            Item::Point { index, slot, key } => {
                if let Some(entry) = self.points.get(&PointKey::new(index, slot, key)) {
                    let holders = entry.holders.as_slice().iter();
                    holders.map(Some).try_for_each(pass)?;
                }
            }
            Item::Range { index, slot, range } => {
                let from = PointKey::new(index, slot.unwrap_or_default(), &range.low);
                for (point, entry) in self.points.range((Bound::Included(from), Bound::Unbounded)) {
                    let beyond = slot.is_some_and(|slot| {
                        slot != point.slot
                            || range
                                .high
                                .as_deref()
                                .is_some_and(|high| high <= point.key())
                    });
                    if point.index != index || beyond {
                        break;
                    }
                    if range.contains(point.key()) {
                        let holders = entry.holders.as_slice().iter();
                        holders.map(Some).try_for_each(&mut pass)?;
                    } else {
                        pass(None)?;
                    }
                }
            }
            Item::Shard => {
                let mut entries = self.points.values();
                entries.try_for_each(|entry| {
                    let holders = entry.holders.as_slice().iter();
                    holders.map(Some).try_for_each(&mut pass)
                })?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Calls `pass` with the lock of every held range of the index, or shard, that overlaps `item`,
    /// and with `None` for every other, until it breaks.
    fn pass_ranges(
        &self,
        item: &Item<'_>,
        pass: &mut dyn FnMut(Option<&Holder>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.ranges.is_empty() {
            return ControlFlow::Continue(());
        }
        let visit = |(place, locks): (&(IndexId, Option<Slot>), &Vec<RangeLock>)| {
            locks.iter().try_for_each(|lock| {
                let range = Item::Range {
                    index: place.0,
                    slot: place.1,
                    range: &lock.range,
                };
                pass(range.overlaps(item).then_some(&lock.holder))
            })
        };
        match *item {
            Item::Point { index, slot, .. }
            | Item::Range {
                index,
                slot: Some(slot),
                ..
            } => [(index, None), (index, Some(slot))]
                .iter()
                .filter_map(|place| Some((place, self.ranges.get(place)?)))
                .try_for_each(visit),
            Item::Range {
                index, slot: None, ..
            } => {
                let all = (index, None)..=(index, Some(Slot(u16::MAX)));
                self.ranges.range(all).try_for_each(visit)
            }
            Item::Shard => self.ranges.iter().try_for_each(visit),
        }
    }

    /// Calls `f` with every waiter of another transaction that conflicts with `claim` on `item`.
    pub(super) fn each_waiter(
        &self,
        item: &Item<'_>,
        claim: Claim,
        txn: TxnId,
        f: &mut dyn FnMut(u64, &Waiter),
    ) {
        let mut offer = |arrival: u64| {
            let waiter = &self.waiters[&arrival];
            if waiter.txn.txn != txn
                && waiter.claim.conflicts(claim)
                && waiter.item.as_item().overlaps(item)
            {
                f(arrival, waiter);
            }
        };
        match *item {
            Item::Point { index, slot, key } => {
                if self.waiters.is_empty() {
                    return;
                }
                if let Some(entry) = self.points.get(&PointKey::new(index, slot, key)) {
                    entry.queue.iter().copied().for_each(&mut offer);
                }
                self.wide_waiters.iter().copied().for_each(offer);
            }
            Item::Range { .. } | Item::Shard => self.waiters.keys().copied().for_each(offer),
        }
    }

    pub(super) fn enqueue(&mut self, arrival: u64, waiter: Waiter) {
        if !waiter.alone {
            self.expose_rows(&waiter.item.as_item());
        }
        match &waiter.item {
            OwnedItem::Point(point) => {
                let entry = self
                    .points
                    .entry(point.clone())
                    .or_insert_with(|| PointEntry {
                        holders: Holders::None,
                        queue: Vec::new(),
                    });
                entry.queue.push(arrival);
            }
            OwnedItem::Range(..) | OwnedItem::Shard => self.wide_waiters.push(arrival),
        }
        if let Some(deadline) = waiter.deadline {
            self.timeouts.insert((deadline, arrival));
        }
        self.owner(waiter.txn.txn).waiting.push(arrival);
        let mut waiter = waiter;
        waiter.look_at = waiter.first_look();
        self.looks.extend(waiter.look_at.map(|at| (at, arrival)));
        self.waiters.insert(arrival, waiter);
    }

    /// Takes a waiter out of its queue; the caller takes it out of its transaction's list.
    pub(super) fn dequeue(&mut self, arrival: u64) -> Waiter {
        let waiter = self
            .waiters
            .remove(&arrival)
            .expect("a queued request waits");
        match &waiter.item {
            OwnedItem::Point(point) => {
                let entry = self.points.get_mut(point).expect("a queue has an entry");
                entry.queue.retain(|queued| *queued != arrival);
                if entry.queue.is_empty() && entry.holders.as_slice().is_empty() {
                    self.points.remove(point);
                }
            }
            OwnedItem::Range(..) | OwnedItem::Shard => {
                self.wide_waiters.retain(|queued| *queued != arrival);
            }
        }
        if let Some(deadline) = waiter.deadline {
            self.timeouts.remove(&(deadline, arrival));
        }
        if let Some(at) = waiter.look_at {
            self.looks.remove(&(at, arrival));
        }
        waiter
    }

    /// Takes a waiter out of its queue, and out of its transaction's list.
    fn unlist(&mut self, arrival: u64) -> Waiter {
        let waiter = self.dequeue(arrival);
        let owner = self.owner(waiter.txn.txn);
        owner.waiting.retain(|queued| *queued != arrival);
        waiter
    }

    /// Forgets a transaction that holds and wants nothing.
    pub(super) fn forget_idle(&mut self, txn: TxnId) {
        let idle = self.owners.get(&txn).is_some_and(|owner| {
            owner.points.is_empty()
                && owner.runs.is_empty()
                && owner.ranges.is_empty()
                && !owner.shard
                && owner.waiting.is_empty()
        });
        if idle {
            self.owners.remove(&txn);
        }
    }

    /// Removes a waiter that does not get its lock.
    pub(super) fn drop_waiter(&mut self, arrival: u64) -> Waiter {
        let waiter = self.unlist(arrival);
        self.forget_idle(waiter.txn.txn);
        waiter
    }

    /// Ends a wait with an event.
    fn finish(&mut self, arrival: u64, settled: Settled) -> Waiter {
        let waiter = self.unlist(arrival);
        let txn = waiter.txn.txn;
        if settled != Settled::Granted {
            self.forget_idle(txn);
        }
        let request = waiter.request;
        self.events.push(LockEvent {
            request,
            txn,
            since: waiter.since,
            settled,
        });
        waiter
    }

    /// Counts for each waiter of the same that `granted` has passed it.
    fn overtake(&mut self, granted: &Waiter) {
        let mut passed = Vec::new();
        let item = granted.item.as_item();
        self.each_waiter(&item, granted.claim, granted.txn.txn, &mut |arrival, _| {
            passed.push(arrival);
        });
        for arrival in passed {
            let waiter = self.waiters.get_mut(&arrival).expect("just seen");
            waiter.overtaken = waiter.overtaken.saturating_add(1);
        }
    }

    /// Judges each waiter that one of `freed` may have held up, until nothing changes.
    pub(super) fn settle(&mut self, mut freed: Vec<OwnedItem>) {
        while !freed.is_empty() && !self.waiters.is_empty() {
            let mut candidates = BTreeSet::new();
            for item in freed.drain(..) {
                self.affected(&item.as_item(), &mut candidates);
            }
            let mut order: Vec<u64> = candidates.into_iter().collect();
            order.sort_by_cached_key(|arrival| turn(*arrival, &self.waiters[arrival]));
            // A row just granted exclusively: no other transaction in its queue needs to be judged.
            let mut taken: Option<(PointKey, TxnId)> = None;
            for arrival in order {
                let Some(waiter) = self.waiters.get(&arrival) else {
                    continue;
                };
                if let (OwnedItem::Point(point), Some((taken, by))) = (&waiter.item, &taken)
                    && point == taken
                    && waiter.txn.txn != *by
                {
                    continue;
                }
                match self.judge_again(waiter, arrival) {
                    Verdict::Wait => {}
                    Verdict::Grant => {
                        if waiter.claim.mode == LockMode::Exclusive
                            && let OwnedItem::Point(point) = &waiter.item
                        {
                            taken = Some((point.clone(), waiter.txn.txn));
                        }
                        self.grant(arrival, &mut freed);
                    }
                    Verdict::Die(conflict) => {
                        freed.push(self.finish(arrival, Settled::Died(conflict)).item);
                    }
                }
            }
        }
    }

    /// Each waiter for a part of `item`.
    fn affected(&self, item: &Item<'_>, into: &mut BTreeSet<u64>) {
        let overlaps = |arrival: &&u64| self.waiters[*arrival].item.as_item().overlaps(item);
        match *item {
            Item::Point { index, slot, key } => {
                if let Some(entry) = self.points.get(&PointKey::new(index, slot, key)) {
                    into.extend(&entry.queue);
                }
                into.extend(self.wide_waiters.iter().filter(overlaps));
            }
            Item::Range { .. } | Item::Shard => into.extend(self.waiters.keys().filter(overlaps)),
        }
    }

    /// Grants a waiter its lock, and kills younger ones that would now wait for it.
    fn grant(&mut self, arrival: u64, freed: &mut Vec<OwnedItem>) {
        let granted = self.finish(arrival, Settled::Granted);
        self.enter(&granted, freed);
    }

    /// Enters a lock that was just granted. Waiters that it passes count that, or die of it.
    pub(super) fn enter(&mut self, granted: &Waiter, freed: &mut Vec<OwnedItem>) {
        self.hold(granted);
        if self.waiters.is_empty() {
            return;
        }
        self.overtake(granted);
        let mut victims = Vec::new();
        let item = granted.item.as_item();
        self.each_waiter(
            &item,
            granted.claim,
            granted.txn.txn,
            &mut |arrival, waiter| {
                if !waiter.waits_for_any() && waiter.txn < granted.txn {
                    victims.push(arrival);
                }
            },
        );
        for victim in victims {
            let key = self.waiters[&victim].item.as_item().example();
            let conflict = Conflict {
                key,
                holder: granted.txn.txn,
            };
            freed.push(self.finish(victim, Settled::Died(conflict)).item);
        }
    }

    /// The transaction is exposed: it holds a lock or has another request on some shard. If it now
    /// waits for an older one, it dies ([`LockTable::take_events`]).
    pub fn expose(&mut self, txn: TxnId) {
        let Some(owner) = self.owners.get(&txn) else {
            return;
        };
        let waiting = owner.waiting.clone();
        let mut freed = Vec::new();
        for arrival in waiting {
            let waiter = self
                .waiters
                .get_mut(&arrival)
                .expect("a listed request waits");
            if !core::mem::replace(&mut waiter.alone, false) {
                continue;
            }
            match self.judge(&self.waiters[&arrival], arrival) {
                Verdict::Wait => {
                    let item = self.waiters[&arrival].item.clone();
                    self.expose_rows(&item.as_item());
                }
                Verdict::Grant => self.grant(arrival, &mut freed),
                Verdict::Die(conflict) => {
                    freed.push(self.finish(arrival, Settled::Died(conflict)).item);
                }
            }
        }
        self.settle(freed);
    }

    /// Ends the waits whose deadline has passed ([`Settled::TimedOut`]), and names readers for
    /// which others have waited ([`LockTable::take_in_the_way`]).
    pub fn expire(&mut self, now: Time) {
        let mut freed = Vec::new();
        while let Some(&(at, arrival)) = self.timeouts.first() {
            if at > now {
                break;
            }
            let conflict = Conflict {
                key: self.waiters[&arrival].item.as_item().example(),
                holder: self.waited_for(arrival),
            };
            freed.push(self.finish(arrival, Settled::TimedOut(conflict)).item);
        }
        self.settle(freed);
        self.look_for_readers(now);
    }
}

/// Rank of a waiter, the first in turn smallest: see the module's documentation.
fn turn(arrival: u64, waiter: &Waiter) -> (u8, Reverse<Option<Priority>>, Option<Priority>, u64) {
    if waiter.insists() {
        (0, Reverse(Some(waiter.txn)), None, arrival)
    } else if !waiter.waits_for_any() {
        (1, Reverse(None), Some(waiter.txn), arrival)
    } else {
        (2, Reverse(None), None, arrival)
    }
}
