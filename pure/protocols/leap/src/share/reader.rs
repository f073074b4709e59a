//! The reader's side of copies: they come, are relied on, and go when their home wants them back.

use super::{Copied, Recalling};
use crate::job::acquire_row;
use crate::message::{Body, Recall, Recalled, Share};
use crate::{Cx, Leap, printed};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{Key, ShardId, TxnId};
use journal::Otag;
use txn::lock::{Item, Settled};
use txn::{AbortReason, LockMode};

impl Leap {
    /// Whether there is a copy. Notes a transaction, which has the row's shared lock, as its user.
    pub(crate) fn uses_copy(&mut self, txn: TxnId, key: &Key) -> bool {
        if self.sharing.copies.is_empty() {
            return false;
        }
        let Some(copy) = self.sharing.copies.get_mut(key) else {
            return false;
        };
        if !copy.users.contains(&txn) {
            if copy.users.len() >= 16 {
                let txns = &self.coord.txns;
                copy.users
                    .retain(|user| txns.get(user).is_some_and(|state| state.outcome.is_none()));
            }
            copy.users.push(txn);
        }
        true
    }

    /// A copy has come.
    pub(crate) fn on_share(&mut self, cx: &mut Cx<'_>, home: ShardId, share: Share) {
        let seen = self.requester.seen(home);
        if share.to_incarnation != cx.incarnation || seen.is_over(share.tag) {
            return;
        }
        seen.end(share.tag, ());
        // Late: its home may have given a newer copy, and taken that back in place of this one.
        if self.requester.requests.get(share.seq).is_none() {
            return;
        }
        let Share {
            tag,
            seq,
            key,
            version,
            position,
            ..
        } = share;
        if (cx.schema_changed)(key.index).is_some() {
            let ts = version.commit_ts;
            cx.store.evict(&key);
            if let Some(row) = &version.row {
                cx.store
                    .restore(&key, ts, Some(row), cx.horizons.of(key.index));
            }
            if position > cx.durable {
                self.installed.insert(ts, position);
            }
        }
        let copy = Copied {
            tag,
            since: version.commit_ts,
            users: Vec::new(),
            recall: None,
        };
        self.sharing.copies.insert(key, copy);
        self.moves.copied += 1;
        if let Some(request) = self.requester.requests.get(seq) {
            let (txn, depth) = (request.priority.txn, request.depth);
            let hops = 2 * u32::from(self.is_remote(home));
            if let Some(state) = self.coord.open(txn) {
                state.cost.delays = state.cost.delays.max(depth + hops);
                state.cost.messages_on_path += hops / 2 * cx.out.frames.came();
                state.note_node(home);
            }
        }
        self.end_request(seq);
    }

    pub(crate) fn on_recall(&mut self, cx: &mut Cx<'_>, home: ShardId, recall: Recall) {
        let Recall { key, tag, priority } = recall;
        // A copy of this tag that comes later does not count.
        self.requester.seen(home).end(tag, ());
        let pending = match self.sharing.copies.get(&key) {
            Some(copy) if copy.tag <= tag => copy.recall,
            // The copy has not come, or is gone.
            Some(_) | None => {
                self.answer_recall(cx, home, key, tag, priority.txn, None);
                return;
            }
        };
        let pending = pending.and_then(|id| self.sharing.recalling.get(&id));
        if pending.is_some_and(|pending| pending.priority.txn == priority.txn) {
            return;
        }
        let id = self.jobs.next_number();
        let copy = self.sharing.copies.get_mut(&key).expect("looked up above");
        copy.recall = Some(id);
        let item = Item::of(&key);
        if self.locks.holds(priority.txn, &item, LockMode::Exclusive) {
            // The writer runs here and has requested the row.
            if let Some(request) = self.requester.wanted(&key)
                && request.priority.txn == priority.txn
            {
                request.gave_copy_up = true;
            }
            self.drop_copy(cx, &key);
            self.answer_recall(cx, home, key, tag, priority.txn, None);
            return;
        }
        let recalling = Recalling {
            home,
            key,
            tag,
            priority,
        };
        self.sharing.recalling.insert(id, recalling);
        self.lock_recall(cx, id);
    }

    pub(super) fn lock_recall(&mut self, cx: &mut Cx<'_>, id: u64) {
        let Some(recalling) = self.sharing.recalling.get(&id) else {
            return;
        };
        let (priority, key, mode) = (recalling.priority, &recalling.key, LockMode::Exclusive);
        if let Some(settled) = acquire_row(&mut self.locks, cx, priority, key, mode, id) {
            self.on_recall_lock(cx, id, settled);
        }
    }

    pub(super) fn on_recall_lock(&mut self, cx: &mut Cx<'_>, id: u64, settled: Settled) {
        let Some(recalling) = self.sharing.recalling.remove(&id) else {
            return;
        };
        let Recalling { home, tag, .. } = recalling;
        let (key, priority) = (recalling.key, recalling.priority);
        let copy = self.sharing.copies.get_mut(&key);
        let copy = copy.filter(|copy| copy.tag <= tag);
        let refused = match settled {
            Settled::Granted => {
                if copy.is_some() && !printed!(self, LeapCopyKept) {
                    self.drop_copy(cx, &key);
                }
                self.locks.release_item(priority.txn, &Item::of(&key));
                None
            }
            Settled::Died(conflict) => {
                if let Some(copy) = copy.filter(|copy| copy.recall == Some(id)) {
                    copy.recall = None;
                }
                let (key, holder) = (conflict.key, conflict.holder);
                Some(AbortReason::Die { key, holder })
            }
            Settled::TimedOut(_) => unreachable!("it has no deadline"),
        };
        self.answer_recall(cx, home, key, tag, priority.txn, refused);
    }

    fn answer_recall(
        &mut self,
        cx: &mut Cx<'_>,
        home: ShardId,
        key: Key,
        tag: Otag,
        writer: TxnId,
        refused: Option<AbortReason>,
    ) {
        let recalled = Recalled {
            key,
            tag,
            writer,
            refused,
        };
        // The message tells this shard's clock: the writer commits above all reads here.
        self.say(cx, home, Body::Recalled(Box::new(recalled)));
    }

    fn drop_copy(&mut self, cx: &mut Cx<'_>, key: &Key) -> Option<Copied> {
        let copy = self.sharing.copies.remove(key)?;
        cx.store.evict(key);
        Some(copy)
    }

    /// A home has restarted and knows of no copies: drops them, and rolls their users back.
    pub(crate) fn drop_copies_of(&mut self, cx: &mut Cx<'_>, home: ShardId) {
        let copies = self.sharing.copies.iter();
        let copies = copies.filter(|(key, _)| self.home(key.slot) == home);
        let copies: Vec<Key> = copies.map(|(key, _)| key.clone()).collect();
        for key in copies {
            let copy = self.drop_copy(cx, &key);
            for txn in copy.into_iter().flat_map(|copy| copy.users) {
                self.abort_txn(cx, txn, AbortReason::ParticipantLost(home));
            }
        }
    }
}
