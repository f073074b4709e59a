//! One run from its resolved document.
//!
//! ```text
//! name: quick                    told in the results
//! seed: 1
//! store: {url: "memory:", mapping: .., timeout_ms: .., fold: .., isolation: .., link_ms: ..}
//! workload: {name: micro, api: entity, load: true, parameters: {..}, states: {..}}
//! population: {kind: closed, sessions: 8, threads: .., think_time: .., rate: ..}
//! phases: {warmup_s: 1, measure_s: 10}
//! retry: {attempts: 20, total_ms: 10000, back_off: {shape, base_ms, cap_ms, jitter}}
//! report: {..}                   for who writes the report
//! ```
//!
//! Every key may be left out. One that is not known is refused by its path.

use crate::auction::{self, Auction};
use crate::bank::{self, SmallBank};
use crate::counter::{self, HotCounter};
use crate::document::{Problem, Section};
use crate::micro::{self, Micro};
use crate::population::Population;
use crate::run::connect::{Entities, Setup, Statements};
use crate::run::distance::{Distance, LINK_MS_MAX};
use crate::run::parts::{Lead, Part, PartResult, run_part};
use crate::run::{Around, Connector, Phases, Plan, Progress, RunError, Workload, run_around};
use crate::statements::Statements as OwnStatements;
use crate::table::{Known, Table};
use crate::ycsb::{self, Ycsb};
use entity::{BackOff, Policy, Schema, Shape};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use stores::Options;
use workload::wire::{Isolation, ParamType};

/// The store of a document that names none.
pub const STORE: &str = "memory:";
/// The longest wait for an answer and the longest time for retries: an hour, in milliseconds.
const WAIT_MS_MAX: u64 = 3_600_000;

/// Which half of a workload runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Api {
    /// Operations on entities, on every store.
    Entity,
    /// Statements of the workload's own.
    Sql,
}

/// The store of a document.
#[derive(Clone, Debug)]
struct StoreOf {
    url: String,
    options: Options,
    isolation: Option<Isolation>,
    /// Time of a message one way.
    link: Duration,
}

/// A workload with its parameters.
#[derive(Clone, Debug)]
enum Work {
    /// [`Micro`].
    Micro(Micro),
    /// [`Ycsb`].
    Ycsb(Ycsb),
    /// [`SmallBank`].
    SmallBank(SmallBank),
    /// [`HotCounter`].
    HotCounter(HotCounter),
    /// [`Auction`].
    Auction(Auction),
    /// Data only.
    Statements(OwnStatements),
}

/// The names of all workloads.
pub const WORKLOADS: [&str; 6] = [
    "micro",
    "auction",
    "ycsb",
    "smallbank",
    "hot_counter",
    "statements",
];

/// A document that was read and checked.
#[derive(Clone, Debug)]
pub struct Document {
    name: String,
    store: StoreOf,
    api: Api,
    work: Work,
    policy: Policy,
    plan: Plan,
}

