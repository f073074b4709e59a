//! The queries that psql, pgbench, psycopg and JDBC send to find out about a database, run word for
//! word (`test/sql/introspection/*.sql`) over the tables of `schema.sql`.
//!
//! Each file has its answers beside it (`*.out`); `UPDATE=1` rewrites them, and a person reads the
//! difference. Statements about rows and transactions, which the recordings hold too, are left out:
//! there are no rows here, only the catalog.
#![expect(
    clippy::disallowed_methods,
    reason = "a test reads its scripts and may write them"
)]

use base::{Datum, RowBatch, ShardId, Slot, SqlError, Time, Ts, Type};
use bind::PlanCx;
use catalog::{Catalog, Command, Database, Execution, Placement, ProtocolKind, Sequence};
use exec::port::{OpAnswer, Params, Port, Started};
use parse::Statement;
use parse::show::Show;
use plan::{Plan, PlanKind};
use std::cell::RefCell;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use txn::{LockMode, Op, OpError, OpId, Read, TxnCost};

/// A database of which only the catalog exists.
struct CatalogOnly {
    catalog: Arc<Catalog>,
    database: Arc<Database>,
    emitted: RefCell<Vec<RowBatch>>,
}

impl Port for CatalogOnly {
    fn submit(&self, _: ShardId, _: u64, op: Op, _: bool) -> Started {
        panic!("an introspection query asked for rows: {op:?}")
    }
    fn poll_op(&self, _: OpId) -> Poll<OpAnswer> {
        unreachable!("no operation is pending")
    }
    fn home(&self, _: Slot) -> ShardId {
        ShardId(0)
    }
    fn shards(&self) -> Arc<[ShardId]> {
        Arc::new([ShardId(0)])
    }
    fn here(&self) -> ShardId {
        ShardId(0)
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
        self.txn_time()
    }
    fn stopwatch_ns(&self) -> u64 {
        0
    }

    fn unique(&self) -> u64 {
        1
    }
    fn random(&self) -> u64 {
        1
    }
    fn set_config(&self, name: &str, value: Option<&str>, _: bool) -> Result<String, SqlError> {
        pg_catalog::settings::validate(name, value.unwrap_or_default())
    }
    fn setting(&self, name: &str) -> Option<String> {
        pg_catalog::settings::lookup(name).map(|setting| setting.default.to_owned())
    }
    fn session_user(&self) -> String {
        "alice".to_owned()
    }
    fn session_pid(&self) -> i32 {
        7
    }
    fn poll_emit(&self, batch: &mut Option<RowBatch>) -> Poll<()> {
        self.emitted.borrow_mut().extend(batch.take());
        Poll::Ready(())
    }
    fn poll_emit_copy(&self, _: &mut Option<Vec<u8>>) -> Poll<()> {
        Poll::Ready(())
    }
    fn poll_copy_data(&self) -> Poll<Result<Option<Vec<u8>>, SqlError>> {
        Poll::Ready(Ok(None))
    }
    fn poll_nextval(&self, _: &Sequence, _: &mut Option<u64>) -> Poll<Result<i64, OpError>> {
        Poll::Ready(Ok(1))
    }
    fn currval(&self, _: &Sequence) -> Option<i64> {
        None
    }
    fn poll_yield(&self, _: &mut bool) -> Poll<()> {
        Poll::Ready(())
    }
    fn poll_sleep(&self, _: Time, _: &mut bool) -> Poll<()> {
        Poll::Ready(())
    }
    fn poll_signal(
        &self,
        _: i32,
        _: bind::rel::Signal,
        _: &mut Option<u64>,
    ) -> Poll<Result<bool, OpError>> {
        Poll::Ready(Ok(false))
    }
    fn plan(&self, statement: &Statement, cx: &PlanCx<'_>) -> Result<Arc<Plan>, SqlError> {
        plan::plan(statement, cx)
    }
    fn poll_show(&self, what: Show, _: &mut Option<u64>) -> Poll<Result<RowBatch, OpError>> {
        if what == Show::Sizes {
            // Two shards, each with some of every key space.
            let mut sizes = RowBatch::new(2);
            for id in 16_384..16_500 {
                sizes.push([Datum::Int(id), Datum::Int(8_192)]);
                sizes.push([Datum::Int(id), Datum::Int(32_768)]);
            }
            return Poll::Ready(Ok(sizes));
        }
        let mut sessions = RowBatch::new(12);
        let text = |text: &str| Datum::Text(text.into());
        sessions.push([
            Datum::Int(7),
            text("alice"),
            text("shop"),
            text("psql"),
            text("127.0.0.1"),
            Datum::Int(40_000),
            Datum::Timestamp(1),
            Datum::Null,
            Datum::Timestamp(2),
            Datum::Timestamp(3),
            text("active"),
            text("SELECT 1"),
        ]);
        Poll::Ready(Ok(sessions))
    }
    fn charge(&self, _: i64) -> Result<(), SqlError> {
        Ok(())
    }
    fn cost(&self) -> TxnCost {
        TxnCost::default()
    }
    fn snapshot(&self) -> Option<Ts> {
        None
    }
}

