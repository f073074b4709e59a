//! Text forms of `inet`, `cidr` and `macaddr`.

use super::put;
use crate::datum::Datum;
use crate::error::{SqlError, SqlState};
use crate::inet::Inet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Reads an address; that of a `cidr` may leave out its end and its mask.
///
/// # Errors
/// 22P02 for what is none, and for a `cidr` with bits behind its mask.
pub(super) fn parse_inet(text: &str, is_cidr: bool) -> Result<Datum, SqlError> {
    let name = if is_cidr { "cidr" } else { "inet" };
    let found = match (text.contains(':'), is_cidr) {
        (true, _) => read_v6(text),
        (false, true) => read_network_v4(text),
        (false, false) => read_v4(text),
    };
    let value = found.ok_or_else(|| super::invalid(name, text))?;
    if is_cidr && !value.is_network() {
        let message = format!("invalid cidr value: \"{text}\"");
        return Err(SqlError::new(SqlState::INVALID_TEXT, message)
            .detail("Value has bits set to right of mask."));
    }
    Ok(Datum::Inet(value))
}

/// The number of these digits, at most `max`; leading zeros count as PostgreSQL has it.
fn digits(text: &str, max: u32) -> Option<u32> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let read = |value: Option<u32>, byte: u8| {
        value
            .map(|value| value.saturating_mul(10) + u32::from(byte - b'0'))
            .filter(|value| *value <= max)
    };
    text.bytes().fold(Some(0), read)
}

/// What stands before the first slash, and the mask behind it.
fn split_mask(text: &str, max: u32) -> Option<(&str, Option<u32>)> {
    match text.split_once('/') {
        None => Some((text, None)),
        Some((address, mask)) => Some((address, Some(digits(mask, max)?))),
    }
}

/// An `inet`: with a mask the address may be shorter than four bytes, and may end in a point.
fn read_v4(text: &str) -> Option<Inet> {
    let (address, mask) = split_mask(text, 32)?;
    let parts = address.strip_suffix('.').unwrap_or(address);
    let mut bytes = Vec::new();
    for part in parts.split('.') {
        bytes.push(digits(part, 255)? as u8);
    }
    let bits = mask.or((bytes.len() == 4).then_some(32))?;
    if bytes.len() > 4 || bits as usize / 8 > bytes.len() {
        return None;
    }
    bytes.resize(4, 0);
    Inet::new(&bytes, bits as u8)
}

/// A `cidr`: bytes that are missing are 0; without a mask the class of the address says it.
fn read_network_v4(text: &str) -> Option<Inet> {
    let (address, mask) = split_mask(text, 32)?;
    let mut bytes = Vec::new();
    let hex = address.strip_prefix("0x").or(address.strip_prefix("0X"));
    match hex {
        Some(hex) if !hex.is_empty() => {
            if hex.len() > 8 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return None;
            }
            let padded = format!("{hex:0<width$}", width = hex.len().next_multiple_of(2));
            for at in (0..padded.len()).step_by(2) {
                bytes.push(u8::from_str_radix(&padded[at..at + 2], 16).ok()?);
            }
        }
        _ => {
            for part in address.split('.') {
                bytes.push(digits(part, 255)? as u8);
            }
        }
    }
    if bytes.len() > 4 {
        return None;
    }
    let shown = bytes.len() as u32 * 8;
    let of_class = match bytes[0] {
        240.. => 32,
        224.. => 8,
        192.. => 24,
        128.. => 16,
        _ => 8,
    };
    let of_class = match (shown.max(of_class), bytes[0]) {
        (8, 224) => 4,
        (bits, _) => bits,
    };
    bytes.resize(4, 0);
    Inet::new(&bytes, mask.unwrap_or(of_class) as u8)
}

/// A mask of IPv6: no zero before other digits.
fn mask_v6(text: &str) -> Option<u8> {
    match text.len() > 1 && text.starts_with('0') {
        true => None,
        false => digits(text, 128).map(|bits| bits as u8),
    }
}

