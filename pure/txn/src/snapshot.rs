//! Snapshots that miss nothing a client has been told.
//!
//! A reader that takes no locks reads all rows as they were at one timestamp, drawn from the clock
//! of its coordinator. Another node's clock may be ahead: a commit that it has answered before the
//! reader began may lie above that timestamp. So a shard that a reader comes to for the first time
//! notes where its own clock stands, the *bound*: all that was answered by then is installed there
//! at or below the bound, or promised there at or below it. A version above the snapshot and not
//! above the bound is one that the reader must not miss; what lies above the bound was not answered
//! when the reader began. Then the snapshot is raised: by the shard itself if the reader has no
//! other operation, else by the reader, which starts again ([`crate::OpError::Raise`]).

use base::Ts;
use serde::{Deserialize, Serialize};

/// A snapshot, and what its reader knows about versions above it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// Versions at or below are read.
    pub at: Ts,
    /// The timestamp with which the reader began. Names it at its coordinator: after it has
    /// started again at a later timestamp, what it knows of shards still holds.
    pub since: Ts,
    /// Versions above `at` and not above this must not be missed. [`Ts::ZERO`]: there is none that
    /// matters. [`Ts::MAX`]: not known; the protocol knows it from the first answer of the shard,
    /// or else the shard's clock says.
    pub bound: Ts,
    /// This is the reader's only operation: the shard moves the snapshot instead of refusing it.
    pub sole: bool,
}

impl Snapshot {
    /// A [`Snapshot::bound`] above all versions.
    const ANY: Ts = Ts(Ts::MAX.0 - 1);

    /// Exactly the versions at `at`: whatever lies above does not matter.
    #[must_use]
    pub fn exactly(at: Ts) -> Snapshot {
        Snapshot {
            at,
            since: at,
            bound: Ts::ZERO,
            sole: false,
        }
    }

    /// The versions at `at` for a reader that began at `since`, could not ask all shards for their
    /// clocks, and must see all that was answered before: no row may have a newer version.
    #[must_use]
    pub fn guarded(at: Ts, since: Ts) -> Snapshot {
        Snapshot {
            at,
            since,
            bound: Snapshot::ANY,
            sole: false,
        }
    }

    /// Whether each row is to be looked at for versions above the snapshot.
    #[must_use]
    pub fn is_guarded(&self) -> bool {
        self.bound == Snapshot::ANY
    }

    /// The versions at `at` for a reader that began at `since` and must see all that was answered
    /// before.
    #[must_use]
    pub fn recent(at: Ts, since: Ts) -> Snapshot {
        Snapshot {
            at,
            since,
            bound: Ts::MAX,
            sole: false,
        }
    }
}

/// What a shard found when a reader came to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Contact {
    /// The reader, see [`Snapshot::since`].
    pub since: Ts,
    /// Where the clock of the shard stood.
    pub bound: Ts,
}
