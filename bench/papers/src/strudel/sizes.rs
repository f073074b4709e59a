//! Tables 1 and 2: lines of code of stores and of workloads, counted in the sources.

use crate::figure::Figure;
use crate::repetition::Lab;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Lines, and types (structs, enums and traits).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    lines: usize,
    types: usize,
}

impl Size {
    /// Of a file: without comments, empty lines and its tests.
    fn of(text: &str) -> Size {
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
        lines.fold(Size::default(), |size, line| {
            let line_of_type = line.strip_prefix("pub ").unwrap_or(line);
            let line_of_type = line_of_type
                .strip_prefix("pub(crate) ")
                .or_else(|| line_of_type.strip_prefix("pub(super) "))
                .unwrap_or(line_of_type);
            let is_type = ["struct ", "enum ", "trait "]
                .iter()
                .any(|word| line_of_type.starts_with(word));
            Size {
                lines: size.lines + 1,
                types: size.types + usize::from(is_type),
            }
        })
    }

    fn plus(self, other: Size) -> Size {
        Size {
            lines: self.lines + other.lines,
            types: self.types + other.types,
        }
    }

    fn shown(self) -> String {
        format!("{} ({})", self.lines, self.types)
    }
}

/// The folder `bench` of the checkout in which the command runs.
fn bench() -> Result<PathBuf> {
    let here = std::env::current_dir()?;
    let mut folders = here.ancestors().map(|folder| folder.join("bench"));
    let found = folders.find(|bench| bench.join("stores/src/open.rs").is_file());
    found.context("it counts the sources: run it in a checkout of them")
}

/// The files of a folder, those below it under the name of their folder: name and size.
fn parts(folder: &Path) -> Result<BTreeMap<String, Size>> {
    let mut parts: BTreeMap<String, Size> = BTreeMap::new();
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default();
        let name = stem.to_string_lossy().into_owned();
        let size = match path.is_dir() {
            true => parts_sum(&path)?,
            false if path.extension().is_some_and(|it| it == "rs") => {
                Size::of(&std::fs::read_to_string(&path)?)
            }
            false => continue,
        };
        let part = parts.entry(name).or_default();
        *part = part.plus(size);
    }
    Ok(parts)
}

fn parts_sum(folder: &Path) -> Result<Size> {
    Ok(parts(folder)?
        .into_values()
        .fold(Size::default(), Size::plus))
}

