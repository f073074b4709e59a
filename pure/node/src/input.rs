//! The inputs and the effects of a shard.

use crate::message::Message;
use base::{NodeId, Position, ShardId, Ts};
use catalog::Catalog;
use session::{AuditEntry, ConnId, Link, Preparation, PreparationResult, SlowStatement};
use std::sync::Arc;
use txn::contract::Outgoing;
use wire::{ClientMessage, Reply};

/// One input of a shard.
#[derive(Debug)]
pub enum Input {
    /// A client has connected; its first message is `ClientMessage::Startup`.
    Connect {
        /// Number of the connection, chosen by the host and never used again on this shard.
        conn: ConnId,
        /// Random secret for cancel requests.
        secret: i32,
        /// What the host knows of the connection.
        link: Box<Link>,
    },
    /// A message from a client.
    Client {
        /// Connection of the client.
        conn: ConnId,
        /// The message itself.
        message: ClientMessage,
    },
    /// The client has gone: its transaction is rolled back.
    Disconnected {
        /// Connection of the client.
        conn: ConnId,
    },
    /// The host's buffer for this client is (nearly) empty again.
    Drained {
        /// Connection of the client.
        conn: ConnId,
    },
    /// A [`Preparation`] is done.
    Prepared(Box<PreparationResult>),
    /// A cancel request for the session with this backend number.
    Cancel {
        /// See [`session::pid_of`].
        pid: i32,
        /// Secret of the session, which must match.
        secret: i32,
    },
    /// A message from another shard.
    Message {
        /// Sending shard.
        from: ShardId,
        /// The message itself.
        message: Message,
    },
    /// The node's journal is durable to this position.
    Durable(Position),
    /// The deadline has come, or time has passed.
    Tick,
    /// A connection to this node is there; the node runs in this incarnation.
    PeerUp {
        /// Number of the node.
        node: NodeId,
        /// Number of its starts so far.
        incarnation: u32,
    },
    /// The node answers, so a connection is likely soon. Hosts that cannot know that leave this
    /// out.
    PeerHeard {
        /// Number of the node.
        node: NodeId,
    },
    /// There is no connection to this node at present.
    PeerDown {
        /// Number of the node.
        node: NodeId,
    },
    /// True: the disk is nearly full, and writes are refused with 53100. False: it has room again.
    DiskFull(bool),
    /// The host has measured the memory of the node.
    Memory(Memory),
    /// Begin a checkpoint of this shard. Ignored while one is being written.
    Checkpoint {
        /// Number of the checkpoint.
        number: u64,
    },
    /// Write the next piece of the checkpoint. The step has the piece in
    /// [`RareEffects::checkpoint`], with the end behind the last one. The host decides how fast;
    /// ignored without a checkpoint.
    CheckpointPiece {
        /// Rows of about this many bytes, at least one.
        bytes: usize,
    },
    /// Finish what runs and refuse what is new; [`RareEffects::drained`] tells the end.
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
    /// Bytes of records that were not handed to the disk yet.
    pub journal_bytes: u64,
    /// Whether writes are refused.
    pub full: bool,
}

/// A part of a checkpoint file.
#[derive(Clone, PartialEq, Debug)]
pub enum CheckpointPart {
    /// The next bytes; there may be none in a piece.
    Bytes(Vec<u8>),
    /// The file is complete. It may come into use when the journal is durable to its present end.
    End {
        /// The shard's start position, for the manifest.
        start: Position,
        /// Records from this position on are still needed.
        journal_from: Position,
        /// Catalog in use, for the manifest.
        catalog: Arc<Catalog>,
        /// Bound of the shard's clock, for the manifest.
        clock_bound: Ts,
    },
}

/// The effects of a shard's steps. The host empties this after every step (or batch of steps).
#[derive(Default, Debug)]
pub struct Effects {
    /// Messages to clients, in order for each connection. Each leaves when the journal is durable
    /// to its position.
    pub replies: Vec<(ConnId, Reply, Position)>,
    /// Messages to other shards, in order for each receiver. Each leaves when the journal is
    /// durable to `wait`.
    pub messages: Vec<Outgoing<Message>>,
    /// Effects that are rare; apart, because the host looks after every step.
    pub rare: Option<Box<RareEffects>>,
}

/// See [`Effects::rare`].
#[derive(Default, Debug)]
pub struct RareEffects {
    /// Long statements to be parsed or planned, on a thread for that alone. The result of
    /// [`Preparation::run`] comes back as [`Input::Prepared`], in any order.
    pub preparations: Vec<Preparation>,
    /// Statements that took long, for the log.
    pub slow: Vec<SlowStatement>,
    /// Logins and changes, for the audit log.
    pub audited: Vec<AuditEntry>,
    /// Parts of this shard's checkpoint file, in order.
    pub checkpoint: Vec<CheckpointPart>,
    /// After `Input::Drain`: nothing runs any more.
    pub drained: bool,
}

impl Effects {
    pub(crate) fn rare_mut(&mut self) -> &mut RareEffects {
        self.rare.get_or_insert_default()
    }
}
