//! Nodes that cannot be reached, and what works without them.
//!
//! A row that such a node has, or is about to get, cannot be used. Transactions that wait for the
//! row, and all that ask for it later, fail at once. Everything else goes on:
//!
//! | part of the node that is away | what the others do |
//! |---|---|
//! | owner, or new owner under way | its home refuses requests for the row |
//! | home | the owner uses the row, reads go to the owner, and no other shard gets the row |
//! | requester | rows do not leave for it; a row that has left and not arrived comes back |
//! | reader with a copy | writers are refused |
//! | coordinator with read locks here | the locks go after a while: a commit has to confirm them |
//! | coordinator of a formula here | the row is in doubt: no other shard knows the outcome |
//!
//! An owner that cannot reach a requester says so to the home, which may reach both. A row that is
//! still at the owner is refused under its grant for good (L2). A row that has left is called off:
//! the requester refuses it unless it has arrived, and the backup becomes the row again. Both
//! happen too when an owner restarts, so no rule is new.

use crate::home::{Stage, Want};
use crate::job::{Job, Origin, Stop, Wait};
use crate::message::{Body, Fate, Inform};
use crate::owner::Tenure;
use crate::{Cx, Leap, printed};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use base::{Key, NodeId, ShardId, Time, TxnId};
use journal::Otag;
use txn::lock::Item;
use txn::{AbortReason, Doubt, Op, OpError, Tie};

/// Longest wait, in microseconds, until a restart is dealt with, while a node is away.
const GATED_US_MAX: u64 = 1_000_000;

/// The reason that a row cannot be used because the shard `at` cannot be reached.
pub(crate) fn cut_off(key: &Key, at: ShardId, tie: Tie) -> AbortReason {
    let key = key.clone();
    AbortReason::RowCutOff { key, at, tie }
}

impl Leap {
    pub(crate) fn is_down(&self, shard: ShardId) -> bool {
        self.peers.is_down(shard)
    }

    /// The shard that is away and has a row of this home, or is about to get it or to give it.
    pub(crate) fn obstacle(&self, key: &Key) -> Option<ShardId> {
        if self.peers.all_up() {
            return None;
        }
        let mut concerned = self.home.concerned(key);
        concerned.find(|shard| self.is_down(*shard))
    }

    /// As [`Leap::obstacle`]: the reason to roll back.
    pub(crate) fn hindrance(&self, key: &Key) -> Option<AbortReason> {
        let at = self.obstacle(key)?;
        Some(cut_off(key, at, Tie::Owner))
    }

    /// The reason that a row does not move on: the shard that is to send or to take it has been
    /// silent for `request_timeout_us`; or for [`GATED_US_MAX`], if it has restarted and may wait
    /// for a node that is away.
    pub(crate) fn standstill(&self, cx: &Cx<'_>, key: &Key) -> Option<AbortReason> {
        let (otag, grant) = self.home.grant_of(key)?;
        let mut ends = [grant.from, grant.want.to].into_iter();
        let gated = ends.find(|shard| !self.peers.all_up() && !self.has_joined(*shard));
        let timeout_us = gated.map_or(self.settings.request_timeout_us, |_| GATED_US_MAX);
        let at = gated.unwrap_or(grant.from);
        let silent = self.home.grants.is_silent(otag, cx.now, timeout_us);
        (silent && self.is_remote(at)).then(|| cut_off(key, at, Tie::Owner))
    }

    /// A node cannot be reached: what waits for it fails. Requested rows may still come later.
    pub(crate) fn peer_down(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        let own = node == self.shard.node();
        if own || printed!(self, LeapOutageWaitedFor) || !self.peers.lose(node, cx.now) {
            return;
        }
        self.rejoin.peer_down(node);
        self.keep_rows_from(cx, node);
        // No row must go there. It asks again later.
        self.forget_requests(node, u32::MAX);
        self.refuse_cut_off(cx);
        self.lose_errands(cx, node, u32::MAX);
        self.fail_recalls(cx, node);
        self.fail_homeless(cx, node);
        self.redirect_readings(cx, node);
        self.fail_fetches(cx, node);
        self.fail_confirming(cx, node);
        self.fail_doubters(cx, node);
        // Jobs of these lists look anew whether they wait in vain.
        self.wake_gate();
        self.wake_snapshots();
        self.ask_again(cx);
    }

