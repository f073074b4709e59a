//! Documents whose values know where they were written.

use crate::mistake::Mistake;
use serde_json::{Map, Number, Value};
use std::rc::Rc;

/// Values of one file at most, those behind aliases counted each time.
pub(crate) const NODES_MAX: usize = 20_000;
/// Values within values at most.
pub(crate) const DEPTH_MAX: usize = 64;

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) file: Rc<str>,
    /// Counted from 1; 0: not known.
    pub(crate) line: usize,
}

impl Mark {
    /// A mistake here.
    pub(crate) fn wrong(&self, text: impl Into<String>) -> Mistake {
        let mut mistake = Mistake::of_file(&self.file, text);
        mistake.line = self.line;
        mistake
    }
}

/// A value with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) mark: Mark,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key of a mapping with its value. Entries stand in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// Of the key.
    pub(crate) mark: Mark,
    pub(crate) value: Node,
}

impl Node {
    pub(crate) fn new(mark: Mark, kind: Kind) -> Node {
        Node { mark, kind }
    }

    /// This value and all inside of it, counted.
    pub(crate) fn count(&self) -> usize {
        match &self.kind {
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => 1,
            Kind::List(items) => 1 + items.iter().map(Node::count).sum::<usize>(),
            Kind::Map(entries) => 1 + entries.iter().map(|it| it.value.count()).sum::<usize>(),
        }
    }

    /// Values within values; 1 for a scalar.
    pub(crate) fn depth(&self) -> usize {
        let deepest = match &self.kind {
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => None,
            Kind::List(items) => items.iter().map(Node::depth).max(),
            Kind::Map(entries) => entries.iter().map(|it| it.value.depth()).max(),
        };
        1 + deepest.unwrap_or(0)
    }

    pub(crate) fn value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(is) => Value::Bool(*is),
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::Text(text) => Value::String(text.clone()),
            Kind::List(items) => items.iter().map(Node::value).collect(),
            Kind::Map(entries) => {
                let pairs = entries.iter().map(|it| (it.key.clone(), it.value.value()));
                Value::Object(pairs.collect::<Map<String, Value>>())
            }
        }
    }

    /// A value whose parts were written where `mark` says; it gets the path of each part.
    pub(crate) fn of(
        value: &Value,
        path: &mut Vec<String>,
        mark: &dyn Fn(&[String]) -> Mark,
    ) -> Node {
        let here = mark(path);
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(is) => Kind::Bool(*is),
            Value::Number(number) => Kind::Number(number.clone()),
            Value::String(text) => Kind::Text(text.clone()),
            Value::Array(items) => {
                let mut nodes = Vec::with_capacity(items.len());
                for (at, item) in items.iter().enumerate() {
                    path.push(at.to_string());
                    nodes.push(Node::of(item, path, mark));
                    path.pop();
                }
                Kind::List(nodes)
            }
            Value::Object(pairs) => {
                let mut entries = Vec::with_capacity(pairs.len());
                for (key, value) in pairs {
                    path.push(key.clone());
                    let node = Node::of(value, path, mark);
                    path.pop();
                    entries.push(Entry {
                        key: key.clone(),
                        mark: node.mark.clone(),
                        value: node,
                    });
                }
                Kind::Map(entries)
            }
        };
        Node::new(here, kind)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        match &self.kind {
            Kind::Map(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// Takes an entry out of a mapping.
    pub(crate) fn take(&mut self, key: &str) -> Option<Entry> {
        let Kind::Map(entries) = &mut self.kind else {
            return None;
        };
        let at = entries.iter().position(|entry| entry.key == key)?;
        Some(entries.remove(at))
    }

    /// Lays another document over this one: mappings are merged, anything else is replaced, and a
    /// null removes what was inherited.
    pub(crate) fn overlay(&mut self, over: Node) {
        let (Kind::Map(own), Kind::Map(_)) = (&mut self.kind, &over.kind) else {
            *self = over;
            return;
        };
        let Kind::Map(others) = over.kind else {
            return;
        };
        self.mark = over.mark;
        for other in others {
            let at = own.iter().position(|entry| entry.key == other.key);
            match at {
                Some(at) if other.value.kind == Kind::Null => {
                    own.remove(at);
                }
                Some(at) => {
                    own[at].mark = other.mark;
                    own[at].value.overlay(other.value);
                }
                None if other.value.kind == Kind::Null => {}
                None => own.push(other),
            }
        }
    }

    /// Sets the value at a path such as `store.url`; mappings on the way are made.
    ///
    /// # Errors
    /// Something on the way is no mapping: its path.
    pub(crate) fn set(&mut self, path: &str, mark: &Mark, value: Node) -> Result<(), String> {
        let (first, rest) = match path.split_once('.') {
            Some((first, rest)) => (first, Some(rest)),
            None => (path, None),
        };
        let Kind::Map(entries) = &mut self.kind else {
            return Err(String::new());
        };
        let at = match entries.iter().position(|entry| entry.key == first) {
            Some(at) => at,
            None => {
                entries.push(Entry {
                    key: first.to_owned(),
                    mark: mark.clone(),
                    value: Node::new(mark.clone(), Kind::Map(Vec::new())),
                });
                entries.len() - 1
            }
        };
        match rest {
            None => {
                entries[at].mark = mark.clone();
                entries[at].value = value;
                Ok(())
            }
            Some(rest) => {
                let below = entries[at].value.set(rest, mark, value);
                below.map_err(|inner| join(first, &inner))
            }
        }
    }

    /// What kind of value it is, in words.
    pub(crate) fn is_a(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "true or false",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a text",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }
}

/// The path of a key below another one.
pub(crate) fn join(path: &str, key: &str) -> String {
    match (path.is_empty(), key.is_empty()) {
        (true, _) => key.to_owned(),
        (_, true) => path.to_owned(),
        _ => format!("{path}.{key}"),
    }
}
