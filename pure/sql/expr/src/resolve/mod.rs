//! Which function an operator or name means for given argument types, and which conversions it
//! takes: PostgreSQL's rules (its manual, chapter "Type Conversion").
//!
//! A literal or parameter of unknown type takes the type that its place wants. Parameters whose
//! type the client has not declared are given one here: `Expr::Param(_, Type::Unknown)` comes back
//! with the type it must have.
//!
//! Values of types that share a representation (`int2` and `int8`, `varchar` and `text`) are
//! passed to functions as they are, so that a comparison of a column stays recognisable to the
//! planner; other conversions appear as [`Expr::Cast`].

mod build;
mod candidates;
mod coerce;
pub mod enums;
pub mod json;
mod table;
#[cfg(test)]
mod tests;

pub use build::{
    any_array, array, between, case, case_operand, coalesce, in_list, is_bool, is_distinct, like,
    subscript,
};
pub use coerce::{Context, can_coerce, coerce, common_type, common_type_of, to_bool};

use super::{Compare, Expr, Func};
use base::{ArrayKind, Datum, Reg, SqlError, SqlState, Type};
use candidates::{Choice, choose};
use coerce::coerce_argument;
use table::{Arg, Entry, Ret};
pub use table::{Form, Listed, SIGNATURES, Signature, Wanted, listing};

/// The call of the function `name` (lower case, without schema) with these arguments.
///
/// Knows COALESCE, NULLIF, GREATEST, LEAST and the functions without parentheses
/// (`current_date`) under their names too. `position` and `strpos` take text and part in this
/// order; `btrim` is TRIM; `extract` and `date_part` take the field's name as text first.
///
/// # Errors
/// 42883 if there is no such function, 42725 if several fit equally well, 22P02 and its like for a
/// literal that has not the form of the type wanted.
pub fn function(name: &str, args: Vec<Expr>) -> Result<Expr, SqlError> {
    match name {
        "coalesce" => return coalesce(args),
        "greatest" => return build::extreme(Func::Greatest, "GREATEST", args),
        "least" => return build::extreme(Func::Least, "LEAST", args),
        "nullif" if args.len() == 2 => return build::null_if(args),
        // They quote the text of a cast, which is not what is sent to clients: `true`, not `t`.
        "quote_literal" | "quote_nullable" if args.len() == 1 && args[0].ty() == Type::Bool => {
            let text = args
                .into_iter()
                .map(|arg| coerce(arg, Type::Text, Context::Explicit));
            return function(name, text.collect::<Result<_, _>>()?);
        }
        "pg_typeof" if args.len() == 1 => {
            let oid = Datum::Int(i64::from(args[0].ty().oid()));
            return Ok(Expr::Const(oid, Type::Reg(Reg::Type)));
        }
        _ => {}
    }
    if let Some(call) = json::function(name, &args)? {
        return Ok(call);
    }
    if let Some(call) = enums::function(name, &args)? {
        return Ok(call);
    }
    let types: Vec<Type> = args.iter().map(Expr::ty).collect();
    let entries = table::functions(name);
    let entries: Vec<&Entry> = entries.iter().collect();
    let no_match = |state, problem: &str, hint: &str| {
        let message = format!("function {name}({}) {problem}", type_list(&types));
        Err(SqlError::new(state, message).hint(hint))
    };
    match choose(&entries, &types) {
        Choice::One(entry) => assemble(entry, args),
        Choice::None => {
            // A type's name is a cast.
            if let ([_], Some(to)) = (types.as_slice(), table::type_named(name)) {
                let arg = args.into_iter().next().expect("there is one argument");
                return coerce(arg, to, Context::Explicit);
            }
            no_match(
                SqlState::UNDEFINED_FUNCTION,
                "does not exist",
                "No function matches the given name and argument types. You might need to add \
                 explicit type casts.",
            )
        }
        Choice::Many => no_match(
            SqlState::AMBIGUOUS_FUNCTION,
            "is not unique",
            "Could not choose a best candidate function. You might need to add explicit type \
             casts.",
        ),
    }
}

