//! CREATE TABLE.

use super::default::default_text;
use super::deferral::deferral;
use super::unique::{Key, Unique};
use super::{class, generated, index, key_column, like, sequence, simple, temporary};
use crate::plan::DdlPlan;
use base::full_name;
use base::{SqlError, SqlState, TableId, Type};
use bind::scope::{check_database, ident, object_name};
use bind::types::{NamedType, named_type};
use bind::{Binder, unsupported};
use catalog::{
    Action, Check, Column, Command, Deferral, ForeignKey, Identity, IndexColumn, Sequence, Table,
    Validity,
};
use expr::resolve::{self, Context};
use parse::{Marks, TableStatement};
use sqlparser::ast::{
    self, ColumnOption, GeneratedAs, HiveDistributionStyle, HiveFormat, KeyOrIndexDisplay,
    NullsDistinctOption, ReferentialAction, SequenceOptions, TableConstraint,
};

/// What is known of a table while its definition is read.
pub(super) struct Definition {
    pub(super) table: Table,
    pub(super) sequences: Vec<Sequence>,
    /// Primary key.
    pub(super) primary: Option<Key>,
    pub(super) uniques: Vec<Unique>,
    pub(super) foreign: Vec<Foreign>,
    pub(super) checks: Vec<(String, ast::Expr)>,
    /// Expressions of generated columns, by their names.
    pub(super) generated: Vec<(String, ast::Expr)>,
    /// Indexes of a table that this one is like.
    pub(super) indexes: Vec<like::LikeIndex>,
}

impl Definition {
    /// Of a table without anything.
    fn of(table: Table) -> Definition {
        Definition {
            table,
            sequences: Vec::new(),
            primary: None,
            uniques: Vec::new(),
            foreign: Vec::new(),
            checks: Vec::new(),
            generated: Vec::new(),
            indexes: Vec::new(),
        }
    }

    /// Adds a sequence that belongs to a column.
    pub(super) fn own(&mut self, sequence: Sequence, column: &str) {
        self.sequences.push(Sequence {
            owned_by: Some((self.table.name.clone(), column.to_string())),
            ..sequence
        });
    }
}

/// A foreign key as written.
pub(super) struct Foreign {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    pub(super) parent: ast::ObjectName,
    pub(super) parent_columns: Vec<String>,
    pub(super) on_delete: Option<ReferentialAction>,
    pub(super) on_update: Option<ReferentialAction>,
    pub(super) match_full: bool,
    pub(super) deferral: Deferral,
}

/// Makes the columns the primary key of a table.
fn key_rows_by(table: &mut Table, key: Key) -> Result<(), SqlError> {
    let columns = key_columns(table, &key.columns)?;
    for key in &columns {
        table.columns[usize::from(key.column)].not_null = true;
    }
    if key.deferral == Deferral::Never {
        table.primary = index(key.name.clone(), columns, true, true);
        table.primary_constraint = Some(key.name);
        return Ok(());
    }
    let unique = key.over_numbers();
    let index = unique.index(table, unique.name.clone())?;
    table.secondary.push(index);
    Ok(())
}

/// What is told of storage parameters.
pub(super) fn without_effect(parameters: &[String]) -> Vec<String> {
    let told = parameters.iter();
    told.map(|name| format!("storage parameter \"{name}\" has no effect"))
        .collect()
}

pub(super) fn create(
    statement: &TableStatement,
    binder: &mut Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    let TableStatement {
        table,
        partition,
        replicated,
        idle,
        lifetime,
        marks,
        likes: _,
    } = statement;
    let Written {
        name,
        if_not_exists,
        columns,
        constraints,
    } = written(table, binder)?;
    let name = temporary::new_name(name, *lifetime, binder)?;
    let temporary = temporary::noted(&name, *lifetime)?;
    let mut definition = Definition::of(empty_table(name.clone(), *replicated));
    add_columns(&mut definition, columns, statement, binder)?;
    for constraint in constraints {
        add_constraint(&mut definition, constraint, marks, binder)?;
    }
    let Definition {
        mut table,
        sequences,
        primary,
        uniques,
        foreign,
        checks,
        generated,
        indexes,
    } = definition;
    generated::add(&mut table, &generated, binder)?;
    if let Some(key) = primary {
        key_rows_by(&mut table, key)?;
    }
    add_indexes(&mut table, uniques, indexes)?;
    for name in partition {
        let column = key_column(&table, name)?;
        generated::check_partition(table.column_at(column))?;
        table.partition.push(column);
    }
    add_checks(&mut table, checks, binder)?;
    for key in foreign {
        table.foreign_keys.push(foreign_key(&table, &key, binder)?);
    }
    let command = Command::CreateTable {
        database: binder.cx.database.name.clone(),
        table,
        sequences,
        if_not_exists,
    };
    Ok(DdlPlan {
        temporary,
        notices: without_effect(idle),
        ..simple("CREATE TABLE", vec![command])
    })
}

