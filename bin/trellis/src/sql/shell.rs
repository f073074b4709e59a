//! Reads statements and commands, runs them, prints what comes back.

use super::backslash::{self, Command, HELP};
use super::connection::{Block, Connection, Said};
use super::lexer::{is_blank, statement_end};
use super::lines::{Line, Lines, Stream};
use super::table::{Layout, Rows};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Files that include each other end somewhere.
const INCLUDE_DEPTH_MAX: usize = 16;

/// Whether the shell reads on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Continue,
    Quit,
}

/// The state of the client.
pub(crate) struct Shell<'a> {
    pub(crate) connection: Connection,
    pub(crate) layout: Layout,
    pub(crate) timing: bool,
    depth: usize,
    out: &'a mut dyn Write,
    errors: &'a mut dyn Write,
}

/// What came of statements.
#[derive(Default)]
struct Outcome {
    said: Vec<Said>,
    failed: bool,
}

impl<'a> Shell<'a> {
    pub(crate) fn new(
        connection: Connection,
        layout: Layout,
        out: &'a mut dyn Write,
        errors: &'a mut dyn Write,
    ) -> Shell<'a> {
        Shell {
            connection,
            layout,
            timing: false,
            depth: 0,
            out,
            errors,
        }
    }

    /// Runs everything that `lines` give. In a script the first error ends it.
    ///
    /// # Errors
    /// A script failed; what failed has been printed. Or the terminal cannot be used.
    pub(crate) fn read(&mut self, lines: &mut dyn Lines) -> Result<Next> {
        let mut text = String::new();
        loop {
            let prompt = self.prompt(is_blank(&text));
            match lines.next(&prompt)? {
                Line::Text(line) => {
                    if is_blank(&text) && line.trim_start().starts_with('\\') {
                        text.clear();
                        lines.remember(line.trim());
                        if self.command(&line, lines)? == Next::Quit {
                            return Ok(Next::Quit);
                        }
                        continue;
                    }
                    text.push_str(&line);
                    text.push('\n');
                    self.statements(&mut text, lines)?;
                }
                Line::Cancel => text.clear(),
                Line::End => {
                    // The last statement of a script needs no semicolon.
                    if !is_blank(&text) && !lines.is_interactive() {
                        self.statement(text.trim(), lines)?;
                    }
                    return Ok(Next::Continue);
                }
            }
        }
    }

    /// Runs the whole statements at the front of `text` and takes them off.
    fn statements(&mut self, text: &mut String, lines: &mut dyn Lines) -> Result<()> {
        while let Some(end) = statement_end(text) {
            let rest = text.split_off(end);
            let statement = std::mem::replace(text, rest);
            if is_blank(text) {
                text.clear();
            }
            if !is_blank(&statement) {
                lines.remember(statement.trim());
                self.statement(statement.trim(), lines)?;
            }
        }
        Ok(())
    }

    fn prompt(&self, fresh: bool) -> String {
        let sign = if fresh { '=' } else { '-' };
        let block = match self.connection.block() {
            Block::None => "",
            Block::Open => "*",
            Block::Failed => "!",
        };
        format!("{}{sign}{block}> ", self.connection.target.database)
    }

    /// Runs one statement and prints its result.
    fn statement(&mut self, statement: &str, lines: &mut dyn Lines) -> Result<()> {
        let start = Instant::now();
        let outcome = self.ask(statement, lines);
        let elapsed = start.elapsed();
        let failed = match outcome {
            Ok(outcome) => {
                for said in outcome.said {
                    self.print(said, statement)?;
                }
                outcome.failed
            }
            Err(error) => {
                writeln!(self.errors, "{error:#}")?;
                true
            }
        };
        if self.timing {
            writeln!(self.out, "Time: {}", milliseconds(elapsed))?;
        }
        self.out.flush()?;
        if failed && !lines.is_interactive() {
            bail!("a statement failed");
        }
        Ok(())
    }

    fn ask(&mut self, statement: &str, lines: &mut dyn Lines) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let mut copied = CopyLines {
            lines,
            problem: None,
        };
        let out = &mut self.out;
        let mut written = Ok(());
        let mut copies_out = false;
        let result =
            self.connection
                .run(statement, &mut || copied.next(), &mut |said| match said {
                    // Copied rows may be many: they are not kept.
                    Said::CopyOut(bytes) => {
                        copies_out = true;
                        if written.is_ok() {
                            written = out.write_all(&bytes);
                        }
                    }
                    // Behind the rows the tag would be one more.
                    Said::Done(_) if std::mem::take(&mut copies_out) => {}
                    said => {
                        outcome.failed |= matches!(said, Said::Failed(_));
                        outcome.said.push(said);
                    }
                });
        written.context("cannot print")?;
        if let Some(problem) = copied.problem {
            return Err(problem);
        }
        result.context("the connection is lost; the next statement opens another")?;
        Ok(outcome)
    }

    fn print(&mut self, said: Said, statement: &str) -> Result<()> {
        match said {
            Said::Rows(rows, tag) => {
                self.out.write_all(rows.render(self.layout).as_bytes())?;
                // INSERT ... RETURNING and the like: how many rows were changed.
                if self.layout != Layout::Plain && !is_query_tag(&tag) {
                    writeln!(self.out, "{tag}")?;
                }
            }
            Said::Done(tag) if self.layout != Layout::Plain => writeln!(self.out, "{tag}")?,
            Said::Done(_) | Said::CopyOut(_) => {}
            Said::Notice(report) | Said::Failed(report) => {
                self.out.flush()?;
                self.errors.write_all(report.render(statement).as_bytes())?;
            }
        }
        Ok(())
    }

    fn command(&mut self, line: &str, lines: &mut dyn Lines) -> Result<Next> {
        let result = match backslash::parse(line) {
            Ok(Command::Quit) => return Ok(Next::Quit),
            Ok(Command::Include(path)) => return self.include(Path::new(&path), lines),
            Ok(command) => self.simple_command(command),
            Err(error) => Err(anyhow::anyhow!(error)),
        };
        match result {
            Err(error) if lines.is_interactive() => writeln!(self.errors, "{error:#}")?,
            other => other?,
        }
        self.out.flush()?;
        Ok(Next::Continue)
    }

    fn simple_command(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Help => write!(self.out, "{HELP}")?,
            Command::Timing => {
                self.timing = !self.timing;
                writeln!(self.out, "Timing is {}.", on_off(self.timing))?;
            }
            Command::Expanded => {
                let expanded = self.layout == Layout::Expanded;
                self.layout = if expanded {
                    Layout::Aligned
                } else {
                    Layout::Expanded
                };
                writeln!(self.out, "Expanded display is {}.", on_off(!expanded))?;
            }
            Command::Connect(database) => {
                self.connection.reconnect(&database)?;
                writeln!(self.out, "Connected to database \"{database}\".")?;
            }
            Command::Show(queries) => self.show(&queries)?,
            Command::Describe(name) => self.describe(&name)?,
            Command::Quit | Command::Include(_) => unreachable!("the caller runs these"),
        }
        Ok(())
    }

    fn show(&mut self, queries: &[(String, String)]) -> Result<()> {
        for (title, query) in queries {
            let rows = self.rows(query)?;
            if queries.len() > 1 && rows.rows.is_empty() {
                continue;
            }
            if !title.is_empty() && self.layout == Layout::Aligned {
                writeln!(self.out, "{title}")?;
            }
            self.out.write_all(rows.render(self.layout).as_bytes())?;
        }
        Ok(())
    }

    fn describe(&mut self, name: &str) -> Result<()> {
        let found = self.rows(&backslash::find(name))?;
        let Some([Some(oid), Some(schema), Some(table)]) = found.rows.first().map(Vec::as_slice)
        else {
            bail!("there is no relation {name}; \\d lists them");
        };
        let oid = oid.parse().context("the catalog answers no number")?;
        self.show(&backslash::describe(oid, schema, table))
    }

    /// The rows of one catalog query.
    fn rows(&mut self, query: &str) -> Result<Rows> {
        let mut found = None;
        let mut problem = None;
        self.connection
            .run(query, &mut || None, &mut |said| match said {
                Said::Rows(rows, _) => found = Some(rows),
                Said::Failed(report) => problem = Some(report.render(query)),
                Said::Done(_) | Said::Notice(_) | Said::CopyOut(_) => {}
            })?;
        match (found, problem) {
            (_, Some(problem)) => bail!("{}", problem.trim_end()),
            (Some(rows), None) => Ok(rows),
            (None, None) => bail!("the catalog answers nothing"),
        }
    }

    fn include(&mut self, path: &Path, lines: &mut dyn Lines) -> Result<Next> {
        let result = self.run_file(path);
        match result {
            Err(error) if lines.is_interactive() => {
                writeln!(self.errors, "{error:#}")?;
                Ok(Next::Continue)
            }
            other => other,
        }
    }

    /// Runs the statements of a file.
    ///
    /// # Errors
    /// It cannot be read, or a statement failed.
    pub(crate) fn run_file(&mut self, path: &Path) -> Result<Next> {
        if self.depth >= INCLUDE_DEPTH_MAX {
            bail!("{} is included by itself", path.display());
        }
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        self.depth += 1;
        let result = self.read(&mut Stream(BufReader::new(file)));
        self.depth -= 1;
        result.with_context(|| path.display().to_string())
    }
}

