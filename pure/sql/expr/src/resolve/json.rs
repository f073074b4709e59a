//! Calls that make JSON of values of any type.

use super::super::{Expr, Func};
use super::coerce::{Context, coerce, coerce_argument};
use base::{ArrayKind, Datum, SqlError, SqlState, Type};
use functions::JsonFunc;
use functions::json::{FieldForm, PATH};

/// The member `name` of an object as a value of a column of this type.
///
/// # Errors
/// 42846 if no text is read as the type.
pub fn field(object: Expr, name: &str, ty: Type) -> Result<Expr, SqlError> {
    let is_json = |ty| matches!(ty, Type::Json | Type::Jsonb);
    let form = match ty.element() {
        None if is_json(ty) => FieldForm::Json,
        None => FieldForm::Text,
        Some(element) => FieldForm::Array {
            json: is_json(element),
        },
    };
    let of = if form == FieldForm::Json {
        ty
    } else {
        Type::Text
    };
    let key = Expr::Const(Datum::from(name), Type::Text);
    let field = Expr::Call(Func::Json(JsonFunc::Field(form)), vec![object, key], of);
    let element = ty.element().unwrap_or(ty);
    Ok(match element {
        _ if of == ty => field,
        // The catalog knows their names.
        Type::Enum(_) | Type::Reg(_) | Type::Composite(_) => coerce(field, ty, Context::Explicit)?,
        _ => Expr::Cast {
            arg: Box::new(field),
            to: ty,
            explicit: false,
        },
    })
}

/// `json` or `jsonb`, of which the name of a function tells.
fn result(name: &str) -> Type {
    match name.starts_with("jsonb") || name.ends_with("jsonb") {
        true => Type::Jsonb,
        false => Type::Json,
    }
}

/// A call of a function that takes values of any type and gives their JSON; `None`: it is another
/// function, or has no such arguments.
///
/// # Errors
/// 22023 for keys that are no scalars, 42804 for a lone literal.
pub(super) fn function(name: &str, args: &[Expr]) -> Result<Option<Expr>, SqlError> {
    let ty = result(name);
    let all = |args: &[Expr]| {
        let values = args.iter().map(|arg| value(arg.clone(), ty));
        values.collect::<Result<Vec<_>, SqlError>>()
    };
    Ok(Some(match (name, args) {
        ("to_json" | "to_jsonb", [arg]) => {
            if arg.ty() == Type::Unknown {
                let message = "could not determine polymorphic type because input has type unknown";
                return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
            }
            plain(value(arg.clone(), ty)?)
        }
        ("row_to_json", [row]) if is_row(row) => plain(row.clone()),
        ("row_to_json", [row, lines]) if is_row(row) => {
            with_lines(row, lines, |lines| plain(lined(row, lines)))?
        }
        ("array_to_json", [array]) if array.ty().element().is_some() => value(array.clone(), ty)?,
        ("array_to_json", [array, lines]) if array.ty().element().is_some() => {
            let plain = shown(array.clone())?;
            let of = plain.ty();
            with_lines(array, lines, |lines| match (lines, of.element()) {
                (true, Some(element)) => {
                    let func = JsonFunc::ArrayLines(element);
                    Expr::Call(Func::Json(func), vec![plain.clone()], ty)
                }
                _ => from(plain.clone(), ty),
            })?
        }
        ("json_build_array" | "jsonb_build_array", args) => {
            Expr::Call(Func::Json(JsonFunc::BuildArray), all(args)?, ty)
        }
        ("json_build_object" | "jsonb_build_object", args) => {
            let mut parts = Vec::with_capacity(args.len());
            for (i, arg) in args.iter().enumerate() {
                parts.push(match i % 2 {
                    0 => key(arg.clone())?,
                    _ => value(arg.clone(), ty)?,
                });
            }
            Expr::Call(Func::Json(JsonFunc::BuildObject), parts, ty)
        }
        _ => return Ok(None),
    }))
}

/// The JSON of a row is no row any more.
fn plain(made: Expr) -> Expr {
    match is_row(&made) {
        true => {
            let ty = made.ty();
            Expr::Coalesce(vec![made], ty)
        }
        false => made,
    }
}

/// A call with a flag that asks for lines.
fn with_lines(of: &Expr, lines: &Expr, make: impl Fn(bool) -> Expr) -> Result<Expr, SqlError> {
    match coerce(lines.clone(), Type::Bool, Context::Implicit)? {
        Expr::Const(Datum::Bool(lines), _) => Ok(make(lines)),
        Expr::Const(Datum::Null, _) => Ok(Expr::null(Type::Json)),
        lines => Ok(Expr::Case {
            arms: vec![
                (lines.clone(), make(true)),
                (Expr::IsNull(Box::new(lines), false), Expr::null(of.ty())),
            ],
            otherwise: Box::new(make(false)),
            ty: Type::Json,
        }),
    }
}

