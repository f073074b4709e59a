//! Rows of functions that make columns of the members of JSON objects.

use super::from::Factor;
use super::rel::{Rel, TableFunction};
use super::row::NamedColumns;
use super::scope::{Scope, ident, object_name};
use super::table_function::{FunctionShape, rows_arguments};
use super::types::bind_type;
use super::{Binder, unsupported};
use base::{Datum, SqlError, SqlState, Type};
use catalog::ColumnState;
use expr::resolve::{self, Context, json};
use expr::{Expr, Func};
use functions::JsonFunc;
use functions::json::JsonRows;
use sqlparser::ast::{self, CastKind, Expr as Ast, TableAlias, Value};
use std::collections::BTreeSet;

/// Columns with what they are where an object has no member of the name.
struct Columns {
    columns: NamedColumns,
    /// The names and types are those of a column definition list.
    listed: bool,
}

/// The value of a cast of NULL, and what it is cast to.
fn null_of(ast: &Ast) -> Option<&ast::DataType> {
    match ast {
        Ast::Nested(inner) => null_of(inner),
        Ast::Cast {
            kind: CastKind::Cast | CastKind::DoubleColon,
            expr,
            data_type,
            format: None,
        } => match &**expr {
            Ast::Value(value) if value.value == Value::Null => Some(data_type),
            _ => None,
        },
        _ => None,
    }
}

