//! What an event loop has: transactions that are due, that are on their way, and connections.

use crate::shape::{Done, Ending, Failure, Workload};
use links::stream::Lateness;
use std::pin::Pin;

/// A transaction on its way, whatever happens to its attempts.
pub(super) struct Job {
    /// Index among the thread's terminals; `None`: a deferred one.
    pub(super) terminal: Option<usize>,
    pub(super) kind: usize,
    pub(super) due_us: u64,
    pub(super) begin_us: u64,
    pub(super) attempts: u32,
}

/// What an attempt leaves behind.
pub(super) struct Ended<W: Workload> {
    pub(super) session: W::Session,
    pub(super) input: W::Input,
    pub(super) result: Result<Done, Failure>,
}

/// Of a transaction that has not happened.
pub(super) const NOTHING: Done = Done {
    ending: Ending::RolledBack,
    units: 0,
    skipped: 0,
};

pub(super) type Attempt<'a, W> = Pin<Box<dyn Future<Output = Ended<W>> + 'a>>;

/// What a connection does.
pub(super) enum Work<'a, W: Workload> {
    Idle(W::Session),
    Busy(Attempt<'a, W>, Job),
    /// Before the next attempt; without a session, it has to be connected again.
    Pausing(Option<W::Session>, W::Input, Job),
    Connecting(Option<(W::Input, Job)>),
}

/// A connection.
pub(super) struct Slot<'a, W: Workload> {
    /// Among all of the run.
    pub(super) number: u32,
    pub(super) is_background: bool,
    pub(super) lateness: Lateness,
    /// When the server was last heard of, or asked.
    pub(super) since_us: u64,
    /// `None` while the loop holds it.
    pub(super) work: Option<Work<'a, W>>,
}

/// A transaction that is due and has no connection yet.
pub(super) struct Waiting<W: Workload> {
    pub(super) terminal: usize,
    pub(super) due_us: u64,
    /// Drawn when it begins, unless keying came first.
    pub(super) input: Option<W::Input>,
}

/// A transaction that runs in the background.
pub(super) struct Deferred<W: Workload> {
    pub(super) input: W::Input,
    pub(super) kind: usize,
    pub(super) due_us: u64,
}

/// What happens at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Alarm {
    /// A terminal has thought, and begins to key.
    Key(usize),
    /// A terminal has keyed.
    Due(usize),
    /// A connection makes its next attempt.
    Again(usize),
    /// A connection is to be made again.
    Connect(usize),
}

/// The state of a terminal.
pub(super) struct Terminal<W: Workload> {
    pub(super) endpoint: usize,
    pub(super) state: W::Terminal,
    /// What it keys.
    pub(super) next: Option<W::Input>,
}