fn add_indexes(
    table: &mut Table,
    uniques: Vec<Unique>,
    indexes: Vec<like::LikeIndex>,
) -> Result<(), SqlError> {
    for unique in uniques {
        let index = unique.index(table, unique.name.clone())?;
        table.secondary.push(index);
    }
    like::add_copies(table, indexes)
}

/// The columns in their order, those of other tables among them.
fn add_columns(
    definition: &mut Definition,
    columns: &[ast::ColumnDef],
    statement: &TableStatement,
    binder: &mut Binder<'_>,
) -> Result<(), SqlError> {
    // A new table has no rows, so NOT VALID says nothing about it.
    let TableStatement { marks, likes, .. } = statement;
    for (i, column) in columns.iter().enumerate() {
        for like in likes.iter().filter(|like| like.place == i) {
            like::add(definition, like, binder)?;
        }
        add_column(definition, column, marks, binder)?;
    }
    for like in likes.iter().filter(|like| like.place >= columns.len()) {
        like::add(definition, like, binder)?;
    }
    Ok(())
}

fn add_checks(
    table: &mut Table,
    checks: Vec<(String, ast::Expr)>,
    binder: &mut Binder<'_>,
) -> Result<(), SqlError> {
    for (name, check) in checks {
        let expression = super::shown::new_check_text(table, &check, binder)?;
        table.checks.push(Check {
            name,
            expression,
            validity: Validity::Valid,
        });
    }
    Ok(())
}

/// What a CREATE TABLE says in PostgreSQL's grammar.
struct Written<'a> {
    name: &'a ast::ObjectName,
    if_not_exists: bool,
    columns: &'a [ast::ColumnDef],
    constraints: &'a [TableConstraint],
}

