//! The versions in the store that are not durable yet.

use alloc::collections::BTreeMap;
use base::{Planted, Position, Ts, is_planted};

/// Positions of commits that are installed and perhaps not durable. A reader of such a version
/// answers only when its record is durable (rule R11). Empty when the disk keeps up.
#[derive(Default, Debug)]
pub struct Installed {
    commits: BTreeMap<Ts, Position>,
    last: Position,
}

impl Installed {
    /// A commit was installed whose record ends at `position`.
    pub fn insert(&mut self, commit_ts: Ts, position: Position) {
        self.commits.insert(commit_ts, position);
        self.last = self.last.max(position);
    }

    /// Position that a reader of the version must wait for.
    #[inline]
    pub fn of(&self, commit_ts: Ts) -> Position {
        if self.commits.is_empty() || is_planted(Planted::ReadNotDurable) {
            return Position(0);
        }
        self.commits.get(&commit_ts).copied().unwrap_or_default()
    }

    /// Position that a reader of absence must wait for: any commit may have removed the row.
    #[inline]
    pub fn all(&self) -> Position {
        if self.commits.is_empty() || is_planted(Planted::ReadNotDurable) {
            Position(0)
        } else {
            self.last
        }
    }

    /// The journal is durable to here.
    pub fn forget(&mut self, durable: Position) {
        if self.last <= durable {
            self.commits.clear();
        } else {
            self.commits.retain(|_, position| *position > durable);
        }
    }

    /// Whether every installed commit is durable.
    pub fn is_empty(&self) -> bool {
        self.commits.is_empty()
    }

    /// Number of commits that are perhaps not durable.
    pub fn len(&self) -> usize {
        self.commits.len()
    }
}