    /// A node can be reached again: what waited for it is sent at once.
    pub(crate) fn peer_up(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        if !self.peers.regain(node) {
            return;
        }
        let at = |shard: ShardId| shard.node() == node;
        for otag in self
            .home
            .grants
            .select(|grant| at(grant.from) || at(grant.want.to))
        {
            self.hurry_grant(cx, otag);
        }
        for seq in self.requester.requests.at(node) {
            self.hurry_request(cx, seq);
        }
        let told = self
            .requester
            .informs
            .iter()
            .filter(|((home, _), _)| at(*home));
        let told: Vec<(ShardId, Otag)> = told.map(|(number, _)| *number).collect();
        self.tell_again(cx, told);
        self.wake_gate();
    }

    fn hurry_grant(&mut self, cx: &mut Cx<'_>, otag: Otag) {
        self.home.grants.hear(otag, cx.now);
        if self.home.grants.restart(otag, cx.now) {
            self.send_transfer(cx, otag);
        }
    }

    fn hurry_request(&mut self, cx: &mut Cx<'_>, seq: u64) {
        if self.requester.requests.restart(seq, cx.now) {
            self.send_request(cx, seq);
        }
    }

    /// A node is away. Asks homes that can be reached again for requested rows, which may be at
    /// that node. A home that does not know of the outage yet is asked again soon.
    fn ask_again(&mut self, cx: &mut Cx<'_>) {
        let peers = &self.peers;
        for seq in self
            .requester
            .requests
            .select(|request| !peers.is_down(request.home))
        {
            self.hurry_request(cx, seq);
        }
        for number in self.coord.readings.select(|_| true) {
            self.hurry_reading(cx, number);
        }
    }

    fn hurry_reading(&mut self, cx: &mut Cx<'_>, number: u64) {
        if self.coord.readings.restart(number, cx.now) {
            self.send_read(cx, number);
        }
    }

    /// Home: refuses all requests for a row that cannot be used now. Grants run to their end.
    fn refuse_cut_off(&mut self, cx: &mut Cx<'_>) {
        let requests = self.home.incoming.iter().filter_map(|(at, incoming)| {
            let reason = self.hindrance(&incoming.key)?;
            (incoming.reclaim.is_none()).then_some((*at, reason))
        });
        let requests: Vec<(Want, AbortReason)> = requests.collect();
        for (want, reason) in requests {
            self.refuse_waiting(cx, want, reason);
        }
    }

    /// Home: refuses a request that waits in vain, which leaves the queue unless it was granted.
    pub(crate) fn refuse_waiting(&mut self, cx: &mut Cx<'_>, want: Want, reason: AbortReason) {
        let Some(incoming) = self.home.incoming.get(&want) else {
            return;
        };
        if let Stage::Queued(_) = incoming.stage {
            self.home.finish_request(want);
        }
        self.refuse_request(cx, want, Some(reason));
    }

    /// Owner: rows that are to leave for a node that is away stay. Of rows that have left, tells
    /// the homes, which may reach that node.
    fn keep_rows_from(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        let leaving = self.owner.releasing.iter();
        let leaving = leaving.filter(|(_, r)| r.want.to.node() == node && !r.void);
        let leaving: Vec<u64> = leaving.map(|(id, _)| *id).collect();
        for id in leaving {
            let reason = AbortReason::Unreachable(self.shard);
            self.call_off_release(cx, id, reason);
        }
        let mut left: BTreeMap<ShardId, Vec<Otag>> = BTreeMap::new();
        for (key, ()) in self.owner.backups.iter() {
            if let Some(held) = self.owner.held.get(key)
                && let Tenure::Released { to } = held.tenure
                && to.node() == node
            {
                left.entry(self.home(key.slot)).or_default().push(held.otag);
            }
        }
        for (home, otags) in left {
            self.say(cx, home, Body::Stranded(otags));
        }
    }

