//! Scalar expressions.

use super::scope::{Found, ident, object_name};
use super::types::{NamedType, bind_type, named_type};
use super::{Binder, at, unsupported};
use crate::expr::resolve::{self, Context};
use crate::expr::{Compare, Expr, Func};
use base::{Datum, SqlError, SqlState, Type};
use sqlparser::ast::{self, BinaryOperator as Op, Expr as Ast, UnaryOperator, Value};

impl Binder<'_> {
    /// Binds an expression over the current level's scope.
    ///
    /// # Errors
    /// 42703, 42702, 42P01 for names; 42883, 42804 and others for types.
    pub(crate) fn expr(&mut self, ast: &Ast) -> Result<Expr, SqlError> {
        let ast = unwrapped(ast);
        let bound = self.deeper(|binder| binder.expr_inner(ast))?;
        self.note(&bound);
        Ok(bound)
    }

    /// A condition: boolean, with this clause's name in the error.
    ///
    /// # Errors
    /// 42804 if it is not boolean.
    pub(crate) fn condition(&mut self, ast: &Ast, clause: &str) -> Result<Expr, SqlError> {
        let bound = self.expr(ast)?;
        self.as_condition(bound, clause)
    }

    fn as_condition(&mut self, bound: Expr, clause: &str) -> Result<Expr, SqlError> {
        let bound = resolve::to_bool(bound, clause)?;
        self.note(&bound);
        Ok(bound)
    }

    fn expr_inner(&mut self, ast: &Ast) -> Result<Expr, SqlError> {
        match ast {
            Ast::Value(value) => self.value(value),
            Ast::Identifier(name) => self.identifier(name),
            Ast::CompoundIdentifier(parts) => self.compound(parts),
            Ast::BinaryOp { .. } => self.binary_chain(ast),
            Ast::UnaryOp { op, expr } => self.unary(*op, expr),
            Ast::IsNull(inner) => Ok(Expr::IsNull(Box::new(self.expr(inner)?), false)),
            Ast::IsNotNull(inner) => Ok(Expr::IsNull(Box::new(self.expr(inner)?), true)),
            Ast::IsTrue(inner) => self.is_bool(inner, Some(true), false, "IS TRUE"),
            Ast::IsNotTrue(inner) => self.is_bool(inner, Some(true), true, "IS NOT TRUE"),
            Ast::IsFalse(inner) => self.is_bool(inner, Some(false), false, "IS FALSE"),
            Ast::IsNotFalse(inner) => self.is_bool(inner, Some(false), true, "IS NOT FALSE"),
            Ast::IsUnknown(inner) => self.is_bool(inner, None, false, "IS UNKNOWN"),
            Ast::IsNotUnknown(inner) => self.is_bool(inner, None, true, "IS NOT UNKNOWN"),
            Ast::IsDistinctFrom(left, right) => self.is_distinct(left, right, false),
            Ast::IsNotDistinctFrom(left, right) => self.is_distinct(left, right, true),
            Ast::InList {
                expr,
                list,
                negated,
            } => self.in_list(expr, list, *negated),
            Ast::InSubquery {
                expr,
                subquery,
                negated,
            } => {
                let found = self.in_subquery(expr, subquery)?;
                Ok(negate(found, *negated))
            }
            Ast::Exists { subquery, negated } => Ok(negate(self.exists(subquery)?, *negated)),
            Ast::Subquery(query) => self.scalar_subquery(query),
            Ast::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let value = self.expr(expr)?;
                let (low, high) = (self.expr(low)?, self.expr(high)?);
                let parts = [(">=", low), ("<=", high)].into_iter().map(|(op, bound)| {
                    let part = self.binary(op, value.clone(), bound)?;
                    self.note(&part);
                    Ok(part)
                });
                let both = Expr::And(parts.collect::<Result<_, SqlError>>()?);
                Ok(negate(both, *negated))
            }
            Ast::Like {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => self.like(
                if *negated { "!~~" } else { "~~" },
                expr,
                pattern,
                escape_char,
            ),
            Ast::ILike {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => self.like(
                if *negated { "!~~*" } else { "~~*" },
                expr,
                pattern,
                escape_char,
            ),
            Ast::AnyOp {
                left,
                compare_op,
                right,
                ..
            } => self.quantified(left, compare_op, right, false),
            Ast::AllOp {
                left,
                compare_op,
                right,
            } => self.quantified(left, compare_op, right, true),
            Ast::Case {
                operand,
                conditions,
                else_result,
            } => self.case(operand.as_deref(), conditions, else_result.as_deref()),
            Ast::Cast {
                expr, data_type, ..
            } => self.cast(expr, data_type),
            Ast::TypedString { data_type, value } => {
                let literal = Expr::literal(string_of(value).unwrap_or_default());
                self.explicit(literal, bind_type(data_type)?)
            }
            Ast::Interval(interval) => self.interval(interval),
            Ast::Collate { expr, .. } => self.expr(expr),
            Ast::AtTimeZone {
                timestamp,
                time_zone,
            } => {
                let (value, zone) = (self.expr(timestamp)?, self.expr(time_zone)?);
                resolve::function("timezone", vec![zone, value])
            }
            Ast::Extract { .. }
            | Ast::Ceil { .. }
            | Ast::Floor { .. }
            | Ast::Position { .. }
            | Ast::Substring { .. }
            | Ast::Trim { .. }
            | Ast::Overlay { .. } => self.special_function(ast),
            Ast::Function(function) => self.function(function),
            Ast::Array(array) => {
                let elements = array
                    .elem
                    .iter()
                    .map(|e| self.expr(e))
                    .collect::<Result<Vec<_>, _>>()?;
                self.array(elements)
            }
            Ast::CompoundFieldAccess { root, access_chain } => self.access(root, access_chain),
            Ast::Tuple(_) => Err(unsupported("a row constructor here")),
            Ast::GroupingSets(_) | Ast::Cube(_) | Ast::Rollup(_) => {
                Err(unsupported("GROUPING SETS"))
            }
            other => Err(unsupported(&format!("the expression {other}"))),
        }
    }

    fn value(&mut self, value: &ast::ValueWithSpan) -> Result<Expr, SqlError> {
        match &value.value {
            Value::Number(digits, _) => {
                number(digits).map_err(|e| at(e, self.position(value.span)))
            }
            Value::Boolean(value) => Ok(Expr::bool(*value)),
            Value::Null => Ok(Expr::null(Type::Unknown)),
            Value::Placeholder(name) => {
                let index = name[1..].parse::<usize>().unwrap_or(0);
                assert!(
                    (1..=self.params.len()).contains(&index),
                    "the parser has counted the parameters"
                );
                Ok(Expr::Param(index as u32 - 1, self.params[index - 1]))
            }
            Value::HexStringLiteral(_) | Value::SingleQuotedByteStringLiteral(_) => {
                Err(unsupported("a bit string"))
            }
            other => match string_of(other) {
                Some(text) => Ok(Expr::literal(text)),
                None => Err(unsupported(&format!("the literal {other}"))),
            },
        }
    }

    fn identifier(&mut self, name: &ast::Ident) -> Result<Expr, SqlError> {
        let folded = ident(name);
        let position = self.position(name.span);
        if let Some(found) = self.column(None, &folded, position)? {
            return Ok(found);
        }
        if name.quote_style.is_none() {
            // Functions that are called without parentheses.
            let special = matches!(
                folded.as_str(),
                "current_timestamp"
                    | "current_date"
                    | "current_time"
                    | "localtimestamp"
                    | "localtime"
                    | "current_user"
                    | "session_user"
                    | "user"
                    | "current_role"
                    | "current_catalog"
                    | "current_schema"
            );
            if special {
                let call = resolve::function(&folded, Vec::new())?;
                return self.computed(call);
            }
        }
        let error = SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{folded}\" does not exist"),
        );
        Err(self.with_similar(error, None, &folded).at(position))
    }

    fn with_similar(&self, error: SqlError, relation: Option<&str>, name: &str) -> SqlError {
        let scope = &self.levels.last().expect("there is a level").scope;
        match scope.similar(relation, name) {
            Some(similar) => error.hint(format!(
                "Perhaps you meant to reference the column \"{similar}\"."
            )),
            None => error,
        }
    }

    fn compound(&mut self, parts: &[ast::Ident]) -> Result<Expr, SqlError> {
        let folded: Vec<String> = parts.iter().map(ident).collect();
        let position = self.position(parts[0].span);
        let (relation, name) = match folded.as_slice() {
            [relation, name] => (relation, name),
            [_, relation, name] => (relation, name),
            _ => {
                let message = format!("improper qualified name: {}", folded.join("."));
                return Err(SqlError::new(SqlState::SYNTAX, message).at(position));
            }
        };
        match self.column(Some(relation), name, position)? {
            Some(found) => Ok(found),
            None => Err(SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("missing FROM-clause entry for table \"{relation}\""),
            )
            .at(position)),
        }
    }

    /// Looks a column up in this level and the enclosing ones; a column of an enclosing query
    /// becomes a slot.
    fn column(
        &mut self,
        relation: Option<&str>,
        name: &str,
        position: u32,
    ) -> Result<Option<Expr>, SqlError> {
        for depth in (0..self.levels.len()).rev() {
            let found = match self.levels[depth].scope.find(relation, name) {
                Found::Column(column) => column.expr.clone(),
                Found::Ambiguous => {
                    let message = format!("column reference \"{name}\" is ambiguous");
                    return Err(SqlError::new(SqlState::AMBIGUOUS_COLUMN, message).at(position));
                }
                Found::NoColumn => {
                    let relation = relation.expect("only a qualified name finds a relation");
                    let error = SqlError::new(
                        SqlState::UNDEFINED_COLUMN,
                        format!("column {relation}.{name} does not exist"),
                    );
                    return Err(self.with_similar(error, Some(relation), name).at(position));
                }
                Found::Nothing => continue,
            };
            if depth + 1 == self.levels.len() {
                return Ok(Some(found));
            }
            return Ok(Some(self.capture(depth, found)));
        }
        Ok(None)
    }

    /// The slot for a value of the row of level `depth`, read by a deeper level.
    fn capture(&mut self, depth: usize, value: Expr) -> Expr {
        let ty = value.ty();
        for level in &mut self.levels[depth + 1..] {
            level.dependent = true;
        }
        let known = self.levels[depth + 1]
            .captures
            .iter()
            .find(|(_, expr)| *expr == value);
        if let Some((slot, _)) = known {
            return Expr::Param(*slot, ty);
        }
        let slot = self.new_slot();
        self.levels[depth + 1].captures.push((slot, value));
        Expr::Param(slot, ty)
    }

    /// Chains of operators lean left; the spine is walked in a loop.
    fn binary_chain(&mut self, ast: &Ast) -> Result<Expr, SqlError> {
        let mut spine: Vec<(&Op, &Ast)> = Vec::new();
        let mut leftmost = ast;
        while let Ast::BinaryOp { left, op, right } = leftmost {
            spine.push((op, right));
            leftmost = unwrapped(left);
        }
        let arithmetic = spine
            .iter()
            .filter(|(op, _)| !matches!(op, Op::And | Op::Or))
            .count();
        if arithmetic > super::DEPTH_MAX as usize {
            return Err(crate::parse::too_complex());
        }
        if let (Ast::Tuple(left), [(op, Ast::Tuple(right))]) = (leftmost, spine.as_slice()) {
            return self.row_comparison(left, op, right);
        }
        if let (Ast::Tuple(_), [(Op::Eq, Ast::Subquery(query))]) = (leftmost, spine.as_slice()) {
            return self.in_subquery(leftmost, query);
        }
        let mut bound = self.expr(leftmost)?;
        while let Some((op, right)) = spine.pop() {
            bound = match op {
                Op::And | Op::Or => {
                    let name = if matches!(op, Op::And) { "AND" } else { "OR" };
                    let left = self.as_condition(bound, name)?;
                    let right = self.condition(right, name)?;
                    extend(left, right, matches!(op, Op::And))
                }
                _ => {
                    let right = self.expr(right)?;
                    let name = operator_name(op)?;
                    self.binary(&name, bound, right)?
                }
            };
            self.note(&bound);
        }
        Ok(bound)
    }

    pub(super) fn binary(&mut self, op: &str, left: Expr, right: Expr) -> Result<Expr, SqlError> {
        let bound = resolve::binary(op, left, right)?;
        self.note(&bound);
        Ok(bound)
    }

    fn unary(&mut self, op: UnaryOperator, inner: &Ast) -> Result<Expr, SqlError> {
        // Operators of equal kind nest to the right; `NOT NOT ...` is bounded by `deeper`.
        let arg = self.expr(inner)?;
        match op {
            UnaryOperator::Not => {
                let arg = self.as_condition(arg, "NOT")?;
                Ok(Expr::Not(Box::new(arg)))
            }
            UnaryOperator::Plus => resolve::unary("+", arg),
            UnaryOperator::Minus => {
                let mut bound = resolve::unary("-", arg)?;
                crate::expr::fold::fold(&mut bound);
                // -2147483648 is an integer although 2147483648 is not.
                if let Expr::Const(Datum::Int(value), ty @ Type::Int8) = &mut bound
                    && matches!(inner, Ast::Value(_))
                    && i32::try_from(*value).is_ok()
                {
                    *ty = Type::Int4;
                }
                Ok(bound)
            }
            other => resolve::unary(&other.to_string(), arg),
        }
    }

    fn is_bool(
        &mut self,
        inner: &Ast,
        wanted: Option<bool>,
        negated: bool,
        clause: &str,
    ) -> Result<Expr, SqlError> {
        let arg = self.condition(inner, clause)?;
        Ok(Expr::IsBool(Box::new(arg), wanted, negated))
    }

    fn is_distinct(&mut self, left: &Ast, right: &Ast, negated: bool) -> Result<Expr, SqlError> {
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        // The comparison tells how both sides are made alike.
        match self.binary("=", left, right)? {
            Expr::Call(Func::Compare(Compare::Eq), mut sides, _) if sides.len() == 2 => {
                let right = Box::new(sides.pop().expect("two sides"));
                let left = Box::new(sides.pop().expect("two sides"));
                Ok(Expr::IsDistinct(left, right, negated))
            }
            other => Ok(Expr::IsBool(Box::new(other), Some(true), !negated)),
        }
    }

    fn in_list(&mut self, left: &Ast, list: &[Ast], negated: bool) -> Result<Expr, SqlError> {
        if let Ast::Tuple(columns) = left {
            let mut any = Vec::new();
            for item in list {
                let Ast::Tuple(values) = item else {
                    return Err(unsupported("a row compared with a value"));
                };
                any.push(self.row_comparison(columns, &Op::Eq, values)?);
            }
            return Ok(negate(Expr::Or(any), negated));
        }
        let left = self.expr(left)?;
        let items = list
            .iter()
            .map(|item| self.expr(item))
            .collect::<Result<Vec<_>, _>>()?;
        // `x IN (a, b)` is `x = a OR x = b`: when every comparison leaves x as it is, it is a list.
        let (mut arg, mut values, mut others) = (None, Vec::new(), Vec::new());
        for item in items {
            match self.binary("=", left.clone(), item)? {
                Expr::Call(Func::Compare(Compare::Eq), mut sides, _)
                    if sides.len() == 2 && (arg.is_none() || arg.as_ref() == Some(&sides[0])) =>
                {
                    values.push(sides.pop().expect("two sides"));
                    arg = sides.pop();
                }
                other => others.push(other),
            }
        }
        let listed = arg.map(|arg| Expr::InList(Box::new(arg), values, false));
        let mut all: Vec<Expr> = listed.into_iter().chain(others).collect();
        let bound = if all.len() == 1 {
            all.remove(0)
        } else {
            Expr::Or(all)
        };
        Ok(match bound {
            Expr::InList(arg, values, _) => Expr::InList(arg, values, negated),
            other => negate(other, negated),
        })
    }

    /// `(a, b) op (c, d)`
    fn row_comparison(&mut self, left: &[Ast], op: &Op, right: &[Ast]) -> Result<Expr, SqlError> {
        if left.len() != right.len() {
            let message = "unequal number of entries in row expressions";
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
        let left = left
            .iter()
            .map(|e| self.expr(e))
            .collect::<Result<Vec<_>, _>>()?;
        let right = right
            .iter()
            .map(|e| self.expr(e))
            .collect::<Result<Vec<_>, _>>()?;
        let pairs: Vec<(Expr, Expr)> = left.into_iter().zip(right).collect();
        let strict = match op {
            Op::Eq | Op::NotEq => {
                let equal = pairs
                    .into_iter()
                    .map(|(l, r)| self.binary("=", l, r))
                    .collect::<Result<Vec<_>, _>>()?;
                return Ok(negate(Expr::And(equal), matches!(op, Op::NotEq)));
            }
            Op::Lt | Op::LtEq => "<",
            Op::Gt | Op::GtEq => ">",
            _ => return Err(unsupported("this operator on rows")),
        };
        // a < c OR (a = c AND (b < d OR ...)); the last comparison is the operator itself.
        let mut result: Option<Expr> = None;
        for (l, r) in pairs.into_iter().rev() {
            result = Some(match result {
                None => self.binary(&operator_name(op)?, l, r)?,
                Some(rest) => {
                    let equal = self.binary("=", l.clone(), r.clone())?;
                    let before = self.binary(strict, l, r)?;
                    Expr::Or(vec![before, Expr::And(vec![equal, rest])])
                }
            });
        }
        result.ok_or_else(|| unsupported("an empty row"))
    }

    fn like(
        &mut self,
        op: &str,
        value: &Ast,
        pattern: &Ast,
        escape: &Option<String>,
    ) -> Result<Expr, SqlError> {
        let (value, mut pattern) = (self.expr(value)?, self.expr(pattern)?);
        if let Some(escape) = escape {
            let escape = Expr::literal(escape.trim_matches('\''));
            pattern = Expr::Call(
                Func::Text(crate::expr::TextFunc::LikeEscape),
                vec![
                    resolve::coerce(pattern, Type::Text, Context::Implicit)?,
                    resolve::coerce(escape, Type::Text, Context::Implicit)?,
                ],
                Type::Text,
            );
        }
        self.binary(op, value, pattern)
    }

    fn quantified(
        &mut self,
        left: &Ast,
        op: &Op,
        right: &Ast,
        all: bool,
    ) -> Result<Expr, SqlError> {
        let inner = unwrapped(right);
        if let Ast::Subquery(query) = inner {
            if !all && matches!(op, Op::Eq) {
                return self.in_subquery(left, query);
            }
            return self.quantified_subquery(left, &operator_name(op)?, query, all);
        }
        let (left, array) = (self.expr(left)?, self.expr(inner)?);
        let bound = resolve::any_array(left, &operator_name(op)?, array, all)?;
        self.note(&bound);
        Ok(bound)
    }

    fn case(
        &mut self,
        operand: Option<&Ast>,
        whens: &[ast::CaseWhen],
        otherwise: Option<&Ast>,
    ) -> Result<Expr, SqlError> {
        let operand = operand.map(|operand| self.expr(operand)).transpose()?;
        let (mut conditions, mut results) = (Vec::new(), Vec::new());
        for when in whens {
            conditions.push(match &operand {
                Some(operand) => {
                    let value = self.expr(&when.condition)?;
                    self.binary("=", operand.clone(), value)?
                }
                None => self.condition(&when.condition, "CASE/WHEN")?,
            });
            results.push(self.expr(&when.result)?);
        }
        results.push(match otherwise {
            Some(otherwise) => self.expr(otherwise)?,
            None => Expr::null(Type::Unknown),
        });
        let ty = resolve::common_type(&results.iter().map(Expr::ty).collect::<Vec<_>>())
            .map_err(|error| clash(error, "CASE", &results))?;
        let mut results = results
            .into_iter()
            .map(|result| {
                let result = resolve::coerce(result, ty, Context::Implicit)?;
                self.note(&result);
                Ok(result)
            })
            .collect::<Result<Vec<_>, SqlError>>()?;
        let otherwise = Box::new(results.pop().expect("ELSE was pushed last"));
        let arms = conditions.into_iter().zip(results).collect();
        Ok(Expr::Case {
            arms,
            otherwise,
            ty,
        })
    }

    fn cast(&mut self, inner: &Ast, to: &ast::DataType) -> Result<Expr, SqlError> {
        let named = named_type(to)?;
        // ARRAY[]::type[] has no other type than the cast's.
        if let (Ast::Array(array), NamedType::Plain(ty)) = (inner, named)
            && array.elem.is_empty()
        {
            return Ok(Expr::MakeArray(Vec::new(), ty));
        }
        let arg = self.expr(inner)?;
        match named {
            NamedType::Plain(ty) => {
                let bound = self.explicit(arg, ty)?;
                self.note(&bound);
                Ok(bound)
            }
            NamedType::Registered(kind) => self.registered(arg, kind),
            NamedType::Serial(_) => bind_type(to).map(|_| arg),
        }
    }

    pub(super) fn explicit(&mut self, arg: Expr, ty: Type) -> Result<Expr, SqlError> {
        resolve::coerce(arg, ty, Context::Explicit)
    }

    fn interval(&mut self, interval: &ast::Interval) -> Result<Expr, SqlError> {
        let mut text = match interval.value.as_ref() {
            Ast::Value(value) => match &value.value {
                Value::Number(digits, _) => digits.clone(),
                other => string_of(other).unwrap_or_default().to_string(),
            },
            _ => return Err(unsupported("INTERVAL of an expression")),
        };
        if let Some(field) = &interval.leading_field
            && text.trim().parse::<f64>().is_ok()
        {
            text = format!("{text} {field}");
        }
        self.explicit(Expr::literal(&text), Type::Interval)
    }

    pub(super) fn array(&mut self, elements: Vec<Expr>) -> Result<Expr, SqlError> {
        let types: Vec<Type> = elements.iter().map(Expr::ty).collect();
        if types.is_empty() {
            return Err(SqlError::new(
                SqlState::INDETERMINATE_DATATYPE,
                "cannot determine type of empty array",
            )
            .hint("Explicitly cast to the desired type, for example ARRAY[]::integer[]."));
        }
        let mut element =
            resolve::common_type(&types).map_err(|error| clash(error, "ARRAY", &elements))?;
        if element == Type::Unknown {
            element = Type::Text;
        }
        let Some(ty) = element.array_of() else {
            return Err(unsupported(&format!("an array of {}", element.name())));
        };
        let elements = elements
            .into_iter()
            .map(|value| {
                let value = resolve::coerce(value, element, Context::Implicit)?;
                self.note(&value);
                Ok(value)
            })
            .collect::<Result<Vec<_>, SqlError>>()?;
        Ok(Expr::MakeArray(elements, ty))
    }

    fn access(&mut self, root: &Ast, chain: &[ast::AccessExpr]) -> Result<Expr, SqlError> {
        use ast::{AccessExpr, Subscript};
        // The library reads `t.c[1]` as access to `t`.
        let mut parts = Vec::new();
        if let Ast::Identifier(first) = root {
            parts.push(first.clone());
        }
        let mut rest = chain;
        while let (Some(AccessExpr::Dot(Ast::Identifier(name))), false) =
            (rest.first(), parts.is_empty())
        {
            parts.push(name.clone());
            rest = &rest[1..];
        }
        let mut value = if parts.len() > 1 {
            self.compound(&parts)?
        } else {
            self.expr(root)?
        };
        for access in rest {
            value = match access {
                AccessExpr::Subscript(Subscript::Index { index }) => {
                    let index = self.expr(index)?;
                    self.subscript(value, index)?
                }
                AccessExpr::Subscript(Subscript::Slice { .. }) => {
                    return Err(unsupported("an array slice"));
                }
                AccessExpr::Dot(_) => return Err(unsupported("access to a composite field")),
            };
        }
        Ok(value)
    }

    fn subscript(&mut self, value: Expr, index: Expr) -> Result<Expr, SqlError> {
        let index = if self.is_zero_based(&value) {
            resolve::binary("+", index, Expr::Const(Datum::Int(1), Type::Int4))?
        } else {
            index
        };
        resolve::subscript(value, index, None)
    }

    /// Positions of the system catalog's vectors (`int2vector`) count from 0.
    fn is_zero_based(&self, value: &Expr) -> bool {
        let column_of = |column: &Expr| {
            self.levels
                .iter()
                .rev()
                .find_map(|level| level.scope.columns.iter().find(|c| c.expr == *column))
        };
        let column = match value {
            Expr::Param(slot, _) => self
                .levels
                .iter()
                .flat_map(|level| &level.captures)
                .find(|(known, _)| known == slot)
                .and_then(|(_, captured)| column_of(captured)),
            other => column_of(other),
        };
        column.is_some_and(|column| {
            crate::pg_catalog::is_zero_based(column.origin.0, column.origin.1)
        })
    }

    /// Conversion between names and numbers of catalog objects: text becomes an oid, an oid the
    /// name.
    fn registered(&mut self, arg: Expr, kind: &'static str) -> Result<Expr, SqlError> {
        let ty = arg.ty();
        let name = if matches!(ty, Type::Oid) || ty.is_integer() {
            format!("{kind}out")
        } else {
            format!("{kind}in")
        };
        let arg = if ty.is_integer() {
            self.explicit(arg, Type::Oid)?
        } else {
            arg
        };
        let call = resolve::function(&name, vec![arg])?;
        self.note(&call);
        self.computed(call)
    }

    /// Resolves a name that a statement gives to a table, sequence or column.
    pub(super) fn name_of(&self, name: &ast::ObjectName) -> (Option<String>, String) {
        object_name(name)
    }
}

