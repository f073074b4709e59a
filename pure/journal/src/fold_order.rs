//! Redo of formulas in the order of timestamps, although their records stand in the order of
//! decisions (rule A7).
//!
//! ```text
//! T10 promises on K | T12 commits on K | T10 resolved: commits at 10
//! redo:                                   10, then 12
//! ```
//!
//! A formula that has committed above an open promise of the same row waits for the end of that
//! promise. One whose promise is still open at the end of the journal is handed to the shard.

use crate::checkpoint::{Prepared, Unfolded};
use crate::recovery::Redo;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use base::{Key, Planted, ShardId, Ts, TxnId, is_planted};
use store::{Formula, Write};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct FoldOrder {
    /// Open promises of formulas, by row.
    open: BTreeMap<(ShardId, Key), Vec<(Ts, TxnId)>>,
    /// Committed formulas that wait, by row.
    late: BTreeMap<(ShardId, Key), BTreeMap<Ts, (TxnId, Formula)>>,
    /// Formulas of checkpoints were added, and not looked at yet.
    fresh: bool,
}

impl FoldOrder {
    /// Adds formulas that waited when a checkpoint began.
    pub(crate) fn late_at_start(&mut self, unfolded: Vec<Unfolded>) {
        for Unfolded {
            txn,
            shard,
            commit_ts,
            key,
            formula,
        } in unfolded
        {
            self.fresh = true;
            let row = self.late.entry((shard, key)).or_default();
            row.insert(commit_ts, (txn, formula));
        }
    }

    /// Gives out what does not wait any more as the replay begins.
    pub(crate) fn begin(&mut self, redo: &mut dyn FnMut(Redo)) {
        if core::mem::take(&mut self.fresh) {
            let rows: Vec<(ShardId, Key)> = self.late.keys().cloned().collect();
            for row in rows {
                self.release_row(row, redo);
            }
        }
    }

    /// A promise stands from here on. Under locks, nothing commits beside it.
    pub(crate) fn promise(&mut self, prepared: &Prepared) {
        if !prepared.txn.is_odd() {
            return;
        }
        for key in formulas(prepared) {
            let row = self.open.entry((prepared.shard, key.clone())).or_default();
            row.push((prepared.prepare_ts, prepared.txn));
        }
    }

    /// A promise has ended.
    pub(crate) fn end(&mut self, prepared: &Prepared) {
        for key in formulas(prepared) {
            let place = (prepared.shard, key.clone());
            if let Some(row) = self.open.get_mut(&place) {
                row.retain(|(_, txn)| *txn != prepared.txn);
                if row.is_empty() {
                    self.open.remove(&place);
                }
            }
        }
    }

    /// Rows on which formulas may have waited for the promise.
    pub(crate) fn rows_of(&self, prepared: &Prepared) -> Vec<Key> {
        match self.late.is_empty() {
            true => Vec::new(),
            false => formulas(prepared).cloned().collect(),
        }
    }

    /// Gives out committed writes, but for those that wait.
    pub(crate) fn redo(&mut self, txn: TxnId, committed: Redo, redo: &mut dyn FnMut(Redo)) {
        let Redo {
            shard,
            commit_ts,
            any_order,
            mut writes,
        } = committed;
        let none_waits = self.open.is_empty() && self.late.is_empty();
        if !(none_waits || is_planted(Planted::FormulaRedoInJournalOrder)) {
            writes.retain(|(key, write)| {
                let Write::Formula(formula) = write else {
                    return true;
                };
                let place = (shard, key.clone());
                let mut waits = self.lowest(&place).is_some_and(|lowest| lowest < commit_ts);
                let late = self.late.get(&place).and_then(|row| row.keys().next());
                waits |= late.is_some_and(|first| *first < commit_ts);
                if waits {
                    let row = self.late.entry(place).or_default();
                    row.insert(commit_ts, (txn, formula.clone()));
                }
                !waits
            });
        }
        if !writes.is_empty() {
            redo(Redo {
                shard,
                commit_ts,
                any_order,
                writes,
            });
        }
    }

    /// A promise on these rows has ended: gives out what waited for it.
    pub(crate) fn release(
        &mut self,
        shard: ShardId,
        rows: Option<Vec<Key>>,
        redo: &mut dyn FnMut(Redo),
    ) {
        for key in rows.into_iter().flatten() {
            self.release_row((shard, key), redo);
        }
    }

    fn lowest(&self, place: &(ShardId, Key)) -> Option<Ts> {
        self.open.get(place)?.iter().map(|(at, _)| *at).min()
    }

    fn release_row(&mut self, place: (ShardId, Key), redo: &mut dyn FnMut(Redo)) {
        let lowest = self.lowest(&place).unwrap_or(Ts::MAX);
        let Some(mut row) = self.late.remove(&place) else {
            return;
        };
        let rest = row.split_off(&lowest);
        for (commit_ts, (txn, formula)) in row {
            let writes = Vec::from([(place.1.clone(), Write::Formula(formula))]);
            redo(Redo {
                shard: place.0,
                commit_ts,
                any_order: txn.is_odd(),
                writes,
            });
        }
        if !rest.is_empty() {
            self.late.insert(place, rest);
        }
    }

    /// What still waits.
    pub(crate) fn into_late(self) -> Vec<Unfolded> {
        let mut all = Vec::new();
        for ((shard, key), row) in self.late {
            for (commit_ts, (txn, formula)) in row {
                let key = key.clone();
                all.push(Unfolded {
                    txn,
                    shard,
                    commit_ts,
                    key,
                    formula,
                });
            }
        }
        all
    }
}

/// Rows that the promise changes by formulas.
fn formulas(prepared: &Prepared) -> impl Iterator<Item = &Key> {
    let writes = prepared.writes.iter();
    let formulas = writes.filter(|(_, write)| write.formula().is_some());
    formulas.map(|(key, _)| key)
}

/// Commits that were journaled once more because a checkpoint began between their record and their
/// place in the store. If that checkpoint does not count, both records are replayed, and a formula
/// must be applied once.
#[derive(Debug, Default)]
pub(crate) struct Repeated {
    seen: BTreeSet<(TxnId, ShardId, Ts)>,
    order: VecDeque<(TxnId, ShardId, Ts)>,
}

/// Number of commits that are remembered. Between the two records lies the time that a message
/// takes inside a node, so far fewer commits.
const REPEATED_MAX: usize = 1 << 16;

impl Repeated {
    /// Whether the commit of `txn` on `shard` was replayed before.
    pub(crate) fn has(&mut self, txn: TxnId, shard: ShardId, commit_ts: Ts) -> bool {
        // Only what another shard has decided is journaled again. If it is redone in the order of
        // the journal, the store knows what it has.
        if txn.shard == shard || !txn.is_odd() {
            return false;
        }
        let commit = (txn, shard, commit_ts);
        let fresh = self.seen.insert(commit);
        if fresh {
            self.order.push_back(commit);
            if self.order.len() > REPEATED_MAX {
                let first = self.order.pop_front().expect("there are many");
                self.seen.remove(&first);
            }
        }
        !fresh
    }
}
