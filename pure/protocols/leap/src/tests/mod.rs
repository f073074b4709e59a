//! Tests with several shards in one process.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod local;
#[path = "../../../two_phase/src/tests/programs.rs"]
mod programs;
mod random;
mod restarts;
mod schedules;
mod world;
