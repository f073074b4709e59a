//! Entities on a transactional key-value store.
//!
//! Creating an entity takes up to three transactions, in this order, so that an index may have an
//! entry of an entity that does not exist, and never lacks one of an entity that does:
//!
//! 1. a counter outside of the group gives the generated id;
//! 2. each index outside of the group gets its entry;
//! 3. the entity, its entries in indexes of the group and a counter of the group are written.
//!
//! Deleting goes the other way. Where the store has transactions on several groups all is one.
//!
//! | invariant | kept by |
//! |---|---|
//! | no entity without its entries | the order above; entries have the stamp of their entity |
//! | what an index returns exists and has the key | the reader gets each entity and compares |
//! | a generated id is given once | a counter's transaction commits before its value is used |
//!
//! Who deletes an entity removes an entry only if it has that entity's stamp: another client may
//! create the entity again at the same time.
//!
//! A value of a counter whose transaction did not commit is used by the next one of this client.
//! Follows Strudel, section 4.4.1, except that a counter is outside of the group whenever an index
//! is, and that entries carry stamps.

mod indexes;

use super::{GroupRange, Groups, Place, Record, TransactionalKv, key, record};
use crate::db::{Abilities, EntityDb, Failure, Outcome, Range, Scope, Stamp};
use crate::model::EntityType;
use crate::value::{Row, Value};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use indexes::{Removal, encoded_ids, push_index};

/// Counter values that are kept for the next transaction, at most.
const SPARE_MAX: usize = 16;

/// How the layer works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// One transaction on several groups in place of three on one each, where the store can.
    pub fold: bool,
    /// A planted fault, as a negative control: [`EntityDb::by_index`] returns entities that do not
    /// exist, as their ids and nothing else.
    pub shows_dangling: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            fold: true,
            shows_dangling: false,
        }
    }
}

/// Which groups the open transaction has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// None is open.
    Outside,
    /// The group is not known yet.
    New,
    /// The one in `Layer::group`.
    Group,
    /// Any.
    Several,
}

/// An [`EntityDb`] made of a [`TransactionalKv`].
#[derive(Debug)]
pub struct Layer<K: TransactionalKv> {
    kv: K,
    settings: Settings,
    state: State,
    /// Begun by the first operation.
    txn: Option<K::Txn>,
    stamp: Stamp,
    has_written: bool,
    group: Vec<u8>,
    removals: Vec<Removal>,
    /// Counters' values that the open transaction uses, and those that none does.
    taken: Vec<(Vec<u8>, i64)>,
    spare: Vec<(Vec<u8>, i64)>,
    buffers: Buffers,
}

/// Bytes that are used again and again.
#[derive(Debug, Default)]
struct Buffers {
    group: Vec<u8>,
    key: Vec<u8>,
    to: Vec<u8>,
    value: Vec<u8>,
    found: Vec<Record>,
}

impl<K: TransactionalKv> Layer<K> {
    /// The layer on a connection.
    pub fn new(kv: K, settings: Settings) -> Layer<K> {
        Layer {
            kv,
            settings,
            state: State::Outside,
            txn: None,
            stamp: Stamp::default(),
            has_written: false,
            group: Vec::new(),
            removals: Vec::new(),
            taken: Vec::new(),
            spare: Vec::new(),
            buffers: Buffers::default(),
        }
    }

    /// The connection.
    pub fn kv(&mut self) -> &mut K {
        &mut self.kv
    }

    fn folds(&self) -> bool {
        self.settings.fold && self.kv.abilities().several_groups
    }

    /// Begins the transaction in the store, if it has not. Outside of one: on the group in
    /// `self.group`.
    async fn enter(&mut self) -> Result<(), Failure> {
        if self.txn.is_some() {
            return Ok(());
        }
        let groups = match self.state {
            State::Several => Groups::Several,
            State::Group if self.folds() => Groups::Several,
            State::Group | State::Outside => Groups::One(&self.group),
            State::New => {
                let words = "an entity is read before the transaction has its group";
                return Err(Failure::Refused(words.into()));
            }
        };
        self.txn = Some(self.kv.begin(groups).await?);
        Ok(())
    }

