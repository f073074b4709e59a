//! Column types: names, object identifiers and modifiers as PostgreSQL has them.

use crate::record::{ACL_ROW, ANONYMOUS};
use crate::spans::SpanModifier;
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// The oid of `record[]`.
const ANONYMOUS_ARRAY: u32 = 2287;

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
    /// `numeric(precision, scale)`; `None`: any number.
    Numeric(Option<(u16, i16)>),
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
    /// `interval fields(p)`; `None`: everything.
    Interval(Option<SpanModifier>),
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
    /// `json`: values are [`crate::Datum::Text`], without equality and order.
    Json,
    /// `jsonb`
    Jsonb,
    /// An enum type of a user, by its oid. Values are [`crate::Datum::Int`]: the place of the label
    /// in the order of the type. The catalog has the labels and the name.
    Enum(u32),
    /// `time(p) without time zone`; as `Timestamp`.
    Time(Option<u8>),
    /// `inet`
    Inet,
    /// `cidr`: values are [`crate::Datum::Inet`] without bits behind their mask.
    Cidr,
    /// `macaddr`
    Macaddr,
    /// `time(p) with time zone`; as `Timestamp`.
    Timetz(Option<u8>),
    /// `bit(n)`; `None`: any length, which only values that are made have.
    Bit(Option<u32>),
    /// `bit varying(n)`; `None`: no limit.
    Varbit(Option<u32>),
    /// `jsonpath`: values are [`crate::Datum::Text`] in their normal form, without equality and
    /// order.
    JsonPath,
    /// A composite type of a user, by its oid, or `record` ([`crate::record::ANONYMOUS`]). Values
    /// are [`crate::Datum::Record`].
    Composite(u32),
    /// `int4range` and its like: values are [`crate::Datum::Range`].
    Range(RangeKind),
    /// `int4multirange` and its like: values are [`crate::Datum::Multirange`].
    Multirange(RangeKind),
}

/// What pg_type says of a type, whatever its modifiers, and of the array of the type.
struct Facts {
    /// Name as error messages have it.
    name: &'static str,
    array_name: &'static str,
    /// `typname`
    catalog_name: &'static str,
    array_catalog_name: &'static str,
    oid: u32,
    array_oid: u32,
    /// `typlen`
    length: i16,
    /// `typcategory`
    category: char,
}

macro_rules! facts {
    ($name:literal $catalog_name:literal $oid:literal $array_oid:literal $length:literal
        $category:literal) => {
        Facts {
            name: $name,
            array_name: concat!($name, "[]"),
            catalog_name: $catalog_name,
            array_catalog_name: concat!("_", $catalog_name),
            oid: $oid,
            array_oid: $array_oid,
            length: $length,
            category: $category,
        }
    };
}

/// A row per type of which there are arrays: its modifier with the value that means none, name,
/// `typname`, oid, oid of the array, `typlen`, `typcategory`. The `reg...` types and ranges are not
/// listed.
macro_rules! elements {
    ($($ty:ident $(($modifier:ident = $none:expr))?: $($fact:literal)+;)*) => {
        /// The listed types, without modifiers.
        const ELEMENTS: &[Type] = &[$(Type::$ty $(($none))?),*];

        impl Type {
            /// For an array those of its elements.
            fn facts(self) -> &'static Facts {
                match self {
                    $(Type::$ty { .. } => &facts!($($fact)+),)*
                    Type::Reg(reg) => reg.facts(),
                    Type::Range(kind) => kind.facts(),
                    Type::Multirange(kind) => kind.multirange_facts(),
                    Type::Enum(_) => &facts!("anyenum" "anyenum" 0 0 4 'E'),
                    Type::Composite(_) => &facts!("record" "record" 2249 2287 -1 'C'),
                    Type::Unknown => &facts!("unknown" "unknown" 705 0 -2 'X'),
                    Type::Array(kind) => kind.element().facts(),
                }
            }
        }

        impl ArrayKind {
            /// The type of the elements, with modifier.
            pub fn element(self) -> Type {
                match self {
                    $(ArrayKind::$ty $(($modifier))? => Type::$ty $(($modifier))?,)*
                    ArrayKind::Reg(reg) => Type::Reg(reg),
                    ArrayKind::Enum(id) => Type::Enum(id),
                    ArrayKind::Composite(id) => Type::Composite(id),
                    ArrayKind::Range(kind) => Type::Range(kind),
                    ArrayKind::Multirange(kind) => Type::Multirange(kind),
                    ArrayKind::Int2Vector => Type::Int2,
                    ArrayKind::OidVector => Type::Oid,
                }
            }

            /// The kind of an element type, with its modifier; `None` if there is no array of it.
            pub fn of(element: Type) -> Option<ArrayKind> {
                Some(match element {
                    $(Type::$ty $(($modifier))? => ArrayKind::$ty $(($modifier))?,)*
                    Type::Reg(reg) => ArrayKind::Reg(reg),
                    Type::Enum(id) => ArrayKind::Enum(id),
                    Type::Composite(id) => ArrayKind::Composite(id),
                    Type::Range(kind) => ArrayKind::Range(kind),
                    Type::Multirange(kind) => ArrayKind::Multirange(kind),
                    Type::Array(_) | Type::Unknown => return None,
                })
            }
        }
    };
}

