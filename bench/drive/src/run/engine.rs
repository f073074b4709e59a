//! One thread of a run: an event loop over its terminals, its connections and what is due when.
//!
//! Terminals are no connections. A terminal is a state (its deck, its home) and a time; when its
//! next transaction is due it takes a free connection to its endpoint, or waits in a queue for one.
//! A transaction is a future that the loop polls when its connection can be read.

use super::stage::{Arrival, Stage};
use super::tally::{Outcome, Share, Times, count};
use super::work::{Alarm, Deferred, Ended, Job, NOTHING, Slot, Terminal, Waiting, Work};
use crate::shape::{Connected, Done, Ending, Failure, Workload};
use base::Prng;
use links::link::LinkError;
use links::stream::Lateness;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::os::fd::AsFd;
use std::sync::MutexGuard;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll, Waker};
use std::thread::Scope;
use std::time::Duration;
use workload::stream;

/// The longest sleep of the loop, in microseconds.
const SLEEP_US_MAX: u64 = 50_000;
/// The same while a connection is being made.
const CONNECTING_US: u64 = 2_000;
/// The same while attempts wait for each other: another thread may let them go on.
const TURNS_US: u64 = 1_000;
/// How often connections are looked at that wait for too long.
const LOOK_US: u64 = 100_000;
/// Room for what makes a connection.
const CONNECT_STACK: usize = 512 << 10;
/// How long each step of making a connection again may take. A run waits for it at its end.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// When a connection is made again that could not be made.
const AGAIN_US: u64 = 100_000;
/// Events that are taken at a time.
const EVENTS: usize = 256;

/// One thread of a run.
pub(crate) struct Engine<'scope, 'env, W: Workload> {
    stage: &'env Stage<'env, W>,
    scope: &'scope Scope<'scope, 'env>,
    thread: usize,
    epoll: Epoll,
    slots: Vec<Slot<'env, W>>,
    /// Idle connections by endpoint.
    free: Vec<VecDeque<usize>>,
    free_background: VecDeque<usize>,
    terminals: Vec<Terminal<W>>,
    arrivals: std::slice::Iter<'env, Arrival>,
    /// The first of the run that this thread has: its terminals by their numbers.
    index: Vec<usize>,
    queues: Vec<VecDeque<Waiting<W>>>,
    deferred: VecDeque<Deferred<W>>,
    alarms: BinaryHeap<Reverse<(u64, Alarm)>>,
    /// Connections with a transaction.
    busy: usize,
    connecting: usize,
    connected: (Sender<Connection<W>>, Receiver<Connection<W>>),
    looked_us: u64,
    /// [`Workload::turns`] at the last look.
    turns: u64,
    /// No attempt begins any more, and no connection is made.
    is_over: bool,
    cpu_us: [Option<u64>; 2],
    prng: Prng,
    audit: W::Audit,
}

/// A connection that was made, or not.
type Connection<W> = (usize, Result<<W as Workload>::Session, LinkError>);

impl<'scope, 'env, W: Workload> Engine<'scope, 'env, W> {
    /// The life of a thread of the run.
    pub(crate) fn run(
        stage: &'env Stage<'env, W>,
        scope: &'scope Scope<'scope, 'env>,
        thread: usize,
    ) -> W::Audit {
        let made = Engine::new(stage, scope, thread);
        let connected = made.and_then(|mut engine| {
            engine.connect_all()?;
            Ok(engine)
        });
        let engine = connected.map_err(|error| stage.refuse(error));
        stage.excuse();
        let begins = stage.wait_for_start();
        match engine {
            Ok(mut engine) if begins => {
                engine.go();
                engine.audit
            }
            _ => W::Audit::default(),
        }
    }

