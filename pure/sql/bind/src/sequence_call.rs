//! The functions about sequences that a call finds out about.

/// What is asked of a sequence that the first argument names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SequenceCall {
    /// `nextval`.
    Next,
    /// `currval`.
    Current,
    /// `lastval`: of the sequence from which the session drew last.
    Newest,
    /// `setval`: the number, and whether it counts as given.
    Set,
    /// `pg_sequence_last_value`: the last number that was given to a shard.
    Last,
    /// An array of the last number and of 1 if it was given, else 0.
    State,
}

impl SequenceCall {
    /// Whether the call changes the sequence.
    pub fn writes(self) -> bool {
        matches!(self, SequenceCall::Next | SequenceCall::Set)
    }

    /// One of these privileges on the sequence is needed.
    pub fn wanted(self) -> &'static [&'static str] {
        match self {
            SequenceCall::Next => &["USAGE", "UPDATE"],
            SequenceCall::Set => &["UPDATE"],
            SequenceCall::Current
            | SequenceCall::Newest
            | SequenceCall::Last
            | SequenceCall::State => &["USAGE", "SELECT"],
        }
    }
}
