//! Checks and chores of the repository: `cargo xtask <command>`.
//!
//! | command | what it does |
//! |---|---|
//! | `ci` | everything that CI runs, step by step |
//! | `tidy` | what the compiler cannot check: dependencies, sizes, words, documents |
//! | `stores` | stores of entities: conformance, kills under load, workloads, in every mapping |
//! | `clients` | real clients against a cluster of three nodes, or against PostgreSQL |
//! | `slt` | the SQL files of test/sql, against the same two |
//! | `isolation` | the scripts of test/isolation, against PostgreSQL |
//! | `entities` | what the entity layer of the benchmark costs its client |
//! | `faults` | kills, stops and cuts on a real cluster, judged by how long clients wait |
//! | `differ postgres` | random statements on both, answers compared |
//! | `instructions` | what a point statement costs, counted by callgrind |
//! | `memory` | a node in a control group: what needs too much is refused, and the node lives |
//! | `shared-lines` | what the two halves of a workload of sessions share; sizes of adapters |
//! | `suites` | the own tests of SQLAlchemy and Django beside PostgreSQL 15 |
//! | `changes` | schema changes of a large table under load: p99 of the others, beside PostgreSQL |
//! | `large` | joins, sorts and groups of many rows beside PostgreSQL 15, times as ratios |
//! | `tpch` | the queries of TPC-H beside PostgreSQL 15: answers, and times as ratios |
//! | `compare postgres` | one node beside PostgreSQL 15, interleaved, with medians and ratios |
//!
//! Nothing here is part of the product, and nothing of the product is linked here: servers are
//! started as programs and reached through the wire.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what a chore prints is its product"
)]

mod beside;
mod changes;
mod ci;
mod clients;
mod compare;
mod differ;
mod entities;
mod faults;
mod ferretdb;
mod install;
mod instructions;
mod isolation;
mod large;
mod memory;
mod package;
mod packages;
mod repo;
mod servers;
mod shared_lines;
mod shell;
mod simulate;
mod speed;
mod stores;
mod suites;
mod tidy;
mod tpch;

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
  entities [--rounds N] [--seconds N]
                                   the entity layer against hand-written SQL on PostgreSQL: rates,
                                   instructions of the client; times on the store in memory
  faults [PROTOCOL] [--seconds N] [--csv FILE]
                                   kill, stop and part nodes of a real cluster while clients
                                   work; needs root, for a network namespace of its own
  instructions [--record] [--program FILE]
                                   count the instructions of point statements on one node
  memory                           send statements that need too much memory to a node in a
                                   control group of its size; groups need root
  shared-lines                     count what the entity half and the SQL half of workloads of
                                   sessions share, the auction at least 60 %; and the lines
                                   of the adapters of stores, each at most 600
  stores [NAME]...                 start each store of entities and judge it in every mapping:
                                   conformance, kills under load, micro and auction; fetches
                                   what is missing: Cassandra and HBase as jars, FerretDB as a
                                   Go module
  suites [sqlalchemy|sqlalchemy-dialect|django]...
                                   the own tests of SQLAlchemy and Django on one node: at least
                                   95 % of those that pass on PostgreSQL 15
  tpch [--scale F] [--nodes N] [--rounds N] [--only QUERY]... [--limit RATIO] [--program FILE]
                                   the queries of TPC-H on a cluster and on PostgreSQL 15:
                                   answers are compared, times are told as ratios
  changes [--rows N] [--rate N] [--nodes N] [--protocol NAME] [--program FILE]
                                   schema changes of a table of 1,000,000 rows under load, beside
                                   PostgreSQL 15; the p99 of others is at most doubled
  large [--rows N] [--rounds N] [--limit RATIO] [--program FILE]
                                   joins, sorts and groups of 1,000,000 rows on one node and on
                                   PostgreSQL 15; joins and sorts within 3 times its time
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
        "changes" => changes::main(rest),
        "clients" => clients::main(rest),
        "slt" => clients::slt_main(rest),
        "isolation" => isolation::main(rest),
        "entities" => entities::main(rest),
        "faults" => faults::main(rest),
        "differ" => differ::main(rest),
        "instructions" => instructions::main(rest),
        "large" => large::main(rest),
        "memory" => memory::run_all().map(drop),
        "package" => package::main(rest),
        "compare" => compare::main(rest),
        "shared-lines" => shared_lines::main(rest),
        "stores" => stores::main(rest),
        "suites" => suites::main(rest),
        "tpch" => tpch::main(rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        other => bail!("no command is called {other}\n{USAGE}"),
    }
}