    /// Owner: refuses a release that has begun, and takes its lock request back.
    pub(crate) fn call_off_release(&mut self, cx: &mut Cx<'_>, id: u64, reason: AbortReason) {
        // Copies of the row may be being recalled: then the wait goes on, and nothing follows it.
        let Some(refused) = self.owner.void_release_of(id) else {
            return;
        };
        let txn = refused.priority.txn;
        if !self.sharing.is_recalled_for(&refused.key, id) {
            self.owner.end_release(id);
            self.locks.withdraw(txn, id);
            self.let_go_if_idle(txn, &refused.key);
        }
        self.refuse(cx, refused, reason);
    }

    /// Frees a lock that may have been granted to a release in this step.
    fn let_go_if_idle(&mut self, txn: TxnId, key: &Key) {
        let visit = self.visits.get(txn);
        let used = visit.is_some_and(|visit| !visit.given_up) || self.pendings.formulas.knows(txn);
        if !used && !self.coord.txns.contains_key(&txn) {
            self.locks.release_item(txn, &Item::of(key));
        }
    }

    /// Owner: tells a home that a grant was refused, because its requester cannot be told.
    pub(crate) fn tell_refused(&mut self, cx: &mut Cx<'_>, home: ShardId, otag: Otag) {
        let fates = Vec::from([(otag, Fate::Refused)]);
        let inform = Inform {
            fates,
            again: false,
        };
        self.say(cx, home, Body::Inform(inform));
    }

    /// Home: the owner has refused a grant, and its requester may not have heard of it.
    pub(crate) fn refused_by_owner(&mut self, cx: &mut Cx<'_>, otag: Otag) {
        let grant = &self.home.grants[otag];
        let (key, owner) = (grant.key.clone(), grant.from);
        let request = grant.request;
        let waits = self.home.incoming.contains_key(&request);
        self.grant_refused(cx, otag);
        if waits {
            let reason = cut_off(&key, owner, Tie::Owner);
            self.refuse_request(cx, request, Some(reason));
        }
    }

    /// Home: rows have left, and their owner cannot reach the requester. If this home can, it asks
    /// the requester to refuse them unless it has them.
    pub(crate) fn on_stranded(&mut self, cx: &mut Cx<'_>, from: ShardId, otags: &[Otag]) {
        for otag in otags {
            let Some(grant) = self.home.grants.get_mut(*otag) else {
                continue;
            };
            let (to, own) = (grant.want.to, self.shard);
            let reaches = to != own && !self.peers.is_down(to);
            if grant.from == from && to != from && reaches && !grant.cancel {
                grant.cancel = true;
                self.hurry_grant(cx, *otag);
            }
        }
    }

    /// Requester: rolls back transactions that wait for a home that is away. The requests go on:
    /// if the home grants them, the rows come.
    fn fail_homeless(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        let asked = self.requester.requests.iter_mut();
        let asked = asked.filter(|(_, request)| request.home.node() == node);
        let waiters = asked.flat_map(|(_, request)| {
            let reason = cut_off(&request.key, request.home, Tie::Home);
            let waiters = core::mem::take(&mut request.waiters);
            waiters.into_iter().map(move |id| (id, reason.clone()))
        });
        let waiters: Vec<(u64, AbortReason)> = waiters.collect();
        for (id, reason) in waiters {
            self.fail_job(cx, id, OpError::Aborted(reason));
        }
    }

    /// Coordinator: sends reads at a node that is away to another shard, or fails them.
    fn redirect_readings(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        for number in self.coord.readings.at(node) {
            self.read_without(cx, number);
        }
    }

