//! The clock that a host gives to its machines.

use crate::time::Time;

/// Wall time that never runs backwards and never stands still.
///
/// It follows the wall clock forwards. When the wall clock is set back, it goes on at the pace of a
/// monotonic clock: deadlines lie at the distance at which they were set, and timestamps rise.
#[derive(Clone, Copy, Debug, Default)]
pub struct SteadyClock {
    last: Time,
    monotonic_us: u64,
}

impl SteadyClock {
    /// The time, given what the machine's clocks show: microseconds of a clock that is never set,
    /// and the wall clock.
    pub fn read(&mut self, monotonic_us: u64, wall: Time) -> Time {
        let passed = monotonic_us.saturating_sub(self.monotonic_us);
        self.monotonic_us = monotonic_us;
        self.last = self.last.after(passed).max(wall);
        self.last
    }

    /// Microseconds by which the time given last lies ahead of the wall clock.
    pub fn ahead_us(&self, wall: Time) -> u64 {
        self.last.since(wall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_forwards_and_paces_itself_backwards() {
        let mut clock = SteadyClock::default();
        assert_eq!(clock.read(10, Time(1_000)), Time(1_000));
        assert_eq!(clock.read(15, Time(1_005)), Time(1_005));
        // Set back by an hour: five microseconds are five microseconds.
        assert_eq!(clock.read(20, Time(1)), Time(1_010));
        assert_eq!(clock.read(25, Time(6)), Time(1_015));
        assert_eq!(clock.ahead_us(Time(6)), 1_009);
        assert_eq!(clock.ahead_us(Time(2_000)), 0, "the wall clock is ahead");
        // Set forwards.
        assert_eq!(clock.read(26, Time(9_000)), Time(9_000));
        assert_eq!(clock.read(27, Time(9_001)), Time(9_001));
    }
}
