//! What adapters of stores of groups share: what an open transaction has read, and what it will
//! write. Writes wait at the client until the commit.
//!
//! An adapter is a [`Backend`]. [`Buffered`] makes a store of byte keys of it: it shows a
//! transaction its own writes, reads groups that are written whole, and goes through the pages of
//! ranges over groups. Several servers are put together by [`crate::spread`].

use entity::kv::TransactionalKv;
use entity::kv::{self, GroupOrder, GroupRange, KvAbilities, Place, Placed, Record};
use entity::{Failure, Outcome, Stamp};
use links::link::LinkError;
use std::collections::BTreeMap;

/// What is different from store to store, at one server. Futures are those of one client on its
/// thread.
pub trait Backend {
    /// What a transaction has at its server.
    type Txn;

    /// What it can do.
    fn abilities(&self) -> KvAbilities;

    /// Whether a group that is written must have been read: it is written as a whole, or compared.
    fn reads_what_it_writes(&self) -> bool;

    /// Begins a transaction, which may cost nothing.
    ///
    /// # Errors
    /// `Lost`, `Refused`.
    fn open(&mut self) -> impl Future<Output = Result<Self::Txn, Failure>>;

    /// Reads a record that the transaction does not know, or all of its group.
    ///
    /// # Errors
    /// `Lost`, `Conflict`, `Refused`.
    fn fetch(
        &mut self,
        txn: &mut Self::Txn,
        groups: &mut Groups,
        place: Place<'_>,
    ) -> impl Future<Output = Result<(), Failure>>;

    /// Reads the records of a group from `from` and before `to`, or all of it.
    ///
    /// # Errors
    /// `Lost`, `Conflict`, `Refused`.
    fn fetch_part(
        &mut self,
        txn: &mut Self::Txn,
        groups: &mut Groups,
        from: Place<'_>,
        to: &[u8],
    ) -> impl Future<Output = Result<(), Failure>>;

    /// Ends a transaction that has written nothing.
    ///
    /// # Errors
    /// `Lost`, `Conflict`, `Refused`.
    fn end_reads(&mut self, txn: Self::Txn) -> impl Future<Output = Result<(), Failure>>;

    /// Commits what is to be written, with the stamp.
    ///
    /// # Errors
    /// `Conflict`, `Lost`, `Refused`: nothing has happened. `Unknown`: the answer was lost.
    fn commit(
        &mut self,
        txn: Self::Txn,
        groups: Groups,
        stamp: Option<Stamp>,
    ) -> impl Future<Output = Result<(), Failure>>;

    /// Ends a transaction without effect.
    ///
    /// # Errors
    /// `Lost`.
    fn abort(&mut self, txn: Self::Txn) -> impl Future<Output = Result<(), Failure>>;

    /// Whether the server has the stamp; if not, the commit cannot happen from now on.
    ///
    /// # Errors
    /// `Lost`, `Conflict`, `Refused`.
    fn outcome(&mut self, stamp: Stamp) -> impl Future<Output = Result<Outcome, Failure>>;

    /// What a range over groups shows.
    fn group_order(&self) -> GroupOrder;

    /// Reads a page of a range over groups. Where the next one begins; `None`: there is none.
    /// `as_of` is for the adapter, and 0 at the first page.
    ///
    /// # Errors
    /// `Lost`, `Conflict`, `Refused`.
    fn page(
        &mut self,
        page: Page<'_>,
        as_of: &mut i64,
        found: &mut Vec<Placed>,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, Failure>>;

    /// Requests that travelled and came back.
    fn round_trips(&self) -> u64;
}

/// A page of a range over groups.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The range.
    pub range: GroupRange<'a>,
    /// Where the page begins.
    pub from: &'a [u8],
    /// What the keys of the wanted records begin with.
    pub prefix: &'a [u8],
    /// Records that are wanted at most, with those of the pages before.
    pub most: usize,
}

impl Page<'_> {
    /// How many groups or keys the page asks for, of at most `max`.
    pub(crate) fn count(&self, found: &[Placed], max: usize) -> usize {
        max.min(self.most - found.len())
    }

    /// Appends the records of a group that are wanted.
    pub(crate) fn take(
        &self,
        group: &[u8],
        records: impl IntoIterator<Item = Record>,
        found: &mut Vec<Placed>,
    ) {
        let records = records.into_iter();
        let wanted = records.filter(|(key, _)| key.starts_with(self.prefix));
        let wanted = wanted.take(self.most.saturating_sub(found.len()));
        found.extend(wanted.map(|(key, value)| (group.to_vec(), key, value)));
    }
}

