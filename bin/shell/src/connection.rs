//! A session with one node of several: statements in, everything that the server says out.

use crate::interrupts::Interrupts;
use crate::report::Report;
use crate::table::{Column, Rows};
use links::link::LinkError;
use links::postgres::Postgres;
use links::url::{Endpoint, Target};
use std::time::Duration;

/// What a server says while it runs statements.
pub(crate) enum Said {
    /// A statement that returns rows has ended.
    Rows(Rows, String),
    /// A statement that returns none has ended: its command tag.
    Done(String),
    Notice(Report),
    Failed(Report),
    /// Next bytes of COPY TO STDOUT.
    CopyOut(Vec<u8>),
}

/// The data of COPY FROM STDIN, piece by piece; `Err` says why there will be no more, and
/// nothing is copied then.
pub(crate) type CopySource<'a> = dyn FnMut() -> Result<Option<Vec<u8>>, String> + 'a;

/// Whether a transaction is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Block {
    None,
    Open,
    Failed,
}

/// A connection that is opened when it is needed, to the first endpoint that answers.
pub(crate) struct Connection {
    pub(crate) target: Target,
    link: Option<(Postgres, Endpoint)>,
    interrupts: Interrupts,
    timeout: Option<Duration>,
    block: Block,
}

impl Connection {
    pub(crate) fn new(target: Target, interrupts: Interrupts) -> Connection {
        Connection {
            target,
            link: None,
            interrupts,
            timeout: None,
            block: Block::None,
        }
    }

    /// Waits for the server no longer than this.
    pub(crate) fn with_timeout(mut self, timeout: Duration) -> Connection {
        self.timeout = Some(timeout);
        self
    }

    /// Whether a transaction is open, as of the last statement.
    pub(crate) fn block(&self) -> Block {
        self.block
    }

    /// Version and address of the server.
    pub(crate) fn server(&mut self) -> Result<(String, String), LinkError> {
        self.open()?;
        let (link, endpoint) = self.link.as_ref().expect("just opened");
        Ok((link.server_version.clone(), endpoint.to_string()))
    }

    /// Goes on with another database.
    pub(crate) fn reconnect(&mut self, database: &str) -> Result<(), LinkError> {
        let before = std::mem::replace(&mut self.target.database, database.to_string());
        let old = self.link.take();
        match self.open() {
            Ok(()) => {
                self.block = Block::None;
                Ok(())
            }
            Err(error) => {
                self.target.database = before;
                self.link = old;
                Err(error)
            }
        }
    }

    fn open(&mut self) -> Result<(), LinkError> {
        if self.link.is_some() {
            return Ok(());
        }
        let mut result = Err(LinkError::Protocol("no address"));
        for endpoint in &self.target.endpoints {
            match Postgres::connect(endpoint, &self.target, self.timeout) {
                Ok(link) => {
                    self.link = Some((link, endpoint.clone()));
                    return Ok(());
                }
                // A server's refusal is worth more than a node that does not answer.
                Err(error @ LinkError::Server(_)) => return Err(error),
                Err(error) => result = Err(error),
            }
        }
        result
    }

    /// Runs statements as one simple query. `copy` gives the data of COPY FROM STDIN.
    ///
    /// # Errors
    /// The connection is lost; the next call opens another. A refused statement is no error here:
    /// the server has said why.
    pub(crate) fn run(
        &mut self,
        sql: &str,
        copy: &mut CopySource<'_>,
        hear: &mut dyn FnMut(Said),
    ) -> Result<(), LinkError> {
        self.open()?;
        let (link, endpoint) = self.link.as_mut().expect("just opened");
        let running = link.cancel_key().map(|key| (endpoint.clone(), key));
        self.interrupts.set_running(running);
        let result = converse(link, sql, copy, hear);
        self.interrupts.set_running(None);
        match result {
            Ok(block) => {
                self.block = block;
                Ok(())
            }
            Err(error) => {
                self.link = None;
                self.block = Block::None;
                Err(error)
            }
        }
    }
}

