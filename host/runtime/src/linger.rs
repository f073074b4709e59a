//! Sockets of clients that have been told goodbye while they were still sending.
//!
//! Closing a socket with unread bytes resets the connection, and the client may lose what it was
//! told last, as a rule why it is closed. So the node ends its own side only, and reads and drops
//! what comes until the client closes too, or for a short time.

use crate::conn::{Got, read_some};
use mio::net::TcpStream;
use std::collections::BTreeMap;
use std::net::Shutdown;
use std::time::{Duration, Instant};

/// Longest time for which a client that does not close is read.
const LINGER: Duration = Duration::from_secs(3);
/// Reads of one socket before others get their turn.
const READS_MAX: usize = 16;

struct Lingering {
    stream: TcpStream,
    until: Instant,
    /// There may be more to read at once.
    more: bool,
}

/// All such sockets of a shard, by token.
#[derive(Default)]
pub(crate) struct Lingerers(BTreeMap<usize, Lingering>);

impl Lingerers {
    /// Takes a socket to which everything has been sent.
    pub(crate) fn add(&mut self, token: usize, stream: TcpStream) {
        // An error means that the connection is gone already: the next read sees it.
        let _ = stream.shutdown(Shutdown::Write);
        let until = Instant::now() + LINGER;
        let more = true;
        let lingering = Lingering {
            stream,
            until,
            more,
        };
        self.0.insert(token, lingering);
    }

    /// A socket has news.
    pub(crate) fn on_event(&mut self, token: usize) {
        if let Some(lingering) = self.0.get_mut(&token) {
            lingering.more = true;
        }
    }

    /// Reads what there is and lets go of sockets whose clients have closed or whose time is up.
    pub(crate) fn tend(&mut self, buffer: &mut [u8]) {
        if self.0.is_empty() {
            return;
        }
        let now = Instant::now();
        self.0
            .retain(|_, lingering| lingering.until > now && lingering.read(buffer));
    }

    /// Whether a socket may have more to read at once.
    pub(crate) fn is_busy(&self) -> bool {
        self.0.values().any(|lingering| lingering.more)
    }
}

impl Lingering {
    /// Drops what has come; false at the end.
    fn read(&mut self, buffer: &mut [u8]) -> bool {
        for _ in 0..READS_MAX {
            if !self.more {
                return true;
            }
            match read_some(&mut self.stream, buffer, |_| {}) {
                Got::End => return false,
                Got::Nothing => self.more = false,
                Got::Bytes(more) => self.more = more,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    #[test]
    fn a_client_that_still_sends_reads_its_last_message() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let mut client = std::net::TcpStream::connect(address).expect("listens");
        let (mut server, _) = listener.accept().expect("connected");
        // The client has sent more than the server will ever look at.
        client.write_all(&[7; 100_000]).expect("buffers take it");
        server.write_all(b"bye").expect("buffers take it");
        server.set_nonblocking(true).expect("a socket");
        let mut lingerers = Lingerers::default();
        lingerers.add(5, TcpStream::from_std(server));
        let reader = std::thread::spawn(move || {
            let mut told = String::new();
            client.read_to_string(&mut told).map(|_| told)
        });
        let mut buffer = vec![0; 4096];
        while !lingerers.0.is_empty() {
            lingerers.on_event(5);
            lingerers.tend(&mut buffer);
            assert!(lingerers.is_busy() || lingerers.0.values().all(|l| !l.more));
        }
        let told = reader.join().expect("no panic");
        assert_eq!(told.expect("not reset"), "bye");
    }
}