    /// Ends what [`Layer::enter`] has begun for a single read.
    async fn leave<T>(&mut self, result: Result<T, Failure>) -> Result<T, Failure> {
        if self.state == State::Outside
            && let Some(txn) = self.txn.take()
        {
            let ended = self.kv.abort(txn).await;
            return result.and_then(|value| ended.map(|()| value));
        }
        result
    }

    /// Sets `buffers.group` to the group of an id, and the transaction's to it if it has none.
    fn address(&mut self, kind: &EntityType, id: &[Value]) {
        key::group_of(kind, id, &mut self.buffers.group);
        if self.state == State::Outside {
            self.group.clear();
            self.group.extend_from_slice(&self.buffers.group);
        }
    }

    /// The record at `buffers`.
    async fn read(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let Some(txn) = &mut self.txn else {
            return Err(Failure::Refused("no transaction is open".into()));
        };
        let place = Place {
            group: &self.buffers.group,
            key: &self.buffers.key,
        };
        self.kv.get(txn, place).await
    }

    /// Writes the record at `buffers`; `None`: deletes it.
    async fn write(&mut self, is_there: bool) -> Result<(), Failure> {
        let Some(txn) = &mut self.txn else {
            return Err(Failure::Refused("no transaction is open".into()));
        };
        self.has_written = true;
        let place = Place {
            group: &self.buffers.group,
            key: &self.buffers.key,
        };
        match is_there {
            true => self.kv.put(txn, place, &self.buffers.value).await,
            false => self.kv.delete(txn, place).await,
        }
    }

    async fn row(&mut self, kind: &EntityType, id: &[Value]) -> Result<Option<Row>, Failure> {
        key::entity(kind, id, &mut self.buffers.key);
        let Some(bytes) = self.read().await? else {
            return Ok(None);
        };
        let mut row = Row::with_capacity(kind.columns.len());
        row.extend_from_slice(&id[..kind.id_count]);
        record::take_row(kind, &bytes, &mut row)?;
        Ok(Some(row))
    }

    /// The next value of the type's counter for a row.
    async fn generate(&mut self, kind: &EntityType, row: &[Value]) -> Result<i64, Failure> {
        let is_outside = kind.generates_group() || kind.has_outer_index();
        let tag = match is_outside {
            true => key::tag::COUNTER_GROUP,
            false => key::tag::COUNTER,
        };
        let out = match is_outside {
            true => &mut self.buffers.group,
            false => &mut self.buffers.key,
        };
        key::begin(tag, &kind.name, out);
        for (n, value) in row[..kind.id_count].iter().enumerate() {
            if kind.generated != Some(n) {
                key::push(value, out);
            }
        }
        if !is_outside {
            key::group_of(kind, row, &mut self.buffers.group);
            self.enter().await?;
            return self.count().await;
        }
        self.buffers.key.clear();
        if self.folds() {
            self.enter_several().await?;
            return self.count().await;
        }
        let counter = self.buffers.group.clone();
        if let Some(at) = self.spare.iter().position(|(own, _)| *own == counter) {
            let (_, value) = self.spare.swap_remove(at);
            self.taken.push((counter, value));
            return Ok(value);
        }
        let outer = self.begin_side(&counter).await?;
        let result = self.count().await;
        let value = self.end_side(outer, result).await?;
        self.taken.push((counter, value));
        Ok(value)
    }

    /// Counts the counter at `buffers` up.
    async fn count(&mut self) -> Result<i64, Failure> {
        let bytes = self.read().await?;
        let value = record::counter(bytes.as_deref())? + 1;
        self.buffers.value.clear();
        self.buffers.value.extend_from_slice(&value.to_be_bytes());
        self.write(true).await?;
        Ok(value)
    }

