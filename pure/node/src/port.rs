//! The executor's view of its transaction: [`exec::Port`] over the shard's core.

mod shared;

use crate::events::Events;
use crate::pace::Pace;
use crate::sequence::{SequenceDraws, draw, last_drawn, set_drawn};
use crate::show::Shows;
use crate::snapshot::Held;
use base::{Planted, RowBatch, ShardId, Slot, SqlError, SqlState, Time, Ts, is_planted};
use bind::PlanCx;
use bind::rel::Signal;
use catalog::{Catalog, Database, Sequence};
use exec::deferred::Deferred;
use exec::objects::Descriptors;
use exec::port::{OpAnswer, SequenceAsk, Started};
use functions::overtime;
use parse::Statement;
use parse::show::Show;
use plan::Plan;
use session::barrier::behind;
use session::errors::{disk_full, memory_used_up, program_too_long};
use session::message::{
    FromTxn, SessionEffects, SessionFacts, SettingChange, StatementNo, TxnHandle,
};
pub(crate) use shared::TxnShared;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use txn::contract::Submitted;
use txn::{
    JournalPort, LockMode, Op, OpError, OpId, OpReply, Outcome, Read, Snapshot, Submission, TxnCost,
};

/// Bytes that all statements of one shard may hold (beyond: 53200).
pub(crate) const SHARD_MEMORY_BYTES_MAX: i64 = 4 << 30;

/// Bytes below which a statement is not refused because its node's memory is used up.
const SMALL_BYTES: i64 = 256 << 10;

/// Least bytes of COPY data between two reports to the session that they were taken. Well below
/// what a host lets a client send ahead.
const COPY_TAKEN_BYTES: usize = 64 << 10;

/// Memory of a statement, and rows that it has read in this turn.
#[derive(Default)]
pub(crate) struct Memory {
    bytes: Cell<i64>,
    /// Bytes that the statement may hold; `None`: not looked up yet.
    bytes_max: Cell<Option<i64>>,
    /// Rows that operations have read, or passed over, since other statements had their turn.
    read: Cell<u64>,
}

/// Rows that a statement's operations read without a wait before the statement gives way.
const READ_ROWS_MAX: u64 = 1_000;

pub(crate) struct StatementPort {
    pub(crate) txn: Rc<TxnShared>,
    pub(crate) handle: TxnHandle,
    pub(crate) statement: StatementNo,
    /// Whether the commit may ride on a single operation.
    pub(crate) autocommit: bool,
    /// Whether the statement is all of its transaction and reads one moment without locks.
    pub(crate) lockless: bool,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) database: Arc<Database>,
    pub(crate) facts: Arc<SessionFacts>,
    pub(crate) events: Rc<RefCell<Events>>,
    pub(crate) shows: Rc<RefCell<Shows>>,
    pub(crate) sequences: Rc<RefCell<SequenceDraws>>,
    pub(crate) credit: Cell<u32>,
    pub(crate) copy: RefCell<VecDeque<Result<Option<Vec<u8>>, SqlError>>>,
    pub(crate) copy_asked: Cell<bool>,
    /// Bytes taken out of `copy` since the session was last told.
    pub(crate) copy_taken: Cell<usize>,
    /// Snapshot of this statement under READ COMMITTED, drawn at its first read.
    pub(crate) snapshot: Cell<Option<Held>>,
    /// First operation since the statement started, or started again.
    pub(crate) first_op: Cell<Option<OpId>>,
    /// Whether the statement has sent, written or taken what cannot be taken back.
    pub(crate) spent: Cell<bool>,
    /// Number of times that the statement has started again at a later snapshot.
    pub(crate) restarts: Cell<u32>,
    /// Whether work over existing rows locks its table instead of each row by itself: that of a
    /// client's block, which keeps its locks, and some of the node's own.
    pub(crate) locks_table: Cell<bool>,
    pub(crate) memory: Memory,
    pub(crate) effects: RefCell<Option<Box<SessionEffects>>>,
}

/// What a new statement is given.
pub(crate) struct Given {
    pub(crate) statement: StatementNo,
    pub(crate) autocommit: bool,
    pub(crate) lockless: bool,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) database: Arc<Database>,
    pub(crate) facts: Arc<SessionFacts>,
    pub(crate) credit: u32,
}

/// What all statements of a shard share.
type OfShard<'a> = (
    &'a Rc<RefCell<Events>>,
    &'a Rc<RefCell<Shows>>,
    &'a Rc<RefCell<SequenceDraws>>,
);

