//! What a shard is told, and what it asks its host to do.

use crate::client::{ClientMessage, ConnId, Reply};
use crate::core::Memory;
use crate::message::Message;
use base::{NodeId, Position, ShardId, Ts};
use catalog::Catalog;
pub use sql::port::Ends;
use std::sync::Arc;
use txn::contract::Outgoing;

/// What the host knows of a client's connection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Link {
    /// Its addresses; `None` if it has none.
    pub ends: Option<Ends>,
    /// Connections that the node takes; 0: no limit.
    pub connections_max: u32,
    /// The node has as many connections as it takes without this one: it is refused (53300).
    pub is_refused: bool,
}

/// Connections that a node takes if its host says nothing else: what the setting shows.
pub fn connections_default() -> u32 {
    let setting = sql::settings::lookup("max_connections");
    let default = setting.and_then(|setting| setting.default.parse().ok());
    default.expect("the setting has a number")
}

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
        link: Link,
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
    /// A cancel request for the session with this backend number.
    Cancel {
        /// See [`pid_of`].
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
    /// Write the next piece of it: the step has it in [`Effects::checkpoint`], and the end with the
    /// last one. The host decides how fast; ignored if no checkpoint is being written.
    CheckpointPiece {
        /// Rows of about so many bytes, at least one.
        bytes: usize,
    },
    /// Finish what runs, refuse what is new; [`Effects::drained`] tells when nothing runs.
    Drain,
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
    /// Parts of this shard's checkpoint file, in order.
    pub checkpoint: Vec<CheckpointPart>,
    /// Nothing runs any more after `Input::Drain`.
    pub drained: bool,
}

/// The backend number of a session: host routes cancel requests by it.
pub fn pid_of(shard: ShardId, conn: ConnId) -> i32 {
    // 4 bits of shard index above 26 bits of connection number; positive.
    ((i32::from(shard.index() as i16)) << 26) | (conn.0 & 0x03ff_ffff) as i32
}

/// The shard index and connection of a backend number.
pub fn pid_parts(pid: i32) -> (u16, ConnId) {
    (
        ((pid >> 26) & 0xf) as u16,
        ConnId((pid & 0x03ff_ffff) as u32),
    )
}
