//! Statements as trees. Each node knows the rule that drew it: coverage counts rules, and a
//! statement on which two servers differ is made smaller node by node.

use base::Type;
use std::borrow::Cow;

/// A part of a statement that one rule made.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The rule, function or operator, for example `join left` or `function lower`.
    pub(crate) rule: Cow<'static, str>,
    /// What a smaller statement may have in place of this node.
    pub(crate) place: Place,
    pub(crate) pieces: Vec<Piece>,
}

/// What a smaller statement may have in place of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// An expression of this type.
    Expr(Type),
    /// Nothing: the node is optional.
    Optional,
    /// Only the node itself.
    Fixed,
}

#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Text(String),
    Node(Node),
}

impl Node {
    pub(crate) fn new(rule: impl Into<Cow<'static, str>>, place: Place) -> Node {
        Node {
            rule: rule.into(),
            place,
            pieces: Vec::new(),
        }
    }

    /// An expression of one text.
    pub(crate) fn leaf(
        rule: impl Into<Cow<'static, str>>,
        ty: Type,
        text: impl Into<String>,
    ) -> Node {
        Node::new(rule, Place::Expr(ty)).text(text)
    }

    pub(crate) fn text(mut self, text: impl Into<String>) -> Node {
        self.pieces.push(Piece::Text(text.into()));
        self
    }

    pub(crate) fn node(mut self, node: Node) -> Node {
        self.pieces.push(Piece::Node(node));
        self
    }

    /// The nodes with `between` between them.
    pub(crate) fn list(mut self, nodes: impl IntoIterator<Item = Node>, between: &str) -> Node {
        for (at, node) in nodes.into_iter().enumerate() {
            if at > 0 {
                self = self.text(between);
            }
            self = self.node(node);
        }
        self
    }

    /// The statement's text.
    pub(crate) fn render(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Node(node) => node.write(out),
            }
        }
    }

    /// Calls `visit` with the rule of each node.
    pub(crate) fn rules(&self, visit: &mut impl FnMut(&str)) {
        visit(&self.rule);
        for piece in &self.pieces {
            if let Piece::Node(node) = piece {
                node.rules(visit);
            }
        }
    }

    /// Number of nodes, this one included.
    pub(crate) fn size(&self) -> usize {
        let mut count = 0;
        self.rules(&mut |_| count += 1);
        count
    }

    /// Smaller statements, each by one step: an optional part is left out, or an expression is
    /// replaced by a part of it that has its type, or by NULL.
    pub(crate) fn smaller(&self) -> Vec<Node> {
        let mut all = Vec::new();
        for number in 0..self.size() {
            let mut at = number;
            let Some(node) = self.at(&mut at) else {
                continue;
            };
            for with in node.replacements() {
                let mut copy = self.clone();
                let mut at = number;
                copy.replace(&mut at, &with);
                all.push(copy);
            }
        }
        all
    }

    /// The node of this number, in the order in which [`Node::rules`] sees them.
    fn at(&self, number: &mut usize) -> Option<&Node> {
        if *number == 0 {
            return Some(self);
        }
        *number -= 1;
        for piece in &self.pieces {
            if let Piece::Node(node) = piece
                && let Some(found) = node.at(number)
            {
                return Some(found);
            }
        }
        None
    }

    fn replace(&mut self, number: &mut usize, with: &Node) -> bool {
        if *number == 0 {
            *self = with.clone();
            return true;
        }
        *number -= 1;
        self.pieces.iter_mut().any(|piece| match piece {
            Piece::Node(node) => node.replace(number, with),
            Piece::Text(_) => false,
        })
    }

    fn replacements(&self) -> Vec<Node> {
        match self.place {
            Place::Fixed => Vec::new(),
            Place::Optional if self.pieces.is_empty() => Vec::new(),
            Place::Optional => vec![Node::new("", Place::Optional)],
            Place::Expr(ty) => {
                let mut found = Vec::new();
                self.same_type(ty, &mut found);
                if self.size() > 1 {
                    let null = format!("NULL::{}", ty.name());
                    found.push(Node::leaf("", ty, null));
                }
                found
            }
        }
    }

    /// Parts of this expression that have its type.
    fn same_type(&self, ty: Type, found: &mut Vec<Node>) {
        for piece in &self.pieces {
            if let Piece::Node(node) = piece {
                if node.place == Place::Expr(ty) {
                    found.push(node.clone());
                }
                node.same_type(ty, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum() -> Node {
        let one = Node::leaf("literal", Type::Int4, "1");
        let two = Node::leaf("literal", Type::Int4, "2");
        let sum = Node::new("operator +", Place::Expr(Type::Int4));
        let sum = sum.node(one).text(" + ").node(two);
        let order = Node::new("order", Place::Optional).text(" ORDER BY 1");
        let select = Node::new("select", Place::Fixed).text("SELECT ");
        select.node(sum).node(order)
    }

    #[test]
    fn a_statement_gets_smaller_by_one_step() {
        assert_eq!(sum().render(), "SELECT 1 + 2 ORDER BY 1");
        let mut smaller: Vec<String> = sum().smaller().iter().map(Node::render).collect();
        smaller.sort();
        let expected = [
            "SELECT 1 + 2",
            "SELECT 1 ORDER BY 1",
            "SELECT 2 ORDER BY 1",
            "SELECT NULL::integer ORDER BY 1",
        ];
        assert_eq!(smaller, expected);
    }
}
