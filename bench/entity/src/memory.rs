//! A store in memory: the default one, the reference of the others, and the negative controls.
//!
//! Clients of one process share a [`Memory`]. It has two forms: records with serializable
//! transactions on any groups ([`Client`]), and cells for the packed form ([`Cells`]).
//!
//! Transactions are optimistic. Every commit that writes gets the next number of a clock, and every
//! record has that of its last change. A transaction reads the state of one number: what is newer
//! moves the number forward if all that was read before is unchanged, or ends in a conflict. At the
//! commit all that was read must be unchanged; a part of a group that was scanned has gained and
//! lost no record.
//!
//! How clients share it is theirs ([`Shared`]): in one thread by `Rc<RefCell<Memory>>`, in several
//! by a lock.

use crate::db::{Failure, Outcome, Stamp};
use crate::kv::key::tag;
use crate::kv::{CompareAndSet, GroupOrder, GroupRange, Groups, KvAbilities, Place, Placed};
use crate::kv::{Record, TransactionalKv};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::rc::Rc;
use alloc::vec::Vec;
use base::LookupMap;
use core::cell::RefCell;
use core::ops::{Bound, Range};

/// A planted fault: a negative control, which one check of [`crate::conformance`] must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A commit does not look whether entities that it read have changed.
    LostUpdate,
    /// A commit of several entities does the first one, and the others with the client's next call.
    TornGroup,
    /// The first read of a changed entity by another client than the one that changed it sees it
    /// as it was before.
    StaleRead,
    /// A commit whose answer is lost is forgotten: it happened, and the store says that it did not.
    DroppedAcknowledgement,
}

/// What is in the store.
#[derive(Debug, Default)]
pub struct Memory {
    groups: LookupMap<Vec<u8>, Group>,
    cells: LookupMap<Vec<u8>, Vec<u8>>,
    /// The keys of `groups`, and those of `cells`, in their order.
    group_order: BTreeSet<Vec<u8>>,
    cell_order: BTreeSet<Vec<u8>>,
    /// Commits so far.
    clock: u64,
    /// The sequence of each client's last commit.
    stamps: BTreeMap<u64, u64>,
    /// Names of [`Client`]s, for [`Fault::StaleRead`].
    clients: u64,
    fault: Option<Fault>,
    losses: Option<Losses>,
}

/// Commits that have no answer.
#[derive(Debug)]
struct Losses {
    every: u64,
    commits: u64,
}

#[derive(Debug, Default)]
struct Group {
    /// The clock of the last commit that added or removed a record.
    shape: u64,
    records: BTreeMap<Vec<u8>, Stored>,
}

#[derive(Debug)]
struct Stored {
    version: u64,
    value: Vec<u8>,
    /// Only with [`Fault::StaleRead`]: who changed it, and how it was before; nobody has seen the
    /// change yet.
    stale: Option<(u64, Vec<u8>)>,
}

/// How the clients of a store share it.
pub trait Shared {
    /// Calls `f` with the store, which no other client has meanwhile.
    fn with<T>(&self, f: impl FnOnce(&mut Memory) -> T) -> T;
}

impl Shared for Rc<RefCell<Memory>> {
    fn with<T>(&self, f: impl FnOnce(&mut Memory) -> T) -> T {
        f(&mut self.borrow_mut())
    }
}

impl Memory {
    /// An empty store.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// An empty store with a planted fault.
    pub fn with_fault(fault: Fault) -> Memory {
        Memory {
            fault: Some(fault),
            ..Memory::default()
        }
    }

    /// Lets every `every`th commit of its clients have no answer: its answer is lost, or it is lost
    /// itself, in turn.
    #[must_use]
    pub fn losing(mut self, every: u64) -> Memory {
        self.losses = Some(Losses { every, commits: 0 });
        self
    }

    fn next_loss(&mut self) -> Option<Loss> {
        let losses = self.losses.as_mut()?;
        losses.commits += 1;
        let is_lost = losses.commits.is_multiple_of(losses.every);
        is_lost.then_some(match (losses.commits / losses.every) % 2 {
            0 => Loss::OfRequest,
            _ => Loss::OfAnswer,
        })
    }

