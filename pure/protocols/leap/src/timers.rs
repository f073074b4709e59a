//! Timers: messages sent again, shards asked, silent shards given up.

use crate::message::{Body, Fate, Inform};
use crate::outage::cut_off;
use crate::{Cx, Leap, printed};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{Key, ShardId, Time};
use journal::Otag;
use txn::{AbortReason, OpError, Tie};

/// A timer. Of timers that are due at the same time, the first one here goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Timer {
    /// A row has not come within `lock_timeout`.
    RowLimit,
    /// A requested row has not come.
    Request,
    /// The requester of a grant has not said whether the row has come.
    Grant,
    /// Another shard has not answered a read.
    Reading,
    /// An owner has not answered a fetch.
    Fetching,
    /// A reader has not answered a recall.
    Recalls,
    /// An owner has not answered an errand.
    Errand,
    /// A coordinator has not resolved a formula that is held here.
    Pendings,
    /// An owner has not said that it has applied formulas.
    Owings,
    /// A confirmation is missing.
    Confirm,
    /// A coordinator is to be asked whether its transaction goes on.
    Visit,
    /// A home has not said that it knows the fate of a grant.
    Informs,
    /// A home has not acknowledged a backup.
    Backups,
    /// Claims and questions after a restart.
    Rejoin,
    /// Rows of dropped indexes that were in use.
    Dropped,
}

impl Leap {
    /// Calls `see` with each timer that may be set.
    #[inline]
    fn each_timer(&self, mut see: impl FnMut(Option<Time>, Timer)) {
        see(self.row_limits.first().map(|(at, _)| *at), Timer::RowLimit);
        see(self.requester.requests.next_due(), Timer::Request);
        see(self.home.grants.next_due(), Timer::Grant);
        see(self.coord.readings.next_due(), Timer::Reading);
        see(self.fetches.next_due(), Timer::Fetching);
        see(self.sharing.recalls_again.at(), Timer::Recalls);
        see(self.errands.out.next_due(), Timer::Errand);
        see(self.pendings.ask_again.at(), Timer::Pendings);
        see(self.coord.owings.all.next_due(), Timer::Owings);
        see(self.coord.confirms.next_due(), Timer::Confirm);
        see(self.visits.next_due(), Timer::Visit);
        see(self.requester.informs.next_due(), Timer::Informs);
        see(self.owner.backups.next_due(), Timer::Backups);
        see(self.rejoin.again.at(), Timer::Rejoin);
        see(self.home.dropped_again.at(), Timer::Dropped);
    }

    fn next_timer(&self) -> Option<(Time, Timer)> {
        let mut first = None;
        self.each_timer(|at, timer| {
            if let Some(at) = at
                && first.is_none_or(|known| (at, timer) < known)
            {
                first = Some((at, timer));
            }
        });
        first
    }

    /// When the next timer is due. Asked behind every step of the shard, whatever its protocol.
    pub(crate) fn timer_at(&self) -> Option<Time> {
        self.next_timer().map(|(at, _)| at)
    }

    pub(crate) fn run_timers(&mut self, cx: &mut Cx<'_>) {
        while let Some((at, timer)) = self.next_timer()
            && at <= cx.now
        {
            match timer {
                Timer::RowLimit => self.on_row_limit(cx),
                Timer::Request => self.on_request_timer(cx),
                Timer::Grant => {
                    if let Some(otag) = self.home.grants.take_due(cx.now) {
                        self.send_transfer(cx, otag);
                        // Jobs that wait for the row look anew whether they wait in vain.
                        self.wake_movers();
                    }
                }
                Timer::Reading => self.on_reading_timer(cx),
                Timer::Fetching => self.on_fetching_timer(cx),
                Timer::Recalls => self.on_recalls_timer(cx),
                Timer::Errand => self.on_errand_timer(cx),
                Timer::Confirm => {
                    if let Some((txn, shard)) = self.coord.confirms.take_due(cx.now) {
                        self.send_confirm(cx, txn, shard);
                    }
                }
                Timer::Visit => {
                    if let Some(txn) = self.visits.take_due(cx.now) {
                        self.inquire(cx, txn);
                    }
                }
                Timer::Pendings => self.on_pendings_timer(cx),
                Timer::Owings => {
                    for txn in self.coord.owings.all.take_round(cx.now) {
                        self.tell_owners(cx, txn);
                    }
                }
                Timer::Informs => {
                    let due = self.requester.informs.take_round(cx.now);
                    self.tell_again(cx, due);
                }
                Timer::Backups => self.on_backups_timer(cx),
                Timer::Rejoin => self.rejoin_again(cx),
                Timer::Dropped => self.forget_dropped(cx),
            }
        }
    }

