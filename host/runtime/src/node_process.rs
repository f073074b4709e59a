//! One node of a cluster in this process: starts its threads, watches over checkpoints, and ends
//! it in good order.

use crate::access::Access;
use crate::audit_log::AuditLog;
use crate::checkpoint::{CheckpointNews, Checkpoints};
use crate::cluster::{ClusterFile, NodeEntry};
use crate::credentials::{Credentials, Files};
use crate::data_dir::{DataDir, random_seed};
use crate::decoding::Decoder;
use crate::door::{Door, DoorStart};
use crate::error::RuntimeError;
use crate::frame::Hello;
use crate::fs_disk::FsDisk;
use crate::journal_file::{Journal, SharedMark};
use crate::mailbox::{Inbox, Mail, Mailboxes};
use crate::memory::{MemoryLimit, Room};
use crate::peers::{Met, PeerOut};
use crate::session_counts::SessionCounts;
use crate::shard_thread::{Listeners, ShardStart, WAKER, run};
use crate::watched::Watched;
use base::{NodeId, Prng, ShardId};
use catalog::{Placement, ProtocolKind};
use mio::net::TcpListener;
use mio::{Poll, Waker};
use node::{Shard, ShardConfig, ShardRecovered};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use storage::{Acquaintances, Checkpointer, DiskFault, Recovered};

/// Expressions and messages nest up to fixed depths (`base::codec::DEPTH_MAX`, the binder's), for
/// which this is enough without optimisation, too. What is not used takes no memory.
pub(crate) const SHARD_STACK_BYTES: usize = 8 << 20;

/// How often the durable end of the journal is noted beside it.
const NOTE_EVERY: Duration = Duration::from_secs(1);
/// Transactions that still run so long after the order to stop are cut off.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time that the last checkpoint may take.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(120);

/// How a node is started.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeOptions {
    /// Its data directory may be empty or missing: it is a new node.
    pub begin: bool,
    /// What it may have of memory; `None`: whatever there is.
    pub memory: Option<MemoryLimit>,
    /// Where it tells its metrics; `None`: nowhere.
    pub metrics: Option<SocketAddr>,
}

/// A running node.
pub struct NodeProcess {
    mark: SharedMark,
    checkpoints: Checkpoints,
    news: Receiver<CheckpointNews>,
    stop: Sender<CheckpointNews>,
    mailboxes: Mailboxes,
    shards: Vec<JoinHandle<()>>,
    flusher: JoinHandle<()>,
    journal: Journal,
    // Asks the other nodes whether they are there, as long as the node runs.
    _beats: crate::beats::Beats,
    // Takes connections of the other nodes, as long as the node runs.
    _door: Option<Door>,
    // The lock of the data directory is held as long as the node runs.
    _data: DataDirLock,
}

fn spawn_shard(index: usize, run: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let thread = std::thread::Builder::new().name(format!("shard-{index}"));
    let thread = thread.stack_size(SHARD_STACK_BYTES).spawn(run);
    thread.expect("the process can start a thread")
}

/// Tells a running node to end; may be called from any thread.
#[derive(Clone)]
pub struct Shutdown(Sender<CheckpointNews>);

impl Shutdown {
    /// Drains, writes a checkpoint, ends.
    pub fn stop(&self) {
        // A node that has ended needs no telling.
        let _ = self.0.send(CheckpointNews::Stop);
    }
}

struct DataDirLock {
    _file: std::fs::File,
}

/// What every shard of a node is started with.
#[derive(Clone)]
struct ShardSeed {
    cluster: ClusterFile,
    hello: Hello,
    journal: Journal,
    mailboxes: Mailboxes,
    checkpoints: Sender<CheckpointNews>,
    met: Met,
    decoder: Decoder,
    access: Option<Access>,
    credentials: Option<Arc<Credentials>>,
    seats_taken: Arc<AtomicU32>,
    seats: node::Seats,
    audit: Option<AuditLog>,
}

