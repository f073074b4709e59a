//! Digests of ranges, to compare copies and to compare a recovered store with the lost one.

use crate::store::{Store, Window};
use base::lookup::FixedHasher;
use base::{IndexId, KeyRange, Slot, Ts};
use core::hash::Hasher;
use core::ops::ControlFlow;

impl<S: Default> Store<S> {
    /// A digest of index, slots, keys, rows and commit timestamps that are visible at `at` inside
    /// `range`, in `slot` or in all slots. It depends on nothing else: not on the shape of the
    /// trees, on older versions or on tombstones. The digests of disjoint parts add up (wrapping)
    /// to the digest of the whole. Not meant against an adversary.
    pub fn digest(&self, index: IndexId, slot: Option<Slot>, range: &KeyRange, at: Ts) -> u64 {
        let Some(first) = slot.or_else(|| self.next_slot(index, Slot(0))) else {
            return 0;
        };
        let mut total = 0u64;
        let mut current = Some(first);
        while let Some(here) = current {
            let _ = self.scan_next(
                index,
                here,
                Window::of(range, false),
                at,
                &mut |key, row, ts| {
                    total = total.wrapping_add(row_digest(index, here, key, row, ts));
                    ControlFlow::Continue(())
                },
            );
            current = if slot.is_some() {
                None
            } else {
                self.next_slot(index, Slot(here.0 + 1))
            };
        }
        total
    }

    /// The digest of all rows of all key spaces that are visible at `at`.
    pub fn digest_all(&self, at: Ts) -> u64 {
        let all = KeyRange::all();
        let digests = self
            .indexes()
            .into_iter()
            .map(|index| self.digest(index, None, &all, at));
        digests.fold(0, u64::wrapping_add)
    }
}

fn row_digest(index: IndexId, slot: Slot, key: &[u8], row: &[u8], commit_ts: Ts) -> u64 {
    let mut hasher = FixedHasher::default();
    hasher.write_u32(index.0);
    hasher.write_u16(slot.0);
    hasher.write(key);
    hasher.write(row);
    hasher.write_u64(commit_ts.0);
    // The sum over rows needs well-mixed bits in every term.
    let mut mixed = hasher.finish();
    mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}
