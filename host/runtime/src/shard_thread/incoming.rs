//! Connections that other nodes opened, and what arrives on them.

use super::{ShardThread, accept};
use crate::decoding::LongMessage;
use crate::mailbox::Mail;
use crate::peer_in::PeerIn;
use mio::net::TcpStream;
use node::frame::Arrived;
use node::{Input, Message};

impl ShardThread {
    pub(super) fn accept_peers(&mut self) {
        while let Some(stream) = accept(self.start.listeners.as_ref().map(|(_, peer)| peer)) {
            let shard = self.next_shard;
            self.next_shard = (shard + 1) % self.start.mailboxes.len();
            if shard == usize::from(self.start.id.index()) {
                self.add_peer(stream);
            } else {
                self.start.mailboxes.send(shard, Mail::Peer(stream));
            }
        }
    }

    pub(super) fn add_peer(&mut self, mut stream: TcpStream) {
        if let Some(token) = self.register(&mut stream) {
            let peer = PeerIn::new(stream, self.start.met.clone());
            self.peers_in.insert(token, peer);
            self.on_peer_in(token, false);
        }
    }

    /// The connection of another node has news. `ending`: the other side has closed.
    pub(super) fn on_peer_in(&mut self, token: usize, ending: bool) {
        let Some(mut peer) = self.peers_in.remove(&token) else {
            return;
        };
        let mut messages = Vec::new();
        let own = &self.start.hello;
        let alive = peer.on_event(own, ending, &mut self.buffer, &mut |arrived| {
            messages.push(arrived);
        });
        for arrived in messages {
            self.take_to_shard(arrived);
        }
        if let Some(arrived) = peer.take_long() {
            let shard = usize::from(self.start.id.index());
            self.start.decoder.give(LongMessage {
                shard,
                token,
                arrived,
            });
        }
        if alive {
            self.peers_in.insert(token, peer);
        }
    }

    /// The program of a message has been decoded. If its connection is closed by now the message
    /// is lost with it.
    pub(super) fn on_decoded(&mut self, message: LongMessage) {
        if let Some(peer) = self.peers_in.get_mut(&message.token) {
            peer.on_decoded();
            self.take_to_shard(message.arrived);
            self.on_peer_in(message.token, false);
        }
    }

    fn take_to_shard(&mut self, arrived: Arrived) {
        let Arrived { from, to, message } = arrived;
        let message = Message::Wire(message);
        if to == self.start.id {
            self.step(Input::Message { from, message });
        } else {
            let mail = Mail::FromPeer(from, message);
            self.start.mailboxes.send(usize::from(to.index()), mail);
        }
    }
}
