//! The durability audit: what was acknowledged before a crash is there after it, and nothing is
//! there by half.
//!
//! Clients insert pairs of rows, each pair in one transaction, and note in a file what they know of
//! each ([`super::Ledger`]). The caller crashes the server and starts it again, between the
//! commands that record and verify, or in a callback ([`audit`]). A client whose connection breaks
//! stops; the transaction that it had asked to commit is of unknown outcome. That the server is
//! gone is what the test is for, and no error of it.
//!
//! The table stays, so that it can be audited again; the next record replaces it.

use super::ledger::{Audit, Ledger, ROWS, Row, Writer};
use super::{
    FunctionOptions, Ground, Judgement, KNOCK_EVERY, Teller, Test, Verdict, give_up, is_retryable,
};
use links::DriveError;
use links::answers::Answers;
use links::error::While;
use links::link::{Link, LinkError};
use links::lock;
use links::view::Progress;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use workload::wire::is_unknown;

const TABLE: &str = "bench_function_durability";
const CLIENTS: usize = 4;
/// Pause before the next transaction after one that was rolled back.
const BACK_OFF: Duration = Duration::from_millis(2);

/// What has been recorded.
#[derive(Clone, Debug)]
pub struct RecordReport {
    /// Transactions that were asked for.
    pub wanted: u32,
    /// Acknowledged.
    pub acknowledged: u64,
    /// Rolled back by the server.
    pub rolled_back: u64,
    /// COMMIT was not answered.
    pub unknown: u64,
    /// Clients whose connection broke.
    pub clients_lost: usize,
    /// All clients.
    pub clients: usize,
}

impl RecordReport {
    /// Recording has no verdict but that there is something to verify.
    pub fn judgement(&self) -> Judgement {
        match self.acknowledged {
            0 => Judgement::new(Verdict::NotExercised, "no transaction was acknowledged"),
            count => {
                let text = format!("{count} transactions were acknowledged and can be verified");
                Judgement::new(Verdict::Passed, text)
            }
        }
    }
}

/// What has been verified.
#[derive(Clone, Debug)]
pub struct VerifyReport {
    /// What was found.
    pub audit: Audit,
    /// Rows of the table; `None`: there is no such table.
    pub rows: Option<usize>,
}

impl VerifyReport {
    /// The verdict.
    pub fn judgement(&self) -> Judgement {
        let mut judgement = self.audit.judgement();
        if self.rows.is_none() {
            judgement.because = format!(
                "the table {TABLE} is not in this database: {}",
                judgement.because
            );
        }
        judgement
    }
}

/// What the caller does while the clients work: crash the server and start it again.
pub struct Crash<'a> {
    /// After so many acknowledgements.
    at: u64,
    act: Option<Box<dyn FnOnce() -> Result<(), DriveError> + 'a>>,
}

impl<'a> Crash<'a> {
    /// Nothing: somebody else crashes the server, or nobody.
    pub fn none() -> Crash<'a> {
        Crash { at: 0, act: None }
    }

    /// Calls `act` once so many transactions were acknowledged.
    pub fn at(at: u64, act: impl FnOnce() -> Result<(), DriveError> + 'a) -> Crash<'a> {
        let act: Box<dyn FnOnce() -> Result<(), DriveError> + 'a> = Box::new(act);
        Crash { at, act: Some(act) }
    }
}

/// Records, has the caller crash the server and start it again, and verifies. `path` holds what
/// was acknowledged, also afterwards.
///
/// # Errors
/// As for [`super::run`]; those of the callback; if it was never called, because the clients
/// stopped before.
pub fn audit(
    options: &FunctionOptions,
    path: &Path,
    mut crash: Crash<'_>,
    progress: &mut dyn Progress,
) -> Result<(RecordReport, VerifyReport), DriveError> {
    let ground = Ground::reach(options)?;
    let recorded = record(&ground, options, path, &mut crash, progress)?;
    if crash.act.is_some() {
        let text = format!(
            "the server was not crashed: only {} transactions were acknowledged",
            recorded.acknowledged
        );
        return Err(DriveError::Option(text));
    }
    let verified = verify(&ground, path, options.limit, progress)?;
    Ok((recorded, verified))
}

