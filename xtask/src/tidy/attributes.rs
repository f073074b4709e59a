//! File docs, line lengths, crate attributes, and exceptions from lints with their reasons.

use super::Violation;
use crate::repo::SourceFile;

/// Longest line of a Rust file in characters.
const LINE_MAX: usize = 100;
/// Crates of `pure/` that need std, by the folders they are in: floats and the parser's library.
const WITH_STD: &[&str] = &["pure/sql/", "pure/session/", "pure/node/", "pure/sim/"];

/// Checks each Rust file.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        if !file.text.starts_with("//! ") {
            found.push(Violation::new(
                &file.path,
                1,
                "a file opens with a `//!` doc",
            ));
        }
        for (number, line) in file.lines() {
            let length = line.chars().count();
            if length > LINE_MAX {
                let message = format!("{length} columns, the limit is {LINE_MAX}");
                found.push(Violation::new(&file.path, number, message));
            }
        }
        found.extend(check_reasons(file));
        if file.path.starts_with("pure/") && file.path.ends_with("/src/lib.rs") {
            found.extend(check_pure(file));
        }
    }
    found
}

/// The attributes that make a crate of `pure/` pure.
fn check_pure(file: &SourceFile) -> Vec<Violation> {
    let mut wanted = vec!["#![forbid(unsafe_code)]", "#![warn(missing_docs)]"];
    if !WITH_STD.iter().any(|folder| file.path.starts_with(folder)) {
        wanted.push("#![cfg_attr(not(test), no_std)]");
    }
    let missing = wanted
        .into_iter()
        .filter(|attribute| !file.text.contains(attribute));
    missing
        .map(|attribute| Violation::new(&file.path, 0, format!("add {attribute}")))
        .collect()
}

/// Lint attributes of a file: line, text up to its closing bracket, and whether it has a reason.
fn lint_attributes(file: &SourceFile) -> Vec<(usize, String, bool)> {
    let lines: Vec<&str> = file.text.lines().collect();
    let mut attributes = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let start = line.trim_start();
        let openings = ["#[allow(", "#![allow(", "#[expect(", "#![expect("];
        if !openings.iter().any(|opening| start.starts_with(opening)) {
            continue;
        }
        let mut text = String::new();
        for line in &lines[index..] {
            text.push_str(line.trim());
            text.push(' ');
            if text.contains(")]") {
                break;
            }
        }
        let text = text.trim_end().to_string();
        let has_reason = text.contains("reason = \"");
        attributes.push((index + 1, text, has_reason));
    }
    attributes
}

/// An exception without a reason, or with `allow` where `expect` would notice that it is over.
/// `missing_docs` needs none: the names of fields and variants may say enough.
fn check_reasons(file: &SourceFile) -> Vec<Violation> {
    let attributes = lint_attributes(file).into_iter();
    let wrong = attributes
        .filter(|(_, text, has_reason)| !has_reason && !text.ends_with("allow(missing_docs)]"));
    let message = "an exception from a lint has a reason: #[expect(lint, reason = \"...\")]";
    wrong
        .map(|(line, ..)| Violation::new(&file.path, line, message))
        .collect()
}

/// All exceptions from lints that carry a reason, for the eyes of a reader.
pub(crate) fn exceptions(files: &[SourceFile]) -> Vec<String> {
    let mut list = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        for (line, text, has_reason) in lint_attributes(file) {
            if has_reason {
                list.push(format!("{}:{line}: {text}", file.path));
            }
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(path: &str, text: &str) -> Vec<Violation> {
        check(&[SourceFile::new(path, text)])
    }

    #[test]
    fn a_file_opens_with_its_doc() {
        assert_eq!(check_text("a.rs", "//! What it is.\nfn x() {}\n"), []);
        assert_eq!(check_text("a.rs", "fn x() {}\n")[0].line, 1);
        assert_eq!(check_text("a.md", "no Rust\n"), []);
    }

    #[test]
    fn a_long_line_is_seen_where_it_is() {
        let text = format!("//! Doc.\n// {}\n", "ä".repeat(97));
        assert_eq!(check_text("a.rs", &text), []);
        let text = format!("//! Doc.\n// {}\n", "x".repeat(98));
        assert_eq!(check_text("a.rs", &text)[0].line, 2);
    }

    #[test]
    fn an_exception_needs_a_reason() {
        let good = "//! Doc.\n#[expect(\n    dead_code,\n    reason = \"kept\"\n)]\nfn x() {}\n";
        assert_eq!(check_text("a.rs", good), []);
        assert_eq!(exceptions(&[SourceFile::new("a.rs", good)]).len(), 1);
        let bad = "//! Doc.\n#[allow(dead_code)]\nfn x() {}\n";
        assert_eq!(check_text("a.rs", bad)[0].line, 2);
    }

    #[test]
    fn pure_crates_carry_their_attributes() {
        let text = "//! Doc.\n#![forbid(unsafe_code)]\n#![warn(missing_docs)]\n";
        assert_eq!(check_text("pure/sql/expr/src/lib.rs", text), []);
        let found = check_text("pure/store/src/lib.rs", text);
        assert!(found[0].message.contains("no_std"));
        assert_eq!(check_text("host/x/src/lib.rs", "//! Doc.\n"), []);
    }
}
