//! The transaction protocols of one shard, side by side over one store, one clock and one journal.
//!
//! A transaction follows the protocol of its database from its begin to its end; key spaces belong
//! to databases, so protocols never meet at a row. Nothing else in this crate names a protocol but
//! what is here, the messages that cross nodes, and their names: another protocol is one more lane
//! and one more arm of `route` and `each`.

use crate::core::Core;
use crate::message::{Message, WireMessage};
use base::{IndexId, NodeId, Position, ShardId, Time, Ts, TxnId};
use catalog::{Catalog, ProtocolKind};
use journal::{CheckpointTables, Ownership};
use leap::{AwayCursor, Leap};
use std::collections::BTreeSet;
use store::Store;
use two_phase::{InDoubt, TwoPhase};
use txn::contract::{Outgoing, Submitted};
use txn::{Cx, Doubt, Op, OpId, OpReply, Outbox, Protocol, TxnCost, TxnOptions};

/// Locks up to which a server checks its open transactions: well below a millisecond.
const LOCKS_CHECKED_MAX: usize = 1_000;

/// Answers to operations that were pending.
pub(crate) type Completions = Vec<(TxnId, OpId, OpReply)>;

/// Whether what was answered lies at or below the clock of the shard that has the row, on which no
/// outcome is awaited elsewhere: the clocks of all shards name a snapshot which misses nothing.
/// Such a protocol refuses every other snapshot that is neither guarded nor a statement's only
/// read.
pub(crate) fn clocks_suffice(protocol: ProtocolKind) -> bool {
    match protocol {
        ProtocolKind::Leap => true,
        ProtocolKind::TwoPhase => false,
    }
}

/// A protocol and what its last calls want done.
struct Lane<P: Protocol> {
    machine: P,
    out: Outbox<P::Message>,
}

impl<P: Protocol> Lane<P> {
    fn new(machine: P) -> Lane<P> {
        let out = Outbox::default();
        Lane { machine, out }
    }
}

/// The protocols of a shard.
pub(crate) struct Protocols {
    two_phase: Lane<TwoPhase>,
    leap: Lane<Leap>,
}

/// Calls one protocol with everything that it may touch.
macro_rules! enter {
    ($core:expr, $lane:ident, |$machine:ident, $cx:ident| $call:expr) => {{
        let core: &mut Core = $core;
        let schema = &core.schema;
        let schema_changed = |index: IndexId| schema.get(&index).copied();
        let lane = &mut core.protocols.$lane;
        let $machine = &mut lane.machine;
        let $cx = &mut Cx {
            now: core.now,
            shard: core.config.shard,
            incarnation: core.config.incarnation,
            view: 1,
            clock: &mut core.clock,
            store: &mut core.store,
            journal: &mut core.journal,
            out: &mut lane.out,
            horizon: core.horizon,
            clock_bound: core.clock_bound,
            decode: crate::program::decode,
            catalog: core.catalog.version,
            schema_changed: &schema_changed,
            counters: &mut core.counters,
            history: core.history.as_mut(),
        };
        $call
    }};
}

/// Calls the protocol that a transaction follows.
macro_rules! route {
    ($core:expr, $kind:expr, |$machine:ident, $cx:ident| $call:expr) => {
        match $kind {
            ProtocolKind::TwoPhase => enter!($core, two_phase, |$machine, $cx| $call),
            ProtocolKind::Leap => enter!($core, leap, |$machine, $cx| $call),
        }
    };
}

/// Calls every protocol.
macro_rules! each {
    ($core:expr, |$machine:ident, $cx:ident| $call:expr) => {{
        enter!($core, two_phase, |$machine, $cx| $call);
        enter!($core, leap, |$machine, $cx| $call);
    }};
}

/// An operation and its place in a statement; see [`Protocol::submit`].
pub(crate) struct Submission {
    pub(crate) txn: TxnId,
    pub(crate) id: OpId,
    pub(crate) to: ShardId,
    pub(crate) planned: u64,
    pub(crate) op: Op,
    pub(crate) last: bool,
}

