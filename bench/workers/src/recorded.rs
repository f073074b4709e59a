//! What a worker has recorded of the run's own history, in pieces that messages carry.

use super::packed::Unfit;
use drive::tpcc::Recorded;
use versions::{Access, Attempt, Book, Entry, Seen};

/// Reads, writes and entries of a piece: some megabytes. An attempt is in one piece.
const PIECE: usize = 100_000;
/// Most reads, writes and entries of one attempt.
const ATTEMPT_MAX: usize = 100_000;

/// Some attempts, with what they have seen.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Piece {
    /// Each as its words, with how many accesses and entries are its own.
    attempts: Vec<([u64; 4], u32, u32)>,
    accesses: Vec<[u64; 2]>,
    entries: Vec<[u64; 4]>,
}

/// What is said when all pieces were sent.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Summary {
    attempts: u64,
    missing: u64,
    hidden_from: u64,
    since_us: u64,
    knows_all: bool,
}

impl Piece {
    fn len(&self) -> usize {
        self.accesses.len() + self.entries.len()
    }

    /// All that was recorded.
    pub(super) fn all(recorded: &Recorded) -> impl Iterator<Item = Piece> {
        let mut sights = recorded.book.sights().peekable();
        std::iter::from_fn(move || {
            sights.peek()?;
            let mut piece = Piece::default();
            while piece.len() < PIECE
                && let Some((attempt, seen)) = sights.next()
            {
                let counts = (seen.accesses.len() as u32, seen.entries.len() as u32);
                piece.attempts.push((attempt.words(), counts.0, counts.1));
                piece
                    .accesses
                    .extend(seen.accesses.iter().map(|it| it.words()));
                piece
                    .entries
                    .extend(seen.entries.iter().map(|it| it.words()));
            }
            Some(piece)
        })
    }
}

impl Summary {
    pub(super) fn of(recorded: &Recorded) -> Summary {
        Summary {
            attempts: recorded.book.attempts().count() as u64,
            missing: recorded.book.missing(),
            hidden_from: recorded.book.hidden_from(),
            since_us: recorded.since_us,
            knows_all: recorded.knows_all,
        }
    }
}

/// What has come of a worker's history so far.
#[derive(Debug)]
pub(super) struct Pieces {
    book: Book,
    attempts: u64,
    /// Accesses and entries that may still come.
    room: usize,
}

impl Pieces {
    /// For as many operations, and those of attempts that were under way when these were reached.
    pub(super) fn new(operations_max: usize) -> Pieces {
        Pieces {
            book: Book::new(operations_max),
            attempts: 0,
            // Each access may have an entry beside it.
            room: operations_max.saturating_mul(2).saturating_add(1 << 24),
        }
    }

    /// Adds a piece, if it is one that a worker sends.
    pub(super) fn add(&mut self, piece: &Piece) -> Result<(), Unfit> {
        self.room = self.room.checked_sub(piece.len()).ok_or(Unfit)?;
        let (mut accesses, mut entries) = (piece.accesses.iter(), piece.entries.iter());
        for (words, of_accesses, of_entries) in &piece.attempts {
            let attempt = Attempt::from_words(*words).ok_or(Unfit)?;
            let (of_accesses, of_entries) = (*of_accesses as usize, *of_entries as usize);
            if of_accesses > ATTEMPT_MAX || of_entries > ATTEMPT_MAX {
                return Err(Unfit);
            }
            let own: Option<Vec<Access>> = accesses
                .by_ref()
                .take(of_accesses)
                .map(|words| Access::from_words(*words))
                .collect();
            let entered: Option<Vec<Entry>> = entries
                .by_ref()
                .take(of_entries)
                .map(|words| Entry::from_words(*words))
                .collect();
            let seen = Seen {
                accesses: own.ok_or(Unfit)?,
                entries: entered.ok_or(Unfit)?,
            };
            if (seen.accesses.len(), seen.entries.len()) != (of_accesses, of_entries) {
                return Err(Unfit);
            }
            self.book.keep(attempt, &seen);
            self.attempts += 1;
        }
        match (accesses.next(), entries.next()) {
            (None, None) => Ok(()),
            _ => Err(Unfit),
        }
    }

    /// The whole of it, if this is what was said of it.
    pub(super) fn complete(mut self, summary: &Summary) -> Result<Recorded, Unfit> {
        if summary.attempts != self.attempts || summary.missing > 1 << 48 {
            return Err(Unfit);
        }
        self.book.miss(summary.missing, summary.hidden_from);
        Ok(Recorded {
            book: self.book,
            since_us: summary.since_us,
            knows_all: summary.knows_all,
        })
    }
}