impl StatementPort {
    pub(crate) fn new(
        txn: &Rc<TxnShared>,
        handle: TxnHandle,
        given: Given,
        (events, shows, sequences): OfShard<'_>,
    ) -> StatementPort {
        StatementPort {
            txn: txn.clone(),
            handle,
            statement: given.statement,
            autocommit: given.autocommit,
            lockless: given.lockless,
            catalog: given.catalog,
            database: given.database,
            facts: given.facts,
            events: events.clone(),
            shows: shows.clone(),
            sequences: sequences.clone(),
            credit: Cell::new(given.credit),
            copy: RefCell::default(),
            copy_asked: Cell::new(false),
            copy_taken: Cell::new(0),
            snapshot: Cell::new(None),
            first_op: Cell::new(None),
            spent: Cell::new(false),
            restarts: Cell::new(0),
            locks_table: Cell::new(!given.autocommit),
            memory: Memory::default(),
            effects: RefCell::default(),
        }
    }

    /// Ready from `until` on, when the statement is woken.
    pub(crate) fn poll_wake(&self, until: Time, asked: &mut bool) -> Poll<()> {
        if self.txn.core.borrow().now >= until {
            return Poll::Ready(());
        }
        if !core::mem::replace(asked, true) {
            let entry = (until, self.handle, self.statement);
            self.events.borrow_mut().sleeping.insert(entry);
        }
        Poll::Pending
    }

    /// Notes what an answer tells of the transaction, and unwraps its result.
    fn digest_answer(&self, reply: OpReply) -> OpAnswer {
        self.txn.wait.set(self.txn.wait.get().max(reply.wait));
        if let Some(outcome) = reply.outcome {
            let unknown = outcome == Outcome::Unknown;
            *self.txn.outcome.borrow_mut() = Some(outcome);
            if unknown {
                // Without a result the statement cannot go on; the session is told the outcome.
                return Err(OpError::Sql(session::errors::unknown_outcome()));
            }
        }
        reply.result
    }

    fn lock_rows(&self, mode: LockMode) -> Read {
        let snapshot = self.statement_snapshot();
        Read::LockRows { snapshot, mode }
    }

    pub(crate) fn statement_snapshot(&self) -> Snapshot {
        let held = self.snapshot.get().unwrap_or_else(|| {
            let mut core = self.txn.core.borrow_mut();
            let now = core.now;
            let alone = core.catalog.placement.shards().len() == 1;
            let stale = is_planted(Planted::RcSnapshotStale) && self.txn.is_read_committed();
            let held = Held {
                exact: alone || stale,
                ..Held::begin(core.clock.tick(now))
            };
            core.hold_snapshot(self.txn.database, held.at);
            self.snapshot.set(Some(held));
            held
        });
        held.snapshot()
    }

    /// Whether the shard is on a node that cannot be reached now.
    pub(crate) fn is_unreachable(&self, shard: ShardId) -> bool {
        self.shows.borrow().unreachable.contains(&shard)
    }

    /// Bytes that the statement may hold in memory: its session's `statement_memory`.
    fn memory_bytes_max(&self) -> i64 {
        const SETTING: &str = "statement_memory";
        if let Some(limit) = self.memory.bytes_max.get() {
            return limit;
        }
        let value = exec::Port::setting(self, SETTING);
        let kib = value.and_then(|value| pg_catalog::settings::integer(SETTING, &value));
        let limit = kib.expect("a setting that exists and was checked") * 1024;
        self.memory.bytes_max.set(Some(limit));
        limit
    }

    /// 53200: the statement holds `held` bytes and has asked for `bytes` more.
    fn needs_too_much(&self, held: i64, bytes: i64) -> SqlError {
        let limit = self.memory_bytes_max();
        let detail = format!(
            "It holds {held} bytes and asked for {bytes} more; statement_memory allows {limit}."
        );
        SqlError::new(
            SqlState::OUT_OF_MEMORY,
            "the statement needs too much memory",
        )
        .detail(detail)
        .hint(
            "Make it sort, join, group or collect less (a condition, a LIMIT, fewer columns), or \
             raise statement_memory for this session.",
        )
    }

    /// The shards on which the transaction may have written.
    pub(crate) fn shards_written(&self) -> Vec<ShardId> {
        let mut shards = Vec::new();
        let core = self.txn.core.borrow();
        core.protocols
            .each_written(self.txn.protocol, self.txn.id, &mut |shard| {
                shards.push(shard);
            });
        shards
    }

