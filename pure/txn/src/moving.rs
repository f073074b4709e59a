//! What a protocol whose rows move can tell of them: for SHOW OWNERSHIP and SHOW HOTTEST, for the
//! change of a database to another protocol, and for those who look at all rows of a shard.

use alloc::vec::Vec;
use base::{IndexId, Key, ShardId, Time};

macro_rules! moves {
    (
        sizes { $($(#[$size_doc:meta])* $size:ident,)* }
        counts { $($(#[$count_doc:meta])* $count:ident,)* }
    ) => {
        /// What one shard knows about rows that move: how things are now, and counts that grow
        /// since the start of the node.
        #[derive(Clone, PartialEq, Eq, Debug, Default)]
        pub struct Moves {
            $($(#[$size_doc])* pub $size: u64,)*
            $($(#[$count_doc])* pub $count: u64,)*
        }

        impl Moves {
            /// Adds what another shard knows.
            pub fn add(&mut self, other: &Moves) {
                $(self.$size += other.$size;)*
                $(self.$count += other.$count;)*
            }

            /// What has been counted since `before`, and how things are now.
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

/// A row that moves much.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HotRow {
    /// Which.
    pub key: Key,
    /// Where it is now; `None`: under way.
    pub owner: Option<ShardId>,
    /// Moves since it left home.
    pub moves: u32,
}

/// A row of this home that is elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tracked {
    /// Which.
    pub key: Key,
    /// The shard that has it until the move that is under way, if there is one, has ended; `None`:
    /// this home.
    pub owner: Option<ShardId>,
    /// It is under way.
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
    /// Rows of other homes that this shard owns for certain.
    fn owned(&self) -> Vec<Key>;
    /// Rows of this home that are elsewhere, in the order of their keys; none while the shard does
    /// not know yet.
    fn tracked(&self) -> Vec<Tracked>;
    /// Rows of this home that are on their way, to whom, and to which life of that shard's node.
    fn under_way(&self) -> Vec<(Key, ShardId, u32)>;
    /// Whether this shard has a row of another home: as its owner, perhaps, or as the backup.
    fn has(&self, key: &Key) -> bool;
    /// Whether this shard owns the row now.
    fn owns(&self, key: &Key) -> bool;
    /// Rows that are in the store here as copies of what another shard owns.
    fn copied(&self) -> Vec<Key>;
    /// Rows of this home that are elsewhere or lent, at most `count`. An exclusive lock on each of
    /// them, taken here, brings them back.
    fn strayed(&self, index: IndexId, count: usize) -> Vec<Key>;
}
