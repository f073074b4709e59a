//! What is to be undone, on disk before it is done: whoever reads the file can undo what a killed
//! benchmark has left behind.
//!
//! One JSON object in each line. The first names the benchmark's process, the others tell how to
//! undo something, or that this has been done. A line that is not whole was being written when the
//! benchmark ended: its fault was not put in.
//!
//! The lock of the journal is held while a fault is put in. So whoever closes the journal (a signal
//! has arrived) knows that nothing is put in any more.

use super::plan::refused;
use super::process::{Process, during};
use super::undo::{Undo, process_of};
use links::DriveError;
use links::lock;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Beginning and end of the names of journals in the folder for temporary files.
const NAME: (&str, &str) = ("trellis-bench-", ".undo");

/// Journals of runs of this process.
static OPEN: Mutex<Vec<Arc<Mutex<Journal>>>> = Mutex::new(Vec::new());

/// What was put in and not undone yet.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    /// By number; `None`: undone.
    entries: Vec<Option<Undo>>,
    is_closed: bool,
}

/// The place of a part of a fault in its journal.
pub(super) type Entry = usize;

impl Journal {
    /// A new file; `None`: in the folder for temporary files.
    pub(super) fn create(path: Option<&Path>) -> Result<Arc<Mutex<Journal>>, DriveError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{}-{number}{}", NAME.0, std::process::id(), NAME.1);
        let path = path.map_or_else(|| std::env::temp_dir().join(name), Path::to_path_buf);
        let cannot = |error: std::io::Error| {
            let text = format!(
                "cannot write the journal of faults {}: {error}",
                path.display()
            );
            DriveError::File(text)
        };
        let mut options = OpenOptions::new();
        let file = options
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        let file = file.map_err(cannot)?;
        let mut journal = Journal {
            path: path.clone(),
            file,
            entries: Vec::new(),
            is_closed: false,
        };
        let own = Process::own().ok_or_else(|| refused("/proc is not there".into()))?;
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let written = journal.write(&json!({ "benchmark": [own.pid, own.start_ticks] }));
        let folder = written.and_then(|()| File::open(folder.unwrap_or(Path::new("."))));
        folder
            .and_then(|folder| folder.sync_all())
            .map_err(cannot)?;
        let journal = Arc::new(Mutex::new(journal));
        lock(&OPEN).push(journal.clone());
        Ok(journal)
    }

    #[cfg(test)]
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn write(&mut self, value: &Value) -> std::io::Result<()> {
        self.file.write_all(format!("{value}\n").as_bytes())?;
        self.file.sync_data()
    }

    /// Puts something in; how to undo it is on disk before.
    pub(super) fn put_in(
        &mut self,
        undo: Undo,
        act: impl FnOnce() -> Result<(), String>,
    ) -> Result<Entry, String> {
        if self.is_closed {
            return Err("the benchmark was told to end".into());
        }
        let line = json!({ "entry": self.entries.len(), "undo": undo.to_json() });
        let written = self.write(&line);
        written.map_err(|error| during("writing the journal of faults", &error))?;
        self.entries.push(Some(undo));
        act()?;
        Ok(self.entries.len() - 1)
    }

    /// How this is undone; `None`: it was.
    pub(super) fn entry(&self, entry: Entry) -> Option<&Undo> {
        self.entries[entry].as_ref()
    }

    /// Notes that this is undone and verified.
    pub(super) fn done(&mut self, entry: Entry) -> Result<(), String> {
        self.entries[entry] = None;
        let written = self.write(&json!({ "undone": entry }));
        written.map_err(|error| during("writing the journal of faults", &error))
    }

    /// Undoes everything that is left, and nothing is put in any more. The file goes if all
    /// is undone.
    pub(super) fn close(&mut self) -> Result<Vec<String>, String> {
        self.is_closed = true;
        let left: Vec<Undo> = self.entries.drain(..).flatten().collect();
        let told = undo_all(&left)?;
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(during("removing the journal of faults", &error))
            }
            _ => Ok(told),
        }
    }
}