/// Types as they are listed in messages.
fn type_list(types: &[Type]) -> String {
    types
        .iter()
        .map(|ty| ty.base_name())
        .collect::<Vec<_>>()
        .join(", ")
}

/// `left op right` for every operator but AND and OR, by its symbol (`~~` is LIKE).
///
/// # Errors
/// As [`function`].
pub fn binary(op: &str, left: Expr, right: Expr) -> Result<Expr, SqlError> {
    let op = if op == "!=" { "<>" } else { op };
    let types = [left.ty(), right.ty()];
    if matches!(op, "@?" | "@@") && types.contains(&Type::Jsonb) {
        let message = format!("the operator {op} of jsonb is not supported");
        let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
        return Err(error.hint("Use the operators ->, #> and @>."));
    }
    if let (Some(compare), Some(ty)) = (comparison(op), enums::common(&types))
        && compare <= Compare::Ge
    {
        let operands = vec![coerce_argument(left, ty)?, coerce_argument(right, ty)?];
        return Ok(Expr::Call(Func::Compare(compare), operands, Type::Bool));
    }
    let entries = table::operators(op);
    let entries: Vec<&Entry> = entries.iter().collect();
    let text = format!("{} {op} {}", types[0].base_name(), types[1].base_name());
    choose_operator(&entries, &types, &text, vec![left, right])
}

/// `op operand`.
///
/// # Errors
/// As [`function`].
pub fn unary(op: &str, operand: Expr) -> Result<Expr, SqlError> {
    let types = [operand.ty()];
    let entries = table::prefix_operators(op);
    let entries: Vec<&Entry> = entries.iter().collect();
    let text = format!("{op} {}", types[0].base_name());
    if op == "-"
        && let Some(least) = least_integer(&operand)
    {
        return Ok(least);
    }
    if op == "+" && types[0].is_numeric() {
        return Ok(operand);
    }
    choose_operator(&entries, &types, &text, vec![operand])
}

/// The literals whose negation has another type than they have: the least `integer` and `bigint`
/// are read as the negation of a number one too large, and the other way round.
fn least_integer(operand: &Expr) -> Option<Expr> {
    const BELOW: i64 = -(1 << 31);
    match operand {
        Expr::Const(Datum::Int(value), Type::Int8) if *value == -BELOW => {
            Some(Expr::Const(Datum::Int(BELOW), Type::Int4))
        }
        Expr::Const(Datum::Int(BELOW), Type::Int4) => {
            Some(Expr::Const(Datum::Int(-BELOW), Type::Int8))
        }
        Expr::Const(Datum::Decimal(value), _) if value.scale() == 0 => {
            let least = value
                .neg()
                .to_i64_exact()
                .filter(|value| *value == i64::MIN)?;
            Some(Expr::Const(Datum::Int(least), Type::Int8))
        }
        _ => None,
    }
}

fn choose_operator(
    entries: &[&Entry],
    types: &[Type],
    text: &str,
    args: Vec<Expr>,
) -> Result<Expr, SqlError> {
    match choose(entries, types) {
        Choice::One(entry) => assemble(entry, args),
        Choice::None => {
            let message = format!("operator does not exist: {text}");
            Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(
                "No operator matches the given name and argument types. You might need to add \
                 explicit type casts.",
            ))
        }
        Choice::Many => {
            let message = format!("operator is not unique: {text}");
            Err(SqlError::new(SqlState::AMBIGUOUS_FUNCTION, message).hint(
                "Could not choose a best candidate operator. You might need to add explicit type \
                 casts.",
            ))
        }
    }
}

/// Whether values of the type are before and behind each other, not only equal or not.
pub fn has_order(ty: Type) -> bool {
    !matches!(ty.element().unwrap_or(ty), Type::Xid | Type::Json)
}

/// Whether values of the type are equal or not.
pub fn has_equality(ty: Type) -> bool {
    ty.element().unwrap_or(ty) != Type::Json
}

