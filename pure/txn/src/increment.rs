//! Increments: formulas that only add. Many transactions may have them pending on one row (ADR
//! 0006).
//!
//! Shared by all protocols: the lock that an operation needs, and whether a row stays in the range
//! of its columns whichever increments commit ([`Escrow`], rule R9). Each protocol decides when
//! increments are folded onto the row.

use crate::columns::Columns;
use crate::lock::{Claim, LockMode, LockTable};
use crate::program::RowProgram;
use alloc::vec::Vec;
use base::{Datum, Key, TxnId};
use store::{ColumnFormula, Formula, FormulaClass, FormulaOp, Write};

/// Whether the formula only adds, so that it commutes with all others that do.
#[must_use]
pub fn adds_only(formula: &Formula) -> bool {
    let class = |change: &ColumnFormula| change.op.class();
    formula
        .0
        .iter()
        .all(|change| class(change) == FormulaClass::Add)
}

/// The columns that a formula changes.
#[must_use]
pub fn columns_of(formula: &Formula) -> Columns {
    let columns = formula.0.iter().map(|change| u32::from(change.column));
    columns.collect()
}

/// The weakest lock under which the write may be kept until the commit.
#[must_use]
pub fn claim_of(write: &Write) -> Claim {
    match write {
        Write::Formula(formula) if adds_only(formula) => Claim::adds(columns_of(formula)),
        Write::Formula(_) | Write::Insert(_) | Write::Put(_) | Write::Delete => {
            LockMode::Exclusive.into()
        }
    }
}

fn lowers(change: &ColumnFormula) -> bool {
    match &change.op {
        FormulaOp::Add(Datum::Int(operand)) => *operand < 0,
        FormulaOp::Add(Datum::Decimal(operand)) => operand.is_negative(),
        FormulaOp::Add(_) | FormulaOp::Min(_) | FormulaOp::Max(_) => {
            unreachable!("increments add integers and decimals")
        }
    }
}

/// Whether `later` lowers a column that `own` raises, or the other way round.
fn turns(own: &Formula, later: &Formula) -> bool {
    own.0.iter().any(|a| {
        let mut same = later.0.iter().filter(|b| a.column == b.column);
        same.any(|b| lowers(a) != lowers(b))
    })
}

/// Pending increments of one row, with the sums of raises and of reductions apart.
///
/// The newest version of the row stays in the range of each column, whichever of them commit and in
/// whatever order: so a fold never fails.
#[derive(Clone, Debug)]
pub struct Escrow {
    raising: Formula,
    lowering: Formula,
}

impl Default for Escrow {
    fn default() -> Escrow {
        Escrow {
            raising: Formula(Vec::new()),
            lowering: Formula(Vec::new()),
        }
    }
}

impl Escrow {
    /// The increments that transactions other than `txn` have pending on the row, each of which
    /// holds an increment lock there; `None`: none. `pending` gives the formula of one of them.
    pub fn of_others<'a>(
        locks: &LockTable,
        txn: TxnId,
        key: &Key,
        pending: impl Fn(TxnId) -> Option<&'a Formula>,
    ) -> Option<Escrow> {
        let mut escrow: Option<Escrow> = None;
        locks.each_incrementer(txn, key, &mut |other| {
            if let Some(formula) = pending(other) {
                escrow.get_or_insert_default().add(formula);
            }
        });
        escrow
    }

    /// Adds the pending increments of one transaction.
    pub fn add(&mut self, formula: &Formula) {
        for change in &formula.0 {
            let side = if lowers(change) {
                &mut self.lowering
            } else {
                &mut self.raising
            };
            let before = core::mem::replace(side, Formula(Vec::new()));
            *side = before.then(Formula(alloc::vec![change.clone()]));
        }
    }

    /// Whether the row stays in the range of its columns if the transaction's increments so far
    /// (`own`) and `formula` are added to these, whichever of them commit.
    #[must_use]
    pub fn has_room(mut self, row: &[u8], own: Option<&Write>, formula: &Formula) -> bool {
        match own {
            Some(Write::Formula(own)) => self.add(&own.clone().then(formula.clone())),
            _ => self.add(formula),
        }
        let mut out = Vec::with_capacity(row.len() + 16);
        self.raising.fold(row, &mut out).is_ok() && {
            out.clear();
            self.lowering.fold(row, &mut out).is_ok()
        }
    }
}

