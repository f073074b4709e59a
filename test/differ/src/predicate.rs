//! Conditions.

use crate::expr::Generator;
use crate::tree::{Node, Place};
use crate::values::ARRAYS;
use base::Type;

impl Generator {
    /// A condition.
    pub(crate) fn predicate(&mut self, depth: usize) -> Node {
        let place = Place::Expr(Type::Bool);
        if depth == 0 {
            return self.leaf(Type::Bool);
        }
        let deeper = depth - 1;
        match self.below(16) {
            0..=1 => self.chain("and", " AND ", deeper),
            2 => self.chain("or", " OR ", deeper),
            3..=6 => self.test(deeper),
            7 => self.between(deeper),
            8 => {
                let ty = self.ty();
                let count = 1 + self.below(4);
                let word = self.word(&["IN", "NOT IN"]);
                let list: Vec<Node> = (0..count).map(|_| self.leaf(ty)).collect();
                let node = Node::new("in list", place)
                    .text("(")
                    .node(self.expr(ty, deeper));
                node.text(format!(" {word} (")).list(list, ", ").text("))")
            }
            9 | 10 if self.scopes.len() <= 2 && self.subqueries => self.of_subquery(deeper),
            11 => {
                let (array, element) = ARRAYS[self.below(ARRAYS.len())];
                let word = self.word(&["= ANY", "<> ALL", "< ANY", ">= ALL"]);
                let left = self.expr(element, deeper);
                let node = Node::new("any array", place).text("(").node(left);
                node.text(format!(" {word} ("))
                    .node(self.expr(array, deeper))
                    .text("))")
            }
            12 => self.rows(deeper),
            13 => {
                let word = self.word(&["LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE"]);
                let pattern = self.word(&["a%", "%b%", "_b_", "%", "", "Hello%", "%o W%", "%a"]);
                let node = Node::new("like", place)
                    .text("(")
                    .node(self.expr(Type::Text, deeper));
                node.text(format!(" {word} '{pattern}')"))
            }
            _ => {
                let word = self.word(&["=", "<>", "<", "<=", ">", ">="]);
                self.of_two("comparison", word, deeper)
            }
        }
    }

    fn chain(&mut self, rule: &'static str, between: &str, depth: usize) -> Node {
        let count = 2 + self.below(2);
        let parts: Vec<Node> = (0..count).map(|_| self.predicate(depth)).collect();
        let node = Node::new(rule, Place::Expr(Type::Bool)).text("(");
        node.list(parts, between).text(")")
    }

    fn of_two(&mut self, rule: &'static str, word: &str, depth: usize) -> Node {
        let ty = self.ty();
        let (left, right) = (self.expr(ty, depth), self.expr(ty, depth));
        let node = Node::new(rule, Place::Expr(Type::Bool))
            .text("(")
            .node(left);
        node.text(format!(" {word} ")).node(right).text(")")
    }

    fn between(&mut self, depth: usize) -> Node {
        let ty = self.ty();
        let word = self.word(&["BETWEEN", "NOT BETWEEN", "BETWEEN SYMMETRIC"]);
        let [arg, low, high] = [0; 3].map(|_| self.expr(ty, depth));
        let node = Node::new("between", Place::Expr(Type::Bool))
            .text("(")
            .node(arg);
        node.text(format!(" {word} "))
            .node(low)
            .text(" AND ")
            .node(high)
            .text(")")
    }

    /// A comparison of rows.
    fn rows(&mut self, depth: usize) -> Node {
        let types = [self.ty(), self.ty()];
        let row = |this: &mut Generator| {
            let parts = types.map(|ty| this.expr(ty, depth));
            Node::new("row", Place::Fixed)
                .text("(")
                .list(parts, ", ")
                .text(")")
        };
        let place = Place::Expr(Type::Bool);
        if self.one_in(2) {
            let word = self.word(&["=", "<>", "<", "<=", ">", ">="]);
            let (left, right) = (row(self), row(self));
            let node = Node::new("row comparison", place).text("(").node(left);
            return node.text(format!(" {word} ")).node(right).text(")");
        }
        let word = self.word(&["IN", "NOT IN"]);
        let left = row(self);
        let list = [row(self), row(self)];
        let node = Node::new("row in list", place).text("(").node(left);
        node.text(format!(" {word} (")).list(list, ", ").text("))")
    }

    /// A condition about one or two values.
    fn test(&mut self, deeper: usize) -> Node {
        let place = Place::Expr(Type::Bool);
        match self.below(4) {
            0 => {
                let node = Node::new("not", place).text("(NOT ");
                node.node(self.expr(Type::Bool, deeper)).text(")")
            }
            1 => {
                let word = self.word(&["IS NULL", "IS NOT NULL"]);
                let ty = self.ty();
                let node = Node::new("is null", place)
                    .text("(")
                    .node(self.expr(ty, deeper));
                node.text(format!(" {word})"))
            }
            2 => {
                let word = self.word(&[
                    "IS TRUE",
                    "IS NOT TRUE",
                    "IS FALSE",
                    "IS NOT FALSE",
                    "IS UNKNOWN",
                    "IS NOT UNKNOWN",
                ]);
                let node = Node::new("is truth", place).text("(");
                node.node(self.expr(Type::Bool, deeper))
                    .text(format!(" {word})"))
            }
            _ => {
                let word = self.word(&["IS DISTINCT FROM", "IS NOT DISTINCT FROM"]);
                self.of_two("is distinct", word, deeper)
            }
        }
    }

    /// A condition about the rows of a subquery.
    fn of_subquery(&mut self, deeper: usize) -> Node {
        let place = Place::Expr(Type::Bool);
        if self.one_in(2) {
            let word = self.word(&["EXISTS", "NOT EXISTS"]);
            let query = self.any_query(deeper);
            let node = Node::new("exists", place).text(format!("({word} ("));
            node.node(query).text("))")
        } else {
            let ty = self.ty();
            let word = self.word(&["IN", "NOT IN", "= ANY", "<> ALL"]);
            let left = self.expr(ty, deeper);
            let query = self.one_column(ty, deeper);
            let node = Node::new("in subquery", place).text("(").node(left);
            node.text(format!(" {word} (")).node(query).text("))")
        }
    }
}