    fn on_request_timer(&mut self, cx: &mut Cx<'_>) {
        let Some(seq) = self.requester.requests.take_due(cx.now) else {
            return;
        };
        let timeout_us = self.settings.request_timeout_us;
        if self.requester.requests.is_silent(seq, cx.now, timeout_us)
            && let Some(request) = self.requester.requests.get_mut(seq)
        {
            // The jobs that wait for the row fail. The request goes on: if granted, the row comes.
            let reason = match request.at {
                Some(owner) => cut_off(&request.key, owner, Tie::Owner),
                None => cut_off(&request.key, request.home, Tie::Home),
            };
            let waiters = core::mem::take(&mut request.waiters);
            self.requester.requests.hear(seq, cx.now);
            for id in waiters {
                self.fail_job(cx, id, OpError::Aborted(reason.clone()));
            }
        }
        self.send_request(cx, seq);
    }

    fn on_reading_timer(&mut self, cx: &mut Cx<'_>) {
        let Some(number) = self.coord.readings.take_due(cx.now) else {
            return;
        };
        let timeout_us = self.settings.request_timeout_us;
        if self.coord.readings.is_silent(number, cx.now, timeout_us) {
            let reading = &self.coord.readings[number];
            let (txn, to) = (reading.txn, reading.to);
            self.abort_txn(cx, txn, AbortReason::Unreachable(to));
        } else {
            self.read_again(cx, number);
        }
    }

    fn on_fetching_timer(&mut self, cx: &mut Cx<'_>) {
        let Some(number) = self.fetches.take_due(cx.now) else {
            return;
        };
        let timeout_us = self.settings.request_timeout_us;
        let silent = self.fetches.is_silent(number, cx.now, timeout_us);
        let fetching = &self.fetches[number];
        let (job, reason) = (fetching.job, fetching.reason());
        if !self.jobs.has(job) {
            self.fetches.end(number);
        } else if silent {
            self.fetches.end(number);
            self.fail_job(cx, job, OpError::Aborted(reason));
        } else {
            self.send_fetch(cx, number);
        }
    }

    /// Tells homes the fate of grants again.
    pub(crate) fn tell_again(&mut self, cx: &mut Cx<'_>, told: Vec<(ShardId, Otag)>) {
        let mut due: BTreeMap<ShardId, Vec<(Otag, Fate)>> = BTreeMap::new();
        for (home, otag) in told {
            if let Some(pending) = self.requester.informs.resend(&(home, otag), cx.now) {
                due.entry(home).or_default().push((otag, pending.fate));
            }
        }
        for (home, fates) in due {
            let inform = Inform { fates, again: true };
            self.say(cx, home, Body::Inform(inform));
        }
    }

    /// Asks homes about backups, and claims left open, that they have not acknowledged.
    fn on_backups_timer(&mut self, cx: &mut Cx<'_>) {
        self.fail_gated(cx);
        let mut due: BTreeMap<ShardId, Vec<(Key, Otag)>> = BTreeMap::new();
        for key in self.owner.backups.take_round(cx.now) {
            let home = self.home(key.slot);
            let otag = self.owner.held[&key].otag;
            due.entry(home).or_default().push((key, otag));
        }
        let undecided = self.still_undecided();
        if !undecided.is_empty() {
            self.owner.backups.arm(cx.now);
        }
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
            self.say(cx, home, Body::Unacked(keys));
        }
    }
}
