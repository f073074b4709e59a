//! What time makes happen: messages sent again, shards asked, silent ones given up.

use crate::home::Grant;
use crate::message::{Body, Fate, Inform};
use crate::outage::cut_off;
use crate::owner::Tenure;
use crate::{Context, Leap, printed};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{Key, ShardId, Time, TxnId};
use journal::Otag;
use txn::{AbortReason, OpError, Tie};

/// Whose time has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Timer {
    /// A row that was asked for has not come.
    Request(u64),
    /// A grant has not been heard of.
    Grant(Otag),
    /// A read elsewhere was not answered.
    Reading(u64),
    /// A fetch was not answered.
    Fetching(u64),
    /// A row that has just come may leave now.
    Release(u64),
    /// Copies that are called back.
    Recalls,
    /// An entrusted transaction was not answered.
    Errand(u64),
    /// Formulas that are held here are not resolved.
    Pendings,
    /// Owners have not said that they have applied formulas.
    Owings,
    /// Confirmations are missing.
    Confirm(TxnId),
    /// A coordinator is to be asked what has become of its transaction.
    Visit(TxnId),
    /// Homes that may not know the fate of their grants.
    Informs,
    /// Backups that nobody has acknowledged.
    Backups,
    /// Claims and questions after a restart.
    Rejoin,
    /// Rows of dropped indexes that were in use.
    Dropped,
}

impl Leap {
    pub(crate) fn run_timers(&mut self, cx: &mut Context<'_>) {
        while let Some(&(at, timer)) = self.timers.first() {
            if at > cx.now {
                break;
            }
            self.timers.pop_first();
            match timer {
                Timer::Request(seq) => self.on_request_timer(cx, seq),
                Timer::Grant(otag) => self.on_grant_timer(cx, otag),
                Timer::Reading(number) => self.on_reading_timer(cx, number),
                Timer::Fetching(number) => self.on_fetching_timer(cx, number),
                Timer::Release(id) => self.lock_release(cx, id),
                Timer::Recalls => self.on_recalls_timer(cx),
                Timer::Errand(number) => self.on_errand_timer(cx, number),
                Timer::Confirm(txn) => {
                    let open = self
                        .txns
                        .get(&txn)
                        .is_some_and(|t| !t.unconfirmed.is_empty());
                    if open && self.committing.contains_key(&txn) {
                        self.send_confirms(cx, txn, false);
                    }
                }
                Timer::Visit(txn) => {
                    if let Some(visit) = self.visits.get_mut(&txn) {
                        visit.timer = None;
                        self.inquire(cx, txn);
                    }
                }
                Timer::Pendings => self.on_pendings_timer(cx),
                Timer::Owings => self.on_owings_timer(cx),
                Timer::Informs => self.on_informs_timer(cx),
                Timer::Backups => self.on_backups_timer(cx),
                Timer::Rejoin => self.rejoin_again(cx),
                Timer::Dropped => self.forget_dropped(cx),
            }
        }
    }

    fn on_request_timer(&mut self, cx: &mut Context<'_>, seq: u64) {
        let settings = self.settings;
        let Some(request) = self.requests.get_mut(&seq) else {
            return;
        };
        if cx.now.since(request.heard) >= settings.request_timeout_us {
            // The request goes on: if it is granted, the row comes. But nobody waits for ever.
            request.heard = cx.now;
            let reason = match request.at {
                Some(owner) => cut_off(&request.key, owner, Tie::Owner),
                None => cut_off(&request.key, request.home, Tie::Home),
            };
            let waiters = core::mem::take(&mut request.waiters);
            for id in waiters {
                self.fail_job(cx, id, OpError::Aborted(reason.clone()));
            }
        }
        let Some(request) = self.requests.get_mut(&seq) else {
            return;
        };
        request.pause_us = (request.pause_us * 2).min(settings.resend_max_us);
        request.again_at = cx.now.after(request.pause_us);
        self.timers.insert((request.again_at, Timer::Request(seq)));
        self.send_request(cx, seq);
    }

    fn on_grant_timer(&mut self, cx: &mut Context<'_>, otag: Otag) {
        let settings = self.settings;
        let Some(grant) = self.grants.get_mut(&otag) else {
            return;
        };
        let Grant {
            again_at, pause_us, ..
        } = grant;
        *pause_us = (*pause_us * 2).min(settings.resend_max_us);
        *again_at = cx.now.after(*pause_us);
        self.timers.insert((*again_at, Timer::Grant(otag)));
        self.send_transfer(cx, otag);
    }

