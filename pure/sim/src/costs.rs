//! What a step does, where the question is speed. Runs that look for faults let steps take no time.

use base::ShardId;
use node::{Effects, Input};
use txn::counters::Counters;
use wire::ClientMessage;

/// Names of the amounts of [`Work`].
pub const AMOUNTS: [&str; 7] = [
    "statements",
    "rows_read",
    "rows_written",
    "journal_records",
    "journal_bytes",
    "messages",
    "replies",
];

/// What a step was told and what it did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Work {
    /// [`Input::kind`].
    pub kind: &'static str,
    /// [`Input::further_kinds`].
    pub further: Vec<&'static str>,
    /// How much of what [`AMOUNTS`] names it did.
    pub amounts: [u64; AMOUNTS.len()],
    /// Frames from another node that it took: 0 or 1.
    pub frames_in: u64,
    /// Frames to other nodes.
    pub frames_out: u64,
    /// Messages that share these frames, in and out, behind the first of each.
    pub messages_behind: u64,
    /// Batches of a client's messages that ended here: 0 or 1.
    pub client_rounds: u64,
    before: [u64; 5],
}

fn counted(counters: &Counters) -> [u64; 5] {
    [
        counters.statements,
        counters.rows_read,
        counters.rows_written,
        counters.journal_records,
        counters.journal_bytes,
    ]
}

impl Work {
    /// Before the step.
    pub(crate) fn begun(shard: ShardId, input: &Input, counters: &Counters) -> Work {
        let foreign = matches!(input, Input::Message { from, .. } if from.node() != shard.node());
        let ends_batch = matches!(
            input,
            Input::Client {
                message: ClientMessage::Sync | ClientMessage::Query(_),
                ..
            }
        );
        let further: Vec<_> = input.further_kinds().collect();
        Work {
            kind: input.kind(),
            messages_behind: further.len() as u64,
            further,
            amounts: [0; AMOUNTS.len()],
            frames_in: u64::from(foreign),
            frames_out: 0,
            client_rounds: u64::from(ends_batch),
            before: counted(counters),
        }
    }

    /// After the step.
    pub(crate) fn done(&mut self, shard: ShardId, counters: &Counters, effects: &Effects) {
        for (at, now) in counted(counters).into_iter().enumerate() {
            self.amounts[at] = now - self.before[at];
        }
        let messages = effects.messages.iter();
        let count: usize = messages.map(|outgoing| outgoing.message.count()).sum();
        self.amounts[5] = count as u64;
        self.messages_behind += (count - effects.messages.len()) as u64;
        self.amounts[6] = effects.replies.len() as u64;
        let leaving = effects.messages.iter();
        let leaving = leaving.filter(|message| message.to.node() != shard.node());
        self.frames_out = leaving.count() as u64;
    }
}
