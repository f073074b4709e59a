//! The smallest protocol: one lock for all rows. It is here to show what a protocol has to write,
//! and that the test bed proves any of them; nothing ships it.
//!
//! All rows lie on one shard, the *guard*. A transaction has the lock from its first operation to
//! its end; all others wait in the order in which they came. The *coordinator*, where a
//! transaction runs, asks the guard for everything, and repeats what is not answered.
//!
//! ```text
//! coordinator ──Ask(n, operation or commit)──> guard      runs it, or queues it
//!             <──────────Answer(n, reply)──────           leaves when all commits are durable
//!             ──────────Drop──────────────────>           rolled back; repeated until Dropped
//!             <─────────Inquire────────────────           the holder has been silent for long
//! ```
//!
//! Rules: an ask runs once, since the guard keeps its answers until the transaction is over; what
//! is over stays over; messages to a former life of the guard are ignored, and its transactions
//! end with it.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod coordinator;
mod guard;
mod protocol;
mod rows;

#[cfg(test)]
mod tests;

use base::{NodeId, Position, ShardId, Time, TxnId};
use coordinator::Asking;
use guard::Guarded;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use txn::{Cx, Op, OpError, OpId, OpResult, Outcome};

/// Pause before a message is repeated. Microseconds.
const RESEND_US: u64 = 200_000;
/// Silence of the holder after which the guard asks after it. Microseconds.
const INQUIRE_US: u64 = 1_000_000;

/// What shards say to one another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Message {
    /// Which transaction.
    pub txn: TxnId,
    /// Life of the guard's node that is meant, or that speaks.
    pub life: u32,
    /// Version of the sender's catalog.
    pub catalog: u64,
    /// What.
    pub body: Body,
}

/// Content of a message.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the crate's documentation says what they are")]
pub enum Body {
    Ask(OpId, Work),
    Answer(OpId, Result<OpResult, OpError>, Option<Outcome>),
    Drop,
    Dropped,
    Inquire,
}

/// What the guard is asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Work {
    /// `None`: only the commit.
    pub op: Option<Op>,
    /// Commits afterwards.
    pub commits: bool,
}

/// What a protocol may touch, for this protocol's messages.
pub(crate) type Context<'a> = Cx<'a, Message>;

/// The protocol on one shard. See the crate's documentation.
#[derive(Debug)]
pub struct GlobalLock {
    shard: ShardId,
    guard: ShardId,
    /// Of the guard's node, as far as it is known here.
    life: u32,
    /// Transactions that run here, until their caller forgets them.
    asking: BTreeMap<TxnId, Asking>,
    /// Rolled back, and the guard may not know it.
    dropping: BTreeSet<TxnId>,
    /// Transactions that are not over, in the order in which they came; the first has the lock.
    queue: Vec<TxnId>,
    /// What the guard knows of them.
    guarded: BTreeMap<TxnId, Guarded>,
    /// Transactions that are over, and their last answers.
    over: BTreeMap<TxnId, Guarded>,
    /// Largest incarnation seen of each node.
    lives: BTreeMap<NodeId, u32>,
    /// Where the last commit stands in the journal.
    committed: Position,
    /// When messages are repeated.
    timer: Option<Time>,
}

impl GlobalLock {
    /// The protocol on `shard`. All rows are at one home, the guard, which it knows from
    /// [`txn::Protocol::recover`] on.
    pub fn new(shard: ShardId) -> GlobalLock {
        GlobalLock {
            shard,
            guard: shard,
            life: 0,
            asking: BTreeMap::new(),
            dropping: BTreeSet::new(),
            queue: Vec::new(),
            guarded: BTreeMap::new(),
            over: BTreeMap::new(),
            lives: BTreeMap::new(),
            committed: Position(0),
            timer: None,
        }
    }

    pub(crate) fn is_guard(&self) -> bool {
        self.shard == self.guard
    }

    pub(crate) fn send(&mut self, cx: &mut Context<'_>, to: ShardId, txn: TxnId, body: Body) {
        let wait = self.committed;
        let (life, catalog) = (self.life, cx.catalog);
        let message = Message {
            txn,
            life,
            catalog,
            body,
        };
        cx.counters.messages += u64::from(to.node() != self.shard.node());
        cx.out.send(to, message, wait);
    }
}
