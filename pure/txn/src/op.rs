//! Questions about operations, their results, and the answers to them.

use crate::contract::{Op, OpError, OpReply, OpResult, Outcome, Read, ScanOp, Slots, TxnOptions};
use crate::lock::Priority;
use crate::program::Program;
use crate::reason::AbortReason;
use crate::rows::NewRow;
use crate::snapshot::Snapshot;
use base::{IndexId, Key, Planted, Position, Slot, Ts, TxnId, is_planted};
use store::Formula;

impl Op {
    /// The row of an operation on a single row.
    #[inline]
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        match self {
            Op::Get { key, .. }
            | Op::Modify { key, .. }
            | Op::Insert { key, .. }
            | Op::Formula { key, .. }
            | Op::Write { key, .. } => Some(key),
            Op::InsertMany(_) | Op::Scan(_) | Op::Clock(_) | Op::Savepoint(_) => None,
        }
    }

    /// The index of its rows; `None`: the operation reads no row.
    #[inline]
    #[must_use]
    pub fn index(&self) -> Option<IndexId> {
        match self {
            Op::Get { key, .. }
            | Op::Modify { key, .. }
            | Op::Insert { key, .. }
            | Op::Formula { key, .. }
            | Op::Write { key, .. } => Some(key.index),
            Op::InsertMany(rows) => Some(rows.index()),
            Op::Scan(scan) => Some(scan.index),
            Op::Clock(_) | Op::Savepoint(_) => None,
        }
    }

    /// Whether the operation is about this row, or about a range with it.
    #[must_use]
    pub fn wants(&self, key: &Key) -> bool {
        match self {
            Op::Scan(scan) => scan.has(key),
            Op::InsertMany(rows) => {
                let same = |row: NewRow<'_>| row.slot == key.slot && row.key == key.bytes;
                rows.index() == key.index && rows.iter().any(same)
            }
            Op::Get { .. }
            | Op::Modify { .. }
            | Op::Insert { .. }
            | Op::Formula { .. }
            | Op::Write { .. }
            | Op::Clock(_)
            | Op::Savepoint(_) => self.key() == Some(key),
        }
    }

    /// How the operation reads rows; `None`: it does more than that.
    pub fn read(&self) -> Option<Read> {
        match self {
            Op::Get { read, .. } => Some(*read),
            Op::Scan(scan) => Some(scan.read),
            Op::Clock(snapshot) => Some(Read::Snapshot(*snapshot)),
            Op::Modify { .. }
            | Op::Insert { .. }
            | Op::InsertMany(_)
            | Op::Formula { .. }
            | Op::Write { .. }
            | Op::Savepoint(_) => None,
        }
    }

    /// The formulas of which one changes the row of the operation; empty: it does something else,
    /// or its program is not decoded yet.
    pub fn formulas(&self) -> &[Formula] {
        match self {
            Op::Formula { formula, .. } => core::slice::from_ref(formula),
            Op::Modify {
                program: Program::Live(program),
                ..
            } => program.formulas(),
            Op::Modify { .. }
            | Op::Get { .. }
            | Op::Insert { .. }
            | Op::InsertMany(_)
            | Op::Write { .. }
            | Op::Scan(_)
            | Op::Clock(_)
            | Op::Savepoint(_) => &[],
        }
    }

    /// Whether the operation may write rows.
    #[must_use]
    pub fn is_write(&self) -> bool {
        self.read().is_none() && !matches!(self, Op::Savepoint(_))
    }

    /// Whether the operation takes no lock and writes nothing.
    #[must_use]
    pub fn is_snapshot(&self) -> bool {
        matches!(self.read(), Some(Read::Snapshot(_)))
    }

    /// The program that gets the rows.
    #[must_use]
    pub fn program(&self) -> Option<&Program> {
        match self {
            Op::Get { program, .. } | Op::Modify { program, .. } => Some(program),
            Op::Scan(scan) => Some(&scan.program),
            Op::Insert { .. }
            | Op::InsertMany(_)
            | Op::Formula { .. }
            | Op::Write { .. }
            | Op::Clock(_)
            | Op::Savepoint(_) => None,
        }
    }

    /// The encoded size in bytes of its program or formula, if that is more than a frame carries.
    #[must_use]
    pub fn too_long(&self) -> Option<usize> {
        if let Op::Formula { formula, .. } = self {
            return formula.too_long();
        }
        self.program().and_then(Program::too_long)
    }

    /// As [`Op::program`], mutable.
    pub fn program_mut(&mut self) -> Option<&mut Program> {
        match self {
            Op::Get { program, .. } | Op::Modify { program, .. } => Some(program),
            Op::Scan(scan) => Some(&mut scan.program),
            Op::Insert { .. }
            | Op::InsertMany(_)
            | Op::Formula { .. }
            | Op::Write { .. }
            | Op::Clock(_)
            | Op::Savepoint(_) => None,
        }
    }

    /// The snapshot that the operation reads, or finds candidates in.
    #[must_use]
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.read()?.snapshot()
    }

    /// The index and the timestamp of a read of a snapshot.
    #[must_use]
    pub fn reads_at(&self) -> Option<(IndexId, Ts)> {
        Some((self.index()?, self.snapshot()?.at))
    }

    /// As [`Op::snapshot`], mutable.
    pub fn snapshot_mut(&mut self) -> Option<&mut Snapshot> {
        let read = match self {
            Op::Get { read, .. } => read,
            Op::Scan(scan) => &mut scan.read,
            Op::Clock(snapshot) => return Some(snapshot),
            Op::Modify { .. }
            | Op::Insert { .. }
            | Op::InsertMany(_)
            | Op::Formula { .. }
            | Op::Write { .. }
            | Op::Savepoint(_) => return None,
        };
        match read {
            Read::Snapshot(snapshot) | Read::LockRows { snapshot, .. } => Some(snapshot),
            Read::Lock(_) | Read::TryLock { .. } => None,
        }
    }
}

