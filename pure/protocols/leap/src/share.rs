//! Copies of rows that are read much and seldom written (L8).
//!
//! A row at home may be *lent*: other shards get copies, under which their transactions take shared
//! locks of their own. Copies are no owners, and a restarted shard has none. Whoever wants to write
//! the row, or to take it away, waits until every copy is gone:
//!
//! ```text
//! reader ──OwnerRequest(shared)──> home          shared lock for a moment
//!        <──Share(tag, version)───               leaves when the version is durable
//! home   ──Recall(tag)──> every reader           in the name of the writer, which has its lock
//!        <──Recalled─────                        nobody there holds the row, the copy is gone
//!        <──Recalled(refused)──                  an older one holds it: the writer dies
//! ```
//!
//! There are no leases: a reader whose node is away keeps the writer waiting until it is back, or
//! has restarted. A restarted home has lent nothing: each shard drops its copies, and ends the
//! transactions that rely on them, before it answers the home's question what it owns. A row that
//! is away when it is to be lent is brought home first.

use crate::gather::keys_of;
use crate::home::{Grant, Incoming};
use crate::message::{Body, MovedVersion, Recall, Recalled, Refused, Share};
use crate::timers::Timer;
use crate::{Context, Leap};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{IndexId, Key, NodeId, ShardId, Ts, TxnId};
use journal::Otag;
use txn::lock::{Acquired, Item, LockRequest, Settled};
use txn::{AbortReason, LockMode, OpError, Priority};

/// Reads count up to here; a write takes half of them away.
const READS_MAX: u32 = 64;

/// Rows whose reads are counted.
const REMEMBERED_MAX: usize = 10_000;

/// A shard with a copy.
#[derive(Clone, Copy, Debug)]
struct Reader {
    tag: Otag,
    incarnation: u32,
}

/// Who waits until a row is not lent any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Writer {
    /// A job that wants to write.
    Job(u64),
    /// The row is to leave.
    Release(u64),
}

/// A row of this home that others have copies of.
#[derive(Debug, Default)]
struct Lent {
    readers: BTreeMap<ShardId, Reader>,
    /// In whose name the copies are called back, and who waits for that.
    recall: Option<(Priority, Vec<Writer>)>,
}

/// A copy of a row that lives at its home.
#[derive(Debug)]
struct Copied {
    tag: Otag,
    /// Transactions of this shard that rely on it; some have ended.
    users: Vec<TxnId>,
    /// The lock request by which it is called back.
    recall: Option<u64>,
}

/// A recall that waits for transactions of this shard.
#[derive(Debug)]
struct Recalling {
    home: ShardId,
    key: Key,
    tag: Otag,
    priority: Priority,
}

/// A copy that waits for the shared lock at home.
#[derive(Debug)]
struct Lending {
    key: Key,
    to: ShardId,
    seq: u64,
    priority: Priority,
}

/// Copies that a shard has given and got.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    /// How often rows of this home were wanted for reading, less the writes.
    reads: BTreeMap<Key, u32>,
    lent: BTreeMap<Key, Lent>,
    lending: BTreeMap<u64, Lending>,
    copies: BTreeMap<Key, Copied>,
    recalling: BTreeMap<u64, Recalling>,
    armed: bool,
}

impl Sharing {
    /// A transaction is about to write the row, or another shard takes it away to write it.
    #[inline]
    pub(crate) fn note_write(&mut self, key: &Key) {
        if !self.reads.is_empty()
            && let Some(reads) = self.reads.get_mut(key)
        {
            *reads /= 2;
        }
    }

    fn note_read(&mut self, key: &Key) -> u32 {
        if self.reads.len() >= REMEMBERED_MAX {
            self.reads.clear();
        }
        let reads = self.reads.entry(key.clone()).or_insert(0);
        *reads = (*reads + 1).min(READS_MAX);
        *reads
    }

    #[inline]
    pub(crate) fn is_lent(&self, key: &Key) -> bool {
        !self.lent.is_empty() && self.lent.contains_key(key)
    }

