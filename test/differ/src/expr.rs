//! Expressions of a wanted type.

use crate::arguments;
use crate::query::Scope;
use crate::tree::{Node, Place};
use crate::values::{ARRAYS, TYPES, literal, pick, written};
use base::{Prng, Type};
use expr::resolve::{Form, Listed, Wanted, listing};
use std::collections::BTreeMap;

/// Draws statements.
pub(crate) struct Generator {
    pub(crate) prng: Prng,
    /// Functions and operators by the type of their result (`None`: an array).
    functions: BTreeMap<Option<Type>, Vec<Listed>>,
    /// All functions and operators, and the place of the one whose turn is next.
    all: Vec<Listed>,
    next: usize,
    /// Enclosing queries, the innermost last.
    pub(crate) scopes: Vec<Scope>,
    /// Leaves out functions that may fail: the server chooses the order of evaluation.
    pub(crate) careful: bool,
    /// Whether expressions may contain subqueries.
    pub(crate) subqueries: bool,
    /// Number of the next alias of the statement.
    pub(crate) aliases: usize,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Generator {
        let mut functions: BTreeMap<Option<Type>, Vec<Listed>> = BTreeMap::new();
        for listed in usable() {
            functions.entry(listed.returns).or_default().push(listed);
        }
        Generator {
            prng: Prng::new(seed),
            functions,
            all: usable(),
            next: 0,
            scopes: Vec::new(),
            careful: true,
            subqueries: true,
            aliases: 0,
        }
    }

    /// The next function or operator; every one gets its turn.
    pub(crate) fn turn(&mut self) -> Listed {
        self.next = (self.next + 1) % self.all.len();
        self.all[self.next].clone()
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.prng.below(bound as u64) as usize
    }

