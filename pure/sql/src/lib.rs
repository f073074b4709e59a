//! SQL: text to plans, plans to operations.
//!
//! ```text
//! text -- parse --> Statement -- bind --> relations -- planner --> Plan (steps, or one operation)
//!                                                                    |
//!                       rows of all shards <-- Port <-- exec --------+
//!                                              |
//!                                    row programs travel to the rows
//! ```
//!
//! `parse` makes statements, `plan` binds and plans them against a catalog version, `exec` runs a
//! plan as an `async fn` that the node's machine polls; it reaches rows only through [`Port`]. A
//! statement that is one operation on one row takes [`execute_fast`], which has no future.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod bind;
pub mod copy;
mod ddl;
pub mod exec;
pub mod fill;
mod keys;
pub mod output;
mod parse;
pub mod plan;
mod planner;
pub mod port;
mod stack;

pub use bind::PlanCx;
pub use exec::row_counts;
pub use exec::{Completed, Fast, FastEnd, FastWait, Tag, execute, execute_fast, home_slot};
pub use parse::{LONG_BYTES, Statement, memory_bytes, parse};
pub use plan::Plan;
pub use planner::{CopyShape, plan};
pub use port::Port;
