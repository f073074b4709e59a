//! A server that answers every statement of TPC-C at once and knows nothing: against it a run
//! measures the client alone.
//!
//! A SELECT gives one row and RETURNING gives one, of ones; what reads or changes order lines gives
//! ten. Everything else is said to have concerned one row.

use crate::postgres::{frame, push_text};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Rows of an order.
const LINES: usize = 10;
/// Bytes that are read at a time.
const READ_BYTES: usize = 16 << 10;
const LISTENER: u64 = u64::MAX;

/// Answers on a listener, for ever.
///
/// # Errors
/// The listener or the system's list of events fails. A client that says what it may not is cut
/// off.
pub fn serve(listener: &TcpListener) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    let event = |at| EpollEvent::new(EpollFlags::EPOLLIN, at);
    epoll.add(listener, event(LISTENER))?;
    let mut clients: BTreeMap<u64, Client> = BTreeMap::new();
    let mut next = 0;
    let mut events = [EpollEvent::empty(); 64];
    loop {
        let count = match epoll.wait(&mut events, EpollTimeout::NONE) {
            Ok(count) => count,
            Err(nix::errno::Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
        };
        for ready in &events[..count] {
            if ready.data() == LISTENER {
                let (stream, _) = match listener.accept() {
                    Ok(accepted) => accepted,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                    Err(_) => {
                        // As when there are too many: it would be asked again at once.
                        std::thread::sleep(Duration::from_millis(10));
                        continue;
                    }
                };
                stream.set_nodelay(true)?;
                epoll.add(&stream, event(next))?;
                clients.insert(next, Client::new(stream));
                next += 1;
                continue;
            }
            let at = ready.data();
            if clients
                .get_mut(&at)
                .is_some_and(|client| client.serve().is_none())
            {
                clients.remove(&at);
            }
        }
    }
}

/// What a statement answers.
#[derive(Clone, Default)]
struct Answer {
    /// DataRow messages and CommandComplete.
    bytes: Vec<u8>,
    /// The transaction status after it, if it changes it.
    status: Option<u8>,
}

impl Answer {
    fn of(sql: &str) -> Answer {
        let word = sql.split(' ').next().unwrap_or("");
        let status = match word {
            "BEGIN" => Some(b'T'),
            "COMMIT" | "ROLLBACK" => Some(b'I'),
            _ => None,
        };
        let columns = match (word, sql.rsplit_once(" RETURNING ")) {
            ("SELECT", _) => columns(sql["SELECT ".len()..].split(" FROM ").next().unwrap_or("")),
            (_, Some((_, list))) => columns(list),
            _ => 0,
        };
        let of_lines =
            sql.starts_with("UPDATE order_line") || sql.contains(" FROM order_line WHERE");
        let rows = match (columns, of_lines) {
            (0, _) => 0,
            (_, true) => LINES,
            (_, false) => 1,
        };
        let mut bytes = Vec::new();
        for _ in 0..rows {
            frame(&mut bytes, b'D', |out| {
                out.extend_from_slice(&(columns as u16).to_be_bytes());
                for _ in 0..columns {
                    out.extend_from_slice(b"\0\0\0\x011");
                }
            });
        }
        let tag = match (word, rows) {
            ("BEGIN" | "COMMIT" | "ROLLBACK" | "SET", _) => word.to_owned(),
            ("INSERT", _) => "INSERT 0 1".to_owned(),
            (_, rows) => format!("{word} {}", rows.max(1)),
        };
        frame(&mut bytes, b'C', |out| push_text(&tag, out));
        Answer { bytes, status }
    }
}

/// Columns of a list: commas outside of parentheses, and one more.
fn columns(list: &str) -> usize {
    let mut depth = 0;
    let mut count = 1;
    for byte in list.bytes() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b',' if depth == 0 => count += 1,
            _ => {}
        }
    }
    count
}

struct Client {
    stream: TcpStream,
    input: Vec<u8>,
    out: Vec<u8>,
    began: bool,
    status: u8,
    statements: BTreeMap<Vec<u8>, Answer>,
    /// What Bind has chosen.
    bound: Vec<u8>,
}

impl Client {
    fn new(stream: TcpStream) -> Client {
        Client {
            stream,
            input: Vec::new(),
            out: Vec::new(),
            began: false,
            status: b'I',
            statements: BTreeMap::new(),
            bound: Vec::new(),
        }
    }

