//! The home of a row: its owner table, its queue of requests, its grants.
//!
//! ```text
//! OwnerRequest ──> queue of the row (one grant at a time, wait-die, youngest first)
//!                    ├─ the row is here   lock it, send Response
//!                    └─ it is elsewhere   TransferRequest to its owner
//! Inform(acquired) ──> the table names the new owner, the next in the queue gets its turn
//! Inform(durable)  ──> ReleaseAck to the old owner
//! Inform(refused)  ──> the owner stays; the otag is used up
//! ```

use crate::message::{Body, Fate, Inform, OwnerRequest, Refused, ReleaseAck, TransferRequest};
use crate::owner::Releasing;
use crate::{Cx, Leap, printed};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{Key, NodeId, ShardId, Ts, TxnId};
use journal::Otag;
use txn::lock::{Acquired, Conflict, Item, LockRequest, Settled};
use txn::{AbortReason, Asked, LockMode, Priority};

/// A row that is away. A row without an entry is at home.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    /// The owner. `None`: the row has left home under `grant`, and the backup is here.
    pub(crate) owner: Option<ShardId>,
    /// The grant by which the owner got it.
    pub(crate) otag: Otag,
    /// Oldest grant under which a claim of the owner counts.
    pub(crate) since: Otag,
    /// The open grant, under which the row is to move on.
    pub(crate) grant: Option<Otag>,
    /// The owner has lost the row in a restart; the shard with the backup becomes the owner again.
    pub(crate) lost: bool,
    /// Number of moves since the row left home.
    pub(crate) moves: u32,
}

impl Entry {
    /// A row that `owner` got by a grant, after this number of moves.
    pub(crate) fn new(owner: Option<ShardId>, otag: Otag, moves: u32) -> Entry {
        Entry {
            owner,
            otag,
            since: otag,
            grant: None,
            lost: false,
            moves,
        }
    }
}

/// Stage of a request: queued, locking, granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Waits for its turn, under this number of the queue.
    Queued(u64),
    /// Has its turn, and waits until local transactions end that have the row locked.
    Locking,
    Granted(Otag),
}

/// A request that is not answered.
#[derive(Clone, Debug)]
pub(crate) struct Incoming {
    pub(crate) key: Key,
    pub(crate) priority: Priority,
    /// See [`crate::alone`].
    pub(crate) alone: bool,
    /// A copy is enough for the requester.
    pub(crate) shared: bool,
    pub(crate) stage: Stage,
    /// Not a request: the shard that has the backup is to become the owner again.
    pub(crate) reclaim: Option<ShardId>,
}

/// The shard that is to get a row, its life, and the number of its request. A shard counts anew in
/// each life, and a request that was granted in one may be open in the next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Want {
    pub(crate) to: ShardId,
    pub(crate) life: u32,
    pub(crate) seq: u64,
}

impl Want {
    pub(crate) fn new(to: ShardId, life: u32, seq: u64) -> Want {
        Want { to, life, seq }
    }
}

/// An open grant: the requester has not said whether the row has arrived.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) key: Key,
    pub(crate) from: ShardId,
    pub(crate) want: Want,
    /// The request that this grant answers.
    pub(crate) request: Want,
    pub(crate) priority: Priority,
    /// See [`crate::alone`].
    pub(crate) alone: bool,
    /// The owner has restarted: the requester is asked to refuse the grant.
    pub(crate) cancel: bool,
    /// Earlier grants of the row that came to nothing; the owner may know one in place of this.
    pub(crate) older: Vec<Otag>,
}

impl Grant {
    pub(crate) fn new(
        key: Key,
        from: ShardId,
        want: Want,
        request: Want,
        priority: Priority,
    ) -> Grant {
        Grant {
            key,
            from,
            want,
            request,
            priority,
            alone: false,
            cancel: false,
            older: Vec::new(),
        }
    }
}

impl Asked for Grant {
    fn receiver(&self) -> ShardId {
        self.from
    }
}

/// A transfer whose arrival is not known to be durable: the new owner may lose the row in a crash.
#[derive(Clone, Debug)]
pub(crate) struct Settling {
    pub(crate) key: Key,
    pub(crate) owner: ShardId,
    pub(crate) backup: ShardId,
    /// The grant under which the backup was made.
    pub(crate) backup_otag: Otag,
    /// Oldest grant that the shard with the backup may claim: its record of the release may not
    /// have been durable when the shard crashed.
    pub(crate) backup_since: Otag,
    /// See [`Grant::older`].
    pub(crate) older: Vec<Otag>,
}

