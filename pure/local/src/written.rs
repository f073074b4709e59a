//! What a transaction has written on one shard, from its first write to its commit record.
//!
//! ```text
//! add ──> write set ──take──> the record of a small transaction
//!              └─freeze, a slice a turn─> chunks in the journal ─take─> the record that names them
//! ```

use crate::record::{commit_few, commit_frozen};
use crate::savepoints::Savepoints;
use crate::stop::Stop;
use crate::write_set::{Drain, WriteSet};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{IndexId, Key, Planted, Position, Slot, SqlError, SqlState, Ts, TxnId, is_planted};
use store::{Formula, Store, Write};
use txn::bulk::{self, Chunks, Frozen, Wanted};
use txn::rows::NewRow;
use txn::{AbortReason, Bulks, Counters, Cx, Installed, JournalPort, Savepoint, WriteList};

/// A large write set on its way into the journal.
#[derive(Debug)]
struct Freezing {
    frozen: Frozen,
    rest: Drain,
}

/// The writes of one transaction on one shard, and the catalog versions that they assume.
#[derive(Debug, Default)]
pub struct Written {
    writes: WriteSet,
    /// A large write set that is on its way into the journal, before the vote or commit.
    freezing: Option<Box<Freezing>>,
    /// Bytes of all keys and rows that were written, also of rows written over since.
    bytes: usize,
    /// Indexes written, with the oldest catalog version for which a write was planned.
    planned: Vec<(IndexId, u64)>,
    savepoints: Savepoints,
}

impl Written {
    /// Empties the write set for another transaction; short lists keep their memory.
    pub fn reset(&mut self) {
        self.writes.clear();
        self.freezing = None;
        self.bytes = 0;
        self.planned.clear();
        self.savepoints.clear();
    }

