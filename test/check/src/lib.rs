//! Judges what clients saw: histories of transactions, isolation levels, anomalies told as stories.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod history;
pub mod level;
pub mod verdict;

pub use history::{History, Op, Outcome, Txn};
pub use level::{Basis, Kind, Level};
pub use verdict::{Anomaly, Demand, Doubt, Exercised, Judgement, Verdict};