    /// The version of a record; 0: it is not there.
    fn version(&self, group: &[u8], key: &[u8]) -> u64 {
        let record = self.groups.get(group).and_then(|g| g.records.get(key));
        record.map_or(0, |record| record.version)
    }

    fn shape(&self, group: &[u8]) -> u64 {
        self.groups.get(group).map_or(0, |group| group.shape)
    }

    /// Whether all that a transaction read is as it was.
    fn is_unchanged(&self, txn: &Txn) -> bool {
        let reads = txn.reads.iter();
        let scans = txn.scans.iter();
        let is_blind = self.fault == Some(Fault::LostUpdate);
        let mut reads = reads.filter(|read| !is_blind || !is_entity(txn.bytes(&read.key)));
        reads.all(|read| {
            let (group, key) = (txn.bytes(&read.group), txn.bytes(&read.key));
            self.version(group, key) == read.version
        }) && scans
            .into_iter()
            .all(|group| self.shape(txn.bytes(group)) <= txn.start)
    }

    /// Moves the state that a transaction reads forward to one that has `version`.
    fn extend(&self, txn: &mut Txn, version: u64) -> Result<(), Failure> {
        if version > txn.start {
            if !self.is_unchanged(txn) {
                return Err(Failure::conflict("read"));
            }
            txn.start = self.clock;
        }
        Ok(())
    }

    fn put(&mut self, group: &[u8], key: &[u8], value: &[u8], client: u64) {
        let version = self.clock;
        let keeps_stale = self.fault == Some(Fault::StaleRead) && is_entity(key);
        let group = match self.groups.contains(group) {
            true => self.groups.get_mut(group).expect("it is there"),
            false => {
                self.group_order.insert(group.to_vec());
                self.groups
                    .get_or_insert_with(group.to_vec(), Group::default)
            }
        };
        if let Some(record) = group.records.get_mut(key) {
            if keeps_stale {
                record.stale = Some((client, record.value.clone()));
            }
            record.version = version;
            record.value.clear();
            record.value.extend_from_slice(value);
            return;
        }
        group.shape = version;
        let record = Stored {
            version,
            value: value.to_vec(),
            stale: None,
        };
        group.records.insert(key.to_vec(), record);
    }

    fn delete(&mut self, group: &[u8], key: &[u8]) {
        let Some(own) = self.groups.get_mut(group) else {
            return;
        };
        if own.records.remove(key).is_some() {
            own.shape = self.clock;
        }
    }
}

/// A record that a transaction read; version 0: it was not there.
#[derive(Debug)]
struct Read {
    group: Range<usize>,
    key: Range<usize>,
    version: u64,
}

/// A record that a transaction writes; without a value it is deleted.
#[derive(Debug)]
struct Write {
    hash: u64,
    group: Range<usize>,
    key: Range<usize>,
    value: Option<Range<usize>>,
}

/// An open transaction of a [`Client`].
#[derive(Debug, Default)]
pub struct Txn {
    /// The clock of the state that it reads.
    start: u64,
    reads: Vec<Read>,
    scans: Vec<Range<usize>>,
    writes: Vec<Write>,
    bytes: Vec<u8>,
}

impl Txn {
    fn clear(&mut self) {
        self.start = 0;
        self.reads.clear();
        self.scans.clear();
        self.writes.clear();
        self.bytes.clear();
    }

    fn bytes(&self, range: &Range<usize>) -> &[u8] {
        &self.bytes[range.clone()]
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        at..self.bytes.len()
    }

    fn written(&self, place: Place<'_>) -> Option<usize> {
        let hash = hash_of(place);
        self.writes.iter().position(|write| {
            write.hash == hash
                && self.bytes(&write.key) == place.key
                && self.bytes(&write.group) == place.group
        })
    }

    fn write(&mut self, place: Place<'_>, value: Option<&[u8]>) {
        let value = value.map(|value| self.keep(value));
        if let Some(at) = self.written(place) {
            self.writes[at].value = value;
            return;
        }
        let write = Write {
            hash: hash_of(place),
            group: self.keep(place.group),
            key: self.keep(place.key),
            value,
        };
        self.writes.push(write);
    }

