//! Statements to plans.
//!
//! A plan is made once per statement and catalog version, shared, and run many times by `exec`.
//!
//! | module | what |
//! |---|---|
//! | `plan` | a plan, and what the session must know about it |
//! | [`step`] | the steps of a statement that runs inside a transaction |
//! | [`formula`] | which assignments of an UPDATE are formulas |
//! | `planner` | bound queries and changes to steps |
//! | `reads` | whether a statement may read without locks |
//! | `ddl` | schema changes to commands of the catalog |
//! | [`text`] | names, keys and expressions of steps as EXPLAIN shows them |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod ddl;
pub mod formula;
mod plan;
mod planner;
mod reads;
pub mod step;
pub mod text;

pub use plan::{
    Adopt, AlterFill, CreateAs, DdlPlan, Fill, FillStage, LockPlan, Plan, PlanKind, Reads, Refresh,
};
pub use planner::{
    CopyShape, DefaultValues, KeyCheck, constraint_writer, default_values, generated_values,
    key_check, plan,
};
