//! Which parameters of a shape stand for values: where a literal and a parameter of its type mean
//! the same, whatever the literal is.

use super::{Kind, Statement};
use sqlparser::ast::{self, BinaryOperator, Expr, SetExpr, UnaryOperator, Value};

/// By parameter number from 0: whether it stands for a value of a column: compared with one, in an
/// IN list or BETWEEN, assigned, added to one, or in the one row of an INSERT. `count` parameters,
/// each in one place; `text(n)`: whether the literal of the parameter is a string.
pub fn are_values(statement: &Statement, count: usize, text: &dyn Fn(usize) -> bool) -> Vec<bool> {
    let mut walk = Walk {
        found: vec![false; count],
        text,
        depth: 0,
    };
    if let Kind::Sql(statement) = statement.kind() {
        walk.statement(statement);
    }
    walk.found
}

/// Queries in queries that are looked through.
const DEPTH_MAX: u32 = 16;

struct Walk<'w> {
    found: Vec<bool>,
    text: &'w dyn Fn(usize) -> bool,
    depth: u32,
}

impl Walk<'_> {
    fn statement(&mut self, statement: &ast::Statement) {
        match statement {
            ast::Statement::Query(query) => self.query(query),
            ast::Statement::Insert(insert) => self.insert(insert),
            ast::Statement::Update {
                table,
                assignments,
                from,
                selection,
                returning: _,
                or: _,
            } => {
                self.joins(core::slice::from_ref(table));
                if let Some(
                    ast::UpdateTableFromKind::BeforeSet(from)
                    | ast::UpdateTableFromKind::AfterSet(from),
                ) = from
                {
                    self.joins(from);
                }
                self.assignments(assignments);
                self.condition(selection.as_ref());
            }
            ast::Statement::Delete(delete) => {
                if let Some(using) = &delete.using {
                    self.joins(using);
                }
                self.condition(delete.selection.as_ref());
            }
            _ => {}
        }
    }

    fn insert(&mut self, insert: &ast::Insert) {
        if let Some(source) = &insert.source {
            match &*source.body {
                // The columns of several rows have one type, which literals settle otherwise.
                SetExpr::Values(values) => {
                    if let [row] = &values.rows[..] {
                        row.iter().for_each(|value| self.value(value));
                    }
                }
                _ => self.query(source),
            }
        }
        if let Some(ast::OnInsert::OnConflict(conflict)) = &insert.on
            && let ast::OnConflictAction::DoUpdate(update) = &conflict.action
        {
            self.assignments(&update.assignments);
            self.condition(update.selection.as_ref());
        }
    }

    fn assignments(&mut self, assignments: &[ast::Assignment]) {
        for assignment in assignments {
            if matches!(assignment.target, ast::AssignmentTarget::ColumnName(_)) {
                self.value(&assignment.value);
                self.sum(&assignment.value);
            }
        }
    }

    fn query(&mut self, query: &ast::Query) {
        if self.depth == DEPTH_MAX {
            return;
        }
        self.depth += 1;
        if let Some(with) = &query.with {
            with.cte_tables
                .iter()
                .for_each(|table| self.query(&table.query));
        }
        self.body(&query.body);
        self.depth -= 1;
    }

    fn body(&mut self, body: &SetExpr) {
        match body {
            SetExpr::Select(select) => {
                self.joins(&select.from);
                self.condition(select.selection.as_ref());
            }
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation {
                op: _,
                set_quantifier: _,
                left,
                right,
            } if self.depth < DEPTH_MAX => {
                self.depth += 1;
                self.body(left);
                self.body(right);
                self.depth -= 1;
            }
            _ => {}
        }
    }

    fn joins(&mut self, tables: &[ast::TableWithJoins]) {
        for table in tables {
            self.factor(&table.relation);
            for join in &table.joins {
                self.factor(&join.relation);
                if let ast::JoinOperator::Join(on)
                | ast::JoinOperator::Inner(on)
                | ast::JoinOperator::Left(on)
                | ast::JoinOperator::LeftOuter(on) = &join.join_operator
                    && let ast::JoinConstraint::On(condition) = on
                {
                    self.condition(Some(condition));
                }
            }
        }
    }

    fn factor(&mut self, factor: &ast::TableFactor) {
        match factor {
            ast::TableFactor::Derived {
                lateral: _,
                subquery,
                alias: _,
            } => self.query(subquery),
            ast::TableFactor::NestedJoin {
                table_with_joins,
                alias: _,
            } if self.depth < DEPTH_MAX => {
                self.depth += 1;
                self.joins(core::slice::from_ref(table_with_joins));
                self.depth -= 1;
            }
            _ => {}
        }
    }

    fn condition(&mut self, condition: Option<&Expr>) {
        let Some(mut condition) = condition else {
            return;
        };
        // A chain of AND leans to the left.
        loop {
            match condition {
                Expr::BinaryOp { left, op, right } if is_connective(op) => {
                    self.term(right);
                    condition = left;
                }
                other => return self.term(other),
            }
        }
    }

    fn term(&mut self, term: &Expr) {
        match term {
            Expr::BinaryOp { left, op, right } if is_comparison(op) => {
                if is_column(left) {
                    self.value(right);
                } else if is_column(right) {
                    self.value(left);
                }
            }
            Expr::Between {
                expr,
                negated: _,
                low,
                high,
            } if is_column(expr) => {
                self.value(low);
                self.value(high);
            }
            Expr::InList {
                expr,
                list,
                negated: _,
            } if is_column(expr) => {
                list.iter().for_each(|item| self.value(item));
            }
            Expr::Nested(inner)
            | Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr: inner,
            } if self.depth < DEPTH_MAX => {
                self.depth += 1;
                self.condition(Some(inner));
                self.depth -= 1;
            }
            Expr::BinaryOp {
                left: _,
                op,
                right: _,
            } if is_connective(op) && self.depth < DEPTH_MAX => {
                self.depth += 1;
                self.condition(Some(term));
                self.depth -= 1;
            }
            Expr::InSubquery {
                expr: _,
                subquery,
                negated: _,
            }
            | Expr::Exists {
                subquery,
                negated: _,
            } => self.query(subquery),
            _ => {}
        }
    }

    /// `c + 5` and the like, of a column and a number.
    fn sum(&mut self, expr: &Expr) {
        if let Expr::BinaryOp { left, op, right } = expr
            && let BinaryOperator::Plus | BinaryOperator::Minus | BinaryOperator::Multiply = op
        {
            let value = match (is_column(left), is_column(right)) {
                (true, false) => right,
                (false, true) => left,
                _ => return,
            };
            if number(value).is_some_and(|number| !(self.text)(number)) {
                self.value(value);
            }
        }
    }

    /// A parameter, or one with a minus, in the place of a value.
    fn value(&mut self, expr: &Expr) {
        let Some(number) = number(expr) else {
            return;
        };
        let plain = matches!(expr, Expr::Value(_));
        if let Some(found) = self.found.get_mut(number)
            && (plain || !(self.text)(number))
        {
            *found = true;
        }
    }
}