    /// Waits for the statement's open operations and drops the answers. Returns the largest
    /// timestamp to which one of them wanted the snapshot raised; zero: none did.
    pub(crate) fn poll_drained(&self) -> Poll<Ts> {
        if self.txn.pending.get() > 0 {
            return Poll::Pending;
        }
        let mut latest = Ts::ZERO;
        if let Some(first) = self.first_op.take() {
            self.txn.answers.borrow_mut().retain(|(op, reply)| {
                if let (true, Err(OpError::Raise(at))) = (*op >= first, &reply.result) {
                    latest = latest.max(*at);
                }
                *op < first
            });
        }
        Poll::Ready(latest)
    }

    /// Tells the session now and then how much COPY data was taken, so that it asks for more.
    fn note_taken(&self, bytes: usize) {
        let taken = self.copy_taken.get() + bytes;
        if taken < COPY_TAKEN_BYTES {
            self.copy_taken.set(taken);
            return;
        }
        self.copy_taken.set(0);
        let told = FromTxn::CopyTaken(self.statement, taken);
        self.events
            .borrow_mut()
            .to_sessions
            .push_back((self.handle, told));
    }

    fn emit(&self, message: FromTxn) {
        self.credit.set(self.credit.get() - 1);
        self.events
            .borrow_mut()
            .to_sessions
            .push_back((self.handle, message));
    }
}

impl Drop for StatementPort {
    fn drop(&mut self) {
        let mut core = self.txn.core.borrow_mut();
        core.memory_bytes -= self.memory.bytes.get();
        if let Some(held) = self.snapshot.get() {
            core.release_snapshot(self.txn.database, held.at);
        }
    }
}

impl exec::Port for StatementPort {
    fn submit(&self, to: ShardId, planned: u64, op: Op, last: bool) -> Started {
        let mut core = self.txn.core.borrow_mut();
        if core.journal.full && op.is_write() {
            let error = disk_full(core.config.shard.node());
            return Started::Ready(Some(Err(OpError::Sql(error))));
        }
        if core.config.nodes.len() > 1
            && let Some(bytes) = op.too_long()
        {
            return Started::Ready(Some(Err(OpError::Sql(program_too_long(bytes)))));
        }
        if !self.autocommit {
            self.txn.used.note(&op);
        }
        self.txn.touched.note(to.node(), &op, &core.replicated);
        let id = core.next_op();
        let mut op = op;
        let first = self.first_op.get().is_none();
        if let (true, true, None) = (first, last, self.txn.snapshot.get())
            && let Some(snapshot) = op.snapshot_mut()
        {
            snapshot.sole = true;
            if to == self.txn.id.shard {
                // Drawn from this shard's clock just before.
                snapshot.bound = snapshot.at;
            }
        }
        if first {
            self.first_op.set(Some(id));
        }
        if op.is_write() {
            self.txn.wrote.set(true);
            self.spent.set(true);
        }
        let last = last && self.autocommit;
        let txn = self.txn.id;
        let submission = Submission {
            txn,
            id,
            to,
            planned,
            op,
            last,
        };
        let before = core.counters.rows_read + core.counters.units;
        let submitted = overtime::apart(|| core.submit(self.txn.protocol, submission));
        let read = core.counters.rows_read + core.counters.units - before;
        drop(core);
        self.memory.read.set(self.memory.read.get() + read);
        match submitted {
            // Scans that are answered at once, one after the other, as those of a subquery are.
            Submitted::Ready(reply) if self.memory.read.get() >= READ_ROWS_MAX => {
                Started::Late(Some(self.digest_answer(reply)), false)
            }
            Submitted::Ready(reply) => Started::Ready(Some(self.digest_answer(reply))),
            Submitted::Pending => {
                self.txn.pending.set(self.txn.pending.get() + 1);
                Started::Pending(id)
            }
        }
    }

    fn poll_op(&self, id: OpId) -> Poll<OpAnswer> {
        match self.txn.take_answer(id) {
            Some(reply) => Poll::Ready(self.digest_answer(reply)),
            None => Poll::Pending,
        }
    }

    fn home(&self, slot: Slot) -> ShardId {
        self.catalog.placement.home(slot)
    }

    fn shards(&self) -> Arc<[ShardId]> {
        self.catalog.placement.shards().into()
    }

