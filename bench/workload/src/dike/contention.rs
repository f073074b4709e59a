//! How many transactions compete for a row (section 4.2.2 of the paper, definition 1).
//!
//! A hot order begins with `SELECT .. FOR UPDATE` of one stock row and changes it later, so all hot
//! orders queue up at that statement and hold nothing else there. The client counts the hot orders
//! that have begun and have no outcome, and an order becomes hot while there are fewer than
//! *wanted*. No thread waits for that. On its way to the row and back an order does not compete, so
//! what the server sees is less; a slow loop ([`Correction`]) raises what is wanted by as much.
//!
//! The paper draws each order with a probability instead ([`paper_probability`]). Then the number
//! in the queue has a standard deviation of `sqrt(sessions - target)`, whatever the rates are
//! exactly, so it cannot stay within a tenth of 30 of 180 sessions.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use core::sync::atomic::{AtomicU32, Ordering};

/// Most transactions that one row is wanted by.
const TARGET_MAX: u32 = 100_000;
/// What is added to the correction at each step, of what is missing.
const GAIN: f64 = 0.15;
/// Steps from then on when as many as wanted are under way: servers tell late.
const SETTLED_STEPS: u32 = 5;

/// How many transactions compete for a row, and from which second on.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule(Vec<(u32, f64)>);

/// Why a text is no schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleError(String);

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for ScheduleError {}

impl Schedule {
    /// The targets and the seconds from which they hold: ascending, the first is 0.
    pub fn phases(&self) -> &[(u32, f64)] {
        &self.0
    }

    /// The phase at this second, by its place.
    pub fn phase_at(&self, second: f64) -> usize {
        let begun = self.0.iter().rposition(|(_, from)| *from <= second);
        begun.unwrap_or(0)
    }

    /// The largest target.
    pub fn most(&self) -> u32 {
        self.0.iter().map(|phase| phase.0).max().unwrap_or(0)
    }
}

/// `N[,N@SECOND...]`: the first from the beginning on.
impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Schedule, ScheduleError> {
        let wrong = |why: &str| Err(ScheduleError(format!("{text:?}: {why}")));
        let mut phases: Vec<(u32, f64)> = Vec::new();
        for part in text.split(',') {
            let (target, from) = match part.split_once('@') {
                Some((target, from)) => (target, from.trim().parse().ok()),
                None => (part, phases.is_empty().then_some(0.0)),
            };
            let target = target.trim().parse().ok();
            let target = target.filter(|target| (1..=TARGET_MAX).contains(target));
            let Some((target, from)) = target.zip(from) else {
                return wrong("not of the form N,N@SECOND,.. with N from 1 on");
            };
            let last = phases.last().map(|phase| phase.1);
            let follows = match last {
                None => from == 0.0,
                Some(last) => f64::is_finite(from) && from > last,
            };
            if !follows {
                return wrong("the first is from second 0 on, and the others follow each other");
            }
            phases.push((target, from));
        }
        Ok(Schedule(phases))
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (target, from)) in self.0.iter().enumerate() {
            match at {
                0 => write!(f, "{target}")?,
                _ => write!(f, ",{target}@{from}")?,
            }
        }
        Ok(())
    }
}

/// A stock row for which transactions compete.
#[derive(Debug)]
pub struct HotRow {
    /// Its place among the hot rows.
    pub number: usize,
    /// S_W_ID.
    pub warehouse: u32,
    /// S_I_ID.
    pub item: u32,
    wanted: AtomicU32,
    in_flight: AtomicU32,
}

/// That an order is hot, as long as it or a copy of it is there.
#[derive(Debug)]
pub struct Pick(Arc<HotRow>);

impl Pick {
    /// The row.
    pub fn row(&self) -> &HotRow {
        &self.0
    }
}

impl Drop for Pick {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Picks are equal by their rows.
impl PartialEq for Pick {
    fn eq(&self, other: &Pick) -> bool {
        self.0.number == other.0.number
    }
}

impl Eq for Pick {}

impl HotRow {
    /// A row for which nothing competes yet.
    pub fn new(number: usize, warehouse: u32, item: u32) -> HotRow {
        HotRow {
            number,
            warehouse,
            item,
            wanted: AtomicU32::new(0),
            in_flight: AtomicU32::new(0),
        }
    }

    /// From now on so many hot orders are to be under way.
    pub fn set_wanted(&self, orders: u32) {
        self.wanted.store(orders, Ordering::Relaxed);
    }

