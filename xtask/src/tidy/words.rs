//! Words that say nothing, and marks of unfinished work.

use super::Violation;
use crate::repo::SourceFile;

/// Ends of names that say nothing, with a question that leads to a better one.
const EMPTY: &[(&str, &str)] = &[
    ("Manager", "what does it decide or own?"),
    ("Helper", "what does it do?"),
    ("Helpers", "what do they do?"),
    ("Util", "what does it do?"),
    ("Utils", "what do they do?"),
    ("Info", "what does it tell?"),
    ("Data", "what does it hold?"),
];
/// Marks of work that is not done. In pieces, or this file would break its own rule.
const MARKS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X "),
    concat!("HA", "CK"),
    concat!("unimpl", "emented!"),
];
/// Names of tests that are switched off.
const SWITCHED_OFF: &str = concat!("#[ign", "ore");
/// Words before a name that is ours to choose.
const DECLARATIONS: &[&str] = &["struct", "enum", "trait", "type", "union", "mod"];

/// Checks names that we declare, file names, and marks in code and documents.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files {
        let checked = [".rs", ".md", ".toml", ".py", ".java", ".sh", ".slt", ".txt"];
        if !checked.iter().any(|ending| file.path.ends_with(ending)) {
            continue;
        }
        let stem = file
            .path
            .rsplit('/')
            .next()
            .unwrap_or("")
            .split('.')
            .next()
            .unwrap_or("");
        if let Some(question) = empty(stem) {
            found.push(Violation::new(
                &file.path,
                0,
                format!("an empty name: {question}"),
            ));
        }
        for (number, line) in file.lines() {
            for mark in MARKS.iter().filter(|mark| has_mark(line, mark)) {
                let message = format!("unfinished work: {}", mark.trim());
                found.push(Violation::new(&file.path, number, message));
            }
            if !file.is_rust() {
                continue;
            }
            if line.trim_start().starts_with(SWITCHED_OFF) {
                let message = "a test is switched off: assert what happens today instead";
                found.push(Violation::new(&file.path, number, message));
            }
            if let Some((name, question)) = declared(line).and_then(|n| Some((n, empty(n)?))) {
                let message = format!("`{name}` is an empty name: {question}");
                found.push(Violation::new(&file.path, number, message));
            }
        }
    }
    found
}

/// The name that a line declares.
fn declared(line: &str) -> Option<&str> {
    let mut words = line
        .split_whitespace()
        .skip_while(|word| word.starts_with("pub"));
    let first = words.next()?;
    if !DECLARATIONS.contains(&first) {
        return None;
    }
    let name = words.next()?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
}

/// The question to ask about an empty name, in either spelling.
fn empty(name: &str) -> Option<&'static str> {
    let found = EMPTY.iter().find(|(word, _)| {
        let low = word.to_lowercase();
        name.ends_with(word) || name == low || name.ends_with(&format!("_{low}"))
    });
    found.map(|(_, question)| *question)
}

/// Whether the mark stands in a line, and not only as the beginning of a longer word.
fn has_mark(line: &str, mark: &str) -> bool {
    let is_word = mark.ends_with(|c: char| c.is_ascii_alphabetic());
    let mut behind = line
        .match_indices(mark)
        .map(|(at, _)| &line[at + mark.len()..]);
    behind.any(|rest| !(is_word && rest.starts_with(|c: char| c.is_ascii_alphabetic())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(path: &str, text: &str) -> Vec<Violation> {
        check(&[SourceFile::new(path, text)])
    }

    #[test]
    fn empty_names_are_found_where_they_are_declared() {
        assert_eq!(
            check_text("a.rs", "struct Ledger { info: u8 }\nuse x::LockManager;\n"),
            []
        );
        let found = check_text("a.rs", "\npub(crate) struct LockManager<T>(T);\n");
        assert_eq!((found.len(), found[0].line), (1, 2));
        assert_eq!(check_text("a.rs", "mod utils;\n").len(), 1);
        assert_eq!(check_text("src/row_data.rs", "").len(), 1);
        assert_eq!(
            check_text("src/metadata.rs", "enum ColumnDatabase {}\n"),
            []
        );
    }

    #[test]
    fn unfinished_work_is_found() {
        for mark in MARKS {
            assert_eq!(
                check_text("a.rs", &format!("// {mark} later\n"))[0].line,
                1,
                "{mark}"
            );
        }
        assert_eq!(
            check_text("a.rs", &format!("{SWITCHED_OFF}]\nfn x() {{}}\n")).len(),
            1
        );
    }
}