fn plan(catalog: &Arc<Catalog>, statement: &Statement) -> Result<Arc<Plan>, SqlError> {
    let database = &catalog.databases["shop"];
    let cx = PlanCx {
        catalog,
        database,
        param_types: &[],
        zone: "",
        rows: &|_| None,
    };
    plan::plan(statement, &cx)
}

fn folder() -> PathBuf {
    PathBuf::from("../../../test/sql/introspection")
}

/// The catalog after `schema.sql`.
fn shop() -> Arc<Catalog> {
    let mut catalog = Catalog::default();
    let apply = |catalog: &mut Catalog, command: &Command| {
        *catalog = catalog.apply(command).expect("the schema is legal").0;
    };
    apply(&mut catalog, &Command::Bootstrap(Placement::new(1, 1)));
    let create = Command::CreateDatabase {
        name: "shop".to_owned(),
        protocol: ProtocolKind::TwoPhase,
        execution: Execution::Interleaved,
        if_not_exists: false,
    };
    apply(&mut catalog, &create);
    let schema = std::fs::read_to_string(folder().join("schema.sql")).expect("the schema");
    for statement in parse::parse(&schema).expect("the schema parses") {
        let current = Arc::new(catalog.clone());
        let plan = plan(&current, &statement).expect("the schema plans");
        let PlanKind::Ddl(ddl) = &plan.kind else {
            panic!("the schema is only definitions")
        };
        for command in ddl.before.iter().chain(&ddl.after) {
            apply(&mut catalog, command);
        }
    }
    Arc::new(catalog)
}

/// Runs one statement to its end; rows as text.
fn run(catalog: &Arc<Catalog>, text: &str, values: &[String]) -> Result<String, String> {
    let shown = |error: SqlError| error.to_string();
    let statements = parse::parse(text).map_err(shown)?;
    let statement = statements.first().ok_or("no statement")?;
    let plan = plan(catalog, statement).map_err(shown)?;
    let params: Params = plan
        .params
        .iter()
        .zip(values)
        .map(|(ty, value)| with_catalog(catalog, |cx| pg_catalog::output::read(cx, *ty, value)))
        .collect::<Result<_, _>>()
        .map_err(shown)?;
    let port = Rc::new(CatalogOnly {
        catalog: catalog.clone(),
        database: catalog.databases["shop"].clone(),
        emitted: RefCell::default(),
    });
    let mut running = pin!(exec::execute(plan.clone(), params, port.clone()));
    let mut cx = Context::from_waker(Waker::noop());
    let finished = (0..1_000_000).find_map(|_| match running.as_mut().poll(&mut cx) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    });
    if let Err(error) = finished.expect("a statement over the catalog ends") {
        return Err(format!("{error:?}"));
    }
    let mut out = String::new();
    let names: Vec<&str> = plan
        .columns
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    let _ = writeln!(out, "{}", names.join(" | "));
    for batch in port.emitted.borrow_mut().iter_mut() {
        with_catalog(catalog, |cx| {
            pg_catalog::output::put_names(cx, &plan.columns, &|_| true, batch);
        });
    }
    for row in port.emitted.borrow().iter().flat_map(RowBatch::iter) {
        let values: Vec<String> = row
            .iter()
            .zip(plan.columns.iter())
            .map(|(datum, column)| cell(column.ty, datum))
            .collect();
        let _ = writeln!(out, "{}", values.join(" | "));
    }
    Ok(out)
}

