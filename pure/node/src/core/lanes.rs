//! The transaction protocols of one shard, side by side over one store, one clock and one journal.
//!
//! A transaction follows the protocol of its database from its begin to its end; key spaces belong
//! to databases, so protocols never meet at a row.

use super::Core;
use crate::message::{Message, WireMessage};
use crate::protocols::{ProtocolWord, protocols};
use base::{IndexId, Key, NodeId, Position, ShardId, Time, Ts, TxnId};
use catalog::{Catalog, ProtocolKind};
use journal::{CheckpointTables, Ownership};
use std::cell::Cell;
use std::collections::BTreeSet;
use store::Store;
use txn::LockTable;
use txn::contract::{Outgoing, Submitted};
use txn::lock::AwaitedRow;
use txn::{
    Cx, Doubt, InTheWay, Moves, MovingRows, OpId, OpReply, Outbox, PendingRow, Protocol,
    Submission, TxnCost, TxnOptions,
};

/// Largest number of locks and writes for which a server checks its open transactions: well below a
/// millisecond.
const OPEN_CHECKED_MAX: usize = 1_000;

/// Answers to operations that were pending.
pub(crate) type Completions = Vec<(TxnId, OpId, OpReply)>;

/// A protocol, with the effects of its last calls.
struct Lane<P: Protocol> {
    machine: P,
    /// Makes a message one that crosses nodes.
    word: fn(P::Message) -> ProtocolWord,
    out: Outbox<P::Message>,
    /// Cursor of the checkpoint under way.
    cursor: Option<P::Cursor>,
    /// What [`Protocol::deadline`] said, until the machine changes. The shard asks behind every
    /// step, and most steps touch one protocol or none.
    deadline: Cell<Option<Option<Time>>>,
}

impl<P: Protocol> Lane<P> {
    fn new(machine: P, word: fn(P::Message) -> ProtocolWord) -> Lane<P> {
        let mut out = Outbox::default();
        out.frames.shared = true;
        Lane {
            machine,
            word,
            out,
            cursor: None,
            deadline: Cell::new(None),
        }
    }

    /// The machine, mutable.
    fn change(&mut self) -> &mut P {
        self.deadline.set(None);
        &mut self.machine
    }

    fn deadline(&self) -> Option<Time> {
        if let Some(known) = self.deadline.get() {
            return known;
        }
        let deadline = self.machine.deadline();
        self.deadline.set(Some(deadline));
        deadline
    }

    fn drain(&mut self, floor: Position, out: &mut Vec<Outgoing<Message>>) {
        self.out.frames.end_step();
        let messages = self.out.messages.drain(..);
        let word = self.word;
        out.extend(messages.map(|outgoing| Outgoing {
            to: outgoing.to,
            message: Message::Wire(WireMessage::Protocol(word(outgoing.message))),
            wait: outgoing.wait.max(floor),
        }));
    }
}

/// Calls one protocol with its context.
macro_rules! enter {
    ($core:expr, $lane:ident, |$machine:ident, $cx:ident| $call:expr) => {{
        let core: &mut Core = $core;
        let schema = &core.schema;
        let schema_changed = |index: IndexId| schema.get(&index).copied();
        let lane = &mut core.protocols.$lane;
        lane.deadline.set(None);
        let $machine = &mut lane.machine;
        let $cx = &mut Cx {
            now: core.now,
            shard: core.config.shard,
            incarnation: core.config.incarnation,
            view: 1,
            placement: &core.placement,
            durable: core.durable,
            clock: &mut core.clock,
            store: &mut core.store,
            journal: &mut core.journal,
            out: &mut lane.out,
            horizons: &core.horizons,
            clock_bound: &mut core.clock_bound,
            decode: crate::program::decode,
            catalog: core.catalog.version,
            schema_changed: &schema_changed,
            locked: &core.locked,
            counters: &mut core.counters,
            history: core.history.as_mut(),
        };
        $call
    }};
}

