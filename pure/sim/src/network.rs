//! Delays, cuts and slow links between nodes.

use base::Prng;
use std::collections::BTreeMap;

/// The ways between nodes, by index.
pub(crate) struct Network {
    prng: Prng,
    /// Median delay per direction, nanoseconds.
    median_ns: BTreeMap<(usize, usize), u64>,
    /// Cuts in force, with their number.
    cuts: BTreeMap<(usize, usize), u64>,
    slow: BTreeMap<(usize, usize), u64>,
}

impl Network {
    /// Ways between `nodes` nodes whose delays lie around `median_us`.
    pub(crate) fn new(mut prng: Prng, nodes: usize, median_us: u64) -> Network {
        let mut median_ns = BTreeMap::new();
        for from in 0..nodes {
            for to in 0..nodes {
                // Half to one and a half of it, each direction for itself.
                let of_median = 500 + prng.below(1_000);
                median_ns.insert((from, to), median_us * of_median);
            }
        }
        Network {
            prng,
            median_ns,
            cuts: BTreeMap::new(),
            slow: BTreeMap::new(),
        }
    }

    /// Draws how long something takes from one node to another.
    pub(crate) fn delay_ns(&mut self, from: usize, to: usize) -> u64 {
        let median = self.median_ns[&(from, to)] * self.slow.get(&(from, to)).unwrap_or(&1);
        // Most take about the median, one in 64 up to eight times as long.
        let spread = if self.prng.below(64) == 0 { 8 } else { 1 };
        median / 2 + self.prng.below(median * spread + 1)
    }

    /// Draws how long something takes between a client and a node.
    pub(crate) fn client_ns(&mut self) -> u64 {
        20_000 + self.prng.below(100_000)
    }

    pub(crate) fn is_cut(&self, from: usize, to: usize) -> bool {
        self.cuts.contains_key(&(from, to))
    }

    pub(crate) fn cut(&mut self, from: usize, to: usize, number: u64) {
        self.cuts.insert((from, to), number);
    }

    /// Ends the cut with this number; whether it was in force.
    pub(crate) fn mend(&mut self, from: usize, to: usize, number: u64) -> bool {
        let known = self.cuts.get(&(from, to)) == Some(&number);
        if known {
            self.cuts.remove(&(from, to));
        }
        known
    }

    /// Ends everything; the directions that were cut.
    pub(crate) fn heal(&mut self) -> Vec<(usize, usize)> {
        self.slow.clear();
        std::mem::take(&mut self.cuts).into_keys().collect()
    }

    pub(crate) fn slow_down(&mut self, from: usize, to: usize, factor: u64) {
        self.slow.insert((from, to), factor);
    }

    pub(crate) fn speed_up(&mut self, from: usize, to: usize) {
        self.slow.remove(&(from, to));
    }
}
