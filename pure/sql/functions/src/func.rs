//! The scalar functions and operators that exist.
//!
//! A variant names what is computed, not the types it is computed on: `Add` adds integers, floats,
//! numerics, dates and intervals. The argument values say which (the binder has made them fit) and
//! the type of the call says the range of the result.

use crate::json::{JsonFunc, PathUse};
use base::Type;
use base::strings::StringFunc;
use base::text::SpanStyle;
use serde::{Deserialize, Serialize};

/// A scalar function or operator. Serialisable, because it travels to the rows; new variants go
/// at the end of their group only before the first release, afterwards at the end.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Func {
    /// Any comparison and pattern match, with two arguments.
    Compare(Compare),

    // Arithmetic of numbers, dates and intervals.
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Pow,
    Neg,
    Abs,
    BitAnd,
    BitOr,
    BitXor,
    BitNot,
    ShiftLeft,
    ShiftRight,

    // Numbers.
    Sqrt,
    Cbrt,
    /// `round(x)` and `round(numeric, digits)`.
    Round,
    Trunc,
    Ceil,
    Floor,
    Sign,
    Exp,
    Ln,
    /// `log(x)` to base 10 and `log(base, x)`.
    Log,
    /// `div(a, b)`: quotient without fraction.
    DivTrunc,
    /// Functions of `double precision` that have no other form.
    Float(FloatFunc),
    Factorial,
    Gcd,
    Lcm,
    WidthBucket,
    /// Number of fraction digits of a numeric.
    Scale,
    MinScale,
    TrimScale,

    // Any type.
    Greatest,
    Least,
    NullIf,
    NumNulls,
    NumNonNulls,
    /// `xmin` of a row of these values.
    RowVersion,
    /// The text form of a value of this type (`concat`, `format`, `||` with other types); NULL
    /// stays NULL.
    Output(Type),
    /// `md5`, `length`, ... of text; see `string`.
    Text(TextFunc),
    Array(ArrayFunc),
    Date(DateFunc),
    Session(SessionFunc),

    /// `array_to_string(array, separator [, null])` for elements of this type.
    ArrayToString(Type),
    /// `to_char(value, pattern)` for a value of this type.
    ToChar(Type),
    /// A function that looks things up in the system catalog, by name.
    Catalog(Box<str>),
    /// `nextval(sequence)`: drawn by the executor, never by the evaluator.
    NextVal,
    /// `pg_sleep(seconds)`: waited for by the executor; evaluates to the empty text.
    Sleep,
    /// Functions of `timestamptz` in a zone.
    Zoned(ZoneFunc),
    /// Functions of `json` and `jsonb`.
    Json(JsonFunc),
    /// Fails with 42501 and the argument as its message: a row that a policy forbids. Volatile, so
    /// that it is reached where the coordinator computes the row, and nowhere else.
    Refuse,
    /// Whether a value of a domain meets a condition: fails if that is false. The condition, the
    /// name of the domain, and that of the condition; NULL: that there is a value.
    Meets,
    /// Functions of `inet`, `cidr` and `macaddr`.
    Net(NetFunc),
    /// Functions of `bit` and `bit varying`.
    Bits(BitFunc),
    /// Functions of rows.
    Row(RowFunc),
    /// Functions of ranges and multiranges.
    Range(RangeFunc),
}

/// Functions of ranges and multiranges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum RangeFunc {
    /// The range of two bounds, and of `[]` and its like: whether they are inclusive.
    Make,
    /// The multirange of ranges.
    Collect,
    Lower,
    Upper,
    IsEmpty,
    LowerInclusive,
    UpperInclusive,
    LowerInfinite,
    UpperInfinite,
    /// The ranges of a multirange, as an array.
    Parts,
    /// `range_merge`: the smallest range that has all.
    Merge,
    /// `@>`
    Contains,
    /// `<@`
    ContainedBy,
    /// `&&`
    Overlaps,
    /// `<<`
    Before,
    /// `>>`
    After,
    /// `&<`
    OverLeft,
    /// `&>`
    OverRight,
    /// `-|-`
    Adjacent,
    /// `+`
    Union,
    /// `-`
    Minus,
    /// `*`
    Intersect,
}

/// Functions of rows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RowFunc {
    /// The row of the arguments, whose types are these.
    Make(Box<[Type]>),
    /// The field at this place, from 0.
    Field(u16),
    /// `IS NULL`: all fields are; negated `IS NOT NULL`: none is.
    IsNull(bool),
}

