//! What a restart leaves, and how the shards agree again on who owns what.
//!
//! ```text
//! restarted home    Ask ──> everybody            serves nothing of its slots
//!                   <── Claims                    (and whoever claims accepts no older grant)
//!                   the largest grant wins        then it serves
//! restarted owner   Claims(restarted) ──> homes   serves nothing of theirs
//!                   <── Verdicts                  then it serves what stands
//! ```

use crate::checkpoint::{Former, claim_of};
use crate::message::{Body, Claims, Owed, Verdicts};
use crate::owner::{Held, Tenure};
use crate::resolve::{Resolving, Unsaid};
use crate::{Context, Leap, printed};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::{IndexId, Key, NodeId, ShardId, Slot, Time, Ts};
use core::ops::{Bound, ControlFlow, RangeBounds};
use journal::{Held as Claim, Holding, Otag, Ownership};
use store::{Store, Window};
use txn::Alarm;

/// A shard with many rows of others claims them anew only when their home may have dealt with them:
/// so much later for each row. Microseconds.
const CLAIM_US: u64 = 2;

/// The keys behind the first one, up to the second.
type Rows = (Option<Key>, Option<Key>);

fn bounds((low, high): &Rows) -> (Bound<&Key>, Bound<&Key>) {
    let low = low.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
    let high = high.as_ref().map_or(Bound::Unbounded, Bound::Included);
    (low, high)
}

/// What one shard has claimed of a home that serves nothing yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collected {
    pub(crate) incarnation: u32,
    pub(crate) round: u64,
    pub(crate) restarted: bool,
    pub(crate) parts: BTreeMap<u32, Vec<Claim>>,
    /// How many there are; 0: the last one has not come.
    count: u32,
    /// What it has committed on rows of the asker.
    pub(crate) owed: Vec<Owed>,
    /// When something came last.
    heard: Time,
}

impl Collected {
    fn is_whole(&self) -> bool {
        self.count > 0 && self.parts.len() as u32 == self.count
    }
}

/// Claims on their way to a home, a slice of the rows that are held here a turn.
#[derive(Debug)]
struct Claiming {
    round: u64,
    expected: u32,
    restarted: bool,
    /// The next part.
    part: u32,
    /// Rows up to this key are dealt with.
    upto: Option<Key>,
}

/// Claims of a restarted shard that a home which goes on deals with part by part, in order. What
/// comes out of order waits for the next round.
#[derive(Debug, Default)]
struct Judging {
    incarnation: u32,
    round: u64,
    /// The part that is awaited.
    next: u32,
    /// The rows up to this key have been dealt with, once for a life of the shard.
    joined: Option<Key>,
}

/// Verdicts of a home, as far as they have come.
#[derive(Debug, Default)]
struct Judged {
    round: u64,
    next: u32,
    later: BTreeSet<Key>,
}

/// How far this shard has come since its start.
#[derive(Debug, Default)]
pub(crate) struct Rejoin {
    pub(crate) serving: bool,
    /// Shards whose claims are awaited.
    waiting: BTreeSet<ShardId>,
    collected: BTreeMap<ShardId, Collected>,
    claiming: BTreeMap<ShardId, Claiming>,
    judging: BTreeMap<ShardId, Judging>,
    judged: BTreeMap<ShardId, Judged>,
    /// All have claimed; who has which row is being decided.
    pub(crate) resolving: Option<Resolving>,
    /// What restarted shards are still to be told.
    pub(crate) verdicts: VecDeque<Unsaid>,
    /// What this shard knew itself.
    pub(crate) former: Arc<Former>,
    /// Incarnation in which the claims of a shard were dealt with.
    pub(crate) joined: BTreeMap<ShardId, u32>,
    /// Homes whose verdicts are awaited.
    awaited: BTreeSet<ShardId>,
    /// Claims that their homes had not decided when they answered.
    undecided: BTreeSet<Key>,
    /// When shards are asked again, and claims made again.
    pub(crate) again: Alarm,
}

impl Rejoin {
    pub(crate) fn is_serving(&self) -> bool {
        self.serving
    }

