//! One shard's part of the answers to SHOW. `parse::show` has the columns.

use crate::core::Core;
use crate::stages::text;
use base::{Datum, Key, NodeId, RowBatch, ShardId, Time};
use catalog::{Database, Execution, Index, Table};
use expr::Ends;
use functions::keywords::quote_ident;
use parse::show::{Combine, Show};
use session::Description;
use session::errors::key_text;
use std::collections::BTreeMap;

/// Microseconds from 1970 to 2000-01-01, from which SQL counts.
pub(crate) const EPOCH_2000_US: i64 = 946_684_800_000_000;

/// Bits of the changes in one life of a node in the version of an owner table; the number of the
/// life stands before them.
const CHANGE_BITS: u32 = 40;

/// What a shard knows when it answers.
pub(crate) struct Facts<'a, S> {
    pub(crate) core: &'a Core,
    /// Database of the session that asks.
    pub(crate) database: &'a str,
    /// Sessions of this shard.
    pub(crate) sessions: S,
    /// Nodes to which it has a connection, and their incarnations.
    pub(crate) peers: &'a BTreeMap<NodeId, u32>,
}

impl<'a, S: Iterator<Item = Description<'a>>> Facts<'a, S> {
    /// The shard's rows.
    pub(crate) fn rows_of(self, what: Show) -> RowBatch {
        let (core, database) = (self.core, self.database);
        match what {
            Show::Counters => counters(core),
            Show::Databases => databases(core, self.sessions),
            Show::Distribution => distribution(core, database),
            Show::Hottest => hottest(core, database),
            Show::InDoubt => in_doubt(core),
            Show::Memory => memory(core),
            Show::Nodes => nodes(core, self.peers),
            Show::Ownership => ownership(core),
            Show::Pending => pending(core, database),
            Show::Placement => placement(core, database),
            Show::Sessions => sessions(core, self.sessions),
            Show::ShardCounters => shard_counters(core),
            Show::Stages | Show::Locks | Show::Statements | Show::ForgetStatements => {
                unreachable!("a shard tells of these itself")
            }
            Show::Tables => tables(core, database),
            // The session tells it.
            Show::TransactionCost => RowBatch::new(0),
            Show::Waiters => waiters(core, database),
            Show::Activity => activity(self.sessions),
            Show::Sizes => sizes(core),
            Show::Rows | Show::Analyze => rows(core, database),
            Show::Values => crate::sampling::values(core, database),
        }
    }
}

/// (name, value)
fn counters(core: &Core) -> RowBatch {
    let mut batch = RowBatch::new(2);
    for (name, value) in core.counters.list() {
        batch.push([text(name), Datum::Int(value as i64)]);
    }
    batch
}

/// (shard, name, value)
fn shard_counters(core: &Core) -> RowBatch {
    let mut batch = RowBatch::new(3);
    let shard = text(&core.config.shard.to_string());
    for (name, value) in core.counters.list() {
        batch.push([shard.clone(), text(name), Datum::Int(value as i64)]);
    }
    batch
}

/// (table, index, shard, slots, rows, row_bytes, version, owner_version): key spaces of `database`
/// that have rows here.
fn placement(core: &Core, database: &str) -> RowBatch {
    let mut batch = RowBatch::new(8);
    let known = core.catalog.databases.get(database);
    let moving = known.and_then(|known| core.protocols.moving_of(known.protocol));
    let owners = moving.map_or(Datum::Null, |rows| {
        let life = u64::from(core.config.incarnation);
        Datum::Int((life << CHANGE_BITS | rows.moves().table_changes) as i64)
    });
    for table in tables_of(core, database) {
        for index in table.indexes() {
            let (counts, slots) = core.store.index_counts(index.id);
            batch.push([
                name_of(core, table),
                text(&index.name),
                text(&core.config.shard.to_string()),
                Datum::Int(slots as i64),
                Datum::Int(counts.rows as i64),
                Datum::Int(counts.bytes as i64),
                Datum::Int(table.changed as i64),
                owners.clone(),
            ]);
        }
    }
    batch
}

/// (nodes, transactions): what this shard has committed as the coordinator, in `database`.
fn distribution(core: &Core, database: &str) -> RowBatch {
    let mut batch = RowBatch::new(2);
    if let Some(database) = core.catalog.databases.get(database) {
        for (nodes, transactions) in core.degrees.of(database.id) {
            batch.push([Datum::Int(nodes as i64), Datum::Int(transactions as i64)]);
        }
    }
    batch
}

