//! Schema changes: statements to catalog commands and work over existing rows.

mod absent;
mod actions;
mod added;
mod alter;
mod class;
mod default;
mod deferral;
mod domains;
mod enums;
mod generated;
mod identity;
mod indexed;
mod like;
mod names;
mod policies;
mod rekey;
mod relations;
mod retype;
mod rights;
mod routines;
mod schemas;
mod shown;
pub(crate) mod stored;
mod table;
pub(crate) mod table_as;
mod temporary;
mod unique;
mod view;

use crate::plan::{DdlPlan, Fill};
use base::full_name::beside;
use base::{IndexId, SqlError, SqlState, Type};
use bind::scope::{check_database, check_reserved, object_name};
use bind::{Binder, unsupported};
use catalog::{
    Command, Execution, Index, IndexColumn, ProtocolKind, Sequence, Subject, Switching, Table,
};
use parse::{Comment, DatabaseOptions, Kind, Lifetime};
use pg_catalog::names::qualified;
use sqlparser::ast::{self, ObjectType, SequenceOptions};

/// Plans a schema change.
///
/// # Errors
/// Those of names and types; 0A000 for changes of later releases. Conflicts with other objects are
/// found when the catalog applies the commands.
pub(crate) fn plan(kind: &Kind, binder: &mut Binder<'_>) -> Result<DdlPlan, SqlError> {
    match kind {
        Kind::CreateTable(statement) => table::create(statement, binder),
        Kind::AlterTable(statement) => alter::plan(statement, binder),
        Kind::CreateIndex(statement) => indexed::create_index(statement, binder),
        Kind::CreateDatabase { name, options } => create_database(name, options),
        Kind::CreateView(_) | Kind::DropViews(_) | Kind::RenameView(_) => view::plan(kind, binder),
        Kind::Stored(statement) => stored::plan(statement, binder),
        Kind::Enum(statement) => enums::plan(statement, binder),
        Kind::Domain(statement) => domains::plan(statement, binder),
        Kind::Routine(statement) => routines::plan(statement, binder),
        Kind::AlterDatabase { name, protocol } => alter_database(name, protocol),
        Kind::AlterRelation(altered) => relations::plan(altered, binder),
        Kind::Rights(statement) => {
            let command = Command::Rights {
                database: binder.cx.database.name.clone(),
                change: rights::named(&statement.change, binder)?,
            };
            Ok(simple(statement.tag, vec![command]))
        }
        Kind::Absent(absent) => absent::plan(absent, binder),
        Kind::Policy(statement) => policies::plan(statement, binder),
        Kind::Schema(statement) => schemas::plan(statement, binder),
        Kind::Comment(comment) => Ok(simple("COMMENT", vec![comment_on(comment, binder)?])),
        Kind::DropDatabase { name, if_exists } => drop_database(name, *if_exists, binder),
        Kind::Sql(ast) => match ast.as_ref() {
            ast::Statement::Drop {
                object_type,
                if_exists,
                names,
                cascade,
                // The default.
                restrict: _,
                purge,
                temporary,
            } => {
                binder.no(*purge, "PURGE")?;
                binder.no(*temporary, "TEMPORARY")?;
                drop_objects(*object_type, *if_exists, names, *cascade, binder)
            }
            other => create_sequence(other, binder),
        },
        _ => unreachable!("the planner sends only schema changes here"),
    }
}

