//! The CI step `sim`: seeds under faults, dealt over all workloads, within a fixed time.

use crate::{repo, shell};
use anyhow::{Context, Result, ensure};
use std::process::Command;
use std::time::Duration;

/// Time that the simulation has in CI; the run itself ends by it.
const SECONDS: &str = "420";
/// Runs that each workload must have had, however slow the machine is.
const AT_LEAST: &str = "40";
/// A simulation that does not end by itself is ended.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// Runs the step; answers the number of runs that passed.
pub(crate) fn run() -> Result<usize> {
    let json = repo::cache_dir()?.join("sim.json");
    let _ = std::fs::remove_file(&json);
    let mut command = Command::new(repo::target_dir().join("release/trellis"));
    command
        .args(["sim", "run", "--seeds", "1000000", "--jobs", "2"])
        .args(["--seconds", SECONDS, "--at-least", AT_LEAST])
        .arg("--json")
        .arg(&json);
    let text = shell::run_logged(&mut command, &json.with_extension("log"), LIMIT)?;
    println!("{}", shell::tail(&text, 60));
    let last = text.lines().last().context("the simulation said nothing")?;
    let (passed, failed) = last
        .strip_suffix(" failed")
        .and_then(|rest| rest.split_once(" passed, "))
        .context("the last line is not `N passed, M failed`")?;
    ensure!(failed == "0", "{failed} seeds failed");
    passed.parse().context("a number of seeds")
}
