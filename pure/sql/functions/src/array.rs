//! Functions of arrays.

mod set;
mod stack;

pub use stack::Stack;

use super::func::ArrayFunc;
use super::percentile;
use super::string::output;
use base::grid::{DIMENSIONS_MAX, Dimension, ITEMS_MAX, Shape};
use base::{Datum, SqlError, SqlState, Type};

/// The items of argument `i`; NULL has none.
fn items(args: &[Datum], i: usize) -> &[Datum] {
    args[i].as_array().unwrap_or(&[])
}

/// The dimensions of argument `i`; NULL has none.
fn shape(args: &[Datum], i: usize) -> Shape {
    args[i].shape().unwrap_or_default()
}

/// The items of argument `i` for a longer array.
fn take(args: &mut [Datum], i: usize) -> Vec<Datum> {
    core::mem::take(&mut args[i])
        .into_items()
        .unwrap_or_default()
}

/// Equality that holds between NULLs too, as `array_remove` and its like have it.
fn same(a: &Datum, b: &Datum) -> bool {
    a.compare(b).is_eq()
}

/// Comparisons of pairs up to which items are not sorted first.
const PAIRS_MAX: usize = 4_096;

/// For each of `parts` whether it is in `whole`; NULL is in nothing.
fn each_in<'p>(whole: &'p [Datum], parts: &'p [Datum]) -> impl Iterator<Item = bool> + 'p {
    let mut sorted: Vec<&Datum> = Vec::new();
    if whole.len().saturating_mul(parts.len()) > PAIRS_MAX {
        sorted.extend(whole);
        sorted.sort_by(|a, b| a.compare(b));
    }
    parts.iter().map(move |part| {
        let found = match sorted.is_empty() {
            true => whole.iter().any(|item| same(item, part)),
            false => sorted.binary_search_by(|item| item.compare(part)).is_ok(),
        };
        found && !part.is_null()
    })
}

/// Subscript of the first item of an array with at most one dimension.
fn first_subscript(shape: Shape, refusal: &str) -> Result<i64, SqlError> {
    match shape.dimensions() {
        [] => Ok(1),
        [one] => Ok(i64::from(one.lower)),
        _ => Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, refusal)),
    }
}

const NO_SEARCH: &str = "searching for elements in multidimensional arrays is not supported";
const NO_REMOVAL: &str = "removing elements from multidimensional arrays is not supported";

/// `array_position(array, item [, start])`
fn position(args: &[Datum]) -> Result<Datum, SqlError> {
    if args[0].is_null() {
        return Ok(Datum::Null);
    }
    let first = first_subscript(shape(args, 0), NO_SEARCH)?;
    let items = items(args, 0);
    if items.is_empty() || args[1].is_null() && !items.contains(&Datum::Null) {
        return Ok(Datum::Null);
    }
    if args.get(2).is_some_and(Datum::is_null) {
        let message = "initial position must not be null";
        return Err(SqlError::new(SqlState(*b"22004"), message));
    }
    let from = args.get(2).and_then(Datum::as_int).unwrap_or(first);
    let mut places = (first..).zip(items).skip_while(|(at, _)| *at < from);
    let found = places.find(|(_, item)| same(item, &args[1]));
    Ok(found.map(|(at, _)| at).into())
}

/// Argument `i`, which the binder made an integer.
fn int(args: &[Datum], i: usize) -> i64 {
    args[i].as_int().expect("the binder passes integers")
}

/// The item with the subscripts behind the array; NULL where there is none.
fn element(args: &[Datum]) -> Datum {
    let mut subscripts = [0; DIMENSIONS_MAX];
    let subscripts = &mut subscripts[..args.len() - 1];
    for (i, subscript) in subscripts.iter_mut().enumerate() {
        *subscript = int(args, i + 1);
    }
    let place = shape(args, 0).place(subscripts);
    let found = place.and_then(|place| items(args, 0).get(place));
    found.cloned().unwrap_or(Datum::Null)
}

