//! The claim of a lock: its mode, and the columns that it reads and adds to.

use super::LockMode;
use crate::columns::Columns;

/// The strength of a lock, down to columns for a lock that does not own the row.
///
/// A plain [`LockMode`] is the claim of that mode over all columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    /// Strongest mode.
    pub(super) mode: LockMode,
    /// Columns that are read; an exclusive lock reads all.
    pub(super) reads: Columns,
    /// Columns to which formulas add; an exclusive lock may change all.
    pub(super) adds: Columns,
}

impl Claim {
    /// [`LockMode::Shared`]: reads these columns, and that the row is there.
    #[must_use]
    pub fn reads(columns: Columns) -> Claim {
        Claim {
            mode: LockMode::Shared,
            reads: columns,
            adds: Columns::NONE,
        }
    }

    /// [`LockMode::Increment`]: adds to these columns.
    #[must_use]
    pub fn adds(columns: Columns) -> Claim {
        Claim {
            mode: LockMode::Increment,
            reads: Columns::NONE,
            adds: columns,
        }
    }

    /// [`LockMode::Fold`]: promises or commits what it has added to these columns.
    #[must_use]
    pub fn folds(columns: Columns) -> Claim {
        Claim {
            mode: LockMode::Fold,
            ..Claim::adds(columns)
        }
    }

    /// Its strongest mode.
    #[must_use]
    pub fn mode(self) -> LockMode {
        self.mode
    }

    /// Whether the lock reads as well as adds.
    pub(super) fn is_mixed(self) -> bool {
        matches!(self.mode, LockMode::Increment | LockMode::Fold) && self.reads != Columns::NONE
    }

    /// Whether two claims on one item exclude each other.
    #[inline]
    #[must_use]
    pub fn conflicts(self, other: Claim) -> bool {
        use LockMode::{Exclusive, Fold};
        self.mode == Exclusive
            || other.mode == Exclusive
            || (self.mode == Fold && other.mode == Fold)
            || self.reads.intersects(other.adds)
            || self.adds.intersects(other.reads)
    }

    /// Whether a lock with this claim allows all that one with the other allows.
    #[inline]
    #[must_use]
    pub fn covers(self, other: Claim) -> bool {
        self.mode == LockMode::Exclusive
            || (self.mode >= other.mode
                && self.reads.contains(other.reads)
                && self.adds.contains(other.adds))
    }

    /// The weakest claim that covers both. It excludes what one of them excludes, and no more.
    #[inline]
    #[must_use]
    pub fn join(self, other: Claim) -> Claim {
        Claim {
            mode: self.mode.max(other.mode),
            reads: self.reads.union(other.reads),
            adds: self.adds.union(other.adds),
        }
    }
}

impl From<LockMode> for Claim {
    #[inline]
    fn from(mode: LockMode) -> Claim {
        match mode {
            LockMode::Shared => Claim::reads(Columns::ALL),
            LockMode::Increment => Claim::adds(Columns::ALL),
            LockMode::Fold => Claim::folds(Columns::ALL),
            LockMode::Exclusive => Claim {
                mode,
                reads: Columns::ALL,
                adds: Columns::ALL,
            },
        }
    }
}
