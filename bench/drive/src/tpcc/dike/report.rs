//! How the transactions of a run were distributed, beside what was asked for.

use std::collections::{BTreeMap, BTreeSet};
use workload::dike::{Mode, Wanted};
use workload::finding::{Finding, Verdict};
use workload::tpcc::Kind;

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
    /// Share of the drawn transactions of the kinds that can be distributed, that are.
    pub drawn_ratio: f64,
    /// Share of the drawn transactions that are distributed, of each kind that can be and that was
    /// drawn, with their number.
    pub drawn: Vec<(Kind, u64, f64)>,
    /// Committed NewOrders.
    pub new_orders: u64,
    /// NewOrders of `unknown`.
    pub new_orders_unknown: u64,
    /// Committed transactions of the kinds that can be distributed.
    pub distributable: u64,
    /// The same of `unknown`.
    pub distributable_unknown: u64,
    /// Changes of rows that each node has.
    pub broadcasts: Option<Broadcasts>,
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

/// Changes of rows that each node has: they touch all nodes, whatever degree was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Broadcasts {
    /// Nodes that have the rows.
    pub nodes: u64,
    /// Committed ones.
    pub committed: u64,
    /// Those that may have committed.
    pub unknown: u64,
}

impl Broadcasts {
    /// As many as count with several nodes.
    fn several(self) -> [u64; 2] {
        match self.nodes > 1 {
            true => [self.committed, self.unknown],
            false => [0, 0],
        }
    }
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
        let others: u64 = others.map(|(_, count)| count).sum();
        // A change of rows that each node has is never asked for with a degree.
        let broadcasts = self.broadcasts.unwrap_or_default();
        Some(match [1, wanted].contains(&broadcasts.nodes) {
            true => others,
            false => others.saturating_sub(broadcasts.committed + broadcasts.unknown),
        })
    }

    /// The share of the committed transactions that can be distributed, whose inputs have several
    /// nodes.
    pub fn ratio_committed(&self) -> Option<f64> {
        let [broadcasts, _] = self.broadcasts.unwrap_or_default().several();
        let distributed = several(self.committed.as_ref()?).saturating_sub(broadcasts);
        Some(distributed as f64 / self.distributable.max(1) as f64)
    }

    /// The share of the transactions that can be distributed, that touched several nodes as the
    /// server counts. Those with an unknown outcome are taken for committed, so the share is at
    /// most 1 and may be a little low.
    pub fn ratio_observed(&self) -> Option<f64> {
        let [committed, unknown] = self.broadcasts.unwrap_or_default().several();
        let all = self.distributable + self.distributable_unknown;
        let several = several(self.observed_by_server.as_ref()?);
        let distributed = several.saturating_sub(committed + unknown);
        Some(distributed as f64 / all.max(1) as f64)
    }
}

/// Transactions that touch several nodes.
fn several(histogram: &Degrees) -> u64 {
    histogram.range(2..).map(|(_, count)| count).sum()
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
        allowed: match report.broadcasts {
            Some(Broadcasts { nodes, .. }) => {
                format!("1 or {}; broadcasts {nodes}", report.requested.degree)
            }
            None => format!("1 or {}", report.requested.degree),
        },
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
