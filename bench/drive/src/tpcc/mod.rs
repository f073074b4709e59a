//! TPC-C over the PostgreSQL wire: load, run, check.

mod accounts;
pub mod check;
pub mod contention;
pub mod csv;
pub mod dike;
mod gate;
pub mod imbalance;
pub mod load;
mod near;
mod options;
mod own;
mod reads;
mod times;
mod told;
mod without;

use crate::run::others::Others;
use crate::run::parts::{self, Lead, Part, PartResult};
use crate::run::tally::{Acknowledged, Tally};
use crate::run::{RunReport, RunnerOptions, run as run_workload, run_by as run_workload_by};
use crate::shape::{CheckReport, Description, Done, Failure, Measure, Steering, Workload};
use contention::{ContentionControl, ContentionReport};
use dike::{Dike, DistributionReport};
use imbalance::ImbalanceReport;
use links::error::DriveError;
use links::link::{Link, LinkError, ready};
use links::server::{POSTGRES_SETTINGS, Server};
use links::url::{Endpoint, Target};
use links::view::Progress;
use load::Book;
use near::Near;
use own::Recorder;
use reads::{Replicas, Sessions};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use told::Told;
use versions::{Judged, Noted};
use workload::dialect::Dialect;
use workload::dike::contention::hot_statement;
use workload::dike::further;
use workload::finding::{Finding, Verdict};
use workload::tpcc::audit::Audit;
use workload::tpcc::check::Ledger;
use workload::tpcc::deck::tpmc_per_terminal_max;
use workload::tpcc::input::{Input, Terminal};
use workload::tpcc::random::Constants;
use workload::tpcc::rows::Content;
use workload::tpcc::{Districts, Kind, Scale, Skew, sql, transactions};
use workload::wire::Session;

pub use gate::Gathering;
pub use options::{LoadOptions, RunOptions};
pub use own::{OwnHistory, Recorded};
pub use without::Without;
pub use workload::wire::Isolation;

/// Clause 4.2.2.
const TERMINALS_PER_WAREHOUSE: u32 = 10;

/// `1 warehouse`, `2 warehouses`.
fn warehouses(count: u32) -> String {
    format!("{count} warehouse{}", if count == 1 { "" } else { "s" })
}

/// Creates and fills the database, or goes on where an earlier load stopped.
pub fn load(options: &LoadOptions, progress: &mut dyn Progress) -> Result<(), DriveError> {
    let target = Target::parse(&options.url)?.of_sql()?;
    load::load(&target, options, progress)
}

/// Runs the mix, audits the inputs, reconciles what was acknowledged, checks the conditions.
pub fn run(options: &RunOptions, progress: &mut dyn Progress) -> Result<RunReport, DriveError> {
    run_by(options, None, progress)
}

/// The same with the load from other processes, if there are any.
///
/// # Errors
/// As for [`run`], and if one of the others is lost.
pub fn run_by(
    options: &RunOptions,
    others: Option<&dyn Others>,
    progress: &mut dyn Progress,
) -> Result<RunReport, DriveError> {
    if let (Some(_), Some(dike)) = (others, &options.dike)
        && dike.control == ContentionControl::Blocking
    {
        return Err(DriveError::Option(String::from(
            "--contention-control blocking cannot be with --worker: orders wait for each other \
             within one process",
        )));
    }
    let tpcc = Tpcc::of_database(options)?;
    let target = tpcc.target.clone();
    run_workload_by(&tpcc, &target, &options.runner, others, progress)
}

/// Runs a part of the mix for somebody else; `None`: it was ended before its time.
///
/// # Errors
/// As for [`run`].
pub fn run_part(
    options: &RunOptions,
    part: Part,
    lead: &dyn Lead,
) -> Result<Option<PartResult>, DriveError> {
    let mut options = options.clone();
    if let Some(own) = &mut options.histories {
        own.operations_max = own.operations_max.div_ceil(part.count.max(1) as usize);
    }
    let tpcc = Tpcc::of_database(&options)?;
    parts::run_part(&tpcc, &tpcc.target, &options.runner, part, lead)
}

