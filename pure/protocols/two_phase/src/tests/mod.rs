//! Tests of the protocol: golden scripts, counted costs, and random runs with faults.

mod costs;
mod golden;
mod local;
mod programs;
mod random;
mod world;
