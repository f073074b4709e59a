//! How fast a cluster would be: the machine that ships, under a model of cores, links and disks.
//!
//! Tables are loaded while nothing takes time. Then the model is switched on, closed-loop clients
//! work, and after a warm-up everything is counted for a while of virtual time. The same options
//! and the same cost table give the same numbers.

mod load;
pub(crate) mod model;
#[cfg(test)]
mod tests;

pub use crate::costs::{AMOUNTS, Work};
pub use model::{CostTable, Stopwatch, Usage};

pub use load::homes;
pub use txn::Moves;
pub use workload::spread::{Mix, Spread, Unit};

use crate::executor::SimCx;
use crate::plan::{Plan, ProtocolKind, SCALE};
use crate::world::World;
use base::Prng;
use load::{Clients, Tally};
use model::Model;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use txn::counters::Counters;

/// Which protocol the database runs, and how.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum System {
    /// `leap`: rows move to the transaction.
    Leap,
    /// `formula`: timestamps and formulas order transactions.
    Formula,
    /// `two_phase`: transactions interleave, rows are locked.
    Interleaved,
    /// `two_phase` with `execution = 'serial'`: a transaction takes its shards whole.
    Serial,
}

impl System {
    /// What stands in `CREATE DATABASE ... WITH (...)`.
    pub fn options(self) -> &'static str {
        match self {
            System::Leap => "protocol = 'leap'",
            System::Formula => "protocol = 'formula'",
            System::Interleaved => "protocol = 'two_phase', execution = 'interleaved'",
            System::Serial => "protocol = 'two_phase', execution = 'serial'",
        }
    }

    /// In words, for reports.
    pub fn name(self) -> &'static str {
        match self {
            System::Leap => "leap",
            System::Formula => "formula",
            System::Interleaved => "two_phase interleaved",
            System::Serial => "two_phase serial",
        }
    }
}

/// One point of a curve.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScaleOptions {
    /// Nodes, 1 to 64.
    pub nodes: u16,
    /// Shards (cores) per node, 1 to 16.
    pub shards: u16,
    /// The protocol.
    pub system: System,
    /// What the clients do.
    pub mix: Mix,
    /// How much of it is elsewhere. Its `homes` are filled in here.
    pub spread: Spread,
    /// Clients per node; they connect to their own node.
    pub clients_per_node: u32,
    /// Settings with which they connect, as names and values.
    pub settings: Vec<(String, String)>,
    /// Whether clients make the pauses that TPC-C specifies: keying and think times (clause 5.2.5).
    pub paced: bool,
    /// Warehouses (parts) per node, dealt evenly to its shards.
    pub warehouses_per_node: u32,
    /// Rows of ITEM, and of STOCK per warehouse (key-value: rows per part).
    pub items: u32,
    /// Customers per district; of the full mix also the loaded orders.
    pub customers: u32,
    /// Virtual microseconds before anything counts.
    pub warmup_us: u64,
    /// Virtual microseconds that count.
    pub run_us: u64,
    /// Parts of the run that are told apart in [`Point::slices`]; 1 or more.
    pub slices: u32,
    /// Everything random follows from it.
    pub seed: u64,
}

/// A part of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Slice {
    /// Transactions that committed in it.
    pub commits: u64,
    /// Their mean latency, nanoseconds.
    pub latency_mean_ns: u64,
    /// Bytes of frames between nodes.
    pub frame_bytes: u64,
    /// Rows that arrived at another owner.
    pub moves: u64,
}

