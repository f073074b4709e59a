//! The running state of one aggregate in one group.

use super::pairs::Pairs;
use super::seen::{self, Seen};
use super::statistics::Spread;
use super::{AggFunc, SumKind, json};
use crate::rows::{datum_heap_bytes, datums_heap_bytes, heap_bytes};
use base::codec::CodecError;
use base::datum::Interval;
use base::{Datum, Decimal, SqlError, SqlState, Type, numeric};
use functions::array::Stack;
use functions::cast::{checked_int, out_of_range};
use functions::{BitFunc, datetime, range, string};

/// One aggregate's state.
#[derive(Clone, Debug)]
pub struct AggState {
    func: AggFunc,
    acc: Accumulator,
    /// Values seen so far, with `DISTINCT`; `acc` is then unused until the end.
    seen: Option<Box<Seen>>,
    /// Bytes held beside the state itself.
    heap_bytes: usize,
}

/// What has been accumulated.
#[derive(Clone, Debug)]
enum Accumulator {
    Count(i64),
    /// The value so far; NULL before the first.
    Value(Datum),
    /// Sum of integers and number of values.
    Int(i128, i64),
    /// Sum of numerics and number of values.
    Decimal(Datum, i64),
    /// Sum of floats and number of values.
    Float(f64, i64),
    Interval(Interval, i64),
    /// Text so far, the separator before the first value.
    Joined(Option<(Vec<u8>, Vec<u8>)>, bool),
    Items(Vec<Datum>),
    Arrays(Stack),
    Spread(Spread),
    Pairs(Box<Pairs>),
}

impl Accumulator {
    fn new(func: AggFunc) -> Accumulator {
        match func {
            AggFunc::CountAll | AggFunc::Count => Accumulator::Count(0),
            AggFunc::Sum(kind) | AggFunc::Avg(kind) => match kind {
                SumKind::Int | SumKind::BigInt => Accumulator::Int(0, 0),
                SumKind::Decimal => Accumulator::Decimal(Datum::Decimal(Decimal::ZERO), 0),
                SumKind::Real | SumKind::Float => Accumulator::Float(0.0, 0),
                SumKind::Interval => Accumulator::Interval(Interval::default(), 0),
            },
            AggFunc::Min
            | AggFunc::Max
            | AggFunc::BoolAnd
            | AggFunc::BoolOr
            | AggFunc::BitAnd
            | AggFunc::BitOr
            | AggFunc::BitXor
            | AggFunc::RangeIntersect => Accumulator::Value(Datum::Null),
            AggFunc::StringAgg => Accumulator::Joined(None, false),
            AggFunc::ArrayAgg
            | AggFunc::RangeUnion
            | AggFunc::JsonArray { .. }
            | AggFunc::JsonObject { .. } => Accumulator::Items(Vec::new()),
            AggFunc::ArrayOfArrays => Accumulator::Arrays(Stack::default()),
            AggFunc::Spread { float, .. } => Accumulator::Spread(Spread::new(float)),
            AggFunc::Pair(_) => Accumulator::Pairs(Box::default()),
        }
    }
}

/// "value overflows numeric format", 22003.
fn overflow() -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_OUT_OF_RANGE,
        "value overflows numeric format",
    )
}

/// The sum of two floats; 22003 if it is infinite and they are not.
fn add_floats(a: f64, b: f64) -> Result<f64, SqlError> {
    let sum = a + b;
    if sum.is_infinite() && a.is_finite() && b.is_finite() {
        return Err(SqlError::new(
            SqlState::NUMERIC_OUT_OF_RANGE,
            "value out of range: overflow",
        ));
    }
    Ok(sum)
}

fn decimal_of(sum: i128) -> Result<Decimal, SqlError> {
    Decimal::from_parts(sum, 0).ok_or_else(overflow)
}

/// Longer values are refused (54000), as in PostgreSQL.
fn checked_length(bytes: usize) -> Result<usize, SqlError> {
    match bytes > string::RESULT_BYTES_MAX {
        true => Err(string::too_large(bytes)),
        false => Ok(bytes),
    }
}

impl Default for AggState {
    /// What stands for a state that was taken away.
    fn default() -> AggState {
        AggState::new(AggFunc::CountAll, false)
    }
}

