//! A worker: waits for a coordinator, carries out its part of a run, and waits for the next one.

use super::message::{
    Answer, Line, ORDER_BYTES_MAX, Order, build, greeted, greeting, read_line, receive,
};
use super::packed::{PackedPart, PackedSecond};
use super::recorded::Piece;
use super::{BEAT, BUSY, GREETING_MAX, SILENCE, WORKERS_MAX};
use drive::run::parts::{Lead, Part};
use drive::run::watch::SecondCounts;
use drive::tpcc::{Recorded, RunOptions, run_part};
use links::cpu::cores;
use links::lock;
use std::io::{Error, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Connections at a time, greetings included. What comes beyond them is closed.
const GUESTS_MAX: usize = 16;
/// How long a run may be announced before it begins.
const AHEAD_MAX: Duration = Duration::from_secs(60);
/// The pause after a connection that could not be taken.
const AGAIN: Duration = Duration::from_millis(100);
/// Such connections in succession that are put up with: those of a minute.
const FAILED_MAX: u32 = 600;

/// What makes the options of a run of the arguments of its command line, or says what is wrong with
/// them. They come from whoever can connect: nothing may be read or written for them but databases.
pub type Accept = dyn Fn(&[String]) -> Result<RunOptions, String> + Sync;

/// Works for one coordinator after the other. `say` gets a line about each. Returns the error when
/// no connection could be taken for a minute.
pub fn serve(listener: &TcpListener, accept: &Accept, say: &(dyn Fn(&str) + Sync)) -> Error {
    let worker = Worker {
        born: Instant::now(),
        build: build(),
        working_for: Mutex::new(None),
        guests: AtomicUsize::new(0),
        accept,
        say,
    };
    std::thread::scope(|scope| {
        let mut failed = 0;
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if failed == FAILED_MAX => return error,
                Err(_) => {
                    // Too many files are open, or the guest has gone again.
                    failed += 1;
                    std::thread::sleep(AGAIN);
                    continue;
                }
            };
            failed = 0;
            let worker = &worker;
            if worker.guests.fetch_add(1, Ordering::Relaxed) >= GUESTS_MAX {
                worker.guests.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let spawned = std::thread::Builder::new().spawn_scoped(scope, move || {
                worker.receive_guest(stream);
                worker.guests.fetch_sub(1, Ordering::Relaxed);
            });
            if spawned.is_err() {
                worker.guests.fetch_sub(1, Ordering::Relaxed);
            }
        }
    })
}

struct Worker<'a> {
    born: Instant,
    /// [`build`]
    build: Option<String>,
    /// The coordinator whose run goes on.
    working_for: Mutex<Option<String>>,
    guests: AtomicUsize,
    accept: &'a Accept,
    say: &'a (dyn Fn(&str) + Sync),
}

/// Ends the work for a coordinator, however it ends.
struct Working<'a>(&'a Mutex<Option<String>>);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        *lock(self.0) = None;
    }
}

