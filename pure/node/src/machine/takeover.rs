//! A shard's part when a catalog closes something and node 1 is away: the surroundings of
//! [`crate::register`].
//!
//! Only first shards of nodes vote and propose. Which node proposes, while the catalog in use is
//! closed:
//!
//! | who | when |
//! |---|---|
//! | node 1 | with each step of its own change; at once after a restart |
//! | another node | when it has missed node 1 for a while, the lower its number the sooner |
//!
//! That goes on until nothing is closed. Sessions whose change was lost with node 1 are told its
//! outcome when a catalog has it.

use super::Shard;
use crate::config::{CATALOG_NODE, ShardConfig, ShardRecovered};
use crate::ddl::{Answered, end_of, unknown};
use crate::message::{Message, WireMessage};
use crate::register::{Register, Said, Word};
use base::{NodeId, Planted, Position, ShardId, Time, is_planted};
use catalog::{Catalog, ChangeId};
use session::ConnId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use txn::JournalPort;

/// Microseconds without node 1 after which another node acts for it. A broken connection is back
/// after 0.1 s.
const PATIENCE_US: u64 = 300_000;
/// Additional microseconds for each node with a smaller number that is there.
const RANK_US: u64 = 400_000;
/// Microseconds of pause after an attempt that another one has overtaken; as much more for each
/// before, and again at random.
const PAUSE_US: u64 = 50_000;
/// Number of attempts after which the pause grows no longer.
const PAUSES_MAX: u64 = 10;
/// Microseconds for which a session whose change was lost with node 1 waits for other nodes to end
/// it, also if too few are left.
const LOST_US: u64 = 2_000_000;

/// What a shard knows besides its [`Register`].
#[derive(Default)]
pub(super) struct Takeover {
    /// Whether this is the first shard of its node, and something is closed.
    is_closed: bool,
    /// When this node proposes.
    act_at: Option<Time>,
    /// Number of attempts that were overtaken.
    overtaken: u64,
    /// End of the record of the newest vote.
    vote_position: Position,
    /// Messages of this node's acceptor to its own proposer, until they are durable.
    own_words: VecDeque<(Position, Word)>,
    /// Changes asked for here that were lost with node 1, and how long their sessions wait.
    lost: BTreeMap<u64, Time>,
}

impl Takeover {
    pub(super) fn wants_look(&self) -> bool {
        self.is_closed || !self.lost.is_empty()
    }

    pub(super) fn awaits_durable(&self) -> bool {
        !self.own_words.is_empty()
    }

    /// The change with this number is answered.
    pub(super) fn forget(&mut self, id: u64) {
        self.lost.remove(&id);
    }
}

/// The register of a shard's node.
pub(super) fn register(config: &ShardConfig, recovered: &ShardRecovered) -> Register {
    Register::new(
        config.shard.node(),
        config.nodes.iter().map(|(node, _)| *node).collect(),
        config.incarnation,
        recovered.catalog.version,
        recovered.vote.clone(),
    )
}

impl Shard {
    /// A newer catalog is in use.
    pub(super) fn register_advances(&mut self) {
        let core = self.core.borrow();
        self.register.advance(core.catalog.version);
        self.takeover.is_closed = core.config.shard.index() == 0 && core.catalog.is_closed();
        self.takeover.act_at = None;
        if !self.takeover.is_closed {
            self.takeover.overtaken = 0;
        }
    }

    /// Whether schema changes wait for the register's decision.
    pub(super) fn awaits_register(&self) -> bool {
        self.register.is_busy() || (self.takeover.is_closed && !self.ddl.is_running())
    }

    /// A step of the change that node 1 runs.
    pub(super) fn publish_step(&mut self, catalog: Arc<Catalog>) {
        let now = self.core.borrow().now;
        let is_alone = self.register.is_majority(&BTreeSet::from([CATALOG_NODE]));
        if !self.takeover.is_closed || is_alone || catalog.version <= self.register.base() {
            return self.publish(catalog);
        }
        let said = self.register.propose(catalog, now);
        self.carry_out(said);
    }

    /// Node 1 gets a catalog that another node has made.
    pub(super) fn on_catalog_of_others(&mut self, catalog: Arc<Catalog>) {
        if catalog.version > self.register.base() {
            self.abandon_change();
            self.publish(catalog);
            self.end_abandoned();
        }
    }

