//! Changed copies of values in normal form.

use crate::build::{ArrayBuilder, ObjectBuilder, write_string};
use crate::value::{Kind, Value, position};
use crate::{DEPTH_MAX, JsonError};
use alloc::format;
use alloc::string::String;

/// What happens at the end of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Edit<'a> {
    Delete,
    /// The value replaces one that is there.
    Replace(&'a str),
    /// The value replaces one that is there, or is added.
    Set(&'a str),
    InsertBefore(&'a str),
    InsertAfter(&'a str),
}

impl<'a> Edit<'a> {
    /// The value that is added where nothing is.
    fn added(self) -> Option<&'a str> {
        match self {
            Edit::Delete | Edit::Replace(_) => None,
            Edit::Set(value) | Edit::InsertBefore(value) | Edit::InsertAfter(value) => Some(value),
        }
    }
}

fn invalid(message: impl Into<String>) -> JsonError {
    JsonError::new("22023", message)
}

/// The value with the place that the path names changed; the path's steps may be NULL.
///
/// # Errors
/// 22023 for scalars and for a key that is inserted and there, 22P02 for an index that is none,
/// 22004 for a step that is NULL, 54001 for a result that nests too deeply.
pub fn edit_path(text: &str, path: &[Option<&str>], edit: Edit<'_>) -> Result<String, JsonError> {
    let value = Value::new(text);
    if value.kind().is_scalar() {
        let what = match edit {
            Edit::Delete => "delete",
            _ => "set",
        };
        return Err(invalid(format!("cannot {what} path in scalar")));
    }
    let unchanged = match edit {
        Edit::Delete | Edit::Replace(_) => value.count() == 0,
        _ => false,
    };
    if path.is_empty() || unchanged {
        return Ok(text.into());
    }
    let changed = edited(value, path, 0, edit)?;
    bounded(changed)
}

/// How deep containers lie in one another.
fn nests(text: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// A value that was put together from parts.
///
/// # Errors
/// 54001 if it nests too deeply.
pub fn bounded(text: String) -> Result<String, JsonError> {
    if nests(&text) > DEPTH_MAX {
        return Err(JsonError::new("54001", "stack depth limit exceeded"));
    }
    Ok(text)
}

fn edited(
    value: Value<'_>,
    path: &[Option<&str>],
    level: usize,
    edit: Edit<'_>,
) -> Result<String, JsonError> {
    let Some(step) = path.get(level).copied().flatten() else {
        let message = format!("path element at position {} is null", level + 1);
        return Err(JsonError::new("22004", message));
    };
    match value.kind() {
        Kind::Object => edited_object(value, step, path, level, edit),
        Kind::Array => edited_array(value, step, path, level, edit),
        _ => Ok(value.text().into()),
    }
}

fn edited_object(
    value: Value<'_>,
    step: &str,
    path: &[Option<&str>],
    level: usize,
    edit: Edit<'_>,
) -> Result<String, JsonError> {
    let is_last = level + 1 == path.len();
    let mut out = ObjectBuilder::default();
    let mut found = false;
    for (key, member) in value.members() {
        let key = key.string()?;
        if key != step {
            out.push(&key, member.text());
            continue;
        }
        found = true;
        if !is_last {
            out.push(&key, &edited(member, path, level + 1, edit)?);
            continue;
        }
        match edit {
            Edit::Delete => {}
            Edit::Set(new) | Edit::Replace(new) => out.push(&key, new),
            Edit::InsertBefore(_) | Edit::InsertAfter(_) => {
                let mut error = invalid("cannot replace existing key");
                error.hint = "Try using the function jsonb_set to replace key value.".into();
                return Err(error);
            }
        }
    }
    if let (false, true, Some(new)) = (found, is_last, edit.added()) {
        out.push(step, new);
    }
    Ok(out.finish())
}

fn edited_array(
    value: Value<'_>,
    step: &str,
    path: &[Option<&str>],
    level: usize,
    edit: Edit<'_>,
) -> Result<String, JsonError> {
    let Some(index) = crate::value::index_of(step) else {
        let at = level + 1;
        let message = format!("path element at position {at} is not an integer: \"{step}\"");
        return Err(JsonError::new("22P02", message));
    };
    let is_last = level + 1 == path.len();
    let added = edit.added().filter(|_| is_last);
    let count = value.count();
    let place = position(index, || count);
    let mut out = ArrayBuilder::default();
    let mut left = added;
    if place.is_none() || count == 0 {
        // Before the first one.
        left.take().iter().for_each(|new| out.push(new));
    }
    for (i, item) in value.items().enumerate() {
        if place != Some(i) {
            out.push(item.text());
        } else if !is_last {
            out.push(&edited(item, path, level + 1, edit)?);
        } else {
            left = None;
            match edit {
                Edit::Delete => {}
                Edit::Set(new) | Edit::Replace(new) => out.push(new),
                Edit::InsertBefore(new) => {
                    out.push(new);
                    out.push(item.text());
                }
                Edit::InsertAfter(new) => {
                    out.push(item.text());
                    out.push(new);
                }
            }
        }
    }
    left.iter().for_each(|new| out.push(new));
    Ok(out.finish())
}

/// `a - path`.
///
/// # Errors
/// As [`edit_path`].
pub fn delete_path(text: &str, path: &[Option<&str>]) -> Result<String, JsonError> {
    edit_path(text, path, Edit::Delete)
}

/// `value - key`, for each key: members with the key, elements that are this string.
///
/// # Errors
/// 22023 for scalars.
pub fn delete_key(text: &str, is_deleted: impl Fn(&str) -> bool) -> Result<String, JsonError> {
    let value = Value::new(text);
    if value.kind() == Kind::Object {
        let mut out = ObjectBuilder::default();
        for (key, member) in value.members() {
            let key = key.string()?;
            if !is_deleted(&key) {
                out.push(&key, member.text());
            }
        }
        return Ok(out.finish());
    }
    if value.kind() != Kind::Array {
        return Err(invalid("cannot delete from scalar"));
    }
    let mut out = ArrayBuilder::default();
    for item in value.items() {
        if item.kind() != Kind::String || !is_deleted(&item.string()?) {
            out.push(item.text());
        }
    }
    Ok(out.finish())
}

/// `value - index`.
///
/// # Errors
/// 22023 for all but arrays.
pub fn delete_index(text: &str, index: i64) -> Result<String, JsonError> {
    let value = Value::new(text);
    match value.kind() {
        Kind::Array => {}
        Kind::Object => return Err(invalid("cannot delete from object using integer index")),
        _ => return Err(invalid("cannot delete from scalar")),
    }
    let place = position(index, || value.count());
    let mut out = ArrayBuilder::default();
    for (i, item) in value.items().enumerate() {
        if place != Some(i) {
            out.push(item.text());
        }
    }
    Ok(out.finish())
}

/// `a || b`.
///
/// # Errors
/// 54001 if the result nests too deeply.
pub fn concat(a: &str, b: &str) -> Result<String, JsonError> {
    let sides = [Value::new(a), Value::new(b)];
    if sides.iter().all(|side| side.kind() == Kind::Object) {
        let mut out = ObjectBuilder::default();
        for (key, member) in sides.iter().flat_map(|side| side.members()) {
            out.push(&key.string()?, member.text());
        }
        return Ok(out.finish());
    }
    let mut out = ArrayBuilder::default();
    for side in sides {
        match side.kind() {
            Kind::Array => side.items().for_each(|item| out.push(item.text())),
            _ => out.push(side.text()),
        }
    }
    bounded(out.finish())
}

/// The value without the members that are null, on every level; `compact`: without blanks, as
/// `json` is written.
///
/// # Errors
/// 22P05 for escapes of `json` that stand for no character.
pub fn strip_nulls(text: &str, compact: bool) -> Result<String, JsonError> {
    let mut out = String::with_capacity(text.len());
    let (comma, colon) = if compact { (",", ":") } else { (", ", ": ") };
    strip(Value::new(text), comma, colon, 0, &mut out)?;
    Ok(out)
}

fn strip(
    value: Value<'_>,
    comma: &str,
    colon: &str,
    depth: usize,
    out: &mut String,
) -> Result<(), JsonError> {
    match value.kind() {
        Kind::Object if depth <= DEPTH_MAX => {
            out.push('{');
            let kept = value
                .members()
                .filter(|(_, member)| member.kind() != Kind::Null);
            for (i, (key, member)) in kept.enumerate() {
                out.push_str(if i > 0 { comma } else { "" });
                write_string(&key.string()?, out);
                out.push_str(colon);
                strip(member, comma, colon, depth + 1, out)?;
            }
            out.push('}');
        }
        Kind::Array if depth <= DEPTH_MAX => {
            out.push('[');
            for (i, item) in value.items().enumerate() {
                out.push_str(if i > 0 { comma } else { "" });
                strip(item, comma, colon, depth + 1, out)?;
            }
            out.push(']');
        }
        Kind::String => write_string(&value.string()?, out),
        _ => out.push_str(value.text()),
    }
    Ok(())
}