    fn read(&mut self, place: Place<'_>, version: u64) {
        let read = Read {
            group: self.keep(place.group),
            key: self.keep(place.key),
            version,
        };
        self.reads.push(read);
    }
}

/// Whether a record is an entity: planted faults spare indexes and counters.
fn is_entity(key: &[u8]) -> bool {
    key.first() == Some(&tag::ENTITY)
}

/// FNV-1a of 64 bits.
fn hash_of(place: Place<'_>) -> u64 {
    let bytes = place.group.iter().chain(place.key);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// What happens to the next commit with a stamp: a lost answer, for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// It happens, and its answer is lost.
    OfAnswer,
    /// It is lost itself.
    OfRequest,
}

/// One client of the store's records.
#[derive(Debug)]
pub struct Client<S> {
    shared: S,
    name: u64,
    spare: Vec<Txn>,
    loss: Option<Loss>,
    /// Whether the store loses answers by itself.
    is_lossy: bool,
    /// Only with [`Fault::TornGroup`]: what the last commit has left to do.
    rest: Option<Txn>,
    calls: u64,
}

impl<S: Shared> Client<S> {
    /// A client of a store.
    pub fn new(shared: S) -> Client<S> {
        let (name, is_lossy) = shared.with(|memory| {
            memory.clients += 1;
            (memory.clients, memory.losses.is_some())
        });
        Client {
            shared,
            name,
            spare: Vec::new(),
            loss: None,
            is_lossy,
            rest: None,
            calls: 0,
        }
    }

    /// Lets the next commit with a stamp answer `Unknown`.
    pub fn lose_next(&mut self, loss: Loss) {
        self.loss = Some(loss);
    }

    /// Counts a call, and does what the last commit has left.
    fn call(&mut self) {
        self.calls += 1;
        if let Some(rest) = self.rest.take() {
            let writes = 0..rest.writes.len();
            self.shared.with(|memory| apply(memory, &rest, writes, 0));
        }
    }

    fn give_back(&mut self, mut txn: Txn) {
        txn.clear();
        self.spare.push(txn);
    }

    fn apply_commit(&mut self, txn: &mut Txn, stamp: Option<Stamp>) -> Result<(), Failure> {
        let name = self.name;
        let half = self.shared.with(|memory| {
            if !memory.is_unchanged(txn) {
                return Err(Failure::conflict("read"));
            }
            memory.clock += 1;
            let count = txn.writes.len();
            let mut entities = txn.writes.iter().map(|write| txn.bytes(&write.key));
            let torn = match memory.fault {
                Some(Fault::TornGroup) if entities.clone().filter(|k| is_entity(k)).count() > 1 => {
                    entities.position(is_entity)
                }
                _ => None,
            };
            let half = torn.map_or(count, |first| first + 1);
            apply(memory, txn, 0..half, name);
            if let Some(stamp) = stamp {
                memory.stamps.insert(stamp.client, stamp.sequence);
            }
            Ok(half)
        })?;
        if half < txn.writes.len() {
            let mut rest = core::mem::take(txn);
            rest.writes.drain(..half);
            self.rest = Some(rest);
        }
        Ok(())
    }
}

fn apply(memory: &mut Memory, txn: &Txn, writes: Range<usize>, client: u64) {
    for write in &txn.writes[writes] {
        let (group, key) = (txn.bytes(&write.group), txn.bytes(&write.key));
        match &write.value {
            Some(value) => memory.put(group, key, txn.bytes(value), client),
            None => memory.delete(group, key),
        }
    }
}

impl<S: Shared> TransactionalKv for Client<S> {
    type Txn = Txn;

    fn abilities(&self) -> KvAbilities {
        KvAbilities {
            several_groups: true,
            scans: true,
            durable: false,
            resolves_outcomes: true,
        }
    }

    async fn begin(&mut self, _: Groups<'_>) -> Result<Txn, Failure> {
        self.call();
        let mut txn = self.spare.pop().unwrap_or_default();
        txn.start = self.shared.with(|memory| memory.clock);
        Ok(txn)
    }