/// Refuses the clauses of other databases.
fn written<'a>(table: &'a ast::CreateTable, binder: &Binder<'_>) -> Result<Written<'a>, SqlError> {
    let ast::CreateTable {
        or_replace,
        temporary,
        external,
        global,
        if_not_exists,
        transient,
        volatile,
        iceberg,
        name,
        columns,
        constraints,
        hive_distribution,
        hive_formats,
        table_properties,
        with_options,
        file_format,
        location,
        query,
        without_rowid,
        like,
        clone,
        engine,
        comment,
        auto_increment_offset,
        default_charset,
        collation,
        on_commit,
        on_cluster,
        primary_key,
        order_by,
        partition_by,
        cluster_by,
        clustered_by,
        options,
        strict,
        copy_grants,
        enable_schema_evolution,
        change_tracking,
        data_retention_time_in_days,
        max_data_extension_time_in_days,
        default_ddl_collation,
        with_aggregation_policy,
        with_row_access_policy,
        with_tags,
        external_volume,
        base_location,
        catalog,
        catalog_sync,
        storage_serialization_policy,
    } = table;
    if query.is_some() {
        return Err(unsupported("CREATE TABLE AS"));
    }
    if like.is_some() {
        return Err(unsupported("CREATE TABLE ... LIKE"));
    }
    // The library makes an empty one where there is none.
    let formats = hive_formats.as_ref().is_some_and(|formats| {
        let HiveFormat {
            row_format,
            serde_properties,
            storage,
            location,
        } = formats;
        row_format.is_some()
            || serde_properties.is_some()
            || storage.is_some()
            || location.is_some()
    });
    for (there, word) in [
        (*or_replace, "REPLACE"),
        (*temporary || global.is_some(), "TEMPORARY"),
        (on_commit.is_some(), "ON"),
        (*external, "EXTERNAL"),
        (*transient, "TRANSIENT"),
        (*volatile, "VOLATILE"),
        (*iceberg, "ICEBERG"),
        (
            *hive_distribution != HiveDistributionStyle::NONE,
            "PARTITIONED",
        ),
        (formats, "STORED"),
        (!table_properties.is_empty(), "TBLPROPERTIES"),
        (!with_options.is_empty(), "WITH"),
        (file_format.is_some(), "STORED"),
        (location.is_some(), "LOCATION"),
        (*without_rowid, "ROWID"),
        (clone.is_some(), "CLONE"),
        (engine.is_some(), "ENGINE"),
        (comment.is_some(), "COMMENT"),
        (auto_increment_offset.is_some(), "AUTO_INCREMENT"),
        (default_charset.is_some(), "CHARSET"),
        (collation.is_some(), "COLLATE"),
        (on_cluster.is_some(), "ON"),
        (primary_key.is_some(), "PRIMARY"),
        (order_by.is_some(), "ORDER"),
        (partition_by.is_some(), "PARTITION"),
        (cluster_by.is_some() || clustered_by.is_some(), "CLUSTER"),
        (options.is_some(), "OPTIONS"),
        (*strict, "STRICT"),
        (*copy_grants, "COPY"),
        (enable_schema_evolution.is_some(), "ENABLE_SCHEMA_EVOLUTION"),
        (change_tracking.is_some(), "CHANGE_TRACKING"),
        (
            data_retention_time_in_days.is_some(),
            "DATA_RETENTION_TIME_IN_DAYS",
        ),
        (
            max_data_extension_time_in_days.is_some(),
            "MAX_DATA_EXTENSION_TIME_IN_DAYS",
        ),
        (default_ddl_collation.is_some(), "DEFAULT_DDL_COLLATION"),
        (with_aggregation_policy.is_some(), "AGGREGATION"),
        (with_row_access_policy.is_some(), "ROW"),
        (with_tags.is_some(), "TAG"),
        (external_volume.is_some(), "EXTERNAL_VOLUME"),
        (base_location.is_some(), "BASE_LOCATION"),
        (catalog.is_some() || catalog_sync.is_some(), "CATALOG"),
        (
            storage_serialization_policy.is_some(),
            "STORAGE_SERIALIZATION_POLICY",
        ),
    ] {
        binder.no(there, word)?;
    }
    Ok(Written {
        name,
        if_not_exists: *if_not_exists,
        columns,
        constraints,
    })
}

pub(super) fn empty_table(name: String, replicated: bool) -> Table {
    Table {
        id: TableId(0),
        name,
        changed: 0,
        columns: Vec::new(),
        primary: index(String::new(), Vec::new(), true, false),
        primary_constraint: None,
        secondary: Vec::new(),
        partition: Vec::new(),
        replicated,
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        frozen: false,
    }
}

pub(super) fn key_columns(table: &Table, names: &[String]) -> Result<Vec<IndexColumn>, SqlError> {
    names
        .iter()
        .map(|name| match key_column(table, name) {
            Ok(column) => {
                class::check_ordered(table.columns[usize::from(column)].ty)?;
                Ok(IndexColumn {
                    column,
                    descending: false,
                    nulls_first: false,
                })
            }
            Err(_) => {
                let message = format!("column \"{name}\" named in key does not exist");
                Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message))
            }
        })
        .collect()
}

/// Rows are read where no catalog is: names for the oids of `reg...` types would be missing there.
/// What xid and tid tell of a row, they tell only while it is read.
pub(super) fn check_storable(name: &str, ty: Type) -> Result<(), SqlError> {
    match ty.element().unwrap_or(ty) {
        Type::Reg(_) | Type::Xid | Type::Tid => {
            Err(unsupported(&format!("a column of type {}", ty.name())))
        }
        Type::Unknown | Type::Composite(base::record::ANONYMOUS) => {
            let message = format!("column \"{name}\" has pseudo-type {}", ty.base_name());
            Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message))
        }
        _ => Ok(()),
    }
}

pub(super) fn identity_kind(written: &GeneratedAs) -> Result<Identity, SqlError> {
    match written {
        GeneratedAs::Always => Ok(Identity::Always),
        GeneratedAs::ByDefault => Ok(Identity::ByDefault),
        GeneratedAs::ExpStored => Err(unsupported("a generated column")),
    }
}

