//! Schema changes of tables to which the open block has written
//! (docs/adr/0048-changes-of-written-tables.md).
//!
//! | step | why |
//! |---|---|
//! | what the transaction has queued goes to its shards | it was planned for the table as it was |
//! | the table is locked, as PostgreSQL locks it | no other writer is in the way of the pass |
//! | the commands before the pass | as in any change |
//! | the pass over the rows, in the block's transaction | it sees what the block has written |
//! | the commands behind the pass | as in any change |
//! | before COMMIT: what was written is adopted, the marker is written | see below |
//!
//! *Adopted*: shards refuse to commit what was planned before the last change of a table. What this
//! transaction wrote is right, because its passes have seen it, if nobody else changed the table in
//! between: each interval of versions says from which on.
//!
//! *The marker* is a row that the transaction writes. If the session dies while it commits, node 1
//! reads there whether the schema stays.

use super::block::Block;
use super::changes;
use super::fills::{Filling, Rows, Stage};
use super::portal::PortalState;
use super::{Session, SessionCx};
use crate::table_locks::CIRCLE_US;
use base::{IndexId, Position, SqlError, SqlState, TableId};
use catalog::{BlockChange, Command, TableLock};
use plan::{Adopt, DdlPlan, Fill, LockPlan, Plan, PlanKind};
use txn::Savepoint;

/// A schema change of tables to which the block has written.
pub(super) struct Change {
    plan: DdlPlan,
    /// The lock that comes before it.
    lock: Option<(DdlPlan, LockPlan)>,
}

/// Versions of the catalog under which a key space was written: from `since` on they are as good as
/// `to`.
pub(super) struct Adopted {
    index: IndexId,
    since: u64,
    to: u64,
}

impl Session {
    /// Whether the change concerns rows that this block itself has written or locked, and that
    /// nobody else can look at.
    pub(super) fn concerns_own_rows(&self, cx: &SessionCx<'_>, plan: &DdlPlan) -> bool {
        if self.block != Block::Explicit || plan.temporary.is_some() {
            return false;
        }
        if self.txn.as_ref().is_none_or(|txn| txn.gone) {
            return false;
        }
        let held = &self.holds.tables;
        let is_own = |table: &TableId| {
            self.written.contains(table) || held.iter().any(|(of, _)| of == table)
        };
        (!self.written.is_empty() || !held.is_empty())
            && self.concerned(cx, plan).iter().any(is_own)
    }

    /// Whether a suspended statement may write more.
    fn writes_on(&self) -> bool {
        let mut all = self.portals.values().chain(&self.unnamed_portal);
        all.any(|portal| {
            let plan = portal.prepared.plan.as_ref();
            let is_open = match &portal.state {
                PortalState::Suspended(cursor) => cursor.done.is_none(),
                PortalState::Ready
                | PortalState::Rest(..)
                | PortalState::Finished(_)
                | PortalState::Spent => false,
            };
            is_open && plan.is_some_and(|plan| plan.writes)
        })
    }

