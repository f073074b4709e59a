//! Functions over the system catalog: `format_type`, `pg_get_indexdef`, `has_table_privilege`, ...
//!
//! The evaluator knows them by name only (`Func::Catalog`); [`SIGNATURES`] says what they take and
//! give, [`call`] computes them. Unless said otherwise a NULL argument gives NULL.

use super::access;
use super::constraints::{Constraint, of_table};
use super::names;
use super::placement;
use super::*;
use base::{Reg, SqlError, SqlState};
use expr::resolve::SIGNATURES;

/// The text form of a value of a `reg...` type or of an array of it, as rows for the client have
/// it; other values as they are.
pub fn named(cx: &CatalogCx<'_>, reg: Reg, value: &Datum) -> Datum {
    match value {
        Datum::Array(_) | Datum::Grid(_) => mapped(value, |item| named(cx, reg, item)),
        Datum::Int(id) => {
            let id = u32::try_from(*id).unwrap_or(0);
            output(cx, &format!("{}out", reg.name()), id)
        }
        other => other.clone(),
    }
}

/// The oid behind the text form of a `reg...` type.
///
/// # Errors
/// 42P01 and its like if there is no such thing.
pub fn resolved(cx: &CatalogCx<'_>, reg: Reg, name: &str) -> Result<Datum, SqlError> {
    input(cx, &format!("{}in", reg.name()), name).map(oid)
}

/// PostgreSQL's number of an encoding; -1 for one that it does not know.
fn encoding_number(name: &str) -> i64 {
    match name.to_ascii_uppercase().as_str() {
        "UTF8" | "UTF-8" | "UNICODE" => 6,
        "SQL_ASCII" => 0,
        _ => -1,
    }
}

/// Whether indexes can do something; NULL for what is no property.
fn index_ability(property: &str) -> Datum {
    match property {
        "can_order" | "can_unique" | "can_multi_col" | "clusterable" | "index_scan"
        | "backward_scan" => flag(true),
        "can_exclude" | "can_include" | "bitmap_scan" => flag(false),
        _ => Datum::Null,
    }
}

/// An expression, which is kept as the text that it prints as.
fn printed(expression: &str, pretty: bool) -> Datum {
    text(match pretty {
        true => definitions::pretty(expression),
        false => expression,
    })
}

/// A function that is called by its number.
pub struct Called {
    /// The statement that calls it with parameters.
    pub text: String,
    /// Types of its arguments.
    pub types: Vec<u32>,
}

/// The function with this number, if it can be called so: it gives one value and is no aggregate.
pub fn called(oid: u32) -> Option<Called> {
    let proc = procs::by_oid(oid).filter(|proc| proc.gives_value())?;
    let args: Vec<String> = (1..=proc.args.len()).map(|at| format!("${at}")).collect();
    Some(Called {
        text: format!("SELECT pg_catalog.{}({})", proc.name, args.join(", ")),
        types: proc.args,
    })
}

/// A column of the rows that a function gives, or the age of a transaction; `None`: another
/// function.
fn of_one(cx: &CatalogCx<'_>, name: &str, args: &[Datum]) -> Option<Result<Datum, SqlError>> {
    let [arg] = args else {
        return None;
    };
    let is_age = matches!(name, "age" | "mxid_age");
    let column = name.split_once(':');
    match (is_age, column) {
        (false, None) => None,
        _ if arg.is_null() => Some(Ok(Datum::Null)),
        // Transactions have no numbers, so there are none between that one and this.
        (true, _) => Some(Ok(int(0))),
        (false, Some(column)) => Some(access::column_of_rows(cx, column, arg)),
    }
}

