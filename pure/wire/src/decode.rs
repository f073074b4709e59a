//! Cuts the client's bytes into messages, across reads.

use crate::ClientMessage;
use crate::body;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use base::{SqlError, SqlState};

/// Largest startup packet, as in PostgreSQL.
pub const STARTUP_BYTES_MAX: usize = 10_000;
/// Largest message after startup: a statement, the parameters of one Bind, a piece of COPY data. A
/// larger one is read and dropped without being stored, and answered with 54000.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Largest announcement that is taken for a message at all, as in PostgreSQL: a larger one ends the
/// connection.
const ANNOUNCED_BYTES_MAX: usize = (1 << 30) - 1;

/// Messages from this size on are stored only while the node has memory for them.
const LARGE_BYTES: usize = 1 << 20;

/// Buffers above this size are given back once empty, so that an idle connection stays small.
const BUFFER_BYTES_KEPT: usize = 8 << 10;

/// Startup packets that are not a protocol version.
const CANCEL_REQUEST: u32 = 80_877_102;
const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;

/// What the client wants of the host.
#[derive(Clone, PartialEq, Debug)]
pub enum Incoming {
    /// A message for the session.
    Message(ClientMessage),
    /// The client asked for encryption or protocol features that do not exist: send these bytes at
    /// once and go on.
    Refuse(Vec<u8>),
    /// The client asked for TLS, which the host has offered: agree at once. What follows is
    /// encrypted; the host gives the decoder what it has decrypted.
    StartTls,
    /// The body of a message with which a client logs in. Not for the session.
    Password(Vec<u8>),
    /// A cancel request: pass it on, answer nothing, close the connection.
    Cancel {
        /// Backend number (`node::input::pid_of`).
        pid: i32,
        /// Proves that the canceller knows the session.
        secret: i32,
    },
}

/// Where the stream of bytes is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Before the startup packet; whether encryption has been refused already.
    Startup { ssl: bool, gss: bool },
    /// Tagged messages.
    Open,
    /// Out of step or ended: nothing is read any more.
    Over,
}

/// Incremental decoder of one connection: [`Decoder::push`] each read, then [`Decoder::next`] until
/// it returns `None`.
#[derive(Debug)]
pub struct Decoder {
    phase: Phase,
    /// Bytes that have come.
    buffer: Vec<u8>,
    /// Those before it are decoded.
    start: usize,
    /// A message that is too large, of which this many bytes are still to come: they are dropped.
    dropping: Option<Dropping>,
    /// Said next, before more is read.
    pending: Option<Incoming>,
    offers_tls: bool,
}

/// A message that is not stored.
#[derive(Debug)]
struct Dropping {
    tag: u8,
    left: usize,
    /// What is answered at its end.
    error: SqlError,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new()
    }
}

/// The number and the secret of the session that a cancel request concerns, if the first bytes of a
/// connection are one.
pub fn cancel_request(bytes: &[u8; 16]) -> Option<(i32, i32)> {
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let is_request = word(0) == 16 && word(4) == CANCEL_REQUEST;
    is_request.then(|| (word(8) as i32, word(12) as i32))
}

impl Decoder {
    /// The decoder of a new connection; allocates nothing.
    pub fn new() -> Decoder {
        let phase = Phase::Startup {
            ssl: false,
            gss: false,
        };
        Decoder {
            phase,
            buffer: Vec::new(),
            start: 0,
            dropping: None,
            pending: None,
            offers_tls: false,
        }
    }

    /// From here on a request for TLS is agreed to.
    pub fn offer_tls(&mut self) {
        self.offers_tls = true;
    }

    /// Whether bytes have come that are not decoded. Behind a request for TLS they are not
    /// encrypted, and somebody between may have put them there.
    pub fn has_unread(&self) -> bool {
        self.start < self.buffer.len()
    }

