//! LISTEN, UNLISTEN and NOTIFY: what a session tells others when it commits, and what it is told.

use super::{Activity, Block, Session, SessionCx};
use base::{DatabaseId, Position, SqlError, SqlState};
use exec::port::Notification;
use std::collections::BTreeSet;
use std::sync::Arc;
use wire::{Reply, Severity};

/// Bytes of notifications that one transaction may leave, and that may wait for one session.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// What a session tells others.
#[derive(Debug)]
pub enum Told {
    /// A transaction has committed: those who listen are told, once the journal is durable to the
    /// position.
    Notify {
        /// Database of the session.
        database: DatabaseId,
        /// Backend number of the session.
        pid: i32,
        /// What it tells, in order.
        notifications: Vec<Notification>,
        /// The position of the commit.
        wait: Position,
    },
    /// The session with this backend number gives its advisory locks back (DISCARD ALL).
    UnlockAll(i32),
}

/// A change of the channels, which takes effect when the transaction commits.
#[derive(Debug)]
enum Change {
    Listen(Arc<str>),
    /// `None`: all.
    Unlisten(Option<Arc<str>>),
}

/// What a session listens to, and what it tells.
#[derive(Default, Debug)]
pub(super) struct Listening {
    channels: BTreeSet<Arc<str>>,
    /// Changes by the open transaction.
    changes: Vec<Change>,
    /// What the open transaction tells, and whether a statement at the coordinator does: that one
    /// may run again.
    telling: Vec<(Notification, bool)>,
    /// Those in `telling`, which tells each once.
    known: BTreeSet<Notification>,
    telling_bytes: usize,
    /// What was told and does not belong into an open block.
    heard: Vec<(i32, Notification, Position)>,
    heard_bytes: usize,
}

impl Listening {
    fn add(&mut self, notification: Notification, by_statement: bool) -> Result<(), SqlError> {
        if self.known.contains(&notification) {
            return Ok(());
        }
        self.telling_bytes += 2 * notification.size_bytes();
        if self.telling_bytes > WAITING_BYTES_MAX {
            return Err(SqlError::new(
                SqlState::OUT_OF_MEMORY,
                "the transaction has too many notifications",
            ));
        }
        self.known.insert(notification.clone());
        self.telling.push((notification, by_statement));
        Ok(())
    }

    /// Takes back what came after a savepoint.
    fn go_back(&mut self, (changes, telling): (usize, usize)) {
        self.changes.truncate(changes);
        self.telling.truncate(telling);
        let left = self.telling.iter();
        self.known = left.map(|(notification, _)| notification.clone()).collect();
        self.telling_bytes = self.known.iter().map(|told| 2 * told.size_bytes()).sum();
    }

    fn is_empty(&self) -> bool {
        self.channels.is_empty()
            && self.changes.is_empty()
            && self.telling.is_empty()
            && self.heard.is_empty()
    }
}

impl Session {
    fn listening(&mut self) -> &mut Listening {
        self.listening.get_or_insert_default()
    }

