//! Runs the scripts `test/sql/*.slt` over the fake cluster.
//!
//! ```text
//! statement ok            the next lines, up to an empty one, succeed
//! statement count 3       ... and touch three rows
//! statement error 23505   ... fail with this SQLSTATE
//! query [rowsort]         ... give the rows after `----`, columns separated by `|`
//! copy                    COPY FROM with the data after `----`
//! ```
//!
//! `UPDATE=1` writes the rows that came out into the scripts; a person reads the difference. Files
//! named `pg_compat_*` hold what PostgreSQL gives too.
#![expect(
    clippy::disallowed_methods,
    reason = "a test reads its scripts and may write them"
)]

mod fake;

use base::full_name::bare;
use fake::{Cluster, Outcome};
use std::fmt::Write;
use std::path::Path;

struct Block {
    line: usize,
    head: String,
    text: String,
    expected: Vec<String>,
    /// Comment lines before it.
    before: String,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut before = String::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        if line.trim().is_empty() || line.starts_with('#') {
            before.push_str(line);
            before.push('\n');
            continue;
        }
        let mut block = Block {
            line: number + 1,
            head: line.to_string(),
            text: String::new(),
            expected: Vec::new(),
            before: std::mem::take(&mut before),
        };
        let mut result = false;
        for (_, line) in lines.by_ref() {
            if line.is_empty() {
                break;
            } else if line == "----" {
                result = true;
            } else if result {
                block.expected.push(line.to_string());
            } else {
                block.text.push_str(line);
                block.text.push('\n');
            }
        }
        blocks.push(block);
    }
    blocks
}

fn lines_of(outcome: &Outcome) -> Vec<String> {
    outcome.rows.iter().map(|row| row.join("|")).collect()
}

/// What is wrong with a block's outcome, and the lines that came out.
fn check(cluster: &Cluster, block: &Block) -> (Option<String>, Vec<String>) {
    let text = block.text.trim().trim_end_matches(';');
    let words: Vec<&str> = block.head.split_whitespace().collect();
    let input: String = block
        .expected
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    let data = if words[0] == "copy" {
        input.as_str()
    } else {
        ""
    };
    let result = cluster.run_with(text, &[], data);
    match (words.as_slice(), result) {
        (["statement", "ok"] | ["copy"], Ok(_)) => (None, Vec::new()),
        (["statement", "count", count], Ok(outcome)) => {
            let touched = outcome.tag.rsplit(' ').next().unwrap_or("").to_string();
            let wrong = touched != *count;
            (wrong.then(|| format!("touched {touched} rows")), Vec::new())
        }
        (["statement" | "copy", "error", state, ..], Err(error)) => {
            let fields = error.fields();
            if error.state().as_str() != *state {
                return (Some(format!("failed with {error}")), Vec::new());
            }
            if words[0] == "copy" {
                return (None, Vec::new());
            }
            // A session puts names of schemas into it.
            let mut shown = vec![bare(&fields.message).into_owned()];
            if !fields.detail.is_empty() {
                shown.push(bare(&fields.detail).into_owned());
            }
            let wrong = !block.expected.is_empty() && block.expected != shown;
            (wrong.then(|| format!("failed with {shown:?}")), shown)
        }
        (["query", rest @ ..], Ok(outcome)) => {
            let mut found = lines_of(&outcome);
            if rest.contains(&"rowsort") {
                found.sort();
            }
            let wrong = found != block.expected;
            (wrong.then(|| format!("gave\n{}", found.join("\n"))), found)
        }
        (_, Ok(outcome)) => (Some(format!("succeeded: {}", outcome.tag)), Vec::new()),
        (_, Err(error)) => (
            Some(format!("failed with {error} {:?}", error.fields())),
            Vec::new(),
        ),
    }
}

