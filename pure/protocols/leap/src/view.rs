//! A row as a transaction sees it: the committed version under its own write.

use crate::installed::Installed;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{Key, Position, Ts};
use store::{Store, Write};

/// Writes of one transaction, one per key.
pub(crate) type WriteSet = BTreeMap<Key, Write>;

/// What was found under a key.
pub(crate) struct Seen<'a> {
    pub(crate) row: Option<&'a [u8]>,
    /// Commit timestamp of the version; zero if it is absent or the own write.
    pub(crate) version: Ts,
    /// Position that an answer built from it waits for.
    pub(crate) wait: Position,
}

/// The version at `at`, under the own write if there is one. `folded` holds the result of an own
/// formula.
pub(crate) fn look<'a>(
    writes: Option<&'a WriteSet>,
    store: &'a Store,
    installed: &Installed,
    key: &Key,
    at: Ts,
    folded: &'a mut Vec<u8>,
) -> Seen<'a> {
    let committed = store.get(key.index, key.slot, &key.bytes, at);
    let own = writes.and_then(|writes| writes.get(key));
    let wait = match (&committed, own) {
        (Some(version), Some(Write::Formula(_)) | None) => installed.of(version.commit_ts),
        (None, None) => installed.all(),
        (_, Some(_)) => Position(0),
    };
    let (row, version) = match own {
        None => match committed {
            Some(version) => (Some(version.value), version.commit_ts),
            None => (None, Ts::ZERO),
        },
        Some(Write::Insert(row) | Write::Put(row)) => (Some(row.as_slice()), Ts::ZERO),
        Some(Write::Delete) => (None, Ts::ZERO),
        Some(Write::Formula(formula)) => {
            // A snapshot may be older than the row that the formula was checked against.
            let newest = || store.get(key.index, key.slot, &key.bytes, Ts::MAX);
            let base = committed
                .or_else(newest)
                .expect("a locked row with a formula is present");
            folded.clear();
            if formula.fold(base.value, folded).is_err() {
                folded.clear();
                let newest = newest().expect("a locked row with a formula is present");
                formula
                    .fold(newest.value, folded)
                    .expect("it was folded before");
            }
            (Some(folded.as_slice()), Ts::ZERO)
        }
    };
    Seen { row, version, wait }
}
