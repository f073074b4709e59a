//! Reading a node's files at its start.

use crate::disk::{Disk, DiskFault};
use crate::error::StorageError;
use crate::mark::{MARK_NAME, Mark, MarkWriter, read_mark};
use crate::presence::{Missing, Presence, judge};
use crate::writer::{JournalLimits, JournalWriter};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::{NodeId, Planted, Position, ShardId, Time, Ts, is_planted};
use catalog::Catalog;
use journal::checkpoint::{checkpoint_name, is_checkpoint_name};
use journal::manifest::MANIFEST_NAME;
use journal::reader::Torn;
use journal::segment::parse_segment_name;
use journal::{
    CheckpointHeader, CheckpointReader, CheckpointTables, JournalError, Manifest, Reader, Record,
    RecoveredShard, Recovery, Replay, ReplayStart, frame,
};
use store::{Store, Write};

/// How far ahead of the wall clock the first clock bound of a life lies: 1 s.
const BOUND_AHEAD_US: u64 = 1_000_000;
/// Longest wait for the wall clock to pass the bound of former lives. A clock that was set back by
/// more is not waited for.
const WAIT_US_MAX: u64 = 2_000_000;

/// Bytes of the journal between two reports of progress.
const PROGRESS_BYTES: u64 = 1 << 20;

/// Whose files these must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Number of the cluster.
    pub cluster: u64,
    /// The node.
    pub node: NodeId,
    /// Its shards.
    pub shards: u16,
    /// It may start without any file, as a new node.
    pub begin: bool,
    /// Number of the directory if it gets one now; another one for each directory.
    pub directory: u64,
}

/// How far the reading has come; told now and then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress<'a> {
    /// The file that is being read.
    pub file: &'a str,
    /// Bytes of it that were read.
    pub bytes: u64,
    /// Position in the journal; 0 while checkpoints are read.
    pub position: Position,
}

/// Files read to their end.
pub struct Recovered<D: Disk> {
    /// The manifest as it stands on disk.
    pub manifest: Manifest,
    /// Starts of this node, this one included.
    pub incarnation: u32,
    /// What each shard continues from, by index.
    pub shards: Vec<RecoveredShard<Arc<Catalog>>>,
    /// The open end of the journal; this life's `NodeStart` is durable.
    pub writer: JournalWriter<D>,
    /// The mark, which knows of this life.
    pub mark: MarkWriter<D>,
    /// The torn end that was cut.
    pub torn: Option<Torn>,
    /// Clocks start above this: no clock of a former life has shown more.
    pub clock_floor: Ts,
}

impl<D: Disk> Recovered<D> {
    /// Microseconds until the wall clock, which shows `now`, has passed every timestamp of former
    /// lives; the node serves no client before that.
    ///
    /// Clocks start above their bound and so ahead of the wall clock. Until it has caught up, two
    /// shards would not agree about the time, and a snapshot read by way of one would miss what
    /// the other has acknowledged seconds ago.
    pub fn wait_us(&self, now: Time) -> u64 {
        self.clock_floor.time().since(now).min(WAIT_US_MAX)
    }
}