    /// Coordinator: the shard to which a read was sent is away, or does not have the row while the
    /// home is away. Asks the next shard; if none is left, rolls the transaction back.
    pub(crate) fn read_without(&mut self, cx: &mut Cx<'_>, number: u64) {
        let Some(reading) = self.coord.readings.get(number) else {
            return;
        };
        let (txn, to) = (reading.txn, reading.to);
        let Some(key) = reading.request.op.key().cloned() else {
            self.abort_txn(cx, txn, AbortReason::Unreachable(to));
            return;
        };
        let mut tried = reading.tried.clone();
        tried.insert(to);
        match self.reader_of(&key, &tried) {
            Ok(next) => {
                let reading = &mut self.coord.readings[number];
                (reading.to, reading.tried) = (next, tried);
                self.hurry_reading(cx, number);
            }
            Err(reason) => self.abort_txn(cx, txn, reason),
        }
    }

    /// Whether the home of what a read wants is away.
    pub(crate) fn is_homeless(&self, number: u64) -> bool {
        let reading = self.coord.readings.get(number);
        let key = reading.and_then(|reading| reading.request.op.key());
        key.is_some_and(|key| self.is_down(self.home(key.slot)))
    }

    /// The shard that is asked to read a row that is not here: its home. If the home is away, the
    /// last known owner, then all shards in turn: the owner answers.
    pub(crate) fn reader_of(
        &self,
        key: &Key,
        tried: &BTreeSet<ShardId>,
    ) -> Result<ShardId, AbortReason> {
        let home = self.home(key.slot);
        if !self.is_down(home) {
            return Ok(home);
        }
        let last = self.errands.last_seen(key);
        let shards = self.placement.shards().iter().copied();
        let mut others = last.into_iter().chain(shards);
        let next = others
            .find(|shard| *shard != self.shard && !self.is_down(*shard) && !tried.contains(shard));
        next.ok_or_else(|| cut_off(key, home, Tie::Home))
    }

    /// Home: scans that wait for rows of a node that is away are rolled back.
    fn fail_fetches(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        for number in self.fetches.at(node) {
            if let Some(fetching) = self.fetches.end(number) {
                let error = OpError::Aborted(fetching.reason());
                self.fail_job(cx, fetching.job, error);
            }
        }
    }

    /// Coordinator: rolls back transactions whose read locks a shard that is away cannot confirm.
    /// Nothing of them is committed yet.
    fn fail_confirming(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        for (txn, shard) in self.coord.lost_confirms(node, u32::MAX) {
            self.abort_txn(cx, txn, AbortReason::Unreachable(shard));
        }
    }

    /// The reason that a row is in doubt: a formula is pending on it whose coordinator is away.
    pub(crate) fn doubt_of(&self, key: &Key) -> Option<AbortReason> {
        if self.peers.all_up() {
            return None;
        }
        let mut open = self.pendings.undecided_on(key);
        let (txn, at) = open.find(|(_, coordinator)| self.is_down(*coordinator))?;
        Some(cut_off(key, at, Tie::Doubt(Box::new(txn))))
    }

    /// Transactions with formulas here whose coordinator is away, in their order.
    pub(crate) fn pending_doubts(&self, now: Time) -> Vec<Doubt> {
        if self.peers.all_up() {
            return Vec::new();
        }
        let open = self.pendings.undecided();
        let doubts = open.filter_map(|(txn, coordinator, keys)| {
            let node = coordinator.node();
            let since = self.peers.down_since(node)?;
            let waiting = keys.iter().map(|key| self.locks.waiting_on(&Item::of(key)));
            Some(Doubt {
                txn,
                node,
                state: "pending",
                age_us: now.since(since),
                rows: keys.len() as u64,
                waiters: waiting.map(|requests| requests.len() as u64).sum(),
            })
        });
        doubts.collect()
    }

