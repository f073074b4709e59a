//! An input of a set of inner joins, and what is known of it.

use super::access::{self, Path, Place, Wanted};
use super::computed::Computed;
use super::estimate::UNKNOWN_ROWS;
use super::few::{UNKNOWN_REL, picks};
use super::shares::Known;
use bind::rel::Rel;
use catalog::Table;
use expr::Expr;
use statistics::TableValues;
use std::rc::Rc;
use std::sync::Arc;
use txn::LockMode;

/// Cost of one key lookup, in rows scanned, as long as nothing is known of values: a lookup reads
/// and locks least, so it is taken for cheap.
const LOOKUP_GUESSED: f64 = 3.0;
/// The same where the numbers of rows can be relied on: of one row, and of a range.
const LOOKUP_POINT: f64 = 8.0;
const LOOKUP_RANGE: f64 = 20.0;

/// One input of a set of inner joins; its columns start at `place.first` of the whole row.
pub(super) struct Item {
    pub(super) rel: Option<Rel>,
    pub(super) place: Place,
    /// The table and its lock, if it is one that can be looked up.
    pub(super) table: Option<(Arc<Table>, Option<LockMode>)>,
    /// Rows of that table.
    pub(super) table_rows: f64,
    /// What the indexes of that table compute.
    pub(super) computed: Rc<Computed>,
    /// What is known of the values of that table.
    pub(super) values: Option<Arc<TableValues>>,
    /// Rows of an input that is no table, about.
    pub(super) rel_rows: f64,
    /// Conditions on this item alone, in its own numbering.
    pub(super) own: Vec<Expr>,
    /// The first of them are of policies.
    pub(super) secure: bool,
}

impl Item {
    /// A table with the conditions on it alone.
    pub(super) fn of_table(
        table: (Arc<Table>, Option<LockMode>),
        place: Place,
        own: Vec<Expr>,
    ) -> Item {
        Item {
            rel: None,
            place,
            table: Some(table),
            table_rows: UNKNOWN_ROWS,
            computed: Rc::default(),
            values: None,
            rel_rows: UNKNOWN_REL,
            own,
            secure: false,
        }
    }

    /// Any other relation.
    pub(super) fn of_rel(rel: Rel, place: Place) -> Item {
        Item {
            rel: Some(rel),
            place,
            table: None,
            table_rows: 0.0,
            computed: Rc::default(),
            values: None,
            rel_rows: UNKNOWN_REL,
            own: Vec::new(),
            secure: false,
        }
    }

    /// Whether it is a query whose rows are picked among those that are not locked.
    pub(super) fn picks(&self) -> bool {
        self.rel.as_ref().is_some_and(picks)
    }

    /// Cost of a lookup by this path.
    pub(super) fn lookup_cost(&self, path: &Path) -> f64 {
        let each = match (&self.values, path.access.point) {
            (None, _) => LOOKUP_GUESSED,
            (Some(_), true) => LOOKUP_POINT,
            (Some(_), false) => LOOKUP_RANGE,
        };
        each + path.cost
    }

    /// What is known of its values, its columns being those of `place`.
    pub(super) fn known(&self, place: Place) -> Known<'_> {
        let values = self.values.as_deref();
        Known { values, place }
    }

    /// No order of its rows.
    pub(super) fn wanted(&self) -> Wanted<'_> {
        Wanted {
            values: self.values.as_deref(),
            ..Wanted::any(self.table_rows, &self.computed)
        }
    }
}

/// Rows of an item by itself, about.
pub(super) fn item_rows(item: &Item) -> f64 {
    match (&item.table, &item.rel) {
        (Some((table, _)), _) => {
            let place = Place {
                first: 0,
                ..item.place
            };
            let wanted = item.wanted();
            let path = access::best(table, place, &item.own, &|_| false, wanted);
            path.rows * path.share_of_rest(&item.own, item.known(place))
        }
        (None, Some(Rel::One)) => 1.0,
        (None, Some(Rel::Values { rows, .. })) => rows.len() as f64,
        (None, Some(Rel::Virtual(_) | Rel::Function { .. })) => 100.0,
        (None, _) => item.rel_rows,
    }
}
