//! The choice of an index: which conditions become keys, and what a path costs.

use crate::bind::rel::SortKey;
use crate::exec::step::{Access, Bound, KeyPart, SlotPart, table_index};
use crate::expr::{Compare, Expr, Func, walk};
use base::Type;
use catalog::Table;

/// Rows of a table of which nothing is known.
const TABLE_ROWS: f64 = 1e6;
/// Cost of reading a row through a secondary index, in rows read from the primary one.
const SECONDARY_COST: f64 = 2.0;
/// Cost of asking all shards instead of one.
const FAN_OUT_COST: f64 = 20.0;

/// A way to the rows of a table.
pub(super) struct Path {
    pub(super) access: Access,
    /// Rows that it gives, about.
    pub(super) rows: f64,
    pub(super) cost: f64,
    /// Conditions that the keys make certain.
    pub(super) certain: Vec<usize>,
    /// It gives rows in the wanted order.
    pub(super) ordered: bool,
}

/// What a condition says about a column.
struct Sarg {
    condition: usize,
    column: u16,
    kind: SargKind,
}

enum SargKind {
    Equal(KeyPart),
    Low(Bound),
    High(Bound),
}

/// Whether values of both types have one representation and one order in keys.
pub(super) fn same_kind(a: Type, b: Type) -> bool {
    let class = |ty: Type| match ty {
        Type::Bool => 0,
        Type::Int2 | Type::Int4 | Type::Int8 | Type::Oid | Type::Reg(_) => 1,
        Type::Float4 | Type::Float8 => 2,
        Type::Numeric(_) => 3,
        Type::Text | Type::Varchar(_) | Type::Name | Type::InternalChar => 4,
        Type::Char(_) => 5,
        Type::Bytea => 6,
        Type::Date => 7,
        Type::Timestamp(_) => 8,
        Type::Timestamptz(_) => 9,
        Type::Uuid => 10,
        Type::Interval => 11,
        Type::Array(_) | Type::Unknown => 12,
    };
    class(a) == class(b) && class(a) != 12
}

/// The table's columns in the numbering of the conditions.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) first: u32,
    pub(super) width: u32,
}

impl Place {
    pub(super) fn has(self, column: u32) -> bool {
        (self.first..self.first + self.width).contains(&column)
    }
}

/// Finds what conditions say about the columns of one table.
struct Finder<'f> {
    table: &'f Table,
    place: Place,
    /// Columns of other tables whose values are there when the table is read.
    known: &'f dyn Fn(u32) -> bool,
}

