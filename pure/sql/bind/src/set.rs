//! UNION, INTERSECT and EXCEPT.

use super::group::check_equality;
use super::rel::{Matching, Rel};
use super::{Binder, BoundQuery};
use base::{OutColumn, SqlError, SqlState, Type};
use expr::Expr;
use expr::resolve::{self, Context};
use sqlparser::ast::{SetExpr, SetOperator, SetQuantifier};

impl Binder<'_> {
    /// UNION chains lean left; the spine is walked in a loop.
    pub(super) fn union(
        &mut self,
        body: &SetExpr,
        quantifier: SetQuantifier,
    ) -> Result<BoundQuery, SqlError> {
        let distinct = !self.keeps_all(quantifier)?;
        let mut sides = Vec::new();
        let mut leftmost = body;
        while let SetExpr::SetOperation {
            op: SetOperator::Union,
            set_quantifier,
            left,
            right,
        } = leftmost
        {
            if *set_quantifier != quantifier {
                break;
            }
            sides.push(right.as_ref());
            leftmost = left;
        }
        sides.push(leftmost);
        let (inputs, columns) = self.alike(sides.into_iter().rev(), "UNION")?;
        let mut rel = Rel::Union { inputs };
        if distinct {
            columns
                .iter()
                .try_for_each(|column| check_equality(column.ty))?;
            rel = Rel::Distinct {
                input: Box::new(rel),
                keys: (0..columns.len() as u32).collect(),
            };
        }
        Ok(BoundQuery { rel, columns })
    }

    /// INTERSECT and EXCEPT.
    pub(super) fn matched(
        &mut self,
        (left, right): (&SetExpr, &SetExpr),
        except: bool,
        quantifier: SetQuantifier,
    ) -> Result<BoundQuery, SqlError> {
        let all = self.keeps_all(quantifier)?;
        let name = if except { "EXCEPT" } else { "INTERSECT" };
        let (mut sides, columns) = self.alike([left, right].into_iter(), name)?;
        columns
            .iter()
            .try_for_each(|column| check_equality(column.ty))?;
        let right = Box::new(sides.pop().expect("two sides"));
        let left = Box::new(sides.pop().expect("two sides"));
        let rel = Rel::Match {
            matching: Matching { except, all },
            left,
            right,
        };
        Ok(BoundQuery { rel, columns })
    }

    /// Whether equal rows stay apart: ALL.
    fn keeps_all(&self, quantifier: SetQuantifier) -> Result<bool, SqlError> {
        match quantifier {
            SetQuantifier::All => Ok(true),
            SetQuantifier::None | SetQuantifier::Distinct => Ok(false),
            SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName => {
                Err(self.source.misplaced("BY"))
            }
        }
    }

    /// Binds the sides of a set operation, whose columns get common types.
    fn alike<'s>(
        &mut self,
        sides: impl Iterator<Item = &'s SetExpr>,
        name: &str,
    ) -> Result<(Vec<Rel>, Vec<OutColumn>), SqlError> {
        let mut queries = sides
            .map(|side| self.set_expr(side))
            .collect::<Result<Vec<_>, _>>()?;
        let width = queries[0].columns.len();
        if queries.iter().any(|query| query.columns.len() != width) {
            let message = format!("each {name} query must have the same number of columns");
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
        let mut types = Vec::with_capacity(width);
        for i in 0..width {
            types.push(self.common_type(&mut queries, i, name)?);
        }
        let mut columns = queries[0].columns.clone();
        for (column, ty) in columns.iter_mut().zip(&types) {
            *column = OutColumn {
                name: column.name.clone(),
                ty: *ty,
                table: 0,
                attribute: 0,
            };
        }
        let mut inputs = Vec::new();
        for query in queries.drain(..) {
            let exprs = query
                .columns
                .iter()
                .enumerate()
                .map(|(i, column)| {
                    let value = Expr::Column(i as u32, column.ty);
                    resolve::coerce(value, types[i], Context::Implicit)
                })
                .collect::<Result<Vec<_>, _>>()?;
            inputs.push(query.rel.projected(exprs));
        }
        Ok((inputs, columns))
    }

    /// The type of a column of a set operation, side by side from the left as PostgreSQL finds it.
    /// What has no type on one side gets that of the other, or becomes text.
    fn common_type(
        &mut self,
        sides: &mut [BoundQuery],
        column: usize,
        name: &str,
    ) -> Result<Type, SqlError> {
        let mut all = sides[0].columns[column].ty;
        for side in 1..sides.len() {
            let own = sides[side].columns[column].ty;
            let both = resolve::common_type(&[all, own]).map_err(|_| {
                let (all, own) = (all.name(), own.name());
                let message = format!("{name} types {all} and {own} cannot be matched");
                SqlError::new(SqlState::DATATYPE_MISMATCH, message)
            })?;
            all = match both {
                Type::Unknown => Type::Text,
                known => known,
            };
            // What stands left of both has a type already, unless it is the first.
            for untyped in [0, side] {
                let query = &mut sides[untyped];
                if query.columns[column].ty != Type::Unknown {
                    continue;
                }
                query.columns[column].ty = all;
                let value = query.rel.untyped(column as u32, all);
                let value = value.expect("only literals and parameters have no type");
                self.give_type(value, all, Context::Implicit)?;
            }
        }
        Ok(all)
    }
}
