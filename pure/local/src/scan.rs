//! What scans of all protocols share: the slots that they visit, what replaces rows of a slot, and
//! which versions their snapshot may miss.

use crate::write_set::WriteSet;
use alloc::vec::Vec;
use base::{Key, Slot, Ts};
use core::cmp::Ordering;
use core::iter::Peekable;
use store::{Store, Window};
use txn::{ScanOp, Slots};

/// Rows that a scan may check, in all its slots together, for versions that its snapshot misses: as
/// many as a step has time for. Beyond that, any write in a slot counts as missed. A smaller number
/// would refuse scans that miss nothing.
pub const SEARCH_ROWS_MAX: u32 = 4_096;

/// Whether a scan of the versions at `at` misses one above `at` and at most at `bound`, by a cheap
/// check.
pub fn misses(store: &Store, op: &ScanOp, at: Ts, bound: Ts) -> bool {
    if bound <= at {
        return false;
    }
    let window = Window::of(&op.range, op.reverse);
    let mut budget = SEARCH_ROWS_MAX;
    let mut misses = |slot| store.has_newer(op.index, slot, window, at, bound, &mut budget);
    match op.slots {
        Slots::One(slot) => misses(slot),
        Slots::All => store_slots(store, op, Slot(0)).any(misses),
    }
}

/// The slots of this shard's store in which the index has rows, ascending, from `from` on.
pub fn store_slots(store: &Store, op: &ScanOp, from: Slot) -> impl Iterator<Item = Slot> {
    let index = op.index;
    let mut from = from;
    core::iter::from_fn(move || {
        let slot = store.next_slot(index, from)?;
        from = Slot(slot.0 + 1);
        Some(slot)
    })
}

/// The slots in which the index has rows or the transaction writes, ascending.
pub fn slots_of(store: &Store, writes: Option<&WriteSet>, op: &ScanOp) -> Vec<Slot> {
    let mut slots: Vec<Slot> = store_slots(store, op, Slot(0)).collect();
    if let Some(writes) = writes {
        slots.extend(writes.slots(op.index));
        slots.sort_unstable();
        slots.dedup();
    }
    slots
}

/// Entries that replace rows of one slot, or lie between them, in the order of the scan.
pub struct Overlay<I: Iterator> {
    entries: Peekable<I>,
    reverse: bool,
}

impl<'a, T, I: Iterator<Item = (&'a Key, T)>> Overlay<I> {
    /// Entries in the order of keys, or against it if `reverse`.
    pub fn new(entries: I, reverse: bool) -> Overlay<I> {
        Overlay {
            entries: entries.peekable(),
            reverse,
        }
    }

    /// The next entry that lies before a row of the store or (`true`) replaces it. The caller takes
    /// all such entries before it visits the row.
    #[inline]
    pub fn up_to(&mut self, row: &[u8]) -> Option<(&'a Key, T, bool)> {
        let (key, _) = self.entries.peek()?;
        let order = key.bytes.as_slice().cmp(row);
        let order = if self.reverse { order.reverse() } else { order };
        if order == Ordering::Greater {
            return None;
        }
        let (key, entry) = self.entries.next()?;
        Some((key, entry, order == Ordering::Equal))
    }

    /// The next entry, behind all rows of the store.
    #[inline]
    pub fn rest(&mut self) -> Option<(&'a Key, T)> {
        self.entries.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;
    use base::{IndexId, KeyRange};
    use store::Write;
    use txn::{Program, Read, Snapshot};

    fn scan(slots: Slots) -> ScanOp {
        ScanOp {
            index: IndexId(1),
            slots,
            range: KeyRange::all(),
            reverse: false,
            read: Read::Snapshot(Snapshot::exactly(Ts(10))),
            program: Program::Encoded(Box::default()),
            row_limit: u64::MAX,
            batch_rows: 100,
            after: None,
        }
    }

    fn key(slot: u16, name: u32) -> Key {
        Key::new(IndexId(1), Slot(slot), name.to_be_bytes().to_vec())
    }

    /// Rows at 5 in two slots, `rows` in each, and one of another range at 20.
    fn store(rows: u32) -> Store {
        let mut store = Store::new();
        for slot in [3, 5] {
            for name in 0..rows {
                let write = Write::Insert(vec![1]);
                store.apply(&key(slot, name), &write, Ts(5), Ts(5));
            }
            let late = key(slot, u32::MAX);
            store.apply(&late, &Write::Insert(vec![2]), Ts(20), Ts(5));
        }
        store
    }

    #[test]
    fn a_scan_is_searched_for_missed_versions_as_far_as_its_budget_goes() {
        let before = |slots| ScanOp {
            range: KeyRange {
                low: Vec::new(),
                high: Some(u32::MAX.to_be_bytes().to_vec()),
            },
            ..scan(slots)
        };
        let (at, bound) = (Ts(10), Ts(30));
        let one = Slots::One(Slot(3));
        assert!(misses(&store(4), &scan(one), at, bound));
        assert!(!misses(&store(4), &scan(one), at, Ts(19)));
        assert!(!misses(&store(4), &scan(one), Ts(20), bound));
        // The writes lie in other ranges, which is checked for thousands of rows.
        let many = store(3_000);
        assert!(!misses(&many, &before(one), at, bound));
        assert!(misses(&many, &before(Slots::All), at, bound), "too many");
    }

    #[test]
    fn entries_come_in_their_places() {
        let names = [1, 4, 5, 9];
        for reverse in [false, true] {
            let mut entries: Vec<(Key, u32)> = names.map(|name| (key(0, name), name)).to_vec();
            let mut rows = vec![2u32, 4, 6];
            if reverse {
                entries.reverse();
                rows.reverse();
            }
            let entries = entries.iter().map(|(key, name)| (key, *name));
            let mut overlay = Overlay::new(entries, reverse);
            let mut seen = Vec::new();
            for row in rows {
                let mut replaced = false;
                while let Some((_, name, replaces)) = overlay.up_to(&row.to_be_bytes()) {
                    seen.push((name, true));
                    replaced |= replaces;
                    if replaces {
                        break;
                    }
                }
                if !replaced {
                    seen.push((row, false));
                }
            }
            while let Some((_, name)) = overlay.rest() {
                seen.push((name, true));
            }
            let own = |name| (name, true);
            let mut expected = [own(1), (2, false), own(4), own(5), (6, false), own(9)];
            if reverse {
                expected.reverse();
            }
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn slots_are_those_of_rows_and_of_own_writes() {
        let mut writes = WriteSet::default();
        for slot in [4, 3, 9] {
            writes.add(key(slot, 7), Write::Delete);
        }
        let slots = |writes| slots_of(&store(1), writes, &scan(Slots::All));
        assert_eq!(slots(None), [Slot(3), Slot(5)]);
        let both = [Slot(3), Slot(4), Slot(5), Slot(9)];
        assert_eq!(slots(Some(&writes)), both);
    }
}
