//! Queries.

use crate::expr::{Generator, sortable};
use crate::ground::{READ, Table};
use crate::tree::{Node, Place};
use crate::values::{self, ARRAYS, INT4S, written};
use base::Type;

/// What expressions of one query may use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// Columns: alias and name, and type.
    pub(crate) columns: Vec<(String, Type)>,
    /// The query is grouped by these expressions; columns stand in aggregates only.
    pub(crate) keys: Option<Vec<(String, Type)>>,
    /// Inside of an aggregate's arguments.
    pub(crate) in_aggregate: bool,
}

/// Aggregates of pairs that give a float.
const PAIRS: [&str; 11] = [
    "corr",
    "covar_pop",
    "covar_samp",
    "regr_avgx",
    "regr_avgy",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
];

impl Generator {
    /// A column of this type of the innermost query, at times of an enclosing one.
    pub(crate) fn column(&mut self, ty: Type) -> Option<Node> {
        let last = self.scopes.len().checked_sub(1)?;
        let level = match last > 0 && self.one_in(4) {
            true => self.below(last),
            false => last,
        };
        let scope = &self.scopes[level];
        let grouped = scope.keys.is_some() && !scope.in_aggregate;
        let from = match &scope.keys {
            Some(keys) if grouped => keys,
            _ => &scope.columns,
        };
        let fitting: Vec<String> = from
            .iter()
            .filter(|(_, of)| *of == ty)
            .map(|(name, _)| name.clone())
            .collect();
        if grouped && level == last && (fitting.is_empty() || self.one_in(2)) {
            return self.aggregate(ty);
        }
        if fitting.is_empty() {
            return None;
        }
        let rule = if level == last {
            "column"
        } else {
            "column outer"
        };
        let name = fitting[self.below(fitting.len())].clone();
        Some(Node::leaf(rule, ty, name))
    }

    /// An aggregate of this type over the columns of the innermost query.
    fn aggregate(&mut self, ty: Type) -> Option<Node> {
        let numeric = Type::Numeric(None);
        let mut choices = of_ranges(ty);
        if sortable(ty) && has_extremes(ty) {
            choices.extend([("min", ty), ("max", ty)]);
        }
        match ty {
            Type::Int8 => choices.extend([
                ("count", Type::Int4),
                ("count", Type::Text),
                ("sum", Type::Int4),
                ("sum", Type::Int2),
                ("count(*)", Type::Int4),
                ("bit_and", Type::Int8),
                ("bit_or", Type::Int8),
                ("bit_xor", Type::Int8),
                ("regr_count", Type::Int4),
            ]),
            Type::Int4 | Type::Bit(None) => {
                choices.extend([("bit_and", ty), ("bit_or", ty), ("bit_xor", ty)]);
            }
            Type::Numeric(_) => choices.extend([
                ("sum", Type::Int8),
                ("sum", numeric),
                ("avg", Type::Int4),
                ("avg", numeric),
                ("stddev", Type::Int4),
                ("stddev_samp", numeric),
                ("stddev_pop", Type::Int8),
                ("variance", Type::Int4),
                ("var_samp", numeric),
                ("var_pop", Type::Int4),
            ]),
            Type::Float8 => {
                choices.extend([
                    ("sum", Type::Float8),
                    ("avg", Type::Float8),
                    ("avg", Type::Float4),
                    ("stddev", Type::Float8),
                    ("var_pop", Type::Float8),
                ]);
                choices.extend(PAIRS.map(|name| (name, Type::Int4)));
            }
            Type::Float4 => choices.push(("sum", Type::Float4)),
            Type::Interval(_) => choices.extend([("sum", ty), ("avg", ty)]),
            Type::Bool => {
                choices.extend([("bool_and", ty), ("bool_or", ty), ("every", ty)]);
            }
            Type::Text | Type::Bytea => {
                choices.push(("string_agg", ty));
                if ty == Type::Text {
                    choices.extend([
                        ("json_agg", Type::Int4),
                        ("jsonb_agg", Type::Text),
                        ("json_object_agg", Type::Bool),
                        ("jsonb_object_agg", Type::Int8),
                    ]);
                }
            }
            Type::Array(_) => {
                let (_, element) = *ARRAYS.iter().find(|(array, _)| *array == ty)?;
                choices.push(("array_agg", element));
            }
            _ => {}
        }
        if choices.is_empty() {
            return None;
        }
        let (name, of) = choices[self.below(choices.len())];
        Some(self.write_aggregate(name, of, ty))
    }

