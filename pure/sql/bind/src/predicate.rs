//! Conditions: comparisons of rows and lists, patterns, ANY and ALL.

use super::expr::{negate, operator_name, unwrapped};
use super::rel::Quantifier;
use super::{Binder, unsupported};
use base::{SqlError, SqlState, Type};
use expr::resolve::{self, Context};
use expr::{Compare, Expr, Func, TextFunc};
use sqlparser::ast::{BinaryOperator as Op, Expr as Ast};

/// The operators of LIKE and NOT LIKE.
const LIKE: [&str; 2] = ["~~", "!~~"];
/// The operators of ILIKE and NOT ILIKE.
const ILIKE: [&str; 2] = ["~~*", "!~~*"];

impl Binder<'_> {
    /// Binds what the grammar has for conditions.
    pub(super) fn predicate(&mut self, ast: &Ast) -> Result<Expr, SqlError> {
        match ast {
            Ast::IsNull(inner) => self.is_null(inner, false),
            Ast::IsNotNull(inner) => self.is_null(inner, true),
            Ast::IsTrue(inner) => self.is_bool(inner, Some(true), false, "IS TRUE"),
            Ast::IsNotTrue(inner) => self.is_bool(inner, Some(true), true, "IS NOT TRUE"),
            Ast::IsFalse(inner) => self.is_bool(inner, Some(false), false, "IS FALSE"),
            Ast::IsNotFalse(inner) => self.is_bool(inner, Some(false), true, "IS NOT FALSE"),
            Ast::IsUnknown(inner) => self.is_bool(inner, None, false, "IS UNKNOWN"),
            Ast::IsNotUnknown(inner) => self.is_bool(inner, None, true, "IS NOT UNKNOWN"),
            Ast::IsDistinctFrom(left, right) => self.is_distinct(left, right, false),
            Ast::IsNotDistinctFrom(left, right) => self.is_distinct(left, right, true),
            Ast::InList {
                expr,
                list,
                negated,
            } => self.in_list(expr, list, *negated),
            Ast::InSubquery {
                expr,
                subquery,
                negated,
            } => {
                let found = self.in_subquery(expr, subquery)?;
                Ok(negate(found, *negated))
            }
            Ast::Exists { subquery, negated } => Ok(negate(self.exists(subquery)?, *negated)),
            Ast::Between {
                expr,
                negated,
                low,
                high,
            } => self.between(expr, low, high, *negated),
            Ast::Like {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => self.like(LIKE[usize::from(*negated)], expr, pattern, escape_char),
            Ast::ILike {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => self.like(ILIKE[usize::from(*negated)], expr, pattern, escape_char),
            Ast::AnyOp {
                left,
                compare_op,
                right,
                // SOME is the same.
                is_some: _,
            } => self.quantified(left, compare_op, right, false),
            Ast::AllOp {
                left,
                compare_op,
                right,
            } => self.quantified(left, compare_op, right, true),
            other => Err(unsupported(&format!("the expression {other}"))),
        }
    }

    /// `IS [NOT] NULL`; of a row: all its columns are, or none is.
    fn is_null(&mut self, inner: &Ast, negated: bool) -> Result<Expr, SqlError> {
        let test = |value: Expr| Expr::IsNull(Box::new(value), negated);
        match unwrapped(inner) {
            Ast::Tuple(columns) => {
                // Of a row in a row it is asked whether there is one.
                let columns = columns.iter().map(|column| self.expr(column).map(test));
                Ok(Expr::And(columns.collect::<Result<_, _>>()?))
            }
            _ => {
                let value = self.expr(inner)?;
                Ok(self.null_test(value, negated))
            }
        }
    }

    fn between(
        &mut self,
        value: &Ast,
        low: &Ast,
        high: &Ast,
        negated: bool,
    ) -> Result<Expr, SqlError> {
        let rows = (unwrapped(value), unwrapped(low), unwrapped(high));
        if let (Ast::Tuple(value), Ast::Tuple(low), Ast::Tuple(high)) = rows {
            let above = self.row_comparison(value, &Op::GtEq, low)?;
            let below = self.row_comparison(value, &Op::LtEq, high)?;
            return Ok(negate(Expr::And(vec![above, below]), negated));
        }
        let value = self.expr(value)?;
        let (low, high) = (self.expr(low)?, self.expr(high)?);
        let above = self.binary(">=", value.clone(), low)?;
        let below = self.binary("<=", value, high)?;
        Ok(negate(Expr::And(vec![above, below]), negated))
    }

    fn is_bool(
        &mut self,
        inner: &Ast,
        wanted: Option<bool>,
        negated: bool,
        clause: &str,
    ) -> Result<Expr, SqlError> {
        let arg = self.condition(inner, clause)?;
        Ok(Expr::IsBool(Box::new(arg), wanted, negated))
    }

    fn is_distinct(&mut self, left: &Ast, right: &Ast, negated: bool) -> Result<Expr, SqlError> {
        if let (Ast::Tuple(left), Ast::Tuple(right)) = (unwrapped(left), unwrapped(right)) {
            same_length(left, right)?;
            let pairs = left.iter().zip(right);
            let equal = pairs.map(|(left, right)| self.is_distinct(left, right, true));
            let equal = Expr::And(equal.collect::<Result<_, _>>()?);
            return Ok(negate(equal, !negated));
        }
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        // The comparison tells how both sides are made alike.
        match self.binary("=", left, right)? {
            Expr::Call(Func::Compare(Compare::Eq), mut sides, _) if sides.len() == 2 => {
                let right = Box::new(sides.pop().expect("two sides"));
                let left = Box::new(sides.pop().expect("two sides"));
                Ok(Expr::IsDistinct(left, right, negated))
            }
            other => Ok(Expr::IsBool(Box::new(other), Some(true), !negated)),
        }
    }

    fn in_list(&mut self, left: &Ast, list: &[Ast], negated: bool) -> Result<Expr, SqlError> {
        if let Ast::Tuple(columns) = left {
            let mut any = Vec::new();
            for item in list {
                let Ast::Tuple(values) = item else {
                    return Err(unsupported("a row compared with a value"));
                };
                any.push(self.row_comparison(columns, &Op::Eq, values)?);
            }
            return Ok(negate(Expr::Or(any), negated));
        }
        let left = self.expr(left)?;
        let items = list
            .iter()
            .map(|item| self.expr(item))
            .collect::<Result<Vec<_>, _>>()?;
        // `x IN (a, b)` is `x = a OR x = b`: when every comparison leaves x as it is, it is a list.
        let (mut arg, mut values, mut others) = (None, Vec::new(), Vec::new());
        for item in items {
            match self.binary("=", left.clone(), item)? {
                Expr::Call(Func::Compare(Compare::Eq), mut sides, _)
                    if sides.len() == 2 && (arg.is_none() || arg.as_ref() == Some(&sides[0])) =>
                {
                    values.push(sides.pop().expect("two sides"));
                    arg = sides.pop();
                }
                other => others.push(other),
            }
        }
        let listed = arg.map(|arg| Expr::InList(Box::new(arg), values.into(), false));
        let mut all: Vec<Expr> = listed.into_iter().chain(others).collect();
        let bound = if all.len() == 1 {
            all.remove(0)
        } else {
            Expr::Or(all)
        };
        Ok(match bound {
            Expr::InList(arg, values, _) => Expr::InList(arg, values, negated),
            other => negate(other, negated),
        })
    }

    /// `(a, b) op (c, d)`
    pub(super) fn row_comparison(
        &mut self,
        left: &[Ast],
        op: &Op,
        right: &[Ast],
    ) -> Result<Expr, SqlError> {
        same_length(left, right)?;
        let left = left
            .iter()
            .map(|e| self.expr(e))
            .collect::<Result<Vec<_>, _>>()?;
        let right = right
            .iter()
            .map(|e| self.expr(e))
            .collect::<Result<Vec<_>, _>>()?;
        self.compared_rows(left.into_iter().zip(right).collect(), op)
    }

    /// A comparison of rows of which each column has its pair.
    pub(super) fn compared_rows(
        &mut self,
        pairs: Vec<(Expr, Expr)>,
        op: &Op,
    ) -> Result<Expr, SqlError> {
        let strict = match op {
            Op::Eq | Op::NotEq => {
                let equal = pairs
                    .into_iter()
                    .map(|(l, r)| self.binary("=", l, r))
                    .collect::<Result<Vec<_>, _>>()?;
                return Ok(negate(Expr::And(equal), matches!(op, Op::NotEq)));
            }
            Op::Lt | Op::LtEq => "<",
            Op::Gt | Op::GtEq => ">",
            _ => return Err(unsupported("this operator on rows")),
        };
        // a < c OR (a = c AND (b < d OR ...)); the last comparison is the operator itself.
        let mut result: Option<Expr> = None;
        for (l, r) in pairs.into_iter().rev() {
            result = Some(match result {
                None => self.binary(&operator_name(op)?, l, r)?,
                Some(rest) => {
                    let equal = self.binary("=", l.clone(), r.clone())?;
                    let before = self.binary(strict, l, r)?;
                    Expr::Or(vec![before, Expr::And(vec![equal, rest])])
                }
            });
        }
        result.ok_or_else(|| unsupported("an empty row"))
    }

    fn like(
        &mut self,
        op: &str,
        value: &Ast,
        pattern: &Ast,
        escape: &Option<String>,
    ) -> Result<Expr, SqlError> {
        let (value, mut pattern) = (self.expr(value)?, self.expr(pattern)?);
        if let Some(escape) = escape {
            let escape = Expr::literal(escape);
            pattern = Expr::Call(
                Func::Text(TextFunc::LikeEscape),
                vec![
                    resolve::coerce(pattern, Type::Text, Context::Implicit)?,
                    resolve::coerce(escape, Type::Text, Context::Implicit)?,
                ],
                Type::Text,
            );
        }
        self.binary(op, value, pattern)
    }

    fn quantified(
        &mut self,
        left: &Ast,
        op: &Op,
        right: &Ast,
        all: bool,
    ) -> Result<Expr, SqlError> {
        let inner = unwrapped(right);
        if let Ast::Subquery(query) = inner {
            return match (all, op) {
                (false, Op::Eq) => self.in_subquery(left, query),
                (true, Op::NotEq) => Ok(negate(self.in_subquery(left, query)?, true)),
                (true, _) => self.quantified_subquery(left, op, query, Quantifier::All),
                (false, _) => self.quantified_subquery(left, op, query, Quantifier::Any),
            };
        }
        let (left, array) = (self.expr(left)?, self.expr(inner)?);
        let bound = resolve::any_array(left, &operator_name(op)?, array, all)?;
        self.note(&bound);
        Ok(bound)
    }
}

/// Refuses to compare rows of different lengths.
fn same_length(left: &[Ast], right: &[Ast]) -> Result<(), SqlError> {
    match left.len() == right.len() {
        true => Ok(()),
        false => Err(SqlError::new(
            SqlState::SYNTAX,
            "unequal number of entries in row expressions",
        )),
    }
}
