//! Snapshots of statements and read-only transactions: which timestamp they read at, and how they
//! come to miss nothing that a client was told before they began (see [`txn::snapshot`]).
//!
//! A statement begins at its shard's clock. If a shard refuses to be read there, the statement
//! starts again at the timestamp that it was told, and the second time at one that no shard can
//! refuse, because all of them were asked for their clocks (the first time, where the protocol
//! refuses every snapshot of which that is not known). A read-only transaction of several
//! statements asks for them before its first one, so that it never has to begin again.

use base::Ts;
use txn::Snapshot;

/// The snapshot of a statement or transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// Read at this timestamp; the horizon stays below it.
    pub(crate) at: Ts,
    /// Drawn when the reader began.
    pub(crate) since: Ts,
    /// Everything that was answered before the reader began is at or below `at`.
    pub(crate) exact: bool,
    /// Not all shards could be asked for their clocks: see [`Snapshot::guarded`].
    pub(crate) guarded: bool,
}

impl Held {
    /// A snapshot at the timestamp with which its reader begins.
    pub(crate) fn begin(at: Ts) -> Held {
        Held {
            at,
            since: at,
            exact: false,
            guarded: false,
        }
    }

    /// For the protocol.
    pub(crate) fn snapshot(&self) -> Snapshot {
        if self.exact {
            Snapshot::exactly(self.at)
        } else if self.guarded {
            Snapshot::guarded(self.at, self.since)
        } else {
            Snapshot::recent(self.at, self.since)
        }
    }
}
