//! Scalar functions over values: what each computes, without expressions, rows or sessions.
//!
//! [`Func`] lists them. Arguments are values of the types for which `expr` has resolved the call;
//! a value of another type is a bug.
//!
//! | module | what |
//! |---|---|
//! | `func` | the scalar functions and operators that exist |
//! | [`number`], [`string`], [`datetime`], [`mod@array`] | functions by their arguments |
//! | [`to_char`] | `to_char`, `to_number`, `to_date`, `to_timestamp` |
//! | [`mod@json`] | `json` and `jsonb` |
//! | [`network`], [`bits`] | addresses, bit strings |
//! | [`range`] | ranges and multiranges |
//! | [`row`] | values of composite types |
//! | [`regex`] | regular expressions |
//! | [`cast`] | conversions of values |
//! | [`overtime`] | what ends calls that take too long |
//! | [`keywords`] | the words of the grammar, and how names are quoted |
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![expect(
    clippy::disallowed_macros,
    reason = "`overtime` keeps the time of a thread, for calls that are deep in expressions"
)]

extern crate alloc;

pub mod array;
pub mod bits;
pub mod cast;
pub mod datetime;
mod func;
pub mod json;
pub mod keywords;
pub mod network;
pub mod number;
pub mod overtime;
mod percentile;
pub mod range;
pub mod regex;
pub mod row;
pub mod string;
pub mod to_char;

pub use self::json::JsonFunc;
pub use func::{
    ArrayFunc, BitFunc, Compare, DateFunc, FloatFunc, Func, NetFunc, OPEN_HIGH, OPEN_LOW,
    RangeFunc, RowFunc, SessionFunc, TextFunc, Volatility, ZoneFunc,
};
