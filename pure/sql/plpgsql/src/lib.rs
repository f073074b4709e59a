//! A part of PL/pgSQL: bodies of DO as instructions, and the machine that goes through them.
//!
//! ```text
//! text -> tokens -> Program: instructions, texts of SQL with the variables that each may read
//!                      |
//!                   Machine: variables, place, handlers --Ask--> the session runs SQL, savepoints
//!                      ^------------------------- Answer ------'
//! ```
//!
//! Expressions are queries, as in PostgreSQL: the machine has no evaluator. It asks for one thing
//! at a time and knows no catalog, no transaction and no clock; types come as answers. A block with
//! EXCEPTION asks for a savepoint. What the language has and this crate lacks is 0A000 when the
//! text is compiled, before anything has run.
//!
//! | module | what |
//! |---|---|
//! | `lexer` | tokens, with their bytes in the text |
//! | [`program`] | instructions |
//! | `compile`, `statements`, `blocks`, `raise` | text to instructions |
//! | [`machine`], `steps` | goes through them |
//! | `conditions` | names of errors |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod blocks;
mod compile;
mod conditions;
mod lexer;
pub mod machine;
pub mod program;
mod raise;
mod statements;
mod steps;
#[cfg(test)]
mod tests;

pub use compile::compile;
pub use machine::{Answer, Ask, Machine};
pub use program::{Fragment, Program};

use base::{SqlError, SqlState};

/// Largest text of a body, in bytes: it is compiled at once.
pub const CODE_BYTES_MAX: usize = 256 << 10;

/// Statements and blocks may nest this deep.
const DEPTH_MAX: usize = 100;

fn syntax(near: &str) -> SqlError {
    let message = format!("syntax error at or near \"{near}\"");
    SqlError::new(SqlState::SYNTAX, message)
}

fn unsupported(what: &str) -> SqlError {
    let message = format!("{what} is not supported in PL/pgSQL");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}