/// The claim of a read in `mode`: a shared one covers only the columns that the program reads.
#[must_use]
pub fn claim_to_read(mode: LockMode, program: &dyn RowProgram) -> Claim {
    match mode {
        LockMode::Shared => Claim::reads(program.reads()),
        LockMode::Increment | LockMode::Fold | LockMode::Exclusive => mode.into(),
    }
}

/// The claim of `Op::Modify`. A program that adds reads the columns that it adds to, so no other
/// transaction has increments of them pending and its formula needs no escrow.
#[must_use]
pub fn claim_to_modify(program: &dyn RowProgram) -> Claim {
    match program.formula() {
        Some(formula) => {
            let columns = columns_of(formula);
            Claim::adds(columns).join(Claim::reads(program.reads().union(columns)))
        }
        None => LockMode::Exclusive.into(),
    }
}

/// The claim of a formula on a row with newest version `newest`. `own`: the transaction's write to
/// the row; `escrow`: increments of others, if any.
///
/// Exclusive if the row might leave its range depending on which transactions commit, because the
/// answer then depends on them. Also if the transaction has moved the row the other way before: the
/// escrow knows only the sum, not how far it went on the way.
#[must_use]
pub fn claim_to_add(
    formula: &Formula,
    own: Option<&Write>,
    escrow: Option<Escrow>,
    newest: Option<&[u8]>,
) -> Claim {
    if !adds_only(formula) {
        return LockMode::Exclusive.into();
    }
    if let Some(write @ Write::Formula(own)) = own
        && (claim_of(write).mode() == LockMode::Exclusive || turns(own, formula))
    {
        return LockMode::Exclusive.into();
    }
    let has_room = match (escrow, newest) {
        (Some(escrow), Some(newest)) => escrow.has_room(newest, own, formula),
        (None, _) | (_, None) => true,
    };
    match has_room {
        true => Claim::adds(columns_of(formula)),
        false => LockMode::Exclusive.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use base::Type;

    fn changing(column: u16, op: FormulaOp) -> Formula {
        let change = ColumnFormula::new(column, Type::Int2, op);
        Formula(vec![change.expect("integers add exactly")])
    }

    fn adding(operand: i64) -> Formula {
        changing(0, FormulaOp::Add(Datum::Int(operand)))
    }

    fn claim(own: Option<Formula>, pending: &[i64], formula: &Formula) -> LockMode {
        let mut row = Vec::new();
        base::row::encode(&[Datum::Int(32_000), Datum::Int(0)], &mut row);
        let own = own.map(Write::Formula);
        let mut escrow = None;
        for operand in pending {
            let escrow: &mut Escrow = escrow.get_or_insert_default();
            escrow.add(&adding(*operand));
        }
        claim_to_add(formula, own.as_ref(), escrow, Some(&row)).mode()
    }

    #[test]
    fn increments_share_a_row_while_all_have_room() {
        use LockMode::{Exclusive, Increment};
        assert_eq!(claim(None, &[], &adding(5)), Increment);
        assert_eq!(claim(None, &[700], &adding(67)), Increment);
        // Only raises count, because the others may not commit.
        assert_eq!(claim(None, &[700, -5_000], &adding(68)), Exclusive);
        assert_eq!(claim(Some(adding(60)), &[700], &adding(8)), Exclusive);
        assert_eq!(claim(Some(adding(60)), &[700], &adding(7)), Increment);
        // An increment there and back: the escrow does not know how far it went.
        assert_eq!(claim(Some(adding(60)), &[], &adding(-1)), Exclusive);
        let max = changing(0, FormulaOp::Max(Datum::Int(3)));
        assert_eq!(claim(None, &[], &max), Exclusive);
        assert_eq!(claim_of(&Write::Formula(max)).mode(), Exclusive);
        assert_eq!(columns_of(&adding(1)), Columns::one(0));
    }
}
