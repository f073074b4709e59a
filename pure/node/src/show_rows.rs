//! One shard's part of the answers to SHOW.

use crate::core::Core;
use crate::session::{Session, key_text};
use crate::show::HOTTEST_ROWS;
use crate::stages::text;
use base::{Datum, NodeId, RowBatch};
use std::collections::BTreeMap;

/// (name, value)
pub(crate) fn counters(core: &Core) -> RowBatch {
    let mut batch = RowBatch::new(2);
    for (name, value) in core.counters.list() {
        batch.push([text(name), Datum::Int(value as i64)]);
    }
    batch
}

/// (table, index, shard, slots, rows, row_bytes): key spaces of `database` that have rows here.
pub(crate) fn placement(core: &Core, database: &str) -> RowBatch {
    let mut batch = RowBatch::new(6);
    let Some(database) = core.catalog.databases.get(database) else {
        return batch;
    };
    for table in database.tables.values() {
        for index in core::iter::once(&table.primary).chain(&table.secondary) {
            let (counts, slots) = core.store.index_counts(index.id);
            batch.push([
                text(&table.name),
                text(&index.name),
                text(&core.config.shard.to_string()),
                Datum::Int(slots as i64),
                Datum::Int(counts.rows as i64),
                Datum::Int(counts.bytes as i64),
            ]);
        }
    }
    batch
}

/// One row of SHOW MEMORY: what this shard holds, and what its node has in all.
pub(crate) fn memory(core: &Core) -> RowBatch {
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
pub(crate) fn ownership(core: &Core) -> RowBatch {
    let mut batch = RowBatch::new(13);
    let leap = core.protocols.leap();
    let moves = leap.moves();
    let (per_second_in, per_second_out) = leap.moves_per_second(core.now);
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
pub(crate) fn in_doubt(core: &Core) -> RowBatch {
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
pub(crate) fn hottest(core: &Core, database: &str) -> RowBatch {
    let mut batch = RowBatch::new(6);
    let Some(database) = core.catalog.databases.get(database) else {
        return batch;
    };
    let home = text(&core.config.shard.to_string());
    // Rows of other databases may be among them: a few more are looked at.
    for hot in core.protocols.leap().hottest(4 * HOTTEST_ROWS) {
        let tables = database.tables.values();
        let mut indexes = tables.flat_map(|table| {
            let all = core::iter::once(&table.primary).chain(&table.secondary);
            all.map(move |index| (table, index))
        });
        let Some((table, index)) = indexes.find(|(_, index)| index.id == hot.key.index) else {
            continue;
        };
        let owner = hot
            .owner
            .map_or(Datum::Null, |owner| text(&owner.to_string()));
        batch.push([
            text(&table.name),
            text(&index.name),
            key_text(&hot.key, table, index).map_or(Datum::Null, |(_, values)| text(&values)),
            home.clone(),
            owner,
            Datum::Int(i64::from(hot.moves)),
        ]);
    }
    batch
}

/// (index, row_bytes): all key spaces of all databases.
pub(crate) fn sizes(core: &Core) -> RowBatch {
    let mut batch = RowBatch::new(2);
    for database in core.catalog.databases.values() {
        let tables = database.tables.values();
        let indexes = tables.flat_map(|table| {
            let secondary = table.secondary.iter().map(|index| index.id);
            core::iter::once(table.primary.id).chain(secondary)
        });
        let sequences = database.sequences.values().map(|sequence| sequence.id);
        for index in indexes.chain(sequences) {
            let (counts, _) = core.store.index_counts(index);
            let bytes = Datum::Int(counts.bytes as i64);
            batch.push([Datum::Int(i64::from(index.0)), bytes]);
        }
    }
    batch
}

/// (node, address, incarnation, state, shards), told by each node's first shard about itself, and
/// by the asked shard about nodes that are down.
pub(crate) fn nodes(core: &Core, peers: &BTreeMap<NodeId, u32>) -> RowBatch {
    let mut batch = RowBatch::new(5);
    let own = core.config.shard.node();
    for (node, address) in &core.config.nodes {
        let state = match node {
            node if *node == own => "up",
            node if peers.contains_key(node) => "up",
            _ => "down",
        };
        let incarnation = match peers.get(node) {
            _ if *node == own => Datum::Int(i64::from(core.config.incarnation)),
            Some(incarnation) => Datum::Int(i64::from(*incarnation)),
            None => Datum::Null,
        };
        batch.push([
            Datum::Int(i64::from(node.0)),
            text(address),
            incarnation,
            text(state),
            Datum::Int(i64::from(core.config.shards_per_node)),
        ]);
    }
    batch
}

/// (pid, user, database, state, seconds in it, statement)
pub(crate) fn sessions<'a>(core: &Core, sessions: impl Iterator<Item = &'a Session>) -> RowBatch {
    let mut batch = RowBatch::new(6);
    for session in sessions {
        let told = session.describe();
        batch.push([
            Datum::Int(i64::from(told.pid)),
            text(told.user),
            text(told.database),
            text(told.state),
            Datum::Int((core.now.since(told.since) / 1_000_000) as i64),
            text(told.statement),
        ]);
    }
    batch
}
