//! What every protocol does with the context of a step: records, checks and history.

use crate::bulk::Wanted;
use crate::contract::{Cx, Outcome, TxnCost};
use crate::counters::Counters;
use crate::history::Event;
use crate::reason::AbortReason;
use alloc::vec::Vec;
use base::{IndexId, Key, Position, Ts, TxnId};

impl<M> Cx<'_, M> {
    /// Appends the record that `encode` writes into `scratch`, and counts it.
    #[inline]
    pub fn append(&mut self, scratch: &mut Vec<u8>, encode: impl FnOnce(&mut Vec<u8>)) -> Position {
        scratch.clear();
        encode(scratch);
        self.counters.journal_records += 1;
        self.counters.journal_bytes += scratch.len() as u64;
        self.journal.append(scratch)
    }

    /// Refuses a plan of catalog version `planned` that is older than the last change of the table.
    ///
    /// # Errors
    /// [`AbortReason::SchemaChanged`].
    #[inline]
    pub fn check_schema(&self, index: IndexId, planned: u64) -> Result<(), AbortReason> {
        match (self.schema_changed)(index) {
            Some(changed) if changed <= planned => Ok(()),
            Some(_) | None => Err(AbortReason::SchemaChanged(Some(index))),
        }
    }

    /// As [`Cx::check_schema`], for a write: the table must not be locked since either.
    ///
    /// # Errors
    /// [`AbortReason::SchemaChanged`].
    #[inline]
    pub fn check_write(&self, index: IndexId, planned: u64) -> Result<(), AbortReason> {
        self.check_schema(index, planned)?;
        if self.locked.is_empty() {
            return Ok(());
        }
        let mut locked = self.locked.iter();
        match locked.any(|(of, since)| *of == index && planned < *since) {
            true => Err(AbortReason::SchemaChanged(Some(index))),
            false => Ok(()),
        }
    }

    /// Refuses a snapshot at `at` if versions of `wanted` that it may need are gone (rule R13).
    ///
    /// # Errors
    /// [`AbortReason::SnapshotTooOld`].
    #[inline]
    pub fn admit_snapshot(&self, wanted: Wanted<'_>, at: Ts) -> Result<(), AbortReason> {
        let below = at < self.horizons.highest() && at < self.horizons.of(wanted.index());
        match below {
            true => Err(AbortReason::SnapshotTooOld(wanted.example())),
            false => Ok(()),
        }
    }

    /// Refuses to lock `rows` more rows if there is no memory for their locks.
    ///
    /// # Errors
    /// [`AbortReason::MemoryFull`].
    #[inline]
    pub fn check_memory(&mut self, rows: u64) -> Result<(), AbortReason> {
        match self.journal.refusal_of_locks(self.shard, rows) {
            Some(reason) => Err(reason),
            None => Ok(()),
        }
    }

    /// Adds to the history that a version was read; zero: the row is absent, or an own write.
    #[inline]
    pub fn note_read(&mut self, txn: TxnId, key: &Key, version: Ts) {
        note_read(&mut self.history, txn, key, version);
    }

    /// Adds to the history that a transaction of this coordinator begins.
    #[inline]
    pub fn note_begin(&mut self, txn: TxnId) {
        if let Some(history) = &mut self.history {
            history.push(Event::Begin { txn, at: self.now });
        }
    }

    /// Adds a write to the history.
    #[inline]
    pub fn note_write(&mut self, txn: TxnId, key: &Key) {
        if let Some(history) = &mut self.history {
            history.push(Event::Write {
                txn,
                key: key.clone(),
            });
        }
    }
}

/// As [`Cx::note_read`], for a caller that holds other parts of the context.
#[inline]
pub fn note_read(history: &mut Option<&mut Vec<Event>>, txn: TxnId, key: &Key, version: Ts) {
    if let Some(history) = history {
        history.push(Event::Read {
            txn,
            key: key.clone(),
            version,
        });
    }
}

impl<M> Cx<'_, M> {
    /// A transaction of this coordinator has ended: counts it. Adds it to the history if it did not
    /// commit, or perhaps did not.
    pub fn note_end(&mut self, txn: TxnId, outcome: &Outcome, cost: &TxnCost) {
        let counters = &mut *self.counters;
        counters.messages_on_path += u64::from(cost.messages_on_path);
        counters.forced_writes += u64::from(cost.forced_writes);
        match outcome {
            Outcome::Committed { .. } => {
                counters.txn_committed += 1;
                counters.participant_nodes += u64::from(cost.nodes);
                match (cost.nodes, cost.shards) {
                    (0 | 1, 0 | 1) => counters.txn_shard_local += 1,
                    (0 | 1, _) => counters.txn_node_local += 1,
                    _ => counters.txn_distributed += 1,
                }
            }
            Outcome::Unknown => counters.txn_unknown += 1,
            Outcome::Aborted(reason) => count_abort(counters, reason),
        }
        let Some(history) = &mut self.history else {
            return;
        };
        match outcome {
            Outcome::Aborted(_) => history.push(Event::Abort { txn }),
            Outcome::Unknown => history.push(Event::Unknown { txn }),
            Outcome::Committed { .. } => {}
        }
    }
}

fn count_abort(counters: &mut Counters, reason: &AbortReason) {
    counters.txn_aborted += 1;
    match reason {
        AbortReason::Die { .. } | AbortReason::Overtaken(_) => counters.txn_died += 1,
        AbortReason::LockTimeout { .. } | AbortReason::MoveTimeout(_) | AbortReason::InDoubt(_) => {
            counters.txn_lock_timeout += 1;
        }
        AbortReason::ParticipantLost(_)
        | AbortReason::CutOff(_)
        | AbortReason::Unreachable(_)
        | AbortReason::RowCutOff { .. } => counters.txn_participant_lost += 1,
        AbortReason::SchemaChanged(_) => counters.txn_schema_changed += 1,
        AbortReason::SnapshotTooOld(_)
        | AbortReason::SnapshotMisses(_)
        | AbortReason::GaveWay { .. }
        | AbortReason::DiskFull(_)
        | AbortReason::MemoryFull(_)
        | AbortReason::Requested => {}
    }
}
