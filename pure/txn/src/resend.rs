//! When an unanswered message is sent again.

use alloc::collections::{BTreeMap, BTreeSet};
use base::Time;

/// Pauses between the repetitions of a message, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pauses {
    /// The first pause.
    pub first_us: u64,
    /// The longest pause. Each pause is twice as long as the one before, up to this.
    pub longest_us: u64,
}

impl Pauses {
    /// Pauses that do not grow.
    pub fn even(pause_us: u64) -> Pauses {
        Pauses {
            first_us: pause_us,
            longest_us: pause_us,
        }
    }

    /// The pause before repetition number `repetition`, counted from 0. Never below the first
    /// pause.
    pub fn before(self, repetition: u32) -> u64 {
        let longest_us = self.longest_us.max(self.first_us);
        let factor = 1_u64.checked_shl(repetition).unwrap_or(u64::MAX);
        self.first_us.saturating_mul(factor).min(longest_us)
    }
}

/// The repetitions of one message, and when its receiver was last heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resend {
    again_at: Time,
    pause_us: u64,
    heard: Time,
}

impl Resend {
    /// For a message that is sent now.
    pub fn new(now: Time, pauses: Pauses) -> Resend {
        Resend {
            again_at: now.after(pauses.first_us),
            pause_us: pauses.first_us,
            heard: now,
        }
    }

    /// When the message is to be sent again.
    pub fn again_at(&self) -> Time {
        self.again_at
    }

    /// The receiver was heard about the message, so it is not silent.
    pub fn hear(&mut self, now: Time) {
        self.heard = now;
    }

    /// Whether the receiver was silent about the message for `timeout_us` microseconds.
    pub fn is_silent(&self, now: Time, timeout_us: u64) -> bool {
        now.since(self.heard) >= timeout_us
    }

    /// The message is due and sent again: the next pause is twice as long.
    pub fn repeat(&mut self, now: Time, pauses: Pauses) {
        self.pause_us = (self.pause_us * 2).min(pauses.longest_us);
        self.defer(now);
    }

    /// The message is sent for another reason, or need not be sent now: its pause begins again.
    pub fn defer(&mut self, now: Time) {
        self.again_at = now.after(self.pause_us);
    }

    /// The message is sent now and the pauses begin anew: the receiver can be reached again.
    pub fn restart(&mut self, now: Time, pauses: Pauses) {
        self.pause_us = pauses.first_us;
        self.defer(now);
    }

    /// The message is due now and the pauses begin anew.
    pub fn hurry(&mut self, now: Time, pauses: Pauses) {
        self.pause_us = pauses.first_us;
        self.again_at = now;
    }

    /// Gives the receiver `in_us` microseconds more, after which it counts as silent for
    /// `timeout_us`.
    pub fn give_up_in(&mut self, now: Time, in_us: u64, timeout_us: u64) {
        self.heard = Time(now.0.saturating_sub(timeout_us - in_us));
        self.again_at = now.after(in_us);
    }
}

/// One point in time; none when it is not set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Alarm(Option<Time>);

impl Alarm {
    /// When the alarm rings.
    #[inline]
    pub fn at(&self) -> Option<Time> {
        self.0
    }

    /// Whether the alarm is set.
    pub fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// Sets the alarm to `at`, unless it is set.
    pub fn set_once(&mut self, at: Time) {
        self.0.get_or_insert(at);
    }

    /// Sets the alarm to `at`, unless it rings earlier.
    pub fn set_by(&mut self, at: Time) {
        self.0 = Some(self.0.map_or(at, |set| set.min(at)));
    }

    /// Sets the alarm to `at`, whatever it was set to.
    pub fn set(&mut self, at: Time) {
        self.0 = Some(at);
    }

    /// Clears the alarm.
    pub fn stop(&mut self) {
        self.0 = None;
    }
}

/// Points in time, one for each name. The earliest comes first; of those at the same time, the
/// smallest name.
#[derive(Clone, Debug)]
pub struct Alarms<N> {
    at: BTreeMap<N, Time>,
    due: BTreeSet<(Time, N)>,
}

impl<N> Default for Alarms<N> {
    fn default() -> Alarms<N> {
        Alarms {
            at: BTreeMap::new(),
            due: BTreeSet::new(),
        }
    }
}

