//! Many new rows in one operation.
//!
//! Rows of a slot go together if nothing is in their way: their locks go into one run, and so do
//! their writes ([`crate::WriteSet::add_rows`]). All other rows go one by one, like single inserts.

use crate::stop::Stop;
use alloc::vec::Vec;
use base::{IndexId, Key, KeyRef, Slot, Ts};
use core::ops::ControlFlow;
use store::{Store, Window};
use txn::rows::{NewRow, NewRows, Rows};
use txn::{Cx, OpResult};

/// Number of rows of a slot from which on they go together.
pub const GROUPS_FROM: usize = 64;

/// How far the insertion of many rows has come.
#[derive(Debug, Default)]
pub struct Loading {
    /// Bytes of [`NewRows`] that are done.
    at: usize,
    /// Number of rows that are done.
    count: u32,
    /// Numbers of those rows that existed already.
    present: Vec<u32>,
}

/// New rows of one slot, in the order of their keys; a key may come twice.
#[derive(Debug)]
pub struct Group<'a> {
    /// Key space.
    pub index: IndexId,
    /// Bucket.
    pub slot: Slot,
    /// The rows, at least one.
    pub rows: Vec<NewRow<'a>>,
}

impl Group<'_> {
    /// The keys.
    pub fn keys(&self) -> Vec<&[u8]> {
        self.rows.iter().map(|row| row.key).collect()
    }

    /// The first key and the last one.
    pub fn ends(&self) -> (Key, Key) {
        let key = |row: &NewRow<'_>| Key::new(self.index, self.slot, row.key.to_vec());
        let ends = self.rows.first().zip(self.rows.last());
        let (first, last) = ends.expect("a group has a row");
        (key(first), key(last))
    }

    /// Whether no key comes twice, none has a committed row, and there is room for all rows.
    fn is_new<M>(&self, cx: &mut Cx<'_, M>) -> bool {
        let ascend = self.rows.windows(2).all(|pair| pair[0].key < pair[1].key);
        if !ascend || self.any_present(cx.store) {
            return false;
        }
        let bytes = self.rows.iter().map(|row| row.key.len() + row.row.len());
        let bytes = bytes.sum::<usize>() as u64;
        cx.journal.has_room_for(self.rows.len() as u64, bytes)
    }

    /// Whether one of the rows, which ascend, has a committed version.
    fn any_present(&self, store: &Store) -> bool {
        let (Some(first), Some(last)) = (self.rows.first(), self.rows.last()) else {
            return false;
        };
        // Most loads go where there are no rows.
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
        let between = store.scan_next(self.index, self.slot, window, Ts::MAX, &mut found);
        let present = |row: &NewRow<'_>| {
            let key = KeyRef::new(self.index, self.slot, row.key);
            store.get(key, Ts::MAX).is_some()
        };
        between.is_break() && self.rows.iter().any(present)
    }
}

/// How a protocol inserts rows.
pub trait Load<M> {
    /// What the protocol may wait for besides locks.
    type Wait;

    /// Number of rows of a slot from which on they go together; smaller in tests.
    const GROUPS_FROM: usize = GROUPS_FROM;

    /// Inserts one row, as `Op::Insert` does; `key` may be given away.
    ///
    /// # Errors
    /// As `Op::Insert`.
    fn insert_one(
        &mut self,
        cx: &mut Cx<'_, M>,
        key: &mut Key,
        row: &[u8],
    ) -> Result<OpResult, Stop<Self::Wait>>;

    /// Inserts rows without committed versions, for which there is room. Returns `false`, with
    /// nothing done, if a row is not new otherwise or another transaction is in the way.
    ///
    /// # Errors
    /// As `Op::Insert`; it never waits.
    fn insert_group(
        &mut self,
        cx: &mut Cx<'_, M>,
        group: &Group<'_>,
    ) -> Result<bool, Stop<Self::Wait>>;
}

impl Loading {
    /// Bytes of [`NewRows`] that are done.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Goes on with `Op::InsertMany`: at most `rows_max` rows a turn.
    ///
    /// # Errors
    /// [`Stop::Budget`]: more rows follow. Else as [`Load::insert_one`]. Unless the operation has
    /// failed, call this again.
    pub fn go_on<M, L: Load<M>>(
        &mut self,
        cx: &mut Cx<'_, M>,
        load: &mut L,
        rows: &NewRows,
        rows_max: u32,
    ) -> Result<OpResult, Stop<L::Wait>> {
        let mut budget = rows_max as usize;
        let mut one_by_one = match rows.len() >= L::GROUPS_FROM {
            true => self.at,
            false => rows.size_bytes(),
        };
        let mut group = Group {
            index: rows.index(),
            slot: Slot(0),
            rows: Vec::new(),
        };
        loop {
            let mut rest = rows.from(self.at);
            let Some(row) = rest.next() else {
                let present = core::mem::take(self).present;
                return Ok(match present.is_empty() {
                    true => OpResult::Done,
                    false => OpResult::SomeExist(present),
                });
            };
            if budget == 0 {
                return Err(Stop::Budget);
            }
            if self.at >= one_by_one {
                let end = collect_group(&rest, row, budget, &mut group);
                if group.is_new(cx) && load.insert_group(cx, &group)? {
                    self.at = end;
                    self.count += group.rows.len() as u32;
                    budget -= group.rows.len();
                    continue;
                }
                one_by_one = end;
            }
            let mut key = Key::new(group.index, row.slot, row.key.to_vec());
            if load.insert_one(cx, &mut key, row.row)? == OpResult::Exists {
                self.present.push(self.count);
            }
            self.at = rest.at();
            self.count += 1;
            budget -= 1;
        }
    }
}

/// The rows behind `first` in its slot, at most `limit` with it, and where they end.
fn collect_group<'a>(
    rest: &Rows<'a>,
    first: NewRow<'a>,
    limit: usize,
    group: &mut Group<'a>,
) -> usize {
    group.slot = first.slot;
    group.rows.clear();
    group.rows.push(first);
    let mut rest = rest.clone();
    loop {
        let end = rest.at();
        match rest.next() {
            Some(row) if row.slot == first.slot && group.rows.len() < limit => {
                group.rows.push(row);
            }
            Some(_) | None => return end,
        }
    }
}
