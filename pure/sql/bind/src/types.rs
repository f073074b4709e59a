//! Type names of SQL text.

use super::scope::object_name;
use base::spans::{SpanField, SpanModifier};
use base::types::SECOND_DIGITS_MAX;
use base::{ArrayKind, Reg, SqlError, SqlState, Type};
use catalog::{Database, Names};
use expr::resolve::{absent_type, array_type};
use sqlparser::ast::{
    self, ArrayElemTypeDef, CharacterLength, DataType, ExactNumberInfo, ObjectName, TimezoneInfo,
};

/// A type as written: plain, or one of the names that stand for more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum NamedType {
    Plain(Type),
    /// `serial` and its like: the integer type behind it.
    Serial(Type),
    /// The number of a domain, and the type below it.
    Domain(u32, Type),
}

/// The type of a column, cast or parameter.
///
/// # Errors
/// 42704 for an unknown name, 0A000 for a type that is known but not supported, 22023 and 42601 for
/// bad modifiers.
pub fn bind_type(ty: &DataType, names: &Names<'_>) -> Result<Type, SqlError> {
    match named_type(ty, names)? {
        NamedType::Plain(ty) => Ok(ty),
        NamedType::Serial(_) => Err(undefined(&ty.to_string().to_lowercase())),
        NamedType::Domain(_, below) => {
            let what = format!("the domain {} here", ty.to_string().to_lowercase());
            Err(crate::unsupported(&what)
                .hint(format!("Name the type below it: {}.", below.name())))
        }
    }
}

