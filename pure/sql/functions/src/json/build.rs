//! Values of SQL as JSON, and objects and arrays of them.

use super::invalid;
use base::{Datum, Jsonb, SqlError, SqlState, Type, text};
use json::{ArrayBuilder, ObjectBuilder, write_string};

/// The JSON text of a value of this type (`to_json`), in normal form if it is `binary`.
///
/// A moment with a zone may come as its text in the session's zone.
///
/// # Errors
/// 22P05 and 22P02 for a `json` that `jsonb` does not take.
pub fn from_value(value: &Datum, ty: Type, binary: bool) -> Result<String, SqlError> {
    let mut out = String::new();
    write(value, ty, binary, &mut out)?;
    Ok(out)
}

fn write(value: &Datum, ty: Type, binary: bool, out: &mut String) -> Result<(), SqlError> {
    match (value, ty) {
        (Datum::Null, _) => out.push_str("null"),
        (Datum::Bool(value), _) => out.push_str(if *value { "true" } else { "false" }),
        (Datum::Jsonb(value), _) => out.push_str(value.as_str()),
        (Datum::Text(text), Type::Json) if binary => {
            out.push_str(Jsonb::parse(text)?.as_str());
        }
        (Datum::Text(text), Type::Json) => out.push_str(text),
        (Datum::Array(_) | Datum::Grid(_), _) => {
            let comma = if binary { ", " } else { "," };
            let lengths = lengths(value);
            let items = value.as_array().unwrap_or_default();
            let element = ty.element().unwrap_or(Type::Text);
            write_array(
                &lengths,
                items,
                &mut |item, out| write(item, element, binary, out),
                comma,
                out,
            )?;
        }
        (value, _) if ty.is_numeric() => {
            let shown = text::to_string(ty, value);
            // NaN and the infinities are no numbers of JSON.
            if !shown.ends_with(|c: char| c.is_ascii_digit()) {
                write_string(&shown, out);
            } else if binary {
                out.push_str(Jsonb::parse(&shown)?.as_str());
            } else {
                out.push_str(&shown);
            }
        }
        (value, _) if ty.is_datetime() => write_string(&moment(value, ty), out),
        (value, _) => write_string(&text::to_string(ty, value), out),
    }
    Ok(())
}

/// The lengths of the dimensions of an array.
fn lengths(array: &Datum) -> Vec<usize> {
    let shape = array.shape().unwrap_or_default();
    let lengths = shape.dimensions().iter().map(|one| one.length as usize);
    lengths.collect()
}

type WriteItem<'a> = dyn FnMut(&Datum, &mut String) -> Result<(), SqlError> + 'a;

/// Writes items as arrays in arrays.
fn write_array(
    lengths: &[usize],
    items: &[Datum],
    item: &mut WriteItem<'_>,
    comma: &str,
    out: &mut String,
) -> Result<(), SqlError> {
    out.push('[');
    let (count, inner) = match lengths {
        [] => (0, &[][..]),
        [count, inner @ ..] => (*count, inner),
    };
    let size = items.len() / count.max(1);
    for (i, part) in items.chunks(size.max(1)).enumerate() {
        out.push_str(if i > 0 { comma } else { "" });
        match inner {
            [] => item(&part[0], out)?,
            inner => write_array(
                inner,
                part,
                item,
                if comma == ", " { comma } else { "," },
                out,
            )?,
        }
    }
    out.push(']');
    Ok(())
}

/// A date or moment in the form of ISO 8601.
fn moment(value: &Datum, ty: Type) -> String {
    let mut shown = text::to_string(ty, value);
    let before_christ = shown.ends_with(" BC");
    if before_christ {
        shown.truncate(shown.len() - 3);
    }
    if let Some(at) = shown.find(' ') {
        shown.replace_range(at..=at, "T");
        // The zone has its minutes always.
        let zone = shown[at..].rfind(['+', '-']).map(|zone| at + zone);
        if let (Type::Timestamptz(_), Some(zone)) = (ty, zone)
            && !shown[zone..].contains(':')
        {
            shown.push_str(":00");
        }
    }
    if before_christ {
        shown.push_str(" BC");
    }
    shown
}

/// `array_to_json(array, true)`.
pub(super) fn array_lines(value: &Datum, element: Type) -> Result<String, SqlError> {
    let mut out = String::new();
    let items = value.as_array().unwrap_or_default();
    let mut item = |item: &Datum, out: &mut String| write(item, element, false, out);
    write_array(&lengths(value), items, &mut item, ",\n ", &mut out)?;
    Ok(out)
}

/// The JSON of an argument; NULL is null.
fn part(value: &Datum) -> &str {
    value.as_json().unwrap_or("null")
}

/// What is put together of parts may nest deeper than they do.
fn bounded(text: String) -> Result<String, SqlError> {
    Ok(json::bounded(text)?)
}

