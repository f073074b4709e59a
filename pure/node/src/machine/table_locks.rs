//! A shard's part in locks of tables: it tells node 1 which of its sessions are in the way of a
//! request, and holds back statements that come (docs/adr/0044-table-locks-in-the-catalog.md).

use super::Shard;
use crate::ddl::ASKED_US;
use crate::message::{Message, WireMessage};
use base::{Position, ShardId, Time};
use session::message::{LockAsk, Quiesce};
use std::collections::BTreeMap;

/// Shortest time, in microseconds, between two looks at the sessions.
const LOOK_US: u64 = 2_000;

/// What was told of requests for locks.
#[derive(Default)]
pub(super) struct LocksTold {
    /// Sessions in the way, by request, as node 1 was told last; `None`: it was not told.
    pub(super) told: BTreeMap<u64, Option<Vec<i32>>>,
    /// When sessions are looked at next.
    next_look: Time,
    /// The catalog in use is not acknowledged yet.
    pub(super) owed: bool,
}

impl LocksTold {
    pub(super) fn wants_look(&self) -> bool {
        self.owed || !self.told.is_empty()
    }

    /// When sessions are looked at again.
    pub(super) fn deadline(&self) -> Option<Time> {
        let awaited = |told: &Option<Vec<i32>>| !told.as_ref().is_some_and(|it| it.is_empty());
        let mut told = self.told.values();
        told.any(awaited).then_some(self.next_look)
    }
}

impl Shard {
    /// Asks all shards who is in the way of a request for locks, or tells that it is over.
    pub(super) fn ask_locks(&mut self, number: u64, lock: Option<LockAsk>) {
        let (catalog, here) = {
            let core = self.core.borrow();
            (core.catalog.clone(), core.config.shard)
        };
        for shard in catalog.placement.shards() {
            if *shard != here {
                let lock = lock.clone();
                let message = Message::Wire(WireMessage::LocksAsked { number, lock });
                self.core.borrow_mut().send(*shard, message, Position(0));
            }
        }
        self.on_locks_asked(number, lock);
    }

    /// A shard tells which of its sessions are in the way of a request.
    pub(super) fn on_in_way(&mut self, from: ShardId, number: u64, sessions: Vec<i32>) {
        self.ddl.on_in_the_way(from, number, sessions);
    }

    /// A session, perhaps of another shard, wants to lock tables.
    pub(super) fn on_locks_asked(&mut self, number: u64, lock: Option<LockAsk>) {
        let now = self.core.borrow().now;
        let Some(lock) = lock else {
            self.quiescing.retain(|quiesce| quiesce.version != number);
            return;
        };
        self.quiescing.locks.told.insert(number, None);
        self.quiescing.locks.next_look = now;
        let until = now.after(ASKED_US);
        let open = &mut self.quiescing.open;
        match open.iter_mut().find(|quiesce| quiesce.version == number) {
            Some(known) => known.until = until,
            None => open.push(Quiesce {
                version: number,
                tables: Vec::new(),
                until,
                lock: Some(lock),
            }),
        }
    }

    /// Whether a session commits beside a lock that it has not known. Its votes may be given: the
    /// lock is not acknowledged before the outcome is known. All that asks for votes later is
    /// refused.
    pub(super) fn commits_beside_locks(&self) -> bool {
        let core = self.core.borrow();
        let sessions = self.conns.iter().filter_map(|conn| self.sessions.get(conn));
        let mut sessions = sessions.filter(|_| !core.locked.is_empty());
        sessions.any(|session| session.commits_beside_locks(&core.catalog))
    }

    /// As [`Shard::commits_beside_locks`]; then the acknowledgement comes later.
    pub(super) fn defers_locks(&mut self) -> bool {
        let defers = self.commits_beside_locks();
        self.quiescing.locks.owed |= defers;
        defers
    }

    /// Acknowledges a catalog whose locks were in the way of commits.
    fn acknowledge_late(&mut self) -> bool {
        if !self.quiescing.locks.owed || self.commits_beside_locks() {
            return false;
        }
        self.quiescing.locks.owed = false;
        let (here, durable) = {
            let core = self.core.borrow();
            (core.config.shard, core.durable)
        };
        match here == ShardId(0) {
            true => self.catalog_durable(durable),
            false => self.acknowledge(),
        }
        true
    }

    /// Tells node 1 who is in the way of locks, where that has changed.
    pub(super) fn tend_locks_asked(&mut self) -> bool {
        if self.acknowledge_late() {
            return true;
        }
        let (here, now) = {
            let core = self.core.borrow();
            (core.config.shard, core.now)
        };
        if self.quiescing.locks.told.is_empty() || now < self.quiescing.locks.next_look {
            return false;
        }
        self.quiescing.locks.next_look = now.after(LOOK_US);
        let mut changed = Vec::new();
        for asked in &self.quiescing.open {
            let Some(lock) = &asked.lock else {
                continue;
            };
            let all = self.conns.iter().filter_map(|conn| self.sessions.get(conn));
            let in_the_way = all.filter(|session| session.is_in_the_way(lock));
            let mut found: Vec<i32> = in_the_way.map(|session| session.pid()).collect();
            found.sort_unstable();
            let told = self.quiescing.locks.told.entry(asked.version).or_default();
            if told.as_ref() != Some(&found) {
                *told = Some(found.clone());
                changed.push((asked.version, found));
            }
        }
        let any = !changed.is_empty();
        for (number, sessions) in changed {
            if here == ShardId(0) {
                self.ddl.on_in_the_way(here, number, sessions);
            } else {
                let message = Message::Wire(WireMessage::InLocksWay { number, sessions });
                self.core
                    .borrow_mut()
                    .send(ShardId(0), message, Position(0));
            }
        }
        any
    }
}
