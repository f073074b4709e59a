//! EXISTS and IN as semi joins.

use super::access;
use super::few::{is_of_few_rows, is_of_some_groups};
use base::Type;
use bind::rel::{Binds, Call, CallKind, JoinKind, QueryUse, Rel};
use expr::{Compare, Expr, Func, walk};

/// Joins `input` with the query of a call, if that can be done: by a semi join (NOT: anti join), or
/// with the different rows of a query of few rows, as if it stood in FROM.
pub(super) fn join(input: &mut Rel, call: &Call<Rel>, anti: bool) -> bool {
    let Some((kind, right, mut on)) = semi_join(call, anti) else {
        return false;
    };
    place_right(&mut on, input.width());
    let groups = kind == JoinKind::Semi && is_of_some_groups(call, &right);
    let picked = kind == JoinKind::Semi && is_in(call) && is_of_few_rows(&right);
    let types = (picked || groups).then(|| types_of(input)).flatten();
    let left = Box::new(core::mem::replace(input, Rel::One));
    *input = match types {
        None => Rel::Join {
            kind,
            left,
            right: Box::new(right),
            on,
        },
        Some(types) => {
            let keys = (0..right.width()).collect();
            let right = match groups {
                true => right,
                false => Rel::Distinct {
                    input: Box::new(right),
                    keys,
                },
            };
            let joined = Rel::Join {
                kind: JoinKind::Inner,
                left,
                right: Box::new(right),
                on,
            };
            let columns = (0..).zip(types);
            joined.projected(columns.map(|(i, ty)| Expr::Column(i, ty)).collect())
        }
    };
    true
}

fn is_in(call: &Call<Rel>) -> bool {
    match &call.kind {
        CallKind::Query { usage, .. } => matches!(usage, QueryUse::In(_)),
        _ => false,
    }
}

/// Types of the columns of a relation that is made of tables.
fn types_of(rel: &Rel) -> Option<Vec<Type>> {
    match rel {
        Rel::Table { table, .. } => Some(table.columns.iter().map(|column| column.ty).collect()),
        Rel::Filter { input, .. } => types_of(input),
        Rel::Join {
            kind: JoinKind::Inner,
            left,
            right,
            ..
        } => {
            let mut types = types_of(left)?;
            types.extend(types_of(right)?);
            Some(types)
        }
        _ => None,
    }
}

/// EXISTS or IN as a semi join (NOT: anti join), if its dependence on the outer row is only in
/// conditions that can become join conditions: the kind, the right side, the conditions over
/// both rows.
fn semi_join(call: &Call<Rel>, anti: bool) -> Option<(JoinKind, Rel, Vec<Expr>)> {
    let kind = if anti { JoinKind::Anti } else { JoinKind::Semi };
    match &call.kind {
        CallKind::Query {
            usage: QueryUse::Exists,
            query,
            binds,
        } => {
            let outer = binds
                .iter()
                .map(|(_, expr)| expr.clone())
                .collect::<Vec<_>>();
            // Only the number of rows matters: projections and orders are dropped.
            let mut inner = query;
            while let Rel::Project { input, .. } | Rel::Sort { input, .. } = inner {
                inner = input;
            }
            let Rel::Filter {
                input,
                conditions,
                secure: false,
            } = inner
            else {
                return None;
            };
            if reads_slots(input, binds) {
                return None;
            }
            parts_of(input, conditions, binds, &outer, kind)
        }
        // NOT IN is not an anti join: a NULL on either side makes it unknown.
        CallKind::Query {
            usage: QueryUse::In(left),
            query,
            binds,
        } if !anti && binds.is_empty() => Some((kind, query.clone(), in_conditions(left))),
        _ => None,
    }
}

/// Marks right columns by their distance from the top, because the left width is not known yet.
const RIGHT: u32 = 1 << 30;

fn in_conditions(left: &[Expr]) -> Vec<Expr> {
    let conditions = left.iter().enumerate().map(|(i, key)| {
        let right = Expr::Column(RIGHT + i as u32, key.ty());
        let sides = vec![key.clone(), right];
        Expr::Call(Func::Compare(Compare::Eq), sides, Type::Bool)
    });
    conditions.collect()
}

fn parts_of(
    input: &Rel,
    conditions: &[Expr],
    binds: &Binds,
    outer: &[Expr],
    kind: JoinKind,
) -> Option<(JoinKind, Rel, Vec<Expr>)> {
    let (mut inner, mut on) = (Vec::new(), Vec::new());
    for condition in conditions {
        let mut reads = false;
        walk::walk(condition, &mut |node| {
            if let Expr::Param(slot, _) = node {
                reads |= binds.iter().any(|(bound, _)| bound == slot);
            }
        });
        if !reads {
            inner.push(condition.clone());
            continue;
        }
        if !access::is_repeatable(condition) {
            return None;
        }
        let mut condition = condition.clone();
        walk::map(&mut condition, &mut |node| match node {
            Expr::Column(column, _) => *column += RIGHT,
            Expr::Param(slot, _) => {
                if let Some(place) = binds.iter().position(|(bound, _)| bound == slot) {
                    *node = outer[place].clone();
                }
            }
            _ => {}
        });
        on.push(condition);
    }
    Some((kind, input.clone().filtered(inner), on))
}

/// Puts real numbers for the columns that [`semi_join`] has marked.
fn place_right(on: &mut [Expr], left_width: u32) {
    for condition in on {
        walk::map(condition, &mut |node| {
            if let Expr::Column(column, _) = node
                && *column >= RIGHT
            {
                *column = *column - RIGHT + left_width;
            }
        });
    }
}

/// Whether a relation reads any of the slots.
fn reads_slots(rel: &Rel, binds: &Binds) -> bool {
    let mut found = false;
    rel.clone().each_expr_mut(&mut |expr| {
        walk::walk(expr, &mut |node| {
            if let Expr::Param(slot, _) = node {
                found |= binds.iter().any(|(bound, _)| bound == slot);
            }
        });
    });
    found
}