/// As [`bind_type`], telling apart names that mean more than a type.
pub fn named_type(ty: &DataType, names: &Names<'_>) -> Result<NamedType, SqlError> {
    use DataType as D;
    let plain = match ty {
        D::Bool | D::Boolean => Type::Bool,
        D::Int2(None) | D::SmallInt(None) => Type::Int2,
        D::Int(None) | D::Int4(None) | D::Integer(None) => Type::Int4,
        D::Int8(None) | D::BigInt(None) => Type::Int8,
        D::Int2(Some(_)) | D::SmallInt(Some(_)) => return Err(no_modifier("int2")),
        D::Int(Some(_)) | D::Int4(Some(_)) | D::Integer(Some(_)) => {
            return Err(no_modifier("int4"));
        }
        D::Int8(Some(_)) | D::BigInt(Some(_)) => return Err(no_modifier("int8")),
        D::Real | D::Float4 => Type::Float4,
        D::Float8 | D::DoublePrecision | D::Double(ExactNumberInfo::None) => Type::Float8,
        D::Float(bits) => float(*bits)?,
        D::Numeric(modifier) | D::Decimal(modifier) | D::Dec(modifier) => numeric(modifier)?,
        D::Text => Type::Text,
        D::Varchar(length) | D::CharacterVarying(length) | D::CharVarying(length) => {
            Type::Varchar(characters(length, "varchar")?)
        }
        D::Char(length) | D::Character(length) => {
            Type::Char(characters(length, "char")?.unwrap_or(1))
        }
        D::Bytea => Type::Bytea,
        D::Date => Type::Date,
        D::Timestamp(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            Type::Timestamp(second_digits(*digits, "TIMESTAMP", "")?)
        }
        D::Timestamp(digits, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => {
            Type::Timestamptz(second_digits(*digits, "TIMESTAMP", " WITH TIME ZONE")?)
        }
        D::Time(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            Type::Time(second_digits(*digits, "TIME", "")?)
        }
        D::Time(digits, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => {
            Type::Timetz(second_digits(*digits, "TIME", " WITH TIME ZONE")?)
        }
        D::Bit(length) => Type::Bit(Some(bits(*length, "bit")?.unwrap_or(1))),
        D::BitVarying(length) | D::VarBit(length) => Type::Varbit(bits(*length, "varbit")?),
        D::Uuid => Type::Uuid,
        D::Interval => Type::Interval(None),
        D::Regclass => Type::Reg(Reg::Class),
        // The size of an array is not enforced, as in PostgreSQL.
        D::Array(ArrayElemTypeDef::SquareBracket(element, _)) => {
            let element = match named_type(element, names)? {
                NamedType::Domain(_, below) => {
                    let name = element.to_string().to_lowercase();
                    let below = below.name();
                    let error = crate::unsupported(&format!("an array of the domain {name}"));
                    return Err(error.hint(format!(
                        "Take {below}[], with a CHECK of its items: CHECK (0 < ALL (a))."
                    )));
                }
                _ => bind_type(element, names)?,
            };
            array_type(element).ok_or_else(|| unsupported(&format!("{}[]", element.name())))?
        }
        D::Custom(name, modifiers) => return by_name(ty, (name, modifiers), names),
        D::Trigger => return custom("trigger", &[]),
        D::JSON => Type::Json,
        D::JSONB => Type::Jsonb,
        other => return Err(undefined(&other.to_string().to_lowercase())),
    };
    Ok(NamedType::Plain(plain))
}

/// A type by its name: of users, or one of the system that has no word of the grammar.
fn by_name(
    ty: &DataType,
    (name, modifiers): (&ObjectName, &[String]),
    names: &Names<'_>,
) -> Result<NamedType, SqlError> {
    if name.0.len() > 2 {
        return Err(unsupported("a database in the name of a type"));
    }
    let (schema, name) = object_name(name);
    let own = of_users(names, schema.as_deref(), &name);
    let domain = own
        .as_ref()
        .and_then(|full| names.database.domains.get(full));
    if let Some(domain) = domain {
        if !modifiers.is_empty() {
            return Err(no_modifier(&name));
        }
        return Ok(NamedType::Domain(domain.id, domain.ty));
    }
    if let Some(found) = own.and_then(|full| names.database.type_named(&full)) {
        if !modifiers.is_empty() {
            return Err(no_modifier(&name));
        }
        return Ok(NamedType::Plain(found));
    }
    let system = check_schema(names, schema.as_deref(), ty).and_then(|()| custom(&name, modifiers));
    let has_rows = |database: &Database, full: &str| {
        database.table(full).is_some() || database.view(full).is_some()
    };
    match system {
        Err(error) if error.state() == SqlState::UNDEFINED_OBJECT => {
            let of_users = names.find(schema.as_deref(), &name, has_rows).is_some();
            match of_users || pg_catalog::lookup(schema.as_deref(), &name).is_some() {
                false => Err(error),
                true => Err(row_type(&name)),
            }
        }
        other => other,
    }
}

/// 0A000 for the type of the rows of a table or view.
fn row_type(name: &str) -> SqlError {
    let message = format!("the row type of \"{name}\" as a type is not supported");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        .hint("Make a type of the same columns: CREATE TYPE ... AS (...).")
}

/// The full name of a type of users.
pub(super) fn of_users(names: &Names<'_>, schema: Option<&str>, name: &str) -> Option<String> {
    match schema {
        None if Type::named(name).is_some() => None,
        schema => names.of_type(schema, name),
    }
}

/// All other types are in `pg_catalog`.
fn check_schema(names: &Names<'_>, schema: Option<&str>, ty: &DataType) -> Result<(), SqlError> {
    match schema {
        None | Some("pg_catalog") => Ok(()),
        Some(schema) if names.schema(schema).is_some() => {
            Err(undefined(&ty.to_string().to_lowercase()))
        }
        Some(schema) => {
            let message = format!("schema \"{schema}\" does not exist");
            Err(SqlError::new(SqlState::INVALID_SCHEMA, message))
        }
    }
}

fn custom(name: &str, modifiers: &[String]) -> Result<NamedType, SqlError> {
    let numbers = || {
        let numbers = modifiers.iter().map(|text| {
            text.parse::<u64>().map_err(|_| {
                let message = format!("invalid input syntax for type integer: \"{text}\"");
                SqlError::new(SqlState::INVALID_TEXT, message)
            })
        });
        numbers.collect::<Result<Vec<u64>, SqlError>>()
    };
    let length = || match *numbers()?.as_slice() {
        [] => Ok(None),
        [length] => length_of(length, name).map(Some),
        _ => Err(invalid_modifier()),
    };
    let digits = |kind, zone| match *numbers()?.as_slice() {
        [] => Ok(None),
        [digits] => second_digits(Some(digits), kind, zone),
        _ => Err(invalid_modifier()),
    };
    let plain = match name {
        "bpchar" => Type::Char(length()?.unwrap_or(0)),
        "varchar" => Type::Varchar(length()?),
        "numeric" => scaled(modifiers)?,
        "bit" | "varbit" => {
            let length = match *numbers()?.as_slice() {
                [] => None,
                [length] => bits(Some(length), name)?,
                _ => return Err(invalid_modifier()),
            };
            match name {
                "bit" => Type::Bit(length),
                _ => Type::Varbit(length),
            }
        }
        "timetz" => Type::Timetz(digits("TIME", " WITH TIME ZONE")?),
        "time" => Type::Time(digits("TIME", "")?),
        "timestamp" => Type::Timestamp(digits("TIMESTAMP", "")?),
        "interval" => Type::Interval(span_modifier(&numbers()?)?),
        "timestamptz" => Type::Timestamptz(digits("TIMESTAMP", " WITH TIME ZONE")?),
        _ if !modifiers.is_empty() => {
            unmodified(name)?;
            return Err(no_modifier(name));
        }
        _ => return unmodified(name),
    };
    Ok(NamedType::Plain(plain))
}

/// A type by its name in pg_type.
fn unmodified(name: &str) -> Result<NamedType, SqlError> {
    let plain = match name {
        "serial" | "serial4" => return Ok(NamedType::Serial(Type::Int4)),
        "bigserial" | "serial8" => return Ok(NamedType::Serial(Type::Int8)),
        "smallserial" | "serial2" => return Ok(NamedType::Serial(Type::Int2)),
        "int" | "integer" => Type::Int4,
        "bigint" => Type::Int8,
        "cid" => Type::Oid,
        "unknown" => Type::Unknown,
        "int2vector" => Type::Array(ArrayKind::Int2Vector),
        "oidvector" => Type::Array(ArrayKind::OidVector),
        other => match (Type::named(other), other.strip_prefix('_')) {
            (Some(plain), _) => plain,
            (None, Some(element)) => match custom(element, &[]) {
                Ok(NamedType::Plain(element)) => {
                    element.array_of().ok_or_else(|| undefined(name))?
                }
                Err(error) if error.state() == SqlState::FEATURE_NOT_SUPPORTED => {
                    return Err(error);
                }
                _ => return Err(undefined(name)),
            },
            (None, None) => return Err(absent_type(other).unwrap_or_else(|| undefined(name))),
        },
    };
    Ok(NamedType::Plain(plain))
}

/// The length of a bit string.
fn bits(length: Option<u64>, name: &str) -> Result<Option<u32>, SqlError> {
    const MAX: u32 = base::bits::BITS_MAX;
    let Some(length) = length else {
        return Ok(None);
    };
    match u32::try_from(length) {
        Ok(0) => Err(bad_modifier(&format!(
            "length for type {name} must be at least 1"
        ))),
        Ok(length) if length <= MAX => Ok(Some(length)),
        _ => Err(bad_modifier(&format!(
            "length for type {name} cannot exceed {MAX}"
        ))),
    }
}

/// The modifier of `INTERVAL 'text' fields(digits)`; an error that is absent: of no such fields.
pub(super) fn span_of_words(
    (first, last): (Option<&ast::DateTimeField>, Option<&ast::DateTimeField>),
    digits: Option<u64>,
) -> Result<Option<SpanModifier>, Option<SqlError>> {
    let digits = second_digits(digits, "INTERVAL", "")?;
    let field = |field: &ast::DateTimeField| match field {
        ast::DateTimeField::Year => Ok(SpanField::Year),
        ast::DateTimeField::Month => Ok(SpanField::Month),
        ast::DateTimeField::Day => Ok(SpanField::Day),
        ast::DateTimeField::Hour => Ok(SpanField::Hour),
        ast::DateTimeField::Minute => Ok(SpanField::Minute),
        ast::DateTimeField::Second => Ok(SpanField::Second),
        _ => Err(None),
    };
    let first = first.map(field).transpose()?;
    let last = last.map(field).transpose()?.or(first);
    let fields = first.zip(last);
    let modifier = SpanModifier { fields, digits };
    Ok((fields.is_some() || digits.is_some()).then_some(modifier))
}

/// The modifier of an interval: the bits of its fields, and digits of the fraction of a second.
fn span_modifier(numbers: &[u64]) -> Result<Option<SpanModifier>, SqlError> {
    let invalid = || bad_modifier("invalid INTERVAL type modifier");
    let (range, digits) = match *numbers {
        [] => return Ok(None),
        [range] => (range, None),
        [range, digits] => (range, second_digits(Some(digits), "INTERVAL", "")?),
        _ => return Err(invalid()),
    };
    let range = i32::try_from(range).map_err(|_| invalid())?;
    SpanModifier::of_bits(range, digits).ok_or_else(invalid)
}

/// Digits of a second's fraction. PostgreSQL reduces more than six with a warning.
fn second_digits(digits: Option<u64>, kind: &str, zone: &str) -> Result<Option<u8>, SqlError> {
    let max = SECOND_DIGITS_MAX;
    match digits {
        None => Ok(None),
        Some(digits) if digits <= u64::from(max) => Ok(Some(digits as u8)),
        Some(digits) => Err(bad_modifier(&format!(
            "{kind}({digits}){zone} precision must not exceed the maximum allowed, {max}"
        ))),
    }
}

fn characters(length: &Option<CharacterLength>, name: &str) -> Result<Option<u32>, SqlError> {
    match length {
        None => Ok(None),
        Some(CharacterLength::IntegerLength { length, unit: None }) => {
            length_of(*length, name).map(Some)
        }
        Some(CharacterLength::IntegerLength {
            length: _,
            unit: Some(unit),
        }) => Err(unsupported(&format!("{name} with a length in {unit}"))),
        Some(CharacterLength::Max) => Err(SqlError::new(
            SqlState::INVALID_TEXT,
            "invalid input syntax for type integer: \"max\"",
        )),
    }
}

fn length_of(length: u64, name: &str) -> Result<u32, SqlError> {
    let max = base::limits::CHARACTERS_MAX;
    let name = if name == "bpchar" { "char" } else { name };
    match u32::try_from(length) {
        Ok(length) if (1..=max).contains(&length) => Ok(length),
        Ok(0) => Err(bad_modifier(&format!(
            "length for type {name} must be at least 1"
        ))),
        _ => Err(bad_modifier(&format!(
            "length for type {name} cannot exceed {max}"
        ))),
    }
}

fn numeric(modifier: &ExactNumberInfo) -> Result<Type, SqlError> {
    let (precision, scale) = match modifier {
        ExactNumberInfo::None => return Ok(Type::Numeric(None)),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => {
            (*precision, i64::try_from(*scale).unwrap_or(i64::MAX))
        }
    };
    of_digits(i64::try_from(precision).unwrap_or(i64::MAX), scale)
}

/// `numeric` by its name, whose scale may be negative.
fn scaled(modifiers: &[String]) -> Result<Type, SqlError> {
    let numbers = modifiers.iter().map(|text| {
        text.parse::<i64>().map_err(|_| {
            let message = format!("invalid input syntax for type integer: \"{text}\"");
            SqlError::new(SqlState::INVALID_TEXT, message)
        })
    });
    match *numbers.collect::<Result<Vec<i64>, SqlError>>()?.as_slice() {
        [] => Ok(Type::Numeric(None)),
        [precision] => of_digits(precision, 0),
        [precision, scale] => of_digits(precision, scale),
        _ => Err(SqlError::new(
            SqlState::INVALID_PARAMETER,
            "invalid NUMERIC type modifier",
        )),
    }
}

fn of_digits(precision: i64, scale: i64) -> Result<Type, SqlError> {
    let max = base::limits::NUMERIC_PRECISION_MAX as i64;
    if !(1..=max).contains(&precision) {
        let message = format!("NUMERIC precision {precision} must be between 1 and {max}");
        return Err(bad_modifier(&message));
    }
    if !(-max..=max).contains(&scale) {
        let message = format!("NUMERIC scale {scale} must be between -{max} and {max}");
        return Err(bad_modifier(&message));
    }
    Ok(Type::Numeric(Some((precision as u16, scale as i16))))
}

fn float(bits: Option<u64>) -> Result<Type, SqlError> {
    match bits {
        None | Some(25..=53) => Ok(Type::Float8),
        Some(1..=24) => Ok(Type::Float4),
        Some(0) => Err(bad_modifier(
            "precision for type float must be at least 1 bit",
        )),
        Some(_) => Err(bad_modifier(
            "precision for type float must be less than 54 bits",
        )),
    }
}

fn invalid_modifier() -> SqlError {
    bad_modifier("invalid type modifier")
}

fn no_modifier(name: &str) -> SqlError {
    let message = format!("type modifier is not allowed for type \"{name}\"");
    SqlError::new(SqlState::SYNTAX, message)
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