/// Makes a lane of each protocol.
macro_rules! lanes {
    ($($lane:ident :: $kind:ident;)*) => {
        /// The protocols of a shard.
        pub(crate) struct Protocols {
            $($lane: Lane<$lane::$kind>,)*
        }

        impl Protocols {
            /// The protocols of `shard`, without anything in doubt.
            pub(crate) fn new(shard: ShardId) -> Protocols {
                Protocols {
                    $($lane: Lane::new($lane::$kind::new(shard), ProtocolWord::$kind),)*
                }
            }
        }

        pub(crate) fn clocks_suffice(protocol: ProtocolKind) -> bool {
            match protocol { $(ProtocolKind::$kind => $lane::$kind::CLOCKS_SUFFICE,)* }
        }

        /// Asks the protocol of one kind.
        macro_rules! one {
            ($protocols:expr, $which:expr, |$it:ident| $call:expr) => {
                match $which {
                    $(ProtocolKind::$kind => {
                        let $it = &$protocols.$lane.machine;
                        $call
                    })*
                }
            };
        }

        /// Does something with every lane, in the order of the list.
        macro_rules! every {
            ($protocols:expr, |$it:ident| $call:expr) => {{
                $({
                    let $it = &$protocols.$lane;
                    $call;
                })*
            }};
        }

        /// As [`every`], mutable.
        macro_rules! every_mut {
            ($protocols:expr, |$it:ident| $call:expr) => {{
                $({
                    let $it = &mut $protocols.$lane;
                    $call;
                })*
            }};
        }

        /// Calls the protocol that a transaction follows.
        macro_rules! route {
            ($core:expr, $which:expr, |$it:ident, $cx:ident| $call:expr) => {
                match $which {
                    $(ProtocolKind::$kind => enter!($core, $lane, |$it, $cx| $call),)*
                }
            };
        }

        /// Calls every protocol.
        macro_rules! each {
            ($core:expr, |$it:ident, $cx:ident| $call:expr) => {{
                $(enter!($core, $lane, |$it, $cx| $call);)*
            }};
        }

        impl Core {
            /// A message of a protocol has arrived; `behind`: behind another one in its frame.
            pub(crate) fn on_protocol(&mut self, from: ShardId, behind: bool, word: ProtocolWord) {
                match word {
                    $(ProtocolWord::$kind(message) => {
                        self.protocols.$lane.out.frames.behind = behind;
                        enter!(self, $lane, |machine, cx| machine.on_message(cx, from, message));
                    })*
                }
            }
        }
    };
}

protocols!(lanes);

impl Protocols {
    /// Takes the answers that have come. The caller gives the buffer back with
    /// [`Protocols::reuse_completions`].
    ///
    /// Mostly there are no answers; then no buffer is taken.
    pub(crate) fn take_completions(&mut self) -> Option<Completions> {
        let mut all: Option<Completions> = None;
        every_mut!(self, |lane| if !lane.out.completions.is_empty() {
            let mut these = core::mem::take(&mut lane.out.completions);
            match &mut all {
                Some(all) => all.append(&mut these),
                None => all = Some(these),
            }
        });
        all
    }

    /// Takes the transactions that keep writers waiting; see [`Outbox::in_the_way`].
    #[inline]
    pub(crate) fn take_in_the_way(&mut self) -> Vec<InTheWay> {
        let mut all = Vec::new();
        every_mut!(self, |lane| if !lane.out.in_the_way.is_empty() {
            all.append(&mut lane.out.in_the_way);
        });
        all
    }

    /// Keeps an empty buffer for the next answers of a protocol that has none.
    pub(crate) fn reuse_completions(&mut self, buffer: Completions) {
        let mut buffer = Some(buffer);
        every_mut!(self, |lane| if lane.out.completions.capacity() == 0
            && let Some(buffer) = buffer.take()
        {
            lane.out.completions = buffer;
        });
    }

    /// Moves the messages to `out`. None leaves before the journal is durable to `floor`.
    pub(crate) fn drain_messages(&mut self, floor: Position, out: &mut Vec<Outgoing<Message>>) {
        every_mut!(self, |lane| if !lane.out.messages.is_empty() {
            lane.drain(floor, out);
        });
    }

    /// See [`Protocol::awaits_durable`].
    pub(crate) fn awaits_durable(&self) -> bool {
        let mut any = false;
        every!(self, |lane| any |= lane.machine.awaits_durable());
        any
    }