/// What only a session can do. `cargo xtask slt` runs these like all the others.
const OF_SESSIONS: [&str; 39] = [
    "pg_compat_rekey.slt",
    "pg_compat_alone.slt",
    "pg_compat_interval_style.slt",
    "interval_style_kept.slt",
    "pg_compat_triggers_off.slt",
    "pg_compat_session_lists.slt",
    "pg_compat_explain_options.slt",
    "pg_compat_routine_rights.slt",
    "pg_compat_do.slt",
    "pg_compat_information_rights.slt",
    "pg_compat_upkeep.slt",
    "statements.slt",
    "pg_compat_ddl_in_blocks.slt",
    "pg_compat_written_blocks.slt",
    "pg_compat_advisory.slt",
    "pg_compat_alter_views.slt",
    "pg_compat_cursors.slt",
    "pg_compat_deferrable_unique.slt",
    "pg_compat_deferred.slt",
    "pg_compat_dumps.slt",
    "pg_compat_enums.slt",
    "pg_compat_large_objects.slt",
    "pg_compat_evasion.slt",
    "pg_compat_functions_settings.slt",
    "pg_compat_limits.slt",
    "pg_compat_lock_rows.slt",
    "pg_compat_lock_table.slt",
    "pg_compat_notify.slt",
    "pg_compat_rights.slt",
    "pg_compat_roles.slt",
    "pg_compat_row_security.slt",
    "pg_compat_savepoints.slt",
    "pg_compat_schemas.slt",
    "pg_compat_schemas_indexes.slt",
    "pg_compat_settings.slt",
    "pg_compat_with_writes.slt",
    "pg_compat_materialized.slt",
    "pg_compat_merge.slt",
    "pg_compat_temporary.slt",
];

#[test]
fn scripts_give_what_they_say() {
    let folder = Path::new("../../../test/sql");
    let update = std::env::var_os("UPDATE").is_some();
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut failures = String::new();
    let mut count = 0;
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the scripts are there")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|e| e == "slt"))
        .filter(|path| !OF_SESSIONS.iter().any(|name| path.ends_with(name)))
        .filter(|path| path.to_string_lossy().contains(&only))
        .collect();
    files.sort();
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a readable script");
        let cluster = Cluster::new();
        let mut out = String::new();
        for block in blocks(&text) {
            count += 1;
            let (wrong, found) = check(&cluster, &block);
            let rewritten = update && (!found.is_empty() || block.head.starts_with("query"));
            if let Some(wrong) = wrong
                && !rewritten
            {
                let name = path.file_name().expect("a file").to_string_lossy();
                let _ = writeln!(failures, "{name}:{} {}{wrong}\n", block.line, block.text);
            }
            out.push_str(&block.before);
            let _ = write!(out, "{}\n{}", block.head, block.text);
            let keep = block.head.starts_with("query")
                || (block.head.starts_with("statement error") && !block.expected.is_empty());
            let lines = if keep { &found } else { &block.expected };
            if !lines.is_empty() || block.head.starts_with("query") {
                let _ = writeln!(out, "----");
                lines
                    .iter()
                    .for_each(|line| out.push_str(&format!("{line}\n")));
            }
            out.push('\n');
        }
        if update {
            std::fs::write(&path, out.trim_end().to_string() + "\n").expect("a writable script");
        }
    }
    assert!(count > 0, "there are scripts");
    assert!(failures.is_empty(), "{failures}");
}

/// A load fails with the line of the first row that cannot be stored, far into the data.
#[test]
fn failing_loads_name_the_line() {
    let cluster = Cluster::new();
    let create = "CREATE TABLE t (a int PRIMARY KEY, b int UNIQUE, c int CHECK (c > 0))";
    cluster.run_with(create, &[], "").expect("the table is new");
    let rows = |wrong: usize, row: &str| {
        let mut data = String::new();
        for line in 1..=6_000 {
            match line == wrong {
                true => data.push_str(row),
                false => data.push_str(&format!("{line}\t{line}\t1")),
            }
            data.push('\n');
        }
        data
    };
    let copy = "COPY t FROM STDIN";
    for (line, row, state, detail) in [
        (
            4_321,
            "9999\t77\t1",
            "23505",
            "Key (b)=(77) already exists.",
        ),
        (
            5_000,
            "4999\t5000\t1",
            "23505",
            "Key (a)=(4999) already exists.",
        ),
        (
            6_000,
            "6000\t6000\t0",
            "23514",
            "Failing row contains (6000, 6000, 0).",
        ),
        (
            3,
            "\\N\t3\t1",
            "23502",
            "Failing row contains (null, 3, 1).",
        ),
    ] {
        let error = cluster
            .run_with(copy, &[], &rows(line, row))
            .expect_err("a row is wrong");
        assert_eq!(error.state().as_str(), state);
        assert_eq!(error.fields().detail, detail);
        assert_eq!(error.fields().context, format!("COPY t, line {line}"));
    }
    let loaded = cluster.run_with(copy, &[], &rows(0, ""));
    assert_eq!(loaded.expect("all rows are right").tag, "COPY 6000");
}