    /// Who of those that must speak before this shard serves is `away`.
    pub(crate) fn awaits(&self, away: &dyn Fn(ShardId) -> bool) -> Option<ShardId> {
        let mut waiting = self.waiting.iter().copied().filter(|_| !self.serving);
        waiting.find(|shard| away(*shard))
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.serving && self.awaited.is_empty() && self.undecided.is_empty()
    }

    /// Whether it goes on with the next tick.
    pub(crate) fn has_turns(&self) -> bool {
        !self.claiming.is_empty() || self.resolving.is_some() || !self.verdicts.is_empty()
    }

    /// A node cannot be reached: it will ask again, or be told again.
    pub(crate) fn peer_down(&mut self, node: NodeId) {
        self.claiming.retain(|home, _| home.node() != node);
    }

    pub(crate) fn peer_restarted(&mut self, node: NodeId, incarnation: u32) {
        if self.serving {
            return;
        }
        let old: Vec<ShardId> = self
            .collected
            .iter()
            .filter(|(shard, c)| shard.node() == node && c.incarnation < incarnation)
            .map(|(shard, _)| *shard)
            .collect();
        for shard in old {
            self.collected.remove(&shard);
            self.waiting.insert(shard);
        }
    }
}

impl Leap {
    /// Continues what a former life owned.
    ///
    /// Rows of the store that belong elsewhere and were not owned are removed, of the indexes that
    /// `moves` names: all others are none of this protocol's.
    pub(crate) fn recover_rows(
        &mut self,
        cx: &mut Context<'_>,
        ownership: Ownership,
        moves: &dyn Fn(IndexId) -> bool,
    ) {
        self.incarnation = cx.incarnation;
        // Late answers to a former life meet no number of this one.
        self.next_number = u64::from(cx.incarnation) << 32;
        let mut checkpoint = ownership;
        let shipped = core::mem::take(&mut checkpoint.shipped);
        self.recover_owings(cx, shipped);
        let mut own = Vec::new();
        for claim in core::mem::take(&mut checkpoint.held) {
            if self.is_home(&claim.key) {
                own.push(claim);
                continue;
            }
            let tenure = match claim.holding {
                Holding::Owned => Tenure::Owned {
                    confirmed: printed!(self, LeapOwnerServesAtOnce),
                },
                Holding::Released(to) => {
                    self.owner
                        .backups
                        .begin(claim.key.clone(), (), cx.now, true);
                    Tenure::Released { to }
                }
            };
            let held = Held {
                otag: claim.otag,
                seen: claim.otag,
                tenure,
                since: Ts::ZERO,
                position: Self::NOTHING,
            };
            self.owner.held.insert(claim.key, held);
        }
        self.rejoin.former = Arc::new(Former { own, checkpoint });
        self.evict_strangers(cx.store, moves);
        let others = self
            .homes
            .iter()
            .copied()
            .filter(|shard| *shard != self.shard);
        let others: BTreeSet<ShardId> = others.collect();
        if cx.incarnation <= 1 || others.is_empty() {
            self.rejoin.serving = true;
            self.apply_collected(cx);
            return;
        }
        self.rejoin.waiting.clone_from(&others);
        self.rejoin.awaited = others;
        if printed!(self, LeapHomeServesAtOnce) {
            self.rejoin.serving = true;
            self.rejoin.waiting.clear();
        }
        self.rejoin_again(cx);
    }

    /// Removes rows that belong elsewhere and are not held here.
    fn evict_strangers(&self, store: &mut Store, moves: &dyn Fn(IndexId) -> bool) {
        let mut strangers = Vec::new();
        for index in store.indexes().into_iter().filter(|index| moves(*index)) {
            let mut from = Slot(0);
            while let Some(slot) = store.next_slot(index, from) {
                from = Slot(slot.0 + 1);
                if self.home(slot) == self.shard {
                    continue;
                }
                let _ = store.scan_next(index, slot, Window::all(), Ts::MAX, &mut |key, _, _| {
                    let key = Key::new(index, slot, key.to_vec());
                    if !self.owner.held.contains_key(&key) {
                        strangers.push(key);
                    }
                    ControlFlow::Continue(())
                });
            }
        }
        for key in strangers {
            store.evict(&key);
        }
    }

