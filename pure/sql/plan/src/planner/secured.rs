//! Rows that policies show: what may be computed of them, and what of the hidden ones.

use super::normal::split;
use super::query::{Need, Planned, Wish};
use super::{Planner, columns_of};
use base::{SqlError, Type};
use bind::rel::Rel;
use expr::{Compare, Expr, Func};

impl Planner<'_, '_> {
    /// Rows for which conditions are true; they may be those of policies.
    pub(super) fn filter(
        &mut self,
        (input, more, secure): (Rel, Vec<Expr>, bool),
        mut conditions: Vec<Expr>,
        need: &Need,
        wish: Wish,
    ) -> Result<Planned, SqlError> {
        if secure {
            return self.secured((input, more), conditions, need, wish);
        }
        // Those of the query inside come first: what they keep away must not make the others fail.
        let mut all = Vec::with_capacity(conditions.len() + more.len());
        more.into_iter().for_each(|it| split(it, &mut all));
        all.append(&mut conditions);
        self.rel(input, all, need, wish)
    }

    /// Rows that policies show. What may fail is computed of no others: it stays above.
    fn secured(
        &mut self,
        (input, policies): (Rel, Vec<Expr>),
        conditions: Vec<Expr>,
        need: &Need,
        wish: Wish,
    ) -> Result<Planned, SqlError> {
        let mut all = Vec::with_capacity(conditions.len() + policies.len());
        policies.into_iter().for_each(|it| split(it, &mut all));
        let (mut tight, leaky): (Vec<Expr>, Vec<Expr>) =
            conditions.into_iter().partition(is_leakproof);
        all.append(&mut tight);
        let mut need = need.clone();
        need.extend(columns_of(&leaky));
        let limit = wish.limit.filter(|_| leaky.is_empty());
        let planned = self.rel(input, all, &need, Wish { limit, ..wish })?;
        Ok(self.finish(planned, leaky))
    }
}

/// Whether an expression tells nothing of the rows that it is computed of but its value: it
/// cannot fail.
pub(super) fn is_leakproof(expr: &Expr) -> bool {
    let own = match expr {
        Expr::Call(Func::Compare(op), ..) | Expr::AnyArray(_, op, _, _) => *op <= Compare::Ge,
        Expr::Cast {
            arg,
            to,
            explicit: _,
        } => never_fails(arg.ty(), *to),
        Expr::Const(..)
        | Expr::Column(..)
        | Expr::Outer(..)
        | Expr::Param(..)
        | Expr::And(_)
        | Expr::Or(_)
        | Expr::Not(_)
        | Expr::IsNull(..)
        | Expr::IsBool(..)
        | Expr::IsDistinct(..)
        | Expr::Case { .. }
        | Expr::InList(..)
        | Expr::Coalesce(..) => true,
        Expr::Call(..) | Expr::MakeArray(..) | Expr::Subquery(..) => false,
    };
    let mut all = own;
    expr.each_child(&mut |child| all = all && is_leakproof(child));
    all
}

/// Whether every value of a type is one of the other.
fn never_fails(from: Type, to: Type) -> bool {
    let size = |ty: Type| match ty {
        Type::Int2 => Some(1),
        Type::Int4 => Some(2),
        Type::Int8 => Some(3),
        Type::Numeric(None) => Some(4),
        _ => None,
    };
    let is_text = |ty: Type| {
        matches!(
            ty,
            Type::Text | Type::Varchar(_) | Type::Char(_) | Type::Name
        )
    };
    match (size(from), size(to)) {
        (Some(from), Some(to)) => from <= to,
        _ => from == to || is_text(from) && matches!(to, Type::Text | Type::Varchar(None)),
    }
}
