//! Experiments composed from files, for `trellis bench exp`.
//!
//! A file says what is measured: a store, a workload, a population, phases. It may inherit from
//! templates (`extends`), and stand for many runs (`vary`); written in Jsonnet it also has
//! references and expressions. What a run gets is a resolved document, in which everything is said:
//! it is kept with the result, and a run from it has the same inputs.
//!
//! | module | content |
//! |---|---|
//! | `yaml`, `jsonnet`, `words` | texts to documents whose values know their lines |
//! | `child` | Jsonnet in a process of its own, within limits |
//! | `resolve`, `template` | inheritance, unfolding, defaults |
//! | `schema`, `nearest` | which keys there are, and which one was meant |
//! | `suite`, `folder` | all runs in order, their results, what an earlier start left |
//! | `table`, `report`, `course` | runs side by side, and each in the course of time |
//!
//! How a run is made is the caller's: this crate knows no store and no workload. Decided in
//! docs/adr/0043-experiment-language.md; described in docs/benchmark/experiments.md.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod child;
mod course;
mod folder;
mod jsonnet;
mod mistake;
mod nearest;
mod report;
mod resolve;
pub mod schema;
mod source;
mod suite;
mod table;
mod template;
#[cfg(test)]
mod tests;
mod tree;
mod words;
mod yaml;

pub use child::{Evaluator, main as evaluate};
pub use folder::FolderError;
pub use mistake::Mistake;
pub use report::Report;
/// What a text of YAML says, by the same rules as experiments: one document, no tags.
///
/// # Errors
/// The first mistake, with its line.
pub fn read_yaml(name: &str, text: &str) -> Result<serde_json::Value, Mistake> {
    Ok(yaml::read(name, text)?.value())
}

pub use resolve::{Experiment, RUNS_MAX, Resolved, resolve};
pub use suite::{Check, Ended, Said, Tally};
pub use template::all as templates;
