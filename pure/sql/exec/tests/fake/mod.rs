//! A database in memory for tests: several shards of plain maps, one session, rollback by copy.
//! Every other operation is answered late, so that statements are polled again.
#![allow(unreachable_pub, reason = "test modules share it")]
#![allow(dead_code, reason = "each test file uses a part of it")]

mod port;

use base::{Datum, IndexId, RowBatch, Slot, SqlError, Tag, Time, Type};
use bind::PlanCx;
use catalog::{Catalog, Command, Execution, Placement, ProtocolKind};
use exec::Fast;
use exec::fill::Copied;
use exec::port::Params;
use parse::session::SessionCommand;
use parse::show::Show;
use plan::{CreateAs, DdlPlan, Fill, Plan, PlanKind};
use port::FakePort;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use txn::OpError;

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
    /// Sequences whose next number `setval` named.
    pub named: RefCell<BTreeSet<IndexId>>,
    pub unique: Cell<u64>,
    pub ops: Cell<u64>,
    pub scans: Cell<u64>,
    /// Rows that scans have looked at.
    pub rows_read: Cell<u64>,
    pub lasts: Cell<u64>,
    /// Statements planned while another one ran.
    pub plans: Cell<u64>,
    pub peak: Cell<i64>,
    /// What shards answer to these, instead of nothing.
    pub shows: RefCell<Vec<(Show, RowBatch)>>,
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

pub const SHARDS: u16 = 3;

impl Cluster {
    pub fn new() -> Cluster {
        Cluster::named("test")
    }

