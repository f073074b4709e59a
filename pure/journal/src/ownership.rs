//! Who owns rows that may live away from the shard of their slot: what records and checkpoints say
//! of it (rules L2, L4 and L12 of docs/rules/leap.md).

use alloc::vec::Vec;
use base::{Key, ShardId, Ts, TxnId};
use serde::{Deserialize, Serialize};
use store::Formula;

/// Number of a grant of ownership, drawn by the home of the row. Grows with every grant of a home,
/// also over its restarts, because its life comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Otag {
    /// Incarnation of the home's node; 0: never granted, the row is at home since the beginning.
    pub incarnation: u32,
    /// Counts the grants of this life, from 1.
    pub grant: u64,
}

/// How a shard holds a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Holding {
    /// It is the owner.
    Owned,
    /// It was the owner and has given the row to this shard; it keeps a backup.
    Released(ShardId),
}

/// A row that a shard owns under a grant, or has released under one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Held {
    /// The row, present or absent.
    pub key: Key,
    /// The grant by which it came or goes.
    pub otag: Otag,
    /// Which of both.
    pub holding: Holding,
}

/// A row that is away from its home.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Away {
    /// The row.
    pub key: Key,
    /// Who owns it.
    pub owner: ShardId,
    /// The grant by which it got there.
    pub otag: Otag,
}

/// A formula that its transaction has pending at the owner of a row.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Shipment {
    /// Who owns the row until the formula is applied.
    pub owner: ShardId,
    /// The row.
    pub key: Key,
    /// What is added to it.
    pub formula: Formula,
}

/// A committed transaction with formulas that not every owner is known to have applied durably.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Shipped {
    /// The transaction.
    pub txn: TxnId,
    /// Version that they make.
    pub commit_ts: Ts,
    /// The formulas.
    pub formulas: Vec<Shipment>,
}

/// What a checkpoint of a shard keeps about ownership.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Ownership {
    /// Rows that it owns or has released, those of its own slots included as long as the transfer
    /// is not complete.
    pub held: Vec<Held>,
    /// The owner table: rows of its slots that are elsewhere, in the order of their keys.
    pub away: Vec<Away>,
    /// Grants that were not complete, and older ones under which a row may be claimed; in order.
    pub open: Vec<Otag>,
    /// The next grant would have got this number: everything older that is not listed is over.
    pub next: Otag,
    /// Formulas of its transactions that are owed to owners. They have blocks of their own in a
    /// checkpoint file.
    #[serde(skip)]
    pub shipped: Vec<Shipped>,
}

impl Ownership {
    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        *self == Ownership::default()
    }

    /// How many rows it tells of.
    pub fn rows(&self) -> usize {
        self.held.len() + self.away.len()
    }

    /// Puts the next piece of a checkpoint behind what has been read of it.
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

    /// Whether a claim under `otag` to own or back up `key` may still mean something to this home.
    /// False: a later grant was complete when the checkpoint began.
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