    fn here(&self) -> ShardId {
        self.txn.id.shard
    }

    fn read(&self) -> Read {
        if let Some(held) = self.txn.snapshot.get() {
            return Read::Snapshot(held.snapshot());
        }
        if self.txn.read_only || self.lockless || self.txn.is_read_committed() {
            Read::Snapshot(self.statement_snapshot())
        } else {
            Read::Lock(LockMode::Shared)
        }
    }

    fn read_locking(&self, mode: LockMode) -> Read {
        self.txn.locked_rows.set(true);
        match self.txn.is_read_committed() {
            true => self.lock_rows(mode),
            false => Read::Lock(mode),
        }
    }

    fn read_batch(&self, mode: LockMode) -> Read {
        match self.locks_table.get() {
            true => self.read_locking(mode),
            false => self.lock_rows(mode),
        }
    }

    fn batch_rows(&self) -> u32 {
        match self.locks_table.get() {
            // The fewer the better.
            true => Pace::ALONE.rows,
            false => Pace::of(&self.txn.core.borrow()).rows,
        }
    }

    fn read_snapshot(&self) -> Read {
        Read::Snapshot(self.statement_snapshot())
    }

    fn try_lock(&self, mode: LockMode, skips: bool) -> Read {
        self.txn.locked_rows.set(true);
        Read::TryLock { mode, skips }
    }

    fn read_only(&self) -> bool {
        self.txn.read_only
    }

    fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    fn database(&self) -> &Arc<Database> {
        &self.database
    }

    fn txn_time(&self) -> Time {
        self.txn.txn_time
    }

    fn now(&self) -> Time {
        self.txn.core.borrow().now
    }

    fn stopwatch_ns(&self) -> u64 {
        let stopwatch = self.txn.core.borrow().config.stopwatch;
        stopwatch()
    }

    fn unique(&self) -> u64 {
        self.txn.core.borrow_mut().next_unique()
    }

    fn random(&self) -> u64 {
        self.txn.core.borrow_mut().prng.next_u64()
    }

    fn setting(&self, name: &str) -> Option<String> {
        let own = self.effects.borrow();
        let set = own.iter().flat_map(|own| own.settings.iter().rev());
        if let Some(change) = set.into_iter().find(|change| change.name == name) {
            return Some(change.value.clone());
        }
        if let Some((_, value)) = self.facts.settings.iter().find(|(key, _)| key == name) {
            return Some(value.clone());
        }
        match name {
            // Nobody else was logged in, and no role is set.
            "session_authorization" => Some(self.facts.user.clone()),
            "role" => Some("none".to_owned()),
            _ => pg_catalog::settings::lookup(name).map(|it| it.default.to_string()),
        }
    }

    fn set_config(&self, name: &str, value: Option<&str>, local: bool) -> Result<String, SqlError> {
        let name = pg_catalog::settings::lookup(name)
            .map_or(name, |setting| setting.name)
            .to_ascii_lowercase();
        let default = || {
            // A setting without an entry has its default.
            let SessionFacts {
                defaults, settings, ..
            } = &*self.facts;
            let mut known = defaults.iter().chain(settings);
            let found = known.find(|(key, _)| *key == name);
            let lookup = || pg_catalog::settings::lookup(&name).map(|setting| setting.default);
            let found = found.map(|(_, value)| &**value).or_else(lookup);
            found.unwrap_or_default().to_owned()
        };
        let is_superuser = exec::Port::setting(self, "is_superuser").as_deref() == Some("on");
        pg_catalog::settings::allow(&name, is_superuser)?;
        let value = value.map_or_else(default, str::to_owned);
        let value = pg_catalog::settings::validate(&name, &value)?;
        let before = exec::Port::setting(self, &name);
        let text = match (&*name, &*value) {
            _ if before.as_ref() == Some(&value) => None,
            ("transaction_isolation", _) => {
                Some("SET TRANSACTION ISOLATION LEVEL must be called before any query")
            }
            ("transaction_deferrable", _) => {
                Some("SET TRANSACTION [NOT] DEFERRABLE must be called before any query")
            }
            ("transaction_read_only", "off") => {
                Some("transaction read-write mode must be set before any query")
            }
            _ => None,
        };
        if let Some(text) = text {
            return Err(SqlError::new(SqlState::ACTIVE_TXN, text));
        }
        let change = SettingChange {
            name,
            value: value.clone(),
            local,
        };
        let mut effects = self.effects.borrow_mut();
        effects.get_or_insert_default().settings.push(change);
        Ok(value)
    }

