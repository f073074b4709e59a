//! Constructs of the language that are not calls: CASE, COALESCE, IN, LIKE, arrays.

use super::super::{Compare, Expr, Func};
use super::coerce::{Context, coerce, coerce_argument, common_type_of, to_bool};
use super::{binary, comparison};
use base::grid::{DIMENSIONS_MAX, too_many_dimensions};
use base::{Datum, SqlError, SqlState, Type};
use functions::{ArrayFunc, JsonFunc, TextFunc};

/// Converts all expressions to their common type.
fn unify(what: &str, exprs: Vec<Expr>) -> Result<(Vec<Expr>, Type), SqlError> {
    let types: Vec<Type> = exprs.iter().map(Expr::ty).collect();
    let mut ty = common_type_of(what, &types)?;
    if let Type::Char(0) = ty {
        ty = Type::Char(common_length(&exprs));
    }
    let exprs = exprs
        .into_iter()
        .map(|expr| coerce(expr, ty, Context::Implicit));
    Ok((exprs.collect::<Result<_, _>>()?, ty))
}

/// The length that all values of `character(n)` have, NULL literals aside; else 0. They are stored
/// without the blanks at their end, and only the length brings these back.
fn common_length(exprs: &[Expr]) -> u32 {
    let mut types = exprs.iter().filter_map(|expr| match expr {
        Expr::Const(Datum::Null, Type::Unknown) => None,
        known => Some(known.ty()),
    });
    match types.next() {
        Some(Type::Char(length)) if types.all(|ty| ty == Type::Char(length)) => length,
        _ => 0,
    }
}

/// COALESCE.
///
/// # Errors
/// 42804 if the types have nothing in common.
pub fn coalesce(args: Vec<Expr>) -> Result<Expr, SqlError> {
    let (args, ty) = unify("COALESCE", args)?;
    Ok(Expr::Coalesce(args, ty))
}

/// GREATEST and LEAST.
pub(super) fn extreme(func: Func, what: &str, args: Vec<Expr>) -> Result<Expr, SqlError> {
    let (args, ty) = unify(what, args)?;
    if !super::has_order(ty) {
        let message = format!(
            "could not identify a comparison function for type {}",
            ty.name()
        );
        return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
    }
    Ok(Expr::Call(func, args, ty))
}

/// NULLIF: compares as `=` would; the result has the type that the first argument is compared in.
pub(super) fn null_if(mut args: Vec<Expr>) -> Result<Expr, SqlError> {
    let right = args.pop().expect("two arguments");
    let left = args.pop().expect("two arguments");
    let Expr::Call(_, operands, _) = binary("=", left, right)? else {
        unreachable!("an operator is a call");
    };
    let ty = match operands.first().map(Expr::ty) {
        Some(Type::Varchar(_)) => Type::Text,
        Some(Type::Cidr) => Type::Inet,
        Some(ty) => ty,
        None => unreachable!("a comparison has two operands"),
    };
    Ok(Expr::Call(Func::NullIf, operands, ty))
}

/// Searched CASE; without ELSE `otherwise` is NULL.
///
/// # Errors
/// 42804 if a condition is not boolean or the results have no common type.
pub fn case(arms: Vec<(Expr, Expr)>, otherwise: Option<Expr>) -> Result<Expr, SqlError> {
    let otherwise = otherwise.unwrap_or_else(|| Expr::null(Type::Unknown));
    let (mut conditions, mut results) = (Vec::new(), vec![otherwise]);
    for (condition, result) in arms {
        conditions.push(to_bool(condition, "CASE/WHEN")?);
        results.push(result);
    }
    let (results, ty) = unify("CASE", results)?;
    let mut results = results.into_iter();
    let otherwise = results.next().expect("ELSE comes first");
    let arms = conditions.into_iter().zip(results).collect();
    Ok(Expr::Case {
        arms,
        otherwise: Box::new(otherwise),
        ty,
    })
}

/// What `CASE operand WHEN` compares: what has no type is text, as in PostgreSQL, whatever it is
/// compared with.
///
/// # Errors
/// None for what can have no type.
pub fn case_operand(operand: Expr) -> Result<Expr, SqlError> {
    match operand.ty() {
        Type::Unknown => coerce(operand, Type::Text, Context::Implicit),
        _ => Ok(operand),
    }
}