    #[inline]
    pub(crate) fn has_copy(&self, key: &Key) -> bool {
        !self.copies.is_empty() && self.copies.contains_key(key)
    }

    pub(crate) fn lent_count(&self) -> usize {
        self.lent.len()
    }

    pub(crate) fn copy_count(&self) -> usize {
        self.copies.len()
    }

    /// The rows that this shard has copies of.
    pub(crate) fn copied(&self) -> impl Iterator<Item = &Key> {
        self.copies.keys()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.lending.is_empty()
            && self.recalling.is_empty()
            && self.lent.values().all(|lent| lent.recall.is_none())
    }

    /// Rows of an index that are lent.
    pub(crate) fn lent_of(&self, index: IndexId) -> impl Iterator<Item = &Key> {
        keys_of(&self.lent, index)
    }

    /// No row of the index is lent, or copied here, or about to be.
    pub(crate) fn is_unshared(&self, index: IndexId) -> bool {
        let mut lending = self.lending.values();
        keys_of(&self.lent, index).next().is_none()
            && keys_of(&self.copies, index).next().is_none()
            && !lending.any(|lending| lending.key.index == index)
    }

    /// The index is gone.
    pub(crate) fn forget_index(&mut self, index: IndexId) {
        self.reads.retain(|key, _| key.index != index);
        self.copies.retain(|key, _| key.index != index);
        self.lent
            .retain(|key, lent| key.index != index || lent.recall.is_some());
    }
}

impl Leap {
    /// Whether a transaction that has the row's shared lock here may read it: there is a copy.
    pub(crate) fn uses_copy(&mut self, txn: TxnId, key: &Key) -> bool {
        if self.sharing.copies.is_empty() {
            return false;
        }
        let Some(copy) = self.sharing.copies.get_mut(key) else {
            return false;
        };
        if !copy.users.contains(&txn) {
            if copy.users.len() >= 16 {
                let txns = &self.txns;
                copy.users
                    .retain(|user| txns.get(user).is_some_and(|state| state.outcome.is_none()));
            }
            copy.users.push(txn);
        }
        true
    }

    /// Somebody wants to read a row of this home: whether it should be lent rather than moved.
    pub(crate) fn lends(&mut self, cx: &Context<'_>, key: &Key) -> bool {
        let least = self.settings.share_after;
        let enough = least > 0 && self.sharing.note_read(key) >= least;
        if !enough {
            return false;
        }
        // Absence is not lent.
        self.table.contains_key(key)
            || cx
                .store
                .get(key.index, key.slot, &key.bytes, Ts::MAX)
                .is_some()
    }

    /// It is the turn of a reader, and the row is at home.
    pub(crate) fn begin_lend(
        &mut self,
        cx: &mut Context<'_>,
        to: ShardId,
        seq: u64,
        incoming: &Incoming,
    ) {
        let id = self.new_job();
        let (key, priority) = (incoming.key.clone(), incoming.priority);
        let acquired = self.locks.acquire(LockRequest {
            txn: priority,
            item: Item::of(&key),
            mode: LockMode::Shared,
            alone: false,
            ordered: false,
            deadline: None,
            now: cx.now,
            request: id,
        });
        let lending = Lending {
            key,
            to,
            seq,
            priority,
        };
        self.sharing.lending.insert(id, lending);
        match acquired {
            Acquired::Granted => self.on_lend_lock(cx, id, Settled::Granted),
            Acquired::Waiting => cx.counters.lock_waits += 1,
            Acquired::Died(conflict) => self.on_lend_lock(cx, id, Settled::Died(conflict)),
        }
    }

    /// Whether a lock request belongs to this module; then its end is dealt with.
    pub(crate) fn settle_share(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        settled: &Settled,
    ) -> bool {
        if self.sharing.lending.contains_key(&id) {
            self.on_lend_lock(cx, id, settled.clone());
            true
        } else if self.sharing.recalling.contains_key(&id) {
            self.on_recall_lock(cx, id, settled.clone());
            true
        } else {
            false
        }
    }

