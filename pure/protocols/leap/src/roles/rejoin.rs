//! The state of a restart: what this shard awaits, and which shards have claimed which rows.

use crate::checkpoint::Former;
use crate::message::{Claims, Owed, Verdicts};
use crate::resolve::{Resolving, Unsaid};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::{Key, NodeId, ShardId, Time};
use core::ops::Bound;
use journal::{Held as Claim, Otag};
use txn::Alarm;

/// The keys behind the first one, up to the second.
pub(crate) type Rows = (Option<Key>, Option<Key>);

pub(crate) fn bounds((low, high): &Rows) -> (Bound<&Key>, Bound<&Key>) {
    let low = low.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
    let high = high.as_ref().map_or(Bound::Unbounded, Bound::Included);
    (low, high)
}

/// Claims of one shard to a home that serves nothing yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collected {
    pub(crate) incarnation: u32,
    pub(crate) round: u64,
    pub(crate) restarted: bool,
    pub(crate) parts: BTreeMap<u32, Vec<Claim>>,
    /// Number of parts; 0: the last part has not come.
    count: u32,
    /// Formulas that the shard has committed on rows of this one.
    pub(crate) owed: Vec<Owed>,
    /// When the last part came.
    heard: Time,
}

impl Collected {
    fn is_whole(&self) -> bool {
        self.count > 0 && self.parts.len() as u32 == self.count
    }
}

/// Claims on their way to a home. Each turn sends a slice of the rows that are held here.
#[derive(Debug)]
pub(crate) struct Claiming {
    round: u64,
    pub(crate) expected: u32,
    restarted: bool,
    /// Number of the next part.
    part: u32,
    /// Rows up to this key were dealt with.
    pub(crate) upto: Option<Key>,
}

impl Claiming {
    /// Makes the next part; `ended`: the last one.
    pub(crate) fn next_part(&mut self, ended: bool, held: Vec<Claim>, owed: Vec<Owed>) -> Claims {
        let part = self.part;
        self.part += 1;
        Claims {
            round: self.round,
            part,
            parts: if ended { self.part } else { 0 },
            restarted: self.restarted,
            expected: self.expected,
            held,
            owed,
        }
    }
}

/// Claims of a restarted shard, at a home that did not restart. The home deals with them part by
/// part; a part out of order waits for the next round.
#[derive(Debug, Default)]
struct Judging {
    incarnation: u32,
    round: u64,
    /// Number of the awaited part.
    next: u32,
    /// Rows up to this key were dealt with, in this life of the shard.
    joined: Option<Key>,
}

/// The verdicts that a home has sent so far.
#[derive(Debug, Default)]
struct Judged {
    round: u64,
    next: u32,
    later: BTreeSet<Key>,
}

/// How far this shard has come since its start.
#[derive(Debug, Default)]
pub(crate) struct Rejoin {
    serving: bool,
    /// Shards whose claims this home awaits.
    waiting: BTreeSet<ShardId>,
    collected: BTreeMap<ShardId, Collected>,
    claiming: BTreeMap<ShardId, Claiming>,
    judging: BTreeMap<ShardId, Judging>,
    judged: BTreeMap<ShardId, Judged>,
    /// All shards have claimed; the home decides which shard has which row.
    pub(crate) resolving: Option<Resolving>,
    /// Verdicts that restarted shards have not got yet.
    pub(crate) verdicts: VecDeque<Unsaid>,
    /// What this shard itself owned in its former life.
    pub(crate) former: Arc<Former>,
    /// Incarnation of each shard whose claims were dealt with.
    joined: BTreeMap<ShardId, u32>,
    /// Homes whose verdicts this shard awaits.
    awaited: BTreeSet<ShardId>,
    /// Keys of claims that their homes had not decided when they answered.
    undecided: BTreeSet<Key>,
    /// When shards are asked again, and rows claimed again.
    pub(crate) again: Alarm,
    /// Jobs that wait until a restarted home or owner may serve again.
    pub(crate) waits: Vec<u64>,
}

impl Rejoin {
    pub(crate) fn is_serving(&self) -> bool {
        self.serving
    }

    /// A shard that is `away` and whose claims this shard needs before it serves.
    pub(crate) fn awaits(&self, away: &dyn Fn(ShardId) -> bool) -> Option<ShardId> {
        let mut waiting = self.waiting.iter().copied().filter(|_| !self.serving);
        waiting.find(|shard| away(*shard))
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.serving && self.awaited.is_empty() && self.undecided.is_empty()
    }

