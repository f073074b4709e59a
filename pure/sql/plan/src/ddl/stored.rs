//! Materialized views: REFRESH, ALTER and DROP.

use super::view::own_parts;
use super::{simple, skipped, there, with_notices};
use crate::plan::{DdlPlan, PlanKind, Refresh};
use ::functions::keywords::quote_ident;
use base::full_name::{own, schema_of};
use base::{SqlError, SqlState};
use bind::Binder;
use catalog::{Command, StoredView, Table, TableAction, mark};
use parse::{StoredStatement, ViewDrop, ViewRename};
use rights::ObjectKind;

/// Plans ALTER and DROP.
pub(super) fn plan(
    statement: &StoredStatement,
    binder: &mut Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    let database = binder.cx.database.name.clone();
    match statement {
        StoredStatement::Refresh { .. } => unreachable!("it is no schema change alone"),
        StoredStatement::Drop(ViewDrop {
            names,
            if_exists,
            cascade,
        }) => {
            let names = names.iter().map(|name| own_parts(name, binder));
            let (names, missing) = there(names, *if_exists)?;
            let command = Command::DropStored {
                database,
                names,
                if_exists: *if_exists,
                cascade: *cascade,
            };
            let plan = simple("DROP MATERIALIZED VIEW", vec![command]);
            Ok(with_notices(plan, missing))
        }
        StoredStatement::Rename(ViewRename {
            if_exists,
            name,
            to,
        }) => {
            let tag = "ALTER MATERIALIZED VIEW";
            match found(name, binder) {
                Err(error) if *if_exists && error.state() == SqlState::UNDEFINED_TABLE => {
                    Ok(skipped(tag, &error))
                }
                other => {
                    let table = other?.view.name.clone();
                    let actions = vec![TableAction::RenameTable { to: to.clone() }];
                    let command = Command::AlterTable {
                        database,
                        table,
                        actions,
                    };
                    Ok(simple(tag, vec![command]))
                }
            }
        }
    }
}

/// Plans REFRESH.
pub(crate) fn refresh(
    statement: &StoredStatement,
    binder: &mut Binder<'_>,
) -> Result<Option<PlanKind>, SqlError> {
    let StoredStatement::Refresh {
        name,
        concurrently,
        with_data,
    } = statement
    else {
        return Ok(None);
    };
    if *concurrently && !with_data {
        let message = "REFRESH options CONCURRENTLY and WITH NO DATA cannot be used together";
        return Err(SqlError::new(SqlState::SYNTAX, message));
    }
    // PostgreSQL gives this mistake another code here.
    let stored = found(name, binder).map_err(|error| match error.state() {
        SqlState::WRONG_OBJECT_TYPE => {
            let message = error.fields().message.clone();
            SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        }
        _ => error,
    })?;
    let stored = stored.clone();
    let full = &stored.view.name;
    let table = binder.table_of(full)?;
    binder
        .needs
        .owned
        .push((table.id.0, ObjectKind::Table, full.as_str().into()));
    if *concurrently {
        check_concurrent(&stored, &table, binder)?;
    }
    let filled = |filled: bool| {
        let database = binder.cx.database.name.clone();
        let name = full.clone();
        simple(
            "REFRESH MATERIALIZED VIEW",
            vec![Command::SetFilled {
                database,
                name,
                filled,
            }],
        )
    };
    if !with_data {
        return Ok(Some(PlanKind::Ddl(filled(false))));
    }
    let columns = stored.view.columns.iter();
    let columns: Vec<_> = columns.map(|column| quote_ident(&column.name)).collect();
    let place = written(full);
    let insert = format!(
        "INSERT INTO {place} ({}) ({})",
        columns.join(", "),
        stored.view.query
    );
    Ok(Some(PlanKind::Refresh(Box::new(Refresh {
        name: full.clone(),
        empty: format!("DELETE FROM {place}").into(),
        insert: insert.into(),
        finish: (!stored.filled).then(|| filled(true)),
    }))))
}

/// A name in a text of the server.
pub(super) fn written(full: &str) -> String {
    format!("{}.{}", mark(schema_of(full)), quote_ident(own(full)))
}

fn found<'b>(name: &[String], binder: &Binder<'b>) -> Result<&'b StoredView, SqlError> {
    let full = own_parts(name, binder)?;
    let database = binder.cx.database;
    if let Some(stored) = database.stored_view(&full) {
        return Ok(stored);
    }
    Err(match database.kind_of(&full) {
        Some(_) => {
            let message = format!("\"{full}\" is not a materialized view");
            SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
        }
        None => {
            let message = format!("relation \"{}\" does not exist", name.join("."));
            SqlError::new(SqlState::UNDEFINED_TABLE, message)
        }
    })
}

/// # Errors
/// 55000, 0A000: what PostgreSQL asks for before it compares old rows and new ones. Here readers
/// wait for nobody in any case.
fn check_concurrent(
    stored: &StoredView,
    table: &Table,
    binder: &Binder<'_>,
) -> Result<(), SqlError> {
    if !stored.filled {
        let message = "CONCURRENTLY cannot be used when the materialized view is not populated";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let mut unique = table.secondary.iter();
    if unique.any(|index| index.unique && index.predicate.is_none() && !index.building) {
        return Ok(());
    }
    let name = binder.cx.database.shown_name(&table.name);
    let name = match schema_of(&table.name) {
        base::full_name::PUBLIC_SCHEMA => format!("public.{name}"),
        _ => name,
    };
    let message = format!("cannot refresh materialized view \"{name}\" concurrently");
    Err(SqlError::new(SqlState::OBJECT_NOT_READY, message).hint(
        "Create a unique index with no WHERE clause on one or more columns of the materialized \
         view.",
    ))
}