    fn on_lend_lock(&mut self, cx: &mut Context<'_>, id: u64, settled: Settled) {
        let Some(lending) = self.sharing.lending.remove(&id) else {
            return;
        };
        let Lending {
            key,
            to,
            seq,
            priority,
        } = lending;
        let life = self.incoming.get(&(to, seq)).map(|i| i.incarnation);
        match (settled, life) {
            (Settled::Granted, Some(incarnation)) => {
                self.finish_request(to, seq);
                self.lend(cx, &key, to, incarnation, seq);
                self.locks.release_item(priority.txn, &Item::of(&key));
            }
            // Its node has restarted meanwhile.
            (Settled::Granted, None) => self.locks.release_item(priority.txn, &Item::of(&key)),
            (Settled::Died(conflict), Some(incarnation)) => {
                let (key, holder) = (conflict.key, conflict.holder);
                let reason = Some(AbortReason::Die { key, holder });
                self.finish_request(to, seq);
                self.refuse_request(cx, to, incarnation, seq, reason);
            }
            (Settled::Died(_), None) => {}
            (Settled::TimedOut(_), _) => unreachable!("it has no deadline"),
        }
    }

    /// Gives a copy away; nobody writes the row at the moment.
    fn lend(&mut self, cx: &mut Context<'_>, key: &Key, to: ShardId, incarnation: u32, seq: u64) {
        let found = self.newest(cx, key);
        let (Some((commit_ts, row)), false) = (found, self.table.contains_key(key)) else {
            // Deleted meanwhile: it is asked for again.
            self.refuse_request(cx, to, incarnation, seq, None);
            return;
        };
        let tag = self.next_otag(cx);
        let arrival = self.settling_of.get(key);
        let arrival = arrival.and_then(|otag| self.informs.get(&(self.shard, *otag)));
        let arrival = arrival.map_or(Self::NOTHING, |inform| inform.position);
        let position = arrival.max(self.installed.of(commit_ts));
        let reader = Reader { tag, incarnation };
        let lent = self.sharing.lent.entry(key.clone()).or_default();
        lent.readers.insert(to, reader);
        self.moves.lent += 1;
        let remote = self.is_remote(to);
        let share = Share {
            tag,
            to_incarnation: incarnation,
            seq,
            key: key.clone(),
            version: MovedVersion {
                commit_ts,
                row: Some(row.into_boxed_slice()),
            },
            position: if remote { Self::NOTHING } else { position },
        };
        self.post(cx, to, Body::Share(Box::new(share)), position);
    }

    /// A row that is to be lent is away: home takes it itself, in the reader's turn. The reader
    /// asks again when it is there.
    pub(crate) fn bring_home(
        &mut self,
        cx: &mut Context<'_>,
        request: (ShardId, u64),
        incoming: &Incoming,
        owner: ShardId,
    ) {
        let otag = self.next_otag(cx);
        let pause_us = self.settings.resend_us;
        let grant = Grant {
            key: incoming.key.clone(),
            from: owner,
            to: self.shard,
            to_incarnation: cx.incarnation,
            request,
            seq: 0,
            priority: incoming.priority,
            cancel: false,
            again_at: cx.now.after(pause_us),
            pause_us,
            heard: cx.now,
            older: Vec::new(),
        };
        let entry = self.table.get_mut(&incoming.key);
        entry.expect("it is away").grant = Some(otag);
        self.open_grant(otag, grant);
        self.send_transfer(cx, otag);
    }

    /// The owner does not give a row to its home, which wanted it for a reader: the reader must
    /// hear why. If it only asked again it would wait for an older transaction, which may wait for
    /// it.
    pub(crate) fn refuse_reader(&mut self, cx: &mut Context<'_>, otag: Otag, refused: &Refused) {
        let grant = self
            .grants
            .get(&otag)
            .filter(|_| refused.home == self.shard);
        let request = grant
            .filter(|grant| grant.to == self.shard)
            .map(|g| g.request);
        let Some((reader, seq)) = request.filter(|(reader, _)| *reader != self.shard) else {
            return;
        };
        let life = self.incoming.get(&(reader, seq)).map(|i| i.incarnation);
        if let (Some(life), Some(reason)) = (life, &refused.reason) {
            self.refuse_request(cx, reader, life, seq, Some(reason.clone()));
        }
    }

