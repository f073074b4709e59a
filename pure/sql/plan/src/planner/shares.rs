//! Shares of rows by what is known of the values of a table.

use super::access::Place;
use super::estimate::{share, share_of_all};
use base::{Datum, SqlError, Type};
use core::cell::Cell;
use expr::{Columns, Compare, Env, Expr, Func, TextFunc, eval_bool, walk};
use statistics::{ColumnValues, TableValues};
use std::collections::BTreeMap;

/// Terms of a condition that is tried on known values.
const TRIED_TERMS: usize = 32;

/// What is known of the table whose columns are those of `place`.
#[derive(Clone, Copy)]
pub(super) struct Known<'k> {
    pub(super) values: Option<&'k TableValues>,
    pub(super) place: Place,
}

/// Shares of the rows below the ends of a range.
struct Ends {
    low: f64,
    high: f64,
    least: f64,
}

impl<'k> Known<'k> {
    /// What is known of a column.
    fn column(self, expr: &Expr) -> Option<(u32, &'k ColumnValues)> {
        match expr {
            Expr::Column(column, _) if self.place.has(*column) => {
                let own = (column - self.place.first) as u16;
                Some((*column, self.values?.column(own)?))
            }
            _ => None,
        }
    }

    /// Share of the rows for which all conditions are true.
    pub(super) fn share_of_all<'e>(self, conditions: impl IntoIterator<Item = &'e Expr>) -> f64 {
        let Some(table) = self.values else {
            return share_of_all(conditions);
        };
        let mut ranges: BTreeMap<u32, Ends> = BTreeMap::new();
        let (mut product, mut unknown) = (1.0f64, Vec::new());
        for condition in conditions {
            if self.narrows(condition, &mut ranges) {
                continue;
            }
            match self.share(condition) {
                Some(share) => product *= share,
                None => unknown.push(condition),
            }
        }
        for ends in ranges.values() {
            product *= (ends.high - ends.low).max(ends.least);
        }
        let least = 1.0 / table.rows.max(1.0);
        (product * share_of_all(unknown)).clamp(least.min(1.0), 1.0)
    }

    /// Takes a bound of a column into its range.
    fn narrows(self, condition: &Expr, ranges: &mut BTreeMap<u32, Ends>) -> bool {
        let Some((column, known, op, value)) = self.comparison(condition) else {
            return false;
        };
        let Expr::Const(value, _) = value else {
            return false;
        };
        let below = |inclusive| known.below(value, inclusive);
        let (low, high) = match op {
            Compare::Lt => (0.0, below(false)),
            Compare::Le => (0.0, below(true)),
            Compare::Gt => (below(true), 1.0 - known.nulls),
            Compare::Ge => (below(false), 1.0 - known.nulls),
            _ => return false,
        };
        let ends = ranges.entry(column).or_insert(Ends {
            low: 0.0,
            high: 1.0 - known.nulls,
            least: known.equal_to_some(),
        });
        ends.low = ends.low.max(low);
        ends.high = ends.high.min(high);
        true
    }

    /// `column op value` with a column of which something is known; the value reads no row.
    fn comparison<'e>(
        self,
        condition: &'e Expr,
    ) -> Option<(u32, &'k ColumnValues, Compare, &'e Expr)> {
        let Expr::Call(Func::Compare(op), sides, _) = condition else {
            return None;
        };
        let [left, right] = sides.as_slice() else {
            return None;
        };
        let (known, op, value) = match (self.column(left), self.column(right)) {
            (Some(known), None) => (known, *op, right),
            (None, Some(known)) => (known, op.mirrored()?, left),
            _ => return None,
        };
        let reads_own = walk::columns(value)
            .iter()
            .any(|read| self.place.has(*read));
        (!reads_own).then_some((known.0, known.1, op, value))
    }

    /// Share of the rows for which a condition is true, if enough is known.
    fn share(self, condition: &Expr) -> Option<f64> {
        if let Some((_, known, op, value)) = self.comparison(condition) {
            let equal = match value {
                Expr::Const(Datum::Null, _) => return Some(0.0),
                Expr::Const(value, _) => known.equal(value),
                _ => known.equal_to_some(),
            };
            match op {
                Compare::Eq => return Some(equal),
                Compare::Ne => return Some((1.0 - known.nulls - equal).max(0.0)),
                _ => {}
            }
        }
        match condition {
            Expr::IsNull(arg, negated) => {
                let nulls = self.column(arg)?.1.nulls;
                Some(if *negated { 1.0 - nulls } else { nulls })
            }
            Expr::InList(arg, list, false) if self.column(arg).is_some() => {
                let known = self.column(arg)?.1;
                let each = list.iter().map(|item| match item {
                    Expr::Const(value, _) => known.equal(value),
                    _ => known.equal_to_some(),
                });
                Some(each.sum::<f64>().min(1.0))
            }
            Expr::And(parts) => Some(self.share_of_all(parts)),
            _ => self.tried(condition).or_else(|| match condition {
                Expr::Or(parts) => {
                    let none = parts.iter().map(|part| 1.0 - self.share_or_guess(part));
                    Some(1.0 - none.product::<f64>())
                }
                Expr::Not(inner) => Some(1.0 - self.share_or_guess(inner)),
                _ => None,
            }),
        }
    }

    fn share_or_guess(self, condition: &Expr) -> f64 {
        self.share(condition).unwrap_or_else(|| match condition {
            single @ Expr::Call(..) => self.share_of_all([single]),
            other => share(other),
        })
    }

    /// The share of known values of its one column that pass a condition of few and cheap terms.
    fn tried(self, condition: &Expr) -> Option<f64> {
        let terms = Cell::new(0);
        let column: Cell<Option<(u32, Type)>> = Cell::new(None);
        let too_much = walk::any(condition, &|node| {
            terms.set(terms.get() + 1);
            let is_cheap = match node {
                Expr::Column(read, ty) => {
                    let is_one = column.get().is_none_or(|(known, _)| known == *read);
                    column.set(Some((*read, *ty)));
                    is_one
                }
                Expr::Call(Func::Compare(op), _, _) => !matches!(
                    op,
                    Compare::Regex | Compare::IRegex | Compare::NotRegex | Compare::NotIRegex
                ),
                Expr::Call(Func::Text(TextFunc::Substring), _, _)
                | Expr::Const(..)
                | Expr::And(_)
                | Expr::Or(_)
                | Expr::Not(_)
                | Expr::IsNull(..)
                | Expr::InList(..) => true,
                _ => false,
            };
            !is_cheap || terms.get() > TRIED_TERMS
        });
        if too_much {
            return None;
        }
        let (column, ty) = column.get()?;
        let known = self.column(&Expr::Column(column, ty))?.1;
        known.passing(&mut |value| {
            if !fits(value, ty) {
                return None;
            }
            let passes = eval_bool(condition, &Same(value), &Env::NONE);
            passes.ok().map(|passes| passes == Some(true))
        })
    }
}

/// Whether a value is one of the type: the table may have changed since it was looked at.
fn fits(value: &Datum, ty: Type) -> bool {
    match ty {
        Type::Int2 | Type::Int4 | Type::Int8 => matches!(value, Datum::Int(_)),
        Type::Text | Type::Varchar(_) | Type::Char(_) | Type::Name => {
            matches!(value, Datum::Text(_))
        }
        Type::Numeric(_) => matches!(value, Datum::Decimal(_)),
        Type::Float4 | Type::Float8 => matches!(value, Datum::Float(_)),
        Type::Date => matches!(value, Datum::Date(_)),
        Type::Timestamp(_) | Type::Timestamptz(_) => matches!(value, Datum::Timestamp(_)),
        Type::Bool => matches!(value, Datum::Bool(_)),
        _ => false,
    }
}

/// A row all of whose columns have one value.
struct Same<'v>(&'v Datum);

impl Columns for Same<'_> {
    fn column(&self, _: u32, _: Type) -> Result<Datum, SqlError> {
        Ok(self.0.clone())
    }
}
