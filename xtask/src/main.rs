//! Checks and chores of the repository: `cargo xtask <command>`.
//!
//! | command | what it does |
//! |---|---|
//! | `ci` | everything that CI runs, step by step |
//! | `tidy` | what the compiler cannot check: dependencies, sizes, words, documents |
//! | `clients` | real clients against a cluster of three nodes, or against PostgreSQL |
//! | `slt` | the SQL files of test/sql, against the same two |
//! | `isolation` | the scripts of test/isolation, against PostgreSQL |
//! | `faults` | kills, stops and cuts on a real cluster, judged by how long clients wait |
//! | `differ postgres` | random statements on both, answers compared |
//! | `instructions` | what a point statement costs, counted by callgrind |
//! | `memory` | a node in a control group: what needs too much is refused, and the node lives |
//! | `compare postgres` | one node beside PostgreSQL 15, interleaved, with medians and ratios |
//!
//! Nothing here is part of the product, and nothing of the product is linked here: servers are
//! started as programs and reached through the wire.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what a chore prints is its product"
)]

mod ci;
mod clients;
mod compare;
mod differ;
mod faults;
mod install;
mod instructions;
mod isolation;
mod memory;
mod package;
mod repo;
mod servers;
mod shell;
mod simulate;
mod speed;
mod tidy;

use anyhow::{Result, bail};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  ci [--only STEP]...              run all steps of CI, or some of them
  tidy [--update]                  check the house rules; --update lowers the size ratchets
  tidy --reviewed DOCUMENT         record that a protocol document fits its messages again
  clients [--peer postgres] [NAME] run real clients against a cluster, or against PostgreSQL
  slt [--peer postgres] [FILE]     run test/sql/*.slt against a cluster, or against PostgreSQL
  isolation [SCRIPT]...            run test/isolation/specs/*.spec against PostgreSQL
  differ postgres [--seconds N] [--seed N] [--coverage FILE]
                                   random statements on a cluster and on PostgreSQL 15; what
                                   they answer is compared
  faults [PROTOCOL] [--seconds N] [--csv FILE]
                                   kill, stop and part nodes of a real cluster while clients
                                   work; needs root, for a network namespace of its own
  instructions [--record] [--program FILE]
                                   count the instructions of point statements on one node
  memory                           send statements that need too much memory to a node in a
                                   control group of its size; groups need root
  package --out DIR [--program FILE]
                                   a Debian package of the release build, and what a
                                   container is made of
  compare postgres [--quick] [--json FILE] [--only CELL] [--rounds N] [--seconds N] [--noise]
                                   measure one node beside PostgreSQL 15; with --noise
                                   measure PostgreSQL beside itself; with --built take the
                                   release build as it is";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<()> {
    let Some((command, rest)) = args.split_first() else {
        bail!("a command is missing\n{USAGE}");
    };
    match command.as_str() {
        "ci" => ci::main(rest),
        "tidy" => tidy::main(rest),
        "clients" => clients::main(rest),
        "slt" => clients::slt_main(rest),
        "isolation" => isolation::main(rest),
        "faults" => faults::main(rest),
        "differ" => differ::main(rest),
        "instructions" => instructions::main(rest),
        "memory" => memory::run_all().map(drop),
        "package" => package::main(rest),
        "compare" => compare::main(rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        other => bail!("no command is called {other}\n{USAGE}"),
    }
}
