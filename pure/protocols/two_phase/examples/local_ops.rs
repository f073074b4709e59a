//! Measures operations on one shard without SQL, network and disk:
//! `cargo run --release -p two_phase --example local_ops`.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures and prints"
)]

use base::codec::CodecError;
use base::{Clock, Datum, IndexId, Key, NodeId, Position, RowBatch, ShardId, Slot, SqlError};
use base::{Prng, Time, Ts, TxnId, Type};
use std::sync::Arc;
use std::time::Instant;
use store::{Horizons, Store, Write};
use two_phase::{Message, TwoPhase};
use txn::{
    ClockBound, Counters, Cx, JournalPort, LockMode, Modified, Op, OpId, Outbox, Program, Protocol,
    Read, RowProgram, RowTask, Submitted, TxnOptions,
};

const ROWS: u64 = 100_000;
const TXNS: u64 = 500_000;

struct Add;

impl RowProgram for Add {
    fn encode(&self, _out: &mut Vec<u8>) {}
    fn width(&self) -> usize {
        1
    }
    fn point(&self, row: &[u8], out: &mut RowBatch) -> Result<bool, SqlError> {
        let value = base::row::RowRef::new(row).col(0, Type::Int8)?;
        out.push([value]);
        Ok(true)
    }
    fn modify(&self, row: &[u8], _out: &mut RowBatch) -> Result<Modified, SqlError> {
        let value = base::row::RowRef::new(row).col(0, Type::Int8)?;
        let next = match value {
            Datum::Int(value) => Datum::Int(value + 1),
            other => other,
        };
        let mut out = Vec::with_capacity(row.len() + 8);
        base::row::RowRef::new(row).replace(0, &next, &mut out)?;
        Ok(Modified::Put(out))
    }
    fn task(&self) -> Option<Box<dyn RowTask>> {
        None
    }
}

struct Sink(u64);

impl JournalPort for Sink {
    fn append(&mut self, payload: &[u8]) -> Position {
        self.0 += payload.len() as u64;
        Position(self.0)
    }
    fn durable(&self) -> Position {
        Position(self.0)
    }
}

fn key(n: u64) -> Key {
    let bytes = n.to_be_bytes()[4..].to_vec();
    Key::new(IndexId(1), Slot((n % 1024) as u16), bytes)
}

fn decode(_bytes: &[u8]) -> Result<Arc<dyn RowProgram>, CodecError> {
    Ok(Arc::new(Add))
}

fn main() {
    let shard = ShardId::new(NodeId(1), 0);
    let mut store = Store::new();
    let row = base::row::to_vec(&[Datum::Int(1), Datum::Text("x".repeat(80).into())]);
    for n in 0..ROWS {
        let key = key(n);
        let write = Write::Insert(row.clone());
        store.apply(&key, &write, Ts(1), Ts(1));
    }
    let mut protocol = TwoPhase::new(shard);
    let mut clock = Clock::new(shard, Ts(2));
    let mut journal = Sink(0);
    let mut counters = Counters::default();
    let mut prng = Prng::new(1);
    let program = Program::Live(Arc::new(Add));
    let mut next = 0u64;
    let mut run = |name: &str, ops: u64, last: bool, op: &dyn Fn(Key, Program) -> Op| {
        let start = Instant::now();
        for _ in 0..TXNS {
            next += 1;
            let txn = TxnId {
                shard,
                incarnation: 1,
                counter: next,
            };
            let mut out: Outbox<Message> = Outbox::default();
            let placement = base::Placement::over(vec![shard]);
            let horizons = Horizons::at(Ts::MAX);
            let mut cx = Cx {
                now: Time(1_800_000_000_000_000 + next),
                shard,
                incarnation: 1,
                view: 1,
                placement: &placement,
                durable: journal.durable(),
                clock: &mut clock,
                store: &mut store,
                journal: &mut journal,
                out: &mut out,
                horizons: &horizons,
                clock_bound: &mut ClockBound::new(Ts::MAX),
                decode,
                catalog: 1,
                schema_changed: &|_| Some(1),
                locked: &[],
                counters: &mut counters,
                history: None,
            };
            let priority_ts = cx.clock.tick(cx.now);
            let options = TxnOptions {
                priority_ts,
                ..TxnOptions::default()
            };
            protocol.begin(&mut cx, txn, options);
            for n in 0..ops {
                let op = op(key(prng.below(ROWS)), program.clone());
                let reply = protocol.submit(
                    &mut cx,
                    txn::Submission {
                        txn,
                        id: OpId(n),
                        to: shard,
                        planned: 1,
                        op,
                        last,
                    },
                );
                assert!(matches!(reply, Submitted::Ready(_)), "everything is free");
            }
            if !last {
                let reply = protocol.commit(&mut cx, txn, OpId(ops));
                assert!(matches!(reply, Submitted::Ready(_)), "everything is local");
            }
            protocol.forget(txn);
        }
        println!(
            "{name:45} {:6} ns",
            start.elapsed().as_nanos() as u64 / TXNS
        );
    };
    let get = |key, program| {
        let read = Read::Lock(LockMode::Shared);
        Op::Get { key, read, program }
    };
    let modify = |key, program| Op::Modify { key, program };
    run("transaction of one get", 1, true, &get);
    run("transaction of one update", 1, true, &modify);
    run("begin, one get, commit", 1, false, &get);
    run("begin, one update, commit", 1, false, &modify);
    run("begin, ten gets, commit", 10, false, &get);
    run("begin, ten updates, commit", 10, false, &modify);
}
