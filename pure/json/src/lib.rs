//! JSON as text: what `json` checks, the normal form that `jsonb` keeps, and everything that is
//! computed on either.
//!
//! A `jsonb` value is its normal text: keys by length and then by bytes, each once; numbers written
//! out without exponents; one blank after commas and colons. So storing, sending and printing a
//! value cost nothing, and a part of a value is a slice of its text. Reading a member passes over
//! what stands before it, without allocation.
//!
//! | module | what |
//! |---|---|
//! | `lexer` | words of JSON, and PostgreSQL's errors |
//! | `normal` | text to normal form; the check of `json` |
//! | `number` | numbers of any length as text |
//! | `value` | views into a text: kind, members, elements, paths |
//! | `order` | comparison and containment |
//! | `key` | bytes whose order is that of the values |
//! | `build` | objects and arrays from parts; escaped strings |
//! | `edit` | set, insert, delete, concatenation, nulls stripped |
//! | `pretty` | the indented form |
//! | `path` | paths (`jsonpath`): text to tree and back |
//!
//! Views trust no text: of one that is no JSON they give some value, never a panic.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod assign;
mod build;
mod edit;
mod key;
mod lexer;
mod normal;
mod number;
mod order;
pub mod path;
mod pretty;
#[cfg(test)]
mod tests;
mod value;

pub use assign::assign;
pub use build::{ArrayBuilder, ObjectBuilder, write_string};
pub use edit::{
    Edit, bounded, concat, delete_index, delete_key, delete_path, edit_path, strip_nulls,
};
pub use key::{decode_key, encode_key};
pub use normal::{check, normalise};
pub use order::{compare, contains};
pub use pretty::pretty;
pub use value::{Items, Kind, Members, Value};

use alloc::string::String;

/// Deepest nesting of arrays and objects. Comparison reads a container once for each level around
/// it, so this bounds its time as well as the stack.
pub const DEPTH_MAX: usize = 256;

/// Why a text is no JSON, or something cannot be done with a value: the parts of an SQL error.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JsonError {
    /// SQLSTATE.
    pub state: &'static str,
    /// What went wrong.
    pub message: String,
    /// More facts, or empty.
    pub detail: String,
    /// What to do, or empty.
    pub hint: String,
    /// Where in the text, or empty.
    pub context: String,
}

impl JsonError {
    /// An error of a code and a message.
    pub fn new(state: &'static str, message: impl Into<String>) -> JsonError {
        JsonError {
            state,
            message: message.into(),
            ..JsonError::default()
        }
    }
}
