//! The schema of experiments: published as JSON Schema, and checked here with the line of each
//! mistake.
//!
//! Of JSON Schema the file uses `type`, `properties`, `additionalProperties`, `required`, `enum`,
//! `minimum`, `maximum`, `maxLength`, `items`, `maxItems` and `$ref` into `$defs`. A test refuses
//! others, which would not be checked.

use crate::mistake::Mistake;
use crate::nearest::nearest;
use crate::tree::{Kind, Node, join};
use serde_json::Value;
use std::sync::LazyLock;

/// The schema as it is published.
pub const TEXT: &str = include_str!("../../experiments/schema.json");

static SCHEMA: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(TEXT).expect("a test reads the schema"));

/// What a document is checked as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// What a file says, which may inherit and vary.
    Written,
    /// What a run gets.
    Resolved,
}

/// Checks a document.
pub(crate) fn check(node: &Node, stage: Stage) -> Result<(), Mistake> {
    let schema = match stage {
        Stage::Written => &*SCHEMA,
        Stage::Resolved => &SCHEMA["$defs"]["resolved"],
    };
    value(node, schema, "", stage)
}

/// The keys that are known at a path such as `population`; empty: any.
pub(crate) fn keys(path: &str) -> Vec<&'static str> {
    let mut schema = &SCHEMA["$defs"]["resolved"];
    for step in path.split('.').filter(|step| !step.is_empty()) {
        schema = followed(&schema["properties"][step]);
    }
    let properties = schema["properties"].as_object();
    properties
        .into_iter()
        .flat_map(|all| all.keys().map(String::as_str))
        .collect()
}

fn followed(schema: &'static Value) -> &'static Value {
    let name = schema["$ref"]
        .as_str()
        .and_then(|it| it.strip_prefix("#/$defs/"));
    name.map_or(schema, |name| &SCHEMA["$defs"][name])
}

fn value(node: &Node, schema: &'static Value, path: &str, stage: Stage) -> Result<(), Mistake> {
    let schema = followed(schema);
    // What is inherited can be removed.
    if stage == Stage::Written && node.kind == Kind::Null && !path.is_empty() {
        return Ok(());
    }
    if !is_of_type(node, &schema["type"]) {
        let wanted = types(&schema["type"]).join(" or ");
        let text = format!("this is {}, and it must be {wanted}", node.is_a());
        return Err(node.mark.wrong(text).at_key(path));
    }
    if let Some(allowed) = schema["enum"].as_array() {
        one_of(node, allowed, path)?;
    }
    match &node.kind {
        Kind::Number(number) => bounds(node, number.as_f64().unwrap_or(0.0), schema, path),
        Kind::Text(text) => {
            let most = schema["maxLength"].as_u64().unwrap_or(u64::MAX);
            match text.chars().count() as u64 > most {
                true => {
                    let text = format!("the text is longer than {most} characters");
                    Err(node.mark.wrong(text).at_key(path))
                }
                false => Ok(()),
            }
        }
        Kind::List(items) => {
            let most = schema["maxItems"].as_u64().unwrap_or(u64::MAX);
            if items.len() as u64 > most {
                let text = format!("the list has more than {most} elements");
                return Err(node.mark.wrong(text).at_key(path));
            }
            for (at, item) in items.iter().enumerate() {
                value(item, &schema["items"], &join(path, &at.to_string()), stage)?;
            }
            Ok(())
        }
        Kind::Map(_) => mapping(node, schema, path, stage),
        Kind::Null | Kind::Bool(_) => Ok(()),
    }
}

fn mapping(node: &Node, schema: &'static Value, path: &str, stage: Stage) -> Result<(), Mistake> {
    let Kind::Map(entries) = &node.kind else {
        return Ok(());
    };
    let properties = schema["properties"].as_object();
    for entry in entries {
        let below = join(path, &entry.key);
        match properties.and_then(|known| known.get(&entry.key)) {
            Some(inner) => value(&entry.value, inner, &below, stage)?,
            None => match &schema["additionalProperties"] {
                Value::Bool(false) => {
                    let known = properties
                        .into_iter()
                        .flatten()
                        .map(|(key, _)| key.as_str());
                    return Err(entry
                        .mark
                        .wrong(not_known(&entry.key, known))
                        .at_key(&below));
                }
                Value::Null | Value::Bool(true) => {}
                inner => value(&entry.value, inner, &below, stage)?,
            },
        }
    }
    if stage == Stage::Written {
        return Ok(());
    }
    for key in schema["required"].as_array().into_iter().flatten() {
        let key = key.as_str().unwrap_or_default();
        if node.get(key).is_none() {
            let text = format!("{} is missing", join(path, key));
            return Err(node.mark.wrong(text).at_key(path));
        }
    }
    Ok(())
}

/// That a key is not known, and what may be meant.
pub(crate) fn not_known<'w>(key: &str, known: impl IntoIterator<Item = &'w str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(key, known.iter().copied()) {
        Some(meant) => format!("the key {key} is not known; did you mean {meant}?"),
        None => format!("the key {key} is not known; there are {}", known.join(", ")),
    }
}

