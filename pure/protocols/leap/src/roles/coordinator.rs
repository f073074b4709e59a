//! The coordinator's state: transactions, what they wait for, and what finished ones owe.

use crate::commit::Unconfirmed;
use crate::ship::Owings;
use crate::txns::{Reading, Txn};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{NodeId, ShardId, Time, Ts, TxnId};
use local::Txns;
use txn::bulk::Wanted;
use txn::{Asks, TxnCost};

/// What a shard keeps of transactions that it coordinates.
#[derive(Debug, Default)]
pub(crate) struct Coordinator {
    /// Transactions that their caller has not forgotten, and errands for other shards.
    pub(crate) txns: Txns<Txn>,
    /// Reads on other shards that were not answered.
    pub(crate) readings: Asks<u64, Reading>,
    /// Transactions whose commit timestamp is drawn while they wait for confirmations.
    committing: BTreeMap<TxnId, Ts>,
    /// Confirmations that those transactions wait for, by transaction and shard.
    pub(crate) confirms: Asks<(TxnId, ShardId), Unconfirmed>,
    /// Jobs of snapshot reads that wait for the end of such a transaction.
    pub(crate) commit_waits: Vec<u64>,
    /// Formulas of committed transactions that this shard owes to owners.
    pub(crate) owings: Owings,
}

impl Coordinator {
    /// Whether a transaction runs here and has no outcome.
    pub(crate) fn is_open(&self, txn: TxnId) -> bool {
        let state = self.txns.get(&txn);
        state.is_some_and(|state| state.outcome.is_none())
    }

    /// A transaction that has no outcome yet.
    pub(crate) fn open(&mut self, txn: TxnId) -> Option<&mut Txn> {
        let state = self.txns.get_mut(&txn)?;
        state.outcome.is_none().then_some(&mut **state)
    }

    /// A transaction has its timestamp, and shards are to confirm locks of these lives.
    pub(crate) fn begin_confirm(
        &mut self,
        txn: TxnId,
        commit_ts: Ts,
        unconfirmed: &[(ShardId, u32)],
        now: Time,
    ) {
        self.committing.insert(txn, commit_ts);
        for (shard, life) in unconfirmed {
            let (shard, life) = (*shard, *life);
            let asked = Unconfirmed { shard, life };
            self.confirms.begin((txn, shard), asked, now, true);
        }
    }

    /// A shard has confirmed. Returns whether all shards have.
    pub(crate) fn confirmed(&mut self, txn: TxnId, shard: ShardId) -> bool {
        self.confirms.end((txn, shard));
        self.unconfirmed(txn).next().is_none()
    }

    /// A transaction has ended. Returns whether it waited for confirmations.
    pub(crate) fn end_confirm(&mut self, txn: TxnId) -> bool {
        let waited = self.committing.remove(&txn).is_some();
        if waited {
            let open: Vec<ShardId> = self.unconfirmed(txn).collect();
            for shard in open {
                self.confirms.end((txn, shard));
            }
        }
        waited
    }

    /// Shards that have not confirmed the locks of a transaction.
    fn unconfirmed(&self, txn: TxnId) -> impl Iterator<Item = ShardId> {
        let shards = (txn, ShardId(0))..=(txn, ShardId(u16::MAX));
        let asked = self.confirms.range(shards);
        asked.map(|((_, shard), _)| shard)
    }

    /// Transactions with locks that a former life of a node gave and cannot confirm any more, with
    /// the first such shard of each.
    pub(crate) fn lost_confirms(&self, node: NodeId, before: u32) -> Vec<(TxnId, ShardId)> {
        let mut lost = self.confirms.lost(node, before);
        lost.dedup_by_key(|(txn, _)| *txn);
        lost
    }

    /// Whether a transaction that awaits confirmations may commit on `wanted` rows up to `ts`.
    pub(crate) fn commits_below(&self, ts: Ts, wanted: Wanted<'_>) -> bool {
        let mut committing = self.committing.iter();
        committing.any(|(txn, commit_ts)| {
            let state = self.txns.get(txn);
            *commit_ts <= ts && state.is_some_and(|state| state.written.meets(wanted))
        })
    }

    /// Cost of a transaction up to now.
    pub(crate) fn cost_so_far(&self, here: NodeId, txn: TxnId) -> Option<TxnCost> {
        let state = self.txns.get(&txn)?;
        let so_far = || state.cost_so_far(here);
        Some(state.outcome.as_ref().map_or_else(so_far, |_| state.cost))
    }

    /// The caller needs the outcome of a finished transaction no more.
    pub(crate) fn forget(&mut self, txn: TxnId) -> Option<TxnCost> {
        let state = self.txns.remove(&txn)?;
        assert!(state.outcome.is_some(), "{txn} is forgotten after its end");
        let cost = state.cost;
        self.txns.spare(state);
        Some(cost)
    }

    /// These shards hold locks for a transaction, in these lives.
    pub(crate) fn note_visited(&mut self, here: ShardId, txn: TxnId, visited: &[(ShardId, u32)]) {
        let Some(state) = self.txns.get_mut(&txn) else {
            return;
        };
        for at in visited {
            if at.0 != here && !state.visited.contains(at) {
                state.visited.push(*at);
                state.note_node(at.0);
            }
        }
    }
}