/// The items between bounds of the first dimensions, as far as there are any, counted from 1.
fn slice(shape: Shape, items: &[Datum], bounds: &[(i64, i64)]) -> Result<Datum, SqlError> {
    let mut kept = Vec::with_capacity(DIMENSIONS_MAX);
    if bounds.len() > shape.dimensions().len() {
        return Ok(Datum::Array(Box::default()));
    }
    for (i, one) in shape.dimensions().iter().enumerate() {
        let (first, last) = (i64::from(one.lower), i64::from(one.upper()));
        let (low, high) = bounds.get(i).copied().unwrap_or((first, last));
        let (low, high) = (low.max(first), high.min(last));
        if low > high {
            return Ok(Datum::Array(Box::default()));
        }
        kept.push(((low - first) as usize, (high - low + 1) as usize));
    }
    let dimensions = kept.iter().map(|(_, length)| Dimension::of(*length));
    let new = Shape::new(&dimensions.collect::<Vec<_>>())?;
    let mut out = Vec::with_capacity(new.items());
    let lengths = shape.dimensions().iter().map(|one| one.length as usize);
    let lengths: Vec<usize> = lengths.collect();
    copy_slice(&kept, &lengths, items, &mut out);
    Ok(Datum::shaped(new, out))
}

/// Copies what is `kept` (start and length) of each dimension.
fn copy_slice(kept: &[(usize, usize)], lengths: &[usize], items: &[Datum], out: &mut Vec<Datum>) {
    let [(start, length), inner @ ..] = kept else {
        return;
    };
    if inner.is_empty() {
        out.extend_from_slice(&items[*start..start + length]);
        return;
    }
    let size: usize = lengths[1..].iter().product();
    for part in items.chunks_exact(size).skip(*start).take(*length) {
        copy_slice(inner, &lengths[1..], part, out);
    }
}

fn positions(args: &[Datum]) -> Result<Datum, SqlError> {
    let first = first_subscript(shape(args, 0), NO_SEARCH)?;
    let found = (first..).zip(items(args, 0));
    let found = found.filter(|(_, item)| same(item, &args[1]));
    let found: Vec<Datum> = found.map(|(at, _)| Datum::Int(at)).collect();
    Ok(found.into())
}

/// The array without the last `count` of its first dimension.
fn trimmed(args: &[Datum], count: i64) -> Result<Datum, SqlError> {
    let shape = shape(args, 0);
    let first = shape.dimension(1).unwrap_or_default();
    let size = i64::from(first.length);
    if !(0..=size).contains(&count) {
        let message = format!("number of elements to trim must be between 0 and {size}");
        return Err(SqlError::new(SqlState(*b"2202E"), message));
    }
    if size == 0 {
        return Ok(Datum::Array(Box::default()));
    }
    let low = i64::from(first.lower);
    slice(shape, items(args, 0), &[(low, low + size - count - 1)])
}

/// `array || item`, `item || array`
fn with_item(args: &mut [Datum], array: usize, item: usize) -> Result<Datum, SqlError> {
    let lower = match shape(args, array).dimensions() {
        [] => 1,
        [one] => one.lower,
        _ => {
            let message = "argument must be empty or one-dimensional array";
            return Err(SqlError::new(SqlState::DATA_EXCEPTION, message));
        }
    };
    let mut items = take(args, array);
    let added = core::mem::take(&mut args[item]);
    let out_of_range = || SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, "integer out of range");
    if array < item {
        let length = i32::try_from(items.len()).map_err(|_| out_of_range())?;
        lower.checked_add(length).ok_or_else(out_of_range)?;
        items.push(added);
    } else {
        lower.checked_sub(1).ok_or_else(out_of_range)?;
        items.insert(0, added);
    }
    let mut dimension = Dimension::of(items.len());
    dimension.lower = lower;
    Ok(Datum::shaped(Shape::new(&[dimension])?, items))
}

fn incompatible(detail: &str) -> SqlError {
    let message = "cannot concatenate incompatible arrays";
    SqlError::new(SqlState::ARRAY_SUBSCRIPT, message).detail(detail)
}