    fn write_aggregate(&mut self, name: &str, of: Type, ty: Type) -> Node {
        let bare = name.trim_end_matches("(*)");
        let node = Node::new(format!("aggregate {bare}"), Place::Expr(ty));
        let (careful, subqueries) = (self.careful, self.subqueries);
        self.careful = true;
        self.subqueries = false;
        self.scopes.last_mut().expect("in a query").in_aggregate = true;
        let mut node = if name == "count(*)" {
            node.text("count(*)")
        } else {
            let depth = self.below(2);
            let arg = self.expr(of, depth);
            self.aggregate_call(node, name, of, arg)
        };
        if self.one_in(6) {
            let condition = self.predicate(1);
            let filter = Node::new("filter", Place::Optional).text(" FILTER (WHERE ");
            node = node.node(filter.node(condition).text(")"));
        }
        self.scopes.last_mut().expect("in a query").in_aggregate = false;
        self.careful = careful;
        self.subqueries = subqueries;
        node
    }

    fn aggregate_call(&mut self, node: Node, name: &str, of: Type, arg: Node) -> Node {
        let text = arg.render();
        // With DISTINCT the order must be by the argument itself, and a literal cannot be that.
        let ordered = matches!(name, "array_agg" | "string_agg");
        let plain = !ordered || arg.rule == "column";
        if name.starts_with("json") {
            return self.json_aggregate(node, name, of, arg);
        }
        let distinct = if plain && self.one_in(4) {
            "DISTINCT "
        } else {
            ""
        };
        if name == "regr_count" || PAIRS.contains(&name) {
            // Beside a constant, no digits depend on the order of rows but those of squares.
            let node = node.text(format!("{name}({distinct}3, "));
            return node.node(arg).text(")");
        }
        let node = node.text(format!("{name}({distinct}")).node(arg);
        let direction = self.word(&["", " DESC", " ASC NULLS FIRST"]);
        match name {
            "array_agg" => {
                let order = Node::new("aggregate order", Place::Fixed);
                node.node(order.text(format!(" ORDER BY {text}{direction}")))
                    .text(")")
            }
            "string_agg" => {
                let between = if of == Type::Bytea {
                    r"'\x2c'::bytea"
                } else {
                    "','"
                };
                let node = node.text(format!(", {between}"));
                let order = Node::new("aggregate order", Place::Fixed);
                node.node(order.text(format!(" ORDER BY {text}{direction}")))
                    .text(")")
            }
            _ => node.text(")"),
        }
    }

    /// A document of all rows, as text, so that it is no operand of what json has not. A literal
    /// gets its type: what has none is no value for a document.
    fn json_aggregate(&mut self, node: Node, name: &str, of: Type, arg: Node) -> Node {
        let text = arg.render();
        let ty = written(of);
        let order = Node::new("aggregate order", Place::Fixed);
        let order = order.text(format!(" ORDER BY ({text})::{ty}"));
        let begin = match name.ends_with("object_agg") {
            true => format!("{name}(coalesce(({text})::text, ''), ("),
            false => format!("{name}(("),
        };
        let node = node.text(begin).node(arg).text(format!(")::{ty}"));
        node.node(order).text(")::text")
    }

    /// FROM with up to two joins. Fills the innermost scope.
    fn from(&mut self, depth: usize) -> Node {
        let mut node = Node::new("from", Place::Fixed).text(" FROM ");
        let (first, mut seen) = self.source(depth, false);
        self.scope().columns.extend(seen.clone());
        node = node.node(first);
        while self.scope().columns.len() < 24 && self.one_in(3) {
            let kind = self.word(&[
                "JOIN",
                "INNER JOIN",
                "LEFT JOIN",
                "RIGHT JOIN",
                "FULL JOIN",
                "CROSS JOIN",
                ",",
                "LEFT OUTER JOIN",
            ]);
            let lateral = matches!(kind, "JOIN" | "CROSS JOIN" | "LEFT JOIN") && self.one_in(4);
            let (source, columns) = self.source(depth, lateral);
            let rule = format!("join {}", kind.to_lowercase());
            node = node.node(
                Node::new(rule, Place::Fixed)
                    .text(format!(" {kind} "))
                    .node(source),
            );
            if !matches!(kind, "CROSS JOIN" | ",") {
                // A condition sees the tables of its own join only: a comma ends that list.
                let condition = self.join_condition(&seen, &columns, kind == "FULL JOIN");
                node = node.node(condition);
                seen.extend(columns.clone());
            } else if kind == "," {
                seen = columns.clone();
            } else {
                seen.extend(columns.clone());
            }
            self.scope().columns.extend(columns);
        }
        node
    }

