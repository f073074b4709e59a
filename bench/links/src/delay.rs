//! A proxy that delays: every byte arrives a fixed time after it was sent, in order.
//!
//! For links between processes of one machine where the kernel has no means of its own. One thread
//! serves all connections. What has been read waits in the queue of its direction until it is due;
//! a full queue is not read from, so the memory is bounded and senders feel the delay as they would
//! feel a long line with a bounded window.
//!
//! The thread sleeps in `ppoll` until the next byte is due. A machine whose cores are busy wakes
//! it late, so it counts by how much ([`DelayCounts`]): a report of a delay has that count too.

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl::set_timerslack;
use nix::sys::time::TimeSpec;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Result, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes that wait in one direction of a connection; more are not read.
const QUEUE_BYTES_MAX: usize = 1 << 20;
const READ_BYTES: usize = 64 << 10;
/// Connections at a time; more are refused.
const CONNECTIONS_MAX: usize = 1_024;
/// The longest sleep: so soon a stop is noticed.
const SLEEP_MAX: Duration = Duration::from_millis(20);
/// The longest wait for the target of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Stands in for several addresses. Dropping it cuts all connections.
#[derive(Debug)]
pub struct DelayProxy {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What a proxy did since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DelayCounts {
    /// Bytes handed on.
    pub bytes: u64,
    /// Reads handed on.
    pub reads: u64,
    /// Nanoseconds that reads were handed on later than due, all together.
    pub late_ns: u64,
    /// The most of one read.
    pub late_ns_max: u64,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    delay_ns: AtomicU64,
    bytes: AtomicU64,
    reads: AtomicU64,
    late_ns: AtomicU64,
    late_ns_max: AtomicU64,
}

impl DelayProxy {
    /// Listens on a free loopback port for each of the targets. They need not listen yet.
    ///
    /// # Errors
    /// No port, no thread.
    pub fn start(targets: &[SocketAddr], delay: Duration) -> Result<DelayProxy> {
        let mut doors = Vec::new();
        for &target in targets {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            listener.set_nonblocking(true)?;
            doors.push(Door { listener, target });
        }
        let addresses = doors.iter().map(|door| door.listener.local_addr());
        let addresses = addresses.collect::<Result<_>>()?;
        let shared = Arc::new(Shared::default());
        shared.set_delay(delay);
        let mut relay = Relay {
            doors,
            lines: Vec::new(),
            shared: shared.clone(),
            buffer: vec![0; READ_BYTES],
        };
        let builder = std::thread::Builder::new().name("delay".to_string());
        let thread = builder.spawn(move || relay.run())?;
        Ok(DelayProxy {
            addresses,
            shared,
            thread: Some(thread),
        })
    }

    /// Where to connect instead of each target, in their order.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What is read from now on is delayed by this. It arrives behind what was read before.
    pub fn set_delay(&self, delay: Duration) {
        self.shared.set_delay(delay);
    }

    /// What it did so far.
    pub fn counts(&self) -> DelayCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        DelayCounts {
            bytes: read(&self.shared.bytes),
            reads: read(&self.shared.reads),
            late_ns: read(&self.shared.late_ns),
            late_ns_max: read(&self.shared.late_ns_max),
        }
    }
}

impl Drop for DelayProxy {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic in the thread has been printed, and here is no caller to tell.
            let _ = thread.join();
        }
    }
}

/// A port and what it stands for.
struct Door {
    listener: TcpListener,
    target: SocketAddr,
}

/// One direction of a connection.
#[derive(Default)]
struct Way {
    queue: VecDeque<Waiting>,
    bytes: usize,
    /// The source has ended; the destination is told when the queue is empty.
    ended: bool,
    /// The destination has been told.
    told: bool,
    /// The destination took less than it was given.
    blocked: bool,
}

/// What was read at one time.
struct Waiting {
    due: Instant,
    bytes: Vec<u8>,
    written: usize,
}

/// A connection: two sockets, and the way from each to the other.
struct Line {
    ends: [TcpStream; 2],
    ways: [Way; 2],
    broken: bool,
}

struct Relay {
    doors: Vec<Door>,
    lines: Vec<Line>,
    shared: Arc<Shared>,
    buffer: Vec<u8>,
}

/// What the system says of a connection's ends: readable, writable.
type Ready = [(bool, bool); 2];

