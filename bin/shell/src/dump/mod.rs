//! `trellis dump`: a database as SQL statements that make it again.
//!
//! Everything is read in one transaction of one snapshot, while others go on writing:
//!
//! ```text
//! catalog -> schema (statements before and behind the rows) -> rows by COPY -> statements
//! ```
//!
//! Sequences are read behind the snapshot, from a session of their own: rows that the snapshot has
//! can only have numbers that were drawn before.

mod schema;

use crate::catalog::literal;
use crate::connection::{Connection, Said};
use crate::database::DatabaseArgs;
use crate::interrupts::Interrupts;
use crate::table::Rows;
use anyhow::{Context, Result, bail};
use clap::Args;
use functions::keywords::quote_ident;
use links::url::Target;
use schema::{Schema, Sequence, Table};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Rows of one COPY: what a transaction writes has a limit.
const COPY_ROWS: u64 = 100_000;
/// A shard draws 32 numbers of a sequence at a time; one more, and it has drawn a new block, which
/// lies beyond all that any shard has drawn before.
const DRAWN: u32 = 33;

/// Arguments of `trellis dump`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    trellis dump --data ./cluster -d shop -o shop.sql   a backup of the database shop\n  \
    trellis sql --data ./cluster -c \"CREATE DATABASE again WITH (protocol = 'leap')\"\n  \
    trellis sql --data ./cluster -d again -f shop.sql   and what makes it again\n\n\
    All tables are read at one moment, while clients go on. Each sequence loses 33 numbers.")]
pub struct DumpArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Leave the rows out
    #[arg(long)]
    schema_only: bool,
    /// Only this table; may be given more than once. Foreign keys of it are part of it
    #[arg(short, long, value_name = "TABLE")]
    table: Vec<String>,
}

/// Writes the dump. A file takes its name when it is complete.
///
/// # Errors
/// The server does not answer or refuses, or the file cannot be written.
pub fn run(args: &DumpArgs) -> Result<()> {
    let target = args.database.target("trellis dump")?;
    let Some(path) = &args.output else {
        return Dump::open(&target)?.write(args, &mut std::io::stdout().lock());
    };
    drive::outputs::check([path.as_path()])?;
    let part = partial(path);
    let file = File::create(&part).with_context(|| format!("cannot write {}", part.display()))?;
    let mut file = BufWriter::new(file);
    let written = Dump::open(&target).and_then(|dump| dump.write(args, &mut file));
    let written = written.and_then(|()| {
        file.flush()?;
        file.get_ref().sync_all()?;
        std::fs::rename(&part, path)?;
        Ok(())
    });
    if written.is_err() {
        // A half dump must not be taken for a whole one.
        let _ = std::fs::remove_file(&part);
    }
    written.with_context(|| format!("no dump was written to {}", path.display()))
}

fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// A session whose transaction sees one moment, and one for sequences.
struct Dump {
    snapshot: Connection,
    other: Connection,
    database: String,
}

impl Dump {
    fn open(target: &Target) -> Result<Dump> {
        let mut snapshot = Connection::new(target.clone(), Interrupts::default());
        let (version, _) = snapshot.server()?;
        if !version.contains("Trellis") {
            bail!("the server is {version}, not Trellis; use its own tools");
        }
        Ok(Dump {
            snapshot,
            other: Connection::new(target.clone(), Interrupts::default()),
            database: target.database.clone(),
        })
    }

    fn write(mut self, args: &DumpArgs, out: &mut dyn Write) -> Result<()> {
        // Rows that policies hide would be missing: rather an error.
        command(&mut self.snapshot, "SET row_security = off")?;
        command(
            &mut self.snapshot,
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        )?;
        let mut query = |text: &str| rows(&mut self.snapshot, text);
        let others = "SELECT nspname FROM pg_namespace WHERE nspname <> ALL \
                      ('{public,pg_catalog,information_schema}') AND nspname !~ '^pg_temp_' \
                      ORDER BY 1";
        let others = query(others)?.rows.into_iter().flatten().flatten().next();
        if let Some(other) = others {
            bail!(
                "schema \"{other}\" would be missing: trellis dump writes only schema public; \
                 use pg_dump"
            );
        }
        let stored = "SELECT matviewname FROM pg_matviews WHERE schemaname = 'public' ORDER BY 1";
        let stored = query(stored)?.rows.into_iter().flatten().flatten().next();
        if let Some(stored) = stored {
            bail!(
                "materialized view \"{stored}\" would be missing: trellis dump does not write \
                 them; use pg_dump"
            );
        }
        let objects = "SELECT 1 FROM pg_largeobject_metadata LIMIT 1";
        let is_whole = !args.schema_only && args.table.is_empty();
        if is_whole && !query(objects)?.rows.is_empty() {
            bail!("large objects would be missing: use pg_dump, or --schema-only");
        }
        let protocol = query("SHOW protocol")?;
        let mut schema = Schema::read(&mut query, &self.database)?;
        schema.keep(&args.table)?;
        for sequence in &mut schema.sequences {
            let next = next_number(&mut self.other, sequence)?;
            sequence.start = next;
        }
        let protocol = protocol.rows.into_iter().flatten().flatten().next();
        let protocol = literal(&protocol.unwrap_or_default());
        let name = quote_ident(&self.database);
        write!(
            out,
            "-- Database {name}, by trellis dump {}.\n-- To make it again: CREATE DATABASE {name} \
             WITH (protocol = {protocol}),\n-- then trellis sql -d {name} -f FILE, or psql.\n\n",
            env!("CARGO_PKG_VERSION")
        )?;
        for statement in schema.before() {
            writeln!(out, "{statement}\n")?;
        }
        if !args.schema_only {
            for table in &schema.tables {
                copy(&mut self.snapshot, table, out)?;
            }
        }
        for statement in schema.behind() {
            writeln!(out, "{statement}\n")?;
        }
        command(&mut self.snapshot, "COMMIT")?;
        writeln!(out, "-- The end.")?;
        Ok(())
    }
}