impl ShardSeed {
    /// Makes a shard of what was recovered, and runs it on this thread.
    fn run(
        self,
        id: ShardId,
        recovered: ShardRecovered,
        poll: Poll,
        inbox: Inbox,
        listeners: Option<Listeners>,
    ) {
        let cluster = &self.cluster;
        let fresh = recovered.catalog.version == 0;
        let config = config(cluster, id, self.hello.incarnation);
        let mut shard = Shard::new(config, Box::new(self.journal.clone()), recovered);
        if fresh && id == ShardId(0) {
            let nodes = cluster.nodes.len() as u16;
            let placement = Placement::new(nodes, cluster.shards);
            shard.bootstrap(placement, ProtocolKind::TwoPhase);
        }
        let peers = peers(cluster, id.node(), &self.met);
        run(ShardStart {
            shard,
            id,
            hello: self.hello,
            poll,
            inbox,
            mailboxes: self.mailboxes,
            journal: self.journal,
            peers,
            listeners,
            checkpoints: self.checkpoints,
            secrets: Prng::new(random_seed()),
            met: self.met,
            decoder: self.decoder,
            connections_max: self.cluster.connections,
            seats_taken: self.seats_taken,
            seats: self.seats,
            audit: self.audit,
            log_min_us: self
                .cluster
                .log_min_duration_ms
                .map(|ms| u64::from(ms) * 1_000),
            access: self.access,
            credentials: self.credentials,
        });
    }
}

/// The audit log of a node, if the cluster file asks for one.
fn audit_log(
    cluster: &ClusterFile,
    node: NodeId,
    folder: &Path,
) -> Result<Option<AuditLog>, RuntimeError> {
    let Some(mib) = cluster.audit_log_mib else {
        return Ok(None);
    };
    let max_bytes = u64::from(mib.max(1)) << 20;
    let started = AuditLog::start(node, folder, max_bytes);
    started
        .map(Some)
        .map_err(RuntimeError::file("start the audit log of", folder))
}

impl NodeProcess {
    /// Recovers the node's data directory, opens its sockets and starts its shards.
    ///
    /// # Errors
    /// The directory or a socket cannot be used; nothing runs then.
    pub fn start(
        cluster: &ClusterFile,
        node: NodeId,
        options: &NodeOptions,
    ) -> Result<NodeProcess, RuntimeError> {
        let entry = entry_of(cluster, node)?;
        let (sql, peer) = (listen(entry.sql)?, listen(entry.peer)?);
        let data = DataDir::open(cluster, entry, options.begin)?;
        let (path, lock, recovered) = (data.path, data.lock, data.recovered);
        let Recovered {
            manifest,
            incarnation,
            shards: recovered,
            writer,
            mark,
            ..
        } = recovered;
        let (polls, mailboxes, inboxes) = event_queues(cluster.shards, entry.sql)?;
        let beats = crate::beats::start(cluster, node, mailboxes.clone())?;
        let mut hello = Hello::new(cluster.cluster, node, incarnation, cluster.shards);
        hello.directory = mark.directory();
        let room = Room::new(options.memory);
        let (journal, flusher, mark) =
            crate::journal_file::start(writer, mark, mailboxes.clone(), room.clone());
        let (stop, news) = channel();
        let first_shard = ShardId::new(node, 0);
        let disk = FsDisk::new(&path);
        let met = Acquaintances::read(&disk)?;
        let files = Checkpointer::new(disk, manifest, incarnation, first_shard, cluster.shards);
        let in_use = checkpoint_bytes(&path);
        let own_checkpoints = Checkpoints::new(files, journal.clone(), mailboxes.clone(), in_use);
        let entrance = open_door(cluster, node, &mailboxes, peer)?;
        let seed = ShardSeed {
            cluster: cluster.clone(),
            hello,
            journal: journal.clone(),
            mailboxes: mailboxes.clone(),
            checkpoints: stop.clone(),
            met: Arc::new(Mutex::new(met)),
            decoder: Decoder::start(mailboxes.clone()),
            access: cluster.access.as_ref().map(Access::read).transpose()?,
            credentials: entrance.credentials,
            seats_taken: Arc::default(),
            seats: node::Seats(Some(Arc::new(SessionCounts::default()))),
            audit: audit_log(cluster, node, &path)?,
        };
        serve_metrics(options, &seed, &own_checkpoints)?;
        let mut listeners = Some(Listeners::new(sql, entrance.peer));
        let parts = polls.into_iter().zip(inboxes).zip(recovered);
        let mut shards = Vec::new();
        for (index, ((poll, inbox), recovered)) in parts.enumerate() {
            let id = ShardId::new(node, index as u16);
            let (seed, listeners) = (seed.clone(), listeners.take());
            let run = move || seed.run(id, recovered, poll, inbox, listeners);
            shards.push(spawn_shard(index, run));
        }
        if let Some(limit) = options.memory {
            // What recovery needed.
            (limit.give_back)();
            crate::memory::watch(limit, room, journal.clone(), mailboxes.clone());
        }
        Ok(NodeProcess {
            mark,
            checkpoints: own_checkpoints,
            news,
            stop,
            mailboxes,
            shards,
            flusher,
            journal,
            _beats: beats,
            _door: entrance.door,
            _data: DataDirLock { _file: lock },
        })
    }