    async fn get(&mut self, txn: &mut Txn, place: Place<'_>) -> Result<Option<Vec<u8>>, Failure> {
        self.call();
        if let Some(at) = txn.written(place) {
            let value = txn.writes[at].value.as_ref();
            return Ok(value.map(|value| txn.bytes(value).to_vec()));
        }
        let name = self.name;
        self.shared.with(|memory| {
            let version = memory.version(place.group, place.key);
            memory.extend(txn, version)?;
            let group = memory.groups.get_mut(place.group);
            let Some(record) = group.and_then(|group| group.records.get_mut(place.key)) else {
                txn.read(place, version);
                return Ok(None);
            };
            if let Some((_, before)) = record.stale.take_if(|(client, _)| *client != name) {
                // Who writes after this read gets a conflict: only reads are wrong.
                txn.read(place, version - 1);
                return Ok(Some(before));
            }
            txn.read(place, version);
            Ok(Some(record.value.clone()))
        })
    }

    async fn scan(
        &mut self,
        txn: &mut Txn,
        from: Place<'_>,
        to: &[u8],
        limit: usize,
        found: &mut Vec<Record>,
    ) -> Result<(), Failure> {
        self.call();
        if from.key >= to {
            return Ok(());
        }
        let own = txn.writes.iter().filter(|write| {
            let key = txn.bytes(&write.key);
            txn.bytes(&write.group) == from.group && key >= from.key && key < to
        });
        let own: BTreeMap<Vec<u8>, Option<Vec<u8>>> = own
            .map(|write| {
                let value = write.value.as_ref().map(|value| txn.bytes(value).to_vec());
                (txn.bytes(&write.key).to_vec(), value)
            })
            .collect();
        self.shared.with(|memory| {
            memory.extend(txn, memory.shape(from.group))?;
            let group = txn.keep(from.group);
            txn.scans.push(group);
            // What this transaction deletes does not count against the limit.
            let wanted = limit.saturating_add(own.len());
            let first = found.len();
            if let Some(group) = memory.groups.get(from.group) {
                let part = group
                    .records
                    .range::<[u8], _>((Bound::Included(from.key), Bound::Excluded(to)))
                    .take(wanted);
                for (key, record) in part {
                    memory.extend(txn, record.version)?;
                    let place = Place { key, ..from };
                    txn.read(place, record.version);
                    found.push((key.clone(), record.value.clone()));
                }
            }
            if own.is_empty() {
                return Ok(());
            }
            let mut all: BTreeMap<Vec<u8>, Vec<u8>> = found.drain(first..).collect();
            for (key, value) in own {
                match value {
                    Some(value) => all.insert(key, value),
                    None => all.remove(&key),
                };
            }
            found.extend(all.into_iter().take(limit));
            Ok(())
        })
    }

    async fn put(&mut self, txn: &mut Txn, place: Place<'_>, value: &[u8]) -> Result<(), Failure> {
        txn.write(place, Some(value));
        Ok(())
    }

    async fn delete(&mut self, txn: &mut Txn, place: Place<'_>) -> Result<(), Failure> {
        txn.write(place, None);
        Ok(())
    }

    async fn commit(&mut self, mut txn: Txn, stamp: Option<Stamp>) -> Result<(), Failure> {
        self.call();
        let result = if txn.writes.is_empty() {
            Ok(())
        } else {
            let mut loss = stamp.and_then(|_| self.loss.take());
            if self.is_lossy && loss.is_none() && stamp.is_some() {
                loss = self.shared.with(Memory::next_loss);
            }
            let result = match loss {
                Some(Loss::OfRequest) => Ok(()),
                Some(Loss::OfAnswer) | None => self.apply_commit(&mut txn, stamp),
            };
            match loss {
                Some(_) => Err(Failure::Unknown("the answer is lost".into())),
                None => result,
            }
        };
        self.give_back(txn);
        result
    }

    async fn abort(&mut self, txn: Txn) -> Result<(), Failure> {
        self.call();
        self.give_back(txn);
        Ok(())
    }

