//! The global deadlock: transactions that each hold a row, on nodes of their own where that is
//! known, and ask for each other's in a ring.
//!
//! ```text
//! 1  BEGIN  has row 1    asks for row 2, waits
//! 2  BEGIN  has row 2                           asks for row 1: the cycle is closed here
//! ```
//!
//! A ring has two members or three, by turns, and by turns another member closes it: the youngest,
//! then one that is older. All but the last have been waiting for 50 ms when it is closed. The
//! latency counts from then (or from the victim's request, if that came later or the ring was never
//! closed) to the error at the client.
//!
//! Whether an error at once was found in the cycle, or came by a rule that lets no cycle happen, a
//! ring alone cannot tell: InnoDB looks for cycles at each request. So there are two questions
//! first, without a cycle: a younger transaction asks for a row of an older one that waits for
//! nothing, and the other way round.
//!
//! | the younger one | the older one | rule |
//! |---|---|---|
//! | waits | waits | none: cycles can form and must be detected |
//! | gets an error | waits | wait-die |
//! | waits | gets the row, and the younger one an error | wound-wait |
//! | gets an error | gets an error | no waiting |
//!
//! A wait that the server ends because it was too long is no answer to a deadlock: the same happens
//! to one that waits for a slow transaction. And what was written must have an order: a server that
//! lets all members of a ring commit must have the writes of one before those of the other in all
//! rows. Rows are changed by a function that no server can merge with another one's.
//!
//! After the benchmark Dike, section 5 (dUpdateBalance), where random orders make deadlocks happen
//! sometimes; here each ring is one.

use super::ring::Ring;
use super::{FunctionOptions, Ground, Judgement, Teller, Test, Verdict, drop_table};
use links::DriveError;
use links::answers::ServerError;
use links::view::Progress;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub(super) const TABLE: &str = "bench_function_deadlock";
/// The server's own promise may be exceeded by this.
const LATE: Duration = Duration::from_millis(100);

/// What a transaction met that asked for a row of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It waited.
    Waits,
    /// It got an error with this SQLSTATE.
    Refused(String),
    /// It got the row.
    Takes,
}

/// By what rule, if any, a server lets no cycle happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// A younger transaction asked for a row of an older one.
    pub younger: Asked,
    /// An older transaction asked for a row of a younger one.
    pub older: Asked,
}

impl Rule {
    /// Its usual name.
    pub fn name(&self) -> &'static str {
        match (&self.younger, &self.older) {
            (Asked::Waits, Asked::Waits) => "none",
            (Asked::Refused(_), Asked::Waits) => "wait-die",
            (Asked::Waits, Asked::Takes) => "wound-wait",
            (Asked::Refused(_), Asked::Refused(_)) => "no waiting",
            _ => "another",
        }
    }

    /// Cycles can form.
    pub(super) fn is_none(&self) -> bool {
        (&self.younger, &self.older) == (&Asked::Waits, &Asked::Waits)
    }
}

/// How a ring ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The cycle was there, and the server ended a member.
    Detected,
    /// A member was ended by the rule; the cycle was not there, or not for long.
    Prevented,
    /// No member was ended, and none waited for another for long.
    NoConflict,
    /// A member waited for too long.
    TimedOut,
    /// Members wait for each other still.
    NotEnded,
    /// What was written has no order.
    Mixed,
}

impl Outcome {
    /// For a program.
    pub fn key(self) -> &'static str {
        match self {
            Outcome::Detected => "detected",
            Outcome::Prevented => "prevented",
            Outcome::NoConflict => "no_conflict",
            Outcome::TimedOut => "timed_out",
            Outcome::NotEnded => "not_ended",
            Outcome::Mixed => "mixed",
        }
    }
}

/// One ring.
#[derive(Clone, Debug)]
pub struct Cycle {
    /// Members.
    pub size: usize,
    /// Different nodes of their rows, if the server tells.
    pub nodes: Option<usize>,
    /// All but the last waited when it was closed.
    pub is_closed: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// Members that were ended: their place by age, the oldest is 0, and the error.
    pub victims: Vec<(usize, ServerError)>,
    /// From the closed cycle to the first error.
    pub latency: Option<Duration>,
}