    pub(super) fn listen(
        &mut self,
        cx: &mut SessionCx<'_>,
        channel: &str,
    ) -> Result<&'static str, SqlError> {
        Notification::new(channel, "")?;
        self.listening()
            .changes
            .push(Change::Listen(channel.into()));
        self.tell_at_once(cx);
        Ok("LISTEN")
    }

    pub(super) fn unlisten(
        &mut self,
        cx: &mut SessionCx<'_>,
        channel: Option<&str>,
    ) -> Result<&'static str, SqlError> {
        let change = Change::Unlisten(channel.map(Arc::from));
        self.listening().changes.push(change);
        self.tell_at_once(cx);
        Ok("UNLISTEN")
    }

    pub(super) fn notify(
        &mut self,
        cx: &mut SessionCx<'_>,
        channel: &str,
        payload: &str,
    ) -> Result<&'static str, SqlError> {
        let notification = Notification::new(channel, payload)?;
        self.listening().add(notification, false)?;
        self.tell_at_once(cx);
        Ok("NOTIFY")
    }

    /// A command of its own is a transaction of its own.
    fn tell_at_once(&mut self, cx: &mut SessionCx<'_>) {
        if self.block == Block::None {
            self.tell_others(cx, Position(0));
        }
    }

    /// Takes what a statement tells by `pg_notify`; the coordinator has counted it.
    pub(super) fn take_notifications(&mut self, notifications: Vec<Notification>) {
        for notification in notifications {
            if self.listening().add(notification, true).is_err() {
                let text = "the transaction has too many notifications; the rest is not told";
                self.warn(SqlState::WARNING, text);
                return;
            }
        }
    }

    /// The statements of the transaction run again.
    pub(super) fn forget_notifications(&mut self) {
        if let Some(listening) = &mut self.listening {
            listening.telling.retain(|(_, by_statement)| !by_statement);
            let left = listening.telling.iter();
            listening.known = left.map(|(notification, _)| notification.clone()).collect();
        }
    }

    /// The transaction has committed.
    pub(super) fn tell_others(&mut self, cx: &mut SessionCx<'_>, wait: Position) {
        if self.listening.is_some() {
            self.tell_those(cx, wait);
        }
    }

    #[cold]
    fn tell_those(&mut self, cx: &mut SessionCx<'_>, wait: Position) {
        let database = self.database(cx).ok().map(|database| database.id);
        let Some(listening) = &mut self.listening else {
            return;
        };
        for change in core::mem::take(&mut listening.changes) {
            match change {
                Change::Listen(channel) => drop(listening.channels.insert(channel)),
                Change::Unlisten(None) => listening.channels.clear(),
                Change::Unlisten(Some(channel)) => drop(listening.channels.remove(&channel)),
            }
        }
        listening.known.clear();
        listening.telling_bytes = 0;
        let telling = core::mem::take(&mut listening.telling);
        let notifications: Vec<Notification> = telling.into_iter().map(|(told, _)| told).collect();
        for notification in &notifications {
            if listening.channels.contains(&notification.channel) {
                listening.heard_bytes += notification.size_bytes();
                listening.heard.push((self.pid, notification.clone(), wait));
            }
        }
        if listening.is_empty() {
            self.listening = None;
        }
        if let (Some(database), false) = (database, notifications.is_empty()) {
            cx.told.push(Told::Notify {
                database,
                pid: self.pid,
                notifications,
                wait,
            });
        }
    }

    /// What the transaction is to tell at a savepoint: numbers of changes and notifications.
    pub(super) fn mark_telling(&self) -> (usize, usize) {
        let listening = self.listening.as_ref();
        listening.map_or((0, 0), |it| (it.changes.len(), it.telling.len()))
    }

    /// Goes back to a savepoint.
    pub(super) fn untell_since(&mut self, mark: (usize, usize)) {
        if let Some(listening) = &mut self.listening {
            listening.go_back(mark);
        }
    }

    /// The transaction has rolled back.
    pub(super) fn untell(&mut self) {
        if let Some(listening) = &mut self.listening {
            listening.changes.clear();
            listening.telling.clear();
            listening.known.clear();
            listening.telling_bytes = 0;
        }
    }

    /// DISCARD ALL: the session listens to nothing any more, and gives its advisory locks back.
    pub(super) fn leave_others(&mut self, cx: &mut SessionCx<'_>) {
        self.listening = None;
        cx.told.push(Told::UnlockAll(self.pid));
    }

    /// Whether the session listens to anything.
    #[must_use]
    pub fn listens(&self) -> bool {
        self.listening.is_some()
    }

    /// The node that kept the session's advisory locks is lost, and the locks with it.
    pub fn lose_locks(&mut self, cx: &mut SessionCx<'_>) {
        if matches!(self.activity, Activity::Ending) {
            self.terminated = true;
            return;
        }
        let error = SqlError::new(
            SqlState::CRASH_SHUTDOWN,
            "terminating connection because the node that kept its advisory locks is lost",
        );
        self.fatal(cx, error);
    }

    /// Another session has told something.
    pub fn on_notifications(
        &mut self,
        cx: &mut SessionCx<'_>,
        (database, pid, wait): (DatabaseId, i32, Position),
        notifications: &[Notification],
    ) {
        let own = self.database(cx).ok().map(|database| database.id);
        let Some(listening) = &mut self.listening else {
            return;
        };
        if pid == self.pid || own != Some(database) {
            return;
        }
        for notification in notifications {
            if listening.channels.contains(&notification.channel) {
                listening.heard_bytes += notification.size_bytes();
                let heard = (pid, notification.clone(), wait);
                listening.heard.push(heard);
            }
        }
        if listening.heard_bytes > WAITING_BYTES_MAX {
            let error = SqlError::new(
                SqlState::OUT_OF_MEMORY,
                "too many notifications wait for the end of the transaction",
            );
            self.fatal(cx, error);
        } else if self.is_ready && self.block == Block::None {
            self.say_notifications();
            self.release(cx);
        }
    }

    /// Says what the session was told, unless it is in a block.
    pub(super) fn say_notifications(&mut self) {
        if self.listening.is_none() || self.block != Block::None {
            return;
        }
        let listening = self.listening();
        listening.heard_bytes = 0;
        for (pid, notification, wait) in core::mem::take(&mut listening.heard) {
            let Notification { channel, payload } = notification;
            let reply = Reply::Notification {
                pid,
                channel,
                payload,
            };
            self.say(reply, wait);
        }
    }

    /// A warning that belongs to the running statement, or a line of VERBOSE.
    pub(super) fn warn_of_step(&mut self, warning: SqlError) {
        let severity = match warning.state() {
            SqlState::SUCCESS => Severity::Info,
            _ => Severity::Warning,
        };
        if self.settings.knobs.tells(severity) {
            self.say_of_step(Reply::Error(severity, warning), Position(0));
        }
    }
}