fn converse(
    link: &mut Postgres,
    sql: &str,
    copy: &mut CopySource<'_>,
    hear: &mut dyn FnMut(Said),
) -> Result<Block, LinkError> {
    let mut query = sql.as_bytes().to_vec();
    query.push(0);
    link.send_message(b'Q', &query)?;
    let mut rows: Option<Rows> = None;
    loop {
        let (kind, body) = link.next_message()?;
        match kind {
            b'T' => {
                let columns = columns(body).ok_or(LinkError::Protocol("RowDescription"))?;
                rows = Some(Rows {
                    columns,
                    rows: Vec::new(),
                });
            }
            b'D' => {
                let row = row(body).ok_or(LinkError::Protocol("DataRow"))?;
                rows.get_or_insert_default().rows.push(row);
            }
            b'C' => {
                let tag = String::from_utf8_lossy(body.strip_suffix(&[0]).unwrap_or(body));
                hear(match rows.take() {
                    Some(rows) => Said::Rows(rows, tag.into_owned()),
                    None => Said::Done(tag.into_owned()),
                });
            }
            b'E' => {
                rows = None;
                hear(Said::Failed(Report::decode(body)));
            }
            b'N' => hear(Said::Notice(Report::decode(body))),
            b'd' => hear(Said::CopyOut(body.to_vec())),
            b'G' => {
                send_copy(link, copy)?;
            }
            b'Z' => {
                return match body {
                    b"I" => Ok(Block::None),
                    b"T" => Ok(Block::Open),
                    b"E" => Ok(Block::Failed),
                    _ => Err(LinkError::Protocol("ReadyForQuery")),
                };
            }
            // Empty query, parameter status, the beginning and end of COPY TO STDOUT.
            _ => {}
        }
    }
}

/// Sends the data of COPY FROM STDIN; if it cannot be read the server is told to copy nothing.
fn send_copy(link: &mut Postgres, copy: &mut CopySource<'_>) -> Result<(), LinkError> {
    loop {
        match copy() {
            Ok(Some(bytes)) => link.send_message(b'd', &bytes)?,
            Ok(None) => return link.send_message(b'c', &[]),
            Err(reason) => {
                let mut reason = reason.into_bytes();
                reason.retain(|&byte| byte != 0);
                reason.push(0);
                return link.send_message(b'f', &reason);
            }
        }
    }
}

/// Types whose values stand at the right: oid, int8, int2, int4, float4, float8, money, numeric.
const NUMBERS: [u32; 8] = [26, 20, 21, 23, 700, 701, 790, 1700];

fn columns(mut body: &[u8]) -> Option<Vec<Column>> {
    let count = u16::from_be_bytes(take(&mut body)?);
    let mut columns = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        let end = body.iter().position(|&byte| byte == 0)?;
        let name = String::from_utf8_lossy(&body[..end]).into_owned();
        body = &body[end + 1..];
        // Table, column, type, then size, modifier and format.
        let _: [u8; 6] = take(&mut body)?;
        let ty = u32::from_be_bytes(take(&mut body)?);
        let _: [u8; 8] = take(&mut body)?;
        columns.push(Column {
            name,
            is_number: NUMBERS.contains(&ty),
        });
    }
    Some(columns)
}

fn row(mut body: &[u8]) -> Option<Vec<Option<String>>> {
    let count = u16::from_be_bytes(take(&mut body)?);
    let mut cells = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        let length = i32::from_be_bytes(take(&mut body)?);
        let Ok(length) = usize::try_from(length) else {
            cells.push(None);
            continue;
        };
        let (cell, rest) = body.split_at_checked(length)?;
        cells.push(Some(String::from_utf8_lossy(cell).into_owned()));
        body = rest;
    }
    Some(cells)
}

fn take<const N: usize>(body: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = body.split_first_chunk::<N>()?;
    *body = rest;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_and_rows_are_read() {
        let mut body = vec![0, 1];
        body.extend_from_slice(b"id\0");
        body.extend_from_slice(&[0; 6]);
        body.extend_from_slice(&23u32.to_be_bytes());
        body.extend_from_slice(&[0; 8]);
        let expected = Column {
            name: "id".into(),
            is_number: true,
        };
        assert_eq!(columns(&body), Some(vec![expected]));
        assert_eq!(columns(&body[..9]), None);
        let cells = row(b"\0\x02\0\0\0\x017\xff\xff\xff\xff");
        assert_eq!(cells, Some(vec![Some("7".into()), None]));
        assert_eq!(row(b"\0\x01\0\0\0\x05ab"), None);
    }
}
