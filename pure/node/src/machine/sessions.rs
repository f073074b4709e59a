//! The sessions of a shard: their messages, and their wake-ups.

use super::Shard;
use crate::message::{LocalMessage, Message};
use crate::show_rows::Facts;
use base::{Position, RowBatch, Time};
use parse::show::Show;
use session::{ConnId, Session, SessionCx, pid_shard};
use std::task::Poll;
use txn::JournalPort;
use wire::ClientMessage;

impl Shard {
    /// Asks for row counts that the planner wants, and takes the answer. Returns whether it has
    /// asked.
    pub(super) fn tend_statistics(&mut self) -> bool {
        let core = self.core.borrow();
        let Some((database, what, ticket)) = self.statistics.question() else {
            return false;
        };
        let is_new = ticket.is_none();
        let (shards, here) = (core.catalog.placement.shards(), core.config.shard);
        let mut shows = self.shows.borrow_mut();
        if let Poll::Ready(answer) = shows.poll(what, &database, shards, here, ticket) {
            self.statistics
                .on_answer(answer.ok().as_ref(), shards.len(), core.now);
            let databases = &core.catalog.databases;
            let is_there = |id| databases.values().any(|database| database.id == id);
            self.statistics.retain(is_there);
        }
        is_new
    }

    /// This shard's part of what SHOW, statistics and views of the system ask of all shards.
    pub(super) fn shown(&mut self, what: Show, database: &str) -> RowBatch {
        if what == Show::Stages {
            return self.stage_rows();
        }
        if what == Show::Locks {
            let core = self.core.borrow();
            let mut rows = crate::locks::rows(&core, self.txns.sessions());
            let sessions = self.conns.iter().filter_map(|conn| self.sessions.get(conn));
            crate::locks::push_tables(&core, sessions.map(|session| &**session), &mut rows);
            return rows;
        }
        if matches!(what, Show::Statements | Show::ForgetStatements) {
            if what == Show::ForgetStatements {
                self.plans.statements.reset();
                return RowBatch::new(1);
            }
            return self.plans.statements.rows();
        }
        self.want_samples(what, database);
        let sessions = self.conns.iter().filter_map(|conn| self.sessions.get(conn));
        let core = self.core.borrow();
        let facts = Facts {
            core: &core,
            database,
            sessions: sessions.map(|session| session.describe()),
            peers: &self.peers,
        };
        facts.rows_of(what)
    }

    /// Looks at the tables of a database that have changed, because it was asked how many rows
    /// they have, or at all of them for ANALYZE.
    fn want_samples(&mut self, what: Show, database: &str) {
        let mut core = self.core.borrow_mut();
        if what == Show::Rows {
            core.want_samples(database, false);
        }
        if what == Show::Analyze {
            core.want_samples(database, true);
            if let Some(known) = core.catalog.databases.get(database) {
                self.statistics.want_again(known.id, database, core.now);
            }
        }
    }

    pub(super) fn disconnect(&mut self, conn: ConnId) {
        self.leave_keeper(conn);
        self.with_session(conn, |session, cx| session.on_disconnect(cx));
        let gone = self.sessions.remove(&conn);
        self.sweep.wanted |= gone.is_some_and(|it| it.has_temporary() || it.claims_changes());
        let barrier = self.core.borrow().config.barrier;
        self.for_host
            .preparations
            .extend(self.leftovers.take(barrier));
        self.conns.remove(&conn);
        self.session_deadlines.retain(|(_, other)| *other != conn);
        self.lookaheads.retain(|(_, other)| *other != conn);
    }

    /// Takes a message of a client without a step, since another one of this client follows in a
    /// step at once (`ClientMessage::may_wait_for`). Answers the message if it cannot wait.
    pub fn queue(&mut self, conn: ConnId, message: ClientMessage) -> Option<ClientMessage> {
        match self.sessions.get_mut(&conn) {
            Some(session) => session.queue(message),
            None => Some(message),
        }
    }

