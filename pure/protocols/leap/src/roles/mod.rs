//! The parts that a shard plays towards rows, each with its own state.
//!
//! | role | state | what the shard does with it |
//! |---|---|---|
//! | [`Coordinator`] | transactions that run here, their reads elsewhere | `txns`, `commit` |
//! | [`Requester`] | rows asked for, fates to be told | `request` |
//! | [`Owner`] | rows of other homes that are here, rows about to leave | `owner` |
//! | [`Home`] | the owner table, the queue of each row, grants | `home` |
//! | [`Rejoin`] | after a restart: claims, and what of them stands | `recovery`, `resolve` |
//!
//! A role changes only its own state and sends nothing. [`crate::Leap`] plays the roles together,
//! with the locks, the store and the journal that they share.

mod coordinator;
mod home;
mod owner;
mod rejoin;
mod requester;

pub(crate) use coordinator::Coordinator;
pub(crate) use home::Home;
pub(crate) use owner::Owner;
pub(crate) use rejoin::{Collected, Rejoin, Rows, bounds};
pub(crate) use requester::Requester;
