//! What the stores of SQL share, over the protocols of PostgreSQL and MySQL.
//!
//! | part | content |
//! |---|---|
//! | [`Reach`], [`Network`] | how connections are made |
//! | `says` | what servers say, and what that means |
//! | `prepared` | statements that a connection has prepared |
//!
//! Entities lie in tables of their own ([`crate::tables`]), in tables of several databases
//! ([`crate::routed`]), or in rows of groups ([`crate::packed_sql`]).

pub(crate) mod prepared;
mod reach;
pub(crate) mod says;

pub use reach::{Network, Reach};
pub(crate) use says::{dialect_of, failure_of_link, is_durable};
