//! Mends checksums, so that broken content reaches the decoder behind them.
//!
//! The layouts are those of docs/formats.md; `corpus` inputs must pass through unchanged.

use base::crc::crc32c;

/// Bytes of a segment's header, of a checkpoint's, and of the manifest's.
const SEGMENT_HEADER_BYTES: usize = 40;
const CHECKPOINT_HEADER_BYTES: usize = 56;
const MANIFEST_HEADER_BYTES: usize = 20;

fn length_at(input: &[u8], at: usize) -> Option<usize> {
    let bytes = input.get(at..at + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().expect("four bytes")) as usize)
}

fn put(input: &mut [u8], at: usize, crc: u32) {
    input[at..at + 4].copy_from_slice(&crc.to_le_bytes());
}

/// Frames between nodes: length, checksum of the payload, payload.
pub fn frames(input: &mut [u8]) {
    let mut at = 0;
    while let Some(length) = length_at(input, at) {
        let Some(payload) = input.get(at + 8..(at + 8).saturating_add(length)) else {
            return;
        };
        let crc = crc32c(payload);
        put(input, at + 4, crc);
        at += 8 + length;
    }
}

/// A segment: header with its own checksum; records of length, checksum over both, payload.
pub fn segment(input: &mut [u8]) {
    let Some(header) = input.get(..SEGMENT_HEADER_BYTES - 8) else {
        return;
    };
    let crc = crc32c(header);
    if input.len() < SEGMENT_HEADER_BYTES {
        return;
    }
    put(input, SEGMENT_HEADER_BYTES - 8, crc);
    let mut at = SEGMENT_HEADER_BYTES;
    while let Some(length) = length_at(input, at) {
        let Some(payload) = input.get(at + 8..(at + 8).saturating_add(length)) else {
            return;
        };
        let crc = crc32c(&[&input[at..at + 4], payload].concat());
        put(input, at + 4, crc);
        at += 8 + length;
    }
}

/// A checkpoint: header with its checksum at the end; blocks of kind, length, checksum, payload.
pub fn checkpoint(input: &mut [u8]) {
    if input.len() < CHECKPOINT_HEADER_BYTES {
        return;
    }
    let crc = crc32c(&input[..CHECKPOINT_HEADER_BYTES - 4]);
    put(input, CHECKPOINT_HEADER_BYTES - 4, crc);
    let mut at = CHECKPOINT_HEADER_BYTES;
    while let Some(length) = length_at(input, at + 1) {
        let Some(payload) = input.get(at + 9..(at + 9).saturating_add(length)) else {
            return;
        };
        let crc = crc32c(&[&input[at..at + 5], payload].concat());
        put(input, at + 5, crc);
        at += 9 + length;
    }
}

/// The manifest: magic, version, length, checksum of the payload, payload. The length is mended
/// too, because nothing may follow the payload.
pub fn manifest(input: &mut [u8]) {
    let Some(payload) = input.get(MANIFEST_HEADER_BYTES..) else {
        return;
    };
    let (length, crc) = (payload.len() as u32, crc32c(payload));
    input[12..16].copy_from_slice(&length.to_le_bytes());
    put(input, 16, crc);
}