/// `arg [NOT] IN (list)`.
///
/// # Errors
/// 42883 if argument and items cannot be compared.
pub fn in_list(arg: Expr, list: Vec<Expr>, negated: bool) -> Result<Expr, SqlError> {
    let mut types = vec![arg.ty()];
    types.extend(list.iter().map(Expr::ty));
    let Ok(ty) = common_type_of("IN", &types) else {
        // No common type: item by item, which gives the error of the first that does not compare.
        let equal = list.into_iter().map(|item| binary("=", arg.clone(), item));
        let any = Expr::Or(equal.collect::<Result<_, _>>()?);
        return Ok(if negated {
            Expr::Not(Box::new(any))
        } else {
            any
        });
    };
    if !super::has_equality(ty) {
        return binary("=", Expr::null(ty), Expr::null(ty));
    }
    let arg = coerce_argument(arg, ty)?;
    let list = list.into_iter().map(|item| coerce_argument(item, ty));
    Ok(Expr::InList(
        Box::new(arg),
        list.collect::<Result<Vec<Expr>, _>>()?.into(),
        negated,
    ))
}

/// `arg [NOT] BETWEEN [SYMMETRIC] low AND high`.
///
/// # Errors
/// As [`binary`].
pub fn between(
    arg: Expr,
    low: Expr,
    high: Expr,
    negated: bool,
    symmetric: bool,
) -> Result<Expr, SqlError> {
    let inside = |low: &Expr, high: &Expr| -> Result<Expr, SqlError> {
        let above = binary(">=", arg.clone(), low.clone())?;
        let below = binary("<=", arg.clone(), high.clone())?;
        Ok(Expr::And(vec![above, below]))
    };
    let mut found = inside(&low, &high)?;
    if symmetric {
        found = Expr::Or(vec![found, inside(&high, &low)?]);
    }
    Ok(if negated {
        Expr::Not(Box::new(found))
    } else {
        found
    })
}

/// `left IS [NOT] DISTINCT FROM right`.
///
/// # Errors
/// As [`binary`].
pub fn is_distinct(left: Expr, right: Expr, negated: bool) -> Result<Expr, SqlError> {
    let Expr::Call(_, mut operands, _) = binary("=", left, right)? else {
        unreachable!("an operator is a call");
    };
    let right = operands.pop().expect("a comparison has two operands");
    let left = operands.pop().expect("a comparison has two operands");
    Ok(Expr::IsDistinct(Box::new(left), Box::new(right), negated))
}

/// `arg IS [NOT] TRUE`, `FALSE` (wanted) or `UNKNOWN` (`None`).
///
/// # Errors
/// 42804 if the argument is not boolean.
pub fn is_bool(arg: Expr, wanted: Option<bool>, negated: bool) -> Result<Expr, SqlError> {
    let what = match wanted {
        Some(true) => "IS TRUE",
        Some(false) => "IS FALSE",
        None => "IS UNKNOWN",
    };
    Ok(Expr::IsBool(Box::new(to_bool(arg, what)?), wanted, negated))
}

/// `text [NOT] LIKE|ILIKE pattern [ESCAPE escape]`; `op` is `Like`, `NotLike`, `ILike`, `NotILike`.
///
/// # Errors
/// As [`binary`].
pub fn like(
    op: Compare,
    text: Expr,
    pattern: Expr,
    escape: Option<Expr>,
) -> Result<Expr, SqlError> {
    let symbol = match op {
        Compare::NotLike => "!~~",
        Compare::ILike => "~~*",
        Compare::NotILike => "!~~*",
        _ => "~~",
    };
    let pattern = match escape {
        None => pattern,
        Some(escape) => {
            let pattern = coerce_argument(pattern, Type::Text)?;
            let args = vec![pattern, coerce_argument(escape, Type::Text)?];
            Expr::Call(Func::Text(TextFunc::LikeEscape), args, Type::Text)
        }
    };
    binary(symbol, text, pattern)
}

