//! The contract of `txn`, as this protocol meets it.

use crate::job::Job;
use crate::message::Body;
use crate::pending::Lodger;
use crate::{AwayCursor, Cx, Leap, Message};
use alloc::vec::Vec;
use base::{IndexId, Key, NodeId, Position, ShardId, Time, Ts, TxnId};
use journal::{CheckpointTables, Ownership};
use store::Store;
use txn::lock::AwaitedRow;
use txn::{
    AbortReason, Doubt, LockTable, MovingRows, Op, OpId, OpReply, PendingRow, Piles, Protocol,
    ProtocolMessage, Submission, Submitted, TxnCost, TxnOptions,
};

impl Protocol for Leap {
    type Message = Message;
    type Cursor = AwayCursor;

    /// A transaction commits where it runs, at or below the clock of the shard that has the row.
    const CLOCKS_SUFFICE: bool = true;

    fn kind(message: &Message) -> &'static str {
        message.kind()
    }

    fn recover(
        &mut self,
        cx: &mut Cx<'_>,
        tables: &mut CheckpointTables,
        moving: &dyn Fn(IndexId) -> bool,
    ) {
        self.recover_rows(cx, core::mem::take(&mut tables.ownership), moving);
    }

    fn begin(&mut self, cx: &mut Cx<'_>, txn: TxnId, options: TxnOptions) {
        cx.clock.merge(options.priority_ts);
        self.coord.txns.begin(txn, options);
        cx.note_begin(txn);
    }

    fn submit(&mut self, cx: &mut Cx<'_>, submission: Submission) -> Submitted {
        let submitted = self.submit_op(cx, submission);
        self.end_step(cx);
        submitted
    }

    fn commit(&mut self, cx: &mut Cx<'_>, txn: TxnId, id: OpId) -> Submitted {
        let submitted = self.commit_txn(cx, txn, id);
        self.end_step(cx);
        submitted
    }

    fn abort(&mut self, cx: &mut Cx<'_>, txn: TxnId) -> OpReply {
        self.abort_txn(cx, txn, AbortReason::Requested);
        self.end_step(cx);
        let state = self.coord.txns.get(&txn);
        OpReply::rolled_back(state.and_then(|state| state.outcome.clone()), Position(0))
    }

    /// Rows are written where the transaction runs.
    fn each_written(&self, _: TxnId, f: &mut dyn FnMut(ShardId)) {
        f(self.shard);
    }

    fn cost(&self, txn: TxnId) -> Option<TxnCost> {
        self.coord.cost_so_far(self.shard.node(), txn)
    }

    fn call_off(&mut self, cx: &mut Cx<'_>, txn: TxnId) -> bool {
        let called = self.call_off_errand(cx, txn);
        self.end_step(cx);
        called
    }

    fn forget(&mut self, txn: TxnId) -> Option<TxnCost> {
        self.coord.forget(txn)
    }

    fn on_message(&mut self, cx: &mut Cx<'_>, from: ShardId, message: Message) {
        self.receive(cx, from, message);
        self.end_step(cx);
    }

    fn on_durable(&mut self, cx: &mut Cx<'_>, durable: Position) {
        self.installed.forget(durable);
        self.jobs.on_durable();
        self.arrivals_durable(cx, durable);
        self.end_step(cx);
    }

    fn awaits_durable(&self) -> bool {
        self.jobs.awaits_journal()
    }

    fn on_tick(&mut self, cx: &mut Cx<'_>) {
        self.run_timers(cx);
        self.locks.expire(cx.now);
        // Idle readers give way under this protocol as under any other that shares the table.
        cx.out.in_the_way.append(&mut self.locks.take_in_the_way());
        self.do_slice(cx);
        self.jobs.on_tick();
        self.claim(cx);
        self.resolve_slice(cx);
        let most = self.settings.slice_units as usize;
        cx.counters.units += self.home.since.sweep(cx.horizons, most) as u64;
        self.end_step(cx);
    }

    fn on_peer(&mut self, cx: &mut Cx<'_>, node: NodeId, incarnation: u32) {
        self.peer_restarted(cx, node, incarnation);
        self.peer_up(cx, node);
        self.end_step(cx);
    }

    fn on_peer_down(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        self.peer_down(cx, node);
        self.end_step(cx);
    }

    fn deadline(&self) -> Option<Time> {
        let has_slices = self.bulks.has_turns() || self.locks.is_leaving();
        if self.jobs.has_parked() || has_slices || self.rejoin.has_turns() {
            return Some(Time(0));
        }
        let all = [self.timer_at(), self.locks.deadline()];
        all.into_iter().flatten().min()
    }

    fn checkpoint_may_begin(&mut self) -> bool {
        self.bulks.make_way()
    }

    fn checkpoint_begin(&mut self, tables: &mut CheckpointTables) -> Option<AwayCursor> {
        let (ownership, cursor) = self.checkpoint_begins();
        tables.ownership = ownership;
        Some(cursor)
    }

    fn checkpoint_next(&self, cursor: &mut AwayCursor, max: usize) -> Option<Ownership> {
        self.next_away(cursor, max)
    }

    fn checkpoint_may_end(&self) -> bool {
        self.bulks.checkpoint_may_end()
    }

    fn is_quiet(&self, indexes: &[IndexId]) -> bool {
        indexes.iter().all(|index| self.is_gathered(*index))
    }

    fn leave(&mut self, cx: &mut Cx<'_>, index: IndexId) {
        self.leave_rows(cx, index);
    }

    fn forget_index(&mut self, cx: &mut Cx<'_>, index: IndexId) {
        self.forget_rows(cx, index);
    }

    fn doubts(&self, now: Time) -> Vec<Doubt> {
        self.pending_doubts(now)
    }

    fn pending_rows(&self, wants: &dyn Fn(&Key) -> bool, count: usize) -> Vec<PendingRow> {
        let mut piles = Piles::new(wants);
        for (txn, state) in self.coord.txns.iter() {
            let written = state.written.writes().formulas();
            piles.add_all_open(written.map(|(key, _)| key), *txn, self.shard.node());
        }
        piles.add_pending(&self.pendings.formulas, Lodger::node);
        let waits = self.coord.commit_waits.iter();
        let ops = waits.filter_map(|job| self.jobs.get(*job)?.op.as_ref());
        piles.highest(count, &self.locks, &ops.collect::<Vec<_>>())
    }

    #[inline]
    fn waiting_count(&self) -> usize {
        self.jobs.len()
    }

    fn may_be_awaited(&self, txn: TxnId) -> bool {
        let elsewhere = self.coord.txns.get(&txn).is_none_or(|state| {
            !state.asked.is_empty() || !state.visited.is_empty() || !state.shipped.is_empty()
        });
        elsewhere || self.locks.is_awaited(txn)
    }

    fn moving(&self) -> Option<&dyn MovingRows> {
        Some(self)
    }

    fn set_slice(&mut self, slice_units: u64) {
        let mut settings = self.settings;
        settings.limits.slice_units = slice_units;
        self.set_settings(settings);
    }

    fn is_idle(&self) -> bool {
        self.owes_nothing()
    }

    fn locks(&self) -> Option<&LockTable> {
        Some(&self.locks)
    }

    fn awaited_rows(&self, wants: &dyn Fn(&Key) -> bool, count: usize) -> Vec<AwaitedRow> {
        self.rows_awaited_here(wants, count)
    }

    fn each_snapshot(&self, f: &mut dyn FnMut(IndexId, Ts)) {
        let reads = self.jobs.values().filter_map(Job::reads_at);
        reads.for_each(|(index, at)| f(index, at));
    }

    fn validate(&self, store: &Store) {
        self.check(store);
    }

    fn validate_open(&self, most: usize) -> bool {
        let writes: usize = self
            .coord
            .txns
            .values()
            .map(|state| state.written.len())
            .sum();
        let small = self.locks.len() + writes <= most;
        if small {
            self.check_open();
        }
        small
    }
}

