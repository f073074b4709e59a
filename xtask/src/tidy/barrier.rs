//! Panics are caught in one place: the barrier around parsing and planning.

use super::Violation;
use crate::repo::SourceFile;

/// The only file of the product that catches panics.
const PLACE: &str = "host/runtime/src/barrier.rs";
/// Folders of what ships. `test/` and `xtask/` are none.
const PRODUCT: &[&str] = &["pure/", "host/", "bench/", "bin/"];
/// What catches a panic. In pieces, or this file would break its own rule.
const CATCH: &str = concat!("catch_", "unwind(");

/// Checks that panics are caught there, once, and nowhere else.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut calls = 0;
    for file in files.iter().filter(|file| is_product(file)) {
        for (number, _) in file.lines().filter(|(_, line)| line.contains(CATCH)) {
            if file.path == PLACE {
                calls += 1;
            } else {
                let message = format!("a panic is caught; only {PLACE} may");
                found.push(Violation::new(&file.path, number, message));
            }
        }
    }
    if calls != 1 {
        let message = format!("it catches panics at one place, not at {calls}");
        found.push(Violation::new(PLACE, 0, message));
    }
    found
}

fn is_product(file: &SourceFile) -> bool {
    let ships = PRODUCT.iter().any(|folder| file.path.starts_with(folder));
    ships && file.is_rust() && !file.path.contains("/tests/") && !file.path.ends_with("/tests.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_texts(files: &[(&str, &str)]) -> Vec<Violation> {
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| SourceFile::new(path, text))
            .collect();
        check(&files)
    }

    #[test]
    fn one_place_catches_panics() {
        let call = format!("let result = std::panic::{CATCH}work);\n");
        let good = [(PLACE, &*call), ("pure/x/src/tests/random.rs", &*call)];
        assert_eq!(check_texts(&good), []);
        let other = check_texts(&[(PLACE, &call), ("pure/sql/plan/src/lib.rs", &call)]);
        assert_eq!((other.len(), other[0].line), (1, 1));
        let twice = format!("{call}{call}");
        assert_eq!(check_texts(&[(PLACE, &twice)]).len(), 1);
        assert_eq!(check_texts(&[("pure/sql/plan/src/lib.rs", "")]).len(), 1);
    }
}
