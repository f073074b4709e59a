//! What a session remembers from one interaction to the next: values by name.

use serde_json::Value;
use std::collections::BTreeMap;

/// A value of a session or of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// A whole number, an id above all.
    Int(i64),
    /// A number with a fraction.
    Real(f64),
    /// A text.
    Text(String),
    /// Values in an order, such as the ids that a list showed.
    List(Vec<Datum>),
    /// Values by name, such as what was read of an entity.
    Row(BTreeMap<String, Datum>),
}

impl Datum {
    /// A value of a document. `None`: it is null, a truth value, or a number of more than 64 bits.
    pub fn of(value: &Value) -> Option<Datum> {
        match value {
            Value::Null | Value::Bool(_) => None,
            Value::Number(number) => {
                let real = || number.as_f64().map(Datum::Real);
                number.as_i64().map(Datum::Int).or_else(real)
            }
            Value::String(text) => Some(Datum::Text(text.clone())),
            Value::Array(values) => {
                let values: Option<Vec<Datum>> = values.iter().map(Datum::of).collect();
                values.map(Datum::List)
            }
            Value::Object(values) => {
                let of = |(name, value): (&String, &Value)| Some((name.clone(), Datum::of(value)?));
                let values: Option<BTreeMap<String, Datum>> = values.iter().map(of).collect();
                values.map(Datum::Row)
            }
        }
    }

    /// The whole number.
    pub fn int(&self) -> Option<i64> {
        match self {
            Datum::Int(number) => Some(*number),
            Datum::Real(_) | Datum::Text(_) | Datum::List(_) | Datum::Row(_) => None,
        }
    }

    /// The values of a list.
    pub fn list(&self) -> Option<&[Datum]> {
        match self {
            Datum::List(values) => Some(values),
            Datum::Int(_) | Datum::Real(_) | Datum::Text(_) | Datum::Row(_) => None,
        }
    }
}

/// The named values of one session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    values: BTreeMap<String, Datum>,
}

impl State {
    /// A value by its name.
    pub fn get(&self, name: &str) -> Option<&Datum> {
        self.values.get(name)
    }

    /// A whole number by its name; `None` also if the value is of another kind.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(Datum::int)
    }

    /// The values of a list by its name; empty if there is none.
    pub fn list(&self, name: &str) -> &[Datum] {
        self.get(name).and_then(Datum::list).unwrap_or(&[])
    }

    /// Sets a value.
    pub fn set(&mut self, name: &str, value: Datum) {
        match self.values.get_mut(name) {
            Some(place) => *place = value,
            None => {
                self.values.insert(name.to_string(), value);
            }
        }
    }

    /// Forgets a value.
    pub fn forget(&mut self, name: &str) {
        self.values.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_of_a_document_become_values_of_a_session() {
        let value = json!({"id": 7, "price": 2.5, "tags": ["a", "b"]});
        let Some(Datum::Row(row)) = Datum::of(&value) else {
            panic!("no row");
        };
        let mut state = State::default();
        for (name, value) in row {
            state.set(&name, value);
        }
        assert_eq!(state.int("id"), Some(7));
        assert_eq!((state.int("price"), state.int("none")), (None, None));
        assert_eq!(state.list("tags").len(), 2);
        state.set("id", Datum::Int(8));
        assert_eq!(state.int("id"), Some(8));
        state.forget("id");
        assert_eq!(state.int("id"), None);
        assert_eq!(Datum::of(&json!(null)), None);
        assert_eq!(Datum::of(&json!([1, true])), None);
    }
}
