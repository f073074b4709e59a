//! What the threads of a run share: who they are, when it begins, and what has been counted.

use super::tally::Share;
use super::{DRAIN, RunnerOptions};
use crate::shape::Workload;
use fault::STEP_S;
use links::link::LinkError;
use links::lock;
use links::url::Target;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use workload::{arrival, stream};

/// A part of a run that several processes carry out together.
///
/// Terminals, connections and arrivals are those of the whole run, which every process draws alike
/// from the seed; each takes those that are dealt to its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// From 0.
    pub number: u32,
    /// Parts in all, 1 or more.
    pub count: u32,
}

impl Part {
    /// All of a run.
    pub const WHOLE: Part = Part {
        number: 0,
        count: 1,
    };
}

/// The most threads of a run.
const THREADS_MAX: usize = 16;

/// How long an endpoint that refused a connection comes after the others.
const REFUSED_FOR: Duration = Duration::from_secs(1);

/// How terminals and connections are dealt to threads and endpoints: terminal k and connection k to
/// endpoint k modulo their number, whole rounds of endpoints to the parts of the run in turn, and
/// those of a part to its threads in turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deal {
    pub(crate) threads: usize,
    pub(crate) endpoints: usize,
    pub(crate) terminals: u32,
    pub(crate) connections: u32,
    /// Connections for deferred transactions, beside the others.
    pub(crate) background: u32,
    pub(crate) part: Part,
}

impl Deal {
    pub(crate) fn new<W: Workload>(
        workload: &W,
        target: &Target,
        options: &RunnerOptions,
        part: Part,
    ) -> Deal {
        let endpoints = target.endpoints.len();
        let connections = options.connections(workload.is_paced());
        let terminals = match options.rate {
            Some(_) => workload.population().unwrap_or(options.clients),
            None => options.clients,
        };
        let cores = links::cpu::cores();
        let threads = (cores / 2).min(THREADS_MAX);
        let parts = part.count as usize;
        let threads = threads.min(connections as usize / endpoints / parts).max(1);
        let mut kinds = 0..workload.kinds().len();
        let background = match kinds.any(|kind| workload.is_deferred(kind)) {
            true => (connections / 10)
                .clamp(1, 64)
                .max((threads * parts) as u32),
            false => 0,
        };
        Deal {
            threads,
            endpoints,
            terminals,
            connections,
            background,
            part,
        }
    }

    /// The endpoint of a terminal or connection.
    pub(crate) fn endpoint(&self, number: u32) -> usize {
        number as usize % self.endpoints
    }

    /// The thread of a terminal or connection, in the part that has it.
    pub(crate) fn thread(&self, number: u32) -> usize {
        number as usize / self.endpoints / self.part.count as usize % self.threads
    }

    /// The number of a thread among those of all parts.
    pub(crate) fn place(&self, thread: usize) -> u64 {
        (self.part.number as usize * THREADS_MAX + thread) as u64
    }

    /// Whether this part has a terminal or connection.
    pub(crate) fn has(&self, number: u32) -> bool {
        number as usize / self.endpoints % self.part.count as usize == self.part.number as usize
    }

    /// The thread of a connection for deferred transactions; `None`: another part has it.
    pub(crate) fn background_thread(&self, number: u32) -> Option<usize> {
        let (count, number) = (self.part.count, number);
        let is_own = number % count == self.part.number;
        is_own.then(|| (number / count) as usize % self.threads)
    }

    /// The arrivals of an open loop by thread: each at a terminal that is drawn, so that those of
    /// each terminal come at random, too.
    fn arrivals(&self, options: &RunnerOptions, rate: f64) -> Vec<Vec<Arrival>> {
        let mut arrivals = vec![Vec::new(); self.threads];
        let mut prng = stream(options.seed, &[0x7465_726d]);
        let [before_us, length_us] =
            [options.warmup, options.length].map(|it| it.as_micros() as u64);
        let due = match &options.curve {
            None => arrival::poisson(options.seed, rate, before_us + length_us),
            Some(curve) => arrival::along(options.seed, curve, before_us, length_us),
        };
        for due_us in due {
            let terminal = prng.below(u64::from(self.terminals)) as u32;
            if self.has(terminal) {
                arrivals[self.thread(terminal)].push((due_us, terminal));
            }
        }
        arrivals
    }

