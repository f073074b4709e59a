//! Messages of a client that were not handled yet, and their memory.

use std::collections::VecDeque;
use wire::ClientMessage;

/// Bytes counted for each message besides its text and data.
const MESSAGE_BYTES: usize = size_of::<ClientMessage>();

/// A queue of messages.
#[derive(Default)]
pub(super) struct Inbox {
    messages: VecDeque<ClientMessage>,
    bytes: usize,
}

impl Inbox {
    pub(super) fn push(&mut self, message: ClientMessage) {
        self.bytes += weight(&message);
        self.messages.push_back(message);
    }

    pub(super) fn pop(&mut self) -> Option<ClientMessage> {
        let message = self.messages.pop_front()?;
        self.bytes -= weight(&message);
        Some(message)
    }

    pub(super) fn front(&self) -> Option<&ClientMessage> {
        self.messages.front()
    }

    /// The messages, the next one first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ClientMessage> {
        self.messages.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Memory that the inbox takes, about.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn clear(&mut self) {
        *self = Inbox::default();
    }

    /// Shrinks the queue that a large pipeline has grown, unless it has more than `kept` messages.
    pub(super) fn shrink(&mut self, kept: usize) {
        if self.messages.capacity() > kept && self.messages.len() < kept {
            self.messages.shrink_to(kept);
        }
    }
}

/// Bytes of memory of a message, about.
fn weight(message: &ClientMessage) -> usize {
    let content = match message {
        ClientMessage::Query(text)
        | ClientMessage::DescribeStatement(text)
        | ClientMessage::DescribePortal(text)
        | ClientMessage::CloseStatement(text)
        | ClientMessage::ClosePortal(text)
        | ClientMessage::CopyFail(text)
        | ClientMessage::Execute { portal: text, .. } => text.len(),
        ClientMessage::Parse { name, text, types } => name.len() + text.len() + 4 * types.len(),
        ClientMessage::Bind { params, .. } => {
            let values = params.iter().flatten().map(Vec::len);
            values.sum::<usize>() + size_of::<Option<Vec<u8>>>() * params.len()
        }
        ClientMessage::CopyData(bytes) => bytes.len(),
        ClientMessage::Startup { .. }
        | ClientMessage::Sync
        | ClientMessage::Flush
        | ClientMessage::CopyDone
        | ClientMessage::Terminate
        | ClientMessage::BadQuery(_)
        | ClientMessage::Malformed { .. } => 0,
    };
    MESSAGE_BYTES + content
}