/// Runs the mix of so many warehouses against a server that answers at once ([`links::echo`]):
/// what the client costs, and how long its own part of a response is.
///
/// # Errors
/// As for [`run`].
pub fn calibrate(
    options: &RunOptions,
    warehouses: u32,
    progress: &mut dyn Progress,
) -> Result<RunReport, DriveError> {
    let target = Target::parse(&options.url)?.of_sql()?;
    let server = Server {
        version: String::from("echo server"),
        ..Server::default()
    };
    let content = Content {
        scale: Scale::standard(warehouses),
        seed: 1,
        constants: Constants::for_load(1),
        now_us: 0,
    };
    let mut tpcc = Tpcc::new(target.clone(), server, content, options);
    tpcc.has_data = false;
    let runner = RunnerOptions {
        check: false,
        ..options.runner.clone()
    };
    run_workload(&tpcc, &target, &runner, progress)
}

/// Checks the twelve conditions on one snapshot.
pub fn check(url: &str, progress: &mut dyn Progress) -> Result<CheckReport, DriveError> {
    check::check(&Target::parse(url)?.of_sql()?, progress)
}

/// TPC-C as a [`Workload`].
#[derive(Debug)]
pub struct Tpcc {
    target: Target,
    server: Server,
    content: Content,
    run: Constants,
    seed: u64,
    isolation: Isolation,
    keying: bool,
    clients: u32,
    /// Whether the server has what it says; otherwise nothing is to be found there.
    has_data: bool,
    dike: Option<Dike>,
    /// Servers are broken in the course of the run.
    breaks: bool,
    /// Whether the database has the accounts of Dike's transactions.
    has_accounts: bool,
    /// What the tables were created without.
    without: Without,
    districts: Districts,
    /// Where transactions go that only read.
    replicas: Option<Replicas>,
    /// The first and the last terminal, from 1, where they are a part of all.
    terminals: Option<(u32, u32)>,
    /// The only kind of each terminal, from its first on; empty: they have all kinds.
    bound: Vec<Kind>,
    /// Where terminals are at home if they are to be at the node that they are connected to.
    near: Option<Near>,
    /// What the server said of a controlled run.
    distribution: Mutex<Option<DistributionReport>>,
    /// Records the history of the run.
    recorder: Option<Recorder>,
}

impl Tpcc {
    /// Takes scale and constants from the loaded database.
    pub fn of_database(options: &RunOptions) -> Result<Tpcc, DriveError> {
        let target = Target::parse(&options.url)?.of_sql()?;
        if let Some((first, last)) = options.terminals
            && !(1..=last).contains(&first)
        {
            return Err(DriveError::Option(format!(
                "terminals {first} to {last}: they count from 1, and the last is not before the \
                 first"
            )));
        }
        let mut controls = options.dike.iter();
        controls.try_for_each(|dike| dike.validate(&options.runner, options.keying))?;
        let (mut link, server) = Server::reach(&target, Some(options.runner.timeout))?;
        let book = Book::read(&mut link)?;
        let (content, without) = (book.finished_content()?, book.without());
        let has_accounts = book.has_accounts();
        let dike = match &options.dike {
            Some(dike) => {
                dike.meets(&content.scale, without, has_accounts)?;
                let run = (dike, options.isolation, options.runner.seed);
                Some(Dike::new(&mut link, &server, &content.scale, run)?)
            }
            None => None,
        };
        let near = match &options.dike {
            Some(dike) if dike.at_home => {
                let warehouses = content.scale.warehouses;
                Some(Near::ask(&mut link, &server, &target, warehouses)?)
            }
            _ => None,
        };
        let recorder = Recorder::of_run(options, &mut link, &server, &content.scale)?;
        let replicas = match &options.read_urls {
            Some(url) => {
                let of = (&mut link, &server);
                let timeout = options.runner.timeout;
                Some(Replicas::new(url, of, options.isolation, timeout)?)
            }
            None => None,
        };
        link.close();
        if let Some(wanted) = options
            .warehouses
            .filter(|&w| w != content.scale.warehouses)
        {
            let loaded = content.scale.warehouses;
            return Err(DriveError::OtherData(format!(
                "{} loaded, {wanted} asked for",
                warehouses(loaded)
            )));
        }
        let mut tpcc = Tpcc {
            recorder,
            dike,
            near,
            has_accounts,
            replicas,
            without,
            ..Tpcc::new(target, server, content, options)
        };
        tpcc.bind(options)?;
        Ok(tpcc)
    }