impl Worker<'_> {
    /// Greets a guest, and works for it if it is a coordinator.
    fn receive_guest(&self, mut stream: TcpStream) {
        let Ok(peer) = stream.peer_addr() else { return };
        let peer = peer.to_string();
        let greeted = match read_line(&mut stream, GREETING_MAX) {
            Ok(line) => greeted(&line).map(|_| ()),
            Err(error) => Err(format!("a greeting was expected: {error}")),
        };
        if let Err(why) = greeted {
            return refuse(stream, &why);
        }
        let mut working_for = lock(&self.working_for);
        if let Some(other) = &*working_for {
            let why = format!("{BUSY} {other}");
            drop(working_for);
            return refuse(stream, &why);
        }
        *working_for = Some(peer.clone());
        drop(working_for);
        let working = Working(&self.working_for);
        (self.say)(&format!("coordinator {peer} has come"));
        let end = self.work(stream);
        drop(working);
        (self.say)(&format!("coordinator {peer}: {end}"));
    }

    /// Works for a coordinator. Returns how it ended.
    fn work(&self, mut stream: TcpStream) -> String {
        let build = self.build.as_deref().unwrap_or("unknown");
        let hello = greeting(&format!("cores {} build {build}", cores()));
        let line = match stream.write_all(hello.as_bytes()) {
            Ok(()) => Line::new(&stream),
            Err(error) => Err(error),
        };
        let line = match line {
            Ok(line) => line,
            Err(error) => return format!("the connection broke: {error}"),
        };
        let session = Session {
            line,
            born: self.born,
            state: Mutex::default(),
            news: Condvar::new(),
            waiting: AtomicU64::new(0),
            wanted: Mutex::default(),
            stop: AtomicBool::new(false),
        };
        std::thread::scope(|scope| {
            scope.spawn(|| session.read(stream));
            scope.spawn(|| session.beat());
            let end = match session.wait_for_order() {
                None => String::from("it has gone without a run"),
                Some(task) => {
                    let Part { number, count } = task.part;
                    (self.say)(&format!("part {} of {count}", number + 1));
                    match &task.what {
                        What::Run(arguments) => self.answer(&session, arguments, task.part),
                        What::Sessions(document) => session.answer_sessions(document, task.part),
                    }
                }
            };
            // What has been sent is read before the connection is closed.
            session.wait_for_end();
            session.line.close();
            end
        })
    }

    /// Carries out a part, and sends what came of it.
    fn answer(&self, session: &Session, arguments: &[String], part: Part) -> String {
        let options = (self.accept)(arguments);
        let (answer, end) = match options.and_then(|options| {
            let run = run_part(&options, part, session);
            run.map_err(|error| error.to_string())
        }) {
            Ok(Some(done)) => {
                if let Err(error) = session.send_recorded(done.recorded.as_ref()) {
                    session.end();
                    return format!("the history could not be sent: {error}");
                }
                let done = Box::new(PackedPart::of(&done));
                (Answer::Done(done), String::from("done"))
            }
            Ok(None) => return String::from("ended before its time"),
            Err(text) => (Answer::Refused(text.clone()), text),
        };
        match session.line.send(&answer) {
            Ok(()) => end,
            Err(error) => {
                session.end();
                format!("the result could not be sent: {error}")
            }
        }
    }
}

/// Tells a guest why it cannot stay. One that cannot be told is told nothing.
fn refuse(mut stream: TcpStream, why: &str) {
    let _ = stream.set_write_timeout(Some(GREETING_MAX));
    let _ = stream.write_all(greeting(&format!("refused: {why}")).as_bytes());
}

/// What a coordinator wants.
#[derive(Clone)]
struct Task {
    what: What,
    part: Part,
}

#[derive(Clone)]
enum What {
    /// A run of `bench run`, by its arguments.
    Run(Vec<String>),
    /// A run of sessions, by its document.
    Sessions(String),
}

#[derive(Default)]
struct State {
    order: Option<Task>,
    begin_us: Option<u64>,
    is_over: bool,
}

/// A coordinator, from its greeting to its end.
pub(super) struct Session {
    pub(super) line: Line,
    /// What the times of the worker's clock count from.
    born: Instant,
    state: Mutex<State>,
    news: Condvar,
    waiting: AtomicU64,
    /// How many transactions are to compete for each row.
    wanted: Mutex<Vec<u32>>,
    /// The run ends before its time.
    pub(super) stop: AtomicBool,
}

impl Session {
    /// Sends what was recorded, in pieces.
    fn send_recorded(&self, recorded: Option<&Recorded>) -> std::io::Result<()> {
        let mut pieces = recorded.into_iter().flat_map(Piece::all);
        pieces.try_for_each(|piece| self.line.send(&Answer::Seen(piece)))
    }