impl Protocols {
    /// Those of `shard`, with nothing in doubt. `homes` are the shards of the cluster in the order
    /// of placement.
    pub(crate) fn new(shard: ShardId, homes: &[ShardId]) -> Protocols {
        Protocols {
            two_phase: Lane::new(TwoPhase::new(shard)),
            leap: Lane::new(Leap::new(shard, homes)),
        }
    }

    /// Takes the answers that have come; give the buffer back with
    /// [`Protocols::reuse_completions`].
    ///
    /// Without answers, and most often there are none, nothing is taken.
    pub(crate) fn take_completions(&mut self) -> Option<Completions> {
        if self.two_phase.out.completions.is_empty() && self.leap.out.completions.is_empty() {
            return None;
        }
        let mut all = core::mem::take(&mut self.two_phase.out.completions);
        if !self.leap.out.completions.is_empty() {
            all.append(&mut self.leap.out.completions);
        }
        Some(all)
    }

    /// Takes the transactions that keep writers waiting; see [`Outbox::in_the_way`].
    #[inline]
    pub(crate) fn take_in_the_way(&mut self) -> Vec<TxnId> {
        if self.two_phase.out.in_the_way.is_empty() {
            return core::mem::take(&mut self.leap.out.in_the_way);
        }
        let mut all = core::mem::take(&mut self.two_phase.out.in_the_way);
        all.append(&mut self.leap.out.in_the_way);
        all
    }

    /// Keeps an empty buffer for the next answers.
    pub(crate) fn reuse_completions(&mut self, buffer: Completions) {
        if self.two_phase.out.completions.is_empty() {
            self.two_phase.out.completions = buffer;
        }
    }

    /// Moves what is to be sent to `out`; nothing leaves before the journal is durable to `floor`.
    pub(crate) fn drain_messages(&mut self, floor: Position, out: &mut Vec<Outgoing<Message>>) {
        if !self.two_phase.out.messages.is_empty() {
            let two_phase = self.two_phase.out.messages.drain(..);
            out.extend(two_phase.map(|o| on_wire(o, WireMessage::TwoPhase, floor)));
        }
        if !self.leap.out.messages.is_empty() {
            let leap = self.leap.out.messages.drain(..);
            out.extend(leap.map(|o| on_wire(o, WireMessage::Leap, floor)));
        }
    }

    /// See [`Protocol::awaits_durable`].
    pub(crate) fn awaits_durable(&self) -> bool {
        self.two_phase.machine.awaits_durable() || self.leap.machine.awaits_durable()
    }

