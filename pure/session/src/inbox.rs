//! Messages of a client that were not handled yet, and their memory.

use crate::{Activity, Life, Session};
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

    /// Puts a message before the others.
    pub(super) fn push_front(&mut self, message: ClientMessage) {
        self.bytes += weight(&message);
        self.messages.push_front(message);
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

impl Session {
    /// Keeps a message and does nothing yet: the call for the next one, which has come as well,
    /// handles both. Answers the message if it cannot wait, as data of a COPY.
    pub fn queue(&mut self, message: ClientMessage) -> Option<ClientMessage> {
        if self.life != Life::Open || self.copying_in() {
            return Some(message);
        }
        self.is_ready = false;
        self.inbox.push(message);
        None
    }

    /// Messages of the client that were not taken up.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.inbox.len()
    }

    /// Bytes of the client's messages and COPY data that were not handled. A host stops reading
    /// from a client with many. 0 while the next message decides how one is handled.
    pub fn backlog_bytes(&self) -> usize {
        let copying = matches!(self.activity, Activity::Running);
        let step = self.steps.get(self.at).filter(|_| copying);
        let waiting = if self.inbox.len() > 1 {
            self.inbox.bytes()
        } else {
            0
        };
        waiting + step.map_or(0, |step| step.copy_bytes)
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
        ClientMessage::Bind { params, .. } | ClientMessage::FunctionCall { args: params, .. } => {
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