/// One row of SHOW MEMORY: what this shard holds, and what its node has in all.
fn memory(core: &Core) -> RowBatch {
    let mut batch = RowBatch::new(10);
    let counts = core.store.counts();
    let node = core.journal.memory;
    let numbers = [
        counts.rows as u64,
        counts.versions as u64,
        counts.bytes as u64,
        core.protocols.lock_count() as u64,
        core.memory_bytes.max(0) as u64,
        node.journal_bytes,
        node.used_bytes,
        node.writes_until_bytes,
        node.limit_bytes,
    ];
    let shard = text(&core.config.shard.to_string());
    let numbers = numbers.iter().map(|number| Datum::Int(*number as i64));
    batch.push(core::iter::once(shard).chain(numbers));
    batch
}

/// One row of SHOW OWNERSHIP: what has moved to, from and through this shard.
fn ownership(core: &Core) -> RowBatch {
    let mut batch = RowBatch::new(13);
    let moves = core.protocols.moves();
    let (mut per_second_in, mut per_second_out) = (0, 0);
    for rows in core.protocols.moving() {
        let (moved_in, moved_out) = rows.moves_per_second(core.now);
        per_second_in += moved_in;
        per_second_out += moved_out;
    }
    let counts = [
        moves.rows_away,
        moves.rows_here,
        moves.backups,
        moves.table_bytes,
        moves.moved_in,
        moves.moved_out,
        per_second_in,
        per_second_out,
        moves.rp_o,
        moves.r_po,
        moves.r_p_o,
        moves.refused,
    ];
    let shard = text(&core.config.shard.to_string());
    let counts = counts.into_iter().map(|count| Datum::Int(count as i64));
    batch.push(core::iter::once(shard).chain(counts));
    batch
}

/// (shard, transaction, state, coordinator, age_ms, rows, waiters): what is in doubt here.
fn in_doubt(core: &Core) -> RowBatch {
    let mut batch = RowBatch::new(7);
    for doubt in core.protocols.doubts(core.now) {
        batch.push([
            text(&core.config.shard.to_string()),
            text(&doubt.txn.to_string()),
            text(doubt.state),
            Datum::Int(i64::from(doubt.node.0)),
            Datum::Int((doubt.age_us / 1000) as i64),
            Datum::Int(doubt.rows as i64),
            Datum::Int(doubt.waiters as i64),
        ]);
    }
    batch
}

/// (table, index, key, home, owner, moves): rows of `database` whose home is here and that have
/// moved most since they left it.
fn hottest(core: &Core, database: &str) -> RowBatch {
    let mut batch = RowBatch::new(6);
    let home = text(&core.config.shard.to_string());
    let Combine::Top(count) = Show::Hottest.combine() else {
        unreachable!("the hottest rows are the first by their moves")
    };
    // Rows of other databases may be among them, so a few more are read.
    let moving = core.protocols.moving().into_iter();
    for hot in moving.flat_map(|rows| rows.hottest(4 * count)) {
        let mut tables = tables_of(core, database);
        let found = tables.find_map(|table| Some((table, table.index_by_id(hot.key.index)?)));
        let Some((table, index)) = found else {
            continue;
        };
        let owner = hot.owner.map(|owner| text(&owner.to_string()));
        batch.push([
            name_of(core, table),
            text(&index.name),
            key_text(&hot.key, table, index).map_or(Datum::Null, |(_, values)| text(&values)),
            home.clone(),
            owner.unwrap_or(Datum::Null),
            Datum::Int(i64::from(hot.moves)),
        ]);
    }
    batch
}

/// The table and the index of a row.
fn index_of<'a>(known: &'a Database, key: &Key) -> Option<(&'a Table, &'a Index)> {
    let mut tables = known.tables.values();
    tables.find_map(|table| Some((&**table, table.index_by_id(key.index)?)))
}

/// (shard, table, index, key, holder, age_ms, waiters): rows of `database` for whose locks
/// operations wait here.
fn waiters(core: &Core, database: &str) -> RowBatch {
    let mut batch = RowBatch::new(7);
    let Some(known) = core.catalog.databases.get(database) else {
        return batch;
    };
    let Combine::Top(count) = Show::Waiters.combine() else {
        unreachable!("the longest queues are the first by their waiters")
    };
    let wants = |key: &Key| index_of(known, key).is_some();
    for row in core.protocols.awaited_rows(known.protocol, &wants, count) {
        let Some((table, index)) = index_of(known, &row.key) else {
            continue;
        };
        let holder = row.holder.map(|holder| text(&holder.to_string()));
        batch.push([
            text(&core.config.shard.to_string()),
            name_of(core, table),
            text(&index.name),
            key_text(&row.key, table, index).map_or(Datum::Null, |(_, values)| text(&values)),
            holder.unwrap_or(Datum::Null),
            Datum::Int((core.now.since(row.since) / 1000) as i64),
            Datum::Int(row.waiters as i64),
        ]);
    }
    batch
}

