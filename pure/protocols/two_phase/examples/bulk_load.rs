//! A bulk load on one shard without SQL, network and disk: one transaction inserts many rows of a
//! table without a key (row numbers, spread over the slots), as COPY does, and commits.
//!
//! Time: `cargo run --release -p two_phase --example bulk_load`. Instructions per row:
//! `valgrind --tool=callgrind --callgrind-out-file=/dev/null` before the built example.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures and prints"
)]

use base::codec::CodecError;
use base::{Clock, Datum, IndexId, Key, NodeId, Position, Prng, ShardId, Slot, Time, Ts, TxnId};
use std::sync::Arc;
use std::time::Instant;
use store::{Horizons, Store};
use two_phase::{Message, TwoPhase};
use txn::{
    ClockBound, Counters, Cx, JournalPort, Op, OpId, Outbox, Protocol, RowProgram, Submitted,
    TxnOptions,
};

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

fn decode(_bytes: &[u8]) -> Result<Arc<dyn RowProgram>, CodecError> {
    Err(CodecError::Malformed("no programs here"))
}

fn main() {
    let rows: u64 = match std::env::args().nth(1) {
        Some(count) => count.parse().expect("a number of rows"),
        None => 1_000_000,
    };
    let shard = ShardId::new(NodeId(1), 0);
    let mut store = Store::new();
    let mut protocol = TwoPhase::new(shard);
    let mut clock = Clock::new(shard, Ts(2));
    let mut journal = Sink(0);
    let mut counters = Counters::default();
    let mut prng = Prng::new(1);
    let row = base::row::to_vec(&[
        Datum::Int(1),
        Datum::Int(1),
        Datum::Int(0),
        Datum::Text(" ".repeat(84).into()),
    ]);
    let mut out: Outbox<Message> = Outbox::default();
    let txn = TxnId {
        shard,
        incarnation: 1,
        counter: 1,
    };
    let placement = base::Placement::over(vec![shard]);
    let horizons = Horizons::at(Ts::MAX);
    let mut cx = Cx {
        now: Time(1_800_000_000_000_000),
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
    let options = TxnOptions {
        priority_ts: Ts(1),
        ..TxnOptions::default()
    };
    let start = Instant::now();
    protocol.begin(&mut cx, txn, options);
    for n in 0..rows {
        let slot = Slot(prng.below(u64::from(base::SLOT_COUNT)) as u16);
        let bytes = ((1u64 << 53) + n).to_be_bytes().to_vec();
        let op = Op::Insert {
            key: Key::new(IndexId(1), slot, bytes),
            row: row.clone().into(),
        };
        let reply = protocol.submit(
            &mut cx,
            txn::Submission {
                txn,
                id: OpId(n),
                to: shard,
                planned: 1,
                op,
                last: false,
            },
        );
        assert!(matches!(reply, Submitted::Ready(_)), "everything is free");
    }
    let inserted = start.elapsed();
    let reply = protocol.commit(&mut cx, txn, OpId(rows));
    assert!(matches!(reply, Submitted::Ready(_)), "everything is local");
    protocol.forget(txn);
    let all = start.elapsed();
    println!(
        "{rows} rows: insert {} ns, commit {} ns per row",
        inserted.as_nanos() as u64 / rows.max(1),
        (all - inserted).as_nanos() as u64 / rows.max(1)
    );
}
