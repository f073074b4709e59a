//! Whether formulas that compute values from columns fold onto a row in every order.
//!
//! Such a formula is no addition, so there are no sums. Instead the columns get ranges, which grow
//! by what each formula can make of them, as many times as there are formulas: after that they hold
//! whatever some of them make of the row in some order.

use super::NUMBER_BYTES_MAX;
use alloc::vec::Vec;
use base::limits::ROW_BYTES_MAX;
use base::row::RowRef;
use store::Formula;
use store::computed::Computed;
use store::range::Range;
use store::{ColumnFormula, FormulaOp};

/// Most formulas that may stand beside one that computes a value.
const FORMULAS_MAX: usize = 32;
/// Most bytes of them: they are copied.
const FORMULAS_BYTES_MAX: usize = 2 * ROW_BYTES_MAX;

/// Formulas that stand beside each other, and one of them computes a value.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    formulas: Vec<Formula>,
    bytes: usize,
}

impl Kept {
    pub(super) fn add(&mut self, formula: &Formula) {
        self.bytes = self.bytes.saturating_add(formula.size_bytes());
        match self.bytes <= FORMULAS_BYTES_MAX && self.formulas.len() <= FORMULAS_MAX {
            true => self.formulas.push(formula.clone()),
            // From here on they are too many or too large, whatever comes.
            false => self.bytes = usize::MAX,
        }
    }

    fn is_whole(&self) -> bool {
        self.bytes <= FORMULAS_BYTES_MAX && self.formulas.len() <= FORMULAS_MAX
    }
}

/// Ranges of the columns that formulas change or read.
struct Hull(Vec<(u16, Range)>);

impl Hull {
    fn get(&self, column: u16) -> Option<Range> {
        let found = self.0.iter().find(|(known, _)| *known == column);
        found.map(|(_, range)| range.clone())
    }

    /// The column of the row, unless it is there.
    fn hold(&mut self, row: RowRef<'_>, column: u16, ty: base::Type) -> Option<()> {
        if self.0.iter().all(|(known, _)| *known != column) {
            let value = row.col(usize::from(column), ty).ok()?;
            self.0.push((column, Range::of(&value)));
        }
        Some(())
    }

    fn hold_all(&mut self, row: RowRef<'_>, change: &ColumnFormula) -> Option<()> {
        self.hold(row, change.column, change.ty)?;
        let mut held = Some(());
        if let FormulaOp::Compute(value) = &change.op {
            value.each(&mut |it| {
                if let Computed::Column(column, ty) = it {
                    held = held.and_then(|()| self.hold(row, *column, *ty));
                }
            });
        }
        held
    }

    /// The ranges behind a formula; `None`: it may fail.
    fn behind(&self, formula: &Formula) -> Option<Hull> {
        let mut behind = Hull(self.0.clone());
        for change in &formula.0 {
            let range = Range::changed(change, &|column| behind.get(column))?;
            let mut columns = behind.0.iter_mut();
            let place = columns.find(|(column, _)| *column == change.column)?;
            place.1 = range;
        }
        Some(behind)
    }

    /// Adds what a formula may make of the columns. Returns whether that is more.
    fn grow(&mut self, formula: &Formula) -> Option<bool> {
        let behind = self.behind(formula)?;
        let mut grown = false;
        for ((_, range), (_, more)) in self.0.iter_mut().zip(&behind.0) {
            let both = range.or(more);
            grown |= both != *range;
            *range = both;
        }
        Some(grown)
    }

    /// Most bytes of the row with these columns.
    fn bytes_max(&self, row: RowRef<'_>) -> usize {
        let columns = self.0.iter();
        columns.fold(super::bytes_max(row), |sum, (_, range)| {
            sum.saturating_add(NUMBER_BYTES_MAX + range.bytes_max())
        })
    }
}

/// Whether no fold of some of the formulas in some order fails.
pub(super) fn fold_in_every_order(row: &[u8], kept: &Kept) -> bool {
    kept.is_whole() && hull(row, &kept.formulas).is_some()
}

fn hull(row: &[u8], formulas: &[Formula]) -> Option<()> {
    let row_ref = RowRef::new(row);
    let mut hull = Hull(Vec::new());
    for change in formulas.iter().flat_map(|formula| &formula.0) {
        hull.hold_all(row_ref, change)?;
    }
    let mut apart: Vec<&Formula> = Vec::with_capacity(formulas.len());
    for formula in formulas {
        if !apart.contains(&formula) {
            apart.push(formula);
        }
    }
    for _ in formulas {
        let mut grown = false;
        for formula in &apart {
            grown |= hull.grow(formula)?;
        }
        if !grown {
            break;
        }
    }
    (hull.bytes_max(row_ref) <= ROW_BYTES_MAX).then_some(())
}

#[cfg(test)]
mod tests;
