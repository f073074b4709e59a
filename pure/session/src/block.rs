//! Transaction blocks: BEGIN, COMMIT, ROLLBACK and their modes.

use super::run::Ending;
use super::savepoints::Savepoints;
use super::{Activity, Session, SessionCx, errors};
use crate::message::ToTxn;
use base::{Planted, Position, ShardId, SqlError, SqlState, is_planted};
use parse::session::{Isolation, SessionCommand, TxnModes};
use txn::{AbortReason, Outcome};
use wire::{Reply, Severity, Tag, TxnStatus};

/// Whether a transaction block is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Block {
    /// Each statement is a transaction.
    None,
    /// A query string of several statements, or a pipeline: one transaction, until its end.
    Implicit,
    /// Since BEGIN.
    Explicit,
    /// Since an error after BEGIN: only ROLLBACK and COMMIT (which rolls back) are taken.
    Failed,
}

impl Block {
    /// The status in ReadyForQuery.
    pub(super) fn status(self) -> TxnStatus {
        match self {
            Block::None | Block::Implicit => TxnStatus::Idle,
            Block::Explicit => TxnStatus::InBlock,
            Block::Failed => TxnStatus::Failed,
        }
    }
}

/// Modes of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Modes {
    /// The level in force, which is never weaker than the one asked for.
    pub(super) isolation: Isolation,
    /// The level asked for, which SHOW tells.
    pub(super) asked: Isolation,
    pub(super) read_only: bool,
    pub(super) deferrable: bool,
}

impl Default for Modes {
    fn default() -> Self {
        Modes {
            isolation: Isolation::Serializable,
            asked: Isolation::Serializable,
            read_only: false,
            deferrable: false,
        }
    }
}

/// Whether READ ONLY transactions of the session ask all shards for their clocks first, although
/// they are neither DEFERRABLE nor REPEATABLE READ: after one has failed because of what its
/// snapshot missed. Each failure has twice as many of those behind it ask, each one that has not
/// asked and not failed half as many.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClockAsking {
    /// Number of transactions that still ask.
    left: u8,
    /// Number that asked after the last failure, halved by what has gone well since.
    last: u8,
    /// The last transaction did not ask.
    trusted: bool,
}

/// Most transactions that ask after one failure.
const ASKING_MAX: u8 = 64;

impl ClockAsking {
    /// Whether a transaction that begins now, in its `attempt`, asks.
    pub(super) fn begins_by_asking(&mut self, modes: Modes, attempt: u32) -> bool {
        if !modes.read_only || modes.isolation == Isolation::ReadCommitted {
            return false;
        }
        let repeatable = modes.asked == Isolation::RepeatableRead;
        if repeatable || modes.deferrable || attempt > 1 {
            return true;
        }
        if core::mem::take(&mut self.trusted) {
            self.last /= 2;
        }
        self.trusted = self.left == 0;
        self.left = self.left.saturating_sub(1);
        !self.trusted
    }

    /// A transaction has failed because of what its snapshot missed.
    pub(super) fn missed(&mut self) {
        self.trusted = false;
        self.last = (2 * self.last).clamp(1, ASKING_MAX);
        self.left = self.last;
    }
}

/// The level in force for a requested one: never weaker.
fn given(asked: Isolation) -> Isolation {
    match asked {
        Isolation::ReadUncommitted | Isolation::ReadCommitted => Isolation::ReadCommitted,
        Isolation::RepeatableRead | Isolation::Serializable => Isolation::Serializable,
    }
}

/// Whether a failed block accepts the command.
pub(super) fn ends_block(command: &SessionCommand) -> bool {
    matches!(
        command,
        SessionCommand::Commit { .. }
            | SessionCommand::Rollback { .. }
            | SessionCommand::RollBackTo(_)
    )
}

impl Session {
    pub(crate) fn undo_txn(&mut self, cx: &mut SessionCx<'_>) {
        self.roll_back(cx);
        self.restore_settings();
        self.untell();
    }

    /// An error that ends the connection.
    pub(super) fn fatal(&mut self, cx: &mut SessionCx<'_>, error: SqlError) {
        self.roll_back(cx);
        self.leave_changes(cx);
        self.activity = Activity::Idle;
        self.say(Reply::Error(Severity::Fatal, error), Position(0));
        self.say(Reply::Close, Position(0));
        self.release(cx);
        self.close();
    }

    /// Modes of a transaction that sets none.
    pub(super) fn default_modes(&self) -> Modes {
        let knobs = &self.settings.knobs;
        Modes {
            isolation: given(knobs.default_isolation),
            asked: knobs.default_isolation,
            read_only: knobs.default_read_only,
            deferrable: knobs.default_deferrable,
        }
    }

    /// The modes of the open block, else those of the next statement.
    pub(super) fn present_modes(&self) -> Modes {
        if self.block == Block::None {
            self.default_modes()
        } else {
            self.modes
        }
    }

