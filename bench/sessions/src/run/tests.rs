//! Runs of a workload without a store: what is due when, what counts, what a check can do.

use super::*;
use crate::interaction::{Effort, Interaction, perform};
use crate::table::Known;
use peer::{again, longer};
use serde_json::json;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Interactions that count in memory, of which some are lost, fail or take their time.
struct Counter {
    /// Every so many additions one is not done, though it is acknowledged; 0: none.
    loses: u64,
    /// How long each takes, in microseconds.
    takes_us: u64,
    sum: AtomicU64,
}

struct Add;

impl crate::interaction::Plan for Add {
    type Param = u64;
    type Answer = u64;

    fn prepare(&self, session: &mut Session) -> Option<u64> {
        let drawn = session.draws.below(10);
        (drawn > 0).then_some(drawn)
    }

    fn complete(&self, param: &u64, _: u64, _: &mut Session) -> &'static str {
        match *param {
            9 => "MUCH",
            _ => "",
        }
    }

    fn note(&self, param: &u64, answer: Option<&u64>, changes: &mut Changes) {
        changes.note("sum", 0, *param as i64, answer.is_some());
    }
}

impl Interaction<&Counter> for Add {
    async fn execute(
        &self,
        param: &u64,
        access: &mut &Counter,
        effort: &mut Effort,
    ) -> Result<u64, Failure> {
        effort.attempts += 1;
        if *param == 7 {
            return Err(Failure::Conflict("40001".to_string()));
        }
        if access.takes_us > 0 {
            std::thread::sleep(Duration::from_micros(access.takes_us));
        }
        let is_lost = access.loses > 0 && param.is_multiple_of(access.loses);
        if !is_lost {
            access.sum.fetch_add(*param, Ordering::Relaxed);
        }
        match *param == 8 {
            true => Err(Failure::Unknown("the line is dead".to_string())),
            false => Ok(*param),
        }
    }
}

struct Adding;

impl Workload<&Counter> for Adding {
    fn interactions(&self) -> &[(&'static str, &'static [&'static str])] {
        &[("ADD", &["MUCH"])]
    }

    fn default_table(&self) -> Table {
        Table::repeat(0, "ADD")
    }

    async fn perform(
        &self,
        _: usize,
        session: &mut Session,
        access: &mut &Counter,
        changes: &mut Changes,
        now_ns: &dyn Fn() -> u64,
    ) -> Performed {
        perform(&Add, session, access, changes, now_ns).await
    }

    async fn load(&self, _: Part, _: &mut &Counter) -> Result<(), Failure> {
        Ok(())
    }

    async fn check(
        &self,
        part: Part,
        access: &mut &Counter,
        changes: &Changes,
    ) -> Result<Vec<String>, Failure> {
        let found = access.sum.load(Ordering::Relaxed) as i64;
        let changed = changes
            .by_group
            .get(&("sum", 0))
            .copied()
            .unwrap_or_default();
        let is_well = part.dealt(1).next().is_none() || changed.allows(found);
        Ok(match is_well {
            true => Vec::new(),
            false => vec![format!("the sum is {found}, not {changed:?}")],
        })
    }
}

impl<'a> Connector for &'a Counter {
    type Access = &'a Counter;

    fn connect(&self, _: usize) -> Result<&'a Counter, String> {
        Ok(self)
    }

    fn create(&self) -> Result<(), String> {
        self.sum.store(0, Ordering::Relaxed);
        Ok(())
    }

    fn drive<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = std::pin::pin!(future);
        match future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("a counter never waits"),
        }
    }

    fn describe(&self) -> Value {
        json!("counter")
    }
}

fn counter(loses: u64, takes_us: u64) -> Counter {
    Counter {
        loses,
        takes_us,
        sum: AtomicU64::new(0),
    }
}

/// The measured phase of a run. One in which too little has happened is made again.
const MEASURE: Duration = Duration::from_millis(400);

fn run(counter: &Counter, population: Value, states: Option<Value>) -> Value {
    run_for(MEASURE, counter, population, states)
}

