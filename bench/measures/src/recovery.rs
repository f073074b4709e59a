//! What a fault has cost: how deep the rate fell, when, until when, and the transactions lost.
//!
//! ```text
//! rate ---+  baseline                      +---------  99 %: t99_s
//!         |                          +-----+           90 %: t90_s
//!         |  depth              +----+                 50 %: t50_s
//!         +---------------------+
//!         | the fault's begin: all times count from here
//! ```
//!
//! **Rule.** Single steps are noise, and a moving mean blurs edges. So the steps from the fault's
//! begin on are cut into *stretches* of constant rate. The cut minimises the squared deviations
//! from the means of the stretches, in units of the noise, plus `PENALTY * ln(steps)` for each
//! stretch (optimal partitioning: Jackson et al. 2005, pruned as PELT: Killick et al. 2012). A
//! stretch is one step long where that step stands out, and long where none does.
//!
//! * A *fall* is a stretch whose mean is below 99 % of the baseline by more than the 99.9 % band of
//!   the noise in that mean and in the baseline. Less than 1 % is no fall.
//! * The fall is seen (`t_detect_s`) where the first fall begins.
//! * The rate is back at a share of the baseline for good behind the last fall whose mean is below
//!   that share, if at least [`HOLD_STEPS`] steps follow.
//! * The edge between that stretch and the next is placed to the step: where the steps on both
//!   sides part best at the share. If the share is nearer than two deviations of a step to one of
//!   the two means, the edge is that of the nearest level which is not, or of the middle.
//!
//! So no number depends on one lucky step. One step of silence is seen all the same where the noise
//! is below a seventh of the baseline.
//!
//! **Noise** is the standard deviation of the steps before the fault, at the upper end of its own
//! one-sided 95 % band, and at least what means of 2 and 4 steps say: neighbouring steps of real
//! stores rise and fall together. Stalls before the fault widen it; they are no news after it.
//! Noise of independent steps passes for a fall in less than 1 % of the runs. Noise in which
//! neighbours correlate by 0.6 does so in 1 to 14 %, the less the longer the baseline.
//!
//! **What it cannot do.** Edges that stand out of the noise are placed within one step. Where the
//! rate creeps up by `c` transactions per step with each step, no method places its return better
//! than within some `(noise / c)^(2/3)` steps, with `noise` in transactions. A creeping return to
//! 99 % is placed too early: as soon as noise hides what is missing. So [`Recovery::noise`] belongs
//! beside the times.

use alloc::vec::Vec;
use core::fmt;
use workload::stats::{ln, sqrt};

/// Price of a stretch, in squared deviations of noise per `ln(steps)`. A smaller one finds changes
/// in noise, a larger one overlooks short falls. A lone step stands out from `sqrt(2 * PENALTY *
/// ln(steps))` deviations on: 5.8 at 300 steps.
const PENALTY: f64 = 3.0;

/// Steps that must follow the last fall before the rate counts as back.
pub const HOLD_STEPS: usize = 3;

/// Fewest whole steps that a baseline may have.
pub const BASELINE_STEPS_MIN: usize = 10;

/// Deviations that 99.9 % of the values of a normal variable stay within.
const BAND: f64 = 3.2905;

/// Deviations of one step that a level keeps to the means on both sides of an edge. With fewer, the
/// walk that looks for the edge strays into the noise behind it.
const EDGE: f64 = 2.0;

/// A series of commits with a fault in it.
#[derive(Clone, Copy, Debug)]
pub struct Incident<'a> {
    /// Transactions committed in each step, 0 or more. The first step begins at second 0.
    pub counts: &'a [f64],
    /// Length of a step in seconds, above 0.
    pub step_s: f64,
    /// Second at which the fault began, inside the series.
    pub began_s: f64,
    /// Second at which it was undone, after `began_s`; None: it lasted to the end of the series.
    pub ended_s: Option<f64>,
    /// Seconds from which to which the baseline is taken, not beyond `began_s`; None: all before
    /// the fault. Whole steps count.
    pub baseline_s: Option<(f64, f64)>,
}

/// Why a series says nothing about a fault. Nothing passes by trying again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryError {
    /// The step is not above 0, or the seconds are not finite or not in order.
    Times,
    /// The count of this step is negative or not finite.
    Count(usize),
    /// This number of whole steps before the fault; [`BASELINE_STEPS_MIN`] are needed.
    ShortBaseline(usize),
    /// Nothing was committed before the fault.
    IdleBaseline,
    /// The fault began at or after the end of the series.
    NothingAfter,
}

