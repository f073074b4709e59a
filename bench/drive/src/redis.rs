//! A client of Redis: commands and their replies (RESP, version 2).

use crate::answers::ServerError;
use crate::link::{LinkError, reach};
use crate::url::{Endpoint, Target};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The largest reply that is accepted, in bytes and in elements.
const REPLY_MAX: usize = 256 << 20;
/// Arrays within arrays, at most.
const DEPTH_MAX: u32 = 8;

/// What the server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Such as `OK`.
    Status(String),
    /// A number.
    Int(i64),
    /// Bytes; `None`: there are none.
    Bytes(Option<Vec<u8>>),
    /// A list.
    List(Vec<Reply>),
}

/// One connection to a Redis server.
#[derive(Debug)]
pub struct Redis {
    stream: BufReader<TcpStream>,
    out: Vec<u8>,
    line: String,
}

impl Redis {
    /// Connects, and logs in if the target has a password. `timeout` bounds every wait.
    ///
    /// # Errors
    /// No server, or it refuses the password.
    pub fn connect(
        endpoint: &Endpoint,
        target: &Target,
        timeout: Option<Duration>,
    ) -> Result<Redis, LinkError> {
        let mut redis = Redis {
            stream: BufReader::new(reach(endpoint, timeout)?),
            out: Vec::new(),
            line: String::new(),
        };
        if let Some(password) = &target.password {
            redis.command(&[b"AUTH", password.as_bytes()])?;
        }
        redis.stream.get_ref().set_read_timeout(timeout)?;
        Ok(redis)
    }

    /// The release of the server.
    ///
    /// # Errors
    /// As for [`Redis::command`].
    pub fn version(&mut self) -> Result<String, LinkError> {
        let Reply::Bytes(Some(info)) = self.command(&[b"INFO", b"server"])? else {
            return Err(LinkError::Protocol("INFO"));
        };
        let info = String::from_utf8_lossy(&info);
        let version = info
            .lines()
            .find_map(|line| line.strip_prefix("redis_version:"));
        Ok(version.unwrap_or("of an unknown version").to_owned())
    }

    /// Sends one command and waits for its reply.
    ///
    /// # Errors
    /// The connection broke, or the server refuses the command: [`LinkError::Server`] with an empty
    /// SQLSTATE.
    pub fn command(&mut self, words: &[&[u8]]) -> Result<Reply, LinkError> {
        self.push(words);
        self.flush()?;
        self.reply()
    }

    /// Puts a command into the buffer: [`Redis::flush`] sends it, [`Redis::reply`] waits for the
    /// reply of each in turn.
    pub fn push(&mut self, words: &[&[u8]]) {
        let out = &mut self.out;
        out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            out.extend_from_slice(word);
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Sends what was put into the buffer.
    ///
    /// # Errors
    /// The connection broke.
    pub fn flush(&mut self) -> Result<(), LinkError> {
        let sent = self.stream.get_mut().write_all(&self.out);
        self.out.clear();
        Ok(sent?)
    }

    /// Waits for the next reply.
    ///
    /// # Errors
    /// As for [`Redis::command`].
    pub fn reply(&mut self) -> Result<Reply, LinkError> {
        read_reply(&mut self.stream, &mut self.line, 0)
    }
}

/// Reads a reply; the line is a buffer.
fn read_reply(
    stream: &mut impl BufRead,
    line: &mut String,
    depth: u32,
) -> Result<Reply, LinkError> {
    line.clear();
    if stream.read_line(line)? == 0 {
        let text = String::from("the server closed the connection");
        return Err(LinkError::Io(ErrorKind::UnexpectedEof, text));
    }
    let (kind, rest) = line
        .split_at_checked(1)
        .ok_or(LinkError::Protocol("a reply"))?;
    let rest = rest.trim_end_matches(['\r', '\n']);
    let number = || {
        rest.parse::<i64>()
            .map_err(|_| LinkError::Protocol("a number"))
    };
    match kind {
        "+" => Ok(Reply::Status(rest.to_owned())),
        "-" => Err(LinkError::Server(ServerError {
            sqlstate: String::new(),
            message: rest.to_owned(),
        })),
        ":" => Ok(Reply::Int(number()?)),
        "$" => {
            let Ok(length) = usize::try_from(number()?) else {
                return Ok(Reply::Bytes(None));
            };
            if length > REPLY_MAX {
                return Err(LinkError::Protocol("a reply is too large"));
            }
            let mut bytes = vec![0; length + 2];
            stream.read_exact(&mut bytes)?;
            bytes.truncate(length);
            Ok(Reply::Bytes(Some(bytes)))
        }
        "*" => {
            let count = usize::try_from(number()?).unwrap_or(0);
            if count > REPLY_MAX || depth == DEPTH_MAX {
                return Err(LinkError::Protocol("a reply is too large"));
            }
            let each = (0..count).map(|_| read_reply(stream, line, depth + 1));
            Ok(Reply::List(each.collect::<Result<_, _>>()?))
        }
        _ => Err(LinkError::Protocol("a kind of reply")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Reply, LinkError> {
        read_reply(&mut &bytes[..], &mut String::new(), 0)
    }

    #[test]
    fn replies_are_read() {
        assert_eq!(read(b"+OK\r\n").unwrap(), Reply::Status("OK".into()));
        assert_eq!(read(b":-7\r\n").unwrap(), Reply::Int(-7));
        assert_eq!(read(b"$-1\r\n").unwrap(), Reply::Bytes(None));
        let list = read(b"*2\r\n$4\r\na\r\nb\r\n:1\r\n").unwrap();
        let bytes = Reply::Bytes(Some(b"a\r\nb".to_vec()));
        assert_eq!(list, Reply::List(vec![bytes, Reply::Int(1)]));
    }

    #[test]
    fn bad_replies_are_errors() {
        assert!(matches!(read(b"-ERR no\r\n"), Err(LinkError::Server(_))));
        assert!(matches!(read(b""), Err(LinkError::Io(..))));
        assert!(matches!(read(b"$9\r\nab\r\n"), Err(LinkError::Io(..))));
        assert!(matches!(read(b"?\r\n"), Err(LinkError::Protocol(_))));
        let deep = b"*1\r\n".repeat(100);
        assert!(matches!(read(&deep), Err(LinkError::Protocol(_))));
    }
}
