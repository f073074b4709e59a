//! `digest` and `hmac`, as PostgreSQL's extension pgcrypto has them.

use super::encode::md5;
use super::invalid_parameter;
use alloc::vec::Vec;
use base::SqlError;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

/// A digest and the bytes of the blocks that it goes through, which `hmac` fills its key up to.
struct Algorithm {
    name: &'static str,
    block_bytes: usize,
    digest: fn(&[u8]) -> Vec<u8>,
}

const ALGORITHMS: [Algorithm; 6] = [
    Algorithm {
        name: "md5",
        block_bytes: 64,
        digest: md5,
    },
    Algorithm {
        name: "sha1",
        block_bytes: 64,
        digest: sha1,
    },
    Algorithm {
        name: "sha224",
        block_bytes: 64,
        digest: |bytes| Sha224::digest(bytes).to_vec(),
    },
    Algorithm {
        name: "sha256",
        block_bytes: 64,
        digest: |bytes| Sha256::digest(bytes).to_vec(),
    },
    Algorithm {
        name: "sha384",
        block_bytes: 128,
        digest: |bytes| Sha384::digest(bytes).to_vec(),
    },
    Algorithm {
        name: "sha512",
        block_bytes: 128,
        digest: |bytes| Sha512::digest(bytes).to_vec(),
    },
];

/// # Errors
/// 22023 for names of which there is no algorithm.
fn named(name: &str) -> Result<&'static Algorithm, SqlError> {
    let found = ALGORITHMS
        .iter()
        .find(|algorithm| algorithm.name.eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let message = format!("Cannot use \"{name}\": No such hash algorithm");
        invalid_parameter(message).hint("There are md5, sha1, sha224, sha256, sha384 and sha512.")
    })
}

/// `digest(bytes, algorithm)`
pub(super) fn digest(bytes: &[u8], algorithm: &str) -> Result<Vec<u8>, SqlError> {
    Ok((named(algorithm)?.digest)(bytes))
}

/// `hmac(bytes, key, algorithm)` (RFC 2104)
pub(super) fn hmac(bytes: &[u8], key: &[u8], algorithm: &str) -> Result<Vec<u8>, SqlError> {
    let Algorithm {
        block_bytes,
        digest,
        ..
    } = named(algorithm)?;
    let mut block = match key.len() > *block_bytes {
        true => digest(key),
        false => key.to_vec(),
    };
    block.resize(*block_bytes, 0);
    let behind = |mask: u8, rest: &[u8]| {
        let masked = block.iter().map(|byte| byte ^ mask);
        digest(&masked.chain(rest.iter().copied()).collect::<Vec<u8>>())
    };
    Ok(behind(0x5c, &behind(0x36, bytes)))
}

/// The digest SHA-1 (RFC 3174). For compatibility only; it protects nothing.
fn sha1(bytes: &[u8]) -> Vec<u8> {
    let blocks = bytes.chunks_exact(64);
    let mut tail = blocks.remainder().to_vec();
    tail.push(0x80);
    tail.resize((tail.len() + 8).next_multiple_of(64) - 8, 0);
    tail.extend_from_slice(&(bytes.len() as u64).wrapping_mul(8).to_be_bytes());

    let mut state = [
        0x6745_2301u32,
        0xefcd_ab89,
        0x98ba_dcfe,
        0x1032_5476,
        0xc3d2_e1f0,
    ];
    for block in blocks.chain(tail.chunks_exact(64)) {
        let mut words = [0u32; 80];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        for i in 16..80 {
            let mixed = words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16];
            words[i] = mixed.rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (i, word) in words.iter().enumerate() {
            let (mix, constant) = match i / 20 {
                0 => ((b & c) | (!b & d), 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6u32),
            };
            let sum = a
                .rotate_left(5)
                .wrapping_add(mix)
                .wrapping_add(e)
                .wrapping_add(constant)
                .wrapping_add(*word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, sum);
        }
        for (total, part) in state.iter_mut().zip([a, b, c, d, e]) {
            *total = total.wrapping_add(part);
        }
    }
    state.map(u32::to_be_bytes).concat()
}
