//! Where results go: the screen, page by page if they are longer than it, or a file or program
//! that the user named.

use crate::interrupts::Interrupts;
use anyhow::{Context, Result, bail};
use rustyline::Editor;
use rustyline::history::FileHistory;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::process::{Child, Command, Stdio};

/// Pages long results if nothing else is said: quits if all fits, lets colours through, leaves the
/// text on the screen, and cuts wide lines (the arrow keys move sideways).
const PAGER: &str = "less";
const LESS: &str = "FRXS";

/// When results are paged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Paging {
    Off,
    /// Results that are longer or wider than the screen.
    On,
    Always,
}

/// Columns and rows of the screen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// The place where results go.
pub(crate) struct Output<'a> {
    stdout: &'a mut dyn Write,
    /// Asks for the size of the screen; `None` if nobody looks at one.
    screen: Option<Editor<(), FileHistory>>,
    sink: Option<Sink>,
    pub(crate) paging: Paging,
    interrupts: Interrupts,
}

enum Sink {
    File(BufWriter<File>),
    Program(Child),
}

impl<'a> Output<'a> {
    pub(crate) fn new(
        stdout: &'a mut dyn Write,
        has_screen: bool,
        interrupts: Interrupts,
    ) -> Output<'a> {
        Output {
            stdout,
            screen: has_screen.then(|| Editor::new().ok()).flatten(),
            sink: None,
            paging: Paging::On,
            interrupts,
        }
    }

    /// Size of the screen, if results go to one.
    pub(crate) fn size(&mut self) -> Option<Size> {
        if self.sink.is_some() {
            return None;
        }
        let (columns, rows) = self.screen.as_mut()?.dimensions()?;
        Some(Size {
            columns: usize::from(columns),
            rows: usize::from(rows),
        })
    }

    /// Sends what follows to `target`: a file, a program if it begins with `|`, the screen if it is
    /// empty. What went elsewhere before is complete then.
    ///
    /// # Errors
    /// The file cannot be made, or the program cannot be started or has failed.
    pub(crate) fn redirect(&mut self, target: &str) -> Result<()> {
        self.finish()?;
        self.stdout.flush()?;
        self.sink = match target.strip_prefix('|') {
            _ if target.is_empty() => None,
            Some(program) => {
                let child = shell(program).stdin(Stdio::piped()).spawn();
                let child = child.with_context(|| format!("cannot start {program}"))?;
                Some(Sink::Program(child))
            }
            None => {
                let file = File::create(target);
                let file = file.with_context(|| format!("cannot write {target}"))?;
                Some(Sink::File(BufWriter::new(file)))
            }
        };
        Ok(())
    }

    /// Closes what [`Output::redirect`] has opened.
    pub(crate) fn finish(&mut self) -> Result<()> {
        match self.sink.take() {
            None => {}
            Some(Sink::File(mut file)) => file.flush().context("cannot write the file")?,
            Some(Sink::Program(mut child)) => {
                drop(child.stdin.take());
                let status = child.wait()?;
                if !status.success() {
                    bail!("the program that took the output ended with {status}");
                }
            }
        }
        Ok(())
    }

    /// Prints a piece of a longer output, without pages.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let result = match &mut self.sink {
            None => self.stdout.write_all(bytes),
            Some(Sink::File(file)) => file.write_all(bytes),
            Some(Sink::Program(child)) => match &mut child.stdin {
                Some(stdin) => stdin.write_all(bytes),
                None => Ok(()),
            },
        };
        match result {
            // Who reads has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe && self.sink.is_some() => Ok(()),
            other => other.context("cannot print"),
        }
    }

    /// Prints a whole result, in pages if it is too large for the screen.
    pub(crate) fn show(&mut self, text: &str) -> Result<()> {
        let is_long = match (self.paging, self.size()) {
            (Paging::Off, _) | (_, None) => false,
            (Paging::Always, Some(_)) => true,
            (Paging::On, Some(size)) => exceeds(text, size),
        };
        if is_long && self.page(text)? {
            return Ok(());
        }
        self.write(text.as_bytes())
    }

    /// A line about what the client does; never into a file.
    pub(crate) fn say(&mut self, line: &str) -> Result<()> {
        writeln!(self.stdout, "{line}").context("cannot print")
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        match &mut self.sink {
            Some(Sink::File(file)) => file.flush()?,
            Some(Sink::Program(child)) => {
                // A program that has ended takes no more.
                let _ = child.stdin.as_mut().map_or(Ok(()), Write::flush);
            }
            None => {}
        }
        self.stdout.flush().context("cannot print")
    }

    /// Runs the user's pager on `text`; whether there is one.
    fn page(&mut self, text: &str) -> Result<bool> {
        let named = ["TRELLIS_PAGER", "PSQL_PAGER", "PAGER"]
            .iter()
            .find_map(|name| std::env::var(name).ok());
        let program = named.as_deref().unwrap_or(PAGER).trim();
        if program.is_empty() || program == "cat" {
            return Ok(false);
        }
        self.stdout.flush()?;
        let mut command = shell(program);
        command.stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", LESS);
        }
        // Ctrl-C is the pager's while it runs.
        self.interrupts.hold();
        let result = feed(&mut command, text.as_bytes());
        self.interrupts.release();
        result
    }
}

/// Runs a program on `bytes`; whether the shell found it.
fn feed(command: &mut Command, bytes: &[u8]) -> Result<bool> {
    const NOT_FOUND: i32 = 127;
    let mut child = command.spawn().context("cannot start the pager")?;
    if let Some(mut stdin) = child.stdin.take() {
        // A reader that stops early has seen enough.
        let _ = stdin.write_all(bytes);
    }
    Ok(child.wait()?.code() != Some(NOT_FOUND))
}

/// A command line for the shell.
pub(crate) fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    command
}

/// Whether `text` does not fit on the screen, with a line left for the prompt.
fn exceeds(text: &str, size: Size) -> bool {
    use unicode_width::UnicodeWidthStr;
    text.lines().count() >= size.rows || text.lines().any(|line| line.width() > size.columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_or_wide_results_are_paged() {
        let size = Size {
            columns: 10,
            rows: 3,
        };
        assert!(!exceeds("1234567890\n2\n", size));
        assert!(exceeds("12345678901\n", size));
        assert!(exceeds("1\n2\n3\n", size));
    }

    #[test]
    fn a_missing_pager_is_noticed() {
        let missing = feed(
            shell("no-such-pager 2>/dev/null").stdin(Stdio::piped()),
            b"x",
        );
        assert!(!missing.expect("the shell runs"));
        let reader = feed(shell("exec cat >/dev/null").stdin(Stdio::piped()), b"x");
        assert!(reader.expect("the shell runs"));
    }
}
