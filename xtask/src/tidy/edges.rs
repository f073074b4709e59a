//! The table of dependencies between our crates: an edge that is not in it does not exist.

use super::Violation;
use super::metadata::Workspace;
use std::collections::{BTreeMap, BTreeSet};

/// The checked-in list. One line per crate: `name: uses... | dev: used by its tests...`.
pub(crate) const LIST: &str = "xtask/dependencies.txt";

/// Compares the crates with the list, both ways.
pub(crate) fn check(workspace: &Workspace, list: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let allowed = match parse(list) {
        Ok(allowed) => allowed,
        Err(line) => return vec![Violation::new(LIST, line, "expected `name: names...`")],
    };
    for (name, member) in &workspace.members {
        let Some(allowed) = allowed.get(name.as_str()) else {
            found.push(Violation::new(LIST, 0, format!("crate {name} is missing")));
            continue;
        };
        let ours = member
            .uses
            .iter()
            .filter(|(used, _)| workspace.members.contains_key(used));
        let used: BTreeSet<(&str, bool)> =
            ours.map(|(used, tests)| (used.as_str(), *tests)).collect();
        for (used, tests) in used.difference(allowed) {
            let how = if *tests { "in its tests" } else { "" };
            let message = format!("{name} may not use {used} {how}")
                .trim_end()
                .to_string();
            found.push(Violation::new(
                &format!("{}/Cargo.toml", member.folder),
                0,
                message,
            ));
        }
        for (unused, _) in allowed.difference(&used) {
            let message = format!("{name} does not use {unused}: strike it from the list");
            found.push(Violation::new(LIST, 0, message));
        }
    }
    for name in allowed
        .keys()
        .filter(|name| !workspace.members.contains_key(**name))
    {
        found.push(Violation::new(
            LIST,
            0,
            format!("no crate is called {name}"),
        ));
    }
    found
}

/// Crates that a crate uses, and whether only its tests do.
type Edges<'a> = BTreeSet<(&'a str, bool)>;

/// Allowed edges by crate; the number of the first wrong line otherwise.
fn parse(list: &str) -> Result<BTreeMap<&str, Edges<'_>>, usize> {
    let mut allowed = BTreeMap::new();
    for (index, line) in list.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, uses) = line.split_once(':').ok_or(index + 1)?;
        let (uses, tests) = uses.split_once("| dev:").unwrap_or((uses, ""));
        let edges = uses.split_whitespace().map(|used| (used, false));
        let edges = edges.chain(tests.split_whitespace().map(|used| (used, true)));
        if allowed.insert(name.trim(), edges.collect()).is_some() {
            return Err(index + 1);
        }
    }
    Ok(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::metadata::Member;

    fn workspace(uses: &[(&str, bool)]) -> Workspace {
        let uses = uses
            .iter()
            .map(|(name, tests)| (name.to_string(), *tests))
            .collect();
        let folder = String::from("pure/top");
        let mut workspace = Workspace::default();
        workspace
            .members
            .insert("top".into(), Member { folder, uses });
        workspace.members.insert("low".into(), Member::default());
        workspace
    }

    #[test]
    fn an_edge_must_be_in_the_list() {
        let list = "# why\nlow:\ntop: low\n";
        assert_eq!(
            check(&workspace(&[("low", false), ("serde", false)]), list),
            []
        );
        let found = check(&workspace(&[("low", false)]), "low:\ntop:\n");
        assert_eq!(
            found,
            [Violation::new(
                "pure/top/Cargo.toml",
                0,
                "top may not use low"
            )]
        );
        let found = check(&workspace(&[("low", true)]), "low:\ntop:\n");
        assert!(found[0].message.ends_with("in its tests"));
        assert_eq!(
            check(&workspace(&[("low", true)]), "low:\ntop: | dev: low\n"),
            []
        );
    }

    #[test]
    fn the_list_may_not_rot() {
        let found = check(&workspace(&[]), "low:\ntop: low\n");
        assert!(found[0].message.contains("strike it"));
        assert!(
            check(&workspace(&[]), "top:\n")[0]
                .message
                .contains("low is missing")
        );
        assert!(
            check(&workspace(&[]), "low:\ntop:\nold:\n")[0]
                .message
                .contains("old")
        );
        assert_eq!(check(&workspace(&[]), "low:\nnonsense\n")[0].line, 2);
    }
}
