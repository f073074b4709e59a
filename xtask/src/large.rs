//! `cargo xtask large`: joins, sorts and groups of many rows on one node and on PostgreSQL 15, one
//! after the other.

use crate::beside::{self, Measured};
use crate::servers::Server;
use anyhow::{Context, Result, bail, ensure};
use std::path::PathBuf;
use std::time::Instant;

const DATABASE: &str = "large";
/// Rows that one INSERT adds.
const BATCH: u64 = 100_000;

/// Name, text, and whether the limit is for it; `$o` is the last row's place.
const STATEMENTS: &[(&str, &str, bool)] = &[
    ("count", "SELECT count(*) FROM big", false),
    (
        "join",
        "SELECT count(*) FROM big a JOIN big b ON a.k = b.id",
        true,
    ),
    (
        "sort",
        "SELECT id FROM big ORDER BY k, id LIMIT 1 OFFSET $o",
        true,
    ),
    (
        "window",
        "SELECT count(*) FROM (SELECT row_number() OVER (ORDER BY k) n FROM big) w WHERE n % 2 = 0",
        true,
    ),
    ("values", "SELECT count(DISTINCT k) FROM big", false),
    (
        "groups",
        "SELECT count(*), sum(n) FROM (SELECT v, count(*) n FROM big GROUP BY v) g",
        false,
    ),
    (
        "all groups",
        "SELECT count(*), sum(n) FROM (SELECT k, count(*) n FROM big GROUP BY k) g",
        false,
    ),
    (
        "distinct",
        "SELECT count(*) FROM (SELECT DISTINCT k FROM big) d",
        false,
    ),
    (
        "except",
        "SELECT count(*) FROM (SELECT k FROM big EXCEPT SELECT id FROM big) d",
        false,
    ),
];

const USAGE: &str =
    "usage: cargo xtask large [--rows N] [--rounds N] [--limit RATIO] [--program FILE]";

struct Options {
    rows: u64,
    rounds: usize,
    /// A join or sort that takes so many times as long as on PostgreSQL fails the command.
    limit: f64,
    program: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn main(args: &[String]) -> Result<()> {
    let options = options(args)?;
    let servers = beside::start(options.program.as_deref(), 1)?;
    for server in &servers {
        let began = Instant::now();
        load(server, options.rows)?;
        println!(
            "{}: loaded in {:.0} s",
            server.name(),
            began.elapsed().as_secs_f64()
        );
    }
    println!(
        "{} rows, median of {} rounds; milliseconds",
        options.rows, options.rounds
    );
    Measured::print_header("statement");
    let mut wrong = Vec::new();
    for (name, text, is_limited) in STATEMENTS {
        let text = text.replace("$o", &(options.rows - 1).to_string());
        let measured = beside::measure(&servers, DATABASE, name, &text, options.rounds);
        let measured = match measured {
            Ok(measured) => measured,
            // One that needs too much memory tells nothing of the others.
            Err(error) => {
                wrong.push(format!("{error:#}"));
                continue;
            }
        };
        match measured {
            None => wrong.push(format!("{name}: another answer than PostgreSQL's")),
            Some(measured) if measured.print() > options.limit && *is_limited => {
                wrong.push(format!(
                    "{name}: over {} times PostgreSQL's time",
                    options.limit
                ));
            }
            Some(_) => {}
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

fn options(args: &[String]) -> Result<Options> {
    let mut options = Options {
        rows: 1_000_000,
        rounds: 3,
        limit: 3.0,
        program: None,
    };
    let mut rest = args.iter();
    while let Some(flag) = rest.next() {
        let value = rest.next().context(USAGE)?;
        match flag.as_str() {
            "--rows" => options.rows = value.parse().context(USAGE)?,
            "--rounds" => options.rounds = value.parse().context(USAGE)?,
            "--limit" => options.limit = value.parse().context(USAGE)?,
            "--program" => options.program = Some(value.into()),
            _ => bail!(USAGE),
        }
    }
    ensure!(
        (1..=100_000_000).contains(&options.rows) && options.rounds > 0,
        "--rows is from 1 to 100,000,000, and there is one round at least"
    );
    Ok(options)
}

/// Fills `big`, where `k` is a permutation of `id` if 7,919 does not divide the number of rows.
fn load(server: &Server, rows: u64) -> Result<()> {
    server.create_database(DATABASE)?;
    let table = "CREATE TABLE big (id int PRIMARY KEY, k int, v int)";
    beside::psql(server, DATABASE, &[table])?;
    for start in (0..rows).step_by(BATCH as usize) {
        let end = (start + BATCH).min(rows);
        let insert = format!(
            "INSERT INTO big SELECT g, (g * 7919::bigint) % {rows}, g % 1000 \
             FROM generate_series({start}, {end} - 1) g"
        );
        beside::psql(server, DATABASE, &[&insert])?;
    }
    beside::psql(server, DATABASE, &["ANALYZE"])?;
    Ok(())
}
