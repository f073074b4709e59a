//! The place of the node's own transactions among those of clients.

use base::Ts;

/// Attempts of a batch that give way to clients (rule R21).
const GIVES_WAY: u32 = 30;

/// Longest wait of such an attempt for a lock, in microseconds: blocks that hold some may come one
/// after the other, without end.
const LOCK_TIMEOUT_US: u64 = 20_000;

/// Longest pause before an attempt, in microseconds; the first one is a millisecond.
const PAUSE_US_MAX: u64 = 16_000;

/// With what a transaction of the node begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// [`txn::TxnOptions::priority_ts`]; `None`: that of its start.
    pub(super) priority_ts: Option<Ts>,
    /// [`txn::TxnOptions::attempt`].
    pub(super) attempt: u32,
    /// [`txn::TxnOptions::lock_timeout_us`].
    pub(super) lock_timeout_us: u64,
}

impl Place {
    /// That of a client's first attempt.
    pub(crate) const USUAL: Place = Place {
        priority_ts: None,
        attempt: 1,
        lock_timeout_us: 0,
    };

    /// Whether it gives way to clients.
    pub(crate) fn gives_way(self) -> bool {
        self.priority_ts == Some(Ts::MAX)
    }
}

/// How often a batch of a schema change has been tried.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Tries {
    count: u32,
    /// The priority of its first attempt that does not give way.
    priority_ts: Option<Ts>,
}

impl Tries {
    /// Tries that have failed.
    pub(crate) fn count(self) -> u32 {
        self.count
    }

    /// An attempt with this priority has failed.
    pub(crate) fn note(&mut self, priority_ts: Ts) {
        if self.count >= GIVES_WAY {
            self.priority_ts = Some(priority_ts);
        }
        self.count += 1;
    }

    /// The place of the next attempt.
    pub(crate) fn place(self) -> Place {
        match self.count.checked_sub(GIVES_WAY) {
            None => Place {
                priority_ts: Some(Ts::MAX),
                attempt: 1,
                lock_timeout_us: LOCK_TIMEOUT_US,
            },
            Some(before) => Place {
                priority_ts: self.priority_ts,
                attempt: before + 1,
                lock_timeout_us: 0,
            },
        }
    }

    /// Microseconds until the next attempt, after one that has failed because of a lock.
    pub(crate) fn pause_us(self) -> u64 {
        (500 << self.count.min(10)).min(PAUSE_US_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_attempts_give_way() {
        let mut tries = Tries::default();
        for attempt in 0..2 * GIVES_WAY {
            assert_eq!(tries.place().gives_way(), attempt < GIVES_WAY, "{attempt}");
            tries.note(Ts(7));
        }
        assert!(!Place::USUAL.gives_way());
    }
}
