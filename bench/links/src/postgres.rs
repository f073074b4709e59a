//! A lean PostgreSQL client (protocol 3.0): prepared statements in pipelined rounds, simple queries
//! with streamed rows, COPY in.
//!
//! A *round* is a batch of Bind/Execute pairs that ends with one Sync: one write, one wait. The
//! same client code drives every server, so a comparison compares servers.
//!
//! Parameters and results travel as text: both sides then do the same work, whatever their inner
//! form of a number is.

use crate::answers::Answers;
use crate::link::{LinkError, ParamType, Prepared, Status, reach, ready};
use crate::login;
use crate::stream::Stream;
use crate::url::{Endpoint, Target};
use std::time::Duration;
use workload::tpcc::text::push_int;
use workload::wire::Round;

/// The largest message that is accepted from a server.
const MESSAGE_BYTES_MAX: usize = 256 << 20;
/// Bytes of a part of the rows of COPY.
const PART_BYTES: usize = 64 << 10;

/// One connection to a server that speaks the PostgreSQL wire protocol.
#[derive(Debug)]
pub struct Postgres {
    pub(crate) stream: Stream,
    status: Status,
    prepared: u32,
    /// Process and secret, as in BackendKeyData.
    pub backend_key: Option<[u8; 8]>,
    /// `server_version` as the server reported it at the start.
    pub server_version: String,
}

impl Postgres {
    /// Connects and logs in. `timeout` bounds every later wait for the server; `None` waits for
    /// ever.
    pub fn connect(
        endpoint: &Endpoint,
        target: &Target,
        timeout: Option<Duration>,
    ) -> Result<Postgres, LinkError> {
        let attempt = |is_secure| Postgres::attempt(endpoint, target, timeout, is_secure);
        // No TLS, or nobody is let in with it or without: the other way may work.
        target.tls.connect(attempt, is_about_tls)
    }

    fn attempt(
        endpoint: &Endpoint,
        target: &Target,
        timeout: Option<Duration>,
        is_secure: bool,
    ) -> Result<Postgres, LinkError> {
        let mut link = Postgres {
            stream: reach(endpoint, timeout)?,
            status: Status::Idle,
            prepared: 0,
            backend_key: None,
            server_version: String::new(),
        };
        if is_secure && login::ask_for_tls(&mut link)? {
            link.stream.secure(&target.tls, &endpoint.host)?;
        } else if is_secure {
            target.tls.without()?;
        }
        login::log_in(&mut link, target)?;
        // The login itself never waits for ever, even where later waits may.
        link.stream.set_timeout(timeout)?;
        Ok(link)
    }

    /// The transaction status after the last round.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Prepares statements in one round.
    pub async fn prepare(
        &mut self,
        statements: &[(&str, &[ParamType])],
    ) -> Result<Vec<Prepared>, LinkError> {
        let mut prepared = Vec::with_capacity(statements.len());
        for (sql, params) in statements {
            let number = self.prepared;
            self.prepared += 1;
            let out = &mut self.stream.out;
            frame(out, b'P', |out| {
                push_name(number, out);
                push_text(sql, out);
                out.extend_from_slice(&(params.len() as u16).to_be_bytes());
                for param in *params {
                    out.extend_from_slice(&(*param as u32).to_be_bytes());
                }
            });
            prepared.push(Prepared {
                number,
                params: params.len() as u16,
            });
        }
        let mut answers = Answers::new();
        self.sync(&mut answers).await?;
        match answers.error {
            Some(error) => Err(LinkError::Server(error)),
            None => Ok(prepared),
        }
    }

    /// Puts the statements of `round` into the buffer and leaves `round` empty.
    fn push_round(&mut self, round: &mut Round) {
        for bound in round.bound() {
            frame(&mut self.stream.out, b'B', |out| {
                out.push(0);
                push_name(bound.statement.number, out);
                out.extend_from_slice(&0u16.to_be_bytes());
                out.extend_from_slice(&bound.statement.params.to_be_bytes());
                out.extend_from_slice(round.param_bytes(bound));
                // All results as text.
                out.extend_from_slice(&0u16.to_be_bytes());
            });
            frame(&mut self.stream.out, b'E', |out| {
                out.extend_from_slice(&[0; 5])
            });
        }
        round.clear();
    }

    /// Sends a round and waits for all of its answers. Leaves `round` empty; a statement's error is
    /// in `answers`.
    pub async fn round(
        &mut self,
        round: &mut Round,
        answers: &mut Answers,
    ) -> Result<(), LinkError> {
        self.push_round(round);
        self.sync(answers).await
    }

    /// Sends what was put into the buffer and waits for all of its answers.
    async fn sync(&mut self, answers: &mut Answers) -> Result<(), LinkError> {
        answers.clear();
        frame(&mut self.stream.out, b'S', |_| {});
        self.flush().await?;
        self.read_answers(answers).await
    }

    /// Runs statements as one simple query. A statement's error is in `answers`.
    pub async fn simple_query(
        &mut self,
        sql: &str,
        answers: &mut Answers,
    ) -> Result<(), LinkError> {
        answers.clear();
        frame(&mut self.stream.out, b'Q', |out| push_text(sql, out));
        self.flush().await?;
        self.read_answers(answers).await
    }

