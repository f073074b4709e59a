//! Connections between nodes. Each shard has one outgoing connection to every other node and sends
//! on it; what a node receives arrives on connections that others opened. Both directions begin
//! with a [`Hello`]. With certificates ([`crate::credentials`]) both are encrypted, and proved to
//! be of a node of this cluster, before that.

use crate::conn::{Got, read_some, write_some};
use crate::credentials::Credentials;
use crate::frame::{self, FrameError, Hello};
use crate::fs_disk::FsDisk;
use crate::journal_file::fatal;
use crate::outgoing;
use crate::tls::Tls;
use base::{NodeId, Time};
use mio::net::TcpStream;
use node::WireMessage;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use storage::{Acquaintances, Introduction, Stranger};

/// Unsent bytes towards one node beyond which messages are dropped (protocols send again).
const UNSENT_BYTES_MAX: usize = 256 << 20;
/// First and longest pause before a connection is tried again: a node that is back must be found
/// within that time.
const RETRY_US_MIN: u64 = 50_000;
const RETRY_US_MAX: u64 = 100_000;
/// A connection whose hello is not answered in this time is tried anew. A process that is stopped
/// accepts, and says nothing; what is sent into a cut is sent again after a second.
const OPENING_US_MAX: u64 = 500_000;
/// The same with certificates: nodes may be far from each other, and there are more round trips.
const PROVING_US_MAX: u64 = 2_000_000;
/// The same refusal is logged again after so long.
const SAY_AGAIN_US: u64 = 10_000_000;

enum State {
    /// Next attempt at this time.
    Idle(Time),
    /// Connecting or waiting for the other side's hello, since this time.
    Opening(TcpStream, Time),
    Up(TcpStream),
}

/// The outgoing connection of this shard to one node.
pub(crate) struct PeerOut {
    pub(crate) node: NodeId,
    address: SocketAddr,
    /// The address of this node, from which the connection leaves.
    from: IpAddr,
    state: State,
    out: Vec<u8>,
    sent: usize,
    input: Vec<u8>,
    retry_us: u64,
    /// The shard has heard that it is down.
    told_down: bool,
    met: Met,
    /// `None` without certificates, or without a connection.
    tls: Option<Box<Tls>>,
    /// Why TLS failed last, without numbers, and when that was logged.
    said: Option<(String, Time)>,
}

/// Which lives of other nodes this node has met; shared by its shards.
pub(crate) type Met = Arc<Mutex<Acquaintances<FsDisk>>>;

/// Whether the node that says hello may come.
pub(crate) fn admit(met: &Met, hello: &Hello) -> Result<(), Stranger> {
    let mut met = met.lock().expect("no thread panics while it holds it");
    let now = Introduction {
        directory: hello.directory,
        incarnation: hello.incarnation,
    };
    let admitted = met.meet(hello.node, now);
    // What is met must be remembered before anything is shared with it.
    admitted.unwrap_or_else(|error| fatal(&error.to_string()))
}

/// Ends this node: another one knows that data is missing here that was acknowledged.
fn refused_by(other: NodeId, reason: &str) -> ! {
    tracing::error!(
        "node {} refuses this node: {reason}. This node stops; its peers keep what they know of it \
         in their files PEERS",
        other.0
    );
    std::process::exit(1)
}

/// What happened to an outgoing connection.
#[derive(PartialEq, Eq)]
pub(crate) enum PeerNews {
    Nothing,
    /// It stands; the other node runs in this incarnation.
    Up(u32),
    /// It is gone, or could not be made. `true`: the shard has not heard that it is down, because
    /// it was up, or because this was the first attempt since the start.
    Down(bool),
}

impl PeerOut {
    pub(crate) fn new(node: NodeId, address: SocketAddr, from: IpAddr, met: Met) -> PeerOut {
        PeerOut {
            node,
            address,
            from,
            state: State::Idle(Time(0)),
            out: Vec::new(),
            sent: 0,
            input: Vec::new(),
            retry_us: RETRY_US_MIN,
            told_down: false,
            met,
            tls: None,
            said: None,
        }
    }

    /// When to try again, if it is down.
    pub(crate) fn deadline(&self) -> Option<Time> {
        match self.state {
            State::Idle(at) => Some(at),
            State::Opening(_, since) => Some(since.after(self.opening_us_max())),
            State::Up(_) => None,
        }
    }

