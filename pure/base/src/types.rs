//! Column types: names, object identifiers and modifiers as PostgreSQL has them.

use alloc::format;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// A column type. The type modifier is part of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Type {
    /// `boolean`
    Bool,
    /// `smallint`
    Int2,
    /// `integer`
    Int4,
    /// `bigint`
    Int8,
    /// `real`
    Float4,
    /// `double precision`
    Float8,
    /// `numeric(precision, scale)`; `None`: any scale up to the limit of [`crate::Decimal`].
    Numeric(Option<(u8, u8)>),
    /// `text`
    Text,
    /// `varchar(n)`; `None`: no limit. In characters.
    Varchar(Option<u32>),
    /// `char(n)`, blank padded. In characters; 0: `bpchar`, no limit and no padding.
    Char(u32),
    /// `bytea`
    Bytea,
    /// `date`
    Date,
    /// `timestamp without time zone`
    Timestamp,
    /// `timestamp with time zone`
    Timestamptz,
    /// `uuid`
    Uuid,
    /// `interval`
    Interval,
    /// `name` (catalog columns)
    Name,
    /// `oid`, `regclass` and their like (catalog columns)
    Oid,
    /// `"char"` (catalog columns)
    InternalChar,
    /// One-dimensional arrays of the catalog and of parameters: element kind.
    Array(ArrayKind),
    /// A NULL or string literal whose type is still open.
    Unknown,
}

/// Element types that arrays may have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum ArrayKind {
    Bool,
    Int2,
    Int4,
    Int8,
    Text,
    Name,
    Oid,
    InternalChar,
    Float8,
    Numeric,
    Timestamptz,
    Varchar,
}

impl Type {
    /// The type's name with its modifiers, as `format_type` prints it.
    pub fn name(self) -> String {
        match self {
            Type::Numeric(Some((precision, scale))) => format!("numeric({precision},{scale})"),
            Type::Varchar(Some(n)) => format!("character varying({n})"),
            Type::Char(n) if n > 0 => format!("character({n})"),
            Type::Array(kind) => format!("{}[]", kind.element().base_name()),
            _ => String::from(self.base_name()),
        }
    }

