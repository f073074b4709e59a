//! `trellis start`: one node in this process, or a local cluster of child processes.

use crate::supervisor::Supervisor;
use anyhow::{Context, Result, bail};
use base::{NODE_COUNT_MAX, NodeId, SHARDS_PER_NODE_MAX};
use clap::Args;
use clap::value_parser;
use local_cluster::dir::{self, Shape};
use local_cluster::login::{FIRST_ROLE, PASSWORD_FILE};
use local_cluster::{LocalCluster, Settings, Started, nodes};
use runtime::access::Loopback;
use runtime::{ClusterFile, MemoryLimit, NodeOptions, NodeProcess};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Arguments of `trellis start`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    trellis start --nodes 3 --data ./cluster        a new local cluster; Ctrl-C stops it\n  \
    trellis start --data ./cluster                  the same cluster again\n  \
    trellis start --node 2 --cluster cluster.toml   one node of a cluster, in the foreground\n  \
    ... --new                                       the same for the first time\n\n\
    A node that ends by itself is started again; the others go on meanwhile.\n\n\
    Servers listen on loopback only, unless the cluster file says\n  \
    who may log in (docs/access.md).")]
pub(crate) struct StartArgs {
    /// Number of nodes of a new local cluster [default: 1]
    #[arg(long, conflicts_with = "node",
        value_parser = value_parser!(u16).range(1..=i64::from(NODE_COUNT_MAX)))]
    nodes: Option<u16>,
    /// Directory of a local cluster; made on first use
    #[arg(
        long,
        value_name = "DIR",
        required_unless_present = "node",
        conflicts_with = "node"
    )]
    data: Option<PathBuf>,
    /// Shards per node of a new cluster [default: one for every two cores]
    #[arg(long, conflicts_with = "node",
        value_parser = value_parser!(u16).range(1..=i64::from(SHARDS_PER_NODE_MAX)))]
    shards: Option<u16>,
    /// SQL port of the first node of a new cluster; the others follow, peers 1000 above
    /// [default: 5433]
    #[arg(long, conflicts_with = "node", value_parser = value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Ask clients on this machine for their password as well [default for a new cluster: do not]
    #[arg(long, conflicts_with = "node")]
    password: bool,
    /// Run this node of the cluster file in the foreground
    #[arg(long, requires = "cluster")]
    node: Option<u16>,
    /// The node is new: its data directory may be empty. Without this an empty one is refused,
    /// because it may be that of a disk that is not mounted
    #[arg(long, requires = "node")]
    new: bool,
    /// Memory of each node, like 512MB or 8GB; writes are refused with 53200 before it is used up
    /// [default: an equal part of what the control group or the machine has]
    #[arg(long, value_name = "SIZE", value_parser = memory_size)]
    memory: Option<u64>,
    /// Where a node tells its metrics in the format of Prometheus, like 127.0.0.1:9187; the nodes
    /// of a local cluster at this port and those that follow
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Nodes whose clocks a benchmark can set, for faults of clocks: a library that shifts the
    /// clock is preloaded into them
    #[arg(long, conflicts_with = "node")]
    clock_faults: bool,
    /// The cluster file
    #[arg(long, value_name = "FILE", requires = "node")]
    cluster: Option<PathBuf>,
}

/// Bytes of a size like `512MB`.
fn memory_size(text: &str) -> Result<u64, String> {
    let units = [("GB", 30), ("MB", 20), ("kB", 10)];
    let found = units.iter().find_map(|(unit, bits)| {
        let number = text.trim().strip_suffix(unit)?;
        number.trim().parse::<u64>().ok()?.checked_mul(1 << bits)
    });
    let least = runtime::memory::LIMIT_BYTES_MIN;
    match found {
        Some(bytes) if bytes >= least => Ok(bytes),
        Some(_) => Err(format!("a node needs {}MB at least", least >> 20)),
        None => Err("a size is a number with a unit: 512MB, 8GB".into()),
    }
}

