//! The CI step `sim`: seeds under faults, dealt over all workloads, within a fixed time.

use crate::{repo, shell};
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
