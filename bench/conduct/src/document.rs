//! What of a document is about what is around a run.

use fault::FaultTarget;
use links::url::Target;
use serde_json::{Map, Value};
use sessions::document::{Problem, Section};
use sessions::resolved::{Document as SessionsDocument, STORE};
use std::time::Duration;

/// Workers of a run at most.
const WORKERS_MAX: usize = 256;
/// Servers that are sampled at most.
const SERVERS_MAX: usize = 256;
/// The longest time for a script or a program: a day, in seconds.
const LIMIT_S_MAX: f64 = 86_400.0;
/// Time for each script of a store that names none, in seconds.
const SCRIPT_S: f64 = 60.0;
/// Time for a program that names none, in seconds.
const PROGRAM_S: f64 = 3_600.0;
/// Workloads that `trellis bench run` has.
const TABLES: [&str; 2] = ["tpcc", "dike"];

/// Options of `trellis bench run` that a document says elsewhere.
const PLACED: [&str; 8] = [
    "url",
    "workload",
    "seed",
    "isolation",
    "warmup",
    "seconds",
    "clients",
    "rate",
];

/// How a store is started, emptied and ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scripts {
    /// Starts it, and may say where it is: `url=URL`.
    pub(crate) start: Option<String>,
    /// Ends it.
    pub(crate) stop: Option<String>,
    /// Makes it as it was before the run.
    pub(crate) reset: Option<String>,
    /// How long each of them may take.
    pub(crate) limit: Duration,
}

/// What runs.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Sessions, by the document that is theirs.
    Sessions(Box<SessionsDocument>),
    /// A program of the user, and how long it may take.
    Program(String, Duration),
    /// A workload of `trellis bench run`, by the arguments of its command line, and the warehouses
    /// that are loaded before; `None`: nothing is.
    Tables(Vec<String>, Option<u32>),
}

/// A document that was read and checked.
#[derive(Clone, Debug)]
pub struct Document {
    /// What runs.
    pub kind: Kind,
    /// Where workers listen; empty: this process has the load.
    pub workers: Vec<String>,
    pub(crate) scripts: Scripts,
    /// Servers that are sampled, as `--target` of `trellis bench run` names them.
    pub(crate) servers: Vec<String>,
    /// Whether the clients are sampled.
    pub(crate) samples_clients: bool,
    /// The store, as the document names it.
    pub(crate) url: String,
    /// What is about the sessions alone.
    pub(crate) inner: Value,
}

impl Document {
    /// Reads a resolved document. Nothing is started or connected yet.
    ///
    /// # Errors
    /// A key that is not known, or a value that does not fit, by its path.
    pub fn read(document: &Value) -> Result<Document, Problem> {
        let mut inner = document.clone();
        let taken = take(&mut inner);
        let workers = read_workers(&taken)?;
        let (servers, samples_clients) = read_monitor(&taken)?;
        let scripts = read_scripts(&taken)?;
        let url = inner["store"]["url"].as_str().unwrap_or(STORE).to_owned();
        let kind = kind(&inner, &taken, &url)?;
        let alone = |text: &str| Err(Problem::new("workers", text));
        match &kind {
            Kind::Tables(..) if scripts.start.is_none() => {
                let target = Target::parse(&url).and_then(Target::of_sql);
                target.map_err(|error| Problem::new("store.url", error.to_string()))?;
            }
            _ if workers.is_empty() => {}
            Kind::Program(..) => return alone("a program has no workers: it is its own load"),
            Kind::Sessions(_) if url == STORE && scripts.start.is_none() => {
                return alone("the store in memory is that of one process: name a server");
            }
            Kind::Sessions(read) if workers.len() as u64 > read.threads() => {
                let text = format!(
                    "{} workers for {} threads: some would have none",
                    workers.len(),
                    read.threads()
                );
                return Err(Problem::new("workers", text));
            }
            Kind::Sessions(_) | Kind::Tables(..) => {}
        }
        Ok(Document {
            kind,
            workers,
            scripts,
            servers,
            samples_clients,
            url,
            inner,
        })
    }

    /// The same with another address of its store.
    pub(crate) fn at(&self, url: &str) -> Result<Document, Problem> {
        let mut inner = self.inner.clone();
        inner["store"]["url"] = Value::from(url);
        let mut found = self.clone();
        found.url = url.to_owned();
        found.kind = match &self.kind {
            Kind::Sessions(_) => Kind::Sessions(Box::new(SessionsDocument::read(&inner)?)),
            Kind::Program(..) => self.kind.clone(),
            Kind::Tables(arguments, warehouses) => {
                let mut arguments = arguments.clone();
                arguments[0] = format!("--url={url}");
                Kind::Tables(arguments, *warehouses)
            }
        };
        found.inner = inner;
        Ok(found)
    }
}

