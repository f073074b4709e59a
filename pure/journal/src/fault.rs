//! What can be wrong with a file, and where.

use alloc::string::String;
use base::codec::CodecError;
use base::{Position, ShardId, TxnId};
use core::fmt;

/// A file that cannot be trusted. Fatal for the node: an operator restores a backup or removes the
/// node; retrying cannot help.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalError {
    /// Name of the file.
    pub file: String,
    /// Byte in the file at which the broken part begins.
    pub offset: u64,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong at one place of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The file does not begin with the magic bytes of its kind.
    Magic,
    /// Written by a release with another format.
    Version(u32),
    /// The file belongs to another cluster, node, shard or checkpoint; the text names which.
    Foreign(&'static str),
    /// The segment does not begin where the one before ends.
    Gap {
        /// End of the segment before.
        expected: Position,
        /// Start that its header states.
        found: Position,
    },
    /// A length of 0 or beyond the limit.
    Length(u64),
    /// The bytes end too early.
    Truncated,
    /// Bytes follow the end.
    Trailing,
    /// Checksum and content differ.
    Checksum,
    /// The checksum is right but the content is no value of the format.
    Content(CodecError),
    /// A part stands where it must not; the text names the part.
    Order(&'static str),
    /// The footer counts differ from the content.
    Count,
    /// A participant's commit without its promise.
    OutcomeWithoutPrepare {
        /// The transaction.
        txn: TxnId,
        /// The participant.
        shard: ShardId,
    },
    /// A record names chunks that are not there.
    MissingChunk {
        /// The transaction.
        txn: TxnId,
    },
    /// Two records state different outcomes.
    Contradiction {
        /// The transaction.
        txn: TxnId,
    },
}

impl JournalError {
    /// An error at `offset` of `file`.
    pub fn new(file: &str, offset: u64, fault: Fault) -> JournalError {
        JournalError {
            file: file.into(),
            offset,
            fault,
        }
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is corrupt at offset {}: {}",
            self.file, self.offset, self.fault
        )
    }
}

impl core::error::Error for JournalError {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Magic => f.write_str("not a file of this kind"),
            Fault::Version(version) => write!(
                f,
                "format version {version}, but this release reads version {}",
                crate::FORMAT_VERSION
            ),
            Fault::Foreign(what) => write!(f, "it belongs to another {what}"),
            Fault::Gap { expected, found } => write!(
                f,
                "the segment begins at position {} where {} was expected",
                found.0, expected.0
            ),
            Fault::Length(len) => write!(f, "impossible length {len}"),
            Fault::Truncated => f.write_str("it ends too early"),
            Fault::Trailing => f.write_str("bytes follow its end"),
            Fault::Checksum => f.write_str("wrong checksum"),
            Fault::Content(error) => write!(f, "{error}"),
            Fault::Order(part) => write!(f, "{part} out of place"),
            Fault::Count => f.write_str("the footer's counts differ from the content"),
            Fault::OutcomeWithoutPrepare { txn, shard } => {
                write!(
                    f,
                    "transaction {txn} commits on shard {shard}, which never prepared it"
                )
            }
            Fault::MissingChunk { txn } => {
                write!(f, "a part of the writes of transaction {txn} is missing")
            }
            Fault::Contradiction { txn } => {
                write!(
                    f,
                    "two records state different outcomes of transaction {txn}"
                )
            }
        }
    }
}
