//! How often something happens, by whole seconds.

use base::Time;

/// Events of the last whole second.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Rate {
    /// The second that is counted now, since the epoch.
    second: u64,
    count: u64,
    /// Events of the second before.
    last: u64,
}

impl Rate {
    /// Counts one event.
    pub(crate) fn note(&mut self, now: Time) {
        self.turn(now);
        self.count += 1;
    }

    /// Events in the last second that is over.
    pub(crate) fn per_second(&self, now: Time) -> u64 {
        let mut copy = *self;
        copy.turn(now);
        copy.last
    }

    fn turn(&mut self, now: Time) {
        let second = now.0 / 1_000_000;
        if second == self.second {
            return;
        }
        self.last = if second == self.second + 1 {
            self.count
        } else {
            0
        };
        (self.second, self.count) = (second, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_second_counts() {
        let mut rate = Rate::default();
        for at in [5_000_000, 5_100_000, 5_999_999, 6_000_000] {
            rate.note(Time(at));
        }
        assert_eq!(rate.per_second(Time(6_500_000)), 3);
        assert_eq!(rate.per_second(Time(7_000_000)), 1);
        assert_eq!(rate.per_second(Time(9_000_000)), 0);
    }
}
