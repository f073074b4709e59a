//! A client of Redis: commands and their replies (RESP, version 2).

use crate::answers::ServerError;
use crate::link::{LinkError, reach, ready};
use crate::stream::Stream;
use crate::url::{Endpoint, Target};
use std::time::Duration;

/// The largest reply that is accepted, in bytes and in elements.
const REPLY_MAX: usize = 256 << 20;
/// Lists within lists, at most.
const DEPTH_MAX: usize = 8;
/// The longest first line of a reply, such as an error.
const LINE_BYTES_MAX: usize = 64 << 10;

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

impl Reply {
    /// Its bytes, or that there are none; `None`: it is something else.
    pub fn bytes(self) -> Option<Option<Vec<u8>>> {
        match self {
            Reply::Bytes(bytes) => Some(bytes),
            Reply::Status(_) | Reply::Int(_) | Reply::List(_) => None,
        }
    }

    /// What is in the list; `None`: it is none.
    pub fn list(self) -> Option<Vec<Reply>> {
        match self {
            Reply::List(list) => Some(list),
            Reply::Status(_) | Reply::Int(_) | Reply::Bytes(_) => None,
        }
    }

    /// A list of bytes, of which some may be missing; `None`: it is something else.
    pub fn values(self) -> Option<Vec<Option<Vec<u8>>>> {
        self.list()?.into_iter().map(Reply::bytes).collect()
    }

    /// A list of bytes of which none is missing; `None`: it is something else.
    pub fn texts(self) -> Option<Vec<Vec<u8>>> {
        self.values()?.into_iter().collect()
    }
}

/// A reply, or the words of the server's refusal.
pub type Said = Result<Reply, String>;

/// Commands of one round.
#[derive(Debug, Default)]
pub struct Commands {
    bytes: Vec<u8>,
    count: usize,
}

impl Commands {
    /// These, each a list of words.
    pub fn of(commands: &[&[&[u8]]]) -> Commands {
        let mut all = Commands::default();
        commands.iter().for_each(|words| all.push(words));
        all
    }

    /// Appends a command.
    pub fn push(&mut self, words: &[&[u8]]) {
        push_command(words, &mut self.bytes);
        self.count += 1;
    }

    /// Appends those of another round.
    pub fn append(&mut self, other: &Commands) {
        self.bytes.extend_from_slice(&other.bytes);
        self.count += other.count;
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }
}

/// One connection to a Redis server.
#[derive(Debug)]
pub struct Redis {
    /// Its bytes.
    pub stream: Stream,
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
            stream: reach(endpoint, timeout)?,
        };
        if let Some(password) = &target.password {
            ready(redis.command(&[b"AUTH", password.as_bytes()]))?;
        }
        redis.stream.set_timeout(timeout)?;
        Ok(redis)
    }

    /// The release of the server.
    ///
    /// # Errors
    /// As for [`Redis::command`].
    pub async fn version(&mut self) -> Result<String, LinkError> {
        let Reply::Bytes(Some(info)) = self.command(&[b"INFO", b"server"]).await? else {
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
    pub async fn command(&mut self, words: &[&[u8]]) -> Result<Reply, LinkError> {
        self.push(words);
        self.flush().await?;
        self.reply().await
    }

    /// Puts a command into the buffer: [`Redis::flush`] sends it, [`Redis::reply`] waits for the
    /// reply of each in turn.
    pub fn push(&mut self, words: &[&[u8]]) {
        push_command(words, &mut self.stream.out);
    }

    /// Sends what was put into the buffer.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn flush(&mut self) -> Result<(), LinkError> {
        self.stream.flush().await
    }

    /// Sends commands, and waits for the replies of all of them.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn round(&mut self, commands: &Commands) -> Result<Vec<Said>, LinkError> {
        self.stream.out.extend_from_slice(&commands.bytes);
        self.flush().await?;
        let mut said = Vec::with_capacity(commands.count);
        for _ in 0..commands.count {
            said.push(match self.reply().await {
                Ok(reply) => Ok(reply),
                Err(LinkError::Server(error)) => Err(error.message),
                Err(error) => return Err(error),
            });
        }
        Ok(said)
    }

    /// Waits for the next reply.
    ///
    /// # Errors
    /// As for [`Redis::command`].
    pub async fn reply(&mut self) -> Result<Reply, LinkError> {
        // Lists that are not complete: how many elements each still wants.
        let mut open: Vec<(usize, Vec<Reply>)> = Vec::new();
        loop {
            let mut reply = match self.head().await? {
                Head::Reply(reply) => reply,
                Head::Bytes(length) => {
                    self.stream.fill(length + 2).await?;
                    let (start, end) = self.stream.take(length + 2);
                    let bytes = self.stream.bytes((start, end - 2)).to_vec();
                    Reply::Bytes(Some(bytes))
                }
                Head::List(0) => Reply::List(Vec::new()),
                Head::List(_) if open.len() == DEPTH_MAX => {
                    return Err(LinkError::Protocol("a reply is too deep"));
                }
                Head::List(count) => {
                    open.push((count, Vec::new()));
                    continue;
                }
            };
            loop {
                let Some((wanted, mut list)) = open.pop() else {
                    return Ok(reply);
                };
                list.push(reply);
                if list.len() < wanted {
                    open.push((wanted, list));
                    break;
                }
                reply = Reply::List(list);
            }
        }
    }

    /// The first line of a reply.
    async fn head(&mut self) -> Result<Head, LinkError> {
        let mut wanted = 1;
        let length = loop {
            self.stream.fill(wanted).await?;
            let unread = self.stream.unread();
            match unread.iter().position(|byte| *byte == b'\n') {
                Some(at) => break at + 1,
                None if unread.len() > LINE_BYTES_MAX => {
                    return Err(LinkError::Protocol("a line of a reply is too long"));
                }
                None => wanted = unread.len() + 1,
            }
        };
        let place = self.stream.take(length);
        head_of(self.stream.bytes(place))
    }
}