    fn session_user(&self) -> String {
        self.facts.user.clone()
    }

    fn session_ends(&self) -> Option<expr::Ends> {
        self.facts.ends.clone()
    }

    fn session_pid(&self) -> i32 {
        self.facts.pid
    }

    fn poll_emit(&self, batch: &mut Option<RowBatch>) -> Poll<()> {
        if self.credit.get() == 0 {
            return Poll::Pending;
        }
        let batch = batch.take().expect("a batch is emitted once");
        self.spent.set(true);
        self.emit(FromTxn::Rows(self.statement, batch, self.txn.wait.get()));
        Poll::Ready(())
    }

    fn poll_emit_copy(&self, bytes: &mut Option<Vec<u8>>) -> Poll<()> {
        if self.credit.get() == 0 {
            return Poll::Pending;
        }
        let bytes = bytes.take().expect("a chunk is emitted once");
        self.spent.set(true);
        self.emit(FromTxn::CopyOut(self.statement, bytes, self.txn.wait.get()));
        Poll::Ready(())
    }

    fn poll_copy_data(&self) -> Poll<Result<Option<Vec<u8>>, SqlError>> {
        if !self.copy_asked.replace(true) {
            let ready = FromTxn::CopyInReady(self.statement);
            self.events
                .borrow_mut()
                .to_sessions
                .push_back((self.handle, ready));
        }
        let Some(chunk) = self.copy.borrow_mut().pop_front() else {
            return Poll::Pending;
        };
        self.spent.set(true);
        if let Ok(Some(bytes)) = &chunk {
            self.note_taken(bytes.len());
        }
        Poll::Ready(chunk)
    }

    fn poll_nextval(
        &self,
        sequence: &Sequence,
        ticket: &mut Option<u64>,
    ) -> Poll<Result<i64, OpError>> {
        draw(&self.sequences, &self.effects, sequence, ticket)
    }

    fn poll_sequence(
        &self,
        sequence: &Sequence,
        ask: SequenceAsk,
        ticket: &mut Option<u64>,
    ) -> Poll<Result<(i64, bool), OpError>> {
        let SequenceAsk::Forget { value, given } = ask else {
            return self.sequences.borrow_mut().ask(sequence, ask, ticket);
        };
        let shards = self.catalog.placement.shards();
        let forgot = self
            .shows
            .borrow_mut()
            .poll_forget(sequence, shards, ticket);
        set_drawn(&self.effects, sequence, forgot, (value, given))
    }

    fn currval(&self, sequence: &Sequence) -> Option<i64> {
        last_drawn(&self.effects, &self.facts, sequence)
    }

    fn last_drawn(&self) -> Option<base::IndexId> {
        let own = self
            .effects
            .borrow()
            .as_ref()
            .and_then(|own| own.drawn_last);
        own.or(self.facts.drawn_last)
    }

    fn discard(&self, waste: exec::port::Waste) {
        self.events.borrow_mut().waste.push(waste);
    }

    fn poll_yield(&self, yielded: &mut bool) -> Poll<()> {
        if core::mem::replace(yielded, true) {
            return Poll::Ready(());
        }
        self.memory.read.set(0);
        self.events
            .borrow_mut()
            .yielded
            .push_back((self.handle, self.statement));
        Poll::Pending
    }

    fn poll_sleep(&self, until: Time, asked: &mut bool) -> Poll<()> {
        self.poll_wake(until, asked)
    }

    fn poll_show(&self, what: Show, ticket: &mut Option<u64>) -> Poll<Result<RowBatch, OpError>> {
        let (database, shards) = (&self.database.name, self.catalog.placement.shards());
        let here = self.txn.id.shard;
        self.shows
            .borrow_mut()
            .poll(what, database, shards, here, ticket)
    }

    fn plan(&self, statement: &Statement, cx: &PlanCx<'_>) -> Result<Arc<Plan>, SqlError> {
        let barrier = self.txn.core.borrow().config.barrier;
        behind(barrier, statement.text(), || plan::plan(statement, cx))
    }

    fn poll_signal(
        &self,
        pid: i32,
        signal: Signal,
        ticket: &mut Option<u64>,
    ) -> Poll<Result<bool, OpError>> {
        let shards = self.catalog.placement.shards();
        let mut shows = self.shows.borrow_mut();
        shows.poll_signal(pid, signal, shards, ticket)
    }