/// What was seen at one point.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Point {
    /// Committed transactions by kind: those of TPC-C in their order; reads and updates of
    /// records; all others in the first place.
    pub committed: [u64; 5],
    /// New orders that rolled back as their input says.
    pub rolled_back: u64,
    /// Attempts that the server ended and the client repeated.
    pub retries: u64,
    /// Nanoseconds from the first attempt to the answer of each transaction, ascending.
    pub latencies_ns: Vec<u64>,
    /// The same by kind.
    pub latencies_by_kind_ns: [Vec<u64>; 5],
    /// Transactions by the attempts that the client made.
    pub tries: BTreeMap<u64, u64>,
    /// Attempts that the server ended, by what it said: SQLSTATE and message.
    pub failures: BTreeMap<String, u64>,
    /// Bytes of rows in memory at the end, by node.
    pub row_bytes: Vec<u64>,
    /// The run in parts.
    pub slices: Vec<Slice>,
    /// Rows that moved, under a protocol that moves any. Sizes are those at the end.
    pub moves: Moves,
    /// What the machines counted.
    pub counters: Counters,
    /// What the model counted.
    pub usage: Usage,
}

impl Point {
    /// Committed transactions.
    pub fn commits(&self) -> u64 {
        self.committed.iter().sum()
    }

    /// The latency in nanoseconds that `per_mille` of 1,000 transactions stay below; 0 of none.
    pub fn latency_ns(&self, per_mille: usize) -> u64 {
        quantile(&self.latencies_ns, per_mille)
    }

    /// The same of the transactions of one kind.
    ///
    /// # Panics
    /// There are kinds 0 to 4.
    pub fn latency_of_kind_ns(&self, kind: usize, per_mille: usize) -> u64 {
        quantile(&self.latencies_by_kind_ns[kind], per_mille)
    }

    /// Mean latency in nanoseconds; 0 of none.
    pub fn latency_mean_ns(&self) -> u64 {
        let sum: u64 = self.latencies_ns.iter().sum();
        sum.checked_div(self.latencies_ns.len() as u64).unwrap_or(0)
    }
}

/// What `per_mille` of 1,000 ascending values stay below; 0 of none.
fn quantile(ascending: &[u64], per_mille: usize) -> u64 {
    let rank = (ascending.len() * per_mille).div_ceil(1_000).max(1);
    ascending.get(rank - 1).copied().unwrap_or(0)
}

const SECOND_NS: u64 = 1_000_000_000;
/// Loading takes no virtual time but for what waits for a clock.
const LOAD_NS: u64 = 3_600 * SECOND_NS;
const CONNECT_NS: u64 = 60 * SECOND_NS;

/// Runs one point.
///
/// # Errors
/// A text: clients that pause and do not run TPC-C, the cluster does not come up, loading fails,
/// or a client got a wrong answer.
pub fn measure(
    options: &ScaleOptions,
    table: &CostTable,
    watch: Option<Box<dyn Stopwatch>>,
) -> Result<Point, String> {
    if options.paced && !options.mix.is_tpcc() {
        return Err("only TPC-C says how long clients pause".to_owned());
    }
    let usage = Rc::new(RefCell::new(Usage {
        busy_ns: vec![0; usize::from(options.nodes)],
        ..Usage::default()
    }));
    let model = Model::new(table.clone(), usage.clone(), watch);
    let mut world = World::new(plan(options), None, Some(model));
    world.boot()?;
    world.healed = true;
    let cx = SimCx::new(world.shared.clone(), Prng::new(options.seed ^ 0x5ca1e));
    let clients = Rc::new(Clients::new(options));
    let (loading, loader) = (clients.clone(), cx.fork());
    let setup = cx.spawn(async move { loading.load(&loader).await });
    if !world.within(LOAD_NS, &mut |_| setup.is_finished()) {
        return Err(world.stuck("loading"));
    }
    world.result_of(&cx, setup)?;

    let count = u32::from(options.nodes) * options.clients_per_node;
    for number in 0..count {
        let (clients, cx_client) = (clients.clone(), cx.fork());
        cx.spawn(async move { clients.work(&cx_client, number).await });
    }
    let ready = clients.clone();
    if !world.within(CONNECT_NS, &mut |_| {
        ready.prepared() == count || ready.failed()
    }) {
        return Err(world.stuck("connecting"));
    }
    usage.borrow_mut().on = true;
    clients.start(world.now_ns);
    world.within(options.warmup_us * 1_000, &mut |_| false);
    usage.borrow_mut().clear();
    clients.take();
    let before = (world.counted(), world.moved());
    let mut point = Point::default();
    let slices = u64::from(options.slices.max(1));
    for number in 0..slices {
        let ends_us = |number| options.run_us * number / slices;
        let begun = (usage.borrow().frame_bytes, moves_of(&world.moved()));
        let length_us = ends_us(number + 1) - ends_us(number);
        world.within(length_us * 1_000, &mut |_| false);
        if let Some(text) = clients.wrong().or_else(|| world.broken.take()) {
            return Err(text);
        }
        let mut slice = point.take(clients.take());
        slice.frame_bytes = usage.borrow().frame_bytes - begun.0;
        slice.moves = moves_of(&world.moved()) - begun.1;
        point.slices.push(slice);
    }
    point.counters = world.counted().since(&before.0);
    point.moves = world.moved().since(&before.1);
    point.sort();
    point.usage = usage.borrow().clone();
    // The model stays on: clients to whom nothing takes time would never let time pass.
    let asking = cx.fork();
    let asked = cx.spawn(async move { load::row_bytes(&asking).await });
    if !world.within(CONNECT_NS, &mut |_| asked.is_finished()) {
        return Err(world.stuck("asking for memory"));
    }
    point.row_bytes = world.result_of(&cx, asked)?;
    Ok(point)
}

