//! The real cluster of the repetition: three nodes of this machine, links through a delaying proxy.
//!
//! Each node has a cluster file of its own, in which the other nodes' addresses are the proxy's:
//! so everything between nodes passes it, in both directions, and nothing else does.

use anyhow::{Context, Result, bail};
use drive::run::{RunReport, RunnerOptions};
use links::answers::Answers;
use links::delay::{DelayCounts, DelayProxy};
use links::view::Silent;
use local_cluster::dir::{CLUSTER_FILE, cluster_file, free_addresses, random};
use local_cluster::{Interrupt, LocalCluster, Settings, Started, connect, url};
use runtime::{ClusterFile, NodeEntry};
use sim::scale::{Mix, Spread, System, Unit, homes};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use workload::spread::Plan;
use workload::tpcc::Scale;
use workload::tpcc::random::Constants;

/// Nodes of a cluster.
pub(super) const NODES: u16 = 3;
const WAREHOUSES_PER_NODE: u32 = 2;
/// Clients of all nodes together.
pub(super) const CLIENTS: u32 = 12;

/// A cluster that runs, with the databases that were made on it.
pub(super) struct Cluster {
    nodes: Option<LocalCluster>,
    file: ClusterFile,
    proxy: Option<DelayProxy>,
    dir: PathBuf,
    databases: BTreeMap<String, ()>,
}

/// A run with what was seen beside it.
pub(super) struct Seen {
    pub(super) report: RunReport,
    /// By second since the start of the run: bytes through the proxy, rows moved.
    pub(super) seconds: Vec<(u64, u64)>,
}

/// The plan of NewOrder and Payment on the real cluster.
pub(super) fn pair(remote_percent: u64) -> Plan {
    let spread = Spread {
        unit: Unit::Access,
        by_id: true,
        ..Spread::new(homes(NODES, 1, WAREHOUSES_PER_NODE), remote_percent)
    };
    let constants = Constants::for_load(1);
    Plan {
        mix: Mix::TpccPair,
        spread,
        scale: Scale::reduced(1),
        constants: Constants::for_run(1, constants.c_last),
        seed: 1,
    }
}

impl Cluster {
    /// Starts it with one shard per node and links of `delay` one way; without a proxy if that is
    /// zero.
    pub(super) fn start(delay: Duration) -> Result<Cluster> {
        Cluster::start_with(delay, 1)
    }

    /// The same with so many shards per node, each a thread.
    pub(super) fn start_with(delay: Duration, shards: u16) -> Result<Cluster> {
        Cluster::start_of(NODES, delay, shards)
    }

    /// The same of so many nodes.
    pub(super) fn start_of(nodes: u16, delay: Duration, shards: u16) -> Result<Cluster> {
        let dir = std::env::temp_dir().join(format!("trellis-paper-{:016x}", random()));
        std::fs::create_dir_all(&dir)
            .with_context(|| format!("cannot create {}", dir.display()))?;
        let interrupt = Interrupt::watch(&dir, true)?;
        let file = cluster_file(&free_addresses(nodes)?, Some(shards));
        // The whole cluster in one file, for its operator.
        file.write(&dir.join(CLUSTER_FILE))?;
        let peers: Vec<SocketAddr> = file.nodes.iter().map(|node| node.peer).collect();
        let proxy = match delay.is_zero() {
            true => None,
            false => Some(DelayProxy::start(&peers, delay).context("the delaying proxy")?),
        };
        let paths = node_files(&file, &dir, proxy.as_ref())?;
        let path = |node: &NodeEntry| paths[usize::from(node.id) - 1].clone();
        let file = ClusterFile::read(&dir.join(CLUSTER_FILE))?;
        let settings = Settings::default();
        let mut is_called_off = || interrupt.has_arrived();
        let started = LocalCluster::start_each(path, &file, &settings, &mut is_called_off)?;
        let Started::Ready(nodes) = started else {
            bail!("called off");
        };
        Ok(Cluster {
            nodes: Some(nodes),
            file,
            proxy,
            dir,
            databases: BTreeMap::new(),
        })
    }

