//! The open end of the journal on disk.
//!
//! Segments are filled with zeros ahead of the writing position, so that a sync as a rule changes
//! no file size; that room is also the reserve with which open work ends when the disk is full.

use crate::disk::{Disk, DiskError, DiskFault};
use alloc::string::String;
use alloc::vec;
use base::{NodeId, Position};
use journal::SegmentHeader;
use journal::segment::{SEGMENT_BYTES, segment_name};

/// Sizes of segments and of the room kept ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalLimits {
    /// A new segment begins when the current one has this many bytes.
    pub segment_bytes: u64,
    /// Zeros are kept this far ahead of the writing position; also the reserve on a full disk.
    pub ahead_bytes: u64,
    /// Zeros are added in steps of this size.
    pub fill_bytes: u64,
}

impl Default for JournalLimits {
    fn default() -> JournalLimits {
        JournalLimits {
            segment_bytes: SEGMENT_BYTES,
            ahead_bytes: 8 << 20,
            fill_bytes: 2 << 20,
        }
    }
}

/// The open end of the journal.
pub struct JournalWriter<D: Disk> {
    disk: D,
    limits: JournalLimits,
    cluster: u64,
    node: NodeId,
    file: D::File,
    /// Length of the header and records in the current segment.
    offset: u64,
    /// Length of the current segment file, zeros included.
    filled: u64,
    /// Position of `offset`.
    position: Position,
}

impl<D: Disk> JournalWriter<D> {
    /// Continues at `end`, which lies in the segment `last` with this many bytes of records and
    /// header; without a segment a new one begins. What follows `end` there is cut, durably.
    ///
    /// # Errors
    /// The file cannot be opened, cut or created.
    pub fn open(
        disk: &D,
        limits: JournalLimits,
        (cluster, node): (u64, NodeId),
        end: Position,
        last: Option<(String, u64)>,
    ) -> Result<JournalWriter<D>, DiskError> {
        let (file, offset) = match last {
            Some((name, offset)) => {
                let file = disk.open(&name)?;
                disk.set_length(&file, offset)?;
                disk.sync(&file)?;
                (file, offset)
            }
            None => create_segment(disk, cluster, node, end)?,
        };
        Ok(JournalWriter {
            disk: disk.clone(),
            limits,
            cluster,
            node,
            file,
            offset,
            filled: offset,
            position: end,
        })
    }

    /// Position behind everything written.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Writes framed records. They are durable after [`JournalWriter::sync`].
    ///
    /// # Errors
    /// Whatever the disk says; the journal must not be used any more then.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        if self.offset >= self.limits.segment_bytes {
            // Zeros behind the last record of a segment that is not the last would look like
            // damage, so they go before the next segment exists.
            self.disk.set_length(&self.file, self.offset)?;
            self.disk.sync(&self.file)?;
            (self.file, self.offset) =
                create_segment(&self.disk, self.cluster, self.node, self.position)?;
            self.filled = self.offset;
        }
        self.disk.write_all_at(&self.file, self.offset, bytes)?;
        self.offset += bytes.len() as u64;
        self.filled = self.filled.max(self.offset);
        self.position = Position(self.position.0 + bytes.len() as u64);
        Ok(())
    }

    /// Makes durable what was written; the position to which the journal is durable then.
    ///
    /// # Errors
    /// Whatever the disk says; the journal must not be used any more then.
    pub fn sync(&mut self) -> Result<Position, DiskError> {
        self.disk.sync(&self.file)?;
        Ok(self.position)
    }

    /// Keeps zeros ahead of the writing position. Returns whether there is room for them.
    ///
    /// # Errors
    /// A failure other than a full disk.
    pub fn fill_ahead(&mut self) -> Result<bool, DiskError> {
        let wanted = self.offset + self.limits.ahead_bytes;
        if self.filled >= wanted || self.offset >= self.limits.segment_bytes {
            return Ok(true);
        }
        let zeros = vec![0u8; self.limits.fill_bytes as usize];
        let mut full = false;
        while self.filled < wanted + self.limits.fill_bytes && !full {
            match self.disk.write_at(&self.file, self.filled, &zeros) {
                Ok(count) => self.filled += count as u64,
                Err(error) if error.fault == DiskFault::NoRoom => full = true,
                Err(error) => return Err(error),
            }
        }
        self.disk.sync(&self.file)?;
        Ok(self.filled >= wanted)
    }
}

/// Creates, heads and syncs a segment that starts at `start`.
fn create_segment<D: Disk>(
    disk: &D,
    cluster: u64,
    node: NodeId,
    start: Position,
) -> Result<(D::File, u64), DiskError> {
    let file = disk.create(&segment_name(start))?;
    let header = SegmentHeader {
        cluster,
        node,
        start,
    }
    .encode();
    disk.write_all_at(&file, 0, &header)?;
    disk.sync(&file)?;
    disk.sync_directory()?;
    Ok((file, header.len() as u64))
}
