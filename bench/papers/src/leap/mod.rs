//! The evaluation of "Towards a Non-2PC Transaction Management in Distributed Database Systems".

mod counter;
mod expectations;
mod ground;
mod latency;
mod locality;
mod nodes;
mod real;
mod remote;
mod steps;
mod threads;
mod transfers;

use crate::model::Model;
use crate::repetition::{Experiment, Paper, cluster_figure, model_figure};
use sim::scale::System;

/// The systems that are compared, on equal ground.
const SYSTEMS: [System; 3] = [System::Leap, System::Interleaved, System::Serial];

pub(super) const HELP: &str = "Examples:
  trellis paper leap                     everything; half an hour on two idle cores
  trellis paper leap --quick             the same with 4 nodes and short runs
  trellis paper leap --model-only        only what runs in virtual time
  trellis paper leap --figure 9          one (8-17, 20, table1, counter, hotspot, real)

Figure 14.b and the comparison with Tell (18, 19) are left out.";

const INTRODUCTION: &str = "Figures of the evaluation of \u{201c}Towards a Non-2PC Transaction \
    Management in Distributed Database Systems\u{201d}, redrawn from numbers of this server. leap \
    is what the paper calls L-Store; two_phase serial runs a shard the H-Store way; two_phase \
    interleaved is the baseline that the paper does not have. Ratios within one run count, never \
    an absolute number.";

pub(super) const PAPER: Paper = Paper {
    name: "leap",
    title: "LEAP, repeated",
    introduction: INTRODUCTION,
    experiments: &EXPERIMENTS,
    wanted: &expectations::WANTED,
    ground: ground::lines,
    model: Model::describe,
};

const EXPERIMENTS: [Experiment; 15] = [
    model_figure("8", "threads", threads::figure_8),
    model_figure("9", "remote accesses", remote::figure_9),
    model_figure("table1", "aborts and tries", remote::table_1),
    model_figure("10", "locality", locality::figure_10),
    model_figure("11", "intermediate results", steps::figure_11),
    model_figure("12", "repartitioning", locality::figure_12),
    model_figure("13", "access pattern", locality::figure_13),
    model_figure("14", "scalability", nodes::figure_14),
    model_figure("15", "transfers by case", transfers::figure_15),
    model_figure("16", "expected latency", latency::figure_16),
    model_figure("17", "local transactions", threads::figure_17),
    model_figure("20", "owner tables", transfers::figure_20),
    model_figure("counter", "hot counter", counter::counter),
    model_figure("hotspot", "long hot spot", counter::hotspot),
    cluster_figure("real", "real cluster", real::about_s, real::cluster),
];