    async fn outcome(&mut self, stamp: Stamp) -> Result<Outcome, Failure> {
        self.call();
        let last = self.shared.with(|memory| match memory.fault {
            Some(Fault::DroppedAcknowledgement) => None,
            _ => memory.stamps.get(&stamp.client).copied(),
        });
        Ok(match last == Some(stamp.sequence) {
            true => Outcome::Committed,
            false => Outcome::NotCommitted,
        })
    }

    fn group_order(&self) -> Option<GroupOrder> {
        Some(GroupOrder::Snapshot)
    }

    async fn scan_groups(
        &mut self,
        range: GroupRange<'_>,
        found: &mut Vec<Placed>,
    ) -> Result<(), Failure> {
        self.call();
        let prefix = range.prefix();
        self.shared.with(|memory| {
            let groups = part_of(&memory.group_order, range.from, range.to);
            let records = groups.flat_map(|group| {
                let records = memory.groups.get(group).map(|group| &group.records);
                let from = (Bound::Included(&prefix[..]), Bound::Unbounded);
                let records = records.map(|records| records.range::<[u8], _>(from));
                let records = records.into_iter().flatten();
                let records = records.take_while(|(key, _)| key.starts_with(&prefix));
                records.map(move |(key, record)| (group.clone(), key.clone(), record.value.clone()))
            });
            found.extend(records.take(range.limit));
        });
        Ok(())
    }

    fn round_trips(&self) -> u64 {
        self.calls
    }
}

/// The keys from `from` and before `to`, which is not below it.
fn part_of<'a>(
    keys: &'a BTreeSet<Vec<u8>>,
    from: &[u8],
    to: &[u8],
) -> impl Iterator<Item = &'a Vec<u8>> {
    keys.range::<[u8], _>((Bound::Included(from), Bound::Excluded(to)))
}

/// One client of the store's cells.
#[derive(Debug)]
pub struct Cells<S> {
    shared: S,
    loss: Option<Loss>,
    calls: u64,
}

impl<S: Shared> Cells<S> {
    /// A client of a store.
    pub fn new(shared: S) -> Cells<S> {
        Cells {
            shared,
            loss: None,
            calls: 0,
        }
    }

    /// Lets the next [`CompareAndSet::set`] answer `Unknown`.
    pub fn lose_next(&mut self, loss: Loss) {
        self.loss = Some(loss);
    }
}

impl<S: Shared> CompareAndSet for Cells<S> {
    async fn read(&mut self, group: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        self.calls += 1;
        Ok(self.shared.with(|memory| memory.cells.get(group).cloned()))
    }

    async fn set(&mut self, group: &[u8], version: u64, cell: &[u8]) -> Result<bool, Failure> {
        self.calls += 1;
        let loss = self.loss.take();
        if loss == Some(Loss::OfRequest) {
            return Err(Failure::Unknown("the request is lost".into()));
        }
        let is_set = self.shared.with(|memory| {
            let own = memory.cells.get_mut(group);
            let of_own = own.as_ref().and_then(|own| own.first_chunk::<8>());
            if of_own.map_or(0, |own| u64::from_be_bytes(*own)) != version {
                return false;
            }
            match own {
                Some(own) => {
                    own.clear();
                    own.extend_from_slice(cell);
                }
                None => {
                    memory.cell_order.insert(group.to_vec());
                    memory.cells.insert(group.to_vec(), cell.to_vec());
                }
            }
            true
        });
        match loss {
            Some(_) => Err(Failure::Unknown("the answer is lost".into())),
            None => Ok(is_set),
        }
    }

    fn has_order(&self) -> bool {
        true
    }

    async fn range(
        &mut self,
        from: &[u8],
        to: &[u8],
        limit: usize,
    ) -> Result<Vec<Record>, Failure> {
        self.calls += 1;
        Ok(self.shared.with(|memory| {
            let keys = part_of(&memory.cell_order, from, to).take(limit);
            let cells = keys.filter_map(|key| Some((key.clone(), memory.cells.get(key)?.clone())));
            cells.collect()
        }))
    }

    fn is_durable(&self) -> bool {
        false
    }

    fn round_trips(&self) -> u64 {
        self.calls
    }
}
