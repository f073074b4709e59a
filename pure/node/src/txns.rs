//! Transactions that this shard coordinates: their statements as futures that the machine polls.

mod admission;
mod closing;
mod ended;
mod give_way;
mod one_moment;
pub(crate) mod place;

use crate::core::{Core, clocks_suffice};
use crate::events::Events;
use crate::execute::{Start, execute_raised, start_checked, start_later};
use crate::port::{Given, StatementPort, TxnShared};
use crate::sequence::SequenceDraws;
use crate::show::Shows;
use crate::snapshot::Held;
use crate::used::Used;
use admission::Admission;
pub(crate) use admission::Gate;
use base::{LookupMap, Position, SqlError, SqlState, Time, TxnId};
use catalog::{Database, Execution, ProtocolKind};
use exec::Running;
use functions::overtime;
use give_way::Ended;
use parse::session::Isolation;
use place::Place;
use plan::Plan;
use session::message::{
    BeginRequest, Done, EndCost, FromTxn, RunRequest, StatementNo, ToTxn, TxnHandle,
};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use txn::contract::{ATTEMPTS_UNTIL_URGENT, Submitted};
use txn::touched::Touched;
use txn::{AbortReason, OpError, OpId, OpReply, Outcome, TxnOptions};
use wire::Tag;

/// Connection of the node's own transactions, which no client has asked for.
pub(crate) const INTERNAL: session::ConnId = session::ConnId(u32::MAX);

/// Restarts of one statement at later snapshots: mostly at most two, more if nodes are away.
const RESTARTS_MAX: u32 = 20;

/// Number of the first statement of a transaction.
const FIRST_STATEMENT: StatementNo = 1;

struct Statement {
    port: Rc<StatementPort>,
    /// Plan to execute again at a later snapshot.
    again: Option<(Arc<Plan>, exec::port::Params)>,
    /// `None`: the future has ended, and only its commit is outstanding.
    future: Option<Running>,
    deadline: Option<Time>,
    /// It was cancelled or timed out while another shard had its commit, whose answer is awaited.
    stopped: Option<Box<SqlError>>,
}

/// The autocommit statement whose end a commit is, with its tag; `None`: the client said COMMIT.
type Ending = Option<(StatementNo, Tag)>;

/// Stage of the end of a transaction.
enum Commit {
    NotYet,
    /// Wanted, but operations of statements that were cut off (open portals) are not answered.
    Wanted(Ending),
    /// The protocol commits.
    Running(OpId, Ending),
    /// The protocol ends a reader that has given way; its client has not said COMMIT.
    GivingWay(OpId),
}

struct Txn {
    shared: Rc<TxnShared>,
    priority_ts: base::Ts,
    statements: BTreeMap<StatementNo, Statement>,
    commit: Commit,
    /// The protocol has ended it unasked (closed database, way given); the session is told.
    ended: Option<Ended>,
    /// Why the transaction gives way, or gave way and was committed.
    gave_way: Option<Box<AbortReason>>,
    /// When the client, or an answer, was last heard.
    heard: Time,
    /// The client has gone, while the protocol still ends the transaction.
    gone: bool,
    /// See [`BeginRequest::cost`].
    cost: Option<Box<EndCost>>,
}

impl Txn {
    fn statement(&mut self, number: StatementNo) -> &mut Statement {
        let statement = self.statements.get_mut(&number);
        statement.expect("a statement is known until it is done")
    }
}

/// An open transaction.
fn open(by_handle: &mut BTreeMap<TxnHandle, Txn>, handle: TxnHandle) -> &mut Txn {
    let txn = by_handle.get_mut(&handle);
    txn.expect("statements run and end inside an open transaction")
}

/// All transactions of one shard's coordinator.
pub(crate) struct Txns {
    core: Rc<RefCell<Core>>,
    pub(crate) events: Rc<RefCell<Events>>,
    shows: Rc<RefCell<Shows>>,
    sequences: Rc<RefCell<SequenceDraws>>,
    by_handle: BTreeMap<TxnHandle, Txn>,
    by_id: LookupMap<TxnId, TxnHandle>,
    /// When statements must have ended; entries of ended ones are passed over.
    deadlines: BTreeSet<(Time, TxnHandle, StatementNo)>,
    admission: Admission,
    /// Statements that have news.
    ready: VecDeque<(TxnHandle, StatementNo)>,
}