/// What the deadlock test has found.
#[derive(Clone, Debug)]
pub struct DeadlockReport {
    /// What happens without a cycle.
    pub rule: Rule,
    /// Rings that were asked for.
    pub wanted: u32,
    /// Those that were made.
    pub cycles: Vec<Cycle>,
    /// Within what time the server says that it looks for cycles: `deadlock_timeout`.
    pub promised: Option<Duration>,
    /// When a ring counts as not ended.
    pub cycle_limit: Duration,
}

impl DeadlockReport {
    /// Rings with that outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        let cycles = self.cycles.iter();
        cycles.filter(|cycle| cycle.outcome == outcome).count()
    }

    /// Sorted.
    fn latencies(&self) -> Vec<Duration> {
        let mut all: Vec<Duration> = self.cycles.iter().filter_map(|it| it.latency).collect();
        all.sort();
        all
    }

    /// Half of the rings had their error within this.
    pub fn latency_median(&self) -> Option<Duration> {
        let all = self.latencies();
        all.get(all.len().saturating_sub(1) / 2).copied()
    }

    /// All had.
    pub fn latency_max(&self) -> Option<Duration> {
        self.latencies().last().copied()
    }

    /// How often which SQLSTATE ended a member.
    pub fn states(&self) -> BTreeMap<&str, usize> {
        let mut states = BTreeMap::new();
        for (_, error) in self.cycles.iter().flat_map(|cycle| &cycle.victims) {
            *states.entry(error.sqlstate.as_str()).or_default() += 1;
        }
        states
    }

    /// The verdict.
    pub fn judgement(&self) -> Judgement {
        let count = |outcome| self.count(outcome);
        let all = self.cycles.len();
        let failed = |text: String| Judgement::new(Verdict::Failed, text);
        let limit_s = self.cycle_limit.as_secs_f64();
        if count(Outcome::Mixed) > 0 {
            let mixed = count(Outcome::Mixed);
            return failed(format!(
                "the writes of {mixed} of {all} cycles are mixed up"
            ));
        }
        if count(Outcome::NotEnded) > 0 {
            let not = count(Outcome::NotEnded);
            return failed(format!(
                "{not} of {all} cycles had not ended after {limit_s} s"
            ));
        }
        if count(Outcome::TimedOut) > 0 {
            let timed = count(Outcome::TimedOut);
            return failed(format!(
                "{timed} of {all} cycles were ended by a limit of waits only: nothing looked for \
                 deadlocks"
            ));
        }
        if let (Some(promised), Some(median)) = (self.promised, self.latency_median())
            && median > promised + LATE
        {
            return failed(format!(
                "half of the deadlocks took longer than {} ms: deadlock_timeout is {} ms",
                median.as_millis(),
                promised.as_millis()
            ));
        }
        if all < self.wanted as usize {
            let wanted = self.wanted;
            let text = format!("only {all} of {wanted} cycles were made in time");
            return Judgement::new(Verdict::NotExercised, text);
        }
        let text = match (count(Outcome::Detected), count(Outcome::Prevented)) {
            (0, 0) => {
                let text =
                    format!("no transaction of {all} cycles waited for another or was ended");
                return Judgement::new(Verdict::NotExercised, text);
            }
            (detected, 0) if detected == all => format!("detected: each of {all} cycles was ended"),
            (0, prevented) if prevented == all => {
                let name = self.rule.name();
                format!("prevented: the rule ({name}) ended a member of each of {all} cycles")
            }
            (detected, prevented) => {
                format!("{detected} of {all} cycles were detected, {prevented} prevented")
            }
        };
        Judgement::new(Verdict::Passed, text)
    }
}

/// Runs the test.
pub(super) fn run(
    ground: &Ground,
    options: &FunctionOptions,
    progress: &mut dyn Progress,
) -> Result<DeadlockReport, DriveError> {
    let wanted = options.count_of(Test::Deadlock);
    let isolation = ground.isolation.sql();
    progress.stage(&format!(
        "deadlock test: {wanted} cycles of two and three transactions at {isolation}"
    ));
    let found = run_in_table(ground, options, wanted, progress);
    drop_table(ground, TABLE);
    found
}

