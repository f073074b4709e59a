//! One run of an experiment with all that is around it.
//!
//! ```text
//! document --> store.start / reset --> [ sessions | program | bench run ] --> store.stop
//!                  kept by a child        alone, or by workers; sampled         everything ended
//! ```
//!
//! | module | content |
//! |---|---|
//! | `document` | the keys that are about what is around a run; the others are the workload's |
//! | `keep` | a command with everything that it starts, which ends when we do |
//! | `standing` | a store that scripts start, reset and stop |
//! | `sessions_run` | sessions in this process or in those of workers, with samples |
//! | `program` | a workload that is a program of the user |
//! | `tables` | a workload of `trellis bench run`: tpcc, dike |
//!
//! Commands of a document run on this machine alone: workers get none of them.
//! Described in docs/benchmark/around.md.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod conductor;
mod document;
mod keep;
mod program;
mod sessions_run;
mod standing;
mod tables;

pub use conductor::Conductor;
pub use conductor::{Ended, Surroundings};
pub use document::{Document, Kind};
pub use keep::{Keeper, main as keep};
