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
//! | [`regex`] | regular expressions |
//! | [`cast`] | conversions of values |
//! | [`keywords`] | the words of the grammar, and how names are quoted |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod array;
pub mod cast;
pub mod datetime;
mod func;
pub mod json;
pub mod keywords;
pub mod number;
mod percentile;
pub mod regex;
pub mod string;
pub mod to_char;

pub use self::json::JsonFunc;
pub use func::{
    ArrayFunc, Compare, DateFunc, FloatFunc, Func, SessionFunc, TextFunc, Volatility, ZoneFunc,
};
