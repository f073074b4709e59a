//! The evaluator.
//!
//! Comparisons of integer and text columns with constants, which nearly every filter consists of,
//! neither allocate nor copy; arguments of calls live on the stack.

use super::{Columns, Compare, Env, Expr, Func, List, NoColumns, session, zoned};
use base::{Datum, SqlError, SqlState, Type};
use core::cmp::Ordering;
use functions::{
    array, bits, cast, datetime, json, network, number, overtime, range, regex, string, to_char,
};

/// Bytes up to which a large numeric is made without asking for room.
const NUMBER_BYTES_FREE: usize = 4_096;

/// Computes an expression over one row.
///
/// # Errors
/// What its functions and conversions raise (classes 22 and 42), XX001 for a malformed row.
pub fn eval(expr: &Expr, row: &dyn Columns, env: &Env<'_>) -> Result<Datum, SqlError> {
    match expr {
        Expr::Const(datum, _) => Ok(datum.clone()),
        Expr::Column(index, ty) => row.column(*index, *ty),
        Expr::Param(index, _) => Ok(env.params[*index as usize].clone()),
        Expr::Subquery(index, _) => Ok(env.subqueries[*index as usize].clone()),
        Expr::Outer(..) => unreachable!("outer columns are replaced before a subquery runs"),
        Expr::Call(func, args, ty) => call(func, args, *ty, row, env),
        Expr::Cast { arg, to, explicit } => {
            let value = eval(arg, row, env)?;
            if let Datum::Text(text) = &value
                && text.len() > NUMBER_BYTES_FREE
            {
                overtime::work(text.len() as u64)?;
            }
            cast::cast_datum(value, arg.ty(), *to, *explicit)
        }
        Expr::Case {
            arms, otherwise, ..
        } => {
            for (condition, result) in arms {
                if passes(condition, row, env)? {
                    return eval(result, row, env);
                }
            }
            eval(otherwise, row, env)
        }
        Expr::Coalesce(args, _) => {
            for arg in args {
                let value = eval(arg, row, env)?;
                if !value.is_null() {
                    return Ok(value);
                }
            }
            Ok(Datum::Null)
        }
        Expr::MakeArray(items, _) => {
            let nests = items
                .first()
                .is_some_and(|item| item.ty().element().is_some());
            let items = items.iter().map(|item| eval(item, row, env));
            if nests {
                return array::Stack::of(items);
            }
            Ok(Datum::Array(items.collect::<Result<_, _>>()?))
        }
        Expr::And(_)
        | Expr::Or(_)
        | Expr::Not(_)
        | Expr::IsNull(..)
        | Expr::IsBool(..)
        | Expr::IsDistinct(..)
        | Expr::InList(..)
        | Expr::AnyArray(..) => Ok(eval_bool(expr, row, env)?.into()),
    }
}

/// Computes a boolean expression; `None` is NULL (unknown).
///
/// # Errors
/// As [`eval`].
pub fn eval_bool(expr: &Expr, row: &dyn Columns, env: &Env<'_>) -> Result<Option<bool>, SqlError> {
    Ok(match expr {
        Expr::Call(Func::Compare(op), args, _) => {
            return eval_compare(*op, &args[0], &args[1], row, env);
        }
        Expr::And(parts) => {
            let mut result = Some(true);
            for part in parts {
                match eval_bool(part, row, env)? {
                    Some(false) => return Ok(Some(false)),
                    Some(true) => {}
                    None => result = None,
                }
            }
            result
        }
        Expr::Or(parts) => {
            let mut result = Some(false);
            for part in parts {
                match eval_bool(part, row, env)? {
                    Some(true) => return Ok(Some(true)),
                    Some(false) => {}
                    None => result = None,
                }
            }
            result
        }
        Expr::Not(arg) => eval_bool(arg, row, env)?.map(|value| !value),
        Expr::IsNull(arg, negated) => Some(eval(arg, row, env)?.is_null() != *negated),
        Expr::IsBool(arg, wanted, negated) => {
            Some((eval_bool(arg, row, env)? == *wanted) != *negated)
        }
        Expr::IsDistinct(left, right, negated) => {
            let (left, right) = (eval(left, row, env)?, eval(right, row, env)?);
            // `compare` orders NULL as equal to itself only, which is what IS DISTINCT wants.
            Some(left.compare(&right).is_ne() != *negated)
        }
        Expr::InList(arg, list, negated) => {
            in_list(&eval(arg, row, env)?, list, row, env)?.map(|found| found != *negated)
        }
        Expr::AnyArray(arg, op, array, all) => {
            let (arg, array) = (eval(arg, row, env)?, eval(array, row, env)?);
            any_array(*op, &arg, &array, *all)?
        }
        _ => eval(expr, row, env)?.as_bool(),
    })
}