    /// True once in `n` draws.
    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.prng.below(n) == 0
    }

    pub(crate) fn word<'a>(&mut self, from: &[&'a str]) -> &'a str {
        pick(&mut self.prng, from)
    }

    /// One of the types that are drawn.
    pub(crate) fn ty(&mut self) -> Type {
        // Plain ones more often.
        if self.one_in(2) {
            let common = [
                Type::Int4,
                Type::Text,
                Type::Int8,
                Type::Numeric(None),
                Type::Bool,
            ];
            return common[self.below(common.len())];
        }
        TYPES[self.below(TYPES.len())]
    }

    /// An expression of this type that nests at most `depth` deep.
    pub(crate) fn expr(&mut self, ty: Type, depth: usize) -> Node {
        if depth == 0 || self.one_in(4) {
            return self.leaf(ty);
        }
        match self.below(12) {
            0..=4 => self.call(ty, depth),
            5 => self.case(ty, depth),
            6 => self.conditional(ty, depth),
            7 => self.cast(ty, depth),
            8 => self.scalar_subquery(ty, depth),
            9 => self.special(ty, depth),
            _ if ty == Type::Bool => self.predicate(depth),
            _ => self.call(ty, depth),
        }
    }

    /// A column, a literal or NULL.
    pub(crate) fn leaf(&mut self, ty: Type) -> Node {
        if !self.one_in(3)
            && let Some(column) = self.column(ty)
        {
            return column;
        }
        if self.one_in(15) {
            return Node::leaf("null", ty, format!("NULL::{}", written(ty)));
        }
        Node::leaf("literal", ty, literal(&mut self.prng, ty))
    }

    /// A function or operator.
    fn call(&mut self, ty: Type, depth: usize) -> Node {
        let wanted = if matches!(ty, Type::Array(_)) {
            None
        } else {
            Some(ty)
        };
        let mut choices: Vec<Listed> = self.functions.get(&wanted).cloned().unwrap_or_default();
        choices.extend(self.functions.get(&Some(ty)).into_iter().flatten().cloned());
        if self.careful {
            choices.retain(|listed| !arguments::may_fail(listed.name));
        }
        // The name is drawn first: some functions have a dozen lists of arguments.
        let mut names: Vec<&str> = choices.iter().map(|listed| listed.name).collect();
        names.dedup();
        if names.is_empty() {
            return self.leaf(ty);
        }
        let name = names[self.below(names.len())];
        choices.retain(|listed| listed.name == name);
        let listed = choices.swap_remove(self.below(choices.len()));
        self.write_call(&listed, ty, depth)
    }

    /// A call of this function or operator. `ty`: type of its result, where that is an array.
    pub(crate) fn write_call(&mut self, listed: &Listed, ty: Type, depth: usize) -> Node {
        let array = match ARRAYS.iter().find(|(array, _)| *array == ty) {
            Some(found) if listed.returns.is_none() => *found,
            _ => ARRAYS[self.below(ARRAYS.len())],
        };
        let mut count = listed.args.len();
        if listed.variadic {
            count += self.below(3);
        }
        let mut types = Vec::new();
        for at in 0..count {
            types.push(match listed.args[at.min(listed.args.len() - 1)] {
                Wanted::Is(ty) => ty,
                Wanted::Any => self.ty(),
                Wanted::Element => array.1,
                Wanted::Array => array.0,
            });
        }
        let mut args = Vec::new();
        for at in 0..count {
            args.push(self.argument(listed.name, at, &types, depth));
        }
        let returns = listed.returns.unwrap_or(array.0);
        let place = Place::Expr(returns);
        match listed.form {
            Form::Function => {
                let node = Node::new(format!("function {}", listed.name), place);
                node.text(format!("{}(", listed.name))
                    .list(args, ", ")
                    .text(")")
            }
            Form::Infix => {
                let node = Node::new(format!("operator {}", listed.name), place);
                let between = format!(" {} ", self.spelled(listed.name));
                node.text("(").list(args, &between).text(")")
            }
            Form::Prefix => {
                let node = Node::new(format!("prefix {}", listed.name), place);
                node.text(format!("({} ", listed.name))
                    .list(args, "")
                    .text(")")
            }
        }
    }

    /// The operator as people write it.
    fn spelled(&mut self, symbol: &'static str) -> &'static str {
        let word = match symbol {
            "~~" => "LIKE",
            "!~~" => "NOT LIKE",
            "~~*" => "ILIKE",
            "!~~*" => "NOT ILIKE",
            "<>" => "!=",
            other => other,
        };
        if self.one_in(2) { word } else { symbol }
    }

    fn argument(&mut self, name: &str, at: usize, types: &[Type], depth: usize) -> Node {
        let ty = types[at];
        if matches!(ty, Type::Text)
            && let Some(text) = arguments::text(&mut self.prng, name, at, types)
        {
            return Node::leaf("literal", ty, format!("'{text}'"));
        }
        if let Some(number) = arguments::number(&mut self.prng, name, at)
            && ty.is_numeric()
        {
            let text = format!("'{number}'::{}", written(ty));
            return Node::leaf("literal", ty, text);
        }
        self.expr(ty, depth - 1)
    }

    fn case(&mut self, ty: Type, depth: usize) -> Node {
        let arms = 1 + self.below(2);
        let simple = self.one_in(2);
        let on = self.ty();
        let rule = if simple {
            "case simple"
        } else {
            "case searched"
        };
        let mut node = Node::new(rule, Place::Expr(ty)).text("CASE");
        if simple {
            node = node.text(" ").node(self.expr(on, depth - 1));
        }
        for _ in 0..arms {
            let when = if simple {
                self.expr(on, depth - 1)
            } else {
                self.expr(Type::Bool, depth - 1)
            };
            let then = self.expr(ty, depth - 1);
            node = node.text(" WHEN ").node(when).text(" THEN ").node(then);
        }
        if !self.one_in(3) {
            node = node.text(" ELSE ").node(self.expr(ty, depth - 1));
        }
        node.text(" END")
    }

    fn conditional(&mut self, ty: Type, depth: usize) -> Node {
        let name = self.word(&["coalesce", "nullif", "greatest", "least"]);
        let count = if name == "nullif" {
            2
        } else {
            1 + self.below(3)
        };
        let args: Vec<Node> = (0..count).map(|_| self.expr(ty, depth - 1)).collect();
        let node = Node::new(format!("function {name}"), Place::Expr(ty));
        node.text(format!("{name}(")).list(args, ", ").text(")")
    }

    /// A cast from a type that has one.
    fn cast(&mut self, ty: Type, depth: usize) -> Node {
        const NUMBERS: [Type; 6] = [
            Type::Int2,
            Type::Int4,
            Type::Int8,
            Type::Float4,
            Type::Float8,
            Type::Numeric(None),
        ];
        let from = match ty {
            Type::Text | Type::Varchar(_) | Type::Char(_) => self.ty(),
            Type::Bool => Type::Int4,
            ty if NUMBERS.contains(&ty) && !self.careful => NUMBERS[self.below(NUMBERS.len())],
            Type::Int8 | Type::Numeric(_) | Type::Float8 => Type::Int4,
            Type::Int4 => self.one_of(&[Type::Int2, Type::Bool]),
            Type::Date => self.one_of(&[Type::Timestamp(None), Type::Timestamptz(None)]),
            Type::Time(None) => self.one_of(&[Type::Interval(None), Type::Timestamp(None)]),
            Type::Interval(_) => Type::Time(None),
            Type::Timestamp(None) => self.one_of(&[Type::Date, Type::Timestamptz(None)]),
            Type::Timestamptz(None) => self.one_of(&[Type::Date, Type::Timestamp(None)]),
            other => other,
        };
        let arg = self.expr(from, depth - 1);
        let to = match ty {
            Type::Varchar(_) if self.one_in(2) => "varchar(3)".into(),
            Type::Char(_) if self.one_in(2) => "char(4)".into(),
            Type::Numeric(_) if self.one_in(2) && !self.careful => "numeric(9,2)".into(),
            ty => written(ty),
        };
        if self.one_in(2) {
            let node = Node::new("cast", Place::Expr(ty));
            return node.text("CAST(").node(arg).text(format!(" AS {to})"));
        }
        let node = Node::new("cast ::", Place::Expr(ty));
        node.text("(").node(arg).text(format!(")::{to}"))
    }

    pub(crate) fn one_of(&mut self, from: &[Type]) -> Type {
        from[self.below(from.len())]
    }

    fn scalar_subquery(&mut self, ty: Type, depth: usize) -> Node {
        if self.scopes.len() > 2 || !self.subqueries {
            return self.leaf(ty);
        }
        let query = self.one_value(ty, depth - 1);
        let node = Node::new("scalar subquery", Place::Expr(ty));
        node.text("(").node(query).text(")")
    }
}

/// The functions and operators that are drawn.
pub(crate) fn usable() -> Vec<Listed> {
    let drawn = |ty: Type| TYPES.contains(&ty.without_modifiers()) || ty == Type::Name;
    let mut all = listing();
    all.retain(|listed| {
        let out = arguments::LEFT_OUT
            .iter()
            .any(|(name, _)| *name == listed.name);
        let args = listed.args.iter().all(|wanted| match wanted {
            Wanted::Is(ty) => TYPES.contains(&ty.without_modifiers()),
            Wanted::Any | Wanted::Element | Wanted::Array => true,
        });
        !out && args && listed.returns.is_none_or(drawn)
    });
    for listed in &mut all {
        listed.returns = listed.returns.map(Type::without_modifiers);
    }
    all
}

/// The types whose values can be put in order.
pub(crate) fn sortable(ty: Type) -> bool {
    TYPES.contains(&ty)
}
