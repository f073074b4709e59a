//! One shard's part of pg_locks: the locks for which requests wait, those in their way, and the
//! sessions of the transactions that the shard coordinates.
//!
//! A transaction may wait on another node than its session's, so the asking shard joins the two.

use crate::core::Core;
use crate::show_rows::EPOCH_2000_US;
use crate::stages::text;
use base::{Datum, IndexId, RowBatch, TableId, TxnId};
use catalog::{Catalog, Database, ProtocolKind, TableLock};
use session::Session;
use std::collections::{BTreeMap, BTreeSet};
use txn::LockMode;
use txn::lock::{Awaited, AwaitedLock};

/// Number of locks above which a shard adds no more requests that wait.
const LOCKS_MAX: usize = 1_000;

/// Database and relation of each key space, as their oids.
type Relations = BTreeMap<IndexId, (u32, u32)>;

/// Rows of `Show::Locks`: (transaction, pid, kind, database, relation, page, tuple, mode,
/// waitstart).
pub(crate) fn rows(core: &Core, sessions: impl Iterator<Item = (TxnId, i32)>) -> RowBatch {
    let mut batch = RowBatch::new(9);
    for (txn, pid) in sessions {
        let named = [text(&txn.to_string()), Datum::Int(i64::from(pid))];
        batch.push(named.into_iter().chain([const { Datum::Null }; 7]));
    }
    let databases = core.catalog.databases.values();
    let kinds: BTreeSet<ProtocolKind> = databases.map(|database| database.protocol).collect();
    let mut relations = None;
    for kind in kinds {
        let locks = core.protocols.locks(kind);
        for lock in locks.map_or(Vec::new(), |locks| locks.awaited_locks(LOCKS_MAX)) {
            let relations = relations.get_or_insert_with(|| relations_of(&core.catalog));
            push(core, relations, &lock, &mut batch);
        }
    }
    batch
}

fn relations_of(catalog: &Catalog) -> Relations {
    let mut relations = Relations::new();
    for database in catalog.databases.values() {
        for table in database.tables.values() {
            let secondary = table.secondary.iter().map(|index| (index.id, index.id.0));
            for (index, oid) in secondary.chain([(table.primary.id, table.id.0)]) {
                relations.insert(index, (database.id.0, oid));
            }
        }
        for sequence in database.sequences.values() {
            relations.insert(sequence.id, (database.id.0, sequence.id.0));
        }
    }
    relations
}

fn push(core: &Core, relations: &Relations, lock: &AwaitedLock, batch: &mut RowBatch) {
    let int = |value: u64| Datum::Int(value as i64);
    // 31 and 15 bits, since the columns are int4 and int2.
    let (kind, index, page, tuple) = match lock.what {
        Awaited::Row(index, hash) => {
            let (page, tuple) = (hash >> 33, hash & 0x7fff);
            ("tuple", Some(index), page, int(tuple))
        }
        Awaited::Range(index, hash) => ("page", Some(index), hash >> 33, Datum::Null),
        Awaited::Shard => {
            let shard = u64::from(core.config.shard.0);
            ("page", None, shard, Datum::Null)
        }
    };
    let found = index.and_then(|index| relations.get(&index));
    let oid = |of: Option<u32>| of.map_or(Datum::Null, |oid| int(u64::from(oid)));
    let since = lock.since.map(|since| since.0 as i64 - EPOCH_2000_US);
    batch.push([
        text(&lock.txn.to_string()),
        Datum::Null,
        text(kind),
        oid(found.map(|(database, _)| *database)),
        oid(found.map(|(_, relation)| *relation)),
        int(page),
        tuple,
        text(mode_name(lock.mode)),
        since.map_or(Datum::Null, Datum::Timestamp),
    ]);
}

/// Adds the locks of tables that sessions of this shard have and wait for.
pub(crate) fn push_tables<'a>(
    core: &Core,
    sessions: impl Iterator<Item = &'a Session>,
    batch: &mut RowBatch,
) {
    let mut add = |database: &Database, pid: i32, table: TableId, mode: TableLock, since| {
        batch.push([
            text(&format!("{pid}/0")),
            Datum::Int(i64::from(pid)),
            text("relation"),
            Datum::Int(i64::from(database.id.0)),
            Datum::Int(i64::from(table.0)),
            Datum::Null,
            Datum::Null,
            text(mode.name()),
            since,
        ]);
    };
    let here = core.config.shard;
    for database in core.catalog.databases.values() {
        let blocks = database.blocks.iter();
        for block in blocks.filter(|block| session::pid_shard(block.session) == Some(here)) {
            for (table, mode, _) in block.locks() {
                add(database, block.session, table, mode, Datum::Null);
            }
        }
    }
    for session in sessions {
        let Some(database) = core.catalog.databases.get(session.database_name()) else {
            continue;
        };
        for (table, mode) in session.held_tables() {
            add(database, session.pid(), table, mode, Datum::Null);
        }
        for (table, mode, since) in session.awaited_tables() {
            let since = Datum::Timestamp(since.0 as i64 - EPOCH_2000_US);
            add(database, session.pid(), table, mode, since);
        }
    }
}

/// The mode of PostgreSQL that excludes, of these four, those that the mode here excludes.
fn mode_name(mode: LockMode) -> &'static str {
    match mode {
        LockMode::Shared => "ShareLock",
        LockMode::Increment => "RowExclusiveLock",
        LockMode::Fold => "ShareUpdateExclusiveLock",
        LockMode::Exclusive => "AccessExclusiveLock",
    }
}