    /// The tables whose rows the change looks at, or demands something of.
    fn concerned(&self, cx: &SessionCx<'_>, plan: &DdlPlan) -> Vec<TableId> {
        let Ok(database) = self.database(cx) else {
            return Vec::new();
        };
        let of_stages = plan.fill.iter().flat_map(Fill::commands);
        let commands = plan.before.iter().chain(of_stages).chain(&plan.after);
        let names = commands.flat_map(Command::hardens);
        let names = names.chain(plan.fill.as_ref().map(Fill::table));
        let tables = names.filter_map(|name| database.tables.get(name));
        let mut found: Vec<TableId> = tables.map(|table| table.id).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Starts a schema change of tables to which this block has written.
    pub(super) fn change_own(&mut self, cx: &mut SessionCx<'_>, plan: &DdlPlan) {
        if let Some((error, wait)) = self.txn.as_mut().and_then(|txn| txn.broken.take()) {
            return self.fail(cx, error, wait);
        }
        if self.writes_on() {
            let tag = plan.tag;
            let message = format!(
                "cannot {tag} because the table is being used by active queries in this session"
            );
            let error = SqlError::new(SqlState::OBJECT_IN_USE, message)
                .hint("Read the portal to its end before, or close it.");
            return self.fail(cx, error, Position(0));
        }
        let fill = plan.fill.clone();
        let part = |commands: &[Command]| DdlPlan {
            before: commands.to_vec(),
            fill: None,
            after: Vec::new(),
            undo: Vec::new(),
            ..plan.clone()
        };
        let (first, then) = match &fill {
            Some(_) => (plan.before.clone(), plan.after.clone()),
            None => (
                plan.before.iter().chain(&plan.after).cloned().collect(),
                Vec::new(),
            ),
        };
        let finish = DdlPlan {
            notices: Vec::new(),
            ..part(&then)
        };
        let lock = self.own_lock(cx, plan);
        let change = Change {
            plan: part(&first),
            lock,
        };
        if let Some(txn) = &mut self.txn {
            txn.retryable = false;
        }
        let filled = fill.as_ref().and_then(|fill| {
            let database = self.database(cx).ok()?;
            Some(database.tables.get(fill.table())?.id)
        });
        let new = filled.filter(|table| !self.written.contains(table));
        self.written.extend(new);
        self.filling = Some(Box::new(Filling {
            rows: fill.map_or(Rows::Keep, Rows::Work),
            stored: None,
            undo: None,
            finish: (!finish.before.is_empty()).then_some(finish),
            last: true,
            tag: Some(plan.tag),
            owner: None,
            until: self.time_limit(cx.now),
            stage: Stage::Writing(Box::new(change)),
        }));
        self.hand_over(cx);
    }

    /// What the transaction has queued for its shards goes there, before a change of the schema
    /// for which it was not planned.
    pub(super) fn hand_over(&mut self, cx: &mut SessionCx<'_>) {
        // No key space has this number: the operation does nothing but come behind the writes.
        let renewed = vec![Savepoint::Renew {
            index: IndexId(u32::MAX),
            since: 0,
            to: 0,
        }];
        let marker = None;
        self.run_adopt(cx, Adopt { renewed, marker });
    }

    /// The lock of the tables that stood before the block, if the change looks at their rows.
    fn own_lock(&self, cx: &SessionCx<'_>, plan: &DdlPlan) -> Option<(DdlPlan, LockPlan)> {
        let fill = plan.fill.as_ref()?;
        let database = self.database(cx).ok()?;
        let block = database.block_of(self.pid);
        let made = |id: &TableId| block.is_some_and(|block| block.has_made(*id));
        let mut tables = self.concerned(cx, plan);
        tables.retain(|id| !made(id));
        if tables.is_empty() {
            return None;
        }
        let filled = database.tables.get(fill.table()).map(|table| table.id);
        let mode = match fill {
            Fill::Index { .. } | Fill::Validate { .. } => TableLock::ShareRowExclusive,
            Fill::Alter(_)
            | Fill::PrimaryKey { .. }
            | Fill::Refers { .. }
            | Fill::Stages(_)
            | Fill::Decide(_) => TableLock::AccessExclusive,
        };
        let name = self.database.to_string();
        let command = Command::LockTables {
            database: name.clone(),
            session: self.pid,
            tables: tables.clone(),
            mode,
            fills: filled.filter(|id| !made(id)),
            within_us: Some(CIRCLE_US),
        };
        let back = BlockChange::RollBackTo(self.images(cx));
        let mut lock = changes::end_block(name, self.pid, back);
        lock.tag = plan.tag;
        lock.undo = core::mem::replace(&mut lock.before, vec![command]);
        let names = Vec::new();
        let shown = LockPlan {
            tables,
            names,
            mode,
            nowait: false,
        };
        Some((lock, shown))
    }

    /// What was written before has reached its shards: the change begins.
    pub(super) fn start_own_change(&mut self, cx: &mut SessionCx<'_>) {
        let Some(filling) = &mut self.filling else {
            return;
        };
        let stage = core::mem::replace(&mut filling.stage, Stage::Creating);
        let Stage::Writing(change) = stage else {
            unreachable!("the caller has looked")
        };
        let Change { plan, lock } = *change;
        match lock {
            None => self.start_ddl(cx, &plan),
            Some((lock, shown)) => {
                filling.stage = Stage::Locking(Box::new(plan));
                self.holds.locking = Some((Box::new(shown), cx.now));
                self.start_ddl(cx, &lock);
            }
        }
    }

    fn run_adopt(&mut self, cx: &mut SessionCx<'_>, adopt: Adopt) {
        let kind = PlanKind::Adopt(Box::new(adopt));
        let plan = Plan::plain(kind, cx.catalog.version);
        let start = match self.own_plan(cx, plan) {
            Ok(start) => start,
            Err(error) => return self.fail(cx, error, Position(0)),
        };
        let plan = start.prepared.plan.clone();
        let deadline = match &self.filling {
            Some(filling) => filling.until,
            None => self.time_limit(cx.now),
        };
        self.run_own(cx, start, plan.expect("just made"), deadline);
    }

    /// A schema change of the block has ended: notes which of its writes are right behind it.
    pub(super) fn note_adopted(&mut self, cx: &SessionCx<'_>) {
        let (Some(changes), true) = (&mut self.changes, self.txn.is_some()) else {
            return;
        };
        let Some(database) = cx.catalog.databases.get(&*self.database) else {
            return;
        };
        let Some(block) = database.block_of(self.pid) else {
            return;
        };
        let to = cx.catalog.version;
        for table in database.tables.values() {
            if !self.written.contains(&table.id) || block.has_made(table.id) {
                continue;
            }
            let since = match block.changed_before(table.id) {
                Some(since) => since,
                None if block.fills(table.id) || database.has_locked(table.id, self.pid) => {
                    table.changed
                }
                None => continue,
            };
            for index in table.indexes() {
                note(&mut changes.adopted, index.id, since, to);
            }
        }
    }

    /// Before COMMIT: whether what the block has written is being adopted.
    pub(super) fn adopts(&mut self, cx: &mut SessionCx<'_>) -> bool {
        let Some(changes) = &mut self.changes else {
            return false;
        };
        if core::mem::replace(&mut changes.is_adopted, true) {
            return false;
        }
        let adopted = core::mem::take(&mut changes.adopted);
        let renewed = adopted.iter().map(|it| Savepoint::Renew {
            index: it.index,
            since: it.since,
            to: it.to,
        });
        let renewed: Vec<Savepoint> = renewed.collect();
        let database = self.database(cx).ok();
        let block = database.and_then(|database| database.block_of(self.pid));
        let marker = block.and_then(|block| block.marker);
        if renewed.is_empty() && marker.is_none() {
            return false;
        }
        self.run_adopt(cx, Adopt { renewed, marker });
        true
    }

    /// Whether the statement reads rows of a table that the open block of another session fills.
    pub(super) fn reads_filled(&self, cx: &SessionCx<'_>, plan: &Plan) -> bool {
        let Ok(database) = self.database(cx) else {
            return false;
        };
        let needs = plan.needs.relations.iter();
        let read = needs.map(|need| TableId(need.relation));
        database.filled_by(read, self.pid).is_some()
    }
}

/// Notes an interval of a key space; one that goes on where the last one ends is joined to it.
fn note(all: &mut Vec<Adopted>, index: IndexId, since: u64, to: u64) {
    let mut known = all.iter_mut().rev();
    match known.find(|known| known.index == index) {
        Some(last) if since <= last.to => {
            last.since = last.since.min(since);
            last.to = last.to.max(to);
        }
        _ => all.push(Adopted { index, since, to }),
    }
}