    /// When the first protocol wants a tick.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let mut first: Option<Time> = None;
        every!(self, |lane| if let Some(at) = lane.deadline()
            && first.is_none_or(|known| at < known)
        {
            first = Some(at);
        });
        first
    }

    /// See [`Protocol::each_snapshot`].
    pub(crate) fn each_snapshot(&self, f: &mut dyn FnMut(IndexId, Ts)) {
        every!(self, |lane| lane.machine.each_snapshot(f));
    }

    /// What a transaction has cost so far; `None` if it is not known here.
    pub(crate) fn cost(&self, kind: ProtocolKind, txn: TxnId) -> Option<TxnCost> {
        one!(self, kind, |machine| machine.cost(txn))
    }

    /// Whether a checkpoint may begin; called again and again until it may. Every protocol is
    /// asked, because each makes way then.
    pub(crate) fn checkpoint_may_begin(&mut self) -> bool {
        let mut all = true;
        every_mut!(self, |lane| all &= lane.change().checkpoint_may_begin());
        all
    }

    /// What a checkpoint that begins now must keep, without rows that are away:
    /// [`Protocols::checkpoint_next`] walks those.
    pub(crate) fn checkpoint_begins(&mut self) -> CheckpointTables {
        let mut tables = CheckpointTables::default();
        every_mut!(self, |lane| lane.cursor =
            lane.change().checkpoint_begin(&mut tables));
        tables
    }

    /// The next rows that are away, `max` or fewer; `None` at the end.
    pub(crate) fn checkpoint_next(&mut self, max: usize) -> Option<Ownership> {
        every_mut!(self, |lane| if let Some(cursor) = &mut lane.cursor {
            match lane.machine.checkpoint_next(cursor, max) {
                Some(piece) => return Some(piece),
                None => lane.cursor = None,
            }
        });
        None
    }

    /// Whether all commits before the start of a checkpoint are in the store.
    pub(crate) fn checkpoint_may_end(&self) -> bool {
        let mut all = true;
        every!(self, |lane| all &= lane.machine.checkpoint_may_end());
        all
    }

    /// Transactions in doubt here.
    pub(crate) fn doubts(&self, now: Time) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        every!(self, |lane| doubts.extend(lane.machine.doubts(now)));
        doubts
    }

    /// See [`Protocol::waiting_count`].
    #[inline]
    pub(crate) fn waiting_count(&self) -> usize {
        let mut count = 0;
        every!(self, |lane| count += lane.machine.waiting_count());
        count
    }

    /// See [`Protocol::pending_rows`].
    pub(crate) fn pending_rows(
        &self,
        kind: ProtocolKind,
        wants: &dyn Fn(&Key) -> bool,
        count: usize,
    ) -> Vec<PendingRow> {
        one!(self, kind, |machine| machine.pending_rows(wants, count))
    }

    /// See [`Protocol::awaited_rows`].
    pub(crate) fn awaited_rows(
        &self,
        kind: ProtocolKind,
        wants: &dyn Fn(&Key) -> bool,
        count: usize,
    ) -> Vec<AwaitedRow> {
        one!(self, kind, |machine| machine.awaited_rows(wants, count))
    }

    /// The locks of the databases with this protocol.
    pub(crate) fn locks(&self, kind: ProtocolKind) -> Option<&LockTable> {
        one!(self, kind, |machine| machine.locks())
    }

    /// See [`Protocol::each_written`].
    pub(crate) fn each_written(&self, kind: ProtocolKind, txn: TxnId, f: &mut dyn FnMut(ShardId)) {
        one!(self, kind, |machine| machine.each_written(txn, f));
    }

    /// See [`Protocol::may_be_awaited`].
    pub(crate) fn may_be_awaited(&self, kind: ProtocolKind, txn: TxnId) -> bool {
        one!(self, kind, |machine| machine.may_be_awaited(txn))
    }

    /// What protocols whose rows move tell of them.
    pub(crate) fn moving(&self) -> Vec<&dyn MovingRows> {
        let mut moving = Vec::new();
        every!(self, |lane| moving.extend(lane.machine.moving()));
        moving
    }

    /// Counts and sizes of rows that move, of all protocols.
    pub(crate) fn moves(&self) -> Moves {
        let mut sum = Moves::default();
        for rows in self.moving() {
            sum.add(&rows.moves());
        }
        sum
    }

    /// What a protocol tells of its rows that move.
    pub(crate) fn moving_of(&self, kind: ProtocolKind) -> Option<&dyn MovingRows> {
        one!(self, kind, |machine| machine.moving())
    }

    /// Sets the number of units in a slice of a large transaction.
    pub(crate) fn set_slice(&mut self, units: u64) {
        every_mut!(self, |lane| lane.change().set_slice(units));
    }

    /// Checks the invariants of all protocols; panics with a description of a broken one.
    pub(crate) fn validate(&self, store: &Store) {
        every!(self, |lane| lane.machine.validate(store));
    }

    /// As [`Protocols::validate`] for what is open, if that is little.
    pub(crate) fn validate_open(&self) {
        every!(self, |lane| lane.machine.validate_open(OPEN_CHECKED_MAX));
    }

    /// Whether no write to these indexes is under way here and none of their rows is away: then
    /// they may be handed to another protocol.
    pub(crate) fn is_quiet(&self, kind: ProtocolKind, indexes: &[IndexId]) -> bool {
        one!(self, kind, |machine| machine.is_quiet(indexes))
    }

    /// Whether no transaction holds, waits for or owes anything.
    pub(crate) fn is_idle(&self) -> bool {
        let mut all = true;
        every!(self, |lane| all &= lane.machine.is_idle());
        all
    }

    /// Number of items that are locked here.
    pub(crate) fn lock_count(&self) -> usize {
        let mut count = 0;
        every!(self, |lane| count += lane.machine.lock_count());
        count
    }
}