/// `array || array`: side by side in the first dimension, or one as a part of the other.
fn cat(args: &mut [Datum]) -> Result<Datum, SqlError> {
    if args[0].is_null() || items(args, 0).is_empty() && !args[1].is_null() {
        return Ok(core::mem::take(&mut args[1]));
    }
    if args[1].is_null() || items(args, 1).is_empty() {
        return Ok(core::mem::take(&mut args[0]));
    }
    let (a, b) = (shape(args, 0), shape(args, 1));
    let (a, b) = (a.dimensions(), b.dimensions());
    let mut both = [Dimension::default(); DIMENSIONS_MAX];
    let count = a.len().max(b.len());
    let (longer, fits, detail) = match (a.len(), b.len()) {
        (x, y) if x == y => (
            a,
            a[1..] == b[1..],
            "Arrays with differing element dimensions are not compatible for concatenation.",
        ),
        (x, y) if x + 1 == y => (b, *a == b[1..], DIFFERING),
        (x, y) if x == y + 1 => (a, a[1..] == *b, DIFFERING),
        (x, y) => {
            return Err(incompatible(&format!(
                "Arrays of {x} and {y} dimensions are not compatible for concatenation."
            )));
        }
    };
    if !fits {
        return Err(incompatible(detail));
    }
    both[..count].copy_from_slice(longer);
    let added = match a.len() == b.len() {
        true => b[0].length,
        false => 1,
    };
    both[0].length = both[0].length.saturating_add(added);
    let shape = Shape::new(&both[..count])?;
    let mut items = take(args, 0);
    items.extend(take(args, 1));
    Ok(Datum::shaped(shape, items))
}

const DIFFERING: &str = "Arrays with differing dimensions are not compatible for concatenation.";

/// `array_remove`
fn removed(args: &[Datum]) -> Result<Datum, SqlError> {
    let lower = first_subscript(shape(args, 0), NO_REMOVAL)?;
    let kept = items(args, 0).iter().filter(|item| !same(item, &args[1]));
    let kept: Vec<Datum> = kept.cloned().collect();
    let mut dimension = Dimension::of(kept.len());
    dimension.lower = lower as i32;
    Ok(Datum::shaped(Shape::new(&[dimension])?, kept))
}

/// `array_fill(value, lengths [, lower bounds])`
fn filled(args: &mut [Datum]) -> Result<Datum, SqlError> {
    let numbers = |i: usize| -> Result<Option<Vec<i32>>, SqlError> {
        let Some(array) = args.get(i) else {
            return Ok(None);
        };
        let wrong = |message: &str| SqlError::new(SqlState::ARRAY_SUBSCRIPT, message);
        if array
            .shape()
            .is_some_and(|shape| shape.dimensions().len() > 1)
        {
            return Err(wrong("wrong number of array subscripts")
                .detail("Dimension array must be one dimensional."));
        }
        let items = array.as_array().unwrap_or_default().iter();
        let items = items.map(|item| {
            let null = "dimension values cannot be null";
            let number = item.as_int().and_then(|item| i32::try_from(item).ok());
            number.ok_or_else(|| SqlError::new(SqlState::NULL_NOT_ALLOWED, null))
        });
        items.collect::<Result<Vec<_>, _>>().map(Some)
    };
    if args[1..].iter().any(Datum::is_null) {
        let message = "dimension array or low bound array cannot be null";
        return Err(SqlError::new(SqlState::NULL_NOT_ALLOWED, message));
    }
    let lengths = numbers(1)?.unwrap_or_default();
    let lowers = numbers(2)?.unwrap_or_else(|| vec![1; lengths.len()]);
    if lengths.len() > DIMENSIONS_MAX {
        return Err(base::grid::too_many_dimensions(lengths.len()));
    }
    if lengths.len() != lowers.len() {
        let message = "wrong number of array subscripts";
        return Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT, message)
            .detail("Low bound array has different size than dimensions array."));
    }
    let dimensions = lengths.into_iter().zip(lowers);
    let dimensions = dimensions.map(|(length, lower)| Dimension { length, lower });
    let shape = Shape::new(&dimensions.collect::<Vec<_>>())?;
    let value = core::mem::take(&mut args[0]);
    let bytes = shape
        .items()
        .saturating_mul(size_of::<Datum>() + base::row::value_len(&value));
    if bytes > super::string::RESULT_BYTES_MAX {
        return Err(super::string::too_large(bytes));
    }
    Ok(Datum::shaped(shape, vec![value; shape.items()]))
}

/// Bytes of memory for which a statement is asked before a function is computed, if it may take
/// many.
#[must_use]
pub fn room(func: ArrayFunc, args: &[Datum]) -> Option<usize> {
    const ROOM_BYTES: usize = 64 << 10;
    if let ArrayFunc::SetItem | ArrayFunc::SetSlice = func {
        let bytes = set::items_after(func, args).saturating_mul(size_of::<Datum>());
        return (bytes > ROOM_BYTES).then_some(bytes);
    }
    if func != ArrayFunc::Fill {
        return None;
    }
    let lengths = items(args, 1).iter();
    let count = lengths.fold(1usize, |count, length| {
        let length = length.as_int().unwrap_or(0);
        count.saturating_mul(usize::try_from(length).unwrap_or(0))
    });
    if count > ITEMS_MAX {
        // What is too long is refused without room.
        return None;
    }
    let item = size_of::<Datum>() + base::row::value_len(&args[0]);
    let bytes = count.saturating_mul(item);
    (bytes > ROOM_BYTES).then_some(bytes)
}

