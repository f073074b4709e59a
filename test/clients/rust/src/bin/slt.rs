//! Runs one file of SQL with expected results against a server: `slt URL FILE SERVER`.
//!
//! ```text
//! statement ok            the next lines, up to an empty one, succeed
//! statement count 3       ... and touch three rows
//! statement error 23505   ... fail with this SQLSTATE; after `----` message and detail
//! query [rowsort]         ... give the rows after `----`, columns separated by `|`
//! copy [error 22P02]      COPY FROM with the data after `----`
//! ```
//!
//! NULL is `NULL`. `#` begins a comment line. `onlyif SERVER` and `skipif SERVER` before a block
//! choose by server: `trellis`, `postgres`. The same files run without a server in `pure/sql/exec`.
#![expect(clippy::print_stderr, reason = "prints what differs")]
#![expect(clippy::unwrap_used, reason = "a test program: a panic is its verdict")]

use futures_util::{SinkExt, pin_mut};
use std::process::ExitCode;
use tokio_postgres::{Client, Error, NoTls, SimpleQueryMessage};

/// One block of a file.
#[derive(Default)]
struct Block<'a> {
    /// Line number of its head, from 1.
    number: usize,
    head: &'a str,
    sql: String,
    /// Lines after `----`.
    expected: Vec<&'a str>,
}

/// What a statement gave.
struct Gave {
    rows: Vec<String>,
    /// Rows touched, or returned.
    count: u64,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url, path, server] = args.as_slice() else {
        eprintln!("usage: slt URL FILE SERVER");
        return ExitCode::FAILURE;
    };
    let text = std::fs::read_to_string(path).unwrap();
    let blocks = blocks(&text, server);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let failed = runtime.block_on(run(url, path, &blocks));
    if failed > 0 || blocks.is_empty() {
        eprintln!("{path}: {failed} of {} blocks failed", blocks.len());
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Runs all blocks; answers how many failed.
async fn run(url: &str, path: &str, blocks: &[Block<'_>]) -> usize {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            eprintln!("the connection broke: {error}");
        }
    });
    let mut failed = 0;
    for block in blocks {
        if let Err(message) = check(&client, block).await {
            eprintln!("{path}:{}: {}\n{message}\n", block.number, block.sql.trim());
            failed += 1;
        }
    }
    failed
}

/// The blocks that are meant for `server`.
fn blocks<'a>(text: &'a str, server: &str) -> Vec<Block<'a>> {
    let mut blocks = Vec::new();
    let mut skipped = false;
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if let Some(only) = line.strip_prefix("onlyif ") {
            skipped |= only != server;
            continue;
        }
        if let Some(not) = line.strip_prefix("skipif ") {
            skipped |= not == server;
            continue;
        }
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut block = Block {
            number: index + 1,
            head: line,
            ..Block::default()
        };
        let mut in_result = false;
        for (_, line) in lines.by_ref().take_while(|(_, line)| !line.is_empty()) {
            match (line, in_result) {
                ("----", _) => in_result = true,
                (line, true) => block.expected.push(line),
                (line, false) => block.sql.push_str(&format!("{line}\n")),
            }
        }
        if !std::mem::take(&mut skipped) {
            blocks.push(block);
        }
    }
    blocks
}

async fn check(client: &Client, block: &Block<'_>) -> Result<(), String> {
    let words: Vec<&str> = block.head.split_whitespace().collect();
    let result = match words.first() {
        Some(&"copy") => copy(client, block).await,
        _ => client.simple_query(&block.sql).await.map(gave),
    };
    match (words.as_slice(), result) {
        (["statement", "ok"] | ["copy"], Ok(_)) => Ok(()),
        (["statement", "count", count], Ok(gave)) => {
            same(&[count.to_string()], &[gave.count.to_string()])
        }
        (["statement" | "copy", "error", state, ..], Err(error)) => {
            let found = describe(&error);
            same(&[state.to_string()], &found[..1])?;
            match block.expected.is_empty() || words[0] == "copy" {
                true => Ok(()),
                false => same(&block.expected, &found[1..]),
            }
        }
        (["query", rest @ ..], Ok(mut gave)) => {
            if rest.contains(&"rowsort") {
                gave.rows.sort();
            }
            same(&block.expected, &gave.rows)
        }
        (_, Ok(gave)) => Err(format!("succeeds with {} rows", gave.count)),
        (_, Err(error)) => Err(describe(&error).join("\n")),
    }
}

async fn copy(client: &Client, block: &Block<'_>) -> Result<Gave, Error> {
    let data: String = block
        .expected
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    let sql = block.sql.trim().trim_end_matches(';');
    let sink = client.copy_in::<_, std::io::Cursor<Vec<u8>>>(sql).await?;
    pin_mut!(sink);
    sink.send(std::io::Cursor::new(data.into_bytes())).await?;
    let count = sink.finish().await?;
    Ok(Gave {
        rows: Vec::new(),
        count,
    })
}

fn gave(messages: Vec<SimpleQueryMessage>) -> Gave {
    let mut gave = Gave {
        rows: Vec::new(),
        count: 0,
    };
    for message in messages {
        match message {
            SimpleQueryMessage::Row(row) => {
                let cells = (0..row.len()).map(|column| row.get(column).unwrap_or("NULL"));
                gave.rows.push(cells.collect::<Vec<_>>().join("|"));
            }
            SimpleQueryMessage::CommandComplete(count) => gave.count = count,
            _ => {}
        }
    }
    gave
}

fn same(expected: &[impl AsRef<str>], found: &[String]) -> Result<(), String> {
    let expected: Vec<&str> = expected.iter().map(AsRef::as_ref).collect();
    if expected == found {
        return Ok(());
    }
    Err(format!(
        "expected\n  {}\nfound\n  {}",
        expected.join("\n  "),
        found.join("\n  ")
    ))
}

/// SQLSTATE, message, and detail if there is any.
fn describe(error: &Error) -> Vec<String> {
    let Some(error) = error.as_db_error() else {
        return vec![error.to_string()];
    };
    let parts = [
        Some(error.code().code()),
        Some(error.message()),
        error.detail(),
    ];
    parts.into_iter().flatten().map(str::to_string).collect()
}
