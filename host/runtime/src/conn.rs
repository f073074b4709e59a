//! One client's socket: bytes in, replies out, held until the journal allows.

use base::Position;
use gateway::Decoder;
use mio::net::TcpStream;
use node::Reply;
use std::collections::VecDeque;
use std::io::{self, Read, Write};

/// Read at most so much at once.
pub(crate) const READ_BYTES: usize = 64 << 10;
/// A client whose unsent replies exceed this is drained before it gets more; the session's credit
/// keeps producers from running far ahead of it.
pub(crate) const UNSENT_BYTES_LOW: usize = 64 << 10;
/// Nothing more is read from a client that has so many bytes of replies still to take.
const UNSENT_BYTES_MAX: usize = 1 << 20;
/// Nor from one with so many replies that wait for the journal.
const HELD_REPLIES_MAX: usize = 8192;

pub(crate) struct ClientConn {
    pub(crate) stream: TcpStream,
    pub(crate) decoder: Decoder,
    out: Vec<u8>,
    /// Bytes of `out` that are sent.
    sent: usize,
    held: VecDeque<(Reply, Position)>,
    /// Rows were sent since the session last heard that its output is drained.
    rows_sent: bool,
    /// Close when everything is sent.
    pub(crate) closing: bool,
    /// Is in the list of connections to flush.
    pub(crate) dirty: bool,
    /// The socket's buffer is full: wait for it to become writable.
    blocked: bool,
    /// Nothing is read, nor what has been read decoded.
    pub(crate) paused: bool,
    /// The other side has closed: it is read until its end is seen.
    pub(crate) ending: bool,
}

/// What reading a socket came to.
#[derive(PartialEq, Eq)]
pub(crate) enum Got {
    /// Bytes were read; there may be more if `true`.
    Bytes(bool),
    /// There is nothing at the moment.
    Nothing,
    /// The other side has closed, or the socket is broken.
    End,
}

/// Hands what is there to `take`, by way of `buffer` (which keeps its length: clearing it for
/// every read
/// costs more than the read). A short read means that the socket is empty: new bytes raise a new
/// event, so no second call is needed to see "would block".
pub(crate) fn read_some(
    stream: &mut TcpStream,
    buffer: &mut [u8],
    take: impl FnOnce(&[u8]),
) -> Got {
    let result = loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other,
        }
    };
    match result {
        Ok(0) => Got::End,
        Ok(count) => {
            take(&buffer[..count]);
            Got::Bytes(count == buffer.len())
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Got::Nothing,
        Err(_) => Got::End,
    }
}

/// Writes `out[*sent..]`; true if everything went out, false if the socket is full.
pub(crate) fn write_some(
    stream: &mut TcpStream,
    out: &mut Vec<u8>,
    sent: &mut usize,
) -> io::Result<bool> {
    while *sent < out.len() {
        match stream.write(&out[*sent..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => *sent += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    out.clear();
    *sent = 0;
    Ok(true)
}

impl ClientConn {
    pub(crate) fn new(stream: TcpStream) -> ClientConn {
        ClientConn {
            stream,
            decoder: Decoder::new(),
            out: Vec::new(),
            sent: 0,
            held: VecDeque::new(),
            rows_sent: false,
            closing: false,
            dirty: false,
            blocked: false,
            paused: false,
            ending: false,
        }
    }

    /// Takes a reply; it leaves with the next flush unless it or one before it waits for the
    /// journal. Returns whether it is held.
    pub(crate) fn reply(&mut self, reply: Reply, wait: Position, durable: Position) -> bool {
        if !self.held.is_empty() || wait > durable {
            self.held.push_back((reply, wait));
            return true;
        }
        self.encode(&reply);
        false
    }

    /// Encodes replies that no longer wait; whether some still do.
    pub(crate) fn release(&mut self, durable: Position) -> bool {
        while let Some((_, wait)) = self.held.front() {
            if *wait > durable {
                return true;
            }
            let (reply, _) = self.held.pop_front().expect("just seen");
            self.encode(&reply);
        }
        false
    }

    fn encode(&mut self, reply: &Reply) {
        match reply {
            Reply::Close => self.closing = true,
            Reply::Rows(..) | Reply::CopyData(_) => {
                self.rows_sent = true;
                gateway::encode(reply, &mut self.out);
            }
            _ => gateway::encode(reply, &mut self.out),
        }
    }

    /// Appends bytes that are no reply (the answer to SSLRequest).
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Sends what is there. `Ok(true)`: the session is to hear that its output is drained.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        if self.out.is_empty() {
            return Ok(self.take_drained());
        }
        self.blocked = !write_some(&mut self.stream, &mut self.out, &mut self.sent)?;
        if self.out.capacity() > 16 * UNSENT_BYTES_LOW && self.out.is_empty() {
            self.out = Vec::new();
        }
        Ok(self.out.len() - self.sent <= UNSENT_BYTES_LOW && self.take_drained())
    }

    fn take_drained(&mut self) -> bool {
        self.held.is_empty() && std::mem::take(&mut self.rows_sent)
    }

    /// Whether the client is to take replies before more is read from it.
    pub(crate) fn is_choked(&self) -> bool {
        self.out.len() - self.sent > UNSENT_BYTES_MAX || self.held.len() > HELD_REPLIES_MAX
    }

    /// Nothing is left to send.
    pub(crate) fn is_flushed(&self) -> bool {
        self.out.is_empty() && self.held.is_empty()
    }

    /// Whether replies wait for the journal.
    pub(crate) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }
}
