//! Databases, tables, indexes and placement, and the state machine that turns commands into the
//! next catalog version.
//!
//! A [`Catalog`] is an immutable value behind an `Arc`; [`Catalog::apply`] makes the next one. Node 1
//! serialises commands; every node applies the same commands in the same order.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod command;
pub mod desc;
pub mod placement;

pub use command::{CatalogError, Command};
pub use desc::*;
pub use placement::Placement;
