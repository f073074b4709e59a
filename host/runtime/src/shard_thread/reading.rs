//! What clients have sent becomes messages for the machine.

use super::ShardThread;
use node::{ConnId, Input};
use txn::JournalPort;
use wire::Incoming;

/// Bytes that a client has sent ahead of its session above which its socket is not read.
const BACKLOG_BYTES_MAX: usize = 256 << 10;
/// Messages of a client between two checks of that limit.
const MESSAGES_UNTIL_LOOK: usize = 16;
/// Messages of a client that wait for the one behind them.
const QUEUED_MAX: usize = 7;

impl ShardThread {
    pub(super) fn pause(&mut self, token: usize) {
        if let Some(client) = self.clients.get_mut(&token)
            && !std::mem::replace(&mut client.paused, true)
        {
            self.paused.push(token);
        }
    }

    /// Whether a client has sent enough: it, or its session, has to catch up first.
    pub(super) fn is_choked(&self, token: usize) -> bool {
        let client = self.clients.get(&token);
        client.is_some_and(|client| client.is_choked() || self.is_behind(token))
    }

    fn is_behind(&self, token: usize) -> bool {
        let conn = ConnId(token as u32);
        self.start.shard.backlog_bytes(conn) > BACKLOG_BYTES_MAX
    }

    /// Hands what has been read to the machine; a client that has sent too much is paused. Messages
    /// that can wait for the ones behind them share a step with them.
    pub(super) fn decode(&mut self, token: usize) {
        let conn = ConnId(token as u32);
        let mut queued = 0;
        for count in 0.. {
            // Nobody else wakes the session for what is queued.
            let looks = queued == 0;
            let behind = looks && count % MESSAGES_UNTIL_LOOK == 0 && self.is_behind(token);
            let Some(client) = self.clients.get_mut(&token) else {
                return;
            };
            if client.closing {
                return;
            }
            if behind || (looks && client.is_choked()) {
                return self.pause(token);
            }
            match client.decoder.next() {
                None => {
                    let journal = &mut self.start.journal;
                    let has_room = |bytes| journal.claim_memory(bytes);
                    return client.decoder.look_for_room(has_room);
                }
                Some(Incoming::Message(message)) => {
                    if client.gate.is_some() {
                        self.knock(token, message);
                        continue;
                    }
                    let next = client.decoder.next_tag();
                    let waits =
                        queued < QUEUED_MAX && next.is_some_and(|next| message.may_wait_for(next));
                    let left = match waits {
                        true => self.start.shard.queue(conn, message),
                        false => Some(message),
                    };
                    queued += 1;
                    if let Some(message) = left {
                        queued = 0;
                        self.step(Input::Client { conn, message });
                    }
                }
                Some(Incoming::Refuse(answer)) => client.raw(&answer),
                Some(Incoming::StartTls) => self.start_tls(token),
                Some(Incoming::Password(body)) => self.on_password(token, &body),
                Some(Incoming::Cancel { pid, secret }) => {
                    client.closing = true;
                    self.step(Input::Cancel { pid, secret });
                }
            }
        }
    }
}
