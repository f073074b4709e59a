//! The longest step of a shard while large statements and transactions run: one shard in one
//! thread with the allocator of the program, without network and disk.
//!
//! `cargo run --release -p steps -- [ROWS] [two_phase|leap] [N]`; docs/steps.md has figures. With N
//! the program also prints what the N longest steps of each statement did with large blocks of
//! memory. `pure/node/tests/steps.rs` bounds the work of a step in counted units.
#![expect(clippy::print_stdout, reason = "the program measures and prints")]

use catalog::ProtocolKind;
use libmimalloc_sys::{mi_collect, mi_option_set};
use mimalloc::MiMalloc;
use nix::time::{ClockId, clock_gettime};
use one_shard::{Outcome, World};
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The allocator of the program, which counts what is done with large blocks.
struct Watched;

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// Bytes from which on a block is large.
const LARGE_BYTES: usize = 1 << 20;

thread_local! {
    /// Bytes of large blocks that were taken, copied into larger ones, and given back.
    static LARGE: Cell<[usize; 3]> = const { Cell::new([0; 3]) };
    /// Numbers of blocks of any size that were taken, copied and given back.
    static BLOCKS: Cell<[usize; 3]> = const { Cell::new([0; 3]) };
}

fn note(kind: usize, bytes: usize) {
    let mut all = BLOCKS.get();
    all[kind] += 1;
    BLOCKS.set(all);
    if bytes >= LARGE_BYTES {
        let mut all = LARGE.get();
        all[kind] += bytes;
        LARGE.set(all);
    }
}

// SAFETY: every call is passed on unchanged; a cell of numbers neither allocates nor is dropped.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(0, layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(0, layout.size());
        // SAFETY: as above.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(2, layout.size());
        // SAFETY: as above.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(1, size);
        // SAFETY: as above.
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }
}

const STATEMENTS: &[&str] = &[
    "INSERT INTO t SELECT g, g FROM generate_series(1, $n) g",
    "BEGIN",
    "UPDATE t SET v = v + 1",
    "COMMIT",
    "BEGIN",
    "UPDATE t SET v = v + 1",
    "ROLLBACK",
    "BEGIN",
    "INSERT INTO t SELECT g, g FROM generate_series($n + 1, 2 * $n) g",
    "COMMIT",
    "DELETE FROM t WHERE id > $n",
    "BEGIN",
    "DELETE FROM t",
    "ROLLBACK",
    "SELECT v, count(*) FROM t GROUP BY v ORDER BY v",
    "SELECT count(DISTINCT v) FROM t",
    "SELECT count(*) FROM t a JOIN t b ON a.v = b.v",
    "TRUNCATE t",
    "INSERT INTO t SELECT g, g FROM generate_series(1, $n) g",
    "DROP TABLE t",
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rows = arguments.next().unwrap_or_else(|| "2000000".into());
    let protocol = match arguments.next().as_deref() {
        Some("leap") => ProtocolKind::Leap,
        _ => ProtocolKind::TwoPhase,
    };
    let told = arguments.next().map_or(0, |told| told.parse().unwrap_or(1));
    // Like a node of the server.
    nix::sys::prctl::set_thp_disable(true).expect("every system can");
    give_back();
    let mut world = World::new(protocol);
    world.connect(1);
    world.must(1, "SET statement_memory = '8GB'");
    world.must(1, "CREATE TABLE t (id int PRIMARY KEY, v int)");
    println!("{rows} rows, {protocol:?}");
    println!("longest step: busy, wall; all of the statement; most units of a step");
    for text in STATEMENTS {
        measure(&mut world, &text.replace("$n", &rows), told);
    }
}

/// Gives freed memory back to the system as the program does, on a thread of its own.
fn give_back() {
    // SAFETY: no pointers are involved. 24 is `mi_option_arena_purge_mult`.
    unsafe { mi_option_set(24, 100) };
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(Duration::from_secs(10));
            // A thread that has no memory of its own gives none back.
            std::hint::black_box(Box::new(0));
            // SAFETY: as above.
            unsafe { mi_collect(true) };
        }
    });
}

/// A step: seconds, large blocks, units.
struct Step {
    number: usize,
    seconds: f64,
    /// Seconds of the step in which the thread ran: without other work of the machine.
    busy: f64,
    large: [usize; 3],
    blocks: [usize; 3],
    units: u64,
}

/// Seconds that this thread has run.
fn busy() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every system has it");
    time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9
}

/// Runs a statement, and the work that is left behind it.
fn measure(world: &mut World, text: &str, told: usize) {
    let mut outcome = Outcome::default();
    world.shard.take_step_units_max();
    let start = Instant::now();
    let (mut steps, mut over): (Vec<Step>, bool) = (Vec::with_capacity(1 << 16), false);
    LARGE.set([0; 3]);
    BLOCKS.set([0; 3]);
    let (mut before, mut busy_before) = (start, busy());
    world.say(1, text);
    loop {
        steps.push(Step {
            number: steps.len(),
            seconds: before.elapsed().as_secs_f64(),
            busy: busy() - busy_before,
            large: LARGE.replace([0; 3]),
            blocks: BLOCKS.replace([0; 3]),
            units: world.shard.take_step_units_max(),
        });
        over |= world.take(1, &mut outcome);
        if over && world.shard.deadline().is_none_or(|at| at > world.now) {
            break;
        }
        (before, busy_before) = (Instant::now(), busy());
        world.go_on(1);
    }
    assert_eq!(outcome.error, None, "{text}");
    let all = start.elapsed().as_secs_f64();
    let units = steps.iter().map(|step| step.units).max().unwrap_or(0);
    let longest = steps.iter().map(|step| step.seconds).fold(0.0, f64::max) * 1e3;
    steps.sort_by(|a, b| b.busy.total_cmp(&a.busy));
    let busiest = steps[0].busy * 1e3;
    println!("{busiest:7.1} ms {longest:7.1} ms {all:6.2} s {units:6}  {text}");
    for step in &steps[..told.min(steps.len())] {
        let [taken, grown, freed] = step.blocks;
        let large = step.large.map(|bytes| bytes >> 20);
        println!(
            "        {:7.1} ms, step {} of {}: {} units; {taken} blocks taken, {grown} grown, \
             {freed} freed; of 1 MiB and more {large:?} MiB",
            step.busy * 1e3,
            step.number,
            steps.len(),
            step.units
        );
    }
}
