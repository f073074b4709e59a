//! The data directory of a node: taking it, reading it at start, and its layout.
//!
//! ```text
//! LOCK                     held while a process uses the directory
//! PID                      of that process
//! MANIFEST                 which checkpoint is current
//! checkpoint-NUMBER-SHARD  rows of one shard
//! journal-POSITION         segments
//! ```

use crate::cluster::{ClusterFile, NodeEntry};
use crate::error::RuntimeError;
use crate::journal_file::{JournalWriter, sync_directory};
use base::{NodeId, Position, ShardId, Ts};
use catalog::Catalog;
use journal::checkpoint::checkpoint_name;
use journal::manifest::MANIFEST_NAME;
use journal::segment::parse_segment_name;
use journal::{CheckpointReader, Manifest, Reader, Record, Recovery, Replay, ReplayStart, frame};
use node::ShardRecovered;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use store::Store;

/// How far ahead of the wall clock the first clock bound of a life lies: 4 s.
const BOUND_AHEAD_US: u64 = 4_000_000;

/// A data directory that this process owns, read to its end.
pub struct DataDir {
    /// The directory.
    pub path: PathBuf,
    /// Locked as long as it is open.
    pub lock: File,
    /// The manifest as it stands on disk.
    pub manifest: Manifest,
    /// Starts of this node, this one included.
    pub incarnation: u32,
    /// What each shard continues from, by index.
    pub shards: Vec<ShardRecovered>,
    /// The open end of the journal; this life's `NodeStart` is durable.
    pub writer: JournalWriter,
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
        let node = NodeId(entry.id);
        let manifest = read_manifest(&path, cluster, node)?;
        let mut loading = Loading::new(cluster, node, &path, &manifest)?;
        let segments = list_segments(&path, manifest.journal_from)?;
        let (tail, last) = loading.replay(cluster.cluster, node, &segments)?;
        let (recovery, stores) = loading.finish();
        let (incarnation, bound) = (recovery.incarnation + 1, first_bound(recovery.clock_floor));
        let mut writer = JournalWriter::open(&path, cluster.cluster, node, tail, last)?;
        let mut bytes = Vec::new();
        let start = Record::NodeStart {
            incarnation,
            clock_bound: bound,
            view: 1,
        };
        for record in core::iter::once(&start).chain(&recovery.settled) {
            let mut payload = Vec::new();
            record.encode(&mut payload);
            frame(&payload, &mut bytes);
        }
        writer.write(&bytes)?;
        sync_directory(&path)?;
        let catalog = newest_catalog(&manifest, &recovery)?;
        let shards = split(recovery, stores, &catalog, bound);
        Ok(DataDir {
            path,
            lock,
            manifest,
            incarnation,
            shards,
            writer,
        })
    }
}

/// Clocks of this life start above everything that any clock of this node may have shown.
fn first_bound(floor: Ts) -> Ts {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_micros() as u64);
    let ahead = |time: base::Time| Ts::from_time(time.after(BOUND_AHEAD_US));
    ahead(base::Time(now)).max(ahead(floor.time()))
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

fn read_manifest(
    path: &Path,
    cluster: &ClusterFile,
    node: NodeId,
) -> Result<Manifest, RuntimeError> {
    let name = path.join(MANIFEST_NAME);
    let manifest = match std::fs::read(&name) {
        Ok(bytes) => Manifest::decode(&name.to_string_lossy(), &bytes)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Manifest {
            cluster: cluster.cluster,
            node,
            ..Manifest::default()
        },
        Err(error) => return Err(RuntimeError::file("read", &name)(error)),
    };
    if manifest.cluster != cluster.cluster || manifest.node != node {
        return Err(RuntimeError::Foreign(format!(
            "{} belongs to node {} of cluster {}, not to node {node} of cluster {}",
            path.display(),
            manifest.node,
            manifest.cluster,
            cluster.cluster
        )));
    }
    let shards = manifest.shards.len();
    if shards != 0 && shards != usize::from(cluster.shards) {
        return Err(RuntimeError::Foreign(format!(
            "{} holds {shards} shards, the cluster file says {}; the number cannot change",
            path.display(),
            cluster.shards
        )));
    }
    Ok(manifest)
}

/// Segments from the one that holds `from` on, in order.
fn list_segments(path: &Path, from: Position) -> Result<Vec<(Position, PathBuf)>, RuntimeError> {
    let entries = std::fs::read_dir(path).map_err(RuntimeError::file("list", path))?;
    let mut segments = Vec::new();
    for entry in entries {
        let entry = entry.map_err(RuntimeError::file("list", path))?;
        if let Some(start) = entry.file_name().to_str().and_then(parse_segment_name) {
            segments.push((start, entry.path()));
        }
    }
    segments.sort();
    let first = segments
        .iter()
        .rposition(|(start, _)| *start <= from)
        .unwrap_or(0);
    Ok(segments.split_off(first))
}

