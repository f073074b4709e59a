//! Objects and arrays in normal form from parts that are in normal form, and strings.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::ops::Range;

/// Appends a string as JSON has it, in quotes.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest
        .bytes()
        .position(|b| matches!(b, b'"' | b'\\' | 0..=31))
    {
        out.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            8 => out.push_str("\\b"),
            12 => out.push_str("\\f"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            other => {
                let _ = write!(out, "\\u{other:04x}");
            }
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

/// Gathers the members of an object.
#[derive(Clone, Debug, Default)]
pub struct ObjectBuilder {
    /// Key, and where its value is in `values`.
    members: Vec<(String, Range<usize>)>,
    values: String,
}

impl ObjectBuilder {
    /// Adds a member; of several with one key the last one counts.
    pub fn push(&mut self, key: &str, value: &str) {
        self.push_owned(String::from(key), value);
    }

    pub(crate) fn push_owned(&mut self, key: String, value: &str) {
        let start = self.values.len();
        self.values.push_str(value);
        self.members.push((key, start..self.values.len()));
    }

    /// Appends the object: keys by length, then by bytes.
    pub fn write(mut self, out: &mut String) {
        // Stable, so that of one key the last value is the last one.
        self.members
            .sort_by(|(a, _), (b, _)| (a.len(), a).cmp(&(b.len(), b)));
        out.reserve(self.values.len() + 2);
        out.push('{');
        let mut first = true;
        for (i, (key, value)) in self.members.iter().enumerate() {
            if self.members.get(i + 1).is_some_and(|(next, _)| next == key) {
                continue;
            }
            if !first {
                out.push_str(", ");
            }
            first = false;
            write_string(key, out);
            out.push_str(": ");
            out.push_str(&self.values[value.clone()]);
        }
        out.push('}');
    }

    /// The object as text.
    pub fn finish(self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }
}

/// Gathers the elements of an array.
#[derive(Clone, Debug)]
pub struct ArrayBuilder {
    text: String,
}

impl Default for ArrayBuilder {
    fn default() -> ArrayBuilder {
        ArrayBuilder {
            text: String::from("["),
        }
    }
}

impl ArrayBuilder {
    /// Adds an element.
    pub fn push(&mut self, value: &str) {
        if self.text.len() > 1 {
            self.text.push_str(", ");
        }
        self.text.push_str(value);
    }

    /// The array as text.
    pub fn finish(mut self) -> String {
        self.text.push(']');
        self.text
    }
}
