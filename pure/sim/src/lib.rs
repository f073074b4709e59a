//! The deterministic simulator: whole clusters of the machine that ships, in one thread, in
//! virtual time, from one seed.
//!
//! ```text
//! workload tasks --ClientMessage--> node::Shard x shards x nodes --frames--> network with faults
//!       ^------------Reply-----------'        |
//!                                     storage::* over a disk with faults
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod client;
mod closed;
mod costs;
pub mod disk;
mod executor;
mod faults;
mod flushing;
mod hosted;
mod links;
mod network;
mod node_life;
mod owners;
pub mod plan;
pub mod planted;
mod queue;
pub mod run;
pub mod scale;
mod trace;
mod waits;
pub mod workload;
mod world;

pub use client::{Answer, Param, SimConn, SimError};
pub use executor::{Join, SimCx, Task};
pub use plan::{Ask, Plan};
pub use run::{Options, Outcome, Report, alone, run, run_with};
pub use trace::Sink;
pub use workload::blame::{is_excusable, say_patiently};
pub use workload::wire::{LinkError, SimLink};
pub use workload::{Verdict, Workload};
