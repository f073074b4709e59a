//! A disk in memory that remembers what was not synced, and can lose or tear it.
//!
//! *Killing* a process loses nothing: the system still writes what it was given. A *power cut*
//! keeps a prefix of the unsynced writes of each file, the last of them torn, and a prefix (or, if
//! the plan says so, any subset) of the unsynced changes of the directory.

use base::Prng;
use std::cell::{RefCell, RefMut};
use std::collections::BTreeMap;
use std::rc::Rc;
use storage::{Disk, DiskError, DiskFault};

/// One change of a file that is not synced.
enum Unsynced {
    Write {
        offset: usize,
        /// Content before, as far as the file reached.
        old: Vec<u8>,
        /// Bytes written.
        length: usize,
        old_length: usize,
    },
    Length {
        old_length: usize,
        /// What was cut off.
        old: Vec<u8>,
    },
}

#[derive(Default)]
struct FileState {
    content: Vec<u8>,
    unsynced: Vec<Unsynced>,
}

/// One change of the directory that is not synced.
#[derive(Clone)]
enum NameChange {
    Set(String, u64),
    Move(String, String, u64),
    Unset(String),
}

/// What a stopped sync leaves behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncStop {
    /// The power went before it did anything.
    Before,
    /// The power went when it was done, before anybody heard.
    After,
}

/// What happened to a disk so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DiskCounts {
    /// Syncs that succeeded.
    pub syncs: u64,
    /// Syncs that failed on purpose.
    pub syncs_failed: u64,
    /// Writes that found no room.
    pub refused: u64,
    /// Power cuts that lost something unsynced.
    pub lost: u64,
    /// Power cuts that left part of a write.
    pub torn: u64,
}

#[derive(Default)]
struct State {
    files: BTreeMap<u64, FileState>,
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    changes: Vec<NameChange>,
    next_file: u64,
    /// Bytes by which files may still grow.
    room: Option<u64>,
    /// Nothing works until power is back.
    dead: bool,
    /// The power went at a sync that was to be the last.
    stopped: bool,
    fail_next_sync: bool,
    stop: Option<(u64, SyncStop)>,
    counts: DiskCounts,
}

/// One node's disk. A clone is another handle of it.
#[derive(Clone, Default)]
pub struct SimDisk(Rc<RefCell<State>>);

/// An open file.
pub struct SimFile {
    id: u64,
    name: String,
}

impl SimDisk {
    /// An empty disk.
    pub fn new() -> SimDisk {
        SimDisk::default()
    }

    /// What happened so far.
    pub fn counts(&self) -> DiskCounts {
        self.0.borrow().counts
    }

    /// Whether an operation has found the power gone, so that the node must end.
    pub fn is_dead(&self) -> bool {
        self.0.borrow().dead
    }

    /// Whether the power went at a sync since the last call.
    pub fn take_stopped(&self) -> bool {
        std::mem::take(&mut self.0.borrow_mut().stopped)
    }

    /// Nothing works from now on: an operation of a process that is ended fails.
    pub fn kill(&self) {
        self.0.borrow_mut().dead = true;
    }

    /// The next sync of a file fails.
    pub fn fail_next_sync(&self) {
        self.0.borrow_mut().fail_next_sync = true;
    }

    /// It has room and does what it is told from now on.
    pub fn calm(&self) {
        let mut state = self.0.borrow_mut();
        state.room = None;
        state.fail_next_sync = false;
    }

    /// The power goes at the sync with this number (as counted by [`DiskCounts::syncs`], from 1).
    pub fn stop_at(&self, sync: u64, how: SyncStop) {
        self.0.borrow_mut().stop = Some((sync, how));
    }

    /// Limits by how much files may grow; `None`: not at all.
    pub fn set_room(&self, room: Option<u64>) {
        self.0.borrow_mut().room = room;
    }

    /// The node may start again. What was written and not synced stays as it is.
    pub fn revive(&self) {
        let mut state = self.0.borrow_mut();
        state.dead = false;
        state.fail_next_sync = false;
    }

    /// The power goes: unsynced changes are lost as the disk pleases. `any_names`: changes of the
    /// directory may survive without those before them.
    pub fn cut_power(&self, prng: &mut Prng, any_names: bool) {
        let mut state = self.0.borrow_mut();
        let state = &mut *state;
        for file in state
            .files
            .values_mut()
            .filter(|file| !file.unsynced.is_empty())
        {
            state.counts.lost += 1;
            state.counts.torn += u64::from(file.tear(prng));
        }
        let changes = std::mem::take(&mut state.changes);
        let kept = prng.below(changes.len() as u64 + 1) as usize;
        let mut names = std::mem::take(&mut state.durable_names);
        for (index, change) in changes.into_iter().enumerate() {
            let keep = if any_names {
                prng.below(2) == 0
            } else {
                index < kept
            };
            if keep {
                change.apply(&mut names);
            }
        }
        state.durable_names = names.clone();
        state.names = names;
        let State { files, names, .. } = state;
        files.retain(|id, _| names.values().any(|used| used == id));
    }

