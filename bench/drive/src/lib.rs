//! The benchmark's driver: loads, runs and checks a workload on any database that speaks the
//! PostgreSQL wire protocol, and reports what it found.
//!
//! ```no_run
//! use drive::tpcc::{self, LoadOptions, RunOptions};
//! use links::view::Screen;
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
//! | [`shape`] | what a workload is: prepare, generate, execute, verify, describe |
//! | [`run`] | open and closed loop, retries, phases, histograms |
//! | [`tpcc`] | TPC-C |
//! | [`spread`] | loads with a set share of work on other nodes |
//! | [`records`] | the records of these loads on Redis |
//! | [`histories`] | records what clients see, and judges it |
//! | [`report`] | table, JSON, HTML |
//! | [`outputs`] | files that a command leaves behind |
//!
//! Every server is measured by the same client code through the same wire. What differs by server
//! is said in one place each: placement clauses in the schema, statistics after a load, the name
//! of a read-only snapshot, and counters.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod histories;
pub mod outputs;
pub mod records;
pub mod report;
pub mod run;
pub mod shape;
pub mod spread;
pub mod tpcc;
