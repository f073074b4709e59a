//! The contract of `txn::Protocol`, as this protocol keeps it.

use crate::control::Kind;
use crate::coord::Member;
use crate::message::{Body, Finish};
use crate::{Control, Cx, Machine, Message};
use alloc::vec::Vec;
use base::{IndexId, Key, NodeId, Position, ShardId, Time, Ts, TxnId};
use journal::CheckpointTables;
use store::Store;
use txn::LockTable;
use txn::{
    AbortReason, Doubt, Life, Op, OpId, OpReply, PendingRow, Protocol, ProtocolMessage, Submission,
    Submitted, TxnCost, TxnOptions,
};

impl<C: Control> Protocol for Machine<C> {
    type Message = Message;
    /// Promises in slices are in the tables; there is nothing to walk.
    type Cursor = ();

    /// An outcome may be awaited above the clock of the shard that has the row.
    const CLOCKS_SUFFICE: bool = false;

    fn kind(message: &Message) -> &'static str {
        C::name(match &message.body {
            Body::Read(_) => Kind::Read,
            Body::Request(request) => match request.finish {
                Finish::No => Kind::Request,
                Finish::Prepare(_) => Kind::Prepare,
                Finish::Commit(_) => Kind::Commit,
            },
            Body::Reply(_) => Kind::Reply,
            Body::Decide(_) => Kind::Decide,
            Body::Ack => Kind::Ack,
            Body::Gather(_) | Body::Gathered(_) => Kind::Gather,
            Body::Poll | Body::Polled(_) => Kind::Poll,
            Body::Working(_) | Body::Expose | Body::CallOff | Body::Inquire | Body::Running => {
                Kind::Other
            }
        })
    }

    fn recover(
        &mut self,
        cx: &mut Cx<'_>,
        tables: &mut CheckpointTables,
        _: &dyn Fn(IndexId) -> bool,
    ) {
        self.recover_promises(cx, core::mem::take(&mut tables.prepared));
        self.recover_unfolded(cx, core::mem::take(&mut tables.unfolded));
        self.recover_decisions(cx, core::mem::take(&mut tables.owed));
    }

    fn begin(&mut self, cx: &mut Cx<'_>, txn: TxnId, options: TxnOptions) {
        assert_eq!(
            txn.shard, self.shard,
            "a transaction begins at its coordinator"
        );
        self.coords.begin(txn, options);
        cx.note_begin(txn);
    }

    fn submit(&mut self, cx: &mut Cx<'_>, submission: Submission) -> Submitted {
        let submitted = self.submit_op(cx, submission);
        self.pump(cx);
        submitted
    }

    fn commit(&mut self, cx: &mut Cx<'_>, txn: TxnId, id: OpId) -> Submitted {
        let submitted = self.commit_txn(cx, txn, id);
        self.pump(cx);
        submitted
    }

    fn abort(&mut self, cx: &mut Cx<'_>, txn: TxnId) -> OpReply {
        self.abort_txn(cx, txn, AbortReason::Requested);
        self.pump(cx);
        let outcome = self
            .coords
            .get(&txn)
            .and_then(|coord| coord.outcome.clone());
        OpReply::rolled_back(outcome, self.refusal_wait(txn))
    }

    fn call_off(&mut self, cx: &mut Cx<'_>, txn: TxnId) -> bool {
        let called = self.call_off_ride(cx, txn);
        self.pump(cx);
        called
    }

    fn each_written(&self, txn: TxnId, f: &mut dyn FnMut(ShardId)) {
        let Some(coord) = self.coords.get(&txn) else {
            return;
        };
        let wrote = |member: &&Member| member.stateful || !member.queue.is_empty();
        coord
            .members
            .iter()
            .filter(wrote)
            .for_each(|it| f(it.shard));
    }

    fn cost(&self, txn: TxnId) -> Option<TxnCost> {
        self.coords.get(&txn).map(|coord| coord.cost_so_far())
    }

    fn forget(&mut self, txn: TxnId) -> Option<TxnCost> {
        let coord = self.coords.remove(&txn)?;
        assert!(coord.outcome.is_some(), "{txn} is forgotten after its end");
        let cost = coord.cost;
        self.coords.spare(coord);
        Some(cost)
    }

    fn on_message(&mut self, cx: &mut Cx<'_>, from: ShardId, message: Message) {
        self.receive(cx, from, message);
        self.pump(cx);
    }

    fn on_durable(&mut self, cx: &mut Cx<'_>, durable: Position) {
        self.installed.forget(durable);
        self.jobs.on_durable();
        if self.forced > Position(0) {
            self.end_forced(cx, durable);
            self.pump(cx);
        }
    }

    fn awaits_durable(&self) -> bool {
        self.jobs.awaits_journal() || self.forced > Position(0)
    }

    fn on_tick(&mut self, cx: &mut Cx<'_>) {
        self.run_timers(cx);
        self.locks.expire(cx.now);
        self.end_long_waits(cx);
        self.do_slice(cx);
        self.jobs.on_tick();
        self.pump(cx);
    }

    fn on_peer(&mut self, cx: &mut Cx<'_>, node: NodeId, incarnation: u32) {
        let was_down = self.peers.regain(node);
        let known = self.peers.judge(node, incarnation) == Life::Present;
        self.peer_restarted(cx, node, incarnation);
        if was_down && known {
            self.regain_node(cx, node);
        }
        self.pump(cx);
    }

    fn on_peer_down(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        self.lose_node(cx, node);
        self.pump(cx);
    }

    fn deadline(&self) -> Option<Time> {
        if self.jobs.has_parked() || self.bulks.has_turns() || self.locks.is_leaving() {
            return Some(Time(0));
        }
        let timer = self.timers.first().map(|(at, _)| at);
        let all = [timer, self.locks.deadline(), self.wait_look];
        all.into_iter().flatten().min()
    }

    fn checkpoint_may_begin(&mut self) -> bool {
        self.bulks.make_way()
    }

    fn checkpoint_begin(&mut self, tables: &mut CheckpointTables) -> Option<()> {
        self.checkpoint_tables(tables);
        None
    }

    /// As the contract says. True when all that was promised in memory at the checkpoint's start
    /// has been journaled again or rolled back.
    fn checkpoint_may_end(&self) -> bool {
        let again = self.promises.values().any(|promise| promise.journal_again);
        !again && self.bulks.checkpoint_may_end()
    }

    fn is_quiet(&self, indexes: &[IndexId]) -> bool {
        !self.is_writing(indexes)
    }

    fn doubts(&self, now: Time) -> Vec<Doubt> {
        self.doubts_at(now)
    }

    fn pending_rows(&self, wants: &dyn Fn(&Key) -> bool, count: usize) -> Vec<PendingRow> {
        self.highest_piles(wants, count)
    }

    #[inline]
    fn waiting_count(&self) -> usize {
        self.jobs.len()
    }

    fn may_be_awaited(&self, txn: TxnId) -> bool {
        self.is_in_the_way(txn)
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

    fn each_snapshot(&self, f: &mut dyn FnMut(IndexId, Ts)) {
        let ops = self.jobs.values().filter_map(|job| job.op.as_ref());
        ops.filter_map(Op::reads_at)
            .for_each(|(index, at)| f(index, at));
        if C::JUDGES {
            for (_, coord) in self.coords.iter() {
                if coord.outcome.is_none() && coord.stamp > Ts::ZERO {
                    f(coord.stamped, coord.stamp);
                }
            }
        }
    }

    fn validate(&self, _store: &Store) {
        self.check();
    }

    fn validate_open(&self, most: usize) -> bool {
        let writes: usize = self.parts.values().map(|part| part.written.len()).sum();
        let small = self.locks.len() + writes <= most;
        if small {
            self.check();
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
            Body::Request(request) => request.op.as_mut(),
            Body::Reply(_)
            | Body::Working(_)
            | Body::Expose
            | Body::CallOff
            | Body::Decide(_)
            | Body::Ack
            | Body::Inquire
            | Body::Running
            | Body::Poll
            | Body::Polled(_)
            | Body::Gather(_)
            | Body::Gathered(_) => None,
        }
    }
}
