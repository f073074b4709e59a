//! The shape of a workload: generate, execute, verify, describe.
//!
//! The runner knows only this trait, so loops, pacing, retries, histograms and reports are the same
//! for every workload.

use crate::run::others::Others;
use crate::run::parts::Lead;
use crate::run::tally::{Acknowledged, Tally};
use crate::tpcc::Recorded;
use crate::tpcc::contention::ContentionReport;
use crate::tpcc::dike::DistributionReport;
use crate::tpcc::imbalance::ImbalanceReport;
use links::error::DriveError;
use links::link::{Link, LinkError};
use links::server::Server;
use links::stream::Stream;
use links::url::Endpoint;
use links::view::Progress;
use std::time::{Duration, Instant};
use versions::Judged;
use workload::finding::Finding;
use workload::wire::Session;

pub use workload::wire::{Done, Ending};

/// One attempt that did not end as it should.
pub type Failure = workload::wire::Failure<LinkError>;

/// Name and parameters of a workload, for reports.
#[derive(Clone, Debug)]
pub struct Description {
    /// Such as `tpcc`.
    pub name: &'static str,
    /// Resolved parameters in a fixed order.
    pub parameters: Vec<(&'static str, String)>,
    /// What a reader must know before comparing numbers, such as a reduced scale.
    pub remarks: Vec<String>,
    /// The rate by which runs of the workload are compared, if it has one.
    pub measure: Option<Measure>,
    /// Whether what it does changes with the second of the run, so that no steady state is to be
    /// expected.
    pub changes: bool,
}

/// Commits of one kind per minute: the measure of a workload whose specification names one.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Index of the kind that counts.
    pub kind: usize,
    /// Most of them per minute that the sizes allow, with keying and think times.
    pub per_minute_max: f64,
    /// What a report calls the pieces of work that were left out because there was nothing to do.
    pub skipped: &'static str,
}

/// One numbered condition that a check compared.
#[derive(Clone, Debug)]
pub struct CheckedCondition {
    /// From 1.
    pub number: usize,
    /// The clause or section.
    pub clause: String,
    /// What must hold.
    pub title: &'static str,
    /// Groups compared.
    pub compared: u64,
    /// Groups that differ.
    pub failures: u64,
    /// The first that differs.
    pub counterexample: Option<String>,
}

impl CheckedCondition {
    /// Whether it holds, and not only because there was nothing to compare.
    pub fn passed(&self) -> bool {
        self.failures == 0 && self.compared > 0
    }
}

/// The outcome of verifying a database.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// All conditions in order.
    pub conditions: Vec<CheckedCondition>,
    /// How long the check took, in milliseconds.
    pub took_ms: u64,
}

impl CheckReport {
    /// Conditions that hold.
    pub fn passed(&self) -> usize {
        self.conditions
            .iter()
            .filter(|condition| condition.passed())
            .count()
    }

    /// Conditions that do not hold.
    pub fn failed(&self) -> usize {
        self.conditions.len() - self.passed()
    }
}

/// A connection that an event loop can wait for.
pub trait Connected {
    /// Its bytes.
    fn stream(&mut self) -> &mut Stream;

    /// Those of a second connection, if it has one for transactions that only read.
    fn other_stream(&mut self) -> Option<&mut Stream> {
        None
    }
}

impl Connected for Session<Link> {
    fn stream(&mut self) -> &mut Stream {
        self.link().stream()
    }
}

