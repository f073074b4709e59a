//! The successor of a catalog under which something is closed: a majority of nodes decides it.
//!
//! Node 1 orders schema changes. If it dies while a database changes its protocol, or a table is
//! frozen, other nodes must open that again, and node 1 must not have decided otherwise. So the
//! successor of a *closed* catalog ([`Catalog::is_closed`]) is a value on which the nodes agree,
//! once, by single-decree Paxos (Lamport, Paxos Made Simple, 2001). Node 1 alone decides successors
//! of open catalogs.
//!
//! ```text
//! proposer                        acceptors: the first shard of each node
//!   Prepare{base, ballot}      ->  promises, durably, to refuse smaller ballots
//!   Promised{accepted}         <-  and says what it has accepted
//!   Accept{base, ballot, next} ->  accepts, durably, unless it has promised a larger ballot
//!   Accepted                   <-  a majority: `next` is chosen and may be used
//! ```
//!
//! | proposer | ballot | begins with |
//! |---|---|---|
//! | node 1, its change goes on | (0, 1) | Accept: nothing smaller exists |
//! | node 1, restarted or overtaken | (its life and a count, 1) | Prepare |
//! | another node, while node 1 is away | (its life and a count, its number) | Prepare |
//!
//! The value is the change's next step in the first row; else what was accepted in the largest
//! ballot that the promises name, or, if nothing was, [`Catalog::opened`].
//!
//! Node 1 proposes one value in ballot 0, ever: the life that runs the change has published the
//! closed catalog itself, and a later life does not go on with it.
//!
//! An acceptor that uses a newer catalog than `base` answers with that catalog, which was chosen or
//! follows one that was. An acceptor without `base` asks for it.
//!
//! Node 1 counts twice among an even number of nodes: of two, it needs no other, and no other can
//! act for it.
//!
//! This is the machine without its surroundings: messages come in; messages, and a vote to be
//! journaled, come out. The messages of an acceptor must not leave before its vote is durable
//! (`machine/takeover.rs`).

use crate::config::CATALOG_NODE;
use base::{NodeId, Planted, Time, is_planted};
use catalog::Catalog;
use journal::{Accepted, Ballot, Vote};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Messages between first shards of nodes about the successor of the catalog of version `base`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Word {
    Prepare {
        base: u64,
        ballot: Ballot,
    },
    Promised {
        base: u64,
        ballot: Ballot,
        accepted: Option<(Ballot, Arc<Catalog>)>,
    },
    Accept {
        base: u64,
        ballot: Ballot,
        next: Arc<Catalog>,
    },
    Accepted {
        base: u64,
        ballot: Ballot,
    },
    /// The acceptor has promised a larger ballot.
    Refused {
        base: u64,
        ballot: Ballot,
        promised: Ballot,
    },
}

impl Word {
    pub(crate) fn base(&self) -> u64 {
        match self {
            Word::Prepare { base, .. }
            | Word::Promised { base, .. }
            | Word::Accept { base, .. }
            | Word::Accepted { base, .. }
            | Word::Refused { base, .. } => *base,
        }
    }

    /// Whether the message goes to an acceptor.
    pub(crate) fn asks(&self) -> bool {
        matches!(self, Word::Prepare { .. } | Word::Accept { .. })
    }

    /// Whether the message tells what must be durable first.
    pub(crate) fn needs_vote(&self) -> bool {
        matches!(self, Word::Promised { .. } | Word::Accepted { .. })
    }
}

/// Effects of a message.
#[derive(Default, Debug)]
pub(crate) struct Said {
    /// Vote to be journaled before the messages that need it leave.
    pub(crate) vote: Option<Vote>,
    /// Messages, with their nodes; this node may be one.
    pub(crate) words: Vec<(NodeId, Word)>,
    /// The catalog that was chosen and is to be used.
    pub(crate) chosen: Option<Arc<Catalog>>,
    /// Whether this node's attempt has met a larger ballot and is over.
    pub(crate) overtaken: bool,
}

impl Said {
    fn word(to: NodeId, word: Word) -> Said {
        Said {
            words: Vec::from([(to, word)]),
            ..Said::default()
        }
    }
}

/// Microseconds after which unanswered messages are repeated.
const AGAIN_US: u64 = 200_000;

#[derive(Debug)]
enum Phase {
    /// Promises are awaited. `best`: what was accepted in the largest ballot so far.
    Preparing {
        best: Option<(Ballot, Arc<Catalog>)>,
        own: Arc<Catalog>,
    },
    /// Votes are awaited.
    Accepting { next: Arc<Catalog> },
}