    /// Whether the next tick has work to go on with.
    pub(crate) fn has_turns(&self) -> bool {
        !self.claiming.is_empty() || self.resolving.is_some() || !self.verdicts.is_empty()
    }

    /// The shard has restarted: all `others` must claim, and judge its claims. `serves`: it serves
    /// without waiting for their claims.
    pub(crate) fn begin(&mut self, others: BTreeSet<ShardId>, serves: bool) {
        if !serves {
            self.waiting.clone_from(&others);
        }
        (self.serving, self.awaited) = (serves, others);
    }

    /// This home serves its rows from now on: the owner table is complete.
    pub(crate) fn serve(&mut self) {
        self.former = Arc::default();
        self.serving = true;
    }

    /// A node cannot be reached. Claims to its homes end; they begin again when it is back.
    pub(crate) fn peer_down(&mut self, node: NodeId) {
        self.claiming.retain(|home, _| home.node() != node);
    }

    pub(crate) fn peer_restarted(&mut self, node: NodeId, incarnation: u32) {
        if self.serving {
            return;
        }
        let waiting = &mut self.waiting;
        self.collected.retain(|shard, collected| {
            let void = shard.node() == node && collected.incarnation < incarnation;
            if void {
                waiting.insert(*shard);
            }
            !void
        });
    }

    /// The shards that are asked for claims, and the homes to which this shard claims; `None`: all
    /// have answered. A shard whose claims came within `pause_us` is not asked again.
    pub(crate) fn open(&self, now: Time, pause_us: u64) -> Option<(Vec<ShardId>, Vec<ShardId>)> {
        if self.waiting.is_empty() && self.awaited.is_empty() {
            return None;
        }
        let silent = |shard: &&ShardId| {
            let collected = self.collected.get(shard);
            collected.is_none_or(|collected| now.since(collected.heard) >= pause_us)
        };
        let asked = self.waiting.iter().filter(silent).copied().collect();
        Some((asked, self.awaited.iter().copied().collect()))
    }

    /// Awaits verdicts of a restarted home, whose former life had not decided on claims of this
    /// shard. Returns whether they were not awaited before.
    pub(crate) fn await_verdicts(&mut self, home: ShardId) -> bool {
        self.awaited.insert(home)
    }

    /// Begins to tell a home what this shard has of its rows, under the number of a round. Returns
    /// `false` if that is under way already, or an answer to the home's own question is.
    pub(crate) fn begin_claims(&mut self, home: ShardId, expected: u32, round: u64) -> bool {
        let restarted = self.awaited.contains(&home);
        let under_way = self.claiming.get(&home);
        if under_way.is_some_and(|c| c.restarted == restarted && c.expected >= expected) {
            return false;
        }
        let claiming = Claiming {
            round,
            expected,
            restarted,
            part: 0,
            upto: None,
        };
        self.claiming.insert(home, claiming);
        true
    }

    /// The home to which claims go on next.
    pub(crate) fn next_claimed(&self) -> Option<ShardId> {
        self.claiming.keys().next().copied()
    }

    /// Takes out the claims that are on their way to a home.
    pub(crate) fn take_claims(&mut self, home: ShardId) -> Option<Claiming> {
        self.claiming.remove(&home)
    }

    /// Puts claims back of which more parts follow.
    pub(crate) fn put_claims(&mut self, home: ShardId, claiming: Claiming) {
        self.claiming.insert(home, claiming);
    }

    /// Whether claims are ignored. A restarted home counts only claims that answer its `Ask`.
    pub(crate) fn is_answered(&self, from: ShardId, incarnation: u32, claims: &Claims) -> bool {
        match self.serving {
            true => !claims.restarted || self.joined_in(from) > incarnation,
            // Claims of a new life of a shard, while this home resolves, are judged when it serves.
            false => claims.expected == 0 || self.resolving.is_some(),
        }
    }

