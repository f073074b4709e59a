//! Functions that give a row for each part of a value.

use super::{datum, invalid, path_items};
use base::zone::Zone;
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
    /// The objects whose members are columns: `json_to_record`, `json_to_recordset`,
    /// `json_populate_record`, `json_populate_recordset`.
    Records {
        /// Of the argument.
        ty: Type,
        /// The argument is an array of objects.
        set: bool,
        /// Members that are absent come from a row.
        populate: bool,
    },
    /// `jsonb_path_query`; `zoned`: `jsonb_path_query_tz`.
    Path {
        /// Moments are compared by the session's zone.
        zoned: bool,
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
            "to_record" | "to_recordset" | "populate_record" | "populate_recordset" => {
                JsonRows::Records {
                    ty,
                    set: rest.ends_with("set"),
                    populate: rest.starts_with("populate"),
                }
            }
            "path_query" if ty == Type::Jsonb => JsonRows::Path { zoned: false },
            "path_query_tz" if ty == Type::Jsonb => JsonRows::Path { zoned: true },
            _ => return None,
        })
    }

    /// The types of the arguments, and how many of them must be given.
    #[must_use]
    pub fn arguments(self) -> (Vec<Type>, usize) {
        match self {
            JsonRows::Path { .. } => {
                let types = [Type::Jsonb, Type::JsonPath, Type::Jsonb, Type::Bool];
                (types.to_vec(), 2)
            }
            other => (vec![other.argument()], 1),
        }
    }

    /// The type of the value that has the parts.
    fn argument(self) -> Type {
        match self {
            JsonRows::Each { ty, .. }
            | JsonRows::Elements { ty, .. }
            | JsonRows::Records { ty, .. }
            | JsonRows::Keys { ty } => ty,
            JsonRows::Path { .. } => Type::Jsonb,
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
            JsonRows::Path { .. } => vec![(None, Type::Jsonb)],
            JsonRows::Records { ty, .. } => vec![(None, ty)],
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        let (ty, rest, text) = match self {
            JsonRows::Each { ty, text } => (ty, "each", text),
            JsonRows::Elements { ty, text } => (ty, "array_elements", text),
            JsonRows::Keys { ty } => (ty, "object_keys", false),
            JsonRows::Records { ty, set, populate } => {
                let rest = match (set, populate) {
                    (false, false) => "to_record",
                    (true, false) => "to_recordset",
                    (false, true) => "populate_record",
                    (true, true) => "populate_recordset",
                };
                (ty, rest, false)
            }
            JsonRows::Path { zoned: false } => (Type::Jsonb, "path_query", false),
            JsonRows::Path { zoned: true } => (Type::Jsonb, "path_query_tz", false),
        };
        format!("{}_{rest}{}", ty.name(), if text { "_text" } else { "" })
    }

    /// The refusal of a value that has no such parts.
    fn check(self, kind: Kind) -> Result<(), SqlError> {
        let name = self.name();
        let binary = self.argument() == Type::Jsonb;
        let message = match (self, kind) {
            (JsonRows::Path { .. }, _) => return Ok(()),
            (JsonRows::Records { set: true, .. }, Kind::Array)
            | (JsonRows::Records { set: false, .. }, Kind::Object) => return Ok(()),
            (JsonRows::Records { set: false, .. }, Kind::Array) => {
                "cannot call populate_composite on an array".into()
            }
            (JsonRows::Records { set: false, .. }, _) => {
                "cannot call populate_composite on a scalar".into()
            }
            (JsonRows::Records { .. }, _) if binary => {
                format!("cannot call {name} on a non-array")
            }
            (JsonRows::Records { .. }, Kind::Object) => {
                format!("cannot call {name} on an object")
            }
            (JsonRows::Records { .. }, _) => format!("cannot call {name} on a scalar"),
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
    /// The items of a path that are still to be given.
    items: std::vec::IntoIter<Datum>,
}

impl RowsCursor {
    /// Before the first part of a value, or the first item of a path; NULL has none. The zone is
    /// the session's.
    ///
    /// # Errors
    /// 22023 for a value of another kind; those of paths.
    pub fn new(
        rows: JsonRows,
        args: Vec<Datum>,
        zone: Option<&str>,
    ) -> Result<RowsCursor, SqlError> {
        let items = match rows {
            JsonRows::Path { zoned } => {
                let zone = zoned.then(|| zone.unwrap_or("UTC"));
                let zone = zone.and_then(Zone::named);
                path_items(&args, zone.as_ref())?
            }
            _ => Vec::new(),
        };
        let value = args.into_iter().next().unwrap_or_default();
        if let Some(text) = value.as_json() {
            rows.check(Value::new(text).kind())?;
        }
        Ok(RowsCursor {
            rows,
            value,
            at: 0,
            items: items.into_iter(),
        })
    }

    /// The items of a path that are still to be given.
    #[must_use]
    pub fn items(&self) -> &[Datum] {
        self.items.as_slice()
    }

    /// The values of the next row.
    ///
    /// # Errors
    /// 22P05 and 22P02 for escapes that stand for no character.
    pub fn next_row(&mut self) -> Result<Option<Vec<Datum>>, SqlError> {
        if let JsonRows::Path { .. } = self.rows {
            return Ok(self.items.next().map(|item| vec![item]));
        }
        if let JsonRows::Records { set: false, .. } = self.rows {
            // One row, also of NULL.
            self.at += 1;
            let value = core::mem::take(&mut self.value);
            return Ok((self.at == 1).then(|| vec![value]));
        }
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
            JsonRows::Records { ty, .. } => {
                if part.kind() != Kind::Object {
                    let name = self.rows.name();
                    let message = format!("argument of {name} must be an array of objects");
                    return Err(invalid(message));
                }
                vec![datum(part.text(), ty)]
            }
            JsonRows::Elements { ty, text } => vec![given(part, ty, text)?],
            JsonRows::Keys { .. } | JsonRows::Path { .. } => {
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
