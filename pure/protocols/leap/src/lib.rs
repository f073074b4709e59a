//! LEAP: rows move to the transaction, which then commits with one local record.
//!
//! One [`Leap`] per shard plays all parts. The *coordinator* is the shard where a transaction runs;
//! it *requests* rows that it does not own. The *home* of a row is the shard of its slot. It knows
//! the owner and grants the row to one requester at a time. The *owner* gives the row up when no
//! local transaction is in the way, and keeps a backup until the new owner has it durably.
//!
//! ```text
//! requester ──OwnerRequest──> home ──TransferRequest(otag)──> owner
//!     <──────────────────Response(otag, versions)───────────────'
//!     ──Inform(acquired)──> home                     next request for the row
//!     ──Inform(durable)───> home ──ReleaseAck──> old owner forgets its backup
//! ```
//!
//! Which file does what: `docs/protocols/leap-code.md`.
//!
//! Invariants (checked by `validate` and the tests; `docs/protocols/leap.md` says why):
//! * a row has at most one owner; the owner table of its home names the owner, or knows the one
//!   grant under which the row is on its way;
//! * a row is locked where its transaction runs before it is requested, and no row leaves while a
//!   transaction of its owner has a lock on it;
//! * a version leaves its node only when its record is durable, and a backup goes only when the
//!   next owner's record is durable;
//! * a grant is accepted at most once;
//! * a restarted shard serves no row of another home before that home has confirmed the row, and no
//!   row of its own slots before every shard has claimed.
//!
//! Ranges do not move: scans read in place, under shared locks at the home and at the owners of the
//! rows that are away. The protocol does not run statements and knows no schema.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

extern crate alloc;

mod alone;
mod bulk_commit;
mod checkpoint;
mod commit;
mod dropped;
mod entrust;
mod fetch;
mod gather;
mod guests;
mod heat;
mod home;
mod increment;
mod job;
mod keyed;
mod listing;
mod load;
pub mod message;
mod outage;
mod owner;
mod peers;
mod pending;
mod protocol;
mod rate;
mod recovery;
mod request;
mod resolve;
mod roles;
mod scan;
mod share;
mod ship;
mod show;
mod since;
mod timers;
mod try_lock;
mod txns;
mod visit;

pub use checkpoint::AwayCursor;
pub use message::Message;

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use base::{Key, Placement, Position, ShardId, Slot, Time, TxnId};
use core::ops::Deref;
use entrust::Errands;
use fetch::Fetching;
use guests::Guests;
use job::Job;
use local::{Jobs, Limits};
use pending::Pendings;
use rate::Rate;
use roles::{Coordinator, Home, Owner, Rejoin, Requester};
use share::Sharing;
use txn::{Asks, Bulks, Installed, LockTable, Moves, Pauses, Peers};
use visit::Visit;

/// Settings of the protocol on one shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Settings that every protocol has.
    pub limits: Limits,
    /// Largest number of versions that travel with a row. The new owner refuses snapshots below
    /// the oldest of them.
    pub versions_max: usize,
    /// Number of consecutive short stays after which a row is contended (`heat`). 0: every row is.
    pub contended_from: u32,
    /// Number of reads, each write halving the count, from which a row is lent to its readers
    /// instead of moving. 0: rows are never lent.
    pub share_after: u32,
    /// Whether a transaction of one operation may be entrusted to the owner of its row.
    pub entrusts: bool,
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
            versions_max: 64,
            contended_from: 3,
            share_after: 4,
            entrusts: true,
        }
    }
}

/// The protocol on one shard. See the crate's documentation.
#[derive(Default)]
pub struct Leap {
    shard: ShardId,
    /// As [`txn::Cx::placement`], from [`txn::Protocol::recover`] on.
    placement: Placement,
    settings: Settings,
    locks: LockTable,
    installed: Installed,
    /// Large transactions that are committed and not yet installed as a whole.
    bulks: Bulks,

