//! The global snapshot: rows on all nodes are read one by one inside a transaction, while others
//! move amounts between them. The sum is the same in every state that was ever committed.
//!
//! ```text
//! writer   BEGIN  row 3 -10        row 7 +10  COMMIT
//! reader   BEGIN  read 1  read 3                      read 7  ..  COMMIT    10 too much: torn
//! ```
//!
//! Half of the reads are READ ONLY transactions and half are ordinary ones, since a server may
//! serve them differently (a snapshot, or locks). A read whose transaction is rolled back by the
//! server has seen nothing; it is made again and counted as retried.
//!
//! When was something tried? A commit lies *inside* a read if it was asked for after the first
//! row was answered and acknowledged before the last one was asked for. It *crosses* the read if,
//! besides, one of its two rows had been read before it and the other was read after it: whoever
//! takes each row as it is just now would have seen one half of it. Under locks nothing crosses.
//! Where a read is rolled back as soon as others have changed a row, nothing is inside of those
//! that commit. So an attempt that was rolled back counts as tried, too.
//!
//! Where that happens again and again, the writers make pauses, twice as long after each such
//! attempt and half as long after each read, so that every server comes to an end. Where commits
//! take so long that most reads are without one, the readers make such pauses amid their reads.
//!
//! After the benchmark Dike, section 5 (dUpdateBalance and dSelectBalance), which adds to rows that
//! must be equal; sums need fewer writes for the same, and reads there follow the writes.

use super::{
    FunctionOptions, Ground, Judgement, Spread, Teller, Test, Verdict, drop_table, give_up,
    is_retryable,
};
use base::Prng;
use links::DriveError;
use links::answers::Answers;
use links::error::While;
use links::link::{Link, LinkError};
use links::lock;
use links::view::Progress;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use workload::wire::is_unknown;

const TABLE: &str = "bench_function_snapshot";
/// Enough of them that hardly any read is without a commit inside it, on a slow server too.
const WRITERS: usize = 4;
const READERS: usize = 2;
/// Rows for each node, so that each has some; and at least, and at most.
const ROWS_PER_NODE: u32 = 8;
const ROWS_MIN: u32 = 24;
const ROWS_MAX: u32 = 512;
/// What a row begins with.
const BALANCE: i64 = 10_000;
/// Of the reads, one of so many must have had a commit inside it.
const EXERCISED_OF: u32 = 10;
/// Acknowledgements are noted in their order, but for this.
const NOTED_WITHIN: Duration = Duration::from_secs(1);
/// Pauses of writers and readers begin with the first and end with the second.
const PAUSE_MIN_US: u64 = 200;
const PAUSE_MAX_US: u64 = 50_000;
/// Longest pause before a transaction is tried again.
const BACK_OFF_US: u64 = 3_000;

/// Reads of one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Transactions that read all rows and committed.
    pub done: u32,
    /// Of these, those whose sum was not the constant.
    pub torn: u32,
    /// Of these, those with a commit inside.
    pub overlapped: u32,
    /// Of these, those with a commit that crosses.
    pub crossed: u32,
    /// Attempts that the server rolled back.
    pub retried: u32,
}

impl Reads {
    /// Reads in which something was tried, and attempts.
    fn tried(&self) -> u32 {
        self.overlapped.saturating_add(self.retried)
    }

    fn is_exercised(&self) -> bool {
        self.done == 0 || self.tried() >= (self.done / EXERCISED_OF).max(1)
    }
}

/// What the snapshot test has found.
#[derive(Clone, Debug)]
pub struct SnapshotReport {
    /// Rows that a read reads, each by a statement.
    pub rows: u32,
    /// Where they lie, if the server tells.
    pub spread: Option<Spread>,
    /// Their sum in each committed state.
    pub total: i64,
    /// Their sum after all, in one statement.
    pub total_at_end: i64,
    /// Reads that were asked for.
    pub wanted: u32,
    /// Of ordinary transactions.
    pub ordinary: Reads,
    /// Of READ ONLY ones.
    pub read_only: Reads,
    /// Acknowledged.
    pub transfers: u64,
    /// Rolled back by the server.
    pub transfers_aborted: u64,
    /// Whose COMMIT the server could not tell the outcome of.
    pub transfers_unknown: u64,
    /// The first torn read, as a sentence.
    pub example: Option<String>,
    /// How long it took.
    pub took: Duration,
}

