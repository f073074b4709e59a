//! Size ratchets: what is too long may stay as long as it is, nothing else may become so.

use super::{Violation, text_of};
use crate::repo::{self, SourceFile};
use crate::shared_lines;
use anyhow::Result;
use std::collections::BTreeMap;

/// The checked-in ratchets: lines `kind place size reason...`.
const LIST: &str = "xtask/sizes.txt";
/// Lines of a file, its tests excluded.
const FILE_MAX: usize = 800;
/// Lines of a function.
const FUNCTION_MAX: usize = 70;
/// Lines of a crate, its tests excluded.
const CRATE_MAX: usize = 10_000;

const HEADER: &str = "\
# What is longer than the house allows. Sizes here only fall: `cargo xtask tidy` fails when one
# grows or a new one crosses its limit; `cargo xtask tidy --update` writes the sizes of today and
# strikes what fits again. Each has its reason after the size.
";

/// Sizes over their limit by (kind, place).
type Sizes = BTreeMap<(&'static str, String), usize>;

/// Compares today's sizes with the ratchets.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Violation> {
    let list = text_of(files, LIST).unwrap_or("");
    let ratchets = parse(list);
    let mut found = Vec::new();
    for ((kind, place), size) in measure(files) {
        let message = match ratchets.get(&(kind.to_string(), place.clone())) {
            None => format!("{kind} of {size} lines, the limit is {}", limit(kind)),
            Some((old, _)) if size > *old => format!("{kind} grew from {old} to {size} lines"),
            Some((_, "")) => format!("{kind} of {size} lines has no reason in {LIST}"),
            Some(_) => continue,
        };
        found.push(Violation::new(&place, 0, message));
    }
    for (place, lines, most) in shared_lines::too_long(files) {
        let message = format!("{lines} lines of code, and an adapter or its layer has {most}");
        found.push(Violation::new(&place, 0, message));
    }
    found
}

/// Writes today's sizes; reasons stay.
pub(crate) fn update(files: &[SourceFile]) -> Result<()> {
    let list = text_of(files, LIST).unwrap_or("");
    let ratchets = parse(list);
    let mut text = String::from(HEADER);
    for ((kind, place), size) in measure(files) {
        let key = (kind.to_string(), place);
        let reason = ratchets.get(&key).map_or("", |(_, reason)| reason);
        text.push_str(format!("{kind} {} {size} {reason}", key.1).trim_end());
        text.push('\n');
    }
    std::fs::write(repo::root().join(LIST), text)?;
    Ok(())
}

fn limit(kind: &str) -> usize {
    match kind {
        "file" => FILE_MAX,
        "function" => FUNCTION_MAX,
        _ => CRATE_MAX,
    }
}

fn parse(list: &str) -> BTreeMap<(String, String), (usize, &str)> {
    let mut ratchets = BTreeMap::new();
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        let mut parts = line.splitn(4, ' ');
        if let (Some(kind), Some(place), Some(size)) = (parts.next(), parts.next(), parts.next())
            && let Ok(size) = size.parse()
        {
            let reason = parts.next().unwrap_or("");
            ratchets.insert((kind.to_string(), place.to_string()), (size, reason));
        }
    }
    ratchets
}

/// Everything over its limit. Files of tests do not count.
fn measure(files: &[SourceFile]) -> Sizes {
    let mut sizes = Sizes::new();
    let mut crates: BTreeMap<&str, usize> = BTreeMap::new();
    for file in files
        .iter()
        .filter(|file| file.is_rust() && !is_test(&file.path))
    {
        let lines: Vec<&str> = file.text.lines().collect();
        let code = &lines[..tests_begin(&lines)];
        if code.len() > FILE_MAX {
            sizes.insert(("file", file.path.clone()), code.len());
        }
        if let Some((folder, _)) = file.path.split_once("/src/") {
            *crates.entry(folder).or_default() += code.len();
        }
        for (name, length) in functions(code) {
            if length > FUNCTION_MAX {
                sizes.insert(("function", format!("{}::{name}", file.path)), length);
            }
        }
    }
    for (folder, lines) in crates.into_iter().filter(|(_, lines)| *lines > CRATE_MAX) {
        sizes.insert(("crate", folder.to_string()), lines);
    }
    sizes
}

