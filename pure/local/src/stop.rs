//! Why an operation does not go on.

use base::SqlError;
use txn::{AbortReason, OpError};

/// Why an operation does not go on. `W`: what else a protocol waits for.
#[derive(Debug)]
pub enum Stop<W> {
    /// The operation waits in a lock queue, under the number of its job.
    Lock,
    /// The operation has used up its budget: other jobs get their turn.
    Budget,
    /// The operation waits until the journal has caught up.
    Journal,
    /// The operation waits for something that only its protocol knows.
    Wait(W),
    /// The operation has failed.
    Fail(OpError),
}

impl<W> Stop<W> {
    /// The operation has failed because the protocol rolls its transaction back.
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
