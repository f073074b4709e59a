//! Numbers that change in the course of a run: the rate of arrivals.
//!
//! ```text
//! step:100@0,400@10      100 from second 0 on, 400 from second 10 on; 0 before the first
//! ramp:100..400@30       from 100 at the beginning to 400 at second 30, and 400 afterwards
//! sine:300,200,20        around 300, by 200, with a period of 20 seconds
//! gaussian:500,45,15     500 at second 45, less before and after it: a standard deviation of 15 s
//! trace                  a number for each second, from a file; 0 afterwards
//! ```
//!
//! Periods and standard deviations are 0.1 s or more.

use crate::stats::{exp, sine};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::f64::consts::{PI, TAU};
use core::fmt;
use core::str::FromStr;

/// Shortest period of a sine and least standard deviation of a peak, in seconds. Counts by second
/// do not show what changes faster.
const CHANGE_S_MIN: f64 = 0.1;
/// Standard deviations of a peak beyond which it is left out of a mean: less than 1e-15 of it.
const PEAK_WIDTHS: f64 = 8.0;
/// Steps in which a peak is added up for a mean.
const PEAK_STEPS: u32 = 20_000;

/// A number for each moment of a run, 0 or more.
#[derive(Clone, Debug, PartialEq)]
pub enum Curve {
    /// Values, and the seconds from which they hold, ascending.
    Step(Vec<(f64, f64)>),
    /// From one value to another until a second, on a line.
    Ramp {
        /// At the beginning.
        from: f64,
        /// At the end and afterwards.
        to: f64,
        /// The second of the end, above 0.
        until_s: f64,
    },
    /// Up and down.
    Sine {
        /// In the middle.
        mean: f64,
        /// Up and down from there, at most `mean`.
        amplitude: f64,
        /// Seconds from one peak to the next, 0.1 or more.
        period_s: f64,
    },
    /// A peak, and less before and after it.
    Gaussian {
        /// The largest.
        peak: f64,
        /// Its second.
        at_s: f64,
        /// The standard deviation in seconds, 0.1 or more.
        width_s: f64,
    },
    /// One value for each second.
    Trace(Vec<f64>),
}

/// Why a text is no curve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurveError(String);

impl fmt::Display for CurveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for CurveError {}

impl Curve {
    /// The number at this second.
    pub fn at(&self, second: f64) -> f64 {
        match self {
            Curve::Step(steps) => {
                let begun = steps.iter().rev().find(|(_, from)| *from <= second);
                begun.map_or(0.0, |(value, _)| *value)
            }
            Curve::Ramp { from, to, until_s } => {
                from + (to - from) * (second / until_s).clamp(0.0, 1.0)
            }
            Curve::Sine {
                mean,
                amplitude,
                period_s,
            } => mean + amplitude * sine(TAU * turn(second / period_s)),
            Curve::Gaussian {
                peak,
                at_s,
                width_s,
            } => {
                let away = (second - at_s) / width_s;
                peak * exp(-away * away / 2.0)
            }
            Curve::Trace(values) => values.get(second as usize).copied().unwrap_or(0.0),
        }
    }

    /// A number that it never exceeds.
    pub fn most(&self) -> f64 {
        let largest = |all: &mut dyn Iterator<Item = f64>| all.fold(0.0, f64::max);
        match self {
            Curve::Step(steps) => largest(&mut steps.iter().map(|step| step.0)),
            Curve::Ramp { from, to, .. } => from.max(*to),
            Curve::Sine {
                mean, amplitude, ..
            } => mean + amplitude,
            Curve::Gaussian { peak, .. } => *peak,
            Curve::Trace(values) => largest(&mut values.iter().copied()),
        }
    }

    /// The mean from the beginning to this second, which is above 0. How long that takes does not
    /// depend on the second.
    pub fn mean(&self, until_s: f64) -> f64 {
        let length = |from: f64, to: f64| (to.min(until_s) - from.min(until_s)).max(0.0);
        let sum = match self {
            Curve::Step(steps) => {
                let ends = steps.iter().skip(1).map(|step| step.1);
                let ends = ends.chain([f64::INFINITY]);
                let parts = steps.iter().zip(ends);
                parts
                    .map(|((value, from), to)| value * length(*from, to))
                    .sum()
            }
            Curve::Ramp { from, to, until_s } => {
                let on_line = length(0.0, *until_s);
                let reached = from + (to - from) * on_line / until_s;
                (from + reached) / 2.0 * on_line + to * length(*until_s, f64::INFINITY)
            }
            Curve::Sine {
                mean,
                amplitude,
                period_s,
            } => {
                // Whole periods add nothing to the mean.
                let height = sine(PI * turn(until_s / period_s));
                mean * until_s + amplitude * period_s / PI * height * height
            }
            Curve::Gaussian { at_s, width_s, .. } => {
                let reach = PEAK_WIDTHS * width_s;
                let (from, to) = ((at_s - reach).max(0.0), at_s + reach);
                let step = length(from, to) / f64::from(PEAK_STEPS);
                let at = |number: u32| self.at(from + step * (f64::from(number) + 0.5));
                (0..PEAK_STEPS).map(at).sum::<f64>() * step
            }
            Curve::Trace(values) => {
                let parts = (0u32..).map(f64::from).zip(values);
                parts
                    .map(|(from, value)| value * length(from, from + 1.0))
                    .sum()
            }
        };
        sum / until_s
    }

