//! Single bytes and bits of byte strings, and their digests.

use super::int;
use crate::func::TextFunc;
use base::{Datum, SqlError, SqlState};
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

/// Computes a function of `bytes`, its first argument.
pub(super) fn apply(func: TextFunc, bytes: &[u8], args: &[Datum]) -> Result<Datum, SqlError> {
    Ok(match func {
        TextFunc::Sha224 => Sha224::digest(bytes).to_vec().into(),
        TextFunc::Sha256 => Sha256::digest(bytes).to_vec().into(),
        TextFunc::Sha384 => Sha384::digest(bytes).to_vec().into(),
        TextFunc::Sha512 => Sha512::digest(bytes).to_vec().into(),
        TextFunc::BitCount => {
            let count: u64 = bytes.iter().map(|byte| u64::from(byte.count_ones())).sum();
            Datum::Int(count as i64)
        }
        TextFunc::SetByte => {
            let mut changed = bytes.to_vec();
            let at = place(int(args, 1), changed.len() as i64)?;
            changed[at] = int(args, 2) as u8;
            changed.into()
        }
        TextFunc::GetBit => {
            let at = place(int(args, 1), bytes.len() as i64 * 8)?;
            Datum::Int(i64::from(bytes[at / 8] >> (at % 8) & 1))
        }
        TextFunc::SetBit => {
            let mut changed = bytes.to_vec();
            let at = place(int(args, 1), changed.len() as i64 * 8)?;
            let bit = 1 << (at % 8);
            match int(args, 2) {
                0 => changed[at / 8] &= !bit,
                1 => changed[at / 8] |= bit,
                _ => {
                    let message = "new bit must be 0 or 1";
                    return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
                }
            }
            changed.into()
        }
        _ => unreachable!("{func:?} was bound to bytea"),
    })
}

/// A place below `size`.
fn place(at: i64, size: i64) -> Result<usize, SqlError> {
    if (0..size).contains(&at) {
        return Ok(at as usize);
    }
    let message = format!("index {at} out of valid range, 0..{}", size - 1);
    Err(SqlError::new(SqlState(*b"2202E"), message))
}
