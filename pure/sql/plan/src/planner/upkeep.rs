//! VACUUM, ANALYZE, REINDEX and LOCK TABLE: what they name must exist.

use super::{plain, run_plan};
use crate::plan::{LockPlan, Plan, PlanKind};
use crate::step::{Action, Upkeep, UpkeepOf};
use base::full_name::is_temporary_name;
use base::{SqlError, SqlState, TableId};
use bind::Binder;
use catalog::TableLock;
use catalog::objects::is_own_table;
use parse::{Kind, LockTables, Named, Reindex};
use pg_catalog::names::{known_schema, qualified};
use pg_catalog::path::Meant;
use rights::Privileges;

/// Plans these statements.
///
/// # Errors
/// 42P01, 42703 and 42701 for what they name.
pub(super) fn plan(kind: &Kind, binder: &mut Binder<'_>) -> Result<Plan, SqlError> {
    match kind {
        Kind::Lock(tables) => lock(tables, binder),
        Kind::Upkeep(words) => upkeep(words, binder),
        Kind::Reindex(words) => reindex(words, binder),
        _ => unreachable!("the caller has looked"),
    }
}

/// Plans VACUUM and ANALYZE. Whether the role may treat a table is seen when the statement runs: it
/// passes over the others.
///
/// # Errors
/// 42P01, 42703 and 42701 for what it names.
fn upkeep(upkeep: &parse::Upkeep, binder: &mut Binder<'_>) -> Result<Plan, SqlError> {
    let parse::Upkeep {
        vacuums,
        analyzes,
        verbose,
        named,
    } = upkeep;
    let named = named.iter().map(|named| checked(named, None, binder));
    let named = named.collect::<Result<_, _>>()?;
    let action = Action::Upkeep(Upkeep {
        vacuums: *vacuums,
        analyzes: *analyzes,
        verbose: *verbose,
        named,
    });
    run_plan(binder, action, Vec::new(), 0)
}

/// Looks for what REINDEX names; there is nothing to do for it.
///
/// # Errors
/// 42P01 and 42809 for relations, 3F000 for schemas, 0A000 for another database.
fn reindex(reindex: &Reindex, binder: &mut Binder<'_>) -> Result<Plan, SqlError> {
    let Reindex {
        of,
        // Of the session: it has looked whether there is a block.
        concurrently: _,
        named,
    } = reindex;
    let database = binder.cx.database;
    let name = named.last().cloned().unwrap_or_default();
    match *of {
        "SCHEMA" => known_schema(database, Some(name.as_str()))?,
        "DATABASE" | "SYSTEM" if name != database.name => {
            let message = "can only reindex the currently open database";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        "DATABASE" | "SYSTEM" => {}
        of => {
            let (schema, name) = qualified(&database.name, named.clone())?;
            known_schema(database, schema.as_deref())?;
            let meant = binder.meant(schema.as_deref(), &name);
            let fits = match &meant {
                None => {
                    let message = format!("relation \"{name}\" does not exist");
                    return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
                }
                Some(Meant::System(_)) => of == "TABLE",
                Some(Meant::Own(full)) if database.tables.contains_key(full) => of == "TABLE",
                Some(Meant::Own(full)) => {
                    let other = database.views.contains_key(full)
                        || database.sequences.contains_key(full)
                        || is_own_table(full);
                    of == "INDEX" && !other
                }
            };
            if !fits {
                let what = match of {
                    "INDEX" => "an index",
                    _ => "a table or materialized view",
                };
                let message = format!("\"{name}\" is not {what}");
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
        }
    }
    Ok(plain(binder, PlanKind::Nothing("REINDEX")))
}

/// Most tables that one LOCK TABLE locks in a mode that the catalog keeps.
const LOCKED_MAX: usize = 1_000;

/// Plans LOCK TABLE.
///
/// # Errors
/// 42P01; 0A000 for views and system catalogs in modes that hold something off.
fn lock(lock: &LockTables, binder: &mut Binder<'_>) -> Result<Plan, SqlError> {
    let LockTables {
        mode,
        nowait,
        tables: named,
    } = lock;
    let changes = Privileges::UPDATE
        .with(Privileges::DELETE)
        .with(Privileges::TRUNCATE);
    let wanted = match mode {
        TableLock::AccessShare => Privileges::SELECT,
        TableLock::RowExclusive => changes.with(Privileges::INSERT),
        TableLock::RowShare
        | TableLock::ShareUpdateExclusive
        | TableLock::Share
        | TableLock::ShareRowExclusive
        | TableLock::Exclusive
        | TableLock::AccessExclusive => changes,
    };
    let (mut tables, mut names) = (Vec::new(), Vec::new());
    for named in named {
        check_lockable(named, binder)?;
        let found = checked(named, Some(wanted), binder)?;
        let is_table = found.relation.is_some() && !found.is_view;
        if !is_table && mode.is_kept() {
            let what = if found.is_view {
                "a view"
            } else {
                "a system catalog"
            };
            let message = format!("LOCK TABLE of {what} in this mode is not supported");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .hint("Lock the tables from which it takes its rows."));
        }
        let id = found.relation.filter(|_| is_table).map(TableId);
        let all = &binder.cx.database.tables;
        let table = id.and_then(|id| all.values().find(|table| table.id == id));
        // A temporary table is its session's own.
        if let Some(table) = table.filter(|table| !is_temporary_name(&table.name))
            && !tables.contains(&table.id)
        {
            tables.push(table.id);
            names.push(table.name.clone());
        }
    }
    if mode.is_kept() && tables.len() > LOCKED_MAX {
        let message = "too many tables in one LOCK TABLE";
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT, message)
            .detail(format!(
                "A statement locks {LOCKED_MAX} at most in this mode."
            ))
            .hint("Use several statements."));
    }
    let plan = LockPlan {
        tables,
        names,
        mode: *mode,
        nowait: *nowait,
    };
    Ok(plain(binder, PlanKind::Lock(Box::new(plan))))
}