    /// Adds what was read from the client.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.phase != Phase::Over {
            if self.start > 0 {
                self.buffer.drain(..self.start);
                self.start = 0;
            }
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// The next message; `None` when more bytes are needed or the connection is over.
    #[expect(
        clippy::should_implement_trait,
        reason = "`None` is not the end: more bytes may come"
    )]
    pub fn next(&mut self) -> Option<Incoming> {
        if let Some(pending) = self.pending.take() {
            return Some(pending);
        }
        if self.dropping.is_some() {
            return self.drop_bytes();
        }
        let length = match self.phase {
            Phase::Over => None,
            _ => self.frame_bytes(&self.buffer[self.start..]),
        };
        let said = match length {
            Some(Ok(length)) if length <= self.buffer.len() - self.start => {
                let buffer = core::mem::take(&mut self.buffer);
                let frame = &buffer[self.start..self.start + length];
                self.start += length;
                let said = self.decode(frame);
                self.buffer = buffer;
                Some(said)
            }
            Some(Ok(length)) if self.is_too_large(length) => {
                let error = body::too_large(self.buffer[self.start], length - 1);
                self.begin_dropping(length, error);
                return self.drop_bytes();
            }
            Some(Err(error)) => Some(self.end(error)),
            Some(Ok(_)) | None => None,
        };
        self.shrink();
        said
    }

    /// The tag of the message that [`Decoder::next`] gives next, if all of it has come.
    pub fn next_tag(&self) -> Option<u8> {
        if self.phase != Phase::Open || self.pending.is_some() || self.dropping.is_some() {
            return None;
        }
        let bytes = &self.buffer[self.start..];
        match self.frame_bytes(bytes) {
            Some(Ok(length)) if length <= bytes.len() => bytes.first().copied(),
            Some(_) | None => None,
        }
    }

    fn is_too_large(&self, length: usize) -> bool {
        self.phase == Phase::Open && length > MESSAGE_BYTES_MAX
    }

    /// Drops what has come of a message that is too large; at its end it is answered.
    fn drop_bytes(&mut self) -> Option<Incoming> {
        let dropping = self.dropping.as_mut()?;
        let dropped = dropping.left.min(self.buffer.len() - self.start);
        dropping.left -= dropped;
        self.start += dropped;
        let left = dropping.left;
        self.shrink();
        if left > 0 {
            return None;
        }
        let Dropping { tag, error, .. } = self.dropping.take()?;
        Some(self.malformed(tag, error))
    }

    /// The next message, tag and all `length` bytes, is dropped and answered with `error`.
    fn begin_dropping(&mut self, length: usize, error: SqlError) {
        self.dropping = Some(Dropping {
            tag: self.buffer[self.start],
            left: length,
            error,
        });
    }

    /// Called when [`Decoder::next`] gives nothing: a large message of which a part has come is
    /// dropped, and answered with 53200, unless `has_room` says yes to the bytes that it will take.
    pub fn look_for_room(&mut self, has_room: impl FnOnce(u64) -> bool) {
        if self.phase != Phase::Open || self.dropping.is_some() {
            return;
        }
        let Some(Ok(length)) = self.frame_bytes(&self.buffer[self.start..]) else {
            return;
        };
        // In the buffer, in the message, and once more while the buffer grows.
        if length < LARGE_BYTES || has_room(3 * length as u64) {
            return;
        }
        self.begin_dropping(length, body::no_room(length - 1));
        let said = self.drop_bytes();
        debug_assert!(said.is_none(), "its end has not come");
    }

    /// Gives back what a large message has grown.
    fn shrink(&mut self) {
        if self.phase == Phase::Over || self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
            if self.phase == Phase::Over || self.buffer.capacity() > BUFFER_BYTES_KEPT {
                self.buffer = Vec::new();
            }
        }
    }

    /// Bytes held for messages whose end has not come yet.
    pub fn buffered_bytes(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Length of the frame that `bytes` begins with, tag included; `None` if its header is not
    /// there yet.
    fn frame_bytes(&self, bytes: &[u8]) -> Option<Result<usize, SqlError>> {
        let (tag, least, most) = match (self.phase, bytes.first()?) {
            (Phase::Startup { .. }, _) => (0, 8, STARTUP_BYTES_MAX),
            (_, tag) if is_large_kind(*tag) => (1, 4, ANNOUNCED_BYTES_MAX),
            _ => (1, 4, MESSAGE_BYTES_MAX),
        };
        let header = bytes.get(tag..tag + 4)?;
        let length = u32::from_be_bytes(header.try_into().expect("four bytes")) as usize;
        if length < least || length > most {
            let message = match self.phase {
                Phase::Startup { .. } => "invalid length of startup packet",
                _ => "invalid message length",
            };
            return Some(Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, message)));
        }
        Some(Ok(tag + length))
    }

    /// The connection cannot go on.
    fn end(&mut self, error: SqlError) -> Incoming {
        self.phase = Phase::Over;
        Incoming::Message(ClientMessage::Malformed { error, fatal: true })
    }

    fn decode(&mut self, frame: &[u8]) -> Incoming {
        match self.phase {
            Phase::Startup { ssl, gss } => self.startup(frame, ssl, gss),
            _ => self.message(frame),
        }
    }

    fn message(&mut self, frame: &[u8]) -> Incoming {
        let (tag, body) = (frame[0], &frame[5..]);
        if tag == b'X' {
            self.phase = Phase::Over;
        }
        if tag == b'p' {
            return Incoming::Password(body.to_vec());
        }
        match body::message(tag, body) {
            Ok(message) => Incoming::Message(message),
            Err(body::Bad { error, fatal: true }) => self.end(error),
            Err(body::Bad {
                error,
                fatal: false,
            }) => self.malformed(tag, error),
        }
    }

    /// A message that the stream goes on behind.
    fn malformed(&self, tag: u8, error: SqlError) -> Incoming {
        Incoming::Message(match tag {
            b'Q' | b'F' => ClientMessage::BadQuery(error),
            _ => ClientMessage::Malformed {
                error,
                fatal: false,
            },
        })
    }

    fn startup(&mut self, frame: &[u8], ssl: bool, gss: bool) -> Incoming {
        let code = u32::from_be_bytes(frame[4..8].try_into().expect("four bytes"));
        let rest = &frame[8..];
        match code {
            SSL_REQUEST if !ssl => {
                self.phase = Phase::Startup { ssl: true, gss };
                match self.offers_tls {
                    true => Incoming::StartTls,
                    false => Incoming::Refuse(vec![b'N']),
                }
            }
            GSS_REQUEST if !gss => {
                self.phase = Phase::Startup { ssl, gss: true };
                Incoming::Refuse(vec![b'N'])
            }
            CANCEL_REQUEST => {
                self.phase = Phase::Over;
                let Ok(parts) = <[u8; 8]>::try_from(rest) else {
                    let message = "invalid length of cancel request";
                    return self.end(SqlError::new(SqlState::PROTOCOL_VIOLATION, message));
                };
                let number = |at: usize| {
                    i32::from_be_bytes(parts[at..at + 4].try_into().expect("four bytes"))
                };
                Incoming::Cancel {
                    pid: number(0),
                    secret: number(4),
                }
            }
            _ if code >> 16 == 3 => self.protocol_3(code & 0xffff, rest),
            _ => {
                let message = format!(
                    "unsupported frontend protocol {}.{}: server supports 3.0 to 3.0",
                    code >> 16,
                    code & 0xffff
                );
                self.end(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
            }
        }
    }

    fn protocol_3(&mut self, minor: u32, rest: &[u8]) -> Incoming {
        let parameters = match body::startup(rest) {
            Ok(parameters) => parameters,
            Err(error) => return self.end(error),
        };
        self.phase = Phase::Open;
        let unknown: Vec<&str> = parameters
            .iter()
            .filter(|(name, _)| name.starts_with("_pq_."))
            .map(|(name, _)| name.as_str())
            .collect();
        let negotiate = (minor > 0 || !unknown.is_empty()).then(|| negotiation(&unknown));
        let startup = Incoming::Message(ClientMessage::Startup { parameters });
        match negotiate {
            Some(bytes) => {
                self.pending = Some(startup);
                Incoming::Refuse(bytes)
            }
            None => startup,
        }
    }
}

/// NegotiateProtocolVersion: version 3.0, and the options that are not known. PostgreSQL sends the
/// whole version, although its documentation speaks of the minor one.
fn negotiation(unknown: &[&str]) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&(3u32 << 16).to_be_bytes());
    body.extend_from_slice(&(unknown.len() as u32).to_be_bytes());
    for name in unknown {
        body.extend_from_slice(name.as_bytes());
        body.push(0);
    }
    let mut bytes = vec![b'v'];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(&body);
    bytes
}

/// Messages that hold what a client wants to store or ask: those may be large.
fn is_large_kind(tag: u8) -> bool {
    matches!(tag, b'Q' | b'P' | b'B' | b'd' | b'F')
}