/// An address of IPv6, whose end may have the form of IPv4.
fn read_v6(text: &str) -> Option<Inet> {
    let (address, bits) = match text.split_once('/') {
        None => (text, 128),
        Some((address, mask)) => (address, mask_v6(mask)?),
    };
    let (mut bytes, mut gap) = (Vec::new(), None);
    let mut rest = match address.strip_prefix(':') {
        // Only two of them may begin it.
        Some(rest) if rest.starts_with(':') => rest,
        Some(_) => return None,
        None => address,
    };
    loop {
        if let Some(more) = rest.strip_prefix(':') {
            if gap.replace(bytes.len()).is_some() {
                return None;
            }
            rest = more;
        }
        if rest.is_empty() {
            break;
        }
        let end = rest.find(':').unwrap_or(rest.len());
        let part = &rest[..end];
        if part.contains('.') {
            if end < rest.len() {
                return None;
            }
            bytes.extend(tail_v4(part)?);
            break;
        }
        if part.len() > 4 || !part.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        bytes.extend(u16::from_str_radix(part, 16).ok()?.to_be_bytes());
        if bytes.len() > 16 {
            return None;
        }
        rest = match rest[end..].strip_prefix(':') {
            None => break,
            // A colon at the end needs another one before it.
            Some("") => return None,
            Some(more) => more,
        };
    }
    match gap {
        Some(at) if bytes.len() < 16 => {
            let zeros = 16 - bytes.len();
            bytes.splice(at..at, core::iter::repeat_n(0, zeros));
        }
        Some(_) => return None,
        None => {}
    }
    Inet::new(&bytes, bits).filter(Inet::is_v6)
}

/// The last four bytes in the form of IPv4; those that are missing are 0.
fn tail_v4(text: &str) -> Option<[u8; 4]> {
    let mut bytes = [0; 4];
    for (at, part) in text.split('.').enumerate() {
        if part.len() > 1 && part.starts_with('0') {
            return None;
        }
        *bytes.get_mut(at)? = digits(part, 255)? as u8;
    }
    Some(bytes)
}

/// The address without its mask.
pub fn host(value: &Inet) -> String {
    let bytes = value.bytes();
    if !value.is_v6() {
        return dotted(bytes);
    }
    let words: Vec<u16> = bytes
        .chunks(2)
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
        .collect();
    // The longest run of at least two zeros is left out, the first one of several.
    let (mut best, mut at) = (0..0, 0);
    while at < words.len() {
        let run = words[at..].iter().take_while(|word| **word == 0).count();
        if run >= 2 && run > best.len() {
            best = at..at + run;
        }
        at += run.max(1);
    }
    let is_v4 = best.start == 0
        && (best.len() == 6
            || best.len() == 7 && words[7] != 1
            || best.len() == 5 && words[5] == 0xffff);
    let mut out = String::new();
    for (at, word) in words.iter().enumerate() {
        if best.contains(&at) {
            out += if at == best.start { ":" } else { "" };
            continue;
        }
        out += if at > 0 { ":" } else { "" };
        if at == 6 && is_v4 {
            return out + &dotted(&bytes[12..]);
        }
        out += &format!("{word:x}");
    }
    match best.end == words.len() && !best.is_empty() {
        true => out + ":",
        false => out,
    }
}

fn dotted(bytes: &[u8]) -> String {
    let parts: Vec<String> = bytes.iter().map(u8::to_string).collect();
    parts.join(".")
}

/// The address with its mask.
pub fn whole(value: &Inet) -> String {
    format!("{}/{}", host(value), value.bits())
}

/// Appends the text form: an `inet` of one host has no mask.
pub(super) fn format_inet(value: &Inet, is_cidr: bool, out: &mut Vec<u8>) {
    match !is_cidr && value.bits() == value.bits_max() {
        true => put(out, format_args!("{}", host(value))),
        false => put(out, format_args!("{}", whole(value))),
    }
}

