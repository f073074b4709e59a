//! `cargo xtask differ postgres`: random statements on a cluster of three nodes and on a
//! PostgreSQL 15, side by side. `test/differ` draws them and compares the answers.

use crate::servers::{Folder, Postgres, Server, Trellis};
use crate::{ci, install, repo, shell};
use anyhow::{Context, Result, bail, ensure};
use std::process::Command;
use std::time::Duration;

/// Nodes of the cluster.
const NODES: u16 = 3;
/// The step of CI: always the same statements, so that what it finds belongs to the change.
const CI_OPTIONS: [&str; 6] = ["--seed", "1", "--statements", "3500", "--seconds", "60"];
/// What starting and stopping the servers may take, and what is under way when time is up.
const BESIDE: Duration = Duration::from_secs(120);

/// Runs the command: `postgres`, then options of the program `differ`.
pub(crate) fn main(args: &[String]) -> Result<()> {
    let [peer, options @ ..] = args else {
        bail!("usage: cargo xtask differ postgres [--seconds N] [--seed N] [--coverage FILE]");
    };
    ensure!(peer == "postgres", "the only peer is postgres, not {peer}");
    let seconds = options.iter().position(|flag| flag == "--seconds");
    let seconds = seconds.and_then(|at| options.get(at + 1));
    let seconds: u64 = match seconds {
        Some(text) => text.parse().context("--seconds wants a whole number")?,
        None => 60,
    };
    run(options, Duration::from_secs(seconds)).map(drop)
}

/// The step of CI. Answers the number of statements that were compared.
pub(crate) fn run_share() -> Result<usize> {
    run(&CI_OPTIONS.map(String::from), Duration::from_secs(90))
}

fn run(options: &[String], time: Duration) -> Result<usize> {
    install::postgres()?;
    shell::run(ci::cargo().args(["build", "--quiet", "--package", "differ"]))?;
    let mut postgres = Server::Postgres(Postgres::start(&[("fsync", "off")])?);
    let mut trellis = Server::Trellis(Trellis::start(NODES)?);
    let folder = Folder::new("differ")?;
    let mut command = Command::new(repo::target_dir().join("debug/differ"));
    for server in [&postgres, &trellis] {
        server.create_database("differ")?;
        command.arg(server.url("differ"));
    }
    command.args(options).current_dir(repo::root());
    let result = shell::run_logged(&mut command, &folder.path().join("log"), time + BESIDE);
    if result.is_err() {
        println!("server log:\n{}", trellis.log_tail());
    }
    let text = result?;
    postgres.stop()?;
    trellis.stop()?;
    println!("{}", shell::tail(&text, 40));
    let last = text.lines().last().unwrap_or_default();
    compared(last).with_context(|| format!("nothing tells how much was compared:\n{text}"))
}

/// The count in `differ: 3933 passed, 0 failed`.
fn compared(line: &str) -> Option<usize> {
    let count = line.strip_prefix("differ: ")?;
    let count = count.strip_suffix(" passed, 0 failed")?;
    count.parse().ok().filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_tells_how_much_was_compared() {
        assert_eq!(compared("differ: 3933 passed, 0 failed"), Some(3933));
        assert_eq!(compared("differ: 3933 passed, 1 failed"), None);
        assert_eq!(compared("differ: 0 passed, 0 failed"), None);
    }
}
