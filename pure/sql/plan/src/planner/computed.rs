//! Indexes on expressions, and on some rows of a table: which conditions they can serve.
//!
//! A condition on the expression of an index is one on the hidden column that the index has
//! instead. An index of some rows serves where the conditions say that no others are wanted: each
//! part of its condition is one of theirs, or follows from a single one of them.

use super::Planner;
use super::access::Place;
use bind::implies;
use catalog::{Index, Table};
use expr::{Expr, walk};
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
            match table
                .secondary
                .iter()
                .any(|index| index.predicate == Some(at))
            {
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
        let keys: Vec<(u32, Expr)> = self
            .keys
            .iter()
            .map(|(at, value)| {
                let column = place.first + u32::from(*at);
                (column, raised(value, place))
            })
            .collect();
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
    pub(super) fn hangs_on_values(&self, index: &Index, place: Place, conditions: &[Expr]) -> bool {
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
