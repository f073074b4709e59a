//! A run for a person and for a program: a table, one JSON, one HTML file.
//!
//! A run whose consistency check failed has no number in any of them.

pub mod chart;
mod html;
mod json;
mod table;

pub use html::{COLOURS, escape, html, page};
pub use json::{check_json, history_json, json, verdict_json};
pub use table::{check_table, table};

use crate::run::RunReport;

/// The share of committed transactions that touched more than one node, by the server's count.
pub fn distributed_share(report: &RunReport) -> Option<f64> {
    let counter = |name: &str| report.counters.get(name).copied();
    let distributed = counter("txn_distributed")?;
    let all = distributed + counter("txn_shard_local")? + counter("txn_node_local")?;
    (all > 0).then(|| distributed as f64 / all as f64)
}

/// Whether the run was of TPC-C, which has measures of its own.
pub(crate) fn is_tpcc(report: &RunReport) -> bool {
    report.description.name == "tpcc"
}

/// NewOrder commits per minute; `None` when the run has no number or no NewOrder.
pub fn new_order_per_min(report: &RunReport) -> Option<f64> {
    (is_tpcc(report) && report.has_number()).then(|| report.per_minute(0))
}

/// tpmC: only with keying and think times, and only with a number.
pub fn tpmc(report: &RunReport) -> Option<f64> {
    new_order_per_min(report).filter(|_| report.paced)
}

/// The share of the highest tpmC that the warehouses can give (clause 4.2.2).
pub fn efficiency(report: &RunReport) -> Option<f64> {
    let named = |name: &str| {
        let found = report
            .description
            .parameters
            .iter()
            .find(|(key, _)| *key == name);
        found.and_then(|(_, value)| value.parse::<f64>().ok())
    };
    let highest = workload::tpcc::TPMC_PER_WAREHOUSE_MAX * named("warehouses")?;
    Some(tpmc(report)? / highest)
}

/// Whether percentiles may be shown: the run kept up with its arrivals and has a number.
pub fn has_percentiles(report: &RunReport) -> bool {
    report.overloaded.is_none() && report.has_number()
}
