//! The stores that are measured: memory, servers of others, and Trellis under each protocol.

use crate::cluster::Cluster;
use crate::over::Over;
use anyhow::{Context, Result};
use local_cluster::dir::random;
use local_cluster::{Interrupt, url};
use servers::{Kind as Product, Server};
use sim::scale::System;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use stores::{Kind, Mapping};

/// Nodes of Trellis where a figure says nothing else.
pub(super) const NODES: u16 = 3;
/// Links between its nodes, one way.
const PEER_LINK: Duration = Duration::from_millis(1);
/// Clock ticks per second in `/proc`.
const TICKS_PER_S: f64 = 100.0;

/// A product that speaks one of the protocols of stores.
#[derive(Debug)]
pub(super) struct Other {
    product: Product,
    kind: Kind,
    /// A database that it has from the start.
    database: &'static str,
    arguments: &'static [&'static str],
    /// Several servers of it each have a part of the groups.
    is_routed: bool,
    has_sql: bool,
}

/// The products, in the order of tables.
static OTHERS: [Other; 4] = [
    Other {
        product: Product::Postgres,
        kind: Kind::Postgres,
        database: "postgres",
        arguments: &["-c", "max_connections=400"],
        is_routed: false,
        has_sql: true,
    },
    Other {
        product: Product::MariaDb,
        kind: Kind::MySql,
        database: "test",
        arguments: &[],
        is_routed: false,
        has_sql: true,
    },
    Other {
        product: Product::Redis,
        kind: Kind::Redis,
        database: "",
        arguments: &[],
        is_routed: true,
        has_sql: false,
    },
    Other {
        product: Product::Etcd,
        kind: Kind::Etcd,
        database: "",
        // A group of 400 records is loaded by one transaction.
        arguments: &["--max-txn-ops", "2048"],
        is_routed: true,
        has_sql: false,
    },
];

/// What a figure measures.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// A map of this process.
    Memory,
    /// Servers of a product.
    Other(&'static Other, usize),
    /// A cluster of Trellis of so many nodes, a database with this protocol.
    Trellis(System, u16),
}

impl Place {
    /// Trellis under each protocol.
    pub(super) fn trellis(nodes: u16) -> [Place; 3] {
        [System::Formula, System::Interleaved, System::Leap]
            .map(|system| Place::Trellis(system, nodes))
    }

    /// One server of each product.
    pub(super) fn others() -> impl Iterator<Item = Place> {
        OTHERS.iter().map(|other| Place::Other(other, 1))
    }

    /// All of them: memory, the products, Trellis.
    pub(super) fn all() -> Vec<Place> {
        let others = Place::others().chain(Place::trellis(NODES));
        std::iter::once(Place::Memory).chain(others).collect()
    }

    pub(super) fn name(self) -> String {
        match self {
            Place::Memory => "memory".to_owned(),
            Place::Other(other, _) => other.product.name().to_owned(),
            Place::Trellis(System::Interleaved, _) => "Trellis, two_phase".to_owned(),
            Place::Trellis(system, _) => format!("Trellis, {}", system.name()),
        }
    }

    /// How many servers.
    pub(super) fn servers(self) -> usize {
        match self {
            Place::Memory => 1,
            Place::Other(_, servers) => servers,
            Place::Trellis(_, nodes) => usize::from(nodes),
        }
    }

    /// The same on so many servers; `None`: one copy of all data is all that it has.
    pub(super) fn of(self, servers: usize) -> Option<Place> {
        match self {
            Place::Other(other, _) if other.is_routed => Some(Place::Other(other, servers)),
            Place::Trellis(system, _) => Some(Place::Trellis(system, servers as u16)),
            Place::Memory | Place::Other(..) => (servers == 1).then_some(self),
        }
    }

    /// Whether it takes statements of a workload's own.
    pub(super) fn has_sql(self) -> bool {
        match self {
            Place::Memory => false,
            Place::Other(other, _) => other.has_sql,
            Place::Trellis(..) => true,
        }
    }

    pub(super) fn is_trellis(self) -> bool {
        matches!(self, Place::Trellis(..))
    }

    /// How entities can lie there, the default first. Of Trellis only that: its protocols are what
    /// differs.
    pub(super) fn mappings(self) -> &'static [Mapping] {
        match self {
            Place::Memory => Kind::Memory.mappings(),
            Place::Other(other, _) => other.kind.mappings(),
            Place::Trellis(..) => &Kind::Postgres.mappings()[..1],
        }
    }
}

/// Servers that run until this is dropped.
pub(super) struct Bed {
    others: Vec<(Product, Vec<Server>)>,
    cluster: Option<(u16, Cluster)>,
    /// Databases of the cluster.
    made: BTreeSet<&'static str>,
    dir: PathBuf,
    /// Nothing is left to clear when the process is interrupted.
    over: Over,
    _interrupt: Interrupt,
}

impl Bed {
    /// Nothing runs yet: servers start when they are asked for.
    pub(super) fn new() -> Result<Bed> {
        let dir = std::env::temp_dir().join(format!("trellis-paper-{:016x}", random()));
        std::fs::create_dir_all(&dir)
            .with_context(|| format!("cannot create {}", dir.display()))?;
        let interrupt = Interrupt::watch(&dir, true)?;
        Ok(Bed {
            others: Vec::new(),
            cluster: None,
            made: BTreeSet::new(),
            dir,
            over: Over::default(),
            _interrupt: interrupt,
        })
    }

