//! Sets of columns: those that an operation reads of a row, and those that it adds to.

use core::fmt;

/// A set of columns of one table.
///
/// Exact for the first 63 columns; all later ones count as one. So two sets without a common column
/// may still intersect, but sets with one always do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Columns(u64);

/// Columns from this one on share one bit.
const LAST: u32 = u64::BITS - 1;

impl Columns {
    /// No column: only whether the row is there.
    pub const NONE: Columns = Columns(0);
    /// All columns, however many there are.
    pub const ALL: Columns = Columns(u64::MAX);

    /// The one column at `position` (from 0) of the row.
    #[must_use]
    pub fn one(position: u32) -> Columns {
        Columns(1 << position.min(LAST))
    }

    /// The columns of either.
    #[must_use]
    pub fn union(self, other: Columns) -> Columns {
        Columns(self.0 | other.0)
    }

    /// Whether some column may be in both.
    #[inline]
    #[must_use]
    pub fn intersects(self, other: Columns) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether all columns of `other` are in `self`.
    #[inline]
    #[must_use]
    pub fn contains(self, other: Columns) -> bool {
        other.0 & !self.0 == 0
    }
}

impl FromIterator<u32> for Columns {
    fn from_iter<I: IntoIterator<Item = u32>>(positions: I) -> Columns {
        let mut all = Columns::NONE;
        for position in positions {
            all = all.union(Columns::one(position));
        }
        all
    }
}

impl fmt::Debug for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Columns::ALL {
            return f.write_str("all");
        }
        let set = (0..u64::BITS).filter(|bit| self.0 >> bit & 1 == 1);
        f.debug_set().entries(set).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_meet_where_they_share_a_column() {
        let few: Columns = [1, 3].into_iter().collect();
        assert!(few.intersects(Columns::one(3)) && !few.intersects(Columns::one(2)));
        assert!(Columns::ALL.contains(few) && !few.contains(Columns::ALL));
        assert!(!Columns::NONE.intersects(Columns::ALL));
        assert_eq!(format!("{few:?}"), "{1, 3}");
        // Behind the last bit all columns are one.
        assert!(Columns::one(70).intersects(Columns::one(90)));
        assert!(!Columns::one(70).intersects(Columns::one(62)));
    }
}
