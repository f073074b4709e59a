//! What sessions have made for themselves goes when they end, however they end: each shard asks for
//! the schemas of its own sessions that are no more to be dropped.
//!
//! A look follows the end of a session, every newer catalog and a start, so it finds as well what
//! was being made while its session ended, and what a killed node has left. A schema change needs
//! every node, so one that is refused is asked for again each second.

use super::Shard;
use base::{IndexId, ShardId, Time};
use catalog::{Asker, BlockChange};
use plan::{DdlPlan, Fill};
use session::message::DdlCall;
use session::{ConnId, drop_schema, end_block, pid_shard};

/// Stands for no session, where a schema change is asked for.
pub(super) const NO_SESSION: ConnId = ConnId(u32::MAX);

/// Microseconds after which a schema that is still there is asked for again.
const AGAIN_US: u64 = 1_000_000;

/// When the shard looks for schemas without sessions.
#[derive(Default)]
pub(super) struct Sweep {
    /// It looks in this step.
    pub(super) wanted: bool,
    /// It looks again at this time.
    pub(super) again_at: Option<Time>,
}

impl Shard {
    /// Asks for what dead sessions have left to be dropped. Whether there was something.
    pub(super) fn sweep(&mut self) -> bool {
        if !core::mem::take(&mut self.sweep.wanted) {
            return false;
        }
        let (left, blocks) = (self.left_behind(), self.left_blocks());
        self.sweep.again_at = None;
        let (now, open) = {
            let core = self.core.borrow();
            (core.now, core.catalog.open_blocks > 0)
        };
        if open || !left.is_empty() {
            self.sweep.again_at = Some(now.after(AGAIN_US));
        }
        if left.is_empty() && blocks.is_empty() {
            return false;
        }
        let of_sweep = |call: &DdlCall| matches!(call, DdlCall::Ask(NO_SESSION, ..));
        if self.ddl_wanted.iter().any(of_sweep) {
            return false;
        }
        for (database, pid) in left {
            let plan = DdlPlan {
                tag: "DROP SCHEMA",
                before: vec![drop_schema(database.clone(), pid)],
                fill: None,
                after: Vec::new(),
                undo: Vec::new(),
                notices: Vec::new(),
                temporary: None,
            };
            let ask = DdlCall::Ask(NO_SESSION, database, Box::new(plan), Asker::default());
            self.ddl_wanted.push_back(ask);
        }
        for (database, pid, change, marker) in blocks {
            let mut plan = Box::new(end_block(database.clone(), pid, change));
            if let Some(marker) = marker {
                plan.fill = Some(Fill::Decide(marker));
                plan.after = core::mem::take(&mut plan.before);
            }
            let ask = DdlCall::Ask(NO_SESSION, database, plan, Asker::default());
            self.ddl_wanted.push_back(ask);
        }
        true
    }

    /// Databases with schemas of sessions of this shard that are no more; on the first shard of
    /// node 1 also of shards that are no more.
    fn left_behind(&self) -> Vec<(String, i32)> {
        let core = self.core.borrow();
        let (here, shards) = (core.config.shard, core.catalog.placement.shards());
        let is_mine = |pid: i32| match pid_shard(pid) {
            Some(shard) if shards.contains(&shard) => shard == here,
            _ => here == ShardId(0),
        };
        let lives = |pid: i32| {
            let conn = self.conn_of(pid);
            let session = conn.and_then(|conn| self.sessions.get(&conn));
            session.is_some_and(|session| session.has_temporary())
        };
        let mut found = Vec::new();
        for (name, database) in &core.catalog.databases {
            let left = database.temporary_schemas();
            let left = left.filter(|(pid, _)| is_mine(*pid) && !lives(*pid));
            found.extend(left.map(|(pid, _)| (name.clone(), pid)));
        }
        found
    }

    /// Open blocks with schema changes, in their databases, of sessions of this shard that are no
    /// more, and what becomes of the changes. On the first shard of node 1 also those of sessions
    /// of nodes that cannot be reached: this needs no node that is away.
    ///
    /// Whether the transaction of a block has committed that was about to, and whose changes depend
    /// on that, is first read from its marker.
    fn left_blocks(&self) -> Vec<(String, i32, BlockChange, Option<IndexId>)> {
        let core = self.core.borrow();
        let here = core.config.shard;
        if core.catalog.open_blocks == 0 {
            return Vec::new();
        }
        let shows = self.shows.borrow();
        let shards = core.catalog.placement.shards();
        let is_left = |pid: i32| match pid_shard(pid) {
            Some(shard) if shard == here => {
                let session = self.conn_of(pid).and_then(|conn| self.sessions.get(&conn));
                !session.is_some_and(|session| session.claims_changes())
            }
            Some(shard) if shards.contains(&shard) => {
                here == ShardId(0)
                    && (self.met.contains(&shard.node()) || !self.is_starting(core.now))
                    && shows.unreachable.contains(&shard)
            }
            _ => here == ShardId(0),
        };
        let mut found = Vec::new();
        for (name, database) in &core.catalog.databases {
            for block in database.blocks.iter().filter(|it| is_left(it.session)) {
                let change = match block.ending {
                    true => BlockChange::Settle,
                    false => BlockChange::RollBack,
                };
                let marker = block.marker.filter(|_| block.ending);
                found.push((name.clone(), block.session, change, marker));
            }
        }
        found
    }

    /// A newer catalog is in use: whether it has schemas or open blocks of sessions.
    pub(super) fn look_for_left(&mut self) {
        let core = self.core.borrow();
        let mut databases = core.catalog.databases.values();
        self.sweep.wanted |= core.catalog.open_blocks > 0
            || databases.any(|database| database.temporary_schemas().next().is_some());
    }
}