impl<N: Ord + Copy> Alarms<N> {
    /// Sets the alarm of `what`, whatever it was set to; `None` clears it.
    #[inline]
    pub fn set(&mut self, what: N, at: Option<Time>) {
        if at.is_some() || !self.at.is_empty() {
            self.change(what, at);
        }
    }

    /// When the alarm of `what` rings.
    #[inline]
    pub fn at(&self, what: N) -> Option<Time> {
        self.at.get(&what).copied()
    }

    fn change(&mut self, what: N, at: Option<Time>) {
        let before = match at {
            Some(at) => self.at.insert(what, at),
            None => self.at.remove(&what),
        };
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.due.remove(&(before, what));
        }
        if let Some(at) = at {
            self.due.insert((at, what));
        }
    }

    /// The next alarm that rings, and when.
    #[inline]
    pub fn first(&self) -> Option<(Time, N)> {
        self.due.first().copied()
    }

    /// Takes the next alarm that has rung by `now`, and clears it.
    pub fn take_due(&mut self, now: Time) -> Option<N> {
        let (_, what) = self.first().filter(|(at, _)| *at <= now)?;
        self.change(what, None);
        Some(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSES: Pauses = Pauses {
        first_us: 200,
        longest_us: 1_000,
    };

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut resend = Resend::new(Time(0), PAUSES);
        let mut at = Time(0);
        for (repetition, pause_us) in [200, 400, 800, 1_000, 1_000].into_iter().enumerate() {
            assert_eq!(resend.again_at(), at.after(pause_us));
            assert_eq!(PAUSES.before(repetition as u32), pause_us);
            at = resend.again_at();
            resend.repeat(at, PAUSES);
        }
        assert_eq!(PAUSES.before(200), 1_000);
        resend.restart(at, PAUSES);
        assert_eq!(resend.again_at(), at.after(200));
        resend.hurry(at, PAUSES);
        assert_eq!(resend.again_at(), at);
        resend.repeat(at, PAUSES);
        assert_eq!(resend.again_at(), at.after(400));
        assert_eq!(Pauses::even(7).before(3), 7);
    }

    #[test]
    fn silence_counts_from_the_last_word() {
        let mut resend = Resend::new(Time(0), PAUSES);
        assert!(!resend.is_silent(Time(4_999), 5_000));
        assert!(resend.is_silent(Time(5_000), 5_000));
        resend.hear(Time(5_000));
        resend.repeat(Time(5_000), PAUSES);
        assert!(!resend.is_silent(Time(9_999), 5_000));
        resend.give_up_in(Time(6_000), 500, 5_000);
        assert_eq!(resend.again_at(), Time(6_500));
        assert!(!resend.is_silent(Time(6_499), 5_000));
        assert!(resend.is_silent(Time(6_500), 5_000));
    }

    #[test]
    fn alarms_ring_in_order() {
        let mut alarms = Alarms::default();
        for (what, at) in [('b', 3), ('a', 3), ('c', 1), ('d', 2), ('c', 4)] {
            alarms.set(what, Some(Time(at)));
        }
        alarms.set('d', None);
        alarms.set('e', None);
        alarms.set('b', Some(Time(3)));
        assert_eq!(
            ['b', 'c', 'd'].map(|what| alarms.at(what)),
            [Some(Time(3)), Some(Time(4)), None]
        );
        assert_eq!(alarms.first(), Some((Time(3), 'a')));
        assert_eq!(alarms.take_due(Time(2)), None);
        let rung: Vec<char> = core::iter::from_fn(|| alarms.take_due(Time(4))).collect();
        assert_eq!(rung, ['a', 'b', 'c']);
        assert_eq!(alarms.first(), None);
    }

    #[test]
    fn an_alarm_keeps_its_time() {
        let mut alarm = Alarm::default();
        alarm.set_once(Time(9));
        alarm.set_once(Time(5));
        assert_eq!(alarm.at(), Some(Time(9)));
        alarm.set_by(Time(7));
        alarm.set_by(Time(8));
        assert_eq!(alarm.at(), Some(Time(7)));
        alarm.set(Time(8));
        assert!(alarm.is_set());
        alarm.stop();
        assert_eq!(alarm.at(), None);
    }
}
