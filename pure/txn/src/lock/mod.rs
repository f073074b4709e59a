//! Lock queues with wait-die over rows, key ranges and whole shards.
//!
//! One implementation for every protocol that locks (rules R3 to R7).
//!
//! ```text
//! acquire ──> Granted                      no lock is in the way
//!         ──> Waiting ──> LockEvent        granted, died or timed out later
//!         ──> Died                         an older transaction is in the way
//! ```
//!
//! A waiter is *alone* if its transaction holds no lock anywhere and has no other request. What
//! each waiter may wait for:
//!
//! | waiter | for a holder | for another waiter |
//! |---|---|---|
//! | not alone | only for a younger one, else it dies | only for a younger one that is not alone |
//! | alone | for anyone | for those not alone, and for those alone that came before |
//!
//! Why no deadlock: every member of a cycle is waited for. Only waiters that are alone wait for one
//! that is alone (it holds nothing, and others overtake it), and among themselves they wait in
//! order of arrival. All other waiting goes from older to younger.
//!
//! Whenever a lock or a waiter goes, each waiter that it held up is judged anew: the urgent and the
//! starved first, then the youngest that are not alone, then those alone in order of arrival. A
//! granted waiter kills the younger ones that would now wait for an older holder.
//! A transaction that is over and still holds locks ([`LockTable::end`]) waits for nothing, so
//! any request may wait for it.
//! A waiter that was overtaken [`OVERTAKEN_MAX`] times (an urgent one: at all) is overtaken by
//! younger ones no more: they die or, if alone, wait.
//!
//! | mode | S | I | F | X | |
//! |---|---|---|---|---|---|
//! | Shared | + | (+) | (+) | | reads |
//! | Increment | (+) | + | + | | has added formulas that commute, not yet committed |
//! | Fold | (+) | + | | | promises or commits such formulas |
//! | Exclusive | | | | | reads and writes |
//!
//! A fold may be *ordered* ([`LockRequest::ordered`]): it waits for anyone, in order of arrival and
//! behind folds that are not ordered. Why there is no deadlock then: only a fold keeps a fold
//! waiting, because the increment that it holds excludes all others. Ordered folds wait for each
//! other along the order; the others wait only for younger ones of their kind.
//!
//! A reader and an adder exclude each other only over a column that one reads and the other adds to
//! ([`Claim`]). Over other columns, neither changes what the other finds.
//!
//! A transaction that is granted two claims on one row holds [`Claim::join`], which excludes all
//! that either excludes. No lock can be in the way of that, so no third request is needed.
//!
//! A lock may stand for a request at another shard, which waits there. That one is alone as long as
//! only requests that are alone wait for the lock ([`LockTable::begin_patience`]).
//!
//! The table does not find rows: a lock on an absent key is as good as any.

mod awaited;
mod bulk;
mod claim;
mod give_way;
mod part;
mod patient;
mod point;
mod release;
mod show;
mod table;
mod wait;

#[cfg(test)]
mod tests;

pub use awaited::{Awaited, AwaitedLock, AwaitedRow};
pub use bulk::Taken;
pub use claim::Claim;
pub use give_way::{GIVE_WAY_US, LockWait, NAME_AGAIN_US};
pub use table::{Acquired, Conflict, Item, LockEvent, LockRequest, LockTable, Settled};
pub use wait::OVERTAKEN_MAX;

use base::{Ts, TxnId};
use serde::{Deserialize, Serialize};

/// Strength of a lock, from the weakest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum LockMode {
    /// Many readers.
    Shared,
    /// Many writers whose changes commute and that read only that the row is there.
    Increment,
    /// One of those that promises or commits. Others may go on adding, but not commit, so versions
    /// of the row appear in the order of their timestamps (ADR 0006).
    Fold,
    /// One owner.
    Exclusive,
}

/// Rank in wait-die, fixed per attempt. Waiting goes only from higher to lower priority. `Ord`: a
/// greater value is a higher priority: urgent before not urgent, then the smaller timestamp, then
/// the smaller id.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Priority {
    /// Whether the transaction has died too often.
    pub urgent: bool,
    /// First timestamp of the client's transaction.
    pub ts: Ts,
    /// Breaks ties.
    pub txn: TxnId,
}

impl PartialOrd for Priority {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Priority {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (self.urgent, other.ts, other.txn).cmp(&(other.urgent, self.ts, self.txn))
    }
}
