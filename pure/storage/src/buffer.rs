//! Where records stand between a shard's step and the flush.

use alloc::vec::Vec;
use base::Position;
use journal::frame;

/// Records that are appended and not yet handed to a flush, and the places of half-told
/// transactions. One per node; a host whose shards are threads puts a lock around it.
#[derive(Debug)]
pub struct JournalBuffer {
    bytes: Vec<u8>,
    /// Position behind the last appended record.
    end: Position,
    /// An effect waits for what is in `bytes`.
    urgent: bool,
    /// Positions from which on the journal is kept for records that count only with a later one.
    held: Vec<Position>,
}

impl JournalBuffer {
    /// A buffer for a journal that is durable to `end`.
    pub fn new(end: Position) -> JournalBuffer {
        JournalBuffer {
            bytes: Vec::new(),
            end,
            urgent: false,
            held: Vec::new(),
        }
    }

    /// Appends a record; the position behind it.
    pub fn append(&mut self, payload: &[u8]) -> Position {
        self.push(payload)
    }

    /// The journal is kept from here on, until [`JournalBuffer::free`].
    pub fn hold(&mut self) -> Position {
        self.held.push(self.end);
        self.end
    }

    /// The journal from `held` on is not needed any more; as often as it was held.
    pub fn free(&mut self, held: Position) {
        let found = self.held.iter().position(|other| *other == held);
        self.held
            .swap_remove(found.expect("it is freed as often as it is held"));
    }

    fn push(&mut self, payload: &[u8]) -> Position {
        let before = self.bytes.len();
        frame(payload, &mut self.bytes);
        let added = (self.bytes.len() - before) as u64;
        self.end = Position(self.end.0 + added);
        self.end
    }

    /// The oldest position that is held.
    pub fn oldest_held(&self) -> Option<Position> {
        self.held.iter().min().copied()
    }

    /// Position behind the last appended record.
    pub fn end(&self) -> Position {
        self.end
    }

    /// Bytes that wait to be flushed.
    pub fn pending_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Nothing waits to be flushed.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// An effect waits for what is here.
    pub fn is_urgent(&self) -> bool {
        self.urgent
    }

    /// Notes that an effect waits; whether that is news.
    pub fn hurry(&mut self) -> bool {
        !self.bytes.is_empty() && !core::mem::replace(&mut self.urgent, true)
    }

    /// Takes what is there for a flush, and leaves the empty `spare` in its place.
    pub fn take(&mut self, spare: Vec<u8>) -> Vec<u8> {
        assert!(spare.is_empty(), "a spare buffer holds nothing");
        self.urgent = false;
        core::mem::replace(&mut self.bytes, spare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_position_counts_that_is_held() {
        let mut buffer = JournalBuffer::new(Position(100));
        assert_eq!(buffer.oldest_held(), None);
        let first = buffer.hold();
        buffer.append(b"a");
        let (second, third) = (buffer.hold(), buffer.hold());
        assert_eq!((first, second), (Position(100), third));
        assert_eq!(buffer.oldest_held(), Some(first));
        buffer.free(first);
        buffer.free(second);
        assert_eq!(buffer.oldest_held(), Some(third));
        buffer.free(third);
        assert_eq!(buffer.oldest_held(), None);
    }

    #[test]
    fn a_flush_takes_all_and_positions_run_on() {
        let mut buffer = JournalBuffer::new(Position(0));
        assert!(!buffer.hurry(), "nobody waits for nothing");
        let end = buffer.append(b"abc");
        assert!(buffer.hurry());
        assert!(!buffer.hurry());
        let taken = buffer.take(Vec::new());
        assert_eq!(taken.len() as u64, end.0);
        assert!(buffer.is_empty() && !buffer.is_urgent());
        assert!(buffer.append(b"d") > end);
    }
}
