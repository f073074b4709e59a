//! Measures point reads and memory: `cargo run --release -p store --example point_get [rows]`.
//!
//! Rows are 100 bytes under 8-byte keys, spread over all slots, as in a table of accounts.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures and prints"
)]

use base::{IndexId, KeyRef, Prng, SLOT_COUNT, Slot, Ts};
use std::hint::black_box;
use std::time::Instant;
use store::{Store, Window, Write};

const INDEX: IndexId = IndexId(1);
const ROW_BYTES: usize = 100;

fn place(n: u64) -> (Slot, [u8; 8]) {
    let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (
        Slot((mixed % u64::from(SLOT_COUNT)) as u16),
        n.to_be_bytes(),
    )
}

/// Nanoseconds of one read whose address depends on the read before, over as much memory as `rows`
/// take: what a single cache miss costs on this machine now. A point read costs about three.
fn miss_nanos(rows: u64) -> f64 {
    let len = rows as usize * (ROW_BYTES + 40) / 8;
    let mut next: Vec<u64> = (0..len as u64).collect();
    let mut prng = Prng::new(2);
    for i in (1..len).rev() {
        // Sattolo's shuffle: one cycle through everything.
        next.swap(i, prng.below(i as u64) as usize);
    }
    let (started, reads) = (Instant::now(), 2_000_000);
    let mut at = 0;
    for _ in 0..reads {
        at = next[at as usize];
    }
    black_box(at);
    started.elapsed().as_nanos() as f64 / f64::from(reads)
}

fn main() {
    let rows: u64 = std::env::args()
        .nth(1)
        .map_or(5_000_000, |n| n.parse().expect("a number"));
    println!("one dependent read of memory: {:.0} ns", miss_nanos(rows));
    for (name, shuffled) in [("ascending", false), ("random", true)] {
        let mut store: Store = Store::new();
        let started = Instant::now();
        let write = Write::Insert(vec![7; ROW_BYTES]);
        for i in 0..rows {
            // A multiplication by an odd number permutes the keys.
            let n = if shuffled {
                i.wrapping_mul(0x2545_f491_4f6c_dd1d)
            } else {
                i
            };
            let (slot, key) = place(n);
            store.apply(KeyRef::new(INDEX, slot, &key), &write, Ts(i + 1), Ts::MAX);
        }
        let insert = started.elapsed().as_nanos() as f64 / rows as f64;
        let mut prng = Prng::new(1);
        let reads = 2_000_000u64;
        let draws: Vec<u64> = (0..reads).map(|_| prng.below(rows)).collect();
        let started = Instant::now();
        let mut total = 0usize;
        for i in draws {
            let n = if shuffled {
                i.wrapping_mul(0x2545_f491_4f6c_dd1d)
            } else {
                i
            };
            let (slot, key) = place(n);
            let version = store
                .get(KeyRef::new(INDEX, slot, &key), Ts::MAX)
                .expect("the row is there");
            total += usize::from(version.value[0]);
        }
        assert_eq!(black_box(total), reads as usize * 7);
        let get = started.elapsed().as_nanos() as f64 / reads as f64;
        let started = Instant::now();
        for i in 0..reads {
            let n = prng.below(rows);
            let n = if shuffled {
                n.wrapping_mul(0x2545_f491_4f6c_dd1d)
            } else {
                n
            };
            let (slot, key) = place(n);
            let put = Write::Put(vec![8; ROW_BYTES]);
            store.apply(
                KeyRef::new(INDEX, slot, &key),
                &put,
                Ts(rows + i + 1),
                Ts::MAX,
            );
        }
        let update = started.elapsed().as_nanos() as f64 / reads as f64;
        let started = Instant::now();
        let (mut seen, mut slot) = (0u64, Some(Slot(0)));
        while let Some(here) = slot {
            let _ = store.scan_next(INDEX, here, Window::all(), Ts::MAX, &mut |_, row, _| {
                seen += u64::from(row[0] > 0);
                std::ops::ControlFlow::Continue(())
            });
            slot = store.next_slot(INDEX, Slot(here.0 + 1));
        }
        let scan = started.elapsed().as_nanos() as f64 / seen as f64;
        let counts = store.counts();
        let overhead = (store.footprint_bytes() - counts.bytes) as f64 / counts.rows as f64;
        println!(
            "{name}: {rows} rows; insert {insert:.0} ns, get {get:.0} ns, update {update:.0} ns, \
             scan {scan:.1} ns/row, {overhead:.1} bytes/row beyond key and value"
        );
    }
}