/// `json_build_object`.
pub(super) fn object(args: &[Datum], ty: Type) -> Result<String, SqlError> {
    if args.len() % 2 == 1 {
        let name = if ty == Type::Jsonb {
            "jsonb_build_object"
        } else {
            "json_build_object"
        };
        let hint =
            format!("The arguments of {name}() must consist of alternating keys and values.");
        return Err(invalid("argument list must have even number of elements").hint(hint));
    }
    for (i, pair) in args.chunks_exact(2).enumerate() {
        if pair[0].is_null() {
            let message = format!("argument {} cannot be null", 2 * i + 1);
            let hint = "Object keys should be text.";
            return Err(match ty {
                Type::Jsonb => invalid(format!("argument {}: key must not be null", 2 * i + 1)),
                _ => invalid(message).hint(hint),
            });
        }
    }
    let pairs = args
        .chunks_exact(2)
        .map(|pair| (pair[0].as_str().unwrap_or(""), part(&pair[1])));
    bounded(object_of(pairs, ty, ("{", " : ", ", ", "}")))
}

/// An object; `signs` are those of `json`.
fn object_of<'a>(
    pairs: impl Iterator<Item = (&'a str, &'a str)>,
    ty: Type,
    signs: (&str, &str, &str, &str),
) -> String {
    if ty == Type::Jsonb {
        let mut out = ObjectBuilder::default();
        pairs.for_each(|(key, value)| out.push(key, value));
        return out.finish();
    }
    let (open, colon, comma, close) = signs;
    let mut out = String::from(open);
    for (i, (key, value)) in pairs.enumerate() {
        out.push_str(if i > 0 { comma } else { "" });
        write_string(key, &mut out);
        out.push_str(colon);
        out.push_str(value);
    }
    out.push_str(close);
    out
}

/// `json_build_array`.
pub(super) fn array(args: &[Datum], _: Type) -> Result<String, SqlError> {
    let mut out = ArrayBuilder::default();
    args.iter().for_each(|arg| out.push(part(arg)));
    bounded(out.finish())
}

/// A row of names and values.
pub(super) fn row(args: &[Datum], ty: Type, lines: bool) -> Result<String, SqlError> {
    let pairs = args
        .chunks_exact(2)
        .map(|pair| (pair[0].as_str().unwrap_or(""), part(&pair[1])));
    let comma = if lines { ",\n " } else { "," };
    bounded(object_of(pairs, ty, ("{", ":", comma, "}")))
}

fn null_key() -> SqlError {
    SqlError::new(
        SqlState::NULL_NOT_ALLOWED,
        "null value not allowed for object key",
    )
}

/// `json_object`.
pub(super) fn object_of_arrays(args: &[Datum], ty: Type) -> Result<String, SqlError> {
    let subscript = |message: &str| SqlError::new(SqlState::ARRAY_SUBSCRIPT, message);
    let items = |i: usize| args[i].as_array().unwrap_or(&[]);
    let wrong = || subscript("wrong number of array subscripts");
    let pairs: Vec<(&Datum, &Datum)> = match args {
        [only] => {
            match lengths(only).as_slice() {
                [] | [_] | [_, 2] => {}
                [_, _] => return Err(subscript("array must have two columns")),
                _ => return Err(wrong()),
            }
            if items(0).len() % 2 == 1 {
                return Err(subscript("array must have even number of elements"));
            }
            let pairs = items(0).chunks_exact(2);
            pairs.map(|pair| (&pair[0], &pair[1])).collect()
        }
        _ => {
            if args.iter().any(|array| lengths(array).len() > 1) {
                return Err(wrong());
            }
            if items(0).len() != items(1).len() {
                return Err(subscript("mismatched array dimensions"));
            }
            items(0).iter().zip(items(1)).collect()
        }
    };
    let mut texts = Vec::with_capacity(pairs.len());
    for (key, value) in pairs {
        let key = key.as_str().ok_or_else(null_key)?;
        texts.push((key, from_value(value, Type::Text, true)?));
    }
    let pairs = texts.iter().map(|(key, value)| (*key, value.as_str()));
    Ok(object_of(pairs, ty, ("{", " : ", ", ", "}")))
}

/// `json_agg` of values in JSON; `lines`: each on a line of its own.
///
/// # Errors
/// 54001 if it nests too deeply.
pub fn aggregated_array<'a>(
    values: impl Iterator<Item = &'a Datum>,
    ty: Type,
    lines: bool,
) -> Result<Datum, SqlError> {
    if !lines || ty == Type::Jsonb {
        let mut out = ArrayBuilder::default();
        values.for_each(|value| out.push(part(value)));
        return Ok(super::datum(bounded(out.finish())?, ty));
    }
    let mut out = String::from("[");
    for (i, value) in values.enumerate() {
        out.push_str(if i > 0 { ", \n " } else { "" });
        out.push_str(part(value));
    }
    out.push(']');
    Ok(super::datum(bounded(out)?, ty))
}

/// `json_object_agg` of keys and values in turn.
///
/// # Errors
/// 22023 for a key that is NULL, 54001 if it nests too deeply.
pub fn aggregated_object(items: &[Datum], ty: Type) -> Result<Datum, SqlError> {
    let pairs = items.chunks_exact(2);
    let pairs = pairs.map(|pair| (pair[0].as_str().unwrap_or(""), part(&pair[1])));
    let text = object_of(pairs, ty, ("{ ", " : ", ", ", " }"));
    Ok(super::datum(bounded(text)?, ty))
}
