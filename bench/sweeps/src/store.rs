//! The folder of a sweep: `matrix.json` says whose it is, `cells/HASH.json` is a cell's result.
//!
//! A file is written beside its place, put on disk, and then renamed: a sweep that is killed leaves
//! whole files and at most one that ends in `.new`, which the next one removes.

use crate::cell::Cell;
use crate::file::Experiment;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The version of the layout.
const FORMAT: u32 = 1;
const BOOK: &str = "matrix.json";
const CELLS: &str = "cells";
/// Held by the sweep that writes here.
const LOCK: &str = "lock";
const UNFINISHED: &str = "new";

/// Why a folder cannot be used.
#[derive(Clone, Debug)]
pub struct StoreError(String);

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StoreError {}

fn cannot<E: fmt::Display>(doing: &str, path: &Path) -> impl Fn(E) -> StoreError {
    let what = format!("cannot {doing} {}", path.display());
    move |error| StoreError(format!("{what}: {error}"))
}

/// What became of a cell.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Why it failed; `None`: it did not.
    pub(crate) reason: Option<String>,
    pub(crate) took_s: f64,
    /// What the command said.
    pub(crate) result: Value,
}

impl Outcome {
    fn json(&self, name: &str, cell: &Cell) -> Value {
        json!({
            "format": FORMAT,
            "experiment": name,
            "cell": cell.json(),
            "arguments": cell.arguments(),
            "status": if self.reason.is_none() { "done" } else { "failed" },
            "reason": self.reason,
            "took_s": self.took_s,
            "release": env!("CARGO_PKG_VERSION"),
            "result": self.result,
        })
    }

    /// What a file says of this cell; `None`: it is no such file.
    fn of(value: &mut Value, cell: &Cell) -> Option<Outcome> {
        let is_ours = value["format"] == json!(FORMAT) && value["cell"] == cell.json();
        let reason = match value["status"].as_str().filter(|_| is_ours)? {
            "done" => None,
            "failed" => Some(value["reason"].as_str()?.to_owned()),
            _ => return None,
        };
        Some(Outcome {
            reason,
            took_s: value["took_s"].as_f64()?,
            result: value["result"].take(),
        })
    }
}

/// A folder that this process alone writes to.
pub(crate) struct Store {
    dir: PathBuf,
    name: String,
    _lock: File,
}

impl Store {
    /// Opens the folder of an experiment, or makes it.
    pub(crate) fn open(dir: &Path, experiment: &Experiment) -> Result<Store, StoreError> {
        let refuse = |why: String| {
            let text = format!("{}: {why}; --out names another folder", dir.display());
            Err(StoreError(text))
        };
        let book = dir.join(BOOK);
        match std::fs::read_to_string(&book) {
            Ok(text) => {
                let value: Value = serde_json::from_str(&text).map_err(cannot("read", &book))?;
                if value["format"] != json!(FORMAT) {
                    return refuse(format!("{BOOK} is of another release"));
                }
                if value["name"] != json!(experiment.name()) {
                    let name = &value["name"];
                    return refuse(format!("it holds the results of the experiment {name}"));
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let has_files = std::fs::read_dir(dir).is_ok_and(|mut it| it.next().is_some());
                if has_files {
                    return refuse("it holds files, and no results of a sweep".to_owned());
                }
            }
            Err(error) => return Err(cannot("read", &book)(error)),
        }
        let cells = dir.join(CELLS);
        std::fs::create_dir_all(&cells).map_err(cannot("create", &cells))?;
        let path = dir.join(LOCK);
        let lock = File::create(&path).map_err(cannot("write", &path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError(format!(
                    "{}: another sweep is writing there",
                    dir.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(cannot("lock", &path)(error)),
        }
        let store = Store {
            dir: dir.to_owned(),
            name: experiment.name().to_owned(),
            _lock: lock,
        };
        let (here, known) = (store.here()?, experiment.cells());
        if !here.is_empty() && known.iter().all(|cell| !here.contains(&cell.id())) {
            return refuse(format!(
                "its {} results are of other settings than this file has",
                here.len()
            ));
        }
        let text = json!({
            "format": FORMAT,
            "name": experiment.name(),
            "varied": experiment.varied(),
            "cells": known.len(),
            "order": experiment.order(),
        });
        store.write(BOOK, &text)?;
        Ok(store)
    }

    /// The hashes of all cells that have a file. What was not finished is removed.
    fn here(&self) -> Result<BTreeSet<String>, StoreError> {
        let cells = self.dir.join(CELLS);
        let mut here = BTreeSet::new();
        for entry in std::fs::read_dir(&cells).map_err(cannot("read", &cells))? {
            let path = entry.map_err(cannot("read", &cells))?.path();
            match path.extension().and_then(|it| it.to_str()) {
                Some(UNFINISHED) => {
                    std::fs::remove_file(&path).map_err(cannot("remove", &path))?;
                }
                Some("json") => {
                    let stem = path.file_stem().unwrap_or_default();
                    here.insert(stem.to_string_lossy().into_owned());
                }
                _ => {}
            }
        }
        Ok(here)
    }

    /// Results of cells that the file does not have any more.
    pub(crate) fn strangers(&self, cells: &[Cell]) -> Result<usize, StoreError> {
        let own: BTreeSet<String> = cells.iter().map(Cell::id).collect();
        Ok(self.here()?.difference(&own).count())
    }

    /// What became of a cell; `None`: it was not run, or its file is not one.
    pub(crate) fn read(&self, cell: &Cell) -> Option<Outcome> {
        let path = self.dir.join(place(cell));
        let text = std::fs::read_to_string(path).ok()?;
        let mut value: Value = serde_json::from_str(&text).ok()?;
        Outcome::of(&mut value, cell)
    }

    /// Keeps what became of a cell.
    pub(crate) fn keep(&self, cell: &Cell, outcome: &Outcome) -> Result<(), StoreError> {
        self.write(&place(cell), &outcome.json(&self.name, cell))
    }

    /// Replaces a file: after a crash it is the old or the new one.
    pub(crate) fn write(&self, name: &str, value: &Value) -> Result<(), StoreError> {
        let text = format!("{value:#}\n");
        self.write_text(name, &text)
    }

    /// The same with a text.
    pub(crate) fn write_text(&self, name: &str, text: &str) -> Result<(), StoreError> {
        let path = self.dir.join(name);
        let new = path.with_extension(UNFINISHED);
        let written = (|| {
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&new, &path)?;
            // The folder has the name.
            File::open(path.parent().unwrap_or(&self.dir))?.sync_all()
        })();
        written.map_err(cannot::<std::io::Error>("write", &path))
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}

fn place(cell: &Cell) -> String {
    format!("{CELLS}/{}.json", cell.id())
}
