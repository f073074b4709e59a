//! LOCK TABLE, and what stands in the way of such a lock
//! (docs/adr/0044-table-locks-in-the-catalog.md).
//!
//! | mode | kept by | waits for |
//! |---|---|---|
//! | up to ROW EXCLUSIVE | the session | locks in the catalog; locks that others ask for |
//! | stronger | the catalog, through node 1 | the same, and statements of open transactions |

use super::block::{Block, no_block};
use super::ddl::DdlWait;
use super::quiesced::Held;
use super::run::Start;
use super::{Activity, Session, SessionCx, changes, errors};
use crate::message::LockAsk;
use base::{Position, SqlError, SqlState, TableId, Time};
use catalog::{BlockChange, Catalog, Command, Database, TableLock};
use plan::{DdlPlan, LockPlan, Plan, PlanKind};
use wire::Tag;

/// Microseconds for which LOCK TABLE and statements wait at most, if their own transaction may keep
/// others waiting: it may be that those wait for each other.
pub(super) const CIRCLE_US: u64 = 3_000_000;

/// What a session has to do with locks of tables.
#[derive(Default)]
pub(super) struct Holds {
    /// When the statement that starts again began to wait for the block of another session.
    pub(super) since: Option<Time>,
    /// It has given way for long enough to sessions that wait for a lock of its tables.
    pub(super) goes_past: bool,
    /// Tables that the open block uses in modes that only the session knows: those of which it
    /// locks rows, and what it has locked by LOCK TABLE.
    pub(super) tables: Vec<(TableId, TableLock)>,
    /// The LOCK TABLE under way, and since when.
    pub(super) locking: Option<(Box<LockPlan>, Time)>,
}

impl Session {
    /// Notes the tables to which a block writes, or of which it locks rows.
    pub(super) fn note_written(&mut self, plan: &Plan) {
        if self.block != Block::None {
            if plan.locks {
                self.note_held(plan);
            }
            let written = &mut self.written;
            plan.each_written(&mut |table| {
                if !written.contains(&table) {
                    written.push(table);
                }
            });
        }
    }

    /// Notes tables of which the statement locks rows, or which it locks itself.
    pub(super) fn note_held(&mut self, plan: &Plan) {
        let held = &mut self.holds.tables;
        plan.each_held(&mut |table, mode| {
            if !held.contains(&(table, mode)) {
                held.push((table, mode));
            }
        });
    }

    /// Whether something of the session may keep others waiting.
    pub(super) fn may_block(&self) -> bool {
        self.changes.is_some()
            || self.txn.as_ref().is_some_and(|txn| !txn.gone)
            || (self.block == Block::Explicit && !self.holds.tables.is_empty())
    }

    /// Whether the session uses a table in a mode that the lock excludes.
    pub fn is_in_the_way(&self, ask: &LockAsk) -> bool {
        if ask.session == self.pid {
            return false;
        }
        let open = self.txn.as_ref().is_some_and(|txn| !txn.gone);
        let meets = |table: TableId, mode: TableLock| {
            ask.tables.contains(&table) && ask.mode.excludes(mode)
        };
        let written = |table: &TableId| meets(*table, TableLock::RowExclusive);
        if self.block == Block::None {
            // The one statement of its transaction.
            let mut meets_step = false;
            let step = self.steps.get(self.at).filter(|_| open);
            if let Some(step) = step {
                step.plan
                    .each_held(&mut |table, mode| meets_step |= meets(table, mode));
            }
            return meets_step || (open && self.written.iter().any(written));
        }
        let mut held = self.holds.tables.iter();
        (open && self.written.iter().any(written))
            || (self.block != Block::Failed && held.any(|(table, mode)| meets(*table, *mode)))
    }

    /// Whether the lock waits for this session already, which so need not wait for the lock.
    fn precedes(&self, cx: &SessionCx<'_>, ask: &LockAsk) -> bool {
        let has_locked = || {
            let database = self.database(cx).ok();
            let block = database.and_then(|database| database.block_of(self.pid));
            block.is_some_and(|block| {
                let mut tables = ask.tables.iter();
                tables.any(|table| block.excludes(*table, ask.mode))
            })
        };
        self.is_in_the_way(ask) || (self.changes.is_some() && has_locked())
    }

    /// Whether the transaction is about to commit what it has written to a table that another
    /// session has locked meanwhile.
    pub fn commits_beside_locks(&self, catalog: &Catalog) -> bool {
        let Some(database) = catalog.databases.get(&*self.database) else {
            return false;
        };
        let is_locked = |table: &TableId| {
            let locked = database.locked_by(*table, TableLock::RowExclusive, self.pid);
            locked.is_some()
        };
        matches!(self.activity, Activity::Ending) && self.written.iter().any(is_locked)
    }

