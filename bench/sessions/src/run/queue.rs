//! Sessions that wait for their next request, and threads that wait for a session.
//!
//! In a closed population each thread has a queue with its one session; in the others all threads
//! share one. New sessions of an open population come from the list of arrivals, in their order.

use super::parts::Part;
use crate::interaction::Session;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest sleep of a thread without a look at the end of the run.
const SLEEP_NS_MAX: u64 = 50_000_000;

/// A session on its way.
#[derive(Debug)]
pub(crate) struct Walker {
    /// What it knows.
    pub session: Session,
    /// The state whose interaction is next.
    pub state: usize,
    /// When that is due, from the start of the run.
    pub due_ns: u64,
    /// How often it has thought.
    pub thoughts: u64,
}

/// By due time, the earliest as the greatest; by number where that is the same.
impl Ord for Walker {
    fn cmp(&self, other: &Walker) -> Ordering {
        let key = |walker: &Walker| (walker.due_ns, walker.session.number);
        key(other).cmp(&key(self))
    }
}

impl PartialOrd for Walker {
    fn partial_cmp(&self, other: &Walker) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Walker {
    fn eq(&self, other: &Walker) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Walker {}

#[derive(Debug, Default)]
struct Inside {
    waiting: BinaryHeap<Walker>,
    /// Due times of the sessions that have not come yet, with their numbers; the next one last.
    arrivals: Vec<(u64, u64)>,
}

/// Sessions in the order of their due times.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    inside: Mutex<Inside>,
    changed: Condvar,
}

/// What a thread gets from a queue.
#[derive(Debug)]
pub(crate) enum Taken {
    /// A session whose request is due.
    Walker(Box<Walker>),
    /// A new session: its number and when it came.
    Arrival(u64, u64),
    /// Nothing yet: look at the end of the run.
    Nothing,
}

impl Queue {
    /// With those of the sessions that arrive at these times, in microseconds and in order, that
    /// are dealt to a part.
    pub(crate) fn with_arrivals(due_us: &[u64], part: Part) -> Queue {
        let dealt = part.dealt(due_us.len() as u64);
        let dealt = dealt.map(|number| (due_us[number as usize] * 1_000, number));
        let mut arrivals: Vec<(u64, u64)> = dealt.collect();
        arrivals.reverse();
        let inside = Inside {
            arrivals,
            ..Inside::default()
        };
        Queue {
            inside: Mutex::new(inside),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a session back.
    pub(crate) fn put(&self, walker: Walker) {
        let mut inside = self.lock();
        let due_ns = walker.due_ns;
        let is_first = inside
            .waiting
            .peek()
            .is_none_or(|first| due_ns < first.due_ns);
        inside.waiting.push(walker);
        drop(inside);
        if is_first {
            self.changed.notify_one();
        }
    }

    /// Waits for what is due, at most for a twentieth of a second.
    pub(crate) fn take(&self, now_ns: &dyn Fn() -> u64) -> Taken {
        let mut inside = self.lock();
        let now = now_ns();
        if let Some(taken) = inside.take_due(now) {
            // There may be more that is due, and a thread that sleeps for it.
            let more = inside.next_ns().is_some_and(|due| due <= now);
            drop(inside);
            if more {
                self.changed.notify_one();
            }
            return taken;
        }
        let until = inside.next_ns().map_or(SLEEP_NS_MAX, |due| due - now);
        let sleep = Duration::from_nanos(until.min(SLEEP_NS_MAX));
        let waited = self.changed.wait_timeout(inside, sleep);
        let (mut inside, _) = waited.unwrap_or_else(PoisonError::into_inner);
        inside.take_due(now_ns()).unwrap_or(Taken::Nothing)
    }

    /// How many requests are due and not begun.
    pub(crate) fn overdue(&self, now_ns: u64) -> u64 {
        let inside = self.lock();
        let waiting = inside
            .waiting
            .iter()
            .filter(|walker| walker.due_ns <= now_ns);
        let coming = inside.arrivals.iter().rev();
        let coming = coming.take_while(|(due, _)| *due <= now_ns);
        (waiting.count() + coming.count()) as u64
    }

    /// The same by the state that each waits for; arrivals have none yet.
    pub(crate) fn overdue_since(&self, from_ns: u64, to_ns: u64) -> (Vec<usize>, u64) {
        let inside = self.lock();
        let within = |due: u64| (from_ns..to_ns).contains(&due);
        let waiting = inside.waiting.iter().filter(|walker| within(walker.due_ns));
        let coming = inside.arrivals.iter().filter(|(due, _)| within(*due));
        let states = waiting.map(|walker| walker.state).collect();
        (states, coming.count() as u64)
    }
}

impl Inside {
    fn next_ns(&self) -> Option<u64> {
        let waiting = self.waiting.peek().map(|walker| walker.due_ns);
        let coming = self.arrivals.last().map(|(due, _)| *due);
        waiting.into_iter().chain(coming).min()
    }

    fn take_due(&mut self, now_ns: u64) -> Option<Taken> {
        let waiting = self.waiting.peek().map(|walker| walker.due_ns);
        let waiting = waiting.filter(|due| *due <= now_ns);
        let coming = self.arrivals.last().map(|(due, _)| *due);
        let coming = coming.filter(|due| *due <= now_ns);
        match (waiting, coming) {
            (None, None) => None,
            (Some(waiting), coming) if coming.is_none_or(|coming| waiting <= coming) => {
                let walker = self.waiting.pop();
                walker.map(|walker| Taken::Walker(Box::new(walker)))
            }
            (_, _) => {
                let (due, number) = self.arrivals.pop()?;
                Some(Taken::Arrival(number, due))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walker(number: u64, due_ns: u64) -> Walker {
        Walker {
            session: Session::new(1, number, number),
            state: 0,
            due_ns,
            thoughts: 0,
        }
    }

    #[test]
    fn what_is_due_first_comes_first() {
        let queue = Queue::with_arrivals(&[2, 5], Part::WHOLE);
        queue.put(walker(7, 3_000));
        queue.put(walker(8, 1_000));
        queue.put(walker(9, 9_000_000_000));
        assert_eq!(queue.overdue(4_000), 3);
        assert_eq!(queue.overdue_since(2_000, 6_000), (vec![0], 2));
        let now = || 6_000;
        let mut taken = Vec::new();
        for _ in 0..4 {
            taken.push(match queue.take(&now) {
                Taken::Walker(walker) => (walker.session.number, walker.due_ns),
                Taken::Arrival(number, due_ns) => (number, due_ns),
                Taken::Nothing => panic!("four are due"),
            });
        }
        assert_eq!(taken, [(8, 1_000), (0, 2_000), (7, 3_000), (1, 5_000)]);
        assert!(matches!(queue.take(&now), Taken::Nothing));
        assert_eq!(queue.overdue(4_000), 0);
    }
}
