//! Aggregates that make JSON of values.

use super::AggFunc;
use crate::Expr;
use crate::resolve::json;
use base::{Datum, SqlError, SqlState, Type};
use functions::json::{aggregated_array, aggregated_object, from_value};

/// The names of these aggregates.
pub(super) const NAMES: [&str; 4] = [
    "json_agg",
    "jsonb_agg",
    "json_object_agg",
    "jsonb_object_agg",
];

/// The aggregate `name` over these arguments; `None` if it is another one.
///
/// A value is made JSON as it is taken in, so that DISTINCT sees the value itself. What looks
/// different in another time zone is JSON before.
///
/// # Errors
/// 22023 for keys that are no scalars.
pub(super) fn resolve(
    name: &str,
    args: &[Expr],
) -> Result<Option<(AggFunc, Vec<Expr>, Type)>, SqlError> {
    let binary = name.starts_with("jsonb");
    let ty = if binary { Type::Jsonb } else { Type::Json };
    let taken = |arg: &Expr| match json::is_row(arg) || arg.ty().has_moments() {
        true => json::value(arg.clone(), ty),
        false => json::shown(arg.clone()),
    };
    Ok(match (name.ends_with("_object_agg"), args) {
        (false, [arg]) => {
            let lines = json::is_row(arg) || arg.ty().element().is_some();
            let arg = taken(arg)?;
            let from = arg.ty();
            let func = AggFunc::JsonArray {
                from,
                binary,
                lines,
            };
            Some((func, vec![arg], ty))
        }
        (true, [key, value]) => {
            let (key, value) = (json::key(key.clone())?, taken(value)?);
            let from = value.ty();
            let func = AggFunc::JsonObject { from, binary };
            Some((func, vec![key, value], ty))
        }
        _ => None,
    })
}

/// What one row adds to the items gathered so far; nothing of other aggregates.
pub(super) fn items(func: AggFunc, args: &[Datum]) -> Result<Option<Vec<Datum>>, SqlError> {
    let made = |value: &Datum, from, binary| match value {
        Datum::Null => Ok(Datum::Null),
        value => from_value(value, from, binary).map(Datum::from),
    };
    Ok(Some(match (func, args) {
        (AggFunc::JsonArray { from, binary, .. }, [value]) => vec![made(value, from, binary)?],
        (AggFunc::JsonObject { from, binary }, [key, value]) => {
            if key.is_null() {
                let message = "field name must not be null";
                return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
            }
            vec![key.clone(), made(value, from, binary)?]
        }
        _ => return Ok(None),
    }))
}

/// The result over these items; `None`: they are those of another aggregate.
pub(super) fn finish(func: AggFunc, items: &[Datum]) -> Result<Option<Datum>, SqlError> {
    let ty = |binary| if binary { Type::Jsonb } else { Type::Json };
    Ok(match func {
        AggFunc::JsonArray { binary, lines, .. } => {
            Some(aggregated_array(items.iter(), ty(binary), lines)?)
        }
        AggFunc::JsonObject { binary, .. } => Some(aggregated_object(items, ty(binary))?),
        _ => None,
    })
}
