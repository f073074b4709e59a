//! What all stages of a shard share: clock, rows, protocols, catalog, counters.

mod lanes;

use crate::config::ShardConfig;
use crate::input::Memory;
use crate::message::Message;
use crate::oldest::Readers;
use crate::pace::Presence;
use crate::parcel::Durability;
use crate::port::TxnShared;
use crate::sampling::Sampling;
use base::{Clock, DatabaseId, IndexId, LookupMap, NodeId, Position, Prng, ShardId, Time, Ts};
use catalog::{Catalog, EncodedTables, Placement, ProtocolKind, Sequence, Table};
use lanes::Protocols;
pub(crate) use lanes::clocks_suffice;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{Horizons, Store};
use txn::contract::Outgoing;
use txn::touched::Degrees;
use txn::{ClockBound, Counters, Event, JournalPort};

/// Bytes of memory that a shard asks the host for at once.
const CLAIM_BYTES: u64 = 1 << 20;

/// The host's journal, with what the host has said about the room on its disk.
pub(crate) struct NodeJournal {
    port: Box<dyn JournalPort>,
    /// Whether the disk is nearly full: then writes are refused.
    pub(crate) full: bool,
    /// What the host has measured of the node's memory.
    pub(crate) memory: Memory,
    /// Bytes that the host has granted and no statement has taken yet.
    claimed_bytes: u64,
    /// End of the first record of the step.
    first: Option<Position>,
}

impl NodeJournal {
    /// A step begins. Returns the position to which the journal is durable.
    pub(crate) fn begin_step(&mut self) -> Position {
        self.first = None;
        self.port.durable()
    }

    /// When the effects of the step may leave.
    pub(crate) fn durability(&self) -> Durability {
        Durability {
            durable: self.port.durable(),
            first: self.first,
        }
    }
}

impl JournalPort for NodeJournal {
    fn append(&mut self, payload: &[u8]) -> Position {
        let end = self.port.append(payload);
        self.first.get_or_insert(end);
        end
    }
    fn hold(&mut self) -> Position {
        self.port.hold()
    }
    fn free(&mut self, held: Position) {
        self.port.free(held);
    }
    fn oldest_held(&self) -> Option<Position> {
        self.port.oldest_held()
    }
    fn durable(&self) -> Position {
        self.port.durable()
    }
    fn is_behind(&self) -> bool {
        self.port.is_behind()
    }
    fn note_answered(&mut self, ts: Ts) {
        self.port.note_answered(ts);
    }
    fn answered(&self) -> Option<Ts> {
        self.port.answered()
    }
    fn is_full(&self) -> bool {
        self.full
    }
    fn is_memory_full(&self) -> bool {
        self.memory.full
    }
    fn claim_memory(&mut self, bytes: u64) -> bool {
        if bytes <= self.claimed_bytes {
            self.claimed_bytes -= bytes;
            return true;
        }
        let ahead = bytes.max(CLAIM_BYTES);
        if self.port.claim_memory(ahead) {
            self.claimed_bytes = ahead - bytes;
            return true;
        }
        self.port.claim_memory(bytes)
    }
}

