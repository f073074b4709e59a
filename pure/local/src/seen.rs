//! A row as a transaction sees it: the committed version under its own write.

use crate::write_set::WriteSet;
use alloc::vec::Vec;
use base::{Key, Position, Ts};
use store::{Formula, Store, Write};
use txn::Installed;

/// The row that a transaction sees under a key.
#[derive(Debug)]
pub struct Seen<'a> {
    /// The row; `None`: it is absent.
    pub row: Option<&'a [u8]>,
    /// Commit timestamp of the version; zero: the row is absent, or an own write.
    pub version: Ts,
    /// Position for which an answer with this row waits.
    pub wait: Position,
}

/// The version at `at`, under the transaction's own write. `folded` is memory for the result of an
/// own formula.
#[inline]
pub fn see<'a>(
    writes: Option<&'a WriteSet>,
    store: &'a Store,
    installed: &Installed,
    key: &Key,
    at: Ts,
    folded: &'a mut Vec<u8>,
) -> Seen<'a> {
    if let Some(write) = writes.and_then(|writes| writes.get(key)) {
        return see_own(write, store, installed, key, at, folded);
    }
    match store.get(key, at) {
        Some(version) => Seen {
            row: Some(version.value),
            version: version.commit_ts,
            wait: installed.of(version.commit_ts),
        },
        None => Seen {
            row: None,
            version: Ts::ZERO,
            wait: installed.all(),
        },
    }
}

/// The row under an own write. A formula is applied to the version at `at`, because others may have
/// committed formulas since; to the newest one if that snapshot is older than the row.
pub fn see_own<'a>(
    write: &'a Write,
    store: &Store,
    installed: &Installed,
    key: &Key,
    at: Ts,
    folded: &'a mut Vec<u8>,
) -> Seen<'a> {
    let (row, wait) = match write {
        Write::Insert(row) | Write::Put(row) => (Some(row.as_slice()), Position(0)),
        Write::Delete => (None, Position(0)),
        Write::Formula(formula) => {
            let base = fold(formula, store, key, at, folded);
            (Some(folded.as_slice()), installed.of(base))
        }
    };
    Seen {
        row,
        version: Ts::ZERO,
        wait,
    }
}

/// Folds an own formula into `folded`; returns the version that it rests on.
fn fold(formula: &Formula, store: &Store, key: &Key, at: Ts, folded: &mut Vec<u8>) -> Ts {
    let mut onto = |value: &[u8]| {
        folded.clear();
        formula.fold(value, folded)
    };
    if let Some(base) = store.get(key, at)
        && onto(base.value).is_ok()
    {
        return base.commit_ts;
    }
    let newest = store.get(key, Ts::MAX);
    let newest = newest.expect("a row with a formula is present");
    onto(newest.value).expect("increments have their escrow, others their row");
    newest.commit_ts
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Datum, IndexId, Slot, Type};
    use store::{ColumnFormula, FormulaOp};

    fn row(value: i64) -> Vec<u8> {
        base::row::to_vec(&[Datum::Int(value)])
    }

    fn adding(operand: i64) -> Write {
        let change = ColumnFormula::new(0, Type::Int8, FormulaOp::Add(Datum::Int(operand)));
        Write::Formula(Formula(vec![change.expect("integers add exactly")]))
    }

    /// What a transaction with this write sees of a row that was inserted with 5 at timestamp 10
    /// (position 100) and got 7 at 20 (position 200).
    fn seen(own: Option<Write>, at: u64) -> (Option<Vec<u8>>, u64, u64) {
        let key = Key::new(IndexId(1), Slot(2), vec![3]);
        let (mut store, mut installed) = (Store::new(), Installed::default());
        for (ts, write) in [(10, Write::Insert(row(5))), (20, Write::Put(row(7)))] {
            store.apply(&key, &write, Ts(ts), Ts::ZERO);
            installed.insert(Ts(ts), Position(ts * 10));
        }
        let mut writes = WriteSet::default();
        if let Some(own) = own {
            writes.add(key.clone(), own);
        }
        let mut folded = Vec::new();
        let seen = see(Some(&writes), &store, &installed, &key, Ts(at), &mut folded);
        (seen.row.map(<[u8]>::to_vec), seen.version.0, seen.wait.0)
    }

    #[test]
    fn the_own_write_hides_the_version_and_what_that_waits_for() {
        assert_eq!(seen(None, 15), (Some(row(5)), 10, 100));
        assert_eq!(seen(None, 30), (Some(row(7)), 20, 200));
        // It may be absent because of any commit.
        assert_eq!(seen(None, 5), (None, 0, 200));
        assert_eq!(seen(Some(Write::Put(row(1))), 30), (Some(row(1)), 0, 0));
        assert_eq!(seen(Some(Write::Delete), 30), (None, 0, 0));
    }

    #[test]
    fn an_own_formula_waits_for_the_version_that_it_rests_on() {
        assert_eq!(seen(Some(adding(1)), 15), (Some(row(6)), 0, 100));
        assert_eq!(seen(Some(adding(1)), 30), (Some(row(8)), 0, 200));
        // The snapshot is older than the row: it is the newest version that counts.
        assert_eq!(seen(Some(adding(1)), 5), (Some(row(8)), 0, 200));
    }
}
