//! The one command line of Trellis.

mod bench;
mod cluster_dir;
mod demo;
mod local_cluster;
mod paper;
mod signals;
mod sim;
mod sql;
mod start;
mod status;
mod stop;

use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;
use std::io::Write;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// Rows, programs and replies are many small allocations; the C library's allocator took 15 % of a
/// shard's time under TPC-C.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// A PostgreSQL-compatible distributed database whose transaction protocol is a choice per
/// database, and the benchmark that tells which choice fits.
#[derive(Parser)]
#[command(name = "trellis", version)]
#[command(
    after_help = "Begin with `trellis demo`, or with `trellis start --nodes 3 --data DIR`.\n\
    TRELLIS_LOG=info prints what a server does."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a cluster, load TPC-C, run it, prove the result, write a report
    Demo(demo::DemoArgs),
    /// Start a local cluster, or one node of a cluster
    Start(start::StartArgs),
    /// Tell which nodes of a local cluster run
    Status(status::StatusArgs),
    /// Stop a local cluster
    Stop(stop::StopArgs),
    /// Ask and change a database: a small interactive client
    Sql(sql::SqlArgs),
    /// Load, run and check a workload on any database with PostgreSQL's wire protocol
    Bench(bench::BenchArgs),
    /// Run clusters in virtual time, under faults, from a seed
    Sim(sim::SimArgs),
    /// Repeat the evaluation of a paper
    Paper(paper::PaperArgs),
}

fn main() -> ExitCode {
    let filter = EnvFilter::try_from_env("TRELLIS_LOG");
    let filter = filter.unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let result = match Cli::parse().command {
        Command::Demo(args) => demo::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Start(args) => start::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Status(args) => status::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Stop(args) => stop::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Sql(args) => sql::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Bench(args) => bench::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::Paper(args) => paper::run(&args).map(|()| ExitCode::SUCCESS),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "trellis: {error:#}");
            ExitCode::FAILURE
        }
    }
}
