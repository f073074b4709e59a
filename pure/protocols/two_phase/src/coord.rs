//! The coordinator's state of one transaction.

use crate::Control;
use crate::message::{Message, Reference, Reply, Vote};
use crate::snapshot::Known;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use base::{IndexId, NodeId, Position, ShardId, Ts};
use journal::Writes;
use local::txns::State;
use serde::Serialize;
use txn::{OpId, OpResult, Outcome, Resend, TxnCost, TxnOptions};

/// Answer of a member to prepare.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) enum Ballot {
    #[default]
    NotAsked,
    Asked,
    Cast(Vote),
}

/// A shard that a transaction touched.
#[derive(Debug, Default)]
pub(crate) struct Member {
    pub(crate) shard: ShardId,
    /// Whether the shard holds locks or writes for the transaction, so must be told its end.
    pub(crate) stateful: bool,
    /// Whether the shard has something to commit.
    pub(crate) wrote: bool,
    pub(crate) visit: u64,
    /// Number of the last request.
    pub(crate) seq: u64,
    /// Incarnation that answered; 0 before the first answer.
    pub(crate) incarnation: u32,
    /// Its clock when it sent the last answer.
    pub(crate) clock: Ts,
    /// Blind writes that travel with the next request.
    pub(crate) queue: Writes,
    pub(crate) queue_bytes: usize,
    pub(crate) queue_planned: u64,
    pub(crate) ballot: Ballot,
    /// Whether the shard may hold increments, which are sealed before its vote.
    pub(crate) increments: bool,
}

impl Member {
    pub(crate) fn new(shard: ShardId) -> Member {
        Member {
            shard,
            queue_planned: u64::MAX,
            ..Member::default()
        }
    }

    /// Whether the shard has voted and guards what the transaction has read.
    pub(crate) fn has_guards<C: Control>(&self) -> bool {
        C::JUDGES && matches!(&self.ballot, Ballot::Cast(vote) if vote.top < Ts::MAX)
    }
}

/// Use of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// The answer to an operation.
    Op,
    /// The commit alone: the member prepares.
    Prepare,
    /// An operation with the commit: the member prepares.
    OpPrepare,
    /// The commit alone, in one phase.
    Commit,
    /// An operation with the commit in one phase.
    OpCommit,
}

/// A request that has not been answered.
#[derive(Debug)]
pub(crate) struct Outstanding {
    pub(crate) id: OpId,
    pub(crate) shard: ShardId,
    pub(crate) reference: Reference,
    pub(crate) purpose: Purpose,
    /// Number of one-way delays between nodes before the request.
    pub(crate) depth: u32,
    /// Whether the request was sent as the only one of a transaction without locks.
    pub(crate) alone: bool,
    /// The message to repeat (other nodes only).
    pub(crate) message: Option<Message>,
    pub(crate) resend: Resend,
}

/// Stage of a transaction: running, preparing, entrusted, ended.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) enum Phase {
    /// Its operations run.
    #[default]
    Running,
    /// Votes are awaited. The commit answers `id`, with the result of the last operation if that
    /// `rides` along.
    Preparing {
        id: OpId,
        rides: bool,
        result: Option<OpResult>,
    },
    /// A member commits in one phase and decides the outcome.
    Entrusted,
    /// The transaction has an outcome.
    Ended,
}

/// What a coordinator keeps of one transaction.
#[derive(Debug, Default)]
pub(crate) struct Coord {
    pub(crate) options: TxnOptions,
    pub(crate) members: Vec<Member>,
    #[expect(
        clippy::vec_box,
        reason = "a join has hundreds, and each answer moves the others up"
    )]
    pub(crate) outstanding: Vec<Box<Outstanding>>,
    /// Local operations that are parked: (operation, job).
    pub(crate) local: Vec<(OpId, u64)>,
    /// The own shard's vote waits for other commits of rows that it increments.
    pub(crate) sealing: bool,
    /// Shards of this node that still have to be asked for their votes, the next one last.
    pub(crate) in_turn: Vec<ShardId>,
    /// The shard of this node that was asked for its vote last.
    pub(crate) turn: Option<ShardId>,
    /// Shards of this node with something to commit, while they vote one after the other.
    pub(crate) writers: Vec<ShardId>,
    /// See [`crate::message::Prepare::before`]; zero: the commit needs a decision.
    pub(crate) before: Ts,
    /// The commit rode on an operation that has failed: its shard has not promised and never will,
    /// in a way that counts without a decision.
    pub(crate) refused: bool,
    pub(crate) phase: Phase,
    /// The lead is told to give the commit up: its answer says whether it has.
    pub(crate) called_off: bool,
    /// A commit that rode on an operation has failed: only commit or abort may follow.
    pub(crate) closed: bool,
    /// The transaction holds locks, or asks for some.
    pub(crate) locks: bool,
    /// Timestamp of its reads without locks; zero: there are none yet.
    pub(crate) stamp: Ts,
    /// When the first of them began. `stamp` is raised if an answer lies above it.
    pub(crate) stamped_since: Ts,
    /// Index of the first of them.
    pub(crate) stamped: IndexId,
    /// Largest timestamp as of which it has read. Above `stamp`: not all of it as of one moment.
    pub(crate) read_at: Ts,
    /// Number of answers that it has read at `stamp`.
    pub(crate) stamped_reads: u32,
    /// Largest local position that was read.
    pub(crate) wait: Position,
    pub(crate) reads: u64,
    pub(crate) cost: TxnCost,
    /// Shards that its snapshot readers came to.
    pub(crate) contacts: Vec<Known>,
    pub(crate) outcome: Option<Outcome>,
}

