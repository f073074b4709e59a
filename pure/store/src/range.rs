//! Between which ends the value of a formula lies, and whether computing it may fail.
//!
//! The rules are those of intervals: each operation is monotonous, or takes its extremes at the
//! corners of its operands' ranges. What is not known is refused. So a range may be wider than it
//! must be, and never narrower.

use crate::computed::{Arithmetic, COMPUTED_BYTES_MAX, Computed, Condition, Rounding, whole_range};
use crate::formula::{ColumnFormula, FormulaOp};
use alloc::vec::Vec;
use base::row::value_len;
use base::{Datum, Decimal, Type};

mod arrays;
mod calls;
mod floats;
mod jsons;
mod moments;
mod texts;

use arrays::Arrays;
use floats::Floats;
use jsons::Jsons;
use moments::{Moments, Spans};
use texts::Texts;

/// Most digits before the point and after it that are allowed: one less than a [`Decimal`] has.
const DIGITS_MAX: u32 = 37;

/// Most bytes of a number, moment or interval.
const SMALL_BYTES: usize = 17;

/// What a value may be.
#[derive(Clone, PartialEq, Debug)]
pub struct Range {
    /// It may be NULL.
    null: bool,
    /// What it is otherwise; `None`: nothing but NULL.
    values: Option<Values>,
}

/// Values that are not NULL.
#[derive(Clone, PartialEq, Debug)]
enum Values {
    Numbers(Numbers),
    /// Texts or bytes.
    Texts(Texts),
    Floats(Floats),
    Moments(Moments),
    Spans(Spans),
    Arrays(Arrays),
    Json(Jsons),
    /// Of another kind, of at most so many bytes in a row.
    Others(usize),
}

/// Numbers from `low` to `high`.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Numbers {
    low: Decimal,
    high: Decimal,
    /// Most fraction digits.
    scale: u8,
}

/// Gives the ranges of columns.
pub type Ranges<'a> = dyn Fn(u16) -> Option<Range> + 'a;

impl Range {
    /// The value alone.
    #[must_use]
    pub fn of(value: &Datum) -> Range {
        let number = |value: Decimal| {
            Values::Numbers(Numbers {
                low: value,
                high: value,
                scale: value.scale(),
            })
        };
        let values = match value {
            Datum::Null => None,
            Datum::Int(value) => Some(number(Decimal::from(*value))),
            Datum::Decimal(value) => Some(number(*value)),
            Datum::Text(text) => Some(Values::Texts(Texts::of_text(text))),
            Datum::Bytes(bytes) => Some(Values::Texts(Texts::of_bytes(bytes))),
            Datum::Interval(value) => Some(Values::Spans(Spans::of(*value))),
            Datum::Array(items) => Some(Values::Arrays(Arrays::of(items))),
            Datum::Jsonb(value) => Some(Values::Json(Jsons::of(value.as_str()))),
            Datum::Float(float) => Floats::of(*float).map(Values::Floats),
            other => Moments::of(other).map(Values::Moments),
        };
        let values = match value {
            Datum::Null => None,
            // Floats and moments may be infinite, arrays of any shape.
            other => values.or_else(|| Some(Values::Others(value_len(other)))),
        };
        Range {
            null: values.is_none(),
            values,
        }
    }

    /// The values of both.
    #[must_use]
    pub fn or(&self, other: &Range) -> Range {
        let values = match (&self.values, &other.values) {
            (None, values) | (values, None) => values.clone(),
            (Some(Values::Numbers(a)), Some(Values::Numbers(b))) => Some(Values::Numbers(a.or(*b))),
            (Some(Values::Texts(a)), Some(Values::Texts(b))) => Some(Values::Texts(a.or(*b))),
            (Some(Values::Floats(a)), Some(Values::Floats(b))) => Some(Values::Floats(a.or(*b))),
            (Some(Values::Spans(a)), Some(Values::Spans(b))) => Some(Values::Spans(a.or(*b))),
            (Some(Values::Arrays(a)), Some(Values::Arrays(b))) => Some(Values::Arrays(a.or(b))),
            (Some(Values::Json(a)), Some(Values::Json(b))) => Some(Values::Json(a.or(*b))),
            (Some(Values::Moments(a)), Some(Values::Moments(b))) if a.or(b).is_some() => {
                a.or(b).map(Values::Moments)
            }
            _ => {
                let bytes = self.bytes_max().max(other.bytes_max());
                Some(Values::Others(bytes.max(SMALL_BYTES)))
            }
        };
        Range {
            null: self.null || other.null,
            values,
        }
    }