    /// A trace: a number on each line, for the first second first. Empty lines and what is behind a
    /// `#` are passed over.
    ///
    /// # Errors
    /// A line that is no number of 0 or more, with its number.
    pub fn trace(text: &str) -> Result<Curve, CurveError> {
        let mut values = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            match number_of(line) {
                Some(value) => values.push(value),
                None => return Err(CurveError(format!("line {number}: {line:?} is no rate"))),
            }
        }
        usable(Curve::Trace(values))
    }
}

/// A number of 0 or more.
fn number_of(text: &str) -> Option<f64> {
    let number: f64 = text.trim().parse().ok()?;
    (number.is_finite() && (0.0..=1e9).contains(&number)).then_some(number)
}

fn usable(curve: Curve) -> Result<Curve, CurveError> {
    match curve.most() > 0.0 {
        true => Ok(curve),
        false => Err(CurveError("the curve is 0 everywhere".to_string())),
    }
}

/// The part of a turn behind the whole ones.
fn turn(turns: f64) -> f64 {
    turns - (turns as u64) as f64
}

fn steps(text: &str) -> Option<Curve> {
    let step = |part: &str| {
        let (value, from) = part.split_once('@')?;
        Some((number_of(value)?, number_of(from)?))
    };
    let steps: Option<Vec<(f64, f64)>> = text.split(',').map(step).collect();
    let steps = steps.filter(|all| all.windows(2).all(|pair| pair[0].1 < pair[1].1));
    steps.map(Curve::Step)
}

fn ramp(text: &str) -> Option<Curve> {
    let (values, until) = text.split_once('@')?;
    let (from, to) = values.split_once("..")?;
    Some(Curve::Ramp {
        from: number_of(from)?,
        to: number_of(to)?,
        until_s: number_of(until).filter(|until| *until > 0.0)?,
    })
}

fn three(text: &str) -> Option<[f64; 3]> {
    let numbers: Option<Vec<f64>> = text.split(',').map(number_of).collect();
    numbers?.try_into().ok()
}

fn sine_of(text: &str) -> Option<Curve> {
    let [mean, amplitude, period_s] = three(text)?;
    (amplitude <= mean).then_some(Curve::Sine {
        mean,
        amplitude,
        period_s,
    })
}

fn gaussian(text: &str) -> Option<Curve> {
    let [peak, at_s, width_s] = three(text)?;
    Some(Curve::Gaussian {
        peak,
        at_s,
        width_s,
    })
}

/// What changes too fast, if something does.
fn too_fast(curve: &Curve) -> Option<CurveError> {
    let (name, seconds) = match curve {
        Curve::Sine { period_s, .. } => ("period of a sine", *period_s),
        Curve::Gaussian { width_s, .. } => ("standard deviation of a gaussian", *width_s),
        Curve::Step(_) | Curve::Ramp { .. } | Curve::Trace(_) => return None,
    };
    (seconds < CHANGE_S_MIN).then(|| {
        CurveError(format!(
            "the {name} is {CHANGE_S_MIN} seconds or more, not {seconds}"
        ))
    })
}

/// As the module says; a trace needs [`Curve::trace`].
impl FromStr for Curve {
    type Err = CurveError;