    /// Begins a transaction on several groups, if none is open yet.
    async fn enter_several(&mut self) -> Result<(), Failure> {
        if self.txn.is_none() {
            self.txn = Some(self.kv.begin(Groups::Several).await?);
        }
        Ok(())
    }

    /// Begins a transaction on one index or counter within the open one, which is returned.
    async fn begin_side(&mut self, group: &[u8]) -> Result<Option<K::Txn>, Failure> {
        let side = self.kv.begin(Groups::One(group)).await?;
        Ok(self.txn.replace(side))
    }

    /// Commits the transaction on one index or counter, and puts the one before it back.
    async fn end_side<T>(
        &mut self,
        outer: Option<K::Txn>,
        result: Result<T, Failure>,
    ) -> Result<T, Failure> {
        let side = core::mem::replace(&mut self.txn, outer);
        let Some(side) = side else { return result };
        match result {
            Ok(value) => match self.kv.commit(side, None).await {
                Ok(()) => Ok(value),
                // Repeated it does no harm: an id is lost, an entry written twice.
                Err(Failure::Unknown(_)) => Err(Failure::conflict("answer of an index lost")),
                Err(failure) => Err(failure),
            },
            Err(failure) => {
                self.kv.abort(side).await?;
                Err(failure)
            }
        }
    }

    async fn read_range(
        &mut self,
        kind: &EntityType,
        range: Range<'_>,
    ) -> Result<Vec<Row>, Failure> {
        self.enter().await?;
        let Some(txn) = &mut self.txn else {
            return Err(Failure::Refused("no transaction is open".into()));
        };
        let Buffers {
            group,
            key,
            to,
            value,
            found,
        } = &mut self.buffers;
        key::entity(kind, range.prefix, key);
        match range.to {
            None => key::after(key, to),
            Some(bound) => {
                to.clear();
                to.extend_from_slice(key);
                key::push(bound, to);
            }
        }
        if let Some(bound) = range.from {
            key::push(bound, key);
        }
        found.clear();
        let from = Place { group, key };
        self.kv.scan(txn, from, to, range.limit, found).await?;
        key::entity(kind, &[], value);
        let mut rows = Vec::with_capacity(found.len());
        for (key, bytes) in found.drain(..) {
            let ids = key::ids(kind, &key, value.len());
            let mut row = ids.ok_or_else(|| record::not_a_row(kind))?;
            record::take_row(kind, &bytes, &mut row)?;
            rows.push(row);
        }
        Ok(rows)
    }

    /// A range whose prefix does not name the group: groups lie in the order of ids if their key is
    /// the first ids.
    async fn range_over_groups(
        &mut self,
        kind: &EntityType,
        range: Range<'_>,
    ) -> Result<Vec<Row>, Failure> {
        let refused = |why: &str| {
            let words = "a range that does not begin with the ids of the group";
            Err(Failure::Refused(format!(
                "{words} of type \"{}\": {why}",
                kind.name
            )))
        };
        if self.kv.group_order().is_none() {
            return refused("the store has no order of groups");
        }
        if self.state != State::Outside {
            return refused("it is no part of a transaction in a key-value store");
        }
        if !kind.group.iter().copied().eq(0..kind.group.len()) {
            return refused("its groups are not in the order of its ids");
        }
        let Buffers { group, to, .. } = &mut self.buffers;
        key::begin(key::tag::GROUP, &kind.group_name, group);
        range
            .prefix
            .iter()
            .for_each(|value| key::push(value, group));
        match range.to {
            None => key::after(group, to),
            Some(bound) => {
                to.clear();
                to.extend_from_slice(group);
                key::push(bound, to);
            }
        }
        if let Some(bound) = range.from {
            key::push(bound, group);
        }
        let part = GroupRange {
            kind,
            from: group,
            to,
            limit: range.limit,
        };
        let (at, mut found) = (part.prefix().len(), Vec::new());
        if part.from < part.to {
            self.kv.scan_groups(part, &mut found).await?;
        }
        let rows = found.into_iter().map(|(_, key, bytes)| {
            let ids = key::ids(kind, &key, at);
            let mut row = ids.ok_or_else(|| record::not_a_row(kind))?;
            record::take_row(kind, &bytes, &mut row)?;
            Ok(row)
        });
        rows.collect()
    }