/// Takes what is not about sessions out of a document: by section and key.
fn take(document: &mut Value) -> Map<String, Value> {
    let mut taken = Map::new();
    let Some(root) = document.as_object_mut() else {
        return taken;
    };
    for key in ["workers", "monitor"] {
        if let Some(value) = root.remove(key) {
            taken.insert(key.to_owned(), value);
        }
    }
    for (section, keys) in [
        ("store", &["name", "start", "stop", "reset", "script_s"][..]),
        ("workload", &["program", "limit_s"]),
    ] {
        let Some(own) = root.get_mut(section).and_then(Value::as_object_mut) else {
            continue;
        };
        let found = keys
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), own.remove(*key)?)));
        let found: Map<String, Value> = found.collect();
        taken.insert(section.to_owned(), Value::Object(found));
    }
    taken
}

/// One of the sections that were taken.
fn section<'a>(taken: &'a Map<String, Value>, name: &str) -> Result<Section<'a>, Problem> {
    static EMPTY: std::sync::LazyLock<Value> = std::sync::LazyLock::new(|| Map::new().into());
    let value = taken.get(name).filter(|value| !value.is_null());
    Section::of(name, value.unwrap_or(&EMPTY))
}

/// A list of texts.
fn texts(path: &str, value: Option<&Value>, most: usize) -> Result<Vec<String>, Problem> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(Vec::new());
    };
    let wrong = || Problem::new(path, format!("it is a list of at most {most} texts"));
    let items = value.as_array().filter(|items| items.len() <= most);
    let items = items.ok_or_else(wrong)?.iter();
    let texts = items.map(|item| item.as_str().map(str::to_owned));
    texts.collect::<Option<_>>().ok_or_else(wrong)
}

fn read_workers(taken: &Map<String, Value>) -> Result<Vec<String>, Problem> {
    let workers = texts("workers", taken.get("workers"), WORKERS_MAX)?;
    for (at, worker) in workers.iter().enumerate() {
        let is_address = worker
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        if !is_address {
            let text = format!("{worker:?} is no HOST:PORT");
            return Err(Problem::new(format!("workers.{at}"), text));
        }
        if workers[..at].contains(worker) {
            let text = format!("{worker} stands twice");
            return Err(Problem::new(format!("workers.{at}"), text));
        }
    }
    Ok(workers)
}

fn read_monitor(taken: &Map<String, Value>) -> Result<(Vec<String>, bool), Problem> {
    let mut monitor = section(taken, "monitor")?;
    let samples_clients = monitor.flag("clients")?.unwrap_or(true);
    let servers = texts("monitor.servers", monitor.take("servers"), SERVERS_MAX)?;
    monitor.finish()?;
    for (at, server) in servers.iter().enumerate() {
        // Whether a process runs is seen when it is needed.
        let has_pid = server.contains("pid:") && !server.contains("pidfile:");
        if let Some(error) = server.parse::<FaultTarget>().err().filter(|_| !has_pid) {
            let path = format!("monitor.servers.{at}");
            return Err(Problem::new(path, error.to_string()));
        }
    }
    Ok((servers, samples_clients))
}

fn read_scripts(taken: &Map<String, Value>) -> Result<Scripts, Problem> {
    let mut store = section(taken, "store")?;
    // How the report calls it.
    store.text("name")?;
    let mut command = |key: &str| {
        let text = store.text(key)?.map(str::to_owned);
        match text.as_deref().map(str::trim) {
            Some("") => Err(store.problem(key, "it is empty: leave it out")),
            _ => Ok(text),
        }
    };
    let (start, stop, reset) = (command("start")?, command("stop")?, command("reset")?);
    let limit_s = store.number("script_s", 0.1..=LIMIT_S_MAX)?;
    if limit_s.is_some() && start.is_none() && stop.is_none() && reset.is_none() {
        return Err(store.problem("script_s", "there is no script"));
    }
    if stop.is_some() && start.is_none() {
        return Err(store.problem("stop", "it needs store.start: what we start we stop"));
    }
    store.finish()?;
    Ok(Scripts {
        start,
        stop,
        reset,
        limit: Duration::from_secs_f64(limit_s.unwrap_or(SCRIPT_S)),
    })
}

