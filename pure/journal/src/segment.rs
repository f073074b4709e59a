//! Segment files: their names and headers.
//!
//! A segment has, behind its header, the bytes of the journal from its start position on. The
//! position of a byte in the file is `start + (offset - SEGMENT_HEADER_BYTES)`.

use crate::fault::Fault;
use crate::parse::Parser;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base::crc::crc32c;
use base::{NodeId, Position};

/// Version of all formats of this crate. A change of any of them, also of [`crate::Record`] and the
/// types inside it, makes a new version.
pub const FORMAT_VERSION: u32 = 16;
/// Bytes before the first record.
pub const SEGMENT_HEADER_BYTES: usize = 40;
/// Bytes at which the host begins a new segment: few enough that truncation after a checkpoint
/// frees space soon, and many enough that files stay few.
pub const SEGMENT_BYTES: u64 = 64 << 20;

const MAGIC: [u8; 8] = *b"TRLSJRN\n";

/// The first bytes of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentHeader {
    /// Cluster that the node belongs to.
    pub cluster: u64,
    /// Node whose journal this is.
    pub node: NodeId,
    /// Position of the first record.
    pub start: Position,
}

impl SegmentHeader {
    /// The header as it stands in the file.
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut out = Vec::with_capacity(SEGMENT_HEADER_BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&u32::from(self.node.0).to_le_bytes());
        out.extend_from_slice(&self.cluster.to_le_bytes());
        out.extend_from_slice(&self.start.0.to_le_bytes());
        out.extend_from_slice(&crc32c(&out).to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.try_into().expect("the fields fill the header")
    }

    /// The header at the start of `bytes`. Safe on hostile input.
    pub fn decode(bytes: &[u8]) -> Result<SegmentHeader, Fault> {
        let mut fields = Parser(bytes.get(..SEGMENT_HEADER_BYTES).ok_or(Fault::Truncated)?);
        if fields.array()? != MAGIC {
            return Err(Fault::Magic);
        }
        // The version comes before the checksum: another version may check differently.
        let version = fields.u32()?;
        if version != FORMAT_VERSION {
            return Err(Fault::Version(version));
        }
        let node = fields.u32()?;
        let (cluster, start) = (fields.u64()?, Position(fields.u64()?));
        if fields.u32()? != crc32c(&bytes[..SEGMENT_HEADER_BYTES - 8]) || fields.u32()? != 0 {
            return Err(Fault::Checksum);
        }
        let node = u16::try_from(node).map_err(|_| Fault::Length(u64::from(node)))?;
        Ok(SegmentHeader {
            cluster,
            node: NodeId(node),
            start,
        })
    }
}

/// File name of the segment that starts at `start`; names sort like positions.
pub fn segment_name(start: Position) -> String {
    format!("journal-{:016x}.seg", start.0)
}

/// The start position in a segment's file name; `None`: the name is not of a segment.
pub fn parse_segment_name(name: &str) -> Option<Position> {
    let digits = name.strip_prefix("journal-")?.strip_suffix(".seg")?;
    let lower_hex = digits
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if digits.len() != 16 || !lower_hex {
        return None;
    }
    u64::from_str_radix(digits, 16).ok().map(Position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_sort() {
        let positions = [0, 1, 0xffff_ffff, u64::MAX].map(Position);
        let names = positions.map(segment_name);
        assert!(names.is_sorted());
        assert_eq!(
            names.each_ref().map(|name| parse_segment_name(name)),
            positions.map(Some)
        );
        for other in [
            "journal-1.seg",
            "journal-000000000000000G.seg",
            "MANIFEST",
            "",
        ] {
            assert_eq!(parse_segment_name(other), None);
        }
    }

    #[test]
    fn header_refuses_every_flipped_bit() {
        let header = SegmentHeader {
            cluster: 0x1234,
            node: NodeId(3),
            start: Position(77),
        };
        let mut bytes = header.encode();
        assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::decode(&bytes).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        bytes[8] = FORMAT_VERSION as u8 + 1;
        let newer = Fault::Version(FORMAT_VERSION + 1);
        assert_eq!(SegmentHeader::decode(&bytes), Err(newer));
    }
}