/// Who steers a run of several processes.
#[derive(Clone, Copy)]
pub enum Steering<'a> {
    /// There is one process.
    Alone,
    /// This one, which has no load itself: what the others count is added, and what is wanted is
    /// dealt to them.
    Leads(&'a dyn Others),
    /// Another one, and this one has a part of the load.
    Follows(&'a dyn Lead),
}

/// A workload whose database is loaded. `ledger` and `verify` open their own connections.
pub trait Workload: Sync {
    /// One user's state: home, deck, generator.
    type Terminal: Send;
    /// The input of one transaction.
    type Input: Send + 'static;
    /// A connection with what the transactions prepared on it.
    type Session: Connected + Send + 'static;
    /// Counts of drawn inputs.
    type Audit: Default + Send;
    /// Sums that the database holds and the run adds to.
    type Ledger;

    /// Name, parameters and remarks.
    fn describe(&self) -> Description;

    /// Names of the transaction kinds; a kind is an index into them.
    fn kinds(&self) -> &'static [&'static str];

    /// Terminal `number`, from 0.
    fn terminal(&self, number: u32) -> Self::Terminal;

    /// The next input of a terminal.
    fn generate(&self, terminal: &mut Self::Terminal) -> Self::Input;

    /// The kind of an input.
    fn kind(&self, input: &Self::Input) -> usize;

    /// Keying time before and think time after a transaction, in microseconds; `None` when the
    /// workload runs without pauses.
    fn pauses_us(&self, terminal: &mut Self::Terminal, kind: usize) -> Option<(u64, u64)> {
        let _ = (terminal, kind);
        None
    }

    /// How the transactions were distributed, once they have been reconciled; `None`: that was not
    /// controlled.
    fn distribution(&self) -> Option<DistributionReport> {
        None
    }

    /// How many transactions competed for rows; `None`: that was not controlled.
    fn contention(&self) -> Option<ContentionReport> {
        None
    }

    /// How unevenly data and transactions were dealt among warehouses; `None`: that was not
    /// controlled.
    fn imbalance(&self) -> Option<ImbalanceReport> {
        None
    }

    /// The run's own history, once it has been verified; `None`: it was not recorded.
    fn own_history(&self) -> Option<Judged> {
        None
    }

    /// Whether [`Workload::attend`] does anything.
    fn attends(&self) -> bool {
        false
    }

    /// Watches and steers the run from its begin to its end, on a thread of its own. `second` is
    /// that of the measured phase, below 0 before it; `None`: it is over.
    fn attend(&self, second: &dyn Fn() -> Option<f64>, steering: Steering<'_>) {
        let _ = (second, steering);
    }

    /// What this process has recorded of the run's own history, for another process that judges
    /// all of it; times count from `start`. `None`: nothing was to be recorded.
    fn take_recorded(&self, start: Instant) -> Option<Recorded> {
        let _ = start;
        None
    }

    /// Whether the processes that have the load are to record what they see; at most so many reads
    /// and writes, all together.
    fn records(&self) -> Option<usize> {
        None
    }

    /// Adds what another process has recorded since the run began. Its times are right to within
    /// `slack`.
    fn add_recorded(&self, recorded: &Recorded, slack: Duration) {
        let _ = (recorded, slack);
    }

    /// Grows when attempts that wait for each other may go on; `None`: none ever does.
    fn turns(&self) -> Option<u64> {
        None
    }

    /// Whether terminals key and think.
    fn is_paced(&self) -> bool {
        false
    }

    /// Terminals among which the arrivals of an open loop are dealt; `None`: as many as clients.
    fn population(&self) -> Option<u32> {
        None
    }

    /// Whether transactions of this kind are queued and executed in the background.
    fn is_deferred(&self, kind: usize) -> bool {
        let _ = kind;
        false
    }

    /// The server that is measured.
    fn server(&self) -> &Server;

    /// Connects to a node and prepares the statements there. `timeout` bounds every later wait.
    fn open(&self, endpoint: &Endpoint, timeout: Duration) -> Result<Self::Session, LinkError>;

    /// Runs one attempt of one transaction. At its end no transaction is open on the session.
    fn execute(
        &self,
        session: &mut Self::Session,
        input: &Self::Input,
    ) -> impl Future<Output = Result<Done, Failure>>;

    /// Counts a drawn input.
    fn note(&self, audit: &mut Self::Audit, input: &Self::Input) {
        let _ = (audit, input);
    }

    /// Judges the merged counts.
    fn findings(&self, audits: Vec<Self::Audit>) -> Vec<Finding> {
        let _ = audits;
        Vec::new()
    }

    /// What this process has counted of a part of a run, its audits included, as plain counters:
    /// those of several processes can be added.
    fn counters(&self, audits: Vec<Self::Audit>) -> Vec<u64> {
        let _ = audits;
        Vec::new()
    }

    /// Adds the counters of another process. Returns its audit; `None`: they are not of this run.
    fn add_counters(&self, counters: &[u64]) -> Option<Self::Audit> {
        counters.is_empty().then(Self::Audit::default)
    }

    /// Judges the times of transactions, by kind and of those in the background, where the
    /// workload's specification limits them.
    fn judge_times(&self, kinds: &[Tally], deferred: &Tally) -> Vec<Finding> {
        let _ = (kinds, deferred);
        Vec::new()
    }

    /// Reads what the run will add to, before and after the run.
    fn ledger(&self) -> Result<Self::Ledger, DriveError>;

    /// Compares what the database gained with what it acknowledged, per kind: every acknowledged
    /// commit must be found, and nothing that nobody asked for.
    fn reconcile(
        &self,
        before: &Self::Ledger,
        after: &Self::Ledger,
        whole: &[Acknowledged],
    ) -> Vec<Finding>;

    /// Checks the database's content.
    fn verify(&self, progress: &mut dyn Progress) -> Result<CheckReport, DriveError>;
}
