//! Entries of indexes: one record each where the store has scans, else one list object for a key.

use super::{Buffers, Layer, State};
use crate::db::{Failure, Stamp};
use crate::kv::{Groups, Place, TransactionalKv, key, record};
use crate::model::EntityType;
use crate::value::{Row, Value};
use alloc::vec::Vec;

/// An entry that is to be removed after the commit.
#[derive(Debug)]
pub(super) struct Removal {
    pub(super) group: Vec<u8>,
    pub(super) ids: Vec<u8>,
    pub(super) stamp: Stamp,
}

impl<K: TransactionalKv> Layer<K> {
    /// Sets or removes the entry of an index outside of the group.
    pub(super) async fn outer_entry(
        &mut self,
        group: &[u8],
        ids: &[u8],
        stamp: Stamp,
        is_there: bool,
    ) -> Result<(), Failure> {
        if self.folds() {
            self.enter_several().await?;
            return self.entry_in(group, ids, stamp, is_there).await;
        }
        let outer = self.begin_side(group).await?;
        let result = self.entry_in(group, ids, stamp, is_there).await;
        self.end_side(outer, result).await
    }

    async fn entry_in(
        &mut self,
        group: &[u8],
        ids: &[u8],
        stamp: Stamp,
        is_there: bool,
    ) -> Result<(), Failure> {
        self.buffers.group.clear();
        self.buffers.group.extend_from_slice(group);
        self.buffers.key.clear();
        if self.kv.abilities().scans {
            self.buffers.key.push(key::tag::ENTRY);
            self.buffers.key.extend_from_slice(ids);
            return self.single_entry(stamp, is_there).await;
        }
        self.buffers.key.push(key::tag::LIST);
        self.list_entry(ids, stamp, is_there).await
    }

    /// The entry at `buffers`.
    async fn single_entry(&mut self, stamp: Stamp, is_there: bool) -> Result<(), Failure> {
        if !is_there && self.read().await?.as_deref() != Some(&stamp.to_bytes()[..]) {
            return Ok(());
        }
        self.buffers.value.clear();
        self.buffers.value.extend_from_slice(&stamp.to_bytes());
        self.write(is_there).await
    }

    /// An entry of the list object at `buffers`.
    async fn list_entry(
        &mut self,
        ids: &[u8],
        stamp: Stamp,
        is_there: bool,
    ) -> Result<(), Failure> {
        let bytes = self.read().await?;
        let mut list = record::List::read(bytes.as_deref())?;
        let has_changed = match is_there {
            true => list.set(ids, stamp),
            false => list.remove(ids, stamp),
        };
        if !has_changed {
            return Ok(());
        }
        list.write(&mut self.buffers.value);
        self.write(!list.is_empty()).await
    }

    /// Sets or removes the entries of an entity in the indexes of its group.
    pub(super) async fn inner_entries(
        &mut self,
        kind: &EntityType,
        row: &[Value],
        stamp: Stamp,
        is_there: bool,
    ) -> Result<(), Failure> {
        for index in (0..kind.indexes.len()).filter(|&index| kind.is_in_group(index)) {
            key::group_of(kind, row, &mut self.buffers.group);
            if self.kv.abilities().scans {
                push_index(kind, index, key::tag::ENTRY, row, &mut self.buffers.key);
                for id in &row[..kind.id_count] {
                    key::push(id, &mut self.buffers.key);
                }
                self.single_entry(stamp, is_there).await?;
            } else {
                push_index(kind, index, key::tag::LIST, row, &mut self.buffers.key);
                let ids = encoded_ids(kind, row);
                self.list_entry(&ids, stamp, is_there).await?;
            }
        }
        Ok(())
    }

    /// The encoded ids of the entries at `buffers`, whose `key` says the tag, and with scans the
    /// beginning of the entries.
    async fn entries(&mut self) -> Result<Vec<Vec<u8>>, Failure> {
        if !self.kv.abilities().scans {
            let bytes = self.read().await?;
            let list = record::List::read(bytes.as_deref())?;
            return Ok(list.ids().map(<[u8]>::to_vec).collect());
        }
        let Some(txn) = &mut self.txn else {
            return Err(Failure::Refused("no transaction is open".into()));
        };
        let Buffers {
            group,
            key,
            to,
            value: _,
            found,
        } = &mut self.buffers;
        key::after(key, to);
        found.clear();
        let from = Place { group, key };
        self.kv.scan(txn, from, to, usize::MAX, found).await?;
        let at = key.len();
        Ok(found.drain(..).map(|(key, _)| key[at..].to_vec()).collect())
    }

