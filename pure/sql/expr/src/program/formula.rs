//! Changes of columns that commute: what a plan has of them, and their formula for the values of
//! the parameters.

use crate::{Env, Expr, value_of};
use base::{Datum, SqlError, Type};
use serde::{Deserialize, Serialize};
use txn::{ColumnFormula, Formula, FormulaOp};

/// `column = column + operand`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FormulaChange {
    /// The column that changes.
    pub column: u16,
    /// Its type.
    pub ty: Type,
    /// What is added, over no columns.
    pub operand: Expr,
    /// The operand is subtracted.
    pub negated: bool,
}

/// The changes with the values of their operands; `None` if one does not fit a formula.
pub fn formula(changes: &[FormulaChange], env: &Env<'_>) -> Result<Option<Formula>, SqlError> {
    let mut columns = Vec::with_capacity(changes.len());
    for change in changes {
        let mut computed = Datum::Null;
        let operand = value_of(&change.operand, env, &mut computed)?;
        let operand = match (operand, change.negated) {
            (Datum::Int(value), true) => value.checked_neg().map(Datum::Int),
            (Datum::Decimal(value), true) => Some(Datum::Decimal(value.neg())),
            (_, true) => None,
            (other, false) => Some(other.clone()),
        };
        let column = operand.and_then(|operand| {
            ColumnFormula::new(change.column, change.ty, FormulaOp::Add(operand))
        });
        match column {
            Some(column) => columns.push(column),
            None => return Ok(None),
        }
    }
    Ok(Some(Formula(columns)))
}
