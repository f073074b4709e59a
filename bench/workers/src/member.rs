//! A worker as its coordinator sees it.

use super::message::{
    ANSWER_BYTES_MAX, Answer, Line, Order, greeted, greeting, read_line, receive,
};
use super::packed::PackedPart;
use super::packed_sessions::{PackedSessions, PackedSessionsSecond};
use super::recorded::Pieces;
use super::{BEAT, BUSY, GREETING_MAX, SILENCE};
use drive::run::others::Clock;
use drive::run::watch::SecondCounts;
use links::error::DriveError;
use links::lock;
use sessions::interaction::Changes;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Round trips by which a clock is measured; the shortest counts.
const ROUND_TRIPS: usize = 16;
/// How long a call of this module waits for something new before it returns without.
const MOMENT: Duration = Duration::from_millis(50);

/// Seconds of a run that are kept until somebody asks for them.
const SECONDS_MAX: usize = 60;
/// How long a worker may be busy with a run that ends.
const BUSY_MAX: Duration = Duration::from_secs(3);

/// Why a worker cannot take part.
enum Unreached {
    /// It works for another run.
    Busy(String),
    Failed(String),
}

/// A [`Clock`], and a moment on both.
#[derive(Clone, Copy, Debug)]
struct Measured {
    clock: Clock,
    here: Instant,
    /// Microseconds since the worker was started.
    there_us: u64,
}

#[derive(Debug, Default)]
struct State {
    lost: Option<String>,
    ready: Option<Vec<(String, String)>>,
    /// When it came, and what it says.
    pong: Option<(Instant, u64, u64)>,
    measured: Option<Measured>,
    waiting: u64,
    /// By row, how many transactions of it compete.
    competing: Vec<u32>,
    /// What it has recorded, as far as it has come; `None`: it is not to record anything.
    pieces: Option<Pieces>,
    seconds: BTreeMap<u64, SecondCounts>,
    done: Option<PackedPart>,
    sessions_seconds: BTreeMap<u64, PackedSessionsSecond>,
    /// What a run of sessions has changed, as far as it has come.
    changes: Changes,
    sessions_done: Option<Box<PackedSessions>>,
    /// That has been taken.
    is_taken: bool,
    has_ended: bool,
}

/// A worker.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) address: String,
    pub(super) cores: usize,
    /// Whether it is the same program, and not only of the same release.
    pub(super) same_build: bool,
    line: Line,
    state: Mutex<State>,
    news: Condvar,
    is_left: AtomicBool,
}

/// There is no result, because of this worker.
pub(super) fn lost(address: &str, why: &str) -> DriveError {
    DriveError::Worker(format!("worker {address} {why}: there is no result"))
}

impl Member {
    /// Connects to a worker from a program of this build. One that works for another run is asked
    /// again for a moment: that run may just have ended.
    pub(super) fn reach(address: &str, own: Option<&str>) -> Result<Arc<Member>, DriveError> {
        let until = Instant::now() + BUSY_MAX;
        loop {
            match Member::reach_once(address, own) {
                Err(Unreached::Busy(_)) if Instant::now() < until => std::thread::sleep(MOMENT),
                Err(Unreached::Busy(why) | Unreached::Failed(why)) => {
                    return Err(DriveError::Worker(format!("worker {address}: {why}")));
                }
                Ok(member) => return Ok(member),
            }
        }
    }

    fn reach_once(address: &str, own: Option<&str>) -> Result<Arc<Member>, Unreached> {
        let failed = Unreached::Failed;
        let reached = connect(address).and_then(|mut stream| {
            stream.set_write_timeout(Some(GREETING_MAX))?;
            stream.write_all(greeting("").as_bytes())?;
            let line = read_line(&mut stream, GREETING_MAX)?;
            Ok((stream, line))
        });
        let (stream, said) = reached.map_err(|error| {
            failed(match error.kind() {
                ErrorKind::ConnectionRefused => String::from(
                    "no worker listens there (`trellis bench worker --listen HOST:PORT` starts \
                     one)",
                ),
                _ => error.to_string(),
            })
        })?;
        let said = greeted(&said).map_err(|why| match why.starts_with("versions") {
            true => failed(why),
            false => failed(String::from("what listens there is no worker")),
        })?;
        if let Some(why) = said.strip_prefix("refused: ") {
            let why = why.to_owned();
            return Err(match why.starts_with(BUSY) {
                true => Unreached::Busy(why),
                false => failed(why),
            });
        }
        let words: Vec<&str> = said.split(' ').collect();
        let (cores, other) = match words.as_slice() {
            ["cores", cores, "build", other] => (cores.parse().ok(), *other),
            _ => return Err(failed(format!("it says {said:?}"))),
        };
        let line = Line::new(&stream).map_err(|error| failed(error.to_string()))?;
        let member = Arc::new(Member {
            address: address.to_owned(),
            cores: cores.unwrap_or(1),
            same_build: own.is_some_and(|own| own == other),
            line,
            state: Mutex::default(),
            news: Condvar::new(),
            is_left: AtomicBool::new(false),
        });
        let (reader, beater) = (Arc::clone(&member), Arc::clone(&member));
        std::thread::spawn(move || reader.read(stream));
        std::thread::spawn(move || beater.beat());
        Ok(member)
    }

