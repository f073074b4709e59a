//! The COPY formats, both ways: text, CSV and binary.
//!
//! ```text
//!   chunks of bytes --> Decoder --> Fields (one row: byte slices, None = NULL) --> parse, insert
//!   rows of datums  --> Encoder --> bytes of whole lines --> chunks to the client
//! ```
//!
//! The decoder takes chunks that are cut anywhere and lends each row's fields out of the chunk
//! itself; only a row that spans chunks, and fields with escapes, are copied. Values are not
//! converted here: a text or CSV field goes through `base::text::parse`, a binary one through
//! `base::wire::decode`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod decode;
mod encode;
mod search;

pub use decode::{Decoder, Fields};
pub use encode::Encoder;

use base::{SqlError, SqlState};

/// First bytes of binary COPY data.
const BINARY_SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

/// Longest value shown in an error's context, in bytes.
const SHOWN_BYTES_MAX: usize = 100;

/// The error for malformed COPY data, with the place where it was found.
fn malformed(message: impl Into<String>, place: String) -> SqlError {
    SqlError::new(SqlState::BAD_COPY, message).context(place)
}

/// `COPY t, line 3`.
fn at_line(table: &str, line: u64) -> String {
    format!("COPY {table}, line {line}")
}

/// `COPY t, line 3: "the line"`.
fn at_text(table: &str, line: u64, text: &[u8]) -> String {
    format!("COPY {table}, line {line}: \"{}\"", shown(text))
}

/// Bytes as an error shows them: lossy, and cut after [`SHOWN_BYTES_MAX`].
fn shown(bytes: &[u8]) -> String {
    if bytes.len() <= SHOWN_BYTES_MAX {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    // A character that the cut halves is left out.
    let text = String::from_utf8_lossy(&bytes[..SHOWN_BYTES_MAX]);
    format!("{}...", text.trim_end_matches('\u{fffd}'))
}

/// Adds the place of a value to an error that converting or storing it gave, as the context
/// `COPY t, line 3, column x: "abc"`; an error with a context of its own keeps it.
pub fn in_column(
    error: SqlError,
    table: &str,
    line: u64,
    column: &str,
    value: Option<&[u8]>,
) -> SqlError {
    if !error.fields().context.is_empty() {
        return error;
    }
    let place = at_line(table, line);
    error.context(match value {
        Some(value) => format!("{place}, column {column}: \"{}\"", shown(value)),
        None => format!("{place}, column {column}: null input"),
    })
}

/// Adds the line to an error that storing a row gave.
pub fn in_line(error: SqlError, table: &str, line: u64) -> SqlError {
    error.context(at_line(table, line))
}

#[cfg(test)]
mod tests;
