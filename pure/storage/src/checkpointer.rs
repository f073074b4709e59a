//! The checkpointer: writes the files of checkpoints, puts them into use, and removes the files of
//! those before.
//!
//! ```text
//! begin -> shards walk -> on_bytes ... on_end per shard -> journal durable to its end -> complete
//! ```

use crate::disk::{Disk, DiskError};
use alloc::string::String;
use alloc::vec::Vec;
use base::{Position, ShardId, Ts};
use catalog::Catalog;
use journal::Manifest;
use journal::checkpoint::checkpoint_name;
use journal::manifest::MANIFEST_NAME;
use journal::segment::parse_segment_name;

/// Bytes between two syncs of a file: one sync at the end of all of it would keep those of the
/// journal waiting.
const SYNC_BYTES: u64 = 4 << 20;

struct CheckpointFile<F> {
    file: F,
    length: u64,
    /// Bytes that are durable.
    synced: u64,
}

struct Running<F> {
    files: Vec<CheckpointFile<F>>,
    ended: Vec<(ShardId, Position, Position)>,
    /// A file could not be written. The shards are heard to their end all the same, so that
    /// nothing of this checkpoint is taken for part of the next one.
    failed: bool,
}

/// What the end of one shard's file means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Others are not complete yet.
    Waiting,
    /// All are complete: call [`Checkpointer::complete`] when the journal is durable to where
    /// it ends now.
    Whole,
    /// All are complete, but the checkpoint was given up before.
    GivenUp,
}

/// What became of a whole checkpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Completion {
    /// It is in use, with this number.
    InUse(u64),
    /// It could not be made durable; the old one stays in use.
    GivenUp(DiskError),
}

/// State between two checkpoints.
pub struct Checkpointer<D: Disk> {
    disk: D,
    manifest: Manifest,
    first_shard: ShardId,
    shards: u16,
    running: Option<Running<D::File>>,
    /// Journal end when the last checkpoint began.
    last_start: Position,
}

impl<F> CheckpointFile<F> {
    /// Appends bytes, and makes what is there durable if enough has come together.
    fn add<D: Disk<File = F>>(&mut self, disk: &D, bytes: &[u8]) -> Result<(), DiskError> {
        disk.write_all_at(&self.file, self.length, bytes)?;
        self.length += bytes.len() as u64;
        if self.length - self.synced >= SYNC_BYTES {
            disk.sync(&self.file)?;
            self.synced = self.length;
        }
        Ok(())
    }
}

impl<D: Disk> Checkpointer<D> {
    /// A checkpointer of the shards from `first_shard` on, with the manifest that is in use, in
    /// this incarnation.
    pub fn new(
        disk: D,
        mut manifest: Manifest,
        incarnation: u32,
        first_shard: ShardId,
        shards: u16,
    ) -> Checkpointer<D> {
        let last_start = manifest.journal_from;
        manifest.incarnation = incarnation;
        Checkpointer {
            disk,
            manifest,
            first_shard,
            shards,
            running: None,
            last_start,
        }
    }

    /// Bytes of a journal that ends at `end` since the last checkpoint began.
    pub fn journal_bytes(&self, end: Position) -> u64 {
        end.0 - self.last_start.0
    }

    /// Whether a checkpoint is being written.
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Starts a checkpoint of all shards while the journal ends at `end`: its number, for the
    /// shards.
    ///
    /// # Errors
    /// Its files cannot be created: the old one stays in use.
    pub fn begin(&mut self, end: Position) -> Result<u64, DiskError> {
        assert!(self.running.is_none(), "one checkpoint at a time");
        self.last_start = end;
        let number = self.manifest.number + 1;
        let mut files = Vec::new();
        for index in 0..self.shards {
            match self
                .disk
                .create(&checkpoint_name(number, self.shard(index)))
            {
                Ok(file) => files.push(CheckpointFile {
                    file,
                    length: 0,
                    synced: 0,
                }),
                Err(error) => {
                    self.remove_new();
                    return Err(error);
                }
            }
        }
        self.running = Some(Running {
            files,
            ended: Vec::new(),
            failed: false,
        });
        Ok(number)
    }

    fn shard(&self, index: u16) -> ShardId {
        ShardId(self.first_shard.0 + index)
    }

    fn running(&mut self) -> &mut Running<D::File> {
        self.running
            .as_mut()
            .expect("shards speak of the running checkpoint")
    }

