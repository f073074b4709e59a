//! Snapshots that miss nothing a client has been told.
//!
//! A reader without locks reads all rows as they were at one timestamp, drawn from the clock of its
//! coordinator. Another node's clock may be ahead: a commit that it answered before the reader
//! began may lie above that timestamp. So a shard notes its own clock when a reader first comes:
//! the *bound*. All that was answered by then is installed or promised there at or below the bound.
//! The reader must not miss a version above its snapshot and not above the bound; a version above
//! the bound was not answered when the reader began. Instead the snapshot is raised: by the shard
//! itself if the reader has no other operation, else by the reader, which starts again
//! ([`crate::OpError::Raise`]).

use base::Ts;
use serde::{Deserialize, Serialize};

/// A snapshot, and what its reader knows about versions above it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// Versions at or below this are read.
    pub at: Ts,
    /// Timestamp with which the reader began. It names the reader at its coordinator: what the
    /// reader knows of shards holds also after a restart at a later timestamp.
    pub since: Ts,
    /// No version above `at` and up to this may be missed. [`Ts::ZERO`]: none matters. [`Ts::MAX`]:
    /// not known here; the protocol takes it from the first answer of the shard, or else the shard
    /// from its clock.
    pub bound: Ts,
    /// Whether this is the reader's only operation: then the shard moves the snapshot.
    pub sole: bool,
}

impl Snapshot {
    /// A [`Snapshot::bound`] above all versions.
    const ANY: Ts = Ts(Ts::MAX.0 - 1);

    /// Exactly the versions at `at`: later ones do not matter.
    #[must_use]
    pub fn exactly(at: Ts) -> Snapshot {
        Snapshot {
            at,
            since: at,
            bound: Ts::ZERO,
            sole: false,
        }
    }

    /// The versions at `at`, for a reader that began at `since`, could not ask all shards for their
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

    /// Whether each row is checked for versions above the snapshot.
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
    /// Clock of the shard at that moment.
    pub bound: Ts,
}
