//! Prints the lock table in canonical order, and checks it.

use super::table::{Holder, Item, LockTable};
use super::wait::{Verdict, Waiter};
use super::{Claim, LockMode};
use base::{IndexId, Slot};
use core::fmt;

fn letter(claim: Claim) -> &'static str {
    match (claim.mode, claim.is_mixed()) {
        (LockMode::Shared, _) => "S",
        (LockMode::Increment, false) => "I",
        (LockMode::Increment, true) => "SI",
        (LockMode::Fold, false) => "F",
        (LockMode::Fold, true) => "SF",
        (LockMode::Exclusive, _) => "X",
    }
}

fn write_range(
    f: &mut fmt::Formatter<'_>,
    index: IndexId,
    slot: Option<Slot>,
    range: &base::KeyRange,
) -> fmt::Result {
    match slot {
        Some(slot) => write!(f, "i{}/{}/{:?}", index.0, slot.0, range),
        None => write!(f, "i{}/*/{:?}", index.0, range),
    }
}

fn write_waiter(f: &mut fmt::Formatter<'_>, waiter: &Waiter) -> fmt::Result {
    let alone = match (waiter.alone, waiter.ordered) {
        (true, _) => " alone",
        (false, true) => " ordered",
        (false, false) => "",
    };
    write!(
        f,
        " wait {} {}{alone}",
        letter(waiter.claim),
        waiter.txn.txn
    )
}

impl fmt::Display for LockTable {
    /// One line per row, range and waiter for something larger than a row.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let holders = |f: &mut fmt::Formatter<'_>, holders: &[Holder]| {
            let mut sorted = holders.to_vec();
            sorted.sort_by_key(|holder| holder.txn.txn);
            sorted
                .iter()
                .try_for_each(|h| write!(f, " {} {}", letter(h.claim), h.txn.txn))
        };
        if !self.shard.is_empty() {
            f.write_str("lock shard:")?;
            holders(f, &self.shard)?;
            f.write_str("\n")?;
        }
        for (place, locks) in &self.ranges {
            for lock in locks {
                f.write_str("lock ")?;
                write_range(f, place.0, place.1, &lock.range)?;
                writeln!(f, ": {} {}", letter(lock.holder.claim), lock.holder.txn.txn)?;
            }
        }
        for (place, run) in self.runs.iter() {
            write!(f, "lock {} rows in ", run.rows.len())?;
            write_range(f, place.index(), Some(place.slot()), &run.range())?;
            writeln!(f, ": {} {}", letter(run.holder.claim), run.holder.txn.txn)?;
        }
        for (point, entry) in &self.points {
            write!(f, "lock {:?}:", point.to_key())?;
            holders(f, entry.holders.as_slice())?;
            entry
                .queue
                .iter()
                .try_for_each(|arrival| write_waiter(f, &self.waiters[arrival]))?;
            f.write_str("\n")?;
        }
        for arrival in &self.wide_waiters {
            let waiter = &self.waiters[arrival];
            f.write_str("lock ")?;
            match waiter.item.as_item() {
                Item::Range { index, slot, range } => write_range(f, index, slot, range)?,
                Item::Point { .. } | Item::Shard => f.write_str("shard")?,
            }
            f.write_str(":")?;
            write_waiter(f, waiter)?;
            f.write_str("\n")?;
        }
        Ok(())
    }
}

impl LockTable {
    /// Checks every invariant; panics if one is broken. Costs O(locks^2): for tests and simulation.
    ///
    /// No two locks conflict; a waiter that is not alone waits for younger holders only; every
    /// waiter has a reason to wait; every lock is noted at its owner.
    pub fn validate(&self) {
        for (point, entry) in &self.points {
            let holders = entry.holders.as_slice();
            assert!(
                !holders.is_empty() || !entry.queue.is_empty(),
                "an unused entry is removed"
            );
            for holder in holders {
                self.validate_holder(&point.item(), holder);
                let owner = self
                    .owners
                    .get(&holder.txn.txn)
                    .expect("a lock has an owner");
                assert_eq!(owner.points.iter().filter(|held| *held == point).count(), 1);
            }
        }
        self.validate_runs();
        for (place, locks) in &self.ranges {
            assert!(!locks.is_empty(), "an unused list of ranges is removed");
            for lock in locks {
                let item = Item::Range {
                    index: place.0,
                    slot: place.1,
                    range: &lock.range,
                };
                self.validate_holder(&item, &lock.holder);
                let owner = self
                    .owners
                    .get(&lock.holder.txn.txn)
                    .expect("a lock has an owner");
                assert!(owner.ranges.contains(place));
            }
        }
        for holder in &self.shard {
            self.validate_holder(&Item::Shard, holder);
        }
        for (arrival, waiter) in &self.waiters {
            assert_ne!(
                self.judge(waiter, *arrival),
                Verdict::Grant,
                "{waiter:?} has a reason"
            );
            self.each_holder(
                &waiter.item.as_item(),
                waiter.claim,
                waiter.txn.txn,
                &mut |holder| {
                    let downwards = waiter.waits_for_any()
                        || waiter.txn > holder.txn
                        || self.is_ending(holder.txn.txn);
                    assert!(downwards, "{waiter:?} waits for the older {holder:?}");
                },
            );
            let owner = self
                .owners
                .get(&waiter.txn.txn)
                .expect("a waiter has an owner");
            assert!(owner.waiting.contains(arrival));
        }
        self.validate_patience();
    }

    fn validate_runs(&self) {
        for (place, run) in self.runs.iter() {
            assert_eq!(run.holder.claim.mode, LockMode::Exclusive);
            let ascend = run.rows.windows(2).all(|pair| pair[0] < pair[1]);
            assert!(ascend, "the rows of a run ascend");
            for row in &run.rows {
                assert_eq!((row.index, row.slot), (place.index(), place.slot()));
                self.validate_holder(&row.item(), &run.holder);
                let entry = self.points.get(row);
                let free = entry.is_none_or(|entry| entry.holders.as_slice().is_empty());
                assert!(free, "{row:?} is held in one place");
            }
            let owner = self.owners.get(&run.holder.txn.txn);
            let owner = owner.expect("a run has an owner");
            assert_eq!(owner.runs.iter().filter(|held| *held == place).count(), 1);
        }
    }

    fn validate_holder(&self, item: &Item<'_>, holder: &Holder) {
        self.each_holder(item, holder.claim, holder.txn.txn, &mut |other| {
            panic!("{other:?} and {holder:?} hold {item:?} at once");
        });
    }

    /// Number of rows, ranges and waiters. [`LockTable::validate`] may take time in proportion to
    /// its square.
    pub fn len(&self) -> usize {
        self.points.len() + self.ranges.len() + self.waiters.len()
    }

    /// Whether nothing is held and no request waits.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
            && self.runs.is_empty()
            && self.ranges.is_empty()
            && self.shard.is_empty()
            && self.waiters.is_empty()
    }
}
