//! Scalar expressions.

use super::rel::Quantifier;
use super::scope::{ident, object_name};
use super::types::{NamedType, bind_type, named_type};
use super::{Binder, at, unsupported};
use base::{Datum, SqlError, SqlState, Type};
use expr::Expr;
use expr::resolve::{self, Context};
use pg_catalog::names::check_parts;
use sqlparser::ast::{self, BinaryOperator as Op, CastKind, Expr as Ast, UnaryOperator, Value};

impl Binder<'_> {
    /// Binds an expression over the current level's scope.
    ///
    /// # Errors
    /// 42703, 42702, 42P01 for names; 42883, 42804 and others for types.
    pub fn expr(&mut self, ast: &Ast) -> Result<Expr, SqlError> {
        self.work += 1;
        let ast = unwrapped(ast);
        let bound = self.deeper(|binder| binder.expr_inner(ast))?;
        self.note(&bound);
        Ok(bound)
    }

    /// Binds what is computed only if what stands before it says so.
    pub(super) fn optionally<T>(&mut self, bind: impl FnOnce(&mut Self) -> T) -> T {
        self.optional += 1;
        let bound = bind(self);
        self.optional -= 1;
        bound
    }

    /// A condition: boolean, with this clause's name in the error.
    ///
    /// # Errors
    /// 42804 if it is not boolean.
    pub fn condition(&mut self, ast: &Ast, clause: &str) -> Result<Expr, SqlError> {
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
            Ast::BinaryOp {
                left: _,
                op: _,
                right: _,
            } => self.binary_chain(ast),
            Ast::UnaryOp { op, expr } => self.unary(*op, expr),
            Ast::Subquery(query) => self.scalar_subquery(query),
            Ast::Case {
                operand,
                conditions,
                else_result,
            } => self.case(operand.as_deref(), conditions, else_result.as_deref()),
            Ast::Cast {
                kind,
                expr,
                data_type,
                format,
            } => {
                let known = matches!(kind, CastKind::Cast | CastKind::DoubleColon);
                self.no(!known, "CAST")?;
                self.no(format.is_some(), "FORMAT")?;
                self.cast(expr, data_type)
            }
            Ast::TypedString { data_type, value } => self.typed(data_type, value),
            Ast::Interval(interval) => self.interval(interval),
            Ast::Collate { expr, collation } => {
                let value = self.expr(expr)?;
                self.collated(value, collation)
            }
            Ast::AtTimeZone {
                timestamp,
                time_zone,
            } => {
                let (value, zone) = (self.expr(timestamp)?, self.expr(time_zone)?);
                resolve::function("timezone", vec![zone, value])
            }
            Ast::Function(function) => self.function(function),
            Ast::Array(array) => {
                // With ARRAY or in brackets of its own, it is the same.
                let ast::Array { elem, named: _ } = array;
                let elements = elem
                    .iter()
                    .map(|e| self.expr(e))
                    .collect::<Result<Vec<_>, _>>()?;
                self.array(elements)
            }
            Ast::CompoundFieldAccess { root, access_chain } => self.access(root, access_chain),
            Ast::Tuple(items) => self.row_value(items),
            Ast::GroupingSets(items) if items.is_empty() => Err(self.source.misplaced(")")),
            Ast::GroupingSets(_) | Ast::Cube(_) => Err(self.source.misplaced("SETS")),
            Ast::Rollup(_) => Err(self.source.misplaced("DISTINCT")),
            _ => match self.special_function(ast)? {
                Some(bound) => Ok(bound),
                None => self.predicate(ast),
            },
        }
    }

    /// The value under a collation: all of ours order by code points, as "C" does.
    pub fn collated(&self, value: Expr, collation: &ast::ObjectName) -> Result<Expr, SqlError> {
        let ty = value.ty();
        let ty = ty.element().unwrap_or(ty);
        if !ty.is_text() && ty != Type::Unknown {
            let message = format!("collations are not supported by type {}", ty.base_name());
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        check_collation(collation)?;
        Ok(value)
    }

    /// The number of the collation that is named for a column of type `ty`; 0: that of the type.
    ///
    /// # Errors
    /// 42804 for a type without one, 42704 for one that is not there.
    pub fn column_collation(&self, ty: Type, name: &ast::ObjectName) -> Result<u32, SqlError> {
        self.collated(Expr::null(ty), name)?;
        Ok(match object_name(name).1.as_str() {
            "C" => 950,
            "POSIX" => 951,
            _ => 0,
        })
    }

    fn value(&mut self, value: &ast::ValueWithSpan) -> Result<Expr, SqlError> {
        match &value.value {
            Value::Number(digits, _) => {
                number(digits).map_err(|e| at(e, self.position(value.span)))
            }
            Value::Boolean(value) => Ok(Expr::bool(*value)),
            Value::Null => Ok(Expr::null(Type::Unknown)),
            Value::Placeholder(name) => {
                let number = name.strip_prefix('$').and_then(|n| n.parse::<usize>().ok());
                if let Some(argument) = self.numbered_argument(number.unwrap_or(0)) {
                    return argument.map_err(|()| {
                        let message = format!("there is no parameter {name}");
                        SqlError::new(SqlState::UNDEFINED_PARAMETER, message)
                    });
                }
                let index = number.and_then(|number| number.checked_sub(1));
                match index.and_then(|index| Some((index, self.params.get(index)?))) {
                    Some((index, ty)) => Ok(Expr::Param(index as u32, *ty)),
                    None => {
                        let message = format!("there is no parameter {name}");
                        let error = SqlError::new(SqlState::UNDEFINED_PARAMETER, message);
                        Err(at(error, self.position(value.span)))
                    }
                }
            }
            Value::HexStringLiteral(digits) => bit_string('x', digits),
            Value::SingleQuotedByteStringLiteral(digits) => bit_string('b', digits),
            other => match string_of(other) {
                Some(text) => Ok(Expr::literal(text)),
                None => Err(unsupported(&format!("the literal {other}"))),
            },
        }
    }

    /// Chains of operators lean left; the spine is walked in a loop.
    fn binary_chain(&mut self, ast: &Ast) -> Result<Expr, SqlError> {
        let mut spine: Vec<(&Op, &Ast)> = Vec::new();
        let mut leftmost = ast;
        while let Ast::BinaryOp { left, op, right } = leftmost {
            spine.push((op, right));
            leftmost = unwrapped(left);
        }
        // Every operator but AND and OR, which take any number, is a level of the expression.
        let levels = |(op, _): &&(&Op, &Ast)| !matches!(op, Op::And | Op::Or);
        let levels = spine.iter().filter(levels).count() as u32;
        if self.chained + levels > parse::DEPTH_MAX {
            return Err(parse::too_complex());
        }
        self.chained += levels;
        let bound = self.bind_spine(leftmost, spine);
        self.chained -= levels;
        bound
    }

    fn bind_spine(
        &mut self,
        leftmost: &Ast,
        mut spine: Vec<(&Op, &Ast)>,
    ) -> Result<Expr, SqlError> {
        let mut bound = match (leftmost, spine.last()) {
            (Ast::Tuple(left), Some((op, Ast::Tuple(right)))) => {
                let bound = self.row_comparison(left, op, right)?;
                spine.pop();
                bound
            }
            (Ast::Tuple(_), Some((op, Ast::Subquery(query)))) => {
                let bound = self.quantified_subquery(leftmost, op, query, Quantifier::One)?;
                spine.pop();
                bound
            }
            _ => self.expr(leftmost)?,
        };
        while let Some((op, right)) = spine.pop() {
            bound = match op {
                Op::And | Op::Or => {
                    let name = if matches!(op, Op::And) { "AND" } else { "OR" };
                    let left = self.as_condition(bound, name)?;
                    let right = self.optionally(|binder| binder.condition(right, name))?;
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
        // The sign belongs to the number: -2147483648 is an integer although 2147483648 is not.
        if let (UnaryOperator::Minus, Ast::Value(value)) = (op, unwrapped(inner))
            && let Value::Number(digits, _) = &value.value
        {
            let negative = format!("-{digits}");
            return number(&negative).map_err(|e| at(e, self.position(value.span)));
        }
        let arg = self.expr(inner)?;
        match op {
            UnaryOperator::Not => {
                let arg = self.as_condition(arg, "NOT")?;
                Ok(Expr::Not(Box::new(arg)))
            }
            UnaryOperator::Plus => resolve::unary("+", arg),
            UnaryOperator::Minus => {
                let mut bound = resolve::unary("-", arg)?;
                expr::fold::fold(&mut bound);
                Ok(bound)
            }
            other => resolve::unary(&other.to_string(), arg),
        }
    }

    fn case(
        &mut self,
        operand: Option<&Ast>,
        whens: &[ast::CaseWhen],
        otherwise: Option<&Ast>,
    ) -> Result<Expr, SqlError> {
        let since = self.listed_calls();
        let operand = operand.map(|operand| self.expr(operand)).transpose()?;
        let operand = operand.map(resolve::case_operand).transpose()?;
        operand.iter().for_each(|operand| self.note(operand));
        let mut arms = Vec::with_capacity(whens.len());
        for (i, ast::CaseWhen { condition, result }) in whens.iter().enumerate() {
            let bind = |binder: &mut Self| match &operand {
                Some(operand) => {
                    let value = binder.expr(condition)?;
                    binder.binary("=", operand.clone(), value)
                }
                None => binder.condition(condition, "CASE/WHEN"),
            };
            let condition = match i {
                0 => bind(self)?,
                _ => self.optionally(bind)?,
            };
            let result = self.optionally(|binder| binder.expr(result))?;
            arms.push((condition, result));
        }
        let otherwise = otherwise.map(|otherwise| self.optionally(|binder| binder.expr(otherwise)));
        let bound = resolve::case(arms, otherwise.transpose()?)?;
        self.refuse_listed(since, "CASE")?;
        if let Expr::Case {
            arms, otherwise, ..
        } = &bound
        {
            arms.iter().for_each(|(_, result)| self.note(result));
            self.note(otherwise);
        }
        Ok(bound)
    }

    /// `type 'text'`
    fn typed(&mut self, data_type: &ast::DataType, value: &Value) -> Result<Expr, SqlError> {
        let literal = Expr::literal(string_of(value).unwrap_or_default());
        self.note_type(data_type);
        if let NamedType::Domain(id, ty) = named_type(data_type, &self.names())? {
            let bound = self.explicit(literal, ty)?;
            return self.domain_value(id, bound);
        }
        let ty = bind_type(data_type, &self.names())?;
        self.explicit(literal, ty)
    }

    fn cast(&mut self, inner: &Ast, to: &ast::DataType) -> Result<Expr, SqlError> {
        let named = named_type(to, &self.names())?;
        self.note_type(to);
        if named == NamedType::Plain(Type::Reg(base::Reg::Class)) {
            self.note_reg(inner);
        }
        // ARRAY[]::type[] has no other type than the cast's.
        if let (Ast::Array(array), NamedType::Plain(ty) | NamedType::Domain(_, ty)) = (inner, named)
            && has_no_item(array)
        {
            let empty = Expr::MakeArray(Vec::new(), ty);
            return match named {
                NamedType::Domain(id, _) => self.domain_value(id, empty),
                _ => Ok(empty),
            };
        }
        let (arg, is_cast) = match (inner, named) {
            (Ast::Array(array), NamedType::Plain(ty)) => self.array_as(array, ty)?,
            _ => (self.expr(inner)?, false),
        };
        if is_cast {
            return Ok(arg);
        }
        match named {
            NamedType::Plain(ty) => {
                let bound = self.explicit(arg, ty)?;
                self.note(&bound);
                self.computed(bound)
            }
            NamedType::Domain(id, ty) => {
                let bound = self.explicit(arg, ty)?;
                self.note(&bound);
                let bound = self.computed(bound)?;
                self.domain_value(id, bound)
            }
            NamedType::Serial(_) => bind_type(to, &self.names()).map(|_| arg),
        }
    }

    /// ARRAY[..] whose items take the type of the elements of `ty`, as in PostgreSQL, and `true`;
    /// if there are arrays in it, what it is without the cast, and `false`.
    fn array_as(&mut self, array: &ast::Array, ty: Type) -> Result<(Expr, bool), SqlError> {
        let items = array.elem.iter().map(|item| self.expr(item));
        let items = items.collect::<Result<Vec<Expr>, SqlError>>()?;
        let nested = items.iter().any(|item| item.ty().element().is_some());
        let Some(element) = ty.element().filter(|_| !nested) else {
            return Ok((self.array(items)?, false));
        };
        let items = items.into_iter().map(|item| {
            let item = self.explicit(item, element)?;
            self.note(&item);
            Ok(item)
        });
        let items = items.collect::<Result<Vec<Expr>, SqlError>>()?;
        Ok((self.computed(Expr::MakeArray(items, ty))?, true))
    }

    pub(super) fn explicit(&mut self, arg: Expr, ty: Type) -> Result<Expr, SqlError> {
        self.composed(arg, ty, Context::Explicit)
    }

    fn interval(&mut self, interval: &ast::Interval) -> Result<Expr, SqlError> {
        let ast::Interval {
            value,
            leading_field,
            leading_precision,
            last_field,
            fractional_seconds_precision,
        } = interval;
        let Ast::Value(value) = value.as_ref() else {
            return Err(self.source.misplaced("INTERVAL"));
        };
        let text = string_of(&value.value).unwrap_or_default();
        let digits = leading_precision.or(*fractional_seconds_precision);
        let fields = (leading_field.as_ref(), last_field.as_ref());
        let modifier = super::types::span_of_words(fields, digits)
            .map_err(|error| error.unwrap_or_else(|| self.source.misplaced("INTERVAL")))?;
        self.explicit(Expr::literal(text), Type::Interval(modifier))
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
        let mut element = resolve::common_type_of("ARRAY", &types)?;
        if element == Type::Unknown {
            element = Type::Text;
        }
        let Some(ty) = resolve::array_type(element.without_modifiers()) else {
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

    /// Resolves a name that a statement gives to a table, sequence or column.
    pub(super) fn name_of(
        &self,
        name: &ast::ObjectName,
    ) -> Result<(Option<String>, String), SqlError> {
        let parts = name.0.iter().filter_map(ast::ObjectNamePart::as_ident);
        let parts: Vec<String> = parts.map(ident).collect();
        check_parts(&self.cx.database.name, &parts, 3, "")?;
        Ok(object_name(name))
    }
}

/// Refuses collations that order otherwise than by code points.
///
/// # Errors
/// 0A000 for a locale, 42704 for any other name.
pub fn check_collation(collation: &ast::ObjectName) -> Result<(), SqlError> {
    let (schema, name) = object_name(collation);
    let known = ["C", "POSIX", "default", "ucs_basic", "C.UTF-8", "C.utf8"];
    if schema.is_none_or(|schema| schema == "pg_catalog") && known.contains(&name.as_str()) {
        return Ok(());
    }
    if is_locale(&name) {
        let error = unsupported(&format!("collation \"{name}\""));
        return Err(error.hint(parse::absent::ONE_ORDER));
    }
    let message = format!("collation \"{name}\" for encoding \"UTF8\" does not exist");
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
}

/// Whether PostgreSQL may have a collation of this name from ICU or from the system: `de-x-icu`,
/// `de_DE`, `de_DE.utf8`.
fn is_locale(name: &str) -> bool {
    let place = name.split(['.', '@']).next().unwrap_or_default();
    let of_system = place.split_once('_').is_some_and(|(language, country)| {
        let letters = |text: &str, fits: fn(&u8) -> bool| text.as_bytes().iter().all(fits);
        (2..=3).contains(&language.len())
            && country.len() == 2
            && letters(language, u8::is_ascii_lowercase)
            && letters(country, u8::is_ascii_uppercase)
    });
    of_system || name.ends_with("-x-icu")
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
            match right {
                Expr::And(mut further) => parts.append(&mut further),
                other => parts.push(other),
            }
            Expr::And(parts)
        }
        (Expr::Or(mut parts), false) => {
            match right {
                Expr::Or(mut further) => parts.append(&mut further),
                other => parts.push(other),
            }
            Expr::Or(parts)
        }
        (left, true) => Expr::And(vec![left, right]),
        (left, false) => Expr::Or(vec![left, right]),
    }
}

/// A numeric literal: integer if it fits, else bigint, else numeric.
fn number(digits: &str) -> Result<Expr, SqlError> {
    if let Ok(value) = digits.parse::<i64>() {
        let ty = if i32::try_from(value).is_ok() {
            Type::Int4
        } else {
            Type::Int8
        };
        return Ok(Expr::Const(Datum::Int(value), ty));
    }
    let ty = Type::Numeric(None);
    base::text::parse(ty, digits).map(|value| Expr::Const(value, ty))
}

/// The text of a string literal.
pub(super) fn string_of(value: &Value) -> Option<&str> {
    match value {
        Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text),
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

/// `B'101'` and `X'1F'`.
fn bit_string(kind: char, digits: &str) -> Result<Expr, SqlError> {
    let value = base::text::parse(Type::Bit(None), &format!("{kind}{digits}"))?;
    Ok(Expr::Const(value, Type::Bit(None)))
}

/// Whether an array is empty, or made of empty ones alone.
fn has_no_item(array: &ast::Array) -> bool {
    let mut items = array.elem.iter();
    items.all(|item| matches!(item, Ast::Array(inner) if has_no_item(inner)))
}
