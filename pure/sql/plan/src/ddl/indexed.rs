//! CREATE INDEX.

use super::{build_index, class, index, key_column, names, other_name, shown, view};
use crate::plan::{AlterFill, DdlPlan, Fill};
use base::full_name::beside;
use base::{SqlError, SqlState, Type};
use bind::scope::{ident, object_name};
use bind::{Binder, Kept, key_name, unsupported};
use catalog::{Column, ColumnState, Command, Index, IndexColumn, Table, TableAction};
use expr::Expr;
use parse::{IndexStatement, OperatorClass};
use pg_catalog::names::known_schema;
use sqlparser::ast;
use std::sync::Arc;

const TAG: &str = "CREATE INDEX";

pub(super) fn create_index(
    statement: &IndexStatement,
    binder: &mut Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    let ast::Statement::CreateIndex(create) = &statement.statement else {
        return Err(unsupported("this form of CREATE INDEX"));
    };
    let ast::CreateIndex {
        name,
        table_name,
        using,
        columns: keys,
        unique,
        // Nobody is locked out either way.
        concurrently: _,
        if_not_exists,
        include,
        nulls_distinct,
        with,
        predicate,
    } = create;
    check_method(using.as_ref(), with)?;
    known_schema(binder.cx.database, object_name(table_name).0.as_deref())?;
    view::refuse(table_name, binder, |name| {
        format!("cannot create index on relation \"{name}\"")
    })?;
    let before = binder.find_rows(table_name)?;
    // The table with the columns that the index computes.
    let mut table = (*before).clone();
    let mut called: Vec<String> = Vec::new();
    let mut columns = Vec::with_capacity(keys.len());
    for key in keys {
        let (column, own) = index_column(&mut table, key, &called, binder)?;
        columns.push(column);
        called.push(own);
    }
    let classes = classes(&table, &columns, &statement.classes, binder)?;
    let included = include.iter().map(|name| key_column(&before, &ident(name)));
    let included = included.collect::<Result<Vec<_>, _>>()?;
    let predicate = predicate.as_ref();
    let predicate = predicate.map(|condition| add_predicate(&mut table, condition, binder));
    let predicate = predicate.transpose()?;
    let database = binder.cx.database.clone();
    called.extend(before.column_names(included.iter().copied()));
    let name = match name {
        Some(name) => given_name(name, binder)?,
        None => names::free_name(&database, &before.name, &called, "idx"),
    };
    let index = Index {
        predicate,
        included,
        classes,
        nulls_equal: *nulls_distinct == Some(false),
        ..index(name, columns, *unique, false)
    };
    let new = table.columns.split_off(before.columns.len());
    let exists = *if_not_exists && database.has_relation(&beside(&before.name, &index.name));
    // Whether there is one is seen when the turn of the change has come.
    if new.is_empty() || exists {
        let (database, table) = (&database.name, &before.name);
        return Ok(build_index(TAG, database, table, index, *if_not_exists));
    }
    Ok(with_columns(&database.name, &before, index, new))
}

/// The operator classes of the columns of an index, as the catalog keeps them.
fn classes(
    table: &Table,
    columns: &[IndexColumn],
    named: &[Option<OperatorClass>],
    binder: &Binder<'_>,
) -> Result<Vec<Option<String>>, SqlError> {
    let mut classes = Vec::with_capacity(columns.len());
    for (key, named) in columns.iter().zip(named) {
        let ty = table.columns[usize::from(key.column)].ty;
        class::check_ordered(ty)?;
        if let Some(named) = named {
            class::check(binder.cx.database, table, key.column, named)?;
        }
        let own = named.as_ref().map(|named| named.name.clone());
        classes.push(own.filter(|name| !class::is_default(ty, name)));
    }
    if classes.iter().all(Option::is_none) {
        classes.clear();
    }
    Ok(classes)
}

/// The name that an index is given: it is where its table is.
fn given_name(name: &ast::ObjectName, binder: &Binder<'_>) -> Result<String, SqlError> {
    match object_name(name).0 {
        Some(_) => Err(binder.no_schema_of_index(name)),
        None => other_name(name, binder),
    }
}

/// Refuses other methods than btree, and parameters.
fn check_method(using: Option<&ast::Ident>, with: &[ast::Expr]) -> Result<(), SqlError> {
    if !with.is_empty() {
        return Err(unsupported("a storage parameter of an index").hint("Leave it out."));
    }
    match using.map(ident).filter(|method| method != "btree") {
        None => Ok(()),
        Some(method) => {
            let hint = match method.as_str() {
                "gin" => {
                    "Leave the index out: operators such as @>, ? and @? then read all rows of the \
                     table. For members that are looked up often, make an index on an expression: \
                     CREATE INDEX ON t ((data->>'key')), and ask for data->>'key' = 'value'."
                }
                "gist" | "spgist" => {
                    "Leave the index out: operators of ranges such as && and @> then read all rows \
                     of the table. An index of the method btree finds equal ranges."
                }
                _ => "Indexes are of the method btree, which orders whole values.",
            };
            Err(unsupported(&format!("index method {method}")).hint(hint))
        }
    }
}