impl TxnOptions {
    /// Priority of `txn`, which has these options.
    #[inline]
    #[must_use]
    pub fn priority(&self, txn: TxnId) -> Priority {
        Priority {
            urgent: self.urgent,
            ts: self.priority_ts,
            txn,
        }
    }
}

impl OpError {
    /// Why a transaction was rolled back, for a caller that runs no statement.
    #[must_use]
    pub fn into_reason(self) -> AbortReason {
        match self {
            OpError::Aborted(reason) => reason,
            OpError::Sql(_) | OpError::Raise(_) => unreachable!("nothing is evaluated: {self:?}"),
        }
    }
}

impl ScanOp {
    /// The one slot that the scan visits; `None`: all slots of the shard.
    #[must_use]
    pub fn slot(&self) -> Option<Slot> {
        match self.slots {
            Slots::All => None,
            Slots::One(slot) => Some(slot),
        }
    }

    /// Whether the scan covers the key, wherever it begins.
    #[must_use]
    pub fn has(&self, key: &Key) -> bool {
        key.index == self.index
            && self.slot().is_none_or(|slot| slot == key.slot)
            && self.range.contains(&key.bytes)
    }

    /// Whether the key lies behind the one after which the scan begins.
    #[must_use]
    pub fn is_ahead(&self, key: &Key) -> bool {
        let Some((slot, after)) = &self.after else {
            return true;
        };
        let order = (key.slot, &key.bytes).cmp(&(*slot, after));
        if self.reverse {
            order.is_lt()
        } else {
            order.is_gt()
        }
    }
}

impl Read {
    /// Timestamp of the versions that are read or found first: the newest ones up to it.
    #[inline]
    #[must_use]
    pub fn at(&self) -> Ts {
        match self {
            Read::Snapshot(snapshot) | Read::LockRows { snapshot, .. } => snapshot.at,
            Read::Lock(_) | Read::TryLock { .. } => Ts::MAX,
        }
    }

    /// The snapshot in which rows are read or found.
    pub fn snapshot(&self) -> Option<Snapshot> {
        match self {
            Read::Snapshot(snapshot) | Read::LockRows { snapshot, .. } => Some(*snapshot),
            Read::Lock(_) | Read::TryLock { .. } => None,
        }
    }
}

impl OpResult {
    /// Whether the commit may follow an operation with this result without another question.
    #[inline]
    #[must_use]
    pub fn allows_finish(&self) -> bool {
        let is_open = matches!(
            self,
            OpResult::Exists
                | OpResult::SomeExist(_)
                | OpResult::Rows {
                    resume: Some(_),
                    ..
                }
        );
        !is_open || is_planted(Planted::FinishRidesAnyway)
    }
}

impl Outcome {
    /// Why another operation of the transaction is refused.
    #[must_use]
    pub fn refusal(&self) -> AbortReason {
        match self {
            Outcome::Aborted(reason) => reason.clone(),
            Outcome::Committed { .. } | Outcome::Unknown => AbortReason::Requested,
        }
    }
}

impl OpReply {
    /// Answer to an operation whose transaction goes on.
    #[must_use]
    pub fn open(result: Result<OpResult, OpError>, wait: Position) -> OpReply {
        OpReply {
            result,
            outcome: None,
            wait,
        }
    }

    /// Answer to an operation whose transaction the protocol has rolled back.
    #[must_use]
    pub fn failed(reason: AbortReason) -> OpReply {
        OpReply {
            result: Err(OpError::Aborted(reason.clone())),
            outcome: Some(Outcome::Aborted(reason)),
            wait: Position(0),
        }
    }

    /// The answer to a rollback; `outcome`: of the transaction, if it is known any more.
    #[must_use]
    pub fn rolled_back(outcome: Option<Outcome>, wait: Position) -> OpReply {
        let outcome = outcome.unwrap_or(Outcome::Aborted(AbortReason::Requested));
        OpReply::ended(outcome, wait)
    }

    /// The answer to a commit.
    #[must_use]
    pub fn ended(outcome: Outcome, wait: Position) -> OpReply {
        OpReply {
            result: Ok(OpResult::Done),
            outcome: Some(outcome),
            wait,
        }
    }
}
