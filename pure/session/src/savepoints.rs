//! SAVEPOINT, RELEASE and ROLLBACK TO.
//!
//! ```text
//! SAVEPOINT     noted here; told to the shards on which the open transaction may have written
//! error         the transaction stays open while there is a savepoint, and the block has failed
//! ROLLBACK TO   the shards undo the writes since; settings, cursors and portals go back as well
//! ```
//!
//! What a savepoint does not bring back: locks, rows that have come, what was read, drawn values of
//! sequences. If the protocol has rolled the whole transaction back (a conflict, a lost node), then
//! there is nothing to go back to, and ROLLBACK TO says so.

use super::block::Block;
use super::plans::Prepared;
use super::run::Start;
use super::settings;
use super::{Activity, Session, SessionCx};
use base::{Position, SqlError, SqlState};
use plan::{Plan, PlanKind};
use std::rc::Rc;
use std::sync::Arc;
use txn::Savepoint;
use wire::Tag;

/// Most savepoints of a block that can be gone back to at a time.
const SAVEPOINTS_MAX: usize = 10_000;

/// Longest time, in microseconds, that ROLLBACK TO takes: operations of a cancelled statement may
/// still wait for other transactions, and must be over before their writes are undone.
const ROLL_BACK_US_MAX: u64 = 10_000_000;

/// The savepoints of a block.
#[derive(Default)]
pub(super) struct Savepoints {
    stack: Vec<Saved>,
    /// Number of the last one.
    count: u32,
    /// The transaction was rolled back since: there is nothing to go back to.
    lost: bool,
}

/// A savepoint as its session knows it.
struct Saved {
    name: String,
    number: u32,
    settings: settings::Mark,
    read_only: bool,
    /// Number of images that the catalog had of the block.
    images: u32,
    /// What the transaction was to tell others.
    told: (usize, usize),
    /// Cursors and portals that were open.
    open: Vec<String>,
}

impl Savepoints {
    pub(super) fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.stack.len()
    }

    /// The place of the newest savepoint of this name.
    fn find(&self, name: &str) -> Result<usize, SqlError> {
        let found = self.stack.iter().rposition(|saved| saved.name == name);
        found.ok_or_else(|| {
            let message = format!("savepoint \"{name}\" does not exist");
            SqlError::new(SqlState::UNDEFINED_SAVEPOINT, message)
        })
    }
}

impl Session {
    /// Whether the open block survives an error of its present statement. Only a statement that has
    /// ended leaves a transaction that can go on.
    pub(super) fn outlives_error(&self) -> bool {
        let over = !matches!(self.activity, Activity::Running | Activity::Ending);
        // Without a transaction the block has not begun one, or was about to run it again.
        let open = match &self.txn {
            Some(txn) => !txn.gone,
            None => self.retry.is_none(),
        };
        // One that fails when it runs again may have savepoints behind it that are not set.
        let latest = self.at + 1 >= self.steps.len();
        over && open && latest && !self.savepoints.is_empty() && !self.savepoints.lost
    }

    /// Whether a failed block can go back to a savepoint.
    pub(super) fn can_go_back(&self) -> bool {
        !self.savepoints.lost && self.txn.as_ref().is_none_or(|txn| !txn.gone)
    }

    /// Only the first `kept` savepoints stay.
    pub(super) fn cut_savepoints(&mut self, kept: usize) {
        self.savepoints.stack.truncate(kept);
    }

    /// Number of images of the block that the newest savepoint keeps.
    pub(super) fn newest_images(&self) -> u32 {
        self.savepoints.stack.last().map_or(0, |saved| saved.images)
    }

    /// The transaction of the block was rolled back.
    pub(super) fn lose_savepoints(&mut self) {
        self.savepoints.lost = true;
    }

    /// The settings go back to the newest savepoint, as in PostgreSQL at the error already.
    pub(super) fn restore_saved_settings(&mut self) {
        let Some(saved) = self.savepoints.stack.last() else {
            return;
        };
        self.modes.read_only = saved.read_only;
        if self.settings.go_back(&saved.settings) {
            self.settings_changed();
        }
    }

    pub(super) fn savepoint(&mut self, cx: &mut SessionCx<'_>, name: &str, start: Start) {
        if self.block != Block::Explicit {
            return self.fail(cx, not_in_block("SAVEPOINT"), Position(0));
        }
        if self.savepoints.stack.len() >= SAVEPOINTS_MAX {
            let error = SqlError::new(SqlState::PROGRAM_LIMIT, "too many savepoints")
                .detail(format!("A block can have {SAVEPOINTS_MAX}."))
                .hint("Release savepoints that are not needed any more.");
            return self.fail(cx, error, Position(0));
        }
        self.savepoints.count += 1;
        let number = self.savepoints.count;
        let within = self.savepoints.stack.last().map_or(0, |saved| saved.number);
        let open = self.cursors.keys().chain(self.portals.keys()).cloned();
        self.savepoints.stack.push(Saved {
            name: name.to_owned(),
            number,
            settings: self.settings.mark(),
            read_only: self.modes.read_only,
            images: self.images(cx),
            told: self.mark_telling(),
            open: open.collect(),
        });
        self.tell_shards(cx, Savepoint::Set { number, within }, start);
    }

