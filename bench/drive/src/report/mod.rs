//! A run for a person and for a program: a table, one JSON, one HTML file.
//!
//! A run whose consistency check failed has no number in any of them.

mod boxes;
mod faults;
mod html;
mod json;
mod servers;
mod table;

pub use html::{COLOURS, escape, html, page};
pub use json::{check_json, history_json, json, verdict_json};
pub use servers::used;
pub use table::{check_table, table};

use crate::run::RunReport;

/// The share of committed transactions that touched more than one node, by the server's count.
pub fn distributed_share(report: &RunReport) -> Option<f64> {
    let counter = |name: &str| report.counters.get(name).copied();
    let distributed = counter("txn_distributed")?;
    let all = distributed + counter("txn_shard_local")? + counter("txn_node_local")?;
    (all > 0).then(|| distributed as f64 / all as f64)
}

/// Commits per minute of the kind that the workload is measured by; `None` when it has no measure
/// or the run has no number.
pub fn new_order_per_min(report: &RunReport) -> Option<f64> {
    let measure = report.description.measure?;
    report.has_number().then(|| report.per_minute(measure.kind))
}

/// tpmC: only with keying and think times, and only with a number.
pub fn tpmc(report: &RunReport) -> Option<f64> {
    new_order_per_min(report).filter(|_| report.paced)
}

/// The share of the highest tpmC that the sizes can give (clause 4.2.2).
pub fn efficiency(report: &RunReport) -> Option<f64> {
    Some(tpmc(report)? / report.description.measure?.per_minute_max)
}

/// What the clients used of their cores: of several workers, the busiest one.
fn client_share(report: &RunReport, share: f64) -> String {
    let (percent, cores) = (share * 100.0, report.client_cores);
    match report.workers.len() {
        0 => format!("{percent:.0} % of {cores} cores"),
        count => format!("{count} workers, the busiest with {percent:.0} % of its cores"),
    }
}

/// Whether percentiles may be shown: the run kept up with its arrivals and has a number.
pub fn has_percentiles(report: &RunReport) -> bool {
    report.overloaded.is_none() && report.has_number()
}
