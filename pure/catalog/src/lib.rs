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
mod blocks;
mod closing;
pub mod command;
mod comments;
mod composite;
mod computed;
mod constraints;
pub mod desc;
mod domains;
mod drop_types;
mod encoded;
mod enums;
mod functions;
mod keys;
mod lookup;
mod names;
pub mod objects;
mod policies;
mod rekeyed;
mod renames;
mod retyped;
mod rights;
mod schemas;
mod sequences;
mod size;
mod stored;
mod table_locks;
mod tables;
mod views;

pub use alter::TableAction;
pub use base::Placement;
pub use blocks::{Asker, BlockChange, IMAGES_MAX, OpenBlock};
pub use closing::{ChangeId, Closing, Stage};
pub use command::{Applied, CatalogError, Command};
pub use comments::Subject;
pub use composite::{Attribute, AttributeChange};
pub use constraints::{cannot_refer, check_reference};
pub use desc::*;
pub use domains::{DOMAINS, Domain, DomainChange, DomainCheck};
pub use encoded::EncodedTables;
pub use enums::{EnumChange, EnumType, Label};
pub use functions::{
    Argument, Body, Function, FunctionChange, Lasts, Mode, Parallel, Returns, no_function,
};
pub use lookup::ROWID_COLUMN;
pub use names::{as_key, draws_from, next_of, quoted};
pub use policies::{Condition, Policy, PolicyChange, PolicyCommand, RowSecurity};
pub use retyped::{is_copy, renamed_column, replaced, retyped, retyped_key, without_mark};
pub use schemas::{
    INFORMATION_SCHEMA, KEPT_PATH, Names, PG_CATALOG_SCHEMA, SchemaChange, TEMPORARY_ALIAS, mark,
    temporary_name, told,
};
pub use sequences::SequenceChange;
pub use size::for_differing;
pub use stored::StoredView;
pub use table_locks::TableLock;
pub use views::{View, ViewColumn, ViewUse, kept_name};
