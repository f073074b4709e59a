//! The entry for fuzz tests.

use crate::{ClientMessage, Decoder, Incoming};
use alloc::vec::Vec;

/// Decodes arbitrary bytes in one read and in many, as the bytes of a new connection and as
/// those behind a startup packet.
///
/// Panics if the decoder does, or if the two ways of reading give different messages.
pub fn fuzz(bytes: &[u8]) {
    let mut open = b"\0\0\0\x10\0\x03\0\0user\0a\0\0".to_vec();
    open[3] = open.len() as u8;
    open.extend_from_slice(bytes);
    for input in [bytes, &open] {
        let whole = decode(&mut core::iter::once(input));
        let step = usize::from(bytes.first().copied().unwrap_or(0) % 7) + 1;
        let pieces = decode(&mut input.chunks(step));
        assert_eq!(whole, pieces, "reads of {step} bytes give other messages");
    }
}

fn decode(reads: &mut dyn Iterator<Item = &[u8]>) -> Vec<Incoming> {
    let mut decoder = Decoder::default();
    let mut said = Vec::new();
    let mut out = Vec::new();
    for read in reads {
        decoder.push(read);
        while let Some(incoming) = decoder.next() {
            if let Incoming::Message(
                ClientMessage::Malformed { error, .. } | ClientMessage::BadQuery(error),
            ) = &incoming
            {
                let reply = crate::Reply::Error(crate::Severity::Error, error.clone());
                crate::encode(&reply, &mut out);
            }
            said.push(incoming);
        }
        assert!(decoder.buffered_bytes() <= crate::MESSAGE_BYTES_MAX + 1);
    }
    said
}