    fn opening_us_max(&self) -> u64 {
        match self.tls {
            None => OPENING_US_MAX,
            Some(_) => PROVING_US_MAX,
        }
    }

    /// Gives up an attempt that takes too long.
    pub(crate) fn tend(&mut self, now: Time) -> PeerNews {
        match self.state {
            State::Opening(_, since) if now.since(since) >= self.opening_us_max() => self.down(now),
            State::Idle(_) | State::Opening(..) | State::Up(_) => PeerNews::Nothing,
        }
    }

    /// The node does not answer any more: what is sent on this connection may never arrive.
    pub(crate) fn on_silent(&mut self, now: Time) -> PeerNews {
        match self.state {
            State::Opening(..) | State::Up(_) => self.down(now),
            State::Idle(_) => PeerNews::Nothing,
        }
    }

    /// The node answers again: the next attempt begins at once.
    pub(crate) fn on_heard(&mut self, now: Time) {
        match self.state {
            State::Idle(_) | State::Opening(..) => self.state = State::Idle(now),
            State::Up(_) => {}
        }
    }

    /// Tries to connect if it is time; the stream to register.
    pub(crate) fn connect(
        &mut self,
        now: Time,
        hello: &Hello,
        credentials: Option<&Credentials>,
    ) -> Option<&mut TcpStream> {
        match self.state {
            State::Idle(at) if at <= now => {}
            _ => return None,
        }
        self.tls = match credentials.map(|own| own.connect(self.node)) {
            None => None,
            Some(Ok(tls)) => Some(Box::new(tls)),
            Some(Err(error)) => {
                self.say(now, &error);
                self.state = State::Idle(now.after(self.retry_us));
                return None;
            }
        };
        match outgoing::connect(self.from, self.address) {
            Ok(stream) => {
                self.out.clear();
                self.sent = 0;
                self.input.clear();
                frame::encode_hello(hello, &mut self.out);
                self.state = State::Opening(stream, now);
                match &mut self.state {
                    State::Opening(stream, _) => Some(stream),
                    State::Idle(_) | State::Up(_) => None,
                }
            }
            Err(error) => {
                tracing::debug!(node = self.node.0, %error, "cannot connect");
                self.state = State::Idle(now.after(self.retry_us));
                None
            }
        }
    }

    /// Logs why the other side is not believed, or does not believe this one: it is asked ten times
    /// a second, and that is said at times.
    fn say(&mut self, now: Time, error: &rustls::Error) {
        let reason = error.to_string();
        // Some reasons tell the time.
        let kind = reason.replace(|char: char| char.is_ascii_digit(), "");
        let is_new = |(last, at): &(String, Time)| *last != kind || now.since(*at) > SAY_AGAIN_US;
        if self.said.as_ref().is_none_or(is_new) {
            let (node, at) = (self.node.0, self.address);
            tracing::warn!(node, %at, reason, "no proof between this node and the one there");
            self.said = Some((kind, now));
        }
    }

    /// Whom this node believes has changed: a connection with one that it would not believe today
    /// ends.
    pub(crate) fn recheck(&mut self, now: Time, credentials: &Credentials) -> PeerNews {
        match self.tls.as_ref().map(|tls| credentials.recheck(tls)) {
            Some(Err(error)) => {
                self.say(now, &error);
                self.down(now)
            }
            None | Some(Ok(())) => PeerNews::Nothing,
        }
    }

    fn down(&mut self, now: Time) -> PeerNews {
        self.tls = None;
        self.state = State::Idle(now.after(self.retry_us));
        self.retry_us = (self.retry_us * 2).min(RETRY_US_MAX);
        self.out.clear();
        self.sent = 0;
        PeerNews::Down(!std::mem::replace(&mut self.told_down, true))
    }

    /// Reads once.
    fn read(&mut self, now: Time, buffer: &mut [u8]) -> Got {
        let (State::Opening(stream, _) | State::Up(stream)) = &mut self.state else {
            return Got::End;
        };
        let (input, tls) = (&mut self.input, &mut self.tls);
        let mut taken = Ok(());
        let got = read_some(stream, buffer, |bytes| match tls {
            None => input.extend_from_slice(bytes),
            Some(tls) => taken = tls.take(bytes, |plain| input.extend_from_slice(plain)),
        });
        if let Err(error) = taken {
            // What TLS has to say of it still goes out, if the socket takes it.
            let _ = self.flush();
            self.say(now, &error);
            return Got::End;
        }
        got
    }

