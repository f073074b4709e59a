//! Formulas that are held on rows and not applied yet, in the order of their timestamps.
//!
//! A transaction has a *low*: it commits above that timestamp, or not at all. Once it is decided,
//! it has a commit timestamp. On each row the decided formulas are applied from the smallest
//! timestamp on, and one waits as long as a formula of the row may still commit below it:
//!
//! ```text
//! hold(low) ──raise──> undecided above a larger low ──decide(ts)──> decided ──next──> applied
//!                                               '──drop_txn──> gone, as if it had never been
//! ```
//!
//! So versions of a row appear in ascending order, whichever transaction is decided first, as a
//! store and a redo of the journal need.
//!
//! `R` names the unit of the order: a row, or a row and a group of its columns. `N` is what a
//! protocol keeps with each transaction.
//!
//! This module folds no formulas onto rows, knows no locks, and sends nothing.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{Ts, TxnId};
use store::Formula;

/// A formula that is held on a row.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Transaction of the formula.
    pub txn: TxnId,
    /// The formula itself.
    pub formula: Formula,
    /// Whether other formulas no longer wait for this one.
    withdrawn: bool,
}

/// A transaction with formulas.
#[derive(Debug)]
struct Lodger<R, N> {
    low: Ts,
    decided: Option<Ts>,
    rows: Vec<R>,
    note: N,
}

/// What is to be done on a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// No formula on the row is decided.
    Undecided,
    /// A formula is decided, and another one may still commit below it.
    Waits,
    /// This transaction's formula is the next, with this timestamp.
    Apply(TxnId, Ts),
}

/// Formulas that are not applied yet, by row and by transaction.
#[derive(Debug)]
pub struct Pendings<R, N> {
    rows: BTreeMap<R, Vec<Pending>>,
    txns: BTreeMap<TxnId, Lodger<R, N>>,
}

impl<R, N> Default for Pendings<R, N> {
    fn default() -> Pendings<R, N> {
        Pendings {
            rows: BTreeMap::new(),
            txns: BTreeMap::new(),
        }
    }
}

impl<R: Ord + Clone, N> Pendings<R, N> {
    /// Holds a formula on a row, behind what its transaction has there already. The transaction
    /// commits above `low`. `note` is kept with a transaction that has no formula here yet.
    pub fn hold(
        &mut self,
        txn: TxnId,
        row: &R,
        formula: Formula,
        low: Ts,
        note: impl FnOnce() -> N,
    ) {
        let lodger = self.txns.entry(txn).or_insert_with(|| Lodger {
            low,
            decided: None,
            rows: Vec::new(),
            note: note(),
        });
        lodger.low = lodger.low.max(low);
        let on_row = self.rows.entry(row.clone()).or_default();
        match on_row.iter_mut().find(|pending| pending.txn == txn) {
            Some(own) => {
                let before = core::mem::replace(&mut own.formula, Formula(Vec::new()));
                own.formula = before.then(formula);
            }
            None => {
                on_row.push(Pending {
                    txn,
                    formula,
                    withdrawn: false,
                });
                lodger.rows.push(row.clone());
            }
        }
    }

    /// The transaction is still not decided, and commits above `low`.
    pub fn raise(&mut self, txn: TxnId, low: Ts) {
        if let Some(lodger) = self.txns.get_mut(&txn)
            && lodger.decided.is_none()
        {
            lodger.low = lodger.low.max(low);
        }
    }

    /// The transaction commits at `commit_ts`. Returns its rows, on which [`Pendings::next`] may
    /// have changed; none if it was decided before or has nothing here.
    pub fn decide(&mut self, txn: TxnId, commit_ts: Ts) -> Vec<R> {
        match self.txns.get_mut(&txn) {
            Some(lodger) if lodger.decided.is_none() => {
                lodger.decided = Some(commit_ts);
                lodger.rows.clone()
            }
            Some(_) | None => Vec::new(),
        }
    }

    /// What is to be done next on a row.
    pub fn next(&self, row: &R) -> Next {
        let on_row = self.on(row);
        let decided = on_row.iter().filter_map(|pending| {
            let commit_ts = self.decided(pending.txn)?;
            Some((commit_ts, pending.txn))
        });
        // Timestamps are unique; of equal ones the first that came counts.
        let Some((commit_ts, txn)) = decided.min_by_key(|(commit_ts, _)| *commit_ts) else {
            return Next::Undecided;
        };
        match on_row.iter().any(|other| self.is_below(other, commit_ts)) {
            true => Next::Waits,
            false => Next::Apply(txn, commit_ts),
        }
    }

    /// Takes a formula off its row. Its transaction stays known until [`Pendings::end`].
    pub fn take(&mut self, txn: TxnId, row: &R) -> Option<Formula> {
        let on_row = self.rows.get_mut(row)?;
        let at = on_row.iter().position(|pending| pending.txn == txn)?;
        let pending = on_row.remove(at);
        if on_row.is_empty() {
            self.rows.remove(row);
        }
        let lodger = self.txns.get_mut(&txn);
        let lodger = lodger.expect("whoever has a formula here lodges");
        lodger.rows.retain(|other| other != row);
        Some(pending.formula)
    }

