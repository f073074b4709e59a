//! The door for other nodes, where they show their certificates: a thread of each node that has
//! some (`[peers]`). It accepts connections on the port of nodes; shards hear of one when the other
//! side has proved which node it is.
//!
//! Connections that open are few ([`OPENING_MAX`]) and short ([`OPENING_TIME`]). For one more the
//! oldest is ended of those that do not come from the address of a node, or the oldest of all if
//! each comes from one. So a flood from elsewhere ends no proof of a node, and no flood costs a
//! shard anything. The thread reads certificates again when their files have changed.

use crate::RuntimeError;
use crate::conn::{Got, read_some};
use crate::credentials::{Changed, Credentials, Files};
use crate::few_lines::FewLines;
use crate::mailbox::{Mail, Mailboxes};
use crate::tls::Tls;
use base::NodeId;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Connections that have not proved anything yet.
const OPENING_MAX: usize = 64;
/// Time for the proof.
const OPENING_TIME: Duration = Duration::from_secs(3);
/// Pause between two looks at the files.
const LOOK: Duration = Duration::from_secs(1);
/// Refused connections that are written to the log within [`LOG_TIME`]; the others are counted.
const LOG_LINES: u64 = 10;
const LOG_TIME: Duration = Duration::from_secs(10);
/// Connections that are accepted before those that open are looked at again.
const ACCEPTS_MAX: usize = 16;
const WAKER: Token = Token(0);
const LISTENER: Token = Token(1);
const BUFFER_BYTES: usize = 16 << 10;
/// Bytes that a node may send before its connection stands: a hello and a few messages.
const EARLY_BYTES_MAX: usize = 1 << 20;

/// A connection whose other side has proved which node it is.
pub(crate) struct Proved {
    pub(crate) tls: Tls,
    pub(crate) node: NodeId,
    /// What it has said already.
    pub(crate) early: Vec<u8>,
}

/// The thread; it ends, and closes the port, when this is dropped.
pub(crate) struct Door {
    stop: Arc<AtomicBool>,
    waker: Waker,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A thread that cannot be woken looks after [`LOOK`].
        let _ = self.waker.wake();
    }
}

/// What the thread is started with.
pub(crate) struct DoorStart {
    pub(crate) listener: TcpListener,
    pub(crate) files: Files,
    pub(crate) changed: Changed,
    pub(crate) credentials: Arc<Credentials>,
    /// Addresses of all nodes, the first that of node 1.
    pub(crate) nodes: Vec<IpAddr>,
    pub(crate) mailboxes: Mailboxes,
}

impl Door {
    /// Starts the thread. It tells the shards of connections and of changed files.
    ///
    /// # Errors
    /// The system gives no event queue or thread.
    pub(crate) fn start(mut start: DoorStart) -> Result<Door, RuntimeError> {
        let failed = || RuntimeError::socket("poll", "connections of other nodes");
        let poll = Poll::new().map_err(failed())?;
        let waker = Waker::new(poll.registry(), WAKER).map_err(failed())?;
        let registry = poll.registry();
        let registered = registry.register(&mut start.listener, LISTENER, Interest::READABLE);
        registered.map_err(failed())?;
        let stop = Arc::new(AtomicBool::new(false));
        let thread = DoorThread {
            start,
            poll,
            stop: stop.clone(),
            opening: BTreeMap::new(),
            next_token: LISTENER.0 + 1,
            next_shard: 0,
            log: FewLines::new(LOG_LINES, LOG_TIME),
        };
        std::thread::Builder::new()
            .name("door".into())
            .spawn(move || thread.run())
            .map_err(failed())?;
        Ok(Door { stop, waker })
    }
}

fn tell_rest(left_out: u64) {
    tracing::warn!("{left_out} more connections of other nodes were refused");
}

/// Which connection ends for one more; `None`: that one itself. `open`: tokens, the oldest first,
/// and whether they come from the address of a node; `is_near`: whether the new one does.
fn who_goes(mut open: impl Iterator<Item = (usize, bool)>, is_near: bool) -> Option<usize> {
    let first = open.next()?;
    let mut all = std::iter::once(first).chain(open);
    match all.find(|(_, is_near)| !is_near) {
        Some((token, _)) => Some(token),
        None => is_near.then_some(first.0),
    }
}

struct Opening {
    stream: TcpStream,
    tls: Tls,
    early: Vec<u8>,
    since: Instant,
    from: SocketAddr,
    /// It comes from the address of a node.
    is_near: bool,
}

enum Step {
    Goes,
    Done,
    Refused(String),
}

struct DoorThread {
    start: DoorStart,
    poll: Poll,
    stop: Arc<AtomicBool>,
    /// By token, so the first is the oldest.
    opening: BTreeMap<usize, Opening>,
    next_token: usize,
    /// Round robin over shards for connections.
    next_shard: usize,
    log: FewLines,
}

