//! EXPLAIN (FORMAT JSON, XML or YAML): the same lines as an object for each step, in the shapes of
//! PostgreSQL's.

use super::{Cx, StepStats};
use core::fmt::Write;
use parse::{ExplainFormat, ExplainOptions};

/// Settings that plans and their steps depend on.
const OF_PLANS: [&str; 3] = ["read_policy", "search_path", "statement_memory"];

/// Those of [`OF_PLANS`] that are not what they are by default.
pub(super) fn changed_settings(cx: &Cx<'_>) -> Vec<(String, String)> {
    let mut changed = Vec::new();
    for name in OF_PLANS {
        let default = pg_catalog::settings::lookup(name).map(|setting| setting.default);
        let value = cx.port.setting(name);
        if let Some(value) = value.filter(|value| Some(value.as_str()) != default) {
            changed.push((name.to_owned(), value));
        }
    }
    changed
}

/// The line of text about settings, if some have changed.
pub(super) fn settings_line(settings: Option<&[(String, String)]>) -> Option<String> {
    let settings = settings.filter(|settings| !settings.is_empty())?;
    let settings = settings
        .iter()
        .map(|(name, value)| format!("{name} = '{value}'"));
    let settings: Vec<String> = settings.collect();
    Some(format!("Settings: {}", settings.join(", ")))
}

/// A line of EXPLAIN before it is text.
pub(super) enum Entry {
    /// A step, or what has steps.
    Node { depth: usize, node: Node },
    /// `what: value` about the last node of that depth.
    Detail { depth: usize, text: String },
}

/// What the title of a step says.
#[derive(Default)]
pub(super) struct Node {
    pub(super) title: String,
    /// The rows that the planner expects.
    pub(super) rows: Option<f64>,
    pub(super) stats: Option<StepStats>,
}

/// A value of an object.
enum Value {
    Text(String),
    /// As it is written.
    Plain(String),
    Object(Object),
    Objects(Vec<Object>),
    Texts(Vec<String>),
}

/// Fields in their order.
#[derive(Default)]
struct Object(Vec<(String, Value)>);

impl Object {
    fn text(&mut self, name: &str, value: &str) {
        self.0.push((name.into(), Value::Text(value.into())));
    }

    fn plain(&mut self, name: &str, value: String) {
        self.0.push((name.into(), Value::Plain(value)));
    }

    /// A detail; of the same name there may be several.
    fn detail(&mut self, name: &str, value: &str) {
        let known = self.0.iter_mut().find(|(known, _)| known == name);
        match known {
            Some((_, Value::Texts(values))) => values.push(value.into()),
            Some((_, known)) => {
                let first = match core::mem::replace(known, Value::Texts(Vec::new())) {
                    Value::Text(first) => first,
                    _ => String::new(),
                };
                *known = Value::Texts(vec![first, value.into()]);
            }
            None => self.text(name, value),
        }
    }