/// What all stores share in `bench/stores`: not an adapter. `cargo xtask shared-lines` counts the
/// same way, and keeps the bounds.
const SHARED: [&str; 11] = [
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
/// The most lines of an adapter, and of the layer over key-value stores.
const ADAPTER_MAX: usize = 600;
const LAYER_MAX: usize = 2_000;

/// The size of what makes a store one of entities.
pub(super) fn table_1(lab: &mut Lab) -> Result<Figure> {
    let mut figure = Figure::new(
        "table1",
        "Table 1: sizes of the stores' components",
        "lines without comments, empty lines and tests, and the number of types in parentheses; \
         counted in the sources by this command"
            .to_owned(),
    );
    figure.columns(&[
        "component",
        "lines (types)",
        "in the paper: lines (classes)",
    ]);
    let bench = bench()?;
    let layer = parts_sum(&bench.join("entity/src/kv"))?;
    let stores = parts(&bench.join("stores/src"))?;
    let shared = stores
        .iter()
        .filter(|part| SHARED.contains(&part.0.as_str()));
    let shared = shared.fold(Size::default(), |sum, part| sum.plus(*part.1));
    let mut rows = vec![
        ("layer over key-value stores", layer, "TKVS 3130 (36)"),
        ("what stores share, judge and open", shared, "-"),
    ];
    let adapters: Vec<(&String, &Size)> = stores
        .iter()
        .filter(|part| !SHARED.contains(&part.0.as_str()))
        .collect();
    let named = |name: &str| match name {
        "tables" => "tables by SQL, both protocols".to_owned(),
        "routed" => "the same on several databases".to_owned(),
        "packed_sql" => "packed groups by SQL, both protocols".to_owned(),
        name => name.to_owned(),
    };
    let names: Vec<String> = adapters.iter().map(|(name, _)| named(name)).collect();
    for (name, (_, size)) in names.iter().zip(&adapters) {
        rows.push((name.as_str(), **size, "-"));
    }
    rows.push(("in the paper: HBase", Size::default(), "796 (6)"));
    rows.push((
        "in the paper: Omid, MongoDB, TokuMX",
        Size::default(),
        "454 (4), 680 (4), 507 (4)",
    ));
    for (name, size, paper) in rows {
        let own = match size.lines {
            0 => "-".to_owned(),
            _ => size.shown(),
        };
        figure
            .rows
            .push(vec![name.to_owned(), own, paper.to_owned()]);
    }
    let largest = adapters.iter().max_by_key(|(_, size)| size.lines);
    let (name, size) = largest.context("there are adapters")?;
    let text = format!(
        "the layer {}, the largest adapter ({name}) {}",
        layer.lines, size.lines
    );
    let is_met = layer.lines <= LAYER_MAX && size.lines <= ADAPTER_MAX;
    lab.expectations.judge_counted("9a", text, is_met);
    figure.text.push(
        "The paper's MySQL comes by JPA and has no component of its own. Here the SQL adapter is \
         ours, as are the clients of all protocols (bench/links), which the paper has from the \
         stores' makers and does not count; so they are not counted here."
            .to_owned(),
    );
    Ok(figure)
}

/// The parts of a workload: types of entities, what both halves share, and the halves.
fn workload(bench: &Path, name: &str) -> Result<[Size; 4]> {
    let files = parts(&bench.join("sessions/src").join(name))?;
    let mut sizes = [Size::default(); 4];
    for (file, size) in files {
        let at = match file.as_str() {
            "items" => 0,
            "entities" => 2,
            "sql" => 3,
            _ => 1,
        };
        sizes[at] = sizes[at].plus(size);
    }
    Ok(sizes)
}

/// The size of the workloads, shared and by half.
pub(super) fn table_2(lab: &mut Lab) -> Result<Figure> {
    let mut figure = Figure::new(
        "table2",
        "Table 2: sizes of the workloads' components",
        "lines and types as in table 1".to_owned(),
    );
    figure.columns(&["workload", "entities", "shared", "entity half", "SQL half"]);
    let bench = bench()?;
    let paper = [
        (
            "auction",
            "943 (9)",
            "202 (3) and 1346 (17)",
            "1090 (18)",
            "1043 (17)",
        ),
        (
            "micro",
            "681 (8)",
            "212 (4) and 1004 (19)",
            "931 (19)",
            "985 (19)",
        ),
    ];
    for (name, entities, shared, entity, sql) in paper {
        let sizes = workload(&bench, name)?;
        let mut row = vec![name.to_owned()];
        row.extend(sizes.map(Size::shown));
        figure.rows.push(row);
        let told = [entities, shared, entity, sql].map(str::to_owned);
        let mut row = vec![format!("{name}, in the paper")];
        row.extend(told);
        figure.rows.push(row);
        if name == "auction" {
            let own = sizes[0].lines + sizes[1].lines;
            let share = |half: Size| 100.0 * own as f64 / (own + half.lines).max(1) as f64;
            let shares = [share(sizes[2]), share(sizes[3])];
            let text = format!("{:.0} % and {:.0} %", shares[0], shares[1]);
            let is_met = shares.iter().all(|share| *share >= 60.0);
            lab.expectations.judge_counted("9b", text, is_met);
        }
    }
    figure.text.push(
        "The paper tells parameters and base classes apart; both are in \u{201c}shared\u{201d}. \
         Tables of transitions are data in either."
            .to_owned(),
    );
    Ok(figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_tests_are_no_lines() {
        let text =
            "//! about\n\npub struct A;\n    // no\n    fn f() {}\n#[cfg(test)]\nmod tests {}";
        assert_eq!(Size::of(text), Size { lines: 2, types: 1 });
    }

    #[test]
    fn the_sources_are_found_and_told_apart() {
        let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for name in ["auction", "micro"] {
            let sizes = workload(&bench, name).expect("they are there");
            assert!(
                sizes.iter().all(|size| size.lines > 50),
                "{name}: {sizes:?}"
            );
        }
        let stores = parts(&bench.join("stores/src")).expect("they are there");
        assert!(SHARED.iter().all(|name| stores.contains_key(*name)));
        assert!(stores["redis"].lines > 100 && stores["redis"].types > 1);
    }
}