    /// Most bytes in a row; 0 for numbers and moments, which have few.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        match &self.values {
            Some(Values::Texts(texts)) => texts.bytes,
            Some(Values::Arrays(arrays)) => arrays.bytes_max(),
            Some(Values::Json(json)) => json.bytes,
            Some(Values::Others(bytes)) => *bytes,
            Some(
                Values::Numbers(_) | Values::Floats(_) | Values::Moments(_) | Values::Spans(_),
            )
            | None => 0,
        }
    }

    /// What a change makes of its column. `None`: it may fail, or depends on a guard.
    #[must_use]
    pub fn changed(change: &ColumnFormula, columns: &Ranges<'_>) -> Option<Range> {
        let current = || columns(change.column);
        let with = |what, operand| arithmetic(what, &current()?, &Range::of(operand), change.ty);
        let result = match &change.op {
            FormulaOp::Add(operand) => with(Arithmetic::Add, operand)?,
            FormulaOp::Multiply(operand) => with(Arithmetic::Multiply, operand)?,
            FormulaOp::Append(operand) => with(Arithmetic::Append, operand)?,
            FormulaOp::Set(operand) => Range::of(operand),
            // One of both, and not NULL.
            FormulaOp::Min(operand) | FormulaOp::Max(operand) => Range {
                null: false,
                ..current()?.or(&Range::of(operand))
            },
            FormulaOp::AtLeast(_) | FormulaOp::AtMost(_) => return None,
            FormulaOp::Compute(value) => {
                reads_little(value, columns).then_some(())?;
                Range::of_computed(value, columns)?
            }
        };
        result.kept(change.ty)
    }

    /// What a value may be; `None`: computing it may fail.
    fn of_computed(value: &Computed, columns: &Ranges<'_>) -> Option<Range> {
        let of = |value: &Computed| Range::of_computed(value, columns);
        match value {
            Computed::Column(column, _) => columns(*column),
            Computed::Const(value) => Some(Range::of(value)),
            Computed::Calculate(what, operands, ty) => {
                arithmetic(*what, &of(&operands[0])?, &of(&operands[1])?, *ty)
            }
            Computed::Round(rounding, value, digits) => of(value)?.rounded(*rounding, *digits),
            Computed::Cast(value, ty) => of(value)?.cast(*ty),
            Computed::Least(all) | Computed::Greatest(all) | Computed::Coalesce(all) => {
                let mut both = of(all.first()?)?;
                for one in &all[1..] {
                    let one = of(one)?;
                    // It is NULL only if all are.
                    let null = both.null && one.null;
                    both = Range {
                        null,
                        ..both.or(&one)
                    };
                }
                Some(both)
            }
            Computed::Case(arms, otherwise) => {
                let mut all: Option<Range> = None;
                for (condition, value) in arms {
                    let truth = Truth::of(condition, columns)?;
                    if truth.may_hold {
                        let one = of(value)?;
                        all = Some(all.map_or(one.clone(), |all| all.or(&one)));
                    }
                    if !truth.may_fail {
                        return all;
                    }
                }
                let last = of(otherwise)?;
                Some(all.map_or(last.clone(), |all| all.or(&last)))
            }
            Computed::Text(func, args) => {
                let args: Option<Vec<Range>> = args.iter().map(of).collect();
                texts::of_function(*func, &args?)
            }
            Computed::Output(value, ty) => texts::output(&of(value)?, *ty),
            Computed::Call(func, args, ty) => calls::of_call(*func, args, *ty, columns),
            Computed::Truth(condition) => {
                Truth::of(condition, columns)?;
                Some(Range {
                    null: true,
                    values: Some(Values::Others(1)),
                })
            }
        }
    }

    /// These values in place of its own.
    fn of_same_null(&self, values: Values) -> Option<Range> {
        Some(Range {
            null: self.null,
            values: Some(values),
        })
    }

    fn numbers(&self) -> Option<Numbers> {
        match self.values {
            Some(Values::Numbers(numbers)) => Some(numbers),
            _ => None,
        }
    }

    fn with(&self, numbers: Numbers) -> Range {
        Range {
            null: self.null,
            values: Some(Values::Numbers(numbers)),
        }
    }

    fn rounded(&self, rounding: Rounding, digits: i32) -> Option<Range> {
        let Some(numbers) = self.numbers() else {
            return self.values.is_none().then(|| self.clone());
        };
        let digits = match rounding {
            Rounding::Nearest | Rounding::Truncate => digits,
            Rounding::Down | Rounding::Up => 0,
        };
        // Zeros may be added.
        let scale = u8::try_from(digits.max(0)).ok()?;
        let rounded = Numbers {
            low: rounding.of(numbers.low, digits).ok()?,
            high: rounding.of(numbers.high, digits).ok()?,
            scale,
        };
        rounded.checked().map(|numbers| self.with(numbers))
    }

    /// The values as a cast makes them.
    fn cast(&self, ty: Type) -> Option<Range> {
        match (ty, self.numbers()) {
            (Type::Int2 | Type::Int4 | Type::Int8, Some(_)) => {
                self.rounded(Rounding::Nearest, 0)?.kept(ty)
            }
            _ => self.kept(ty),
        }
    }

    /// The values as a column of the type keeps them; `None`: it might not.
    fn kept(&self, ty: Type) -> Option<Range> {
        match (ty, &self.values) {
            (Type::Int2 | Type::Int4 | Type::Int8, Some(Values::Numbers(numbers))) => {
                numbers.is_whole(ty).then(|| self.clone())
            }
            (Type::Numeric(Some(_)), Some(Values::Numbers(numbers))) => {
                let (precision, scale) = ty.decimal_modifiers()?;
                Some(self.with(Numbers {
                    low: numbers.low.rescale(precision, scale).ok()?,
                    high: numbers.high.rescale(precision, scale).ok()?,
                    scale,
                }))
            }
            (Type::Text | Type::Varchar(None) | Type::Bytea, _) => Some(self.clone()),
            (Type::Float4 | Type::Float8, Some(Values::Numbers(_))) => None,
            (_, Some(Values::Floats(floats))) => {
                self.of_same_null(Values::Floats(floats.kept(ty)?))
            }
            (_, Some(Values::Moments(moments))) => {
                self.of_same_null(Values::Moments(moments.kept(ty)?))
            }
            // An item may be too long, or have too many digits.
            (Type::Array(kind), Some(_)) if kind.element().typmod() != -1 => None,
            (Type::Varchar(Some(chars)), Some(Values::Texts(texts))) => {
                (texts.most <= chars as usize).then(|| self.clone())
            }
            // The blanks at the end go, or all but the first characters do.
            (_, Some(Values::Texts(texts))) => {
                let fits = match ty {
                    Type::Char(chars @ 1..) => texts.most <= chars as usize,
                    _ => true,
                };
                let texts = Values::Texts(Texts { least: 0, ..*texts });
                fits.then_some(Range {
                    null: self.null,
                    values: Some(texts),
                })
            }
            _ => Some(self.clone()),
        }
    }
}

