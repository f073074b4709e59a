//! Items and parts of arrays that are set.

use crate::func::{ArrayFunc, OPEN_HIGH, OPEN_LOW};
use base::grid::{DIMENSIONS_MAX, Dimension, ITEMS_MAX, Shape};
use base::{Datum, SqlError, SqlState};

fn wrong(message: &str) -> SqlError {
    SqlError::new(SqlState::ARRAY_SUBSCRIPT, message)
}

fn too_large() -> SqlError {
    let message = format!("array size exceeds the maximum allowed ({ITEMS_MAX})");
    SqlError::new(SqlState::PROGRAM_LIMIT, message)
}

/// The subscripts behind the array and the value.
fn subscripts(args: &[Datum]) -> Result<Vec<i64>, SqlError> {
    let numbers = args[2..].iter().map(|arg| {
        arg.as_int().ok_or_else(|| {
            let message = "array subscript in assignment must not be null";
            SqlError::new(SqlState::NULL_NOT_ALLOWED, message)
        })
    });
    numbers.collect()
}

/// How many items the array has afterwards, at most.
pub(super) fn items_after(func: ArrayFunc, args: &[Datum]) -> usize {
    let shape = args[0].shape().unwrap_or_default();
    let own = shape.items();
    let bounds: Vec<i64> = args[2..].iter().filter_map(Datum::as_int).collect();
    let reach = |low: i64, high: i64| {
        let (first, last) = match shape.dimensions() {
            [one] => (i64::from(one.lower), i64::from(one.upper())),
            _ => (low, high),
        };
        let length = i128::from(high.max(last)) - i128::from(low.min(first)) + 1;
        let length = usize::try_from(length).ok();
        // What is too long is refused without room.
        length.filter(|length| *length <= ITEMS_MAX).unwrap_or(0)
    };
    match (func, bounds.as_slice()) {
        (ArrayFunc::SetItem, [at]) => reach(*at, *at).max(own),
        (ArrayFunc::SetSlice, [OPEN_LOW, _] | [_, OPEN_HIGH]) => own,
        (ArrayFunc::SetSlice, [low, high]) => reach(*low, *high).max(own),
        _ => own.max(args[1].as_array().map_or(1, <[Datum]>::len)),
    }
}

/// The only dimension of an array, with room from `low` to `high`, and its items.
fn extended(
    one: Dimension,
    items: Vec<Datum>,
    (low, high): (i64, i64),
) -> Result<(Dimension, Vec<Datum>), SqlError> {
    let before = (i64::from(one.lower) - low).max(0);
    let behind = (high - i64::from(one.upper())).max(0);
    let length = items.len() as i64 + before + behind;
    if length > ITEMS_MAX as i64 {
        return Err(too_large());
    }
    let mut all = vec![Datum::Null; before as usize];
    all.extend(items);
    all.resize(length as usize, Datum::Null);
    let lower = low.min(i64::from(one.lower));
    let dimension = Dimension {
        length: length as i32,
        lower: i32::try_from(lower).map_err(|_| too_large())?,
    };
    Ok((dimension, all))
}

/// `array[subscripts] = value`
pub(super) fn item(args: &mut [Datum]) -> Result<Datum, SqlError> {
    let at = subscripts(args)?;
    let shape = args[0].shape().unwrap_or_default();
    let value = core::mem::take(&mut args[1]);
    let items = super::take(args, 0);
    match shape.dimensions() {
        [] => {
            let lower = |at: &i64| Dimension {
                length: 1,
                lower: *at as i32,
            };
            let shape = Shape::new(&at.iter().map(lower).collect::<Vec<_>>())?;
            Ok(Datum::shaped(shape, vec![value]))
        }
        all if all.len() != at.len() => Err(wrong("wrong number of array subscripts")),
        [one] => {
            let (one, mut items) = extended(*one, items, (at[0], at[0]))?;
            items[(at[0] - i64::from(one.lower)) as usize] = value;
            Ok(Datum::shaped(Shape::new(&[one])?, items))
        }
        _ => {
            let place = shape.place(&at);
            let place = place.ok_or_else(|| wrong("array subscript out of range"))?;
            let mut items = items;
            items[place] = value;
            Ok(Datum::shaped(shape, items))
        }
    }
}