    /// Forgets the transaction. What a counter gave it is given to the next one, unless it may have
    /// been used.
    fn forget(&mut self, is_unused: bool) {
        self.state = State::Outside;
        self.has_written = false;
        self.removals.clear();
        match is_unused {
            true => self.spare.append(&mut self.taken),
            false => self.taken.clear(),
        }
        self.spare.truncate(SPARE_MAX);
    }
}

fn named(kind: &EntityType, id: &[Value]) -> String {
    let ids: Vec<_> = id
        .iter()
        .take(kind.id_count)
        .map(ToString::to_string)
        .collect();
    format!("entity \"{}\" ({})", kind.name, ids.join(", "))
}

impl<K: TransactionalKv> EntityDb for Layer<K> {
    fn abilities(&self) -> Abilities {
        let abilities = self.kv.abilities();
        Abilities {
            several_groups: abilities.several_groups,
            ranges_over_groups: self.kv.group_order().is_some(),
            durable: abilities.durable,
            resolves_outcomes: abilities.resolves_outcomes,
        }
    }

    async fn begin(&mut self, scope: Scope<'_>, stamp: Stamp) -> Result<(), Failure> {
        self.stamp = stamp;
        self.state = match scope {
            Scope::Group(name, values) => {
                key::begin(key::tag::GROUP, name, &mut self.group);
                for value in values {
                    key::push(value, &mut self.group);
                }
                State::Group
            }
            Scope::New => State::New,
            Scope::Several => State::Several,
        };
        Ok(())
    }

    async fn get(&mut self, kind: &EntityType, id: &[Value]) -> Result<Option<Row>, Failure> {
        self.address(kind, id);
        let result = match self.enter().await {
            Ok(()) => self.row(kind, id).await,
            Err(failure) => Err(failure),
        };
        self.leave(result).await
    }

    async fn create(&mut self, kind: &EntityType, row: &mut [Value]) -> Result<(), Failure> {
        if self.state == State::Outside {
            return Err(Failure::Refused("a write outside of a transaction".into()));
        }
        if self.state == State::New && !kind.generates_group() {
            key::group_of(kind, row, &mut self.group);
            self.state = State::Group;
        }
        if let Some(id) = kind.generated {
            row[id] = Value::Int(self.generate(kind, row).await?);
        }
        if self.state == State::New {
            key::group_of(kind, row, &mut self.group);
            self.state = State::Group;
        }
        for index in (0..kind.indexes.len()).filter(|&index| !kind.is_in_group(index)) {
            let mut group = Vec::new();
            push_index(kind, index, key::tag::INDEX_GROUP, row, &mut group);
            let ids = encoded_ids(kind, row);
            self.outer_entry(&group, &ids, self.stamp, true).await?;
        }
        self.enter().await?;
        key::group_of(kind, row, &mut self.buffers.group);
        key::entity(kind, row, &mut self.buffers.key);
        if self.read().await?.is_some() {
            return Err(Failure::Exists(named(kind, row)));
        }
        record::push_row(kind, self.stamp, row, &mut self.buffers.value);
        self.write(true).await?;
        self.inner_entries(kind, row, self.stamp, true).await
    }

    async fn update(&mut self, kind: &EntityType, row: &[Value]) -> Result<(), Failure> {
        if self.state == State::Outside {
            return Err(Failure::Refused("a write outside of a transaction".into()));
        }
        self.enter().await?;
        key::group_of(kind, row, &mut self.buffers.group);
        key::entity(kind, row, &mut self.buffers.key);
        let Some(bytes) = self.read().await? else {
            return Err(Failure::Missing(named(kind, row)));
        };
        if let Some(column) = record::changed_immutable(kind, &bytes, row)? {
            return Err(Failure::Refused(format!(
                "column \"{}\" of {} cannot be changed",
                kind.columns[column].name,
                named(kind, row)
            )));
        }
        let stamp = record::stamp_of(kind, &bytes)?;
        record::push_row(kind, stamp, row, &mut self.buffers.value);
        self.write(true).await
    }