impl Numbers {
    fn or(self, other: Numbers) -> Numbers {
        let first = |a: Decimal, b: Decimal, is_first: bool| if is_first { a } else { b };
        Numbers {
            low: first(self.low, other.low, self.low <= other.low),
            high: first(self.high, other.high, self.high >= other.high),
            scale: self.scale.max(other.scale),
        }
    }

    /// The numbers, if every operation that made one of them had room for all digits.
    fn checked(self) -> Option<Numbers> {
        (self.whole_digits() + u32::from(self.scale) <= DIGITS_MAX).then_some(self)
    }

    /// Most digits before the point.
    fn whole_digits(self) -> u32 {
        let digits = |end: Decimal| {
            let size = end.unscaled().unsigned_abs();
            let all = size.checked_ilog10().map_or(0, |log| log + 1);
            all.saturating_sub(u32::from(end.scale()))
        };
        digits(self.low).max(digits(self.high))
    }

    fn is_whole(self, ty: Type) -> bool {
        let (least, most) = whole_range(ty);
        self.low >= Decimal::from(least) && self.high <= Decimal::from(most)
    }

    fn has_zero(self) -> bool {
        let is_above = self.low > Decimal::ZERO;
        !is_above && self.high >= Decimal::ZERO
    }

    /// The larger absolute value of the ends.
    fn size(self) -> Decimal {
        let (low, high) = (self.low.abs(), self.high.abs());
        if low > high { low } else { high }
    }

