//! How the transactions of a run were distributed, beside what was asked for.

use std::collections::{BTreeMap, BTreeSet};
use workload::dike::{Mode, Wanted};
use workload::finding::{Finding, Verdict};

/// Transactions by the number of nodes that they touch.
pub type Degrees = BTreeMap<u64, u64>;

/// How the transactions of a run were distributed.
#[derive(Clone, Debug)]
pub struct DistributionReport {
    /// What was asked for.
    pub requested: Wanted,
    /// Mean number of warehouses of a distributed transaction.
    pub keys: f64,
    /// The nodes that the paper's equation 2 expects of so many, rounded down.
    pub paper_degree: f64,
    /// Nodes with a warehouse.
    pub nodes: usize,
    /// Share of the drawn NewOrders that are distributed.
    pub drawn_ratio: f64,
    /// Committed NewOrders: only these are distributed.
    pub new_orders: u64,
    /// NewOrders of `unknown`.
    pub new_orders_unknown: u64,
    /// Of committed transactions, by their inputs; `None`: nobody knows where warehouses lie.
    pub committed: Option<Degrees>,
    /// The same of transactions that may have committed: with an unknown outcome, or with an answer
    /// that was found wrong, which may have been that of the commit.
    pub unknown: Option<Degrees>,
    /// Of committed transactions, as the server has counted them; `None`: it has not told.
    pub observed_by_server: Option<Degrees>,
    /// Why it has not told.
    pub not_told: Option<String>,
}

impl DistributionReport {
    /// Transactions of which the server says another number of nodes than their inputs; `None`:
    /// one of both is not known.
    pub fn wrong(&self) -> Option<u64> {
        let (committed, unknown) = (self.committed.as_ref()?, self.unknown.as_ref()?);
        let server = self.observed_by_server.as_ref()?;
        let count = |all: &Degrees, nodes: u64| all.get(&nodes).copied().unwrap_or(0);
        let all = [committed, unknown, server];
        let nodes: BTreeSet<u64> = all.into_iter().flat_map(Degrees::keys).copied().collect();
        let wrong = nodes.into_iter().map(|nodes| {
            let least = count(committed, nodes);
            let most = least + count(unknown, nodes);
            let seen = count(server, nodes);
            least.saturating_sub(seen) + seen.saturating_sub(most)
        });
        Some(wrong.sum())
    }

    /// Transactions whose inputs have neither one node nor the degree that was asked for, where
    /// that is exact; `None`: it is not, or nobody knows where warehouses lie.
    pub fn not_requested(&self) -> Option<u64> {
        if self.requested.mode != Mode::Exact {
            return None;
        }
        let wanted = u64::from(self.requested.degree);
        let all = self
            .committed
            .as_ref()?
            .iter()
            .chain(self.unknown.as_ref()?);
        let others = all.filter(|(nodes, _)| ![1, wanted].contains(nodes));
        Some(others.map(|(_, count)| count).sum())
    }

    /// The share of the committed NewOrders whose inputs have several nodes.
    pub fn ratio_committed(&self) -> Option<f64> {
        Some(several(self.committed.as_ref()?) / self.new_orders.max(1) as f64)
    }

    /// The share of the NewOrders that touched several nodes, as the server counts. Those with an
    /// unknown outcome are taken for committed, so the share is at most 1 and may be a little low.
    pub fn ratio_observed(&self) -> Option<f64> {
        let orders = self.new_orders + self.new_orders_unknown;
        Some(several(self.observed_by_server.as_ref()?) / orders.max(1) as f64)
    }
}

/// Transactions that touch several nodes.
fn several(histogram: &Degrees) -> f64 {
    histogram.range(2..).map(|(_, count)| count).sum::<u64>() as f64
}

/// Judges the nodes that inputs have beside what was asked for.
pub(super) fn input_finding(report: &DistributionReport) -> Finding {
    let histograms = [&report.committed, &report.unknown];
    let counts = histograms.into_iter().flatten().flat_map(Degrees::values);
    let not_requested = report.not_requested();
    Finding {
        clause: "4.2.1",
        title: "nodes of the inputs, as requested",
        samples: counts.sum(),
        observed: match not_requested {
            Some(others) => format!("{others} others"),
            None => "not known".into(),
        },
        allowed: format!("1 or {}", report.requested.degree),
        verdict: verdict(not_requested),
    }
}

/// Judges the nodes that the server has counted beside those of the inputs.
pub(super) fn server_finding(report: &DistributionReport) -> Finding {
    let counts = report.observed_by_server.iter().flat_map(Degrees::values);
    let wrong = report.wrong();
    Finding {
        clause: "4.2.1",
        title: "nodes touched, as the server counts",
        samples: counts.sum(),
        observed: match (wrong, &report.not_told) {
            (Some(wrong), _) => format!("{wrong} wrong"),
            (None, Some(reason)) => format!("not told: {reason}"),
            (None, None) => "not told".into(),
        },
        allowed: "0 wrong".into(),
        verdict: verdict(wrong),
    }
}

fn verdict(faults: Option<u64>) -> Verdict {
    match faults {
        Some(0) => Verdict::Passed,
        Some(_) => Verdict::Failed,
        None => Verdict::NotApplicable,
    }
}
