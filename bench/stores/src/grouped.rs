//! Groups on a store that changes one group at a time, on the condition that nobody has changed it
//! since: what a partition of Cassandra, a row of HBase and a document of MongoDB can do.
//!
//! | form | a group | a transaction reads | what lets it commit |
//! |---|---|---|---|
//! | [`Cells`] | one value with all records | the value | the group has the version that was read |
//! | [`Rows`] | a head, and a value for each record | what it asks for | the same |
//!
//! So the two differ in packing alone. In both the head has the version and the last stamps
//! ([`Head`]), and each change of a group writes the next version.

use crate::kv::{Group, after, each_page};
use entity::kv::{Commits, CompareAndSet, GroupOrder, GroupRange, Groups, Head, KvAbilities};
use entity::kv::{Place, Placed, Record, TransactionalKv, fenced};
use entity::memory::Loss;
use entity::{Failure, Outcome, Stamp};

/// What is read of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Its head alone.
    Head,
    /// A record.
    Record(&'a [u8]),
    /// Records from the one key and before the other.
    Range(&'a [u8], &'a [u8]),
}

/// What a group is to become.
#[derive(Clone, Debug)]
pub struct Change<'a> {
    /// The version that it must have; 0: it was never written.
    pub version: u64,
    /// Its next head, or in [`Cells`] its next value; it begins with the next version.
    pub head: &'a [u8],
    /// Records that are set.
    pub puts: Vec<(&'a [u8], &'a [u8])>,
    /// Keys of records that are deleted.
    pub deletes: Vec<&'a [u8]>,
}

/// A group that was read as a whole: its key, its head, and its records.
pub type Whole = (Vec<u8>, Vec<u8>, Vec<Record>);

/// One client's connection to such a store.
pub trait Grouped {
    /// Whether a read finds all records of the group, whatever part is asked for.
    fn reads_whole(&self) -> bool {
        false
    }

    /// Whether [`Grouped::range`] works.
    fn has_order(&self) -> bool {
        false
    }

    /// The groups whose keys are from `from` and before `to`, in this order, at most `limit`.
    ///
    /// # Errors
    /// `Lost`, `Conflict`; `Refused` without [`Grouped::has_order`].
    fn range(
        &mut self,
        from: &[u8],
        to: &[u8],
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Whole>, Failure>> {
        let _ = (from, to, limit);
        let words = "the store has no order of groups";
        std::future::ready(Err(Failure::Refused(String::from(words))))
    }

    /// Reads a part of a group: appends its records, and returns the head of the same moment; no
    /// bytes: the group was never written. `known` is the head that the caller has read before:
    /// if that is no more the head, the records need not be those of the head that is returned.
    ///
    /// # Errors
    /// `Lost`, `Conflict`, `Refused`.
    fn read(
        &mut self,
        group: &[u8],
        part: Part<'_>,
        known: Option<&[u8]>,
        found: &mut Vec<Record>,
    ) -> impl Future<Output = Result<Vec<u8>, Failure>>;

    /// Changes a group in one step, if it has the version; `false`: it has another one.
    ///
    /// # Errors
    /// `Lost`, `Conflict`, `Refused`: nothing has happened. `Unknown`: the answer was lost.
    fn change(
        &mut self,
        group: &[u8],
        change: &Change<'_>,
    ) -> impl Future<Output = Result<bool, Failure>>;

    /// Whether what was acknowledged survives a crash of the server, as the server says.
    fn is_durable(&self) -> bool;

    /// Requests that travelled to the store and back so far.
    fn round_trips(&self) -> u64;
}

/// Changes a group; if the next answer is to be lost, it is lost here.
async fn change<G: Grouped>(
    groups: &mut G,
    loss: Option<Loss>,
    group: &[u8],
    change: &Change<'_>,
) -> Result<bool, Failure> {
    if loss == Some(Loss::OfRequest) {
        return Err(Failure::Unknown(String::from("the request was lost")));
    }
    let is_done = groups.change(group, change).await?;
    match loss {
        None => Ok(is_done),
        Some(_) => Err(Failure::Unknown(String::from("the answer was lost"))),
    }
}

/// A group as one value.
#[derive(Debug)]
pub struct Cells<G> {
    groups: G,
    loss: Option<Loss>,
}

impl<G: Grouped> Cells<G> {
    /// The form on a connection.
    pub fn new(groups: G) -> Cells<G> {
        Cells { groups, loss: None }
    }

