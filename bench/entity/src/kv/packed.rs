//! A group packed into one cell with a version: transactions for a store that can do no more than
//! compare one cell and set it.
//!
//! | bytes of a cell | content |
//! |---|---|
//! | 9, then 16 each | its [`Head`]: the version, and the stamps of who has changed it last |
//! | 4, 4, then both | lengths of a record's key and value, the key, the value; ordered by key |
//!
//! A transaction reads the cell when it begins, keeps its writes, and sets the cell if the version
//! is still the same. So it is optimistic, and there is no concurrency within a group.
//!
//! A lost answer is resolved by the head.

use super::{Commits, TransactionalKv, fenced};
use super::{GroupOrder, GroupRange, Groups, Head, KvAbilities, Place, Placed, Record};
use crate::db::{Failure, Outcome, Stamp};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::future::Future;
use core::ops::{Bound, Range};

/// One client's connection to a store of cells.
pub trait CompareAndSet {
    /// The cell of a group; `None`: it is empty.
    ///
    /// # Errors
    /// `Lost`, `Conflict`, `Refused`.
    fn read(&mut self, group: &[u8]) -> impl Future<Output = Result<Option<Vec<u8>>, Failure>>;

    /// Sets the cell of a group if its version, the first 8 bytes of the cell as a big-endian
    /// number, is `version`; 0: if it is empty. `false`: it is another one.
    ///
    /// # Errors
    /// `Lost`, `Conflict`, `Refused`: nothing has happened. `Unknown`: the answer was lost.
    fn set(
        &mut self,
        group: &[u8],
        version: u64,
        cell: &[u8],
    ) -> impl Future<Output = Result<bool, Failure>>;

    /// Whether [`CompareAndSet::range`] works.
    fn has_order(&self) -> bool {
        false
    }

    /// The cells of the groups from `from` and before `to` with their groups, in this order, at
    /// most `limit`. Each cell is as it is at some time during the call.
    ///
    /// # Errors
    /// `Lost`, `Conflict`; `Refused` without [`CompareAndSet::has_order`].
    fn range(
        &mut self,
        from: &[u8],
        to: &[u8],
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Record>, Failure>> {
        let _ = (from, to, limit);
        core::future::ready(Err(Failure::Refused(
            "the store has no order of groups".into(),
        )))
    }

    /// Whether what was acknowledged survives a crash of the server.
    fn is_durable(&self) -> bool;

    /// Requests that travelled to the store and back so far; 0 where nobody counts.
    fn round_trips(&self) -> u64 {
        0
    }
}

/// A [`TransactionalKv`] made of a [`CompareAndSet`].
#[derive(Debug)]
pub struct Packed<C> {
    cells: C,
    commits: Commits,
    cell: Vec<u8>,
}

/// An open transaction of [`Packed`].
#[derive(Debug)]
pub struct PackedTxn {
    group: Vec<u8>,
    cell: Cell,
    writes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

/// A cell that was read.
#[derive(Debug, Default)]
struct Cell {
    bytes: Vec<u8>,
    version: u64,
    /// Where the keys and values of the records lie.
    records: Vec<(Range<usize>, Range<usize>)>,
}

impl Cell {
    /// # Errors
    /// `Refused`: the bytes are no cell.
    fn parse(bytes: Vec<u8>) -> Result<Cell, Failure> {
        let mut cell = Cell {
            bytes,
            ..Cell::default()
        };
        match cell.scan() {
            Some(()) => Ok(cell),
            None => Err(Failure::Refused(
                "a cell of the store is no group: begin with an empty store".into(),
            )),
        }
    }