    /// What keeps a statement of this plan from starting.
    pub(super) fn kept_off(&self, cx: &SessionCx<'_>, plan: &Plan) -> Option<Held> {
        if let (true, Ok(database)) = (cx.catalog.open_blocks > 0, self.database(cx)) {
            let mut found = None;
            plan.each_held(&mut |table, mode| {
                found = found.or(database.locked_by(table, mode, self.pid));
            });
            if found.is_some() {
                return Some(Held::Locked);
            }
        }
        let asked = cx.quiesced.iter().filter_map(|it| it.lock.as_ref());
        let mut asked = asked.filter(|ask| ask.session != self.pid && !self.precedes(cx, ask));
        let waits = asked.any(|ask| {
            let mut meets = false;
            plan.each_held(&mut |table, mode| {
                meets |= ask.tables.contains(&table) && ask.mode.excludes(mode);
            });
            meets
        });
        (waits && !self.holds.goes_past).then_some(Held::Asked)
    }

    /// Runs LOCK TABLE.
    pub(super) fn lock_tables(&mut self, cx: &mut SessionCx<'_>, plan: &Plan, start: Start) {
        let PlanKind::Lock(lock) = &plan.kind else {
            unreachable!("the caller has looked")
        };
        if self.block == Block::None {
            return self.fail(cx, no_block("LOCK TABLE"), Position(0));
        }
        if !lock.mode.is_kept() {
            return match self.kept_off(cx, plan) {
                Some(_) if lock.nowait => {
                    let error = errors::table_locked(lock);
                    self.fail(cx, error, Position(0));
                }
                Some(held) => self.wait_quiesced(cx, start, held),
                None => {
                    self.note_held(plan);
                    self.complete(Tag::Word("LOCK TABLE"));
                }
            };
        }
        match self.lock_change(cx, lock) {
            Ok(None) => self.complete(Tag::Word("LOCK TABLE")),
            Ok(Some(change)) => {
                self.holds.locking = Some((Box::new((**lock).clone()), cx.now));
                self.start_ddl(cx, &change);
            }
            Err(error) => self.fail(cx, error, Position(0)),
        }
    }

    /// The change of the catalog that locks the tables. `None`: the block has made them all.
    fn lock_change(
        &self,
        cx: &SessionCx<'_>,
        lock: &LockPlan,
    ) -> Result<Option<DdlPlan>, SqlError> {
        if self.block != Block::Explicit {
            let message = "LOCK TABLE in this mode needs a block";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .hint("Begin the transaction by BEGIN."));
        }
        let database = self.database(cx)?;
        let made = |id: &TableId| {
            let block = database.block_of(self.pid);
            block.is_some_and(|block| block.has_made(*id))
        };
        let tables: Vec<TableId> = lock.tables.iter().copied().filter(|id| !made(id)).collect();
        if tables.is_empty() {
            return Ok(None);
        }
        if lock.mode.holds_off_writers() {
            self.check_unwritten(database, &tables)?;
        }
        let name = self.database.to_string();
        let circle = self.may_block().then_some(CIRCLE_US);
        let command = Command::LockTables {
            database: name.clone(),
            session: self.pid,
            tables,
            mode: lock.mode,
            fills: None,
            within_us: if lock.nowait { Some(0) } else { circle },
        };
        let back = BlockChange::RollBackTo(self.images(cx));
        let mut plan = changes::end_block(name, self.pid, back);
        plan.tag = "LOCK TABLE";
        plan.undo = core::mem::replace(&mut plan.before, vec![command]);
        Ok(Some(plan))
    }

    /// What others have planned before the lock may not be written any more, and so may not what
    /// this block has written before.
    fn check_unwritten(&self, database: &Database, tables: &[TableId]) -> Result<(), SqlError> {
        let open = self.txn.as_ref().is_some_and(|txn| !txn.gone);
        let mut written = tables.iter().filter(|id| open && self.written.contains(id));
        match written.find(|id| !database.has_locked(**id, self.pid)) {
            None => Ok(()),
            Some(_) => {
                let message = "LOCK TABLE in a mode that holds off writers cannot run in a \
                               transaction block that has written to the table";
                Err(SqlError::new(SqlState::ACTIVE_TXN, message)
                    .hint("Lock the table before the first write."))
            }
        }
    }

    /// Tables that the open block has in modes that only the session knows, other than by writes.
    pub fn held_tables(&self) -> impl Iterator<Item = (TableId, TableLock)> {
        let held = match self.block {
            Block::Explicit | Block::Implicit => &self.holds.tables[..],
            Block::None | Block::Failed => &[],
        };
        held.iter().copied()
    }

    /// Name of the session's database.
    pub fn database_name(&self) -> &str {
        &self.database
    }

    /// What the session waits for: tables, modes, and since when.
    pub fn awaited_tables(&self) -> Vec<(TableId, TableLock, Time)> {
        let mut awaited = Vec::new();
        match (&self.activity, &self.holds.locking) {
            (Activity::Ddl(DdlWait { .. }), Some((lock, since))) => {
                let tables = lock.tables.iter();
                awaited.extend(tables.map(|table| (*table, lock.mode, *since)));
            }
            (Activity::Quiesced(waiting), _) => {
                if let Some((plan, since)) = waiting.awaits_lock() {
                    plan.each_held(&mut |table, mode| awaited.push((table, mode, since)));
                }
            }
            _ => {}
        }
        awaited
    }
}
