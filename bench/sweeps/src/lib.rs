//! What takes several runs. Experiments that are the cross product of settings: one file, one
//! folder of results, one page; and what follows from the results of several runs.
//!
//! ```no_run
//! use sweeps::{Bench, Experiment, Failed, Key, Refused};
//!
//! struct Nothing;
//! impl Bench for Nothing {
//!     fn check(&self, _: &[String]) -> Result<(), Refused> {
//!         Ok(())
//!     }
//!     fn run(&mut self, _: &[String]) -> Result<serde_json::Value, Failed> {
//!         Err(Failed { reason: "nothing runs".into(), result: None })
//!     }
//! }
//! let keys = [Key { name: "clients".into(), is_flag: false, repeats: false, about: None }];
//! let experiment = Experiment::read("my.toml".as_ref(), &keys, &[])?;
//! let summary = sweeps::sweep(&experiment, "my.results".as_ref(), &mut Nothing, &mut |_| {})?;
//! assert_eq!(summary.failed, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | content |
//! |---|---|
//! | `file` | the file: keys, lists, mistakes with their lines |
//! | `cell` | one combination of settings: its arguments, its hash, the order of all |
//! | `store` | the folder: one file per cell, replaced atomically |
//! | `sweep` | runs what is missing |
//! | [`compare`], [`search`] | which of two is faster; the highest rate that meets a goal |
//! | [`fit`] | how throughput grows with the cluster, by several results |
//! | `summary`, `heat` | what came out: table, JSON, page |
//!
//! What a setting means is not known here: keys and arguments are those of the command that runs a
//! cell ([`Bench`]).
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod cell;
pub mod compare;
mod file;
pub mod fit;
mod heat;
pub mod search;
mod store;
mod summary;
mod sweep;

pub use cell::{Cell, Choice};
pub use file::{Experiment, FileError, Key};
pub use heat::page;
pub use store::StoreError;
pub use summary::{Row, Spread, Summary};
pub use sweep::{Bench, Failed, Refused, SweepError, sweep};
