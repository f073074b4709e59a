//! The bound of a shard's clock: what its next life draws above.

use base::Ts;

/// How far above its clock a shard may say that its bound lies: 0.35 s, as a timestamp. A host
/// journals the next bound earlier than that, so that only who was idle waits for it.
pub const TOLD_AHEAD: u64 = (350_000 * 8) << 10;

/// Below which timestamps the next life of a shard draws none.
///
/// Invariant: what a shard says leaves it when its clock, and all that it has told of its bound,
/// lie at or below the durable bound. The host sees to that ([`ClockBound::needed`]).
#[derive(Clone, Debug)]
pub struct ClockBound {
    durable: Ts,
    told: Ts,
}

impl ClockBound {
    /// A bound that is durable, of which nobody has been told.
    pub fn new(durable: Ts) -> ClockBound {
        let told = Ts::ZERO;
        ClockBound { durable, told }
    }

    /// The bound whose record is durable.
    pub fn durable(&self) -> Ts {
        self.durable
    }

    /// A higher bound has become durable.
    pub fn raise(&mut self, durable: Ts) {
        self.durable = self.durable.max(durable);
    }

    /// A timestamp that the next life of the shard draws above, whatever `last` its clock shows. It
    /// may be told to others: what is said in this step waits until it is true.
    pub fn tell(&mut self, last: Ts) -> Ts {
        let ahead = Ts(last.0.saturating_add(TOLD_AHEAD));
        if ahead > self.durable {
            self.told = self.told.max(ahead);
        }
        self.durable.max(ahead)
    }

    /// The bound that must be durable before what was said leaves the shard, whose clock is at
    /// `last`; `None`: it is.
    pub fn needed(&self, last: Ts) -> Option<Ts> {
        Some(last.max(self.told)).filter(|needed| *needed > self.durable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_needed_until_it_is_durable() {
        let last = Ts(5 << 40);
        let mut bound = ClockBound::new(Ts(last.0 + 2 * TOLD_AHEAD));
        // Far ahead: the whole distance may be told, and nothing is waited for.
        assert_eq!(bound.tell(last), bound.durable());
        assert_eq!(bound.needed(last), None);
        let near = Ts(bound.durable().0 - TOLD_AHEAD / 2);
        assert_eq!(bound.needed(near), None);
        let told = bound.tell(near);
        assert_eq!(told.0, near.0 + TOLD_AHEAD);
        assert_eq!(bound.needed(near), Some(told));
        let beyond = Ts(told.0 + 1);
        assert_eq!(bound.needed(beyond), Some(beyond));
        bound.raise(Ts(told.0 - 1));
        assert_eq!(bound.needed(near), Some(told));
        bound.raise(told);
        assert_eq!(bound.needed(near), None);
        assert_eq!(ClockBound::new(Ts::MAX).tell(Ts::MAX), Ts::MAX);
    }
}
