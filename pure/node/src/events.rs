//! What statements have to say to the loop of their shard.

use base::Time;
use session::message::{FromTxn, StatementNo, TxnHandle};
use std::collections::{BTreeSet, VecDeque};

/// What statements tell the shard's loop.
#[derive(Default)]
pub(crate) struct Events {
    /// Messages to sessions.
    pub(crate) to_sessions: VecDeque<(TxnHandle, FromTxn)>,
    /// Statements that gave way and want to run again, in that order.
    pub(crate) yielded: VecDeque<(TxnHandle, StatementNo)>,
    /// Memory of ended statements.
    pub(crate) waste: Vec<exec::port::Waste>,
    /// Statements that sleep, with their wake-ups; entries of ended statements are passed over.
    pub(crate) sleeping: BTreeSet<(Time, TxnHandle, StatementNo)>,
}

impl Events {
    /// Statements that have slept until `now`.
    pub(crate) fn woken(&mut self, now: Time) -> Vec<(TxnHandle, StatementNo)> {
        let mut woken = Vec::new();
        while let Some((at, handle, statement)) = self.sleeping.first().copied()
            && at <= now
        {
            self.sleeping.pop_first();
            woken.push((handle, statement));
        }
        woken
    }
}