/// Computes a function of [`SIGNATURES`].
///
/// # Errors
/// 42P01 and its like for names of things that do not exist, where PostgreSQL raises them; 42883
/// for a function that is not listed.
pub fn call(cx: &CatalogCx<'_>, name: &str, args: &[Datum]) -> Result<Datum, SqlError> {
    if let Some(value) = of_one(cx, name, args).or_else(|| enums::call(cx, name, args)) {
        return value;
    }
    // format_type(oid, NULL) prints the type without a modifier.
    if name != "format_type" && args.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    if name.starts_with("reg") && args.len() == 1 && args[0].as_array().is_some() {
        return each(cx, name, args[0].clone());
    }
    let number = |at: usize| args.get(at).and_then(Datum::as_int);
    // An argument that stands for an object; numbers beyond oids mean nothing.
    let object = |at: usize| {
        number(at)
            .and_then(|value| u32::try_from(value).ok())
            .unwrap_or(0)
    };
    let word = |at: usize| args.get(at).and_then(Datum::as_str).unwrap_or("");
    let truth = |at: usize| args.get(at).and_then(Datum::as_bool).unwrap_or(false);
    Ok(match name {
        "format_type" if number(0).is_none() => Datum::Null,
        "format_type" => text(enums::type_name(cx, object(0), number(1))),
        "oidvectortypes" => text(type_names(cx, &args[0])),
        name if name.starts_with("pg_get_function") => procs::told(cx, name, object(0)),
        "pg_get_userbyid" => user_name(cx, object(0)),
        "acldefault" => access::by_default(cx, word(0), object(1))?,
        _ if name.ends_with("_blocking_pids") => array([]),
        "current_schema" | "current_schemas" => cx.of_path(name, truth(0)),
        "pg_get_expr" => printed(word(0), truth(2)),
        "pg_describe_object" => statements::described(object(0), object(1))?,
        "pg_get_indexdef" => index_definition(cx, object(0), number(1).unwrap_or(0), truth(2)),
        "pg_get_viewdef" => user_views::definition_of(cx, object(0)),
        "pg_get_constraintdef" => constraint_definition(cx, object(0), truth(1)),
        "pg_get_serial_sequence" => serial_sequence(cx, word(0), word(1))?,
        "pg_encoding_to_char" => text(if number(0) == Some(6) { "UTF8" } else { "" }),
        "pg_char_to_encoding" => int(encoding_number(word(0))),
        "pg_client_encoding" => text((cx.setting)("client_encoding").unwrap_or("UTF8".to_owned())),
        "getdatabaseencoding" => text("UTF8"),
        "trellis_shard_of" | "trellis_node_of" => placement::told(cx, name, object(0), &args[1..])?,
        "trellis_placement_version" => placement::version(cx, object(0))?,
        "pg_size_pretty" => text(size_pretty(number(0).unwrap_or(0))),
        "pg_relation_filenode" => oid(object(0)),
        "pg_is_in_recovery" | "pg_is_wal_replay_paused" => flag(false),
        "pg_is_other_temp_schema" => flag(cx.is_of_others(object(0))),
        "pg_my_temp_schema" => oid(cx.temporary().unwrap_or_default()),
        "pg_tablespace_location" => text(""),
        // Transactions are not numbered in one sequence: the start in microseconds stands for it.
        "txid_current" | "pg_current_xact_id" => int(cx.txn_time.0),
        "row_security_active" => policies::is_active(cx, object(0)),
        "pg_relation_is_publishable" => flag(find_table(cx, object(0)).is_some()),
        "pg_relation_is_updatable" | "pg_column_is_updatable" => updatable(cx, name, object(0)),
        "pg_index_column_has_property" => index_property(cx, object(0), number(1), word(2)),
        "pg_index_has_property" | "pg_indexam_has_property" => index_ability(word(1)),
        _ if name.ends_with("_description") => comments::described(cx, name, object(0), args),
        _ if name.ends_with("_is_visible") => visible_object(cx, name, object(0)),
        _ if grants::is_asked(name) => grants::privilege(cx, name, args)?,
        _ if name.starts_with("pg_stat_get_") => int(0),
        _ if name.ends_with("_size") => size(cx, name, args)?,
        _ if name.starts_with("to_reg") => find(cx, name, word(0))?,
        _ if name.starts_with("reg") && name.ends_with("in") => oid(input(cx, name, word(0))?),
        _ if name.starts_with("reg") && name.ends_with("out") => output(cx, name, object(0)),
        // Of what does not exist here, or is no fact of the catalog, like start times.
        _ if SIGNATURES.iter().any(|known| known.name == name) => Datum::Null,
        _ => {
            let message = format!("function {name} does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
        }
    })
}

/// The forms of `reg...` types are computed for each element of an array.
fn each(cx: &CatalogCx<'_>, name: &str, array: Datum) -> Result<Datum, SqlError> {
    array.try_map_items(|item| call(cx, name, &[item]))
}

pub(super) fn find_table<'a>(cx: &CatalogCx<'a>, id: u32) -> Option<&'a Table> {
    cx.database
        .tables
        .values()
        .map(|table| &**table)
        .find(|table| table.id.0 == id)
}