    fn scan(&mut self) -> Option<()> {
        let length = |at: usize| {
            let bytes = self.bytes.get(at..at.checked_add(4)?)?;
            bytes.try_into().ok().map(u32::from_be_bytes)
        };
        let (head, rest) = Head::split(&self.bytes)?;
        self.version = head.version();
        let mut at = self.bytes.len() - rest.len();
        while at < self.bytes.len() {
            let of_key = length(at)? as usize;
            let of_value = length(at + 4)? as usize;
            let key = at + 8..(at + 8).checked_add(of_key)?;
            let value = key.end..key.end.checked_add(of_value)?;
            at = value.end;
            if at > self.bytes.len() {
                return None;
            }
            self.records.push((key, value));
        }
        Some(())
    }

    fn key(&self, n: usize) -> &[u8] {
        &self.bytes[self.records[n].0.clone()]
    }

    fn value(&self, n: usize) -> &[u8] {
        &self.bytes[self.records[n].1.clone()]
    }

    /// Of an empty cell that of a group that was never written.
    fn head(&self) -> Head<'_> {
        Head::split(&self.bytes).map_or_else(Head::default, |(head, _)| head)
    }

    /// The position of the first record whose key is at least `key`.
    fn from(&self, key: &[u8]) -> usize {
        self.records
            .partition_point(|(own, _)| &self.bytes[own.clone()] < key)
    }

    fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let n = self.from(key);
        (n < self.records.len() && self.key(n) == key).then(|| self.value(n))
    }

    /// The cell of the next version, with these changes.
    fn next(&self, stamp: Stamp, writes: &BTreeMap<Vec<u8>, Option<Vec<u8>>>, out: &mut Vec<u8>) {
        out.clear();
        self.head().push_next(stamp, out);
        let mut n = 0;
        for (key, value) in writes {
            while n < self.records.len() && self.key(n) < key.as_slice() {
                push_record(self.key(n), self.value(n), out);
                n += 1;
            }
            if n < self.records.len() && self.key(n) == key.as_slice() {
                n += 1;
            }
            if let Some(value) = value {
                push_record(key, value, out);
            }
        }
        for n in n..self.records.len() {
            push_record(self.key(n), self.value(n), out);
        }
    }
}