    async fn delete(&mut self, kind: &EntityType, id: &[Value]) -> Result<(), Failure> {
        if self.state == State::Outside {
            return Err(Failure::Refused("a write outside of a transaction".into()));
        }
        self.enter().await?;
        key::group_of(kind, id, &mut self.buffers.group);
        key::entity(kind, id, &mut self.buffers.key);
        let Some(bytes) = self.read().await? else {
            return Err(Failure::Missing(named(kind, id)));
        };
        let mut row = id.to_vec();
        let stamp = record::take_row(kind, &bytes, &mut row)?;
        self.write(false).await?;
        self.inner_entries(kind, &row, stamp, false).await?;
        for index in (0..kind.indexes.len()).filter(|&index| !kind.is_in_group(index)) {
            let mut group = Vec::new();
            push_index(kind, index, key::tag::INDEX_GROUP, &row, &mut group);
            let ids = encoded_ids(kind, &row);
            if self.folds() {
                self.outer_entry(&group, &ids, stamp, false).await?;
            } else {
                self.removals.push(Removal { group, ids, stamp });
            }
        }
        Ok(())
    }

    async fn by_index(
        &mut self,
        kind: &EntityType,
        index: usize,
        of_key: &[Value],
    ) -> Result<Vec<Row>, Failure> {
        if !kind.is_in_group(index) {
            return self.by_outer_index(kind, index, of_key).await;
        }
        let columns = &kind.indexes[index].columns;
        key::begin(key::tag::GROUP, &kind.group_name, &mut self.buffers.group);
        for id in kind.group.iter() {
            let at = columns.iter().position(|column| column == id);
            let at = at.expect("an index of the group has its ids");
            key::push(&of_key[at], &mut self.buffers.group);
        }
        if self.state == State::Outside {
            self.group.clear();
            self.group.extend_from_slice(&self.buffers.group);
        }
        let result = self.by_inner_index(kind, index, of_key).await;
        self.leave(result).await
    }

    async fn range(&mut self, kind: &EntityType, range: Range<'_>) -> Result<Vec<Row>, Failure> {
        if !self.kv.abilities().scans {
            return Err(Failure::Refused("the store has no ranges".into()));
        }
        if kind.group.iter().any(|&id| id >= range.prefix.len()) {
            return self.range_over_groups(kind, range).await;
        }
        self.address(kind, range.prefix);
        let result = self.read_range(kind, range).await;
        self.leave(result).await
    }

    async fn commit(&mut self) -> Result<(), Failure> {
        let Some(txn) = self.txn.take() else {
            self.forget(true);
            return Ok(());
        };
        let stamp = self.has_written.then_some(self.stamp);
        let result = match self.kv.commit(txn, stamp).await {
            Err(Failure::Unknown(_)) if stamp.is_none() => {
                Err(Failure::conflict("answer of a read lost"))
            }
            result => result,
        };
        match result {
            Ok(()) => {
                self.state = State::Outside;
                self.remove_entries().await;
                self.forget(false);
            }
            Err(Failure::Unknown(_)) => self.forget(false),
            Err(_) => self.forget(true),
        }
        result
    }

    async fn abort(&mut self) -> Result<(), Failure> {
        let txn = self.txn.take();
        self.forget(true);
        match txn {
            Some(txn) => self.kv.abort(txn).await,
            None => Ok(()),
        }
    }

    async fn outcome(&mut self, stamp: Stamp) -> Result<Outcome, Failure> {
        self.kv.outcome(stamp).await
    }

    fn round_trips(&self) -> u64 {
        self.kv.round_trips()
    }
}