    fn new(
        stage: &'env Stage<'env, W>,
        scope: &'scope Scope<'scope, 'env>,
        thread: usize,
    ) -> Result<Self, LinkError> {
        let deal = stage.deal;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC);
        let epoll = epoll.map_err(std::io::Error::from)?;
        let mut index = vec![usize::MAX; deal.terminals as usize];
        let mut terminals = Vec::with_capacity(deal.own(thread, deal.terminals).count());
        for number in deal.own(thread, deal.terminals) {
            index[number as usize] = terminals.len();
            terminals.push(Terminal {
                endpoint: deal.endpoint(number),
                state: stage.workload.terminal(number),
                next: None,
            });
        }
        Ok(Engine {
            stage,
            scope,
            thread,
            epoll,
            slots: Vec::new(),
            free: vec![VecDeque::new(); deal.endpoints],
            free_background: VecDeque::new(),
            terminals,
            arrivals: stage.arrivals[thread].iter(),
            index,
            queues: (0..deal.endpoints).map(|_| VecDeque::new()).collect(),
            deferred: VecDeque::new(),
            alarms: BinaryHeap::new(),
            busy: 0,
            connecting: 0,
            connected: channel(),
            looked_us: 0,
            turns: 0,
            is_over: false,
            cpu_us: [None; 2],
            prng: stream(stage.options.seed, &[0x6261_636b, deal.place(thread)]),
            audit: W::Audit::default(),
        })
    }

    fn connect_all(&mut self) -> Result<(), LinkError> {
        let deal = self.stage.deal;
        let own = deal.own(self.thread, deal.connections);
        let mut numbers: Vec<(u32, bool)> = own.map(|number| (number, false)).collect();
        let mine = (0..deal.background)
            .filter(|number| deal.background_thread(*number) == Some(self.thread));
        numbers.extend(mine.map(|number| (number, true)));
        for (number, is_background) in numbers {
            if self.stage.is_refused() {
                return Ok(());
            }
            let session = self.stage.open(number, self.stage.options.timeout)?;
            self.slots.push(Slot {
                number,
                is_background,
                lateness: Lateness::default(),
                since_us: 0,
                work: None,
            });
            let at = self.slots.len() - 1;
            let session = self.watch(at, session)?;
            self.set_free(at, session);
        }
        Ok(())
    }

    /// From now on the loop hears of the connection.
    fn watch(&mut self, at: usize, mut session: W::Session) -> Result<W::Session, LinkError> {
        let lateness = session.stream().suspend()?;
        if let Some(other) = session.other_stream() {
            other.suspend()?;
            other.end_with(&lateness);
        }
        self.slots[at].lateness = lateness;
        let wanted = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP;
        let event = EpollEvent::new(wanted | EpollFlags::EPOLLET, at as u64);
        let added = self.epoll.add(session.stream().as_fd(), event);
        added.map_err(std::io::Error::from)?;
        if let Some(other) = session.other_stream() {
            let added = self.epoll.add(other.as_fd(), event);
            added.map_err(std::io::Error::from)?;
        }
        Ok(session)
    }

    fn set_free(&mut self, at: usize, session: W::Session) {
        let slot = &mut self.slots[at];
        slot.lateness.clear();
        slot.work = Some(Work::Idle(session));
        match slot.is_background {
            true => self.free_background.push_back(at),
            false => self.free[self.stage.deal.endpoint(slot.number)].push_back(at),
        }
    }

    fn go(&mut self) {
        // Sleeps end when they should. Best effort: some kernels do not know it.
        let _ = nix::sys::prctl::set_timerslack(1);
        self.first_alarms();
        loop {
            let now_us = self.stage.now_us();
            self.note_cpu(now_us);
            self.take_connected();
            self.fire(now_us);
            self.dispatch();
            if self.is_over(now_us) {
                break;
            }
            if now_us >= self.looked_us + LOOK_US {
                self.looked_us = now_us;
                self.end_late(now_us);
            }
            self.take_turns();
            self.wait();
        }
        self.end_attempts();
        self.count_unfinished();
    }

    /// Ends the attempts that are under way: each knows by its own what that means for it.
    fn end_attempts(&mut self) {
        self.is_over = true;
        for at in 0..self.slots.len() {
            if matches!(self.slots[at].work, Some(Work::Busy(..))) {
                self.slots[at].lateness.set();
                self.poll(at);
            }
        }
    }

    /// When the terminals of a closed loop begin.
    fn first_alarms(&mut self) {
        if self.stage.options.rate.is_some() {
            return;
        }
        for at in 0..self.terminals.len() {
            let pauses = self
                .stage
                .workload
                .pauses_us(&mut self.terminals[at].state, 0);
            // Terminals that all began at once would stay in step for a long time.
            let first_us = pauses.map_or(0, |(key, think)| self.prng.below(key + think + 1));
            self.alarms.push(Reverse((first_us, Alarm::Key(at))));
        }
    }

    fn is_over(&self, now_us: u64) -> bool {
        let stage = self.stage;
        if now_us >= stage.drained_us() || stage.is_called_off() {
            return true;
        }
        let comes = self.arrivals.len() > 0 || self.waits();
        now_us >= stage.end_us() && self.busy == 0 && !comes
    }

    /// Whether a transaction waits for a connection.
    fn waits(&self) -> bool {
        !self.deferred.is_empty() || self.queues.iter().any(|queue| !queue.is_empty())
    }

    /// The processor time of this thread at both ends of the measured phase.
    fn note_cpu(&mut self, now_us: u64) {
        let ends = [self.stage.warm_us(), self.stage.end_us()];
        for (seen, end_us) in self.cpu_us.iter_mut().zip(ends) {
            if seen.is_none() && now_us >= end_us {
                *seen = links::cpu::thread_us();
            }
        }
        if let [Some(before), Some(after)] = self.cpu_us {
            let mut share = self.stage.share(self.thread);
            share.cpu_us = Some(after.saturating_sub(before));
        }
    }

    /// Alarms and arrivals up to now.
    fn fire(&mut self, now_us: u64) {
        while let Some(Reverse((at_us, alarm))) = self.alarms.peek().copied() {
            if at_us > now_us {
                break;
            }
            self.alarms.pop();
            match alarm {
                Alarm::Key(terminal) => self.key(terminal, at_us),
                Alarm::Due(terminal) => {
                    self.note_late(at_us, now_us);
                    let input = self.terminals[terminal].next.take();
                    self.due(terminal, at_us, input);
                }
                Alarm::Again(at) => self.again(at),
                Alarm::Connect(at) => self.connect(at, None),
            }
        }
        while let Some((due_us, terminal)) = self.arrivals.as_slice().first().copied() {
            if due_us > now_us {
                break;
            }
            self.arrivals.next();
            self.note_late(due_us, now_us);
            self.due(self.index[terminal as usize], due_us, None);
        }
    }

    /// By how much the loop itself was late.
    fn note_late(&self, due_us: u64, now_us: u64) {
        if self.stage.is_measured(due_us) {
            count(&mut self.share().lateness, now_us - due_us);
        }
    }

    /// A terminal begins its next transaction: by keying it, if it does.
    fn key(&mut self, terminal: usize, at_us: u64) {
        let stage = self.stage;
        if at_us >= stage.end_us() {
            return;
        }
        if !stage.workload.is_paced() {
            self.due(terminal, at_us, None);
            return;
        }
        let own = &mut self.terminals[terminal];
        let input = stage.workload.generate(&mut own.state);
        let kind = stage.workload.kind(&input);
        let pauses = stage.workload.pauses_us(&mut own.state, kind);
        let (key_us, _) = pauses.unwrap_or_default();
        own.next = Some(input);
        let due_us = at_us + key_us;
        if due_us < stage.end_us() {
            self.alarms.push(Reverse((due_us, Alarm::Due(terminal))));
        }
    }

    /// A transaction of a terminal is due.
    fn due(&mut self, terminal: usize, due_us: u64, input: Option<W::Input>) {
        let stage = self.stage;
        if let Some(input) = input {
            let kind = stage.workload.kind(&input);
            if !stage.workload.is_deferred(kind) {
                let input = Some(input);
                self.enqueue(terminal, due_us, input);
                return;
            }
            self.note_input(due_us, &input);
            self.deferred.push_back(Deferred {
                input,
                kind,
                due_us,
            });
            let response_us = stage.now_us() - due_us;
            if stage.is_measured(due_us) {
                count(&mut self.share().kinds[kind].response, response_us);
            }
            self.think(terminal, kind);
            return;
        }
        self.enqueue(terminal, due_us, None);
    }

    fn enqueue(&mut self, terminal: usize, due_us: u64, input: Option<W::Input>) {
        let queue = &mut self.queues[self.terminals[terminal].endpoint];
        queue.push_back(Waiting {
            terminal,
            due_us,
            input,
        });
    }

    /// A terminal has its answer.
    fn think(&mut self, terminal: usize, kind: usize) {
        if self.stage.options.rate.is_some() {
            return;
        }
        let now_us = self.stage.now_us();
        let state = &mut self.terminals[terminal].state;
        let pauses = self.stage.workload.pauses_us(state, kind);
        let (_, think_us) = pauses.unwrap_or_default();
        let next = Reverse((now_us + think_us, Alarm::Key(terminal)));
        match think_us {
            0 => self.key(terminal, now_us),
            _ => self.alarms.push(next),
        }
    }

    fn note_input(&mut self, due_us: u64, input: &W::Input) {
        if self.stage.is_measured(due_us) {
            self.stage.workload.note(&mut self.audit, input);
        }
    }

    /// Gives connections to transactions that wait, as long as there are both, but not to those
    /// that become due meanwhile: a server that answers before it is waited for would have the loop
    /// for itself. What was due before the end begins after it, too.
    fn dispatch(&mut self) {
        for endpoint in 0..self.queues.len() {
            for _ in 0..self.queues[endpoint].len() {
                let Some(at) = self.free[endpoint].pop_front() else {
                    break;
                };
                let next = self.queues[endpoint].pop_front();
                self.begin(at, next.expect("it only grows meanwhile"));
            }
        }
        for _ in 0..self.deferred.len() {
            let Some(at) = self.free_background.pop_front() else {
                break;
            };
            let next = self.deferred.pop_front();
            self.begin_deferred(at, next.expect("it only grows meanwhile"));
        }
        let waiting: usize = self.queues.iter().map(VecDeque::len).sum();
        self.stage.note_waiting(self.thread, waiting as u64);
    }

    fn begin(&mut self, at: usize, waiting: Waiting<W>) {
        let workload = self.stage.workload;
        let state = &mut self.terminals[waiting.terminal].state;
        let input = waiting.input.unwrap_or_else(|| workload.generate(state));
        self.note_input(waiting.due_us, &input);
        let job = Job {
            terminal: Some(waiting.terminal),
            kind: workload.kind(&input),
            due_us: waiting.due_us,
            begin_us: self.stage.now_us(),
            attempts: 0,
        };
        self.first_attempt(at, input, job);
    }

    fn begin_deferred(&mut self, at: usize, deferred: Deferred<W>) {
        let job = Job {
            terminal: None,
            kind: deferred.kind,
            due_us: deferred.due_us,
            begin_us: self.stage.now_us(),
            attempts: 0,
        };
        self.first_attempt(at, deferred.input, job);
    }

    fn first_attempt(&mut self, at: usize, input: W::Input, job: Job) {
        let Some(Work::Idle(session)) = self.slots[at].work.take() else {
            unreachable!("a free connection is idle");
        };
        self.busy += 1;
        self.attempt(at, session, input, job);
    }

    /// Begins an attempt.
    fn attempt(&mut self, at: usize, mut session: W::Session, input: W::Input, mut job: Job) {
        let workload = self.stage.workload;
        job.attempts += 1;
        let attempt = Box::pin(async move {
            let result = workload.execute(&mut session, &input).await;
            Ended {
                session,
                input,
                result,
            }
        });
        self.slots[at].work = Some(Work::Busy(attempt, job));
        self.poll(at);
    }

    fn poll(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        slot.since_us = self.stage.now_us();
        let Some(Work::Busy(attempt, _)) = &mut slot.work else {
            return;
        };
        let mut cx = Context::from_waker(Waker::noop());
        if let Poll::Ready(ended) = attempt.as_mut().poll(&mut cx) {
            let Some(Work::Busy(_, job)) = slot.work.take() else {
                unreachable!("it was polled");
            };
            self.ended(at, ended, job);
        }
    }

    /// An attempt has ended: what becomes of its transaction and of its connection.
    fn ended(&mut self, at: usize, ended: Ended<W>, job: Job) {
        let Ended {
            session,
            input,
            result,
        } = ended;
        let mut session = Some(session);
        let reason = match result {
            Ok(done) => {
                let outcome = match done.ending {
                    Ending::Committed => Outcome::Committed,
                    Ending::RolledBack => Outcome::RolledBack,
                };
                return self.finish(at, session, job, outcome, done);
            }
            Err(Failure::Unknown(error)) => {
                self.keep_message("unknown", &error.to_string());
                return self.finish(at, None, job, Outcome::Unknown, NOTHING);
            }
            Err(Failure::Wrong(text)) => {
                self.keep_message("wrong answer", &text);
                let outcome = Outcome::Failed(String::from("wrong answer"));
                return self.finish(at, session, job, outcome, NOTHING);
            }
            Err(Failure::Aborted(error)) => {
                self.keep_message(&error.sqlstate, &error.message);
                if !is_retryable(&error.sqlstate) {
                    let outcome = Outcome::Failed(error.sqlstate);
                    return self.finish(at, session, job, outcome, NOTHING);
                }
                error.sqlstate
            }
            Err(Failure::Conflict(reason)) => String::from(reason),
            Err(Failure::Lost(error)) => {
                session = None;
                self.lost(&error)
            }
        };
        self.retry(at, session, (input, job), reason);
    }

    fn lost(&self, error: &LinkError) -> String {
        let reason = "connection lost";
        self.keep_message(reason, &error.to_string());
        String::from(reason)
    }

    /// Plans the next attempt, if there is to be one.
    fn retry(
        &mut self,
        at: usize,
        session: Option<W::Session>,
        (input, job): (W::Input, Job),
        reason: String,
    ) {
        let now_us = self.stage.now_us();
        let policy = self.stage.options.retry;
        if self.stage.is_measured(job.due_us) {
            let aborts = &mut self.share().kinds[job.kind].aborts;
            *aborts.entry(reason.clone()).or_default() += 1;
        }
        if job.attempts >= policy.attempts_max {
            return self.finish(at, session, job, Outcome::Failed(reason), NOTHING);
        }
        let full = policy.backoff_us << (job.attempts.max(1) - 1).min(20);
        let full = full.min(policy.backoff_us_max);
        let pause_us = full / 2 + self.prng.below(full / 2 + 1);
        self.alarms
            .push(Reverse((now_us + pause_us, Alarm::Again(at))));
        self.slots[at].work = Some(Work::Pausing(session, input, job));
    }

    /// The next attempt of a transaction.
    fn again(&mut self, at: usize) {
        match self.slots[at].work.take() {
            Some(Work::Pausing(Some(session), input, job)) => {
                self.attempt(at, session, input, job);
            }
            Some(Work::Pausing(None, input, job)) => self.connect(at, Some((input, job))),
            _ => unreachable!("it waited for its next attempt"),
        }
    }

    /// Makes a connection again, in a thread of its own: that takes a moment.
    fn connect(&mut self, at: usize, goes_on: Option<(W::Input, Job)>) {
        let is_wanted = self.waits() || self.stage.now_us() < self.stage.end_us();
        if goes_on.is_none() && (self.is_over || !is_wanted) {
            return;
        }
        self.connecting += 1;
        let slot = &mut self.slots[at];
        slot.work = Some(Work::Connecting(goes_on));
        let (stage, number, done) = (self.stage, slot.number, self.connected.0.clone());
        let failed = done.clone();
        let builder = std::thread::Builder::new().stack_size(CONNECT_STACK);
        let spawned = builder.spawn_scoped(self.scope, move || {
            // Whoever waited may have ended: the run is over.
            let _ = done.send((at, stage.open(number, CONNECT_MAX)));
        });
        if let Err(error) = spawned {
            // This very loop receives it.
            let _ = failed.send((at, Err(error.into())));
        }
    }

    /// Connections that were made meanwhile.
    fn take_connected(&mut self) {
        while let Ok((at, session)) = self.connected.1.try_recv() {
            self.connecting -= 1;
            let session = session.and_then(|session| self.watch(at, session));
            let Some(Work::Connecting(goes_on)) = self.slots[at].work.take() else {
                unreachable!("it was being connected");
            };
            match (session, goes_on) {
                (Ok(session), Some((input, job))) => self.attempt(at, session, input, job),
                (Ok(session), None) => self.set_free(at, session),
                (Err(error), Some((input, mut job))) => {
                    job.attempts += 1;
                    let reason = self.lost(&error);
                    self.retry(at, None, (input, job), reason);
                }
                (Err(error), None) => {
                    self.lost(&error);
                    let again_us = self.stage.now_us() + AGAIN_US;
                    self.alarms.push(Reverse((again_us, Alarm::Connect(at))));
                }
            }
        }
    }

    /// A transaction leaves the run.
    fn finish(
        &mut self,
        at: usize,
        session: Option<W::Session>,
        job: Job,
        outcome: Outcome,
        done: Done,
    ) {
        let now_us = self.stage.now_us();
        self.busy -= 1;
        let times = Times {
            response_us: now_us - job.due_us,
            service_us: now_us - job.begin_us,
            queue_us: job.begin_us - job.due_us,
        };
        let is_measured = self.stage.is_measured(job.due_us);
        let mut share = self.share();
        note_whole(&mut share, job.kind, &outcome, done);
        if self.stage.is_measured(now_us) {
            share.kinds[job.kind].count_in_phase(&outcome);
            if outcome == Outcome::Committed {
                share.count_step(self.stage.step(now_us));
            }
        }
        if outcome == Outcome::Committed && job.terminal.is_some() {
            share.second_committed[job.kind] += 1;
            count(&mut share.second_response, times.response_us);
        }
        if is_measured && job.terminal.is_some() {
            let tally = &mut share.kinds[job.kind];
            tally.record(&outcome, times, self.stage.has_queue());
            tally.note_done(done, job.attempts);
        } else if is_measured {
            share.deferred.record(&outcome, times, true);
            let tally = &mut share.kinds[job.kind];
            tally.count(&outcome);
            tally.note_done(done, job.attempts);
        }
        drop(share);
        match session {
            Some(session) => self.set_free(at, session),
            None => self.connect(at, None),
        }
        if let Some(terminal) = job.terminal.filter(|_| !self.is_over) {
            self.think(terminal, job.kind);
        }
    }

    /// Ends the waits for servers that say nothing.
    fn end_late(&mut self, now_us: u64) {
        let patience_us = self.stage.options.timeout.as_micros() as u64;
        for at in 0..self.slots.len() {
            let slot = &self.slots[at];
            let is_busy = matches!(slot.work, Some(Work::Busy(..)));
            if is_busy && slot.since_us + patience_us <= now_us {
                // The answer may be there, and the loop is late.
                self.poll(at);
                if matches!(self.slots[at].work, Some(Work::Busy(..))) {
                    self.slots[at].lateness.set();
                    self.poll(at);
                }
            }
        }
    }

    /// Goes on with attempts that have waited for others.
    fn take_turns(&mut self) {
        let turns = self.stage.workload.turns();
        if turns.is_some_and(|turns| turns != self.turns) {
            self.turns = turns.unwrap_or_default();
            (0..self.slots.len()).for_each(|at| self.poll(at));
        }
    }

    /// Sleeps until something is due or a connection has something, and polls those that have.
    fn wait(&mut self) {
        let now_us = self.stage.now_us();
        let mut queues = self.queues.iter().zip(&self.free);
        let goes_on = queues.any(|(queue, free)| !queue.is_empty() && !free.is_empty())
            || !self.deferred.is_empty() && !self.free_background.is_empty();
        let mut until_us = now_us + if goes_on { 0 } else { SLEEP_US_MAX };
        if let Some(Reverse((at_us, _))) = self.alarms.peek() {
            until_us = until_us.min(*at_us);
        }
        if let Some((due_us, _)) = self.arrivals.as_slice().first() {
            until_us = until_us.min(*due_us);
        }
        if self.connecting > 0 {
            until_us = until_us.min(now_us + CONNECTING_US);
        }
        if self.stage.workload.turns().is_some() {
            until_us = until_us.min(now_us + TURNS_US);
        }
        let sleep = Duration::from_micros(until_us.saturating_sub(now_us));
        if !sleep.is_zero() {
            let mut whole = [PollFd::new(self.epoll.0.as_fd(), PollFlags::POLLIN)];
            // An interrupted sleep is a short one.
            let _ = ppoll(&mut whole, Some(TimeSpec::from_duration(sleep)), None);
        }
        // More of them come with the next turn of the loop, which has other things to do as well.
        let mut events = [EpollEvent::empty(); EVENTS];
        let waited = self.epoll.wait(&mut events, EpollTimeout::ZERO);
        for event in &events[..waited.unwrap_or(0)] {
            self.poll(event.data() as usize);
        }
    }

    /// What was due in the measured phase and has no outcome.
    fn count_unfinished(&mut self) {
        let (stage, mut kinds) = (self.stage, Vec::new());
        for slot in &self.slots {
            let job = match &slot.work {
                Some(
                    Work::Busy(_, job)
                    | Work::Pausing(_, _, job)
                    | Work::Connecting(Some((_, job))),
                ) => job,
                _ => continue,
            };
            kinds.push((job.terminal.map(|_| job.kind), job.due_us));
        }
        for waiting in self.queues.iter_mut().flat_map(std::mem::take) {
            let state = &mut self.terminals[waiting.terminal].state;
            let input = waiting.input;
            let input = input.unwrap_or_else(|| stage.workload.generate(state));
            kinds.push((Some(stage.workload.kind(&input)), waiting.due_us));
        }
        kinds.extend(self.deferred.iter().map(|one| (None, one.due_us)));
        let mut share = self.share();
        for (kind, due_us) in kinds {
            if stage.is_measured(due_us) {
                let tally = match kind {
                    Some(kind) => &mut share.kinds[kind],
                    None => &mut share.deferred,
                };
                tally.unfinished += 1;
            }
        }
    }

    fn share(&self) -> MutexGuard<'_, Share> {
        self.stage.share(self.thread)
    }

    fn keep_message(&self, reason: &str, message: &str) {
        let messages = &mut self.share().messages;
        if !messages.contains_key(reason) {
            messages.insert(reason.to_string(), message.to_string());
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

/// SQLSTATEs after which the same transaction may run again: serialization failure, deadlock, and a
/// lock that was waited for too long.
pub(crate) fn is_retryable(sqlstate: &str) -> bool {
    matches!(sqlstate, "40001" | "40P01" | "55P03")
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
