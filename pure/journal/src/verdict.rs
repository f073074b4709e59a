//! The decision table of recovery. `docs/formats.md` shows it to readers; the test walks it.

/// What the journal and the checkpoint tables say about one transaction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Evidence {
    /// A record that decides and carries the writes itself: a commit, or the writes of a decision.
    OneRecord {
        /// Whether all chunks that the record names are there.
        whole: bool,
    },
    /// One shard of this node as participant.
    Participant {
        /// Whether the participant has promised.
        prepared: bool,
        /// Whether all chunks of the promise are there.
        whole: bool,
        /// Outcome that the participant has recorded.
        heard: Heard,
        /// Whether the decision to commit is in this journal.
        decided: bool,
        /// Whether the coordinator is on this node, so that its decision would be in this journal.
        coordinator_here: bool,
        /// Whether the promise names others with which it commits, decided or not.
        named: bool,
    },
    /// One shard of this node as coordinator.
    Coordinator {
        /// Whether the coordinator has decided to commit with prepared participants.
        decided: bool,
        /// Whether all participants have acknowledged.
        ended: bool,
    },
}

/// The outcome that a participant has recorded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum Heard {
    Nothing,
    Commit,
    Abort,
}

/// What recovery does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// Apply the writes at the commit timestamp.
    Redo,
    /// Apply the writes at the timestamp of the decision, and record that the participant knows.
    RedoDecided,
    /// No promise was made, or the transaction is over: do nothing.
    Nothing,
    /// Drop the writes and record the abort: the coordinator died before it decided.
    PresumeAbort,
    /// Lock the keys and ask the coordinator, or as the coordinator the others that are named.
    Hold,
    /// Tell the participants again.
    Tell,
    /// Refuse to start: a commit without a promise.
    CorruptOutcome,
    /// Refuse to start: writes are missing.
    CorruptChunks,
    /// Refuse to start: both outcomes are recorded.
    CorruptContradiction,
}

/// The decision table: what to do with each combination of evidence.
///
/// Presumed abort: no evidence of a decision means abort, but only where the decision would be. A
/// participant whose coordinator is on another node never guesses (rule C6), and neither does one
/// whose commit the promises make (rule C17).
pub fn judge(evidence: Evidence) -> Verdict {
    use Evidence::{Coordinator, OneRecord, Participant};
    use Heard::{Abort, Commit, Nothing};
    match evidence {
        OneRecord { whole: true } => Verdict::Redo,
        OneRecord { whole: false } => Verdict::CorruptChunks,

        Participant {
            prepared: false,
            heard: Nothing | Abort,
            ..
        } => Verdict::Nothing,
        Participant {
            prepared: false,
            heard: Commit,
            ..
        } => Verdict::CorruptOutcome,
        Participant {
            prepared: true,
            whole: false,
            ..
        } => Verdict::CorruptChunks,
        Participant {
            prepared: true,
            whole: true,
            heard: Commit,
            ..
        } => Verdict::Redo,
        Participant {
            prepared: true,
            whole: true,
            heard: Abort,
            decided: false,
            ..
        } => Verdict::Nothing,
        Participant {
            prepared: true,
            whole: true,
            heard: Abort,
            decided: true,
            ..
        } => Verdict::CorruptContradiction,
        Participant {
            prepared: true,
            whole: true,
            heard: Nothing,
            decided: true,
            ..
        } => Verdict::RedoDecided,
        Participant {
            prepared: true,
            whole: true,
            heard: Nothing,
            decided: false,
            coordinator_here: true,
            named: false,
        } => Verdict::PresumeAbort,
        Participant {
            prepared: true,
            whole: true,
            heard: Nothing,
            ..
        } => Verdict::Hold,

        Coordinator {
            decided: true,
            ended: false,
        } => Verdict::Tell,
        Coordinator {
            decided: true,
            ended: true,
        }
        | Coordinator { decided: false, .. } => Verdict::Nothing,
    }
}
