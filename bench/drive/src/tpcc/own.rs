//! The run's own history: what its transactions have seen, by the counters of TPC-C's rows
//! ([`versions`]), and what that shows.

use super::RunOptions;
use super::reads::Sessions;
use crate::histories::condition;
use crate::shape::{CheckedCondition, Done, Failure};
use check::{Demand, Level, Outcome};
use links::answers::Answers;
use links::error::{DriveError, While};
use links::link::{Link, LinkError, ParamType, ready};
use links::lock;
use links::server::Server;
use links::url::Target;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use versions::{
    Attempt, Book, DISTRICTS_MAX, Judged, Noted, Payment, WAREHOUSES_MAX, outcome_of, promised,
    with_counters,
};
use workload::tpcc::conditions::Condition;
use workload::tpcc::text::push_timestamp;
use workload::tpcc::{Kind, Scale};
use workload::wire::Connection;

/// What times may be wrong by, at most: an hour. Then nothing is ordered by time.
const SLACK_NS_MAX: u64 = 3_600_000_000_000;

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

/// What a process has recorded of a run whose load several have.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// What its attempts have seen; times count from the begin of the run, in nanoseconds.
    pub book: Book,
    /// When it was ready to record, by its time of day: microseconds since 1970.
    pub since_us: u64,
    /// HISTORY had no row of that time and later.
    pub knows_all: bool,
}

/// Records what all connections see.
#[derive(Debug)]
pub(super) struct Recorder {
    level: Level,
    start: Instant,
    operations_max: usize,
    /// The same by the time of day, in microseconds since 1970; where there are several processes,
    /// by the one that is the farthest behind.
    since_us: AtomicU64,
    /// HISTORY had no row of that time and later.
    knows_all: AtomicBool,
    /// Other transactions than orders set S_QUANTITY.
    sets_quantities: bool,
    book: Mutex<Book>,
    begun: AtomicU64,
    kept: AtomicU64,
    /// Attempts for which there was no room, and when the first of them began.
    refused: AtomicU64,
    full_ns: AtomicU64,
    next_process: AtomicU32,
    judged: Mutex<Option<Judged>>,
}

