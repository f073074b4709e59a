//! After a restart: what remains, and how the shards agree again which shard owns which row.
//!
//! ```text
//! restarted home    Ask ──> all shards           serves nothing of its slots
//!                   <── Claims                    (a shard that claims accepts no older grant)
//!                   the largest grant wins        then it serves
//! restarted owner   Claims(restarted) ──> homes   serves nothing of theirs
//!                   <── Verdicts                  then it serves what stands
//! ```

use crate::checkpoint::{Former, claim_of};
use crate::message::{Body, Claims, Verdicts};
use crate::owner::{Held, Tenure};
use crate::resolve::Resolving;
use crate::roles::{Rows, bounds};
use crate::{Cx, Leap, printed};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::{IndexId, Key, ShardId, Slot, Ts};
use core::ops::{Bound, ControlFlow, RangeBounds};
use journal::{Held as Claim, Holding, Otag, Ownership};
use store::{Store, Window};

/// Pause before a shard claims again, in microseconds for each row that it has of other homes: the
/// homes deal with the claims meanwhile.
const CLAIM_US: u64 = 2;

impl Leap {
    /// Continues what a former life of this shard owned.
    ///
    /// Rows of the store that belong elsewhere and were not owned are removed, if `moves` names
    /// their index. Rows of other indexes belong to other protocols.
    pub(crate) fn recover_rows(
        &mut self,
        cx: &mut Cx<'_>,
        ownership: Ownership,
        moves: &dyn Fn(IndexId) -> bool,
    ) {
        self.incarnation = cx.incarnation;
        self.placement.clone_from(cx.placement);
        // Late answers to a former life find no number of this life.
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
        let shards = self.placement.shards().iter().copied();
        let others: BTreeSet<ShardId> = shards.filter(|shard| *shard != self.shard).collect();
        if cx.incarnation <= 1 || others.is_empty() {
            self.rejoin.serve();
            self.apply_collected(cx);
            return;
        }
        let serves = printed!(self, LeapHomeServesAtOnce);
        self.rejoin.begin(others, serves);
        self.rejoin_again(cx);
    }

    /// Removes rows of the indexes that `moves` names which belong elsewhere and are not held here.
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

    /// Asks other shards for their claims and claims rows of theirs, for the first time or again.
    pub(crate) fn rejoin_again(&mut self, cx: &mut Cx<'_>) {
        self.rejoin.again.stop();
        self.fail_gated(cx);
        let pause_us = self.settings.resend_us;
        let Some((asked, told)) = self.rejoin.open(cx.now, pause_us) else {
            return;
        };
        for shard in asked {
            self.say(cx, shard, Body::Ask);
        }
        for shard in told {
            self.start_claims(cx, shard, 0);
        }
        let many_us = CLAIM_US * self.owner.held.len() as u64;
        self.rejoin.again.set(cx.now.after(pause_us + many_us));
    }

    /// Begins to tell a home what this shard has of its rows, unless that is under way. These rows
    /// neither come nor go meanwhile, because the home, or this shard, has just restarted.
    fn start_claims(&mut self, cx: &mut Cx<'_>, home: ShardId, expected: u32) {
        let round = self.next_number + 1;
        if !self.rejoin.begin_claims(home, expected, round) {
            return;
        }
        self.next_number = round;
        self.claim_slice(cx, home);
    }

    /// Sends the next slice of the claims that are under way.
    pub(crate) fn claim(&mut self, cx: &mut Cx<'_>) {
        if let Some(home) = self.rejoin.next_claimed() {
            self.claim_slice(cx, home);
        }
    }

    /// Tells a home of the next rows. The records of arrivals and departures must be durable first:
    /// the home relies on the claims, and this shard must claim the same after a crash.
    fn claim_slice(&mut self, cx: &mut Cx<'_>, home: ShardId) {
        let Some(mut claiming) = self.rejoin.take_claims(home) else {
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
            let claims = claiming.next_part(ended, held, owed);
            let wait = self.recorded.max(committed);
            self.post(cx, home, Body::Claims(Box::new(claims)), wait);
        }
        if !ended {
            claiming.upto = last;
            self.rejoin.put_claims(home, claiming);
        }
    }

    /// A home has restarted. From here on this shard accepts no grant of the home's former lives.
    pub(crate) fn on_ask(&mut self, cx: &mut Cx<'_>, home: ShardId, incarnation: u32) {
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
        if doubtful && self.rejoin.await_verdicts(home) {
            // The former life of the home had not decided.
            let at = cx.now.after(self.settings.resend_us);
            self.rejoin.again.set_once(at);
        }
        self.start_claims(cx, home, incarnation);
    }

    pub(crate) fn on_claims(
        &mut self,
        cx: &mut Cx<'_>,
        from: ShardId,
        incarnation: u32,
        claims: Claims,
    ) {
        if claims.expected != 0 && claims.expected != cx.incarnation {
            return;
        }
        if self.rejoin.is_answered(from, incarnation, &claims) {
            return;
        }
        if self.rejoin.is_serving() {
            self.judge(cx, from, incarnation, &claims);
            return;
        }
        let one_part = printed!(self, LeapClaimsOfOnePart);
        let all = self
            .rejoin
            .collect(from, incarnation, claims, cx.now, one_part);
        if let Some(all) = all {
            self.rejoin.resolving = Some(Resolving::new(all));
            self.resolve_slice(cx);
        }
    }

