//! The directory of a local cluster: its cluster file, made on first use.

use crate::login;
use anyhow::{Context, Result, bail};
use base::SHARDS_PER_NODE_MAX;
use runtime::access::Loopback;
use runtime::{ClusterFile, NodeEntry};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

/// Name of the cluster file in the directory.
pub const CLUSTER_FILE: &str = "cluster.toml";
/// SQL port of the first node if nobody says otherwise: next to PostgreSQL's own.
const DEFAULT_PORT: u16 = 5433;
/// Ports for other nodes lie this far above those for clients.
const PEER_OFFSET: u16 = 1_000;

/// What was asked for. `None`: as an existing file says, or the default for a new one.
pub struct Shape {
    /// Default 1.
    pub nodes: Option<u16>,
    /// Per node; default [`default_shards`].
    pub shards: Option<u16>,
    /// SQL port of node 1; the others follow, peers 1,000 above. Default 5433.
    pub port: Option<u16>,
    /// Clients on this machine need the password of their role as well. Without it a new cluster
    /// trusts them, and an existing one does what its file says.
    pub password: bool,
}

/// Reads the cluster file of `dir`, or makes one; a file that exists must match what was asked for.
pub fn open(dir: &Path, shape: &Shape) -> Result<(PathBuf, ClusterFile)> {
    let path = dir.join(CLUSTER_FILE);
    if !path.exists() {
        let mut file = new_file(shape)?;
        if let Some(address) = taken(&file) {
            bail!("the address {address} is taken; --port names other ports");
        }
        std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let loopback = match shape.password {
            true => Loopback::Password,
            false => Loopback::Trust,
        };
        login::make(dir, &mut file, loopback)?;
        file.write(&path)?;
    }
    let file = ClusterFile::read(&path)?;
    let access = file.access.as_ref();
    if shape.password && access.is_none_or(|access| access.loopback == Loopback::Trust) {
        bail!(
            "{} asks clients on this machine for no password; change `loopback` of its section \
             `[access]`, or leave --password out",
            path.display()
        );
    }
    let nodes = file.nodes.len();
    if let Some(asked) = shape.nodes
        && usize::from(asked) != nodes
    {
        bail!(
            "{} has {nodes} nodes, not {asked}; leave --nodes out or choose another directory",
            path.display()
        );
    }
    if let Some(asked) = shape.shards
        && asked != file.shards
    {
        bail!(
            "{} has {} shards per node, not {asked}; the number cannot change once there is data: \
             leave --shards out or choose another directory",
            path.display(),
            file.shards
        );
    }
    if let Some(asked) = shape.port
        && asked != file.nodes[0].sql.port()
    {
        bail!(
            "{} has port {}, not {asked}; change it there or leave --port out",
            path.display(),
            file.nodes[0].sql.port()
        );
    }
    Ok((path, file))
}

/// An address of the cluster that is taken at this moment.
pub fn taken(file: &ClusterFile) -> Option<SocketAddr> {
    let mut addresses = file.nodes.iter().flat_map(|node| [node.sql, node.peer]);
    addresses.find(|address| {
        let refused = TcpListener::bind(address).err();
        refused.is_some_and(|error| error.kind() == ErrorKind::AddrInUse)
    })
}

/// Reads the cluster file of a directory that must have one.
pub fn existing(dir: &Path) -> Result<ClusterFile> {
    let path = dir.join(CLUSTER_FILE);
    if !path.exists() {
        bail!(
            "{} holds no cluster; `trellis start --nodes 3 --data {0}` makes one",
            dir.display()
        );
    }
    Ok(ClusterFile::read(&path)?)
}

fn new_file(shape: &Shape) -> Result<ClusterFile> {
    let (nodes, first) = (shape.nodes.unwrap_or(1), shape.port.unwrap_or(DEFAULT_PORT));
    let address = |port: Option<u16>| {
        let port = port.context("the ports run past 65535; --port names a lower one")?;
        anyhow::Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    };
    let pair = |at: u16| {
        let port = first.checked_add(at);
        Ok((
            address(port)?,
            address(port.and_then(|port| port.checked_add(PEER_OFFSET)))?,
        ))
    };
    let addresses = (0..nodes).map(pair).collect::<Result<Vec<_>>>()?;
    Ok(cluster_file(&addresses, shape.shards))
}

