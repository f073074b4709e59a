//! Conversions that apply by themselves, on assignment, or when asked for.

use super::super::fold::is_stable_cast;
use super::super::{Expr, Func};
use base::record::ANONYMOUS;
use base::text::{self, fit, fit_explicit};
use base::{ArrayKind, Datum, SqlError, SqlState, Type};
use functions::SessionFunc;
use functions::cast::cast_datum;

/// Where a conversion stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Context {
    /// In the middle of an expression.
    Implicit,
    /// Into a column.
    Assignment,
    /// CAST or `::`.
    Explicit,
}

/// Whether the types are equal but for their modifiers.
pub(super) fn same_type(a: Type, b: Type) -> bool {
    a.without_modifiers() == b.without_modifiers()
}

/// Whether the type is the one of its category that unknown values rather become.
pub(super) fn is_preferred(ty: Type) -> bool {
    matches!(
        ty,
        Type::Bool
            | Type::Text
            | Type::Float8
            | Type::Oid
            | Type::Timestamptz(_)
            | Type::Interval(_)
            | Type::Inet
            | Type::Varbit(_)
    )
}

/// Whether there is a conversion that applies in this context.
pub fn can_coerce(from: Type, to: Type, context: Context) -> bool {
    if from == Type::Unknown || to == Type::Unknown || same_type(from, to) {
        return true;
    }
    match needed_context(from, to) {
        Some(needed) => context >= needed,
        None => false,
    }
}

/// The weakest context in which `from` becomes `to`; `None` if it never does.
fn needed_context(from: Type, to: Type) -> Option<Context> {
    use Context::{Assignment, Explicit, Implicit};
    use Type::*;
    // Numbers in the order in which they widen.
    let rank = |ty: Type| match ty {
        Int2 => Some(0),
        Int4 => Some(1),
        Int8 => Some(2),
        Numeric(_) => Some(3),
        Float4 => Some(4),
        Float8 => Some(5),
        _ => None,
    };
    if let (Some(from), Some(to)) = (rank(from), rank(to)) {
        return Some(if from < to { Implicit } else { Assignment });
    }
    if let (Array(from), Array(to)) = (from, to) {
        return match same_type(from.element(), to.element()) {
            _ if to.is_vector() => None,
            true => Some(Implicit),
            false => needed_context(from.element(), to.element()),
        };
    }
    let string = |ty: Type| matches!(ty, Text | Varchar(_) | Char(_));
    match (from, to) {
        // The fields are compared as they are, or the binder makes them those of the other type.
        (Composite(_), Composite(ANONYMOUS)) => Some(Implicit),
        (Int2 | Int4 | Int8, Oid | Reg(_)) => Some(Implicit),
        (Oid, Reg(_)) | (Reg(_), Oid) => Some(Implicit),
        (Reg(base::Reg::Proc), Reg(base::Reg::Procedure))
        | (Reg(base::Reg::Procedure), Reg(base::Reg::Proc)) => Some(Implicit),
        (Oid | Reg(_), Int4 | Int8) => Some(Assignment),
        (Text | Varchar(_), Reg(base::Reg::Class)) => Some(Implicit),
        (Int4, Bool) | (Bool, Int4) => Some(Explicit),
        (Int4, InternalChar) | (InternalChar, Int4) => Some(Explicit),
        (Date, Timestamp(_) | Timestamptz(_)) | (Timestamp(_), Timestamptz(_)) => Some(Implicit),
        (Timestamp(_) | Timestamptz(_), Date) | (Timestamptz(_), Timestamp(_)) => Some(Assignment),
        (Time(_), Interval(_) | Timetz(_)) | (Cidr, Inet) => Some(Implicit),
        (Bit(_), Varbit(_)) | (Varbit(_), Bit(_)) => Some(Implicit),
        (Int4 | Int8, Bit(_)) | (Bit(_), Int4 | Int8) => Some(Explicit),
        (Timestamptz(_), Timetz(_)) | (Timetz(_), Time(_)) => Some(Assignment),
        (Inet, Cidr) => Some(Assignment),
        (Interval(_) | Timestamp(_) | Timestamptz(_), Time(_)) => Some(Assignment),
        (Name, Text) | (InternalChar, Text) => Some(Implicit),
        (Name | InternalChar, Varchar(_) | Char(_)) => Some(Assignment),
        (a, Name) if string(a) => Some(Implicit),
        (a, InternalChar) if string(a) => Some(Assignment),
        (a, b) if string(a) && string(b) => Some(Implicit),
        // What grows in PostgreSQL and is read as a number by way of text does not grow here.
        (Xid, b) if string(b) || b == Name => None,
        (Json, Jsonb) | (Jsonb, Json) => Some(Assignment),
        (Range(from), Multirange(to)) if from == to => Some(Explicit),
        (Jsonb, b) if b.is_numeric() || b == Bool => Some(Explicit),
        // Through the text form.
        (_, b) if string(b) => Some(Assignment),
        (a, _) if string(a) || a == Name => Some(Explicit),
        (_, Name) => Some(Explicit),
        _ => None,
    }
}

