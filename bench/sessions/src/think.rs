//! Think times: how long a user waits between an answer and the next request.

use crate::document::{Problem, Section, told};
use base::Prng;
use serde_json::Value;
use std::f64::consts::{FRAC_PI_2, TAU};
use workload::stats::{exponential, ln, sine, sqrt};

/// The longest think time that can be asked for: one hour, in milliseconds.
const THINK_MS_MAX: f64 = 3_600_000.0;
/// The most times of a trace.
const TRACE_MAX: usize = 1_000_000;

/// The distribution of think times. Times are in milliseconds, 0 to one hour.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Think {
    /// The next request follows at once.
    #[default]
    None,
    /// Always the same.
    Constant(f64),
    /// With this mean.
    Exponential(f64),
    /// Between two times.
    Uniform(f64, f64),
    /// Mean and standard deviation; what would be below 0 is 0.
    Normal(f64, f64),
    /// These times one after the other, again and again; session `n` begins at the `n`th.
    Trace(Vec<f64>),
}

impl Think {
    /// Reads `none`, a constant in milliseconds, or an object: `{kind: constant, ms: 5}`,
    /// `{kind: exponential, mean_ms: 5}`, `{kind: uniform, from_ms: 1, to_ms: 5}`,
    /// `{kind: normal, mean_ms: 5, deviation_ms: 1}`, `{kind: trace, ms: [1, 5]}`.
    ///
    /// # Errors
    /// It is none of these.
    pub fn read(path: &str, value: &Value) -> Result<Think, Problem> {
        if let Some(ms) = value.as_f64() {
            let within = (0.0..=THINK_MS_MAX).contains(&ms);
            let wrong = || Problem::new(path, format!("{ms} is no time of 0 to 3600000 ms"));
            return within.then_some(Think::Constant(ms)).ok_or_else(wrong);
        }
        if value.as_str() == Some("none") {
            return Ok(Think::None);
        }
        let mut section = Section::of(path, value)?;
        let kind = section.required("kind")?;
        let time = |section: &mut Section<'_>, key: &str| {
            let time = section.number(key, 0.0..=THINK_MS_MAX)?;
            time.ok_or_else(|| section.problem(key, "it is missing"))
        };
        let think = match kind.as_str() {
            Some("none") => Think::None,
            Some("constant") => Think::Constant(time(&mut section, "ms")?),
            Some("exponential") => Think::Exponential(time(&mut section, "mean_ms")?),
            Some("uniform") => {
                let from = time(&mut section, "from_ms")?;
                let to = time(&mut section, "to_ms")?;
                if to < from {
                    return Err(section.problem("to_ms", format!("{to} is less than {from}")));
                }
                Think::Uniform(from, to)
            }
            Some("normal") => {
                let mean = time(&mut section, "mean_ms")?;
                Think::Normal(mean, time(&mut section, "deviation_ms")?)
            }
            Some("trace") => trace(&mut section)?,
            _ => {
                let text = format!(
                    "{} is none of none, constant, exponential, uniform, normal, trace",
                    told(kind)
                );
                return Err(section.problem("kind", text));
            }
        };
        section.finish()?;
        Ok(think)
    }

    /// The `count`th think time of a session, in microseconds.
    pub fn draw_us(&self, prng: &mut Prng, session: u64, count: u64) -> u64 {
        let ms = match self {
            Think::None => return 0,
            Think::Constant(ms) => *ms,
            Think::Exponential(mean) => exponential(prng, *mean),
            Think::Uniform(from, to) => from + (to - from) * prng.unit(),
            Think::Normal(mean, deviation) => mean + deviation * normal(prng),
            Think::Trace(times) => {
                let at = session.wrapping_add(count) % times.len() as u64;
                times[at as usize]
            }
        };
        (ms.max(0.0) * 1e3) as u64
    }
}

fn trace(section: &mut Section<'_>) -> Result<Think, Problem> {
    let value = section.required("ms")?;
    let time = |value: &Value| {
        value
            .as_f64()
            .filter(|ms| (0.0..=THINK_MS_MAX).contains(ms))
    };
    let times: Option<Vec<f64>> = value
        .as_array()
        .filter(|times| (1..=TRACE_MAX).contains(&times.len()))
        .and_then(|times| times.iter().map(time).collect());
    let wrong = || {
        let text = "a trace is a list of 1 to 1000000 times of 0 to 3600000 ms";
        section.problem("ms", text)
    };
    times.map(Think::Trace).ok_or_else(wrong)
}

/// A number with the standard normal distribution, by the polar form of two uniform ones.
fn normal(prng: &mut Prng) -> f64 {
    let radius = sqrt(-2.0 * ln(1.0 - prng.unit()));
    radius * sine(TAU * prng.unit() + FRAC_PI_2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn mean_and_deviation(think: &Think) -> (f64, f64) {
        let mut prng = Prng::new(5);
        let draw = |count| think.draw_us(&mut prng, 3, count) as f64 / 1e3;
        let times: Vec<f64> = (0..40_000).map(draw).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let square = times.iter().map(|ms| (ms - mean) * (ms - mean));
        (mean, (square.sum::<f64>() / times.len() as f64).sqrt())
    }

    #[test]
    fn think_times_have_their_mean_and_deviation() {
        for (value, mean, deviation) in [
            (json!("none"), 0.0, 0.0),
            (json!(7), 7.0, 0.0),
            (json!({"kind": "constant", "ms": 2.5}), 2.5, 0.0),
            (json!({"kind": "exponential", "mean_ms": 20}), 20.0, 20.0),
            (
                json!({"kind": "uniform", "from_ms": 10, "to_ms": 40}),
                25.0,
                8.66,
            ),
            (
                json!({"kind": "normal", "mean_ms": 50, "deviation_ms": 5}),
                50.0,
                5.0,
            ),
            (json!({"kind": "trace", "ms": [1, 2, 3, 4]}), 2.5, 1.118),
        ] {
            let think = Think::read("t", &value).expect("a think time");
            let (drawn, spread) = mean_and_deviation(&think);
            assert!((drawn - mean).abs() <= mean * 0.02, "{value}: {drawn}");
            assert!(
                (spread - deviation).abs() <= 0.03 * deviation,
                "{value}: {spread}"
            );
        }
        // What would be below 0 is 0, never a time of years.
        let cut = Think::Normal(0.0, 100.0);
        let (mean, _) = mean_and_deviation(&cut);
        assert!((mean - 39.9).abs() < 1.0, "{mean}");
    }

    #[test]
    fn what_is_no_think_time_is_refused() {
        for value in [
            json!(-1),
            json!(1e9),
            json!("soon"),
            json!({"ms": 1}),
            json!({"kind": "poisson", "mean_ms": 1}),
            json!({"kind": "uniform", "from_ms": 5, "to_ms": 1}),
            json!({"kind": "constant", "ms": 1, "mean_ms": 1}),
            json!({"kind": "trace", "ms": []}),
            json!({"kind": "trace", "ms": [1, -2]}),
        ] {
            let problem = Think::read("p.think_time", &value).expect_err(&value.to_string());
            assert!(problem.path.starts_with("p.think_time"), "{problem}");
        }
    }
}
