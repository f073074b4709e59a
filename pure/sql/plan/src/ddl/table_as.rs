//! CREATE TABLE ... AS and SELECT INTO: a table with the columns of a query, and the INSERT that
//! fills it.

use super::like::check_names;
use super::simple;
use super::stored::written;
use super::table::{check_storable, empty_table};
use super::temporary;
use crate::plan::{CreateAs, DdlPlan, PlanKind};
use ::functions::keywords::quote_ident;
use base::full_name::is_temporary_name;
use base::{OutColumn, SqlError, SqlState, TableId};
use bind::{Binder, BoundQuery, ViewQuery, query_of, unsupported};
use catalog::{Column, Command, Table, View, ViewColumn, ViewUse};
use parse::{Statement, TableAs};
use sqlparser::ast;
use std::borrow::Cow;

/// The tag of the change, and of one without rows.
const TAG: &str = "CREATE TABLE AS";
const STORED: &str = "CREATE MATERIALIZED VIEW";

pub(crate) fn plan(statement: &TableAs, binder: &mut Binder<'_>) -> Result<PlanKind, SqlError> {
    let TableAs {
        name,
        columns: given,
        if_not_exists,
        replicated,
        idle,
        lifetime,
        materialized,
        query: text,
        with_data,
    } = statement;
    let name = temporary::new_parts(name, *lifetime, binder)?;
    let temporary = temporary::noted(&name, *lifetime)?;
    let query = query_of(text).ok_or_else(|| unsupported("this query of CREATE TABLE AS"))?;
    if text.parameters() > 0 {
        return Err(unsupported("CREATE TABLE AS with parameters")
            .hint("Create the table first, and use INSERT ... SELECT."));
    }
    let (bound, kept) = match *materialized {
        false => (binder.query(query)?, None),
        true => kept_query(text, query, binder)?,
    };
    let mut table = empty_table(name.clone(), *replicated);
    table.columns = named_columns(bound.columns, given)?;
    if let Some((query, uses)) = kept {
        let how = (*if_not_exists, *with_data);
        return stored(table, (query, uses), how, binder);
    }
    let columns = table.columns.iter();
    let columns: Vec<_> = columns.map(|column| quote_ident(&column.name)).collect();
    let columns = match columns.as_slice() {
        [] => String::new(),
        some => format!(" ({})", some.join(", ")),
    };
    let insert = format!(
        "INSERT INTO {}{columns} ({})",
        written(&name),
        without_table(text.text())
    );
    let database = &binder.cx.database.name;
    let create = Command::CreateTable {
        database: database.clone(),
        table,
        sequences: Vec::new(),
        if_not_exists: *if_not_exists,
    };
    let drop = Command::DropTable {
        database: database.clone(),
        names: vec![name],
        if_exists: true,
        cascade: true,
    };
    let create = DdlPlan {
        temporary,
        notices: super::table::without_effect(idle),
        ..simple(TAG, vec![create])
    };
    if !with_data {
        return Ok(PlanKind::Ddl(create));
    }
    Ok(PlanKind::CreateAs(Box::new(CreateAs {
        create,
        insert: insert.into(),
        undo: simple("DROP TABLE", vec![drop]),
        stored: None,
        finish: None,
    })))
}

/// The columns of a query by the names that are given, as far as they are.
fn named_columns(of_query: Vec<OutColumn>, given: &[String]) -> Result<Vec<Column>, SqlError> {
    if given.len() > of_query.len() {
        let message = "too many column names were specified";
        return Err(SqlError::new(SqlState::SYNTAX, message));
    }
    let mut columns = Vec::with_capacity(of_query.len());
    for (i, column) in of_query.into_iter().enumerate() {
        let name = given.get(i).cloned().unwrap_or(column.name);
        check_storable(&name, column.ty)?;
        columns.push(Column::new(&name, column.ty));
    }
    check_names(&columns)?;
    Ok(columns)
}

/// A bound query with what a view keeps of it: its text, and what it uses.
type KeptQuery = (BoundQuery, Option<(String, Vec<ViewUse>)>);

/// The query of a materialized view.
fn kept_query(
    statement: &Statement,
    query: &ast::Query,
    binder: &mut Binder<'_>,
) -> Result<KeptQuery, SqlError> {
    let ViewQuery {
        bound,
        text,
        uses,
        updatable: _,
    } = binder.new_view(statement, query)?;
    let mut used = uses.iter();
    if used.any(|used| is_temporary_name(&used.relation)) {
        let message = "materialized views must not use temporary tables or views";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    Ok((bound, Some((text, uses))))
}

/// A materialized view with the columns of this table.
fn stored(
    table: Table,
    (query, uses): (String, Vec<ViewUse>),
    (if_not_exists, with_data): (bool, bool),
    binder: &Binder<'_>,
) -> Result<PlanKind, SqlError> {
    let name = table.name.clone();
    let quoted = table.columns.iter();
    let quoted: Vec<_> = quoted.map(|column| quote_ident(&column.name)).collect();
    if quoted.is_empty() {
        return Err(unsupported("a materialized view without columns"));
    }
    let query = without_table(&query).into_owned();
    let insert = format!(
        "INSERT INTO {} ({}) ({query})",
        written(&name),
        quoted.join(", ")
    );
    let columns = table.columns.iter().map(|column| ViewColumn {
        name: column.name.clone(),
        ty: column.ty,
    });
    let view = View {
        id: TableId(0),
        name: name.clone(),
        columns: columns.collect(),
        query,
        renamed: false,
        updatable: false,
        check: None,
        uses,
    };
    let database = || binder.cx.database.name.clone();
    let create = Command::CreateStored {
        database: database(),
        table,
        view,
        if_not_exists,
    };
    let drop = Command::DropStored {
        database: database(),
        names: vec![name.clone()],
        if_exists: true,
        cascade: true,
    };
    let finish = Command::SetFilled {
        database: database(),
        name: name.clone(),
        filled: true,
    };
    let create = simple(STORED, vec![create]);
    if !with_data {
        return Ok(PlanKind::Ddl(create));
    }
    Ok(PlanKind::CreateAs(Box::new(CreateAs {
        create,
        insert: insert.into(),
        undo: simple("DROP MATERIALIZED VIEW", vec![drop]),
        stored: Some(name),
        finish: Some(simple(STORED, vec![finish])),
    })))
}

/// `TABLE name` in parentheses is a SELECT.
fn without_table(text: &str) -> Cow<'_, str> {
    let (first, rest) = text.split_at(text.find(|c: char| !c.is_alphabetic()).unwrap_or(0));
    match first.eq_ignore_ascii_case("TABLE") {
        true => format!("SELECT * FROM{rest}").into(),
        false => text.into(),
    }
}
