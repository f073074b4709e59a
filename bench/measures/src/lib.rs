//! Measures that are more than a mean: of the spread over nodes, of growth with the cluster, of
//! what a fault cost, of the time before a run is steady.
//!
//! | module | content |
//! |---|---|
//! | [`boxes`] | how evenly data and operations lie on the nodes |
//! | [`recovery`] | what a fault did to the rate of commits |
//! | [`scalability`] | how throughput grows with the cluster |
//! | [`steady`] | from which second on a run was in its steady state |
//!
//! All are functions of numbers: no clock, no I/O, no chance.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod boxes;
pub mod recovery;
pub mod scalability;
pub mod steady;
