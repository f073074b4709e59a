//! Collects anomalies: a few of each kind are told, the others are counted.

use crate::level::{Basis, Kind};
use crate::verdict::Anomaly;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// So many stories of one kind; the smallest cycle is one of them.
const STORIES_MAX: usize = 3;

/// What has been found so far.
#[derive(Debug, Default)]
pub(crate) struct Found {
    kinds: BTreeMap<(Kind, Basis, bool), (Vec<Anomaly>, u64)>,
}

/// What to call an anomaly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Name {
    pub(crate) kind: Kind,
    pub(crate) basis: Basis,
    pub(crate) predicate: bool,
}

impl Name {
    /// A kind that needs neither order nor ranges.
    pub(crate) fn plain(kind: Kind) -> Name {
        Name {
            kind,
            basis: Basis::Values,
            predicate: false,
        }
    }

    /// As an anomaly is printed.
    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.kind.name(), self.basis.suffix())
    }
}

impl Found {
    /// Adds an anomaly. `tell` is asked only if the story is to be kept; the name comes before it.
    pub(crate) fn note(&mut self, name: Name, txns: &[u32], tell: impl FnOnce() -> String) {
        let (told, more) = self
            .kinds
            .entry((name.kind, name.basis, name.predicate))
            .or_default();
        let txns: Vec<usize> = txns.iter().map(|txn| *txn as usize).collect();
        // The same transactions in another key, or found once more on another way.
        if told.iter().any(|anomaly| anomaly.txns == txns) {
            return;
        }
        if told.len() == STORIES_MAX {
            *more += 1;
            return;
        }
        told.push(Anomaly {
            kind: name.kind,
            basis: name.basis,
            predicate: name.predicate,
            txns,
            story: format!("{}: {}", name.text(), tell()),
        });
    }

    /// All of them, the gravest kinds first.
    pub(crate) fn into_anomalies(self) -> Vec<Anomaly> {
        let mut all = Vec::new();
        for (mut told, more) in self.kinds.into_values() {
            if let (Some(last), true) = (told.last_mut(), more > 0) {
                last.story
                    .push_str(&format!("\n  and {more} more of this kind"));
            }
            all.append(&mut told);
        }
        all
    }
}
