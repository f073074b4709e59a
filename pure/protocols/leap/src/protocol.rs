//! The contract of `txn`, as this protocol meets it.

use crate::txns::Submission;
use crate::{Context, Leap, Message};
use base::{NodeId, Position, ShardId, Time, Ts, TxnId};
use store::Store;
use txn::{AbortReason, Op, OpId, OpReply, Protocol, Submitted, TxnCost, TxnOptions};

impl Protocol for Leap {
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
        let submission = Submission {
            id,
            to,
            planned,
            op,
            last,
        };
        let submitted = self.submit_op(cx, txn, submission);
        self.end_step(cx);
        submitted
    }

    fn commit(&mut self, cx: &mut Context<'_>, txn: TxnId, id: OpId) -> Submitted<OpReply> {
        let submitted = self.commit_txn(cx, txn, id);
        self.end_step(cx);
        submitted
    }

    fn abort(&mut self, cx: &mut Context<'_>, txn: TxnId) {
        self.abort_txn(cx, txn, AbortReason::Requested);
        self.end_step(cx);
    }

    fn cost(&self, txn: TxnId) -> Option<TxnCost> {
        self.cost_so_far(txn)
    }

    fn forget(&mut self, txn: TxnId) {
        self.forget_txn(txn);
    }

    fn on_message(&mut self, cx: &mut Context<'_>, from: ShardId, message: Message) {
        self.receive(cx, from, message);
        self.end_step(cx);
    }

    fn on_durable(&mut self, cx: &mut Context<'_>, durable: Position) {
        self.installed.forget(durable);
        self.jobs.on_durable();
        self.arrivals_durable(cx, durable);
        self.end_step(cx);
    }

    fn awaits_durable(&self) -> bool {
        self.jobs.awaits_journal()
    }

    fn on_tick(&mut self, cx: &mut Context<'_>) {
        self.run_timers(cx);
        self.locks.expire(cx.now);
        // Idle readers give way under this protocol as under any other that shares the table.
        cx.out.in_the_way.append(&mut self.locks.take_in_the_way());
        self.do_slice(cx);
        self.jobs.on_tick();
        self.claim(cx);
        self.resolve_slice(cx);
        let most = self.settings.slice_units as usize;
        cx.counters.units += self.since.sweep(cx.horizon, most) as u64;
        self.end_step(cx);
    }

    fn on_peer(&mut self, cx: &mut Context<'_>, node: NodeId, incarnation: u32) {
        self.peer_restarted(cx, node, incarnation);
        self.peer_up(cx, node);
        self.end_step(cx);
    }

    fn on_peer_down(&mut self, cx: &mut Context<'_>, node: NodeId) {
        self.peer_down(cx, node);
        self.end_step(cx);
    }

    fn deadline(&self) -> Option<Time> {
        let has_slices = self.bulks.has_turns() || self.locks.is_leaving();
        if self.jobs.has_parked() || has_slices || self.rejoin.has_turns() {
            return Some(Time(0));
        }
        let timer = self.timers.first().map(|(at, _)| *at);
        match (timer, self.locks.deadline()) {
            (Some(timer), Some(lock)) => Some(timer.min(lock)),
            (timer, lock) => timer.or(lock),
        }
    }

    fn oldest_read(&self, now_ts: Ts) -> Ts {
        let here = self.jobs.values().filter_map(|job| job.snapshot());
        let elsewhere = self.readings.values().filter_map(|reading| {
            let snapshot = reading.request.op.snapshot();
            snapshot.map(|snapshot| snapshot.at)
        });
        here.chain(elsewhere).min().unwrap_or(now_ts).min(now_ts)
    }

    fn validate(&self, store: &Store) {
        self.check(store);
    }
}

impl Leap {
    fn end_step(&mut self, cx: &mut Context<'_>) {
        self.pump(cx);
        self.evict_left_over(cx);
    }
}
