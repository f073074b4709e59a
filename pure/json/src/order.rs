//! Comparison and containment of values in normal form.

use crate::value::{Kind, Value};
use crate::{DEPTH_MAX, number};
use core::cmp::Ordering;

/// Order of two values: Object > Array > Boolean > Number > String > Null; containers by their
/// number of parts and then part by part; the empty array, unless inside of another value, before
/// everything.
pub fn compare(a: &str, b: &str) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let rank = |text: &str| if text == "[]" { 0 } else { 1 };
    rank(a)
        .cmp(&rank(b))
        .then_with(|| compare_values(Value::new(a), Value::new(b), 0))
}

fn strings(a: Value<'_>, b: Value<'_>) -> Ordering {
    match (a.string(), b.string()) {
        (Ok(a), Ok(b)) => a.as_bytes().cmp(b.as_bytes()),
        _ => a.text().cmp(b.text()),
    }
}

fn compare_values(a: Value<'_>, b: Value<'_>, depth: usize) -> Ordering {
    let kinds = a.kind().cmp(&b.kind());
    if kinds.is_ne() || depth > DEPTH_MAX {
        return kinds;
    }
    if a.text() == b.text() {
        return Ordering::Equal;
    }
    match a.kind() {
        Kind::Null => Ordering::Equal,
        Kind::String => strings(a, b),
        Kind::Number => number::compare(a.text(), b.text()),
        Kind::Bool => a.is_true().cmp(&b.is_true()),
        Kind::Array => a.count().cmp(&b.count()).then_with(|| {
            let pairs = a.items().zip(b.items());
            let mut orders = pairs.map(|(a, b)| compare_values(a, b, depth + 1));
            orders
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        }),
        Kind::Object => a.count().cmp(&b.count()).then_with(|| {
            let pairs = a.members().zip(b.members());
            let mut orders = pairs.map(|((key_a, a), (key_b, b))| {
                strings(key_a, key_b).then_with(|| compare_values(a, b, depth + 1))
            });
            orders
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        }),
    }
}

/// Whether `whole` contains `part` (`@>`): each member and element of it somewhere, at the same
/// depth; and an array a scalar.
pub fn contains(whole: &str, part: &str) -> bool {
    let (whole, part) = (Value::new(whole), Value::new(part));
    match (whole.kind(), part.kind()) {
        (Kind::Array, kind) if kind.is_scalar() => {
            whole.items().any(|item| contains_value(item, part, 0))
        }
        _ => contains_value(whole, part, 0),
    }
}

fn contains_value(whole: Value<'_>, part: Value<'_>, depth: usize) -> bool {
    let kind = part.kind();
    if whole.kind() != kind || depth > DEPTH_MAX {
        return false;
    }
    match kind {
        Kind::Object => part.members().all(|(key, part)| {
            let whole = key.string().ok().and_then(|key| whole.member(&key));
            whole.is_some_and(|whole| contains_value(whole, part, depth + 1))
        }),
        Kind::Array => part.items().all(|part| {
            whole
                .items()
                .any(|item| contains_value(item, part, depth + 1))
        }),
        _ => compare_values(whole, part, depth).is_eq(),
    }
}