impl Document {
    /// Reads a document. Nothing is connected yet.
    ///
    /// # Errors
    /// A key that is not known, or a value that does not fit, by its path.
    pub fn read(document: &Value) -> Result<Document, Problem> {
        let mut root = Section::of("", document)?;
        let name = root.text("name")?.unwrap_or("").to_string();
        let seed = root.count("seed", 0..=u64::MAX)?.unwrap_or(1);
        let store = read_store(root.section("store")?)?;
        let population = Population::read(root.section("population")?)?;
        let phases = Phases::read(root.section("phases")?)?;
        let policy = read_retry(root.section("retry")?)?;
        // What is drawn of the results is not decided here.
        root.take("report");
        let mut section = root.section("workload")?;
        let work = read_work(&mut section, population.sessions)?;
        let is_data = matches!(work, Work::Statements(_));
        let api = match section.text("api")? {
            Some("entity") if is_data => {
                let text = "a workload of statements is for api: sql";
                return Err(section.problem("api", text));
            }
            None if is_data => Api::Sql,
            None | Some("entity") => Api::Entity,
            Some("sql") => Api::Sql,
            Some(other) => {
                let text = format!("{other:?} is neither entity nor sql");
                return Err(section.problem("api", text));
            }
        };
        if api == Api::Entity && store.isolation.is_some() {
            let text = "it is for workload.api: sql; entities are serializable, or as the \
                        mapping says";
            return Err(Problem::new("store.isolation", text));
        }
        if api == Api::Sql && store.options.mapping.is_some() {
            let text = "it is for workload.api: entity; statements have their own tables";
            return Err(Problem::new("store.mapping", text));
        }
        let loads = section.flag("load")?.unwrap_or(true);
        let states = section.take("states");
        let table = work.table(&section.path_of("states"), states)?;
        if matches!(population.kind, crate::population::Kind::Open(_)) && !table.ends() {
            let text = "the sessions of an open population must be able to END from every state";
            return Err(section.problem("states", text));
        }
        section.finish()?;
        root.finish()?;
        Ok(Document {
            name,
            store,
            api,
            work,
            policy,
            plan: Plan {
                seed,
                table,
                population,
                phases,
                loads,
            },
        })
    }

