//! Runs in which so many transactions compete for a row as they are told
//! ([`workload::dike::contention`]): steering them, and what the server says of it.
//!
//! | server | who waits |
//! |---|---|
//! | Trellis | `SHOW WAITERS`: the row's waiters on each shard |
//! | PostgreSQL | `pg_stat_activity`: sessions that are active in that statement |
//! | MySQL | `information_schema.innodb_trx` of each node: transactions in LOCK WAIT in it |
//!
//! PostgreSQL wakes all that wait for a transaction when it ends, and they queue up again: for a
//! moment most do not wait. One more has the row when others wait for it; where rows move
//! (`leap`), on the shard that has the row.

use super::gate::{Gate, Gathering, gathering};
use crate::run::others::Others;
use crate::run::parts::Lead;
use crate::shape::Steering;
use links::answers::Answers;
use links::cpu::thread_us;
use links::link::{Link, LinkError};
use links::lock;
use links::server::Server;
use links::url::Target;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use workload::dialect::Dialect;
use workload::dike::Distribution;
use workload::dike::contention::{Correction, HotRow, Schedule, hot_statement, paper_probability};
use workload::finding::{Finding, Verdict};
use workload::tpcc::Scale;
use workload::tpcc::input::Input;

/// Time between two looks at the server.
const STEP: Duration = Duration::from_millis(100);
/// Time between two looks at what another process that steers wants.
const FOLLOW_STEP: Duration = Duration::from_millis(20);
/// Steps between two looks at MariaDB or MySQL, whose table of transactions is a copy that is made
/// anew only when nobody has read it for a tenth of a second.
const MYSQL_STEPS: u32 = 3;
/// How long the server may take to answer one.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Seconds after a change of the target that do not count: the queue fills or drains.
const SETTLING_S: f64 = 2.0;
/// How far the mean of a phase, and that of a second, may be from the target.
const MEAN_OFF_MAX: f64 = 0.05;
const SECOND_OFF_MAX: f64 = 0.1;

/// Stock rows for so many schedules, spread over the warehouses.
pub(super) fn hot_rows(
    count: usize,
    scale: &Scale,
    distribution: Option<&Distribution>,
) -> Vec<Arc<HotRow>> {
    let row = |number: usize| {
        let warehouse = (number * scale.warehouses as usize / count) as u32 + 1;
        let mut item = scale.items / 2 + number as u32;
        let mut next = || {
            item = item % scale.items + 1;
            item
        };
        let item = match distribution {
            Some(distribution) => distribution.placement().item(&[warehouse], &mut next),
            None => next(),
        };
        Arc::new(HotRow::new(number, warehouse, item))
    };
    (0..count).map(row).collect()
}

/// The part of a number that is dealt to so many: parts differ by 1 at most.
fn part_of(number: u32, part: u32, count: u32) -> u32 {
    number / count + u32::from(part < number % count)
}

/// What was seen at one look.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Of the measured phase, below 0 before it.
    pub second: f64,
    /// By row: the transactions that compete, as the server says (`None`: it did not) and as the
    /// client counts those under way.
    pub rows: Vec<(Option<f64>, f64)>,
}

/// Ended transactions of a phase: hot ones and others.
#[derive(Debug, Default)]
struct Ended([AtomicU64; 2]);

impl Ended {
    fn a_second(&self, seconds: f64) -> [f64; 2] {
        let ended = [0, 1].map(|at| self.0[at].load(Ordering::Relaxed));
        ended.map(|ended| ended as f64 / seconds)
    }
}

/// How orders are made to compete.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum ContentionControl {
    /// As many as wanted are counted, and nothing waits.
    #[default]
    Counting,
    /// As PeakBench does: they wait at the client until as many as wanted are there.
    Blocking,
}

/// The rows for which orders compete, and how that went.
#[derive(Debug)]
pub(super) struct Contention {
    rows: Vec<(Arc<HotRow>, Schedule)>,
    /// One for each row, if orders wait for each other.
    gates: Vec<Gate>,
    samples: Mutex<Vec<Sample>>,
    /// By phase of the first row.
    ended: Vec<Ended>,
    phase: AtomicUsize,
    /// Processor time of the thread that steers, and the seconds of the run.
    cost: Mutex<Option<(u64, f64)>>,
}

