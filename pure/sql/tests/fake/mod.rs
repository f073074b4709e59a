//! A database in memory for tests: several shards of plain maps, one session, rollback by copy.
//! Every other operation is answered late, so that statements are polled again.
#![allow(unreachable_pub, reason = "test modules share it")]
#![allow(dead_code, reason = "each test file uses a part of it")]

use base::row::RowRef;
use base::{Datum, IndexId, RowBatch, ShardId, Slot, SqlError, Time, Ts, Type};
use catalog::{Catalog, Command, Database, Execution, Placement, ProtocolKind, Sequence};
use sql::plan::{DdlPlan, Fill, Plan, PlanKind, SessionCommand};
use sql::port::{ExecError, OpAnswer, Params, Port, Show, Started};
use sql::{Fast, PlanCx, Tag};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use txn::{LockMode, Modified, Op, OpId, OpResult, Read, ScanOp, Slots, TxnCost, Write};

type Rows = BTreeMap<(IndexId, Slot, Vec<u8>), Vec<u8>>;

/// What a statement gave.
#[derive(Debug)]
pub struct Outcome {
    pub tag: String,
    pub columns: Vec<(String, Type)>,
    pub rows: Vec<Vec<String>>,
    pub copied: String,
}

/// One node with some shards and one session.
pub struct Cluster {
    pub state: Rc<State>,
    catalog: RefCell<Arc<Catalog>>,
    database: String,
    /// The rows before the transaction block.
    before: RefCell<Option<Vec<Rows>>>,
    failed: Cell<bool>,
    prepared: RefCell<BTreeMap<String, (Vec<Type>, String)>>,
}

/// What outlives statements.
pub struct State {
    pub shards: RefCell<Vec<Rows>>,
    pub sequences: RefCell<BTreeMap<IndexId, i64>>,
    pub drawn: RefCell<BTreeMap<IndexId, i64>>,
    pub unique: Cell<u64>,
    pub ops: Cell<u64>,
    pub scans: Cell<u64>,
    /// Rows that scans have looked at.
    pub rows_read: Cell<u64>,
    pub lasts: Cell<u64>,
    pub peak: Cell<i64>,
    /// The setting TimeZone, the only one that is kept.
    pub zone: RefCell<Option<String>>,
}

impl State {
    fn setting(&self, name: &str) -> Option<String> {
        match &*self.zone.borrow() {
            Some(zone) if name.eq_ignore_ascii_case("timezone") => Some(zone.clone()),
            _ => setting(name),
        }
    }
}

/// The port of one statement.
pub struct FakePort {
    catalog: Arc<Catalog>,
    database: Arc<Database>,
    state: Rc<State>,
    pending: RefCell<BTreeMap<u64, (bool, OpAnswer)>>,
    next_op: Cell<u64>,
    emitted: RefCell<Vec<RowBatch>>,
    copied: RefCell<Vec<u8>>,
    input: RefCell<Vec<Vec<u8>>>,
    charged: Cell<i64>,
    clock: Cell<u64>,
}

pub const SHARDS: u16 = 3;

/// Bytes that a statement may hold.
const MEMORY_BYTES_MAX: i64 = 32 << 20;

impl Cluster {
    pub fn new() -> Cluster {
        let mut catalog = Catalog::default();
        for command in [
            Command::Bootstrap(Placement::new(1, SHARDS)),
            Command::CreateDatabase {
                name: "test".into(),
                protocol: ProtocolKind::TwoPhase,
                execution: Execution::Interleaved,
                if_not_exists: false,
            },
        ] {
            catalog = catalog.apply(&command).expect("a new catalog").0;
        }
        let shards = (0..SHARDS).map(|_| Rows::new()).collect();
        Cluster {
            state: Rc::new(State {
                shards: RefCell::new(shards),
                sequences: RefCell::default(),
                drawn: RefCell::default(),
                unique: Cell::new(1),
                ops: Cell::new(0),
                scans: Cell::new(0),
                rows_read: Cell::new(0),
                lasts: Cell::new(0),
                peak: Cell::new(0),
                zone: RefCell::default(),
            }),
            catalog: RefCell::new(Arc::new(catalog)),
            database: "test".into(),
            before: RefCell::default(),
            failed: Cell::new(false),
            prepared: RefCell::default(),
        }
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.borrow().clone()
    }