/// A comparison by its symbol.
pub fn comparison(op: &str) -> Option<Compare> {
    Some(match op {
        "=" => Compare::Eq,
        "<>" | "!=" => Compare::Ne,
        "<" => Compare::Lt,
        "<=" => Compare::Le,
        ">" => Compare::Gt,
        ">=" => Compare::Ge,
        "~~" => Compare::Like,
        "!~~" => Compare::NotLike,
        "~~*" => Compare::ILike,
        "!~~*" => Compare::NotILike,
        "~" => Compare::Regex,
        "!~" => Compare::NotRegex,
        "~*" => Compare::IRegex,
        "!~*" => Compare::NotIRegex,
        _ => return None,
    })
}

/// The type that the polymorphic arguments of a call agree on; `None` if all are unknown.
fn element_type(entry: &Entry, args: &[Expr]) -> Result<Option<Type>, SqlError> {
    let mut types = Vec::new();
    for (i, arg) in args.iter().enumerate() {
        match (entry.arg(i), arg.ty()) {
            (_, Type::Unknown) => {}
            (Arg::AnyArray, ty) => types.extend(ty.element()),
            (Arg::AnyElement, ty) => types.push(ty),
            _ => {}
        }
    }
    if types.is_empty() {
        Ok(None)
    } else {
        common_type(&types).map(Some)
    }
}

/// Makes the call with its arguments converted.
fn assemble(entry: &Entry, args: Vec<Expr>) -> Result<Expr, SqlError> {
    let element = element_type(entry, &args)?;
    if element.is_none() && (0..args.len()).any(|i| entry.arg(i) == Arg::AnyArray) {
        let message = "could not determine polymorphic type because input has type unknown";
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
    }
    let mut known = element.map_or(Type::Text, Type::without_modifiers);
    let no_array = || {
        let message = format!(
            "could not find array type for data type {}",
            known.base_name()
        );
        SqlError::new(SqlState::UNDEFINED_OBJECT, message)
    };
    let mut converted = Vec::with_capacity(args.len());
    for (i, arg) in args.into_iter().enumerate() {
        converted.push(match entry.arg(i) {
            Arg::Is(ty) => coerce_argument(arg, ty)?,
            Arg::Any => {
                let ty = arg.ty();
                coerce_argument(arg, if ty == Type::Unknown { Type::Text } else { ty })?
            }
            Arg::AnyElement => coerce_argument(arg, known)?,
            Arg::AnyArray => coerce_argument(arg, known.array_of().ok_or_else(no_array)?)?,
            Arg::Output => to_output(arg)?,
            Arg::NonArray if arg.ty() == Type::Unknown => coerce_argument(arg, Type::Text)?,
            Arg::NonArray => coerce(arg, Type::Text, Context::Explicit)?,
            Arg::Padded if matches!(arg.ty(), Type::Char(_)) => to_output(arg)?,
            Arg::Padded => coerce_argument(arg, Type::Text)?,
        });
    }
    let ret = match entry.ret {
        Ret::Is(ty) => ty,
        Ret::Array => known.array_of().ok_or_else(no_array)?,
    };
    if matches!(
        (&entry.func, known),
        (Func::ArrayToString(_), Type::Reg(_) | Type::Enum(_))
    ) {
        let texts = Type::Array(ArrayKind::Text);
        converted[0] = coerce(converted[0].clone(), texts, Context::Explicit)?;
        known = Type::Text;
    }
    let func = match &entry.func {
        Func::ArrayToString(_) => Func::ArrayToString(known),
        other => other.clone(),
    };
    Ok(Expr::Call(func, converted, ret))
}

/// The expression's text form.
fn to_output(arg: Expr) -> Result<Expr, SqlError> {
    let ty = arg.ty();
    Ok(match ty {
        Type::Text | Type::Varchar(_) | Type::Name => arg,
        Type::Unknown => coerce_argument(arg, Type::Text)?,
        _ if matches!(ty.element().unwrap_or(ty), Type::Reg(_) | Type::Enum(_)) => {
            coerce(arg, Type::Text, Context::Explicit)?
        }
        _ => Expr::Call(Func::Output(ty), vec![arg], Type::Text),
    })
}