impl Contention {
    pub(super) fn new(
        rows: &[Arc<HotRow>],
        schedules: &[Schedule],
        control: ContentionControl,
    ) -> Option<Contention> {
        let phases = schedules.first()?.phases();
        let gates = match control {
            ContentionControl::Counting => 0,
            ContentionControl::Blocking => rows.len(),
        };
        let rows = rows.iter().cloned().zip(schedules.iter().cloned());
        Some(Contention {
            rows: rows.collect(),
            gates: (0..gates).map(|_| Gate::default()).collect(),
            samples: Mutex::default(),
            ended: phases.iter().map(|_| Ended::default()).collect(),
            phase: AtomicUsize::new(0),
            cost: Mutex::default(),
        })
    }

    /// Whether a row has several phases.
    pub(super) fn changes(&self) -> bool {
        self.rows.iter().any(|(_, it)| it.phases().len() > 1)
    }

    /// For the description of the run.
    pub(super) fn describe(&self) -> String {
        let at = |(row, schedule): &(Arc<HotRow>, Schedule)| {
            format!("{schedule} at {}/{}", row.warehouse, row.item)
        };
        self.rows.iter().map(at).collect::<Vec<_>>().join("; ")
    }

    /// The gate of a hot order, and what tells the order apart.
    fn gate(&self, input: &Input) -> Option<(&Gate, usize)> {
        let Input::NewOrder(order) = input else {
            return None;
        };
        let pick = order.hot.as_ref()?;
        let gate = self.gates.get(pick.row().number)?;
        Some((gate, Arc::as_ptr(pick).addr()))
    }

    /// Has a hot order wait for the others of its round, where it must.
    pub(super) async fn wait_turn(&self, input: &Input) {
        if let Some((gate, order)) = self.gate(input) {
            let came = Instant::now();
            gate.pass(order).await;
            gate.note_waited(came.elapsed().as_secs_f64());
        }
    }

    /// Grows when orders that wait may go on; `None`: none ever waits.
    pub(super) fn turns(&self) -> Option<u64> {
        let turns = self.gates.iter().map(Gate::turns);
        (!self.gates.is_empty()).then(|| turns.sum())
    }

    /// An attempt has ended; with an outcome, or it runs again.
    pub(super) fn note_attempt(&self, input: &Input, has_outcome: bool) {
        if let Some((gate, order)) = self.gate(input).filter(|_| has_outcome) {
            gate.ended(order);
        }
    }

    /// A transaction has ended.
    pub(super) fn note_ended(&self, input: &Input) {
        let is_hot = matches!(input, Input::NewOrder(order) if order.hot.is_some());
        let ended = &self.ended[self.phase.load(Ordering::Relaxed)];
        ended.0[usize::from(!is_hot)].fetch_add(1, Ordering::Relaxed);
    }

    /// Ended transactions by phase, for another process.
    pub(super) fn ended(&self) -> impl Iterator<Item = &AtomicU64> {
        self.ended.iter().flat_map(|ended| &ended.0)
    }