/// Whether a condition is true; unknown is not.
///
/// # Errors
/// As [`eval`].
#[inline]
pub fn passes(expr: &Expr, row: &dyn Columns, env: &Env<'_>) -> Result<bool, SqlError> {
    Ok(eval_bool(expr, row, env)? == Some(true))
}

/// An integer operand that needs no evaluation.
#[inline]
fn quick_int(expr: &Expr, row: &dyn Columns, env: &Env<'_>) -> Option<i64> {
    match expr {
        Expr::Column(index, ty) if ty.is_integer() => row.int(*index),
        Expr::Const(Datum::Int(value), _) => Some(*value),
        Expr::Param(index, _) => match env.params[*index as usize] {
            Datum::Int(value) => Some(value),
            _ => None,
        },
        _ => None,
    }
}

/// The bytes of a text operand that needs no evaluation.
#[inline]
fn quick_text<'a>(expr: &'a Expr, row: &'a dyn Columns, env: &'a Env<'_>) -> Option<&'a [u8]> {
    match expr {
        Expr::Column(index, ty) if ty.is_text() => row.text(*index),
        Expr::Const(Datum::Text(text), _) => Some(text.as_bytes()),
        Expr::Param(index, _) => match &env.params[*index as usize] {
            Datum::Text(text) => Some(text.as_bytes()),
            _ => None,
        },
        _ => None,
    }
}

fn eval_compare(
    op: Compare,
    left: &Expr,
    right: &Expr,
    row: &dyn Columns,
    env: &Env<'_>,
) -> Result<Option<bool>, SqlError> {
    if op <= Compare::Ge {
        if let Some(a) = quick_int(left, row, env)
            && let Some(b) = quick_int(right, row, env)
        {
            return Ok(Some(ordering_is(op, a.cmp(&b))));
        }
        if let Some(a) = quick_text(left, row, env)
            && let Some(b) = quick_text(right, row, env)
        {
            return Ok(Some(ordering_is(op, a.cmp(b))));
        }
    }
    if matches!(op, Compare::Like | Compare::NotLike)
        && let Some(text) = quick_text(left, row, env)
        && let Some(pattern) = quick_text(right, row, env)
    {
        return Ok(Some(
            string::like_utf8(text, pattern)? == (op == Compare::Like),
        ));
    }
    // The right side is computed beside NULL, too: it may fail.
    let left = eval(left, row, env)?;
    compare(op, &left, &eval(right, row, env)?)
}

/// Whether two values that compare as `order` satisfy an order comparison.
#[inline]
fn ordering_is(op: Compare, order: Ordering) -> bool {
    match op {
        Compare::Eq => order.is_eq(),
        Compare::Ne => order.is_ne(),
        Compare::Lt => order.is_lt(),
        Compare::Le => order.is_le(),
        Compare::Gt => order.is_gt(),
        Compare::Ge => order.is_ge(),
        _ => unreachable!("pattern matches have no order"),
    }
}

/// Compares two values of one type; `None` if either is NULL.
///
/// # Errors
/// 22025 for a malformed LIKE pattern, 2201B for a malformed regular expression.
pub fn compare(op: Compare, left: &Datum, right: &Datum) -> Result<Option<bool>, SqlError> {
    if left.is_null() || right.is_null() {
        return Ok(None);
    }
    if op <= Compare::Ge {
        return Ok(Some(ordering_is(op, left.compare(right))));
    }
    let (text, pattern) = match (left, right) {
        (Datum::Text(text), Datum::Text(pattern)) => (&**text, &**pattern),
        (Datum::Bytes(text), Datum::Bytes(pattern)) => {
            let found = string::like_bytes(text, pattern)?;
            return Ok(Some(found == (op == Compare::Like)));
        }
        _ => unreachable!("patterns match text or bytes"),
    };
    let found = match op {
        Compare::Like | Compare::NotLike => string::like(text, pattern)?,
        Compare::ILike | Compare::NotILike => {
            let lower = |text: &str| text.chars().map(string::lower).collect::<String>();
            string::like(&lower(text), &lower(pattern))?
        }
        Compare::Regex | Compare::NotRegex => regex::Regex::new(pattern, false)?.is_match(text)?,
        Compare::IRegex | Compare::NotIRegex => regex::Regex::new(pattern, true)?.is_match(text)?,
        _ => unreachable!("order comparisons are done"),
    };
    let negated = matches!(
        op,
        Compare::NotLike | Compare::NotILike | Compare::NotRegex | Compare::NotIRegex
    );
    Ok(Some(found != negated))
}