/// Rows and promises while they are read.
struct Loading {
    node: NodeId,
    stores: Vec<Store>,
    replay: Replay,
}

impl Loading {
    fn new(
        cluster: &ClusterFile,
        node: NodeId,
        path: &Path,
        manifest: &Manifest,
    ) -> Result<Loading, RuntimeError> {
        let mut stores: Vec<Store> = (0..cluster.shards).map(|_| Store::new()).collect();
        let mut starts = Vec::new();
        for (shard, start) in &manifest.shards {
            let store = &mut stores[usize::from(shard.index())];
            let tables =
                load_checkpoint(&path.join(checkpoint_name(manifest.number, *shard)), store)?;
            starts.push((*shard, *start, tables));
        }
        let replay = Replay::new(ReplayStart {
            node,
            shards: starts,
            incarnation: manifest.incarnation,
            clock_bound: manifest.clock_bound,
            catalog_version: manifest.catalog_version,
        });
        Ok(Loading {
            node,
            stores,
            replay,
        })
    }

    /// Reads all segments; the end of the journal and the segment to go on in.
    fn replay(
        &mut self,
        cluster: u64,
        node: NodeId,
        segments: &[(Position, PathBuf)],
    ) -> Result<(Position, Option<(PathBuf, u64)>), RuntimeError> {
        let mut reader = Reader::new(cluster, node);
        let Loading { stores, replay, .. } = self;
        let mut redo = redo_into(self.node, stores);
        let mut last = None;
        for (index, (_, path)) in segments.iter().enumerate() {
            let bytes = std::fs::read(path).map_err(RuntimeError::file("read", path))?;
            let name = path.to_string_lossy();
            let is_last = index + 1 == segments.len();
            reader.segment(&name, &bytes, is_last, &mut |entry| {
                replay.on_record(entry, &mut redo)
            })?;
            last = Some((path.clone(), bytes.len() as u64));
        }
        let tail = reader.finish();
        if let (Some(torn), Some((path, length))) = (&tail.torn, &mut last) {
            tracing::info!(file = %path.display(), offset = torn.offset, "end of the journal");
            *length = torn.offset;
            if torn.offset == 0 {
                std::fs::remove_file(&*path).map_err(RuntimeError::file("remove", path))?;
                last = None;
            }
        }
        Ok((tail.end, last))
    }

    fn finish(self) -> (Recovery, Vec<Store>) {
        let Loading {
            node,
            mut stores,
            replay,
        } = self;
        let recovery = replay.finish(&mut redo_into(node, &mut stores));
        (recovery, stores)
    }
}

fn redo_into(node: NodeId, stores: &mut [Store]) -> impl FnMut(journal::Redo) + '_ {
    move |redo| {
        assert_eq!(
            redo.shard.node(),
            node,
            "a journal holds writes of its own node only"
        );
        let store = &mut stores[usize::from(redo.shard.index())];
        for (key, write) in &redo.writes {
            store.redo(key.index, key.slot, &key.bytes, write, redo.commit_ts);
        }
    }
}

fn load_checkpoint(
    path: &Path,
    store: &mut Store,
) -> Result<journal::CheckpointTables, RuntimeError> {
    let mut file = File::open(path).map_err(RuntimeError::file("open", path))?;
    let mut reader = CheckpointReader::new(&path.to_string_lossy());
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = file
            .read(&mut buffer)
            .map_err(RuntimeError::file("read", path))?;
        if count == 0 {
            return Ok(reader.finish()?.1);
        }
        reader.push(&buffer[..count], &mut |row| store.load(row))?;
    }
}

fn newest_catalog(manifest: &Manifest, recovery: &Recovery) -> Result<Arc<Catalog>, RuntimeError> {
    let bytes = recovery
        .catalog
        .last()
        .map_or(&manifest.catalog, |(_, bytes)| bytes);
    if bytes.is_empty() {
        return Ok(Arc::default());
    }
    let catalog = base::codec::decode(bytes);
    let wrong = |error| RuntimeError::Foreign(format!("the journaled catalog is damaged: {error}"));
    Ok(Arc::new(catalog.map_err(wrong)?))
}

/// Deals what was recovered out to the shards.
fn split(
    recovery: Recovery,
    stores: Vec<Store>,
    catalog: &Arc<Catalog>,
    bound: Ts,
) -> Vec<ShardRecovered> {
    let mut shards: Vec<ShardRecovered> = stores
        .into_iter()
        .map(|store| ShardRecovered {
            store,
            catalog: catalog.clone(),
            clock_floor: recovery.clock_floor,
            clock_bound: bound,
            in_doubt: two_phase::InDoubt::default(),
        })
        .collect();
    let index = |shard: ShardId| usize::from(shard.index());
    for held in recovery.held {
        shards[index(held.shard)].in_doubt.held.push(held);
    }
    for owed in recovery.owed {
        shards[index(owed.txn.shard)].in_doubt.owed.push(owed);
    }
    shards
}
