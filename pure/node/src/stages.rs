//! The rows of SHOW STAGES: how much each stage of a shard has done, and how long it took.

use crate::core::Core;
use base::{Datum, RowBatch};

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
/// Number of calls of a stage for one that is timed: reading a clock costs about as much as a point
/// read.
const SAMPLE_EVERY: u64 = 16;

#[derive(Clone, Copy, Default)]
struct Count {
    items: u64,
    calls: u64,
    samples: u64,
    sampled_ns: u64,
    queue_max: u64,
}

/// The counts of one shard.
pub(crate) struct Stages {
    counts: [Count; STAGES.len()],
    stopwatch: fn() -> u64,
    starts: u64,
}

impl Stages {
    pub(crate) fn new(stopwatch: fn() -> u64) -> Stages {
        Stages {
            counts: [Count::default(); STAGES.len()],
            stopwatch,
            starts: 0,
        }
    }

    pub(crate) fn count(&mut self, stage: Stage, items: u64) {
        let count = &mut self.counts[stage as usize];
        count.items += items;
        count.queue_max = count.queue_max.max(items);
    }

    /// Start of a call, if this one is timed.
    pub(crate) fn start(&mut self) -> Option<u64> {
        self.starts += 1;
        self.starts
            .is_multiple_of(SAMPLE_EVERY)
            .then(self.stopwatch)
    }

    /// End of a call of `stage`.
    pub(crate) fn stop(&mut self, stage: Stage, start: Option<u64>) {
        let count = &mut self.counts[stage as usize];
        count.calls += 1;
        if let Some(start) = start {
            count.samples += 1;
            count.sampled_ns += (self.stopwatch)().saturating_sub(start);
        }
    }

    /// SHOW STAGES: mean service time per timed call, NULL where a stage is not timed on its own.
    pub(crate) fn rows(&self, core: &Core, planned: u64) -> RowBatch {
        let mut batch = RowBatch::new(6);
        for (stage, name) in STAGES {
            let mut count = self.counts[stage as usize];
            match stage {
                Stage::Store => count.items = core.counters.rows_read + core.counters.rows_written,
                Stage::Plan => count.items = planned,
                Stage::Session | Stage::Execute | Stage::Transaction | Stage::Reply => {}
            }
            let service = match count.samples {
                0 => Datum::Null,
                samples => Datum::Int((count.sampled_ns / samples) as i64),
            };
            batch.push([
                text(&core.config.shard.to_string()),
                text(name),
                Datum::Int(count.items as i64),
                Datum::Int(count.queue_max as i64),
                Datum::Int(count.calls as i64),
                service,
            ]);
        }
        batch
    }
}

pub(crate) fn text(value: &str) -> Datum {
    Datum::Text(value.into())
}