    /// Reads orders until the coordinator is done, is gone, or says nothing any more.
    fn read(&self, mut stream: TcpStream) {
        while let Ok(order) = receive::<Order>(&mut stream, ORDER_BYTES_MAX) {
            match order {
                Order::Ping => {
                    let since = SystemTime::now().duration_since(UNIX_EPOCH);
                    let pong = Answer::Pong {
                        steady_us: self.born.elapsed().as_micros() as u64,
                        unix_us: since.map_or(0, |since| since.as_micros() as u64),
                    };
                    if self.line.send(&pong).is_err() {
                        break;
                    }
                }
                Order::Prepare {
                    arguments,
                    number,
                    count,
                } => {
                    if !self.take(What::Run(arguments), Part { number, count }) {
                        break;
                    }
                }
                Order::Sessions {
                    document,
                    number,
                    count,
                } => {
                    if !self.take(What::Sessions(document), Part { number, count }) {
                        break;
                    }
                }
                Order::Begin { at_us } => {
                    lock(&self.state).begin_us = Some(at_us);
                    self.news.notify_all();
                }
                Order::Beat => {}
                Order::Want(wanted) => *lock(&self.wanted) = wanted,
                Order::Stop => break,
            }
        }
        self.end();
    }

    /// Takes a task, if it is the first one and can be.
    fn take(&self, what: What, part: Part) -> bool {
        let fits = part.number < part.count && part.count as usize <= WORKERS_MAX;
        let mut state = lock(&self.state);
        if !fits || state.order.is_some() {
            return false;
        }
        state.order = Some(Task { what, part });
        self.news.notify_all();
        true
    }

    pub(super) fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        lock(&self.state).is_over = true;
        self.news.notify_all();
    }

    /// Says that the worker is there, as long as the coordinator is.
    fn beat(&self) {
        while !self.is_over() {
            let waiting = self.waiting.load(Ordering::Relaxed);
            if self.line.send(&Answer::Beat { waiting }).is_err() {
                self.end();
            }
            let state = lock(&self.state);
            let waited = self
                .news
                .wait_timeout_while(state, BEAT, |state| !state.is_over);
            drop(waited);
        }
    }

    /// Waits until `found` finds something; `None`: the coordinator has gone.
    fn wait_for<T>(&self, found: impl Fn(&State) -> Option<T>) -> Option<T> {
        let mut state = lock(&self.state);
        loop {
            if state.is_over {
                return None;
            }
            if let Some(found) = found(&state) {
                return Some(found);
            }
            state = self.wait(state);
        }
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.news.wait(state);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_order(&self) -> Option<Task> {
        self.wait_for(|state| state.order.clone())
    }

    fn wait_for_end(&self) {
        self.wait_for(|_| None::<()>);
    }
}

impl Lead for Session {
    fn begin(&self, parameters: Vec<(&'static str, String)>) -> Option<Instant> {
        let owned = parameters.into_iter();
        let owned = owned.map(|(name, value)| (String::from(name), value));
        if self.line.send(&Answer::Ready(owned.collect())).is_err() {
            self.end();
        }
        let at_us = self.wait_for(|state| state.begin_us)?;
        let at = self.born.checked_add(Duration::from_micros(at_us))?;
        let ahead = at.saturating_duration_since(Instant::now());
        if ahead > AHEAD_MAX {
            self.end();
            return None;
        }
        std::thread::sleep(ahead);
        Some(at)
    }

    fn is_over(&self) -> bool {
        lock(&self.state).is_over
    }

    fn wanted(&self) -> Vec<u32> {
        lock(&self.wanted).clone()
    }

    fn competing(&self, in_flight: &[u32]) {
        let in_flight = in_flight.to_vec();
        if self.line.send(&Answer::Competing(in_flight)).is_err() {
            self.end();
        }
    }

    fn waiting(&self, waiting: u64) {
        self.waiting.store(waiting, Ordering::Relaxed);
    }

    fn second(&self, second: u64, counts: &SecondCounts) {
        let counts = PackedSecond::of(counts);
        if self.line.send(&Answer::Second { second, counts }).is_err() {
            self.end();
        }
    }
}

const _: () = assert!(BEAT.as_millis() * 8 < SILENCE.as_millis());
