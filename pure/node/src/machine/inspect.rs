//! Questions of hosts, simulators and tests to a shard.

use super::Shard;
use base::{Key, KeyRange, ShardId, Slot, Ts};
use core::ops::ControlFlow;
use std::collections::BTreeMap;
use store::Window;
use txn::{Moves, Tracked};

impl Shard {
    /// Name of the shard.
    pub fn id(&self) -> ShardId {
        self.core.borrow().config.shard
    }

    /// Rows of other homes of which this shard is confirmed as the owner.
    pub fn rows_owned(&self) -> Vec<Key> {
        let core = self.core.borrow();
        let moving = core.protocols.moving().into_iter();
        moving.flat_map(|rows| rows.owned()).collect()
    }

    /// Rows of this home that are elsewhere, with their owners; `None`: under way.
    pub fn rows_away(&self) -> Vec<(Key, Option<ShardId>)> {
        let away = self.tracked().into_iter();
        away.map(|row| (row.key, row.owner.filter(|_| !row.leaves)))
            .collect()
    }

    /// Rows of this home that are elsewhere, with the shards that have them until an open move
    /// ends; `None`: this home.
    pub fn rows_tracked(&self) -> Vec<(Key, Option<ShardId>)> {
        let tracked = self.tracked().into_iter();
        tracked.map(|row| (row.key, row.owner)).collect()
    }

    fn tracked(&self) -> Vec<Tracked> {
        let core = self.core.borrow();
        let moving = core.protocols.moving().into_iter();
        moving.flat_map(|rows| rows.tracked()).collect()
    }

    /// Rows of this home that are on their way: key, receiver, and life of the receiver's node.
    pub fn rows_under_way(&self) -> Vec<(Key, ShardId, u32)> {
        let core = self.core.borrow();
        let moving = core.protocols.moving().into_iter();
        moving.flat_map(|rows| rows.under_way()).collect()
    }

    /// Incarnation of the shard's node.
    pub fn incarnation(&self) -> u32 {
        self.core.borrow().config.incarnation
    }

    /// Whether this shard has a row of another home, as owner (confirmed or not) or as backup.
    pub fn has_row(&self, key: &Key) -> bool {
        let core = self.core.borrow();
        core.protocols.moving().iter().any(|rows| rows.has(key))
    }

    /// Whether this shard owns a row of a database whose rows move.
    pub fn owns(&self, key: &Key) -> bool {
        let core = self.core.borrow();
        core.protocols.moving().iter().any(|rows| rows.owns(key))
    }

    /// Rows that this shard has given and taken, under the protocol that moves rows.
    pub fn moves(&self) -> Moves {
        self.core.borrow().protocols.moves()
    }

    /// Checks the invariants of all parts; panics with a description of a broken one.
    pub fn validate(&self) {
        let core = self.core.borrow();
        core.store.validate();
        core.protocols.validate(&core.store);
    }

    /// As [`Shard::validate`] for what is open: locks, promises, write sets and decisions. Skipped
    /// if there are too many locks. Cheap enough for a server now and then.
    pub fn validate_open(&self) {
        self.core.borrow().protocols.validate_open();
    }

    /// What is under way here, for people: transactions, locks, decisions.
    pub fn describe(&self) -> String {
        let core = self.core.borrow();
        let parts = self.parts().into_iter().filter(|(_, idle)| !idle);
        let open: Vec<&str> = parts.map(|(name, _)| name).collect();
        let open = open.join(", ");
        format!(
            "{} statements; open: {open}\n{}",
            self.txns.len(),
            core.protocols
        )
    }

    /// Whether each part that may have something to do is idle.
    pub(super) fn parts(&self) -> [(&'static str, bool); 10] {
        let idle_protocols = self.core.borrow().protocols.is_idle();
        [
            ("transactions", self.txns.len() == 0),
            ("protocols", idle_protocols),
            ("schema changes", self.ddl.is_idle()),
            ("a switch of protocols", !self.switch.is_open()),
            ("quiescing", !self.quiescing.wants_look()),
            ("asked changes", self.ddl_asked.is_empty()),
            ("a takeover", !self.takeover.wants_look()),
            ("messages ahead", self.ahead.is_empty()),
            ("a checkpoint", self.checkpoint.is_none()),
            ("a wanted checkpoint", self.checkpoint_wanted.is_none()),
        ]
    }

    /// A digest of all rows visible at `at`, in any order, without copies of rows that other shards
    /// own.
    pub fn digest(&self, at: Ts) -> u64 {
        let core = self.core.borrow();
        let copy = |key: &Key| {
            let (low, mut high) = (key.bytes.clone(), key.bytes.clone());
            high.push(0);
            let only = KeyRange {
                low,
                high: Some(high),
            };
            core.store.digest(key.index, Some(key.slot), &only, at)
        };
        let copied = self.copied();
        copied
            .iter()
            .map(copy)
            .fold(core.store.digest_all(at), u64::wrapping_sub)
    }

    /// All rows visible at `at` with their commit timestamps, without copies of rows that other
    /// shards own. Copies them all.
    pub fn rows(&self, at: Ts) -> BTreeMap<Key, (Ts, Vec<u8>)> {
        let core = self.core.borrow();
        let mut rows = BTreeMap::new();
        for index in core.store.indexes() {
            let mut from = Slot(0);
            while let Some(slot) = core.store.next_slot(index, from) {
                from = Slot(slot.0 + 1);
                let _ =
                    core.store
                        .scan_next(index, slot, Window::all(), at, &mut |key, row, ts| {
                            rows.insert(Key::new(index, slot, key.to_vec()), (ts, row.to_vec()));
                            ControlFlow::Continue(())
                        });
            }
        }
        for key in self.copied() {
            rows.remove(&key);
        }
        rows
    }

    /// Rows in the store that other shards own.
    fn copied(&self) -> Vec<Key> {
        let core = self.core.borrow();
        let moving = core.protocols.moving().into_iter();
        moving.flat_map(|rows| rows.copied()).collect()
    }
}