impl ProtocolMessage for Message {
    fn catalog(&self) -> u64 {
        self.head.catalog
    }

    fn op_mut(&mut self) -> Option<&mut Op> {
        match &mut self.body {
            Body::Read(request) => Some(&mut request.op),
            Body::Entrust(errand) => Some(&mut errand.op),
            Body::OwnerRequest(..)
            | Body::TransferRequest(..)
            | Body::Response(..)
            | Body::Refused(..)
            | Body::Working(..)
            | Body::Waiting(..)
            | Body::Stranded(..)
            | Body::Inform(..)
            | Body::Settled(..)
            | Body::ReleaseAck(..)
            | Body::Unacked(..)
            | Body::Forget(..)
            | Body::Share(..)
            | Body::Recall(..)
            | Body::Recalled(..)
            | Body::Cancel(..)
            | Body::Reply(..)
            | Body::Reading(..)
            | Body::Fetch(..)
            | Body::Fetched(..)
            | Body::Performed(..)
            | Body::Resolve(..)
            | Body::Applied(..)
            | Body::Undecided(..)
            | Body::StillOpen(..)
            | Body::Confirm(..)
            | Body::Confirmed { .. }
            | Body::Release(..)
            | Body::Inquire(..)
            | Body::Running(..)
            | Body::Ask
            | Body::Claims(..)
            | Body::Verdicts(..) => None,
        }
    }
}

impl Message {
    fn kind(&self) -> &'static str {
        match &self.body {
            Body::OwnerRequest(_) => "leap.owner_request",
            Body::TransferRequest(_) => "leap.transfer_request",
            Body::Response(_) => "leap.response",
            Body::Inform(_) | Body::Settled(_) => "leap.inform",
            Body::ReleaseAck(_) | Body::Unacked(_) => "leap.release_ack",
            Body::Read(_) | Body::Reply(_) => "leap.read",
            Body::Fetch(_) | Body::Fetched(_) => "leap.fetch",
            Body::Resolve(_) | Body::Applied(_) | Body::Undecided(_) | Body::StillOpen(..) => {
                "leap.resolve"
            }
            Body::Confirm(_) | Body::Confirmed { .. } => "leap.confirm",
            Body::Share(_) | Body::Recall(_) | Body::Recalled(_) | Body::Forget(_) => "leap.share",
            Body::Entrust(_) | Body::Performed(_) => "leap.entrust",
            Body::Refused(_)
            | Body::Working(..)
            | Body::Waiting(_)
            | Body::Cancel(..)
            | Body::Stranded(_)
            | Body::Reading(_)
            | Body::Release(_)
            | Body::Inquire(_)
            | Body::Running(_)
            | Body::Ask
            | Body::Claims(_)
            | Body::Verdicts(_) => "leap.other",
        }
    }
}

impl Leap {
    fn end_step(&mut self, cx: &mut Cx<'_>) {
        self.pump(cx);
        self.evict_left_over(cx);
    }
}
