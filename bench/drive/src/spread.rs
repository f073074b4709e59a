//! Loads with a set share of work on other nodes ([`workload::spread`]), over the wire.
//!
//! The plan says which warehouses (parts) lie on which node: that of the first endpoint of the URL
//! first. Client k talks to endpoint k modulo their number, and its home is there.

use crate::run::tally::Acknowledged;
use crate::run::{RunReport, RunnerOptions, run as run_workload};
use crate::shape::{CheckReport, Description, Done, Failure, Workload};
use crate::tpcc::gained;
use crate::tpcc::{self, LoadOptions, check};
use links::answers::Answers;
use links::error::{DriveError, While};
use links::link::{Link, LinkError, ready};
use links::server::Server;
use links::url::{Endpoint, Target};
use links::view::Progress;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use workload::finding::Finding;
use workload::spread::{Job, Plan, Source};
use workload::tpcc::Scale;
use workload::wire::Session;

/// Makes the tables of a plan and fills them. The database must exist and be empty.
///
/// # Errors
/// No connection, or a statement is refused.
pub fn load(url: &str, plan: &Plan, progress: &mut dyn Progress) -> Result<(), DriveError> {
    let parts = || plan.spread.homes.iter().flatten();
    if plan.mix.is_tpcc() {
        // The loader knows only numbers without gaps; a few warehouses are nobody's home.
        let warehouses = parts().max().copied().unwrap_or(1);
        let options = LoadOptions {
            scale: Scale {
                warehouses,
                ..plan.scale
            },
            seed: plan.seed,
            ..LoadOptions::new(url, warehouses)
        };
        tpcc::load(&options, progress)?;
        return warm(url, plan, progress);
    }
    progress.stage("creating tables");
    let target = Target::parse(url)?;
    let (mut link, server) = Server::reach(&target, None)?;
    for statement in plan.tables(server.is_trellis) {
        link.command(&statement).during("creating tables")?;
    }
    link.close();
    if let Some(table) = plan.part_table() {
        let copy = format!("COPY {table} FROM STDIN");
        let mut rows = Vec::new();
        // By way of its home: see `homes`.
        for (endpoint, parts) in target.endpoints.iter().zip(&plan.spread.homes) {
            let mut link = Link::connect(endpoint, &target, None).during("connecting")?;
            for part in parts {
                plan.part_rows(*part, &mut rows);
                link.copy_in(&copy, &rows).during("loading")?;
                rows.clear();
            }
            link.close();
        }
    }
    Ok(())
}

/// Reads what all nodes read, by way of each of them.
fn warm(url: &str, plan: &Plan, progress: &mut dyn Progress) -> Result<(), DriveError> {
    progress.stage("reading rows that all nodes read");
    let target = Target::parse(url)?;
    let mut links = Vec::new();
    for endpoint in &target.endpoints {
        links.push(Link::connect(endpoint, &target, None).during("connecting")?);
    }
    let queries = plan.warm_queries();
    for _ in 0..plan.warm_rounds() {
        for link in &mut links {
            for query in &queries {
                match link.command(query) {
                    // What the load has left to do may be in the way; the next round reads again.
                    Err(LinkError::Server(error)) if error.sqlstate == "40001" => {
                        link.command("ROLLBACK").during("reading")?;
                    }
                    result => result.during("reading")?,
                }
            }
        }
    }
    links.into_iter().for_each(Link::close);
    Ok(())
}

/// Runs a plan on what [`load`] has made, then checks the database: TPC-C's twelve conditions, and
/// that every acknowledged increment is there.
///
/// # Errors
/// An option that cannot work, or no connection at the beginning or at the end.
pub fn run(
    url: &str,
    plan: &Plan,
    options: &RunnerOptions,
    progress: &mut dyn Progress,
) -> Result<RunReport, DriveError> {
    let target = Target::parse(url)?;
    let (link, server) = Server::reach(&target, Some(options.timeout))?;
    link.close();
    let spread = SpreadRun {
        target: target.clone(),
        server,
        plan: plan.clone(),
        started: OnceLock::new(),
    };
    run_workload(&spread, &target, options, progress)
}

/// A plan as a [`Workload`].
struct SpreadRun {
    target: Target,
    server: Server,
    plan: Plan,
    /// When the first input was drawn: the plan's time begins.
    started: OnceLock<Instant>,
}

impl Workload for SpreadRun {
    type Terminal = Source;
    type Input = Job;
    type Session = Session<Link>;
    type Audit = ();
    /// The counter, where there is one.
    type Ledger = Option<i64>;

    fn describe(&self) -> Description {
        let spread = &self.plan.spread;
        let locality = spread.locality_percent;
        Description {
            name: "spread",
            parameters: vec![
                ("mix", format!("{:?}", self.plan.mix)),
                ("remote_percent", spread.remote_percent.to_string()),
                ("remote_of", format!("{:?}", spread.unit)),
                (
                    "locality_percent",
                    locality.map_or("none".into(), |p| p.to_string()),
                ),
                ("homes", format!("{:?}", spread.homes)),
            ],
            remarks: Vec::new(),
            measure: None,
            changes: false,
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        self.plan.kinds()
    }

    fn terminal(&self, number: u32) -> Source {
        self.plan.source(number)
    }

    fn generate(&self, source: &mut Source) -> Job {
        let started = self.started.get_or_init(Instant::now);
        self.plan.draw(source, started.elapsed().as_micros() as u64)
    }

    fn kind(&self, job: &Job) -> usize {
        job.kind()
    }

    fn server(&self) -> &Server {
        &self.server
    }

    fn open(&self, endpoint: &Endpoint, timeout: Duration) -> Result<Session<Link>, LinkError> {
        let mut link = Link::connect(endpoint, &self.target, Some(timeout))?;
        self.server.tune(&mut link, None)?;
        ready(Session::open(link, &self.plan.statements()))
    }

    async fn execute(&self, session: &mut Session<Link>, job: &Job) -> Result<Done, Failure> {
        job.execute(session).await
    }

    fn ledger(&self) -> Result<Option<i64>, DriveError> {
        let Some(read) = self.plan.read_counter() else {
            return Ok(None);
        };
        let mut link = Link::connect_any(&self.target, None).during("connecting")?;
        let mut answers = Answers::new();
        link.query(&read, &mut answers)
            .during("reading the counter")?;
        link.close();
        Ok(answers.int(0, 0, 0))
    }

    fn reconcile(
        &self,
        before: &Option<i64>,
        after: &Option<i64>,
        whole: &[Acknowledged],
    ) -> Vec<Finding> {
        let (Some(before), Some(after)) = (before, after) else {
            return Vec::new();
        };
        let title = "acknowledged increments found";
        vec![gained(title, *before, *after, whole[0].counted())]
    }

    fn verify(&self, progress: &mut dyn Progress) -> Result<CheckReport, DriveError> {
        match self.plan.mix.is_tpcc() {
            true => check::check(&self.target, progress),
            false => Ok(CheckReport::default()),
        }
    }
}
