//! What is measured, with the floor of each cell, and how samples become a verdict.

use super::{pgbench, tpcc};
use crate::servers::Server;
use anyhow::Result;

/// One way to load a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// A built-in script of pgbench, prepared statements.
    Pgbench {
        script: &'static str,
        synchronous_commit: bool,
    },
    /// pgbench's tables are made and filled; one part of that is measured, in rows per second.
    Load(LoadPart),
    /// TPC-C by our driver, closed loop.
    Tpcc,
}

/// See [`Work::Load`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LoadPart {
    /// The rows, in one COPY.
    Rows,
    /// The primary keys of tables with rows.
    Keys,
}

impl Work {
    pub(crate) fn is_pgbench(self) -> bool {
        matches!(self, Work::Pgbench { .. })
    }
}

/// One row of the comparison.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) name: &'static str,
    pub(crate) work: Work,
    pub(crate) clients: u32,
    /// As in the setting default_transaction_isolation.
    pub(crate) isolation: &'static str,
    /// Trellis must reach this share of PostgreSQL's throughput.
    pub(crate) floor: f64,
    /// What we want to reach.
    pub(crate) aim: f64,
}

const READ_COMMITTED: &str = "read committed";
const SERIALIZABLE: &str = "serializable";

const SELECT: Work = Work::Pgbench {
    script: "select-only",
    synchronous_commit: true,
};
const TPCB: Work = Work::Pgbench {
    script: "tpcb-like",
    synchronous_commit: true,
};
const TPCB_ASYNC: Work = Work::Pgbench {
    script: "tpcb-like",
    synchronous_commit: false,
};

const fn cell(
    name: &'static str,
    work: Work,
    clients: u32,
    isolation: &'static str,
    goals: (f64, f64),
) -> Cell {
    Cell {
        name,
        work,
        clients,
        isolation,
        floor: goals.0,
        aim: goals.1,
    }
}

/// Cells that are only reported.
const NO_FLOOR: (f64, f64) = (0.0, 0.0);

/// All rows.
pub(crate) const CELLS: &[Cell] = &[
    cell("select-only 4 rc", SELECT, 4, READ_COMMITTED, (0.9, 1.2)),
    cell("select-only 4 ser", SELECT, 4, SERIALIZABLE, (0.9, 1.2)),
    cell("tpcb fsync 4 rc", TPCB, 4, READ_COMMITTED, (1.0, 1.0)),
    cell("tpcb fsync 4 ser", TPCB, 4, SERIALIZABLE, (1.0, 1.0)),
    cell("tpcb fsync 64 rc", TPCB, 64, READ_COMMITTED, (1.5, 1.5)),
    cell("tpcb fsync 64 ser", TPCB, 64, SERIALIZABLE, (1.5, 1.5)),
    cell("tpcb async 4 rc", TPCB_ASYNC, 4, READ_COMMITTED, (1.2, 1.2)),
    cell("tpcb async 4 ser", TPCB_ASYNC, 4, SERIALIZABLE, (1.2, 1.2)),
    cell(
        "tpcc 4 warehouses 16 ser",
        Work::Tpcc,
        16,
        SERIALIZABLE,
        (2.0, 2.0),
    ),
    cell(
        "load rows",
        Work::Load(LoadPart::Rows),
        1,
        SERIALIZABLE,
        NO_FLOOR,
    ),
    cell(
        "load keys",
        Work::Load(LoadPart::Keys),
        1,
        SERIALIZABLE,
        NO_FLOOR,
    ),
];

/// Most of a server's transactions that may fail for good.
pub(crate) const FAILED_SHARE_MAX: f64 = 0.01;

/// One run of one server.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Sample {
    /// Transactions per second; NewOrder per minute for TPC-C; rows per second for loads.
    pub(crate) rate: f64,
    /// Mean of pgbench, median of TPC-C's driver.
    pub(crate) latency_ms: f64,
    /// Transactions that failed for good, as a share of all.
    pub(crate) failed_share: f64,
    /// Transactions that ran more than once, as a share of all.
    pub(crate) retried_share: f64,
}

/// Measures once.
pub(crate) fn sample(cell: &Cell, server: &Server, seconds: u32) -> Result<Sample> {
    match cell.work {
        Work::Pgbench {
            script,
            synchronous_commit,
        } => pgbench::sample(cell, script, synchronous_commit, server, seconds),
        Work::Load(part) => pgbench::sample_load(part, server),
        Work::Tpcc => tpcc::sample(cell, server, seconds),
    }
}

/// All samples of a cell; both lists have the same length.
pub(crate) struct Outcome {
    pub(crate) cell: &'static Cell,
    pub(crate) postgres: Vec<Sample>,
    pub(crate) trellis: Vec<Sample>,
}

impl Outcome {
    pub(crate) fn new(cell: &'static Cell) -> Outcome {
        Outcome {
            cell,
            postgres: Vec::new(),
            trellis: Vec::new(),
        }
    }

    /// Trellis to PostgreSQL, round by round.
    pub(crate) fn ratios(&self) -> Vec<f64> {
        let pairs = self.trellis.iter().zip(&self.postgres);
        pairs
            .map(|(trellis, postgres)| trellis.rate / postgres.rate)
            .collect()
    }

    /// The median of the ratios.
    pub(crate) fn ratio(&self) -> f64 {
        median(&self.ratios())
    }

    /// The worst share of failed transactions of Trellis.
    pub(crate) fn failed_share(&self) -> f64 {
        self.trellis
            .iter()
            .map(|sample| sample.failed_share)
            .fold(0.0, f64::max)
    }

    /// Whether the floor is reached without failing transactions.
    pub(crate) fn is_met(&self) -> bool {
        self.ratio() >= self.cell.floor && self.failed_share() < FAILED_SHARE_MAX
    }
}

/// The middle value, or the mean of the two in the middle; NaN of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[count / 2],
        count => (sorted[count / 2 - 1] + sorted[count / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(rates: &[f64]) -> Vec<Sample> {
        rates
            .iter()
            .map(|rate| Sample {
                rate: *rate,
                ..Sample::default()
            })
            .collect()
    }

    #[test]
    fn neighbours_are_compared_not_medians() {
        let outcome = Outcome {
            cell: &CELLS[0],
            postgres: samples(&[100.0, 10.0, 1000.0]),
            trellis: samples(&[110.0, 12.0, 800.0]),
        };
        assert_eq!(outcome.ratios(), [1.1, 1.2, 0.8]);
        assert_eq!(outcome.ratio(), 1.1);
        assert!(outcome.is_met());
        assert_eq!(median(&[1.0, 4.0]), 2.5);
    }

    #[test]
    fn failing_transactions_void_a_good_ratio() {
        let mut outcome = Outcome {
            cell: &CELLS[0],
            postgres: samples(&[1.0]),
            trellis: samples(&[9.0]),
        };
        outcome.trellis[0].failed_share = 0.02;
        assert!(!outcome.is_met());
        let none = Outcome::new(&CELLS[0]);
        assert!(!none.is_met());
    }
}
