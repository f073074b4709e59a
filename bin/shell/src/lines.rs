//! Where statements come from, line by line: a person at a terminal, a file, a text.

use crate::complete::{Offer, complete};
use crate::names::Source;
use anyhow::{Context, Result};
use links::url::Target;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Editor, Helper};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::BufRead;
use std::path::PathBuf;

pub(crate) const DATA_PROMPT: &str = "copy> ";

/// A source of lines.
pub(crate) trait Lines {
    /// The next line. `before` are the lines of the statement that it goes on with.
    ///
    /// # Errors
    /// The source cannot be read.
    fn next(&mut self, prompt: &str, before: &str) -> Result<Line>;

    /// Names of this database are completed from now on.
    fn connected(&mut self, _target: &Target) {}

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
    fn next(&mut self, _prompt: &str, _before: &str) -> Result<Line> {
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
    editor: Editor<Completion, FileHistory>,
    history: Option<PathBuf>,
    /// Lines that were pasted behind the one that was given.
    pasted: VecDeque<String>,
}

impl Terminal {
    /// Opens the terminal and the history `.trellis_history` in the home directory.
    pub(crate) fn open() -> Result<Terminal> {
        let config = Config::builder()
            .history_ignore_dups(true)?
            .completion_type(CompletionType::List)
            .build();
        let mut editor = Editor::with_config(config).context("cannot use the terminal")?;
        editor.set_helper(Some(Completion::default()));
        let history = std::env::home_dir().map(|home| home.join(".trellis_history"));
        if let Some(path) = history.as_deref().filter(|path| path.exists()) {
            // A history that cannot be read is missed, but no reason to refuse work.
            let _ = editor.load_history(path);
        }
        Ok(Terminal {
            editor,
            history,
            pasted: VecDeque::new(),
        })
    }
}

impl Lines for Terminal {
    fn next(&mut self, prompt: &str, before: &str) -> Result<Line> {
        if let Some(completion) = self.editor.helper_mut() {
            completion.before = before.to_string();
            completion.is_data = prompt == DATA_PROMPT;
        }
        if let Some(line) = self.pasted.pop_front() {
            return Ok(Line::Text(line));
        }
        match self.editor.readline(prompt) {
            // What was pasted may be several lines, and some of them data of a COPY.
            Ok(text) => {
                let mut lines = text.split('\n').map(String::from);
                let first = lines.next().unwrap_or_default();
                self.pasted = lines.collect();
                Ok(Line::Text(first))
            }
            Err(ReadlineError::Interrupted) => Ok(Line::Cancel),
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(error) => Err(error).context("cannot read from the terminal"),
        }
    }

    fn connected(&mut self, target: &Target) {
        if let Some(completion) = self.editor.helper_mut() {
            completion.source = RefCell::new(Source::new(target));
        }
    }

    fn remember(&mut self, statement: &str) {
        if self
            .editor
            .add_history_entry(statement)
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

/// What Tab does.
#[derive(Default)]
struct Completion {
    /// Earlier lines of the statement.
    before: String,
    /// The line is data, whose columns are separated by tabs.
    is_data: bool,
    source: RefCell<Source>,
    files: FilenameCompleter,
}

impl Completer for Completion {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        cursor: usize,
        context: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        if self.is_data {
            let tab = Pair {
                display: "\t".into(),
                replacement: "\t".into(),
            };
            return Ok((cursor, vec![tab]));
        }
        let mut source = self.source.borrow_mut();
        match complete(&self.before, line, cursor, source.names()) {
            Offer::Files => self.files.complete(line, cursor, context),
            Offer::Texts(at, texts) => {
                let pair = |text: String| Pair {
                    display: text.trim_end().to_string(),
                    replacement: text,
                };
                Ok((at, texts.into_iter().map(pair).collect()))
            }
        }
    }
}

impl Hinter for Completion {
    type Hint = String;
}

impl Highlighter for Completion {}

impl Validator for Completion {}

impl Helper for Completion {}
