//! Messages of a parcel on their way to the protocols.
//!
//! Mostly they are all handled in the step in which the parcel comes, so that their answers share a
//! frame, too. Behind [`UNITS_MAX`] units of work the rest waits for the next step: a hundred scans
//! in one frame are a hundred turns. What comes from the same shard meanwhile keeps its order.

use super::Shard;
use crate::message::{Message, WireMessage};
use base::{NodeId, ShardId};
use std::collections::VecDeque;

/// Units of work of a step, about, behind which no further message of a parcel is handled in it.
const UNITS_MAX: u64 = txn::bulk::SLICE_UNITS;

/// Units of a message beside those of the rows that it reads: a step takes all of a full parcel of
/// reads of single rows.
const MESSAGE_UNITS: u64 = 2;

/// Messages that wait for their turn, in their order: sender, whether it came behind another one in
/// its frame, message.
#[derive(Default, Debug)]
pub(super) struct Unpacking(VecDeque<(ShardId, bool, Message)>);

impl Unpacking {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A connection is lost, and with it the messages that came over it.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.0.retain(|(from, ..)| from.node() != node);
    }

    /// Keeps a message whose turn has not come; gives back any other.
    fn keep(&mut self, from: ShardId, message: Message) -> Option<Message> {
        if let Message::Wire(WireMessage::Parcel(parcel)) = message {
            let words = parcel.unpack().map(WireMessage::Protocol).enumerate();
            let messages = words.map(|(at, word)| (from, at > 0, Message::Wire(word)));
            self.0.extend(messages);
            return None;
        }
        if self.0.iter().any(|(other, ..)| *other == from) {
            self.0.push_back((from, false, message));
            return None;
        }
        Some(message)
    }
}

impl Shard {
    /// Takes a message of another shard, or a parcel of them.
    pub(super) fn on_message(&mut self, from: ShardId, message: Message) {
        if let Some(message) = self.ahead.unpacking.keep(from, message) {
            self.deliver(from, false, message);
        }
    }

    /// Goes on with parcels, in a step that began with `before` units.
    pub(super) fn unpack(&mut self, before: u64) {
        let mut delivered = 0;
        while self.units() - before + MESSAGE_UNITS * delivered < UNITS_MAX
            && let Some((from, behind, message)) = self.ahead.unpacking.0.pop_front()
        {
            delivered += 1;
            self.deliver(from, behind, message);
        }
    }
}
