//! Questions to other shards, and news for them, until they are answered.
//!
//! Messages get lost. So a message that needs an answer has a number, stays in a table, and is
//! repeated until the answer comes. The owner of the table gives up a receiver that is silent for
//! too long.
//!
//! * [`Asks`]: each question is repeated by itself, after pauses that grow ([`Resend`]).
//! * [`Rounds`]: news are repeated in common rounds, so that many of them for one shard travel in
//!   one message.
//!
//! ```text
//! begin(number) ──take_due──> send again ──take_due──> ... ──> end(number): answered
//!                    '── is_silent: given up
//! ```
//!
//! Neither type sends or knows messages: both only tell what is due.

use crate::resend::{Alarm, Pauses, Resend};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use base::{NodeId, ShardId, Time};
use core::ops::{Index, IndexMut, RangeBounds};

/// A question to a shard.
pub trait Asked {
    /// Shard that is asked.
    fn receiver(&self) -> ShardId;

    /// Incarnation of the receiver's node that must answer; `None`: a later one may, too.
    fn life(&self) -> Option<u32> {
        None
    }
}

#[derive(Debug)]
struct Ask<A> {
    what: A,
    resend: Resend,
    /// Whether the question is repeated: messages within the node do not get lost.
    repeats: bool,
}

/// Open questions by number, and when each one is repeated.
#[derive(Debug)]
pub struct Asks<N, A> {
    open: BTreeMap<N, Ask<A>>,
    /// Repeated questions by the time of their next repetition.
    due: BTreeSet<(Time, N)>,
    pauses: Pauses,
}

impl<N, A> Default for Asks<N, A> {
    fn default() -> Asks<N, A> {
        Asks {
            open: BTreeMap::new(),
            due: BTreeSet::new(),
            pauses: Pauses::default(),
        }
    }
}

impl<N: Ord + Copy, A: Asked> Asks<N, A> {
    /// Sets the pauses between repetitions, of questions that begin later. A new table has none.
    pub fn set_pauses(&mut self, pauses: Pauses) {
        self.pauses = pauses;
    }

    /// Opens a question; `repeats`: it is sent again until it is answered. The number must not be
    /// in use.
    pub fn begin(&mut self, number: N, what: A, now: Time, repeats: bool) {
        let resend = Resend::new(now, self.pauses);
        if repeats {
            self.due.insert((resend.again_at(), number));
        }
        let ask = Ask {
            what,
            resend,
            repeats,
        };
        let before = self.open.insert(number, ask);
        assert!(before.is_none(), "a number is used once");
    }

    /// Closes a question that was answered or is not needed any more.
    pub fn end(&mut self, number: N) -> Option<A> {
        let ask = self.open.remove(&number)?;
        if ask.repeats {
            self.due.remove(&(ask.resend.again_at(), number));
        }
        Some(ask.what)
    }

    /// The next question that is due, which the caller sends again or gives up. Its next pause has
    /// begun.
    pub fn take_due(&mut self, now: Time) -> Option<N> {
        let (_, number) = self.due.first().copied().filter(|(at, _)| *at <= now)?;
        let pauses = self.pauses;
        self.again(number, &mut |resend| resend.repeat(now, pauses));
        Some(number)
    }

    /// When the next question is due.
    #[inline]
    pub fn next_due(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }

    fn again(&mut self, number: N, change: &mut dyn FnMut(&mut Resend)) {
        let ask = self.open.get_mut(&number).expect("what is due is open");
        if ask.repeats {
            self.due.remove(&(ask.resend.again_at(), number));
        }
        change(&mut ask.resend);
        if ask.repeats {
            self.due.insert((ask.resend.again_at(), number));
        }
    }

    /// A question is sent now for another reason than its pause, and the pauses begin anew. Returns
    /// whether the question is open.
    pub fn restart(&mut self, number: N, now: Time) -> bool {
        let open = self.contains(number);
        if open {
            let pauses = self.pauses;
            self.again(number, &mut |resend| resend.restart(now, pauses));
        }
        open
    }

    /// A question waits for another pause from now on; from here on it repeats.
    pub fn defer(&mut self, number: N, now: Time) {
        if let Some(ask) = self.open.get_mut(&number) {
            if ask.repeats {
                self.due.remove(&(ask.resend.again_at(), number));
            }
            ask.repeats = true;
            ask.resend.defer(now);
            self.due.insert((ask.resend.again_at(), number));
        }
    }

    /// The receiver was heard about a question.
    pub fn hear(&mut self, number: N, now: Time) {
        if let Some(ask) = self.open.get_mut(&number) {
            ask.resend.hear(now);
        }
    }

    /// Whether the receiver was silent about a question for `timeout_us` microseconds.
    pub fn is_silent(&self, number: N, now: Time, timeout_us: u64) -> bool {
        let ask = self.open.get(&number);
        ask.is_some_and(|ask| ask.resend.is_silent(now, timeout_us))
    }

    /// Whether a question is open.
    pub fn contains(&self, number: N) -> bool {
        self.open.contains_key(&number)
    }

    /// The open question with this number.
    pub fn get(&self, number: N) -> Option<&A> {
        self.open.get(&number).map(|ask| &ask.what)
    }

    /// As [`Asks::get`], mutable.
    pub fn get_mut(&mut self, number: N) -> Option<&mut A> {
        self.open.get_mut(&number).map(|ask| &mut ask.what)
    }

    /// All open questions, by number.
    pub fn iter(&self) -> impl Iterator<Item = (N, &A)> {
        self.open.iter().map(|(number, ask)| (*number, &ask.what))
    }