/// Functions of bit strings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum BitFunc {
    And,
    Or,
    Xor,
    Not,
    ShiftLeft,
    ShiftRight,
    Concat,
    /// `length` and `bit_length`
    Length,
    OctetLength,
    GetBit,
    SetBit,
    Substring,
    Position,
    Overlay,
    /// Number of bits that are set.
    Count,
}

/// Functions of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum NetFunc {
    Abbrev,
    AbbrevCidr,
    Broadcast,
    Family,
    Host,
    HostMask,
    MaskLen,
    NetMask,
    Network,
    SetMaskLen,
    /// As `SetMaskLen`, of a `cidr`: bits behind the mask are taken off.
    SetCidrMaskLen,
    /// The text form with the mask, whatever its length.
    Show,
    SameFamily,
    /// The smallest network that has both.
    Merge,
    /// `<<`
    Inside,
    /// `<<=`
    InsideOrEqual,
    /// `>>`
    Contains,
    /// `>>=`
    ContainsOrEqual,
    /// `&&`
    Overlaps,
    Not,
    And,
    Or,
    Add,
    Sub,
    /// `trunc(macaddr)`: the first three bytes, which name who made the device.
    Maker,
}

/// Functions from floats to a float.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum FloatFunc {
    Degrees,
    Radians,
    Sin,
    Cos,
    Tan,
    Cot,
    Asin,
    Acos,
    Atan,
    Atan2,
    Sinh,
    Cosh,
    Tanh,
    Pi,
}

/// Functions of text and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum TextFunc {
    /// `text || text`, `bytea || bytea`.
    Concat,
    /// `concat(...)`: NULLs are skipped.
    ConcatAll,
    ConcatWs,
    Length,
    OctetLength,
    BitLength,
    Lower,
    Upper,
    InitCap,
    TrimLeft,
    TrimRight,
    TrimBoth,
    /// `substring(text, from [, for])`, also of bytes.
    Substring,
    SubstringRegex,
    Position,
    Left,
    Right,
    PadLeft,
    PadRight,
    Repeat,
    Replace,
    Reverse,
    SplitPart,
    Ascii,
    Chr,
    Md5,
    Translate,
    StartsWith,
    /// Of `integer`: negative numbers have 8 digits.
    ToHex4,
    /// Of `bigint`: negative numbers have 16 digits.
    ToHex8,
    Encode,
    Decode,
    QuoteIdent,
    QuoteLiteral,
    QuoteNullable,
    Format,
    Overlay,
    RegexpReplace,
    RegexpMatch,
    /// The text of a row of these texts.
    RowText,
    RegexpCount,
    RegexpLike,
    RegexpSplitToArray,
    StringToArray,
    /// `pattern ESCAPE character`: the pattern with backslash as its escape character.
    LikeEscape,
    /// `SIMILAR TO pattern [ESCAPE character]`: the regular expression that is as the pattern.
    SimilarToEscape,
    GetByte,
    ToNumber,
    /// `convert_from(bytea, 'UTF8')`
    ConvertFrom,
    /// `convert_to(text, 'UTF8')`
    ConvertTo,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
    SetByte,
    GetBit,
    SetBit,
    /// Number of bits that are set.
    BitCount,
    RegexpSubstr,
    RegexpInstr,
    /// `digest(text or bytea, text)`
    Digest,
    /// `hmac(text or bytea, text or bytea, text)`
    Hmac,
    /// The parts of a qualified name.
    ParseIdent,
}

impl TextFunc {
    /// The function of the store's formulas that computes the same; `None`: they have none.
    #[must_use]
    pub fn shared(self) -> Option<StringFunc> {
        Some(match self {
            TextFunc::ConcatAll => StringFunc::Concat,
            TextFunc::ConcatWs => StringFunc::ConcatWs,
            TextFunc::Length => StringFunc::Length,
            TextFunc::OctetLength => StringFunc::OctetLength,
            TextFunc::BitLength => StringFunc::BitLength,
            TextFunc::Lower => StringFunc::Lower,
            TextFunc::Upper => StringFunc::Upper,
            TextFunc::InitCap => StringFunc::InitCap,
            TextFunc::TrimLeft => StringFunc::TrimLeft,
            TextFunc::TrimRight => StringFunc::TrimRight,
            TextFunc::TrimBoth => StringFunc::TrimBoth,
            TextFunc::Substring => StringFunc::Substring,
            TextFunc::Position => StringFunc::Position,
            TextFunc::Left => StringFunc::Left,
            TextFunc::Right => StringFunc::Right,
            TextFunc::PadLeft => StringFunc::PadLeft,
            TextFunc::PadRight => StringFunc::PadRight,
            TextFunc::Repeat => StringFunc::Repeat,
            TextFunc::Replace => StringFunc::Replace,
            TextFunc::Reverse => StringFunc::Reverse,
            TextFunc::Ascii => StringFunc::Ascii,
            TextFunc::StartsWith => StringFunc::StartsWith,
            _ => return None,
        })
    }
}

