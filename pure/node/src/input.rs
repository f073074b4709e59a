//! What a shard is told, and what it asks its host to do.

use crate::core::Memory;
use crate::message::Message;
use crate::preparing::{Preparation, PreparationResult};
use base::{NodeId, Position, ShardId, Ts};
use catalog::Catalog;
pub use expr::Ends;
use std::sync::Arc;
use txn::contract::Outgoing;
use wire::{ClientMessage, Reply};

/// A connection of one shard; never used twice there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnId(pub u32);

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
    let setting = pg_catalog::settings::lookup("max_connections");
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

/// Low bits of a backend number, which come from the connection; those of the shard lie above.
const CONN_BITS: u32 = 21;

/// The backend number of a session: who has it finds the session's shard in the whole cluster.
/// Connections repeat after two million on one shard, so it names the session of that number
/// which lives.
pub fn pid_of(shard: ShardId, conn: ConnId) -> i32 {
    (i32::from(shard.0 as i16) << CONN_BITS) | (conn.0 & ((1 << CONN_BITS) - 1)) as i32
}

/// The shard of the session with this backend number, if it is one.
pub fn pid_shard(pid: i32) -> Option<ShardId> {
    (pid > 0).then_some(ShardId((pid >> CONN_BITS) as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_number_tells_its_shard() {
        for (node, index, conn) in [(1, 0, 128), (3, 2, u32::MAX), (64, 15, 1)] {
            let shard = ShardId::new(NodeId(node), index);
            assert_eq!(pid_shard(pid_of(shard, ConnId(conn))), Some(shard));
        }
        assert_eq!(pid_shard(0), None);
        assert_eq!(pid_shard(-5), None);
    }
}
