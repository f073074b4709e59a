//! What a shard is told, and what it asks its host to do.

use crate::message::Message;
use base::{NodeId, Position, ShardId, Ts};
use catalog::Catalog;
use session::{ConnId, Link, Preparation, PreparationResult};
use std::sync::Arc;
use txn::contract::Outgoing;
use wire::{ClientMessage, Reply};

/// What a shard is told.
#[derive(Debug)]
pub enum Input {
    /// A client has connected; its first message is `ClientMessage::Startup`.
    Connect {
        /// Its number, chosen by the host, never used again on this shard.
        conn: ConnId,
        /// Secret for cancel requests, random.
        secret: i32,
        /// What the host knows of the connection.
        link: Box<Link>,
    },
    /// A message from a client.
    Client {
        /// From whom.
        conn: ConnId,
        /// What.
        message: ClientMessage,
    },
    /// The client is gone: its transaction is rolled back.
    Disconnected {
        /// Who.
        conn: ConnId,
    },
    /// What was sent to this client has left the host's buffer (nearly) completely.
    Drained {
        /// Which.
        conn: ConnId,
    },
    /// A [`Preparation`] is done.
    Prepared(Box<PreparationResult>),
    /// A cancel request for the session with this backend number.
    Cancel {
        /// See [`session::pid_of`].
        pid: i32,
        /// Must match.
        secret: i32,
    },
    /// A message from another shard.
    Message {
        /// From whom.
        from: ShardId,
        /// What.
        message: Message,
    },
    /// The node's journal is durable to here.
    Durable(Position),
    /// The deadline has come (or nothing in particular).
    Tick,
    /// A connection to this node stands, it runs in this incarnation.
    PeerUp {
        /// Which.
        node: NodeId,
        /// Its starts so far.
        incarnation: u32,
    },
    /// This node answers, so that a connection is likely to stand soon. Hosts that cannot know
    /// leave it out.
    PeerHeard {
        /// Which.
        node: NodeId,
    },
    /// No connection to this node at present.
    PeerDown {
        /// Which.
        node: NodeId,
    },
    /// The disk is nearly full (true) or has room again: writes are refused with 53100 meanwhile.
    DiskFull(bool),
    /// The host has measured the memory of the node.
    Memory(Memory),
    /// Begin a checkpoint of this shard. Ignored while one is being written.
    Checkpoint {
        /// Number of the checkpoint.
        number: u64,
    },
    /// Write the next piece of it: the step has it in [`RareEffects::checkpoint`], and the end with
    /// the last one. The host decides how fast; ignored if no checkpoint is being written.
    CheckpointPiece {
        /// Rows of about this many bytes, at least one.
        bytes: usize,
    },
    /// Finish what runs, refuse what is new; [`RareEffects::drained`] tells when nothing runs.
    Drain,
}

/// The memory of a node, as its host has measured it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// Bytes in use by the process.
    pub used_bytes: u64,
    /// Bytes above which writes are refused; 0: there is no limit.
    pub writes_until_bytes: u64,
    /// Bytes that the process may have; 0: there is no limit.
    pub limit_bytes: u64,
    /// Bytes of records that are not handed to the disk yet.
    pub journal_bytes: u64,
    /// Writes are refused.
    pub full: bool,
}

/// A part of a checkpoint file.
#[derive(Clone, PartialEq, Debug)]
pub enum CheckpointPart {
    /// The next bytes; there may be none in a piece.
    Bytes(Vec<u8>),
    /// The file is complete. It may come into use when the journal is durable to where it ends now.
    End {
        /// The shard's start position, for the manifest.
        start: Position,
        /// Records from here on are still needed.
        journal_from: Position,
        /// Catalog in use, for the manifest.
        catalog: Arc<Catalog>,
        /// Bound of the shard's clock, for the manifest.
        clock_bound: Ts,
    },
}

/// What a shard asks its host to do. The host empties it after every step (or batch of steps).
#[derive(Default, Debug)]
pub struct Effects {
    /// To clients, in order per connection; each leaves once the journal is durable to its
    /// position.
    pub replies: Vec<(ConnId, Reply, Position)>,
    /// To other shards, in order per receiver; each leaves once the journal is durable to `wait`.
    pub messages: Vec<Outgoing<Message>>,
    /// What is seldom asked for, apart: the host looks after every step.
    pub rare: Option<Box<RareEffects>>,
}

/// See [`Effects::rare`].
#[derive(Default, Debug)]
pub struct RareEffects {
    /// Long statements to be parsed or planned, on a thread that does nothing else: what
    /// [`Preparation::run`] gives comes back as [`Input::Prepared`], in any order.
    pub preparations: Vec<Preparation>,
    /// Parts of this shard's checkpoint file, in order.
    pub checkpoint: Vec<CheckpointPart>,
    /// Nothing runs any more after `Input::Drain`.
    pub drained: bool,
}

impl Effects {
    pub(crate) fn rare_mut(&mut self) -> &mut RareEffects {
        self.rare.get_or_insert_default()
    }
}