/// Whether a relation is a table, or a view through which its table can be changed.
fn updatable(cx: &CatalogCx<'_>, name: &str, id: u32) -> Datum {
    let mut views = cx.views();
    let is_view = views.any(|view| view.id.0 == id && view.updatable);
    let changes = is_view || find_table(cx, id).is_some();
    match name {
        // Bits for UPDATE and DELETE; bit 3 INSERT.
        "pg_relation_is_updatable" => int(if changes { 28 } else { 0 }),
        _ => flag(changes),
    }
}

fn find_index<'a>(cx: &CatalogCx<'a>, id: u32) -> Option<(&'a Table, &'a Index, bool)> {
    cx.database.tables.values().find_map(|table| {
        let (index, primary) = indexes(table).find(|(index, _)| index.id.0 == id)?;
        Some((&**table, index, primary))
    })
}

fn index_definition(cx: &CatalogCx<'_>, id: u32, column: i64, pretty: bool) -> Datum {
    match find_index(cx, id) {
        None => Datum::Null,
        Some((table, index, primary)) if column == 0 => {
            text(definitions::index(cx, table, (index, primary), pretty))
        }
        Some((table, index, _)) => {
            text(cx.kept_text(&definitions::index_column(table, index, column, pretty)))
        }
    }
}

fn constraint_definition(cx: &CatalogCx<'_>, id: u32, pretty: bool) -> Datum {
    let found = cx.tables().find_map(|table| {
        let is_it = |constraint: &Constraint<'_>| constraint.oid(table) == id;
        Some((table, of_table(table).find(is_it)?))
    });
    match found {
        Some((table, constraint)) => text(definitions::constraint(cx, table, constraint, pretty)),
        None => optional(domains::definition(cx, id, pretty)),
    }
}

/// The sequence that a column draws its numbers from; NULL if it has none.
fn serial_sequence(cx: &CatalogCx<'_>, table: &str, column: &str) -> Result<Datum, SqlError> {
    let id = names::regclass_in(cx, table)?;
    let Some(table) = find_table(cx, id) else {
        return Ok(Datum::Null);
    };
    if !visible(table).any(|(_, other)| other.name == column) {
        let message = format!(
            "column \"{column}\" of relation \"{}\" does not exist",
            table.name
        );
        return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
    }
    let owns = |(of, at): &(String, String)| *of == table.name && at == column;
    let mut sequences = cx.database.sequences.values();
    let sequence = sequences.find(|sequence| sequence.owned_by.as_ref().is_some_and(owns));
    Ok(optional(
        sequence.map(|sequence| cx.qualified(&sequence.name)),
    ))
}

fn user_name(cx: &CatalogCx<'_>, id: u32) -> Datum {
    let rights = &cx.catalog.rights;
    match rights.roles.contains_key(&::rights::RoleId(id)) || matches!(id, OWNER | DATABASE_OWNER) {
        true => text(cx.role_name(::rights::RoleId(id))),
        false => text(format!("unknown (OID={id})")),
    }
}

