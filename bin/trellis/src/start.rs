//! `trellis start`: one node in this process, or a local cluster of child processes.

use crate::cluster_dir::{self, Shape};
use crate::local_cluster::LocalCluster;
use anyhow::{Context, Result, bail};
use base::NodeId;
use clap::Args;
use runtime::{ClusterFile, NodeProcess};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `trellis start`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    trellis start --nodes 3 --data ./cluster      a local cluster; Ctrl-C stops it\n  \
    trellis start --node 2 --cluster cluster.toml one node of a cluster, in the foreground")]
pub(crate) struct StartArgs {
    /// Number of nodes of a local cluster
    #[arg(long, default_value_t = 1, conflicts_with = "node")]
    nodes: u16,
    /// Directory of a local cluster; made on first use
    #[arg(long, required_unless_present = "node", conflicts_with = "node")]
    data: Option<PathBuf>,
    /// Shards per node of a new cluster [default: one per core]
    #[arg(long, conflicts_with = "node")]
    shards: Option<u16>,
    /// SQL port of the first node of a new cluster; the others follow, peers 1000 above
    #[arg(long, default_value_t = 5433, conflicts_with = "node")]
    port: u16,
    /// Run this node of the cluster file in the foreground
    #[arg(long, requires = "cluster")]
    node: Option<u16>,
    /// The cluster file
    #[arg(long, requires = "node")]
    cluster: Option<PathBuf>,
}

/// Shards per node if nobody says otherwise (docs/adr/0005-default-shards.md).
pub(crate) fn default_shards() -> u16 {
    std::thread::available_parallelism().map_or(1, |count| count.get().min(16) as u16)
}

/// Runs until the node or cluster is told to stop.
pub(crate) fn run(args: &StartArgs) -> Result<()> {
    match (&args.node, &args.cluster) {
        (Some(node), Some(file)) => run_node(NodeId(*node), file),
        _ => run_cluster(args),
    }
}

fn run_node(node: NodeId, file: &Path) -> Result<()> {
    let cluster = ClusterFile::read(file)?;
    let process = NodeProcess::start(&cluster, node)?;
    let shutdown = process.shutdown();
    let mut signals = Signals::new([SIGTERM, SIGINT]).context("cannot listen for signals")?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            shutdown.stop();
        }
    });
    process.run()?;
    Ok(())
}

fn run_cluster(args: &StartArgs) -> Result<()> {
    let dir = args.data.as_ref().context("--data DIR names the cluster's directory")?;
    let shape = Shape { nodes: args.nodes, shards: args.shards, port: args.port };
    let (path, file) = cluster_dir::open(dir, &shape)?;
    let mut signals = Signals::new([SIGTERM, SIGINT]).context("cannot listen for signals")?;
    let mut cluster = LocalCluster::start(&path, &file)?;
    let mut out = std::io::stdout();
    for node in &file.nodes {
        let (host, port) = (node.sql.ip(), node.sql.port());
        writeln!(out, "node {}: psql -h {host} -p {port} -U trellis postgres", node.id)?;
    }
    writeln!(out, "Ctrl-C stops the cluster.")?;
    while signals.pending().next().is_none() {
        if let Some((node, status)) = cluster.ended()? {
            cluster.stop()?;
            bail!("node {node} ended with {status}; the others are stopped");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    cluster.stop()
}