    /// A copy has come.
    pub(crate) fn on_share(&mut self, cx: &mut Context<'_>, home: ShardId, share: Share) {
        let seen = self.grants_seen.entry(home).or_default();
        if share.to_incarnation != cx.incarnation || seen.is_over(share.tag) {
            return;
        }
        seen.end(share.tag);
        let Share {
            tag,
            seq,
            key,
            version,
            position,
            ..
        } = share;
        if (cx.schema_changed)(key.index).is_some() {
            let (ts, row) = (version.commit_ts, version.row.as_deref());
            cx.store.evict(key.index, key.slot, &key.bytes);
            cx.store
                .restore(key.index, key.slot, &key.bytes, ts, row, cx.horizon);
            if position > cx.journal.durable() {
                self.installed.insert(ts, position);
            }
        }
        let copy = Copied {
            tag,
            users: Vec::new(),
            recall: None,
        };
        self.sharing.copies.insert(key, copy);
        self.moves.copied += 1;
        if let Some(request) = self.requests.get(&seq) {
            let (txn, depth) = (request.priority.txn, request.depth);
            let hops = 2 * u32::from(self.is_remote(home));
            if let Some(state) = self.txns.get_mut(&txn).filter(|s| s.outcome.is_none()) {
                state.cost.delays = state.cost.delays.max(depth + hops);
                state.cost.messages_on_path += hops / 2;
                state.note_node(home);
            }
        }
        self.end_request(seq);
    }

    /// Whether a writer, which has the row's exclusive lock here at its home, may go on; otherwise
    /// the copies are called back in its name, and it will hear.
    pub(crate) fn recalled(
        &mut self,
        cx: &mut Context<'_>,
        key: &Key,
        priority: Priority,
        writer: Writer,
    ) -> Result<bool, AbortReason> {
        let Some(lent) = self.sharing.lent.get_mut(key) else {
            return Ok(true);
        };
        let mut readers = lent.readers.keys();
        if let Some(away) = readers.find(|shard| self.down.contains(&shard.node())) {
            return Err(AbortReason::Unreachable(*away));
        }
        match &mut lent.recall {
            Some((name, writers)) if name.txn == priority.txn => {
                if !writers.contains(&writer) {
                    writers.push(writer);
                }
            }
            // Whoever began it has given up.
            recall => {
                *recall = Some((priority, Vec::from([writer])));
                self.send_recalls(cx, key);
            }
        }
        self.arm_recalls(cx);
        Ok(false)
    }

    fn arm_recalls(&mut self, cx: &Context<'_>) {
        if !self.sharing.armed {
            self.sharing.armed = true;
            let at = cx.now.after(self.settings.resend_us);
            self.timers.insert((at, Timer::Recalls));
        }
    }

    pub(crate) fn on_recalls_timer(&mut self, cx: &mut Context<'_>) {
        self.sharing.armed = false;
        let lent = self.sharing.lent.iter();
        let open = lent.filter(|(_, lent)| lent.recall.is_some());
        let open: Vec<Key> = open.map(|(key, _)| key.clone()).collect();
        for key in &open {
            self.send_recalls(cx, key);
        }
        if !open.is_empty() {
            self.arm_recalls(cx);
        }
    }

    fn send_recalls(&mut self, cx: &mut Context<'_>, key: &Key) {
        let Some(lent) = self.sharing.lent.get(key) else {
            return;
        };
        let Some((priority, _)) = lent.recall else {
            return;
        };
        let readers: Vec<(ShardId, Otag)> = lent.readers.iter().map(|(s, r)| (*s, r.tag)).collect();
        for (to, tag) in readers {
            let recall = Recall {
                key: key.clone(),
                tag,
                priority,
            };
            self.post(cx, to, Body::Recall(Box::new(recall)), Self::NOTHING);
        }
    }

