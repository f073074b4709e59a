//! A cluster of node processes on this machine, children of this process.

use crate::login::{self, FIRST_ROLE};
use crate::node_log::NodeLog;
use crate::nodes::clock_file;
use anyhow::{Context, Result, bail};
use links::link::{Link, LinkError};
use links::url::Target;
use nix::sys::signal::Signal;
use runtime::{ClusterFile, NodeEntry};
use std::fmt;
use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A node must answer its first query within this time; recovery of a large journal takes the most.
const START_TIMEOUT: Duration = Duration::from_secs(300);
/// A node must end within this time after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(150);

/// The variable by which the library of a node's clock is told its file.
const CLOCK_VARIABLE: &str = "TRELLIS_CLOCK";

/// The running nodes. Dropping it kills what still runs.
pub struct LocalCluster {
    nodes: Vec<Running>,
    /// Nodes that were started again and have not answered yet.
    returning: Vec<u16>,
    settings: Settings,
}

/// What the processes of nodes are started with.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Bytes of memory that each node may have; `None`: an equal part of the machine's.
    pub memory: Option<u64>,
    /// Where node 1 tells its metrics; the others at the ports that follow.
    pub metrics: Option<SocketAddr>,
    /// A library that is preloaded, and by which a benchmark sets the clock of each node (its file:
    /// [`crate::nodes::clock_file`]).
    pub clock_library: Option<PathBuf>,
}

/// What each of so many nodes may have of this machine's memory.
fn share(nodes: usize) -> Option<u64> {
    let bytes = runtime::memory::detected_bytes()? / nodes as u64;
    Some(bytes.max(runtime::memory::LIMIT_BYTES_MIN))
}

/// One node that runs.
struct Running {
    node: NodeEntry,
    /// Its cluster file.
    path: PathBuf,
    child: Child,
    log: NodeLog,
    /// When it answered SQL first.
    ready: Arc<OnceLock<Instant>>,
}

/// A node that has ended by itself.
pub struct Ended {
    /// Which one.
    pub node: NodeEntry,
    /// Its cluster file.
    pub path: PathBuf,
    /// How its process ended.
    pub status: ExitStatus,
    /// How long it answered SQL; `None`: it never did.
    pub served: Option<Duration>,
    /// The end of what it wrote to standard error.
    pub last_lines: Vec<String>,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} {}", self.node.id, describe(self.status))
    }
}

/// How a process has ended, for people.
fn describe(status: ExitStatus) -> String {
    let Some(number) = status.signal() else {
        let code = status.code().unwrap_or_default();
        return format!("ended with exit code {code}");
    };
    match Signal::try_from(number) {
        Ok(signal @ Signal::SIGKILL) => format!(
            "was killed by signal {number} ({signal}: somebody's kill -9, or the system's because \
             memory ran out)"
        ),
        Ok(signal) => format!("was ended by signal {number} ({signal})"),
        Err(_) => format!("was ended by signal {number}"),
    }
}

/// What came of a start.
pub enum Started {
    /// All nodes answer.
    Ready(LocalCluster),
    /// It was called off before all nodes answered; they are stopped.
    CalledOff,
}

impl LocalCluster {
    /// Starts every node of the file, and waits until all answer SQL, or `is_called_off` says yes.
    ///
    /// # Errors
    /// A node ended by itself (it has said why) or does not answer; none runs then.
    pub fn start(
        path: &Path,
        file: &ClusterFile,
        settings: &Settings,
        is_called_off: &mut dyn FnMut() -> bool,
    ) -> Result<Started> {
        LocalCluster::start_each(|_| path.to_path_buf(), file, settings, is_called_off)
    }