    /// Hot orders that have begun and have no outcome.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Makes the next order hot if fewer than wanted are; exact for any number of threads.
    pub fn pick(self: &Arc<HotRow>) -> Option<Arc<Pick>> {
        let wanted = self.wanted.load(Ordering::Relaxed);
        let more = |now: u32| (now < wanted).then_some(now + 1);
        let picked = self
            .in_flight
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        picked.ok().map(|_| Arc::new(Pick(self.clone())))
    }
}

/// The statement at which the transactions of a hot row queue up. Its text tells the row, so that
/// servers that show the statements of sessions can be asked who waits.
pub fn hot_statement(row: &HotRow) -> String {
    format!(
        "SELECT s_quantity FROM stock WHERE s_w_id = {} AND s_i_id = {} FOR UPDATE",
        row.warehouse, row.item
    )
}

/// Raises or lowers what the client wants until the server sees the target.
#[derive(Clone, Debug, Default)]
pub struct Correction {
    target: u32,
    wanted: u32,
    /// Steps for which as many as wanted were under way.
    settled: u32,
    added: f64,
}

impl Correction {
    /// What the client is to want for this target. `observed`: how many the server has seen;
    /// `None`: it did not say. `in_flight`: how many are under way; as long as these are not as
    /// many as wanted, the queue fills or drains, and there is nothing to correct. To be called in
    /// even steps, ten a second.
    pub fn step(&mut self, target: u32, observed: Option<f64>, in_flight: u32) -> u32 {
        let is_wanted = in_flight.abs_diff(self.wanted) <= 1 + self.wanted / 20;
        self.settled = match self.target == target && is_wanted {
            true => self.settled.saturating_add(1),
            false => 0,
        };
        self.target = target;
        if let (Some(observed), true) = (observed, self.settled >= SETTLED_STEPS) {
            let most = 1.0 + f64::from(target) / 50.0;
            let missing = f64::from(target) - observed;
            self.added += (GAIN * missing).clamp(-most, most);
        }
        // More would no longer be the way to the row.
        let most = f64::from(target) / 2.0 + 8.0;
        self.added = self.added.clamp(-most, most);
        let wanted = f64::from(target) + self.added;
        self.wanted = (wanted + 0.5).max(1.0) as u32;
        self.wanted
    }
}

/// The paper's probability that a session's next transaction is hot, for a target of competing
/// ones: `hot_rate` transactions a second pass the row, and one session alone makes
/// `session_rate` others a second.
pub fn paper_probability(sessions: u32, target: u32, hot_rate: f64, session_rate: f64) -> f64 {
    let others = session_rate * f64::from(sessions.saturating_sub(target));
    match hot_rate + others > 0.0 {
        true => hot_rate / (hot_rate + others),
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use base::Prng;

    #[test]
    fn schedules_are_read_and_told_alike() {
        for text in ["30", "30,110@60,150@120.5"] {
            let schedule: Schedule = text.parse().expect(text);
            assert_eq!(schedule.to_string(), text);
        }
        let schedule: Schedule = "30,110@60".parse().expect("two phases");
        let at = |second| schedule.phases()[schedule.phase_at(second)].0;
        assert_eq!([at(-1.0), at(0.0), at(59.9), at(60.0)], [30, 30, 30, 110]);
        assert_eq!(schedule.most(), 110);
        for text in [
            "",
            "0",
            "30,40",
            "30@5",
            "30,40@0",
            "30,40@9,50@9",
            "a",
            "30,40@nan",
            "-1",
        ] {
            assert!(text.parse::<Schedule>().is_err(), "{text}");
        }
    }

    #[test]
    fn as_many_are_picked_as_wanted_and_given_back_once() {
        let row = Arc::new(HotRow::new(0, 1, 50));
        assert!(row.pick().is_none());
        row.set_wanted(2);
        let (first, second) = (row.pick().expect("one"), row.pick().expect("two"));
        assert!(row.pick().is_none());
        let copy = first.clone();
        drop(first);
        assert!(row.pick().is_none() && row.in_flight() == 2);
        drop(copy);
        assert_eq!(row.in_flight(), 1);
        row.set_wanted(1);
        assert!(row.pick().is_none());
        drop(second);
        assert!(row.pick().is_some());
    }

    /// A model: of the hot orders under way a part is elsewhere, so that the server sees fewer. A
    /// queue drains by three at each step. The correction finds what is missing for every target,
    /// and does not go beyond it.
    #[test]
    fn the_server_comes_to_see_the_target() {
        let mut prng = Prng::new(5);
        for away in [0.0, 0.05, 0.2] {
            let mut correction = Correction::default();
            let (mut seen, mut in_flight) = (0.0, 0);
            for target in [30, 110, 150, 80, 50] {
                let (mut sum, mut least) = (0.0, f64::INFINITY);
                for step in 0..200 {
                    let wanted = correction.step(target, Some(seen), in_flight);
                    in_flight = wanted.max(in_flight.saturating_sub(3));
                    let noise = prng.between(-2, 2) as f64;
                    seen = (f64::from(in_flight) * (1.0 - away) + noise).max(0.0);
                    if step >= 60 {
                        sum += seen;
                        least = seen.min(least);
                    }
                }
                let (mean, target): (f64, f64) = (sum / 140.0, target.into());
                assert!((mean - target).abs() < 1.0, "{away} {target}: {mean}");
                assert!(least > target * 0.9 - 2.0, "{away} {target}: {least}");
            }
        }
        // Where the server says nothing, the client's count is the target.
        assert_eq!(Correction::default().step(30, None, 0), 30);
    }

    #[test]
    fn the_probability_of_the_paper_is_that_of_its_rates() {
        assert!((paper_probability(180, 30, 150.0, 2.0) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(paper_probability(10, 10, 0.0, 2.0), 0.0);
    }
}
