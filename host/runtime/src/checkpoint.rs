//! The keeper of checkpoints: starts them, writes their files, puts them into use, and removes what
//! they replace. It runs on the node's main thread.

use crate::error::RuntimeError;
use crate::journal_file::{Journal, sync_directory};
use crate::mailbox::{Mail, Mailboxes};
use base::{Position, ShardId, Ts};
use catalog::Catalog;
use journal::Manifest;
use journal::checkpoint::checkpoint_name;
use journal::manifest::MANIFEST_NAME;
use journal::segment::parse_segment_name;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// News of a shard for the keeper.
pub(crate) enum CheckpointNews {
    /// Next bytes of the file of the shard with this index.
    Bytes { index: u16, bytes: Vec<u8> },
    /// The file is complete.
    End {
        shard: ShardId,
        start: Position,
        journal_from: Position,
        catalog: Arc<Catalog>,
        clock_bound: Ts,
    },
    /// Nothing runs on a shard any more after it was told to drain.
    Drained,
    /// A signal or a caller wants the node to end.
    Stop,
}

struct Running {
    files: Vec<File>,
    ended: Vec<(ShardId, Position, Position)>,
    /// A file could not be written. The shards are heard to their end all the same, so that
    /// nothing of this checkpoint is taken for part of the next one.
    failed: bool,
}

/// State between two checkpoints.
pub(crate) struct CheckpointKeeper {
    directory: PathBuf,
    manifest: Manifest,
    first_shard: ShardId,
    shards: u16,
    journal: Journal,
    mailboxes: Mailboxes,
    running: Option<Running>,
    /// Journal end when the last checkpoint began.
    last_start: Position,
}

impl CheckpointKeeper {
    pub(crate) fn new(
        directory: PathBuf,
        mut manifest: Manifest,
        incarnation: u32,
        first_shard: ShardId,
        shards: u16,
        journal: Journal,
        mailboxes: Mailboxes,
    ) -> CheckpointKeeper {
        let last_start = manifest.journal_from;
        manifest.incarnation = incarnation;
        CheckpointKeeper {
            directory,
            manifest,
            first_shard,
            shards,
            journal,
            mailboxes,
            running: None,
            last_start,
        }
    }

    /// Bytes of journal since the last checkpoint began.
    pub(crate) fn journal_bytes(&self) -> u64 {
        self.journal.end().0 - self.last_start.0
    }

    /// Whether a checkpoint is being written.
    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Starts a checkpoint of all shards, unless its files cannot be created: then the old one
    /// stays in use, and this is said in the log.
    pub(crate) fn begin(&mut self) {
        assert!(self.running.is_none(), "one checkpoint at a time");
        self.last_start = self.journal.end();
        let number = self.manifest.number + 1;
        let mut files = Vec::new();
        for index in 0..self.shards {
            match File::create(
                self.directory
                    .join(checkpoint_name(number, self.shard(index))),
            ) {
                Ok(file) => files.push(file),
                Err(error) => {
                    tracing::error!(%error, "cannot create a checkpoint; the old one stays in use");
                    return self.remove_new();
                }
            }
        }
        self.running = Some(Running {
            files,
            ended: Vec::new(),
            failed: false,
        });
        self.mailboxes.all(|| Mail::Checkpoint(number));
    }

    fn shard(&self, index: u16) -> ShardId {
        ShardId(self.first_shard.0 + index)
    }

    /// Takes bytes of a file. A checkpoint that cannot be written is given up.
    pub(crate) fn on_bytes(&mut self, index: u16, bytes: &[u8]) {
        let running = self
            .running
            .as_mut()
            .expect("shards speak of the running checkpoint");
        if running.failed {
            return;
        }
        if let Err(error) = running.files[usize::from(index)].write_all(bytes) {
            tracing::error!(%error, "cannot write a checkpoint; the old one stays in use");
            running.failed = true;
            // Whoever waits for room on the disk gets it now.
            self.remove_new();
        }
    }

    /// Removes the files of a checkpoint that did not come into use.
    fn remove_new(&self) {
        for index in 0..self.shards {
            let name = checkpoint_name(self.manifest.number + 1, self.shard(index));
            let _ = std::fs::remove_file(self.directory.join(name));
        }
    }

