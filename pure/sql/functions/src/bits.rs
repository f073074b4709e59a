//! Functions and operators of bit strings.

use crate::func::BitFunc;
use base::bits::BITS_MAX;
use base::{Bits, Datum, SqlError, SqlState};

/// Bits that are compared in a search, at most: some tenths of a second.
const SEARCH_MAX: usize = 1 << 28;
/// Results of more bytes are asked room for.
const ROOM_BYTES: usize = 64 << 10;

fn int(args: &[Datum], i: usize) -> i64 {
    args[i].as_int().expect("the binder passes an integer")
}

fn bits(args: &[Datum], i: usize) -> &Bits {
    match &args[i] {
        Datum::Bits(bits) => bits,
        other => unreachable!("the binder passes bits, not {other:?}"),
    }
}

/// Bytes for which a statement is asked before the result is made, if it may be long.
pub fn room(args: &[Datum]) -> Option<usize> {
    let bytes = args.iter().map(|arg| match arg {
        Datum::Bits(bits) => bits.bytes().len(),
        _ => 0,
    });
    Some(bytes.sum()).filter(|bytes| *bytes > ROOM_BYTES)
}

/// Computes a function of bit strings.
///
/// # Errors
/// 22026 for operands of different lengths, 2202E and 22011 for places that are not there, 54000
/// for a result that is too long.
pub fn apply(func: BitFunc, args: &[Datum]) -> Result<Datum, SqlError> {
    let a = bits(args, 0);
    Ok(Datum::Bits(match func {
        BitFunc::Length => return Ok(Datum::Int(a.len() as i64)),
        BitFunc::OctetLength => return Ok(Datum::Int(a.bytes().len() as i64)),
        BitFunc::Count => {
            let counts = a.bytes().iter().map(|byte| i64::from(byte.count_ones()));
            return Ok(Datum::Int(counts.sum()));
        }
        BitFunc::Position => return position(a, bits(args, 1)).map(Datum::Int),
        BitFunc::GetBit => {
            let at = place(int(args, 1), a)?;
            return Ok(Datum::Int(a.get(at).into()));
        }
        BitFunc::SetBit => {
            let at = place(int(args, 1), a)?;
            let bit = int(args, 2);
            if !(0..=1).contains(&bit) {
                let message = "new bit must be 0 or 1";
                return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
            }
            let mut changed = a.clone();
            changed.set(at, bit == 1);
            changed
        }
        BitFunc::Not => a.map(|_, byte| !byte),
        BitFunc::And | BitFunc::Or | BitFunc::Xor => combined(func, a, bits(args, 1))?,
        BitFunc::ShiftLeft => shifted(a, int(args, 1)),
        BitFunc::ShiftRight => shifted(a, -int(args, 1)),
        BitFunc::Concat => joined(a, bits(args, 1))?,
        BitFunc::Substring => substring(a, int(args, 1), args.get(2).and_then(Datum::as_int))?,
        BitFunc::Overlay => overlay(args)?,
    }))
}

/// Both strings bit by bit.
///
/// # Errors
/// 22026 if one is longer.
pub fn combined(func: BitFunc, a: &Bits, b: &Bits) -> Result<Bits, SqlError> {
    let (name, with): (_, fn(u8, u8) -> u8) = match func {
        BitFunc::And => ("AND", |a, b| a & b),
        BitFunc::Or => ("OR", |a, b| a | b),
        _ => ("XOR", |a, b| a ^ b),
    };
    if a.len() != b.len() {
        let message = format!("cannot {name} bit strings of different sizes");
        return Err(SqlError::new(SqlState(*b"22026"), message));
    }
    let other = b.bytes();
    Ok(a.map(|at, byte| with(byte, other[at])))
}

/// A place in the string.
fn place(at: i64, bits: &Bits) -> Result<usize, SqlError> {
    let size = bits.len() as i64;
    if (0..size).contains(&at) {
        return Ok(at as usize);
    }
    let message = format!("bit index {at} out of valid range (0..{})", size - 1);
    Err(SqlError::new(SqlState(*b"2202E"), message))
}

/// So many places to the left; to the right if negative.
fn shifted(a: &Bits, by: i64) -> Bits {
    let size = by.unsigned_abs() as usize;
    if size >= a.len() {
        Bits::zeros(a.len())
    } else if by < 0 {
        a.shifted_right(size)
    } else {
        a.shifted_left(size)
    }
}

fn joined(a: &Bits, b: &Bits) -> Result<Bits, SqlError> {
    if a.len() + b.len() > BITS_MAX as usize {
        let message = format!("bit string length exceeds the maximum allowed ({BITS_MAX})");
        return Err(SqlError::new(SqlState(*b"54000"), message));
    }
    Ok(a.joined(b))
}

/// `length` bits from place `from`, counted from 1; places before the string are empty.
fn substring(a: &Bits, from: i64, length: Option<i64>) -> Result<Bits, SqlError> {
    let size = a.len() as i64;
    let end = match length {
        None => size,
        Some(length) if length < 0 => {
            let message = "negative substring length not allowed";
            return Err(SqlError::new(SqlState(*b"22011"), message));
        }
        Some(length) => from.saturating_sub(1).saturating_add(length).clamp(0, size),
    };
    let start = from.saturating_sub(1).clamp(0, size);
    Ok(a.part(start as usize, end.max(start) as usize))
}

/// The place from 1 at which `wanted` is found first; 0 if nowhere, or in no bits.
fn position(a: &Bits, wanted: &Bits) -> Result<i64, SqlError> {
    if a.is_empty() || wanted.len() > a.len() {
        return Ok(0);
    }
    let starts = a.len() - wanted.len() + 1;
    if starts.saturating_mul(wanted.len()) > SEARCH_MAX {
        let message = "position of so many bits in so many is not supported";
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT, message));
    }
    let is_at = |start: usize| (0..wanted.len()).all(|at| a.get(start + at) == wanted.get(at));
    let found = (0..=a.len() - wanted.len()).find(|start| is_at(*start));
    Ok(found.map_or(0, |start| start as i64 + 1))
}

/// The string with a part of it replaced.
fn overlay(args: &[Datum]) -> Result<Bits, SqlError> {
    let (a, new, from) = (bits(args, 0), bits(args, 1), int(args, 2));
    let length = args.get(3).map_or(new.len() as i64, |_| int(args, 3));
    if from <= 0 {
        let message = "negative substring length not allowed";
        return Err(SqlError::new(SqlState(*b"22011"), message));
    }
    let behind = from + length;
    if i32::try_from(behind).is_err() {
        let message = "integer out of range";
        return Err(SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message));
    }
    let head = substring(a, 1, Some(from - 1))?;
    joined(&joined(&head, new)?, &substring(a, behind, None)?)
}
