//! A place in a value that is set by subscripts, with what is missing on the way to it.

use crate::build::{ArrayBuilder, ObjectBuilder};
use crate::value::{Kind, Value, index_of};
use crate::{DEPTH_MAX, JsonError, bounded};
use alloc::format;
use alloc::string::String;

/// Elements that arrays on the way are filled up to, at most in all.
const ITEMS_MAX: i64 = 1 << 22;

/// The value with `new` at the path; of no value, an array if the path starts with a number
/// (`of_items`), else an object, is changed. Arrays are filled with nulls up to the place.
///
/// # Errors
/// 22023 for a scalar on the way and for a place before an array, 22P02 for a step into an array
/// that is no number, 54000 for an array that is too long, 54001 for a result that nests too
/// deeply.
pub fn assign(
    text: Option<&str>,
    path: &[&str],
    of_items: bool,
    new: &str,
) -> Result<String, JsonError> {
    if path.len() > DEPTH_MAX {
        return Err(JsonError::new("54001", "stack depth limit exceeded"));
    }
    let filled = path.iter().filter_map(|step| index_of(step));
    if filled.fold(0i64, |sum, index| sum.saturating_add(index.max(0))) > ITEMS_MAX {
        return Err(JsonError::new("54000", "a jsonb array would be too long"));
    }
    let empty = if of_items { "[]" } else { "{}" };
    bounded(set(Value::new(text.unwrap_or(empty)), path, 0, new)?)
}

fn set(value: Value<'_>, path: &[&str], level: usize, new: &str) -> Result<String, JsonError> {
    let Some(step) = path.get(level) else {
        return Ok(new.into());
    };
    match value.kind() {
        Kind::Object => {
            let mut out = ObjectBuilder::default();
            let mut found = false;
            for (key, member) in value.members() {
                let key = key.string()?;
                if key == *step {
                    found = true;
                    out.push(&key, &set(member, path, level + 1, new)?);
                } else {
                    out.push(&key, member.text());
                }
            }
            if !found {
                out.push(step, &made(&path[level + 1..], new));
            }
            Ok(out.finish())
        }
        Kind::Array => set_item(value, path, level, new),
        _ => {
            let mut error = JsonError::new("22023", "cannot replace existing key");
            error.detail =
                "The path assumes key is a composite object, but it is a scalar value.".into();
            Err(error)
        }
    }
}

fn set_item(value: Value<'_>, path: &[&str], level: usize, new: &str) -> Result<String, JsonError> {
    let (step, at) = (path[level], level + 1);
    let index = index_of(step).ok_or_else(|| {
        let message = format!("path element at position {at} is not an integer: \"{step}\"");
        JsonError::new("22P02", message)
    })?;
    let count = value.count() as i64;
    let place = if index < 0 { count + index } else { index };
    if place < 0 {
        let message = format!("path element at position {at} is out of range: {index}");
        return Err(JsonError::new("22023", message));
    }
    let mut out = ArrayBuilder::default();
    for (at, item) in (0..).zip(value.items()) {
        if at == place {
            out.push(&set(item, path, level + 1, new)?);
        } else {
            out.push(item.text());
        }
    }
    if place >= count {
        fill(&mut out, place - count);
        out.push(&made(&path[level + 1..], new));
    }
    Ok(out.finish())
}

fn fill(out: &mut ArrayBuilder, count: i64) {
    (0..count).for_each(|_| out.push("null"));
}

/// What the rest of a path leads to where nothing is: arrays for numbers, objects for keys.
fn made(path: &[&str], new: &str) -> String {
    let mut value: String = new.into();
    for step in path.iter().rev() {
        value = match index_of(step) {
            Some(index) => {
                let mut out = ArrayBuilder::default();
                fill(&mut out, index.max(0));
                out.push(&value);
                out.finish()
            }
            None => {
                let mut out = ObjectBuilder::default();
                out.push(step, &value);
                out.finish()
            }
        };
    }
    value
}
