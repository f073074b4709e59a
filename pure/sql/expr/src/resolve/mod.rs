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

mod absent;
mod build;
mod candidates;
mod coerce;
pub mod enums;
pub mod json;
mod table;
#[cfg(test)]
mod tests;

pub use absent::{absent_function, absent_functions, absent_type};
pub use build::{
    Subscripted, any_array, array, array_type, assign_part, between, case, case_operand, coalesce,
    in_list, is_bool, is_distinct, like, subscript,
};
pub use coerce::{Context, can_coerce, coerce, common_type, common_type_of, to_bool};

use super::{Compare, Expr, Func};
use base::{ArrayKind, Datum, RangeKind, Reg, SqlError, SqlState, Type};
use candidates::{Choice, choose};
use coerce::coerce_argument;
use functions::{DateFunc, SessionFunc};
use table::{Arg, Entry, Ret};
pub use table::{Form, Listed, SIGNATURES, Signature, Wanted, listing};

/// The call of the function `name` (lower case, without schema) with these arguments.
///
/// Knows COALESCE, NULLIF, GREATEST, LEAST and the functions without parentheses
/// (`current_date`) under their names too. `position` and `strpos` take text and part in this
/// order; `btrim` is TRIM; `extract` and `date_part` take the field's name as text first.
///
/// # Errors
/// 42883 if there is no such function, 0A000 if PostgreSQL has it, 42725 if several fit equally
/// well, 22P02 and its like for a literal that has not the form of the type wanted.
pub fn function(name: &str, args: Vec<Expr>) -> Result<Expr, SqlError> {
    match name {
        "coalesce" => return coalesce(args),
        "greatest" => return build::extreme(Func::Greatest, "GREATEST", args),
        "least" => return build::extreme(Func::Least, "LEAST", args),
        "nullif" if args.len() == 2 => return build::null_if(args),
        // They quote the text of a cast, which is not what is sent to clients: `true`, not `t`.
        "quote_literal" | "quote_nullable"
            if args.len() == 1 && matches!(args[0].ty(), Type::Bool | Type::Inet) =>
        {
            let args = args.into_iter();
            let text = args.map(|arg| coerce(arg, Type::Text, Context::Explicit));
            return function(name, text.collect::<Result<_, _>>()?);
        }
        // Since this day began.
        "age" if args.len() == 1 && args[0].ty().is_datetime() => {
            let ty = match args[0].ty() {
                Type::Timestamp(_) => Type::Timestamp(None),
                _ => Type::Timestamptz(None),
            };
            let today = function("current_date", Vec::new())?;
            let mut both = vec![coerce(today, ty, Context::Implicit)?];
            both.extend(args);
            return function(name, both);
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
            if let Some(cast) = cast_named(name, args) {
                return cast;
            }
            if let Some(error) = absent_function(name) {
                return Err(error);
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

/// A call of a type's name is a cast, if there is such a one.
fn cast_named(name: &str, args: Vec<Expr>) -> Option<Result<Expr, SqlError>> {
    let [arg] = <[Expr; 1]>::try_from(args).ok()?;
    match coerce(arg, table::type_named(name)?, Context::Explicit) {
        Err(error) if error.state() == SqlState::CANNOT_COERCE => None,
        cast => Some(cast),
    }
}

/// Which of several functions of users is meant: the place of the list of types that arguments of
/// these types fit best. `Err(true)`: several fit equally well; `Err(false)`: none fits.
pub fn chosen(lists: &[Vec<Type>], types: &[Type]) -> Result<usize, bool> {
    let entries = lists.iter().map(|types| Entry::of_users(types.clone()));
    let entries: Vec<Entry> = entries.collect();
    let all: Vec<&Entry> = entries.iter().collect();
    match choose(&all, types) {
        Choice::One(found) => {
            let place = entries.iter().position(|entry| core::ptr::eq(entry, found));
            place.ok_or(false)
        }
        Choice::None => Err(false),
        Choice::Many => Err(true),
    }
}

/// Whether a name is one of the functions of the system.
pub fn is_known(name: &str) -> bool {
    matches!(name, "coalesce" | "greatest" | "least" | "nullif")
        || !table::functions(name).is_empty()
}

/// An argument as a function of users takes it.
///
/// # Errors
/// 22P02 and its like for a literal that is no value of the type.
pub fn argument(arg: Expr, to: Type) -> Result<Expr, SqlError> {
    coerce(arg, to, Context::Implicit)
}

/// Types as they are listed in messages.
pub fn type_list(types: &[Type]) -> String {
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
    if let (Some(compare), Some(ty)) = (comparison(op), enums::common(&types))
        && compare <= Compare::Ge
    {
        let operands = vec![coerce_argument(left, ty)?, coerce_argument(right, ty)?];
        return Ok(Expr::Call(Func::Compare(compare), operands, Type::Bool));
    }
    let entries = table::operators(op);
    if entries.is_empty()
        && let Some(error) = absent::absent_infix(op, &types)
    {
        return Err(error);
    }
    // PostgreSQL takes sides of which nothing is known for texts in which words are looked for.
    if op == "@@" && types.into_iter().all(Type::is_text) {
        return Err(absent::absent_match());
    }
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
    if entries.is_empty()
        && let Some(error) = absent::absent_prefix(op, &types)
    {
        return Err(error);
    }
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
    !matches!(
        ty.element().unwrap_or(ty),
        Type::Xid | Type::Json | Type::JsonPath
    )
}

/// Whether values of the type are equal or not.
pub fn has_equality(ty: Type) -> bool {
    !matches!(ty.element().unwrap_or(ty), Type::Json | Type::JsonPath)
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

/// 42804.
fn undetermined() -> SqlError {
    let message = "could not determine polymorphic type because input has type unknown";
    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
}

/// The kind of the ranges of a call; any where it takes none.
fn kind_of_ranges(entry: &Entry, args: &[Expr]) -> Result<RangeKind, SqlError> {
    let is_range = |i: &usize| matches!(entry.arg(*i), Arg::AnyRange | Arg::AnyMultirange);
    let mut ranges = (0..args.len()).filter(is_range).peekable();
    if ranges.peek().is_none() {
        return Ok(RangeKind::Int4);
    }
    let mut kinds = ranges.filter_map(|i| args[i].ty().range_kind());
    kinds.next().ok_or_else(undetermined)
}

/// Makes the call with its arguments converted.
fn assemble(entry: &Entry, args: Vec<Expr>) -> Result<Expr, SqlError> {
    let element = element_type(entry, &args)?;
    let has_array = (0..args.len()).any(|i| entry.arg(i) == Arg::AnyArray);
    if element.is_none() && (has_array || entry.ret == Ret::Array) {
        return Err(undetermined());
    }
    let kind = kind_of_ranges(entry, &args)?;
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
            Arg::AnyRange => coerce_argument(arg, Type::Range(kind))?,
            Arg::AnyMultirange => coerce_argument(arg, Type::Multirange(kind))?,
            Arg::Bound => coerce_argument(arg, kind.bound())?,
        });
    }
    let ret = match entry.ret {
        Ret::Is(ty) => ty,
        Ret::Array => known.array_of().ok_or_else(no_array)?,
        Ret::Range => Type::Range(kind),
        Ret::Multirange => Type::Multirange(kind),
        Ret::Bound => kind.bound(),
    };
    if matches!(
        (&entry.func, known),
        (
            Func::ArrayToString(_),
            Type::Reg(_) | Type::Enum(_) | Type::Composite(_)
        )
    ) {
        let texts = Type::Array(ArrayKind::Text);
        converted[0] = coerce(converted[0].clone(), texts, Context::Explicit)?;
        known = Type::Text;
    }
    let is_named = |zone: &Expr| !matches!(zone.ty(), Type::Interval(_));
    if ret == Type::Timetz(None)
        && entry.func == Func::Date(DateFunc::AtTimeZone)
        && is_named(&converted[0])
    {
        // A zone has the offset of today.
        let now = Func::Session(SessionFunc::TxnTime);
        converted.push(Expr::Call(now, Vec::new(), Type::Timestamptz(None)));
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
        _ if ty.user_id().is_some() || matches!(ty.element().unwrap_or(ty), Type::Reg(_)) => {
            coerce(arg, Type::Text, Context::Explicit)?
        }
        _ => Expr::Call(Func::Output(ty), vec![arg], Type::Text),
    })
}