/// The sequence that numbers an identity column.
pub(super) fn identity_sequence(
    ty: Type,
    options: Option<&[SequenceOptions]>,
) -> Result<Sequence, SqlError> {
    sequence(String::new(), ty, options.unwrap_or(&[])).map_err(|error| {
        if ty.is_integer() {
            return error;
        }
        let message = "identity column type must be smallint, integer, or bigint";
        SqlError::new(SqlState::INVALID_PARAMETER, message)
    })
}

/// 42601: a `serial` column has a default already, what its sequence gives.
fn second_default(definition: &Definition, column: &Column) -> SqlError {
    let message = format!(
        "multiple default values specified for column \"{}\" of table \"{}\"",
        column.name, definition.table.name
    );
    SqlError::new(SqlState::SYNTAX, message)
}

/// What an option says of its column and of the table.
fn add_option(
    definition: &mut Definition,
    column: &mut Column,
    (constraint, option): (String, &ColumnOption),
    serial: bool,
    marks: &Marks,
    binder: &mut Binder<'_>,
) -> Result<(), SqlError> {
    match option {
        ColumnOption::Null => {}
        ColumnOption::NotNull => column.not_null = true,
        ColumnOption::Default(value) => {
            if serial {
                return Err(second_default(definition, column));
            }
            column.default = Some(default_text(column, value, binder)?);
        }
        ColumnOption::Unique {
            is_primary,
            characteristics,
        } => {
            let key = Key::of_column(constraint, column, deferral(characteristics, binder)?);
            match is_primary {
                true => set_primary(definition, key)?,
                false => definition.uniques.push(key.unique()),
            }
        }
        ColumnOption::ForeignKey {
            foreign_table,
            referred_columns,
            on_delete,
            on_update,
            characteristics,
        } => {
            let deferral = deferral(characteristics, binder)?;
            definition.foreign.push(Foreign {
                deferral,
                name: constraint,
                columns: vec![column.name.clone()],
                parent: foreign_table.clone(),
                parent_columns: referred_columns.iter().map(ident).collect(),
                on_delete: *on_delete,
                on_update: *on_update,
                match_full: marks.is_full(foreign_table),
            });
        }
        ColumnOption::Check(check) => definition.checks.push((constraint, check.clone())),
        ColumnOption::Collation(name) => {
            column.collation = binder.column_collation(column.ty, name)?;
        }
        ColumnOption::Generated {
            generated_as,
            sequence_options,
            generation_expr,
            generation_expr_mode,
            generated_keyword,
        } => {
            binder.no(!generated_keyword, "AS")?;
            let expr = (generation_expr.as_ref(), generation_expr_mode.as_ref());
            if !generated::add_option(definition, column, expr)? {
                column.identity = Some(identity_kind(generated_as)?);
                let drawn = identity_sequence(column.ty, sequence_options.as_deref())?;
                definition.own(drawn, &column.name);
                column.not_null = true;
            }
        }
        other => return Err(unsupported(&format!("the column option {other}"))),
    }
    Ok(())
}

pub(super) fn add_column(
    definition: &mut Definition,
    ast: &ast::ColumnDef,
    marks: &Marks,
    binder: &mut Binder<'_>,
) -> Result<(), SqlError> {
    let ast::ColumnDef {
        name,
        data_type,
        options,
    } = ast;
    let nulls_equal = marks.has_equal_nulls(name);
    let uniques = definition.uniques.len();
    let name = binder.relation_name(name)?;
    let (ty, serial, domain) = match named_type(data_type, &binder.names())? {
        NamedType::Plain(ty) => (ty, false, None),
        NamedType::Serial(ty) => (ty, true, None),
        NamedType::Domain(id, ty) => (ty, false, Some(id)),
    };
    check_storable(&name, ty)?;
    let mut column = Column {
        not_null: serial,
        domain,
        ..Column::new(&name, ty)
    };
    if serial {
        let drawn = sequence(String::new(), ty, &[])?;
        definition.own(drawn, &name);
    }
    for ast::ColumnOptionDef {
        name: constraint,
        option,
    } in options
    {
        let constraint = constraint.as_ref().map_or_else(String::new, ident);
        add_option(
            definition,
            &mut column,
            (constraint, option),
            serial,
            marks,
            binder,
        )?;
    }
    if definition.generated.iter().any(|(own, _)| *own == name) {
        generated::check_alone(&definition.table.name, &column, serial)?;
    }
    for unique in &mut definition.uniques[uniques..] {
        unique.nulls_equal = nulls_equal;
    }
    definition.table.columns.push(column);
    Ok(())
}

