//! Versions that a snapshot would miss: above it, and there when its reader came.

use crate::store::{Store, Window};
use base::{IndexId, KeyRef, Slot, Ts};
use core::ops::ControlFlow;

impl<S: Default> Store<S> {
    /// Timestamp of the newest version of a row that is above `at` and not above `bound`,
    /// tombstones included.
    #[inline]
    pub fn newer<'k>(&self, key: impl Into<KeyRef<'k>>, at: Ts, bound: Ts) -> Option<Ts> {
        let key: KeyRef<'_> = key.into();
        let tree = self.tree(key.index, key.slot)?;
        if tree.newest() <= at {
            return None;
        }
        let (leaf, i) = tree.locate(key.bytes)?;
        let found = leaf.version(i, bound).map(|(commit_ts, _)| commit_ts);
        found.filter(|commit_ts| *commit_ts > at)
    }

    /// Whether a row in `window` has a version above `at` and not above `bound`, tombstones
    /// included. Takes one comparison if nothing was written in the slot since `at`. Else it checks
    /// as many rows as `budget` has left, and returns `true` when that is used up.
    pub fn has_newer(
        &self,
        index: IndexId,
        slot: Slot,
        window: Window<'_>,
        at: Ts,
        bound: Ts,
        budget: &mut u32,
    ) -> bool {
        let Some(tree) = self.tree(index, slot).filter(|tree| tree.newest() > at) else {
            return false;
        };
        let flow = tree.walk(window.bounds(), window.reverse, &mut |leaf, i| {
            let newer = || leaf.version(i, bound).is_some_and(|(ts, _)| ts > at);
            if *budget == 0 || (leaf.stamp(i) > at && newer()) {
                return ControlFlow::Break(());
            }
            *budget -= 1;
            ControlFlow::Continue(())
        });
        flow.is_break()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Store, Window, Write};
    use base::{IndexId, KeyRef, Slot, Ts};

    const INDEX: IndexId = IndexId(1);
    const SLOT: Slot = Slot(2);

    fn store() -> Store {
        let mut store = Store::new();
        for (key, ts) in [(b"a", 10), (b"b", 20), (b"c", 30)] {
            let write = Write::Insert(vec![1]);
            store.apply(KeyRef::new(INDEX, SLOT, key), &write, Ts(ts), Ts(5));
        }
        store.apply(
            KeyRef::new(INDEX, SLOT, b"a"),
            &Write::Delete,
            Ts(40),
            Ts(5),
        );
        store.apply(
            KeyRef::new(INDEX, SLOT, b"b"),
            &Write::Put(vec![2]),
            Ts(50),
            Ts(5),
        );
        store
    }

    #[test]
    fn versions_between_snapshot_and_bound_are_found() {
        let store = store();
        let newer =
            |key: &[u8], at, bound| store.newer(KeyRef::new(INDEX, SLOT, key), Ts(at), Ts(bound));
        assert_eq!(newer(b"a", 30, 60), Some(Ts(40)));
        assert_eq!(newer(b"a", 40, 60), None);
        assert_eq!(newer(b"b", 10, 30), Some(Ts(20)));
        assert_eq!(newer(b"b", 20, 49), None);
        assert_eq!(newer(b"b", 60, 90), None);
        assert_eq!(newer(b"x", 0, 90), None);
    }

    #[test]
    fn a_range_is_searched_as_far_as_the_budget_goes() {
        let store = store();
        let has = |at, bound, mut budget: u32| {
            let window = Window::all();
            store.has_newer(INDEX, SLOT, window, Ts(at), Ts(bound), &mut budget)
        };
        assert!(has(30, 60, 9));
        assert!(has(25, 35, 9));
        assert!(!has(30, 39, 9));
        assert!(has(30, 39, 2), "too many rows to know");
        assert!(!has(50, 90, 0));
        assert!(!store.has_newer(INDEX, Slot(3), Window::all(), Ts(0), Ts(90), &mut 9));
    }
}
