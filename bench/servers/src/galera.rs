//! MariaDB servers that keep the same data on every node (Galera): each transaction is certified
//! on all of them at COMMIT.

use super::{Kind, Remains, Server, StartError, during};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// Where packages put the library.
const LIBRARY: [&str; 2] = [
    "/usr/lib/galera/libgalera_smm.so",
    "/usr/lib64/galera-4/libgalera_smm.so",
];
/// Ports of a node between nodes: the group, its increments, its first copy.
const PORTS: usize = 3;

/// How a node is told whom to join, and that it is the first.
const ADDRESS: &str = "--wsrep-cluster-address=";
const FOUND: &str = "--wsrep-new-cluster";
/// Who a server is that must not be root.
const NOBODY_NAME: &str = "nobody";

/// A cluster of MariaDB; ended, with its files, when dropped.
#[derive(Debug)]
pub struct Galera {
    nodes: Vec<Server>,
    /// Where the nodes are for each other.
    group: Vec<String>,
}

impl Galera {
    /// The library, if it is installed (package galera-4).
    pub fn library() -> Option<PathBuf> {
        let places = LIBRARY.iter().map(PathBuf::from);
        places.into_iter().find(|path| path.is_file())
    }

    /// Starts so many nodes, one after the other: each copies the first one's files by rsync.
    /// `None`: MariaDB, its Galera library or rsync is not installed.
    ///
    /// # Errors
    /// One does not start.
    pub fn start(nodes: usize) -> Result<Option<Galera>, StartError> {
        let Some(library) = Galera::library().filter(|_| super::find("rsync").is_some()) else {
            return Ok(None);
        };
        let ports = free_ports(nodes * PORTS)?;
        let ports: Vec<&[u16]> = ports.chunks(PORTS).collect();
        let group: Vec<String> = ports
            .iter()
            .map(|ports| format!("127.0.0.1:{}", ports[0]))
            .collect();
        let mut cluster = Galera {
            nodes: Vec::new(),
            group: group.clone(),
        };
        for (at, ports) in ports.iter().enumerate() {
            let mut arguments = arguments(&library, ports);
            arguments.push(match at {
                0 => format!("{ADDRESS}gcomm://"),
                _ => format!("{ADDRESS}gcomm://{}", group.join(",")),
            });
            if at == 0 {
                arguments.push(FOUND.to_owned());
            }
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            match Server::start(Kind::MariaDb, &arguments)? {
                Some(server) => cluster.nodes.push(server),
                None => return Ok(None),
            }
        }
        Ok(Some(cluster))
    }

    /// How a client names a database of it, with all nodes.
    pub fn url(&self, database: &str) -> String {
        let addresses: Vec<String> = self
            .nodes
            .iter()
            .map(|node| node.address().to_string())
            .collect();
        format!("mysql://root@{}/{database}", addresses.join(","))
    }

    /// Its nodes.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// A command for the shell that starts a node again that was killed. It finds out how far the
    /// node's files are, so that the others send it what is missing: the increments if they have
    /// them still, or all files.
    pub fn start_again(&self, node: &Server) -> String {
        let line: Vec<String> = node
            .line
            .iter()
            .map(|word| word.to_string_lossy().into())
            .collect();
        // The first node has founded the group; now it joins it.
        let is_own = |word: &&String| !word.starts_with(ADDRESS) && *word != FOUND;
        let mut words: Vec<String> = line
            .iter()
            .filter(is_own)
            .map(|word| quoted(word))
            .collect();
        if super::is_root().unwrap_or(false) {
            words.push(format!("--user={NOBODY_NAME}"));
        }
        let folder = quoted(&node.folder.display().to_string());
        let (words, group) = (words.join(" "), self.group.join(","));
        format!(
            "cd {folder} && at=$({words} --wsrep-recover --pid-file={folder}/pid.recover 2>&1 | \
             sed -n 's/.*Recovered position: *//p' | tail -n 1) && exec {words} \
             {ADDRESS}gcomm://{group} ${{at:+--wsrep-start-position=$at}} >>log.again 2>&1"
        )
    }

    /// What is to be cleared when the process ends without dropping this.
    pub fn remains(&self) -> Vec<Remains> {
        self.nodes.iter().map(Server::remains).collect()
    }

    /// How it is set where that is not as installed.
    pub fn settings() -> &'static str {
        "wsrep_sync_wait = 1, so that a transaction reads what was committed anywhere before it; \
         otherwise as MariaDB alone"
    }
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn arguments(library: &Path, ports: &[u16]) -> Vec<String> {
    let [group, increments, copy] = [ports[0], ports[1], ports[2]];
    vec![
        "--wsrep-on=ON".to_owned(),
        format!("--wsrep-provider={}", library.display()),
        "--wsrep-cluster-name=trellis".to_owned(),
        "--wsrep-sst-method=rsync".to_owned(),
        "--wsrep-slave-threads=2".to_owned(),
        "--wsrep-sync-wait=1".to_owned(),
        "--binlog-format=ROW".to_owned(),
        "--innodb-autoinc-lock-mode=2".to_owned(),
        format!("--wsrep-node-address=127.0.0.1:{group}"),
        format!("--wsrep-sst-receive-address=127.0.0.1:{copy}"),
        format!(
            "--wsrep-provider-options=base_port={group};ist.recv_addr=127.0.0.1:{increments};\
             gmcast.listen_addr=tcp://127.0.0.1:{group}"
        ),
    ]
}

/// Ports that nobody listens on at this moment.
fn free_ports(count: usize) -> Result<Vec<u16>, StartError> {
    // All are held until all are found, so that none is found twice.
    let listen = || TcpListener::bind("127.0.0.1:0");
    let listeners: std::io::Result<Vec<TcpListener>> = (0..count).map(|_| listen()).collect();
    let listeners = during("looking for free ports", listeners)?;
    let ports: std::io::Result<Vec<u16>> = listeners
        .iter()
        .map(|listener| Ok(listener.local_addr()?.port()))
        .collect();
    during("looking for free ports", ports)
}
