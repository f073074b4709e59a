//! `cargo xtask faults`: nodes of a real cluster are killed, stopped and parted from each other,
//! under each protocol. `test/faults` does it and judges how long clients waited.

use crate::servers::{Folder, Trellis};
use crate::{ci, install, repo, shell};
use anyhow::{Context, Result, ensure};
use std::process::Command;
use std::time::Duration;

const PROTOCOLS: [&str; 3] = ["two_phase", "leap", "formula"];
/// Five faults of five seconds with calm between them take less than one minute.
const LIMIT: Duration = Duration::from_secs(240);

/// Runs the command; options go to the program `faults`, a protocol chooses one.
pub(crate) fn main(args: &[String]) -> Result<()> {
    let (protocols, options) = match args {
        [protocol, options @ ..] if PROTOCOLS.contains(&protocol.as_str()) => {
            (vec![protocol.as_str()], options)
        }
        options => (PROTOCOLS.to_vec(), options),
    };
    run(&protocols, options).map(drop)
}

/// The step of CI: all protocols. Answers the number of checks that passed.
pub(crate) fn run_all() -> Result<usize> {
    run(&PROTOCOLS, &[])
}

fn run(protocols: &[&str], options: &[String]) -> Result<usize> {
    install::network_tools()?;
    shell::run(ci::cargo().args(["build", "--quiet", "--package", "faults"]))?;
    let (mut passed, mut failed) = (0, Vec::new());
    for protocol in protocols {
        let folder = Folder::new("faults")?;
        // A network of its own, whose packet filter it may change.
        let mut command = Command::new("unshare");
        command
            .arg("--net")
            .arg(repo::target_dir().join("debug/faults"))
            .arg(Trellis::program()?)
            .arg(protocol)
            .arg(folder.path())
            .args(options)
            .current_dir(repo::root());
        match shell::run_logged(&mut command, &folder.path().join("log"), LIMIT) {
            Ok(text) => {
                println!("{text}");
                let last = text.lines().last().unwrap_or_default();
                let count = checks(last);
                passed += count.with_context(|| format!("{protocol}: nothing tells the count"))?;
            }
            Err(error) => {
                println!("{error:#}");
                failed.push(*protocol);
            }
        }
    }
    ensure!(failed.is_empty(), "faults: {} failed", failed.join(", "));
    Ok(passed)
}

/// The count in `faults: 20 passed, 0 failed`.
fn checks(line: &str) -> Option<usize> {
    let count = line.strip_prefix("faults: ")?;
    let count = count.strip_suffix(" passed, 0 failed")?;
    count.parse().ok().filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_tells_how_many_checks_passed() {
        assert_eq!(checks("faults: 20 passed, 0 failed"), Some(20));
        assert_eq!(checks("faults: 19 passed, 1 failed"), None);
        assert_eq!(checks("faults: 0 passed, 0 failed"), None);
    }
}