impl fmt::Display for RecoveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecoveryError::Times => f.write_str("the times of the fault are not in order"),
            RecoveryError::Count(step) => write!(f, "step {step} has no count of 0 or more"),
            RecoveryError::ShortBaseline(steps) => write!(
                f,
                "{steps} whole steps before the fault, {BASELINE_STEPS_MIN} are needed"
            ),
            RecoveryError::IdleBaseline => f.write_str("nothing was committed before the fault"),
            RecoveryError::NothingAfter => f.write_str("the series ends before the fault begins"),
        }
    }
}

impl core::error::Error for RecoveryError {}

/// What a fault has done to the rate of commits. Times are seconds from the fault's begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recovery {
    /// Mean rate before the fault, transactions per second, above 0.
    pub baseline: f64,
    /// Standard deviation of one step by noise, as a share of the baseline's step, above 0.
    pub noise: f64,
    /// `1 - lowest rate / baseline`, 0 to 1; the lowest rate is the lowest mean of a fall. 0 if no
    /// fall was seen. Uncertain by about `noise / sqrt(steps of that fall)`.
    pub depth: f64,
    /// Until the rate left the noise of the baseline downwards; None: no fall was seen.
    pub t_detect_s: Option<f64>,
    /// Until the rate was back at 50 % of the baseline for good. 0: it never was below; None: it
    /// was not back before the series ended.
    pub t50_s: Option<f64>,
    /// The same for 90 %.
    pub t90_s: Option<f64>,
    /// The same for 99 %: full recovery. 0 if no fall was seen.
    pub t99_s: Option<f64>,
    /// Transactions lost: baseline less rate, summed from the fault's begin to full recovery or,
    /// without one, to the end of the series. 0 or more; 0 if no fall was seen. What a backlog
    /// brings above the baseline after full recovery is not set off.
    pub area_lost: f64,
    /// The rate that the store settled at while the fault lasted, transactions per second: the last
    /// stretch with at least [`HOLD_STEPS`] steps before the fault's end. The paper's `TPS_e`.
    pub rate_stable: f64,
    /// Until it settled: the paper's `t`.
    pub t_stable_s: f64,
}

impl Recovery {
    /// The paper's [`r_e`] of this fault.
    pub fn r_e(&self) -> f64 {
        r_e(self.rate_stable, self.baseline)
    }

    /// The paper's [`t_e`] of this fault.
    pub fn t_e(&self) -> f64 {
        t_e(self.t_stable_s)
    }
}

/// Dike's stability of throughput, `R_e = 1 - |TPS_e - TPS_n| / TPS_n`; 1 is unharmed (Dike 4.4,
/// equation 4).
///
/// `rate_fault` is the rate with the fault, 0 or more; `rate_normal` the one without, above 0.
///
/// What is wrong with it: the absolute value punishes a rate that rose like one that fell, and
/// turns the score negative above twice the baseline. It tells one level: a minute of silence that
/// ends in a full recovery scores 1. [`Recovery::depth`] and [`Recovery::area_lost`] tell them
/// apart.
pub fn r_e(rate_fault: f64, rate_normal: f64) -> f64 {
    1.0 - (rate_fault - rate_normal).abs() / rate_normal
}

/// Dike's efficiency of recovery, `T_e = 1 / (t + 1)`, above 0, at most 1 (Dike 4.4, equation 4).
///
/// `t_s` is the time until the rate is stable, 0 or more. The paper names no unit; here it is
/// seconds.
///
/// What is wrong with it: the 1 has a unit. One second scores 0.5 as `1` second and 0.001 as `1000`
/// milliseconds, so scores of two papers cannot be compared, and the order of two mean scores can
/// change with the unit. It also does not say how stable, or at which rate. Read
/// [`Recovery::t50_s`], [`Recovery::t90_s`] and [`Recovery::t99_s`] instead.
pub fn t_e(t_s: f64) -> f64 {
    1.0 / (t_s + 1.0)
}

/// What the steps before the fault say, in transactions per step.
struct Baseline {
    /// Above 0.
    mean: f64,
    /// Standard deviation of one step, as the module says, above 0.
    noise: f64,
    steps: f64,
}

/// Neighbouring steps of one rate. Steps count from the fault's begin.
struct Stretch {
    begin: usize,
    /// The step behind the last one, above `begin`.
    end: usize,
    /// Transactions per step.
    mean: f64,
}