    /// Numbers below `count` of one thread.
    pub(crate) fn own(self, thread: usize, count: u32) -> impl Iterator<Item = u32> {
        (0..count).filter(move |number| self.has(*number) && self.thread(*number) == thread)
    }
}

/// An arrival of an open loop: when, and at which terminal.
pub(crate) type Arrival = (u64, u32);

/// Everything that the threads of a run share.
pub(crate) struct Stage<'a, W: Workload> {
    pub(crate) workload: &'a W,
    pub(crate) target: &'a Target,
    pub(crate) options: &'a RunnerOptions,
    pub(crate) deal: Deal,
    /// Of an open loop, by thread.
    pub(crate) arrivals: Vec<Vec<Arrival>>,
    /// By thread.
    shares: Vec<Mutex<Share>>,
    /// Transactions that are due and not begun, by thread.
    waiting: Vec<AtomicU64>,
    ready: Mutex<usize>,
    news: Condvar,
    refused: Mutex<Option<LinkError>>,
    /// When each endpoint last refused a connection.
    failed: Vec<Mutex<Option<Instant>>>,
    start: OnceLock<Option<Instant>>,
    /// A fault has failed: there is to be no number.
    is_called_off: AtomicBool,
}

impl<'a, W: Workload> Stage<'a, W> {
    pub(crate) fn new(
        workload: &'a W,
        target: &'a Target,
        options: &'a RunnerOptions,
        part: Part,
    ) -> Self {
        let deal = Deal::new(workload, target, options, part);
        let kinds = workload.kinds().len();
        let arrivals = match options.rate {
            Some(rate) => deal.arrivals(options, rate),
            None => vec![Vec::new(); deal.threads],
        };
        let threads = 0..deal.threads;
        Stage {
            workload,
            target,
            options,
            deal,
            arrivals,
            shares: threads
                .clone()
                .map(|_| Mutex::new(Share::new(kinds)))
                .collect(),
            waiting: threads.map(|_| AtomicU64::new(0)).collect(),
            ready: Mutex::new(0),
            news: Condvar::new(),
            refused: Mutex::new(None),
            failed: target.endpoints.iter().map(|_| Mutex::new(None)).collect(),
            start: OnceLock::new(),
            is_called_off: AtomicBool::new(false),
        }
    }

    /// Waits until every thread is connected, then lets all begin at once, at the time that `at`
    /// returns when it has come; `None`: they are not to begin. Returns the error when one could
    /// not connect; then none begins.
    pub(crate) fn begin(&self, at: impl FnOnce() -> Option<Instant>) -> Option<LinkError> {
        let mut ready = lock(&self.ready);
        while *ready < self.deal.threads {
            let waited = self.news.wait(ready);
            ready = waited.unwrap_or_else(PoisonError::into_inner);
        }
        drop(ready);
        let refused = lock(&self.refused).take();
        let start = if refused.is_none() { at() } else { None };
        self.start.set(start).expect("a run begins once");
        self.news.notify_all();
        refused
    }

    /// Keeps the first reason why a client cannot take part.
    pub(crate) fn refuse(&self, error: LinkError) {
        lock(&self.refused).get_or_insert(error);
    }

    /// Whether somebody cannot take part, so that nobody needs to go on.
    pub(crate) fn is_refused(&self) -> bool {
        lock(&self.refused).is_some()
    }

    /// Counts a thread as there, connected or not.
    pub(crate) fn excuse(&self) {
        *lock(&self.ready) += 1;
        self.news.notify_all();
    }

