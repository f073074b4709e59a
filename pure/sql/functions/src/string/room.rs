//! How long the result of a function may be, before it is made.

use super::super::func::TextFunc;
use super::{checked, quote};
use base::{Datum, SqlError};

/// Results of more bytes are asked room for.
const ROOM_BYTES: usize = 64 << 10;
/// Memory of an item of an array of short texts.
const ITEM_BYTES: usize = size_of::<Datum>() + 32;

/// Bytes for which a statement is asked before the result of a function is made, if the result may
/// be long.
///
/// # Errors
/// 54000 if the value would be too long.
pub fn wanted(func: TextFunc, args: &[Datum]) -> Result<Option<usize>, SqlError> {
    let bytes = match func {
        TextFunc::StringToArray | TextFunc::RegexpSplitToArray | TextFunc::ParseIdent => {
            array_bytes(func, args)
        }
        _ => checked(Some(text_bytes(func, args)))?,
    };
    Ok((bytes > ROOM_BYTES).then_some(bytes))
}

fn len(args: &[Datum], i: usize) -> usize {
    match args.get(i) {
        Some(Datum::Text(text)) => text.len(),
        Some(Datum::Bytes(bytes)) => bytes.len(),
        _ => 0,
    }
}

fn text(args: &[Datum], i: usize) -> &str {
    args.get(i).and_then(Datum::as_str).unwrap_or_default()
}

/// Memory of an array of the parts of a text.
fn array_bytes(func: TextFunc, args: &[Datum]) -> usize {
    let separator = text(args, 1);
    let items = match func {
        TextFunc::StringToArray if !separator.is_empty() => {
            text(args, 0).matches(separator).count() + 1
        }
        TextFunc::ParseIdent => text(args, 0).matches('.').count() + 1,
        _ => len(args, 0),
    };
    items.saturating_mul(ITEM_BYTES)
}

/// Bytes of the result, at most.
fn text_bytes(func: TextFunc, args: &[Datum]) -> usize {
    let len = |i: usize| len(args, i);
    let count = || {
        let count = args.get(1).and_then(Datum::as_int).unwrap_or(0);
        usize::try_from(count).unwrap_or(0)
    };
    let all = || (0..args.len()).fold(0usize, |sum, i| sum.saturating_add(len(i)));
    match func {
        TextFunc::Repeat => len(0).saturating_mul(count()),
        TextFunc::PadLeft | TextFunc::PadRight => {
            let width = if text(args, 2).is_ascii() { 1 } else { 4 };
            count().saturating_mul(width).saturating_add(len(0))
        }
        TextFunc::Replace => {
            let most = len(0) / len(1).max(1);
            let hits = match most.saturating_mul(len(2)) > ROOM_BYTES && len(1) > 0 {
                true => text(args, 0).matches(text(args, 1)).count(),
                false => 0,
            };
            hits.saturating_mul(len(2)).saturating_add(len(0))
        }
        // As if every character were replaced.
        TextFunc::RegexpReplace => (len(0) + 1).saturating_mul(len(2)).saturating_add(len(0)),
        TextFunc::ConcatWs => len(0).saturating_mul(args.len()).saturating_add(all()),
        TextFunc::Format => all().saturating_add(quote::width(args)),
        TextFunc::RowText => all().saturating_mul(2).saturating_add(3 * args.len() + 2),
        TextFunc::Encode
        | TextFunc::QuoteIdent
        | TextFunc::QuoteLiteral
        | TextFunc::QuoteNullable => all().saturating_mul(2),
        // A parenthesis becomes three characters, and two separators become more.
        TextFunc::SimilarToEscape => len(0).saturating_mul(3).saturating_add(32),
        // These are numbers, truth values, or short.
        TextFunc::Length
        | TextFunc::OctetLength
        | TextFunc::BitLength
        | TextFunc::Position
        | TextFunc::Ascii
        | TextFunc::Chr
        | TextFunc::Md5
        | TextFunc::StartsWith
        | TextFunc::ToHex4
        | TextFunc::ToHex8
        | TextFunc::RegexpCount
        | TextFunc::RegexpLike
        | TextFunc::GetByte
        | TextFunc::GetBit
        | TextFunc::BitCount
        | TextFunc::RegexpInstr
        | TextFunc::Sha224
        | TextFunc::Sha256
        | TextFunc::Sha384
        | TextFunc::Sha512
        | TextFunc::Digest
        | TextFunc::Hmac
        | TextFunc::ToNumber => 0,
        _ => all(),
    }
}