impl SnapshotReport {
    /// Reads that were finished.
    pub fn done(&self) -> u32 {
        self.ordinary.done + self.read_only.done
    }

    /// Reads that were torn.
    pub fn torn(&self) -> u32 {
        self.ordinary.torn + self.read_only.torn
    }

    /// The verdict.
    pub fn judgement(&self) -> Judgement {
        let (done, torn) = (self.done(), self.torn());
        let not = |text: String| Judgement::new(Verdict::NotExercised, text);
        if torn > 0 {
            let text = format!("{torn} of {done} snapshots were torn");
            return Judgement::new(Verdict::Failed, text);
        }
        if self.total_at_end != self.total {
            let text = format!(
                "the rows add up to {} at the end instead of {}: writes were lost or done twice",
                self.total_at_end, self.total
            );
            return Judgement::new(Verdict::Failed, text);
        }
        if let Some(Spread { covered, nodes }) = self.spread
            && covered < nodes
        {
            return not(format!("rows lie on {covered} of {nodes} nodes only"));
        }
        if done < self.wanted {
            let wanted = self.wanted;
            return not(format!(
                "only {done} of {wanted} snapshots were read in time"
            ));
        }
        for (reads, name) in [(self.ordinary, "ordinary"), (self.read_only, "READ ONLY")] {
            if !reads.is_exercised() {
                let (tried, done) = (reads.tried(), reads.done);
                return not(format!(
                    "only {tried} of {done} {name} reads met a commit of another transaction"
                ));
            }
        }
        Judgement::new(Verdict::Passed, format!("0 of {done} snapshots were torn"))
    }
}

/// A transfer that was acknowledged.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    from: u32,
    to: u32,
    amount: i64,
    /// COMMIT was sent.
    asked: Instant,
    acknowledged: Instant,
}

/// One row of a read.
#[derive(Clone, Copy, Debug)]
struct Seen {
    row: u32,
    value: Option<i64>,
    asked: Instant,
    answered: Instant,
}

/// What a read met: see the module.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    inside: bool,
    crossing: Option<Transfer>,
}

/// Compares a read with the transfers that were noted. `off` is the read's error; of the
/// crossing transfers one that explains it is preferred.
fn meet(seen: &[Seen], transfers: &[Transfer], off: i64) -> Met {
    let mut met = Met::default();
    let (Some(first), Some(last)) = (seen.first(), seen.last()) else {
        return met;
    };
    let of = |row: u32| seen.iter().find(|seen| seen.row == row);
    for transfer in transfers.iter().rev() {
        if transfer.acknowledged + NOTED_WITHIN < first.answered {
            break;
        }
        if transfer.asked < first.answered || transfer.acknowledged > last.asked {
            continue;
        }
        met.inside = true;
        let (Some(from), Some(to)) = (of(transfer.from), of(transfer.to)) else {
            continue;
        };
        let is_before = |seen: &Seen| seen.answered <= transfer.asked;
        let is_after = |seen: &Seen| seen.asked >= transfer.acknowledged;
        // Without a snapshot: the amount twice, or not at all.
        let error = match (
            is_before(from) && is_after(to),
            is_before(to) && is_after(from),
        ) {
            (true, _) => transfer.amount,
            (_, true) => -transfer.amount,
            (false, false) => continue,
        };
        if met.crossing.is_none() || error == off {
            met.crossing = Some(*transfer);
        }
        if error == off {
            break;
        }
    }
    met
}

