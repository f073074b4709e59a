//! What Ctrl-C does while child processes run.

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::Path;

/// On SIGINT and SIGTERM: ends the nodes whose data lies in `dir`, removes the directory if
/// `remove`, and ends the process with code 130.
pub(crate) fn on_interrupt(dir: &Path, remove: bool) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot listen for signals")?;
    let dir = dir.to_path_buf();
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            for pid in crate::stop::pids(&dir) {
                let _ = crate::local_cluster::terminate(pid);
            }
            crate::stop::wait_ended(&dir, std::time::Duration::from_secs(20));
            if remove {
                let _ = std::fs::remove_dir_all(&dir);
            }
            std::process::exit(130);
        }
    });
    Ok(())
}
