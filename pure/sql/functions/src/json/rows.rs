//! Functions that give a row for each part of a value.

use super::{datum, invalid};
use base::{Datum, SqlError, Type};
use json::{Kind, Value};

/// Functions in FROM; `ty` is that of the argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JsonRows {
    /// `json_each`, `json_each_text`: key and value.
    Each {
        /// Of the argument.
        ty: Type,
        /// Values are text.
        text: bool,
    },
    /// `json_array_elements`, `json_array_elements_text`
    Elements {
        /// Of the argument.
        ty: Type,
        /// Values are text.
        text: bool,
    },
    /// `json_object_keys`
    Keys {
        /// Of the argument.
        ty: Type,
    },
}

impl JsonRows {
    /// The function of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<JsonRows> {
        let (ty, rest) = match name.strip_prefix("jsonb_") {
            Some(rest) => (Type::Jsonb, rest),
            None => (Type::Json, name.strip_prefix("json_")?),
        };
        Some(match rest {
            "each" => JsonRows::Each { ty, text: false },
            "each_text" => JsonRows::Each { ty, text: true },
            "array_elements" => JsonRows::Elements { ty, text: false },
            "array_elements_text" => JsonRows::Elements { ty, text: true },
            "object_keys" => JsonRows::Keys { ty },
            _ => return None,
        })
    }

    /// The type of the argument.
    #[must_use]
    pub fn argument(self) -> Type {
        match self {
            JsonRows::Each { ty, .. } | JsonRows::Elements { ty, .. } | JsonRows::Keys { ty } => ty,
        }
    }

    /// Names and types of the columns; a column without name is called as the function is.
    #[must_use]
    pub fn columns(self) -> Vec<(Option<&'static str>, Type)> {
        let value = |ty, text| if text { Type::Text } else { ty };
        match self {
            JsonRows::Each { ty, text } => {
                vec![(Some("key"), Type::Text), (Some("value"), value(ty, text))]
            }
            JsonRows::Elements { ty, text } => vec![(Some("value"), value(ty, text))],
            JsonRows::Keys { .. } => vec![(None, Type::Text)],
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        let (ty, rest, text) = match self {
            JsonRows::Each { ty, text } => (ty, "each", text),
            JsonRows::Elements { ty, text } => (ty, "array_elements", text),
            JsonRows::Keys { ty } => (ty, "object_keys", false),
        };
        format!("{}_{rest}{}", ty.name(), if text { "_text" } else { "" })
    }

    /// The refusal of a value that has no such parts.
    fn check(self, kind: Kind) -> Result<(), SqlError> {
        let name = self.name();
        let binary = self.argument() == Type::Jsonb;
        let message = match (self, kind) {
            (JsonRows::Elements { .. }, Kind::Array) => return Ok(()),
            (JsonRows::Each { .. } | JsonRows::Keys { .. }, Kind::Object) => return Ok(()),
            (JsonRows::Elements { .. }, Kind::Object) if binary => {
                "cannot extract elements from an object".into()
            }
            (JsonRows::Elements { .. }, Kind::Object) => {
                format!("cannot call {name} on a non-array")
            }
            (JsonRows::Elements { .. }, _) if binary => {
                "cannot extract elements from a scalar".into()
            }
            (JsonRows::Each { .. }, _) if binary => format!("cannot call {name} on a non-object"),
            (JsonRows::Each { .. }, Kind::Array) => {
                "cannot deconstruct an array as an object".into()
            }
            (JsonRows::Each { .. }, _) => "cannot deconstruct a scalar".into(),
            (JsonRows::Keys { .. }, Kind::Array) => format!("cannot call {name} on an array"),
            (JsonRows::Keys { .. } | JsonRows::Elements { .. }, _) => {
                format!("cannot call {name} on a scalar")
            }
        };
        Err(invalid(message))
    }
}

/// How far the parts of a value have been given.
#[derive(Clone, Debug)]
pub struct RowsCursor {
    rows: JsonRows,
    value: Datum,
    at: usize,
}

impl RowsCursor {
    /// Before the first part of a value; NULL has none.
    ///
    /// # Errors
    /// 22023 for a value of another kind.
    pub fn new(rows: JsonRows, value: Datum) -> Result<RowsCursor, SqlError> {
        if let Some(text) = value.as_json() {
            rows.check(Value::new(text).kind())?;
        }
        Ok(RowsCursor { rows, value, at: 0 })
    }

    /// The values of the next row.
    ///
    /// # Errors
    /// 22P05 and 22P02 for escapes that stand for no character.
    pub fn next_row(&mut self) -> Result<Option<Vec<Datum>>, SqlError> {
        let Some(text) = self.value.as_json() else {
            return Ok(None);
        };
        let whole = Value::new(text);
        let Some(part) = whole.part(&mut self.at) else {
            return Ok(None);
        };
        let given = |value: Value<'_>, ty: Type, text: bool| match text {
            false => Ok(datum(value.text(), ty)),
            true => {
                let shown = value.shown()?;
                Ok::<Datum, SqlError>(shown.map_or(Datum::Null, |text| Datum::from(&*text)))
            }
        };
        Ok(Some(match self.rows {
            JsonRows::Elements { ty, text } => vec![given(part, ty, text)?],
            JsonRows::Keys { .. } => {
                let key = Datum::from(&*part.string()?);
                whole.part(&mut self.at);
                vec![key]
            }
            JsonRows::Each { ty, text } => {
                let key = Datum::from(&*part.string()?);
                match whole.part(&mut self.at) {
                    Some(value) => vec![key, given(value, ty, text)?],
                    None => return Ok(None),
                }
            }
        }))
    }
}