/// A torn read in words.
fn tell_torn(number: u32, is_read_only: bool, seen: &[Seen], total: i64, met: &Met) -> String {
    let kind = if is_read_only {
        "a READ ONLY"
    } else {
        "an ordinary"
    };
    let mut text = format!("read {number}, in {kind} transaction: ");
    let missing: Vec<String> = seen
        .iter()
        .filter(|seen| seen.value.is_none())
        .map(|seen| seen.row.to_string())
        .collect();
    if !missing.is_empty() {
        text.push_str(&format!("row {} was not there", missing.join(", ")));
        return text;
    }
    let sum: i64 = seen.iter().filter_map(|seen| seen.value).sum();
    text.push_str(&format!("the rows add up to {sum} instead of {total}"));
    if let Some(transfer) = met.crossing {
        let Transfer {
            from, to, amount, ..
        } = transfer;
        let of = |row| seen.iter().position(|seen| seen.row == row);
        let (first, second) = match of(from) < of(to) {
            true => (from, to),
            false => (to, from),
        };
        text.push_str(&format!(
            "; {amount} went from row {from} to row {to} after row {first} was read and before \
             row {second} was"
        ));
    }
    text
}

/// A pause that is as long as it must be. Two threads that change it at once may count for one.
#[derive(Default)]
struct Pause {
    us: AtomicU64,
}

impl Pause {
    fn make(&self) {
        let us = self.us.load(Ordering::Relaxed);
        if us > 0 {
            std::thread::sleep(Duration::from_micros(us));
        }
    }

    fn change(&self, is_longer: bool) {
        let us = self.us.load(Ordering::Relaxed);
        let us = match is_longer {
            true => (2 * us).clamp(PAUSE_MIN_US, PAUSE_MAX_US),
            false if us <= PAUSE_MIN_US => 0,
            false => us / 2,
        };
        self.us.store(us, Ordering::Relaxed);
    }
}

/// What writers and readers share.
struct Play<'a> {
    ground: &'a Ground,
    rows: u32,
    homes: Option<Vec<i64>>,
    wanted: u32,
    is_over: AtomicBool,
    next_read: AtomicU32,
    /// Of each writer between its transfers.
    between_writes: Pause,
    /// Of each reader amid a read.
    amid_reads: Pause,
    transfers: Mutex<Vec<Transfer>>,
    tally: Mutex<SnapshotReport>,
    error: Mutex<Option<LinkError>>,
}

/// Runs the test.
pub(super) fn run(
    ground: &Ground,
    options: &FunctionOptions,
    progress: &mut dyn Progress,
) -> Result<SnapshotReport, DriveError> {
    let found = run_in_table(ground, options, progress);
    drop_table(ground, TABLE);
    found
}

fn run_in_table(
    ground: &Ground,
    options: &FunctionOptions,
    progress: &mut dyn Progress,
) -> Result<SnapshotReport, DriveError> {
    let wanted = options.count_of(Test::Snapshot);
    let rows = (ROWS_PER_NODE * ground.nodes()).clamp(ROWS_MIN, ROWS_MAX);
    let isolation = ground.isolation.sql();
    progress.stage(&format!(
        "snapshot test: {wanted} reads of {rows} rows at {isolation}, {WRITERS} writers"
    ));
    let mut admin = ground.admin()?;
    ground.make(
        &mut admin,
        TABLE,
        "k integer PRIMARY KEY, v bigint NOT NULL",
    )?;
    let values: Vec<String> = (1..=rows)
        .map(|row| format!("({row}, {BALANCE})"))
        .collect();
    let insert = format!("INSERT INTO {TABLE} (k, v) VALUES {}", values.join(", "));
    admin
        .command(&insert)
        .during("filling a table of the test")?;
    let homes = ground.homes(&mut admin, TABLE, rows)?;
    let total = BALANCE * i64::from(rows);
    let spread = homes
        .as_ref()
        .map(|homes| Spread::of(homes, ground.nodes()));
    let tally = SnapshotReport {
        rows,
        spread,
        total,
        total_at_end: total,
        wanted,
        ordinary: Reads::default(),
        read_only: Reads::default(),
        transfers: 0,
        transfers_aborted: 0,
        transfers_unknown: 0,
        example: None,
        took: Duration::ZERO,
    };
    let play = Play {
        ground,
        rows,
        homes,
        wanted,
        is_over: AtomicBool::new(false),
        next_read: AtomicU32::new(0),
        between_writes: Pause::default(),
        amid_reads: Pause::default(),
        transfers: Mutex::default(),
        tally: Mutex::new(tally),
        error: Mutex::default(),
    };
    let began = Instant::now();
    play.perform(options, progress)?;
    if let Some(error) = lock(&play.error).take() {
        return Err(DriveError::Link("the snapshot test", error));
    }
    let mut answers = Answers::new();
    let sum = format!("SELECT sum(v) FROM {TABLE}");
    admin.query(&sum, &mut answers).during("reading the sum")?;
    admin.close();
    let mut report = lock(&play.tally).clone();
    report.total_at_end = answers.int(0, 0, 0).unwrap_or(0);
    report.took = began.elapsed();
    Ok(report)
}