    /// A handle to end the node.
    pub fn shutdown(&self) -> Shutdown {
        Shutdown(self.stop.clone())
    }

    /// Runs until [`Shutdown::stop`] is called, then drains, writes a checkpoint and ends all
    /// threads.
    ///
    /// # Errors
    /// A checkpoint could not be put into use; the data is whole all the same.
    pub fn run(mut self) -> Result<(), RuntimeError> {
        let mut noted = Instant::now();
        loop {
            let due = self.checkpoints.ask();
            match self.news.recv_timeout(until(due)) {
                Ok(CheckpointNews::Stop) => break,
                Ok(news) => {
                    self.on_news(news)?;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if noted.elapsed() >= NOTE_EVERY {
                noted = Instant::now();
                note_durable(&self.mark, &self.journal);
                if self.checkpoints.is_due() {
                    self.checkpoints.begin(false);
                }
            }
        }
        self.checkpoints.hurry();
        self.drain()?;
        self.last_checkpoint()?;
        self.mailboxes.all(|| Mail::Stop);
        for shard in self.shards {
            shard.join().expect("a shard that panics ends the process");
        }
        self.journal.stop();
        self.flusher
            .join()
            .expect("a flusher that panics ends the process");
        note_durable(&self.mark, &self.journal);
        Ok(())
    }

    fn on_news(&mut self, news: CheckpointNews) -> Result<bool, RuntimeError> {
        match news {
            CheckpointNews::Bytes { index, bytes } => self.checkpoints.on_bytes(index, &bytes),
            CheckpointNews::End {
                shard,
                start,
                journal_from,
                catalog,
                clock_bound,
            } => {
                self.checkpoints.checkpointer.note(&catalog, clock_bound);
                self.checkpoints.on_end(shard, start, journal_from)?;
            }
            CheckpointNews::Drained => return Ok(true),
            CheckpointNews::Stop => {}
        }
        Ok(false)
    }

    /// Lets running transactions end.
    fn drain(&mut self) -> Result<(), RuntimeError> {
        self.mailboxes.all(|| Mail::Drain);
        let until = Instant::now() + DRAIN_TIMEOUT;
        let mut left = self.mailboxes.len();
        while left > 0 {
            self.checkpoints.ask();
            let timeout = until.saturating_duration_since(Instant::now());
            match self.news.recv_timeout(timeout) {
                Ok(news) => left -= usize::from(self.on_news(news)?),
                Err(_) => {
                    tracing::warn!("some transactions are cut off");
                    break;
                }
            }
        }
        Ok(())
    }

    /// Writes a checkpoint, so that the next start has little to replay. Without room for one the
    /// journal has it all.
    fn last_checkpoint(&mut self) -> Result<(), RuntimeError> {
        let until = Instant::now() + CHECKPOINT_TIMEOUT;
        if !self.wait_checkpoint(until)? {
            return Ok(());
        }
        self.checkpoints.begin(true);
        self.wait_checkpoint(until)?;
        Ok(())
    }

    /// Waits for the end of the running checkpoint, if one runs; whether it came in time.
    fn wait_checkpoint(&mut self, until: Instant) -> Result<bool, RuntimeError> {
        while self.checkpoints.is_running() {
            self.checkpoints.ask();
            let timeout = until.saturating_duration_since(Instant::now());
            match self.news.recv_timeout(timeout) {
                Ok(news) => {
                    self.on_news(news)?;
                }
                Err(_) => {
                    tracing::warn!("the last checkpoint takes too long; the journal has it all");
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// How long the main thread may wait for news if something is `due`.
fn until(due: Option<Instant>) -> Duration {
    let longest = Duration::from_secs(1);
    due.map_or(longest, |at| {
        at.saturating_duration_since(Instant::now()).min(longest)
    })
}

/// Bytes of the checkpoint in a data directory; 0 if it cannot be told.
fn checkpoint_bytes(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let parts = entries.filter(|entry| entry.path().extension().is_some_and(|e| e == "ckp"));
    let lengths = parts.filter_map(|entry| entry.metadata().ok());
    lengths.map(|found| found.len()).sum()
}

/// Notes how far the journal is durable: it must not be shorter at the next start.
fn note_durable(mark: &SharedMark, journal: &Journal) {
    let durable = journal.durable();
    let mut mark = mark.lock().expect("no thread panics while it holds it");
    match mark.note(durable) {
        Ok(()) => {}
        Err(error) if error.fault == DiskFault::NoRoom => tracing::warn!("{error}"),
        Err(error) => crate::journal_file::fatal(&error.to_string()),
    }
}

/// What shards wait for events with, and how they are reached.
fn event_queues(
    shards: u16,
    address: SocketAddr,
) -> Result<(Vec<Poll>, Mailboxes, Vec<Inbox>), RuntimeError> {
    let polls: Vec<Poll> = (0..shards)
        .map(|_| Poll::new().map_err(RuntimeError::socket("poll", address)))
        .collect::<Result<_, _>>()?;
    let waker = |poll: &Poll| Waker::new(poll.registry(), WAKER).map(Arc::new);
    let wakers = polls.iter().map(waker).collect::<Result<_, _>>();
    let wakers = wakers.map_err(RuntimeError::socket("wake", address))?;
    let (mailboxes, inboxes) = Mailboxes::new(wakers);
    Ok((polls, mailboxes, inboxes))
}

/// Tells a system that watches the node what there is to tell, if that is asked for.
fn serve_metrics(
    options: &NodeOptions,
    seed: &ShardSeed,
    checkpoints: &Checkpoints,
) -> Result<(), RuntimeError> {
    let Some(address) = options.metrics else {
        return Ok(());
    };
    let watched = Watched {
        first_shard: ShardId::new(seed.hello.node, 0),
        incarnation: seed.hello.incarnation,
        connections_max: seed.cluster.connections,
        seats_taken: seed.seats_taken.clone(),
        journal: seed.journal.clone(),
        checkpoints: checkpoints.gauges.clone(),
        mailboxes: seed.mailboxes.clone(),
    };
    watched.serve(address)
}

/// Where other nodes come in.
struct Entrance {
    /// What the node shows.
    credentials: Option<Arc<Credentials>>,
    /// Where others show theirs.
    door: Option<Door>,
    /// Without certificates the first shard accepts the others itself.
    peer: Option<TcpListener>,
}

fn open_door(
    cluster: &ClusterFile,
    node: NodeId,
    mailboxes: &Mailboxes,
    listener: TcpListener,
) -> Result<Entrance, RuntimeError> {
    let Some(entry) = &cluster.peers else {
        return Ok(Entrance {
            credentials: None,
            door: None,
            peer: Some(listener),
        });
    };
    let files = Files::new(entry, cluster.cluster, node);
    // What is changed between the two is read once more.
    let changed = files.changed();
    let credentials = Arc::new(files.read()?);
    let nodes = cluster.nodes.iter();
    let door = Door::start(DoorStart {
        listener,
        files,
        changed,
        credentials: credentials.clone(),
        nodes: nodes.map(|node| node.peer.ip().to_canonical()).collect(),
        mailboxes: mailboxes.clone(),
    })?;
    Ok(Entrance {
        credentials: Some(credentials),
        door: Some(door),
        peer: None,
    })
}

fn entry_of(cluster: &ClusterFile, node: NodeId) -> Result<&NodeEntry, RuntimeError> {
    let none = || RuntimeError::Foreign(format!("the cluster file has no node {node}"));
    cluster.node(node).ok_or_else(none)
}

fn listen(address: SocketAddr) -> Result<TcpListener, RuntimeError> {
    TcpListener::bind(address).map_err(RuntimeError::socket("listen on", address))
}

fn config(cluster: &ClusterFile, shard: ShardId, incarnation: u32) -> ShardConfig {
    ShardConfig {
        shard,
        nodes: cluster
            .nodes
            .iter()
            .map(|n| (NodeId(n.id), n.sql.to_string()))
            .collect(),
        shards_per_node: cluster.shards,
        incarnation,
        cluster: cluster.cluster,
        seed: random_seed(),
        stopwatch: crate::gauges::stopwatch,
        barrier: crate::barrier::barrier,
    }
}

fn peers(cluster: &ClusterFile, own: NodeId, met: &Met) -> Vec<PeerOut> {
    let others = cluster.nodes.iter().filter(|node| node.id != own.0);
    let own = cluster.nodes.iter().find(|node| node.id == own.0);
    let from = own.expect("a node is in its cluster file").peer.ip();
    others
        .map(|node| PeerOut::new(NodeId(node.id), node.peer, from, met.clone()))
        .collect()
}
