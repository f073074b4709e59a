//! Rules of transactions have numbers, and the pages of `docs/rules` define them.
//!
//! A page defines a rule by a title such as `## L9 Wait-die holds in each queue`. Comments and
//! documents cite the number. Checked: each number that is cited is defined, once; each rule names
//! what guards it, and that exists; each document that a comment names is in the repository.

use super::Violation;
use crate::repo::SourceFile;
use std::collections::{BTreeMap, BTreeSet};

const FOLDER: &str = "docs/rules/";
/// Opens the list of tests, scripts and planted bugs of a rule.
const GUARDED: &str = "Guarded by:";
/// Where the names of planted bugs are.
const PLANTED: &str = "pure/base/src/planted.rs";

/// A rule, where it is defined.
struct Rule<'a> {
    page: &'a str,
    line: usize,
    /// What guards the rule, by name.
    guards: Vec<&'a str>,
}

/// Checks definitions, citations and names of documents.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Violation> {
    let mut found = Vec::new();
    let rules = defined(files, &mut found);
    let letters: BTreeSet<char> = rules
        .keys()
        .filter_map(|rule| rule.chars().next())
        .collect();
    let guards = Guards::of(files);
    for (number, rule) in &rules {
        if rule.guards.is_empty() {
            let message = format!("{number} does not say what guards it ({GUARDED} ...)");
            found.push(Violation::new(rule.page, rule.line, message));
        }
        for guard in rule.guards.iter().filter(|guard| !guards.has(guard)) {
            let message = format!("{number} is guarded by {guard}, which does not exist");
            found.push(Violation::new(rule.page, rule.line, message));
        }
    }
    for file in files
        .iter()
        .filter(|file| file.is_rust() || file.is_document())
    {
        for (line, text) in file.lines() {
            let Some(prose) = prose(file, text) else {
                continue;
            };
            for number in numbers(prose, &letters).filter(|number| !rules.contains_key(number)) {
                let message = format!("no page of {FOLDER} has a rule {number}");
                found.push(Violation::new(&file.path, line, message));
            }
            for name in documents(prose).filter(|name| !is_there(files, name)) {
                let message = format!("{name} is no document of the repository");
                found.push(Violation::new(&file.path, line, message));
            }
        }
    }
    found
}

/// All rules by their numbers. A number that is defined twice is a violation.
fn defined<'a>(files: &'a [SourceFile], found: &mut Vec<Violation>) -> BTreeMap<&'a str, Rule<'a>> {
    let mut rules = BTreeMap::new();
    for page in files.iter().filter(|file| file.path.starts_with(FOLDER)) {
        let mut current = None;
        let mut in_guards = false;
        for (line, text) in page.lines() {
            if let Some(title) = text.strip_prefix("## ") {
                current = title.split(' ').next().filter(|word| is_number(word));
                in_guards = false;
                let Some(number) = current else { continue };
                let rule = Rule {
                    page: &page.path,
                    line,
                    guards: Vec::new(),
                };
                if rules.insert(number, rule).is_some() {
                    let message = format!("{number} is defined twice");
                    found.push(Violation::new(&page.path, line, message));
                }
            }
            in_guards = !text.is_empty() && (in_guards || text.starts_with(GUARDED));
            if let Some(rule) = current.and_then(|number| rules.get_mut(number))
                && in_guards
            {
                rule.guards.extend(text.split('`').skip(1).step_by(2));
            }
        }
    }
    rules
}

/// What a rule may name as its guard.
struct Guards<'a> {
    functions: BTreeSet<&'a str>,
    scripts: BTreeSet<&'a str>,
    planted: BTreeSet<&'a str>,
}

