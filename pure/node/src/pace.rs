//! How fast schema changes work over rows: the size of a batch, and the rest behind it.
//!
//! A statement of a client waits for the step of a batch that is at work on its shard, and its
//! commit for the flush of a batch's commit. Small batches with a rest between them keep both rare
//! and short; large ones without a rest are done soonest. So the shard that works over rows asks
//! the other ones, now and then, whether they have heard clients.

use crate::core::Core;
use crate::message::{Message, WireMessage};
use base::{Position, ShardId, Time};

/// A client that was heard within these microseconds may send the next statement soon.
const PRESENT_US: u64 = 50_000;

/// Microseconds between two questions to the other shards.
const ASK_US: u64 = 20_000;

/// When clients were heard.
#[derive(Default, Debug)]
pub(crate) struct Presence {
    /// When a client last sent a statement to this shard.
    pub(crate) here: Time,
    /// When another shard last told that it has heard some.
    elsewhere: Time,
    /// When the other shards were last asked.
    asked: Time,
}

impl Presence {
    fn is_heard_here(&self, now: Time) -> bool {
        is_recent(self.here, now)
    }

    /// Whether clients were heard on any shard.
    fn is_heard(&self, now: Time) -> bool {
        self.is_heard_here(now) || is_recent(self.elsewhere, now)
    }
}

fn is_recent(heard: Time, now: Time) -> bool {
    heard > Time::default() && now.since(heard) < PRESENT_US
}

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
    /// Clients may have come to other shards since they were asked.
    const UNKNOWN: Pace = Pace {
        rows: 256,
        rest_us: 500,
    };
    /// Clients send statements.
    const BESIDE_CLIENTS: Pace = Pace {
        rows: 64,
        rest_us: 1_000,
    };

    /// Now, on the shard that runs the work.
    pub(crate) fn of(core: &Core) -> Pace {
        let sole = core.catalog.placement.shards().len() == 1;
        Pace::at(&core.presence, core.now, sole)
    }

    /// `sole`: there is no other shard.
    fn at(presence: &Presence, now: Time, sole: bool) -> Pace {
        match (presence.is_heard(now), sole) {
            (true, _) => Pace::BESIDE_CLIENTS,
            (false, true) => Pace::ALONE,
            (false, false) => Pace::UNKNOWN,
        }
    }
}

impl Core {
    /// The shard is at work over rows: it asks the others for clients, unless it has just done so
    /// or has clients itself.
    pub(crate) fn ask_for_clients(&mut self) {
        let now = self.now;
        if self.presence.is_heard_here(now) || now.since(self.presence.asked) < ASK_US {
            return;
        }
        self.presence.asked = now;
        let catalog = self.catalog.clone();
        for shard in catalog.placement.shards() {
            if *shard != self.config.shard {
                let message = Message::Wire(WireMessage::ClientsAsked);
                self.send(*shard, message, Position(0));
            }
        }
    }

    pub(crate) fn on_clients_asked(&mut self, from: ShardId) {
        if self.presence.is_heard_here(self.now) {
            let message = Message::Wire(WireMessage::ClientsHeard);
            self.send(from, message, Position(0));
        }
    }

    pub(crate) fn on_clients_heard(&mut self) {
        self.presence.elsewhere = self.now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_rests_while_clients_are_heard() {
        let (now, heard) = (Time(10_000_000), Time(9_990_000));
        let later = now.after(PRESENT_US);
        let here = Presence {
            here: heard,
            ..Presence::default()
        };
        let elsewhere = Presence {
            elsewhere: heard,
            ..Presence::default()
        };
        for presence in [here, elsewhere] {
            for sole in [true, false] {
                assert_eq!(Pace::at(&presence, now, sole), Pace::BESIDE_CLIENTS);
            }
            assert_eq!(Pace::at(&presence, later, true), Pace::ALONE);
            assert_eq!(Pace::at(&presence, later, false), Pace::UNKNOWN);
        }
        // Nobody has ever been heard.
        assert_eq!(Pace::at(&Presence::default(), Time(1), true), Pace::ALONE);
    }
}
