//! Functions of floats, moments, arrays, `jsonb` and some of texts: those of SQL's evaluator, with
//! numbers of their own, since formulas are kept in the journal.

use super::too_large;
use alloc::vec::Vec;
use base::limits::PROGRAM_BYTES_MAX;
use base::row::value_len;
use base::{Datum, SqlError, Type};
use functions::{ArrayFunc, DateFunc, Func, JsonFunc, TextFunc};
use serde::{Deserialize, Serialize};

/// A function whose values SQL's evaluator computes in the same way. New ones go to the end:
/// formulas in the journal have their number.
///
/// Each gives the same bits on every machine. So functions of floats that a library approximates,
/// as `exp` and `sin`, are none of them, and neither are those that depend on a time zone.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum ValueFunc {
    /// `a + b` of floats, moments and intervals.
    Add,
    /// `a - b` of floats, moments and intervals.
    Subtract,
    /// `a * b` of floats, and of an interval and a float.
    Multiply,
    /// `a / b` of floats, and of an interval and a float.
    Divide,
    /// `-a` of a float or an interval.
    Negate,
    /// `abs(float)`
    Absolute,
    /// `round(float)`, of two whole numbers the even one.
    Round,
    /// `trunc(float)`
    Truncate,
    /// `floor(float)`
    Down,
    /// `ceil(float)`
    Up,
    /// `sign(float)`
    Sign,
    /// `sqrt(float)`
    Sqrt,
    /// A cast between numbers, floats, moments and intervals, from this type.
    Convert {
        /// The type of the argument.
        from: Type,
        /// Written by the user as CAST or `::`.
        explicit: bool,
    },
    /// `date_trunc(unit, timestamp)`
    TruncateDate,
    /// `extract(field FROM moment)`, `date_part(field, moment)`
    Extract {
        /// Of a `timestamptz`, in UTC.
        zoned: bool,
    },
    /// An array of the arguments.
    MakeArray,
    /// `array[subscript]`
    Item,
    /// `array_length(array, dimension)`
    ArrayLength,
    /// `cardinality(array)`
    Cardinality,
    /// `array || item`
    ArrayAppend,
    /// `item || array`
    ArrayPrepend,
    /// `array || array`
    ArrayCat,
    /// `array_remove(array, item)`
    ArrayRemove,
    /// `array_replace(array, from, to)`
    ArrayReplace,
    /// `array_position(array, item)`
    ArrayPosition,
    /// `md5(text or bytea)`
    Md5,
    /// `sha224(bytea)`
    Sha224,
    /// `sha256(bytea)`
    Sha256,
    /// `sha384(bytea)`
    Sha384,
    /// `sha512(bytea)`
    Sha512,
    /// `translate(text, from, to)`
    Translate,
    /// `split_part(text, separator, field)`
    SplitPart,
    /// `to_hex(integer)`
    ToHex4,
    /// `to_hex(bigint)`
    ToHex8,
    /// `to_jsonb` of a value of this type.
    JsonFrom(Type),
    /// `jsonb -> key`
    JsonGet,
    /// `jsonb ->> key`
    JsonGetText,
    /// `jsonb #> path`
    JsonPath,
    /// `jsonb #>> path`
    JsonPathText,
    /// `jsonb || jsonb`
    JsonConcat,
    /// `jsonb - key`
    JsonDeleteKey,
    /// `jsonb_set(jsonb, path, value [, create])`
    JsonSet,
    /// `jsonb_build_object(key, value, ...)`, the values in JSON.
    JsonObject,
    /// `jsonb_build_array(value, ...)`, the values in JSON.
    JsonArray,
}