/// An expression without the parentheses around it.
pub(super) fn unwrapped(mut ast: &Ast) -> &Ast {
    while let Ast::Nested(inner) = ast {
        ast = inner;
    }
    ast
}

/// NOT of an expression, if asked for.
pub(super) fn negate(expr: Expr, negated: bool) -> Expr {
    if negated {
        Expr::Not(Box::new(expr))
    } else {
        expr
    }
}

fn extend(left: Expr, right: Expr, and: bool) -> Expr {
    match (left, and) {
        (Expr::And(mut parts), true) => {
            parts.push(right);
            Expr::And(parts)
        }
        (Expr::Or(mut parts), false) => {
            parts.push(right);
            Expr::Or(parts)
        }
        (left, true) => Expr::And(vec![left, right]),
        (left, false) => Expr::Or(vec![left, right]),
    }
}

/// A numeric literal: integer if it fits, else bigint, else numeric.
fn number(digits: &str) -> Result<Expr, SqlError> {
    let digits = digits.replace('_', "");
    if digits.bytes().all(|b| b.is_ascii_digit())
        && let Ok(value) = digits.parse::<i64>()
    {
        let ty = if i32::try_from(value).is_ok() {
            Type::Int4
        } else {
            Type::Int8
        };
        return Ok(Expr::Const(Datum::Int(value), ty));
    }
    let ty = Type::Numeric(None);
    Ok(Expr::Const(base::text::parse(ty, &digits)?, ty))
}

