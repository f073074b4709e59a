//! The client's own use of processor time, so that a slow client is not taken for a slow database.

use nix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Clock ticks per second in `/proc`, fixed at 100 by Linux for every architecture in use.
const TICKS_PER_S: f64 = 100.0;

/// Processor time of this process and when it was read.
#[derive(Clone, Copy, Debug)]
pub struct CpuReading {
    at: Instant,
    used: Duration,
}

impl CpuReading {
    /// Reads it; `None` on systems without `/proc`.
    pub fn now() -> Option<CpuReading> {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        Some(CpuReading {
            at: Instant::now(),
            used: parse(&stat)?,
        })
    }

    /// The share of all cores used since `earlier`, 0 to 1.
    pub fn share_since(&self, earlier: &CpuReading, cores: usize) -> f64 {
        let wall = (self.at - earlier.at).as_secs_f64() * cores as f64;
        (self.used.saturating_sub(earlier.used)).as_secs_f64() / wall.max(1e-6)
    }
}

/// User and system time from the text of `/proc/<pid>/stat`. The name in parentheses may hold
/// spaces, so fields are counted after its end.
fn parse(stat: &str) -> Option<Duration> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: f64 = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(Duration::from_secs_f64(ticks / TICKS_PER_S))
}

/// Processor time of this thread so far, in microseconds.
pub fn thread_us() -> Option<u64> {
    let used = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok()?;
    Some(Duration::from(used).as_micros() as u64)
}

/// Cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_after_a_name_with_spaces() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 900 0 0 0 150 50 0 0 20 0 1 0 100 0 0";
        assert_eq!(parse(stat), Some(Duration::from_secs(2)));
        assert_eq!(parse("nonsense"), None);
    }
}
