//! Reading a journal back, segment by segment.

use crate::fault::{Fault, JournalError};
use crate::record::{FRAME_BYTES, RECORD_BYTES_MAX, RECORD_KINDS, Record, unframe};
use crate::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};
use alloc::string::String;
use base::crc::{Crc32c, RANGE_STEP, Ranges};
use base::{NodeId, Position};

/// One record and its position.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// End of the record: the journal must be durable to here for the record to survive.
    pub end: Position,
    /// The record.
    pub record: Record,
}

/// The end of a journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tail {
    /// Position behind the last valid record: the next one is appended here.
    pub end: Position,
    /// A torn write at the end of the last segment, which the host cuts off before it appends.
    pub torn: Option<Torn>,
}

/// Bytes at the end of a segment that are no whole record, with no record behind them: a write that
/// a crash interrupted. No client was told of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Torn {
    /// Name of the segment.
    pub file: String,
    /// Length to which the file is truncated; 0: the header is not whole, so the file is removed.
    pub offset: u64,
    /// Number of bytes that are cut.
    pub bytes: u64,
    /// Number of those bytes up to the last that is not 0; the rest is room kept ahead. 0: no write
    /// was interrupted.
    pub written: u64,
    /// Position at which the journal ends.
    pub end: Position,
}

/// Reads the segments of one node's journal in order.
#[derive(Clone, Debug)]
pub struct Reader {
    cluster: u64,
    node: NodeId,
    end: Option<Position>,
    torn: Option<Torn>,
}

impl Reader {
    /// A reader for the journal of `node` in `cluster`.
    pub fn new(cluster: u64, node: NodeId) -> Reader {
        Reader {
            cluster,
            node,
            end: None,
            torn: None,
        }
    }

    /// Reads the segment `name` with content `bytes` and calls `f` for each record. `last`: no
    /// segment follows.
    ///
    /// A broken record is cut as a torn tail if it stands in the last segment and no valid record
    /// follows. Otherwise it is an error, and so is a fault that `f` reports.
    pub fn segment(
        &mut self,
        name: &str,
        bytes: &[u8],
        last: bool,
        f: &mut dyn FnMut(Entry) -> Result<(), Fault>,
    ) -> Result<(), JournalError> {
        assert!(
            self.torn.is_none(),
            "nothing is read behind the last segment"
        );
        let header = match SegmentHeader::decode(bytes) {
            Ok(header) => header,
            // A crash between creating the file and syncing its header. Nothing was written behind
            // it, because records are appended only after the header is durable.
            Err(fault) if last && bytes.len() <= SEGMENT_HEADER_BYTES && is_tear(&fault) => {
                let end = self.end.unwrap_or_default();
                self.torn = Some(torn(name, 0, bytes, end));
                return Ok(());
            }
            Err(fault) => return Err(JournalError::new(name, 0, fault)),
        };
        self.check_header(header)
            .map_err(|fault| JournalError::new(name, 0, fault))?;
        let mut offset = SEGMENT_HEADER_BYTES;
        self.end = Some(header.start);
        while offset < bytes.len() {
            let at = |fault| JournalError::new(name, offset as u64, fault);
            let payload = match unframe(&bytes[offset..]) {
                Ok(payload) => payload,
                Err(_) if last && !valid_record_follows(&bytes[offset..]).0 => {
                    let end = self.end.expect("the header says where it begins");
                    self.torn = Some(torn(name, offset, bytes, end));
                    return Ok(());
                }
                Err(fault) => return Err(at(fault)),
            };
            let record = Record::decode(payload).map_err(|error| at(Fault::Content(error)))?;
            let next = offset + FRAME_BYTES + payload.len();
            let end = Position(header.start.0 + (next - SEGMENT_HEADER_BYTES) as u64);
            f(Entry { end, record }).map_err(at)?;
            self.end = Some(end);
            offset = next;
        }
        Ok(())
    }

    fn check_header(&self, header: SegmentHeader) -> Result<(), Fault> {
        if header.cluster != self.cluster {
            return Err(Fault::Foreign("cluster"));
        }
        if header.node != self.node {
            return Err(Fault::Foreign("node"));
        }
        match self.end {
            Some(expected) if expected != header.start => Err(Fault::Gap {
                expected,
                found: header.start,
            }),
            _ => Ok(()),
        }
    }

    /// The end of the journal, after its last segment; position 0: there was no segment.
    pub fn finish(self) -> Tail {
        Tail {
            end: self.end.unwrap_or_default(),
            torn: self.torn,
        }
    }
}

/// Whether an interrupted write of a header can look like this: short, or partly zeros.
fn is_tear(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::Truncated | Fault::Checksum | Fault::Magic | Fault::Version(0)
    )
}