/// CREATE SEQUENCE, also with an owner.
///
/// # Errors
/// 0A000 for other statements.
fn create_sequence(statement: &ast::Statement, binder: &Binder<'_>) -> Result<DdlPlan, SqlError> {
    let ast::Statement::CreateSequence {
        if_not_exists,
        name,
        sequence_options,
        temporary,
        data_type,
        owned_by,
    } = statement
    else {
        let text = statement.to_string();
        let words: Vec<&str> = text.split_whitespace().take(2).collect();
        return Err(unsupported(&words.join(" ")));
    };
    let lifetime = Lifetime {
        temporary: *temporary,
        on_commit: None,
    };
    let owner = match owned_by {
        Some(owner) if !is_none(owner) => Some(relations::owner(owner, binder)?),
        _ => None,
    };
    let ty = match data_type {
        None => Type::Int8,
        Some(ty) => bind::types::bind_type(ty, &binder.names())?,
    };
    let name = temporary::new_name(name, lifetime, binder)?;
    let temporary = temporary::noted(&name, lifetime)?;
    let sequence = Sequence {
        owned_by: owner,
        ..sequence(name, ty, sequence_options)?
    };
    let command = Command::CreateSequence {
        database: binder.cx.database.name.clone(),
        sequence,
        if_not_exists: *if_not_exists,
    };
    Ok(DdlPlan {
        temporary,
        ..simple("CREATE SEQUENCE", vec![command])
    })
}

fn drop_database(name: &str, if_exists: bool, binder: &Binder<'_>) -> Result<DdlPlan, SqlError> {
    if name == binder.cx.database.name {
        let message = "cannot drop the currently open database";
        return Err(SqlError::new(SqlState::OBJECT_IN_USE, message));
    }
    let command = Command::DropDatabase {
        name: name.to_string(),
        if_exists,
    };
    Ok(simple("DROP DATABASE", vec![command]))
}

/// OWNED BY NONE
fn is_none(name: &ast::ObjectName) -> bool {
    name.0.len() == 1 && object_name(name).1 == "none"
}

fn comment_on(comment: &Comment, binder: &Binder<'_>) -> Result<Command, SqlError> {
    let Comment {
        database,
        subject,
        text,
    } = comment;
    let own = &binder.cx.database.name;
    Ok(Command::Comment {
        database: database.as_ref().unwrap_or(own).clone(),
        subject: match subject {
            Subject::Database | Subject::Schema(_) | Subject::Function(_) => subject.clone(),
            Subject::Relation(kind, name) => {
                Subject::Relation(kind.clone(), written(name, binder)?)
            }
            Subject::Column(relation, name) => {
                Subject::Column(written(relation, binder)?, name.clone())
            }
            Subject::Constraint(table, name) => {
                Subject::Constraint(written(table, binder)?, name.clone())
            }
            Subject::Type(kind, name) => {
                Subject::Type(kind.clone(), domains::commented(kind, name, binder)?)
            }
        },
        text: text.clone(),
    })
}

/// The full name of a relation that is to be changed, as it is written.
fn written(text: &str, binder: &Binder<'_>) -> Result<String, SqlError> {
    let parts = pg_catalog::names::parts(text)?;
    let (schema, name) = qualified(&binder.cx.database.name, parts)?;
    binder.changed_name(schema.as_deref(), &name)
}

/// A change that is done when the catalog is.
fn simple(tag: &'static str, before: Vec<Command>) -> DdlPlan {
    DdlPlan {
        tag,
        before,
        fill: None,
        after: Vec::new(),
        undo: Vec::new(),
        notices: Vec::new(),
        temporary: None,
    }
}

/// The full name of a relation that is to be changed.
fn own_name(name: &ast::ObjectName, binder: &Binder<'_>) -> Result<String, SqlError> {
    check_reserved(name)?;
    check_database(&binder.cx.database.name, name)?;
    let (schema, name) = object_name(name);
    binder.changed_name(schema.as_deref(), &name)
}

/// Another name for a relation, which stays in its schema.
fn other_name(name: &ast::ObjectName, binder: &Binder<'_>) -> Result<String, SqlError> {
    check_reserved(name)?;
    check_database(&binder.cx.database.name, name)?;
    Ok(object_name(name).1)
}

