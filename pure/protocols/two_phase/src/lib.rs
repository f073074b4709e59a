//! Strict two-phase locking and presumed-abort two-phase commit: the baseline protocol.
//!
//! One [`TwoPhase`] per shard plays both parts. The *coordinator* is the shard where the client's
//! transaction runs; every shard whose rows it locks or writes is a *participant* and keeps the
//! write set until the end. Local operations are direct calls.
//!
//! ```text
//! submit ──own shard──> job ──> locks, store, write set ──> Ready, or parked and completed later
//!        ──elsewhere──> Request(seq) ──> job there ──> Reply(seq)
//! commit   one shard            one Commit record where the rows are; locks go before the flush
//!          shards of this node  prepared in memory, one Commit record for all of them
//!          one remote node      one of its shards commits for all of them, with one record there
//!          several nodes        Prepare records in parallel: the answer; Decision record, then the
//!                               others learn
//! ```
//!
//! Modules: [`message`] messages; `coordinator`, `commit`, `early`, `entrust`, `replies` the
//! coordinator; `participant`, `outcome`, `lead` the participant; `job`, `exec`, `scan` operations;
//! `snapshot` reads without locks; `bulk_commit` large write sets; `increment` formulas that add;
//! `timers`; `peers` nodes that come and go, `doubt` what they leave behind; `recovery` what a
//! restart leaves; `show` printing and checking.
//!
//! Invariants (checked by `validate` and the tests; `docs/protocols/two_phase.md` says why):
//! * no lock without a live or promised owner;
//! * a promise (prepared write set) keeps its locks, which exclude all other commits of its rows,
//!   until the outcome is known;
//! * whichever pending increments of a row commit, its columns stay in range;
//! * no commit message leaves before its decision record is durable;
//! * a commit timestamp is at least the timestamp of every promise, and every lock of the
//!   transaction is still held when it is drawn;
//! * an outcome that a client was told follows from durable records, whoever reads them.
//!
//! The protocol runs no statements and knows no schema.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

extern crate alloc;

mod bulk;
mod bulk_commit;
mod commit;
pub mod control;
mod coord;
mod coordinator;
mod doubt;
mod early;
mod entrust;
mod exec;
mod increment;
mod job;
mod judge;
mod lead;
pub mod message;
mod order;
mod outcome;
mod part;
mod participant;
mod peers;
mod protocol;
mod records;
mod recovery;
mod replies;
mod scan;
mod show;
mod single;
mod snapshot;
mod stamped;
mod timers;

#[cfg(test)]
mod tests;

pub use control::Control;
pub use judge::Rows;
pub use message::Message;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use base::{Position, ShardId, Time, TxnId};
use coord::{Coord, Decision, VisitsOut};
use core::ops::Deref;
use early::{Poll, Refusal};
use entrust::Unsettled;
use job::Job;
use local::{Jobs, Limits, Txns};
use message::Reply;
use order::Order;
use part::{Part, Promise};
use snapshot::Kept;
use timers::Timer;
use txn::{Alarms, Bulks, Installed, LockTable, Peers, Seen};

/// Settings of the protocol on one shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Settings that every protocol has.
    pub limits: Limits,
    /// Microseconds after which a commit that was entrusted to an unreachable node is of unknown
    /// outcome. Within that time a broken connection may be back.
    pub reconnect_us: u64,
    /// Bytes of blind writes to one other shard above which they are sent on their own.
    pub queue_bytes_max: usize,
}

impl Deref for Settings {
    type Target = Limits;

    fn deref(&self) -> &Limits {
        &self.limits
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            limits: Limits::default(),
            reconnect_us: 200_000,
            queue_bytes_max: 256 << 10,
        }
    }
}

/// Transactions ordered by locks: the baseline.
pub type TwoPhase = Machine<control::Locks>;

/// The protocol on one shard, over a way to order transactions. See the crate's documentation.
#[derive(Default)]
pub struct Machine<C: Control> {
    shard: ShardId,
    settings: Settings,
    locks: LockTable,
    control: C,
    /// Transactions that this shard coordinates, until their caller forgets them.
    coords: Txns<Coord>,
    /// Commit decisions that a prepared participant has not acknowledged.
    decisions: BTreeMap<TxnId, Decision>,
    /// Aborts that become true when this shard's refusal is durable.
    refusals: BTreeMap<TxnId, Refusal>,
    /// Transactions of a former life of this coordinator, whose participants are asked.
    polls: BTreeMap<TxnId, Poll>,
    /// Entrusted commits of unknown outcome.
    unsettled: BTreeMap<TxnId, Unsettled>,
    /// Transactions that hold locks here or have written here.
    parts: Txns<Part>,
    /// Prepared write sets, also those found by recovery.
    promises: BTreeMap<TxnId, Promise>,
    order: Order,
    kept: Kept,
    /// Large transactions that are committed and not yet installed as a whole.
    bulks: Bulks,
    /// Operations that wait: for a lock, a promise, or their turn.
    jobs: Jobs<Job>,
    /// Snapshot reads that wait for promises.
    promise_waits: Vec<u64>,
    /// Reads of other shards, with their transactions and numbers, that have stopped here.
    reads_in: BTreeSet<(ShardId, TxnId, u64)>,
    installed: Installed,
    /// Position of the last record that says how a promise ended: acknowledgements wait for it.
    resolved: Position,
    /// The journal is flushed to here although no effect waits for that yet; 0: nothing to flush.
    forced: Position,
    visits_out: BTreeMap<ShardId, VisitsOut>,
    /// Visits that are over here, for each coordinator and life, with the last answers.
    visits_in: BTreeMap<(ShardId, u32), Seen<u64, Option<Reply>>>,
    peers: Peers,
    /// When waits for promises, guards and transactions in doubt are looked at next.
    wait_look: Option<Time>,
    timers: Alarms<Timer>,
    /// Reused for encoding records.
    scratch: Vec<u8>,
    /// A fault that tests plant.
    #[cfg(test)]
    fault: Option<Fault>,
}

/// A rule that tests of this crate break, to see that a checker notices.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Increments are not sealed.
    NoSeal,
    /// What was read for an entrusted commit of unknown outcome is unlocked.
    ForgetsUnsettled,
    /// Commits are entrusted without a bound.
    NoBound,
}

/// What a protocol may touch, with the messages of this one.
pub(crate) type Cx<'a> = txn::Cx<'a, Message>;

impl<C: Control> Machine<C> {
    /// The protocol on `shard`, with nothing in doubt (see [`txn::Protocol::recover`]).
    pub fn new(shard: ShardId) -> Self {
        Machine {
            shard,
            ..Machine::default()
        }
    }

    /// Changes the settings, for operations and messages that begin later.
    pub fn set_settings(&mut self, settings: Settings) {
        self.settings = settings;
        self.bulks.set_slice(settings.slice_units);
        self.locks.set_slice(settings.slice_units as usize);
    }

    /// The settings in force.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    #[cfg(not(test))]
    pub(crate) fn is_faulty(&self, _fault: Fault) -> bool {
        false
    }

    #[cfg(test)]
    pub(crate) fn is_faulty(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// Whether `shard` is on another node, where messages may get lost.
    pub(crate) fn is_remote(&self, shard: ShardId) -> bool {
        shard.node() != self.shard.node()
    }
}
