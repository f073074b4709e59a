//! A cluster of node processes on this machine, children of this process.

use anyhow::{Context, Result, bail};
use drive::link::Link;
use drive::url::Target;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use runtime::{ClusterFile, NodeEntry};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// A node must answer its first query within this time; recovery of a large journal takes the most.
const START_TIMEOUT: Duration = Duration::from_secs(300);
/// A node must end within this time after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(150);

/// The running nodes. Dropping it kills what still runs.
pub(crate) struct LocalCluster {
    children: Vec<(NodeEntry, Child)>,
}

impl LocalCluster {
    /// Starts every node of the file and waits until all answer SQL.
    pub(crate) fn start(path: &Path, file: &ClusterFile) -> Result<LocalCluster> {
        let program = std::env::current_exe().context("cannot find the trellis program")?;
        let mut cluster = LocalCluster { children: Vec::new() };
        for node in &file.nodes {
            let mut command = Command::new(&program);
            command.args(["start", "--node", &node.id.to_string(), "--cluster"]).arg(path);
            let child = command.spawn().context("cannot start a node")?;
            cluster.children.push((node.clone(), child));
        }
        cluster.wait_ready()?;
        Ok(cluster)
    }

    fn wait_ready(&mut self) -> Result<()> {
        let until = Instant::now() + START_TIMEOUT;
        for at in 0..self.children.len() {
            loop {
                if let Some((node, status)) = self.ended()? {
                    bail!("node {node} ended with {status} while the cluster started");
                }
                let error = match answers(&self.children[at].0) {
                    Ok(()) => break,
                    Err(error) => error,
                };
                if Instant::now() > until {
                    return Err(error.context(format!(
                        "node {} does not answer after {} s",
                        self.children[at].0.id,
                        START_TIMEOUT.as_secs()
                    )));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }

    /// A node that has ended by itself: its number and how.
    pub(crate) fn ended(&mut self) -> Result<Option<(u16, ExitStatus)>> {
        for (node, child) in &mut self.children {
            if let Some(status) = child.try_wait().context("cannot watch a node")? {
                return Ok(Some((node.id, status)));
            }
        }
        Ok(None)
    }

    /// Sends SIGTERM to all nodes and waits until they have ended.
    pub(crate) fn stop(mut self) -> Result<()> {
        for (_, child) in &mut self.children {
            if child.try_wait()?.is_none() {
                terminate(child.id())?;
            }
        }
        let until = Instant::now() + STOP_TIMEOUT;
        for (node, child) in &mut self.children {
            while child.try_wait()?.is_none() {
                if Instant::now() > until {
                    bail!("node {} does not stop", node.id);
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        self.children.clear();
        Ok(())
    }
}

impl Drop for LocalCluster {
    fn drop(&mut self) {
        for (_, child) in &mut self.children {
            // Best effort: the process is going down with an error already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Sends SIGTERM.
pub(crate) fn terminate(pid: u32) -> Result<()> {
    let process = Pid::from_raw(i32::try_from(pid).context("a process id is small")?);
    kill(process, Signal::SIGTERM).with_context(|| format!("cannot signal process {pid}"))
}

/// The URL of nodes for one database.
pub(crate) fn url<'a>(nodes: impl IntoIterator<Item = &'a NodeEntry>, database: &str) -> String {
    let endpoints: Vec<String> = nodes.into_iter().map(|node| node.sql.to_string()).collect();
    format!("postgres://trellis@{}/{database}", endpoints.join(","))
}

/// A connection to one node.
pub(crate) fn connect(node: &NodeEntry, database: &str) -> Result<Link> {
    let target = Target::parse(&url([node], database))?;
    let link = Link::connect(&target.endpoints[0], &target, Some(Duration::from_secs(10)))?;
    Ok(link)
}

fn answers(node: &NodeEntry) -> Result<()> {
    let mut link = connect(node, "postgres")?;
    link.command("SELECT 1")?;
    link.close();
    Ok(())
}