fn run_in_table(
    ground: &Ground,
    options: &FunctionOptions,
    wanted: u32,
    progress: &mut dyn Progress,
) -> Result<DeadlockReport, DriveError> {
    let until = Instant::now() + options.limit;
    let mut ring = Ring::open(ground, options)?;
    let rule = ring.rule()?;
    let mut report = DeadlockReport {
        rule,
        wanted,
        cycles: Vec::new(),
        promised: ring.promised()?,
        cycle_limit: options.cycle_limit,
    };
    let mut teller = Teller::new();
    while report.cycles.len() < wanted as usize && Instant::now() < until {
        let cycle = ring.cycle(report.cycles.len(), &report.rule)?;
        let has_ended = cycle.outcome != Outcome::NotEnded;
        report.cycles.push(cycle);
        if !has_ended {
            // Each of the others would take as long, and no member can be used any more.
            break;
        }
        teller.tell(progress, || {
            format!("  {} of {wanted} cycles", report.cycles.len())
        });
    }
    Ok(report)
}

/// `1s`, `200ms`, `2min`, as PostgreSQL shows a time; `0`: none.
pub(super) fn duration_of(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.checked_mul(unit_ms)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(sqlstate: &str) -> ServerError {
        ServerError {
            sqlstate: sqlstate.into(),
            message: "ended".into(),
        }
    }

    fn cycle(outcome: Outcome, latency_ms: u64) -> Cycle {
        Cycle {
            size: 2,
            nodes: None,
            is_closed: true,
            outcome,
            victims: vec![(1, error("40P01"))],
            latency: Some(Duration::from_millis(latency_ms)),
        }
    }

    fn report(cycles: Vec<Cycle>) -> DeadlockReport {
        DeadlockReport {
            rule: Rule {
                younger: Asked::Waits,
                older: Asked::Waits,
            },
            wanted: cycles.len() as u32,
            cycles,
            promised: None,
            cycle_limit: Duration::from_secs(10),
        }
    }

    #[test]
    fn one_cycle_that_does_not_end_well_fails() {
        let judged = |outcomes: &[Outcome]| {
            let cycles = outcomes.iter().map(|outcome| cycle(*outcome, 1));
            report(cycles.collect()).judgement().verdict
        };
        use Outcome::{Detected, Mixed, NoConflict, NotEnded, Prevented, TimedOut};
        assert_eq!(judged(&[Detected, Detected]), Verdict::Passed);
        assert_eq!(judged(&[Prevented, Detected]), Verdict::Passed);
        for bad in [NotEnded, TimedOut, Mixed] {
            assert_eq!(judged(&[Detected, bad]), Verdict::Failed);
        }
        assert_eq!(judged(&[NoConflict]), Verdict::NotExercised);
        assert_eq!(judged(&[]), Verdict::NotExercised);
    }

    #[test]
    fn a_server_is_held_to_its_own_promise() {
        let mut late = report(vec![cycle(Outcome::Detected, 1_101)]);
        assert_eq!(late.judgement().verdict, Verdict::Passed);
        late.promised = Some(Duration::from_secs(1));
        assert_eq!(late.judgement().verdict, Verdict::Failed);
        late.cycles[0].latency = Some(Duration::from_millis(1_100));
        assert_eq!(late.judgement().verdict, Verdict::Passed);
        late.wanted = 2;
        assert_eq!(late.judgement().verdict, Verdict::NotExercised);
    }

    #[test]
    fn rules_are_named() {
        let refused = || Asked::Refused("40001".into());
        let name = |younger, older| Rule { younger, older }.name();
        assert_eq!(name(Asked::Waits, Asked::Waits), "none");
        assert_eq!(name(refused(), Asked::Waits), "wait-die");
        assert_eq!(name(Asked::Waits, Asked::Takes), "wound-wait");
        assert_eq!(name(refused(), refused()), "no waiting");
    }

    #[test]
    fn times_of_postgresql_are_read() {
        let ms = |text| duration_of(text).map(|it| it.as_millis());
        assert_eq!(ms("1s"), Some(1_000));
        assert_eq!(ms("200ms"), Some(200));
        assert_eq!(ms("2min"), Some(120_000));
        assert_eq!(ms(""), None);
        assert_eq!(ms("soon"), None);
    }
}