impl Recorder {
    /// For a run with these options, if it is to record anything.
    ///
    /// # Errors
    /// They do not go together, more warehouses or districts are there than have names, or the
    /// server does not answer.
    pub(super) fn of_run(
        options: &RunOptions,
        link: &mut Link,
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
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let since_us = since.map_or(0, |since| since.as_micros() as u64);
        let before = payments_since(link, since_us).during("reading HISTORY before the run")?;
        let dike = options.dike.as_ref();
        Ok(Some(Recorder {
            level: own.level.unwrap_or(promised),
            start: Instant::now(),
            operations_max: own.operations_max,
            since_us: AtomicU64::new(since_us),
            knows_all: AtomicBool::new(before.is_empty()),
            sets_quantities: dike.is_some_and(|dike| dike.has(Kind::DUpdateStock)),
            book: Mutex::new(Book::new(own.operations_max)),
            begun: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            full_ns: AtomicU64::new(u64::MAX),
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
        if lock(&self.book).has_room() {
            return Some(self.now_ns());
        }
        self.full_ns.fetch_min(self.now_ns(), Ordering::Relaxed);
        self.refused.fetch_add(1, Ordering::Relaxed);
        None
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

    /// The book, which is empty then.
    fn take_book(&self) -> Book {
        let mut book = std::mem::replace(&mut *lock(&self.book), Book::new(0));
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let refused = of(&self.refused);
        book.miss(refused, of(&self.full_ns));
        // Those that are under way at the end of the run, whose ends nobody waits for.
        book.miss(of(&self.begun) - of(&self.kept) - refused, 0);
        book
    }

    /// The reads and writes that are kept.
    pub(super) fn operations_max(&self) -> usize {
        self.operations_max
    }

    /// What was recorded, for another process; the run began at `start`.
    pub(super) fn take(&self, start: Instant) -> Recorded {
        let mut book = self.take_book();
        let before = start.saturating_duration_since(self.start).as_nanos() as u64;
        book.set_back(before);
        Recorded {
            book,
            since_us: self.since_us.load(Ordering::Relaxed),
            knows_all: self.knows_all.load(Ordering::Relaxed),
        }
    }

    /// Adds what another process has recorded. An attempt has lasted longer by what its times may
    /// be wrong by, at both ends: so no two are in an order that is not certain.
    pub(super) fn add(&self, recorded: &Recorded, slack: Duration) {
        let slack = u64::try_from(slack.as_nanos())
            .unwrap_or(u64::MAX)
            .min(SLACK_NS_MAX);
        let mut processes: BTreeMap<u32, u32> = BTreeMap::new();
        let mut book = lock(&self.book);
        let hidden_from = recorded.book.hidden_from();
        let hidden_from = (SLACK_NS_MAX + 1).saturating_add(hidden_from) - slack;
        book.miss(recorded.book.missing(), hidden_from);
        for (attempt, seen) in recorded.book.sights() {
            let process = processes.entry(attempt.process);
            let attempt = Attempt {
                process: *process.or_insert_with(|| self.process()),
                // Above 0, and every process counts from the same moment.
                invoked: (SLACK_NS_MAX + 1).saturating_add(attempt.invoked) - slack,
                completed: (SLACK_NS_MAX + 1)
                    .saturating_add(attempt.completed)
                    .saturating_add(slack),
                outcome: attempt.outcome,
            };
            book.keep(attempt, &seen);
        }
        self.since_us
            .fetch_min(recorded.since_us, Ordering::Relaxed);
        self.knows_all
            .fetch_and(recorded.knows_all, Ordering::Relaxed);
    }

    /// Judges what was recorded, as conditions of the run with these numbers and the next ones:
    /// the history, the stock, and the rows of HISTORY, which are read. The book is empty then.
    ///
    /// # Errors
    /// HISTORY cannot be read.
    pub(super) fn judge(
        &self,
        target: &Target,
        first: usize,
    ) -> Result<Vec<CheckedCondition>, DriveError> {
        let book = self.take_book();
        let mut link = Link::connect_any(target, None).during("connecting")?;
        let rows = payments_since(&mut link, self.since_us.load(Ordering::Relaxed))
            .during("reading HISTORY")?;
        link.close();
        let stock = book.judge_stock(self.sets_quantities);
        let paid = book.judge_payments(&rows, self.knows_all.load(Ordering::Relaxed));
        let judged = book.judge(self.level, &Demand::default());
        let title = "the run's own history has no anomaly";
        let history = condition(&judged.verdict, first, title);
        *lock(&self.judged) = Some(judged);
        Ok(vec![
            history,
            checked(first + 1, "2.4.2.2", STOCK_TITLE, stock),
            checked(first + 2, "2.5.2.2", PAID_TITLE, paid),
        ])
    }

    /// The history, once it was judged.
    pub(super) fn take_judged(&self) -> Option<Judged> {
        lock(&self.judged).take()
    }
}

const STOCK_TITLE: &str = "S_QUANTITY and S_YTD go from one order of the run to the next";
const PAID_TITLE: &str = "each payment of the run has its row of HISTORY; YTDs grow by H_AMOUNT";

fn checked(
    number: usize,
    clause: &str,
    title: &'static str,
    condition: Condition,
) -> CheckedCondition {
    CheckedCondition {
        number,
        clause: String::from(clause),
        title,
        compared: condition.compared,
        failures: condition.failures,
        counterexample: condition.counterexample,
    }
}

/// The rows of HISTORY of this time and later, and how many there are of each.
fn payments_since(link: &mut Link, since_us: u64) -> Result<BTreeMap<Payment, u64>, LinkError> {
    let mut since = Vec::new();
    push_timestamp(since_us, &mut since);
    let since = String::from_utf8_lossy(&since);
    let sql = format!(
        "SELECT h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, h_amount FROM history \
         WHERE h_date >= TIMESTAMP '{since}'"
    );
    let mut rows: BTreeMap<Payment, u64> = BTreeMap::new();
    let count = |row: &Answers| {
        let number = |column| u32::try_from(row.int(0, 0, column).unwrap_or(0)).unwrap_or(0);
        let cents = row.cents(0, 0, 5).map_or(0, i64::unsigned_abs);
        let customer = [number(0), number(1), number(2)];
        // With numbers that no payment has it is one that nobody has paid.
        let payment = Payment::new(customer, [number(3), number(4)], cents)
            .or_else(|| Payment::new([0; 3], [0; 2], cents));
        if let Some(payment) = payment {
            *rows.entry(payment).or_default() += 1;
        }
    };
    ready(link.each_row(&sql, count))?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use versions::{Access, Seen};

    fn recorder() -> Recorder {
        Recorder {
            level: Level::StrictSerializable,
            start: Instant::now(),
            operations_max: 100,
            since_us: AtomicU64::new(1_000),
            knows_all: AtomicBool::new(true),
            sets_quantities: false,
            book: Mutex::new(Book::new(100)),
            begun: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            full_ns: AtomicU64::new(u64::MAX),
            next_process: AtomicU32::new(1),
            judged: Mutex::new(None),
        }
    }

    /// What a worker has recorded: attempts of one process, from and to these times.
    fn recorded(times: &[(u64, u64)], version: u64, is_write: bool) -> Recorded {
        let mut book = Book::new(100);
        for (invoked, completed) in times {
            let attempt = Attempt {
                process: 1,
                invoked: *invoked,
                completed: *completed,
                outcome: Outcome::Committed,
            };
            // Of one item, version 5 read or written behind version 4.
            let write = u64::from(is_write) << 63;
            let words = [[7, version - 1], [7 | write, version]];
            let words = &words[usize::from(!is_write)..];
            let accesses = words.iter().map(|words| Access::from_words(*words));
            let seen = Seen {
                accesses: accesses.map(|access| access.unwrap()).collect(),
                entries: Vec::new(),
            };
            book.keep(attempt, &seen);
        }
        book.miss(3, 1_000);
        Recorded {
            book,
            since_us: 900,
            knows_all: true,
        }
    }

    #[test]
    fn what_others_have_recorded_is_of_other_processes() {
        let recorder = recorder();
        let slack = Duration::from_nanos(20);
        let own = recorded(&[(100, 200), (210, 300)], 5, false);
        recorder.add(&own, slack);
        recorder.add(&own, Duration::ZERO);
        let book = recorder.take_book();
        let told: Vec<(u32, u64, u64)> = book
            .attempts()
            .map(|(it, _)| {
                let since = |time: u64| time - SLACK_NS_MAX - 1;
                (it.process, since(it.invoked), since(it.completed))
            })
            .collect();
        assert_eq!(
            told,
            [(1, 80, 220), (1, 190, 320), (2, 100, 200), (2, 210, 300)]
        );
        assert_eq!(book.missing(), 6);
        assert_eq!(book.hidden_from() - SLACK_NS_MAX - 1, 980);
        assert_eq!(recorder.since_us.load(Ordering::Relaxed), 900);
    }

    /// One worker reads the version before the one that another has written 50 ns earlier: that is
    /// wrong only where the clocks are known better than that.
    #[test]
    fn no_order_is_claimed_that_the_clocks_do_not_tell() {
        let judged = |slack_ns: u64| {
            let recorder = recorder();
            let slack = Duration::from_nanos(slack_ns);
            recorder.add(&recorded(&[(100, 200)], 5, true), slack);
            recorder.add(&recorded(&[(250, 300)], 4, false), slack);
            let judged = recorder.take_book().judge(recorder.level, &Demand::NONE);
            !judged.verdict.anomalies.is_empty()
        };
        assert_eq!(
            [0, 20, 26, u64::MAX].map(judged),
            [true, true, false, false]
        );
    }

    #[test]
    fn times_for_another_process_count_from_the_begin_of_the_run() {
        let recorder = recorder();
        let attempt = Attempt {
            process: 1,
            invoked: 5_000,
            completed: 6_000,
            outcome: Outcome::Committed,
        };
        lock(&recorder.book).keep(attempt, &Seen::default());
        recorder.begun.store(4, Ordering::Relaxed);
        recorder.kept.store(1, Ordering::Relaxed);
        recorder.refused.store(3, Ordering::Relaxed);
        recorder.full_ns.store(9_000, Ordering::Relaxed);
        let taken = recorder.take(recorder.start + Duration::from_nanos(4_000));
        let (attempt, _) = taken.book.attempts().next().unwrap();
        assert_eq!((attempt.invoked, attempt.completed), (1_000, 2_000));
        assert_eq!((taken.book.missing(), taken.book.hidden_from()), (3, 5_000));
        // One that has not ended may have begun at any time.
        recorder.begun.store(5, Ordering::Relaxed);
        assert_eq!(recorder.take(recorder.start).book.hidden_from(), 0);
    }
}
