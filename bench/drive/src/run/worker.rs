//! What one client thread does: connect, draw, execute, retry, count.

use super::tally::{Outcome, Share, Times};
use super::{DRAIN, RunnerOptions};
use crate::link::LinkError;
use crate::shape::{Done, Ending, Failure, Workload};
use crate::url::Target;
use base::Prng;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use workload::stream;

/// A transaction that waits to be executed in the background.
struct Deferred<I> {
    input: I,
    queued_us: u64,
}

/// Everything that the threads of a run share.
pub(crate) struct Stage<'a, W: Workload> {
    pub(crate) workload: &'a W,
    pub(crate) target: &'a Target,
    pub(crate) options: &'a RunnerOptions,
    shares: Vec<Mutex<Share>>,
    arrivals: Vec<u64>,
    next_arrival: AtomicUsize,
    background: u32,
    queue: Mutex<VecDeque<Deferred<W::Input>>>,
    queued: Condvar,
    connected: Mutex<u32>,
    all_connected: Condvar,
    refused: Mutex<Option<LinkError>>,
    start: OnceLock<Option<Instant>>,
}

/// One thread's own state.
struct Client<'a, W: Workload> {
    stage: &'a Stage<'a, W>,
    number: u32,
    session: Option<W::Session>,
    prng: Prng,
    audit: W::Audit,
}

/// A poisoned lock means that another client thread panicked; its counts are still counts, and the
/// panic itself surfaces at `join`.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait_for<'a, T>(news: &Condvar, guard: MutexGuard<'a, T>, wait: Duration) -> MutexGuard<'a, T> {
    let waited = news.wait_timeout(guard, wait);
    waited.unwrap_or_else(PoisonError::into_inner).0
}

impl<'a, W: Workload> Stage<'a, W> {
    pub(crate) fn new(
        workload: &'a W,
        target: &'a Target,
        options: &'a RunnerOptions,
        shares: Vec<Mutex<Share>>,
        arrivals: Vec<u64>,
        background: u32,
    ) -> Self {
        Stage {
            workload,
            target,
            options,
            shares,
            arrivals,
            next_arrival: AtomicUsize::new(0),
            background,
            queue: Mutex::new(VecDeque::new()),
            queued: Condvar::new(),
            connected: Mutex::new(0),
            all_connected: Condvar::new(),
            refused: Mutex::new(None),
            start: OnceLock::new(),
        }
    }

    /// Waits until every thread is connected, then lets all begin at once. Returns the error when
    /// one could not connect; then none begins.
    pub(crate) fn begin(&self) -> Option<LinkError> {
        let wanted = self.options.clients + self.background;
        let mut connected = lock(&self.connected);
        while *connected < wanted {
            let waited = self.all_connected.wait(connected);
            connected = waited.unwrap_or_else(PoisonError::into_inner);
        }
        drop(connected);
        let refused = lock(&self.refused).take();
        let start = refused.is_none().then(Instant::now);
        self.start.set(start).expect("a run begins once");
        self.all_connected.notify_all();
        refused
    }

    /// Keeps the first reason why a client cannot take part.
    pub(crate) fn refuse(&self, error: LinkError) {
        lock(&self.refused).get_or_insert(error);
    }

    /// Counts a client as there, connected or not.
    pub(crate) fn excuse(&self) {
        *lock(&self.connected) += 1;
        self.all_connected.notify_all();
    }

    fn wait_for_start(&self) -> Option<Instant> {
        let mut connected = lock(&self.connected);
        loop {
            if let Some(start) = self.start.get() {
                return *start;
            }
            // A timeout, because `begin` sets the start without holding the lock.
            let wait = Duration::from_millis(5);
            connected = wait_for(&self.all_connected, connected, wait);
        }
    }

    /// When the run began.
    pub(crate) fn start(&self) -> Instant {
        let start = self.start.get().copied().flatten();
        start.expect("the run has begun")
    }

