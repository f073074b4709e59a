//! Names in expressions: columns of this and enclosing queries, array elements, names of catalog
//! objects.

use super::Binder;
use super::scope::{Found, SystemColumn, ident};
use super::unsupported;
use base::{Datum, SqlError, SqlState, Type};
use expr::Expr;
use expr::resolve;
use pg_catalog::names::check_parts;
use sqlparser::ast::{self, Expr as Ast};
use sqlparser::tokenizer::Span;

/// Names that are compared for one unit of work.
const NAMES_PER_UNIT: u64 = 64;

impl Binder<'_> {
    pub(super) fn identifier(&mut self, name: &ast::Ident) -> Result<Expr, SqlError> {
        let folded = ident(name);
        if let Some(found) = self.column(None, None, &folded, name.span)? {
            return Ok(found);
        }
        if name.quote_style.is_none() && folded == "default" {
            let message = "DEFAULT is not allowed in this context";
            return Err(SqlError::new(SqlState::SYNTAX, message).at(self.position(name.span)));
        }
        let error = SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{folded}\" does not exist"),
        );
        let position = self.position(name.span);
        Err(self.with_similar(error, None, &folded).at(position))
    }

    fn with_similar(&self, error: SqlError, relation: Option<&str>, name: &str) -> SqlError {
        let scope = &self.levels.last().expect("there is a level").scope;
        match scope.similar(relation, name) {
            Some(similar) => error.hint(format!(
                "Perhaps you meant to reference the column \"{similar}\"."
            )),
            None => error,
        }
    }

    pub(super) fn compound(&mut self, parts: &[ast::Ident]) -> Result<Expr, SqlError> {
        let folded: Vec<String> = parts.iter().map(ident).collect();
        let span = parts[0].span;
        check_parts(&self.cx.database.name, &folded, 4, "")
            .map_err(|error| error.at(self.position(span)))?;
        let (schema, relation, name) = match folded.as_slice() {
            [relation, name] => (None, relation, name),
            [.., schema, relation, name] => (Some(schema.as_str()), relation, name),
            _ => unreachable!("a compound name has several parts"),
        };
        let schema = self.schema_number(schema);
        match self.column(schema, Some(relation), name, span)? {
            Some(found) => {
                if let Some(schema) = schema {
                    let parts: Vec<&ast::Ident> = parts.iter().collect();
                    self.note_parts(&parts, 1, &base::full_name::full(schema, relation));
                }
                Ok(found)
            }
            None => {
                let error = self.level().scope.no_relation(relation);
                Err(error.at(self.position(span)))
            }
        }
    }

    /// Looks a column up in this level and the enclosing ones; a column of an enclosing query
    /// becomes a slot.
    fn column(
        &mut self,
        schema: Option<u32>,
        relation: Option<&str>,
        name: &str,
        span: Span,
    ) -> Result<Option<Expr>, SqlError> {
        let system_column = SystemColumn::by_name(name);
        for depth in (0..self.levels.len()).rev() {
            self.work += 1 + self.levels[depth].scope.columns.len() as u64 / NAMES_PER_UNIT;
            let scope = &self.levels[depth].scope;
            if relation.is_some_and(|relation| !scope.has_in(schema, relation)) {
                continue;
            }
            let found = scope.find(relation, name);
            let system = match (&found, system_column) {
                (Found::NoColumn | Found::Nothing, Some(column)) => scope
                    .system_column(column, relation)
                    .map_err(|error| error.at(self.position(span)))?,
                _ => None,
            };
            let mut origin = (0, 0);
            let found = match (found, system) {
                (_, Some(system)) => system,
                (Found::Column(column), None) => {
                    origin = column.origin;
                    column.expr.clone()
                }
                (Found::Nothing, None)
                    if !(system_column.is_some()
                        && relation.is_none()
                        && scope.bases.len() > 1) =>
                {
                    continue;
                }
                (Found::Ambiguous | Found::Nothing, None) => {
                    let message = format!("column reference \"{name}\" is ambiguous");
                    let error = SqlError::new(SqlState::AMBIGUOUS_COLUMN, message);
                    return Err(error.at(self.position(span)));
                }
                (Found::NoColumn, None) => {
                    let relation = relation.expect("only a qualified name finds a relation");
                    let error = SqlError::new(
                        SqlState::UNDEFINED_COLUMN,
                        format!("column {relation}.{name} does not exist"),
                    );
                    let error = self.with_similar(error, Some(relation), name);
                    return Err(error.at(self.position(span)));
                }
            };
            self.note_column(origin);
            if depth + 1 == self.levels.len() {
                return Ok(Some(found));
            }
            return Ok(Some(self.capture(depth, found)));
        }
        Ok(None)
    }

    /// The slot for a value of the row of level `depth`, read by a deeper level.
    pub(super) fn capture(&mut self, depth: usize, value: Expr) -> Expr {
        let ty = value.ty();
        for level in &mut self.levels[depth + 1..] {
            level.dependent = true;
        }
        let known = self.levels[depth + 1]
            .captures
            .iter()
            .find(|(_, expr)| *expr == value);
        if let Some((slot, _)) = known {
            return Expr::Param(*slot, ty);
        }
        let slot = self.new_slot();
        self.levels[depth + 1].captures.push((slot, value));
        Expr::Param(slot, ty)
    }

    pub(super) fn access(
        &mut self,
        root: &Ast,
        chain: &[ast::AccessExpr],
    ) -> Result<Expr, SqlError> {
        use ast::{AccessExpr, Subscript};
        // The library reads `t.c[1]` as access to `t`.
        let mut parts = Vec::new();
        if let Ast::Identifier(first) = root {
            parts.push(first.clone());
        }
        let mut rest = chain;
        while let (Some(AccessExpr::Dot(Ast::Identifier(name))), false) =
            (rest.first(), parts.is_empty())
        {
            parts.push(name.clone());
            rest = &rest[1..];
        }
        let mut value = if parts.len() > 1 {
            self.compound(&parts)?
        } else {
            self.expr(root)?
        };
        for access in rest {
            value = match access {
                AccessExpr::Subscript(Subscript::Index { index }) => {
                    let index = self.expr(index)?;
                    self.subscript(value, index)?
                }
                AccessExpr::Subscript(Subscript::Slice {
                    lower_bound,
                    upper_bound,
                    stride: None,
                }) => {
                    // A bound that is left out is the array's own.
                    let bound = |this: &mut Self, bound: &Option<Ast>, open: i32| match bound {
                        Some(bound) => this.expr(bound),
                        None => Ok(Expr::Const(Datum::Int(open.into()), Type::Int4)),
                    };
                    let low = bound(self, lower_bound, i32::MIN)?;
                    let high = bound(self, upper_bound, i32::MAX)?;
                    resolve::subscript(value, low, Some(high))?
                }
                AccessExpr::Subscript(Subscript::Slice { .. }) => {
                    return Err(unsupported("an array slice with a stride"));
                }
                AccessExpr::Dot(_) => return Err(unsupported("access to a composite field")),
            };
        }
        Ok(value)
    }

    fn subscript(&mut self, value: Expr, index: Expr) -> Result<Expr, SqlError> {
        let index = if self.is_zero_based(&value) {
            resolve::binary("+", index, Expr::Const(Datum::Int(1), Type::Int4))?
        } else {
            index
        };
        resolve::subscript(value, index, None)
    }

    /// Positions of the system catalog's vectors (`int2vector`) count from 0.
    pub(super) fn is_zero_based(&self, value: &Expr) -> bool {
        let column_of = |column: &Expr| {
            self.levels
                .iter()
                .rev()
                .find_map(|level| level.scope.columns.iter().find(|c| c.expr == *column))
        };
        let column = match value {
            Expr::Param(slot, _) => self
                .levels
                .iter()
                .flat_map(|level| &level.captures)
                .find(|(known, _)| known == slot)
                .and_then(|(_, captured)| column_of(captured)),
            other => column_of(other),
        };
        column.is_some_and(|column| pg_catalog::is_zero_based(column.origin.0, column.origin.1))
    }
}
