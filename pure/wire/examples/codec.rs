//! Measures the codec: time and allocations per Bind/Execute/Sync triple decoded and per row
//! encoded.
//!
//! `cargo run --release -p wire --example codec`
#![expect(
    clippy::print_stdout,
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures and prints"
)]

use allocations::{Counting, count};
use base::{Datum, OutColumn, RowBatch, Type};
use std::sync::Arc;
use std::time::Instant;
use wire::{Decoder, Format, Reply, encode};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ROUNDS: u64 = 1_000_000;

fn main() {
    let mut decoder = Decoder::new();
    decoder.push(b"\0\0\0\x10\0\x03\0\0user\0a\0\0");
    while decoder.next().is_some() {}
    let triple = triple();
    measure("decode Bind+Execute+Sync", || {
        decoder.push(&triple);
        let mut count = 0;
        while let Some(message) = decoder.next() {
            core::hint::black_box(message);
            count += 1;
        }
        assert_eq!(count, 3);
    });
    for (name, format) in [("text", Format::Text), ("binary", Format::Binary)] {
        let reply = row(format);
        let mut out = Vec::with_capacity(1024);
        measure(
            &format!("encode a DataRow of int4 and text(84), {name}"),
            || {
                out.clear();
                encode(&reply, &mut out);
                core::hint::black_box(&out);
            },
        );
    }
}

fn measure(what: &str, mut work: impl FnMut()) {
    (0..ROUNDS / 10).for_each(|_| work());
    let allocations = count();
    let start = Instant::now();
    (0..ROUNDS).for_each(|_| work());
    let nanos = start.elapsed().as_nanos() as f64 / ROUNDS as f64;
    let allocations = count() - allocations;
    println!(
        "{what}: {nanos:.0} ns, {:.2} allocations",
        allocations as f64 / ROUNDS as f64
    );
}

/// Bind of one binary int4 to statement `s1`, Execute, Sync: what a driver sends for a prepared
/// point query.
fn triple() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut frame = |tag: u8, body: &[u8]| {
        bytes.push(tag);
        bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        bytes.extend_from_slice(body);
    };
    frame(
        b'B',
        b"\0s1\0\0\x01\0\x01\0\x01\0\0\0\x04\0\0\0\x07\0\x01\0\x01",
    );
    frame(b'E', b"\0\0\0\0\0");
    frame(b'S', b"");
    bytes
}

fn row(format: Format) -> Reply {
    let column = |name: &str, ty| OutColumn {
        name: name.into(),
        ty,
        table: 1,
        attribute: 1,
    };
    let columns: Arc<[OutColumn]> = [column("id", Type::Int4), column("filler", Type::Text)].into();
    let mut batch = RowBatch::new(2);
    batch.push([Datum::Int(123_456), "x".repeat(84).into()]);
    Reply::Rows(columns, [format].into(), batch)
}
