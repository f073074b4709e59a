//! What a protocol tells of rows that move: for SHOW OWNERSHIP and SHOW HOTTEST, for a change of
//! protocol, and for checkers that read all rows of a shard.

use alloc::vec::Vec;
use base::{IndexId, Key, ShardId, Time};

macro_rules! moves {
    (
        sizes { $($(#[$size_doc:meta])* $size:ident,)* }
        counts { $($(#[$count_doc:meta])* $count:ident,)* }
    ) => {
        /// What one shard knows of rows that move: present numbers, and counts since the node's
        /// start.
        #[derive(Clone, PartialEq, Eq, Debug, Default)]
        pub struct Moves {
            $($(#[$size_doc])* pub $size: u64,)*
            $($(#[$count_doc])* pub $count: u64,)*
        }

        impl Moves {
            /// Adds the numbers of another shard.
            pub fn add(&mut self, other: &Moves) {
                $(self.$size += other.$size;)*
                $(self.$count += other.$count;)*
            }

            /// Counts since `before`, and present numbers.
            #[must_use]
            pub fn since(&self, before: &Moves) -> Moves {
                Moves {
                    $($size: self.$size,)*
                    $($count: self.$count - before.$count,)*
                }
            }
        }
    };
}

moves! {
    sizes {
        /// Rows of this home that are elsewhere now.
        rows_away,
        /// Rows of other homes that this shard owns now.
        rows_here,
        /// Backups that wait for an acknowledgement.
        backups,
        /// Bytes of the owner table, about.
        table_bytes,
        /// Changes of the owner table in this life of the node.
        table_changes,
        /// Rows of this home that others have copies of now.
        rows_lent,
        /// Copies that this shard has now.
        copies,
    }
    counts {
        /// Rows that have arrived.
        moved_in,
        /// Rows that have left.
        moved_out,
        /// Requests that met an older transaction at the owner.
        refused,
        /// Arrivals where the requester is the home.
        rp_o,
        /// Arrivals where the home was the owner.
        r_po,
        /// Arrivals with requester, home and owner apart.
        r_p_o,
        /// Copies that were given.
        lent,
        /// Copies that have come.
        copied,
        /// Transactions that were entrusted to other shards and ended there.
        entrusted,
        /// Formulas of larger transactions that other shards have held.
        shipped,
    }
}

/// A row that moves often.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HotRow {
    /// Key of the row.
    pub key: Key,
    /// Present owner; `None`: the row is under way.
    pub owner: Option<ShardId>,
    /// Number of moves since the row left its home.
    pub moves: u32,
}

/// A row of this home that is elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tracked {
    /// Key of the row.
    pub key: Key,
    /// Shard that has the row until an open move ends; `None`: this home.
    pub owner: Option<ShardId>,
    /// Whether the row is to move.
    pub leaves: bool,
}

/// The rows of one shard under a protocol that moves them ([`crate::Protocol::moving`]).
pub trait MovingRows {
    /// Counts and sizes of this shard.
    fn moves(&self) -> Moves;
    /// Rows that have arrived and left in the last whole second.
    fn moves_per_second(&self, now: Time) -> (u64, u64);
    /// The rows of this home that have moved most since they left it, at most `count`.
    fn hottest(&self, count: usize) -> Vec<HotRow>;
    /// Rows of other homes of which this shard is confirmed as the owner.
    fn owned(&self) -> Vec<Key>;
    /// Rows of this home that are elsewhere, in the order of their keys; none before the shard
    /// knows its owner table.
    fn tracked(&self) -> Vec<Tracked>;
    /// Rows of this home that are on their way: key, receiver, and life of the receiver's node.
    fn under_way(&self) -> Vec<(Key, ShardId, u32)>;
    /// Whether this shard has a row of another home, as owner (confirmed or not) or as backup.
    fn has(&self, key: &Key) -> bool;
    /// Whether this shard owns the row now.
    fn owns(&self, key: &Key) -> bool;
    /// Rows in the store here that are copies of another shard's.
    fn copied(&self) -> Vec<Key>;
    /// Rows of this home that are elsewhere or lent, at most `count`. An exclusive lock on such a
    /// row, taken here, brings the row back.
    fn strayed(&self, index: IndexId, count: usize) -> Vec<Key>;
}