    /// An independent disk with the content that this one shows now.
    pub fn copy(&self) -> SimDisk {
        let state = self.0.borrow();
        let content = |(id, file): (&u64, &FileState)| {
            let file = FileState {
                content: file.content.clone(),
                unsynced: Vec::new(),
            };
            (*id, file)
        };
        SimDisk(Rc::new(RefCell::new(State {
            files: state.files.iter().map(content).collect(),
            names: state.names.clone(),
            durable_names: state.names.clone(),
            next_file: state.next_file,
            ..State::default()
        })))
    }

    /// Flips a bit of a file; nothing if it is not that long.
    pub fn flip(&self, name: &str, bit: u64) {
        let mut state = self.0.borrow_mut();
        let Some(id) = state.names.get(name).copied() else {
            return;
        };
        let file = state.files.get_mut(&id).expect("a name has its file");
        if let Some(byte) = file.content.get_mut((bit / 8) as usize) {
            *byte ^= 1 << (bit % 8);
        }
    }

    /// Bytes of all files.
    pub fn size_bytes(&self) -> u64 {
        let state = self.0.borrow();
        state
            .files
            .values()
            .map(|file| file.content.len() as u64)
            .sum()
    }

    fn alive(&self, action: &'static str, name: &str) -> Result<RefMut<'_, State>, DiskError> {
        let state = self.0.borrow_mut();
        if state.dead {
            return Err(failed(action, name, "the power is off"));
        }
        Ok(state)
    }

    /// Counts a sync, unless it is to fail or to be the last. `done` does what it is for.
    fn count_sync(&self, name: &str, done: impl FnOnce(&mut State)) -> Result<(), DiskError> {
        let mut state = self.alive("sync", name)?;
        let number = state.counts.syncs + 1;
        if let Some((_, how)) = state.stop.take_if(|(at, _)| *at == number) {
            if how == SyncStop::After {
                state.counts.syncs = number;
                done(&mut state);
            }
            state.dead = true;
            state.stopped = true;
            return Err(failed("sync", name, "the power is off"));
        }
        if std::mem::take(&mut state.fail_next_sync) {
            state.counts.syncs_failed += 1;
            return Err(failed("sync", name, "input/output error"));
        }
        state.counts.syncs = number;
        done(&mut state);
        Ok(())
    }
}

impl NameChange {
    fn apply(self, names: &mut BTreeMap<String, u64>) {
        match self {
            NameChange::Set(name, id) => {
                names.insert(name, id);
            }
            NameChange::Move(from, to, id) => {
                names.remove(&from);
                names.insert(to, id);
            }
            NameChange::Unset(name) => {
                names.remove(&name);
            }
        }
    }
}

impl FileState {
    /// Undoes what a power cut loses; whether a write was left half.
    fn tear(&mut self, prng: &mut Prng) -> bool {
        let changes = std::mem::take(&mut self.unsynced);
        let kept = prng.below(changes.len() as u64 + 1) as usize;
        let mut torn = false;
        for (index, change) in changes.into_iter().enumerate().rev() {
            if index < kept {
                break;
            }
            let cut = match &change {
                Unsynced::Write { length, .. } if index == kept => {
                    prng.below(*length as u64 + 1) as usize
                }
                Unsynced::Write { .. } | Unsynced::Length { .. } => 0,
            };
            torn |= cut > 0;
            // A file may have grown although the content never arrived.
            let zeros = prng.below(4) == 0;
            self.undo(change, cut, zeros);
        }
        torn
    }

    /// Takes back a change but for the first `cut` bytes of it.
    fn undo(&mut self, change: Unsynced, cut: usize, zeros: bool) {
        match change {
            Unsynced::Write {
                offset,
                old,
                length,
                old_length,
            } => {
                let keep_to = offset + cut;
                if zeros {
                    let end = (offset + length).min(self.content.len());
                    self.content[keep_to.min(end)..end].fill(0);
                } else {
                    self.content.truncate(old_length.max(keep_to));
                }
                if cut < old.len() {
                    self.content[keep_to..offset + old.len()].copy_from_slice(&old[cut..]);
                }
            }
            Unsynced::Length { old_length, old } => {
                self.content.truncate(old_length);
                self.content.extend_from_slice(&old);
                self.content.resize(old_length, 0);
            }
        }
    }
}

fn failed(action: &'static str, name: &str, why: &str) -> DiskError {
    DiskError {
        action,
        file: name.to_owned(),
        fault: DiskFault::Failed(why.into()),
    }
}

fn missing(action: &'static str, name: &str) -> DiskError {
    DiskError {
        action,
        file: name.to_owned(),
        fault: DiskFault::NotFound,
    }
}

impl Disk for SimDisk {
    type File = SimFile;