    /// Notes a part of a shard's claims, at a home that does not serve yet. Returns all claims when
    /// all shards have claimed. `one_part`: one part of each shard is enough.
    pub(crate) fn collect(
        &mut self,
        from: ShardId,
        incarnation: u32,
        claims: Claims,
        now: Time,
        one_part: bool,
    ) -> Option<BTreeMap<ShardId, Collected>> {
        let collected = self.collected.entry(from).or_default();
        if !self.waiting.contains(&from) {
            // All parts are here; the shard may have been asked twice.
            if collected.incarnation >= incarnation {
                return None;
            }
            self.waiting.insert(from);
        }
        if (collected.incarnation, collected.round) != (incarnation, claims.round) {
            *collected = Collected {
                incarnation,
                round: claims.round,
                ..Collected::default()
            };
        }
        collected.restarted = claims.restarted;
        collected.heard = now;
        collected.count = collected.count.max(claims.parts);
        collected.parts.insert(claims.part, claims.held);
        collected.owed.extend(claims.owed);
        if !collected.is_whole() && !one_part {
            return None;
        }
        self.waiting.remove(&from);
        let all = self.waiting.is_empty();
        all.then(|| core::mem::take(&mut self.collected))
    }

    /// The claims of a life of a shard were dealt with.
    pub(crate) fn join(&mut self, shard: ShardId, incarnation: u32) {
        self.joined.insert(shard, incarnation);
    }

    fn joined_in(&self, shard: ShardId) -> u32 {
        self.joined.get(&shard).copied().unwrap_or(0)
    }

    /// Whether requests of a life of a shard may be dealt with: its claims were.
    pub(crate) fn serves(&self, shard: ShardId, incarnation: u32) -> bool {
        let joined = self.joined.get(&shard).copied().unwrap_or(1);
        self.serving && joined >= incarnation
    }

    /// Takes a part of the claims of a restarted shard, at a home that serves. `None`: the part is
    /// out of order. `Some(rows)`: the rows that the home must look through before it answers which
    /// claims stand; `Some(None)`: it has done that before.
    pub(crate) fn judge(
        &mut self,
        from: ShardId,
        incarnation: u32,
        claims: &Claims,
    ) -> Option<Option<Rows>> {
        let known = self.joined_in(from) >= incarnation;
        let judging = self.judging.entry(from).or_default();
        if (judging.incarnation, judging.round) != (incarnation, claims.round) {
            self.verdicts.retain(|unsaid| unsaid.to != from);
            let same_life = judging.incarnation == incarnation;
            *judging = Judging {
                incarnation,
                round: claims.round,
                next: 0,
                joined: judging.joined.take().filter(|_| same_life),
            };
        }
        if claims.part != judging.next {
            return None;
        }
        judging.next += 1;
        let ended = claims.parts > 0;
        let upto = claims.held.last().map(|claim| &claim.key);
        let upto = upto.filter(|_| !ended).cloned();
        let rows = (!known && (ended || upto > judging.joined)).then(|| {
            let from = core::mem::replace(&mut judging.joined, upto.clone());
            (from, upto)
        });
        if ended {
            self.judging.remove(&from);
            if !known {
                self.join(from, incarnation);
            }
        }
        Some(rows)
    }

    pub(crate) fn awaits_verdicts(&self, home: ShardId) -> bool {
        self.awaited.contains(&home)
    }

    /// Notes verdicts of a home. Returns `false` if they are out of order.
    pub(crate) fn hear(&mut self, home: ShardId, verdicts: &Verdicts) -> bool {
        let judged = self.judged.entry(home).or_default();
        if judged.round != verdicts.round {
            *judged = Judged {
                round: verdicts.round,
                ..Judged::default()
            };
        }
        if judged.next != verdicts.part {
            return false;
        }
        judged.next += 1;
        let later = verdicts.later.iter().map(|(key, _)| key.clone());
        judged.later.extend(later);
        true
    }

    /// A home has judged all claims. Returns the keys of those that it left open.
    pub(crate) fn end_verdicts(&mut self, home: ShardId) -> BTreeSet<Key> {
        self.awaited.remove(&home);
        let judged = self.judged.remove(&home).unwrap_or_default();
        judged.later
    }

    /// Notes a claim that its home has left open.
    pub(crate) fn leave_open(&mut self, key: Key) {
        self.undecided.insert(key);
    }

    /// Claims that homes left open and that are still open: those to which `open` gives a grant.
    pub(crate) fn undecided(
        &mut self,
        open: impl Fn(&Key) -> Option<Otag>,
    ) -> impl Iterator<Item = (&Key, Otag)> {
        self.undecided.retain(|key| open(key).is_some());
        let undecided = self.undecided.iter();
        undecided.filter_map(move |key| Some((key, open(key)?)))
    }

    /// Whether a claim was left open.
    pub(crate) fn has_undecided(&self) -> bool {
        !self.undecided.is_empty()
    }
}