    fn deferred(&self) -> Option<&RefCell<Deferred>> {
        (!self.autocommit).then_some(&self.txn.deferred)
    }

    fn doubles(&self) -> Option<&RefCell<Deferred>> {
        Some(&self.txn.deferred)
    }

    fn descriptors(&self, changed: bool) -> Option<&RefCell<Descriptors>> {
        if changed {
            self.spent.set(true);
        }
        (!self.autocommit).then_some(&self.txn.descriptors)
    }

    fn note_owed(&self) {
        self.effects.borrow_mut().get_or_insert_default().owes = true;
    }

    fn poll_advisory(
        &self,
        ask: advisory::Ask,
        ticket: &mut Option<u64>,
    ) -> Poll<Result<advisory::Answer, OpError>> {
        let keeper = advisory::keeper(self.database.id, self.catalog.placement.shards());
        let (here, session) = (self.txn.id.shard, self.facts.pid);
        self.txn.asked_keeper.set(Some((keeper, session)));
        let timeout = exec::Port::setting(self, "lock_timeout");
        let timeout = timeout.and_then(|ms| pg_catalog::settings::integer("lock_timeout", &ms));
        let timeout_us = u64::try_from(timeout.unwrap_or(0)).unwrap_or(0) * 1000;
        let asker = (here, session, self.txn.id);
        let mut shows = self.shows.borrow_mut();
        let shows = &mut *shows;
        let work = (ask, timeout_us);
        let polled = shows
            .advisory
            .poll(keeper, &shows.unreachable, asker, work, ticket);
        polled.map(|answer| answer.map_err(OpError::Sql))
    }

    fn withdraw_advisory(&self, ticket: u64) {
        self.shows.borrow_mut().advisory.withdraw(ticket);
    }

    fn warn(&self, warning: SqlError) {
        const WARNINGS_MAX: usize = 1_000;
        let mut effects = self.effects.borrow_mut();
        let warnings = &mut effects.get_or_insert_default().warnings;
        if warnings.len() < WARNINGS_MAX {
            warnings.push(warning);
        }
    }

    fn notify(&self, notification: exec::port::Notification) -> Result<(), SqlError> {
        const COUNT_MAX: usize = 100_000;
        self.charge(notification.size_bytes() as i64)?;
        let mut effects = self.effects.borrow_mut();
        let notifications = &mut effects.get_or_insert_default().notifications;
        if notifications.len() >= COUNT_MAX {
            let message = "the statement has too many notifications";
            return Err(SqlError::new(SqlState::OUT_OF_MEMORY, message));
        }
        if notifications.last() != Some(&notification) {
            notifications.push(notification);
        }
        Ok(())
    }

    fn charge(&self, bytes: i64) -> Result<(), SqlError> {
        let held = self.memory.bytes.get();
        let own = held + bytes;
        if bytes > 0 && own > self.memory_bytes_max() {
            return Err(self.needs_too_much(held, bytes));
        }
        let mut core = self.txn.core.borrow_mut();
        if bytes > 0 && core.memory_bytes + bytes > SHARD_MEMORY_BYTES_MAX {
            let message = "statements of this shard need too much memory together";
            let detail = format!(
                "They hold {} bytes of at most {SHARD_MEMORY_BYTES_MAX}, and this one asked for \
                 {bytes} more.",
                core.memory_bytes
            );
            return Err(SqlError::new(SqlState::OUT_OF_MEMORY, message)
                .detail(detail)
                .hint("Run fewer large statements at the same time."));
        }
        let claimed = bytes > 0 && own > SMALL_BYTES;
        if claimed && !core.journal.claim_memory(bytes.unsigned_abs()) {
            let node = core.config.shard.node();
            let detail = format!("The statement holds {held} bytes and asked for {bytes} more.");
            let hint = "Make it sort, join, group or collect less, or raise the node's limit \
                        (SHOW MEMORY).";
            return Err(memory_used_up(node).detail(detail).hint(hint));
        }
        core.memory_bytes += bytes;
        self.memory.bytes.set(own);
        Ok(())
    }

    fn cost(&self) -> TxnCost {
        self.txn
            .core
            .borrow()
            .protocols
            .cost(self.txn.protocol, self.txn.id)
            .unwrap_or_default()
    }

    fn snapshot(&self) -> Option<Ts> {
        self.held().map(|held| held.at)
    }
}
