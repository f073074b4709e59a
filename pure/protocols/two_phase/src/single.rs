//! Transactions of one operation on the coordinator's own shard that find everything free: they
//! begin and end in one step, so they enter no lock, and what they read is the newest state.

use crate::exec::Hands;
use crate::job::{Job, Stop};
use crate::outcome::Committed;
use crate::part::Part;
use crate::{Control, Cx, Machine};
use base::{Key, Position, Ts};
use txn::increment::{Folding, claim_to_modify, claim_to_read, columns_of};
use txn::lock::{Claim, Item};
use txn::{Columns, LockMode, Op, OpError, OpReply, OpResult, Outcome, Read, ScanOp, Snapshot};

impl<C: Control> Machine<C> {
    /// Runs and commits the job if everything that it needs is free. `None`: nothing has happened,
    /// and the job must go the ordinary way.
    pub(crate) fn run_direct(&mut self, cx: &mut Cx<'_>, job: &mut Job) -> Option<OpReply> {
        let txn = job.txn;
        let op = job.op.as_mut().expect("a new job has its operation");
        let serial = job.options.serial;
        if serial && !self.locks.is_free(txn, &Item::Shard, LockMode::Exclusive) {
            return None;
        }
        if let Op::Scan(scan) = op {
            let program = scan.program.live(cx.decode).ok()?;
            let claim = Claim::reads(program.reads());
            if !serial && !scan_is_free(self, txn, scan, claim) {
                return None;
            }
            if scan.read != Read::Lock(LockMode::Shared) || !ends_at_once(scan) {
                return None;
            }
            if C::JUDGES {
                // It reads as of its stamp, and commits there.
                return None;
            }
            // No lock conflicts, so no promise can be in the range, and a snapshot drawn now is
            // the newest state, however long the scan goes on.
            scan.read = Read::Snapshot(Snapshot::exactly(cx.clock.tick(cx.now)));
            job.stateless = true;
            return None;
        }
        let op = &*op;
        match op {
            Op::Scan(_) | Op::InsertMany(_) | Op::Clock(_) | Op::Savepoint(_) => return None,
            Op::Get { key, .. }
            | Op::Modify { key, .. }
            | Op::Insert { key, .. }
            | Op::Formula { key, .. }
            | Op::Write { key, .. } => {
                let read = op.read();
                if matches!(
                    read,
                    Some(Read::Snapshot(_) | Read::LockRows { .. } | Read::TryLock { .. })
                ) {
                    return None;
                }
                let claim = claim_of_op(cx, op, C::FOLDING)?;
                if C::JUDGES && !self.is_free_of_others(txn, key, op.is_write()) {
                    return None;
                }
                // A reader that ends in this step meets no promise, and need not wait for others.
                let reads = C::JUDGES && read == Some(Read::Lock(LockMode::Shared));
                if !serial && !reads && !self.locks.is_free(txn, &Item::of(key), claim) {
                    return None;
                }
                if let Op::Formula { key, formula } = op
                    && let Some(escrow) = self.escrow(txn, key, Some(formula))
                {
                    let row = cx.store.get(key, Ts::MAX);
                    if row.is_some_and(|row| !escrow.has_room(row.value, None, formula)) {
                        return None;
                    }
                }
            }
        }
        // An insert that finds its row is run again with a lock, so that the row stays.
        if let Op::Insert { key, .. } = op
            && cx.store.get(key, Ts::MAX).is_some()
        {
            return None;
        }
        Some(self.run_free(cx, job))
    }

    /// Whether no promise is on the row, and if it is to be written, nobody guards it.
    fn is_free_of_others(&self, txn: base::TxnId, key: &Key, writes: bool) -> bool {
        let mut guarded = false;
        if writes && self.control.has_guards() {
            let all = Columns::ALL;
            self.control
                .each_guard(txn, key, all, &mut |_| guarded = true);
        }
        !guarded && self.order.is_free(key) && self.bulks.is_idle()
    }