elements! {
    Bool: "boolean" "bool" 16 1000 1 'B';
    Json: "json" "json" 114 199 -1 'U';
    Jsonb: "jsonb" "jsonb" 3802 3807 -1 'U';
    Bytea: "bytea" "bytea" 17 1001 -1 'U';
    Cidr: "cidr" "cidr" 650 651 -1 'I';
    Inet: "inet" "inet" 869 1041 -1 'I';
    Macaddr: "macaddr" "macaddr" 829 1040 6 'U';
    InternalChar: "\"char\"" "char" 18 1002 1 'Z';
    Name: "name" "name" 19 1003 64 'S';
    Int8: "bigint" "int8" 20 1016 8 'N';
    Int2: "smallint" "int2" 21 1005 2 'N';
    Int4: "integer" "int4" 23 1007 4 'N';
    Text: "text" "text" 25 1009 -1 'S';
    Oid: "oid" "oid" 26 1028 4 'N';
    Tid: "tid" "tid" 27 1010 6 'U';
    Xid: "xid" "xid" 28 1011 4 'U';
    Float4: "real" "float4" 700 1021 4 'N';
    Float8: "double precision" "float8" 701 1022 8 'N';
    Char(length = 0): "character" "bpchar" 1042 1014 -1 'S';
    Varchar(length = None): "character varying" "varchar" 1043 1015 -1 'S';
    Date: "date" "date" 1082 1182 4 'D';
    Time(digits = None): "time without time zone" "time" 1083 1183 8 'D';
    Timestamp(digits = None): "timestamp without time zone" "timestamp" 1114 1115 8 'D';
    Timestamptz(digits = None): "timestamp with time zone" "timestamptz" 1184 1185 8 'D';
    Interval(modifier = None): "interval" "interval" 1186 1187 16 'T';
    Timetz(digits = None): "time with time zone" "timetz" 1266 1270 12 'D';
    Bit(length = None): "bit" "bit" 1560 1561 -1 'V';
    Varbit(length = None): "bit varying" "varbit" 1562 1563 -1 'V';
    Numeric(modifiers = None): "numeric" "numeric" 1700 1231 -1 'N';
    Uuid: "uuid" "uuid" 2950 2951 16 'U';
    JsonPath: "jsonpath" "jsonpath" 4072 4073 -1 'U';
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
    /// `regoper`: an operator by its name alone.
    Oper,
    /// `regoperator`: an operator with the types of its operands.
    Operator,
}

impl Reg {
    /// Every kind.
    pub const ALL: [Reg; 8] = [
        Reg::Class,
        Reg::Type,
        Reg::Proc,
        Reg::Procedure,
        Reg::Namespace,
        Reg::Role,
        Reg::Oper,
        Reg::Operator,
    ];

    fn facts(self) -> &'static Facts {
        match self {
            Reg::Class => &facts!("regclass" "regclass" 2205 2210 4 'N'),
            Reg::Type => &facts!("regtype" "regtype" 2206 2211 4 'N'),
            Reg::Proc => &facts!("regproc" "regproc" 24 1008 4 'N'),
            Reg::Procedure => &facts!("regprocedure" "regprocedure" 2202 2207 4 'N'),
            Reg::Namespace => &facts!("regnamespace" "regnamespace" 4089 4090 4 'N'),
            Reg::Role => &facts!("regrole" "regrole" 4096 4097 4 'N'),
            Reg::Oper => &facts!("regoper" "regoper" 2203 2208 4 'N'),
            Reg::Operator => &facts!("regoperator" "regoperator" 2204 2209 4 'N'),
        }
    }

    /// The type's name.
    pub fn name(self) -> &'static str {
        self.facts().name
    }
}

