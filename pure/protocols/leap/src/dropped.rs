//! Rows of dropped indexes: homes and owners forget them.
//!
//! ```text
//! home of a row   no grant under way: the entry goes   ──Forget(keys)──> owner: forgets them too
//! ```
//!
//! Each move of a row is decided at its home, so no shard asks the owner for a row that the home
//! has forgotten. The home waits for rows under way. A `Forget` that is lost leaves a few bytes at
//! the owner, until the owner restarts and claims the row, and the home refuses the claim. A
//! restarted shard does not take an unknown index for dropped: its catalog may be behind.

use crate::message::Body;
use crate::owner::Tenure;
use crate::{Cx, Leap};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{IndexId, Key, ShardId, Slot, Ts};
use journal::Otag;
use txn::bulk::Wanted;

/// The row from which on a home forgets rows of an index. `None`: the first one.
pub(crate) type Place = Option<Key>;

/// Result of a turn.
enum Turn {
    /// All rows are forgotten.
    Done,
    /// There are more, from this one on.
    More(Key),
    /// Some rows are under way: a later round looks for them.
    Later,
}

impl Leap {
    /// The catalog of this shard does not know the index any more, and its rows are removed.
    pub(crate) fn forget_rows(&mut self, cx: &mut Cx<'_>, index: IndexId) {
        self.home.dropped.insert(index, None);
        self.sharing.forget_index(index);
        self.forget_dropped(cx);
    }

    /// Forgets rows of dropped indexes, and sets a timer for those that are under way.
    pub(crate) fn forget_dropped(&mut self, cx: &mut Cx<'_>) {
        self.home.dropped_again.stop();
        let mut left = self.settings.slice_units;
        let mut in_us = self.settings.resend_us;
        for (index, from) in core::mem::take(&mut self.home.dropped) {
            match self.forget_entries(cx, index, from, &mut left) {
                Turn::Done => {}
                Turn::More(key) => {
                    self.home.dropped.insert(index, Some(key));
                    in_us = 1;
                }
                Turn::Later => drop(self.home.dropped.insert(index, None)),
            }
        }
        let later = core::mem::take(&mut self.owner.forgotten);
        self.on_forget(cx, later);
        if !self.home.dropped.is_empty() || !self.owner.forgotten.is_empty() {
            self.home.dropped_again.set_by(cx.now.after(in_us));
        }
    }

    /// Forgets rows of an index that are away from this home, a slice a turn.
    fn forget_entries(
        &mut self,
        cx: &mut Cx<'_>,
        index: IndexId,
        from: Place,
        left: &mut u64,
    ) -> Turn {
        if !self.rejoin.is_serving() {
            return Turn::Later;
        }
        // Rows that an earlier turn passed over are under way: a later round looks for them.
        let mut quiet = from.is_none();
        let mut more = None;
        let mut by_owner: BTreeMap<ShardId, Vec<(Key, Otag)>> = BTreeMap::new();
        for (key, entry) in self
            .home
            .table
            .range(from.unwrap_or_else(|| first_key(index))..)
        {
            if key.index != index {
                break;
            }
            if *left == 0 {
                more = Some(key.clone());
                break;
            }
            *left -= 1;
            cx.counters.units += 1;
            match entry.owner {
                Some(owner)
                    if entry.grant.is_none()
                        && !entry.lost
                        && !self.home.settling_of.contains_key(key) =>
                {
                    let keys = by_owner.entry(owner).or_default();
                    keys.push((key.clone(), entry.otag));
                }
                Some(_) | None => quiet = false,
            }
        }
        for (owner, keys) in by_owner {
            for (key, _) in &keys {
                self.home.table.remove(key);
            }
            self.say(cx, owner, Body::Forget(keys));
        }
        match (more, quiet) {
            (Some(key), _) => Turn::More(key),
            (None, true) => Turn::Done,
            (None, false) => Turn::Later,
        }
    }

    /// The home of these rows has forgotten them.
    pub(crate) fn on_forget(&mut self, cx: &mut Cx<'_>, keys: Vec<(Key, Otag)>) {
        for (key, otag) in keys {
            let owned = self.owner.held.get(&key).is_some_and(|held| {
                held.otag == otag && matches!(held.tenure, Tenure::Owned { .. })
            });
            if !owned {
                continue;
            }
            // A transaction that has written the row cannot commit any more, but is not over.
            let written = |txn: &crate::txns::Txn| txn.written.get(&key).is_some();
            let installed = self.bulks.awaits(Ts::MAX, Wanted::Row(&key));
            let pending = installed
                || self.pendings.formulas.has(&key)
                || self.owner.release_of(&key).is_some();
            if pending || self.coord.txns.values().any(|txn| written(txn)) {
                if self.owner.forgotten.is_empty() && self.home.dropped.is_empty() {
                    let at = cx.now.after(self.settings.resend_us);
                    self.home.dropped_again.set_by(at);
                }
                self.owner.forgotten.push((key, otag));
                continue;
            }
            self.owner.held.remove(&key);
            cx.store.evict(&key);
        }
    }
}

pub(crate) fn first_key(index: IndexId) -> Key {
    Key::new(index, Slot(0), Vec::new())
}
