//! A cluster of node processes on this machine: its directory, the start, watch and end of its
//! nodes, and what Ctrl-C does meanwhile.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod dir;
mod interrupt;
pub mod login;
mod node_log;
pub mod nodes;
mod processes;

pub use interrupt::{Interrupt, at_interrupt};
pub use processes::{
    Ended, LocalCluster, Settings, Started, connect, connect_with, terminate, url,
};