fn with_catalog<T>(catalog: &Catalog, call: impl FnOnce(&pg_catalog::CatalogCx<'_>) -> T) -> T {
    call(&pg_catalog::CatalogCx {
        catalog,
        database: &catalog.databases["shop"],
        user: "trellis",
        txn_time: Time(0),
        setting: &|_| None,
        size_bytes: &|_| None,
        sessions: None,
    })
}

fn cell(ty: Type, datum: &Datum) -> String {
    match datum {
        Datum::Null => "NULL".to_owned(),
        datum => base::text::to_string(ty, datum).replace('\n', "\\n"),
    }
}

/// A query of a recording: its text and the values of its parameters.
struct Recorded {
    text: String,
    values: Vec<String>,
}

/// The queries over the catalog of a recording. `':name'` stands for the oid of that relation.
fn recorded(catalog: &Catalog, path: &Path) -> Vec<Recorded> {
    let database = &catalog.databases["shop"];
    let oid = |name: &str| {
        let table = database.tables.get(name).map(|table| table.id.0);
        let sequence = || database.sequences.get(name).map(|sequence| sequence.id.0);
        let index = || {
            let mut indexes = database.tables.values().flat_map(|table| table.indexes());
            indexes
                .find(|index| index.name == name)
                .map(|index| index.id.0)
        };
        table
            .or_else(sequence)
            .or_else(index)
            .expect("a relation of the schema")
    };
    let mut queries = Vec::new();
    let content = std::fs::read_to_string(path).expect("a readable recording");
    for piece in content.split(";\n") {
        let mut text = String::new();
        let mut values = Vec::new();
        for line in piece.lines() {
            match line.strip_prefix("-- $1 = ") {
                Some(rest) => {
                    let rest = rest.trim_matches('\'');
                    values = rest.split("', '").map(str::to_owned).collect();
                    values = values
                        .iter()
                        .flat_map(|v| v.split("', $"))
                        .map(strip)
                        .collect();
                }
                None if line.starts_with("--") => {}
                None => text += &format!("{line}\n"),
            }
        }
        for name in ["orders_by_customer", "orders_id_seq", "customer", "orders"] {
            if text.contains(&format!("':{name}'")) {
                text = text.replace(&format!("':{name}'"), &format!("'{}'", oid(name)));
            }
        }
        // The oid that PostgreSQL had given to `customer` in the recorded session.
        text = text.replace("16385", &oid("customer").to_string());
        // pgbench asks about its own tables.
        let text = text.trim().replace("'pgbench_accounts'", "'orders'");
        if text.contains("pg_") {
            queries.push(Recorded { text, values });
        }
    }
    queries
}

/// `2 = 'orders` is the value `orders`.
fn strip(value: &str) -> String {
    value
        .split_once("= '")
        .map_or(value, |(_, value)| value)
        .to_owned()
}

#[test]
fn recorded_queries_are_answered() {
    let catalog = shop();
    let mut failures = String::new();
    let mut count = 0;
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("the folder of recordings")
        .map(|file| file.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .filter(|path| !path.ends_with("schema.sql"))
        .collect();
    paths.sort();
    for path in paths {
        let mut answers = String::new();
        for query in recorded(&catalog, &path) {
            count += 1;
            let first = query.text.lines().next().unwrap_or("").trim();
            let first: String = first.chars().take(60).collect();
            match run(&catalog, &query.text, &query.values) {
                Ok(rows) => answers += &format!("> {first}\n{rows}\n"),
                Err(error) => {
                    failures += &format!("{}: {first}\n    {error}\n", path.display());
                }
            }
        }
        let answer_path = path.with_extension("out");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&answer_path, &answers).expect("the answers can be written");
        } else if std::fs::read_to_string(&answer_path).unwrap_or_default() != answers {
            failures += &format!(
                "{}: answers differ from *.out:\n{answers}\n",
                path.display()
            );
        }
    }
    assert!(failures.is_empty(), "of {count} queries:\n{failures}");
    assert!(count > 80, "only {count} queries were found");
}
