//! The requester: asking for rows, taking them in, and telling their homes.
//!
//! A transaction locks a row in its own shard's lock table before it requests the row. So there is
//! one request per row and shard, later transactions wait in the lock queue, and the row is locked
//! already when it arrives (the paper's "request lock", section 4.1.3).

use crate::job::{Job, Stop, Wait};
use crate::message::{Body, Fate, Inform, Refused, Response};
use crate::outage::cut_off;
use crate::owner::{Held, Tenure};
use crate::{Cx, Leap, printed};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{Key, Position, ShardId, Time, Ts};
use journal::{Otag, Record};
use txn::{AbortReason, Asked, LockMode, OpError, Priority, Tie};

/// A row that this shard has requested.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) key: Key,
    pub(crate) home: ShardId,
    /// The transaction in whose name the row is requested.
    pub(crate) priority: Priority,
    /// See [`crate::alone`].
    pub(crate) alone: bool,
    /// The row is wanted for reading.
    pub(crate) shared: bool,
    /// The transaction has read the row in a copy, which was given up for this request.
    pub(crate) gave_copy_up: bool,
    /// The owner, if the home has named it.
    pub(crate) at: Option<ShardId>,
    /// Jobs that go on when the row has come.
    pub(crate) waiters: Vec<u64>,
    /// Number of delays between nodes before the request was sent ([`txn::TxnCost`]).
    pub(crate) depth: u32,
    /// Time of the first request.
    pub(crate) asked: Time,
}

impl Asked for Request {
    fn receiver(&self) -> ShardId {
        self.home
    }
}

/// The fate of a grant, of which the home has not said that it knows.
#[derive(Clone, Debug)]
pub(crate) struct PendingInform {
    pub(crate) fate: Fate,
    /// The arrival is durable when the journal is durable to here.
    pub(crate) position: Position,
}

/// Whether this shard is the owner of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// The shard is the owner.
    Mine,
    /// Another shard is the owner.
    Elsewhere,
    /// A restart is not dealt with, and the owner is not known here.
    Doubtful,
}

impl Leap {
    pub(crate) fn standing(&self, key: &Key) -> Standing {
        if self.pendings.is_missing(key) {
            return Standing::Doubtful;
        }
        self.standing_of_claim(key)
    }

    /// As [`Leap::standing`], but formulas that are to be applied to the row do not count.
    pub(crate) fn standing_of_claim(&self, key: &Key) -> Standing {
        if self.is_home(key) {
            if !self.rejoin.is_serving() {
                return Standing::Doubtful;
            }
            if self.home.is_here(key) {
                return Standing::Mine;
            }
            return Standing::Elsewhere;
        }
        match self.owner.held.get(key).map(|held| &held.tenure) {
            // Formulas on the row may be missing until every shard has claimed.
            Some(Tenure::Owned { confirmed: true }) if self.has_collected() => Standing::Mine,
            Some(Tenure::Owned { .. }) => Standing::Doubtful,
            Some(Tenure::Released { .. }) | None => Standing::Elsewhere,
        }
    }

    /// Makes sure that this shard owns the row, or requests it for a job that has locked it here.
    /// `alone`: its transaction has no other lock and asks for nothing else.
    pub(crate) fn own(
        &mut self,
        cx: &mut Cx<'_>,
        key: &Key,
        job: &Job,
        mode: LockMode,
        alone: bool,
    ) -> Result<(), Stop> {
        let (job, priority) = (job.id, job.priority());
        match self.standing(key) {
            Standing::Mine => return Ok(()),
            Standing::Doubtful => return Err(Stop::Wait(Wait::Gate)),
            Standing::Elsewhere => {}
        }
        let home = self.home(key.slot);
        if self.is_down(home) {
            return Err(Stop::aborted(cut_off(key, home, Tie::Home)));
        }
        if self.is_home(key)
            && let Some(reason) = self.hindrance(key)
        {
            return Err(Stop::aborted(reason));
        }
        if mode != LockMode::Shared && cx.journal.is_memory_full() {
            return Err(Stop::aborted(AbortReason::MemoryFull(self.shard)));
        }
        if let Some(request) = self.requester.wanted(key) {
            let other = request.priority;
            // A job that waits for a request waits for all that the request waits for.
            let alone = alone && request.alone;
            if other.txn != priority.txn && other > priority && !alone {
                let (key, holder) = (key.clone(), other.txn);
                return Err(Stop::aborted(AbortReason::Die { key, holder }));
            }
            request.waiters.push(job);
            if !alone {
                self.expose_request(cx, key);
            }
            return Err(Stop::Wait(Wait::Row));
        }
        self.ask(cx, key, Vec::from([job]), priority, mode);
        Err(Stop::Wait(Wait::Row))
    }

