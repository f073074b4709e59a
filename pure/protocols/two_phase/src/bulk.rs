//! Many new rows in one operation.
//!
//! Rows of a slot are dealt with together if nothing is in their way: the locks on them go into the
//! transaction's run of the bucket, and so do their writes ([`txn::lock::LockTable::take_rows`],
//! [`crate::writes::WriteSet::add_rows`]). All others go one by one, as single inserts do.

use crate::Context;
use crate::exec::{Hands, see};
use crate::job::{Asker, Job, Stop};
use alloc::vec::Vec;
use base::{IndexId, Key, KeyRef, Slot, Ts};
use core::ops::ControlFlow;
use store::{Store, Window, Write};
use txn::lock::{Item, Taken};
use txn::rows::{NewRow, NewRows};
use txn::{Event, LockMode, OpResult};

/// From so many rows on it pays to look at those of a slot together; less in tests.
const GROUPS_FROM: usize = if cfg!(test) { 4 } else { 64 };

/// How far the insertion of many rows has come.
#[derive(Debug, Default)]
pub(crate) struct Inserting {
    /// Bytes of [`NewRows`] that are done.
    at: usize,
    /// Rows that are done.
    count: u32,
    /// Those of them that were there already.
    present: Vec<u32>,
}

impl Hands<'_> {
    pub(crate) fn insert_many(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        asker: &Asker,
        rows: &NewRows,
    ) -> Result<OpResult, Stop> {
        let mut done = job.inserting.take().unwrap_or_default();
        match self.insert_rest(cx, job, asker, rows, &mut done) {
            Ok(()) if done.present.is_empty() => Ok(OpResult::Done),
            Ok(()) => Ok(OpResult::SomeExist(done.present)),
            Err(stop) => {
                job.inserting = Some(done);
                Err(stop)
            }
        }
    }

    fn insert_rest(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        asker: &Asker,
        rows: &NewRows,
        done: &mut Inserting,
    ) -> Result<(), Stop> {
        let index = rows.index();
        let mut budget = self.settings.scan_rows_max as usize;
        let mut group: Vec<NewRow<'_>> = Vec::new();
        let mut one_by_one = match rows.len() >= GROUPS_FROM {
            true => done.at,
            false => rows.size_bytes(),
        };
        loop {
            let mut rest = rows.from(done.at);
            let Some(row) = rest.next() else {
                return Ok(());
            };
            if budget == 0 {
                return Err(Stop::Budget);
            }
            if done.at >= one_by_one {
                let end = collect_group(&rest, row, budget, &mut group);
                if self.insert_group(cx, job, asker, index, &group)? {
                    done.at = end;
                    done.count += group.len() as u32;
                    budget -= group.len();
                    continue;
                }
                one_by_one = end;
            }
            let mut key = Key::new(index, row.slot, row.key.to_vec());
            let insert = || row.row.to_vec();
            if self.insert_one(cx, job, asker, &mut key, insert)? == OpResult::Exists {
                done.present.push(done.count);
            }
            done.at = rest.at();
            done.count += 1;
            budget -= 1;
        }
    }

    /// Writes the row that `row` gives if there is none. `key` is given away then.
    pub(crate) fn insert_one(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        asker: &Asker,
        key: &mut Key,
        row: impl FnOnce() -> Vec<u8>,
    ) -> Result<OpResult, Stop> {
        let mut first = false;
        let mode = LockMode::Exclusive;
        asker.ask_noting(self.locks, Item::of(key), mode, &mut first)?;
        let mut folded = Vec::new();
        // Without a lock on the row it has not written there.
        let part = self.part.as_deref().filter(|_| !first);
        let seen = see(part, cx.store, key, Ts::MAX, &mut folded);
        job.wait = job.wait.max(seen.position(self.installed));
        let (present, version) = (seen.row.is_some(), seen.ts);
        cx.note_read(job.txn, key, version);
        if present {
            return Ok(OpResult::Exists);
        }
        let bytes = core::mem::take(&mut key.bytes);
        let key = Key::new(key.index, key.slot, bytes);
        self.add(cx, job, key, Write::Insert(row()), first)?;
        Ok(OpResult::Done)
    }

    /// Inserts rows of one slot if they are new in every respect and nobody is in their way.
    /// `false`: nothing has happened.
    fn insert_group(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        asker: &Asker,
        index: IndexId,
        group: &[NewRow<'_>],
    ) -> Result<bool, Stop> {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            return Ok(false);
        };
        let slot = first.slot;
        let ascend = group.windows(2).all(|pair| pair[0].key < pair[1].key);
        if !ascend || any_present(cx.store, index, group) {
            return Ok(false);
        }
        let bytes = group.iter().map(|row| row.key.len() + row.row.len());
        let bytes = bytes.sum::<usize>() as u64;
        if !cx.journal.has_room_for(group.len() as u64, bytes) {
            return Ok(false);
        }
        let keys: Vec<&[u8]> = group.iter().map(|row| row.key).collect();
        let part = self
            .part
            .as_deref_mut()
            .expect("a transaction that writes has a part");
        match self.locks.take_rows(asker.priority, index, slot, &keys) {
            Taken::New => {}
            Taken::Covered => {
                let low = Key::new(index, slot, first.key.to_vec());
                let high = Key::new(index, slot, last.key.to_vec());
                if part.writes.has_between(&low, &high) {
                    return Ok(false);
                }
            }
            Taken::No => return Ok(false),
        }
        part.note_plan(index, job.planned);
        part.add_rows(index, slot, group, self.settings.txn_bytes_max)?;
        // They may be missing because of deletions that are not durable.
        job.wait = job.wait.max(self.installed.all());
        note_inserts(cx, job, index, slot, &keys);
        Ok(true)
    }
}

/// The rows behind `first` in its slot, at most `limit` with it; gives their end.
fn collect_group<'a>(
    rest: &txn::rows::Rows<'a>,
    first: NewRow<'a>,
    limit: usize,
    group: &mut Vec<NewRow<'a>>,
) -> usize {
    group.clear();
    group.push(first);
    let mut rest = rest.clone();
    loop {
        let end = rest.at();
        match rest.next() {
            Some(row) if row.slot == first.slot && group.len() < limit => group.push(row),
            Some(_) | None => return end,
        }
    }
}

/// Whether one of the rows, which ascend, has a committed version.
fn any_present(store: &Store, index: IndexId, group: &[NewRow<'_>]) -> bool {
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return false;
    };
    // Most loads go where nothing is.
    let mut high = Vec::with_capacity(last.key.len() + 1);
    high.extend_from_slice(last.key);
    high.push(0);
    let window = Window {
        low: first.key,
        after: false,
        high: Some(&high),
        reverse: false,
    };
    let mut found = |_: &[u8], _: &[u8], _: Ts| ControlFlow::Break(());
    let between = store.scan_next(index, first.slot, window, Ts::MAX, &mut found);
    let present = |row: &NewRow<'_>| {
        store
            .get(KeyRef::new(index, row.slot, row.key), Ts::MAX)
            .is_some()
    };
    between.is_break() && group.iter().any(present)
}

fn note_inserts(cx: &mut Context<'_>, job: &Job, index: IndexId, slot: Slot, keys: &[&[u8]]) {
    if cx.history.is_none() {
        return;
    }
    for key in keys {
        let key = Key::new(index, slot, key.to_vec());
        cx.note_read(job.txn, &key, Ts::ZERO);
        if let Some(history) = &mut cx.history {
            let txn = job.txn;
            history.push(Event::Write { txn, key });
        }
    }
}
