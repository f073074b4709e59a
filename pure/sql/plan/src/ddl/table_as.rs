//! CREATE TABLE ... AS and SELECT INTO: a table with the columns of a query, and the INSERT that
//! fills it.

use super::like::check_names;
use super::simple;
use super::table::{check_storable, empty_table};
use super::view::new_parts;
use crate::plan::{CreateAs, PlanKind};
use ::functions::keywords::quote_ident;
use base::full_name::{own, schema_of};
use base::{SqlError, SqlState};
use bind::{Binder, query_of, unsupported};
use catalog::{Column, Command, mark};
use parse::TableAs;
use std::borrow::Cow;

/// The tag of the change, and of one without rows.
const TAG: &str = "CREATE TABLE AS";

pub(crate) fn plan(statement: &TableAs, binder: &mut Binder<'_>) -> Result<PlanKind, SqlError> {
    let TableAs {
        name,
        columns: given,
        if_not_exists,
        replicated,
        query: text,
        with_data,
    } = statement;
    let name = new_parts(name, binder)?;
    let query = query_of(text).ok_or_else(|| unsupported("this query of CREATE TABLE AS"))?;
    if text.parameters() > 0 {
        return Err(unsupported("CREATE TABLE AS with parameters")
            .hint("Create the table first, and use INSERT ... SELECT."));
    }
    let bound = binder.query(query)?;
    if given.len() > bound.columns.len() {
        let message = "too many column names were specified";
        return Err(SqlError::new(SqlState::SYNTAX, message));
    }
    let mut table = empty_table(name.clone(), *replicated);
    for (i, column) in bound.columns.into_iter().enumerate() {
        let name = given.get(i).cloned().unwrap_or(column.name);
        check_storable(&name, column.ty)?;
        table.columns.push(Column::new(&name, column.ty));
    }
    check_names(&table.columns)?;
    let columns = table.columns.iter();
    let columns: Vec<_> = columns.map(|column| quote_ident(&column.name)).collect();
    let columns = match columns.as_slice() {
        [] => String::new(),
        some => format!(" ({})", some.join(", ")),
    };
    let insert = format!(
        "INSERT INTO {}.{}{columns} ({})",
        mark(schema_of(&name)),
        quote_ident(own(&name)),
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
    let create = simple(TAG, vec![create]);
    if !with_data {
        return Ok(PlanKind::Ddl(create));
    }
    Ok(PlanKind::CreateAs(Box::new(CreateAs {
        create,
        insert: insert.into(),
        undo: simple("DROP TABLE", vec![drop]),
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
