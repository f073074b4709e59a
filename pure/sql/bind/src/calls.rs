//! Subqueries in expressions.

use super::expr::operator_name;
use super::rel::{Binds, Call, CallKind, InitValue, Quantifier, QueryUse, Rel};
use super::{Binder, BoundQuery, unsupported};
use base::{SqlError, SqlState, Type};
use core::cmp::Ordering;
use expr::resolve::{self, Context};
use expr::{Compare, Expr, Func, Volatility, walk};
use sqlparser::ast::{self, BinaryOperator as Op, Expr as Ast};

/// What a call's value follows from.
#[derive(Clone, Copy)]
struct Depends {
    /// The row of the enclosing query.
    outer: bool,
    /// Nothing but what it reads of that row.
    repeats: bool,
}

impl Binder<'_> {
    /// A call's value: a slot if it depends on no row, else a placeholder of this clause.
    fn call(&mut self, kind: CallKind<Rel>, ty: Type, on: Depends) -> Expr {
        let repeats = on.repeats;
        let call = Call { kind, ty, repeats };
        if on.outer {
            let calls = &mut self.level().calls;
            calls.push(call);
            Expr::Subquery(calls.len() as u32 - 1, ty)
        } else {
            self.init(InitValue::Call(call), ty)
        }
    }

    /// A call that must be made for every row (nextval, pg_sleep).
    pub(super) fn volatile_call(&mut self, kind: CallKind<Rel>, ty: Type) -> Expr {
        self.effects += 1;
        let on = Depends {
            outer: true,
            repeats: false,
        };
        self.call(kind, ty, on)
    }

    /// The value of a function whose body is a query.
    pub(super) fn routine_value(
        &mut self,
        kind: CallKind<Rel>,
        ty: Type,
        outer: bool,
        repeats: bool,
    ) -> Expr {
        self.call(kind, ty, Depends { outer, repeats })
    }

    fn subquery(&mut self, query: &ast::Query) -> Result<(BoundQuery, Binds, Depends), SqlError> {
        let before = self.effects;
        let (mut query, binds, outer) = self.nested(|binder| binder.query(query))?;
        let mut repeats = self.effects == before;
        query.rel.each_expr_mut(&mut |expr| {
            repeats &= walk::volatility(expr) < Volatility::Volatile;
        });
        Ok((query, binds, Depends { outer, repeats }))
    }

    fn one_column(query: &BoundQuery) -> Result<Type, SqlError> {
        match query.columns.as_slice() {
            [column] => Ok(column.ty),
            _ => Err(SqlError::new(
                SqlState::SYNTAX,
                "subquery must return only one column",
            )),
        }
    }

    pub(super) fn scalar_subquery(&mut self, query: &ast::Query) -> Result<Expr, SqlError> {
        let (query, binds, on) = self.subquery(query)?;
        let ty = Self::one_column(&query)?;
        self.subquery_name.clone_from(&query.columns[0].name);
        Ok(self.call(
            CallKind::Query {
                usage: QueryUse::Scalar,
                query: query.rel,
                binds,
            },
            ty,
            on,
        ))
    }

    pub(super) fn array_subquery(&mut self, query: &ast::Query) -> Result<Expr, SqlError> {
        let (query, binds, on) = self.subquery(query)?;
        let element = Self::one_column(&query)?;
        let Some(ty) = resolve::array_type(element) else {
            return Err(unsupported(&format!("an array of {}", element.name())));
        };
        Ok(self.call(
            CallKind::Query {
                usage: QueryUse::Array {
                    of_arrays: element.element().is_some(),
                },
                query: query.rel,
                binds,
            },
            ty,
            on,
        ))
    }

    pub(super) fn exists(&mut self, query: &ast::Query) -> Result<Expr, SqlError> {
        let (query, binds, on) = self.subquery(query)?;
        Ok(self.call(
            CallKind::Query {
                usage: QueryUse::Exists,
                query: query.rel,
                binds,
            },
            Type::Bool,
            on,
        ))
    }

    /// The left side of a comparison with rows of a query, and the query.
    fn row_and_query(
        &mut self,
        left: &Ast,
        query: &ast::Query,
    ) -> Result<(Vec<Expr>, BoundQuery, Binds, Depends), SqlError> {
        // In this order, which decides what is told of several errors.
        let (query, binds, on) = self.subquery(query)?;
        let left = match left {
            Ast::Tuple(items) => items
                .iter()
                .map(|item| self.expr(item))
                .collect::<Result<Vec<_>, _>>()?,
            single => vec![self.expr(single)?],
        };
        // The left side depends on the row even if the query does not.
        let on = Depends { outer: true, ..on };
        let message = match query.columns.len().cmp(&left.len()) {
            Ordering::Equal => return Ok((left, query, binds, on)),
            Ordering::Greater => "subquery has too many columns",
            Ordering::Less => "subquery has too few columns",
        };
        Err(SqlError::new(SqlState::SYNTAX, message))
    }

    /// `left IN (query)`, `(a, b) IN (query)`, `left = ANY (query)`.
    pub(super) fn in_subquery(&mut self, left: &Ast, query: &ast::Query) -> Result<Expr, SqlError> {
        let (left, query, binds, on) = self.row_and_query(left, query)?;
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (i, (left, column)) in left.into_iter().zip(&query.columns).enumerate() {
            // The comparison tells how both sides are made alike.
            let right = Expr::Column(i as u32, column.ty);
            let marked = resolve::binary("=", left.clone(), right)?;
            self.note(&marked);
            let Expr::Call(Func::Compare(Compare::Eq), mut sides, _) = marked else {
                return Err(unsupported("IN over these types"));
            };
            values.push(sides.pop().expect("two sides"));
            keys.push(sides.pop().expect("two sides"));
        }
        let plain = values
            .iter()
            .enumerate()
            .all(|(i, value)| matches!(value, Expr::Column(column, _) if *column == i as u32));
        let rel = if plain {
            query.rel
        } else {
            query.rel.projected(values)
        };
        Ok(self.call(
            CallKind::Query {
                usage: QueryUse::In(keys),
                query: rel,
                binds,
            },
            Type::Bool,
            on,
        ))
    }

    /// `left op ANY (query)`, `(a, b) op ALL (query)`, `(a, b) op (query)`.
    pub(super) fn quantified_subquery(
        &mut self,
        left: &Ast,
        op: &Op,
        query: &ast::Query,
        quantifier: Quantifier,
    ) -> Result<Expr, SqlError> {
        let (left, query, binds, on) = self.row_and_query(left, query)?;
        let width = left.len() as u32;
        let (mut values, mut pairs) = (Vec::new(), Vec::new());
        for (i, (left, column)) in (0u32..).zip(left.into_iter().zip(&query.columns)) {
            let ty = match left.ty() {
                Type::Unknown => column.ty,
                known => known,
            };
            values.push(resolve::coerce(left, ty, Context::Implicit)?);
            let right = Expr::Column(width + i, column.ty);
            pairs.push((Expr::Column(i, ty), right));
        }
        let condition = match pairs.len() {
            1 => {
                let (left, right) = pairs.pop().expect("one pair");
                resolve::binary(&operator_name(op)?, left, right)?
            }
            _ => self.compared_rows(pairs, op)?,
        };
        let usage = QueryUse::Quantified {
            left: values,
            condition,
            quantifier,
        };
        let kind = CallKind::Query {
            usage,
            query: query.rel,
            binds,
        };
        Ok(self.call(kind, Type::Bool, on))
    }
}
