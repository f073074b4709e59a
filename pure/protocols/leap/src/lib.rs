//! LEAP: rows move to the transaction, which then commits with one local record.
//!
//! One [`Leap`] per shard plays all parts. The *coordinator* is the shard where a transaction runs;
//! it *requests* rows that it does not own. The *home* of a row is the shard of its slot: it knows
//! who owns the row and grants it to one requester at a time. The *owner* gives it up when no
//! transaction of its own is in the way, and keeps a backup until the new owner has it durably.
//!
//! ```text
//! requester ──OwnerRequest──> home ──TransferRequest(otag)──> owner
//!     <──────────────────Response(otag, versions)───────────────'
//!     ──Inform(acquired)──> home                     next request for the row
//!     ──Inform(durable)───> home ──ReleaseAck──> old owner forgets its backup
//! ```
//!
//! Modules: [`message`] what shards say; `roles` the state of coordinator, requester, owner, home
//! and of a shard that rejoins, which the other modules play: `txns`, `commit`, `bulk_commit`
//! transactions at their coordinator; `request`, `owner`, `home` moves; `recovery`, `resolve` what
//! a restart leaves; `entrust` transactions that go to their row;
//! `ship`, `pending` formulas of larger ones that do, at the coordinator and at the owner;
//! `job`, `keyed`, `load`, `scan`, `increment` operations on rows; `listing`, `fetch` rows of a
//! scan that are away; `since` since when histories are here; `share` copies; `heat` rows that go
//! to and fro;
//! `outage` nodes that cannot be reached;
//! `visit` locks that transactions of other shards hold here, `guests` their operations;
//! `checkpoint` what one keeps;
//! `timers` what time makes happen; `show` printing and checking.
//!
//! Invariants (checked by `validate` and the tests; `docs/protocols/leap.md` says why):
//! * a row has at most one owner; the owner table of its home names it, or knows the one grant that
//!   is on its way;
//! * a row is locked where its transaction runs before it is requested, and no row leaves while a
//!   transaction of its owner has a lock on it;
//! * a version leaves its node only when its record is durable, and a backup goes only when the
//!   next owner's record is durable;
//! * a grant is accepted at most once; whoever restarts serves nothing before every home (for rows
//!   from elsewhere) or every shard (for its own slots) has said how things stand.
//!
//! Ranges do not move: scans read in place, under shared locks at the home and at the owners of the
//! rows that are away. It is not the place where statements run, and it knows no schema.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

extern crate alloc;

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
mod txns;
mod visit;

pub use checkpoint::AwayCursor;
pub use message::Message;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use base::{Key, Placement, Position, ShardId, Slot, TxnId};
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

/// What may be set before the protocol runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// What every protocol may be set to.
    pub limits: Limits,
    /// Versions that travel with a row; snapshots older than the oldest of them are refused at the
    /// new owner.
    pub versions_max: usize,
    /// Short stays in a row after which a row is contended (`heat`). 0: every row is.
    pub contended_from: u32,
    /// A row that was wanted for reading so often is lent to its readers instead of moving; writes
    /// count against that. 0: never.
    pub share_after: u32,
    /// Transactions of one operation may go to their row instead of moving it.
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
    /// As [`txn::Cx::placement`] says, known from [`txn::Protocol::recover`] on.
    placement: Placement,
    settings: Settings,
    locks: LockTable,
    installed: Installed,
    /// Large transactions that are committed and not yet installed as a whole.
    bulks: Bulks,

    /// Operations that wait: for a lock, a row, or their turn.
    jobs: Jobs<Job>,
    guests: Guests,
    /// Scans that wait for a row to arrive somewhere.
    moving_waits: Vec<u64>,
    /// Locks that transactions of other shards hold here.
    visits: Asks<TxnId, Visit>,
    /// Transactions of one operation that go to their row.
    errands: Errands,
    /// Formulas that this shard holds for transactions of others.
    pendings: Pendings,
    /// Copies of rows, given and got.
    sharing: Sharing,
    /// Fetches that scans of this shard wait for.
    fetches: Asks<u64, Fetching>,
    next_number: u64,

    coord: Coordinator,
    requester: Requester,
    owner: Owner,
    home: Home,
    rejoin: Rejoin,

    /// Where the last arrival or departure is journaled.
    recorded: Position,
    /// Of this node, known from [`txn::Protocol::recover`] on.
    incarnation: u32,
    peers: Peers,
    /// Messages of this shard to itself.
    loopback: VecDeque<message::Body>,
    moves: Moves,
    /// Arrivals and departures.
    moves_in: Rate,
    moves_out: Rate,
    scratch: Vec<u8>,
    #[cfg(test)]
    printed: Option<base::Planted>,
}

/// What a protocol may touch, for this protocol's messages.
pub(crate) type Cx<'a> = txn::Cx<'a, Message>;

impl Leap {
    /// The protocol on `shard`. Call [`Protocol::recover`](txn::Protocol::recover) before the first
    /// step.
    pub fn new(shard: ShardId) -> Leap {
        let mut leap = Leap {
            shard,
            ..Leap::default()
        };
        leap.set_settings(Settings::default());
        leap
    }

    /// Changes the settings; takes effect for what starts later.
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

    /// Whether a rule as the paper prints it is to be followed, to see a test fail.
    #[cfg(test)]
    pub(crate) fn prints(&self, rule: base::Planted) -> bool {
        self.printed == Some(rule)
    }

    /// A position that every record of this shard lies behind: what waits for it waits for nothing.
    pub(crate) const NOTHING: Position = Position(0);
}

/// Whether a rule is replaced by the one that the paper prints: in this crate's tests by a world of
/// its own, elsewhere in builds with planted bugs.
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