/// `array[low:high]... = values`; nothing is changed if there are no values.
pub(super) fn slice(args: &mut [Datum]) -> Result<Datum, SqlError> {
    let bounds = subscripts(args)?;
    if args[1].is_null() {
        return Ok(core::mem::take(&mut args[0]));
    }
    let bounds: Vec<(i64, i64)> = bounds.chunks_exact(2).map(|two| (two[0], two[1])).collect();
    let shape = args[0].shape().unwrap_or_default();
    let values = super::take(args, 1);
    let items = super::take(args, 0);
    if shape.dimensions().is_empty() {
        return new_slice(&bounds, values);
    }
    if shape.dimensions().len() < bounds.len() {
        return Err(wrong("wrong number of array subscripts"));
    }
    let closed = |(one, (low, high)): (&Dimension, &(i64, i64))| {
        let low = if *low == OPEN_LOW {
            one.lower.into()
        } else {
            *low
        };
        let high = if *high == OPEN_HIGH {
            one.upper().into()
        } else {
            *high
        };
        match low > high {
            true => Err(wrong("upper bound cannot be less than lower bound")),
            false => Ok((low, high)),
        }
    };
    let given = shape.dimensions().iter().zip(&bounds).map(closed);
    let mut bounds = given.collect::<Result<Vec<_>, _>>()?;
    let (shape, mut items) = match shape.dimensions() {
        [one] => {
            let (one, items) = extended(*one, items, bounds[0])?;
            (Shape::new(&[one])?, items)
        }
        all => {
            for (at, one) in all.iter().enumerate() {
                let own = (i64::from(one.lower), i64::from(one.upper()));
                let (low, high) = *bounds.get(at).unwrap_or(&own);
                if low < own.0 || high > own.1 {
                    return Err(wrong("array subscript out of range"));
                }
                if at >= bounds.len() {
                    bounds.push(own);
                }
            }
            (shape, items)
        }
    };
    let count = bounds.iter().map(|(low, high)| (high - low + 1) as usize);
    if values.len() < count.product() {
        return Err(wrong("source array too small"));
    }
    let mut at = [0; DIMENSIONS_MAX];
    let at = &mut at[..bounds.len()];
    for (place, (low, _)) in at.iter_mut().zip(&bounds) {
        *place = *low;
    }
    put(shape, &mut items, &bounds, values)?;
    Ok(Datum::shaped(shape, items))
}

/// Puts values where the bounds say, in the order of the items.
fn put(
    shape: Shape,
    items: &mut [Datum],
    bounds: &[(i64, i64)],
    values: Vec<Datum>,
) -> Result<(), SqlError> {
    let mut at = [0; DIMENSIONS_MAX];
    let at = &mut at[..bounds.len()];
    for (place, (low, _)) in at.iter_mut().zip(bounds) {
        *place = *low;
    }
    'values: for value in values {
        let place = shape.place(at).ok_or_else(too_large)?;
        items[place] = value;
        // The last subscript runs first.
        for (subscript, (low, high)) in at.iter_mut().zip(bounds).rev() {
            if *subscript < *high {
                *subscript += 1;
                continue 'values;
            }
            *subscript = *low;
        }
        break;
    }
    Ok(())
}

/// A part of an array without items.
fn new_slice(bounds: &[(i64, i64)], mut values: Vec<Datum>) -> Result<Datum, SqlError> {
    if bounds
        .iter()
        .any(|(low, high)| *low == OPEN_LOW || *high == OPEN_HIGH)
    {
        return Err(
            wrong("array slice subscript must provide both boundaries").detail(
                "When assigning to a slice of an empty array value, slice boundaries must be fully \
             specified.",
            ),
        );
    }
    let dimensions = bounds.iter().map(|(low, high)| {
        let length = i32::try_from(high - low + 1)
            .ok()
            .filter(|length| *length >= 0);
        Ok(Dimension {
            length: length.ok_or_else(too_large)?,
            lower: *low as i32,
        })
    });
    let shape = Shape::new(&dimensions.collect::<Result<Vec<_>, SqlError>>()?)?;
    if values.len() < shape.items() {
        return Err(wrong("source array too small"));
    }
    values.truncate(shape.items());
    Ok(Datum::shaped(shape, values))
}
