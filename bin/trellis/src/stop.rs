//! `trellis stop`: ends the nodes of a local cluster in good order.

use crate::cluster_dir;
use crate::local_cluster::terminate;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Arguments of `trellis stop`.
#[derive(Args)]
pub(crate) struct StopArgs {
    /// Directory of the local cluster
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Seconds to wait for the nodes to end
    #[arg(long, value_name = "SECONDS", default_value_t = 150)]
    timeout: u64,
}

/// Sends SIGTERM to every running node and waits.
///
/// # Errors
/// There is no cluster, or a node still runs after the timeout.
pub(crate) fn run(args: &StopArgs) -> Result<()> {
    let file = cluster_dir::existing(&args.data)?;
    // A node that is about to be started again must not be.
    let marker = args.data.join(ASKED_FILE);
    std::fs::write(&marker, "").with_context(|| format!("cannot write {}", marker.display()))?;
    let mut out = std::io::stdout();
    for node in &file.nodes {
        match pid(&node.data) {
            Some(pid) => {
                terminate(pid)?;
                writeln!(out, "node {}: stopping (process {pid})", node.id)?;
            }
            None => writeln!(out, "node {}: not running", node.id)?,
        }
    }
    if !wait_ended(&args.data, Duration::from_secs(args.timeout)) {
        bail!("some nodes still run after {} s", args.timeout);
    }
    Ok(())
}

/// In the cluster's directory, once somebody has told its nodes to stop.
const ASKED_FILE: &str = "STOP";

/// Whether `trellis stop` was run since the last [`forget`].
pub(crate) fn is_asked(dir: &Path) -> bool {
    dir.join(ASKED_FILE).exists()
}

/// The cluster starts: what it was told before does not count.
pub(crate) fn forget(dir: &Path) -> Result<()> {
    let marker = dir.join(ASKED_FILE);
    match std::fs::remove_file(&marker) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", marker.display()))
        }
        _ => Ok(()),
    }
}

/// The process that uses a data directory. A PID file alone proves nothing: the lock does.
fn pid(data: &Path) -> Option<u32> {
    let lock = std::fs::File::open(data.join("LOCK")).ok()?;
    if lock.try_lock().is_ok() {
        return None;
    }
    std::fs::read_to_string(data.join("PID"))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// Processes of the nodes of the cluster in `dir` that run.
pub(crate) fn pids(dir: &Path) -> Vec<u32> {
    let file = cluster_dir::existing(dir);
    let nodes = file.map(|file| file.nodes).unwrap_or_default();
    nodes.iter().filter_map(|node| pid(&node.data)).collect()
}

/// Waits until no node runs; false if some still do after `timeout`.
pub(crate) fn wait_ended(dir: &Path, timeout: Duration) -> bool {
    let until = Instant::now() + timeout;
    while !pids(dir).is_empty() {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}
