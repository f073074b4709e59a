//! The folder of an experiment's results.
//!
//! ```text
//! DIR/experiment.json           which runs there are, in their order
//! DIR/001-1f0c2d3e/resolved.json    the document of the run; it can be run again
//! DIR/001-1f0c2d3e/result.json      what came out; it stands there once the run has ended
//! ```
//!
//! A file is written beside its place, put on disk, and then renamed: a run that is killed leaves
//! no result, and is run again.

use crate::resolve::{Experiment, Resolved};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// The version of the layout.
const FORMAT: u32 = 1;
const BOOK: &str = "experiment.json";
const RESOLVED: &str = "resolved.json";
const RESULT: &str = "result.json";
const LOCK: &str = "lock";

/// Why a folder cannot be used.
#[derive(Clone, Debug)]
pub struct FolderError(pub(crate) String);

impl fmt::Display for FolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FolderError {}

fn cannot<E: fmt::Display>(doing: &str, path: &Path) -> impl Fn(E) -> FolderError {
    let what = format!("cannot {doing} {}", path.display());
    move |error| FolderError(format!("{what}: {error}"))
}

/// A run with its place in the folder.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Name of its folder.
    pub(crate) folder: String,
    /// Digest of its document.
    pub(crate) id: String,
}

/// What became of a run.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Why it failed; `None`: it did not.
    pub(crate) reason: Option<String>,
    pub(crate) took_s: f64,
    /// The run's document.
    pub(crate) document: Value,
    /// What the run measured; null where it failed.
    pub(crate) result: Value,
}

/// The folder, which this process alone writes to.
pub(crate) struct Folder {
    dir: PathBuf,
    places: Vec<Place>,
    _lock: File,
}

/// A run as words of its document.
fn id(run: &Resolved) -> String {
    let digest = Sha256::digest(run.text().as_bytes());
    let mut id = String::new();
    for byte in digest.iter().take(8) {
        let _ = write!(id, "{byte:02x}");
    }
    id
}

impl Folder {
    /// Opens the folder for the runs of an experiment, or makes it. With `resume` it may hold
    /// results of the same experiment.
    pub(crate) fn open(
        dir: &Path,
        experiment: &Experiment,
        resume: bool,
    ) -> Result<Folder, FolderError> {
        let refuse = |why: String| Err(FolderError(format!("{}: {why}", dir.display())));
        let name = experiment.name();
        match book(dir) {
            Ok(Some(book)) if book["name"] != json!(name) => {
                let (other, out) = (&book["name"], "--out names another folder");
                return refuse(format!(
                    "it holds the results of the experiment {other}; {out}"
                ));
            }
            Ok(Some(_)) if !resume => {
                let text = "it holds results; --resume keeps those of the runs that have ended, \
                            --out names another folder";
                return refuse(text.to_owned());
            }
            Ok(Some(_)) => {}
            Ok(None) => {
                let has_files = fs::read_dir(dir).is_ok_and(|mut it| it.next().is_some());
                if has_files {
                    let text = "it holds files, and no results of an experiment; --out names \
                                another folder";
                    return refuse(text.to_owned());
                }
            }
            Err(error) => return Err(error),
        }
        fs::create_dir_all(dir).map_err(cannot("create", dir))?;
        let path = dir.join(LOCK);
        let lock = File::create(&path).map_err(cannot("write", &path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return refuse(String::from("another experiment is writing there"));
            }
            Err(TryLockError::Error(error)) => return Err(cannot("lock", &path)(error)),
        }
        let places = places(experiment)?;
        let runs = places
            .iter()
            .map(|it| json!({ "folder": it.folder, "id": it.id }));
        let book = json!({
            "format": FORMAT,
            "name": name,
            "release": env!("CARGO_PKG_VERSION"),
            "runs": runs.collect::<Vec<Value>>(),
        });
        write(dir, BOOK, &format!("{book:#}\n"))?;
        Ok(Folder {
            dir: dir.to_owned(),
            places,
            _lock: lock,
        })
    }

    /// What became of a run; `None`: it is still to be run.
    pub(crate) fn ended(&self, run: usize) -> Option<Outcome> {
        outcome(&self.dir, &self.places[run])
    }

    /// Where the results of a run go.
    pub(crate) fn path_of(&self, run: usize) -> PathBuf {
        self.dir.join(&self.places[run].folder)
    }