    /// Requests a row that is locked here, in the name of the transaction that has locked it.
    pub(crate) fn ask(
        &mut self,
        cx: &mut Cx<'_>,
        key: &Key,
        waiters: Vec<u64>,
        priority: Priority,
        mode: LockMode,
    ) {
        let home = self.home(key.slot);
        let depth = self
            .coord
            .txns
            .get(&priority.txn)
            .map_or(0, |txn| txn.cost.delays);
        let request = Request {
            key: key.clone(),
            home,
            priority,
            alone: false,
            shared: mode == LockMode::Shared,
            gave_copy_up: false,
            at: None,
            waiters,
            depth,
            asked: cx.now,
        };
        let seq = self.requester.begin(request, cx.now);
        self.send_request(cx, seq);
    }

    pub(crate) fn send_request(&mut self, cx: &mut Cx<'_>, seq: u64) {
        let Some(message) = self.requester.message(seq) else {
            return;
        };
        let home = self.home(message.key.slot);
        let txn = message.priority.txn;
        let body = Body::OwnerRequest(Box::new(message));
        let remote = self.is_remote(home);
        if let Some(txn) = self.coord.open(txn) {
            txn.measure(remote, &body);
            txn.cost.messages_in_node += u32::from(!remote && home != self.shard);
        }
        let frames = self.say(cx, home, body);
        if let (1, Some(txn)) = (frames, self.coord.open(txn)) {
            txn.cost.messages_on_path += 1;
        }
    }

    pub(crate) fn on_working(&mut self, cx: &mut Cx<'_>, seq: u64, at: Option<ShardId>) {
        self.requester.requests.hear(seq, cx.now);
        let Some(request) = self.requester.requests.get_mut(seq) else {
            return;
        };
        request.at = at.or(request.at);
        let key = request.key.clone();
        // The home can reach the owner, but this shard could not get the row from there.
        if let Some(owner) = at.filter(|owner| self.is_down(*owner)) {
            self.fail_request(cx, seq, Some(cut_off(&key, owner, Tie::Owner)));
        }
    }

    /// A row has arrived.
    pub(crate) fn on_response(&mut self, cx: &mut Cx<'_>, from: ShardId, response: Response) {
        if response.to_incarnation != cx.incarnation {
            return;
        }
        let (home, otag) = (response.home, response.otag);
        let filtered = !printed!(self, LeapDuplicateAccepted);
        let seen = self.requester.seen(home);
        seen.raise(response.floor);
        if seen.is_over(otag) && filtered {
            self.inform_again(cx, home, otag);
            return;
        }
        seen.end(otag, ());
        let known = self.owner.held.get(&response.key).map(|held| held.otag);
        if known.is_some_and(|known| known >= otag) && filtered {
            // A former life of this shard has the row durably.
            self.inform(cx, home, otag, Fate::Durable, Self::NOTHING);
            return;
        }
        self.take_in(cx, from, response);
    }