/// A lower bound that is left out where a part of an array is set.
pub const OPEN_LOW: i64 = i64::MIN;
/// An upper bound that is left out.
pub const OPEN_HIGH: i64 = i64::MAX;

/// Functions of arrays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum ArrayFunc {
    /// `array[subscript]`.
    Get,
    /// `array[low:high]`.
    Slice,
    Length,
    Lower,
    Upper,
    Dims,
    NDims,
    Cardinality,
    Append,
    Prepend,
    Cat,
    Position,
    Remove,
    Replace,
    /// `@>`
    Contains,
    /// `<@`
    ContainedBy,
    /// `&&`
    Overlaps,
    /// All positions of an item.
    Positions,
    /// The array without its last items.
    Trim,
    /// The item that a sorted array has most often.
    Mode,
    /// Between the items of a sorted array, at a share of its length.
    PercentileCont,
    /// The item of a sorted array at a share of its length.
    PercentileDisc,
    /// `array_fill`
    Fill,
    /// An item set: array, value, subscripts.
    SetItem,
    /// A part set: array, array of the values, bounds; [`OPEN_LOW`] and [`OPEN_HIGH`] stand for
    /// the array's own.
    SetSlice,
}

/// Functions of dates, times, timestamps and intervals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum DateFunc {
    /// `extract(field FROM x)` with a numeric result, `date_part(field, x)` with a float result.
    Extract,
    /// The same of a `timestamptz`, which has a time zone.
    ExtractZoned,
    Trunc,
    Bin,
    Age,
    MakeDate,
    MakeTimestamp,
    MakeInterval,
    /// `to_timestamp(seconds)`.
    ToTimestampEpoch,
    /// `to_timestamp(text, pattern)`.
    ToTimestamp,
    ToDate,
    JustifyDays,
    JustifyHours,
    JustifyInterval,
    IsFinite,
    /// `x AT TIME ZONE zone`: arguments are zone and value; the call's type says the direction.
    AtTimeZone,
    /// `(a, b) OVERLAPS (c, d)`.
    Overlaps,
    MakeTime,
}

/// Functions that ask the session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum SessionFunc {
    /// `now()`: start of the transaction; the type of the call says timestamp(tz), date or time.
    TxnTime,
    /// `statement_timestamp()`.
    StatementTime,
    /// `clock_timestamp()`.
    ClockTime,
    /// `timeofday()`.
    TimeOfDay,
    Random,
    RandomUuid,
    User,
    SessionUser,
    Database,
    Schema,
    Schemas,
    Version,
    Pid,
    Setting,
    /// `current_setting` in a statement that sets: computed anew for each row.
    SettingNow,
    SetConfig,
    ClientAddr,
    ClientPort,
    ServerAddr,
    ServerPort,
}

/// Functions that depend on settings. Where not said otherwise, the last argument is the name of a
/// zone.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum ZoneFunc {
    /// A conversion from or to `timestamptz`, its text form included: value, zone.
    Cast {
        /// What is converted.
        from: Type,
        /// Written by the user as CAST or `::`.
        explicit: bool,
    },
    /// `extract`, `date_part`: field, value, zone.
    Extract,
    /// `date_trunc`: unit, value, zone.
    Trunc,
    /// A `timestamptz` and an interval that is added, or subtracted if negative: value, interval,
    /// zone.
    Shift {
        /// Whether the interval is subtracted.
        negative: bool,
    },
    /// `to_char`: value, pattern, zone.
    ToChar,
    /// `to_timestamp`: text, pattern, zone of a text that names none.
    ToTimestamp,
    /// `jsonb_path_exists_tz` and its like: their arguments, zone.
    Path(PathUse),
    /// Intervals, alone or in an array, as texts in a style: value.
    ShowSpans(SpanStyle),
    /// Intervals, alone or in an array, of a text in a style: value.
    ReadSpans(SpanStyle),
}

