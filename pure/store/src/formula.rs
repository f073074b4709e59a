//! Writes that are functions of the row: they commute within their class, so two transactions that
//! only apply formulas to a row do not conflict (Rubato DB, section 4; rule R9).

use alloc::vec::Vec;
use base::row::RowRef;
use base::{Datum, SqlError, SqlState, Type};
use core::cmp::Ordering;
use serde::{Deserialize, Serialize};

/// Column changes of one row, applied in order. Formulas of one class per column commute.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Formula(pub Vec<ColumnFormula>);

/// One change of one column.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ColumnFormula {
    /// Position of the column in the row, from 0.
    pub column: u16,
    /// Type of the column: the result must stay in its range.
    pub ty: Type,
    /// The change.
    pub op: FormulaOp,
}

/// The function applied to the column's value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum FormulaOp {
    /// `column + operand`; NULL stays NULL. A subtraction is an addition of the negated operand.
    Add(Datum),
    /// `LEAST(column, operand)`; NULL becomes the operand.
    Min(Datum),
    /// `GREATEST(column, operand)`; NULL becomes the operand.
    Max(Datum),
}

/// Class of a function: functions of one class on one column commute.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum FormulaClass {
    Add,
    Min,
    Max,
}

impl FormulaOp {
    /// The class of this operation.
    pub fn class(&self) -> FormulaClass {
        match self {
            FormulaOp::Add(_) => FormulaClass::Add,
            FormulaOp::Min(_) => FormulaClass::Min,
            FormulaOp::Max(_) => FormulaClass::Max,
        }
    }
}

impl ColumnFormula {
    /// The change `op` of a column; `None`: it would not commute exactly. That holds for floats
    /// (addition rounds), numeric operands with more fraction digits than the column keeps (each
    /// addition would round), NULL, and operands of another kind than the column.
    pub fn new(column: u16, ty: Type, op: FormulaOp) -> Option<ColumnFormula> {
        let (operand, additive) = match &op {
            FormulaOp::Add(operand) => (operand, true),
            FormulaOp::Min(operand) | FormulaOp::Max(operand) => (operand, false),
        };
        let exact = match (ty, operand) {
            (Type::Int2 | Type::Int4 | Type::Int8, Datum::Int(_)) => true,
            (Type::Numeric(Some((_, scale))), Datum::Decimal(value)) => value.scale() <= scale,
            // Without a fixed scale, 1.0 and 1.00 are equal and LEAST would depend on the order.
            (Type::Numeric(None), Datum::Decimal(_)) => additive,
            (Type::Date, Datum::Date(_)) => !additive,
            (Type::Timestamp(digits) | Type::Timestamptz(digits), Datum::Timestamp(micros)) => {
                let kept = base::text::round_timestamp(*micros, digits.unwrap_or(u8::MAX));
                !additive && kept.is_ok_and(|kept| kept == *micros)
            }
            _ => false,
        };
        exact.then_some(ColumnFormula { column, ty, op })
    }

    /// The new value of the column. Errors: 22003 if it leaves the range of the type.
    fn apply(&self, current: &Datum) -> Result<Datum, SqlError> {
        match &self.op {
            FormulaOp::Add(operand) => add(self.ty, current, operand),
            FormulaOp::Min(operand) => Ok(choose(current, operand, Ordering::Less)),
            FormulaOp::Max(operand) => Ok(choose(current, operand, Ordering::Greater)),
        }
    }

    /// Both changes as one, if their class is the same and the combined operand can be represented.
    fn merge(&self, later: &ColumnFormula) -> Option<FormulaOp> {
        if self.column != later.column {
            return None;
        }
        match (&self.op, &later.op) {
            (FormulaOp::Add(Datum::Int(a)), FormulaOp::Add(Datum::Int(b))) => {
                a.checked_add(*b).map(|sum| FormulaOp::Add(Datum::Int(sum)))
            }
            (FormulaOp::Add(Datum::Decimal(a)), FormulaOp::Add(Datum::Decimal(b))) => a
                .add(*b)
                .ok()
                .map(|sum| FormulaOp::Add(Datum::Decimal(sum))),
            (FormulaOp::Min(a), FormulaOp::Min(b)) => {
                Some(FormulaOp::Min(choose(a, b, Ordering::Less)))
            }
            (FormulaOp::Max(a), FormulaOp::Max(b)) => {
                Some(FormulaOp::Max(choose(a, b, Ordering::Greater)))
            }
            (FormulaOp::Add(_) | FormulaOp::Min(_) | FormulaOp::Max(_), _) => None,
        }
    }
}