    /// The entity of an entry, if it is there and has the index's key.
    async fn entry_row(
        &mut self,
        kind: &EntityType,
        index: usize,
        of_key: &[Value],
        ids: &[u8],
    ) -> Result<Option<Row>, Failure> {
        let ids = key::ids(kind, ids, 0).ok_or_else(|| record::not_a_row(kind))?;
        key::group_of(kind, &ids, &mut self.buffers.group);
        let row = self.row(kind, &ids).await?;
        let columns = &kind.indexes[index].columns;
        let has_key = |row: &Row| {
            columns
                .iter()
                .zip(of_key)
                .all(|(&column, value)| row[column] == *value)
        };
        if row.is_none() && self.settings.shows_dangling {
            let mut row = ids;
            row.resize(kind.columns.len(), Value::Null);
            return Ok(Some(row));
        }
        Ok(row.filter(has_key))
    }

    pub(super) async fn by_inner_index(
        &mut self,
        kind: &EntityType,
        index: usize,
        of_key: &[Value],
    ) -> Result<Vec<Row>, Failure> {
        self.enter().await?;
        let tag = match self.kv.abilities().scans {
            true => key::tag::ENTRY,
            false => key::tag::LIST,
        };
        push_index_key(kind, index, tag, of_key.iter(), &mut self.buffers.key);
        let entries = self.entries().await?;
        let mut rows = Vec::with_capacity(entries.len());
        for ids in entries {
            rows.extend(self.entry_row(kind, index, of_key, &ids).await?);
        }
        Ok(rows)
    }

    pub(super) async fn by_outer_index(
        &mut self,
        kind: &EntityType,
        index: usize,
        of_key: &[Value],
    ) -> Result<Vec<Row>, Failure> {
        let tag = key::tag::INDEX_GROUP;
        push_index_key(kind, index, tag, of_key.iter(), &mut self.buffers.group);
        self.buffers.key.clear();
        self.buffers.key.push(match self.kv.abilities().scans {
            true => key::tag::ENTRY,
            false => key::tag::LIST,
        });
        if self.state == State::Several {
            self.enter().await?;
            let mut rows = Vec::new();
            for ids in self.entries().await? {
                rows.extend(self.entry_row(kind, index, of_key, &ids).await?);
            }
            return Ok(rows);
        }
        let outer = self.txn.take();
        let result = self.entries_and_rows(kind, index, of_key).await;
        if let Some(txn) = core::mem::replace(&mut self.txn, outer) {
            self.kv.abort(txn).await?;
        }
        result
    }

    /// Reads an index, and each entity in a transaction of its own.
    async fn entries_and_rows(
        &mut self,
        kind: &EntityType,
        index: usize,
        of_key: &[Value],
    ) -> Result<Vec<Row>, Failure> {
        self.txn = Some(self.kv.begin(Groups::One(&self.buffers.group)).await?);
        let entries = self.entries().await?;
        let mut rows = Vec::with_capacity(entries.len());
        for encoded in entries {
            if let Some(txn) = self.txn.take() {
                self.kv.abort(txn).await?;
            }
            let ids = key::ids(kind, &encoded, 0).ok_or_else(|| record::not_a_row(kind))?;
            key::group_of(kind, &ids, &mut self.buffers.group);
            self.txn = Some(self.kv.begin(Groups::One(&self.buffers.group)).await?);
            rows.extend(self.entry_row(kind, index, of_key, &encoded).await?);
        }
        Ok(rows)
    }

    /// Removes the entries of deleted entities. One that is left does no harm.
    pub(super) async fn remove_entries(&mut self) {
        for removal in core::mem::take(&mut self.removals) {
            let Removal { group, ids, stamp } = &removal;
            let removed = self.outer_entry(group, ids, *stamp, false).await;
            if let Err(Failure::Lost(_)) = removed {
                return;
            }
        }
    }
}

/// The key of an index for a row: the tag, the names and the values.
pub(super) fn push_index(
    kind: &EntityType,
    index: usize,
    tag: u8,
    row: &[Value],
    out: &mut Vec<u8>,
) {
    let columns = kind.indexes[index].columns.iter();
    push_index_key(kind, index, tag, columns.map(|&column| &row[column]), out);
}

fn push_index_key<'a>(
    kind: &EntityType,
    index: usize,
    tag: u8,
    of_key: impl Iterator<Item = &'a Value>,
    out: &mut Vec<u8>,
) {
    key::begin(tag, &kind.name, out);
    key::push_name(&kind.indexes[index].name, out);
    for value in of_key {
        key::push(value, out);
    }
}

pub(super) fn encoded_ids(kind: &EntityType, row: &[Value]) -> Vec<u8> {
    let mut ids = Vec::new();
    for id in &row[..kind.id_count] {
        key::push(id, &mut ids);
    }
    ids
}