/// What the clients share.
struct Pens<'a> {
    ground: &'a Ground,
    wanted: u64,
    next: AtomicU64,
    acknowledged: AtomicU64,
    working: AtomicUsize,
    lost: AtomicUsize,
    is_over: AtomicBool,
    writer: Mutex<Writer>,
    error: Mutex<Option<DriveError>>,
}

/// Writes transactions until enough are acknowledged, the time is over, or no client has a
/// connection.
pub(super) fn record(
    ground: &Ground,
    options: &FunctionOptions,
    path: &Path,
    crash: &mut Crash<'_>,
    progress: &mut dyn Progress,
) -> Result<RecordReport, DriveError> {
    let wanted = options.count_of(Test::Durability);
    let isolation = ground.isolation.sql();
    progress.stage(&format!(
        "durability test: {wanted} transactions of {ROWS} rows at {isolation}, recorded in {}",
        path.display()
    ));
    let ledger = Ledger::new(new_run(), TABLE);
    let writer = Writer::create(path, ledger, &ground.server.name())?;
    let mut admin = ground.admin()?;
    let columns = "k bigint PRIMARY KEY, txn bigint NOT NULL, value bigint NOT NULL, \
                   run bigint NOT NULL";
    ground.make(&mut admin, TABLE, columns)?;
    admin.close();
    let links = (0..CLIENTS).map(|at| ground.link(at, ground.patience));
    let links = links.collect::<Result<Vec<Link>, _>>()?;
    let pens = Pens {
        ground,
        wanted: u64::from(wanted),
        next: AtomicU64::new(0),
        acknowledged: AtomicU64::new(0),
        working: AtomicUsize::new(CLIENTS),
        lost: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
        writer: Mutex::new(writer),
        error: Mutex::default(),
    };
    pens.perform(links, options.limit, crash, progress)?;
    if let Some(error) = lock(&pens.error).take() {
        return Err(error);
    }
    let writer = lock(&pens.writer);
    // Nothing else of the database is needed for the counts.
    let known = writer.ledger.audit(&[]);
    Ok(RecordReport {
        wanted,
        acknowledged: known.acknowledged as u64,
        rolled_back: known.rolled_back as u64,
        unknown: known.unknown as u64,
        clients_lost: pens.lost.load(Ordering::Relaxed),
        clients: CLIENTS,
    })
}

/// The number of a test: the time will do, nothing else must be told apart.
fn new_run() -> u32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |now| (now.as_millis() % 4_000_000_007) as u32)
}

