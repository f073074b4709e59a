//! Functions and operators of `json` and `jsonb`, over the texts that both are.

mod build;
mod path;
mod query;
mod record;
mod rows;

pub use build::{aggregated_array, aggregated_object, from_value};
pub use query::{PathUse, PathZone, parse_path, path_items, path_value};
pub use record::FieldForm;
pub use rows::{JsonRows, RowsCursor};

use crate::cast::no_cast;
use crate::string::RESULT_BYTES_MAX;
use base::zone::Zone;
use base::{ArrayKind, Datum, Jsonb, SqlError, SqlState, Type, text};
use json::{Edit, Kind, Value};
use serde::{Deserialize, Serialize};

/// Functions of `json` and `jsonb`: the type of the call says which of the two they give.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum JsonFunc {
    /// `to_json` of a value of this type.
    From(Type),
    /// `->`
    Get,
    /// `->>`
    GetText,
    /// `#>`
    Path,
    /// `#>>`
    PathText,
    /// `json_extract_path`: steps as arguments.
    Extract,
    /// `json_extract_path_text`
    ExtractText,
    /// `@>`
    Contains,
    /// `<@`
    ContainedBy,
    /// `?`
    HasKey,
    /// `?|`
    HasAny,
    /// `?&`
    HasAll,
    /// `||`
    Concat,
    /// `- text`, `- text[]`
    DeleteKey,
    /// `- integer`
    DeleteIndex,
    /// `#-`
    DeletePath,
    /// `json_build_object`: keys as text, values as JSON.
    BuildObject,
    /// `json_build_array`
    BuildArray,
    /// A row: names of columns, values as JSON; `lines`: each column on a line of its own.
    Row {
        /// `row_to_json(row, true)`
        lines: bool,
    },
    /// `json_object` of an array of keys and values, or of two arrays.
    Object,
    /// `json_array_length`
    ArrayLength,
    /// `json_typeof`
    TypeOf,
    /// `jsonb_set`
    Set,
    /// `jsonb_set_lax`
    SetLax,
    /// `jsonb_insert`
    Insert,
    /// `json_strip_nulls`
    StripNulls,
    /// `jsonb_pretty`
    Pretty,
    /// `array_to_json(array, true)` for elements of this type.
    ArrayLines(Type),
    /// Sets what subscripts lead to: value, steps, the new value, whether the first step is a
    /// number.
    Assign,
    /// What a path leads to: value, path, variables, whether it is silent.
    Query {
        /// What is made of it.
        usage: PathUse,
        /// Moments without a zone are those of the session's zone, here UTC; otherwise they do not
        /// compare with ones that have a zone.
        zoned: bool,
    },
    /// A member of an object as the value of a column: object, key.
    Field(FieldForm),
}

impl JsonFunc {
    /// Whether a NULL argument makes the result NULL.
    pub(crate) fn is_strict(self) -> bool {
        !matches!(
            self,
            JsonFunc::BuildObject
                | JsonFunc::BuildArray
                | JsonFunc::Row { .. }
                | JsonFunc::SetLax
                | JsonFunc::Assign
        )
    }

    /// Whether the result follows from settings in PostgreSQL.
    #[must_use]
    pub fn is_stable(self) -> bool {
        matches!(
            self,
            JsonFunc::From(_)
                | JsonFunc::BuildObject
                | JsonFunc::BuildArray
                | JsonFunc::Row { .. }
                | JsonFunc::ArrayLines(_)
                | JsonFunc::Query { zoned: true, .. }
        )
    }
}

/// 22023
fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER, message)
}

/// A JSON text as a value of the type.
pub(crate) fn datum(text: impl Into<Box<str>>, ty: Type) -> Datum {
    match ty {
        Type::Jsonb => Datum::Jsonb(Jsonb::from_normal(text)),
        _ => Datum::Text(text.into()),
    }
}

/// The JSON text of argument `i`.
fn text_of(args: &[Datum], i: usize) -> &str {
    args[i].as_json().expect("the binder passes json or text")
}

fn value_of(args: &[Datum], i: usize) -> Value<'_> {
    Value::new(text_of(args, i))
}

/// The steps of a path in argument `i`.
fn steps(args: &[Datum], i: usize) -> Vec<Option<&str>> {
    let items = args[i].as_array().unwrap_or(&[]);
    items.iter().map(Datum::as_str).collect()
}

/// Refuses a path of more than one dimension.
fn check_path(path: &Datum) -> Result<(), SqlError> {
    match path.shape() {
        Some(shape) if shape.dimensions().len() > 1 => {
            let message = "wrong number of array subscripts";
            Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT, message))
        }
        _ => Ok(()),
    }
}

/// The keys in the second argument.
fn keys(args: &[Datum]) -> impl Iterator<Item = &str> {
    steps(args, 1).into_iter().flatten()
}

