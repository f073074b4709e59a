//! SELECT that locks rows without waiting for a lock: NOWAIT, SKIP LOCKED.

use super::from::Locking;
use super::rel::Rel;
use base::{SqlError, SqlState};
use txn::LockMode;

/// What happens with rows that another transaction has locked, from the weakest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum AtOnce {
    /// SKIP LOCKED.
    Skip,
    /// NOWAIT.
    Fail,
}

impl AtOnce {
    /// Its words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            AtOnce::Skip => "SKIP LOCKED",
            AtOnce::Fail => "NOWAIT",
        }
    }
}

/// Rows of one table are locked at once or not at all.
pub(super) struct Locked {
    /// The table is bound without a lock.
    pub(super) plain: Locking,
    mode: LockMode,
    at_once: AtOnce,
}

impl Locked {
    /// `None`: rows are locked as they are read, or not at all.
    pub(super) fn of(locking: &Locking) -> Option<Locked> {
        let (mode, at_once) = locking.mode.zip(locking.at_once)?;
        let plain = Locking {
            mode: None,
            ..locking.clone()
        };
        Some(Locked {
            plain,
            mode,
            at_once,
        })
    }

    /// Checks that the query reads one table.
    ///
    /// # Errors
    /// 0A000.
    pub(super) fn check(&self, rel: &Rel) -> Result<(), SqlError> {
        match rel {
            Rel::Table { .. } => Ok(()),
            Rel::Filter {
                input,
                conditions: _,
                secure: true,
            } if matches!(**input, Rel::Table { .. }) => Ok(()),
            _ => Err(refusal(self.at_once.words(), "more than one table")),
        }
    }

    /// Whether locked rows are passed over.
    pub(super) fn skips(&self) -> bool {
        self.at_once == AtOnce::Skip
    }

    /// The rows of `rel`, locked one after the other if there is such a clause.
    pub(super) fn over(locked: Option<Locked>, rel: Rel) -> Rel {
        let Some(locked) = locked else {
            return rel;
        };
        Rel::Locked {
            input: Box::new(rel),
            mode: locked.mode,
            skips: locked.skips(),
        }
    }
}

/// 0A000 of a query whose rows cannot be locked one by one. `what` it has besides one table.
pub fn refusal(words: &str, what: &str) -> SqlError {
    let message = format!("{words} is not supported with {what}");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        .hint("Lock the rows of one table in a subquery or WITH, and join its result.")
}
