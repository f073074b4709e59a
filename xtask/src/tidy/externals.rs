//! Crates of others: every direct one is explained, all have a fitting licence and a known source.

use super::Violation;
use super::metadata::Workspace;
use crate::repo::SourceFile;
use std::collections::{BTreeMap, BTreeSet};

/// Where each direct dependency has its row: name, purpose, alternatives.
const DOCUMENT: &str = "docs/dependencies.md";
/// Most crates of others that one crate of `pure/` may name.
const PURE_MAX: usize = 4;
/// Licences that let Trellis be given away under its own.
const LICENCES: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates that the build must not need, with the reason: it takes the registry and a C compiler.
const BANNED: &[(&str, &str)] = &[
    (
        "openssl-sys",
        "needs a library of the system; rustls does not",
    ),
    (
        "native-tls",
        "needs a library of the system; rustls does not",
    ),
    ("bindgen", "needs libclang"),
    ("cmake", "needs a program that the registry does not have"),
    ("pkg-config", "looks for libraries of the system"),
];

/// Checks the document against the crates, and the crates against the rules.
pub(crate) fn check(workspace: &Workspace, files: &[SourceFile]) -> Vec<Violation> {
    let mut found = Vec::new();
    let document = files.iter().find(|file| file.path == DOCUMENT);
    let rows = document.map(rows).unwrap_or_default();
    let mut used = BTreeSet::new();
    for (name, member) in &workspace.members {
        let externals = member
            .uses
            .iter()
            .filter(|(used, _)| !workspace.members.contains_key(used));
        let externals: BTreeSet<&str> = externals.map(|(used, _)| used.as_str()).collect();
        if member.folder.starts_with("pure/") {
            if externals.len() > PURE_MAX {
                let message = format!("{name} names {} crates of others", externals.len());
                found.push(Violation::new(&member.folder, 0, message));
            }
            for external in externals
                .iter()
                .filter(|external| !decided(files, external))
            {
                let message = format!("no decision in docs/adr names `{external}`");
                found.push(Violation::new(&member.folder, 0, message));
            }
        }
        used.extend(externals);
    }
    for name in used.iter().filter(|name| !rows.contains_key(**name)) {
        found.push(Violation::new(DOCUMENT, 0, format!("`{name}` has no row")));
    }
    for (name, (line, cells)) in &rows {
        if !used.contains(name) {
            found.push(Violation::new(
                DOCUMENT,
                *line,
                format!("nothing uses `{name}`"),
            ));
        }
        if cells.len() < 3 || cells.iter().any(|cell| cell.len() < 10) {
            let message = format!("`{name}` needs where, what for, and what was considered");
            found.push(Violation::new(DOCUMENT, *line, message));
        }
    }
    found.extend(check_origins(workspace));
    found
}

/// Rows of the document by crate: line, and the cells after the name. The first cell is short by
/// nature (where it is used), so its length is padded.
fn rows(document: &SourceFile) -> BTreeMap<&str, (usize, Vec<String>)> {
    let mut rows = BTreeMap::new();
    for (number, line) in document.lines() {
        let Some(rest) = line.strip_prefix("| `") else {
            continue;
        };
        let Some((name, cells)) = rest.split_once("` |") else {
            continue;
        };
        let cells = cells.trim().trim_end_matches('|').split(" | ");
        let cells = cells.enumerate().map(|(index, cell)| match index {
            0 => format!("used by {}", cell.trim()),
            _ => cell.trim().to_string(),
        });
        rows.insert(name, (number, cells.collect()));
    }
    rows
}

/// Whether a decision names the crate.
fn decided(files: &[SourceFile], name: &str) -> bool {
    let quoted = format!("`{name}`");
    let mut decisions = files
        .iter()
        .filter(|file| file.path.starts_with("docs/adr/"));
    decisions.any(|file| file.text.contains(&quoted))
}

fn check_origins(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for external in &workspace.externals {
        if !external.source.starts_with("registry+") {
            let message = format!("comes from {:?}, not from the registry", external.source);
            found.push(Violation::new(&external.name, 0, message));
        }
        if let Some((_, why)) = BANNED.iter().find(|(name, _)| *name == external.name) {
            let message = format!("`{}` is banned: it {why}", external.name);
            found.push(Violation::new(&external.name, 0, message));
        }
        if !fits(&external.licence) {
            let message = format!("licence {:?} is not in our list", external.licence);
            found.push(Violation::new(&external.name, 0, message));
        }
    }
    found
}

/// Whether an SPDX expression can be met by our licences.
fn fits(licence: &str) -> bool {
    let licence = licence.replace('/', " OR ");
    let alternatives = licence.split(" OR ");
    let mut met = alternatives.map(|alternative| {
        let parts = alternative.split(" AND ");
        parts
            .map(|part| part.trim().trim_matches(['(', ')']))
            .all(|part| LICENCES.contains(&part))
    });
    met.any(|met| met)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::metadata::{External, Member};

    fn workspace(folder: &str) -> Workspace {
        let mut workspace = Workspace::default();
        let uses = vec![("serde".to_string(), false)];
        workspace.members.insert(
            "top".into(),
            Member {
                folder: folder.into(),
                uses,
            },
        );
        workspace
    }

    fn row(text: &str) -> SourceFile {
        SourceFile::new(DOCUMENT, text)
    }

    #[test]
    fn every_direct_dependency_has_a_row_with_reason_and_alternatives() {
        let good = row("| `serde` | all | encodes everything | by hand: too long |");
        assert_eq!(
            check(&workspace("host/top"), std::slice::from_ref(&good)),
            []
        );
        let found = check(&workspace("host/top"), &[]);
        assert_eq!(found, [Violation::new(DOCUMENT, 0, "`serde` has no row")]);
        let found = check(&workspace("host/top"), &[row("| `serde` | all | short |")]);
        assert!(found[0].message.contains("what was considered"));
        let stale = row(&format!(
            "{}\n| `old` | all | was used once | nothing else |",
            good.text
        ));
        assert_eq!(check(&workspace("host/top"), &[stale])[0].line, 2);
    }

    #[test]
    fn pure_crates_need_a_decision() {
        let good = row("| `serde` | all | encodes everything | by hand: too long |");
        let found = check(&workspace("pure/top"), std::slice::from_ref(&good));
        assert!(found[0].message.contains("no decision"));
        let decision = SourceFile::new("docs/adr/0009-serde.md", "We use `serde`.");
        assert_eq!(check(&workspace("pure/top"), &[good, decision]), []);
    }

    #[test]
    fn licences_and_sources_are_checked() {
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR Apache-2.0) AND Zlib",
        ] {
            assert!(fits(good), "{good}");
        }
        for wrong in ["", "GPL-3.0", "MIT AND GPL-3.0"] {
            assert!(!fits(wrong), "{wrong}");
        }
        let mut workspace = Workspace::default();
        let source = "git+https://example.org/x".to_string();
        workspace.externals.push(External {
            name: "x".into(),
            licence: "MIT".into(),
            source,
        });
        assert!(
            check_origins(&workspace)[0]
                .message
                .contains("not from the registry")
        );
    }
}
