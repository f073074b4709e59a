//! Changes that wait for an open block which has changed what they change, and what ends one.

use super::{Action, Change, Ddl, Nodes, Origin, Queued, Step};
use crate::message::DdlWork;
use base::{SqlError, SqlState, Time};
use catalog::{BlockChange, Catalog, Command, IMAGES_MAX};
use plan::Fill;
use session::message::DdlStop;
use session::undone::needs_all_nodes;
use std::sync::Arc;

/// Microseconds for which a change waits for open blocks that stand in its way, before it fails.
pub(crate) const BLOCKED_US: u64 = 2_000_000;

impl DdlWork {
    /// Whether it does nothing but end or undo changes of blocks.
    fn ends_block(&self) -> bool {
        let is_end = |command: &Command| matches!(command, Command::Block { .. });
        self.fill.is_none() && self.after.is_empty() && self.before.iter().all(is_end)
    }
}

impl Change {
    /// The transaction of the block has not committed and cannot any more: what was to settle its
    /// changes undoes them.
    pub(super) fn undo_block(&mut self) {
        for step in &mut self.steps {
            if let Step::Command(command) = step
                && let Command::Block { change, .. } = &mut **command
            {
                *change = BlockChange::RollBack;
            }
        }
    }
}

impl Queued {
    /// The session whose open block stands in its way.
    fn blocked_by(&mut self, catalog: &Arc<Catalog>) -> Option<i32> {
        match self.checked {
            Some((version, session)) if version == catalog.version => session,
            _ if self.origin == Origin::Restart => None,
            _ => {
                let of_stages = self.work.fill.iter().flat_map(Fill::commands);
                let commands = self.work.before.iter().chain(of_stages);
                let session = catalog.blocked_by(commands, &self.work.asker);
                self.checked = Some((catalog.version, session));
                session
            }
        }
    }
}

impl Ddl {
    /// The client cancels its change. The answer comes from [`Ddl::next`], or from here if the
    /// change had not begun.
    pub(crate) fn cancel(&mut self, by: Origin, stop: DdlStop) -> Option<Action> {
        if let Some(at) = self.queue.iter().position(|it| it.origin == by) {
            let queued = self.queue.remove(at)?;
            self.forget_asking(&queued);
            return Some(Action::Answer(queued.origin, Err(stop.error())));
        }
        if let Some(change) = &mut self.current
            && change.origin == by
            && change.failure.is_none()
            && match stop {
                DdlStop::LockTimeout => change.is_untouched(),
                DdlStop::Canceled | DdlStop::StatementTimeout => {
                    change.is_untouched() || change.needs_everybody()
                }
            }
        {
            change.fail(stop.error());
        }
        None
    }

    /// Begins the first change that can, or answers one that cannot.
    pub(super) fn begin(&mut self, catalog: &Arc<Catalog>, nodes: Nodes<'_>) -> Option<Action> {
        let down = nodes.down;
        if let Some(late) = self.refuse_blocked(catalog, nodes.now) {
            return Some(late);
        }
        let at = self.first_free(catalog)?;
        let restart = self.queue[at].origin == Origin::Restart;
        if !down.is_empty() && (restart || nodes.starting) {
            return None;
        }
        let Queued {
            origin,
            database,
            work,
            until: _,
            checked: _,
            asking,
        } = self.queue.remove(at)?;
        // The end of a block needs no node that is down: nobody there can write to its tables.
        let ends_block = work.ends_block();
        if !down.is_empty() && !ends_block {
            self.pass(&asking);
            return Some(Action::Answer(origin, Err(needs_all_nodes(down))));
        }
        if let (Some(node), false) = (nodes.full.first(), restart || ends_block) {
            let error = session::errors::disk_full(*node);
            self.pass(&asking);
            return Some(Action::Answer(origin, Err(error)));
        }
        let id = self.id_of(origin);
        self.begin_lock(&asking);
        self.current = Some(Change::new(origin, id, database, work));
        None
    }

    /// The first change that no open block stands in the way of.
    fn first_free(&mut self, catalog: &Arc<Catalog>) -> Option<usize> {
        let is_free = |ddl: &mut Ddl, at: usize| match ddl.queue[at].work.locks() {
            true => ddl.is_free(at, catalog),
            false => ddl.queue[at].blocked_by(catalog).is_none(),
        };
        (0..self.queue.len()).find(|at| is_free(self, *at))
    }

    /// Refuses a change that has waited for long enough, or that belongs to a block with too many.
    fn refuse_blocked(&mut self, catalog: &Arc<Catalog>, now: Time) -> Option<Action> {
        if catalog.open_blocks == 0 {
            return None;
        }
        for at in 0..self.queue.len() {
            let queued = &mut self.queue[at];
            if queued.work.locks() && !is_full(catalog, queued.work.asker.session) {
                continue;
            }
            if queued.origin == Origin::Restart || queued.work.ends_block() {
                continue;
            }
            let blocked = queued.blocked_by(catalog);
            let asker = &queued.work.asker;
            let error = match blocked {
                Some(session) if *queued.until.get_or_insert(now.after(BLOCKED_US)) <= now => {
                    session::errors::shut(Some(session))
                }
                None if asker.block.is_some() && is_full(catalog, asker.session) => too_many(),
                Some(_) | None => continue,
            };
            let queued = self.queue.remove(at)?;
            self.forget_asking(&queued);
            return Some(Action::Answer(queued.origin, Err(error)));
        }
        None
    }

    /// When a change that waits for blocks fails.
    pub(super) fn blocked_until(&self) -> Option<Time> {
        if self.current.is_some() {
            return None;
        }
        self.queue.iter().filter_map(|queued| queued.until).min()
    }
}

fn is_full(catalog: &Catalog, session: i32) -> bool {
    let mut databases = catalog.databases.values();
    databases.any(|database| {
        let block = database.block_of(session);
        block.is_some_and(|block| block.image_count() >= IMAGES_MAX)
    })
}

fn too_many() -> SqlError {
    let message = "too many schema changes in one transaction block";
    SqlError::new(SqlState::PROGRAM_LIMIT, message)
        .detail(format!("A block keeps {IMAGES_MAX} objects as they were."))
        .hint("Use several blocks.")
}