pub(super) fn set_primary(definition: &mut Definition, key: Key) -> Result<(), SqlError> {
    match definition.primary.replace(key) {
        Some(_) => Err(definition.table.second_key()),
        None => Ok(()),
    }
}

/// A table constraint as written: its name, if it has one, and its parts.
pub(super) enum Constraint {
    Primary(Key),
    Unique(Unique),
    Foreign(Foreign),
    Check(Option<String>, Box<ast::Expr>),
}

/// Reads a table constraint.
pub(super) fn constraint_of(
    constraint: &TableConstraint,
    marks: &Marks,
    binder: &Binder<'_>,
) -> Result<Constraint, SqlError> {
    let named = |name: &Option<ast::Ident>| name.as_ref().map(ident);
    let idents = |names: &[ast::Ident]| names.iter().map(ident).collect::<Vec<_>>();
    Ok(match constraint {
        TableConstraint::PrimaryKey {
            name,
            index_name,
            index_type,
            columns,
            index_options,
            characteristics,
        } => {
            binder.no(index_name.is_some() || index_type.is_some(), "KEY")?;
            binder.no(!index_options.is_empty(), "USING")?;
            Constraint::Primary(Key {
                name: named(name).unwrap_or_default(),
                columns: idents(columns),
                deferral: deferral(characteristics, binder)?,
            })
        }
        TableConstraint::Unique {
            name,
            index_name,
            index_type_display,
            index_type,
            columns,
            index_options,
            characteristics,
            nulls_distinct,
        } => {
            let plain = *index_type_display == KeyOrIndexDisplay::None;
            binder.no(index_name.is_some() || !plain, "UNIQUE")?;
            binder.no(index_type.is_some() || !index_options.is_empty(), "USING")?;
            let deferral = deferral(characteristics, binder)?;
            let name = named(name).unwrap_or_default();
            Constraint::Unique(Unique {
                nulls_equal: matches!(nulls_distinct, NullsDistinctOption::NotDistinct),
                ..Unique::new(name, idents(columns), deferral)
            })
        }
        TableConstraint::ForeignKey {
            name,
            columns,
            foreign_table,
            referred_columns,
            on_delete,
            on_update,
            characteristics,
        } => {
            let deferral = deferral(characteristics, binder)?;
            Constraint::Foreign(Foreign {
                deferral,
                name: named(name).unwrap_or_default(),
                columns: idents(columns),
                parent: foreign_table.clone(),
                parent_columns: idents(referred_columns),
                on_delete: *on_delete,
                on_update: *on_update,
                match_full: marks.is_full(foreign_table),
            })
        }
        TableConstraint::Check { name, expr } => Constraint::Check(named(name), expr.clone()),
        other => return Err(unsupported(&format!("the constraint {other}"))),
    })
}

fn add_constraint(
    definition: &mut Definition,
    constraint: &TableConstraint,
    marks: &Marks,
    binder: &Binder<'_>,
) -> Result<(), SqlError> {
    match constraint_of(constraint, marks, binder)? {
        Constraint::Primary(key) => set_primary(definition, key)?,
        Constraint::Unique(unique) => definition.uniques.push(unique),
        Constraint::Foreign(key) => definition.foreign.push(key),
        Constraint::Check(name, expr) => definition.checks.push((name.unwrap_or_default(), *expr)),
    }
    Ok(())
}

fn action(action: Option<ReferentialAction>) -> Action {
    match action {
        None | Some(ReferentialAction::NoAction) => Action::NoAction,
        Some(ReferentialAction::Restrict) => Action::Restrict,
        Some(ReferentialAction::Cascade) => Action::Cascade,
        Some(ReferentialAction::SetNull) => Action::SetNull,
        Some(ReferentialAction::SetDefault) => Action::SetDefault,
    }
}