/// Comparison operators; those up to `Ge` are decided by the order of values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Like,
    NotLike,
    ILike,
    NotILike,
    Regex,
    NotRegex,
    IRegex,
    NotIRegex,
}

impl Compare {
    /// The comparison that is true of `(b, a)` exactly when this one is true of `(a, b)`; `None`
    /// for pattern matching, whose sides are of different nature.
    pub fn mirrored(self) -> Option<Compare> {
        Some(match self {
            Compare::Eq => Compare::Eq,
            Compare::Ne => Compare::Ne,
            Compare::Lt => Compare::Gt,
            Compare::Le => Compare::Ge,
            Compare::Gt => Compare::Lt,
            Compare::Ge => Compare::Le,
            Compare::Like
            | Compare::NotLike
            | Compare::ILike
            | Compare::NotILike
            | Compare::Regex
            | Compare::NotRegex
            | Compare::IRegex
            | Compare::NotIRegex => return None,
        })
    }

    /// The comparison that is true exactly when this one is false (both are NULL together).
    pub fn negated(self) -> Compare {
        match self {
            Compare::Eq => Compare::Ne,
            Compare::Ne => Compare::Eq,
            Compare::Lt => Compare::Ge,
            Compare::Le => Compare::Gt,
            Compare::Gt => Compare::Le,
            Compare::Ge => Compare::Lt,
            Compare::Like => Compare::NotLike,
            Compare::NotLike => Compare::Like,
            Compare::ILike => Compare::NotILike,
            Compare::NotILike => Compare::ILike,
            Compare::Regex => Compare::NotRegex,
            Compare::NotRegex => Compare::Regex,
            Compare::IRegex => Compare::NotIRegex,
            Compare::NotIRegex => Compare::IRegex,
        }
    }
}

/// How often a function may be computed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Volatility {
    /// Depends on its arguments only: may be computed while planning.
    Immutable,
    /// Also depends on the statement, the session or the catalog: may be computed once per
    /// statement, at the coordinator.
    Stable,
    /// Must be computed anew for every row, at the coordinator.
    Volatile,
}

impl Func {
    /// How often the function may be computed.
    pub fn volatility(&self) -> Volatility {
        match self {
            Func::Session(
                SessionFunc::Random
                | SessionFunc::RandomUuid
                | SessionFunc::ClockTime
                | SessionFunc::TimeOfDay
                | SessionFunc::SettingNow
                | SessionFunc::SetConfig,
            )
            | Func::NextVal
            | Func::Refuse
            | Func::Sleep => Volatility::Volatile,
            Func::Session(_) | Func::Catalog(_) => Volatility::Stable,
            _ => Volatility::Immutable,
        }
    }

    /// Whether a NULL argument makes the result NULL without computing it.
    pub fn is_strict(&self) -> bool {
        match self {
            Func::Greatest
            | Func::Least
            | Func::NullIf
            | Func::NumNulls
            | Func::NumNonNulls
            | Func::RowVersion
            | Func::Meets
            | Func::ArrayToString(_)
            | Func::Catalog(_)
            | Func::Row(RowFunc::Make(_) | RowFunc::IsNull(_))
            | Func::Range(RangeFunc::Make | RangeFunc::Collect) => false,
            Func::Text(func) => match func.shared() {
                Some(shared) => shared.is_strict(),
                None => !matches!(
                    func,
                    TextFunc::QuoteNullable
                        | TextFunc::Format
                        | TextFunc::StringToArray
                        | TextFunc::RowText
                ),
            },
            Func::Array(func) => !matches!(
                func,
                ArrayFunc::Append
                    | ArrayFunc::Prepend
                    | ArrayFunc::Cat
                    | ArrayFunc::Position
                    | ArrayFunc::Positions
                    | ArrayFunc::Remove
                    | ArrayFunc::Replace
                    | ArrayFunc::Fill
                    | ArrayFunc::SetItem
                    | ArrayFunc::SetSlice
            ),
            Func::Json(func) => func.is_strict(),
            Func::Date(DateFunc::Overlaps) | Func::Session(SessionFunc::SetConfig) => false,
            _ => true,
        }
    }
}
