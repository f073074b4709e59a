//! The evaluation of "How Good is the Distributed Databases in Supporting Transaction Processing",
//! whose benchmark is Dike.
//!
//! | part | content |
//! |---|---|
//! | `bed` | three nodes of Trellis and the servers of others, with loaded tables |
//! | `ask` | one setting, run several times by `trellis bench run` |
//! | `natural` | figures 5, 6, 14 and 15: what TPC-C has by itself |
//! | `control` | figures 16, 17 and 18: what the controls do |
//! | `scale` | figures 19 and 20: what distribution costs, here and in the model |
//! | `contention` | figure 21 |
//! | `nine` | figures 17 a and 19 on nine nodes, in counts |
//! | `faults` | figure 22 |
//! | `balance` | figures 23 and 24 |
//! | `ground`, `expectations` | what the page says beside them |

mod ask;
mod balance;
mod bed;
mod contention;
mod control;
mod expectations;
mod faults;
pub(super) mod ground;
mod natural;
mod nine;
mod scale;

use crate::repetition::{Experiment, Paper, cluster_figure, model_figure};
use ask::{repeats, run_s};

pub(super) const HELP: &str = "Examples:
  trellis paper dike                   everything; about an hour on two idle cores
  trellis paper dike --quick           the same with one short run of each setting
  trellis paper dike --model-only      only what runs in virtual time
  trellis paper dike --figure 22       one (5, 6, 14-18, 19ab, 19cd, 19ef, nine, 20-22, 23-24)

Three nodes, clients and servers of others share this machine's cores; nine run at a low rate only.
Sizes from 3 to 15 nodes are those of the model.";

const INTRODUCTION: &str = "Figures of \u{201c}How Good is the Distributed Databases in Supporting \
    Transaction Processing\u{201d} (the benchmark Dike), redrawn from numbers of this server \
    under its three protocols, and of PostgreSQL and MariaDB, on one machine. The paper has \
    OceanBase, TiDB and CockroachDB on nine. Ratios within one run count, never an absolute \
    number.";

pub(super) const PAPER: Paper = Paper {
    name: "dike",
    title: "Dike, repeated",
    introduction: INTRODUCTION,
    experiments: &EXPERIMENTS,
    wanted: &expectations::WANTED,
    ground: ground::lines,
    model: ground::describe,
};

const EXPERIMENTS: [Experiment; 15] = [
    cluster_figure(
        "5",
        "TPC-C's own distribution",
        natural::about_5_s,
        natural::figure_5,
    ),
    cluster_figure(
        "6",
        "contention by skewed accesses",
        natural::about_6_s,
        natural::figure_6,
    ),
    model_figure(
        "14",
        "TPC-C's own distribution by nodes",
        natural::figure_14,
    ),
    cluster_figure(
        "15",
        "contention by the size of the data",
        natural::about_15_s,
        natural::figure_15,
    ),
    cluster_figure(
        "16",
        "cost of making contention",
        control::about_16_s,
        control::figure_16,
    ),
    cluster_figure(
        "17",
        "controls, asked for and seen",
        control::about_17_s,
        control::figure_17,
    ),
    cluster_figure(
        "18",
        "dynamic load and mix",
        control::about_18_s,
        control::figure_18,
    ),
    cluster_figure(
        "19ab",
        "ratio and degree",
        scale::about_19ab_s,
        scale::figure_19ab,
    ),
    cluster_figure(
        "19cd",
        "queries by degree",
        scale::about_19cd_s,
        scale::figure_19cd,
    ),
    cluster_figure(
        "19ef",
        "tables without binding and broadcast",
        scale::about_19ef_s,
        scale::figure_19ef,
    ),
    cluster_figure(
        "nine",
        "ratio and degree on nine nodes",
        nine::about_s,
        nine::figure,
    ),
    model_figure("20", "nodes", scale::figure_20),
    cluster_figure(
        "21",
        "throughput by contention",
        contention::about_s,
        contention::figure_21,
    ),
    cluster_figure("22", "availability", faults::about_s, faults::figure_22),
    cluster_figure(
        "23-24",
        "balance of data and work",
        balance::about_s,
        balance::figure_23,
    ),
];

/// Seconds that so many settings take, about, each as often as it is repeated.
fn settings_s(quick: bool, settings: usize) -> f64 {
    settings as f64 * f64::from(repeats(quick)) * run_s(quick)
}