/// Appends a command as it travels.
pub fn push_command(words: &[&[u8]], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// What the first line of a reply announces.
#[derive(Debug, PartialEq, Eq)]
enum Head {
    /// It is all.
    Reply(Reply),
    /// So many bytes.
    Bytes(usize),
    /// So many replies.
    List(usize),
}

fn head_of(line: &[u8]) -> Result<Head, LinkError> {
    let line = String::from_utf8_lossy(line);
    let line = line.trim_end_matches(['\r', '\n']);
    let (kind, rest) = line
        .split_at_checked(1)
        .ok_or(LinkError::Protocol("a reply"))?;
    let number = || {
        rest.parse::<i64>()
            .map_err(|_| LinkError::Protocol("a number"))
    };
    // Negative: there is none.
    let count = || {
        let count = usize::try_from(number()?).ok();
        match count.is_some_and(|count| count > REPLY_MAX) {
            true => Err(LinkError::Protocol("a reply is too large")),
            false => Ok(count),
        }
    };
    Ok(match kind {
        "+" => Head::Reply(Reply::Status(rest.to_owned())),
        "-" => {
            return Err(LinkError::Server(ServerError {
                sqlstate: String::new(),
                message: rest.to_owned(),
            }));
        }
        ":" => Head::Reply(Reply::Int(number()?)),
        "$" => count()?.map_or(Head::Reply(Reply::Bytes(None)), Head::Bytes),
        "*" => count()?.map_or(Head::Reply(Reply::Bytes(None)), Head::List),
        _ => return Err(LinkError::Protocol("a kind of reply")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    /// What a server says before it closes the connection.
    fn read(bytes: &[u8]) -> Result<Reply, LinkError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        listener.accept().unwrap().0.write_all(bytes).unwrap();
        let stream = Stream::new(near);
        ready(Redis { stream }.reply())
    }

    #[test]
    fn replies_are_read() {
        assert_eq!(read(b"+OK\r\n").unwrap(), Reply::Status("OK".into()));
        assert_eq!(read(b":-7\r\n").unwrap(), Reply::Int(-7));
        assert_eq!(read(b"$-1\r\n").unwrap(), Reply::Bytes(None));
        let list = read(b"*2\r\n*2\r\n$4\r\na\r\nb\r\n*0\r\n:1\r\n").unwrap();
        let inner = [
            Reply::Bytes(Some(b"a\r\nb".to_vec())),
            Reply::List(Vec::new()),
        ];
        assert_eq!(
            list,
            Reply::List(vec![Reply::List(inner.to_vec()), Reply::Int(1)])
        );
    }

    #[test]
    fn bad_replies_are_errors() {
        assert!(matches!(read(b"-ERR no\r\n"), Err(LinkError::Server(_))));
        assert!(matches!(read(b""), Err(LinkError::Io(..))));
        assert!(matches!(read(b"$9\r\nab\r\n"), Err(LinkError::Io(..))));
        assert!(matches!(read(b"?\r\n"), Err(LinkError::Protocol(_))));
        assert!(matches!(
            read(b"$999999999999\r\n"),
            Err(LinkError::Protocol(_))
        ));
        let deep = b"*1\r\n".repeat(100);
        assert!(matches!(read(&deep), Err(LinkError::Protocol(_))));
        assert!(matches!(
            read(&[b'+'; 100_000]),
            Err(LinkError::Protocol(_))
        ));
    }
}