impl Stretch {
    /// Standard deviation, by noise alone, of its mean less the baseline's.
    fn spread(&self, base: &Baseline) -> f64 {
        let steps = (self.end - self.begin) as f64;
        base.noise * sqrt(1.0 / steps + 1.0 / base.steps)
    }

    /// Whether this is a fall, as the module says.
    fn is_fall(&self, base: &Baseline) -> bool {
        self.mean < 0.99 * base.mean - BAND * self.spread(base)
    }
}

impl Incident<'_> {
    /// Measures the fall and the recovery, as the module says. A fault that begins inside a step
    /// begins with that step where transactions are summed up.
    ///
    /// Cost: at most the square of the steps after the fault's begin (a millisecond for 1,000).
    ///
    /// # Errors
    /// Every [`RecoveryError`].
    pub fn recovery(&self) -> Result<Recovery, RecoveryError> {
        let (base, begin) = self.baseline()?;
        let stretches = cut(&self.counts[begin..], &base);
        let back = |share: f64| self.back(&stretches, &base, share, begin);
        let falls = || stretches.iter().filter(|s| s.is_fall(&base));
        let seen = falls().next();
        let lowest = falls().map(|s| s.mean).fold(base.mean, f64::min);
        let t99 = back(0.99);
        let hurt = &self.counts[begin..t99.unwrap_or(self.counts.len())];
        let lost: f64 = hurt.iter().map(|count| base.mean - count).sum();
        let (rate_stable, stable) = self.stable(&stretches, begin);
        Ok(Recovery {
            baseline: base.mean / self.step_s,
            noise: base.noise / base.mean,
            depth: (1.0 - lowest / base.mean).clamp(0.0, 1.0),
            t_detect_s: seen.map(|s| self.seconds(begin + s.begin)),
            t50_s: back(0.5).map(|step| self.seconds(step)),
            t90_s: back(0.9).map(|step| self.seconds(step)),
            t99_s: t99.map(|step| self.seconds(step)),
            area_lost: lost.max(0.0),
            rate_stable,
            t_stable_s: self.seconds(stable),
        })
    }

    /// The baseline, and the step in which the fault began.
    fn baseline(&self) -> Result<(Baseline, usize), RecoveryError> {
        let (from_s, until_s) = self.baseline_s.unwrap_or((0.0, self.began_s));
        let ordered = 0.0 <= from_s && from_s <= until_s && until_s <= self.began_s;
        let lasting = self.ended_s.is_none_or(|ended_s| self.began_s < ended_s);
        let finite = self.step_s.is_finite() && self.began_s.is_finite();
        if !(ordered && lasting && finite && self.step_s > 0.0) {
            return Err(RecoveryError::Times);
        }
        let bad = |count: &f64| !(count.is_finite() && *count >= 0.0);
        if let Some(step) = self.counts.iter().position(bad) {
            return Err(RecoveryError::Count(step));
        }
        let begin = whole(self.began_s / self.step_s);
        if begin >= self.counts.len() {
            return Err(RecoveryError::NothingAfter);
        }
        let from = whole(from_s / self.step_s + 1.0 - 2.0 * WHOLE);
        let until = whole(until_s / self.step_s);
        let before = &self.counts[from.min(until)..until];
        if before.len() < BASELINE_STEPS_MIN {
            return Err(RecoveryError::ShortBaseline(before.len()));
        }
        let steps = before.len() as f64;
        let mean = before.iter().sum::<f64>() / steps;
        if mean <= 0.0 {
            return Err(RecoveryError::IdleBaseline);
        }
        let noise = noise(before, mean);
        Ok((Baseline { mean, noise, steps }, begin))
    }

    /// Seconds from the fault's begin to the begin of this step of the series.
    fn seconds(&self, step: usize) -> f64 {
        (step as f64 * self.step_s - self.began_s).max(0.0)
    }

    /// The step of the series from which on the rate is at this share of the baseline for good.
    fn back(&self, all: &[Stretch], base: &Baseline, share: f64, begin: usize) -> Option<usize> {
        let level = share * base.mean;
        let is_low = |s: &Stretch| s.is_fall(base) && s.mean < level;
        let Some(last) = all.iter().rposition(is_low) else {
            return Some(begin);
        };
        let (below, above) = (&all[last], all.get(last + 1)?);
        let middle = (below.mean + above.mean) / 2.0;
        let lowest = (below.mean + EDGE * base.noise).min(middle);
        let highest = (above.mean - EDGE * base.noise).max(middle);
        let parting = level.clamp(lowest, highest);
        let (mut sum, mut least, mut step) = (0.0, 0.0, below.begin);
        for at in below.begin..above.end {
            sum += self.counts[begin + at] - parting;
            if sum < least {
                (least, step) = (sum, at + 1);
            }
        }
        let step = begin + step;
        (self.counts.len() - step >= HOLD_STEPS).then_some(step)
    }

    /// The rate per second that was reached for good before the fault's end, and the step of the
    /// series where it begins.
    fn stable(&self, all: &[Stretch], begin: usize) -> (f64, usize) {
        let steps = self.counts.len();
        let ended = self.ended_s.map_or(steps, |s| whole(s / self.step_s));
        let ended = ended.clamp(begin + 1, steps) - begin;
        let under = |s: &&Stretch| s.begin < ended;
        let held = |s: &&Stretch| s.end.min(ended) >= s.begin + HOLD_STEPS;
        let last = all.iter().filter(under).rfind(held);
        let last = last.or(all.iter().rfind(under));
        let (from, until) = last.map_or((0, ended), |s| (s.begin, s.end.min(ended)));
        let sum: f64 = self.counts[begin + from..begin + until].iter().sum();
        let seconds = (until - from) as f64 * self.step_s;
        (sum / seconds, begin + from)
    }
}