    fn take_in(&mut self, cx: &mut Cx<'_>, from: ShardId, response: Response) {
        let Response {
            home,
            otag,
            seq,
            key,
            versions,
            since,
            position,
            ..
        } = response;
        cx.store.evict(&key);
        self.sharing.forget(&key);
        // The index may have been dropped while the row was under way.
        let dropped = (cx.schema_changed)(key.index).is_none();
        let horizon = cx.horizons.of(key.index);
        for version in versions.iter().rev().filter(|_| !dropped) {
            let (commit_ts, row) = (version.commit_ts, version.row.as_deref());
            cx.store.restore(&key, commit_ts, row, horizon);
        }
        if let Some(newest) = versions.first()
            && position > cx.durable
        {
            self.installed.insert(newest.commit_ts, position);
        }
        let at = cx.clock.tick(cx.now);
        let version = self.newest(cx, &key);
        let arrival = if printed!(self, LeapArrivalNotLogged) {
            Self::NOTHING
        } else {
            let key = key.clone();
            let shard = self.shard;
            self.append_record(
                cx,
                &Record::Acquired {
                    shard,
                    key,
                    otag,
                    from,
                    at,
                    version,
                },
            )
        };
        if home == self.shard {
            if since > horizon {
                self.home.since.insert(key.clone(), since);
            }
        } else {
            let held = Held {
                otag,
                seen: otag,
                tenure: Tenure::Owned { confirmed: true },
                since,
                position: arrival,
            };
            self.owner.own(key.clone(), held);
        }
        self.owner.heat.note_arrival(&key, cx.now);
        self.moves_in.note(cx.now);
        self.count_arrival(cx, from, home, seq, &versions);
        // A requester that is the home itself changes its owner table at once.
        self.inform(cx, home, otag, Fate::Acquired, arrival);
        self.end_request_for(&key);
    }

    fn count_arrival(
        &mut self,
        cx: &mut Cx<'_>,
        from: ShardId,
        home: ShardId,
        seq: u64,
        versions: &[crate::message::MovedVersion],
    ) {
        let hop = |a: ShardId, b: ShardId| u32::from(a.node() != b.node());
        let here = self.shard;
        let back = hop(home, from) + hop(from, here);
        self.moves.moved_in += 1;
        match (home == here, home == from) {
            (true, _) => self.moves.rp_o += 1,
            (false, true) => self.moves.r_po += 1,
            (false, false) => self.moves.r_p_o += 1,
        }
        cx.counters.rows_moved += 1;
        let Some(request) = self.requester.requests.get(seq) else {
            return;
        };
        let waited_us = cx.now.since(request.asked);
        cx.counters.move_wait_us += waited_us;
        let delays = request.depth + hop(here, home) + back;
        if let Some(txn) = self.coord.open(request.priority.txn) {
            txn.cost.delays = txn.cost.delays.max(delays);
            txn.cost.messages_on_path += back * cx.out.frames.came();
            txn.cost.messages_off_path += if home == here {
                hop(home, from)
            } else if home == from {
                2 * hop(here, home)
            } else {
                2 * hop(here, home) + hop(home, from)
            };
            txn.measure(true, versions);
            txn.cost.rows_moved += 1;
            txn.cost.move_wait_us += waited_us;
            for shard in [home, from] {
                txn.note_node(shard);
            }
        }
    }

    /// A request is answered: the jobs that wait for it go on.
    pub(crate) fn end_request(&mut self, seq: u64) {
        if let Some(request) = self.requester.end(seq) {
            self.locks.end_patience(&request.key);
            self.jobs.wake_all(request.waiters);
        }
    }

    /// A row is here: the request for it, if there is one, is answered. The row may have come by a
    /// former request, or be back because its transfer was called off. Then the request keeps its
    /// place at the home, which finds the row here. To wait until then might be a cycle: whoever
    /// has the turn before waits for the lock that is held here.
    pub(crate) fn end_request_for(&mut self, key: &Key) {
        if let Some(seq) = self.requester.seq_of(key) {
            self.end_request(seq);
        }
    }

    pub(crate) fn on_refused(&mut self, cx: &mut Cx<'_>, refused: Refused) {
        if refused.to_incarnation != cx.incarnation {
            return;
        }
        if let Some(otag) = refused.otag {
            let seen = self.requester.seen(refused.home);
            if seen.is_over(otag) {
                self.inform_again(cx, refused.home, otag);
                return;
            }
            seen.end(otag, ());
            self.refuse_reader(cx, otag, &refused);
            self.inform(cx, refused.home, otag, Fate::Refused, Self::NOTHING);
        }
        self.fail_request(cx, refused.seq, refused.reason);
    }

