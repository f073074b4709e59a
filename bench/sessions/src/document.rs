//! Reading a resolved document: each key is used or refused, and what is wrong is told by its path.
//!
//! A document is JSON as a [`Value`]. The experiment language, templates and sweeps are resolved
//! before; here a key that nobody knows is an error, so that a setting is never ignored.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

/// What is wrong with a document, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Names from the root, with dots between them: `workload.states.BID`.
    pub path: String,
    /// What is wrong there and what would be right.
    pub text: String,
}

impl Problem {
    /// A problem at a path.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Problem {
        Problem {
            path: path.into(),
            text: text.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.text)
    }
}

impl std::error::Error for Problem {}

/// The path of a key below another path.
pub fn below(path: &str, key: &str) -> String {
    match path {
        "" => key.to_string(),
        path => format!("{path}.{key}"),
    }
}

/// A value as a person would write it, cut to a length that fits into a message.
pub fn told(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((cut, _)) => format!("{}..", &text[..cut]),
        None => text,
    }
}

/// An object of the document whose keys are taken one by one. Call [`Section::finish`] at the end:
/// what was not taken is refused there.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    path: String,
    rest: BTreeMap<&'a str, &'a Value>,
    known: Vec<String>,
}

impl<'a> Section<'a> {
    /// The object at a path.
    ///
    /// # Errors
    /// The value is no object.
    pub fn of(path: &str, value: &'a Value) -> Result<Section<'a>, Problem> {
        let Some(object) = value.as_object() else {
            let text = format!("{} is no object of keys and values", told(value));
            return Err(Problem::new(path, text));
        };
        let rest = object.iter().map(|(key, value)| (key.as_str(), value));
        Ok(Section {
            path: path.to_string(),
            rest: rest.collect(),
            known: Vec::new(),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path of one of its keys.
    pub fn path_of(&self, key: &str) -> String {
        below(&self.path, key)
    }

    /// A problem with one of its keys.
    pub fn problem(&self, key: &str, text: impl Into<String>) -> Problem {
        Problem::new(self.path_of(key), text)
    }

    /// The value of a key; `None` if it is not there or null.
    pub fn take(&mut self, key: &str) -> Option<&'a Value> {
        self.known.push(key.to_string());
        self.rest.remove(key).filter(|value| !value.is_null())
    }

    /// The value of a key that must be there.
    ///
    /// # Errors
    /// It is not.
    pub fn required(&mut self, key: &str) -> Result<&'a Value, Problem> {
        let found = self.take(key);
        found.ok_or_else(|| self.problem(key, "it is missing"))
    }

    /// A number within bounds.
    ///
    /// # Errors
    /// It is no number, or out of bounds.
    pub fn number(
        &mut self,
        key: &str,
        bounds: RangeInclusive<f64>,
    ) -> Result<Option<f64>, Problem> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let number = value.as_f64().filter(|number| bounds.contains(number));
        let wrong = || {
            let (low, high) = (bounds.start(), bounds.end());
            let text = format!("{} is no number from {low} to {high}", told(value));
            self.problem(key, text)
        };
        number.map(Some).ok_or_else(wrong)
    }

    /// A whole number within bounds. `4.0` is one, `4.5` is not.
    ///
    /// # Errors
    /// It is no whole number, or out of bounds.
    pub fn count(
        &mut self,
        key: &str,
        bounds: RangeInclusive<u64>,
    ) -> Result<Option<u64>, Problem> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let whole = |number: f64| {
            let fits = number.fract() == 0.0 && (0.0..9e15).contains(&number);
            fits.then_some(number as u64)
        };
        let number = value.as_u64().or_else(|| value.as_f64().and_then(whole));
        let wrong = || {
            let (low, high) = (bounds.start(), bounds.end());
            let text = format!("{} is no whole number from {low} to {high}", told(value));
            self.problem(key, text)
        };
        let number = number.filter(|number| bounds.contains(number));
        number.map(Some).ok_or_else(wrong)
    }

    /// A text.
    ///
    /// # Errors
    /// It is none.
    pub fn text(&mut self, key: &str) -> Result<Option<&'a str>, Problem> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let wrong = || self.problem(key, format!("{} is no text", told(value)));
        value.as_str().map(Some).ok_or_else(wrong)
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// It is neither.
    pub fn flag(&mut self, key: &str) -> Result<Option<bool>, Problem> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let wrong = || self.problem(key, format!("{} is neither true nor false", told(value)));
        value.as_bool().map(Some).ok_or_else(wrong)
    }

    /// An object below it; one without keys if there is none.
    ///
    /// # Errors
    /// It is no object.
    pub fn section(&mut self, key: &str) -> Result<Section<'a>, Problem> {
        let path = self.path_of(key);
        match self.take(key) {
            Some(value) => Section::of(&path, value),
            None => Ok(Section {
                path,
                rest: BTreeMap::new(),
                known: Vec::new(),
            }),
        }
    }

    /// All keys that were not taken yet, with their values, in order.
    pub fn take_all(&mut self) -> Vec<(&'a str, &'a Value)> {
        std::mem::take(&mut self.rest).into_iter().collect()
    }

    /// Refuses what was not taken.
    ///
    /// # Errors
    /// The first key that is not known; the known ones are told.
    pub fn finish(self) -> Result<(), Problem> {
        let Some(key) = self.rest.keys().next() else {
            return Ok(());
        };
        let known = match self.known.is_empty() {
            true => "there is none here".to_string(),
            false => format!("there are {}", self.known.join(", ")),
        };
        let text = format!("the key is not known: {known}");
        Err(self.problem(key, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_taken_or_refused_by_their_path() {
        let value = json!({"a": 4, "b": 1.5, "c": "x", "d": {"e": 1}, "f": null});
        let mut section = Section::of("w", &value).expect("an object");
        assert_eq!(section.count("a", 1..=4), Ok(Some(4)));
        assert_eq!(section.number("b", 0.0..=2.0), Ok(Some(1.5)));
        assert_eq!(section.text("c"), Ok(Some("x")));
        assert_eq!(section.count("f", 0..=1), Ok(None));
        assert_eq!(section.flag("g"), Ok(None));
        let inner = section.section("d").expect("an object");
        let told = inner.finish().expect_err("e is not taken").to_string();
        assert_eq!(told, "w.d.e: the key is not known: there is none here");
        assert_eq!(section.finish(), Ok(()));
    }

    #[test]
    fn what_is_out_of_bounds_is_told() {
        let value = json!({"a": 5, "b": -1, "c": 2.5, "d": [1, 2]});
        let mut section = Section::of("", &value).expect("an object");
        let told = |result: Result<Option<u64>, Problem>| result.expect_err("wrong").to_string();
        assert_eq!(
            told(section.count("a", 1..=4)),
            "a: 5 is no whole number from 1 to 4"
        );
        assert!(told(section.count("b", 0..=4)).starts_with("b: -1"));
        assert!(told(section.count("c", 0..=4)).starts_with("c: 2.5"));
        assert!(section.text("d").is_err());
        assert!(Section::of("x", &json!(3)).is_err());
    }
}
