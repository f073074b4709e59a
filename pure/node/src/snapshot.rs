//! Snapshots of statements and read-only transactions: their timestamps, and why they miss nothing
//! that a client was told before they began (see [`txn::snapshot`]).
//!
//! A statement begins at its shard's clock. If a shard refuses that, the statement starts again at
//! the timestamp that the shard names. The second time it asks all shards for their clocks (the
//! first time, if the protocol refuses every snapshot without that), so that none can refuse. A
//! read-only transaction of several statements asks before its first one, so it never begins again.

use crate::core::Core;
use crate::port::StatementPort;
use base::{DatabaseId, Ts};
use txn::Snapshot;

/// The snapshot of a statement or transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// Read at this timestamp; the horizons of its database stay at or below it.
    pub(crate) at: Ts,
    /// Timestamp with which the reader began.
    pub(crate) since: Ts,
    /// Whether all that was answered before the reader began is at or below `at`.
    pub(crate) exact: bool,
    /// Whether some shards could not be asked for their clocks: see [`Snapshot::guarded`].
    pub(crate) guarded: bool,
}

impl Held {
    /// The snapshot of a transaction that begins, which the horizons of its database respect now.
    pub(crate) fn hold(core: &mut Core, database: DatabaseId, since: Ts) -> Held {
        let exact = core.catalog.placement.shards().len() == 1;
        core.hold_snapshot(database, since);
        Held {
            exact,
            ..Held::begin(since)
        }
    }

    /// A snapshot at the timestamp with which its reader begins.
    pub(crate) fn begin(at: Ts) -> Held {
        Held {
            at,
            since: at,
            exact: false,
            guarded: false,
        }
    }

    /// The snapshot as protocols take it.
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

impl StatementPort {
    /// Whether the first statement of a transaction asks all shards for their clocks before it
    /// reads: its snapshot must miss nothing, and no shard may refuse it later.
    pub(crate) fn asks_for_clocks(&self) -> bool {
        if self.lockless {
            self.statement_snapshot();
        } else if !self.txn.asks_clocks {
            return false;
        }
        self.held().is_some_and(|held| !held.exact)
    }

    /// The snapshot that plain reads use: the transaction's or the statement's.
    pub(crate) fn held(&self) -> Option<Held> {
        self.txn.snapshot.get().or(self.snapshot.get())
    }

    /// Reads at a later snapshot from now on.
    pub(crate) fn hold(&self, raised: Held) {
        let whole = self.txn.snapshot.get().is_some();
        let place = if whole {
            &self.txn.snapshot
        } else {
            &self.snapshot
        };
        let before = place.replace(Some(raised)).expect("only raised");
        let mut core = self.txn.core.borrow_mut();
        core.hold_snapshot(self.txn.database, raised.at);
        core.release_snapshot(self.txn.database, before.at);
    }
}
