//! Writes statements that took long to the log: a limited number of lines, so that a flood of them
//! costs the shard little.

use node::SlowStatement;
use std::time::{Duration, Instant};

/// Lines of a shard within [`SPAN`]; further statements are counted.
const LINES_MAX: u64 = 100;
const SPAN: Duration = Duration::from_secs(10);

/// The slow statements of one shard.
pub(crate) struct SlowLog {
    since: Instant,
    /// Statements since then.
    count: u64,
}

impl SlowLog {
    pub(crate) fn new() -> SlowLog {
        SlowLog {
            since: Instant::now(),
            count: 0,
        }
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
            if self.may_write(Instant::now()) {
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

    fn may_write(&mut self, now: Instant) -> bool {
        if now.duration_since(self.since) >= SPAN {
            let left_out = self.count.saturating_sub(LINES_MAX);
            if left_out > 0 {
                tracing::warn!("{left_out} more statements were slow");
            }
            (self.since, self.count) = (now, 0);
        }
        self.count += 1;
        self.count <= LINES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_a_few_lines() {
        let mut log = SlowLog::new();
        let start = log.since;
        let written = (0..1_000).filter(|_| log.may_write(start)).count();
        assert_eq!(written, LINES_MAX as usize);
        assert!(log.may_write(start + SPAN));
    }
}