/// Runs until the node or cluster is told to stop.
///
/// # Errors
/// It cannot start, or a node ended by itself.
pub(crate) fn run(args: &StartArgs) -> Result<()> {
    match (&args.node, &args.cluster) {
        (Some(node), Some(file)) => run_node(NodeId(*node), file, args),
        _ => run_cluster(args),
    }
}

fn run_node(node: NodeId, file: &Path, args: &StartArgs) -> Result<()> {
    runtime::end_on_panic();
    let cluster = ClusterFile::read(file)?;
    // Before the start: a node that is told to stop while it recovers stops when it can.
    let mut signals = Signals::new([SIGTERM, SIGINT]).context("cannot listen for signals")?;
    let limit = args.memory.or_else(runtime::memory::detected_bytes);
    crate::allocator::without_huge_pages().context("cannot do without huge pages")?;
    if limit.is_some() {
        // The thread that watches the limit gives memory back.
        crate::allocator::keep_pages();
    }
    let options = NodeOptions {
        begin: args.new,
        metrics: args.metrics,
        memory: limit.map(|limit_bytes| MemoryLimit {
            limit_bytes,
            allocated: crate::allocator::allocated_bytes,
            give_back: crate::allocator::give_back,
        }),
    };
    let process = NodeProcess::start(&cluster, node, &options)?;
    let shutdown = process.shutdown();
    std::thread::spawn(move || {
        for _ in signals.forever() {
            shutdown.stop();
        }
    });
    process.run()?;
    Ok(())
}

fn run_cluster(args: &StartArgs) -> Result<()> {
    let dir = args
        .data
        .as_ref()
        .context("--data DIR names the cluster's directory")?;
    let shape = Shape {
        nodes: args.nodes,
        shards: args.shards,
        port: args.port,
        password: args.password,
    };
    let (path, file) = dir::open(dir, &shape)?;
    if !nodes::pids(dir).is_empty() {
        let dir = dir.display();
        bail!("nodes of {dir} run already; `trellis stop --data {dir}` stops them");
    }
    if let Some(address) = dir::taken(&file) {
        let path = path.display();
        bail!("the address {address} is taken; {path} says which ports the nodes have");
    }
    nodes::forget(dir)?;
    let mut signals = Signals::new([SIGTERM, SIGINT]).context("cannot listen for signals")?;
    let mut is_told = move || signals.pending().next().is_some();
    let library = args
        .clock_faults
        .then(|| fault::write_clock_library(dir).context("cannot write the library of the clock"));
    let settings = Settings {
        memory: args.memory,
        metrics: args.metrics,
        clock_library: library.transpose()?,
    };
    let Started::Ready(cluster) = LocalCluster::start(&path, &file, &settings, &mut is_told)?
    else {
        return Ok(());
    };
    print_welcome(&file, dir)?;
    Supervisor::new(cluster).run(dir, &mut is_told)
}

fn print_welcome(file: &ClusterFile, dir: &Path) -> Result<()> {
    let mut out = std::io::stdout();
    for node in &file.nodes {
        let (host, port) = (node.sql.ip(), node.sql.port());
        writeln!(
            out,
            "node {}: psql -h {host} -p {port} -U trellis postgres",
            node.id
        )?;
    }
    writeln!(out, "or: trellis sql --data {}", dir.display())?;
    let passwords = dir.join(PASSWORD_FILE);
    if let Some(access) = &file.access
        && passwords.exists()
    {
        let needed = match access.loopback {
            Loopback::Password => format!("PGPASSFILE={} hands it to psql", passwords.display()),
            Loopback::Trust => "clients on this machine need none".to_owned(),
        };
        writeln!(
            out,
            "role {FIRST_ROLE} has its password in {}; {needed}",
            passwords.display()
        )?;
    }
    writeln!(out, "Ctrl-C stops the cluster.")?;
    Ok(out.flush()?)
}
