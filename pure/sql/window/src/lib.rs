//! Window functions: which there are, what their frames are, and their values over a partition.
//!
//! A partition is a list of rows in the order of its window. `exec` collects it, and asks for the
//! values of all calls row by row, from the first one to the last. Frames move forward only, so
//! that every row enters a frame once and leaves it once.
//!
//! | module | what |
//! |---|---|
//! | [`call`] | calls of window functions, how names and arguments mean them |
//! | [`frame`] | frames, and the rows that they have |
//! | [`reach`] | RANGE with an offset: how far a frame reaches from a value |
//! | [`partition`] | the values of calls over a partition |
//! | `sliding` | aggregates over frames |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod call;
pub mod frame;
pub mod partition;
pub mod reach;
mod sliding;

pub use call::{WindowCall, WindowFunc, is_window_function};
pub use frame::{Edge, Exclusion, Frame, Key, Units};
pub use partition::{Host, Partition, PartitionRows};

#[cfg(test)]
mod tests;
