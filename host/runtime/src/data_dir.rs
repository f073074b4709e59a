//! The data directory of a node: taking it, and having it read at start.
//!
//! ```text
//! LOCK                     held while a process uses the directory
//! PID                      of that process
//! ...                      what `storage` keeps here
//! ```

use crate::cluster::{ClusterFile, NodeEntry};
use crate::error::RuntimeError;
use crate::fs_disk::FsDisk;
use base::{NodeId, Time};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use storage::{Identity, JournalLimits, Missing, Progress, Recovered, StorageError};

/// A data directory that this process owns, read to its end.
pub struct DataDir {
    /// The directory.
    pub path: PathBuf,
    /// Locked as long as it is open.
    pub lock: File,
    /// What was read.
    pub recovered: Recovered<FsDisk>,
}

impl DataDir {
    /// Takes the directory, recovers, and journals this start. `begin`: the directory may be empty
    /// or missing, as that of a new node.
    ///
    /// # Errors
    /// The directory is in use, belongs to another cluster or node, misses files, or is damaged
    /// (the message names file and offset); its files are as they were then.
    pub fn open(
        cluster: &ClusterFile,
        entry: &NodeEntry,
        begin: bool,
    ) -> Result<DataDir, RuntimeError> {
        let path = entry.data.clone();
        if begin {
            std::fs::create_dir_all(&path).map_err(RuntimeError::file("create", &path))?;
        } else if !path.exists() {
            return Err(RuntimeError::Storage(StorageError::Missing {
                directory: path.display().to_string(),
                what: Missing::All,
            }));
        }
        let lock = take_lock(&path)?;
        let identity = Identity {
            cluster: cluster.cluster,
            node: NodeId(entry.id),
            shards: cluster.shards,
            begin,
            directory: random_seed(),
        };
        let disk = FsDisk::new(&path);
        let mut watch = Watch::new();
        let tell = &mut |progress: Progress<'_>| watch.on(&progress);
        let recovered = storage::open(&disk, identity, JournalLimits::default(), wall(), tell)?;
        if begin && recovered.incarnation > 1 {
            tracing::warn!(
                "{}: --new was given, but there is data here, which is used; leave --new out, so \
                 that the node refuses to start empty when its disk is not mounted",
                path.display()
            );
        }
        std::thread::sleep(Duration::from_micros(recovered.wait_us(wall())));
        if let Some(torn) = recovered.torn.as_ref().filter(|torn| torn.written > 0) {
            tracing::warn!(
                "{}: cut {} bytes at offset {}, position {}: a write that a crash interrupted, of \
                 which nobody was told",
                torn.file,
                torn.written,
                torn.offset,
                torn.end.0
            );
        }
        Ok(DataDir {
            path,
            lock,
            recovered,
        })
    }
}

/// Says how far a long recovery has come.
struct Watch {
    began: Instant,
    told: Instant,
    /// Bytes of files read to their end.
    before: u64,
    file: String,
    bytes: u64,
}

impl Watch {
    /// How often it speaks, and how long it is silent at first.
    const EVERY: Duration = Duration::from_secs(2);

    fn new() -> Watch {
        let now = Instant::now();
        Watch {
            began: now,
            told: now,
            before: 0,
            file: String::new(),
            bytes: 0,
        }
    }

    fn on(&mut self, progress: &Progress<'_>) {
        if self.file != progress.file {
            self.before += std::mem::take(&mut self.bytes);
            progress.file.clone_into(&mut self.file);
        }
        self.bytes = progress.bytes;
        if self.told.elapsed() < Watch::EVERY {
            return;
        }
        self.told = Instant::now();
        let read_mib = (self.before + self.bytes) as f64 / f64::from(1 << 20);
        let rate = read_mib / self.began.elapsed().as_secs_f64();
        let (file, position) = (progress.file, progress.position.0);
        tracing::warn!(
            "recovery: {read_mib:.0} MiB read, {rate:.0} MiB/s, at {file}, position {position}"
        );
    }
}

/// Bits from the operating system, by way of the standard library's hash keys.
pub(crate) fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn wall() -> Time {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Time(now.map_or(0, |since| since.as_micros() as u64))
}

fn take_lock(path: &Path) -> Result<File, RuntimeError> {
    let name = path.join("LOCK");
    let lock = File::create(&name).map_err(RuntimeError::file("create", &name))?;
    lock.try_lock()
        .map_err(|_| RuntimeError::InUse(path.to_path_buf()))?;
    let pid = path.join("PID");
    let write = std::fs::write(&pid, std::process::id().to_string());
    write.map_err(RuntimeError::file("write", &pid))?;
    Ok(lock)
}
