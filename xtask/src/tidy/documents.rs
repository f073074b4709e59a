//! Documents: one title each, a length and a width that are read, links that lead somewhere, no
//! machine paths.

use super::Violation;
use crate::repo::SourceFile;
use std::collections::BTreeSet;

/// Longest document in words: about four pages.
const WORDS_MAX: usize = 2_200;
/// Widest line in characters.
const COLUMNS_MAX: usize = 120;
/// Widest row of a table in characters: a row cannot be broken.
const ROW_COLUMNS_MAX: usize = 240;
/// Documents that may be longer: a changelog grows, tables have a row for each test or bug,
/// recorded queries are what clients sent.
const LONG: &[&str] = &[
    "CHANGELOG.md",
    "docs/isolation.md",
    "docs/planted.md",
    "test/sql/introspection/README.md",
];
/// Beginnings of paths that exist on one machine only. Written in pieces, or this file would break
/// its own rule.
const MACHINE_PATHS: &[&str] = &[
    concat!("/", "home/"),
    concat!("/", "Users/"),
    concat!("/", "root/"),
    concat!("/", "work/"),
    concat!("C:", "\\"),
];

/// Checks all documents, and all text files for machine paths.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Violation> {
    let known = known_paths(files);
    let mut found = Vec::new();
    for file in files {
        found.extend(check_paths(file));
        if file.is_document() {
            found.extend(check_document(file));
            found.extend(check_width(file));
            found.extend(check_links(file, &known));
        }
        if file.path == "README.md" && !file.text.contains(crate::ci::TEST_COMMAND) {
            let message = format!("names the test command: {}", crate::ci::TEST_COMMAND);
            found.push(Violation::new(&file.path, 0, message));
        }
    }
    found
}

/// Lines outside of code fences.
fn prose(file: &SourceFile) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    file.lines().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    })
}

fn check_document(file: &SourceFile) -> Vec<Violation> {
    let mut found = Vec::new();
    if !file.text.starts_with("# ") {
        found.push(Violation::new(
            &file.path,
            1,
            "a document opens with its title",
        ));
    }
    for (number, _) in prose(file)
        .filter(|(_, line)| line.starts_with("# "))
        .skip(1)
    {
        found.push(Violation::new(
            &file.path,
            number,
            "a document has one title",
        ));
    }
    let words = file.text.split_whitespace().count();
    if words > WORDS_MAX && !LONG.contains(&file.path.as_str()) {
        let message = format!("{words} words, more than four pages ({WORDS_MAX})");
        found.push(Violation::new(&file.path, 0, message));
    }
    found
}

/// Lines end where a reader of the text still sees them.
fn check_width(file: &SourceFile) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, line) in file.lines() {
        let row = line.trim_start().starts_with('|');
        let columns_max = if row { ROW_COLUMNS_MAX } else { COLUMNS_MAX };
        let columns = line.chars().count();
        if columns > columns_max {
            let message = format!("{columns} columns, more than {columns_max}");
            found.push(Violation::new(&file.path, number, message));
        }
    }
    found
}

fn known_paths(files: &[SourceFile]) -> BTreeSet<&str> {
    let mut known = BTreeSet::new();
    for file in files {
        let mut path = file.path.as_str();
        known.insert(path);
        while let Some((folder, _)) = path.rsplit_once('/') {
            known.insert(folder);
            path = folder;
        }
    }
    known
}

/// Links to files of the repository must lead to one.
fn check_links(file: &SourceFile, known: &BTreeSet<&str>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, line) in prose(file) {
        for target in line
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let target = target.split('#').next().unwrap_or("");
            if target.is_empty() || target.contains(':') {
                continue;
            }
            let path = resolve(&file.path, target);
            if !known.contains(path.as_str()) {
                let message = format!("the link leads nowhere: {target}");
                found.push(Violation::new(&file.path, number, message));
            }
        }
    }
    found
}

/// The path from the root that a link inside `from` means.
fn resolve(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn check_paths(file: &SourceFile) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, line) in file.lines() {
        for path in MACHINE_PATHS {
            let Some(at) = line.find(path) else { continue };
            // Inside of a longer path or a URL it is something else.
            let before = line[..at].chars().next_back();
            if !before.is_some_and(|c| c.is_alphanumeric() || "._-$}{*".contains(c)) {
                let message = format!("a path of one machine: {path}");
                found.push(Violation::new(&file.path, number, message));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(text: &str) -> Vec<Violation> {
        check(&[
            SourceFile::new("docs/a.md", text),
            SourceFile::new("docs/b.md", "# B\n"),
        ])
    }

    #[test]
    fn one_title_at_the_top() {
        assert_eq!(check_text("# A\n\n```\n# not a title\n```\n"), []);
        assert_eq!(check_text("A\n")[0].line, 1);
        assert_eq!(check_text("# A\n\n# B\n")[0].line, 3);
    }

    #[test]
    fn a_document_is_short() {
        let text = format!("# A\n{}", "word ".repeat(WORDS_MAX));
        assert!(check_text(&text)[0].message.contains("four pages"));
    }

    #[test]
    fn lines_are_narrow_and_rows_not_much_wider() {
        let line = |columns: usize| format!("# A\n{}\n", "\u{e9}".repeat(columns));
        assert_eq!(check_text(&line(COLUMNS_MAX)), []);
        assert_eq!(check_text(&line(COLUMNS_MAX + 1))[0].line, 2);
        let row = |columns: usize| format!("# A\n|{}\n", "e".repeat(columns - 1));
        assert_eq!(check_text(&row(ROW_COLUMNS_MAX)), []);
        assert_eq!(check_text(&row(ROW_COLUMNS_MAX + 1))[0].line, 2);
    }

    #[test]
    fn links_lead_to_files() {
        assert_eq!(
            check_text("# A\n[b](b.md) [c](../docs/b.md#x) [d](https://x.y)\n"),
            []
        );
        assert_eq!(check_text("# A\n\n[c](c.md)\n")[0].line, 3);
    }

    #[test]
    fn machine_paths_are_found() {
        let path = format!("see {}me/x", MACHINE_PATHS[0]);
        assert_eq!(check_text(&format!("# A\n{path}\n"))[0].line, 2);
        let url = format!("# A\nsee example.org{}me\n", MACHINE_PATHS[0]);
        assert_eq!(check_text(&url), []);
    }

    #[test]
    fn the_readme_names_the_test_command() {
        let found = check(&[SourceFile::new("README.md", "# Trellis\n")]);
        assert!(found[0].message.contains("cargo test"));
    }
}
