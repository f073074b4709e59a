//! Injected wall time and the hybrid logical clock.

use crate::ids::ShardId;
use core::fmt;
use serde::{Deserialize, Serialize};

/// A point in time as the host tells it: microseconds since the Unix epoch. Used for deadlines,
/// latencies and as the physical half of [`Ts`]; never for the order of transactions.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default, Debug,
)]
pub struct Time(pub u64);

impl Time {
    /// This point moved `micros` into the future (saturating).
    pub fn after(self, micros: u64) -> Time {
        Time(self.0.saturating_add(micros))
    }
    /// Microseconds from `earlier` to this point, 0 if it lies in the future.
    pub fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A logical timestamp: 54 bits of hybrid logical time in eighths of a microsecond since
/// 2024-01-01, then the 10 bits of the shard that drew it. Unique in the cluster because a shard
/// never draws the same tick twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
pub struct Ts(pub u64);

const SHARD_BITS: u32 = 10;
const TICKS_PER_MICRO: u64 = 8;
/// 2024-01-01T00:00:00Z in microseconds since the Unix epoch.
const EPOCH_MICROS: u64 = 1_704_067_200_000_000;

impl Ts {
    /// Below every drawn timestamp: the version of "never written".
    pub const ZERO: Ts = Ts(0);
    /// Above every timestamp: reads the newest committed version.
    pub const MAX: Ts = Ts(u64::MAX);

    /// The smallest timestamp of wall time `time` (shard bits 0).
    pub fn from_time(time: Time) -> Ts {
        Ts((time.0.saturating_sub(EPOCH_MICROS) * TICKS_PER_MICRO) << SHARD_BITS)
    }
    /// The last timestamp of the same tick: not below any that a clock that stands here knows of,
    /// and below all that it draws.
    pub fn end_of_tick(self) -> Ts {
        Ts(self.0 | ((1 << SHARD_BITS) - 1))
    }
    /// The wall time that this timestamp stands for.
    pub fn time(self) -> Time {
        Time((self.0 >> SHARD_BITS) / TICKS_PER_MICRO + EPOCH_MICROS)
    }
}

impl fmt::Debug for Ts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ts{}.{}",
            self.0 >> SHARD_BITS,
            self.0 & ((1 << SHARD_BITS) - 1)
        )
    }
}
impl fmt::Display for Ts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The hybrid logical clock of one shard.
///
/// `tick` draws a timestamp above everything drawn or merged before and at least as large as the
/// wall time; `merge` is called with every timestamp that arrives in a message.
#[derive(Clone, Debug)]
pub struct Clock {
    shard: ShardId,
    last: u64,
}

impl Clock {
    /// A clock of `shard` that draws only above `floor` (the journaled bound after a restart).
    pub fn new(shard: ShardId, floor: Ts) -> Clock {
        Clock {
            shard,
            last: floor.0 >> SHARD_BITS,
        }
    }
    /// Draws a new timestamp, unique in the cluster.
    pub fn tick(&mut self, now: Time) -> Ts {
        let physical = Ts::from_time(now).0 >> SHARD_BITS;
        self.last = physical.max(self.last + 1);
        Ts((self.last << SHARD_BITS) | u64::from(self.shard.0))
    }
    /// Takes note of a timestamp seen elsewhere: later ticks lie above it.
    pub fn merge(&mut self, seen: Ts) {
        if seen != Ts::MAX {
            self.last = self.last.max(seen.0 >> SHARD_BITS);
        }
    }
    /// The largest timestamp drawn or merged so far.
    pub fn last(&self) -> Ts {
        Ts((self.last << SHARD_BITS) | u64::from(self.shard.0))
    }
    /// All that was drawn or merged so far, by whichever shard, is at or below it, and all that
    /// will be drawn here lies above.
    pub fn reached(&self) -> Ts {
        Ts((self.last << SHARD_BITS) | ((1 << SHARD_BITS) - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prng;
    use crate::ids::NodeId;

    #[test]
    fn clocks_never_repeat_or_go_back() {
        let mut prng = Prng::new(61);
        let mut clocks: Vec<Clock> = (0..4)
            .map(|index| Clock::new(ShardId::new(NodeId(1), index), Ts::ZERO))
            .collect();
        let mut drawn = std::collections::BTreeSet::new();
        let mut now = EPOCH_MICROS;
        let mut last = [Ts::ZERO; 4];
        for _ in 0..10_000 {
            // The wall clock stands still, jumps and runs backwards.
            now = now.saturating_add_signed(prng.between(-50, 60));
            let i = prng.below(4) as usize;
            if prng.below(3) == 0 {
                let seen = clocks[prng.below(4) as usize].last();
                clocks[i].merge(seen);
                assert!(clocks[i].last() >= Ts((seen.0 >> SHARD_BITS) << SHARD_BITS));
                assert!(clocks[i].reached() >= seen);
            }
            let reached = clocks[i].reached();
            let ts = clocks[i].tick(Time(now));
            assert!(ts > reached && ts <= clocks[i].reached());
            assert!(ts > last[i] && ts >= Ts::from_time(Time(now)));
            assert!(drawn.insert(ts), "{ts} was drawn twice");
            last[i] = ts;
        }
    }

    #[test]
    fn timestamps_keep_their_wall_time() {
        let time = Time(EPOCH_MICROS + 123_456_789);
        assert_eq!(Ts::from_time(time).time(), time);
        let mut clock = Clock::new(ShardId(7), Ts::from_time(time));
        assert!(
            clock.tick(Time(0)) > Ts::from_time(time),
            "the floor holds after a restart"
        );
        clock.merge(Ts::MAX);
        assert!(
            clock.tick(Time(0)) < Ts::MAX,
            "the bound of newest reads is not a clock value"
        );
        assert_eq!((Time(5).after(7), Time(5).since(Time(9))), (Time(12), 0));
    }
}
