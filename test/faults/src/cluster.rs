//! Three nodes on 127.0.0.1, .2 and .3, and the faults that node 2 can have.

use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Number of nodes.
pub(crate) const NODES: u16 = 3;
const SQL_PORT: u16 = 5433;
const PEER_PORT: u16 = 6433;

/// A running cluster. Dropping it ends the processes.
pub(crate) struct Cluster {
    program: PathBuf,
    folder: PathBuf,
    nodes: Vec<Option<Child>>,
}

/// A fault. All faults are of node 2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// The process is killed. It starts again when the fault ends.
    Kill,
    /// The process stands still.
    Stop,
    /// Nothing passes between node 2 and node 1, in either direction.
    CutFromFirst,
    /// Nothing passes between node 2 and node 3.
    CutFromLast,
    /// Nothing passes between node 2 and any other.
    CutOff,
}

impl Fault {
    pub(crate) const ALL: [Fault; 5] = [
        Fault::Kill,
        Fault::Stop,
        Fault::CutFromFirst,
        Fault::CutFromLast,
        Fault::CutOff,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Fault::Kill => "kill 2",
            Fault::Stop => "stop 2",
            Fault::CutFromFirst => "cut 1-2",
            Fault::CutFromLast => "cut 2-3",
            Fault::CutOff => "cut 1-2 2-3",
        }
    }

    /// The nodes that cannot reach node 2 during the fault.
    fn parted(self) -> &'static [u16] {
        match self {
            Fault::Kill | Fault::Stop => &[],
            Fault::CutFromFirst => &[1],
            Fault::CutFromLast => &[3],
            Fault::CutOff => &[1, 3],
        }
    }

    /// Whether a client of node `at` can use a row whose home is node `home`.
    pub(crate) fn leaves(self, at: u16, home: u16) -> bool {
        match self {
            Fault::Kill | Fault::Stop => at != VICTIM && home != VICTIM,
            _ => {
                let other = if at == VICTIM { home } else { at };
                let crosses = (at == VICTIM) != (home == VICTIM);
                !(crosses && self.parted().contains(&other))
            }
        }
    }
}

/// The node that has the faults.
pub(crate) const VICTIM: u16 = 2;

impl Cluster {
    /// Brings the network of this namespace up and starts all nodes.
    pub(crate) fn start(program: &Path, folder: &Path) -> Result<Cluster> {
        run("ip", &["link", "set", "lo", "up"])?;
        run("nft", &["add table inet faults"])?;
        let chain = "add chain inet faults input { type filter hook input priority 0; }";
        run("nft", &[chain])?;
        let mut text = format!("cluster = {}\nshards = 1\n", std::process::id());
        for id in 1..=NODES {
            text.push_str(&format!(
                "[[node]]\nid = {id}\nsql = \"127.0.0.{id}:{SQL_PORT}\"\npeer = \
                 \"127.0.0.{id}:{PEER_PORT}\"\ndata = \"node-{id}\"\n"
            ));
        }
        std::fs::write(folder.join("cluster.toml"), text)?;
        let mut cluster = Cluster {
            program: program.to_path_buf(),
            folder: folder.to_path_buf(),
            nodes: (0..NODES).map(|_| None).collect(),
        };
        for id in 1..=NODES {
            cluster.start_node(id, &["--new"])?;
        }
        Ok(cluster)
    }

    /// The URL of a database at a node.
    pub(crate) fn url(node: u16, database: &str) -> String {
        format!("postgres://postgres@127.0.0.{node}:{SQL_PORT}/{database}?connect_timeout=1")
    }

    fn start_node(&mut self, id: u16, also: &[&str]) -> Result<()> {
        let log = self.folder.join(format!("node-{id}.log"));
        let log = File::options().create(true).append(true).open(log)?;
        let mut command = Command::new(&self.program);
        command
            .args(["start", "--node", &id.to_string(), "--cluster"])
            .arg(self.folder.join("cluster.toml"))
            .args(also)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let child = command.spawn().context("cannot start trellis")?;
        self.nodes[usize::from(id - 1)] = Some(child);
        Ok(())
    }

    fn signal(&mut self, id: u16, signal: &str) -> Result<()> {
        let child = self.nodes[usize::from(id - 1)].as_ref();
        let pid = child.context("the node does not run")?.id().to_string();
        run("kill", &[signal, &pid])
    }

    /// Begins a fault.
    pub(crate) fn hurt(&mut self, fault: Fault) -> Result<()> {
        match fault {
            Fault::Kill => {
                self.signal(VICTIM, "-KILL")?;
                let child = self.nodes[usize::from(VICTIM - 1)].take();
                child.context("the node does not run")?.wait()?;
                Ok(())
            }
            Fault::Stop => self.signal(VICTIM, "-STOP"),
            _ => {
                for other in fault.parted() {
                    for (from, to) in [(VICTIM, *other), (*other, VICTIM)] {
                        let rule = format!(
                            "add rule inet faults input ip saddr 127.0.0.{from} ip daddr \
                             127.0.0.{to} drop"
                        );
                        run("nft", &[&rule])?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Ends a fault.
    pub(crate) fn heal(&mut self, fault: Fault) -> Result<()> {
        match fault {
            Fault::Kill => self.start_node(VICTIM, &[]),
            Fault::Stop => self.signal(VICTIM, "-CONT"),
            _ => run("nft", &["flush chain inet faults input"]),
        }
    }

    /// Checks that all nodes still run.
    pub(crate) fn check(&mut self) -> Result<()> {
        for (at, child) in self.nodes.iter_mut().enumerate() {
            let child = child.as_mut().context("a node is missing")?;
            let ended = child.try_wait()?;
            ensure!(ended.is_none(), "node {} ended: {ended:?}", at + 1);
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.nodes.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn run(program: &str, args: &[&str]) -> Result<()> {
    let mut command = Command::new(program);
    let output = command.args(args).output();
    let output = output.with_context(|| format!("cannot run {program}"))?;
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(
        output.status.success(),
        "{program} {}: {error}",
        args.join(" ")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_costs_the_rows_that_it_parts_from_a_client() {
        assert!(Fault::Kill.leaves(1, 3));
        assert!(!Fault::Kill.leaves(1, 2));
        assert!(!Fault::CutFromFirst.leaves(1, 2));
        assert!(Fault::CutFromFirst.leaves(3, 2));
        assert!(Fault::CutFromFirst.leaves(1, 3));
        assert!(!Fault::CutFromFirst.leaves(2, 1));
        assert!(Fault::CutOff.leaves(2, 2));
    }
}
