//! What coordinator and workers say, as bytes: a line of text at first, so that other versions are
//! told apart, and frames after it: a length of four bytes, big-endian, and the message.

use super::packed::{PackedPart, PackedSecond};
use super::packed_sessions::{ChangedPiece, PackedSessions, PackedSessionsSecond};
use super::recorded::Piece;
use super::{FORMAT, SILENCE};
use links::lock;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The longest greeting in bytes.
const LINE_BYTES_MAX: usize = 512;
/// The largest message to a worker, in bytes.
pub(super) const ORDER_BYTES_MAX: u32 = 1 << 20;
/// The largest message from a worker, in bytes: fifteen histograms of some 20,000 steps each.
pub(super) const ANSWER_BYTES_MAX: u32 = 64 << 20;

/// How a greeting begins, to a worker and from it.
const GREETING: &str = "trellis bench worker";

/// To a worker.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) enum Order {
    /// Connects the clients of a part.
    Prepare {
        /// The arguments of the run as the command line has them.
        arguments: Vec<String>,
        /// The part, from 0.
        number: u32,
        /// Parts in all.
        count: u32,
    },
    /// Asks for the time.
    Ping,
    /// The coordinator is there.
    Beat,
    /// Begins, when the worker's clock says so, in microseconds since its start.
    Begin { at_us: u64 },
    /// So many transactions are to compete for each row.
    Want(Vec<u32>),
    /// Ends the run before its time.
    Stop,
    /// Loads and connects a part of a run of sessions.
    Sessions {
        /// The resolved document, as JSON.
        document: String,
        /// The part, from 0.
        number: u32,
        /// Parts in all.
        count: u32,
    },
}

/// From a worker.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) enum Answer {
    /// It does not take part, or does not go on.
    Refused(String),
    /// The clocks: microseconds since it was started, which only grow, and since 1970.
    Pong { steady_us: u64, unix_us: u64 },
    /// All clients are connected. With what it would run, for a comparison.
    Ready(Vec<(String, String)>),
    /// It is there; so many transactions wait for a connection.
    Beat { waiting: u64 },
    /// A second of the run is over.
    Second { second: u64, counts: PackedSecond },
    /// So many transactions compete for each row.
    Competing(Vec<u32>),
    /// The run is over. A piece of what was recorded of its history.
    Seen(Piece),
    /// The run is over, and all that was recorded has been sent.
    Done(Box<PackedPart>),
    /// A second of a run of sessions is over.
    SessionsSecond {
        second: u64,
        counts: PackedSessionsSecond,
    },
    /// The run is over. A piece of what it has changed.
    Changed(ChangedPiece),
    /// The run is over, and all that it has changed has been sent.
    SessionsDone(Box<PackedSessions>),
}

/// A connection whose messages several threads send.
#[derive(Debug)]
pub(super) struct Line(Mutex<TcpStream>);

impl Line {
    /// The sending end.
    pub(super) fn new(stream: &TcpStream) -> io::Result<Line> {
        let stream = stream.try_clone()?;
        stream.set_write_timeout(Some(SILENCE))?;
        stream.set_nodelay(true)?;
        Ok(Line(Mutex::new(stream)))
    }

    pub(super) fn send(&self, message: &impl Serialize) -> io::Result<()> {
        let mut bytes = vec![0; 4];
        bytes = postcard::to_extend(message, bytes).map_err(io::Error::other)?;
        let length = u32::try_from(bytes.len() - 4).map_err(io::Error::other)?;
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        lock(&self.0).write_all(&bytes)
    }

    /// Ends both directions; whoever reads hears of it.
    pub(super) fn close(&self) {
        // It may have been closed by the other side.
        let _ = lock(&self.0).shutdown(Shutdown::Both);
    }
}

/// Reads a message of at most so many bytes. Memory grows with what comes, not with what is said to
/// come.
pub(super) fn receive<T: DeserializeOwned>(
    stream: &mut TcpStream,
    bytes_max: u32,
) -> io::Result<T> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > bytes_max {
        let text = format!("a message of {length} bytes, of {bytes_max} that are allowed");
        return Err(io::Error::new(ErrorKind::InvalidData, text));
    }
    let mut bytes = Vec::new();
    stream.take(u64::from(length)).read_to_end(&mut bytes)?;
    if bytes.len() < length as usize {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    match postcard::take_from_bytes(&bytes) {
        Ok((message, [])) => Ok(message),
        Ok(_) | Err(_) => Err(io::Error::new(
            ErrorKind::InvalidData,
            "a message that cannot be read",
        )),
    }
}

/// The line with which both sides begin.
pub(super) fn greeting(rest: &str) -> String {
    let release = env!("CARGO_PKG_VERSION");
    format!("{GREETING} {release} format {FORMAT} {rest}\n")
}

/// Tells this program from others of the same release; `None` where the system does not show it.
pub(super) fn build() -> Option<String> {
    // Not by its name: another program may lie there by now.
    let mut file = File::open("/proc/self/exe").ok()?;
    let mut hasher = DefaultHasher::new();
    let mut bytes = vec![0; 1 << 16];
    loop {
        match file.read(&mut bytes).ok()? {
            0 => return Some(format!("{:016x}", hasher.finish())),
            count => hasher.write(&bytes[..count]),
        }
    }
}

/// Reads the other side's greeting: what follows the version.
///
/// # Errors
/// In words, for the other side: it is none, or of another version.
pub(super) fn greeted(line: &str) -> Result<&str, String> {
    let rest = line.strip_prefix(GREETING).ok_or_else(|| {
        String::from("this port belongs to trellis bench worker, which takes no other requests")
    })?;
    let own = greeting("");
    let own = own[GREETING.len()..].trim();
    let mut words = rest.trim_start().splitn(4, ' ');
    let mut word = || words.next().unwrap_or_default();
    let said = format!("{} {} {}", word(), word(), word());
    match said.trim() == own {
        true => Ok(word()),
        false => Err(format!(
            "versions differ: {} at one end, {own} at the other; both must be the same",
            said.trim()
        )),
    }
}

/// Reads a line; all of it within `patience`.
pub(super) fn read_line(stream: &mut TcpStream, patience: Duration) -> io::Result<String> {
    let until = Instant::now() + patience;
    let mut line = Vec::new();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        if byte == *b"\n" {
            break;
        }
        line.push(byte[0]);
        if line.len() > LINE_BYTES_MAX {
            let text = "a first line that is too long";
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }
    }
    stream.set_read_timeout(Some(SILENCE))?;
    let line = String::from_utf8(line);
    line.map_err(|_| io::Error::new(ErrorKind::InvalidData, "a first line that is no text"))
}
