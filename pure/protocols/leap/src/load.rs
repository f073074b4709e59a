//! Many new rows in one operation.
//!
//! Rows that are at home here, and of whose bucket none is away, lent or wanted by another shard,
//! are locked and written together. All others are written one by one: a row that is away has to
//! come first, and the job requests the next ones at the same time.

use crate::job::{Job, Stop, Wait};
use crate::message::Message;
use crate::request::Standing;
use crate::{Cx, Leap};
use alloc::vec::Vec;
use base::Key;
use local::ask::take_group;
use local::{Group, Load};
use txn::lock::Item;
use txn::{LockMode, NewRows, OpResult};

/// Number of rows that a bulk insertion requests beside the one that it waits for. With 64 requests
/// at once the messages cost more than the delay. A request takes some hundred bytes here and at
/// the home until the row has come.
const AHEAD_MAX: usize = 63;

/// A job that inserts.
struct Loader<'l> {
    leap: &'l mut Leap,
    job: &'l mut Job,
}

impl Load<Message> for Loader<'_> {
    type Wait = Wait;

    const GROUPS_FROM: usize = if cfg!(test) {
        4
    } else {
        local::load::GROUPS_FROM
    };

    fn insert_one(&mut self, cx: &mut Cx<'_>, key: &mut Key, row: &[u8]) -> Result<OpResult, Stop> {
        self.leap.take(cx, self.job, key, LockMode::Exclusive)?;
        let mut access = self.leap.access(self.job);
        Ok(access.insert(cx, key, || row.to_vec(), false)?)
    }

    fn insert_group(&mut self, cx: &mut Cx<'_>, group: &Group<'_>) -> Result<bool, Stop> {
        let (low, high) = group.ends();
        if !self.leap.is_quiet_between(&low, &high) {
            return Ok(false);
        }
        let state = self.leap.coord.txns.get(&self.job.txn);
        let writes = state.map(|state| state.written.writes());
        if !take_group(&mut self.leap.locks, self.job.priority(), group, writes) {
            return Ok(false);
        }
        self.leap.access(self.job).write_rows(cx, group)?;
        Ok(true)
    }
}

impl Leap {
    /// Inserts many rows; goes on where it stopped.
    pub(crate) fn insert_many(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        rows: &NewRows,
    ) -> Result<OpResult, Stop> {
        let mut loading = core::mem::take(&mut job.loading);
        let rows_max = self.settings.scan_rows_max;
        let mut loader = Loader { leap: self, job };
        let result = loading.go_on(cx, &mut loader, rows, rows_max);
        if matches!(result, Err(Stop::Wait(Wait::Row))) {
            self.ask_ahead(cx, job, rows, loading.at());
        }
        job.loading = loading;
        result
    }

    /// Whether the rows of one bucket from `low` to `high` are at home here, and none of them is
    /// lent or counted, or has formulas pending.
    fn is_quiet_between(&self, low: &Key, high: &Key) -> bool {
        self.is_home(low)
            && self.rejoin.is_serving()
            && self.home.table.range(low..=high).next().is_none()
            && !self.sharing.has_between(low, high)
            && !self.pendings.has_between(low, high)
            && !self.errands.has_between(low, high)
    }

    /// The job waits for its present row, at `at`. Requests the next rows that are away too, so
    /// that one delay between nodes brings many. A row that another transaction has locked is left
    /// for later. No job waits for the answers: the job comes to the rows later, and requests again
    /// what was refused.
    fn ask_ahead(&mut self, cx: &mut Cx<'_>, job: &mut Job, rows: &NewRows, at: usize) {
        if at < job.asked_ahead || cx.journal.is_memory_full() {
            return;
        }
        let mut rest = rows.from(at);
        for row in rest.by_ref().take(AHEAD_MAX + 1) {
            let key = Key::new(rows.index(), row.slot, row.key.to_vec());
            let is_away = self.standing(&key) == Standing::Elsewhere
                && !self.is_down(self.home(key.slot))
                && self.hindrance(&key).is_none();
            let (item, mode) = (Item::of(&key), LockMode::Exclusive);
            if !is_away || self.requester.wants(&key) || !self.locks.is_free(job.txn, &item, mode) {
                continue;
            }
            let locked = self.lock(cx.now, job, &item, mode);
            assert!(locked.is_ok(), "a free lock is granted");
            self.ask(cx, &key, Vec::new(), job.priority(), mode);
        }
        job.asked_ahead = rest.at();
    }
}
