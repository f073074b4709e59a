//! `trellis paper`: repeats the evaluation of a paper with this server.
//!
//! Each figure is an experiment with a name. Points that two cores can carry run on a real cluster
//! of three nodes; the others in the scale model. What comes out are curves, and ratios within one
//! run: no absolute time is compared with anybody's.
//!
//! | part | content |
//! |---|---|
//! | `repetition` | a run: arguments, experiments in their order, the page |
//! | `figure`, `expect` | what a page consists of: figures, and expectations with verdicts |
//! | `model`, `plan`, `cluster`, `tries` | where numbers come from |
//! | `over` | what is cleared when a signal ends the process |
//! | `leap`, `rubato`, `dike`, `strudel` | the experiments of one paper each |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod cluster;
mod dike;
mod expect;
mod figure;
mod leap;
mod model;
mod over;
mod plan;
mod repetition;
mod rubato;
mod strudel;
mod tries;

use anyhow::Result;
use clap::{Args, Subcommand};
use repetition::{Lab, RunArgs, progress};

/// Arguments of `trellis paper`.
#[derive(Args)]
pub struct PaperArgs {
    #[command(subcommand)]
    command: PaperCommand,
}

#[derive(Subcommand)]
enum PaperCommand {
    /// "Towards a Non-2PC Transaction Management in Distributed Database Systems"
    #[command(after_help = leap::HELP)]
    Leap(RunArgs),
    /// "Rubato DB: a Highly Scalable Staged Grid Database System for OLTP and Big Data
    /// Applications"
    #[command(after_help = rubato::HELP)]
    Rubato(RunArgs),
    /// "How Good is the Distributed Databases in Supporting Transaction Processing" (Dike)
    #[command(after_help = dike::HELP)]
    Dike(RunArgs),
    /// "Strudel: Framework for Transaction Performance Analyses on SQL/NoSQL Systems"
    #[command(after_help = strudel::HELP)]
    Strudel(RunArgs),
}

/// Carries out `trellis paper`.
///
/// # Errors
/// No such figure, no such costs, or the report cannot be written. If a measurement fails the
/// others go on, the report says so, and it is an error at the end.
pub fn run(args: &PaperArgs) -> Result<()> {
    match &args.command {
        PaperCommand::Leap(args) => repetition::run(&leap::PAPER, args),
        PaperCommand::Rubato(args) => repetition::run(&rubato::PAPER, args),
        PaperCommand::Dike(args) => repetition::run(&dike::PAPER, args),
        PaperCommand::Strudel(args) => repetition::run(&strudel::PAPER, args),
    }
}