    /// As [`LocalCluster::start`], with a cluster file for each node: the addresses by which they
    /// reach each other may differ.
    pub fn start_each(
        path: impl Fn(&NodeEntry) -> PathBuf,
        file: &ClusterFile,
        settings: &Settings,
        is_called_off: &mut dyn FnMut() -> bool,
    ) -> Result<Started> {
        let mut cluster = LocalCluster {
            nodes: Vec::new(),
            returning: Vec::new(),
            settings: Settings {
                memory: settings.memory.or_else(|| share(file.nodes.len())),
                ..settings.clone()
            },
        };
        for node in &file.nodes {
            let running = spawn(node.clone(), path(node), &cluster.settings)?;
            cluster.nodes.push(running);
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
        for at in 0..self.nodes.len() {
            loop {
                if is_called_off() {
                    return Ok(false);
                }
                if let Some(ended) = self.take_ended()? {
                    bail!("{ended} while the cluster started");
                }
                let running = &self.nodes[at];
                let error = match answers(&running.node, &running.path) {
                    Ok(()) => {
                        running.ready.get_or_init(Instant::now);
                        note_begun(&running.path, &running.node)?;
                        break;
                    }
                    Err(error) => error,
                };
                if Instant::now() > until {
                    return Err(error.context(format!(
                        "node {} does not answer after {} s",
                        running.node.id,
                        START_TIMEOUT.as_secs()
                    )));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(true)
    }

    /// A node that has ended by itself, told once.
    pub fn take_ended(&mut self) -> Result<Option<Ended>> {
        for at in 0..self.nodes.len() {
            let ended = self.nodes[at].child.try_wait();
            if let Some(status) = ended.context("cannot watch a node")? {
                let mut running = self.nodes.remove(at);
                self.returning.retain(|id| *id != running.node.id);
                return Ok(Some(Ended {
                    served: running.ready.get().map(Instant::elapsed),
                    last_lines: running.log.last_lines(),
                    node: running.node,
                    path: running.path,
                    status,
                }));
            }
        }
        Ok(None)
    }

    /// Starts a node again that has ended; does not wait for it.
    ///
    /// # Errors
    /// No process can be started.
    pub fn start_again(&mut self, node: NodeEntry, path: PathBuf) -> Result<()> {
        let running = spawn(node, path, &self.settings)?;
        let (node, ready) = (running.node.clone(), running.ready.clone());
        let path = running.path.clone();
        self.returning.push(node.id);
        // A node that recovers takes connections, and answers them when it is done.
        std::thread::spawn(move || {
            let until = Instant::now() + START_TIMEOUT;
            while Instant::now() < until {
                if answers(&node, &path).is_ok() {
                    ready.get_or_init(Instant::now);
                    return;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        self.nodes.push(running);
        Ok(())
    }

    /// Nodes that were started again and answer by now; each is told once.
    pub fn take_returned(&mut self) -> Vec<u16> {
        let is_ready = |id: &u16| {
            let running = self.nodes.iter().find(|running| running.node.id == *id);
            running.is_some_and(|running| running.ready.get().is_some())
        };
        let (returned, rest) = self.returning.iter().partition(|id| is_ready(id));
        self.returning = rest;
        returned
    }

    /// Whether no node is left.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Sends SIGTERM to all nodes and waits until they have ended.
    ///
    /// # Errors
    /// A node ended with another code than 0, or does not end in time and is killed.
    pub fn stop(mut self) -> Result<()> {
        for running in &mut self.nodes {
            if running.child.try_wait()?.is_none() {
                terminate(running.child.id())?;
            }
        }
        let until = Instant::now() + STOP_TIMEOUT;
        let mut failed = Vec::new();
        while let Some(Running { node, child, .. }) = self.nodes.first_mut() {
            match child.try_wait()? {
                Some(status) if status.success() => {}
                Some(status) => failed.push(format!("node {} {}", node.id, describe(status))),
                None if Instant::now() > until => bail!("node {} does not stop", node.id),
                None => {
                    std::thread::sleep(Duration::from_millis(10));
                    continue;
                }
            }
            self.nodes.remove(0);
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
        for running in &mut self.nodes {
            // Best effort: the process is going down with an error already.
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }
}

/// The file beside the cluster file that tells that a node was in use: from then on its data
/// directory, which may lie on another disk, must not be empty.
fn begun_file(cluster: &Path, node: &NodeEntry) -> PathBuf {
    cluster.with_file_name(format!("node-{}.begun", node.id))
}

fn note_begun(cluster: &Path, node: &NodeEntry) -> Result<()> {
    let file = begun_file(cluster, node);
    if file.exists() {
        return Ok(());
    }
    let folder = file.parent().unwrap_or(Path::new("."));
    let sync = |path: &Path| File::open(path)?.sync_all();
    let noted = File::create(&file).and_then(|_| sync(&file));
    let noted = noted.and_then(|()| sync(folder));
    noted.with_context(|| format!("cannot write {}", file.display()))
}

/// Starts the process of a node.
fn spawn(node: NodeEntry, path: PathBuf, settings: &Settings) -> Result<Running> {
    let program = std::env::current_exe().context("cannot find the trellis program")?;
    let mut command = Command::new(program);
    command.args(["start", "--node", &node.id.to_string(), "--cluster"]);
    command.arg(&path);
    if let Some(bytes) = settings.memory {
        command.args(["--memory", &format!("{}kB", bytes >> 10)]);
    }
    if let Some(mut address) = settings.metrics {
        let port = address.port().checked_add(node.id - 1);
        address.set_port(port.context("the ports of --metrics run past 65535")?);
        command.args(["--metrics", &address.to_string()]);
    }
    if let Some(library) = &settings.clock_library {
        let dir = path.parent().unwrap_or(Path::new("."));
        command.env("LD_PRELOAD", library);
        command.env(CLOCK_VARIABLE, clock_file(dir, node.id));
    }
    if !begun_file(&path, &node).exists() {
        command.arg("--new");
    }
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot start a node")?;
    let stderr = child.stderr.take().expect("it was asked for");
    Ok(Running {
        node,
        path,
        child,
        log: NodeLog::follow(stderr),
        ready: Arc::default(),
    })
}

/// Sends SIGTERM. By way of the shell, whose `kill` is part of it on every Unix: the standard
/// library has no call for it, and one call is no reason for unsafe code.
///
/// # Errors
/// There is no such process, or it belongs to somebody else.
pub fn terminate(pid: u32) -> Result<()> {
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
pub fn url<'a>(nodes: impl IntoIterator<Item = &'a NodeEntry>, database: &str) -> String {
    let endpoints: Vec<String> = nodes.into_iter().map(|node| node.sql.to_string()).collect();
    format!("postgres://{FIRST_ROLE}@{}/{database}", endpoints.join(","))
}

/// A connection to one node that asks for no password.
pub fn connect(node: &NodeEntry, database: &str) -> Result<Link> {
    connect_with(node, database, None)
}

/// A connection to one node, with the password of [`crate::login::FIRST_ROLE`] if it asks for one.
pub fn connect_with(node: &NodeEntry, database: &str, password: Option<String>) -> Result<Link> {
    let mut target = Target::parse(&url([node], database))?;
    target.password = password;
    let link = Link::connect(&target.endpoints[0], &target, Some(Duration::from_secs(10)))?;
    Ok(link)
}

/// Whether a server has said that it does not know who asks (class 28 of SQLSTATE).
fn is_login_refused(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<LinkError>() {
        Some(LinkError::Server(error)) => error.sqlstate.starts_with("28"),
        _ => false,
    }
}

/// Whether a node serves; the password lies beside its cluster file.
fn answers(node: &NodeEntry, cluster: &Path) -> Result<()> {
    let password = cluster.parent().and_then(login::password);
    let mut link = match connect_with(node, "postgres", password) {
        Ok(link) => link,
        // It asks for another password, so it serves.
        Err(error) if is_login_refused(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    link.command("SELECT 1")?;
    link.close();
    Ok(())
}