/// Share of a step by which a quotient of decimal fractions may miss a whole number.
const WHOLE: f64 = 1e-6;

/// The whole steps in this number of them, 0 or more.
fn whole(steps: f64) -> usize {
    (steps + WHOLE) as usize
}

/// The standard deviation of one step, as the module says. At least half a transaction, for counts
/// are whole, and a ten-thousandth of the mean, for the sums of [`cut`] are not exact.
fn noise(before: &[f64], mean: f64) -> f64 {
    let spread = |width: usize| {
        let blocks = (before.len() / width) as f64;
        let square = |block: &[f64]| {
            let off = block.iter().sum::<f64>() - mean * width as f64;
            off * off
        };
        let squares: f64 = before.chunks_exact(width).map(square).sum();
        sqrt(squares / ((blocks - 1.0) * width as f64))
    };
    // Wilson and Hilferty: the 5 % quantile of chi-square by its degrees of freedom is root^3.
    let tail = 2.0 / (9.0 * (before.len() - 1) as f64);
    let root = 1.0 - tail - 1.645 * sqrt(tail);
    let single = spread(1) / sqrt(root * root * root);
    let wide = [2, 4].into_iter().filter(|w| before.len() / w >= 10);
    wide.map(spread)
        .fold(single.max(0.5).max(mean * 1e-4), f64::max)
}