fn one_of(node: &Node, allowed: &[Value], path: &str) -> Result<(), Mistake> {
    let own = node.value();
    if allowed.contains(&own) {
        return Ok(());
    }
    let words: Vec<String> = allowed.iter().map(shown).collect();
    let text = shown(&own);
    let text = match nearest(&text, words.iter().map(String::as_str)) {
        Some(meant) => format!("{text} is not possible here; did you mean {meant}?"),
        None => format!(
            "{text} is not possible here; it is one of {}",
            words.join(", ")
        ),
    };
    Err(node.mark.wrong(text).at_key(path))
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn bounds(node: &Node, number: f64, schema: &Value, path: &str) -> Result<(), Mistake> {
    let (low, high) = (&schema["minimum"], &schema["maximum"]);
    let is_low = low.as_f64().is_some_and(|low| number < low);
    let is_high = high.as_f64().is_some_and(|high| number > high);
    if !is_low && !is_high {
        return Ok(());
    }
    let text = match (low.is_null(), high.is_null()) {
        (_, true) => format!("{number} is less than {low}"),
        (true, _) => format!("{number} is more than {high}"),
        _ => format!("{number} does not lie from {low} to {high}"),
    };
    Err(node.mark.wrong(text).at_key(path))
}

/// The names of types in a schema.
fn names(kinds: &Value) -> Vec<&str> {
    match kinds {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn types(kinds: &Value) -> Vec<&'static str> {
    let word = |name: &str| match name {
        "object" => "a mapping",
        "array" => "a list",
        "string" => "a text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        _ => "null",
    };
    names(kinds).into_iter().map(word).collect()
}

fn is_of_type(node: &Node, kinds: &Value) -> bool {
    let names = names(kinds);
    let fits = |name: &str| match &node.kind {
        Kind::Null => name == "null",
        Kind::Bool(_) => name == "boolean",
        Kind::Text(_) => name == "string",
        Kind::List(_) => name == "array",
        Kind::Map(_) => name == "object",
        Kind::Number(number) => {
            let is_whole = number.as_f64().is_some_and(|it| it.fract() == 0.0);
            name == "number" || name == "integer" && is_whole
        }
    };
    names.is_empty() || names.into_iter().any(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::read;

    fn said(text: &str) -> String {
        let node = read("f", text).unwrap();
        check(&node, Stage::Written).unwrap_err().to_string()
    }

    #[test]
    fn mistakes_have_line_key_and_what_is_meant() {
        for (text, says) in [
            (
                "population:\n  kind: closed\n  thraeds: 4",
                "f, line 3, key population.thraeds: the key thraeds is not known; did you mean \
                 threads?",
            ),
            ("polulation: {}", "did you mean population?"),
            (
                "x: 1",
                "f, line 1, key x: the key x is not known; there are ",
            ),
            (
                "population:\n  kind: close",
                "line 2, key population.kind: close is not possible \
              here; did you mean closed?",
            ),
            ("seed: -1", "key seed: -1 does not lie from 0 to "),
            (
                "seed: 1.5",
                "this is a number, and it must be a whole number",
            ),
            ("seed: '1'", "this is a text, and it must be a whole number"),
            (
                "phases: 3",
                "key phases: this is a number, and it must be a mapping",
            ),
            (
                "store: {url: [1]}",
                "key store.url: this is a list, and it must be a text",
            ),
            ("- 1", "f, line 1: this is a list, and it must be a mapping"),
        ] {
            let told = said(text);
            assert!(told.contains(says), "{text}: {told}");
        }
    }

    /// A keyword that is not known here would not be checked.
    #[test]
    fn the_schema_has_only_what_is_checked() {
        fn walk(schema: &Value) {
            let Some(keywords) = schema.as_object() else {
                return;
            };
            for (keyword, inner) in keywords {
                match keyword.as_str() {
                    "properties" | "$defs" => {
                        inner.as_object().unwrap().values().for_each(walk);
                    }
                    "items" | "additionalProperties" => walk(inner),
                    "type" | "required" | "enum" | "minimum" | "maximum" | "maxLength"
                    | "maxItems" | "$ref" | "description" | "title" | "$schema" | "default" => {}
                    other => panic!("{other} is not checked"),
                }
            }
        }
        let schema: Value = serde_json::from_str(TEXT).unwrap();
        walk(&schema);
        assert!(keys("").contains(&"store"));
        assert!(keys("population").contains(&"threads"));
        assert!(keys("retry.back_off").contains(&"cap_ms"));
    }
}
