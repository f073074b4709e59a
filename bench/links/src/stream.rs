//! The bytes of a connection: for a caller that waits in the call, and for one that comes back when
//! there is something to do.
//!
//! All clients are `async fn`s over this. As a stream is made, every call waits for the server, and
//! the futures are ready at their first poll. Once suspended, they are pending where the
//! server has nothing to say: who drives them polls again when the socket can be read or written.

use crate::link::LinkError;
use crate::tls::{Session, Tls};
use std::future::poll_fn;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

/// Room for what a server sends, at first; it grows with large answers.
const READ_BYTES: usize = 8 << 10;
/// The most that is read at a time, unless a message is larger.
const READ_BYTES_MAX: usize = 64 << 10;

/// A connection to a server.
#[derive(Debug)]
pub struct Stream {
    socket: TcpStream,
    tls: Option<Box<Session>>,
    /// What is to be sent next.
    pub out: Vec<u8>,
    /// How much of it has been sent.
    sent: usize,
    input: Vec<u8>,
    /// The unread part of `input`.
    unread: (usize, usize),
    suspends: bool,
    is_late: Lateness,
}

/// Ends the calls of a stream that wait for too long.
#[derive(Clone, Debug, Default)]
pub struct Lateness(Arc<AtomicBool>);

impl Lateness {
    /// From now on calls fail instead of waiting.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// They wait again.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Stream {
    pub(crate) fn new(socket: TcpStream) -> Stream {
        Stream {
            socket,
            tls: None,
            out: Vec::new(),
            sent: 0,
            input: vec![0; READ_BYTES],
            unread: (0, 0),
            suspends: false,
            is_late: Lateness::default(),
        }
    }

    /// From now on everything is encrypted. The server waits for that.
    pub(crate) fn secure(&mut self, tls: &Tls, host: &str) -> Result<(), LinkError> {
        if self.unread.0 < self.unread.1 {
            // Somebody between the two could have put it there.
            let text = "bytes in clear text behind the consent to TLS";
            return Err(LinkError::Protocol(text));
        }
        self.tls = Some(Box::new(tls.begin(&mut self.socket, host)?));
        Ok(())
    }

    /// Whether it is encrypted.
    pub fn is_secure(&self) -> bool {
        self.tls.is_some()
    }

