//! `cargo xtask tidy`: the rules of the house that the compiler cannot check.
//!
//! Each check is a pure function from the files (or from what cargo knows) to violations, and has a
//! test with a planted one.

mod attributes;
mod barrier;
mod documents;
mod edges;
mod externals;
mod fields;
mod limits;
mod metadata;
mod modules;
mod reviewed;
mod rules;
mod sizes;
mod words;

use crate::repo::{self, SourceFile};
use anyhow::{Context, Result, bail};
use metadata::Workspace;
use std::fmt;

/// One broken rule.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Violation {
    /// File, or crate, that breaks the rule.
    place: String,
    /// Line from 1; 0 for the whole file.
    line: usize,
    message: String,
}

impl Violation {
    fn new(place: &str, line: usize, message: impl Into<String>) -> Violation {
        Violation {
            place: place.to_string(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.place, self.message),
            line => write!(f, "{}:{line}: {}", self.place, self.message),
        }
    }
}

/// Runs the command.
pub(crate) fn main(args: &[String]) -> Result<()> {
    match args {
        [] => check(),
        [flag] if flag == "--update" => sizes::update(&repo::files()?),
        [flag, document] if flag == "--reviewed" => reviewed::record(&repo::files()?, document),
        _ => bail!("usage: cargo xtask tidy [--update | --reviewed DOCUMENT]"),
    }
}

/// Checks everything and prints what is wrong, and all exceptions that are in force.
pub(crate) fn check() -> Result<()> {
    let files = repo::files()?;
    let workspace = Workspace::load()?;
    let mut found = Vec::new();
    found.extend(attributes::check(&files));
    found.extend(barrier::check(&files));
    found.extend(documents::check(&files));
    found.extend(edges::check(&workspace, text_of(&files, edges::LIST)?));
    found.extend(externals::check(&workspace, &files));
    found.extend(fields::check(&files));
    found.extend(limits::check(&files));
    found.extend(modules::check(&files));
    found.extend(reviewed::check(&files));
    found.extend(rules::check(&files));
    found.extend(sizes::check(&files));
    found.extend(words::check(&files));
    found.sort();
    for exception in attributes::exceptions(&files) {
        println!("exception: {exception}");
    }
    for violation in &found {
        println!("{violation}");
    }
    if found.is_empty() {
        println!("tidy: {} files, nothing to complain about", files.len());
        return Ok(());
    }
    bail!("{} rules are broken", found.len())
}

/// The text of one file of the repository.
fn text_of<'a>(files: &'a [SourceFile], path: &str) -> Result<&'a str> {
    let file = files.iter().find(|file| file.path == path);
    Ok(&file.with_context(|| format!("{path} is missing"))?.text)
}