/// The text of a string literal.
pub(super) fn string_of(value: &Value) -> Option<&str> {
    match value {
        Value::SingleQuotedString(text)
        | Value::EscapedStringLiteral(text)
        | Value::UnicodeStringLiteral(text)
        | Value::NationalStringLiteral(text) => Some(text),
        Value::DollarQuotedString(text) => Some(&text.value),
        _ => None,
    }
}

/// PostgreSQL's name of an operator.
pub(super) fn operator_name(op: &Op) -> Result<String, SqlError> {
    Ok(match op {
        Op::PGCustomBinaryOperator(parts) => match parts.as_slice() {
            [only] => only.clone(),
            [schema, name] if schema.eq_ignore_ascii_case("pg_catalog") => name.clone(),
            _ => return Err(unsupported(&format!("the operator {op}"))),
        },
        other => other.to_string(),
    })
}

/// `CASE types text and integer cannot be matched`.
pub(super) fn clash(error: SqlError, construct: &str, values: &[Expr]) -> SqlError {
    if error.state() != SqlState::DATATYPE_MISMATCH {
        return error;
    }
    let mut known = values
        .iter()
        .map(Expr::ty)
        .filter(|ty| *ty != Type::Unknown);
    let first = known.next().unwrap_or(Type::Text);
    let other = known
        .find(|ty| resolve::common_type(&[first, *ty]).is_err())
        .unwrap_or(first);
    SqlError::new(
        SqlState::DATATYPE_MISMATCH,
        format!(
            "{construct} types {} and {} cannot be matched",
            first.name(),
            other.name()
        ),
    )
}
