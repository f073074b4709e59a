//! Column types: names, object identifiers and modifiers as PostgreSQL has them.

use alloc::format;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// Digits of the fraction of a second that timestamps keep.
pub const SECOND_DIGITS_MAX: u8 = 6;

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
    /// `timestamp(p) without time zone`; `None`: microseconds. Digits of the fraction of a second.
    Timestamp(Option<u8>),
    /// `timestamp(p) with time zone`; as `Timestamp`.
    Timestamptz(Option<u8>),
    /// `uuid`
    Uuid,
    /// `interval`
    Interval,
    /// `name` (catalog columns)
    Name,
    /// `oid` (catalog columns)
    Oid,
    /// `"char"` (catalog columns)
    InternalChar,
    /// One-dimensional arrays: element kind.
    Array(ArrayKind),
    /// A NULL or string literal whose type is still open.
    Unknown,
    /// `regclass` and its like: an oid whose text form is the name of what it stands for.
    Reg(Reg),
    /// `xid` (the system column `xmin`): equal or not, without an order.
    Xid,
    /// `tid` (the system column `ctid`): the hidden number of a row.
    Tid,
}

/// What the oid of a `reg...` type stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Reg {
    /// `regclass`: a table, index or sequence.
    Class,
    /// `regtype`
    Type,
    /// `regproc`: a function by its name alone.
    Proc,
    /// `regprocedure`: a function with its argument types.
    Procedure,
    /// `regnamespace`: a schema.
    Namespace,
    /// `regrole`
    Role,
}

impl Reg {
    /// Every kind.
    pub const ALL: [Reg; 6] = [
        Reg::Class,
        Reg::Type,
        Reg::Proc,
        Reg::Procedure,
        Reg::Namespace,
        Reg::Role,
    ];

    /// The type's name, its array's, and their identifiers in pg_type.
    fn facts(self) -> (&'static str, &'static str, &'static str, u32, u32) {
        match self {
            Reg::Class => ("regclass", "regclass[]", "_regclass", 2205, 2210),
            Reg::Type => ("regtype", "regtype[]", "_regtype", 2206, 2211),
            Reg::Proc => ("regproc", "regproc[]", "_regproc", 24, 1008),
            Reg::Procedure => (
                "regprocedure",
                "regprocedure[]",
                "_regprocedure",
                2202,
                2207,
            ),
            Reg::Namespace => (
                "regnamespace",
                "regnamespace[]",
                "_regnamespace",
                4089,
                4090,
            ),
            Reg::Role => ("regrole", "regrole[]", "_regrole", 4096, 4097),
        }
    }

    /// The type's name.
    pub fn name(self) -> &'static str {
        self.facts().0
    }
}

/// Element types that arrays may have, with the modifier that each element obeys.
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
    Numeric(Option<(u8, u8)>),
    Timestamptz(Option<u8>),
    Varchar(Option<u32>),
    Float4,
    Char(u32),
    Bytea,
    Date,
    Timestamp(Option<u8>),
    Uuid,
    Interval,
    Reg(Reg),
    Xid,
    Tid,
}

impl Type {
    /// The types that columns of users have, without modifiers and arrays.
    pub const SCALARS: [Type; 16] = [
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
        Type::Timestamp(None),
        Type::Timestamptz(None),
        Type::Uuid,
        Type::Interval,
    ];