impl Relay {
    fn run(&mut self) {
        // Without it the system may wake the thread 50 us late. It is no error if it cannot.
        let _ = set_timerslack(1);
        while !self.shared.stop.load(Ordering::Relaxed) {
            let (knocks, ready) = self.wait();
            let delay = Duration::from_nanos(self.shared.delay_ns.load(Ordering::Relaxed));
            for (line, ready) in self.lines.iter_mut().zip(ready) {
                for (from, (readable, writable)) in ready.into_iter().enumerate() {
                    if readable {
                        line.read(from, delay, &mut self.buffer);
                    }
                    if writable {
                        line.ways[1 - from].blocked = false;
                    }
                }
            }
            for line in &mut self.lines {
                for from in 0..2 {
                    line.write(from, &self.shared);
                }
            }
            self.lines.retain(|line| !line.is_over());
            for (at, knock) in knocks.into_iter().enumerate() {
                if knock {
                    self.accept(at);
                }
            }
        }
    }

    /// Sleeps until something can be read or written, or is due.
    fn wait(&self) -> (Vec<bool>, Vec<Ready>) {
        let listeners = self.doors.iter();
        let mut fds: Vec<PollFd<'_>> = listeners
            .map(|door| PollFd::new(door.listener.as_fd(), PollFlags::POLLIN))
            .collect();
        let mut next: Option<Instant> = None;
        for line in &self.lines {
            for end in 0..2 {
                let (out, into) = (&line.ways[end], &line.ways[1 - end]);
                let mut flags = PollFlags::empty();
                flags.set(PollFlags::POLLIN, out.bytes < QUEUE_BYTES_MAX && !out.ended);
                flags.set(PollFlags::POLLOUT, into.blocked);
                fds.push(PollFd::new(line.ends[end].as_fd(), flags));
                let due = out.queue.front().map(|first| first.due);
                let due = due.filter(|_| !out.blocked);
                next = next.into_iter().chain(due).min();
            }
        }
        let sleep = match next {
            Some(due) => due.saturating_duration_since(Instant::now()).min(SLEEP_MAX),
            None => SLEEP_MAX,
        };
        // An error is that of an interrupting signal: as if nothing were ready.
        let _ = ppoll(&mut fds, Some(TimeSpec::from_duration(sleep)), None);
        let events = |fd: &PollFd<'_>| fd.revents().unwrap_or(PollFlags::empty());
        let over = PollFlags::POLLHUP | PollFlags::POLLERR;
        let ready = |fd: &PollFd<'_>| {
            let events = events(fd);
            let readable = events.intersects(PollFlags::POLLIN | over);
            (readable, events.intersects(PollFlags::POLLOUT | over))
        };
        let (doors, ends) = fds.split_at(self.doors.len());
        let knocks = doors.iter().map(|fd| !events(fd).is_empty()).collect();
        let ends = ends
            .chunks_exact(2)
            .map(|two| [ready(&two[0]), ready(&two[1])]);
        (knocks, ends.collect())
    }

    fn accept(&mut self, at: usize) {
        let Door { listener, target } = &self.doors[at];
        while let Ok((near, _)) = listener.accept() {
            // Who cannot be connected is hung up on, as by the target itself.
            if self.lines.len() < CONNECTIONS_MAX
                && let Ok(far) = TcpStream::connect_timeout(target, CONNECT_TIMEOUT)
                && let Ok(line) = Line::new(near, far)
            {
                self.lines.push(line);
            }
        }
    }
}

impl Line {
    fn new(near: TcpStream, far: TcpStream) -> Result<Line> {
        for end in [&near, &far] {
            end.set_nonblocking(true)?;
            end.set_nodelay(true)?;
        }
        Ok(Line {
            ends: [near, far],
            ways: Default::default(),
            broken: false,
        })
    }