    fn list(&self) -> Result<Vec<String>, DiskError> {
        Ok(self.alive("list", ".")?.names.keys().cloned().collect())
    }

    fn read(&self, name: &str, take: &mut dyn FnMut(&[u8])) -> Result<(), DiskError> {
        let state = self.alive("read", name)?;
        let id = state.names.get(name).ok_or_else(|| missing("read", name))?;
        take(&state.files[id].content);
        Ok(())
    }

    fn open(&self, name: &str) -> Result<SimFile, DiskError> {
        let state = self.alive("open", name)?;
        let id = *state.names.get(name).ok_or_else(|| missing("open", name))?;
        let name = name.to_owned();
        Ok(SimFile { id, name })
    }

    fn create(&self, name: &str) -> Result<SimFile, DiskError> {
        let mut state = self.alive("create", name)?;
        let name = name.to_owned();
        if let Some(id) = state.names.get(&name).copied() {
            state
                .files
                .get_mut(&id)
                .expect("a name has its file")
                .set_length(0);
            return Ok(SimFile { id, name });
        }
        let id = state.next_file;
        state.next_file += 1;
        state.files.insert(id, FileState::default());
        state.names.insert(name.clone(), id);
        state.changes.push(NameChange::Set(name.clone(), id));
        Ok(SimFile { id, name })
    }

    fn write_at(&self, file: &SimFile, offset: u64, bytes: &[u8]) -> Result<usize, DiskError> {
        let mut state = self.alive("write", &file.name)?;
        let state = &mut *state;
        let content = state.files.get_mut(&file.id);
        let Some(content) = content else {
            return Err(missing("write", &file.name));
        };
        let (offset, mut count) = (offset as usize, bytes.len());
        let grows = (offset + count).saturating_sub(content.content.len());
        if let Some(room) = &mut state.room {
            if grows as u64 > *room {
                count -= grows - *room as usize;
                state.counts.refused += 1;
            }
            *room -= (offset + count).saturating_sub(content.content.len()) as u64;
        }
        if count == 0 {
            return Err(DiskError {
                action: "write",
                file: file.name.clone(),
                fault: DiskFault::NoRoom,
            });
        }
        content.write(offset, &bytes[..count]);
        Ok(count)
    }

    fn set_length(&self, file: &SimFile, length: u64) -> Result<(), DiskError> {
        let mut state = self.alive("cut", &file.name)?;
        let state = &mut *state;
        let content = state.files.get_mut(&file.id);
        let content = content.ok_or_else(|| missing("cut", &file.name))?;
        let freed = content.content.len().saturating_sub(length as usize) as u64;
        state.room = state.room.map(|room| room + freed);
        content.set_length(length as usize);
        Ok(())
    }

    fn sync(&self, file: &SimFile) -> Result<(), DiskError> {
        self.count_sync(&file.name, |state| {
            if let Some(file) = state.files.get_mut(&file.id) {
                file.unsynced.clear();
            }
        })
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        let mut state = self.alive("rename", from)?;
        let id = state
            .names
            .remove(from)
            .ok_or_else(|| missing("rename", from))?;
        state.names.insert(to.to_owned(), id);
        state
            .changes
            .push(NameChange::Move(from.to_owned(), to.to_owned(), id));
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        let mut state = self.alive("remove", name)?;
        let state = &mut *state;
        let id = state
            .names
            .remove(name)
            .ok_or_else(|| missing("remove", name))?;
        if let Some(room) = &mut state.room {
            *room += state.files[&id].content.len() as u64;
        }
        state.changes.push(NameChange::Unset(name.to_owned()));
        Ok(())
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        self.count_sync(".", |state| {
            state.changes.clear();
            state.durable_names = state.names.clone();
            let State { files, names, .. } = state;
            files.retain(|id, _| names.values().any(|used| used == id));
        })
    }
}

impl FileState {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let old_length = self.content.len();
        assert!(offset <= old_length, "files are written without holes");
        let end = offset + bytes.len();
        let old = self.content[offset..end.min(old_length)].to_vec();
        let over = old.len();
        self.content[offset..offset + over].copy_from_slice(&bytes[..over]);
        self.content.extend_from_slice(&bytes[over..]);
        self.unsynced.push(Unsynced::Write {
            offset,
            old,
            length: bytes.len(),
            old_length,
        });
    }

    fn set_length(&mut self, length: usize) {
        let old_length = self.content.len();
        let old = self.content.get(length..).unwrap_or_default().to_vec();
        self.content.resize(length, 0);
        self.unsynced.push(Unsynced::Length { old_length, old });
    }
}
