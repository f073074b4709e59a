//! Says when the wall clock has been set back: the node's time goes on from where it was, so that
//! `now()` lies in the future until the wall clock has caught up.

/// Less than this is not worth a word: clocks are adjusted all the time.
const WORTH_US: u64 = 1_000_000;

/// What there is to say of the clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ClockNews {
    /// The node's time is this many microseconds ahead of the wall clock.
    Ahead(u64),
    /// It is no longer.
    CaughtUp,
}

/// Remembers what has been said.
#[derive(Default)]
pub(crate) struct ClockWatch {
    /// By how much the time was ahead when that was said last; 0: it is not.
    told_us: u64,
}

impl ClockWatch {
    /// Looks at how far the node's time is ahead now.
    pub(crate) fn look(&mut self, ahead_us: u64) -> Option<ClockNews> {
        if ahead_us >= self.told_us.saturating_add(WORTH_US) {
            self.told_us = ahead_us;
            return Some(ClockNews::Ahead(ahead_us));
        }
        if ahead_us < WORTH_US && self.told_us > 0 {
            self.told_us = 0;
            return Some(ClockNews::CaughtUp);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_jump_is_told_once() {
        let mut watch = ClockWatch::default();
        let looks = [
            0,
            900_000,
            3_600_000_000,
            3_600_000_100,
            3_599_000_000,
            7_200_000_000,
            10,
            5,
        ];
        let told: Vec<_> = looks
            .into_iter()
            .filter_map(|ahead| watch.look(ahead))
            .collect();
        let expected = [
            ClockNews::Ahead(3_600_000_000),
            ClockNews::Ahead(7_200_000_000),
            ClockNews::CaughtUp,
        ];
        assert_eq!(told, expected);
    }
}
