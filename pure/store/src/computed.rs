//! Values that a formula computes from the columns of its row.
//!
//! A language of its own, smaller than SQL's: of each of its operations `range.rs` knows between
//! which ends the results lie, so that a fold can be known not to fail before it is done. Results
//! have the digits and errors that PostgreSQL gives them.

use alloc::boxed::Box;
use alloc::vec::Vec;
use base::limits::PROGRAM_BYTES_MAX;
use base::numeric::{self, Numeric};
use base::strings::StringFunc;
use base::{Datum, Decimal, SqlError, SqlState, Type};
use core::cmp::Ordering;
use serde::{Deserialize, Serialize};

mod func;

pub use func::ValueFunc;

/// Most operations of a value, and of how many one may be inside another.
pub const COMPUTED_NODES_MAX: usize = 64;

/// Most bytes of texts that computing a value may read from columns: so many may be in memory at
/// once.
pub const COMPUTED_BYTES_MAX: usize = 4 * PROGRAM_BYTES_MAX;

/// Most functions of a value that may make much more than they are given
/// ([`StringFunc::multiplies`]): all of their results may be in memory at once.
pub const MULTIPLIERS_MAX: usize = 4;

/// A value computed from columns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Computed {
    /// The column at this position, of this type.
    Column(u16, Type),
    /// The value itself.
    Const(Datum),
    /// NULL if one of the operands is; whole numbers stay in the range of the type.
    Calculate(Arithmetic, Box<[Computed; 2]>, Type),
    /// A decimal number rounded to this many fraction digits; NULL stays NULL.
    Round(Rounding, Box<Computed>, i32),
    /// The smallest ([`Ordering::Less`]) or largest that is not NULL.
    Least(Vec<Computed>),
    /// The largest that is not NULL.
    Greatest(Vec<Computed>),
    /// As a column of the type keeps it. Numbers become numbers, texts texts.
    Cast(Box<Computed>, Type),
    /// The first that is not NULL.
    Coalesce(Vec<Computed>),
    /// The value behind the first condition that is true, else the last.
    Case(Vec<(Condition, Computed)>, Box<Computed>),
    /// Whether a condition is true; NULL: that is unknown.
    Truth(Box<Condition>),
    /// A function of texts or bytes. If it is strict, one NULL makes the result NULL.
    Text(StringFunc, Vec<Computed>),
    /// The text form of a value of this type: a truth value, a number, or a date; NULL stays NULL.
    Output(Box<Computed>, Type),
    /// A function of floats, moments, arrays or `jsonb`, with the type of its result.
    Call(ValueFunc, Vec<Computed>, Type),
}

/// An operation with two operands of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    /// Of whole numbers towards zero. 22012 if the divisor is zero.
    Divide,
    /// What a division towards zero leaves. 22012 if the divisor is zero.
    Remainder,
    /// Of texts, or of bytes.
    Append,
}

/// To which neighbour a number is rounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Rounding {
    /// The nearest, of two the one away from zero.
    Nearest,
    /// The one towards zero.
    Truncate,
    /// The one below.
    Down,
    /// The one above.
    Up,
}

/// A condition on columns: true, false, or unknown beside NULL.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Condition {
    /// The order of two values is one of these: (less, equal, greater).
    Compare([bool; 3], Box<[Computed; 2]>),
    /// The value is NULL.
    IsNull(Box<Computed>),
    /// The other way round; unknown stays unknown.
    Not(Box<Condition>),
    /// All are true.
    And(Vec<Condition>),
    /// One is true.
    Or(Vec<Condition>),
    /// The value, which is a truth value.
    Value(Box<Computed>),
}

/// Gives the values of columns.
pub type Columns<'a> = dyn Fn(u16, Type) -> Result<Datum, SqlError> + 'a;