    /// Keeps the document of a run that begins. What an earlier attempt left is removed.
    pub(crate) fn begin(&self, run: usize, document: &Resolved) -> Result<(), FolderError> {
        let dir = self.dir.join(&self.places[run].folder);
        fs::create_dir_all(&dir).map_err(cannot("create", &dir))?;
        let result = dir.join(RESULT);
        match fs::remove_file(&result) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(cannot("remove", &result)(error));
            }
            _ => {}
        }
        write(&dir, RESOLVED, &document.text())
    }

    /// Keeps what became of a run.
    pub(crate) fn end(&self, run: usize, outcome: &Outcome) -> Result<(), FolderError> {
        let place = &self.places[run];
        let value = json!({
            "format": FORMAT,
            "id": place.id,
            "status": if outcome.reason.is_none() { "done" } else { "failed" },
            "reason": outcome.reason,
            "took_s": outcome.took_s,
            "release": env!("CARGO_PKG_VERSION"),
            "document": outcome.document,
            "result": outcome.result,
        });
        // Histograms have a line for each number otherwise.
        write(&self.dir.join(&place.folder), RESULT, &format!("{value}\n"))
    }
}

/// Names of folders: number and digest.
fn places(experiment: &Experiment) -> Result<Vec<Place>, FolderError> {
    let mut known = BTreeMap::new();
    let mut places = Vec::new();
    for (at, run) in experiment.runs.iter().enumerate() {
        let id = id(run);
        if let Some(other) = known.insert(id.clone(), at) {
            let (one, two) = (other + 1, at + 1);
            let text =
                format!("runs {one} and {two} are the same; repetitions differ in their seed");
            return Err(FolderError(text));
        }
        let folder = format!("{:03}-{}", at + 1, &id[..8]);
        places.push(Place { folder, id });
    }
    Ok(places)
}

/// What a folder says of its experiment; `None`: it is no folder of results.
fn book(dir: &Path) -> Result<Option<Value>, FolderError> {
    let path = dir.join(BOOK);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot("read", &path)(error)),
    };
    let book: Value = serde_json::from_str(&text).map_err(cannot("read", &path))?;
    match book["format"] == json!(FORMAT) {
        true => Ok(Some(book)),
        false => Err(FolderError(format!(
            "{} is of another release",
            path.display()
        ))),
    }
}

/// What became of a run. The folder may have another number, since runs were put in front of it.
fn outcome(dir: &Path, place: &Place) -> Option<Outcome> {
    let own = dir.join(&place.folder);
    let end = format!("-{}", &place.id[..8]);
    let others = || {
        let entries = fs::read_dir(dir).ok()?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(&end)).collect();
        names.sort();
        names
            .into_iter()
            .find_map(|name| read_outcome(&dir.join(name), &place.id))
    };
    read_outcome(&own, &place.id).or_else(others)
}

fn read_outcome(dir: &Path, id: &str) -> Option<Outcome> {
    let text = fs::read_to_string(dir.join(RESULT)).ok()?;
    let mut value: Value = serde_json::from_str(&text).ok()?;
    let is_ours = value["format"] == json!(FORMAT) && value["id"] == json!(id);
    let reason = match value["status"].as_str().filter(|_| is_ours)? {
        "done" => None,
        "failed" => Some(value["reason"].as_str()?.to_owned()),
        _ => return None,
    };
    Some(Outcome {
        reason,
        took_s: value["took_s"].as_f64()?,
        document: value["document"].take(),
        result: value["result"].take(),
    })
}

/// The results of a folder: the experiment's name, and for each run what became of it.
pub(crate) fn results(dir: &Path) -> Result<(String, Vec<Option<Outcome>>), FolderError> {
    let Some(book) = book(dir)? else {
        let text = format!("{}: there are no results of an experiment", dir.display());
        return Err(FolderError(text));
    };
    let runs = book["runs"].as_array().into_iter().flatten();
    let place = |run: &Value| {
        let text = |key: &str| run[key].as_str().map(str::to_owned);
        let (folder, id) = (text("folder")?, text("id")?);
        // Names that this program writes: a digest, and no way out of the folder.
        let is_name = folder.len() < 40 && !folder.contains(['/', '\\']) && folder.is_ascii();
        let is_id = id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_name && is_id).then_some(Place { folder, id })
    };
    let places: Option<Vec<Place>> = runs.map(place).collect();
    let wrong = || FolderError(format!("{}: {BOOK} is damaged", dir.display()));
    let places = places.ok_or_else(wrong)?;
    let name = book["name"].as_str().ok_or_else(wrong)?.to_owned();
    Ok((
        name,
        places.iter().map(|place| outcome(dir, place)).collect(),
    ))
}

/// Replaces a file of the folder: after a crash it is the old or the new one.
pub(crate) fn write(dir: &Path, name: &str, text: &str) -> Result<(), FolderError> {
    let path = dir.join(name);
    let new = dir.join(format!("{name}.new"));
    let written = (|| {
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        // The folder has the name.
        File::open(dir)?.sync_all()
    })();
    written.map_err(cannot::<std::io::Error>("write", &path))
}
