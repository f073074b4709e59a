//! Why the files of a node cannot be used.

use crate::disk::DiskError;
use crate::mark::MarkError;
use crate::presence::Missing;
use alloc::string::String;
use base::codec::CodecError;
use base::{NodeId, Position};
use core::fmt;
use journal::JournalError;

/// What stops a node at its start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StorageError {
    /// The disk refuses.
    Disk(DiskError),
    /// A file is damaged; file and offset are named.
    Journal(JournalError),
    /// The directory is another node's.
    Foreign {
        /// The manifest.
        file: String,
        /// Node and cluster that it names.
        found: (NodeId, u64),
        /// Node and cluster that want to use it.
        expected: (NodeId, u64),
    },
    /// Files are missing without which the node would be another one.
    Missing {
        /// The directory.
        directory: String,
        /// Which ones.
        what: Missing,
    },
    /// The journal ends before a position to which it was durable.
    Cut {
        /// Its last segment.
        file: String,
        /// Where it ends.
        end: Position,
        /// Where it is known to have been.
        known: Position,
    },
    /// The directory holds another number of shards, which cannot change.
    Shards {
        /// The manifest.
        file: String,
        /// In the directory.
        found: usize,
        /// In the cluster file.
        expected: u16,
    },
    /// The catalog has a right checksum but is none.
    Catalog(CodecError),
}

impl From<DiskError> for StorageError {
    fn from(error: DiskError) -> Self {
        StorageError::Disk(error)
    }
}

impl From<JournalError> for StorageError {
    fn from(error: JournalError) -> Self {
        StorageError::Journal(error)
    }
}

impl From<MarkError> for StorageError {
    fn from(error: MarkError) -> Self {
        match error {
            MarkError::Disk(error) => StorageError::Disk(error),
            MarkError::Damaged(error) => StorageError::Journal(error),
        }
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorageError::Disk(error) => write!(f, "{error}"),
            StorageError::Journal(error) => write!(f, "{error}"),
            StorageError::Foreign {
                file,
                found,
                expected,
            } => write!(
                f,
                "{file} belongs to node {} of cluster {}, not to node {} of cluster {}",
                found.0, found.1, expected.0, expected.1
            ),
            StorageError::Shards {
                file,
                found,
                expected,
            } => write!(
                f,
                "{file} holds {found} shards, the cluster file says {expected}; the number cannot \
                 change"
            ),
            StorageError::Missing { directory, what } => {
                write!(f, "{directory} cannot be used: {what}")
            }
            StorageError::Cut { file, end, known } => write!(
                f,
                "{file}: the journal ends at position {}, but it was durable to {}: {} bytes that \
                 were acknowledged are missing",
                end.0,
                known.0,
                known.0 - end.0
            ),
            StorageError::Catalog(error) => {
                write!(f, "the journaled catalog is damaged: {error}")
            }
        }
    }
}

impl core::error::Error for StorageError {}
