//! The owner of a row: giving it away, keeping the backup, and staying the owner.

use crate::home::{Entry, Grant, Want};
use crate::message::{Body, Fate, MovedVersion, Refused, ReleaseAck, Response, TransferRequest};
use crate::share::Writer;
use crate::{Cx, Leap, printed};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::limits::ROW_BYTES_MAX;
use base::{Key, Position, ShardId, Ts};
use journal::{Otag, Record};
use txn::lock::{Acquired, Item, LockRequest, Settled};
use txn::{AbortReason, LockMode, Priority};

/// What a shard has of a row of another home.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Tenure {
    /// The shard is the owner. `confirmed`: it has not restarted, or its home confirmed the claim.
    Owned { confirmed: bool },
    /// The shard has given the row away and keeps the backup.
    Released { to: ShardId },
}

/// See [`Tenure`].
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Held {
    /// The grant by which the row came, or under which it went.
    pub(crate) otag: Otag,
    /// The newest grant that was answered; at least `otag`.
    pub(crate) seen: Otag,
    pub(crate) tenure: Tenure,
    /// Snapshots below this are refused: the history of the row here begins later.
    pub(crate) since: Ts,
    /// Position of the record of its arrival.
    pub(crate) position: Position,
}

/// A row that leaves when no local transaction has it locked.
#[derive(Clone, Debug)]
pub(crate) struct Releasing {
    pub(crate) key: Key,
    /// The grant. `None`: this shard is the home, and draws the otag when the row leaves.
    pub(crate) otag: Option<Otag>,
    pub(crate) home: ShardId,
    pub(crate) want: Want,
    pub(crate) priority: Priority,
    /// See [`crate::alone`].
    pub(crate) alone: bool,
    /// The row stays: when the lock is granted, nothing follows.
    pub(crate) void: bool,
}

impl Releasing {
    pub(crate) fn new(
        key: Key,
        otag: Option<Otag>,
        home: ShardId,
        want: Want,
        priority: Priority,
    ) -> Releasing {
        Releasing {
            key,
            otag,
            home,
            want,
            priority,
            alone: false,
            void: false,
        }
    }

    fn asked(home: ShardId, request: TransferRequest) -> Releasing {
        let (want, otag, alone) = (request.want(), Some(request.otag), request.alone);
        let releasing = Releasing::new(request.key, otag, home, want, request.priority);
        Releasing { alone, ..releasing }
    }
}

impl Leap {
    pub(crate) fn on_transfer_request(
        &mut self,
        cx: &mut Cx<'_>,
        home: ShardId,
        request: TransferRequest,
    ) {
        if request.expected != 0 && request.expected != cx.incarnation {
            return;
        }
        let seen = self.requester.seen(home);
        if request.otag < request.floor || (seen.is_over(request.otag) && request.to != self.shard)
        {
            return;
        }
        seen.raise(request.floor);
        self.owner.forget_refusals(home, request.floor);
        let otag = request.otag;
        if request.to == self.shard {
            self.stay_owner(cx, home, &request);
            return;
        }
        if let Some(refused) = self.owner.refusal(home, otag) {
            let refused = refused.clone();
            if self.is_down(request.to) {
                self.tell_refused(cx, home, otag);
            }
            self.say(cx, request.to, Body::Refused(Box::new(refused)));
            return;
        }
        self.asked_to_release(cx, home, request);
    }

    fn asked_to_release(&mut self, cx: &mut Cx<'_>, home: ShardId, request: TransferRequest) {
        let otag = request.otag;
        let Some(held) = self.owner.held.get_mut(&request.key) else {
            return;
        };
        if let Tenure::Owned { confirmed } = &mut held.tenure
            && !*confirmed
            && otag > held.seen
        {
            // A home asks for rows after it has judged the claims of this life. So it has confirmed
            // this one, and the verdict was lost.
            *confirmed = true;
            self.apply_collected(cx);
            self.wake_gate();
        }
        if !self.has_collected() {
            // Formulas on the row may be missing. If a shard that must tell them is away, the
            // requester does not wait for that shard.
            if let Some(away) = self.rejoin.awaits(&|shard| self.is_down(shard)) {
                self.refuse_unready(cx, home, request, away);
            }
            return;
        }
        let held = &self.owner.held[&request.key];
        match held.tenure {
            Tenure::Released { to } => {
                if held.otag != otag {
                    return;
                }
                if self.is_down(to) {
                    let left = Body::Stranded(Vec::from([otag]));
                    self.say(cx, home, left);
                }
                self.respond(cx, home, otag, &request.key, request.want());
            }
            Tenure::Owned { confirmed } => {
                if otag <= held.seen || !confirmed {
                    return;
                }
                let pending = self.owner.release_of(&request.key);
                if pending.is_some_and(|pending| pending.otag == Some(otag)) {
                    if !request.alone {
                        self.expose_release(&request.key);
                    }
                    self.say(cx, home, Body::Waiting(otag));
                    return;
                }
                let releasing = Releasing::asked(home, request);
                if self.is_down(releasing.want.to) {
                    let reason = AbortReason::Unreachable(self.shard);
                    self.refuse(cx, releasing, reason);
                    return;
                }
                self.begin_release(cx, releasing);
            }
        }
    }