    fn now_us(&self) -> u64 {
        self.start().elapsed().as_micros() as u64
    }

    fn warm_us(&self) -> u64 {
        self.options.warmup.as_micros() as u64
    }

    fn end_us(&self) -> u64 {
        (self.options.warmup + self.options.length).as_micros() as u64
    }

    fn drained_us(&self) -> u64 {
        self.end_us() + DRAIN.as_micros() as u64
    }

    fn sleep_until_us(&self, at_us: u64) {
        std::thread::sleep(Duration::from_micros(at_us.saturating_sub(self.now_us())));
    }

    pub(crate) fn each_share(&self, mut visit: impl FnMut(&mut Share)) {
        self.shares.iter().for_each(|share| visit(&mut lock(share)));
    }

    /// Arrivals that are due and not begun.
    pub(crate) fn waiting(&self) -> u64 {
        let now = self.now_us();
        let due = self.arrivals.partition_point(|&due_us| due_us <= now);
        due.saturating_sub(self.next_arrival.load(Ordering::Relaxed)) as u64
    }

    /// Called at the end of the measured phase: why the run is overloaded, if it is. A backlog of a
    /// quarter of a second, of more than the connections and of 2 % of the arrivals is no passing
    /// queue.
    pub(crate) fn fell_behind(&self) -> Option<String> {
        let rate = self.options.rate?;
        let waiting = self.waiting();
        let measured = rate * self.options.length.as_secs_f64();
        let allowed = (measured * 0.02)
            .max(rate * 0.25)
            .max(f64::from(self.options.clients));
        (waiting as f64 > allowed)
            .then(|| format!("{waiting} arrivals waited for a free connection when the run ended"))
    }

    /// The life of thread `number`; the highest numbers execute deferred transactions.
    pub(crate) fn client(&self, number: u32) -> W::Audit {
        let prng = stream(self.options.seed, &[0x6261_636b, u64::from(number)]);
        let mut client = Client {
            stage: self,
            number,
            session: None,
            prng,
            audit: W::Audit::default(),
        };
        match client.connect() {
            Ok(session) => client.session = Some(session),
            Err(error) => self.refuse(error),
        }
        self.excuse();
        if self.wait_for_start().is_some() {
            match (number >= self.options.clients, self.options.rate) {
                (true, _) => client.deferred_loop(),
                (false, Some(_)) => client.open_loop(),
                (false, None) => client.closed_loop(),
            }
        }
        client.audit
    }
}

