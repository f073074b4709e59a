//! Who holds which advisory lock, and who waits for it.

use crate::{Answer, Ask, Asker, LockKey, Mode};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base::{ShardId, Time, TxnId};

/// Locks that all sessions together may hold or wait for at one shard.
pub const HOLDS_MAX: usize = 100_000;

/// A lock that a session holds, once or several times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Hold {
    session: i32,
    mode: Mode,
    /// The transaction with which it ends; `None`: it ends with the session.
    txn: Option<TxnId>,
    count: u64,
}

/// A statement that waits for a lock.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    asker: Asker,
    mode: Mode,
    of_txn: bool,
    until: Option<Time>,
}

/// One lock.
#[derive(Default, Debug)]
struct Entry {
    holds: Vec<Hold>,
    /// In order of arrival, but a session that holds the lock already goes before those that wait
    /// for it.
    queue: Vec<Waiter>,
}

impl Entry {
    fn has(&self, session: i32, mode: Mode) -> bool {
        let mut holds = self.holds.iter();
        holds.any(|hold| hold.session == session && hold.mode == mode)
    }

    /// Whether the session holds a lock for which the waiter waits.
    fn delays(&self, session: i32, waiter: &Waiter) -> bool {
        let mut own = self.holds.iter().filter(|hold| hold.session == session);
        own.any(|hold| hold.mode.conflicts(waiter.mode))
    }

    /// The sessions in the way of a request that is at place `at` of the queue.
    fn in_the_way(&self, session: i32, mode: Mode, at: usize) -> Vec<i32> {
        let holders = self.holds.iter();
        let holders = holders.filter(|hold| hold.session != session && hold.mode.conflicts(mode));
        let before = self.queue[..at].iter();
        let before = before.filter(|waiter| {
            waiter.asker.session != session
                && waiter.mode.conflicts(mode)
                && !self.delays(session, waiter)
        });
        let holders = holders.map(|hold| hold.session);
        holders
            .chain(before.map(|waiter| waiter.asker.session))
            .collect()
    }

    fn add(&mut self, session: i32, mode: Mode, txn: Option<TxnId>) {
        let same =
            |hold: &&mut Hold| hold.session == session && hold.mode == mode && hold.txn == txn;
        match self.holds.iter_mut().find(same) {
            Some(hold) => hold.count += 1,
            None => self.holds.push(Hold {
                session,
                mode,
                txn,
                count: 1,
            }),
        }
    }

    /// Takes one off. Returns whether there was one.
    fn take_off(&mut self, session: i32, mode: Mode, txn: Option<TxnId>) -> bool {
        let same = |hold: &Hold| hold.session == session && hold.mode == mode && hold.txn == txn;
        let Some(at) = self.holds.iter().position(same) else {
            return false;
        };
        self.holds[at].count -= 1;
        if self.holds[at].count == 0 {
            self.holds.remove(at);
        }
        true
    }
}

/// What a session has here.
#[derive(Debug, Default)]
struct Session {
    /// The locks that it holds or waits for.
    keys: BTreeSet<LockKey>,
    /// The lock for which it waits.
    awaited: Option<LockKey>,
    /// The request that was granted last, with what it has added.
    last: Option<(ShardId, u64, LockKey, Mode, Option<TxnId>)>,
    /// Locks of the session that open transactions have taken: they are taken back with a
    /// transaction that the server runs again.
    taken: Vec<(TxnId, LockKey, Mode)>,
}

/// A lock as `pg_locks` shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// What is locked.
    pub key: LockKey,
    /// Backend number of the session.
    pub session: i32,
    /// How.
    pub mode: Mode,
    /// Whether the session holds it; else it waits.
    pub granted: bool,
}

/// The advisory locks that one shard keeps.
#[derive(Default, Debug)]
pub struct Locks {
    entries: BTreeMap<LockKey, Entry>,
    sessions: BTreeMap<i32, Session>,
    /// Ends of waits.
    timeouts: BTreeSet<(Time, LockKey, i32)>,
    answers: Vec<(Asker, Answer)>,
    /// Sessions that have come to hold or await something (true), or have nothing more.
    news: Vec<(i32, bool)>,
}