impl State for Coord {
    fn reset(&mut self) {
        let members = cleared(&mut self.members);
        let outstanding = cleared(&mut self.outstanding);
        let local = cleared(&mut self.local);
        let contacts = cleared(&mut self.contacts);
        *self = Coord {
            members,
            outstanding,
            local,
            contacts,
            ..Coord::default()
        };
    }

    fn options(&mut self) -> &mut TxnOptions {
        &mut self.options
    }
}

fn cleared<T>(list: &mut Vec<T>) -> Vec<T> {
    list.clear();
    core::mem::take(list)
}

impl Coord {
    /// Counts the bytes of a message of the transaction, if bytes are counted.
    pub(crate) fn measure(&mut self, message: &impl Serialize) {
        self.cost.measure(&self.options, message);
    }

    /// Counts the answer to the outstanding request `at`, which came with this many frames.
    pub(crate) fn count_reply(&mut self, remote: bool, frames: u32, at: usize, reply: &Reply) {
        if !remote {
            self.cost.messages_in_node += 1;
            return;
        }
        self.cost.messages_on_path += frames;
        self.measure(reply);
        self.cost.delays = self.cost.delays.max(self.outstanding[at].depth + 2);
    }

    /// Takes the votes out, with the shards and visits that they belong to.
    pub(crate) fn take_votes(&mut self) -> Vec<(ShardId, u64, Vote)> {
        let mut votes = Vec::new();
        for member in &mut self.members {
            if let Ballot::Cast(vote) = core::mem::take(&mut member.ballot) {
                votes.push((member.shard, member.visit, vote));
            }
        }
        votes
    }

    pub(crate) fn member(&mut self, shard: ShardId) -> &mut Member {
        let at = match self.members.iter().position(|member| member.shard == shard) {
            Some(at) => at,
            None => {
                self.members.push(Member::new(shard));
                self.members.len() - 1
            }
        };
        &mut self.members[at]
    }

    /// Index of the outstanding request to `shard` with this reference.
    pub(crate) fn awaited(&self, shard: ShardId, reference: Reference) -> Option<usize> {
        let mut requests = self.outstanding.iter();
        requests.position(|request| (request.shard, request.reference) == (shard, reference))
    }

    pub(crate) fn find(&self, shard: ShardId) -> Option<&Member> {
        self.members.iter().find(|member| member.shard == shard)
    }

    /// The cost with the shards and nodes that have been asked for something up to now.
    pub(crate) fn cost_so_far(&self) -> TxnCost {
        let node = |member: &Member| member.shard.node();
        let first = |at: &usize| {
            let before = &self.members[..*at];
            before
                .iter()
                .all(|member| node(member) != node(&self.members[*at]))
        };
        TxnCost {
            shards: self.members.len() as u32,
            nodes: (0..self.members.len()).filter(first).count() as u32,
            ..self.cost
        }
    }

    /// Whether no other shard than `shard` has anything to commit or to be told.
    pub(crate) fn is_only(&self, shard: ShardId) -> bool {
        let aside = |m: &Member| m.shard == shard || (!m.stateful && m.queue.is_empty());
        self.members.iter().all(aside)
    }

    /// Whether the transaction holds no lock and awaits nothing.
    pub(crate) fn is_alone(&self) -> bool {
        self.outstanding.is_empty() && self.local.is_empty() && !self.locks
    }
}

/// A commit that prepared participants still have to acknowledge.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) commit_ts: Ts,
    pub(crate) attempt: u32,
    /// Position of the record. No message leaves before that is durable.
    pub(crate) position: Position,
    /// Participants without an acknowledgement, with the visit that ends.
    pub(crate) unacked: Vec<(ShardId, u64)>,
    pub(crate) resend: Resend,
}

impl Decision {
    /// Whether a shard of `node` has not acknowledged.
    pub(crate) fn is_owed_to(&self, node: NodeId) -> bool {
        self.unacked.iter().any(|(shard, _)| shard.node() == node)
    }
}

/// Visits of this coordinator to one participant.
#[derive(Debug, Default)]
pub(crate) struct VisitsOut {
    pub(crate) last: u64,
    pub(crate) open: BTreeSet<u64>,
}

impl VisitsOut {
    pub(crate) fn begin(&mut self) -> u64 {
        self.last += 1;
        self.open.insert(self.last);
        self.last
    }
    /// Visits with smaller numbers are over.
    pub(crate) fn floor(&self) -> u64 {
        self.open.first().copied().unwrap_or(self.last + 1)
    }
}
