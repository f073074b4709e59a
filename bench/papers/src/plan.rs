//! What a run has before it: the points that its figures want, and how long they will take.

use anyhow::Result;
use sim::scale::{Mix, ScaleOptions};
use std::time::{Duration, Instant};

/// A point of the model that a figure wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct WantedPoint {
    pub(super) options: ScaleOptions,
    /// One way, microseconds.
    pub(super) link_us: u64,
    /// A flush of nothing, microseconds; `None`: that of the costs.
    pub(super) flush_us: Option<u64>,
}

/// Transactions that a modelled core commits in a second, about: only for the time that is left.
const CORE_PER_S: u64 = 7_000;
/// What a transaction takes besides the links, microseconds; about.
const LOCAL_US: u64 = 1_000;
/// Time between two transactions of a client that pauses, microseconds; about.
const CYCLE_US: u64 = 21_000_000;

impl WantedPoint {
    /// In words, for the terminal.
    pub(super) fn title(&self) -> String {
        let options = &self.options;
        let locality = match options.spread.locality_percent {
            Some(percent) => format!(", locality {percent} %"),
            None => String::new(),
        };
        let settings = options.settings.iter();
        let settings: String = settings
            .map(|(name, value)| format!(", {name} {value}"))
            .collect();
        format!(
            "{}{settings}, {} nodes x {}, {} clients each, remote {} %{locality}",
            options.system.name(),
            options.nodes,
            options.shards,
            options.clients_per_node,
            options.spread.remote_percent,
        )
    }

    /// About how much there is to compute, in transactions: those of the run, and a third of one
    /// for each row that is loaded.
    pub(super) fn work(&self) -> u64 {
        let options = &self.options;
        let nodes = u64::from(options.nodes);
        let clients = nodes * u64::from(options.clients_per_node);
        let cores = nodes * u64::from(options.shards);
        let each_us = match options.paced {
            true => CYCLE_US,
            false => 4 * self.link_us + LOCAL_US + self.flush_us.unwrap_or(0),
        };
        let by_clients = clients * 1_000_000 / each_us;
        let per_s = by_clients.min(cores * CORE_PER_S);
        let run = per_s * (options.warmup_us + options.run_us) / 1_000_000;
        let warehouse = match options.mix {
            Mix::TpccPair | Mix::TpccFull | Mix::StockLevels => {
                u64::from(options.items) + 10 * u64::from(options.customers)
            }
            Mix::Ycsb { .. } | Mix::Record { .. } => u64::from(options.items),
            Mix::Counter { .. } | Mix::HotCold => 1,
        };
        let rows = nodes * u64::from(options.warehouses_per_node) * warehouse;
        run + rows / 3 + 1
    }
}

/// How far the run is, and how long it will take.
pub(super) struct Clock {
    began: Instant,
    /// Points in all, done, and the work of both.
    points: (usize, usize),
    work: (u64, u64),
    /// Seconds of one core for the work that is done.
    spent_s: f64,
    jobs: usize,
    /// Seconds that what is not of the model will take.
    besides_s: f64,
}

impl Clock {
    /// A run of these points, `jobs` at a time, and of `besides_s` seconds more.
    pub(super) fn start(points: &[WantedPoint], jobs: usize, besides_s: f64) -> Clock {
        Clock {
            began: Instant::now(),
            points: (points.len(), 0),
            work: (points.iter().map(WantedPoint::work).sum(), 0),
            spent_s: 0.0,
            jobs: jobs.max(1),
            besides_s,
        }
    }

    pub(super) fn done(&mut self, point: &WantedPoint, took: Duration, result: &str) -> Result<()> {
        self.points.1 += 1;
        self.work.1 += point.work();
        self.spent_s += took.as_secs_f64();
        crate::progress(&format!(
            "  [{} of {}, {} gone, about {} left] {}: {result} ({:.1} s)",
            self.points.1,
            self.points.0,
            minutes(self.began.elapsed().as_secs_f64()),
            minutes(self.left_s()),
            point.title(),
            took.as_secs_f64(),
        ))
    }

    /// Takes note that `s` of the seconds besides the model are over.
    pub(super) fn besides_done(&mut self, s: f64) {
        self.besides_s = (self.besides_s - s).max(0.0);
    }

    /// Seconds left, if the rest takes as long for its work as what is done did.
    fn left_s(&self) -> f64 {
        let left = self.work.0.saturating_sub(self.work.1) as f64;
        let each_s = self.spent_s / self.work.1.max(1) as f64;
        left * each_s / self.jobs as f64 + self.besides_s
    }

    /// A line with the time left, for what has no points.
    pub(super) fn say(&self, text: &str) -> Result<()> {
        crate::progress(&format!(
            "  [{} gone, about {} left] {text}",
            minutes(self.began.elapsed().as_secs_f64()),
            minutes(self.left_s()),
        ))
    }
}

/// Minutes and seconds.
pub(super) fn minutes(s: f64) -> String {
    let whole = s.round() as u64;
    format!("{}:{:02} min", whole / 60, whole % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::scale::{Spread, System};

    fn point(nodes: u16) -> WantedPoint {
        WantedPoint {
            options: ScaleOptions {
                nodes,
                shards: 1,
                system: System::Leap,
                mix: Mix::TpccPair,
                spread: Spread::new(Vec::new(), 10),
                clients_per_node: 16,
                settings: Vec::new(),
                paced: false,
                warehouses_per_node: 3,
                items: 1_000,
                customers: 30,
                warmup_us: 200_000,
                run_us: 100_000,
                slices: 1,
                seed: 1,
            },
            link_us: 50,
            flush_us: None,
        }
    }

    #[test]
    fn the_time_left_is_that_of_the_work_left() {
        let points = [point(4), point(8), point(4)];
        let mut clock = Clock::start(&points, 1, 30.0);
        clock.work.1 += points[0].work();
        clock.spent_s = 10.0;
        // Three times the work of the first, and what comes besides.
        assert_eq!(minutes(clock.left_s()), "1:00 min");
        clock.besides_done(30.0);
        clock.jobs = 2;
        assert_eq!(minutes(clock.left_s()), "0:15 min");
    }

    #[test]
    fn clients_that_wait_for_far_links_are_less_work() {
        let mut far = point(4);
        far.link_us = 10_000;
        assert!(far.work() < point(4).work());
    }
}
