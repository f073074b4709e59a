//! Joins: columns of USING, and conditions that hold dependent subqueries.

use super::rel::{Binds, Call, JoinKind, Rel};
use super::scope::{Scope, ScopeColumn};
use super::{Binder, place_calls, unsupported};
use base::{SqlError, SqlState, Type};
use expr::{Expr, walk};

/// The columns at these places. The types only matter for stored rows.
fn columns(places: core::ops::Range<u32>) -> impl Iterator<Item = Expr> {
    places.map(|place| Expr::Column(place, Type::Unknown))
}

impl Binder<'_> {
    /// A join whose condition reads `calls`: they are made for each pair of rows.
    pub(super) fn attach_calls(
        &mut self,
        kind: JoinKind,
        (left, right): (Rel, Rel),
        binds: Binds,
        mut on: Vec<Expr>,
        mut calls: Vec<Call<Rel>>,
    ) -> Result<Rel, SqlError> {
        let (left_width, right_width) = (left.width(), right.width());
        let width = left_width + right_width;
        let columns =
            |places: core::ops::Range<u32>| places.map(|i| Expr::Column(i, Type::Unknown));
        match kind {
            JoinKind::Inner => {
                let rel = self.attach(kind, left, right, binds, Vec::new())?;
                on.iter_mut()
                    .for_each(|condition| place_calls(condition, width));
                Ok(rel.applied(calls).filtered(on))
            }
            JoinKind::Left => Ok(self.left_calls((left, right), binds, on, calls)),
            JoinKind::Right if binds.is_empty() => {
                let mut swap = |node: &mut Expr| match node {
                    Expr::Column(column, _) if *column < left_width => *column += right_width,
                    Expr::Column(column, _) => *column -= left_width,
                    _ => {}
                };
                let outer = calls
                    .iter_mut()
                    .flat_map(|call| call.kind.outer_exprs_mut());
                for expr in on.iter_mut().chain(outer) {
                    walk::map(expr, &mut swap);
                }
                let sides = (right, left);
                let rel = self.attach_calls(JoinKind::Left, sides, binds, on, calls)?;
                let back = columns(right_width..width).chain(columns(0..right_width));
                Ok(rel.projected(back.collect()))
            }
            _ => Err(unsupported(
                "a correlated subquery in the condition of this join",
            )),
        }
    }

    /// A left join: its right side, with the condition, runs for each left row.
    fn left_calls(
        &mut self,
        (left, right): (Rel, Rel),
        mut binds: Binds,
        mut on: Vec<Expr>,
        mut calls: Vec<Call<Rel>>,
    ) -> Rel {
        let (left_width, right_width) = (left.width(), right.width());
        let mut slots: Vec<(u32, u32)> = Vec::new();
        let mut lower = |node: &mut Expr| match node {
            Expr::Column(column, _) if *column >= left_width => *column -= left_width,
            Expr::Column(column, ty) => {
                let known = slots.iter().find(|(known, _)| known == column);
                let slot = known.map(|(_, slot)| *slot).unwrap_or_else(|| {
                    let slot = self.new_slot();
                    slots.push((*column, slot));
                    binds.push((slot, Expr::Column(*column, *ty)));
                    slot
                });
                *node = Expr::Param(slot, *ty);
            }
            _ => {}
        };
        let outer = calls
            .iter_mut()
            .flat_map(|call| call.kind.outer_exprs_mut());
        for expr in on.iter_mut().chain(outer) {
            walk::map(expr, &mut lower);
        }
        on.iter_mut()
            .for_each(|condition| place_calls(condition, right_width));
        let right = right.applied(calls).filtered(on);
        let right = right.projected(columns(0..right_width).collect());
        Rel::Lateral {
            outer: true,
            left: Box::new(left),
            right: Box::new(right),
            binds,
            on: Vec::new(),
        }
    }
}

/// Finds a USING column in one side and shadows it.
pub(super) fn shared_column(
    scope: &mut Scope,
    name: &str,
    side: &str,
) -> Result<ScopeColumn, SqlError> {
    let mut fitting = scope
        .columns
        .iter_mut()
        .filter(|c| !c.shadowed && c.name == name);
    let Some(found) = fitting.next() else {
        return Err(SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" specified in USING clause does not exist in {side} table"),
        ));
    };
    if fitting.next().is_some() {
        return Err(SqlError::new(
            SqlState::AMBIGUOUS_COLUMN,
            format!("common column name \"{name}\" appears more than once in {side} table"),
        ));
    }
    // A merged column of an earlier USING disappears; its sides are already shadowed.
    found.shadowed = true;
    let copy = found.clone();
    if copy.relation.is_empty() {
        let merged = copy.name.clone();
        scope
            .columns
            .retain(|c| !(c.relation.is_empty() && c.name == merged));
    }
    Ok(copy)
}