    /// A shard has restarted while this home goes on: the home deals with the next part of its
    /// claims, and answers which of them stand.
    fn judge(&mut self, cx: &mut Cx<'_>, from: ShardId, incarnation: u32, claims: &Claims) {
        let Some(rows) = self.rejoin.judge(from, incarnation, claims) else {
            return;
        };
        if let Some(rows) = rows {
            self.join(cx, from, &rows, &claims.held);
        }
        let about = (claims.round, claims.part, claims.parts > 0);
        self.send_verdicts(cx, from, incarnation, about, &claims.held);
    }

    /// Gives what a restarted shard has lost of `rows` back to the backups.
    fn join(&mut self, cx: &mut Cx<'_>, from: ShardId, rows: &Rows, claims: &[Claim]) {
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
                // A claim under a grant older than `since` does not count.
                let claim = claims.get(key);
                entry.lost = claim.is_none_or(|(otag, _)| *otag < entry.since);
            }
        }
        self.join_coming(cx, from, rows, &owned);
        self.join_there(cx, from, rows, &claims);
    }

    /// Settles or cancels the grants of rows that were on their way to the restarted shard.
    fn join_coming(
        &mut self,
        cx: &mut Cx<'_>,
        from: ShardId,
        rows: &Rows,
        owned: &dyn Fn(&Key, Otag) -> bool,
    ) {
        let coming = self.home.grants.iter();
        let coming =
            coming.filter(|(_, grant)| grant.want.to == from && bounds(rows).contains(&grant.key));
        let coming: Vec<(Otag, Key)> = coming.map(|(o, grant)| (o, grant.key.clone())).collect();
        for (otag, key) in coming {
            if owned(&key, otag) {
                self.transferred(cx, otag);
                self.settle(cx, otag, true);
            } else {
                let grant = &mut self.home.grants[otag];
                grant.cancel = true;
                self.grant_refused(cx, otag);
            }
        }
    }

    /// Confirms or reclaims the rows that the restarted shard owned.
    fn join_there(
        &mut self,
        cx: &mut Cx<'_>,
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
                // The row is to be given back to this shard already.
                Some(grant) if self.home.grants[grant].want.to == from => {}
                Some(grant) => {
                    let state = &mut self.home.grants[grant];
                    // A cancellation that is on its way already cannot be called back.
                    state.cancel |= !released;
                    self.home.grants.hear(grant, cx.now);
                    self.send_transfer(cx, grant);
                }
                None if owned(&key, otag) => {}
                None => {
                    // The shard has lost the row, or claims the row under an older grant only.
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
        cx: &mut Cx<'_>,
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
        self.say(cx, to, Body::Verdicts(Box::new(verdicts)));
    }

    pub(crate) fn on_verdicts(&mut self, cx: &mut Cx<'_>, home: ShardId, verdicts: Verdicts) {
        let mine = verdicts.to_incarnation == cx.incarnation;
        if !mine || !self.rejoin.awaits_verdicts(home) || !self.rejoin.hear(home, &verdicts) {
            return;
        }
        self.requester.seen(home).raise(verdicts.floor);
        for (key, otag) in verdicts.drop {
            self.drop_backup(cx, key, otag);
        }
        if !verdicts.last {
            return;
        }
        let later = self.rejoin.end_verdicts(home);
        let placement = &self.placement;
        for (key, held) in &mut self.owner.held {
            let same = placement.home(key.slot) == home;
            if let Tenure::Owned { confirmed } = &mut held.tenure
                && same
            {
                *confirmed |= !later.contains(key);
                if !*confirmed {
                    self.rejoin.leave_open(key.clone());
                }
            }
        }
        if self.rejoin.has_undecided() {
            self.owner.backups.arm(cx.now);
        }
        self.apply_collected(cx);
        self.wake_gate();
    }

    /// Claims that their homes still leave open. The shard asks about them as about backups: a home
    /// tells its decision only once, or only to the shard that gets the row.
    pub(crate) fn still_undecided(&mut self) -> Vec<(ShardId, Key, Otag)> {
        let held = &self.owner.held;
        let open = |key: &Key| {
            let held = held.get(key)?;
            (held.tenure == Tenure::Owned { confirmed: false }).then_some(held.otag)
        };
        let (placement, undecided) = (&self.placement, self.rejoin.undecided(open));
        undecided
            .map(|(key, otag)| (placement.home(key.slot), key.clone(), otag))
            .collect()
    }

    /// Whether requests of a shard may be dealt with: this home knows what its former life owned.
    pub(crate) fn serves(&self, from: ShardId, incarnation: u32) -> bool {
        let own = from == self.shard && self.rejoin.is_serving();
        own || self.rejoin.serves(from, incarnation)
    }

    /// Whether a shard may be asked for rows: its claims of the present life were dealt with.
    pub(crate) fn has_joined(&self, shard: ShardId) -> bool {
        let life = if self.is_remote(shard) {
            self.peers.life(shard.node())
        } else {
            self.incarnation
        };
        self.serves(shard, life)
    }
}
