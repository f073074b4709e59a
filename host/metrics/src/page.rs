//! The text format: families with their samples.

use crate::families::{Family, all};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Samples by the name of their metric.
pub(crate) struct Page {
    families: Vec<Family>,
    samples: BTreeMap<String, String>,
}

/// Labels of a sample.
pub(crate) type Labels<'a> = [(&'a str, &'a str)];

impl Page {
    pub(crate) fn new() -> Page {
        Page {
            families: all(),
            samples: BTreeMap::new(),
        }
    }

    /// A sample of the metric `name`.
    pub(crate) fn add(&mut self, name: &str, labels: &Labels<'_>, value: f64) {
        self.add_part(name, "", labels, value);
    }

    /// A sample of a part of a metric, like `_bucket`.
    pub(crate) fn add_part(&mut self, name: &str, part: &str, labels: &Labels<'_>, value: f64) {
        if !self.samples.contains_key(name) {
            self.samples.insert(name.to_owned(), String::new());
        }
        let text = self.samples.get_mut(name).expect("just put there");
        let _ = write!(text, "{name}{part}");
        for (at, (label, value)) in labels.iter().enumerate() {
            let begin = if at == 0 { '{' } else { ',' };
            let _ = write!(text, "{begin}{label}=\"");
            escape(value, text);
            text.push('"');
        }
        if !labels.is_empty() {
            text.push('}');
        }
        let _ = writeln!(text, " {value}");
    }

    /// The text, each metric with its meaning.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        for Family { name, kind, help } in &self.families {
            if let Some(samples) = self.samples.get(name) {
                let kind = kind.word();
                let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
                out.push_str(samples);
            }
        }
        out
    }
}

fn escape(value: &str, out: &mut String) {
    for char in value.chars() {
        match char {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            char => out.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_metric_stand_together() {
        let mut page = Page::new();
        page.add("trellis_rows", &[("shard", "n1.0")], 3.0);
        page.add("trellis_locks", &[], 0.5);
        page.add("trellis_rows", &[("shard", "a\"b\\c\nd")], 4.0);
        let expected = "# HELP trellis_rows Rows of the shard.\n# TYPE trellis_rows gauge\n\
                        trellis_rows{shard=\"n1.0\"} 3\n\
                        trellis_rows{shard=\"a\\\"b\\\\c\\nd\"} 4\n\
                        # HELP trellis_locks Locks that are held.\n# TYPE trellis_locks gauge\n\
                        trellis_locks 0.5\n";
        assert_eq!(page.text(), expected);
    }
}