    /// Asks and claims, for the first time or again.
    pub(crate) fn rejoin_again(&mut self, cx: &mut Context<'_>) {
        self.rejoin.again.stop();
        self.fail_gated(cx);
        if self.rejoin.waiting.is_empty() && self.rejoin.awaited.is_empty() {
            return;
        }
        let pause_us = self.settings.resend_us;
        for shard in self.rejoin.waiting.clone() {
            let collected = self.rejoin.collected.get(&shard);
            // Many claims are still coming.
            if collected.is_none_or(|collected| cx.now.since(collected.heard) >= pause_us) {
                self.post(cx, shard, Body::Ask, Self::NOTHING);
            }
        }
        for shard in self.rejoin.awaited.clone() {
            self.start_claims(cx, shard, 0);
        }
        let many_us = CLAIM_US * self.owner.held.len() as u64;
        self.rejoin.again.set(cx.now.after(pause_us + many_us));
    }

    /// Begins to tell a home what this shard has of its rows, unless that is under way. Those rows
    /// neither come nor go meanwhile: the home, or this shard, has just restarted.
    fn start_claims(&mut self, cx: &mut Context<'_>, home: ShardId, expected: u32) {
        let restarted = self.rejoin.awaited.contains(&home);
        let under_way = self.rejoin.claiming.get(&home);
        if under_way.is_some_and(|c| (c.expected, c.restarted) == (expected, restarted)) {
            return;
        }
        self.next_number += 1;
        let claiming = Claiming {
            round: self.next_number,
            expected,
            restarted,
            part: 0,
            upto: None,
        };
        self.rejoin.claiming.insert(home, claiming);
        self.claim_slice(cx, home);
    }

    /// Goes on with the claims that are on their way.
    pub(crate) fn claim(&mut self, cx: &mut Context<'_>) {
        if let Some(home) = self.rejoin.claiming.keys().next().copied() {
            self.claim_slice(cx, home);
        }
    }

    /// Tells a home of the next rows. What has just come or gone must be durable first: the home
    /// relies on it, and the claimant must say the same after a crash.
    fn claim_slice(&mut self, cx: &mut Context<'_>, home: ShardId) {
        let Some(mut claiming) = self.rejoin.claiming.remove(&home) else {
            return;
        };
        let from = claiming.upto.as_ref();
        let from = from.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = self.owner.held.range((from, Bound::Unbounded));
        let (mut held, mut seen, mut last) = (Vec::new(), 0, None);
        for row in rows.take(self.settings.slice_units as usize) {
            seen += 1;
            last = Some(row.0.clone());
            if self.home(row.0.slot) == home {
                held.push(claim_of(row));
            }
        }
        cx.counters.units += seen;
        let ended = seen < self.settings.slice_units;
        let (owed, committed) = match claiming.expected {
            _ if !ended => (Vec::new(), Self::NOTHING),
            0 => (Vec::new(), Self::NOTHING),
            _ => self.owed_to(home),
        };
        if ended || !held.is_empty() {
            let claims = Claims {
                round: claiming.round,
                part: claiming.part,
                parts: if ended { claiming.part + 1 } else { 0 },
                restarted: claiming.restarted,
                expected: claiming.expected,
                held,
                owed,
            };
            let wait = self.recorded.max(committed);
            self.post(cx, home, Body::Claims(Box::new(claims)), wait);
            claiming.part += 1;
        }
        if !ended {
            claiming.upto = last;
            self.rejoin.claiming.insert(home, claiming);
        }
    }

