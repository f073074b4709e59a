//! Conditions in a form from which keys, joins and emptiness can be read.

use super::access::{self, is_repeatable};
use base::{Datum, Type};
use bind::conjuncts;
use core::cmp::Ordering;
use expr::{Compare, Expr, Func, walk};
use std::collections::BTreeMap;

/// Conditions of one part of an OR that are looked for in its other parts.
const SHARED_MAX: usize = 64;

/// Adds the conjuncts of a condition. What all parts of an OR have in common stands beside it:
/// `(k = l AND x) OR (k = l AND y)` is `k = l AND (x OR y)`.
pub(super) fn split(condition: Expr, into: &mut Vec<Expr>) {
    let mut parts = Vec::new();
    conjuncts(condition, &mut parts);
    for part in parts {
        match part {
            Expr::Or(mut arms) => {
                // What is never true adds no row.
                arms.retain(|arm| !is_never(arm));
                match arms.len() {
                    0 => into.push(Expr::bool(false)),
                    1 => split(arms.remove(0), into),
                    _ => factored(arms, into),
                }
            }
            Expr::Const(Datum::Bool(true), _) => {}
            other => into.push(other),
        }
    }
}

fn factored(arms: Vec<Expr>, into: &mut Vec<Expr>) {
    let conjuncts_of = |arm: &Expr| match arm {
        Expr::And(parts) => parts.iter().take(SHARED_MAX).cloned().collect(),
        single => vec![single.clone()],
    };
    let has = |arm: &Expr, wanted: &Expr| match arm {
        Expr::And(parts) => parts.iter().any(|part| is_same(part, wanted)),
        single => is_same(single, wanted),
    };
    let mut shared: Vec<Expr> = arms.first().map_or_else(Vec::new, conjuncts_of);
    shared.retain(|part| is_repeatable(part) && arms[1..].iter().all(|arm| has(arm, part)));
    if shared.is_empty() {
        into.push(Expr::Or(arms));
        return;
    }
    let mut rest = Vec::with_capacity(arms.len());
    for arm in arms {
        let mut parts = Vec::new();
        conjuncts(arm, &mut parts);
        parts.retain(|part| !shared.iter().any(|known| is_same(known, part)));
        match (parts.len(), parts.pop()) {
            // One part says no more than what is common: so do all together.
            (0, _) => {
                into.extend(shared);
                return;
            }
            (1, Some(only)) => rest.push(only),
            (_, last) => {
                parts.extend(last);
                rest.push(Expr::And(parts));
            }
        }
    }
    into.extend(shared);
    into.push(Expr::Or(rest));
}

/// Whether two conditions are one, `a = b` and `b = a` included.
fn is_same(one: &Expr, other: &Expr) -> bool {
    if one == other {
        return true;
    }
    match (one, other) {
        (
            Expr::Call(Func::Compare(Compare::Eq), a, _),
            Expr::Call(Func::Compare(Compare::Eq), b, _),
        ) => a.len() == 2 && b.len() == 2 && a[0] == b[1] && a[1] == b[0],
        _ => false,
    }
}

/// What an OR says about rows of which only the columns for which `own` holds are known: each of
/// its parts must say something about them.
pub(super) fn derived(condition: &Expr, own: &dyn Fn(u32) -> bool) -> Option<Expr> {
    let Expr::Or(arms) = condition else {
        return None;
    };
    let about = |part: &Expr| {
        let columns = walk::columns(part);
        !columns.is_empty() && columns.iter().all(|column| own(*column)) && is_repeatable(part)
    };
    let mut found = Vec::with_capacity(arms.len());
    for arm in arms {
        let parts = match arm {
            Expr::And(parts) => parts.as_slice(),
            single => core::slice::from_ref(single),
        };
        let mut kept: Vec<Expr> = parts.iter().filter(|part| about(part)).cloned().collect();
        found.push(match (kept.len(), kept.pop()) {
            (0, _) => return None,
            (1, Some(only)) => only,
            (_, last) => {
                kept.extend(last);
                Expr::And(kept)
            }
        });
    }
    Some(Expr::Or(found))
}

/// Whether a condition is true of no row.
pub(super) fn is_never(condition: &Expr) -> bool {
    let is_null = |expr: &Expr| matches!(expr, Expr::Const(Datum::Null, _));
    match condition {
        Expr::Const(Datum::Bool(false) | Datum::Null, _) => true,
        Expr::Call(Func::Compare(_), sides, _) => sides.iter().any(is_null),
        Expr::And(parts) => parts.iter().any(is_never),
        Expr::Or(parts) => parts.iter().all(is_never),
        Expr::InList(arg, list, false) => is_null(arg) || list.iter().all(is_null),
        _ => false,
    }
}

/// End of a range of values, and whether it is in it.
type End<'e> = (&'e Datum, bool);

