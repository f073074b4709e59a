//! The directory of a local cluster: its cluster file, made on first use.

use crate::start::default_shards;
use anyhow::{Context, Result, bail};
use runtime::{ClusterFile, NodeEntry};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

/// Name of the cluster file in the directory.
pub(crate) const CLUSTER_FILE: &str = "cluster.toml";

/// What a new cluster looks like.
pub(crate) struct Shape {
    pub(crate) nodes: u16,
    /// `None`: the default for a new cluster, anything for an old one.
    pub(crate) shards: Option<u16>,
    /// SQL port of node 1; the others follow, peers 1,000 above.
    pub(crate) port: u16,
}

/// Reads the cluster file of `dir`, or makes one; a file that exists must match what was asked for.
pub(crate) fn open(dir: &Path, shape: &Shape) -> Result<(PathBuf, ClusterFile)> {
    let path = dir.join(CLUSTER_FILE);
    if !path.exists() {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        new_file(shape)?.write(&path)?;
    }
    let file = ClusterFile::read(&path)?;
    let nodes = file.nodes.len();
    if nodes != usize::from(shape.nodes) {
        bail!(
            "{} has {nodes} nodes, not {}; start it with --nodes {nodes} or choose another \
             directory",
            path.display(),
            shape.nodes
        );
    }
    if let Some(shards) = shape.shards
        && shards != file.shards
    {
        bail!(
            "{} has {} shards per node, not {shards}; the number cannot change once there is data",
            path.display(),
            file.shards
        );
    }
    Ok((path, file))
}

/// Reads the cluster file of a directory that must have one.
pub(crate) fn existing(dir: &Path) -> Result<ClusterFile> {
    let path = dir.join(CLUSTER_FILE);
    if !path.exists() {
        bail!("{} holds no cluster; `trellis start --data` makes one", dir.display());
    }
    Ok(ClusterFile::read(&path)?)
}

fn new_file(shape: &Shape) -> Result<ClusterFile> {
    let port = |offset: u16| {
        let port = shape.port.checked_add(offset).context("the ports run past 65535")?;
        anyhow::Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    };
    let addresses = (0..shape.nodes).map(|at| Ok((port(at)?, port(1_000 + at)?)));
    let addresses = addresses.collect::<Result<Vec<_>>>()?;
    Ok(cluster_file(&addresses, shape.shards))
}

/// A cluster file for these SQL and peer addresses.
pub(crate) fn cluster_file(
    addresses: &[(SocketAddr, SocketAddr)],
    shards: Option<u16>,
) -> ClusterFile {
    let nodes = addresses.iter().zip(1..).map(|((sql, peer), id)| NodeEntry {
        id,
        sql: *sql,
        peer: *peer,
        data: PathBuf::from(format!("node-{id}")),
    });
    // TOML integers have 63 bits.
    let cluster = RandomState::new().build_hasher().finish() >> 1;
    ClusterFile {
        cluster,
        shards: shards.unwrap_or_else(default_shards),
        nodes: nodes.collect(),
    }
}

/// Addresses for `nodes` nodes that nobody listens on at this moment.
pub(crate) fn free_addresses(nodes: u16) -> Result<Vec<(SocketAddr, SocketAddr)>> {
    // All are held until all are found, so that no port is found twice.
    let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port");
    let pairs = (0..nodes).map(|_| Ok((listen()?, listen()?)));
    let pairs = pairs.collect::<Result<Vec<_>>>()?;
    pairs.iter().map(|(sql, peer)| Ok((sql.local_addr()?, peer.local_addr()?))).collect()
}
