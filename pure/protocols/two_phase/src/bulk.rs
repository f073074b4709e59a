//! Many new rows in one operation. Rows of one slot go in together if no other transaction is in
//! their way ([`txn::lock::LockTable::take_rows`]).

use crate::exec::Hands;
use crate::job::{Job, Stop, Wait};
use crate::message::Message;
use crate::{Control, Cx};
use alloc::vec::Vec;
use base::Key;
use local::ask::take_group;
use local::{Asker, Group, Load};
use txn::lock::Item;
use txn::rows::NewRows;
use txn::{LockMode, OpResult};

/// A job that inserts.
struct Loader<'l, 'h, C> {
    hands: &'l mut Hands<'h, C>,
    job: &'l mut Job,
    asker: &'l Asker,
}

impl<C: Control> Load<Message> for Loader<'_, '_, C> {
    type Wait = Wait;

    const GROUPS_FROM: usize = if cfg!(test) {
        4
    } else {
        local::load::GROUPS_FROM
    };

    fn insert_one(&mut self, cx: &mut Cx<'_>, key: &mut Key, row: &[u8]) -> Result<OpResult, Stop> {
        let row = || row.to_vec();
        self.hands.insert_one(cx, self.job, self.asker, key, row)
    }

    fn insert_group(&mut self, cx: &mut Cx<'_>, group: &Group<'_>) -> Result<bool, Stop> {
        let writes = self.hands.part.as_deref().map(|part| part.written.writes());
        if !take_group(self.hands.locks, self.asker.priority, group, writes) {
            return Ok(false);
        }
        self.hands.access(self.job).write_rows(cx, group)?;
        Ok(true)
    }
}

impl<C: Control> Hands<'_, C> {
    pub(crate) fn insert_many(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        asker: &Asker,
        rows: &NewRows,
    ) -> Result<OpResult, Stop> {
        let mut loading = core::mem::take(&mut job.loading);
        let rows_max = self.settings.scan_rows_max;
        let mut loader = Loader {
            hands: self,
            job,
            asker,
        };
        let result = loading.go_on(cx, &mut loader, rows, rows_max);
        job.loading = loading;
        result
    }

    /// Writes the row that `row` gives if there is none. `key` is given away then.
    pub(crate) fn insert_one(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        asker: &Asker,
        key: &mut Key,
        row: impl FnOnce() -> Vec<u8>,
    ) -> Result<OpResult, Stop> {
        let mut first = false;
        let mode = LockMode::Exclusive;
        asker.ask_noting(self.locks, Item::of(key), mode, &mut first)?;
        // Without a lock on the row it has not written there.
        Ok(self.access(job).insert(cx, key, row, first)?)
    }
}
