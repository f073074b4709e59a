//! Workloads of sessions: users who ask, read the answer, think and ask again, on any store.
//!
//! | module | content |
//! |---|---|
//! | [`document`] | reading a resolved document: each key is used or refused |
//! | [`state`] | what a session remembers |
//! | [`table`] | which interaction follows, as data |
//! | [`think`], [`distribution`] | think times and parameters |
//! | [`population`] | closed, open and semi-open |
//! | [`interaction`] | prepare, execute, complete |
//! | [`access`] | data access by entities and by SQL |
//! | [`micro`] | the micro workload of the paper |
//! | [`auction`] | the auction of the paper |
//! | [`ycsb`], [`bank`], [`counter`] | YCSB, SmallBank, hot counters |
//! | [`statements`] | workloads that are data only |
//! | [`resolved`] | one run from its resolved document |
//! | [`run`] | threads, phases, counts, results |
//!
//! Workloads are pure: store, time and randomness are arguments, and everything follows from a
//! seed. Only [`run`] has threads and a clock. Follows Strudel, section 5; there a session has a
//! thread, here it may share threads with others.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod access;
pub mod auction;
pub mod bank;
pub mod counter;
pub mod distribution;
pub mod document;
pub mod interaction;
pub mod micro;
pub mod population;
pub mod resolved;
pub mod run;
pub mod state;
pub mod statements;
pub mod table;
pub mod think;
pub mod ycsb;

pub use resolved::run as run_document;
