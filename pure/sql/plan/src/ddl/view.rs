//! CREATE VIEW, ALTER VIEW and DROP VIEW.

use super::{simple, temporary, there, with_notices};
use crate::plan::DdlPlan;
use base::full_name::{beside, is_temporary_name, own};
use base::limits::VIEW_BYTES_MAX;
use base::{OutColumn, SqlError, SqlState, TableId};
use bind::scope::object_name;
use bind::{Binder, ViewQuery, query_of, unsupported};
use catalog::{Command, View, ViewColumn};
use parse::{Kind, Lifetime, ViewDrop, ViewRename, ViewStatement};
use pg_catalog::names::qualified;
use sqlparser::ast;

pub(super) fn plan(kind: &Kind, binder: &mut Binder<'_>) -> Result<DdlPlan, SqlError> {
    match kind {
        Kind::CreateView(statement) => create(statement, binder),
        Kind::DropViews(statement) => drop(statement, binder),
        Kind::RenameView(statement) => rename(statement, binder),
        _ => unreachable!("called for views only"),
    }
}

fn create(statement: &ViewStatement, binder: &mut Binder<'_>) -> Result<DdlPlan, SqlError> {
    let ViewStatement {
        replace,
        temporary,
        name: parts,
        columns: given,
        query: text,
        check,
    } = statement;
    let mut lifetime = Lifetime {
        temporary: *temporary,
        on_commit: None,
    };
    let mut name = temporary::new_parts(parts, lifetime, binder)?;
    let query = query_of(text).ok_or_else(|| unsupported("this query of a view"))?;
    let ViewQuery {
        bound,
        text,
        uses,
        updatable,
    } = binder.new_view(text, query)?;
    if let (Some(_), Some(why)) = (check, binder.why_not_updatable(query, updatable)) {
        let message = "WITH CHECK OPTION is supported only on automatically updatable views";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).hint(why));
    }
    let mut notices = Vec::new();
    let mut used = uses.iter();
    if !is_temporary_name(&name) && used.any(|used| is_temporary_name(&used.relation)) {
        lifetime.temporary = true;
        name = temporary::new_parts(parts, lifetime, binder)?;
        notices.push(format!("view \"{}\" will be a temporary view", own(&name)));
    }
    let temporary = temporary::noted(&name, lifetime)?;
    if given.len() > bound.columns.len() {
        let message = "CREATE VIEW specifies more column names than columns";
        return Err(SqlError::new(SqlState::SYNTAX, message));
    }
    let renamed = bound
        .columns
        .iter()
        .zip(given)
        .any(|(c, name)| c.name != *name);
    let columns = named_columns(bound.columns, given)?;
    if text.len() > VIEW_BYTES_MAX {
        let message = format!("the query of a view cannot be longer than {VIEW_BYTES_MAX} bytes");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT, message));
    }
    let view = View {
        id: TableId(0),
        name,
        query: text,
        renamed,
        updatable,
        columns,
        uses,
        check: *check,
    };
    let command = Command::CreateView {
        database: binder.cx.database.name.clone(),
        view,
        replace: *replace,
    };
    Ok(DdlPlan {
        temporary,
        notices,
        ..simple("CREATE VIEW", vec![command])
    })
}

/// The columns of a query by the names that are given, as far as they are.
fn named_columns(of_query: Vec<OutColumn>, given: &[String]) -> Result<Vec<ViewColumn>, SqlError> {
    let mut columns: Vec<ViewColumn> = Vec::with_capacity(of_query.len());
    for (i, column) in of_query.into_iter().enumerate() {
        let name = given.get(i).cloned().unwrap_or(column.name);
        if columns.iter().any(|other| other.name == name) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        columns.push(ViewColumn {
            name,
            ty: column.ty,
        });
    }
    Ok(columns)
}

fn drop(statement: &ViewDrop, binder: &Binder<'_>) -> Result<DdlPlan, SqlError> {
    let ViewDrop {
        names,
        if_exists,
        cascade,
    } = statement;
    let names = names.iter().map(|name| own_parts(name, binder));
    let (names, missing) = there(names, *if_exists)?;
    let command = Command::DropView {
        database: binder.cx.database.name.clone(),
        names,
        if_exists: *if_exists,
        cascade: *cascade,
    };
    Ok(with_notices(simple("DROP VIEW", vec![command]), missing))
}

fn rename(statement: &ViewRename, binder: &Binder<'_>) -> Result<DdlPlan, SqlError> {
    let ViewRename {
        if_exists,
        name,
        to,
    } = statement;
    let full = own_parts(name, binder)?;
    let command = Command::RenameView {
        database: binder.cx.database.name.clone(),
        to: beside(&full, to),
        name: full,
        if_exists: *if_exists,
    };
    Ok(simple("ALTER VIEW", vec![command]))
}

/// The full name of a relation that is to be changed, by its parts.
pub(super) fn own_parts(parts: &[String], binder: &Binder<'_>) -> Result<String, SqlError> {
    let (schema, name) = qualified(&binder.cx.database.name, parts.to_vec())?;
    binder.changed_name(schema.as_deref(), &name)
}

/// The full name of a type that is to be made, by its parts.
pub(super) fn new_parts(parts: &[String], binder: &Binder<'_>) -> Result<String, SqlError> {
    let (schema, name) = qualified(&binder.cx.database.name, parts.to_vec())?;
    let full = binder.new_name(schema.as_deref(), &name)?;
    match is_temporary_name(&full) {
        false => Ok(full),
        true => {
            let error = unsupported("a type in the schema of a session");
            Err(error.hint("Make it in another schema: it is seen by all sessions."))
        }
    }
}

/// Refuses a view where only a table will do.
///
/// # Errors
/// 42809 with PostgreSQL's `message` for the relation's name.
pub(super) fn refuse(
    name: &ast::ObjectName,
    binder: &Binder<'_>,
    message: impl FnOnce(&str) -> String,
) -> Result<(), SqlError> {
    let (schema, name) = object_name(name);
    match binder.find_view(schema.as_deref(), &name) {
        None => Ok(()),
        Some(_) => Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message(&name))
            .detail("This operation is not supported for views.")),
    }
}
