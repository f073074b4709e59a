//! The run's own history: what its transactions have seen, by the counters of TPC-C's rows
//! ([`versions`]), and what that shows.

use super::RunOptions;
use super::reads::Sessions;
use crate::histories::condition;
use crate::shape::{CheckedCondition, Done, Failure};
use check::{Demand, Level, Outcome};
use links::error::DriveError;
use links::link::{Link, ParamType};
use links::lock;
use links::server::Server;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;
use versions::{
    Attempt, Book, DISTRICTS_MAX, Judged, Noted, WAREHOUSES_MAX, outcome_of, promised,
    with_counters,
};
use workload::tpcc::Scale;

/// How a run records its own history.
#[derive(Clone, Copy, Debug)]
pub struct OwnHistory {
    /// Reads and writes that are kept; what begins later is not.
    pub operations_max: usize,
    /// By what it is judged; `None`: what the server promises ([`promised`]).
    pub level: Option<Level>,
}

impl Default for OwnHistory {
    fn default() -> OwnHistory {
        OwnHistory {
            operations_max: versions::OPERATIONS_MAX,
            level: None,
        }
    }
}

/// A connection that takes down what these statements, which are prepared on it next, show. They
/// return the counters of their rows, too.
pub(super) fn watched(link: Link, statements: &mut [(String, Vec<ParamType>)]) -> Noted<Link> {
    let texts = statements.iter().map(|(statement, _)| statement.as_str());
    let link = Noted::watching(link, texts);
    for (statement, _) in statements {
        *statement = with_counters(statement);
    }
    link
}

/// Records what all connections see.
#[derive(Debug)]
pub(super) struct Recorder {
    level: Level,
    start: Instant,
    book: Mutex<Book>,
    begun: AtomicU64,
    kept: AtomicU64,
    next_process: AtomicU32,
    judged: Mutex<Option<Judged>>,
}

impl Recorder {
    /// For a run with these options, if it is to record anything.
    ///
    /// # Errors
    /// They do not go together, or more warehouses or districts are there than have names.
    pub(super) fn of_run(
        options: &RunOptions,
        server: &Server,
        scale: &Scale,
    ) -> Result<Option<Recorder>, DriveError> {
        let Some(own) = options.histories else {
            return Ok(None);
        };
        let refuse = |text: &str| Err(DriveError::Option(format!("--histories: {text}")));
        if options.read_urls.is_some() {
            return refuse("replicas show what is old, so --read-urls cannot be with it");
        }
        if !options.runner.check {
            return refuse("the history is judged with the conditions after the run");
        }
        let districts = scale.districts();
        let most = (1..=scale.warehouses)
            .map(|w| districts.in_warehouse(w))
            .max();
        let most = most.unwrap_or(0);
        let warehouses = scale.warehouses;
        if warehouses > WAREHOUSES_MAX || most > DISTRICTS_MAX {
            return refuse(&format!(
                "{warehouses} warehouses with up to {most} districts; at most {WAREHOUSES_MAX} \
                 with {DISTRICTS_MAX} each can be told apart"
            ));
        }
        let promised = promised(options.isolation, server.is_trellis, server.dialect);
        Ok(Some(Recorder {
            level: own.level.unwrap_or(promised),
            start: Instant::now(),
            book: Mutex::new(Book::new(own.operations_max)),
            begun: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            next_process: AtomicU32::new(1),
            judged: Mutex::new(None),
        }))
    }

    /// By what the history is judged.
    pub(super) fn level(&self) -> Level {
        self.level
    }

    /// The number of a new connection.
    pub(super) fn process(&self) -> u32 {
        self.next_process.fetch_add(1, Ordering::Relaxed)
    }

    /// Above 0: that is the time before the run.
    fn now_ns(&self) -> u64 {
        1 + self.start.elapsed().as_nanos() as u64
    }

    /// An attempt begins. `None`: there is no room for it.
    pub(super) fn begin(&self) -> Option<u64> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        lock(&self.book).has_room().then(|| self.now_ns())
    }

    /// An attempt that began at this time has ended.
    pub(super) fn end(
        &self,
        invoked: Option<u64>,
        sessions: &mut Sessions,
        result: &Result<Done, Failure>,
    ) {
        let seen = sessions.main.link().take_seen();
        let Some(invoked) = invoked else { return };
        let outcome = outcome_of(result);
        let attempt = Attempt {
            process: sessions.process,
            invoked,
            completed: self.now_ns(),
            outcome,
        };
        if outcome == Outcome::Unknown {
            // It may go on there: what follows is of another process.
            sessions.process = self.process();
        }
        self.kept.fetch_add(1, Ordering::Relaxed);
        lock(&self.book).keep(attempt, &seen);
    }

    /// Judges what was recorded, as a condition of the run. The book is empty then.
    pub(super) fn judge(&self, number: usize) -> CheckedCondition {
        let mut book = std::mem::replace(&mut *lock(&self.book), Book::new(0));
        // With those that are under way at the end of the run, whose ends nobody waits for.
        let begun = self.begun.load(Ordering::Relaxed);
        book.miss(begun - self.kept.load(Ordering::Relaxed));
        let judged = book.judge(self.level, &Demand::default());
        let title = "the run's own history has no anomaly";
        let condition = condition(&judged.verdict, number, title);
        *lock(&self.judged) = Some(judged);
        condition
    }

    /// The history, once it was judged.
    pub(super) fn take_judged(&self) -> Option<Judged> {
        lock(&self.judged).take()
    }
}