    /// The outermost results at the corners; `None`: one fails.
    fn corners(
        self,
        other: Numbers,
        scale: u8,
        of: impl Fn(Decimal, Decimal) -> Option<Decimal>,
    ) -> Option<Numbers> {
        let mut all: Option<Numbers> = None;
        for a in [self.low, self.high] {
            for b in [other.low, other.high] {
                let corner = of(a, b)?;
                let corner = Numbers {
                    low: corner,
                    high: corner,
                    scale,
                };
                all = Some(all.map_or(corner, |all| all.or(corner)));
            }
        }
        all?.checked()
    }
}

/// Most fraction digits of a quotient ([`Decimal::div`]): the smallest dividend beside the largest
/// divisor has most.
fn quotient_scale(dividend: Numbers, divisor: Numbers) -> u8 {
    let least = Decimal::from_parts(1, dividend.scale).unwrap_or(Decimal::ONE);
    // Its first digits are as small as they can be.
    let Ok(quotient) = least.div(divisor.size()) else {
        return 38;
    };
    let scale = quotient.scale().saturating_add(4);
    scale.max(dividend.scale).max(divisor.scale).min(38)
}

/// Whether what a value reads stays below [`COMPUTED_BYTES_MAX`].
fn reads_little(value: &Computed, columns: &Ranges<'_>) -> bool {
    let mut bytes = 0_usize;
    value.each(&mut |it| {
        if let Computed::Column(column, _) = it {
            let more = columns(*column).map_or(0, |range| range.bytes_max());
            bytes = bytes.saturating_add(more);
        }
    });
    bytes <= COMPUTED_BYTES_MAX
}

/// What the operation makes of two ranges; `ty` is the type of the result.
fn arithmetic(what: Arithmetic, a: &Range, b: &Range, ty: Type) -> Option<Range> {
    let null = a.null || b.null;
    let values = match (&a.values, &b.values) {
        (None, _) | (_, None) => None,
        (Some(Values::Texts(a)), Some(Values::Texts(b))) => Some(Values::Texts(a.then(*b)?)),
        (Some(Values::Numbers(a)), Some(Values::Numbers(b))) => Some(Values::Numbers(match ty {
            Type::Numeric(_) => of_decimals(what, *a, *b)?,
            _ => of_whole(what, *a, *b).filter(|numbers| numbers.is_whole(ty))?,
        })),
        _ => return None,
    };
    Some(Range { null, values })
}

fn of_whole(what: Arithmetic, a: Numbers, b: Numbers) -> Option<Numbers> {
    match what {
        Arithmetic::Divide if b.has_zero() => None,
        Arithmetic::Divide => a.corners(b, 0, |a, b| a.div_trunc(b).ok()),
        Arithmetic::Remainder => remainder(a, b),
        _ => of_decimals(what, a, b),
    }
}