    /// When the first of them wants a tick.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let (first, second) = (
            self.two_phase.machine.deadline(),
            self.leap.machine.deadline(),
        );
        first.into_iter().chain(second).min()
    }

    /// None of them reads below the result; see [`Protocol::oldest_read`].
    pub(crate) fn oldest_read(&self, now_ts: Ts) -> Ts {
        let first = self.two_phase.machine.oldest_read(now_ts);
        first.min(self.leap.machine.oldest_read(now_ts))
    }

    /// What a transaction has cost so far; `None` if it is not known here.
    pub(crate) fn cost(&self, kind: ProtocolKind, txn: TxnId) -> Option<TxnCost> {
        match kind {
            ProtocolKind::TwoPhase => self.two_phase.machine.cost(txn),
            ProtocolKind::Leap => self.leap.machine.cost(txn),
        }
    }

    /// The caller is done with an ended transaction.
    pub(crate) fn forget(&mut self, kind: ProtocolKind, txn: TxnId) {
        match kind {
            ProtocolKind::TwoPhase => self.two_phase.machine.forget(txn),
            ProtocolKind::Leap => self.leap.machine.forget(txn),
        }
    }

    /// What a checkpoint that begins now must keep, but for rows that are away, which
    /// [`Protocols::checkpoint_next`] walks.
    pub(crate) fn checkpoint_begins(&mut self) -> (CheckpointTables, AwayCursor) {
        let (ownership, away) = self.leap.machine.checkpoint_begins();
        let tables = CheckpointTables {
            ownership,
            ..self.two_phase.machine.checkpoint_tables()
        };
        (tables, away)
    }

    /// The next rows that are away, `max` or fewer; `None` at the end.
    pub(crate) fn checkpoint_next(&self, away: &mut AwayCursor, max: usize) -> Option<Ownership> {
        self.leap.machine.checkpoint_next(away, max)
    }

    /// Transactions in doubt here. (Under leap nothing is: a transaction commits where it runs.)
    pub(crate) fn doubts(&self, now: Time) -> Vec<Doubt> {
        let mut doubts = self.two_phase.machine.doubts(now);
        doubts.extend(self.leap.machine.doubts(now));
        doubts
    }

    /// Who knows which rows have moved.
    pub(crate) fn leap(&self) -> &Leap {
        &self.leap.machine
    }

    /// Rows that have moved.
    pub(crate) fn moves(&self) -> leap::Moves {
        self.leap.machine.moves()
    }

    /// Whether a checkpoint may begin; asked when one wants to, again and again until it may.
    pub(crate) fn checkpoint_may_begin(&mut self) -> bool {
        let first = self.two_phase.machine.checkpoint_may_begin();
        self.leap.machine.checkpoint_may_begin() && first
    }

    /// Changes how much a slice of a large transaction takes.
    pub(crate) fn set_slice(&mut self, slice_units: u64) {
        let settings = self.two_phase.machine.settings();
        self.two_phase.machine.set_settings(two_phase::Settings {
            slice_units,
            ..settings
        });
        let settings = self.leap.machine.settings();
        self.leap.machine.set_settings(leap::Settings {
            slice_units,
            ..settings
        });
    }

    /// Whether everything that counts as committed at the start of a checkpoint is in the store.
    pub(crate) fn checkpoint_may_end(&self) -> bool {
        self.two_phase.machine.checkpoint_may_end() && self.leap.machine.checkpoint_may_end()
    }

    /// Checks the invariants of all; panics with a description of what is broken.
    pub(crate) fn validate(&self, store: &Store) {
        self.two_phase.machine.validate(store);
        self.leap.machine.validate(store);
    }

    /// As [`Protocols::validate`] for what is open, while it is little.
    pub(crate) fn validate_open(&self) {
        self.two_phase.machine.validate_small(LOCKS_CHECKED_MAX);
    }

    /// Whether no write to these indexes is under way here, and none of their rows is away from
    /// home: they may be handed to another protocol.
    pub(crate) fn is_quiet(&self, kind: ProtocolKind, indexes: &[IndexId]) -> bool {
        match kind {
            ProtocolKind::TwoPhase => !self.two_phase.machine.is_writing(indexes),
            ProtocolKind::Leap => {
                let leap = &self.leap.machine;
                indexes.iter().all(|index| leap.is_gathered(*index))
            }
        }
    }

    /// Whether no transaction holds, waits for or owes anything.
    pub(crate) fn is_idle(&self) -> bool {
        self.two_phase.machine.is_idle() && self.leap.machine.is_idle()
    }

    /// Number of items that are locked here.
    pub(crate) fn lock_count(&self) -> usize {
        self.two_phase.machine.lock_count() + self.leap.machine.lock_count()
    }
}

impl core::fmt::Display for Protocols {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}{}", self.two_phase.machine, self.leap.machine)
    }
}

/// Key spaces whose rows have one place: what the journal has elsewhere is left over from a time
/// when they moved, unless it is owned there. Those of replicated tables are everywhere, and stay.
fn moving_indexes(catalog: &Catalog) -> BTreeSet<IndexId> {
    let databases = catalog.databases.values();
    let tables = databases.flat_map(|database| database.tables.values());
    let whole = tables.filter(|table| !table.replicated);
    let indexes = whole.flat_map(|table| table.indexes());
    indexes.map(|index| index.id).collect()
}