fn kind(inner: &Value, taken: &Map<String, Value>, url: &str) -> Result<Kind, Problem> {
    let mut workload = section(taken, "workload")?;
    let program = workload.text("program")?.map(str::to_owned);
    let limit_s = workload.number("limit_s", 0.1..=LIMIT_S_MAX)?;
    match program {
        Some(program) => {
            let limit = Duration::from_secs_f64(limit_s.unwrap_or(PROGRAM_S));
            if program.trim().is_empty() {
                return Err(workload.problem("program", "it is empty: leave it out"));
            }
            for key in ["api", "states", "load"] {
                if !inner["workload"][key].is_null() {
                    let text = "a program has its own: it gets workload.parameters";
                    return Err(Problem::new(format!("workload.{key}"), text));
                }
            }
            Ok(Kind::Program(program, limit))
        }
        None if limit_s.is_some() => Err(workload.problem("limit_s", "it is for workload.program")),
        None => match inner["workload"]["name"].as_str() {
            Some(name) if TABLES.contains(&name) => tables(inner, name, url),
            _ => Ok(Kind::Sessions(Box::new(SessionsDocument::read(inner)?))),
        },
    }
}

/// The arguments of `trellis bench run` that a document stands for, the URL first.
fn tables(inner: &Value, name: &str, url: &str) -> Result<Kind, Problem> {
    let mut arguments = vec![format!("--url={url}"), format!("--workload={name}")];
    let mut root = Section::of("", inner)?;
    root.take("name");
    root.take("report");
    // It has a default in every document, and the transactions of this one are retried by their
    // own policy.
    root.take("retry");
    if let Some(seed) = root.count("seed", 0..=u64::MAX)? {
        arguments.push(format!("--seed={seed}"));
    }
    let mut store = root.section("store")?;
    store.take("url");
    if let Some(isolation) = store.text("isolation")? {
        arguments.push(format!("--isolation={isolation}"));
    }
    store.finish()?;
    arguments.extend(phase_arguments(root.section("phases")?, name)?);
    arguments.extend(population_arguments(root.section("population")?, name)?);
    let mut workload = root.section("workload")?;
    workload.take("name");
    let loads = workload.flag("load")?.unwrap_or(true);
    let mut warehouses = 1;
    for (key, value) in workload.section("parameters")?.take_all() {
        let own = option_arguments(key, value);
        let path = format!("workload.parameters.{key}");
        arguments.extend(own.map_err(|text| Problem::new(&*path, text))?);
        if key == "warehouses" {
            let count = value.as_u64().filter(|count| (1..=10_000).contains(count));
            let wrong = || Problem::new(&*path, format!("{value} is no number from 1 to 10000"));
            warehouses = count.ok_or_else(wrong)? as u32;
        }
    }
    workload.finish()?;
    root.finish()?;
    Ok(Kind::Tables(arguments, loads.then_some(warehouses)))
}

fn phase_arguments(mut phases: Section<'_>, name: &str) -> Result<Vec<String>, Problem> {
    let mut arguments = Vec::new();
    for (key, option, least, usual) in [
        ("warmup_s", "warmup", 0.0, 1.0),
        ("measure_s", "seconds", 1.0, 10.0),
    ] {
        let seconds = phases.number(key, least..=LIMIT_S_MAX)?.unwrap_or(usual);
        if seconds.fract() != 0.0 {
            let text = format!("{seconds}: phases of {name} are whole seconds");
            return Err(phases.problem(key, text));
        }
        arguments.push(format!("--{option}={seconds}"));
    }
    phases.finish()?;
    Ok(arguments)
}

fn population_arguments(mut population: Section<'_>, name: &str) -> Result<Vec<String>, Problem> {
    let sessions = population.count("sessions", 1..=1_000_000)?;
    let threads = population.count("threads", 1..=1_000_000)?;
    let rate = population.number("rate", 0.001..=1e6)?;
    let arguments = match (population.text("kind")?.unwrap_or("closed"), rate) {
        ("closed", None) => {
            let clients = sessions.or(threads).unwrap_or(8);
            vec![format!("--clients={clients}")]
        }
        ("open", Some(rate)) => {
            let clients = threads.unwrap_or(16);
            vec![format!("--clients={clients}"), format!("--rate={rate}")]
        }
        (kind, _) => {
            let text = format!(
                "{name} has closed populations of sessions, and open ones with a rate; this is \
                 {kind}"
            );
            return Err(population.problem("kind", text));
        }
    };
    population.finish()?;
    Ok(arguments)
}