    fn write(&self, out: &mut String, indent: usize) {
        out.push('{');
        for (i, (name, value)) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let _ = write!(out, "{comma}\n{:1$}", "", indent + 2);
            quote(name, out);
            out.push_str(": ");
            match value {
                Value::Text(text) => quote(text, out),
                Value::Plain(text) => out.push_str(text),
                Value::Object(object) => object.write(out, indent + 2),
                Value::Objects(objects) => list(objects, out, indent + 2),
                Value::Texts(texts) => {
                    out.push('[');
                    for (i, text) in texts.iter().enumerate() {
                        out.push_str(if i == 0 { "" } else { ", " });
                        quote(text, out);
                    }
                    out.push(']');
                }
            }
        }
        let _ = write!(out, "\n{:indent$}}}", "");
    }

    /// `name: value` lines. The first one is behind the dash of a list.
    fn write_yaml(&self, out: &mut String, indent: usize) {
        for (i, (name, value)) in self.0.iter().enumerate() {
            if i > 0 {
                let _ = write!(out, "\n{:indent$}", "");
            }
            let _ = write!(out, "{name}: ");
            let below = indent + 2;
            match value {
                Value::Text(text) => quote(text, out),
                Value::Plain(text) => out.push_str(text),
                Value::Object(object) if object.0.is_empty() => {}
                Value::Object(object) => {
                    let _ = write!(out, "\n{:below$}", "");
                    object.write_yaml(out, below);
                }
                Value::Objects(objects) => {
                    for object in objects {
                        let _ = write!(out, "\n{:below$}- ", "");
                        object.write_yaml(out, below + 2);
                    }
                }
                Value::Texts(texts) => {
                    for text in texts {
                        let _ = write!(out, "\n{:below$}- ", "");
                        quote(text, out);
                    }
                }
            }
        }
    }

    /// An element for each field.
    fn write_xml(&self, out: &mut String, indent: usize) {
        for (name, value) in &self.0 {
            let tag = tag(name);
            let _ = write!(out, "\n{:indent$}<{tag}>", "");
            let below = indent + 2;
            match value {
                Value::Text(text) | Value::Plain(text) => {
                    escape(text, out);
                    let _ = write!(out, "</{tag}>");
                    continue;
                }
                Value::Object(object) => object.write_xml(out, below),
                Value::Objects(objects) => {
                    for object in objects {
                        let _ = write!(out, "\n{:below$}<Plan>", "");
                        object.write_xml(out, below + 2);
                        let _ = write!(out, "\n{:below$}</Plan>", "");
                    }
                }
                Value::Texts(texts) => {
                    for text in texts {
                        let _ = write!(out, "\n{:below$}<Item>", "");
                        escape(text, out);
                        out.push_str("</Item>");
                    }
                }
            }
            let _ = write!(out, "\n{:indent$}</{tag}>", "");
        }
    }
}

/// The name of an element: letters, digits, `-`, `_` and `.` stay.
fn tag(name: &str) -> String {
    let letters = name.chars().map(|c| match c {
        '-' | '_' | '.' => c,
        c if c.is_ascii_alphanumeric() => c,
        _ => '-',
    });
    letters.collect()
}

/// Text of an element.
fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\r' => out.push_str("&#x0d;"),
            // No form of XML has them.
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push('?'),
            c => out.push(c),
        }
    }
}

fn list(objects: &[Object], out: &mut String, indent: usize) {
    out.push('[');
    for (i, object) in objects.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        let _ = write!(out, "{comma}\n{:1$}", "", indent + 2);
        object.write(out, indent + 2);
    }
    let _ = write!(out, "\n{:indent$}]", "");
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// The fields of a step: `how on table  [where]` is taken apart.
fn of_node(node: &Node, options: ExplainOptions) -> Object {
    let mut object = Object::default();
    let (title, note) = match node.title.split_once("  ") {
        Some((title, note)) => (title, note.trim_matches(['[', ']', '(', ')'])),
        None => (node.title.as_str(), ""),
    };
    let (how, table) = match title.rsplit_once(" on ") {
        Some((how, table)) => (how, table),
        None => (title, ""),
    };
    let (kind, index) = match how.split_once(" using ") {
        Some((kind, index)) => (kind, index),
        None => (how, ""),
    };
    object.text("Node Type", kind);
    for (name, value) in [
        ("Relation Name", table),
        ("Index Name", index),
        ("Placement", note),
    ] {
        if !value.is_empty() {
            object.text(name, value);
        }
    }
    if let (Some(rows), true) = (node.rows, options.costs) {
        object.plain("Plan Rows", format!("{:.0}", rows.max(1.0)));
    }
    if let Some(stats) = &node.stats {
        if options.timing {
            let once = stats.nanos as f64 / 1e6 / (stats.loops.max(1) as f64);
            object.plain("Actual Total Time", format!("{once:.3}"));
        }
        let once = stats.rows as f64 / (stats.loops.max(1) as f64);
        object.plain("Actual Rows", format!("{once:.0}"));
        object.plain("Actual Loops", stats.loops.to_string());
        if stats.ops > 0 {
            object.plain("Operations", stats.ops.to_string());
            object.plain("Shards", stats.shards.len().to_string());
        }
    }
    object
}