impl Txns {
    pub(crate) fn new(
        core: Rc<RefCell<Core>>,
        events: Rc<RefCell<Events>>,
        shows: Rc<RefCell<Shows>>,
        sequences: Rc<RefCell<SequenceDraws>>,
    ) -> Txns {
        Txns {
            core,
            events,
            shows,
            sequences,
            by_handle: BTreeMap::new(),
            by_id: LookupMap::new(),
            deadlines: BTreeSet::new(),
            admission: Admission::default(),
            ready: VecDeque::new(),
        }
    }

    fn tell(&self, handle: TxnHandle, message: FromTxn) {
        let mut events = self.events.borrow_mut();
        events.to_sessions.push_back((handle, message));
    }

    /// Tells the session that its transaction was rolled back.
    fn tell_aborted(&self, handle: TxnHandle) {
        let ended = FromTxn::Ended {
            outcome: Outcome::Aborted(AbortReason::Requested),
            wait: Position(0),
            cost: None,
        };
        self.tell(handle, ended);
    }

    /// Number of transactions that are open.
    pub(crate) fn len(&self) -> usize {
        self.by_handle.len()
    }

    pub(crate) fn on_session(&mut self, handle: TxnHandle, message: ToTxn) {
        match message {
            ToTxn::Run(request) => self.run(handle, request),
            ToTxn::Credit(statement, batches) => {
                if let Some(running) = self.statement(handle, statement) {
                    running.port.credit.set(running.port.credit.get() + batches);
                    self.ready.push_back((handle, statement));
                    self.hear(handle);
                }
            }
            ToTxn::CopyData(statement, chunk) => {
                if let Some(running) = self.statement(handle, statement) {
                    running.port.copy.borrow_mut().push_back(chunk);
                    self.ready.push_back((handle, statement));
                }
            }
            ToTxn::Close(statement) => {
                if self.statement(handle, statement).is_some() {
                    let tag = Tag::Count("SELECT", 0);
                    self.end_statement(handle, statement, Ok(tag));
                }
            }
            ToTxn::Cancel(error) => self.cancel(handle, &error),
            ToTxn::Commit => self.commit(handle, None),
            ToTxn::Rollback => self.rollback(handle),
        }
    }

    fn statement(&self, handle: TxnHandle, statement: StatementNo) -> Option<&Statement> {
        self.by_handle
            .get(&handle)?
            .statements
            .get(&statement)
            .filter(|s| s.future.is_some())
    }

    /// The client has sent something.
    fn hear(&mut self, handle: TxnHandle) {
        if let Some(txn) = self.by_handle.get_mut(&handle) {
            let mut core = self.core.borrow_mut();
            core.presence.here = core.now;
            txn.heard = core.now;
        }
    }

    fn run(&mut self, handle: TxnHandle, mut request: RunRequest) {
        let (begins, whole) = (request.begin.is_some(), !request.autocommit);
        if let Some(begin) = request.begin.take() {
            if !self.admits(&request.database) {
                let reason = AbortReason::SchemaChanged(None);
                self.refuse(handle, request.statement, begin.priority_ts, reason);
                return;
            }
            let database = &request.database;
            self.begin(handle, begin, whole, database.protocol, database);
        }
        if self.refuse_ended(handle, request.statement) {
            return;
        }
        self.hear(handle);
        let lockless = one_moment::reads(&self.core.borrow(), begins, &request);
        let gate = self.gate(handle, request.statement, request.admission, lockless);
        let Some(txn) = self.by_handle.get_mut(&handle) else {
            // The transaction has died between two statements; the session will be told.
            return;
        };
        let given = Given {
            statement: request.statement,
            autocommit: request.autocommit,
            lockless,
            catalog: request.catalog,
            database: request.database,
            facts: request.facts,
            credit: request.credit,
        };
        let shards = (&self.events, &self.shows, &self.sequences);
        let port = Rc::new(StatementPort::new(&txn.shared, handle, given, shards));
        let (plan, params) = (request.plan, request.params);
        let work = (begins, plan.clone(), params.clone(), port.clone());
        let started = match gate {
            None => start_checked(work),
            Some(gate) => Start::Running(start_later(gate, work)),
        };
        let (future, result) = match started {
            Start::Over(result) => (None, Some(result)),
            Start::Running(future) => (Some(future), None),
        };
        let timer = |at| (at, handle, request.statement);
        self.deadlines.extend(request.deadline.map(timer));
        let entry = Statement {
            port,
            again: Some((plan, params)),
            future,
            deadline: request.deadline,
            stopped: None,
        };
        txn.statements.insert(request.statement, entry);
        self.count_statement(handle);
        match result {
            Some(result) => self.finish(handle, request.statement, result),
            None => self.poll(handle, request.statement),
        }
    }

