//! A client of Apache Cassandra and what speaks its native protocol (version 4): statements that
//! are prepared, run with values, and run as a batch.
//!
//! Everything is one request at a time. Answers are never paged. What the server refuses is
//! [`LinkError::Server`] with `CA` and the four hexadecimal digits of its error code as SQLSTATE:
//! `CA1100` is that a write was not acknowledged in time, `CA2200` an invalid request.

use crate::answers::ServerError;
use crate::link::{LinkError, reach, ready};
use crate::stream::Stream;
use crate::url::{Endpoint, Target};
use std::time::Duration;

/// The largest answer that is accepted, in bytes: what the protocol allows.
const BODY_BYTES_MAX: usize = 256 << 20;
/// Bytes of a frame before its body.
const HEAD_BYTES: usize = 9;
/// The version of the protocol, in requests; answers have the highest bit as well.
const VERSION: u8 = 4;
/// Types within types, at most.
const DEPTH_MAX: usize = 16;
/// Statements in a batch, at most.
pub const BATCH_MAX: usize = 65_535;
/// Where an answer ends too early.
const SHORT: LinkError = LinkError::Protocol("an answer of Cassandra that is too short");

mod opcode {
    //! Kinds of messages.
    pub(super) const ERROR: u8 = 0x00;
    pub(super) const STARTUP: u8 = 0x01;
    pub(super) const READY: u8 = 0x02;
    pub(super) const AUTHENTICATE: u8 = 0x03;
    pub(super) const QUERY: u8 = 0x07;
    pub(super) const RESULT: u8 = 0x08;
    pub(super) const PREPARE: u8 = 0x09;
    pub(super) const EXECUTE: u8 = 0x0a;
    pub(super) const BATCH: u8 = 0x0d;
    pub(super) const AUTH_RESPONSE: u8 = 0x0f;
    pub(super) const AUTH_SUCCESS: u8 = 0x10;
}

/// How many copies answer a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consistency {
    /// One of them.
    One,
    /// Most of them.
    Quorum,
    /// Of a read: most of them, after what conditional writes have left open is ended.
    Serial,
}

impl Consistency {
    fn code(self) -> u16 {
        match self {
            Consistency::One => 0x0001,
            Consistency::Quorum => 0x0004,
            Consistency::Serial => 0x0008,
        }
    }
}

/// A statement that the server knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared(Vec<u8>);

/// A value; `None`: null.
pub type Cell<'a> = Option<&'a [u8]>;

/// Rows of an answer; none, and no columns, of a statement without rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Values, in the order of the columns; `None`: null.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
}

impl Rows {
    /// Whether a conditional write has happened; `None`: it was none.
    pub fn is_applied(&self) -> Option<bool> {
        let place = self.columns.iter().position(|name| name == "[applied]")?;
        let value = self.rows.first()?.get(place)?;
        Some(value.as_deref() == Some(&[1]))
    }

    /// The value of the first row in the first column, as text.
    pub fn text(&self) -> Option<String> {
        let value = self.rows.first()?.first()?.as_deref()?;
        Some(String::from_utf8_lossy(value).into_owned())
    }
}

/// One connection to a node.
#[derive(Debug)]
pub struct Cassandra {
    /// Its bytes.
    pub stream: Stream,
}

impl Cassandra {
    /// Connects, and logs in if the node asks for that. `timeout` bounds every wait.
    ///
    /// # Errors
    /// No server, or it refuses the password.
    pub fn connect(
        endpoint: &Endpoint,
        target: &Target,
        timeout: Option<Duration>,
    ) -> Result<Cassandra, LinkError> {
        let mut link = Cassandra {
            stream: reach(endpoint, timeout)?,
        };
        ready(link.log_in(target))?;
        link.stream.set_timeout(timeout)?;
        Ok(link)
    }