    pub(crate) fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("in a query")
    }

    fn join_condition(
        &mut self,
        left: &[(String, Type)],
        right: &[(String, Type)],
        full: bool,
    ) -> Node {
        let pairs: Vec<(&str, &str)> = left
            .iter()
            .flat_map(|(a, of)| {
                let fitting = right.iter().filter(move |(_, ty)| ty == of);
                fitting.map(move |(b, _)| (a.as_str(), b.as_str()))
            })
            .collect();
        let node = Node::new("on", Place::Fixed);
        if pairs.is_empty() {
            let truth = if full { "1 = 1" } else { "true" };
            return node.text(format!(" ON {truth}"));
        }
        let (a, b) = pairs[self.below(pairs.len())];
        // USING where both have a column of the same name.
        let column = a.rsplit('.').next().unwrap_or(a);
        let once = |columns: &[(String, Type)]| {
            let is = |name: &String| name.rsplit('.').next() == Some(column);
            columns.iter().filter(|(name, _)| is(name)).count() == 1
        };
        if b.rsplit('.').next() == Some(column) && once(left) && once(right) && self.one_in(2) {
            return Node::new("using", Place::Fixed).text(format!(" USING ({column})"));
        }
        let op = if full {
            "="
        } else {
            self.word(&["=", "=", "=", "<", ">=", "<>"])
        };
        let node = node.text(format!(" ON ({a} {op} {b}"));
        if full || !self.one_in(4) {
            return node.text(")");
        }
        let (c, d) = pairs[self.below(pairs.len())];
        let word = self.word(&["AND", "OR"]);
        node.text(format!(" {word} {c} = {d})"))
    }

    /// An item of FROM, with its columns.
    fn source(&mut self, depth: usize, lateral: bool) -> (Node, Vec<(String, Type)>) {
        self.aliases += 1;
        let alias = format!("x{}", self.aliases);
        let kind = if depth == 0 { 0 } else { self.below(10) };
        match kind {
            7 | 8 if self.scopes.len() <= 2 => {
                // Only LATERAL sees the tables before it in FROM.
                let hidden = match lateral {
                    true => None,
                    false => Some(std::mem::take(&mut self.scope().columns)),
                };
                let width = 1 + self.below(3);
                let types: Vec<Type> = (0..width).map(|_| self.ty()).collect();
                let query = self.query(&types, depth - 1, false);
                if let Some(columns) = hidden {
                    self.scope().columns = columns;
                }
                let names: Vec<String> = (1..=width).map(|at| format!("c{at}")).collect();
                let columns = names.iter().zip(&types);
                let columns = columns
                    .map(|(name, ty)| (format!("{alias}.{name}"), *ty))
                    .collect();
                let (rule, word) = match lateral {
                    true => ("lateral subquery", "LATERAL "),
                    false => ("subquery in from", ""),
                };
                let node = Node::new(rule, Place::Fixed)
                    .text(format!("{word}("))
                    .node(query);
                (
                    node.text(format!(") AS {alias} ({})", names.join(", "))),
                    columns,
                )
            }
            9 => self.made_rows(alias),
            _ => {
                let table = &READ[self.below(READ.len())];
                let node = Node::new("table", Place::Fixed);
                (
                    node.text(format!("{} AS {alias}", table.name)),
                    columns_of(table, &alias),
                )
            }
        }
    }

    /// VALUES, generate_series or unnest.
    fn made_rows(&mut self, alias: String) -> (Node, Vec<(String, Type)>) {
        match self.below(3) {
            0 => {
                let types = [self.ty(), self.ty()];
                let count = 1 + self.below(3);
                let rows = (0..count).map(|_| {
                    let cells = types.map(|ty| {
                        let text = values::literal(&mut self.prng, ty);
                        Node::leaf("literal", ty, format!("{text}::{}", written(ty)))
                    });
                    Node::new("row", Place::Fixed)
                        .text("(")
                        .list(cells, ", ")
                        .text(")")
                });
                let rows: Vec<Node> = rows.collect();
                let node = Node::new("values in from", Place::Fixed).text("(VALUES ");
                let node = node.list(rows, ", ").text(format!(") AS {alias} (c1, c2)"));
                let columns = [
                    (format!("{alias}.c1"), types[0]),
                    (format!("{alias}.c2"), types[1]),
                ];
                (node, columns.to_vec())
            }
            1 => {
                let (from, to) = (self.prng.between(-1, 2), self.prng.between(0, 6));
                let step = self.word(&["", ", 1", ", 2", ", -1"]);
                let node = Node::new("generate_series", Place::Fixed);
                let text = format!("generate_series({from}, {to}{step}) AS {alias} (n)");
                (node.text(text), vec![(format!("{alias}.n"), Type::Int4)])
            }
            _ => {
                let array = Node::leaf("literal", INT4S, values::literal(&mut self.prng, INT4S));
                let node = Node::new("unnest", Place::Fixed)
                    .text("unnest(")
                    .node(array);
                (
                    node.text(format!(") AS {alias} (n)")),
                    vec![(format!("{alias}.n"), Type::Int4)],
                )
            }
        }
    }

    /// A query of columns of these types. `ordered`: by all of its columns, perhaps with LIMIT.
    /// Columns without a type are not in ORDER BY, which would make them text.
    pub(crate) fn query(&mut self, types: &[Type], depth: usize, ordered: bool) -> Node {
        let is_union = self.one_in(8);
        let (mut node, sorted) = self.select(types, depth, ordered && !is_union);
        if is_union {
            let word = self.word(&[" UNION ", " UNION ALL "]);
            let (second, _) = self.select(types, 1, true);
            let rule = Node::new("union", Place::Optional);
            node = node.node(rule.text(word).node(second));
        }
        match ordered {
            true => node.node(self.order(&sorted)),
            false => node,
        }
    }

    /// A SELECT of columns of these types, with the numbers of the columns that have a type. The
    /// others are literals without one, where those are allowed.
    fn select(&mut self, types: &[Type], depth: usize, untyped: bool) -> (Node, Vec<usize>) {
        self.scopes.push(Scope::default());
        let from = self.from(depth);
        // Most conditions leave few rows, so most queries have no condition.
        let condition = match self.one_in(3) {
            true => Node::new("", Place::Optional),
            false => self.optional_clause("where", " WHERE ", 2, depth),
        };
        let grouping = if self.one_in(3) {
            self.grouping(types)
        } else {
            None
        };
        let grouped = self.scope().keys.is_some();
        // DISTINCT turns a literal without a type into text, which few places accept.
        let distinct = if self.one_in(6) { "DISTINCT " } else { "" };
        let mut sorted = Vec::new();
        let mut items = Vec::new();
        for (at, ty) in (1..).zip(types) {
            if untyped && distinct.is_empty() && self.one_in(6) {
                let text = values::untyped(&mut self.prng, *ty);
                items.push(Node::new("untyped", Place::Fixed).text(text));
            } else {
                sorted.push(at);
                items.push(self.item(*ty, depth));
            }
        }
        let having = match grouped {
            true => self.optional_clause("having", " HAVING ", 4, 1),
            false => Node::new("", Place::Optional),
        };
        self.scopes.pop();
        let mut node = Node::new("select", Place::Fixed).text("SELECT ");
        if !distinct.is_empty() {
            node = node.node(Node::new("distinct", Place::Optional).text(distinct));
        }
        node = node.list(items, ", ").node(from).node(condition);
        node = node
            .node(grouping.unwrap_or_else(|| Node::new("", Place::Optional)))
            .node(having);
        (node, sorted)
    }

    /// An item of the SELECT list, cast to its type: NULLs and literals have none by themselves.
    fn item(&mut self, ty: Type, depth: usize) -> Node {
        let depth = self.below(depth + 1);
        let window = match self.one_in(8) {
            true => self.window(ty),
            false => None,
        };
        let node = match window {
            Some(window) => window,
            None => self.expr(ty, depth),
        };
        match ty {
            Type::Text | Type::Varchar(_) | Type::Char(_) => {
                let cast = Node::new("cast ::", Place::Expr(ty)).text("(").node(node);
                cast.text(format!(")::{}", written(ty)))
            }
            _ => node,
        }
    }

    fn optional_clause(&mut self, rule: &'static str, text: &str, n: u64, depth: usize) -> Node {
        let node = Node::new(rule, Place::Optional);
        if self.one_in(n) {
            return Node::new("", Place::Optional);
        }
        let depth = 1 + self.below(depth.max(1));
        node.text(text).node(self.predicate(depth))
    }

    /// GROUP BY some columns, or by none. From then on the scope is that of a grouped query.
    fn grouping(&mut self, types: &[Type]) -> Option<Node> {
        let columns = self.scope().columns.clone();
        if columns.is_empty() || self.one_in(4) {
            self.scope().keys = Some(Vec::new());
            return None;
        }
        let mut keys: Vec<(String, Type)> = Vec::new();
        // Columns that the query wants, if there are any.
        let wanted: Vec<&(String, Type)> = columns
            .iter()
            .filter(|(_, ty)| types.contains(ty))
            .collect();
        let from: Vec<&(String, Type)> = match wanted.is_empty() {
            true => columns.iter().collect(),
            false => wanted,
        };
        for _ in 0..1 + self.below(2) {
            let key = from[self.below(from.len())].clone();
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let names: Vec<&str> = keys.iter().map(|(name, _)| name.as_str()).collect();
        let node = self.group_by(&names);
        self.scope().keys = Some(keys);
        Some(node)
    }

    /// ORDER BY these columns of the result. They are all columns but constants, so the order is
    /// the same on both servers.
    fn order(&mut self, columns: &[usize]) -> Node {
        if columns.is_empty() {
            return Node::new("", Place::Optional);
        }
        let parts: Vec<String> = columns
            .iter()
            .map(|at| {
                let how = self.word(&["", " DESC", " ASC", " NULLS FIRST", " DESC NULLS LAST"]);
                format!("{at}{how}")
            })
            .collect();
        let mut node = Node::new("order by", Place::Optional);
        node = node.text(format!(" ORDER BY {}", parts.join(", ")));
        if self.one_in(3) {
            let limit = self.prng.below(6);
            let text = match self.below(2) {
                0 => format!(" LIMIT {limit}"),
                _ => format!(" FETCH FIRST {limit} ROWS ONLY"),
            };
            node = node.node(Node::new("limit", Place::Optional).text(text));
        }
        if self.one_in(6) {
            let offset = self.prng.below(4);
            // The standard has OFFSET before FETCH; PostgreSQL also allows OFFSET after LIMIT.
            let has_fetch = node.render().contains("FETCH");
            if !has_fetch {
                let text = format!(" OFFSET {offset}");
                node = node.node(Node::new("offset", Place::Optional).text(text));
            }
        }
        node
    }

    /// A query of one row with one value.
    pub(crate) fn one_value(&mut self, ty: Type, depth: usize) -> Node {
        let query = self.query(&[ty], depth, false);
        let node = Node::new("one value", Place::Fixed).node(query);
        node.text(" ORDER BY 1 LIMIT 1")
    }

    /// A query of one column.
    pub(crate) fn one_column(&mut self, ty: Type, depth: usize) -> Node {
        self.query(&[ty], depth, false)
    }

    /// Any query, for EXISTS.
    pub(crate) fn any_query(&mut self, depth: usize) -> Node {
        self.query(&[Type::Int4], depth, false)
    }

    /// A statement that reads tables.
    pub(crate) fn read(&mut self) -> Node {
        let width = 1 + self.below(4);
        let types: Vec<Type> = (0..width).map(|_| self.ty()).collect();
        self.read_of(&types)
    }

    /// A statement that reads columns of these types.
    pub(crate) fn read_of(&mut self, types: &[Type]) -> Node {
        self.careful = true;
        self.subqueries = true;
        let depth = 1 + self.below(3);
        let node = Node::new("query", Place::Fixed);
        node.node(self.query(types, depth, true))
    }

    /// A statement that computes one expression, which may fail.
    pub(crate) fn compute(&mut self) -> Node {
        let ty = self.ty();
        self.compute_of(&[ty])
    }

    /// A statement that computes an expression of one of these types.
    pub(crate) fn compute_of(&mut self, types: &[Type]) -> Node {
        self.careful = false;
        self.subqueries = false;
        let ty = self.one_of(types);
        let depth = 1 + self.below(3);
        let node = Node::new("expression", Place::Fixed).text("SELECT ");
        node.node(self.expr(ty, depth))
    }
}

/// The columns of a table under an alias.
pub(crate) fn columns_of(table: &Table, alias: &str) -> Vec<(String, Type)> {
    let columns = table.columns.iter();
    columns
        .map(|(name, ty)| (format!("{alias}.{name}"), *ty))
        .collect()
}

/// Aggregates of ranges that give this type, with what they are over.
fn of_ranges(ty: Type) -> Vec<(&'static str, Type)> {
    match ty {
        Type::Range(_) => vec![("range_intersect_agg", ty)],
        Type::Multirange(kind) => vec![
            ("range_agg", Type::Range(kind)),
            ("range_agg", ty),
            ("range_intersect_agg", ty),
        ],
        _ => Vec::new(),
    }
}

/// Whether there are `min` and `max` of the type.
fn has_extremes(ty: Type) -> bool {
    !matches!(
        ty,
        Type::Bool
            | Type::Uuid
            | Type::Macaddr
            | Type::Bytea
            | Type::Char(_)
            | Type::Bit(_)
            | Type::Varbit(_)
            | Type::Range(_)
            | Type::Multirange(_)
    )
}
