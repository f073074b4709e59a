//! The contract of `txn`, as this protocol meets it.

use crate::coordinator::Submission;
use crate::{Context, Message, TwoPhase};
use base::{NodeId, Position, ShardId, Time, Ts, TxnId};
use store::Store;
use txn::{AbortReason, Op, OpId, OpReply, Protocol, Submitted, TxnCost, TxnOptions};

impl Protocol for TwoPhase {
    type Message = Message;

    fn begin(&mut self, cx: &mut Context<'_>, txn: TxnId, options: TxnOptions) {
        self.begin_txn(cx, txn, options);
    }

    fn submit(
        &mut self,
        cx: &mut Context<'_>,
        txn: TxnId,
        id: OpId,
        to: ShardId,
        planned: u64,
        op: Op,
        last: bool,
    ) -> Submitted<OpReply> {
        let submitted = self.submit_op(
            cx,
            txn,
            Submission {
                id,
                to,
                planned,
                op,
                last,
            },
        );
        self.pump(cx);
        submitted
    }

    fn commit(&mut self, cx: &mut Context<'_>, txn: TxnId, id: OpId) -> Submitted<OpReply> {
        let submitted = self.commit_txn(cx, txn, id);
        self.pump(cx);
        submitted
    }

    fn abort(&mut self, cx: &mut Context<'_>, txn: TxnId) {
        self.abort_txn(cx, txn, AbortReason::Requested);
        self.pump(cx);
    }

    fn cost(&self, txn: TxnId) -> Option<TxnCost> {
        self.coords.get(&txn).map(|coord| coord.cost_so_far())
    }

    fn forget(&mut self, txn: TxnId) {
        self.forget_txn(txn);
    }

    fn on_message(&mut self, cx: &mut Context<'_>, from: ShardId, message: Message) {
        self.receive(cx, from, message);
        self.pump(cx);
    }

    fn on_durable(&mut self, _cx: &mut Context<'_>, durable: Position) {
        self.installed.forget(durable);
        self.jobs.on_durable();
    }

    fn awaits_durable(&self) -> bool {
        self.jobs.awaits_journal()
    }

    fn on_tick(&mut self, cx: &mut Context<'_>) {
        self.run_timers(cx);
        self.locks.expire(cx.now);
        self.end_doubtful_waits(cx);
        self.do_slice(cx);
        self.jobs.on_tick();
        self.pump(cx);
    }

    fn on_peer(&mut self, cx: &mut Context<'_>, node: NodeId, incarnation: u32) {
        let was_down = self.down.remove(&node).is_some();
        let known = self.peers.get(&node) == Some(&incarnation);
        self.peer_restarted(cx, node, incarnation);
        if was_down && known {
            self.regain_node(cx, node);
        }
        self.pump(cx);
    }

    fn on_peer_down(&mut self, cx: &mut Context<'_>, node: NodeId) {
        self.lose_node(cx, node);
        self.pump(cx);
    }

    fn deadline(&self) -> Option<Time> {
        if self.jobs.has_parked() || self.bulks.has_turns() || self.locks.is_leaving() {
            return Some(Time(0));
        }
        let timer = self.timers.first().map(|(at, _)| *at);
        let all = [timer, self.locks.deadline(), self.doubt_look];
        all.into_iter().flatten().min()
    }

    fn oldest_read(&self, now_ts: Ts) -> Ts {
        let snapshots = self.jobs.values().filter_map(|job| job.snapshot());
        snapshots.min().unwrap_or(now_ts).min(now_ts)
    }

    fn validate(&self, _store: &Store) {
        self.check();
    }
}
