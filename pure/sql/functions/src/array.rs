//! Functions of arrays (one dimension, lower bound 1).

use super::func::ArrayFunc;
use super::percentile;
use super::string::output;
use base::{Datum, SqlError, SqlState, Type};

/// The items of argument `i`; NULL has none.
fn items(args: &[Datum], i: usize) -> &[Datum] {
    args[i].as_array().unwrap_or(&[])
}

/// The items of argument `i` for a longer array.
fn take(args: &mut [Datum], i: usize) -> Vec<Datum> {
    match core::mem::take(&mut args[i]) {
        Datum::Array(items) => items.into_vec(),
        _ => Vec::new(),
    }
}

/// Equality that holds between NULLs too, as `array_remove` and its like have it.
fn same(a: &Datum, b: &Datum) -> bool {
    a.compare(b).is_eq()
}

/// Whether `part` is in `whole`; NULL is in nothing.
fn contains(whole: &[Datum], part: &Datum) -> bool {
    !part.is_null() && whole.iter().any(|item| same(item, part))
}

/// `array_position(array, item [, start])`
fn position(args: &[Datum]) -> Result<Datum, SqlError> {
    if args[0].is_null() || items(args, 0).is_empty() {
        return Ok(Datum::Null);
    }
    let items = items(args, 0);
    if args[1].is_null() && !items.contains(&Datum::Null) {
        return Ok(Datum::Null);
    }
    if args.get(2).is_some_and(Datum::is_null) {
        let message = "initial position must not be null";
        return Err(SqlError::new(SqlState(*b"22004"), message));
    }
    let from = args.get(2).and_then(Datum::as_int).unwrap_or(1).max(1) as usize - 1;
    let mut rest = items.iter().enumerate().skip(from);
    let found = rest.find(|(_, item)| same(item, &args[1]));
    Ok(found.map(|(at, _)| at as i64 + 1).into())
}

/// Argument `i`, which the binder made an integer.
fn int(args: &[Datum], i: usize) -> i64 {
    args[i].as_int().expect("the binder passes integers")
}

/// The item at a position, from 1; NULL where there is none.
fn element(items: &[Datum], at: i64) -> Datum {
    let index = at.checked_sub(1).and_then(|at| usize::try_from(at).ok());
    let found = index.and_then(|index| items.get(index));
    found.cloned().unwrap_or(Datum::Null)
}

/// The items at the positions `low` to `high`, from 1, as far as there are any.
fn slice(items: &[Datum], low: i64, high: i64) -> Datum {
    let kept = low.max(1) - 1..high.clamp(0, items.len() as i64);
    let kept = if kept.is_empty() {
        0..0
    } else {
        kept.start as usize..kept.end as usize
    };
    items[kept].to_vec().into()
}

fn positions(items: &[Datum], wanted: &Datum) -> Datum {
    let found = items
        .iter()
        .enumerate()
        .filter(|(_, item)| same(item, wanted));
    let found: Vec<Datum> = found.map(|(at, _)| Datum::Int(at as i64 + 1)).collect();
    found.into()
}

/// The items without the last `count`.
fn trimmed(items: &[Datum], count: i64) -> Result<Datum, SqlError> {
    let size = items.len() as i64;
    if !(0..=size).contains(&count) {
        let message = format!("number of elements to trim must be between 0 and {size}");
        return Err(SqlError::new(SqlState(*b"2202E"), message));
    }
    Ok(slice(items, 1, size - count))
}

/// Computes a function of arrays; NULL arguments only where it is not strict.
pub fn apply(func: ArrayFunc, args: &mut [Datum]) -> Result<Datum, SqlError> {
    Ok(match func {
        ArrayFunc::Get => element(items(args, 0), int(args, 1)),
        ArrayFunc::Slice => slice(items(args, 0), int(args, 1), int(args, 2)),
        ArrayFunc::Length | ArrayFunc::Upper => match items(args, 0).len() {
            0 => Datum::Null,
            size if int(args, 1) == 1 => Datum::Int(size as i64),
            _ => Datum::Null,
        },
        ArrayFunc::Lower if items(args, 0).is_empty() || int(args, 1) != 1 => Datum::Null,
        ArrayFunc::Lower => Datum::Int(1),
        ArrayFunc::NDims if items(args, 0).is_empty() => Datum::Null,
        ArrayFunc::NDims => Datum::Int(1),
        ArrayFunc::Dims => match items(args, 0).len() {
            0 => Datum::Null,
            size => format!("[1:{size}]").into(),
        },
        ArrayFunc::Cardinality => Datum::Int(items(args, 0).len() as i64),
        ArrayFunc::Append => {
            let mut array = take(args, 0);
            array.push(core::mem::take(&mut args[1]));
            array.into()
        }
        ArrayFunc::Prepend => {
            let mut array = take(args, 1);
            array.insert(0, core::mem::take(&mut args[0]));
            array.into()
        }
        ArrayFunc::Cat if args[0].is_null() => core::mem::take(&mut args[1]),
        ArrayFunc::Cat => {
            let mut array = take(args, 0);
            array.extend(take(args, 1));
            array.into()
        }
        ArrayFunc::Position => position(args)?,
        ArrayFunc::Positions if args[0].is_null() => Datum::Null,
        ArrayFunc::Positions => positions(items(args, 0), &args[1]),
        ArrayFunc::Trim => return trimmed(items(args, 0), int(args, 1)),
        ArrayFunc::Remove | ArrayFunc::Replace if args[0].is_null() => Datum::Null,
        ArrayFunc::Remove => {
            let kept = items(args, 0).iter().filter(|item| !same(item, &args[1]));
            kept.cloned().collect::<Vec<_>>().into()
        }
        ArrayFunc::Replace => {
            let (from, to) = (&args[1], &args[2]);
            let changed = items(args, 0)
                .iter()
                .map(|item| if same(item, from) { to } else { item });
            changed.cloned().collect::<Vec<_>>().into()
        }
        ArrayFunc::Mode => percentile::mode(items(args, 0)),
        ArrayFunc::PercentileCont | ArrayFunc::PercentileDisc => {
            percentile::at_shares(func == ArrayFunc::PercentileCont, items(args, 0), &args[1])?
        }
        ArrayFunc::Contains => items(args, 1)
            .iter()
            .all(|part| contains(items(args, 0), part))
            .into(),
        ArrayFunc::ContainedBy => items(args, 0)
            .iter()
            .all(|part| contains(items(args, 1), part))
            .into(),
        ArrayFunc::Overlaps => items(args, 1)
            .iter()
            .any(|part| contains(items(args, 0), part))
            .into(),
    })
}

/// `array_to_string(array, separator [, null])`: NULL items are left out unless they have a text.
pub fn to_string(element: Type, args: &[Datum]) -> Result<Datum, SqlError> {
    let (Datum::Array(items), Some(separator)) = (&args[0], args[1].as_str()) else {
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