/// Of which values a range is one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum RangeKind {
    /// `int4range`
    Int4,
    /// `int8range`
    Int8,
    /// `numrange`
    Numeric,
    /// `daterange`
    Date,
    /// `tsrange`
    Timestamp,
    /// `tstzrange`
    Timestamptz,
}

impl RangeKind {
    /// Every kind.
    pub const ALL: [RangeKind; 6] = [
        RangeKind::Int4,
        RangeKind::Int8,
        RangeKind::Numeric,
        RangeKind::Date,
        RangeKind::Timestamp,
        RangeKind::Timestamptz,
    ];

    /// The type of the bounds.
    pub fn bound(self) -> Type {
        match self {
            RangeKind::Int4 => Type::Int4,
            RangeKind::Int8 => Type::Int8,
            RangeKind::Numeric => Type::Numeric(None),
            RangeKind::Date => Type::Date,
            RangeKind::Timestamp => Type::Timestamp(None),
            RangeKind::Timestamptz => Type::Timestamptz(None),
        }
    }

    fn facts(self) -> &'static Facts {
        match self {
            RangeKind::Int4 => &facts!("int4range" "int4range" 3904 3905 -1 'R'),
            RangeKind::Int8 => &facts!("int8range" "int8range" 3926 3927 -1 'R'),
            RangeKind::Numeric => &facts!("numrange" "numrange" 3906 3907 -1 'R'),
            RangeKind::Date => &facts!("daterange" "daterange" 3912 3913 -1 'R'),
            RangeKind::Timestamp => &facts!("tsrange" "tsrange" 3908 3909 -1 'R'),
            RangeKind::Timestamptz => &facts!("tstzrange" "tstzrange" 3910 3911 -1 'R'),
        }
    }

    fn multirange_facts(self) -> &'static Facts {
        match self {
            RangeKind::Int4 => &facts!("int4multirange" "int4multirange" 4451 6150 -1 'R'),
            RangeKind::Int8 => &facts!("int8multirange" "int8multirange" 4536 6157 -1 'R'),
            RangeKind::Numeric => &facts!("nummultirange" "nummultirange" 4532 6151 -1 'R'),
            RangeKind::Date => &facts!("datemultirange" "datemultirange" 4535 6155 -1 'R'),
            RangeKind::Timestamp => &facts!("tsmultirange" "tsmultirange" 4533 6152 -1 'R'),
            RangeKind::Timestamptz => &facts!("tstzmultirange" "tstzmultirange" 4534 6153 -1 'R'),
        }
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
    Numeric(Option<(u16, i16)>),
    Timestamptz(Option<u8>),
    Varchar(Option<u32>),
    Float4,
    Char(u32),
    Bytea,
    Date,
    Timestamp(Option<u8>),
    Uuid,
    Interval(Option<SpanModifier>),
    Reg(Reg),
    Xid,
    Tid,
    Json,
    Jsonb,
    Enum(u32),
    Time(Option<u8>),
    Inet,
    Cidr,
    Macaddr,
    Timetz(Option<u8>),
    Bit(Option<u32>),
    Varbit(Option<u32>),
    JsonPath,
    Composite(u32),
    Range(RangeKind),
    Multirange(RangeKind),
    /// `int2vector` (catalog columns): see [`ArrayKind::is_vector`].
    Int2Vector,
    /// `oidvector` (catalog columns)
    OidVector,
}

impl ArrayKind {
    /// Whether this is one of PostgreSQL's arrays with a type of their own, which the system
    /// catalog has: their positions count from 0, and their text form is the items alone, with
    /// blanks between them. No other array becomes one.
    pub fn is_vector(self) -> bool {
        matches!(self, ArrayKind::Int2Vector | ArrayKind::OidVector)
    }
}

/// Oid of `int2vector`.
const INT2_VECTOR: u32 = 22;
/// Oid of `oidvector`.
const OID_VECTOR: u32 = 30;