impl Play<'_> {
    /// Lets all clients run until the reads are done, the time is over, or one has no connection.
    fn perform(
        &self,
        options: &FunctionOptions,
        progress: &mut dyn Progress,
    ) -> Result<(), DriveError> {
        let links = (0..WRITERS + READERS).map(|at| self.ground.link(at, self.ground.patience));
        let links = links.collect::<Result<Vec<Link>, _>>()?;
        let until = Instant::now() + options.limit;
        let mut teller = Teller::new();
        std::thread::scope(|scope| {
            for (at, mut link) in links.into_iter().enumerate() {
                let mut prng = Prng::new(options.seed.wrapping_mul(64).wrapping_add(at as u64));
                scope.spawn(move || {
                    let result = match at < WRITERS {
                        true => self.write(&mut link, &mut prng),
                        false => self.read(&mut link, &mut prng),
                    };
                    match result {
                        Ok(()) => link.close(),
                        Err(error) => {
                            lock(&self.error).get_or_insert(error);
                            self.is_over.store(true, Ordering::Relaxed);
                        }
                    }
                });
            }
            while !self.is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(10));
                let tally = lock(&self.tally);
                let (done, torn, transfers) = (tally.done(), tally.torn(), tally.transfers);
                drop(tally);
                teller.tell(progress, || {
                    let wanted = self.wanted;
                    format!("  {done} of {wanted} reads, {torn} torn, {transfers} transfers")
                });
                if done >= self.wanted || Instant::now() >= until {
                    self.is_over.store(true, Ordering::Relaxed);
                }
            }
        });
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Two rows, of different nodes where it is known which those are.
    fn pair(&self, prng: &mut Prng) -> (u32, u32) {
        let row = |prng: &mut Prng| 1 + prng.below(u64::from(self.rows)) as u32;
        let from = row(prng);
        let home = |row: u32| self.homes.as_ref().map(|homes| homes[row as usize - 1]);
        for _ in 0..64 {
            let to = row(prng);
            if to != from && (home(to).is_none() || home(to) != home(from)) {
                return (from, to);
            }
        }
        (from, from % self.rows + 1)
    }

    /// Moves amounts until the test is over.
    fn write(&self, link: &mut Link, prng: &mut Prng) -> Result<(), LinkError> {
        let begin = self.ground.begin(false);
        while !self.is_over() {
            let (from, to) = self.pair(prng);
            let amount = 1 + prng.below(99) as i64;
            match transfer(link, &begin, (from, to), amount) {
                Ok(transfer) => {
                    lock(&self.transfers).push(transfer);
                    lock(&self.tally).transfers += 1;
                }
                Err(error) if is_unknown_outcome(&error) => {
                    lock(&self.tally).transfers_unknown += 1;
                    give_up(link)?;
                }
                Err(error) if is_retryable(&error) => {
                    lock(&self.tally).transfers_aborted += 1;
                    give_up(link)?;
                    pause(prng);
                }
                Err(error) => return Err(error),
            }
            self.between_writes.make();
        }
        Ok(())
    }

    /// Reads until there are enough reads.
    fn read(&self, link: &mut Link, prng: &mut Prng) -> Result<(), LinkError> {
        loop {
            let number = self.next_read.fetch_add(1, Ordering::Relaxed);
            if number >= self.wanted {
                return Ok(());
            }
            let is_read_only = number % 2 == 1;
            let begin = self.ground.begin(is_read_only);
            let seen = loop {
                if self.is_over() {
                    return Ok(());
                }
                match look(link, &begin, self.rows, &self.amid_reads, prng) {
                    Ok(seen) => break seen,
                    Err(error) if is_retryable(&error) => {
                        let mut tally = lock(&self.tally);
                        tally.reads(is_read_only).retried += 1;
                        drop(tally);
                        self.between_writes.change(true);
                        self.amid_reads.change(false);
                        give_up(link)?;
                        pause(prng);
                    }
                    Err(error) => return Err(error),
                }
            };
            self.between_writes.change(false);
            self.note(number, is_read_only, &seen);
        }
    }

    fn note(&self, number: u32, is_read_only: bool, seen: &[Seen]) {
        let sum: Option<i64> = seen.iter().map(|seen| seen.value).sum();
        let mut tally = lock(&self.tally);
        let total = tally.total;
        let met = meet(seen, &lock(&self.transfers), sum.unwrap_or(0) - total);
        let is_torn = sum != Some(total);
        self.amid_reads.change(!met.inside);
        let reads = tally.reads(is_read_only);
        reads.done += 1;
        reads.torn += u32::from(is_torn);
        reads.overlapped += u32::from(met.inside);
        reads.crossed += u32::from(met.crossing.is_some());
        if is_torn && tally.example.is_none() {
            tally.example = Some(tell_torn(number + 1, is_read_only, seen, total, &met));
        }
    }
}

