//! The batches of a fill: what their transactions tell.

use super::{BATCH_ATTEMPTS_MAX, Ddl, Step, Waiting};
use base::Time;
use exec::fill::FillPosition;
use plan::Fill;
use session::message::{FromTxn, TxnHandle};
use session::undone::{may_pass, node_away, node_lost, rows_away};
use txn::{AbortReason, OpError, Outcome};

impl Ddl {
    /// The machine has started the batch.
    pub(crate) fn filling(&mut self, started: TxnHandle) {
        let change = self.current.as_mut().expect("a batch belongs to a change");
        let Waiting::Batch { handle, .. } = &mut change.waiting else {
            unreachable!("a batch was asked for")
        };
        *handle = Some(started);
    }

    /// News of the batch's transaction. `next`: where the next batch begins; `None`: this was the
    /// last.
    pub(crate) fn on_txn(
        &mut self,
        from: TxnHandle,
        message: FromTxn,
        next: Option<FillPosition>,
        now: Time,
    ) {
        let Some(change) = &mut self.current else {
            return;
        };
        let done = match (message, &mut change.waiting) {
            (_, Waiting::Batch { handle, .. }) if *handle != Some(from) => return,
            (FromTxn::Done(_, done), Waiting::Batch { .. }) => done,
            _ => return,
        };
        let waiting = core::mem::replace(&mut change.waiting, Waiting::Nothing);
        let Waiting::Batch {
            fill, mut tries, ..
        } = waiting
        else {
            unreachable!("just matched")
        };
        if done.outcome == Some(Outcome::Unknown) {
            return change.fail(node_lost());
        }
        match done.result {
            Ok(_) if matches!(fill, Fill::Decide(_)) => {
                if next.is_some() {
                    change.undo_block();
                }
            }
            Ok(_) => {
                if next.is_some() {
                    change.steps.push_front(Step::Fill(fill));
                    change.rests_from = Some(now);
                }
                change.position = next;
            }
            Err(OpError::Sql(error)) => change.fail(error),
            Err(OpError::Raise(_)) => {
                unreachable!("a transaction answers a refused snapshot itself")
            }
            Err(OpError::Aborted(reason))
                if tries.count() < BATCH_ATTEMPTS_MAX && may_pass(&reason) =>
            {
                tries.note(done.priority_ts);
                let waits = matches!(
                    reason,
                    AbortReason::Die { .. }
                        | AbortReason::LockTimeout { .. }
                        | AbortReason::MoveTimeout(_)
                        | AbortReason::SnapshotMisses(_)
                );
                let pause_us = if waits { tries.pause_us() } else { 0 };
                change.waiting = Waiting::Batch {
                    fill,
                    handle: None,
                    tries,
                    begins: now.after(pause_us),
                };
            }
            Err(OpError::Aborted(reason)) => {
                let error = match node_away(&reason) {
                    Some(node) => rows_away(node),
                    None => session::errors::aborted(&reason, None),
                };
                change.fail(error);
            }
        }
    }
}
