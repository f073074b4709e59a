//! Function tests: whether a database does what transactions on several nodes need, with a verdict.
//!
//! | test | question | caught by it |
//! |---|---|---|
//! | [`snapshot`] | do all statements of a transaction see one state? | READ COMMITTED |
//! | [`deadlock`] | does every cycle of waits end, and how soon? | a server that looks for none |
//! | [`durability`] | is what was acknowledged there after a crash? | a log that is written later |
//!
//! Invariants:
//! * A test that had nothing to try says so ([`Verdict::NotExercised`]); it does not pass.
//! * Everything has an end: each answer is waited for [`FunctionOptions::patience`], each cycle
//!   [`FunctionOptions::cycle_limit`], each test [`FunctionOptions::limit`].
//! * Tables are the test's own, by names that begin with `bench_function_`, and dropped at its end;
//!   only that of the durability test stays, for another look.
//!
//! Not here: isolation in full (`histories` records and judges it), and who crashes the server.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod deadlock;
pub mod durability;
mod ledger;
mod report;
mod ring;
pub mod snapshot;

pub use deadlock::DeadlockReport;
pub use durability::{RecordReport, VerifyReport};
pub use ledger::{Audit, Ledger, Row};
pub use report::{json, table};
pub use snapshot::SnapshotReport;

use links::DriveError;
use links::error::While;
use links::homes::nodes_of;
use links::link::{Link, LinkError, Status};
use links::server::Server;
use links::url::Target;
use links::view::Progress;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use workload::wire::Isolation;

/// Most snapshots, cycles or transactions that one may ask for.
pub const COUNT_MAX: u32 = 1_000_000;
/// Progress is told this often.
const TELL_EVERY: Duration = Duration::from_secs(2);
/// Between two attempts to reach a server that starts.
const KNOCK_EVERY: Duration = Duration::from_millis(100);

/// A function test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// See [`snapshot`].
    Snapshot,
    /// See [`deadlock`].
    Deadlock,
    /// See [`durability`].
    Durability,
}

impl Test {
    /// As it is named in commands.
    pub fn name(self) -> &'static str {
        match self {
            Test::Snapshot => "snapshot",
            Test::Deadlock => "deadlock",
            Test::Durability => "durability",
        }
    }

    /// The test of that name.
    pub fn parse(text: &str) -> Option<Test> {
        let all = [Test::Snapshot, Test::Deadlock, Test::Durability];
        all.into_iter().find(|test| test.name() == text)
    }

    /// Snapshots, cycles or transactions, if nobody says how many.
    fn usual_count(self) -> u32 {
        match self {
            Test::Snapshot => 200,
            Test::Deadlock => 10,
            Test::Durability => 1_000,
        }
    }
}

/// What a test says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Enough was tried, and all was well.
    Passed,
    /// Something happened that must not.
    Failed,
    /// Too little was tried to say anything.
    NotExercised,
}

impl Verdict {
    /// For a person.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "FAILED",
            Verdict::NotExercised => "not exercised",
        }
    }

    /// For a program.
    pub fn key(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "failed",
            Verdict::NotExercised => "not_exercised",
        }
    }
}

/// A verdict with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// One sentence.
    pub because: String,
}

impl Judgement {
    fn new(verdict: Verdict, because: impl Into<String>) -> Judgement {
        let because = because.into();
        Judgement { verdict, because }
    }
}

/// What the durability test does in this call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ledgered {
    /// Writes transactions, and into this file which of them were acknowledged.
    Record(PathBuf),
    /// Compares the database with this file.
    Verify(PathBuf),
}

/// Which tests run where, and how long.
#[derive(Clone, Debug)]
pub struct FunctionOptions {
    /// The database; several endpoints are its nodes.
    pub url: String,
    /// In this order. One of durability also needs [`FunctionOptions::ledger`].
    pub tests: Vec<Test>,
    /// Snapshots, cycles, transactions; `None`: 200, 10, 1,000.
    pub count: Option<u32>,
    /// The same for single tests, which goes before.
    pub counts: Vec<(Test, u32)>,
    /// Of all transactions of the tests.
    pub isolation: Isolation,
    /// A test ends by then, with what it has. A cycle or a statement that runs is waited for.
    pub limit: Duration,
    /// A cycle of waits that has not ended by then never ends.
    pub cycle_limit: Duration,
    /// A server that has not answered by then is gone.
    pub patience: Duration,
    /// Decides which rows are changed and in which order they are read.
    pub seed: u64,
    /// For the durability test.
    pub ledger: Option<Ledgered>,
}