fn torn(name: &str, offset: usize, bytes: &[u8], end: Position) -> Torn {
    let cut = &bytes[offset..];
    let last = cut.iter().rposition(|byte| *byte != 0);
    Torn {
        written: last.map_or(0, |last| last as u64 + 1),
        end,
        file: name.into(),
        offset: offset as u64,
        bytes: (bytes.len() - offset) as u64,
    }
}

/// Whether a valid record begins behind the first byte of `bytes`, and how many bytes the search
/// has read: at most a fixed multiple of their number, whatever they are.
fn valid_record_follows(bytes: &[u8]) -> (bool, usize) {
    let ranges = Ranges::new(bytes);
    let mut work = 2 * bytes.len();
    for at in 1..bytes.len().saturating_sub(FRAME_BYTES) {
        let candidate = &bytes[at..];
        let Some((len_bytes, rest)) = candidate.split_first_chunk::<4>() else {
            break;
        };
        let len = u32::from_le_bytes(*len_bytes) as usize;
        let fits = (1..=RECORD_BYTES_MAX).contains(&len) && candidate.len() >= FRAME_BYTES + len;
        if !fits || candidate[FRAME_BYTES] >= RECORD_KINDS {
            continue;
        }
        let mut crc = Crc32c::new();
        crc.update(len_bytes);
        let start = at + FRAME_BYTES;
        let crc = ranges.continued(crc, start..start + len).finish();
        work += 2 * RANGE_STEP;
        if rest.first_chunk() == Some(&crc.to_le_bytes()) {
            return (true, work);
        }
    }
    (false, work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::frame;
    use base::Ts;

    fn segment(start: u64, stamps: &[u64]) -> Vec<u8> {
        let header = SegmentHeader {
            cluster: 1,
            node: NodeId(2),
            start: Position(start),
        };
        let mut bytes = header.encode().to_vec();
        for &ts in stamps {
            let mut payload = Vec::new();
            Record::ClockBound { ts: Ts(ts) }.encode(&mut payload);
            frame(&payload, &mut bytes);
        }
        bytes
    }

    fn read(segments: &[(&str, Vec<u8>)]) -> Result<(Vec<u64>, Tail), JournalError> {
        let mut reader = Reader::new(1, NodeId(2));
        let mut stamps = Vec::new();
        for (i, (name, bytes)) in segments.iter().enumerate() {
            reader.segment(name, bytes, i + 1 == segments.len(), &mut |entry| {
                let Record::ClockBound { ts } = entry.record else {
                    panic!("only bounds here")
                };
                stamps.push(ts.0);
                Ok(())
            })?;
        }
        Ok((stamps, reader.finish()))
    }

    const RECORD: usize = FRAME_BYTES + 2;

    #[test]
    fn positions_run_through_segments() {
        let second = Position(3 * RECORD as u64);
        let parts = [
            ("a", segment(0, &[1, 2, 3])),
            ("b", segment(second.0, &[4, 5])),
        ];
        let (stamps, tail) = read(&parts).unwrap();
        assert_eq!(stamps, [1, 2, 3, 4, 5]);
        assert_eq!(
            tail,
            Tail {
                end: Position(5 * RECORD as u64),
                torn: None
            }
        );
    }

    #[test]
    fn every_cut_of_the_last_segment_is_a_torn_tail() {
        let whole = segment(0, &[1, 2, 3]);
        for len in 0..whole.len() {
            let (stamps, tail) = read(&[("a", whole[..len].to_vec())]).unwrap();
            let count = len.saturating_sub(SEGMENT_HEADER_BYTES) / RECORD;
            assert_eq!(stamps.len(), count, "cut at {len}");
            assert_eq!(tail.end, Position((count * RECORD) as u64));
            let kept = SEGMENT_HEADER_BYTES + count * RECORD;
            let offset = if len < SEGMENT_HEADER_BYTES { 0 } else { kept };
            let bytes = (len - offset) as u64;
            let cut = &whole[offset..len];
            let torn = Torn {
                file: "a".into(),
                offset: offset as u64,
                bytes,
                written: cut
                    .iter()
                    .rposition(|b| *b != 0)
                    .map_or(0, |at| at as u64 + 1),
                end: tail.end,
            };
            let exact = len == kept;
            assert_eq!(tail.torn, (!exact).then_some(torn), "cut at {len}");
        }
    }

    #[test]
    fn a_flipped_bit_is_an_error_or_cuts_the_last_record() {
        let whole = segment(0, &[1, 2, 3]);
        let last = whole.len() - RECORD;
        for byte in SEGMENT_HEADER_BYTES..whole.len() {
            let mut bytes = whole.clone();
            bytes[byte] ^= 0x40;
            match read(&[("a", bytes)]) {
                Ok((stamps, tail)) => {
                    assert!(byte >= last, "byte {byte} is in the middle");
                    assert_eq!((stamps.len(), tail.torn.unwrap().offset), (2, last as u64));
                }
                Err(error) => {
                    assert!(byte < last, "byte {byte} is in the tail");
                    let record = (byte - SEGMENT_HEADER_BYTES) / RECORD * RECORD;
                    assert_eq!(error.file, "a");
                    assert_eq!(error.offset, (SEGMENT_HEADER_BYTES + record) as u64);
                }
            }
        }
    }

    #[test]
    fn zeros_and_garbage_behind_the_end_are_cut() {
        let mut prng = base::Prng::new(3);
        for len in [1, 7, 8, 9, 100, 5000] {
            let mut bytes = segment(0, &[1, 2]);
            let end = bytes.len() as u64;
            let zero = prng.below(2) == 0;
            bytes.extend((0..len).map(|_| if zero { 0 } else { prng.below(255) as u8 + 1 }));
            let (stamps, tail) = read(&[("a", bytes)]).unwrap();
            assert_eq!(stamps, [1, 2]);
            let torn = Torn {
                file: "a".into(),
                offset: end,
                bytes: len,
                written: if zero { 0 } else { len },
                end: Position(2 * RECORD as u64),
            };
            assert_eq!(tail.torn, Some(torn));
        }
    }

    /// A flipped byte at the front of a large segment: the search for a record behind it reads each
    /// byte a bounded number of times, even if a record seems to begin at every byte.
    #[test]
    fn the_search_behind_a_broken_record_is_linear() {
        let mut prng = base::Prng::new(5);
        let random: Vec<u8> = (0..400_000).map(|_| prng.next_u64() as u8).collect();
        // Lengths that fit at every second place, with a kind that exists.
        let alike: Vec<u8> = [1, 1, 0, 0].repeat(100_000);
        for bytes in [random, alike] {
            for part in [100_000, 200_000, 400_000] {
                let (found, work) = valid_record_follows(&bytes[..part]);
                assert!(!found);
                assert!(
                    work <= 2 * part * (RANGE_STEP + 1),
                    "{part} bytes: {work} read"
                );
            }
        }
        // The record behind may end in zeros itself.
        for last in [0, 2] {
            let mut whole = segment(0, &[1, last]);
            whole[SEGMENT_HEADER_BYTES] ^= 1;
            assert!(valid_record_follows(&whole[SEGMENT_HEADER_BYTES..]).0);
        }
    }

    #[test]
    fn a_segment_before_the_last_must_be_whole() {
        let mut first = segment(0, &[1, 2]);
        first.pop();
        let error = read(&[("a", first), ("b", segment(2 * RECORD as u64, &[3]))]).unwrap_err();
        let offset = (SEGMENT_HEADER_BYTES + RECORD) as u64;
        assert_eq!(error, JournalError::new("a", offset, Fault::Truncated));
    }

    #[test]
    fn foreign_and_missing_segments_are_refused() {
        let gap = read(&[("a", segment(0, &[1])), ("b", segment(99, &[2]))]).unwrap_err();
        let expected = Position(RECORD as u64);
        assert_eq!(
            gap.fault,
            Fault::Gap {
                expected,
                found: Position(99)
            }
        );
        let mut reader = Reader::new(7, NodeId(2));
        let error = reader
            .segment("a", &segment(0, &[1]), true, &mut |_| Ok(()))
            .unwrap_err();
        assert_eq!(error.fault, Fault::Foreign("cluster"));
        let mut reader = Reader::new(1, NodeId(3));
        let error = reader
            .segment("a", &segment(0, &[1]), true, &mut |_| Ok(()))
            .unwrap_err();
        assert_eq!(error.fault, Fault::Foreign("node"));
        let mut newer = segment(0, &[1]);
        newer[8] = crate::FORMAT_VERSION as u8 + 1;
        let error = read(&[("a", newer)]).unwrap_err();
        let (ours, theirs) = (crate::FORMAT_VERSION, crate::FORMAT_VERSION + 1);
        let text = alloc::format!(
            "a is corrupt at offset 0: format version {theirs}, but this release reads version \
             {ours}"
        );
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn a_right_checksum_over_an_unknown_record_is_an_error_even_at_the_end() {
        let mut bytes = segment(0, &[1]);
        let offset = bytes.len() as u64;
        frame(&[RECORD_KINDS, 0, 0], &mut bytes);
        let error = read(&[("a", bytes)]).unwrap_err();
        assert_eq!(error.offset, offset);
        assert!(matches!(error.fault, Fault::Content(_)));
    }
}
