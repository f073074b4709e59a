//! What a transaction needs of a connection, so that one text of it runs everywhere.
//!
//! A workload's transactions are `async fn`s over a [`Connection`]. The benchmark's event
//! loops suspend in them until the answer is there, and the simulator until virtual time brings it;
//! what waits for a connection by itself has futures that are ready at the first poll. None knows
//! what the others do.
//!
//! | part | content |
//! |---|---|
//! | [`Connection`] | prepared rounds, simple queries, COPY, the time of day |
//! | [`Round`] | statements with parameters that travel together up to one Sync |
//! | [`Answers`] | rows and tags of a round |
//! | [`Session`] | a connection with its transaction: who knows how a round ended |
//! | [`Failure`], [`Done`] | outcomes of one attempt |

mod answers;
mod outcome;
mod round;
mod session;

pub use answers::{Answers, ServerError};
pub use outcome::{Done, Ending, Failure, is_unknown};
pub use round::{Bind, Bound, Round};
pub use session::Session;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;

/// Whether a transaction is open, as the last ReadyForQuery said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// No transaction.
    Idle,
    /// In a transaction.
    Open,
    /// In a transaction that failed and accepts only ROLLBACK.
    Failed,
}

/// The type of a parameter, by its number in `pg_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamType {
    /// `integer`.
    Int = 23,
    /// `bigint`.
    BigInt = 20,
    /// `numeric`.
    Numeric = 1700,
    /// `varchar`.
    Text = 1043,
    /// `timestamp`.
    Timestamp = 1114,
    /// `boolean`, as `1` or `0`.
    Bool = 16,
    /// `double precision`.
    Double = 701,
    /// `bytea`, as `\x` and digits in base 16.
    Bytea = 17,
}

/// A prepared statement of one connection: `number` is the position in what was prepared.
#[derive(Clone, Copy, Debug)]
pub struct Prepared {
    /// Counted from 0 over the life of the connection.
    pub number: u32,
    /// Parameters that it takes.
    pub params: u16,
}

/// The isolation level that a transaction asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Isolation {
    /// Serializable; also in real time where the server says so.
    #[default]
    Serializable,
    /// Snapshot isolation in PostgreSQL.
    RepeatableRead,
    /// The weakest that both servers have.
    ReadCommitted,
}

impl Isolation {
    /// All levels, strongest first.
    pub const ALL: [Isolation; 3] = [
        Isolation::Serializable,
        Isolation::RepeatableRead,
        Isolation::ReadCommitted,
    ];

    /// As in `BEGIN ISOLATION LEVEL`.
    pub fn sql(self) -> &'static str {
        match self {
            Isolation::Serializable => "SERIALIZABLE",
            Isolation::RepeatableRead => "REPEATABLE READ",
            Isolation::ReadCommitted => "READ COMMITTED",
        }
    }

    /// Reads `serializable`, `repeatable read` or `read committed`, also with `-` or `_`.
    pub fn parse(text: &str) -> Option<Isolation> {
        let text = text.to_uppercase().replace(['-', '_'], " ");
        Isolation::ALL
            .into_iter()
            .find(|isolation| isolation.sql() == text)
    }
}

/// A connection to a server, whatever carries it.
///
/// A statement that the server refuses is not an error of the connection: it is in the answers.
/// After an error the connection must not be used further.
pub trait Connection {
    /// Why the connection is of no more use; a server's own words fit in as well.
    type Error: From<ServerError> + fmt::Display + fmt::Debug;

    /// Prepares statements in one round.
    ///
    /// # Errors
    /// The connection broke, or a statement was refused.
    fn prepare(
        &mut self,
        statements: &[(&str, &[ParamType])],
    ) -> impl Future<Output = Result<Vec<Prepared>, Self::Error>>;

    /// Sends a round with one Sync and waits for all of its answers. Leaves `round` empty.
    ///
    /// # Errors
    /// The connection broke; how far the server came is unknown.
    fn round(
        &mut self,
        round: &mut Round,
        answers: &mut Answers,
    ) -> impl Future<Output = Result<(), Self::Error>>;

    /// Runs statements as one simple query; a statement's error is in `answers`.
    ///
    /// # Errors
    /// As for [`Connection::round`].
    fn simple(
        &mut self,
        sql: &str,
        answers: &mut Answers,
    ) -> impl Future<Output = Result<(), Self::Error>>;

    /// Runs a simple query and hands over each row as it comes: answers of one row.
    ///
    /// # Errors
    /// The connection broke, or the query was refused.
    fn each_row(
        &mut self,
        sql: &str,
        each: impl FnMut(&Answers),
    ) -> impl Future<Output = Result<(), Self::Error>>;

    /// The transaction status after the last round.
    fn status(&self) -> Status;

    /// The time of day in microseconds since 1970: what a row may carry, never what decides.
    fn now_unix_us(&self) -> u64;
}

/// Runs statements as one simple query whose rows are not needed.
///
/// # Errors
/// The connection broke, or a statement was refused.
pub async fn command<C: Connection>(link: &mut C, sql: &str) -> Result<(), C::Error> {
    let mut answers = Answers::new();
    link.simple(sql, &mut answers).await?;
    match answers.error.take() {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// The text of a statement with its `$n` replaced by literals, for the simple protocol.
///
/// Parameters are as in a [`Round`]: numbers as they are, texts and times in quotes.
pub fn literal(sql: &str, types: &[ParamType], params: &[Option<&[u8]>]) -> String {
    let mut out = String::with_capacity(sql.len() + 16 * params.len());
    let mut rest = sql;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: usize = rest[..digits].parse().expect("a dollar begins a parameter");
        rest = &rest[digits..];
        match params[number - 1] {
            None => out.push_str("NULL"),
            Some(bytes) => push_literal(types[number - 1], bytes, &mut out),
        }
    }
    out.push_str(rest);
    out
}

fn push_literal(kind: ParamType, bytes: &[u8], out: &mut String) {
    let text = core::str::from_utf8(bytes).expect("parameters are text");
    match kind {
        ParamType::Int | ParamType::BigInt | ParamType::Numeric => out.push_str(text),
        ParamType::Text | ParamType::Bool | ParamType::Double | ParamType::Bytea => {
            out.push('\'');
            out.push_str(&text.replace('\'', "''"));
            out.push('\'');
        }
        ParamType::Timestamp => {
            out.push_str("TIMESTAMP '");
            out.push_str(text);
            out.push('\'');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isolation_levels_are_read() {
        let parse = Isolation::parse;
        assert_eq!(parse("read-committed"), Some(Isolation::ReadCommitted));
        assert_eq!(parse("SERIALIZABLE"), Some(Isolation::Serializable));
        assert_eq!(parse("repeatable_read"), Some(Isolation::RepeatableRead));
        assert_eq!(parse("chaos"), None);
    }

    #[test]
    fn literals_stand_where_the_parameters_stood() {
        let types = [ParamType::Int, ParamType::Text, ParamType::Timestamp];
        let params = [Some(&b"7"[..]), Some(&b"it's"[..]), None];
        let sql = literal("SELECT $2, $1, $3, $1 + 10", &types, &params);
        assert_eq!(sql, "SELECT 'it''s', 7, NULL, 7 + 10");
    }
}
