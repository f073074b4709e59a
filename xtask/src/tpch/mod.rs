//! `cargo xtask tpch`: the 22 queries of TPC-H on a cluster and on PostgreSQL 15, on this machine,
//! one after the other: answers are compared, times are told as ratios.
//!
//! Schema, indexes and queries lie in `test/tpch`; rows are made by [`rows`]. The parameters of the
//! queries are those of the specification's validation. This is no result of the benchmark of that
//! name: nothing is audited, and the refresh functions are not run.

mod rows;

use crate::beside::{self, Measured};
use crate::repo;
use crate::servers::{Folder, Server};
use anyhow::{Context, Result, bail, ensure};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Database in which the tables are.
const DATABASE: &str = "tpch";
/// How many queries there are.
const QUERIES: usize = 22;

struct Options {
    scale: f64,
    nodes: u16,
    rounds: usize,
    program: Option<PathBuf>,
    only: Vec<usize>,
    /// A query that takes so many times as long as on PostgreSQL fails the command.
    limit: Option<f64>,
}

pub(crate) fn main(args: &[String]) -> Result<()> {
    let options = options(args)?;
    let data = Folder::new("tpch")?;
    for table in rows::TABLES {
        let file = File::create(data.path().join(table)).context("cannot write rows")?;
        rows::write(table, options.scale, &mut BufWriter::new(file))?;
    }
    let servers = beside::start(options.program.as_deref(), options.nodes)?;
    for server in &servers {
        load(server, data.path())?;
    }
    println!(
        "scale {}, {} nodes, median of {} rounds; milliseconds",
        options.scale, options.nodes, options.rounds
    );
    Measured::print_header("query");
    let (mut wrong, mut slow) = (Vec::new(), Vec::new());
    for query in options.wanted() {
        let (name, text) = (query.to_string(), options.text(query)?);
        match beside::measure(&servers, DATABASE, &name, &text, options.rounds)? {
            Some(measured) => {
                let ratio = measured.print();
                if options.limit.is_some_and(|limit| ratio > limit) {
                    slow.push(query);
                }
            }
            None => wrong.push(query),
        }
    }
    ensure!(
        wrong.is_empty(),
        "other answers than PostgreSQL's: {wrong:?}"
    );
    ensure!(slow.is_empty(), "slower than allowed: {slow:?}");
    Ok(())
}

fn options(args: &[String]) -> Result<Options> {
    let mut options = Options {
        scale: 0.01,
        nodes: 1,
        rounds: 3,
        program: None,
        only: Vec::new(),
        limit: None,
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let value = args
            .next()
            .with_context(|| format!("{arg} needs a value"))?;
        match arg.as_str() {
            "--scale" => options.scale = value.parse()?,
            "--nodes" => options.nodes = value.parse()?,
            "--rounds" => options.rounds = value.parse()?,
            "--program" => options.program = Some(value.into()),
            "--only" => options.only.push(value.parse()?),
            "--limit" => options.limit = Some(value.parse()?),
            other => bail!("tpch does not know {other}"),
        }
    }
    ensure!(
        (0.001..=10.0).contains(&options.scale),
        "--scale is from 0.001 to 10"
    );
    ensure!(
        (1..=9).contains(&options.nodes) && options.rounds > 0,
        "--nodes is from 1 to 9, and there is one round at least"
    );
    Ok(options)
}

impl Options {
    fn wanted(&self) -> impl Iterator<Item = usize> {
        let all = self.only.is_empty();
        (1..=QUERIES).filter(move |query| all || self.only.contains(query))
    }

    /// A query with its parameters.
    fn text(&self, query: usize) -> Result<String> {
        let text = read(&format!("{query:02}.sql"))?;
        // Query 11 wants a share that falls with the scale.
        let share = format!("{:.10}", 0.0001 / self.scale);
        Ok(text.replace("FRACTION", &share))
    }
}

fn read(name: &str) -> Result<String> {
    let path = repo::root().join("test/tpch").join(name);
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

fn load(server: &Server, data: &Path) -> Result<()> {
    server.create_database(DATABASE)?;
    beside::psql(server, DATABASE, &[&read("schema.sql")?])?;
    for table in rows::TABLES {
        let file = data.join(table);
        let copy = format!("\\copy {table} FROM {}", file.display());
        beside::psql(server, DATABASE, &[&copy])?;
    }
    beside::psql(server, DATABASE, &[&read("indexes.sql")?, "ANALYZE"])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_the_scale_and_each_other() {
        let lines = |table: &str| {
            let mut text = Vec::new();
            rows::write(table, 0.001, &mut text).expect("memory takes all");
            let text = String::from_utf8(text).expect("rows are text");
            text.lines().map(str::to_string).collect::<Vec<_>>()
        };
        let counts = rows::TABLES.map(|table| lines(table).len());
        assert_eq!(counts[..7], [5, 25, 10, 150, 200, 800, 1500]);
        assert_eq!(lines("lineitem").len(), counts[7]);
        let key = |line: &String| {
            let mut fields = line.split('\t');
            fields.next().map(str::to_string)
        };
        let orders: Vec<_> = lines("orders").iter().map(key).collect();
        assert!(
            lines("lineitem")
                .iter()
                .all(|line| orders.contains(&key(line)))
        );
    }
}