    /// Runs it.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn run(
        &self,
        live: &mut dyn FnMut(Progress),
        stop: &AtomicBool,
    ) -> Result<Value, RunError> {
        self.run_around(Around {
            live,
            stop,
            begun: &|_| {},
            others: None,
        })
    }

    /// Runs it with what is around it.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn run_around(&self, around: Around<'_>) -> Result<Value, RunError> {
        let far = self.distance()?;
        let came = self.carry_out(&far, Job::Whole(around))?;
        let Came::Results(mut results) = came else {
            unreachable!("a whole run has results")
        };
        results["name"] = Value::from(self.name.as_str());
        results["seed"] = Value::from(self.plan.seed);
        results["workload"] = Value::from(self.work.name());
        results["link"] = far.describe();
        Ok(results)
    }

    /// Carries out a part of it; `None`: that was ended before its time.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn run_part(&self, part: Part, lead: &dyn Lead) -> Result<Option<PartResult>, RunError> {
        match self.carry_out(&self.distance()?, Job::Part(part, lead))? {
            Came::Part(part) => Ok(part.map(|part| *part)),
            Came::Results(_) => unreachable!("a part has no results of its own"),
        }
    }

    /// Where it runs.
    pub fn store_url(&self) -> &str {
        &self.store.url
    }

    /// How long it takes.
    pub fn phases(&self) -> Phases {
        self.plan.phases
    }

    /// Threads of all processes together.
    pub fn threads(&self) -> u64 {
        self.plan.population.threads
    }

    /// How many states its table has.
    pub fn states(&self) -> usize {
        self.plan.table.states().len()
    }

    /// Names of the interactions and of their results.
    pub fn interactions(&self) -> &crate::run::parts::Names {
        type Access = <Entities as Connector>::Access;
        match &self.work {
            Work::Micro(work) => Workload::<Access>::interactions(work),
            Work::Ycsb(work) => Workload::<Access>::interactions(work),
            Work::SmallBank(work) => Workload::<Access>::interactions(work),
            Work::HotCounter(work) => Workload::<Access>::interactions(work),
            Work::Auction(work) => Workload::<Access>::interactions(work),
            Work::Statements(work) => work.interactions(),
        }
    }

    fn distance(&self) -> Result<Arc<Distance>, RunError> {
        let threads = self.plan.population.threads;
        Ok(Arc::new(Distance::to(
            &self.store.url,
            self.store.link,
            threads,
        )?))
    }

    fn carry_out(&self, far: &Arc<Distance>, job: Job<'_>) -> Result<Came, RunError> {
        let job = (far, job);
        match &self.work {
            Work::Micro(work) => self.over(work, Micro::schema(), micro::statements(), job),
            Work::Ycsb(work) => self.over(work, Ycsb::schema(), ycsb::statements(), job),
            Work::SmallBank(work) => self.over(work, SmallBank::schema(), bank::statements(), job),
            Work::HotCounter(work) => {
                self.over(work, HotCounter::schema(), counter::statements(), job)
            }
            Work::Auction(work) => self.over(work, Auction::schema(), auction::statements(), job),
            Work::Statements(work) => self.over_statements(work, job),
        }
    }

    fn over<W>(
        &self,
        workload: &W,
        schema: Schema,
        statements: Vec<(String, Vec<ParamType>)>,
        (far, job): (&Arc<Distance>, Job<'_>),
    ) -> Result<Came, RunError>
    where
        W: Workload<<Entities as Connector>::Access> + Workload<<Statements as Connector>::Access>,
    {
        let StoreOf {
            url: _,
            options,
            isolation,
            link: _,
        } = &self.store;
        let retry = (self.policy, self.plan.seed);
        let refused = |text: String| RunError::Document(Problem::new("store.url", text));
        match self.api {
            Api::Entity => {
                let entities = Entities::open(far.url(), options.clone(), schema, retry);
                job.over(&entities.map_err(refused)?.at(far), workload, &self.plan)
            }
            Api::Sql => {
                let how = (options.timeout, isolation.unwrap_or_default());
                let setup = Setup::Schema(schema);
                let connector = Statements::open(far.url(), how, statements, setup, retry);
                job.over(&connector.map_err(refused)?.at(far), workload, &self.plan)
            }
        }
    }

    /// A workload that is data only.
    fn over_statements(
        &self,
        workload: &OwnStatements,
        (far, job): (&Arc<Distance>, Job<'_>),
    ) -> Result<Came, RunError> {
        let StoreOf {
            url: _,
            options,
            isolation,
            link: _,
        } = &self.store;
        let how = (options.timeout, isolation.unwrap_or_default());
        let setup = Setup::Statements(workload.setup().to_vec());
        let retry = (self.policy, self.plan.seed);
        let connector = Statements::open(far.url(), how, workload.statements(), setup, retry);
        let refused = |text: String| RunError::Document(Problem::new("store.url", text));
        job.over(&connector.map_err(refused)?.at(far), workload, &self.plan)
    }
}

/// What is done of a run.
enum Job<'a> {
    Whole(Around<'a>),
    Part(Part, &'a dyn Lead),
}

/// What has come of it.
enum Came {
    Results(Value),
    Part(Option<Box<PartResult>>),
}

impl Job<'_> {
    fn over<C, W>(self, connector: &C, workload: &W, plan: &Plan) -> Result<Came, RunError>
    where
        C: Connector,
        W: Workload<C::Access>,
    {
        match self {
            Job::Whole(around) => run_around(connector, workload, plan, around).map(Came::Results),
            Job::Part(part, lead) => {
                let done = run_part(connector, workload, plan, part, lead)?;
                Ok(Came::Part(done.map(Box::new)))
            }
        }
    }
}

impl Work {
    fn name(&self) -> &'static str {
        match self {
            Work::Micro(_) => "micro",
            Work::Ycsb(_) => "ycsb",
            Work::SmallBank(_) => "smallbank",
            Work::HotCounter(_) => "hot_counter",
            Work::Auction(_) => "auction",
            Work::Statements(_) => "statements",
        }
    }

    fn table(&self, path: &str, states: Option<&Value>) -> Result<Table, Problem> {
        type Access = <Entities as Connector>::Access;
        fn of<W: Workload<Access>>(
            workload: &W,
            path: &str,
            states: Option<&Value>,
        ) -> Result<Table, Problem> {
            let known = Known {
                interactions: workload.interactions(),
            };
            match states {
                Some(states) => Table::read(path, states, known),
                None => Ok(workload.default_table()),
            }
        }
        match self {
            Work::Micro(work) => of(work, path, states),
            Work::Ycsb(work) => of(work, path, states),
            Work::SmallBank(work) => of(work, path, states),
            Work::HotCounter(work) => of(work, path, states),
            Work::Auction(work) => of(work, path, states),
            Work::Statements(work) => {
                let interactions = work.interactions();
                let repeat = || Ok(Table::repeat(0, interactions[0].0));
                let known = Known { interactions };
                states.map_or_else(repeat, |states| Table::read(path, states, known))
            }
        }
    }
}