impl Settling {
    /// The grants under which a shard may claim the row after a crash; `otag`: of this transfer.
    pub(crate) fn claimable(&self, otag: Otag, open: &mut Vec<Otag>) {
        open.extend([otag, self.backup_since]);
        open.extend(&self.older);
    }
}

impl Leap {
    pub(crate) fn on_owner_request(
        &mut self,
        cx: &mut Cx<'_>,
        from: ShardId,
        incarnation: u32,
        request: OwnerRequest,
    ) {
        let want = Want::new(from, incarnation, request.seq);
        if self.is_down(from) {
            // No answer would reach the requester, which will ask again.
            return;
        }
        if !self.serves(from, incarnation) {
            // Refused if this home waits for claims of a shard that is away; else asked again.
            if let Some(away) = self.rejoin.awaits(&|shard| self.is_down(shard)) {
                let reason = Some(AbortReason::Unreachable(away));
                self.refuse_request(cx, want, reason);
            }
            return;
        }
        let seen = self.home.seen(from, incarnation);
        seen.raise(request.floor);
        let over = seen.is_over(want.seq);
        if let Some(reason) = self.hindrance(&request.key).filter(|_| !over) {
            if self.home.incoming.contains_key(&want) {
                self.refuse_waiting(cx, want, reason);
            } else {
                self.refuse_request(cx, want, Some(reason));
            }
        } else if let Some(known) = self.home.incoming.get(&want) {
            let stage = known.stage;
            if !request.alone {
                self.expose_incoming(cx, want);
            }
            self.answer_again(cx, want, stage);
        } else if over {
            if want.seq >= request.floor {
                self.refuse_request(cx, want, None);
            }
        } else {
            let ignored =
                printed!(self, LeapOwnerIgnored) && self.home.owner_of(&request.key) == Some(from);
            if ignored {
                return;
            }
            let incoming = Incoming {
                key: request.key,
                priority: request.priority,
                alone: request.alone,
                shared: request.shared,
                stage: Stage::Locking,
                reclaim: None,
            };
            self.enqueue(cx, want, incoming);
        }
    }

    /// Puts a request into the queue of its row.
    fn enqueue(&mut self, cx: &mut Cx<'_>, want: Want, mut incoming: Incoming) {
        let id = self.jobs.next_number();
        let txn = place(want);
        let (item, mode) = (Item::of(&incoming.key), LockMode::Exclusive);
        let place = Priority {
            txn,
            ..incoming.priority
        };
        let acquired = self.home.dispatch.acquire(LockRequest {
            // A reclaim waits whatever its age.
            alone: incoming.reclaim.is_some() || incoming.alone,
            ..LockRequest::new(place, item, mode, cx.now, id)
        });
        incoming.stage = Stage::Queued(id);
        self.home.incoming.insert(want, incoming);
        self.home.queued.insert(id, want);
        match acquired {
            Acquired::Granted => self.start_turn(cx, id),
            Acquired::Waiting => cx.counters.lock_waits += 1,
            Acquired::Died(conflict) => self.lose_turn(cx, id, conflict),
        }
    }

    pub(crate) fn take_dispatch_events(&mut self, cx: &mut Cx<'_>) {
        for event in self.home.dispatch.take_events() {
            cx.counters.lock_wait_us += cx.now.since(event.since);
            match event.settled {
                Settled::Granted => self.start_turn(cx, event.request),
                Settled::Died(conflict) => self.lose_turn(cx, event.request, conflict),
                Settled::TimedOut(_) => unreachable!("requests in the queue have no deadline"),
            }
        }
    }

    /// Wait-die in the queue: the transaction behind the request is rolled back.
    fn lose_turn(&mut self, cx: &mut Cx<'_>, id: u64, conflict: Conflict) {
        let Some(want) = self.home.queued.remove(&id) else {
            return;
        };
        let TxnId {
            shard,
            incarnation,
            counter,
        } = conflict.holder;
        let other = Want::new(shard, incarnation, counter);
        let holder = self
            .home
            .incoming
            .get(&other)
            .map_or(conflict.holder, |i| i.priority.txn);
        let reason = AbortReason::Die {
            key: conflict.key,
            holder,
        };
        self.end_request_of(cx, want, Some(reason));
    }