    /// Refuses to give a row away that cannot be used before `away`, which is away, has claimed.
    fn refuse_unready(
        &mut self,
        cx: &mut Cx<'_>,
        home: ShardId,
        request: TransferRequest,
        away: ShardId,
    ) {
        let held = &self.owner.held[&request.key];
        if request.otag > held.seen && matches!(held.tenure, Tenure::Owned { .. }) {
            let releasing = Releasing::asked(home, request);
            self.refuse(cx, releasing, AbortReason::Unreachable(away));
        }
    }

    /// The home says that this shard is the owner, whatever this shard has of the row.
    fn stay_owner(&mut self, cx: &mut Cx<'_>, home: ShardId, request: &TransferRequest) {
        let (key, otag) = (&request.key, request.otag);
        let known = self.owner.held.get(key).map(|held| held.otag);
        if known.is_some_and(|known| known >= otag)
            || self.requester.informs.contains(&(home, otag))
        {
            self.inform_again(cx, home, otag);
            return;
        }
        let Some(known) = known else {
            // The row has come and gone since: the message is a late one.
            return;
        };
        assert!(known < otag, "looked at above");
        self.owner.void_release(key);
        let newest = self.newest(cx, key);
        let at = cx.clock.tick(cx.now);
        let position = self.append_record(
            cx,
            &Record::Acquired {
                shard: self.shard,
                key: key.clone(),
                otag,
                from: self.shard,
                at,
                version: newest,
            },
        );
        let held = self.owner.held.get_mut(key).expect("looked up above");
        held.otag = otag;
        held.seen = otag;
        held.tenure = Tenure::Owned { confirmed: true };
        held.position = position;
        self.owner.backups.end(key);
        self.requester.seen(home).end(otag, ());
        self.inform(cx, home, otag, Fate::Acquired, position);
        self.end_request_for(key);
        self.apply_collected(cx);
        self.wake_gate();
    }

    pub(crate) fn newest(&self, cx: &Cx<'_>, key: &Key) -> Option<(Ts, Vec<u8>)> {
        let found = cx.store.get(key, Ts::MAX);
        found.map(|version| (version.commit_ts, version.value.to_vec()))
    }

    /// Begins to give a row away: waits for local transactions, in the requester's name.
    pub(crate) fn begin_release(&mut self, cx: &mut Cx<'_>, releasing: Releasing) {
        let id = self.jobs.next_number();
        self.withdraw(cx, releasing.priority.txn, &releasing.key);
        self.owner.begin_release(id, releasing);
        let releasing = &self.owner.releasing[&id];
        let (item, mode) = (Item::of(&releasing.key), LockMode::Exclusive);
        let acquired = self.locks.acquire(LockRequest {
            alone: releasing.alone || printed!(self, LeapYoungerWaits),
            ..LockRequest::new(releasing.priority, item, mode, cx.now, id)
        });
        let doubt = self.doubt_of(&releasing.key);
        match (acquired, doubt) {
            (Acquired::Granted, _) => self.on_release_lock(cx, id, Settled::Granted),
            (Acquired::Waiting, None) => cx.counters.lock_waits += 1,
            (Acquired::Waiting, Some(reason)) => self.call_off_release(cx, id, reason),
            (Acquired::Died(conflict), _) => {
                self.on_release_lock(cx, id, Settled::Died(conflict));
            }
        }
    }