/// (shard, table, index, key, committed, oldest_transaction, coordinator, age_ms, waiters,
/// formulas): rows of `database` here with the most formulas that are not applied yet.
fn pending(core: &Core, database: &str) -> RowBatch {
    let mut batch = RowBatch::new(10);
    let Some(known) = core.catalog.databases.get(database) else {
        return batch;
    };
    let Combine::Top(count) = Show::Pending.combine() else {
        unreachable!("the longest lists are the first by their formulas")
    };
    let wants = |key: &Key| index_of(known, key).is_some();
    for row in core.protocols.pending_rows(known.protocol, &wants, count) {
        let Some((table, index)) = index_of(known, &row.key) else {
            continue;
        };
        let oldest = row.oldest.as_ref();
        let since = oldest.and_then(|open| open.since);
        let age = since.map(|since| Datum::Int((core.now.since(since) / 1000) as i64));
        batch.push([
            text(&core.config.shard.to_string()),
            name_of(core, table),
            text(&index.name),
            key_text(&row.key, table, index).map_or(Datum::Null, |(_, values)| text(&values)),
            Datum::Int(row.committed as i64),
            oldest.map_or(Datum::Null, |open| text(&open.txn.to_string())),
            oldest.map_or(Datum::Null, |open| {
                Datum::Int(i64::from(open.coordinator.0))
            }),
            age.unwrap_or(Datum::Null),
            Datum::Int(row.waiters as i64),
            Datum::Int(row.formulas as i64),
        ]);
    }
    batch
}

/// (index, row_bytes): all key spaces of all databases.
fn sizes(core: &Core) -> RowBatch {
    let mut batch = RowBatch::new(2);
    for database in core.catalog.databases.values() {
        for index in database.key_spaces() {
            let (counts, _) = core.store.index_counts(index);
            let bytes = Datum::Int(counts.bytes as i64);
            batch.push([Datum::Int(i64::from(index.0)), bytes]);
        }
    }
    batch
}

/// (table, rows) of the tables of `database`, and a row of NULLs.
fn rows(core: &Core, database: &str) -> RowBatch {
    let mut batch = RowBatch::new(3);
    for table in tables_of(core, database) {
        let rows = match is_counted(core, table) {
            true => core.store.rows_about(table.primary.id),
            false => 0,
        };
        batch.push([
            Datum::Int(i64::from(table.id.0)),
            Datum::Int(rows as i64),
            Datum::Int(core.sampling.version(table.id) as i64),
        ]);
    }
    let busy = i64::from(core.sampling.is_busy());
    batch.push([Datum::Null, Datum::Null, Datum::Int(busy)]);
    batch
}

/// (node, address, incarnation, state, shards), told by each node's first shard about itself, and
/// by the asked shard about nodes that are down.
fn nodes(core: &Core, peers: &BTreeMap<NodeId, u32>) -> RowBatch {
    let mut batch = RowBatch::new(5);
    let own = core.config.shard.node();
    for (node, address) in &core.config.nodes {
        let incarnation = match *node == own {
            true => Some(core.config.incarnation),
            false => peers.get(node).copied(),
        };
        batch.push([
            Datum::Int(i64::from(node.0)),
            text(address),
            incarnation.map_or(Datum::Null, |count| Datum::Int(i64::from(count))),
            text(if incarnation.is_some() { "up" } else { "down" }),
            Datum::Int(i64::from(core.config.shards_per_node)),
        ]);
    }
    batch
}

/// Connected clients, what each does, and for how long: the columns of SHOW SESSIONS.
fn sessions<'a>(core: &Core, sessions: impl Iterator<Item = Description<'a>>) -> RowBatch {
    let mut batch = RowBatch::new(12);
    let age = |since: Option<Time>| {
        let age_us = since.map(|since| core.now.since(since));
        age_us.map_or(Datum::Null, |age_us| Datum::Int((age_us / 1000) as i64))
    };
    for told in sessions {
        let database = core.catalog.databases.get(told.database);
        let address = |ends: &Ends| text(&format!("{}:{}", ends.client, ends.client_port));
        let client = told.ends.map(address);
        let running = told.state == "active";
        batch.push([
            Datum::Int(i64::from(told.pid)),
            Datum::Int(i64::from(core.config.shard.node().0)),
            client.unwrap_or(Datum::Null),
            text(told.application_name),
            text(told.user),
            text(told.database),
            database.map_or(Datum::Null, |database| text(database.protocol.name())),
            text(told.isolation),
            text(told.state),
            age(told.txn_since),
            age(told.statement_since.filter(|_| running)),
            text(told.statement),
        ]);
    }
    batch
}

