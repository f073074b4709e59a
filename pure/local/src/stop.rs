//! Why an operation does not go on.

use base::SqlError;
use txn::{AbortReason, OpError};

/// Why an operation does not go on. `W`: what a protocol waits for besides.
#[derive(Debug)]
pub enum Stop<W> {
    /// It waits in a lock queue, under the number of its job.
    Lock,
    /// Others get their turn.
    Budget,
    /// It waits until the journal has caught up.
    Journal,
    /// It waits for something that only its protocol knows.
    Wait(W),
    /// It has failed.
    Fail(OpError),
}

impl<W> Stop<W> {
    /// The protocol rolls the transaction back.
    pub fn aborted(reason: AbortReason) -> Stop<W> {
        Stop::Fail(OpError::Aborted(reason))
    }
}

impl<W> From<OpError> for Stop<W> {
    fn from(error: OpError) -> Stop<W> {
        Stop::Fail(error)
    }
}

impl<W> From<AbortReason> for Stop<W> {
    fn from(reason: AbortReason) -> Stop<W> {
        Stop::Fail(OpError::Aborted(reason))
    }
}

impl<W> From<SqlError> for Stop<W> {
    fn from(error: SqlError) -> Stop<W> {
        Stop::Fail(OpError::Sql(error))
    }
}
