//! Frames between nodes.
//!
//! ```text
//! length u32 | crc u32 over the payload | payload        length counts the payload
//! payload = hello | kind, from shard u16, to shard u16, WireMessage
//! ```

use crate::message::WireMessage;
use crate::program;
use base::codec::{self, CodecError};
use base::crc::crc32c;
use base::limits::FRAME_BYTES_MAX;
use base::{NodeId, ShardId};
use core::fmt;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use txn::{Program, ProtocolMessage, RowProgram};

/// Version of the protocol between nodes.
pub const PEER_VERSION: u32 = 24;
const MAGIC: u32 = 0x5452_4c53;
const HEADER_BYTES: usize = 8;

/// First frame in both directions of a connection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hello {
    magic: u32,
    /// [`PEER_VERSION`] of the sender.
    pub version: u32,
    /// Cluster of the sender.
    pub cluster: u64,
    /// Number of the sending node.
    pub node: NodeId,
    /// Incarnation of the sender.
    pub incarnation: u32,
    /// Number of shards of the sender.
    pub shards: u16,
    /// Number of its data directory.
    pub directory: u64,
    /// Why the sender refuses the other node; empty: it does not refuse.
    pub refusal: String,
}

impl Hello {
    /// A hello of this build.
    pub fn new(cluster: u64, node: NodeId, incarnation: u32, shards: u16) -> Hello {
        Hello {
            magic: MAGIC,
            version: PEER_VERSION,
            cluster,
            node,
            incarnation,
            shards,
            directory: 0,
            refusal: String::new(),
        }
    }
}

/// A message between nodes.
#[derive(Debug, Serialize, Deserialize)]
pub struct Envelope<M> {
    /// Sender.
    pub from: ShardId,
    /// Receiver.
    pub to: ShardId,
    /// Content.
    pub message: M,
}

/// A message of another node.
pub type Arrived = Envelope<WireMessage>;

/// What is wrong with a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FrameError {
    /// The frame is longer than [`FRAME_BYTES_MAX`].
    TooLong(u32),
    /// Checksum and content differ.
    Checksum,
    /// The payload is no value of its kind.
    Content(CodecError),
    /// The sender is no Trellis node.
    Magic,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::TooLong(bytes) => {
                write!(
                    f,
                    "a frame of {bytes} bytes exceeds the limit of {FRAME_BYTES_MAX}"
                )
            }
            FrameError::Checksum => f.write_str("a frame has a wrong checksum"),
            FrameError::Content(error) => write!(f, "a frame has wrong content: {error}"),
            FrameError::Magic => f.write_str("the other side is not a Trellis node"),
        }
    }
}

fn seal(out: &mut [u8], start: usize) {
    let payload = start + HEADER_BYTES;
    let length = (out.len() - payload) as u32;
    let crc = crc32c(&out[payload..]);
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..payload].copy_from_slice(&crc.to_le_bytes());
}

/// Appends a hello.
pub fn encode_hello(hello: &Hello, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    codec::encode(hello, out);
    seal(out, start);
}

/// Appends a message, and returns the bytes that it takes. A message over the limit is a bug of the
/// sender, which must cut what it sends.
pub fn encode_message(
    from: ShardId,
    to: ShardId,
    message: &WireMessage,
    out: &mut Vec<u8>,
) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    codec::encode(&Envelope { from, to, message }, out);
    let length = out.len() - start - HEADER_BYTES;
    assert!(
        length <= FRAME_BYTES_MAX,
        "{} of {length} bytes exceeds a frame",
        message.name()
    );
    seal(out, start);
    length + HEADER_BYTES
}