/// Undoes these, the last first, and waits until that has worked. Answers a line for each.
fn undo_all(left: &[Undo]) -> Result<Vec<String>, String> {
    let mut failed = Vec::new();
    let mut acted = Vec::new();
    for undo in left.iter().rev() {
        match undo.act() {
            Ok(started) => acted.push((undo, started)),
            Err(error) => failed.push(error),
        }
    }
    let mut told = Vec::new();
    for (undo, started) in acted {
        let began = Instant::now();
        while !undo.is_done(started) && began.elapsed() < undo.limit(started) {
            std::thread::sleep(Duration::from_millis(10));
        }
        match undo.is_done(started) {
            true => told.push(undo.to_json().to_string()),
            false => failed.push(format!("it does not work: {}", undo.to_json())),
        }
    }
    match failed.is_empty() {
        true => Ok(told),
        false => Err(failed.join("; ")),
    }
}

/// Undoes the faults of all runs of this process, for good: one that ends by a signal.
///
/// # Errors
/// Something is not undone; its journal stays, for [`undo()`].
pub fn undo_own() -> Result<(), DriveError> {
    for journal in lock(&OPEN).iter() {
        let closed = lock(journal).close();
        closed.map_err(DriveError::File)?;
    }
    Ok(())
}

/// Forgets a journal whose run has ended.
pub(super) fn forget(journal: &Arc<Mutex<Journal>>) {
    lock(&OPEN).retain(|other| !Arc::ptr_eq(other, journal));
}

/// The process that has written a journal.
fn benchmark(text: &str) -> Option<Process> {
    let first = serde_json::from_str::<Value>(text.lines().next()?).ok()?;
    process_of(&first["benchmark"])
}

/// Undoes what a journal tells of a benchmark that has ended, and removes it. Answers a line for
/// each part.
///
/// # Errors
/// The benchmark still runs, the file is none, or something is not undone.
pub fn undo(path: &Path) -> Result<Vec<String>, DriveError> {
    let wrong = |error: String| DriveError::File(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let mut lines = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    let read = |line: &str| serde_json::from_str::<Value>(line).ok();
    lines.next();
    let benchmark = benchmark(&text).ok_or_else(|| wrong("is no journal of faults".into()))?;
    if benchmark.is_alive() {
        let text = format!(
            "process {} still runs, and undoes its faults itself",
            benchmark.pid
        );
        return Err(wrong(text));
    }
    let mut entries = Vec::new();
    for line in lines {
        let line = read(line).ok_or_else(|| wrong(format!("is no line of it: {line}")))?;
        match line["undone"]
            .as_u64()
            .and_then(|at| entries.get_mut(at as usize))
        {
            Some(entry) => *entry = None,
            None => {
                let undo = Undo::from_json(&line["undo"]);
                entries.push(Some(
                    undo.ok_or_else(|| wrong(format!("cannot undo {line}")))?,
                ));
            }
        }
    }
    let left: Vec<Undo> = entries.into_iter().flatten().collect();
    let told = undo_all(&left).map_err(wrong)?;
    std::fs::remove_file(path).map_err(|error| wrong(error.to_string()))?;
    Ok(told)
}

/// Undoes what benchmarks of this user that have ended have left behind, by their journals in the
/// folder for temporary files. Answers a line for each part.
///
/// # Errors
/// As of [`undo()`].
pub fn undo_left_behind() -> Result<Vec<String>, DriveError> {
    let own = std::fs::metadata("/proc/self").map(|own| own.uid()).ok();
    let mut told = Vec::new();
    let entries = std::fs::read_dir(std::env::temp_dir())
        .into_iter()
        .flatten();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name
            .to_str()
            .and_then(|name| name.strip_prefix(NAME.0)?.strip_suffix(NAME.1));
        if name.is_none() {
            continue;
        }
        // Not somebody else's file, and not a link to one.
        let is_own = entry
            .metadata()
            .is_ok_and(|it| it.is_file() && Some(it.uid()) == own);
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        let has_ended = benchmark(&text).is_some_and(|benchmark| !benchmark.is_alive());
        if is_own && has_ended {
            told.extend(undo(&entry.path())?);
        }
    }
    Ok(told)
}
