//! How one attempt at a transaction ended.

use super::ServerError;
use alloc::string::String;

/// How a transaction ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// COMMIT was acknowledged.
    Committed,
    /// Rolled back because the input says so; the work was done up to there.
    RolledBack,
}

/// A transaction that ended as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// How.
    pub ending: Ending,
    /// What the workload counts per transaction, such as delivered orders.
    pub units: u64,
    /// What it had to leave out, such as districts without a waiting order.
    pub skipped: u64,
}

impl Done {
    /// It has committed, and nothing was left out.
    pub fn committed(units: u64) -> Done {
        Done {
            ending: Ending::Committed,
            units,
            skipped: 0,
        }
    }
}

/// One attempt that did not end as it should. `E` is the error of the connection.
#[derive(Clone, Debug)]
pub enum Failure<E> {
    /// The server ended the transaction; nothing of it happened. The session can be used further.
    Aborted(ServerError),
    /// The client saw that another transaction was faster, and rolled back.
    Conflict(&'static str),
    /// The connection is gone before COMMIT was sent: nothing of it happened.
    Lost(E),
    /// The connection is gone, or the server said it does not know, after COMMIT was sent: it may
    /// or may not have happened. Never retried.
    Unknown(E),
    /// The answers contradict the workload's own rules: a wrong result, never retried.
    Wrong(String),
}

/// SQLSTATEs by which a server says that it does not know whether a transaction committed: the
/// class of connection exceptions (08007 is transaction_resolution_unknown) and
/// statement_completion_unknown.
pub fn is_unknown(sqlstate: &str) -> bool {
    sqlstate.starts_with("08") || sqlstate == "40003"
}