/// The steps after the fault's begin in stretches, as the module says.
fn cut(counts: &[f64], base: &Baseline) -> Vec<Stretch> {
    let variance = base.noise * base.noise;
    let price = PENALTY * ln((counts.len() as f64).max(2.0));
    // Sums of the deviations from the baseline and of their squares, in front of each step.
    let mut sums = Vec::from([(0.0, 0.0)]);
    let (mut sum, mut squares) = (0.0, 0.0);
    for count in counts {
        let off = count - base.mean;
        sum += off;
        squares += off * off;
        sums.push((sum, squares));
    }
    let cost = |from: usize, until: usize| {
        let (sum, squares) = (sums[until].0 - sums[from].0, sums[until].1 - sums[from].1);
        ((squares - sum * sum / (until - from) as f64) / variance).max(0.0)
    };
    // The least cost of the steps in front of each, and where their last stretch begins.
    let mut best = Vec::from([(0.0, 0)]);
    let mut open = Vec::from([0]);
    for until in 1..=counts.len() {
        let mut least = (f64::MAX, 0);
        for &from in &open {
            let total = best[from].0 + cost(from, until) + price;
            if total < least.0 {
                least = (total, from);
            }
        }
        best.push(least);
        // A begin that is dearer already without the price of another stretch stays dearer.
        open.retain(|&from| best[from].0 + cost(from, until) <= least.0);
        open.push(until);
    }
    let mut stretches = Vec::new();
    let mut end = counts.len();
    while end > 0 {
        let begin = best[end].1;
        let mean = base.mean + (sums[end].0 - sums[begin].0) / (end - begin) as f64;
        stretches.push(Stretch { begin, end, mean });
        end = begin;
    }
    stretches.reverse();
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;

    /// Steps before the fault, and after its begin.
    const BEFORE: usize = 60;
    const AFTER: usize = 120;

    fn normal(prng: &mut Prng) -> f64 {
        let radius = sqrt(-2.0 * ln(1.0 - prng.unit()));
        radius * (core::f64::consts::TAU * prng.unit()).cos()
    }

    /// A Poisson variable; from a mean of 500 on, the normal one that it is then near to.
    fn poisson(prng: &mut Prng, mean: f64) -> f64 {
        if mean >= 500.0 {
            return (mean + sqrt(mean) * normal(prng)).round().max(0.0);
        }
        let (floor, mut product, mut count) = ((-mean).exp(), prng.unit(), 0.0);
        while product > floor {
            product *= prng.unit();
            count += 1.0;
        }
        count
    }

    /// Shares of the baseline by the number of the step since the fault's begin.
    type Shape = fn(f64) -> f64;

    fn shares(shape: Shape) -> Vec<f64> {
        (0..AFTER).map(|step| shape(step as f64)).collect()
    }

    fn planted(shape: Shape, level: f64, seed: Option<u64>) -> Vec<f64> {
        let mut prng = seed.map(Prng::new);
        let all = core::iter::repeat_n(1.0, BEFORE).chain(shares(shape));
        all.map(|share| match &mut prng {
            Some(prng) => poisson(prng, share * level),
            None => (share * level).round(),
        })
        .collect()
    }

    fn measure(counts: &[f64], step_s: f64) -> Recovery {
        let incident = Incident {
            counts,
            step_s,
            began_s: BEFORE as f64 * step_s,
            ended_s: None,
            baseline_s: None,
        };
        incident.recovery().expect("a series to measure")
    }

    /// Where planted shares are below `share` first, and at it for good.
    fn truth(shares: &[f64], share: f64) -> (Option<usize>, Option<usize>) {
        let low = |value: &f64| *value < share - 1e-9;
        let back = shares.iter().rposition(low).map_or(0, |step| step + 1);
        let held = shares.len() - back >= HOLD_STEPS;
        (shares.iter().position(low), held.then_some(back))
    }

    /// Whether a time is at the planted step, or off by at most `steps`.
    fn near(time_s: Option<f64>, planted: Option<usize>, step_s: f64, steps: f64) -> bool {
        match (time_s, planted) {
            (Some(time), Some(step)) => (time / step_s - step as f64).abs() <= steps + 1e-6,
            (None, None) => true,
            _ => false,
        }
    }

    /// The names of the numbers that are off by more than one step (the depth: 3.5 deviations of
    /// noise; the area: one step of the baseline and four deviations of noise).
    fn misses(counts: &[f64], shape: Shape, level: f64, step_s: f64) -> Vec<&'static str> {
        let (got, shares) = (measure(counts, step_s), shares(shape));
        let at = |share| truth(&shares, share).1;
        let hurt = at(0.99).unwrap_or(AFTER);
        let area: f64 = shares[..hurt].iter().map(|s| (1.0 - s) * level).sum();
        // The baseline's own error counts in each of the steps.
        let steps = hurt as f64;
        let area_noise = 4.0 * sqrt(level * (steps + steps * steps / BEFORE as f64));
        let depth = 1.0 - shares.iter().copied().fold(1.0, f64::min);
        let seen = truth(&shares, 0.99).0;
        let near = |time, step| near(time, step, step_s, 1.0);
        let fine = [
            ("detect", near(got.t_detect_s, seen)),
            ("t50", near(got.t50_s, at(0.5))),
            ("t90", near(got.t90_s, at(0.9))),
            ("t99", near(got.t99_s, at(0.99))),
            ("depth", (got.depth - depth).abs() <= 3.5 * got.noise),
            ("area", (got.area_lost - area).abs() <= level + area_noise),
            ("rate", (got.baseline * step_s / level - 1.0).abs() < 0.1),
        ];
        let wrong = fine.into_iter().filter(|(_, fine)| !fine);
        wrong.map(|(name, _)| name).collect()
    }

    const SHARP: [(&str, Shape); 8] = [
        ("to 0.4", |t| if t < 30.0 { 0.4 } else { 1.0 }),
        ("to 0.3, short", |t| if t < 10.0 { 0.3 } else { 1.0 }),
        ("silence", |t| if t < 12.0 { 0.0 } else { 1.0 }),
        ("late", |t| if (5.0..12.0).contains(&t) { 0.0 } else { 1.0 }),
        ("one step", |t| if t < 1.0 { 0.0 } else { 1.0 }),
        ("never back", |t| if t < 5.0 { 0.0 } else { 0.6 }),
        ("never back, late", |t| if t < 40.0 { 1.0 } else { 0.3 }),
        ("two", |t| {
            let low = t < 10.0 || (40.0..55.0).contains(&t);
            if low { 0.2 } else { 1.0 }
        }),
    ];

    #[test]
    fn sharp_edges_are_found_within_one_step_in_noise() {
        for (name, shape) in SHARP {
            for (level, step_s) in [(50.0, 1.0), (50.0, 0.1), (500.0, 0.1), (5_000.0, 1.0)] {
                let missed = |seed: &u64| {
                    let counts = planted(shape, level, Some(seed * 7 + 1));
                    !misses(&counts, shape, level, step_s).is_empty()
                };
                let missed = (0..200).filter(missed).count();
                assert!(missed <= 2, "{name} at {level}: {missed} of 200");
            }
        }
    }

    #[test]
    fn every_shape_is_found_within_one_step_without_noise() {
        let slow: [Shape; 5] = [
            |t| {
                if t < 4.0 {
                    0.75 - t / 4.0
                } else {
                    t / 4.0 - 1.0
                }
                .clamp(0.0, 1.0)
            },
            |t| {
                if t < 30.0 {
                    1.0 - t / 30.0
                } else {
                    t / 30.0 - 1.0
                }
                .min(1.0)
            },
            |t| 1.0 - 0.8 * exponential(t / 2.0),
            |t| 1.0 - exponential(t / 10.0),
            |t| if t < 20.0 { 0.2 } else { 0.7 + t / 400.0 }.min(1.0),
        ];
        for shape in slow.into_iter().chain(SHARP.map(|(_, shape)| shape)) {
            for (level, step_s) in [(1_000.0, 1.0), (20_000.0, 0.1)] {
                let counts = planted(shape, level, None);
                let misses = misses(&counts, shape, level, step_s);
                let nothing: [&str; 0] = [];
                assert_eq!(misses, nothing, "{:?}", shares(shape));
            }
        }
    }

    fn exponential(t: f64) -> f64 {
        (-t).exp()
    }

    #[test]
    fn a_v_that_climbs_faster_than_the_noise_is_found_within_one_step() {
        let v: Shape = |t| {
            if t < 5.0 {
                0.9 - t / 5.0
            } else {
                t / 5.0 - 0.9
            }
            .clamp(0.0, 1.0)
        };
        let missed = |seed: &u64| {
            let counts = planted(v, 5_000.0, Some(seed * 3 + 1));
            !misses(&counts, v, 5_000.0, 0.1).is_empty()
        };
        let missed = (0..200).filter(missed).count();
        assert!(missed <= 2, "{missed} of 200");
    }

    #[test]
    fn a_creeping_recovery_is_found_as_far_as_the_noise_allows() {
        let shape: Shape = |t| 1.0 - exponential(t / 10.0);
        let shares = shares(shape);
        for level in [50.0, 500.0, 5_000.0] {
            for share in [0.5, 0.9, 0.99] {
                let climb = (1.0 - share) * level / 10.0;
                let within = 1.0 + 3.0 * (sqrt(level) / climb).powf(2.0 / 3.0);
                let planted_at = truth(&shares, share).1;
                let missed = |seed: &u64| {
                    let got = measure(&planted(shape, level, Some(seed * 5 + 1)), 1.0);
                    let at = [(0.5, got.t50_s), (0.9, got.t90_s), (0.99, got.t99_s)];
                    let time = at.iter().find(|(s, _)| *s == share);
                    !near(time.expect("a share").1, planted_at, 1.0, within)
                };
                let missed = (0..200).filter(missed).count();
                assert!(missed <= 10, "{share} at {level}: {missed} of 200");
            }
        }
    }

    #[test]
    fn a_slow_recovery_is_found_neither_early_nor_late() {
        // Climbs by 2.4 deviations of noise with each step, and by 0.7 at 90 %.
        let v: Shape = |t| (f64::abs(t - 29.5) / 30.0).min(1.0);
        let creep: Shape = |t| 1.0 - exponential(t / 10.0);
        let at = |shape, share| truth(&shares(shape), share).1.expect("back") as f64;
        let (mut missed, mut early) = (0, 0.0);
        for seed in 0..400 {
            let got = measure(&planted(v, 5_000.0, Some(seed)), 1.0);
            for (time, share) in [(got.t50_s, 0.5), (got.t90_s, 0.9)] {
                let off = time.expect("back") - at(v, share);
                missed += usize::from(off.abs() > 1.5);
            }
            let got = measure(&planted(creep, 5_000.0, Some(seed)), 1.0);
            early += at(creep, 0.9) - got.t90_s.expect("back");
        }
        assert!(missed <= 40, "{missed} of 800");
        assert!((early / 400.0).abs() < 1.0, "{} steps", early / 400.0);
    }

    #[test]
    fn noise_is_no_fall() {
        for (level, step_s) in [(50.0, 1.0), (500.0, 0.1), (5_000.0, 1.0)] {
            let mut seen = 0;
            for seed in 0..300 {
                let got = measure(&planted(|_| 1.0, level, Some(seed)), step_s);
                seen += usize::from(got.t_detect_s.is_some());
                if got.t_detect_s.is_none() {
                    let none = [got.t50_s, got.t90_s, got.t99_s];
                    assert_eq!(none, [Some(0.0); 3]);
                    assert_eq!((got.area_lost, got.depth), (0.0, 0.0));
                }
            }
            assert!(seen <= 1, "{seen} of 300 at {level}");
        }
    }

    #[test]
    fn one_step_decides_nothing() {
        // 50 a step, deviation about 7: one step low by 3.6 deviations is noise.
        let mut counts = planted(|_| 1.0, 50.0, Some(1));
        counts[BEFORE + 20] = 25.0;
        assert_eq!(measure(&counts, 1.0).t_detect_s, None);
        // A lucky step does not end a fall, a stall after the recovery begins a second one.
        let mut counts = planted(SHARP[0].1, 500.0, Some(1));
        counts[BEFORE + 20] = 500.0;
        assert_eq!(measure(&counts, 1.0).t99_s, Some(30.0));
        counts[BEFORE + 70] = 0.0;
        assert_eq!(measure(&counts, 1.0).t99_s, Some(71.0));
        // Nothing is back that has not held.
        let mut counts = planted(|_| 0.3, 500.0, Some(1));
        let steps = counts.len();
        counts[steps - 2..].fill(500.0);
        assert_eq!(measure(&counts, 1.0).t50_s, None);
        counts[steps - 3..].fill(500.0);
        assert_eq!(measure(&counts, 1.0).t50_s, Some(117.0));
    }

    #[test]
    fn what_stalls_before_the_fault_is_no_fall_after_it() {
        let mut counts = planted(|_| 1.0, 500.0, Some(4));
        counts.iter_mut().step_by(15).for_each(|count| *count = 0.0);
        assert_eq!(measure(&counts, 1.0).t_detect_s, None);
        // Less than 1 % is none, however sure.
        let counts = planted(|_| 0.992, 1e7, Some(4));
        assert_eq!(measure(&counts, 1.0).t_detect_s, None);
        let counts = planted(|_| 0.98, 1e7, Some(4));
        assert_eq!(measure(&counts, 1.0).t_detect_s, Some(0.0));
    }

    #[test]
    fn a_burst_after_the_recovery_is_not_set_off() {
        let shape: Shape = |t| if t < 10.0 { 0.0 } else { 1.0 };
        let mut counts = planted(shape, 1_000.0, None);
        counts[BEFORE + 10..BEFORE + 20].fill(2_000.0);
        let got = measure(&counts, 0.5);
        assert_eq!((got.t99_s, got.area_lost), (Some(5.0), 10_000.0));
        assert_eq!(got.baseline, 2_000.0);
    }

    #[test]
    fn windows_and_times_between_steps_count_as_said() {
        let mut counts = planted(|t| if t < 10.0 { 0.0 } else { 1.0 }, 1_000.0, None);
        counts[..30].fill(10.0);
        let mut incident = Incident {
            counts: &counts,
            step_s: 0.1,
            // Sixty steps, although the quotient of these numbers is below 60.
            began_s: 0.1 + 5.9 - 1e-12,
            ended_s: Some(20.0),
            baseline_s: Some((3.0, 6.0 - 1e-12)),
        };
        let got = incident.recovery().expect("a recovery");
        assert_eq!((got.baseline, got.area_lost), (10_000.0, 10_000.0));
        assert!(near(got.t99_s, Some(10), 0.1, 0.0));
        // What lies between the window and the fault does not count.
        incident.baseline_s = Some((3.0, 5.0));
        let mut unsteady = counts.clone();
        unsteady[50..60].fill(10.0);
        incident.counts = &unsteady;
        assert_eq!(incident.recovery().expect("a recovery").baseline, 10_000.0);
        incident.counts = &counts;
        // A fault in the middle of a step: times count from it.
        (incident.began_s, incident.baseline_s) = (6.05, Some((3.05, 6.0)));
        let got = incident.recovery().expect("a recovery");
        assert_eq!((got.t_detect_s, got.area_lost), (Some(0.0), 10_000.0));
        assert!((got.t99_s.expect("back") - 0.95).abs() < 1e-9);
    }

    #[test]
    fn the_papers_numbers_are_those_of_the_paper() {
        assert_eq!([r_e(700.0, 1_000.0), r_e(1_300.0, 1_000.0)], [0.7, 0.7]);
        assert_eq!(r_e(3_000.0, 1_000.0), -1.0);
        assert_eq!([t_e(0.0), t_e(1.0), t_e(9.0)], [1.0, 0.5, 0.1]);
        // Silence for 9 s, then 70 % until the fault ends, then all.
        let shape: Shape = |t| match t {
            ..9.0 => 0.0,
            ..60.0 => 0.7,
            _ => 1.0,
        };
        let counts = planted(shape, 1_000.0, None);
        let mut incident = Incident {
            counts: &counts,
            step_s: 1.0,
            began_s: BEFORE as f64,
            ended_s: Some(BEFORE as f64 + 58.0),
            baseline_s: None,
        };
        let got = incident.recovery().expect("a recovery");
        assert_eq!((got.rate_stable, got.t_stable_s), (700.0, 9.0));
        assert_eq!((got.r_e(), got.t_e()), (0.7, 0.1));
        // Steps after the fault's end do not count, even if noise hides that they differ.
        let mut unsteady = counts.clone();
        unsteady[..BEFORE]
            .iter_mut()
            .step_by(2)
            .for_each(|c| *c = 800.0);
        unsteady[BEFORE + 50..BEFORE + 60].fill(720.0);
        incident.counts = &unsteady;
        incident.ended_s = Some(BEFORE as f64 + 50.0);
        let got = incident.recovery().expect("a recovery");
        assert_eq!((got.rate_stable, got.t_stable_s), (700.0, 9.0));
        incident.counts = &counts;
        // A fault that never ended has settled at the last rate.
        incident.ended_s = None;
        let got = incident.recovery().expect("a recovery");
        assert_eq!((got.rate_stable, got.t_stable_s), (1_000.0, 60.0));
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let fine = planted(|_| 1.0, 100.0, None);
        let check = |counts: &[f64], step_s, began_s, ended_s, baseline_s| {
            let incident = Incident {
                counts,
                step_s,
                began_s,
                ended_s,
                baseline_s,
            };
            incident.recovery().expect_err("a refusal")
        };
        let infinite = f64::INFINITY;
        let short = RecoveryError::ShortBaseline;
        for (step_s, began_s, ended_s, baseline_s, error) in [
            (0.0, 60.0, None, None, RecoveryError::Times),
            (1.0, f64::NAN, None, None, RecoveryError::Times),
            (1.0, infinite, None, None, RecoveryError::Times),
            (1.0, 60.0, Some(60.0), None, RecoveryError::Times),
            (1.0, 60.0, Some(f64::NAN), None, RecoveryError::Times),
            (1.0, 60.0, None, Some((20.0, 61.0)), RecoveryError::Times),
            (1.0, 60.0, None, Some((30.0, 20.0)), RecoveryError::Times),
            (1.0, 9.9, None, None, short(9)),
            // The quotient is 6.999999999999999.
            (0.1, 0.7, None, None, short(7)),
            (1.0, 60.0, None, Some((50.5, 60.0)), short(9)),
            (1.0, 180.0, None, None, RecoveryError::NothingAfter),
        ] {
            assert_eq!(check(&fine, step_s, began_s, ended_s, baseline_s), error);
        }
        for bad in [-1.0, f64::NAN, infinite] {
            let mut counts = fine.clone();
            counts[7] = bad;
            let error = check(&counts, 1.0, 60.0, None, None);
            assert_eq!(error, RecoveryError::Count(7));
        }
        let error = check(&[0.0; 90], 1.0, 60.0, None, None);
        assert_eq!(error, RecoveryError::IdleBaseline);
        assert!(error.to_string().contains("nothing was committed"));
    }
}