    fn port(&self, input: &str) -> Rc<FakePort> {
        let catalog = self.catalog();
        // Chunks are cut in the middle of lines.
        let input = input
            .as_bytes()
            .chunks(7)
            .map(<[u8]>::to_vec)
            .rev()
            .collect();
        Rc::new(FakePort {
            database: catalog.databases[&self.database].clone(),
            catalog,
            state: self.state.clone(),
            pending: RefCell::default(),
            next_op: Cell::new(0),
            emitted: RefCell::default(),
            copied: RefCell::default(),
            input: RefCell::new(input),
            charged: Cell::new(0),
            clock: Cell::new(1_750_000_000_000_000),
        })
    }

    pub fn plan(&self, text: &str, types: &[Type]) -> Result<Arc<Plan>, SqlError> {
        let statements = sql::parse(text)?;
        let [statement] = statements.as_slice() else {
            panic!("one statement: {text}")
        };
        let catalog = self.catalog();
        let zone = self.state.setting("timezone");
        let cx = PlanCx {
            catalog: &catalog,
            database: &catalog.databases[&self.database],
            param_types: types,
            zone: sql::expr::zoned::of_setting(zone.as_deref()),
            rows: &|_| None,
        };
        sql::plan(statement, &cx)
    }

    /// Runs one statement as a simple query.
    pub fn run(&self, text: &str) -> Result<Outcome, SqlError> {
        self.run_with(text, &[], "")
    }

    /// Runs one statement with parameters and COPY input.
    pub fn run_with(&self, text: &str, params: &[Datum], input: &str) -> Result<Outcome, SqlError> {
        let result = self.try_run(text, params, input);
        if result.is_err() && self.before.borrow().is_some() {
            self.failed.set(true);
        }
        result
    }

    fn try_run(&self, text: &str, params: &[Datum], input: &str) -> Result<Outcome, SqlError> {
        let plan = self.plan(text, &[])?;
        if self.failed.get()
            && !matches!(
                plan.kind,
                PlanKind::Session(SessionCommand::Rollback { .. } | SessionCommand::Commit { .. })
            )
        {
            return Err(SqlError::new(
                base::SqlState::IN_FAILED_TXN,
                "transaction is aborted",
            ));
        }
        match &plan.kind {
            PlanKind::Run(_) => self.execute(&plan, params, input),
            PlanKind::Ddl(ddl) => {
                self.change(ddl)?;
                Ok(tagged(ddl.tag))
            }
            PlanKind::Nothing(tag) => Ok(tagged(tag)),
            PlanKind::Session(command) => self.session(command),
        }
    }

