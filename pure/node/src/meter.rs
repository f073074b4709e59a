//! How much a stage has done, and of late how long its queue was and how long its work took.
//!
//! ```text
//! count, time, queue ──> the window under way ──turn──> the window before ──turn──> forgotten
//!                                      └────── read: both together ──────┘
//! ```
//!
//! Times go into buckets, four to a power of two. So a percentile is read with an error of at most
//! a quarter, and noting a time costs a few instructions.

/// Length of a window in microseconds. A reading covers between one and two windows.
pub const WINDOW_US: u64 = 10_000_000;

/// Buckets of times: the last one begins at a minute.
const BUCKETS: usize = 140;

#[derive(Clone)]
struct Window {
    queue_max: u64,
    timed: u64,
    sum_ns: u64,
    buckets: [u32; BUCKETS],
}

impl Default for Window {
    fn default() -> Window {
        Window {
            queue_max: 0,
            timed: 0,
            sum_ns: 0,
            buckets: [0; BUCKETS],
        }
    }
}

/// The counts of one stage.
#[derive(Clone, Default)]
pub struct Meter {
    items: u64,
    ends_us: u64,
    present: Window,
    before: Window,
}

/// What a meter says.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Reading {
    /// Pieces of work since the start.
    pub items: u64,
    /// Longest queue that was noted in the last 10 to 20 seconds; 0: none was.
    pub queue_max: u64,
    /// Mean of the times of the last 10 to 20 seconds, nanoseconds; `None`: none was taken.
    pub mean_ns: Option<f64>,
    /// 99 of 100 of them were at most so long, nanoseconds, or up to a quarter less.
    pub p99_ns: Option<f64>,
}

impl Meter {
    /// Pieces of work are done, or taken up.
    #[inline]
    pub fn count(&mut self, items: u64) {
        self.items += items;
    }

    /// Pieces of work since the start.
    #[inline]
    pub fn items(&self) -> u64 {
        self.items
    }

    /// The queue is so long now.
    #[inline]
    pub fn queue(&mut self, length: u64) {
        self.present.queue_max = self.present.queue_max.max(length);
    }

    /// A piece of work took so long, or another value in place of a time.
    pub fn time(&mut self, ns: u64) {
        self.present.timed += 1;
        self.present.sum_ns += ns;
        self.present.buckets[bucket_of(ns)] += 1;
    }

    /// It is `now_us` now, by a clock that does not go back.
    #[inline]
    pub fn turn(&mut self, now_us: u64) {
        if now_us >= self.ends_us {
            self.turn_window(now_us);
        }
    }

    #[cold]
    fn turn_window(&mut self, now_us: u64) {
        let late = now_us >= self.ends_us.saturating_add(WINDOW_US);
        let ended = core::mem::take(&mut self.present);
        self.before = match late {
            true => Window::default(),
            false => ended,
        };
        self.ends_us = now_us + WINDOW_US;
    }

    /// What was counted and noted up to `now_us`.
    pub fn read(&mut self, now_us: u64) -> Reading {
        self.turn(now_us);
        let (one, other) = (&self.present, &self.before);
        let timed = one.timed + other.timed;
        let sum = (one.sum_ns + other.sum_ns) as f64;
        Reading {
            items: self.items,
            queue_max: one.queue_max.max(other.queue_max),
            mean_ns: (timed > 0).then(|| sum / timed as f64),
            p99_ns: (timed > 0).then(|| self.end_of(timed.div_ceil(100)) as f64),
        }
    }

    /// The smallest end of a bucket above which fewer than `above` of the times lie.
    fn end_of(&self, above: u64) -> u64 {
        let mut seen = 0;
        for at in (0..BUCKETS).rev() {
            seen += u64::from(self.present.buckets[at]) + u64::from(self.before.buckets[at]);
            if seen >= above {
                return bucket_end(at);
            }
        }
        0
    }
}

/// Bucket of a time. Below 4 ns each has its own.
fn bucket_of(ns: u64) -> usize {
    let Some(log) = ns.checked_ilog2().filter(|log| *log >= 2) else {
        return ns as usize;
    };
    let quarter = (ns >> (log - 2)) & 3;
    let at = 4 * (log as usize - 1) + quarter as usize;
    at.min(BUCKETS - 1)
}

/// The longest time in a bucket, but for the last one.
fn bucket_end(at: usize) -> u64 {
    if at < 4 {
        return at as u64;
    }
    let (log, quarter) = (at / 4 + 1, at as u64 % 4);
    ((5 + quarter) << (log - 2)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_at_most_a_quarter_below_the_end_of_its_bucket() {
        for ns in (0..5_000).chain((12..35).map(|log| (1 << log) + 77)) {
            let end = bucket_end(bucket_of(ns));
            assert!(
                ns <= end && end as f64 <= 1.25 * ns as f64 + 1.0,
                "{ns}: {end}"
            );
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        assert!((60_000_000_000..61_000_000_000).contains(&bucket_end(BUCKETS - 2)));
    }

    #[test]
    fn readings_cover_the_last_two_windows() {
        let mut meter = Meter::default();
        let start = 1_000 * WINDOW_US;
        meter.turn(start);
        for ns in 1..=1_000 {
            meter.count(1);
            meter.time(ns * 1_000);
        }
        meter.queue(7);
        let reading = meter.read(start + WINDOW_US);
        assert_eq!((reading.items, reading.queue_max), (1_000, 7));
        assert_eq!(reading.mean_ns, Some(500_500.0));
        let p99 = reading.p99_ns.unwrap();
        assert!((990_000.0..1_240_000.0).contains(&p99), "{p99}");
        meter.queue(3);
        meter.time(10);
        let reading = meter.read(start + 2 * WINDOW_US + 1);
        assert_eq!(reading.queue_max, 3, "the longer queue is forgotten");
        assert_eq!(reading.mean_ns, Some(10.0));
        let reading = meter.read(start + 9 * WINDOW_US);
        assert_eq!((reading.items, reading.queue_max), (1_000, 0));
        assert_eq!((reading.mean_ns, reading.p99_ns), (None, None));
    }
}