/// Whether an object is found by its name alone; NULL if there is no such object.
fn visible_object(cx: &CatalogCx<'_>, name: &str, id: u32) -> Datum {
    let known = match name {
        "pg_table_is_visible" => match all().find(|table| table.oid == id) {
            Some(table) => return flag(table.schema == "pg_catalog"),
            None => match names::relation_name(cx, id) {
                Some(full) => return flag(cx.is_visible(&full, Database::has_relation)),
                None => false,
            },
        },
        "pg_type_is_visible" => match enums::name_of(cx, id) {
            Some(full) => return flag(cx.is_visible(&full, path::has_type)),
            None => types::by_oid(id).is_some(),
        },
        "pg_function_is_visible" => match cx.routine(id) {
            Some(function) => {
                let has =
                    |database: &Database, full: &str| !database.functions_named(full).is_empty();
                return flag(cx.is_visible(&function.name, has));
            }
            None => procs::by_oid(id).is_some(),
        },
        "pg_opclass_is_visible" => {
            let mut all = fixed::OPCLASSES.iter().chain(fixed::OTHER_OPCLASSES);
            all.any(|class| class.oid == id)
        }
        "pg_collation_is_visible" => matches!(id, COLLATION | 950 | 951),
        _ => false,
    };
    if known { flag(true) } else { Datum::Null }
}

/// Whether a function needs `CatalogCx::size_bytes`.
pub fn is_size(name: &str) -> bool {
    matches!(
        name,
        "pg_table_size"
            | "pg_total_relation_size"
            | "pg_indexes_size"
            | "pg_relation_size"
            | "pg_database_size"
    )
}

/// Bytes of a relation or database; NULL until the shards have counted them.
fn size(cx: &CatalogCx<'_>, name: &str, args: &[Datum]) -> Result<Datum, SqlError> {
    let sum = |ids: &mut dyn Iterator<Item = u32>| {
        let mut known = None;
        for id in ids {
            if let Some(bytes) = (cx.size_bytes)(id) {
                *known.get_or_insert(0) += bytes;
            }
        }
        known.map_or(Datum::Null, Datum::Int)
    };
    let id = match args {
        [Datum::Text(database)] if name == "pg_database_size" => {
            match cx.catalog.databases.get(&**database) {
                Some(database) => database.id.0,
                None => {
                    let message = format!("database \"{database}\" does not exist");
                    return Err(SqlError::new(SqlState::INVALID_DATABASE, message));
                }
            }
        }
        [Datum::Int(id), ..] => u32::try_from(*id).unwrap_or(0),
        _ => return Ok(Datum::Null),
    };
    if name == "pg_database_size" {
        let database = cx
            .catalog
            .databases
            .values()
            .find(|database| database.id.0 == id);
        let tables = database
            .into_iter()
            .flat_map(|database| database.tables.values());
        return Ok(sum(&mut tables
            .flat_map(|table| table.indexes())
            .map(|index| index.id.0)));
    }
    if cx.views().any(|view| view.id.0 == id) {
        return Ok(int(0));
    }
    let Some(table) = find_table(cx, id) else {
        return Ok(sum(&mut core::iter::once(id)));
    };
    // The rows are the primary index; the secondary ones come on top.
    let secondary = || table.secondary.iter().map(|index| index.id.0);
    Ok(match name {
        "pg_indexes_size" => sum(&mut secondary()),
        "pg_total_relation_size" => {
            sum(&mut core::iter::once(table.primary.id.0).chain(secondary()))
        }
        _ => sum(&mut core::iter::once(table.primary.id.0)),
    })
}