    fn session(&self, command: &SessionCommand) -> Result<Outcome, SqlError> {
        Ok(match command {
            SessionCommand::Begin(_) | SessionCommand::Start(_) => {
                *self.before.borrow_mut() = Some(self.state.shards.borrow().clone());
                tagged("BEGIN")
            }
            SessionCommand::Commit { .. } if !self.failed.get() => {
                self.before.borrow_mut().take();
                tagged("COMMIT")
            }
            SessionCommand::Commit { .. } | SessionCommand::Rollback { .. } => {
                if let Some(before) = self.before.borrow_mut().take() {
                    *self.state.shards.borrow_mut() = before;
                }
                self.failed.set(false);
                tagged("ROLLBACK")
            }
            SessionCommand::Prepare { name, types, text } => {
                self.prepared
                    .borrow_mut()
                    .insert(name.clone(), (types.clone(), text.clone()));
                tagged("PREPARE")
            }
            SessionCommand::Execute { name, args } => {
                let Some((types, text)) = self.prepared.borrow().get(name).cloned() else {
                    let message = format!("prepared statement \"{name}\" does not exist");
                    return Err(SqlError::new(
                        base::SqlState::INVALID_STATEMENT_NAME,
                        message,
                    ));
                };
                let plan = self.plan(&text, &types)?;
                let zone = self.state.setting("timezone").unwrap_or_default();
                let zone = base::zone::Zone::named(&zone).expect("a setting that was checked");
                let read = |(arg, ty): (&Datum, &Type)| match arg {
                    Datum::Text(text) if !ty.is_text() => base::text::parse_in(&zone, *ty, text),
                    other => Ok(other.clone()),
                };
                let args = args.iter().zip(&plan.params).map(read);
                self.execute(&plan, &args.collect::<Result<Vec<_>, _>>()?, "")?
            }
            SessionCommand::ShowSetting(Some(name)) => Outcome {
                rows: vec![vec![self.state.setting(name).unwrap_or_default()]],
                ..tagged("SHOW")
            },
            SessionCommand::Set { name, value, .. } if name == "timezone" => {
                let value = value.as_deref();
                let zone = value.map(|value| sql::settings::validate(name, value));
                *self.state.zone.borrow_mut() = zone.transpose()?;
                tagged("SET")
            }
            _ => tagged("SET"),
        })
    }

    /// Runs a plan; outside of a block a failed one leaves nothing behind.
    pub fn execute(
        &self,
        plan: &Arc<Plan>,
        params: &[Datum],
        input: &str,
    ) -> Result<Outcome, SqlError> {
        let before = self.state.shards.borrow().clone();
        let port = self.port(input);
        let result = drive(plan, params, &port);
        assert_eq!(port.charged.get(), 0, "all memory was given back");
        match result {
            Ok((tag, extra)) => {
                let columns: Vec<(String, Type)> = plan
                    .columns
                    .iter()
                    .map(|c| (c.name.clone(), c.ty))
                    .collect();
                let mut rows = Vec::new();
                for batch in port.emitted.borrow().iter().chain(&extra) {
                    assert_eq!(
                        batch.width as usize,
                        columns.len(),
                        "rows have the plan's width"
                    );
                    let mut batch = batch.clone();
                    self.put_names(&plan.columns, &mut batch);
                    for row in batch.iter() {
                        rows.push(shown(&columns, row));
                    }
                }
                let copied = String::from_utf8(port.copied.borrow().clone()).expect("text");
                Ok(Outcome {
                    tag: tag.to_string(),
                    columns,
                    rows,
                    copied,
                })
            }
            Err(error) => {
                if self.before.borrow().is_none() {
                    *self.state.shards.borrow_mut() = before;
                }
                Err(error)
            }
        }
    }

    /// Rows as a client reads them.
    fn put_names(&self, columns: &[sql::plan::OutColumn], batch: &mut RowBatch) {
        let catalog = self.catalog();
        let database = catalog.databases.values().next().expect("there is one");
        let cx = sql::pg_catalog::CatalogCx {
            catalog: &catalog,
            database,
            user: "trellis",
            txn_time: Time(0),
            setting: &setting,
            size_bytes: &|_| None,
            sessions: None,
        };
        let zone = self.state.setting("timezone").unwrap_or_default();
        if let Some(zone) = base::zone::Zone::named(&zone).filter(|_| zone != "UTC") {
            sql::output::put_zone(&zone, columns, &|_| true, batch);
        }
        sql::output::put_names(&cx, columns, &|_| true, batch);
    }

    fn change(&self, ddl: &DdlPlan) -> Result<(), SqlError> {
        self.apply_all(&ddl.before)?;
        let mut after = ddl.after.clone();
        if let Err(error) = self.fill(ddl, &mut after) {
            self.apply_all(&ddl.undo)?;
            return Err(error);
        }
        self.apply_all(&after)
    }