    /// Takes bytes of the file of the shard with this index.
    ///
    /// # Errors
    /// They cannot be written: the checkpoint is given up now, which is told once.
    pub fn on_bytes(&mut self, index: u16, bytes: &[u8]) -> Result<(), DiskError> {
        let disk = self.disk.clone();
        let running = self.running();
        if running.failed {
            return Ok(());
        }
        let file = &mut running.files[usize::from(index)];
        if let Err(error) = file.add(&disk, bytes) {
            running.failed = true;
            // What waits for room on the disk gets it now.
            self.remove_new();
            return Err(error);
        }
        Ok(())
    }

    /// Bytes of the running checkpoint so far; of one that is not running 0.
    pub fn written_bytes(&self) -> u64 {
        let files = self.running.iter().flat_map(|running| &running.files);
        files.map(|file| file.length).sum()
    }

    /// Removes the files of a checkpoint that did not come into use.
    fn remove_new(&self) {
        for index in 0..self.shards {
            let name = checkpoint_name(self.manifest.number + 1, self.shard(index));
            // What is left over goes with the next checkpoint that comes into use.
            let _ = self.disk.remove(&name);
        }
    }

    /// Takes the end of a file: the shard's start, and from where its records are still needed.
    pub fn on_end(&mut self, shard: ShardId, start: Position, journal_from: Position) -> Ended {
        let shards = usize::from(self.shards);
        let running = self.running();
        running.ended.push((shard, start, journal_from));
        if running.ended.len() < shards {
            return Ended::Waiting;
        }
        if running.failed {
            self.running = None;
            return Ended::GivenUp;
        }
        Ended::Whole
    }

    /// Puts a whole checkpoint into use. Its files may hold versions whose records stood at the end
    /// of the journal, so the journal must be durable to where it ended after [`Ended::Whole`].
    ///
    /// # Errors
    /// The manifest cannot be replaced, or what it replaces cannot be removed; whatever is on disk
    /// is consistent all the same.
    pub fn complete(&mut self) -> Result<Completion, DiskError> {
        let running = self.running.take().expect("a whole checkpoint is running");
        assert_eq!(running.ended.len(), usize::from(self.shards));
        if let Err(error) = self.write_whole(running) {
            self.remove_new();
            return Ok(Completion::GivenUp(error));
        }
        // A crash leaves the old or the new one.
        self.disk.rename(MANIFEST_NEW, MANIFEST_NAME)?;
        self.disk.sync_directory()?;
        self.manifest.number += 1;
        self.remove_old()?;
        Ok(Completion::InUse(self.manifest.number))
    }

    /// Makes the files of a complete checkpoint durable, and the manifest that names them, beside
    /// the one in use.
    fn write_whole(&mut self, mut running: Running<D::File>) -> Result<(), DiskError> {
        for file in &running.files {
            self.disk.sync(&file.file)?;
        }
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
        let file = self.disk.create(MANIFEST_NEW)?;
        self.disk.write_all_at(&file, 0, &manifest.encode())?;
        self.disk.sync(&file)?;
        // The names of all files are durable before the manifest that needs them has its own.
        self.disk.sync_directory()?;
        self.manifest = Manifest {
            number: self.manifest.number,
            ..manifest
        };
        Ok(())
    }

    /// Notes what the next manifest says besides positions.
    pub fn note(&mut self, catalog: &Catalog, clock_bound: Ts) {
        self.manifest.clock_bound = self.manifest.clock_bound.max(clock_bound);
        if catalog.version > self.manifest.catalog_version {
            self.manifest.catalog_version = catalog.version;
            self.manifest.catalog = base::codec::to_vec(catalog);
        }
    }

    /// Removes checkpoint files other than those in use, also those of a life that a crash ended,
    /// and journal segments that are no longer read.
    fn remove_old(&self) -> Result<(), DiskError> {
        let number = self.manifest.number;
        let current: Vec<String> = (0..self.shards)
            .map(|index| checkpoint_name(number, self.shard(index)))
            .collect();
        let mut segments = Vec::new();
        let mut names = self.disk.list()?;
        names.sort();
        for name in names {
            if name.starts_with("checkpoint-") && !current.contains(&name) {
                self.disk.remove(&name)?;
            } else if let Some(start) = parse_segment_name(&name) {
                segments.push((start, name));
            }
        }
        segments.sort();
        // A segment is needed if the next one begins behind the position that is read from.
        for pair in segments.windows(2) {
            if pair[1].0 <= self.manifest.journal_from {
                self.disk.remove(&pair[0].1)?;
            }
        }
        self.disk.sync_directory()
    }
}

/// Where the next manifest lies until it is complete.
const MANIFEST_NEW: &str = "MANIFEST.new";