/// `ARRAY[...]`; an empty one needs a cast, which the caller applies to `Unknown`.
///
/// # Errors
/// 42804 if the items have no common type, 42704 if there are no arrays of it.
pub fn array(items: Vec<Expr>) -> Result<Expr, SqlError> {
    if items.is_empty() {
        let message = "cannot determine type of empty array";
        return Err(SqlError::new(SqlState::INDETERMINATE_DATATYPE, message)
            .hint("Explicitly cast to the desired type, for example ARRAY[]::integer[]."));
    }
    let (items, ty) = unify("ARRAY", items)?;
    let array = array_type(ty).ok_or_else(|| {
        let message = format!("could not find array type for data type {}", ty.base_name());
        SqlError::new(SqlState::UNDEFINED_OBJECT, message)
    })?;
    Ok(Expr::MakeArray(items, array))
}

/// The type of an array of values of a type; arrays of arrays are arrays of more dimensions.
pub fn array_type(element: Type) -> Option<Type> {
    match element {
        Type::Array(_) => Some(element),
        _ => element.array_of(),
    }
}

/// What stands between the brackets behind an array.
pub enum Subscripted {
    /// `[index]`
    Item(Expr),
    /// `[low:high]`
    Part(Expr, Expr),
}

/// `array[index]...`, or a part of the array if one of the subscripts is `[low:high]`; `[n]` then
/// means `[1:n]`.
///
/// # Errors
/// 42804 if the expression is not an array, 54000 for too many subscripts.
pub fn subscript(array: Expr, places: Vec<Subscripted>) -> Result<Expr, SqlError> {
    let ty = array.ty();
    let mut places = places;
    if let (Type::Name, [Subscripted::Item(_)]) = (ty, places.as_slice())
        && let Some(Subscripted::Item(index)) = places.pop()
    {
        return letter(array, index);
    }
    if ty == Type::Jsonb {
        let (path, _) = json_path(places)?;
        return Ok(Expr::Call(
            Func::Json(JsonFunc::Path),
            vec![array, path],
            ty,
        ));
    }
    let element = item_type(ty, places.len())?;
    let mut args = vec![array];
    let is_part = push_bounds(places, &mut args)?;
    Ok(match is_part {
        false => Expr::Call(Func::Array(ArrayFunc::Get), args, element),
        true => {
            // A part of a vector is a plain array.
            let ty = element.array_of().filter(|_| ty.is_vector()).unwrap_or(ty);
            Expr::Call(Func::Array(ArrayFunc::Slice), args, ty)
        }
    })
}

/// The type of the items of an array that has this number of subscripts.
fn item_type(array: Type, subscripts: usize) -> Result<Type, SqlError> {
    let Some(element) = array.element() else {
        let message = format!(
            "cannot subscript type {} because it does not support subscripting",
            array.base_name()
        );
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
    };
    match subscripts > DIMENSIONS_MAX {
        true => Err(too_many_dimensions(subscripts)),
        false => Ok(element),
    }
}

/// Appends subscripts, or the bounds of a part; whether they are bounds.
fn push_bounds(places: Vec<Subscripted>, args: &mut Vec<Expr>) -> Result<bool, SqlError> {
    let int = |expr: Expr| {
        let from = expr.ty();
        coerce(expr, Type::Int4, Context::Assignment).map_err(|error| match from {
            Type::Unknown => error,
            _ => SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                "array subscript must have type integer",
            ),
        })
    };
    let is_part = places
        .iter()
        .any(|place| matches!(place, Subscripted::Part(..)));
    for place in places {
        match place {
            Subscripted::Item(index) if is_part => {
                args.push(Expr::Const(Datum::Int(1), Type::Int4));
                args.push(int(index)?);
            }
            Subscripted::Item(index) => args.push(int(index)?),
            Subscripted::Part(low, high) => args.extend([int(low)?, int(high)?]),
        }
    }
    Ok(is_part)
}