fn is_test(path: &str) -> bool {
    ["/tests/", "/examples/"]
        .iter()
        .any(|folder| path.contains(folder))
        || path.ends_with("/tests.rs")
}

/// The line where the tests at the end of a file begin.
fn tests_begin(lines: &[&str]) -> usize {
    let begin = lines.windows(2).position(|pair| {
        pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
    });
    begin.unwrap_or(lines.len())
}

/// Name and length of each function, from its `fn` to its closing brace. The code is formatted, so
/// the brace stands alone, as far right as the `fn` line begins.
fn functions<'a>(lines: &[&'a str]) -> Vec<(&'a str, usize)> {
    let mut list = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let indent = line.len() - line.trim_start().len();
        let body = lines[index..].iter().enumerate().skip(1);
        let mut close = body.filter(|(_, line)| {
            line.len() - line.trim_start().len() == indent && !line.trim().is_empty()
        });
        // A signature over several lines closes with `) -> X {`, `where`, or `{` first.
        let end = match line.ends_with('}') || line.ends_with(';') {
            true => 0,
            false => close
                .find(|(_, line)| matches!(line.trim(), "}") || line.trim_end().ends_with(';'))
                .map_or(0, |(end, _)| end),
        };
        list.push((name, end + 1));
    }
    list
}

/// The name that follows `fn`, if the line begins a function.
fn function_name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    loop {
        if let Some(name) = rest.strip_prefix("fn ") {
            return name
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .next();
        }
        let words = [
            "pub ",
            "const ",
            "async ",
            "unsafe ",
            "pub(crate) ",
            "pub(super) ",
        ];
        rest = words.iter().find_map(|word| rest.strip_prefix(word))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long_function(lines: usize) -> String {
        format!(
            "    pub(crate) fn long(\n        x: u8,\n    ) -> u8 {{\n{}    }}\n",
            "        x;\n".repeat(lines - 4)
        )
    }

    #[test]
    fn functions_are_measured_whole() {
        let text = format!(
            "trait T {{\n    fn none(&self);\n{}}}\nfn one() {{}}\n",
            long_function(71)
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(functions(&lines), [("none", 1), ("long", 71), ("one", 1)]);
    }

    #[test]
    fn a_long_function_is_found_unless_it_was_there() {
        let file = SourceFile::new("a/src/x.rs", &long_function(80));
        let found = check(std::slice::from_ref(&file));
        assert_eq!(found[0].place, "a/src/x.rs::long");
        let check_with = |list: &str| check(&[file.clone(), SourceFile::new(LIST, list)]);
        assert_eq!(check_with("function a/src/x.rs::long 80 one table"), []);
        assert!(
            check_with("function a/src/x.rs::long 79 one table")[0]
                .message
                .contains("grew")
        );
        let bare = check_with("function a/src/x.rs::long 80");
        assert!(bare[0].message.contains("has no reason"), "{bare:?}");
    }

    #[test]
    fn a_long_file_is_found_and_its_tests_do_not_count() {
        let text = "//! x\n".repeat(FILE_MAX);
        let tests = format!("{text}#[cfg(test)]\nmod tests {{\n}}\n");
        assert_eq!(check(&[SourceFile::new("a/src/x.rs", &tests)]), []);
        let long = format!("{text}//! x\n");
        assert_eq!(
            check(&[SourceFile::new("a/src/x.rs", &long)])[0].place,
            "a/src/x.rs"
        );
        assert_eq!(check(&[SourceFile::new("a/src/tests.rs", &long)]), []);
    }

    #[test]
    fn a_large_crate_is_found() {
        let names = (0..13).map(|n| format!("a/src/f{n}.rs"));
        let files: Vec<SourceFile> = names
            .map(|name| SourceFile::new(&name, &"//! x\n".repeat(FILE_MAX)))
            .collect();
        assert_eq!(check(&files)[0].place, "a");
    }
}
