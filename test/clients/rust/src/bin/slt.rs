//! Runs one file of SQL with expected results against a server: `slt URL FILE SERVER`.
//!
//! The form is that of sqllogictest, one row per line:
//!
//! ```text
//! statement ok
//! INSERT INTO t VALUES (1, 'a b'), (2, NULL)
//!
//! statement error 23505
//! INSERT INTO t VALUES (1, 'x')
//!
//! query IT rowsort
//! SELECT * FROM t
//! ----
//! 1 a b
//! 2 NULL
//! ```
//!
//! * A record ends with an empty line. `#` begins a comment line between records.
//! * After `statement error` stands a SQLSTATE, or a part of the message.
//! * The letters after `query` count columns and may be left out; `rowsort` sorts both sides.
//! * Columns are separated by blanks; runs of blanks count once; NULL is `NULL`, an empty string
//!   is `(empty)`.
//! * `onlyif SERVER` and `skipif SERVER` before a record choose by server: `trellis`, `postgres`.
//! * With `UPDATE=1` in the environment results are written into the file instead of compared.
#![expect(clippy::print_stderr, reason = "prints what differs")]
#![expect(clippy::unwrap_used, reason = "a test program: a panic is its verdict")]

use std::process::ExitCode;
use tokio_postgres::{Client, Error, NoTls, SimpleQueryMessage};

/// One record of a file.
struct Record<'a> {
    /// Lines of the record, from its first word to its last line.
    lines: &'a [&'a str],
    /// Line number of the first, from 1.
    number: usize,
    /// Whether a condition takes this server out.
    skipped: bool,
}

/// What a record asks for.
enum Wanted {
    Ok,
    Error(String),
    Rows { sorted: bool },
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url, path, server] = args.as_slice() else {
        eprintln!("usage: slt URL FILE SERVER");
        return ExitCode::FAILURE;
    };
    let text = std::fs::read_to_string(path).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (failed, count, updated) = runtime.block_on(run(url, path, &text, server));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, updated).unwrap();
        return ExitCode::SUCCESS;
    }
    if failed > 0 || count == 0 {
        eprintln!("{path}: {failed} of {count} records failed");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Runs all records; answers how many failed, how many there are, and the file with today's rows.
async fn run(url: &str, path: &str, text: &str, server: &str) -> (usize, usize, String) {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            eprintln!("the connection broke: {error}");
        }
    });
    let lines: Vec<&str> = text.lines().collect();
    let (mut failed, mut count) = (0, 0);
    let mut updated = text.to_string();
    for record in records(&lines, server)
        .iter()
        .filter(|record| !record.skipped)
    {
        count += 1;
        match check(&client, record).await {
            Ok(None) => {}
            Ok(Some((old, new))) => updated = updated.replacen(&old, &new, 1),
            Err(message) => {
                eprintln!("{path}:{}: {message}", record.number);
                failed += 1;
            }
        }
    }
    (failed, count, updated)
}

fn records<'a>(lines: &'a [&'a str], server: &str) -> Vec<Record<'a>> {
    let mut records = Vec::new();
    let mut at = 0;
    let mut skipped = false;
    while at < lines.len() {
        let line = lines[at].trim();
        if let Some(only) = line.strip_prefix("onlyif ") {
            skipped |= only != server;
        } else if let Some(not) = line.strip_prefix("skipif ") {
            skipped |= not == server;
        } else if !line.is_empty() && !line.starts_with('#') {
            let length = lines[at..]
                .iter()
                .take_while(|line| !line.trim().is_empty())
                .count();
            let record = &lines[at..at + length];
            records.push(Record {
                lines: record,
                number: at + 1,
                skipped,
            });
            skipped = false;
            at += length;
            continue;
        }
        at += 1;
    }
    records
}

fn wanted(head: &str) -> Result<Wanted, String> {
    let words: Vec<&str> = head.split_whitespace().collect();
    match words.as_slice() {
        ["statement", "ok"] => Ok(Wanted::Ok),
        ["statement", "error", rest @ ..] => Ok(Wanted::Error(rest.join(" "))),
        ["query", rest @ ..] => Ok(Wanted::Rows {
            sorted: rest.contains(&"rowsort"),
        }),
        _ => Err(format!("unknown record: {head}")),
    }
}

/// Runs one record. `Some` holds the whole record before and after, when results are recorded.
async fn check(client: &Client, record: &Record<'_>) -> Result<Option<(String, String)>, String> {
    let (head, body) = record.lines.split_first().expect("a record has a line");
    let rule = body.iter().position(|line| *line == "----");
    let sql = body[..rule.unwrap_or(body.len())].join("\n");
    let result = client.simple_query(&sql).await;
    match wanted(head)? {
        Wanted::Ok => result
            .map(|_| None)
            .map_err(|error| format!("{sql}\n{}", describe(&error))),
        Wanted::Error(part) => match result {
            Ok(_) => Err(format!("{sql}\nshould fail with {part}")),
            Err(error) if describe(&error).contains(&part) => Ok(None),
            Err(error) => Err(format!(
                "{sql}\nshould fail with {part}: {}",
                describe(&error)
            )),
        },
        Wanted::Rows { sorted } => {
            let messages = result.map_err(|error| format!("{sql}\n{}", describe(&error)))?;
            let mut found = rows(messages);
            let expected = body.iter().skip(rule.map_or(body.len(), |rule| rule + 1));
            let mut expected: Vec<String> = expected.map(|line| squeeze(line)).collect();
            if sorted {
                found.sort();
                expected.sort();
            }
            if std::env::var_os("UPDATE").is_some() {
                let new = format!("{head}\n{sql}\n----\n{}", found.join("\n"));
                return Ok(Some((record.lines.join("\n"), new.trim_end().to_string())));
            }
            if found == expected {
                return Ok(None);
            }
            let (found, expected) = (found.join("\n  "), expected.join("\n  "));
            Err(format!("{sql}\nexpected\n  {expected}\nfound\n  {found}"))
        }
    }
}

fn rows(messages: Vec<SimpleQueryMessage>) -> Vec<String> {
    let mut rows = Vec::new();
    for message in messages {
        if let SimpleQueryMessage::Row(row) = message {
            let cells = (0..row.len()).map(|column| match row.get(column) {
                None => "NULL".to_string(),
                Some("") => "(empty)".to_string(),
                Some(text) => text.replace('\n', "\\n"),
            });
            rows.push(squeeze(&cells.collect::<Vec<_>>().join(" ")));
        }
    }
    rows
}

fn squeeze(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Code and message of an error.
fn describe(error: &Error) -> String {
    match error.as_db_error() {
        Some(error) => format!("{} {}", error.code().code(), error.message()),
        None => error.to_string(),
    }
}
