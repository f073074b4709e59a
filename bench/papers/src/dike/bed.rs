//! What is measured: a local cluster as `trellis start` runs it, and single servers of others.

use crate::over::Over;
use anyhow::{Context, Result, bail};
use drive::tpcc::{self, LoadOptions, Without};
use links::answers::Answers;
use links::link::Link;
use links::url::Target;
use links::view::Silent;
use local_cluster::dir::{CLUSTER_FILE, cluster_file, free_addresses, random};
use local_cluster::{Interrupt, connect, nodes, url};
use runtime::{ClusterFile, NodeEntry};
use servers::{Galera, Kind, Remains, Server};
use sim::scale::System;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use workload::tpcc::{Scale, Skew};

/// Nodes of the cluster.
pub(super) const NODES: u16 = 3;
/// How long it may take to start.
const START_MAX: Duration = Duration::from_secs(60);
/// A new database is on the other nodes of Galera after this at most.
const SPREAD: Duration = Duration::from_millis(500);
const STOP_MAX: Duration = Duration::from_secs(20);
/// Connections and warehouses of the tables.
const LOAD_JOBS: u32 = 4;

/// What a figure measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Three nodes of Trellis, a database with this protocol.
    Trellis(System),
    /// One server of others.
    Other(Kind),
    /// Three nodes of MariaDB that each keep all data.
    Galera,
}

impl Place {
    /// Trellis by protocol.
    pub(super) const TRELLIS: [Place; 3] = [
        Place::Trellis(System::Formula),
        Place::Trellis(System::Interleaved),
        Place::Trellis(System::Leap),
    ];
    /// All of them.
    pub(super) const ALL: [Place; 5] = [
        Place::TRELLIS[0],
        Place::TRELLIS[1],
        Place::TRELLIS[2],
        Place::Other(Kind::Postgres),
        Place::Other(Kind::MariaDb),
    ];

    /// The same, with Galera.
    pub(super) const WITH_GALERA: [Place; 6] = [
        Place::ALL[0],
        Place::ALL[1],
        Place::ALL[2],
        Place::ALL[3],
        Place::ALL[4],
        Place::Galera,
    ];

    pub(super) fn name(self) -> String {
        match self {
            Place::Galera => "MariaDB Galera, 3 nodes".to_owned(),
            Place::Trellis(System::Interleaved) => "Trellis, two_phase".to_owned(),
            Place::Trellis(system) => format!("Trellis, {}", system.name()),
            Place::Other(kind) => kind.name().to_owned(),
        }
    }

    pub(super) fn is_trellis(self) -> bool {
        matches!(self, Place::Trellis(_))
    }
}

/// Tables that a figure wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tables {
    pub(super) warehouses: u32,
    pub(super) skew: Skew,
    pub(super) without: Without,
}

impl Tables {
    /// Even, with binding and broadcast.
    pub(super) fn even(warehouses: u32) -> Tables {
        Tables {
            warehouses,
            skew: Skew::NONE,
            without: Without::default(),
        }
    }

    /// The sizes: small, so that a load takes seconds and contention is where it is asked for.
    pub(super) fn scale(self) -> Scale {
        Scale {
            skew: self.skew,
            ..Scale::reduced(self.warehouses)
        }
    }

    fn key(self) -> String {
        format!(
            "dike_{}_{}_{}{}",
            self.warehouses,
            self.skew.thousandths(),
            u8::from(self.without.binding),
            u8::from(self.without.broadcast)
        )
    }
}

/// Servers that run until this is dropped.
pub(super) struct Bed {
    dir: PathBuf,
    cluster: Option<Child>,
    pub(super) nodes: Vec<NodeEntry>,
    others: Vec<(Kind, Server)>,
    galera: Option<Galera>,
    loaded: BTreeMap<String, ()>,
    /// Nothing is left to clear when the process is interrupted.
    over: Over,
    /// Clears the directory when the process is interrupted.
    _interrupt: Interrupt,
}

impl Bed {
    /// Starts the cluster. Servers of others start when they are asked for.
    pub(super) fn start() -> Result<Bed> {
        Bed::start_of(NODES)
    }

    /// The same of so many nodes.
    pub(super) fn start_of(nodes: u16) -> Result<Bed> {
        let dir = std::env::temp_dir().join(format!("trellis-paper-{:016x}", random()));
        std::fs::create_dir_all(&dir)
            .with_context(|| format!("cannot create {}", dir.display()))?;
        let interrupt = Interrupt::watch(&dir, true)?;
        cluster_file(&free_addresses(nodes)?, Some(1)).write(&dir.join(CLUSTER_FILE))?;
        let file = ClusterFile::read(&dir.join(CLUSTER_FILE))?;
        let log = File::create(dir.join("log"))?;
        let program = std::env::current_exe().context("where this program lies")?;
        let mut command = Command::new(program);
        command.args(["start", "--data"]).arg(&dir);
        command.stdin(Stdio::null()).stdout(log.try_clone()?);
        let child = command.stderr(log).spawn().context("trellis start")?;
        let (over, pid) = (Over::default(), child.id());
        // Its supervisor first: it would start the nodes again.
        over.or_at_interrupt(move || {
            let _ = local_cluster::terminate(pid);
        });
        let mut bed = Bed {
            over,
            dir,
            cluster: Some(child),
            nodes: file.nodes,
            others: Vec::new(),
            galera: None,
            loaded: BTreeMap::new(),
            _interrupt: interrupt,
        };
        bed.wait_up()?;
        Ok(bed)
    }

