//! GROUPING SETS: a grouped query over several sets of keys, and GROUPING().
//!
//! Every row of the input becomes one row for each set, which has the keys of the set, NULL in
//! place of the others, and the number of the set ([`Rel::Expand`]). These are the columns by which
//! an ordinary aggregation groups them.

use super::Binder;
use super::aggregate::IN_AGGREGATE;
use super::rel::Rel;
use base::{Datum, SqlError, SqlState, Type};
use expr::{Compare, Expr, Func};
use sqlparser::ast::{FunctionArg, FunctionArgExpr, FunctionArguments};

/// The first field of an [`Expr::Outer`] that stands for a GROUPING() while its query is bound.
pub(crate) const GROUPED: u32 = u32::MAX - 2;

/// Arguments of GROUPING() at most.
const ARGS_MAX: usize = 31;

/// The keys of GROUP BY.
pub(super) struct Keys {
    pub(super) exprs: Vec<Expr>,
    /// Which of them each set has; `None`: rows are grouped once, by all.
    pub(super) sets: Option<Vec<Vec<bool>>>,
}

impl Keys {
    /// Columns of the groups before those that follow from them.
    pub(super) fn columns(&self) -> u32 {
        self.exprs.len() as u32 + u32::from(self.sets.is_some())
    }

    /// The keys that all groups have.
    pub(super) fn common(&self) -> Vec<Expr> {
        let everywhere = |at: &usize| {
            let mut sets = self.sets.iter().flatten();
            sets.all(|set| set[*at])
        };
        let keys = (0..self.exprs.len()).filter(everywhere);
        keys.map(|at| self.exprs[at].clone()).collect()
    }

    /// What GROUPING() of these keys gives: a bit for each that a group does not have.
    pub(super) fn grouping(&self, args: &[usize]) -> Expr {
        let value = |set: &Vec<bool>| {
            let bits = args
                .iter()
                .fold(0i64, |bits, at| bits * 2 + i64::from(!set[*at]));
            Expr::Const(Datum::Int(bits), Type::Int4)
        };
        let Some(sets) = &self.sets else {
            return Expr::Const(Datum::Int(0), Type::Int4);
        };
        let number = Expr::Column(self.exprs.len() as u32, Type::Int4);
        let arms = sets.iter().enumerate().map(|(at, set)| {
            let own = Expr::Const(Datum::Int(at as i64), Type::Int4);
            let sides = vec![number.clone(), own];
            let condition = Expr::Call(Func::Compare(Compare::Eq), sides, Type::Bool);
            (condition, value(set))
        });
        Expr::Case {
            arms: arms.collect(),
            otherwise: Box::new(Expr::null(Type::Int4)),
            ty: Type::Int4,
        }
    }

    /// The input of the aggregation, its keys, and the groups that are there without a row.
    pub(super) fn over(self, input: Rel, implied: usize) -> (Rel, Vec<Expr>, Vec<Vec<Datum>>) {
        let Some(sets) = self.sets else {
            return (input, self.exprs, Vec::new());
        };
        let (width, count) = (input.width(), self.exprs.len());
        let empty = sets
            .iter()
            .enumerate()
            .filter(|(_, set)| !set.contains(&true));
        let always = empty.map(|(at, _)| {
            let mut key = vec![Datum::Null; count];
            key.push(Datum::Int(at as i64));
            key.resize(count + 1 + implied, Datum::Null);
            key
        });
        let always = always.collect();
        let keys = self.exprs.iter().map(Expr::ty).chain([Type::Int4]);
        let keys = (width..).zip(keys).map(|(at, ty)| Expr::Column(at, ty));
        let keys = keys.collect();
        let expanded = Rel::Expand {
            input: Box::new(input),
            keys: self.exprs,
            sets,
        };
        (expanded, keys, always)
    }
}

/// GROUPING() of something that is no key.
pub(super) fn not_grouped() -> SqlError {
    SqlError::new(
        SqlState::GROUPING,
        "arguments to GROUPING must be grouping expressions of the associated query level",
    )
}

impl Binder<'_> {
    /// `GROUPING(key, ...)`: noted at this level, with a placeholder in its place.
    pub(super) fn grouping(&mut self, args: &FunctionArguments) -> Result<Expr, SqlError> {
        let list = match args {
            FunctionArguments::List(list) => list.args.as_slice(),
            FunctionArguments::None | FunctionArguments::Subquery(_) => &[],
        };
        if list.is_empty() {
            return Err(self.source.misplaced(")"));
        }
        if list.len() > ARGS_MAX {
            let message = "GROUPING must have fewer than 32 arguments";
            return Err(SqlError::new(SqlState::TOO_MANY_ARGUMENTS, message));
        }
        if let Some(clause) = self.level().aggregates_in {
            if clause == IN_AGGREGATE {
                let message = "aggregate function calls cannot be nested";
                return Err(SqlError::new(SqlState::GROUPING, message));
            }
            let message = format!("grouping operations are not allowed in {clause}");
            return Err(SqlError::new(SqlState::GROUPING, message));
        }
        let mut bound = Vec::new();
        for arg in list {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) = arg else {
                return Err(not_grouped());
            };
            bound.push(self.expr(arg)?);
        }
        let groupings = &mut self.level().groupings;
        let known = groupings.iter().position(|known| *known == bound);
        let number = known.unwrap_or_else(|| {
            groupings.push(bound);
            groupings.len() - 1
        });
        Ok(Expr::Outer(GROUPED, number as u32, Type::Int4))
    }
}
