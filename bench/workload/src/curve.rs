//! Numbers that change in the course of a run: the rate of arrivals.
//!
//! ```text
//! step:100@0,400@10      100 from second 0 on, 400 from second 10 on; 0 before the first
//! ramp:100..400@30       from 100 at the beginning to 400 at second 30, and 400 afterwards
//! sine:300,200,20        around 300, by 200, with a period of 20 seconds
//! gaussian:500,45,15     500 at second 45, less before and after it: a standard deviation of 15 s
//! trace                  a number for each second, from a file; 0 afterwards
//! ```

use crate::stats::{exp, sine};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

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
        /// Seconds from one peak to the next, above 0.
        period_s: f64,
    },
    /// A peak, and less before and after it.
    Gaussian {
        /// The largest.
        peak: f64,
        /// Its second.
        at_s: f64,
        /// The standard deviation in seconds, above 0.
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
            } => mean + amplitude * sine(core::f64::consts::TAU * second / period_s),
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

    /// The mean from the beginning to this second, in steps of a hundredth of a second.
    pub fn mean(&self, until_s: f64) -> f64 {
        let steps = ((until_s * 100.0) as u64).max(1);
        let at = |step: u64| self.at((step as f64 + 0.5) / 100.0);
        (0..steps).map(at).sum::<f64>() / steps as f64
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

/// As the module says; a trace needs [`Curve::trace`].
impl FromStr for Curve {
    type Err = CurveError;

    fn from_str(text: &str) -> Result<Curve, CurveError> {
        let wrong = |form: &str| CurveError(format!("{text:?} is not of the form {form}"));
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let three = || -> Option<[f64; 3]> {
            let numbers: Option<Vec<f64>> = rest.split(',').map(number_of).collect();
            numbers?.try_into().ok()
        };
        let curve = match kind {
            "step" => {
                let step = |part: &str| {
                    let (value, from) = part.split_once('@')?;
                    Some((number_of(value)?, number_of(from)?))
                };
                let steps: Option<Vec<(f64, f64)>> = rest.split(',').map(step).collect();
                let steps = steps.filter(|all| all.windows(2).all(|pair| pair[0].1 < pair[1].1));
                steps
                    .map(Curve::Step)
                    .ok_or_else(|| wrong("step:RATE@SECOND,.."))?
            }
            "ramp" => {
                let ramp = || {
                    let (values, until) = rest.split_once('@')?;
                    let (from, to) = values.split_once("..")?;
                    Some(Curve::Ramp {
                        from: number_of(from)?,
                        to: number_of(to)?,
                        until_s: number_of(until).filter(|until| *until > 0.0)?,
                    })
                };
                ramp().ok_or_else(|| wrong("ramp:FROM..TO@SECOND"))?
            }
            "sine" => match three() {
                Some([mean, amplitude, period_s]) if amplitude <= mean && period_s > 0.0 => {
                    Curve::Sine {
                        mean,
                        amplitude,
                        period_s,
                    }
                }
                _ => return Err(wrong("sine:MEAN,AMPLITUDE,SECONDS")),
            },
            "gaussian" => match three() {
                Some([peak, at_s, width_s]) if width_s > 0.0 => Curve::Gaussian {
                    peak,
                    at_s,
                    width_s,
                },
                _ => return Err(wrong("gaussian:PEAK,SECOND,SECONDS")),
            },
            _ => {
                return Err(CurveError(format!(
                    "{kind:?} is no curve: step, ramp, sine, gaussian, trace"
                )));
            }
        };
        usable(curve)
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
