//! Tests with several shards in one process.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod alone;
mod entrust;
mod faults;
mod formulas;
mod golden;
mod hot;
mod increments;
mod load;
mod local;
mod outages;
mod random;
mod refusals;
mod restarts;
mod rules;
mod scans;
mod schedules;
mod share;
mod world;