/// Shared state of one shard; lives in an `Rc<RefCell<_>>` that is never borrowed across a poll of
/// a statement.
pub(crate) struct Core {
    pub(crate) config: ShardConfig,
    pub(crate) now: Time,
    pub(crate) presence: Presence,
    pub(crate) clock: Clock,
    /// Home shard of each slot: from the configuration, then from the catalog.
    pub(crate) placement: Placement,
    /// Position to which the journal was durable when the step began.
    pub(crate) durable: Position,
    pub(crate) clock_bound: ClockBound,
    pub(crate) store: Store,
    pub(crate) journal: NodeJournal,
    pub(crate) protocols: Protocols,
    /// Messages of the node itself.
    pub(crate) messages: Vec<Outgoing<Message>>,
    pub(crate) counters: Counters,
    pub(crate) catalog: Arc<Catalog>,
    /// Catalog version at which each key space's table last changed.
    pub(crate) schema: LookupMap<IndexId, u64>,
    /// See [`txn::contract::Cx::locked`].
    pub(crate) locked: Vec<(IndexId, u64)>,
    /// The tables as the first shard of the node writes them into its journal.
    pub(crate) encoded: EncodedTables,
    /// Key spaces of replicated tables.
    pub(crate) replicated: BTreeSet<IndexId>,
    pub(crate) degrees: Degrees,
    pub(crate) history: Option<Vec<Event>>,
    pub(crate) prng: Prng,
    unique: u64,
    txn_counter: u64,
    op_counter: u64,
    pub(crate) readers: Readers,
    /// Nodes whose readers are not waited for ([`session::away::GONE_US`]).
    pub(crate) gone: BTreeSet<NodeId>,
    /// No version at or below that of its database, but the newest of each row, is read any more.
    pub(crate) horizons: Horizons,
    /// Bytes that statements of this shard have charged.
    pub(crate) memory_bytes: i64,
    pub(crate) sampling: Sampling,
}

impl Core {
    pub(crate) fn new(
        config: ShardConfig,
        journal: Box<dyn JournalPort>,
        clock_floor: Ts,
        store: Store,
        catalog: Arc<Catalog>,
    ) -> Core {
        let shard = config.shard;
        let seed = config.seed ^ u64::from(shard.0);
        let placement = Placement::new(config.nodes.len() as u16, config.shards_per_node);
        let mut core = Core {
            now: Time(0),
            presence: Presence::default(),
            clock: Clock::new(shard, clock_floor),
            placement,
            durable: journal.durable(),
            clock_bound: ClockBound::new(clock_floor),
            store,
            journal: NodeJournal {
                port: journal,
                full: false,
                memory: Memory::default(),
                claimed_bytes: 0,
                first: None,
            },
            protocols: Protocols::new(shard),
            messages: Vec::new(),
            counters: Counters::default(),
            catalog: Arc::new(Catalog::default()),
            schema: LookupMap::new(),
            locked: Vec::new(),
            encoded: EncodedTables::default(),
            replicated: BTreeSet::new(),
            degrees: Degrees::default(),
            history: None,
            prng: Prng::new(seed),
            unique: 0,
            txn_counter: 0,
            op_counter: 0,
            readers: Readers::default(),
            gone: BTreeSet::new(),
            // Recovery gives newest versions only: older snapshots cannot be read.
            horizons: Horizons::at(clock_floor),
            memory_bytes: 0,
            sampling: Sampling::default(),
            config,
        };
        core.set_catalog(catalog);
        core
    }

    /// Draws the id of a new transaction.
    pub(crate) fn next_txn(&mut self, protocol: ProtocolKind) -> base::TxnId {
        self.txn_counter += 1;
        if protocol.has_odd_ids() != (self.txn_counter & 1 == 1) {
            self.txn_counter += 1;
        }
        base::TxnId {
            shard: self.config.shard,
            incarnation: self.config.incarnation,
            counter: self.txn_counter,
        }
    }

    /// Whether all rows of the cluster are on this node, and on several shards of it.
    pub(crate) fn is_one_node_of_many(&self) -> bool {
        self.config.nodes.len() == 1 && self.config.shards_per_node > 1
    }

    /// A transaction is about to be answered. A transaction that begins on this node later commits
    /// above all that this one has seen (docs/adr/0015-reads-of-one-statement.md).
    pub(crate) fn note_answered(&mut self) {
        if self.is_one_node_of_many() {
            self.journal.note_answered(self.clock.last());
        }
    }

    /// A transaction begins: it comes after all that was answered on this node.
    pub(crate) fn follow_answered(&mut self) {
        if self.is_one_node_of_many()
            && let Some(answered) = self.journal.answered()
        {
            self.clock.merge(answered);
        }
    }

    /// Draws the id of a new operation.
    pub(crate) fn next_op(&mut self) -> txn::OpId {
        self.op_counter += 1;
        txn::OpId(self.op_counter)
    }