fn create_database(name: &str, options: &DatabaseOptions) -> Result<DdlPlan, SqlError> {
    let protocol = protocol(options.protocol.as_deref().unwrap_or("two_phase"))?;
    let execution = match options.execution.as_deref() {
        None | Some("interleaved") => Execution::Interleaved,
        Some("serial") => Execution::Serial,
        Some(other) => return Err(unknown("execution", other, "interleaved, serial")),
    };
    if protocol != ProtocolKind::TwoPhase && execution == Execution::Serial {
        let text = format!("execution \"serial\" of protocol {}", protocol.name());
        return Err(unsupported(&text).hint("Only two_phase databases execute serially."));
    }
    let command = Command::CreateDatabase {
        name: name.to_string(),
        protocol,
        execution,
        if_not_exists: options.if_not_exists,
    };
    let mut commands = vec![command];
    if let Some(limit) = options.connection_limit.filter(|limit| *limit >= 0) {
        if options.if_not_exists {
            return Err(unsupported("IF NOT EXISTS with CONNECTION LIMIT")
                .hint("Use ALTER DATABASE ... CONNECTION LIMIT."));
        }
        commands.push(Command::Rights {
            database: name.to_string(),
            change: ::rights::Change::ConnectionLimit {
                database: name.to_string(),
                limit,
            },
        });
    }
    Ok(simple("CREATE DATABASE", commands))
}

/// Closes the database, brings its rows home, and opens it under the other protocol.
fn alter_database(name: &str, text: &str) -> Result<DdlPlan, SqlError> {
    let protocol = protocol(text)?;
    let database = name.to_string();
    let switch = |switching| Command::Switch {
        database: database.clone(),
        protocol,
        switching,
    };
    let before = vec![
        switch(Some(Switching::Draining)),
        switch(Some(Switching::Gathering)),
        Command::SetProtocol {
            database: database.clone(),
            protocol,
        },
        switch(None),
    ];
    Ok(DdlPlan {
        undo: vec![switch(None)],
        ..simple("ALTER DATABASE", before)
    })
}

fn unknown(what: &str, value: &str, known: &str) -> SqlError {
    let text = format!("unrecognized {what} \"{value}\"");
    SqlError::new(SqlState::INVALID_PARAMETER, text).hint(format!("Available: {known}."))
}

fn protocol(text: &str) -> Result<ProtocolKind, SqlError> {
    if let Some(known) = ProtocolKind::of_name(text) {
        return Ok(known);
    }
    if matches!(text, "formula" | "epoch") {
        return Err(unsupported(&format!("protocol {text}")));
    }
    let names: Vec<&str> = ProtocolKind::ALL.map(ProtocolKind::name).into();
    Err(unknown("protocol", text, &names.join(", ")))
}

/// A column of a table by name.
///
/// # Errors
/// 42703.
fn key_column(table: &Table, name: &str) -> Result<u16, SqlError> {
    match table.column(name).filter(|(_, column)| !column.hidden) {
        Some((place, _)) => Ok(place),
        None => {
            let message = format!("column \"{name}\" does not exist");
            Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message))
        }
    }
}

/// An index of a command; the catalog completes it.
fn index(name: String, columns: Vec<IndexColumn>, unique: bool, constraint: bool) -> Index {
    Index {
        id: IndexId(0),
        name,
        columns,
        unique,
        constraint,
        slot_columns: Vec::new(),
        predicate: None,
        included: Vec::new(),
        classes: Vec::new(),
        nulls_equal: false,
        building: false,
        deferral: catalog::Deferral::Never,
        of_key: false,
    }
}

/// A new index, filled from the rows that are there.
fn build_index(
    tag: &'static str,
    database: &str,
    table: &str,
    index: Index,
    if_not_exists: bool,
) -> DdlPlan {
    let name = index.name.clone();
    let (database, table) = (database.to_string(), table.to_string());
    let table_name = table.clone();
    DdlPlan {
        tag,
        before: vec![Command::CreateIndex {
            database: database.clone(),
            table: table.clone(),
            index,
            if_not_exists,
        }],
        fill: Some(Fill::Index {
            table: table.clone(),
            index: name.clone(),
        }),
        after: vec![Command::FinishIndex {
            database: database.clone(),
            table,
            index: name.clone(),
        }],
        undo: vec![Command::DropIndex {
            database,
            names: vec![beside(&table_name, &name)],
            if_exists: true,
        }],
        notices: Vec::new(),
        temporary: None,
    }
}

