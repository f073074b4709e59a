//! psql: scripts whose whole output was recorded from PostgreSQL.
//!
//! `UPDATE=1 cargo xtask clients --peer postgres` records again; a person reads the difference.

use super::{CLIENT_LIMIT, Ground};
use crate::{repo, shell};
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::process::{Command, Stdio};

/// A session as people have it: tables, rows, queries, transactions, COPY, variables.
pub(super) fn session(ground: &Ground, database: &str) -> Result<usize> {
    script(ground, database, "session")
}

/// What psql's backslash commands show of tables and indexes.
pub(super) fn describe(ground: &Ground, database: &str) -> Result<usize> {
    script(ground, database, "describe")
}

/// Errors of every class, by SQLSTATE, and a session that goes on after them.
pub(super) fn errors(ground: &Ground, database: &str) -> Result<usize> {
    script(ground, database, "errors")
}

/// `\l` lists the database with its owner and encoding.
pub(super) fn list(ground: &Ground, database: &str) -> Result<usize> {
    for command in ["\\l", "\\l+"] {
        let mut psql = ground.server.client("psql", 0, database);
        let text = shell::output(psql.args(["-X", "-A", "-c", command]))?;
        let row = text
            .lines()
            .find(|line| line.starts_with(&format!("{database}|")));
        let row = row.with_context(|| format!("{command} does not list {database}:\n{text}"))?;
        let cells: Vec<&str> = row.split('|').collect();
        ensure!(
            cells.len() >= 7 && cells[2] == "UTF8",
            "{command} lists {row}"
        );
    }
    Ok(2)
}

/// What one node has committed, every node shows, and every node can change.
pub(super) fn nodes(ground: &Ground, database: &str) -> Result<usize> {
    let ask = |node: usize, sql: &str| -> Result<String> {
        let mut psql = ground.server.client("psql", node, database);
        psql.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql]);
        Ok(shell::output(&mut psql)?.trim().to_string())
    };
    ask(
        0,
        "CREATE TABLE seen (id int PRIMARY KEY, node int NOT NULL, hits int NOT NULL)",
    )?;
    ask(
        0,
        "INSERT INTO seen SELECT g, 0, 0 FROM generate_series(1, 100) g",
    )?;
    let count = ground.server.ports().len();
    for node in 0..count {
        let sql = format!("UPDATE seen SET node = {node}, hits = hits + 1 WHERE id % 3 <> {node}");
        ask(node, &sql)?;
    }
    let (mut hits, mut last) = (0, 0);
    for id in 1..=100 {
        hits += (0..count).filter(|node| id % 3 != *node).count();
        last += (0..count).rev().find(|node| id % 3 != *node).unwrap_or(0);
    }
    let expected = format!("100|{hits}|{last}");
    for node in 0..count {
        let answer = ask(node, "SELECT count(*), sum(hits), sum(node) FROM seen")?;
        ensure!(
            answer == expected,
            "node {node} answers {answer}, expected {expected}"
        );
    }
    Ok(count)
}

/// Runs test/clients/psql/NAME.sql and compares with NAME.out.
fn script(ground: &Ground, database: &str, name: &str) -> Result<usize> {
    let folder = repo::root().join("test/clients/psql");
    let input = folder.join(format!("{name}.sql"));
    let expected = folder.join(format!("{name}.out"));
    let file = File::open(&input).with_context(|| input.display().to_string())?;
    let log = ground.log(name);
    let output = File::create(&log)?;
    let mut psql = ground.server.client("psql", 0, database);
    psql.args(["-X", "-a", "-q"])
        .stdin(file)
        .stdout(output.try_clone()?)
        .stderr(output);
    let mut child = psql.spawn().context("cannot start psql")?;
    let status = shell::wait(&mut child, CLIENT_LIMIT)?;
    let text = normalise(&std::fs::read_to_string(&log)?);
    ensure!(
        status.is_some_and(|status| status.success()),
        "psql: {status:?}\n{text}"
    );
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&expected, &text)?;
    }
    let wanted = std::fs::read_to_string(&expected)?;
    if text != wanted {
        let found = ground.log(&format!("{name}.found"));
        std::fs::write(&found, &text)?;
        let mut diff = Command::new("diff");
        diff.args(["-U", "2"])
            .arg(&expected)
            .arg(&found)
            .stdin(Stdio::null());
        let difference = diff.output()?.stdout;
        anyhow::bail!(
            "{name}.out differs\n{}",
            String::from_utf8_lossy(&difference)
        );
    }
    let commands = std::fs::read_to_string(&input)?;
    let is_command = |line: &&str| line.starts_with('\\') || line.trim_end().ends_with(';');
    Ok(commands.lines().filter(is_command).count())
}

/// Removes what may differ: sizes and the widths of columns, and the casts that PostgreSQL adds to
/// constants when it prints an expression.
fn normalise(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if line.len() > 2 && line.chars().all(|c| c == '-' || c == '+') {
            out.push_str("---\n");
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_unit = |word: &str| ["bytes", "kB", "MB"].contains(&word);
        let is_size = |index: usize| {
            let next = words.get(index + 1).is_some_and(|next| is_unit(next));
            next && words[index].parse::<u64>().is_ok()
        };
        let kept = (0..words.len()).filter(|index| {
            let after_size = *index > 0 && is_size(index - 1);
            !is_size(*index) && !after_size
        });
        let kept: Vec<&str> = kept.map(|index| words[index]).collect();
        let mut line = kept.join(" ");
        for cast in ["::text", "::numeric", "::character varying"] {
            line = line.replace(cast, "");
        }
        out.push_str(&line);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_widths_do_not_matter() {
        let one = " a    | 16 kB |\n------+-------+\n x   y\n";
        let two = " a | 8192 bytes |\n---+---+\n x y\n";
        assert_eq!(normalise(one), normalise(two));
        assert_eq!(normalise(one), "a | |\n---\nx y\n");
        assert_eq!(
            normalise("CHECK (n > 0::numeric)"),
            normalise("CHECK (n > 0)")
        );
        assert_ne!(normalise("a 16 kB"), normalise("a 16 x"));
    }
}