    /// The type's name without modifiers, as error messages have it.
    pub fn base_name(self) -> &'static str {
        match self {
            Type::Bool => "boolean",
            Type::Int2 => "smallint",
            Type::Int4 => "integer",
            Type::Int8 => "bigint",
            Type::Float4 => "real",
            Type::Float8 => "double precision",
            Type::Numeric(_) => "numeric",
            Type::Text => "text",
            Type::Varchar(_) => "character varying",
            Type::Char(0) => "bpchar",
            Type::Char(_) => "character",
            Type::Bytea => "bytea",
            Type::Date => "date",
            Type::Timestamp => "timestamp without time zone",
            Type::Timestamptz => "timestamp with time zone",
            Type::Uuid => "uuid",
            Type::Interval => "interval",
            Type::Name => "name",
            Type::Oid => "oid",
            Type::InternalChar => "\"char\"",
            Type::Array(kind) => match kind {
                ArrayKind::Bool => "boolean[]",
                ArrayKind::Int2 => "smallint[]",
                ArrayKind::Int4 => "integer[]",
                ArrayKind::Int8 => "bigint[]",
                ArrayKind::Text => "text[]",
                ArrayKind::Name => "name[]",
                ArrayKind::Oid => "oid[]",
                ArrayKind::InternalChar => "\"char\"[]",
                ArrayKind::Float8 => "double precision[]",
                ArrayKind::Numeric => "numeric[]",
                ArrayKind::Timestamptz => "timestamp with time zone[]",
                ArrayKind::Varchar => "character varying[]",
            },
            Type::Unknown => "unknown",
        }
    }

    /// The type's name in pg_type (`typname`), for example `int4` or `_text`.
    pub fn catalog_name(self) -> &'static str {
        match self {
            Type::Bool => "bool",
            Type::Int2 => "int2",
            Type::Int4 => "int4",
            Type::Int8 => "int8",
            Type::Float4 => "float4",
            Type::Float8 => "float8",
            Type::Numeric(_) => "numeric",
            Type::Text => "text",
            Type::Varchar(_) => "varchar",
            Type::Char(_) => "bpchar",
            Type::Bytea => "bytea",
            Type::Date => "date",
            Type::Timestamp => "timestamp",
            Type::Timestamptz => "timestamptz",
            Type::Uuid => "uuid",
            Type::Interval => "interval",
            Type::Name => "name",
            Type::Oid => "oid",
            Type::InternalChar => "char",
            Type::Array(kind) => match kind {
                ArrayKind::Bool => "_bool",
                ArrayKind::Int2 => "_int2",
                ArrayKind::Int4 => "_int4",
                ArrayKind::Int8 => "_int8",
                ArrayKind::Text => "_text",
                ArrayKind::Name => "_name",
                ArrayKind::Oid => "_oid",
                ArrayKind::InternalChar => "_char",
                ArrayKind::Float8 => "_float8",
                ArrayKind::Numeric => "_numeric",
                ArrayKind::Timestamptz => "_timestamptz",
                ArrayKind::Varchar => "_varchar",
            },
            Type::Unknown => "unknown",
        }
    }

    /// The type's identifier in pg_type.
    pub fn oid(self) -> u32 {
        match self {
            Type::Bool => 16,
            Type::Bytea => 17,
            Type::InternalChar => 18,
            Type::Name => 19,
            Type::Int8 => 20,
            Type::Int2 => 21,
            Type::Int4 => 23,
            Type::Text => 25,
            Type::Oid => 26,
            Type::Float4 => 700,
            Type::Float8 => 701,
            Type::Unknown => 705,
            Type::Char(_) => 1042,
            Type::Varchar(_) => 1043,
            Type::Date => 1082,
            Type::Timestamp => 1114,
            Type::Timestamptz => 1184,
            Type::Interval => 1186,
            Type::Numeric(_) => 1700,
            Type::Uuid => 2950,
            Type::Array(kind) => kind.oid(),
        }
    }

    /// The type of a pg_type identifier, without modifiers; `None` if it is not supported.
    ///
    /// The `reg...` types are read as `oid`, `int2vector` and `oidvector` as arrays.
    pub fn from_oid(oid: u32) -> Option<Type> {
        Some(match oid {
            16 => Type::Bool,
            17 => Type::Bytea,
            18 => Type::InternalChar,
            19 => Type::Name,
            20 => Type::Int8,
            21 => Type::Int2,
            22 => Type::Array(ArrayKind::Int2),
            23 => Type::Int4,
            25 => Type::Text,
            24 | 26 | 2202..=2206 | 4089 | 4096 => Type::Oid,
            30 => Type::Array(ArrayKind::Oid),
            700 => Type::Float4,
            701 => Type::Float8,
            705 => Type::Unknown,
            1042 => Type::Char(0),
            1043 => Type::Varchar(None),
            1082 => Type::Date,
            1114 => Type::Timestamp,
            1184 => Type::Timestamptz,
            1186 => Type::Interval,
            1700 => Type::Numeric(None),
            2950 => Type::Uuid,
            _ => Type::Array(ArrayKind::ALL.into_iter().find(|kind| kind.oid() == oid)?),
        })
    }

    /// The type with PostgreSQL's type modifier applied; -1 is none.
    pub fn with_typmod(self, typmod: i32) -> Type {
        let modifier = u32::try_from(typmod)
            .ok()
            .and_then(|typmod| typmod.checked_sub(4));
        match (self, modifier) {
            (Type::Numeric(_), Some(bits)) => {
                let (precision, scale) = ((bits >> 16) & 0xffff, bits & 0x7ff);
                Type::Numeric(u8::try_from(precision).ok().zip(u8::try_from(scale).ok()))
            }
            (Type::Numeric(_), None) => Type::Numeric(None),
            (Type::Varchar(_), length) => Type::Varchar(length),
            (Type::Char(_), length) => Type::Char(length.unwrap_or(0)),
            (other, _) => other,
        }
    }

    /// PostgreSQL's type modifier (`atttypmod`); -1 is none.
    pub fn typmod(self) -> i32 {
        match self {
            Type::Numeric(Some((precision, scale))) => {
                (i32::from(precision) << 16 | i32::from(scale)) + 4
            }
            Type::Varchar(Some(n)) => n as i32 + 4,
            Type::Char(n) if n > 0 => n as i32 + 4,
            _ => -1,
        }
    }

    /// The type without its modifiers.
    pub fn without_modifiers(self) -> Type {
        match self {
            Type::Numeric(_) => Type::Numeric(None),
            Type::Varchar(_) => Type::Varchar(None),
            Type::Char(_) => Type::Char(0),
            other => other,
        }
    }

    /// Bytes of the type's fixed-length binary form; -1: varying, -2: zero-terminated
    /// (`typlen` of pg_type and of the row description).
    pub fn typlen(self) -> i16 {
        match self {
            Type::Bool | Type::InternalChar => 1,
            Type::Int2 => 2,
            Type::Int4 | Type::Float4 | Type::Date | Type::Oid => 4,
            Type::Int8 | Type::Float8 | Type::Timestamp | Type::Timestamptz => 8,
            Type::Uuid | Type::Interval => 16,
            Type::Name => 64,
            Type::Unknown => -2,
            Type::Numeric(_)
            | Type::Text
            | Type::Varchar(_)
            | Type::Char(_)
            | Type::Bytea
            | Type::Array(_) => -1,
        }
    }

    /// `typcategory` of pg_type.
    pub fn category(self) -> char {
        match self {
            Type::Bool => 'B',
            Type::Int2 | Type::Int4 | Type::Int8 | Type::Oid => 'N',
            Type::Float4 | Type::Float8 | Type::Numeric(_) => 'N',
            Type::Text | Type::Varchar(_) | Type::Char(_) | Type::Name => 'S',
            Type::Date | Type::Timestamp | Type::Timestamptz => 'D',
            Type::Interval => 'T',
            Type::InternalChar => 'Z',
            Type::Bytea | Type::Uuid => 'U',
            Type::Array(_) => 'A',
            Type::Unknown => 'X',
        }
    }

    /// Whether the type is `smallint`, `integer` or `bigint`.
    pub fn is_integer(self) -> bool {
        matches!(self, Type::Int2 | Type::Int4 | Type::Int8)
    }

    /// Whether the type is `real` or `double precision`.
    pub fn is_float(self) -> bool {
        matches!(self, Type::Float4 | Type::Float8)
    }

    /// Whether the type takes part in arithmetic: integers, floats and `numeric`.
    pub fn is_numeric(self) -> bool {
        self.is_integer() || self.is_float() || matches!(self, Type::Numeric(_))
    }

    /// Whether values are [`crate::Datum::Text`].
    pub fn is_text(self) -> bool {
        matches!(
            self,
            Type::Text
                | Type::Varchar(_)
                | Type::Char(_)
                | Type::Name
                | Type::InternalChar
                | Type::Unknown
        )
    }

    /// Whether the type is a date or a timestamp.
    pub fn is_datetime(self) -> bool {
        matches!(self, Type::Date | Type::Timestamp | Type::Timestamptz)
    }

    /// The type of an array's elements; `None` for other types.
    pub fn element(self) -> Option<Type> {
        match self {
            Type::Array(kind) => Some(kind.element()),
            _ => None,
        }
    }

    /// The array of this type, if there is one.
    pub fn array_of(self) -> Option<Type> {
        ArrayKind::of(self).map(Type::Array)
    }
}