fn run_for(length: Duration, counter: &Counter, population: Value, states: Option<Value>) -> Value {
    let section = Section::of("population", &population).expect("an object");
    let known = Known {
        interactions: Workload::<&Counter>::interactions(&Adding),
    };
    let table = states.map(|states| Table::read("states", &states, known).expect("a table"));
    let plan = Plan {
        seed: 5,
        table: table.unwrap_or_else(|| Workload::<&Counter>::default_table(&Adding)),
        population: Population::read(section).expect("a population"),
        phases: Phases {
            warmup_s: 0.05,
            measure_s: length.as_secs_f64(),
        },
        loads: true,
    };
    let stop = AtomicBool::new(false);
    run_over(&counter, &Adding, &plan, &mut |_| {}, &stop).expect("it runs")
}

#[test]
fn outcomes_are_counted_apart() {
    let counter = counter(0, 0);
    let states = json!({
        "START": {"ADD": 1},
        "ADD": {"ADD": 0.75, "END": "rest"},
        "ADD:MUCH": {"END": 1},
    });
    let population = json!({"sessions": 4, "think_time": 0.1});
    let run = |length| run_for(length, &counter, population.clone(), Some(states.clone()));
    let answered = |results: &Value| results["interactions"][0]["answered"].as_u64();
    let results = longer(MEASURE, run, |results| answered(results) > Some(1_000));
    assert_eq!(results["verdict"], "passed", "{results}");
    let add = &results["interactions"][0];
    let count = |key: &str| add[key].as_u64().expect(key);
    let answered = count("answered");
    assert!(answered > 100, "{answered}");
    for (key, counted) in [
        ("unknown", count("unknown")),
        (
            "failed",
            add["failed"]["conflict"]["40001"]
                .as_u64()
                .expect("conflicts"),
        ),
        ("MUCH", add["results"]["MUCH"].as_u64().expect("results")),
        (
            "NOTHING",
            add["results"]["NOTHING"].as_u64().expect("results"),
        ),
    ] {
        // Each is a tenth of all.
        let share = counted as f64 / (answered as f64 / 0.8);
        assert!(
            (0.05..0.16).contains(&share),
            "{key}: {share} of {answered}"
        );
    }
    assert_eq!(results["transitions_out_of_bounds"], 0, "{results}");
    assert!(results["sessions"]["ended"].as_u64() > Some(10));
    assert!(results["per_s"].as_f64() > Some(0.0));
    let think = add["think_us"]["mean"].as_f64().expect("think times");
    assert!((99.0..=101.0).contains(&think), "{think}");
    // Each unknown outcome costs a connection.
    assert!(results["reconnected"].as_u64() > Some(0));
}

#[test]
fn a_lost_update_leaves_no_number() {
    let results = run(&counter(3, 0), json!({}), None);
    assert_eq!(results["verdict"], "failed", "{results}");
    assert_eq!(results["per_s"], Value::Null);
    assert_eq!(results["interactions"][0]["response_us"], Value::Null);
    assert_eq!(results["interactions"][0]["per_s"], Value::Null);
    let findings = results["check"]["findings"].as_array().expect("findings");
    assert_eq!(findings.len(), 1);
}

#[test]
fn an_open_run_says_when_it_is_overloaded() {
    let states = json!({"START": {"ADD": 1}, "ADD": {"END": 1}});
    let slow = counter(0, 5_000);
    let open = |rate: f64| json!({"kind": "open", "rate": rate, "threads": 2});
    // A thread that gets no core for a moment is enough for a queue.
    let calm = || run(&slow, open(100.0), Some(states.clone()));
    let calm = again(calm, |results| results["verdict"] == "passed");
    assert_eq!(calm["overloaded"], false, "{calm}");
    let add = &calm["interactions"][0];
    assert!(add["service_us"]["p50"].as_u64() >= Some(5_000), "{add}");
    assert!(add["response_us"]["mean"].as_f64() >= add["service_us"]["mean"].as_f64());
    let much = || run(&slow, open(2_000.0), Some(states.clone()));
    let much = again(much, |results| results["verdict"] != "nothing");
    assert_eq!(much["verdict"], "overloaded", "{much}");
    assert_eq!(much["interactions"][0]["response_us"], Value::Null);
    assert!(much["waiting_at_end"].as_u64() > Some(100));
}

#[test]
fn sessions_of_a_semi_open_run_wait_for_threads() {
    let population = json!({"kind": "semi_open", "sessions": 20, "threads": 2});
    let run = || run(&counter(0, 1_000), population.clone(), None);
    let results = again(run, |results| results["verdict"] != "nothing");
    assert_eq!(results["check"]["passed"], true, "{results}");
    let queue = &results["interactions"][0]["queue_us"];
    assert!(queue["p50"].as_u64() > Some(4_000), "{queue}");
}