    /// The lock of a row that is to leave was granted or refused.
    pub(crate) fn on_release_lock(&mut self, cx: &mut Cx<'_>, id: u64, settled: Settled) {
        let Some(releasing) = self.owner.end_release(id) else {
            return;
        };
        let (txn, key) = (releasing.priority.txn, releasing.key.clone());
        match settled {
            // The index was dropped here, and the requester does not know that: it would take the
            // absence for a key without a row.
            Settled::Granted if (cx.schema_changed)(key.index).is_none() => {
                let reason = AbortReason::SchemaChanged(Some(key.index));
                self.refuse(cx, releasing, reason);
                self.let_go(txn, &key);
            }
            Settled::Granted => {
                if !releasing.void && self.sharing.is_lent(&key) {
                    let priority = releasing.priority;
                    self.owner.begin_release(id, releasing);
                    match self.recalled(cx, &key, priority, Writer::Release(id)) {
                        Ok(true) => unreachable!("looked at above"),
                        Ok(false) => {}
                        Err(reason) => self.fail_release(cx, id, reason),
                    }
                    return;
                }
                if !releasing.void {
                    self.release(cx, releasing);
                }
                self.let_go(txn, &key);
            }
            Settled::Died(conflict) => {
                let (key, holder) = (conflict.key, conflict.holder);
                self.refuse(cx, releasing, AbortReason::Die { key, holder });
            }
            Settled::TimedOut(conflict) => {
                let (key, holder) = (conflict.key, conflict.holder);
                self.refuse(cx, releasing, AbortReason::LockTimeout { key, holder });
            }
        }
    }

    /// A row stays whose lock is held already in the name of its requester.
    pub(crate) fn fail_release(&mut self, cx: &mut Cx<'_>, id: u64, reason: AbortReason) {
        let Some(releasing) = self.owner.end_release(id) else {
            return;
        };
        let (txn, key) = (releasing.priority.txn, releasing.key.clone());
        self.refuse(cx, releasing, reason);
        self.let_go(txn, &key);
    }

    pub(crate) fn refuse(&mut self, cx: &mut Cx<'_>, releasing: Releasing, reason: AbortReason) {
        if releasing.void {
            return;
        }
        let refused = Refused {
            home: releasing.home,
            otag: releasing.otag,
            to_incarnation: releasing.want.life,
            seq: releasing.want.seq,
            reason: Some(reason),
        };
        match releasing.otag {
            Some(otag) => {
                let key = &releasing.key;
                self.owner.note_refusal(key, otag, refused.clone());
            }
            None => self.home.finish_request(releasing.want),
        }
        self.moves.refused += 1;
        if let Some(otag) = releasing.otag.filter(|_| self.is_down(releasing.want.to)) {
            self.tell_refused(cx, releasing.home, otag);
        }
        self.say(cx, releasing.want.to, Body::Refused(Box::new(refused)));
    }

    /// Gives the row away: from here on this shard keeps the backup.
    fn release(&mut self, cx: &mut Cx<'_>, releasing: Releasing) {
        let (key, home, want) = (releasing.key, releasing.home, releasing.want);
        let to = want.to;
        let otag = match releasing.otag {
            Some(otag) => {
                self.owner.give(&key, otag, to, cx.now);
                otag
            }
            None => {
                let otag = self.home.next_otag(cx.incarnation);
                let grant = Grant::new(key.clone(), self.shard, want, want, releasing.priority);
                let entry = Entry {
                    grant: Some(otag),
                    ..Entry::new(None, otag, 0)
                };
                let before = self.home.table.insert(key.clone(), entry);
                assert_eq!(before, None, "it was at home");
                self.open_grant(cx, otag, grant);
                otag
            }
        };
        let record = Record::Released {
            shard: self.shard,
            key: key.clone(),
            otag,
            to,
        };
        self.append_record(cx, &record);
        self.errands.note_use(&key);
        self.owner.heat.note_departure(&key, cx.now);
        if home != self.shard {
            self.errands.note_whereabouts(&key, to);
        }
        self.moves.moved_out += 1;
        self.moves_out.note(cx.now);
        self.respond(cx, home, otag, &key, want);
    }