/// A whole row in JSON: names and values in turn. The functions that take rows look for it.
#[must_use]
pub fn row(columns: Vec<(String, Expr)>) -> Expr {
    let mut args = Vec::with_capacity(2 * columns.len());
    for (name, column) in columns {
        args.push(Expr::Const(name.into(), Type::Text));
        args.push(column);
    }
    Expr::Call(Func::Json(JsonFunc::Row { lines: false }), args, Type::Json)
}

/// Whether the expression is a whole row.
#[must_use]
pub fn is_row(expr: &Expr) -> bool {
    match expr {
        Expr::Call(Func::Json(JsonFunc::Row { .. }), _, _) => true,
        // NULL where an outer join found none.
        Expr::Case {
            arms, otherwise, ..
        } => match arms.as_slice() {
            [(_, Expr::Const(Datum::Null, _))] => is_row(otherwise),
            _ => false,
        },
        _ => false,
    }
}

/// The row with its columns on lines of their own, or not.
fn lined(row: &Expr, lines: bool) -> Expr {
    match row {
        Expr::Call(_, args, ty) => {
            let func = JsonFunc::Row { lines };
            Expr::Call(Func::Json(func), args.clone(), *ty)
        }
        Expr::Case {
            arms,
            otherwise,
            ty,
        } => Expr::Case {
            arms: arms.clone(),
            otherwise: Box::new(lined(otherwise, lines)),
            ty: *ty,
        },
        other => other.clone(),
    }
}

/// The value as `json` or `jsonb`; NULL stays NULL.
///
/// # Errors
/// None so far, but those of conversions.
pub fn value(arg: Expr, ty: Type) -> Result<Expr, SqlError> {
    match arg {
        arg if arg.ty() == ty => Ok(arg),
        Expr::Call(Func::Json(func @ JsonFunc::Row { .. }), args, _) => {
            let args = args.into_iter().enumerate();
            let args = args.map(|(i, arg)| if i % 2 == 0 { Ok(arg) } else { value(arg, ty) });
            Ok(Expr::Call(
                Func::Json(func),
                args.collect::<Result<_, _>>()?,
                ty,
            ))
        }
        Expr::Case {
            arms,
            otherwise,
            ty: Type::Json,
        } => {
            let arms = arms
                .into_iter()
                .map(|(condition, arg)| Ok((condition, value(arg, ty)?)));
            Ok(Expr::Case {
                arms: arms.collect::<Result<_, SqlError>>()?,
                otherwise: Box::new(value(*otherwise, ty)?),
                ty,
            })
        }
        arg => Ok(from(shown(arg)?, ty)),
    }
}

fn from(arg: Expr, ty: Type) -> Expr {
    let func = Func::Json(JsonFunc::From(arg.ty()));
    Expr::Call(func, vec![arg], ty)
}

/// The argument as a value of a type that can be shown without the catalog.
///
/// # Errors
/// Those of conversions.
pub fn shown(arg: Expr) -> Result<Expr, SqlError> {
    match arg.ty() {
        Type::Unknown => coerce_argument(arg, Type::Text),
        Type::Reg(_) | Type::Enum(_) => coerce(arg, Type::Text, Context::Explicit),
        Type::Array(ArrayKind::Reg(_) | ArrayKind::Enum(_)) => coerce(arg, PATH, Context::Explicit),
        // The binder makes objects of rows where they are arguments themselves.
        Type::Composite(_) | Type::Array(ArrayKind::Composite(_)) => {
            let message = "JSON of a row or an array of rows is not supported here";
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .hint("Name the fields: json_build_object('a', (r).a)."))
        }
        _ => Ok(arg),
    }
}

/// The argument as a key.
///
/// # Errors
/// 22023 for arrays, rows and JSON.
pub fn key(arg: Expr) -> Result<Expr, SqlError> {
    let ty = arg.ty();
    match ty {
        Type::Array(_) | Type::Composite(_) | Type::Json | Type::Jsonb => {
            let message = "key value must be scalar, not array, composite, or json";
            Err(SqlError::new(SqlState::INVALID_PARAMETER, message))
        }
        Type::Bool => coerce(arg, Type::Text, Context::Explicit),
        _ if ty.is_datetime() => {
            let path = Expr::Const(Datum::Array(Box::default()), PATH);
            let args = vec![from(arg, Type::Json), path];
            Ok(Expr::Call(Func::Json(JsonFunc::PathText), args, Type::Text))
        }
        _ => super::to_output(arg),
    }
}