/// A sequence with PostgreSQL's defaults for its type.
fn sequence(name: String, ty: Type, options: &[SequenceOptions]) -> Result<Sequence, SqlError> {
    let (type_min, type_max) = match ty {
        Type::Int2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Type::Int4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        Type::Int8 => (i64::MIN, i64::MAX),
        _ => {
            let message = "sequence type must be smallint, integer, or bigint";
            return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
        }
    };
    let (mut increment, mut start, mut min, mut max) = (1, None, None, None);
    let mut cycle = false;
    for option in options {
        match option {
            SequenceOptions::IncrementBy(value, _) => increment = integer(value)?,
            SequenceOptions::MinValue(value) => min = value.as_ref().map(integer).transpose()?,
            SequenceOptions::MaxValue(value) => max = value.as_ref().map(integer).transpose()?,
            SequenceOptions::StartWith(value, _) => start = Some(integer(value)?),
            // Shards draw blocks of numbers whatever the size of the cache.
            SequenceOptions::Cache(_) => {}
            SequenceOptions::Cycle(no) => cycle = !no,
        }
    }
    let ascending = increment > 0;
    let min = min.unwrap_or(if ascending { 1 } else { type_min });
    let max = max.unwrap_or(if ascending { type_max } else { -1 });
    let start = start.unwrap_or(if ascending { min } else { max });
    Ok(Sequence {
        id: IndexId(0),
        name,
        ty,
        start,
        first: None,
        increment,
        min,
        max,
        cycle,
        owned_by: None,
    })
}

fn integer(ast: &ast::Expr) -> Result<i64, SqlError> {
    let text = ast.to_string().replace(' ', "");
    text.parse().map_err(|_| {
        let message = format!("invalid value \"{text}\" of a sequence option");
        SqlError::new(SqlState::INVALID_PARAMETER, message)
    })
}

fn drop_objects(
    object: ObjectType,
    if_exists: bool,
    names: &[ast::ObjectName],
    cascade: bool,
    binder: &mut Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    let names = names.iter().map(|name| own_name(name, binder));
    let (names, missing) = there(names, if_exists)?;
    let database = binder.cx.database.name.clone();
    let plan = match object {
        ObjectType::Table => simple(
            "DROP TABLE",
            vec![Command::DropTable {
                database,
                names,
                if_exists,
                cascade,
            }],
        ),
        ObjectType::Index => simple(
            "DROP INDEX",
            vec![
                Command::RetireIndex {
                    database: database.clone(),
                    names: names.clone(),
                    if_exists,
                },
                Command::DropIndex {
                    database,
                    names,
                    if_exists,
                },
            ],
        ),
        ObjectType::Sequence => simple(
            "DROP SEQUENCE",
            vec![Command::DropSequence {
                database,
                names,
                if_exists,
                cascade,
            }],
        ),
        other => return Err(unsupported(&format!("DROP {other}"))),
    };
    Ok(with_notices(plan, missing))
}

/// The names that DROP gives and the notices about those in schemas that are not there: with IF
/// EXISTS nothing is in such a schema.
fn there(
    names: impl Iterator<Item = Result<String, SqlError>>,
    if_exists: bool,
) -> Result<(Vec<String>, Vec<String>), SqlError> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for name in names {
        match name {
            Err(error) if if_exists && error.state() == SqlState::INVALID_SCHEMA => {
                missing.push(format!("{}, skipping", error.fields().message));
            }
            other => found.push(other?),
        }
    }
    Ok((found, missing))
}

/// A change IF EXISTS of what is not there, which `error` says.
fn skipped(tag: &'static str, error: &SqlError) -> DdlPlan {
    let notice = format!("{}, skipping", error.fields().message);
    with_notices(simple(tag, Vec::new()), vec![notice])
}

/// A DROP with what is to be told of it.
fn with_notices(plan: DdlPlan, notices: Vec<String>) -> DdlPlan {
    DdlPlan { notices, ..plan }
}
