//! Members of objects as values of columns: `json_to_record` and its like.
//!
//! A value becomes the text that the type of its column reads, so that what can be read, and what
//! fails how, is that of the type.

use super::datum;
use base::{Datum, Jsonb, SqlError, SqlState, Type};
use json::{Kind, Value};
use serde::{Deserialize, Serialize};

/// What a member is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FieldForm {
    /// The text of a scalar.
    Text,
    /// JSON.
    Json,
    /// The text of an array; `json`: its elements are JSON.
    Array {
        /// Strings keep their quotes.
        json: bool,
    },
}

/// A member of an object; NULL if it is null or absent. Arguments: object, key.
pub(super) fn field(form: FieldForm, args: &[Datum], ty: Type) -> Result<Datum, SqlError> {
    let (Some(object), Some(key)) = (args[0].as_json(), args[1].as_str()) else {
        return Ok(Datum::Null);
    };
    let found = Value::new(object).member(key);
    let Some(value) = found.filter(|value| value.kind() != Kind::Null) else {
        return Ok(Datum::Null);
    };
    match form {
        FieldForm::Json => {
            let is_normal = matches!(args[0], Datum::Jsonb(_)) || ty != Type::Jsonb;
            Ok(match is_normal {
                true => datum(value.text(), ty),
                false => Datum::Jsonb(Jsonb::parse(value.text())?),
            })
        }
        FieldForm::Array { json } if value.kind() != Kind::String => {
            let mut array = Array {
                key,
                json,
                items: Vec::new(),
                dimensions: None,
                lengths: Vec::new(),
                sizes: vec![0],
            };
            array.read(value, 0)?;
            Ok(Datum::from(&*array.text()))
        }
        FieldForm::Text | FieldForm::Array { .. } => {
            let text = value.shown()?;
            Ok(text.map_or(Datum::Null, |text| Datum::from(&*text)))
        }
    }
}

/// An array that is being read.
struct Array<'a> {
    key: &'a str,
    json: bool,
    items: Vec<Option<String>>,
    /// Number of dimensions, once the first element that is no array has been seen.
    dimensions: Option<usize>,
    /// Length of each dimension, once its first part is complete.
    lengths: Vec<Option<usize>>,
    /// Elements so far of the array that is read in each dimension.
    sizes: Vec<usize>,
}

impl Array<'_> {
    fn invalid(message: &str) -> SqlError {
        SqlError::new(SqlState::INVALID_TEXT, message)
    }

    /// Reads a value that has to be an array, below `level` others.
    fn read(&mut self, value: Value<'_>, level: usize) -> Result<(), SqlError> {
        if value.kind() != Kind::Array {
            let key = self.key;
            let hint = match level {
                0 => format!("See the value of key \"{key}\"."),
                _ => {
                    let places = self.sizes[..level].iter().map(|size| format!("[{size}]"));
                    let places: String = places.collect();
                    format!("See the array element {places} of key \"{key}\".")
                }
            };
            return Err(Array::invalid("expected JSON array").hint(hint));
        }
        let first = value.items().next();
        if self.dimensions.is_none() && first.is_none_or(|first| first.kind() != Kind::Array) {
            self.dimensions = Some(level + 1);
        }
        for item in value.items() {
            if self.dimensions.is_some_and(|count| level + 1 >= count) {
                self.items.push(match item.kind() {
                    Kind::Null => None,
                    Kind::String if !self.json => Some(item.string()?.into_owned()),
                    _ => Some(item.text().into()),
                });
            } else {
                if self.sizes.len() == level + 1 {
                    self.sizes.push(0);
                }
                self.read(item, level + 1)?;
                self.close(level + 1)?;
            }
            self.sizes[level] += 1;
        }
        if level == 0 {
            self.close(0)?;
        }
        Ok(())
    }

    /// An array of this level is complete: all of them have the same length.
    fn close(&mut self, level: usize) -> Result<(), SqlError> {
        let size = core::mem::take(&mut self.sizes[level]);
        if self.lengths.len() <= level {
            self.lengths.resize(level + 1, None);
        }
        match self.lengths[level].replace(size) {
            Some(known) if known != size => {
                let detail =
                    "Multidimensional arrays must have sub-arrays with matching dimensions.";
                Err(Array::invalid("malformed JSON array").detail(detail))
            }
            _ => Ok(()),
        }
    }

    /// The text form.
    fn text(&self) -> String {
        let lengths: Vec<usize> = self.lengths.iter().map(|size| size.unwrap_or(0)).collect();
        if self.items.is_empty() || lengths.contains(&0) {
            return "{}".into();
        }
        let mut out = String::new();
        for (i, item) in self.items.iter().enumerate() {
            // A brace for each dimension that begins or ends here.
            let mut width = 1;
            let widths = lengths.iter().rev().map(|length| {
                width *= length;
                width
            });
            let widths: Vec<usize> = widths.collect();
            if i > 0 {
                out.push(',');
            }
            out.extend(widths.iter().filter(|w| i % **w == 0).map(|_| '{'));
            match item {
                None => out.push_str("NULL"),
                Some(text) => write_item(text, &mut out),
            }
            out.extend(widths.iter().filter(|w| (i + 1) % **w == 0).map(|_| '}'));
        }
        out
    }
}

fn write_item(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}