fn on_wire<M>(
    outgoing: Outgoing<M>,
    wrap: fn(M) -> WireMessage,
    floor: Position,
) -> Outgoing<Message> {
    Outgoing {
        to: outgoing.to,
        message: Message::Wire(wrap(outgoing.message)),
        wait: outgoing.wait.max(floor),
    }
}

impl Core {
    /// Continues what a former life of the shard has left open. Before the first step.
    pub(crate) fn recover(&mut self, in_doubt: InDoubt, mut ownership: Ownership) {
        self.purge_unknown_indexes();
        // Rows of these came home before their database left leap, or have never moved.
        let databases = self.catalog.databases.values();
        let fixed = databases.filter(|database| database.protocol != ProtocolKind::Leap);
        let fixed: BTreeSet<IndexId> = fixed.flat_map(|database| database.key_spaces()).collect();
        let placement = &self.catalog.placement;
        let here = self.config.shard;
        ownership.held.retain(|held| {
            placement.home(held.key.slot) == here || !fixed.contains(&held.key.index)
        });
        enter!(self, two_phase, |machine, cx| machine.recover(cx, in_doubt));
        let moving = moving_indexes(&self.catalog);
        enter!(self, leap, |machine, cx| {
            let moves = |index| moving.contains(&index);
            machine.recover(cx, ownership, &moves);
        });
    }

    /// The rows of an index follow another protocol than leap from here on.
    pub(crate) fn leave_leap(&mut self, index: IndexId) {
        enter!(self, leap, |machine, cx| machine.leave(cx, index));
    }

    /// The catalog does not know an index any more; its rows are removed.
    pub(crate) fn forget_index(&mut self, index: IndexId) {
        enter!(self, leap, |machine, cx| machine.forget_index(cx, index));
    }

    /// See [`Protocol::begin`].
    pub(crate) fn begin(&mut self, kind: ProtocolKind, txn: TxnId, options: TxnOptions) {
        route!(self, kind, |machine, cx| machine.begin(cx, txn, options));
    }

    /// See [`Protocol::submit`].
    pub(crate) fn submit(
        &mut self,
        kind: ProtocolKind,
        submission: Submission,
    ) -> Submitted<OpReply> {
        let Submission {
            txn,
            id,
            to,
            planned,
            op,
            last,
        } = submission;
        route!(self, kind, |machine, cx| machine
            .submit(cx, txn, id, to, planned, op, last))
    }

    /// See [`Protocol::commit`].
    pub(crate) fn commit(
        &mut self,
        kind: ProtocolKind,
        txn: TxnId,
        id: OpId,
    ) -> Submitted<OpReply> {
        route!(self, kind, |machine, cx| machine.commit(cx, txn, id))
    }

    /// See [`Protocol::abort`].
    pub(crate) fn abort(&mut self, kind: ProtocolKind, txn: TxnId) {
        route!(self, kind, |machine, cx| machine.abort(cx, txn));
    }

    /// A message of two_phase has arrived.
    pub(crate) fn on_two_phase(&mut self, from: ShardId, message: two_phase::Message) {
        enter!(self, two_phase, |machine, cx| machine
            .on_message(cx, from, message));
    }

    /// A message of leap has arrived.
    pub(crate) fn on_leap(&mut self, from: ShardId, message: leap::Message) {
        enter!(self, leap, |machine, cx| machine
            .on_message(cx, from, message));
    }

    /// See [`Protocol::on_durable`].
    pub(crate) fn on_durable(&mut self, durable: Position) {
        each!(self, |machine, cx| machine.on_durable(cx, durable));
    }

    /// See [`Protocol::on_tick`].
    pub(crate) fn on_tick(&mut self) {
        each!(self, |machine, cx| machine.on_tick(cx));
    }

    /// See [`Protocol::on_peer`].
    pub(crate) fn on_peer(&mut self, node: NodeId, incarnation: u32) {
        each!(self, |machine, cx| machine.on_peer(cx, node, incarnation));
    }

    /// See [`Protocol::on_peer_down`].
    pub(crate) fn on_peer_down(&mut self, node: NodeId) {
        each!(self, |machine, cx| machine.on_peer_down(cx, node));
    }
}