    fn on_reading_timer(&mut self, cx: &mut Context<'_>, number: u64) {
        let settings = self.settings;
        let Some(reading) = self.readings.get_mut(&number) else {
            return;
        };
        if cx.now.since(reading.heard) >= settings.request_timeout_us {
            let (txn, to) = (reading.txn, reading.to);
            self.abort_txn(cx, txn, AbortReason::Unreachable(to));
            return;
        }
        reading.pause_us = (reading.pause_us * 2).min(settings.resend_max_us);
        reading.again_at = cx.now.after(reading.pause_us);
        self.timers
            .insert((reading.again_at, Timer::Reading(number)));
        self.read_again(cx, number);
    }

    fn on_fetching_timer(&mut self, cx: &mut Context<'_>, number: u64) {
        let settings = self.settings;
        let Some(fetching) = self.fetches.get_mut(&number) else {
            return;
        };
        if !self.jobs.has(fetching.job) {
            self.fetches.remove(&number);
            return;
        }
        if cx.now.since(fetching.heard) >= settings.request_timeout_us {
            let (job, reason) = (fetching.job, fetching.reason());
            self.fetches.remove(&number);
            self.fail_job(cx, job, OpError::Aborted(reason));
            return;
        }
        fetching.pause_us = (fetching.pause_us * 2).min(settings.resend_max_us);
        fetching.again_at = cx.now.after(fetching.pause_us);
        self.timers
            .insert((fetching.again_at, Timer::Fetching(number)));
        self.send_fetch(cx, number);
    }

    pub(crate) fn arm_informs(&mut self, now: Time) {
        if self.informs_at.is_none() {
            let at = now.after(self.settings.resend_us);
            self.informs_at = Some(at);
            self.timers.insert((at, Timer::Informs));
        }
    }

    /// Tells homes once more what has become of their grants, until they say that they know.
    fn on_informs_timer(&mut self, cx: &mut Context<'_>) {
        self.informs_at = None;
        let resend_us = self.settings.resend_us;
        let mut due: BTreeMap<ShardId, Vec<(Otag, Fate)>> = BTreeMap::new();
        let mut any = false;
        for ((home, otag), pending) in &mut self.informs {
            if home.node() == self.shard.node() {
                continue;
            }
            any = true;
            if cx.now.since(pending.sent) >= resend_us {
                pending.sent = cx.now;
                due.entry(*home).or_default().push((*otag, pending.fate));
            }
        }
        for (home, fates) in due {
            let inform = Inform { fates, again: true };
            self.post(cx, home, Body::Inform(inform), Self::NOTHING);
        }
        if any {
            self.arm_informs(cx.now);
        }
    }

    pub(crate) fn arm_backups(&mut self, now: Time) {
        if self.backups_at.is_none() {
            let at = now.after(self.settings.resend_us);
            self.backups_at = Some(at);
            self.timers.insert((at, Timer::Backups));
        }
    }

    /// Asks homes about backups that should have been acknowledged by now.
    fn on_backups_timer(&mut self, cx: &mut Context<'_>) {
        self.backups_at = None;
        self.fail_gated(cx);
        let settings = self.settings;
        let mut due: BTreeMap<ShardId, Vec<(Key, Otag)>> = BTreeMap::new();
        for key in &self.backups {
            let home = self.homes[usize::from(key.slot.0) % self.homes.len()];
            let Some(held) = self.held.get_mut(key) else {
                continue;
            };
            if let Tenure::Released { asked, .. } = &mut held.tenure
                && cx.now.since(*asked) >= settings.resend_us
            {
                *asked = cx.now;
                due.entry(home).or_default().push((key.clone(), held.otag));
            }
        }
        let undecided = self.still_undecided();
        let open = !undecided.is_empty() || !self.backups.is_empty();
        for (home, key, otag) in undecided {
            due.entry(home).or_default().push((key, otag));
        }
        if printed!(self, LeapBackupByTimeout) {
            for (key, otag) in due.into_values().flatten() {
                self.drop_backup(cx, key, otag);
            }
            return;
        }
        for (home, keys) in due {
            self.post(cx, home, Body::Unacked(keys), Self::NOTHING);
        }
        if open {
            self.arm_backups(cx.now);
        }
    }
}
