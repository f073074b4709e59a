//! Locks of whole tables, by LOCK TABLE (docs/adr/0044-table-locks-in-the-catalog.md).
//!
//! Modes from SHARE UPDATE EXCLUSIVE on are kept in the catalog, beside the images of the block
//! that holds them, until the block ends or goes back behind them. The weaker modes are those of
//! statements: a session knows its own.

use crate::blocks::{Image, OpenBlock};
use crate::command::CatalogError;
use crate::desc::{Catalog, Database};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;
use base::{IndexId, SqlError, SqlState, TableId};
use serde::{Deserialize, Serialize};

/// Modes of LOCK TABLE, from the weakest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum TableLock {
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

impl TableLock {
    /// Its name in pg_locks.
    pub fn name(self) -> &'static str {
        match self {
            TableLock::AccessShare => "AccessShareLock",
            TableLock::RowShare => "RowShareLock",
            TableLock::RowExclusive => "RowExclusiveLock",
            TableLock::ShareUpdateExclusive => "ShareUpdateExclusiveLock",
            TableLock::Share => "ShareLock",
            TableLock::ShareRowExclusive => "ShareRowExclusiveLock",
            TableLock::Exclusive => "ExclusiveLock",
            TableLock::AccessExclusive => "AccessExclusiveLock",
        }
    }

    /// Whether two sessions may not have a table in these modes at a time, as in PostgreSQL.
    pub fn excludes(self, other: TableLock) -> bool {
        let (weak, strong) = (self.min(other), self.max(other));
        match strong {
            TableLock::AccessExclusive => true,
            TableLock::Exclusive => weak >= TableLock::RowShare,
            TableLock::ShareRowExclusive | TableLock::ShareUpdateExclusive => {
                weak >= TableLock::RowExclusive && (strong, weak) != UPKEEP_BESIDE_WRITES
            }
            TableLock::Share => {
                matches!(
                    weak,
                    TableLock::RowExclusive | TableLock::ShareUpdateExclusive
                )
            }
            TableLock::AccessShare | TableLock::RowShare | TableLock::RowExclusive => false,
        }
    }

    /// Whether the catalog keeps it: it excludes itself or what a statement does.
    pub fn is_kept(self) -> bool {
        self >= TableLock::ShareUpdateExclusive
    }

    /// Whether nobody else may write meanwhile.
    pub fn holds_off_writers(self) -> bool {
        self.excludes(TableLock::RowExclusive)
    }
}

/// SHARE UPDATE EXCLUSIVE goes on beside writers.
const UPKEEP_BESIDE_WRITES: (TableLock, TableLock) =
    (TableLock::ShareUpdateExclusive, TableLock::RowExclusive);

impl OpenBlock {
    /// Tables that the block has locked, the modes, and the versions of the catalog that did.
    pub fn locks(&self) -> impl Iterator<Item = (TableId, TableLock, u64)> {
        self.images().filter_map(|image| match image {
            Image::Lock(table, mode, version) => Some((*table, *mode, *version)),
            _ => None,
        })
    }

    /// Whether the block has locked tables and changed nothing.
    pub fn only_locks(&self) -> bool {
        let is_lock = |image: &Image| matches!(image, Image::Lock(..) | Image::Fills(_));
        self.images().all(is_lock)
    }

    /// Whether the block has locked the table in a mode that excludes this one.
    pub fn excludes(&self, table: TableId, mode: TableLock) -> bool {
        let mut locks = self.locks();
        locks.any(|(of, held, _)| of == table && held.excludes(mode))
    }

    /// Whether the block has locked the table in a mode that holds off writers.
    fn holds_off_writers(&self, table: TableId) -> bool {
        let mut locks = self.locks();
        locks.any(|(of, mode, _)| of == table && mode.holds_off_writers())
    }
}

impl Database {
    /// A session other than `session` whose block has this table in a mode that excludes `mode`.
    pub fn locked_by(&self, table: TableId, mode: TableLock, session: i32) -> Option<i32> {
        let mut others = self.blocks.iter().filter(|it| it.session != session);
        let found = others.find(|block| block.excludes(table, mode));
        found.map(|block| block.session)
    }

