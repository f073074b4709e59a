//! `cargo xtask entities`: what the entity layer of the benchmark costs its client.
//!
//! * Rates of the entity mapping against hand-written SQL with the same rounds on PostgreSQL, in
//!   rounds A B B A: the lower end of the ratio's interval must be at least 0.95. The server does
//!   not wait for its disk, so that the client's share is as large as it can be.
//! * Instructions of the client for one transaction, counted by callgrind: at most 1.10 of those of
//!   the hand-written form.
//! * Time of an operation on the store in memory: at most 2 us. `entity/tests/cost.rs` bounds what
//!   it allocates.

use crate::instructions::total;
use crate::servers::{Folder, Postgres, USER};
use crate::{ci, install, repo, shell};
use anyhow::{Context, Result, bail, ensure};
use std::process::Command;

const RATIO_MIN: f64 = 0.95;
const INSTRUCTIONS_MAX: f64 = 1.10;
const OPERATION_US_MAX: f64 = 2.0;
/// Transactions of the short run and of the long one.
const SHORT: u64 = 200;
const LONG: u64 = 1_200;

const USAGE: &str = "usage: cargo xtask entities [--rounds N] [--seconds N]";

/// Runs the command.
pub(crate) fn main(args: &[String]) -> Result<()> {
    let (mut rounds, mut seconds) = (String::from("8"), String::from("2"));
    let mut rest = args.iter();
    while let Some(flag) = rest.next() {
        let value = rest.next().context(USAGE)?.clone();
        match flag.as_str() {
            "--rounds" => rounds = value,
            "--seconds" => seconds = value,
            _ => bail!(USAGE),
        }
    }
    install::postgres()?;
    install::callgrind()?;
    let mut build = ci::cargo();
    build.args(["build", "--release", "-p", "stores"]);
    shell::run(build.args(["--example", "against_sql", "--example", "memory_cost"]))?;
    let mut wrong = memory()?;
    let server = Postgres::start(&[("fsync", "off"), ("max_connections", "200")])?;
    let url = format!("postgres://{USER}@127.0.0.1:{}/postgres", server.port);
    wrong.extend(instructions(&url)?);
    let text = shell::output(example("against_sql").args([&url, &rounds, &seconds]))?;
    println!("{text}");
    let low = low_end(&text).context("no interval was told")?;
    if low < RATIO_MIN {
        wrong.push(format!("the ratio's lower end is {low}, below {RATIO_MIN}"));
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

fn example(name: &str) -> Command {
    Command::new(repo::target_dir().join("release/examples").join(name))
}

/// The interval's lower end in `entities 0.980 of hand-written SQL, 0.971 to 0.990`.
fn low_end(text: &str) -> Option<f64> {
    let line = text.lines().rfind(|line| line.starts_with("entities "))?;
    let (_, interval) = line.split_once(", ")?;
    interval.split(' ').next()?.parse().ok()
}

/// Times on the store in memory; those that are too long.
fn memory() -> Result<Vec<String>> {
    let text = shell::output(&mut example("memory_cost"))?;
    println!("{text}");
    let is_long = |line: &&str| {
        let us = line
            .strip_suffix(" us")
            .and_then(|line| line.rsplit(' ').next());
        us.and_then(|us| us.parse::<f64>().ok())
            .is_none_or(|us| us > OPERATION_US_MAX)
    };
    let long = text.lines().filter(is_long).map(str::to_owned);
    Ok(long.collect())
}

/// Instructions of a transaction in both forms; what is too much.
fn instructions(url: &str) -> Result<Option<String>> {
    let folder = Folder::new("entities")?;
    let dump = folder.path().join("dump");
    let count = |form: &str, transactions: u64| {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--quiet"]);
        valgrind.arg(format!("--callgrind-out-file={}", dump.display()));
        valgrind.arg(example("against_sql").get_program());
        shell::output(valgrind.args([url, "count", form, &transactions.to_string()]))?;
        let text = std::fs::read_to_string(&dump).context("callgrind wrote no counts")?;
        total(&text).context("callgrind's counts have no total")
    };
    let each = |form: &str| {
        let (short, long) = (count(form, SHORT)?, count(form, LONG)?);
        anyhow::Ok(long.saturating_sub(short) / (LONG - SHORT))
    };
    let (sql, entity) = (each("sql")?, each("entity")?);
    let ratio = entity as f64 / sql.max(1) as f64;
    println!("instructions of a transaction: {sql} by hand, {entity} by entities, {ratio:.3}");
    Ok((ratio > INSTRUCTIONS_MAX)
        .then(|| format!("entities take {ratio:.3} of the instructions, over {INSTRUCTIONS_MAX}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_read() {
        let text = "round 1: ..\nentities 0.980 of hand-written SQL, 0.971 to 0.990\n";
        assert_eq!(low_end(text), Some(0.971));
        assert_eq!(low_end("nothing"), None);
    }
}