impl DoorThread {
    fn run(mut self) {
        let mut events = Events::with_capacity(OPENING_MAX);
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut looked = Instant::now();
        // Whether more connections may wait: that raises no event again.
        let mut more = false;
        while !self.stop.load(Ordering::Relaxed) {
            let pause = if more { Duration::ZERO } else { LOOK };
            // Interrupted: there is something to do all the same.
            let _ = self.poll.poll(&mut events, Some(pause));
            for event in &events {
                match event.token() {
                    WAKER => {}
                    LISTENER => more = true,
                    Token(token) => self.go_on(token, &mut buffer),
                }
            }
            more = more && self.accept_some(&mut buffer);
            self.end_late();
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                self.look_at_files();
                self.log.tend(looked, tell_rest);
                // What could not be accepted before, without file descriptors left.
                more = true;
            }
        }
    }

    /// Accepts connections; whether more may wait.
    fn accept_some(&mut self, buffer: &mut [u8]) -> bool {
        for _ in 0..ACCEPTS_MAX {
            match self.start.listener.accept() {
                Ok((stream, from)) => self.open(stream, from, buffer),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                // The other side has gone already, or a signal came.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                    ) => {}
                Err(error) => {
                    if self.log.may_write(Instant::now(), tell_rest) {
                        tracing::error!(%error, "cannot accept a connection of a node");
                    }
                    return false;
                }
            }
        }
        true
    }

    fn open(&mut self, mut stream: TcpStream, from: SocketAddr, buffer: &mut [u8]) {
        let is_near = self.start.nodes.contains(&from.ip().to_canonical());
        if self.opening.len() >= OPENING_MAX {
            let open = (self.opening.iter()).map(|(token, opening)| (*token, opening.is_near));
            let reason = "too many connections open at once";
            let Some(token) = who_goes(open, is_near) else {
                return self.refuse(from, reason);
            };
            let gone = self.opening.remove(&token).expect("just found");
            self.refuse(gone.from, reason);
        }
        let Ok(tls) = self.start.credentials.accept() else {
            return;
        };
        let token = self.next_token;
        self.next_token += 1;
        let _ = stream.set_nodelay(true);
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        if registry
            .register(&mut stream, Token(token), interest)
            .is_err()
        {
            return;
        }
        let opening = Opening {
            stream,
            tls,
            early: Vec::new(),
            since: Instant::now(),
            from,
            is_near,
        };
        self.opening.insert(token, opening);
        self.go_on(token, buffer);
    }

    /// A connection has news.
    fn go_on(&mut self, token: usize, buffer: &mut [u8]) {
        let Some(mut opening) = self.opening.remove(&token) else {
            return;
        };
        match opening.advance(buffer) {
            Step::Goes => {
                self.opening.insert(token, opening);
            }
            Step::Done => self.hand_over(opening),
            Step::Refused(reason) => self.refuse(opening.from, &reason),
        }
    }

    fn hand_over(&mut self, mut opening: Opening) {
        let credentials = &self.start.credentials;
        let mut nodes = (1..=self.start.nodes.len() as u16).map(NodeId);
        let Some(node) = nodes.find(|node| credentials.is_of(&opening.tls, *node)) else {
            let reason = "its certificate is that of no node of this cluster";
            return self.refuse(opening.from, reason);
        };
        if self
            .poll
            .registry()
            .deregister(&mut opening.stream)
            .is_err()
        {
            return;
        }
        let shard = self.next_shard;
        self.next_shard = (shard + 1) % self.start.mailboxes.len();
        let proved = Proved {
            tls: opening.tls,
            node,
            early: opening.early,
        };
        let mail = Mail::Peer(opening.stream, Some(Box::new(proved)));
        self.start.mailboxes.send(shard, mail);
    }

    fn refuse(&mut self, from: SocketAddr, reason: &str) {
        if self.log.may_write(Instant::now(), tell_rest) {
            tracing::warn!(%from, reason, "a connection to the port of nodes is refused");
        }
    }

    fn end_late(&mut self) {
        while let Some(first) = self.opening.first_entry()
            && first.get().since.elapsed() >= OPENING_TIME
        {
            let late = first.remove();
            self.refuse(late.from, "it does not prove which node it is");
        }
    }

    fn look_at_files(&mut self) {
        let start = &mut self.start;
        let changed = start.files.changed();
        if changed == start.changed {
            return;
        }
        start.changed = changed;
        match start.files.read() {
            Ok(read) => {
                start.credentials = Arc::new(read);
                let credentials = &start.credentials;
                (start.mailboxes).all(|| Mail::Credentials(credentials.clone()));
                tracing::info!("the certificates of nodes were read again");
            }
            // They are written one after the other: the last one changes them once more.
            Err(error) => tracing::warn!(%error, "the certificates of nodes stay as they were"),
        }
    }
}

impl Opening {
    /// Reads and answers what has come.
    fn advance(&mut self, buffer: &mut [u8]) -> Step {
        let got = loop {
            let (tls, early) = (&mut self.tls, &mut self.early);
            let mut taken = Ok(());
            let got = read_some(&mut self.stream, buffer, |bytes| {
                taken = tls.take(bytes, |plain| early.extend_from_slice(plain));
            });
            if let Err(error) = taken {
                // The alert tells the other side; if it does not take that it is not told.
                let _ = self.flush();
                return Step::Refused(error.to_string());
            }
            if self.early.len() > EARLY_BYTES_MAX {
                return Step::Refused("it says too much before its connection stands".into());
            }
            if got != Got::Bytes(true) || !self.tls.is_opening() {
                break got;
            }
        };
        if self.flush().is_err() || got == Got::End {
            return Step::Refused("it has closed the connection".into());
        }
        match self.tls.is_opening() {
            true => Step::Goes,
            false => Step::Done,
        }
    }

    fn flush(&mut self) -> std::io::Result<bool> {
        let (mut nothing, mut sent) = (Vec::new(), 0);
        self.tls
            .write_some(&mut self.stream, &mut nothing, &mut sent, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_go_before_nodes() {
        let goes = |open: &[bool], is_near| who_goes(open.iter().copied().enumerate(), is_near);
        let (node, stranger) = (true, false);
        assert_eq!(goes(&[node, stranger, stranger], node), Some(1));
        assert_eq!(goes(&[node, stranger, stranger], stranger), Some(1));
        assert_eq!(goes(&[stranger, node], stranger), Some(0));
        assert_eq!(goes(&[node, node], node), Some(0));
        assert_eq!(goes(&[node, node], stranger), None);
    }
}