impl FunctionOptions {
    /// The snapshot and the deadlock test at REPEATABLE READ, which is what the benchmark Dike asks
    /// for at least.
    pub fn new(url: &str) -> FunctionOptions {
        FunctionOptions {
            url: url.to_owned(),
            tests: vec![Test::Snapshot, Test::Deadlock],
            count: None,
            counts: Vec::new(),
            isolation: Isolation::RepeatableRead,
            limit: Duration::from_secs(60),
            cycle_limit: Duration::from_secs(10),
            patience: Duration::from_secs(10),
            seed: 1,
            ledger: None,
        }
    }

    fn count_of(&self, test: Test) -> u32 {
        let own = self.counts.iter().find(|(of, _)| *of == test);
        let said = own.map(|(_, count)| *count).or(self.count);
        said.unwrap_or(test.usual_count())
    }

    fn validate(&self) -> Result<(), DriveError> {
        let wrong = |text: &str| Err(DriveError::Option(text.to_owned()));
        let is_zero = [self.limit, self.cycle_limit, self.patience].contains(&Duration::ZERO);
        let mut tests = self.tests.iter().enumerate();
        if self.tests.is_empty() {
            return wrong("no test is asked for: snapshot, deadlock or durability");
        }
        if tests.any(|(at, test)| self.tests[..at].contains(test)) {
            return wrong("a test is asked for twice");
        }
        let mut counts = self
            .counts
            .iter()
            .map(|(_, count)| *count)
            .chain(self.count);
        if counts.any(|count| !(1..=COUNT_MAX).contains(&count)) {
            return wrong("the count of a test is a number from 1 to 1,000,000");
        }
        if is_zero {
            return wrong("a limit of no time leaves no test");
        }
        match (self.tests.contains(&Test::Durability), &self.ledger) {
            (true, None) => wrong(
                "the test durability needs --record FILE before the crash, and --verify FILE \
                 after it",
            ),
            (false, Some(_)) => wrong("--record and --verify are for the test durability"),
            (true, Some(_)) | (false, None) => Ok(()),
        }
    }
}

/// What one test has found.
#[derive(Debug)]
pub enum Found {
    /// Of the snapshot test.
    Snapshot(SnapshotReport),
    /// Of the deadlock test.
    Deadlock(DeadlockReport),
    /// Of the durability test before the crash: no verdict yet.
    Record(RecordReport),
    /// After it.
    Verify(VerifyReport),
}

impl Found {
    /// The verdict and its reason.
    pub fn judgement(&self) -> Judgement {
        match self {
            Found::Snapshot(report) => report.judgement(),
            Found::Deadlock(report) => report.judgement(),
            Found::Record(report) => report.judgement(),
            Found::Verify(report) => report.judgement(),
        }
    }
}

/// What the tests have found.
#[derive(Debug)]
pub struct FunctionReport {
    /// Which server.
    pub server: Server,
    /// Its endpoints and database.
    pub target: Target,
    /// Of all transactions.
    pub isolation: Isolation,
    /// One for each test.
    pub found: Vec<Found>,
}

impl FunctionReport {
    /// The worst verdict.
    pub fn verdict(&self) -> Verdict {
        let verdicts = self.found.iter().map(|found| found.judgement().verdict);
        let verdicts: Vec<Verdict> = verdicts.collect();
        let worst = [Verdict::Failed, Verdict::NotExercised];
        let mut worst = worst.into_iter();
        let worst = worst.find(|verdict| verdicts.contains(verdict));
        worst.unwrap_or(Verdict::Passed)
    }
}