    /// Gives each terminal its kind, if it is to have one only.
    fn bind(&mut self, options: &RunOptions) -> Result<(), DriveError> {
        let Some(dike) = options.dike.as_ref().filter(|dike| dike.bind_transactions) else {
            return Ok(());
        };
        let count = match options.runner.rate {
            Some(_) => self.population(),
            None => None,
        };
        let count = count.unwrap_or(options.runner.clients);
        let mut prng = workload::stream(self.seed, &[0x626f_756e, u64::from(self.first())]);
        let dealt = dike.mix.deal(count, &mut prng);
        self.bound =
            dealt.map_err(|error| DriveError::Option(format!("--bind-transactions: {error}")))?;
        Ok(())
    }

    /// The number of the first terminal, from 0.
    fn first(&self) -> u32 {
        self.terminals.map_or(0, |(first, _)| first - 1)
    }

    fn new(target: Target, server: Server, content: Content, options: &RunOptions) -> Tpcc {
        let seed = options.runner.seed;
        Tpcc {
            target,
            server,
            content,
            run: Constants::for_run(seed, content.constants.c_last),
            seed,
            isolation: options.isolation,
            keying: options.keying,
            clients: options.runner.clients,
            has_data: true,
            dike: None,
            breaks: !options.runner.faults.plans.is_empty(),
            has_accounts: false,
            without: Without::default(),
            districts: content.scale.districts(),
            replicas: None,
            terminals: options.terminals,
            bound: Vec::new(),
            near: None,
            distribution: Mutex::new(None),
            recorder: None,
        }
    }

    /// Connects, and prepares all statements.
    fn session(
        &self,
        endpoint: &Endpoint,
        target: &Target,
        timeout: Duration,
    ) -> Result<Session<Noted<Link>>, LinkError> {
        let mut link = Link::connect(endpoint, target, Some(timeout))?;
        self.server.tune(&mut link, Some(self.isolation))?;
        let mut statements = sql::all(self.isolation);
        if self.dike.is_some() {
            statements.extend(further::statements(self.has_accounts));
        }
        let hot_rows = self.dike.iter().flat_map(|dike| &dike.controls.hot_rows);
        statements.extend(hot_rows.map(|row| (hot_statement(row), Vec::new())));
        let link = match &self.recorder {
            None => Noted::unseen(link),
            Some(_) => own::watched(link, &mut statements),
        };
        for (statement, _) in &mut statements {
            *statement = self.server.dialect.statement(statement);
        }
        ready(Session::open(link, &statements))
    }

    /// Whether there are other transactions than those of TPC-C.
    fn has_further(&self) -> bool {
        self.dike.as_ref().is_some_and(|dike| dike.has_further)
    }

    /// What is loaded that TPC-C does not have so.
    fn content_remarks(&self) -> Vec<String> {
        let mut remarks = self.without.remarks();
        if self.content.scale.skew != Skew::NONE {
            remarks.push(format!(
                "districts dealt among warehouses by Zipf with exponent {}",
                self.content.scale.skew
            ));
        }
        remarks
    }

    /// What a reader must know before comparing numbers.
    fn remarks(&self) -> Vec<String> {
        let scale = self.content.scale;
        let mut remarks = self.content_remarks();
        let even = Scale {
            skew: Skew::NONE,
            ..scale
        };
        if !even.is_standard() {
            let (i, c, o) = (scale.items, scale.customers, scale.orders);
            remarks.push(format!(
                "nonstandard scale: {i} items, {c} customers and {o} orders per district"
            ));
        }
        if self.isolation != Isolation::Serializable {
            remarks.push(format!(
                "isolation {} is weaker than clause 3.4",
                self.isolation.sql()
            ));
        }
        match self.server.dialect {
            Dialect::MySql => remarks.push(String::from(
                "what an UPDATE gives back is read by a SELECT behind it",
            )),
            Dialect::Postgres if self.has_data && !self.server.is_trellis => {
                remarks.push(format!("the sessions of the run say {POSTGRES_SETTINGS}"));
            }
            Dialect::Postgres => {}
        }
        if self.keying && self.clients != TERMINALS_PER_WAREHOUSE * scale.warehouses {
            remarks.push(format!(
                "{} terminals instead of ten per warehouse (clause 4.2.2)",
                self.clients
            ));
        }
        if self.replicas.is_some() {
            remarks.push(String::from(
                "transactions that only read went to replicas, which may show what is old",
            ));
        }
        if self.recorder.is_some() {
            remarks.push(String::from(
                "statements return the counters of their rows, for the run's own history",
            ));
        }
        if self.dike.is_some() {
            remarks.push(String::from("Dike's controls: no run of TPC-C"));
        }
        remarks
    }
}

