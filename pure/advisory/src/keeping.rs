//! The keeper of advisory locks, and what a shard knows of the locks of its sessions.
//!
//! Locks are kept in memory. Two things end together with the connection of two nodes: the sessions
//! of one, that hold locks at the other, and these locks. The session's side ends its sessions
//! first, [`SESSIONS_END_US`] after it has lost the connection, the keeper's side frees the locks
//! [`LOCKS_END_US`] after it has. A keeper that has restarted knows no locks, and the sessions that
//! held some end as soon as their node hears of its new life; until it has heard from all nodes, or
//! [`START_US`] have passed, it grants nothing.

use crate::{Ask, Asker, Locks, Together};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use base::{NodeId, ShardId, Time, TxnId};

/// Microseconds after the loss of a connection when sessions end that hold locks behind it.
pub const SESSIONS_END_US: u64 = 3_000_000;
/// Microseconds after the loss of a connection when the locks of sessions behind it are free.
pub const LOCKS_END_US: u64 = 10_000_000;
/// Microseconds for which a keeper waits for nodes at its start.
pub const START_US: u64 = 5_000_000;

/// What the shard is to do.
#[derive(Debug)]
pub enum Effect {
    /// A message to a shard, perhaps to this one.
    Send(ShardId, Together),
    /// The session with this backend number has lost its locks.
    EndSession(i32),
}

/// The locks that a shard keeps, and the keepers of the locks of its sessions.
#[derive(Debug)]
pub struct Keeping {
    locks: Locks,
    /// The shard of the session with a backend number.
    shard_of: fn(i32) -> Option<ShardId>,
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
    /// What is to be done, in order.
    pub effects: VecDeque<Effect>,
}

impl Keeping {
    /// Keeps nothing yet.
    #[must_use]
    pub fn new(shard_of: fn(i32) -> Option<ShardId>) -> Keeping {
        Keeping {
            locks: Locks::default(),
            shard_of,
            early: Vec::new(),
            early_until: None,
            lost: BTreeMap::new(),
            holders: BTreeMap::new(),
            cut_off: BTreeMap::new(),
            lives: BTreeMap::new(),
            effects: VecDeque::new(),
        }
    }