    /// Draws a number that no other call in the cluster ever returns: 10 bits of shard, 22 bits of
    /// incarnation, 31 bits of counter; positive as an int8.
    pub(crate) fn next_unique(&mut self) -> u64 {
        self.unique += 1;
        assert!(
            self.unique < 1 << 31,
            "row numbers of one incarnation are used up"
        );
        (u64::from(self.config.shard.0) << 53)
            | (u64::from(self.config.incarnation & 0x3f_ffff) << 31)
            | self.unique
    }

    /// Sends a message of the node to another shard, or hands it back if it is for this one.
    pub(crate) fn send(&mut self, to: ShardId, message: Message, wait: Position) {
        assert_ne!(to, self.config.shard, "a shard does not send to itself");
        self.messages.push(Outgoing { to, message, wait });
    }

    /// Takes a newer catalog into use and removes rows of key spaces that are gone.
    pub(crate) fn set_catalog(&mut self, catalog: Arc<Catalog>) {
        let before = self.catalog.clone();
        let gone = match differing(&before, &catalog) {
            Some(spaces) => self.change_spaces(spaces, &catalog),
            None => self.set_spaces(&before, &catalog),
        };
        self.locked = catalog.locked_indexes();
        let left = left_protocols(&self.catalog, &catalog);
        if !catalog.placement.shards().is_empty() {
            self.placement.clone_from(&catalog.placement);
        }
        let known: BTreeSet<DatabaseId> = catalog.databases.values().map(|it| it.id).collect();
        self.degrees.keep(|database| known.contains(&database));
        self.catalog = catalog;
        for (protocol, index) in left {
            self.leave(protocol, index);
        }
        for index in gone {
            self.forget_index(index);
        }
    }

    /// Notes all key spaces of the next catalog. Gives those that are gone; their rows are dropped.
    fn set_spaces(&mut self, before: &Catalog, catalog: &Catalog) -> Vec<IndexId> {
        let before = indexes(before);
        let after = indexes(catalog);
        let gone = before
            .into_keys()
            .filter(|index| !after.contains_key(index));
        let gone: Vec<IndexId> = gone.collect();
        gone.iter().for_each(|index| self.store.drop_index(*index));
        self.schema.clear();
        for (index, changed) in &after {
            self.schema.insert(*index, *changed);
        }
        let spaces = catalog.databases.values().flat_map(|database| {
            let (id, spaces) = (database.id, database.key_spaces());
            spaces.into_iter().map(move |index| (index, id))
        });
        self.horizons.set_databases(spaces);
        let databases = catalog.databases.values();
        let tables = databases.flat_map(|database| database.tables.values());
        let copied = tables.filter(|table| table.replicated);
        let copied = copied.flat_map(|table| table.indexes().map(|index| index.id));
        self.replicated = copied.collect();
        gone
    }

    /// As [`Core::set_spaces`] when only these have changed.
    fn change_spaces(&mut self, spaces: Differing, catalog: &Catalog) -> Vec<IndexId> {
        let Differing { before, after } = spaces;
        let mut gone: Vec<IndexId> = before.into_keys().collect();
        gone.retain(|index| !after.contains_key(index));
        if !gone.is_empty() {
            // One may have come to a table that is the same in both.
            let all = indexes(catalog);
            gone.retain(|index| !all.contains_key(index));
        }
        for index in &gone {
            self.store.drop_index(*index);
            self.schema.remove(index);
            self.horizons.set_database(*index, None);
            self.replicated.remove(index);
        }
        for (index, (changed, database, replicated)) in after {
            self.schema.insert(index, changed);
            if let Some(database) = database {
                self.horizons.set_database(index, Some(database));
            }
            match replicated {
                true => self.replicated.insert(index),
                false => self.replicated.remove(&index),
            };
        }
        gone
    }

    /// Frees a slice of the rows of key spaces that are gone.
    pub(crate) fn free_dropped(&mut self) {
        if self.store.has_dropped() {
            let freed = self.store.free_dropped(txn::bulk::SLICE_UNITS as usize);
            self.counters.units += freed as u64;
        }
    }