/// Recovers the node, and journals this start. `now` is the wall time.
///
/// # Errors
/// The files belong to another cluster or node, are damaged (file and offset are named), or some
/// are missing; nothing is changed then except that a torn header may be removed.
pub fn open<D: Disk>(
    disk: &D,
    identity: Identity,
    limits: JournalLimits,
    now: Time,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Recovered<D>, StorageError> {
    let Identity { cluster, node, .. } = identity;
    let written = read_manifest(disk, identity)?;
    let mark = own_mark(disk, identity)?;
    let from = written.as_ref().map(|manifest| manifest.journal_from);
    let mut segments = list_segments(disk)?;
    look(disk, identity, from, &segments, mark.is_some())?;
    let manifest = written.unwrap_or_else(|| new_manifest(identity));
    segments.drain(..first_needed(&segments, manifest.journal_from));
    let mut loading = Loading::new(disk, identity, &manifest, progress)?;
    let tail = loading.replay(disk, identity, &segments, progress)?;
    let (recovery, stores) = loading.finish();
    if recovery.incarnation == 0 && !identity.begin {
        // A first start that ended before it was durable: nothing has ever been here.
        return Err(missing(disk, Missing::All));
    }
    check_length(disk, &manifest, mark.as_ref(), &tail)?;
    let incarnation = recovery.incarnation + 1;
    let bound = first_bound(now, recovery.clock_floor);
    let mut writer = JournalWriter::open(disk, limits, (cluster, node), tail.end, tail.last)?;
    writer.write(&first_records(incarnation, bound, &recovery))?;
    writer.sync()?;
    disk.sync_directory()?;
    let mark = mark.unwrap_or_else(|| Mark::first((cluster, node), identity.directory));
    let mark = MarkWriter::open(disk, mark, incarnation, writer.position())?;
    let catalog = newest_catalog(&manifest, &recovery)?;
    let clock_floor = recovery.clock_floor;
    let shards = split(recovery, stores, &catalog, bound);
    Ok(Recovered {
        clock_floor,
        manifest,
        incarnation,
        shards,
        writer,
        mark,
        torn: tail.torn,
    })
}

/// Clocks of this life start above everything that any clock of this node may have shown.
fn first_bound(now: Time, floor: Ts) -> Ts {
    let ahead = |time: Time| Ts::from_time(time.after(BOUND_AHEAD_US));
    ahead(now).max(ahead(floor.time()))
}

/// The records that begin a life.
fn first_records(incarnation: u32, clock_bound: Ts, recovery: &Recovery) -> Vec<u8> {
    let start = Record::NodeStart {
        incarnation,
        clock_bound,
        view: 1,
    };
    let mut bytes = Vec::new();
    for record in core::iter::once(&start).chain(&recovery.settled) {
        let mut payload = Vec::new();
        record.encode(&mut payload);
        frame(&payload, &mut bytes);
    }
    bytes
}

/// The manifest of a node that has written no checkpoint.
fn new_manifest(identity: Identity) -> Manifest {
    Manifest {
        cluster: identity.cluster,
        node: identity.node,
        ..Manifest::default()
    }
}

/// Refuses files that are not those of this node.
fn check_owner(file: &str, identity: Identity, found: (NodeId, u64)) -> Result<(), StorageError> {
    let expected = (identity.node, identity.cluster);
    if found == expected {
        return Ok(());
    }
    let file = file.into();
    Err(StorageError::Foreign {
        file,
        found,
        expected,
    })
}

fn own_mark<D: Disk>(disk: &D, identity: Identity) -> Result<Option<Mark>, StorageError> {
    let mark = read_mark(disk)?;
    if let Some(mark) = &mark {
        let file = disk.describe(MARK_NAME);
        check_owner(&file, identity, (mark.node, mark.cluster))?;
    }
    Ok(mark)
}

/// Whether all files are there that must be.
fn look<D: Disk>(
    disk: &D,
    identity: Identity,
    manifest: Option<Position>,
    segments: &[(Position, String)],
    marked: bool,
) -> Result<(), StorageError> {
    let found = Presence {
        manifest,
        first_segment: segments.first().map(|(start, _)| *start),
        checkpoints: disk.list()?.iter().any(|name| is_checkpoint_name(name)),
        marked,
    };
    let judged = judge(found, identity.begin);
    judged.map(|_| ()).map_err(|what| missing(disk, what))
}

fn missing<D: Disk>(disk: &D, what: Missing) -> StorageError {
    StorageError::Missing {
        directory: disk.describe(""),
        what,
    }
}

/// Refuses a journal that ends before a position to which it was durable.
fn check_length<D: Disk>(
    disk: &D,
    manifest: &Manifest,
    mark: Option<&Mark>,
    tail: &End,
) -> Result<(), StorageError> {
    let starts = manifest.shards.iter().map(|(_, start)| *start);
    let known = starts.chain(mark.map(|mark| mark.position)).max();
    match known {
        Some(known) if known > tail.end => {
            let file = tail.last.as_ref().map_or("", |(name, _)| name);
            Err(StorageError::Cut {
                file: disk.describe(file),
                end: tail.end,
                known,
            })
        }
        _ => Ok(()),
    }
}

fn read_manifest<D: Disk>(disk: &D, identity: Identity) -> Result<Option<Manifest>, StorageError> {
    let file = disk.describe(MANIFEST_NAME);
    let manifest = match disk.read_all(MANIFEST_NAME) {
        Ok(bytes) => Manifest::decode(&file, &bytes)?,
        Err(error) if error.fault == DiskFault::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    check_owner(&file, identity, (manifest.node, manifest.cluster))?;
    let found = manifest.shards.len();
    if found != 0 && found != usize::from(identity.shards) {
        return Err(StorageError::Shards {
            file,
            found,
            expected: identity.shards,
        });
    }
    Ok(Some(manifest))
}

/// All segments in order.
fn list_segments<D: Disk>(disk: &D) -> Result<Vec<(Position, String)>, StorageError> {
    let mut segments: Vec<(Position, String)> = Vec::new();
    for name in disk.list()? {
        if let Some(start) = parse_segment_name(&name) {
            segments.push((start, name));
        }
    }
    segments.sort();
    Ok(segments)
}

/// Index of the segment that holds `from`.
fn first_needed(segments: &[(Position, String)], from: Position) -> usize {
    let at = segments.iter().rposition(|(start, _)| *start <= from);
    at.unwrap_or(0)
}

/// Where the journal goes on.
struct End {
    end: Position,
    /// The last segment and the length of what is whole in it.
    last: Option<(String, u64)>,
    torn: Option<Torn>,
}

/// Rows and promises while they are read.
struct Loading {
    node: NodeId,
    stores: Vec<Store>,
    replay: Replay,
}

impl Loading {
    fn new<D: Disk>(
        disk: &D,
        identity: Identity,
        manifest: &Manifest,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Loading, StorageError> {
        let mut stores: Vec<Store> = (0..identity.shards).map(|_| Store::new()).collect();
        let mut starts = Vec::new();
        for (shard, start) in &manifest.shards {
            let store = &mut stores[usize::from(shard.index())];
            let name = checkpoint_name(manifest.number, *shard);
            let (header, tables) = load_checkpoint(disk, &name, store, progress)?;
            header
                .check(identity.cluster, *shard, (manifest.number, *start))
                .map_err(|fault| JournalError::new(&disk.describe(&name), 0, fault))?;
            starts.push((*shard, *start, tables));
        }
        let replay = Replay::new(ReplayStart {
            node: identity.node,
            shards: starts,
            incarnation: manifest.incarnation,
            clock_bound: manifest.clock_bound,
            catalog_version: manifest.catalog_version,
        });
        Ok(Loading {
            node: identity.node,
            stores,
            replay,
        })
    }

    /// Reads all segments.
    fn replay<D: Disk>(
        &mut self,
        disk: &D,
        identity: Identity,
        segments: &[(Position, String)],
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<End, StorageError> {
        let mut reader = Reader::new(identity.cluster, identity.node);
        let Loading { stores, replay, .. } = self;
        let mut redo = redo_into(self.node, stores);
        let mut last = None;
        for (index, (start, name)) in segments.iter().enumerate() {
            let bytes = disk.read_all(name)?;
            let is_last = index + 1 == segments.len();
            let mut told = 0;
            reader.segment(&disk.describe(name), &bytes, is_last, &mut |entry| {
                let (position, bytes) = (entry.end, entry.end.0.saturating_sub(start.0));
                if bytes >= told + PROGRESS_BYTES {
                    told = bytes;
                    progress(Progress {
                        file: name,
                        bytes,
                        position,
                    });
                }
                replay.on_record(entry, &mut redo)
            })?;
            last = Some((name.clone(), bytes.len() as u64));
        }
        let tail = reader.finish();
        if let (Some(torn), Some((name, length))) = (&tail.torn, &mut last)
            && !is_planted(Planted::TornTailAccepted)
        {
            *length = torn.offset;
            if torn.offset == 0 {
                disk.remove(name)?;
                last = None;
            }
        }
        Ok(End {
            end: tail.end,
            last,
            torn: tail.torn,
        })
    }

    fn finish(self) -> (Recovery, Vec<Store>) {
        let Loading {
            node,
            mut stores,
            replay,
        } = self;
        let recovery = replay.finish(&mut redo_into(node, &mut stores));
        stores.iter_mut().for_each(Store::end_redo);
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
            if is_planted(Planted::DeleteNotReplayed) && *write == Write::Delete {
                continue;
            }
            match redo.any_order {
                true => store.redo_in_any_order(key, write, redo.commit_ts),
                false => store.redo(key, write, redo.commit_ts),
            };
        }
    }
}

fn load_checkpoint<D: Disk>(
    disk: &D,
    name: &str,
    store: &mut Store,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(CheckpointHeader, CheckpointTables), StorageError> {
    let mut reader = CheckpointReader::new(&disk.describe(name));
    let mut result = Ok(());
    let mut bytes = 0;
    disk.read(name, &mut |piece| {
        bytes += piece.len() as u64;
        progress(Progress {
            file: name,
            bytes,
            position: Position(0),
        });
        if result.is_ok() {
            result = reader.push(piece, &mut |row| store.load(row));
        }
    })?;
    result?;
    Ok(reader.finish()?)
}

fn newest_catalog(manifest: &Manifest, recovery: &Recovery) -> Result<Arc<Catalog>, StorageError> {
    let bytes = recovery
        .catalog
        .last()
        .map_or(&manifest.catalog, |(_, bytes)| bytes);
    if bytes.is_empty() {
        return Ok(Arc::default());
    }
    let catalog = base::codec::decode(bytes).map_err(StorageError::Catalog)?;
    Ok(Arc::new(catalog))
}

/// Deals what was recovered out to the shards.
fn split(
    recovery: Recovery,
    stores: Vec<Store>,
    catalog: &Arc<Catalog>,
    bound: Ts,
) -> Vec<RecoveredShard<Arc<Catalog>>> {
    let mut shards: Vec<RecoveredShard<Arc<Catalog>>> = stores
        .into_iter()
        .map(|store| RecoveredShard {
            store,
            catalog: catalog.clone(),
            clock_floor: if is_planted(Planted::ClockBoundIgnored) {
                Ts::ZERO
            } else {
                recovery.clock_floor
            },
            clock_bound: bound,
            tables: CheckpointTables::default(),
            vote: None,
        })
        .collect();
    shards[0].vote = recovery.vote;
    let index = |shard: ShardId| usize::from(shard.index());
    for held in recovery.held {
        shards[index(held.shard)].tables.prepared.push(held);
    }
    for owed in recovery.owed {
        shards[index(owed.txn.shard)].tables.owed.push(owed);
    }
    for unfolded in recovery.unfolded {
        shards[index(unfolded.shard)].tables.unfolded.push(unfolded);
    }
    for (shard, ownership) in recovery.ownership {
        shards[index(shard)].tables.ownership = ownership;
    }
    shards
}
