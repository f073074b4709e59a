//! The benchmark's driver: loads, runs and checks a workload on any database that speaks the
//! PostgreSQL wire protocol, and reports what it found.
//!
//! ```no_run
//! use drive::tpcc::{self, LoadOptions, RunOptions};
//! use drive::view::Screen;
//!
//! let url = "postgres://postgres@127.0.0.1:5432/postgres";
//! let mut screen = Screen::new(std::io::stdout(), false);
//! tpcc::load(&LoadOptions::new(url, 3), &mut screen)?;
//! let report = tpcc::run(&RunOptions::new(url), &mut screen)?;
//! std::fs::write("out.json", drive::report::json(&report).to_string())?;
//! std::fs::write("out.html", drive::report::html(&report))?;
//! let table = drive::report::table(&report);
//! let check = tpcc::check(url, &mut screen)?;
//! assert!(report.passed() && check.failed() == 0, "{table}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | content |
//! |---|---|
//! | [`link`], [`answers`], [`url`] | a connection, whichever wire the server speaks |
//! | [`stream`] | its bytes, waiting or suspended |
//! | [`postgres`] | the PostgreSQL wire: a lean client with pipelined rounds and COPY |
//! | [`mysql`] | the protocol of MySQL and MariaDB |
//! | [`redis`] | that of Redis |
//! | [`raw`] | the PostgreSQL wire message by message, and cancel requests |
//! | [`shape`] | what a workload is: prepare, generate, execute, verify, describe |
//! | [`run`] | open and closed loop, retries, phases, histograms |
//! | [`tpcc`] | TPC-C |
//! | [`spread`] | loads with a set share of work on other nodes |
//! | [`records`] | the records of these loads on Redis |
//! | [`histories`] | records what clients see, and judges it |
//! | [`echo`] | a server that answers at once, to measure the client |
//! | [`server`] | which server, and its counters |
//! | [`compare`], [`search`] | which of two is faster; the highest rate that meets a goal |
//! | [`delay`] | a proxy that delays, for links of one machine |
//! | [`fault`] | breaks a named server for a while, and reckons what that cost |
//! | [`function`] | tests of what transactions promise: snapshots, deadlocks, durability |
//! | [`report`] | table, JSON, HTML |
//! | [`outputs`] | files that a command leaves behind |
//! | [`view`] | live view and plain lines |
//!
//! Every server is measured by the same client code through the same wire. What differs by server
//! is said in one place each: placement clauses in the schema, statistics after a load, the name
//! of a read-only snapshot, and counters.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod answers {
    //! Rows, tags and errors of a round.
    pub use workload::wire::{Answers, ServerError};
}
pub mod compare;
pub mod delay;
pub mod echo;
pub mod error;
pub mod fault;
pub mod function;
pub mod histories;
mod homes;
pub mod link;
mod login;
pub mod mysql;
pub mod outputs;
pub mod postgres;
pub mod raw;
pub mod records;
pub mod redis;
pub mod report;
pub mod run;
pub mod search;
pub mod server;
pub mod shape;
pub mod spread;
pub mod stream;
pub mod tpcc;
pub mod url;
pub mod view;

pub use error::DriveError;