    pub(super) fn on_catalog_ack(&mut self, from: ShardId, version: u64) {
        self.ddl.on_ack(from, version);
        let here = self.core.borrow().config.shard;
        if here == ShardId(0) && version > self.register.base() {
            let wanted = Message::Wire(WireMessage::CatalogWanted { to: here });
            self.core.borrow_mut().send(from, wanted, Position(0));
        }
    }

    fn abandon_change(&mut self) {
        if let Some(batch) = self.ddl.abandon() {
            self.act(crate::ddl::Action::EndBatch(batch));
        }
    }

    /// On node 1: the outcome that other nodes gave its change is known now.
    fn end_abandoned(&mut self) {
        let catalog = self.core.borrow().catalog.clone();
        if let Some(answer) = self.ddl.end_abandoned(&catalog) {
            self.act(answer);
        }
    }

    /// A message of another node.
    pub(super) fn on_register(&mut self, from: ShardId, word: Word) {
        let (here, version, now) = {
            let core = self.core.borrow();
            (core.config.shard, core.catalog.version, core.now)
        };
        if here.index() != 0 || from.index() != 0 {
            return;
        }
        if word.base() < version && word.asks() {
            self.send_catalog(from);
        } else if word.base() > version && word.asks() {
            let wanted = Message::Wire(WireMessage::CatalogWanted { to: here });
            self.core.borrow_mut().send(from, wanted, Position(0));
        } else if word.base() == version {
            let said = self.register.on_word(from.node(), word, now);
            self.carry_out(said);
        }
    }

    /// Does what the register asks for.
    fn carry_out(&mut self, said: Said) {
        let (here, now) = {
            let core = self.core.borrow();
            (core.config.shard.node(), core.now)
        };
        let mut all = VecDeque::from([said]);
        while let Some(said) = all.pop_front() {
            if let Some(vote) = said.vote {
                let mut record = Vec::new();
                journal::Record::Vote(vote).encode(&mut record);
                self.takeover.vote_position = self.core.borrow_mut().journal.append(&record);
            }
            let position = self.takeover.vote_position;
            for (to, word) in said.words {
                let wait = if word.needs_vote() {
                    position
                } else {
                    Position(0)
                };
                if to != here {
                    let message = Message::Wire(WireMessage::Register(word));
                    let to = ShardId::new(to, 0);
                    self.core.borrow_mut().send(to, message, wait);
                } else if word.needs_vote() {
                    self.takeover.own_words.push_back((wait, word));
                } else {
                    all.push_back(self.register.on_word(here, word, now));
                }
            }
            if said.overtaken {
                self.overtaken(now);
            }
            if let Some(next) = said.chosen {
                self.publish(next);
                self.takeover.act_at = Some(now);
                if here == CATALOG_NODE {
                    self.settled();
                }
            }
        }
        let durable = self.core.borrow().journal.durable();
        self.vote_durable(durable);
    }

    /// Node 1's proposal was chosen. If it runs no change, what a crash has left is undone.
    fn settled(&mut self) {
        self.end_abandoned();
        if !self.ddl.is_running() {
            let catalog = self.core.borrow().catalog.clone();
            self.ddl.undo_unfinished(&catalog);
        }
    }

    /// Messages of this node to itself may be durable now.
    pub(super) fn vote_durable(&mut self, durable: Position) {
        loop {
            let words = &mut self.takeover.own_words;
            if words
                .front()
                .is_none_or(|(position, _)| *position > durable)
            {
                return;
            }
            let (_, word) = words.pop_front().expect("it has a front");
            if word.base() == self.register.base() {
                let (here, now) = {
                    let core = self.core.borrow();
                    (core.config.shard.node(), core.now)
                };
                let said = self.register.on_word(here, word, now);
                self.carry_out(said);
            }
        }
    }

    /// A checkpoint has begun: the journal before it may be removed, so the vote is written again.
    pub(super) fn journal_vote_again(&mut self) {
        let mut core = self.core.borrow_mut();
        if core.config.shard.index() == 0
            && let Some(vote) = self.register.vote()
        {
            let mut record = Vec::new();
            journal::Record::Vote(vote).encode(&mut record);
            core.journal.append(&record);
        }
    }

    fn overtaken(&mut self, now: Time) {
        if self.core.borrow().config.shard == ShardId(0) {
            self.abandon_change();
        }
        self.takeover.overtaken += 1;
        self.takeover.act_at = Some(now.after(self.pause()));
    }