    /// Lets the next change answer `Unknown`.
    pub fn lose_next(&mut self, loss: Loss) {
        self.loss = Some(loss);
    }
}

impl<G: Grouped> CompareAndSet for Cells<G> {
    async fn read(&mut self, group: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let mut none = Vec::new();
        let read = self.groups.read(group, Part::Head, None, &mut none);
        Ok(Some(read.await?).filter(|cell| !cell.is_empty()))
    }

    async fn set(&mut self, group: &[u8], version: u64, cell: &[u8]) -> Result<bool, Failure> {
        let next = Change {
            version,
            head: cell,
            puts: Vec::new(),
            deletes: Vec::new(),
        };
        let loss = self.loss.take();
        change(&mut self.groups, loss, group, &next).await
    }

    fn has_order(&self) -> bool {
        self.groups.has_order()
    }

    async fn range(
        &mut self,
        from: &[u8],
        to: &[u8],
        limit: usize,
    ) -> Result<Vec<Record>, Failure> {
        let cells = self.groups.range(from, to, limit).await?.into_iter();
        Ok(cells.map(|(group, cell, _)| (group, cell)).collect())
    }

    fn is_durable(&self) -> bool {
        self.groups.is_durable()
    }

    fn round_trips(&self) -> u64 {
        self.groups.round_trips()
    }
}

/// A group as a head and a value for each record.
#[derive(Debug)]
pub struct Rows<G> {
    groups: G,
    loss: Option<Loss>,
    commits: Commits,
}

/// An open transaction of [`Rows`].
#[derive(Debug)]
pub struct RowsTxn {
    group: Vec<u8>,
    /// What all of its reads must have found; `None`: it has read nothing.
    head: Option<Vec<u8>>,
    held: Group,
}

impl<G: Grouped> Rows<G> {
    /// The form on a connection.
    pub fn new(groups: G) -> Rows<G> {
        Rows {
            groups,
            loss: None,
            commits: Commits::default(),
        }
    }

    /// Lets the next commit answer `Unknown`.
    pub fn lose_next(&mut self, loss: Loss) {
        self.loss = Some(loss);
    }

    /// Reads a part, which must be of the same state as what was read before.
    async fn read(&mut self, txn: &mut RowsTxn, part: Part<'_>) -> Result<(), Failure> {
        let mut found = Vec::new();
        let known = txn.head.as_deref();
        let read = self.groups.read(&txn.group, part, known, &mut found);
        let head = read.await?;
        if known.is_some_and(|known| known != head) {
            return Err(Failure::conflict("version"));
        }
        txn.head = Some(head);
        let mut found = found.into_iter();
        match part {
            _ if self.groups.reads_whole() => txn.held.loaded = Some(found.collect()),
            Part::Head => {}
            Part::Record(key) => {
                let value = found.next().map(|(_, value)| value);
                txn.held.kept.insert(key.to_vec(), value);
            }
            Part::Range(..) => {
                let found = found.map(|(key, value)| (key, Some(value)));
                txn.held.kept.extend(found);
            }
        }
        Ok(())
    }
}

/// The head of bytes that a store has sent.
fn head_of(bytes: &[u8]) -> Result<Head<'_>, Failure> {
    let torn = "the head of a group in the store is none: begin with an empty store";
    Head::parse(bytes).ok_or_else(|| Failure::Refused(String::from(torn)))
}

impl<G: Grouped> TransactionalKv for Rows<G> {
    type Txn = RowsTxn;

    fn abilities(&self) -> KvAbilities {
        KvAbilities {
            several_groups: false,
            scans: true,
            durable: self.groups.is_durable(),
            resolves_outcomes: true,
        }
    }

