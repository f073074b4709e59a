//! One client's socket: bytes in, replies out, held until the journal allows.

use crate::credentials::common_name;
use crate::login::Gate;
use crate::tls::Tls;
use base::{Position, SqlError};
use mio::net::TcpStream;
use rustls::ServerConfig;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::Arc;
use wire::{Decoder, Reply, Severity};

/// Read at most so much at once.
pub(crate) const READ_BYTES: usize = 64 << 10;
/// A client whose unsent replies exceed this is drained before it gets more; the session's credit
/// keeps producers from running far ahead of it.
pub(crate) const UNSENT_BYTES_LOW: usize = 64 << 10;
/// Bytes of replies that a client has still to take above which its socket is not read.
const UNSENT_BYTES_MAX: usize = 1 << 20;
/// Replies of a client that wait for the journal above which its socket is not read.
const HELD_REPLIES_MAX: usize = 8192;

pub(crate) struct ClientConn {
    pub(crate) stream: TcpStream,
    pub(crate) decoder: Decoder,
    /// Who connects has not proved who it is.
    pub(crate) gate: Option<Box<Gate>>,
    tls: Option<Box<Tls>>,
    out: Vec<u8>,
    /// Bytes of `out` that are sent.
    sent: usize,
    held: VecDeque<(Reply, Position)>,
    /// How many of `held` end a round.
    ends_held: usize,
    /// The end of a round is in `out`.
    end_unsent: bool,
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
            gate: Some(Box::default()),
            tls: None,
            out: Vec::new(),
            sent: 0,
            held: VecDeque::new(),
            ends_held: 0,
            end_unsent: false,
            rows_sent: false,
            closing: false,
            dirty: false,
            blocked: false,
            paused: false,
            ending: false,
        }
    }

    /// Agrees to a request for TLS. `false`: the connection is of no use any more.
    pub(crate) fn start_tls(&mut self, config: Arc<ServerConfig>) -> bool {
        if self.decoder.has_unread() || !self.out.is_empty() {
            return false;
        }
        // Nothing was sent before, so the socket has room for a byte.
        let agreed = matches!(self.stream.write(b"S"), Ok(1));
        self.tls = Tls::accept(config).ok().map(Box::new);
        agreed && self.tls.is_some()
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// For whom the certificate is that the client has shown and proved to have the key of.
    pub(crate) fn certified(&self) -> Option<String> {
        common_name(self.tls.as_ref()?.shown())
    }

    /// Reads what is there into the decoder, by way of `buffer`.
    #[inline]
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Got {
        let decoder = &mut self.decoder;
        let Some(tls) = &mut self.tls else {
            return read_some(&mut self.stream, buffer, |bytes| decoder.push(bytes));
        };
        let mut taken = Ok(());
        let got = read_some(&mut self.stream, buffer, |bytes| {
            taken = tls.take(bytes, |plain| decoder.push(plain));
        });
        if let Err(error) = taken {
            tracing::info!(%error, "TLS with a client");
            // The alert that tells why still goes out.
            self.closing = true;
        }
        got
    }

    /// Takes a reply; it leaves with the next flush unless it or one before it waits for the
    /// journal. Returns whether it is held.
    #[inline]
    pub(crate) fn reply(&mut self, reply: Reply, wait: Position, durable: Position) -> bool {
        if !self.held.is_empty() || wait > durable {
            self.ends_held += usize::from(ends_round(&reply));
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
            self.ends_held -= usize::from(ends_round(&reply));
            self.encode(&reply);
        }
        false
    }

    fn encode(&mut self, reply: &Reply) {
        self.end_unsent |= ends_round(reply);
        match reply {
            Reply::Close => self.closing = true,
            Reply::Rows(..) | Reply::CopyData(_) => {
                self.rows_sent = true;
                wire::encode(reply, &mut self.out);
            }
            _ => wire::encode(reply, &mut self.out),
        }
    }

    /// Says why the client is not let in. The connection is closed when that is sent.
    pub(crate) fn refuse(&mut self, error: SqlError) {
        wire::encode(&Reply::Error(Severity::Fatal, error), &mut self.out);
        self.closing = true;
    }

    /// Appends bytes that are no reply of the session.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Sends what is there. `Ok(true)`: the session is to hear that its output is drained.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        if self.out.is_empty() && self.tls.is_none() {
            return Ok(self.take_drained());
        }
        if self.awaits_end() {
            return Ok(false);
        }
        self.end_unsent = false;
        self.blocked = !match &mut self.tls {
            None => write_some(&mut self.stream, &mut self.out, &mut self.sent)?,
            Some(tls) => {
                let last = self.closing && self.held.is_empty();
                tls.write_some(&mut self.stream, &mut self.out, &mut self.sent, last)?
            }
        };
        if self.out.capacity() > 16 * UNSENT_BYTES_LOW && self.out.is_empty() {
            self.out = Vec::new();
        }
        Ok(self.out.len() - self.sent <= UNSENT_BYTES_LOW && self.take_drained())
    }

    /// What is to be sent is the beginning of a round whose end waits for the journal. The client
    /// needs the end to go on, so all of it leaves at once, then: fewer calls here and there.
    fn awaits_end(&self) -> bool {
        self.ends_held > 0
            && !self.end_unsent
            && !self.blocked
            && self.out.len() - self.sent <= UNSENT_BYTES_LOW
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
        let encrypted = self.tls.as_ref().is_some_and(|tls| tls.has_output());
        self.out.is_empty() && self.held.is_empty() && !encrypted
    }

    /// Whether replies wait for the journal.
    pub(crate) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }
}

/// Whether the client has all answers of what it sent together once it has this one.
fn ends_round(reply: &Reply) -> bool {
    matches!(reply, Reply::Ready(_) | Reply::Close)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use wire::TxnStatus;

    const ROW: Reply = Reply::ParseComplete;
    const END: Reply = Reply::Ready(TxnStatus::Idle);

    fn pair() -> (ClientConn, std::net::TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.set_nonblocking(true).unwrap();
        let (server, _) = listener.accept().unwrap();
        server.set_nonblocking(true).unwrap();
        (ClientConn::new(TcpStream::from_std(server)), client)
    }

    fn arrived(conn: &mut ClientConn, client: &mut std::net::TcpStream) -> usize {
        conn.flush().unwrap();
        client.read(&mut [0; 64]).unwrap_or(0)
    }

    #[test]
    fn a_round_leaves_when_its_end_may() {
        let (mut conn, mut client) = pair();
        assert!(!conn.reply(ROW, Position(0), Position(5)));
        assert!(conn.reply(ROW, Position(7), Position(5)));
        // The end is not known yet: the client may wait for what there is.
        assert_eq!(arrived(&mut conn, &mut client), 5);
        assert!(conn.reply(END, Position(9), Position(5)));
        assert!(conn.release(Position(8)));
        assert_eq!(arrived(&mut conn, &mut client), 0);
        assert!(!conn.release(Position(9)));
        assert_eq!(arrived(&mut conn, &mut client), 5 + 6);
    }

    #[test]
    fn a_round_that_has_ended_does_not_wait_for_the_next() {
        let (mut conn, mut client) = pair();
        assert!(!conn.reply(END, Position(0), Position(5)));
        assert!(!conn.reply(ROW, Position(0), Position(5)));
        assert!(conn.reply(END, Position(7), Position(5)));
        assert_eq!(arrived(&mut conn, &mut client), 6 + 5);
        assert!(!conn.release(Position(7)));
        assert_eq!(arrived(&mut conn, &mut client), 6);
    }
}
