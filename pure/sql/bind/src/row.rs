//! Whole rows, as arguments of the functions that make JSON of them.

use super::Binder;
use super::scope::{Scope, ident};
use base::{SqlError, Type};
use expr::Expr;
use expr::resolve::json;
use sqlparser::ast::{self, Expr as Ast};

/// Columns with their names.
pub(super) type NamedColumns = Vec<(String, Expr)>;

/// Whether a function takes rows.
pub(super) fn takes_rows(name: &str) -> bool {
    matches!(
        name,
        "row_to_json"
            | "to_json"
            | "to_jsonb"
            | "json_agg"
            | "jsonb_agg"
            | "json_object_agg"
            | "jsonb_object_agg"
            | "json_build_array"
            | "jsonb_build_array"
            | "json_build_object"
            | "jsonb_build_object"
    )
}

impl Binder<'_> {
    /// An argument of the function `name`, which may be a row.
    pub(super) fn argument(&mut self, name: &str, ast: &Ast) -> Result<Expr, SqlError> {
        match ast {
            _ if !takes_rows(name) => {}
            Ast::Identifier(relation) => {
                if let Some(row) = self.whole_row(&ident(relation))? {
                    return Ok(row);
                }
            }
            Ast::Nested(inner) => return self.argument(name, inner),
            Ast::Tuple(items) => return self.constructed_row(items),
            _ => {}
        }
        let value = self.expr(ast)?;
        match takes_rows(name) {
            true => self.row_as_json(value),
            false => Ok(value),
        }
    }

    /// `ROW(a, b)`: its columns are called `f1`, `f2`.
    fn constructed_row(&mut self, items: &[Ast]) -> Result<Expr, SqlError> {
        let mut columns = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            let item = self.argument("row_to_json", item)?;
            columns.push((format!("f{}", i + 1), json::value(item, Type::Json)?));
        }
        Ok(json::row(columns))
    }

    /// The row of the relation of this name in this or an enclosing query; `None` if there is
    /// none, or a column has the name.
    pub(super) fn whole_row(&mut self, relation: &str) -> Result<Option<Expr>, SqlError> {
        let Some((columns, missing)) = self.row_columns(relation) else {
            return Ok(None);
        };
        let columns = columns.into_iter();
        let values = columns.map(|(name, column)| Ok((name, json::value(column, Type::Json)?)));
        let row = json::row(values.collect::<Result<Vec<_>, SqlError>>()?);
        Ok(Some(match missing {
            None => row,
            Some(missing) => Expr::Case {
                arms: vec![(missing, Expr::null(Type::Json))],
                otherwise: Box::new(row),
                ty: Type::Json,
            },
        }))
    }

    /// The columns of the relation of this name in this or an enclosing query, and what is true
    /// where an outer join found no row of it.
    pub(super) fn row_columns(&mut self, relation: &str) -> Option<(NamedColumns, Option<Expr>)> {
        let has_column = |scope: &Scope| {
            let mut columns = scope.columns.iter();
            columns.any(|c| c.name == relation && !c.shadowed)
        };
        if self.levels.iter().any(|level| has_column(&level.scope)) {
            return None;
        }
        for depth in (0..self.levels.len()).rev() {
            let scope = &self.levels[depth].scope;
            if !scope.relations.iter().any(|known| known == relation) {
                continue;
            }
            let columns = scope.columns.iter();
            let columns: Vec<(String, Expr)> = columns
                .filter(|c| c.relation == relation && !c.hidden)
                .map(|c| (c.name.clone(), c.expr.clone()))
                .collect();
            let read = scope.columns.iter();
            let read: Vec<(u32, i16)> = read
                .filter(|c| c.relation == relation && !c.hidden)
                .map(|c| c.origin)
                .collect();
            let present = scope.row_presence(relation);
            let is_own = depth + 1 == self.levels.len();
            read.into_iter().for_each(|origin| self.note_column(origin));
            let mut values = Vec::with_capacity(columns.len());
            for (name, column) in columns {
                let column = match is_own {
                    true => column,
                    false => self.capture(depth, column),
                };
                values.push((name, column));
            }
            let missing = present.map(|missing| match is_own {
                true => missing,
                false => self.capture(depth, missing),
            });
            return Some((values, missing));
        }
        None
    }

    /// An argument `relation.*` of the function `name`.
    pub(super) fn row_argument(
        &mut self,
        name: &str,
        arg: &ast::FunctionArgExpr,
    ) -> Result<Option<Expr>, SqlError> {
        match arg {
            ast::FunctionArgExpr::QualifiedWildcard(of) if takes_rows(name) => {
                let (_, relation) = super::scope::object_name(of);
                self.whole_row(&relation)
            }
            _ => Ok(None),
        }
    }
}
