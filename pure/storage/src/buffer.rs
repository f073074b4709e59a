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
    /// Somebody waits for what is in `bytes`.
    urgent: bool,
    /// Per handle: position before the first part whose record has not been appended yet.
    parts: Vec<Option<Position>>,
}

impl JournalBuffer {
    /// A buffer for a journal that is durable to `end`.
    pub fn new(end: Position) -> JournalBuffer {
        JournalBuffer {
            bytes: Vec::new(),
            end,
            urgent: false,
            parts: Vec::new(),
        }
    }

    /// A new handle: parts are noted per handle, so each shard needs its own.
    pub fn add_handle(&mut self) -> usize {
        self.parts.push(None);
        self.parts.len() - 1
    }

    /// Appends a record of the shard with this handle; the position behind it.
    pub fn append(&mut self, handle: usize, payload: &[u8]) -> Position {
        self.parts[handle] = None;
        self.push(payload)
    }

    /// As [`JournalBuffer::append`], for a record that counts only with a later one of the same
    /// handle.
    pub fn append_part(&mut self, handle: usize, payload: &[u8]) -> Position {
        let start = self.end;
        self.parts[handle].get_or_insert(start);
        self.push(payload)
    }

    fn push(&mut self, payload: &[u8]) -> Position {
        let before = self.bytes.len();
        frame(payload, &mut self.bytes);
        let added = (self.bytes.len() - before) as u64;
        self.end = Position(self.end.0 + added);
        self.end
    }

    /// Position before the oldest part that still waits for its record.
    pub fn oldest_part(&self) -> Option<Position> {
        self.parts.iter().flatten().min().copied()
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

    /// Somebody waits for what is here.
    pub fn is_urgent(&self) -> bool {
        self.urgent
    }

    /// Notes that somebody waits; whether that is news.
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
    fn parts_are_open_until_their_handle_appends_a_record() {
        let mut buffer = JournalBuffer::new(Position(100));
        let (one, two) = (buffer.add_handle(), buffer.add_handle());
        let first = buffer.append(one, b"a");
        assert_eq!(buffer.oldest_part(), None);
        let part = buffer.append_part(two, b"b");
        buffer.append_part(two, b"c");
        assert!(part > first);
        assert_eq!(buffer.oldest_part(), Some(first));
        buffer.append(one, b"d");
        assert_eq!(buffer.oldest_part(), Some(first));
        buffer.append(two, b"e");
        assert_eq!(buffer.oldest_part(), None);
    }

    #[test]
    fn a_flush_takes_all_and_positions_run_on() {
        let mut buffer = JournalBuffer::new(Position(0));
        let handle = buffer.add_handle();
        assert!(!buffer.hurry(), "nobody waits for nothing");
        let end = buffer.append(handle, b"abc");
        assert!(buffer.hurry());
        assert!(!buffer.hurry());
        let taken = buffer.take(Vec::new());
        assert_eq!(taken.len() as u64, end.0);
        assert!(buffer.is_empty() && !buffer.is_urgent());
        assert!(buffer.append(handle, b"d") > end);
    }
}
