//! Records what clients see of a database under load, and judges it.
//!
//! The transactions are those of [`workload::history`]; loops, retries and the live view are the
//! runner's. Each attempt is a transaction of its own in the history, with values of its own. After
//! the run everything is read once more, so that nothing that was acknowledged can be missing
//! unseen. Tables are made anew at the start of each run.

mod file;

pub use file::{read, write};

use crate::run::tally::Acknowledged;
use crate::run::{RunReport, RunnerOptions, run as run_workload};
use crate::shape::{
    CheckReport, CheckedCondition, Connected, Description, Done, Failure, Workload as RunWorkload,
};
use check::{Demand, History, Judgement, Level, Verdict};
use links::error::{DriveError, While};
use links::link::{Link, LinkError, ready};
use links::lock;
use links::server::Server;
use links::stream::Stream;
use links::url::{Endpoint, Target};
use links::view::Progress;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use versions::promised;
use workload::dialect::Dialect;
use workload::finding::Finding;
use workload::history::plan::Plan;
use workload::history::run::{Client, create, final_reads, final_shape};
use workload::history::{Kind, SETUP_PROCESS, Shape, empty, judge};
use workload::wire::Isolation;

/// How to make a history.
#[derive(Clone, Debug)]
pub struct HistoryOptions {
    /// `postgres://user@host:port,host:port/database`, or `mysql://`.
    pub url: String,
    /// What the transactions do, and at which level. The seed is the runner's.
    pub shape: Shape,
    /// Loops, phases, clients, seed.
    pub runner: RunnerOptions,
    /// By what the history is judged; `None`: what the server promises ([`promised`]).
    pub level: Option<Level>,
}

impl HistoryOptions {
    /// A closed loop of 16 clients for 10 seconds without warm-up.
    pub fn new(url: &str, kind: Kind, isolation: Isolation) -> HistoryOptions {
        HistoryOptions {
            url: url.to_string(),
            shape: Shape::new(kind, 1, isolation),
            runner: RunnerOptions {
                warmup: Duration::ZERO,
                length: Duration::from_secs(10),
                ..RunnerOptions::default()
            },
            level: None,
        }
    }
}

/// A run with its history and its judgement.
#[derive(Debug)]
pub struct HistoryReport {
    /// Rates, times and outcomes.
    pub run: RunReport,
    /// What was seen.
    pub history: History,
    /// What it shows.
    pub verdict: Verdict,
}

/// Makes the tables, runs, reads everything, judges.
///
/// # Errors
/// An option that cannot work, or no connection at the beginning or at the end.
pub fn run(
    options: &HistoryOptions,
    progress: &mut dyn Progress,
) -> Result<HistoryReport, DriveError> {
    let target = Target::parse(&options.url)?.of_sql()?;
    let mut options = options.clone();
    options.shape.seed = options.runner.seed;
    // The judgement is what the run is for.
    options.runner.check = true;
    let shape = options.shape;
    if let Err(error) = shape.validate() {
        return Err(DriveError::Option(error.describe(&shape)));
    }
    let recorder = Recorder::new(&target, &options)?;
    progress.stage("creating tables");
    let mut link = recorder.connect()?;
    ready(create(&mut link, &shape)).during("creating tables")?;
    link.close();
    let run = run_workload(&recorder, &target, &options.runner, progress)?;
    let verdict = recorder.verdict.into_inner();
    let verdict = verdict.unwrap_or_else(PoisonError::into_inner);
    let history = recorder.history.into_inner();
    Ok(HistoryReport {
        run,
        history: history.unwrap_or_else(PoisonError::into_inner),
        verdict: verdict.expect("the run has verified its history"),
    })
}

/// A workload that remembers what its clients saw.
struct Recorder {
    target: Target,
    server: Server,
    shape: Shape,
    level: Level,
    timeout: Duration,
    start: Instant,
    next_txn: AtomicU64,
    /// Of lists and registers; 0 is never given.
    next_value: AtomicU64,
    next_process: AtomicU32,
    history: Mutex<History>,
    verdict: Mutex<Option<Verdict>>,
}

/// A connection, which is a process of the history: a client whose connection breaks is another
/// process afterwards.
struct Session {
    client: Client<Link>,
    process: u32,
}

impl Connected for Session {
    fn stream(&mut self) -> &mut Stream {
        self.client.link().stream()
    }
}

impl Recorder {
    fn new(target: &Target, options: &HistoryOptions) -> Result<Recorder, DriveError> {
        let timeout = options.runner.timeout;
        let (link, server) = Server::reach(target, Some(timeout))?;
        link.close();
        let shape = options.shape;
        Ok(Recorder {
            target: target.clone(),
            level: options.level.unwrap_or(promised(
                shape.isolation,
                server.is_trellis,
                server.dialect,
            )),
            server,
            shape,
            timeout,
            start: Instant::now(),
            next_txn: AtomicU64::new(0),
            next_value: AtomicU64::new(1),
            next_process: AtomicU32::new(SETUP_PROCESS + 1),
            history: Mutex::new(empty(&shape)),
            verdict: Mutex::new(None),
        })
    }

