//! The CI steps `sim`: seeds under faults, dealt over all workloads, within a fixed time; and
//! `planted`: recorded seeds of planted bugs.

use crate::{ci, repo, shell};
use anyhow::{Context, Result, ensure};
use std::process::Command;
use std::time::Duration;

/// What the simulation has in CI for one protocol.
struct Share {
    protocol: &'static str,
    /// Runs that are begun at most: as many as were run by hand, so that a fast machine does not
    /// find what belongs to another change (docs/testing.md).
    seeds: u32,
    /// Seconds by which the runs end by themselves.
    seconds: u32,
    /// Runs that each workload must have had, however slow the machine is.
    at_least: u32,
}

const SHARES: [Share; 3] = [
    Share {
        protocol: "two_phase",
        seeds: 1_000,
        seconds: 25,
        at_least: 25,
    },
    Share {
        protocol: "leap",
        seeds: 1_000,
        seconds: 25,
        at_least: 25,
    },
    Share {
        protocol: "formula",
        seeds: 1_000,
        seconds: 25,
        at_least: 25,
    },
];
/// A simulation that does not end by itself is ended.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// Runs the step; answers the number of runs that passed.
pub(crate) fn run() -> Result<usize> {
    let mut passed = 0;
    for share in &SHARES {
        let Share {
            protocol,
            seeds,
            seconds,
            at_least,
        } = share;
        println!("{protocol}: {seconds} s, at most {seeds} seeds, at least {at_least} each");
        passed += run_share(share)?;
    }
    Ok(passed)
}

fn run_share(share: &Share) -> Result<usize> {
    let protocol = share.protocol;
    let json = repo::cache_dir()?.join(format!("sim-{protocol}.json"));
    let _ = std::fs::remove_file(&json);
    let mut command = Command::new(repo::target_dir().join("release/trellis"));
    command
        .args(["sim", "run", "--protocol", protocol])
        .args(["--seeds", &share.seeds.to_string(), "--jobs", "2"])
        .args(["--seconds", &share.seconds.to_string()])
        .args(["--at-least", &share.at_least.to_string()])
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

/// Replays the recorded seed of each planted bug, with and without it; runs the schedules that the
/// rules of a paper admit; and has a node meet a panic in planning.
pub(crate) fn planted() -> Result<usize> {
    let mut command = ci::cargo();
    command.args(["test", "--profile", "planted"]);
    command.args(["-p", "sim", "-p", "runtime", "-p", "formula"]);
    command.args([
        "--features",
        "sim/planted,runtime/planted,formula/planted",
        "--test",
        "planted",
    ]);
    let log = repo::cache_dir()?.join("planted.log");
    let text = shell::run_logged(&mut command, &log, PLANTED_LIMIT)?;
    println!("{}", shell::tail(&text, 60));
    let passed: usize = text.lines().map(ci::passed_tests).sum();
    ensure!(passed > 0, "no planted bug was replayed");
    Ok(passed)
}
