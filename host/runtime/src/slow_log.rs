//! Writes statements that took long to the log: a limited number of lines, so that a flood of them
//! costs the shard little.

use crate::few_lines::FewLines;
use node::SlowStatement;
use std::time::{Duration, Instant};

/// Lines of a shard within [`SPAN`]; further statements are counted.
const LINES_MAX: u64 = 100;
const SPAN: Duration = Duration::from_secs(10);

/// The slow statements of one shard.
pub(crate) struct SlowLog(FewLines);

impl SlowLog {
    pub(crate) fn new() -> SlowLog {
        SlowLog(FewLines::new(LINES_MAX, SPAN))
    }

    pub(crate) fn write(&mut self, statements: Vec<SlowStatement>) {
        for slow in statements {
            let SlowStatement {
                pid,
                user,
                database,
                duration_us,
                text,
            } = slow;
            if self.0.may_write(Instant::now(), tell_rest) {
                let ms = duration_us / 1_000;
                tracing::warn!(
                    ms,
                    pid,
                    user = &*user,
                    database = &*database,
                    text,
                    "slow statement"
                );
            }
        }
    }

    /// Call it at times.
    pub(crate) fn tend(&mut self) {
        self.0.tend(Instant::now(), tell_rest);
    }
}

fn tell_rest(left_out: u64) {
    tracing::warn!("{left_out} more statements were slow");
}