    /// A home has restarted. From here on nothing is accepted that a former life of it granted.
    pub(crate) fn on_ask(&mut self, cx: &mut Context<'_>, home: ShardId, incarnation: u32) {
        if !printed!(self, LeapCopiesForgotten) {
            self.drop_copies_of(cx, home);
        }
        let floor = Otag {
            incarnation,
            grant: 0,
        };
        self.requester.forget_grants(home, floor);
        self.owner.forget_refusals(home, floor);
        let old: Vec<Key> = self
            .owner
            .leaving()
            .iter()
            .filter(|(_, id)| {
                let releasing = self.owner.releasing.get(id);
                releasing.is_some_and(|r| r.home == home && r.otag < Some(floor))
            })
            .map(|(key, _)| key.clone())
            .collect();
        for key in old {
            self.owner.void_release(&key);
        }
        let doubtful = self.owner.held.iter().any(|(key, held)| {
            held.tenure == Tenure::Owned { confirmed: false } && self.home(key.slot) == home
        });
        if doubtful && self.rejoin.awaited.insert(home) {
            // The former life of the home had not decided.
            let at = cx.now.after(self.settings.resend_us);
            self.rejoin.again.set_once(at);
        }
        self.start_claims(cx, home, incarnation);
    }

    pub(crate) fn on_claims(
        &mut self,
        cx: &mut Context<'_>,
        from: ShardId,
        incarnation: u32,
        claims: Claims,
    ) {
        if claims.expected != 0 && claims.expected != cx.incarnation {
            return;
        }
        let joined = self.rejoin.joined.get(&from).copied().unwrap_or(0);
        let answered = self.rejoin.serving && (!claims.restarted || joined > incarnation);
        if answered || (!self.rejoin.serving && claims.expected == 0) {
            // A restarted home counts only what was said after it asked.
            return;
        }
        if self.rejoin.serving {
            self.judge(cx, from, incarnation, &claims);
            return;
        }
        if self.rejoin.resolving.is_some() {
            // What a new life of it claims is judged when this home serves.
            return;
        }
        let one_part = printed!(self, LeapClaimsOfOnePart);
        let collected = self.rejoin.collected.entry(from).or_default();
        if !self.rejoin.waiting.contains(&from) {
            // All of it is here; it may have been asked twice.
            if collected.incarnation >= incarnation {
                return;
            }
            self.rejoin.waiting.insert(from);
        }
        if (collected.incarnation, collected.round) != (incarnation, claims.round) {
            *collected = Collected {
                incarnation,
                round: claims.round,
                ..Collected::default()
            };
        }
        collected.restarted = claims.restarted;
        collected.heard = cx.now;
        collected.count = collected.count.max(claims.parts);
        collected.parts.insert(claims.part, claims.held);
        collected.owed.extend(claims.owed);
        if !collected.is_whole() && !one_part {
            return;
        }
        self.rejoin.waiting.remove(&from);
        if self.rejoin.waiting.is_empty() {
            let all = core::mem::take(&mut self.rejoin.collected);
            self.rejoin.resolving = Some(Resolving::new(all));
            self.resolve_slice(cx);
        }
    }

    /// A shard has restarted while this home goes on: deals with the next part of its claims, and
    /// tells it which of them stand.
    fn judge(&mut self, cx: &mut Context<'_>, from: ShardId, incarnation: u32, claims: &Claims) {
        let mut judging = self.rejoin.judging.remove(&from).unwrap_or_default();
        if (judging.incarnation, judging.round) != (incarnation, claims.round) {
            self.rejoin.verdicts.retain(|unsaid| unsaid.to != from);
            let same_life = judging.incarnation == incarnation;
            judging = Judging {
                incarnation,
                round: claims.round,
                next: 0,
                joined: judging.joined.filter(|_| same_life),
            };
        }
        if claims.part != judging.next {
            self.rejoin.judging.insert(from, judging);
            return;
        }
        judging.next += 1;
        let ended = claims.parts > 0;
        if self.rejoin.joined.get(&from).copied().unwrap_or(0) < incarnation {
            let upto = claims.held.last().map(|claim| &claim.key);
            let upto = upto.filter(|_| !ended).cloned();
            if ended {
                self.rejoin.joined.insert(from, incarnation);
            }
            if ended || upto > judging.joined {
                let rows = (judging.joined.take(), upto.clone());
                self.join(cx, from, &rows, &claims.held);
                judging.joined = upto;
            }
        }
        if !ended {
            self.rejoin.judging.insert(from, judging);
        }
        let about = (claims.round, claims.part, ended);
        self.send_verdicts(cx, from, incarnation, about, &claims.held);
    }