impl Locks {
    /// Whether no session has anything here, and nothing is to be told.
    #[must_use]
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.sessions.is_empty() && self.answers.is_empty() && self.news.is_empty()
    }

    /// A statement asks; the answer comes by [`Locks::take_answers`].
    pub fn ask(&mut self, asker: Asker, ask: Ask, timeout_us: u64, now: Time) {
        // A statement of the session that still waits has ended.
        self.stop_waiting(asker.session);
        match ask {
            Ask::Lock {
                key,
                mode,
                of_txn,
                waits,
            } => {
                let until = (timeout_us > 0).then(|| now.after(timeout_us));
                let waiter = Waiter {
                    asker,
                    mode,
                    of_txn,
                    until,
                };
                self.lock(key, waiter, waits);
            }
            Ask::Unlock { key, mode } => {
                let had = match self.entries.get_mut(&key) {
                    Some(entry) => entry.take_off(asker.session, mode, None),
                    None => false,
                };
                self.tell(asker, if had { Answer::Yes } else { Answer::No });
                if had {
                    self.forget_taken(asker.session, key, mode);
                    self.settle(key);
                    self.forget_session(asker.session);
                }
            }
            Ask::UnlockAll => {
                self.drop_holds(asker.session, &|hold| hold.txn.is_none());
                self.tell(asker, Answer::Yes);
            }
        }
    }

    fn lock(&mut self, key: LockKey, waiter: Waiter, waits: bool) {
        let (asker, mode) = (waiter.asker, waiter.mode);
        let session = asker.session;
        let entry = self.entries.entry(key).or_default();
        let count = entry.queue.len();
        let others = match entry.has(session, mode) {
            true => Vec::new(),
            false => entry.in_the_way(session, mode, count),
        };
        if others.is_empty() {
            return match self.has_room() {
                true => self.grant(key, &waiter),
                false => self.refuse(key, asker, Answer::Full),
            };
        }
        if !waits {
            return self.refuse(key, asker, Answer::No);
        }
        if !self.has_room() {
            return self.refuse(key, asker, Answer::Full);
        }
        if let Some(detail) = self.cycle(session, (key, mode), &others) {
            return self.refuse(key, asker, Answer::Deadlock(detail));
        }
        let entry = self.entries.entry(key).or_default();
        let delayed = |other: &Waiter| entry.delays(session, other);
        let at = entry.queue.iter().position(delayed).unwrap_or(count);
        entry.queue.insert(at, waiter);
        if let Some(until) = waiter.until {
            self.timeouts.insert((until, key, session));
        }
        let known = self.session(session);
        known.keys.insert(key);
        known.awaited = Some(key);
    }

    fn has_room(&self) -> bool {
        let keys = self.sessions.values().map(|session| session.keys.len());
        // Counted only when there may be too many.
        self.entries.len() < HOLDS_MAX / 2 || keys.sum::<usize>() < HOLDS_MAX
    }

    fn refuse(&mut self, key: LockKey, asker: Asker, answer: Answer) {
        self.forget_entry(key);
        self.tell(asker, answer);
    }

    fn session(&mut self, session: i32) -> &mut Session {
        let news = &mut self.news;
        self.sessions.entry(session).or_insert_with(|| {
            news.push((session, true));
            Session::default()
        })
    }

    fn grant(&mut self, key: LockKey, waiter: &Waiter) {
        let Asker {
            shard,
            number,
            session,
            txn,
        } = waiter.asker;
        let owner = waiter.of_txn.then_some(txn);
        let entry = self.entries.entry(key).or_default();
        entry.add(session, waiter.mode, owner);
        let known = self.session(session);
        known.keys.insert(key);
        known.last = Some((shard, number, key, waiter.mode, owner));
        if owner.is_none() {
            known.taken.push((txn, key, waiter.mode));
        }
        self.tell(waiter.asker, Answer::Yes);
    }

    fn tell(&mut self, asker: Asker, answer: Answer) {
        self.answers.push((asker, answer));
    }

    /// Grants what can be granted after locks or waiters have gone.
    fn settle(&mut self, key: LockKey) {
        let mut at = 0;
        while let Some(entry) = self.entries.get_mut(&key)
            && let Some(waiter) = entry.queue.get(at).copied()
        {
            let session = waiter.asker.session;
            if !entry.in_the_way(session, waiter.mode, at).is_empty() {
                at += 1;
                continue;
            }
            entry.queue.remove(at);
            self.end_wait(key, &waiter);
            self.grant(key, &waiter);
        }
        self.forget_entry(key);
    }

    fn end_wait(&mut self, key: LockKey, waiter: &Waiter) {
        let session = waiter.asker.session;
        if let Some(until) = waiter.until {
            self.timeouts.remove(&(until, key, session));
        }
        if let Some(known) = self.sessions.get_mut(&session) {
            known.awaited = None;
        }
    }

    /// Removes what is empty: an entry, and what its sessions know of it.
    fn forget_entry(&mut self, key: LockKey) {
        if let Some(entry) = self.entries.get(&key)
            && entry.holds.is_empty()
            && entry.queue.is_empty()
        {
            self.entries.remove(&key);
        }
    }

    fn forget_session(&mut self, session: i32) {
        let Some(known) = self.sessions.get_mut(&session) else {
            return;
        };
        let entries = &self.entries;
        known.keys.retain(|key| {
            entries.get(key).is_some_and(|entry| {
                let mut holds = entry.holds.iter();
                let mut queue = entry.queue.iter();
                holds.any(|hold| hold.session == session)
                    || queue.any(|waiter| waiter.asker.session == session)
            })
        });
        if known.keys.is_empty() {
            self.sessions.remove(&session);
            self.news.push((session, false));
        }
    }

    /// A lock of the session is given back, perhaps by the transaction that has taken it.
    fn forget_taken(&mut self, session: i32, key: LockKey, mode: Mode) {
        if let Some(known) = self.sessions.get_mut(&session)
            && let Some(at) = known
                .taken
                .iter()
                .rposition(|(_, taken, by)| (*taken, *by) == (key, mode))
        {
            known.taken.remove(at);
        }
    }

    fn drop_holds(&mut self, session: i32, which: &dyn Fn(&Hold) -> bool) {
        let Some(known) = self.sessions.get(&session) else {
            return;
        };
        for key in known.keys.clone() {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry
                    .holds
                    .retain(|hold| hold.session != session || !which(hold));
                self.settle(key);
            }
        }
        self.forget_session(session);
    }

    /// The session waits no more.
    pub fn stop_waiting(&mut self, session: i32) {
        let known = self.sessions.get(&session);
        let Some(key) = known.and_then(|known| known.awaited) else {
            return;
        };
        if let Some(entry) = self.entries.get_mut(&key)
            && let Some(at) = entry
                .queue
                .iter()
                .position(|waiter| waiter.asker.session == session)
        {
            let waiter = entry.queue.remove(at);
            self.end_wait(key, &waiter);
            self.settle(key);
        }
        self.forget_session(session);
    }

    /// A statement has ended before it had its answer. What it was granted is taken back.
    pub fn withdraw(&mut self, session: i32, shard: ShardId, number: u64) {
        let Some(known) = self.sessions.get_mut(&session) else {
            return;
        };
        match known.last {
            Some((to, last, key, mode, txn)) if (to, last) == (shard, number) => {
                known.last = None;
                if let Some(entry) = self.entries.get_mut(&key) {
                    entry.take_off(session, mode, txn);
                }
                self.settle(key);
                self.forget_session(session);
            }
            _ => {
                let key = known.awaited;
                let entry = key.and_then(|key| self.entries.get(&key));
                let waits = entry.is_some_and(|entry| {
                    let mut queue = entry.queue.iter();
                    queue.any(|w| (w.asker.shard, w.asker.number) == (shard, number))
                });
                if waits {
                    self.stop_waiting(session);
                }
            }
        }
    }

    /// A transaction of the session is over. `undone`: the server may run it again, so what it has
    /// locked for the session is given back.
    pub fn end_txn(&mut self, session: i32, txn: TxnId, undone: bool) {
        let Some(known) = self.sessions.get_mut(&session) else {
            return;
        };
        let taken = core::mem::take(&mut known.taken);
        let (own, others): (Vec<_>, Vec<_>) = taken.into_iter().partition(|(by, ..)| *by == txn);
        known.taken = others;
        if undone {
            for (_, key, mode) in own {
                if let Some(entry) = self.entries.get_mut(&key) {
                    entry.take_off(session, mode, None);
                }
                self.settle(key);
            }
        }
        self.drop_holds(session, &|hold| hold.txn == Some(txn));
    }

    /// The session is over.
    pub fn end_session(&mut self, session: i32) {
        self.stop_waiting(session);
        self.drop_holds(session, &|_| true);
    }

    /// The sessions that hold or await something.
    pub fn sessions(&self) -> impl Iterator<Item = i32> {
        self.sessions.keys().copied()
    }

    /// The answers since the last call, in order.
    pub fn take_answers(&mut self) -> Vec<(Asker, Answer)> {
        core::mem::take(&mut self.answers)
    }

    /// Sessions that have come (true) or gone since the last call, in order.
    pub fn take_news(&mut self) -> Vec<(i32, bool)> {
        core::mem::take(&mut self.news)
    }

    /// When [`Locks::expire`] is to be called next.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.timeouts.first().map(|(at, ..)| *at)
    }

    /// Ends the waits whose time is over.
    pub fn expire(&mut self, now: Time) {
        while let Some((at, key, session)) = self.timeouts.first().copied()
            && at <= now
        {
            self.timeouts.pop_first();
            let entry = self.entries.get(&key);
            let waiter = entry.and_then(|entry| {
                let mut queue = entry.queue.iter();
                queue.find(|waiter| waiter.asker.session == session)
            });
            if let Some(asker) = waiter.map(|waiter| waiter.asker) {
                self.stop_waiting(session);
                self.tell(asker, Answer::TimedOut);
            }
        }
    }

    /// All locks that are held or awaited, at most `most`.
    pub fn all(&self, most: usize) -> Vec<Held> {
        let mut all: Vec<Held> = Vec::new();
        for (key, entry) in &self.entries {
            let holds = entry
                .holds
                .iter()
                .map(|hold| (hold.session, hold.mode, true));
            let queue = entry.queue.iter();
            let queue = queue.map(|waiter| (waiter.asker.session, waiter.mode, false));
            for (session, mode, granted) in holds.chain(queue) {
                let held = Held {
                    key: *key,
                    session,
                    mode,
                    granted,
                };
                // Held for the session and for its transaction: shown once.
                if all.last() != Some(&held) {
                    all.push(held);
                }
            }
            if all.len() >= most {
                break;
            }
        }
        all.truncate(most);
        all
    }

    /// The sessions in the way of the one for which this session waits.
    #[must_use]
    pub fn blockers(&self, session: i32) -> Vec<i32> {
        let known = self.sessions.get(&session);
        let Some(key) = known.and_then(|known| known.awaited) else {
            return Vec::new();
        };
        let Some(entry) = self.entries.get(&key) else {
            return Vec::new();
        };
        let mut queue = entry.queue.iter();
        match queue.position(|waiter| waiter.asker.session == session) {
            Some(at) => entry.in_the_way(session, entry.queue[at].mode, at),
            None => Vec::new(),
        }
    }

    /// Whether one of `others` waits for `session`, over any number of sessions. Returns the lines
    /// of the error's detail.
    fn cycle(&self, session: i32, wanted: (LockKey, Mode), others: &[i32]) -> Option<String> {
        // From each session that was reached to the one that waits for it.
        let mut reached: BTreeMap<i32, i32> = BTreeMap::new();
        let mut open: Vec<i32> = Vec::new();
        for other in others {
            if reached.insert(*other, session).is_none() {
                open.push(*other);
            }
        }
        while let Some(next) = open.pop() {
            for other in self.blockers(next) {
                if other == session {
                    return Some(self.detail(session, wanted, &reached, next));
                }
                if let alloc::collections::btree_map::Entry::Vacant(entry) = reached.entry(other) {
                    entry.insert(next);
                    open.push(other);
                }
            }
        }
        None
    }

    fn detail(
        &self,
        session: i32,
        (key, mode): (LockKey, Mode),
        reached: &BTreeMap<i32, i32>,
        last: i32,
    ) -> String {
        let mut chain = Vec::from([last]);
        while let Some(before) = reached.get(&chain[chain.len() - 1])
            && *before != session
        {
            chain.push(*before);
        }
        chain.reverse();
        let mut text = line(session, key, mode, chain[0]);
        for (i, waiter) in chain.iter().enumerate() {
            let blocker = chain.get(i + 1).copied().unwrap_or(session);
            let awaited = self.sessions.get(waiter).and_then(|known| known.awaited);
            let entry = awaited.and_then(|key| Some((key, self.entries.get(&key)?)));
            if let Some((key, entry)) = entry
                && let Some(found) = entry.queue.iter().find(|w| w.asker.session == *waiter)
            {
                text.push('\n');
                text.push_str(&line(*waiter, key, found.mode, blocker));
            }
        }
        text
    }
}

fn line(waiter: i32, key: LockKey, mode: Mode, blocker: i32) -> String {
    format!(
        "Process {waiter} waits for {} on advisory lock [{},{},{},{}]; blocked by process \
         {blocker}.",
        mode.name(),
        key.database.0,
        key.high,
        key.low,
        if key.pair { 2 } else { 1 },
    )
}
