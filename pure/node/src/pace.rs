//! How fast schema changes work over rows: the size of a batch, and the rest behind it.
//!
//! A statement of a client waits for the step of a batch that is at work on its shard, and its
//! commit for the flush of a batch's commit. Small batches with a rest between them keep both rare
//! and short; large ones without a rest are done soonest.

use crate::core::Core;
use base::Time;

/// A client that was heard within these microseconds may send the next statement soon.
const PRESENT_US: u64 = 50_000;

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pace {
    /// Rows of a batch.
    pub(crate) rows: u32,
    /// Microseconds between the end of a batch and the next one.
    pub(crate) rest_us: u64,
}

impl Pace {
    /// Nobody else is there. The rest is a moment in which whoever has come is noticed.
    pub(crate) const ALONE: Pace = Pace {
        rows: 1_024,
        rest_us: 1,
    };
    /// There may be clients on other shards, whose rows the work goes over.
    const UNKNOWN: Pace = Pace {
        rows: 256,
        rest_us: 500,
    };
    /// Clients send statements to this shard.
    const BESIDE_CLIENTS: Pace = Pace {
        rows: 64,
        rest_us: 1_000,
    };

    /// Now, on the shard that runs the work.
    pub(crate) fn of(core: &Core) -> Pace {
        Pace::at(
            core.now,
            core.heard,
            core.catalog.placement.shards().len() == 1,
        )
    }

    /// `heard`: when a client of this shard has sent a statement; `sole`: there is no other shard.
    fn at(now: Time, heard: Time, sole: bool) -> Pace {
        if heard > Time::default() && now.since(heard) < PRESENT_US {
            return Pace::BESIDE_CLIENTS;
        }
        match sole {
            true => Pace::ALONE,
            false => Pace::UNKNOWN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_rests_while_clients_are_heard() {
        let (now, heard) = (Time(10_000_000), Time(9_990_000));
        assert_eq!(Pace::at(now, heard, true), Pace::BESIDE_CLIENTS);
        assert_eq!(Pace::at(now, heard, false), Pace::BESIDE_CLIENTS);
        let later = now.after(PRESENT_US);
        assert_eq!(Pace::at(later, heard, true), Pace::ALONE);
        assert_eq!(Pace::at(later, heard, false), Pace::UNKNOWN);
        // Nobody has ever been heard.
        assert_eq!(Pace::at(Time(1), Time::default(), true), Pace::ALONE);
    }
}