    /// Gives a request its turn.
    fn start_turn(&mut self, cx: &mut Cx<'_>, id: u64) {
        let Some(want) = self.home.queued.remove(&id) else {
            return;
        };
        let from = want.to;
        let incoming = self.home.request(want);
        incoming.stage = Stage::Locking;
        let incoming = incoming.clone();
        if let Some(backup) = incoming.reclaim {
            let entry = self.home.table.get(&incoming.key);
            if entry.is_some_and(|entry| entry.lost || entry.owner == Some(backup)) {
                self.reclaim_now(cx, want, &incoming.key, backup, Vec::new());
            } else {
                // The row was given back before, and has moved on.
                self.home.finish_request(want);
            }
            return;
        }
        if let Some(reason) = self.hindrance(&incoming.key) {
            self.end_request_of(cx, want, Some(reason));
            return;
        }
        let incoming = self.home.begin_turn(want);
        let lends = incoming.shared && from != self.shard && self.lends(&incoming.key);
        // A read that moves the row counts as a read: else no row would reach `share_after`.
        if !incoming.shared {
            self.sharing.note_write(&incoming.key);
        }
        match self.home.table.get(&incoming.key).map(|entry| entry.owner) {
            None if lends => self.begin_lend(cx, want, &incoming),
            Some(Some(owner)) if lends && owner != from && !cx.journal.is_memory_full() => {
                // The home takes the row itself, in the turn of the reader, who asks again when
                // the row is at home.
                let home = Want::new(self.shard, cx.incarnation, 0);
                self.grant(cx, want, &incoming, owner, home);
            }
            None if from != self.shard => {
                let (key, priority, alone) = (incoming.key, incoming.priority, incoming.alone);
                let releasing = Releasing::new(key, None, self.shard, want, priority);
                self.begin_release(cx, Releasing { alone, ..releasing });
            }
            Some(Some(owner)) if owner != from => {
                self.grant(cx, want, &incoming, owner, want);
            }
            // The requester has the row by now.
            None | Some(Some(_)) => self.end_request_of(cx, want, None),
            Some(None) => unreachable!("a row on its way keeps its place in the queue"),
        }
    }

    /// Tells the owner to give a row away.
    pub(crate) fn grant(
        &mut self,
        cx: &mut Cx<'_>,
        request: Want,
        incoming: &Incoming,
        owner: ShardId,
        want: Want,
    ) {
        let otag = self.home.next_otag(cx.incarnation);
        let (key, priority) = (incoming.key.clone(), incoming.priority);
        let mut grant = Grant::new(key, owner, want, request, priority);
        grant.alone = incoming.alone;
        let entry = self.home.away(&incoming.key);
        assert_eq!(entry.grant, None, "one grant at a time");
        entry.grant = Some(otag);
        self.open_grant(cx, otag, grant);
        self.send_transfer(cx, otag);
    }

    pub(crate) fn open_grant(&mut self, cx: &Cx<'_>, otag: Otag, grant: Grant) {
        let repeats = self.is_remote(grant.from) || self.is_remote(grant.want.to);
        self.home.open_grant(otag, grant, cx.now, repeats);
    }

    /// Sends the message on whose answer a grant waits, for the first time or again.
    pub(crate) fn send_transfer(&mut self, cx: &mut Cx<'_>, otag: Otag) {
        let Some(grant) = self.home.grants.get(otag) else {
            return;
        };
        if grant.cancel {
            let (to, key) = (grant.want.to, grant.key.clone());
            self.say(cx, to, Body::Cancel(key, otag));
            return;
        }
        if grant.from == self.shard {
            let (key, want) = (grant.key.clone(), grant.want);
            self.respond(cx, self.shard, otag, &key, want);
            return;
        }
        let owner = grant.from;
        if !self.has_joined(owner) {
            // The claims of the owner will tell what it knows of this grant.
            return;
        }
        let request = TransferRequest {
            otag,
            floor: self.home.floor(cx.incarnation),
            expected: self.peers.life(owner.node()),
            key: grant.key.clone(),
            to: grant.want.to,
            to_incarnation: grant.want.life,
            seq: grant.want.seq,
            priority: grant.priority,
            alone: grant.alone,
        };
        self.say(cx, owner, Body::TransferRequest(Box::new(request)));
    }

    fn answer_again(&mut self, cx: &mut Cx<'_>, want: Want, stage: Stage) {
        let key = self.home.incoming[&want].key.clone();
        let mut owner = None;
        if let Stage::Granted(otag) = stage {
            self.send_transfer(cx, otag);
            owner = self.home.grants.get(otag).map(|grant| grant.from);
        }
        match self.standstill(cx, &key) {
            Some(reason) => self.refuse_waiting(cx, want, reason),
            None => {
                let owner = owner.filter(|owner| *owner != self.shard);
                self.say(cx, want.to, Body::Working(want.seq, owner));
            }
        }
    }