    /// Drops rows of key spaces that the catalog does not know (after redo).
    pub(crate) fn purge_unknown_indexes(&mut self) {
        let known = indexes(&self.catalog);
        for index in self.store.indexes() {
            if !known.contains_key(&index) {
                self.store.drop_index(index);
            }
        }
    }
}

/// Key spaces of databases that change their protocol, with the one that they leave.
fn left_protocols(before: &Catalog, after: &Catalog) -> Vec<(ProtocolKind, IndexId)> {
    let left = after.databases.iter().filter_map(|(name, database)| {
        let known = before.databases.get(name)?;
        (database.protocol != known.protocol).then_some((known.protocol, database))
    });
    let spaces = left.flat_map(|(protocol, database)| {
        let spaces = database.key_spaces().into_iter();
        spaces.map(move |index| (protocol, index))
    });
    spaces.collect()
}

/// Key spaces that may be others in two catalogs, each with the version at which its table last
/// changed, its database, and whether its table is replicated.
struct Differing {
    before: BTreeMap<IndexId, Space>,
    after: BTreeMap<IndexId, Space>,
}

type Space = (u64, Option<DatabaseId>, bool);

/// The key spaces that may be others in two catalogs, without a look at those of tables that are
/// the same in memory. `None` if too much has changed for that: databases, or what open blocks
/// keep.
fn differing(before: &Catalog, after: &Catalog) -> Option<Differing> {
    let mut found = Differing {
        before: BTreeMap::new(),
        after: BTreeMap::new(),
    };
    if before.databases.len() != after.databases.len() {
        return None;
    }
    for (name, new) in &after.databases {
        let old = before.databases.get(name).filter(|old| old.id == new.id)?;
        if !(old.blocks.is_empty() && new.blocks.is_empty()) {
            return None;
        }
        if Arc::ptr_eq(old, new) {
            continue;
        }
        let Differing { before, after } = &mut found;
        let add = |to: &mut BTreeMap<IndexId, Space>, table: Option<&Arc<Table>>| {
            for index in table.iter().flat_map(|table| table.indexes()) {
                let table = table.expect("it has the index");
                to.insert(index.id, (table.changed, Some(new.id), table.replicated));
            }
        };
        catalog::for_differing(&old.tables, &new.tables, |_, one, other| {
            add(before, one);
            add(after, other);
        });
        let space = |sequence: &Sequence| (sequence.id, (0, Some(new.id), false));
        if !old
            .sequences
            .values()
            .map(|it| it.id)
            .eq(new.sequences.values().map(|it| it.id))
        {
            before.extend(old.sequences.values().map(space));
            after.extend(new.sequences.values().map(space));
        }
    }
    // Key spaces that a schema change is filling are not in any table yet.
    for (found, reserved) in [
        (&mut found.before, &before.reserved),
        (&mut found.after, &after.reserved),
    ] {
        for index in reserved {
            found.entry(*index).or_insert((0, None, false)).0 = 0;
        }
    }
    Some(found)
}

/// All key spaces of a catalog with the version at which their table last changed.
fn indexes(catalog: &Catalog) -> BTreeMap<IndexId, u64> {
    let mut all = BTreeMap::new();
    for database in catalog.databases.values() {
        for table in database.tables.values() {
            for index in table.indexes() {
                all.insert(index.id, table.changed);
            }
        }
        for sequence in database.sequences.values() {
            all.insert(sequence.id, 0);
        }
        for (index, changed) in database.blocks.iter().flat_map(|block| block.kept()) {
            all.entry(index).or_insert(changed);
        }
    }
    // Key spaces that a schema change is filling are not in any table yet.
    for index in &catalog.reserved {
        all.insert(*index, 0);
    }
    all
}

impl Core {
    /// A transaction of a client has ended that began then.
    pub(crate) fn note_end(&mut self, shared: &TxnShared, began: Ts) {
        let duration_us = self.now.since(began.time());
        let (database, touched) = (shared.database, &shared.touched);
        self.degrees.count(database, touched, duration_us);
    }
}
