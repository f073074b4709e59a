//! The CI steps `sim`: seeds under faults, dealt over all workloads, within a fixed time; and
//! `planted`: recorded seeds of planted bugs.

use crate::{ci, repo, shell};
use anyhow::{Context, Result, ensure};
use std::process::Command;
use std::time::Duration;

/// What the simulation has in CI: protocol, seconds by which its runs end by themselves, and runs
/// that each workload must have had, however slow the machine is.
const SHARES: [(&str, u32, u32); 2] = [("two_phase", 140, 40), ("leap", 100, 20)];
/// A simulation that does not end by itself is ended.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// Runs the step; answers the number of runs that passed.
pub(crate) fn run() -> Result<usize> {
    let mut passed = 0;
    for (protocol, seconds, at_least) in SHARES {
        println!("{protocol}: {seconds} s, at least {at_least} runs of each workload");
        passed += run_share(protocol, seconds, at_least)?;
    }
    Ok(passed)
}

fn run_share(protocol: &str, seconds: u32, at_least: u32) -> Result<usize> {
    let json = repo::cache_dir()?.join(format!("sim-{protocol}.json"));
    let _ = std::fs::remove_file(&json);
    let mut command = Command::new(repo::target_dir().join("release/trellis"));
    command
        .args(["sim", "run", "--protocol", protocol])
        .args(["--seeds", "1000000", "--jobs", "2"])
        .args(["--seconds", &seconds.to_string()])
        .args(["--at-least", &at_least.to_string()])
        .arg("--json")
        .arg(&json);
    let text = shell::run_logged(&mut command, &json.with_extension("log"), LIMIT)?;
    println!("{}", shell::tail(&text, 60));
    let last = text.lines().last().context("the simulation said nothing")?;
    let (passed, failed) = last
        .strip_suffix(" failed")
        .and_then(|rest| rest.split_once(" passed, "))
        .context("the last line is not `N passed, M failed`")?;
    ensure!(failed == "0", "{failed} seeds of {protocol} failed");
    passed.parse().context("a number of seeds")
}

/// The time in which the replay of planted bugs must be built and done.
const PLANTED_LIMIT: Duration = Duration::from_secs(10 * 60);

/// Replays the recorded seed of each planted bug, with and without it.
pub(crate) fn planted() -> Result<usize> {
    let mut command = ci::cargo();
    command.args(["test", "--release", "-p", "sim", "--features", "planted"]);
    command.args(["--test", "planted"]);
    let log = repo::cache_dir()?.join("planted.log");
    let text = shell::run_logged(&mut command, &log, PLANTED_LIMIT)?;
    println!("{}", shell::tail(&text, 60));
    let passed: usize = text.lines().map(ci::passed_tests).sum();
    ensure!(passed > 0, "no planted bug was replayed");
    Ok(passed)
}
