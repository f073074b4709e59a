//! Type names of SQL text.

use super::scope::object_name;
use base::{SqlError, SqlState, Type};
use sqlparser::ast::{ArrayElemTypeDef, CharacterLength, DataType, ExactNumberInfo, TimezoneInfo};

/// A type as written: plain, or one of the names that stand for catalog objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NamedType {
    Plain(Type),
    /// `serial` and its like: the integer type behind it.
    Serial(Type),
    /// `regclass`, `regtype`, `regproc`, `regnamespace`, ...: an oid with a name as its text.
    Registered(&'static str),
}

/// The type of a column, cast or parameter.
///
/// # Errors
/// 42704 for an unknown name, 0A000 for a type that is known but not supported, 22023 for bad
/// modifiers.
pub(crate) fn bind_type(ty: &DataType) -> Result<Type, SqlError> {
    match named_type(ty)? {
        NamedType::Plain(ty) => Ok(ty),
        NamedType::Registered(_) => Ok(Type::Oid),
        NamedType::Serial(_) => Err(undefined(&ty.to_string().to_lowercase())),
    }
}

/// As [`bind_type`], telling apart names that mean more than a type.
pub(crate) fn named_type(ty: &DataType) -> Result<NamedType, SqlError> {
    use DataType as D;
    let plain = match ty {
        D::Bool | D::Boolean => Type::Bool,
        D::Int2(_) | D::SmallInt(_) => Type::Int2,
        D::Int(_) | D::Int4(_) | D::Integer(_) => Type::Int4,
        D::Int8(_) | D::BigInt(_) => Type::Int8,
        D::Real | D::Float4 => Type::Float4,
        D::Float8 | D::DoublePrecision | D::Double(_) => Type::Float8,
        D::Float(None) => Type::Float8,
        D::Float(Some(bits)) if *bits <= 24 => Type::Float4,
        D::Float(Some(_)) => Type::Float8,
        D::Numeric(modifier) | D::Decimal(modifier) | D::Dec(modifier) => numeric(modifier)?,
        D::Text => Type::Text,
        D::Varchar(length) | D::CharacterVarying(length) | D::CharVarying(length) => {
            Type::Varchar(characters(length)?)
        }
        D::Char(length) | D::Character(length) => Type::Char(characters(length)?.unwrap_or(1)),
        D::Bytea => Type::Bytea,
        D::Date => Type::Date,
        D::Timestamp(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => Type::Timestamp,
        D::Timestamp(_, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => Type::Timestamptz,
        D::Uuid => Type::Uuid,
        D::Interval => Type::Interval,
        D::Regclass => return Ok(NamedType::Registered("regclass")),
        D::Array(
            ArrayElemTypeDef::SquareBracket(element, _) | ArrayElemTypeDef::AngleBracket(element),
        ) => {
            let element = bind_type(element)?;
            element
                .array_of()
                .ok_or_else(|| unsupported(&format!("{}[]", element.name())))?
        }
        D::Custom(name, modifiers) => return custom(&object_name(name).1, modifiers),
        D::JSON | D::JSONB | D::Time(..) | D::Bit(_) | D::BitVarying(_) | D::VarBit(_) => {
            return Err(unsupported(&ty.to_string().to_lowercase()));
        }
        other => return Err(undefined(&other.to_string().to_lowercase())),
    };
    Ok(NamedType::Plain(plain))
}

fn custom(name: &str, modifiers: &[String]) -> Result<NamedType, SqlError> {
    let length = || modifiers.first().and_then(|text| text.parse::<u32>().ok());
    let plain = match name {
        "serial" | "serial4" => return Ok(NamedType::Serial(Type::Int4)),
        "bigserial" | "serial8" => return Ok(NamedType::Serial(Type::Int8)),
        "smallserial" | "serial2" => return Ok(NamedType::Serial(Type::Int2)),
        "regclass" => return Ok(NamedType::Registered("regclass")),
        "regtype" => return Ok(NamedType::Registered("regtype")),
        "regproc" | "regprocedure" => return Ok(NamedType::Registered("regproc")),
        "regnamespace" => return Ok(NamedType::Registered("regnamespace")),
        "regrole" => return Ok(NamedType::Registered("regrole")),
        "regoper" | "regoperator" | "regconfig" | "regdictionary" => {
            return Ok(NamedType::Registered("regoper"));
        }
        "bpchar" => Type::Char(length().unwrap_or(0)),
        "varchar" => Type::Varchar(length()),
        "char" => Type::InternalChar,
        "name" => Type::Name,
        "oid" | "xid" | "cid" => Type::Oid,
        "bool" => Type::Bool,
        "int2" => Type::Int2,
        "int4" | "int" | "integer" => Type::Int4,
        "int8" | "bigint" => Type::Int8,
        "float4" => Type::Float4,
        "float8" => Type::Float8,
        "numeric" => Type::Numeric(None),
        "text" => Type::Text,
        "bytea" => Type::Bytea,
        "date" => Type::Date,
        "timestamp" => Type::Timestamp,
        "timestamptz" => Type::Timestamptz,
        "uuid" => Type::Uuid,
        "interval" => Type::Interval,
        "unknown" => Type::Unknown,
        "int2vector" => Type::Int2.array_of().expect("there are arrays of smallint"),
        "oidvector" => Type::Oid.array_of().expect("there are arrays of oid"),
        "json" | "jsonb" | "xml" | "money" | "inet" | "cidr" | "macaddr" | "point" | "time"
        | "timetz" | "bit" | "varbit" | "tsvector" | "tsquery" => return Err(unsupported(name)),
        other => match other.strip_prefix('_').map(|element| custom(element, &[])) {
            Some(Ok(NamedType::Plain(element))) => {
                element.array_of().ok_or_else(|| undefined(name))?
            }
            _ => return Err(undefined(name)),
        },
    };
    Ok(NamedType::Plain(plain))
}

fn characters(length: &Option<CharacterLength>) -> Result<Option<u32>, SqlError> {
    match length {
        None | Some(CharacterLength::Max) => Ok(None),
        Some(CharacterLength::IntegerLength { length, .. }) => {
            let max = base::limits::CHARACTERS_MAX;
            match u32::try_from(*length) {
                Ok(length) if (1..=max).contains(&length) => Ok(Some(length)),
                Ok(0) => Err(bad_modifier("length for type varchar must be at least 1")),
                _ => Err(bad_modifier(&format!(
                    "length for type varchar cannot exceed {max}"
                ))),
            }
        }
    }
}

fn numeric(modifier: &ExactNumberInfo) -> Result<Type, SqlError> {
    let (precision, scale) = match modifier {
        ExactNumberInfo::None => return Ok(Type::Numeric(None)),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let max = u64::from(base::limits::NUMERIC_DIGITS_MAX);
    if !(1..=max).contains(&precision) {
        let message = format!("NUMERIC precision {precision} must be between 1 and {max}");
        return Err(bad_modifier(&message));
    }
    if scale > precision {
        let message = format!("NUMERIC scale {scale} must be between 0 and precision {precision}");
        return Err(bad_modifier(&message));
    }
    Ok(Type::Numeric(Some((precision as u8, scale as u8))))
}

fn bad_modifier(message: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER, message)
}

fn undefined(name: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("type \"{name}\" does not exist"),
    )
}

fn unsupported(name: &str) -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("type {name} is not supported"),
    )
}