/// The same for pg_stat_activity, with points in time.
fn activity<'a>(sessions: impl Iterator<Item = Description<'a>>) -> RowBatch {
    let mut batch = RowBatch::new(12);
    let at = |time: Time| Datum::Timestamp(time.0 as i64 - EPOCH_2000_US);
    for told in sessions.filter(|told| told.pid != 0) {
        let ends = told.ends;
        batch.push([
            Datum::Int(i64::from(told.pid)),
            text(told.user),
            text(told.database),
            text(told.application_name),
            ends.map_or(Datum::Null, |ends| text(&ends.client)),
            ends.map_or(Datum::Null, |ends| Datum::Int(i64::from(ends.client_port))),
            at(told.connected),
            told.txn_since.map_or(Datum::Null, at),
            told.statement_since.map_or(Datum::Null, at),
            at(told.since),
            text(told.state),
            text(told.statement),
        ]);
    }
    batch
}

/// (database, protocol, execution, tables, sessions, rows, row_bytes): the last three of this
/// shard.
fn databases<'a>(core: &Core, sessions: impl Iterator<Item = Description<'a>>) -> RowBatch {
    let mut connected: BTreeMap<&str, i64> = BTreeMap::new();
    for told in sessions {
        *connected.entry(told.database).or_default() += 1;
    }
    let mut batch = RowBatch::new(7);
    for (name, database) in &core.catalog.databases {
        let counts = database.tables.values().map(|table| primary(core, table));
        let (rows, bytes) = counts.fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1));
        batch.push([
            text(name),
            text(database.protocol.name()),
            text(match database.execution {
                Execution::Interleaved => "interleaved",
                Execution::Serial => "serial",
            }),
            Datum::Int(database.tables.len() as i64),
            Datum::Int(connected.get(name.as_str()).copied().unwrap_or(0)),
            Datum::Int(rows),
            Datum::Int(bytes),
        ]);
    }
    batch
}

/// (table, columns, indexes, partition_by, rows, row_bytes): the last two of this shard.
fn tables(core: &Core, database: &str) -> RowBatch {
    let mut batch = RowBatch::new(6);
    for table in tables_of(core, database) {
        let (rows, bytes) = primary(core, table);
        let columns = table.columns.iter().filter(|column| !column.hidden);
        let by = table.partition.iter();
        let by = by.filter_map(|at| table.columns.get(usize::from(*at)));
        let by: Vec<_> = by.map(|column| quote_ident(&column.name)).collect();
        batch.push([
            name_of(core, table),
            Datum::Int(columns.count() as i64),
            Datum::Int(1 + table.secondary.len() as i64),
            match table.replicated {
                true => text("(replicated)"),
                false => text(&by.join(", ")),
            },
            Datum::Int(rows),
            Datum::Int(bytes),
        ]);
    }
    batch
}

/// The tables of a database, if it is there.
pub(crate) fn tables_of<'a>(core: &'a Core, database: &str) -> impl Iterator<Item = &'a Table> {
    let database = core.catalog.databases.get(database).into_iter();
    database.flat_map(|database| database.tables.values().map(|table| &**table))
}

/// Whether this shard counts its rows of a table. Those of a replicated table are everywhere; the
/// first shard counts them.
pub(crate) fn is_counted(core: &Core, table: &Table) -> bool {
    !table.replicated || core.config.shard == ShardId(0)
}

/// Rows of a table that this shard counts as its own, and their bytes.
fn primary(core: &Core, table: &Table) -> (i64, i64) {
    if !is_counted(core, table) {
        return (0, 0);
    }
    let (counts, _) = core.store.index_counts(table.primary.id);
    (counts.rows as i64, counts.bytes as i64)
}

/// Name of a table, with its schema unless that is the first one.
fn name_of(core: &Core, table: &Table) -> Datum {
    let databases = core.catalog.databases.values();
    let mut own = databases.filter(|database| {
        let found = database.tables.get(&table.name);
        found.is_some_and(|found| found.id == table.id)
    });
    match own.next() {
        Some(database) => text(&database.shown_name(&table.name)),
        None => text(base::full_name::own(&table.name)),
    }
}
