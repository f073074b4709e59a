//! The indented form of a value.

use crate::DEPTH_MAX;
use crate::value::{Kind, Value};
use alloc::string::String;

/// What `jsonb_pretty` gives; `None` if that is longer than `bytes_max`.
pub fn pretty(text: &str, bytes_max: usize) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    write(Value::new(text), 0, bytes_max, &mut out);
    (out.len() <= bytes_max).then_some(out)
}

fn line(depth: usize, out: &mut String) {
    out.push('\n');
    out.extend(core::iter::repeat_n("    ", depth));
}

fn write(value: Value<'_>, depth: usize, bytes_max: usize, out: &mut String) {
    if out.len() > bytes_max {
        return;
    }
    let kind = value.kind();
    if kind.is_scalar() || depth > DEPTH_MAX {
        return out.push_str(value.text());
    }
    out.push(if kind == Kind::Array { '[' } else { '{' });
    let mut first = true;
    let mut part = |out: &mut String| {
        if !first {
            out.push(',');
        }
        first = false;
        line(depth + 1, out);
    };
    for item in value.items() {
        part(out);
        write(item, depth + 1, bytes_max, out);
    }
    for (key, value) in value.members() {
        part(out);
        out.push_str(key.text());
        out.push_str(": ");
        write(value, depth + 1, bytes_max, out);
    }
    line(depth, out);
    out.push(if kind == Kind::Array { ']' } else { '}' });
}
