//! The mark: how far the journal was durable a moment ago, and whose directory this is.
//!
//! A journal does not know how long it was. Cut at a record it looks like one that has always ended
//! there; the mark tells the difference. It has two slots. One is durable; the other one takes what
//! is written next, so that a torn write leaves the first.
//!
//! [`MarkWriter::note`] makes a position durable, which costs a sync. [`MarkWriter::hint`] only
//! writes it: it survives the end of the process, and is lost with the machine's power at worst.

use crate::disk::{Disk, DiskError, DiskFault};
use alloc::string::String;
use alloc::vec::Vec;
use base::crc::crc32c;
use base::{NodeId, Position};
use journal::{FORMAT_VERSION, Fault, JournalError};

/// Name of the file.
pub const MARK_NAME: &str = "SYNCED";
/// Where the first one lies until it is whole.
const MARK_NEW: &str = "SYNCED.new";
const MAGIC: [u8; 8] = *b"TRLSSYN\n";
/// Slots lie in different sectors of a disk.
const SLOT_BYTES: usize = 4096;
const FIELDS_BYTES: usize = 56;

/// What one slot says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Number of the cluster.
    pub cluster: u64,
    /// The node.
    pub node: NodeId,
    /// Drawn when the directory was begun: another directory has another number.
    pub directory: u64,
    /// Starts of the node so far.
    pub incarnation: u32,
    /// The journal was durable to here.
    pub position: Position,
    /// Counts the marks written: the larger one is the newer one.
    number: u64,
    /// Which slot it was read from.
    slot: u64,
}

impl Mark {
    /// The first mark of a directory.
    pub fn first((cluster, node): (u64, NodeId), directory: u64) -> Mark {
        Mark {
            cluster,
            node,
            directory,
            incarnation: 0,
            position: Position(0),
            number: 0,
            slot: 0,
        }
    }

    fn encode(&self) -> [u8; FIELDS_BYTES] {
        let mut out = Vec::with_capacity(FIELDS_BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&u32::from(self.node.0).to_le_bytes());
        out.extend_from_slice(&self.cluster.to_le_bytes());
        out.extend_from_slice(&self.directory.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.position.0.to_le_bytes());
        out.extend_from_slice(&self.incarnation.to_le_bytes());
        out.extend_from_slice(&crc32c(&out).to_le_bytes());
        out.try_into().expect("the fields have this length")
    }

    fn decode(bytes: &[u8]) -> Option<Mark> {
        let fields: &[u8; FIELDS_BYTES] = bytes.first_chunk()?;
        let word = |at: usize| u32::from_le_bytes(fields[at..at + 4].try_into().expect("four"));
        let long = |at: usize| u64::from_le_bytes(fields[at..at + 8].try_into().expect("eight"));
        let right = fields[..8] == MAGIC
            && word(8) == FORMAT_VERSION
            && word(FIELDS_BYTES - 4) == crc32c(&fields[..FIELDS_BYTES - 4]);
        right.then(|| Mark {
            node: NodeId(word(12) as u16),
            cluster: long(16),
            directory: long(24),
            number: long(32),
            position: Position(long(40)),
            incarnation: word(48),
            slot: 0,
        })
    }
}

/// Reads the mark; `None` if there is none, as in a directory that was never used.
///
/// # Errors
/// It cannot be read, or no slot of it is whole.
pub fn read_mark<D: Disk>(disk: &D) -> Result<Option<Mark>, MarkError> {
    let bytes = match disk.read_all(MARK_NAME) {
        Ok(bytes) => bytes,
        Err(error) if error.fault == DiskFault::NotFound => return Ok(None),
        Err(error) => return Err(MarkError::Disk(error)),
    };
    let slots = (0..).zip(bytes.chunks(SLOT_BYTES));
    let slots = slots.filter_map(|(slot, bytes)| {
        Some(Mark {
            slot,
            ..Mark::decode(bytes)?
        })
    });
    match slots.max_by_key(|mark| mark.number) {
        Some(mark) => Ok(Some(mark)),
        None => {
            let name: String = disk.describe(MARK_NAME);
            let error = JournalError::new(&name, 0, Fault::Checksum);
            Err(MarkError::Damaged(error))
        }
    }
}

/// Why the mark cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MarkError {
    /// The disk refuses.
    Disk(DiskError),
    /// Both slots are damaged.
    Damaged(JournalError),
}

/// The open file of the mark.
pub struct MarkWriter<D: Disk> {
    disk: D,
    file: D::File,
    mark: Mark,
    /// Which slot is durable, and what it says.
    synced: (u64, Position),
}

impl<D: Disk> MarkWriter<D> {
    /// Goes on with `mark`, as read, and makes `position` and `incarnation` durable in it; a
    /// directory without one gets one.
    ///
    /// # Errors
    /// Whatever the disk says.
    pub fn open(
        disk: &D,
        mark: Mark,
        incarnation: u32,
        position: Position,
    ) -> Result<MarkWriter<D>, DiskError> {
        let exists = mark.number > 0;
        let name = if exists { MARK_NAME } else { MARK_NEW };
        let file = if exists {
            disk.open(name)?
        } else {
            disk.create(name)?
        };
        if exists {
            // What was read may be a hint: the other slot is written next.
            disk.sync(&file)?;
        } else {
            // Later marks need no room.
            disk.write_all_at(&file, 0, &[0; 2 * SLOT_BYTES])?;
        }
        let mut writer = MarkWriter {
            disk: disk.clone(),
            file,
            mark: Mark {
                incarnation,
                ..mark
            },
            synced: (mark.slot, mark.position),
        };
        writer.put(position)?;
        if !exists {
            disk.rename(MARK_NEW, MARK_NAME)?;
            disk.sync_directory()?;
        }
        Ok(writer)
    }

    /// Number of the directory.
    pub fn directory(&self) -> u64 {
        self.mark.directory
    }

    /// Notes durably that the journal is durable to `position`; nothing if that is known.
    ///
    /// # Errors
    /// Whatever the disk says.
    pub fn note(&mut self, position: Position) -> Result<(), DiskError> {
        if position > self.synced.1 {
            self.put(position)?;
        }
        Ok(())
    }

    /// Notes that the journal is durable to `position`, for the case that only the process ends.
    /// Cheap enough for every sync of the journal.
    ///
    /// # Errors
    /// Whatever the disk says.
    pub fn hint(&mut self, position: Position) -> Result<(), DiskError> {
        if position > self.mark.position {
            self.write(position)?;
        }
        Ok(())
    }

    fn put(&mut self, position: Position) -> Result<(), DiskError> {
        let slot = self.write(position)?;
        self.disk.sync(&self.file)?;
        self.synced = (slot, position);
        Ok(())
    }

    /// Writes to the slot that is not the durable one, and answers which.
    fn write(&mut self, position: Position) -> Result<u64, DiskError> {
        self.mark.number += 1;
        self.mark.position = position;
        let slot = 1 - self.synced.0;
        let at = slot * SLOT_BYTES as u64;
        self.disk
            .write_all_at(&self.file, at, &self.mark.encode())?;
        Ok(slot)
    }
}
