//! Names in expressions: columns of this and enclosing queries, array elements, names of catalog
//! objects.

use super::Binder;
use super::scope::{Found, SystemColumn, ident};
use super::unsupported;
use base::{Datum, SqlError, SqlState, Type};
use expr::Expr;
use expr::resolve::{self, Subscripted};
use pg_catalog::names::check_parts;
use sqlparser::ast::{self, Expr as Ast};
use sqlparser::tokenizer::Span;

/// Names that are compared for one unit of work.
const NAMES_PER_UNIT: u64 = 64;

/// 42702 for the name of a column and of a variable.
fn ambiguous(name: &str) -> SqlError {
    let message = format!("column reference \"{name}\" is ambiguous");
    SqlError::new(SqlState::AMBIGUOUS_COLUMN, message)
        .detail("It could refer to either a PL/pgSQL variable or a table column.")
}

/// Adds one to a subscript that is not one of these, which stand for bounds that are left out.
fn one_up(subscript: &mut Expr, open: (i64, i64)) -> Result<(), SqlError> {
    if let Expr::Const(Datum::Int(at), _) = subscript
        && (*at == open.0 || *at == open.1)
    {
        return Ok(());
    }
    let counted = core::mem::replace(subscript, Expr::null(Type::Int4));
    *subscript = resolve::binary("+", counted, Expr::Const(Datum::Int(1), Type::Int4))?;
    Ok(())
}

impl Binder<'_> {
    pub(super) fn identifier(&mut self, name: &ast::Ident) -> Result<Expr, SqlError> {
        let folded = ident(name);
        let named = self.named_param(None, &folded);
        if let Some(found) = self.column(None, None, &folded, name.span)? {
            return match named {
                Some(_) => Err(ambiguous(&folded).at(self.position(name.span))),
                None => Ok(found),
            };
        }
        if let Some(named) = named {
            return Ok(named);
        }
        if let Some(row) = self.row_of_relation(&folded)? {
            return Ok(row);
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

    /// The parameter of this name, in the statement itself: not in a view or a body that it uses.
    fn named_param(&self, qualifier: Option<&str>, name: &str) -> Option<Expr> {
        let names = self.cx.param_names;
        let own = self.own_source.as_ref();
        if names.is_empty() || !own.is_some_and(|own| self.source.is(own)) || self.is_in_routine() {
            return None;
        }
        let mut names = names.iter();
        let at = names.position(|it| it.qualifier.as_deref() == qualifier && it.name == name)?;
        Some(Expr::Param(at as u32, self.cx.param_types[at]))
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
        if schema.is_none()
            && !self
                .levels
                .iter()
                .any(|level| level.scope.relations.contains(relation))
            && let Some(named) = self.named_param(Some(relation), name)
        {
            return Ok(named);
        }
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
            return Ok(Some(self.argument_value(depth, found)));
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
        use ast::AccessExpr;
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
        let whole = match parts.is_empty() {
            true => match self.column_of_call(root, rest)? {
                Some(column) => Some(column),
                None => self.column_of_row(root, rest),
            },
            false => None,
        };
        let mut value = if let Some(column) = whole {
            rest = &rest[1..];
            column
        } else if parts.len() > 1 {
            self.compound(&parts)?
        } else {
            self.expr(root)?
        };
        while let Some(at) = rest
            .iter()
            .position(|one| matches!(one, AccessExpr::Dot(_)))
        {
            if at > 0 {
                value = self.subscripted(value, &rest[..at])?;
            }
            value = match &rest[at] {
                AccessExpr::Dot(Ast::Identifier(name)) => {
                    let place = self.position(name.span);
                    let found = self.field_named(&value, &ident(name));
                    found.map_err(|error| super::at(error, place))?
                }
                _ => {
                    let message = "row expansion via \"*\" is not supported here";
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
                }
            };
            rest = &rest[at + 1..];
        }
        match rest.is_empty() {
            true => Ok(value),
            false => self.subscripted(value, rest),
        }
    }

    /// `(relation).column`: the column.
    fn column_of_row(&mut self, root: &Ast, chain: &[ast::AccessExpr]) -> Option<Expr> {
        let Ast::Identifier(relation) = super::expr::unwrapped(root) else {
            return None;
        };
        let ast::AccessExpr::Dot(Ast::Identifier(name)) = chain.first()? else {
            return None;
        };
        let (columns, _) = self.row_columns(&ident(relation))?;
        let wanted = ident(name);
        let mut columns = columns.into_iter();
        columns
            .find(|(own, _)| *own == wanted)
            .map(|(_, value)| value)
    }

    /// A value with the subscripts behind it.
    fn subscripted(&mut self, mut value: Expr, rest: &[ast::AccessExpr]) -> Result<Expr, SqlError> {
        const OPEN: (i64, i64) = (i32::MIN as i64, i32::MAX as i64);
        let mut places = self.places(rest, OPEN)?;
        if Self::is_zero_based(&value) {
            for place in &mut places {
                match place {
                    Subscripted::Item(index) => one_up(index, OPEN)?,
                    Subscripted::Part(low, high) => {
                        one_up(low, OPEN)?;
                        one_up(high, OPEN)?;
                    }
                }
            }
        }
        value = resolve::subscript(value, places)?;
        Ok(value)
    }

    /// Subscripts; `open` stands for the bounds that are left out.
    pub(super) fn places(
        &mut self,
        chain: &[ast::AccessExpr],
        open: (i64, i64),
    ) -> Result<Vec<Subscripted>, SqlError> {
        use ast::{AccessExpr, Subscript};
        let mut places = Vec::new();
        for access in chain {
            places.push(match access {
                AccessExpr::Subscript(Subscript::Index { index }) => {
                    Subscripted::Item(self.expr(index)?)
                }
                AccessExpr::Subscript(Subscript::Slice {
                    lower_bound,
                    upper_bound,
                    stride: None,
                }) => {
                    // A bound that is left out is the array's own.
                    let bound = |this: &mut Self, bound: &Option<Ast>, open: i64| match bound {
                        Some(bound) => this.expr(bound),
                        None => Ok(Expr::Const(Datum::Int(open), Type::Int4)),
                    };
                    let low = bound(self, lower_bound, open.0)?;
                    Subscripted::Part(low, bound(self, upper_bound, open.1)?)
                }
                AccessExpr::Subscript(Subscript::Slice { .. }) => {
                    return Err(unsupported("an array slice with a stride"));
                }
                AccessExpr::Dot(_) => return Err(unsupported("access to a composite field")),
            });
        }
        Ok(places)
    }

    /// Whether positions count from 0: those of the system catalog's vectors do, also as arrays.
    pub(super) fn is_zero_based(value: &Expr) -> bool {
        match value {
            Expr::Cast { arg, to, .. } if to.element().is_some() => Self::is_zero_based(arg),
            other => other.ty().is_vector(),
        }
    }
}