/// Whether the type of the argument is `jsonb`, of which a scalar is an array to some functions.
fn is_binary(args: &[Datum]) -> bool {
    matches!(args.first(), Some(Datum::Jsonb(_)))
}

/// Computes a function whose NULL arguments have been dealt with, unless it is not strict.
///
/// # Errors
/// What PostgreSQL raises: 22023, 22P02, 22004, 54001 and their like.
pub fn apply(func: JsonFunc, args: &[Datum], ty: Type) -> Result<Datum, SqlError> {
    if let JsonFunc::DeleteKey
    | JsonFunc::DeletePath
    | JsonFunc::Set
    | JsonFunc::SetLax
    | JsonFunc::Insert = func
    {
        check_path(&args[1])?;
    }
    Ok(match func {
        JsonFunc::From(from) => datum(from_value(&args[0], from, ty == Type::Jsonb)?, ty),
        JsonFunc::ArrayLines(element) => build::array_lines(&args[0], element)?.into(),
        JsonFunc::Get => path::found(path::get(args), ty),
        JsonFunc::GetText => path::shown(path::get(args))?,
        JsonFunc::Path => path::found(path::at(args, &steps(args, 1)), ty),
        JsonFunc::PathText => path::shown(path::at(args, &steps(args, 1)))?,
        JsonFunc::Extract => path::found(path::at(args, &path::rest(args)), ty),
        JsonFunc::ExtractText => path::shown(path::at(args, &path::rest(args)))?,
        JsonFunc::Contains => json::contains(text_of(args, 0), text_of(args, 1)).into(),
        JsonFunc::ContainedBy => json::contains(text_of(args, 1), text_of(args, 0)).into(),
        JsonFunc::HasKey => path::has(value_of(args, 0), args[1].as_str().unwrap_or("")).into(),
        JsonFunc::HasAny => keys(args)
            .any(|key| path::has(value_of(args, 0), key))
            .into(),
        JsonFunc::HasAll => keys(args)
            .all(|key| path::has(value_of(args, 0), key))
            .into(),
        JsonFunc::Concat => datum(json::concat(text_of(args, 0), text_of(args, 1))?, ty),
        JsonFunc::DeleteKey => datum(delete_key(args)?, ty),
        JsonFunc::DeleteIndex => {
            let index = args[1].as_int().unwrap_or(0);
            datum(json::delete_index(text_of(args, 0), index)?, ty)
        }
        JsonFunc::DeletePath => datum(json::delete_path(text_of(args, 0), &steps(args, 1))?, ty),
        JsonFunc::BuildObject => datum(build::object(args, ty)?, ty),
        JsonFunc::BuildArray => datum(build::array(args, ty)?, ty),
        JsonFunc::Row { lines } => datum(build::row(args, ty, lines)?, ty),
        JsonFunc::Object => datum(build::object_of_arrays(args, ty)?, ty),
        JsonFunc::ArrayLength => array_length(value_of(args, 0))?,
        JsonFunc::TypeOf => value_of(args, 0).kind().name().into(),
        JsonFunc::Set => {
            let edit = match args.get(3) {
                Some(Datum::Bool(false)) => Edit::Replace(text_of(args, 2)),
                _ => Edit::Set(text_of(args, 2)),
            };
            datum(edited(args, edit)?, ty)
        }
        JsonFunc::SetLax => return set_lax(args, ty),
        JsonFunc::Insert => {
            let edit = match args.get(3) {
                Some(Datum::Bool(true)) => Edit::InsertAfter(text_of(args, 2)),
                _ => Edit::InsertBefore(text_of(args, 2)),
            };
            datum(edited(args, edit)?, ty)
        }
        JsonFunc::Query { usage, zoned } => {
            return path_value(usage, args, utc(zoned).as_ref());
        }
        JsonFunc::Field(form) => record::field(form, args, ty)?,
        JsonFunc::Assign => datum(assigned(args)?, ty),
        JsonFunc::StripNulls => datum(json::strip_nulls(text_of(args, 0), ty == Type::Json)?, ty),
        JsonFunc::Pretty => {
            let text = json::pretty(text_of(args, 0), RESULT_BYTES_MAX);
            text.ok_or_else(|| crate::string::too_large(RESULT_BYTES_MAX + 1))?
                .into()
        }
    })
}

/// Bytes of memory for which a statement is asked before a function is computed, if it may take
/// many.
#[must_use]
pub fn room(func: JsonFunc, args: &[Datum]) -> Option<usize> {
    const ROOM_BYTES: usize = 64 << 10;
    let lengths = args.iter().map(|arg| match arg {
        Datum::Array(_) | Datum::Grid(_) => arg
            .as_array()
            .unwrap_or_default()
            .iter()
            .map(|item| size_of::<Datum>() + item.as_json().map_or(0, str::len))
            .sum(),
        other => other.as_json().map_or(0, str::len),
    });
    let bytes: usize = lengths.sum();
    let copies = match func {
        // A line may be indented by as much as 256 levels, but lines are short then.
        JsonFunc::Pretty => 8,
        _ => 2,
    };
    let bytes = bytes.saturating_mul(copies);
    (bytes > ROOM_BYTES).then_some(bytes)
}

