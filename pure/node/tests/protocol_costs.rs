//! Allocations of a transaction on rows of its own shard, under each protocol. What leap does for
//! rows that are elsewhere must cost nothing for rows that are here.

use allocations::{Counting, count};
use base::row::RowRef;
use base::{
    Clock, Datum, IndexId, Key, Placement, Position, RowBatch, ShardId, Slot, SqlError, Time,
};
use base::{Ts, TxnId, Type};
use leap::Leap;
use std::sync::Arc;
use store::{Horizons, Store, Write};
use two_phase::TwoPhase;
use txn::{
    ClockBound, Counters, Cx, JournalPort, LockMode, Modified, Op, OpId, OpReply, Outbox, Outcome,
    Program, Protocol, Read, RowProgram, RowTask, Submitted, TxnOptions,
};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const HERE: ShardId = ShardId(0);

/// A journal that is always durable.
struct Quick(u64);

impl JournalPort for Quick {
    fn append(&mut self, payload: &[u8]) -> Position {
        self.0 += payload.len() as u64 + 8;
        Position(self.0)
    }
    fn durable(&self) -> Position {
        Position(self.0)
    }
}

/// Adds one and returns nothing.
struct Increment;

impl RowProgram for Increment {
    fn encode(&self, _out: &mut Vec<u8>) {}
    fn width(&self) -> usize {
        0
    }
    fn point(&self, _row: &[u8], _out: &mut RowBatch) -> Result<bool, SqlError> {
        Ok(true)
    }
    fn modify(&self, row: &[u8], _out: &mut RowBatch) -> Result<Modified, SqlError> {
        let Ok(Datum::Int(value)) = RowRef::new(row).col(0, Type::Int8) else {
            panic!("rows are integers");
        };
        Ok(Modified::Put(base::row::to_vec(&[Datum::Int(value + 1)])))
    }
    fn task(&self) -> Option<Box<dyn RowTask>> {
        None
    }
}

struct World<P: Protocol> {
    protocol: P,
    store: Store,
    placement: Placement,
    clock: Clock,
    counters: Counters,
    journal: Quick,
    out: Outbox<P::Message>,
    txns: u64,
    ops: u64,
}

fn key() -> Key {
    Key::new(IndexId(1), Slot(0), vec![1, 2, 3, 4])
}

impl<P: Protocol> World<P> {
    fn new(protocol: P) -> World<P> {
        let mut store = Store::new();
        let (row, key) = (base::row::to_vec(&[Datum::Int(0)]), key());
        let write = Write::Insert(row);
        store.apply(&key, &write, Ts(1), Ts::ZERO);
        World {
            protocol,
            store,
            placement: Placement::over(vec![HERE]),
            clock: Clock::new(HERE, Ts::ZERO),
            counters: Counters::default(),
            journal: Quick(0),
            out: Outbox::default(),
            txns: 0,
            ops: 0,
        }
    }

    fn call<R>(&mut self, call: impl FnOnce(&mut P, &mut Cx<'_, P::Message>) -> R) -> R {
        let horizons = Horizons::at(self.clock.last());
        let mut cx = Cx {
            now: Time(1_800_000_000_000_000),
            shard: HERE,
            incarnation: 1,
            view: 1,
            placement: &self.placement,
            durable: self.journal.durable(),
            clock: &mut self.clock,
            store: &mut self.store,
            journal: &mut self.journal,
            out: &mut self.out,
            horizons: &horizons,
            clock_bound: &mut ClockBound::new(Ts::MAX),
            decode: |_| panic!("programs stay here"),
            catalog: 1,
            schema_changed: &|_| Some(1),
            locked: &[],
            counters: &mut self.counters,
            history: None,
        };
        call(&mut self.protocol, &mut cx)
    }

    fn begin(&mut self) -> TxnId {
        self.txns += 1;
        let txn = TxnId {
            shard: HERE,
            incarnation: 1,
            counter: self.txns,
        };
        self.call(|protocol, cx| {
            let options = TxnOptions {
                priority_ts: cx.clock.tick(cx.now),
                ..TxnOptions::default()
            };
            protocol.begin(cx, txn, options);
        });
        txn
    }

    fn submit(&mut self, txn: TxnId, op: Op, last: bool) -> OpReply {
        self.ops += 1;
        let id = OpId(self.ops);
        let submitted = self.call(|protocol, cx| {
            protocol.submit(
                cx,
                txn::Submission {
                    txn,
                    id,
                    to: HERE,
                    planned: 1,
                    op,
                    last,
                },
            )
        });
        ready(submitted)
    }

    fn end(&mut self, txn: TxnId, reply: &OpReply) {
        assert!(matches!(reply.outcome, Some(Outcome::Committed { .. })));
        self.call(|protocol, _| protocol.forget(txn));
        assert!(self.out.messages.is_empty());
    }

    /// One operation that carries its commit.
    fn autocommit(&mut self, op: Op) {
        let txn = self.begin();
        let reply = self.submit(txn, op, true);
        self.end(txn, &reply);
    }

    /// A read, a change and a commit.
    fn block(&mut self, program: &Program) {
        let txn = self.begin();
        assert!(self.submit(txn, get(program), false).result.is_ok());
        assert!(self.submit(txn, modify(program), false).result.is_ok());
        self.ops += 1;
        let id = OpId(self.ops);
        let submitted = self.call(|protocol, cx| protocol.commit(cx, txn, id));
        self.end(txn, &ready(submitted));
    }

    /// Allocations of one call, in hundredths.
    fn allocations(&mut self, mut call: impl FnMut(&mut World<P>)) -> u64 {
        for _ in 0..200 {
            call(self);
        }
        let before = count();
        for _ in 0..1_000 {
            call(self);
        }
        (count() - before) / 10
    }

    /// For a read, for a change, and for a block of both.
    fn costs(&mut self) -> [u64; 3] {
        let program: Program = Program::Live(Arc::new(Increment));
        [
            self.allocations(|world| world.autocommit(get(&program))),
            self.allocations(|world| world.autocommit(modify(&program))),
            self.allocations(|world| world.block(&program)),
        ]
    }
}

fn ready(submitted: Submitted) -> OpReply {
    match submitted {
        Submitted::Ready(reply) => reply,
        Submitted::Pending => panic!("everything is here and free"),
    }
}

fn get(program: &Program) -> Op {
    Op::Get {
        key: key(),
        read: Read::Lock(LockMode::Shared),
        program: program.clone(),
    }
}

fn modify(program: &Program) -> Op {
    Op::Modify {
        key: key(),
        program: program.clone(),
    }
}

/// The only test of this file: allocations of another test beside it would be counted too.
#[test]
fn rows_at_home_cost_no_more_under_leap() {
    let two_phase = World::new(TwoPhase::new(HERE)).costs();
    let mut world = World::new(Leap::new(HERE));
    world.call(|protocol, cx| {
        protocol.recover(cx, &mut journal::CheckpointTables::default(), &|_| true);
    });
    let leap = world.costs();
    for ((leap, two_phase), what) in leap
        .into_iter()
        .zip(two_phase)
        .zip(["get", "modify", "block"])
    {
        assert!(
            leap <= two_phase,
            "{what}: {leap} allocations per hundred under leap, {two_phase} under two_phase"
        );
    }
}