    /// With a database of this name.
    pub fn named(database: &str) -> Cluster {
        let mut catalog = Catalog::default();
        for command in [
            Command::Bootstrap(Placement::new(1, SHARDS)),
            Command::CreateDatabase {
                name: database.into(),
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
                named: RefCell::default(),
                unique: Cell::new(1),
                ops: Cell::new(0),
                scans: Cell::new(0),
                rows_read: Cell::new(0),
                plans: Cell::default(),
                lasts: Cell::new(0),
                peak: Cell::new(0),
                shows: RefCell::default(),
                zone: RefCell::default(),
            }),
            catalog: RefCell::new(Arc::new(catalog)),
            database: database.into(),
            before: RefCell::default(),
            failed: Cell::new(false),
            prepared: RefCell::default(),
        }
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.borrow().clone()
    }

    fn path(&self, catalog: &Catalog) -> Vec<u32> {
        let database = &catalog.databases[&self.database];
        let setting = self.state.setting("search_path");
        let setting = setting.as_deref().unwrap_or(pg_catalog::path::DEFAULT);
        let role = (catalog.owner_of_database(database), "trellis");
        pg_catalog::path::schemas(catalog, database, role, None, setting)
    }

    pub fn plan(&self, text: &str, types: &[Type]) -> Result<Arc<Plan>, SqlError> {
        let statements = parse::parse(text)?;
        let [statement] = statements.as_slice() else {
            panic!("one statement: {text}")
        };
        let catalog = self.catalog();
        let zone = self.state.setting("timezone");
        let path = self.path(&catalog);
        let cx = PlanCx {
            catalog: &catalog,
            database: &catalog.databases[&self.database],
            param_types: types,
            param_names: &[],
            zone: expr::zoned::of_setting(zone.as_deref()),
            path: &path,
            viewer: Default::default(),
            rows: &|_| None,
            values: &|_| None,
            paths: Default::default(),
        };
        plan::plan(statement, &cx)
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
            PlanKind::CreateAs(create) => self.create_as(create),
            PlanKind::Refresh(_) => unreachable!("sessions run such plans"),
            PlanKind::Nothing(tag) => Ok(tagged(tag)),
            PlanKind::Session(command) => self.session(command),
            PlanKind::Savepoint(_) | PlanKind::Adopt(_) => {
                unreachable!("sessions make such plans")
            }
            PlanKind::Lock(_) => Ok(tagged("LOCK TABLE")),
            PlanKind::Constraints(_) => Ok(tagged("SET CONSTRAINTS")),
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
            SessionCommand::Prepare {
                name,
                types,
                statement,
            } => {
                let text = statement.text().to_owned();
                self.prepared
                    .borrow_mut()
                    .insert(name.clone(), (types.clone(), text));
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
                let zone = value.map(|value| pg_catalog::settings::validate(name, value));
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
                    self.put_names(&plan.columns, &mut batch)?;
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
    fn put_names(&self, columns: &[base::OutColumn], batch: &mut RowBatch) -> Result<(), SqlError> {
        let catalog = self.catalog();
        let database = catalog.databases.values().next().expect("there is one");
        let cx = pg_catalog::CatalogCx {
            catalog: &catalog,
            database,
            pid: 1,
            user: "trellis",
            txn_time: Time(0),
            setting: &setting,
            size_bytes: &|_| None,
            told: None,
        };
        let zone = self.state.setting("timezone").unwrap_or_default();
        if let Some(zone) = base::zone::Zone::named(&zone).filter(|_| zone != "UTC") {
            pg_catalog::output::put_zone(&zone, columns, &|_| true, batch);
        }
        pg_catalog::output::put_names(&cx, columns, &|_| true, batch)
    }

    fn create_as(&self, create: &CreateAs) -> Result<Outcome, SqlError> {
        let version = self.catalog().version;
        self.change(&create.create)?;
        // A table of that name was there already.
        if self.catalog().version == version {
            return Ok(tagged(create.create.tag));
        }
        match self.try_run(&create.insert, &[], "") {
            Ok(filled) => Ok(tagged(&filled.tag.replacen("INSERT 0", "SELECT", 1))),
            Err(error) => {
                self.change(&create.undo)?;
                Err(error)
            }
        }
    }

    fn change(&self, ddl: &DdlPlan) -> Result<(), SqlError> {
        self.apply_all(&ddl.before)?;
        let mut after = ddl.after.clone();
        if let Err(error) = self.fill(ddl.fill.as_ref(), &mut after) {
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

    /// Reserves the key spaces of a copy.
    fn reserve(&self, after: &mut [Command]) -> Result<(), SqlError> {
        for command in after {
            while let Some(index) = command.unplaced() {
                let (next, applied) = self.catalog().apply(&Command::Reserve)?;
                *self.catalog.borrow_mut() = Arc::new(next);
                index.id = IndexId(applied.reserved);
            }
        }
        Ok(())
    }

    fn fill(&self, fill: Option<&Fill>, after: &mut [Command]) -> Result<(), SqlError> {
        let sql_error = |error| match error {
            OpError::Sql(error) => error,
            OpError::Aborted(_) | OpError::Raise(_) => panic!("rolled back: {error:?}"),
        };
        let Some(fill) = fill else { return Ok(()) };
        match fill {
            Fill::Index { table, index } => {
                let mut position = None;
                loop {
                    let port = self.port("");
                    let work = exec::fill::index(port.clone(), table, index, position);
                    position = block_on(work).map_err(sql_error)?;
                    if position.is_none() {
                        return Ok(());
                    }
                }
            }
            Fill::PrimaryKey { table } => {
                self.reserve(after)?;
                let copy = copied(table, after);
                let mut position = None;
                loop {
                    let work = exec::fill::primary_key(self.port(""), &copy, position);
                    position = block_on(work).map_err(sql_error)?;
                    if position.is_none() {
                        return Ok(());
                    }
                }
            }
            Fill::Refers {
                table,
                child,
                constraint,
            } => {
                let copy = copied(table, after);
                let mut position = None;
                loop {
                    let names = (child.as_str(), constraint.as_str());
                    let work = exec::fill::refers(self.port(""), &copy, names, position);
                    position = block_on(work).map_err(sql_error)?;
                    if position.is_none() {
                        return Ok(());
                    }
                }
            }
            Fill::Stages(stages) => stages.iter().try_for_each(|stage| {
                self.apply_all(&stage.commands)?;
                self.fill(stage.fill.as_ref(), after)
            }),
            Fill::Alter(fill) => {
                let mut position = None;
                loop {
                    let work = exec::fill::alter(self.port(""), fill, position);
                    position = block_on(work).map_err(sql_error)?;
                    if position.is_none() {
                        return Ok(());
                    }
                }
            }
            Fill::Decide(_) => panic!("no block of a lost session is here"),
            Fill::Validate { table, constraint } => {
                let mut position = None;
                loop {
                    let port = self.port("");
                    let work = exec::fill::validate(port.clone(), table, constraint, position);
                    position = block_on(work).map_err(sql_error)?;
                    if position.is_none() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// The copy of a table that these commands use.
fn copied(table: &str, after: &[Command]) -> Copied {
    let mut all = after.iter();
    let found = all.find_map(|command| match command {
        Command::SetPrimaryKey {
            primary,
            secondary,
            columns,
            ..
        } => Some(Copied {
            table: table.into(),
            primary: primary.clone(),
            secondary: secondary.clone(),
            columns: columns.clone(),
        }),
        _ => None,
    });
    found.expect("a copy is followed by its use")
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
    pg_catalog::settings::lookup(name).map(|setting| setting.default.to_owned())
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
    let result = match exec::execute_fast(plan, params, &**port) {
        Some(Ok(Fast::Done(batch, tag))) => Ok((batch, tag)),
        Some(Ok(Fast::Pending(wait))) => block_on(wait.wait(plan.clone(), shared, port.clone())),
        Some(Err(error)) => Err(error),
        None => block_on(exec::execute(plan.clone(), shared, port.clone())).map(|tag| (None, tag)),
    };
    match result {
        Ok((batch, tag)) => Ok((tag, batch)),
        Err(OpError::Sql(error)) => Err(error),
        Err(error) => panic!("rolled back: {error:?}"),
    }
}

/// The plan of a statement.
pub fn explain(cluster: &Cluster, text: &str) -> String {
    let outcome = cluster.run(&format!("EXPLAIN {text}")).expect("a plan");
    let lines: Vec<String> = outcome.rows.into_iter().map(|row| row.join("")).collect();
    lines.join("\n")
}

/// With the tables of TPC-C, as far as statements need them.
pub fn tpcc() -> Cluster {
    let cluster = Cluster::new();
    for text in [
        "CREATE TABLE district (d_w_id int, d_id int, d_next_o_id int, d_ytd numeric(12,2), \
         PRIMARY KEY (d_w_id, d_id))",
        "CREATE TABLE customer (c_w_id int, c_d_id int, c_id int, c_last varchar(16), c_first \
         varchar(16), c_balance numeric(12,2), PRIMARY KEY (c_w_id, c_d_id, c_id))",
        "CREATE INDEX customer_name ON customer (c_w_id, c_d_id, c_last, c_first)",
        "CREATE TABLE orders (o_w_id int, o_d_id int, o_id int, o_c_id int, PRIMARY KEY (o_w_id, \
         o_d_id, o_id))",
        "CREATE INDEX orders_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)",
        "CREATE TABLE new_order (no_w_id int, no_d_id int, no_o_id int, PRIMARY KEY (no_w_id, \
         no_d_id, no_o_id))",
        "CREATE TABLE order_line (ol_w_id int, ol_d_id int, ol_o_id int, ol_number int, ol_i_id \
         int, ol_amount numeric(6,2), PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))",
        "CREATE TABLE stock (s_w_id int, s_i_id int, s_quantity int, PRIMARY KEY (s_w_id, s_i_id))",
        "CREATE TABLE item (i_id int PRIMARY KEY, i_price numeric(5,2)) WITH (replicated = true)",
        "CREATE TABLE history (h_c_id int, h_amount numeric(6,2))",
    ] {
        cluster
            .run(text)
            .unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    cluster
}
