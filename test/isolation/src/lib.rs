//! Isolation scripts: sessions with named steps, run in every interleaving, judged twice.
//!
//! A script (`specs/*.spec`, see [`spec`]) says what sessions do; [`interleave`] gives all the
//! orders in which their steps can be begun; [`run`] takes a [`System`] through each of them at
//! each isolation level; [`judge`] says what went wrong; [`record`] compares what clients saw with
//! what a person has read before.
//!
//! The two ways of judging, so that a wrong result that was recorded cannot hide:
//! * each script names the anomalies (Adya's names) that its steps could see, as a condition over
//!   answers and final rows; none may hold at a level that forbids it ([`anomaly`]);
//! * at SERIALIZABLE the answers of the transactions that committed, and the rows in the end, must
//!   be those of some serial execution of exactly these transactions, which the system is asked to
//!   perform ([`judge`]).
//!
//! The same scripts run in the simulator and against PostgreSQL. What is allowed to differ (who
//! waits, who is refused) is recorded per system; the conditions are common.
//!
//! It is not a load test: nothing here runs truly at once, what overlaps are transactions.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod anomaly;
pub mod condition;
pub mod interleave;
pub mod judge;
pub mod outcome;
pub mod record;
pub mod run;
pub mod spec;
pub mod suite;
pub mod table;

pub use anomaly::{Anomaly, Level};
pub use outcome::{Answer, Outcome};
pub use run::System;
pub use spec::Spec;

/// A script, or what is recorded in it, that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpecError {
    /// Line of the file, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub wrong: &'static str,
    /// The words in question.
    pub at: String,
}

impl SpecError {
    pub(crate) fn new(line: usize, wrong: &'static str, at: &str) -> SpecError {
        SpecError {
            line,
            wrong,
            at: at.to_owned(),
        }
    }
}

impl std::fmt::Display for SpecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}: {:?}", self.line, self.wrong, self.at)
    }
}

impl std::error::Error for SpecError {}
