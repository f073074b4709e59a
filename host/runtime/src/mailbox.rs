//! How the threads of one node reach each other.

use crate::credentials::Credentials;
use crate::decoding::LongMessage;
use crate::door::Proved;
use base::{NodeId, ShardId};
use mio::Waker;
use mio::net::TcpStream;
use node::{Ends, Link, Memory, Message, PreparationResult, Report};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::sync::{Arc, Mutex, MutexGuard};

/// What a shard thread finds in its mailbox.
pub(crate) enum Mail {
    /// From a shard of this node.
    Message(ShardId, Message),
    /// An accepted client connection.
    Client(TcpStream, Seat),
    /// An accepted connection of another node, before its hello; with certificates, proved.
    Peer(TcpStream, Option<Box<Proved>>),
    /// The certificates of nodes have changed.
    Credentials(Arc<Credentials>),
    /// From another node, read by another shard's thread.
    FromPeer(ShardId, Message),
    /// A long statement of a session of this shard has been parsed or planned.
    Prepared(Box<PreparationResult>),
    /// The program of a message of another node has been decoded.
    Decoded(Box<LongMessage>),
    /// The disk has no room for more (or has again).
    DiskFull(bool),
    /// Memory that the shard has freed goes back to the system by this call.
    GiveBack(fn()),
    /// The memory of the node has been measured.
    Memory(Memory),
    /// Begin a checkpoint.
    Checkpoint(u64),
    /// Write this many bytes of it.
    CheckpointPiece(usize),
    /// To the first shard: the sender serves clients from now on.
    Ready,
    /// Tell a system that watches the node what this shard has to tell.
    Report(SyncSender<(usize, Box<Report>)>),
    /// A node does not answer any more.
    Silent(NodeId),
    /// It does again.
    Heard(NodeId),
    /// Refuse new work, end what runs.
    Drain,
    /// End the thread.
    Stop,
}

/// A client's place among the connections of the node; given back when it is dropped.
pub(crate) struct Seat {
    taken: Arc<AtomicU32>,
    max: u32,
    /// There was none left.
    pub(crate) is_refused: bool,
}

impl Seat {
    /// One of `max`, of which `taken` counts those in use.
    pub(crate) fn take(taken: &Arc<AtomicU32>, max: u32) -> Seat {
        let before = taken.fetch_add(1, Ordering::AcqRel);
        Seat {
            taken: taken.clone(),
            max,
            is_refused: before >= max,
        }
    }

    /// What the session is told of the connection.
    pub(crate) fn link(&self, stream: &TcpStream) -> Link {
        let ends = stream.peer_addr().ok().zip(stream.local_addr().ok());
        Link {
            ends: ends.map(|(client, server)| Ends {
                client: client.ip().to_string(),
                client_port: client.port(),
                server: server.ip().to_string(),
                server_port: server.port(),
            }),
            connections_max: self.max,
            log_min_us: None,
            is_refused: self.is_refused,
            ..Link::default()
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

struct Mailbox {
    sender: Sender<Mail>,
    /// How much was sent.
    arrivals: Arc<AtomicU64>,
    waker: Arc<Waker>,
    /// The thread may be asleep in poll: it must be woken.
    asleep: Arc<AtomicBool>,
    /// The thread holds effects until the journal is durable.
    waiting: Arc<AtomicBool>,
}

/// The mailboxes of all shards of a node, by shard index.
#[derive(Clone)]
pub(crate) struct Mailboxes {
    all: Arc<Vec<Mailbox>>,
    /// Secrets for cancel requests, by the number of the session.
    secrets: Arc<Mutex<BTreeMap<i32, i32>>>,
}

/// The receiving end of one shard.
pub(crate) struct Inbox {
    /// Taken by the shard's thread.
    pub(crate) receiver: Option<Receiver<Mail>>,
    pub(crate) arrivals: Arc<AtomicU64>,
    pub(crate) asleep: Arc<AtomicBool>,
    pub(crate) waiting: Arc<AtomicBool>,
}

impl Mailboxes {
    pub(crate) fn new(wakers: Vec<Arc<Waker>>) -> (Mailboxes, Vec<Inbox>) {
        let mut all = Vec::new();
        let mut inboxes = Vec::new();
        for waker in wakers {
            let (sender, receiver) = channel();
            let arrivals = Arc::<AtomicU64>::default();
            let asleep = Arc::new(AtomicBool::new(false));
            let waiting = Arc::new(AtomicBool::new(false));
            all.push(Mailbox {
                sender,
                arrivals: arrivals.clone(),
                waker,
                asleep: asleep.clone(),
                waiting: waiting.clone(),
            });
            inboxes.push(Inbox {
                receiver: Some(receiver),
                arrivals,
                asleep,
                waiting,
            });
        }
        let mailboxes = Mailboxes {
            all: Arc::new(all),
            secrets: Arc::default(),
        };
        (mailboxes, inboxes)
    }

    /// A session has begun.
    pub(crate) fn note_secret(&self, pid: i32, secret: i32) {
        self.secrets().insert(pid, secret);
    }

    /// A session has ended.
    pub(crate) fn forget_secret(&self, pid: i32) {
        self.secrets().remove(&pid);
    }

    /// The secret of a session of this node.
    pub(crate) fn secret_of(&self, pid: i32) -> Option<i32> {
        self.secrets().get(&pid).copied()
    }

    fn secrets(&self) -> MutexGuard<'_, BTreeMap<i32, i32>> {
        self.secrets.lock().expect("a panic ends the process")
    }

    /// Number of shards.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Sends to the shard with this index. A shard that has ended loses its mail: the node is
    /// stopping.
    pub(crate) fn send(&self, index: usize, mail: Mail) {
        let mailbox = &self.all[index];
        mailbox.arrivals.fetch_add(1, Ordering::Relaxed);
        if mailbox.sender.send(mail).is_ok() {
            mailbox.wake();
        }
    }

    /// Sends to all shards.
    pub(crate) fn all(&self, make: impl Fn() -> Mail) {
        (0..self.len()).for_each(|index| self.send(index, make()));
    }

    /// Wakes the shards that hold effects until the journal is durable.
    pub(crate) fn notify_durable(&self) {
        for mailbox in self
            .all
            .iter()
            .filter(|mailbox| mailbox.waiting.load(Ordering::Acquire))
        {
            mailbox.wake();
        }
    }
}

impl Mailbox {
    fn wake(&self) {
        // The thread sets `asleep` before it looks into its mailbox for the last time.
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.waker.wake().expect("an event queue can be woken");
        }
    }
}