/// Refuses what is neither a table nor a view.
///
/// # Errors
/// 42809.
fn check_lockable(named: &Named, binder: &Binder<'_>) -> Result<(), SqlError> {
    let database = binder.cx.database;
    let (schema, name) = qualified(&database.name, named.table.clone())?;
    known_schema(database, schema.as_deref())?;
    let Some(Meant::Own(full)) = binder.meant(schema.as_deref(), &name) else {
        return Ok(());
    };
    let kind = if database.stored_view(&full).is_some() {
        "materialized views"
    } else if database.sequences.contains_key(&full) {
        "sequences"
    } else if database.tables.contains_key(&full) || database.views.contains_key(&full) {
        return Ok(());
    } else if database.has_relation(&full) {
        "indexes"
    } else {
        return Ok(());
    };
    let message = format!("cannot lock relation \"{name}\"");
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
        .detail(format!("This operation is not supported for {kind}.")))
}

/// What is named. A privilege on it may be `wanted`.
fn checked(
    named: &Named,
    wanted: Option<Privileges>,
    binder: &mut Binder<'_>,
) -> Result<UpkeepOf, SqlError> {
    let (schema, name) = qualified(&binder.cx.database.name, named.table.clone())?;
    known_schema(binder.cx.database, schema.as_deref())?;
    let found = |relation: Option<u32>, is_view: bool| UpkeepOf {
        name: name.clone(),
        relation,
        is_view,
    };
    match binder.meant(schema.as_deref(), &name) {
        Some(Meant::System(_)) => return Ok(found(None, false)),
        Some(Meant::Own(full)) if is_own_table(&full) => return Ok(found(None, false)),
        _ => {}
    }
    if let Some(view) = binder.find_view(schema.as_deref(), &name) {
        if let Some(wanted) = wanted {
            binder.need_view(&view, wanted);
        }
        return Ok(found(Some(view.id.0), true));
    }
    let table = match binder.stored(schema.as_deref(), &name) {
        Some(table) => table,
        None => binder.find_table_named(schema.as_deref(), &name)?,
    };
    if let Some(wanted) = wanted {
        binder.need_table(&table, wanted);
    }
    for (i, column) in named.columns.iter().enumerate() {
        let is_there = table
            .columns
            .iter()
            .any(|known| !known.hidden && known.name == *column);
        let (state, what) = match (is_there, named.columns[..i].contains(column)) {
            (true, false) => continue,
            (true, true) => (SqlState::DUPLICATE_COLUMN, "appears more than once"),
            (false, _) => (SqlState::UNDEFINED_COLUMN, "does not exist"),
        };
        let message = format!("column \"{column}\" of relation \"{name}\" {what}");
        return Err(SqlError::new(state, message));
    }
    Ok(found(Some(table.id.0), false))
}
