//! Writes from the journal, in its order or in any.
//!
//! Where formulas are folded in the order of timestamps, a record may stand behind others of
//! larger timestamps (rule A7). So the formulas of a row are kept while the journal is replayed,
//! with the version before the first of them, and a late one folds the row anew.

use crate::formula::Formula;
use crate::store::Store;
use crate::write::Write;
use alloc::vec::Vec;
use base::{Key, KeyRef, Ts};

/// Most formulas of larger timestamps that may stand in front of one in the journal. A shard must
/// not let more of them wait for a promise on one row.
pub const LATE_MAX: usize = 1_000;

/// The formulas that were redone on one row.
pub(crate) struct Redone {
    /// The version before them.
    base: Ts,
    row: Vec<u8>,
    /// In the order of timestamps.
    formulas: Vec<(Ts, Formula)>,
}

impl Redone {
    /// Keeps a formula above all others.
    fn push(&mut self, commit_ts: Ts, formula: &Formula) {
        self.formulas.push((commit_ts, formula.clone()));
        if self.formulas.len() > 2 * LATE_MAX {
            let old = self.formulas.drain(..LATE_MAX);
            let (mut row, mut base) = (core::mem::take(&mut self.row), self.base);
            for (at, formula) in old {
                row = folded(&row, &formula);
                base = at;
            }
            (self.row, self.base) = (row, base);
        }
    }

    /// Keeps a formula below others, unless it is there. Returns the row with all; `newest` is the
    /// one without it.
    fn insert(&mut self, commit_ts: Ts, formula: &Formula, newest: &[u8]) -> Option<Vec<u8>> {
        let place = self.formulas.partition_point(|(at, _)| *at < commit_ts);
        let is_known = self
            .formulas
            .get(place)
            .is_some_and(|(at, _)| *at == commit_ts);
        if commit_ts <= self.base || is_known {
            return None;
        }
        let mut above = self.formulas[place..].iter();
        let commutes = above.all(|(_, other)| other.commutes_with(formula));
        self.formulas.insert(place, (commit_ts, formula.clone()));
        if commutes {
            return Some(folded(newest, formula));
        }
        let mut row = self.row.clone();
        for (_, formula) in &self.formulas {
            row = folded(&row, formula);
        }
        Some(row)
    }
}

fn folded(row: &[u8], formula: &Formula) -> Vec<u8> {
    let mut out = Vec::with_capacity(row.len() + 8);
    let fold = formula.fold(row, &mut out);
    fold.expect("its escrow holds in every order");
    out
}

impl<S: Default> Store<S> {
    /// Applies a write from the journal after the rows of a checkpoint were loaded. Skips a write
    /// whose effect is there (the row has a version at or above `commit_ts`), and a formula or
    /// delete of an absent row: the checkpoint was taken while writes went on, so the row was
    /// deleted later and its tombstone collected. Returns whether the write was applied.
    ///
    /// Call this in journal order. [`Store::collect`] afterwards removes the tombstones.
    pub fn redo<'k>(&mut self, key: impl Into<KeyRef<'k>>, write: &Write, commit_ts: Ts) -> bool {
        let key: KeyRef<'_> = key.into();
        if self.newest_ts(key) >= commit_ts {
            return false;
        }
        let absent = self.get(key, Ts::MAX).is_none();
        if absent && matches!(write, Write::Delete | Write::Formula(_)) {
            return false;
        }
        self.apply(key, write, commit_ts, Ts::MAX);
        true
    }

    /// As [`Store::redo`], each write once; a formula may come behind others that have committed
    /// above it, at most [`LATE_MAX`] of them (rule A7). [`Store::end_redo`] afterwards.
    pub fn redo_in_any_order<'k>(
        &mut self,
        key: impl Into<KeyRef<'k>>,
        write: &Write,
        commit_ts: Ts,
    ) -> bool {
        let key: KeyRef<'_> = key.into();
        let newest = self.newest_ts(key);
        let row = || Key::new(key.index, key.slot, key.bytes.to_vec());
        let Write::Formula(formula) = write else {
            if newest < commit_ts && !self.redone.is_empty() {
                self.redone.remove(&row());
            }
            return self.redo(key, write, commit_ts);
        };
        let Some(version) = self.get(key, Ts::MAX) else {
            return false;
        };
        if newest < commit_ts {
            let before = || Redone {
                base: newest,
                row: version.value.to_vec(),
                formulas: Vec::new(),
            };
            let before = (!self.redone.contains_key(&row())).then(before);
            let redone = self.redone.entry(row());
            let redone = redone.or_insert_with(|| before.expect("just made"));
            redone.push(commit_ts, formula);
            return self.redo(key, write, commit_ts);
        }
        let old = version.value.to_vec();
        let redone = self.redone.get_mut(&row());
        let Some(value) = redone.and_then(|redone| redone.insert(commit_ts, formula, &old)) else {
            return false;
        };
        let tree = self.tree_mut(key.index, key.slot);
        let (leaf, i) = tree
            .and_then(|tree| tree.locate_mut(key.bytes))
            .expect("the row is there");
        leaf.overwrite(i, newest, Some(&value));
        self.counts.bytes -= old.len();
        self.counts.bytes += value.len();
        true
    }

    /// The journal is replayed.
    pub fn end_redo(&mut self) {
        self.redone.clear();
    }
}