    /// Runs a simple query and hands over each row as it comes: memory of one row.
    ///
    /// Rows arrive as answers with one statement of one row.
    pub async fn query_each(
        &mut self,
        sql: &str,
        mut each: impl FnMut(&Answers),
    ) -> Result<(), LinkError> {
        frame(&mut self.stream.out, b'Q', |out| push_text(sql, out));
        self.flush().await?;
        let mut row = Answers::new();
        let mut error = None;
        loop {
            match self.receive().await? {
                (b'D', body) => {
                    row.clear();
                    row.push_row(self.bytes(body))
                        .ok_or(LinkError::Protocol("DataRow"))?;
                    row.finish_statement(b"");
                    each(&row);
                }
                (b'E', body) => error = Some(login::server_error(self.bytes(body))),
                (b'Z', body) => {
                    self.note_status(body)?;
                    return error.map_or(Ok(()), |error| Err(LinkError::Server(error)));
                }
                (b'G' | b'H' | b'W', _) => return Err(LinkError::Protocol("copy")),
                _ => {}
            }
        }
    }

    /// Runs `COPY ... FROM STDIN` with `rows` in text format; returns the number of rows.
    pub async fn copy_in(&mut self, sql: &str, rows: &[u8]) -> Result<u64, LinkError> {
        frame(&mut self.stream.out, b'Q', |out| push_text(sql, out));
        self.flush().await?;
        match self.receive().await? {
            (b'G', _) => {}
            (b'E', body) => {
                let error = login::server_error(self.bytes(body));
                self.read_answers(&mut Answers::new()).await?;
                return Err(LinkError::Server(error));
            }
            _ => return Err(LinkError::Protocol("no CopyInResponse")),
        }
        for part in rows.chunks(PART_BYTES) {
            frame(&mut self.stream.out, b'd', |out| {
                out.extend_from_slice(part)
            });
            self.flush().await?;
        }
        frame(&mut self.stream.out, b'c', |_| {});
        self.flush().await?;
        let mut answers = Answers::new();
        self.read_answers(&mut answers).await?;
        match answers.error.take() {
            Some(error) => Err(LinkError::Server(error)),
            None => Ok(answers.affected(0)),
        }
    }

    /// Says goodbye. An error is of no interest: the connection ends either way.
    pub fn close(mut self) {
        frame(&mut self.stream.out, b'X', |_| {});
        let _ = ready(self.flush());
    }

    async fn read_answers(&mut self, answers: &mut Answers) -> Result<(), LinkError> {
        loop {
            match self.receive().await? {
                (b'D', body) => {
                    let row = self.stream.bytes(body);
                    answers
                        .push_row(row)
                        .ok_or(LinkError::Protocol("DataRow"))?;
                }
                (b'C', body) => {
                    let tag = self.stream.bytes(body);
                    answers.finish_statement(tag.strip_suffix(&[0]).unwrap_or(tag));
                }
                (b'I', _) => answers.finish_statement(b""),
                (b'E', body) => answers.error = Some(login::server_error(self.bytes(body))),
                (b'Z', body) => return self.note_status(body),
                (b'G' | b'H' | b'W', _) => return Err(LinkError::Protocol("copy")),
                // Parse and bind complete, row description, notices, parameter status.
                _ => {}
            }
        }
    }

    fn note_status(&mut self, body: (usize, usize)) -> Result<(), LinkError> {
        self.status = match self.bytes(body) {
            b"I" => Status::Idle,
            b"T" => Status::Open,
            b"E" => Status::Failed,
            _ => return Err(LinkError::Protocol("ReadyForQuery")),
        };
        Ok(())
    }

    pub(crate) fn bytes(&self, body: (usize, usize)) -> &[u8] {
        self.stream.bytes(body)
    }

    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.stream.out
    }

    pub(crate) async fn flush(&mut self) -> Result<(), LinkError> {
        self.stream.flush().await
    }

    /// The next message: its type and where its body lies (see `bytes`). The place is valid
    /// until the next call.
    pub async fn receive(&mut self) -> Result<(u8, (usize, usize)), LinkError> {
        self.stream.fill(5).await?;
        let head = self.stream.unread();
        let kind = head[0];
        let length: [u8; 4] = head[1..5].try_into().expect("four bytes");
        let length = u32::from_be_bytes(length) as usize;
        if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
            return Err(LinkError::Protocol("message length"));
        }
        self.stream.fill(length + 1).await?;
        let (start, end) = self.stream.take(length + 1);
        Ok((kind, (start + 5, end)))
    }
}

/// Whether a connection may be made if TLS is used where it was not, or the other way round.
fn is_about_tls(error: &LinkError) -> bool {
    match error {
        LinkError::Tls(_) => true,
        LinkError::Server(error) => error.sqlstate == "28000",
        LinkError::Io(..) | LinkError::Protocol(_) => false,
    }
}

/// Appends a message of type `kind`; the length is filled in after the body.
pub fn frame(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

pub(crate) fn push_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

fn push_name(number: u32, out: &mut Vec<u8>) {
    out.push(b's');
    push_int(i64::from(number), out);
    out.push(0);
}
