//! Items of paths.

use super::moment::Moment;
use super::walk::{Failure, Outcome, soft};
use base::{Datum, Type, numeric, text};
use json::{Kind, Value};
use std::borrow::Cow;

/// An item that was gathered.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// A value of JSON.
    Json(Box<str>),
    /// A date or time, which no value of JSON is.
    Moment(Moment),
}

/// An item to look at.
#[derive(Clone, Copy)]
pub(super) enum View<'v> {
    Null,
    Json(Value<'v>),
    Moment(&'v Moment),
}

impl Item {
    pub(super) fn view(&self) -> View<'_> {
        match self {
            Item::Json(text) => View::Json(Value::new(text)),
            Item::Moment(moment) => View::Moment(moment),
        }
    }

    /// As JSON: a moment as a string.
    pub(super) fn into_text(self) -> Box<str> {
        match self {
            Item::Json(text) => text,
            Item::Moment(moment) => format!("\"{}\"", moment.text()).into(),
        }
    }
}

impl<'v> View<'v> {
    pub(super) fn to_item(self) -> Item {
        match self {
            View::Null => Item::Json("null".into()),
            View::Json(value) => Item::Json(value.text().into()),
            View::Moment(moment) => Item::Moment(*moment),
        }
    }

    /// The value, if it is one of JSON.
    pub(super) fn json(self) -> Option<Value<'v>> {
        match self {
            View::Null => Some(Value::new("null")),
            View::Json(value) => Some(value),
            View::Moment(_) => None,
        }
    }

    /// The kind of a value of JSON.
    pub(super) fn kind(self) -> Option<Kind> {
        self.json().map(Value::kind)
    }

    pub(super) fn type_name(self) -> &'static str {
        match self {
            View::Null => Kind::Null.name(),
            View::Json(value) => value.kind().name(),
            View::Moment(moment) => moment.type_name(),
        }
    }

    /// The characters of a string.
    pub(super) fn string(self) -> Outcome<Option<Cow<'v, str>>> {
        match self.json() {
            Some(value) if value.kind() == Kind::String => value
                .string()
                .map(Some)
                .map_err(|e| Failure::Hard(e.into())),
            _ => Ok(None),
        }
    }

    /// Bytes that are read to look at it.
    pub(super) fn bytes(self) -> usize {
        match self {
            View::Json(value) => value.text().len(),
            View::Null | View::Moment(_) => 8,
        }
    }
}

/// The numeric that an item is.
pub(super) fn number(view: View<'_>) -> Outcome<Option<Datum>> {
    match view.json() {
        Some(value) if value.kind() == Kind::Number => Ok(Some(numeric::parse(value.text())?)),
        _ => Ok(None),
    }
}

/// A numeric as JSON.
pub(super) fn number_text(value: &Datum) -> String {
    text::to_string(Type::Numeric(None), value)
}

/// `.double()`
pub(super) fn double(view: View<'_>) -> Outcome<String> {
    const NOT_NUMERIC: &[u8; 5] = b"22036";
    let parse = |text: &str| match text::parse(Type::Float8, text) {
        Ok(Datum::Float(value)) => Some(value).filter(|value| value.is_finite()),
        _ => None,
    };
    if let Some(string) = view.string()? {
        let value = parse(&string).and_then(|value| numeric::from_f64(value).ok());
        return match value {
            Some(value) => Ok(number_text(&value)),
            None => soft(
                NOT_NUMERIC,
                "string argument of jsonpath item method .double() is not a valid representation \
                 of a double precision number",
            ),
        };
    }
    match view.json().filter(|value| value.kind() == Kind::Number) {
        Some(value) if parse(value.text()).is_some() => Ok(value.text().into()),
        Some(_) => soft(
            NOT_NUMERIC,
            "numeric argument of jsonpath item method .double() is out of range for type double \
             precision",
        ),
        None => soft(
            NOT_NUMERIC,
            "jsonpath item method .double() can only be applied to a string or numeric value",
        ),
    }
}
