//! Work done where the rows are: filter, project, partial aggregate, change.

use crate::columns::Columns;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::codec::CodecError;
use base::limits::PROGRAM_BYTES_MAX;
use base::{RowBatch, SqlError};
use core::fmt;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use store::Formula;

/// A pure function over rows, with bound parameters. `sql` implements it; protocols only run it.
pub trait RowProgram: Send + Sync {
    /// Appends a form from which [`DecodeProgram`] makes an equal program on another node.
    fn encode(&self, out: &mut Vec<u8>);

    /// Upper bound of the bytes of its encoded form, roughly, without encoding it.
    fn bytes_at_most(&self) -> usize {
        0
    }

    /// Number of columns of the rows that it emits.
    fn width(&self) -> usize;

    /// Units of work for one row, at least 1. Reading a row takes about one unit.
    fn units(&self) -> u32 {
        1
    }

    /// The same program, made faster at a cost that pays for many rows; `None`: it cannot be.
    fn for_many_rows(&self) -> Option<Arc<dyn RowProgram>> {
        None
    }

    /// The columns of a row that the program reads: what it emits and decides depends on no other.
    fn reads(&self) -> Columns {
        Columns::ALL
    }

    /// For `Op::Modify`: the formulas that [`RowProgram::modify`] applies. It changes a row by the
    /// one whose guards hold there, and returns [`Modified::Formula`]; of several, the guards of
    /// one at most hold. Where none holds it may do anything. A guarded one returns no columns.
    /// Empty: it may do anything with every row.
    fn formulas(&self) -> &[Formula] {
        &[]
    }

    /// Filters and projects one encoded row: appends to `out` and returns true if the row passes.
    ///
    /// # Errors
    /// What evaluating the expressions raises (for example 22012); the statement has then failed.
    fn point(&self, row: &[u8], out: &mut RowBatch) -> Result<bool, SqlError>;

    /// For `Op::Modify`: the new state of one row. Appends the RETURNING row to `out` if that is
    /// wanted.
    ///
    /// # Errors
    /// As [`RowProgram::point`]; also constraint violations (23502, 23514, 22001, 22003).
    fn modify(&self, row: &[u8], out: &mut RowBatch) -> Result<Modified, SqlError>;

    /// The state of one run over many rows, if the program aggregates; `None`: each row stands
    /// alone and goes to [`RowProgram::point`].
    fn task(&self) -> Option<Box<dyn RowTask>>;
}

/// What [`RowProgram::modify`] decided for a row.
#[derive(Clone, PartialEq, Debug)]
pub enum Modified {
    /// The row does not pass the filter: nothing is written.
    Skipped,
    /// The row becomes this.
    Put(Vec<u8>),
    /// The row is changed by this one of [`RowProgram::formulas`], which folds onto it.
    Formula(Formula),
    /// The row goes.
    Delete,
}

/// One run of an aggregating program over the rows of one shard.
pub trait RowTask {
    /// Takes in one encoded row; `key` is its key in the scanned index.
    ///
    /// # Errors
    /// As [`RowProgram::point`].
    fn row(&mut self, key: &[u8], row: &[u8]) -> Result<(), SqlError>;
    /// The number of first rows, in the order of their keys, that the task wants; `None`: all. It
    /// gets the rows of a slot in that order, and need not get later ones.
    fn first_rows(&self) -> Option<usize> {
        None
    }
    /// Whether a row at or behind this key can still change the result.
    fn wants(&self, _key: &[u8]) -> bool {
        true
    }
    /// Bytes of state held now. The caller enforces the memory limit.
    fn memory_bytes(&self) -> usize;
    /// Emits the partial results.
    ///
    /// # Errors
    /// As [`RowProgram::point`].
    fn finish(self: Box<Self>, out: &mut RowBatch) -> Result<(), SqlError>;
}

/// Makes a program from its encoded form; given to every shard by the node.
pub type DecodeProgram = fn(&[u8]) -> Result<Arc<dyn RowProgram>, CodecError>;

/// A program: live within a node, encoded between nodes.
#[derive(Clone)]
pub enum Program {
    /// Ready to run.
    Live(Arc<dyn RowProgram>),
    /// Encoded, as it came from another node.
    Encoded(Box<[u8]>),
}

impl Program {
    /// Its size in bytes if that exceeds [`PROGRAM_BYTES_MAX`]: no frame could carry it.
    pub fn too_long(&self) -> Option<usize> {
        let Program::Live(program) = self else {
            return None;
        };
        if program.bytes_at_most() <= PROGRAM_BYTES_MAX {
            return None;
        }
        let mut encoded = Vec::new();
        program.encode(&mut encoded);
        (encoded.len() > PROGRAM_BYTES_MAX).then_some(encoded.len())
    }

    /// Decodes the program before its use. Bytes that are no program stay: their use fails.
    pub fn make_live(&mut self, decode: DecodeProgram) -> Option<Arc<dyn RowProgram>> {
        let live = self.live(decode).ok()?;
        *self = Program::Live(live.clone());
        Some(live)
    }

    /// The program, decoded if need be.
    ///
    /// # Errors
    /// The bytes are not a program: the message is malformed.
    pub fn live(&self, decode: DecodeProgram) -> Result<Arc<dyn RowProgram>, CodecError> {
        match self {
            Program::Live(program) => Ok(program.clone()),
            Program::Encoded(bytes) => decode(bytes),
        }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Program")
    }
}

impl Serialize for Program {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Program::Live(program) => {
                let mut bytes = Vec::new();
                program.encode(&mut bytes);
                base::bytes::serialize(&bytes, serializer)
            }
            Program::Encoded(bytes) => base::bytes::serialize(bytes, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Program {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Program::Encoded(
            base::bytes::deserialize(deserializer)?.into(),
        ))
    }
}
