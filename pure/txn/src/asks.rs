//! What a shard has asked of others or told them, until it is answered.
//!
//! Messages get lost. So whatever needs an answer has a number, stays in a table and is sent again
//! until the answer is here; a receiver that says nothing for too long is given up by the owner of
//! the table.
//!
//! * [`Asks`]: each ask is repeated by itself, after pauses that grow ([`Resend`]).
//! * [`Rounds`]: what was told is repeated in common rounds, so that many things for one shard
//!   travel in one message.
//!
//! ```text
//! begin(number) ──take_due──> send again ──take_due──> ... ──> end(number): answered
//!                    '── is_silent: given up
//! ```
//!
//! Neither type sends anything, and neither knows a message: both say what is due.

use crate::resend::{Alarm, Pauses, Resend};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use base::{NodeId, ShardId, Time};
use core::ops::{Index, IndexMut, RangeBounds};

/// Something that is asked of a shard.
pub trait Asked {
    /// Who is asked.
    fn receiver(&self) -> ShardId;

    /// Incarnation of the receiver's node that alone can answer; `None`: a later life can too.
    fn life(&self) -> Option<u32> {
        None
    }
}

#[derive(Debug)]
struct Ask<A> {
    what: A,
    resend: Resend,
    /// Whether it is sent again: what stays in the node does not get lost.
    repeats: bool,
}

/// Asks by number, with what is to be sent again next.
#[derive(Debug)]
pub struct Asks<N, A> {
    open: BTreeMap<N, Ask<A>>,
    /// Those that are repeated, by the time of the next repetition.
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
    /// Sets the pauses between repetitions; an empty table has none. Takes effect for what begins
    /// later.
    pub fn set_pauses(&mut self, pauses: Pauses) {
        self.pauses = pauses;
    }

    /// Something is asked now; `repeats`: it is sent again until it is answered. The number must
    /// not be in use.
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

    /// It is answered, or not wanted any more.
    pub fn end(&mut self, number: N) -> Option<A> {
        let ask = self.open.remove(&number)?;
        if ask.repeats {
            self.due.remove(&(ask.resend.again_at(), number));
        }
        Some(ask.what)
    }

    /// The next one whose time has come, which the caller sends again or gives up. Its next pause
    /// has begun.
    pub fn take_due(&mut self, now: Time) -> Option<N> {
        let (_, number) = self.due.first().copied().filter(|(at, _)| *at <= now)?;
        let pauses = self.pauses;
        self.again(number, &mut |resend| resend.repeat(now, pauses));
        Some(number)
    }

    /// When the next one is due.
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

    /// It is sent now for another reason than its pause, and the pauses begin anew. Whether it is
    /// open.
    pub fn restart(&mut self, number: N, now: Time) -> bool {
        let open = self.contains(number);
        if open {
            let pauses = self.pauses;
            self.again(number, &mut |resend| resend.restart(now, pauses));
        }
        open
    }

    /// It need not be sent before another pause has passed from now on; from here on it repeats.
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

    /// Something was heard about it.
    pub fn hear(&mut self, number: N, now: Time) {
        if let Some(ask) = self.open.get_mut(&number) {
            ask.resend.hear(now);
        }
    }

    /// Whether nothing was heard about it for so long. Microseconds.
    pub fn is_silent(&self, number: N, now: Time, timeout_us: u64) -> bool {
        let ask = self.open.get(&number);
        ask.is_some_and(|ask| ask.resend.is_silent(now, timeout_us))
    }

    /// Whether it is open.
    pub fn contains(&self, number: N) -> bool {
        self.open.contains_key(&number)
    }

    /// What is asked under this number.
    pub fn get(&self, number: N) -> Option<&A> {
        self.open.get(&number).map(|ask| &ask.what)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, number: N) -> Option<&mut A> {
        self.open.get_mut(&number).map(|ask| &mut ask.what)
    }

    /// All of them, by number.
    pub fn iter(&self) -> impl Iterator<Item = (N, &A)> {
        self.open.iter().map(|(number, ask)| (*number, &ask.what))
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (N, &mut A)> {
        let open = self.open.iter_mut();
        open.map(|(number, ask)| (*number, &mut ask.what))
    }

    /// Those with numbers in a range, by number.
    pub fn range(&self, numbers: impl RangeBounds<N>) -> impl Iterator<Item = (N, &A)> {
        let open = self.open.range(numbers);
        open.map(|(number, ask)| (*number, &ask.what))
    }

    /// Whether nothing is open.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The smallest open number.
    pub fn first(&self) -> Option<N> {
        self.open.first_key_value().map(|(number, _)| *number)
    }

    /// The smallest open number of an ask to this shard: it may forget all below.
    pub fn floor(&self, to: ShardId) -> Option<N> {
        let mut asks = self.iter();
        asks.find(|(_, ask)| ask.receiver() == to)
            .map(|(number, _)| number)
    }

    /// The numbers of asks that `wanted` accepts, ascending.
    pub fn select(&self, mut wanted: impl FnMut(&A) -> bool) -> Vec<N> {
        let asks = self.iter().filter(|(_, ask)| wanted(ask));
        asks.map(|(number, _)| number).collect()
    }

    /// Asks to shards of a node.
    pub fn at(&self, node: NodeId) -> Vec<N> {
        self.select(|ask| ask.receiver().node() == node)
    }

    /// Asks that only lives of the node before `incarnation` could answer.
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

/// Something that was told and is not known to be known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Told<A> {
    /// What.
    pub what: A,
    /// When it was last sent.
    pub sent: Time,
    /// Whether it is sent again: what stays in the node does not get lost.
    repeats: bool,
}

/// What was told, by number, and repeated in rounds.
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
    /// Sets the least time between two repetitions. Microseconds.
    pub fn set_pause(&mut self, pause_us: u64) {
        self.pause_us = pause_us;
    }

    /// Something is told now; `repeats`: again, until it ends. What was told under the same number
    /// is replaced.
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

    /// It is known, or not to be told any more.
    pub fn end(&mut self, number: &N) -> Option<Told<A>> {
        self.open.remove(number)
    }

    /// The next round is at most a pause away.
    pub fn arm(&mut self, now: Time) {
        self.alarm.set_once(now.after(self.pause_us));
    }

    /// When the next round is.
    #[inline]
    pub fn next_due(&self) -> Option<Time> {
        self.alarm.at()
    }

    /// A round: what was not sent for a pause, which the caller sends now, ascending. The next
    /// round is set if anything repeats.
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

    /// It is told again, with what is there to tell, outside of the rounds.
    pub fn resend(&mut self, number: &N, now: Time) -> Option<&mut A> {
        let told = self.open.get_mut(number)?;
        told.sent = now;
        Some(&mut told.what)
    }

    /// What is told under this number.
    pub fn get(&self, number: &N) -> Option<&A> {
        self.open.get(number).map(|told| &told.what)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, number: &N) -> Option<&mut A> {
        self.open.get_mut(number).map(|told| &mut told.what)
    }

    /// Whether something is told under this number.
    pub fn contains(&self, number: &N) -> bool {
        self.open.contains_key(number)
    }

    /// All of it, by number.
    pub fn iter(&self) -> impl Iterator<Item = (&N, &A)> {
        self.open.iter().map(|(number, told)| (number, &told.what))
    }

    /// Keeps what `wanted` accepts.
    pub fn retain(&mut self, mut wanted: impl FnMut(&N, &A) -> bool) {
        self.open.retain(|number, told| wanted(number, &told.what));
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

#[cfg(test)]
mod tests;