    /// Forgets a transaction that has no formula left here.
    pub fn end(&mut self, txn: TxnId) -> Option<N> {
        let lodger = self.txns.get(&txn)?;
        if !lodger.rows.is_empty() {
            return None;
        }
        self.txns.remove(&txn).map(|lodger| lodger.note)
    }

    /// Removes all formulas of a transaction. Returns its rows, on which [`Pendings::next`] may
    /// have changed.
    pub fn drop_txn(&mut self, txn: TxnId) -> Vec<R> {
        let Some(lodger) = self.txns.remove(&txn) else {
            return Vec::new();
        };
        for row in &lodger.rows {
            if let Some(on_row) = self.rows.get_mut(row) {
                on_row.retain(|pending| pending.txn != txn);
                if on_row.is_empty() {
                    self.rows.remove(row);
                }
            }
        }
        lodger.rows
    }

    /// A formula stays on its row, but no other waits for it. Returns whether there is one.
    pub fn withdraw(&mut self, txn: TxnId, row: &R) -> bool {
        let on_row = self.rows.get_mut(row).into_iter().flatten();
        let own = on_row.into_iter().find(|pending| pending.txn == txn);
        own.map(|own| own.withdrawn = true).is_some()
    }

    /// Whether a formula may commit below `ts`; a withdrawn one does not count.
    pub fn is_below(&self, pending: &Pending, ts: Ts) -> bool {
        let lodger = &self.txns[&pending.txn];
        !pending.withdrawn && lodger.decided.is_none() && lodger.low < ts
    }

    /// Undecided transactions for which a decided formula waits, each with the timestamp of such a
    /// formula.
    pub fn awaited(&self) -> BTreeMap<TxnId, Ts> {
        let mut awaited = BTreeMap::new();
        for on_row in self.rows.values() {
            let decided = on_row
                .iter()
                .filter_map(|pending| self.decided(pending.txn));
            let Some(first) = decided.min() else {
                continue;
            };
            let below = on_row.iter().filter(|other| self.is_below(other, first));
            awaited.extend(below.map(|pending| (pending.txn, first)));
        }
        awaited
    }

    /// The formulas of a row, in the order of their arrival.
    pub fn on(&self, row: &R) -> &[Pending] {
        self.rows.get(row).map_or(&[], Vec::as_slice)
    }

    /// The formula of a transaction on a row.
    pub fn of(&self, txn: TxnId, row: &R) -> Option<&Formula> {
        let own = self.on(row).iter().find(|pending| pending.txn == txn);
        own.map(|pending| &pending.formula)
    }

    /// The rows with formulas, ascending.
    pub fn rows(&self) -> impl Iterator<Item = &R> {
        self.rows.keys()
    }

    /// Whether a row from `low` to `high`, both included, has formulas.
    pub fn has_between(&self, low: &R, high: &R) -> bool {
        self.rows.range(low..=high).next().is_some()
    }

    /// Number of rows with formulas.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Whether a row has formulas.
    #[inline]
    pub fn has(&self, row: &R) -> bool {
        !self.rows.is_empty() && self.rows.contains_key(row)
    }

    /// All formulas, by row.
    pub fn each(&self) -> impl Iterator<Item = (&R, &Pending)> {
        let rows = self.rows.iter();
        rows.flat_map(|(row, on_row)| on_row.iter().map(move |pending| (row, pending)))
    }

    /// Whether a transaction is known here.
    #[inline]
    pub fn knows(&self, txn: TxnId) -> bool {
        !self.txns.is_empty() && self.txns.contains_key(&txn)
    }

    /// Whether no transaction is known here.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.txns.is_empty()
    }

    /// Timestamp above which a transaction commits; `None`: it is not known here.
    pub fn low(&self, txn: TxnId) -> Option<Ts> {
        self.txns.get(&txn).map(|lodger| lodger.low)
    }

    /// Commit timestamp of a transaction; `None`: it is not decided.
    pub fn decided(&self, txn: TxnId) -> Option<Ts> {
        self.txns.get(&txn)?.decided
    }

    /// The rows with formulas of a transaction, in the order of their arrival.
    pub fn rows_of(&self, txn: TxnId) -> &[R] {
        self.txns.get(&txn).map_or(&[], |lodger| &lodger.rows)
    }

    /// The note of a transaction.
    pub fn note(&self, txn: TxnId) -> Option<&N> {
        self.txns.get(&txn).map(|lodger| &lodger.note)
    }

    /// As [`Pendings::note`], mutable.
    pub fn note_mut(&mut self, txn: TxnId) -> Option<&mut N> {
        self.txns.get_mut(&txn).map(|lodger| &mut lodger.note)
    }

    /// Transactions that are not decided, ascending.
    pub fn undecided(&self) -> impl Iterator<Item = (TxnId, &N)> {
        let open = self.txns.iter();
        let open = open.filter(|(_, lodger)| lodger.decided.is_none());
        open.map(|(txn, lodger)| (*txn, &lodger.note))
    }

    /// As [`Pendings::undecided`], mutable.
    pub fn undecided_mut(&mut self) -> impl Iterator<Item = (TxnId, &mut N)> {
        let open = self.txns.iter_mut();
        let open = open.filter(|(_, lodger)| lodger.decided.is_none());
        open.map(|(txn, lodger)| (*txn, &mut lodger.note))
    }
}

#[cfg(test)]
mod tests;