/// Whether values of the types look the same inside, so that a function for one takes the other.
fn same_representation(from: Type, to: Type) -> bool {
    use Type::*;
    if same_type(from, to) {
        return true;
    }
    match to {
        Composite(_) => matches!(from, Composite(_)),
        Text | Varchar(_) => matches!(from, Text | Varchar(_) | Char(_) | Name | InternalChar),
        // Blanks at the end of a text count, those of char do not.
        Char(_) => false,
        Int2 | Int4 | Int8 => from.is_integer(),
        Float8 => from == Float4,
        Inet => from == Cidr,
        Bit(_) | Varbit(_) => matches!(from, Bit(_) | Varbit(_)),
        Oid => matches!(from, Reg(_)),
        Reg(_) => from == Oid,
        Timestamp(_) | Timestamptz(_) => matches!(from, Timestamp(_) | Timestamptz(_)),
        _ => false,
    }
}

/// Converts an argument to the type that a function takes; modifiers do not matter to functions.
pub(super) fn coerce_argument(arg: Expr, to: Type) -> Result<Expr, SqlError> {
    let from = arg.ty();
    if from != Type::Unknown && same_representation(from, to) {
        return Ok(arg);
    }
    coerce(arg, to, Context::Implicit)
}

/// Converts an expression to a type with its modifier.
///
/// # Errors
/// 42846 (explicit) or 42804 if there is no such conversion in this context; for literals also
/// what reading them in the type's form raises.
pub fn coerce(expr: Expr, to: Type, context: Context) -> Result<Expr, SqlError> {
    let from = expr.ty();
    if from == to {
        return Ok(expr);
    }
    if from == Type::Unknown {
        return from_unknown(expr, to, context);
    }
    if !can_coerce(from, to, context) {
        return Err(refusal(from, to, context));
    }
    if let Some(call) = through_catalog(&expr, from, to)? {
        // What is left is between text types, or between reg types and oids.
        return coerce(call, to, Context::Explicit);
    }
    let explicit = context == Context::Explicit;
    // A constant is converted now, unless that fails: then it fails when it is reached.
    if let Expr::Const(value, _) = &expr
        && !is_stable_cast(from, to)
        && let Ok(value) = cast_datum(value.clone(), from, to, explicit)
    {
        return Ok(Expr::Const(value, to));
    }
    Ok(Expr::Cast {
        arg: Box::new(expr),
        to,
        explicit,
    })
}

fn refusal(from: Type, to: Type, context: Context) -> SqlError {
    match context {
        Context::Explicit => functions::cast::no_cast(from, to),
        Context::Implicit | Context::Assignment => {
            let (from, to) = (from.base_name(), to.base_name());
            let message = format!("expression is of type {from} but type {to} is expected");
            SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                .hint("You will need to rewrite or cast the expression.")
        }
    }
}

/// The conversion of names to what they stand for and back, which asks the catalog: `None` if this
/// is no such conversion.
fn through_catalog(expr: &Expr, from: Type, to: Type) -> Result<Option<Expr>, SqlError> {
    let is_array = from.element().is_some();
    let reg = |ty: Type| match ty.element().unwrap_or(ty) {
        Type::Reg(reg) => Some(reg),
        _ => None,
    };
    let of = |element: Type| match is_array {
        true => element.array_of().unwrap_or(element),
        false => element,
    };
    let text = |ty: Type| ty.element().unwrap_or(ty).is_text();
    if let Some(call) = super::enums::through_labels(expr, from, to)? {
        return Ok(Some(call));
    }
    Ok(match (reg(from), reg(to)) {
        (Some(reg), None) if text(to) => {
            let name = format!("{}out", reg.name()).into();
            Some(Expr::Call(
                Func::Catalog(name),
                vec![expr.clone()],
                of(Type::Text),
            ))
        }
        (None, Some(reg)) if text(from) => {
            let name = format!("{}in", reg.name()).into();
            Some(Expr::Call(
                Func::Catalog(name),
                vec![expr.clone()],
                of(Type::Reg(reg)),
            ))
        }
        _ => None,
    })
}

