//! Tables become quiet before their schema changes, so that no block fails that has written to
//! them.
//!
//! ```text
//! n1.0  Quiesce(version, tables) ──> every shard: a block's first write to them waits
//!       <── Quiesced(version)        no block that has written to them is open here
//!       the change goes on: after all shards have answered, or after a second
//! ```
//!
//! This is for comfort only. If a change does not wait for a block (it stays open too long, a
//! message is lost), the block ends with 40001 when it goes on. A shard lets waiting statements go
//! on when it takes a newer catalog into use, when it is told that the change failed, or by itself,
//! a little later than node 1's shard would go on.

use super::Shard;
use super::table_locks::LocksTold;
use crate::ddl::QUIESCE_US;
use crate::message::{Message, WireMessage};
use base::{Position, ShardId, TableId, Time};
use session::message::Quiesce;

/// Microseconds beyond that time after which a shard forgets a change of which it hears nothing.
const BEYOND_US: u64 = 500_000;

/// Tables of this shard's sessions that are quiesced.
#[derive(Default)]
pub(super) struct Quiescing {
    /// By the version that the catalog is to get.
    pub(super) open: Vec<Quiesce>,
    /// Versions of which node 1's shard was not told that they are quiet here.
    owed: Vec<u64>,
    /// A change has ended: sessions may go on.
    ended: bool,
    /// What was told of requests for locks of tables.
    pub(super) locks: LocksTold,
}

impl Quiescing {
    pub(super) fn wants_look(&self) -> bool {
        !self.open.is_empty() || self.ended || self.locks.wants_look()
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        let until = self.open.iter().map(|quiesce| quiesce.until);
        until.chain(self.locks.deadline()).min()
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&Quiesce) -> bool) {
        let before = self.open.len();
        self.open.retain(keep);
        self.ended |= self.open.len() < before;
        let open = &self.open;
        let is_open = |version: &u64| open.iter().any(|quiesce| quiesce.version == *version);
        self.owed.retain(|version| is_open(version));
        self.locks.told.retain(|number, _| is_open(number));
    }

    /// The catalog has reached this version.
    pub(super) fn pass(&mut self, version: u64) {
        // Statements may wait for the block of a session that this version ends.
        self.ended = true;
        self.retain(|quiesce| quiesce.version > version);
    }
}

impl Shard {
    /// Tells all shards that the catalog of this version changes these tables; no tables: the
    /// version does not come.
    pub(super) fn quiesce(&mut self, version: u64, tables: Vec<TableId>) {
        let (catalog, here) = {
            let core = self.core.borrow();
            (core.catalog.clone(), core.config.shard)
        };
        for shard in catalog.placement.shards() {
            if *shard != here {
                let tables = tables.clone();
                let message = Message::Wire(WireMessage::Quiesce { version, tables });
                self.core.borrow_mut().send(*shard, message, Position(0));
            }
        }
        self.on_quiesce(version, tables);
    }

    pub(super) fn on_quiesce(&mut self, version: u64, tables: Vec<TableId>) {
        self.quiescing.retain(|quiesce| quiesce.version != version);
        let core = self.core.borrow();
        // Else the message is late, behind its catalog, or tells the end of a change.
        if version > core.catalog.version && !tables.is_empty() {
            self.quiescing.owed.push(version);
            self.quiescing.open.push(Quiesce {
                version,
                tables,
                until: core.now.after(QUIESCE_US + BEYOND_US),
                lock: None,
            });
        }
    }

    pub(super) fn on_quiesced(&mut self, from: ShardId, version: u64) {
        self.ddl.on_quiesced(from, version);
    }

    /// Tells which versions are quiet here, and lets sessions go on that have waited long enough.
    pub(super) fn tend_quiesced(&mut self) -> bool {
        if !self.quiescing.wants_look() {
            return false;
        }
        let (here, now) = {
            let core = self.core.borrow();
            (core.config.shard, core.now)
        };
        self.quiescing.retain(|quiesce| quiesce.until > now);
        let mut any = false;
        for version in self.quiet_versions() {
            any = true;
            if here == ShardId(0) {
                self.on_quiesced(here, version);
            } else {
                let message = Message::Wire(WireMessage::Quiesced { version });
                self.core
                    .borrow_mut()
                    .send(ShardId(0), message, Position(0));
            }
        }
        if core::mem::take(&mut self.quiescing.ended) {
            let conns: Vec<_> = self.conns.iter().copied().collect();
            for conn in conns {
                self.with_session(conn, |session, cx| session.on_quiesced_end(cx));
            }
            any = true;
        }
        any
    }

    /// Takes the versions for which no block is open here any more.
    fn quiet_versions(&mut self) -> Vec<u64> {
        let (sessions, open) = (&self.sessions, &self.quiescing.open);
        let is_quiet = |version: &u64| {
            let tables = open.iter().find(|quiesce| quiesce.version == *version);
            let tables = tables.map_or(&[][..], |quiesce| &quiesce.tables);
            let mut all = self.conns.iter().filter_map(|conn| sessions.get(conn));
            !all.any(|session| session.holds_open(tables))
        };
        self.quiescing
            .owed
            .extract_if(.., |v| is_quiet(v))
            .collect()
    }
}