impl ArrayKind {
    /// Every kind.
    pub const ALL: [ArrayKind; 12] = [
        ArrayKind::Bool,
        ArrayKind::Int2,
        ArrayKind::Int4,
        ArrayKind::Int8,
        ArrayKind::Text,
        ArrayKind::Name,
        ArrayKind::Oid,
        ArrayKind::InternalChar,
        ArrayKind::Float8,
        ArrayKind::Numeric,
        ArrayKind::Timestamptz,
        ArrayKind::Varchar,
    ];

    /// The type of the elements, without modifiers.
    pub fn element(self) -> Type {
        match self {
            ArrayKind::Bool => Type::Bool,
            ArrayKind::Int2 => Type::Int2,
            ArrayKind::Int4 => Type::Int4,
            ArrayKind::Int8 => Type::Int8,
            ArrayKind::Text => Type::Text,
            ArrayKind::Name => Type::Name,
            ArrayKind::Oid => Type::Oid,
            ArrayKind::InternalChar => Type::InternalChar,
            ArrayKind::Float8 => Type::Float8,
            ArrayKind::Numeric => Type::Numeric(None),
            ArrayKind::Timestamptz => Type::Timestamptz,
            ArrayKind::Varchar => Type::Varchar(None),
        }
    }

    /// The kind of an element type, whatever its modifiers; `None` if there is no array of it.
    pub fn of(element: Type) -> Option<ArrayKind> {
        let element = element.without_modifiers();
        ArrayKind::ALL
            .into_iter()
            .find(|kind| kind.element() == element)
    }