/// The subscripts of a `jsonb` as an array of texts, and whether the first one is a number.
fn json_path(places: Vec<Subscripted>) -> Result<(Expr, bool), SqlError> {
    let mut of_items = None;
    let mut steps = Vec::with_capacity(places.len());
    for place in places {
        let Subscripted::Item(step) = place else {
            let message = "jsonb subscript does not support slices";
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        };
        let from = step.ty();
        let number = matches!(from, Type::Int2 | Type::Int4);
        let text = from == Type::Unknown || super::can_coerce(from, Type::Text, Context::Implicit);
        if !number && !text {
            let message = format!("subscript type {} is not supported", from.base_name());
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                .hint("jsonb subscript must be coercible to either integer or text."));
        }
        of_items.get_or_insert(number);
        steps.push(coerce(step, Type::Text, Context::Explicit)?);
    }
    let texts = Type::Array(base::types::ArrayKind::Text);
    Ok((Expr::MakeArray(steps, texts), of_items == Some(true)))
}

/// `container[places] = value`: the container, that of the column `column`, with the value in it.
///
/// # Errors
/// 42804 for a value or a container that does not fit, 54000 for too many subscripts.
pub fn assign_part(
    container: Expr,
    places: Vec<Subscripted>,
    value: Expr,
    column: &str,
) -> Result<Expr, SqlError> {
    let ty = container.ty();
    let fitting = |value: Expr, wanted: Type| {
        let from = value.ty();
        coerce(value, wanted, Context::Assignment).map_err(|error| {
            if from == Type::Unknown {
                return error;
            }
            let message = format!(
                "subscripted assignment to \"{column}\" requires type {} but expression is of type \
                 {}",
                wanted.base_name(),
                from.base_name()
            );
            SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                .hint("You will need to rewrite or cast the expression.")
        })
    };
    if ty == Type::Jsonb {
        let (path, of_items) = json_path(places)?;
        let args = vec![container, path, fitting(value, ty)?, Expr::bool(of_items)];
        return Ok(Expr::Call(Func::Json(JsonFunc::Assign), args, ty));
    }
    let element = item_type(ty, places.len())?;
    let mut bounds = Vec::new();
    let is_part = push_bounds(places, &mut bounds)?;
    let (func, wanted) = match is_part {
        true => (ArrayFunc::SetSlice, ty),
        false => (ArrayFunc::SetItem, element),
    };
    let mut args = vec![container, fitting(value, wanted)?];
    args.extend(bounds);
    Ok(Expr::Call(Func::Array(func), args, ty))
}

/// `name[index]`: a letter of a name, counted from 0.
fn letter(name: Expr, index: Expr) -> Result<Expr, SqlError> {
    let one = Expr::Const(Datum::Int(1), Type::Int4);
    let place = binary(
        "+",
        coerce(index, Type::Int4, Context::Assignment)?,
        one.clone(),
    )?;
    let args = vec![coerce(name, Type::Text, Context::Implicit)?, place, one];
    let letter = Expr::Call(Func::Text(TextFunc::Substring), args, Type::Text);
    coerce(letter, Type::InternalChar, Context::Explicit)
}

/// `arg op ANY|ALL (array)`.
///
/// # Errors
/// 42809 if the right side is no array, 42883 if there is no such comparison.
pub fn any_array(arg: Expr, op: &str, array: Expr, all: bool) -> Result<Expr, SqlError> {
    let array = match array.ty() {
        Type::Unknown => {
            let element = if arg.ty() == Type::Unknown {
                Type::Text
            } else {
                arg.ty()
            };
            let wanted = element
                .array_of()
                .unwrap_or(Type::Array(base::types::ArrayKind::Text));
            coerce(array, wanted, Context::Implicit)?
        }
        _ => array,
    };
    let Some(element) = array.ty().element() else {
        let message = "op ANY/ALL (array) requires array on right side";
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
    };
    // A column stands for the items, to see what `=` makes of the types.
    let item = Expr::Column(0, element);
    let Expr::Call(Func::Compare(op), mut operands, _) = binary(op, arg, item)? else {
        let known = comparison(op).is_some();
        let message = format!("operator {op} over ANY/ALL (array) is not supported");
        assert!(!known, "a comparison is a call of Func::Compare");
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    };
    let item = operands.pop().expect("a comparison has two operands");
    let arg = operands.pop().expect("a comparison has two operands");
    let array = match item.ty().array_of() {
        Some(wanted) if !matches!(item, Expr::Column(..)) => {
            coerce(array, wanted, Context::Implicit)?
        }
        _ => array,
    };
    Ok(Expr::AnyArray(Box::new(arg), op, Box::new(array), all))
}