    /// Does what another process wants, until the end of the run.
    fn follow(&self, lead: &dyn Lead, second: &dyn Fn() -> Option<f64>) {
        let mut next = Instant::now();
        while let Some(second) = second() {
            let phase = self.rows[0].1.phase_at(second);
            self.phase.store(phase, Ordering::Relaxed);
            let wanted = lead.wanted();
            for ((row, _), wanted) in self.rows.iter().zip(wanted) {
                row.set_wanted(wanted);
            }
            let in_flight: Vec<u32> = self.rows.iter().map(|(row, _)| row.in_flight()).collect();
            lead.competing(&in_flight);
            next += FOLLOW_STEP;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        self.rows.iter().for_each(|(row, _)| row.set_wanted(0));
    }

    /// Steers until the end of the run, or follows who does.
    pub(super) fn attend(
        &self,
        target: &Target,
        server: &Server,
        second: &dyn Fn() -> Option<f64>,
        steering: Steering<'_>,
    ) {
        let others = match steering {
            Steering::Follows(lead) => return self.follow(lead, second),
            Steering::Leads(others) => Some(others),
            Steering::Alone => None,
        };
        let mut corrections = vec![Correction::default(); self.rows.len()];
        let mut links = Vec::new();
        let mut next = Instant::now();
        let (mut last, mut steps) = (0.0, 0);
        let pace = match server.dialect {
            Dialect::Postgres => 1,
            Dialect::MySql => MYSQL_STEPS,
        };
        while let Some(second) = second() {
            last = second;
            let first = &self.rows[0].1;
            self.phase.store(first.phase_at(second), Ordering::Relaxed);
            let asks = steps % pace == 0;
            let seen = asks
                .then(|| self.look(&mut links, target, server))
                .flatten();
            steps += 1;
            let under_way = match others {
                Some(others) => others.competing(self.rows.len()),
                None => self.rows.iter().map(|(row, _)| row.in_flight()).collect(),
            };
            let mut rows = Vec::with_capacity(self.rows.len());
            let mut wanted = Vec::with_capacity(self.rows.len());
            for (at, (row, schedule)) in self.rows.iter().enumerate() {
                let target = schedule.phases()[schedule.phase_at(second)].0;
                let seen = seen.as_ref().map(|seen| seen[at]);
                let in_flight = under_way[at];
                match self.gates.get(at) {
                    Some(gate) => {
                        row.set_wanted(target);
                        gate.set_wanted(target);
                    }
                    None => wanted.push(corrections[at].step(target, seen, in_flight)),
                }
                rows.push((seen, f64::from(in_flight)));
            }
            match others {
                Some(others) => others.want(&Self::dealt(&wanted, others)),
                None => {
                    for ((row, _), wanted) in self.rows.iter().zip(wanted) {
                        row.set_wanted(wanted);
                    }
                }
            }
            lock(&self.samples).push(Sample { second, rows });
            next += STEP;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        self.rows.iter().for_each(|(row, _)| row.set_wanted(0));
        self.gates.iter().for_each(Gate::open);
        *lock(&self.cost) = thread_us().map(|us| (us, last));
    }

    /// What each of several processes is to have of what is wanted by row. They have as many
    /// clients, but for a round of endpoints.
    fn dealt(wanted: &[u32], others: &dyn Others) -> Vec<Vec<u32>> {
        let count = others.count();
        let rows = |part| wanted.iter().zip(part..);
        let of_part = |part| rows(part).map(|(wanted, at)| part_of(*wanted, at % count, count));
        (0..count).map(|part| of_part(part).collect()).collect()
    }

    /// By row the transactions that compete; `None`: the server cannot be asked now. Nodes of
    /// Galera have locks of their own, so each is asked; one that does not answer has none.
    fn look(
        &self,
        links: &mut Vec<Option<Link>>,
        target: &Target,
        server: &Server,
    ) -> Option<Vec<f64>> {
        let nodes = match server.dialect {
            Dialect::Postgres => 1,
            Dialect::MySql => target.endpoints.len(),
        };
        links.resize_with(nodes, || None);
        let mut sum: Option<Vec<f64>> = None;
        for (link, endpoint) in links.iter_mut().zip(&target.endpoints) {
            let Some(seen) = self.look_at(link, server, || match nodes {
                1 => Link::connect_any(target, Some(ANSWER_LIMIT)),
                _ => Link::connect(endpoint, target, Some(ANSWER_LIMIT)),
            }) else {
                continue;
            };
            match &mut sum {
                Some(sum) => sum
                    .iter_mut()
                    .zip(seen)
                    .for_each(|(sum, seen)| *sum += seen),
                None => sum = Some(seen),
            }
        }
        sum
    }

    fn look_at(
        &self,
        link: &mut Option<Link>,
        server: &Server,
        connect: impl FnOnce() -> Result<Link, LinkError>,
    ) -> Option<Vec<f64>> {
        if link.is_none() {
            *link = connect().ok();
        }
        let seen = self.ask(link.as_mut()?, server);
        if seen.is_err() {
            *link = None;
        }
        seen.ok()
    }

    fn ask(&self, link: &mut Link, server: &Server) -> Result<Vec<f64>, LinkError> {
        let question = match (server.is_trellis, server.dialect) {
            (true, _) => "SHOW WAITERS",
            (false, Dialect::Postgres) => {
                "SELECT query, count(*) FROM pg_stat_activity WHERE state = 'active' AND \
                 query LIKE 'SELECT s_quantity FROM stock WHERE s_w_id = %' GROUP BY query"
            }
            (false, Dialect::MySql) => {
                "SELECT trx_query, count(*) FROM information_schema.innodb_trx WHERE trx_state = \
                 'LOCK WAIT' AND trx_query LIKE 'SELECT s_quantity FROM stock WHERE s_w_id = %' \
                 GROUP BY trx_query"
            }
        };
        let mut answers = Answers::new();
        link.query(question, &mut answers)?;
        let mut seen = vec![0.0; self.rows.len()];
        for place in 0..answers.rows(0) {
            let text = |column| answers.text(0, place, column);
            let is_row = |row: &HotRow| match server.is_trellis {
                true => {
                    let key = format!("{}, {}", row.warehouse, row.item);
                    text(1) == "stock" && text(3) == key
                }
                false => text(0) == hot_statement(row),
            };
            let count = answers.int(0, place, if server.is_trellis { 6 } else { 1 });
            // Where a row is under way those who wait have no holder among them.
            let holds = !server.is_trellis || answers.cell(0, place, 4).is_some();
            if let Some(at) = self.rows.iter().position(|(row, _)| is_row(row)) {
                seen[at] += count.unwrap_or(0) as f64 + f64::from(u8::from(holds));
            }
        }
        Ok(seen)
    }

    /// What the run has shown; `None`: it has not run.
    pub(super) fn report(&self) -> Option<ContentionReport> {
        let samples = lock(&self.samples).clone();
        let last = samples.last()?.second;
        let mut phases = Vec::new();
        for (at, (row, schedule)) in self.rows.iter().enumerate() {
            let of_row = samples.iter().map(|it| (it.second, it.rows[at]));
            let server = of_row.clone().filter_map(|(at, it)| Some((at, it.0?)));
            let client = of_row.map(|(at, it)| (at, it.1));
            let list = schedule.phases();
            for (number, &(target, begin_s)) in list.iter().enumerate() {
                let end_s = list.get(number + 1).map_or(last, |next| next.1.min(last));
                if begin_s >= end_s {
                    continue;
                }
                let counted = (begin_s + SETTLING_S, end_s);
                let rates = || self.ended[number].a_second(end_s - begin_s);
                phases.push(PhaseReport {
                    warehouse: row.warehouse,
                    item: row.item,
                    target,
                    begin_s,
                    end_s,
                    server: Course::of(server.clone(), target.into(), counted),
                    client: Course::of(client.clone(), target.into(), counted),
                    rates: (at == 0).then(rates),
                });
            }
        }
        let cost = *lock(&self.cost);
        Some(ContentionReport {
            phases,
            samples,
            controller_us_per_s: cost.map(|(us, seconds)| us as f64 / seconds.max(1.0)),
            is_blocking: !self.gates.is_empty(),
            gathering: gathering(&self.gates),
        })
    }
}

/// How many competed in the course of a phase, two seconds after its begin and later.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course {
    /// The mean of all samples.
    pub mean: f64,
    /// The mean of the whole second that is farthest from the target.
    pub worst_second: f64,
    /// Whole seconds.
    pub seconds: usize,
}

impl Course {
    /// `None`: there is no whole second with a sample.
    fn of(
        samples: impl Iterator<Item = (f64, f64)>,
        target: f64,
        (begin, end): (f64, f64),
    ) -> Option<Course> {
        let whole = (end - begin).max(0.0) as usize;
        let mut seconds = vec![(0.0, 0u32); whole];
        let (mut sum, mut count) = (0.0, 0u32);
        for (second, value) in samples.filter(|it| (begin..end).contains(&it.0)) {
            sum += value;
            count += 1;
            if let Some(of_second) = seconds.get_mut((second - begin) as usize) {
                *of_second = (of_second.0 + value, of_second.1 + 1);
            }
        }
        let means = seconds.iter().filter(|(_, count)| *count > 0);
        let means: Vec<f64> = means.map(|(sum, count)| sum / f64::from(*count)).collect();
        let off = |value: &f64| (value - target).abs();
        let worst = means.iter().max_by(|a, b| off(a).total_cmp(&off(b)))?;
        Some(Course {
            mean: sum / f64::from(count),
            worst_second: *worst,
            seconds: means.len(),
        })
    }
}

/// How many transactions competed for a row in one phase.
#[derive(Clone, Debug)]
pub struct PhaseReport {
    /// S_W_ID of the row.
    pub warehouse: u32,
    /// S_I_ID of the row.
    pub item: u32,
    /// How many were asked for.
    pub target: u32,
    /// The second of the measured phase from which it held.
    pub begin_s: f64,
    /// The second until which it held.
    pub end_s: f64,
    /// As the server says; `None`: it does not, or the phase is too short.
    pub server: Option<Course>,
    /// Hot orders under way, as the client counts.
    pub client: Option<Course>,
    /// Hot and other transactions a second, of the first row.
    pub rates: Option<[f64; 2]>,
}

impl PhaseReport {
    /// The paper's probability for this target, with the rates of the phase.
    pub fn paper_probability(&self, sessions: u32) -> Option<f64> {
        let [hot, others] = self.rates?;
        let idle = f64::from(sessions.saturating_sub(self.target));
        let each = if idle > 0.0 { others / idle } else { 0.0 };
        Some(paper_probability(sessions, self.target, hot, each))
    }