    /// Takes what an end has sent, up to the room in the queue.
    fn read(&mut self, from: usize, delay: Duration, buffer: &mut [u8]) {
        let way = &mut self.ways[from];
        while way.bytes < QUEUE_BYTES_MAX && !way.ended {
            match self.ends[from].read(buffer) {
                Ok(0) => way.ended = true,
                Ok(count) => {
                    way.bytes += count;
                    way.queue.push_back(Waiting {
                        due: Instant::now() + delay,
                        bytes: buffer[..count].to_vec(),
                        written: 0,
                    });
                    if count < buffer.len() {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.broken = true;
                    return;
                }
            }
        }
    }

    /// Hands on what is due.
    fn write(&mut self, from: usize, shared: &Shared) {
        let (way, to) = (&mut self.ways[from], &mut self.ends[1 - from]);
        while let Some(first) = way.queue.front_mut() {
            let now = Instant::now();
            if way.blocked || first.due > now {
                return;
            }
            if first.written == 0 {
                shared.count(first.bytes.len(), now - first.due);
            }
            match to.write(&first.bytes[first.written..]) {
                Ok(count) => first.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    way.blocked = true;
                    return;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.broken = true;
                    return;
                }
            }
            if first.written == first.bytes.len() {
                way.bytes -= first.written;
                way.queue.pop_front();
            }
        }
        if way.ended && !way.told {
            way.told = true;
            // An end that has gone already needs no telling.
            let _ = to.shutdown(Shutdown::Write);
        }
    }

    fn is_over(&self) -> bool {
        self.broken || self.ways.iter().all(|way| way.told)
    }
}

impl Shared {
    fn set_delay(&self, delay: Duration) {
        self.delay_ns
            .store(delay.as_nanos() as u64, Ordering::Relaxed);
    }

    fn count(&self, bytes: usize, late: Duration) {
        let late_ns = late.as_nanos() as u64;
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.late_ns.fetch_add(late_ns, Ordering::Relaxed);
        self.late_ns_max.fetch_max(late_ns, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(30);

    /// A listener, a proxy before it, and both ends of a connection through it.
    fn line(delay: Duration) -> (DelayProxy, TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let target = listener.local_addr().unwrap();
        let proxy = DelayProxy::start(&[target], delay).unwrap();
        let near = TcpStream::connect(proxy.addresses()[0]).unwrap();
        let (far, _) = listener.accept().unwrap();
        near.set_nodelay(true).unwrap();
        far.set_nodelay(true).unwrap();
        (proxy, near, far)
    }

    #[test]
    fn bytes_arrive_late_in_both_directions() {
        let (proxy, mut near, mut far) = line(DELAY);
        let mut byte = [0];
        let began = Instant::now();
        near.write_all(&[7]).unwrap();
        far.read_exact(&mut byte).unwrap();
        assert!(began.elapsed() >= DELAY && byte == [7]);
        far.write_all(&[8]).unwrap();
        near.read_exact(&mut byte).unwrap();
        assert!(began.elapsed() >= DELAY * 2 && byte == [8]);
        assert_eq!((proxy.counts().bytes, proxy.counts().reads), (2, 2));
    }

    #[test]
    fn what_is_sent_apart_does_not_wait_for_each_other() {
        let five = || {
            let (_proxy, mut near, mut far) = line(DELAY);
            let began = Instant::now();
            for number in 0..5u8 {
                near.write_all(&[number]).unwrap();
                std::thread::sleep(Duration::from_millis(2));
            }
            let mut bytes = [0; 5];
            far.read_exact(&mut bytes).unwrap();
            assert_eq!(bytes, [0, 1, 2, 3, 4]);
            began.elapsed()
        };
        // One after the other would be five times.
        let took = peer::again(five, |took| *took < DELAY * 4);
        assert!(took < DELAY * 4, "{took:?}");
    }

    #[test]
    fn much_more_than_the_queue_holds_arrives_whole_and_in_order() {
        let (_proxy, mut near, mut far) = line(Duration::from_millis(1));
        let total = 8 * QUEUE_BYTES_MAX;
        let sender = std::thread::spawn(move || {
            let bytes: Vec<u8> = (0..total).map(|at| (at / 1_000) as u8).collect();
            near.write_all(&bytes).unwrap();
            // Closing tells the other end that this was all.
        });
        // The queue fills before anything is taken.
        std::thread::sleep(Duration::from_millis(50));
        let mut found = Vec::new();
        far.read_to_end(&mut found).unwrap();
        sender.join().unwrap();
        assert_eq!(found.len(), total);
        assert!(
            found
                .iter()
                .enumerate()
                .all(|(at, byte)| *byte == (at / 1_000) as u8)
        );
    }

    #[test]
    fn a_target_that_is_not_there_hangs_up() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let target = listener.local_addr().unwrap();
        drop(listener);
        let proxy = DelayProxy::start(&[target], DELAY).unwrap();
        let mut near = TcpStream::connect(proxy.addresses()[0]).unwrap();
        let ended = near.read(&mut [0; 1]);
        assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    }
}
