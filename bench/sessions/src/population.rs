//! Populations: who is there, and how many requests there are at a time.
//!
//! | kind | sessions | a request waits for |
//! |---|---|---|
//! | `closed` | a fixed number, each with its thread | nothing |
//! | `semi_open` | a fixed number, more than threads | a free thread |
//! | `open` | they arrive (Poisson) and leave | a free thread |
//!
//! Only open and semi-open ones show the time that a request waited; a closed one slows down with
//! its server.

use crate::document::{Problem, Section, told};
use crate::think::Think;
use serde_json::Value;
use workload::arrival::{self, ARRIVALS_MAX};
use workload::curve::Curve;

/// The most sessions that are there at a time.
pub const SESSIONS_MAX: u64 = 1_000_000;
/// The most threads, each with a connection.
pub const THREADS_MAX: u64 = 4_000;

/// How sessions come.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Each has its thread.
    Closed,
    /// They share threads.
    SemiOpen,
    /// They arrive with so many a second.
    Open(Curve),
}

/// A whole population.
#[derive(Clone, Debug, PartialEq)]
pub struct Population {
    /// How sessions come.
    pub kind: Kind,
    /// Sessions that are there at a time; in an open population the number of places, and the
    /// `n`th session has place `n` modulo this.
    pub sessions: u64,
    /// Threads, each with a connection.
    pub threads: u64,
    /// Between an answer and the next request, where a state has no think time of its own.
    pub think: Think,
}

impl Population {
    /// A fixed number of sessions, each with its thread, that do not think.
    pub fn closed(sessions: u64) -> Population {
        Population {
            kind: Kind::Closed,
            sessions,
            threads: sessions,
            think: Think::default(),
        }
    }

    /// Reads `kind`, `sessions`, `threads`, `think_time` and `rate` (a number, or a curve such as
    /// `ramp:10..100@30`).
    ///
    /// # Errors
    /// A key that does not fit the kind, or a number out of its bounds.
    pub fn read(mut section: Section<'_>) -> Result<Population, Problem> {
        let kind = section.text("kind")?.unwrap_or("closed");
        let sessions = section.count("sessions", 1..=SESSIONS_MAX)?;
        let threads = section.count("threads", 1..=THREADS_MAX)?;
        let rate = section.take("rate");
        let think = section.take("think_time");
        let think = think.map(|think| Think::read(&section.path_of("think_time"), think));
        let think = think.transpose()?.unwrap_or_default();
        if let Some(rate) = rate.filter(|_| kind != "open") {
            let text = format!("{} is for kind: open, and this is {kind}", told(rate));
            return Err(section.problem("rate", text));
        }
        let population = match kind {
            "closed" => closed(&section, sessions, threads, think)?,
            "semi_open" => {
                let threads = threads.unwrap_or(8);
                let sessions = sessions.unwrap_or(10 * threads);
                if sessions <= threads {
                    let text = format!(
                        "{sessions} sessions do not wait for {threads} threads: take more \
                         sessions, or kind: closed"
                    );
                    return Err(section.problem("sessions", text));
                }
                Population {
                    kind: Kind::SemiOpen,
                    sessions,
                    threads,
                    think,
                }
            }
            "open" => {
                if sessions.is_some() {
                    let text = "sessions of an open population arrive: say rate and threads";
                    return Err(section.problem("sessions", text));
                }
                let threads = threads.unwrap_or(8);
                let Some(rate) = rate else {
                    let text = "it is missing: how many sessions arrive each second";
                    return Err(section.problem("rate", text));
                };
                Population {
                    kind: Kind::Open(curve(&section, rate)?),
                    sessions: threads,
                    threads,
                    think,
                }
            }
            _ => {
                let text = format!("{kind:?} is none of closed, semi_open, open");
                return Err(section.problem("kind", text));
            }
        };
        section.finish()?;
        Ok(population)
    }