/// # Errors
/// 42804 for a column that cannot refer to the other one.
pub(super) fn check_refers(constraint: &str, own: &Column, other: &Column) -> Result<(), SqlError> {
    match can_refer(own.ty, other.ty) {
        true => Ok(()),
        false => Err(catalog::cannot_refer(constraint, own, other)),
    }
}

/// Whether a column of type `own` can refer to one of type `other`: both compare as one family of
/// types, or the first becomes the second by itself.
fn can_refer(own: Type, other: Type) -> bool {
    let family = |ty: Type| match ty {
        Type::Int2 | Type::Int4 | Type::Int8 => 1,
        Type::Text | Type::Varchar(_) | Type::Name => 2,
        Type::Date | Type::Timestamp(_) | Type::Timestamptz(_) => 3,
        Type::Float4 | Type::Float8 => 4,
        _ => 0,
    };
    (family(own) > 0 && family(own) == family(other))
        || resolve::can_coerce(own, other, Context::Implicit)
}

/// Columns that a foreign key names, of either table.
fn foreign_columns(table: &Table, names: &[String]) -> Result<Vec<u16>, SqlError> {
    let column = |name: &String| {
        key_column(table, name).map_err(|_| {
            let message =
                format!("column \"{name}\" referenced in foreign key constraint does not exist");
            SqlError::new(SqlState::UNDEFINED_COLUMN, message)
        })
    };
    names.iter().map(column).collect()
}

/// The full name of the table that a foreign key of `table` names; empty if there is none.
fn parent_of(table: &Table, schema: Option<&str>, name: &str, binder: &Binder<'_>) -> String {
    if let Some(full) = binder.own_relation(schema, name) {
        return full;
    }
    // The table may be new; then nothing of its name is in its schema yet.
    let of_schema = schema.and_then(|schema| binder.cx.database.schema(schema));
    let first = of_schema.or_else(|| binder.names().first().ok());
    let is_new = first == Some(full_name::schema_of(&table.name));
    match is_new && name == full_name::own(&table.name) {
        true => table.name.clone(),
        false => String::new(),
    }
}

/// Whether a foreign key of a table refers to the table itself.
pub(super) fn refers_to_itself(table: &Table, key: &Foreign, binder: &Binder<'_>) -> bool {
    let (schema, name) = object_name(&key.parent);
    parent_of(table, schema.as_deref(), &name, binder) == table.name
}

/// The catalog's form of a foreign key of `table`.
pub(super) fn foreign_key(
    table: &Table,
    key: &Foreign,
    binder: &Binder<'_>,
) -> Result<ForeignKey, SqlError> {
    let columns = foreign_columns(table, &key.columns)?;
    let is_generated = |name: &str| {
        let found = table.column(name);
        found.is_some_and(|(_, column)| column.generated.is_some())
    };
    generated::check_actions(&is_generated, key)?;
    check_database(&binder.cx.database.name, &key.parent)?;
    let (schema, parent_name) = object_name(&key.parent);
    let parent_full = parent_of(table, schema.as_deref(), &parent_name, binder);
    let itself = parent_full == table.name;
    let found;
    let parent: &Table = if itself {
        table
    } else {
        if binder.find_view(schema.as_deref(), &parent_name).is_some() {
            let message = format!("referenced relation \"{parent_name}\" is not a table");
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        found = binder.find_table(&key.parent)?;
        &found
    };
    let parent_columns = foreign_columns(parent, &key.parent_columns)?;
    let of_key = parent.primary.columns.iter().map(|key| key.column);
    let referenced: Vec<u16> = match parent_columns.is_empty() {
        true if parent.primary_constraint.is_some() => of_key.collect(),
        _ => parent_columns.clone(),
    };
    for (own, other) in columns.iter().zip(&referenced) {
        let (own, other) = (table.column_at(*own), parent.column_at(*other));
        let name = match key.name.is_empty() {
            true => {
                let table = full_name::own(&table.name);
                format!("{table}_{}_fkey", key.columns.join("_"))
            }
            false => key.name.clone(),
        };
        check_refers(&name, own, other)?;
    }
    Ok(ForeignKey {
        name: key.name.clone(),
        columns,
        parent: parent_full,
        parent_columns,
        on_delete: action(key.on_delete),
        on_update: action(key.on_update),
        match_full: key.match_full,
        validity: Validity::Valid,
        deferral: key.deferral,
        child_off: false,
        parent_off: false,
    })
}