    fn apply_all(&self, commands: &[Command]) -> Result<(), SqlError> {
        for command in commands {
            let (next, applied) = self.catalog().apply(command)?;
            *self.catalog.borrow_mut() = Arc::new(next);
            for shard in self.state.shards.borrow_mut().iter_mut() {
                shard.retain(|(index, _, _), _| !applied.dropped.contains(index));
            }
        }
        Ok(())
    }

    fn fill(&self, ddl: &DdlPlan, after: &mut [Command]) -> Result<(), SqlError> {
        let sql_error = |error| match error {
            ExecError::Sql(error) => error,
            ExecError::Aborted(_) | ExecError::Raised(_) => panic!("rolled back: {error:?}"),
        };
        let Some(fill) = &ddl.fill else { return Ok(()) };
        match fill {
            Fill::Index { table, index } => {
                let mut position = None;
                loop {
                    let port = self.port("");
                    let work = sql::fill::index(port.clone(), table, index, position);
                    position = block_on(work).map_err(sql_error)?;
                    if position.is_none() {
                        return Ok(());
                    }
                }
            }
            Fill::PrimaryKey { table } => {
                let (next, applied) = self.catalog().apply(&Command::Reserve)?;
                *self.catalog.borrow_mut() = Arc::new(next);
                let Some(Command::SetPrimaryKey {
                    primary, columns, ..
                }) = after.first_mut()
                else {
                    panic!("the key is set first");
                };
                primary.id = IndexId(applied.reserved);
                let mut position = None;
                loop {
                    let port = self.port("");
                    let work =
                        sql::fill::primary_key(port.clone(), table, primary, columns, position);
                    position = block_on(work).map_err(sql_error)?;
                    if position.is_none() {
                        return Ok(());
                    }
                }
            }
            Fill::Validate { table, constraint } => {
                let mut position = None;
                loop {
                    let port = self.port("");
                    let work = sql::fill::validate(port.clone(), table, constraint, position);
                    position = block_on(work).map_err(sql_error)?;
                    if position.is_none() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

fn tagged(tag: &str) -> Outcome {
    Outcome {
        tag: tag.into(),
        columns: Vec::new(),
        rows: Vec::new(),
        copied: String::new(),
    }
}

fn setting(name: &str) -> Option<String> {
    sql::settings::lookup(name).map(|setting| setting.default.to_owned())
}

fn shown(columns: &[(String, Type)], row: &[Datum]) -> Vec<String> {
    row.iter()
        .zip(columns)
        .map(|(datum, (_, ty))| {
            if datum.is_null() {
                "NULL".into()
            } else {
                base::text::to_string(*ty, datum)
            }
        })
        .collect()
}

/// Polls a future to its end.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..50_000_000 {
        if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
            return value;
        }
    }
    panic!("a statement does not end")
}

type Done = (Tag, Option<RowBatch>);

fn drive(plan: &Arc<Plan>, params: &[Datum], port: &Rc<FakePort>) -> Result<Done, SqlError> {
    let shared: Params = params.into();
    let result = match sql::execute_fast(plan, params, &**port) {
        Some(Ok(Fast::Done(batch, completed))) => Ok((batch, completed)),
        Some(Ok(Fast::Pending(wait))) => block_on(wait.wait(plan.clone(), shared, port.clone())),
        Some(Err(error)) => Err(error),
        None => block_on(sql::execute(plan.clone(), shared, port.clone()))
            .map(|completed| (None, completed)),
    };
    match result {
        Ok((batch, completed)) => Ok((completed.tag, batch)),
        Err(ExecError::Sql(error)) => Err(error),
        Err(error) => panic!("rolled back: {error:?}"),
    }
}

impl FakePort {
    fn answer(&self, to: ShardId, op: Op) -> OpAnswer {
        let mut shards = self.state.shards.borrow_mut();
        let rows = &mut shards[to.index() as usize];
        let keyed = |key: &base::Key| (key.index, key.slot, key.bytes.clone());
        let done = |result| Ok(result);
        match op {
            Op::Get { key, program, .. } => {
                let program = self.travelled(&program);
                let mut batch = RowBatch::new(program.width());
                if let Some(row) = rows.get(&keyed(&key)) {
                    program.point(row, &mut batch)?;
                }
                done(OpResult::Rows {
                    batch,
                    resume: None,
                })
            }
            Op::Modify { key, program } => {
                let program = self.travelled(&program);
                let mut returning = RowBatch::new(program.width());
                let Some(row) = rows.get(&keyed(&key)).cloned() else {
                    return done(OpResult::Modified {
                        found: false,
                        written: false,
                        returning,
                    });
                };
                let written = match program.modify(&row, &mut returning)? {
                    Modified::Skipped => false,
                    Modified::Put(new) => {
                        rows.insert(keyed(&key), new);
                        true
                    }
                    Modified::Delete => {
                        rows.remove(&keyed(&key));
                        true
                    }
                };
                done(OpResult::Modified {
                    found: true,
                    written,
                    returning,
                })
            }
            Op::Insert { key, row } => {
                assert!(RowRef::new(&row).validate().is_ok(), "a well-formed row");
                if rows.contains_key(&keyed(&key)) {
                    return done(OpResult::Exists);
                }
                rows.insert(keyed(&key), row.into());
                done(OpResult::Done)
            }
            Op::InsertMany(new) => {
                let mut present = Vec::new();
                for (place, row) in (0..).zip(new.iter()) {
                    assert!(RowRef::new(row.row).validate().is_ok(), "a well-formed row");
                    let key = keyed(&base::Key::new(new.index(), row.slot, row.key.to_vec()));
                    match rows.entry(key) {
                        Entry::Occupied(_) => present.push(place),
                        Entry::Vacant(entry) => drop(entry.insert(row.row.to_vec())),
                    }
                }
                done(match present.is_empty() {
                    true => OpResult::Done,
                    false => OpResult::SomeExist(present),
                })
            }
            Op::Formula { key, formula } => {
                let returning = RowBatch::new(0);
                let Some(row) = rows.get(&keyed(&key)) else {
                    return done(OpResult::Modified {
                        found: false,
                        written: false,
                        returning,
                    });
                };
                let mut new = Vec::new();
                formula.fold(row, &mut new)?;
                rows.insert(keyed(&key), new);
                done(OpResult::Modified {
                    found: true,
                    written: true,
                    returning,
                })
            }
            Op::Write { key, write } => {
                match write {
                    Write::Put(row) => {
                        rows.insert(keyed(&key), row);
                    }
                    Write::Delete => {
                        let row = rows.remove(&keyed(&key));
                        assert!(row.is_some(), "a blind delete of an absent row: {key:?}");
                    }
                    Write::Insert(_) | Write::Formula(_) => panic!("not sent as a blind write"),
                }
                done(OpResult::Done)
            }
            Op::Scan(scan) => self.scan(rows, &scan),
            Op::Clock(snapshot) => done(OpResult::Clock(snapshot.at)),
        }
    }

    /// A program after its trip to another node.
    fn travelled(&self, program: &txn::Program) -> Arc<dyn txn::RowProgram> {
        let live = program.live(sql::decode_program).expect("a program");
        if !self.next_op.get().is_multiple_of(3) {
            return live;
        }
        let mut bytes = Vec::new();
        live.encode(&mut bytes);
        sql::decode_program(&bytes).expect("its own encoding")
    }

    fn scan(&self, rows: &Rows, scan: &ScanOp) -> OpAnswer {
        self.state.scans.set(self.state.scans.get() + 1);
        let program = self.travelled(&scan.program);
        let fits = |slot: Slot, key: &[u8]| {
            let wanted = match scan.slots {
                Slots::All => true,
                Slots::One(one) => slot == one,
            };
            wanted && scan.range.contains(key)
        };
        let mut found: Vec<_> = rows
            .iter()
            .filter(|((i, s, k), _)| *i == scan.index && fits(*s, k))
            .collect();
        if scan.reverse {
            found.reverse();
        }
        if let Some((slot, key)) = &scan.after {
            let place = found
                .iter()
                .position(|((_, s, k), _)| s == slot && k == key);
            found.drain(..=place.expect("the row to go on from is there"));
        }
        let mut batch = RowBatch::new(program.width());
        if let Some(mut task) = program.task() {
            let mut left = None;
            for ((_, slot, key), row) in found {
                // Slots are left early as protocols do it.
                if left == Some(*slot) {
                    continue;
                }
                task.row(key, row)?;
                self.state.rows_read.set(self.state.rows_read.get() + 1);
                let is_done = task.first_rows().is_some() && !task.wants(key);
                left = is_done.then_some(*slot);
            }
            task.finish(&mut batch)?;
            return Ok(OpResult::Rows {
                batch,
                resume: None,
            });
        }
        let count = found.len();
        for (i, ((_, slot, key), row)) in found.into_iter().enumerate() {
            program.point(row, &mut batch)?;
            self.state.rows_read.set(self.state.rows_read.get() + 1);
            let full = u64::from(batch.rows) >= scan.row_limit;
            // Small batches, so that scans go on.
            if full || batch.rows >= scan.batch_rows.min(3) {
                let resume = (!full && i + 1 < count).then(|| (*slot, key.clone()));
                return Ok(OpResult::Rows { batch, resume });
            }
        }
        Ok(OpResult::Rows {
            batch,
            resume: None,
        })
    }
}

impl Port for FakePort {
    fn submit(&self, to: ShardId, planned: u64, op: Op, last: bool) -> Started {
        assert_eq!(
            planned, self.catalog.version,
            "operations carry the plan's version"
        );
        self.state.ops.set(self.state.ops.get() + 1);
        if last {
            self.state.lasts.set(self.state.lasts.get() + 1);
        }
        let id = self.next_op.get();
        self.next_op.set(id + 1);
        let answer = self.answer(to, op);
        if id.is_multiple_of(2) {
            return Started::Ready(Some(answer));
        }
        self.pending.borrow_mut().insert(id, (false, answer));
        Started::Pending(OpId(id))
    }
    fn poll_op(&self, id: OpId) -> Poll<OpAnswer> {
        let mut pending = self.pending.borrow_mut();
        let (seen, _) = pending.get_mut(&id.0).expect("a pending operation");
        if !*seen {
            *seen = true;
            return Poll::Pending;
        }
        Poll::Ready(pending.remove(&id.0).expect("seen above").1)
    }
    fn home(&self, slot: Slot) -> ShardId {
        self.catalog.placement.home(slot)
    }
    fn shards(&self) -> Arc<[ShardId]> {
        self.catalog.placement.shards().into()
    }
    fn here(&self) -> ShardId {
        self.catalog.placement.shards()[1]
    }
    fn read(&self) -> Read {
        Read::Lock(LockMode::Shared)
    }
    fn read_locking(&self, mode: LockMode) -> Read {
        Read::Lock(mode)
    }
    fn read_only(&self) -> bool {
        false
    }
    fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }
    fn database(&self) -> &Arc<Database> {
        &self.database
    }
    fn txn_time(&self) -> Time {
        Time(1_750_000_000_000_000)
    }
    fn now(&self) -> Time {
        self.clock.set(self.clock.get() + 10);
        Time(self.clock.get())
    }
    fn stopwatch_ns(&self) -> u64 {
        self.clock.set(self.clock.get() + 10);
        self.clock.get() * 1000
    }

    fn unique(&self) -> u64 {
        self.state.unique.set(self.state.unique.get() + 1);
        self.state.unique.get()
    }
    fn random(&self) -> u64 {
        self.unique().wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
    fn set_config(&self, name: &str, value: Option<&str>, _: bool) -> Result<String, SqlError> {
        sql::settings::validate(name, value.unwrap_or_default())
    }
    fn setting(&self, name: &str) -> Option<String> {
        self.state.setting(name)
    }
    fn session_user(&self) -> String {
        "alice".into()
    }
    fn session_pid(&self) -> i32 {
        7
    }
    fn poll_emit(&self, batch: &mut Option<RowBatch>) -> Poll<()> {
        self.emitted.borrow_mut().extend(batch.take());
        Poll::Ready(())
    }
    fn poll_emit_copy(&self, bytes: &mut Option<Vec<u8>>) -> Poll<()> {
        let bytes = bytes.take().unwrap_or_default();
        let mut rest = &bytes[..];
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let (row, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
            self.copied.borrow_mut().extend_from_slice(row);
            rest = behind;
        }
        Poll::Ready(())
    }
    fn poll_copy_data(&self) -> Poll<Result<Option<Vec<u8>>, SqlError>> {
        Poll::Ready(Ok(self.input.borrow_mut().pop()))
    }
    fn poll_nextval(
        &self,
        sequence: &Sequence,
        ticket: &mut Option<u64>,
    ) -> Poll<Result<i64, ExecError>> {
        if ticket.is_none() {
            *ticket = Some(1);
            return Poll::Pending;
        }
        let mut sequences = self.state.sequences.borrow_mut();
        let next = sequences.entry(sequence.id).or_insert(sequence.start);
        let value = *next;
        *next += sequence.increment;
        self.state.drawn.borrow_mut().insert(sequence.id, value);
        Poll::Ready(Ok(value))
    }
    fn currval(&self, sequence: &Sequence) -> Option<i64> {
        self.state.drawn.borrow().get(&sequence.id).copied()
    }
    fn poll_yield(&self, yielded: &mut bool) -> Poll<()> {
        if core::mem::replace(yielded, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
    fn poll_sleep(&self, _: Time, _: &mut bool) -> Poll<()> {
        Poll::Ready(())
    }
    fn poll_signal(
        &self,
        _: i32,
        _: sql::port::Signal,
        _: &mut Option<u64>,
    ) -> Poll<Result<bool, ExecError>> {
        Poll::Ready(Ok(false))
    }
    fn poll_show(&self, what: Show, _: &mut Option<u64>) -> Poll<Result<RowBatch, ExecError>> {
        let mut batch = RowBatch::new(sql::exec::show_columns(what).len());
        if what == Show::Rows {
            for shard in self.state.shards.borrow().iter() {
                for table in self.database.tables.values() {
                    let own = shard.keys().filter(|(id, _, _)| *id == table.primary.id);
                    let rows = Datum::Int(own.count() as i64);
                    batch.push([Datum::Int(i64::from(table.id.0)), rows]);
                }
                batch.push([Datum::Null, Datum::Null]);
            }
        }
        Poll::Ready(Ok(batch))
    }
    fn plan(&self, statement: &sql::Statement, cx: &PlanCx<'_>) -> Result<Arc<Plan>, SqlError> {
        sql::plan(statement, cx)
    }
    fn charge(&self, bytes: i64) -> Result<(), SqlError> {
        let charged = self.charged.get() + bytes;
        if bytes > 0 && charged > MEMORY_BYTES_MAX {
            let message = "the statement needs too much memory";
            return Err(SqlError::new(base::SqlState::OUT_OF_MEMORY, message));
        }
        self.charged.set(charged);
        self.state
            .peak
            .set(self.state.peak.get().max(self.charged.get()));
        Ok(())
    }
    fn cost(&self) -> TxnCost {
        TxnCost::default()
    }
    fn snapshot(&self) -> Option<Ts> {
        None
    }
}
