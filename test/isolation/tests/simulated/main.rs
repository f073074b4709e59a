//! The scripts in the simulator: under each protocol, on one shard and on three nodes with two
//! shards each.
//!
//! `UPDATE=1` records what is seen now, `SCRIPT=name` runs one script only. Nothing that a level
//! forbids is ever accepted. The published table is checked as well.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod cluster;

use catalog::ProtocolKind;
use cluster::{Cluster, Size};
use isolation::{Level, Spec, suite, table};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    PathBuf::from("specs")
}

/// All scripts with the names of their files.
fn scripts() -> Vec<(String, Spec)> {
    let mut scripts = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let spec = Spec::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        scripts.push((name, spec));
    }
    scripts.sort_by(|(one, _), (other, _)| one.cmp(other));
    assert!(scripts.len() > 40, "all scripts are there");
    scripts
}

fn is_update() -> bool {
    std::env::var_os("UPDATE").is_some()
}

fn run(size: Size) {
    let only = std::env::var("SCRIPT").ok();
    let mut wrong = Vec::new();
    let mut interleavings = 0;
    for (name, spec) in scripts() {
        if only.as_ref().is_some_and(|only| *only != name) {
            continue;
        }
        let script = spec.clone();
        let outcome = sim::alone(&size.plan(), move |cx| {
            Box::pin(async move {
                let mut cluster = Cluster::new(cx, size);
                suite::run(&mut cluster, &script, &Level::ALL).await
            })
        });
        let outcome = outcome.unwrap_or_else(|stuck| panic!("{name}: {stuck}"));
        let outcome = outcome.unwrap_or_else(|broken| panic!("{name}: {broken}"));
        interleavings += outcome.interleavings;
        wrong.extend(
            outcome
                .faults
                .iter()
                .map(|fault| format!("{name}: {fault}")),
        );
        if is_update() {
            // Another test may have written its own records meanwhile.
            let path = folder().join(format!("{name}.spec"));
            let mut newest = Spec::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let own = outcome.updated.records.0.into_iter();
            newest
                .records
                .0
                .extend(own.filter(|(key, _)| key.system == size.name()));
            std::fs::write(path, newest.file()).unwrap();
        } else {
            let told = outcome
                .differences
                .iter()
                .map(|told| format!("{name}: {told}"));
            wrong.extend(told);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(interleavings > 0, "something ran");
}

#[test]
fn two_phase_on_one_shard() {
    run(Size {
        protocol: ProtocolKind::TwoPhase,
        nodes: 1,
        shards: 1,
    });
}

#[test]
fn two_phase_on_three_nodes() {
    run(Size {
        protocol: ProtocolKind::TwoPhase,
        nodes: 3,
        shards: 2,
    });
}

#[test]
fn leap_on_one_shard() {
    run(Size {
        protocol: ProtocolKind::Leap,
        nodes: 1,
        shards: 1,
    });
}

#[test]
fn leap_on_three_nodes() {
    run(Size {
        protocol: ProtocolKind::Leap,
        nodes: 3,
        shards: 2,
    });
}

#[test]
fn formula_on_one_shard() {
    run(Size {
        protocol: ProtocolKind::Formula,
        nodes: 1,
        shards: 1,
    });
}

#[test]
fn formula_on_three_nodes() {
    run(Size {
        protocol: ProtocolKind::Formula,
        nodes: 3,
        shards: 2,
    });
}

#[test]
fn the_published_table_is_what_is_recorded() {
    let path = Path::new("../../docs/isolation.md");
    let now = table::document(&scripts());
    if is_update() {
        std::fs::write(path, &now).unwrap();
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        text == now,
        "docs/isolation.md is out of date: UPDATE=1 cargo test -p isolation"
    );
}