    /// When [`Keeping::on_tick`] is to be called next.
    #[inline]
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        match self.has_nothing() {
            true => None,
            false => self.next_deadline(),
        }
    }

    /// Whether no session holds or wants a lock here.
    #[inline]
    fn has_nothing(&self) -> bool {
        self.holders.is_empty() && self.early_until.is_none() && self.locks.is_idle()
    }

    #[cold]
    fn next_deadline(&self) -> Option<Time> {
        let all = [self.locks.deadline(), self.early_until];
        let nodes = self.lost.values().chain(self.cut_off.values());
        all.into_iter().flatten().chain(nodes.copied()).min()
    }

    /// A statement asks. `started`: when the shard has started, unless it has heard of all nodes.
    pub fn ask(
        &mut self,
        now: Time,
        started: Option<Time>,
        (asker, ask, timeout_us): (Asker, Ask, u64),
    ) {
        match started {
            None => self.locks.ask(asker, ask, timeout_us, now),
            Some(at) => {
                self.early.push((asker, ask, timeout_us));
                self.early_until = Some(at.after(START_US));
            }
        }
        self.tell();
    }

    /// A statement has ended before its answer.
    pub fn withdraw(&mut self, from: ShardId, session: i32, number: u64) {
        self.early
            .retain(|(asker, ..)| (asker.shard, asker.number) != (from, number));
        self.locks.withdraw(session, from, number);
        self.tell();
    }

    /// A transaction has ended that has asked.
    pub fn end_txn(&mut self, session: i32, txn: TxnId, undone: bool) {
        self.locks.end_txn(session, txn, undone);
        self.tell();
    }

    /// There is no such session any more.
    pub fn end_session(&mut self, session: i32) {
        self.early.retain(|(asker, ..)| asker.session != session);
        self.locks.end_session(session);
        self.tell();
    }

    /// Sends the answers of the keeper, and which sessions have come or gone.
    fn tell(&mut self) {
        for (session, any) in self.locks.take_news() {
            self.tell_shard(session, any);
        }
        for (asker, answer) in self.locks.take_answers() {
            if asker.number > 0 {
                let number = asker.number;
                let message = Together::Answer { number, answer };
                self.effects.push_back(Effect::Send(asker.shard, message));
            }
        }
    }

    fn tell_shard(&mut self, session: i32, any: bool) {
        if let Some(shard) = (self.shard_of)(session) {
            let message = Together::Has { session, any };
            self.effects.push_back(Effect::Send(shard, message));
        }
    }

    /// A keeper says whether a session of this shard has something there. `lives`: there is such a
    /// session.
    pub fn note_holder(&mut self, keeper: ShardId, session: i32, any: bool, lives: bool) {
        if !any {
            self.holders.remove(&session);
        } else if lives {
            self.holders.insert(session, keeper);
        } else {
            let message = Together::SessionEnded { session };
            self.effects.push_back(Effect::Send(keeper, message));
        }
    }

    /// Whether a session of this shard holds or awaits locks.
    #[must_use]
    pub fn has_holders(&self) -> bool {
        !self.holders.is_empty()
    }

    /// A session of this shard is over.
    pub fn leave(&mut self, session: i32) {
        if let Some(keeper) = self.holders.remove(&session) {
            let message = Together::SessionEnded { session };
            self.effects.push_back(Effect::Send(keeper, message));
        }
    }

    /// A session of this shard gives its locks back.
    pub fn unlock_all(&mut self, here: ShardId, session: i32) {
        if let Some(keeper) = self.holders.get(&session).copied() {
            let asker = Asker {
                shard: here,
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
            self.effects.push_back(Effect::Send(keeper, message));
        }
    }

    /// All nodes have been heard of, or have had the time for that.
    pub fn admit_early(&mut self, now: Time) {
        self.early_until = None;
        for (asker, ask, timeout_us) in core::mem::take(&mut self.early) {
            self.locks.ask(asker, ask, timeout_us, now);
        }
        self.tell();
    }

    /// A connection to a node is there (again).
    pub fn peer_up(&mut self, node: NodeId, incarnation: u32) {
        let before = self.lives.insert(node, incarnation);
        self.lost.remove(&node);
        self.cut_off.remove(&node);
        let theirs = self.sessions_of(node);
        if before.is_some_and(|before| before != incarnation) {
            self.end_sessions_of_keeper(node);
            for session in theirs {
                self.locks.end_session(session);
            }
        } else {
            // What was told of them may have been lost.
            for session in theirs {
                self.tell_shard(session, true);
            }
        }
        self.tell();
    }

    /// The sessions of a node that hold or await locks here.
    fn sessions_of(&self, node: NodeId) -> Vec<i32> {
        let is_theirs = |session: &i32| (self.shard_of)(*session).is_some_and(|s| s.node() == node);
        self.locks.sessions().filter(is_theirs).collect()
    }

    /// The last connection to a node is lost.
    pub fn peer_down(&mut self, now: Time, node: NodeId) {
        self.early.retain(|(asker, ..)| asker.shard.node() != node);
        for session in self.sessions_of(node) {
            // Nobody would hear of a grant.
            self.locks.stop_waiting(session);
        }
        self.lost.insert(node, now.after(LOCKS_END_US));
        self.cut_off.insert(node, now.after(SESSIONS_END_US));
        self.tell();
    }

    /// Ends the sessions of this shard that hold locks at a node.
    fn end_sessions_of_keeper(&mut self, node: NodeId) {
        let holders = self.holders.iter();
        let lost = holders.filter(|(_, keeper)| keeper.node() == node);
        let lost: Vec<i32> = lost.map(|(session, _)| *session).collect();
        for session in lost {
            self.holders.remove(&session);
            self.effects.push_back(Effect::EndSession(session));
        }
    }

    /// Does what is due, but for [`Keeping::admit_early`].
    pub fn on_tick(&mut self, now: Time) {
        self.locks.expire(now);
        for node in due(&mut self.cut_off, now) {
            self.end_sessions_of_keeper(node);
        }
        for node in due(&mut self.lost, now) {
            for session in self.sessions_of(node) {
                self.locks.end_session(session);
            }
        }
        self.tell();
    }
}

/// Takes out the nodes whose time has come.
fn due(map: &mut BTreeMap<NodeId, Time>, now: Time) -> Vec<NodeId> {
    let due = map.iter().filter(|(_, at)| **at <= now);
    let due: Vec<NodeId> = due.map(|(node, _)| *node).collect();
    map.retain(|node, _| !due.contains(node));
    due
}