    /// Calls a session with its context; does nothing if it has gone.
    pub(super) fn with_session(
        &mut self,
        conn: ConnId,
        call: impl FnOnce(&mut Session, &mut SessionCx<'_>),
    ) {
        let Some(session) = self.sessions.get_mut(&conn) else {
            return;
        };
        // A session tells what it wants; it cannot reach the rest of the shard.
        let mut guard = self.core.borrow_mut();
        let core = &mut *guard;
        let before = session.deadline();
        let awaited = session.lookahead_until();
        let journal = &mut core.journal;
        let mut cx = SessionCx {
            now: core.now,
            here: core.config.shard,
            catalog: &core.catalog,
            replies: &mut self.replies,
            to_txn: &mut self.to_txn,
            ddl: &mut self.ddl_wanted,
            plans: &mut self.plans,
            statistics: &mut self.statistics,
            accepting: !self.draining && core.catalog.version > 0,
            counters: &mut core.counters,
            away: &self.away,
            quiesced: &self.quiescing.open,
            preparations: &mut self.for_host.preparations,
            leftovers: &self.leftovers,
            barrier: core.config.barrier,
            told: &mut self.told,
            claim_memory: &mut |bytes| journal.claim_memory(bytes),
        };
        call(session, &mut cx);
        if session.has_audited() {
            self.for_host.audited.extend(session.take_audited());
        }
        if session.has_slow() {
            self.for_host.slow.extend(session.take_slow());
        }
        if session.has_long() {
            self.for_host
                .preparations
                .extend(self.leftovers.take(core.config.barrier));
        }
        drop(guard);
        let after = session.deadline();
        if before != after {
            before.map(|at| self.session_deadlines.remove(&(at, conn)));
            after.map(|at| self.session_deadlines.insert((at, conn)));
        }
        let awaits = session.lookahead_until();
        if awaited != awaits {
            if awaited.is_some() {
                self.forget_lookahead(conn);
            }
            self.lookaheads.extend(awaits.map(|until| (until, conn)));
        }
    }

    /// The session has its message. It is nearly always the last one that began to wait.
    fn forget_lookahead(&mut self, conn: ConnId) {
        if self
            .lookaheads
            .last()
            .is_some_and(|(_, last)| *last == conn)
        {
            self.lookaheads.pop();
        } else {
            self.lookaheads.retain(|(_, other)| *other != conn);
        }
    }

    /// Passes a cancel request that has come to this node to the session's shard.
    pub(super) fn cancel(&mut self, pid: i32, secret: i32) {
        let here = self.core.borrow().config.shard;
        let Some(shard) = pid_shard(pid) else {
            return;
        };
        if shard == here {
            if let Some(conn) = self.conn_of(pid) {
                self.with_session(conn, |session, cx| session.on_cancel(cx, secret));
            }
        } else if shard.node() == here.node()
            && shard.index() < self.core.borrow().config.shards_per_node
        {
            let message = Message::Local(LocalMessage::Cancel { pid, secret });
            self.core.borrow_mut().send(shard, message, Position(0));
        }
    }

    /// Another session's order to one of this shard. Returns whether there is such a session.
    pub(super) fn signal(&mut self, pid: i32, terminate: bool) -> bool {
        let conn = self.conn_of(pid);
        if let Some(conn) = conn {
            self.with_session(conn, |session, cx| match terminate {
                true => session.terminate_from_outside(cx),
                false => session.cancel(cx),
            });
        }
        conn.is_some()
    }

    /// The connection of the session with this backend number.
    pub(super) fn conn_of(&self, pid: i32) -> Option<ConnId> {
        let has = |conn: &&ConnId| {
            let session = self.sessions.get(conn);
            session.is_some_and(|session| session.pid() == pid && !session.is_closed())
        };
        self.conns.iter().find(has).copied()
    }

    /// Wakes the sessions that are due.
    pub(super) fn tick_sessions(&mut self, now: Time) {
        // Each due session has one turn, whatever it asks for next.
        let later = self
            .session_deadlines
            .split_off(&(Time(now.0.saturating_add(1)), ConnId(0)));
        let due = core::mem::replace(&mut self.session_deadlines, later);
        for (_, conn) in due {
            self.with_session(conn, |session, cx| session.on_tick(cx));
            let next = self
                .sessions
                .get(&conn)
                .and_then(|session| session.deadline());
            next.map(|at| self.session_deadlines.insert((at, conn)));
        }
        while let Some((at, conn)) = self.lookaheads.first().copied() {
            if at > now {
                break;
            }
            self.lookaheads.remove(0);
            self.with_session(conn, |session, cx| session.on_tick(cx));
        }
    }
}
