//! Ownership of rows that may be away from the shard of their slot: what records and checkpoints
//! keep of it (rules L2, L4 and L12 of docs/rules/leap.md).

use alloc::vec::Vec;
use base::{Key, ShardId, Ts, TxnId};
use serde::{Deserialize, Serialize};
use store::Formula;

/// Number of a grant of ownership, drawn by the home of the row. It grows with every grant of a
/// home, also over restarts, because the incarnation comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Otag {
    /// Incarnation of the home's node; 0: never granted, the row has always been at home.
    pub incarnation: u32,
    /// Number of the grant in that incarnation, from 1.
    pub grant: u64,
}

/// How a shard holds a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Holding {
    /// The shard is the owner.
    Owned,
    /// The shard was the owner, has given the row to this shard, and keeps a backup.
    Released(ShardId),
}

/// A row that a shard owns under a grant, or has released under one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Held {
    /// Key of the row, present or absent.
    pub key: Key,
    /// The grant by which the row came or left.
    pub otag: Otag,
    /// Owned or released.
    pub holding: Holding,
}

/// A row that is away from its home.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Away {
    /// Key of the row.
    pub key: Key,
    /// Owner of the row.
    pub owner: ShardId,
    /// The grant by which the row got there.
    pub otag: Otag,
}

/// A formula of a transaction that is pending at the owner of its row.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Shipment {
    /// Owner of the row until the formula is applied.
    pub owner: ShardId,
    /// Key of the row.
    pub key: Key,
    /// The formula itself.
    pub formula: Formula,
}

/// A committed transaction with formulas that some owner may not have applied durably.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Shipped {
    /// The transaction.
    pub txn: TxnId,
    /// Commit timestamp of the formulas.
    pub commit_ts: Ts,
    /// The formulas, each with the owner of its row.
    pub formulas: Vec<Shipment>,
}

/// What a checkpoint of a shard keeps about ownership.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Ownership {
    /// Rows that the shard owns or has released. Rows of its own slots are included until their
    /// transfer is complete.
    pub held: Vec<Held>,
    /// The owner table: rows of the shard's slots that are elsewhere, in the order of their keys.
    pub away: Vec<Away>,
    /// Grants that were not complete, and older ones under which a row may be claimed; in order.
    pub open: Vec<Otag>,
    /// Number of the next grant: all older ones that `open` does not list are over.
    pub next: Otag,
    /// Formulas of the shard's transactions that are owed to owners. They have their own blocks in
    /// a checkpoint file.
    #[serde(skip)]
    pub shipped: Vec<Shipped>,
}

impl Ownership {
    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        *self == Ownership::default()
    }

    /// Number of rows in the tables.
    pub fn rows(&self) -> usize {
        self.held.len() + self.away.len()
    }

    /// Adds the next piece of a checkpoint behind those read before.
    pub fn append(&mut self, piece: Ownership) {
        let Ownership {
            held,
            away,
            open,
            next,
            shipped,
        } = piece;
        self.held.extend(held);
        self.away.extend(away);
        if !open.is_empty() {
            self.open.extend(open);
            self.open.sort();
            self.open.dedup();
        }
        self.next = self.next.max(next);
        self.shipped.extend(shipped);
    }

    /// Whether a claim to own or back up `key` under `otag` counts at this home. `false`: a later
    /// grant was complete when the checkpoint began.
    pub fn admits(&self, key: &Key, otag: Otag) -> bool {
        otag >= self.next
            || self.open.binary_search(&otag).is_ok()
            || self
                .away
                .binary_search_by(|away| away.key.cmp(key))
                .is_ok_and(|at| {
                    let away = &self.away[at];
                    away.otag == otag
                })
    }
}

/// A version with its bytes as one string.
pub(crate) mod version {
    use alloc::vec::Vec;
    use base::Ts;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize)]
    struct Borrowed<'a>(Ts, #[serde(with = "store::bytes")] &'a [u8]);
    #[derive(Deserialize)]
    struct Owned(Ts, #[serde(with = "store::bytes")] Vec<u8>);

    pub(crate) fn serialize<S: Serializer>(
        version: &Option<(Ts, Vec<u8>)>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let borrowed = version.as_ref().map(|(ts, row)| Borrowed(*ts, row));
        borrowed.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<(Ts, Vec<u8>)>, D::Error> {
        let owned = Option::<Owned>::deserialize(deserializer)?;
        Ok(owned.map(|Owned(ts, row)| (ts, row)))
    }
}