/// Gives a literal, NULL or parameter of open type the type wanted.
fn from_unknown(expr: Expr, to: Type, context: Context) -> Result<Expr, SqlError> {
    let explicit = context == Context::Explicit;
    match expr {
        Expr::Const(Datum::Text(literal), _)
            if matches!(
                to.element().unwrap_or(to),
                Type::Reg(_) | Type::Enum(_) | Type::Composite(_)
            ) =>
        {
            if let Type::Enum(id) | Type::Composite(id) = to {
                return Ok(super::enums::from_literal(literal, id, to));
            }
            let text = match to.element() {
                Some(_) => Type::Array(ArrayKind::Text),
                None => Type::Text,
            };
            let literal = Expr::Const(text::parse(text, &literal)?, text);
            coerce(literal, to, Context::Explicit)
        }
        Expr::Const(Datum::Text(literal), _) => {
            if let Some(moment) = clock_literal(&literal, to) {
                return Ok(moment);
            }
            let value = functions::cast::read(to, &literal)?;
            let value = if explicit {
                fit_explicit(to, value)?
            } else {
                fit(to, value)?
            };
            if is_open(&literal, to) {
                // The session's zone is put in when the statement is planned.
                let literal = Expr::Const(Datum::Text(literal), Type::Unknown);
                return Ok(Expr::Cast {
                    arg: Box::new(literal),
                    to,
                    explicit,
                });
            }
            Ok(Expr::Const(value, to))
        }
        Expr::Const(value, _) => Ok(Expr::Const(value, to)),
        Expr::Param(index, _) => {
            let plain = to.without_modifiers();
            let param = Expr::Param(index, plain);
            if plain == to {
                return Ok(param);
            }
            Ok(Expr::Cast {
                arg: Box::new(param),
                to,
                explicit,
            })
        }
        other if to.user_id().is_some() => {
            let texts = Expr::Cast {
                arg: Box::new(other),
                to: Type::Text,
                explicit,
            };
            coerce(texts, to, Context::Explicit)
        }
        // A column of a subquery that is a bare literal: its values are text.
        other => Ok(Expr::Cast {
            arg: Box::new(other),
            to,
            explicit,
        }),
    }
}

/// Whether a literal means another value in another zone, or in another style of intervals.
fn is_open(literal: &str, to: Type) -> bool {
    match to.element().unwrap_or(to) {
        Type::Timestamptz(_) => to.element().is_some() || !text::names_zone(literal),
        Type::Range(_) | Type::Multirange(_) => to.has_moments(),
        Type::Timetz(_) => to.element().is_some() || !text::names_offset(literal),
        _ => crate::styled::is_open(literal, to),
    }
}

/// `'now'`, `'today'`, `'tomorrow'` and `'yesterday'`, which depend on the clock.
fn clock_literal(literal: &str, to: Type) -> Option<Expr> {
    let is_time = matches!(to, Type::Time(_) | Type::Timetz(_));
    if !to.is_datetime() && !is_time {
        return None;
    }
    let shift = match literal.trim().to_ascii_lowercase().as_str() {
        "now" => {
            return Some(Expr::Call(
                Func::Session(SessionFunc::TxnTime),
                Vec::new(),
                to,
            ));
        }
        _ if is_time => return None,
        "today" => 0,
        "tomorrow" => 1,
        "yesterday" => -1,
        _ => return None,
    };
    let today = Expr::Call(Func::Session(SessionFunc::TxnTime), Vec::new(), Type::Date);
    let days = Expr::Const(Datum::Int(shift), Type::Int4);
    let date = Expr::Call(Func::Add, vec![today, days], Type::Date);
    if to == Type::Date {
        return Some(date);
    }
    Some(Expr::Cast {
        arg: Box::new(date),
        to,
        explicit: true,
    })
}

/// The type that values of all these types become, as for UNION and CASE; text if all are unknown.
///
/// # Errors
/// 42804 if there is none.
pub fn common_type(types: &[Type]) -> Result<Type, SqlError> {
    common_type_of("", types)
}

/// As [`common_type`]; `what` names the construct in the message, for example `CASE`.
///
/// # Errors
/// As [`common_type`].
pub fn common_type_of(what: &str, types: &[Type]) -> Result<Type, SqlError> {
    if let [first, rest @ ..] = types
        && *first != Type::Unknown
        && rest.iter().all(|ty| ty == first)
    {
        return Ok(*first);
    }
    let mut known = types
        .iter()
        .map(|ty| ty.without_modifiers())
        .filter(|ty| *ty != Type::Unknown);
    let Some(mut common) = known.next() else {
        return Ok(Type::Text);
    };
    for ty in known {
        if ty == common {
            continue;
        }
        if ty.category() != common.category() {
            let space = if what.is_empty() { "" } else { " " };
            let (a, b) = (common.base_name(), ty.base_name());
            let message = format!("{what}{space}types {a} and {b} cannot be matched");
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        if !is_preferred(common)
            && can_coerce(common, ty, Context::Implicit)
            && !can_coerce(ty, common, Context::Implicit)
        {
            common = ty;
        }
    }
    // The others must be able to follow.
    for ty in types {
        if !can_coerce(*ty, common, Context::Implicit) {
            let space = if what.is_empty() { "" } else { " " };
            let (from, to) = (ty.base_name(), common.base_name());
            let message = format!("{what}{space}could not convert type {from} to {to}");
            return Err(SqlError::new(SqlState::CANNOT_COERCE, message));
        }
    }
    Ok(common)
}

/// The expression as a condition of `what` (`WHERE`, `AND`, `CASE/WHEN`, ...).
///
/// # Errors
/// 42804 if it is not boolean, 22P02 for a literal that is none.
pub fn to_bool(expr: Expr, what: &str) -> Result<Expr, SqlError> {
    match expr.ty() {
        Type::Bool => Ok(expr),
        Type::Unknown => coerce(expr, Type::Bool, Context::Implicit),
        other => {
            let message = format!(
                "argument of {what} must be type boolean, not type {}",
                other.base_name()
            );
            Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message))
        }
    }
}
