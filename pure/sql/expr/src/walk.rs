//! Visitors over expression trees.

use super::{Expr, Func, Volatility};

impl Expr {
    /// Calls `visit` for every direct operand, in order of evaluation.
    pub fn each_child<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match self {
            Expr::Const(..)
            | Expr::Column(..)
            | Expr::Outer(..)
            | Expr::Param(..)
            | Expr::Subquery(..) => {}
            Expr::Call(_, args, _)
            | Expr::And(args)
            | Expr::Or(args)
            | Expr::Coalesce(args, _)
            | Expr::MakeArray(args, _) => args.iter().for_each(visit),
            Expr::Cast { arg, .. }
            | Expr::Not(arg)
            | Expr::IsNull(arg, _)
            | Expr::IsBool(arg, _, _) => visit(arg),
            Expr::IsDistinct(left, right, _) | Expr::AnyArray(left, _, right, _) => {
                visit(left);
                visit(right);
            }
            Expr::Case {
                arms, otherwise, ..
            } => {
                for (condition, result) in arms {
                    visit(condition);
                    visit(result);
                }
                visit(otherwise);
            }
            Expr::InList(arg, list, _) => {
                visit(arg);
                list.iter().for_each(visit);
            }
        }
    }

    /// As [`Expr::each_child`], with operands that may be replaced.
    pub fn each_child_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match self {
            Expr::Const(..)
            | Expr::Column(..)
            | Expr::Outer(..)
            | Expr::Param(..)
            | Expr::Subquery(..) => {}
            Expr::Call(_, args, _)
            | Expr::And(args)
            | Expr::Or(args)
            | Expr::Coalesce(args, _)
            | Expr::MakeArray(args, _) => args.iter_mut().for_each(visit),
            Expr::Cast { arg, .. }
            | Expr::Not(arg)
            | Expr::IsNull(arg, _)
            | Expr::IsBool(arg, _, _) => visit(arg),
            Expr::IsDistinct(left, right, _) | Expr::AnyArray(left, _, right, _) => {
                visit(left);
                visit(right);
            }
            Expr::Case {
                arms, otherwise, ..
            } => {
                for (condition, result) in arms {
                    visit(condition);
                    visit(result);
                }
                visit(otherwise);
            }
            Expr::InList(arg, list, _) => {
                visit(arg);
                list.iter_mut().for_each(visit);
            }
        }
    }
}

/// Calls `visit` for `expr` and everything below it, parents first.
pub fn walk<'a>(expr: &'a Expr, visit: &mut dyn FnMut(&'a Expr)) {
    visit(expr);
    expr.each_child(&mut |child| walk(child, visit));
}

/// Whether `wanted` holds for `expr` or anything below it.
pub fn any(expr: &Expr, wanted: &dyn Fn(&Expr) -> bool) -> bool {
    if wanted(expr) {
        return true;
    }
    let mut found = false;
    expr.each_child(&mut |child| found = found || any(child, wanted));
    found
}

/// Replaces bottom up: `change` sees every node after its operands were replaced.
pub fn map(expr: &mut Expr, change: &mut dyn FnMut(&mut Expr)) {
    expr.each_child_mut(&mut |child| map(child, change));
    change(expr);
}

/// As [`map`] for changes that may fail; stops changing at the first error.
pub fn try_map<E>(
    expr: &mut Expr,
    change: &mut dyn FnMut(&mut Expr) -> Result<(), E>,
) -> Result<(), E> {
    let mut result = Ok(());
    expr.each_child_mut(&mut |child| {
        if result.is_ok() {
            result = try_map(child, change);
        }
    });
    result?;
    change(expr)
}

/// The input columns that the expression reads, in increasing order without repetition.
pub fn columns(expr: &Expr) -> Vec<u32> {
    let mut found = Vec::new();
    walk(expr, &mut |node| {
        if let Expr::Column(index, _) = node {
            found.push(*index);
        }
    });
    found.sort_unstable();
    found.dedup();
    found
}

/// The strongest volatility of any function in the expression.
pub fn volatility(expr: &Expr) -> Volatility {
    let mut found = Volatility::Immutable;
    walk(expr, &mut |node| {
        if let Expr::Call(func, _, _) = node {
            found = found.max(func.volatility());
        }
    });
    found
}

/// Whether the expression has the same value for all rows of one execution: no columns, no
/// subqueries, nothing volatile.
pub fn is_row_independent(expr: &Expr) -> bool {
    !any(expr, &|node| match node {
        Expr::Column(..) | Expr::Subquery(..) => true,
        Expr::Call(func, _, _) => func.volatility() == Volatility::Volatile,
        _ => false,
    })
}

/// Whether the expression can be computed where the rows are once [`super::fold::freeze`] has run:
/// no subqueries and nothing volatile.
pub fn travels(expr: &Expr) -> bool {
    !any(expr, &|node| match node {
        Expr::Subquery(..) => true,
        Expr::Call(Func::Catalog(_), args, _) => !args.iter().all(is_row_independent),
        Expr::Call(func, args, _) => match func.volatility() {
            Volatility::Immutable => false,
            Volatility::Stable => !args.iter().all(is_row_independent),
            Volatility::Volatile => true,
        },
        _ => false,
    })
}