/// Whether conditions over one row contradict each other: one of them is never true, or constants
/// leave no value for a column.
pub(super) fn contradict(conditions: &[Expr]) -> bool {
    if conditions.iter().any(is_never) {
        return true;
    }
    let known: Vec<(u32, Compare, &Datum)> = conditions.iter().filter_map(constant).collect();
    let mut columns: Vec<u32> = known.iter().map(|(column, _, _)| *column).collect();
    columns.sort_unstable();
    columns.dedup();
    columns.into_iter().any(|column| {
        let own = known.iter().filter(|(other, _, _)| *other == column);
        let (mut low, mut high): (Option<End<'_>>, Option<End<'_>>) = (None, None);
        for (_, op, value) in own {
            let inclusive = matches!(op, Compare::Eq | Compare::Le | Compare::Ge);
            let narrows = |end: &Option<End<'_>>, side: Ordering| {
                end.is_none_or(|(known, known_inclusive)| {
                    let order = value.compare(known);
                    order == side || (order == Ordering::Equal && known_inclusive)
                })
            };
            if matches!(op, Compare::Eq | Compare::Gt | Compare::Ge)
                && narrows(&low, Ordering::Greater)
            {
                low = Some((value, inclusive));
            }
            if matches!(op, Compare::Eq | Compare::Lt | Compare::Le)
                && narrows(&high, Ordering::Less)
            {
                high = Some((value, inclusive));
            }
        }
        let (Some((low, low_inclusive)), Some((high, high_inclusive))) = (low, high) else {
            return false;
        };
        match low.compare(high) {
            Ordering::Less => false,
            Ordering::Equal => !(low_inclusive && high_inclusive),
            Ordering::Greater => true,
        }
    })
}

/// `column op constant`, of types that are compared as they are.
fn constant(condition: &Expr) -> Option<(u32, Compare, &Datum)> {
    let Expr::Call(Func::Compare(op), sides, _) = condition else {
        return None;
    };
    let ordered = matches!(
        op,
        Compare::Eq | Compare::Lt | Compare::Le | Compare::Gt | Compare::Ge
    );
    // Values of char(n) are the same with and without blanks behind them.
    let padded = sides.iter().any(|side| matches!(side.ty(), Type::Char(_)));
    if !ordered || padded {
        return None;
    }
    match sides.as_slice() {
        [Expr::Column(column, a), Expr::Const(value, b)] if access::same_kind(*a, *b) => {
            Some((*column, *op, value))
        }
        [Expr::Const(value, b), Expr::Column(column, a)] if access::same_kind(*a, *b) => {
            Some((*column, op.mirrored()?, value))
        }
        _ => None,
    }
}

/// All conditions as one.
pub(super) fn conjunction(mut conditions: Vec<Expr>) -> Option<Expr> {
    match conditions.len() {
        0 => None,
        1 => conditions.pop(),
        _ => Some(Expr::And(conditions)),
    }
}

/// Takes out the conditions that are the same for all rows and known only when the statement runs.
pub(super) fn take_gates(conditions: &mut Vec<Expr>) -> Vec<Expr> {
    let gate = |condition: &Expr| {
        !matches!(condition, Expr::Const(..))
            && walk::is_row_independent(condition)
            && !walk::any(condition, &|node| matches!(node, Expr::Outer(..)))
    };
    if !conditions.iter().any(gate) {
        return Vec::new();
    }
    let (gates, rest) = core::mem::take(conditions).into_iter().partition(gate);
    *conditions = rest;
    gates
}

/// `a = b AND b = 1` also says `a = 1`.
pub(super) fn derive_constants(conditions: &mut Vec<Expr>) {
    let constant = |expr: &Expr| walk::columns(expr).is_empty() && is_repeatable(expr);
    // Columns that are equal to a column, and values that are equal to it.
    let mut peers: BTreeMap<u32, Vec<Expr>> = BTreeMap::new();
    let mut values: BTreeMap<u32, Vec<Expr>> = BTreeMap::new();
    let mut open: Vec<(u32, Expr)> = Vec::new();
    for condition in conditions.iter() {
        let Expr::Call(Func::Compare(Compare::Eq), sides, _) = condition else {
            continue;
        };
        match sides.as_slice() {
            [a @ Expr::Column(left, _), b @ Expr::Column(right, _)] => {
                peers.entry(*left).or_default().push(b.clone());
                peers.entry(*right).or_default().push(a.clone());
            }
            [Expr::Column(column, _), value] | [value, Expr::Column(column, _)]
                if constant(value) =>
            {
                values.entry(*column).or_default().push(value.clone());
                open.push((*column, value.clone()));
            }
            _ => {}
        }
    }
    while let Some((column, value)) = open.pop() {
        for peer in peers.get(&column).into_iter().flatten() {
            let Expr::Column(other, ty) = peer else {
                continue;
            };
            let known = values.entry(*other).or_default();
            if known.contains(&value) || !access::same_kind(*ty, value.ty()) {
                continue;
            }
            known.push(value.clone());
            open.push((*other, value.clone()));
            let sides = vec![peer.clone(), value.clone()];
            let new = Expr::Call(Func::Compare(Compare::Eq), sides, Type::Bool);
            conditions.push(new);
        }
    }
}

/// The conjuncts of all conditions.
pub(super) fn split_all(conditions: Vec<Expr>) -> Vec<Expr> {
    let mut all = Vec::with_capacity(conditions.len());
    for condition in conditions {
        split(condition, &mut all);
    }
    all
}