impl Formula {
    /// Appends to `out` the row that results from `row`.
    ///
    /// Errors: 22003 if a result leaves the range of its column, XX001 if the row does not decode;
    /// `out` then has undefined content after its old end.
    pub fn fold(&self, row: &[u8], out: &mut Vec<u8>) -> Result<(), SqlError> {
        match self.0.as_slice() {
            [] => out.extend_from_slice(row),
            [only] => fold_one(only, row, out)?,
            [first, rest @ ..] => {
                let (mut current, mut next) = (Vec::with_capacity(row.len() + 8), Vec::new());
                fold_one(first, row, &mut current)?;
                for change in rest {
                    next.clear();
                    fold_one(change, &current, &mut next)?;
                    core::mem::swap(&mut current, &mut next);
                }
                out.extend_from_slice(&current);
            }
        }
        Ok(())
    }

    /// Applies `self`, then `later`: operations on one column and of one class become one.
    #[must_use]
    pub fn then(mut self, later: Formula) -> Formula {
        for change in later.0 {
            // Only the last change of the column may be merged: order matters between classes.
            let last = self
                .0
                .iter_mut()
                .rev()
                .find(|earlier| earlier.column == change.column);
            match last.and_then(|earlier| earlier.merge(&change).map(|op| (earlier, op))) {
                Some((earlier, op)) => earlier.op = op,
                None => self.0.push(change),
            }
        }
        self
    }

    /// Whether the order of `self` and `other` does not matter: no column has operations of two
    /// classes.
    pub fn commutes_with(&self, other: &Formula) -> bool {
        let all = || self.0.iter().chain(&other.0);
        all().all(|a| all().all(|b| a.column != b.column || a.op.class() == b.op.class()))
    }
}

fn fold_one(change: &ColumnFormula, row: &[u8], out: &mut Vec<u8>) -> Result<(), SqlError> {
    let row_ref = RowRef::new(row);
    let column = usize::from(change.column);
    let current = row_ref.col(column, change.ty).map_err(corrupt)?;
    let value = change.apply(&current)?;
    row_ref.replace(column, &value, out).map_err(corrupt)
}

fn corrupt(error: base::codec::CodecError) -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, "a stored row does not decode")
        .detail(alloc::format!("{error}."))
}

fn choose(current: &Datum, operand: &Datum, wanted: Ordering) -> Datum {
    let replace = current.is_null() || operand.compare(current) == wanted;
    if replace {
        operand.clone()
    } else {
        current.clone()
    }
}

fn add(ty: Type, current: &Datum, operand: &Datum) -> Result<Datum, SqlError> {
    match (current, operand) {
        (Datum::Null, _) => Ok(Datum::Null),
        (Datum::Int(a), Datum::Int(b)) => {
            let (min, max, name) = match ty {
                Type::Int2 => (i64::from(i16::MIN), i64::from(i16::MAX), "smallint"),
                Type::Int4 => (i64::from(i32::MIN), i64::from(i32::MAX), "integer"),
                _ => (i64::MIN, i64::MAX, "bigint"),
            };
            match a.checked_add(*b) {
                Some(sum) if (min..=max).contains(&sum) => Ok(Datum::Int(sum)),
                _ => Err(SqlError::new(
                    SqlState::NUMERIC_OUT_OF_RANGE,
                    alloc::format!("{name} out of range"),
                )),
            }
        }
        (Datum::Decimal(a), Datum::Decimal(b)) => {
            let sum = a.add(*b)?;
            match ty {
                Type::Numeric(Some((precision, scale))) => {
                    Ok(Datum::Decimal(sum.rescale(precision, scale)?))
                }
                _ => Ok(Datum::Decimal(sum)),
            }
        }
        _ => panic!("a formula adds {operand:?} to {current:?}: the planner mixed up kinds"),
    }
}
