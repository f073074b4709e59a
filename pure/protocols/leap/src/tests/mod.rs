//! Tests with several shards in one process.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "seeds come from outside, and a seed that is asked for is printed"
)]

mod entrust;
mod faults;
mod formulas;
mod hot;
mod increments;
mod local;
mod outages;
#[allow(dead_code, reason = "shared with the tests of two_phase")]
#[path = "../../../two_phase/src/tests/programs.rs"]
mod programs;
mod random;
mod refusals;
mod restarts;
mod rules;
mod scans;
mod schedules;
mod share;
mod world;