fn of_decimals(what: Arithmetic, a: Numbers, b: Numbers) -> Option<Numbers> {
    let scale = a.scale.max(b.scale);
    match what {
        Arithmetic::Add => a.corners(b, scale, |a, b| a.add(b).ok()),
        Arithmetic::Subtract => a.corners(b, scale, |a, b| a.sub(b).ok()),
        Arithmetic::Multiply => a.corners(b, a.scale + b.scale, |a, b| a.mul(b).ok()),
        Arithmetic::Divide if b.has_zero() => None,
        Arithmetic::Divide => {
            let exact = a.corners(b, 0, |a, b| a.div(b).ok())?;
            // Quotients are rounded to different digits.
            let wider = Numbers {
                low: exact.low.floor().ok()?.sub(Decimal::ONE).ok()?,
                high: exact.high.ceil().ok()?.add(Decimal::ONE).ok()?,
                scale: quotient_scale(a, b),
            };
            wider.checked()
        }
        Arithmetic::Remainder => remainder(a, b),
        Arithmetic::Append => None,
    }
}

/// A remainder has the sign of the dividend, and is smaller than the divisor.
fn remainder(a: Numbers, b: Numbers) -> Option<Numbers> {
    if b.has_zero() {
        return None;
    }
    let scale = a.scale.max(b.scale);
    for operand in [a, b] {
        Numbers { scale, ..operand }.checked()?;
    }
    let (least, most) = (b.size().neg(), b.size());
    let low = if a.low < least { least } else { a.low };
    let high = if a.high > most { most } else { a.high };
    let zero = Decimal::ZERO;
    Some(Numbers {
        low: if low > zero { zero } else { low },
        high: if high < zero { zero } else { high },
        scale,
    })
}

/// What a condition may be.
#[derive(Clone, Copy)]
struct Truth {
    /// It may be true.
    may_hold: bool,
    /// It may be false or unknown.
    may_fail: bool,
}

impl Truth {
    const OPEN: Truth = Truth {
        may_hold: true,
        may_fail: true,
    };

    /// `None`: evaluating the condition may raise an error.
    fn of(condition: &Condition, columns: &Ranges<'_>) -> Option<Truth> {
        let all = |all: &[Condition]| -> Option<Vec<Truth>> {
            all.iter().map(|one| Truth::of(one, columns)).collect()
        };
        Some(match condition {
            Condition::Compare(wanted, sides) => {
                let left = Range::of_computed(&sides[0], columns)?;
                let right = Range::of_computed(&sides[1], columns)?;
                Truth::compared(*wanted, &left, &right)
            }
            Condition::IsNull(value) => {
                let value = Range::of_computed(value, columns)?;
                Truth {
                    may_hold: value.null,
                    may_fail: value.values.is_some(),
                }
            }
            Condition::And(parts) => {
                let parts = all(parts)?;
                Truth {
                    may_hold: parts.iter().all(|one| one.may_hold),
                    may_fail: parts.iter().any(|one| one.may_fail),
                }
            }
            Condition::Or(parts) => {
                let parts = all(parts)?;
                Truth {
                    may_hold: parts.iter().any(|one| one.may_hold),
                    may_fail: parts.iter().all(|one| one.may_fail),
                }
            }
            // Beside NULL, a condition and its opposite both fail.
            Condition::Not(condition) => {
                Truth::of(condition, columns)?;
                Truth::OPEN
            }
            Condition::Value(value) => {
                Range::of_computed(value, columns)?;
                Truth::OPEN
            }
        })
    }

    /// Whether the order of values of both ranges is one of the wanted: (less, equal, greater).
    fn compared(wanted: [bool; 3], left: &Range, right: &Range) -> Truth {
        let null = left.null || right.null;
        let (Some(a), Some(b)) = (left.numbers(), right.numbers()) else {
            let known = left.values.is_some() && right.values.is_some();
            return Truth {
                may_hold: known,
                may_fail: known || null,
            };
        };
        let may_be = [
            a.low < b.high,
            a.low <= b.high && b.low <= a.high,
            a.high > b.low,
        ];
        let one = |of_wanted: bool| {
            let mut both = may_be.iter().zip(wanted);
            both.any(|(may_be, wanted)| *may_be && wanted == of_wanted)
        };
        Truth {
            may_hold: one(true),
            may_fail: one(false) || null,
        }
    }
}

#[cfg(test)]
mod call_tests;
#[cfg(test)]
mod tests;