    /// What a restarted shard has lost of `rows` (behind the first key, up to the second) goes back
    /// to the backups.
    fn join(&mut self, cx: &mut Context<'_>, from: ShardId, rows: &Rows, claims: &[Claim]) {
        if printed!(self, LeapOwnerIgnored) {
            return;
        }
        let claims: BTreeMap<&Key, (Otag, Holding)> = claims
            .iter()
            .map(|claim| (&claim.key, (claim.otag, claim.holding)))
            .collect();
        let owned = |key: &Key, otag: Otag| claims.get(key) == Some(&(otag, Holding::Owned));
        for (key, entry) in self.home.table.range_mut(bounds(rows)) {
            cx.counters.units += 1;
            if entry.owner == Some(from) {
                // What it claims of an earlier time does not count.
                let claim = claims.get(key);
                entry.lost = claim.is_none_or(|(otag, _)| *otag < entry.since);
            }
        }
        self.join_coming(cx, from, rows, &owned);
        self.join_there(cx, from, rows, &claims);
    }

    /// What was on its way to the restarted shard.
    fn join_coming(
        &mut self,
        cx: &mut Context<'_>,
        from: ShardId,
        rows: &Rows,
        owned: &dyn Fn(&Key, Otag) -> bool,
    ) {
        let coming = self.home.grants.iter();
        let coming =
            coming.filter(|(_, grant)| grant.to == from && bounds(rows).contains(&grant.key));
        let coming: Vec<(Otag, Key)> = coming.map(|(o, grant)| (o, grant.key.clone())).collect();
        for (otag, key) in coming {
            if owned(&key, otag) {
                self.transferred(cx, otag);
                self.settle(cx, otag, true);
            } else {
                let grant = self.home.grants.get_mut(otag).expect("just listed");
                grant.cancel = true;
                self.grant_refused(cx, otag);
            }
        }
    }

    /// What the restarted shard owned.
    fn join_there(
        &mut self,
        cx: &mut Context<'_>,
        from: ShardId,
        rows: &Rows,
        claims: &BTreeMap<&Key, (Otag, Holding)>,
    ) {
        let owned = |key: &Key, otag: Otag| claims.get(key) == Some(&(otag, Holding::Owned));
        let there = self.home.table.range(bounds(rows));
        let there = there.filter(|(_, entry)| entry.owner == Some(from));
        let there: Vec<(Key, Otag, Option<Otag>)> = there
            .map(|(key, e)| (key.clone(), e.otag, e.grant))
            .collect();
        for (key, otag, grant) in there {
            if owned(&key, otag) {
                self.settle(cx, otag, true);
            }
            let released = grant.is_some_and(|grant| {
                matches!(claims.get(&key), Some((otag, Holding::Released(_))) if *otag == grant)
            });
            match grant {
                // It is to be given back already.
                Some(grant) if self.home.grants[grant].to == from => {}
                Some(grant) => {
                    let state = self
                        .home
                        .grants
                        .get_mut(grant)
                        .expect("an entry names its grant");
                    state.cancel = !released;
                    self.home.grants.hear(grant, cx.now);
                    self.send_transfer(cx, grant);
                }
                None if owned(&key, otag) => {}
                None => {
                    // Lost, or known to it under an older grant only.
                    let lost = self.home.table[&key].lost;
                    let backup = if lost {
                        self.home.backup_of(&key)
                    } else {
                        from
                    };
                    self.reclaim(cx, key, backup);
                }
            }
        }
    }