    /// When the sessions of an open population arrive, in microseconds from the start of the run;
    /// empty for the other kinds.
    ///
    /// # Errors
    /// There would be more than the memory of a run holds.
    pub fn arrivals(&self, seed: u64, warmup_s: f64, measure_s: f64) -> Result<Vec<u64>, Problem> {
        let Kind::Open(curve) = &self.kind else {
            return Ok(Vec::new());
        };
        let expected = curve.most() * (warmup_s + measure_s);
        if expected > ARRIVALS_MAX as f64 / 10.0 {
            let text = format!("{expected} arrivals are too many for one run");
            return Err(Problem::new("population.rate", text));
        }
        let us = |seconds: f64| (seconds * 1e6) as u64;
        Ok(arrival::along(seed, curve, us(warmup_s), us(measure_s)))
    }
}

fn closed(
    section: &Section<'_>,
    sessions: Option<u64>,
    threads: Option<u64>,
    think: Think,
) -> Result<Population, Problem> {
    let sessions = sessions.or(threads).unwrap_or(1);
    if threads.is_some_and(|threads| threads != sessions) {
        let text = "a closed population has a thread for each session: leave threads out, or say \
                    kind: semi_open";
        return Err(section.problem("threads", text));
    }
    if sessions > THREADS_MAX {
        let text = format!(
            "{sessions} sessions would need as many threads, and {THREADS_MAX} are the most: \
             take kind: semi_open"
        );
        return Err(section.problem("sessions", text));
    }
    Ok(Population {
        kind: Kind::Closed,
        sessions,
        threads: sessions,
        think,
    })
}

fn curve(section: &Section<'_>, rate: &Value) -> Result<Curve, Problem> {
    if let Some(number) = rate.as_f64() {
        let within = (0.001..=1e6).contains(&number);
        let wrong = || section.problem("rate", format!("{number} is no rate of 0.001 to 1000000"));
        let always = Curve::Step(vec![(number, 0.0)]);
        return within.then_some(always).ok_or_else(wrong);
    }
    let Some(text) = rate.as_str() else {
        let text = format!("{} is neither a number nor a curve", told(rate));
        return Err(section.problem("rate", text));
    };
    let curve: Result<Curve, _> = text.parse();
    curve.map_err(|error| section.problem("rate", error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: &Value) -> Result<Population, Problem> {
        Population::read(Section::of("population", value)?)
    }

    #[test]
    fn kinds_have_their_sessions_and_threads() {
        let counts = |value: Value| {
            let population = read(&value).unwrap_or_else(|problem| panic!("{value}: {problem}"));
            (population.sessions, population.threads)
        };
        assert_eq!(counts(json!({})), (1, 1));
        assert_eq!(counts(json!({"sessions": 32})), (32, 32));
        assert_eq!(counts(json!({"kind": "closed", "threads": 4})), (4, 4));
        assert_eq!(
            counts(json!({"kind": "semi_open", "sessions": 9, "threads": 2})),
            (9, 2)
        );
        assert_eq!(
            counts(json!({"kind": "open", "rate": 100, "threads": 3})),
            (3, 3)
        );
        let ramp = read(&json!({"kind": "open", "rate": "ramp:10..100@5"})).expect("a ramp");
        let due = ramp.arrivals(1, 1.0, 10.0).expect("few");
        assert_eq!(due, ramp.arrivals(1, 1.0, 10.0).expect("few"));
        assert!((600..950).contains(&due.len()), "{}", due.len());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (value, key) in [
            (json!({"kind": "many"}), "kind"),
            (json!({"sessions": 4, "threads": 2}), "threads"),
            (json!({"sessions": 5_000}), "sessions"),
            (json!({"sessions": 0}), "sessions"),
            (json!({"rate": 5}), "rate"),
            (json!({"kind": "open"}), "rate"),
            (json!({"kind": "open", "rate": 0}), "rate"),
            (json!({"kind": "open", "rate": "often"}), "rate"),
            (
                json!({"kind": "open", "rate": 5, "sessions": 4}),
                "sessions",
            ),
            (
                json!({"kind": "semi_open", "sessions": 4, "threads": 4}),
                "sessions",
            ),
            (json!({"users": 4}), "users"),
        ] {
            let problem = read(&value).expect_err(&value.to_string());
            assert_eq!(problem.path, format!("population.{key}"), "{problem}");
        }
    }
}