#[derive(Debug)]
struct Attempt {
    base: u64,
    ballot: Ballot,
    phase: Phase,
    /// Nodes that have answered in this phase.
    answered: BTreeSet<NodeId>,
    since: Time,
    again_at: Time,
}

impl Attempt {
    fn word(&self) -> Word {
        let (base, ballot) = (self.base, self.ballot);
        match &self.phase {
            Phase::Preparing { .. } => Word::Prepare { base, ballot },
            Phase::Accepting { next } => Word::Accept {
                base,
                ballot,
                next: next.clone(),
            },
        }
    }
}

/// The votes of a node, and its attempt to have a successor chosen.
#[derive(Debug)]
pub(crate) struct Register {
    here: NodeId,
    nodes: Vec<NodeId>,
    incarnation: u32,
    /// Promise of this node, about the successor of `base`.
    base: u64,
    promised: Ballot,
    accepted: Option<(Ballot, Arc<Catalog>)>,
    attempt: Option<Attempt>,
    /// Largest round seen.
    round: u64,
}

impl Register {
    /// The register after a start with the catalog of this version.
    pub(crate) fn new(
        here: NodeId,
        nodes: Vec<NodeId>,
        incarnation: u32,
        version: u64,
        vote: Option<Vote>,
    ) -> Register {
        let mut register = Register {
            here,
            nodes,
            incarnation,
            base: version,
            promised: Ballot::default(),
            accepted: None,
            attempt: None,
            round: 0,
        };
        if let Some(vote) = vote.filter(|vote| vote.base == version) {
            register.promised = vote.promised;
            register.round = vote.promised.round;
            register.accepted = vote.accepted.map(|accepted| {
                let catalog = base::codec::decode(&accepted.catalog);
                let catalog = catalog.expect("what was journaled with a checksum decodes");
                (accepted.ballot, Arc::new(catalog))
            });
        }
        register
    }

    /// Whether these nodes are enough to decide.
    pub(crate) fn is_majority(&self, of: &BTreeSet<NodeId>) -> bool {
        if is_planted(Planted::CatalogWithoutMajority) && self.here == CATALOG_NODE {
            return of.contains(&CATALOG_NODE);
        }
        let even = self.nodes.len().is_multiple_of(2);
        let weight = |node: &NodeId| 1 + usize::from(even && *node == CATALOG_NODE);
        let all: usize = self.nodes.iter().map(weight).sum();
        let these = self.nodes.iter().filter(|node| of.contains(node));
        these.map(weight).sum::<usize>() * 2 > all
    }

    /// A catalog of this version is in use: votes and attempts for older ones are dropped.
    pub(crate) fn advance(&mut self, version: u64) {
        if version > self.base {
            self.base = version;
            self.promised = Ballot::default();
            self.accepted = None;
            self.attempt = None;
        }
    }