/// A store of byte keys made of a [`Backend`].
#[derive(Debug)]
pub struct Buffered<B> {
    pub(crate) backend: B,
}

/// An open transaction of [`Buffered`].
#[derive(Debug)]
pub struct BufferedTxn<T> {
    groups: Groups,
    txn: T,
}

impl<B: Backend> Buffered<B> {
    /// Reads the groups that are to be written, where the store must know them.
    async fn read_unread(&mut self, txn: &mut BufferedTxn<B::Txn>) -> Result<(), Failure> {
        if self.backend.reads_what_it_writes() {
            for group in txn.groups.unread() {
                let place = Place {
                    group: &group,
                    key: b"",
                };
                let BufferedTxn { groups, txn } = txn;
                self.backend.fetch(txn, groups, place).await?;
            }
        }
        Ok(())
    }
}

impl<B: Backend> TransactionalKv for Buffered<B> {
    type Txn = BufferedTxn<B::Txn>;

    fn abilities(&self) -> KvAbilities {
        self.backend.abilities()
    }

    async fn begin(&mut self, _: kv::Groups<'_>) -> Result<Self::Txn, Failure> {
        Ok(BufferedTxn {
            txn: self.backend.open().await?,
            groups: Groups::default(),
        })
    }

    async fn get(&mut self, txn: &mut Self::Txn, place: Place<'_>) -> Result<Found, Failure> {
        if let Some(found) = txn.groups.at(place.group).get(place.key) {
            return Ok(found);
        }
        let BufferedTxn { groups, txn } = txn;
        self.backend.fetch(txn, groups, place).await?;
        Ok(groups.at(place.group).get(place.key).flatten())
    }

    async fn scan(
        &mut self,
        txn: &mut Self::Txn,
        from: Place<'_>,
        to: &[u8],
        limit: usize,
        found: &mut Vec<Record>,
    ) -> Result<(), Failure> {
        if from.key >= to {
            return Ok(());
        }
        let BufferedTxn { groups, txn } = txn;
        if groups.at(from.group).loaded.is_none() {
            // Own writes may take the place of some, so there is no limit yet.
            self.backend.fetch_part(txn, groups, from, to).await?;
        }
        groups.at(from.group).scan(from.key, to, limit, found);
        Ok(())
    }

    async fn put(
        &mut self,
        txn: &mut Self::Txn,
        place: Place<'_>,
        value: &[u8],
    ) -> Result<(), Failure> {
        let writes = &mut txn.groups.at(place.group).writes;
        writes.insert(place.key.to_vec(), Some(value.to_vec()));
        Ok(())
    }

    async fn delete(&mut self, txn: &mut Self::Txn, place: Place<'_>) -> Result<(), Failure> {
        let writes = &mut txn.groups.at(place.group).writes;
        writes.insert(place.key.to_vec(), None);
        Ok(())
    }

    async fn commit(&mut self, mut txn: Self::Txn, stamp: Option<Stamp>) -> Result<(), Failure> {
        if txn.groups.is_unchanged() {
            return self.backend.end_reads(txn.txn).await;
        }
        if let Err(failure) = self.read_unread(&mut txn).await {
            // Nothing was written; that it is left behind is all.
            let _ = self.backend.abort(txn.txn).await;
            return Err(failure);
        }
        self.backend.commit(txn.txn, txn.groups, stamp).await
    }

    async fn abort(&mut self, txn: Self::Txn) -> Result<(), Failure> {
        self.backend.abort(txn.txn).await
    }

    async fn outcome(&mut self, stamp: Stamp) -> Result<Outcome, Failure> {
        self.backend.outcome(stamp).await
    }

    fn group_order(&self) -> Option<GroupOrder> {
        Some(self.backend.group_order())
    }

    async fn scan_groups(
        &mut self,
        range: GroupRange<'_>,
        found: &mut Vec<Placed>,
    ) -> Result<(), Failure> {
        let mut as_of = 0;
        each_page(range, found, async |page, found| {
            self.backend.page(page, &mut as_of, found).await
        })
        .await
    }

    fn round_trips(&self) -> u64 {
        self.backend.round_trips()
    }
}