impl Finder<'_> {
    fn column(&self, expr: &Expr) -> Option<u16> {
        match expr {
            Expr::Column(column, _) if self.place.has(*column) => {
                Some((column - self.place.first) as u16)
            }
            _ => None,
        }
    }

    /// Whether the value, of type `ty`, can stand in a key of the column.
    fn usable(&self, value: &Expr, column: u16, ty: Type) -> bool {
        let mut columns = walk::columns(value).into_iter();
        same_kind(self.table.columns[usize::from(column)].ty, ty)
            && columns.all(|c| !self.place.has(c) && (self.known)(c))
            && is_repeatable(value)
    }

    /// `column op value`, the column being on the left.
    fn comparison<'e>(&self, expr: &'e Expr) -> Option<(u16, Compare, &'e Expr)> {
        let Expr::Call(Func::Compare(op), sides, _) = expr else {
            return None;
        };
        let [left, right] = sides.as_slice() else {
            return None;
        };
        match (self.column(left), self.column(right)) {
            (Some(column), _) if self.usable(right, column, right.ty()) => {
                Some((column, *op, right))
            }
            (_, Some(column)) if self.usable(left, column, left.ty()) => {
                Some((column, op.mirrored()?, left))
            }
            _ => None,
        }
    }

    fn sarg(&self, expr: &Expr) -> Option<(u16, SargKind)> {
        match expr {
            Expr::Call(..) => {
                let (column, op, value) = self.comparison(expr)?;
                let bound = |inclusive| Bound {
                    value: value.clone(),
                    inclusive,
                };
                let kind = match op {
                    Compare::Eq => SargKind::Equal(KeyPart::One(value.clone())),
                    Compare::Lt => SargKind::High(bound(false)),
                    Compare::Le => SargKind::High(bound(true)),
                    Compare::Gt => SargKind::Low(bound(false)),
                    Compare::Ge => SargKind::Low(bound(true)),
                    _ => return None,
                };
                Some((column, kind))
            }
            Expr::InList(arg, list, false) => {
                let column = self.column(arg)?;
                let usable = |value: &Expr| self.usable(value, column, value.ty());
                list.iter()
                    .all(usable)
                    .then(|| (column, listed(list.clone())))
            }
            Expr::AnyArray(arg, Compare::Eq, array, false) => {
                let (column, element) = (self.column(arg)?, array.ty().element()?);
                let kind = SargKind::Equal(KeyPart::Array((**array).clone()));
                self.usable(array, column, element)
                    .then_some((column, kind))
            }
            Expr::Or(parts) => self.alternatives(parts),
            // A boolean column alone, or its negation, fixes its value.
            Expr::Column(..) => Some((self.column(expr)?, listed(vec![Expr::bool(true)]))),
            Expr::Not(inner) => Some((self.column(inner)?, listed(vec![Expr::bool(false)]))),
            _ => None,
        }
    }

    /// `x = 1 OR x = 2` is `x IN (1, 2)`.
    fn alternatives(&self, parts: &[Expr]) -> Option<(u16, SargKind)> {
        let mut values = Vec::with_capacity(parts.len());
        let mut column = None;
        for part in parts {
            let (own, op, value) = self.comparison(part)?;
            if op != Compare::Eq || *column.get_or_insert(own) != own {
                return None;
            }
            values.push(value.clone());
        }
        Some((column?, listed(values)))
    }
}

fn listed(mut values: Vec<Expr>) -> SargKind {
    SargKind::Equal(match (values.len(), values.pop()) {
        (1, Some(only)) => KeyPart::One(only),
        (_, last) => {
            values.extend(last);
            KeyPart::List(values)
        }
    })
}

/// Finds conditions `column op value` on the table at `place`, the value being computable from
/// columns for which `known` holds.
fn sargs(
    table: &Table,
    place: Place,
    conditions: &[Expr],
    known: &dyn Fn(u32) -> bool,
) -> Vec<Sarg> {
    let finder = Finder {
        table,
        place,
        known,
    };
    let found = conditions
        .iter()
        .enumerate()
        .filter_map(|(condition, expr)| {
            let (column, kind) = finder.sarg(expr)?;
            Some(Sarg {
                condition,
                column,
                kind,
            })
        });
    found.collect()
}

/// Whether an expression gives the same value each time during one statement.
pub(super) fn is_repeatable(expr: &Expr) -> bool {
    walk::volatility(expr) != crate::expr::Volatility::Volatile
        && !walk::any(expr, &|node| {
            matches!(node, Expr::Subquery(..) | Expr::Outer(..))
        })
}

/// The best path to the rows of `table` that pass `conditions`.
///
/// `order` is what the consumer would like: sort keys in the numbering of the conditions.
pub(super) fn best(
    table: &Table,
    place: Place,
    conditions: &[Expr],
    known: &dyn Fn(u32) -> bool,
    order: &[SortKey],
) -> Path {
    let sargs = sargs(table, place, conditions, known);
    let count = 1 + table.secondary.len();
    let paths = (0..count)
        .filter(|number| !table_index(table, *number).building)
        .map(|number| path(table, place, number, &sargs, order));
    let best = paths.min_by(|a, b| a.cost.total_cmp(&b.cost));
    best.expect("a table has a primary index")
}