    fn begin(
        &mut self,
        handle: TxnHandle,
        begin: BeginRequest,
        whole: bool,
        protocol: ProtocolKind,
        database: &Arc<Database>,
    ) {
        let mut core = self.core.borrow_mut();
        core.clock.merge(begin.seen);
        core.follow_answered();
        let id = core.next_txn(protocol);
        let now = core.now;
        let first = core.clock.tick(now);
        let priority_ts = begin.priority_ts.unwrap_or(first);
        let whole = whole && begin.read_only && begin.isolation != Isolation::ReadCommitted;
        let snapshot = whole.then(|| Held::hold(&mut core, database.id, first));
        let options = TxnOptions {
            isolation: begin.isolation,
            read_only: begin.read_only,
            priority_ts,
            urgent: begin.attempt > ATTEMPTS_UNTIL_URGENT,
            attempt: begin.attempt,
            serial: database.execution == Execution::Serial,
            lock_timeout_us: begin.lock_timeout_us,
            in_doubt_timeout_us: begin.in_doubt_timeout_us,
            measured: begin.measured,
            early_answer: begin.early_answer,
            locks_reads: begin.locks_reads,
        };
        core.begin(protocol, id, options);
        drop(core);
        let shared = Rc::new(TxnShared {
            id,
            protocol,
            database: database.id,
            core: self.core.clone(),
            isolation: begin.isolation,
            read_only: begin.read_only,
            txn_time: begin.txn_time,
            snapshot: Cell::new(snapshot),
            asks_clocks: begin.asks_clocks || clocks_suffice(protocol),
            pending: Cell::new(0),
            answers: RefCell::default(),
            wait: Cell::new(Position(0)),
            outcome: RefCell::default(),
            wrote: Cell::new(false),
            locked_rows: Cell::new(false),
            used: Used::new(database.clone()),
            touched: Touched::default(),
            deferred: RefCell::default(),
            descriptors: RefCell::default(),
            asked_keeper: Cell::new(None),
            undone: Cell::new(false),
        });
        let txn = Txn {
            shared,
            priority_ts,
            statements: BTreeMap::new(),
            commit: Commit::NotYet,
            ended: None,
            gave_way: None,
            heard: now,
            gone: false,
            cost: begin.cost,
        };
        self.by_id.insert(id, handle);
        let old = self.by_handle.insert(handle, txn);
        assert!(old.is_none(), "a transaction begins once");
    }

    /// Whether a transaction of this database may begin: the session may know an older catalog.
    fn admits(&self, database: &Database) -> bool {
        let core = self.core.borrow();
        let known = core.catalog.databases.get(&database.name);
        known.is_none_or(|known| known.switching.is_none() && known.protocol == database.protocol)
    }

