//! Statements on a cluster and on a PostgreSQL 15 of our own, one after the other: the answers must
//! be the same, times are told as ratios.

use crate::servers::{Folder, Postgres, Server, Trellis, free_ports};
use crate::{compare, shell};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// Ports between nodes lie this far above those for clients.
const PEER_OFFSET: u16 = 1_000;

/// A cluster of the release build, or of another `program`, and PostgreSQL with the settings of
/// `cargo xtask compare`.
pub(crate) fn start(program: Option<&Path>, nodes: u16) -> Result<[Server; 2]> {
    let trellis = match program {
        None => Trellis::start(nodes)?,
        Some(program) => start_program(program, nodes)?,
    };
    let postgres = Postgres::start(compare::SETTINGS)?;
    Ok([Server::Trellis(trellis), Server::Postgres(postgres)])
}

fn start_program(program: &Path, nodes: u16) -> Result<Trellis> {
    let folder = Folder::new("cluster")?;
    let base = free_ports(nodes, PEER_OFFSET)?;
    let mut command = Command::new(program);
    let (count, port) = (nodes.to_string(), base.to_string());
    command.args(["start", "--nodes", &count, "--port", &port]);
    command.arg("--data").arg(folder.path().join("data"));
    Trellis::launch(folder, &mut command, (base..base + nodes).collect())
}

/// Runs commands by psql, each in a transaction of its own, until one fails.
pub(crate) fn psql(server: &Server, database: &str, commands: &[&str]) -> Result<String> {
    let mut psql = server.client("psql", 0, database);
    psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
    for command in commands {
        psql.args(["-c", command]);
    }
    shell::output(&mut psql)
}

/// The answer of a server, and how many milliseconds it took, as psql tells.
fn ask(server: &Server, database: &str, text: &str) -> Result<(String, f64)> {
    let told = psql(server, database, &["\\timing on", text])?;
    let (answer, time) = told.trim_end().rsplit_once('\n').unwrap_or(("", &told));
    let time = time
        .trim()
        .strip_prefix("Time: ")
        .context("no time was told")?;
    let time = time.split(' ').next().unwrap_or_default();
    Ok((answer.to_string(), time.parse()?))
}

/// A statement on both servers: milliseconds of each round.
pub(crate) struct Measured {
    name: String,
    answer_rows: usize,
    ours: Vec<f64>,
    theirs: Vec<f64>,
}

/// Asks both servers in turn. `None`, after a report: the answers differ.
pub(crate) fn measure(
    servers: &[Server; 2],
    database: &str,
    name: &str,
    text: &str,
    rounds: usize,
) -> Result<Option<Measured>> {
    let mut measured = Measured {
        name: name.to_string(),
        answer_rows: 0,
        ours: Vec::new(),
        theirs: Vec::new(),
    };
    for _ in 0..rounds {
        let asked = |server| ask(server, database, text).with_context(|| name.to_string());
        let (ours, theirs) = (asked(&servers[0])?, asked(&servers[1])?);
        if ours.0 != theirs.0 {
            println!("{name}: answers differ");
            println!("Trellis:\n{}\nPostgreSQL:\n{}", ours.0, theirs.0);
            return Ok(None);
        }
        measured.answer_rows = theirs.0.lines().count();
        measured.ours.push(ours.1);
        measured.theirs.push(theirs.1);
    }
    Ok(Some(measured))
}

impl Measured {
    /// The line above those of [`Measured::print`].
    pub(crate) fn print_header(what: &str) {
        println!("{what:<10} rows   trellis  postgres  ratio  (least to most)");
    }

    /// Prints a line and gives the ratio of the medians.
    pub(crate) fn print(&self) -> f64 {
        let both = self.ours.iter().zip(&self.theirs);
        let mut ratios: Vec<f64> = both.map(|(ours, theirs)| ours / theirs).collect();
        ratios.sort_by(f64::total_cmp);
        let (ours, theirs) = (median(&self.ours), median(&self.theirs));
        let ratio = ours / theirs;
        println!(
            "{:<8} {:>6} {ours:>9.1} {theirs:>9.1} {ratio:>6.2}  ({:.2} to {:.2})",
            self.name,
            self.answer_rows,
            ratios[0],
            ratios[ratios.len() - 1],
        );
        ratio
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