    fn connect(&self) -> Result<Link, DriveError> {
        Link::connect_any(&self.target, Some(self.timeout)).during("connecting")
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// One attempt, which becomes a transaction of the history.
    async fn attempt(&self, session: &mut Session, plan: &Plan) -> Result<Done, Failure> {
        let invoked = self.now_ns();
        let mut next_value = || self.next_value.fetch_add(1, Ordering::Relaxed);
        let attempt = session.client.attempt(plan, &mut next_value).await;
        let txn = attempt.record(session.process, invoked, self.now_ns());
        lock(&self.history).push(txn);
        attempt.result
    }

    /// Reads everything.
    fn read_all(&self) -> Result<(), DriveError> {
        let shape = final_shape(&self.shape);
        let mut link = self.connect()?;
        let tuned = self.server.tune(&mut link, Some(shape.isolation));
        tuned.during("preparing")?;
        let client = Client::open(link, &shape);
        let mut session = Session {
            client: ready(client).during("preparing")?,
            process: self.next_process.fetch_add(1, Ordering::Relaxed),
        };
        for plan in final_reads(&self.shape, self.next_txn.load(Ordering::Relaxed)) {
            let until = Instant::now() + self.timeout;
            loop {
                match ready(self.attempt(&mut session, &plan)) {
                    Ok(_) => break,
                    // Transactions whose clients are gone may still be in the way.
                    Err(Failure::Aborted(_) | Failure::Conflict(_)) if Instant::now() < until => {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    Err(failure) => return Err(lost(failure)),
                }
            }
        }
        Ok(())
    }
}

/// Why there is no last read.
fn lost(failure: Failure) -> DriveError {
    const DOING: &str = "reading everything at the end";
    match failure {
        Failure::Lost(error) | Failure::Unknown(error) => DriveError::Link(DOING, error),
        Failure::Aborted(error) => DriveError::Link(DOING, LinkError::Server(error)),
        Failure::Conflict(reason) => DriveError::NotLoaded(format!("{DOING}: {reason}")),
        Failure::Wrong(text) => DriveError::NotLoaded(format!("{DOING}: {text}")),
    }
}

impl RunWorkload for Recorder {
    type Terminal = ();
    type Input = Plan;
    type Session = Session;
    type Audit = ();
    type Ledger = ();

    fn describe(&self) -> Description {
        let shape = &self.shape;
        Description {
            name: shape.kind.name(),
            parameters: vec![
                ("isolation", shape.isolation.sql().to_string()),
                ("judged_by", self.level.name().to_string()),
                ("keys", shape.keys.to_string()),
                ("txn_len_max", shape.txn_len_max.to_string()),
                ("txns_per_key", shape.txns_per_key.to_string()),
            ],
            remarks: Vec::new(),
            measure: None,
            changes: false,
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["write", "read"]
    }

    fn terminal(&self, _: u32) {}

    fn generate(&self, (): &mut ()) -> Plan {
        let mut shape = self.shape;
        if self.level == Level::ReadCommitted {
            // What is computed from a row must have it locked, also where REPEATABLE READ is no
            // more than that.
            shape.isolation = Isolation::ReadCommitted;
        }
        Plan::draw(&shape, self.next_txn.fetch_add(1, Ordering::Relaxed))
    }

    fn kind(&self, plan: &Plan) -> usize {
        usize::from(!plan.writes())
    }

    fn server(&self) -> &Server {
        &self.server
    }

    fn open(&self, endpoint: &Endpoint, timeout: Duration) -> Result<Session, LinkError> {
        let mut link = Link::connect(endpoint, &self.target, Some(timeout))?;
        self.server.tune(&mut link, Some(self.shape.isolation))?;
        if !self.server.is_trellis && self.server.dialect == Dialect::Postgres {
            // Strong conflicts deadlock, and a second for each leaves nothing to see. Only a
            // superuser may say so; others record less.
            match link.command("SET deadlock_timeout = '10ms'") {
                Ok(()) | Err(LinkError::Server(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Session {
            client: ready(Client::open(link, &self.shape))?,
            process: self.next_process.fetch_add(1, Ordering::Relaxed),
        })
    }

    async fn execute(&self, session: &mut Session, plan: &Plan) -> Result<Done, Failure> {
        let result = self.attempt(session, plan).await;
        if matches!(result, Err(Failure::Wrong(_))) {
            // Its transaction has no end in the history, so its process must have none either.
            session.process = self.next_process.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    fn ledger(&self) -> Result<(), DriveError> {
        Ok(())
    }

    fn reconcile(&self, (): &(), (): &(), _: &[Acknowledged]) -> Vec<Finding> {
        Vec::new()
    }

    fn verify(&self, progress: &mut dyn Progress) -> Result<CheckReport, DriveError> {
        progress.stage("reading everything once more");
        self.read_all()?;
        let started = Instant::now();
        let history = lock(&self.history);
        progress.stage(&format!("judging {} transactions", history.txns.len()));
        let verdict = judge(&self.shape, &history, self.level, &Demand::default());
        let report = CheckReport {
            conditions: vec![condition(&verdict, 1, "the history has no anomaly")],
            took_ms: started.elapsed().as_millis() as u64,
        };
        *lock(&self.verdict) = Some(verdict);
        Ok(report)
    }
}

/// A verdict as a condition of the run. Inconclusive is as if nothing had been compared.
pub(crate) fn condition(verdict: &Verdict, number: usize, title: &'static str) -> CheckedCondition {
    let compared = match verdict.judgement {
        Judgement::Inconclusive => 0,
        Judgement::Pass | Judgement::Fail => verdict.exercised.concurrent_conflicts.max(1),
    };
    let first = verdict.anomalies.first();
    CheckedCondition {
        number,
        clause: verdict.level.name().to_string(),
        title,
        compared,
        failures: verdict.anomalies.len() as u64,
        counterexample: first.map(|anomaly| anomaly.name()),
    }
}
