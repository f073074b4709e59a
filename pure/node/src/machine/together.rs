//! The advisory locks that this shard keeps, and the notifications of its sessions.
//!
//! Locks are kept in memory. Two things end together with the connection of two nodes: the sessions
//! of one, that hold locks at the other, and these locks. The session's side ends its sessions
//! first, [`SESSIONS_END_US`] after it has lost the connection, the keeper's side frees the locks
//! [`LOCKS_END_US`] after it has. A keeper that has restarted knows no locks, and the sessions that
//! held some end as soon as their node hears of its new life; until it has heard from all nodes, or
//! [`START_US`] have passed, it grants nothing.

use super::Shard;
use crate::message::{Message, WireMessage};
use crate::together::Together;
use advisory::{Ask, Asker, Locks};
use base::{NodeId, Position, ShardId, Time, TxnId};
use session::{ConnId, Told, pid_shard};
use std::collections::BTreeMap;

/// Microseconds after the loss of a connection when sessions end that hold locks behind it.
const SESSIONS_END_US: u64 = 3_000_000;
/// Microseconds after the loss of a connection when the locks of sessions behind it are free.
const LOCKS_END_US: u64 = 10_000_000;
/// Microseconds for which a keeper waits for nodes at its start.
const START_US: u64 = 5_000_000;

/// Advisory locks, and what sessions tell others.
#[derive(Default)]
pub(super) struct Keeping {
    locks: Locks,
    /// Requests from before all nodes have been heard of.
    early: Vec<(Asker, Ask, u64)>,
    /// When `early` is looked at at the latest.
    early_until: Option<Time>,
    /// Nodes without a connection, and when the locks of their sessions are free.
    lost: BTreeMap<NodeId, Time>,
    /// Sessions of this shard that hold or await locks, and their keepers.
    holders: BTreeMap<i32, ShardId>,
    /// Nodes without a connection, and when the sessions end that hold locks there.
    cut_off: BTreeMap<NodeId, Time>,
    /// The lives of nodes.
    lives: BTreeMap<NodeId, u32>,
    /// What sessions tell others.
    pub(super) told: Vec<Told>,
}

impl Keeping {
    pub(super) fn deadline(&self) -> Option<Time> {
        if self.locks.is_idle() && self.holders.is_empty() && self.early_until.is_none() {
            return None;
        }
        let all = [self.locks.deadline(), self.early_until];
        let nodes = self.lost.values().chain(self.cut_off.values());
        all.into_iter().flatten().chain(nodes.copied()).min()
    }
}

impl Shard {
    /// Sends what sessions and statements have for other shards.
    pub(super) fn tend_together(&mut self) -> bool {
        let mut any = false;
        let to_send = core::mem::take(&mut self.shows.borrow_mut().advisory.to_send);
        for (to, message) in to_send {
            any = true;
            self.send_together(to, message, Position(0));
        }
        for told in core::mem::take(&mut self.together.told) {
            any = true;
            self.tell_all(told);
        }
        any
    }

    fn tell_all(&mut self, told: Told) {
        match told {
            Told::UnlockAll(session) => {
                if let Some(keeper) = self.together.holders.get(&session).copied() {
                    let asker = Asker {
                        shard: self.core.borrow().config.shard,
                        number: 0,
                        session,
                        txn: TxnId::default(),
                    };
                    let (ask, timeout_us) = (Ask::UnlockAll, 0);
                    let message = Together::Ask {
                        asker,
                        ask,
                        timeout_us,
                    };
                    self.send_together(keeper, message, Position(0));
                }
            }
            Told::Notify {
                database,
                pid,
                notifications,
                wait,
            } => {
                let shards = self.core.borrow().catalog.placement.shards().to_vec();
                for shard in shards {
                    let message = Together::Notify {
                        database,
                        pid,
                        notifications: notifications.clone(),
                    };
                    self.send_together(shard, message, wait);
                }
            }
        }
    }