impl Point {
    fn sort(&mut self) {
        self.latencies_ns.sort_unstable();
        let by_kind = self.latencies_by_kind_ns.iter_mut();
        by_kind.for_each(|latencies| latencies.sort_unstable());
    }

    /// Adds what the clients counted in a slice.
    fn take(&mut self, tally: Tally) -> Slice {
        let commits: u64 = tally.committed.iter().sum();
        let latencies = || tally.latencies_ns.iter().flatten();
        let sum_ns: u64 = latencies().sum();
        let count = latencies().count() as u64;
        for (sum, more) in self.committed.iter_mut().zip(tally.committed) {
            *sum += more;
        }
        for (tries, count) in tally.tries {
            *self.tries.entry(tries).or_default() += count;
        }
        self.rolled_back += tally.rolled_back;
        self.retries += tally.retries;
        for (said, count) in tally.failures {
            *self.failures.entry(said).or_default() += count;
        }
        self.latencies_ns.extend(latencies());
        let by_kind = self.latencies_by_kind_ns.iter_mut();
        for (all, more) in by_kind.zip(&tally.latencies_ns) {
            all.extend(more);
        }
        Slice {
            commits,
            latency_mean_ns: sum_ns.checked_div(count).unwrap_or(0),
            ..Slice::default()
        }
    }
}

/// Rows that arrived, however they came.
fn moves_of(moves: &Moves) -> u64 {
    moves.rp_o + moves.r_po + moves.r_p_o
}

/// No faults, clocks that agree, no checkpoints.
fn plan(options: &ScaleOptions) -> Plan {
    Plan {
        seed: options.seed,
        workload: SCALE,
        protocol: ProtocolKind::TwoPhase,
        nodes: options.nodes,
        shards: options.shards,
        clients: u32::from(options.nodes) * options.clients_per_node,
        run_us: options.run_us,
        skew_us: 0,
        delay_us: 1,
        local_us: 1,
        sync_us: 1,
        loss: 0,
        duplicate: 0,
        reorder: 0,
        any_names: false,
        checkpoint_bytes: u64::MAX,
        segment_bytes: 1 << 26,
        faults: Vec::new(),
        stop_at: None,
    }
}

impl World {
    /// The sum of all shards' counters.
    fn counted(&self) -> Counters {
        let mut sum = Counters::default();
        self.machines().for_each(|shard| sum.add(&shard.counters()));
        sum
    }

    /// What all shards say of rows that move.
    fn moved(&self) -> Moves {
        let mut sum = Moves::default();
        self.machines().for_each(|shard| sum.add(&shard.moves()));
        sum
    }
}
