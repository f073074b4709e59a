//! The evaluation of "Rubato DB: a Highly Scalable Staged Grid Database System for OLTP and Big
//! Data Applications".

mod cluster;
mod conflicts;
mod expectations;
mod ground;
mod hot;
mod peers;
mod pgbench;
mod policies;
mod records;
mod scale;
mod terminals;
mod threads;

use crate::repetition::{Experiment, Paper, cluster_figure, model_figure};
use sim::scale::System;

/// The systems that are compared, on equal ground.
const SYSTEMS: [System; 3] = [System::Formula, System::Interleaved, System::Leap];

pub(super) const HELP: &str = "Examples:
  trellis paper rubato                   everything; three quarters of an hour on two idle cores
  trellis paper rubato --quick           the same with 4 nodes and short runs
  trellis paper rubato --model-only      only what runs in virtual time
  trellis paper rubato --figure 7        one (hot, policies, table2, 5-10, real, peers, pgbench)

Of the paper's peers in 9 and 10, MariaDB stands for MySQL and Redis for key-value stores (peers);
Cassandra and HBase are left out. Of figure 5 the
memory sizes are: a node here holds all rows in memory, so its use is shown instead.";

const INTRODUCTION: &str = "Figures of the evaluation of \u{201c}Rubato DB: a Highly Scalable \
    Staged Grid Database System for OLTP and Big Data Applications\u{201d}, redrawn from numbers \
    of this server. formula is what the paper calls FPC; two_phase interleaved and leap are \
    baselines that the paper does not have. Ratios within one run count, never an absolute number.";

pub(super) const PAPER: Paper = Paper {
    name: "rubato",
    title: "Rubato DB, repeated",
    introduction: INTRODUCTION,
    experiments: &EXPERIMENTS,
    wanted: &expectations::WANTED,
    ground: ground::lines,
    model: ground::describe,
};

const EXPERIMENTS: [Experiment; 12] = [
    model_figure("hot", "hot and cold counter", hot::hot),
    model_figure("policies", "policies of reads", policies::policies),
    model_figure("table2", "TPC-C by nodes", scale::table_2),
    model_figure("5", "terminals of one node", terminals::figure_5),
    model_figure("6", "terminals by nodes", terminals::figure_6),
    model_figure("7", "remote guest clients", conflicts::figure_7),
    cluster_figure(
        "8",
        "stages and threads",
        threads::about_s,
        threads::figure_8,
    ),
    model_figure("9", "read-intensive YCSB", records::figure_9),
    model_figure("10", "write-intensive YCSB", records::figure_10),
    cluster_figure("real", "real cluster", cluster::about_s, cluster::cluster),
    cluster_figure("peers", "servers of others", peers::about_s, peers::peers),
    cluster_figure("pgbench", "pgbench", pgbench::about_s, pgbench::pgbench),
];