impl Pens<'_> {
    fn perform(
        &self,
        links: Vec<Link>,
        limit: Duration,
        crash: &mut Crash<'_>,
        progress: &mut dyn Progress,
    ) -> Result<(), DriveError> {
        let until = Instant::now() + limit;
        let mut teller = Teller::new();
        std::thread::scope(|scope| {
            for mut link in links {
                scope.spawn(move || {
                    match self.write(&mut link) {
                        Ok(true) => link.close(),
                        Ok(false) => {
                            self.lost.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => {
                            lock(&self.error).get_or_insert(error);
                            self.is_over.store(true, Ordering::Relaxed);
                        }
                    }
                    self.working.fetch_sub(1, Ordering::Relaxed);
                });
            }
            let mut crashed = Ok(());
            while self.working.load(Ordering::Relaxed) > 0 {
                std::thread::sleep(Duration::from_millis(5));
                let acknowledged = self.acknowledged.load(Ordering::Relaxed);
                teller.tell(progress, || {
                    let wanted = self.wanted;
                    format!("  {acknowledged} of {wanted} transactions acknowledged")
                });
                if acknowledged >= crash.at
                    && let Some(act) = crash.act.take()
                {
                    crashed = act();
                    // Those with a connection left go on as long as it takes to see that it works.
                    if crashed.is_err() {
                        self.is_over.store(true, Ordering::Relaxed);
                    }
                }
                if Instant::now() >= until {
                    self.is_over.store(true, Ordering::Relaxed);
                }
            }
            crashed
        })
    }

    fn is_enough(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
            || self.acknowledged.load(Ordering::Relaxed) >= self.wanted
    }

    fn note(&self, kind: &str, number: u64) -> Result<(), DriveError> {
        lock(&self.writer).note(kind, number)
    }

    /// Writes until it is enough; `false`: the connection broke.
    fn write(&self, link: &mut Link) -> Result<bool, DriveError> {
        let begin = self.ground.begin(false);
        while !self.is_enough() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let filled = self.fill(link, &begin, number);
            let ended = match filled {
                Ok(()) => {
                    self.note("c", number)?;
                    link.command("COMMIT")
                }
                Err(error) => Err(error),
            };
            match ended {
                Ok(()) => {
                    self.note("a", number)?;
                    self.acknowledged.fetch_add(1, Ordering::Relaxed);
                }
                Err(LinkError::Server(error)) if is_unknown(&error.sqlstate) => {}
                // It shuts down or recovers: this session may be over, which is seen next.
                Err(LinkError::Server(error)) if error.sqlstate.starts_with("57P") => {
                    return Ok(false);
                }
                Err(error) if is_retryable(&error) => {
                    self.note("r", number)?;
                    if give_up(link).is_err() {
                        return Ok(false);
                    }
                    std::thread::sleep(BACK_OFF);
                }
                Err(LinkError::Server(error)) => {
                    return Err(DriveError::Link("the durability test", error.into()));
                }
                Err(LinkError::Io(..) | LinkError::Tls(_) | LinkError::Protocol(_)) => {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn fill(&self, link: &mut Link, begin: &str, number: u64) -> Result<(), LinkError> {
        let run = lock(&self.writer).ledger.run;
        link.command(begin)?;
        for key in number * ROWS..(number + 1) * ROWS {
            let Row { txn, value, .. } = Ledger::row(run, key);
            link.command(&format!(
                "INSERT INTO {TABLE} (k, txn, value, run) VALUES ({key}, {txn}, {value}, {run})"
            ))?;
        }
        Ok(())
    }
}

/// Compares the database with the file. A server that starts, or that still finds out how
/// transactions ended, is waited for until `limit`; one that is not there is an error.
pub(super) fn verify(
    ground: &Ground,
    path: &Path,
    limit: Duration,
    progress: &mut dyn Progress,
) -> Result<VerifyReport, DriveError> {
    let ledger = Ledger::read(path)?;
    progress.stage(&format!(
        "durability test: {} transactions of {} against the table {}",
        ledger.fates.len(),
        path.display(),
        ledger.table
    ));
    let until = Instant::now() + limit;
    let mut teller = Teller::new();
    let rows = loop {
        match rows_of(ground, &ledger.table) {
            Ok(rows) => break Some(rows),
            Err(DriveError::Link(_, LinkError::Server(error))) if is_no_table(&error.sqlstate) => {
                break None;
            }
            Err(DriveError::Link(_, LinkError::Server(error)))
                if is_passing(&error.sqlstate) && Instant::now() < until =>
            {
                teller.tell(progress, || format!("  the server says: {error}"));
                std::thread::sleep(KNOCK_EVERY);
            }
            Err(error) => return Err(error),
        }
    };
    Ok(VerifyReport {
        audit: ledger.audit(rows.as_deref().unwrap_or(&[])),
        rows: rows.map(|rows| rows.len()),
    })
}

/// SQLSTATEs of PostgreSQL and MySQL for a table that does not exist.
fn is_no_table(sqlstate: &str) -> bool {
    matches!(sqlstate, "42P01" | "42S02")
}

/// SQLSTATEs that a server which has just started says for a while.
fn is_passing(sqlstate: &str) -> bool {
    ["40", "57P", "08"]
        .iter()
        .any(|class| sqlstate.starts_with(class))
}

fn rows_of(ground: &Ground, table: &str) -> Result<Vec<Row>, DriveError> {
    let mut link = ground.admin()?;
    let mut rows = Vec::new();
    let mut is_whole = true;
    let sql = format!("SELECT k, txn, value, run FROM {table}");
    let each = |answers: &Answers| {
        let cell = |column| {
            answers
                .int(0, 0, column)
                .and_then(|it| u64::try_from(it).ok())
        };
        match (cell(0), cell(1), cell(2), cell(3)) {
            (Some(key), Some(txn), Some(value), Some(run)) => rows.push(Row {
                key,
                txn,
                value,
                // A number that is no test's is that of another one.
                run: u32::try_from(run).unwrap_or(u32::MAX),
            }),
            _ => is_whole = false,
        }
    };
    link.query_each(&sql, each)
        .during("reading the table of the durability test")?;
    link.close();
    match is_whole {
        true => Ok(rows),
        false => Err(DriveError::OtherData(format!(
            "the table {table} holds what the durability test does not write"
        ))),
    }
}