    /// A request has failed. With a `reason`, its transaction is rolled back. The other jobs that
    /// waited for the request ask again in their own name.
    ///
    /// A transaction that has read a copy of the row and has asked to write the row cannot ask
    /// again: the copy may be gone, and another transaction may have written since.
    pub(crate) fn fail_request(&mut self, cx: &mut Cx<'_>, seq: u64, reason: Option<AbortReason>) {
        let Some(request) = self.requester.end(seq) else {
            return;
        };
        self.locks.end_patience(&request.key);
        let Some(request) = self.asked_alone(cx, request, reason.as_ref()) else {
            return;
        };
        let has_copy = !request.shared && self.sharing.has_copy(&request.key);
        let has_read = request.gave_copy_up || has_copy;
        let reason = match reason {
            None if has_read => cut_off(&request.key, request.home, Tie::Home),
            None => {
                self.jobs.wake_all(request.waiters);
                return;
            }
            Some(reason) => reason,
        };
        let txn = request.priority.txn;
        for id in request.waiters {
            let named = self
                .jobs
                .get(id)
                .is_some_and(|job| job.txn == request.priority.txn);
            if named {
                self.fail_job(cx, id, OpError::Aborted(reason.clone()));
            } else {
                self.jobs.wake(id);
            }
        }
        // The transaction may have asked ahead, and no job of it waits here.
        if has_read && self.coord.txns.contains_key(&txn) {
            self.abort_txn(cx, txn, reason);
        }
    }

    /// Tells a home the fate of a grant, and notes that until the home says that it knows.
    pub(crate) fn inform(
        &mut self,
        cx: &mut Cx<'_>,
        home: ShardId,
        otag: Otag,
        fate: Fate,
        position: Position,
    ) {
        let certain = !self.is_remote(home);
        let pending = PendingInform { fate, position };
        let grant = (home, otag);
        self.requester.note_fate(grant, pending, cx.now, certain);
        let fates = Vec::from([(otag, fate)]);
        let inform = Inform {
            fates,
            again: false,
        };
        self.say(cx, home, Body::Inform(inform));
        if fate == Fate::Acquired && position <= cx.durable {
            self.arrivals_durable(cx, cx.durable);
        }
    }

    /// Tells the fate of a grant again, because the home seems not to know it.
    pub(crate) fn inform_again(&mut self, cx: &mut Cx<'_>, home: ShardId, otag: Otag) {
        let Some(pending) = self.requester.informs.resend(&(home, otag), cx.now) else {
            return;
        };
        let fates = Vec::from([(otag, pending.fate)]);
        let inform = Inform { fates, again: true };
        self.say(cx, home, Body::Inform(inform));
    }

    /// Tells the homes of rows whose arrival has become durable.
    pub(crate) fn arrivals_durable(&mut self, cx: &mut Cx<'_>, durable: Position) {
        let node = self.shard.node();
        for (home, fates) in self.requester.arrived(durable, node, cx.now) {
            let again = false;
            let inform = Inform { fates, again };
            self.say(cx, home, Body::Inform(inform));
        }
    }

    /// The home calls a grant off, because its owner has restarted or cannot reach this shard. The
    /// row is here already, or is refused for good.
    pub(crate) fn on_cancel(&mut self, cx: &mut Cx<'_>, home: ShardId, key: &Key, otag: Otag) {
        let held = self
            .owner
            .held
            .get(key)
            .is_some_and(|held| held.otag == otag);
        if self.requester.informs.contains(&(home, otag)) {
            self.inform_again(cx, home, otag);
        } else if held {
            // A former life of this shard has the row durably.
            self.inform(cx, home, otag, Fate::Durable, Self::NOTHING);
        } else if !self.requester.seen(home).is_over(otag) {
            self.requester.seen(home).end(otag, ());
            self.inform(cx, home, otag, Fate::Refused, Self::NOTHING);
        }
    }

    /// Whether the version that a snapshot at `ts` needs may be missing here.
    pub(crate) fn lacks_history(&self, key: &Key, ts: Ts) -> bool {
        let since = if self.is_home(key) {
            self.home.since.get(key)
        } else {
            let copied = self.sharing.copied_since(key);
            copied.or_else(|| self.owner.held.get(key).map(|held| held.since))
        };
        since.is_some_and(|since| ts < since)
    }
}
