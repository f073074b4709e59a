//! Values of columns and their kinds.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The kind of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Truth value.
    Bool,
    /// Signed integer of 64 bits.
    Int,
    /// Floating point number of 64 bits, finite. No key and no index may have one.
    Real,
    /// Text in UTF-8. Without the character 0, which SQL servers do not store.
    Text,
    /// Any bytes.
    Bytes,
}

impl Kind {
    /// The kind's name in messages and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Bool => "bool",
            Kind::Int => "int",
            Kind::Real => "real",
            Kind::Text => "text",
            Kind::Bytes => "bytes",
        }
    }

    /// The kind of this name; `None` for an unknown one.
    pub fn parse(name: &str) -> Option<Kind> {
        [Kind::Bool, Kind::Int, Kind::Real, Kind::Text, Kind::Bytes]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// One value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing. Only nullable columns may have it, and a generated id before it is generated.
    Null,
    /// See [`Kind::Bool`].
    Bool(bool),
    /// See [`Kind::Int`].
    Int(i64),
    /// See [`Kind::Real`].
    Real(f64),
    /// See [`Kind::Text`].
    Text(String),
    /// See [`Kind::Bytes`].
    Bytes(Vec<u8>),
}

/// The values of an entity in the order of its type's columns.
pub type Row = Vec<Value>;

impl Value {
    /// The kind; `None` for [`Value::Null`].
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Value::Null => None,
            Value::Bool(_) => Some(Kind::Bool),
            Value::Int(_) => Some(Kind::Int),
            Value::Real(_) => Some(Kind::Real),
            Value::Text(_) => Some(Kind::Text),
            Value::Bytes(_) => Some(Kind::Bytes),
        }
    }

    /// The integer, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(value) => Some(*value),
            Value::Null | Value::Bool(_) | Value::Real(_) | Value::Text(_) | Value::Bytes(_) => {
                None
            }
        }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(value) => Some(value),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Real(_) | Value::Bytes(_) => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Real(value) => write!(f, "{value}"),
            Value::Text(value) => write!(f, "\"{value}\""),
            Value::Bytes(value) => write!(f, "{} bytes", value.len()),
        }
    }
}

/// A Rust type that a field of an entity may have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a column",
    note = "columns are bool, i32, u32, i64, f64, String, Vec<u8>, or Option of one of them"
)]
pub trait Field: Sized {
    /// The kind of its column.
    const KIND: Kind;
    /// Whether its column may be null.
    const NULLABLE: bool = false;

    /// The field as a value.
    fn to_value(&self) -> Value;

    /// As [`Field::to_value`], in the place of another value, whose memory is used again.
    fn write(&self, value: &mut Value) {
        *value = self.to_value();
    }

    /// The field from a value; `None` when the value is of another kind or out of range.
    fn from_value(value: Value) -> Option<Self>;
}

/// A field that may be part of a key: every kind but [`Kind::Real`], and not null.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an id or a column of an index",
    note = "keys are made of bool, i32, u32, i64, String and Vec<u8>"
)]
pub trait KeyField: Field {}

/// A field that a store can generate.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be generated",
    note = "generated ids are i32, u32 or i64"
)]
pub trait GeneratedField: KeyField {}

/// Compiles for a key's types only: what the derive checks fields with.
pub const fn is_key<T: KeyField>() {}

/// Compiles for a generated id's types only: what the derive checks fields with.
pub const fn is_generated<T: GeneratedField>() {}

macro_rules! field {
    ($type:ty, $kind:ident, $value:ident => $to:expr, $inner:ident => $from:expr) => {
        impl Field for $type {
            const KIND: Kind = Kind::$kind;

            fn to_value(&self) -> Value {
                let $value = self;
                Value::$kind($to)
            }

            fn from_value(value: Value) -> Option<Self> {
                match value {
                    Value::$kind($inner) => $from,
                    _ => None,
                }
            }
        }
    };
}

field!(bool, Bool, value => *value, inner => Some(inner));
field!(i32, Int, value => i64::from(*value), inner => inner.try_into().ok());
field!(u32, Int, value => i64::from(*value), inner => inner.try_into().ok());
field!(i64, Int, value => *value, inner => Some(inner));
field!(f64, Real, value => *value, inner => Some(inner));

macro_rules! field_with_memory {
    ($type:ty, $kind:ident) => {
        impl Field for $type {
            const KIND: Kind = Kind::$kind;

            fn to_value(&self) -> Value {
                Value::$kind(self.clone())
            }

            fn write(&self, value: &mut Value) {
                match value {
                    Value::$kind(value) => value.clone_from(self),
                    value => *value = self.to_value(),
                }
            }

            fn from_value(value: Value) -> Option<Self> {
                match value {
                    Value::$kind(value) => Some(value),
                    _ => None,
                }
            }
        }
    };
}

field_with_memory!(String, Text);
field_with_memory!(Vec<u8>, Bytes);

impl GeneratedField for i32 {}
impl GeneratedField for u32 {}
impl GeneratedField for i64 {}

impl KeyField for bool {}
impl KeyField for i32 {}
impl KeyField for u32 {}
impl KeyField for i64 {}
impl KeyField for String {}
impl KeyField for Vec<u8> {}

impl<T: Field> Field for Option<T> {
    const KIND: Kind = T::KIND;
    const NULLABLE: bool = true;

    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_value)
    }

    fn write(&self, value: &mut Value) {
        match self {
            Some(field) => field.write(value),
            None => *value = Value::Null,
        }
    }

    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Int(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Real(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::Text(value)
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Value {
        Value::Bytes(value)
    }
}