/// What stands around the oid of a type of a user in place of its name, which only the catalog
/// knows (`catalog::Database::named_types` puts the name there).
pub const UNNAMED: [char; 2] = ['\u{1}', '\u{2}'];

impl Type {
    /// The types that columns of users have, without modifiers and arrays.
    pub const SCALARS: [Type; 38] = [
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
        Type::Time(None),
        Type::Timestamp(None),
        Type::Timestamptz(None),
        Type::Uuid,
        Type::Interval(None),
        Type::Json,
        Type::Jsonb,
        Type::Inet,
        Type::Cidr,
        Type::Macaddr,
        Type::Timetz(None),
        Type::Bit(None),
        Type::Varbit(None),
        Type::JsonPath,
        Type::Range(RangeKind::Int4),
        Type::Range(RangeKind::Int8),
        Type::Range(RangeKind::Numeric),
        Type::Range(RangeKind::Date),
        Type::Range(RangeKind::Timestamp),
        Type::Range(RangeKind::Timestamptz),
        Type::Multirange(RangeKind::Int4),
        Type::Multirange(RangeKind::Int8),
        Type::Multirange(RangeKind::Numeric),
        Type::Multirange(RangeKind::Date),
        Type::Multirange(RangeKind::Timestamp),
        Type::Multirange(RangeKind::Timestamptz),
    ];

    /// The type's name with its modifiers, as `format_type` prints it.
    pub fn name(self) -> String {
        match self {
            Type::Numeric(Some((precision, scale))) => format!("numeric({precision},{scale})"),
            Type::Varchar(Some(n)) => format!("character varying({n})"),
            Type::Char(n) if n > 0 => format!("character({n})"),
            Type::Time(Some(p)) => format!("time({p}) without time zone"),
            Type::Timetz(Some(p)) => format!("time({p}) with time zone"),
            Type::Interval(Some(modifier)) => format!("interval{}", modifier.words()),
            Type::Bit(Some(n)) => format!("bit({n})"),
            // Without quotes the name stands for bit(1).
            Type::Bit(None) => "\"bit\"".into(),
            Type::Varbit(Some(n)) => format!("bit varying({n})"),
            Type::Timestamp(Some(p)) => format!("timestamp({p}) without time zone"),
            Type::Timestamptz(Some(p)) => format!("timestamp({p}) with time zone"),
            Type::Array(kind) if self.typmod() != -1 => format!("{}[]", kind.element().name()),
            _ => self.base_name().into_owned(),
        }
    }

    /// The types that arrays may have, without modifiers.
    pub fn elements() -> impl Iterator<Item = Type> {
        let regs = Reg::ALL.into_iter().map(Type::Reg);
        let ranges = RangeKind::ALL.into_iter();
        let ranges = ranges.flat_map(|kind| [Type::Range(kind), Type::Multirange(kind)]);
        ELEMENTS.iter().copied().chain(regs).chain(ranges)
    }

