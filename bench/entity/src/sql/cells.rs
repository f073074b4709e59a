//! Values as the text of parameters and cells.

use super::Dialect;
use crate::value::{Kind, Value};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use workload::tpcc::text::push_int;

/// Appends a value as the text of a parameter. `false`: it is NULL, and nothing was appended.
pub fn push_text(value: &Value, dialect: Dialect, out: &mut Vec<u8>) -> bool {
    match value {
        Value::Null => return false,
        Value::Bool(value) => out.push(if *value { b'1' } else { b'0' }),
        Value::Int(value) => push_int(*value, out),
        Value::Real(value) => push(out, format_args!("{value:?}")),
        Value::Text(value) => out.extend_from_slice(value.as_bytes()),
        Value::Bytes(value) => {
            if dialect == Dialect::Postgres {
                out.extend_from_slice(b"\\x");
            }
            for byte in value {
                out.push(digit(byte >> 4));
                out.push(digit(byte & 15));
            }
        }
    }
    true
}

/// The value of a cell's text, `None` in `cell` being NULL. `None`: it is no value of the kind.
pub fn read_text(kind: Kind, dialect: Dialect, cell: Option<&[u8]>) -> Option<Value> {
    let Some(cell) = cell else {
        return Some(Value::Null);
    };
    match kind {
        Kind::Bool => match cell {
            b"t" | b"1" => Some(Value::Bool(true)),
            b"f" | b"0" => Some(Value::Bool(false)),
            _ => None,
        },
        Kind::Int => text(cell)?.parse().ok().map(Value::Int),
        Kind::Real => text(cell)?.parse().ok().map(Value::Real),
        Kind::Text => text(cell).map(|text| Value::Text(text.into())),
        Kind::Bytes => {
            let digits = match dialect {
                Dialect::Postgres => cell.strip_prefix(b"\\x")?,
                Dialect::MySql => cell,
            };
            let (pairs, rest) = digits.as_chunks::<2>();
            if !rest.is_empty() {
                return None;
            }
            let bytes = pairs
                .iter()
                .map(|&[high, low]| Some(value_of(high)? << 4 | value_of(low)?));
            bytes.collect::<Option<Vec<u8>>>().map(Value::Bytes)
        }
    }
}

fn text(cell: &[u8]) -> Option<&str> {
    core::str::from_utf8(cell).ok()
}

fn push(out: &mut Vec<u8>, arguments: core::fmt::Arguments<'_>) {
    let mut text = String::new();
    text.write_fmt(arguments).expect("a text takes all");
    out.extend_from_slice(text.as_bytes());
}

fn digit(value: u8) -> u8 {
    b"0123456789abcdef"[usize::from(value)]
}

fn value_of(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}