impl SnapshotReport {
    fn reads(&mut self, is_read_only: bool) -> &mut Reads {
        match is_read_only {
            true => &mut self.read_only,
            false => &mut self.ordinary,
        }
    }
}

fn is_unknown_outcome(error: &LinkError) -> bool {
    matches!(error, LinkError::Server(error) if is_unknown(&error.sqlstate))
}

fn pause(prng: &mut Prng) {
    std::thread::sleep(Duration::from_micros(prng.below(BACK_OFF_US)));
}

fn transfer(
    link: &mut Link,
    begin: &str,
    (from, to): (u32, u32),
    amount: i64,
) -> Result<Transfer, LinkError> {
    link.command(begin)?;
    link.command(&format!(
        "UPDATE {TABLE} SET v = v - {amount} WHERE k = {from}"
    ))?;
    link.command(&format!(
        "UPDATE {TABLE} SET v = v + {amount} WHERE k = {to}"
    ))?;
    let asked = Instant::now();
    link.command("COMMIT")?;
    Ok(Transfer {
        from,
        to,
        amount,
        asked,
        acknowledged: Instant::now(),
    })
}

/// Reads all rows in one transaction, in an order of its own, with a pause in the middle.
fn look(
    link: &mut Link,
    begin: &str,
    rows: u32,
    pause: &Pause,
    prng: &mut Prng,
) -> Result<Vec<Seen>, LinkError> {
    let mut order: Vec<u32> = (1..=rows).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, prng.below(at as u64 + 1) as usize);
    }
    link.command(begin)?;
    let mut seen = Vec::with_capacity(order.len());
    let mut answers = Answers::new();
    for (at, row) in order.into_iter().enumerate() {
        if at == rows as usize / 2 {
            pause.make();
        }
        let asked = Instant::now();
        link.query(
            &format!("SELECT v FROM {TABLE} WHERE k = {row}"),
            &mut answers,
        )?;
        seen.push(Seen {
            row,
            value: answers.int(0, 0, 0),
            asked,
            answered: Instant::now(),
        });
    }
    link.command("COMMIT")?;
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows 1 to 3 are read at 0, 20 and 40 milliseconds; each read takes 10.
    fn seen(start: Instant, values: [i64; 3]) -> Vec<Seen> {
        let rows = values.into_iter().enumerate();
        let rows = rows.map(|(at, value)| {
            let asked = start + Duration::from_millis(20 * at as u64);
            Seen {
                row: at as u32 + 1,
                value: Some(value),
                asked,
                answered: asked + Duration::from_millis(10),
            }
        });
        rows.collect()
    }

    fn moved(start: Instant, from: u32, to: u32, at_ms: [u64; 2]) -> Transfer {
        let [asked, acknowledged] = at_ms.map(|ms| start + Duration::from_millis(ms));
        Transfer {
            from,
            to,
            amount: 5,
            asked,
            acknowledged,
        }
    }

    #[test]
    fn a_commit_between_two_rows_crosses_the_read() {
        let start = Instant::now() + Duration::from_secs(10);
        let seen = seen(start, [10, 10, 10]);
        let meet = |transfer| {
            let met = meet(&seen, &[transfer], 0);
            (met.inside, met.crossing.is_some())
        };
        assert_eq!(meet(moved(start, 1, 2, [12, 18])), (true, true));
        assert_eq!(meet(moved(start, 3, 1, [32, 38])), (true, true));
        // Both rows were still to be read, or one was being read.
        assert_eq!(meet(moved(start, 2, 3, [12, 18])), (true, false));
        assert_eq!(meet(moved(start, 1, 2, [12, 22])), (true, false));
        // Not wholly inside.
        assert_eq!(meet(moved(start, 1, 2, [8, 18])), (false, false));
        assert_eq!(meet(moved(start, 1, 3, [32, 42])), (false, false));
    }

    #[test]
    fn a_torn_read_is_told_with_the_transfer_that_explains_it() {
        let start = Instant::now() + Duration::from_secs(10);
        let seen = seen(start, [10, 10, 15]);
        let transfers = [moved(start, 1, 3, [32, 36]), moved(start, 2, 1, [33, 37])];
        let met = meet(&seen, &transfers, 5);
        let text = tell_torn(7, true, &seen, 30, &met);
        assert_eq!(
            text,
            "read 7, in a READ ONLY transaction: the rows add up to 35 instead of 30; 5 went from \
             row 1 to row 3 after row 1 was read and before row 3 was"
        );
    }

    fn report() -> SnapshotReport {
        let reads = Reads {
            done: 50,
            overlapped: 40,
            ..Reads::default()
        };
        SnapshotReport {
            rows: 24,
            spread: Some(Spread {
                covered: 3,
                nodes: 3,
            }),
            total: 240_000,
            total_at_end: 240_000,
            wanted: 100,
            ordinary: reads,
            read_only: reads,
            transfers: 100,
            transfers_aborted: 0,
            transfers_unknown: 0,
            example: None,
            took: Duration::from_secs(1),
        }
    }

    #[test]
    fn only_what_was_tried_passes() {
        let judged = |change: &dyn Fn(&mut SnapshotReport)| {
            let mut report = report();
            change(&mut report);
            report.judgement().verdict
        };
        assert_eq!(judged(&|_| {}), Verdict::Passed);
        assert_eq!(judged(&|it| it.read_only.torn = 1), Verdict::Failed);
        assert_eq!(judged(&|it| it.total_at_end -= 1), Verdict::Failed);
        let not = Verdict::NotExercised;
        assert_eq!(judged(&|it| it.wanted = 101), not);
        assert_eq!(judged(&|it| it.ordinary.overlapped = 4), not);
        // Four that had a commit inside, and one that was rolled back by one.
        let rolled_back = judged(&|it| {
            it.ordinary.overlapped = 4;
            it.ordinary.retried = 1;
        });
        assert_eq!(rolled_back, Verdict::Passed);
        let spread = Spread {
            covered: 2,
            nodes: 3,
        };
        assert_eq!(judged(&|it| it.spread = Some(spread)), not);
        // What was torn is told, however little was tried.
        let torn = judged(&|it| {
            it.wanted = 101;
            it.ordinary.torn = 1;
        });
        assert_eq!(torn, Verdict::Failed);
    }
}