impl<W: Workload> Client<'_, W> {
    /// Tries the client's own endpoint first, then the others.
    fn connect(&self) -> Result<W::Session, LinkError> {
        let endpoints = &self.stage.target.endpoints;
        let mut result = Err(LinkError::Protocol("no endpoint"));
        for step in 0..endpoints.len() {
            let endpoint = &endpoints[(self.number as usize + step) % endpoints.len()];
            let timeout = self.stage.options.timeout;
            result = self.stage.workload.open(endpoint, timeout);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    fn share(&self) -> MutexGuard<'_, Share> {
        lock(&self.stage.shares[self.number as usize % self.stage.shares.len()])
    }

    fn closed_loop(&mut self) {
        let stage = self.stage;
        let mut terminal = stage.workload.terminal(self.number);
        if let Some((keying, think)) = stage.workload.pauses_us(&mut terminal, 0) {
            // Terminals that all began at once would stay in step for a long time.
            stage.sleep_until_us(self.prng.below(keying + think + 1).min(stage.end_us()));
        }
        while stage.now_us() < stage.end_us() {
            let input = stage.workload.generate(&mut terminal);
            let kind = stage.workload.kind(&input);
            let pauses = stage.workload.pauses_us(&mut terminal, kind);
            if let Some((keying, _)) = pauses {
                let begin = stage.now_us() + keying;
                stage.sleep_until_us(begin.min(stage.end_us()));
                if begin >= stage.end_us() {
                    return;
                }
            }
            self.transact(input, kind, None);
            if let Some((_, think)) = pauses {
                stage.sleep_until_us((stage.now_us() + think).min(stage.end_us()));
            }
        }
    }

    fn open_loop(&mut self) {
        let stage = self.stage;
        loop {
            let number = stage.next_arrival.fetch_add(1, Ordering::Relaxed);
            let Some(&due_us) = stage.arrivals.get(number) else {
                return;
            };
            stage.sleep_until_us(due_us);
            if stage.now_us() >= stage.drained_us() {
                return;
            }
            // Each arrival is a terminal of its own: its input follows from its number, whichever
            // connection is free for it.
            let mut terminal = stage.workload.terminal(number as u32);
            let input = stage.workload.generate(&mut terminal);
            let kind = stage.workload.kind(&input);
            self.transact(input, kind, Some(due_us));
        }
    }

    fn deferred_loop(&mut self) {
        let stage = self.stage;
        loop {
            let next = {
                let mut queue = lock(&stage.queue);
                loop {
                    let now = stage.now_us();
                    if now >= stage.drained_us() || (now >= stage.end_us() && queue.is_empty()) {
                        return;
                    }
                    if let Some(next) = queue.pop_front() {
                        break next;
                    }
                    let wait = Duration::from_millis(50);
                    queue = wait_for(&stage.queued, queue, wait);
                }
            };
            self.execute_deferred(&next);
        }
    }

    fn execute_deferred(&mut self, next: &Deferred<W::Input>) {
        let kind = self.stage.workload.kind(&next.input);
        let begin_us = self.stage.now_us();
        let (outcome, done, attempts) = self.attempt_all(&next.input, kind);
        let now_us = self.stage.now_us();
        let counts = next.queued_us >= self.stage.warm_us() && now_us <= self.stage.end_us();
        let times = Times {
            response_us: now_us - next.queued_us,
            service_us: now_us - begin_us,
            queue_us: begin_us - next.queued_us,
        };
        let mut share = self.share();
        note_whole(&mut share, kind, &outcome, done);
        if counts {
            share.deferred.record(&outcome, times, true);
            let tally = &mut share.kinds[kind];
            tally.count(&outcome);
            tally.note_done(done, attempts);
        }
    }

    /// One transaction from its due time to its outcome, counted where it belongs.
    fn transact(&mut self, input: W::Input, kind: usize, due_us: Option<u64>) {
        let stage = self.stage;
        let begin_us = stage.now_us();
        let from_us = due_us.unwrap_or(begin_us);
        if from_us >= stage.warm_us() && from_us < stage.end_us() {
            stage.workload.note(&mut self.audit, &input);
        }
        if stage.workload.is_deferred(kind) {
            lock(&stage.queue).push_back(Deferred {
                input,
                queued_us: begin_us,
            });
            stage.queued.notify_one();
            let response_us = stage.now_us() - from_us;
            if from_us >= stage.warm_us() {
                let response = &mut self.share().kinds[kind].response;
                response.saturating_record(response_us.max(1));
            }
            return;
        }
        let (outcome, done, attempts) = self.attempt_all(&input, kind);
        let now_us = stage.now_us();
        let counts = match due_us {
            Some(due_us) => due_us >= stage.warm_us(),
            None => begin_us >= stage.warm_us() && now_us <= stage.end_us(),
        };
        let times = Times {
            response_us: now_us - from_us,
            service_us: now_us - begin_us,
            queue_us: begin_us - from_us,
        };
        let mut share = self.share();
        note_whole(&mut share, kind, &outcome, done);
        if outcome == Outcome::Committed {
            share.second_committed[kind] += 1;
            let response = &mut share.second_response;
            response.saturating_record(times.response_us.max(1));
        }
        if counts {
            let tally = &mut share.kinds[kind];
            tally.record(&outcome, times, due_us.is_some());
            tally.note_done(done, attempts);
        }
    }

    /// Attempts until an outcome, by the retry policy.
    fn attempt_all(&mut self, input: &W::Input, kind: usize) -> (Outcome, Done, u32) {
        const NOTHING: Done = Done {
            ending: Ending::RolledBack,
            units: 0,
            skipped: 0,
        };
        let policy = self.stage.options.retry;
        let mut attempt = 0;
        let outcome = loop {
            attempt += 1;
            let reason = match self.attempt(input) {
                Ok(done) => {
                    let outcome = match done.ending {
                        Ending::Committed => Outcome::Committed,
                        Ending::RolledBack => Outcome::RolledBack,
                    };
                    return (outcome, done, attempt);
                }
                Err(Failure::Unknown(error)) => {
                    self.drop_session("unknown", &error);
                    break Outcome::Unknown;
                }
                Err(Failure::Wrong(text)) => {
                    self.keep_message("wrong answer", &text);
                    break Outcome::Failed(String::from("wrong answer"));
                }
                Err(Failure::Aborted(error)) => {
                    self.keep_message(&error.sqlstate, &error.message);
                    if !is_retryable(&error.sqlstate) {
                        break Outcome::Failed(error.sqlstate);
                    }
                    error.sqlstate
                }
                Err(Failure::Conflict(reason)) => String::from(reason),
                Err(Failure::Lost(error)) => {
                    self.drop_session("connection lost", &error);
                    String::from("connection lost")
                }
            };
            self.note_abort(kind, &reason);
            if attempt >= policy.attempts_max {
                break Outcome::Failed(reason);
            }
            if self.stage.now_us() >= self.stage.drained_us() {
                break Outcome::Failed(String::from("unfinished"));
            }
            let full = policy.backoff_us << (attempt - 1).min(20);
            let full = full.min(policy.backoff_us_max);
            let pause = full / 2 + self.prng.below(full / 2 + 1);
            std::thread::sleep(Duration::from_micros(pause));
        };
        (outcome, NOTHING, attempt)
    }

    fn attempt(&mut self, input: &W::Input) -> Result<Done, Failure> {
        if self.session.is_none() {
            self.session = Some(self.connect().map_err(Failure::Lost)?);
        }
        let session = self.session.as_mut().expect("a session was just opened");
        self.stage.workload.execute(session, input)
    }

    /// Gives up a connection that broke; the next attempt opens another.
    fn drop_session(&mut self, reason: &str, error: &LinkError) {
        self.session = None;
        self.keep_message(reason, &error.to_string());
    }

    fn keep_message(&self, reason: &str, message: &str) {
        let messages = &mut self.share().messages;
        if !messages.contains_key(reason) {
            messages.insert(reason.to_string(), message.to_string());
        }
    }

    fn note_abort(&self, kind: usize, reason: &str) {
        let now_us = self.stage.now_us();
        if now_us >= self.stage.warm_us() && now_us <= self.stage.end_us() {
            let aborts = &mut self.share().kinds[kind].aborts;
            *aborts.entry(reason.to_string()).or_default() += 1;
        }
    }
}

fn note_whole(share: &mut Share, kind: usize, outcome: &Outcome, done: Done) {
    let whole = &mut share.whole[kind];
    match outcome {
        Outcome::Committed => {
            whole.committed += 1;
            whole.units += done.units;
        }
        Outcome::Unknown => whole.unknown += 1,
        Outcome::RolledBack | Outcome::Failed(_) => {}
    }
}

/// SQLSTATEs after which the same transaction may run again: serialization failure and deadlock.
pub(crate) fn is_retryable(sqlstate: &str) -> bool {
    matches!(sqlstate, "40001" | "40P01")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_conflicts_are_retried() {
        assert!(is_retryable("40001") && is_retryable("40P01"));
        assert!(!is_retryable("23505") && !is_retryable("57014") && !is_retryable(""));
    }
}
