//! Text form of bit strings, and their fit to a length.

use crate::bits::Bits;
use crate::datum::Datum;
use crate::error::{SqlError, SqlState};
use alloc::format;

/// A digit for each bit, perhaps behind a `b`; or behind an `x` a digit for four bits.
pub(super) fn parse_bits(text: &str) -> Result<Bits, SqlError> {
    let (digits, each) = match text.as_bytes().first() {
        Some(b'b' | b'B') => (&text[1..], 1),
        Some(b'x' | b'X') => (&text[1..], 4),
        _ => (text, 1),
    };
    let mut made = Bits::zeros(digits.len() * each);
    for (at, digit) in digits.char_indices() {
        let value = digit.to_digit(1 << each).ok_or_else(|| {
            let kind = if each == 1 { "binary" } else { "hexadecimal" };
            let message = format!("\"{digit}\" is not a valid {kind} digit");
            SqlError::new(SqlState::INVALID_TEXT, message)
        })?;
        for bit in 0..each {
            made.set(at * each + bit, value >> (each - 1 - bit) & 1 == 1);
        }
    }
    Ok(made)
}

/// As `bit(length)` has it: cut or filled if that was asked for, else of this length.
pub(super) fn fit_bits(datum: Datum, length: u32, cut: bool) -> Result<Datum, SqlError> {
    let Datum::Bits(bits) = datum else {
        return Ok(datum);
    };
    if bits.len() == length as usize {
        return Ok(Datum::Bits(bits));
    }
    if cut {
        return Ok(Datum::Bits(bits.resized(length as usize)));
    }
    let message = format!(
        "bit string length {} does not match type bit({length})",
        bits.len()
    );
    Err(SqlError::new(SqlState(*b"22026"), message))
}

/// As `bit varying(length)` has it.
pub(super) fn fit_varying(datum: Datum, length: u32, cut: bool) -> Result<Datum, SqlError> {
    let Datum::Bits(bits) = datum else {
        return Ok(datum);
    };
    if bits.len() <= length as usize {
        return Ok(Datum::Bits(bits));
    }
    if cut {
        return Ok(Datum::Bits(bits.resized(length as usize)));
    }
    let message = format!("bit string too long for type bit varying({length})");
    Err(SqlError::new(SqlState::STRING_TRUNCATION, message))
}
