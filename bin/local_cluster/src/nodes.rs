//! What the directory of a local cluster tells of its nodes: which run, and whether they were told
//! to stop.

use crate::dir;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// In the cluster's directory, once somebody has told its nodes to stop.
const ASKED_FILE: &str = "STOP";

/// Notes that the nodes are told to stop: one that is about to be started again must not be.
///
/// # Errors
/// The directory cannot be written.
pub fn ask_to_stop(dir: &Path) -> Result<()> {
    let marker = dir.join(ASKED_FILE);
    std::fs::write(&marker, "").with_context(|| format!("cannot write {}", marker.display()))
}

/// Whether `trellis stop` was run since the last [`forget`].
pub fn is_asked(dir: &Path) -> bool {
    dir.join(ASKED_FILE).exists()
}

/// The cluster starts: what it was told before does not count.
pub fn forget(dir: &Path) -> Result<()> {
    for node in dir::existing(dir)?.nodes {
        // Mostly there is none.
        let _ = std::fs::remove_file(hold_file(dir, node.id));
        let _ = std::fs::remove_file(clock_file(dir, node.id));
    }
    let marker = dir.join(ASKED_FILE);
    match std::fs::remove_file(&marker) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", marker.display()))
        }
        _ => Ok(()),
    }
}

/// A file of the cluster's directory. As long as it exists, a node that has ended is not started
/// again: a benchmark wants it down for a while.
pub fn hold_file(dir: &Path, node: u16) -> PathBuf {
    dir.join(format!("node-{node}.held"))
}

/// A file of the cluster's directory by which a benchmark sets the clock of a node that was started
/// with one that can be set.
pub fn clock_file(dir: &Path, node: u16) -> PathBuf {
    dir.join(format!("node-{node}.clock"))
}

/// The process that uses a data directory. A PID file alone proves nothing: the lock does.
pub fn pid(data: &Path) -> Option<u32> {
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
pub fn pids(dir: &Path) -> Vec<u32> {
    let file = dir::existing(dir);
    let nodes = file.map(|file| file.nodes).unwrap_or_default();
    nodes.iter().filter_map(|node| pid(&node.data)).collect()
}

/// Waits until no node runs; false if some still do after `timeout`.
pub fn wait_ended(dir: &Path, timeout: Duration) -> bool {
    let until = Instant::now() + timeout;
    while !pids(dir).is_empty() {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}
