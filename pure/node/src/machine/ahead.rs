//! Messages of shards that use a newer catalog than this one.
//!
//! ```text
//! n1.0  version 8 ──────────────────> n2.0 journals it ──> n2.1     takes what it has kept
//! n3.1  version 8 ──Request──> n2.1 (version 7) keeps it ────────────^
//! ```
//!
//! The shards take a new catalog into use one after the other. Work under it must come after all
//! work under the one before, on every row: else a writer that knows an index and one that does not
//! would take turns, and leave entries without rows. Each shard refuses plans that are too old
//! ([`txn::contract::Cx::schema_changed`]). Plans and rows from shards that are ahead wait here for
//! the catalog. It is on its way; if node 1 cannot be reached, the sender is asked for it.

use super::Shard;
use super::unpack::Unpacking;
use crate::config::CATALOG_NODE;
use crate::message::{LocalMessage, Message, WireMessage};
use base::{NodeId, Position, ShardId};
use session::message::ToTxn;
use txn::ProtocolMessage;

/// Messages that have come too early, in their order, and those whose turn has not come.
#[derive(Default, Debug)]
pub(super) struct Ahead {
    kept: Vec<(ShardId, Message)>,
    pub(super) unpacking: Unpacking,
}

impl Ahead {
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.unpacking.is_empty()
    }

    /// A connection is lost, and with it the messages that came over it.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.kept.retain(|(from, _)| from.node() != node);
        self.unpacking.forget(node);
    }

    /// Whether messages of a session are kept, so that later ones keep their order.
    fn keeps_words_of(&self, session: ShardId) -> bool {
        let mut kept = self.kept.iter();
        kept.any(|(from, message)| *from == session && matches!(message, Message::Local(_)))
    }
}

impl Shard {
    /// Keeps a message that has come too early; gives back any other.
    pub(super) fn admit(&mut self, from: ShardId, message: Message) -> Option<Message> {
        let named = match &message {
            Message::Wire(WireMessage::Protocol(word)) => word.catalog(),
            Message::Local(LocalMessage::ToTxn(_, ToTxn::Run(request))) => request.catalog.version,
            Message::Wire(_) | Message::Local(_) => 0,
        };
        let early = named > self.core.borrow().catalog.version;
        if !early && self.ahead.kept.is_empty() {
            return Some(message);
        }
        self.keep_if(early, from, message)
    }

    #[cold]
    fn keep_if(&mut self, early: bool, from: ShardId, message: Message) -> Option<Message> {
        let word = matches!(&message, Message::Local(LocalMessage::ToTxn(..)));
        let waits = early || (word && self.ahead.keeps_words_of(from));
        if !waits {
            return Some(message);
        }
        if !self.peers.contains_key(&CATALOG_NODE) {
            self.ask_for_catalog(from);
        }
        self.ahead.kept.push((from, message));
        None
    }

    /// A node that is ahead has the catalog that is missing here.
    fn ask_for_catalog(&mut self, ahead: ShardId) {
        let mut core = self.core.borrow_mut();
        let here = core.config.shard.node();
        if here != CATALOG_NODE && ahead.node() != here {
            let to = ShardId::new(here, 0);
            let wanted = Message::Wire(WireMessage::CatalogWanted { to });
            core.send(ahead, wanted, Position(0));
        }
    }

    /// Node 1, which was to send the catalog, cannot be reached any more.
    pub(super) fn ask_those_ahead(&mut self) {
        let ahead: Vec<ShardId> = self.ahead.kept.iter().map(|(from, _)| *from).collect();
        for from in ahead {
            self.ask_for_catalog(from);
        }
    }

    /// A newer catalog is in use: takes the messages that have waited for it.
    pub(super) fn take_kept(&mut self) {
        for (from, message) in core::mem::take(&mut self.ahead.kept) {
            self.deliver(from, false, message);
        }
    }
}