    /// Takes the end of a file; when all are complete, puts the checkpoint into use.
    ///
    /// # Errors
    /// The manifest cannot be replaced, or what it replaces cannot be removed; whatever is on disk
    /// is consistent all the same.
    pub(crate) fn on_end(
        &mut self,
        shard: ShardId,
        start: Position,
        journal_from: Position,
    ) -> Result<(), RuntimeError> {
        let running = self
            .running
            .as_mut()
            .expect("shards speak of the running checkpoint");
        running.ended.push((shard, start, journal_from));
        if running.ended.len() < usize::from(self.shards) {
            return Ok(());
        }
        let running = self.running.take().expect("just seen");
        if running.failed {
            return Ok(());
        }
        if let Err(error) = self.write_whole(running) {
            tracing::error!(%error, "cannot complete a checkpoint; the old one stays in use");
            self.remove_new();
            return Ok(());
        }
        replace_manifest(&self.directory)?;
        self.manifest.number += 1;
        self.remove_old()?;
        tracing::info!(number = self.manifest.number, "checkpoint complete");
        Ok(())
    }

    /// Makes the files of a complete checkpoint durable, and the manifest that names them, beside
    /// the one in use.
    fn write_whole(&mut self, mut running: Running) -> Result<(), RuntimeError> {
        for file in &running.files {
            file.sync_all()
                .map_err(RuntimeError::file("sync a checkpoint in", &self.directory))?;
        }
        // The files may hold versions whose records are not durable yet.
        self.wait_durable(self.journal.end());
        running.ended.sort();
        let ended = &running.ended;
        let shards = ended
            .iter()
            .map(|(shard, start, _)| (*shard, *start))
            .collect();
        let from = ended
            .iter()
            .map(|(_, _, from)| *from)
            .min()
            .expect("a node has shards");
        let number = self.manifest.number + 1;
        let manifest = Manifest {
            number,
            shards,
            journal_from: from,
            ..self.manifest.clone()
        };
        write_manifest(&self.directory, &manifest)?;
        self.manifest = Manifest {
            number: self.manifest.number,
            ..manifest
        };
        Ok(())
    }

    fn wait_durable(&self, position: Position) {
        while self.journal.durable() < position {
            self.journal.flush_soon();
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// Notes what the next manifest says besides positions.
    pub(crate) fn note(&mut self, catalog: &Catalog, clock_bound: Ts) {
        self.manifest.clock_bound = self.manifest.clock_bound.max(clock_bound);
        if catalog.version > self.manifest.catalog_version {
            self.manifest.catalog_version = catalog.version;
            self.manifest.catalog = base::codec::to_vec(catalog);
        }
    }

    /// Removes checkpoint files other than those in use, also those of a life that a crash ended,
    /// and journal segments that are no longer read.
    fn remove_old(&self) -> Result<(), RuntimeError> {
        let number = self.manifest.number;
        let current: Vec<String> = (0..self.shards)
            .map(|index| checkpoint_name(number, self.shard(index)))
            .collect();
        let list = std::fs::read_dir(&self.directory);
        let list = list.map_err(RuntimeError::file("list", &self.directory))?;
        let mut segments = Vec::new();
        for entry in list.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if name.starts_with("checkpoint-") && !current.iter().any(|known| known == name) {
                remove(&entry.path())?;
            } else if let Some(start) = parse_segment_name(name) {
                segments.push((start, entry.path()));
            }
        }
        segments.sort();
        // A segment is needed if the next one begins behind the position that is read from.
        for pair in segments.windows(2) {
            if pair[1].0 <= self.manifest.journal_from {
                remove(&pair[0].1)?;
            }
        }
        sync_directory(&self.directory)
    }
}

fn remove(path: &Path) -> Result<(), RuntimeError> {
    std::fs::remove_file(path).map_err(RuntimeError::file("remove", path))
}

/// Where the next manifest lies until it is complete.
const MANIFEST_NEW: &str = "MANIFEST.new";

/// Writes the next manifest beside the one in use.
fn write_manifest(directory: &Path, manifest: &Manifest) -> Result<(), RuntimeError> {
    let path = directory.join(MANIFEST_NEW);
    let mut file = File::create(&path).map_err(RuntimeError::file("create", &path))?;
    let write = file
        .write_all(&manifest.encode())
        .and_then(|()| file.sync_all());
    write.map_err(RuntimeError::file("write", &path))
}

/// Puts the next manifest into use at once: a crash leaves the old or the new one.
fn replace_manifest(directory: &Path) -> Result<(), RuntimeError> {
    let path = directory.join(MANIFEST_NEW);
    let rename = std::fs::rename(&path, directory.join(MANIFEST_NAME));
    rename.map_err(RuntimeError::file("rename", &path))?;
    sync_directory(directory)
}