    /// Version of the catalog whose successor is decided.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Whether an attempt is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.attempt.is_some()
    }

    /// When the attempt under way began to wait for answers.
    pub(crate) fn busy_since(&self) -> Option<Time> {
        self.attempt.as_ref().map(|attempt| attempt.since)
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.attempt.as_ref().map(|attempt| attempt.again_at)
    }

    /// Promise and vote of this node, if there is one.
    pub(crate) fn vote(&self) -> Option<Vote> {
        (self.promised > Ballot::default()).then(|| Vote {
            base: self.base,
            promised: self.promised,
            accepted: self.accepted.as_ref().map(|(ballot, catalog)| Accepted {
                ballot: *ballot,
                catalog: base::codec::to_vec(&**catalog),
            }),
        })
    }

    /// Node 1 goes on with its own change.
    pub(crate) fn propose(&mut self, next: Arc<Catalog>, now: Time) -> Said {
        assert!(
            self.here == CATALOG_NODE && self.attempt.is_none() && next.version > self.base,
            "node 1 goes on with one change, step by step"
        );
        let ballot = Ballot {
            round: 0,
            node: self.here,
        };
        self.begin(ballot, Phase::Accepting { next }, now)
    }

    /// Begins to find out the successor of the catalog in use; if there is none, has it opened.
    pub(crate) fn settle(&mut self, closed: &Catalog, now: Time) -> Said {
        assert!(closed.version == self.base && self.attempt.is_none());
        self.round = self.round.max(u64::from(self.incarnation) << 32) + 1;
        let ballot = Ballot {
            round: self.round,
            node: self.here,
        };
        let own = Arc::new(closed.opened());
        self.begin(ballot, Phase::Preparing { best: None, own }, now)
    }

    fn begin(&mut self, ballot: Ballot, phase: Phase, now: Time) -> Said {
        self.attempt = Some(Attempt {
            base: self.base,
            ballot,
            phase,
            answered: BTreeSet::new(),
            since: now,
            again_at: now,
        });
        self.again(now)
    }

    /// Repeats the messages that were not answered.
    pub(crate) fn again(&mut self, now: Time) -> Said {
        let Some(attempt) = self.attempt.as_mut().filter(|one| one.again_at <= now) else {
            return Said::default();
        };
        attempt.again_at = now.after(AGAIN_US);
        let silent = self.nodes.iter();
        let silent = silent.filter(|node| !attempt.answered.contains(node));
        Said {
            words: silent.map(|node| (*node, attempt.word())).collect(),
            ..Said::default()
        }
    }

    /// Takes a message about the catalog in use; messages about others are ignored.
    pub(crate) fn on_word(&mut self, from: NodeId, word: Word, now: Time) -> Said {
        if word.base() != self.base {
            return Said::default();
        }
        match word {
            Word::Prepare { ballot, .. } => self.on_prepare(from, ballot),
            Word::Accept { ballot, next, .. } => self.on_accept(from, ballot, next),
            Word::Promised {
                ballot, accepted, ..
            } => self.on_promised(from, ballot, accepted, now),
            Word::Accepted { ballot, .. } => self.on_accepted(from, ballot),
            Word::Refused {
                ballot, promised, ..
            } => {
                self.round = self.round.max(promised.round);
                let own = self.attempt.take_if(|attempt| attempt.ballot == ballot);
                Said {
                    overtaken: own.is_some(),
                    ..Said::default()
                }
            }
        }
    }

    fn refuse(&self, to: NodeId, ballot: Ballot) -> Said {
        let refused = Word::Refused {
            base: self.base,
            ballot,
            promised: self.promised,
        };
        Said::word(to, refused)
    }

    fn on_prepare(&mut self, from: NodeId, ballot: Ballot) -> Said {
        if ballot < self.promised {
            return self.refuse(from, ballot);
        }
        let is_new = ballot > self.promised;
        self.promised = ballot;
        self.round = self.round.max(ballot.round);
        let promised = Word::Promised {
            base: self.base,
            ballot,
            accepted: self.accepted.clone(),
        };
        Said {
            vote: is_new.then(|| self.vote()).flatten(),
            ..Said::word(from, promised)
        }
    }

    fn on_accept(&mut self, from: NodeId, ballot: Ballot, next: Arc<Catalog>) -> Said {
        if ballot < self.promised {
            return self.refuse(from, ballot);
        }
        if next.version <= self.base {
            return Said::default();
        }
        let known = self.accepted.as_ref();
        let is_new = known.is_none_or(|(accepted, _)| *accepted < ballot);
        if is_new {
            self.promised = ballot;
            self.accepted = Some((ballot, next));
        }
        let base = self.base;
        Said {
            vote: is_new.then(|| self.vote()).flatten(),
            ..Said::word(from, Word::Accepted { base, ballot })
        }
    }

    fn on_promised(
        &mut self,
        from: NodeId,
        ballot: Ballot,
        accepted: Option<(Ballot, Arc<Catalog>)>,
        now: Time,
    ) -> Said {
        let Some(attempt) = self.attempt.as_mut().filter(|one| one.ballot == ballot) else {
            return Said::default();
        };
        let Phase::Preparing { best, own } = &mut attempt.phase else {
            return Said::default();
        };
        attempt.answered.insert(from);
        let known = best.as_ref().map(|(ballot, _)| *ballot);
        if accepted.as_ref().map(|(ballot, _)| *ballot) > known {
            *best = accepted;
        }
        let (best, own) = (best.clone(), own.clone());
        let answered = attempt.answered.clone();
        if !self.is_majority(&answered) {
            return Said::default();
        }
        let next = best.map_or(own, |(_, catalog)| catalog);
        self.begin(ballot, Phase::Accepting { next }, now)
    }

    fn on_accepted(&mut self, from: NodeId, ballot: Ballot) -> Said {
        let Some(attempt) = self.attempt.as_mut().filter(|one| one.ballot == ballot) else {
            return Said::default();
        };
        let Phase::Accepting { next } = &attempt.phase else {
            return Said::default();
        };
        let next = next.clone();
        attempt.answered.insert(from);
        let answered = attempt.answered.clone();
        let chosen = self.is_majority(&answered).then_some(next);
        if chosen.is_some() {
            self.attempt = None;
        }
        Said {
            chosen,
            ..Said::default()
        }
    }
}

#[cfg(test)]
mod tests;
