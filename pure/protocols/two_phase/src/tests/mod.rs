//! Tests of the protocol: golden scripts, counted costs, and random runs with faults.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "tests read their scripts and settings, and print what SEED=n asks for"
)]

mod bulk;
mod costs;
mod golden;
mod local;
mod programs;
mod random;
mod recent;
mod world;