/// A number of bytes in the unit that leaves two to five digits.
fn size_pretty(bytes: i64) -> String {
    const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    const LIMIT: u64 = 10 * 1024;
    let sign = if bytes < 0 { "-" } else { "" };
    let size = bytes.unsigned_abs();
    if size < LIMIT {
        return format!("{sign}{size} bytes");
    }
    // Halves are kept up to the end, so that rounding happens once.
    let mut halves = size >> 9;
    let mut unit = 1;
    while halves >= 2 * LIMIT - 1 && unit + 1 < UNITS.len() {
        halves >>= 10;
        unit += 1;
    }
    format!("{sign}{} {}", halves.div_ceil(2), UNITS[unit])
}

fn index_property(cx: &CatalogCx<'_>, id: u32, column: Option<i64>, property: &str) -> Datum {
    let column = column.and_then(|column| usize::try_from(column - 1).ok());
    let found = find_index(cx, id);
    let key = found.and_then(|(_, index, _)| index.columns.get(column?));
    let Some(key) = key else {
        return Datum::Null;
    };
    match property {
        "asc" => flag(!key.descending),
        "desc" => flag(key.descending),
        "nulls_first" => flag(key.nulls_first),
        "nulls_last" => flag(!key.nulls_first),
        "orderable" | "returnable" | "search_nulls" => flag(true),
        "distance_orderable" => flag(false),
        "search_array" => flag(true),
        _ => Datum::Null,
    }
}

/// `to_reg...`: the oid, NULL if there is no such thing.
///
/// # Errors
/// 42602, 42601, 0A000 for text that is no name of this database.
fn find(cx: &CatalogCx<'_>, name: &str, wanted: &str) -> Result<Datum, SqlError> {
    let found = match name {
        "to_regclass" => names::find_class(cx, wanted)?,
        "to_regtype" => enums::find(cx, wanted).or_else(|| names::find_type(wanted)),
        "to_regnamespace" => names::find_schema(cx, wanted)?,
        "to_regrole" => names::regrole_in(cx, wanted).ok(),
        _ => routines::find(cx, wanted).or_else(|| names::find_proc(wanted)),
    };
    Ok(found.map_or(Datum::Null, oid))
}

/// `text::reg...`.
fn input(cx: &CatalogCx<'_>, name: &str, wanted: &str) -> Result<u32, SqlError> {
    match name {
        "regclassin" => names::regclass_in(cx, wanted),
        "regtypein" => match enums::find(cx, wanted) {
            Some(found) => Ok(found),
            None => names::regtype_in(wanted),
        },
        "regnamespacein" => names::regnamespace_in(cx, wanted),
        "regrolein" => names::regrole_in(cx, wanted),
        "regoperin" | "regoperatorin" => names::regoper_in(wanted),
        _ => match routines::find(cx, wanted) {
            Some(found) => Ok(found),
            None => names::regproc_in(wanted),
        },
    }
}

/// `oid::reg...`.
fn output(cx: &CatalogCx<'_>, name: &str, id: u32) -> Datum {
    text(match name {
        "regclassout" => names::regclass_out(cx, id),
        "regtypeout" => enums::shown(cx, id).unwrap_or_else(|| names::regtype_out(id)),
        "regnamespaceout" => names::regnamespace_out(cx, id),
        "regroleout" => names::regrole_out(cx, id),
        "regoperout" | "regoperatorout" => id.to_string(),
        "regprocedureout" => {
            let own = routines::shown(cx, id, true);
            own.unwrap_or_else(|| names::regprocedure_out(id))
        }
        _ => routines::shown(cx, id, false).unwrap_or_else(|| names::regproc_out(id)),
    })
}

/// The names of types, with commas between them.
fn type_names(cx: &CatalogCx<'_>, oids: &Datum) -> String {
    let Datum::Array(oids) = oids else {
        return String::new();
    };
    let numbers = oids.iter().filter_map(Datum::as_int);
    let names = numbers.map(|oid| enums::type_name(cx, oid as u32, None));
    names.collect::<Vec<_>>().join(", ")
}