    /// Bounds the waits of calls that wait; `None`: they wait for ever.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> Result<(), LinkError> {
        self.socket.set_read_timeout(timeout)?;
        Ok(self.socket.set_write_timeout(timeout)?)
    }

    /// From now on no call waits: futures are pending instead. What is returned ends them.
    pub fn suspend(&mut self) -> Result<Lateness, LinkError> {
        self.socket.set_nonblocking(true)?;
        self.suspends = true;
        // What was prepared needed more room than what is to come.
        self.out.shrink_to(0);
        Ok(self.is_late.clone())
    }

    /// What ends the calls of another stream ends those of this one, too.
    pub fn end_with(&mut self, lateness: &Lateness) {
        self.is_late = lateness.clone();
    }

    /// What to do about a call that found nothing to do.
    fn stalled<T>(&self, kind: ErrorKind) -> Poll<Result<T, LinkError>> {
        let waits_on = kind == ErrorKind::WouldBlock && self.suspends;
        if waits_on && !self.is_late.0.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        let text = String::from("the server did not answer in time");
        Poll::Ready(Err(LinkError::Io(ErrorKind::TimedOut, text)))
    }

    /// Sends `out`.
    pub async fn flush(&mut self) -> Result<(), LinkError> {
        poll_fn(|_| {
            while self.sent < self.out.len() {
                let rest = &self.out[self.sent..];
                let written = match &mut self.tls {
                    None => self.socket.write(rest),
                    Some(tls) => tls.write(&mut self.socket, rest),
                };
                match written {
                    Ok(0) => return Poll::Ready(Err(closed())),
                    Ok(count) => self.sent += count,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if is_stall(error.kind()) => return self.stalled(error.kind()),
                    Err(error) => return Poll::Ready(Err(error.into())),
                }
            }
            match self.tls.as_mut().map(|tls| tls.flush(&mut self.socket)) {
                None | Some(Ok(())) => Poll::Ready(Ok(())),
                Some(Err(error)) if is_stall(error.kind()) => self.stalled(error.kind()),
                Some(Err(error)) => Poll::Ready(Err(error.into())),
            }
        })
        .await?;
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    /// Reads until at least `wanted` bytes are unread.
    pub async fn fill(&mut self, wanted: usize) -> Result<(), LinkError> {
        if self.unread.1 - self.unread.0 >= wanted {
            return Ok(());
        }
        self.make_room(wanted);
        poll_fn(|_| {
            while self.unread.1 - self.unread.0 < wanted {
                let into = &mut self.input[self.unread.1..];
                let read = match &mut self.tls {
                    None => self.socket.read(into),
                    Some(tls) => tls.read(&mut self.socket, into),
                };
                match read {
                    Ok(0) => return Poll::Ready(Err(closed())),
                    Ok(count) => self.unread.1 += count,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if is_stall(error.kind()) => return self.stalled(error.kind()),
                    Err(error) => return Poll::Ready(Err(error.into())),
                }
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// Makes the buffer large enough for `wanted` unread bytes.
    fn make_room(&mut self, wanted: usize) {
        let (start, end) = self.unread;
        if start == end {
            self.unread = (0, 0);
        } else if start + wanted > self.input.len() {
            self.input.copy_within(start..end, 0);
            self.unread = (0, end - start);
        }
        // A full buffer means that more is on its way.
        let was_full = end == self.input.len() && end < READ_BYTES_MAX;
        let size = if was_full { 2 * end } else { self.input.len() };
        let size = size.max(wanted.next_power_of_two());
        if size > self.input.len() {
            self.input.resize(size, 0);
        }
    }

    /// The unread bytes, of which [`Stream::fill`] has made enough.
    pub fn unread(&self) -> &[u8] {
        &self.input[self.unread.0..self.unread.1]
    }

    /// Takes so many of the unread bytes: their place, which is valid until the next call that
    /// reads.
    pub fn take(&mut self, count: usize) -> (usize, usize) {
        let start = self.unread.0;
        self.unread.0 += count;
        (start, start + count)
    }

    /// What was taken.
    pub fn bytes(&self, place: (usize, usize)) -> &[u8] {
        &self.input[place.0..place.1]
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Nothing can be read or written now; of a call that waits, the time is up.
fn is_stall(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn closed() -> LinkError {
    let text = String::from("the server closed the connection");
    LinkError::Io(ErrorKind::UnexpectedEof, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::ready;
    use std::net::TcpListener;
    use std::pin::pin;
    use std::task::{Context, Waker};
    use std::time::Instant;

    fn pair() -> (Stream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Stream::new(near), listener.accept().unwrap().0)
    }

    #[test]
    fn a_suspended_stream_is_pending_until_there_is_something() {
        let (mut near, mut far) = pair();
        let is_late = near.suspend().unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        {
            let mut filling = pin!(near.fill(6));
            assert!(filling.as_mut().poll(&mut cx).is_pending());
            far.write_all(b"abc").unwrap();
            assert!(filling.as_mut().poll(&mut cx).is_pending());
            far.write_all(b"defg").unwrap();
            let until = Instant::now() + Duration::from_secs(60);
            while filling.as_mut().poll(&mut cx).is_pending() {
                assert!(Instant::now() < until, "it was sent");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let place = near.take(6);
        assert_eq!(
            (near.bytes(place), near.unread()),
            (&b"abcdef"[..], &b"g"[..])
        );
        let mut filling = pin!(near.fill(2));
        assert!(filling.as_mut().poll(&mut cx).is_pending());
        is_late.set();
        let Poll::Ready(Err(LinkError::Io(ErrorKind::TimedOut, _))) = filling.poll(&mut cx) else {
            panic!("it still waits");
        };
    }

    #[test]
    fn a_stream_that_waits_has_an_end_of_its_patience() {
        let (mut near, mut far) = pair();
        near.set_timeout(Some(Duration::from_millis(10))).unwrap();
        let Err(LinkError::Io(ErrorKind::TimedOut, _)) = ready(near.fill(1)) else {
            panic!("nothing was sent");
        };
        // Large messages make room for themselves, and what is unread stays.
        far.write_all(&vec![7; 100_000]).unwrap();
        near.set_timeout(Some(Duration::from_secs(60))).unwrap();
        ready(near.fill(10)).unwrap();
        near.take(10);
        ready(near.fill(99_990)).unwrap();
        assert_eq!(near.unread(), vec![7; 99_990]);
        drop(far);
        let Err(LinkError::Io(ErrorKind::UnexpectedEof, _)) = ready(near.fill(99_991)) else {
            panic!("it is closed");
        };
    }

    #[test]
    fn what_does_not_fit_the_socket_is_sent_later() {
        let (mut near, mut far) = pair();
        near.suspend().unwrap();
        near.out = vec![1; 20 << 20];
        let mut cx = Context::from_waker(Waker::noop());
        let mut seen = 0;
        let mut buffer = vec![0; 1 << 20];
        {
            let mut flushing = pin!(near.flush());
            while flushing.as_mut().poll(&mut cx).is_pending() {
                seen += far.read(&mut buffer).unwrap();
            }
        }
        drop(near);
        while let Ok(count @ 1..) = far.read(&mut buffer) {
            seen += count;
        }
        assert_eq!(seen, 20 << 20);
    }
}
