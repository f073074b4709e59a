//! Row programs over rows of one int8 column.

use crate::TABLE;
use base::codec::CodecError;
use base::row::RowRef;
use base::strings::StringFunc;
use base::{Datum, Key, KeyRange, RowBatch, SqlError, Type};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::computed::{Arithmetic, Computed, ValueFunc};
use txn::{
    ColumnFormula, Columns, Formula, FormulaOp, Modified, Op, Program, Read, RowProgram, RowTask,
    ScanOp, Slots,
};

/// What a test does with a row.
#[derive(Clone, Copy, Debug)]
pub enum Test {
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
    /// The values of this many first rows, or last rows if negative; values below 0 do not pass.
    First(i64),
}

/// A program that runs where the row is.
pub fn program(test: Test) -> Program {
    Program::Live(Arc::new(test))
}

/// A row of one column.
pub fn row(value: i64) -> Vec<u8> {
    base::row::to_vec(&[Datum::Int(value)])
}

/// What a row holds.
pub fn value(row: &[u8]) -> i64 {
    match RowRef::new(row)
        .col(0, Type::Int8)
        .expect("test rows decode")
    {
        Datum::Int(value) => value,
        other => panic!("a test row holds {other:?}"),
    }
}

/// Decodes a program that came from another node.
pub fn decode(bytes: &[u8]) -> Result<Arc<dyn RowProgram>, CodecError> {
    let (tag, rest) = bytes.split_first().ok_or(CodecError::Truncated)?;
    let operand = i64::from_le_bytes(rest.try_into().map_err(|_| CodecError::Truncated)?);
    Ok(Arc::new(match tag {
        0 => Test::Read,
        1 => Test::AtLeast(operand),
        2 => Test::Add(operand),
        3 => Test::Remove,
        4 => Test::Sum,
        5 => Test::Exists,
        7 => Test::First(operand),
        _ => return Ok(Arc::new(ByFormula::decode(*tag, operand)?)),
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
            Test::First(count) => (7, *count),
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
            Test::AtLeast(_) | Test::Read | Test::Sum | Test::Exists | Test::First(_) => {
                Ok(Modified::Skipped)
            }
        }
    }
    fn task(&self) -> Option<Box<dyn RowTask>> {
        match self {
            Test::Sum => Some(Box::new(Sum(0))),
            Test::First(count) => Some(Box::new(First {
                count: count.unsigned_abs() as usize,
                reverse: *count < 0,
                rows: BTreeMap::new(),
            })),
            _ => None,
        }
    }
}

/// What a program that changes a row by a formula does.
#[derive(Clone, Copy)]
enum Changing {
    /// Adds like [`Test::Add`], and says that this is all it does.
    Add,
    /// Subtracts from a value that is at least as large.
    Spend,
    /// Subtracts from a value; adds 91 if less than 10 would be left (the stock of TPC-C).
    Stock,
}

/// A program that changes a row by the one of its formulas whose guards hold.
struct ByFormula {
    what: Changing,
    operand: i64,
    formulas: Vec<Formula>,
}

impl ByFormula {
    fn new(what: Changing, operand: i64) -> ByFormula {
        let int = Datum::Int;
        let (plus, minus) = (FormulaOp::Add(int(operand)), FormulaOp::Add(int(-operand)));
        let cases = match what {
            Changing::Add => vec![vec![plus]],
            Changing::Spend => vec![vec![FormulaOp::AtLeast(int(operand)), minus]],
            Changing::Stock => {
                let refilled = FormulaOp::Add(int(91 - operand));
                vec![
                    vec![FormulaOp::AtLeast(int(operand + 10)), minus],
                    vec![FormulaOp::AtMost(int(operand + 9)), refilled],
                ]
            }
        };
        let formula = |changes: Vec<FormulaOp>| {
            let changes = changes.into_iter().map(|op| {
                let change = ColumnFormula::new(0, Type::Int8, op);
                change.expect("integers add exactly")
            });
            Formula(changes.collect())
        };
        ByFormula {
            what,
            operand,
            formulas: cases.into_iter().map(formula).collect(),
        }
    }

    fn decode(tag: u8, operand: i64) -> Result<ByFormula, CodecError> {
        let all = [Changing::Add, Changing::Spend, Changing::Stock];
        let found = all.into_iter().find(|what| what.tag() == tag);
        let what = found.ok_or(CodecError::Malformed("program"))?;
        Ok(ByFormula::new(what, operand))
    }
}

impl Changing {
    fn tag(self) -> u8 {
        match self {
            Changing::Add => 6,
            Changing::Spend => 8,
            Changing::Stock => 9,
        }
    }
}

/// Adds like [`Test::Add`], as a program that can also be a formula.
pub fn adding(delta: i64) -> Program {
    Program::Live(Arc::new(ByFormula::new(Changing::Add, delta)))
}

/// Subtracts from a value if it is at least as large.
pub fn spending(amount: i64) -> Program {
    Program::Live(Arc::new(ByFormula::new(Changing::Spend, amount)))
}

/// Subtracts from a value, and adds 91 if less than 10 would be left.
pub fn stocking(amount: i64) -> Program {
    Program::Live(Arc::new(ByFormula::new(Changing::Stock, amount)))
}

impl RowProgram for ByFormula {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.what.tag());
        out.extend_from_slice(&self.operand.to_le_bytes());
    }
    fn width(&self) -> usize {
        match self.what {
            Changing::Add => 1,
            Changing::Spend | Changing::Stock => 0,
        }
    }
    fn reads(&self) -> Columns {
        Columns::one(0)
    }
    fn formulas(&self) -> &[Formula] {
        &self.formulas
    }
    fn point(&self, row: &[u8], out: &mut RowBatch) -> Result<bool, SqlError> {
        Test::Read.point(row, out)
    }
    fn modify(&self, row: &[u8], out: &mut RowBatch) -> Result<Modified, SqlError> {
        if let Changing::Add = self.what {
            out.push([Datum::Int(value(row) + self.operand)]);
        }
        let formula = self.formulas.iter().find(|formula| formula.holds(row));
        Ok(match formula {
            Some(formula) => Modified::Formula(formula.clone()),
            None => Modified::Skipped,
        })
    }
    fn task(&self) -> Option<Box<dyn RowTask>> {
        None
    }
}

