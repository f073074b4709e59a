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
mod executor;
pub mod workload;

pub use client::{Answer, Param, SimConn, SimError};
pub use executor::{Join, SimCx, Task};
pub use workload::{Verdict, Workload};
