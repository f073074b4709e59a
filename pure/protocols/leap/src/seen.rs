//! Which numbered things are over, in bounded memory.

use alloc::collections::BTreeSet;

/// Everything below `floor`, and what is in `done`, is over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen<T> {
    floor: T,
    done: BTreeSet<T>,
}

impl<T: Ord + Copy> Seen<T> {
    pub(crate) fn is_over(&self, number: T) -> bool {
        number < self.floor || self.done.contains(&number)
    }

    pub(crate) fn end(&mut self, number: T) {
        if number >= self.floor {
            self.done.insert(number);
        }
    }

    /// Everything below `floor` is over.
    pub(crate) fn raise(&mut self, floor: T) {
        if floor > self.floor {
            self.floor = floor;
            self.done = self.done.split_off(&floor);
        }
    }
}
