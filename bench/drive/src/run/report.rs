//! What a run has found out.

use super::others::Clock;
use super::tally::{Tally, quantile_of};
use super::{NodeLoad, RunnerOptions};
use crate::shape::{CheckReport, Description};
use crate::tpcc::contention::ContentionReport;
use crate::tpcc::dike::DistributionReport;
use crate::tpcc::imbalance::ImbalanceReport;
use fault::{Fault, STEP_S, Samples};
use hdrhistogram::Histogram;
use links::server::{Counters, Server};
use links::url::Target;
use measures::steady::{self, Steady};
use versions::Judged;
use workload::finding::{Finding, Verdict};

/// The client's share of its cores above which a run carries a warning.
pub const CLIENT_CPU_MAX: f64 = 0.8;

/// One second of a run.
#[derive(Clone, Debug)]
pub struct Second {
    /// Seconds since the start of the run, warm-up included.
    pub second: u64,
    /// Whether it lies in the measured phase.
    pub measured: bool,
    /// Commits by kind.
    pub committed: Vec<u64>,
    /// Median response in microseconds.
    pub p50_us: u64,
    /// 99th percentile response in microseconds.
    pub p99_us: u64,
    /// Aborted attempts.
    pub aborts: u64,
}

/// What a worker of several had to do with a run.
#[derive(Clone, Debug)]
pub struct WorkerReport {
    /// As it was named.
    pub address: String,
    /// The cores that it had.
    pub cores: usize,
    /// Whether it is the same program as the coordinator, and not only of the same release.
    pub same_build: bool,
    /// The share of them that it used, 0 to 1.
    pub cpu: Option<f64>,
    /// What each of its threads used of a core, 0 to 1.
    pub threads: Vec<f64>,
    /// Its transactions that have committed in the measured phase.
    pub committed: u64,
    /// By how much it was late to begin what was due, in microseconds.
    pub lateness: Histogram<u64>,
    /// Its clock beside the coordinator's.
    pub clock: Clock,
}

/// The numbers of one kind of transaction.
#[derive(Clone, Debug)]
pub struct KindReport {
    /// Its name.
    pub name: &'static str,
    /// Its counts.
    pub tally: Tally,
}

/// Everything that a run found out.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// The workload.
    pub description: Description,
    /// The server.
    pub server: Server,
    /// Endpoints, user and database, without the password.
    pub target: Target,
    /// The options as used.
    pub options: RunnerOptions,
    /// When the run began, in seconds since 1970.
    pub started_unix_s: u64,
    /// Whether keying and think times were kept; only then the result is tpmC.
    pub paced: bool,
    /// By kind.
    pub kinds: Vec<KindReport>,
    /// Responses of all kinds.
    pub response: Histogram<u64>,
    /// Background executions of deferred transactions.
    pub deferred: Tally,
    /// By second.
    pub timeline: Vec<Second>,
    /// Why the run has no percentiles, if it fell behind its arrivals.
    pub overloaded: Option<String>,
    /// The server's counters over the measured phase; empty where it has none.
    pub counters: Counters,
    /// Each node over the measured phase; empty where the server does not tell.
    pub nodes: Vec<NodeLoad>,
    /// Audits of the inputs, and of what was acknowledged.
    pub audits: Vec<Finding>,
    /// The conditions after the run; `None` when they were not checked.
    pub consistency: Option<CheckReport>,
    /// The run's own history; `None`: it was not recorded.
    pub history: Option<Judged>,
    /// How the transactions were distributed; `None`: that was not controlled.
    pub distribution: Option<DistributionReport>,
    /// How many transactions competed for rows; `None`: that was not controlled.
    pub contention: Option<ContentionReport>,
    /// How unevenly data and transactions were dealt among warehouses, where that was controlled.
    pub imbalance: Option<ImbalanceReport>,
    /// What was broken, and what that cost.
    pub broken: Vec<Fault>,
    /// What the servers used, once a second; of those that were named.
    pub samples: Samples,
    /// Commits in each [`fault::STEP_S`] of the measured phase.
    pub steps: Vec<u64>,
    /// The client's share of its cores, 0 to 1.
    pub client_cpu: Option<f64>,
    /// What each of its threads used of a core, 0 to 1; empty where the system does not tell.
    pub client_threads: Vec<f64>,
    /// By how much the client itself was late to begin what was due, in microseconds.
    pub lateness: Histogram<u64>,
    /// The cores it had.
    pub client_cores: usize,
    /// The first message of each SQLSTATE or reason.
    pub messages: std::collections::BTreeMap<String, String>,
    /// Who had the load; empty: this process alone.
    pub workers: Vec<WorkerReport>,
}

