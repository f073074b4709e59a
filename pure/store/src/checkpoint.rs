//! The walk that writes a checkpoint while transactions go on.

use crate::store::{Store, Window};
use alloc::vec::Vec;
use base::{IndexId, Slot, Ts};
use core::ops::ControlFlow;

/// The newest version of one row, as a checkpoint holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckpointRow<'a> {
    /// Key space.
    pub index: IndexId,
    /// Bucket of the partition key.
    pub slot: Slot,
    /// Encoded key.
    pub key: &'a [u8],
    /// Timestamp of the newest version.
    pub commit_ts: Ts,
    /// The encoded row; `None` is a tombstone that was not yet collected.
    pub value: Option<&'a [u8]>,
}

/// Where a checkpoint walk goes on. Stays valid whatever happens to the store in between.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CheckpointCursor {
    index: IndexId,
    slot: Slot,
    /// Last key written in this slot; `None`: none yet.
    after: Option<Vec<u8>>,
}

impl<S: Default> Store<S> {
    /// Calls `f` with the newest version of each further row, in order of (index, slot, key),
    /// until about `budget_bytes` of keys and rows were visited. Returns whether the walk is
    /// complete.
    ///
    /// Rows that are written between two calls appear with their old or new version, or not at all
    /// if they came or went. The journal from the position at which the walk began makes the
    /// checkpoint consistent (see [`Store::redo`]).
    pub fn checkpoint_next(
        &self,
        cursor: &mut CheckpointCursor,
        budget_bytes: usize,
        f: &mut dyn FnMut(CheckpointRow<'_>),
    ) -> bool {
        let mut left = budget_bytes.max(1);
        for (&index, _) in self.indexes.range(cursor.index..) {
            if index != cursor.index {
                *cursor = CheckpointCursor {
                    index,
                    ..CheckpointCursor::default()
                };
            }
            while let Some(slot) = self.next_slot(index, cursor.slot) {
                if slot != cursor.slot {
                    *cursor = CheckpointCursor {
                        index,
                        slot,
                        after: None,
                    };
                }
                if self.checkpoint_slot(cursor, &mut left, f).is_break() {
                    return false;
                }
                *cursor = CheckpointCursor {
                    index,
                    slot: Slot(slot.0 + 1),
                    after: None,
                };
            }
        }
        true
    }

    fn checkpoint_slot(
        &self,
        cursor: &mut CheckpointCursor,
        left: &mut usize,
        f: &mut dyn FnMut(CheckpointRow<'_>),
    ) -> ControlFlow<()> {
        let (index, slot) = (cursor.index, cursor.slot);
        let Some(tree) = self.tree(index, slot) else {
            return ControlFlow::Continue(());
        };
        let after = cursor.after.take();
        let low = after.as_deref().unwrap_or_default();
        let window = Window {
            low,
            after: after.is_some(),
            ..Window::all()
        };
        let mut scratch = [0; 8];
        let mut last = None;
        let flow = tree.walk(window.bounds(), false, &mut |leaf, i| {
            let (commit_ts, value) = (leaf.stamp(i), leaf.value(i));
            let key = leaf.key(i, &mut scratch);
            f(CheckpointRow {
                index,
                slot,
                key,
                commit_ts,
                value,
            });
            let size = key.len() + value.map_or(0, <[u8]>::len) + 1;
            if size < *left {
                *left -= size;
                return ControlFlow::Continue(());
            }
            last = Some(key.to_vec());
            ControlFlow::Break(())
        });
        cursor.after = last;
        flow
    }
}
