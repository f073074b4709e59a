//! Dead files: a Rust file that no `mod` reaches is never compiled, and rots.

use super::Violation;
use crate::repo::SourceFile;
use std::collections::{BTreeMap, BTreeSet};

/// Finds Rust files that are neither the root of a crate nor declared by a module.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Violation> {
    let rust = files.iter().filter(|file| file.is_rust());
    let texts: BTreeMap<&str, &str> = rust
        .map(|file| (file.path.as_str(), file.text.as_str()))
        .collect();
    let mut reached: BTreeSet<String> = BTreeSet::new();
    let mut open: Vec<String> = texts
        .keys()
        .filter(|path| is_root(path))
        .map(|path| path.to_string())
        .collect();
    while let Some(path) = open.pop() {
        let Some(text) = texts.get(path.as_str()) else {
            continue;
        };
        if !reached.insert(path.clone()) {
            continue;
        }
        for name in declared(text) {
            open.extend(candidates(&path, name));
        }
    }
    let dead = texts.keys().filter(|path| !reached.contains(**path));
    dead.map(|path| Violation::new(path, 0, "no module declares this file"))
        .collect()
}

/// Files that cargo compiles by their place.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let Some((file, folders)) = parts.split_last() else {
        return false;
    };
    match folders.last() {
        Some(&"src") => *file == "lib.rs" || *file == "main.rs",
        Some(&"tests" | &"examples" | &"benches" | &"bin") => true,
        _ => *file == "build.rs" || *file == "main.rs" && in_folder(folders),
    }
}

/// `tests/NAME/main.rs` and its like.
fn in_folder(folders: &[&str]) -> bool {
    folders
        .iter()
        .rev()
        .nth(1)
        .is_some_and(|folder| ["tests", "examples"].contains(folder))
}

/// Names in lines `mod name;`, with any visibility.
fn declared(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let line = line.trim();
        let line = match line.strip_prefix("pub") {
            Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
            Some(rest) => rest.trim_start(),
            None => line,
        };
        line.strip_prefix("mod ")?.strip_suffix(';')
    })
}

/// Where the module `name` of the file `path` may be.
fn candidates(path: &str, name: &str) -> Vec<String> {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.trim_end_matches(".rs");
    let base = match is_root(path) || stem == "mod" {
        true => folder.to_string(),
        false => format!("{folder}/{stem}"),
    };
    vec![format!("{base}/{name}.rs"), format!("{base}/{name}/mod.rs")]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<SourceFile> = files
            .iter()
            .map(|(path, text)| SourceFile::new(path, text))
            .collect();
        check(&files)
            .into_iter()
            .map(|violation| violation.place)
            .collect()
    }

    #[test]
    fn modules_are_followed_and_a_dead_file_is_named() {
        let files = [
            ("a/src/lib.rs", "mod x;\npub(crate) mod y;\n"),
            ("a/src/x.rs", "mod deep;\n"),
            ("a/src/x/deep.rs", ""),
            ("a/src/y/mod.rs", "#[cfg(test)]\nmod tests;\n"),
            ("a/src/y/tests.rs", ""),
            ("a/src/old.rs", "mod older;\n"),
            ("a/src/old/older.rs", ""),
            ("a/tests/it.rs", "mod peer;\n"),
            ("a/tests/peer/mod.rs", ""),
            ("a/tests/big/main.rs", "mod part;\n"),
            ("a/tests/big/part.rs", ""),
        ];
        assert_eq!(dead(&files), ["a/src/old.rs", "a/src/old/older.rs"]);
    }
}
