//! Indexes on expressions, and on some rows of a table: which conditions they can serve.
//!
//! A condition on the expression of an index is one on the hidden column that the index has
//! instead. An index of some rows serves where the conditions say that no others are wanted: each
//! part of its condition is one of theirs, or follows from a single one of them.

use super::Planner;
use super::access::Place;
use base::{Datum, Type};
use catalog::{Index, Table};
use expr::{Compare, Expr, Func, fold, walk};
use std::rc::Rc;
use std::sync::Arc;

/// What the indexes of a table compute, over its columns in its own numbering.
#[derive(Default)]
pub(super) struct Computed {
    /// Hidden columns that are keys.
    keys: Vec<(u16, Expr)>,
    /// Hidden columns that tell which rows an index has: the parts of the condition.
    predicates: Vec<(u16, Vec<Expr>)>,
}

impl Planner<'_, '_> {
    /// What the indexes of a table compute.
    pub(super) fn computed_of(&mut self, table: &Arc<Table>) -> Rc<Computed> {
        if !table.columns.iter().any(|column| column.of_index) {
            return Rc::default();
        }
        if let Some((_, known)) = self.computed.iter().find(|(id, _)| *id == table.id) {
            return known.clone();
        }
        // A column that cannot be computed is in no index that is read.
        let mut computed = Computed::default();
        for (at, column) in table.columns.iter().enumerate() {
            if !column.of_index || column.generated.is_none() {
                continue;
            }
            let value = self.binder.generated(table, column);
            let Ok(value) = value.and_then(|value| self.settled_expr(value)) else {
                continue;
            };
            let at = at as u16;
            match table.secondary.iter().any(|index| index.predicate == Some(at)) {
                true => {
                    let mut parts = Vec::new();
                    bind::conjuncts(value, &mut parts);
                    computed.predicates.push((at, parts));
                }
                false => computed.keys.push((at, value)),
            }
        }
        let computed = Rc::new(computed);
        self.computed.push((table.id, computed.clone()));
        computed
    }
}

impl Computed {
    /// The conditions over the table at `place`, with the hidden columns of indexes in the place of
    /// their expressions; `None`: they are as they were.
    pub(super) fn rewritten(&self, place: Place, conditions: &[Expr]) -> Option<Vec<Expr>> {
        if self.keys.is_empty() {
            return None;
        }
        let keys: Vec<(u32, Expr)> = self.keys.iter().map(|(at, value)| {
            let column = place.first + u32::from(*at);
            (column, raised(value, place))
        }).collect();
        let mut rewritten = conditions.to_vec();
        let mut changed = false;
        for condition in &mut rewritten {
            replace(condition, &keys, &mut changed);
        }
        changed.then_some(rewritten)
    }

    /// The conditions that say what the index asks of its rows; `None`: they do not say all of it,
    /// and rows may be missing in the index. And the share of the rows that it has, about.
    pub(super) fn served(
        &self,
        index: &Index,
        place: Place,
        conditions: &[Expr],
    ) -> Option<(Vec<usize>, f64)> {
        let Some(column) = index.predicate else {
            return Some((Vec::new(), 1.0));
        };
        let (_, parts) = self.predicates.iter().find(|(at, _)| *at == column)?;
        let mut same = Vec::new();
        for part in parts {
            let part = raised(part, place);
            match conditions.iter().position(|condition| *condition == part) {
                Some(at) => same.push(at),
                None if conditions.iter().any(|condition| implies(condition, &part)) => {}
                None => return None,
            }
        }
        Some((same, super::estimate::share_of_all(parts)))
    }

    /// Whether other constants in the conditions might ask for another index.
    pub(super) fn hangs_on_values(
        &self,
        index: &Index,
        place: Place,
        conditions: &[Expr],
    ) -> bool {
        let read = || conditions.iter().flat_map(walk::columns);
        let asked = |parts: &Vec<Expr>| {
            let mut columns = parts.iter().flat_map(walk::columns);
            columns.all(|column| read().any(|other| other == column + place.first))
        };
        let constant = |node: &Expr| matches!(node, Expr::Const(..));
        let has = |(at, value): &(u16, Expr)| {
            index.columns.iter().any(|key| key.column == *at) && walk::any(value, &constant)
        };
        self.predicates.iter().any(|(_, parts)| asked(parts)) || self.keys.iter().any(has)
    }
}

/// The expression over the columns of the table at `place`.
fn raised(expr: &Expr, place: Place) -> Expr {
    let mut expr = expr.clone();
    walk::map(&mut expr, &mut |node| {
        if let Expr::Column(column, _) = node {
            *column += place.first;
        }
    });
    expr
}