impl ValueFunc {
    /// The function of the evaluator; `None`: a conversion or a list, which is none.
    #[must_use]
    pub fn func(self) -> Option<Func> {
        Some(match self {
            ValueFunc::Add => Func::Add,
            ValueFunc::Subtract => Func::Sub,
            ValueFunc::Multiply => Func::Mul,
            ValueFunc::Divide => Func::Div,
            ValueFunc::Negate => Func::Neg,
            ValueFunc::Absolute => Func::Abs,
            ValueFunc::Round => Func::Round,
            ValueFunc::Truncate => Func::Trunc,
            ValueFunc::Down => Func::Floor,
            ValueFunc::Up => Func::Ceil,
            ValueFunc::Sign => Func::Sign,
            ValueFunc::Sqrt => Func::Sqrt,
            ValueFunc::Convert { .. } | ValueFunc::MakeArray => return None,
            ValueFunc::TruncateDate => Func::Date(DateFunc::Trunc),
            ValueFunc::Extract { zoned: false } => Func::Date(DateFunc::Extract),
            ValueFunc::Extract { zoned: true } => Func::Date(DateFunc::ExtractZoned),
            ValueFunc::Item => Func::Array(ArrayFunc::Get),
            ValueFunc::ArrayLength => Func::Array(ArrayFunc::Length),
            ValueFunc::Cardinality => Func::Array(ArrayFunc::Cardinality),
            ValueFunc::ArrayAppend => Func::Array(ArrayFunc::Append),
            ValueFunc::ArrayPrepend => Func::Array(ArrayFunc::Prepend),
            ValueFunc::ArrayCat => Func::Array(ArrayFunc::Cat),
            ValueFunc::ArrayRemove => Func::Array(ArrayFunc::Remove),
            ValueFunc::ArrayReplace => Func::Array(ArrayFunc::Replace),
            ValueFunc::ArrayPosition => Func::Array(ArrayFunc::Position),
            ValueFunc::Md5 => Func::Text(TextFunc::Md5),
            ValueFunc::Sha224 => Func::Text(TextFunc::Sha224),
            ValueFunc::Sha256 => Func::Text(TextFunc::Sha256),
            ValueFunc::Sha384 => Func::Text(TextFunc::Sha384),
            ValueFunc::Sha512 => Func::Text(TextFunc::Sha512),
            ValueFunc::Translate => Func::Text(TextFunc::Translate),
            ValueFunc::SplitPart => Func::Text(TextFunc::SplitPart),
            ValueFunc::ToHex4 => Func::Text(TextFunc::ToHex4),
            ValueFunc::ToHex8 => Func::Text(TextFunc::ToHex8),
            ValueFunc::JsonFrom(from) => Func::Json(JsonFunc::From(from)),
            ValueFunc::JsonGet => Func::Json(JsonFunc::Get),
            ValueFunc::JsonGetText => Func::Json(JsonFunc::GetText),
            ValueFunc::JsonPath => Func::Json(JsonFunc::Path),
            ValueFunc::JsonPathText => Func::Json(JsonFunc::PathText),
            ValueFunc::JsonConcat => Func::Json(JsonFunc::Concat),
            ValueFunc::JsonDeleteKey => Func::Json(JsonFunc::DeleteKey),
            ValueFunc::JsonSet => Func::Json(JsonFunc::Set),
            ValueFunc::JsonObject => Func::Json(JsonFunc::BuildObject),
            ValueFunc::JsonArray => Func::Json(JsonFunc::BuildArray),
        })
    }

