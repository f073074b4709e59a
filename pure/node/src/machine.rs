//! The machine of a shard: gives inputs to its stages, and passes messages between the stages.
//!
//! Stages run in this order until none has messages: sessions, transactions (statements as
//! futures), protocols, schema changes. A message between stages of one shard is a call or an entry
//! of a queue; between shards it is an effect.
//!
//! Invariants:
//! * the core is never borrowed while a statement is polled or a session runs;
//! * an effect carries the journal position that it waits for, never less than the position of
//!   the clock bound under which its timestamps were drawn;
//! * work that could go on for long (scans, collection of versions, checkpoints) is cut into
//!   budgets and continued on the next step.

mod ahead;
mod inspect;
mod meters;
mod pass;
mod peers;
mod quiesce;
pub mod report;
mod schema;
mod sessions;
mod sweep;
mod switch;
mod table_locks;
mod takeover;
mod together;
mod unpack;

use crate::checkpoint::CheckpointRun;
use crate::config::{ShardConfig, ShardRecovered};
use crate::core::Core;
use crate::ddl::{Ddl, Origin};
use crate::events::Events;
use crate::input::{Effects, Input};
use crate::message::{LocalMessage, Message, Question, WireMessage};
use crate::parcel::pack;
use crate::register::Register;
use crate::sequence::{SequenceDraws, Wanted, on_counter};
use crate::show::Shows;
use crate::stages::{Stage, Stages};
use crate::txns::Txns;
use crate::txns::place::Place;
use ahead::Ahead;
use base::{
    LookupMap, NodeId, Planted, Position, ShardId, SqlError, SqlState, Time, Ts, is_planted,
};
use catalog::{Catalog, ProtocolKind};
use exec::fill::FillPosition;
use quiesce::Quiescing;
use session::message::{DdlCall, ToTxn, TxnHandle};
use session::{
    AuditEntry, Away, ConnId, Leftovers, PlanCache, Preparation, Session, SlowStatement, Statistics,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use sweep::Sweep;
use switch::Switch;
use takeover::Takeover;
use txn::{ClockBound, JournalPort};
use wire::{Reply, Severity};

/// Distance from the clock to a new bound: 1 s, as a timestamp. A restarted node waits until its
/// wall clock has passed the bound, so the distance is short. A statement after a silence of that
/// length waits for a flush, so it is not shorter.
const BOUND_AHEAD: u64 = (1_000_000 * 8) << 10;
/// Distance from the clock to the old bound at which a new one is journaled: 0.5 s, more than may
/// be told of a bound ([`txn::bound::TOLD_AHEAD`]).
const BOUND_NEAR: u64 = (500_000 * 8) << 10;
/// Microseconds between announcements of old reads, while there are versions to collect.
const ANNOUNCE_US: u64 = 200_000;
/// Rows whose old versions are collected in a step: mostly more than a step writes.
const COLLECT_ROWS: usize = 64;

/// A checkpoint that the host has asked for and that has not begun.
#[derive(Clone, Copy, Debug)]
struct CheckpointWanted {
    number: u64,
    /// Bytes of its first piece, if the host has asked for the piece.
    bytes: Option<usize>,
}

/// The machine of one shard.
pub struct Shard {
    core: Rc<RefCell<Core>>,
    events: Rc<RefCell<Events>>,
    shows: Rc<RefCell<Shows>>,
    sequences: Rc<RefCell<SequenceDraws>>,
    txns: Txns,
    sessions: LookupMap<ConnId, Box<Session>>,
    /// Connections in ascending order, for SHOW SESSIONS.
    conns: BTreeSet<ConnId>,
    session_deadlines: BTreeSet<(Time, ConnId)>,
    /// Sessions that wait for the message behind an Execute, in the order of their times.
    lookaheads: Vec<(Time, ConnId)>,
    plans: PlanCache,
    statistics: Statistics,
    to_txn: VecDeque<(ShardId, TxnHandle, ToTxn)>,
    ddl_wanted: VecDeque<DdlCall>,
    replies: Vec<(ConnId, Reply, Position)>,
    for_host: ForHost,
    leftovers: Leftovers,
    ddl: Ddl,
    /// Schema changes that sessions here have asked node 1 for.
    ddl_asked: BTreeMap<u64, ConnId>,
    ddl_next: u64,
    register: Register,
    takeover: Takeover,
    /// Position at which the next batch begins, left by the batch that runs.
    fill_next: Rc<RefCell<Option<FillPosition>>>,
    /// Sequence draws under way.
    draws: BTreeMap<TxnHandle, Wanted>,
    peers: BTreeMap<NodeId, u32>,
    away: Away,
    /// Nodes to which there was a connection since the start.
    met: BTreeSet<NodeId>,
    /// Time of the first step.
    started: Option<Time>,
    /// Nodes whose disks are full; known on the first shard of node 1 only.
    full_nodes: BTreeSet<NodeId>,
    stages: Stages,
    draining: bool,
    drained: bool,
    announce_at: Option<Time>,
    rows_written_announced: u64,
    /// Bounds of the clock whose records are not durable, each above the one before it.
    bounds_pending: VecDeque<(Position, Ts)>,
    /// End of this shard's record of the catalog in use; 0: it has written none.
    catalog_position: Position,
    /// On the shard that orders schema changes: the version in use, until its record is durable.
    catalog_pending: Option<u64>,
    switch: Switch,
    quiescing: Quiescing,
    sweep: Sweep,
    ahead: Ahead,
    together: advisory::Keeping,
    /// What sessions tell others.
    told: Vec<session::Told>,
    checkpoint: Option<CheckpointRun>,
    /// A checkpoint that waits until no large commit is half installed.
    checkpoint_wanted: Option<CheckpointWanted>,
    step_units_max: u64,
}

/// What sessions want of the host.
#[derive(Default)]
struct ForHost {
    /// Long statements to be parsed or planned.
    preparations: Vec<Preparation>,
    /// Statements that took long.
    slow: Vec<SlowStatement>,
    /// Logins and changes of sessions.
    audited: Vec<AuditEntry>,
}

impl ForHost {
    fn give(&mut self, out: &mut Effects) {
        if !self.preparations.is_empty() {
            out.rare_mut().preparations.append(&mut self.preparations);
        }
        if !self.slow.is_empty() {
            out.rare_mut().slow.append(&mut self.slow);
        }
        if !self.audited.is_empty() {
            out.rare_mut().audited.append(&mut self.audited);
        }
    }
}

impl Shard {
    /// A shard that continues from `recovered`. Its first step should be a tick.
    pub fn new(
        config: ShardConfig,
        journal: Box<dyn JournalPort>,
        recovered: ShardRecovered,
    ) -> Shard {
        let stages = Stages::new(config.stopwatch);
        let incarnation = config.incarnation;
        let shards_per_node = config.shards_per_node;
        let ddl = Ddl::recovered(config.shard, incarnation, &recovered.catalog);
        let register = takeover::register(&config, &recovered);
        let ShardRecovered {
            store,
            catalog,
            clock_floor,
            clock_bound,
            tables,
            vote: _,
        } = recovered;
        let mut core = Core::new(config, journal, clock_floor, store, catalog);
        core.clock_bound = ClockBound::new(clock_bound);
        core.recover(tables);
        let core = Rc::new(RefCell::new(core));
        let events = Rc::<RefCell<Events>>::default();
        let shows = Rc::<RefCell<Shows>>::default();
        let sequences = Rc::<RefCell<SequenceDraws>>::default();
        let txns = Txns::new(
            core.clone(),
            events.clone(),
            shows.clone(),
            sequences.clone(),
        );
        let mut shard = Shard {
            core,
            events,
            shows,
            sequences,
            txns,
            sessions: LookupMap::new(),
            conns: BTreeSet::new(),
            session_deadlines: BTreeSet::new(),
            lookaheads: Vec::new(),
            plans: PlanCache::of_shard(shards_per_node),
            statistics: Statistics::default(),
            to_txn: VecDeque::new(),
            ddl_wanted: VecDeque::new(),
            replies: Vec::new(),
            for_host: ForHost::default(),
            leftovers: Leftovers::default(),
            ddl,
            ddl_asked: BTreeMap::new(),
            ddl_next: u64::from(incarnation) << 32,
            register,
            takeover: Takeover::default(),
            fill_next: Rc::default(),
            draws: BTreeMap::new(),
            peers: BTreeMap::new(),
            away: Away::default(),
            met: BTreeSet::new(),
            started: None,
            full_nodes: BTreeSet::new(),
            stages,
            draining: false,
            drained: false,
            announce_at: None,
            rows_written_announced: 0,
            bounds_pending: VecDeque::new(),
            catalog_position: Position(0),
            catalog_pending: None,
            switch: Switch::default(),
            quiescing: Quiescing::default(),
            sweep: Sweep::default(),
            ahead: Ahead::default(),
            together: advisory::Keeping::new(session::pid_shard),
            told: Vec::new(),
            checkpoint: None,
            checkpoint_wanted: None,
            step_units_max: 0,
        };
        shard.shows.borrow_mut().advisory.next = u64::from(incarnation) << 32;
        shard.begin_switch();
        shard.look_for_left();
        shard
    }

    /// Takes one input to its end, and appends the effects to `out`.
    pub fn step(&mut self, now: Time, input: Input, out: &mut Effects) {
        {
            let mut core = self.core.borrow_mut();
            // A host whose clock is set back must not make deadlines unreachable.
            core.now = core.now.max(now);
            core.durable = core.journal.begin_step();
            self.started.get_or_insert(core.now);
        }
        let before = self.units();
        self.take(input);
        if !self.ahead.unpacking.is_empty() {
            self.unpack(before);
        }
        self.settle();
        self.note_queues();
        self.tend(out);
        self.release(out);
        self.step_units_max = self.step_units_max.max(self.units() - before);
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Connect { conn, secret, link } => {
                self.sessions
                    .insert(conn, Box::new(Session::new(conn, secret, *link)));
                self.conns.insert(conn);
            }
            Input::Client { conn, message } => {
                let start = self.stages.begin(Stage::Session);
                self.with_session(conn, |session, cx| session.on_client(cx, message));
                if start.is_some() {
                    self.stages.end(Stage::Session, start);
                    let waiting = self.sessions.get(&conn).map(|session| session.waiting());
                    self.stages.queue(Stage::Session, waiting.unwrap_or(0));
                }
            }
            Input::Disconnected { conn } => self.disconnect(conn),
            Input::Prepared(prepared) => {
                let conn = prepared.conn();
                self.with_session(conn, |session, cx| session.on_prepared(cx, *prepared));
            }
            Input::Drained { conn } => self.with_session(conn, |s, cx| s.on_drained(cx)),
            Input::Cancel { pid, secret } => self.cancel(pid, secret),
            Input::Message { from, message } => self.on_message(from, message),
            Input::Durable(position) => {
                let mut core = self.core.borrow_mut();
                core.on_durable(position);
                while let Some((at, bound)) = self.bounds_pending.front().copied()
                    && at <= position
                {
                    core.clock_bound.raise(bound);
                    self.bounds_pending.pop_front();
                }
                drop(core);
                self.catalog_durable(position);
                self.vote_durable(position);
            }
            Input::Tick => self.tick(),
            Input::PeerUp { node, incarnation } => self.peer_up(node, incarnation),
            Input::PeerHeard { node } => self.away.heard(node, self.core.borrow().now),
            Input::PeerDown { node } => self.peer_down(node),
            Input::DiskFull(full) => {
                self.core.borrow_mut().journal.full = full;
                self.tell_disk();
            }
            Input::Memory(memory) => self.core.borrow_mut().journal.memory = memory,
            Input::Checkpoint { number } => self.begin_checkpoint(number),
            Input::CheckpointPiece { bytes } => {
                if let Some(wanted) = &mut self.checkpoint_wanted {
                    wanted.bytes = Some(bytes);
                }
                self.checkpoint.iter_mut().for_each(|run| run.want(bytes));
            }
            Input::Drain => self.draining = true,
        }
    }

    /// Whether work goes on only when a record of this shard is durable, with no effect held back
    /// for that: a host flushes for this as for an effect.
    pub fn awaits_durable(&self) -> bool {
        self.catalog_pending.is_some()
            || self.takeover.awaits_durable()
            || self.core.borrow().protocols.awaits_durable()
    }

    /// Gives a message to its stage; `behind`: behind another one in its frame.
    fn deliver(&mut self, from: ShardId, behind: bool, message: Message) {
        let Some(message) = self.admit(from, message) else {
            return;
        };
        match message {
            Message::Wire(WireMessage::Protocol(word)) => {
                let start = self.stages.begin(Stage::Transaction);
                self.core.borrow_mut().on_protocol(from, behind, word);
                self.stages.end(Stage::Transaction, start);
            }
            Message::Wire(message) => self.on_wire(from, message),
            Message::Local(LocalMessage::ToTxn(handle, message)) => {
                self.txns.on_session(handle, message);
            }
            Message::Local(LocalMessage::FromTxn(handle, message)) => {
                self.with_session(handle.conn, |s, cx| s.on_txn(cx, handle, message));
            }
            Message::Local(LocalMessage::Cancel { pid, secret }) => self.cancel(pid, secret),
        }
    }

    fn on_wire(&mut self, from: ShardId, message: WireMessage) {
        match message {
            WireMessage::Protocol(_) | WireMessage::Parcel(_) => {
                unreachable!("handled by the callers")
            }
            WireMessage::Ddl { id, database, work } => {
                self.ddl.request(Origin::Shard(from, id), database, work);
            }
            WireMessage::DdlDone { id, result } => {
                let heard = Message::Wire(WireMessage::DdlHeard { id });
                self.core.borrow_mut().send(from, heard, Position(0));
                self.takeover.forget(id);
                if let Some(conn) = self.ddl_asked.remove(&id) {
                    self.with_session(conn, |session, cx| session.on_ddl(cx, result));
                }
            }
            WireMessage::DdlStop { id, stop } => self.on_ddl_stop(Origin::Shard(from, id), stop),
            WireMessage::DdlHeard { id } => self.ddl.on_heard(from, id),
            WireMessage::Catalog(catalog) => self.on_catalog(catalog),
            WireMessage::CatalogAck { version } => self.on_catalog_ack(from, version),
            WireMessage::Register(word) => self.on_register(from, word),
            WireMessage::CatalogStuck { version, missing } => {
                self.on_stuck(from, version, missing);
            }
            WireMessage::CatalogWanted { to } => self.send_catalog(to),
            WireMessage::ShowWanted { id, question } => {
                let rows = self.answer(&question);
                let answer = Message::Wire(WireMessage::ShowRows { id, rows });
                self.core.borrow_mut().send(from, answer, Position(0));
            }
            WireMessage::ShowRows { id, rows } => {
                self.shows.borrow_mut().on_rows(id, from, &rows);
                self.txns.wake_all();
            }
            WireMessage::DiskFull(full) => self.note_disk(from, full),
            WireMessage::Together(message) => self.on_together(from, message),
            WireMessage::Quiesce { version, tables } => self.on_quiesce(version, tables),
            WireMessage::Quiesced { version } => self.on_quiesced(from, version),
            WireMessage::ClientsAsked => self.core.borrow_mut().on_clients_asked(from),
            WireMessage::ClientsHeard => self.core.borrow_mut().on_clients_heard(),
            WireMessage::LocksAsked { number, lock } => self.on_locks_asked(number, lock),
            WireMessage::InLocksWay { number, sessions } => self.on_in_way(from, number, sessions),
            WireMessage::InTheWay(named) => self.txns.give_way(named),
            WireMessage::OldestRead { oldest, wanted } => {
                let mut core = self.core.borrow_mut();
                core.on_oldest(from, oldest, wanted);
                if wanted {
                    // The sender has written rows.
                    self.statistics.note_writes(core.now);
                }
            }
        }
    }

    fn tick(&mut self) {
        let now = self.core.borrow().now;
        self.core.borrow_mut().on_tick();
        self.txns.on_tick(now);
        self.txns.resume_yielded();
        self.txns.free_waste();
        self.core.borrow_mut().free_dropped();
        self.core.borrow_mut().sample();
        self.statistics.on_tick(now);
        if self.shows.borrow_mut().on_tick(now) {
            self.txns.wake_all();
        }
        self.sweep.wanted |= self.sweep.again_at.is_some_and(|at| at <= now);
        self.tick_together(now);
        self.tick_sessions(now);
    }

    /// Passes messages between the stages until none is left.
    fn settle(&mut self) {
        loop {
            let mut any = self.pass_to_txns();
            if self.txns.has_ready() {
                let start = self.stages.begin(Stage::Execute);
                any |= self.txns.poll_ready();
                self.stages.end(Stage::Execute, start);
            }
            any |= self.pass_answers();
            any |= self.pass_in_the_way();
            any |= self.pass_to_sessions();
            any |= self.start_wanted();
            any |= self.txns.admit_waiting();
            if !any {
                return;
            }
        }
    }

    /// Starts what stages have asked for: sequence draws, questions, schema changes.
    fn start_wanted(&mut self) -> bool {
        let nothing = self.sequences.borrow().wanted.is_empty()
            && self.shows.borrow().has_nothing_to_send()
            && self.told.is_empty()
            && self.ddl_wanted.is_empty()
            && self.statistics.is_idle()
            && self.ddl.is_idle()
            && !self.switch.wants_look()
            && !self.quiescing.wants_look()
            && !self.sweep.wanted
            && !self.takeover.wants_look();
        !nothing && self.start_some()
    }

    /// As [`Shard::start_wanted`], when there may be something to start.
    #[cold]
    fn start_some(&mut self) -> bool {
        let wanted = core::mem::take(&mut self.sequences.borrow_mut().wanted);
        let mut any = !wanted.is_empty();
        for wanted in wanted {
            let draws = self.sequences.clone();
            let started = wanted.clone();
            let database = self.any_database();
            // Counters never move, whatever the protocol of the sequence's database.
            let protocol = ProtocolKind::COMMON;
            let handle = self
                .txns
                .spawn(database, protocol, Place::USUAL, move |port| {
                    on_counter(port, draws, wanted)
                });
            self.draws.insert(handle, started);
        }
        any |= self.tend_statistics();
        any |= self.ask_shows();
        any |= self.tend_together();
        any |= self.sweep();
        any |= self.ask_ddl();
        any |= self.run_ddl();
        any |= self.tend_switch();
        any |= self.tend_locks_asked();
        any |= self.tend_quiesced();
        any |= self.tend_takeover();
        any
    }

    /// Sequence counters belong to no database's rules but those of the common protocol.
    fn any_database(&self) -> Arc<catalog::Database> {
        let core = self.core.borrow();
        core.catalog
            .databases
            .values()
            .next()
            .expect("a sequence lives in a database")
            .clone()
    }

    fn ask_shows(&mut self) -> bool {
        if self.shows.borrow().to_ask.is_empty() {
            return false;
        }
        let now = self.core.borrow().now;
        self.shows.borrow_mut().sent(now);
        let asked = core::mem::take(&mut self.shows.borrow_mut().to_ask);
        for (id, question, shards) in asked {
            for shard in shards {
                if shard == self.core.borrow().config.shard {
                    let rows = self.answer(&question);
                    self.shows.borrow_mut().on_rows(id, shard, &rows);
                    self.txns.wake_all();
                } else {
                    let question = question.clone();
                    let message = Message::Wire(WireMessage::ShowWanted { id, question });
                    self.core.borrow_mut().send(shard, message, Position(0));
                }
            }
        }
        true
    }

    /// Does background work in small pieces, and keeps the clock's bound ahead of the clock.
    fn tend(&mut self, out: &mut Effects) {
        let mut core = self.core.borrow_mut();
        let last = core.clock.last();
        // A message may take the clock beyond the bound that is on its way.
        if last.0.saturating_add(BOUND_NEAR) > self.newest_bound(&core).0 {
            let ts = Ts(last.0.max(Ts::from_time(core.now).0) + BOUND_AHEAD);
            let mut record = Vec::new();
            journal::Record::ClockBound { ts }.encode(&mut record);
            let position = core.journal.append(&record);
            self.bounds_pending.push_back((position, ts));
        }
        // Shards announce what they read; a single shard looks when it has something to remove.
        if core.store.expiring() > 0 && core.catalog.placement.shards().len() == 1 {
            core.update_horizons();
        }
        if self.away.look(core.now) {
            core.gone.clone_from(self.away.gone());
            core.update_horizons();
        }
        let written = core.counters.rows_written != self.rows_written_announced;
        if written && self.announce_at.is_none() {
            self.announce_at = Some(core.now.after(ANNOUNCE_US));
        }
        if self.announce_at.is_some_and(|at| at <= core.now) {
            self.announce_at = None;
            self.statistics.note_writes(core.now);
            self.rows_written_announced = core.counters.rows_written;
            core.announce();
        }
        let both = &mut *core;
        both.store.collect(&both.horizons, COLLECT_ROWS);
        let bound = self.newest_bound(&core);
        drop(core);
        self.start_checkpoint();
        if let Some(run) = &mut self.checkpoint
            && run.advance(
                &mut self.core.borrow_mut(),
                bound,
                &mut out.rare_mut().checkpoint,
            )
        {
            self.checkpoint = None;
        }
        if self.draining && !self.drained && self.txns.len() == 0 {
            self.drained = true;
            out.rare_mut().drained = true;
        }
    }

    /// The bound of the clock in its newest record, durable or not.
    fn newest_bound(&self, core: &Core) -> Ts {
        let pending = self.bounds_pending.back();
        pending.map_or(core.clock_bound.durable(), |(_, bound)| *bound)
    }

    fn begin_checkpoint(&mut self, number: u64) {
        if self.checkpoint.is_none() {
            let bytes = None;
            self.checkpoint_wanted = Some(CheckpointWanted { number, bytes });
        }
    }

    /// Begins the wanted checkpoint when no write set is half installed.
    fn start_checkpoint(&mut self) {
        let Some(CheckpointWanted { number, bytes }) = self.checkpoint_wanted else {
            return;
        };
        let mut core = self.core.borrow_mut();
        if core.protocols.checkpoint_may_begin() {
            let mut run = CheckpointRun::new(&mut core, number);
            bytes.into_iter().for_each(|bytes| run.want(bytes));
            drop(core);
            self.journal_vote_again();
            (self.checkpoint, self.checkpoint_wanted) = (Some(run), None);
        }
    }

    /// Sets the number of units in a slice of a large transaction: for tests and simulation, where
    /// transactions are small.
    pub fn set_slice(&mut self, units: u64) {
        self.core.borrow_mut().protocols.set_slice(units);
    }

    /// Changes after how long without a connection the readers of a node are not waited for any
    /// more: in tests and simulation, where outages are short.
    pub fn set_gone_after(&mut self, us: u64) {
        self.away.set_gone_after(us);
    }

    /// Versions of rows that are kept, the newest of each row included.
    pub fn versions(&self) -> usize {
        self.core.borrow().store.counts().versions
    }

    /// Statements that were planned here so far.
    pub fn planned(&self) -> u64 {
        self.plans.planned()
    }

    /// Largest number of units of work of a step since the last call: rows read, and
    /// [`txn::Counters::units`].
    pub fn take_step_units_max(&mut self) -> u64 {
        core::mem::take(&mut self.step_units_max)
    }

    fn units(&self) -> u64 {
        let counters = &self.core.borrow().counters;
        counters.rows_read + counters.units
    }

    /// Moves what the stages have produced into `out`.
    fn release(&mut self, out: &mut Effects) {
        let mut core = self.core.borrow_mut();
        // Timestamps above the durable bound must not be seen before the next bound is durable.
        let needed = core.clock_bound.needed(core.clock.last());
        let bound = needed.and_then(|needed| {
            let mut pending = self.bounds_pending.iter();
            pending.find(|(_, bound)| *bound >= needed)
        });
        let floor = bound.map_or(Position(0), |(position, _)| *position);
        let catalog_floor = self.catalog_floor(core.journal.durable());
        let floor = floor.max(catalog_floor);
        self.stages.count(Stage::Reply, self.replies.len() as u64);
        if !self.replies.is_empty() {
            let replies = self.replies.drain(..);
            out.replies.extend(replies.map(|(conn, reply, wait)| {
                if is_planted(Planted::AnswerNotDurable) {
                    return (conn, reply, Position(0));
                }
                (conn, reply, wait.max(floor))
            }));
        }
        self.for_host.give(out);
        let core = &mut *core;
        let before = out.messages.len();
        core.protocols.drain_messages(floor, &mut out.messages);
        if out.messages.len() > before + 1 {
            let here = core.config.shard.node();
            let durability = core.journal.durability();
            core.counters.messages -= pack(&mut out.messages, before, here, durability);
        }
        if catalog_floor > Position(0) {
            for outgoing in &mut core.messages {
                outgoing.wait = outgoing.wait.max(catalog_floor);
            }
        }
        if !core.messages.is_empty() {
            out.messages.append(&mut core.messages);
        }
    }

    /// When the next tick is wanted; a time in the past: at once.
    pub fn deadline(&self) -> Option<Time> {
        let core = self.core.borrow();
        let events = self.events.borrow();
        let waste = !events.waste.is_empty() || core.store.has_dropped() || core.sampling.is_busy();
        if !events.yielded.is_empty() || waste || !self.ahead.unpacking.is_empty() {
            return Some(Time(0));
        }
        drop(events);
        let mut first = core.protocols.deadline();
        // Called behind every step: a list would cost a hundred instructions.
        let mut add = |at: Option<Time>| {
            if at.is_some() && first.is_none_or(|known| at < Some(known)) {
                first = at;
            }
        };
        add(self.txns.deadline());
        add(self.session_deadlines.first().map(|(at, _)| *at));
        add(self.lookaheads.first().map(|(at, _)| *at));
        add(self.announce_at);
        add(self.away.deadline());
        add(self.shows.borrow().again_at);
        add(self.statistics.deadline());
        add(self.switch.deadline());
        add(self.quiescing.deadline());
        add(self.sweep.again_at);
        add(self.ddl_deadline());
        add(self.takeover_deadline());
        add(self.together.deadline());
        first
    }

    /// Bytes that a client has sent ahead of its session ([`Session::backlog_bytes`]); 0: it has
    /// gone.
    pub fn backlog_bytes(&self, conn: ConnId) -> usize {
        let session = self.sessions.get(&conn);
        session.map_or(0, |session| session.backlog_bytes())
    }

    /// Whether clients are served: the catalog is known and the shard does not drain.
    pub fn is_accepting(&self) -> bool {
        !self.draining && self.core.borrow().catalog.version > 0
    }

    /// The host has sent a message of `bytes` bytes to another node; 0: the message was lost.
    pub fn note_sent(&mut self, bytes: u64) {
        self.core.borrow_mut().counters.message_bytes += bytes;
    }

    /// What this shard has counted since its node started.
    pub fn counters(&self) -> txn::counters::Counters {
        self.core.borrow().counters
    }

    /// The catalog in use.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.core.borrow().catalog.clone()
    }

    /// Closes all sessions with 57P01.
    pub fn shut_down(&mut self, out: &mut Effects) {
        for conn in &self.conns {
            let error = SqlError::new(
                SqlState::ADMIN_SHUTDOWN,
                "terminating connection due to administrator command",
            );
            out.replies
                .push((*conn, Reply::Error(Severity::Fatal, error), Position(0)));
            out.replies.push((*conn, Reply::Close, Position(0)));
        }
    }

    /// Whether this shard runs and owes no transaction, holds no lock, and runs no schema change.
    pub fn is_idle(&self) -> bool {
        self.parts().iter().all(|(_, idle)| *idle)
    }

    /// This shard's part of the answer to a question, or to an order.
    fn answer(&mut self, question: &Question) -> base::RowBatch {
        match question {
            Question::Signal { pid, terminate } => {
                let mut rows = base::RowBatch::new(0);
                if self.signal(*pid, *terminate) {
                    rows.push([]);
                }
                rows
            }
            Question::Forget { sequence } => {
                self.sequences.borrow_mut().forget(*sequence);
                let mut rows = base::RowBatch::new(0);
                rows.push([]);
                rows
            }
            Question::Show { what, database } => self.shown(*what, database),
        }
    }
}