/// A parameter as an option of the command line. What is wrong with it, in words.
fn option_arguments(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let option = key.replace('_', "-");
    if PLACED.contains(&option.as_str()) {
        return Err(format!("{key} has a place of its own in the document"));
    }
    if !option
        .bytes()
        .all(|it| it.is_ascii_lowercase() || it == b'-')
    {
        return Err(format!("{key} is no option of trellis bench run"));
    }
    Ok(match value {
        Value::Bool(true) => vec![format!("--{option}")],
        Value::Bool(false) | Value::Null => Vec::new(),
        Value::Number(number) => vec![format!("--{option}={number}")],
        Value::String(text) => vec![format!("--{option}={text}")],
        Value::Array(items) => {
            let text = |item: &Value| {
                item.as_str()
                    .map_or_else(|| item.to_string(), str::to_owned)
            };
            let items = items.iter();
            items
                .map(|item| format!("--{option}={}", text(item)))
                .collect()
        }
        Value::Object(_) => return Err(String::from("it is no value of an option")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_kind_of_workload_is_told_by_its_keys() {
        let read = |value: Value| Document::read(&value).unwrap();
        let sessions = read(json!({"store": {"url": "redis://h", "name": "Redis"},
            "population": {"sessions": 2}, "workers": ["h:1", "i:2"]}));
        assert!(matches!(sessions.kind, Kind::Sessions(_)));
        assert_eq!(sessions.workers, ["h:1", "i:2"]);
        assert_eq!(sessions.inner["store"], json!({"url": "redis://h"}));
        let program = read(json!({"workload": {"program": "./run.sh", "limit_s": 5}}));
        let Kind::Program(command, limit) = program.kind else {
            panic!("it is a program")
        };
        assert_eq!((command.as_str(), limit.as_secs()), ("./run.sh", 5));
        let tpcc = read(json!({
            "seed": 3, "store": {"url": "postgres://h/d", "isolation": "read-committed"},
            "workload": {"name": "dike", "parameters": {"warehouses": 4, "distribution": "exact",
                "batch_update": true, "keying": false, "curve": ["a", "b"]}},
            "population": {"kind": "open", "rate": 5, "threads": 2},
            "phases": {"warmup_s": 0, "measure_s": 3},
        }));
        let other = tpcc.at("postgres://other/d").unwrap();
        let Kind::Tables(arguments, Some(4)) = other.kind else {
            panic!("it has four warehouses: {:?}", other.kind)
        };
        let expected = "--url=postgres://other/d --workload=dike --seed=3 \
            --isolation=read-committed --warmup=0 --seconds=3 --clients=2 --rate=5 --batch-update \
            --curve=a --curve=b --distribution=exact --warehouses=4";
        assert_eq!(arguments.join(" "), expected);
    }

    #[test]
    fn what_does_not_fit_is_refused_by_its_path() {
        let redis = json!({"url": "redis://h"});
        for (value, path) in [
            (json!({"workers": ["h:1"]}), "workers"),
            (json!({"store": redis, "workers": ["h"]}), "workers.0"),
            (json!({"store": redis, "workers": ["h:99999"]}), "workers.0"),
            (
                json!({"store": redis, "workers": ["h:1", "h:1"]}),
                "workers.1",
            ),
            (json!({"store": redis, "workers": "h:1"}), "workers"),
            (
                json!({"store": redis, "workers": ["h:1", "h:2"]}),
                "workers",
            ),
            (json!({"store": {"stop": "x"}}), "store.stop"),
            (json!({"store": {"start": " "}}), "store.start"),
            (json!({"store": {"script_s": 3}}), "store.script_s"),
            (
                json!({"store": {"start": "x", "script_s": 0}}),
                "store.script_s",
            ),
            (json!({"monitor": {"server": []}}), "monitor.server"),
            (json!({"monitor": {"servers": ["x"]}}), "monitor.servers.0"),
            (json!({"monitor": 3}), "monitor"),
            (json!({"workload": {"limit_s": 3}}), "workload.limit_s"),
            (
                json!({"workload": {"program": "x", "states": {}}}),
                "workload.states",
            ),
            (
                json!({"workload": {"program": "x"}, "workers": ["h:1"]}),
                "workers",
            ),
            (
                json!({"workload": {"name": "tpcc", "states": {}}}),
                "workload.states",
            ),
            (
                json!({"workload": {"name": "tpcc"}, "phases": {"measure_s": 1.5}}),
                "phases.measure_s",
            ),
            (
                json!({"workload": {"name": "tpcc", "parameters": {"seed": 1}}}),
                "workload.parameters.seed",
            ),
            (
                json!({"workload": {"name": "tpcc", "parameters": {"warehouses": 0}}}),
                "workload.parameters.warehouses",
            ),
            (
                json!({"workload": {"name": "tpcc"}, "population": {"kind": "semi_open"}}),
                "population.kind",
            ),
            (json!({"workload": {"name": "tpcc"}}), "store.url"),
            (
                json!({"store": redis, "workload": {"name": "tpcc"}}),
                "store.url",
            ),
            (json!({"sed": 1}), "sed"),
        ] {
            let problem = Document::read(&value).expect_err(&value.to_string());
            assert_eq!(problem.path, path, "{problem}");
        }
    }
}
