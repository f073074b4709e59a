//! Snapshots of statements and read-only transactions: which timestamp they read at, and how they
//! come to miss nothing that a client was told before they began (see [`txn::snapshot`]).
//!
//! A statement begins at its shard's clock. If a shard refuses to be read there, the statement
//! starts again at the timestamp that it was told, and the second time at one that no shard can
//! refuse, because all of them were asked for their clocks (the first time, where the protocol
//! refuses every snapshot of which that is not known). A read-only transaction of several
//! statements asks for them before its first one, so that it never has to begin again.

use crate::port::StatementPort;
use crate::protocols::clocks_suffice;
use base::{Planted, Ts, is_planted};
use exec::Port;
use exec::port::{ExecError, OpFuture};
use txn::{Op, OpResult, Snapshot};

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

/// Raises a snapshot to the largest clock of all shards that can be reached. If that is all of
/// them, the reader misses nothing: a shard that answered a commit before had a clock above it.
/// Else a protocol whose shards do not remember what they told readers looks at each row.
pub(crate) async fn raise_to_clocks(port: &StatementPort, held: Held) -> Result<Held, ExecError> {
    let planned = port.catalog().version;
    let mut raised = Held {
        exact: true,
        guarded: false,
        ..held
    };
    let mut asked = Vec::new();
    for shard in port.shards().iter() {
        if port.is_unreachable(*shard) {
            raised.exact = false;
            raised.guarded = clocks_suffice(port.txn.protocol);
            continue;
        }
        let op = Op::Clock(Snapshot::recent(held.at, held.since));
        asked.push(OpFuture::start(port, *shard, planned, op, false));
    }
    for answer in asked {
        let OpResult::Clock(clock) = answer.await? else {
            unreachable!("a shard that is asked for its clock tells it")
        };
        if !is_planted(Planted::SnapshotNotRaised) {
            raised.at = raised.at.max(clock);
        }
    }
    Ok(raised)
}