    fn pause(&self) -> u64 {
        let most = PAUSE_US * self.takeover.overtaken.min(PAUSES_MAX);
        most + self.core.borrow_mut().prng.below(most + 1)
    }

    /// While something is closed: proposes if it is this node's turn. Returns true if it has done
    /// something.
    pub(super) fn tend_takeover(&mut self) -> bool {
        if !self.takeover.wants_look() {
            return false;
        }
        let (here, catalog, now) = {
            let core = self.core.borrow();
            (core.config.shard, core.catalog.clone(), core.now)
        };
        let told = self.give_up_lost(now);
        if !self.takeover.is_closed {
            return told;
        }
        if self.register.is_busy() {
            let since = self.register.busy_since();
            if since.is_some_and(|since| now.since(since) >= LOST_US)
                && let Some(answer) = self.ddl.leave_open()
            {
                self.act(answer);
            }
            let said = self.register.again(now);
            let any = !said.words.is_empty();
            self.carry_out(said);
            return any || told;
        }
        let is_ours = match here {
            ShardId(0) => !self.ddl.is_running(),
            _ => {
                !self.peers.contains_key(&CATALOG_NODE)
                    && !is_planted(Planted::ClosedWithoutNodeOne)
            }
        };
        let mut reached: BTreeSet<NodeId> = self.peers.keys().copied().collect();
        reached.insert(here.node());
        if !is_ours || !self.register.is_majority(&reached) {
            self.takeover.act_at = None;
            return told;
        }
        let at = self.takeover.act_at.unwrap_or_else(|| {
            let before = reached.range(..here.node()).count() as u64;
            match here {
                ShardId(0) => now,
                _ => now.after(PATIENCE_US + before * RANK_US),
            }
        });
        self.takeover.act_at = Some(at);
        if at > now {
            return told;
        }
        for node in reached.iter().filter(|node| **node != here.node()) {
            // The node may not have got the catalog.
            self.send_catalog(ShardId::new(*node, 0));
        }
        let said = self.register.settle(&catalog, now);
        self.carry_out(said);
        true
    }

    #[inline]
    pub(super) fn takeover_deadline(&self) -> Option<Time> {
        if !self.takeover.wants_look() {
            return None;
        }
        let lost = self.takeover.lost.values().min().copied();
        let attempt = self.register.deadline();
        let acts = attempt.or(self.takeover.act_at);
        let acts = acts.filter(|_| self.takeover.is_closed);
        lost.into_iter().chain(acts).min()
    }

    /// Node 1 is away with the schema changes of sessions here. Other nodes end one that keeps
    /// something closed; the outcome of any other is unknown.
    pub(super) fn give_up_ddl(&mut self) {
        let now = self.core.borrow().now;
        let asked: Vec<u64> = self.ddl_asked.keys().copied().collect();
        for id in asked {
            match self.end_here(id) {
                Some(result) => self.answer_asked(id, result),
                None => {
                    let until = now.after(LOST_US);
                    self.takeover.lost.entry(id).or_insert(until);
                }
            }
        }
    }

    /// Outcome of a change that was asked for here; `None`: something is still closed by it.
    fn end_here(&self, number: u64) -> Option<Answered> {
        let core = self.core.borrow();
        let by = core.config.shard;
        end_of(ChangeId { by, number }, &core.catalog)
    }

    fn answer_asked(&mut self, id: u64, result: Answered) {
        self.takeover.forget(id);
        let conn: Option<ConnId> = self.ddl_asked.remove(&id);
        if let Some(conn) = conn {
            self.with_session(conn, |session, cx| session.on_ddl(cx, result));
        }
    }

    /// A newer catalog may tell the outcome of changes that were lost with node 1.
    pub(super) fn answer_lost(&mut self) {
        let lost: Vec<u64> = self.takeover.lost.keys().copied().collect();
        for id in lost {
            if let Some(result) = self.end_here(id) {
                self.answer_asked(id, result);
            }
        }
    }

    /// Ends the waits of sessions whose changes other nodes have not ended in time.
    fn give_up_lost(&mut self, now: Time) -> bool {
        let lost = self.takeover.lost.iter();
        let late = lost.filter(|(_, until)| **until <= now);
        let late: Vec<u64> = late.map(|(id, _)| *id).collect();
        for id in &late {
            self.answer_asked(*id, Err(unknown()));
        }
        !late.is_empty()
    }
}
