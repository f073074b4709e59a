//! `cargo xtask isolation`: the scripts of `test/isolation` against a PostgreSQL 15 that the
//! command starts, which proves the scripts and keeps what they record of it true.
//!
//! The same scripts run in the simulator as a test of their crate. `UPDATE=1` records what
//! PostgreSQL does now.

use crate::servers::{Folder, Postgres, Server, Setting};
use crate::{ci, install, repo, shell};
use anyhow::{Context, Result};
use std::process::Command;
use std::time::Duration;

/// Longest time for all scripts: they take a minute or two if nothing else runs.
const LIMIT: Duration = Duration::from_secs(600);
/// Plans, and with them what SERIALIZABLE takes for a conflict, must not depend on statistics.
const SETTINGS: &[Setting] = &[("fsync", "off"), ("autovacuum", "off")];

/// Runs the command: all scripts, or those named.
pub(crate) fn main(names: &[String]) -> Result<()> {
    run(names).map(drop)
}

/// The step of CI. Answers the number of interleavings that were judged.
pub(crate) fn run_all() -> Result<usize> {
    run(&[])
}

fn run(names: &[String]) -> Result<usize> {
    install::postgres()?;
    shell::run(ci::cargo().args(["build", "--quiet", "--package", "isolation", "--bins"]))?;
    let mut server = Server::Postgres(Postgres::start(SETTINGS)?);
    server.create_database("isolation")?;
    let folder = Folder::new("isolation")?;
    let mut command = Command::new(repo::target_dir().join("debug/isolation"));
    command
        .arg(format!("127.0.0.1:{}", server.port()))
        .args(["isolation", "test/isolation/specs"])
        .args(names)
        .current_dir(repo::root());
    let text = shell::run_logged(&mut command, &folder.path().join("log"), LIMIT)?;
    server.stop()?;
    let last = text.lines().last().unwrap_or_default();
    println!("postgres: {last}");
    interleavings(last).with_context(|| format!("nothing tells how much ran:\n{text}"))
}

/// The count in `43 scripts, 3933 interleavings: 0 failed`.
fn interleavings(line: &str) -> Option<usize> {
    let count = line
        .split(", ")
        .nth(1)?
        .strip_suffix(" interleavings: 0 failed")?;
    count.parse().ok().filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_tells_how_much_ran() {
        assert_eq!(
            interleavings("43 scripts, 3933 interleavings: 0 failed"),
            Some(3933)
        );
        assert_eq!(interleavings("0 scripts, 0 interleavings: 0 failed"), None);
        assert_eq!(
            interleavings("43 scripts, 3933 interleavings: 1 failed"),
            None
        );
        assert_eq!(interleavings("panicked"), None);
    }
}
