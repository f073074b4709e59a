//! PeakBench's way to have orders compete: those that are to do so wait at the client until as many
//! as wanted are there, and then begin together.
//!
//! The paper's section 6.1.2 measures what that costs: the time to gather them, during which their
//! terminals do nothing. An order holds nothing at the server while it waits, and passes once: an
//! attempt after an abort goes on at once. The orders of a round must have ended before the next
//! one is whole, because a row is wanted by no more.

use links::lock;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Instant;

/// What gathering took, all rows together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gathering {
    /// Rounds that began together.
    pub rounds: u64,
    /// Mean time from the first order of a round to the last, milliseconds.
    pub mean_ms: f64,
    /// The longest.
    pub max_ms: f64,
    /// Time that all orders together have waited, seconds.
    pub waited_s: f64,
}

#[derive(Debug, Default)]
struct State {
    wanted: u32,
    /// Orders that wait, by what tells them apart.
    waiting: BTreeSet<usize>,
    /// Those that have passed and have no outcome.
    passed: BTreeSet<usize>,
    /// When the first of those that wait has come.
    began: Option<Instant>,
    is_open: bool,
    rounds: Vec<f64>,
    waited_s: f64,
}

/// Where the orders of one row wait.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    /// Grows when orders may go on.
    turns: AtomicU64,
}

impl Gate {
    /// From now on a round has as many orders.
    pub(super) fn set_wanted(&self, orders: u32) {
        let mut state = lock(&self.state);
        state.wanted = orders;
        self.release(&mut state);
    }

    /// Nobody waits any more.
    pub(super) fn open(&self) {
        let mut state = lock(&self.state);
        state.is_open = true;
        self.release(&mut state);
    }

    pub(super) fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// Waits for the round of this order. It is polled again when [`Gate::turns`] has grown.
    pub(super) async fn pass(&self, order: usize) {
        let came = Instant::now();
        poll_fn(|_| self.poll(order, came)).await;
    }

    fn poll(&self, order: usize, came: Instant) -> Poll<()> {
        let mut state = lock(&self.state);
        if state.passed.contains(&order) {
            return Poll::Ready(());
        }
        if state.waiting.insert(order) {
            state.began.get_or_insert(came);
            self.release(&mut state);
        }
        match state.passed.contains(&order) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// Lets those go that wait, if they are enough.
    fn release(&self, state: &mut State) {
        let is_whole = state.waiting.len() >= state.wanted.max(1) as usize;
        if state.waiting.is_empty() || !(is_whole || state.is_open) {
            return;
        }
        let waiting = std::mem::take(&mut state.waiting);
        if let Some(began) = state.began.take().filter(|_| is_whole) {
            state.rounds.push(began.elapsed().as_secs_f64());
        }
        state.passed.extend(waiting);
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// An order has an outcome, and has waited for so long.
    pub(super) fn ended(&self, order: usize) {
        let mut state = lock(&self.state);
        state.passed.remove(&order);
        state.waiting.remove(&order);
    }

    /// An order has gone on after so many seconds.
    pub(super) fn note_waited(&self, seconds: f64) {
        lock(&self.state).waited_s += seconds;
    }
}

/// What gathering took at all gates; `None`: nothing was gathered.
pub(super) fn gathering(gates: &[Gate]) -> Option<Gathering> {
    let mut sum = Gathering::default();
    for gate in gates {
        let state = lock(&gate.state);
        sum.rounds += state.rounds.len() as u64;
        sum.mean_ms += 1e3 * state.rounds.iter().sum::<f64>();
        sum.max_ms = state
            .rounds
            .iter()
            .fold(sum.max_ms, |most, it| most.max(1e3 * it));
        sum.waited_s += state.waited_s;
    }
    sum.mean_ms /= sum.rounds.max(1) as f64;
    (sum.rounds > 0).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Waker};

    #[test]
    fn a_round_begins_together_and_an_order_passes_once() {
        let gate = Gate::default();
        gate.set_wanted(2);
        let mut cx = Context::from_waker(Waker::noop());
        let mut first = pin!(gate.pass(1));
        assert!(first.as_mut().poll(&mut cx).is_pending());
        assert!(first.as_mut().poll(&mut cx).is_pending(), "it counts once");
        let turns = gate.turns();
        assert!(pin!(gate.pass(2)).poll(&mut cx).is_ready());
        assert_eq!(gate.turns(), turns + 1);
        assert!(first.poll(&mut cx).is_ready());
        // Another attempt.
        assert!(pin!(gate.pass(1)).poll(&mut cx).is_ready());
        gate.ended(1);
        let mut again = pin!(gate.pass(1));
        assert!(again.as_mut().poll(&mut cx).is_pending());
        gate.open();
        assert!(again.poll(&mut cx).is_ready());
        assert_eq!(lock(&gate.state).rounds.len(), 1);
    }

    #[test]
    fn a_smaller_round_is_whole_at_once() {
        let gate = Gate::default();
        gate.set_wanted(3);
        let mut cx = Context::from_waker(Waker::noop());
        let mut first = pin!(gate.pass(1));
        assert!(first.as_mut().poll(&mut cx).is_pending());
        gate.set_wanted(1);
        assert!(first.poll(&mut cx).is_ready());
        assert_eq!(gathering(&[]), None);
        let told = Gate::default();
        lock(&told.state).rounds = vec![0.25, 0.75];
        let found = gathering(&[told]).expect("two rounds");
        assert_eq!(
            (found.rounds, found.mean_ms, found.max_ms),
            (2, 500.0, 750.0)
        );
    }
}
