//! Where statements come from, line by line: a person at a terminal, a file, a text.

use anyhow::{Context, Result};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use std::io::BufRead;
use std::path::PathBuf;

/// A source of lines.
pub(crate) trait Lines {
    /// The next line.
    ///
    /// # Errors
    /// The source cannot be read.
    fn next(&mut self, prompt: &str) -> Result<Line>;

    /// Keeps a statement for a later session.
    fn remember(&mut self, _statement: &str) {}

    /// Whether a person reads along.
    fn is_interactive(&self) -> bool {
        false
    }
}

/// What a source gave.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Line {
    /// A line without its end.
    Text(String),
    /// The person wants to begin anew: what was typed so far is void.
    Cancel,
    /// There are no more.
    End,
}

/// Lines of a file, a pipe or a text.
pub(crate) struct Stream<R>(pub(crate) R);

impl<R: BufRead> Lines for Stream<R> {
    fn next(&mut self, _prompt: &str) -> Result<Line> {
        let mut line = String::new();
        let count = self
            .0
            .read_line(&mut line)
            .context("cannot read the statements")?;
        if count == 0 {
            return Ok(Line::End);
        }
        line.truncate(line.trim_end_matches(['\n', '\r']).len());
        Ok(Line::Text(line))
    }
}

/// A person: line editing, and a history that outlives the session.
pub(crate) struct Terminal {
    editor: Editor<(), FileHistory>,
    history: Option<PathBuf>,
}

impl Terminal {
    /// Opens the terminal and the history `.trellis_history` in the home directory.
    pub(crate) fn open() -> Result<Terminal> {
        let config = Config::builder().history_ignore_dups(true)?.build();
        let mut editor = Editor::with_config(config).context("cannot use the terminal")?;
        let history = std::env::home_dir().map(|home| home.join(".trellis_history"));
        if let Some(path) = history.as_deref().filter(|path| path.exists()) {
            // A history that cannot be read is missed, but no reason to refuse work.
            let _ = editor.load_history(path);
        }
        Ok(Terminal { editor, history })
    }
}

impl Lines for Terminal {
    fn next(&mut self, prompt: &str) -> Result<Line> {
        match self.editor.readline(prompt) {
            Ok(line) => Ok(Line::Text(line)),
            Err(ReadlineError::Interrupted) => Ok(Line::Cancel),
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(error) => Err(error).context("cannot read from the terminal"),
        }
    }

    fn remember(&mut self, statement: &str) {
        let one_line = statement
            .lines()
            .map(str::trim)
            .collect::<Vec<_>>()
            .join(" ");
        if self
            .editor
            .add_history_entry(one_line)
            .is_ok_and(|added| added)
            && let Some(path) = &self.history
        {
            let _ = self.editor.append_history(path);
        }
    }

    fn is_interactive(&self) -> bool {
        true
    }
}
