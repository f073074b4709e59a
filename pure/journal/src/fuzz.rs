//! Entry points for fuzzing: any bytes are taken without a panic, and an accepted value must be the
//! same after another round trip.

use crate::checkpoint::CheckpointReader;
use crate::manifest::{MANIFEST_NAME, Manifest};
use crate::reader::Reader;
use crate::record::{Record, unframe};
use crate::recovery::{Replay, ReplayStart};
use crate::segment::SegmentHeader;
use alloc::vec::Vec;
use base::NodeId;

/// Decodes `bytes` as the payload of a record and as a framed record.
pub fn fuzz_record(bytes: &[u8]) {
    let framed = unframe(bytes).unwrap_or_default();
    for payload in [bytes, framed] {
        if let Ok(record) = Record::decode(payload) {
            let mut again = Vec::new();
            record.encode(&mut again);
            let mut twice = Vec::new();
            let decoded = Record::decode(&again).expect("an encoded record decodes");
            decoded.encode(&mut twice);
            assert_eq!(again, twice, "encoding is stable");
        }
    }
}

/// Reads `bytes` as the last segment of a journal and replays it.
pub fn fuzz_segment(bytes: &[u8]) {
    let (cluster, node) = match SegmentHeader::decode(bytes) {
        Ok(header) => (header.cluster, header.node),
        Err(_) => (0, NodeId(1)),
    };
    let mut reader = Reader::new(cluster, node);
    let mut replay = Replay::new(ReplayStart {
        node,
        ..ReplayStart::default()
    });
    let read = reader.segment("fuzz", bytes, true, &mut |entry| {
        replay.on_record(entry, &mut |_| ())
    });
    if read.is_ok() {
        let tail = reader.finish();
        let cut = tail.torn.map_or(0, |torn| torn.bytes);
        assert!(cut <= bytes.len() as u64, "no more is cut than there is");
        replay.finish(&mut |_| ());
    }
}

/// Reads `bytes` as a checkpoint file, whole and in pieces: both must agree.
pub fn fuzz_checkpoint(bytes: &[u8]) {
    let mut whole = (CheckpointReader::new("fuzz"), 0usize);
    let read = whole.0.push(bytes, &mut |_| whole.1 += 1);
    let whole = (read.and_then(|()| whole.0.finish()).is_ok(), whole.1);
    let mut reader = CheckpointReader::new("fuzz");
    let mut rows = 0;
    let read = bytes
        .chunks(7)
        .try_for_each(|piece| reader.push(piece, &mut |_| rows += 1));
    let pieces = (read.and_then(|()| reader.finish()).is_ok(), rows);
    assert_eq!(whole, pieces, "the size of pieces does not matter");
}

/// Decodes `bytes` as a manifest.
pub fn fuzz_manifest(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::decode(MANIFEST_NAME, bytes) {
        let again = Manifest::decode(MANIFEST_NAME, &manifest.encode());
        assert_eq!(again, Ok(manifest), "encoding is stable");
    }
}
