//! Where a part of a value lies in PostgreSQL's binary form.
//!
//! A container there is a header of 4 bytes, 4 bytes for each key and value, and these one behind
//! the other: first all keys, then the values. Numbers and containers begin at multiples of 4
//! bytes; null and truth values take none.

use json::{Kind, Value};

/// The offset of `part`, a slice of the text of `whole`; 0 if it is none.
pub(super) fn offset(whole: Value<'_>, part: Value<'_>) -> usize {
    let (outer, inner) = (whole.text(), part.text());
    let at = (inner.as_ptr() as usize).wrapping_sub(outer.as_ptr() as usize);
    if at == 0 || at >= outer.len() {
        return 0;
    }
    let mut size = 0;
    find(whole, Some(inner.as_ptr() as usize), &mut size);
    size
}

/// Adds the bytes of a value up to the part that begins at the address `wanted`; whether it was
/// found.
fn find(value: Value<'_>, wanted: Option<usize>, size: &mut usize) -> bool {
    match value.kind() {
        Kind::Null | Kind::Bool => {}
        Kind::String => *size += value.string().map_or(0, |text| text.len()),
        Kind::Number => {
            *size = size.next_multiple_of(4) + number_bytes(value.text());
        }
        Kind::Array | Kind::Object => {
            *size = size.next_multiple_of(4);
            if wanted == Some(value.text().as_ptr() as usize) {
                return true;
            }
            let is_object = value.kind() == Kind::Object;
            let entries = value.count() * if is_object { 2 } else { 1 };
            *size += 4 + 4 * entries;
            for (key, _) in value.members() {
                find(key, None, size);
            }
            let members = value.members().map(|(_, value)| value);
            for part in members.chain(value.items()) {
                if find(part, wanted, size) {
                    return true;
                }
            }
        }
    }
    false
}

/// Bytes of a `numeric`: its length, a header, and two for each group of four digits from the
/// first that is not zero to the last.
fn number_bytes(text: &str) -> usize {
    let digits = text.trim_start_matches('-');
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole_groups = whole.len().div_ceil(4);
    let lead = whole_groups * 4 - whole.len();
    let padded = core::iter::repeat_n(b'0', lead)
        .chain(whole.bytes())
        .chain(fraction.bytes());
    // Numbers of the first and the last group that are not zero.
    let (mut first, mut last) = (None, 0);
    for (i, digit) in padded.enumerate() {
        if digit != b'0' {
            first.get_or_insert(i / 4);
            last = i / 4;
        }
    }
    let count = first.map_or(0, |first| last - first + 1);
    let weight = first.map_or(0, |first| whole_groups as i64 - 1 - first as i64);
    let is_short = fraction.len() <= 63 && (-64..=63).contains(&weight);
    4 + if is_short { 2 } else { 4 } + 2 * count
}