    /// Tells a session that its statement, and the transaction with it, must be run again.
    fn refuse(
        &mut self,
        handle: TxnHandle,
        statement: StatementNo,
        priority_ts: Option<base::Ts>,
        reason: AbortReason,
    ) {
        let priority_ts = priority_ts.unwrap_or_else(|| {
            let mut core = self.core.borrow_mut();
            let now = core.now;
            core.clock.tick(now)
        });
        let done = Done {
            result: Err(OpError::Aborted(reason.clone())),
            outcome: Some(Outcome::Aborted(reason)),
            cost: None,
            wait: Position(0),
            priority_ts,
            effects: None,
        };
        self.tell(handle, FromTxn::Done(statement, done));
    }

    /// Runs work of the node itself as a transaction of its own, under SERIALIZABLE, which commits
    /// if the future succeeds. Its events have the returned handle, whose connection is
    /// [`INTERNAL`].
    pub(crate) fn spawn(
        &mut self,
        database: Arc<Database>,
        protocol: ProtocolKind,
        place: Place,
        make: impl FnOnce(Rc<StatementPort>) -> Running,
    ) -> TxnHandle {
        let (catalog, here, number, txn_time) = {
            let mut core = self.core.borrow_mut();
            let number = core.next_op().0;
            (core.catalog.clone(), core.config.shard, number, core.now)
        };
        let handle = TxnHandle {
            session: here,
            conn: INTERNAL,
            number,
        };
        let begin = BeginRequest {
            isolation: Isolation::Serializable,
            read_only: false,
            asks_clocks: false,
            priority_ts: place.priority_ts,
            attempt: place.attempt,
            txn_time,
            lock_timeout_us: place.lock_timeout_us,
            in_doubt_timeout_us: txn::contract::IN_DOUBT_TIMEOUT_US,
            early_answer: true,
            locks_reads: false,
            measured: false,
            seen: base::Ts::ZERO,
            cost: None,
        };
        self.begin(handle, begin, false, protocol, &database);
        let txn = open(&mut self.by_handle, handle);
        let given = Given {
            statement: FIRST_STATEMENT,
            autocommit: true,
            lockless: false,
            catalog,
            database,
            facts: Arc::default(),
            credit: u32::MAX,
        };
        let shards = (&self.events, &self.shows, &self.sequences);
        let port = Rc::new(StatementPort::new(&txn.shared, handle, given, shards));
        let future = Some(make(port.clone()));
        let entry = Statement {
            port,
            again: None,
            future,
            deadline: None,
            stopped: None,
        };
        txn.statements.insert(FIRST_STATEMENT, entry);
        self.ready.push_back((handle, FIRST_STATEMENT));
        handle
    }

    /// Takes the protocol's answer to a pending operation.
    pub(crate) fn on_answer(&mut self, id: TxnId, op: OpId, reply: OpReply) {
        let Some(handle) = self.by_id.get(&id).copied() else {
            return;
        };
        let txn = open(&mut self.by_handle, handle);
        if let Commit::Running(commit, ending) = &mut txn.commit
            && *commit == op
        {
            let ending = ending.take();
            txn.commit = Commit::NotYet;
            self.ended(handle, reply, ending);
            return;
        }
        if matches!(txn.commit, Commit::GivingWay(commit) if commit == op) {
            self.gave_way(handle, reply);
            return;
        }
        txn.heard = self.core.borrow().now;
        txn.shared.pending.set(txn.shared.pending.get() - 1);
        if let Commit::Wanted(ending) = &mut txn.commit {
            if txn.shared.pending.get() == 0 {
                let ending = ending.take();
                txn.commit = Commit::NotYet;
                self.commit(handle, ending);
            }
            return;
        }
        txn.shared.answers.borrow_mut().push_back((op, reply));
        // The answer does not name its statement; there is nearly always one. It hears once of
        // answers that have come together.
        for statement in txn.statements.keys() {
            let news = (handle, *statement);
            if self.ready.back() != Some(&news) {
                self.ready.push_back(news);
            }
        }
    }

    /// Whether a statement has news.
    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Polls statements with news. Returns whether there were any.
    pub(crate) fn poll_ready(&mut self) -> bool {
        let mut any = false;
        while let Some((handle, statement)) = self.ready.pop_front() {
            any = true;
            if self.statement(handle, statement).is_some() {
                self.poll(handle, statement);
            }
        }
        any
    }