    /// The type's name without modifiers, as error messages have it; of a type of a user the oid
    /// between [`UNNAMED`].
    pub fn base_name(self) -> Cow<'static, str> {
        let unnamed = |id: u32, end| Cow::Owned(format!("{}{id}{}{end}", UNNAMED[0], UNNAMED[1]));
        match self {
            Type::Char(0) => "bpchar".into(),
            Type::Composite(ANONYMOUS | ACL_ROW) => "record".into(),
            Type::Enum(id) | Type::Composite(id) => unnamed(id, ""),
            Type::Array(ArrayKind::Composite(ANONYMOUS)) => "record[]".into(),
            Type::Array(ArrayKind::Enum(id) | ArrayKind::Composite(id)) => unnamed(id, "[]"),
            Type::Array(kind) if kind.is_vector() => self.catalog_name().into(),
            Type::Array(_) => self.facts().array_name.into(),
            _ => self.facts().name.into(),
        }
    }

    /// The type's name in pg_type (`typname`), for example `int4` or `_text`.
    pub fn catalog_name(self) -> &'static str {
        match self {
            Type::Array(ArrayKind::Int2Vector) => "int2vector",
            Type::Array(ArrayKind::OidVector) => "oidvector",
            Type::Array(_) => self.facts().array_catalog_name,
            _ => self.facts().catalog_name,
        }
    }

    /// The type's identifier in pg_type. The array of a user's type has the next one.
    pub fn oid(self) -> u32 {
        match self {
            Type::Composite(ACL_ROW) => ANONYMOUS,
            Type::Enum(id) | Type::Composite(id) => id,
            Type::Array(ArrayKind::Composite(ANONYMOUS)) => ANONYMOUS_ARRAY,
            Type::Array(ArrayKind::Enum(id) | ArrayKind::Composite(id)) => id + 1,
            Type::Array(ArrayKind::Int2Vector) => INT2_VECTOR,
            Type::Array(ArrayKind::OidVector) => OID_VECTOR,
            Type::Array(_) => self.facts().array_oid,
            _ => self.facts().oid,
        }
    }

    /// The type of a pg_type identifier, without modifiers; `None` if it is not supported.
    pub fn from_oid(oid: u32) -> Option<Type> {
        match oid {
            ANONYMOUS => Some(Type::Composite(ANONYMOUS)),
            ANONYMOUS_ARRAY => Some(Type::Array(ArrayKind::Composite(ANONYMOUS))),
            INT2_VECTOR => Some(Type::Array(ArrayKind::Int2Vector)),
            OID_VECTOR => Some(Type::Array(ArrayKind::OidVector)),
            705 => Some(Type::Unknown),
            _ => Type::elements()
                .flat_map(|ty| [Some(ty), ty.array_of()])
                .flatten()
                .find(|ty| ty.oid() == oid),
        }
    }

    /// The type of this `typname`, without modifiers; `None` for arrays and what is not supported.
    pub fn named(catalog_name: &str) -> Option<Type> {
        Type::elements().find(|ty| ty.catalog_name() == catalog_name)
    }

    /// The type with PostgreSQL's type modifier applied; -1 is none.
    pub fn with_typmod(self, typmod: i32) -> Type {
        let modifier = u32::try_from(typmod)
            .ok()
            .and_then(|typmod| typmod.checked_sub(4));
        match (self, modifier) {
            (Type::Numeric(_), Some(bits)) => {
                let (precision, scale) = (bits >> 16, bits & 0x7ff);
                // The scale has eleven bits, the highest of which is its sign.
                let scale = (scale as i16 ^ 1024) - 1024;
                Type::Numeric(Some((precision as u16, scale)))
            }
            (Type::Numeric(_), None) => Type::Numeric(None),
            (Type::Varchar(_), length) => Type::Varchar(length),
            (Type::Char(_), length) => Type::Char(length.unwrap_or(0)),
            (Type::Bit(_) | Type::Varbit(_), _) => {
                let length = u32::try_from(typmod).ok().filter(|length| *length > 0);
                match self {
                    Type::Bit(_) => Type::Bit(length),
                    _ => Type::Varbit(length),
                }
            }
            (Type::Timetz(_), _) => Type::Timetz(second_digits(typmod)),
            (Type::Time(_), _) => Type::Time(second_digits(typmod)),
            (Type::Timestamp(_), _) => Type::Timestamp(second_digits(typmod)),
            (Type::Timestamptz(_), _) => Type::Timestamptz(second_digits(typmod)),
            (Type::Interval(_), _) => Type::Interval(SpanModifier::of_typmod(typmod)),
            (Type::Array(kind), _) if !kind.is_vector() => {
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
                (i32::from(precision) << 16 | i32::from(scale) & 0x7ff) + 4
            }
            Type::Varchar(Some(n)) => n as i32 + 4,
            Type::Char(n) if n > 0 => n as i32 + 4,
            Type::Time(Some(p))
            | Type::Timetz(Some(p))
            | Type::Timestamp(Some(p))
            | Type::Timestamptz(Some(p)) => i32::from(p),
            Type::Interval(Some(modifier)) => modifier.typmod(),
            Type::Bit(Some(n)) | Type::Varbit(Some(n)) => n as i32,
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
            Type::Time(_) => Type::Time(None),
            Type::Timetz(_) => Type::Timetz(None),
            Type::Bit(_) => Type::Bit(None),
            Type::Varbit(_) => Type::Varbit(None),
            Type::Timestamp(_) => Type::Timestamp(None),
            Type::Timestamptz(_) => Type::Timestamptz(None),
            Type::Interval(_) => Type::Interval(None),
            Type::Array(kind) if !kind.is_vector() => {
                let element = kind.element().without_modifiers();
                Type::Array(ArrayKind::of(element).unwrap_or(kind))
            }
            other => other,
        }
    }

    /// Bytes of the type's fixed-length binary form; -1: varying, -2: zero-terminated
    /// (`typlen` of pg_type and of the row description).
    pub fn typlen(self) -> i16 {
        match self {
            Type::Array(_) => -1,
            _ => self.facts().length,
        }
    }

    /// `typcategory` of pg_type.
    pub fn category(self) -> char {
        match self {
            Type::Array(_) => 'A',
            _ => self.facts().category,
        }
    }

    /// The oid of the enum or composite type of a user that this is, or an array of; also that of
    /// `record`. What reads and writes its values asks the catalog.
    pub fn user_id(self) -> Option<u32> {
        match self.element().unwrap_or(self) {
            Type::Enum(id) | Type::Composite(id) => Some(id),
            _ => None,
        }
    }

    /// Whether values hold moments, whose texts show the zone of a session. Those of the fields of
    /// rows do not count.
    pub fn has_moments(self) -> bool {
        matches!(
            self.element().unwrap_or(self),
            Type::Timestamptz(_)
                | Type::Range(RangeKind::Timestamptz)
                | Type::Multirange(RangeKind::Timestamptz)
        )
    }

    /// Of which values this is a range or multirange; `None` for other types.
    pub fn range_kind(self) -> Option<RangeKind> {
        match self {
            Type::Range(kind) | Type::Multirange(kind) => Some(kind),
            _ => None,
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

    /// The precision and scale of a `numeric(precision, scale)` whose numbers may have the form of
    /// [`crate::Decimal`]; `None` for other types.
    pub fn decimal_modifiers(self) -> Option<(u8, u8)> {
        let Type::Numeric(Some((precision, scale))) = self else {
            return None;
        };
        u8::try_from(precision).ok().zip(u8::try_from(scale).ok())
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

    /// Whether the type is `int2vector` or `oidvector`: [`ArrayKind::is_vector`].
    pub fn is_vector(self) -> bool {
        matches!(self, Type::Array(kind) if kind.is_vector())
    }

    /// The array of this type, if there is one.
    pub fn array_of(self) -> Option<Type> {
        ArrayKind::of(self).map(Type::Array)
    }
}

/// The modifier of a time or timestamp: digits of a second's fraction.
fn second_digits(typmod: i32) -> Option<u8> {
    let digits = u8::try_from(typmod).ok()?;
    (digits <= SECOND_DIGITS_MAX).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain_types() -> Vec<Type> {
        let mut types: Vec<Type> = Type::elements().collect();
        types.extend(Type::elements().filter_map(Type::array_of));
        types.extend([ArrayKind::Int2Vector, ArrayKind::OidVector].map(Type::Array));
        types.push(Type::Unknown);
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
            Type::Numeric(Some((1000, -1000))),
            Type::Numeric(Some((3, 1000))),
            Type::Timetz(Some(2)),
            Type::Bit(Some(1)),
            Type::Varbit(Some(83_886_080)),
            Type::Varchar(Some(1)),
            Type::Char(24),
            Type::Time(Some(3)),
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
        assert_eq!(Type::from_oid(142), None);
        assert_eq!(Type::from_oid(2205), Some(Type::Reg(Reg::Class)));
    }

    #[test]
    fn names_are_those_of_format_type() {
        assert_eq!(Type::Numeric(Some((12, 2))).name(), "numeric(12,2)");
        assert_eq!(Type::Varchar(Some(16)).name(), "character varying(16)");
        assert_eq!(Type::Char(2).name(), "character(2)");
        assert_eq!(Type::Char(0).name(), "bpchar");
        assert_eq!(Type::Timestamptz(None).name(), "timestamp with time zone");
        for array in Type::elements().filter_map(Type::array_of) {
            assert_eq!(array.name(), array.base_name());
        }
    }

    #[test]
    fn every_array_has_its_element() {
        assert_eq!(Type::elements().count(), 51);
        for element in Type::elements() {
            assert_eq!(element.array_of().and_then(Type::element), Some(element));
        }
        assert_eq!(
            Type::Varchar(Some(3)).array_of(),
            Some(Type::Array(ArrayKind::Varchar(Some(3))))
        );
        assert_eq!(Type::Array(ArrayKind::Date).array_of(), None);
    }
}