    /// The socket is readable or writable; `ending`: the other side has closed.
    pub(crate) fn on_event(
        &mut self,
        now: Time,
        expect: &Hello,
        ending: bool,
        buffer: &mut [u8],
    ) -> PeerNews {
        let (State::Opening(stream, _) | State::Up(stream)) = &self.state else {
            return PeerNews::Nothing;
        };
        if stream.take_error().is_ok_and(|error| error.is_some()) {
            return self.down(now);
        }
        loop {
            match self.read(now, buffer) {
                Got::Bytes(more) if more || ending => {}
                Got::Nothing | Got::Bytes(_) => break,
                Got::End => return self.down(now),
            }
        }
        if self.flush().is_err() {
            return self.down(now);
        }
        if matches!(self.state, State::Up(_)) {
            // After its hello the other side says nothing on this connection.
            self.input.clear();
            return PeerNews::Nothing;
        }
        match take_hello(&mut self.input, expect) {
            Ok(None) => PeerNews::Nothing,
            Ok(Some(hello)) if hello.node == self.node => {
                if !hello.refusal.is_empty() {
                    refused_by(hello.node, &hello.refusal);
                }
                if let Err(stranger) = admit(&self.met, &hello) {
                    tracing::error!("node {} is refused: {stranger}", self.node.0);
                    return self.down(now);
                }
                let state = std::mem::replace(&mut self.state, State::Idle(now));
                if let State::Opening(stream, _) = state {
                    self.state = State::Up(stream);
                }
                self.retry_us = RETRY_US_MIN;
                self.told_down = false;
                PeerNews::Up(hello.incarnation)
            }
            Ok(Some(hello)) => {
                tracing::error!(
                    expected = self.node.0,
                    found = hello.node.0,
                    "another node answers"
                );
                self.down(now)
            }
            Err(reason) => {
                tracing::error!(node = self.node.0, reason, "hello refused");
                self.down(now)
            }
        }
    }

    /// Queues a message; returns the bytes it takes, 0 if it is dropped because the connection is
    /// down or too far behind.
    pub(crate) fn send(
        &mut self,
        from: base::ShardId,
        to: base::ShardId,
        message: &WireMessage,
    ) -> usize {
        if !matches!(self.state, State::Up(_)) || self.out.len() > UNSENT_BYTES_MAX {
            return 0;
        }
        frame::encode_message(from, to, message, &mut self.out)
    }

    /// Bytes that the socket has not taken.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        (self.out.len() - self.sent) as u64
    }

    /// Whether there is something to send.
    pub(crate) fn has_output(&self) -> bool {
        !self.out.is_empty() || self.tls.as_ref().is_some_and(|tls| tls.has_output())
    }

    /// Sends what is there, as far as the socket takes it.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if let State::Opening(stream, _) | State::Up(stream) = &mut self.state {
            let written = match &mut self.tls {
                None => write_some(stream, &mut self.out, &mut self.sent),
                Some(tls) => tls.write_some(stream, &mut self.out, &mut self.sent, false),
            };
            match written {
                Ok(_) => {}
                // Still connecting.
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The connection broke while sending.
    pub(crate) fn on_broken(&mut self, now: Time) -> PeerNews {
        self.down(now)
    }
}

/// Takes a hello off the front of `input` and checks that the other side belongs to us.
pub(crate) fn take_hello(input: &mut Vec<u8>, own: &Hello) -> Result<Option<Hello>, String> {
    let (hello, used) = match frame::next_frame(input) {
        Ok(None) => return Ok(None),
        Ok(Some((payload, used))) => (
            frame::decode_hello(payload).map_err(|e| e.to_string())?,
            used,
        ),
        Err(error) => return Err(FrameError::to_string(&error)),
    };
    input.drain(..used);
    if hello.version != own.version {
        return Err(format!(
            "node protocol version {} is not {}",
            hello.version, own.version
        ));
    }
    if hello.cluster != own.cluster || hello.shards != own.shards {
        return Err(format!(
            "it belongs to cluster {} with {} shards",
            hello.cluster, hello.shards
        ));
    }
    Ok(Some(hello))
}
