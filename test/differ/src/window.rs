//! Window functions and grouping sets.
//!
//! A window is ordered by all columns that a query sees, so that rows which are equal in its order
//! are equal, and their places do not matter.

use crate::expr::{Generator, sortable};
use crate::tree::{Node, Place};
use base::Type;

/// Columns that a window is ordered by at most.
const ORDER_MAX: usize = 12;

impl Generator {
    /// A window function of this type over the innermost query, if there can be one.
    pub(crate) fn window(&mut self, ty: Type) -> Option<Node> {
        let scope = self.scopes.last()?;
        if scope.in_aggregate {
            return None;
        }
        let columns = match &scope.keys {
            Some(keys) => keys.clone(),
            None => scope.columns.clone(),
        };
        let ordered = columns.iter().all(|(_, ty)| sortable(*ty));
        if !ordered || columns.is_empty() || columns.len() > ORDER_MAX {
            return None;
        }
        let call = self.called(ty, &columns)?;
        let rule = call.split('(').next().unwrap_or_default().to_string();
        let node = Node::new(format!("window {rule}"), Place::Expr(ty));
        let over = self.over(&columns);
        Some(node.text(call).node(over))
    }

    /// A call of this type over columns.
    fn called(&mut self, ty: Type, columns: &[(String, Type)]) -> Option<String> {
        let of = |ty: Type| {
            let fitting = columns.iter().filter(move |(_, of)| *of == ty);
            fitting.map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        let mut calls: Vec<String> = Vec::new();
        match ty {
            Type::Int8 => {
                let plain = ["row_number()", "rank()", "dense_rank()", "count(*)"];
                calls.extend(plain.map(String::from));
                let any = columns.iter().take(2);
                calls.extend(any.map(|(name, _)| format!("count({name})")));
                calls.extend(of(Type::Int4).iter().map(|name| format!("sum({name})")));
            }
            Type::Int4 => calls.extend(["ntile(3)", "ntile(7)"].map(String::from)),
            Type::Float8 => calls.extend(["percent_rank()", "cume_dist()"].map(String::from)),
            Type::Numeric(_) => {
                calls.extend(of(Type::Int8).iter().map(|name| format!("sum({name})")));
                calls.extend(of(Type::Int4).iter().map(|name| format!("avg({name})")));
                calls.extend(of(ty).iter().map(|name| format!("sum({name})")));
            }
            _ => {}
        }
        for name in of(ty) {
            let shift = self.word(&["", ", 0", ", 2", ", -1", ", NULL"]);
            calls.push(format!("lag({name}{shift})"));
            calls.push(format!("lead({name}{shift})"));
            calls.push(format!("first_value({name})"));
            calls.push(format!("last_value({name})"));
            calls.push(format!("nth_value({name}, 2)"));
            let none = Type::Bool == ty
                || matches!(
                    ty,
                    Type::Uuid
                        | Type::Macaddr
                        | Type::Bytea
                        | Type::Char(_)
                        | Type::Bit(_)
                        | Type::Varbit(_)
                        | Type::Range(_)
                        | Type::Multirange(_)
                );
            if !none && ty != Type::Varchar(None) {
                calls.extend([format!("min({name})"), format!("max({name})")]);
            }
        }
        if calls.is_empty() {
            return None;
        }
        Some(calls.swap_remove(self.below(calls.len())))
    }

    fn over(&mut self, columns: &[(String, Type)]) -> Node {
        let mut keys: Vec<String> = Vec::new();
        let first = self.below(columns.len());
        for at in 0..columns.len() {
            let (name, _) = &columns[(first + at) % columns.len()];
            let how = self.word(&["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
            keys.push(format!("{name}{how}"));
        }
        let (_, ty) = &columns[first];
        let mut node = Node::new("over", Place::Fixed).text(" OVER (");
        if self.one_in(2) {
            let by = &columns[self.below(columns.len())].0;
            let partition = Node::new("partition by", Place::Optional);
            node = node.node(partition.text(format!("PARTITION BY {by} ")));
        }
        node = node.text(format!("ORDER BY {}", keys.join(", ")));
        let number = matches!(ty, Type::Int2 | Type::Int4 | Type::Int8);
        let by_offsets = number && columns.len() == 1 && self.one_in(2);
        let grouped = self.scopes.last().is_some_and(|scope| scope.keys.is_some());
        if grouped && !by_offsets {
            // A NULL of a row and the NULL of a set without the key would be equal.
            let names = columns.iter().map(|(name, _)| name.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            node = node.text(format!(", GROUPING({names})"));
        }
        if by_offsets {
            let (from, to) = (self.below(4), self.below(4));
            let frame = Node::new("frame range offset", Place::Optional);
            let text = format!(" RANGE BETWEEN {from} PRECEDING AND {to} FOLLOWING");
            return node.node(frame.text(text)).text(")");
        }
        if self.one_in(3) {
            return node.text(")");
        }
        let units = self.word(&["ROWS", "GROUPS", "RANGE"]);
        let ends = match units {
            "RANGE" => self.word(&[
                "UNBOUNDED PRECEDING",
                "BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
                "BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            ]),
            _ => self.word(&[
                "2 PRECEDING",
                "BETWEEN 1 PRECEDING AND 1 FOLLOWING",
                "BETWEEN CURRENT ROW AND 2 FOLLOWING",
                "BETWEEN 3 PRECEDING AND 2 PRECEDING",
                "BETWEEN 1 FOLLOWING AND 100 FOLLOWING",
                "BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
            ]),
        };
        let without = self.word(&[
            "",
            "",
            " EXCLUDE CURRENT ROW",
            " EXCLUDE GROUP",
            " EXCLUDE TIES",
        ]);
        let frame = Node::new(format!("frame {}", units.to_lowercase()), Place::Optional);
        node.node(frame.text(format!(" {units} {ends}{without}")))
            .text(")")
    }

    /// GROUP BY these columns in one of its forms.
    pub(crate) fn group_by(&mut self, names: &[&str]) -> Node {
        let all = names.join(", ");
        let (rule, text) = match self.below(12) {
            0 | 1 => ("group by rollup", format!("ROLLUP ({all})")),
            2 => ("group by cube", format!("CUBE ({all})")),
            3 => {
                let sets: Vec<String> = names.iter().map(|name| format!("({name})")).collect();
                (
                    "grouping sets",
                    format!("GROUPING SETS ({}, ())", sets.join(", ")),
                )
            }
            4 => (
                "grouping sets",
                format!("GROUPING SETS (({all}), CUBE ({all}), {})", names[0]),
            ),
            5 => ("group by rollup", format!("{}, ROLLUP (({all}))", names[0])),
            _ => ("group by", all),
        };
        Node::new(rule, Place::Fixed).text(format!(" GROUP BY {text}"))
    }
}