/// The value with an edit at a path.
fn edited(args: &[Datum], edit: Edit<'_>) -> Result<String, SqlError> {
    Ok(json::edit_path(text_of(args, 0), &steps(args, 1), edit)?)
}

/// UTC, for sessions in it.
fn utc(zoned: bool) -> Option<Zone> {
    zoned.then(|| Zone::named("UTC")).flatten()
}

/// The value with what its subscripts lead to set.
fn assigned(args: &[Datum]) -> Result<String, SqlError> {
    let path = steps(args, 1).into_iter().map(|step| {
        step.ok_or_else(|| {
            let message = "jsonb subscript in assignment must not be null";
            SqlError::new(SqlState::NULL_NOT_ALLOWED, message)
        })
    });
    let path = path.collect::<Result<Vec<_>, _>>()?;
    let of_items = args[3].as_bool() == Some(true);
    let new = args[2].as_json().unwrap_or("null");
    Ok(json::assign(args[0].as_json(), &path, of_items, new)?)
}

fn delete_key(args: &[Datum]) -> Result<String, SqlError> {
    let text = text_of(args, 0);
    Ok(match &args[1] {
        Datum::Text(key) => json::delete_key(text, |known| known == &**key)?,
        _ => {
            let mut keys = steps(args, 1);
            keys.sort_unstable();
            json::delete_key(text, |known| keys.binary_search(&Some(known)).is_ok())?
        }
    })
}

fn array_length(value: Value<'_>) -> Result<Datum, SqlError> {
    match value.kind() {
        Kind::Array => Ok(Datum::Int(value.count() as i64)),
        Kind::Object => Err(invalid("cannot get array length of a non-array")),
        _ => Err(invalid("cannot get array length of a scalar")),
    }
}

fn set_lax(args: &[Datum], ty: Type) -> Result<Datum, SqlError> {
    let created = args.get(3).unwrap_or(&Datum::Bool(true));
    if args[0].is_null() || args[1].is_null() || created.is_null() {
        return Ok(Datum::Null);
    }
    let created = created.clone();
    let treatment = match args.get(4) {
        None => Some("use_json_null"),
        Some(word) => word.as_str(),
    };
    let set = |value: &str| {
        let args = [
            args[0].clone(),
            args[1].clone(),
            datum(value, ty),
            created.clone(),
        ];
        apply(JsonFunc::Set, &args, ty)
    };
    if let Some(value) = args[2].as_json() {
        return set(value);
    }
    match treatment {
        Some("raise_exception") => {
            let detail =
                "Exception was raised because null_value_treatment is \"raise_exception\".";
            Err(SqlError::new(SqlState::NULL_NOT_ALLOWED, "JSON value must not be null")
                .detail(detail)
                .hint(
                    "To avoid, either change the null_value_treatment argument or ensure that an \
                     SQL NULL is not passed.",
                ))
        }
        Some("use_json_null") => set("null"),
        Some("delete_key") => apply(JsonFunc::DeletePath, &args[..2], ty),
        Some("return_target") => Ok(args[0].clone()),
        _ => Err(invalid(
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", \
             or \"raise_exception\"",
        )),
    }
}

/// A value of another type as `json` or `jsonb`: a conversion.
pub(crate) fn from_other(value: Datum, from: Type, to: Type) -> Result<Datum, SqlError> {
    match (value, to) {
        (Datum::Jsonb(value), Type::Json) => Ok(value.as_str().into()),
        (value @ Datum::Jsonb(_), Type::Jsonb) => Ok(value),
        (_, _) => Err(no_cast(from, to)),
    }
}

/// A scalar of `jsonb` as a number or truth value: a cast.
pub(crate) fn to_scalar(value: &Jsonb, to: Type) -> Result<Datum, SqlError> {
    let value = Value::new(value.as_str());
    let kind = value.kind();
    match (kind, to) {
        (Kind::Bool, Type::Bool) => return Ok(Datum::Bool(value.is_true())),
        (Kind::Number, to) if to.is_numeric() => {}
        _ => {
            let kind = match kind {
                Kind::Number => "numeric",
                other => other.name(),
            };
            let message = format!("cannot cast jsonb {kind} to type {}", to.base_name());
            return Err(invalid(message));
        }
    }
    if to.is_float() {
        return text::parse(to, value.text());
    }
    let number = base::numeric::parse(value.text())?;
    crate::cast::cast_datum(number, Type::Numeric(None), to, true)
}

/// The type of the steps of a path.
pub const PATH: Type = Type::Array(ArrayKind::Text);