fn in_list(
    arg: &Datum,
    list: &List,
    row: &dyn Columns,
    env: &Env<'_>,
) -> Result<Option<bool>, SqlError> {
    if arg.is_null() {
        for item in list.iter().filter(|item| !matches!(item, Expr::Const(..))) {
            eval(item, row, env)?;
        }
        return Ok(if list.is_empty() { Some(false) } else { None });
    }
    if let Some(found) = list.look_up(arg) {
        return Ok(found);
    }
    let mut result = Some(false);
    for item in list.iter() {
        // Constants are looked at where they stand.
        let found = match item {
            Expr::Const(value, _) => compare(Compare::Eq, arg, value)?,
            _ => compare(Compare::Eq, arg, &eval(item, row, env)?)?,
        };
        match found {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => result = None,
        }
    }
    Ok(result)
}

/// `arg op ANY|ALL (array)`.
fn any_array(op: Compare, arg: &Datum, array: &Datum, all: bool) -> Result<Option<bool>, SqlError> {
    let Some(items) = array.as_array() else {
        return Ok(None);
    };
    let mut result = Some(all);
    for item in items {
        match compare(op, arg, item)? {
            Some(value) if value != all => return Ok(Some(value)),
            Some(_) => {}
            None => result = None,
        }
    }
    Ok(result)
}

/// The value of an expression without columns; constants and parameters are lent, which needs no
/// evaluator.
///
/// # Errors
/// As [`eval()`].
#[inline]
pub fn value_of<'v>(
    expr: &'v Expr,
    env: &Env<'v>,
    computed: &'v mut Datum,
) -> Result<&'v Datum, SqlError> {
    match expr {
        Expr::Const(datum, _) => Ok(datum),
        Expr::Param(slot, _) => Ok(&env.params[*slot as usize]),
        other => {
            *computed = eval(other, &NoColumns, env)?;
            Ok(computed)
        }
    }
}

/// Calls with up to this many arguments keep them on the stack.
const STACK_ARGS: usize = 4;

fn call(
    func: &Func,
    args: &[Expr],
    ty: Type,
    row: &dyn Columns,
    env: &Env<'_>,
) -> Result<Datum, SqlError> {
    if let [left, right] = args {
        if let Func::Compare(op) = func {
            return Ok(eval_compare(*op, left, right, row, env)?.into());
        }
        if let Some(a) = quick_int(left, row, env)
            && let Some(b) = quick_int(right, row, env)
            && let Some(result) = number::quick_int(func, a, b, ty)
        {
            return result;
        }
    }
    if args.len() <= STACK_ARGS {
        let mut values: [Datum; STACK_ARGS] = Default::default();
        for (value, arg) in values.iter_mut().zip(args) {
            *value = eval(arg, row, env)?;
        }
        apply(func, &mut values[..args.len()], ty, env)
    } else {
        let values = args.iter().map(|arg| eval(arg, row, env));
        apply(func, &mut values.collect::<Result<Vec<_>, _>>()?, ty, env)
    }
}

/// Looks whether a value of a domain meets a condition.
///
/// # Errors
/// 23502 and 23514 if not.
fn meets(args: &[Datum]) -> Result<Datum, SqlError> {
    if args[0] != Datum::Bool(false) {
        return Ok(Datum::Bool(true));
    }
    let domain = args[1].as_str().unwrap_or_default();
    let full_name = args.get(3).and_then(Datum::as_str).unwrap_or(domain);
    Err(match args[2].as_str() {
        None => {
            let message = format!("domain {domain} does not allow null values");
            SqlError::new(SqlState::NOT_NULL, message).data_type(full_name)
        }
        Some(check) => {
            let message =
                format!("value for domain {domain} violates check constraint \"{check}\"");
            SqlError::new(SqlState::CHECK, message)
                .data_type(full_name)
                .constraint(check)
        }
    })
}

/// The error of a row that a policy refuses, or with a second argument a view.
fn refused(args: &[Datum]) -> SqlError {
    let message = args[0].as_str().unwrap_or_default().to_string();
    let state = match args.len() {
        1 => SqlState::INSUFFICIENT_PRIVILEGE,
        _ => SqlState::CHECK_OPTION,
    };
    SqlError::new(state, message)
}

fn null_if(args: &mut [Datum]) -> Result<Datum, SqlError> {
    let equal = compare(Compare::Eq, &args[0], &args[1])? == Some(true);
    Ok(if equal {
        Datum::Null
    } else {
        core::mem::take(&mut args[0])
    })
}

