//! Allocations and time of the session on the fast path: a prepared point query outside of a block.

use allocations::{Counting, count};
use base::{Datum, Position, RowBatch, ShardId, Time, Ts};
use catalog::Catalog;
use session::Away;
use session::ConnId;
use session::message::{Done, FromTxn, ToTxn, TxnHandle};
use session::{PlanCache, Session, SessionCx, Statistics};
use std::collections::VecDeque;
use std::sync::Arc;
use txn::{Counters, Outcome};
use wire::{ClientMessage, Tag};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const HERE: ShardId = ShardId(0);

/// Buffers of a shard, reused from step to step.
#[derive(Default)]
struct Shard {
    catalog: Arc<Catalog>,
    replies: Vec<(ConnId, wire::Reply, Position)>,
    to_txn: VecDeque<(ShardId, TxnHandle, ToTxn)>,
    ddl: VecDeque<session::message::DdlCall>,
    plans: PlanCache,
    statistics: Statistics,
    counters: Counters,
    preparations: Vec<session::Preparation>,
    leftovers: session::Leftovers,
}

impl Shard {
    fn call(&mut self, call: impl FnOnce(&mut SessionCx<'_>)) {
        call(&mut SessionCx {
            now: Time(1_800_000_000_000_000),
            here: HERE,
            catalog: &self.catalog,
            accepting: true,
            replies: &mut self.replies,
            to_txn: &mut self.to_txn,
            ddl: &mut self.ddl,
            plans: &mut self.plans,
            statistics: &mut self.statistics,
            counters: &mut self.counters,
            away: &Away::default(),
            quiesced: &[],
            preparations: &mut self.preparations,
            leftovers: &self.leftovers,
            barrier: session::barrier::let_through,
            told: &mut Vec::new(),
            claim_memory: &mut |_| true,
        });
    }
}

/// Sends Bind, Execute and Sync, answers as a coordinator would, and drops the replies.
/// Returns the allocations of the session alone.
fn point_query(shard: &mut Shard, session: &mut Session) -> u64 {
    let bind = ClientMessage::Bind {
        portal: String::new(),
        statement: "s".to_owned(),
        formats: vec![wire::Format::Binary],
        params: vec![Some(vec![0, 0, 0, 7])],
        result_formats: vec![wire::Format::Binary],
    };
    let execute = ClientMessage::Execute {
        portal: String::new(),
        rows_max: 0,
    };
    let mut rows = RowBatch::new(1);
    rows.push([Datum::Int(7)]);
    let mut done = Done {
        result: Ok(Tag::Count("SELECT", 1)),
        outcome: Some(Outcome::Committed { commit_ts: Ts(1) }),
        cost: None,
        wait: Position(0),
        priority_ts: Ts(1),
        effects: None,
    };
    let before = count();
    shard.call(|cx| session.on_client(cx, bind));
    shard.call(|cx| session.on_client(cx, execute));
    shard.call(|cx| session.on_client(cx, ClientMessage::Sync));
    let (_, handle, run) = shard.to_txn.pop_front().expect("the statement runs");
    let ToTxn::Run(run) = run else {
        panic!("no {run:?}")
    };
    done.cost = run.begin.and_then(|begin| begin.cost);
    shard.call(|cx| session.on_txn(cx, handle, FromTxn::Rows(1, rows, Position(0))));
    shard.call(|cx| session.on_txn(cx, handle, FromTxn::Done(1, done)));
    let allocations = count() - before;
    assert_eq!(shard.replies.len(), 4, "{:?}", shard.replies);
    shard.replies.clear();
    allocations
}

#[test]
fn a_prepared_point_query_allocates_its_parameters_only() {
    let database = catalog::Database {
        id: base::DatabaseId(16_384),
        name: "shop".to_owned(),
        protocol: catalog::ProtocolKind::TwoPhase,
        execution: catalog::Execution::Interleaved,
        tables: Default::default(),
        sequences: Default::default(),
        switching: None,
        comments: std::collections::BTreeMap::new(),
        views: Default::default(),
        enums: Default::default(),
        stored: Default::default(),
        blocks: Vec::new(),
        schemas: [("public".into(), 2200)].into(),
        functions: Default::default(),
        domains: Default::default(),
        row_security: Default::default(),
        connection_limit: -1,
    };
    let databases = [("shop".to_owned(), Arc::new(database))].into();
    let placement = catalog::Placement::new(1, 1);
    let catalog = Catalog {
        version: 1,
        placement,
        databases,
        ..Catalog::default()
    };
    let mut shard = Shard {
        catalog: Arc::new(catalog),
        ..Shard::default()
    };
    let mut session = Session::new(ConnId(1), 1, session::Link::default());
    let parameters = vec![
        ("user".to_owned(), "ada".to_owned()),
        ("database".to_owned(), "shop".to_owned()),
    ];
    shard.call(|cx| session.on_client(cx, ClientMessage::Startup { parameters }));
    let parse = ClientMessage::Parse {
        name: "s".to_owned(),
        text: "select $1::integer".to_owned(),
        types: vec![],
    };
    shard.call(|cx| session.on_client(cx, parse));
    shard.call(|cx| session.on_client(cx, ClientMessage::Sync));
    shard.replies.clear();
    for _ in 0..100 {
        point_query(&mut shard, &mut session);
    }
    let rounds = 1000;
    let all: u64 = (0..rounds)
        .map(|_| point_query(&mut shard, &mut session))
        .sum();
    assert_eq!(
        all, rounds,
        "one allocation each: the shared slice of parameters"
    );
}