    /// Sends a released row, each time the home asks for it.
    pub(crate) fn respond(
        &mut self,
        cx: &mut Cx<'_>,
        home: ShardId,
        otag: Otag,
        key: &Key,
        want: Want,
    ) {
        let (mut versions, mut whole) = (Vec::new(), true);
        let (horizon, most) = (cx.horizons.of(key.index), self.settings.versions_max.max(1));
        let mut bytes = 0;
        cx.store.versions(key, &mut |commit_ts, value| {
            bytes += value.map_or(0, <[u8]>::len);
            let fits = versions.is_empty() || bytes <= ROW_BYTES_MAX;
            if versions.len() == most || !fits {
                whole = false;
                return false;
            }
            let row = value.map(Box::from);
            versions.push(MovedVersion { commit_ts, row });
            commit_ts > horizon
        });
        let (arrival, mut since) = self.arrival(key);
        since = since.max(horizon);
        if !whole {
            since = since.max(versions.last().expect("at least one").commit_ts);
        }
        let mut position = arrival.max(match versions.first() {
            Some(newest) => self.installed.of(newest.commit_ts),
            None => self.installed.all(),
        });
        if printed!(self, LeapVersionNotDurable) {
            position = Self::NOTHING;
        }
        let floor = if home == self.shard {
            self.home.floor(cx.incarnation)
        } else {
            Otag::default()
        };
        let response = Response {
            home,
            otag,
            floor,
            to_incarnation: want.life,
            seq: want.seq,
            key: key.clone(),
            versions,
            since,
            position: self.in_node(want.to, position),
        };
        // Shards of a node lose together what is not durable. So the row leaves only when its
        // arrival here is durable; else no shard would have a backup.
        let body = Body::Response(Box::new(response));
        self.post_after(cx, want.to, body, position, arrival);
    }

    /// Position of the record of a row's arrival, and the timestamp from which on it has history.
    pub(crate) fn arrival(&self, key: &Key) -> (Position, Ts) {
        if let Some(held) = self.owner.held.get(key) {
            return (held.position, held.since);
        }
        // The row came home a moment ago, perhaps not yet durably.
        let position = self.unsettled_arrival(key);
        (position, self.home.since.get(key).unwrap_or_default())
    }

    /// Position of the record by which a row has come home, if the transfer is not settled.
    pub(crate) fn unsettled_arrival(&self, key: &Key) -> Position {
        let otag = self.home.settling_of.get(key);
        let arrival = otag.and_then(|otag| self.requester.arrival(self.shard, *otag));
        arrival.unwrap_or(Self::NOTHING)
    }

    /// The home says that the new owners have these rows durably: their backups go.
    pub(crate) fn on_release_ack(&mut self, cx: &mut Cx<'_>, home: ShardId, ack: ReleaseAck) {
        self.requester.seen(home).raise(ack.floor);
        for (key, otag) in ack.keys {
            self.drop_backup(cx, key, otag);
        }
    }

    /// Forgets a backup, or a claim that the home has refused, under `otag`.
    pub(crate) fn drop_backup(&mut self, cx: &mut Cx<'_>, key: Key, otag: Otag) {
        let Some(held) = self.owner.held.get(&key) else {
            return;
        };
        let idle = match held.tenure {
            Tenure::Released { .. } => held.otag == otag,
            Tenure::Owned { confirmed } => !confirmed && held.otag <= otag,
        };
        if idle {
            let doubted = matches!(held.tenure, Tenure::Owned { .. });
            self.owner.forget(&key);
            self.evict(cx, key);
            if doubted {
                self.wake_gate();
            }
            self.apply_collected(cx);
        }
    }

    /// Removes a row that lives elsewhere, unless a scan may still visit it.
    pub(crate) fn evict(&mut self, cx: &mut Cx<'_>, key: Key) {
        if self.sharing.has_copy(&key) {
            return;
        }
        if self.is_home(&key) && self.jobs.has_scans() {
            self.home.evictions.push(key);
            return;
        }
        cx.store.evict(&key);
    }

    /// Removes rows that were kept for scans, when no scan is left.
    pub(crate) fn evict_left_over(&mut self, cx: &mut Cx<'_>) {
        if self.home.evictions.is_empty() || self.jobs.has_scans() {
            return;
        }
        for key in core::mem::take(&mut self.home.evictions) {
            let elsewhere = self.home.owner_of(&key).is_some();
            let backup = self.home.kept_backup_of(&key) == Some(self.shard);
            if elsewhere && !backup {
                cx.store.evict(&key);
            }
        }
    }
}
