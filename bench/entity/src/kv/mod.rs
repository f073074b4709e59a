//! The transactional key-value layer: what a key-value store must do, and entities on top of it.
//!
//! | part | content |
//! |---|---|
//! | [`TransactionalKv`] | what the adapter of a key-value store implements |
//! | [`Layer`] | entities on it: keys, indexes, generated ids |
//! | [`native`] | records that are entities, for stores that have columns of their own |
//! | [`CompareAndSet`], [`Packed`] | the same for a store that can only compare and set one cell |
//! | [`Head`], [`Commits`] | version and last clients of a group that is changed as a whole |

mod head;
pub(crate) mod key;
mod layer;
pub mod native;
mod packed;
mod record;

pub use head::{Commits, Head, STAMPS_MAX, fenced};
pub use layer::{Layer, Settings};
pub use packed::{CompareAndSet, Packed, PackedTxn};

use crate::db::{Failure, Outcome, Stamp};
use crate::model::EntityType;
use alloc::vec::Vec;
use core::future::Future;

/// Where a record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The key of its group.
    pub group: &'a [u8],
    /// Its key in the group. A store that has one space of keys appends it to the group: no group's
    /// key is the beginning of another group's.
    pub key: &'a [u8],
}

/// Which groups a transaction touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Groups<'a> {
    /// One.
    One(&'a [u8]),
    /// Several; only where [`KvAbilities::several_groups`] holds.
    Several,
}

/// What a key-value store can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvAbilities {
    /// Transactions on several groups.
    pub several_groups: bool,
    /// [`TransactionalKv::scan`] works. Else indexes are list objects, and ranges are refused.
    pub scans: bool,
    /// What was acknowledged survives a crash of the server.
    pub durable: bool,
    /// [`TransactionalKv::outcome`] resolves lost answers.
    pub resolves_outcomes: bool,
}

/// A record: its key within the group, and its value.
pub type Record = (Vec<u8>, Vec<u8>);

/// A record with its group: the group's key, the record's key within it, and the value.
pub type Placed = (Vec<u8>, Vec<u8>, Vec<u8>);

/// What a range over several groups shows, in a store that keeps groups in the order of their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupOrder {
    /// The records of each group are of one state; those of different groups may be of several.
    Each,
    /// All of it is of one state.
    Snapshot,
}

/// The entities of one type in the groups whose keys are at least `from` and below `to`.
#[derive(Clone, Copy, Debug)]
pub struct GroupRange<'a> {
    kind: &'a EntityType,
    /// The first key of a group.
    pub from: &'a [u8],
    /// The key below which those of the groups must be.
    pub to: &'a [u8],
    /// Most records that are returned; at least 1.
    pub limit: usize,
}

impl GroupRange<'_> {
    /// Splits the key of a group with that of a record behind it, where a store has them in one;
    /// `None`: it is no record of such a group.
    pub fn split<'b>(&self, place: &'b [u8]) -> Option<(&'b [u8], &'b [u8])> {
        let at = key::group_length(self.kind, place)?;
        place.split_at_checked(at)
    }

    /// The beginning of the keys of the records that are wanted.
    pub fn prefix(&self) -> Vec<u8> {
        let mut prefix = Vec::new();
        key::entity(self.kind, &[], &mut prefix);
        prefix
    }

    /// The smallest key behind all that begin so.
    pub fn prefix_end(&self) -> Vec<u8> {
        let mut end = Vec::new();
        key::after(&self.prefix(), &mut end);
        end
    }
}

/// One client's connection to a store of byte keys and values with serializable transactions.
///
/// At most two transactions are open at a time: one of the workload, and within it one on an index
/// or a counter that is outside of its group. They never touch the same group.
///
/// Reads of a transaction are of one state of its groups, its own writes included; where a store
/// cannot keep to that it answers `Conflict` instead. What was read or written before is read
/// again without a round trip, if the adapter can: the layer reads a row before it writes it.
pub trait TransactionalKv {
    /// An open transaction.
    type Txn;

    /// What the store can do.
    fn abilities(&self) -> KvAbilities;

    /// Begins a transaction. Opens the connection again if it was lost.
    ///
    /// # Errors
    /// `Lost`, `Conflict`, `Refused`.
    fn begin(&mut self, groups: Groups<'_>) -> impl Future<Output = Result<Self::Txn, Failure>>;

    /// The value of a record.
    ///
    /// # Errors
    /// `Lost`, `Conflict`, `Refused`.
    fn get(
        &mut self,
        txn: &mut Self::Txn,
        place: Place<'_>,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, Failure>>;

    /// Appends the records of a group whose keys are at least `from` and below `to` to `found`, in
    /// the order of their keys, at most `limit` of them. No other transaction may add one to the
    /// part that was read before this one commits, or this one ends in a conflict.
    ///
    /// # Errors
    /// `Lost`, `Conflict`; `Refused` without [`KvAbilities::scans`].
    fn scan(
        &mut self,
        txn: &mut Self::Txn,
        from: Place<'_>,
        to: &[u8],
        limit: usize,
        found: &mut Vec<Record>,
    ) -> impl Future<Output = Result<(), Failure>>;

    /// Sets the value of a record.
    ///
    /// # Errors
    /// `Lost`, `Conflict`, `Refused`.
    fn put(
        &mut self,
        txn: &mut Self::Txn,
        place: Place<'_>,
        value: &[u8],
    ) -> impl Future<Output = Result<(), Failure>>;

    /// Removes a record. Nothing happens if it is not there.
    ///
    /// # Errors
    /// `Lost`, `Conflict`, `Refused`.
    fn delete(
        &mut self,
        txn: &mut Self::Txn,
        place: Place<'_>,
    ) -> impl Future<Output = Result<(), Failure>>;

    /// Commits. With a stamp the store keeps it, so that `outcome` can tell; a transaction without
    /// one is repeated by the layer if its answer is lost.
    ///
    /// # Errors
    /// `Conflict`, `Lost`, `Refused`: nothing has happened. `Unknown`: the answer was lost.
    fn commit(
        &mut self,
        txn: Self::Txn,
        stamp: Option<Stamp>,
    ) -> impl Future<Output = Result<(), Failure>>;

    /// Ends a transaction without effect.
    ///
    /// # Errors
    /// `Lost`.
    fn abort(&mut self, txn: Self::Txn) -> impl Future<Output = Result<(), Failure>>;

    /// As [`crate::EntityDb::outcome`].
    ///
    /// # Errors
    /// `Lost` and `Conflict`: ask again.
    fn outcome(&mut self, stamp: Stamp) -> impl Future<Output = Result<Outcome, Failure>>;

    /// What [`TransactionalKv::scan_groups`] shows; `None`: the store has no order of groups.
    fn group_order(&self) -> Option<GroupOrder> {
        None
    }

    /// Appends records of several groups to `found`, in the order of their groups and keys: those
    /// whose keys begin with [`GroupRange::prefix`]. It belongs to no transaction.
    ///
    /// # Errors
    /// `Lost`, `Conflict`; `Refused` without [`TransactionalKv::group_order`].
    fn scan_groups(
        &mut self,
        range: GroupRange<'_>,
        found: &mut Vec<Placed>,
    ) -> impl Future<Output = Result<(), Failure>> {
        let _ = (range, found);
        core::future::ready(Err(Failure::Refused(
            "the store has no order of groups".into(),
        )))
    }

    /// Requests that travelled to the store and back so far; 0 where nobody counts.
    fn round_trips(&self) -> u64 {
        0
    }
}
