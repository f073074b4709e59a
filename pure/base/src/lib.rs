//! Ids, logical time, values, key and row encoding, randomness and limits: what every other crate
//! of Trellis stands on.
//!
//! Nothing here decides anything about transactions. Everything is deterministic and free of
//! clocks, threads and I/O.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod codec;
pub mod crc;
pub mod datum;
pub mod decimal;
pub mod error;
pub mod ids;
pub mod key;
pub mod lookup;
pub mod prng;
pub mod row;
pub mod text;
pub mod time;
pub mod wire;

pub use datum::{Datum, RowBatch, Type};
pub use decimal::Decimal;
pub use error::{SqlError, SqlState};
pub use ids::*;
pub use key::{Key, KeyRange, SLOT_COUNT, Slot};
pub use lookup::{LookupMap, LookupSet};
pub use prng::Prng;
pub use time::{Clock, Time, Ts};