    /// Whether the run begins, once it does.
    pub(crate) fn wait_for_start(&self) -> bool {
        let mut ready = lock(&self.ready);
        loop {
            if let Some(start) = self.start.get() {
                return start.is_some();
            }
            // A timeout, because `begin` sets the start without holding the lock.
            let waited = self.news.wait_timeout(ready, Duration::from_millis(5));
            ready = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether the run has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.start.get().is_some_and(Option::is_some)
    }

    /// When the run began.
    pub(crate) fn start(&self) -> Instant {
        let start = self.start.get().copied().flatten();
        start.expect("the run has begun")
    }

    pub(crate) fn now_us(&self) -> u64 {
        self.start().elapsed().as_micros() as u64
    }

    pub(crate) fn warm_us(&self) -> u64 {
        self.options.warmup.as_micros() as u64
    }

    pub(crate) fn end_us(&self) -> u64 {
        (self.options.warmup + self.options.length).as_micros() as u64
    }

    /// The second of the measured phase, below 0 before it; `None`: it is over.
    pub(crate) fn second(&self) -> Option<f64> {
        let now_us = self.now_us();
        let second = (now_us as f64 - self.warm_us() as f64) / 1e6;
        (now_us < self.end_us() && !self.is_called_off()).then_some(second)
    }

    /// The step of the measured phase at this time, which lies in it.
    pub(crate) fn step(&self, now_us: u64) -> usize {
        ((now_us - self.warm_us()) as f64 / (STEP_S * 1e6)) as usize
    }

    /// Ends the run before its time.
    pub(crate) fn call_off(&self) {
        self.is_called_off.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_called_off(&self) -> bool {
        self.is_called_off.load(Ordering::Relaxed)
    }

    pub(crate) fn drained_us(&self) -> u64 {
        self.end_us() + DRAIN.as_micros() as u64
    }

    /// Whether what is due at this time belongs to the measured phase.
    pub(crate) fn is_measured(&self, due_us: u64) -> bool {
        (self.warm_us()..self.end_us()).contains(&due_us)
    }

    /// Whether transactions may wait for a connection.
    pub(crate) fn has_queue(&self) -> bool {
        self.options.rate.is_some() || self.deal.connections < self.deal.terminals
    }

    pub(crate) fn share(&self, thread: usize) -> MutexGuard<'_, Share> {
        lock(&self.shares[thread])
    }

    pub(crate) fn each_share(&self, mut visit: impl FnMut(&mut Share)) {
        self.shares.iter().for_each(|share| visit(&mut lock(share)));
    }

    pub(crate) fn note_waiting(&self, thread: usize, waiting: u64) {
        self.waiting[thread].store(waiting, Ordering::Relaxed);
    }

    /// Transactions that are due and not begun.
    pub(crate) fn waiting(&self) -> u64 {
        let waiting = self.waiting.iter();
        waiting.map(|waiting| waiting.load(Ordering::Relaxed)).sum()
    }

    /// Connects: to the endpoint of this number first, then to the others. One that has refused a
    /// moment ago comes last: each connection would wait for it in vain. The loop is patient, not
    /// the connection: so `patience` bounds each wait of this alone.
    pub(crate) fn open(&self, number: u32, patience: Duration) -> Result<W::Session, LinkError> {
        let patience = patience.min(self.options.timeout);
        let endpoints = &self.target.endpoints;
        let steps = 0..endpoints.len();
        let in_turn = steps.map(|step| (self.deal.endpoint(number) + step) % endpoints.len());
        let mut order: Vec<usize> = in_turn.collect();
        order.sort_by_key(|at| self.has_refused(*at));
        let mut result = Err(LinkError::Protocol("no endpoint"));
        for at in order {
            result = self.workload.open(&endpoints[at], patience);
            *lock(&self.failed[at]) = result.is_err().then(Instant::now);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    fn has_refused(&self, endpoint: usize) -> bool {
        lock(&self.failed[endpoint]).is_some_and(|at| at.elapsed() < REFUSED_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_a_connection_to_every_endpoint_of_its_terminals() {
        for (threads, endpoints, connections) in [(1, 1, 1), (2, 3, 6), (2, 3, 200), (4, 2, 9)] {
            let deal = Deal {
                threads,
                endpoints,
                terminals: 1_000,
                connections,
                background: 0,
                part: Part::WHOLE,
            };
            let mut all = 0;
            for thread in 0..threads {
                let own: Vec<u32> = deal.own(thread, connections).collect();
                all += own.len();
                for terminal in deal.own(thread, deal.terminals) {
                    let wanted = deal.endpoint(terminal);
                    assert!(
                        own.iter()
                            .any(|connection| deal.endpoint(*connection) == wanted)
                    );
                }
            }
            assert_eq!(all, connections as usize);
        }
    }

    /// Each terminal, each connection and each arrival is in one part and on one of its threads,
    /// and a thread has a connection to every endpoint of its terminals.
    #[test]
    fn parts_together_are_the_whole() {
        let options = RunnerOptions {
            warmup: Duration::ZERO,
            length: Duration::from_secs(2),
            ..RunnerOptions::default()
        };
        for (count, threads, endpoints) in [(1, 2, 3), (2, 2, 3), (3, 1, 1), (3, 2, 2)] {
            let whole = Deal {
                threads,
                endpoints,
                terminals: 500,
                connections: 60,
                background: 12,
                part: Part::WHOLE,
            };
            let (mut terminals, mut connections) = (Vec::new(), Vec::new());
            let (mut background, mut arrivals) = (Vec::new(), Vec::new());
            for number in 0..count {
                let deal = Deal {
                    part: Part { number, count },
                    ..whole
                };
                for thread in 0..threads {
                    let own: Vec<u32> = deal.own(thread, deal.connections).collect();
                    let reached: Vec<usize> = own.iter().map(|it| deal.endpoint(*it)).collect();
                    let mine = deal.own(thread, deal.terminals);
                    terminals.extend(mine.inspect(|terminal| {
                        assert!(reached.contains(&deal.endpoint(*terminal)));
                    }));
                    connections.extend(own);
                }
                let mine = (0..deal.background).filter(|it| deal.background_thread(*it).is_some());
                background.extend(mine);
                let due = deal.arrivals(&options, 1_000.0);
                assert!(due.iter().all(|own| !own.is_empty()));
                arrivals.extend(due.into_iter().flatten());
            }
            for numbers in [&mut terminals, &mut connections, &mut background] {
                numbers.sort_unstable();
            }
            assert!(terminals.into_iter().eq(0..500));
            assert!(connections.into_iter().eq(0..60));
            assert!(background.into_iter().eq(0..12));
            let mut all: Vec<Arrival> = whole.arrivals(&options, 1_000.0).concat();
            all.sort_unstable();
            arrivals.sort_unstable();
            assert_eq!(arrivals, all);
        }
    }

    /// Dealt in turn, each terminal would have the same number of arrivals; at random the variance
    /// of the numbers is their mean.
    #[test]
    fn arrivals_of_a_terminal_come_at_random() {
        let deal = Deal {
            threads: 2,
            endpoints: 3,
            terminals: 300,
            connections: 30,
            background: 0,
            part: Part::WHOLE,
        };
        let options = RunnerOptions {
            warmup: Duration::ZERO,
            length: Duration::from_secs(30),
            ..RunnerOptions::default()
        };
        let arrivals = deal.arrivals(&options, 1_000.0);
        let mut counts = [0u32; 300];
        for (thread, own) in arrivals.iter().enumerate() {
            assert!(own.is_sorted_by_key(|(due_us, _)| *due_us));
            for (_, terminal) in own {
                assert_eq!(deal.thread(*terminal), thread);
                counts[*terminal as usize] += 1;
            }
        }
        let mean = counts.iter().sum::<u32>() as f64 / 300.0;
        let square = |count: &u32| (f64::from(*count) - mean).powi(2);
        let variance = counts.iter().map(square).sum::<f64>() / 299.0;
        assert!(
            (0.75..1.3).contains(&(variance / mean)),
            "{variance} {mean}"
        );
        assert_eq!(arrivals, deal.arrivals(&options, 1_000.0));
    }
}
