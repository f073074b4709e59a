//! Syntax that stands for a function call, such as EXTRACT and SUBSTRING.

use crate::expr::Generator;
use crate::tree::{Node, Place};
use crate::values::ARRAYS;
use base::{Prng, Type};

impl Generator {
    /// A call in the special syntax of its function.
    pub(crate) fn special(&mut self, ty: Type, depth: usize) -> Node {
        let place = Place::Expr(ty);
        match ty {
            Type::Text => self.special_text(depth),
            Type::Int4 if self.one_in(2) => {
                let (part, text) = (
                    self.expr(Type::Text, depth - 1),
                    self.expr(Type::Text, depth - 1),
                );
                let node = Node::new("position in", place).text("position(").node(part);
                node.text(" IN ").node(text).text(")")
            }
            Type::Int4 | Type::Int8 | Type::Numeric(_) => self.subscript_or_extract(ty, depth),
            Type::Timestamp(None) => {
                let arg = self.expr(Type::Timestamptz(None), depth - 1);
                let zone = self.word(&["UTC", "+03", "Europe/Berlin"]);
                let node = Node::new("at time zone", place).text("(").node(arg);
                node.text(format!(" AT TIME ZONE '{zone}')"))
            }
            Type::Bool if self.one_in(2) => self.path_condition(depth),
            Type::Bool => {
                let starts = [self.expr(Type::Date, 0), self.expr(Type::Date, 0)];
                let ends = [self.expr(Type::Date, 0), self.expr(Type::Date, 0)];
                let ([a, b], [c, d]) = (starts, ends);
                let node = Node::new("overlaps", place)
                    .text("((")
                    .node(a)
                    .text(", ")
                    .node(b);
                node.text(") OVERLAPS (")
                    .node(c)
                    .text(", ")
                    .node(d)
                    .text("))")
            }
            Type::Array(_) => {
                let (_, element) = *ARRAYS
                    .iter()
                    .find(|(array, _)| *array == ty)
                    .expect("drawn");
                let count = 1 + self.below(3);
                let elements: Vec<Node> =
                    (0..count).map(|_| self.expr(element, depth - 1)).collect();
                let node = Node::new("array constructor", place).text("ARRAY[");
                node.list(elements, ", ").text("]")
            }
            _ => self.leaf(ty),
        }
    }

    fn subscript_or_extract(&mut self, ty: Type, depth: usize) -> Node {
        let place = Place::Expr(ty);
        if let Some((array, _)) = ARRAYS.iter().find(|(_, element)| *element == ty)
            && self.one_in(2)
        {
            let node = Node::new("subscript", place).text("(");
            let at = self.prng.between(0, 3);
            return node
                .node(self.expr(*array, depth - 1))
                .text(format!(")[{at}]"));
        }
        if !matches!(ty, Type::Numeric(_)) {
            return self.leaf(ty);
        }
        let field = self.word(&["year", "month", "day", "dow", "epoch", "quarter"]);
        let from = self.expr(Type::Timestamp(None), depth - 1);
        let node = Node::new("extract from", place).text(format!("extract({field} FROM "));
        node.node(from).text(")")
    }

    fn special_text(&mut self, depth: usize) -> Node {
        let place = Place::Expr(Type::Text);
        let small =
            |prng: &mut Prng| Node::leaf("literal", Type::Int4, prng.between(1, 4).to_string());
        if self.one_in(4) {
            return self.path_items(depth);
        }
        let text = self.expr(Type::Text, depth - 1);
        match self.below(4) {
            0 => {
                let (from, count) = (small(&mut self.prng), small(&mut self.prng));
                let node = Node::new("substring from for", place).text("substring(");
                node.node(text)
                    .text(" FROM ")
                    .node(from)
                    .text(" FOR ")
                    .node(count)
                    .text(")")
            }
            1 => {
                let side = self.word(&["BOTH ", "LEADING ", "TRAILING ", ""]);
                let node = Node::new("trim from", place).text(format!("trim({side}"));
                let node = match side.is_empty() {
                    true => node,
                    false => node.text("'a' FROM "),
                };
                node.node(text).text(")")
            }
            2 => {
                let with = self.expr(Type::Text, depth - 1);
                let from = small(&mut self.prng);
                let node = Node::new("overlay placing", place)
                    .text("overlay(")
                    .node(text);
                node.text(" PLACING ")
                    .node(with)
                    .text(" FROM ")
                    .node(from)
                    .text(")")
            }
            _ => {
                let node = Node::new("collate", place).text("(").node(text);
                node.text(" COLLATE \"C\")")
            }
        }
    }
}