fn push_record(key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(key.len() as u32).to_be_bytes());
    out.extend_from_slice(&(value.len() as u32).to_be_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

impl<C: CompareAndSet> Packed<C> {
    /// The packing on a connection.
    pub fn new(cells: C) -> Packed<C> {
        Packed {
            cells,
            commits: Commits::default(),
            cell: Vec::new(),
        }
    }

    /// The connection.
    pub fn cells(&mut self) -> &mut C {
        &mut self.cells
    }

    async fn load(&mut self, group: &[u8]) -> Result<Cell, Failure> {
        match self.cells.read(group).await? {
            Some(bytes) => Cell::parse(bytes),
            None => Ok(Cell::default()),
        }
    }
}

impl<C: CompareAndSet> TransactionalKv for Packed<C> {
    type Txn = PackedTxn;

    fn abilities(&self) -> KvAbilities {
        KvAbilities {
            several_groups: false,
            scans: true,
            durable: self.cells.is_durable(),
            resolves_outcomes: true,
        }
    }

    async fn begin(&mut self, groups: Groups<'_>) -> Result<PackedTxn, Failure> {
        let Groups::One(group) = groups else {
            let words = "a store of packed groups has no transactions on several";
            return Err(Failure::Refused(words.into()));
        };
        Ok(PackedTxn {
            cell: self.load(group).await?,
            group: group.to_vec(),
            writes: BTreeMap::new(),
        })
    }

    async fn get(
        &mut self,
        txn: &mut PackedTxn,
        place: Place<'_>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        if let Some(written) = txn.writes.get(place.key) {
            return Ok(written.clone());
        }
        Ok(txn.cell.get(place.key).map(<[u8]>::to_vec))
    }

    async fn scan(
        &mut self,
        txn: &mut PackedTxn,
        from: Place<'_>,
        to: &[u8],
        limit: usize,
        found: &mut Vec<Record>,
    ) -> Result<(), Failure> {
        merged(&txn.cell, &txn.writes, (from.key, to), limit, found);
        Ok(())
    }

    async fn put(
        &mut self,
        txn: &mut PackedTxn,
        place: Place<'_>,
        value: &[u8],
    ) -> Result<(), Failure> {
        txn.writes.insert(place.key.to_vec(), Some(value.to_vec()));
        Ok(())
    }

    async fn delete(&mut self, txn: &mut PackedTxn, place: Place<'_>) -> Result<(), Failure> {
        txn.writes.insert(place.key.to_vec(), None);
        Ok(())
    }

    async fn commit(&mut self, txn: PackedTxn, stamp: Option<Stamp>) -> Result<(), Failure> {
        if txn.writes.is_empty() {
            return Ok(());
        }
        let version = txn.cell.version;
        let stamped = stamp.unwrap_or_default();
        txn.cell.next(stamped, &txn.writes, &mut self.cell);
        let set = self.cells.set(&txn.group, version, &self.cell).await;
        self.commits.settle(set, (txn.group, version), stamp)
    }

    async fn abort(&mut self, txn: PackedTxn) -> Result<(), Failure> {
        drop(txn);
        Ok(())
    }

    async fn outcome(&mut self, stamp: Stamp) -> Result<Outcome, Failure> {
        let Some((group, version)) = self.commits.lost(stamp) else {
            return Ok(Outcome::Unknown);
        };
        let cell = self.load(&group).await?;
        if let Some(outcome) = cell.head().outcome(stamp, version) {
            return Ok(outcome);
        }
        cell.next(Stamp::default(), &BTreeMap::new(), &mut self.cell);
        fenced(self.cells.set(&group, version, &self.cell).await)
    }

    fn group_order(&self) -> Option<GroupOrder> {
        self.cells.has_order().then_some(GroupOrder::Each)
    }

    async fn scan_groups(
        &mut self,
        range: GroupRange<'_>,
        found: &mut Vec<Placed>,
    ) -> Result<(), Failure> {
        let (prefix, end) = (range.prefix(), range.prefix_end());
        let mut from = range.from.to_vec();
        let (wanted, mut records) = (found.len() + range.limit, Vec::new());
        loop {
            let limit = wanted - found.len();
            let cells = self.cells.range(&from, range.to, limit).await?;
            let is_last = cells.len() < limit;
            for (group, bytes) in cells {
                let cell = Cell::parse(bytes)?;
                let limit = wanted - found.len();
                merged(
                    &cell,
                    &BTreeMap::new(),
                    (&prefix, &end),
                    limit,
                    &mut records,
                );
                let own = records.drain(..);
                found.extend(own.map(|(key, value)| (group.clone(), key, value)));
                from = group;
            }
            if is_last || found.len() == wanted {
                return Ok(());
            }
            // The next group's key, if there is one.
            from.push(0);
        }
    }

    fn round_trips(&self) -> u64 {
        self.cells.round_trips()
    }
}

/// Appends the records of a part as the transaction sees them.
fn merged(
    cell: &Cell,
    writes: &BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    (from, to): (&[u8], &[u8]),
    limit: usize,
    found: &mut Vec<Record>,
) {
    if from >= to {
        return;
    }
    let end = found.len().saturating_add(limit);
    let mut n = cell.from(from);
    let last = cell.from(to);
    let part = (Bound::Included(from), Bound::Excluded(to));
    let mut written = writes.range::<[u8], _>(part).peekable();
    while found.len() < end {
        let own = (n < last).then(|| cell.key(n));
        let takes_own = match (own, written.peek()) {
            (None, None) => return,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(own), Some((key, _))) => {
                if own == key.as_slice() {
                    n += 1;
                }
                own < key.as_slice()
            }
        };
        if takes_own {
            found.push((cell.key(n).to_vec(), cell.value(n).to_vec()));
            n += 1;
        } else if let Some((key, Some(value))) = written.next() {
            found.push((key.clone(), value.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
