//! The manifest: the one small file that says which checkpoint is current.
//!
//! The host writes it to a temporary name, syncs it, renames it over [`MANIFEST_NAME`] and syncs
//! the directory; only then are older checkpoints and journal segments removed.

use crate::fault::{Fault, JournalError};
use crate::parse::Parser;
use crate::segment::FORMAT_VERSION;
use alloc::vec::Vec;
use base::codec;
use base::crc::crc32c;
use base::{NodeId, Position, ShardId, Ts};
use serde::{Deserialize, Serialize};

/// File name of the manifest.
pub const MANIFEST_NAME: &str = "MANIFEST";
const MAGIC: [u8; 8] = *b"TRLSMAN\n";
const HEADER_BYTES: usize = 20;

/// What a node needs to know before it opens any other file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Default)]
pub struct Manifest {
    /// Cluster that the node belongs to.
    pub cluster: u64,
    /// Number of the node.
    pub node: NodeId,
    /// Number of the current checkpoint; 0: none yet.
    pub number: u64,
    /// Shards of this node and the start positions of their checkpoints; the file names follow
    /// from number and shard.
    pub shards: Vec<(ShardId, Position)>,
    /// The journal is read from here: at or below every start, and at or below the oldest chunk of
    /// a transaction that was unfinished at its shard's start.
    pub journal_from: Position,
    /// Number of starts of the node when the manifest was written.
    pub incarnation: u32,
    /// Clock bound when the manifest was written.
    pub clock_bound: Ts,
    /// Version of `catalog`.
    pub catalog_version: u64,
    /// The encoded catalog.
    #[serde(with = "store::bytes")]
    pub catalog: Vec<u8>,
}

impl Manifest {
    /// The file content.
    pub fn encode(&self) -> Vec<u8> {
        let payload = codec::to_vec(self);
        let mut out = Vec::with_capacity(HEADER_BYTES + payload.len());
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        let len = u32::try_from(payload.len()).expect("a catalog is a few megabytes at most");
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&crc32c(&payload).to_le_bytes());
        out.extend_from_slice(&payload);
        out
    }

    /// The manifest in `bytes`, the content of `file`. Safe on hostile input.
    pub fn decode(file: &str, bytes: &[u8]) -> Result<Manifest, JournalError> {
        Manifest::decode_fields(bytes).map_err(|fault| JournalError::new(file, 0, fault))
    }

    fn decode_fields(bytes: &[u8]) -> Result<Manifest, Fault> {
        let mut fields = Parser(bytes);
        if fields.array()? != MAGIC {
            return Err(Fault::Magic);
        }
        let version = fields.u32()?;
        if version != FORMAT_VERSION {
            return Err(Fault::Version(version));
        }
        let len = fields.u32()? as usize;
        let crc = fields.u32()?;
        let payload = fields.bytes(len)?;
        if !fields.0.is_empty() {
            return Err(Fault::Trailing);
        }
        if crc32c(payload) != crc {
            return Err(Fault::Checksum);
        }
        codec::decode(payload).map_err(Fault::Content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let manifest = Manifest {
            cluster: 9,
            node: NodeId(2),
            number: 3,
            shards: vec![(ShardId(16), Position(77)), (ShardId(17), Position(99))],
            journal_from: Position(70),
            incarnation: 4,
            clock_bound: Ts(1 << 60),
            catalog_version: 12,
            catalog: vec![1, 2, 3],
        };
        let mut bytes = manifest.encode();
        assert_eq!(Manifest::decode(MANIFEST_NAME, &bytes), Ok(manifest));
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let error = Manifest::decode(MANIFEST_NAME, &bytes).unwrap_err();
            assert_eq!(error.file, MANIFEST_NAME);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for len in 0..bytes.len() {
            assert!(Manifest::decode(MANIFEST_NAME, &bytes[..len]).is_err());
        }
        bytes.push(0);
        assert!(Manifest::decode(MANIFEST_NAME, &bytes).is_err());
    }
}
