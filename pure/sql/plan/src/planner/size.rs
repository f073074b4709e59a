//! How many rows a join gives.

use super::estimate::share;
use super::item::{Item, item_rows};
use super::join::owners;
use expr::{Compare, Expr, Func, walk};

/// Different values of a column of which nothing is known.
const DISTINCT: f64 = 200.0;

/// What a condition over several inputs says about the number of rows.
pub(super) struct Linked {
    /// Share of all pairs that pass.
    share: f64,
    pub(super) equality: bool,
    /// `a = b` of columns of two inputs: each with its place in its input.
    sides: Option<[(usize, u16); 2]>,
}

impl Linked {
    pub(super) fn of(condition: &Expr, items: &[Item]) -> Linked {
        let mut linked = Linked {
            share: share(condition),
            equality: false,
            sides: None,
        };
        let Expr::Call(Func::Compare(Compare::Eq), sides, _) = condition else {
            return linked;
        };
        let [one, other] = sides.as_slice() else {
            return linked;
        };
        let own = [one, other].map(|side| owners(items, &walk::columns(side)));
        let [[a], [b]] = own.each_ref().map(Vec::as_slice) else {
            return linked;
        };
        linked.equality = a != b;
        let mut values = DISTINCT;
        if let (Expr::Column(left, _), Expr::Column(right, _)) = (one, other) {
            let sides = [(*a, *left), (*b, *right)]
                .map(|(item, column)| (item, (column - items[item].place.first) as u16));
            linked.sides = (a != b).then_some(sides);
            let of = |(item, column): (usize, u16)| items[item].distinct(column);
            values = of(sides[0]).max(of(sides[1]));
        }
        linked.share = 1.0 / values.max(1.0);
        linked
    }
}

/// Rows of `rows` joined with `size` rows of a further input by the conditions that hold for it.
pub(super) fn grown(rows: f64, size: f64, linked: &[&Linked], items: &[Item]) -> f64 {
    let mut used = vec![false; linked.len()];
    let mut share = 1.0f64;
    // A row has one partner at most where all columns of a unique key are equal, however many
    // columns that are.
    for sides in linked.iter().filter_map(|linked| linked.sides) {
        for (item, _) in sides {
            let equal = |(number, linked): (usize, &&Linked)| {
                let column = linked.sides?.into_iter().find(|(own, _)| *own == item)?.1;
                (!used[number]).then_some((number, column))
            };
            let equal: Vec<(usize, u16)> = linked.iter().enumerate().filter_map(equal).collect();
            if equal.len() > 1
                && let Some((key, count)) = items[item].unique(&equal)
            {
                key.into_iter().for_each(|number| used[number] = true);
                share /= count.max(1.0);
            }
        }
    }
    for (linked, used) in linked.iter().zip(used) {
        if !used {
            share *= linked.share;
        }
    }
    (rows * size * share).max(1.0)
}

/// Rows of `rows` joined with the input `number` by the conditions `on`.
pub(super) fn grown_by(rows: f64, number: usize, on: &[Expr], items: &[Item]) -> f64 {
    let linked: Vec<Linked> = on.iter().map(|it| Linked::of(it, items)).collect();
    let linked: Vec<&Linked> = linked.iter().collect();
    grown(rows, item_rows(&items[number]), &linked, items)
}

impl Item {
    /// Different values of a column, about.
    fn distinct(&self, column: u16) -> f64 {
        let Some((table, _)) = &self.table else {
            return DISTINCT;
        };
        if let Some(known) = self
            .values
            .as_ref()
            .and_then(|values| values.column(column))
        {
            return known.distinct(self.table_rows);
        }
        let indexes = core::iter::once(&table.primary).chain(&table.secondary);
        let mut keys = indexes.filter(|index| index.unique && index.predicate.is_none());
        let single =
            keys.any(|index| matches!(index.columns.as_slice(), [only] if only.column == column));
        match single {
            true => self.table_rows,
            false => DISTINCT.min(self.table_rows.max(1.0)),
        }
    }

    /// The conditions that set all columns of a unique key, out of these with their columns; and
    /// the rows of the table.
    fn unique(&self, equal: &[(usize, u16)]) -> Option<(Vec<usize>, f64)> {
        let (table, _) = self.table.as_ref()?;
        let indexes = core::iter::once(&table.primary).chain(&table.secondary);
        let mut keys = indexes.filter(|index| index.unique && index.predicate.is_none());
        let found = keys.find_map(|index| {
            let of = |wanted: u16| equal.iter().find(|(_, column)| *column == wanted);
            let key = index
                .columns
                .iter()
                .map(|key| of(key.column).map(|found| found.0));
            key.collect::<Option<Vec<usize>>>()
        });
        found.map(|key| (key, self.table_rows))
    }
}