    /// The type's name with its modifiers, as `format_type` prints it.
    pub fn name(self) -> String {
        match self {
            Type::Numeric(Some((precision, scale))) => format!("numeric({precision},{scale})"),
            Type::Varchar(Some(n)) => format!("character varying({n})"),
            Type::Char(n) if n > 0 => format!("character({n})"),
            Type::Timestamp(Some(p)) => format!("timestamp({p}) without time zone"),
            Type::Timestamptz(Some(p)) => format!("timestamp({p}) with time zone"),
            Type::Array(kind) if self.typmod() != -1 => format!("{}[]", kind.element().name()),
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
            Type::Timestamp(_) => "timestamp without time zone",
            Type::Timestamptz(_) => "timestamp with time zone",
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
                ArrayKind::Numeric(_) => "numeric[]",
                ArrayKind::Timestamptz(_) => "timestamp with time zone[]",
                ArrayKind::Varchar(_) => "character varying[]",
                ArrayKind::Float4 => "real[]",
                ArrayKind::Char(_) => "character[]",
                ArrayKind::Bytea => "bytea[]",
                ArrayKind::Date => "date[]",
                ArrayKind::Timestamp(_) => "timestamp without time zone[]",
                ArrayKind::Uuid => "uuid[]",
                ArrayKind::Interval => "interval[]",
                ArrayKind::Reg(reg) => reg.facts().1,
                ArrayKind::Xid => "xid[]",
                ArrayKind::Tid => "tid[]",
            },
            Type::Unknown => "unknown",
            Type::Reg(reg) => reg.name(),
            Type::Xid => "xid",
            Type::Tid => "tid",
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
            Type::Timestamp(_) => "timestamp",
            Type::Timestamptz(_) => "timestamptz",
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
                ArrayKind::Numeric(_) => "_numeric",
                ArrayKind::Timestamptz(_) => "_timestamptz",
                ArrayKind::Varchar(_) => "_varchar",
                ArrayKind::Float4 => "_float4",
                ArrayKind::Char(_) => "_bpchar",
                ArrayKind::Bytea => "_bytea",
                ArrayKind::Date => "_date",
                ArrayKind::Timestamp(_) => "_timestamp",
                ArrayKind::Uuid => "_uuid",
                ArrayKind::Interval => "_interval",
                ArrayKind::Reg(reg) => reg.facts().2,
                ArrayKind::Xid => "_xid",
                ArrayKind::Tid => "_tid",
            },
            Type::Unknown => "unknown",
            Type::Reg(reg) => reg.name(),
            Type::Xid => "xid",
            Type::Tid => "tid",
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
            Type::Timestamp(_) => 1114,
            Type::Timestamptz(_) => 1184,
            Type::Interval => 1186,
            Type::Numeric(_) => 1700,
            Type::Uuid => 2950,
            Type::Array(kind) => kind.oid(),
            Type::Reg(reg) => reg.facts().3,
            Type::Tid => 27,
            Type::Xid => 28,
        }
    }

    /// The type of a pg_type identifier, without modifiers; `None` if it is not supported.
    ///
    /// `int2vector` and `oidvector` are read as arrays.
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
            26 => Type::Oid,
            27 => Type::Tid,
            28 => Type::Xid,
            30 => Type::Array(ArrayKind::Oid),
            700 => Type::Float4,
            701 => Type::Float8,
            705 => Type::Unknown,
            1042 => Type::Char(0),
            1043 => Type::Varchar(None),
            1082 => Type::Date,
            1114 => Type::Timestamp(None),
            1184 => Type::Timestamptz(None),
            1186 => Type::Interval,
            1700 => Type::Numeric(None),
            2950 => Type::Uuid,
            _ => match Reg::ALL.into_iter().find(|reg| reg.facts().3 == oid) {
                Some(reg) => Type::Reg(reg),
                None => Type::Array(ArrayKind::ALL.into_iter().find(|kind| kind.oid() == oid)?),
            },
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
            (Type::Timestamp(_), _) => Type::Timestamp(second_digits(typmod)),
            (Type::Timestamptz(_), _) => Type::Timestamptz(second_digits(typmod)),
            (Type::Array(kind), _) => {
                let element = kind.element().with_typmod(typmod);
                Type::Array(ArrayKind::of(element).unwrap_or(kind))
            }
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
            Type::Timestamp(Some(p)) | Type::Timestamptz(Some(p)) => i32::from(p),
            Type::Array(kind) => kind.element().typmod(),
            _ => -1,
        }
    }

    /// The type without its modifiers.
    pub fn without_modifiers(self) -> Type {
        match self {
            Type::Numeric(_) => Type::Numeric(None),
            Type::Varchar(_) => Type::Varchar(None),
            Type::Char(_) => Type::Char(0),
            Type::Timestamp(_) => Type::Timestamp(None),
            Type::Timestamptz(_) => Type::Timestamptz(None),
            Type::Array(kind) => Type::Array(kind.without_modifiers()),
            other => other,
        }
    }

    /// Bytes of the type's fixed-length binary form; -1: varying, -2: zero-terminated
    /// (`typlen` of pg_type and of the row description).
    pub fn typlen(self) -> i16 {
        match self {
            Type::Bool | Type::InternalChar => 1,
            Type::Int2 => 2,
            Type::Int4 | Type::Float4 | Type::Date | Type::Oid | Type::Reg(_) | Type::Xid => 4,
            Type::Tid => 6,
            Type::Int8 | Type::Float8 | Type::Timestamp(_) | Type::Timestamptz(_) => 8,
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
            Type::Int2 | Type::Int4 | Type::Int8 | Type::Oid | Type::Reg(_) => 'N',
            Type::Float4 | Type::Float8 | Type::Numeric(_) => 'N',
            Type::Text | Type::Varchar(_) | Type::Char(_) | Type::Name => 'S',
            Type::Date | Type::Timestamp(_) | Type::Timestamptz(_) => 'D',
            Type::Interval => 'T',
            Type::InternalChar => 'Z',
            Type::Bytea | Type::Uuid | Type::Xid | Type::Tid => 'U',
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
        matches!(self, Type::Date | Type::Timestamp(_) | Type::Timestamptz(_))
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
    /// Every kind, without modifiers.
    pub const ALL: [ArrayKind; 27] = [
        ArrayKind::Bool,
        ArrayKind::Int2,
        ArrayKind::Int4,
        ArrayKind::Int8,
        ArrayKind::Text,
        ArrayKind::Name,
        ArrayKind::Oid,
        ArrayKind::InternalChar,
        ArrayKind::Float8,
        ArrayKind::Numeric(None),
        ArrayKind::Timestamptz(None),
        ArrayKind::Varchar(None),
        ArrayKind::Float4,
        ArrayKind::Char(0),
        ArrayKind::Bytea,
        ArrayKind::Date,
        ArrayKind::Timestamp(None),
        ArrayKind::Uuid,
        ArrayKind::Interval,
        ArrayKind::Reg(Reg::Class),
        ArrayKind::Reg(Reg::Type),
        ArrayKind::Reg(Reg::Proc),
        ArrayKind::Reg(Reg::Procedure),
        ArrayKind::Reg(Reg::Namespace),
        ArrayKind::Reg(Reg::Role),
        ArrayKind::Xid,
        ArrayKind::Tid,
    ];

    /// The type of the elements, with modifier.
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
            ArrayKind::Float4 => Type::Float4,
            ArrayKind::Float8 => Type::Float8,
            ArrayKind::Numeric(modifiers) => Type::Numeric(modifiers),
            ArrayKind::Timestamp(digits) => Type::Timestamp(digits),
            ArrayKind::Timestamptz(digits) => Type::Timestamptz(digits),
            ArrayKind::Varchar(length) => Type::Varchar(length),
            ArrayKind::Char(length) => Type::Char(length),
            ArrayKind::Bytea => Type::Bytea,
            ArrayKind::Date => Type::Date,
            ArrayKind::Uuid => Type::Uuid,
            ArrayKind::Interval => Type::Interval,
            ArrayKind::Reg(reg) => Type::Reg(reg),
            ArrayKind::Xid => Type::Xid,
            ArrayKind::Tid => Type::Tid,
        }
    }

    /// The kind of an element type, with its modifier; `None` if there is no array of it.
    pub fn of(element: Type) -> Option<ArrayKind> {
        Some(match element {
            Type::Bool => ArrayKind::Bool,
            Type::Int2 => ArrayKind::Int2,
            Type::Int4 => ArrayKind::Int4,
            Type::Int8 => ArrayKind::Int8,
            Type::Float4 => ArrayKind::Float4,
            Type::Float8 => ArrayKind::Float8,
            Type::Numeric(modifiers) => ArrayKind::Numeric(modifiers),
            Type::Text => ArrayKind::Text,
            Type::Varchar(length) => ArrayKind::Varchar(length),
            Type::Char(length) => ArrayKind::Char(length),
            Type::Bytea => ArrayKind::Bytea,
            Type::Date => ArrayKind::Date,
            Type::Timestamp(digits) => ArrayKind::Timestamp(digits),
            Type::Timestamptz(digits) => ArrayKind::Timestamptz(digits),
            Type::Uuid => ArrayKind::Uuid,
            Type::Interval => ArrayKind::Interval,
            Type::Name => ArrayKind::Name,
            Type::Oid => ArrayKind::Oid,
            Type::InternalChar => ArrayKind::InternalChar,
            Type::Reg(reg) => ArrayKind::Reg(reg),
            Type::Xid => ArrayKind::Xid,
            Type::Tid => ArrayKind::Tid,
            Type::Array(_) | Type::Unknown => return None,
        })
    }

    fn without_modifiers(self) -> ArrayKind {
        ArrayKind::of(self.element().without_modifiers()).unwrap_or(self)
    }

    fn oid(self) -> u32 {
        match self {
            ArrayKind::Bool => 1000,
            ArrayKind::Bytea => 1001,
            ArrayKind::InternalChar => 1002,
            ArrayKind::Name => 1003,
            ArrayKind::Int2 => 1005,
            ArrayKind::Int4 => 1007,
            ArrayKind::Text => 1009,
            ArrayKind::Char(_) => 1014,
            ArrayKind::Varchar(_) => 1015,
            ArrayKind::Int8 => 1016,
            ArrayKind::Float4 => 1021,
            ArrayKind::Float8 => 1022,
            ArrayKind::Oid => 1028,
            ArrayKind::Timestamp(_) => 1115,
            ArrayKind::Date => 1182,
            ArrayKind::Timestamptz(_) => 1185,
            ArrayKind::Interval => 1187,
            ArrayKind::Numeric(_) => 1231,
            ArrayKind::Uuid => 2951,
            ArrayKind::Reg(reg) => reg.facts().4,
            ArrayKind::Tid => 1010,
            ArrayKind::Xid => 1011,
        }
    }
}