    fn from_str(text: &str) -> Result<Curve, CurveError> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let (curve, form) = match kind {
            "step" => (steps(rest), "step:RATE@SECOND,.."),
            "ramp" => (ramp(rest), "ramp:FROM..TO@SECOND"),
            "sine" => (sine_of(rest), "sine:MEAN,AMPLITUDE,SECONDS"),
            "gaussian" => (gaussian(rest), "gaussian:PEAK,SECOND,SECONDS"),
            _ => {
                return Err(CurveError(format!(
                    "{kind:?} is no curve: step, ramp, sine, gaussian, trace"
                )));
            }
        };
        let wrong = || CurveError(format!("{text:?} is not of the form {form}"));
        let curve = curve.ok_or_else(wrong)?;
        match too_fast(&curve) {
            Some(error) => Err(error),
            None => usable(curve),
        }
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Curve::Step(steps) => {
                f.write_str("step:")?;
                for (at, (value, from)) in steps.iter().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    write!(f, "{comma}{value}@{from}")?;
                }
                Ok(())
            }
            Curve::Ramp { from, to, until_s } => write!(f, "ramp:{from}..{to}@{until_s}"),
            Curve::Sine {
                mean,
                amplitude,
                period_s,
            } => write!(f, "sine:{mean},{amplitude},{period_s}"),
            Curve::Gaussian {
                peak,
                at_s,
                width_s,
            } => write!(f, "gaussian:{peak},{at_s},{width_s}"),
            Curve::Trace(values) => write!(f, "trace of {} seconds", values.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(text: &str) -> Curve {
        text.parse().expect(text)
    }

    #[test]
    fn curves_are_read_and_told_alike() {
        for (text, second, value) in [
            ("step:100@0,400@10", 9.9, 100.0),
            ("step:100@0,400@10", 10.0, 400.0),
            ("step:100@5", 4.9, 0.0),
            ("ramp:100..400@30", 10.0, 200.0),
            ("ramp:400..100@30", 90.0, 100.0),
            ("sine:300,200,20", 5.0, 500.0),
            ("sine:300,200,20", 15.0, 100.0),
            ("gaussian:500,45,15", 45.0, 500.0),
            ("gaussian:500,45,15", 60.0, 500.0 * 0.606_530_659_712_633_4),
        ] {
            let curve = curve(text);
            assert!(
                (curve.at(second) - value).abs() < 1e-9,
                "{text} at {second}"
            );
            assert_eq!(curve.to_string(), text);
            assert!((0..1_000).all(|at| curve.at(f64::from(at) / 10.0) <= curve.most() + 1e-9));
        }
        assert!((curve("ramp:0..400@20").mean(20.0) - 200.0).abs() < 1e-9);
        let trace = Curve::trace("# a day\n10\n\n20 # noon\n0\n");
        assert_eq!(trace, Ok(Curve::Trace(Vec::from([10.0, 20.0, 0.0]))));
    }

    /// The closed forms are what small steps add up to.
    #[test]
    fn means_are_those_of_the_curve() {
        let trace = Curve::trace("10\n20\n0\n50").expect("a trace");
        let texts = [
            "step:100@0,400@10,7@11.5",
            "step:100@5",
            "ramp:50..1000@10",
            "sine:300,200,7",
            "sine:300,200,0.1",
            "gaussian:500,4,0.1",
            "gaussian:500,12,3",
        ];
        for curve in texts.map(curve).into_iter().chain([trace]) {
            for until_s in [0.05, 2.5, 5.0, 12.0, 40.0] {
                let step = until_s / 400_000.0;
                let at = |number: i32| curve.at((f64::from(number) + 0.5) * step);
                let mean = (0..400_000).map(at).sum::<f64>() / 400_000.0;
                let (told, most) = (curve.mean(until_s), curve.most());
                assert!(
                    (told - mean).abs() < most * 1e-5,
                    "{curve} {until_s}: {told} {mean}"
                );
            }
        }
    }

    #[test]
    fn a_mean_of_years_is_known_at_once() {
        let years = 1e9;
        assert!((curve("sine:300,200,0.1").mean(years) - 300.0).abs() < 1e-6);
        assert!((curve("sine:300,200,0.1").at(years + 0.025) - 500.0).abs() < 1e-2);
        assert!(curve("gaussian:500,45,0.1").mean(years) < 1e-6);
        assert_eq!(curve("gaussian:500,45,0.1").at(years), 0.0);
        assert!((curve("ramp:1..400@20").mean(years) - 400.0).abs() < 1e-4);
    }

    #[test]
    fn what_changes_too_fast_is_refused_with_the_limit() {
        for text in [
            "gaussian:500,45,0.001",
            "gaussian:500,45,0",
            "sine:300,200,0.0000001",
            "sine:300,200,0.09",
        ] {
            let error = text.parse::<Curve>().expect_err(text).to_string();
            assert!(error.contains("0.1 seconds or more"), "{error}");
        }
        // A line may be steep.
        assert!("ramp:1..400@0.001".parse::<Curve>().is_ok());
    }

    #[test]
    fn what_is_no_curve_is_refused() {
        for text in [
            "",
            "step",
            "step:100",
            "step:1@5,2@5",
            "step:-1@0",
            "step:0@0",
            "ramp:1..2",
            "ramp:1..2@0",
            "sine:1,2,3",
            "sine:2,1,0",
            "gaussian:1,2",
            "square:1,2,3",
            "gaussian:nan,1,1",
        ] {
            assert!(text.parse::<Curve>().is_err(), "{text}");
        }
        let bad = Curve::trace("1\nmany\n").expect_err("no number");
        assert!(bad.to_string().contains("line 2"), "{bad}");
        assert!(Curve::trace("").is_err());
    }
}
