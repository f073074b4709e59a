//! Operator classes of index columns. An index has one order for each type; a class that asks for
//! that order changes nothing, and others are refused.

use base::{SqlError, SqlState, Type};
use catalog::{Database, Table};
use parse::OperatorClass;
use pg_catalog::names::known_schema;

/// The classes of PostgreSQL 15 for `btree`.
const CLASSES: &str = " array_ops bit_ops bool_ops bpchar_ops bpchar_pattern_ops bytea_ops \
     char_ops cidr_ops date_ops enum_ops float4_ops float8_ops inet_ops int2_ops int4_ops int8_ops \
     interval_ops jsonb_ops macaddr8_ops macaddr_ops money_ops multirange_ops name_ops numeric_ops \
     oid_ops oidvector_ops pg_lsn_ops range_ops record_image_ops record_ops text_ops \
     text_pattern_ops tid_ops time_ops timestamp_ops timestamptz_ops timetz_ops tsquery_ops \
     tsvector_ops uuid_ops varbit_ops varchar_ops varchar_pattern_ops xid8_ops ";

/// Checks the class of a column of `table`.
///
/// # Errors
/// 42704 if there is no such class, 42804 if it is of another type, 0A000 if its order is another
/// than that of the index.
pub(super) fn check(
    database: &Database,
    table: &Table,
    column: u16,
    class: &OperatorClass,
) -> Result<(), SqlError> {
    let OperatorClass { schema, name } = class;
    if let Some(schema) = schema
        && schema != "pg_catalog"
    {
        known_schema(database, Some(schema))?;
        return Err(unknown(&format!("{schema}.{name}")));
    }
    if name.contains(' ') || !CLASSES.contains(&format!(" {name} ")) {
        return Err(unknown(name));
    }
    let ty = table.columns[usize::from(column)].ty;
    let own: &[&str] = match ty {
        Type::Bool => &["bool_ops"],
        Type::Int2 => &["int2_ops"],
        Type::Int4 => &["int4_ops"],
        Type::Int8 => &["int8_ops"],
        Type::Float4 => &["float4_ops"],
        Type::Float8 => &["float8_ops"],
        Type::Numeric(_) => &["numeric_ops"],
        // All text is compared by its bytes, so the pattern's order is the only one.
        Type::Text | Type::Varchar(_) => &[
            "text_ops",
            "varchar_ops",
            "text_pattern_ops",
            "varchar_pattern_ops",
        ],
        Type::Char(_) => &["bpchar_ops", "bpchar_pattern_ops"],
        Type::Bytea => &["bytea_ops"],
        Type::Date => &["date_ops"],
        Type::Time(_) => &["time_ops"],
        Type::Timetz(_) => &["timetz_ops"],
        Type::Bit(_) | Type::Varbit(_) => &["bit_ops", "varbit_ops"],
        Type::Timestamp(_) => &["timestamp_ops"],
        Type::Timestamptz(_) => &["timestamptz_ops"],
        Type::Uuid => &["uuid_ops"],
        Type::Macaddr => &["macaddr_ops"],
        Type::Inet | Type::Cidr => &["inet_ops", "cidr_ops"],
        Type::Interval(_) => &["interval_ops"],
        Type::Name => &["name_ops"],
        Type::Oid => &["oid_ops"],
        Type::Jsonb => &["jsonb_ops"],
        Type::Enum(_) => &["enum_ops"],
        Type::Composite(_) => &["record_ops"],
        Type::Range(_) => &["range_ops"],
        Type::Multirange(_) => &["multirange_ops"],
        _ => &[],
    };
    if own.contains(&&**name) {
        return Ok(());
    }
    // PostgreSQL takes text as what is padded with blanks, which are not compared then.
    if matches!(ty, Type::Text | Type::Varchar(_)) && name.starts_with("bpchar_") {
        let message = format!(
            "operator class \"{name}\" for type {} is not supported",
            ty.name()
        );
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let message = format!(
        "operator class \"{name}\" does not accept data type {}",
        ty.base_name()
    );
    Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message))
}

/// Whether an index of this type has the class without being told.
pub(super) fn is_default(ty: Type, class: &str) -> bool {
    match ty {
        Type::Text | Type::Varchar(_) => class == "text_ops",
        Type::Char(_) => class == "bpchar_ops",
        Type::Inet | Type::Cidr => class == "inet_ops",
        Type::Bit(_) => class == "bit_ops",
        Type::Varbit(_) => class == "varbit_ops",
        _ => true,
    }
}

/// Refuses a type whose values have no order: no index can have them.
///
/// # Errors
/// 42704.
pub(super) fn check_ordered(ty: Type) -> Result<(), SqlError> {
    if !matches!(ty.element().unwrap_or(ty), Type::Json | Type::JsonPath) {
        return Ok(());
    }
    let message = format!(
        "data type {} has no default operator class for access method \"btree\"",
        ty.name()
    );
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message).hint(
        "You must specify an operator class for the index or define a default operator class for \
         the data type.",
    ))
}

fn unknown(name: &str) -> SqlError {
    let message = format!("operator class \"{name}\" does not exist for access method \"btree\"");
    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
}
