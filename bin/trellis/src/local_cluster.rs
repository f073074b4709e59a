//! A cluster of node processes on this machine, children of this process.

use anyhow::{Context, Result, bail};
use drive::link::Link;
use drive::url::Target;
use runtime::{ClusterFile, NodeEntry};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A node must answer its first query within this time; recovery of a large journal takes the most.
const START_TIMEOUT: Duration = Duration::from_secs(300);
/// A node must end within this time after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(150);

/// The running nodes. Dropping it kills what still runs.
pub(crate) struct LocalCluster {
    children: Vec<(NodeEntry, Child)>,
}

/// What came of a start.
pub(crate) enum Started {
    Ready(LocalCluster),
    /// It was called off before all nodes answered; they are stopped.
    CalledOff,
}

impl LocalCluster {
    /// Starts every node of the file and waits until all answer SQL, or `is_called_off` says yes.
    ///
    /// # Errors
    /// A node ended by itself (it has said why) or does not answer; none runs then.
    pub(crate) fn start(
        path: &Path,
        file: &ClusterFile,
        is_called_off: &mut dyn FnMut() -> bool,
    ) -> Result<Started> {
        LocalCluster::start_each(|_| path.to_path_buf(), file, is_called_off)
    }

    /// As [`LocalCluster::start`], with a cluster file for each node: the addresses by which they
    /// reach each other may differ.
    pub(crate) fn start_each(
        path: impl Fn(&NodeEntry) -> PathBuf,
        file: &ClusterFile,
        is_called_off: &mut dyn FnMut() -> bool,
    ) -> Result<Started> {
        let program = std::env::current_exe().context("cannot find the trellis program")?;
        let mut cluster = LocalCluster {
            children: Vec::new(),
        };
        for node in &file.nodes {
            let mut command = Command::new(&program);
            command
                .args(["start", "--node", &node.id.to_string(), "--cluster"])
                .arg(path(node));
            let child = command
                .stdin(Stdio::null())
                .spawn()
                .context("cannot start a node")?;
            cluster.children.push((node.clone(), child));
        }
        if cluster.wait_ready(is_called_off)? {
            return Ok(Started::Ready(cluster));
        }
        cluster.stop()?;
        Ok(Started::CalledOff)
    }

    /// Whether all nodes answer; `false` if the start was called off.
    fn wait_ready(&mut self, is_called_off: &mut dyn FnMut() -> bool) -> Result<bool> {
        let until = Instant::now() + START_TIMEOUT;
        for at in 0..self.children.len() {
            loop {
                if is_called_off() {
                    return Ok(false);
                }
                if let Some((node, status)) = self.take_ended()? {
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
        Ok(true)
    }

    /// A node that has ended by itself, told once: its number and how.
    pub(crate) fn take_ended(&mut self) -> Result<Option<(u16, ExitStatus)>> {
        for at in 0..self.children.len() {
            if let Some(status) = self.children[at]
                .1
                .try_wait()
                .context("cannot watch a node")?
            {
                let (node, _) = self.children.remove(at);
                return Ok(Some((node.id, status)));
            }
        }
        Ok(None)
    }

    /// Whether no node is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// Sends SIGTERM to all nodes and waits until they have ended.
    ///
    /// # Errors
    /// A node ended with another code than 0, or does not end in time and is killed.
    pub(crate) fn stop(mut self) -> Result<()> {
        for (_, child) in &mut self.children {
            if child.try_wait()?.is_none() {
                terminate(child.id())?;
            }
        }
        let until = Instant::now() + STOP_TIMEOUT;
        let mut failed = Vec::new();
        while let Some((node, child)) = self.children.first_mut() {
            match child.try_wait()? {
                Some(status) if status.success() => {}
                Some(status) => failed.push(format!("node {} ended with {status}", node.id)),
                None if Instant::now() > until => bail!("node {} does not stop", node.id),
                None => {
                    std::thread::sleep(Duration::from_millis(10));
                    continue;
                }
            }
            self.children.remove(0);
        }
        if failed.is_empty() {
            Ok(())
        } else {
            bail!("{}", failed.join("; "))
        }
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

/// Sends SIGTERM. By way of the shell, whose `kill` is part of it on every Unix: the standard
/// library has no call for it, and one call is no reason for unsafe code.
///
/// # Errors
/// There is no such process, or it belongs to somebody else.
pub(crate) fn terminate(pid: u32) -> Result<()> {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "kill -TERM \"$0\"", &pid.to_string()])
        .stderr(Stdio::null());
    let status = shell
        .status()
        .context("cannot start a shell to signal a node")?;
    if !status.success() {
        bail!("cannot signal process {pid}");
    }
    Ok(())
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
