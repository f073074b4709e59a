//! What a shard hears while a function computes: cancels of the statement that it runs.
//!
//! The shard's thread is deep in its machine then, and can neither take mail nor read sockets. So
//! [`node::overtime`] asks here now and then. Mail is taken out of the mailbox and kept in its
//! order, clients are accepted, and both are looked through for a cancel; the shard finds them
//! here when the function has ended. A cancel request that comes encrypted is not seen before.

use crate::mailbox::{Mail, Mailboxes};
use crate::shard_thread::monotonic_us;
use mio::net::{TcpListener, TcpStream};
use nix::time::{ClockId, clock_gettime};
use node::overtime::{self, Host};
use node::{Cancel, Message};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::mpsc::Receiver;

/// Pause between two looks, in microseconds.
const LOOK_EVERY_US: u64 = 50_000;
/// Clients that are accepted while a function computes.
const ACCEPTED_MAX: usize = 64;
/// Bytes of a cancel request: its length, its code, and whom it concerns.
const REQUEST_BYTES: usize = 16;

/// A shard's mailbox and, of the first shard, its door.
pub(crate) struct Ears {
    receiver: Receiver<Mail>,
    mailboxes: Mailboxes,
    /// Mail that was taken out of the mailbox while a function computed.
    early: RefCell<VecDeque<Mail>>,
    /// Where clients come in, once they are accepted.
    door: RefCell<Option<std::net::TcpListener>>,
    /// Clients that were accepted while a function computed.
    accepted: RefCell<VecDeque<TcpStream>>,
    look_at_us: Cell<u64>,
}

thread_local! {
    static EARS: RefCell<Option<Rc<Ears>>> = const { RefCell::new(None) };
}

/// Statements that this thread runs are ended in time from now on.
pub(crate) fn listen(receiver: Receiver<Mail>, mailboxes: Mailboxes) -> Rc<Ears> {
    let ears = Rc::new(Ears {
        receiver,
        mailboxes,
        early: RefCell::default(),
        door: RefCell::default(),
        accepted: RefCell::default(),
        look_at_us: Cell::new(0),
    });
    EARS.set(Some(ears.clone()));
    overtime::lend(Host {
        clock_us: monotonic_us,
        busy_us,
        is_cancelled: |pid| {
            EARS.with_borrow(|ears| ears.as_ref().is_some_and(|ears| ears.hear_cancel(pid)))
        },
    });
    ears
}

/// Microseconds for which a processor has worked for this thread.
fn busy_us() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map_or(0, |time| {
        time.tv_sec() as u64 * 1_000_000 + time.tv_nsec() as u64 / 1_000
    })
}

fn is_order(mail: &Mail) -> bool {
    match mail {
        Mail::Message(_, message) | Mail::FromPeer(_, message) => {
            matches!(message.cancel(), Some(Cancel::Ordered(_)))
        }
        _ => false,
    }
}

impl Ears {
    /// Clients come in at this listener, which does not block.
    pub(crate) fn open(&self, door: &TcpListener) {
        let door = door.as_fd().try_clone_to_owned();
        // Without a second handle clients are accepted when the function has ended.
        self.door.replace(door.ok().map(Into::into));
    }

    /// The next mail, if there is some.
    pub(crate) fn next_mail(&self) -> Option<Mail> {
        let early = self.early.borrow_mut().pop_front();
        early.or_else(|| self.receiver.try_recv().ok())
    }

    /// A client that was accepted while a function computed.
    pub(crate) fn next_client(&self) -> Option<TcpStream> {
        self.accepted.borrow_mut().pop_front()
    }

    /// Whether there is such a client.
    pub(crate) fn has_clients(&self) -> bool {
        !self.accepted.borrow().is_empty()
    }

    /// Whether the session's client has cancelled. The cancel is dealt with then.
    fn hear_cancel(&self, pid: i32) -> bool {
        let now = monotonic_us();
        if now < self.look_at_us.get() {
            return false;
        }
        self.look_at_us.set(now + LOOK_EVERY_US);
        let mut early = self.early.borrow_mut();
        early.extend(self.receiver.try_iter());
        let cancels = |mail: &Mail| match mail {
            Mail::Client(stream, _) => self.is_request(stream, pid),
            Mail::Message(_, message) | Mail::FromPeer(_, message) => self.concerns(message, pid),
            _ => false,
        };
        if let Some(at) = early.iter().position(cancels) {
            // An order is answered later, when the session has nothing left to cancel.
            if !is_order(&early[at]) {
                early.remove(at);
            }
            return true;
        }
        let mut accepted = self.accepted.borrow_mut();
        let door = self.door.borrow();
        while let Some(door) = &*door
            && accepted.len() < ACCEPTED_MAX
            && let Ok((stream, _)) = door.accept()
        {
            // A client that cannot be served without blocking is let go.
            if stream.set_nonblocking(true).is_ok() {
                accepted.push_back(TcpStream::from_std(stream));
            }
        }
        let found = accepted
            .iter()
            .position(|stream| self.is_request(stream, pid));
        found.is_some_and(|at| accepted.remove(at).is_some())
    }

    fn concerns(&self, message: &Message, pid: i32) -> bool {
        match message.cancel() {
            None => false,
            Some(Cancel::Known(session) | Cancel::Ordered(session)) => session == pid,
            Some(Cancel::Asked { pid: asked, secret }) => self.proves((asked, secret), pid),
        }
    }

    fn proves(&self, (asked, secret): (i32, i32), pid: i32) -> bool {
        asked == pid && self.mailboxes.secret_of(pid) == Some(secret)
    }

    /// Whether a client has come to cancel what the session does.
    fn is_request(&self, stream: &TcpStream, pid: i32) -> bool {
        let mut bytes = [0; REQUEST_BYTES];
        let peeked = stream.peek(&mut bytes);
        if !peeked.is_ok_and(|count| count == REQUEST_BYTES) {
            return false;
        }
        wire::cancel_request(&bytes).is_some_and(|asked| self.proves(asked, pid))
    }
}
