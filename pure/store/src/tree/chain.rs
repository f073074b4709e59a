//! Older versions of one row.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use base::Ts;

/// One superseded version.
pub(crate) struct Version {
    pub(crate) commit_ts: Ts,
    /// `None` is a tombstone.
    pub(crate) value: Option<Box<[u8]>>,
}

impl Version {
    pub(crate) fn size_bytes(&self) -> usize {
        self.value.as_ref().map_or(0, |value| value.len())
    }
}

/// Superseded versions of one row, newest first.
#[derive(Default)]
pub(crate) struct Chain(VecDeque<Version>);

impl Chain {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.0.iter().map(Version::size_bytes).sum()
    }

    /// Adds the version that was the newest of the row until now.
    pub(crate) fn push(&mut self, version: Version) {
        debug_assert!(
            self.0
                .front()
                .is_none_or(|front| front.commit_ts < version.commit_ts)
        );
        self.0.push_front(version);
    }

    /// The newest version that is not above `at`.
    pub(crate) fn at(&self, at: Ts) -> Option<(Ts, Option<&[u8]>)> {
        let newer = self.0.partition_point(|version| version.commit_ts > at);
        self.0
            .get(newer)
            .map(|version| (version.commit_ts, version.value.as_deref()))
    }

    /// Keeps the versions above `horizon` and, unless the row's newest version (`newest`) is at or
    /// below that, the newest one at or below it. A tombstone that would be the last is dropped:
    /// without it a reader finds nothing, too. Returns number and bytes of the dropped versions.
    pub(crate) fn prune(&mut self, newest: Ts, horizon: Ts) -> (usize, usize) {
        let above = self
            .0
            .partition_point(|version| version.commit_ts > horizon);
        let mut keep = if newest <= horizon {
            0
        } else {
            (above + 1).min(self.0.len())
        };
        while keep > 0 && self.0[keep - 1].value.is_none() {
            keep -= 1;
        }
        let dropped = self.0.iter().skip(keep);
        let dropped = dropped.fold((0, 0), |(n, bytes), v| (n + 1, bytes + v.size_bytes()));
        self.0.truncate(keep);
        dropped
    }

    pub(crate) fn footprint_bytes(&self) -> usize {
        size_of::<Self>() + self.0.capacity() * size_of::<Version>() + self.size_bytes()
    }

    /// Checks that the versions descend from `newest`.
    pub(crate) fn validate(&self, newest: Ts) {
        let mut above = newest;
        for version in &self.0 {
            assert!(
                version.commit_ts < above,
                "versions descend in commit timestamp"
            );
            above = version.commit_ts;
        }
    }
}