struct Sum(i64);

impl RowTask for Sum {
    fn row(&mut self, _: &[u8], row: &[u8]) -> Result<(), SqlError> {
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

struct First {
    count: usize,
    reverse: bool,
    rows: BTreeMap<Vec<u8>, i64>,
}

impl RowTask for First {
    fn row(&mut self, key: &[u8], row: &[u8]) -> Result<(), SqlError> {
        if self.wants(key) && value(row) >= 0 {
            self.rows.insert(key.to_vec(), value(row));
            if self.rows.len() > self.count {
                let dropped = match self.reverse {
                    true => self.rows.pop_first(),
                    false => self.rows.pop_last(),
                };
                assert!(dropped.is_some());
            }
        }
        Ok(())
    }
    fn first_rows(&self) -> Option<usize> {
        Some(self.count)
    }
    fn wants(&self, key: &[u8]) -> bool {
        let first = self.rows.first_key_value();
        let last = self.rows.last_key_value();
        self.rows.len() < self.count
            || match self.reverse {
                true => first.is_some_and(|(first, _)| key > first.as_slice()),
                false => last.is_some_and(|(last, _)| key < last.as_slice()),
            }
    }
    fn memory_bytes(&self) -> usize {
        // Rows with large values stand for many bytes.
        self.rows
            .values()
            .filter(|value| **value > 1_000_000)
            .count()
            << 20
    }
    fn finish(self: Box<Self>, out: &mut RowBatch) -> Result<(), SqlError> {
        let mut values: Vec<i64> = self.rows.into_values().collect();
        if self.reverse {
            values.reverse();
        }
        values
            .into_iter()
            .for_each(|value| out.push([Datum::Int(value)]));
        Ok(())
    }
}

/// Adds to a row of one column by a formula of type `ty`, whose range the sum must not leave.
pub fn add_formula(key: Key, ty: Type, delta: i64) -> Op {
    formula(key, ty, FormulaOp::Add(Datum::Int(delta)))
}

/// A third of the value, and `more`.
pub fn third_and(more: i64) -> Computed {
    let both = |what, left, right| {
        let right = Computed::Const(Datum::Int(right));
        Computed::Calculate(what, Box::new([left, right]), Type::Int8)
    };
    let third = both(Arithmetic::Divide, Computed::Column(0, Type::Int8), 3);
    both(Arithmetic::Add, third, more)
}

/// A third of the value as a float, rounded, and `more`.
pub fn third_by_floats_and(more: i64) -> Computed {
    let convert = |from, value, to| {
        let explicit = true;
        Computed::Call(ValueFunc::Convert { from, explicit }, vec![value], to)
    };
    let value = convert(Type::Int8, Computed::Column(0, Type::Int8), Type::Float8);
    let three = Computed::Const(Datum::Float(3.0));
    let third = Computed::Call(ValueFunc::Divide, vec![value, three], Type::Float8);
    let third = convert(Type::Float8, third, Type::Int8);
    let both = Box::new([third, Computed::Const(Datum::Int(more))]);
    Computed::Calculate(Arithmetic::Add, both, Type::Int8)
}

/// How many digits of the value are not 0, and `more`.
pub fn digits_and(more: i64) -> Computed {
    let text = |text: &str| Computed::Const(Datum::Text(text.into()));
    let value = Computed::Output(Box::new(Computed::Column(0, Type::Int8)), Type::Int8);
    let digits = Computed::Text(StringFunc::Replace, vec![value, text("0"), text("")]);
    let count = Computed::Text(StringFunc::Length, vec![digits]);
    let both = Box::new([count, Computed::Const(Datum::Int(more))]);
    Computed::Calculate(Arithmetic::Add, both, Type::Int8)
}

/// Sets a row of one column to a value that is computed from it.
pub fn compute(key: Key, value: Computed) -> Op {
    formula(key, Type::Int8, FormulaOp::Compute(value))
}

/// Changes a row of one column by a formula of whole numbers.
pub fn formula(key: Key, ty: Type, op: FormulaOp) -> Op {
    let change = ColumnFormula::new(0, ty, op).expect("an integer");
    let formula = Formula(vec![change]);
    Op::Formula { key, formula }
}

/// Scans the rows of [`TABLE`] on a shard with one program.
pub fn scan(read: Read, test: Test) -> ScanOp {
    ScanOp {
        index: TABLE,
        slots: Slots::All,
        range: KeyRange::all(),
        reverse: false,
        read,
        program: program(test),
        row_limit: u64::MAX,
        batch_rows: u32::MAX,
        after: None,
    }
}