impl Workload for Tpcc {
    type Terminal = Terminal;
    type Input = Input;
    type Session = Sessions;
    type Audit = Audit;
    type Ledger = ((Ledger, i64), Told);

    fn describe(&self) -> Description {
        let Content {
            scale, constants, ..
        } = self.content;
        let terminals = TERMINALS_PER_WAREHOUSE * scale.warehouses;
        let delivery = if self.keying {
            "queued, in the background"
        } else {
            "inline"
        };
        let (name, controlled) = match &self.dike {
            None => ("tpcc", Vec::new()),
            Some(dike) => ("dike", dike.parameters()),
        };
        let mut description = Description {
            name,
            parameters: vec![
                ("warehouses", scale.warehouses.to_string()),
                ("items", scale.items.to_string()),
                ("customers_per_district", scale.customers.to_string()),
                ("orders_per_district", scale.orders.to_string()),
                ("load_seed", self.content.seed.to_string()),
                ("isolation", self.isolation.sql().to_string()),
                ("keying_and_think_times", self.keying.to_string()),
                ("delivery", delivery.to_string()),
                ("c_last_load", constants.c_last.to_string()),
                ("c_last_run", self.run.c_last.to_string()),
                ("c_id_run", self.run.c_id.to_string()),
                ("ol_i_id_run", self.run.ol_i_id.to_string()),
            ],
            remarks: self.remarks(),
            measure: Some(Measure {
                kind: Kind::NewOrder.number(),
                per_minute_max: tpmc_per_terminal_max() * f64::from(terminals),
                skipped: "districts without an order to deliver",
            }),
            changes: self.dike.as_ref().is_some_and(Dike::changes),
        };
        description.parameters.extend(controlled);
        if let Some(replicas) = &self.replicas {
            let read = ("read_endpoints", replicas.describe());
            description.parameters.push(read);
        }
        if let Some((first, last)) = self.terminals {
            let range = format!("{first},{last}");
            description.parameters.push(("terminal_range", range));
        }
        if let Some(recorder) = &self.recorder {
            let level = recorder.level().name().to_string();
            description.parameters.push(("history_judged_by", level));
        }
        if self.near.is_some() {
            let at_home = ("clients_at_home", String::from("true"));
            description.parameters.push(at_home);
        }
        if !self.bound.is_empty() {
            let bound = ("bind_transactions", String::from("true"));
            description.parameters.push(bound);
        }
        description
    }