/// A new index with the columns that it computes, filled for the rows that are there.
fn with_columns(database: &str, table: &Table, index: Index, columns: Vec<Column>) -> DdlPlan {
    let fill = AlterFill {
        table: table.name.clone(),
        columns: columns.iter().map(|column| column.name.clone()).collect(),
        not_null: Vec::new(),
        constraints: Vec::new(),
        indexes: vec![index.name.clone()],
    };
    let added = columns.into_iter().zip(table.columns.len()..);
    let added = added.map(|(column, place)| TableAction::AddColumn {
        column: Column {
            state: ColumnState::Filling,
            ..column
        },
        place: place as u16,
        if_not_exists: false,
    });
    let alter = |actions| Command::AlterTable {
        database: database.to_string(),
        table: table.name.clone(),
        actions,
    };
    DdlPlan {
        tag: TAG,
        before: vec![alter(added.chain([TableAction::AddIndex(index)]).collect())],
        fill: Some(Fill::Alter(Box::new(fill))),
        after: vec![alter(vec![TableAction::Publish])],
        undo: vec![alter(vec![TableAction::Undo])],
        notices: Vec::new(),
        temporary: None,
    }
}

/// A key as written: its place in the table, which gets a column for an expression, and the name
/// that the index gives it; `called` are those of the keys before.
fn index_column(
    table: &mut Table,
    key: &ast::OrderByExpr,
    called: &[String],
    binder: &mut Binder<'_>,
) -> Result<(IndexColumn, String), SqlError> {
    let (descending, nulls_first) = binder.sort_order(key)?;
    let mut expr = &key.expr;
    if let ast::Expr::Collate {
        expr: inner,
        collation,
    } = expr
    {
        bind::check_collation(collation)?;
        expr = inner;
    }
    check_form(expr)?;
    while let ast::Expr::Nested(inner) = expr {
        expr = inner;
    }
    let (column, name) = match expr {
        ast::Expr::Identifier(name) => {
            let name = ident(name);
            (key_column(table, &name)?, name)
        }
        _ => {
            let name = free_key(key_name(expr), called);
            let column = add_key(table, expr, &name, binder)?;
            match table.column_at(column).of_index {
                true => (column, name),
                false => (column, table.column_at(column).name.clone()),
            }
        }
    };
    let key = IndexColumn {
        column,
        descending,
        nulls_first,
    };
    Ok((key, name))
}

/// The name of a key that no key before has.
fn free_key(name: String, called: &[String]) -> String {
    let mut names = core::iter::once(name.clone()).chain((1..).map(|n| format!("{name}{n}")));
    let free = names.find(|name| !called.contains(name));
    free.expect("there are more names than keys")
}

/// Refuses what PostgreSQL takes in parentheses only.
///
/// # Errors
/// 42601.
fn check_form(expr: &ast::Expr) -> Result<(), SqlError> {
    let is_open = matches!(
        expr,
        ast::Expr::Identifier(_)
            | ast::Expr::Nested(_)
            | ast::Expr::Subquery(_)
            | ast::Expr::Function(_)
            | ast::Expr::Cast {
                kind: ast::CastKind::Cast,
                expr: _,
                data_type: _,
                format: _,
            }
            | ast::Expr::Extract {
                field: _,
                syntax: _,
                expr: _,
            }
            | ast::Expr::Substring {
                expr: _,
                substring_from: _,
                substring_for: _,
                special: _,
            }
            | ast::Expr::Trim {
                expr: _,
                trim_where: _,
                trim_what: _,
                trim_characters: _,
            }
            | ast::Expr::Position { expr: _, r#in: _ }
            | ast::Expr::Ceil { expr: _, field: _ }
            | ast::Expr::Floor { expr: _, field: _ }
    );
    if is_open {
        return Ok(());
    }
    let message = format!("syntax error at or near \"{expr}\"");
    Err(SqlError::new(SqlState::SYNTAX, message)
        .hint("An expression that is no call of a function needs parentheses around it."))
}

/// Adds the hidden column for an expression; gives its place, or that of the column that it is.
fn add_key(
    table: &mut Table,
    expr: &ast::Expr,
    name: &str,
    binder: &mut Binder<'_>,
) -> Result<u16, SqlError> {
    let shared = Arc::new(table.clone());
    let bound = binder.kept_expr(&shared, expr, Kept::Key)?;
    if let Expr::Column(column, _) = bound {
        return Ok(column as u16);
    }
    let ty = match bound.ty() {
        Type::Unknown => Type::Text,
        ty => ty,
    };
    if let Type::Reg(_) | Type::Xid | Type::Tid | Type::Array(_) = ty {
        let text = format!("an index on an expression of type {}", ty.name());
        return Err(unsupported(&text));
    }
    let text = shown::kept(&shown::text(expr), binder);
    Ok(push(table, name, ty, text))
}

fn push(table: &mut Table, name: &str, ty: Type, text: String) -> u16 {
    let place = table.columns.len() as u16;
    let mut column = Column::of_index(place, name, ty, text);
    while table.column(&column.name).is_some() {
        column.name.insert(0, '$');
    }
    table.columns.push(column);
    place
}

/// Adds the hidden column for the condition of an index; gives its place.
fn add_predicate(
    table: &mut Table,
    condition: &ast::Expr,
    binder: &mut Binder<'_>,
) -> Result<u16, SqlError> {
    let shared = Arc::new(table.clone());
    let bound = binder.kept_expr(&shared, condition, Kept::Predicate)?;
    if matches!(bound, Expr::Const(..)) && bound.ty() != Type::Bool {
        let message = "argument of WHERE must be type boolean";
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
    }
    let text = shown::kept(&shown::text(condition), binder);
    Ok(push(table, "where", Type::Bool, text))
}