    fn send_together(&mut self, to: ShardId, message: Together, wait: Position) {
        let here = self.core.borrow().config.shard;
        // To this shard a message need not wait, unless sessions say what is in it.
        let waits = matches!(message, Together::Notify { .. });
        if to == here && !waits {
            self.on_together(here, message);
        } else if to == here {
            if let Together::Notify {
                database,
                pid,
                notifications,
            } = message
            {
                self.hear(database, pid, &notifications, wait);
            }
        } else {
            let message = Message::Wire(WireMessage::Together(message));
            self.core.borrow_mut().send(to, message, wait);
        }
    }

    fn hear(
        &mut self,
        database: base::DatabaseId,
        pid: i32,
        notifications: &[advisory::Notification],
        wait: Position,
    ) {
        let listen = |conn: &&ConnId| {
            let session = self.sessions.get(conn);
            session.is_some_and(|session| session.listens())
        };
        let listeners: Vec<ConnId> = self.conns.iter().filter(listen).copied().collect();
        for conn in listeners {
            self.with_session(conn, |session, cx| {
                session.on_notifications(cx, (database, pid, wait), notifications);
            });
        }
    }

    pub(super) fn on_together(&mut self, from: ShardId, message: Together) {
        let now = self.core.borrow().now;
        let locks = &mut self.together.locks;
        match message {
            Together::Ask {
                asker,
                ask,
                timeout_us,
            } => {
                if self.knows_all_nodes(now) {
                    self.together.locks.ask(asker, ask, timeout_us, now);
                } else {
                    self.together.early.push((asker, ask, timeout_us));
                    let until = self.started.unwrap_or(now).after(START_US);
                    self.together.early_until = Some(until);
                }
            }
            Together::Withdraw { session, number } => {
                let early = &mut self.together.early;
                early.retain(|(asker, ..)| (asker.shard, asker.number) != (from, number));
                locks.withdraw(session, from, number);
            }
            Together::TxnEnded {
                session,
                txn,
                undone,
            } => locks.end_txn(session, txn, undone),
            Together::SessionEnded { session } => {
                let early = &mut self.together.early;
                early.retain(|(asker, ..)| asker.session != session);
                locks.end_session(session);
            }
            Together::Answer { number, answer } => {
                self.shows.borrow_mut().advisory.on_answer(number, answer);
                self.txns.wake_all();
            }
            Together::Has { session, any } => self.note_holder(from, session, any),
            Together::Notify {
                database,
                pid,
                notifications,
            } => self.hear(database, pid, &notifications, Position(0)),
        }
        self.tell_askers();
    }

    /// Sends the answers of the keeper, and which sessions have come or gone.
    fn tell_askers(&mut self) {
        for (session, any) in self.together.locks.take_news() {
            if let Some(shard) = pid_shard(session) {
                self.send_together(shard, Together::Has { session, any }, Position(0));
            }
        }
        for (asker, answer) in self.together.locks.take_answers() {
            if asker.number > 0 {
                let number = asker.number;
                let message = Together::Answer { number, answer };
                self.send_together(asker.shard, message, Position(0));
            }
        }
    }

    fn note_holder(&mut self, keeper: ShardId, session: i32, any: bool) {
        if !any {
            self.together.holders.remove(&session);
        } else if self.conn_of(session).is_some() {
            self.together.holders.insert(session, keeper);
        } else {
            let message = Together::SessionEnded { session };
            self.send_together(keeper, message, Position(0));
        }
    }

    /// A session of this shard is over.
    pub(super) fn leave_keeper(&mut self, conn: ConnId) {
        if self.together.holders.is_empty() {
            return;
        }
        let Some(session) = self.sessions.get(&conn).map(|session| session.pid()) else {
            return;
        };
        if let Some(keeper) = self.together.holders.remove(&session) {
            let message = Together::SessionEnded { session };
            self.send_together(keeper, message, Position(0));
        }
    }

