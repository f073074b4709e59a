//! The contract of `txn`, as this protocol meets it.

use crate::coordinator::Asking;
use crate::{Body, Context, GlobalLock, INQUIRE_US, Message, RESEND_US, Work};
use base::{IndexId, NodeId, Position, ShardId, Time, Ts, TxnId};
use journal::{CheckpointTables, Ownership};
use std::fmt;
use store::Store;
use txn::contract::ProtocolMessage;
use txn::{Doubt, Op, OpId, OpReply, Protocol, Submission, Submitted, TxnCost, TxnOptions};

impl Protocol for GlobalLock {
    type Message = Message;
    type Cursor = ();

    /// There is one clock that counts.
    const CLOCKS_SUFFICE: bool = true;

    /// What was not committed is gone.
    fn kind(message: &Message) -> &'static str {
        message.kind()
    }

    fn recover(
        &mut self,
        cx: &mut Context<'_>,
        _: &mut CheckpointTables,
        _: &dyn Fn(IndexId) -> bool,
    ) {
        self.guard = cx.placement.shards()[0];
        if self.guard.node() == self.shard.node() {
            self.life = cx.incarnation;
        }
    }

    fn begin(&mut self, _: &mut Context<'_>, txn: TxnId, _: TxnOptions) {
        self.asking.insert(txn, Asking::default());
    }

    fn submit(&mut self, cx: &mut Context<'_>, submission: Submission) -> Submitted {
        assert_eq!(submission.to, self.guard, "all rows are there");
        let work = Work {
            op: Some(submission.op),
            commits: submission.last,
        };
        self.ask(cx, submission.txn, submission.id, work)
    }

    fn commit(&mut self, cx: &mut Context<'_>, txn: TxnId, id: OpId) -> Submitted {
        let work = Work {
            op: None,
            commits: true,
        };
        self.ask(cx, txn, id, work)
    }

    fn abort(&mut self, cx: &mut Context<'_>, txn: TxnId) -> OpReply {
        self.roll_back(cx, txn);
        let ended = self
            .asking
            .get(&txn)
            .and_then(|asking| asking.ended.clone());
        OpReply::rolled_back(ended, Position(0))
    }

    fn each_written(&self, _: TxnId, f: &mut dyn FnMut(ShardId)) {
        f(self.guard);
    }

    fn cost(&self, txn: TxnId) -> Option<TxnCost> {
        self.asking.get(&txn).map(|asking| asking.cost)
    }

    fn forget(&mut self, txn: TxnId) -> Option<TxnCost> {
        self.asking.remove(&txn).map(|asking| asking.cost)
    }

    fn on_message(&mut self, cx: &mut Context<'_>, from: ShardId, message: Message) {
        let Message {
            txn, life, body, ..
        } = message;
        if self.is_guard() {
            self.learn(cx, from.node(), txn.incarnation);
            if life < self.life {
                // It was meant for a former life, and its sender does not know that yet.
                self.send(cx, from, txn, Body::Dropped);
                return;
            }
        } else {
            self.meet_guard(cx, life);
            if life < self.life {
                return;
            }
        }
        match body {
            Body::Ask(id, work) => self.on_ask(cx, txn, id, work),
            Body::Answer(id, result, outcome) => self.on_answer(cx, txn, id, (result, outcome)),
            Body::Drop => self.on_drop(cx, txn),
            Body::Dropped => {
                self.dropping.remove(&txn);
            }
            Body::Inquire => self.on_inquire(cx, txn),
        }
        self.set_timer(cx);
    }

    fn on_durable(&mut self, _: &mut Context<'_>, _: Position) {}

    fn awaits_durable(&self) -> bool {
        false
    }

    fn on_tick(&mut self, cx: &mut Context<'_>) {
        if self.timer.is_some_and(|timer| timer <= cx.now) {
            self.timer = None;
            self.resend(cx);
            self.inquire(cx);
            if self.has_asks() || !self.queue.is_empty() {
                self.set_timer(cx);
            }
        }
    }

    fn on_peer(&mut self, cx: &mut Context<'_>, node: NodeId, incarnation: u32) {
        self.learn(cx, node, incarnation);
        if node == self.guard.node() {
            self.meet_guard(cx, incarnation);
        }
    }

    fn on_peer_down(&mut self, _: &mut Context<'_>, _: NodeId) {}

    fn deadline(&self) -> Option<Time> {
        self.timer
    }

    fn checkpoint_may_begin(&mut self) -> bool {
        true
    }

    fn checkpoint_begin(&mut self, _: &mut CheckpointTables) -> Option<()> {
        None
    }

    fn checkpoint_next(&self, (): &mut (), _: usize) -> Option<Ownership> {
        None
    }

    fn checkpoint_may_end(&self) -> bool {
        true
    }

    fn is_quiet(&self, _: &[IndexId]) -> bool {
        self.is_idle()
    }

    fn leave(&mut self, _: &mut Context<'_>, _: IndexId) {}

    fn forget_index(&mut self, _: &mut Context<'_>, _: IndexId) {}

    fn doubts(&self, _: Time) -> Vec<Doubt> {
        Vec::new()
    }

    fn set_slice(&mut self, _: u64) {}

    fn is_idle(&self) -> bool {
        self.queue.is_empty() && !self.has_asks()
    }

    fn lock_count(&self) -> usize {
        self.queue.len().min(1)
    }

    fn each_snapshot(&self, _: &mut dyn FnMut(IndexId, Ts)) {}

    fn validate(&self, _: &Store) {
        self.check();
    }

    fn validate_open(&self, most: usize) -> bool {
        let small = self.queue.len() <= most;
        if small {
            self.check();
        }
        small
    }
}

impl ProtocolMessage for Message {
    fn catalog(&self) -> u64 {
        self.catalog
    }

    fn op_mut(&mut self) -> Option<&mut Op> {
        match &mut self.body {
            Body::Ask(_, work) => work.op.as_mut(),
            Body::Answer(..) | Body::Drop | Body::Dropped | Body::Inquire => None,
        }
    }
}

impl Message {
    fn kind(&self) -> &'static str {
        match &self.body {
            Body::Ask(..) => "global_lock.ask",
            Body::Answer(..) => "global_lock.answer",
            Body::Drop => "global_lock.drop",
            Body::Dropped => "global_lock.dropped",
            Body::Inquire => "global_lock.inquire",
        }
    }
}

impl GlobalLock {
    /// What a former life of the guard knew is gone.
    fn meet_guard(&mut self, cx: &mut Context<'_>, life: u32) {
        if life > self.life {
            self.life = life;
            self.guard_restarted(cx);
        }
    }

    fn check(&self) {
        let known = self.queue.iter().all(|txn| self.guarded.contains_key(txn));
        assert!(known && self.queue.len() == self.guarded.len(), "{self}");
        let over = self.queue.iter().any(|txn| self.over.contains_key(txn));
        assert!(!over, "what is over has no lock\n{self}");
        const { assert!(RESEND_US < INQUIRE_US) };
    }

    fn learn(&mut self, cx: &mut Context<'_>, node: NodeId, incarnation: u32) {
        let life = self.lives.entry(node).or_default();
        if incarnation > *life {
            *life = incarnation;
            self.end_former(cx, node, incarnation);
        }
    }
}

impl fmt::Display for GlobalLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, txn) in self.queue.iter().enumerate() {
            let what = if at == 0 { "has the lock" } else { "waits" };
            writeln!(f, "  t{} {what}", txn.counter / 2)?;
        }
        for (txn, asking) in &self.asking {
            writeln!(f, "  t{} {asking:?}", txn.counter / 2)?;
        }
        Ok(())
    }
}
