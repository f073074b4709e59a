//! Schema changes of the open transaction block: they go with a rollback, and are settled behind
//! the commit (docs/adr/0037-schema-changes-in-blocks.md).
//!
//! | at | what the catalog is told |
//! |---|---|
//! | COMMIT of a block with a transaction | before it that it ends, behind it that it is settled |
//! | COMMIT of another block | that it is settled |
//! | ROLLBACK, a failed COMMIT | that it is rolled back, before the client is told |
//! | ROLLBACK TO | what goes, before the rows |
//! | an error that ends the block, the end of the session | that it is rolled back; nobody waits |

use super::block::{Block, not_in_block};
use super::ddl::DdlWait;
use super::own::Adopted;
use super::run::{Ending, Start};
use super::temporary::Then;
use super::{Activity, Session, SessionCx};
use crate::message::{DdlCall, DdlStop};
use base::{Position, SqlError, SqlState};
use catalog::{Asker, BlockChange, Command, Database, EnumChange};
use plan::{DdlPlan, Fill, Plan};
use rights::By;
use wire::Severity;

/// The schema changes of the open block.
#[derive(Default)]
pub(super) struct Changes {
    /// What follows when the catalog has been told.
    next: Option<Next>,
    /// The catalog has had them.
    seen: bool,
    /// The catalog knows that the transaction commits.
    ending: bool,
    /// They are being undone without the session.
    left: bool,
    /// Those behind the savepoint are undone.
    undone_to: bool,
    /// Under which versions of the catalog what the transaction has written is right.
    pub(super) adopted: Vec<Adopted>,
    /// The shards were told.
    pub(super) is_adopted: bool,
}

/// What follows when the catalog has been told.
enum Next {
    Commit { chain: bool },
    Settled(Position),
    RolledBack(Position),
    Failed(SqlError, Position),
    RollBackTo(Box<Start>),
}

/// The schema change that ends or undoes changes of a session's block.
pub fn end_block(database: String, session: i32, change: BlockChange) -> DdlPlan {
    DdlPlan {
        tag: match change {
            BlockChange::End | BlockChange::Settle => "COMMIT",
            BlockChange::RollBack | BlockChange::RollBackTo(_) => "ROLLBACK",
        },
        before: vec![Command::Block {
            database,
            session,
            change,
        }],
        fill: None,
        after: Vec::new(),
        undo: Vec::new(),
        notices: Vec::new(),
        temporary: None,
    }
}

impl Session {
    /// Whether the open block of the session has changed the schema, and nobody else undoes that.
    pub fn claims_changes(&self) -> bool {
        self.changes.as_ref().is_some_and(|changes| !changes.left)
    }

    /// Who asks for a change that needs no rights.
    pub(super) fn asker(&self, block: Option<u32>) -> Asker {
        Asker {
            by: By::default(),
            session: self.pid,
            block,
        }
    }

    /// Number of images that the catalog has of the block.
    pub(super) fn images(&self, cx: &SessionCx<'_>) -> u32 {
        if self.changes.is_none() {
            return 0;
        }
        let database = self.database(cx).ok();
        let block = database.and_then(|database| database.block_of(self.pid));
        block.map_or(0, |block| block.image_count() as u32)
    }

    /// A schema change begins that goes with the block.
    pub(super) fn join_block(&mut self, cx: &SessionCx<'_>, plan: &mut DdlPlan) {
        if let Some(txn) = &mut self.txn {
            txn.retryable = false;
        }
        if self.changes.is_some() {
            return;
        }
        self.changes = Some(Box::default());
        let left = |database: &Database| database.block_of(self.pid).is_some();
        if self.database(cx).is_ok_and(|database| left(database)) {
            // Of an earlier session with this number.
            let database = self.database.to_string();
            let end = end_block(database, self.pid, BlockChange::RollBack);
            plan.before.splice(0..0, end.before);
        }
    }

    /// A schema change of the block has ended.
    pub(super) fn joined_block(&mut self, cx: &SessionCx<'_>) {
        let here = self
            .database(cx)
            .is_ok_and(|it| it.block_of(self.pid).is_some());
        if let Some(changes) = &mut self.changes {
            changes.seen |= here;
        }
        self.note_adopted(cx);
    }

