//! What all attempts of a run have seen, up to a bound.

use crate::registers;
use crate::sighting::Access;
use alloc::vec::Vec;
use check::{Demand, History, Level, Outcome, Verdict};
use workload::wire::{Done, Ending, Failure};

/// Operations that are kept where nothing else is said: some 50,000 transactions.
pub const OPERATIONS_MAX: usize = 1_000_000;

/// One attempt at a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The connection, from 1: its attempts follow each other.
    pub process: u32,
    /// When it was begun, above 0, by the clock of all.
    pub invoked: u64,
    /// When its outcome was known.
    pub completed: u64,
    /// How it ended.
    pub outcome: Outcome,
}

/// What is known of an attempt. An answer that cannot be may have come behind COMMIT.
pub fn outcome_of<E>(result: &Result<Done, Failure<E>>) -> Outcome {
    match result {
        Ok(done) => match done.ending {
            Ending::Committed => Outcome::Committed,
            Ending::RolledBack => Outcome::Aborted,
        },
        Err(Failure::Aborted(_) | Failure::Conflict(_) | Failure::Lost(_)) => Outcome::Aborted,
        Err(Failure::Unknown(_) | Failure::Wrong(_)) => Outcome::Unknown,
    }
}

/// What all attempts have seen.
#[derive(Debug)]
pub struct Book {
    /// Each with the place behind its last access.
    pub(crate) attempts: Vec<(Attempt, usize)>,
    pub(crate) accesses: Vec<Access>,
    operations_max: usize,
    /// Attempts that have begun and are not here: there was no room, or they never ended.
    pub(crate) missing: u64,
}

impl Book {
    /// An empty one for about so many operations: attempts that are under way when it is full are
    /// kept.
    pub fn new(operations_max: usize) -> Book {
        Book {
            attempts: Vec::new(),
            accesses: Vec::new(),
            operations_max,
            missing: 0,
        }
    }

    /// Whether an attempt that begins now is to be kept.
    pub fn has_room(&self) -> bool {
        self.accesses.len() < self.operations_max
    }

    /// Adds an attempt that began when there was room.
    pub fn keep(&mut self, attempt: Attempt, seen: &[Access]) {
        self.accesses.extend_from_slice(seen);
        self.attempts.push((attempt, self.accesses.len()));
    }

    /// Says that so many attempts are not here.
    pub fn miss(&mut self, count: u64) {
        self.missing += count;
    }

    /// Attempts with what each has seen.
    pub fn attempts(&self) -> impl Iterator<Item = (&Attempt, &[Access])> {
        let mut begin = 0;
        self.attempts.iter().map(move |(attempt, end)| {
            let seen = &self.accesses[begin..*end];
            begin = *end;
            (attempt, seen)
        })
    }

    /// Whether versions may have been written of which the book does not know: attempts are
    /// missing, or it is not known how one ended.
    pub(crate) fn has_gaps(&self) -> bool {
        let is_unknown = |(attempt, _): &(Attempt, usize)| attempt.outcome == Outcome::Unknown;
        self.missing > 0 || self.attempts.iter().any(is_unknown)
    }

    /// Judges it by a level. Time is that of sorting; memory some 150 bytes for an operation.
    pub fn judge(self, level: Level, demand: &Demand) -> Judged {
        let (operations, missing) = (self.accesses.len() as u64, self.missing);
        let mut history = registers::history(self);
        let mut verdict = check::check_with(&history, level, demand);
        if !verdict.anomalies.is_empty() {
            // Told again with the names of the rows.
            let told = verdict.anomalies.iter().flat_map(|found| &found.txns);
            let txns: Vec<usize> = told.copied().collect();
            registers::name_keys_of(&mut history, txns.into_iter());
            verdict = check::check_with(&history, level, demand);
        }
        Judged {
            verdict,
            history,
            operations,
            missing,
        }
    }
}

/// A run's own history, and what it shows.
#[derive(Clone, Debug)]
pub struct Judged {
    /// What it shows.
    pub verdict: Verdict,
    /// The history. Its transaction 0 stands for all that was there before the run.
    pub history: History,
    /// Reads and writes that were kept.
    pub operations: u64,
    /// Attempts that were not kept.
    pub missing: u64,
}