/// Writes the rows of a table as COPY statements with their data.
fn copy(connection: &mut Connection, table: &Table, out: &mut dyn Write) -> Result<()> {
    let columns = table.column_names();
    if columns.is_empty() {
        return Ok(());
    }
    let name = quote_ident(&table.name);
    let begin = format!("COPY {name} ({columns}) FROM stdin;\n");
    let mut lines = Lines {
        out,
        begin: &begin,
        count: 0,
        written: Ok(()),
    };
    let mut problem = None;
    let statement = format!("COPY {name} ({columns}) TO STDOUT");
    let result = connection.run(&statement, &mut || Ok(None), &mut |said| match said {
        Said::CopyOut(bytes) => lines.take(&bytes),
        Said::Failed(report) => problem = Some(report),
        _ => {}
    });
    lines.end();
    lines.written.context("cannot write the dump")?;
    result.with_context(|| format!("cannot read table {name}"))?;
    match problem {
        Some(report) => bail!(
            "cannot read table {name}: {}",
            report.render(&statement).trim_end()
        ),
        None => Ok(()),
    }
}

/// Puts data lines into COPY statements of a bounded length.
struct Lines<'a> {
    out: &'a mut dyn Write,
    begin: &'a str,
    count: u64,
    written: std::io::Result<()>,
}

impl Lines<'_> {
    /// The next line or lines, whole.
    fn take(&mut self, bytes: &[u8]) {
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            if self.written.is_err() {
                return;
            }
            self.written = self.line(line);
            self.count += 1;
        }
    }

    fn line(&mut self, line: &[u8]) -> std::io::Result<()> {
        if self.count > 0 && self.count.is_multiple_of(COPY_ROWS) {
            self.out.write_all(b"\\.\n\n")?;
        }
        if self.count.is_multiple_of(COPY_ROWS) {
            self.out.write_all(self.begin.as_bytes())?;
        }
        self.out.write_all(line)
    }

    fn end(&mut self) {
        if self.count > 0 && self.written.is_ok() {
            self.written = self.out.write_all(b"\\.\n\n");
        }
    }
}

/// A number from which on the sequence has given none to a row of the snapshot.
fn next_number(connection: &mut Connection, sequence: &Sequence) -> Result<i64> {
    let farthest = if sequence.increment > 0 { "max" } else { "min" };
    let text = format!(
        "SELECT {farthest}(n) FROM (SELECT nextval({}) AS n FROM generate_series(1, {DRAWN})) AS d",
        literal(&quote_ident(&sequence.name))
    );
    let found = rows(connection, &text)
        .with_context(|| format!("cannot tell where sequence {} is", sequence.name))?;
    let number = found.rows.into_iter().flatten().flatten().next();
    number
        .context("a sequence has no number")?
        .parse()
        .context("a sequence gives no number")
}

fn command(connection: &mut Connection, text: &str) -> Result<()> {
    let mut problem = None;
    connection.run(text, &mut || Ok(None), &mut |said| {
        if let Said::Failed(report) = said {
            problem = Some(report.render(text));
        }
    })?;
    match problem {
        Some(problem) => bail!("{}", problem.trim_end()),
        None => Ok(()),
    }
}

fn rows(connection: &mut Connection, text: &str) -> Result<Rows> {
    let (mut found, mut problem) = (None, None);
    connection.run(text, &mut || Ok(None), &mut |said| match said {
        Said::Rows(rows, _) => found = Some(rows),
        Said::Failed(report) => problem = Some(report.render(text)),
        _ => {}
    })?;
    match (found, problem) {
        (_, Some(problem)) => bail!("{}", problem.trim_end()),
        (found, None) => found.context("the server answers nothing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_into_statements() {
        let mut out = Vec::new();
        let mut lines = Lines {
            out: &mut out,
            begin: "COPY;\n",
            count: 0,
            written: Ok(()),
        };
        for _ in 0..COPY_ROWS {
            lines.take(b"a\n");
        }
        lines.take(b"b\nc\n");
        lines.end();
        let text = String::from_utf8(out).expect("text");
        assert!(text.starts_with("COPY;\na\n"));
        assert!(
            text.ends_with("a\n\\.\n\nCOPY;\nb\nc\n\\.\n\n"),
            "{}",
            &text[text.len() - 40..]
        );
    }
}
