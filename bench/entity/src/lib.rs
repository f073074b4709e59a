//! Entities: one way to say what a workload reads and writes, for stores that have nothing in
//! common but a wire.
//!
//! A workload names types of entities, grouped by a key, and works on them in transactions on one
//! group. A store is adapted by an [`EntityDb`] (SQL), or by the much smaller
//! [`kv::TransactionalKv`] (a key-value store) from which the layer here makes the rest.
//!
//! | module | content |
//! |---|---|
//! | [`value`] | values of columns |
//! | [`model`] | types of entities: ids, groups, generated ids, indexes |
//! | [`Entity`] | Rust structs that are entities |
//! | [`db`] | what a store does for entities, and outcomes |
//! | [`delay`] | a connection that takes longer |
//! | [`client`] | a connection with its retries: what workloads are written against |
//! | [`conformance`] | what every store must show |
//! | [`policy`] | when a transaction is run again |
//! | [`kv`] | entities on key-value stores |
//! | [`memory`] | a store in memory |
//! | [`sql`] | entities on SQL, as text |
//!
//! Everything follows from a seed and from what the store answers: no clock, no I/O. Time and
//! sleep come from the caller ([`Pace`]). Follows Strudel, sections 4.1 to 4.4.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;
extern crate self as entity;

pub mod client;
pub mod conformance;
pub mod db;
pub mod delay;
mod derived;
pub mod kv;
pub mod memory;
pub mod model;
pub mod policy;
pub mod seen;
pub mod sql;
pub mod value;

pub use client::{Client, Tally, Tx};
pub use db::{Abilities, EntityDb, Failure, Outcome, Range, Scope, Stamp};
pub use delay::Delayed;
pub use derived::{Entity, Mismatch};
pub use entity_derive::Entity;
pub use model::{Column, EntityType, Index, Schema};
pub use policy::{BackOff, NoWait, Pace, Policy, Shape};
pub use value::{Field, KeyField, Kind, Row, Value};