    /// Whether each node has been heard of since the start, or has had the time for that.
    fn knows_all_nodes(&self, now: Time) -> bool {
        if self.started.is_some_and(|at| now >= at.after(START_US)) {
            return true;
        }
        let core = self.core.borrow();
        let own = core.config.shard.node();
        let mut shards = core.catalog.placement.shards().iter();
        shards.all(|shard| shard.node() == own || self.met.contains(&shard.node()))
    }

    fn admit_early(&mut self, now: Time) {
        if self.together.early.is_empty() || !self.knows_all_nodes(now) {
            return;
        }
        self.together.early_until = None;
        for (asker, ask, timeout_us) in core::mem::take(&mut self.together.early) {
            self.together.locks.ask(asker, ask, timeout_us, now);
        }
        self.tell_askers();
    }

    /// A connection to a node is there (again).
    pub(super) fn keep_with(&mut self, node: NodeId, incarnation: u32) {
        let now = self.core.borrow().now;
        let before = self.together.lives.insert(node, incarnation);
        self.together.lost.remove(&node);
        self.together.cut_off.remove(&node);
        let theirs = self.sessions_of(node);
        if before.is_some_and(|before| before != incarnation) {
            self.end_sessions_of_keeper(node);
            theirs
                .into_iter()
                .for_each(|session| self.together.locks.end_session(session));
        } else {
            // What was told of them may have been lost.
            for session in theirs {
                if let Some(shard) = pid_shard(session) {
                    let any = true;
                    self.send_together(shard, Together::Has { session, any }, Position(0));
                }
            }
        }
        self.tell_askers();
        self.admit_early(now);
    }

    /// The sessions of a node that hold or await locks here.
    fn sessions_of(&self, node: NodeId) -> Vec<i32> {
        let is_theirs = |session: &i32| pid_shard(*session).is_some_and(|s| s.node() == node);
        self.together.locks.sessions().filter(is_theirs).collect()
    }

    /// The last connection to a node is lost.
    pub(super) fn keep_without(&mut self, node: NodeId) {
        let now = self.core.borrow().now;
        self.together
            .early
            .retain(|(asker, ..)| asker.shard.node() != node);
        for session in self.sessions_of(node) {
            // Nobody would hear of a grant.
            self.together.locks.stop_waiting(session);
        }
        self.together.lost.insert(node, now.after(LOCKS_END_US));
        self.together
            .cut_off
            .insert(node, now.after(SESSIONS_END_US));
        self.tell_askers();
    }

    /// Ends the sessions of this shard that hold locks at a node.
    fn end_sessions_of_keeper(&mut self, node: NodeId) {
        let holders = self.together.holders.iter();
        let lost = holders.filter(|(_, keeper)| keeper.node() == node);
        let lost: Vec<i32> = lost.map(|(session, _)| *session).collect();
        for session in lost {
            self.together.holders.remove(&session);
            if let Some(conn) = self.conn_of(session) {
                self.with_session(conn, |session, cx| session.lose_locks(cx));
            }
        }
    }

    pub(super) fn tick_together(&mut self, now: Time) {
        if self.together.deadline().is_none_or(|at| at > now) {
            return;
        }
        self.together.locks.expire(now);
        let due = |map: &mut BTreeMap<NodeId, Time>| -> Vec<NodeId> {
            let due = map.iter().filter(|(_, at)| **at <= now);
            let due: Vec<NodeId> = due.map(|(node, _)| *node).collect();
            map.retain(|node, _| !due.contains(node));
            due
        };
        for node in due(&mut self.together.cut_off) {
            self.end_sessions_of_keeper(node);
        }
        for node in due(&mut self.together.lost) {
            for session in self.sessions_of(node) {
                self.together.locks.end_session(session);
            }
        }
        self.admit_early(now);
        self.tell_askers();
    }
}