/// A cluster file for these SQL and peer addresses.
pub fn cluster_file(addresses: &[(SocketAddr, SocketAddr)], shards: Option<u16>) -> ClusterFile {
    let nodes = addresses
        .iter()
        .zip(1..)
        .map(|((sql, peer), id)| NodeEntry {
            id,
            sql: *sql,
            peer: *peer,
            data: PathBuf::from(format!("node-{id}")),
        });
    ClusterFile {
        // TOML integers have 63 bits.
        cluster: random() >> 1,
        shards: shards.unwrap_or_else(default_shards),
        connections: runtime::connections_default(),
        access: None,
        log_min_duration_ms: None,
        audit_log_mib: None,
        peers: None,
        nodes: nodes.collect(),
    }
}

/// Shards per node if nobody says otherwise: one for every two cores
/// (docs/adr/0007-default-shards.md).
pub fn default_shards() -> u16 {
    let most = usize::from(SHARDS_PER_NODE_MAX);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    cores.div_ceil(2).min(most) as u16
}

/// Bits from the operating system, by way of the standard library's hash keys.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Where free ports are looked for: below the ports that systems give to outgoing connections (from
/// 32768 on Linux). One of those could be taken, while a node is down, by a connection of
/// anybody, even by one to the node itself.
const FREE_PORTS: std::ops::Range<u16> = 15_000..32_000;

/// Addresses for `nodes` nodes that nobody listens on at this moment.
pub fn free_addresses(nodes: u16) -> Result<Vec<(SocketAddr, SocketAddr)>> {
    let count = u64::from(FREE_PORTS.end - FREE_PORTS.start);
    // A random start, so that two clusters that look at the same time rarely find the same.
    let start = random() % count;
    let mut ports = (0..count).map(|at| FREE_PORTS.start + ((start + at) % count) as u16);
    // All are held until all are found, so that no port is found twice.
    let mut listen = || {
        let mut listeners = ports
            .by_ref()
            .map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)));
        listeners
            .find_map(Result::ok)
            .context("this machine has no free port")
    };
    let pairs = (0..nodes)
        .map(|_| Ok((listen()?, listen()?)))
        .collect::<Result<Vec<_>>>()?;
    pairs
        .iter()
        .map(|(sql, peer)| Ok((sql.local_addr()?, peer.local_addr()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn shape(nodes: Option<u16>, shards: Option<u16>, port: Option<u16>) -> Shape {
        Shape {
            nodes,
            shards,
            port,
            password: false,
        }
    }

    fn check(first: Shape, second: Shape) -> Result<ClusterFile, String> {
        let dir = std::env::temp_dir().join(format!("trellis-dir-{:x}", random()));
        open(&dir, &first).map_err(|error| error.to_string())?;
        let again = open(&dir, &second)
            .map(|(_, file)| file)
            .map_err(|error| error.to_string());
        std::fs::remove_dir_all(&dir).expect("the directory was just made");
        again
    }

    #[test]
    fn a_cluster_keeps_its_shape() {
        let file = check(
            shape(Some(3), Some(2), Some(7_000)),
            shape(None, None, None),
        );
        let file = file.expect("nothing else was asked for");
        let ports: Vec<u16> = file.nodes.iter().map(|node| node.sql.port()).collect();
        assert_eq!((file.shards, ports), (2, vec![7_000, 7_001, 7_002]));
        assert_eq!(file.nodes[2].peer.port(), 8_002);
        for other in [
            shape(Some(2), None, None),
            shape(None, Some(1), None),
            shape(None, None, Some(7_001)),
        ] {
            let error = check(shape(Some(3), Some(2), Some(7_000)), other);
            assert!(
                error
                    .expect_err("it has another shape")
                    .contains("leave --")
            );
        }
    }

    #[test]
    fn ports_end_somewhere() {
        let error = check(shape(Some(3), None, Some(65_000)), shape(None, None, None));
        assert!(error.expect_err("66000 is no port").contains("65535"));
    }

    #[test]
    fn free_ports_differ() {
        let found = free_addresses(5).expect("a machine has ten free ports");
        let ports: BTreeSet<u16> = found
            .iter()
            .flat_map(|(sql, peer)| [sql.port(), peer.port()])
            .collect();
        assert_eq!(ports.len(), 10);
        assert!(ports.iter().all(|port| FREE_PORTS.contains(port)));
    }
}
