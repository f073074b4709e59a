//! Benchmark workloads as pure, seeded generators: what to load, what to ask, what must hold.
//!
//! A workload has five functions: prepare, generate, execute, verify, describe. This crate holds
//! what is the same wherever it runs: the rows to load, the inputs, the transactions and checks as
//! `async fn`s over a [`wire::Connection`], the audit of the drawn inputs. `drive` runs them over
//! sockets, the simulator over its own clusters.
//!
//! | module | content |
//! |---|---|
//! | [`arrival`] | due times of an open-loop run, drawn before the run |
//! | [`finding`] | what an audit has found |
//! | [`history`] | workloads whose histories a checker judges |
//! | [`spread`] | loads with a set share of work on other nodes |
//! | [`stats`] | exact binomial intervals and the few float functions that `no_std` lacks |
//! | [`wire`] | what a transaction needs of a connection |
//! | [`curve`] | numbers that change in the course of a run |
//! | [`dike`] | how TPC-C's transactions are spread over nodes |
//! | [`dialect`] | statements on servers that are no PostgreSQL |
//! | [`tpcc`] | TPC-C, with the clause numbers of the specification (revision 5.11) |
//!
//! Everything follows from a seed: no clock, no I/O, no hash order. The time that a row carries is
//! an argument.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod arrival;
pub mod curve;
pub mod dialect;
pub mod dike;
pub mod finding;
pub mod history;
pub mod spread;
pub mod stats;
pub mod tpcc;
pub mod wire;

use base::Prng;

/// The generator of one named part of a seeded whole: same seed and tags, same sequence.
///
/// Parts with different tags are independent, so a loader may produce them in any order and a run
/// may add a terminal without changing what the others draw.
pub fn stream(seed: u64, tags: &[u64]) -> Prng {
    let mut prng = Prng::new(seed);
    for tag in tags {
        prng = Prng::new(prng.next_u64() ^ tag.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    prng
}