    /// Runs the statement again that gave way first: one in a step, so that a message of a client
    /// waits for one turn of one statement at most.
    pub(crate) fn resume_yielded(&mut self) {
        let yielded = self.events.borrow_mut().yielded.pop_front();
        self.ready.extend(yielded);
    }

    /// Frees a slice of the memory of ended statements.
    pub(crate) fn free_waste(&mut self) {
        let waste = self.events.borrow_mut().waste.pop();
        if let Some(mut waste) = waste {
            self.core.borrow_mut().counters.units += txn::bulk::SLICE_UNITS;
            if !waste(txn::bulk::SLICE_UNITS as usize) {
                self.events.borrow_mut().waste.push(waste);
            }
        }
    }

    /// Wakes every statement: news of SHOW or of sequences are rare and cheap to check.
    pub(crate) fn wake_all(&mut self) {
        for (handle, txn) in &self.by_handle {
            self.ready
                .extend(txn.statements.keys().map(|statement| (*handle, *statement)));
        }
    }

    fn poll(&mut self, handle: TxnHandle, statement: StatementNo) {
        let txn = open(&mut self.by_handle, handle);
        let running = txn.statement(statement);
        let Some(future) = running.future.as_mut() else {
            return;
        };
        let now = self.core.borrow().now;
        let left_us = running.deadline.map(|at| at.since(now));
        let mut context = Context::from_waker(Waker::noop());
        let step = || future.as_mut().poll(&mut context);
        if let Poll::Ready(result) = overtime::within(running.port.facts.pid, left_us, step) {
            self.finish(handle, statement, result);
        }
    }

    /// A statement's future has ended.
    fn finish(&mut self, handle: TxnHandle, statement: StatementNo, result: Result<Tag, OpError>) {
        let result = match result {
            Err(OpError::Raise(at)) if self.start_again(handle, statement, at) => return,
            Err(OpError::Raise(at)) => Err(self.missed(handle, at)),
            ended => ended,
        };
        self.end_statement(handle, statement, result);
    }

    /// Executes a statement again at a snapshot at or above `at`. Returns false if something of it,
    /// or of its transaction's snapshot, was seen already.
    fn start_again(&mut self, handle: TxnHandle, statement: StatementNo, at: base::Ts) -> bool {
        let txn = open(&mut self.by_handle, handle);
        let whole = txn.shared.snapshot.get().is_some();
        let running = txn.statement(statement);
        let port = running.port.clone();
        let own = !whole && port.held().is_some();
        let first = statement == FIRST_STATEMENT || own;
        let fresh = first && !port.spent.get() && port.restarts.get() < RESTARTS_MAX;
        let Some((plan, params)) = running.again.clone().filter(|_| fresh) else {
            return false;
        };
        running.future = Some(execute_raised(plan, params, port, at));
        self.core.borrow_mut().counters.statement_restarts += 1;
        self.ready.push_back((handle, statement));
        true
    }

    fn end_statement(
        &mut self,
        handle: TxnHandle,
        statement: StatementNo,
        result: Result<Tag, OpError>,
    ) {
        let txn = open(&mut self.by_handle, handle);
        let running = txn.statement(statement);
        running.future = None;
        let autocommit = running.port.autocommit;
        let result = match (result, running.stopped.take()) {
            (Err(OpError::Aborted(_)), Some(error)) => Err(OpError::Sql(*error)),
            (result, _) => result,
        };
        let rode = txn.shared.outcome.borrow_mut().take();
        if let Some(Outcome::Committed { .. }) = &rode {
            txn.shared.touched.note_committed();
        }
        let result = match &rode {
            // The statement was cut off with an unknown outcome.
            Some(Outcome::Unknown) => Ok(Tag::Word("")),
            Some(Outcome::Committed { .. } | Outcome::Aborted(_)) | None => result,
        };
        match (result, rode) {
            (result, Some(outcome)) => {
                self.done(handle, statement, result, Some(outcome), Position(0));
            }
            (Ok(tag), None) if autocommit => self.commit(handle, Some((statement, tag))),
            (Err(failure), None) if autocommit || matches!(failure, OpError::Aborted(_)) => {
                let reason = match &failure {
                    OpError::Aborted(reason) => reason.clone(),
                    OpError::Sql(_) | OpError::Raise(_) => AbortReason::Requested,
                };
                let ended = self.abort(handle);
                let (result, outcome) = match ended.outcome {
                    // Its commit rode on an operation that was cut off.
                    Some(Outcome::Unknown | Outcome::Committed { .. }) => {
                        (Ok(Tag::Word("")), Outcome::Unknown)
                    }
                    Some(Outcome::Aborted(_)) | None => (Err(failure), Outcome::Aborted(reason)),
                };
                self.done(handle, statement, result, Some(outcome), ended.wait);
            }
            (result, None) => self.done(handle, statement, result, None, Position(0)),
        }
    }

