//! pg_dump, pg_dumpall, pg_restore and psql: what one server dumps, the other one restores.

use super::{CLIENT_LIMIT, Ground};
use crate::servers::{Postgres, Server};
use crate::{repo, shell};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names of the databases behind the first one.
const COPIES: [&str; 2] = ["dumped_once", "dumped_twice"];

/// Ground → PostgreSQL → ground: as SQL text there, in the custom format back.
pub(super) fn there_and_back(ground: &Ground, database: &str) -> Result<usize> {
    let script = repo::root().join("test/clients/dumps/shop.sql");
    psql(ground, &ground.server, database, &script)?;
    let other = Server::Postgres(Postgres::start(&[("fsync", "off")])?);
    let result = compare(ground, database, &other);
    let mut other = other;
    other.stop()?;
    result
}

/// Roles, memberships and settings of roles: ground → PostgreSQL, whose dump must say the same.
pub(super) fn globals(ground: &Ground, database: &str) -> Result<usize> {
    let script = repo::root().join("test/clients/dumps/roles.sql");
    psql(ground, &ground.server, database, &script)?;
    let first = dump_globals(ground, &ground.server, "globals.sql")?;
    let mut other = Server::Postgres(Postgres::start(&[("fsync", "off")])?);
    let again = psql(ground, &other, "postgres", &first)
        .and_then(|()| dump_globals(ground, &other, "globals_again.sql"));
    other.stop()?;
    let (first, again) = (std::fs::read_to_string(first)?, again?);
    let again = std::fs::read_to_string(again)?;
    same(&statements(&first), &statements(&again))?;
    for part in ["PASSWORD 'SCRAM-SHA-256$", "VALID UNTIL", "GRANT ", " SET "] {
        ensure!(first.contains(part), "no {part:?} in {first}");
    }
    Ok(statements(&first).len())
}

/// What `pg_dumpall` writes of the roles of the script: the superuser is everywhere already.
fn dump_globals(ground: &Ground, server: &Server, name: &str) -> Result<PathBuf> {
    let path = ground.folder.path().join(name);
    let mut dump = server.client("pg_dumpall", server.ports().len() - 1, "postgres");
    dump.args(["--globals-only", "--file"]).arg(&path);
    run(ground, &mut dump).with_context(|| format!("the roles of {}", server.name()))?;
    let text = std::fs::read_to_string(&path)?;
    let lines = text.lines().filter(|line| line.contains("dumped_"));
    std::fs::write(&path, lines.collect::<Vec<_>>().join("\n"))?;
    Ok(path)
}

fn compare(ground: &Ground, database: &str, other: &Server) -> Result<usize> {
    let first = dump(ground, &ground.server, database, "first.sql")?;
    other.create_database(COPIES[0])?;
    psql(ground, other, COPIES[0], &first)?;
    let second = dump(ground, other, COPIES[0], "second.sql")?;
    let custom = custom(ground, other, COPIES[0])?;
    ground.server.create_database(COPIES[1])?;
    let mut restore = ground.server.client("pg_restore", 0, COPIES[1]);
    restore
        .args(["--exit-on-error", "--dbname", COPIES[1]])
        .arg(custom);
    run(ground, &mut restore)?;
    let third = dump(ground, &ground.server, COPIES[1], "third.sql")?;
    other.create_database(COPIES[1])?;
    psql(ground, other, COPIES[1], &third)?;
    let last = dump(ground, other, COPIES[1], "last.sql")?;
    let [first, second, third, last] = [first, second, third, last].map(std::fs::read_to_string);
    let (first, second, third, last) = (first?, second?, third?, last?);
    // Expressions and queries of views are printed in two ways, so PostgreSQL's dumps are compared.
    same(&statements(&second), &statements(&last))?;
    same(&rows(&first), &rows(&second))?;
    same(&rows(&first), &rows(&third))?;
    Ok(statements(&second).len() + 2 * rows(&first).len())
}

fn same(left: &[&str], right: &[&str]) -> Result<()> {
    let differs = left.iter().zip(right).find(|(a, b)| a != b);
    ensure!(
        differs.is_none() && left.len() == right.len(),
        "dumps differ: {} and {} lines, first at {differs:?}",
        left.len(),
        right.len()
    );
    Ok(())
}

/// The lines of a dump that matter, in order, but for those that name the program and its run.
fn statements(text: &str) -> Vec<&str> {
    let says = |line: &&str| {
        !(line.is_empty()
            || line.starts_with("--")
            || line.starts_with("\\restrict")
            || line.starts_with("\\unrestrict"))
    };
    let mut found: Vec<&str> = text.lines().filter(says).collect();
    found.sort_unstable();
    found
}

/// Rows of tables and counters of sequences, in order: a table has none of its own.
fn rows(text: &str) -> Vec<&str> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        inside |= line.starts_with("COPY ");
        if inside || line.starts_with("SELECT pg_catalog.setval") {
            found.push(line);
        }
        inside &= line != "\\.";
    }
    found.sort_unstable();
    found
}

fn run(ground: &Ground, command: &mut Command) -> Result<()> {
    shell::run_logged(command, &ground.log("dumps"), CLIENT_LIMIT).map(drop)
}

fn psql(ground: &Ground, server: &Server, database: &str, file: &Path) -> Result<()> {
    let mut psql = server.client("psql", 0, database);
    psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f"])
        .arg(file);
    run(ground, &mut psql).with_context(|| format!("{} into {}", file.display(), server.name()))
}

fn dump(ground: &Ground, server: &Server, database: &str, name: &str) -> Result<PathBuf> {
    let path = ground.folder.path().join(name);
    let mut dump = server.client("pg_dump", server.ports().len() - 1, database);
    dump.args(["--no-owner", "--file"]).arg(&path);
    run(ground, &mut dump).with_context(|| format!("a dump of {}", server.name()))?;
    Ok(path)
}

fn custom(ground: &Ground, server: &Server, database: &str) -> Result<PathBuf> {
    let path = ground.folder.path().join("custom.dump");
    let mut dump = server.client("pg_dump", 0, database);
    dump.args(["--no-owner", "--format", "custom", "--file"])
        .arg(&path);
    run(ground, &mut dump)?;
    Ok(path)
}