fn is_connective(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::And | BinaryOperator::Or)
}

fn is_comparison(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
    )
}

fn is_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

/// The number, from 0, of the parameter that an expression is, but for a minus.
fn number(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Placeholder(name) => name
                .strip_prefix('$')?
                .parse::<usize>()
                .ok()?
                .checked_sub(1),
            _ => None,
        },
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => match &**expr {
            Expr::Value(_) => number(expr),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shape;

    #[track_caller]
    fn check(text: &str, wanted: &str) {
        let mut shape = Shape::default();
        assert!(shape.read(text), "{text}");
        let statements = crate::parse(&shape.text).expect("the shape is a statement");
        let is_text = |at: usize| shape.literals[at].ty == base::Type::Unknown;
        let found = are_values(&statements[0], shape.literals.len(), &is_text);
        let kept: Vec<bool> = found.iter().map(|value| !value).collect();
        assert_eq!(shape.with_literals(text, &kept), wanted);
    }

    #[test]
    fn what_is_compared_assigned_or_inserted_is_a_value() {
        check(
            "SELECT a, 1 FROM t WHERE a = 1 AND (b <> 'x' OR 7 < t.c) AND NOT d IN (1, 'y', -2)",
            "SELECT a, 1 FROM t WHERE a = $1 AND (b <> $2 OR 7 < t.c) AND NOT d IN ($3, $4, -$5)",
        );
        check(
            "UPDATE t SET a = a + 5, b = 'x', c = -3, d = d - -1 WHERE id BETWEEN 1 AND 2",
            "UPDATE t SET a = a + $1, b = $2, c = -$3, d = d - -$4 WHERE id BETWEEN $5 AND $6",
        );
        check(
            "INSERT INTO t VALUES (1, 'x', NULL, now()) ON CONFLICT (a) DO UPDATE SET b = 'y'",
            "INSERT INTO t VALUES ($1, $2, NULL, now()) ON CONFLICT (a) DO UPDATE SET b = $3",
        );
        check(
            "WITH q AS (SELECT a FROM t WHERE a = 1) SELECT * FROM q JOIN u ON u.a = 3 \
             WHERE EXISTS (SELECT FROM v WHERE v.x = 9)",
            "WITH q AS (SELECT a FROM t WHERE a = $1) SELECT * FROM q JOIN u ON u.a = $2 \
             WHERE EXISTS (SELECT FROM v WHERE v.x = $3)",
        );
    }

    #[test]
    fn what_says_more_than_a_value_stays() {
        for text in [
            "SELECT round(a, 2) FROM t WHERE lower(b) = 'x' AND 1 = 1",
            "SELECT a FROM t WHERE b = '2020-01-01'::date AND c = ('x')",
            "SELECT a + 1, coalesce(b, 'x') FROM t GROUP BY 1, 2 ORDER BY 1, 2",
            "UPDATE t SET a = b || 'x', c = c + '5', d = coalesce(d, 0) + 1, e = 1 + 2",
            "INSERT INTO t VALUES (1, 'x'), (2, 'y')",
            "UPDATE t SET (a, b) = (1, 2) WHERE (a, b) > (1, 2)",
        ] {
            check(text, text);
        }
    }
}