    /// Whether there is nothing to commit.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.freezing.is_none()
    }

    /// Number of writes, also of those on their way into the journal.
    pub fn len(&self) -> usize {
        let frozen = self.freezing.as_ref();
        self.writes.len() + frozen.map_or(0, |freezing| freezing.frozen.writes().len())
    }

    /// The writes that are not on their way into the journal: before the commit, all writes.
    #[inline]
    pub fn writes(&self) -> &WriteSet {
        &self.writes
    }

    /// The write of a key, also if it is on its way into the journal.
    #[inline]
    pub fn get(&self, key: &Key) -> Option<&Write> {
        let Some(freezing) = &self.freezing else {
            return self.writes.get(key);
        };
        let taken = freezing.frozen.writes().get(key);
        taken.or_else(|| freezing.rest.get(key))
    }

    /// Whether one of these rows is written. A large write set must be in the journal by now.
    pub fn meets(&self, wanted: Wanted<'_>) -> bool {
        let frozen = self.freezing.as_ref();
        frozen.is_some_and(|freezing| wanted.meets(freezing.frozen.writes()))
            || match wanted {
                Wanted::Row(key) => self.writes.get(key).is_some(),
                Wanted::Rows(..) => self.writes.iter().any(|(key, _)| wanted.has(key)),
            }
    }

    /// Notes that `index` was written by a plan of catalog version `planned`.
    pub fn note_plan(&mut self, index: IndexId, planned: u64) {
        match self.planned.iter_mut().find(|(noted, _)| *noted == index) {
            Some((_, version)) => *version = planned.min(*version),
            None => self.planned.push((index, planned)),
        }
    }

    /// Plans of versions from `since` on are right under `to` ([`Savepoint::Renew`]).
    fn renew(&mut self, index: IndexId, since: u64, to: u64) {
        let mut noted = self.planned.iter_mut();
        if let Some((_, version)) = noted.find(|(noted, _)| *noted == index)
            && *version >= since
        {
            *version = to.max(*version);
        }
    }

    /// The indexes that were written, or that a plan was to write.
    pub fn indexes(&self) -> impl Iterator<Item = IndexId> {
        self.planned.iter().map(|(index, _)| *index)
    }

    /// Checks that all written tables are still as their plans assumed.
    ///
    /// # Errors
    /// [`AbortReason::SchemaChanged`]: one is not.
    #[inline]
    pub fn check_schema<M>(&self, cx: &Cx<'_, M>) -> Result<(), AbortReason> {
        let mut plans = self.planned.iter();
        plans.try_for_each(|(index, planned)| cx.check_write(*index, *planned))
    }

    /// Adds a write behind the others; `first`: the key has no write yet.
    ///
    /// A formula must have been folded once before, so that it cannot fail here.
    ///
    /// # Errors
    /// 53200: the transaction has written more than `bytes_max` bytes of keys and rows here.
    pub fn add(
        &mut self,
        store: &Store,
        key: Key,
        write: Write,
        first: bool,
        bytes_max: usize,
    ) -> Result<(), SqlError> {
        self.claim(key.bytes.len() + write.size_bytes(), bytes_max)?;
        if !self.savepoints.is_empty() {
            let before = self.writes.get(&key).filter(|_| !first);
            let image = self.savepoints.note(&key, before);
            self.claim(image, bytes_max)?;
        }
        let before = match first {
            true => None,
            false => self.writes.remove(&key),
        };
        let Some(before) = before else {
            self.writes.add(key, write);
            return Ok(());
        };
        let was_put = matches!(before, Write::Put(_));
        let both = match is_planted(Planted::OwnWriteReplaced) {
            true => Some(write),
            false => before
                .then(write)
                .expect("a formula was folded before it is added"),
        };
        match both {
            // A blind put of a new row and its removal leave nothing.
            Some(Write::Delete) if was_put && store.get(&key, Ts::MAX).is_none() => {}
            Some(both) => self.writes.put_back(key, both),
            None => {}
        }
        Ok(())
    }

    /// Adds inserts of rows of one bucket, in the order of their keys; the keys have no write.
    ///
    /// # Errors
    /// As [`Written::add`].
    pub fn add_rows(
        &mut self,
        index: IndexId,
        slot: Slot,
        rows: &[NewRow<'_>],
        bytes_max: usize,
    ) -> Result<(), SqlError> {
        let sizes = rows.iter().map(|row| row.key.len() + row.row.len());
        self.claim(sizes.sum(), bytes_max)?;
        if !self.savepoints.is_empty() {
            let mut images = 0;
            for row in rows {
                let key = Key::new(index, slot, row.key.to_vec());
                images += self.savepoints.note(&key, None);
            }
            self.claim(images, bytes_max)?;
        }
        self.writes.add_rows(index, slot, rows);
        Ok(())
    }

    /// Whether the transaction has set a savepoint here. A formula beside an own one then needs an
    /// exclusive lock: the escrow of others knows the sum of both, and not what is left of it when
    /// one is undone.
    #[inline]
    pub fn has_savepoints(&self) -> bool {
        !self.savepoints.is_empty()
    }

    /// Sets a savepoint, goes back to one, or renews plans: at most about `most` writes at a time.
    /// Returns whether that is done; if not, the same call goes on.
    pub fn save(&mut self, bulks: &mut Bulks, savepoint: Savepoint, most: u64) -> bool {
        if let Savepoint::Renew { index, since, to } = savepoint {
            self.renew(index, since, to);
            return true;
        }
        let (all, writes) = (&mut self.savepoints, &mut self.writes);
        match savepoint {
            Savepoint::Set { number, within } => all.set(number, within, self.bytes, most),
            Savepoint::RollBackTo(to) => all.roll_back(writes, bulks, &mut self.bytes, to, most),
            Savepoint::Renew { .. } => true,
        }
    }

    /// The first write of a key was just added, and belongs before all savepoints: the transaction
    /// made it elsewhere before them.
    pub fn predate(&mut self, key: &Key) {
        self.savepoints.predate(key);
    }

    fn claim(&mut self, size: usize, bytes_max: usize) -> Result<(), SqlError> {
        if self.bytes + size > bytes_max {
            return Err(too_large(bytes_max));
        }
        self.bytes += size;
        Ok(())
    }

    /// What `wanted` makes of formulas among at most `most` writes from `from` on, which it counts,
    /// and the key from which the next slice goes on (`None`: no writes are left).
    pub fn formulas_to_seal<T>(
        &self,
        counters: &mut Counters,
        from: Option<Box<Key>>,
        most: u64,
        mut wanted: impl FnMut(&Key, &Write) -> Option<T>,
    ) -> (Vec<(Key, T)>, Option<Box<Key>>) {
        let mut found = Vec::new();
        let mut writes = self.writes.formulas_from(from.map(|key| *key));
        for (key, write) in writes.by_ref().take(most as usize) {
            counters.units += 1;
            found.extend(wanted(key, write).map(|made| (key.clone(), made)));
        }
        let rest = writes.next().map(|(key, _)| Box::new(key.clone()));
        (found, rest)
    }

    /// Whether the write set goes into the journal in slices.
    #[inline]
    pub fn is_large(&self, bulks: &Bulks) -> bool {
        self.freezing.is_some() || bulks.takes(self.writes.len(), self.bytes)
    }

    /// Whether a slice of the write set was taken.
    #[inline]
    pub fn is_freezing(&self) -> bool {
        self.freezing.is_some()
    }

    /// Whether the write set goes into the journal in slices, and is not all there yet.
    pub fn is_to_freeze(&self, bulks: &Bulks) -> bool {
        match &self.freezing {
            Some(freezing) => !freezing.frozen.is_whole(),
            None => bulks.takes(self.writes.len(), self.bytes),
        }
    }

    /// Puts the next slice of a large write set of `txn` into the journal. The transaction makes no
    /// more writes: it is about to vote or commit.
    ///
    /// # Errors
    /// [`Stop::Budget`] and [`Stop::Journal`]: more slices follow.
    pub fn freeze<M, W>(
        &mut self,
        cx: &mut Cx<'_, M>,
        txn: TxnId,
        bulks: &Bulks,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Stop<W>> {
        if !self.savepoints.is_empty() && !self.savepoints.free(bulk::SLICE_UNITS) {
            return Err(Stop::Budget);
        }
        let freezing = self.freezing.get_or_insert_with(|| {
            Box::new(Freezing {
                frozen: bulks.freeze(),
                rest: self.writes.drain(),
            })
        });
        let Freezing { frozen, rest } = &mut **freezing;
        if frozen.is_whole() {
            return Ok(());
        }
        if cx.journal.is_behind() {
            return Err(Stop::Journal);
        }
        match frozen.take_slice(cx, txn, scratch, &mut || rest.next()) {
            true => Ok(()),
            false => Err(Stop::Budget),
        }
    }

    /// Takes the formulas of rows that `wanted` accepts out, in key order.
    pub fn take_formulas(&mut self, mut wanted: impl FnMut(&Key) -> bool) -> Vec<(Key, Formula)> {
        let formulas = self.writes.formulas().filter(|(key, _)| wanted(key));
        let keys: Vec<Key> = formulas.map(|(key, _)| key.clone()).collect();
        let taken = keys.into_iter().filter_map(|key| {
            let write = self.writes.remove(&key)?;
            Some((key, write.formula()?.clone()))
        });
        taken.collect()
    }

    /// Appends the commit of what `txn` has written, on this shard alone, and installs the writes:
    /// now, or in slices if they stand in chunks ([`commit_frozen`]). `None`: there are no writes.
    #[inline]
    pub fn commit<M>(
        &mut self,
        cx: &mut Cx<'_, M>,
        installed: &mut Installed,
        bulks: &mut Bulks,
        scratch: &mut Vec<u8>,
        txn: TxnId,
        commit_ts: Ts,
    ) -> Option<Position> {
        if self.freezing.is_some() {
            let taken = self.take();
            let position = commit_frozen(cx, installed, bulks, scratch, txn, commit_ts, taken);
            return Some(position);
        }
        let few = self.writes.take();
        let position =
            (!few.is_empty()).then(|| commit_few(cx, installed, scratch, txn, commit_ts, &few));
        self.writes.reuse(few);
        position
    }

    /// Takes out the writes, in key order, and the chunks of a large write set.
    pub fn take(&mut self) -> (WriteList, Chunks) {
        match self.freezing.take() {
            None => (WriteList::one(self.writes.take()), Chunks::default()),
            Some(freezing) => {
                let whole = freezing.frozen.is_whole();
                assert!(whole, "all of it stands in the journal");
                freezing.frozen.into_parts()
            }
        }
    }

    /// Gives up writes that will not be committed; a large write set is freed in slices.
    pub fn discard(&mut self, journal: &mut dyn JournalPort, bulks: &mut Bulks) {
        for images in self.savepoints.take_images() {
            if bulks.takes(images.len(), 0) {
                bulks.discard_parts(images, core::iter::empty());
            }
        }
        let rest = match self.freezing.take() {
            Some(freezing) => {
                let (writes, mut chunks) = freezing.frozen.into_parts();
                chunks.free(journal);
                bulks.discard(writes);
                freezing.rest
            }
            None if bulks.takes(self.writes.len(), 0) => self.writes.drain(),
            None => return self.writes.clear(),
        };
        let (tree, lists) = rest.into_parts();
        bulks.discard_parts(tree, lists);
    }
}

fn too_large(bytes_max: usize) -> SqlError {
    SqlError::new(SqlState::OUT_OF_MEMORY, "transaction has written too much")
        .detail(alloc::format!(
            "The limit is {bytes_max} bytes of keys and rows per shard."
        ))
        .hint("Split the work into several transactions.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use base::{Datum, Prng, Type};
    use store::{ColumnFormula, FormulaOp};

    fn key(name: u64) -> Key {
        Key::new(IndexId(1), Slot(name as u16 % 3), vec![name as u8])
    }

    fn row(value: i64) -> Vec<u8> {
        base::row::to_vec(&[Datum::Int(value)])
    }

    fn adding(operand: i64) -> Write {
        let change = ColumnFormula::new(0, Type::Int8, FormulaOp::Add(Datum::Int(operand)));
        Write::Formula(Formula(vec![change.expect("integers add exactly")]))
    }

    /// Random changes of rows, some of which exist: committed as one write per key, they have the
    /// same result as one after the other.
    #[test]
    fn writes_of_a_key_become_one_that_does_the_same() {
        for seed in 0..200 {
            let mut prng = Prng::new(seed);
            let (mut store, mut model) = (Store::new(), BTreeMap::new());
            for name in 0..12 {
                if prng.below(2) == 0 {
                    let write = Write::Insert(row(0));
                    store.apply(&key(name), &write, Ts(1), Ts::ZERO);
                    model.insert(key(name), 0);
                }
            }
            let mut written = Written::default();
            for value in 1..prng.below(80) as i64 {
                let key = key(prng.below(12));
                let (write, after) = match (model.get(&key), prng.below(3)) {
                    (None, _) => (Write::Insert(row(value)), Some(value)),
                    (Some(_), 0) => (Write::Delete, None),
                    (Some(_), 1) => (Write::Put(row(value)), Some(value)),
                    (Some(before), _) => (adding(value), Some(before + value)),
                };
                match after {
                    Some(after) => model.insert(key.clone(), after),
                    None => model.remove(&key),
                };
                let added = written.add(&store, key, write, false, usize::MAX);
                assert!(added.is_ok());
            }
            let (list, _) = written.take();
            let keys: Vec<&Key> = list.iter().map(|(key, _)| key).collect();
            assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
            for (key, write) in list.iter() {
                store.apply(key, write, Ts(2), Ts::ZERO);
            }
            for name in 0..12 {
                let found = store.get(&key(name), Ts::MAX);
                let found = found.map(|version| version.value.to_vec());
                assert_eq!(found, model.get(&key(name)).map(|value| row(*value)));
            }
        }
    }

    #[test]
    fn plans_are_renewed_from_a_version_on() {
        let (one, other) = (IndexId(1), IndexId(2));
        let noted = |written: &Written| -> Vec<u64> {
            written
                .planned
                .iter()
                .map(|(_, planned)| *planned)
                .collect()
        };
        let mut written = Written::default();
        written.note_plan(one, 5);
        written.note_plan(other, 5);
        written.renew(one, 6, 9);
        assert_eq!(
            noted(&written),
            [5, 5],
            "changed by somebody else in between"
        );
        written.renew(one, 5, 9);
        assert_eq!(noted(&written), [9, 5]);
        written.renew(one, 9, 7);
        written.renew(IndexId(3), 0, 99);
        assert_eq!(noted(&written), [9, 5], "nothing gets older");
    }

    #[test]
    fn what_was_written_over_counts_against_the_limit() {
        let (store, mut written) = (Store::new(), Written::default());
        let bytes_max = 2 * (1 + row(0).len() + 1);
        let mut put = |name| written.add(&store, key(name), Write::Put(row(0)), false, bytes_max);
        assert!(put(1).is_ok() && put(1).is_ok());
        let refused = put(2).map_err(|error| error.state());
        assert_eq!(refused, Err(SqlState::OUT_OF_MEMORY));
        written.reset();
        assert!(written.is_empty());
    }
}