fn path(table: &Table, place: Place, number: usize, sargs: &[Sarg], order: &[SortKey]) -> Path {
    let index = table_index(table, number);
    let equal = |column: u16| {
        sargs
            .iter()
            .filter(|sarg| sarg.column == column)
            .find_map(|sarg| match &sarg.kind {
                SargKind::Equal(part) => Some((sarg.condition, part)),
                SargKind::Low(_) | SargKind::High(_) => None,
            })
    };
    let (mut prefix, mut certain, mut combinations) = (Vec::new(), Vec::new(), 1.0f64);
    for key in &index.columns {
        let Some((condition, part)) = equal(key.column) else {
            break;
        };
        combinations *= match part {
            KeyPart::One(_) => 1.0,
            KeyPart::List(list) => list.len() as f64,
            KeyPart::Array(_) => 10.0,
        };
        prefix.push(part.clone());
        certain.push(condition);
    }
    let (mut low, mut high) = (None, None);
    let next = index.columns.get(prefix.len());
    if let Some(key) = next {
        for sarg in sargs.iter().filter(|sarg| sarg.column == key.column) {
            match &sarg.kind {
                SargKind::Low(bound) if low.is_none() => low = Some(bound.clone()),
                SargKind::High(bound) if high.is_none() => high = Some(bound.clone()),
                _ => {}
            }
        }
    }
    let slot = slot_parts(index, &prefix, &equal);
    let point = index.unique && prefix.len() == index.columns.len();
    let mut rows = combinations * guess(index, prefix.len(), point);
    rows = match (&low, &high) {
        (Some(_), Some(_)) => (rows / 20.0).max(5.0),
        (None, None) => rows,
        _ => (rows / 3.0).max(5.0),
    };
    let single = prefix.iter().all(|part| matches!(part, KeyPart::One(_)));
    let (ordered, reverse) = if point && single {
        (true, false)
    } else if single && slot.is_some() {
        ordering(index, prefix.len(), place, order, &|column| {
            equal(column).is_some()
        })
    } else {
        (false, false)
    };
    let ordered = ordered && !order.is_empty();
    let mut cost = rows * if number == 0 { 1.0 } else { SECONDARY_COST };
    if slot.is_none() {
        cost += FAN_OUT_COST;
    }
    if ordered {
        cost *= 0.3;
    }
    if number != 0 {
        // Conditions stay with the rows: the entry may be older than the row that is locked.
        certain.clear();
        cost += 1.0;
    }
    let access = Access {
        index: number,
        prefix,
        low,
        high,
        slot,
        point,
        reverse,
    };
    Path {
        access,
        rows,
        cost,
        certain,
        ordered,
    }
}

fn guess(index: &catalog::Index, known: usize, point: bool) -> f64 {
    if point {
        return 1.0;
    }
    let columns = index.columns.len() as f64;
    let missing = (index.columns.len() - known) as f64;
    let rows = TABLE_ROWS.powf(missing / columns);
    if index.unique || missing > 0.0 {
        rows
    } else {
        10.0
    }
}

fn slot_parts<'a>(
    index: &catalog::Index,
    prefix: &[KeyPart],
    equal: &dyn Fn(u16) -> Option<(usize, &'a KeyPart)>,
) -> Option<Vec<SlotPart>> {
    let part = |column: &u16| {
        let position = index.columns.iter().position(|key| key.column == *column);
        if let Some(position) = position.filter(|position| *position < prefix.len()) {
            return Some(SlotPart::Prefix(position));
        }
        match equal(*column)?.1 {
            KeyPart::One(value) => Some(SlotPart::Value(value.clone())),
            KeyPart::List(_) | KeyPart::Array(_) => None,
        }
    };
    index.slot_columns.iter().map(part).collect()
}

/// Whether entries behind a fixed prefix come in the wanted order, and whether in reverse.
fn ordering(
    index: &catalog::Index,
    prefix: usize,
    place: Place,
    order: &[SortKey],
    fixed: &dyn Fn(u16) -> bool,
) -> (bool, bool) {
    let mut columns = index.columns[prefix..].iter();
    let mut reverse: Option<bool> = None;
    for key in order {
        if !place.has(key.column) {
            return (false, false);
        }
        let column = (key.column - place.first) as u16;
        if fixed(column) {
            continue;
        }
        let Some(next) = columns.next().filter(|next| next.column == column) else {
            return (false, false);
        };
        // Keys put NULL behind everything in ascending order, before everything in descending.
        let backwards = next.descending != key.descending;
        if key.nulls_first != key.descending || reverse.is_some_and(|r| r != backwards) {
            return (false, false);
        }
        reverse = Some(backwards);
    }
    (true, reverse.unwrap_or(false))
}
