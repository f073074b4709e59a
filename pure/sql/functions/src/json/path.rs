//! Parts of values.

use super::{datum, is_binary, value_of};
use base::{Datum, SqlError, Type};
use json::{Kind, Value};

/// `value -> key` and `value -> index`.
pub(super) fn get(args: &[Datum]) -> Option<Value<'_>> {
    let value = value_of(args, 0);
    match &args[1] {
        Datum::Text(key) if value.kind() == Kind::Object => value.member(key),
        Datum::Int(index) if value.kind() == Kind::Array => value.item(*index),
        // A scalar of jsonb is an array of itself.
        Datum::Int(-1 | 0) if is_binary(args) && value.kind().is_scalar() => Some(value),
        _ => None,
    }
}

/// The steps that follow the value as arguments.
pub(super) fn rest(args: &[Datum]) -> Vec<Option<&str>> {
    args[1..].iter().map(Datum::as_str).collect()
}

/// What a path leads to; without steps to the value itself.
pub(super) fn at<'a>(args: &'a [Datum], steps: &[Option<&str>]) -> Option<Value<'a>> {
    let steps: Vec<&str> = steps.iter().copied().collect::<Option<_>>()?;
    value_of(args, 0).at_path(steps.into_iter())
}

/// The value, if there is one.
pub(super) fn found(value: Option<Value<'_>>, ty: Type) -> Datum {
    value.map_or(Datum::Null, |value| datum(value.text(), ty))
}

/// The value as text.
pub(super) fn shown(value: Option<Value<'_>>) -> Result<Datum, SqlError> {
    let Some(value) = value else {
        return Ok(Datum::Null);
    };
    let text = value.shown()?;
    Ok(text.map_or(Datum::Null, |text| Datum::from(&*text)))
}

/// `value ? key`: an object with the member, an array with the string, or the string.
pub(super) fn has(value: Value<'_>, key: &str) -> bool {
    let is_key =
        |value: Value<'_>| value.kind() == Kind::String && value.string().is_ok_and(|s| s == key);
    match value.kind() {
        Kind::Object => value.member(key).is_some(),
        Kind::Array => value.items().any(is_key),
        _ => is_key(value),
    }
}
