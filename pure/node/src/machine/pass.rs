//! Messages between the stages of one shard, and between the shards of one node.

use super::Shard;
use crate::message::{LocalMessage, Message, WireMessage};
use crate::stages::Stage;
use crate::txns::INTERNAL;
use base::Position;
use session::message::{FromTxn, TxnHandle};
use txn::InTheWay;

impl Shard {
    pub(super) fn pass_to_txns(&mut self) -> bool {
        let mut any = false;
        while let Some((to, handle, message)) = self.to_txn.pop_front() {
            any = true;
            let here = self.core.borrow().config.shard;
            if to == here {
                let start = self.stages.begin(Stage::Execute);
                self.txns.on_session(handle, message);
                self.stages.end(Stage::Execute, start);
            } else {
                let message = Message::Local(LocalMessage::ToTxn(handle, message));
                self.core.borrow_mut().send(to, message, Position(0));
            }
        }
        any
    }

    pub(super) fn pass_answers(&mut self) -> bool {
        let taken = self.core.borrow_mut().protocols.take_completions();
        let Some(mut completions) = taken else {
            return false;
        };
        for (txn, op, reply) in completions.drain(..) {
            self.txns.on_answer(txn, op, reply);
        }
        let mut core = self.core.borrow_mut();
        core.protocols.reuse_completions(completions);
        true
    }

    /// Tells the coordinators of transactions that keep writers waiting here.
    pub(super) fn pass_in_the_way(&mut self) -> bool {
        let named = self.core.borrow_mut().protocols.take_in_the_way();
        !named.is_empty() && self.ask_to_give_way(named)
    }

    #[cold]
    fn ask_to_give_way(&mut self, all: Vec<InTheWay>) -> bool {
        for named in all {
            let (here, to) = (self.core.borrow().config.shard, named.reader.shard);
            if to == here {
                self.txns.give_way(named);
            } else {
                let message = Message::Wire(WireMessage::InTheWay(named));
                self.core.borrow_mut().send(to, message, Position(0));
            }
        }
        true
    }

    pub(super) fn pass_to_sessions(&mut self) -> bool {
        let mut any = false;
        loop {
            let Some((handle, message)) = self.events.borrow_mut().to_sessions.pop_front() else {
                return any;
            };
            any = true;
            let here = self.core.borrow().config.shard;
            if handle.conn == INTERNAL {
                self.on_internal(handle, message);
            } else if handle.session == here {
                self.with_session(handle.conn, |s, cx| s.on_txn(cx, handle, message));
            } else {
                let message = Message::Local(LocalMessage::FromTxn(handle, message));
                self.core
                    .borrow_mut()
                    .send(handle.session, message, Position(0));
            }
        }
    }

    /// News of a transaction that the node itself started.
    fn on_internal(&mut self, handle: TxnHandle, message: FromTxn) {
        if self.gathered(handle) {
            return;
        }
        if !self.draws.contains_key(&handle) {
            let next = self.fill_next.borrow_mut().take();
            let now = self.core.borrow().now;
            self.ddl.on_txn(handle, message, next, now);
            return;
        }
        if let FromTxn::Done(_, done) = message
            && let Some(wanted) = self.draws.remove(&handle)
        {
            let result = done.result.map(|_| ());
            self.sequences.borrow_mut().on_done(&wanted, result);
            self.txns.wake_all();
        }
    }
}