/// Runs one resolved document, and returns its results as JSON. `live` is called about once a
/// second; `stop` ends the run early, and it has no results then.
///
/// # Errors
/// [`RunError`].
pub fn run(
    document: &Value,
    live: &mut dyn FnMut(Progress),
    stop: &AtomicBool,
) -> Result<Value, RunError> {
    Document::read(document)?.run(live, stop)
}

fn read_work(section: &mut Section<'_>, sessions: u64) -> Result<Work, Problem> {
    let name = section.text("name")?.unwrap_or("micro");
    let parameters = section.section("parameters")?;
    match name {
        "micro" => Ok(Work::Micro(Micro::read(parameters, sessions)?)),
        "ycsb" => Ok(Work::Ycsb(Ycsb::read(parameters)?)),
        "auction" => Ok(Work::Auction(Auction::read(parameters, sessions)?)),
        "statements" => Ok(Work::Statements(OwnStatements::read(parameters)?)),
        "smallbank" => Ok(Work::SmallBank(SmallBank::read(parameters)?)),
        "hot_counter" => Ok(Work::HotCounter(HotCounter::read(parameters)?)),
        _ => {
            let text = format!(
                "{name:?} is no workload: there are {}",
                WORKLOADS.join(", ")
            );
            Err(section.problem("name", text))
        }
    }
}

fn read_store(mut section: Section<'_>) -> Result<StoreOf, Problem> {
    let usual = Options::default();
    let url = section.text("url")?.unwrap_or(STORE).to_string();
    let mapping = section.text("mapping")?.map(str::to_string);
    let timeout = section.count("timeout_ms", 1..=WAIT_MS_MAX)?;
    let fold = section.flag("fold")?.unwrap_or(usual.fold);
    let isolation = match section.text("isolation")? {
        None => None,
        Some(text) => {
            let wrong = || {
                let text =
                    format!("{text:?} is none of serializable, repeatable-read, read-committed");
                section.problem("isolation", text)
            };
            Some(Isolation::parse(text).ok_or_else(wrong)?)
        }
    };
    let link_ms = section.number("link_ms", 0.0..=LINK_MS_MAX)?.unwrap_or(0.0);
    section.finish()?;
    Ok(StoreOf {
        url,
        options: Options {
            mapping,
            timeout: timeout.map_or(usual.timeout, Duration::from_millis),
            fold,
        },
        isolation,
        link: Duration::from_secs_f64(link_ms / 1e3),
    })
}

