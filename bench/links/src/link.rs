//! A connection of the benchmark's client, over the wire that the server speaks.
//!
//! The same client code drives every server, so a comparison compares servers. The methods of
//! [`Link`] wait until they are answered; as a [`Connection`] it is pending instead, once its
//! [`Stream`] is suspended.

use crate::answers::{Answers, ServerError};
use crate::mysql::MySql;
use crate::postgres::Postgres;
use crate::stream::Stream;
use crate::url::{Endpoint, Target, Wire};
use std::fmt;
use std::io::ErrorKind;
use std::net::{TcpStream, ToSocketAddrs};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use workload::wire::{Connection, Round};

pub use workload::wire::{ParamType, Prepared, Status};

/// How long one of several endpoints may take to let somebody in.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a request has no answer.
#[derive(Clone, Debug)]
pub enum LinkError {
    /// The server refused it. The connection can be used further.
    Server(ServerError),
    /// The connection is gone or silent for too long; it must not be used further.
    Io(ErrorKind, String),
    /// TLS was asked for and could not be made, as a sentence; as with `Io`.
    Tls(String),
    /// The server sent what the protocol does not allow here; as with `Io`.
    Protocol(&'static str),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::Server(error) => error.fmt(f),
            LinkError::Io(_, text) | LinkError::Tls(text) => f.write_str(text),
            LinkError::Protocol(text) => write!(f, "unexpected message from the server: {text}"),
        }
    }
}

impl std::error::Error for LinkError {}

impl From<ServerError> for LinkError {
    fn from(error: ServerError) -> LinkError {
        LinkError::Server(error)
    }
}

impl From<std::io::Error> for LinkError {
    fn from(error: std::io::Error) -> LinkError {
        LinkError::Io(error.kind(), error.to_string())
    }
}

/// One connection.
#[derive(Debug)]
pub enum Link {
    /// The PostgreSQL wire protocol.
    Postgres(Postgres),
    /// The protocol of MySQL and MariaDB.
    MySql(MySql),
}

/// Calls the method of the wire.
macro_rules! wire {
    ($link:expr, $wire:ident => $call:expr) => {
        match $link {
            Link::Postgres($wire) => $call,
            Link::MySql($wire) => $call,
        }
    };
}

impl Link {
    /// Connects and logs in. `timeout` bounds every later wait for the server; `None` waits for
    /// ever.
    pub fn connect(
        endpoint: &Endpoint,
        target: &Target,
        timeout: Option<Duration>,
    ) -> Result<Link, LinkError> {
        Ok(match target.wire {
            Wire::Postgres => Link::Postgres(Postgres::connect(endpoint, target, timeout)?),
            Wire::MySql => Link::MySql(MySql::connect(endpoint, target, timeout)?),
            Wire::Redis => return Err(LinkError::Protocol("Redis has no SQL")),
            Wire::Etcd => return Err(LinkError::Protocol("etcd has no SQL")),
            Wire::Cassandra => return Err(LinkError::Protocol("Cassandra has no SQL here")),
            Wire::HBase => return Err(LinkError::Protocol("HBase has no SQL")),
            Wire::Mongo => return Err(LinkError::Protocol("MongoDB has no SQL")),
        })
    }