#[test]
fn a_run_that_is_stopped_has_no_results() {
    let counter = counter(0, 0);
    let plan = Plan {
        seed: 1,
        table: Table::repeat(0, "ADD"),
        population: Population {
            kind: Kind::Closed,
            sessions: 1,
            threads: 1,
            think: crate::think::Think::Constant(3_600_000.0),
        },
        phases: Phases {
            warmup_s: 0.0,
            measure_s: 1_000.0,
        },
        loads: false,
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            stop.store(true, Ordering::Relaxed);
        });
        let stopped = run_over(&&counter, &Adding, &plan, &mut |_| {}, &stop);
        assert_eq!(stopped, Err(RunError::Stopped));
    });
}

/// What sessions have asked for, by their numbers.
type Asked = BTreeMap<u64, Vec<u64>>;

/// [`Adding`], with a list of what sessions ask for.
struct Listed(Mutex<Asked>);

impl Workload<&Counter> for Listed {
    fn interactions(&self) -> &[(&'static str, &'static [&'static str])] {
        &[("ADD", &["MUCH"])]
    }

    fn default_table(&self) -> Table {
        Table::repeat(0, "ADD")
    }

    async fn perform(
        &self,
        _: usize,
        session: &mut Session,
        access: &mut &Counter,
        changes: &mut Changes,
        now_ns: &dyn Fn() -> u64,
    ) -> Performed {
        // What it will draw, without a change of what it draws.
        let next = session.draws.clone().below(10);
        {
            let mut asked = self.0.lock().expect("nobody panics");
            asked.entry(session.number).or_default().push(next);
        }
        perform(&Add, session, access, changes, now_ns).await
    }

    async fn load(&self, part: Part, access: &mut &Counter) -> Result<(), Failure> {
        for _ in part.dealt(1_000) {
            access.sum.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn check(&self, _: Part, _: &mut &Counter, _: &Changes) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }
}

/// Begins at once, and counts the seconds.
struct Begins {
    stop: AtomicBool,
    loaded: i64,
    sum_at_begin: AtomicU64,
}

struct BeginsOver<'a>(&'a Begins, &'a Counter);

impl parts::Lead for BeginsOver<'_> {
    fn begin(&self) -> Option<Instant> {
        let sum = self.1.sum.load(Ordering::Relaxed);
        self.0.sum_at_begin.store(sum, Ordering::Relaxed);
        (self.0.loaded >= 0).then(Instant::now)
    }

    fn second(&self, _: u64, _: &Second, _: u64) {}

    fn stop(&self) -> &AtomicBool {
        &self.0.stop
    }
}

/// All parts of a run one after the other: what was asked for, what was loaded, the counts.
fn run_parts(population: &Value, count: u64, length: Duration) -> (Asked, u64, Tallies) {
    let section = Section::of("population", population).expect("an object");
    let states = json!({"START": {"ADD": 1}, "ADD": {"ADD": 0.75, "END": "rest"}});
    let known = Known {
        interactions: Workload::<&Counter>::interactions(&Adding),
    };
    let plan = Plan {
        seed: 5,
        table: Table::read("states", &states, known).expect("a table"),
        population: Population::read(section).expect("a population"),
        phases: Phases {
            warmup_s: 0.0,
            measure_s: length.as_secs_f64(),
        },
        loads: true,
    };
    let (mut asked, mut loaded, mut sum) = (Asked::new(), 0, Tallies::new(1));
    for number in 0..count {
        let counter = counter(0, 0);
        let listed = Listed(Mutex::default());
        let begins = Begins {
            stop: AtomicBool::new(false),
            loaded: 0,
            sum_at_begin: AtomicU64::new(0),
        };
        let lead = BeginsOver(&begins, &counter);
        let part = Part { number, count };
        let done = parts::run_part(&&counter, &listed, &plan, part, &lead).expect("it runs");
        sum.merge(&done.expect("it ends by itself").tallies);
        loaded += begins.sum_at_begin.load(Ordering::Relaxed);
        for (session, draws) in listed.0.into_inner().expect("nobody panics") {
            assert!(
                asked.insert(session, draws).is_none(),
                "{session} ran twice"
            );
        }
    }
    (asked, loaded, sum)
}

/// Compares a run by one process with those by several. Returns whether they have the same: of an
/// open population everything, of the others more than 20 draws. That may be less where a process
/// got no core; what both have must be the same in any case.
fn have_the_same(population: &Value, length: Duration) -> bool {
    let (whole, loaded, sum) = run_parts(population, 1, length);
    assert_eq!(loaded, 1_000);
    let mut is_enough = whole.len() > 20;
    for count in [2, 3, 6] {
        let (parts, loaded, of_parts) = run_parts(population, count, length);
        assert_eq!(loaded, 1_000, "each part of the load is one part's");
        let mut common = 0;
        for (session, draws) in &parts {
            let Some(others) = whole.get(session) else {
                continue;
            };
            let length = draws.len().min(others.len());
            assert_eq!(draws[..length], others[..length], "{population}, {session}");
            common += length;
        }
        is_enough &= match population["kind"] == "open" {
            // All have come and gone: nothing depends on time.
            true => {
                let counts = |sum: &Tallies| (sum.transitions.clone(), sum.sessions_begun);
                parts == whole && counts(&of_parts) == counts(&sum)
            }
            false => common > 20,
        };
    }
    is_enough
}

/// One process, two and three: the same sessions come, and each asks for the same.
#[test]
fn parts_together_have_the_inputs_of_the_whole() {
    for population in [
        json!({"kind": "open", "rate": "step:1000@0,0.001@0.1", "threads": 6}),
        json!({"sessions": 6, "think_time": 1}),
        json!({"kind": "semi_open", "sessions": 24, "threads": 6, "think_time": 1}),
    ] {
        let run = |length| have_the_same(&population, length);
        let first = Duration::from_millis(300);
        assert!(longer(first, run, |is_enough| *is_enough), "{population}");
    }
}

#[test]
fn a_part_that_is_not_begun_has_no_results() {
    let counter = counter(0, 0);
    let begins = Begins {
        stop: AtomicBool::new(false),
        loaded: -1,
        sum_at_begin: AtomicU64::new(0),
    };
    let plan = Plan {
        seed: 1,
        table: Table::repeat(0, "ADD"),
        population: Population {
            kind: Kind::Closed,
            sessions: 2,
            threads: 2,
            think: crate::think::Think::None,
        },
        phases: Phases {
            warmup_s: 0.0,
            measure_s: 1_000.0,
        },
        loads: true,
    };
    let listed = Listed(Mutex::default());
    let lead = BeginsOver(&begins, &counter);
    let part = Part {
        number: 1,
        count: 2,
    };
    let done = parts::run_part(&&counter, &listed, &plan, part, &lead).expect("no error");
    assert!(done.is_none());
    begins.stop.store(true, Ordering::Relaxed);
    let done = parts::run_part(&&counter, &listed, &plan, part, &lead).expect("no error");
    assert!(done.is_none(), "it was ended while it loaded");
}

#[test]
fn the_course_of_a_run_is_kept() {
    let counter = counter(0, 1_000);
    let plan = Plan {
        seed: 1,
        table: Table::repeat(0, "ADD"),
        population: Population {
            kind: Kind::Closed,
            sessions: 2,
            threads: 2,
            think: crate::think::Think::None,
        },
        phases: Phases {
            warmup_s: 1.0,
            measure_s: 1.0,
        },
        loads: true,
    };
    let stop = AtomicBool::new(false);
    let run = || {
        let mut phases = Vec::new();
        let mut live = |progress: Progress| phases.push(progress.phase);
        let results = run_over(&&counter, &Adding, &plan, &mut live, &stop);
        (results.expect("it runs"), phases)
    };
    // Whoever looks at the counts each second may come late.
    let is_in_time = |(results, _): &(Value, Vec<Phase>)| {
        let second = results["timeline"]["answered"]["ADD"][1].as_f64();
        let measured = results["per_s"].as_f64().unwrap_or_default();
        second.is_some_and(|second| (second - measured).abs() < measured / 5.0)
    };
    let told = again(run, is_in_time);
    assert!(is_in_time(&told), "{}", told.0);
    let (results, phases) = told;
    let timeline = &results["timeline"];
    assert_eq!(timeline["seconds"], json!([0.0, 1.0]), "{timeline}");
    assert!(timeline["p50_us"][1].as_u64() >= Some(1_000), "{timeline}");
    assert_eq!(
        phases,
        [Phase::Load, Phase::WarmUp, Phase::Measure, Phase::Check]
    );
}
