//! A restarted home decides which shard has which row: every shard has claimed, and the largest
//! grant of a row wins. A turn takes a slice of the claims. The home serves nothing before the end.

use crate::checkpoint::Former;
use crate::home::Entry;
use crate::roles::Collected;
use crate::{Cx, Leap, printed};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::{Key, ShardId};
use journal::{Held as Claim, Holding, Otag};

/// The best claim of a row: its grant, whether its shard owns it or backs it up, and the shard.
#[derive(Clone, Copy, Debug)]
struct Best {
    otag: Otag,
    owned: bool,
    shard: ShardId,
}

/// How far the decision has come.
#[derive(Debug)]
pub(crate) struct Resolving {
    all: BTreeMap<ShardId, Collected>,
    /// Number of claims of this home's own former life that were looked at.
    own: usize,
    /// Part of the claims of other shards that was looked at last.
    upto: Option<(ShardId, u32)>,
    /// The best claims so far. After the last claim they go into the owner table from the front.
    best: BTreeMap<Key, Best>,
    /// Rows of which their best claimant is only the backup.
    reclaimed: Vec<(Key, ShardId)>,
}

/// Verdicts that were not sent yet, about a part of the claims of a restarted shard.
#[derive(Debug)]
pub(crate) struct Unsaid {
    pub(crate) to: ShardId,
    incarnation: u32,
    round: u64,
    part: u32,
    last: bool,
    claims: Vec<Claim>,
}

impl Resolving {
    pub(crate) fn new(all: BTreeMap<ShardId, Collected>) -> Resolving {
        Resolving {
            all,
            own: 0,
            upto: None,
            best: BTreeMap::new(),
            reclaimed: Vec::new(),
        }
    }

    /// Looks at about `left` more claims, and counts them down. Returns whether none remain.
    fn gather(&mut self, here: ShardId, former: &Former, left: &mut usize) -> bool {
        let own = &former.own[self.own..];
        let own = &own[..own.len().min(*left)];
        self.own += own.len();
        *left -= own.len();
        own.iter()
            .for_each(|claim| add(&mut self.best, here, claim));
        if self.own < former.own.len() {
            return false;
        }
        let upto = self.upto;
        let parts = self.all.iter().flat_map(|(shard, collected)| {
            let parts = collected.parts.iter();
            parts.map(|(part, claims)| ((*shard, *part), claims))
        });
        for (at, claims) in parts.skip_while(|(at, _)| upto.is_some_and(|upto| *at <= upto)) {
            if *left == 0 {
                return false;
            }
            *left = left.saturating_sub(claims.len());
            self.upto = Some(at);
            let admitted = claims.iter();
            let admitted = admitted.filter(|c| former.checkpoint.admits(&c.key, c.otag));
            admitted.for_each(|claim| add(&mut self.best, at.0, claim));
        }
        true
    }
}

/// Keeps the better claim: under the larger grant; of two under one grant, the owner's.
fn add(best: &mut BTreeMap<Key, Best>, shard: ShardId, claim: &Claim) {
    let new = Best {
        otag: claim.otag,
        owned: claim.holding == Holding::Owned,
        shard,
    };
    match best.get_mut(&claim.key) {
        Some(known) if (new.otag, new.owned) > (known.otag, known.owned) => *known = new,
        Some(_) => {}
        None => drop(best.insert(claim.key.clone(), new)),
    }
}

impl Leap {
    /// Goes on deciding claims of this home's rows, and sending verdicts to restarted shards.
    pub(crate) fn resolve_slice(&mut self, cx: &mut Cx<'_>) {
        let most = self.settings.slice_units as usize;
        let mut left = most;
        if let Some(mut resolving) = self.rejoin.resolving.take() {
            let all = self.resolve_some(cx, &mut resolving, &mut left);
            if all || printed!(self, LeapServesHalfResolved) {
                self.resolved(cx, resolving);
            } else {
                self.rejoin.resolving = Some(resolving);
            }
        }
        while left > 0
            && let Some(unsaid) = self.rejoin.verdicts.pop_front()
        {
            left = left.saturating_sub(unsaid.claims.len().max(1));
            let about = (unsaid.round, unsaid.part, unsaid.last);
            self.send_verdicts(cx, unsaid.to, unsaid.incarnation, about, &unsaid.claims);
        }
        cx.counters.units += (most - left) as u64;
    }

    /// Puts decided rows into the owner table. Returns whether the table is complete.
    fn resolve_some(
        &mut self,
        cx: &mut Cx<'_>,
        resolving: &mut Resolving,
        left: &mut usize,
    ) -> bool {
        let former: Arc<Former> = self.rejoin.former.clone();
        if !resolving.gather(self.shard, &former, left) {
            return false;
        }
        while *left > 0
            && let Some((key, best)) = resolving.best.pop_first()
        {
            *left -= 1;
            if best.shard == self.shard {
                continue;
            }
            cx.store.evict(&key);
            if !best.owned {
                resolving.reclaimed.push((key.clone(), best.shard));
            }
            let entry = Entry::new(Some(best.shard), best.otag, 1);
            self.home.table.insert(key, entry);
        }
        resolving.best.is_empty()
    }

    /// The owner table is complete: from here on this home serves its rows.
    fn resolved(&mut self, cx: &mut Cx<'_>, resolving: Resolving) {
        self.rejoin.serve();
        let mut all_owed = Vec::new();
        for (shard, collected) in resolving.all {
            self.rejoin.join(shard, collected.incarnation);
            all_owed.extend(collected.owed);
            if !collected.restarted {
                continue;
            }
            let parts = collected.parts.len() as u32;
            let unsaid = collected.parts.into_iter().map(|(part, claims)| Unsaid {
                to: shard,
                incarnation: collected.incarnation,
                round: collected.round,
                part,
                last: part + 1 == parts,
                claims,
            });
            self.rejoin.verdicts.extend(unsaid);
        }
        for owed in all_owed {
            if !printed!(self, LeapFormulaLost) {
                self.pendings.collect(owed);
            }
        }
        self.apply_collected(cx);
        for (key, backup) in resolving.reclaimed {
            self.reclaim(cx, key, backup);
        }
        self.wake_gate();
    }
}
