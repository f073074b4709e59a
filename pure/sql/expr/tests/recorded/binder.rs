//! The smallest binder: SQL text of one expression without columns to `expr::Expr`.

use base::{Datum, SqlError, SqlState, Type};
use expr::Compare;
use expr::Expr;
use expr::resolve::{self, Context, Subscripted};
use sqlparser::ast::{
    AccessExpr, Array, CaseWhen, CastKind, CharacterLength, DataType, ExactNumberInfo, Expr as Ast,
    Function, FunctionArg, FunctionArgExpr, FunctionArguments, Subscript, TrimWhereField,
    UnaryOperator, Value,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

fn unsupported(what: &str) -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("test binder: {what}"),
    )
}

/// Parses and binds.
pub(crate) fn bind(source: &str) -> Result<Expr, SqlError> {
    // The grammar of sqlparser lacks OVERLAPS.
    if let Some((left, right)) = source.split_once(" OVERLAPS ") {
        let inner = |part: &str| part.trim_matches(['(', ')']).to_string();
        return bind(
            &format!("overlaps({}), {}))", &left[1..left.len() - 1], inner(right))
                .replace("), ", ", ")
                .replace("))", ")"),
        );
    }
    let dialect = PostgreSqlDialect {};
    let ast = Parser::new(&dialect)
        .try_with_sql(source)
        .and_then(|mut parser| {
            let ast = parser.parse_expr()?;
            parser.expect_token(&sqlparser::tokenizer::Token::EOF)?;
            Ok(ast)
        })
        .map_err(|error| SqlError::new(SqlState::SYNTAX, error.to_string()))?;
    let expr = expr(&ast)?;
    // A literal that is still unknown is shown as text.
    match expr.ty() {
        Type::Unknown => resolve::coerce(expr, Type::Text, Context::Implicit),
        _ => Ok(expr),
    }
}

fn value(value: &Value) -> Result<Expr, SqlError> {
    Ok(match value {
        Value::Number(text, _) => number(text)?,
        Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Expr::literal(text),
        Value::Boolean(value) => Expr::bool(*value),
        Value::Null => Expr::null(Type::Unknown),
        Value::Placeholder(name) => {
            let number: u32 = name[1..].parse().map_err(|_| unsupported(name))?;
            Expr::Param(number - 1, Type::Unknown)
        }
        other => return Err(unsupported(&other.to_string())),
    })
}

fn number(text: &str) -> Result<Expr, SqlError> {
    if let Ok(value) = text.parse::<i64>() {
        let ty = if i32::try_from(value).is_ok() {
            Type::Int4
        } else {
            Type::Int8
        };
        return Ok(Expr::Const(Datum::Int(value), ty));
    }
    Ok(Expr::Const(
        base::numeric::parse(text)?,
        Type::Numeric(None),
    ))
}

fn length(length: &Option<CharacterLength>) -> Option<u32> {
    match length {
        Some(CharacterLength::IntegerLength { length, .. }) => Some(*length as u32),
        _ => None,
    }
}

fn data_type(ty: &DataType) -> Result<Type, SqlError> {
    Ok(match ty {
        DataType::Bool | DataType::Boolean => Type::Bool,
        DataType::SmallInt(_) | DataType::Int2(_) => Type::Int2,
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => Type::Int4,
        DataType::BigInt(_) | DataType::Int8(_) => Type::Int8,
        DataType::Real | DataType::Float4 => Type::Float4,
        DataType::Double(_) | DataType::DoublePrecision | DataType::Float8 => Type::Float8,
        DataType::Numeric(info) | DataType::Decimal(info) => match info {
            ExactNumberInfo::None => Type::Numeric(None),
            ExactNumberInfo::Precision(p) => Type::Numeric(Some((*p as u16, 0))),
            ExactNumberInfo::PrecisionAndScale(p, s) => Type::Numeric(Some((*p as u16, *s as i16))),
        },
        DataType::Text => Type::Text,
        DataType::Varchar(n) | DataType::CharacterVarying(n) => Type::Varchar(length(n)),
        DataType::Char(n) | DataType::Character(n) => Type::Char(length(n).unwrap_or(1)),
        DataType::Bytea => Type::Bytea,
        DataType::Date => Type::Date,
        DataType::Time(None, sqlparser::ast::TimezoneInfo::None) => Type::Time(None),
        DataType::Timestamp(_, sqlparser::ast::TimezoneInfo::Tz)
        | DataType::Timestamp(_, sqlparser::ast::TimezoneInfo::WithTimeZone) => {
            Type::Timestamptz(None)
        }
        DataType::Timestamp(..) => Type::Timestamp(None),
        DataType::Uuid => Type::Uuid,
        DataType::JSON => Type::Json,
        DataType::JSONB => Type::Jsonb,
        DataType::Interval => Type::Interval(None),
        DataType::Array(element) => {
            let element = match element {
                sqlparser::ast::ArrayElemTypeDef::SquareBracket(element, _) => element,
                other => return Err(unsupported(&format!("{other:?}"))),
            };
            data_type(element)?
                .array_of()
                .ok_or_else(|| unsupported("array"))?
        }
        DataType::Custom(name, _) => match name.to_string().as_str() {
            "inet" => Type::Inet,
            "cidr" => Type::Cidr,
            "macaddr" => Type::Macaddr,
            "name" => Type::Name,
            "oid" => Type::Oid,
            "\"char\"" => Type::InternalChar,
            "timestamptz" => Type::Timestamptz(None),
            other => return Err(unsupported(other)),
        },
        other => return Err(unsupported(&format!("type {other}"))),
    })
}

