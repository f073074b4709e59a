//! Ids, logical time, values, key and row encoding, randomness and limits: what every other crate
//! of Trellis stands on.
//!
//! Nothing here decides anything about transactions. Everything is deterministic and free of
//! clocks, threads and I/O.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod bits;
pub mod bytes;
pub mod calendar;
pub mod codec;
pub mod crc;
pub mod datum;
pub mod decimal;
pub mod error;
pub mod full_name;
pub mod grid;
pub mod ids;
pub mod inet;
mod isolation;
mod jsonb;
pub mod key;
pub mod limits;
pub mod lookup;
pub mod numeric;
pub mod pieces;
pub mod placement;
pub mod planted;
pub mod prng;
pub mod range;
pub mod record;
pub mod row;
pub mod spans;
pub mod steady;
pub mod strings;
mod tag;
#[cfg(test)]
mod testing;
pub mod text;
pub mod time;
pub mod types;
pub mod wire;
pub mod zone;

pub use bits::Bits;
pub use codec::CodecError;
pub use datum::{Datum, Interval, OutColumn, RowBatch, Timetz};
pub use decimal::Decimal;
pub use error::{SqlError, SqlState};
pub use ids::*;
pub use isolation::Isolation;
pub use jsonb::Jsonb;
pub use key::{Key, KeyRange, KeyRef, SLOT_COUNT, Slot, slot_of};
pub use lookup::LookupMap;
pub use pieces::{PieceQueue, Pieces};
pub use placement::Placement;
pub use planted::{Planted, is_planted, plant};
pub use prng::Prng;
pub use range::{Multirange, Range};
pub use record::Record;
pub use row::RowRef;
pub use tag::Tag;
pub use time::{Clock, Time, Ts};
pub use types::{ArrayKind, RangeKind, Reg, Type};
