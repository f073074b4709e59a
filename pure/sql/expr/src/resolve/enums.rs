//! Enum types, and composite ones whose texts are read alike: comparisons, conversions to labels
//! and back, and their functions.
//!
//! A value is the place of its label. Labels are the catalog's: the conversions are calls of
//! functions over it, and literals become values when a statement is planned ([`constant`]).

use super::super::{Expr, Func};
use super::coerce::{Context, coerce};
use base::record::ANONYMOUS;
use base::{ArrayKind, Datum, SqlError, Type};

/// The function that reads a label: text, oid of the type.
pub const READ: &str = "enum_in";
/// The function that gives the label of a value: value, oid of the type.
pub const SHOW: &str = "enum_out";
/// Functions over the type of their arguments, which may be NULL; the oid of the type comes last.
pub const OF_TYPE: [&str; 3] = ["enum_first", "enum_last", "enum_range"];

/// The enum or composite type in which a comparison compares: that of both operands, or of the one
/// that has a type. Rows of any types are compared field by field.
pub(super) fn common(types: &[Type]) -> Option<Type> {
    let mut known = types.iter().filter(|ty| **ty != Type::Unknown);
    let first = *known.next()?;
    let is_row = |ty: Type| matches!(ty, Type::Composite(_));
    let of_users = matches!(first, Type::Enum(_)) || is_row(first);
    let alike = |ty: &Type| *ty == first || is_row(*ty) && is_row(first);
    let common = match is_row(first) {
        true => Type::Composite(ANONYMOUS),
        false => first,
    };
    (of_users && known.all(alike)).then_some(common)
}

fn oid(id: u32) -> Expr {
    Expr::Const(Datum::Int(i64::from(id)), Type::Oid)
}

fn call(name: &str, mut args: Vec<Expr>, id: u32, ty: Type) -> Expr {
    args.push(oid(id));
    Expr::Call(Func::Catalog(name.into()), args, ty)
}

/// A literal as a value; one that is no label is an error when the statement is planned.
pub(super) fn from_literal(literal: Box<str>, id: u32, ty: Type) -> Expr {
    let literal = Expr::Const(Datum::Text(literal), Type::Unknown);
    call(READ, vec![literal], id, ty)
}

/// The conversion of labels to values, or of values to labels; `None` if it is neither.
pub(super) fn through_labels(expr: &Expr, from: Type, to: Type) -> Result<Option<Expr>, SqlError> {
    let text = |ty: Type| ty.element().unwrap_or(ty).is_text();
    let texts = Type::Array(ArrayKind::Text);
    Ok(match (from.user_id(), to.user_id()) {
        (Some(id), None) if text(to) => {
            let ty = match from.element() {
                Some(_) => texts,
                None => Type::Text,
            };
            Some(call(SHOW, vec![expr.clone()], id, ty))
        }
        (None, Some(id)) if text(from) => {
            let written = match (from.element(), to.element()) {
                (None, Some(_)) => coerce(expr.clone(), texts, Context::Explicit)?,
                _ => expr.clone(),
            };
            Some(call(READ, vec![written], id, to))
        }
        _ => None,
    })
}

/// `enum_first`, `enum_last` and `enum_range`.
///
/// # Errors
/// Those of reading literals.
pub(super) fn function(name: &str, args: &[Expr]) -> Result<Option<Expr>, SqlError> {
    let most = if name == "enum_range" { 2 } else { 1 };
    if !OF_TYPE.contains(&name) || args.is_empty() || args.len() > most {
        return Ok(None);
    }
    let types: Vec<Type> = args.iter().map(Expr::ty).collect();
    let Some(ty @ Type::Enum(id)) = common(&types) else {
        return Ok(None);
    };
    let args = args.iter().cloned();
    let args = args.map(|arg| coerce(arg, ty, Context::Implicit));
    let args = args.collect::<Result<Vec<_>, _>>()?;
    let result = match name {
        "enum_range" => Type::Array(ArrayKind::Enum(id)),
        _ => ty,
    };
    Ok(Some(call(name, args, id, result)))
}

/// A constant that [`READ`] is called with for a value that is no array, the oid of the type, and
/// whether it is a literal,
/// which must be a label.
pub fn constant(expr: &Expr) -> Option<(&str, u32, bool)> {
    let Expr::Call(Func::Catalog(name), args, Type::Enum(id) | Type::Composite(id)) = expr else {
        return None;
    };
    match args.first() {
        Some(Expr::Const(Datum::Text(label), ty)) if **name == *READ => {
            Some((label, *id, *ty == Type::Unknown))
        }
        _ => None,
    }
}
