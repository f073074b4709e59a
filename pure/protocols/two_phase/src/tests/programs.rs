//! Row programs over rows of one int8 column.

use base::codec::CodecError;
use base::row::RowRef;
use base::{Datum, RowBatch, SqlError, Type};
use std::sync::Arc;
use txn::{ColumnFormula, Columns, Formula, FormulaOp, Modified, Program, RowProgram, RowTask};

/// What a test does with a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Test {
    /// Emits the value.
    Read,
    /// Emits the value if it is at least this.
    AtLeast(i64),
    /// Adds to the value and returns the new one.
    Add(i64),
    /// Deletes the row.
    Remove,
    /// Sums all values.
    Sum,
    /// Emits 1 if the row is there, and reads no column.
    Exists,
}

pub(crate) fn program(test: Test) -> Program {
    Program::Live(Arc::new(test))
}

pub(crate) fn row(value: i64) -> Vec<u8> {
    base::row::to_vec(&[Datum::Int(value)])
}

pub(crate) fn value(row: &[u8]) -> i64 {
    match RowRef::new(row)
        .col(0, Type::Int8)
        .expect("test rows decode")
    {
        Datum::Int(value) => value,
        other => panic!("a test row holds {other:?}"),
    }
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Arc<dyn RowProgram>, CodecError> {
    let (tag, rest) = bytes.split_first().ok_or(CodecError::Truncated)?;
    let operand = i64::from_le_bytes(rest.try_into().map_err(|_| CodecError::Truncated)?);
    Ok(Arc::new(match tag {
        0 => Test::Read,
        1 => Test::AtLeast(operand),
        2 => Test::Add(operand),
        3 => Test::Remove,
        4 => Test::Sum,
        5 => Test::Exists,
        6 => return Ok(Arc::new(Adding::new(operand))),
        _ => return Err(CodecError::Malformed("program")),
    }))
}

impl RowProgram for Test {
    fn encode(&self, out: &mut Vec<u8>) {
        let (tag, operand) = match self {
            Test::Read => (0, 0),
            Test::AtLeast(least) => (1, *least),
            Test::Add(delta) => (2, *delta),
            Test::Remove => (3, 0),
            Test::Sum => (4, 0),
            Test::Exists => (5, 0),
        };
        out.push(tag);
        out.extend_from_slice(&i64::to_le_bytes(operand));
    }
    fn width(&self) -> usize {
        1
    }
    fn reads(&self) -> Columns {
        match self {
            Test::Exists => Columns::NONE,
            _ => Columns::one(0),
        }
    }
    fn point(&self, row: &[u8], out: &mut RowBatch) -> Result<bool, SqlError> {
        if matches!(self, Test::Exists) {
            out.push([Datum::Int(1)]);
            return Ok(true);
        }
        let value = value(row);
        let passes = !matches!(self, Test::AtLeast(least) if value < *least);
        if passes {
            out.push([Datum::Int(value)]);
        }
        Ok(passes)
    }
    fn modify(&self, row: &[u8], out: &mut RowBatch) -> Result<Modified, SqlError> {
        let value = value(row);
        match self {
            Test::Add(delta) => {
                out.push([Datum::Int(value + delta)]);
                Ok(Modified::Put(self::row(value + delta)))
            }
            Test::Remove => Ok(Modified::Delete),
            Test::AtLeast(_) | Test::Read | Test::Sum | Test::Exists => Ok(Modified::Skipped),
        }
    }
    fn task(&self) -> Option<Box<dyn RowTask>> {
        matches!(self, Test::Sum).then(|| Box::new(Sum(0)) as Box<dyn RowTask>)
    }
}

/// Adds like [`Test::Add`], and says that this is all it does.
struct Adding(i64, Formula);

impl Adding {
    fn new(delta: i64) -> Adding {
        let change = ColumnFormula::new(0, Type::Int8, FormulaOp::Add(Datum::Int(delta)));
        Adding(delta, Formula(vec![change.expect("integers add exactly")]))
    }
}

pub(crate) fn adding(delta: i64) -> Program {
    Program::Live(Arc::new(Adding::new(delta)))
}

impl RowProgram for Adding {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(6);
        out.extend_from_slice(&self.0.to_le_bytes());
    }
    fn width(&self) -> usize {
        1
    }
    fn reads(&self) -> Columns {
        Columns::one(0)
    }
    fn formula(&self) -> Option<&Formula> {
        Some(&self.1)
    }
    fn point(&self, row: &[u8], out: &mut RowBatch) -> Result<bool, SqlError> {
        Test::Read.point(row, out)
    }
    fn modify(&self, row: &[u8], out: &mut RowBatch) -> Result<Modified, SqlError> {
        Test::Add(self.0).modify(row, out)
    }
    fn task(&self) -> Option<Box<dyn RowTask>> {
        None
    }
}

struct Sum(i64);

impl RowTask for Sum {
    fn row(&mut self, row: &[u8]) -> Result<(), SqlError> {
        self.0 += value(row);
        Ok(())
    }
    fn memory_bytes(&self) -> usize {
        8
    }
    fn finish(self: Box<Self>, out: &mut RowBatch) -> Result<(), SqlError> {
        out.push([Datum::Int(self.0)]);
        Ok(())
    }
}
