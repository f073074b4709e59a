//! What is wrong with a file, where, and what to do next.

use serde_json::{Value, json};
use std::fmt;

/// A mistake in the file of an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Name of the file as the user gave it, or of the template that has the mistake.
    pub file: String,
    /// Counted from 1; 0: it concerns the whole file.
    pub line: usize,
    /// Counted from 1 in characters; 0: not known.
    pub column: usize,
    /// Where in the document, such as `population.threads`; empty: not at a key.
    pub key: String,
    /// What is wrong.
    pub text: String,
    /// What to do next; empty: the text says it.
    pub next: String,
}

impl Mistake {
    /// A mistake that concerns a whole file.
    pub fn of_file(file: &str, text: impl Into<String>) -> Mistake {
        Mistake {
            file: file.to_owned(),
            line: 0,
            column: 0,
            key: String::new(),
            text: text.into(),
            next: String::new(),
        }
    }

    /// The same with the place in the document.
    pub(crate) fn at_key(mut self, key: &str) -> Mistake {
        key.clone_into(&mut self.key);
        self
    }

    /// The same with what to do next.
    pub(crate) fn next(mut self, next: impl Into<String>) -> Mistake {
        self.next = next.into();
        self
    }

    /// As the child process tells it.
    pub(crate) fn json(&self) -> Value {
        json!({
            "file": self.file, "line": self.line, "column": self.column, "key": self.key,
            "text": self.text, "next": self.next,
        })
    }

    /// What a child process told; `None`: it is no mistake.
    pub(crate) fn from_json(value: &Value) -> Option<Mistake> {
        let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
        let number = |key: &str| usize::try_from(value.get(key)?.as_u64()?).ok();
        Some(Mistake {
            file: text("file")?,
            line: number("line")?,
            column: number("column")?,
            key: text("key")?,
            text: text("text")?,
            next: text("next")?,
        })
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ", line {}", self.line)?;
        }
        if self.column > 0 {
            write!(f, ", column {}", self.column)?;
        }
        if !self.key.is_empty() {
            write!(f, ", key {}", self.key)?;
        }
        write!(f, ": {}", self.text)?;
        if !self.next.is_empty() {
            write!(f, "; {}", self.next)?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistake {}