fn literal(text: &Option<String>) -> Option<Expr> {
    text.as_deref().map(Expr::literal)
}

fn boxed(ast: &Option<Box<Ast>>) -> Result<Option<Expr>, SqlError> {
    ast.as_deref().map(expr).transpose()
}

fn expr(ast: &Ast) -> Result<Expr, SqlError> {
    match ast {
        Ast::Value(literal) => value(&literal.value),
        Ast::Nested(inner) => expr(inner),
        Ast::Identifier(name) => resolve::function(&name.value.to_lowercase(), Vec::new()),
        Ast::UnaryOp { op, expr: arg } => unary(op, expr(arg)?),
        Ast::BinaryOp { left, op, right } => {
            let (left, right) = (expr(left)?, expr(right)?);
            let op = op.to_string();
            match op.as_str() {
                "AND" | "OR" => {
                    let parts = vec![resolve::to_bool(left, &op)?, resolve::to_bool(right, &op)?];
                    Ok(if op == "AND" {
                        Expr::And(parts)
                    } else {
                        Expr::Or(parts)
                    })
                }
                _ => resolve::binary(&op, left, right),
            }
        }
        Ast::Cast {
            kind: CastKind::Cast | CastKind::DoubleColon,
            expr: arg,
            data_type: ty,
            ..
        } => {
            // An empty array has no type of its own.
            if let Ast::Array(Array { elem, .. }) = &**arg
                && elem.is_empty()
            {
                return Ok(Expr::MakeArray(Vec::new(), data_type(ty)?));
            }
            resolve::coerce(expr(arg)?, data_type(ty)?, Context::Explicit)
        }
        Ast::TypedString {
            data_type: ty,
            value: text,
        } => resolve::coerce(value(text)?, data_type(ty)?, Context::Explicit),
        Ast::Interval(interval) => {
            let mut text = match expr(&interval.value)? {
                Expr::Const(Datum::Text(text), _) => text.to_string(),
                other => return Err(unsupported(&format!("{other:?}"))),
            };
            if let Some(field) = &interval.leading_field {
                text.push_str(&format!(" {field}"));
            }
            resolve::coerce(
                Expr::literal(&text),
                Type::Interval(None),
                Context::Explicit,
            )
        }
        Ast::IsNull(arg) => Ok(Expr::IsNull(Box::new(expr(arg)?), false)),
        Ast::IsNotNull(arg) => Ok(Expr::IsNull(Box::new(expr(arg)?), true)),
        Ast::IsTrue(arg) => resolve::is_bool(expr(arg)?, Some(true), false),
        Ast::IsNotTrue(arg) => resolve::is_bool(expr(arg)?, Some(true), true),
        Ast::IsFalse(arg) => resolve::is_bool(expr(arg)?, Some(false), false),
        Ast::IsNotFalse(arg) => resolve::is_bool(expr(arg)?, Some(false), true),
        Ast::IsUnknown(arg) => resolve::is_bool(expr(arg)?, None, false),
        Ast::IsNotUnknown(arg) => resolve::is_bool(expr(arg)?, None, true),
        Ast::IsDistinctFrom(a, b) => resolve::is_distinct(expr(a)?, expr(b)?, false),
        Ast::IsNotDistinctFrom(a, b) => resolve::is_distinct(expr(a)?, expr(b)?, true),
        Ast::Between {
            expr: arg,
            negated,
            low,
            high,
        } => resolve::between(expr(arg)?, expr(low)?, expr(high)?, *negated, false),
        Ast::InList {
            expr: arg,
            list,
            negated,
        } => resolve::in_list(expr(arg)?, exprs(list)?, *negated),
        Ast::Like {
            negated,
            expr: text,
            pattern,
            escape_char,
            ..
        } => {
            let op = if *negated {
                Compare::NotLike
            } else {
                Compare::Like
            };
            resolve::like(op, expr(text)?, expr(pattern)?, literal(escape_char))
        }
        Ast::ILike {
            negated,
            expr: text,
            pattern,
            escape_char,
            ..
        } => {
            let op = if *negated {
                Compare::NotILike
            } else {
                Compare::ILike
            };
            resolve::like(op, expr(text)?, expr(pattern)?, literal(escape_char))
        }
        Ast::AnyOp {
            left,
            compare_op,
            right,
            ..
        } => resolve::any_array(expr(left)?, &compare_op.to_string(), expr(right)?, false),
        Ast::AllOp {
            left,
            compare_op,
            right,
        } => resolve::any_array(expr(left)?, &compare_op.to_string(), expr(right)?, true),
        Ast::Case {
            operand,
            conditions,
            else_result,
        } => {
            let operand = boxed(operand)?.map(resolve::case_operand).transpose()?;
            let arm = |when: &CaseWhen| {
                let condition = expr(&when.condition)?;
                let condition = match &operand {
                    Some(operand) => resolve::binary("=", operand.clone(), condition)?,
                    None => condition,
                };
                Ok((condition, expr(&when.result)?))
            };
            let arms = conditions
                .iter()
                .map(arm)
                .collect::<Result<_, SqlError>>()?;
            resolve::case(arms, boxed(else_result)?)
        }
        Ast::AtTimeZone {
            timestamp,
            time_zone,
        } => resolve::function("timezone", vec![expr(time_zone)?, expr(timestamp)?]),
        Ast::Extract {
            field, expr: arg, ..
        } => {
            let field = Expr::literal(&field.to_string().to_lowercase().replace('\'', ""));
            resolve::function("extract", vec![field, expr(arg)?])
        }
        Ast::Ceil { expr: arg, .. } => resolve::function("ceil", vec![expr(arg)?]),
        Ast::Floor { expr: arg, .. } => resolve::function("floor", vec![expr(arg)?]),
        Ast::Position { expr: part, r#in } => {
            resolve::function("position", vec![expr(r#in)?, expr(part)?])
        }
        Ast::Substring {
            expr: text,
            substring_from,
            substring_for,
            ..
        } => {
            let from = match boxed(substring_from)? {
                Some(from) => from,
                None => Expr::Const(Datum::Int(1), Type::Int4),
            };
            let mut args = vec![expr(text)?, from];
            args.extend(boxed(substring_for)?);
            resolve::function("substring", args)
        }
        Ast::Trim {
            expr: text,
            trim_where,
            trim_what,
            trim_characters,
        } => {
            let name = match trim_where {
                Some(TrimWhereField::Leading) => "ltrim",
                Some(TrimWhereField::Trailing) => "rtrim",
                Some(TrimWhereField::Both) | None => "btrim",
            };
            let mut args = vec![expr(text)?];
            args.extend(boxed(trim_what)?);
            args.extend(exprs(trim_characters.as_deref().unwrap_or(&[]))?);
            resolve::function(name, args)
        }
        Ast::Overlay {
            expr: text,
            overlay_what,
            overlay_from,
            overlay_for,
        } => {
            let mut args = vec![expr(text)?, expr(overlay_what)?, expr(overlay_from)?];
            args.extend(boxed(overlay_for)?);
            resolve::function("overlay", args)
        }
        Ast::Array(Array { elem, .. }) => resolve::array(exprs(elem)?),
        Ast::CompoundFieldAccess { root, access_chain } => {
            access_chain
                .iter()
                .try_fold(expr(root)?, |array, access| match access {
                    AccessExpr::Subscript(Subscript::Index { index }) => {
                        resolve::subscript(array, vec![Subscripted::Item(expr(index)?)])
                    }
                    AccessExpr::Subscript(Subscript::Slice {
                        lower_bound: Some(low),
                        upper_bound: Some(high),
                        ..
                    }) => {
                        resolve::subscript(array, vec![Subscripted::Part(expr(low)?, expr(high)?)])
                    }
                    other => Err(unsupported(&format!("{other:?}"))),
                })
        }
        Ast::Function(function) => call(function),
        other => Err(unsupported(&format!("{other}"))),
    }
}

fn exprs(list: &[Ast]) -> Result<Vec<Expr>, SqlError> {
    list.iter().map(expr).collect()
}

fn unary(op: &UnaryOperator, arg: Expr) -> Result<Expr, SqlError> {
    let symbol = match op {
        UnaryOperator::Not => {
            return Ok(Expr::Not(Box::new(resolve::to_bool(arg, "NOT")?)));
        }
        UnaryOperator::PGSquareRoot => "|/".to_string(),
        UnaryOperator::PGCubeRoot => "||/".to_string(),
        UnaryOperator::PGBitwiseNot => "~".to_string(),
        UnaryOperator::PGAbs => "@".to_string(),
        other => other.to_string(),
    };
    resolve::unary(&symbol, arg)
}

fn call(function: &Function) -> Result<Expr, SqlError> {
    let mut args = Vec::new();
    if let FunctionArguments::List(list) = &function.args {
        for arg in &list.args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => args.push(expr(arg)?),
                other => return Err(unsupported(&other.to_string())),
            }
        }
    }
    resolve::function(&function.name.to_string().to_lowercase(), args)
}