    /// As [`Asks::iter`], mutable.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (N, &mut A)> {
        let open = self.open.iter_mut();
        open.map(|(number, ask)| (*number, &mut ask.what))
    }

    /// The open questions with numbers in a range, ascending.
    pub fn range(&self, numbers: impl RangeBounds<N>) -> impl Iterator<Item = (N, &A)> {
        let open = self.open.range(numbers);
        open.map(|(number, ask)| (*number, &ask.what))
    }

    /// Whether no question is open.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The smallest open number.
    pub fn first(&self) -> Option<N> {
        self.open.first_key_value().map(|(number, _)| *number)
    }

    /// The smallest open number of a question to this shard, which may forget all below.
    pub fn floor(&self, to: ShardId) -> Option<N> {
        let mut asks = self.iter();
        asks.find(|(_, ask)| ask.receiver() == to)
            .map(|(number, _)| number)
    }

    /// The numbers of the questions that `wanted` accepts, ascending.
    pub fn select(&self, mut wanted: impl FnMut(&A) -> bool) -> Vec<N> {
        let asks = self.iter().filter(|(_, ask)| wanted(ask));
        asks.map(|(number, _)| number).collect()
    }

    /// Numbers of the questions to shards of a node.
    pub fn at(&self, node: NodeId) -> Vec<N> {
        self.select(|ask| ask.receiver().node() == node)
    }

    /// Numbers of the questions that only lives of the node before `incarnation` could answer.
    pub fn lost(&self, node: NodeId, incarnation: u32) -> Vec<N> {
        self.select(|ask| {
            ask.receiver().node() == node && ask.life().is_some_and(|life| life < incarnation)
        })
    }
}

impl<N: Ord + Copy, A: Asked> Index<N> for Asks<N, A> {
    type Output = A;

    fn index(&self, number: N) -> &A {
        self.get(number).expect("the ask is open")
    }
}

impl<N: Ord + Copy, A: Asked> IndexMut<N> for Asks<N, A> {
    fn index_mut(&mut self, number: N) -> &mut A {
        self.get_mut(number).expect("the ask is open")
    }
}

/// News for a shard that has not acknowledged them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Told<A> {
    /// The news.
    pub what: A,
    /// When the news were last sent.
    pub sent: Time,
    /// Whether the news are repeated: messages within the node do not get lost.
    repeats: bool,
}

/// News by number, repeated in rounds.
#[derive(Debug)]
pub struct Rounds<N, A> {
    open: BTreeMap<N, Told<A>>,
    alarm: Alarm,
    pause_us: u64,
}

impl<N, A> Default for Rounds<N, A> {
    fn default() -> Rounds<N, A> {
        Rounds {
            open: BTreeMap::new(),
            alarm: Alarm::default(),
            pause_us: 0,
        }
    }
}

impl<N: Ord + Clone, A> Rounds<N, A> {
    /// Sets the least time between two repetitions, in microseconds.
    pub fn set_pause(&mut self, pause_us: u64) {
        self.pause_us = pause_us;
    }

    /// Tells news now; `repeats`: again, until they end. Replaces news under the same number.
    pub fn begin(&mut self, number: N, what: A, now: Time, repeats: bool) {
        if repeats {
            self.arm(now);
        }
        let told = Told {
            what,
            sent: now,
            repeats,
        };
        self.open.insert(number, told);
    }

    /// Ends news that are acknowledged or not needed any more.
    pub fn end(&mut self, number: &N) -> Option<Told<A>> {
        self.open.remove(number)
    }

    /// Sets the next round to at most a pause from now.
    pub fn arm(&mut self, now: Time) {
        self.alarm.set_once(now.after(self.pause_us));
    }

    /// When the next round is.
    #[inline]
    pub fn next_due(&self) -> Option<Time> {
        self.alarm.at()
    }

    /// A round: the numbers of the news that were not sent for a pause, ascending. The caller sends
    /// them now. The next round is set if any news repeat.
    pub fn take_round(&mut self, now: Time) -> Vec<N> {
        self.alarm.stop();
        let mut due = Vec::new();
        let mut open = false;
        for (number, told) in &mut self.open {
            if !told.repeats {
                continue;
            }
            open = true;
            if now.since(told.sent) >= self.pause_us {
                told.sent = now;
                due.push(number.clone());
            }
        }
        if open {
            self.arm(now);
        }
        due
    }

    /// News are sent now, outside of the rounds. Returns them, for the caller to change and send.
    pub fn resend(&mut self, number: &N, now: Time) -> Option<&mut A> {
        let told = self.open.get_mut(number)?;
        told.sent = now;
        Some(&mut told.what)
    }

    /// The news under this number.
    pub fn get(&self, number: &N) -> Option<&A> {
        self.open.get(number).map(|told| &told.what)
    }

    /// As [`Rounds::get`], mutable.
    pub fn get_mut(&mut self, number: &N) -> Option<&mut A> {
        self.open.get_mut(number).map(|told| &mut told.what)
    }

    /// Whether there are news under this number.
    pub fn contains(&self, number: &N) -> bool {
        self.open.contains_key(number)
    }

    /// All news, by number.
    pub fn iter(&self) -> impl Iterator<Item = (&N, &A)> {
        self.open.iter().map(|(number, told)| (number, &told.what))
    }

    /// Keeps the news that `wanted` accepts.
    pub fn retain(&mut self, mut wanted: impl FnMut(&N, &A) -> bool) {
        self.open.retain(|number, told| wanted(number, &told.what));
    }

    /// Number of news.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether there are no news.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

#[cfg(test)]
mod tests;