impl Computed {
    /// The value for these columns.
    ///
    /// Errors: 22003 if a number leaves its range, 22001 if a text is too long for a cast, 22012
    /// for a division by zero, 22011 for a substring of a negative length, 54000 if a text has more
    /// than [`PROGRAM_BYTES_MAX`] bytes, what a [`ValueFunc`] raises, and what `columns` gives.
    pub fn value(&self, columns: &Columns<'_>) -> Result<Datum, SqlError> {
        match self {
            Computed::Column(column, ty) => columns(*column, *ty),
            Computed::Const(value) => Ok(value.clone()),
            Computed::Calculate(what, operands, ty) => {
                let [left, right] = &**operands;
                calculate(*what, &left.value(columns)?, &right.value(columns)?, *ty)
            }
            Computed::Round(rounding, of, digits) => match of.value(columns)? {
                value @ (Datum::Decimal(_) | Datum::Large(_)) => rounding.of_any(&value, *digits),
                other => Ok(other),
            },
            Computed::Least(all) => extreme(all, columns, Ordering::Less),
            Computed::Greatest(all) => extreme(all, columns, Ordering::Greater),
            Computed::Cast(of, ty) => cast(of.value(columns)?, *ty),
            Computed::Coalesce(all) => {
                for one in all {
                    let value = one.value(columns)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Ok(Datum::Null)
            }
            Computed::Case(arms, otherwise) => {
                for (condition, value) in arms {
                    if condition.holds(columns)? == Some(true) {
                        return value.value(columns);
                    }
                }
                otherwise.value(columns)
            }
            Computed::Truth(condition) => Ok(condition.holds(columns)?.into()),
            Computed::Text(func, args) => {
                let args = args.iter().map(|arg| arg.value(columns));
                let args: Vec<Datum> = args.collect::<Result<_, _>>()?;
                match func.is_strict() && args.iter().any(Datum::is_null) {
                    true => Ok(Datum::Null),
                    false => func.apply(&args, has_room),
                }
            }
            Computed::Call(func, args, ty) => {
                let args = args.iter().map(|arg| arg.value(columns));
                func.apply(args.collect::<Result<_, _>>()?, *ty)
            }
            Computed::Output(of, ty) => Ok(match of.value(columns)? {
                Datum::Null => Datum::Null,
                value => base::text::to_string(*ty, &value).into(),
            }),
        }
    }

    /// Calls `visit` for the value and all inside it.
    pub fn each(&self, visit: &mut dyn FnMut(&Computed)) {
        visit(self);
        match self {
            Computed::Column(..) | Computed::Const(_) => {}
            Computed::Calculate(_, operands, _) => operands.iter().for_each(|it| it.each(visit)),
            Computed::Round(_, of, _) | Computed::Cast(of, _) | Computed::Output(of, _) => {
                of.each(visit);
            }
            Computed::Least(all)
            | Computed::Greatest(all)
            | Computed::Coalesce(all)
            | Computed::Text(_, all)
            | Computed::Call(_, all, _) => {
                all.iter().for_each(|it| it.each(visit));
            }
            Computed::Case(arms, otherwise) => {
                for (condition, value) in arms {
                    condition.each(visit);
                    value.each(visit);
                }
                otherwise.each(visit);
            }
            Computed::Truth(condition) => condition.each(visit),
        }
    }

    /// Whether the value depends on the column.
    #[must_use]
    pub fn reads(&self, column: u16) -> bool {
        let mut found = false;
        self.each(&mut |it| found |= matches!(it, Computed::Column(read, _) if *read == column));
        found
    }

    /// Bytes of memory, about.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let mut bytes = 0;
        self.each(&mut |it| {
            bytes += size_of::<Computed>();
            if let Computed::Const(value) = it {
                bytes += crate::write::value_bytes(value);
            }
        });
        bytes
    }
}

impl Condition {
    /// Whether the condition is true; `None`: that is unknown. Errors: as [`Computed::value`].
    pub fn holds(&self, columns: &Columns<'_>) -> Result<Option<bool>, SqlError> {
        Ok(match self {
            Condition::Compare(wanted, sides) => {
                let (left, right) = (sides[0].value(columns)?, sides[1].value(columns)?);
                let known = !left.is_null() && !right.is_null();
                known.then(|| wanted[(left.compare(&right) as i8 + 1) as usize])
            }
            Condition::IsNull(value) => Some(value.value(columns)?.is_null()),
            Condition::Not(condition) => condition.holds(columns)?.map(|holds| !holds),
            Condition::And(all) => joined(all, columns, false)?,
            Condition::Or(all) => joined(all, columns, true)?,
            Condition::Value(value) => value.value(columns)?.as_bool(),
        })
    }

    /// Calls `visit` for all values inside.
    fn each(&self, visit: &mut dyn FnMut(&Computed)) {
        match self {
            Condition::Compare(_, sides) => sides.iter().for_each(|side| side.each(visit)),
            Condition::IsNull(value) | Condition::Value(value) => value.each(visit),
            Condition::Not(condition) => condition.each(visit),
            Condition::And(all) | Condition::Or(all) => all.iter().for_each(|it| it.each(visit)),
        }
    }
}

/// `ends`, if one of the conditions is that, and what none is otherwise.
fn joined(all: &[Condition], columns: &Columns<'_>, ends: bool) -> Result<Option<bool>, SqlError> {
    let mut result = Some(!ends);
    for one in all {
        match one.holds(columns)? {
            Some(holds) if holds == ends => return Ok(Some(ends)),
            Some(_) => {}
            None => result = None,
        }
    }
    Ok(result)
}

fn extreme(all: &[Computed], columns: &Columns<'_>, wanted: Ordering) -> Result<Datum, SqlError> {
    let mut best = Datum::Null;
    for one in all {
        let value = one.value(columns)?;
        if !value.is_null() && (best.is_null() || value.compare(&best) == wanted) {
            best = value;
        }
    }
    Ok(best)
}

impl Rounding {
    /// As [`Rounding::of`], of a numeric of any size.
    fn of_any(self, value: &Datum, digits: i32) -> Result<Datum, SqlError> {
        if let Datum::Decimal(value) = value
            && let Ok(small) = self.of(*value, digits)
        {
            return Ok(Datum::Decimal(small));
        }
        let Some(value) = Numeric::of(value) else {
            return Ok(Datum::Null);
        };
        match self {
            Rounding::Nearest => value.round(digits.into()),
            Rounding::Truncate => value.trunc(digits.into()),
            Rounding::Down => value.floor(),
            Rounding::Up => value.ceil(),
        }
        .into_datum()
    }