impl core::fmt::Display for Protocols {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        every!(self, |lane| write!(f, "{}", lane.machine)?);
        Ok(())
    }
}

/// Key spaces whose rows have one place: rows that the journal has elsewhere and that are not owned
/// there are left over from a time when they moved. Replicated tables are left out: their rows are
/// everywhere, and stay.
fn moving_indexes(catalog: &Catalog) -> BTreeSet<IndexId> {
    let databases = catalog.databases.values();
    let tables = databases.flat_map(|database| database.tables.values());
    let whole = tables.filter(|table| !table.replicated);
    let indexes = whole.flat_map(|table| table.indexes());
    indexes.map(|index| index.id).collect()
}

impl Core {
    /// Continues what a former life of the shard has left open. Called before the first step.
    pub(crate) fn recover(&mut self, mut tables: CheckpointTables) {
        self.purge_unknown_indexes();
        // Rows of the others came home before their database left its protocol, or never moved.
        let databases = self.catalog.databases.values();
        let fixed = databases.filter(|database| !database.protocol.moves_rows());
        let fixed: BTreeSet<IndexId> = fixed.flat_map(|database| database.key_spaces()).collect();
        let placement = &self.catalog.placement;
        let here = self.config.shard;
        tables.ownership.held.retain(|held| {
            placement.home(held.key.slot) == here || !fixed.contains(&held.key.index)
        });
        let moving = moving_indexes(&self.catalog);
        let moving = |index| moving.contains(&index);
        let mut odd = tables.take_of(true);
        for kind in ProtocolKind::ALL {
            let mine = match kind.has_odd_ids() {
                true => &mut odd,
                false => &mut tables,
            };
            route!(self, kind, |machine, cx| machine.recover(cx, mine, &moving));
        }
    }

    /// From here on the rows of an index follow another protocol than this one.
    pub(crate) fn leave(&mut self, kind: ProtocolKind, index: IndexId) {
        route!(self, kind, |machine, cx| machine.leave(cx, index));
    }

    /// The catalog does not know an index any more; its rows are removed.
    pub(crate) fn forget_index(&mut self, index: IndexId) {
        each!(self, |machine, cx| machine.forget_index(cx, index));
    }

    pub(crate) fn begin(&mut self, kind: ProtocolKind, txn: TxnId, options: TxnOptions) {
        route!(self, kind, |machine, cx| machine.begin(cx, txn, options));
    }

    pub(crate) fn submit(&mut self, kind: ProtocolKind, submission: Submission) -> Submitted {
        route!(self, kind, |machine, cx| machine.submit(cx, submission))
    }

    pub(crate) fn commit(&mut self, kind: ProtocolKind, txn: TxnId, id: OpId) -> Submitted {
        route!(self, kind, |machine, cx| machine.commit(cx, txn, id))
    }

    /// See [`Protocol::call_off`].
    pub(crate) fn call_off(&mut self, kind: ProtocolKind, txn: TxnId) -> bool {
        route!(self, kind, |machine, cx| machine.call_off(cx, txn))
    }

    /// See [`Protocol::abort`].
    pub(crate) fn abort(&mut self, kind: ProtocolKind, txn: TxnId) -> OpReply {
        route!(self, kind, |machine, cx| machine.abort(cx, txn))
    }

    /// See [`Protocol::forget`].
    pub(crate) fn forget(&mut self, kind: ProtocolKind, txn: TxnId) -> Option<TxnCost> {
        route!(self, kind, |machine, _cx| machine.forget(txn))
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
