//! Changes of columns that can be a formula: what a plan has of them, and their formula for the
//! values of the parameters.

use super::computed::computed;
use crate::{Env, Expr, value_of};
use base::{Datum, Decimal, SqlError, Type};
use serde::{Deserialize, Serialize};
use txn::{ColumnFormula, Formula, FormulaOp};

/// One change of one column, with an operand that is over no columns unless it is computed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FormulaChange {
    /// The column that changes, or that a guard is over.
    pub column: u16,
    /// Its type.
    pub ty: Type,
    /// What is done with the operand.
    pub kind: ChangeKind,
    /// The operand.
    pub operand: Expr,
}

/// What a change does with its operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ChangeKind {
    /// `column + operand`
    Add,
    /// `column - operand`
    Subtract,
    /// `LEAST(column, operand)`
    Least,
    /// `GREATEST(column, operand)`
    Greatest,
    /// The operand itself, which may be NULL.
    Set,
    /// As `Set`, for a column that cannot be NULL.
    SetNotNull,
    /// `column || operand`
    Append,
    /// `column * operand`
    Multiply,
    /// The operand, which is over columns of the row as they were before the statement.
    Compute,
    /// Guard: `column >= operand`
    AtLeast,
    /// Guard: `column > operand`
    Above,
    /// Guard: `column <= operand`
    AtMost,
    /// Guard: `column < operand`
    Below,
}

impl ChangeKind {
    /// Whether formulas with only such changes share their row.
    pub fn commutes(self) -> bool {
        !matches!(
            self,
            ChangeKind::Set
                | ChangeKind::SetNotNull
                | ChangeKind::Append
                | ChangeKind::Multiply
                | ChangeKind::Compute
        )
    }

    /// Whether it is a condition on its column.
    pub fn is_guard(self) -> bool {
        use ChangeKind::{Above, AtLeast, AtMost, Below};
        matches!(self, AtLeast | Above | AtMost | Below)
    }

    /// The guard that holds where this one does not, NULL aside; `None`: it is no guard.
    pub fn opposite(self) -> Option<ChangeKind> {
        Some(match self {
            ChangeKind::AtLeast => ChangeKind::Below,
            ChangeKind::Below => ChangeKind::AtLeast,
            ChangeKind::Above => ChangeKind::AtMost,
            ChangeKind::AtMost => ChangeKind::Above,
            ChangeKind::Add
            | ChangeKind::Subtract
            | ChangeKind::Least
            | ChangeKind::Greatest
            | ChangeKind::Set
            | ChangeKind::SetNotNull
            | ChangeKind::Append
            | ChangeKind::Multiply
            | ChangeKind::Compute => return None,
        })
    }

    /// The operation with a value; `None`: there is none that does the same.
    fn op(self, ty: Type, value: &Datum) -> Option<FormulaOp> {
        if value.is_null() && self != ChangeKind::Set {
            return None;
        }
        Some(match self {
            ChangeKind::Add => FormulaOp::Add(value.clone()),
            ChangeKind::Subtract => FormulaOp::Add(match value {
                Datum::Int(value) => Datum::Int(value.checked_neg()?),
                Datum::Decimal(value) => Datum::Decimal(value.neg()),
                _ => return None,
            }),
            ChangeKind::Least => FormulaOp::Min(value.clone()),
            ChangeKind::Greatest => FormulaOp::Max(value.clone()),
            ChangeKind::Set | ChangeKind::SetNotNull => FormulaOp::Set(value.clone()),
            ChangeKind::Append => FormulaOp::Append(value.clone()),
            ChangeKind::Multiply => FormulaOp::Multiply(value.clone()),
            ChangeKind::AtLeast => FormulaOp::AtLeast(value.clone()),
            ChangeKind::AtMost => FormulaOp::AtMost(value.clone()),
            ChangeKind::Above => FormulaOp::AtLeast(next(ty, value, 1)?),
            ChangeKind::Below => FormulaOp::AtMost(next(ty, value, -1)?),
            ChangeKind::Compute => return None,
        })
    }
}

/// The next value of a column's type above (`1`) or below (`-1`) one that it can hold.
fn next(ty: Type, value: &Datum, step: i64) -> Option<Datum> {
    match (ty, value) {
        (_, Datum::Int(value)) => value.checked_add(step).map(Datum::Int),
        (Type::Numeric(Some((_, scale))), Datum::Decimal(value))
            if i16::from(value.scale()) <= scale =>
        {
            let step = Decimal::from_parts(i128::from(step), u8::try_from(scale).ok()?)?;
            value.add(step).ok().map(Datum::Decimal)
        }
        _ => None,
    }
}

/// The changes with the values of their operands; `None` if one does not fit a formula.
pub fn formula(changes: &[FormulaChange], env: &Env<'_>) -> Result<Option<Formula>, SqlError> {
    let mut columns = Vec::with_capacity(changes.len());
    for change in changes {
        let mut value = Datum::Null;
        let op = match change.kind {
            ChangeKind::Compute => computed(&change.operand, Some(env)).map(FormulaOp::Compute),
            kind => kind.op(change.ty, value_of(&change.operand, env, &mut value)?),
        };
        match op.and_then(|op| ColumnFormula::new(change.column, change.ty, op)) {
            Some(column) => columns.push(column),
            None => return Ok(None),
        }
    }
    Ok(Some(Formula(columns)))
}