/// The data lines of COPY FROM STDIN, up to `\.` or the end of the source.
struct CopyLines<'a> {
    lines: &'a mut dyn Lines,
    problem: Option<anyhow::Error>,
}

impl CopyLines<'_> {
    fn next(&mut self) -> Option<Vec<u8>> {
        match self.lines.next("copy> ") {
            Ok(Line::Text(line)) if line == "\\." => None,
            Ok(Line::Text(mut line)) => {
                line.push('\n');
                Some(line.into_bytes())
            }
            Ok(Line::Cancel | Line::End) => None,
            Err(error) => {
                self.problem = Some(error);
                None
            }
        }
    }
}

/// Whether the number of printed rows says all that the tag says.
fn is_query_tag(tag: &str) -> bool {
    ["SELECT", "SHOW", "EXPLAIN", "FETCH"]
        .iter()
        .any(|word| tag.starts_with(word))
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_queries_are_left_out() {
        assert!(is_query_tag("SELECT 3") && is_query_tag("SHOW"));
        assert!(!is_query_tag("INSERT 0 1") && !is_query_tag("DELETE 2"));
    }

    #[test]
    fn times_are_in_milliseconds() {
        assert_eq!(milliseconds(Duration::from_micros(1_234)), "1.234 ms");
    }

    #[test]
    fn copied_lines_end_at_the_mark() {
        let mut stream = Stream(&b"1\tann\n2\tbob\n\\.\nSELECT 1;"[..]);
        let mut copied = CopyLines {
            lines: &mut stream,
            problem: None,
        };
        let mut found = Vec::new();
        while let Some(line) = copied.next() {
            found.extend(line);
        }
        assert_eq!(found, b"1\tann\n2\tbob\n");
        assert_eq!(
            stream.next("").expect("a text"),
            Line::Text("SELECT 1;".into())
        );
    }
}