    /// The number with this many fraction digits.
    pub(crate) fn of(self, value: Decimal, digits: i32) -> Result<Decimal, SqlError> {
        match self {
            Rounding::Nearest => value.round(digits),
            Rounding::Truncate => value.trunc(digits),
            Rounding::Down => value.floor(),
            Rounding::Up => value.ceil(),
        }
    }
}

/// The result for two values; `ty` is that of the result.
pub(crate) fn calculate(
    what: Arithmetic,
    left: &Datum,
    right: &Datum,
    ty: Type,
) -> Result<Datum, SqlError> {
    match (left, right) {
        (Datum::Null, _) | (_, Datum::Null) => Ok(Datum::Null),
        (Datum::Int(a), Datum::Int(b)) => {
            let zero = *b == 0;
            let result = match what {
                Arithmetic::Add => a.checked_add(*b),
                Arithmetic::Subtract => a.checked_sub(*b),
                Arithmetic::Multiply => a.checked_mul(*b),
                Arithmetic::Divide | Arithmetic::Remainder if zero => return Err(by_zero()),
                Arithmetic::Divide => a.checked_div(*b),
                // The one remainder whose quotient overflows is 0.
                Arithmetic::Remainder => Some(a.checked_rem(*b).unwrap_or(0)),
                Arithmetic::Append => mixed_up(what, left, right),
            };
            in_range(ty, result)
        }
        (Datum::Decimal(_) | Datum::Large(_), Datum::Decimal(_) | Datum::Large(_)) => match what {
            Arithmetic::Add => numeric::add(left, right),
            Arithmetic::Subtract => numeric::sub(left, right),
            Arithmetic::Multiply => numeric::mul(left, right),
            Arithmetic::Divide => numeric::div(left, right),
            Arithmetic::Remainder => numeric::rem(left, right),
            Arithmetic::Append => mixed_up(what, left, right),
        },
        (Datum::Text(a), Datum::Text(b)) if what == Arithmetic::Append => {
            has_room(a.len() + b.len())?;
            Ok(Datum::Text([&**a, &**b].concat().into()))
        }
        (Datum::Bytes(a), Datum::Bytes(b)) if what == Arithmetic::Append => {
            has_room(a.len() + b.len())?;
            Ok(Datum::Bytes([&**a, &**b].concat().into()))
        }
        _ => mixed_up(what, left, right),
    }
}

fn mixed_up(what: Arithmetic, left: &Datum, right: &Datum) -> ! {
    panic!("a formula has {what:?} of {left:?} and {right:?}: the planner mixed up kinds")
}

fn has_room(bytes: usize) -> Result<(), SqlError> {
    match bytes <= PROGRAM_BYTES_MAX {
        true => Ok(()),
        false => Err(too_large(bytes, PROGRAM_BYTES_MAX)),
    }
}

/// 54000: a value that is computed where its row lies would have more bytes than it may have.
pub fn too_large(bytes: usize, most: usize) -> SqlError {
    let detail = alloc::format!(
        "A value that is computed where its row lies has at most {most} bytes, and {bytes} were \
         asked for."
    );
    SqlError::new(SqlState::PROGRAM_LIMIT, "requested length too large").detail(detail)
}

fn by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// The value as a column of the type keeps it.
pub(crate) fn cast(value: Datum, ty: Type) -> Result<Datum, SqlError> {
    match (ty, value) {
        (Type::Int2 | Type::Int4 | Type::Int8, Datum::Int(value)) => in_range(ty, Some(value)),
        (Type::Int2 | Type::Int4 | Type::Int8, Datum::Decimal(value)) => {
            in_range(ty, value.to_i64().ok())
        }
        (Type::Numeric(_), Datum::Int(value)) => rounded(ty, Decimal::from(value)),
        (Type::Numeric(_), Datum::Decimal(value)) => rounded(ty, value),
        (_, value) => base::text::fit(ty, value),
    }
}

/// The values of a whole number's type, ends included.
pub(crate) fn whole_range(ty: Type) -> (i64, i64) {
    match ty {
        Type::Int2 => (i16::MIN.into(), i16::MAX.into()),
        Type::Int4 => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    }
}

/// A whole number as a column of this type keeps it.
pub(crate) fn in_range(ty: Type, value: Option<i64>) -> Result<Datum, SqlError> {
    let (least, most) = whole_range(ty);
    match value {
        Some(value) if (least..=most).contains(&value) => Ok(Datum::Int(value)),
        _ => Err(SqlError::new(
            SqlState::NUMERIC_OUT_OF_RANGE,
            alloc::format!("{} out of range", ty.base_name()),
        )),
    }
}

/// A decimal number as a column of this type keeps it.
pub(crate) fn rounded(ty: Type, value: Decimal) -> Result<Datum, SqlError> {
    match ty {
        Type::Numeric(Some((precision, scale))) => base::text::fit(
            Type::Numeric(Some((precision, scale))),
            Datum::Decimal(value),
        ),
        _ => Ok(Datum::Decimal(value)),
    }
}