/// Runs the tests one after the other.
///
/// # Errors
/// An option that cannot work, no connection, one that broke, a file that cannot be read or
/// written, or a statement that the server refuses.
pub fn run(
    options: &FunctionOptions,
    progress: &mut dyn Progress,
) -> Result<FunctionReport, DriveError> {
    options.validate()?;
    let ground = match options.ledger {
        // It was crashed: its start may take a moment.
        Some(Ledgered::Verify(_)) => Ground::await_start(options, progress)?,
        Some(Ledgered::Record(_)) | None => Ground::reach(options)?,
    };
    let mut found = Vec::new();
    for test in &options.tests {
        found.push(match (test, &options.ledger) {
            (Test::Snapshot, _) => Found::Snapshot(snapshot::run(&ground, options, progress)?),
            (Test::Deadlock, _) => Found::Deadlock(deadlock::run(&ground, options, progress)?),
            (Test::Durability, Some(Ledgered::Verify(path))) => {
                Found::Verify(durability::verify(&ground, path, options.limit, progress)?)
            }
            (Test::Durability, Some(Ledgered::Record(path))) => {
                let mut crash = durability::Crash::none();
                let path = path.as_path();
                Found::Record(durability::record(
                    &ground, options, path, &mut crash, progress,
                )?)
            }
            (Test::Durability, None) => unreachable!("refused by validate"),
        });
    }
    Ok(FunctionReport {
        server: ground.server,
        target: ground.target,
        isolation: options.isolation,
        found,
    })
}

/// The database that is tested, and how its sessions begin.
#[derive(Clone, Debug)]
pub struct Ground {
    target: Target,
    server: Server,
    isolation: Isolation,
    patience: Duration,
}

impl Ground {
    /// Asks which server it is.
    ///
    /// # Errors
    /// The URL cannot be read, or is none of SQL; nobody answers.
    pub fn reach(options: &FunctionOptions) -> Result<Ground, DriveError> {
        let target = Target::parse(&options.url)?.of_sql()?;
        let (link, server) = Server::reach(&target, Some(options.patience))?;
        link.close();
        Ok(Ground {
            target,
            server,
            isolation: options.isolation,
            patience: options.patience,
        })
    }

    /// The same of a server that starts: it has [`FunctionOptions::patience`] to do so.
    fn await_start(
        options: &FunctionOptions,
        progress: &mut dyn Progress,
    ) -> Result<Ground, DriveError> {
        let until = Instant::now() + options.patience;
        let mut teller = Teller::new();
        loop {
            let error = match Ground::reach(options) {
                Err(error) if is_starting(&error) && Instant::now() < until => error,
                reached => return reached,
            };
            teller.tell(progress, || format!("  waiting for the server: {error}"));
            std::thread::sleep(KNOCK_EVERY);
        }
    }

    /// A session at one of the endpoints in turn.
    fn link(&self, at: usize, patience: Duration) -> Result<Link, DriveError> {
        let endpoint = &self.target.endpoints[at % self.target.endpoints.len()];
        self.tuned(Link::connect(endpoint, &self.target, Some(patience)))
    }

    /// A session at the first endpoint that answers, for what is done before and after a test.
    fn admin(&self) -> Result<Link, DriveError> {
        self.tuned(Link::connect_any(&self.target, Some(self.patience)))
    }

    fn tuned(&self, link: Result<Link, LinkError>) -> Result<Link, DriveError> {
        let mut link = link.during("connecting")?;
        let tuned = self.server.tune(&mut link, Some(self.isolation));
        tuned.during("setting up a session")?;
        Ok(link)
    }

    fn begin(&self, is_read_only: bool) -> String {
        let access = if is_read_only { " READ ONLY" } else { "" };
        let sql = format!("BEGIN ISOLATION LEVEL {}{access}", self.isolation.sql());
        self.server.dialect.statement(&sql)
    }

    /// Makes a table anew.
    fn make(&self, link: &mut Link, table: &str, columns: &str) -> Result<(), DriveError> {
        let doing = "making a table of the test";
        let drop = format!("DROP TABLE IF EXISTS {table}");
        link.command(&drop).during(doing)?;
        let create = format!("CREATE TABLE {table} ({columns})");
        link.command(&create).during(doing)
    }