impl AggState {
    /// The state before the first row.
    pub fn new(func: AggFunc, distinct: bool) -> AggState {
        let keeps = distinct && !func.ignores_repetition();
        let seen = keeps.then(|| Box::new(Seen::new(func.ignores_order())));
        AggState {
            func,
            acc: Accumulator::new(func),
            seen,
            heap_bytes: 0,
        }
    }

    /// Memory that the state holds beside itself, in bytes.
    #[inline]
    pub fn held_bytes(&self) -> usize {
        self.heap_bytes
    }

    /// Memory that the state may take while it takes in the arguments of one row, in bytes: a
    /// larger copy of what it has gathered.
    #[inline]
    pub fn growth_bytes(&self, args: &[Datum]) -> usize {
        if self.seen.is_some() {
            return datums_heap_bytes(args);
        }
        match (&self.acc, args) {
            (Accumulator::Value(_), [value, ..]) => datum_heap_bytes(value),
            (Accumulator::Joined(Some((text, _)), _), [value, separator, ..]) => {
                let wanted = text.len() + bytes_of(value).len() + bytes_of(separator).len();
                if wanted <= text.capacity() {
                    return 0;
                }
                wanted.max(2 * text.capacity())
            }
            (Accumulator::Joined(None, _), _) => datums_heap_bytes(args),
            (Accumulator::Arrays(stack), [value, ..]) => {
                let more = value.as_array().unwrap_or_default().len();
                let wanted = stack.items().len() + more;
                match wanted <= stack.items().capacity() {
                    true => datum_heap_bytes(value),
                    false => 2 * wanted * size_of::<Datum>() + datum_heap_bytes(value),
                }
            }
            (Accumulator::Items(items), [value, ..]) => {
                let more = match items.len() == items.capacity() {
                    true => 2 * items.capacity() * size_of::<Datum>(),
                    false => 0,
                };
                more + datums_heap_bytes(args).max(datum_heap_bytes(value))
            }
            _ => 0,
        }
    }

    /// Takes the arguments of one row in.
    ///
    /// # Errors
    /// 22003 if a sum overflows its type.
    pub fn update(&mut self, args: &[Datum]) -> Result<(), SqlError> {
        if self.func.skips_nulls() && args.first().is_none_or(Datum::is_null) {
            return Ok(());
        }
        if let Some(seen) = &mut self.seen {
            self.heap_bytes += seen.insert(args);
            return Ok(());
        }
        self.accumulate(args)
    }

    fn accumulate(&mut self, args: &[Datum]) -> Result<(), SqlError> {
        match (&mut self.acc, args) {
            (Accumulator::Count(count), _) => *count += 1,
            (Accumulator::Int(sum, count), [Datum::Int(value), ..]) => {
                *sum += i128::from(*value);
                *count += 1;
            }
            (Accumulator::Decimal(sum, count), [value, ..]) => {
                *sum = numeric::add(sum, value)?;
                *count += 1;
                self.heap_bytes = datum_heap_bytes(sum);
            }
            (Accumulator::Float(sum, count), [Datum::Float(value), ..]) => {
                *sum = add_floats(*sum, *value)?;
                *count += 1;
            }
            (Accumulator::Interval(sum, count), [Datum::Interval(value), ..]) => {
                *sum = datetime::sum(*sum, *value)?;
                *count += 1;
            }
            (Accumulator::Value(so_far), [value, ..]) => {
                if keep_new(self.func, so_far, value) {
                    self.heap_bytes = datum_heap_bytes(value);
                    *so_far = value.clone();
                } else if self.func == AggFunc::RangeIntersect {
                    *so_far = range::common(so_far, value);
                    self.heap_bytes = datum_heap_bytes(so_far);
                } else {
                    combine_bits(self.func, so_far, value)?;
                }
            }
            (Accumulator::Joined(joined, is_text), [value, separator, ..]) => {
                *is_text = matches!(value, Datum::Text(_));
                let (value, separator) = (bytes_of(value), bytes_of(separator));
                match joined {
                    None => *joined = Some((value.to_vec(), separator.to_vec())),
                    Some((text, _)) => {
                        checked_length(text.len() + separator.len() + value.len())?;
                        text.extend_from_slice(separator);
                        text.extend_from_slice(value);
                    }
                }
                if let Some((text, first)) = joined {
                    self.heap_bytes = heap_bytes(text.capacity()) + heap_bytes(first.capacity());
                }
            }
            (Accumulator::Items(items), [value, ..]) => {
                let more = json::items(self.func, args)?.unwrap_or_else(|| vec![value.clone()]);
                let before = heap_bytes(items.capacity() * size_of::<Datum>());
                checked_length((items.len() + more.len()) * size_of::<Datum>())?;
                self.heap_bytes += datums_heap_bytes(&more);
                items.extend(more);
                let after = heap_bytes(items.capacity() * size_of::<Datum>());
                self.heap_bytes += after - before;
            }
            (Accumulator::Arrays(stack), [value, ..]) => {
                let more = value.as_array().unwrap_or_default();
                self.heap_bytes += stacked(stack, more, |stack| stack.accumulate(value))?;
            }
            (Accumulator::Spread(spread), [value, ..]) => spread.update(value)?,
            (Accumulator::Pairs(_), [_, Datum::Null]) => {}
            (Accumulator::Pairs(pairs), [y, x, ..]) => pairs.update(y, x)?,
            (_, args) => unreachable!("{:?} was bound to {args:?}", self.func),
        }
        Ok(())
    }

