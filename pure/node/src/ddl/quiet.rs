//! A change waits for open blocks that have written to its tables (`machine::quiesce`).

use super::{Action, Change, Ddl, Origin, Waiting};
use base::{ShardId, TableId, Time};
use catalog::{Catalog, Command};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Longest time, in microseconds, for which a change of the schema waits for open blocks, and
/// statements for the change. A change of protocol gives blocks as long.
pub(crate) const QUIESCE_US: u64 = 1_000_000;

/// The tables of the next command are to become quiet.
#[derive(Debug)]
pub(super) struct Quiet {
    /// Shards where a block that has written to them may be open.
    pub(super) missing: BTreeSet<ShardId>,
    /// When the change goes on in any case.
    until: Time,
}

impl Quiet {
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.missing.is_empty() || self.until <= now
    }
}

impl Ddl {
    /// The shard has no open block any more that has written to the tables of this version.
    pub(crate) fn on_quiesced(&mut self, from: ShardId, version: u64) {
        if let Some(change) = &mut self.current
            && change.quiesced == version
            && let Waiting::Quiet(quiet) = &mut change.waiting
        {
            quiet.missing.remove(&from);
        }
    }

    /// When the change goes on without further answers.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let Some(current) = &self.current else {
            return self
                .blocked_until()
                .into_iter()
                .chain(self.locks_until())
                .min();
        };
        let of_change = match &current.waiting {
            Waiting::Quiet(quiet) => Some(quiet.until),
            Waiting::Batch {
                handle: None,
                begins,
                ..
            } => Some(*begins),
            Waiting::Nothing | Waiting::Acks { .. } | Waiting::Batch { .. } => None,
        };
        of_change.into_iter().chain(self.locks_until()).min()
    }
}

impl Change {
    /// Whether the change waits for blocks and no command was applied: it can be given up.
    pub(super) fn is_untouched(&self) -> bool {
        self.applied == 0 && matches!(self.waiting, Waiting::Quiet(_))
    }

    /// The wait for quiet tables is over. If time was up, further commands of the change do not
    /// wait: the open blocks fail anyway.
    pub(super) fn end_quiet(&mut self) {
        let waiting = core::mem::replace(&mut self.waiting, Waiting::Nothing);
        if let Waiting::Quiet(quiet) = waiting
            && !quiet.missing.is_empty()
        {
            self.quiesced = u64::MAX;
        }
    }

    /// Before a command that changes tables with rows: makes the tables quiet, once.
    pub(super) fn quiesce(
        &mut self,
        command: &Command,
        catalog: &Arc<Catalog>,
        now: Time,
    ) -> Option<Action> {
        let version = catalog.version + 1;
        let is_undoing = self.failure.is_some() || self.origin == Origin::Restart;
        let is_end = matches!(command, Command::Block { .. });
        if is_undoing || is_end || self.quiesced >= version {
            return None;
        }
        let tables = changed_tables(command, catalog);
        if tables.is_empty() {
            return None;
        }
        self.quiesced = version;
        self.waiting = Waiting::Quiet(Quiet {
            missing: catalog.placement.shards().iter().copied().collect(),
            until: now.after(QUIESCE_US),
        });
        Some(Action::Quiesce { version, tables })
    }
}

/// Tables whose writers a command makes fail: those that it changes or drops. A frozen table has no
/// writers.
fn changed_tables(command: &Command, catalog: &Arc<Catalog>) -> Vec<TableId> {
    let Ok((next, _)) = catalog.apply(command) else {
        return Vec::new();
    };
    let mut changed = Vec::new();
    for (name, database) in &catalog.databases {
        let after = next.databases.get(name);
        if after.is_some_and(|after| Arc::ptr_eq(after, database)) {
            continue;
        }
        let tables = database.tables.values().filter(|table| !table.frozen);
        let writable = tables.filter(|table| {
            let after = after.and_then(|after| after.tables.get(&table.name));
            after.is_none_or(|after| after.id != table.id || after.changed != table.changed)
        });
        changed.extend(writable.map(|table| table.id));
    }
    changed
}
