//! Guests: jobs of transactions that other shards coordinate, found by transaction.
//!
//! A message that is repeated begins no second job while its first one is at work. When a
//! transaction ends, its jobs end with it.

use crate::job::Origin;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::TxnId;

/// Parked jobs whose answers go to other shards, or to a seal, by transaction.
#[derive(Debug, Default)]
pub(crate) struct Guests(BTreeMap<TxnId, Vec<(Origin, u64)>>);

impl Guests {
    /// Notes a job that is parked, perhaps not for the first time.
    pub(crate) fn note(&mut self, txn: TxnId, origin: Origin, id: u64) {
        if matches!(origin, Origin::Local { .. }) {
            return;
        }
        let jobs = self.0.entry(txn).or_default();
        if !jobs.contains(&(origin, id)) {
            jobs.push((origin, id));
        }
    }

    /// A job has ended, or is given up.
    pub(crate) fn forget(&mut self, txn: TxnId, id: u64) {
        if let Some(jobs) = self.0.get_mut(&txn) {
            jobs.retain(|(_, other)| *other != id);
            if jobs.is_empty() {
                self.0.remove(&txn);
            }
        }
    }

    /// Whether a job is at work for this message.
    pub(crate) fn has(&self, txn: TxnId, origin: Origin) -> bool {
        self.of(txn).iter().any(|(other, _)| *other == origin)
    }

    fn of(&self, txn: TxnId) -> &[(Origin, u64)] {
        self.0.get(&txn).map_or(&[], Vec::as_slice)
    }

    /// The jobs of a transaction, oldest first.
    pub(crate) fn jobs(&self, txn: TxnId) -> Vec<u64> {
        let mut jobs: Vec<u64> = self.of(txn).iter().map(|(_, id)| *id).collect();
        jobs.sort_unstable();
        jobs
    }

    /// The jobs of a transaction that are to hold formulas, oldest first.
    pub(crate) fn holding(&self, txn: TxnId) -> Vec<u64> {
        let held = |(origin, _): &&(Origin, u64)| matches!(origin, Origin::Held { .. });
        let held = self.of(txn).iter().filter(held);
        let mut held: Vec<u64> = held.map(|(_, id)| *id).collect();
        held.sort_unstable();
        held
    }

    /// The transactions that have jobs here, ascending.
    pub(crate) fn txns(&self) -> impl Iterator<Item = TxnId> {
        self.0.keys().copied()
    }
}