/// The modifier of a timestamp: digits of a second's fraction.
fn second_digits(typmod: i32) -> Option<u8> {
    let digits = u8::try_from(typmod).ok()?;
    (digits <= SECOND_DIGITS_MAX).then_some(digits)
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
            Type::Timestamp(None),
            Type::Timestamptz(None),
            Type::Uuid,
            Type::Interval,
            Type::Name,
            Type::Oid,
            Type::InternalChar,
            Type::Unknown,
            Type::Xid,
            Type::Tid,
        ];
        types.extend(Reg::ALL.map(Type::Reg));
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
            Type::Timestamp(Some(0)),
            Type::Timestamptz(Some(6)),
            Type::Array(ArrayKind::Varchar(Some(3))),
            Type::Array(ArrayKind::Timestamp(Some(2))),
        ] {
            assert_eq!(ty.without_modifiers().with_typmod(ty.typmod()), ty);
        }
        assert_eq!(
            Type::Numeric(Some((12, 2))).typmod(),
            786_438,
            "as PostgreSQL computes it"
        );
        assert_eq!(Type::from_oid(3802), None);
        assert_eq!(Type::from_oid(2205), Some(Type::Reg(Reg::Class)));
    }

    #[test]
    fn names_are_those_of_format_type() {
        assert_eq!(Type::Numeric(Some((12, 2))).name(), "numeric(12,2)");
        assert_eq!(Type::Varchar(Some(16)).name(), "character varying(16)");
        assert_eq!(Type::Char(2).name(), "character(2)");
        assert_eq!(Type::Char(0).name(), "bpchar");
        assert_eq!(Type::Timestamptz(None).name(), "timestamp with time zone");
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
            Some(Type::Array(ArrayKind::Varchar(Some(3))))
        );
        assert_eq!(Type::Array(ArrayKind::Date).array_of(), None);
    }
}