    /// The function that computes what a function of the evaluator does; `None`: there is none. A
    /// conversion has no function of its own.
    #[must_use]
    pub fn of(func: &Func) -> Option<ValueFunc> {
        Some(match func {
            Func::Add => ValueFunc::Add,
            Func::Sub => ValueFunc::Subtract,
            Func::Mul => ValueFunc::Multiply,
            Func::Div => ValueFunc::Divide,
            Func::Neg => ValueFunc::Negate,
            Func::Abs => ValueFunc::Absolute,
            Func::Round => ValueFunc::Round,
            Func::Trunc => ValueFunc::Truncate,
            Func::Floor => ValueFunc::Down,
            Func::Ceil => ValueFunc::Up,
            Func::Sign => ValueFunc::Sign,
            Func::Sqrt => ValueFunc::Sqrt,
            Func::Date(DateFunc::Trunc) => ValueFunc::TruncateDate,
            Func::Date(DateFunc::Extract) => ValueFunc::Extract { zoned: false },
            Func::Date(DateFunc::ExtractZoned) => ValueFunc::Extract { zoned: true },
            Func::Array(ArrayFunc::Get) => ValueFunc::Item,
            Func::Array(ArrayFunc::Length) => ValueFunc::ArrayLength,
            Func::Array(ArrayFunc::Cardinality) => ValueFunc::Cardinality,
            Func::Array(ArrayFunc::Append) => ValueFunc::ArrayAppend,
            Func::Array(ArrayFunc::Prepend) => ValueFunc::ArrayPrepend,
            Func::Array(ArrayFunc::Cat) => ValueFunc::ArrayCat,
            Func::Array(ArrayFunc::Remove) => ValueFunc::ArrayRemove,
            Func::Array(ArrayFunc::Replace) => ValueFunc::ArrayReplace,
            Func::Array(ArrayFunc::Position) => ValueFunc::ArrayPosition,
            Func::Text(TextFunc::Md5) => ValueFunc::Md5,
            Func::Text(TextFunc::Sha224) => ValueFunc::Sha224,
            Func::Text(TextFunc::Sha256) => ValueFunc::Sha256,
            Func::Text(TextFunc::Sha384) => ValueFunc::Sha384,
            Func::Text(TextFunc::Sha512) => ValueFunc::Sha512,
            Func::Text(TextFunc::Translate) => ValueFunc::Translate,
            Func::Text(TextFunc::SplitPart) => ValueFunc::SplitPart,
            Func::Text(TextFunc::ToHex4) => ValueFunc::ToHex4,
            Func::Text(TextFunc::ToHex8) => ValueFunc::ToHex8,
            Func::Json(JsonFunc::From(from)) => ValueFunc::JsonFrom(*from),
            Func::Json(JsonFunc::Get) => ValueFunc::JsonGet,
            Func::Json(JsonFunc::GetText) => ValueFunc::JsonGetText,
            Func::Json(JsonFunc::Path) => ValueFunc::JsonPath,
            Func::Json(JsonFunc::PathText) => ValueFunc::JsonPathText,
            Func::Json(JsonFunc::Concat) => ValueFunc::JsonConcat,
            Func::Json(JsonFunc::DeleteKey) => ValueFunc::JsonDeleteKey,
            Func::Json(JsonFunc::Set) => ValueFunc::JsonSet,
            Func::Json(JsonFunc::BuildObject) => ValueFunc::JsonObject,
            Func::Json(JsonFunc::BuildArray) => ValueFunc::JsonArray,
            _ => return None,
        })
    }

    /// Whether the result, of this type, may be NULL although no argument is.
    #[must_use]
    pub fn makes_null(self, ty: Type) -> bool {
        match self {
            // Infinity has no time of day, and no month.
            ValueFunc::Convert { .. } => matches!(ty, Type::Time(_)),
            ValueFunc::Extract { .. } => true,
            ValueFunc::Item | ValueFunc::ArrayLength | ValueFunc::ArrayPosition => true,
            ValueFunc::JsonGet
            | ValueFunc::JsonGetText
            | ValueFunc::JsonPath
            | ValueFunc::JsonPathText => true,
            _ => false,
        }
    }

    /// Whether a NULL argument makes the result NULL.
    #[must_use]
    pub fn is_strict(self) -> bool {
        match self.func() {
            Some(func) => func.is_strict(),
            None => self != ValueFunc::MakeArray,
        }
    }

    /// The value for these arguments; `ty` is that of the result.
    ///
    /// # Errors
    /// What the evaluator raises, and 54000 if the value has more than [`PROGRAM_BYTES_MAX`] bytes.
    pub fn apply(self, mut args: Vec<Datum>, ty: Type) -> Result<Datum, SqlError> {
        if self.is_strict() && args.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        let value = match (self, self.func()) {
            (ValueFunc::Convert { from, explicit }, _) => {
                let value = args.pop().unwrap_or_default();
                functions::cast::cast_datum(value, from, ty, explicit)?
            }
            (_, None) => Datum::Array(args.into_boxed_slice()),
            (_, Some(func)) => evaluated(&func, &mut args, ty)?,
        };
        let bytes = value_len(&value);
        match bytes <= PROGRAM_BYTES_MAX {
            true => Ok(value),
            false => Err(too_large(bytes, PROGRAM_BYTES_MAX)),
        }
    }
}

fn evaluated(func: &Func, args: &mut [Datum], ty: Type) -> Result<Datum, SqlError> {
    let is_moment = |value: &Datum| {
        use Datum::{Date, Interval, Time, Timestamp};
        matches!(value, Date(_) | Time(_) | Timestamp(_) | Interval(_))
    };
    match func {
        Func::Text(func) => functions::string::apply(*func, args, ty),
        Func::Array(func) => functions::array::apply(*func, args),
        Func::Json(func) => functions::json::apply(*func, args, ty),
        Func::Date(func) => functions::datetime::apply(*func, args, ty),
        _ if args.iter().any(is_moment) => functions::datetime::arithmetic(func, args),
        _ => functions::number::apply(func, args, ty),
    }
}
