//! The demonstration of "Strudel: Framework for Transaction Performance Analyses on SQL/NoSQL
//! Systems": one workload on many stores.
//!
//! | part | content |
//! |---|---|
//! | `bed` | memory, servers of others, clusters of Trellis |
//! | `ask` | one document on one store, run several times |
//! | `updates` | figure 9: updates by the number of servers |
//! | `groups` | figures 10 and 11, back-off: transactions on one group |
//! | `auction` | figures 12 and 13 |
//! | `elastic` | elasticity and loads (section 8.7) |
//! | `sizes` | tables 1 and 2 |
//! | `ground`, `expectations` | what the page says beside them |
//!
//! What runs stands in `bench/experiments/strudel`, so that anybody can repeat a figure by
//! `trellis bench exp`.

mod ask;
mod auction;
mod bed;
mod elastic;
mod expectations;
mod ground;
mod groups;
mod sizes;
mod updates;

use crate::repetition::{Experiment, Paper, cluster_figure, model_figure};

pub(super) const HELP: &str = "Examples:
  trellis paper strudel                  everything; about an hour and a half on two idle cores
  trellis paper strudel --quick          the same with one short run of each setting
  trellis paper strudel --model-only     only what is counted: tables 1 and 2
  trellis paper strudel --figure 10      one (9, 10, 11, back-off, 12, 13, elasticity, bulk,
                                         table1, table2)

PostgreSQL, MariaDB, Redis and etcd are started where they are installed. The documents that run are
in bench/experiments/strudel. Tables 1 and 2 count the sources: run them in a checkout.";

const INTRODUCTION: &str = "The demonstration of \u{201c}Strudel: Framework for Transaction \
    Performance Analyses on SQL/NoSQL Systems\u{201d}, redrawn from numbers of memory, \
    PostgreSQL, MariaDB, Redis and etcd, and of this server under its three protocols, on one \
    machine. The paper has HBase, Omid, MongoDB, TokuMX and MySQL on up to ten servers. Ratios \
    within one run count, never an absolute number.";

pub(super) const PAPER: Paper = Paper {
    name: "strudel",
    title: "Strudel, repeated",
    introduction: INTRODUCTION,
    experiments: &EXPERIMENTS,
    wanted: &expectations::WANTED,
    ground: ground::lines,
    model: ground::describe,
};

const EXPERIMENTS: [Experiment; 10] = [
    cluster_figure(
        "9",
        "updates by servers",
        updates::about_s,
        updates::figure_9,
    ),
    cluster_figure(
        "10",
        "concurrency in a group",
        groups::about_10_s,
        groups::figure_10,
    ),
    cluster_figure(
        "11",
        "degree of conflict",
        groups::about_11_s,
        groups::figure_11,
    ),
    cluster_figure(
        "back-off",
        "back-off",
        groups::about_back_off_s,
        groups::back_off,
    ),
    cluster_figure(
        "12",
        "auction by users",
        auction::about_12_s,
        auction::figure_12,
    ),
    cluster_figure(
        "13",
        "response times",
        auction::about_13_s,
        auction::figure_13,
    ),
    cluster_figure(
        "elasticity",
        "elasticity",
        elastic::about_s,
        elastic::elasticity,
    ),
    cluster_figure("bulk", "loads", elastic::about_bulk_s, elastic::bulk),
    model_figure("table1", "sizes of stores", sizes::table_1),
    model_figure("table2", "sizes of workloads", sizes::table_2),
];