    /// Tells a restarted shard which claims of a part (round, part, whether it is the last) stand.
    pub(crate) fn send_verdicts(
        &mut self,
        cx: &mut Context<'_>,
        to: ShardId,
        incarnation: u32,
        (round, part, last): (u64, u32, bool),
        claims: &[Claim],
    ) {
        let (mut drop, mut later) = (Vec::new(), Vec::new());
        for claim in claims {
            let (key, otag) = (&claim.key, claim.otag);
            let entry = self.home.table.get(key);
            let moving = self.home.grant_of(key).is_some_and(|(_, g)| g.from == to);
            let queued = self.home.reclaims_for(key, to);
            let backup = self.home.kept_backup_of(key) == Some(to);
            let stands = entry.is_some_and(|e| e.owner == Some(to) && e.otag == otag);
            match claim.holding {
                _ if moving || backup || queued => later.push((key.clone(), otag)),
                Holding::Owned if stands => {}
                Holding::Owned | Holding::Released(_) => drop.push((key.clone(), otag)),
            }
        }
        let verdicts = Verdicts {
            to_incarnation: incarnation,
            round,
            part,
            last,
            drop,
            later,
            floor: self.home.floor(cx.incarnation),
        };
        self.post(cx, to, Body::Verdicts(Box::new(verdicts)), Self::NOTHING);
    }

    pub(crate) fn on_verdicts(&mut self, cx: &mut Context<'_>, home: ShardId, verdicts: Verdicts) {
        if verdicts.to_incarnation != cx.incarnation || !self.rejoin.awaited.contains(&home) {
            return;
        }
        let judged = self.rejoin.judged.entry(home).or_default();
        if judged.round != verdicts.round {
            *judged = Judged {
                round: verdicts.round,
                ..Judged::default()
            };
        }
        if judged.next != verdicts.part {
            return;
        }
        judged.next += 1;
        let later = verdicts.later.into_iter().map(|(key, _)| key);
        judged.later.extend(later);
        self.requester.seen(home).raise(verdicts.floor);
        for (key, otag) in verdicts.drop {
            self.drop_backup(cx, key, otag);
        }
        if !verdicts.last {
            return;
        }
        self.rejoin.awaited.remove(&home);
        let judged = self.rejoin.judged.remove(&home).expect("just looked up");
        let later = judged.later;
        let homes = &self.homes;
        for (key, held) in &mut self.owner.held {
            let same = homes[usize::from(key.slot.0) % homes.len()] == home;
            if let Tenure::Owned { confirmed } = &mut held.tenure
                && same
            {
                *confirmed |= !later.contains(key);
                if !*confirmed {
                    self.rejoin.undecided.insert(key.clone());
                }
            }
        }
        if !self.rejoin.undecided.is_empty() {
            self.owner.backups.arm(cx.now);
        }
        self.apply_collected(cx);
        self.wake_gate();
    }

    /// Claims that were left open and still are, by home: it is asked about them as about backups,
    /// because what it decides in the end it says only once, or only to the one that gets the row.
    pub(crate) fn still_undecided(&mut self) -> Vec<(ShardId, Key, Otag)> {
        let held = &self.owner.held;
        let open = |key: &Key| {
            let held = held.get(key)?;
            (held.tenure == Tenure::Owned { confirmed: false }).then_some(held.otag)
        };
        self.rejoin.undecided.retain(|key| open(key).is_some());
        let undecided = self.rejoin.undecided.iter();
        let undecided = undecided.filter_map(|key| Some((key, open(key)?)));
        undecided
            .map(|(key, otag)| (self.home(key.slot), key.clone(), otag))
            .collect()
    }

    /// Whether requests of a shard may be dealt with: what it owned in its former life is known.
    pub(crate) fn serves(&self, from: ShardId, incarnation: u32) -> bool {
        let joined = self.rejoin.joined.get(&from).copied().unwrap_or(1);
        self.rejoin.serving && (from == self.shard || joined >= incarnation)
    }

    /// Whether a shard may be asked for rows: it is in the life whose claims were dealt with.
    pub(crate) fn has_joined(&self, shard: ShardId) -> bool {
        let life = if self.is_remote(shard) {
            self.peers.life(shard.node())
        } else {
            self.incarnation
        };
        self.serves(shard, life)
    }
}