    /// The home wants a copy back.
    pub(crate) fn on_recall(&mut self, cx: &mut Context<'_>, home: ShardId, recall: Recall) {
        let Recall { key, tag, priority } = recall;
        let pending = match self.sharing.copies.get(&key) {
            Some(copy) if copy.tag <= tag => copy.recall,
            // It has not come, or is gone; a late one does not count any more.
            Some(_) | None => {
                self.grants_seen.entry(home).or_default().end(tag);
                self.answer_recall(cx, home, key, tag, priority.txn, None);
                return;
            }
        };
        let pending = pending.and_then(|id| self.sharing.recalling.get(&id));
        if pending.is_some_and(|pending| pending.priority.txn == priority.txn) {
            return;
        }
        let id = self.new_job();
        let copy = self.sharing.copies.get_mut(&key).expect("looked up above");
        copy.recall = Some(id);
        let item = Item::of(&key);
        if self.locks.holds(priority.txn, &item, LockMode::Exclusive) {
            // The writer runs here and has asked for the row itself.
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

    fn lock_recall(&mut self, cx: &mut Context<'_>, id: u64) {
        let Some(recalling) = self.sharing.recalling.get(&id) else {
            return;
        };
        let acquired = self.locks.acquire(LockRequest {
            txn: recalling.priority,
            item: Item::of(&recalling.key),
            mode: LockMode::Exclusive,
            alone: false,
            ordered: false,
            deadline: None,
            now: cx.now,
            request: id,
        });
        match acquired {
            Acquired::Granted => self.on_recall_lock(cx, id, Settled::Granted),
            Acquired::Waiting => cx.counters.lock_waits += 1,
            Acquired::Died(conflict) => self.on_recall_lock(cx, id, Settled::Died(conflict)),
        }
    }

    fn on_recall_lock(&mut self, cx: &mut Context<'_>, id: u64, settled: Settled) {
        let Some(recalling) = self.sharing.recalling.remove(&id) else {
            return;
        };
        let Recalling {
            home,
            key,
            tag,
            priority,
        } = recalling;
        let copy = self.sharing.copies.get_mut(&key);
        let copy = copy.filter(|copy| copy.tag <= tag);
        let refused = match settled {
            Settled::Granted => {
                if copy.is_some() {
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
        cx: &mut Context<'_>,
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
        // It tells the clock: the writer commits above all that was read here.
        self.post(cx, home, Body::Recalled(Box::new(recalled)), Self::NOTHING);
    }

    fn drop_copy(&mut self, cx: &mut Context<'_>, key: &Key) {
        if self.sharing.copies.remove(key).is_some() {
            cx.store.evict(key.index, key.slot, &key.bytes);
        }
    }

    /// A row comes here to stay: it replaces the copy.
    pub(crate) fn forget_copy(&mut self, key: &Key) {
        self.sharing.copies.remove(key);
    }

    pub(crate) fn on_recalled(&mut self, cx: &mut Context<'_>, from: ShardId, recalled: Recalled) {
        let Recalled {
            key,
            tag,
            writer,
            refused,
        } = recalled;
        let Some(lent) = self.sharing.lent.get_mut(&key) else {
            return;
        };
        if lent
            .readers
            .get(&from)
            .is_none_or(|reader| reader.tag != tag)
        {
            return;
        }
        match refused {
            None => {
                lent.readers.remove(&from);
                self.end_recall(cx, &key);
            }
            Some(reason) => {
                let named = lent.recall.as_ref();
                if named.is_some_and(|(name, _)| name.txn == writer) {
                    self.fail_recall(cx, &key, &reason);
                }
            }
        }
    }

    /// Goes on with the writers if no copy is left.
    fn end_recall(&mut self, cx: &mut Context<'_>, key: &Key) {
        let lent = self.sharing.lent.get(key);
        if lent.is_none_or(|lent| !lent.readers.is_empty()) {
            return;
        }
        let lent = self.sharing.lent.remove(key).expect("looked up above");
        let (_, writers) = lent.recall.unzip();
        for writer in writers.into_iter().flatten() {
            match writer {
                Writer::Job(id) => self.ready.push_back(id),
                Writer::Release(id) => self.on_release_lock(cx, id, Settled::Granted),
            }
        }
    }

    /// The writers must be rolled back.
    fn fail_recall(&mut self, cx: &mut Context<'_>, key: &Key, reason: &AbortReason) {
        let lent = self.sharing.lent.get_mut(key);
        let recall = lent.and_then(|lent| lent.recall.take());
        let Some((_, writers)) = recall else {
            return;
        };
        for writer in writers {
            match writer {
                Writer::Job(id) => self.fail_job(cx, id, OpError::Aborted(reason.clone())),
                Writer::Release(id) => self.fail_release(cx, id, reason.clone()),
            }
        }
    }

    /// A node has restarted: its copies are gone.
    pub(crate) fn forget_readers(&mut self, cx: &mut Context<'_>, node: NodeId, incarnation: u32) {
        let mut changed = Vec::new();
        for (key, lent) in &mut self.sharing.lent {
            let before = lent.readers.len();
            lent.readers
                .retain(|shard, reader| shard.node() != node || reader.incarnation >= incarnation);
            if lent.readers.len() < before {
                changed.push(key.clone());
            }
        }
        for key in changed {
            self.end_recall(cx, &key);
        }
    }

    /// Nothing can be sent to a node: writers that wait for its copies give up.
    pub(crate) fn fail_recalls(&mut self, cx: &mut Context<'_>, node: NodeId) {
        let lent = self.sharing.lent.iter().filter_map(|(key, lent)| {
            let mut readers = lent.readers.keys();
            let away = readers.find(|shard| shard.node() == node)?;
            lent.recall.is_some().then(|| (key.clone(), *away))
        });
        let lent: Vec<(Key, ShardId)> = lent.collect();
        for (key, away) in lent {
            self.fail_recall(cx, &key, &AbortReason::Unreachable(away));
        }
    }

    /// A home has restarted and knows of no copies: they go, and those who rely on them end.
    pub(crate) fn drop_copies_of(&mut self, cx: &mut Context<'_>, home: ShardId) {
        let copies = self.sharing.copies.iter();
        let copies = copies.filter(|(key, _)| self.home(key.slot) == home);
        let copies: Vec<Key> = copies.map(|(key, _)| key.clone()).collect();
        for key in copies {
            let users = core::mem::take(
                &mut self
                    .sharing
                    .copies
                    .get_mut(&key)
                    .expect("just listed")
                    .users,
            );
            self.drop_copy(cx, &key);
            for txn in users {
                self.abort_txn(cx, txn, AbortReason::ParticipantLost(home));
            }
        }
    }

    /// Recalls in the name of a transaction whose locks here were just freed go on waiting.
    pub(crate) fn ask_again_for_recalls(&mut self, cx: &mut Context<'_>, txn: TxnId) {
        let recalling = self.sharing.recalling.iter();
        let waiting = recalling.filter(|(_, recalling)| recalling.priority.txn == txn);
        let mut waiting: Vec<u64> = waiting.map(|(id, _)| *id).collect();
        for id in waiting.drain(..) {
            self.lock_recall(cx, id);
        }
        let lending = self.sharing.lending.iter();
        let lending = lending.filter(|(_, lending)| lending.priority.txn == txn);
        let lending: Vec<u64> = lending.map(|(id, _)| *id).collect();
        for id in lending {
            // Its reader asks again.
            let Some(lending) = self.sharing.lending.remove(&id) else {
                continue;
            };
            let (to, seq) = (lending.to, lending.seq);
            if let Some(life) = self.incoming.get(&(to, seq)).map(|i| i.incarnation) {
                self.finish_request(to, seq);
                self.refuse_request(cx, to, life, seq, None);
            }
        }
    }

    /// For `validate`: only rows at home are lent, and copies are of rows elsewhere.
    pub(crate) fn check_sharing(&self) {
        for (key, lent) in &self.sharing.lent {
            assert!(self.is_home(key), "only its home lends a row");
            assert!(
                !self.table.contains_key(key),
                "a row that is lent is at home"
            );
            assert!(!lent.readers.is_empty(), "what nobody has is not lent");
        }
        for key in self.sharing.copies.keys() {
            assert!(!self.is_home(key), "a home needs no copy");
        }
    }
}