    /// Runs a plan for so long, after a warm-up, under a system. The database is made and loaded
    /// when it is first asked for by this name.
    pub(super) fn run(
        &mut self,
        name: &str,
        system: System,
        plan: &Plan,
        (warmup, length): (Duration, Duration),
    ) -> Result<Seen> {
        let system_name = system.name().replace(' ', "_");
        let database = format!("{name}_{system_name}");
        let url = url(&self.file.nodes, &database);
        if !self.databases.contains_key(&database) {
            self.create_database(&database, system)?;
            drive::spread::load(&url, plan, &mut Silent)?;
            self.databases.insert(database, ());
        }
        let options = RunnerOptions {
            clients: CLIENTS,
            warmup,
            length,
            ..RunnerOptions::default()
        };
        let over = AtomicBool::new(false);
        let (report, seconds) = std::thread::scope(|scope| {
            let watching = scope.spawn(|| self.watch(&over));
            let report = drive::spread::run(&url, plan, &options, &mut Silent);
            over.store(true, Ordering::Relaxed);
            let seconds = watching.join().expect("nothing panics there");
            (report, seconds)
        });
        let report = report?;
        if !report.passed() {
            let faults = report.faults().join("; ");
            bail!("{} on {name} failed its checks: {faults}", system.name());
        }
        Ok(Seen { report, seconds })
    }

    /// The nodes, in their order.
    pub(super) fn nodes(&self) -> &[NodeEntry] {
        &self.file.nodes
    }

    /// The processes of the nodes.
    pub(super) fn pids(&self) -> Vec<u32> {
        local_cluster::nodes::pids(&self.dir)
    }

    /// Makes an empty database under a system.
    pub(super) fn create_database(&self, database: &str, system: System) -> Result<()> {
        let mut link = connect(&self.file.nodes[0], "postgres")?;
        let options = system.options();
        link.command(&format!("CREATE DATABASE {database} WITH ({options})"))?;
        link.close();
        Ok(())
    }

    /// Once a second until the end: what went through the proxy and moved since the last time.
    fn watch(&self, over: &AtomicBool) -> Vec<(u64, u64)> {
        let began = Instant::now();
        let mut before = self.traffic();
        let mut seconds = Vec::new();
        loop {
            let next = Duration::from_secs(seconds.len() as u64 + 1);
            while began.elapsed() < next {
                if over.load(Ordering::Relaxed) {
                    return seconds;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            let now = self.traffic();
            seconds.push((now.0 - before.0, now.1.saturating_sub(before.1)));
            before = now;
        }
    }

    /// Bytes through the proxy and rows moved so far. A server that cannot be asked counts nothing.
    fn traffic(&self) -> (u64, u64) {
        let bytes = self.links().bytes;
        let asked = || {
            let mut link = connect(&self.file.nodes[0], "postgres").ok()?;
            let mut answers = Answers::new();
            link.query("SHOW OWNERSHIP", &mut answers).ok()?;
            link.close();
            let arrived = |row| {
                let counts = MOVED_COLUMNS.filter_map(|column| answers.int(0, row, column));
                counts.sum::<i64>() as u64
            };
            Some((0..answers.rows(0)).map(arrived).sum())
        };
        (bytes, asked().unwrap_or(0))
    }

    /// What the proxy did; nothing without one.
    pub(super) fn links(&self) -> DelayCounts {
        let counts = self.proxy.as_ref().map(DelayProxy::counts);
        counts.unwrap_or_default()
    }

    /// Stops the nodes and removes their directory.
    pub(super) fn stop(mut self) -> Result<DelayCounts> {
        let counts = self.links();
        if let Some(nodes) = self.nodes.take() {
            nodes.stop()?;
        }
        Ok(counts)
    }
}

/// Columns of SHOW OWNERSHIP that count arrivals, by case.
const MOVED_COLUMNS: std::ops::Range<usize> = 9..12;

impl Drop for Cluster {
    fn drop(&mut self) {
        self.nodes.take();
        // Best effort: a temporary directory that stays behind does no harm.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A cluster file for each node, in which the others are behind the proxy.
fn node_files(file: &ClusterFile, dir: &Path, proxy: Option<&DelayProxy>) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for own in &file.nodes {
        let mut seen = file.clone();
        if let Some(proxy) = proxy {
            for (node, address) in seen.nodes.iter_mut().zip(proxy.addresses()) {
                if node.id != own.id {
                    node.peer = *address;
                }
            }
        }
        let path = dir.join(format!("cluster-of-node-{}.toml", own.id));
        seen.write(&path)?;
        paths.push(path);
    }
    Ok(paths)
}