    /// The home node of each row whose key is a number from 1; `None`: the server does not tell.
    fn homes(
        &self,
        link: &mut Link,
        table: &str,
        count: u32,
    ) -> Result<Option<Vec<i64>>, DriveError> {
        if !self.server.is_trellis {
            return Ok(None);
        }
        let nodes = nodes_of(link, table, count).during("asking where rows lie")?;
        Ok(nodes.into_iter().collect())
    }

    /// Nodes of the cluster, if the server tells.
    fn nodes(&self) -> u32 {
        self.server.nodes.unwrap_or(1) as u32
    }
}

/// How many nodes have rows, of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Nodes that are home of a row.
    pub covered: u32,
    /// Nodes of the cluster.
    pub nodes: u32,
}

impl Spread {
    fn of(homes: &[i64], nodes: u32) -> Spread {
        let covered = homes.iter().collect::<BTreeSet<_>>().len() as u32;
        Spread { covered, nodes }
    }
}

/// Drops a table. What cannot be dropped stays, and is dropped by the next test of the kind: the
/// test itself has been made by then.
fn drop_table(ground: &Ground, table: &str) {
    if let Ok(mut link) = ground.admin() {
        let _ = link.command(&format!("DROP TABLE IF EXISTS {table}"));
        link.close();
    }
}

/// Whether a server may be there in a moment: nobody listens yet, or it says so.
fn is_starting(error: &DriveError) -> bool {
    match error {
        DriveError::Link(_, LinkError::Io(ErrorKind::ConnectionRefused, _)) => true,
        DriveError::Link(_, LinkError::Server(error)) => error.sqlstate.starts_with("57P"),
        _ => false,
    }
}

/// Whether a server ended a transaction for the sake of others: it may be tried again.
fn is_retryable(error: &LinkError) -> bool {
    match error {
        LinkError::Server(error) => {
            error.sqlstate.starts_with("40") || is_lock_timeout(&error.sqlstate)
        }
        LinkError::Io(..) | LinkError::Tls(_) | LinkError::Protocol(_) => false,
    }
}

/// SQLSTATEs of a wait that was too long: `lock_timeout`, `statement_timeout`, MySQL's 1205.
fn is_lock_timeout(sqlstate: &str) -> bool {
    matches!(sqlstate, "55P03" | "57014")
}

/// Rolls back what is open.
fn give_up(link: &mut Link) -> Result<(), LinkError> {
    match link.status() {
        Status::Idle => Ok(()),
        Status::Open | Status::Failed => link.command("ROLLBACK"),
    }
}

/// Says from time to time how far a test is.
struct Teller {
    next: Instant,
}

impl Teller {
    fn new() -> Teller {
        let next = Instant::now() + TELL_EVERY;
        Teller { next }
    }

    fn tell(&mut self, progress: &mut dyn Progress, text: impl FnOnce() -> String) {
        if Instant::now() >= self.next {
            self.next = Instant::now() + TELL_EVERY;
            progress.stage(&text());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_cannot_work_are_refused() {
        let refused = |change: &dyn Fn(&mut FunctionOptions)| {
            let mut options = FunctionOptions::new("postgres://nobody@127.0.0.1:1/none");
            change(&mut options);
            options.validate().expect_err("refused").to_string()
        };
        assert!(refused(&|it| it.tests.clear()).contains("no test"));
        assert!(refused(&|it| it.tests.push(Test::Deadlock)).contains("twice"));
        assert!(refused(&|it| it.count = Some(0)).contains("the count"));
        assert!(refused(&|it| it.count = Some(COUNT_MAX + 1)).contains("the count"));
        assert!(refused(&|it| it.tests.push(Test::Durability)).contains("--record"));
        let ledger = Some(Ledgered::Verify(PathBuf::from("x")));
        assert!(refused(&|it| it.ledger = ledger.clone()).contains("durability"));
        assert!(refused(&|it| it.limit = Duration::ZERO).contains("limit"));
        let options = FunctionOptions::new("postgres://a");
        assert!(options.validate().is_ok());
    }

    #[test]
    fn tests_have_names() {
        for test in [Test::Snapshot, Test::Deadlock, Test::Durability] {
            assert_eq!(Test::parse(test.name()), Some(test));
        }
        assert_eq!(Test::parse("speed"), None);
    }
}