    /// Reads what has come and answers it; `None`: the client is gone.
    fn serve(&mut self) -> Option<()> {
        let old = self.input.len();
        self.input.resize(old + READ_BYTES, 0);
        let read = match self.stream.read(&mut self.input[old..]) {
            Ok(0) => return None,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(_) => return None,
        };
        self.input.truncate(old + read);
        let input = std::mem::take(&mut self.input);
        let mut rest = input.as_slice();
        loop {
            let length = self.first_length(rest)?;
            let Some((message, after)) = rest.split_at_checked(length) else {
                break;
            };
            let head = usize::from(self.began);
            let kind = if self.began { message[0] } else { 0 };
            self.answer(kind, &message[head + 4..])?;
            rest = after;
        }
        self.input = rest.to_vec();
        self.stream.write_all(&self.out).ok()?;
        self.out.clear();
        Some(())
    }

    /// Bytes of the first message, of which at least the length must be there; the first of all has
    /// no type. `None`: it is none.
    fn first_length(&self, bytes: &[u8]) -> Option<usize> {
        let head = usize::from(self.began);
        let Some(length) = bytes.get(head..head + 4) else {
            return Some(head + 4);
        };
        let length = u32::from_be_bytes(length.try_into().ok()?) as usize;
        (4..1 << 20).contains(&length).then_some(head + length)
    }

    fn answer(&mut self, kind: u8, body: &[u8]) -> Option<()> {
        match kind {
            0 => {
                self.began = true;
                frame(&mut self.out, b'R', |out| out.extend_from_slice(&[0; 4]));
                frame(&mut self.out, b'S', |out| {
                    push_text("server_version", out);
                    push_text("echo", out);
                });
                self.ready();
            }
            b'P' => {
                let mut parts = body.split(|byte| *byte == 0);
                let (name, sql) = (parts.next()?, parts.next()?);
                let answer = Answer::of(std::str::from_utf8(sql).ok()?);
                self.statements.insert(name.to_vec(), answer);
                frame(&mut self.out, b'1', |_| {});
            }
            b'B' => {
                let name = body.split(|byte| *byte == 0).nth(1)?;
                self.bound.clear();
                self.bound.extend_from_slice(name);
                frame(&mut self.out, b'2', |_| {});
            }
            b'E' => {
                let answer = self.statements.get(&self.bound)?;
                self.out.extend_from_slice(&answer.bytes);
                self.status = answer.status.unwrap_or(self.status);
            }
            b'Q' => {
                let sql = std::str::from_utf8(body.strip_suffix(&[0])?).ok()?;
                let answer = Answer::of(sql);
                self.out.extend_from_slice(&answer.bytes);
                self.status = answer.status.unwrap_or(self.status);
                self.ready();
            }
            b'S' => self.ready(),
            _ => return None,
        }
        Some(())
    }

    fn ready(&mut self) {
        let status = self.status;
        frame(&mut self.out, b'Z', |out| out.push(status));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_answer_as_many_columns_and_rows_as_they_ask_for() {
        let shape = |sql: &str| {
            let mut answers = crate::answers::Answers::new();
            let answer = Answer::of(sql);
            let mut rest = answer.bytes.as_slice();
            while let Some((kind, tail)) = rest.split_first() {
                let length = u32::from_be_bytes(tail[..4].try_into().unwrap()) as usize;
                match kind {
                    b'D' => answers.push_row(&tail[4..length]).unwrap(),
                    _ => answers.finish_statement(tail[4..length].strip_suffix(&[0]).unwrap()),
                }
                rest = &tail[length..];
            }
            (
                answers.rows(0),
                answers.columns(0),
                answers.tag(0).to_owned(),
            )
        };
        assert_eq!(
            shape("SELECT a, substr(b, 1, 2) FROM t"),
            (1, 2, "SELECT 1".into())
        );
        assert_eq!(
            shape("UPDATE t SET a = $1, b = 2"),
            (0, 0, "UPDATE 1".into())
        );
        assert_eq!(
            shape("UPDATE t SET a = $1 RETURNING a, b"),
            (1, 2, "UPDATE 1".into())
        );
        assert_eq!(
            shape("UPDATE order_line SET a = 1 RETURNING ol_amount"),
            (10, 1, "UPDATE 10".into())
        );
        assert_eq!(
            shape("INSERT INTO t VALUES ($1)"),
            (0, 0, "INSERT 0 1".into())
        );
        assert_eq!(shape("COMMIT"), (0, 0, "COMMIT".into()));
    }
}
