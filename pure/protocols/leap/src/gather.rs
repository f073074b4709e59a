//! Bringing the rows of an index home, before its database follows another protocol.

use crate::dropped::first_key;
use crate::{Cx, Leap};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{IndexId, Key};
use txn::Op;

impl Leap {
    /// Whether no row of the index is away or under way, as home, owner and requester know.
    pub(crate) fn is_gathered(&self, index: IndexId) -> bool {
        let at_work = self.jobs.values().any(|job| {
            let key = job.op.as_ref().and_then(Op::key);
            key.is_some_and(|key| key.index == index)
        });
        self.rejoin.is_settled()
            && !at_work
            && !self.bulks.writes_to(&[index])
            && keys_of(&self.home.table, index).next().is_none()
            && keys_of(&self.owner.held, index).next().is_none()
            && keys_of(&self.home.settling_of, index).next().is_none()
            && keys_of(self.requester.rows(), index).next().is_none()
            && keys_of(self.owner.leaving(), index).next().is_none()
            && !self.home.evictions.iter().any(|key| key.index == index)
            && self.sharing.is_unshared(index)
            && !self.pendings.has_index(index)
            && !self.owes(index)
    }
}

impl Leap {
    /// The rows of the index are at home, and follow another protocol from here on. A shard that
    /// has restarted meanwhile may have backups that no home knows: they go.
    pub(crate) fn leave_rows(&mut self, cx: &mut Cx<'_>, index: IndexId) {
        let left: Vec<Key> = keys_of(&self.owner.held, index).cloned().collect();
        for key in left {
            self.owner.forget(&key);
            cx.store.evict(&key);
        }
    }
}

pub(crate) fn keys_of<V>(map: &BTreeMap<Key, V>, index: IndexId) -> impl Iterator<Item = &Key> {
    let from = map.range(first_key(index)..).map(|(key, _)| key);
    from.take_while(move |key| key.index == index)
}