    /// The same to the first endpoint that lets somebody in. Where there are others, one has
    /// five seconds to do so.
    pub fn connect_any(target: &Target, timeout: Option<Duration>) -> Result<Link, LinkError> {
        let mut first = None;
        let patience = match target.endpoints.len() {
            0 | 1 => timeout,
            _ => Some(timeout.map_or(PATIENCE, |timeout| timeout.min(PATIENCE))),
        };
        for endpoint in &target.endpoints {
            match Link::connect(endpoint, target, patience) {
                Ok(mut link) => {
                    link.stream().set_timeout(timeout)?;
                    return Ok(link);
                }
                // The database or the password is wrong: so it is elsewhere. A server that starts,
                // ends or is full says so, too.
                Err(LinkError::Server(error))
                    if !error.sqlstate.starts_with("57P") && error.sqlstate != "53300" =>
                {
                    return Err(LinkError::Server(error));
                }
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or(LinkError::Protocol("no endpoint")))
    }

    /// The connection, if it speaks the PostgreSQL wire protocol: for its single messages.
    pub fn postgres(&mut self) -> Option<&mut Postgres> {
        match self {
            Link::Postgres(postgres) => Some(postgres),
            Link::MySql(_) => None,
        }
    }

    /// The version that the server reported at the start.
    pub fn server_version(&self) -> &str {
        wire!(self, wire => &wire.server_version)
    }

    /// The transaction status after the last round.
    pub fn status(&self) -> Status {
        wire!(self, wire => wire.status())
    }

    /// Prepares statements in one round.
    pub fn prepare(
        &mut self,
        statements: &[(&str, &[ParamType])],
    ) -> Result<Vec<Prepared>, LinkError> {
        wire!(self, wire => ready(wire.prepare(statements)))
    }

    /// Runs statements as one simple query and keeps all rows.
    pub fn query(&mut self, sql: &str, answers: &mut Answers) -> Result<(), LinkError> {
        ready(self.simple(sql, answers))?;
        match answers.error.take() {
            Some(error) => Err(LinkError::Server(error)),
            None => Ok(()),
        }
    }

    /// Runs statements as one simple query whose rows are not needed.
    pub fn command(&mut self, sql: &str) -> Result<(), LinkError> {
        self.query(sql, &mut Answers::new())
    }

    /// Runs a simple query and hands over each row as it comes: memory of one row.
    ///
    /// Rows arrive as answers with one statement of one row.
    pub fn query_each(&mut self, sql: &str, each: impl FnMut(&Answers)) -> Result<(), LinkError> {
        wire!(self, wire => ready(wire.query_each(sql, each)))
    }

    /// Runs `COPY ... FROM STDIN` with `rows` in text format, or what does the same on this wire;
    /// returns the number of rows.
    pub fn copy_in(&mut self, sql: &str, rows: &[u8]) -> Result<u64, LinkError> {
        wire!(self, wire => ready(wire.copy_in(sql, rows)))
    }

    /// Its bytes.
    pub fn stream(&mut self) -> &mut Stream {
        wire!(self, wire => &mut wire.stream)
    }

    /// Says goodbye. An error is of no interest: the connection ends either way.
    pub fn close(self) {
        wire!(self, wire => wire.close())
    }
}

/// A stream that is not suspended waits in the call: then every future is ready at its first poll.
impl Connection for Link {
    type Error = LinkError;

    async fn prepare(
        &mut self,
        statements: &[(&str, &[ParamType])],
    ) -> Result<Vec<Prepared>, LinkError> {
        wire!(self, wire => wire.prepare(statements).await)
    }

    async fn round(&mut self, round: &mut Round, answers: &mut Answers) -> Result<(), LinkError> {
        wire!(self, wire => wire.round(round, answers).await)
    }

    async fn simple(&mut self, sql: &str, answers: &mut Answers) -> Result<(), LinkError> {
        wire!(self, wire => wire.simple_query(sql, answers).await)
    }

    async fn each_row(&mut self, sql: &str, each: impl FnMut(&Answers)) -> Result<(), LinkError> {
        wire!(self, wire => wire.query_each(sql, each).await)
    }

    fn status(&self) -> Status {
        Link::status(self)
    }

    fn now_unix_us(&self) -> u64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_micros() as u64)
    }
}

/// A stream to the first address of the endpoint that accepts. Waits at most half a minute in the
/// login that follows, if `timeout` bounds no wait.
pub fn reach(endpoint: &Endpoint, timeout: Option<Duration>) -> Result<Stream, LinkError> {
    let addresses = (endpoint.host.as_str(), endpoint.port).to_socket_addrs()?;
    let mut last = LinkError::Io(ErrorKind::NotFound, format!("{endpoint} has no address"));
    for address in addresses {
        let patience = Duration::from_secs(10).min(timeout.unwrap_or(Duration::MAX));
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(timeout.or(Some(Duration::from_secs(30))))?;
                stream.set_write_timeout(timeout)?;
                return Ok(Stream::new(stream));
            }
            Err(error) => {
                last = LinkError::Io(error.kind(), format!("{endpoint}: {error}"));
            }
        }
    }
    Err(last)
}

/// The result of a future over a connection that waits in its calls, which is ready at once.
pub fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("a suspended connection is waited for by its event loop"),
    }
}