    fn wait_up(&mut self) -> Result<()> {
        let began = Instant::now();
        while !self.is_up() {
            let ended = self.cluster.as_mut().map(Child::try_wait).transpose()?;
            if ended.flatten().is_some() || began.elapsed() > START_MAX {
                let log = std::fs::read_to_string(self.dir.join("log")).unwrap_or_default();
                bail!("the cluster does not start: {}", tail(&log));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Whether every node answers and sees all others.
    fn is_up(&self) -> bool {
        let up = |node: &NodeEntry| {
            let mut link = connect(node, "postgres").ok()?;
            let rows = rows(&mut link, "SHOW NODES").ok()?;
            link.close();
            let up = rows.iter().filter(|row| row[3] == "up").count();
            Some(up == self.nodes.len())
        };
        self.nodes.iter().all(|node| up(node) == Some(true))
    }

    /// Waits until the cluster is whole again.
    pub(super) fn heal(&mut self) -> Result<()> {
        self.wait_up()
    }

    /// The directory of the cluster.
    pub(super) fn cluster_dir(&self) -> &Path {
        &self.dir
    }

    /// A file for a result.
    pub(super) fn scratch(&self) -> PathBuf {
        self.dir.join("out.json")
    }

    /// A loaded database; it is made when it is first asked for. `None`: the server is not
    /// installed.
    pub(super) fn url(&mut self, place: Place, data: Tables) -> Result<Option<String>> {
        let key = match place {
            Place::Trellis(system) => {
                format!("{}_{}", data.key(), system.name().replace(' ', "_"))
            }
            Place::Other(_) | Place::Galera => data.key(),
        };
        let (base, url) = match place {
            Place::Trellis(_) => (url(&self.nodes, "postgres"), url(&self.nodes, &key)),
            Place::Other(kind) => {
                let Some(server) = self.other(kind)? else {
                    return Ok(None);
                };
                let first = match kind {
                    Kind::Postgres => "postgres",
                    _ => "test",
                };
                (server.url(first), server.url(&key))
            }
            Place::Galera => {
                let Some(galera) = self.galera()? else {
                    return Ok(None);
                };
                (galera.url("test"), galera.url(&key))
            }
        };
        if self.loaded.contains_key(&url) {
            return Ok(Some(url));
        }
        let with = match place {
            Place::Trellis(system) => format!(" WITH ({})", system.options()),
            Place::Other(_) | Place::Galera => String::new(),
        };
        let target = Target::parse(&base)?;
        let mut link = Link::connect(&target.endpoints[0], &target, None)?;
        link.command(&format!("CREATE DATABASE {key}{with}"))?;
        link.close();
        if place == Place::Galera {
            std::thread::sleep(SPREAD);
        }
        let options = LoadOptions {
            scale: data.scale(),
            jobs: LOAD_JOBS,
            without: data.without,
            ..LoadOptions::new(&url, data.warehouses)
        };
        tpcc::load(&options, &mut Silent).with_context(|| format!("loading {}", place.name()))?;
        self.loaded.insert(url.clone(), ());
        Ok(Some(url))
    }

    fn galera(&mut self) -> Result<Option<&Galera>> {
        if self.galera.is_none() {
            self.galera = Galera::start(usize::from(NODES))?;
            let remains = self.galera.as_ref().map(Galera::remains);
            self.over
                .or_at_interrupt(move || remains.iter().flatten().for_each(Remains::clear));
        }
        Ok(self.galera.as_ref())
    }

    fn other(&mut self, kind: Kind) -> Result<Option<&Server>> {
        if !self.others.iter().any(|(known, _)| *known == kind) {
            let arguments: &[&str] = match kind {
                Kind::Postgres => &["-c", "max_connections=400"],
                _ => &[],
            };
            let Some(server) = Server::start(kind, arguments)? else {
                return Ok(None);
            };
            let remains = server.remains();
            self.over.or_at_interrupt(move || remains.clear());
            self.others.push((kind, server));
        }
        let found = self.others.iter().find(|(known, _)| *known == kind);
        Ok(found.map(|(_, server)| server))
    }

    /// What `--target` says of the servers of others at a place: `node1` and so on.
    pub(super) fn other_targets(&self, place: Place) -> Vec<String> {
        let servers: Vec<&Server> = match place {
            Place::Trellis(_) => Vec::new(),
            Place::Other(kind) => {
                let of_kind = self.others.iter().filter(|(known, _)| *known == kind);
                of_kind.map(|(_, server)| server).collect()
            }
            Place::Galera => return self.galera.iter().flat_map(galera_targets).collect(),
        };
        let target = |(number, server): (usize, &Server)| {
            let (pid, data) = (server.remains().pid()?, server.data());
            Some(format!("node{number}=pid:{pid},data:{}", data.display()))
        };
        (1..).zip(servers).filter_map(target).collect()
    }

    /// Waits until every node of Galera is a part of the whole again.
    pub(super) fn heal_galera(&self) -> Result<()> {
        self.galera.as_ref().map_or(Ok(()), join)
    }

    /// What a statement says at the first node that answers.
    pub(super) fn ask(&self, database_url: &str, sql: &str) -> Result<Vec<Vec<String>>> {
        let target = Target::parse(database_url)?;
        let mut link = Link::connect_any(&target, Some(START_MAX))?;
        let found = rows(&mut link, sql);
        link.close();
        found
    }
}

/// The same for nodes that may be killed, by the file of their process.
fn galera_targets(galera: &Galera) -> Vec<String> {
    let target = |(number, node): (usize, &Server)| {
        let (file, data) = (node.pid_file(), node.data());
        let (file, data, again) = (file.display(), data.display(), galera.start_again(node));
        format!("node{number}=pidfile:{file},data:{data},start:{again}")
    };
    (1..).zip(galera.nodes()).map(target).collect()
}

fn join(galera: &Galera) -> Result<()> {
    let began = Instant::now();
    for node in galera.nodes() {
        while !is_synced(node) {
            if began.elapsed() > START_MAX {
                let address = node.address();
                bail!("{address} has not joined the others after {START_MAX:?}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    Ok(())
}

/// Whether a node of Galera has all that was committed, and all others with it.
fn is_synced(node: &Server) -> bool {
    let status = |link: &mut Link, name: &str| {
        let found = rows(link, &format!("SHOW STATUS LIKE '{name}'")).ok()?;
        found.first()?.get(1).cloned()
    };
    let ask = || {
        let target = Target::parse(&node.url("test")).ok()?;
        let mut link = Link::connect(&target.endpoints[0], &target, None).ok()?;
        let state = status(&mut link, "wsrep_local_state_comment")?;
        let size = status(&mut link, "wsrep_cluster_size")?;
        link.close();
        Some(state == "Synced" && size == NODES.to_string())
    };
    ask() == Some(true)
}

fn rows(link: &mut Link, sql: &str) -> Result<Vec<Vec<String>>> {
    let mut answers = Answers::new();
    link.query(sql, &mut answers)?;
    let row = |row| {
        let columns = 0..answers.columns(0);
        columns
            .map(|column| answers.text(0, row, column).to_string())
            .collect()
    };
    Ok((0..answers.rows(0)).map(row).collect())
}

/// The last lines.
pub(super) fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(4)..].join(" / ")
}

impl Drop for Bed {
    fn drop(&mut self) {
        if let Some(mut child) = self.cluster.take() {
            let _ = local_cluster::terminate(child.id());
            let began = Instant::now();
            while child.try_wait().is_ok_and(|it| it.is_none()) && began.elapsed() < STOP_MAX {
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = child.kill();
            let _ = child.wait();
            nodes::wait_ended(&self.dir, STOP_MAX);
        }
        self.others.clear();
        self.galera = None;
        self.over.note();
        // Best effort: a temporary directory that stays behind does no harm.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node that is killed joins the others again, with what was committed meanwhile.
    #[test]
    fn a_killed_node_of_galera_joins_again() -> Result<()> {
        let Some(galera) = Galera::start(usize::from(NODES))? else {
            return Ok(());
        };
        join(&galera)?;
        let link = |at: usize| -> Result<Link> {
            let target = Target::parse(&galera.nodes()[at].url("test"))?;
            Ok(Link::connect(&target.endpoints[0], &target, None)?)
        };
        let mut first = link(0)?;
        first.command("CREATE TABLE t (id int PRIMARY KEY)")?;
        first.command("INSERT INTO t VALUES (1)")?;
        // The first node, which founded the group, joins like the others.
        for at in [1, 0] {
            let pid = galera.nodes()[at].remains().pid().context("it runs")?;
            Command::new("kill")
                .args(["-9", &pid.to_string()])
                .status()?;
            let mut other = link(2)?;
            let began = Instant::now();
            let row = 2 + at;
            while let Err(error) = other.command(&format!("INSERT INTO t VALUES ({row})")) {
                assert!(began.elapsed() < START_MAX, "{error}");
                std::thread::sleep(Duration::from_millis(200));
                other = link(2)?;
            }
            let again = galera.start_again(&galera.nodes()[at]);
            let mut shell = Command::new("sh").args(["-c", &again]).spawn()?;
            join(&galera)?;
            let found = rows(
                &mut link(at)?,
                &format!("SELECT id FROM t WHERE id = {row}"),
            )?;
            assert_eq!(found, [[row.to_string()]]);
            assert_ne!(galera.nodes()[at].remains().pid(), Some(pid));
            let end = galera.nodes()[at].remains();
            if at == 0 {
                end.clear();
                shell.wait()?;
            }
        }
        Ok(())
    }
}