    pub(super) fn release_savepoint(&mut self, cx: &mut SessionCx<'_>, name: &str) {
        if self.block != Block::Explicit {
            return self.fail(cx, not_in_block("RELEASE SAVEPOINT"), Position(0));
        }
        match self.savepoints.find(name) {
            Ok(place) => {
                self.savepoints.stack.truncate(place);
                self.join_made(place);
                self.complete(Tag::Word("RELEASE"));
            }
            Err(error) => self.fail(cx, error, Position(0)),
        }
    }

    pub(super) fn roll_back_to(&mut self, cx: &mut SessionCx<'_>, name: &str, start: Start) {
        if !matches!(self.block, Block::Explicit | Block::Failed) {
            return self.fail(cx, not_in_block("ROLLBACK TO SAVEPOINT"), Position(0));
        }
        let place = match self.savepoints.find(name) {
            Ok(place) => place,
            Err(error) => return self.fail(cx, error, Position(0)),
        };
        if self.savepoints.lost || self.txn.as_ref().is_some_and(|txn| txn.gone) {
            self.savepoints.lost = true;
            return self.fail(cx, lost(name), Position(0));
        }
        let Some(start) = self.after_made(cx, place + 1, start) else {
            return;
        };
        let images = self.savepoints.stack[place].images;
        let Some(start) = self.after_changes(cx, images, start) else {
            return;
        };
        self.savepoints.stack.truncate(place + 1);
        self.restore_saved_settings();
        let saved = &self.savepoints.stack[place];
        let (number, told) = (saved.number, saved.told);
        let names = self.cursors.keys().chain(self.portals.keys());
        let closed: Vec<String> = names
            .filter(|it| !saved.open.contains(it))
            .cloned()
            .collect();
        for name in closed {
            self.close_named(cx, &name);
        }
        if let Some(txn) = &mut self.txn {
            txn.broken = None;
        }
        self.untell_since(told);
        self.block = Block::Explicit;
        self.tell_shards(cx, Savepoint::RollBackTo(number), start);
    }

    /// Has the shards of the open transaction set a savepoint or go back to one. Without a
    /// transaction there is nothing to tell.
    fn tell_shards(&mut self, cx: &mut SessionCx<'_>, savepoint: Savepoint, start: Start) {
        let (tag, timeout_us) = match savepoint {
            Savepoint::Set { .. } => ("SAVEPOINT", 0),
            Savepoint::RollBackTo(_) => ("ROLLBACK", ROLL_BACK_US_MAX),
            Savepoint::Renew { .. } => unreachable!("no statement asks for it"),
        };
        if self.txn.is_none() {
            self.complete(Tag::Word(tag));
            return;
        }
        if self.mark_telling() != (0, 0)
            && let Some(txn) = &mut self.txn
        {
            // Run again, its statements would tell in another order.
            txn.retryable = false;
        }
        let limits = [self.settings.knobs.statement_timeout_us, timeout_us];
        let limit = limits.into_iter().filter(|us| *us > 0).min();
        let deadline = limit.map(|us| cx.now.after(us));
        let plan = Arc::new(Plan::plain(
            PlanKind::Savepoint(savepoint),
            cx.catalog.version,
        ));
        self.run_own(cx, start, plan, deadline);
    }
}

/// The error of a savepoint that could not be set or gone back to, in place of why.
pub(super) fn failed(prepared: &Rc<Prepared>, plan: &Plan) -> Option<SqlError> {
    matches!(plan.kind, PlanKind::Savepoint(_)).then(|| {
        let name = prepared.text.split_whitespace().next_back().unwrap_or("");
        lost(name.trim_end_matches(';').trim_matches('"'))
    })
}

fn lost(name: &str) -> SqlError {
    let message = format!("could not go back to savepoint \"{name}\"");
    SqlError::new(SqlState::SERIALIZATION, message)
        .detail("The whole transaction was rolled back.")
        .hint("The transaction might succeed if retried.")
}

fn not_in_block(what: &str) -> SqlError {
    let message = format!("{what} can only be used in transaction blocks");
    SqlError::new(SqlState::NO_ACTIVE_TXN, message)
}
