//! Idle readers that give way to writers.
//!
//! A lock table names the transactions whose shared locks keep a writer waiting
//! ([`txn::lock::GIVE_WAY_US`]). Their coordinator ends those whose clients do nothing, and tells
//! the client at its next statement (40001). One that has only read is committed: all that it read
//! was locked together, so its COMMIT may still succeed, but another statement may not.
//!
//! Idle time of its client after which each transaction gives way:
//!
//! | transaction | idle for | because |
//! |---|---|---|
//! | has only read | [`GIVE_WAY_US`] | it loses nothing if COMMIT comes next |
//! | has written | [`WROTE_IDLE_US`] | its work is lost |
//! | stopped in the middle of rows | [`MID_ROWS_IDLE_US`] | the network may be what is slow |
//! | READ COMMITTED, or FOR SHARE | never | its locks are those that PostgreSQL keeps, too |
//! | of the node itself | never | it has no client |

use super::{Commit, INTERNAL, Statement, Txn, Txns};
use base::{Position, Time};
use session::message::{FromTxn, StatementNo, TxnHandle};
use txn::contract::Submitted;
use txn::lock::GIVE_WAY_US;
use txn::{AbortReason, InTheWay, OpError, OpReply, Outcome};

/// Microseconds of idle time after which a transaction that has written gives way.
const WROTE_IDLE_US: u64 = 1_000_000;
/// Microseconds of idle time after which a transaction gives way whose client has stopped in the
/// middle of its rows.
const MID_ROWS_IDLE_US: u64 = 2_000_000;

/// How a transaction ended while its client was idle.
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    /// Position for which an answer with the end waits.
    pub(super) wait: Position,
}

impl Ended {
    pub(super) fn aborted(reason: AbortReason) -> Ended {
        Ended {
            outcome: Outcome::Aborted(reason),
            wait: Position(0),
        }
    }
}

impl Statement {
    /// Whether it has filled the client's buffers, and goes on when the client asks for more.
    fn awaits_client(&self) -> bool {
        !self.port.autocommit && self.port.credit.get() == 0
    }
}

impl Txn {
    /// Why another statement cannot run: the transaction has ended, or gives way.
    fn end_reason(&self) -> Option<AbortReason> {
        match (&self.ended, &self.commit) {
            (Some(ended), _) => match &ended.outcome {
                Outcome::Aborted(reason) => Some(reason.clone()),
                Outcome::Committed { .. } | Outcome::Unknown => self.gave_way.as_deref().cloned(),
            },
            (None, Commit::GivingWay(_)) => self.gave_way.as_deref().cloned(),
            (None, _) => None,
        }
    }

    /// Whether the client has done nothing for a while.
    fn is_idle(&self, now: Time) -> bool {
        let mut running = self.statements.values().filter(|s| s.future.is_some());
        let mid_rows = running.clone().next().is_some();
        let patience_us = match (mid_rows, self.shared.wrote.get()) {
            (true, _) => MID_ROWS_IDLE_US,
            (false, true) => WROTE_IDLE_US,
            (false, false) => GIVE_WAY_US,
        };
        self.ended.is_none()
            && matches!(self.commit, Commit::NotYet)
            && self.shared.pending.get() == 0
            && running.all(Statement::awaits_client)
            && now.since(self.heard) >= patience_us
    }
}

impl Txns {
    /// A writer has waited for what this transaction has read.
    pub(crate) fn give_way(&mut self, named: InTheWay) {
        let Some(handle) = self.by_id.get(&named.reader).copied() else {
            return;
        };
        let now = self.core.borrow().now;
        let txn = self.by_handle.get_mut(&handle).expect("known by its id");
        let keeps = txn.shared.is_read_committed() || txn.shared.locked_rows.get();
        if handle.conn == INTERNAL || keeps || !txn.is_idle(now) {
            return;
        }
        self.core.borrow_mut().counters.txn_gave_way += 1;
        let (key, writer) = (named.key, named.writer);
        let reason = AbortReason::GaveWay { key, writer };
        let running = txn.statements.iter().find(|(_, s)| s.future.is_some());
        if let Some(number) = running.map(|(number, _)| *number) {
            self.end_statement(handle, number, Err(OpError::Aborted(reason)));
        } else if txn.shared.wrote.get() {
            self.abort(handle);
            self.note_ended(handle, Ended::aborted(reason));
        } else {
            txn.gave_way = Some(Box::new(reason));
            self.commit_reader(handle);
        }
    }

    fn commit_reader(&mut self, handle: TxnHandle) {
        let txn = self.by_handle.get_mut(&handle).expect("just seen");
        let mut core = self.core.borrow_mut();
        let op = core.next_op();
        let submitted = core.commit(txn.shared.protocol, txn.shared.id, op);
        drop(core);
        txn.commit = Commit::GivingWay(op);
        if let Submitted::Ready(reply) = submitted {
            self.gave_way(handle, reply);
        }
    }

    /// The outcome of a reader that gives way has come.
    pub(super) fn gave_way(&mut self, handle: TxnHandle, reply: OpReply) {
        let txn = self.by_handle.get_mut(&handle).expect("just seen");
        txn.commit = Commit::NotYet;
        let ended = Ended {
            outcome: reply.outcome.expect("a commit ends with an outcome"),
            wait: reply.wait.max(txn.shared.wait.get()),
        };
        let gone = txn.gone;
        self.note_ended(handle, ended);
        if gone {
            self.forget(handle);
        }
    }

    pub(super) fn note_ended(&mut self, handle: TxnHandle, ended: Ended) {
        let txn = self.by_handle.get_mut(&handle).expect("just seen");
        txn.ended = Some(ended);
    }

    /// The client has come back with a statement or ROLLBACK. `Some`: the transaction has ended or
    /// is ending, and the caller need do nothing more with it.
    pub(super) fn leave_ended(&mut self, handle: TxnHandle) -> Option<AbortReason> {
        let txn = self.by_handle.get_mut(&handle)?;
        let reason = txn.end_reason()?;
        match txn.ended {
            Some(_) => {
                self.forget(handle);
            }
            None => txn.gone = true,
        }
        Some(reason)
    }

    /// As [`Txns::leave_ended`] for a statement, which is refused. Returns whether it was.
    pub(super) fn refuse_ended(&mut self, handle: TxnHandle, statement: StatementNo) -> bool {
        let priority_ts = self.by_handle.get(&handle).map(|txn| txn.priority_ts);
        let Some(reason) = self.leave_ended(handle) else {
            return false;
        };
        self.refuse(handle, statement, priority_ts, reason);
        true
    }

    /// As [`Txns::leave_ended`] for COMMIT, which gets the outcome. Returns whether it did.
    pub(super) fn commit_ended(&mut self, handle: TxnHandle) -> bool {
        let Some(txn) = self.by_handle.get_mut(&handle) else {
            return false;
        };
        if let Commit::GivingWay(op) = txn.commit {
            txn.commit = Commit::Running(op, None);
            return true;
        }
        let Some(Ended { outcome, wait }) = txn.ended.take() else {
            return false;
        };
        let cost = self.forget(handle);
        let ended = FromTxn::Ended {
            outcome,
            wait,
            cost,
        };
        self.tell(handle, ended);
        true
    }
}
