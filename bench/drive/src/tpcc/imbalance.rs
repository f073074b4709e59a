//! How unevenly data and transactions of a run were dealt among warehouses (Dike, section 4.3).

use std::sync::atomic::{AtomicU64, Ordering};
use workload::dike::imbalance::{Homes, Imbalance};
use workload::finding::{Finding, Verdict};
use workload::stats::binomial_interval;
use workload::tpcc::Scale;
use workload::tpcc::input::Input;

/// How sure it is that the most frequent home stays within its bounds.
const COVERAGE: f64 = 0.999;

/// Which warehouses were homes of transactions.
#[derive(Debug)]
pub(super) struct Drawn(Vec<AtomicU64>);

impl Drawn {
    /// Of this many warehouses.
    pub(super) fn new(warehouses: u32) -> Drawn {
        let counts = std::iter::repeat_with(AtomicU64::default);
        Drawn(counts.take(warehouses as usize).collect())
    }

    /// A transaction was drawn.
    pub(super) fn note(&self, input: &Input) {
        let home = input.home() as usize;
        if let Some(count) = home.checked_sub(1).and_then(|at| self.0.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Adds what another process has drawn; both are of as many warehouses.
    pub(super) fn add(&self, counts: &[u64]) {
        for (sum, count) in self.0.iter().zip(counts) {
            sum.fetch_add(*count, Ordering::Relaxed);
        }
    }

    pub(super) fn counts(&self) -> Vec<u64> {
        let counts = self.0.iter();
        counts.map(|count| count.load(Ordering::Relaxed)).collect()
    }
}

/// What was asked for, and what came of it.
#[derive(Clone, Debug)]
pub struct ImbalanceReport {
    /// What was asked for.
    pub requested: Imbalance,
    /// Loaded districts of each warehouse.
    pub districts: Vec<u32>,
    /// Drawn transactions by the warehouse that is their home.
    pub homes: Vec<u64>,
    /// The share of each warehouse that was asked for; `None`: it changes in the course of the run.
    pub shares: Option<Vec<f64>>,
}

impl ImbalanceReport {
    pub(super) fn new(
        requested: Imbalance,
        scale: &Scale,
        homes: Option<&Homes>,
        follows_curve: bool,
        drawn: &Drawn,
    ) -> ImbalanceReport {
        let districts = scale.districts();
        ImbalanceReport {
            requested,
            districts: (1..=scale.warehouses)
                .map(|warehouse| districts.in_warehouse(warehouse))
                .collect(),
            homes: drawn.counts(),
            shares: homes.and_then(Homes::shares).filter(|_| !follows_curve),
        }
    }

    /// Whether the warehouse with the largest share got it.
    pub(super) fn finding(&self) -> Option<Finding> {
        let shares = self.shares.as_ref()?;
        let largest = shares.iter().copied().fold(0.0, f64::max);
        let at = shares.iter().position(|share| *share == largest)?;
        let drawn: u64 = self.homes.iter().sum();
        let (low, high) = binomial_interval(drawn, largest.min(1.0), COVERAGE);
        let percent = |count: u64| 100.0 * count as f64 / drawn.max(1) as f64;
        let seen = self.homes[at];
        Some(Finding {
            clause: "4.3.2",
            title: "transactions of the most frequent home",
            samples: drawn,
            observed: format!("{:.2} %", percent(seen)),
            allowed: format!("{:.2} to {:.2} %", percent(low), percent(high)),
            verdict: match (drawn, (low..=high).contains(&seen)) {
                (0, _) => Verdict::NotApplicable,
                (_, true) => Verdict::Passed,
                (_, false) => Verdict::Failed,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(homes: Vec<u64>) -> ImbalanceReport {
        ImbalanceReport {
            requested: Imbalance::default(),
            districts: vec![10, 10],
            homes,
            shares: Some(vec![0.9, 0.1]),
        }
    }

    #[test]
    fn a_share_that_was_missed_is_found() {
        let verdict = |homes| report(homes).finding().unwrap().verdict;
        assert_eq!(verdict(vec![9_010, 990]), Verdict::Passed);
        assert_eq!(verdict(vec![8_000, 2_000]), Verdict::Failed);
        assert_eq!(verdict(vec![0, 0]), Verdict::NotApplicable);
    }
}
