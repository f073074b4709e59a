//! Databases, tables, indexes and placement, and the state machine that turns commands into the
//! next catalog version.
//!
//! A [`Catalog`] is an immutable value behind an `Arc`; [`Catalog::apply`] makes the next one. Node
//! 1 serialises commands; every node applies the same commands in the same order.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod alter;
mod apply;
mod closing;
pub mod command;
mod comments;
mod computed;
mod constraints;
pub mod desc;
mod enums;
mod keys;
mod lookup;
mod names;
mod renames;
mod rights;
mod schemas;
mod sequences;
mod size;
mod tables;
mod views;

pub use alter::TableAction;
pub use base::Placement;
pub use closing::{ChangeId, Closing, Stage};
pub use command::{Applied, CatalogError, Command};
pub use comments::Subject;
pub use desc::*;
pub use enums::{EnumChange, EnumType, Label};
pub use lookup::ROWID_COLUMN;
pub use names::{as_key, draws_from, next_of, quoted};
pub use schemas::{INFORMATION_SCHEMA, KEPT_PATH, Names, PG_CATALOG_SCHEMA, SchemaChange, mark};
pub use sequences::SequenceChange;
pub use views::{View, ViewColumn, ViewUse, kept_name};