    fn kinds(&self) -> &'static [&'static str] {
        match self.has_further() {
            true => &Kind::NAMES,
            false => &Kind::TPCC_NAMES,
        }
    }

    fn terminal(&self, number: u32) -> Terminal {
        let (scale, districts) = (self.content.scale, self.districts.clone());
        let kind = self.bound.get(number as usize).copied();
        let near = self.near.as_ref();
        let home = near.map(|near| near.home(number, &self.districts));
        let number = self.first() + number;
        let terminal = Terminal::of(scale, districts, self.run, self.seed, number);
        let terminal = terminal.bound_to(kind).at_home(home);
        match &self.dike {
            Some(dike) => terminal.controlled(dike.controls.clone()),
            None => terminal,
        }
    }

    fn generate(&self, terminal: &mut Terminal) -> Input {
        let input = terminal.draw();
        if let Some(dike) = &self.dike {
            dike.note_drawn(&input);
        }
        input
    }

    fn kind(&self, input: &Input) -> usize {
        input.kind().number()
    }

    fn pauses_us(&self, terminal: &mut Terminal, kind: usize) -> Option<(u64, u64)> {
        let kind = Kind::ALL[kind];
        self.keying
            .then(|| (kind.keying_us(), terminal.think_us(kind)))
    }

    fn is_deferred(&self, kind: usize) -> bool {
        self.keying && Kind::ALL[kind] == Kind::Delivery
    }

    fn server(&self) -> &Server {
        &self.server
    }

    fn open(&self, endpoint: &Endpoint, timeout: Duration) -> Result<Sessions, LinkError> {
        let main = self.session(endpoint, &self.target, timeout)?;
        let process = self.recorder.as_ref().map_or(0, Recorder::process);
        let Some(replicas) = &self.replicas else {
            let reads = None;
            return Ok(Sessions {
                main,
                reads,
                process,
            });
        };
        let mut reads = Err(LinkError::Protocol("no replica"));
        for endpoint in replicas.in_turn() {
            reads = self.session(endpoint, &replicas.target, timeout);
            if reads.is_ok() {
                break;
            }
        }
        let reads = Some(reads?);
        Ok(Sessions {
            main,
            reads,
            process,
        })
    }

    async fn execute(&self, sessions: &mut Sessions, input: &Input) -> Result<Done, Failure> {
        if let Some(dike) = &self.dike {
            dike.wait_turn(input).await;
        }
        let invoked = self.recorder.as_ref().and_then(Recorder::begin);
        let session = sessions.of(input.kind());
        let result = transactions::execute(session, input).await;
        if let Some(recorder) = &self.recorder {
            recorder.end(invoked, sessions, &result);
        }
        if let Some(dike) = &self.dike {
            dike.note_ended(input, &result);
        }
        result
    }

    fn turns(&self) -> Option<u64> {
        self.dike.as_ref().and_then(Dike::turns)
    }

    fn is_paced(&self) -> bool {
        self.keying
    }

    fn population(&self) -> Option<u32> {
        Some(match self.terminals {
            Some((first, last)) => last - first + 1,
            None => TERMINALS_PER_WAREHOUSE * self.content.scale.warehouses,
        })
    }

    fn note(&self, audit: &mut Audit, input: &Input) {
        audit.note(input, &self.content.scale);
    }

    fn findings(&self, audits: Vec<Audit>) -> Vec<Finding> {
        if self.dike.is_some() {
            // Its inputs are not those of the specification.
            return Vec::new();
        }
        let mut sum = Audit::default();
        audits.iter().for_each(|audit| sum.merge(audit));
        let load = self.content.constants.c_last;
        sum.findings(&self.content.scale, load, self.run.c_last)
    }

    fn counters(&self, audits: Vec<Audit>) -> Vec<u64> {
        let mut sum = Audit::default();
        audits.iter().for_each(|audit| sum.merge(audit));
        let mut counters = sum.counters();
        counters.extend(self.dike.iter().flat_map(Dike::counters));
        counters
    }

    fn add_counters(&self, counters: &[u64]) -> Option<Audit> {
        let mut counters = counters.iter();
        let audit = Audit::take_counters(&mut counters)?;
        let fits = match &self.dike {
            Some(dike) => dike.add_counters(counters.as_slice()),
            None => counters.as_slice().is_empty(),
        };
        fits.then_some(audit)
    }

    fn ledger(&self) -> Result<((Ledger, i64), Told), DriveError> {
        let read = || match self.has_data {
            true => check::read_ledger(&self.target, self.has_accounts),
            false => Ok((Ledger::default(), 0)),
        };
        match &self.dike {
            Some(dike) => dike.told_around(&self.target, &self.server, read),
            None => Ok((read()?, Told::nothing())),
        }
    }

    fn distribution(&self) -> Option<DistributionReport> {
        let told = self.distribution.lock();
        told.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn contention(&self) -> Option<ContentionReport> {
        self.dike.as_ref()?.contention.as_ref()?.report()
    }

    fn imbalance(&self) -> Option<ImbalanceReport> {
        self.dike.as_ref()?.imbalance(&self.content.scale)
    }

    fn attends(&self) -> bool {
        self.dike.iter().any(Dike::attends)
    }

    fn attend(&self, second: &dyn Fn() -> Option<f64>, steering: Steering<'_>) {
        if let Some(dike) = &self.dike {
            dike.attend(&self.target, &self.server, second, steering);
        }
    }

    fn records(&self) -> Option<usize> {
        self.recorder.as_ref().map(Recorder::operations_max)
    }

    fn take_recorded(&self, start: Instant) -> Option<Recorded> {
        Some(self.recorder.as_ref()?.take(start))
    }

    fn add_recorded(&self, recorded: &Recorded, slack: Duration) {
        if let Some(recorder) = &self.recorder {
            recorder.add(recorded, slack);
        }
    }

    fn judge_times(&self, kinds: &[Tally], deferred: &Tally) -> Vec<Finding> {
        match self.keying {
            true => times::judge(kinds, deferred),
            false => Vec::new(),
        }
    }

    fn reconcile(
        &self,
        ((before, transfers_before), told_before): &((Ledger, i64), Told),
        ((after, transfers_after), told_after): &((Ledger, i64), Told),
        whole: &[Acknowledged],
    ) -> Vec<Finding> {
        if !self.has_data {
            return Vec::new();
        }
        let counted = |kind: Kind| whole[kind.number()].counted();
        let delivery = &whole[Kind::Delivery.number()];
        let gains = [
            (
                "acknowledged new orders found",
                before.orders,
                after.orders,
                counted(Kind::NewOrder),
            ),
            (
                "acknowledged payments found",
                before.payments,
                after.payments,
                counted(Kind::Payment),
            ),
            (
                "acknowledged deliveries found",
                before.deliveries,
                after.deliveries,
                (delivery.units, delivery.unknown * 10),
            ),
        ];
        let finding = |(title, before, after, counted)| gained(title, before, after, counted);
        let mut findings = gains.map(finding).to_vec();
        if self.has_further() && self.has_accounts {
            let title = "acknowledged transfers found";
            let counted = counted(Kind::DUpdateBalance);
            findings.push(gained(title, *transfers_before, *transfers_after, counted));
        }
        if let Some(report) = self.contention() {
            findings.extend(report.findings(self.breaks));
        }
        if let Some(dike) = &self.dike
            && let Some(report) = dike.report(told_before, told_after)
        {
            findings.extend(dike.findings(&report));
            let told = self.distribution.lock();
            *told.unwrap_or_else(PoisonError::into_inner) = Some(report);
        }
        let imbalance = self.imbalance();
        findings.extend(imbalance.and_then(|report| report.finding()));
        findings
    }

    fn verify(&self, progress: &mut dyn Progress) -> Result<CheckReport, DriveError> {
        let mut report = check::check(&self.target, progress)?;
        if let Some(recorder) = &self.recorder {
            progress.stage("judging the run's own history");
            let number = report.conditions.len() + 1;
            report
                .conditions
                .extend(recorder.judge(&self.target, number)?);
        }
        Ok(report)
    }

    fn own_history(&self) -> Option<Judged> {
        self.recorder.as_ref()?.take_judged()
    }
}

