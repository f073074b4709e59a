//! The rows of SHOW STAGES: what each stage of a shard and of its node has done, how long its queue
//! is, and how long its work takes.

use crate::core::Core;
use crate::meter::{Meter, Reading};
use base::{Datum, RowBatch, Time};

/// A stage of a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Client messages.
    Session,
    /// Statements planned.
    Plan,
    /// Messages to transactions and polls of statements.
    Execute,
    /// Messages of protocols.
    Transaction,
    /// Rows read and written.
    Store,
    /// Messages to clients.
    Reply,
}

const STAGES: [(Stage, &str); 6] = [
    (Stage::Session, "session"),
    (Stage::Plan, "plan"),
    (Stage::Execute, "execute"),
    (Stage::Transaction, "transaction"),
    (Stage::Store, "store"),
    (Stage::Reply, "reply"),
];

/// Number of calls of a stage for one that is timed: reading a clock costs as much as a point read.
const SAMPLE_EVERY: u64 = 32;

/// Number of steps for one behind which the queues are looked at.
const LOOK_EVERY: u64 = 16;

/// Microseconds between two looks whether a window of the meters has ended.
const TURN_US: u64 = 1_000_000;

/// A stage of the host, as it tells of it.
#[derive(Clone, PartialEq, Debug)]
pub struct HostStage {
    /// Name of the stage.
    pub name: &'static str,
    /// Whether all shards of the node have it in common; then the first one tells of it.
    pub of_node: bool,
    /// What waits now.
    pub queue: u64,
    /// What was counted and noted.
    pub reading: Reading,
}

/// Tells of the stages of a host.
pub trait Host {
    /// What the stages of this shard's thread, and of the node if this is its first shard, have
    /// done.
    fn stages(&self) -> Vec<HostStage>;
}

/// Lengths of queues and counts that the shard knows when it is asked.
pub(crate) struct Now {
    /// Messages of clients that their sessions have not taken up.
    pub(crate) sessions: u64,
    /// Statements that wait for older transactions, or for another turn.
    pub(crate) statements: u64,
    /// Operations that wait.
    pub(crate) operations: u64,
    /// Statements that were planned.
    pub(crate) planned: u64,
    /// Mean conflict potential of the statements of late.
    pub(crate) potential: Option<f64>,
}

/// The counts of one shard.
pub(crate) struct Stages {
    meters: Box<[Meter; STAGES.len()]>,
    /// Number of steps of the shard.
    steps: u64,
    /// When the meters are turned next, microseconds.
    turn_us: u64,
    stopwatch: fn() -> u64,
    host: Option<Box<dyn Host>>,
}

impl Stages {
    pub(crate) fn new(stopwatch: fn() -> u64) -> Stages {
        Stages {
            meters: Box::default(),
            steps: 0,
            turn_us: 0,
            stopwatch,
            host: None,
        }
    }

    pub(crate) fn set_host(&mut self, host: Box<dyn Host>) {
        self.host = Some(host);
    }

    /// A step ends. Returns whether the queues are to be looked at.
    #[inline]
    pub(crate) fn wants_look(&mut self) -> bool {
        self.steps += 1;
        self.steps.is_multiple_of(LOOK_EVERY)
    }

    /// It is `now` now.
    #[inline]
    pub(crate) fn turn(&mut self, now: Time) {
        if now.0 >= self.turn_us {
            self.turn_us = now.0 + TURN_US;
            self.meters.iter_mut().for_each(|meter| meter.turn(now.0));
        }
    }

    #[inline]
    pub(crate) fn count(&mut self, stage: Stage, items: u64) {
        self.meters[stage as usize].count(items);
    }

    /// A queue in front of the stage is so long.
    #[inline]
    pub(crate) fn queue(&mut self, stage: Stage, length: usize) {
        self.meters[stage as usize].queue(length as u64);
    }

    /// Counts a piece of work, which begins. Returns its start, if this one is timed.
    #[inline]
    pub(crate) fn begin(&mut self, stage: Stage) -> Option<u64> {
        let meter = &mut self.meters[stage as usize];
        meter.count(1);
        let timed = meter.items().is_multiple_of(SAMPLE_EVERY);
        timed.then(self.stopwatch)
    }

    /// The piece of work that began at `start` is done.
    #[inline]
    pub(crate) fn end(&mut self, stage: Stage, start: Option<u64>) {
        if let Some(start) = start {
            let took_ns = (self.stopwatch)().saturating_sub(start);
            self.meters[stage as usize].time(took_ns);
        }
    }

    /// SHOW STAGES: (node, shard, stage, queue, queue_max, items_total, service_us_mean,
    /// service_us_p99, conflict_potential).
    pub(crate) fn rows(&mut self, core: &Core, now: &Now) -> RowBatch {
        let mut batch = RowBatch::new(9);
        let shard = core.config.shard;
        let node = Datum::Int(i64::from(shard.node().0));
        let shard = text(&shard.to_string());
        for (stage, name) in STAGES {
            let mut reading = self.meters[stage as usize].read(core.now.0);
            let mut potential = None;
            let queue = match stage {
                Stage::Session => Some(now.sessions),
                Stage::Plan => {
                    reading.items = now.planned;
                    None
                }
                Stage::Execute => {
                    potential = now.potential;
                    Some(now.statements)
                }
                Stage::Transaction => Some(now.operations),
                Stage::Store => {
                    reading.items = core.counters.rows_read + core.counters.rows_written;
                    None
                }
                Stage::Reply => None,
            };
            let row = Row {
                name,
                queue,
                reading,
                potential,
            };
            batch.push(row.cells(node.clone(), shard.clone()));
        }
        for stage in self.host.iter().flat_map(|host| host.stages()) {
            let row = Row {
                name: stage.name,
                queue: Some(stage.queue),
                reading: stage.reading,
                potential: None,
            };
            let shard = match stage.of_node {
                true => Datum::Null,
                false => shard.clone(),
            };
            batch.push(row.cells(node.clone(), shard));
        }
        batch
    }
}

/// A row of SHOW STAGES.
struct Row {
    name: &'static str,
    /// `None`: the stage has no queue.
    queue: Option<u64>,
    reading: Reading,
    potential: Option<f64>,
}

impl Row {
    fn cells(self, node: Datum, shard: Datum) -> [Datum; 9] {
        let number = |value: u64| Datum::Int(value as i64);
        let queue_max = self.queue.map(|now| self.reading.queue_max.max(now));
        let rounded = |value: f64, digits: f64| Datum::Float((value * digits).round() / digits);
        let micros = |ns: Option<f64>| ns.map_or(Datum::Null, |ns| rounded(ns / 1e3, 10.0));
        [
            node,
            shard,
            text(self.name),
            self.queue.map_or(Datum::Null, number),
            queue_max.map_or(Datum::Null, number),
            number(self.reading.items),
            micros(self.reading.mean_ns),
            micros(self.reading.p99_ns),
            self.potential
                .map_or(Datum::Null, |share| rounded(share, 1e3)),
        ]
    }
}

pub(crate) fn text(value: &str) -> Datum {
    Datum::Text(value.into())
}