impl WorkerReport {
    /// That it may be the bottleneck, if it may.
    fn warning(&self) -> Option<String> {
        let used = self.cpu.filter(|share| *share > CLIENT_CPU_MAX);
        let busy = self.threads.iter().copied().fold(0.0, f64::max);
        let used = match used {
            Some(share) => format!("{:.0} % of its {} cores", share * 100.0, self.cores),
            None if busy > CLIENT_CPU_MAX && self.threads.len() < self.cores => {
                format!("{:.0} % of a core by one of its threads", busy * 100.0)
            }
            None => return None,
        };
        Some(format!(
            "worker {} used {used}: it may be the bottleneck",
            self.address
        ))
    }
}

impl RunReport {
    /// Committed transactions of all kinds in the measured phase.
    pub fn committed(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.tally.committed).sum()
    }

    /// Aborted attempts of all kinds.
    pub fn aborted(&self) -> u64 {
        let kinds = self.kinds.iter();
        kinds.flat_map(|kind| kind.tally.aborts.values()).sum()
    }

    /// Transactions that were given up.
    pub fn failed(&self) -> u64 {
        let kinds = self.kinds.iter();
        kinds.flat_map(|kind| kind.tally.failed.values()).sum()
    }

    /// Transactions whose outcome is unknown.
    pub fn unknown(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.tally.unknown).sum()
    }

    /// Commits of all kinds per second, by those that came within the measured phase.
    pub fn committed_per_s(&self) -> f64 {
        let in_phase: u64 = self.kinds.iter().map(|kind| kind.tally.in_phase).sum();
        in_phase as f64 / self.options.length.as_secs_f64()
    }

    /// Whether and when the rate of commits settled, by the seconds of the measured phase; `None`:
    /// there are too few, or the run was to change (a curve, a fault, phases of contention).
    pub fn steady(&self) -> Option<Steady> {
        let changes = self.description.changes || self.options.curve.is_some();
        if changes || !self.broken.is_empty() {
            return None;
        }
        let steps = (1.0 / STEP_S + 0.5) as usize;
        let seconds = self.steps.chunks_exact(steps);
        let seconds: Vec<u64> = seconds.map(|steps| steps.iter().sum()).collect();
        steady::steady(&seconds)
    }

    /// Transactions without an outcome when the run ended, deferred ones included.
    pub fn unfinished(&self) -> u64 {
        let kinds = self.kinds.iter().map(|kind| kind.tally.unfinished);
        kinds.sum::<u64>() + self.deferred.unfinished
    }

    /// A quantile of the response times of all kinds ([`Tally::response_at`]).
    pub fn response_at(&self, quantile: f64) -> Option<u64> {
        let unanswered = self.kinds.iter().map(|kind| kind.tally.unanswered());
        quantile_of(&self.response, unanswered.sum(), quantile)
    }

    /// Processor time of the client for a transaction that has ended, in microseconds.
    pub fn client_us_per_txn(&self) -> Option<f64> {
        let ended = |kind: &KindReport| kind.tally.in_phase + kind.tally.rolled_back_in_phase;
        let ended: u64 = self.kinds.iter().map(ended).sum();
        let used: f64 = self.client_threads.iter().sum();
        let us = used * self.options.length.as_secs_f64() * 1e6;
        (ended > 0 && used > 0.0).then(|| us / ended as f64)
    }

    /// Transactions of one kind that did their work, per minute of the measured phase: committed,
    /// or rolled back as their input says (of TPC-C's NewOrder, clause 5.4.1 counts both).
    pub fn per_minute(&self, kind: usize) -> f64 {
        let tally = &self.kinds[kind].tally;
        let done = tally.in_phase + tally.rolled_back_in_phase;
        done as f64 * 60.0 / self.options.length.as_secs_f64()
    }

    /// Audits that passed.
    pub fn audits_passed(&self) -> usize {
        self.audits_with(Verdict::Passed)
    }

    /// Audits that failed.
    pub fn audits_failed(&self) -> usize {
        self.audits_with(Verdict::Failed)
    }

    fn audits_with(&self, verdict: Verdict) -> usize {
        let audits = self.audits.iter();
        audits.filter(|finding| finding.verdict == verdict).count()
    }

    /// Whether the run has a number: nothing that was checked failed.
    pub fn has_number(&self) -> bool {
        self.consistency
            .as_ref()
            .is_none_or(|check| check.failed() == 0)
    }

    /// Whether everything that was asked for passed: the exit code of a command.
    pub fn passed(&self) -> bool {
        self.has_number() && self.audits_failed() == 0 && self.committed() > 0
    }

    /// What did not pass, a line each: conditions and audits that failed, or that nothing was
    /// committed.
    pub fn faults(&self) -> Vec<String> {
        let conditions = self.consistency.iter().flat_map(|check| &check.conditions);
        let conditions = conditions.filter(|condition| !condition.passed());
        let mut faults: Vec<String> = conditions
            .map(|condition| {
                let example = condition.counterexample.as_deref();
                let example = example.unwrap_or("nothing to compare");
                format!("{} ({}): {example}", condition.title, condition.clause)
            })
            .collect();
        let audits = self.audits.iter();
        let audits = audits.filter(|finding| finding.verdict == Verdict::Failed);
        faults.extend(audits.map(|finding| {
            let Finding {
                title,
                clause,
                observed,
                allowed,
                ..
            } = finding;
            format!("{title} ({clause}): {observed}, allowed {allowed}")
        }));
        if self.committed() == 0 {
            faults.push(String::from("no transaction was committed"));
        }
        faults
    }

    /// What a reader must know about the client.
    fn client_warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        warnings.extend(self.workers.iter().filter_map(WorkerReport::warning));
        let others = self.workers.iter().filter(|worker| !worker.same_build);
        warnings.extend(others.map(|worker| {
            let address = &worker.address;
            format!("worker {address} is another build of this release: its inputs may differ")
        }));
        let alone = self.client_cpu.filter(|_| self.workers.is_empty());
        if let Some(share) = alone.filter(|&share| share > CLIENT_CPU_MAX) {
            warnings.push(format!(
                "the client used {:.0} % of its {} cores: it may be the bottleneck",
                share * 100.0,
                self.client_cores
            ));
        }
        let busy = self.client_threads.iter().copied().fold(0.0, f64::max);
        let is_alone = self.workers.is_empty();
        if is_alone && busy > CLIENT_CPU_MAX && self.client_threads.len() < self.client_cores {
            warnings.push(format!(
                "a thread of the client used {:.0} % of its core: it may be the bottleneck",
                busy * 100.0
            ));
        }
        warnings
    }

    /// What a reader must know about the measurement.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.description.remarks.clone();
        warnings.extend(self.client_warnings());
        if self.unfinished() > 0 {
            warnings.push(format!(
                "{} transactions were unfinished when the run ended: quantiles that they may reach \
                 are not shown",
                self.unfinished()
            ));
        }
        if self.unknown() > 0 {
            warnings.push(format!(
                "{} transactions have an unknown outcome",
                self.unknown()
            ));
        }
        if self.failed() > 0 {
            warnings.push(format!("{} transactions failed", self.failed()));
        }
        if let Some(reason) = self.distribution.iter().find_map(|it| it.not_told.as_ref()) {
            warnings.push(format!(
                "the server has not told how many nodes the transactions touched: {reason}"
            ));
        }
        if self.broken.iter().any(|fault| fault.kind.ends_process()) {
            warnings.push(String::from(
                "a server was started anew: its counters over the run are not known",
            ));
        }
        if let Some(reason) = &self.overloaded {
            warnings.push(format!("overloaded: {reason}"));
        }
        match self.steady() {
            Some(Steady::Late) => warnings.push(String::from(
                "no steady state: the rate settled in the second half of the run or not at all; \
                 a longer --warmup or more --seconds may help",
            )),
            Some(Steady::Drifts { change }) => warnings.push(format!(
                "no steady state: the rate changed by {:+.0} % in the course of the run",
                100.0 * change
            )),
            Some(Steady::From { second, mean }) if second > 0 => warnings.push(format!(
                "steady from second {second} on, with {mean:.1} commits a second; the seconds \
                 before are in the result (a longer --warmup leaves them out)"
            )),
            Some(Steady::From { .. }) | None => {}
        }
        if self.consistency.is_none() {
            warnings.push(String::from("the consistency conditions were not checked"));
        }
        warnings
    }

    /// A server counter per committed transaction, by the server's own count of commits.
    pub fn per_txn(&self, counter: &str) -> Option<f64> {
        let commits = self
            .counters
            .get("txn_committed")
            .copied()
            .filter(|&n| n > 0)?;
        Some(*self.counters.get(counter)? as f64 / commits as f64)
    }
}