    fn run_free(&mut self, cx: &mut Cx<'_>, job: &mut Job) -> OpReply {
        let txn = job.txn;
        job.direct = true;
        let reads = job.op.as_ref().is_some_and(|op| op.read().is_some());
        let mut part = match reads {
            true => None,
            false => Some(self.parts.fresh(job.options)),
        };
        let mut hands = Hands {
            control: &mut self.control,
            locks: &mut self.locks,
            part: part.as_deref_mut(),
            // The caller has checked.
            escrow: None,
            seals: true,
            promises: &self.promises,
            order: &self.order,
            kept: &self.kept,
            bulks: &self.bulks,
            installed: &self.installed,
            settings: self.settings,
        };
        let result = match hands.run(cx, job) {
            Ok(result) => Ok(result),
            Err(Stop::Fail(error)) => Err(error),
            Err(Stop::Lock | Stop::Wait(_) | Stop::Budget | Stop::Journal) => {
                unreachable!("a free operation on one row never waits")
            }
        };
        let reply = self.end_direct(cx, txn, job.wait, result, part.as_deref_mut());
        if let Some(part) = part {
            self.parts.spare(part);
        }
        reply
    }

    fn end_direct(
        &mut self,
        cx: &mut Cx<'_>,
        txn: base::TxnId,
        read: Position,
        result: Result<OpResult, OpError>,
        part: Option<&mut Part>,
    ) -> OpReply {
        let coord = self.coords.of(txn);
        coord.wait = coord.wait.max(read);
        match result {
            Ok(found) => {
                let wait = coord.wait;
                let committed = match part {
                    Some(Part { written, .. }) => self.commit_written(cx, txn, written, wait),
                    None => Committed::nothing(cx, wait),
                };
                let coord = self.coords.of(txn);
                coord.cost.forced_writes += u32::from(committed.forced);
                let outcome = Outcome::Committed {
                    commit_ts: committed.commit_ts,
                };
                self.end_txn(cx, txn, outcome.clone());
                OpReply {
                    result: Ok(found),
                    outcome: Some(outcome),
                    wait: committed.position,
                }
            }
            Err(OpError::Aborted(reason)) => {
                self.abort_txn(cx, txn, reason.clone());
                OpReply::failed(reason)
            }
            Err(error) => OpReply::open(Err(error), read),
        }
    }
}

/// The claim under which the operation commits at once: no other transaction may have promised to
/// add to the row. `None`: its program does not decode, which the ordinary way reports.
fn claim_of_op(cx: &Cx<'_>, op: &Op, folding: Folding) -> Option<Claim> {
    Some(match op {
        Op::Get { read, program, .. } => match read {
            Read::Lock(mode) => claim_to_read(*mode, &*program.live(cx.decode).ok()?),
            Read::Snapshot(_) | Read::LockRows { .. } | Read::TryLock { .. } => return None,
        },
        Op::Modify { program, .. } => {
            let claim = claim_to_modify(&*program.live(cx.decode).ok()?);
            claim.join(Claim::folds(Columns::NONE))
        }
        Op::Formula { formula, .. } if folding.shares(formula) => Claim::folds(columns_of(formula)),
        Op::Formula { .. } | Op::Insert { .. } | Op::Write { .. } => LockMode::Exclusive.into(),
        Op::InsertMany(_) | Op::Scan(_) | Op::Clock(_) | Op::Savepoint(_) => return None,
    })
}

fn scan_is_free<C: Control>(
    protocol: &Machine<C>,
    txn: base::TxnId,
    scan: &ScanOp,
    claim: Claim,
) -> bool {
    let item = Item::Range {
        index: scan.index,
        slot: scan.slot(),
        range: &scan.range,
    };
    protocol.locks.is_free(txn, &item, claim)
}

/// Whether the scan ends with this batch. For a second one it would need locks.
fn ends_at_once(scan: &ScanOp) -> bool {
    scan.after.is_none() && scan.row_limit <= u64::from(scan.batch_rows)
}