    /// Operations that wait: for a lock, a row, or their turn.
    jobs: Jobs<Job>,
    guests: Guests,
    /// Numbers of jobs that wait for a row which is on its way to some shard.
    moving_waits: Vec<u64>,
    /// When waits of jobs for rows of other shards end by `lock_timeout`; those of jobs
    /// that were cancelled stay until then.
    row_limits: BTreeSet<(Time, u64)>,
    /// Locks that transactions of other shards hold here.
    visits: Asks<TxnId, Visit>,
    /// Errands of this shard and for this shard.
    errands: Errands,
    /// Formulas that this shard holds for transactions of other shards.
    pendings: Pendings,
    /// Copies of rows that this shard has given, and copies that it has got.
    sharing: Sharing,
    /// Fetches that scans of this shard wait for.
    fetches: Asks<u64, Fetching>,
    next_number: u64,

    coord: Coordinator,
    requester: Requester,
    owner: Owner,
    home: Home,
    rejoin: Rejoin,

    /// Position of the last record of an arrival or a departure.
    recorded: Position,
    /// Incarnation of this node, known from [`txn::Protocol::recover`] on.
    incarnation: u32,
    peers: Peers,
    /// Messages of this shard to itself.
    loopback: VecDeque<message::Body>,
    moves: Moves,
    /// Arrivals of rows within the last second; `moves_out` counts departures.
    moves_in: Rate,
    moves_out: Rate,
    scratch: Vec<u8>,
    #[cfg(test)]
    printed: Option<base::Planted>,
}

/// What a protocol may touch, with the messages of this one.
pub(crate) type Cx<'a> = txn::Cx<'a, Message>;

impl Leap {
    /// The protocol on `shard`. [`txn::Protocol::recover`] comes before the first step.
    pub fn new(shard: ShardId) -> Leap {
        let mut leap = Leap {
            shard,
            ..Leap::default()
        };
        leap.set_settings(Settings::default());
        leap
    }

    /// Changes the settings, for operations and messages that begin later.
    pub fn set_settings(&mut self, settings: Settings) {
        self.settings = settings;
        self.bulks.set_slice(settings.slice_units);
        self.locks.set_slice(settings.slice_units as usize);
        let pauses = settings.pauses();
        self.requester.requests.set_pauses(pauses);
        self.home.grants.set_pauses(pauses);
        self.coord.readings.set_pauses(pauses);
        self.fetches.set_pauses(pauses);
        self.errands.out.set_pauses(pauses);
        let confirms = &mut self.coord.confirms;
        confirms.set_pauses(Pauses::even(settings.resend_us));
        self.visits.set_pauses(Pauses::even(settings.inquire_us));
        self.requester.informs.set_pause(settings.resend_us);
        self.owner.backups.set_pause(settings.resend_us);
        self.coord.owings.all.set_pause(settings.resend_us);
    }

    /// The settings in force.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    pub(crate) fn home(&self, slot: Slot) -> ShardId {
        self.placement.home(slot)
    }

    pub(crate) fn is_home(&self, key: &Key) -> bool {
        self.home(key.slot) == self.shard
    }

    /// Whether `shard` is on another node, where messages may get lost.
    pub(crate) fn is_remote(&self, shard: ShardId) -> bool {
        shard.node() != self.shard.node()
    }

    /// Whether this world follows a rule as the paper prints it, so that a test must fail.
    #[cfg(test)]
    pub(crate) fn prints(&self, rule: base::Planted) -> bool {
        self.printed == Some(rule)
    }

    /// A position before every record of this shard: an effect with this position does not wait.
    pub(crate) const NOTHING: Position = Position(0);
}

/// Whether a rule is replaced by the one that the paper prints. In this crate's tests each world
/// has its own answer; elsewhere builds with planted bugs have one.
macro_rules! printed {
    ($leap:expr, $rule:ident) => {{
        #[cfg(test)]
        let on = $leap.prints(base::Planted::$rule);
        #[cfg(not(test))]
        let on = base::is_planted(base::Planted::$rule);
        on
    }};
}
pub(crate) use printed;

#[cfg(test)]
mod tests;
