//! The door for other nodes, where they show their certificates: a thread of each node that has
//! some (`[peers]`). Shards hear of a connection when the other side has proved which node it is.
//!
//! Connections that open are few ([`OPENING_MAX`]) and short ([`OPENING_TIME`]). One more ends the
//! oldest: a flood of connections that say nothing delays a node by as many of them at most, and
//! costs no shard anything. The thread reads certificates again when their files have changed.

use crate::RuntimeError;
use crate::conn::{Got, read_some};
use crate::credentials::{Changed, Credentials, Files};
use crate::mailbox::{Mail, Mailboxes};
use crate::tls::Tls;
use base::NodeId;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

/// Connections that have not proved anything yet.
const OPENING_MAX: usize = 64;
/// Time for the proof.
const OPENING_TIME: Duration = Duration::from_secs(3);
/// Pause between two looks at the files.
const LOOK: Duration = Duration::from_secs(1);
/// Refused connections that are written to the log within [`LOG_TIME`]; the others are counted.
const LOG_LINES: u32 = 10;
const LOG_TIME: Duration = Duration::from_secs(10);
const WAKER: Token = Token(0);
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

/// Where accepted connections are handed to; the thread ends with the last of these.
#[derive(Clone)]
pub(crate) struct Door {
    sender: SyncSender<TcpStream>,
    waker: Arc<Waker>,
}

impl Door {
    /// Starts the thread. It tells the shards of changed files.
    ///
    /// # Errors
    /// The system gives no event queue or thread.
    pub(crate) fn start(
        files: Files,
        changed: Changed,
        credentials: Arc<Credentials>,
        nodes: u16,
        mailboxes: Mailboxes,
    ) -> Result<Door, RuntimeError> {
        let failed = || RuntimeError::socket("poll", "connections of other nodes");
        let poll = Poll::new().map_err(failed())?;
        let waker = Waker::new(poll.registry(), WAKER).map_err(failed())?;
        let (sender, given) = sync_channel(OPENING_MAX);
        let thread = DoorThread {
            poll,
            given,
            files,
            changed,
            credentials,
            nodes,
            mailboxes,
            opening: BTreeMap::new(),
            next_token: WAKER.0 + 1,
            next_shard: 0,
            log: Log::new(Instant::now()),
        };
        std::thread::Builder::new()
            .name("door".into())
            .spawn(move || thread.run())
            .map_err(failed())?;
        Ok(Door {
            sender,
            waker: Arc::new(waker),
        })
    }

    /// Takes an accepted connection. If more come than the thread takes, this one is closed.
    pub(crate) fn give(&self, stream: TcpStream) {
        if self.sender.try_send(stream).is_ok() {
            self.waker.wake().expect("an event queue can be woken");
        }
    }
}

/// Writes some lines and counts the others.
struct Log {
    since: Instant,
    lines: u32,
}

impl Log {
    fn new(now: Instant) -> Log {
        Log {
            since: now,
            lines: 0,
        }
    }

    /// Whether to write one more line; before that tells how many were left out.
    fn may_write(&mut self, now: Instant) -> bool {
        if now.duration_since(self.since) >= LOG_TIME {
            let left_out = self.lines.saturating_sub(LOG_LINES);
            if left_out > 0 {
                tracing::warn!("{left_out} more connections of other nodes were refused");
            }
            *self = Log::new(now);
        }
        self.lines = self.lines.saturating_add(1);
        self.lines <= LOG_LINES
    }
}

struct Opening {
    stream: TcpStream,
    tls: Tls,
    early: Vec<u8>,
    since: Instant,
}

enum Step {
    Goes,
    Done,
    Refused(String),
}

struct DoorThread {
    poll: Poll,
    given: Receiver<TcpStream>,
    files: Files,
    changed: Changed,
    credentials: Arc<Credentials>,
    nodes: u16,
    mailboxes: Mailboxes,
    /// By token, so the first is the oldest.
    opening: BTreeMap<usize, Opening>,
    next_token: usize,
    /// Round robin over shards for connections.
    next_shard: usize,
    log: Log,
}

impl DoorThread {
    fn run(mut self) {
        let mut events = Events::with_capacity(OPENING_MAX);
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut looked = Instant::now();
        loop {
            // Interrupted: there is something to do all the same.
            let _ = self.poll.poll(&mut events, Some(LOOK));
            for event in events.iter().filter(|event| event.token() != WAKER) {
                self.go_on(event.token().0, &mut buffer);
            }
            loop {
                match self.given.try_recv() {
                    Ok(stream) => self.open(stream, &mut buffer),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            self.end_late();
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                self.look_at_files();
            }
        }
    }

    fn open(&mut self, mut stream: TcpStream, buffer: &mut [u8]) {
        let Ok(tls) = self.credentials.accept() else {
            return;
        };
        if self.opening.len() >= OPENING_MAX
            && let Some((_, oldest)) = self.opening.pop_first()
        {
            self.refuse(oldest, "too many connections open at once");
        }
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
            Step::Refused(reason) => self.refuse(opening, &reason),
        }
    }

    fn hand_over(&mut self, mut opening: Opening) {
        let mut nodes = (1..=self.nodes).map(NodeId);
        let Some(node) = nodes.find(|node| self.credentials.is_of(&opening.tls, *node)) else {
            let reason = "its certificate is that of no node of this cluster";
            return self.refuse(opening, reason);
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
        self.next_shard = (shard + 1) % self.mailboxes.len();
        let proved = Proved {
            tls: opening.tls,
            node,
            early: opening.early,
        };
        let mail = Mail::Peer(opening.stream, Some(Box::new(proved)));
        self.mailboxes.send(shard, mail);
    }

    fn refuse(&mut self, opening: Opening, reason: &str) {
        if self.log.may_write(Instant::now()) {
            let from = opening.stream.peer_addr().ok();
            let from = from.map(|address| address.to_string());
            tracing::warn!(from, reason, "a connection to the port of nodes is refused");
        }
    }

    fn end_late(&mut self) {
        while let Some(first) = self.opening.first_entry()
            && first.get().since.elapsed() >= OPENING_TIME
        {
            let late = first.remove();
            self.refuse(late, "it does not prove which node it is");
        }
    }

    fn look_at_files(&mut self) {
        let changed = self.files.changed();
        if changed == self.changed {
            return;
        }
        self.changed = changed;
        match self.files.read() {
            Ok(read) => {
                self.credentials = Arc::new(read);
                let credentials = &self.credentials;
                self.mailboxes
                    .all(|| Mail::Credentials(credentials.clone()));
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
    fn a_flood_of_refusals_is_a_few_lines() {
        let start = Instant::now();
        let mut log = Log::new(start);
        let written = (0..1000).filter(|_| log.may_write(start)).count();
        assert_eq!(written, LOG_LINES as usize);
        assert!(log.may_write(start + LOG_TIME), "the next span has its own");
    }
}