    /// As [`Leap::doubt_of`], for all rows that a lock covers.
    pub(crate) fn doubt_in(&self, item: &Item<'_>) -> Option<AbortReason> {
        if self.peers.all_up() || self.pendings.is_idle() {
            return None;
        }
        let mut keys = self.pendings.formulas.rows();
        keys.find_map(|key| {
            let overlaps = Item::of(key).overlaps(item);
            overlaps.then(|| self.doubt_of(key)).flatten()
        })
    }

    /// Owner: fails what waits for a row on which a formula is pending whose coordinator is away.
    /// No more formulas of that coordinator are held.
    fn fail_doubters(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        let of_node = self.guests.txns().filter(|txn| txn.shard.node() == node);
        for txn in of_node.collect::<Vec<TxnId>>() {
            self.decline_held(cx, txn);
        }
        let keys = self.pendings.keys_of_coordinator(node);
        for key in keys {
            let Some(reason) = self.doubt_of(&key) else {
                continue;
            };
            for request in self.locks.waiting_on(&Item::of(&key)) {
                self.give_up_lock(cx, request, &reason);
            }
        }
    }

    /// Ends the job, the release or the copy that waits for a lock under this number.
    pub(crate) fn give_up_lock(&mut self, cx: &mut Cx<'_>, id: u64, reason: &AbortReason) {
        if self.owner.releasing.contains_key(&id) {
            self.call_off_release(cx, id, reason.clone());
        } else if let Some(job) = self.jobs.get(id) {
            let txn = job.txn;
            self.locks.withdraw(txn, id);
            self.fail_job(cx, id, OpError::Aborted(reason.clone()));
        } else {
            self.give_up_lending(cx, id, reason);
        }
    }

    /// Why a job that waits until a restart is dealt with waits for a node that is away.
    pub(crate) fn gate_reason(&self, job: &Job) -> Option<AbortReason> {
        if self.peers.all_up() {
            return None;
        }
        if let Some(away) = self.rejoin.awaits(&|shard| self.is_down(shard)) {
            return Some(AbortReason::Unreachable(away));
        }
        let key = job.op.as_ref().and_then(Op::key)?;
        let home = self.home(key.slot);
        self.is_down(home).then(|| cut_off(key, home, Tie::Home))
    }

    /// Fails jobs that have waited for [`GATED_US_MAX`] until a restart is dealt with, while a node
    /// is away: a shard that must claim may itself wait for that node.
    pub(crate) fn fail_gated(&mut self, cx: &mut Cx<'_>) {
        let Some(away) = self.peers.down().next().map(|node| ShardId::new(node, 0)) else {
            return;
        };
        let late = |id: &&u64| {
            let since = self.jobs.get(**id).and_then(|job| job.gated);
            since.is_some_and(|since| cx.now.since(since) >= GATED_US_MAX)
        };
        let late: Vec<u64> = self.rejoin.waits.iter().filter(late).copied().collect();
        for id in late {
            self.rejoin.waits.retain(|other| *other != id);
            let reason = AbortReason::Unreachable(away);
            self.fail_job(cx, id, OpError::Aborted(reason));
        }
    }

    /// Fails a job that would wait in vain. Returns the job if it may wait.
    pub(crate) fn looks_out(
        &mut self,
        cx: &mut Cx<'_>,
        job: Box<Job>,
        stop: &Stop,
    ) -> Option<Box<Job>> {
        let reason = if let Stop::Wait(Wait::Gate) = stop {
            self.gate_reason(&job)
        } else if let (Stop::Wait(Wait::Moving), None) = (stop, &job.scan) {
            let key = job.op.as_ref().and_then(Op::key);
            key.and_then(|key| self.hindrance(key).or_else(|| self.standstill(cx, key)))
        } else {
            None
        };
        let Some(reason) = reason else {
            return Some(job);
        };
        if let Origin::Local { id, .. } = job.origin
            && let Some(state) = self.coord.txns.get_mut(&job.txn)
        {
            state.local.retain(|(op, _)| *op != id);
        }
        self.end_job(cx, job, Err(OpError::Aborted(reason)));
        None
    }
}
