//! How sessions lock out and tell each other: advisory locks, numbers that they lock for purposes
//! of their own, and the [`Notification`]s of NOTIFY.
//!
//! One shard keeps those of a database ([`Locks`], [`Keeping`]); a session asks it for each
//! ([`Ask`], [`Asks`]).
//!
//! ```text
//! Ask::Lock ──> Yes                     free, or held by the session already: it counts
//!           ──> No                      another session is in the way, and it does not wait
//!           ──> (queue) ──> Yes         the others have gone, in order of arrival
//!                       ──> TimedOut    lock_timeout has passed
//!           ──> Deadlock                the sessions in the way wait for this one
//! ```
//!
//! A session holds a lock until it gives it back as often as it has taken it, or until its
//! transaction, or the session, ends. Locks of a session exclude no locks of the same session.
//!
//! The crate knows no messages and no connections: the caller says which sessions are gone.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod keeping;
mod locks;
mod notification;
mod together;

#[cfg(test)]
mod keeping_tests;
#[cfg(test)]
mod tests;

pub use keeping::{Effect, Keeping, LOCKS_END_US, SESSIONS_END_US, START_US};
pub use locks::{HOLDS_MAX, Held, Locks};
pub use notification::Notification;
pub use together::{Asks, Together, keeper};

use alloc::string::String;
use base::{DatabaseId, ShardId, TxnId};
use serde::{Deserialize, Serialize};

/// What is locked: one number of 64 bits, or two of 32, which are different things.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct LockKey {
    /// Database of the session.
    pub database: DatabaseId,
    /// The upper half of the one number, or the first of the two.
    pub high: u32,
    /// The lower half of the one number, or the second of the two.
    pub low: u32,
    /// Whether it is two numbers.
    pub pair: bool,
}

/// Strength of a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Mode {
    /// Many sessions.
    Share,
    /// One session.
    Exclusive,
}

impl Mode {
    /// Its name as PostgreSQL prints it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::Share => "ShareLock",
            Mode::Exclusive => "ExclusiveLock",
        }
    }

    /// Whether two sessions cannot hold these together.
    #[must_use]
    pub fn conflicts(self, other: Mode) -> bool {
        self == Mode::Exclusive || other == Mode::Exclusive
    }
}

/// What a statement asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Ask {
    /// A lock.
    Lock {
        /// What is locked.
        key: LockKey,
        /// How.
        mode: Mode,
        /// Whether it is given back when the transaction ends.
        of_txn: bool,
        /// Whether the statement waits for it.
        waits: bool,
    },
    /// Gives a lock of the session back.
    Unlock {
        /// What is locked.
        key: LockKey,
        /// How.
        mode: Mode,
    },
    /// Gives all locks of the session back.
    UnlockAll,
}

/// A statement that asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Asker {
    /// Shard that is answered.
    pub shard: ShardId,
    /// Number of the request at that shard; none of its lives uses it again.
    pub number: u64,
    /// Backend number of the session.
    pub session: i32,
    /// Transaction of the statement.
    pub txn: TxnId,
}

/// The answer to a statement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// The lock is held, or given back.
    Yes,
    /// Another session has it, or the session had none to give back.
    No,
    /// `lock_timeout` has passed.
    TimedOut,
    /// Who waits for whom, one line for each.
    Deadlock(String),
    /// There are too many locks.
    Full,
}

/// An advisory function of SQL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// `pg_advisory_lock` and its like.
    Lock {
        /// How.
        mode: Mode,
        /// `xact`: whether it is given back when the transaction ends.
        of_txn: bool,
        /// Not `try`: whether it waits. One that does has no result.
        waits: bool,
    },
    /// `pg_advisory_unlock`, `pg_advisory_unlock_shared`.
    Unlock(Mode),
    /// `pg_advisory_unlock_all`.
    UnlockAll,
}

impl Call {
    /// The function with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Call> {
        if name == "pg_advisory_unlock_all" {
            return Some(Call::UnlockAll);
        }
        let rest = name.strip_prefix("pg_")?;
        let (waits, rest) = match rest.strip_prefix("try_") {
            Some(rest) => (false, rest),
            None => (true, rest),
        };
        let rest = rest.strip_prefix("advisory_")?;
        let (mode, rest) = match rest.strip_suffix("_shared") {
            Some(rest) => (Mode::Share, rest),
            None => (Mode::Exclusive, rest),
        };
        match rest {
            "lock" | "xact_lock" => Some(Call::Lock {
                mode,
                of_txn: rest == "xact_lock",
                waits,
            }),
            "unlock" if waits => Some(Call::Unlock(mode)),
            _ => None,
        }
    }

    /// Whether it answers true or false.
    #[must_use]
    pub fn tells(self) -> bool {
        match self {
            Call::Lock { waits, .. } => !waits,
            Call::Unlock(_) => true,
            Call::UnlockAll => false,
        }
    }

    /// What it asks for. `numbers`: one or two arguments; `None` if it wants none.
    #[must_use]
    pub fn ask(self, database: DatabaseId, numbers: &[i64]) -> Option<Ask> {
        let key = match *numbers {
            [number] => Some(LockKey {
                database,
                high: (number >> 32) as u32,
                low: number as u32,
                pair: false,
            }),
            [high, low] => Some(LockKey {
                database,
                high: high as u32,
                low: low as u32,
                pair: true,
            }),
            _ => None,
        };
        match self {
            Call::UnlockAll => Some(Ask::UnlockAll),
            Call::Unlock(mode) => key.map(|key| Ask::Unlock { key, mode }),
            Call::Lock {
                mode,
                of_txn,
                waits,
            } => key.map(|key| Ask::Lock {
                key,
                mode,
                of_txn,
                waits,
            }),
        }
    }
}
