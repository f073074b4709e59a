//! `trellis stop`: ends the nodes of a local cluster in good order.

use anyhow::{Result, bail};
use clap::Args;
use local_cluster::{dir, nodes, terminate};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

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
    let file = dir::existing(&args.data)?;
    // A node that is about to be started again must not be.
    nodes::ask_to_stop(&args.data)?;
    let mut out = std::io::stdout();
    for node in &file.nodes {
        match nodes::pid(&node.data) {
            Some(pid) => {
                terminate(pid)?;
                writeln!(out, "node {}: stopping (process {pid})", node.id)?;
            }
            None => writeln!(out, "node {}: not running", node.id)?,
        }
    }
    if !nodes::wait_ended(&args.data, Duration::from_secs(args.timeout)) {
        bail!("some nodes still run after {} s", args.timeout);
    }
    Ok(())
}