    /// Takes the arguments of one row out again that were taken in before. Only of aggregates that
    /// can do so ([`AggFunc::takes_out`]).
    pub fn take_out(&mut self, args: &[Datum]) {
        if self.func.skips_nulls() && args.first().is_none_or(Datum::is_null) {
            return;
        }
        match (&mut self.acc, args) {
            (Accumulator::Count(count), _) => *count -= 1,
            (Accumulator::Int(sum, count), [Datum::Int(value), ..]) => {
                *sum -= i128::from(*value);
                *count -= 1;
            }
            (_, args) => unreachable!("{:?} does not take out {args:?}", self.func),
        }
    }

    /// Whether values count once.
    pub fn is_distinct(&self) -> bool {
        self.seen.is_some()
    }

    /// As [`AggState::merge`] for one part of the values of `DISTINCT`; how many there are.
    ///
    /// # Errors
    /// XX001 if they are malformed.
    pub fn merge_part(&mut self, part: &Datum) -> Result<usize, SqlError> {
        let rows = seen::decoded(part)?;
        if self
            .seen
            .as_ref()
            .is_none_or(|seen| !seen.takes(rows.width))
            && rows.rows > 0
        {
            return Err(CodecError::Malformed("list of values").into());
        }
        rows.iter().try_for_each(|row| self.update(row))?;
        Ok(rows.rows as usize)
    }

    /// Values of `DISTINCT` that have not been taken into the result.
    pub fn seen_count(&self) -> usize {
        self.seen.as_ref().map_or(0, |seen| seen.len())
    }

    /// Takes about `most` values of `DISTINCT` into the result, when all of them have come. Gives
    /// how much work that was; [`AggState::finish`] takes those that are left. The limit lets other
    /// work of the shard have its turn.
    ///
    /// # Errors
    /// As [`AggState::finish`].
    pub fn fold(&mut self, most: usize) -> Result<usize, SqlError> {
        let Some(mut seen) = self.seen.take() else {
            return Ok(0);
        };
        let (mut done, mut result) = (0, Ok(1));
        while done < most
            && let Ok(some) = result
            && some > 0
        {
            result = seen.take(|values| self.accumulate(values));
            done += result.as_ref().map_or(0, |some| *some);
        }
        // After an error they are forgotten bit by bit.
        self.seen = Some(seen);
        result.map(|_| done)
    }

    /// Forgets at least `most` values of `DISTINCT` of a state that is of no use any more.
    pub fn forget(&mut self, most: usize) {
        if let Some(seen) = &mut self.seen {
            seen.forget(most);
        }
    }