/// Puts columns in the place of what they hold, the largest parts first.
fn replace(expr: &mut Expr, keys: &[(u32, Expr)], changed: &mut bool) {
    if let Some((column, _)) = keys.iter().find(|(_, value)| value == expr) {
        *expr = Expr::Column(*column, expr.ty());
        *changed = true;
        return;
    }
    expr.each_child_mut(&mut |child| replace(child, keys, changed));
}

/// Whether a condition is true only where `part` is true.
fn implies(condition: &Expr, part: &Expr) -> bool {
    if condition == part {
        return true;
    }
    match (condition, part) {
        (Expr::Or(all), _) => all.iter().all(|one| implies(one, part)),
        (Expr::And(all), _) => all.iter().any(|one| implies(one, part)),
        (_, Expr::Or(some)) => some.iter().any(|one| implies(condition, one)),
        (_, Expr::And(all)) => all.iter().all(|one| implies(condition, one)),
        (_, Expr::IsNull(value, true)) => is_strict_in(condition, value),
        (Expr::InList(value, list, false), _) => {
            let equal = |one: &Expr| compared(Compare::Eq, value, one, part);
            !list.is_empty() && list.iter().all(equal)
        }
        _ => match (truth(condition), truth(part)) {
            (Some(own), Some(other)) => own == other,
            _ => comparison(condition).is_some_and(|(op, value, bound)| compared(op, value, bound, part)),
        },
    }
}

/// A truth value, and whether it is true: `a`, `NOT a`, `a = true`, `a IS TRUE`.
fn truth(condition: &Expr) -> Option<(&Expr, bool)> {
    match condition {
        Expr::Column(_, Type::Bool) => Some((condition, true)),
        Expr::Not(inner) => truth(inner).map(|(value, is)| (value, !is)),
        Expr::Call(Func::Compare(Compare::Eq), sides, _) => match sides.as_slice() {
            [value @ Expr::Column(_, Type::Bool), Expr::Const(Datum::Bool(is), _)]
            | [Expr::Const(Datum::Bool(is), _), value @ Expr::Column(_, Type::Bool)] => {
                Some((value, *is))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether a condition can only be true where `value` is not NULL.
fn is_strict_in(condition: &Expr, value: &Expr) -> bool {
    match condition {
        Expr::Call(Func::Compare(_), sides, _) => sides.iter().any(|side| side == value),
        Expr::InList(arg, _, _) | Expr::AnyArray(arg, _, _, false) => **arg == *value,
        // What is not in an empty array may be NULL.
        Expr::Not(inner) => {
            !matches!(**inner, Expr::AnyArray(..)) && is_strict_in(inner, value)
        }
        Expr::Column(..) => condition == value,
        _ => false,
    }
}

/// `value op constant`, the constant being on the right.
fn comparison(condition: &Expr) -> Option<(Compare, &Expr, &Expr)> {
    let Expr::Call(Func::Compare(op), sides, _) = condition else {
        return None;
    };
    match sides.as_slice() {
        [value, bound @ Expr::Const(..)] => Some((*op, value, bound)),
        [bound @ Expr::Const(..), value] => Some((op.mirrored()?, value, bound)),
        _ => None,
    }
}

/// Whether `value op bound` implies `part`, which is about the same value.
fn compared(op: Compare, value: &Expr, bound: &Expr, part: &Expr) -> bool {
    use Compare::{Eq, Ge, Gt, Le, Lt, Ne};
    if let Expr::InList(other, list, false) = part {
        let meets = |one: &Expr| holds(Eq, bound, one);
        return op == Eq && **other == *value && list.iter().any(meets);
    }
    let Some((wanted, other, limit)) = comparison(part) else {
        return false;
    };
    if other != value {
        return false;
    }
    match (op, wanted) {
        (Eq, Eq | Ne | Lt | Le | Gt | Ge) => holds(wanted, bound, limit),
        (Lt, Lt | Le | Ne) | (Le, Le) => holds(Le, bound, limit),
        (Le, Lt | Ne) => holds(Lt, bound, limit),
        (Gt, Gt | Ge | Ne) | (Ge, Ge) => holds(Ge, bound, limit),
        (Ge, Gt | Ne) => holds(Gt, bound, limit),
        _ => false,
    }
}

/// Whether a comparison of two constants is true.
fn holds(op: Compare, left: &Expr, right: &Expr) -> bool {
    let constant = |expr: &Expr| matches!(expr, Expr::Const(..));
    if !constant(left) || !constant(right) || left.ty() != right.ty() {
        return false;
    }
    let sides = vec![left.clone(), right.clone()];
    let call = Expr::Call(Func::Compare(op), sides, Type::Bool);
    matches!(fold::constant(&call), Ok(Datum::Bool(true)))
}