/// Computes a function of arrays; NULL arguments only where it is not strict.
pub fn apply(func: ArrayFunc, args: &mut [Datum]) -> Result<Datum, SqlError> {
    Ok(match func {
        ArrayFunc::Get => element(args),
        ArrayFunc::Slice => {
            let bounds = (1..args.len()).step_by(2);
            let bounds = bounds.map(|i| (int(args, i), int(args, i + 1)));
            slice(shape(args, 0), items(args, 0), &bounds.collect::<Vec<_>>())?
        }
        ArrayFunc::Length | ArrayFunc::Upper | ArrayFunc::Lower => {
            let dimension = shape(args, 0).dimension(int(args, 1));
            let number = dimension.map(|one| match func {
                ArrayFunc::Length => one.length,
                ArrayFunc::Upper => one.upper(),
                _ => one.lower,
            });
            number.into()
        }
        ArrayFunc::NDims => match shape(args, 0).dimensions().len() {
            0 => Datum::Null,
            count => Datum::Int(count as i64),
        },
        ArrayFunc::Dims if items(args, 0).is_empty() => Datum::Null,
        ArrayFunc::Dims => shape(args, 0).bounds().into(),
        ArrayFunc::Cardinality => Datum::Int(items(args, 0).len() as i64),
        ArrayFunc::Append => with_item(args, 0, 1)?,
        ArrayFunc::Prepend => with_item(args, 1, 0)?,
        ArrayFunc::Cat => cat(args)?,
        ArrayFunc::Position => position(args)?,
        ArrayFunc::Positions if args[0].is_null() => Datum::Null,
        ArrayFunc::Positions => positions(args)?,
        ArrayFunc::Trim => return trimmed(args, int(args, 1)),
        ArrayFunc::Remove | ArrayFunc::Replace if args[0].is_null() => Datum::Null,
        ArrayFunc::Remove => removed(args)?,
        ArrayFunc::Replace => {
            let array = core::mem::take(&mut args[0]);
            let (from, to) = (&args[1], &args[2]);
            array.try_map_items(|item| {
                Ok::<_, SqlError>(match same(&item, from) {
                    true => to.clone(),
                    false => item,
                })
            })?
        }
        ArrayFunc::Fill => filled(args)?,
        ArrayFunc::SetItem => set::item(args)?,
        ArrayFunc::SetSlice => set::slice(args)?,
        ArrayFunc::Mode => percentile::mode(items(args, 0)),
        ArrayFunc::PercentileCont | ArrayFunc::PercentileDisc => {
            percentile::at_shares(func == ArrayFunc::PercentileCont, items(args, 0), &args[1])?
        }
        ArrayFunc::Contains => each_in(items(args, 0), items(args, 1))
            .all(|found| found)
            .into(),
        ArrayFunc::ContainedBy => each_in(items(args, 1), items(args, 0))
            .all(|found| found)
            .into(),
        ArrayFunc::Overlaps => each_in(items(args, 0), items(args, 1))
            .any(|found| found)
            .into(),
    })
}

/// `array_to_string(array, separator [, null])`: NULL items are left out unless they have a text.
pub fn to_string(element: Type, args: &[Datum]) -> Result<Datum, SqlError> {
    let (Some(items), Some(separator)) = (args[0].as_array(), args[1].as_str()) else {
        return Ok(Datum::Null);
    };
    let null = args.get(2).and_then(Datum::as_str);
    let mut out = String::new();
    let mut first = true;
    for item in items {
        let text = match item {
            Datum::Null => match null {
                Some(null) => null.to_string(),
                None => continue,
            },
            _ => output(element, item),
        };
        if !core::mem::replace(&mut first, false) {
            out.push_str(separator);
        }
        out.push_str(&text);
        if out.len() > super::string::RESULT_BYTES_MAX {
            return Err(super::string::too_large(out.len()));
        }
    }
    Ok(out.into())
}