    /// Why a schema change cannot run in this block.
    pub(super) fn refused_in_block(
        &self,
        cx: &SessionCx<'_>,
        plan: &DdlPlan,
    ) -> Result<(), SqlError> {
        let database = self.database(cx)?;
        let block = database.block_of(self.pid);
        let of_stages = plan.fill.iter().flat_map(Fill::commands);
        for command in plan.before.iter().chain(of_stages).chain(&plan.after) {
            if let Command::Switch { .. } = command {
                return Err(not_in_block("ALTER DATABASE ... SET (protocol)"));
            }
            if let Command::AlterEnum { name, change, .. } = command
                && matches!(change, EnumChange::AddLabel { .. })
                && !block.is_some_and(|block| block.has_made_type(name))
            {
                let message = "ALTER TYPE ... ADD VALUE is not supported in a transaction block";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                    .detail("Others could write the value, and it would be undone.")
                    .hint("Run the statement outside of a block."));
            }
        }
        let is_for_others = plan.fill.as_ref().is_some_and(Fill::is_for_others);
        if is_for_others && self.concerns_own_rows(cx, plan) {
            let tag = plan.tag;
            let message =
                format!("{tag} cannot run in a transaction block that has written to the table");
            return Err(SqlError::new(SqlState::ACTIVE_TXN, message)
                .hint("Change the table first, or in a block of its own."));
        }
        Ok(())
    }

    /// Whether the statement writes to a table that the open block of another session has changed.
    pub(super) fn is_shut(&self, cx: &SessionCx<'_>, plan: &Plan) -> bool {
        let Ok(database) = self.database(cx) else {
            return false;
        };
        if database.blocks.is_empty() {
            return false;
        }
        let mut shut = false;
        plan.each_written(&mut |id| {
            let mut tables = database.tables.values();
            let table = tables.find(|table| table.id == id);
            shut |= table.is_some_and(|table| database.shut_by(table, self.pid).is_some());
        });
        shut
    }

    /// They are undone by the shard, and nobody waits for that.
    pub(super) fn leave_changes(&mut self, cx: &mut SessionCx<'_>) {
        if self.holds.locking.take().is_some() {
            cx.ddl
                .push_back(DdlCall::Stop(self.conn, DdlStop::Canceled));
        }
        if let Some(changes) = &mut self.changes
            && !core::mem::replace(&mut changes.left, true)
        {
            let database = self.database.to_string();
            cx.ddl.push_back(DdlCall::Left(database, self.pid));
        }
    }

    /// Forgets changes of which the catalog has none.
    fn forget_no_changes(&mut self, cx: &SessionCx<'_>) {
        self.joined_block(cx);
        if self.changes.as_ref().is_some_and(|changes| !changes.seen) {
            self.changes = None;
        }
    }

    fn tell_changes(&mut self, cx: &mut SessionCx<'_>, change: BlockChange, next: Next) {
        if let Some(changes) = &mut self.changes {
            changes.next = Some(next);
        }
        let database = self.database.to_string();
        let plan = Box::new(end_block(database.clone(), self.pid, change));
        let asker = self.asker(None);
        cx.ddl
            .push_back(DdlCall::Ask(self.conn, database, plan, asker));
        let wait = DdlWait::cleaning("COMMIT", Position(0), Then::Changes);
        self.activity = Activity::Ddl(wait);
    }

    /// COMMIT of a block that has changed the schema and has a transaction: the catalog is told
    /// first. Whether it is.
    pub(super) fn ends_changes(&mut self, cx: &mut SessionCx<'_>, chain: bool) -> bool {
        self.forget_no_changes(cx);
        if self.changes.is_none() || self.txn.is_none() {
            return false;
        }
        self.tell_changes(cx, BlockChange::End, Next::Commit { chain });
        true
    }

    /// The transaction has been committed.
    pub(super) fn settle_changes(&mut self, cx: &mut SessionCx<'_>, wait: Position) {
        match self.changes {
            None => self.complete_gone(cx, "COMMIT", wait),
            Some(_) => self.tell_changes(cx, BlockChange::Settle, Next::Settled(wait)),
        }
    }

    /// The block was rolled back.
    pub(super) fn undo_changes(&mut self, cx: &mut SessionCx<'_>, wait: Position) {
        match self.changes {
            None => self.complete_gone(cx, "ROLLBACK", wait),
            Some(_) => self.tell_changes(cx, BlockChange::RollBack, Next::RolledBack(wait)),
        }
    }

    /// The commit has failed: the error follows when the changes are undone. Whether there are any.
    pub(super) fn fails_changes(
        &mut self,
        cx: &mut SessionCx<'_>,
        error: &SqlError,
        wait: Position,
    ) -> bool {
        if !self.claims_changes() {
            return false;
        }
        self.roll_back(cx);
        let next = Next::Failed(error.clone(), wait);
        self.tell_changes(cx, BlockChange::RollBack, next);
        true
    }

    /// A DO has failed that had its own block: the error follows when the changes are undone,
    /// whoever else undoes them. Whether there are any.
    pub(super) fn undo_failed(
        &mut self,
        cx: &mut SessionCx<'_>,
        error: &SqlError,
        wait: Position,
    ) -> bool {
        if self.changes.is_none() {
            return false;
        }
        self.roll_back(cx);
        let next = Next::Failed(error.clone(), wait);
        self.tell_changes(cx, BlockChange::RollBack, next);
        true
    }

    /// It is not known whether the transaction has committed: what the catalog was told decides.
    pub(super) fn abandon_changes(&mut self) {
        self.changes = None;
    }

    /// Keeps ROLLBACK TO until the changes since are undone. `None`: it waits.
    pub(super) fn after_changes(
        &mut self,
        cx: &mut SessionCx<'_>,
        images: u32,
        start: Start,
    ) -> Option<Start> {
        let Some(changes) = &mut self.changes else {
            return Some(start);
        };
        if core::mem::take(&mut changes.undone_to) {
            return Some(start);
        }
        let next = Next::RollBackTo(Box::new(start));
        self.tell_changes(cx, BlockChange::RollBackTo(images), next);
        None
    }

    /// The catalog has been told, or could not be.
    pub(super) fn changes_told(&mut self, cx: &mut SessionCx<'_>, result: Result<(), SqlError>) {
        self.activity = Activity::Idle;
        let Some(changes) = &mut self.changes else {
            return;
        };
        let ending = changes.ending;
        match (changes.next.take(), result) {
            (None, _) => {}
            (Some(Next::Commit { chain }), Ok(())) => {
                changes.ending = true;
                self.end_txn(cx, Ending::Commit { chain });
            }
            (Some(Next::Commit { chain }), Err(error)) => {
                self.ending = Some(Ending::Commit { chain });
                self.fail_ending(cx, error, Position(0));
            }
            (Some(Next::Settled(wait)), Err(error)) if !ending => {
                self.leave_changes(cx);
                self.changes = None;
                self.block = Block::None;
                self.fail(cx, error, wait);
            }
            (Some(Next::Settled(wait)), result) => {
                // The catalog knows that they stay.
                self.changes = None;
                self.warn_of_changes(result, "schema changes are not settled yet");
                self.complete_gone(cx, "COMMIT", wait);
            }
            (Some(Next::RolledBack(wait)), result) => {
                self.give_up_changes(cx, result);
                self.complete_gone(cx, "ROLLBACK", wait);
            }
            (Some(Next::Failed(error, wait)), result) => {
                self.give_up_changes(cx, result);
                self.fail_ending(cx, error, wait);
            }
            (Some(Next::RollBackTo(start)), Ok(())) => {
                changes.undone_to = true;
                self.start(cx, *start);
            }
            (Some(Next::RollBackTo(_)), Err(error)) => {
                self.lose_savepoints();
                self.fail(cx, error, Position(0));
            }
        }
    }

    fn give_up_changes(&mut self, cx: &mut SessionCx<'_>, result: Result<(), SqlError>) {
        if result.is_err() {
            self.leave_changes(cx);
        }
        self.changes = None;
        self.warn_of_changes(result, "schema changes are not undone yet");
    }

    fn warn_of_changes(&mut self, result: Result<(), SqlError>, text: &str) {
        if let Err(error) = result {
            let warning = SqlError::new(SqlState::WARNING, text);
            let detail = error.fields().message.clone();
            self.notice(Severity::Warning, warning.detail(detail));
        }
    }
}