/// What the database gained must be what was acknowledged, and at most the unknown ones more.
pub(crate) fn gained(title: &'static str, before: i64, after: i64, counted: (u64, u64)) -> Finding {
    let (acknowledged, unknown) = counted;
    let gain = after - before;
    let low = acknowledged as i64;
    let high = low + unknown as i64;
    let allowed = match unknown {
        0 => low.to_string(),
        _ => format!("{low} to {high}"),
    };
    Finding {
        clause: "durability",
        title,
        samples: acknowledged,
        observed: gain.to_string(),
        allowed,
        verdict: match (low..=high).contains(&gain) {
            true => Verdict::Passed,
            false => Verdict::Failed,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_warehouse_is_no_plural() {
        assert_eq!(
            [0, 1, 2].map(warehouses),
            ["0 warehouses", "1 warehouse", "2 warehouses"]
        );
    }

    #[test]
    fn lost_and_invented_commits_are_found() {
        assert_eq!(gained("t", 100, 150, (50, 0)).verdict, Verdict::Passed);
        assert_eq!(gained("t", 100, 149, (50, 0)).verdict, Verdict::Failed);
        assert_eq!(gained("t", 100, 151, (50, 0)).verdict, Verdict::Failed);
        assert_eq!(gained("t", 100, 151, (50, 1)).verdict, Verdict::Passed);
        assert_eq!(gained("t", 100, 152, (50, 1)).verdict, Verdict::Failed);
    }
}
