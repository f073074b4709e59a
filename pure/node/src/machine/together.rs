//! Advisory locks and notifications between the sessions of all shards.

use super::Shard;
use crate::message::{Message, WireMessage};
use advisory::{Effect, Notification, START_US, Together};
use base::{DatabaseId, NodeId, Position, ShardId, Time};
use session::{ConnId, Told};

impl Shard {
    /// Sends what sessions and statements have for other shards.
    pub(super) fn tend_together(&mut self) -> bool {
        let to_send = core::mem::take(&mut self.shows.borrow_mut().advisory.to_send);
        let told = core::mem::take(&mut self.told);
        let any = !to_send.is_empty() || !told.is_empty();
        for (to, message) in to_send {
            self.together.effects.push_back(Effect::Send(to, message));
        }
        for told in told {
            self.tell_all(told);
        }
        self.act_together();
        any
    }

    fn tell_all(&mut self, told: Told) {
        let here = self.core.borrow().config.shard;
        let (database, pid, notifications, wait) = match told {
            Told::UnlockAll(session) => return self.together.unlock_all(here, session),
            Told::Notify {
                database,
                pid,
                notifications,
                wait,
            } => (database, pid, notifications, wait),
        };
        let shards = self.core.borrow().catalog.placement.shards().to_vec();
        for shard in shards.into_iter().filter(|shard| *shard != here) {
            for part in Notification::parts(&notifications) {
                let message = Together::Notify {
                    database,
                    pid,
                    notifications: part.to_vec(),
                };
                let message = Message::Wire(WireMessage::Together(message));
                self.core.borrow_mut().send(shard, message, wait);
            }
        }
        self.hear((database, pid, wait), &notifications);
    }

    fn act_together(&mut self) {
        let here = self.core.borrow().config.shard;
        while let Some(effect) = self.together.effects.pop_front() {
            match effect {
                Effect::Send(to, message) if to == here => self.take_together(here, message),
                Effect::Send(to, message) => {
                    let message = Message::Wire(WireMessage::Together(message));
                    self.core.borrow_mut().send(to, message, Position(0));
                }
                Effect::EndSession(session) => {
                    if let Some(conn) = self.conn_of(session) {
                        self.with_session(conn, |session, cx| session.lose_locks(cx));
                    }
                }
            }
        }
    }

    fn hear(&mut self, of: (DatabaseId, i32, Position), notifications: &[Notification]) {
        let listens = |conn: &&ConnId| {
            let session = self.sessions.get(conn);
            session.is_some_and(|session| session.listens())
        };
        let listeners: Vec<ConnId> = self.conns.iter().filter(listens).copied().collect();
        for conn in listeners {
            self.with_session(conn, |session, cx| {
                session.on_notifications(cx, of, notifications);
            });
        }
    }

    pub(super) fn on_together(&mut self, from: ShardId, message: Together) {
        self.take_together(from, message);
        self.act_together();
    }

    fn take_together(&mut self, from: ShardId, message: Together) {
        let now = self.core.borrow().now;
        match message {
            Together::Ask {
                asker,
                ask,
                timeout_us,
            } => {
                let started = self.waits_for_nodes(now);
                self.together.ask(now, started, (asker, ask, timeout_us));
            }
            Together::Withdraw { session, number } => {
                self.together.withdraw(from, session, number);
            }
            Together::TxnEnded {
                session,
                txn,
                undone,
            } => self.together.end_txn(session, txn, undone),
            Together::SessionEnded { session } => self.together.end_session(session),
            Together::Answer { number, answer } => {
                self.shows.borrow_mut().advisory.on_answer(number, answer);
                self.txns.wake_all();
            }
            Together::Has { session, any } => {
                let lives = self.conn_of(session).is_some();
                self.together.note_holder(from, session, any, lives);
            }
            Together::Notify {
                database,
                pid,
                notifications,
            } => self.hear((database, pid, Position(0)), &notifications),
        }
    }

    /// A session of this shard is over.
    pub(super) fn leave_keeper(&mut self, conn: ConnId) {
        if self.together.has_holders()
            && let Some(session) = self.sessions.get(&conn)
        {
            self.together.leave(session.pid());
            self.act_together();
        }
    }

    /// When the shard has started, if there are nodes that have not been heard of since, and have
    /// not had the time for that.
    fn waits_for_nodes(&self, now: Time) -> Option<Time> {
        let started = self.started.filter(|at| now < at.after(START_US))?;
        let core = self.core.borrow();
        let own = core.config.shard.node();
        let mut shards = core.catalog.placement.shards().iter();
        let all = shards.all(|shard| shard.node() == own || self.met.contains(&shard.node()));
        (!all).then_some(started)
    }

    pub(super) fn keep_with(&mut self, node: NodeId, incarnation: u32) {
        self.together.peer_up(node, incarnation);
        self.admit_early();
    }

    fn admit_early(&mut self) {
        let now = self.core.borrow().now;
        if self.waits_for_nodes(now).is_none() {
            self.together.admit_early(now);
        }
        self.act_together();
    }

    pub(super) fn keep_without(&mut self, node: NodeId) {
        let now = self.core.borrow().now;
        self.together.peer_down(now, node);
        self.act_together();
    }

    pub(super) fn tick_together(&mut self, now: Time) {
        if self.together.deadline().is_some_and(|at| at <= now) {
            self.together.on_tick(now);
            self.admit_early();
        }
    }
}
