//! Measures statements by key without a store: `cargo run --release -p exec --example fast_path`.
//!
//! Operations are answered at once from a row that is always there, so what is left is the price
//! of the plan: building the key, the program, the answer.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures and prints"
)]

use base::{Datum, RowBatch, ShardId, Slot, SqlError, Time, Ts};
use bind::PlanCx;
use catalog::{Catalog, Command, Database, Execution, Placement, ProtocolKind, Sequence};
use exec::Fast;
use exec::port::{OpAnswer, Port, Started};
use parse::Statement;
use parse::show::Show;
use plan::{Plan, PlanKind};
use std::hint::black_box;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;
use txn::{LockMode, Op, OpError, OpId, OpResult, Read, TxnCost};

struct OneRow {
    catalog: Arc<Catalog>,
    database: Arc<Database>,
    shards: Arc<[ShardId]>,
    row: Vec<u8>,
}

impl Port for OneRow {
    fn submit(&self, _: ShardId, _: u64, op: Op, _: bool) -> Started {
        let result = match op {
            Op::Get { program, .. } => {
                let program = program
                    .live(expr::program::decode_program)
                    .expect("a program");
                let mut batch = RowBatch::new(program.width());
                program.point(&self.row, &mut batch).expect("a row");
                OpResult::Rows {
                    batch,
                    resume: None,
                }
            }
            Op::Modify { program, .. } => {
                let program = program
                    .live(expr::program::decode_program)
                    .expect("a program");
                let mut returning = RowBatch::new(program.width());
                black_box(program.modify(&self.row, &mut returning).expect("a row"));
                OpResult::Modified {
                    found: true,
                    written: true,
                    returning,
                }
            }
            Op::Formula { formula, .. } => {
                let mut out = Vec::with_capacity(self.row.len() + 8);
                formula.fold(&self.row, &mut out).expect("a row");
                black_box(out);
                OpResult::Modified {
                    found: true,
                    written: true,
                    returning: RowBatch::new(0),
                }
            }
            other => {
                black_box(other);
                OpResult::Done
            }
        };
        Started::Ready(Some(Ok(result)))
    }
    fn poll_op(&self, _: OpId) -> Poll<OpAnswer> {
        unreachable!("everything is answered at once")
    }
    fn home(&self, slot: Slot) -> ShardId {
        self.catalog.placement.home(slot)
    }
    fn shards(&self) -> Arc<[ShardId]> {
        self.shards.clone()
    }
    fn here(&self) -> ShardId {
        self.shards[0]
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
        Time(0)
    }
    fn now(&self) -> Time {
        Time(0)
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
    fn setting(&self, _: &str) -> Option<String> {
        None
    }
    fn session_user(&self) -> String {
        String::new()
    }
    fn session_pid(&self) -> i32 {
        0
    }
    fn poll_emit(&self, batch: &mut Option<RowBatch>) -> Poll<()> {
        batch.take();
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
    fn poll_show(&self, _: Show, _: &mut Option<u64>) -> Poll<Result<RowBatch, OpError>> {
        Poll::Ready(Ok(RowBatch::new(0)))
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

fn plan(catalog: &Arc<Catalog>, text: &str) -> Arc<Plan> {
    let statement = parse::parse(text).expect("SQL").remove(0);
    let database = &catalog.databases["bank"];
    let cx = PlanCx {
        catalog,
        database,
        param_types: &[],
        param_names: &[],
        zone: "",
        path: catalog::KEPT_PATH,
        viewer: Default::default(),
        rows: &|_| None,
        values: &|_| None,
        paths: Default::default(),
    };
    plan::plan(&statement, &cx).expect("a plan")
}

fn bank() -> Arc<Catalog> {
    let mut catalog = Catalog::default();
    for command in [
        Command::Bootstrap(Placement::new(1, 2)),
        Command::CreateDatabase {
            name: "bank".into(),
            protocol: ProtocolKind::TwoPhase,
            execution: Execution::Interleaved,
            if_not_exists: false,
        },
    ] {
        catalog = catalog.apply(&command).expect("a catalog").0;
    }
    let table =
        "CREATE TABLE accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84))";
    let plan = plan(&Arc::new(catalog.clone()), table);
    let PlanKind::Ddl(ddl) = &plan.kind else {
        panic!("a definition")
    };
    for command in &ddl.before {
        catalog = catalog.apply(command).expect("a table").0;
    }
    Arc::new(catalog)
}

fn main() {
    const ROUNDS: u32 = 1_000_000;
    let catalog = bank();
    let row = [
        Datum::Int(7),
        Datum::Int(1),
        Datum::Int(100),
        Datum::Text("".into()),
    ];
    let port = OneRow {
        database: catalog.databases["bank"].clone(),
        shards: catalog.placement.shards().into(),
        catalog: catalog.clone(),
        row: base::row::to_vec(&row),
    };
    let params = [Datum::Int(7), Datum::Int(-3)];
    for text in [
        "SELECT abalance FROM accounts WHERE aid = $1",
        "SELECT abalance + $2 FROM accounts WHERE aid = $1",
        "SELECT * FROM accounts WHERE aid = $1",
        "UPDATE accounts SET abalance = abalance + $2 WHERE aid = $1",
        "UPDATE accounts SET abalance = $2 WHERE aid = $1",
        "UPDATE accounts SET abalance = abalance + $2 WHERE aid = $1 RETURNING abalance",
        "INSERT INTO accounts VALUES ($1, 1, $2, 'x')",
        "DELETE FROM accounts WHERE aid = $1",
    ] {
        let plan = plan(&catalog, text);
        let start = Instant::now();
        for _ in 0..ROUNDS {
            match exec::execute_fast(black_box(&plan), black_box(&params), &port) {
                Some(Ok(Fast::Done(batch, tag))) => {
                    black_box((batch, tag));
                }
                _ => panic!("a point statement is answered at once"),
            }
        }
        let nanos = start.elapsed().as_nanos() / u128::from(ROUNDS);
        println!("{nanos:5} ns  {text}");
    }
    for text in [
        "SELECT abalance FROM accounts WHERE aid = $1",
        "UPDATE accounts SET abalance = abalance + $2 WHERE aid = $1",
        "SELECT a.bid, count(*) FROM accounts a JOIN accounts b ON a.aid = b.bid GROUP BY a.bid",
    ] {
        const TIMES: u32 = 20_000;
        let start = Instant::now();
        for _ in 0..TIMES {
            black_box(parse::parse(black_box(text)).expect("SQL"));
        }
        let parse = start.elapsed().as_nanos() / u128::from(TIMES);
        let start = Instant::now();
        for _ in 0..TIMES {
            black_box(plan(&catalog, black_box(text)));
        }
        let both = start.elapsed().as_nanos() / u128::from(TIMES);
        println!(
            "{parse:6} ns to parse, {:6} ns to plan  {text}",
            both - parse
        );
    }
}
