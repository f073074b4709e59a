//! `encode`, `decode` and `md5`.

use super::invalid_parameter;
use base::SqlError;
use std::fmt::Write;

fn unrecognized(format: &str) -> SqlError {
    invalid_parameter(format!("unrecognized encoding: \"{format}\""))
}

/// Lower-case hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(out, "{byte:02x}").expect("writing to memory cannot fail");
    }
    out
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// PostgreSQL breaks base64 lines as MIME asks.
const LINE_LENGTH: usize = 76;

/// `encode(bytes, format)`.
pub(super) fn encode(bytes: &[u8], format: &str) -> Result<String, SqlError> {
    Ok(match format.to_ascii_lowercase().as_str() {
        "hex" => hex(bytes),
        "base64" => {
            let mut out = String::with_capacity(bytes.len() * 4 / 3 + 4);
            for (i, group) in bytes.chunks(3).enumerate() {
                if i > 0 && i * 4 % LINE_LENGTH == 0 {
                    out.push('\n');
                }
                let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
                let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
                for sextet in 0..4 {
                    let index = bits >> (18 - 6 * sextet) & 63;
                    let used = sextet <= group.len();
                    out.push(if used {
                        char::from(BASE64[index as usize])
                    } else {
                        '='
                    });
                }
            }
            out
        }
        "escape" => {
            let mut out = String::with_capacity(bytes.len());
            for byte in bytes {
                match byte {
                    b'\\' => out.push_str("\\\\"),
                    0 | 0x80.. => {
                        write!(out, "\\{byte:03o}").expect("writing to memory cannot fail");
                    }
                    _ => out.push(char::from(*byte)),
                }
            }
            out
        }
        _ => return Err(unrecognized(format)),
    })
}

/// `decode(text, format)`.
pub(super) fn decode(text: &str, format: &str) -> Result<Vec<u8>, SqlError> {
    match format.to_ascii_lowercase().as_str() {
        "hex" => decode_hex(text),
        "base64" => decode_base64(text),
        "escape" => decode_escape(text),
        _ => Err(unrecognized(format)),
    }
}

fn decode_hex(text: &str) -> Result<Vec<u8>, SqlError> {
    let mut digits = Vec::with_capacity(text.len());
    for c in text
        .chars()
        .filter(|c| !matches!(c, ' ' | '\n' | '\t' | '\r'))
    {
        let digit = c
            .to_digit(16)
            .ok_or_else(|| invalid_parameter(format!("invalid hexadecimal digit: \"{c}\"")))?;
        digits.push(digit as u8);
    }
    if digits.len() % 2 == 1 {
        return Err(invalid_parameter(
            "invalid hexadecimal data: odd number of digits",
        ));
    }
    Ok(digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect())
}

fn decode_base64(text: &str) -> Result<Vec<u8>, SqlError> {
    let bad_end = || {
        invalid_parameter("invalid base64 end sequence")
            .hint("Input data is missing padding, is truncated, or is otherwise corrupted.")
    };
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count, mut padding) = (0u32, 0, 0);
    for c in text
        .chars()
        .filter(|c| !matches!(c, ' ' | '\n' | '\t' | '\r'))
    {
        let value = if c == '=' {
            padding += 1;
            if count < 2 || padding > 2 {
                return Err(invalid_parameter(
                    "unexpected \"=\" while decoding base64 sequence",
                ));
            }
            0
        } else {
            let found = BASE64.iter().position(|letter| char::from(*letter) == c);
            match found {
                Some(value) if padding == 0 => value as u32,
                _ => {
                    return Err(invalid_parameter(format!(
                        "invalid symbol \"{c}\" found while decoding base64 sequence"
                    )));
                }
            }
        };
        bits = bits << 6 | value;
        count += 1;
        if count == 4 {
            out.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
            (bits, count) = (0, 0);
        }
    }
    if count == 0 { Ok(out) } else { Err(bad_end()) }
}

fn decode_escape(text: &str) -> Result<Vec<u8>, SqlError> {
    let invalid = || {
        SqlError::new(
            base::SqlState::INVALID_TEXT,
            "invalid input syntax for type bytea",
        )
    };
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'\\' {
            out.push(*first);
            continue;
        }
        match rest {
            [b'\\', tail @ ..] => {
                out.push(b'\\');
                rest = tail;
            }
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..] => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = tail;
            }
            _ => return Err(invalid()),
        }
    }
    Ok(out)
}

/// Rotations of the four rounds of MD5.
const ROTATIONS: [[u32; 4]; 4] = [
    [7, 12, 17, 22],
    [5, 9, 14, 20],
    [4, 11, 16, 23],
    [6, 10, 15, 21],
];

/// The MD5 digest in hexadecimal.
pub(super) fn md5_hex(bytes: &[u8]) -> String {
    hex(&md5(bytes))
}

/// The MD5 digest (RFC 1321), of 16 bytes. For compatibility only; it protects nothing.
pub(super) fn md5(bytes: &[u8]) -> Vec<u8> {
    // The constants of RFC 1321 are defined by the sine.
    let constant = |i: usize| ((i as f64 + 1.0).sin().abs() * 4_294_967_296.0) as u32;
    let constants: [u32; 64] = core::array::from_fn(constant);
    let blocks = bytes.chunks_exact(64);
    let mut tail = blocks.remainder().to_vec();
    tail.push(0x80);
    tail.resize((tail.len() + 8).next_multiple_of(64) - 8, 0);
    tail.extend_from_slice(&(bytes.len() as u64).wrapping_mul(8).to_le_bytes());

    let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in blocks.chain(tail.chunks_exact(64)) {
        let word = |i: usize| {
            let at = i * 4;
            u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
        };
        let words: [u32; 16] = core::array::from_fn(word);
        let [mut a, mut b, mut c, mut d] = state;
        for (i, constant) in constants.iter().enumerate() {
            let (mix, index) = match i / 16 {
                0 => ((b & c) | (!b & d), i),
                1 => ((d & b) | (!d & c), (5 * i + 1) % 16),
                2 => (b ^ c ^ d, (3 * i + 5) % 16),
                _ => (c ^ (b | !d), 7 * i % 16),
            };
            let sum = a
                .wrapping_add(mix)
                .wrapping_add(*constant)
                .wrapping_add(words[index]);
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(ROTATIONS[i / 16][i % 4]));
        }
        for (total, part) in state.iter_mut().zip([a, b, c, d]) {
            *total = total.wrapping_add(part);
        }
    }
    state.map(u32::to_le_bytes).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_the_rfc() {
        for (text, digest) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            (
                "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "57edf4a22be3c955ac49da2e2107b67a",
            ),
        ] {
            assert_eq!(md5_hex(text.as_bytes()), digest);
        }
        // Every length around the ends of blocks; the digest of all is another program's.
        let all: String = (0..200).map(|size| md5_hex(&vec![b'x'; size])).collect();
        assert_eq!(md5_hex(all.as_bytes()), "0f0e2ac786e6a42eac7e7de3a518cd0c");
    }

    #[test]
    fn every_length_round_trips() {
        let bytes: Vec<u8> = (0..=255).collect();
        for size in 0..bytes.len() {
            for format in ["hex", "base64", "escape"] {
                let text = encode(&bytes[..size], format).expect("a known format");
                assert_eq!(decode(&text, format).expect("our own form"), &bytes[..size]);
            }
        }
    }
}