fn read_retry(mut section: Section<'_>) -> Result<Policy, Problem> {
    let usual = Policy::default();
    let attempts = section.count("attempts", 1..=1_000_000)?;
    let total_ms = section.count("total_ms", 0..=WAIT_MS_MAX)?;
    let mut back_off = section.section("back_off")?;
    let ms = |section: &mut Section<'_>, key: &str| {
        let ms = section.number(key, 0.0..=WAIT_MS_MAX as f64)?;
        Ok::<_, Problem>(ms.map(|ms| (ms * 1e3) as u64))
    };
    let base_us = ms(&mut back_off, "base_ms")?;
    let cap_us = ms(&mut back_off, "cap_ms")?;
    let jitter = back_off.number("jitter", 0.0..=1.0)?;
    let shape = back_off.text("shape")?;
    let has_numbers = base_us.is_some() || cap_us.is_some() || jitter.is_some();
    let waits = match shape {
        Some("none") if has_numbers => {
            let text = "without waits there is neither base_ms nor cap_ms nor jitter";
            return Err(back_off.problem("shape", text));
        }
        Some("none") => BackOff::NONE,
        shape => {
            let usual = usual.back_off;
            let wrong = || {
                let text = "it is none of none, constant, linear, exponential";
                back_off.problem("shape", text)
            };
            BackOff {
                shape: match shape {
                    None => usual.shape,
                    Some(shape) => Shape::parse(shape).ok_or_else(wrong)?,
                },
                base_us: base_us.unwrap_or(usual.base_us),
                cap_us: cap_us.unwrap_or(usual.cap_us.max(base_us.unwrap_or(0))),
                jitter_percent: jitter
                    .map_or(usual.jitter_percent, |jitter| (jitter * 100.0) as u8),
            }
        }
    };
    back_off.finish()?;
    section.finish()?;
    Ok(Policy {
        attempts: attempts.map_or(usual.attempts, |attempts| attempts as u32),
        total_us: total_ms.map_or(usual.total_us, |ms| ms * 1_000),
        back_off: waits,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_may_be_empty_or_whole() {
        let empty = Document::read(&json!({})).expect("all has defaults");
        assert_eq!(empty.store.url, STORE);
        assert_eq!(empty.policy, Policy::default());
        let whole = Document::read(&json!({
            "name": "whole",
            "seed": 7,
            "store": {"url": "redis://127.0.0.1", "mapping": "rows", "timeout_ms": 500},
            "workload": {
                "name": "micro",
                "api": "entity",
                "load": true,
                "parameters": {"users": 100, "user_access": "zipf:0.5"},
                "states": {
                    "START": {"UPDATE_PERSONAL": 1},
                    "UPDATE_PERSONAL": {"UPDATE_PERSONAL": 0.5, "END": "rest"},
                },
            },
            "population": {"kind": "open", "rate": 10, "threads": 4, "think_time": 5},
            "phases": {"warmup_s": 0, "measure_s": 1},
            "retry": {
                "attempts": 3,
                "total_ms": 100,
                "back_off": {"shape": "linear", "base_ms": 0.5, "cap_ms": 10, "jitter": 0},
            },
            "report": {"title": "x"},
        }));
        let whole = whole.expect("a document");
        assert_eq!(whole.policy.back_off.shape, Shape::Linear);
        assert_eq!(whole.policy.back_off.base_us, 500);
    }

    #[test]
    fn what_is_wrong_is_told_by_its_path() {
        for (value, path) in [
            (json!({"sed": 1}), "sed"),
            (json!({"store": {"uri": "x"}}), "store.uri"),
            (json!({"store": {"isolation": "chaos"}}), "store.isolation"),
            (json!({"store": {"link_ms": -1}}), "store.link_ms"),
            (
                json!({"store": {"isolation": "serializable"}}),
                "store.isolation",
            ),
            (json!({"workload": {"name": "tpcz"}}), "workload.name"),
            (json!({"workload": {"api": "rest"}}), "workload.api"),
            (
                json!({"workload": {"parameters": {"user": 4}}}),
                "workload.parameters.user",
            ),
            (
                json!({"workload": {"parameters": {"item_access": "zip"}}}),
                "workload.parameters.item_access",
            ),
            (
                json!({"workload": {"parameters": {"users": 4}}, "population": {"sessions": 5}}),
                "workload.parameters.users",
            ),
            (json!({"workload": {"states": {}}}), "workload.states.START"),
            (
                json!({"population": {"kind": "open", "rate": 1}}),
                "workload.states",
            ),
            (json!({"phases": {"measure_s": 0}}), "phases.measure_s"),
            (json!({"retry": {"attempts": 0}}), "retry.attempts"),
            (
                json!({"retry": {"back_off": {"shape": "round"}}}),
                "retry.back_off.shape",
            ),
            (
                json!({"retry": {"back_off": {"shape": "none", "cap_ms": 1}}}),
                "retry.back_off.shape",
            ),
        ] {
            let problem = Document::read(&value).expect_err(&value.to_string());
            assert_eq!(problem.path, path, "{problem}");
        }
    }
}
