//! What the statements of one transaction share.

use crate::core::Core;
use crate::snapshot::Held;
use crate::used::Used;
use base::{DatabaseId, Position, ShardId, Time, TxnId};
use catalog::ProtocolKind;
use exec::deferred::Deferred;
use exec::objects::Descriptors;
use parse::session::Isolation;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use txn::touched::Touched;
use txn::{OpId, OpReply, Outcome};

/// State that the statements of one transaction share.
pub(crate) struct TxnShared {
    pub(crate) id: TxnId,
    pub(crate) protocol: ProtocolKind,
    pub(crate) database: DatabaseId,
    pub(crate) core: Rc<RefCell<Core>>,
    pub(crate) isolation: Isolation,
    pub(crate) read_only: bool,
    pub(crate) txn_time: Time,
    /// Snapshot of the whole transaction: of a read-only one of several statements.
    pub(crate) snapshot: Cell<Option<Held>>,
    /// Whether its first statement asks all shards for their clocks, so that no shard refuses the
    /// snapshot later.
    pub(crate) asks_clocks: bool,
    /// Operations that the protocol has not answered yet.
    pub(crate) pending: Cell<u32>,
    /// Answers that have arrived and were not fetched yet: a handful, or those of a parcel, which
    /// are mostly fetched in their order.
    pub(crate) answers: RefCell<VecDeque<(OpId, OpReply)>>,
    /// Largest position that was read: answers to the client wait for it.
    pub(crate) wait: Cell<Position>,
    pub(crate) outcome: RefCell<Option<Outcome>>,
    /// Whether an operation was submitted that may write.
    pub(crate) wrote: Cell<bool>,
    /// Whether a statement has locked rows by FOR SHARE or FOR UPDATE.
    pub(crate) locked_rows: Cell<bool>,
    /// Key spaces that its statements have used, if there may be more than one statement.
    pub(crate) used: Used,
    pub(crate) touched: Touched,
    pub(crate) deferred: RefCell<Deferred>,
    /// Descriptors of large objects.
    pub(crate) descriptors: RefCell<Descriptors>,
    /// The shard that a statement has asked for advisory locks, and the session.
    pub(crate) asked_keeper: Cell<Option<(ShardId, i32)>>,
    /// The protocol has rolled it back.
    pub(crate) undone: Cell<bool>,
}

impl TxnShared {
    /// Whether each statement has a snapshot of its own.
    pub(crate) fn is_read_committed(&self) -> bool {
        match self.isolation {
            Isolation::ReadUncommitted | Isolation::ReadCommitted => true,
            Isolation::RepeatableRead | Isolation::Serializable => false,
        }
    }

    pub(crate) fn take_answer(&self, id: OpId) -> Option<OpReply> {
        let mut answers = self.answers.borrow_mut();
        let at = answers.iter().position(|(op, _)| *op == id)?;
        answers.remove(at).map(|(_, reply)| reply)
    }
}