    /// A statement that belongs to a query string or pipeline of several is about to run.
    pub(super) fn enter_implicit_block(&mut self) {
        if self.block == Block::None {
            self.block = Block::Implicit;
            self.holds.tables.clear();
            self.modes = self.default_modes();
        }
    }

    pub(super) fn begin(&mut self, cx: &mut SessionCx<'_>, modes: TxnModes, tag: &'static str) {
        match self.block {
            Block::Explicit | Block::Failed => self.warn(
                SqlState::ACTIVE_TXN,
                "there is already a transaction in progress",
            ),
            Block::None => {
                self.modes = self.default_modes();
                self.block_time = Some(cx.now);
                self.holds.tables.clear();
            }
            // Statements of this query string that have run become part of the block.
            Block::Implicit => {}
        }
        if let Err(error) = self.set_modes(modes) {
            self.fail(cx, error, Position(0));
            return;
        }
        if self.block != Block::Failed {
            self.block = Block::Explicit;
        }
        self.complete(Tag::Word(tag));
    }

    pub(super) fn set_transaction(&mut self, cx: &mut SessionCx<'_>, modes: TxnModes) {
        if self.block == Block::None {
            let text = "SET TRANSACTION can only be used in transaction blocks";
            self.warn(SqlState::NO_ACTIVE_TXN, text);
        } else if let Err(error) = self.set_modes(modes) {
            self.fail(cx, error, Position(0));
            return;
        }
        self.complete(Tag::Word("SET"));
    }

    pub(super) fn set_modes(&mut self, modes: TxnModes) -> Result<(), SqlError> {
        let started = self.txn.is_some();
        if let Some(asked) = modes.isolation {
            let isolation = given(asked);
            if started && isolation != self.modes.isolation {
                let text = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
                return Err(SqlError::new(SqlState::ACTIVE_TXN, text));
            }
            self.modes.isolation = isolation;
            self.modes.asked = asked;
        }
        if let Some(deferrable) = modes.deferrable {
            if started {
                let text = "SET TRANSACTION [NOT] DEFERRABLE must be called before any query";
                return Err(SqlError::new(SqlState::ACTIVE_TXN, text));
            }
            self.modes.deferrable = deferrable;
        }
        if let Some(read_only) = modes.read_only {
            if started && self.modes.read_only && !read_only {
                let text = "transaction read-write mode must be set before any query";
                return Err(SqlError::new(SqlState::ACTIVE_TXN, text));
            }
            self.modes.read_only = read_only;
        }
        Ok(())
    }

    pub(super) fn commit(&mut self, cx: &mut SessionCx<'_>, chain: bool) {
        match self.block {
            Block::Failed => {
                self.undo_txn(cx);
                self.doom_made(0);
                self.after_block(chain);
                self.undo_changes(cx, Position(0));
                return;
            }
            Block::None | Block::Implicit if chain => {
                self.fail(cx, no_block("COMMIT AND CHAIN"), Position(0));
                return;
            }
            Block::None | Block::Implicit => {
                self.warn(
                    SqlState::NO_ACTIVE_TXN,
                    "there is no transaction in progress",
                );
            }
            Block::Explicit => {}
        }
        if self.changes.is_none() || !self.ends_changes(cx, chain) {
            self.end_txn(cx, Ending::Commit { chain });
        }
    }

    pub(super) fn rollback_command(&mut self, cx: &mut SessionCx<'_>, chain: bool) {
        if matches!(self.block, Block::None | Block::Implicit) {
            if chain {
                self.fail(cx, no_block("ROLLBACK AND CHAIN"), Position(0));
                return;
            }
            self.warn(
                SqlState::NO_ACTIVE_TXN,
                "there is no transaction in progress",
            );
        }
        self.undo_txn(cx);
        self.doom_made(0);
        self.steps.clear();
        self.at = 0;
        self.after_block(chain);
        self.undo_changes(cx, Position(0));
    }

    /// A block has ended; with `chain` the next one begins with the same modes.
    pub(super) fn after_block(&mut self, chain: bool) {
        self.close_portals();
        self.savepoints = Savepoints::default();
        self.block_time = None;
        self.holds.tables.clear();
        self.block = if chain { Block::Explicit } else { Block::None };
    }

    /// Ends the open transaction, if there is one, and goes on with `ending`.
    pub(super) fn end_txn(&mut self, cx: &mut SessionCx<'_>, ending: Ending) {
        self.ending = Some(ending);
        let Some(txn) = &mut self.txn else {
            self.ended_well(cx, Position(0));
            return;
        };
        if let Some((error, wait)) = txn.broken.take() {
            self.fail_ending(cx, error, wait);
            return;
        }
        if let Some(text) = self.next_emptied(cx) {
            return self.run_at_end(cx, &text);
        }
        if core::mem::take(&mut self.owes) {
            return self.run_at_end(cx, "SET CONSTRAINTS ALL IMMEDIATE");
        }
        if self.changes.is_some() && self.adopts(cx) {
            return;
        }
        self.activity = Activity::Ending;
        self.tell(cx, ToTxn::Commit);
    }

