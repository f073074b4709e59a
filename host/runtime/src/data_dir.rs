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
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use storage::{Identity, JournalLimits, Recovered};

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
    /// Takes the directory (creating it if it is missing), recovers, and journals this start.
    ///
    /// # Errors
    /// The directory is in use, belongs to another cluster or node, or is damaged (the message
    /// names file and offset); nothing is changed then except that a torn tail may be cut.
    pub fn open(cluster: &ClusterFile, entry: &NodeEntry) -> Result<DataDir, RuntimeError> {
        let path = entry.data.clone();
        std::fs::create_dir_all(&path).map_err(RuntimeError::file("create", &path))?;
        let lock = take_lock(&path)?;
        let identity = Identity {
            cluster: cluster.cluster,
            node: NodeId(entry.id),
            shards: cluster.shards,
        };
        let disk = FsDisk::new(&path);
        let recovered = storage::open(&disk, identity, JournalLimits::default(), wall())?;
        std::thread::sleep(Duration::from_micros(recovered.wait_us(wall())));
        if let Some(torn) = &recovered.torn {
            tracing::info!(file = %torn.file, offset = torn.offset, "end of the journal");
        }
        Ok(DataDir {
            path,
            lock,
            recovered,
        })
    }
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