    /// The values that [`AggState::merge`] of another state takes: [`AggFunc::partial_width`] of
    /// them.
    ///
    /// # Errors
    /// 22003 if an integer sum needs more than 38 digits.
    pub fn partial(self) -> Result<Vec<Datum>, SqlError> {
        if let Some(seen) = self.seen {
            return Ok(vec![seen.encoded().into()]);
        }
        let average = matches!(self.func, AggFunc::Avg(_));
        let with_count = |sum: Datum, count: i64| {
            let sum = if count == 0 { Datum::Null } else { sum };
            if average {
                vec![sum, Datum::Int(count)]
            } else {
                vec![sum]
            }
        };
        Ok(match self.acc {
            Accumulator::Count(count) => vec![Datum::Int(count)],
            Accumulator::Value(value) => vec![value],
            Accumulator::Int(sum, count) => with_count(Datum::Decimal(decimal_of(sum)?), count),
            Accumulator::Decimal(sum, count) => with_count(sum, count),
            Accumulator::Float(sum, count) => with_count(Datum::Float(sum), count),
            Accumulator::Interval(sum, count) => with_count(Datum::Interval(sum), count),
            Accumulator::Joined(None, _) => vec![Datum::Null, Datum::Null],
            Accumulator::Joined(Some((text, separator)), is_text) => {
                vec![joined(text, is_text), joined(separator, is_text)]
            }
            Accumulator::Items(items) => vec![items.into()],
            Accumulator::Arrays(stack) => vec![stack.finish()?],
            Accumulator::Spread(spread) => spread.partial(),
            Accumulator::Pairs(pairs) => pairs.partial(),
        })
    }

    /// Takes the partial result of another state in.
    ///
    /// # Errors
    /// 22003 if a sum overflows, XX001 if the values are malformed.
    pub fn merge(&mut self, partial: &[Datum]) -> Result<(), SqlError> {
        if self.seen.is_some() {
            for part in partial[0].as_array().unwrap_or(&[]) {
                self.merge_part(part)?;
            }
            return Ok(());
        }
        let more = partial.get(1).and_then(Datum::as_int).unwrap_or(1);
        match (&mut self.acc, &partial[0]) {
            (Accumulator::Spread(spread), _) => spread.merge(partial)?,
            (Accumulator::Pairs(pairs), _) => pairs.merge(partial)?,
            (_, Datum::Null) => {}
            (Accumulator::Count(count), Datum::Int(value)) => *count += value,
            (Accumulator::Int(sum, count), Datum::Decimal(value)) => {
                *sum += value.unscaled();
                *count += more;
            }
            (Accumulator::Decimal(sum, count), value) => {
                *sum = numeric::add(sum, value)?;
                *count += more;
                self.heap_bytes = datum_heap_bytes(sum);
            }
            (Accumulator::Float(sum, count), Datum::Float(value)) => {
                *sum = add_floats(*sum, *value)?;
                *count += more;
            }
            (Accumulator::Interval(sum, count), Datum::Interval(value)) => {
                *sum = datetime::sum(*sum, *value)?;
                *count += more;
            }
            (Accumulator::Items(items), Datum::Array(more)) => {
                let before = heap_bytes(items.capacity() * size_of::<Datum>());
                checked_length((items.len() + more.len()) * size_of::<Datum>())?;
                items.extend(more.iter().cloned());
                let after = heap_bytes(items.capacity() * size_of::<Datum>());
                self.heap_bytes += datums_heap_bytes(more) + after - before;
            }
            (Accumulator::Arrays(stack), more) => {
                let items = more.as_array().unwrap_or_default();
                self.heap_bytes += stacked(stack, items, |stack| stack.merge(more))?;
            }
            // As values of their own.
            (Accumulator::Value(_) | Accumulator::Joined(..), _) => self.accumulate(partial)?,
            (_, other) => unreachable!("{:?} has no partial result {other:?}", self.func),
        }
        Ok(())
    }

