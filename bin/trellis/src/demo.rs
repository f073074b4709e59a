//! `trellis demo`: a cluster of processes, TPC-C on it, its proof, and a report.

use crate::bench::{print_report, rate, write_reports};
use anyhow::{Context, Result, bail};
use catalog::ProtocolKind;
use clap::Args;
use drive::outputs;
use drive::tpcc::{self, LoadOptions, RunOptions};
use links::view::{Progress, Screen};
use local_cluster::dir::{CLUSTER_FILE, cluster_file, free_addresses, random};
use local_cluster::{Interrupt, LocalCluster, Settings, Started, connect, url};
use runtime::ClusterFile;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `trellis demo`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    trellis demo                              three nodes, three warehouses, 20 seconds\n  \
    trellis demo --seconds 60 --clients 32    longer, with more terminals\n  \
    trellis demo --protocol leap              rows move to the transactions\n  \
    trellis demo --rate 200 --json out.json   open loop: 200 transactions a second are due")]
pub(crate) struct DemoArgs {
    /// Node processes
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=64))]
    nodes: u16,
    /// Shards per node [default: one for every two cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=16))]
    shards: Option<u16>,
    /// TPC-C warehouses to load
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    warehouses: u32,
    /// Measured seconds, after 2 seconds of warm-up
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Connections
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    clients: u32,
    /// Open loop: so many transactions are due per second [default: closed loop]
    #[arg(long, value_parser = rate)]
    rate: Option<f64>,
    /// Transaction protocol of the database: two_phase, leap, formula
    #[arg(long, default_value = "two_phase")]
    protocol: ProtocolKind,
    /// Where the result goes as JSON
    #[arg(long, value_name = "FILE", default_value = "trellis-demo.json")]
    json: PathBuf,
    /// Where the report goes as one HTML page
    #[arg(long, value_name = "FILE", default_value = "trellis-demo.html")]
    report: PathBuf,
    /// Directory of the cluster [default: a fresh temporary one]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Leave the cluster's directory behind (a temporary one is removed otherwise)
    #[arg(long)]
    keep: bool,
}

/// Runs the demo; the error says what failed.
pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    outputs::check([args.json.as_path(), &args.report])?;
    let dir = match &args.data {
        Some(dir) => dir.clone(),
        None => std::env::temp_dir().join(format!("trellis-demo-{:016x}", random())),
    };
    let path = dir.join(CLUSTER_FILE);
    if path.exists() {
        bail!(
            "{} already holds a cluster; the demo needs a fresh directory (--data names one, \
             without it a temporary one is made)",
            dir.display()
        );
    }
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let is_ours = args.data.is_none() && !args.keep;
    let interrupt = Interrupt::watch(&dir, is_ours)?;
    let result = run_in(args, &dir, &path, &interrupt);
    interrupt.give_way();
    if is_ours {
        std::fs::remove_dir_all(&dir)
            .with_context(|| format!("cannot remove {}", dir.display()))?;
    } else {
        let dir = dir.display();
        writeln!(
            std::io::stdout(),
            "the cluster is in {dir}; trellis start --data {dir}"
        )?;
    }
    result
}

fn run_in(args: &DemoArgs, dir: &Path, path: &Path, interrupt: &Interrupt) -> Result<()> {
    cluster_file(&free_addresses(args.nodes)?, args.shards).write(path)?;
    let file = ClusterFile::read(path)?;
    let mut screen = Screen::new(std::io::stdout(), std::io::stdout().is_terminal());
    screen.stage(&format!(
        "starting {} with {} each in {}",
        count(args.nodes, "node"),
        count(file.shards, "shard"),
        dir.display()
    ));
    let settings = Settings::default();
    let started = LocalCluster::start(path, &file, &settings, &mut || interrupt.has_arrived())?;
    let Started::Ready(mut cluster) = started else {
        return Ok(());
    };
    let outcome = measure(args, &file, &mut screen);
    interrupt.give_way();
    if let Some(ended) = cluster.take_ended()? {
        bail!("{ended}; its message is above");
    }
    screen.stage("stopping the nodes");
    cluster.stop()?;
    outcome
}

fn count(number: u16, name: &str) -> String {
    format!("{number} {name}{}", if number == 1 { "" } else { "s" })
}

fn measure(args: &DemoArgs, file: &ClusterFile, screen: &mut dyn Progress) -> Result<()> {
    let mut link = connect(&file.nodes[0], "postgres")?;
    let protocol = args.protocol.name();
    link.command(&format!(
        "CREATE DATABASE tpcc WITH (protocol = '{protocol}')"
    ))?;
    link.close();
    let url = url(&file.nodes, "tpcc");
    tpcc::load(&LoadOptions::new(&url, args.warehouses), screen)?;
    let mut options = RunOptions::new(&url);
    options.runner.clients = args.clients;
    options.runner.rate = args.rate;
    options.runner.length = Duration::from_secs(args.seconds);
    let report = tpcc::run(&options, screen)?;
    print_report(&report)?;
    let json = drive::report::json(&report);
    write_reports(&report, &json, Some(&args.json), Some(&args.report))?;
    if !report.passed() {
        bail!(
            "the run failed its checks; {} says which",
            args.report.display()
        );
    }
    Ok(())
}