    /// A request is over: its requester hears that the row does not come, and why.
    pub(crate) fn end_request_of(
        &mut self,
        cx: &mut Cx<'_>,
        want: Want,
        reason: Option<AbortReason>,
    ) {
        if self.home.incoming.contains_key(&want) {
            self.home.finish_request(want);
            self.refuse_request(cx, want, reason);
        }
    }

    pub(crate) fn refuse_request(
        &mut self,
        cx: &mut Cx<'_>,
        want: Want,
        reason: Option<AbortReason>,
    ) {
        let refused = Refused {
            home: self.shard,
            otag: None,
            to_incarnation: want.life,
            seq: want.seq,
            reason,
        };
        self.say(cx, want.to, Body::Refused(Box::new(refused)));
    }

    pub(crate) fn on_inform(&mut self, cx: &mut Cx<'_>, from: ShardId, inform: &Inform) {
        if !self.rejoin.is_serving() {
            return;
        }
        let mut settled = Vec::new();
        for &(otag, fate) in &inform.fates {
            let ends = self
                .home
                .grants
                .get(otag)
                .map(|grant| (grant.from, grant.want.to));
            match (ends, fate) {
                (Some((_, to)), Fate::Acquired | Fate::Durable) if to == from => {
                    self.transferred(cx, otag);
                }
                (Some((_, to)), Fate::Refused) if to == from => self.grant_refused(cx, otag),
                (Some((owner, _)), Fate::Refused) if owner == from => {
                    self.refused_by_owner(cx, otag);
                }
                (Some(_) | None, _) => {}
            }
            if fate == Fate::Durable {
                self.settle(cx, otag, true);
            }
            if !self.home.grants.contains(otag) && !self.home.settling.contains_key(&otag) {
                settled.push(otag);
            }
        }
        if inform.again && !settled.is_empty() {
            self.say(cx, from, Body::Settled(settled));
        }
    }

    /// The requester has the row, and may not have it durably yet.
    pub(crate) fn transferred(&mut self, cx: &mut Cx<'_>, otag: Otag) {
        let grant = self.home.close_grant(otag);
        let key = grant.key;
        let entry = self.home.away(&key);
        let mut backup_since = entry.since;
        let (mut backup, mut backup_otag, mut older) = (grant.from, otag, grant.older);
        if let Some(before) = self.home.settling_of.get(&key).copied() {
            if grant.from == grant.want.to {
                // The row has stayed where it was, so the backup has stayed too.
                let settling = self.home.end_settling(before);
                let settling = settling.expect("listed by its row");
                (backup, backup_otag) = (settling.backup, settling.backup_otag);
                backup_since = settling.backup_since;
                older.extend(settling.older);
                older.push(before);
            } else {
                // The owner gave the row away, so its arrival was durable.
                self.settle(cx, before, grant.want.to != self.shard);
            }
        }
        let entry = self.home.away(&key);
        let moves = entry.moves + 1;
        let stays = grant.from == grant.want.to;
        let since = if stays { entry.since } else { otag };
        if grant.want.to == self.shard {
            self.home.table.remove(&key);
        } else {
            let moved = Entry::new(Some(grant.want.to), otag, moves);
            let entry = Entry { since, ..moved };
            self.home.table.insert(key.clone(), entry);
        }
        self.home.settling_of.insert(key.clone(), otag);
        let settling = Settling {
            key,
            owner: grant.want.to,
            backup,
            backup_otag,
            backup_since,
            older,
        };
        self.home.settling.insert(otag, settling);
        let reader = grant.request;
        let brought = grant.want.to == self.shard && reader.to != self.shard;
        let reclaim = self.home.incoming.get(&reader).map(|i| i.reclaim);
        self.home.finish_request(reader);
        if let (true, Some(None)) = (brought, reclaim) {
            // The row was brought home to be lent: the reader asks again.
            self.refuse_request(cx, reader, None);
        }
        self.wake_movers();
    }

    /// The new owner has the row durably, so the backup is dropped.
    pub(crate) fn settle(&mut self, cx: &mut Cx<'_>, otag: Otag, evict: bool) {
        let Some(settling) = self.home.end_settling(otag) else {
            return;
        };
        let (key, backup) = (settling.key, settling.backup);
        if backup == settling.owner {
            // The row has stayed, and its owner will claim it under no older grant.
            let entry = self.home.table.get_mut(&key);
            if let Some(entry) = entry.filter(|entry| entry.otag == otag) {
                entry.since = otag;
            }
            return;
        }
        if backup == self.shard {
            if evict && self.home.owner_of(&key).is_some() {
                self.evict(cx, key);
            }
            return;
        }
        let ack = ReleaseAck {
            keys: Vec::from([(key, settling.backup_otag)]),
            floor: self.home.floor(cx.incarnation),
        };
        self.say(cx, backup, Body::ReleaseAck(ack));
    }