    /// Sends an order. A worker that cannot be told is lost.
    pub(super) fn send(&self, order: &Order) {
        if let Err(error) = self.line.send(order) {
            self.lose(&error);
        }
    }

    /// Has the worker stop, and ends the connection.
    pub(super) fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
        // It may be gone already.
        let _ = self.line.send(&Order::Stop);
        self.line.close();
    }

    /// Says that the coordinator is there, until it leaves or the worker is lost.
    fn beat(&self) {
        while !self.is_left.load(Ordering::Relaxed) && !lock(&self.state).has_ended {
            self.send(&Order::Beat);
            std::thread::sleep(BEAT);
        }
    }

    /// Takes in what the worker says.
    fn read(&self, mut stream: TcpStream) {
        loop {
            let answer = receive::<Answer>(&mut stream, ANSWER_BYTES_MAX);
            let now = Instant::now();
            let mut state = lock(&self.state);
            match answer {
                Ok(Answer::Beat { waiting }) => state.waiting = waiting,
                Ok(Answer::Ready(parameters)) => state.ready = Some(parameters),
                Ok(Answer::Pong { steady_us, unix_us }) => {
                    state.pong = Some((now, steady_us, unix_us));
                }
                Ok(Answer::Second { second, counts }) => match counts.unpack() {
                    Ok(counts) => {
                        state.seconds.insert(second, counts);
                    }
                    Err(_) => state.lost = Some(String::from("has sent counts that do not fit")),
                },
                Ok(Answer::Competing(rows)) => state.competing = rows,
                Ok(Answer::Seen(piece)) => {
                    let pieces = state.pieces.as_mut();
                    if pieces.is_none_or(|pieces| pieces.add(&piece).is_err()) {
                        let text = "has sent a history that does not fit";
                        state.lost = Some(String::from(text));
                    }
                }
                Ok(Answer::Done(part)) => state.done = Some(*part),
                Ok(Answer::SessionsSecond { second, counts }) => {
                    state.sessions_seconds.insert(second, counts);
                    // Nobody asks for old ones any more.
                    while state.sessions_seconds.len() > SECONDS_MAX {
                        state.sessions_seconds.pop_first();
                    }
                }
                Ok(Answer::Changed(piece)) => {
                    if piece.add_to(&mut state.changes).is_err() {
                        state.lost = Some(String::from("has sent changes that do not fit"));
                    }
                }
                Ok(Answer::SessionsDone(part)) => state.sessions_done = Some(part),
                Ok(Answer::Refused(why)) => state.lost = Some(format!("does not go on ({why})")),
                Err(error) => {
                    drop(state);
                    return self.lose(&error);
                }
            }
            self.news.notify_all();
        }
    }

    /// The connection has ended. What had been done before stays done.
    fn lose(&self, error: &io::Error) {
        let mut state = lock(&self.state);
        state.has_ended = true;
        let is_done = state.done.is_some() || state.sessions_done.is_some() || state.is_taken;
        if !is_done && state.lost.is_none() {
            state.lost = Some(match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                    format!("was lost: it has said nothing for {} s", SILENCE.as_secs())
                }
                ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                    String::from("was lost: its connection is closed")
                }
                _ => format!("was lost: {error}"),
            });
        }
        self.news.notify_all();
    }

    /// Why there can be no result, if there can be none.
    pub(super) fn lost(&self) -> Option<DriveError> {
        let state = lock(&self.state);
        state.lost.as_ref().map(|why| lost(&self.address, why))
    }

    /// What `found` finds now or within a moment.
    fn soon<T>(&self, found: impl Fn(&mut State) -> Option<T>) -> Option<T> {
        let mut state = lock(&self.state);
        if let Some(found) = found(&mut state) {
            return Some(found);
        }
        let mut state = self.wait(state);
        found(&mut state)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.news.wait_timeout(state, MOMENT);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// What the worker would run, once its clients are connected. Waits a moment for it.
    pub(super) fn ready(&self) -> Option<Vec<(String, String)>> {
        self.soon(|state| state.ready.take())
    }

    /// The result. Waits a moment for it.
    pub(super) fn done(&self) -> Option<PackedPart> {
        self.soon(|state| state.done.clone())
    }

    /// The counts of a second. Waits a moment for them.
    pub(super) fn take_second(&self, second: u64) -> Option<SecondCounts> {
        self.soon(|state| state.seconds.remove(&second))
    }

    /// The counts of a second of a run of sessions. Waits a moment for them.
    pub(super) fn take_sessions_second(&self, second: u64) -> Option<PackedSessionsSecond> {
        self.soon(|state| state.sessions_seconds.remove(&second))
    }

    /// What has come of a run of sessions, and what it has changed. Waits a moment for it.
    pub(super) fn take_sessions(&self) -> Option<(Box<PackedSessions>, Changes)> {
        self.soon(|state| {
            let done = state.sessions_done.take()?;
            state.is_taken = true;
            Some((done, std::mem::take(&mut state.changes)))
        })
    }

    /// It has sent what cannot be.
    pub(super) fn unfit(&self, what: &str) {
        let mut state = lock(&self.state);
        let text = format!("has sent {what} that do not fit");
        state.lost.get_or_insert(text);
    }

    /// Transactions that are due and not begun.
    pub(super) fn waiting(&self) -> u64 {
        lock(&self.state).waiting
    }

    /// How many of its transactions compete for this row.
    pub(super) fn competing(&self, row: usize) -> u32 {
        lock(&self.state).competing.get(row).copied().unwrap_or(0)
    }

    /// It is to record so many reads and writes.
    pub(super) fn expect_history(&self, operations_max: usize) {
        lock(&self.state).pieces = Some(Pieces::new(operations_max));
    }

    /// What it has recorded, once it is done.
    pub(super) fn take_pieces(&self) -> Option<Pieces> {
        lock(&self.state).pieces.take()
    }

    /// What its clock may be wrong by since it was measured before the run: measured again, half a
    /// round trip and what the two clocks have gone apart.
    pub(super) fn measure_slack(&self) -> Result<Duration, DriveError> {
        let before = lock(&self.state).measured;
        let before = before.expect("the clock is measured before");
        self.measure_clock()?;
        let after = lock(&self.state).measured.replace(before);
        let after = after.expect("it was measured");
        let here = after.here.saturating_duration_since(before.here);
        let there = Duration::from_micros(after.there_us.saturating_sub(before.there_us));
        let trips = before.clock.round_trip_us.max(after.clock.round_trip_us);
        // A microsecond for each rounded time.
        Ok(here.abs_diff(there) + Duration::from_micros(trips / 2 + 2))
    }

    /// Measures the clock; returns the shortest round trip.
    pub(super) fn measure_clock(&self) -> Result<Duration, DriveError> {
        let mut shortest: Option<(Duration, Measured)> = None;
        for _ in 0..ROUND_TRIPS {
            lock(&self.state).pong = None;
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            let unix_us = since.map_or(0, |since| since.as_micros() as i64);
            let sent = Instant::now();
            self.send(&Order::Ping);
            let (came, there_us, there_unix_us) = loop {
                if let Some(lost) = self.lost() {
                    return Err(lost);
                }
                if lock(&self.state).has_ended {
                    return Err(lost(&self.address, "was lost: its connection is closed"));
                }
                if let Some(pong) = self.soon(|state| state.pong.take()) {
                    break pong;
                }
            };
            let trip = came.saturating_duration_since(sent);
            if shortest.is_none_or(|(other, _)| trip < other) {
                let here_us = unix_us.saturating_add(trip.as_micros() as i64 / 2);
                let there_unix_us = i64::try_from(there_unix_us).unwrap_or(i64::MAX);
                let clock = Clock {
                    offset_us: there_unix_us.saturating_sub(here_us),
                    round_trip_us: trip.as_micros() as u64,
                };
                let measured = Measured {
                    clock,
                    here: sent + trip / 2,
                    there_us,
                };
                shortest = Some((trip, measured));
            }
        }
        let (trip, measured) = shortest.expect("there are round trips");
        lock(&self.state).measured = Some(measured);
        Ok(trip)
    }

    /// This moment on the worker's clock, in microseconds since it was started.
    pub(super) fn clock_at(&self, moment: Instant) -> u64 {
        let state = lock(&self.state);
        let measured = state.measured.as_ref();
        let measured = measured.expect("the clock is measured before");
        let since = moment.saturating_duration_since(measured.here);
        measured.there_us.saturating_add(since.as_micros() as u64)
    }

    /// The clock as it was measured.
    pub(super) fn clock(&self) -> Clock {
        let state = lock(&self.state);
        let measured = state.measured.as_ref();
        measured.expect("the clock is measured before").clock
    }
}

/// Connects to the first address that accepts.
fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(
        ErrorKind::InvalidInput,
        format!("{address:?} is no HOST:PORT"),
    );
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, GREETING_MAX) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