impl<'a> Guards<'a> {
    fn of(files: &'a [SourceFile]) -> Guards<'a> {
        let mut guards = Guards {
            functions: BTreeSet::new(),
            scripts: BTreeSet::new(),
            planted: BTreeSet::new(),
        };
        for file in files {
            if file.path.contains("/testdata/") {
                guards.scripts.extend(file.path.rsplit('/').next());
            }
            if file.path == PLANTED {
                guards
                    .planted
                    .extend(file.text.split('"').skip(1).step_by(2));
            }
            if file.is_rust() {
                let named = file.text.split("fn ").skip(1);
                guards
                    .functions
                    .extend(named.filter_map(|rest| rest.split('(').next()));
            }
        }
        guards
    }

    fn has(&self, guard: &str) -> bool {
        let kind = match guard {
            script if script.ends_with(".txt") => &self.scripts,
            bug if bug.contains('-') => &self.planted,
            _ => &self.functions,
        };
        kind.contains(guard)
    }
}

/// The part of a line that a person reads: of code, the comment.
fn prose<'a>(file: &SourceFile, line: &'a str) -> Option<&'a str> {
    if !file.is_rust() {
        return Some(line);
    }
    let opens = |(at, _): &(usize, &str)| !line[..*at].ends_with(':');
    let (at, _) = line.match_indices("//").find(opens)?;
    Some(&line[at + 2..])
}

fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix(|c: char| c.is_ascii_uppercase());
    digits.is_some_and(|digits| {
        (1..=2).contains(&digits.len()) && digits.chars().all(|c| c.is_ascii_digit())
    })
}

/// Numbers of rules with one of these letters.
fn numbers<'a>(text: &'a str, letters: &BTreeSet<char>) -> impl Iterator<Item = &'a str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| is_number(word) && word.starts_with(|c| letters.contains(&c)))
}

/// Names of documents, links and web addresses aside.
fn documents(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || "_-./:".contains(c)))
        .map(|word| word.trim_end_matches(['.', ':']))
        .filter(|word| word.ends_with(".md") && !word.contains(':') && !word.starts_with(".md"))
}

/// Whether a file has this path, or a path that ends with this name.
fn is_there(files: &[SourceFile], name: &str) -> bool {
    let name = name.trim_start_matches("../").trim_start_matches("./");
    files.iter().any(|file| {
        let before = file.path.strip_suffix(name);
        before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a comment beside a page that defines X1 and X2.
    fn check_comment(comment: &str) -> Vec<String> {
        let page = "# Rules\n\n## X1 One\n\nGuarded by: `it_holds`,\n`a-bug`.\n\n## X2 Two\n\n\
                    Why: `no_test`.\n\nGuarded by: `script.txt`. More: none.\n";
        let files = [
            SourceFile::new("docs/rules/page.md", page),
            SourceFile::new(
                "a/src/lib.rs",
                &format!("let x2 = X3; // {comment}\nfn it_holds() {{}}\n"),
            ),
            SourceFile::new("a/testdata/script.txt", ""),
            SourceFile::new(PLANTED, "Bug = \"a-bug\","),
        ];
        check(&files)
            .into_iter()
            .map(|violation| violation.to_string())
            .collect()
    }

    #[test]
    fn a_citation_needs_its_rule() {
        assert_eq!(
            check_comment("rules X1 and X2, see page.md and docs/rules/page.md."),
            [""; 0]
        );
        assert_eq!(
            check_comment("Y7 is of no letter, X100 and aX9 are no numbers"),
            [""; 0]
        );
        let found = check_comment("(X3)");
        assert_eq!(
            found,
            ["a/src/lib.rs:1: no page of docs/rules/ has a rule X3"]
        );
    }

    #[test]
    fn a_document_that_is_named_exists() {
        let found = check_comment("protocols.md, section 1");
        assert_eq!(
            found,
            ["a/src/lib.rs:1: protocols.md is no document of the repository"]
        );
        assert_eq!(check_comment("https://example.org/protocols.md"), [""; 0]);
    }

    #[test]
    fn a_rule_is_defined_once_and_guarded() {
        let page = "# Rules\n\n## X1 One\n\n## X1 Again\n\nGuarded by: `gone`.\n";
        let found = check(&[SourceFile::new("docs/rules/page.md", page)]);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "docs/rules/page.md:5: X1 is defined twice",
                "docs/rules/page.md:5: X1 is guarded by gone, which does not exist"
            ]
        );
        let found = check(&[SourceFile::new(
            "docs/rules/page.md",
            "# Rules\n\n## X1 One\n",
        )]);
        assert!(found[0].message.contains("does not say what guards it"));
    }
}