    /// The result over everything taken in.
    ///
    /// # Errors
    /// 22003 if it does not fit its type.
    pub fn finish(mut self) -> Result<Datum, SqlError> {
        self.fold(usize::MAX)?;
        let counted = match &self.acc {
            Accumulator::Int(_, count)
            | Accumulator::Decimal(_, count)
            | Accumulator::Float(_, count)
            | Accumulator::Interval(_, count) => *count,
            _ => 1,
        };
        if counted == 0 {
            return Ok(Datum::Null);
        }
        let average = matches!(self.func, AggFunc::Avg(_));
        Ok(match self.acc {
            Accumulator::Count(count) => Datum::Int(count),
            Accumulator::Value(value) => value,
            Accumulator::Int(sum, count) if average => numeric::div(
                &Datum::Decimal(decimal_of(sum)?),
                &Decimal::from(count).into(),
            )?,
            Accumulator::Int(sum, _) if self.func == AggFunc::Sum(SumKind::Int) => {
                let sum = i64::try_from(sum).map_err(|_| out_of_range(Type::Int8))?;
                checked_int(sum, Type::Int8)?
            }
            Accumulator::Int(sum, _) => Datum::Decimal(decimal_of(sum)?),
            Accumulator::Decimal(sum, count) if average => {
                numeric::div(&sum, &Decimal::from(count).into())?
            }
            Accumulator::Decimal(sum, _) => sum,
            Accumulator::Float(sum, count) if average => Datum::Float(sum / count as f64),
            Accumulator::Float(sum, _) if self.func == AggFunc::Sum(SumKind::Real) => {
                Datum::Float(functions::cast::to_real(sum)?)
            }
            Accumulator::Float(sum, _) => Datum::Float(sum),
            Accumulator::Interval(sum, count) if average => {
                let count = count as f64;
                Datum::Interval(datetime::scale(sum, |part| part / count)?)
            }
            Accumulator::Interval(sum, _) => Datum::Interval(sum),
            Accumulator::Joined(None, _) => Datum::Null,
            Accumulator::Joined(Some((text, _)), is_text) => joined(text, is_text),
            Accumulator::Arrays(stack) => stack.finish()?,
            Accumulator::Items(items) if items.is_empty() => Datum::Null,
            Accumulator::Items(items) if self.func == AggFunc::RangeUnion => range::united(&items),
            Accumulator::Items(items) => match json::finish(self.func, &items)? {
                Some(value) => value,
                None => items.into(),
            },
            Accumulator::Spread(spread) => spread.finish(self.func)?,
            Accumulator::Pairs(pairs) => pairs.finish(self.func),
        })
    }
}

/// Puts items on a stack; bytes by which it grew.
fn stacked(
    stack: &mut Stack,
    more: &[Datum],
    push: impl Fn(&mut Stack) -> Result<(), SqlError>,
) -> Result<usize, SqlError> {
    let room = |stack: &Stack| heap_bytes(stack.items().capacity() * size_of::<Datum>());
    let before = room(stack);
    checked_length((stack.items().len() + more.len()) * size_of::<Datum>())?;
    push(stack)?;
    Ok(datums_heap_bytes(more) + room(stack) - before)
}

/// Whether `value` takes the place of the value so far.
fn keep_new(func: AggFunc, so_far: &Datum, value: &Datum) -> bool {
    if so_far.is_null() {
        return true;
    }
    match func {
        AggFunc::Min => value.compare(so_far).is_lt(),
        AggFunc::Max => value.compare(so_far).is_gt(),
        AggFunc::BoolAnd => *value == Datum::Bool(false),
        AggFunc::BoolOr => *value == Datum::Bool(true),
        _ => false,
    }
}

fn combine_bits(func: AggFunc, so_far: &mut Datum, value: &Datum) -> Result<(), SqlError> {
    let bits = match func {
        AggFunc::BitAnd => BitFunc::And,
        AggFunc::BitOr => BitFunc::Or,
        AggFunc::BitXor => BitFunc::Xor,
        _ => return Ok(()),
    };
    match (so_far, value, bits) {
        (Datum::Int(so_far), Datum::Int(value), BitFunc::And) => *so_far &= value,
        (Datum::Int(so_far), Datum::Int(value), BitFunc::Or) => *so_far |= value,
        (Datum::Int(so_far), Datum::Int(value), _) => *so_far ^= value,
        (Datum::Bits(so_far), Datum::Bits(value), _) => {
            *so_far = functions::bits::combined(bits, so_far, value)?;
        }
        _ => {}
    }
    Ok(())
}

fn joined(bytes: Vec<u8>, is_text: bool) -> Datum {
    match is_text {
        true => String::from_utf8(bytes).expect("made of texts").into(),
        false => bytes.into(),
    }
}

/// The bytes of a text or bytea; those of NULL are none.
fn bytes_of(datum: &Datum) -> &[u8] {
    match datum {
        Datum::Text(text) => text.as_bytes(),
        Datum::Bytes(bytes) => bytes,
        _ => &[],
    }
}