    /// A statement that is accepted without effect.
    pub(super) fn nothing(&mut self, cx: &mut SessionCx<'_>, tag: &'static str) {
        match (tag, self.block) {
            ("VACUUM", Block::Implicit | Block::Explicit | Block::Failed) => {
                self.fail(cx, not_in_block(tag), Position(0));
            }
            _ => self.complete(Tag::Word(tag)),
        }
    }

    /// SET CONSTRAINTS outside of a block.
    pub(super) fn no_constraints(&mut self) {
        let text = "SET CONSTRAINTS can only be used in transaction blocks";
        self.warn(SqlState::NO_ACTIVE_TXN, text);
        self.complete(Tag::Word("SET CONSTRAINTS"));
    }

    /// Runs a statement of the session's own; the end of the transaction follows.
    fn run_at_end(&mut self, cx: &mut SessionCx<'_>, text: &str) {
        let start = match self.own_statement(cx, text) {
            Ok(start) => start,
            Err(error) => return self.fail_ending(cx, error, Position(0)),
        };
        let plan = start.prepared.plan.clone();
        let plan = plan.expect("the text is a statement");
        let deadline = self.time_limit(cx.now);
        self.run_own(cx, start, plan, deadline);
    }

    /// The coordinator has ended the transaction.
    pub(super) fn on_ended(&mut self, cx: &mut SessionCx<'_>, outcome: Outcome, wait: Position) {
        if !matches!(self.activity, Activity::Ending) {
            return;
        }
        self.activity = Activity::Idle;
        match outcome {
            Outcome::Committed { commit_ts } => {
                self.seen = self.seen.max(commit_ts);
                self.txn = None;
                self.ended_well(cx, wait);
            }
            Outcome::Aborted(reason) => self.on_aborted(cx, reason, wait),
            Outcome::Unknown if is_planted(Planted::RetryUnknown) => {
                self.on_aborted(cx, AbortReason::ParticipantLost(ShardId(0)), wait);
            }
            Outcome::Unknown => {
                self.txn = None;
                self.abandon_changes();
                self.fail_ending(cx, errors::unknown_outcome(), wait);
            }
        }
    }

    /// The transaction has failed to commit.
    pub(super) fn fail_ending(&mut self, cx: &mut SessionCx<'_>, error: SqlError, wait: Position) {
        if self.fails_changes(cx, &error, wait) {
            return;
        }
        // A failed COMMIT ends the block all the same.
        self.block = Block::None;
        self.savepoints = Savepoints::default();
        self.block_time = None;
        self.flush_statics();
        self.fail(cx, error, wait);
    }

    /// The transaction has committed: answers wait for `wait`.
    pub(super) fn ended_well(&mut self, cx: &mut SessionCx<'_>, wait: Position) {
        self.flush_statics();
        self.steps.clear();
        self.at = 0;
        self.retry = None;
        self.carried = None;
        self.has_committed(cx, wait);
        match self
            .ending
            .take()
            .expect("the end of a transaction says what follows")
        {
            Ending::Commit { chain } => {
                self.after_block(chain);
                self.settle_temporary();
                self.settle_changes(cx, wait);
            }
            Ending::Batch | Ending::Sync => {
                self.after_block(false);
                self.end_batch(cx, wait);
            }
            Ending::Ddl(plan) => {
                self.after_block(false);
                self.start_ddl(cx, &plan);
            }
        }
    }

    /// What was done in the transaction lasts from now on.
    pub(super) fn has_committed(&mut self, cx: &mut SessionCx<'_>, wait: Position) {
        self.keep_settings();
        self.hold_cursors();
        self.tell_others(cx, wait);
    }

    /// Rolls back the open transaction without waiting for the coordinator.
    pub(super) fn roll_back(&mut self, cx: &mut SessionCx<'_>) {
        if let Some(txn) = self.txn.take()
            && !txn.gone
        {
            self.note_rollback(cx.now);
            cx.to_txn
                .push_back((txn.coordinator, txn.handle, ToTxn::Rollback));
        }
    }

    pub(super) fn warn(&mut self, state: SqlState, text: &str) {
        self.notice(Severity::Warning, SqlError::new(state, text));
    }

    pub(super) fn complete(&mut self, tag: Tag) {
        self.say(Reply::CommandComplete(tag), Position(0));
    }
}

pub(super) fn no_block(what: &str) -> SqlError {
    let message = format!("{what} can only be used in transaction blocks");
    SqlError::new(SqlState::NO_ACTIVE_TXN, message)
}

pub(super) fn not_in_block(tag: &str) -> SqlError {
    let message = format!("{tag} cannot run inside a transaction block");
    SqlError::new(SqlState::ACTIVE_TXN, message)
}
