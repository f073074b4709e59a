//! What all attempts of a run have seen, up to a bound.

use crate::entry::{self, Entry, Payment};
use crate::registers;
use crate::sighting::Access;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use check::{Demand, History, Level, Outcome, Verdict};
use workload::tpcc::conditions::Condition;
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

impl Attempt {
    /// As four numbers.
    pub fn words(self) -> [u64; 4] {
        let outcome = match self.outcome {
            Outcome::Committed => 0,
            Outcome::Aborted => 1,
            Outcome::Unknown => 2,
        };
        [self.process.into(), self.invoked, self.completed, outcome]
    }

    /// From four numbers. `None`: they are no attempt.
    pub fn from_words([process, invoked, completed, outcome]: [u64; 4]) -> Option<Attempt> {
        let outcome = match outcome {
            0 => Outcome::Committed,
            1 => Outcome::Aborted,
            2 => Outcome::Unknown,
            _ => return None,
        };
        (invoked <= completed && completed <= TIME_MAX).then_some(Attempt {
            process: u32::try_from(process).ok()?,
            invoked,
            completed,
            outcome,
        })
    }
}

/// The latest time, in nanoseconds: a run of some years.
const TIME_MAX: u64 = 1 << 58;

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

/// What an attempt has seen and entered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Versions.
    pub accesses: Vec<Access>,
    /// What has none.
    pub entries: Vec<Entry>,
}

/// What all attempts have seen.
#[derive(Clone, Debug)]
pub struct Book {
    /// Each with the place behind its last access.
    pub(crate) attempts: Vec<(Attempt, usize)>,
    pub(crate) accesses: Vec<Access>,
    /// Each with the number of its attempt.
    entries: Vec<(u32, Entry)>,
    operations_max: usize,
    /// Attempts that have begun and are not here: there was no room, or they never ended.
    pub(crate) missing: u64,
    /// The first of them has begun then, or later; [`u64::MAX`]: none is missing.
    hidden_from: u64,
}

impl Book {
    /// An empty one for about so many operations: attempts that are under way when it is full are
    /// kept.
    pub fn new(operations_max: usize) -> Book {
        Book {
            attempts: Vec::new(),
            accesses: Vec::new(),
            entries: Vec::new(),
            operations_max,
            missing: 0,
            hidden_from: u64::MAX,
        }
    }

    /// Whether an attempt that begins now is to be kept.
    pub fn has_room(&self) -> bool {
        self.accesses.len() < self.operations_max
    }

    /// Adds an attempt that began when there was room.
    pub fn keep(&mut self, attempt: Attempt, seen: &Seen) {
        let number = self.attempts.len() as u32;
        self.accesses.extend_from_slice(&seen.accesses);
        let entries = seen.entries.iter().map(|entry| (number, *entry));
        self.entries.extend(entries);
        self.attempts.push((attempt, self.accesses.len()));
    }

    /// Says that so many attempts are not here, of which none has begun before this time.
    pub fn miss(&mut self, count: u64, from: u64) {
        self.missing += count;
        if count > 0 {
            self.hidden_from = self.hidden_from.min(from);
        }
    }

    /// The time from which on attempts are missing; [`u64::MAX`]: none is.
    pub fn hidden_from(&self) -> u64 {
        self.hidden_from
    }

    /// The time from which on versions may have been written of which the book does not know: what
    /// an attempt of unknown outcome has done may not have been answered.
    pub(crate) fn gaps_from(&self) -> u64 {
        let attempts = self.attempts.iter();
        let unknown = attempts.filter(|(attempt, _)| attempt.outcome == Outcome::Unknown);
        let first = unknown.map(|(attempt, _)| attempt.invoked).min();
        first.unwrap_or(u64::MAX).min(self.hidden_from)
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

    /// Attempts that are not here.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// All times count from so much later.
    pub fn set_back(&mut self, by: u64) {
        for (attempt, _) in &mut self.attempts {
            attempt.invoked = attempt.invoked.saturating_sub(by);
            attempt.completed = attempt.completed.saturating_sub(by);
        }
        if self.missing > 0 {
            self.hidden_from = self.hidden_from.saturating_sub(by);
        }
    }

    /// Attempts with all that each has seen and entered.
    pub fn sights(&self) -> impl Iterator<Item = (&Attempt, Seen)> {
        let mut entries = self.entries.iter().peekable();
        let attempts = (0u32..).zip(self.attempts());
        attempts.map(move |(at, (attempt, accesses))| {
            let mut own = Vec::new();
            while let Some((_, entry)) = entries.next_if(|(number, _)| *number == at) {
                own.push(*entry);
            }
            let seen = Seen {
                accesses: accesses.to_vec(),
                entries: own,
            };
            (attempt, seen)
        })
    }

    /// What was entered beside versions, each with the outcome of its attempt.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (Outcome, &Entry)> {
        let outcome = |number: u32| self.attempts[number as usize].0.outcome;
        let entries = self.entries.iter();
        entries.map(move |(number, entry)| (outcome(*number), entry))
    }

    /// Judges what orders took from the stock (clause 2.4.2.2). `has_other_changes`: other
    /// transactions than orders set S_QUANTITY.
    pub fn judge_stock(&self, has_other_changes: bool) -> Condition {
        entry::judge_stock(self, has_other_changes)
    }

    /// Judges the rows of HISTORY that were entered since the run began, by how many there are of
    /// each. `knows_all`: nobody else has entered any.
    pub fn judge_payments(&self, rows: &BTreeMap<Payment, u64>, knows_all: bool) -> Condition {
        entry::judge_payments(self, rows, knows_all)
    }

    /// Whether there are such versions.
    pub(crate) fn has_gaps(&self) -> bool {
        self.gaps_from() < u64::MAX
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