    /// Tells the session how a statement ended. With an `outcome` the transaction is forgotten;
    /// `wait`: position of its commit.
    fn done(
        &mut self,
        handle: TxnHandle,
        statement: StatementNo,
        result: Result<Tag, OpError>,
        outcome: Option<Outcome>,
        wait: Position,
    ) {
        let txn = open(&mut self.by_handle, handle);
        let ended = txn
            .statements
            .remove(&statement)
            .expect("a statement is done once");
        txn.heard = self.core.borrow().now;
        let (idle, priority_ts) = (txn.statements.is_empty(), txn.priority_ts);
        if let Some(at) = ended.deadline {
            self.deadlines.remove(&(at, handle, statement));
        }
        let wait_of_reads = txn.shared.wait.get();
        let mut effects = ended.port.effects.take();
        if let (Err(_), Some(effects)) = (&result, &mut effects) {
            effects.settings.clear();
            effects.notifications.clear();
        }
        let ends = outcome.is_some();
        (txn.shared.undone).set(matches!(result, Err(OpError::Aborted(_))));
        let mut done = Done {
            result,
            outcome,
            cost: None,
            wait: wait.max(wait_of_reads),
            priority_ts,
            effects,
        };
        drop(ended);
        if idle {
            self.stop_work(handle, priority_ts);
        }
        if ends {
            done.cost = self.forget(handle);
        }
        self.tell(handle, FromTxn::Done(statement, done));
    }

    fn commit(&mut self, handle: TxnHandle, ending: Ending) {
        if self.commit_ended(handle) {
            return;
        }
        self.start_work(handle);
        let Some(txn) = self.by_handle.get_mut(&handle) else {
            assert!(
                ending.is_none(),
                "an autocommit statement ends inside its transaction"
            );
            return self.tell_aborted(handle);
        };
        // Open portals end with their transaction.
        let keep = ending.as_ref().map(|(statement, _)| *statement);
        txn.statements.retain(|number, _| Some(*number) == keep);
        if txn.shared.pending.get() > 0 {
            txn.commit = Commit::Wanted(ending);
            return;
        }
        let mut core = self.core.borrow_mut();
        let id = core.next_op();
        let submitted = core.commit(txn.shared.protocol, txn.shared.id, id);
        drop(core);
        match submitted {
            Submitted::Ready(reply) => self.ended(handle, reply, ending),
            Submitted::Pending => txn.commit = Commit::Running(id, ending),
        }
    }

    /// The commit has an outcome.
    fn ended(&mut self, handle: TxnHandle, reply: OpReply, ending: Ending) {
        let outcome = reply.outcome.expect("a commit ends with an outcome");
        if let (Outcome::Committed { .. }, Some(txn)) = (&outcome, self.by_handle.get(&handle)) {
            txn.shared.touched.note_committed();
        }
        if let (Outcome::Aborted(_), Some(txn)) = (&outcome, self.by_handle.get(&handle)) {
            txn.shared.undone.set(true);
        }
        let Some((statement, tag)) = ending else {
            let wait_of_reads = self.by_handle[&handle].shared.wait.get();
            let ended = FromTxn::Ended {
                outcome,
                wait: reply.wait.max(wait_of_reads),
                cost: self.forget(handle),
            };
            self.tell(handle, ended);
            return;
        };
        let result = match &outcome {
            Outcome::Committed { .. } | Outcome::Unknown => Ok(tag),
            Outcome::Aborted(reason) => Err(OpError::Aborted(reason.clone())),
        };
        self.done(handle, statement, result, Some(outcome), reply.wait);
    }