    async fn log_in(&mut self, target: &Target) -> Result<(), LinkError> {
        let mut body = Vec::new();
        put_short(1, &mut body);
        put_string("CQL_VERSION", &mut body);
        put_string("3.0.0", &mut body);
        let (mut kind, _) = self.ask(opcode::STARTUP, &body).await?;
        if kind == opcode::AUTHENTICATE {
            let Some(password) = &target.password else {
                let text = "the node wants a user and a password: put them into the URL";
                return Err(LinkError::Server(ServerError {
                    sqlstate: String::from("CA0100"),
                    message: String::from(text),
                }));
            };
            let token = [b"\0", target.user.as_bytes(), b"\0", password.as_bytes()].concat();
            let mut body = Vec::new();
            put_bytes(Some(&token), &mut body);
            (kind, _) = self.ask(opcode::AUTH_RESPONSE, &body).await?;
        }
        match kind {
            opcode::READY | opcode::AUTH_SUCCESS => Ok(()),
            _ => Err(LinkError::Protocol("an answer to the login of Cassandra")),
        }
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// The connection broke, or the server refuses the statement.
    pub async fn prepare(&mut self, cql: &str) -> Result<Prepared, LinkError> {
        let mut body = Vec::new();
        put_long_string(cql, &mut body);
        let (kind, answer) = self.ask(opcode::PREPARE, &body).await?;
        let mut reader = Reader(&answer);
        match (kind, reader.int()?) {
            (opcode::RESULT, 4) => Ok(Prepared(reader.short_bytes()?.to_vec())),
            _ => Err(LinkError::Protocol("an answer to PREPARE of Cassandra")),
        }
    }

    /// Runs a statement without values.
    ///
    /// # Errors
    /// As for [`Cassandra::execute`].
    pub async fn query(&mut self, cql: &str, consistency: Consistency) -> Result<Rows, LinkError> {
        let mut body = Vec::new();
        put_long_string(cql, &mut body);
        put_parameters(consistency, &[], &mut body);
        self.rows_of(opcode::QUERY, &body).await
    }

    /// Runs a prepared statement with these values. Conditions of it are decided among all data
    /// centers.
    ///
    /// # Errors
    /// The connection broke, or the server refuses. Whether a write happened is not known after
    /// the former, nor after `CA1100`, `CA1500`, `CA1700` and `CA0000`.
    pub async fn execute(
        &mut self,
        statement: &Prepared,
        values: &[Cell<'_>],
        consistency: Consistency,
    ) -> Result<Rows, LinkError> {
        let mut body = Vec::new();
        put_short_bytes(&statement.0, &mut body);
        put_parameters(consistency, values, &mut body);
        self.rows_of(opcode::EXECUTE, &body).await
    }

    /// Runs prepared statements, at most [`BATCH_MAX`], as one. With conditions they must be in one
    /// partition.
    ///
    /// # Errors
    /// As for [`Cassandra::execute`].
    pub async fn batch(
        &mut self,
        statements: &[(&Prepared, Vec<Cell<'_>>)],
        consistency: Consistency,
    ) -> Result<Rows, LinkError> {
        let Ok(count) = u16::try_from(statements.len()) else {
            return Err(LinkError::Server(ServerError {
                sqlstate: String::from("CA2200"),
                message: format!("a batch has at most {BATCH_MAX} statements"),
            }));
        };
        // Unlogged: it lies in one partition, where it is atomic.
        let mut body = vec![1];
        put_short(count, &mut body);
        for (statement, values) in statements {
            body.push(1);
            put_short_bytes(&statement.0, &mut body);
            put_values(values, &mut body);
        }
        put_short(consistency.code(), &mut body);
        body.push(SERIAL_FLAG);
        put_short(Consistency::Serial.code(), &mut body);
        self.rows_of(opcode::BATCH, &body).await
    }

    async fn rows_of(&mut self, opcode: u8, body: &[u8]) -> Result<Rows, LinkError> {
        match self.ask(opcode, body).await? {
            (opcode::RESULT, answer) => result_of(&answer),
            _ => Err(LinkError::Protocol("an answer of Cassandra")),
        }
    }

    /// Sends a request, and waits for its answer: its kind and its body.
    async fn ask(&mut self, opcode: u8, body: &[u8]) -> Result<(u8, Vec<u8>), LinkError> {
        let Some(length) = u32::try_from(body.len())
            .ok()
            .filter(|&it| it as usize <= BODY_BYTES_MAX)
        else {
            return Err(LinkError::Server(ServerError {
                sqlstate: String::from("CA2200"),
                message: String::from("a request of more than 256 MiB"),
            }));
        };
        let out = &mut self.stream.out;
        out.extend_from_slice(&[VERSION, 0, 0, 0, opcode]);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(body);
        self.stream.flush().await?;
        self.stream.fill(HEAD_BYTES).await?;
        let place = self.stream.take(HEAD_BYTES);
        let (flags, kind, length) = head_of(self.stream.bytes(place))?;
        self.stream.fill(length).await?;
        let place = self.stream.take(length);
        let answer = without_extras(flags, self.stream.bytes(place))?;
        match kind {
            opcode::ERROR => Err(error_of(answer)?),
            kind => Ok((kind, answer.to_vec())),
        }
    }
}

/// Flags, kind and length of an answer.
fn head_of(bytes: &[u8]) -> Result<(u8, u8, usize), LinkError> {
    let &[version, flags, _, _, kind, a, b, c, d] = bytes else {
        return Err(SHORT);
    };
    if version & 0x80 == 0 || !(3..=5).contains(&(version & 0x7f)) {
        return Err(LinkError::Protocol(
            "it does not speak Cassandra's protocol",
        ));
    }
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if length > BODY_BYTES_MAX {
        return Err(LinkError::Protocol("an answer of Cassandra is too large"));
    }
    // Nothing here asks for compression.
    if flags & 0x01 != 0 {
        return Err(LinkError::Protocol("an answer of Cassandra is compressed"));
    }
    Ok((flags, kind, length))
}

/// A body without the number of a trace, warnings and a payload, which may come before it.
fn without_extras(flags: u8, body: &[u8]) -> Result<&[u8], LinkError> {
    let mut reader = Reader(body);
    if flags & 0x02 != 0 {
        reader.take(16)?;
    }
    if flags & 0x08 != 0 {
        for _ in 0..reader.short()? {
            reader.string()?;
        }
    }
    if flags & 0x04 != 0 {
        for _ in 0..reader.short()? {
            reader.string()?;
            reader.bytes()?;
        }
    }
    Ok(reader.0)
}

fn error_of(body: &[u8]) -> Result<LinkError, LinkError> {
    let mut reader = Reader(body);
    let code = reader.int()?;
    let message = reader.string()?;
    Ok(LinkError::Server(ServerError {
        sqlstate: format!("CA{code:04X}"),
        message,
    }))
}

fn result_of(body: &[u8]) -> Result<Rows, LinkError> {
    let mut reader = Reader(body);
    match reader.int()? {
        2 => rows_of(&mut reader),
        // Nothing, a keyspace, a change of the schema.
        1 | 3 | 5 => Ok(Rows::default()),
        _ => Err(LinkError::Protocol("a kind of result of Cassandra")),
    }
}

fn rows_of(reader: &mut Reader<'_>) -> Result<Rows, LinkError> {
    let flags = reader.int()?;
    let count = reader.count()?;
    if flags & 0x02 != 0 {
        return Err(LinkError::Protocol("an answer of Cassandra has pages"));
    }
    let mut columns = Vec::new();
    if flags & 0x04 == 0 {
        let is_global = flags & 0x01 != 0;
        if is_global {
            reader.string()?;
            reader.string()?;
        }
        for _ in 0..count {
            if !is_global {
                reader.string()?;
                reader.string()?;
            }
            columns.push(reader.string()?);
            reader.skip_type(0)?;
        }
    }
    let mut rows = Vec::new();
    let rows_count = reader.count()?;
    if count == 0 && rows_count > 0 {
        return Err(LinkError::Protocol("rows of Cassandra without columns"));
    }
    for _ in 0..rows_count {
        // What is announced may be far more than there is: nothing is reserved.
        let mut row = Vec::new();
        for _ in 0..count {
            row.push(reader.bytes()?.map(<[u8]>::to_vec));
        }
        rows.push(row);
    }
    Ok(Rows { columns, rows })
}

/// What is left of an answer.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], LinkError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn short(&mut self) -> Result<u16, LinkError> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn int(&mut self) -> Result<i32, LinkError> {
        let bytes = self.take(4)?;
        Ok(i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn count(&mut self) -> Result<usize, LinkError> {
        usize::try_from(self.int()?).map_err(|_| LinkError::Protocol("a count of Cassandra"))
    }

    fn short_bytes(&mut self) -> Result<&'a [u8], LinkError> {
        let length = usize::from(self.short()?);
        self.take(length)
    }

    fn string(&mut self) -> Result<String, LinkError> {
        Ok(String::from_utf8_lossy(self.short_bytes()?).into_owned())
    }

    /// A value; `None`: null.
    fn bytes(&mut self) -> Result<Option<&'a [u8]>, LinkError> {
        match usize::try_from(self.int()?) {
            Ok(length) => self.take(length).map(Some),
            Err(_) => Ok(None),
        }
    }

    fn skip_type(&mut self, depth: usize) -> Result<(), LinkError> {
        if depth == DEPTH_MAX {
            return Err(LinkError::Protocol("a type of Cassandra is too deep"));
        }
        match self.short()? {
            0x00 => drop(self.string()?),
            // A list, a set.
            0x20 | 0x22 => self.skip_type(depth + 1)?,
            // A map.
            0x21 => {
                self.skip_type(depth + 1)?;
                self.skip_type(depth + 1)?;
            }
            // A type of the user.
            0x30 => {
                self.string()?;
                self.string()?;
                for _ in 0..self.short()? {
                    self.string()?;
                    self.skip_type(depth + 1)?;
                }
            }
            // A tuple.
            0x31 => {
                for _ in 0..self.short()? {
                    self.skip_type(depth + 1)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// There are values.
const VALUES_FLAG: u8 = 0x01;
/// It is said how conditions are decided.
const SERIAL_FLAG: u8 = 0x10;

fn put_parameters(consistency: Consistency, values: &[Cell<'_>], out: &mut Vec<u8>) {
    put_short(consistency.code(), out);
    match values {
        [] => out.push(SERIAL_FLAG),
        values => {
            out.push(VALUES_FLAG | SERIAL_FLAG);
            put_values(values, out);
        }
    }
    put_short(Consistency::Serial.code(), out);
}

fn put_values(values: &[Cell<'_>], out: &mut Vec<u8>) {
    put_short(values.len() as u16, out);
    for value in values {
        put_bytes(*value, out);
    }
}

fn put_short(value: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn put_bytes(value: Cell<'_>, out: &mut Vec<u8>) {
    let length = value.map_or(-1, |value| value.len() as i32);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(value.unwrap_or_default());
}

fn put_short_bytes(value: &[u8], out: &mut Vec<u8>) {
    put_short(value.len() as u16, out);
    out.extend_from_slice(value);
}

fn put_string(text: &str, out: &mut Vec<u8>) {
    put_short_bytes(text.as_bytes(), out);
}

fn put_long_string(text: &str, out: &mut Vec<u8>) {
    put_bytes(Some(text.as_bytes()), out);
}

#[cfg(test)]
mod tests;