/// The answer: a list of statements, each with its plan, the settings and `more` about it.
pub(super) fn text(
    entries: Vec<Entry>,
    settings: Option<&[(String, String)]>,
    more: &[(String, String)],
    options: ExplainOptions,
) -> String {
    // Nodes that may still get details and children, the outermost first.
    let mut open: Vec<Object> = Vec::new();
    let mut statements: Vec<Object> = Vec::new();
    for entry in entries {
        match entry {
            Entry::Node { depth, node } => {
                close(&mut open, depth, &mut statements);
                open.push(of_node(&node, options));
            }
            Entry::Detail { depth, text } => {
                let (name, value) = text.split_once(": ").unwrap_or(("Note", &text));
                if let Some(object) = open.get_mut(depth) {
                    object.detail(name, value);
                }
            }
        }
    }
    close(&mut open, 0, &mut statements);
    for statement in &mut statements {
        if let Some(settings) = settings {
            let mut object = Object::default();
            settings
                .iter()
                .for_each(|(name, value)| object.text(name, value));
            statement.0.push(("Settings".into(), Value::Object(object)));
        }
        for (name, value) in more {
            match value.parse::<f64>() {
                Ok(_) => statement.plain(name, value.clone()),
                Err(_) => statement.detail(name, value),
            }
        }
    }
    let mut out = String::new();
    match options.format {
        ExplainFormat::Text | ExplainFormat::Json => list(&statements, &mut out, 0),
        ExplainFormat::Yaml => {
            for (i, statement) in statements.iter().enumerate() {
                out.push_str(if i == 0 { "- " } else { "\n- " });
                statement.write_yaml(&mut out, 2);
            }
        }
        ExplainFormat::Xml => {
            out.push_str("<explain xmlns=\"http://www.postgresql.org/2009/explain\">");
            for statement in &statements {
                out.push_str("\n  <Query>");
                statement.write_xml(&mut out, 4);
                out.push_str("\n  </Query>");
            }
            out.push_str("\n</explain>");
        }
    }
    out
}

/// Ends the nodes that are not above one of this depth.
fn close(open: &mut Vec<Object>, depth: usize, statements: &mut Vec<Object>) {
    while open.len() > depth
        && let Some(node) = open.pop()
    {
        match open.last_mut() {
            None => {
                let plan = ("Plan".into(), Value::Object(node));
                statements.push(Object(vec![plan]));
            }
            Some(above) => match above.0.iter_mut().find(|(name, _)| name == "Plans") {
                Some((_, Value::Objects(plans))) => plans.push(node),
                _ => above.0.push(("Plans".into(), Value::Objects(vec![node]))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_objects() {
        let options = ExplainOptions {
            analyze: false,
            costs: true,
            timing: false,
            summary: false,
            format: ExplainFormat::Json,
            settings: false,
        };
        let node = |title: &str| Node {
            title: title.into(),
            rows: Some(7.0),
            stats: None,
        };
        let entries = vec![
            Entry::Node {
                depth: 0,
                node: node("Sort"),
            },
            Entry::Detail {
                depth: 0,
                text: "Sort Key: t.\"a\"".into(),
            },
            Entry::Node {
                depth: 1,
                node: node("Range Scan using i on t  [all shards]"),
            },
        ];
        let text = text(entries, None, &[], options);
        let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            flat,
            "[ { \"Plan\": { \"Node Type\": \"Sort\", \"Plan Rows\": 7, \"Sort Key\": \
             \"t.\\\"a\\\"\", \"Plans\": [ { \"Node Type\": \"Range Scan\", \"Relation Name\": \
             \"t\", \"Index Name\": \"i\", \"Placement\": \"all shards\", \"Plan Rows\": 7 } ] } \
             } ]"
        );
    }
}