    /// The URL of a store that runs; `None`: it is not installed.
    pub(super) fn url(&mut self, place: Place) -> Result<Option<String>> {
        match place {
            Place::Memory => Ok(Some("memory:".to_owned())),
            Place::Other(other, servers) => {
                let Some(all) = self.servers(other, servers)? else {
                    return Ok(None);
                };
                let first = all[0].url(other.database);
                let hosts: Vec<String> = all.iter().map(|it| it.address().to_string()).collect();
                let joined = first.replacen(&hosts[0], &hosts.join(","), 1);
                Ok(Some(joined))
            }
            Place::Trellis(system, nodes) => self.trellis(system, nodes).map(Some),
        }
    }

    /// So many servers of a product; those that run already are used again.
    fn servers(&mut self, other: &Other, servers: usize) -> Result<Option<&[Server]>> {
        let product = other.product;
        let at = match self.others.iter().position(|(known, _)| *known == product) {
            Some(at) => at,
            None => {
                self.others.push((product, Vec::new()));
                self.others.len() - 1
            }
        };
        while self.others[at].1.len() < servers {
            let Some(server) = Server::start(product, other.arguments)? else {
                return Ok(None);
            };
            let remains = server.remains();
            self.over.or_at_interrupt(move || remains.clear());
            self.others[at].1.push(server);
        }
        Ok(Some(&self.others[at].1[..servers]))
    }

    fn trellis(&mut self, system: System, nodes: u16) -> Result<String> {
        if self.cluster.as_ref().is_none_or(|(has, _)| *has != nodes) {
            if let Some((_, cluster)) = self.cluster.take() {
                cluster.stop()?;
            }
            self.made.clear();
            let cluster = Cluster::start_of(nodes, PEER_LINK, 1).context("a cluster of Trellis")?;
            self.cluster = Some((nodes, cluster));
        }
        let (_, cluster) = self.cluster.as_ref().context("it was started")?;
        let database = match system {
            System::Formula => "strudel_formula",
            System::Leap => "strudel_leap",
            System::Serial | System::Interleaved => "strudel_two_phase",
        };
        if self.made.insert(database) {
            cluster.create_database(database, system)?;
        }
        Ok(url(cluster.nodes(), database))
    }

    /// Ends the servers of a product, so that the next one has the machine for itself. A cluster of
    /// Trellis runs on: its databases differ.
    pub(super) fn end(&mut self, place: Place) {
        if let Place::Other(other, _) = place {
            self.others.retain(|(known, _)| *known != other.product);
        }
    }

    /// Processor time of the servers of a place so far, in microseconds; `None`: it has none.
    pub(super) fn cpu_us(&self, place: Place) -> Option<f64> {
        let roots: Vec<u32> = match place {
            Place::Memory => return None,
            Place::Other(other, servers) => {
                let mut found = self.others.iter();
                let found = found.find(|(known, _)| *known == other.product)?;
                let pids = found.1.iter().take(servers);
                pids.filter_map(|it| it.remains().pid().map(|pid| pid as u32))
                    .collect()
            }
            Place::Trellis(..) => self.cluster.as_ref()?.1.pids(),
        };
        Some(cpu_us(&roots))
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.others.clear();
        self.cluster = None;
        self.over.note();
        // Best effort: a temporary directory that stays behind does no harm.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// User and system time of processes and all that they have started, the ended ones too.
fn cpu_us(roots: &[u32]) -> f64 {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return 0.0;
    };
    let pids = entries.flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let all: Vec<(u32, u32, f64)> = pids.filter_map(read_stat).collect();
    let mut own: BTreeSet<u32> = roots.iter().copied().collect();
    loop {
        let children = all.iter().filter(|(_, parent, _)| own.contains(parent));
        let more: Vec<u32> = children.map(|(pid, ..)| *pid).collect();
        let before = own.len();
        own.extend(more);
        if own.len() == before {
            break;
        }
    }
    let used = all.iter().filter(|(pid, ..)| own.contains(pid));
    used.map(|(_, _, ticks)| ticks).sum::<f64>() / TICKS_PER_S * 1e6
}

/// A process: its number, its parent's, and its ticks with those of the children it has waited for.
fn read_stat(pid: u32) -> Option<(u32, u32, f64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().map(|it| it.parse::<f64>());
    let ticks: f64 = ticks.collect::<Result<Vec<f64>, _>>().ok()?.iter().sum();
    Some((pid, fields.get(1)?.parse().ok()?, ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_the_mappings_of_their_stores() {
        for place in Place::all() {
            assert!(!place.mappings().is_empty(), "{}", place.name());
        }
        let names: Vec<String> = Place::all().into_iter().map(Place::name).collect();
        assert_eq!(names.len(), 8);
        let routed: Vec<usize> = Place::others()
            .map(|place| place.of(5).map_or(0, Place::servers))
            .collect();
        assert_eq!(routed, [0, 0, 5, 5]);
    }

    #[test]
    fn time_of_a_process_is_found() {
        let began = std::time::Instant::now();
        while cpu_us(&[std::process::id()]) == 0.0 {
            assert!(began.elapsed() < Duration::from_secs(60));
        }
    }
}