/// The payload of the first whole frame, and the bytes that it takes; `None`: it is not whole.
///
/// # Errors
/// [`FrameError::TooLong`], [`FrameError::Checksum`]: the connection is of no more use.
pub fn next_frame(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, FrameError> {
    let Some((header, rest)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(header[..4].try_into().expect("four bytes"));
    let crc = u32::from_le_bytes(header[4..].try_into().expect("four bytes"));
    if length as usize > FRAME_BYTES_MAX {
        return Err(FrameError::TooLong(length));
    }
    let Some(payload) = rest.get(..length as usize) else {
        return Ok(None);
    };
    if crc32c(payload) != crc {
        return Err(FrameError::Checksum);
    }
    Ok(Some((payload, HEADER_BYTES + payload.len())))
}

/// Decodes the payload of a hello.
///
/// # Errors
/// [`FrameError::Content`], [`FrameError::Magic`].
pub fn decode_hello(payload: &[u8]) -> Result<Hello, FrameError> {
    let hello: Hello = codec::decode(payload).map_err(FrameError::Content)?;
    if hello.magic == MAGIC {
        Ok(hello)
    } else {
        Err(FrameError::Magic)
    }
}

/// Decodes the payload of a message. Its program stays encoded.
///
/// # Errors
/// [`FrameError::Content`].
pub fn decode_message(payload: &[u8]) -> Result<Arrived, FrameError> {
    codec::decode_bounded(payload).map_err(FrameError::Content)
}

/// Bytes of an encoded program from which on decoding takes milliseconds.
const LONG_PROGRAM_BYTES: usize = 128 << 10;

impl Arrived {
    /// Whether the message has a program that [`Arrived::make_live`] is to decode, on another
    /// thread than the shard's.
    pub fn has_long_program(&mut self) -> bool {
        matches!(
            self.program_mut(),
            Some(Program::Encoded(bytes)) if bytes.len() >= LONG_PROGRAM_BYTES
        )
    }

    /// Decodes the message's program before the shard runs it, and returns it. Bytes that are no
    /// program stay as they are, and the shard refuses them.
    pub fn make_live(&mut self) -> Option<Arc<dyn RowProgram>> {
        self.program_mut()?.make_live(program::decode)
    }

    fn program_mut(&mut self) -> Option<&mut Program> {
        // No other message has an operation, but for those in parcels, which are short.
        let WireMessage::Protocol(word) = &mut self.message else {
            return None;
        };
        word.op_mut()?.program_mut()
    }
}

/// For fuzzing: takes any bytes apart as a stream of frames; must not panic. An accepted message
/// must be the same after another round trip.
pub fn fuzz(mut bytes: &[u8]) {
    fuzz_payload(bytes);
    while let Ok(Some((payload, used))) = next_frame(bytes) {
        fuzz_payload(payload);
        bytes = &bytes[used..];
    }
}

fn fuzz_payload(payload: &[u8]) {
    let _ = decode_hello(payload);
    let trip = |arrived: Arrived| {
        let mut frame = Vec::new();
        encode_message(arrived.from, arrived.to, &arrived.message, &mut frame);
        frame
    };
    if let Ok(mut message) = decode_message(payload) {
        // A program is decoded; what is none stays as it came.
        let _ = message.make_live();
        let first = trip(message);
        let (again, used) = next_frame(&first).expect("sound").expect("whole");
        assert_eq!(used, first.len(), "one message is one frame");
        let again = decode_message(again).expect("an encoded message decodes");
        assert_eq!(trip(again), first, "encoding is stable");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_survives_in_pieces() {
        let hello = Hello::new(7, NodeId(2), 3, 2);
        let mut bytes = Vec::new();
        encode_hello(&hello, &mut bytes);
        for cut in 0..bytes.len() {
            assert_eq!(next_frame(&bytes[..cut]), Ok(None));
        }
        let (payload, used) = next_frame(&bytes).expect("sound").expect("whole");
        assert_eq!((decode_hello(payload), used), (Ok(hello), bytes.len()));
    }

    #[test]
    fn a_flipped_bit_is_seen() {
        let mut bytes = Vec::new();
        let message = WireMessage::CatalogWanted { to: ShardId(0) };
        encode_message(ShardId(0), ShardId(16), &message, &mut bytes);
        for bit in HEADER_BYTES * 8..bytes.len() * 8 {
            let mut broken = bytes.clone();
            broken[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(next_frame(&broken), Err(FrameError::Checksum), "bit {bit}");
        }
    }

    #[test]
    fn a_huge_length_is_refused_before_anything_is_stored() {
        let bytes = [0xff; 8];
        assert_eq!(next_frame(&bytes), Err(FrameError::TooLong(u32::MAX)));
    }
}
