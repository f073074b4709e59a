//! Paths (`jsonpath`) into documents.

use crate::expr::Generator;
use crate::tree::{Node, Place};
use base::Type;

/// Operators that compare two sides.
const COMPARED: [&str; 7] = ["==", "!=", "<>", "<", "<=", ">", ">="];

impl Generator {
    /// Whether a path leads anywhere, or its condition is met.
    pub(crate) fn path_condition(&mut self, depth: usize) -> Node {
        let place = Place::Expr(Type::Bool);
        let condition = self.one_in(2);
        let path = match condition {
            true => self.path_predicate(2, false),
            false => self.path_value(2, false),
        };
        let document = self.document(depth);
        let (rule, name, operator) = match condition {
            true => ("path match", "jsonb_path_match", "@@"),
            false => ("path exists", "jsonb_path_exists", "@?"),
        };
        if self.one_in(2) {
            let node = Node::new(rule, place).text("(").node(document);
            return node.text(format!(" {operator} {})", quoted(&path)));
        }
        let node = Node::new(rule, place)
            .text(format!("{name}("))
            .node(document);
        node.text(format!(", {}{})", quoted(&path), self.path_rest()))
    }

    /// All that a path leads to, as text.
    pub(crate) fn path_items(&mut self, depth: usize) -> Node {
        let path = self.path_value(2, false);
        let document = self.document(depth);
        let node = Node::new("path query", Place::Expr(Type::Text));
        let name = self.word(&["array", "first"]);
        let node = node
            .text(format!("jsonb_path_query_{name}("))
            .node(document);
        node.text(format!(", {}{})::text", quoted(&path), self.path_rest()))
    }

    /// Variables, and whether the call is silent.
    fn path_rest(&mut self) -> &'static str {
        const SILENT: &str = ", '{\"x\": 1, \"y\": \"a\"}', true";
        match self.careful {
            true => SILENT,
            false => ["", ", '{\"x\": 1, \"y\": \"a\"}'", SILENT][self.below(3)],
        }
    }

    fn document(&mut self, depth: usize) -> Node {
        let node = Node::new("document", Place::Expr(Type::Text));
        if self.one_in(2) {
            let text = self.word(&[
                "{\"a\": [1, 2, {\"b\": \"x\"}], \"b\": null, \"c\": {\"a\": 12.50}}",
                "[1, \"abc\", [2, [3]], {\"a\": {\"b\": [4, 5]}}, \"2020-01-02\", \"1.5\"]",
                "{\"a\": {\"a\": {\"a\": [{\"b\": 0.001}, {\"b\": 1e3}]}}}",
                "[]",
                "\"text\"",
                "-7",
            ]);
            return node.text(format!("jsonb '{text}'"));
        }
        let number = self.expr(Type::Int4, depth - 1);
        let text = self.expr(Type::Text, depth - 1);
        let node = node.text("jsonb_build_object('a', ").node(number);
        node.text(", 'b', jsonb_build_array(")
            .node(text)
            .text(", 1.5))")
    }

    fn path_steps(&mut self, depth: usize) -> String {
        let mut steps = String::new();
        for _ in 0..self.below(4) {
            let step = match self.below(6) {
                0 | 1 => self.word(&[".a", ".b", ".c", ".*", ".\"a\""]).into(),
                2 => self
                    .word(&[
                        "[*]",
                        "[0]",
                        "[last]",
                        "[0, 2]",
                        "[1 to last]",
                        "[last - 1]",
                    ])
                    .into(),
                3 => self
                    .word(&[".**", ".**{1}", ".**{1 to 2}", ".**{last}"])
                    .into(),
                4 if depth > 0 => format!(" ? ({})", self.path_predicate(depth - 1, true)),
                _ => {
                    let methods = [
                        "size", "type", "double", "abs", "floor", "ceiling", "keyvalue", "datetime",
                    ];
                    format!(".{}()", self.word(&methods))
                }
            };
            steps.push_str(&step);
        }
        steps
    }

    /// A path that gives values; `@` stands in filters alone.
    fn path_value(&mut self, depth: usize, in_filter: bool) -> String {
        match self.below(9) {
            0 => self
                .word(&["1", "1.5", "\"a\"", "null", "true", "$x", "$y"])
                .into(),
            1 if depth > 0 => {
                let left = self.path_value(depth - 1, in_filter);
                let right = self.path_value(depth - 1, in_filter);
                let op = self.word(&["+", "-", "*", "/", "%"]);
                format!("({left} {op} {right})")
            }
            2 if depth > 0 => format!("-({})", self.path_value(depth - 1, in_filter)),
            4 | 5 if in_filter => format!("@{}", self.path_steps(depth)),
            _ => format!("${}", self.path_steps(depth)),
        }
    }

    fn path_predicate(&mut self, depth: usize, in_filter: bool) -> String {
        match self.below(8) {
            0 if depth > 0 => {
                let left = self.path_predicate(depth - 1, in_filter);
                let right = self.path_predicate(depth - 1, in_filter);
                format!("{left} {} {right}", self.word(&["&&", "||"]))
            }
            1 if depth > 0 => format!("!({})", self.path_predicate(depth - 1, in_filter)),
            2 if depth > 0 => {
                format!("({}) is unknown", self.path_predicate(depth - 1, in_filter))
            }
            3 => format!("exists ({})", self.path_value(depth, in_filter)),
            4 => {
                let start = self.word(&["\"a\"", "\"\"", "$y"]);
                format!("{} starts with {start}", self.path_value(depth, in_filter))
            }
            5 => {
                let pattern = self.word(&["\"^a\"", "\"B\" flag \"i\"", "\".\" flag \"q\""]);
                format!("{} like_regex {pattern}", self.path_value(depth, in_filter))
            }
            _ => {
                let left = self.path_value(depth, in_filter);
                let right = self.path_value(depth, in_filter);
                format!("{left} {} {right}", self.word(&COMPARED))
            }
        }
    }
}

/// A literal of the path, now and then a strict one.
fn quoted(path: &str) -> String {
    let mode = if path.len().is_multiple_of(3) {
        "strict "
    } else {
        ""
    };
    format!("'{mode}{path}'")
}