    fn rollback(&mut self, handle: TxnHandle) {
        let ended = self.leave_ended(handle).is_some();
        match self.by_handle.get(&handle) {
            Some(_) if ended => {}
            // The client has gone while its commit is under way, which goes on.
            Some(txn) if !matches!(txn.commit, Commit::NotYet) => return,
            Some(_) => {
                self.abort(handle);
                self.forget(handle);
            }
            None => {}
        }
        self.tell_aborted(handle);
    }

    /// Rolls a transaction back. Returns the position before which nobody may be told.
    fn abort(&mut self, handle: TxnHandle) -> OpReply {
        let txn = open(&mut self.by_handle, handle);
        for statement in txn.statements.values_mut() {
            statement.future = None;
        }
        let shared = &txn.shared;
        self.core.borrow_mut().abort(shared.protocol, shared.id)
    }

    /// Forgets a transaction that has ended. Returns what it has cost, if its session wants that
    /// and its protocol knows it.
    fn forget(&mut self, handle: TxnHandle) -> Option<Box<EndCost>> {
        let txn = self
            .by_handle
            .remove(&handle)
            .expect("only known transactions are forgotten");
        drop(txn.statements);
        self.stop_work(handle, txn.priority_ts);
        let mut core = self.core.borrow_mut();
        if let Some(held) = txn.shared.snapshot.get() {
            core.release_snapshot(txn.shared.database, held.at);
        }
        if handle.conn != INTERNAL {
            core.note_end(&txn.shared, txn.priority_ts);
        }
        core.note_answered();
        self.by_id.remove(&txn.shared.id);
        ended::tell_keeper(&self.shows, &txn.shared);
        let cost = core.forget(txn.shared.protocol, txn.shared.id)?;
        ended::write_cost(txn.cost, &txn.shared, cost)
    }

    /// Ends all running statements of a transaction with `error`.
    fn cancel(&mut self, handle: TxnHandle, error: &SqlError) {
        let Some(txn) = self.by_handle.get(&handle) else {
            return;
        };
        let running = txn.statements.iter().filter(|(_, s)| s.future.is_some());
        let running: Vec<StatementNo> = running.map(|(number, _)| *number).collect();
        for statement in running {
            self.stop_statement(handle, statement, error.clone());
        }
    }

    /// Ends a running statement with an error. If its commit is in the hands of another shard, that
    /// one is told to give up, and the statement ends as it answers.
    fn stop_statement(&mut self, handle: TxnHandle, statement: StatementNo, error: SqlError) {
        if self.statement(handle, statement).is_none() {
            return;
        }
        let txn = open(&mut self.by_handle, handle);
        let shared = &txn.shared;
        let called_off = self.core.borrow_mut().call_off(shared.protocol, shared.id);
        if called_off {
            txn.statement(statement).stopped = Some(Box::new(error));
        } else {
            self.end_statement(handle, statement, Err(OpError::Sql(error)));
        }
    }

    /// When the first statement deadline comes.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let timeout = self.deadlines.first().map(|(at, _, _)| *at);
        let events = self.events.borrow();
        let wake = events.sleeping.first().map(|(at, _, _)| *at);
        timeout.into_iter().chain(wake).min()
    }

    /// Wakes statements that have slept long enough, and ends those whose deadline has come.
    pub(crate) fn on_tick(&mut self, now: Time) {
        let woken = self.events.borrow_mut().woken(now);
        self.ready.extend(woken);
        while let Some((at, handle, statement)) = self.deadlines.first().copied() {
            if at > now {
                return;
            }
            self.deadlines.pop_first();
            let text = "canceling statement due to statement timeout";
            let error = SqlError::new(SqlState::QUERY_CANCELED, text);
            self.stop_statement(handle, statement, error);
        }
    }
}
