//! `cargo xtask shared-lines`: how much of a workload of sessions its two halves share.
//!
//! In a folder of a workload `entities.rs` is the entity half, `sql.rs` the SQL half, and every
//! other file is shared. Empty lines, comments and tests do not count. The auction must share at
//! least 60 % of either program (table 2 of the Strudel paper).
//!
//! It counts the adapters of stores as well (table 1): in `bench/stores/src` a file or a folder
//! with all of its files is an adapter, but for what the adapters share. Clients of protocols
//! (`bench/links`) do not count: others have them from the makers of the stores. `tidy` keeps
//! these bounds.

use crate::repo::{self, SourceFile};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::path::Path;

/// The least share of the shared lines in either program of the auction, in percent.
const LEAST_PERCENT: usize = 60;
/// Where workloads are.
const FOLDER: &str = "bench/sessions/src";
/// The workload with a bound.
const BOUNDED: &str = "auction";

/// Where adapters of stores are, and the layer over key-value stores.
const STORES: &str = "bench/stores/src/";
const LAYER: &str = "bench/entity/src/kv/";
/// What is no adapter there: how a store is opened, described and judged, and what adapters share.
const NO_ADAPTERS: [&str; 11] = [
    "clock",
    "conformance",
    "crash",
    "grouped",
    "kv",
    "lib",
    "line",
    "mapping",
    "open",
    "spread",
    "sql",
];
/// The most lines of an adapter, and of the layer.
const ADAPTER_MAX: usize = 600;
const LAYER_MAX: usize = 2_000;

/// Lines of the adapters by name, and of the layer.
pub(crate) fn adapters(files: &[SourceFile]) -> (BTreeMap<&str, usize>, usize) {
    let (mut adapters, mut layer) = (BTreeMap::new(), 0);
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        if file.path.ends_with("/tests.rs") {
            continue;
        }
        if file.path.starts_with(LAYER) {
            layer += lines_of(&file.text);
        }
        let Some(path) = file.path.strip_prefix(STORES) else {
            continue;
        };
        let name = path.split(['/', '.']).next().unwrap_or(path);
        if !NO_ADAPTERS.contains(&name) {
            *adapters.entry(name).or_default() += lines_of(&file.text);
        }
    }
    (adapters, layer)
}

/// The adapters, and the layer, that have too many lines: name, lines, and the most.
pub(crate) fn too_long(files: &[SourceFile]) -> Vec<(String, usize, usize)> {
    let (adapters, layer) = adapters(files);
    let adapters = adapters.into_iter();
    let adapters = adapters.map(|(name, lines)| (format!("{STORES}{name}"), lines, ADAPTER_MAX));
    let all = adapters.chain([(LAYER.to_owned(), layer, LAYER_MAX)]);
    all.filter(|(_, lines, most)| lines > most).collect()
}

/// Lines of one workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    shared: usize,
    entities: usize,
    sql: usize,
}

impl Lines {
    /// The part of the shared lines in the program with this half, in percent.
    fn percent(self, half: usize) -> usize {
        100 * self.shared / (self.shared + half).max(1)
    }
}

/// Prints the table.
pub(crate) fn main(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "shared-lines takes no arguments");
    println!("workload   shared  entities   sql  of entities  of SQL");
    for (name, lines) in count(&repo::root().join(FOLDER))? {
        println!(
            "{name:<10} {:>6} {:>9} {:>5} {:>10} % {:>5} %",
            lines.shared,
            lines.entities,
            lines.sql,
            lines.percent(lines.entities),
            lines.percent(lines.sql)
        );
        if name == BOUNDED {
            let least = lines.percent(lines.entities.max(lines.sql));
            ensure!(
                least >= LEAST_PERCENT,
                "{name} shares {least} % of a program, and must share {LEAST_PERCENT} %"
            );
        }
    }
    let files = repo::files()?;
    let (adapters, layer) = adapters(&files);
    println!("\nadapter of a store    lines, at most {ADAPTER_MAX}");
    for (name, lines) in adapters {
        println!("{name:<20} {lines:>6}");
    }
    println!("the layer over key-value stores: {layer} lines, at most {LAYER_MAX}");
    if let Some((name, lines, most)) = too_long(&files).first() {
        bail!("{name} has {lines} lines, and may have {most}");
    }
    Ok(())
}

/// The workloads with two halves, by name.
fn count(folder: &Path) -> Result<Vec<(String, Lines)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).context("reading the folder of workloads")? {
        let path = entry?.path();
        if path.join("entities.rs").is_file() && path.join("sql.rs").is_file() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            found.push((name.into_owned(), count_one(&path)?));
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    ensure!(!found.is_empty(), "no workload has two halves");
    Ok(found)
}

fn count_one(folder: &Path) -> Result<Lines> {
    let mut lines = Lines::default();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.ends_with(".rs") || name == "tests.rs" {
            continue;
        }
        let counted = lines_of(&std::fs::read_to_string(&path)?);
        match &*name {
            "entities.rs" => lines.entities += counted,
            "sql.rs" => lines.sql += counted,
            _ => lines.shared += counted,
        }
    }
    Ok(lines)
}

/// Lines of code in front of the tests.
fn lines_of(text: &str) -> usize {
    let own = text.split("#[cfg(test)]").next().unwrap_or(text);
    let lines = own.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_tests_do_not_count() {
        let text = "//! About.\n\nuse a::b;\n// Why.\nfn f() {}\n#[cfg(test)]\nmod tests {}\n";
        assert_eq!(lines_of(text), 2);
    }

    #[test]
    fn an_adapter_is_a_file_or_a_folder_with_all_of_its_files() {
        let long = "fn f() {}\n".repeat(400);
        let files = [
            SourceFile::new("bench/stores/src/new/mod.rs", &long),
            SourceFile::new("bench/stores/src/new/part.rs", &long),
            SourceFile::new("bench/stores/src/new/tests.rs", &long),
            SourceFile::new("bench/stores/src/open.rs", &long.repeat(2)),
            SourceFile::new("bench/stores/src/other.rs", &long),
            SourceFile::new("bench/entity/src/kv/layer/mod.rs", &long),
        ];
        let (found, layer) = adapters(&files);
        assert_eq!(found, BTreeMap::from([("new", 800), ("other", 400)]));
        assert_eq!(layer, 400);
        let long = [(String::from("bench/stores/src/new"), 800, ADAPTER_MAX)];
        assert_eq!(too_long(&files), long);
    }

    #[test]
    fn the_auction_shares_most_lines() {
        main(&[]).expect("it shares enough");
    }
}