impl Binder<'_> {
    /// `json_to_record` and its like in FROM.
    pub(super) fn record_factor(
        &mut self,
        rows: JsonRows,
        args: &[&Ast],
        shape: FunctionShape<'_>,
        visible: &Scope,
    ) -> Result<Factor, SqlError> {
        let outer = self.set_scope(visible.clone());
        self.swap_around();
        let bound = self.nested(|binder| {
            binder.level().aggregates_in = Some("functions in FROM");
            let bound = binder.bind_record(rows, args, shape)?;
            let calls = binder.take_calls();
            Ok((bound, calls))
        });
        self.swap_around();
        self.set_scope(outer);
        let (((args, columns), calls), binds, _) = bound?;
        let of = args[0].ty();
        let mut types = vec![of];
        types.extend(shape.is_numbered().then_some(Type::Int8));
        let mut rel = Rel::Function {
            function: TableFunction::Json(rows),
            args,
            types: types.clone(),
        };
        if !calls.is_empty() {
            rel = self.after_calls(rel, calls, &types);
        }
        let alias = shape.alias();
        let shown = match alias {
            None => rows.name(),
            Some(alias) => self.relation_name(&alias.name)?,
        };
        let Columns { columns, listed } = columns;
        let named = columns
            .iter()
            .map(|(name, value)| (name.clone(), value.ty(), (0, 0)));
        let place = shape
            .is_numbered()
            .then(|| ("ordinality".to_string(), Type::Int8, (0, 0)));
        let mut scope = Scope::of_relation(&shown, named.chain(place), 0);
        if !listed {
            self.rename(&mut scope, alias)?;
        }
        let object = Expr::Column(0, of);
        let mut exprs = Vec::with_capacity(columns.len() + 1);
        for (name, absent) in columns {
            let ty = absent.ty();
            let field = json::field(object.clone(), &name, ty)?;
            let is_null = matches!(absent, Expr::Const(Datum::Null, _));
            exprs.push(match is_null {
                true => field,
                false => {
                    let key = Expr::Const(Datum::from(&*name), Type::Text);
                    let has = Func::Json(JsonFunc::HasKey);
                    let has = Expr::Call(has, vec![object.clone(), key], Type::Bool);
                    Expr::Case {
                        arms: vec![(has, field)],
                        otherwise: Box::new(absent),
                        ty,
                    }
                }
            });
        }
        exprs.extend(shape.is_numbered().then_some(Expr::Column(1, Type::Int8)));
        let rel = rel.projected(exprs);
        Ok(Factor { rel, scope, binds })
    }

    /// The value of the objects, and the columns.
    fn bind_record(
        &mut self,
        rows: JsonRows,
        args: &[&Ast],
        shape: FunctionShape<'_>,
    ) -> Result<(Vec<Expr>, Columns), SqlError> {
        let name = rows.name();
        let JsonRows::Records { populate: true, .. } = rows else {
            let args = args.iter().map(|arg| self.expr(arg));
            let args = args.collect::<Result<Vec<_>, _>>()?;
            let args = rows_arguments(&name, rows, args)?;
            return Ok((args, self.listed_columns(shape)?));
        };
        let [row, rest @ ..] = args else {
            return Err(does_not_exist(&name));
        };
        let columns = self.columns_of_row(&name, row)?;
        if has_types(shape.alias()) {
            return Err(syntax(
                "a column definition list is redundant for a function returning a named composite \
                 type",
            ));
        }
        let rest = rest.iter().map(|arg| self.expr(arg));
        let mut rest = rest.collect::<Result<Vec<_>, _>>()?;
        // What PostgreSQL takes and does not use.
        if rest.len() == 2 && name.starts_with("json_") {
            let flag = rest.pop().unwrap_or_else(|| Expr::bool(false));
            resolve::coerce(flag, Type::Bool, Context::Implicit)?;
        }
        let args = rows_arguments(&name, rows, rest)?;
        let listed = false;
        Ok((args, Columns { columns, listed }))
    }

    /// The columns of a column definition list.
    fn listed_columns(&mut self, shape: FunctionShape<'_>) -> Result<Columns, SqlError> {
        let alias = shape.alias().filter(|alias| {
            let mut columns = alias.columns.iter();
            !alias.columns.is_empty() && columns.all(|column| column.data_type.is_some())
        });
        let Some(alias) = alias else {
            return Err(syntax(
                "a column definition list is required for functions returning \"record\"",
            ));
        };
        if shape.is_numbered() {
            let message = "WITH ORDINALITY cannot be used with a column definition list";
            let hint = "Put the column definition list inside ROWS FROM().";
            return Err(syntax(message).hint(hint));
        }
        let mut columns = Vec::with_capacity(alias.columns.len());
        let mut seen = BTreeSet::new();
        for ast::TableAliasColumnDef { name, data_type } in &alias.columns {
            let name = ident(name);
            if !seen.insert(name.clone()) {
                let message = format!("column name \"{name}\" specified more than once");
                return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
            }
            let ty = match data_type {
                Some(ty) => bind_type(ty, &self.names())?,
                None => Type::Text,
            };
            columns.push((name, Expr::null(ty)));
        }
        let listed = true;
        Ok(Columns { columns, listed })
    }

    /// The columns of a row that is an argument: of a table as `NULL::t`, or of a relation of
    /// FROM.
    fn columns_of_row(&mut self, name: &str, row: &Ast) -> Result<NamedColumns, SqlError> {
        if let Some(ty) = null_of(row) {
            return match ty {
                ast::DataType::Custom(of, modifiers) if modifiers.is_empty() => {
                    self.columns_of_type(ty, of)
                }
                _ => {
                    bind_type(ty, &self.names())?;
                    Err(no_row(name))
                }
            };
        }
        if let Ast::Identifier(relation) = row
            && let Some((columns, _)) = self.row_columns(&ident(relation))
        {
            return Ok(columns);
        }
        let is_row = match row {
            Ast::Tuple(_) => true,
            Ast::Cast {
                kind: _,
                expr: _,
                data_type: ast::DataType::Custom(of, _),
                format: _,
            } => self.find_rows(of).is_ok(),
            _ => false,
        };
        if is_row {
            let hint = "Use NULL::t of a table t, or the name of a relation in FROM.";
            return Err(unsupported(&format!("a row as an argument of {name}")).hint(hint));
        }
        match self.expr(row)?.ty() {
            Type::Unknown => {
                let message = "could not determine polymorphic type because input has type unknown";
                Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message))
            }
            _ => Err(no_row(name)),
        }
    }

    /// The columns of the row type of a table.
    fn columns_of_type(
        &mut self,
        ty: &ast::DataType,
        of: &ast::ObjectName,
    ) -> Result<NamedColumns, SqlError> {
        let (schema, name) = object_name(of);
        let Ok(table) = self.find_rows(of) else {
            if self.find_view(schema.as_deref(), &name).is_some() {
                let hint = "Use the row type of a table.";
                return Err(unsupported("the row type of a view").hint(hint));
            }
            // Another type, or none.
            bind_type(ty, &self.names())?;
            return Err(no_row("this function"));
        };
        self.note_name(of, &table.name);
        self.note_table(&table);
        let visible = table.columns.iter().filter(|column| {
            !column.hidden && !matches!(column.state, ColumnState::Filling | ColumnState::Dropped)
        });
        let columns = visible.map(|column| match column.domain {
            None => Ok((column.name.clone(), Expr::null(column.ty))),
            Some(_) => Err(unsupported(&format!(
                "the row type of a table with a domain, as column \"{}\" has,",
                column.name
            ))),
        });
        columns.collect()
    }
}

fn has_types(alias: Option<&TableAlias>) -> bool {
    let mut columns = alias.into_iter().flat_map(|alias| &alias.columns);
    columns.any(|column| column.data_type.is_some())
}

fn syntax(message: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX, message)
}

fn no_row(name: &str) -> SqlError {
    let message = format!("first argument of {name} must be a row type");
    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
}

fn does_not_exist(name: &str) -> SqlError {
    let message = format!("function {name}() does not exist");
    SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(
        "No function matches the given name and argument types. You might need to add explicit \
         type casts.",
    )
}
