//! Every field of a syntax tree is used or refused: where statements come in, no pattern over the
//! parser's types has a `..`, so that an upgrade of the parser adds no clause that is ignored.

use super::Violation;
use crate::repo::SourceFile;
use std::collections::BTreeSet;

/// The folders that read syntax trees.
const FOLDERS: [&str; 3] = [
    "pure/sql/bind/src/",
    "pure/sql/parse/src/",
    "pure/sql/plan/src/",
];

/// Finds patterns over types of `sqlparser::ast` with a rest.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Violation> {
    let inside = |file: &&SourceFile, folder: &str| {
        file.path.ends_with(".rs") && file.path.starts_with(folder)
    };
    let mut violations = Vec::new();
    for folder in FOLDERS {
        let read: Vec<_> = files.iter().filter(|file| inside(file, folder)).collect();
        if read.is_empty() {
            let message = "the folder is gone: name where its syntax trees are read";
            violations.push(Violation::new(folder, 0, message));
        }
        violations.extend(read.into_iter().flat_map(check_file));
    }
    violations
}

fn check_file(file: &SourceFile) -> Vec<Violation> {
    let names = imported(&file.text);
    let mut violations = Vec::new();
    for (start, open) in file.text.match_indices(['{', '(']) {
        let head = file.text[..start].trim_end();
        let path_start = head
            .rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
            .map_or(0, |at| at + 1);
        let first = head[path_start..].split("::").next().unwrap_or_default();
        let spaced = open == "(" && head.len() != start;
        let known = !first.is_empty() && names.contains(first);
        if !spaced && known && has_rest(&file.text[start..]) {
            let line = file.text[..start].lines().count().max(1);
            let message = format!(
                "`..` over fields of {}: use each field, or refuse it",
                &head[path_start..]
            );
            violations.push(Violation::new(&file.path, line, message));
        }
    }
    violations
}

/// The names under which a file knows types and modules of the syntax tree.
fn imported(text: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for (start, _) in text.match_indices("use sqlparser::ast") {
        let rest = &text[start..];
        let list = &rest[..rest.find(';').unwrap_or(rest.len())];
        let list = list.trim_start_matches("use sqlparser::");
        for item in list.split([',', '{', '}']) {
            let item = item.trim();
            let name = match item.split_once(" as ") {
                Some((_, alias)) => alias,
                None => item
                    .rsplit("::")
                    .find(|part| !part.is_empty())
                    .unwrap_or_default(),
            };
            names.insert(match name.trim() {
                "self" => "ast",
                other => other,
            });
        }
    }
    // Short names that a function gives itself: `use DataType as D;`.
    for (start, _) in text.match_indices(" as ") {
        let before = text[..start].rsplit([' ', '\n']).next().unwrap_or_default();
        let alias = text[start + 4..].split(';').next().unwrap_or_default();
        let used = text[..start - before.len()].trim_end().ends_with("use");
        if used && names.contains(before) {
            names.insert(alias.trim());
        }
    }
    names
}

/// Whether the group that starts here has a `..` of its own that is no range.
fn has_rest(text: &str) -> bool {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            '.' if depth == 1 && text[at..].starts_with("..") => {
                let before = text[..at].trim_end();
                let behind = text[at + 2..].trim_start();
                return before.ends_with([',', '{', '(']) && behind.starts_with([',', '}', ')']);
            }
            _ => {}
        }
        if depth == 0 {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(text: &str) -> usize {
        let file = SourceFile::new("pure/sql/bind/src/x.rs", text);
        let others = FOLDERS.map(|folder| SourceFile::new(&format!("{folder}lib.rs"), ""));
        check(&[&others[..], &[file]].concat()).len()
    }

    #[test]
    fn a_folder_that_moves_away_is_missed() {
        let one = SourceFile::new(&format!("{}lib.rs", FOLDERS[0]), "");
        assert_eq!(check(&[one]).len(), FOLDERS.len() - 1);
    }

    #[test]
    fn a_rest_in_a_pattern_is_found() {
        let uses = "use sqlparser::ast::{self, Expr as Ast, TableFactor};\n";
        for wrong in [
            "let ast::Select { from, .. } = select;",
            "match x { Ast::Cast {\n    expr,\n    ..\n} => 1 }",
            "matches!(x, TableFactor::Table { .. })",
            "matches!(x, Ast::Value(..))",
            "fn f() { use Ast as A;\n match x { A::Case { operand, .. } => 1 } }",
        ] {
            assert_eq!(check_text(&format!("{uses}{wrong}")), 1, "{wrong}");
        }
    }

    #[test]
    fn ranges_and_types_of_ours_are_not() {
        let uses = "use sqlparser::ast::{self, Expr as Ast};\n";
        for right in [
            "let ast::Select { from, into: _ } = select;",
            "matches!(x, Rel::Table { table, .. })",
            "Ast::Tuple(items[..2].to_vec())",
            "ast::Ident { value, ..other }",
            "for n in f(0..3) {}",
        ] {
            assert_eq!(check_text(&format!("{uses}{right}")), 0, "{right}");
        }
    }
}
