//! SQL: text to plans, plans to operations.
//!
//! `parse` makes statements, `plan` binds and plans them against a catalog version, `exec` runs a plan
//! as an `async fn` that the node's machine polls; it reaches rows only through [`Port`].
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod copy;
pub mod expr;
pub mod pg_catalog;
pub mod port;
pub mod settings;

pub mod plan;

pub use expr::Expr;
pub use port::Port;