    /// Share by which a value is off the target.
    fn off(&self, value: f64) -> f64 {
        (value / f64::from(self.target) - 1.0).abs()
    }
}

/// How many transactions competed for rows.
#[derive(Clone, Debug)]
pub struct ContentionReport {
    /// By row, in the course of the run.
    pub phases: Vec<PhaseReport>,
    /// Every look at the server, ten a second.
    pub samples: Vec<Sample>,
    /// Microseconds of processor time that steering has taken in a second.
    pub controller_us_per_s: Option<f64>,
    /// Orders wait for each other. Between two rounds fewer compete than wanted, so nothing is
    /// judged.
    pub is_blocking: bool,
    /// What that took.
    pub gathering: Option<Gathering>,
}

impl ContentionReport {
    /// Each phase beside its target. Where a server is broken on purpose, nothing is judged: then
    /// as many as can compete.
    pub(super) fn findings(&self, breaks: bool) -> Vec<Finding> {
        let finding = |phase: &PhaseReport| {
            let course = phase.server;
            Finding {
                clause: "4.2.2",
                title: "transactions that compete for a row",
                samples: course.map_or(0, |it| it.seconds as u64),
                observed: match course {
                    Some(it) => format!("{:.1}, at worst {:.1}", it.mean, it.worst_second),
                    None => "not told, or too short".into(),
                },
                allowed: format!("{} within 5 %, each second within 10 %", phase.target),
                verdict: match course {
                    None => Verdict::NotApplicable,
                    Some(_) if self.is_blocking || breaks => Verdict::NotApplicable,
                    Some(it)
                        if phase.off(it.mean) <= MEAN_OFF_MAX
                            && phase.off(it.worst_second) <= SECOND_OFF_MAX =>
                    {
                        Verdict::Passed
                    }
                    Some(_) => Verdict::Failed,
                },
            }
        };
        self.phases.iter().map(finding).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_second_is_the_one_farthest_from_the_target() {
        let values = [29.0, 31.0, 30.0, 30.0, 36.0, 34.0, 24.0, 28.0, 90.0];
        let samples = values.iter().enumerate();
        let samples = samples.map(|(at, value)| (2.0 + at as f64 / 2.0, *value));
        // The last half second is no whole one.
        let course = Course::of(samples, 30.0, (2.0, 6.5)).expect("four seconds");
        assert_eq!((course.seconds, course.worst_second), (4, 35.0));
        assert!((course.mean - 332.0 / 9.0).abs() < 1e-9);
        assert_eq!(Course::of([].into_iter(), 30.0, (2.0, 6.5)), None);
    }

    fn phase(target: u32, mean: f64, worst_second: f64) -> PhaseReport {
        let course = Course {
            mean,
            worst_second,
            seconds: 10,
        };
        PhaseReport {
            warehouse: 1,
            item: 1,
            target,
            begin_s: 0.0,
            end_s: 20.0,
            server: Some(course),
            client: None,
            rates: None,
        }
    }

    #[test]
    fn a_phase_is_judged_by_its_mean_and_by_each_second() {
        for (mean, worst, verdict) in [
            (31.4, 32.9, Verdict::Passed),
            (31.6, 32.9, Verdict::Failed),
            (30.0, 26.9, Verdict::Failed),
        ] {
            let report = ContentionReport {
                phases: vec![phase(30, mean, worst)],
                samples: Vec::new(),
                controller_us_per_s: None,
                is_blocking: false,
                gathering: None,
            };
            assert_eq!(report.findings(false)[0].verdict, verdict, "{mean} {worst}");
            assert_eq!(report.findings(true)[0].verdict, Verdict::NotApplicable);
        }
        let unknown = ContentionReport {
            phases: vec![PhaseReport {
                server: None,
                ..phase(30, 1.0, 1.0)
            }],
            samples: Vec::new(),
            controller_us_per_s: None,
            is_blocking: false,
            gathering: None,
        };
        assert_eq!(unknown.findings(false)[0].verdict, Verdict::NotApplicable);
    }

    #[test]
    fn what_is_dealt_is_all_that_is_wanted() {
        for (number, count) in [(0, 3), (2, 3), (30, 1), (31, 4), (150, 7)] {
            let parts = (0..count).map(|part| part_of(number, part, count));
            assert_eq!(parts.clone().sum::<u32>(), number);
            assert!(parts.clone().max().unwrap() - parts.min().unwrap() <= 1);
        }
    }

    #[test]
    fn hot_rows_lie_in_different_warehouses() {
        let rows = hot_rows(3, &Scale::standard(9), None);
        let places: Vec<(u32, u32)> = rows.iter().map(|it| (it.warehouse, it.item)).collect();
        assert_eq!(places, [(1, 50_001), (4, 50_002), (7, 50_003)]);
    }
}