    fn oid(self) -> u32 {
        match self {
            ArrayKind::Bool => 1000,
            ArrayKind::InternalChar => 1002,
            ArrayKind::Name => 1003,
            ArrayKind::Int2 => 1005,
            ArrayKind::Int4 => 1007,
            ArrayKind::Text => 1009,
            ArrayKind::Varchar => 1015,
            ArrayKind::Int8 => 1016,
            ArrayKind::Float8 => 1022,
            ArrayKind::Oid => 1028,
            ArrayKind::Timestamptz => 1185,
            ArrayKind::Numeric => 1231,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain_types() -> Vec<Type> {
        let mut types = vec![
            Type::Bool,
            Type::Int2,
            Type::Int4,
            Type::Int8,
            Type::Float4,
            Type::Float8,
            Type::Numeric(None),
            Type::Text,
            Type::Varchar(None),
            Type::Char(0),
            Type::Bytea,
            Type::Date,
            Type::Timestamp,
            Type::Timestamptz,
            Type::Uuid,
            Type::Interval,
            Type::Name,
            Type::Oid,
            Type::InternalChar,
            Type::Unknown,
        ];
        types.extend(ArrayKind::ALL.map(Type::Array));
        types
    }

    #[test]
    fn oids_and_modifiers_round_trip() {
        for ty in plain_types() {
            assert_eq!(Type::from_oid(ty.oid()), Some(ty));
            assert_eq!(ty.with_typmod(ty.typmod()), ty);
            assert_eq!(ty.typmod(), -1);
        }
        for ty in [
            Type::Numeric(Some((12, 2))),
            Type::Numeric(Some((38, 38))),
            Type::Varchar(Some(1)),
            Type::Char(24),
        ] {
            assert_eq!(ty.without_modifiers().with_typmod(ty.typmod()), ty);
        }
        assert_eq!(
            Type::Numeric(Some((12, 2))).typmod(),
            786_438,
            "as PostgreSQL computes it"
        );
        assert_eq!(Type::from_oid(3802), None);
        assert_eq!(Type::from_oid(2205), Some(Type::Oid), "regclass");
    }

    #[test]
    fn names_are_those_of_format_type() {
        assert_eq!(Type::Numeric(Some((12, 2))).name(), "numeric(12,2)");
        assert_eq!(Type::Varchar(Some(16)).name(), "character varying(16)");
        assert_eq!(Type::Char(2).name(), "character(2)");
        assert_eq!(Type::Char(0).name(), "bpchar");
        assert_eq!(Type::Timestamptz.name(), "timestamp with time zone");
        for kind in ArrayKind::ALL {
            assert_eq!(Type::Array(kind).name(), Type::Array(kind).base_name());
        }
    }

    #[test]
    fn every_array_has_its_element() {
        for kind in ArrayKind::ALL {
            assert_eq!(ArrayKind::of(kind.element()), Some(kind));
        }
        assert_eq!(
            Type::Varchar(Some(3)).array_of(),
            Some(Type::Array(ArrayKind::Varchar))
        );
        assert_eq!(Type::Date.array_of(), None);
    }
}