    async fn begin(&mut self, groups: Groups<'_>) -> Result<RowsTxn, Failure> {
        let Groups::One(group) = groups else {
            let words = "the store has no transactions on several groups";
            return Err(Failure::Refused(String::from(words)));
        };
        Ok(RowsTxn {
            group: group.to_vec(),
            head: None,
            held: Group::default(),
        })
    }

    async fn get(
        &mut self,
        txn: &mut RowsTxn,
        place: Place<'_>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        if let Some(found) = txn.held.get(place.key) {
            return Ok(found);
        }
        self.read(txn, Part::Record(place.key)).await?;
        Ok(txn.held.get(place.key).flatten())
    }

    async fn scan(
        &mut self,
        txn: &mut RowsTxn,
        from: Place<'_>,
        to: &[u8],
        limit: usize,
        found: &mut Vec<Record>,
    ) -> Result<(), Failure> {
        if from.key >= to {
            return Ok(());
        }
        if txn.held.loaded.is_none() {
            // Own writes may take the place of some, so there is no limit yet.
            self.read(txn, Part::Range(from.key, to)).await?;
        }
        txn.held.scan(from.key, to, limit, found);
        Ok(())
    }

    async fn put(
        &mut self,
        txn: &mut RowsTxn,
        place: Place<'_>,
        value: &[u8],
    ) -> Result<(), Failure> {
        let writes = &mut txn.held.writes;
        writes.insert(place.key.to_vec(), Some(value.to_vec()));
        Ok(())
    }

    async fn delete(&mut self, txn: &mut RowsTxn, place: Place<'_>) -> Result<(), Failure> {
        txn.held.writes.insert(place.key.to_vec(), None);
        Ok(())
    }

    async fn commit(&mut self, mut txn: RowsTxn, stamp: Option<Stamp>) -> Result<(), Failure> {
        if txn.held.writes.is_empty() {
            return Ok(());
        }
        if txn.head.is_none() {
            self.read(&mut txn, Part::Head).await?;
        }
        let head = head_of(txn.head.as_deref().unwrap_or_default())?;
        let (version, mut next) = (head.version(), Vec::new());
        head.push_next(stamp.unwrap_or_default(), &mut next);
        let wanted = Change {
            version,
            head: &next,
            puts: txn.held.put().collect(),
            deletes: txn.held.deleted().collect(),
        };
        let loss = self.loss.take();
        let changed = change(&mut self.groups, loss, &txn.group, &wanted).await;
        self.commits.settle(changed, (txn.group, version), stamp)
    }

    async fn abort(&mut self, _: RowsTxn) -> Result<(), Failure> {
        Ok(())
    }

    async fn outcome(&mut self, stamp: Stamp) -> Result<Outcome, Failure> {
        let Some((group, version)) = self.commits.lost(stamp) else {
            return Ok(Outcome::Unknown);
        };
        let mut none = Vec::new();
        let read = self.groups.read(&group, Part::Head, None, &mut none);
        let bytes = read.await?;
        let head = head_of(&bytes)?;
        if let Some(outcome) = head.outcome(stamp, version) {
            return Ok(outcome);
        }
        // From here on the lost commit finds another version.
        let mut next = Vec::new();
        head.push_next(Stamp::default(), &mut next);
        let fence = Change {
            version,
            head: &next,
            puts: Vec::new(),
            deletes: Vec::new(),
        };
        fenced(self.groups.change(&group, &fence).await)
    }

    fn group_order(&self) -> Option<GroupOrder> {
        self.groups.has_order().then_some(GroupOrder::Each)
    }

    async fn scan_groups(
        &mut self,
        range: GroupRange<'_>,
        found: &mut Vec<Placed>,
    ) -> Result<(), Failure> {
        each_page(range, found, async |page, found| {
            let count = page.count(found, usize::MAX);
            let groups = self.groups.range(page.from, range.to, count).await?;
            let last = groups.last().map(|(group, ..)| group.as_slice());
            let next = after(last, groups.len(), count);
            for (group, _, records) in groups {
                page.take(&group, records, found);
            }
            Ok(next)
        })
        .await
    }

    fn round_trips(&self) -> u64 {
        self.groups.round_trips()
    }
}

#[cfg(test)]
mod tests;