/// Reads six bytes of hexadecimal digits: `08:00:2b:01:02:03` and the other forms that PostgreSQL
/// knows.
///
/// # Errors
/// 22P02 for what is none, 22003 for a byte that is too large.
pub(super) fn parse_mac(text: &str) -> Result<[u8; 6], SqlError> {
    let invalid = || super::invalid("macaddr", text);
    let trimmed = super::trim(text);
    let separator = trimmed
        .find([':', '-', '.'])
        .map(|at| trimmed.as_bytes()[at]);
    let parts: Vec<&str> = match separator {
        None => Vec::from([trimmed]),
        Some(separator) => trimmed.split(char::from(separator)).collect(),
    };
    if !trimmed
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit() || Some(byte) == separator)
    {
        return Err(invalid());
    }
    let mut bytes = [0; 6];
    if parts.len() == 6 && separator != Some(b'.') {
        for (byte, part) in bytes.iter_mut().zip(parts) {
            let digits = part.trim_start_matches('0');
            if part.is_empty() {
                return Err(invalid());
            }
            if digits.len() > 2 {
                let message = format!("invalid octet value in \"macaddr\" value: \"{text}\"");
                return Err(SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message));
            }
            *byte = u8::from_str_radix(part, 16).unwrap_or(0);
        }
        return Ok(bytes);
    }
    // Without separators between all bytes each has two digits.
    let length = match (separator, parts.len()) {
        (None, 1) => 12,
        (Some(b':' | b'-'), 2) => 6,
        (Some(b'.' | b'-'), 3) => 4,
        _ => return Err(invalid()),
    };
    if parts.iter().any(|part| part.len() != length) {
        return Err(invalid());
    }
    let digits = parts.concat();
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap_or(0);
    }
    Ok(bytes)
}

/// Appends six bytes with colons between them.
pub(super) fn format_mac(value: &[u8; 6], out: &mut Vec<u8>) {
    for (at, byte) in value.iter().enumerate() {
        let colon = if at > 0 { ":" } else { "" };
        put(out, format_args!("{colon}{byte:02x}"));
    }
}

/// The short form of a `cidr`: without bytes behind its mask.
pub fn abbreviated(value: &Inet) -> String {
    let (bits, bytes) = (value.bits(), value.bytes());
    match (value.is_v6(), bits) {
        (false, 0) => "0/0".into(),
        (true, 0) => "::/0".into(),
        (false, _) => {
            let shown = usize::from(bits).div_ceil(8);
            format!("{}/{bits}", dotted(&bytes[..shown]))
        }
        (true, _) => format!("{}/{bits}", short_v6(bytes, usize::from(bits))),
    }
}

/// The words of a network of IPv6 that its mask reaches, the longest run of zeros left out.
fn short_v6(bytes: &[u8], bits: usize) -> String {
    let words: Vec<u16> = bytes
        .chunks(2)
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
        .collect();
    let words = &words[..bits.div_ceil(16).max(2)];
    // A shorter run counts towards the next one, as PostgreSQL has it.
    let (mut best, mut start, mut length) = ((0, 0), 0, 0);
    for (at, word) in words.iter().enumerate() {
        if *word == 0 {
            start = if length == 0 { at } else { start };
            length += 1;
        } else if length > best.1 {
            best = (start, length);
            length = 0;
        }
    }
    if length > best.1 {
        best = (start, length);
    }
    let (first, zeros) = best;
    let is_v4 = zeros != words.len()
        && first == 0
        && (zeros == 6
            || zeros == 5 && bytes[10] == 0xff && bytes[11] == 0xff
            || zeros == 7 && bytes[14] != 0 && bytes[15] != 1);
    let mut out = String::new();
    for (at, word) in words.iter().enumerate() {
        if zeros != 0 && (first..first + zeros).contains(&at) {
            out += if at == first { ":" } else { "" };
            out += if at == words.len() - 1 { ":" } else { "" };
        } else if is_v4 && at > 5 {
            out += if at == 6 { ":" } else { "." };
            out += &(word >> 8).to_string();
            if at != 7 || bits > 120 {
                out += &format!(".{}", word & 0xff);
            }
        } else {
            out += if out.is_empty() { "" } else { ":" };
            out += &format!("{word:x}");
        }
    }
    out
}
