//! Connections that other nodes opened, what arrives on them, and which nodes answer at all.

use super::{ShardThread, accept};
use crate::credentials::Credentials;
use crate::decoding::LongMessage;
use crate::door::Proved;
use crate::mailbox::Mail;
use crate::peer_in::PeerIn;
use mio::net::TcpStream;
use node::frame::Arrived;
use node::{Input, Message};
use std::sync::Arc;

impl ShardThread {
    pub(super) fn accept_peers(&mut self) {
        loop {
            let listeners = self.start.listeners.as_ref();
            let listener = listeners.and_then(|listeners| listeners.peer.as_ref());
            let Some(stream) = accept(listener) else {
                return;
            };
            let shard = self.next_shard;
            self.next_shard = (shard + 1) % self.start.mailboxes.len();
            if shard == usize::from(self.start.id.index()) {
                self.add_peer(stream, None);
            } else {
                self.start.mailboxes.send(shard, Mail::Peer(stream, None));
            }
        }
    }

    pub(super) fn add_peer(&mut self, mut stream: TcpStream, proved: Option<Box<Proved>>) {
        if let Some(token) = self.register(&mut stream) {
            let peer = PeerIn::new(stream, self.start.met.clone());
            let peer = match proved {
                None => peer,
                Some(proved) => peer.proved(*proved),
            };
            self.peers_in.insert(token, peer);
            self.on_peer_in(token, false);
        }
    }

    /// Closes connections that have said nothing for too long.
    pub(super) fn end_late_greetings(&mut self) {
        self.peers_in.retain(|_, peer| peer.recheck(None));
    }

    /// The certificates of nodes have changed: who would not be believed today is let go.
    pub(super) fn on_credentials(&mut self, credentials: Arc<Credentials>) {
        let now = self.now();
        (self.peers_in).retain(|_, peer| peer.recheck(Some(&credentials)));
        for index in 0..self.start.peers.len() {
            let news = self.start.peers[index].recheck(now, &credentials);
            self.on_peer_news(index, news);
        }
        self.start.credentials = Some(credentials);
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

    /// Heartbeats say that a node does not answer: no connection with it is worth anything. If it
    /// only stood still it finds them closed, and what it says on new ones is of today.
    pub(super) fn on_silent(&mut self, node: base::NodeId) {
        let now = self.now();
        self.peers_in.retain(|_, peer| peer.node != Some(node));
        let mut peers = self.start.peers.iter_mut().enumerate();
        if let Some((index, peer)) = peers.find(|(_, peer)| peer.node == node) {
            let news = peer.on_silent(now);
            self.on_peer_news(index, news);
        }
    }

    pub(super) fn on_heard(&mut self, node: base::NodeId) {
        let now = self.now();
        let mut peers = self.start.peers.iter_mut();
        if let Some(peer) = peers.find(|peer| peer.node == node) {
            peer.on_heard(now);
        }
        self.step(Input::PeerHeard { node });
    }
}