    /// Sessions whose blocks keep `session` from locking these tables in this mode.
    pub fn lock_holders(&self, tables: &[TableId], mode: TableLock, session: i32) -> Vec<i32> {
        let wanted: BTreeSet<TableId> = tables.iter().copied().collect();
        let others = self.blocks.iter().filter(|it| it.session != session);
        let holds = others.filter(|block| {
            block.images().any(|image| match image {
                Image::Lock(table, held, _) => wanted.contains(table) && held.excludes(mode),
                Image::Table(name, _) => {
                    let table = self.tables.get(name);
                    table.is_some_and(|table| wanted.contains(&table.id))
                }
                _ => false,
            })
        });
        holds.map(|block| block.session).collect()
    }

    /// Whether the session's block has this table in a mode that holds off writers.
    pub fn has_locked(&self, table: TableId, session: i32) -> bool {
        let block = self.block_of(session);
        block.is_some_and(|block| block.holds_off_writers(table))
    }
}

impl Catalog {
    /// Indexes of tables that blocks have locked against writers, with the versions since which
    /// nobody else writes to them.
    pub fn locked_indexes(&self) -> Vec<(IndexId, u64)> {
        let mut found = Vec::new();
        if self.open_blocks == 0 {
            return found;
        }
        for database in self.databases.values() {
            let mut since: BTreeMap<TableId, u64> = BTreeMap::new();
            for block in &database.blocks {
                // Since the first lock: the block may have written behind it.
                let mut first: BTreeMap<TableId, u64> = BTreeMap::new();
                for (table, _, version) in block.locks().filter(|it| it.1.holds_off_writers()) {
                    let known = first.entry(table).or_insert(version);
                    *known = version.min(*known);
                }
                for (table, version) in first {
                    let known = since.entry(table).or_default();
                    *known = version.max(*known);
                }
            }
            for table in database.tables.values().filter(|_| !since.is_empty()) {
                if let Some(version) = since.get(&table.id) {
                    found.extend(table.indexes().map(|index| (index.id, *version)));
                }
            }
        }
        found
    }

    /// The block of a session locks tables, and may be about to fill one.
    ///
    /// # Errors
    /// 42P01: a table is gone. 55P03: somebody else has it locked.
    pub(crate) fn lock_tables(
        &mut self,
        (database, session): (&str, i32),
        tables: &[TableId],
        (mode, fills): (TableLock, Option<TableId>),
    ) -> Result<(), CatalogError> {
        let version = self.version;
        let marker = fills.map(|_| IndexId(self.next_number()));
        let owner = self.database_mut(database)?;
        let known: BTreeSet<TableId> = owner.tables.values().map(|table| table.id).collect();
        if let Some(gone) = tables.iter().find(|id| !known.contains(id)) {
            let message = format!("could not open relation with OID {}", gone.0);
            return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
        }
        if !owner.lock_holders(tables, mode, session).is_empty() {
            let message = "canceling statement due to lock timeout";
            return Err(SqlError::new(SqlState::LOCK_NOT_AVAILABLE, message));
        }
        if owner.block_of(session).is_none() {
            owner.blocks.push(OpenBlock::new(session));
        }
        let mut blocks = owner.blocks.iter_mut();
        let block = blocks.find(|block| block.session == session);
        let block = block.expect("just made");
        block.note_locks(tables, mode, version);
        if let (Some(table), Some(marker)) = (fills, marker) {
            block.note_fill(table, || marker);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::TableLock::{self, *};

    /// PostgreSQL's table of conflicts, a row for each mode, from the weakest.
    const TABLE: [&str; 8] = [
        ".......X", "......XX", "....XXXX", "...XXXXX", "..XX.XXX", "..XXXXXX", ".XXXXXXX",
        "XXXXXXXX",
    ];

    const MODES: [TableLock; 8] = [
        AccessShare,
        RowShare,
        RowExclusive,
        ShareUpdateExclusive,
        Share,
        ShareRowExclusive,
        Exclusive,
        AccessExclusive,
    ];

    #[test]
    fn modes_exclude_each_other_as_in_postgresql() {
        for (row, one) in TABLE.iter().zip(MODES) {
            for (mark, other) in row.chars().zip(MODES) {
                assert_eq!(one.excludes(other), mark == 'X', "{one:?} and {other:?}");
            }
        }
    }
}
