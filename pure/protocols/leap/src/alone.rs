//! Requests that wait whatever their age (rule R4), and who waits for a row that is under way.
//!
//! A transaction that holds nothing may wait for an older one where their row is: nobody waits for
//! it, so no cycle can contain it. Its request for a row that is away would wait in the same way,
//! at the home and at the owner, but here it holds the lock of that row, for which others may wait.
//! As long as these are alone as well, nobody waits for them. So a request that would die of an
//! older transaction is made again, and is *alone*
//!
//! | while | else |
//! |---|---|
//! | its transaction waits for nothing else | [`Leap::expose_request`] |
//! | none but requests that are alone wait for its lock | [`txn::LockTable::begin_patience`] |
//! | none but such wait behind its turn at the home | the same, in the home's queue |
//!
//! One that is *exposed* is judged by age from then on: its message is sent again and says so, the
//! home does the same with its own to the owner, and where the request waits for an older
//! transaction it dies. Until these messages arrive there may be a cycle; they are repeated like
//! all requests, so it does not last.

use crate::home::{Stage, Want, place};
use crate::job::Origin;
use crate::request::Request;
use crate::{Cx, Leap, printed};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::Key;
use txn::AbortReason;
use txn::lock::AwaitedRow;

impl Leap {
    /// Requester: makes a request again that was refused for its age, if its transaction may wait
    /// for an older one. Else returns the request.
    pub(crate) fn asked_alone(
        &mut self,
        cx: &mut Cx<'_>,
        request: Request,
        reason: Option<&AbortReason>,
    ) -> Option<Request> {
        let txn = request.priority.txn;
        let mut jobs = request.waiters.iter().filter_map(|id| self.jobs.get(*id));
        // One that inserts many rows has others locked as well, which it has requested ahead. One
        // that is all of its transaction is run again, and goes to the row of many (`entrust`).
        let alone = jobs.any(|job| {
            let whole = matches!(job.origin, Origin::Local { last: true, .. });
            job.txn == txn && job.alone && job.asked_ahead == 0 && !whole
        });
        let may_wait = matches!(reason, Some(AbortReason::Die { .. }))
            && alone
            && !request.shared
            && !request.gave_copy_up
            && !self.sharing.has_copy(&request.key)
            && self.locks.begin_patience(&request.key, txn);
        if !may_wait {
            return Some(request);
        }
        let alone = Request {
            alone: true,
            at: None,
            ..request
        };
        let seq = self.requester.begin(alone, cx.now);
        self.send_request(cx, seq);
        None
    }

    /// Requester: the request for a row is alone no more, if it was.
    pub(crate) fn expose_request(&mut self, cx: &mut Cx<'_>, key: &Key) {
        self.locks.end_patience(key);
        if printed!(self, LeapStaysAlone) {
            return;
        }
        if let Some(seq) = self.requester.expose(key) {
            self.send_request(cx, seq);
        }
    }

    /// Home: another request waits behind the one that has the turn of a row.
    pub(crate) fn expose_turn(&mut self, cx: &mut Cx<'_>, key: &Key) {
        let leaving = self.owner.release_of(key);
        let leaving = leaving.filter(|it| it.otag.is_none()).map(|it| it.want);
        if printed!(self, LeapStaysAlone) {
            return;
        }
        if let Some(want) = leaving.or_else(|| self.home.turn_of(key)) {
            self.expose_incoming(cx, want);
        }
    }

    /// Home: a request is alone no more, if it was.
    pub(crate) fn expose_incoming(&mut self, cx: &mut Cx<'_>, want: Want) {
        let incoming = self.home.incoming.get_mut(&want);
        let Some(incoming) = incoming.filter(|incoming| incoming.alone) else {
            return;
        };
        incoming.alone = false;
        let (key, stage) = (incoming.key.clone(), incoming.stage);
        match stage {
            Stage::Queued(_) => {
                self.home.dispatch.expose(place(want));
                return;
            }
            Stage::Locking => self.expose_release(&key),
            Stage::Granted(otag) => {
                if let Some(grant) = self.home.grants.get_mut(otag) {
                    grant.alone = false;
                }
                self.send_transfer(cx, otag);
            }
        }
        self.home.dispatch.end_patience(&key);
    }

    /// Owner: the request for which a row is to leave is alone no more.
    pub(crate) fn expose_release(&mut self, key: &Key) {
        if let Some(releasing) = self.owner.release_of_mut(key)
            && core::mem::replace(&mut releasing.alone, false)
        {
            self.locks.expose(releasing.priority.txn);
        }
    }

    /// The rows for which most operations of this shard wait: for their locks, or for their
    /// arrival. Requests of other shards are left out; each is counted where its operation is. A
    /// row that is not here has no holder.
    pub(crate) fn rows_awaited_here(
        &self,
        wants: &dyn Fn(&Key) -> bool,
        count: usize,
    ) -> Vec<AwaitedRow> {
        let own = |request| !self.owner.releasing.contains_key(&request);
        let rows = self.locks.awaited_rows(wants, &own);
        let mut rows: BTreeMap<Key, AwaitedRow> =
            rows.into_iter().map(|row| (row.key.clone(), row)).collect();
        for (_, request) in self.requester.requests.iter() {
            if request.waiters.is_empty() || !wants(&request.key) {
                continue;
            }
            let row = rows.entry(request.key.clone()).or_insert(AwaitedRow {
                key: request.key.clone(),
                holder: None,
                since: request.asked,
                waiters: 0,
            });
            row.holder = None;
            row.since = row.since.min(request.asked);
            row.waiters += request.waiters.len();
        }
        AwaitedRow::longest(rows.into_values().collect(), count)
    }
}