/// Goes through the pages of a range over groups. `read` reads one, and says where the next begins;
/// `None`: there is none.
pub(crate) async fn each_page(
    range: GroupRange<'_>,
    found: &mut Vec<Placed>,
    mut read: impl AsyncFnMut(Page<'_>, &mut Vec<Placed>) -> Result<Option<Vec<u8>>, Failure>,
) -> Result<(), Failure> {
    let (prefix, most) = (range.prefix(), found.len().saturating_add(range.limit));
    let mut from = range.from.to_vec();
    while found.len() < most {
        let page = Page {
            range,
            from: &from,
            prefix: &prefix,
            most,
        };
        match read(page, found).await? {
            Some(next) => from = next,
            None => break,
        }
    }
    Ok(())
}

/// Where a page begins that follows one whose last group or key is `last`, and which was asked for
/// `count` of them and has `got`; `None`: nothing follows.
pub(crate) fn after(last: Option<&[u8]>, got: usize, count: usize) -> Option<Vec<u8>> {
    let last = last.filter(|_| got == count)?;
    // The next key, if there is one.
    Some([last, &[0]].concat())
}

/// A value; `None`: there is none.
pub(crate) type Found = Option<Vec<u8>>;
/// Records by their keys.
type Records<V> = BTreeMap<Vec<u8>, V>;

/// What a transaction knows of one group.
#[derive(Debug, Default)]
pub struct Group {
    /// All of its records, once they have been read together.
    pub(crate) loaded: Option<Records<Vec<u8>>>,
    /// Records that were read one by one.
    pub(crate) kept: Records<Found>,
    /// What is to be written; `None`: deleted.
    pub(crate) writes: Records<Found>,
    /// The version of the group that was read; empty: there was none.
    pub(crate) version: Vec<u8>,
}

impl Group {
    /// What the transaction knows of a record; `None`: it has not read it.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Found> {
        if let Some(known) = self.writes.get(key).or_else(|| self.kept.get(key)) {
            return Some(known.clone());
        }
        let loaded = self.loaded.as_ref()?;
        Some(loaded.get(key).cloned())
    }

    /// All records of the group as they will be; it must have been read together.
    pub(crate) fn whole(&self) -> Records<&[u8]> {
        let loaded = self.loaded.iter().flatten();
        let mut records: Records<&[u8]> = loaded
            .map(|(key, value)| (key.clone(), &value[..]))
            .collect();
        for (key, value) in &self.writes {
            match value {
                Some(value) => records.insert(key.clone(), value),
                None => records.remove(key),
            };
        }
        records
    }

    /// Whether the record has been read, or all of the group.
    pub(crate) fn has_read(&self, key: &[u8]) -> bool {
        self.loaded.is_some() || self.kept.contains_key(key)
    }

    /// Records that are written.
    pub(crate) fn put(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.writes
            .iter()
            .filter_map(|(key, value)| Some((key.as_slice(), value.as_deref()?)))
    }

    /// Keys of records that are deleted.
    pub(crate) fn deleted(&self) -> impl Iterator<Item = &[u8]> {
        let gone = self.writes.iter().filter(|(_, value)| value.is_none());
        gone.map(|(key, _)| key.as_slice())
    }

    /// Appends the records from `from` and before `to` as the transaction sees them, at most
    /// `limit`. All of that part must have been read.
    pub(crate) fn scan(&self, from: &[u8], to: &[u8], limit: usize, found: &mut Vec<Record>) {
        if from >= to {
            return;
        }
        let mut all: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
        if let Some(loaded) = &self.loaded {
            let part = loaded.range::<[u8], _>((bound(from), before(to)));
            all.extend(part.map(|(key, value)| (key.as_slice(), value.as_slice())));
        }
        for map in [&self.kept, &self.writes] {
            for (key, value) in map.range::<[u8], _>((bound(from), before(to))) {
                match value {
                    Some(value) => all.insert(key, value),
                    None => all.remove(key.as_slice()),
                };
            }
        }
        let all = all.into_iter().take(limit);
        found.extend(all.map(|(key, value)| (key.to_vec(), value.to_vec())));
    }
}

fn bound(from: &[u8]) -> std::ops::Bound<&[u8]> {
    std::ops::Bound::Included(from)
}

fn before(to: &[u8]) -> std::ops::Bound<&[u8]> {
    std::ops::Bound::Excluded(to)
}

