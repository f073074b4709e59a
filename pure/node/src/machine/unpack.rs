//! Messages of a parcel on their way to the protocols.
//!
//! Mostly they are all handled in the step in which the parcel comes, so that their answers share a
//! frame, too. Behind [`UNITS_MAX`] units of work the rest waits for the next step: a hundred scans
//! in one frame are a hundred turns. What comes from the same shard meanwhile keeps its order.

use super::Shard;
use crate::message::{Message, Parcel, WireMessage};
use base::{NodeId, ShardId};
use std::collections::VecDeque;

/// Units of work of a step, about, behind which no further message of a parcel is handled in it.
const UNITS_MAX: u64 = txn::bulk::SLICE_UNITS;

/// Units of a message beside those of the rows that it reads: a step takes all of a full parcel of
/// reads of single rows.
const MESSAGE_UNITS: u64 = 2;

/// Messages that wait for their turn, in their order.
#[derive(Default, Debug)]
pub(super) struct Unpacking {
    rest: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    from: ShardId,
    /// Whether it came behind another one in its frame.
    behind: bool,
    message: Message,
}

impl Unpacking {
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// A connection is lost, and with it the messages that came over it.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.rest.retain(|waiting| waiting.from.node() != node);
    }

    fn push(&mut self, from: ShardId, behind: bool, message: Message) {
        self.rest.push_back(Waiting {
            from,
            behind,
            message,
        });
    }

    /// Keeps a message whose turn has not come; gives back any other.
    fn keep(&mut self, from: ShardId, message: Message) -> Option<Message> {
        if let Message::Wire(WireMessage::Parcel(parcel)) = message {
            self.take_apart(from, parcel);
            return None;
        }
        if self.rest.iter().any(|waiting| waiting.from == from) {
            self.push(from, false, message);
            return None;
        }
        Some(message)
    }

    #[cold]
    fn take_apart(&mut self, from: ShardId, parcel: Parcel) {
        for (at, word) in parcel.unpack().enumerate() {
            let message = Message::Wire(WireMessage::Protocol(word));
            self.push(from, at > 0, message);
        }
    }
}

impl Shard {
    /// Takes a message of another shard, or a parcel of them.
    pub(super) fn on_message(&mut self, from: ShardId, message: Message) {
        if let Some(message) = self.unpacking.keep(from, message) {
            self.deliver(from, false, message);
        }
    }

    /// Goes on with parcels, in a step that began with `before` units.
    pub(super) fn unpack(&mut self, before: u64) {
        let mut delivered = 0;
        while self.units() - before + MESSAGE_UNITS * delivered < UNITS_MAX
            && let Some(next) = self.unpacking.rest.pop_front()
        {
            delivered += 1;
            self.deliver(next.from, next.behind, next.message);
        }
    }
}
