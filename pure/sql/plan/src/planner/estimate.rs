//! How many rows pass: guesses from the form of conditions and the number of rows of tables.
//!
//! Nothing is known about values. The shares are those that PostgreSQL takes where it knows
//! nothing either, so that its users find what they are used to.

use base::Datum;
use expr::{Compare, Expr, Func};

/// Rows of a table of which nothing is known.
pub(super) const UNKNOWN_ROWS: f64 = 1e6;
/// Rows for which a smaller table is planned: the table may have grown since its rows were counted,
/// and where it has not, any plan is quick.
pub(super) const PLANNED_ROWS_MIN: f64 = 1_000.0;
/// The same for the choice of an index, which does not matter in a small table.
pub(super) const CHOSEN_ROWS_MIN: f64 = 100_000.0;
/// Different values of a column or expression of which nothing is known.
const DISTINCT: f64 = 200.0;
/// Rows that are equal in all columns of an index that is not unique.
const DUPLICATES: f64 = 10.0;
/// Rows on one side of a value.
const ONE_SIDE: f64 = 1.0 / 3.0;
/// Rows between two values.
const BETWEEN: f64 = 0.05;
/// Rows that pass a pattern.
const PATTERN: f64 = 0.1;

/// Share of the rows for which a condition is true.
pub(super) fn share(condition: &Expr) -> f64 {
    let share = match condition {
        Expr::Const(Datum::Bool(true), _) => 1.0,
        Expr::Const(..) => 0.0,
        Expr::Column(..) | Expr::IsBool(..) => 0.5,
        Expr::Call(Func::Compare(op), _, _) => match op {
            Compare::Eq => 1.0 / DISTINCT,
            Compare::Ne => 1.0 - 1.0 / DISTINCT,
            Compare::Lt | Compare::Le | Compare::Gt | Compare::Ge => ONE_SIDE,
            Compare::Like | Compare::ILike | Compare::Regex | Compare::IRegex => PATTERN,
            Compare::NotLike | Compare::NotILike | Compare::NotRegex | Compare::NotIRegex => {
                1.0 - PATTERN
            }
        },
        Expr::InList(_, list, negated) => turned(list.len() as f64 / DISTINCT, *negated),
        Expr::IsNull(_, negated) | Expr::IsDistinct(_, _, negated) => {
            let equal = 1.0 / DISTINCT;
            turned(equal, *negated != matches!(condition, Expr::IsDistinct(..)))
        }
        Expr::And(parts) => share_of_all(parts),
        Expr::Or(parts) => 1.0 - parts.iter().map(|part| 1.0 - share(part)).product::<f64>(),
        Expr::Not(inner) => 1.0 - share(inner),
        _ => ONE_SIDE,
    };
    share.clamp(0.0, 1.0)
}

fn turned(share: f64, negated: bool) -> f64 {
    match negated {
        true => 1.0 - share.min(1.0),
        false => share.min(1.0),
    }
}

/// Share of the rows for which all conditions are true. Conditions that stand together often say
/// the same, so that several are no narrower than one equality, unless one of them is.
pub(super) fn share_of_all<'e>(conditions: impl IntoIterator<Item = &'e Expr>) -> f64 {
    let shares = conditions.into_iter().map(share);
    let (product, least) = shares.fold((1.0f64, 1.0f64), |(product, least), share| {
        (product * share, least.min(share))
    });
    product.max(least.min(1.0 / DISTINCT))
}

/// Different combinations of `columns` values in `rows` rows.
pub(super) fn groups(rows: f64, columns: usize) -> f64 {
    DISTINCT.powi(columns.min(100) as i32).min(rows).max(1.0)
}

/// Entries of an index whose first `known` columns have one value, of a table of `rows` rows.
pub(super) fn entries(rows: f64, columns: usize, known: usize, unique: bool) -> f64 {
    let missing = columns.saturating_sub(known);
    match (missing, unique) {
        (0, true) => rows.min(1.0),
        (0, false) => rows.min(DUPLICATES),
        _ => rows
            .max(1.0)
            .powf(missing as f64 / columns as f64)
            .min(rows),
    }
}

/// Rows of `whole` that lie between bounds, if there are any.
pub(super) fn between(low: bool, high: bool, whole: f64) -> f64 {
    match (low, high) {
        (true, true) => (whole * BETWEEN).max(5.0).min(whole),
        (false, false) => whole,
        _ => (whole * ONE_SIDE).max(5.0).min(whole),
    }
}

/// Rows that are left of `rows` by a limit; a limit that is not known is taken for 10.
pub(super) fn at_most(rows: f64, limit: Option<&Expr>) -> f64 {
    match limit {
        None => rows,
        Some(Expr::Const(count, _)) => {
            let count = count.as_int();
            count.map_or(rows, |count| rows.min(count.max(0) as f64))
        }
        Some(_) => rows.min(10.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Type;

    fn compare(op: Compare) -> Expr {
        let sides = vec![
            Expr::Column(0, Type::Int4),
            Expr::Const(Datum::Int(1), Type::Int4),
        ];
        Expr::Call(Func::Compare(op), sides, Type::Bool)
    }

    #[test]
    fn shares_add_up_and_stay_between_nothing_and_all() {
        let (equal, less) = (compare(Compare::Eq), compare(Compare::Lt));
        assert!((share(&equal) - 0.005).abs() < 1e-9);
        assert!((share(&Expr::Not(Box::new(equal.clone()))) - 0.995).abs() < 1e-9);
        let both = Expr::And(vec![equal.clone(), less.clone()]);
        assert!((share(&both) - 0.005).abs() < 1e-9);
        let range = Expr::And(vec![less.clone(), less.clone()]);
        assert!((share(&range) - 1.0 / 9.0).abs() < 1e-9);
        let either = Expr::Or(vec![less.clone(), less]);
        assert!((share(&either) - 5.0 / 9.0).abs() < 1e-9);
        let list = vec![Expr::Const(Datum::Int(1), Type::Int4); 500];
        let all = Expr::InList(
            Box::new(Expr::Column(0, Type::Int4)),
            list.clone().into(),
            false,
        );
        let none = Expr::InList(Box::new(Expr::Column(0, Type::Int4)), list.into(), true);
        assert_eq!((share(&all), share(&none)), (1.0, 0.0));
    }

    #[test]
    fn entries_of_an_index_are_no_more_than_rows() {
        assert_eq!(entries(1e6, 2, 0, true), 1e6);
        assert_eq!(entries(1e6, 2, 1, true), 1e3);
        assert_eq!(entries(1e6, 2, 2, true), 1.0);
        assert_eq!(entries(1e6, 2, 2, false), 10.0);
        assert_eq!(entries(3.0, 2, 2, false), 3.0);
        assert_eq!(entries(0.0, 2, 1, true), 0.0);
        assert_eq!(between(true, true, 2.0), 2.0);
        assert_eq!(groups(50.0, 1), 50.0);
        assert_eq!(groups(1e6, 1), 200.0);
    }
}
