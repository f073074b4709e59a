//! Reads statements and commands, runs them, prints what comes back.

use crate::backslash;
use crate::connection::{Block, Connection, CopySource, Said};
use crate::interrupts::Interrupts;
use crate::lexer::{Next as Found, Open, is_blank, scan};
use crate::lines::{DATA_PROMPT, Line, Lines, Stream};
use crate::output::Output;
use crate::report::Report;
use crate::table::{Expanded, Style};
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
    pub(crate) style: Style,
    pub(crate) timing: bool,
    pub(super) depth: usize,
    pub(super) out: Output<'a>,
    pub(super) errors: &'a mut dyn Write,
    pub(super) interrupts: Interrupts,
    /// The last statement, for `\g`, `\watch` and `\e`.
    pub(super) last: String,
    pub(super) last_error: Option<Report>,
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
        style: Style,
        out: Output<'a>,
        errors: &'a mut dyn Write,
        interrupts: Interrupts,
    ) -> Shell<'a> {
        Shell {
            connection,
            style,
            timing: false,
            depth: 0,
            out,
            errors,
            interrupts,
            last: String::new(),
            last_error: None,
        }
    }

    /// Runs everything that `lines` give. In a script the first error ends it.
    ///
    /// # Errors
    /// A script failed; what failed has been printed. Or the terminal cannot be used.
    pub(crate) fn read(&mut self, lines: &mut dyn Lines) -> Result<Next> {
        lines.connected(&self.connection.target);
        let mut text = String::new();
        let (mut from, mut open) = (0, Open::Nothing);
        loop {
            let prompt = self.prompt(is_blank(&text), open);
            match lines.next(&prompt, &text)? {
                Line::Text(line) => {
                    match self.word(&line, &text, lines)? {
                        Word::Quit => return Ok(Next::Quit),
                        Word::Done => continue,
                        Word::None => {}
                    }
                    text.push_str(&line);
                    text.push('\n');
                    match self.typed(&mut text, from, lines)? {
                        Typed::Quit => return Ok(Next::Quit),
                        Typed::More(next, now) => (from, open) = (next, now),
                    }
                }
                Line::Cancel => {
                    text.clear();
                    (from, open) = (0, Open::Nothing);
                }
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

    /// What a person may type instead of a command: `help`, `quit`, `exit`.
    fn word(&mut self, line: &str, text: &str, lines: &mut dyn Lines) -> Result<Word> {
        if !lines.is_interactive() {
            return Ok(Word::None);
        }
        let word = line.trim().trim_end_matches(';').trim().to_lowercase();
        let fresh = is_blank(text);
        let note = match (word.as_str(), fresh) {
            ("quit" | "exit", true) => return Ok(Word::Quit),
            ("help", true) => {
                let help = "Statements of SQL end with ;. \\? lists the commands, \\h the \
                            statements, \
                            \\q leaves.";
                self.out.say(help)?;
                self.out.flush()?;
                return Ok(Word::Done);
            }
            ("quit" | "exit", false) => "\\q leaves, Ctrl-C forgets what was typed.",
            ("help", false) => "\\? lists the commands, Ctrl-C forgets what was typed.",
            _ => return Ok(Word::None),
        };
        self.out.say(note)?;
        self.out.flush()?;
        Ok(Word::None)
    }

    /// Runs the whole statements and the commands in `text`, which has been read up to byte `from`,
    /// and takes them off.
    fn typed(
        &mut self,
        text: &mut String,
        mut from: usize,
        lines: &mut dyn Lines,
    ) -> Result<Typed> {
        loop {
            match scan(text, from) {
                Found::Statement(end) => {
                    let rest = text.split_off(end);
                    let statement = std::mem::replace(text, rest);
                    if !is_blank(&statement) {
                        lines.remember(statement.trim());
                        self.statement(statement.trim(), lines)?;
                    }
                    from = 0;
                }
                Found::Command(at) => {
                    let rest = text.split_off(at);
                    let (command, behind) = backslash::split(&rest);
                    if is_blank(text) {
                        text.clear();
                    }
                    lines.remember(format!("{text}{command}").trim());
                    if self.command(command, text, lines)? == Next::Quit {
                        return Ok(Typed::Quit);
                    }
                    from = 0;
                    // A text that has been edited may hold whole statements.
                    text.push_str(behind);
                }
                Found::More { from, open } => {
                    if is_blank(text) && open == Open::Nothing {
                        text.clear();
                        return Ok(Typed::More(0, open));
                    }
                    return Ok(Typed::More(from, open));
                }
            }
        }
    }

    fn prompt(&self, fresh: bool, open: Open) -> String {
        let sign = match open {
            Open::Nothing if fresh => '=',
            Open::Nothing => '-',
            Open::String => '\'',
            Open::Name => '"',
            Open::Dollar => '$',
            Open::Comment => '*',
        };
        let block = match self.connection.block() {
            Block::None => "",
            Block::Open => "*",
            Block::Failed => "!",
        };
        format!("{}{sign}{block}> ", self.connection.target.database)
    }

    /// Runs one statement and prints its result.
    ///
    /// # Errors
    /// It failed in a script; why has been printed.
    pub(super) fn statement(&mut self, statement: &str, lines: &mut dyn Lines) -> Result<()> {
        self.last = statement.to_string();
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
            self.out.say(&format!("Time: {}", milliseconds(elapsed)))?;
        }
        self.out.flush()?;
        if failed && !lines.is_interactive() {
            bail!("a statement failed");
        }
        Ok(())
    }

    fn ask(&mut self, statement: &str, lines: &mut dyn Lines) -> Result<Outcome> {
        let mut copied = CopyLines {
            is_announced: !lines.is_interactive(),
            lines,
            problem: None,
        };
        let result = self.ask_with(statement, &mut || copied.next(), None);
        match copied.problem {
            Some(problem) => Err(problem),
            None => result,
        }
    }

    /// Runs a COPY whose data comes from `data` or goes to `sink`, and prints what came of it.
    pub(super) fn copy(
        &mut self,
        statement: &str,
        data: &mut CopySource<'_>,
        sink: &mut dyn Write,
    ) -> Result<()> {
        let outcome = self.ask_with(statement, data, Some(sink))?;
        for said in outcome.said {
            self.print(said, statement)?;
        }
        if outcome.failed {
            bail!("nothing was copied");
        }
        Ok(())
    }

    fn ask_with(
        &mut self,
        statement: &str,
        data: &mut CopySource<'_>,
        mut sink: Option<&mut dyn Write>,
    ) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let out = &mut self.out;
        let mut written = Ok(());
        let mut copies_out = false;
        let result = self
            .connection
            .run(statement, data, &mut |said| match said {
                // Copied rows may be many: they are not kept.
                Said::CopyOut(bytes) => {
                    copies_out = sink.is_none();
                    if written.is_ok() {
                        written = match &mut sink {
                            Some(sink) => sink.write_all(&bytes).context("cannot write the data"),
                            None => out.write(&bytes),
                        };
                    }
                }
                // Behind the rows the tag would be one more.
                Said::Done(_) if std::mem::take(&mut copies_out) => {}
                said => {
                    outcome.failed |= matches!(said, Said::Failed(_));
                    outcome.said.push(said);
                }
            });
        written?;
        result.context("the connection is lost; the next statement opens another")?;
        Ok(outcome)
    }

    fn print(&mut self, said: Said, statement: &str) -> Result<()> {
        let is_plain = self.style.tuples_only && self.style.expanded == Expanded::Off;
        match said {
            Said::Rows(rows, tag) => {
                let columns = self.out.size().map(|size| size.columns);
                let mut text = rows.render(&self.style, columns);
                // INSERT ... RETURNING and the like: how many rows were changed.
                if !is_plain && !is_query_tag(&tag) {
                    text.push_str(&tag);
                    text.push('\n');
                }
                self.out.show(&text)?;
            }
            Said::Done(tag) if !is_plain => self.out.write(format!("{tag}\n").as_bytes())?,
            Said::Done(_) | Said::CopyOut(_) => {}
            Said::Notice(report) => self.report(&report, statement)?,
            Said::Failed(report) => {
                self.report(&report, statement)?;
                self.last_error = Some(report);
            }
        }
        Ok(())
    }

    fn report(&mut self, report: &Report, statement: &str) -> Result<()> {
        self.out.flush()?;
        self.errors.write_all(report.render(statement).as_bytes())?;
        Ok(())
    }

    fn command(&mut self, line: &str, text: &mut String, lines: &mut dyn Lines) -> Result<Next> {
        let result = match backslash::parse(line) {
            Ok(command) => self.run_command(command, text, lines),
            Err(error) => Err(anyhow::anyhow!(error)),
        };
        self.out.flush()?;
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

/// What a whole line of a person means.
enum Word {
    Quit,
    /// It has been answered.
    Done,
    /// Nothing special.
    None,
}

/// What is left of the typed text.
enum Typed {
    Quit,
    /// Where to read on, and what is open there.
    More(usize, Open),
}

/// The data lines of COPY FROM STDIN, up to `\.` or the end of the source.
struct CopyLines<'a> {
    lines: &'a mut dyn Lines,
    /// A person has been told how the data ends.
    is_announced: bool,
    problem: Option<anyhow::Error>,
}

impl CopyLines<'_> {
    fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        if !std::mem::replace(&mut self.is_announced, true) {
            // Standard error, because standard output is locked and may be a file.
            let help = "Enter rows, columns separated by tabs; \\. or Ctrl-D ends, Ctrl-C forgets.";
            // A terminal that is gone needs no help.
            let _ = writeln!(std::io::stderr(), "{help}");
        }
        match self.lines.next(DATA_PROMPT, "") {
            Ok(Line::Text(line)) if line == "\\." => Ok(None),
            Ok(Line::Text(mut line)) => {
                line.push('\n');
                Ok(Some(line.into_bytes()))
            }
            Ok(Line::End) => Ok(None),
            Ok(Line::Cancel) => Err("canceled by the user".into()),
            Err(error) => {
                let reason = format!("{error:#}");
                self.problem = Some(error);
                Err(reason)
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

    /// A person who gives up, or a source that cannot be read.
    struct Broken(Result<Line, &'static str>);

    impl Lines for Broken {
        fn next(&mut self, _prompt: &str, _before: &str) -> Result<Line> {
            match &self.0 {
                Ok(_) => Ok(Line::Cancel),
                Err(reason) => bail!(*reason),
            }
        }
    }

    #[test]
    fn data_that_ends_in_the_middle_is_not_copied() {
        for (answer, reason) in [
            (Ok(Line::Cancel), "canceled by the user"),
            (Err("disk on fire"), "disk on fire"),
        ] {
            let mut copied = CopyLines {
                lines: &mut Broken(answer),
                is_announced: true,
                problem: None,
            };
            assert_eq!(copied.next(), Err(reason.to_string()));
        }
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
            is_announced: true,
            problem: None,
        };
        let mut found = Vec::new();
        while let Ok(Some(line)) = copied.next() {
            found.extend(line);
        }
        assert_eq!(found, b"1\tann\n2\tbob\n");
        assert_eq!(
            stream.next("", "").expect("a text"),
            Line::Text("SELECT 1;".into())
        );
    }
}
