//! The cluster file: which nodes there are and where they listen. Membership is this file until
//! it is by consensus.
//!
//! ```toml
//! cluster = 4711          # any number; all nodes and files of a cluster carry it
//! shards = 2              # per node; cannot change once there is data
//! log_min_duration_ms = 250 # optional: statements that take this long are logged
//! audit_log_mib = 64      # optional: logins and changes are logged to files of this size
//! [[node]]
//! id = 1
//! sql = "127.0.0.1:5433"  # for clients
//! peer = "127.0.0.1:6433" # for the other nodes
//! data = "node-1"         # relative to this file
//! [access]                # optional: who may log in, see docs/access.md
//! roles = "roles"
//! certificate = "server.crt"
//! key = "server.key"
//! [peers]                 # optional: nodes prove to each other who they are, docs/peers.md
//! certificates = "tls"
//! ```

use crate::access::AccessEntry;
use crate::credentials::PeersEntry;
use crate::error::RuntimeError;
use base::{NODE_COUNT_MAX, NodeId, SHARDS_PER_NODE_MAX};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A parsed and checked cluster file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterFile {
    /// Number of the cluster.
    pub cluster: u64,
    /// Shards of each node.
    pub shards: u16,
    /// Client connections that each node takes; more are refused with 53300.
    #[serde(default = "node::connections_default")]
    pub connections: u32,
    /// Statements that take this long, in milliseconds, are logged with their text; 0: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_min_duration_ms: Option<u32>,
    /// Logins, and changes of roles, rights and the schema, are written to `audit.log` in each data
    /// directory; a file has at most this many MiB (1 at least).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_log_mib: Option<u32>,
    /// Who may log in and how. Without it everybody may, and servers listen on loopback only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessEntry>,
    /// How nodes prove to each other who they are. Without it they do not, and talk on loopback
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers: Option<PeersEntry>,
    /// The nodes, numbered 1, 2, ... without gaps.
    #[serde(rename = "node")]
    pub nodes: Vec<NodeEntry>,
}

/// One node of a cluster file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeEntry {
    /// Its number.
    pub id: u16,
    /// Where clients connect. Loopback, unless the file has `[access]` with a certificate.
    pub sql: SocketAddr,
    /// Where other nodes connect. Loopback, unless the file has `[peers]`.
    pub peer: SocketAddr,
    /// Its data directory; a relative path begins at the cluster file's folder.
    pub data: PathBuf,
}

impl ClusterFile {
    /// Reads and checks `path`; data directories become absolute.
    ///
    /// # Errors
    /// [`RuntimeError::Cluster`] with line and key, or the file cannot be read.
    pub fn read(path: &Path) -> Result<ClusterFile, RuntimeError> {
        let text = std::fs::read_to_string(path).map_err(RuntimeError::file("read", path))?;
        let wrong = |message| RuntimeError::Cluster {
            path: path.to_path_buf(),
            message,
        };
        let mut file: ClusterFile =
            toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        file.check().map_err(wrong)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        for node in &mut file.nodes {
            node.data = folder.join(&node.data);
        }
        if let Some(access) = &mut file.access {
            access.resolve(folder);
        }
        if let Some(peers) = &mut file.peers {
            peers.certificates = folder.join(&peers.certificates);
        }
        Ok(file)
    }

    /// Writes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), RuntimeError> {
        let text = toml::to_string(self).expect("a cluster file has a TOML form");
        std::fs::write(path, text).map_err(RuntimeError::file("write", path))
    }

    /// The entry of `node`.
    pub fn node(&self, node: NodeId) -> Option<&NodeEntry> {
        self.nodes.iter().find(|entry| entry.id == node.0)
    }

    fn check(&self) -> Result<(), String> {
        if self.shards == 0 || self.shards > SHARDS_PER_NODE_MAX {
            return Err(format!(
                "key `shards`: {} is not in 1..={SHARDS_PER_NODE_MAX}",
                self.shards
            ));
        }
        if !(1..=262_143).contains(&self.connections) {
            return Err(format!(
                "key `connections`: {} is not in 1..=262143",
                self.connections
            ));
        }
        if self.nodes.is_empty() || self.nodes.len() > usize::from(NODE_COUNT_MAX) {
            return Err(format!(
                "key `node`: {} nodes are not in 1..={NODE_COUNT_MAX}",
                self.nodes.len()
            ));
        }
        for (index, node) in self.nodes.iter().enumerate() {
            if usize::from(node.id) != index + 1 {
                return Err(format!(
                    "key `node.id`: expected {}, found {}",
                    index + 1,
                    node.id
                ));
            }
            let beyond = |address: SocketAddr| !address.ip().is_loopback();
            let encrypts = self.access.as_ref().is_some_and(AccessEntry::encrypts);
            if beyond(node.sql) && !encrypts {
                return Err(format!(
                    "key `node.sql` of node {}: {} is not a loopback address; beyond loopback \
                     servers listen only with `[access]`, which names roles, certificate and key \
                     (docs/access.md)",
                    node.id, node.sql
                ));
            }
            if beyond(node.peer) && self.peers.is_none() {
                return Err(format!(
                    "key `node.peer` of node {}: {} is not a loopback address; beyond loopback \
                     nodes talk only with `[peers]`, which names their certificates \
                     (docs/peers.md)",
                    node.id, node.peer
                ));
            }
        }
        self.access.as_ref().map_or(Ok(()), AccessEntry::check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), String> {
        let file: ClusterFile = toml::from_str(text).map_err(|error| error.to_string())?;
        file.check()
    }

    const GOOD: &str = "cluster = 1\nshards = 1\n[[node]]\nid = 1\nsql = \"127.0.0.1:1\"\n\
                        peer = \"127.0.0.1:2\"\ndata = \"n\"\n";

    #[test]
    fn a_good_file_passes() {
        assert_eq!(check(GOOD), Ok(()));
    }

    #[test]
    fn wrong_files_name_the_key() {
        let cases = [
            (GOOD.replace("shards = 1", "shards = 17"), "key `shards`"),
            (GOOD.replace("id = 1", "id = 2"), "key `node.id`"),
            (
                GOOD.replace("127.0.0.1:1", "0.0.0.0:1"),
                "not a loopback address",
            ),
            (GOOD.replace("shards", "shard"), "unknown field `shard`"),
            (GOOD.replace("cluster = 1\n", ""), "missing field `cluster`"),
        ];
        for (text, part) in cases {
            let error = check(&text).expect_err(part);
            assert!(error.contains(part), "{error}");
        }
    }
}