/// What a transaction knows of all groups that it touches.
#[derive(Debug, Default)]
pub struct Groups(BTreeMap<Vec<u8>, Group>);

impl Groups {
    /// A group, which is known from now on.
    pub(crate) fn at(&mut self, group: &[u8]) -> &mut Group {
        if !self.0.contains_key(group) {
            self.0.insert(group.to_vec(), Group::default());
        }
        self.0.get_mut(group).expect("it has just been put there")
    }

    /// All of them with their keys, in the order of these.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&[u8], &Group)> {
        self.0.iter().map(|(key, group)| (key.as_slice(), group))
    }

    /// The keys of groups that are to be written though they have not been read together.
    pub(crate) fn unread(&self) -> Vec<Vec<u8>> {
        let groups = self.all();
        let unread = groups.filter(|(_, held)| held.loaded.is_none() && !held.writes.is_empty());
        unread.map(|(group, _)| group.to_vec()).collect()
    }

    /// Whether nothing is to be written.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.0.values().all(|group| group.writes.is_empty())
    }
}

/// A group as one value: each key and each value behind its length (4 bytes), ordered by key.
pub(crate) fn packed(held: &Group) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (key, value) in held.whole() {
        for part in [&key[..], value] {
            bytes.extend_from_slice(&(part.len() as u32).to_be_bytes());
            bytes.extend_from_slice(part);
        }
    }
    bytes
}

/// The records of a group that is one value.
///
/// # Errors
/// `Refused`: another program wrote it.
pub(crate) fn unpacked(mut bytes: &[u8]) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, Failure> {
    let mut part = || {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let length = u32::from_be_bytes(*length) as usize;
        let (part, rest) = rest.split_at_checked(length)?;
        bytes = rest;
        Some(part.to_vec())
    };
    let mut records = BTreeMap::new();
    let torn = || Failure::Refused(String::from("a group that is torn"));
    while let Some(key) = part() {
        records.insert(key, part().ok_or_else(torn)?);
    }
    match bytes.is_empty() {
        true => Ok(records),
        false => Err(torn()),
    }
}

/// The key of a client's stamp, where it has one of its own.
pub(crate) fn stamp_key(client: u64) -> Vec<u8> {
    format!("s{client}").into_bytes()
}

/// The connection is gone, and nothing has happened.
pub(crate) fn lost(error: &LinkError) -> Failure {
    Failure::Lost(error.to_string())
}

/// The connection is gone, and nobody knows what has happened.
pub(crate) fn unknown(error: &LinkError) -> Failure {
    Failure::Unknown(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_sees_its_own_writes_in_a_scan() {
        let mut group = Group {
            loaded: Some(BTreeMap::from([
                (b"a".to_vec(), b"1".to_vec()),
                (b"b".to_vec(), b"2".to_vec()),
                (b"c".to_vec(), b"3".to_vec()),
            ])),
            ..Group::default()
        };
        group.writes.insert(b"b".to_vec(), None);
        group.writes.insert(b"aa".to_vec(), Some(b"4".to_vec()));
        let scan = |from: &[u8], to: &[u8], limit| {
            let mut found = Vec::new();
            group.scan(from, to, limit, &mut found);
            let keys = found
                .into_iter()
                .map(|(key, _)| String::from_utf8(key).unwrap());
            keys.collect::<Vec<String>>().join(" ")
        };
        assert_eq!(scan(b"", b"z", 9), "a aa c");
        assert_eq!(scan(b"", b"z", 2), "a aa");
        assert_eq!(scan(b"aa", b"c", 9), "aa");
        assert_eq!(scan(b"z", b"a", 9), "");
        assert_eq!((group.get(b"b"), group.get(b"d")), (Some(None), Some(None)));
    }

    #[test]
    fn a_packed_group_is_read_as_it_was_written() {
        let mut held = Group::default();
        held.writes.insert(b"a".to_vec(), Some(b"one".to_vec()));
        held.writes.insert(b"b".to_vec(), Some(Vec::new()));
        held.writes.insert(b"c".to_vec(), None);
        let bytes = packed(&held);
        let records = unpacked(&bytes).unwrap();
        assert_eq!(records.len(), 2);
        assert_eq!(records[&b"a"[..]], b"one");
        for end in 1..bytes.len() {
            let whole = unpacked(&bytes[..end]).is_ok();
            assert_eq!(whole, end == 12, "{end}");
        }
    }
}