/// Computes a function of values. Text and arrays may be taken out of `args`.
fn apply(func: &Func, args: &mut [Datum], ty: Type, env: &Env<'_>) -> Result<Datum, SqlError> {
    if func.is_strict() && args.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    match func {
        Func::Compare(op) => Ok(compare(*op, &args[0], &args[1])?.into()),
        Func::Greatest | Func::Least => Ok(extreme(args, matches!(func, Func::Greatest))),
        Func::NullIf => null_if(args),
        Func::NumNulls => Ok(count(args, true)),
        Func::NumNonNulls => Ok(count(args, false)),
        Func::RowVersion => Ok(row_version(args)),
        Func::Refuse => Err(refused(args)),
        Func::Meets => meets(args),
        Func::Output(from) => Ok(string::output(*from, &args[0]).into()),
        Func::Text(func) => {
            if let Some(bytes) = string::room::wanted(*func, args)? {
                make_room(bytes, env)?;
            }
            string::apply(*func, args, ty)
        }
        Func::Array(func) => {
            if let Some(bytes) = array::room(*func, args) {
                make_room(bytes, env)?;
            }
            array::apply(*func, args)
        }
        Func::Json(func) => {
            if let Some(bytes) = json::room(*func, args) {
                make_room(bytes, env)?;
            }
            json::apply(*func, args, ty)
        }
        Func::Net(func) => network::apply(*func, args),
        Func::Bits(func) => {
            bits::room(args).map_or(Ok(()), |bytes| make_room(bytes, env))?;
            bits::apply(*func, args)
        }
        Func::Row(func) => functions::row::apply(func, args),
        Func::Range(func) => {
            range::room(args).map_or(Ok(()), |bytes| make_room(bytes, env))?;
            range::apply(*func, args, ty)
        }
        Func::ArrayToString(element) => array::to_string(*element, args),
        Func::Date(func) => datetime::apply(*func, args, ty),
        Func::ToChar(from) => to_char::to_char(*from, args),
        Func::Session(func) => session::apply(*func, args, ty, env),
        Func::Catalog(name) => env.session.catalog_function(name, args),
        Func::Zoned(func) => zoned::apply(*func, args, ty),
        Func::Sleep => Ok(Datum::Text("".into())),
        Func::NextVal => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "nextval is not allowed here",
        )),
        Func::Add | Func::Sub | Func::Mul | Func::Div | Func::Neg
            if args.iter().any(is_temporal) =>
        {
            datetime::arithmetic(func, args)
        }
        _ => {
            let result = number::apply(func, args, ty)?;
            if let Datum::Large(number) = &result
                && number.heap_bytes() > NUMBER_BYTES_FREE
            {
                env.session.room(number.heap_bytes())?;
                overtime::work(number.heap_bytes() as u64)?;
            }
            Ok(result)
        }
    }
}

/// A long value is about to be made.
fn make_room(bytes: usize, env: &Env<'_>) -> Result<(), SqlError> {
    overtime::work(bytes as u64 / 64)?;
    env.session.room(bytes)
}

fn is_temporal(value: &Datum) -> bool {
    matches!(
        value,
        Datum::Date(_)
            | Datum::Time(_)
            | Datum::Timetz(_)
            | Datum::Timestamp(_)
            | Datum::Interval(_)
    )
}

/// The largest or smallest value that is not NULL.
fn extreme(args: &mut [Datum], greatest: bool) -> Datum {
    let mut best = Datum::Null;
    for arg in args.iter_mut().filter(|arg| !arg.is_null()) {
        let order = arg.compare(&best);
        if best.is_null()
            || if greatest {
                order.is_gt()
            } else {
                order.is_lt()
            }
        {
            best = core::mem::take(arg);
        }
    }
    best
}

/// Least `xid` of a row: PostgreSQL has a use of its own for those below.
const XID_MIN: u32 = 3;

/// `xmin` of a row: a checksum of its values as they are stored, so that it is the same wherever
/// and whenever the row is read, and known before the row is committed. Two versions of a row share
/// it with a chance of about 2^-32.
fn row_version(values: &[Datum]) -> Datum {
    let mut row = Vec::new();
    base::row::encode(values, &mut row);
    let sum = base::crc::crc32c(&row);
    let apart = if sum < XID_MIN { sum + XID_MIN } else { sum };
    Datum::Int(apart.into())
}

fn count(args: &[Datum], nulls: bool) -> Datum {
    Datum::Int(args.iter().filter(|arg| arg.is_null() == nulls).count() as i64)
}
