//! What SHOW SESSIONS tells of a session.

use super::block::Block;
use super::settings::isolation_name;
use super::{Activity, Session};
use base::Time;
use expr::Ends;

/// One session as others see it.
#[derive(Clone, PartialEq, Debug)]
pub struct Description<'a> {
    /// Backend number.
    pub pid: i32,
    /// User name.
    pub user: &'a str,
    /// Database.
    pub database: &'a str,
    /// Setting `application_name`.
    pub application_name: &'a str,
    /// What it does, in the words of `pg_stat_activity`.
    pub state: &'static str,
    /// Text of the statement that runs or ran last; empty before the first.
    pub statement: &'a str,
    /// Since when it is in this state.
    pub since: Time,
    /// Where the client is.
    pub ends: Option<&'a Ends>,
    /// When it connected.
    pub connected: Time,
    /// Isolation level of its transaction, or of the next one.
    pub isolation: &'static str,
    /// When its transaction began, if one is open.
    pub txn_since: Option<Time>,
    /// When the statement began that runs or ran last.
    pub statement_since: Option<Time>,
}

impl Session {
    fn open_since(&self) -> Option<Time> {
        let open = self.txn.is_some() || self.block_time.is_some();
        open.then(|| self.block_time.unwrap_or(self.txn_since))
    }

    /// What SHOW SESSIONS tells of this session.
    pub fn describe(&self) -> Description<'_> {
        let idle = matches!(self.activity, Activity::Idle) && self.query.is_none();
        let state = match self.block {
            _ if !idle => "active",
            Block::None | Block::Implicit => "idle",
            Block::Explicit => "idle in transaction",
            Block::Failed => "idle in transaction (aborted)",
        };
        Description {
            pid: self.pid,
            user: &self.user,
            database: &self.database,
            application_name: self.settings.get("application_name").unwrap_or_default(),
            state,
            statement: self.statement_text(),
            since: self.since,
            ends: self.link.ends.as_ref(),
            connected: self.connected,
            isolation: isolation_name(self.present_modes().isolation),
            txn_since: self.open_since(),
            statement_since: self.statement.as_ref().map(|_| self.statement_since),
        }
    }
}