    /// The requester will never accept the grant.
    pub(crate) fn grant_refused(&mut self, cx: &mut Cx<'_>, otag: Otag) {
        let grant = self.home.close_grant(otag);
        let key = grant.key.clone();
        if grant.from == self.shard {
            let entry = self
                .home
                .table
                .remove(&key)
                .expect("a granted row has an entry");
            assert_eq!(entry.owner, None, "it was on its way from here");
            self.end_request_for(&key);
        } else {
            let entry = self.home.away(&key);
            entry.grant = None;
            let mut older = grant.older;
            older.push(otag);
            if entry.lost {
                let backup = self.home.backup_of(&key);
                self.reclaim_now(cx, grant.request, &key, backup, older);
                return;
            }
            if grant.cancel {
                // The owner may have released the row meanwhile, or may doubt that it owns the row.
                self.reclaim_now(cx, grant.request, &key, grant.from, older);
                return;
            }
        }
        self.home.finish_request(grant.request);
        self.wake_movers();
    }

    /// Makes the shard with the backup (or the doubtful owner) the owner, in the queue of the row.
    pub(crate) fn reclaim(&mut self, cx: &mut Cx<'_>, key: Key, backup: ShardId) {
        let seq = self.requester.new_seq();
        let want = Want::new(self.shard, cx.incarnation, seq);
        let incoming = Incoming {
            key,
            priority: Priority {
                urgent: true,
                ts: Ts::ZERO,
                txn: place(want),
            },
            alone: false,
            shared: false,
            stage: Stage::Locking,
            reclaim: Some(backup),
        };
        self.enqueue(cx, want, incoming);
    }

    /// As [`Leap::reclaim`], in the queue place of `request`.
    pub(crate) fn reclaim_now(
        &mut self,
        cx: &mut Cx<'_>,
        request: Want,
        key: &Key,
        backup: ShardId,
        mut older: Vec<Otag>,
    ) {
        let before = self.home.settling_of.get(key).copied();
        if let Some(before) = before.filter(|otag| self.home.settling[otag].backup == backup) {
            // The backup becomes the row again, so the transfer for which it was made is void.
            let settling = self.home.end_settling(before);
            let settling = settling.expect("listed by its row");
            older.extend(settling.older);
            older.extend([before, settling.backup_since]);
            if let Some(entry) = self.home.table.get_mut(key) {
                entry.since = settling.backup_since;
            }
        }
        if backup == self.shard {
            self.home.table.remove(key);
            self.end_request_for(key);
            self.home.finish_request(request);
            self.wake_movers();
            return;
        }
        let otag = self.home.next_otag(cx.incarnation);
        let incoming = self.home.request(request);
        // That request is over; the reclaim takes its place.
        let priority = incoming.priority;
        let entry = self.home.away(key);
        entry.grant = Some(otag);
        entry.lost = false;
        entry.owner = Some(backup);
        let want = Want::new(backup, 0, 0);
        let mut grant = Grant::new(key.clone(), backup, want, request, priority);
        grant.older = older;
        self.open_grant(cx, otag, grant);
        self.send_transfer(cx, otag);
    }

    /// A former owner asks whether its backups are still needed.
    pub(crate) fn on_unacked(&mut self, cx: &mut Cx<'_>, from: ShardId, keys: Vec<(Key, Otag)>) {
        if !self.rejoin.is_serving() {
            return;
        }
        let done = |(key, otag): &(Key, Otag)| self.home.is_done_with(from, key, *otag);
        let keys: Vec<(Key, Otag)> = keys.into_iter().filter(done).collect();
        if !keys.is_empty() {
            let floor = self.home.floor(cx.incarnation);
            let ack = ReleaseAck { keys, floor };
            self.say(cx, from, Body::ReleaseAck(ack));
        }
    }

    /// A node has restarted: requests of its former life that were not granted are void.
    pub(crate) fn forget_requests(&mut self, node: NodeId, incarnation: u32) {
        let forgotten = self
            .home
            .forget_requests(|want| want.to.node() == node && want.life < incarnation);
        for (key, locking) in forgotten {
            if locking {
                self.owner.void_release(&key);
            }
        }
    }
}

/// The name of a request in the queue. The queue is a lock table, so the name is a transaction's.
pub(crate) fn place(want: Want) -> TxnId {
    TxnId {
        shard: want.to,
        incarnation: want.life,
        counter: want.seq,
    }
}
